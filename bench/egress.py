#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the way out of a box costs, beside others.

    egress.py BUILD WORK [--quick]

WORK is an empty directory, best in memory. Starts an nginx with TLS on
127.0.0.1 and fetches from it, by turns: directly; through the least relay
there is (bench/egress-relay); through CONNECT of squid and of tinyproxy,
where they are installed; out of a box by name; out of a box whose requests
are looked into. Then a small request on a connection of its own, the start
of a box with and without a way out, and many connections out of many boxes.

Lines out, tab-separated: what, figure, unit, bar, verdict. Ends with 0 when no
bar is missed; one that could not be measured is said, and is not missed.
"""
import glob
import os
import pwd
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

HOST = "api.test"
SMALL = "s" * 256
BODY = 192 << 20
BOXES, EACH = 20, 50
# In a box of the host's root; holds its connections until it is ended.
HOLD = """
import socket, ssl, sys, time
tls = ssl._create_unverified_context()
held = []
for i in range(int(sys.argv[1])):
    s = socket.create_connection(("api.test", 443), 20)
    held.append(tls.wrap_socket(s, server_hostname="api.test"))
print("held", len(held), flush=True)
sys.stdin.read()
for s in held:
    s.send(b"GET /small HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n")
    assert s.recv(15) == b"HTTP/1.1 200 OK"
print("alive", flush=True)
"""


class Report:
    def __init__(self):
        self.good = True

    def figure(self, what, value, unit, bar=None):
        """bar: (">=" or "<=", number), or none."""
        if bar is None:
            self.line(what, f"{value:.2f}", unit, "-", "-")
            return
        sign, limit = bar
        holds = value >= limit if sign == ">=" else value <= limit
        self.good = self.good and holds
        self.line(what, f"{value:.2f}", unit, f"{sign} {limit}",
                  "PASS" if holds else "FAIL")

    def absent(self, what, bar, why):
        self.line(what, "-", "-", f"{bar[0]} {bar[1]}",
                  f"NOT MEASURED ({why})")

    def fail(self, what, why):
        self.good = False
        self.line(what, "-", "-", "-", f"FAIL ({why})")

    @staticmethod
    def line(*words):
        print("\t".join(words), flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    end = time.monotonic() + 15
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


class World:
    """The server, the relays and the policies; all below one directory."""

    def __init__(self, build, work):
        self.build, self.work = build, work
        self.processes = []
        self.port = free_port()
        self.proxies = {}

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def start(self, name, command, port, **options):
        with open(self.path(name + ".log"), "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log,
                                       **options)
        self.processes.append(process)
        return wait_for(port, process)

    def certificate(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout",
             self.path("key.pem"), "-out", self.path("ca.pem"), "-subj",
             "/CN=" + HOST, "-addext", "subjectAltName=DNS:" + HOST],
            check=True, stderr=subprocess.DEVNULL)

    def server(self):
        os.makedirs(self.path("www"))
        self.write("www/small", SMALL)
        with open(self.path("www/large"), "wb") as f:
            f.truncate(BODY)
        self.certificate()
        user = pwd.getpwuid(os.geteuid()).pw_name
        conf = self.write("nginx.conf", f"""
daemon off;
{'user ' + user + ';' if os.geteuid() == 0 else ''}
pid {self.path('nginx.pid')};
error_log {self.path('nginx.err')} crit;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_timeout 300;
  client_body_temp_path {self.path('t1')};
  proxy_temp_path {self.path('t2')};
  fastcgi_temp_path {self.path('t3')};
  uwsgi_temp_path {self.path('t4')};
  scgi_temp_path {self.path('t5')};
  server {{
    listen 127.0.0.1:{self.port} ssl backlog=2048;
    ssl_certificate {self.path('ca.pem')};
    ssl_certificate_key {self.path('key.pem')};
    ssl_buffer_size 16k;
    root {self.path('www')};
  }}
}}
""")
        return self.start("nginx", ["nginx", "-e", "stderr", "-c", conf],
                          self.port)

    def relay(self):
        port = free_port()
        if self.start("relay", [os.path.join(self.build, "bench",
                                             "egress-relay"),
                                str(port), str(self.port)], port,
                      stdin=subprocess.PIPE):
            self.proxies["relay"] = ["--connect-to",
                                     f"::127.0.0.1:{port}"]

    def by_connect(self, port):
        return ["-p", "-x", f"http://127.0.0.1:{port}", "--connect-to",
                f"::127.0.0.1:{self.port}"]

    def squid(self):
        # Unpacked by bench/run where it is not installed.
        top = os.path.join(self.build, "clients", "squid")
        program = shutil.which("squid", path=os.environ["PATH"] +
                               f":/usr/sbin:{top}/usr/sbin")
        port = free_port()
        if not program:
            return "squid is not installed"
        if not program.startswith(top):
            top = ""
        # Its shared memory has the name of the service.
        name = f"cordonbench{os.getpid()}"
        # As root it takes its package's user by itself.
        conf = self.write("squid.conf", f"""
http_port 127.0.0.1:{port}
pid_filename none
access_log none
cache_log /dev/null
cache deny all
cache_mem 0 MB
mime_table {top}/usr/share/squid/mime.conf
icon_directory {top}/usr/share/squid/icons
error_directory {top}/usr/share/squid/errors/en
unlinkd_program {top}/usr/lib/squid/unlinkd
pinger_enable off
coredump_dir none
http_access allow all
shutdown_lifetime 0 seconds
""")
        env = {**os.environ, "LD_LIBRARY_PATH": ":".join(glob.glob(
            f"{top}/usr/lib/*-linux-gnu"))} if top else None
        if not self.start("squid", [program, "-N", "-n", name, "-f",
                                    conf], port, env=env):
            return "squid did not start"
        self.proxies["squid"] = self.by_connect(port)
        return ""

    def tinyproxy(self):
        program = shutil.which("tinyproxy")
        port = free_port()
        if not program:
            return "tinyproxy is not installed"
        conf = self.write("tiny.conf", f"""
Port {port}
Listen 127.0.0.1
Timeout 60
MaxClients 20
LogLevel Critical
ConnectPort {self.port}
""")
        if not self.start("tinyproxy", [program, "-d", "-c", conf], port):
            return "tinyproxy did not start"
        self.proxies["tinyproxy"] = self.by_connect(port)
        return ""

    def policy(self, name, rule=""):
        return self.write(name, f"""
version: 1
sandbox: {{images: [host], cpus: 2, timeout: 120s, output: 4m}}
network:
  ca: {self.path('ca.pem')}
  allow:
    - host: {HOST}
      ports: [443]
{rule}
  resolve: {{"{HOST}:443": "127.0.0.1:{self.port}"}}
""")

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Way:
    """One way from a client to the server."""

    def __init__(self, world, proxy=None, policy=None):
        self.world, self.proxy, self.policy = world, proxy, policy

    def command(self, url, *options):
        curl = ["curl", "-sSk", "--http1.1", "-o", "/dev/null", *options]
        if self.policy:
            return [os.path.join(self.world.build, "cordon"), "run",
                    "--policy", self.policy, "--", *curl,
                    f"https://{HOST}{url}"]
        return [*curl, "--resolve", f"{HOST}:{self.world.port}:127.0.0.1",
                *(self.proxy or []),
                f"https://{HOST}:{self.world.port}{url}"]

    def curl(self, url, *options):
        done = subprocess.run(self.command(url, *options), check=False,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=150)
        if done.returncode != 0:
            raise RuntimeError((done.stderr or done.stdout).strip()[-200:] or
                               f"status {done.returncode}")
        return done.stdout.split()

    def throughput(self):
        size, seconds = self.curl("/large", "-w",
                                  "%{size_download} %{time_total}")
        if int(size) != BODY:
            raise RuntimeError(f"{size} bytes of {BODY}")
        return BODY / float(seconds) / 1e6

    def latency(self, n):
        """Of n requests in milliseconds, each on a connection of its own."""
        out = self.curl(f"/small?[1-{n}]", "-H", "Connection: close", "-w",
                        "%{http_code}:%{num_connects}:%{time_total}\\n")
        rows = [line.split(":") for line in out]
        if any(r[0] != "200" or r[1] != "1" for r in rows) or len(rows) != n:
            raise RuntimeError("not every request had an answer")
        return [float(r[2]) * 1e3 for r in rows[n // 10:]]


def turns(ways, verb, rounds):
    """Samples by name, the ways by turns; what fails is said and left out.

    In an order that is shuffled anew each time, so that nobody always has the
    same neighbour."""
    samples = {name: [] for name in ways}
    failed = {}
    dice = random.Random(1)  # the same orders each time
    for i in range(rounds + 1):
        for name, way in dice.sample(list(ways.items()), len(ways)):
            if name in failed:
                continue
            try:
                value = verb(way)
            except (RuntimeError, ValueError, subprocess.SubprocessError,
                    OSError) as e:
                failed[name] = str(e)
                continue
            if i > 0:
                samples[name].append(value)
    return {n: v for n, v in samples.items() if n not in failed}, failed


def report_throughput(r, ways, rounds, why):
    samples, failed = turns(ways, Way.throughput, rounds)
    speed = {name: statistics.median(v) for name, v in samples.items()}
    for name, value in speed.items():
        r.figure(f"one HTTPS stream, {name}", value, "MB/s")
    for name, text in failed.items():
        r.fail(f"one HTTPS stream, {name}", text)
    for name, other, bar in (("box", "relay", 0.9), ("box", "direct", 0.65),
                             ("inspected box", "direct", 0.4),
                             ("box", "squid", 1.2)):
        what = f"one HTTPS stream, {name} / {other}"
        if name in speed and other in speed:
            r.figure(what, speed[name] / speed[other], "", (">=", bar))
        else:
            r.absent(what, (">=", bar), why.get(other) or "see above")


def report_latency(r, ways, rounds, n):
    samples, failed = turns(ways, lambda way: way.latency(n), rounds)
    mid = {name: statistics.median(x for v in samples[name] for x in v)
           for name in samples}
    for name, value in mid.items():
        r.figure(f"small HTTPS request, {name}", value, "ms")
    for name, text in failed.items():
        r.fail(f"small HTTPS request, {name}", text)
    bar = ("<=", 0.3)
    if "box" in mid and "direct" in mid:
        r.figure("small HTTPS request, added by a box",
                 mid["box"] - mid["direct"], "ms", bar)
    else:
        r.absent("small HTTPS request, added by a box", bar, "see above")


def spawn_ms(argv):
    before = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, os.environ)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise RuntimeError(f"status {status}")
    return (time.perf_counter() - before) * 1e3


def report_start(r, world, rounds):
    """The same policy, and a box that has no network."""
    cordon = os.path.join(world.build, "cordon")
    run = [cordon, "run", "--policy", world.path("name.yaml")]
    ways = {"without a way out": [*run, "--network", "none", "--", "true"],
            "with one": [*run, "--", "true"]}
    samples, failed = turns(ways, spawn_ms, rounds)
    mid = {name: statistics.median(v) for name, v in samples.items()}
    for name, value in mid.items():
        r.figure(f"cordon run {name}", value, "ms")
    for name, text in failed.items():
        r.fail(f"cordon run {name}", text)
    if len(mid) == 2:
        r.figure("start of a box, added by a way out",
                 mid["with one"] - mid["without a way out"], "ms",
                 ("<=", 2.0))


def gate_of(pid):
    """The gate that a command started; None: there is none."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        children = f.read().split()
    for child in children:
        try:
            with open(f"/proc/{child}/comm", encoding="utf-8") as f:
                if f.read().strip() == "cordon-gate":
                    return int(child)
        except OSError:
            continue
    return None


def pss_mib(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
            total += sum(int(line.split()[1]) for line in f
                         if line.startswith("Pss:"))
    return total / 1024


class Held:
    """A box that opened its connections and holds them."""

    def __init__(self, world, n):
        self.process = subprocess.Popen(
            [os.path.join(world.build, "cordon"), "run", "--policy",
             world.path("name.yaml"), "-i", "--", "python3", "-c", HOLD,
             str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

    def hears(self, word):
        line = self.process.stdout.readline().split()
        return bool(line) and line[0] == word

    def end(self):
        out, err = self.process.communicate(timeout=60)
        return out.strip() == "alive", err.strip()[-200:]


def hold(world, n):
    """PSS of the gates while n connections of each box are open."""
    boxes = [Held(world, n) for _ in range(BOXES)]
    ready = [box.hears("held") for box in boxes]
    pids = list(filter(None, (gate_of(b.process.pid) for b in boxes)))
    memory = pss_mib(pids)
    ends = [box.end() for box in boxes]
    for is_alive, err in ends:
        if not is_alive:
            raise RuntimeError(err or "a connection was lost")
    if not all(ready) or len(pids) != BOXES:
        raise RuntimeError("not every connection was made")
    return memory


def report_many(r, world):
    what = f"{BOXES * EACH} connections of {BOXES} boxes"
    try:
        idle = hold(world, 0)
        memory = hold(world, EACH)
    except (RuntimeError, OSError, subprocess.SubprocessError) as e:
        r.fail(what, str(e))
        return
    r.figure(f"{what}: memory of a gate without any (PSS)", idle / BOXES,
             "MiB")
    r.figure(f"{what}: memory of all gates (PSS)", memory, "MiB")
    r.figure(f"{what}: memory of a connection",
             (memory - idle) * 1024 / (BOXES * EACH), "KiB")


def main():
    build, work = map(os.path.abspath, sys.argv[1:3])
    quick = "--quick" in sys.argv[3:]
    os.environ["CORDON_LIBEXEC"] = build
    os.environ.setdefault("CORDON_STATE_DIR", os.path.join(work, "state"))
    world, r = World(build, work), Report()
    try:
        if not shutil.which("nginx") or not world.server():
            r.absent("egress", (">=", 0), "nginx is not there")
            return 0
        world.relay()
        why = {"squid": world.squid(), "tinyproxy": world.tinyproxy()}
        ways = {"direct": Way(world)}
        ways.update((n, Way(world, p)) for n, p in world.proxies.items())
        ways["box"] = Way(world, policy=world.policy("name.yaml"))
        ways["inspected box"] = Way(world, policy=world.policy(
            "look.yaml", "      methods: [GET]"))
        report_throughput(r, ways, 3 if quick else 15, why)
        report_latency(r, ways, 2 if quick else 20, 60)
        report_start(r, world, 10 if quick else 60)
        report_many(r, world)
    finally:
        world.stop()
    return 0 if r.good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cordon's Docker socket beside a Docker Engine, by the same clients.

    daemon.py BUILD WORK [--rounds N] [--boxes N]

WORK is an empty directory, best in memory. Starts `cordon serve`, and a
Docker Engine (tools/docker-engine) where one can be had, each with its socket
below WORK, and takes turns: `docker run --rm` of /bin/true with limits by the
docker command; exec_run() by docker-py, where this Python has it; a create,
start, wait, remove cycle over the bare API. Then so many boxes at once in
Cordon, and what the daemon and each of them weigh (PSS).

Lines out, tab-separated: what, Cordon's median, the engine's, ratio, bar,
verdict. Ends with 0 when no bar is missed; one that could not be measured is
said, and is not missed.
"""
import http.client
import io
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
IMAGE = "cordon-bench"
LIMITS = ("--network none --memory 256m --memory-swap 256m --cpus 0.5 "
          "--pids-limit 128 --read-only --tmpfs /tmp --cap-drop ALL "
          "--security-opt no-new-privileges --user 65534:65534").split()
# What, and at least how many times faster.
BARS = {"docker run --rm": 5, "exec_run by docker-py": 8,
        "create, start, wait, remove": 30}
DAEMON_MIB, BOX_MIB = 40, 1.5


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.unix = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.unix)


class Server:
    """One that was started here, and what a client does with it."""

    def __init__(self, name, work, command, env=None):
        self.name, self.work = name, work
        self.sock = os.path.join(work, "sock")
        self.log = open(work + ".log", "wb")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, env={**os.environ, **(env or {})})
        self.api = UnixConnection(self.sock)
        self.client = self.box = None

    def wait_ready(self):
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return self.ask("GET", "/_ping", raw=True) == b"OK"
            except OSError:
                self.api.close()
                time.sleep(0.1)
        return False

    def ask(self, method, path, body=None, raw=False):
        data = json.dumps(body) if isinstance(body, dict) else body
        kind = {"Content-Type": "application/json"} \
            if isinstance(body, dict) else {}
        self.api.request(method, path, data, kind)
        answer = self.api.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"{self.name}: {method} {path}: "
                             f"{content.decode(errors='replace')}")
        return content if raw else json.loads(content or b"null")

    def import_image(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name in ("true", "sleep", "sh"):
                tar.add(shutil.which("busybox"), "bin/" + name)
        self.ask("POST", f"/images/create?fromSrc=-&repo={IMAGE}&tag=latest",
                 out.getvalue(), raw=True)

    def make(self, command, **config):
        return self.ask("POST", "/containers/create", {
            "Image": IMAGE, "Cmd": command, "NetworkDisabled": True,
            "HostConfig": {"NetworkMode": "none", **config}})["Id"]

    def cycle(self):
        ident = self.make(["/bin/true"])
        self.ask("POST", f"/containers/{ident}/start")
        self.ask("POST", f"/containers/{ident}/wait")
        self.ask("DELETE", f"/containers/{ident}", raw=True)

    def command(self):
        subprocess.run(["docker", "-H", "unix://" + self.sock, "run", "--rm",
                        *LIMITS, IMAGE, "/bin/true"], check=True,
                       stdin=subprocess.DEVNULL)

    def open_exec(self):
        import docker
        self.client = docker.DockerClient(base_url="unix://" + self.sock)
        self.box = self.client.containers.run(
            IMAGE, ["/bin/sleep", "600"], detach=True, network_mode="none")

    def exec(self):
        code, _ = self.box.exec_run(["/bin/true"])
        if code != 0:
            raise SystemExit(f"{self.name}: exec_run ended with {code}")

    def stop(self):
        if self.box is not None:
            self.box.remove(force=True)
        self.api.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def start_cordon(build, work):
    place = os.path.join(work, "cordon")
    os.mkdir(place, 0o755)
    return Server("cordon", place, [
        os.path.join(build, "cordon"), "serve", "--socket",
        os.path.join(place, "own"), "--docker-socket",
        os.path.join(place, "sock"), "--max-boxes", "256"],
        {"CORDON_STATE_DIR": os.path.join(place, "state"),
         "CORDON_RUNTIME_DIR": os.path.join(place, "run"),
         "CORDON_LIBEXEC": build})


def start_engine(build):
    """None, and why, where it cannot be had."""
    tool = os.path.join(TOP, "tools", "docker-engine")
    programs = os.path.join(build, "clients", "engine")
    if os.environ.get("CORDON_BENCH_DOCKER") == "0":
        return None, "left out (CORDON_BENCH_DOCKER=0)"
    if os.geteuid() != 0:
        return None, "it needs root"
    fetch = subprocess.run([tool, "fetch", programs], capture_output=True,
                           text=True)
    if fetch.returncode != 0:
        return None, "docker.io cannot be had: " + \
            (fetch.stderr.strip().splitlines() or ["?"])[-1]
    # Not in memory: its layers are overlayfs, and its data is large.
    work = f"/var/tmp/cordon-bench-engine-{os.getpid()}"
    os.mkdir(work, 0o711)
    server = Server("docker", work, [tool, "run", programs, work])
    if not server.wait_ready():
        stop_engine(server)
        return None, "it did not start"
    return server, ""


def stop_engine(server):
    server.stop()
    subprocess.run([os.path.join(TOP, "tools", "docker-engine"), "clean",
                    server.work], check=False)
    os.remove(server.work + ".log")


def milliseconds(what):
    before = time.perf_counter()
    what()
    return (time.perf_counter() - before) * 1e3


def turns(servers, verb, rounds, warm=2):
    """Medians, the servers by turns; the engine is slow, a third will do."""
    samples = {server.name: [] for server in servers}
    for i in range(rounds + warm):
        for server in servers:
            if server.name == "docker" and i % 3 and i >= warm:
                continue
            time.sleep(0.002)
            took = milliseconds(getattr(server, verb))
            if i >= warm:
                samples[server.name].append(took)
    return {name: statistics.median(v) for name, v in samples.items()}


class Report:
    def __init__(self, why):
        self.good, self.why = True, why

    def ratio(self, what, medians):
        bar, mine = BARS[what], medians["cordon"]
        if "docker" not in medians:
            self.line(what, f"{mine:.2f} ms", "-", "-", f">= {bar}",
                      f"NOT MEASURED ({self.why})")
            return
        ratio = medians["docker"] / mine
        self.judge(ratio >= bar, what, f"{mine:.2f} ms",
                   f"{medians['docker']:.2f} ms", f"{ratio:.1f}", f">= {bar}")

    def judge(self, holds, *words):
        self.good = self.good and holds
        self.line(*words, "PASS" if holds else "FAIL")

    @staticmethod
    def line(*words):
        print("\t".join(words), flush=True)


def parents():
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as f:
                text = f.read()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        found[int(entry)] = (int(text[text.rindex(")") + 2:].split()[1]), name)
    return found


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        for line in f:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def weigh(root):
    """KiB of the daemon's own processes, by name, and of all boxes. A process
    in another pid namespace than the daemon's is a box's."""
    every = parents()
    tree, grew = {root}, True
    while grew:
        more = {p for p, (parent, _) in every.items()
                if parent in tree and p not in tree}
        tree |= more
        grew = bool(more)
    own = os.readlink(f"/proc/{root}/ns/pid")
    daemon, boxes, count = {}, 0, 0
    for pid in tree:
        try:
            inside = os.readlink(f"/proc/{pid}/ns/pid") != own
            weight = pss(pid)
        except OSError:
            continue
        if inside:
            boxes += weight
            count += 1
        else:
            name = every[pid][1]
            daemon[name] = daemon.get(name, 0) + weight
    return daemon, boxes, count


def measure_memory(server, boxes, report):
    idents = []
    try:
        for _ in range(boxes):
            ident = server.make(["/bin/sleep", "600"])
            idents.append(ident)
            server.ask("POST", f"/containers/{ident}/start")
        running = len(server.ask("GET", "/containers/json"))
        time.sleep(1)
        daemon, weight, count = weigh(server.process.pid)
    finally:
        for ident in idents:
            server.ask("DELETE", f"/containers/{ident}?force=1", raw=True)
    if running < boxes:
        raise SystemExit(f"only {running} of {boxes} boxes run")
    total = sum(daemon.values()) / 1024
    each = weight / 1024 / boxes
    parts = ", ".join(f"{k} {v / 1024:.1f}" for k, v in sorted(daemon.items()))
    report.judge(total < DAEMON_MIB, f"daemon with {boxes} boxes ({parts})",
                 f"{total:.1f} MiB", "-", "-", f"< {DAEMON_MIB} MiB")
    report.judge(each < BOX_MIB, f"an idle box ({count} processes in all)",
                 f"{each:.2f} MiB", "-", "-", f"< {BOX_MIB} MiB")


def measure(servers, rounds, boxes, report):
    for server in servers:
        server.import_image()
    report.line("what", "cordon", "docker engine", "ratio", "bar", "verdict")
    if shutil.which("docker"):
        report.ratio("docker run --rm", turns(servers, "command", rounds))
    try:
        for server in servers:
            server.open_exec()
        report.ratio("exec_run by docker-py", turns(servers, "exec", rounds))
    except ImportError:
        report.line("exec_run by docker-py", "-", "-", "-", "-",
                    "NOT MEASURED (this Python has no docker-py)")
    report.ratio("create, start, wait, remove",
                 turns(servers, "cycle", rounds))
    measure_memory(servers[0], boxes, report)


def option(name, default):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv \
        else default


def main():
    build, work = (os.path.abspath(p) for p in sys.argv[1:3])
    rounds, boxes = option("--rounds", 60), option("--boxes", 200)
    servers = [start_cordon(build, work)]
    engine = None
    try:
        if not servers[0].wait_ready():
            with open(servers[0].work + ".log", encoding="utf-8") as f:
                raise SystemExit("cordon serve did not start: " + f.read())
        engine, why = start_engine(build)
        if engine:
            servers.append(engine)
        report = Report(why)
        measure(servers, rounds, boxes, report)
        return 0 if report.good else 1
    finally:
        servers[0].stop()
        if engine:
            stop_engine(engine)


if __name__ == "__main__":
    sys.exit(main())

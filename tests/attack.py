#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One user of a root daemon against the others: each test is an attempt to
use up what all share. CORDON_BUILD names the build. Prints TAP."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

BUILD = os.environ["CORDON_BUILD"]
EVIL, GOOD = 61801, 61802
TRUE = {"Image": "host", "Cmd": ["true"]}


class Daemon:
    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="cordon-attack-")
        os.chmod(self.dir, 0o711)
        self.sock = self.dir + "/docker.sock"
        self.start()
        return self

    def start(self):
        env = dict(os.environ, CORDON_STATE_DIR=self.dir + "/state",
                   CORDON_RUNTIME_DIR=self.dir + "/run")
        self.log = open(self.dir + "/log", "wb")
        self.process = subprocess.Popen(
            [BUILD + "/cordon", "serve", "--docker-socket", self.sock,
             "--mode", "0666"], env=env, stderr=self.log)
        end = time.time() + 20
        while b"ready" not in open(self.dir + "/log", "rb").read():
            if time.time() > end or self.process.poll() is not None:
                raise SystemExit("Bail out! the daemon does not start")
            time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def __exit__(self, *what):
        self.stop()
        shutil.rmtree(self.dir)


def connect(d):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(d.sock)
    return s


def call(d, method, path, body=None):
    """(status, the answer's text)"""
    data = b"" if body is None else json.dumps(body).encode()
    with connect(d) as s:
        s.sendall(f"{method} /v1.44{path} HTTP/1.1\r\nHost: d\r\n"
                  "Connection: close\r\nContent-Type: application/json\r\n"
                  f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        text = b""
        while more := s.recv(65536):
            text += more
    head, _, rest = text.partition(b"\r\n\r\n")
    return int(head.split()[1]), rest.decode(errors="replace")


def fork_as(uid, fn, *args):
    """A process of that user, in a session of its own; its pid."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        try:
            fn(*args)
        finally:
            os._exit(0)
    return pid


def call_as(uid, d, *what):
    out, into = os.pipe()
    pid = fork_as(uid, lambda: os.write(
        into, json.dumps(call(d, *what)).encode()[:60000]))
    os.close(into)
    with os.fdopen(out) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else [0, "no answer"]


def stop(pid):
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def stalled_archives(d):
    """Archives of which no more comes hold up nobody else's images."""
    head = tarfile.TarInfo("blobs/sha256/x")
    head.size = 1 << 30

    def stall():
        kept = []
        for _ in range(20):
            s = connect(d)
            s.sendall(b"POST /v1.44/images/load HTTP/1.1\r\nHost: d\r\n"
                      b"Content-Type: application/x-tar\r\n"
                      b"Transfer-Encoding: chunked\r\n\r\n200\r\n" +
                      head.tobuf() + b"\r\n")
            kept.append(s)
        signal.pause()

    pid = fork_as(EVIL, stall)
    time.sleep(2)
    got = [call_as(GOOD, d, "GET", "/images/json")[0],
           call_as(GOOD, d, "GET", "/images/nosuch/json")[0],
           call_as(EVIL, d, "GET", "/images/json")[0]]
    stop(pid)
    return got, [200, 404, 200]


def many_lists(d):
    """Many at once wait for each other, and none fails."""
    with ThreadPoolExecutor(40) as pool:
        got = list(pool.map(lambda _: call(d, "GET", "/images/json")[0],
                            range(80)))
    return got, [200] * 80


def spam(d):
    while True:
        try:
            call(d, "POST", "/containers/create", dict(TRUE, Image="nosuch"))
        except OSError:
            pass


def children_of(d, uid):
    """How many processes of the daemon's parent are that user."""
    pid = d.process.pid
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        children = f.read().split()
    n = 0
    for child in children:
        try:
            with open(f"/proc/{child}/status") as f:
                n += f"Uid:\t{uid}\t" in f.read()
        except OSError:
            pass
    return n


def stopped_preparers(d):
    """Who stops the processes that work for him holds up nobody else."""

    def attack():
        for _ in range(90):
            if os.fork() == 0:
                spam(d)
        base = os.getpid() + 200
        while True:
            last = int(open("/proc/loadavg").read().split()[4])
            for pid in range(max(base, last - 60), last + 3):
                try:
                    os.kill(pid, signal.SIGSTOP)
                except OSError:
                    pass

    pid = fork_as(EVIL, attack)
    time.sleep(4)
    got = [call_as(GOOD, d, "POST", "/containers/create", TRUE)[0]
           for _ in range(5)]
    few = children_of(d, EVIL) <= 32 + 1  # and one that was made ahead
    stop(pid)
    return got + [few], [201] * 5 + [True]


def run_boxes(d):
    while True:
        try:
            made = json.loads(call(d, "POST", "/containers/create", {
                "Image": "host", "Cmd": ["sleep", "0.1"]})[1])
            box = "/containers/" + made["Id"]
            call(d, "POST", box + "/start")
            made = json.loads(call(d, "POST", box + "/exec",
                                   {"Cmd": ["true"]})[1])
            call(d, "POST", f"/exec/{made['Id']}/start", {})
            call(d, "POST", box + "/wait")
        except (OSError, ValueError, KeyError, IndexError):
            time.sleep(0.02)


def parts(d):
    """The children of the daemon, by name."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = open(f"/proc/{pid}/stat").read()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:].rsplit(")", 1)
        if int(rest.split()[1]) == d.process.pid:
            found[name] = int(pid)
    return found


def killed_parts(d):
    """Whatever dies when, each run that began has one end on the ledger."""
    pids = [fork_as(GOOD, run_boxes, d) for _ in range(6)]
    for name in ["cordon-front", "cordon-keeper"] * 3 + ["cordon-front"]:
        time.sleep(1.5)
        if name in (now := parts(d)):
            os.kill(now[name], signal.SIGKILL)
    time.sleep(1.5)
    for pid in pids:
        stop(pid)
    # What was lost at the very end, the next one tells.
    d.stop()
    d.start()
    time.sleep(1)
    d.stop()
    counts = {}
    for line in open(d.dir + "/state/ledger/000001.jsonl"):
        record = json.loads(line)
        if record["kind"] in ("run.start", "run.end"):
            run = (record.get("data") or record)["run"]
            counts.setdefault(run, []).append(record["kind"])
    odd = [c for c in counts.values() if c != ["run.start", "run.end"]]
    print(f"# {len(counts)} runs")
    return [len(counts) > 20, odd], [True, []]


LARGE = {"Cmd": ["true"], "Env": [f"A{k}=" + "x" * 4000 for k in range(100)]}


def hoard(d):
    """Programs that are never started, and bodies that never end."""
    call(d, "POST", "/containers/create?name=hoard",
         {"Image": "host", "Cmd": ["sleep", "100"]})
    call(d, "POST", "/containers/hoard/start")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: call(d, "POST", "/containers/hoard/exec",
                                     LARGE), range(200)))
    kept = []
    for _ in range(100):
        s = connect(d)
        try:
            s.sendall(b"POST /v1.44/containers/create HTTP/1.1\r\nHost: d\r\n"
                      b"Content-Type: application/json\r\n"
                      b"Content-Length: 4000000\r\n\r\n" + b" " * 3900000)
        except OSError:
            pass
        kept.append(s)
    signal.pause()


def hoarding(d):
    """What is held for one user is bounded, and others are served."""
    pid = fork_as(EVIL, hoard, d)
    front = parts(d)["cordon-front"]
    peak, more = 0, 0
    end = time.time() + 60
    while time.time() < end and more != 503:
        time.sleep(0.5)
        more = call_as(EVIL, d, "POST", "/containers/hoard/exec", LARGE)[0]
    for _ in range(20):
        with open(f"/proc/{front}/status") as f:
            peak = max([peak] + [int(line.split()[1]) for line in f
                                 if line.startswith("RssAnon")])
        time.sleep(0.2)
    good = call_as(GOOD, d, "POST", "/containers/create", TRUE)[0]
    stop(pid)
    print(f"# the front had {peak >> 10} MiB")
    return [64 << 10 < peak < 256 << 10, more, good], [True, 503, 201]


TESTS = [hoarding, stalled_archives, many_lists, stopped_preparers, killed_parts]


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root: other users are played")
        return 0
    bad = 0
    print(f"1..{len(TESTS)}", flush=True)
    with Daemon() as d:
        for i, test in enumerate(TESTS):
            got, want = test(d)
            bad += got != want
            if got != want:
                print(f"# have {got}\n# want {want}")
            print(f"{'ok' if got == want else 'not ok'} {i + 1} - "
                  f"{test.__name__}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

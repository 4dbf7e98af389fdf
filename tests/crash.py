#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each part of the daemon is killed at its nth system call of a kind, by
strace, while a box and a program in it begin and end. Whatever dies when:
each run that has a start on the ledger has one end there, none has an end
without a start, and the next daemon tells of the box what the ledger says.
CORDON_BUILD names the build. Prints TAP."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["CORDON_BUILD"]
MAIN = {"Image": "host", "Cmd": ["sh", "-c", "sleep 0.3; exit 5"]}
# The calls that tell or note something, and how many of each are tried.
STEPS = {
    "front": {"pwrite64": 8, "/^rename": 4, "sendmsg": 12, "recvmsg": 10},
    "clerk": {"recvmsg": 6, "write": 4, "pwrite64": 4, "fdatasync": 4,
              "sendmsg": 4},
    "keeper": {"sendmsg": 8, "recvmsg": 8},
    "parent": {"sendmsg": 3, "recvmsg": 4, "/^(clone|fork)": 2},
}


class Daemon:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="cordon-crash-", dir="/dev/shm")
        self.sock = self.dir + "/docker.sock"

    def start(self):
        env = dict(os.environ, CORDON_STATE_DIR=self.dir + "/state",
                   CORDON_RUNTIME_DIR=self.dir + "/run")
        with open(self.dir + "/log", "wb") as log:
            self.process = subprocess.Popen(
                [BUILD + "/cordon", "serve", "--socket", self.dir + "/own.sock",
                 "--docker-socket", self.sock], env=env, stderr=log)
        if not self.until_ready(1):
            raise SystemExit("Bail out! the daemon does not start: " +
                             open(self.dir + "/log").read())

    def until_ready(self, n):
        end = time.time() + 20
        while time.time() < end:
            with open(self.dir + "/log", "rb") as log:
                if log.read().count(b"ready:") >= n:
                    return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.02)
        return False

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def remove(self):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.dir)

    def pid_of(self, part):
        if part == "parent":
            return self.process.pid
        name = {"clerk": "cordon"}.get(part, "cordon-" + part)
        out = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid",
                              str(self.process.pid)], capture_output=True,
                             text=True, check=True).stdout
        return next(int(line.split()[0]) for line in out.splitlines()
                    if line.split()[1] == name[:15])

    def call(self, method, path, body=None):
        """(status, the answer); status 0: it got none"""
        data = b"" if body is None else json.dumps(body).encode()
        text = b""
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(10)
                s.connect(self.sock)
                s.sendall(f"{method} /v1.44{path} HTTP/1.1\r\nHost: d\r\n"
                          "Connection: close\r\n"
                          "Content-Type: application/json\r\n"
                          f"Content-Length: {len(data)}\r\n\r\n".encode()
                          + data)
                while more := s.recv(65536):
                    text += more
        except OSError:
            pass
        head, _, rest = text.partition(b"\r\n\r\n")
        if not head:
            return 0, {}
        try:
            return int(head.split()[1]), json.loads(rest or b"{}")
        except ValueError:
            return int(head.split()[1]), {}

    def records(self):
        found = {}
        name = self.dir + "/state/ledger/000001.jsonl"
        if not os.path.exists(name):
            return found
        with open(name) as ledger:
            for line in ledger:
                record = json.loads(line)
                if record["kind"] in ("run.start", "run.end"):
                    found.setdefault(record["run"], []).append(record)
        return found


def work(d):
    """A box and a program in it, from beginning to end."""
    status, _ = d.call("POST", "/containers/create?name=box", MAIN)
    if status != 201 or d.call("POST", "/containers/box/start")[0] != 204:
        return
    status, made = d.call("POST", "/containers/box/exec",
                          {"Cmd": ["true"], "AttachStdout": True})
    if status == 201:
        d.call("POST", f"/exec/{made['Id']}/start", {"Detach": False})
    d.call("POST", "/containers/box/wait")


def trace(d, part, call, n):
    s = subprocess.Popen(
        ["strace", "-p", str(d.pid_of(part)), "-e", "trace=" + call, "-e",
         f"inject={call}:signal=KILL:when={n}", "-o", "/dev/null"],
        stderr=subprocess.PIPE)
    if b"attached" not in s.stderr.readline():
        raise SystemExit("Bail out! strace does not attach")
    return s


def odd_runs(records):
    kinds = {run: [r["kind"] for r in all_of] for run, all_of in
             records.items()}
    return {run: k for run, k in kinds.items() if k != ["run.start", "run.end"]}


def odd_box(d, records):
    """What the daemon says of the box against what the ledger does."""
    status, box = d.call("GET", "/containers/box/json")
    if status == 404:
        return None
    state = box["State"]
    if state["Status"] == "created":
        return None
    ends = [r for all_of in records.values() for r in all_of
            if r["kind"] == "run.end" and r.get("box") == box["Id"]
            and r["exit_code"] in (5, 125)]
    if not ends and state["StartedAt"].startswith("0001"):
        return None  # it never began, and is told so
    told = state["ExitCode"]
    if state["Status"] != "exited" or told not in [r["exit_code"] for r in
                                                   ends]:
        return f"{state} but {ends}"
    return None


def step(part, call, n):
    """What is wrong after that death; None: it did not come to it."""
    d = Daemon()
    try:
        d.start()
        s = trace(d, part, call, n)
        work(d)
        time.sleep(0.05)
        if s.poll() is None:  # strace ends with whom it watches
            s.send_signal(signal.SIGINT)
            s.wait(5)
            return None
        if part == "parent":
            d.process.wait(5)
            d.start()
        elif not d.until_ready(2):
            return "it does not start again: " + open(d.dir + "/log").read()
        end = time.time() + 5
        while odd_runs(d.records()) and time.time() < end:
            time.sleep(0.05)
        before = d.records()
        wrong = odd_runs(before) or odd_box(d, before)
        # The next one has nothing to add.
        d.stop()
        d.start()
        time.sleep(0.2)
        if not wrong and d.records() != before:
            wrong = f"told again: {odd_runs(d.records())}"
        return wrong or odd_box(d, before) or ""
    finally:
        d.remove()


def main():
    if os.geteuid() != 0 or not shutil.which("strace"):
        print("1..0 # SKIP needs root and strace")
        return 0
    count = bad = reached = 0
    wanted = sys.argv[1:] or list(STEPS)
    for part in wanted:
        for call, most in STEPS[part].items():
            for n in range(1, most + 1):
                wrong = step(part, call, n)
                if wrong is None:
                    break
                reached += 1
                count += 1
                bad += bool(wrong)
                print(f"{'not ' if wrong else ''}ok {count} - {part} killed at "
                      f"{call.strip('/^')} {n}", flush=True)
                if wrong:
                    print(f"# {wrong}", flush=True)
    count += 1
    enough = reached >= 10 * len(wanted)
    bad += not enough
    print(f"{'' if enough else 'not '}ok {count} - enough deaths: {reached}")
    print(f"1..{count}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Quotas, records, and a policy that changes while a box lives."""

import ctypes
import json
import os
import re
import select
import subprocess
import time

from common import (BUILD, LAB, PROBE, Box, case, is_in, is_not_in,
                    reasons, refused, told)
from lab import API

ODD = "{host: odd.test, ports: [8022, 8023, 8024, 8025, 80, 443]%s}"


def gates():
    """cordon-gate processes: of the lab's own namespace."""
    found = {}
    own = os.readlink("/proc/self/ns/net")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if (open(f"/proc/{pid}/comm").read().startswith("cordon-gate") and
                    os.readlink(f"/proc/{pid}/ns/net") == own):
                text = open(f"/proc/{pid}/status").read()
                found[pid] = int(text.split("VmRSS:")[1].split()[0])
        except (OSError, IndexError):  # gone, or only to be waited for
            pass
    return found


@case("a server that speaks first, and a connection that is closed by half")
def speaks_first():
    with Box([ODD % ""]) as box:
        said, doc = box.tries(["tcp", "odd.test", 8022, "hello"],
                              ["tcp", "odd.test", 8024, "line\n" * 20000, True])
        is_in("ODD-2.0 ready\r\nyou said hello", said[0])
        assert "100000 bytes" in said[1], (said, doc["denials"])
        assert doc["denials"] == [], doc


@case("N32 many connections: bounded, and other boxes do not feel it")
def n32_many():
    more = "  connections: 40\n"
    with Box([ODD % ""], more) as box, Box([ODD % ""]) as other:
        # Says nothing: each is held as long as the gate lets it.
        with box.start("--cpus", "2", "--json", "--", "/usr/bin/python3", "-c",
                       PROBE, json.dumps([["many", "odd.test", 8025, 300]])
                       ) as p:
            time.sleep(0.3)
            start = time.time()
            said, _ = other.tries(["tcp", "odd.test", 8022, "hi"])
            is_in("you said hi", said[0])
            assert time.time() - start < 5
            doc = json.loads(p.communicate(timeout=60)[0])
        alive = int(json.loads(doc["stdout"])[0])
        assert 1 <= alive <= 40, alive
        is_in("connections", reasons(doc))


# Fills sockets of the box's own until they or the kernel take no more.
FILL = """
import socket
block, total = b"x" * 60000, {}
for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
    kept, n = [], 0
    for i in range(120):
        try:
            to, me = socket.socket(type=kind), socket.socket(type=kind)
            to.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
            me.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 20)
            to.bind(("127.0.0.1", 0))
            if kind == socket.SOCK_STREAM:
                to.listen()
            me.connect(to.getsockname())
            if kind == socket.SOCK_STREAM:
                kept.append(to.accept()[0])
            me.setblocking(False)
            kept += [to, me]
            # UDP does not say what it drops: as much as a buffer can hold.
            for _ in range(1200):
                n += me.send(block)
        except OSError:
            pass
    if kind == socket.SOCK_DGRAM:
        n = 0
        for s in kept[::2]:
            s.setblocking(False)
            try:
                while True:
                    n += len(s.recv(len(block)))
            except OSError:
                pass
    for s in kept:
        s.close()
    total[kind.name] = n >> 10
print(total["SOCK_STREAM"], total["SOCK_DGRAM"])
"""


@case("R27 what waits in sockets is bounded, whatever the host allows")
def r27_buffers():
    with Box([ODD % ""]) as box:
        doc = box.run("--memory", "64m", "--", "/usr/bin/python3", "-c", FILL)
        if doc["cause"] == "memory":  # version 2: it is memory like any other
            return
        stream, datagrams = map(int, doc["stdout"].split())
        assert 256 <= stream <= 20 << 10, doc
        assert 256 <= datagrams <= 20 << 10, doc


# Asks for endless answers and reads none of them.
UNREAD = """
import socket, time
kept = [socket.create_connection(("odd.test", 8027)) for _ in range(60)]
for s in kept:
    s.sendall(b"go\\n")
print("up", flush=True)
time.sleep(20)
"""


def unread(port):
    """Bytes that wait in each of this namespace's sockets to that port."""
    out = subprocess.run(["ss", "-tmnH"], check=True, capture_output=True,
                         text=True).stdout
    return [int(n) for n in re.findall(
        r":%d\s*\n\s*skmem:\(r(\d+)" % port, out)]


@case("N32 answers that nobody reads wait in bounded buffers")
def n32_unread():
    small = 160 << 10  # what the kernel makes of 64 KiB, and a last packet
    with Box(["{host: odd.test, ports: [8027]}"]) as box:
        with box.start("--cpus", "2", "--", "/usr/bin/python3", "-c",
                       UNREAD) as p:
            assert p.stdout.readline() == b"up\n", p.stderr.read()
            end = time.time() + 10
            while time.time() < end and (len(unread(8027)) < 60 or
                                         max(unread(8027)) <= small):
                time.sleep(0.2)
            time.sleep(0.5)
            found = sorted(unread(8027))
            p.terminate()
        assert len(found) == 60, found
        assert found[-1] > small, found  # the control: they do pile up
        assert all(n <= small for n in found[:-8]), found


@case("N32 a rule's connections, rate and bytes")
def n32_quotas():
    with Box([ODD % ", connections: 3"]) as box:
        said, doc = box.tries(["many", "odd.test", 8025, 20])
        assert said == ["3"], said
        assert reasons(doc) == {"connections"}, doc["denials"]
    with Box([ODD % ", rate: 5"]) as box:
        said, doc = box.tries(*(["tcp", "odd.test", 8022, "hi"]
                                for _ in range(8)))
        got = ["you said hi" in text for text in said]
        assert got == [True] * 5 + [False] * 3, said
        assert reasons(doc) == {"rate"}, doc["denials"]
    with Box([ODD % ", bytes: 1m"]) as box:
        said, doc = box.tries(["pull", "odd.test", 8023, 8 << 20],
                              ["tcp", "odd.test", 8022, "hi"])
        assert 0 < int(said[0]) <= 1 << 20, said
        is_not_in("you said", said[1])
        assert reasons(doc) == {"bytes"}, doc["denials"]


@case("N32 an endless answer and a head without an end: memory is bounded")
def n32_memory():
    with Box([ODD % ""]) as box:
        attempts = [["pull", "odd.test", 8023, 200 << 20],
                    ["head", "odd.test", 80, 1 << 20]]
        with box.start("--cpus", "2", "--json", "--", "/usr/bin/python3", "-c",
                       PROBE, json.dumps(attempts)) as p:
            most = 0
            while p.poll() is None:
                most = max([most, *gates().values()])
                time.sleep(0.02)
            doc = json.loads(p.stdout.read())
        said = json.loads(doc["stdout"])
        assert int(said[0]) >= 200 << 20, said[0]
        is_not_in("hello", said[1])
        assert 0 < most < 40000, f"{most} KiB"


@case("N34 each decision is one record, without a query")
def n34():
    with Box(["{host: api.test, ports: [80, 443]}"]) as box:
        _, doc = box.tries(["http", "api.test", "/a?token=qu3ry"],
                           ["tls", "api.test", "api.test", "/b?token=qu3ry"],
                           ["names", "other.test"], ["tcp", "api.test", 22],
                           ["tls", "api.test", "evil.test"])
        records, text = box.records()
        mine = [r for r in records if r["kind"] == "connection"]
        for r in mine:
            assert r["run"] == doc["id"], r
            assert r["decision"] in ("allow", "deny"), r
        good = [r for r in mine if r["decision"] == "allow" and
                r["port"] == 443]
        assert len(good) == 1, mine
        is_in(good[0]["address"].split(":")[0], API + " 2606")
        is_in("cordon.yaml:", good[0]["rule"])
        assert good[0]["bytes_in"] > 0 and good[0]["bytes_out"] > 0, good
        is_in("duration_ms", " ".join(good[0]))
        asked = [r for r in mine if r.get("protocol") == "http"]
        assert len(asked) == 1 and asked[0]["path"] == "/a", mine
        assert asked[0]["bytes_in"] > len("hello from api.test"), asked
        assert asked[0]["bytes_out"] > 0, asked
        is_in("duration_ms", " ".join(asked[0]))
        denied = {(r["host"], r.get("code")) for r in mine
                  if r["decision"] == "deny"}
        is_in(("other.test", "no_rule"), denied)
        is_in(("api.test", "server_name"), denied)
        is_in(("api.test", "port"), denied)
        is_in(("api.test:22", "port"), told(doc))
        is_in(("api.test", 22, "port"), refused(box))
        is_not_in("qu3ry", text)


def noted():
    """How many connections the server at 8026 has had."""
    try:
        return len(open(LAB + "/noted.log").readlines())
    except FileNotFoundError:
        return 0


def desk(box, *args):
    out = subprocess.run([BUILD + "/cordon", *args], env=box.env,
                         stdout=subprocess.PIPE).stdout.decode()
    return out


def wait_for_question(box):
    end = time.time() + 20
    while time.time() < end:
        waiting = json.loads(desk(box, "approvals", "list", "--json") or "[]")
        waiting = waiting.get("approvals", waiting) if isinstance(
            waiting, dict) else waiting
        if waiting:
            return waiting
        time.sleep(0.05)
    raise AssertionError("nobody was asked")


@case("ask: a connection waits for a person, or fails")
def ask():
    name_only = ["{host: api.test, ports: [80]}"]
    asks = ("  ask: [{host: a.sub.test, ports: [80]}]\n  ask_wait: %s\n"
            "approvals: {ask: [store]}\n")
    attempt = [["http", "a.sub.test"], ["http", "api.test"]]
    with Box(name_only, asks % 0) as box:
        said, doc = box.tries(*attempt)
        is_not_in("hello", said[0])
        is_in("hello from api.test", said[1])
        is_in("not_approved", reasons(doc))
    for word, want in (("approve", True), ("deny", False)):
        with Box(name_only, asks % "30s") as box:
            args = json.dumps(attempt * 2)
            args = args.replace('"http", ', '"patient", ')
            with box.start("--json", "--cpus", "2", "--", "/usr/bin/python3",
                           "-c", PROBE, args) as p:
                asked = wait_for_question(box)
                is_in("a.sub.test", json.dumps(asked))
                desk(box, "approvals", word, asked[0]["id"])
                doc = json.loads(p.communicate(timeout=60)[0])
            said = json.loads(doc["stdout"])
            assert ("hello from a.sub.test" in said[0]) == want, doc
            assert ("hello from a.sub.test" in said[2]) == want, doc
            is_in("hello from api.test", said[3])
            assert ("not_approved" in reasons(doc)) != want, doc


class Err(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * 2048)]


class Living:
    """A run by the library, whose network can be replaced."""

    def __init__(self, box, command):
        os.environ.update(CORDON_LIBEXEC=BUILD,
                          CORDON_STATE_DIR=box.dir + "/state")
        lib = self.lib = ctypes.CDLL(BUILD + "/libcordon.so")
        for name in ("cordon_open", "cordon_spec_new", "cordon_start",
                     "cordon_job_end", "cordon_result_json"):
            getattr(lib, name).restype = ctypes.c_void_p
        self.err = Err()
        at = ctypes.byref(self.err)
        self.cordon = ctypes.c_void_p(lib.cordon_open(at))
        spec = ctypes.c_void_p(lib.cordon_spec_new())
        text = json.dumps({"policy": box.flags[1], "cpus": 2}).encode()
        lib.cordon_spec_set_json(spec, text, ctypes.c_size_t(len(text)), at)
        argv = (ctypes.c_char_p * (len(command) + 1))(
            *[c.encode() for c in command], None)
        lib.cordon_spec_command(spec, argv, at)
        self.job = ctypes.c_void_p(lib.cordon_start(
            self.cordon, spec, None, None, at))
        assert self.job.value, self.err.text

    def step(self, seconds):
        """True while it runs."""
        fd = self.lib.cordon_job_fd(self.job)
        end = time.time() + seconds
        while time.time() < end:
            select.select([fd], [], [], max(0, end - time.time()))
            if self.lib.cordon_job_step(self.job) != 0:
                return False
        return True

    def replace(self, path):
        return self.lib.cordon_job_set_network(self.job, path.encode(),
                                               ctypes.byref(self.err))

    def end(self):
        result = ctypes.c_void_p(self.lib.cordon_job_end(self.job))
        doc = ctypes.string_at(self.lib.cordon_result_json(result))
        self.lib.cordon_close(self.cordon)
        return json.loads(doc)


@case("N36 another policy while connections are open")
def n36():
    code = PROBE.replace("\nmain()\n", "") + """
import time
def talk(host):
    s = socket.create_connection((host, 8026), TIME)
    s.settimeout(20)
    s.recv(100)
    return s
kept, cut = talk('odd.test'), talk('api.test')
try:
    print(cut.recv(100).decode() or 'cut')
except OSError as e:
    print('cut')
kept.sendall(b'still here')
print(kept.recv(100).decode())
for host in ('odd.test', 'api.test', 'a.sub.test'):
    try:
        talk(host)
        print('new', host)
    except OSError as e:
        print('! refused', host)
"""
    rule = "{host: %s, ports: [8026]}"
    with Box([rule % "odd.test", rule % "api.test"]) as box, \
            Box([rule % "odd.test", rule % "a.sub.test"]) as after:
        before = noted()
        run = Living(box, ["/usr/bin/python3", "-c", code])
        end = time.time() + 20
        while noted() < before + 2 and time.time() < end:
            run.step(0.05)
        assert run.replace(after.flags[1]) == 0, run.err.text
        assert run.replace("/nowhere/cordon.yaml") < 0
        while run.step(5):
            pass
        doc = run.end()
        lines = doc["stdout"].splitlines()
        assert len(lines) == 5, doc
        assert lines[:2] == ["cut", "you said still here"], doc
        assert lines[2:] == ["new odd.test", "! refused api.test",
                             "new a.sub.test"], doc
        is_in("replaced", reasons(doc))

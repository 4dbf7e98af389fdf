#!/usr/bin/env python3
"""The own face: its routes against api/openapi.yaml, and what they do.

Drives own-server: the real manager, whose boxes are plain processes. Says TAP.
"""
import base64
import http.client
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUILD = pathlib.Path(os.environ["CORDON_BUILD"])
TOP = pathlib.Path(__file__).resolve().parents[2]
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Server:
    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen([BUILD / "tests" / "own-server", path],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(server.path)


def ask(method, path, body=None):
    c = Connection("x")
    c.request(method, path, None if body is None else json.dumps(body))
    answer = c.getresponse()
    text = answer.read()
    c.close()
    kind = answer.headers.get("Content-Type")
    return answer.status, json.loads(text) if kind == "application/json" and text.count(b"\n") < 2 else text


def good(method, path, body=None):
    status, document = ask(method, path, body)
    assert status < 300, (status, document)
    return document


def error(method, path, body=None):
    status, document = ask(method, path, body)
    assert set(document["error"]) == {"code", "message"} and document["error"]["message"], document
    return status, document["error"]["code"]


def upgrade(path, body=None):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(server.path)
    text = json.dumps(body or {}).encode()
    s.sendall(f"POST {path} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
              f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
    head = s.recv(65536).decode()
    assert head.startswith("HTTP/1.1 101 ") and head.endswith("\r\n\r\n"), head
    return s, {n.lower(): v for n, v in (line.split(": ", 1) for line in head.split("\r\n")[1:-2])}


def frames(data):
    out = {1: b"", 2: b""}
    while data:
        stream, size = struct.unpack(">BxxxI", data[:8])
        out[stream] += data[8:8 + size]
        data = data[8 + size:]
    return out


def read_all(s):
    parts = []
    while part := s.recv(65536):
        parts.append(part)
    return b"".join(parts)


def sh(script):
    return ["sh", "-c", script]


@test
def every_route_is_in_the_api_and_the_reverse():
    source = (TOP / "src/face/own/own.c").read_text()
    table = source[source.index("routes[] = {"):source.index("};", source.index("routes[] = {"))]
    have = {(m, re.sub(r"\{\*?\}", "{}", p)) for m, p in re.findall(r'\{ "([A-Z]+)", "(/[^"]*)"', table)}
    want = set()
    path = None
    for line in (TOP / "api/openapi.yaml").read_text().splitlines():
        if match := re.match(r"  (/v1\S*):$", line):
            path = re.sub(r"\{\w+\}", "{}", match[1])
        elif line.startswith("components:"):
            break
        elif path and (match := re.match(r"    (get|put|post|delete|head):$", line)):
            want.add((match[1].upper(), path))
    assert len(have) > 30 and have == want, (have - want, want - have)


@test
def every_error_of_the_manager_has_a_row_and_is_in_the_api():
    names = re.findall(r"^\t(MGR_\w+) =", (TOP / "src/front/manager.h").read_text(), re.M)
    source = (TOP / "src/face/own/own.c").read_text()
    api = (TOP / "api/openapi.yaml").read_text()
    for name in names:
        row = re.search(r"\{ %s, (\d+), \"(\w+)\" \}" % name, source)
        assert row, name
        line = re.search(r"\| %s \| (.*) \|" % row[1], api)
        assert line and row[2] in line[1].replace(" ", "").split(","), row[0]


@test
def members_of_bodies_are_those_of_the_api():
    api = (TOP / "api/openapi.yaml").read_text()
    for file, schema in (("boxes.c", "BoxWant"), ("execs.c", "ExecWant"), ("run.c", "RunWant")):
        source = (TOP / "src/face/own" / file).read_text()
        have = set(re.findall(r'\{ "(\w+)", BODY_', source))
        part = re.search(r"\n    %s:\n(.*?)(\n    \w+:|\Z)" % schema, api, re.S)[1]
        want = set(re.findall(r"^        (\w+):", part, re.M))
        assert have == want, (file, have ^ want)


@test
def version_and_info():
    assert good("GET", "/v1/version")["api"] == "1"
    assert good("GET", "/v1/info")["boxes"]["running"] == 0


@test
def the_life_of_a_box():
    box = good("POST", "/v1/boxes", {"name": "life", "command": sh("echo out; echo err >&2; exec sleep 60")})
    assert box["state"] == "created" and box["exit_code"] is None and len(box["id"]) == 64
    assert good("GET", "/v1/boxes")["boxes"] == []
    good("POST", "/v1/boxes/life/start")
    assert error("POST", "/v1/boxes/life/start") == (409, "is_running")
    assert [b["name"] for b in good("GET", "/v1/boxes")["boxes"]] == ["life"]
    assert good("GET", "/v1/boxes/" + box["id"][:12])["state"] == "running"
    assert error("DELETE", "/v1/boxes/life") == (409, "is_running")
    good("POST", "/v1/boxes/life/rename?name=other")
    assert error("GET", "/v1/boxes/life") == (404, "not_found")
    end = time.monotonic() + 10
    while len(frames(good("GET", "/v1/boxes/other/logs"))[2]) < 4 and time.monotonic() < end:
        time.sleep(0.05)
    waited = []
    waiter = threading.Thread(target=lambda: waited.append(good("POST", "/v1/boxes/other/wait")))
    waiter.start()
    good("POST", "/v1/boxes/other/stop?timeout=5")
    waiter.join(10)
    assert waited == [{"exit_code": 143, "cause": "signal", "error": None, "removed": False}], waited
    box = good("GET", "/v1/boxes/other")
    assert box["state"] == "exited" and box["exit_code"] == 143 and box["finished_ms"] >= box["started_ms"]
    assert frames(good("GET", "/v1/boxes/other/logs")) == {1: b"out\n", 2: b"err\n"}
    assert frames(good("GET", "/v1/boxes/other/logs?stderr=0")) == {1: b"out\n", 2: b""}
    assert re.match(rb"\d{4}-\d\d-\d\dT.*Z err\n",
                    frames(good("GET", "/v1/boxes/other/logs?timestamps=1&tail=1"))[2])
    good("DELETE", "/v1/boxes/other")
    assert good("GET", "/v1/boxes?all=1")["boxes"] == []


@test
def bad_bodies_and_queries_are_refused():
    assert error("POST", "/v1/boxes", {"nonsense": 1}) == (400, "invalid")
    assert error("POST", "/v1/boxes", {"command": "ls"}) == (400, "invalid")
    assert error("POST", "/v1/boxes", {"command": ["ls", 1]}) == (400, "invalid")
    assert error("POST", "/v1/boxes", {"settings": []}) == (400, "invalid")
    assert error("POST", "/v1/boxes", {"tty": "yes"}) == (400, "invalid")
    assert error("POST", "/v1/boxes", {"idle_timeout": "soon"}) == (400, "invalid")
    assert error("POST", "/v1/boxes", {"command": ["x"], "stop_signal": "NOPE"}) == (400, "invalid")
    assert error("POST", "/v1/boxes", []) == (400, "invalid")
    assert error("POST", "/v1/run", {}) == (400, "invalid")
    assert error("POST", "/v1/run", {"command": ["a"], "code": []}) == (400, "invalid")
    assert error("POST", "/v1/run", {"command": ["a"], "env": ["A=1"]}) == (400, "invalid")
    assert error("POST", "/v1/run", {"command": ["a"], "id": "x"}) == (400, "invalid")
    assert error("POST", "/v1/run", {"command": ["a"], "stdin_b64": "*"}) == (400, "invalid")
    assert error("POST", "/v1/boxes/none/kill") == (404, "not_found")
    assert error("GET", "/v1/execs/none") == (404, "not_found")
    assert error("GET", "/v1/nowhere") == (404, "not_found")
    assert error("POST", "/v1/version") == (404, "not_found")
    assert error("POST", "/v1/boxes/none/wait?condition=never") == (400, "invalid")
    c = Connection("x")
    c.request("POST", "/v1/boxes", '{"name": "aa", "name": "bb"}')
    assert c.getresponse().status == 400
    good("POST", "/v1/boxes", {"name": "q2"})
    assert error("POST", "/v1/boxes/q2/kill?signal=NOPE") == (400, "invalid")
    assert error("POST", "/v1/boxes/q2/stop?timeout=soon") == (400, "invalid")
    assert error("POST", "/v1/boxes/q2/execs", {}) == (400, "invalid")
    assert error("POST", "/v1/boxes", {"name": "q2"}) == (409, "name_taken")
    assert error("POST", "/v1/boxes/q2/execs", {"command": ["ls"]}) == (409, "not_running")
    good("DELETE", "/v1/boxes/q2?force=1")


@test
def programs_in_a_box():
    good("POST", "/v1/boxes", {"name": "e2", "start": True})
    s, head = upgrade("/v1/boxes/e2/execs", {"command": sh("cat; echo done >&2; exit 4"), "stdin": True})
    assert head["content-type"] == "application/vnd.docker.multiplexed-stream"
    s.sendall(b"to the program")
    s.shutdown(socket.SHUT_WR)
    assert frames(read_all(s)) == {1: b"to the program", 2: b"done\n"}
    e = good("GET", "/v1/execs/" + head["cordon-exec"])
    assert e["exit_code"] == 4 and not e["running"] and e["stdout_bytes"] == 14 and e["cause"] == "exited"
    assert error("POST", "/v1/boxes/e2/execs", {"command": ["/no/such"]}) == (400, "no_program")
    # detached, joined later, killed
    e = good("POST", "/v1/boxes/e2/execs", {"command": sh("echo early; exec sleep 60"), "detach": True})
    assert e["running"] and e["exit_code"] is None
    s, _ = upgrade(f"/v1/execs/{e['id']}/attach")
    data = s.recv(1000)
    assert frames(data)[1] == b"early\n", data
    good("POST", f"/v1/execs/{e['id']}/kill")
    assert read_all(s) == b""
    assert good("GET", "/v1/execs/" + e["id"])["exit_code"] == 137
    assert {x["id"] for x in good("GET", "/v1/boxes/e2/execs")["execs"]} >= {e["id"]}
    # a terminal is raw
    s, head = upgrade("/v1/boxes/e2/execs", {"command": sh("tty >/dev/null && stty size"), "tty": True,
                                            "rows": 11, "cols": 22})
    assert head["content-type"] == "application/vnd.docker.raw-stream"
    assert read_all(s) == b"11 22\r\n"
    good("DELETE", "/v1/boxes/e2?force=1")


@test
def attaching_to_a_box():
    good("POST", "/v1/boxes", {"name": "a2", "command": sh("read x; echo got $x"), "stdin": True})
    s, _ = upgrade("/v1/boxes/a2/attach?stdin=1")
    good("POST", "/v1/boxes/a2/start")
    s.sendall(b"this\n")
    assert frames(read_all(s))[1] == b"got this\n"
    assert good("POST", "/v1/boxes/a2/wait")["exit_code"] == 0
    good("DELETE", "/v1/boxes/a2")


@test
def much_output_with_a_slow_reader():
    good("POST", "/v1/boxes", {"name": "m2", "start": True})
    s, _ = upgrade("/v1/boxes/m2/execs", {"command": sh("head -c 5000000 /dev/zero; echo end >&2")})
    time.sleep(0.5)
    out = frames(read_all(s))
    assert len(out[1]) == 5000000 and out[2] == b"end\n"
    good("DELETE", "/v1/boxes/m2?force=1")


@test
def a_run_answers_with_its_document():
    r = good("POST", "/v1/run", {"command": sh("cat; echo err >&2; exit 3"), "stdin": "text"})
    assert (r["cause"], r["status"], r["exit_code"]) == ("exited", "error", 3)
    assert (r["stdout"], r["stderr"], r["stdout_bytes"], r["truncated"]) == ("text", "err\n", 4, False)
    assert r["limits"] and re.fullmatch("[0-9a-f]{32}", r["id"])
    r = good("POST", "/v1/run", {"command": ["cat"], "stdin_b64": base64.b64encode(b"\xff\0").decode()})
    assert base64.b64decode(r["stdout_b64"]) == b"\xff\0"
    r = good("POST", "/v1/run", {"command": ["/no/such"]})
    assert (r["cause"], r["exit_code"]) == ("not_found", 127)
    r = good("POST", "/v1/run", {"command": sh("kill -9 $$")})
    assert (r["cause"], r["exit_code"], r["signal"]) == ("signal", 137, 9)
    assert good("GET", "/v1/boxes?all=1")["boxes"] == []


@test
def events_of_a_run_are_lines():
    text = good("POST", "/v1/run", {"command": sh("echo a; sleep 0.1; printf '\\377'"), "events": True})
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0]["event"] == "started" and lines[-1]["event"] == "result"
    assert {"event": "output", "stream": "stdout", "text": "a\n"} in lines
    assert {"event": "output", "stream": "stdout", "b64": "/w=="} in lines
    assert lines[-1]["result"]["stdout_bytes"] == 3
    text = good("POST", "/v1/run", {"command": sh("head -c 3000000 /dev/zero"), "events": True})
    assert sum(len(json.loads(line).get("text", "")) for line in text.splitlines()) == 3000000


@test
def a_run_in_a_box_that_lives():
    good("POST", "/v1/boxes", {"name": "s2", "start": True})
    r = good("POST", "/v1/run", {"box": "s2", "command": sh("echo b")})
    assert r["stdout"] == "b\n" and r["status"] == "success"
    assert error("POST", "/v1/run", {"box": "s2", "command": ["x"], "settings": {}}) == (400, "invalid")
    start = time.monotonic()
    r = good("POST", "/v1/run", {"box": "s2", "command": ["sleep", "30"], "timeout": 0.3})
    assert (r["cause"], r["status"], r["exit_code"]) == ("timeout", "timeout", 124), r
    assert time.monotonic() - start < 5
    good("DELETE", "/v1/boxes/s2?force=1")


@test
def runs_can_be_cancelled():
    for where in ({}, {"box": "c2"}):
        good("POST", "/v1/boxes", {"name": "c2", "start": True})
        results = []
        name = os.urandom(16).hex()
        t = threading.Thread(target=lambda: results.append(
            good("POST", "/v1/run", {"id": name, "command": ["sleep", "30"]} | where)))
        t.start()
        time.sleep(0.3)
        good("DELETE", "/v1/runs/" + name)
        t.join(10)
        assert results and results[0]["cause"] == "cancelled", results
        assert error("DELETE", "/v1/runs/" + name) == (404, "not_found")
        # or by leaving
        c = Connection("x")
        marker = f"31{os.getpid()}"
        c.request("POST", "/v1/run", json.dumps({"command": ["sleep", marker]} | where))
        time.sleep(0.3)
        assert subprocess.run(["pgrep", "-f", "sleep " + marker], capture_output=True, check=False).stdout
        c.sock.shutdown(socket.SHUT_RDWR)
        c.close()
        end = time.monotonic() + 5
        while subprocess.run(["pgrep", "-f", "sleep " + marker], capture_output=True, check=False).stdout:
            assert time.monotonic() < end, "it lives on"
            time.sleep(0.05)
        good("DELETE", "/v1/boxes/c2?force=1")


@test
def what_happens_is_told():
    c = Connection("x")
    c.request("GET", "/v1/events")
    answer = c.getresponse()
    good("POST", "/v1/run", {"command": ["true"]})
    seen = [json.loads(answer.readline())["action"] for _ in range(3)]
    assert seen[0] == "create" and "start" in seen, seen
    c.close()


@test
def all_that_happened_is_told():
    since = int(time.time() * 1000)
    settings = {"label": [f"l{i}=" + "v" * 3000 for i in range(7)]}
    for _ in range(30):
        good("POST", "/v1/boxes", {"name": "ev", "settings": settings})
        good("DELETE", "/v1/boxes/ev")
    text = good("GET", f"/v1/events?since_ms={since}&follow=false")
    # Much more than waits for a client at once, and every line whole.
    assert len(text) > 1 << 20, len(text)
    events = [json.loads(line) for line in text.splitlines()]
    seen = [e["action"] for e in events if e["attributes"]["name"] == "ev"]
    assert seen == ["create", "destroy"] * 30, seen


def main():
    global server
    only = sys.argv[1:]
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        server = Server(directory + "/socket")
        chosen = [t for t in TESTS if not only or t.__name__ in only]
        for number, run in enumerate(chosen, 1):
            try:
                run()
                print(f"ok {number} - {run.__name__}", flush=True)
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                line = e.__traceback__.tb_next.tb_lineno if e.__traceback__.tb_next else 0
                print(f"not ok {number} - {run.__name__}\n# line {line}: {type(e).__name__}: {str(e)[:600]}",
                      flush=True)
        server.process.stdin.close()
        said = server.process.stdout.read()
        code = server.process.wait(20)
        n = len(chosen) + 1
        is_clean = code == 0 and said == "0 walls\n"
        print(f"{'ok' if is_clean else 'not ok'} {n} - nothing is left behind" +
              ("" if is_clean else f"\n# {code}: {said!r}"))
        print(f"1..{n}")
    return 1 if failed or not is_clean else 0


sys.exit(main())

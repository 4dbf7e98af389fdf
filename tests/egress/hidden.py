# SPDX-License-Identifier: Apache-2.0
"""Secrets: the box has a placeholder, the world gets the value, and only where
it is meant for. The value is looked for everywhere a box or a reader of the
ledger could find it."""

import base64
import json
import os
import subprocess
import time

from common import LAB, Box, case, is_in, is_not_in, reasons

VALUE = "v4lue-of-the-h0st"
# Finds the value without having it: a class of one letter is that letter.
PATTERN = VALUE.replace("4", "[4]").replace("h0", "h[0]")
ENV = {"KEY": VALUE}
CURL = "curl -sS -m 8 "


def noted(name="secrets.log"):
    try:
        return open(f"{LAB}/{name}").read()
    except FileNotFoundError:
        return ""


def noted_since(before, *words, name="secrets.log"):
    """A server writes its log after its answer: until these are in it."""
    end = time.time() + 10
    while time.time() < end:
        if all(word in noted(name)[before:] for word in words):
            break
        time.sleep(0.02)
    return noted(name)[before:]


def keyed(rules=None, more=""):
    box = Box(rules, more)
    box.env.update(ENV)
    return box


def nowhere(box, *docs):
    """Not in a result, nor in anything that Cordon keeps."""
    for doc in docs:
        is_not_in(VALUE, json.dumps(doc))
    _, text = box.records()
    is_not_in(VALUE, text)
    found = subprocess.run(["grep", "-rl", "-e", PATTERN, box.dir],
                           stdout=subprocess.PIPE).stdout.decode()
    assert found == "", found


def shell(box, script, *flags):
    return box.run(*flags, "--", "sh", "-c", script)


@case("secret: --secret NAME@HOST puts the value into a header on the way")
def by_flag():
    with keyed() as box:
        before = len(noted())
        doc = shell(box, "echo $KEY; " + CURL +
                    '-H "Authorization: Bearer $KEY" https://api.test/auth; ' +
                    CURL + '-H "X-Key: $KEY" https://api.test/auth; ' +
                    CURL + '-u "user:$KEY" https://api.test/auth',
                    "--secret", "KEY@api.test")
        is_in("noted\nnoted\nnoted", doc["stdout"])
        is_in("cordon_secret_", doc["stdout"])
        basic = base64.b64encode(f"user:{VALUE}".encode()).decode()
        wants = f"a=Bearer {VALUE}", f"k={VALUE}", f"a=Basic {basic}"
        seen = noted_since(before, *wants)
        for want in wants:
            is_in(want, seen)
        nowhere(box, doc)


@case("secret: header with a format, query and body of a policy")
def by_policy():
    rule = "{host: api.test, ports: [443], secret: {env: KEY, %s}}"
    tries = [("header: Authorization, format: 'Bearer {}'",
              CURL + "https://api.test/auth", "secrets.log",
              f"a=Bearer {VALUE}"),
             ("header: Authorization, format: 'Bearer {}'",
              CURL + '-H "Authorization: $KEY" https://api.test/auth',
              "secrets.log", f"a=Bearer {VALUE}"),
             ("query: key", CURL + '"https://api.test/auth?key=$KEY"',
              "secrets.log", f"q={VALUE}"),
             ("body: token", CURL + '-d "a=1&token=$KEY" https://api.test/echo',
              "echo.log", f"a=1&token={VALUE}"),
             ("body: token", CURL + "-H 'Content-Type: application/json' -d "
              '"{\\"token\\": \\"$KEY\\"}" https://api.test/echo',
              "echo.log", f'"{VALUE}"')]
    for how, script, log, want in tries:
        with keyed([rule % how]) as box:
            before = len(noted(log))
            doc = shell(box, script)
            is_in(want, noted_since(before, want, name=log))
            nowhere(box, doc)


@case("secret: it goes to its host alone")
def only_there():
    rules = ["{host: api.test, ports: [443], secret: {env: KEY, header: '*'}}",
             "{host: a.sub.test, ports: [80]}",
             "{host: b.sub.test, ports: [443], methods: [GET]}"]
    with keyed(rules) as box:
        before = len(noted("other.log"))
        doc = shell(box, ";".join(
            CURL + f'{where} || echo failed' for where in (
                '-H "X-Key: $KEY" http://a.sub.test/other',
                '-H "X-Key: $KEY" https://b.sub.test/other',
                '"http://a.sub.test/other?key=$KEY"',
                '-u "u:$KEY" http://a.sub.test/other',
                '-H "X-Key: ok" http://a.sub.test/other')))
        seen = noted_since(before, "k=ok", name="other.log")
        is_not_in(VALUE, seen)
        is_not_in("cordon_secret_", seen)
        is_in("k=ok", seen)
        is_in("placeholder", reasons(doc))
        assert noted("other.log")[before:].count("GET") == 1, seen
        nowhere(box, doc)
        _, text = box.records()
        is_in("placeholder", text)


@case("secret: the value is nowhere in the box")
def not_inside():
    code = """
import os, re, sys, glob
want = re.compile(sys.argv[1].encode())
found = []
def look(where, data):
    if want.search(data):
        found.append(where)
for path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):
    try:
        look(path, open(path, 'rb').read())
    except OSError:
        pass
import urllib.request
key = os.environ['KEY']
r = urllib.request.Request('https://api.test/auth', headers={'X-Key': key})
print(urllib.request.urlopen(r).read().decode().strip())
with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb') as mem:
    for line in maps:
        span, mode = line.split()[:2]
        if 'r' not in mode or '[v' in line:
            continue
        a, b = (int(x, 16) for x in span.split('-'))
        try:
            mem.seek(a)
            look(line, mem.read(b - a))
        except OSError:
            pass
for top in ('/etc', '/workspace', '/tmp', '/dev/shm', '/run'):
    for d, _, files in os.walk(top):
        for f in files:
            try:
                look(d + '/' + f, open(d + '/' + f, 'rb').read(1 << 20))
            except OSError:
                pass
print('found', found)
"""
    with keyed() as box:
        before = len(noted())
        doc = box.run("--secret", "KEY@api.test", "--cpus", "2", "--",
                      "/usr/bin/python3", "-c", code, PATTERN)
        is_in("noted\nfound []", doc["stdout"])
        is_in(f"k={VALUE}", noted_since(before, f"k={VALUE}"))
        nowhere(box, doc)
    # The control: what has it is found.
    with keyed() as box:
        doc = box.run("--secret", "KEY@api.test", "-e", "LEAK=" + VALUE, "--",
                      "/usr/bin/python3", "-c", code, PATTERN)
        is_in("environ", doc["stdout"])


# A client in a few lines: what it is told goes to its output.
LIVE = """
import base64, os, socket, ssl, sys
def connect(path, *more):
    s = ssl.create_default_context().wrap_socket(
        socket.create_connection(('api.test', 443), 8), server_hostname='api.test')
    key = base64.b64encode(os.urandom(16)).decode()
    s.sendall('\\r\\n'.join((
        f'GET {path} HTTP/1.1', 'Host: api.test', 'Upgrade: websocket',
        'Connection: Upgrade', 'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: ' + key, *more, '', '')).encode())
    f = s.makefile('rwb')
    print(f.readline().decode().strip())
    while f.readline() not in (b'\\r\\n', b''):
        pass
    return f
def say(f, text):
    mask = os.urandom(4)
    f.write(b'\\x81' + bytes([0x80 | len(text)]) + mask +
            bytes(b ^ mask[n % 4] for n, b in enumerate(text.encode())))
    f.flush()
def hear(f):
    try:
        head = f.read(2)
        print(f.read(head[1]).decode() if len(head) == 2 else 'the end')
    except OSError as e:
        print('the end')
key = os.environ['KEY']
f = connect('/live/a', 'Authorization: Bearer ' + key)
hear(f)
say(f, 'hello'); hear(f)
say(f, 'token ' + key); hear(f)
connect('/live/no')
connect('/live/get')
f = connect('/live/b', 'Authorization: Bearer ' + key)
hear(f)
f.write(b'GET /smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n'); f.flush()
hear(f)
"""


@case("secret: a WebSocket has it in its request, and never in a frame")
def live():
    rules = ["{host: api.test, methods: [WEBSOCKET], paths: [/live/a, /live/b], "
             "secret: {env: KEY, header: Authorization}}",
             "{host: api.test, methods: [GET], paths: [/live/get]}"]
    with keyed(rules) as box:
        before = len(noted("live.log"))
        doc = box.run("--cpus", "2", "--", "/usr/bin/python3", "-c", LIVE)
        stars = "Bearer " + "*" * len(VALUE)
        assert doc["stdout"].splitlines() == [
            "HTTP/1.1 101 Switching Protocols", stars, "hello", "the end",
            "HTTP/1.1 403 Forbidden", "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 101 Switching Protocols", stars, "the end"], doc
        seen = noted_since(before, f"hello\nBearer {VALUE}\n",
                           name="live.log")
        assert seen.splitlines() == [
            "Bearer " + VALUE, "hello", "Bearer " + VALUE], seen
        is_not_in("smuggled", open(LAB + "/requests.log").read())
        for why in ("placeholder", "path", "method", "http_ambiguous"):
            is_in(why, reasons(doc))
        nowhere(box, doc)
        records, _ = box.records()
        seen = [(r.get("path"), r.get("answer"), r.get("decision"))
                for r in records if r.get("path") == "/live/a"]
        is_in(("/live/a", 101, "allow"), seen)


@case("secret: git over HTTPS")
def git():
    with keyed() as box:
        before = len(noted("git-auth.log"))
        doc = shell(box, "cd /workspace && git clone -q "
                    "https://user:$KEY@api.test/git/r.git && cat r/readme && "
                    "grep -r url r/.git/config",
                    "--secret", "KEY@api.test", "--cpus", "2")
        is_in("git works", doc["stdout"])
        is_in("cordon_secret_", doc["stdout"])
        basic = base64.b64encode(f"user:{VALUE}".encode()).decode()
        is_in(basic, noted_since(before, basic, name="git-auth.log"))
        nowhere(box, doc)


@case("secret: one that is not there, and one that the policy does not send")
def refused():
    with Box() as box:
        with box.start("--secret", "NO_SUCH@api.test", "--", "true") as p:
            is_in("NO_SUCH", p.communicate()[1].decode())
        assert p.returncode == 125, p.returncode
    with keyed(["{host: api.test}"]) as box:
        doc = box.run("--secret", "KEY@api.test", "--", "true")
        assert doc["cause"] == "denied", doc
    with Box(["{host: api.test, secret: {env: NO_SUCH, header: X}}"]) as box:
        doc = box.run("--", "sh", "-c", "echo ${NO_SUCH-unset}")
        is_in("unset", doc["stdout"])
        is_in("NO_SUCH", " ".join(doc["warnings"]))

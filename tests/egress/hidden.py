# SPDX-License-Identifier: Apache-2.0
"""Secrets: the box has a placeholder, the world gets the value, and only where
it is meant for. The value is looked for everywhere a box or a reader of the
ledger could find it."""

import base64
import json
import os
import subprocess

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


def keyed(rules=None):
    box = Box(rules)
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
        seen = noted()[before:]
        is_in(f"a=Bearer {VALUE}", seen)
        is_in(f"k={VALUE}", seen)
        basic = base64.b64encode(f"user:{VALUE}".encode()).decode()
        is_in(f"a=Basic {basic}", seen)
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
            is_in(want, noted(log)[before:])
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
        seen = noted("other.log")[before:]
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
        is_in(f"k={VALUE}", noted()[before:])
        nowhere(box, doc)
    # The control: what has it is found.
    with keyed() as box:
        doc = box.run("--secret", "KEY@api.test", "-e", "LEAK=" + VALUE, "--",
                      "/usr/bin/python3", "-c", code, PATTERN)
        is_in("environ", doc["stdout"])


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
        is_in(basic, noted("git-auth.log")[before:])
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

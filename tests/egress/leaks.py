# SPDX-License-Identifier: Apache-2.0
"""Secrets: other ways by which a value, or its placeholder, could get to where
it is not meant for."""

import base64
import contextlib
import shlex
import socket
import threading
import time

from common import LAB, Box, case, is_in, is_not_in, reasons
from hidden import CURL, VALUE, keyed, noted, noted_since, nowhere, shell
from lab import API


@contextlib.contextmanager
def answering(data):
    """A server of this machine that says `data` to whoever asks, and then
    nothing more; its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def one(s):
        with s:
            s.recv(65536)
            s.sendall(data)
            over.wait(20)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                s, _ = listener.accept()
                threading.Thread(target=one, args=(s,), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        listener.close()


@case("secret: no host learns from its own answers what another's value is")
def no_oracle():
    code = """
import socket, sys
s = socket.create_connection(('b.sub.test', 80), 5)
s.sendall(b'GET / HTTP/1.1\\r\\nHost: b.sub.test\\r\\n\\r\\n')
s.settimeout(2)
have = b''
try:
    while more := s.recv(4096):
        have += more
except TimeoutError:
    pass
print(have.decode().split('!')[-1])
"""
    # A server that guesses right must not see its bytes wait for more.
    guess = VALUE[:9]
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n!" +
                   guess.encode()) as port:
        rules = ["{host: api.test, secret: {env: KEY, header: '*'}}",
                 "{host: b.sub.test, ports: [80]}"]
        with keyed(rules, '  resolve: {"b.sub.test:80": "127.0.0.1:%d"}\n' %
                   port) as box:
            doc = box.run("--cpus", "2", "--", "/usr/bin/python3", "-c", code)
            assert doc["stdout"] == guess + "\n", doc


@case("secret: a port that --allow-host adds gets none")
def not_in_clear():
    send = CURL + '-o /dev/null -w "%{http_code} " -H "X-Key: $KEY" '
    orders = (["--secret", "KEY@api.test", "--allow-host", "api.test:80"],
              ["--allow-host", "api.test:80,443", "--secret", "KEY@api.test"])
    for flags in orders:
        with keyed() as box:
            before = len(noted("clear.log"))
            doc = shell(box, send + "http://api.test/clear; " + send +
                        "https://api.test/clear; " + CURL +
                        "-H 'X-Key: none' http://api.test/clear", *flags)
            is_in("403 200 noted", doc["stdout"])
            seen = noted_since(before, "k=" + VALUE, "k=none",
                               name="clear.log")
            assert seen.count("k=" + VALUE) == 1, seen
            is_not_in("cordon_secret_", seen)
            is_in("placeholder", reasons(doc))
            records, _ = box.records()
            assert any(r.get("port") == 80 and r.get("decision") == "deny"
                       for r in records), records
            nowhere(box, doc)
    # Who says port 80 of a secret means it.
    with keyed() as box:
        before = len(noted())
        doc = shell(box, send + "http://api.test/auth",
                    "--secret", "KEY@api.test:80")
        is_in("200", doc["stdout"])
        is_in("k=" + VALUE, noted_since(before, "k=" + VALUE))
        nowhere(box, doc)


@case("secret: one that is sent back as it was written is covered")
def written():
    value = 'tok"en\\with~til/de+plus'
    tries = [("-H 'Content-Type: application/json' -d "
              '"{\\"token\\": \\"$KEY\\"}"', 'tok\\"en\\\\with~til/de+plus'),
             ('-d "token=$KEY"', "tok%22en%5Cwith%7Etil%2Fde%2Bplus")]
    for how, want in tries:
        with Box(["{host: api.test, secret: {env: KEY, body: token}}"]) as box:
            box.env["KEY"] = value
            before = len(noted("echo.log"))
            doc = shell(box, CURL + how + " https://api.test/echo")
            is_in(want, noted_since(before, want, name="echo.log"))
            is_in("token", doc["stdout"])
            is_in("*" * len(want), doc["stdout"])
            is_not_in("til", doc["stdout"])


@case("secret: placeholders in clear, to an address and outside of HTTP")
def relayed():
    code = """
import os, socket
for to in (('odd.test', 8024), ('%s', 8024)):
    for text in (os.environ['KEY'], 'plain'):
        try:
            s = socket.create_connection(to, 5)
            s.sendall(b'\\1\\2' + text.encode() + b'\\n')
            s.shutdown(1)
            print('raw', s.recv(100).decode().strip())
        except OSError as e:
            print('raw ended')
""" % API
    rules = ["{host: api.test, secret: {env: KEY, header: '*'}}",
             "{host: odd.test, ports: [8024]}",
             "{host: %s, ports: [80, 8024]}" % API]
    get = CURL + '-w " %{http_code}\\n" -o /dev/null '
    with keyed(rules) as box:
        before = len(noted("relayed.log"))
        doc = shell(box, ";".join((
            "/usr/bin/python3 -c " + shlex.quote(code),
            get + '-H "X-Key: $KEY" -H "Host: any.test" '
            f"http://{API}/relayed",
            get + f'-u "u:$KEY" http://{API}/relayed',
            get + "-H 'X-Key: none' -H 'Host: any.test' "
            f"http://{API}/relayed")))
        is_in("raw ended\nraw 8 bytes\nraw ended\nraw 8 bytes\n"
              " 403\n 403\n 200\n", doc["stdout"])
        seen = noted_since(before, "k=none", name="relayed.log")
        is_not_in("cordon_secret_", seen)
        is_in("placeholder", reasons(doc))
        records, _ = box.records()
        denied = {(r["host"], r["port"]) for r in records
                  if r["kind"] == "connection" and r["decision"] == "deny"}
        assert denied == {("odd.test", 8024), (API, 8024), (API, 80)}, denied
        nowhere(box, doc)


@case("secret: two in one header")
def two():
    rule = "{host: api.test, secret: {env: %s, header: '*'}}"
    with keyed([rule % "KEY", rule % "NAME"]) as box:
        box.env["NAME"] = "name-of-the-user"
        before = len(noted())
        doc = shell(box, CURL + '-u "$NAME:$KEY" https://api.test/auth; ' +
                    CURL + '-H "X-Key: a=$KEY; b=$NAME" https://api.test/auth')
        basic = base64.b64encode(f"name-of-the-user:{VALUE}".encode()).decode()
        wants = "a=Basic " + basic, f"k=a={VALUE}; b=name-of-the-user"
        seen = noted_since(before, *wants)
        for want in wants:
            is_in(want, seen)
        is_not_in("cordon_secret_", seen)
        nowhere(box, doc)


@case("secret: the longest and the shortest value")
def lengths():
    with Box() as box:
        box.env["KEY"] = "x" * 4097
        with box.start("--secret", "KEY@api.test", "--", "true") as p:
            is_in("longer than 4096 bytes", p.communicate()[1].decode())
        assert p.returncode == 125, p.returncode
        box.env["KEY"] = "y" * 4096
        before = len(noted())
        doc = shell(box, CURL + '-H "X-Key: $KEY" https://api.test/auth',
                    "--secret", "KEY@api.test")
        is_in("noted", doc["stdout"])
        is_in("k=" + "y" * 4096, noted_since(before, "k=" + "y" * 4096))
        is_not_in("covered", " ".join(doc["warnings"]))
        box.env["KEY"] = "short"
        doc = box.run("--secret", "KEY@api.test", "--", "true")
        is_in("'KEY' is shorter than 8 bytes", " ".join(doc["warnings"]))


@case("N21 a tunnel's query is on no record")
def tunnel():
    code = """
import socket, ssl
s = ssl.create_default_context().wrap_socket(
    socket.create_connection(('api.test', 443), 5), server_hostname='api.test')
s.sendall(b'CONNECT api.test:443?q=t0pq HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n')
print(s.recv(4096).decode())
"""
    with Box(["{host: api.test, methods: [GET]}"]) as box:
        doc = box.run("--", "/usr/bin/python3", "-c", code)
        is_in("HTTP/1.1 4", doc["stdout"])
        records, text = box.records()
        is_in("api.test:443", [r.get("path") for r in records])
        is_not_in("t0pq", text)


@case("N21 a first request with a long head")
def long_head():
    with Box(["{host: api.test, ports: [80]}"]) as box:
        # nginx takes four lines of 8 KiB; the gate's limit is 64 KiB.
        big = " ".join(f"-H 'X-{n}: {'x' * 7000}'" for n in range(4))
        doc = shell(box, CURL + big + " http://api.test/long; " + CURL + big +
                    " -H 'Host: evil.test' http://api.test/long")
        is_in("hello from api.test/long", doc["stdout"])
        assert reasons(doc) == {"http_host"}, doc["denials"]


@case("N33 headers that ask for another method or path")
def override():
    rules = ["{host: api.test, methods: [GET], paths: ['/v1/**']}"]
    names = ("X-HTTP-Method-Override: DELETE", "x-http-method: DELETE",
             "X-Method-Override: DELETE", "X-Original-URL: /admin",
             "x-rewrite-url: /admin")
    with Box(rules) as box:
        before = len(open(LAB + "/requests.log").read())
        doc = shell(box, "; ".join(
            CURL + '-o /dev/null -w "%{http_code} " ' + more +
            " https://api.test/v1/over" for more in
            (*(f"-H '{n}'" for n in names), "-H 'X-Fine: 1'")) + "; " +
            CURL + '-o /dev/null -w "%{http_code} " '
            "https://api.test/v1/%c0%ae%c0%ae/over")
        assert doc["stdout"] == "403 " * 5 + "200 403 ", doc
        assert reasons(doc) == {"override", "path"}, doc["denials"]
        time.sleep(0.2)
        seen = open(LAB + "/requests.log").read()[before:]
        assert seen.count("/over") == 1, seen

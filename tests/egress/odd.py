#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers of the laboratory that no ordinary program is.

    odd.py world DIR ADDRESS      what is out there
    odd.py machine DIR ADDRESS    what a box must not reach: it says VICTIM

In the world: port 8022 speaks first, as ssh does, 8026 too and notes it; 8023 sends until nobody
listens, and 8027 for one case alone; 8024 answers a line with its length after the other side has closed
its half; 8025 never says anything; 5354 (DNS) says a public address the first
time and then 127.0.0.1; 5355 never answers; 5356 answers SERVFAIL; 8418 is git
and an echo of requests over HTTP, and of a WebSocket's frames. UDP is answered
at 443.
"""

import base64
import hashlib
import http.server
import os
import socket
import socketserver
import subprocess
import sys
import threading

KIND, DIR, ADDRESS = sys.argv[1:4]
# RFC 6455, 1.3
WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512


class Server6(Server):
    address_family = socket.AF_INET6


def serve(handle, port, host=ADDRESS):
    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            try:
                handle(self.request)
            except OSError:
                pass
    server = (Server6 if ":" in host else Server)((host, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def first(s):
    s.sendall(b"ODD-2.0 ready\r\n")
    s.sendall(b"you said " + s.recv(100))


def noted(s):
    with open(DIR + "/noted.log", "a") as f:
        f.write("one\n")
    first(s)


def endless(s):
    while True:
        s.sendall(b"x" * 65536)


def count(s):
    n = 0
    while data := s.recv(65536):
        n += len(data)
    s.sendall(b"%d bytes\n" % n)


def silent(s):
    while s.recv(65536):
        pass


def victim(s):
    s.sendall(b"HTTP/1.0 200 OK\r\n\r\nVICTIM\n")
    s.shutdown(socket.SHUT_WR)
    while s.recv(65536):
        pass


def dns(port, answer):
    """Answers each question with what `answer(number)` says."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", port))

    def loop():
        n = 0
        while True:
            q, peer = sock.recvfrom(4096)
            end = q.index(b"\0", 12) + 5
            is_a = q[end - 4:end - 2] == b"\0\1"
            said = answer(n) if is_a else "none"
            n += is_a
            if said is None:
                continue
            head = q[:2] + (b"\x81\x80" if said != "fail" else b"\x81\x82")
            a = b""
            if said not in ("none", "fail"):
                a = (b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" +
                     socket.inet_aton(said))
            sock.sendto(head + b"\0\1" + (b"\0\1" if a else b"\0\0") +
                        b"\0\0\0\0" + q[12:end] + a, peer)
    threading.Thread(target=loop, daemon=True).start()


class Web(http.server.BaseHTTPRequestHandler):
    """/echo says what came, /live/ is a WebSocket that does the same;
    anything else is git's own program."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, data, status=200, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def git(self):
        path, _, query = self.path.partition("?")
        env = {"GIT_PROJECT_ROOT": DIR + "/git", "GIT_HTTP_EXPORT_ALL": "1",
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
               "GIT_CONFIG_VALUE_0": "*",
               "PATH_INFO": path, "QUERY_STRING": query,
               "REQUEST_METHOD": self.command, "PATH": os.environ["PATH"],
               "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        with open(DIR + "/git-auth.log", "a") as f:
            f.write(f"{self.headers.get('Authorization', '-')}\n")
        if not self.headers.get("Authorization"):
            self.answer(b"", 401, [("WWW-Authenticate", 'Basic realm="lab"')])
            return
        out = subprocess.run(["git", "http-backend"], input=self.body(),
                             env=env, stdout=subprocess.PIPE).stdout
        head, _, data = out.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = [int(v.split()[0]) for k, v in fields if k == "Status"]
        self.answer(data, status[0] if status else 200,
                    [f for f in fields if f[0] != "Status"])

    def live(self):
        """Frames are short here. The request's Authorization comes first."""
        key = self.headers["Sec-WebSocket-Key"] + WEBSOCKET
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest())
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                            ("Sec-WebSocket-Accept", accept.decode())):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        auth = self.headers.get("Authorization", "none").encode()
        with open(DIR + "/live.log", "ab") as f:
            f.write(auth + b"\n")
        self.wfile.write(b"\x81" + bytes([len(auth)]) + auth)
        while len(head := self.rfile.read(6)) == 6:
            size = head[1] & 127
            data = bytes(b ^ head[2 + n % 4] for n, b in
                         enumerate(self.rfile.read(size)))
            with open(DIR + "/live.log", "ab") as f:
                f.write(data + b"\n")
            self.wfile.write(head[:1] + bytes([size]) + data)

    def do_GET(self):
        if self.path.startswith("/live/"):
            self.live()
            return
        if not self.path.startswith("/echo"):
            self.git()
            return
        data = f"{self.command} {self.path}\n".encode() + self.body()
        with open(DIR + "/echo.log", "ab") as f:
            f.write(data + b"\n")
        self.answer(data)

    do_POST = do_GET


def datagrams(port):
    """Says OTHER to each, so that whoever hears it has been out."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((ADDRESS, port))

    def answer():
        while True:
            _, who = sock.recvfrom(2048)
            sock.sendto(b"OTHER", who)
    threading.Thread(target=answer, daemon=True).start()


def web(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()


if KIND == "world":
    for name, port in ((endless, 8023), (count, 8024), (silent, 8025),
                       (noted, 8026), (endless, 8027)):
        serve(name, port)
    dns(5354, lambda n: ADDRESS if n == 0 else "127.0.0.1")
    dns(5355, lambda n: None)
    dns(5356, lambda n: "fail")
    web(8418)
    datagrams(443)
    serve(first, 8022)
else:
    for host in (ADDRESS, "::1", "127.0.0.1"):
        for port in (8025, 8080, 80):
            serve(victim, port, host)
threading.Event().wait()

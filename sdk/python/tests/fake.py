# SPDX-License-Identifier: Apache-2.0
"""A daemon that does as it is told: it notes each request and answers from a
list of routes. For what a real one would not do on demand: odd chunks, broken
connections, an answer that waits."""
import json
import os
import socket
import tempfile
import threading


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers = method, target, headers
        self.path, _, self.query = target.partition("?")
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


def answer(status, document=None, **headers):
    """A whole answer with a length."""
    content = b"" if document is None else json.dumps(document).encode()
    return head(status, **{"Content-Type": "application/json",
                           "Content-Length": len(content), **headers}) + content


def head(status, **headers):
    lines = [f"HTTP/1.1 {status} X"]
    lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]
    return "\r\n".join(lines + ["", ""]).encode()


def frame(stream, data):
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def result(**over):
    return {"id": "0" * 32, "status": "success", "cause": "exited",
            "exit_code": 0, "signal": None, "stdout": "", "stderr": "",
            "output": "", "limits": {}, "files": [], "denials": [],
            "not_enforced": [], "warnings": [], **over}


class Fake:
    """`routes` maps "METHOD /path" to bytes, or to a function of the request
    and the connection; "METHOD *" is for the rest."""

    def __init__(self, routes=None):
        self.routes = routes or {}
        self.seen = []
        self.dir = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.dir.name, "sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.socket)
        self.listener.listen(50)
        self.threads = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,),
                             daemon=True).start()

    def serve(self, conn):
        with conn, conn.makefile("rb") as file:
            line = file.readline().decode().split()
            if len(line) < 2:
                return
            headers = {}
            while (text := file.readline().decode().strip()):
                name, _, value = text.partition(":")
                headers[name.lower()] = value.strip()
            body = file.read(int(headers.get("content-length", 0)))
            request = Request(line[0], line[1], headers, body)
            request.file = file
            self.seen.append(request)
            route = self.routes.get(f"{request.method} {request.path}") or \
                self.routes.get(f"{request.method} *")
            if route is None:
                route = answer(404, {"error": {"code": "not_found",
                                               "message": "no such thing"}})
            if callable(route):
                route = route(request, conn)
            try:
                if route:
                    conn.sendall(route)
            except OSError:
                pass

    def become(self, uid):
        """Another user listens, as far as the kernel knows; needs root."""
        os.seteuid(uid)
        try:
            self.listener.listen(50)
        finally:
            os.seteuid(0)

    def find(self, method, path):
        return [r for r in self.seen
                if r.method == method and r.path == path]

    def close(self):
        # A thread in accept() would go on with the next one of this number.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.dir.cleanup()

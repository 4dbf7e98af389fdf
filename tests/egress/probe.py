# SPDX-License-Identifier: Apache-2.0
"""Runs inside a box: tries what it is told, and says what came of each.

Its argument is a JSON list of attempts, each [KIND, ARGUMENT...]; it prints a
list of texts: what was read, or "! " and the error. Nothing takes longer than
a few seconds."""

import json
import os
import socket
import ssl
import subprocess
import sys
import threading

TIME = 4


def read_all(s, most=4096):
    data = b""
    while len(data) < most and (more := s.recv(65536)):
        data += more
    return data[:most].decode("latin-1")


def tcp(host, port, send="", half=False):
    with socket.create_connection((host, port), TIME) as s:
        s.sendall(send.encode("latin-1"))
        if half:
            s.shutdown(socket.SHUT_WR)
        return read_all(s)


def head(host, port, size):
    """A request whose head has no end."""
    return tcp(host, port, f"GET / HTTP/1.1\r\nHost: {host}\r\nX: " +
               "a" * size)


def http(host, path="/", port=80, name=None):
    return tcp(host, port, f"GET {path} HTTP/1.1\r\nHost: {name or host}\r\n"
               "Connection: close\r\n\r\n")


def patient(host):
    """The same, for as long as a person takes to answer."""
    global TIME
    TIME = 20
    return http(host)


def tls(host, name, path="/", port=443, asks=None):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, port), TIME) as raw:
        with context.wrap_socket(raw, server_hostname=name) as s:
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: {asks or name or host}"
                      "\r\nConnection: close\r\n\r\n".encode())
            return read_all(s)


def names(host):
    return " ".join(sorted({a[4][0] for a in socket.getaddrinfo(
        host, 80, proto=socket.IPPROTO_TCP)}))


def query(server, name, kind=1, over="udp"):
    """A question as bytes, label by label; the answer's code and count."""
    labels = b"".join(bytes([len(x)]) + x for x in
                      (p.encode("latin-1") for p in name))
    q = b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + labels + b"\0" + bytes(
        [0, kind, 0, 1])
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    how = socket.SOCK_DGRAM if over == "udp" else socket.SOCK_STREAM
    with socket.socket(family, how) as s:
        s.settimeout(TIME)
        s.connect((server, 53))
        s.sendall(q if over == "udp" else len(q).to_bytes(2, "big") + q)
        a = s.recv(4096)
        a = a if over == "udp" else a[2:]
        return f"code {a[3] & 15} answers {int.from_bytes(a[6:8], 'big')}"


def udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.5)
        s.connect((host, port))
        s.send(b"x")
        return s.recv(100).decode("latin-1")


def sock(family, kind, proto=0):
    socket.socket(family, kind, proto).close()
    return "made"


def unix(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0" + path[1:] if path.startswith("@") else path)
        return "connected"


def run(*args):
    env = dict(os.environ, **json.loads(args[0])) if args[0] else None
    out = subprocess.run(args[1:], stdout=subprocess.PIPE, env=env,
                         stderr=subprocess.STDOUT, timeout=20)
    return f"{out.returncode} " + out.stdout[:4096].decode("latin-1")


def relay(host, port):
    """A listener of the box itself that passes on: no way around."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pass_on():
        inside, _ = listener.accept()
        try:
            with inside, socket.create_connection((host, port), TIME) as out:
                out.sendall(inside.recv(4096))
                while more := out.recv(4096):
                    inside.sendall(more)
        except OSError as e:
            inside.sendall(f"! {e}".encode())
    threading.Thread(target=pass_on, daemon=True).start()
    return tcp("127.0.0.1", listener.getsockname()[1],
               f"GET / HTTP/1.0\r\nHost: {host}\r\n\r\n")


def is_alive(s):
    s.setblocking(False)
    try:
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def many(host, port, n):
    """Opens n connections at once; how many are still open after a word."""
    socks, alive = [], 0
    for _ in range(n):
        try:
            socks.append(socket.create_connection((host, port), TIME))
        except OSError:
            pass
    for s in socks:
        s.settimeout(0.3)
        try:
            s.sendall(b"hi there\n")
        except OSError:
            continue
    import time
    # A gate that refuses many takes its time: until nothing changes.
    end, since, before = time.time() + 15, time.time(), -1
    while time.time() < min(end, since + 1):
        alive = sum(map(is_alive, socks))
        if alive != before:
            before, since = alive, time.time()
        time.sleep(0.1)
    return str(alive)


def pull(host, port, most):
    """How many bytes come before the end."""
    n = 0
    with socket.create_connection((host, port), TIME) as s:
        s.settimeout(TIME)
        s.sendall(b"go\n")
        try:
            while n < most and (more := s.recv(65536)):
                n += len(more)
        except ConnectionError:
            pass
    return str(n)


def main():
    answers = []
    for kind, *args in json.loads(sys.argv[1]):
        try:
            answers.append(globals()[kind](*args))
        except Exception as e:
            answers.append(f"! {type(e).__name__}: {e}")
    print(json.dumps(answers))


main()

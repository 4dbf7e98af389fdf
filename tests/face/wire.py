#!/usr/bin/env python3
"""HTTP for faces, as clients see it on the wire. Drives face-server; says TAP."""
import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

BUILD = pathlib.Path(os.environ["CORDON_BUILD"])
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Server:
    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen(
            [BUILD / "tests" / "face-server", path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        self.process.stdin.close()
        said = self.process.stdout.read()
        return self.process.wait(10), said

    def memory(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").open():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")


def connect(timeout=10):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    s.connect(server.path)
    return s


def read_all(s):
    parts = []
    while part := s.recv(65536):
        parts.append(part)
    return b"".join(parts)


def read_head(f):
    status = f.readline().decode().rstrip("\r\n")
    headers = {}
    while (line := f.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().rstrip("\r\n").partition(": ")
        assert name.lower() not in headers, f"twice: {name}"
        headers[name.lower()] = value
    return status, headers


def read_answer(f, is_head=False):
    status, headers = read_head(f)
    if is_head or " 204 " in status or " 304 " in status:
        body = b""
    elif headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(f.readline(), 16):
            body += f.read(size)
            assert f.read(2) == b"\r\n"
        assert f.readline() == b"\r\n"
    elif "content-length" in headers:
        body = f.read(int(headers["content-length"]))
    else:
        body = f.read()
    return status, headers, body


def ask(text, s=None):
    s = s or connect()
    s.sendall(text if isinstance(text, bytes) else text.encode())
    return read_answer(s.makefile("rb"))


def get(path, s=None):
    return ask(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n", s)


def state():
    return [int(n) for n in get("/state")[2].split()]


def soon(check, seconds=5):
    end = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < end, "did not come"
        time.sleep(0.01)
    return value


@test
def a_request_and_its_answer():
    status, headers, body = get("/echo/abc?x=1+2%2B&n=a&n=b%20c&e")
    assert status == "HTTP/1.1 200 OK", status
    assert headers["content-type"] == "application/json"
    assert headers["api-version"] == "1.51" and headers["x-more"] == "yes"
    assert "x-bad" not in headers and "x-split" not in headers
    assert "connection" not in headers
    assert body.decode() == (f"GET /echo/abc [abc] x=1 2+ uid={os.getuid()} "
                             "h=- body=0: n=a n=b c"), body


@test
def paths_are_decoded_once_after_the_split():
    assert b"[a/b%2F]" in get("/echo/a%2Fb%252F")[2]
    assert b"[docker.io/library/python:3-slim]" in get(
        "/images/docker.io/library/python:3-slim/json")[2]
    assert b"[json/json]" in get("/images/json/json/json")[2]
    assert b"[x]" in get("/v1/many/x")[2]
    assert b"[http]" in get("http://host/echo/http")[2]
    for bad in ("/echo/a%", "/echo/a%2", "/echo/a%zz", "/echo/a%00", "/echo/a?x=%g0"):
        status, _, body = get(bad)
        assert " 400 " in status and "decoded" in json.loads(body)["message"], bad
    for none in ("/", "/echo", "/echo/", "/echo/a/b", "/echo//", "/many/", "/many/a//b",
                 "/images/json", "/images//json", "/big/"):
        status, _, body = get(none)
        assert " 404 " in status and json.loads(body)["message"], none
    assert get("/v9/echo/a")[2] == b"too new"


@test
def head_has_the_headers_of_get_and_no_body():
    s = connect()
    f = s.makefile("rb")
    s.sendall(b"HEAD /echo/a HTTP/1.1\r\n\r\n")
    status, headers, _ = read_answer(f, True)
    assert "200" in status and int(headers["content-length"]) > 10
    s.sendall(b"HEAD /ticks HTTP/1.1\r\n\r\n")
    status, headers, _ = read_answer(f, True)
    assert headers["transfer-encoding"] == "chunked"
    assert b"GET" in get("/echo/b", s)[2]


@test
def no_content_has_no_body_and_no_length():
    status, headers, _ = ask("POST /nothing HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
    assert status == "HTTP/1.1 204 No Content"
    assert "content-length" not in headers and "content-type" not in headers
    # A body that nobody wants is read all the same.
    s = connect()
    ask("POST /nothing HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", s)
    assert b"[z]" in get("/echo/z", s)[2]


@test
def one_connection_serves_many_requests():
    s = connect()
    f = s.makefile("rb")
    for i in range(200):
        s.sendall(b"GET /echo/%d HTTP/1.1\r\n\r\n" % i)
        assert b"[%d]" % i in read_answer(f)[2]
    s.sendall(b"GET /echo/x HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert read_answer(f)[1]["connection"] == "close"
    assert f.read() == b""


@test
def pipelined_requests_are_answered_in_order():
    s = connect()
    parts = [b"GET /late?ms=30 HTTP/1.1\r\n\r\n"]
    parts += [b"POST /echo/%d HTTP/1.1\r\nContent-Length: 2\r\n\r\n%02d" % (i, i) for i in range(50)]
    parts += [b"GET /ticks?n=1 HTTP/1.1\r\n\r\n", b"GET /echo/last HTTP/1.1\r\n\r\n"]
    s.sendall(b"".join(parts))
    f = s.makefile("rb")
    assert read_answer(f)[2] == b"late"
    for i in range(50):
        assert b"[%d] " % i in (body := read_answer(f)[2]) and body.endswith(b"body=2:%02d" % i)
    assert read_answer(f)[2] == b'{"left":1}\r\n'
    assert b"[last]" in read_answer(f)[2]


@test
def bodies_come_in_pieces_chunked_or_with_a_length():
    s = connect()
    f = s.makefile("rb")
    for byte in b"POST /echo/a HTTP/1.1\r\nX-Test: one byte\r\nContent-Length: 5\r\n\r\nhello":
        s.sendall(bytes([byte]))
    assert b"h=one byte body=5:hello" in read_answer(f)[2]
    s.sendall(b"POST /echo/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    time.sleep(0.05)
    s.sendall(b"A;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n")
    assert b"body=13:abc0123456789" in read_answer(f)[2]
    assert b"[z]" in get("/echo/z", s)[2]


@test
def expect_gets_a_continue_before_the_body():
    for path, answer in (("/echo/a", b"body=5:hello"), ("/eat", b"5 532")):
        s = connect()
        f = s.makefile("rb")
        method = "PUT" if path == "/eat" else "POST"
        s.sendall(f"{method} {path} HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n".encode())
        assert f.readline() == b"HTTP/1.1 100 Continue\r\n" and f.readline() == b"\r\n"
        s.sendall(b"hello")
        assert answer in read_answer(f)[2]
    s = connect()
    s.sendall(b"PUT /eat?refuse=1 HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert "404" in read_answer(s.makefile("rb"))[0]


@test
def a_body_that_is_streamed():
    data = os.urandom(3 << 20)
    want = f"{len(data)} {sum(data) & 0xffffffff}".encode()
    assert ask(b"PUT /eat HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(data) + data)[2] == want
    small = data[:150000]
    want = f"{len(small)} {sum(small) & 0xffffffff}".encode()
    chunks = b"".join(b"%x\r\n" % 1000 + small[i:i + 1000] + b"\r\n" for i in range(0, 150000, 1000))
    assert ask(b"PUT /eat?slow=1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")[2] == want
    assert ask("PUT /eat HTTP/1.1\r\nContent-Length: 0\r\n\r\n")[2] == b"0 0"
    assert ask("PUT /eat HTTP/1.1\r\n\r\n")[2] == b"0 0"


@test
def a_body_that_is_refused_early_is_still_answered():
    s = connect()
    s.sendall(b"PUT /eat?refuse=1 HTTP/1.1\r\nContent-Length: 20000000\r\n\r\n")
    sent = threading.Thread(target=lambda: s.sendall(bytes(20000000)))
    sent.start()
    status, headers, body = read_answer(s.makefile("rb"))
    sent.join(10)
    assert " 404 " in status and body == b"no such place" and headers["connection"] == "close"
    assert not sent.is_alive()


@test
def a_body_above_4_mib_is_too_large():
    status, headers, body = ask(b"POST /echo/a HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (5 << 20))
    assert " 413 " in status and "large" in json.loads(body)["message"], status
    assert headers["connection"] == "close"
    s = connect()
    data = b"10000\r\n" + bytes(65536) + b"\r\n"

    def send():
        try:
            s.sendall(b"POST /echo/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + data * 80 + b"0\r\n\r\n")
        except OSError:
            pass
    sender = threading.Thread(target=send)
    sender.start()
    assert " 413 " in read_answer(s.makefile("rb"))[0]
    sender.join(10)
    assert b"body=4194304:" in ask(b"POST /echo/a HTTP/1.1\r\nContent-Length: 4194304\r\n\r\n" + bytes(4 << 20))[2]


@test
def headers_above_64_kib_are_refused():
    status, _, body = ask(b"GET /echo/a HTTP/1.1\r\nX-Test: " + b"a" * 66000 + b"\r\n\r\n")
    assert " 431 " in status and json.loads(body)["message"]
    assert b"body=0" in ask(b"GET /echo/a HTTP/1.1\r\nX-Test: " + b"a" * 60000 + b"\r\n\r\n")[2]
    assert " 431 " in ask(b"GET /" + b"a" * 66000 + b" HTTP/1.1\r\n\r\n")[0]
    assert " 431 " in ask(b"GET /echo/a HTTP/1.1\r\n" + b"A: b\r\n" * 300 + b"\r\n")[0]


@test
def what_is_not_http_is_a_400():
    for bad in (b"hello\r\n\r\n", b"GET /echo/a HTTP/9.9\r\n\r\n", b"GET\r\n\r\n", b"\0\0\0\0",
                b"GET /echo/a HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                b"POST /echo/a HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
                b"POST /echo/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
        assert " 400 " in ask(bad)[0], bad


@test
def http_1_0_gets_an_end_and_no_chunks():
    s = connect()
    s.sendall(b"GET /ticks?n=2 HTTP/1.0\r\n\r\n")
    whole = read_all(s)
    assert b"chunked" not in whole and whole.endswith(b'\r\n\r\n{"left":2}\r\n{"left":1}\r\n')


@test
def a_stream_is_chunked_and_its_headers_come_first():
    s = connect()
    s.sendall(b"GET /ticks?n=3 HTTP/1.1\r\n\r\n")
    f = s.makefile("rb")
    status, headers = read_head(f)
    assert headers["transfer-encoding"] == "chunked" and headers["content-type"] == "application/json"
    assert "content-length" not in headers
    assert [f.readline() for _ in range(3)] == [b"c\r\n", b'{"left":3}\r\n', b"\r\n"]
    f.read(2 * 17)
    assert f.readline() == b"0\r\n" and f.readline() == b"\r\n"
    assert b"[z]" in get("/echo/z", s)[2]


@test
def a_raw_stream_is_neither_chunked_nor_counted():
    s = connect()
    s.sendall(b"GET /ticks?n=2&raw HTTP/1.1\r\n\r\n")
    f = s.makefile("rb")
    status, headers = read_head(f)
    assert status == "HTTP/1.1 200 OK"
    assert "transfer-encoding" not in headers and "content-length" not in headers
    assert f.read() == b'{"left":2}\r\n{"left":1}\r\n'


@test
def a_client_that_leaves_is_noticed():
    before = state()
    waiting = [connect() for _ in range(3)]
    waiting[0].sendall(b"GET /late?ms=60000 HTTP/1.1\r\n\r\n")
    waiting[1].sendall(b"GET /ticks?n=100000 HTTP/1.1\r\n\r\n")
    waiting[2].sendall(b"GET /late?ms=60000 HTTP/1.1\r\n\r\nGET /late?ms=60000 HTTP/1.1\r\n\r\n")
    soon(lambda: state()[1] == before[1] + 3)
    waiting[0].shutdown(socket.SHUT_WR)
    waiting[1].close()
    waiting[2].close()
    start = time.monotonic()
    soon(lambda: state()[2] == before[2] + 3)
    assert time.monotonic() - start < 0.5
    assert waiting[0].recv(10) == b""


@test
def a_client_that_stops_reading_costs_a_bounded_memory():
    before = server.memory()
    slow = [connect() for _ in range(8)]
    for s in slow:
        s.sendall(b"GET /flood HTTP/1.1\r\n\r\n")
    hose = connect()
    hose.sendall(b"POST /hose HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
    time.sleep(2.3)
    assert server.memory() - before < 9 * 1.2e6, server.memory() - before
    assert b"[z]" in get("/echo/z")[2]
    # One that reads on gets more.
    f = slow[0].makefile("rb")
    read_head(f)
    for _ in range(100):
        f.read(int(f.readline(), 16) + 2)
    f = hose.makefile("rb")
    read_head(f)
    assert f.read(20 << 20) == bytes(20 << 20)
    for s in slow + [hose]:
        s.close()


@test
def a_large_answer_reaches_a_slow_reader():
    s = connect()
    s.sendall(b"GET /big HTTP/1.1\r\n\r\n")
    f = s.makefile("rb")
    _, headers = read_head(f)
    time.sleep(0.1)
    assert f.read(int(headers["content-length"])) == b"b" * (8 << 20)
    # and one that leaves in the middle disturbs nobody
    s = connect()
    s.sendall(b"GET /big HTTP/1.1\r\n\r\n")
    s.recv(10)
    s.close()
    assert b"[z]" in get("/echo/z")[2]


@test
def slow_headers_run_out_of_time_and_disturb_nobody():
    silent, slow = connect(15), connect(15)
    start = time.monotonic()
    slow.sendall(b"GET /echo/a HT")
    worst = 0
    while time.monotonic() - start < 9.5:
        then = time.monotonic()
        assert b"[z]" in get("/echo/z")[2]
        worst = max(worst, time.monotonic() - then)
        time.sleep(0.2)
        slow.sendall(b"T"[:0])
    assert " 408 " in read_answer(slow.makefile("rb"))[0]
    assert 9 < time.monotonic() - start < 12
    assert worst < 0.5, worst
    assert b"[z]" in get("/echo/z", silent)[2]  # one that asked for nothing may wait


@test
def three_hundred_connections():
    time.sleep(0.1)
    many = [connect() for _ in range(300)]
    good = bad = 0
    for s in many:
        try:
            status, _, body = get("/echo/a", s)
        except (OSError, ValueError):
            status = "lost"
        if " 200 " in status:
            good += 1
        elif " 503 " in status:
            bad += 1
            assert "connections" in json.loads(body)["message"]
    for s in many:
        s.close()
    assert 250 <= good <= 256 and good + bad == 300, (good, bad)
    soon(lambda: " 200 " in get("/echo/a")[0])


UPGRADE = b"Connection: Upgrade\r\nUpgrade: tcp\r\n"


@test
def an_upgrade_switches_and_takes_early_input():
    s = connect()
    s.sendall(b"POST /pipe HTTP/1.1\r\n" + UPGRADE + b"Content-Length: 2\r\n\r\n{}early")
    first = s.recv(65536)
    assert first.endswith(b"\r\n\r\n"), first
    status, headers = read_head(io.BytesIO(first))
    assert status == "HTTP/1.1 101 UPGRADED"
    assert headers["connection"] == "Upgrade" and headers["upgrade"] == "tcp"
    assert headers["content-type"] == "application/vnd.docker.raw-stream"
    assert headers["api-version"] == "1.51"
    assert s.recv(100) == b"early"
    s.sendall(b"more")
    assert s.recv(100) == b"more"
    s.shutdown(socket.SHUT_WR)
    assert read_all(s) == b"<end>"


@test
def without_an_upgrade_it_is_a_stream_both_ways():
    s = connect()
    s.sendall(b"POST /pipe HTTP/1.1\r\nContent-Length: 0\r\n\r\nabc")
    status, headers = read_head(io.BytesIO(s.recv(65536)))
    assert status == "HTTP/1.1 200 OK"
    assert not {"transfer-encoding", "content-length", "upgrade"} & set(headers)
    assert s.recv(10) == b"abc"
    s.shutdown(socket.SHUT_WR)
    assert read_all(s) == b"<end>"
    # h2c is not what we upgrade to
    s = connect()
    s.sendall(b"GET /echo/a HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
    f = s.makefile("rb")
    assert b"[a]" in read_answer(f)[2]
    s.sendall(b"GET /echo/b HTTP/1.1\r\n\r\n")
    assert b"[b]" in read_answer(f)[2]


@test
def a_pipe_carries_much_both_ways_with_back_pressure():
    s = connect()
    s.sendall(b"POST /pipe HTTP/1.1\r\n" + UPGRADE + b"\r\n")
    s.recv(65536)
    data = os.urandom(1 << 20) * 20
    before = server.memory()

    def send():
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=send)
    sender.start()
    time.sleep(0.3)
    assert server.memory() - before < 2 << 20
    assert read_all(s) == data + b"<end>"
    sender.join()


@test
def a_pipe_that_is_closed_is_noticed():
    before = state()
    a, b = connect(), connect()
    for s in (a, b):
        s.sendall(b"POST /hose HTTP/1.1\r\n" + UPGRADE + b"\r\n")
        s.recv(65536)
    soon(lambda: state()[1] == before[1] + 2)
    a.shutdown(socket.SHUT_WR)  # not a disconnect
    time.sleep(0.1)
    assert state()[2] == before[2]
    a.close()
    b.close()
    soon(lambda: state()[2] == before[2] + 2)


def short(path=b"/short"):
    """Reads as docker-py does: headers through a buffer, then the socket."""
    s = connect()
    s.sendall(b"POST " + path + b" HTTP/1.1\r\n" + UPGRADE + b"Content-Length: 2\r\n\r\n{}")
    f = s.makefile("rb")
    status, _ = read_head(f)
    assert " 101 " in status
    data = read_all(s)
    s.close()
    return data


@test
def no_short_output_is_lost_behind_a_buffer():
    start = time.monotonic()
    lost = []

    def many():
        for _ in range(1000):
            data = short()
            if data != b"\x01\0\0\0\0\0\0\x01x":
                lost.append(data)
    threads = [threading.Thread(target=many) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not lost, (len(lost), lost[:3])
    print(f"# 4000 upgrades in {time.monotonic() - start:.2f} s")
    for _ in range(100):
        assert short(b"/short?silent=1") == b""


@test
def no_recv_brings_bytes_behind_the_headers():
    for path in (b"/short", b"/hose"):
        s = connect()
        s.sendall(b"POST " + path + b" HTTP/1.1\r\n" + UPGRADE + b"\r\n")
        time.sleep(0.1)  # all of it is there
        assert s.recv(65536).endswith(b"\r\n\r\n")
        assert len(s.recv(65536)) >= 9


@test
def input_that_nobody_reads_is_no_error_at_the_end():
    for _ in range(50):
        s = connect()
        s.sendall(b"POST /short HTTP/1.1\r\n" + UPGRADE + b"\r\n" + b"unread" * 10000)
        assert read_all(s).endswith(b"x")


@test
def curl_agrees():
    def curl(*args):
        return subprocess.run(["curl", "-sS", "--max-time", "10", "--unix-socket", server.path, *args],
                              capture_output=True, text=True, check=True).stdout
    assert "[a]" in curl("http://x/echo/a")
    assert curl("-T", __file__, "http://x/eat").split()[0] == str(os.path.getsize(__file__))
    assert "200 OK" in curl("-I", "http://x/echo/a")
    assert curl("-w", "%{http_code}", "-o", "/dev/null", "-X", "POST", "http://x/nothing") == "204"
    assert len(curl("http://x/ticks?n=5").splitlines()) == 5
    big = "x" * (5 << 20)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(big)
        file.flush()
        assert curl("-w", "%{http_code}", "-o", "/dev/null", "-H", "Expect:", "--data-binary",
                    "@" + file.name, "http://x/echo/a") == "413"
        assert curl("-w", "%{http_code}", "-o", "/dev/null", "--data-binary",
                    "@" + file.name, "http://x/echo/a") == "413"


@test
def everything_that_was_given_is_let_go():
    hanging = connect()
    hanging.sendall(b"GET /late?ms=60000 HTTP/1.1\r\n\r\n")
    pipe = connect()
    pipe.sendall(b"POST /pipe HTTP/1.1\r\n" + UPGRADE + b"\r\n")
    pipe.recv(65536)
    given, gone = state()[1:]
    code, said = server.end()
    assert code == 0, (code, said)
    assert said.split()[0] == said.split()[1], said


def main():
    global server
    only = sys.argv[1:]
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        server = Server(directory + "/socket")
        chosen = [t for t in TESTS if not only or t.__name__ in only or t is TESTS[-1]]
        for number, run in enumerate(chosen, 1):
            try:
                run()
                print(f"ok {number} - {run.__name__}", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                line = error.__traceback__.tb_next.tb_lineno if error.__traceback__.tb_next else 0
                print(f"not ok {number} - {run.__name__}\n# line {line}: {type(error).__name__}: "
                      f"{str(error)[:500]}", flush=True)
        print(f"1..{len(chosen)}")
        if server.process.poll() is None:
            server.process.kill()
    return 1 if failed else 0


sys.exit(main())

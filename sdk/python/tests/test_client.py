# SPDX-License-Identifier: Apache-2.0
"""The clients against a fake daemon: what they send, what they make of the
answer, however it comes."""
import asyncio
import os
import sys
import time
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cordon
from fake import Fake, answer, frame, head, result

BOX = {"id": "b" * 64, "name": "one", "state": "running"}
EXEC = {"id": "e" * 64, "box": BOX["id"], "running": False, "exit_code": 3}


def chunked(*parts):
    data = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts)
    return head(200, Transfer_Encoding="chunked",
                Content_Type="application/json") + data + b"0\r\n\r\n"


class Listener(unittest.TestCase):
    """Who listens where the socket is found, not named."""

    def tell(self, fake, **named):
        cordon.Client(**named).version()

        async def ask():
            await cordon.AsyncClient(**named).version()
        asyncio.run(ask())

    def setUp(self):
        self.fake = Fake({"GET /v1/version": answer(200, {"version": "1"})})
        self.addCleanup(self.fake.close)
        os.symlink("sock", self.fake.dir.name + "/cordon.sock")
        place = {"CORDON_RUNTIME_DIR": self.fake.dir.name}
        patch = unittest.mock.patch.dict(os.environ, place)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("CORDON_SOCKET", None)

    def test_own(self):
        """found: this user's own is spoken to"""
        self.tell(self.fake)
        self.assertEqual(len(self.fake.seen), 2)

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_other(self):
        """found: another user's hears nothing; named, it is meant"""
        self.fake.become(61500)
        for client in (cordon.Client(), cordon.AsyncClient()):
            with self.assertRaisesRegex(
                    cordon.Unreachable, "user 61500 listens .*nothing was"):
                value = client.version()
                if asyncio.iscoroutine(value):
                    asyncio.run(value)
        time.sleep(0.1)
        self.assertEqual(self.fake.seen, [])
        self.tell(self.fake, socket=self.fake.socket)
        os.environ["CORDON_SOCKET"] = self.fake.socket
        self.tell(self.fake)
        self.assertEqual(len(self.fake.seen), 4)


class Both(unittest.TestCase):
    """Each test runs with the synchronous and with the asynchronous client."""

    def each(self, routes, use):
        """`use(fake, client, get)`: get() waits for what a method gave."""
        for kind in ("sync", "async"):
            with self.subTest(kind):
                fake = Fake(routes)
                try:
                    if kind == "sync":
                        client = cordon.Client(fake.socket)
                        use(fake, client, lambda value: value)
                    else:
                        loop = asyncio.new_event_loop()
                        try:
                            client = cordon.AsyncClient(fake.socket)
                            use(fake, client, loop.run_until_complete)
                        finally:
                            loop.close()
                finally:
                    fake.close()

    def test_run(self):
        """run: what is sent, and the document as a value"""
        doc = result(id="1" * 32, stdout="hi\n", memory_used_mb=3.5,
                     files=[{"path": "a", "size": 2}], new_field=1,
                     denials=[{"layer": "net", "what": "x:1"}])

        def use(fake, client, get):
            have = get(client.run(["echo", "hi"], memory="64m", timeout=5,
                                  env={"A": "b"}, user=None))
            self.assertEqual(fake.seen[0].json, {
                "command": ["echo", "hi"],
                "settings": {"memory": "64m", "timeout": 5,
                             "env": {"A": "b"}}})
            self.assertTrue(have.ok)
            self.assertEqual((have.stdout, have.memory_used_mb), ("hi\n", 3.5))
            self.assertEqual(have.files[0].path, "a")
            self.assertEqual(have.denials[0].layer, "net")
            self.assertEqual(have.raw["new_field"], 1)
        self.each({"POST /v1/run": answer(200, doc)}, use)

    def test_never_begins(self):
        """an answer that says "continue" for ever is none"""
        def go_on(request, conn):
            try:
                for _ in range(1000):
                    conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
            except OSError:
                return None
            return answer(200, {"version": "1"})

        def use(fake, client, get):
            with self.assertRaisesRegex(cordon.Unreachable, "head is too"):
                get(client.version())
        self.each({"GET *": go_on}, use)

    def test_code(self):
        """run: code, with a language and a file name; stdin as bytes"""
        def use(fake, client, get):
            get(client.run(code="print(1)", stdin=b"\xff"))
            get(client.run(code=[cordon.Code("x", "sh", "a.sh")], stdin="t"))
            self.assertEqual(fake.seen[0].json, {
                "code": [{"language": "python", "code": "print(1)"}],
                "stdin_b64": "/w=="})
            self.assertEqual(fake.seen[1].json, {
                "code": [{"language": "sh", "code": "x", "filename": "a.sh"}],
                "stdin": "t"})
        self.each({"POST /v1/run": answer(200, result())}, use)

    def test_wrong_calls(self):
        """run: neither or both, or a string for a command, is an error here"""
        def use(fake, client, get):
            for more in ({}, {"command": ["a"], "code": "b"},
                         {"command": "echo hi"}):
                with self.assertRaises(TypeError):
                    get(client.run(**more))
            self.assertEqual(fake.seen, [])
        self.each({}, use)

    def test_bytes(self):
        """output that is no text"""
        doc = result(stdout="\ufffd", stdout_b64="/w==", stderr="e")

        def use(fake, client, get):
            have = get(client.run(["x"]))
            self.assertEqual((have.stdout_data, have.stderr_data),
                             (b"\xff", b"e"))
        self.each({"POST /v1/run": answer(200, doc)}, use)

    def test_events(self):
        """run: output as it comes, however the chunks are cut"""
        text = (b'{"event":"started","id":"1"}\n'
                b'{"event":"output","stream":"stdout","text":"a\\u00e9"}\n'
                b'{"event":"output","stream":"stderr","b64":"/w=="}\n'
                b'{"event":"result","result":{"status":"success",'
                b'"cause":"exited","exit_code":0}}\n')
        parts = [text[i:i + 7] for i in range(0, len(text), 7)]

        def use(fake, client, get):
            seen = []
            have = get(client.run(["x"], on_output=seen.append))
            self.assertTrue(have.ok)
            self.assertEqual(seen, [cordon.Output(1, "a\u00e9".encode()),
                                    cordon.Output(2, b"\xff")])
            self.assertTrue(fake.seen[0].json["events"])
        self.each({"POST /v1/run": chunked(*parts)}, use)

    def test_events_cut(self):
        """run: a daemon that goes in the middle is no success"""
        def use(fake, client, get):
            with self.assertRaises(cordon.Unreachable):
                get(client.run(["x"], on_output=lambda o: None))
        self.each({"POST /v1/run":
                   chunked(b'{"event":"started","id":"1"}\n')}, use)

    def test_errors(self):
        """errors have their class, code and text"""
        kinds = {400: cordon.Invalid, 403: cordon.Denied, 404: cordon.NotFound,
                 409: cordon.Conflict, 410: cordon.NotFound,
                 500: cordon.CordonError, 501: cordon.Unsupported,
                 503: cordon.Busy}
        for status, kind in kinds.items():
            def use(fake, client, get):
                with self.assertRaises(kind) as caught:
                    get(client.run(["x"]))
                self.assertEqual((caught.exception.code, caught.exception.status,
                                  str(caught.exception)),
                                 ("word", status, "why"))
            self.each({"POST /v1/run": answer(status, {
                "error": {"code": "word", "message": "why"}})}, use)

    def test_broken(self):
        """no answer, half an answer, no HTTP, no daemon"""
        for data in (b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"SSH-2.0-x\r\n\r\n",
                     head(200, Content_Length=100) + b"{", chunked(b"{")[:-9]):
            def use(fake, client, get):
                with self.assertRaises(cordon.CordonError):
                    get(client.run(["x"]))
            self.each({"POST /v1/run": data}, use)
        with self.assertRaises(cordon.Unreachable):
            cordon.Client("/nosuch/sock").version()
        with self.assertRaises(cordon.Unreachable):
            asyncio.run(cordon.AsyncClient("/nosuch/sock").version())

    def test_exec(self):
        """exec: frames that come together with the head, none lost"""
        upgraded = head(101, Connection="Upgrade", Upgrade="tcp",
                        Cordon_Exec=EXEC["id"], Content_Type=
                        "application/vnd.docker.multiplexed-stream")
        routes = {
            "POST /v1/boxes": answer(201, BOX),
            f"POST /v1/boxes/{BOX['id']}/execs":
                upgraded + frame(1, b"out") + frame(2, b"err") + frame(1, b"!"),
            f"GET /v1/execs/{EXEC['id']}": answer(200, EXEC),
            f"POST /v1/execs/{EXEC['id']}/kill": answer(204),
        }

        def use(fake, client, get):
            box = get(client.create(image="host"))
            process = get(box.exec(["x"], env={"A": "b"}, user="me"))
            self.assertEqual(get(process.communicate()), (b"out!", b"err"))
            self.assertEqual(get(process.info()).exit_code, 3)
            get(process.kill("TERM"))
            process.close()
            sent = fake.find("POST", f"/v1/boxes/{BOX['id']}/execs")[0]
            self.assertEqual(sent.headers["upgrade"], "tcp")
            self.assertEqual(sent.json, {"command": ["x"], "env": ["A=b"],
                                         "user": "me", "tty": False,
                                         "stdin": False})
            self.assertEqual(fake.seen[-1].query, "signal=TERM")
        self.each(routes, use)

    def test_exec_input(self):
        """exec: much to stdin while much comes back"""
        upgraded = head(101, Connection="Upgrade", Upgrade="tcp",
                        Cordon_Exec=EXEC["id"], Content_Type=
                        "application/vnd.docker.multiplexed-stream")

        def echo(request, conn):
            conn.sendall(upgraded)
            while data := request.file.read1(65536):
                conn.sendall(frame(1, data))
            return b""

        routes = {"POST /v1/boxes": answer(201, BOX),
                  f"POST /v1/boxes/{BOX['id']}/execs": echo}
        data = os.urandom(1 << 16) * 64

        def use(fake, client, get):
            box = get(client.create())
            process = get(box.exec(["cat"], stdin=True))
            self.assertEqual(get(process.communicate(data)), (data, b""))
            process.close()
        self.each(routes, use)

    def test_tty(self):
        """exec with a terminal: bytes as they are"""
        raw = head(200, Content_Type="application/vnd.docker.raw-stream")
        routes = {"POST /v1/boxes": answer(201, BOX),
                  f"POST /v1/boxes/{BOX['id']}/execs": raw + b"\1\0plain"}

        def use(fake, client, get):
            process = get(get(client.create()).exec(["x"], tty=True))
            self.assertEqual(get(process.communicate()),
                             (b"\1\0plain", b""))
            process.close()
        self.each(routes, use)

    def test_files(self):
        """files: written and read as tar"""
        store = {}

        def put(request, conn):
            store["tar"] = request.body
            return answer(204)

        def take(request, conn):
            return head(200, Content_Type="application/x-tar",
                        Content_Length=len(store["tar"])) + store["tar"]

        path = f"/v1/boxes/{BOX['id']}/files"
        routes = {"POST /v1/boxes": answer(201, BOX),
                  f"PUT {path}": put, f"GET {path}": take}

        def use(fake, client, get):
            box = get(client.create())
            get(box.write_file("/tmp/dir/a b", "content", 0o600))
            self.assertEqual(fake.seen[-1].query, "path=%2Ftmp%2Fdir")
            self.assertEqual(get(box.read_file("/tmp/dir/a b")), b"content")
            with self.assertRaises(ValueError):
                get(box.write_file("/tmp/", ""))
        self.each(routes, use)

    def test_life(self):
        """a box's life, by paths and queries"""
        place = f"/v1/boxes/{BOX['id']}"
        routes = {"POST /v1/boxes": answer(201, BOX),
                  f"POST {place}/wait": answer(200, {"exit_code": 7}),
                  "POST *": answer(204), "DELETE *": answer(204),
                  f"GET {place}": answer(200, BOX)}

        def use(fake, client, get):
            box = get(client.create(["sleep", "9"], name="one", memory="64m"))
            self.assertEqual(fake.seen[-1].json["settings"], {"memory": "64m"})
            self.assertEqual(fake.seen[-1].json["name"], "one")
            get(box.stop(timeout=0, signal="INT"))
            get(box.pause())
            get(box.resume())
            get(box.rename("two"))
            get(box.kill())
            self.assertEqual(get(box.wait("next-exit")), 7)
            self.assertEqual(get(box.info()).state, "running")
            get(box.remove(force=True))
            self.assertEqual(
                [f"{r.method} {r.path[len(place):]}?{r.query}"
                 for r in fake.seen[1:]],
                ["POST /stop?timeout=0&signal=INT", "POST /pause?",
                 "POST /resume?", "POST /rename?name=two",
                 "POST /kill?signal=KILL", "POST /wait?condition=next-exit",
                 "GET ?", "DELETE ?force=true"])
        self.each(routes, use)

    def test_logs(self):
        """logs: frames in chunks that do not fit them"""
        data = frame(1, b"one\n") + frame(2, b"two\n")
        text = chunked(*(data[i:i + 5] for i in range(0, len(data), 5))) \
            .replace(b"application/json",
                     b"application/vnd.docker.multiplexed-stream")
        routes = {"POST /v1/boxes": answer(201, BOX),
                  f"GET /v1/boxes/{BOX['id']}/logs": text}

        async def collect(logs):
            return [o async for o in logs]

        def use(fake, client, get):
            logs = get(client.create()).logs(tail=5)
            have = list(logs) if hasattr(logs, "__next__") \
                else get(collect(logs))
            self.assertEqual(have, [cordon.Output(1, b"one\n"),
                                    cordon.Output(2, b"two\n")])
        self.each(routes, use)

    def test_context(self):
        """a box in a `with` is removed at its end, also after an error"""
        fake = Fake({"POST /v1/boxes": answer(201, BOX),
                     "DELETE *": answer(204)})
        self.addCleanup(fake.close)
        with self.assertRaises(ZeroDivisionError):
            with cordon.Client(fake.socket).create():
                1 / 0
        self.assertEqual(fake.seen[-1].method, "DELETE")

    def test_names(self):
        """a name cannot leave its place in a path"""
        def use(fake, client, get):
            with self.assertRaises(cordon.NotFound):
                get(client.box("../info?x#y"))
            self.assertEqual(fake.seen[0].target,
                             "/v1/boxes/..%2Finfo%3Fx%23y")
        self.each({}, use)

    def test_cancel_task(self):
        """a cancelled task closes its connection"""
        closed = []

        def slow(request, conn):
            closed.append(request.file.read(1))
            return b""

        fake = Fake({"POST /v1/run": slow})
        self.addCleanup(fake.close)

        async def use():
            task = asyncio.create_task(
                cordon.AsyncClient(fake.socket).run(["sleep", "9"]))
            await asyncio.sleep(0.2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        asyncio.run(use())
        for _ in range(50):
            if closed:
                break
            time.sleep(0.05)
        self.assertEqual(closed, [b""])


if __name__ == "__main__":
    unittest.main()

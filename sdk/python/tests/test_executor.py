# SPDX-License-Identifier: Apache-2.0
"""The executor for AutoGen against a fake daemon: each argument becomes a
setting or a refusal, and the life of its box is in order."""
import asyncio
import os
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cordon import CordonError
from cordon._names import Refused, check_name, file_name
from cordon.autogen import (HAS_AUTOGEN, CodeBlock,
                            DockerCommandLineCodeExecutor)
from fake import Fake, answer, result

if HAS_AUTOGEN:
    from autogen_core import CancellationToken

BOX = {"id": "b" * 64, "name": "one", "state": "running"}


def python(code):
    return CodeBlock(code=code, language="python")


class Base(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.results = []
        self.fake = Fake({
            "POST /v1/boxes": answer(201, BOX),
            "DELETE *": answer(204), "POST *": answer(204),
            "POST /v1/run": self.run_one})
        self.addCleanup(self.fake.close)

    def run_one(self, request, conn):
        return answer(200, self.results.pop(0) if self.results else result())

    def executor(self, **more):
        return DockerCommandLineCodeExecutor(socket=self.fake.socket, **more)

    async def settings(self, **more):
        async with self.executor(**more):
            pass
        return self.fake.find("POST", "/v1/boxes")[-1].json["settings"]


class Arguments(Base):
    async def test_settings(self):
        """each limit and wall is what the daemon is asked for"""
        have = await self.settings(
            image="py:1", mem_limit="128m", cpu_period=100000, cpu_quota=20000,
            pids_limit=33, user="sandbox", tmpfs={"/tmp": "size=8m"},
            environment={"A": "b"}, security_opt=["no-new-privileges:true"],
            ulimits=["nofile=64:64"], disk_limit="5m", max_output="1k",
            hard_output="2k", kill_grace=1, extra_hosts={"a": "127.0.0.1"},
            extra_docker_args={"network": "none", "pids-limit": 128},
            docker_args=["--memory", "64m"])
        volumes = have.pop("volumes")
        self.assertEqual([v["bind"] for v in volumes.values()], ["/workspace"])
        self.assertEqual(have, {
            "image": "py:1", "mem_limit": "128m", "cpu_period": 100000,
            "cpu_quota": 20000, "pids_limit": 33, "user": "sandbox",
            "network_disabled": True, "read_only": True,
            "tmpfs": {"/tmp": "size=8m"}, "env": {"A": "b"},
            "security_opt": ["no-new-privileges:true"],
            "ulimits": ["nofile=64:64"], "disk_limit": "5m",
            "output_limit": "1k", "hard_output": "2k", "kill_grace": "1s",
            "extra_hosts": ["a:127.0.0.1"],
            "extra_docker_args": {"network": "none", "pids-limit": 128},
            "docker_args": ["--memory", "64m"]})

    async def test_defaults(self):
        """the walls are asked for though nobody said so"""
        have = await self.settings()
        have.pop("volumes")
        self.assertEqual(have, {"image": "host", "network_disabled": True,
                                "read_only": True})
        box = self.fake.find("POST", "/v1/boxes")[-1].json
        self.assertEqual(
            {k: box[k] for k in ("main", "start", "auto_remove",
                                 "kill_exec_rest", "kill_on_disconnect",
                                 "idle_timeout")},
            {"main": False, "start": True, "auto_remove": True,
             "kill_exec_rest": True, "kill_on_disconnect": True,
             "idle_timeout": 900})

    async def test_allow_hosts(self):
        """allow_hosts: these, and no network but them"""
        have = await self.settings(allow_hosts=("api.test:443",))
        have.pop("volumes")
        self.assertEqual(have, {"image": "host", "read_only": True,
                                "allow_host": ["api.test:443"]})

    async def test_read_only_false(self):
        """read_only=False is asked for, not forgotten"""
        self.assertIs((await self.settings(read_only=False))["read_only"],
                      False)

    async def test_volumes(self):
        """volumes: read-only unless said; a place for one in the work dir"""
        with tempfile.TemporaryDirectory() as top:
            work, data = Path(top) / "work", Path(top) / "data"
            data.mkdir()
            have = await self.settings(
                work_dir=work, volumes={str(data): {
                    "bind": "/workspace/host_ro", "mode": "ro"}},
                extra_volumes={top: {"bind": "/more"}})
            self.assertEqual(have["volumes"], {
                str(work): {"bind": "/workspace", "mode": "rw"},
                str(data): {"bind": "/workspace/host_ro", "mode": "ro"},
                top: {"bind": "/more", "mode": "ro"}})
            self.assertTrue((work / "host_ro").is_dir())
            for how in ({"bind": "/x", "opt": "z"}, {"mode": "ro"},
                        {"bind": "/x", "mode": "shared"}):
                with self.assertRaisesRegex(ValueError, "volumes"):
                    self.executor(volumes={top: how})

    def test_refused(self):
        """what cannot be had is refused at once, by name"""
        for more in ({"privileged": True}, {"cap_add": ["SYS_ADMIN"]},
                     {"devices": ["/dev/kvm"]}, {"device_requests": [1]},
                     {"functions": [print]}):
            with self.assertRaisesRegex(ValueError, next(iter(more))):
                self.executor(**more)
        for more in ({"extra_docker_args": {"privileged": True}},
                     {"extra_docker_args": {"--privileged": True}},
                     {"docker_args": ["--privileged"]}):
            with self.assertRaisesRegex(ValueError, "^privileged is refused"):
                self.executor(**more)
        with self.assertRaisesRegex(ValueError, "^cap_add is refused"):
            self.executor(extra_docker_args={"cap-add": ["ALL"]})
        self.executor(docker_args=["--memory", "64m"])
        with self.assertRaisesRegex(ValueError, "network_disabled"):
            self.executor(network_disabled=False)
        with self.assertRaisesRegex(TypeError, "allow_hosts"):
            self.executor(allow_hosts="api.test")
        with self.assertRaisesRegex(
                ValueError, "Timeout must be greater than or equal to 1."):
            self.executor(timeout=0)
        with self.assertRaisesRegex(ValueError, "valid Python identifier"):
            self.executor(functions_module="a-b")
        with self.assertRaisesRegex(ValueError, "remove"):
            self.executor(remove=True, auto_remove=False)
        with self.assertRaises(TypeError):
            self.executor(nosuch=1)

    def test_work_dir(self):
        """the current directory needs a word; none is known before start"""
        with self.assertRaisesRegex(RuntimeError, "must first be started"):
            self.executor().work_dir
        with self.assertRaisesRegex(RuntimeError, "must first be started"):
            self.executor(work_dir="/workspace").work_dir
        with self.assertRaisesRegex(ValueError, "allow_cwd"):
            self.executor(work_dir=".")
        with self.assertWarns(UserWarning):
            self.executor(work_dir=".", allow_cwd=True)

    async def test_remove(self):
        """remove=False stops the box and leaves it"""
        async with self.executor(remove=False):
            pass
        self.assertFalse(self.fake.find("POST", "/v1/boxes")[0].json[
            "auto_remove"])
        self.assertEqual(len(self.fake.find(
            "POST", f"/v1/boxes/{BOX['id']}/stop")), 1)
        self.assertEqual(self.fake.find("DELETE", f"/v1/boxes/{BOX['id']}"), [])

    async def test_stop_container(self):
        """stop_container=False leaves it running, with its work dir"""
        executor = self.executor(stop_container=False)
        await executor.start()
        place = executor.work_dir
        self.addCleanup(place.rmdir)
        count = len(self.fake.seen)
        await executor.stop()
        self.assertEqual(len(self.fake.seen), count)
        self.assertTrue(place.is_dir())

    @unittest.skipUnless(HAS_AUTOGEN, "autogen_core is not installed")
    def test_dump(self):
        """dump and load keep every argument"""
        with tempfile.TemporaryDirectory() as top:
            given = dict(
                image="py:1", container_name="n", timeout=9, work_dir=top,
                bind_dir="/elsewhere", auto_remove=False, stop_container=False,
                functions_module="f", init_command="true",
                extra_volumes={top: {"bind": "/x", "mode": "ro"}},
                extra_hosts={"a": "127.0.0.1"}, delete_tmp_files=True,
                mem_limit="64m", cpu_period=1000, cpu_quota=500, cpus=0.5,
                pids_limit=5, read_only=False, user="me",
                tmpfs={"/tmp": "size=1m"}, environment={"A": "b"},
                security_opt=["no-new-privileges"], ulimits=["core=0"],
                disk_limit="1m", max_output="1k", hard_output="2k",
                kill_grace=1.0, total_timeout=60.0, idle_timeout=5.0,
                extra_docker_args={"pids-limit": 4}, docker_args=["--tty"],
                allow_cwd=True, socket=self.fake.socket)
            dumped = DockerCommandLineCodeExecutor(**given).dump_component()
            self.assertEqual(dumped.provider,
                             "cordon.autogen.DockerCommandLineCodeExecutor")
            for name, value in given.items():
                self.assertEqual(dumped.config[name], value, name)
            loaded = DockerCommandLineCodeExecutor.load_component(dumped)
            self.assertEqual(loaded.dump_component(), dumped)


class Life(Base):
    async def test_order(self):
        """start replaces one of the same name; the work dir goes last"""
        self.fake.routes["GET /v1/boxes/mine"] = answer(200, BOX)
        executor = self.executor(container_name="mine")
        await executor.start()
        place = executor.work_dir
        self.assertEqual(place.stat().st_mode & 0o777, 0o700)
        self.assertEqual([r.method for r in self.fake.seen],
                         ["GET", "DELETE", "POST"])
        there = []
        self.fake.routes[f"DELETE /v1/boxes/{BOX['id']}"] = \
            lambda r, c: there.append(place.is_dir()) or answer(204)
        await executor.stop()
        self.assertEqual((there, place.exists()), ([True], False))
        await executor.stop()  # again: nothing
        with self.assertRaisesRegex(ValueError, "must first be started"):
            await executor.execute_code_blocks([python("1")], None)
        with self.assertRaisesRegex(ValueError, "must first be started"):
            await executor.restart()

    async def test_init_command(self):
        """init_command: run once by sh; its failure is start's"""
        async with self.executor(init_command="echo hi"):
            pass
        self.assertEqual(self.fake.find("POST", "/v1/run")[0].json["command"],
                         ["sh", "-c", "echo hi"])
        self.results = [result(status="error", exit_code=3, stdout="no way")]
        executor = self.executor(init_command="false")
        with self.assertRaisesRegex(RuntimeError, "no way"):
            await executor.start()
        self.assertEqual(self.fake.seen[-1].method, "DELETE")
        with self.assertRaises(RuntimeError):
            executor.work_dir

    async def test_no_daemon(self):
        """no daemon: start fails, nothing runs anywhere else"""
        executor = DockerCommandLineCodeExecutor(socket="/nosuch/sock")
        with self.assertRaises(CordonError):
            await executor.start()

    async def test_denied(self):
        """the policy's no is start's error, with its text"""
        self.fake.routes["POST /v1/boxes"] = answer(403, {
            "error": {"code": "denied", "message": "memory: at most 64m"}})
        with self.assertRaisesRegex(CordonError, "at most 64m"):
            await self.executor(mem_limit="1g").start()


class Blocks(Base):
    async def blocks(self, *blocks, **more):
        async with self.executor(**more) as executor:
            return await executor.execute_code_blocks(list(blocks), None)

    async def test_blocks(self):
        """in order, each with its time, up to the first that fails"""
        self.results = [result(output="a\n", stdout="a\n"),
                        result(output="b", exit_code=2, status="error")]
        have = await self.blocks(python("1"), python("2"), python("3"),
                                 timeout=7)
        self.assertEqual((have.exit_code, have.output, have.status),
                         (2, "a\nb", "error"))
        sent = [r.json for r in self.fake.find("POST", "/v1/run")]
        self.assertEqual(len(sent), 2)
        self.assertEqual((sent[0]["timeout"], sent[0]["box"]), (7, BOX["id"]))
        self.assertEqual(sent[0]["code"][0]["code"], "1")
        self.assertRegex(sent[0]["code"][0]["filename"],
                         r"^code_[0-9a-f]{16}\.py$")
        self.assertTrue(have.code_file.endswith(
            sent[0]["code"][0]["filename"]))

    async def test_looked_at_first(self):
        """a bad block at the end: none runs"""
        for bad, text, code in (
                (CodeBlock(code="x", language="cobol"),
                 "unknown language cobol", 127),
                (python("# filename: /etc/x.py\n"),
                 "Filename is not in the workspace", 1),
                (python("# filename: a/../../x.py\n"),
                 "Filename is not in the workspace", 1)):
            have = await self.blocks(python("print(1)"), bad)
            self.assertEqual((have.output, have.exit_code), (text, code))
        self.assertEqual(self.fake.find("POST", "/v1/run"), [])
        with self.assertRaisesRegex(ValueError, "No code blocks"):
            await self.blocks()

    async def test_ends(self):
        """how it ended is the daemon's word"""
        self.results = [result(status="timeout", cause="timeout",
                               exit_code=124, output="so far\nTimeout")]
        have = await self.blocks(python("1"))
        self.assertEqual((have.cause, have.exit_code, have.output),
                         ("timeout", 124, "so far\nTimeout"))
        self.results = [result(exit_code=124, status="error")]
        self.assertEqual((await self.blocks(python("1"))).cause, "exited")
        self.results = [result(status="error", cause="denied", exit_code=126,
                               message="Filename is not a regular file")]
        self.assertIn("not a regular file",
                      (await self.blocks(python("1"))).output)

    async def cancel(self, how):
        begun, told = threading.Event(), threading.Event()

        def slow(request, conn):
            begun.ident = request.json["id"]
            begun.set()
            told.wait(10)
            time.sleep(0.3)
            return answer(200, result(
                status="error", cause="cancelled", exit_code=130,
                output="some\nCode execution was cancelled."))

        def cancel(request, conn):
            if request.path == f"/v1/runs/{begun.ident}":
                told.set()
            return answer(204)

        self.fake.routes["POST /v1/run"] = slow
        self.fake.routes["DELETE *"] = cancel
        token = CancellationToken()
        async with self.executor() as executor:
            task = asyncio.create_task(executor.execute_code_blocks(
                [python("1"), python("2")], token))
            await asyncio.to_thread(begun.wait, 5)
            await how(token)
            have = await asyncio.wait_for(task, 5)
        self.assertEqual((have.cause, have.exit_code), ("cancelled", 130))
        self.assertIn("Code execution was cancelled", have.output)
        self.assertEqual(len(self.fake.find("POST", "/v1/run")), 1)

    @unittest.skipUnless(HAS_AUTOGEN, "autogen_core is not installed")
    async def test_cancel(self):
        """cancel: by its own id, and the answer is waited for"""
        async def here(token):
            token.cancel()
        await self.cancel(here)

    @unittest.skipUnless(HAS_AUTOGEN, "autogen_core is not installed")
    async def test_cancel_thread(self):
        """cancel from another thread"""
        async def there(token):
            await asyncio.to_thread(token.cancel)
        await self.cancel(there)

    @unittest.skipUnless(HAS_AUTOGEN, "autogen_core is not installed")
    async def test_cancelled_before(self):
        """cancelled before it began: nothing runs"""
        token = CancellationToken()
        token.cancel()
        async with self.executor() as executor:
            have = await executor.execute_code_blocks([python("1")], token)
        self.assertEqual((have.cause, have.exit_code), ("cancelled", 130))
        self.assertEqual(self.fake.find("POST", "/v1/run"), [])

    async def test_delete(self):
        """delete_tmp_files: gone after it; a link on the way is not followed"""
        with tempfile.TemporaryDirectory() as top:
            work, other = Path(top) / "work", Path(top) / "other"
            work.mkdir()
            other.mkdir()
            (other / "a.py").write_text("mine")
            (work / "b.py").write_text("x")
            (work / "way").symlink_to(other)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                have = await self.blocks(
                    python("# filename: b.py\n"),
                    python("# filename: way/a.py\n"),
                    work_dir=work, delete_tmp_files=True)
            self.assertFalse((work / "b.py").exists())
            self.assertEqual((other / "a.py").read_text(), "mine")
            self.assertIn("way/a.py", have.warnings[0])
            self.assertTrue(any("way/a.py" in str(w.message) for w in seen))

    def test_articles(self):
        """execute() and run(), as the articles call them: a fresh box each"""
        self.results = [result(output="55\n"), result(stdout="out")]
        executor = self.executor(
            image="python:3.11-slim", timeout=15, mem_limit="512m",
            cpu_period=100000, cpu_quota=50000, network_disabled=True,
            read_only=True)
        self.assertEqual(executor.execute("print(55)", language="python")
                         .output, "55\n")
        self.assertEqual(executor.run(cmd=["python", "-c", "x"], timeout=20)
                         .stdout, "out")
        first, second = (r.json for r in self.fake.find("POST", "/v1/run"))
        self.assertEqual(first["settings"], {
            "image": "python:3.11-slim", "timeout": 15, "mem_limit": "512m",
            "cpu_period": 100000, "cpu_quota": 50000,
            "network_disabled": True, "read_only": True})
        self.assertEqual((second["command"], second["settings"]["timeout"]),
                         (["python", "-c", "x"], 20))


class Names(unittest.TestCase):
    def test_directive(self):
        """the first line may name the file, after its first colon"""
        for code, name in (("# filename: a.py\n", "a.py"),
                           ("#FILENAME:a:b.py\nx", "a:b.py"),
                           ("// filename:  x y.js \r\nz", "x y.js"),
                           ("-- filename: q.lua", "q.lua"),
                           ("# filename: ./a/./b.py\n", "a/b.py"),
                           ("# filename: a/../b.py\n", "b.py"),
                           ("# filename: -V\n", "-V"),
                           ("# filename: n\u00e4me.py\n", "n\u00e4me.py")):
            self.assertEqual(file_name("python", code), name)

    def test_generated(self):
        """else it is made of language and code"""
        self.assertEqual(file_name("python", "x"), file_name("PYTHON ", "x"))
        self.assertNotEqual(file_name("python", "x"), file_name("sh", "x"))
        self.assertTrue(file_name("c++", "").endswith(".cc"))
        self.assertTrue(file_name("python3.11", "").endswith(".py"))

    def test_refused(self):
        """names that are none"""
        for name in ("", ".", "/", "/a", "..", "../a", "a/../..", "a/", "a\0b",
                     "a\nb", "\x7f", "x" * 256, "a/" * 17 + "a",
                     ("x" * 200 + "/") * 25 + "a"):
            with self.assertRaises(Refused, msg=repr(name)):
                check_name(name)


if __name__ == "__main__":
    unittest.main()

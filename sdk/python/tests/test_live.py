# SPDX-License-Identifier: Apache-2.0
"""Both clients and the executor for AutoGen on a real daemon (CORDON_SOCKET):
each argument at work, also with AutoGen's agents and a replayed model."""
import asyncio
import logging
import os
import socket
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

import cordon
from cordon.autogen import (HAS_AUTOGEN, CodeBlock,
                            DockerCommandLineCodeExecutor)

if HAS_AUTOGEN:
    from autogen_core import CancellationToken

logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore", message=".*approval.*")
THERE = bool(os.environ.get("CORDON_SOCKET"))
IMAGE = os.environ.get("CLIENTS_IMAGE")  # one with users, where there is one


def python(code):
    return CodeBlock(code=code, language="python")


@unittest.skipUnless(THERE, "no daemon: CORDON_SOCKET is not set")
class Clients(unittest.TestCase):
    def setUp(self):
        self.client = cordon.Client()

    def test_run(self):
        """run: streams, exit code, cause"""
        have = self.client.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
        self.assertEqual((have.stdout, have.stderr, have.exit_code, have.cause,
                          have.status), ("out\n", "err\n", 3, "exited", "error"))
        self.assertTrue(self.client.run(["true"]).ok)

    def test_causes(self):
        """run: what ended it is said, not guessed"""
        self.assertEqual(self.client.run(["sleep", "9"], timeout=1).cause,
                         "timeout")
        self.assertEqual(self.client.run(
            code="x = bytearray(10 ** 9)", memory="64m").cause, "memory")
        self.assertEqual(self.client.run(["sh", "-c", "kill -9 $$"]).cause,
                         "signal")
        self.assertEqual(self.client.run(["nosuch"]).cause, "not_found")
        self.assertEqual(self.client.run(["sh", "-c", "exit 124"]).cause,
                         "exited")

    def test_code(self):
        """run: code, input, output as it comes"""
        seen = []
        have = self.client.run(
            code="import sys\nprint(sys.stdin.read().upper())", stdin="abc",
            on_output=seen.append)
        self.assertEqual(have.output, "ABC\n")
        self.assertEqual(b"".join(o.data for o in seen), b"ABC\n")

    def test_cancel(self):
        """cancel, from elsewhere"""
        ident = "c" * 32
        threading.Timer(0.5, self.client.cancel, (ident,)).start()
        have = self.client.run(["sleep", "30"], id=ident)
        self.assertEqual((have.cause, have.exit_code), ("cancelled", 130))

    def test_unknown(self):
        """a setting that is not known is an error"""
        with self.assertRaisesRegex(cordon.CordonError, "nosuch"):
            self.client.run(["true"], nosuch=1)

    def test_box(self):
        """a box: programs, files, streams, its end"""
        with self.client.create(name="sdk-box", memory="64m") as box:
            self.assertEqual(self.client.box("sdk-box").id, box.id)
            self.assertEqual(box.info().state, "running")
            self.assertIn(box.id, [b.id for b in self.client.boxes()])
            box.write_file("/tmp/f", b"\0bytes\xff")
            self.assertEqual(box.read_file("/tmp/f"), b"\0bytes\xff")
            self.assertEqual(box.run(["wc", "-c", "/tmp/f"]).stdout.split()[0],
                             "7")
            with box.exec(["cat"], stdin=True) as process:
                data = os.urandom(1 << 20)
                self.assertEqual(process.communicate(data), (data, b""))
                self.assertEqual(process.wait().exit_code, 0)
            with box.exec(["sleep", "60"]) as process:
                process.kill()
                self.assertEqual(process.wait().exit_code, 137)
            with self.assertRaises(cordon.NotFound):
                box.read_file("/tmp/nosuch")
            self.assertGreater(box.stats()["memory"], 0)
        with self.assertRaises(cordon.NotFound):
            self.client.box("sdk-box")

    def test_main(self):
        """a box with a main program: logs and wait"""
        with self.client.create(["sh", "-c", "echo one; exit 4"]) as box:
            self.assertEqual(box.wait(), 4)
            self.assertEqual(b"".join(o.data for o in box.logs()), b"one\n")

    def test_async(self):
        """the same, asynchronous; eight at once"""
        async def use():
            client = cordon.AsyncClient()
            have = await asyncio.gather(*(client.run(
                code=f"print({i} ** 2)") for i in range(8)))
            async with await client.create() as box:
                process = await box.exec(["cat"], stdin=True)
                echo = await process.communicate(b"x" * 500000)
                info = await process.wait()
                process.close()
                await box.write_file("/tmp/f", "text")
                text = await box.read_file("/tmp/f")
            return [r.stdout for r in have], echo, info.exit_code, text
        out, echo, code, text = asyncio.run(use())
        self.assertEqual(out, [f"{i * i}\n" for i in range(8)])
        self.assertEqual((echo, code, text),
                         ((b"x" * 500000, b""), 0, b"text"))

    def test_cancel_task(self):
        """a cancelled task leaves nothing running"""
        async def use(place):
            client = cordon.AsyncClient()
            task = asyncio.create_task(client.run(
                ["sh", "-c", "while :; do date >/data/tick; sleep 0.05; done"],
                volumes={place: {"bind": "/data", "mode": "rw"}}))
            for _ in range(100):
                if os.path.exists(place + "/tick"):
                    break
                await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.sleep(1)
            os.remove(place + "/tick")
            await asyncio.sleep(0.5)
            return os.path.exists(place + "/tick")
        with tempfile.TemporaryDirectory() as place:
            self.assertFalse(asyncio.run(use(place)))


@unittest.skipUnless(THERE, "no daemon: CORDON_SOCKET is not set")
class Executor(unittest.IsolatedAsyncioTestCase):
    async def blocks(self, *blocks, **more):
        async with DockerCommandLineCodeExecutor(**more) as executor:
            return await executor.execute_code_blocks(list(blocks))

    async def value(self, code, **more):
        have = await self.blocks(python(code), **more)
        self.assertEqual(have.exit_code, 0, have.output)
        return have.output.strip()

    async def test_blocks(self):
        """blocks in order, one work dir, files by name"""
        with tempfile.TemporaryDirectory() as work:
            have = await self.blocks(
                python("# filename: sub/a.py\nopen('kept', 'w').write('1')\n"
                       "print('one')"),
                CodeBlock(code="cat kept; echo two", language="sh"),
                CodeBlock(code="echo three", language="bash"), work_dir=work)
            self.assertEqual((have.exit_code, have.output),
                             (0, "one\n1two\nthree\n"))
            self.assertEqual(have.code_file, f"{work}/sub/a.py")
            self.assertTrue(os.path.exists(have.code_file))
            self.assertEqual(os.stat(work + "/kept").st_uid,
                             os.stat(work).st_uid)

    async def test_first_failure(self):
        """the first that fails is the last"""
        have = await self.blocks(python("print(1)"), python("1/0"),
                                 python("print(3)"))
        self.assertEqual(have.exit_code, 1)
        self.assertIn("ZeroDivisionError", have.output)
        self.assertNotIn("3\n", have.output)

    async def test_timeout(self):
        """timeout: all of it is gone, what it wrote is there"""
        before = time.monotonic()
        with tempfile.TemporaryDirectory() as work:
            async with DockerCommandLineCodeExecutor(
                    timeout=1, work_dir=work) as executor:
                have = await executor.execute_code_blocks([python(
                    "import os, signal, time\n"
                    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                    "print('so far', flush=True)\n"
                    "if os.fork() == 0:\n    os.setsid()\n"
                    "    while True:\n        open('tick', 'w')\n"
                    "        time.sleep(0.05)\n"
                    "time.sleep(30)")])
                self.assertLess(time.monotonic() - before, 5)
                self.assertEqual((have.cause, have.exit_code),
                                 ("timeout", 124))
                self.assertIn("so far", have.output)
                self.assertIn("Timeout", have.output)
                os.remove(work + "/tick")
                await asyncio.sleep(0.5)
                self.assertFalse(os.path.exists(work + "/tick"))

    @unittest.skipUnless(HAS_AUTOGEN, "autogen_core is not installed")
    async def test_cancel(self):
        """cancel, from another thread"""
        token = CancellationToken()
        async with DockerCommandLineCodeExecutor() as executor:
            task = asyncio.create_task(executor.execute_code_blocks(
                [python("import time\nprint('begin', flush=True)\n"
                        "time.sleep(30)")], token))
            await asyncio.sleep(1)
            await asyncio.to_thread(token.cancel)
            have = await asyncio.wait_for(task, 5)
            self.assertEqual((have.cause, have.exit_code), ("cancelled", 130))
            self.assertIn("begin", have.output)
            self.assertIn("Code execution was cancelled", have.output)
            again = await executor.execute_code_blocks([python("print(1)")])
            self.assertEqual(again.output, "1\n")

    async def test_mem_limit(self):
        """mem_limit"""
        have = await self.blocks(python("x = bytearray(200 << 20)"),
                                 mem_limit="64m")
        self.assertEqual((have.cause, have.status),
                         ("memory", "resource_exceeded"))

    async def test_cpu(self):
        """cpu_period and cpu_quota"""
        have = await self.value(
            "import os, time\nend = time.monotonic() + 2\n"
            "while time.monotonic() < end: pass\nprint(sum(os.times()[:2]))",
            cpu_period=100000, cpu_quota=25000)
        self.assertLess(float(have), 0.9)

    async def test_pids_limit(self):
        """pids_limit, also by extra_docker_args"""
        code = ("import os, time\nn = 0\ntry:\n    while n < 500:\n"
                "        if os.fork() == 0:\n            time.sleep(9)\n"
                "            os._exit(0)\n        n += 1\n"
                "except OSError:\n    pass\nprint(n)")
        self.assertLess(int(await self.value(code, pids_limit=20)), 20)
        self.assertLess(int(await self.value(
            code, extra_docker_args={"pids-limit": 20})), 20)
        self.assertLess(int(await self.value(
            code, docker_args=["--pids-limit", "20"])), 20)

    async def test_network_disabled(self):
        """network_disabled: not even this machine"""
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.assertEqual(await self.value(
                "import socket\ntry:\n    socket.create_connection("
                f"('127.0.0.1', {server.getsockname()[1]}), 3)\n"
                "    print('reached')\nexcept OSError:\n    print('no')"), "no")

    async def test_read_only(self):
        """read_only, and its opposite"""
        path = f"/usr/cordon-{os.getpid()}"
        code = (f"try:\n    open('{path}', 'w')\n    print('written')\n"
                "except OSError as e:\n    print(e.strerror)")
        self.assertEqual(await self.value(code), "Read-only file system")
        self.assertIn(await self.value(code, read_only=False),
                      ("written", "Permission denied"))
        self.assertFalse(os.path.exists(path))

    async def test_user(self):
        """user"""
        self.assertEqual(await self.value("import os\nprint(os.getuid())",
                                          user="1234"), "1234")
        if IMAGE:
            self.assertEqual(await self.value(
                "import os\nprint(os.getuid())", user="sandbox", image=IMAGE),
                "1000")

    async def test_volumes(self):
        """volumes, read-only unless said"""
        with tempfile.TemporaryDirectory() as top:
            os.chmod(top, 0o777)
            (Path(top) / "f").write_text("data")
            code = ("print(open('/data/f').read())\ntry:\n"
                    "    open('/data/new', 'w')\nexcept OSError:\n"
                    "    print('refused')")
            self.assertEqual(await self.value(code, volumes={
                top: {"bind": "/data"}}), "data\nrefused")
            self.assertEqual(await self.value(code, extra_volumes={
                top: {"bind": "/data", "mode": "rw"}}), "data")
            self.assertTrue((Path(top) / "new").exists())
            self.assertEqual(await self.value(
                "print(open('/workspace/host_ro/f').read())",
                work_dir="/workspace", volumes={
                    top: {"bind": "/workspace/host_ro", "mode": "ro"}}),
                "data")

    async def test_more(self):
        """tmpfs, environment, extra_hosts, ulimits, init_command"""
        self.assertEqual(await self.value(
            "import os, resource, socket\n"
            "s = os.statvfs('/scratch')\n"
            "print(s.f_blocks * s.f_frsize, os.environ['A'],"
            " socket.gethostbyname('name.test'),"
            " resource.getrlimit(resource.RLIMIT_NOFILE)[0],"
            " open('/workspace/init').read().strip())",
            tmpfs={"/scratch": "size=1m"}, environment={"A": "b"},
            extra_hosts={"name.test": "127.0.0.7"},
            ulimits=["nofile=77:77"], init_command="echo begun >init"),
            "1048576 b 127.0.0.7 77 begun")
        with self.assertRaisesRegex(RuntimeError, "went wrong"):
            await self.blocks(python("1"),
                              init_command="echo went wrong; exit 3")

    async def test_total_timeout(self):
        """total_timeout is the time of all blocks together"""
        before = time.monotonic()
        nap = python("import time\nprint('nap', flush=True)\ntime.sleep(0.7)")
        have = await self.blocks(nap, nap, nap, nap, total_timeout=1.5)
        self.assertLess(time.monotonic() - before, 4)
        self.assertEqual((have.cause, have.exit_code), ("timeout", 124))
        self.assertLess(have.output.count("nap"), 4)
        have = await self.blocks(nap, nap, total_timeout="30s")
        self.assertEqual((have.exit_code, have.output), (0, "nap\nnap\n"))
        with self.assertRaises(ValueError):
            await self.blocks(nap, total_timeout="soon")

    async def test_max_output(self):
        """max_output and hard_output"""
        have = await self.blocks(python("print('x' * 100000)"),
                                 max_output="1k")
        self.assertEqual(have.exit_code, 0)
        self.assertLess(len(have.runs[0].stdout), 3000)
        self.assertTrue(have.runs[0].truncated)
        have = await self.blocks(python("while True: print('x' * 1000)"),
                                 hard_output="100k")
        self.assertEqual(have.cause, "output")

    async def test_refused_args(self):
        """an option that loosens or is not known is an error at start"""
        for more in ({"extra_docker_args": {"privileged": True}},
                     {"docker_args": ["--cap-add", "SYS_ADMIN"]}):
            with self.subTest(**more), self.assertRaises(ValueError):
                DockerCommandLineCodeExecutor(**more)
        for more in ({"extra_docker_args": {"nosuch": 1}},
                     {"extra_docker_args": {"network": "host"}},
                     {"security_opt": ["seccomp=unconfined"]},
                     {"image": "cordon-nosuch:1"},
                     {"volumes": {"/etc": {"bind": "/x"}}}):
            with self.subTest(**more), self.assertRaises(cordon.CordonError):
                await self.blocks(python("1"), **more)

    async def test_life(self):
        """restart, start under a taken name, stop_container, remove"""
        client = cordon.AsyncClient()
        with tempfile.TemporaryDirectory() as work:
            executor = DockerCommandLineCodeExecutor(
                container_name="sdk-life", work_dir=work)
            await executor.start()
            await executor.execute_code_blocks([python("open('f', 'w')")])
            first = (await client.box("sdk-life")).id
            await executor.restart()
            self.assertNotEqual((await client.box("sdk-life")).id, first)
            self.assertTrue(os.path.exists(work + "/f"))
            other = DockerCommandLineCodeExecutor(
                container_name="sdk-life", stop_container=False)
            await other.start()
            await other.stop()
            self.assertEqual((await (await client.box("sdk-life")).info())
                             .state, "running")
            await (await client.box("sdk-life")).remove(force=True)
            await executor.stop()
            with self.assertRaises(cordon.NotFound):
                await client.box("sdk-life")

    async def test_planted_link(self):
        """a link planted where the next block goes is not followed"""
        with tempfile.TemporaryDirectory() as top:
            victim = Path(top) / "victim"
            victim.write_text("untouched")
            work = Path(top) / "work"
            work.mkdir()
            (work / "next.py").symlink_to(victim)  # as if it had been made
            have = await self.blocks(
                python("# filename: next.py\nprint('x')"), work_dir=work)
            self.assertEqual(victim.read_text(), "untouched")
            self.assertEqual((have.exit_code, have.cause), (126, "denied"))
            self.assertIn("is not a regular file", have.output)

    def test_articles(self):
        """execute() and run() as the articles have them"""
        executor = DockerCommandLineCodeExecutor(
            image="host", timeout=15, mem_limit="128m", cpu_period=100000,
            cpu_quota=50000, network_disabled=True, read_only=True)
        have = executor.execute("print(sum(range(11)))", language="python")
        self.assertEqual(have.output, "55\n")
        have = executor.run(cmd=["python3", "-c", "print(7)"], timeout=20)
        self.assertEqual(have.stdout or have.stderr, "7\n")
        self.assertEqual(have.limits["memory"], 128 << 20)


@unittest.skipUnless(THERE and HAS_AUTOGEN, "no daemon, or no AutoGen")
class Agents(unittest.IsolatedAsyncioTestCase):
    async def test_agent(self):
        """AutoGen's CodeExecutorAgent, a replayed model"""
        from autogen_agentchat.agents import CodeExecutorAgent
        from autogen_agentchat.messages import CodeExecutionEvent
        from autogen_ext.models.replay import ReplayChatCompletionClient
        model = ReplayChatCompletionClient(
            ["```python\nprint(sum(range(101)))\n```", "It is 5050."])
        async with DockerCommandLineCodeExecutor(
                image="host", timeout=10, mem_limit="128m") as executor:
            agent = CodeExecutorAgent("coder", code_executor=executor,
                                      model_client=model)
            seen = [m async for m in agent.run_stream(task="Add 1 to 100.")]
        results = [m.result for m in seen if isinstance(m, CodeExecutionEvent)]
        self.assertEqual([(r.exit_code, r.output) for r in results],
                         [(0, "5050\n")])
        self.assertEqual(seen[-1].messages[-1].to_text(), "It is 5050.")

    async def test_tool(self):
        """an AssistantAgent with a tool of the articles' shape"""
        from autogen_agentchat.agents import AssistantAgent
        from autogen_core import FunctionCall
        from autogen_core.models import (CreateResult, ModelFamily,
                                         RequestUsage)
        from autogen_ext.models.replay import ReplayChatCompletionClient
        executor = DockerCommandLineCodeExecutor(image="host", timeout=10)

        def run_python_in_docker(code: str) -> str:
            """Runs Python code in a box."""
            return executor.execute(code, language="python").output

        call = CreateResult(
            finish_reason="function_calls", cached=False,
            usage=RequestUsage(prompt_tokens=0, completion_tokens=0),
            content=[FunctionCall(id="1", name="run_python_in_docker",
                                  arguments='{"code": "print(6 * 7)"}')])
        model = ReplayChatCompletionClient(
            [call, "42"], model_info={
                "vision": False, "function_calling": True, "json_output": True,
                "family": ModelFamily.UNKNOWN, "structured_output": True})
        agent = AssistantAgent("assistant", model_client=model,
                               tools=[run_python_in_docker])
        result = await agent.run(task="6 times 7?")
        self.assertIn("42\n", [m.to_text() for m in result.messages])


if __name__ == "__main__":
    unittest.main()

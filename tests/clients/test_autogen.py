# SPDX-License-Identifier: Apache-2.0
"""AutoGen as released: its DockerCommandLineCodeExecutor and its agents, with
a replayed model. Nothing of AutoGen or docker-py is changed; DOCKER_HOST
alone says who runs the code. The names E1 to E18 are those of the list of
acceptance cases for code executors.
"""
import asyncio
import logging
import os
import socket
import tempfile
import threading
import time
import unittest
import warnings
from hashlib import sha256
from pathlib import Path

import docker
from autogen_agentchat.agents import AssistantAgent, CodeExecutorAgent
from autogen_agentchat.messages import CodeExecutionEvent, TextMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.code_executor import CodeBlock
from autogen_core.models import CreateResult, ModelFamily, RequestUsage
from autogen_ext.code_executors.docker import DockerCommandLineCodeExecutor
from autogen_ext.models.replay import ReplayChatCompletionClient
from autogen_ext.tools.code_execution import PythonCodeExecutionTool

from server import FULL, IMAGE, IMAGES, ON_DOCKER, remove_all

warnings.filterwarnings("ignore", category=UserWarning)
logging.disable(logging.CRITICAL)  # AutoGen logs what its caller is told too
# What a cancelled program may not live to do, and how long that is waited for.
SLEEP, LATER = (10, 15) if FULL else (4, 5)


def python(code):
    return CodeBlock(code=code, language="python")


def shell(code, language="sh"):
    return CodeBlock(code=code, language=language)


class Base(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.client = docker.from_env()
        self.addCleanup(self.client.close)
        self.addCleanup(remove_all, self.client)
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.dir = Path(place.name)

    def executor(self, **more):
        more = {"image": IMAGE, "work_dir": self.dir, **more}
        made = DockerCommandLineCodeExecutor(**more)
        return made

    async def run_blocks(self, *blocks, token=None, **more):
        async with self.executor(**more) as executor:
            result = await executor.execute_code_blocks(
                list(blocks), token or CancellationToken())
            if ON_DOCKER:  # or its stop waits for 10 s
                self.client.api.kill(executor.container_name)
            return result

    async def value(self, code, **more):
        """The last line that the code prints."""
        result = await self.run_blocks(python(code), **more)
        self.assertEqual(result.exit_code, 0, result.output)
        return result.output.strip().splitlines()[-1]


def add_two(a: int, b: int) -> int:
    """Adds."""
    return a + b


class Cases(Base):
    async def test_e01(self):
        """E1 one block, on every image"""
        for image in IMAGES:
            with self.subTest(image=image):
                result = await self.run_blocks(
                    python("print('hello world!')"), image=image)
                self.assertEqual(result.exit_code, 0, result.output)
                self.assertIn("hello world!", result.output)
                self.assertTrue(os.path.exists(result.code_file))

    async def test_e02(self):
        """E2 two blocks"""
        result = await self.run_blocks(
            python("import sys; print('first', sys.argv)"),
            python("a = 100 + 100\nprint(a)"))
        self.assertEqual(result.exit_code, 0)
        self.assertIn("first", result.output)
        self.assertIn("200", result.output)

    async def test_e03(self):
        """E3 a bash block"""
        for language in ("bash", "sh", "shell"):
            result = await self.run_blocks(
                shell("echo 'hello world!'", language))
            self.assertEqual(result.exit_code, 0, result.output)
            self.assertIn("hello world!", result.output)

    async def test_e04(self):
        """E4 the saved file has the lines of the code"""
        code = "import sys\n\nprint('hello')\n"
        result = await self.run_blocks(python(code))
        self.assertEqual(Path(result.code_file).read_text().splitlines(),
                         code.splitlines())

    async def test_e05(self):
        """E5 timeout"""
        before = time.monotonic()
        result = await self.run_blocks(
            python("import time; print('begin', flush=True); time.sleep(10); print('end')"),
            timeout=1)
        self.assertEqual(result.exit_code, 124)
        self.assertIn("Timeout", result.output)
        self.assertIn("begin", result.output)
        self.assertNotIn("end", result.output)
        self.assertLess(time.monotonic() - before, 8)

    @unittest.skipIf(ON_DOCKER, "a Docker Engine sends TERM to one process")
    async def test_e05_hostile(self):
        """E5 timeout of a program that ignores TERM and left its session"""
        before = time.monotonic()
        code = (
            "import os, signal, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "print('partial', flush=True)\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    while True:\n"
            "        open('alive', 'w').write('x'); time.sleep(0.05)\n"
            "time.sleep(60)\n")
        async with self.executor(timeout=2) as executor:
            result = await executor.execute_code_blocks(
                [python(code)], CancellationToken())
            self.assertLess(time.monotonic() - before, 5)
            self.assertEqual(result.exit_code, 124)
            self.assertIn("partial", result.output)
            (self.dir / "alive").unlink()
            await asyncio.sleep(0.5)
            self.assertFalse((self.dir / "alive").exists())

    async def cancel(self, how):
        token = CancellationToken()
        code = (f"import time\nprint('begin', flush=True)\ntime.sleep({SLEEP})\n"
                "open('written', 'w').write('x')\n")
        async with self.executor() as executor:
            task = asyncio.create_task(executor.execute_code_blocks(
                [python(code)], token))
            await asyncio.sleep(2)
            how(token)
            result = await asyncio.wait_for(task, 10)
            self.assertNotEqual(result.exit_code, 0)
            self.assertIn("Code execution was cancelled", result.output)
            self.assertFalse((self.dir / "written").exists())
            await asyncio.sleep(LATER)
            self.assertFalse((self.dir / "written").exists())
            # and the executor is still good
            again = await executor.execute_code_blocks(
                [python("print('again')")], CancellationToken())
            self.assertEqual((again.exit_code, again.output), (0, "again\n"))
            if ON_DOCKER:
                self.client.api.kill(executor.container_name)

    async def test_e06(self):
        """E6 cancel: the code does not live on"""
        await self.cancel(lambda token: token.cancel())

    async def test_e18(self):
        """E18 cancel from another thread"""
        def elsewhere(token):
            loop = asyncio.get_running_loop()
            threading.Thread(target=lambda: loop.call_soon_threadsafe(
                token.cancel)).start()
        await self.cancel(elsewhere)

    async def test_e07(self):
        """E7 a file name outside"""
        result = await self.run_blocks(
            python("# filename: /tmp/test.py\n\nprint('hello')"))
        self.assertEqual(result.exit_code, 1)
        self.assertIn("Filename is not in the workspace", result.output)

    async def test_e08(self):
        """E8 a file name"""
        result = await self.run_blocks(
            python("# filename: test.py\n\nprint('hello')"))
        self.assertEqual(result.exit_code, 0, result.output)
        self.assertEqual(result.code_file, str(self.dir / "test.py"))
        self.assertTrue((self.dir / "test.py").exists())

    async def test_e09(self):
        """E9 start and stop, nothing left"""
        executor = self.executor()
        await executor.start()
        self.assertEqual(len(self.client.containers.list()), 1)
        if ON_DOCKER:
            self.client.api.kill(executor.container_name)
        await executor.stop()
        for _ in range(50):
            if not self.client.containers.list(all=True):
                return
            await asyncio.sleep(0.1)
        self.fail("the container was left")

    @unittest.skipIf(ON_DOCKER, "a Docker Engine waits for 10 s")
    async def test_e09_fast(self):
        """E9 stop takes no ten seconds"""
        executor = self.executor()
        await executor.start()
        before = time.monotonic()
        await executor.stop()
        self.assertLess(time.monotonic() - before, 2)

    async def test_e10(self):
        """E10 extra volume, init command, extra host"""
        with tempfile.TemporaryDirectory() as other:
            os.chmod(other, 0o777)
            path = Path(other) / "volume.txt"
            path.write_text("from the volume")
            path.chmod(0o666)
            async with self.executor(
                    extra_volumes={str(path): {"bind": "/volume.txt",
                                               "mode": "rw"}},
                    init_command="echo initialised >/workspace/init.txt",
                    extra_hosts={"extra.test": "127.0.0.1"}) as executor:
                result = await executor.execute_code_blocks([
                    python("print(open('/volume.txt').read())"),
                    python("import time\n"
                           "for _ in range(100):\n"
                           "    try: print(open('init.txt').read()); break\n"
                           "    except OSError: time.sleep(0.05)"),
                    python("import socket\n"
                           "print(socket.gethostbyname('extra.test'))"),
                ], CancellationToken())
                if ON_DOCKER:
                    self.client.api.kill(executor.container_name)
            self.assertEqual(result.exit_code, 0, result.output)
            self.assertIn("from the volume", result.output)
            self.assertIn("initialised", result.output)
            self.assertIn("127.0.0.1", result.output)

    async def test_e11(self):
        """E11 dump and load"""
        executor = self.executor(bind_dir=self.dir, timeout=33)
        loaded = DockerCommandLineCodeExecutor.load_component(
            executor.dump_component())
        self.assertEqual((loaded.timeout, loaded.work_dir, loaded.bind_dir),
                         (33, self.dir, self.dir))

    async def test_e12(self):
        """E12 a timeout of 0"""
        with self.assertRaisesRegex(
                ValueError, "Timeout must be greater than or equal to 1."):
            self.executor(timeout=0)

    async def test_e13(self):
        """E13 no work dir before start"""
        executor = DockerCommandLineCodeExecutor(image=IMAGE)
        with self.assertRaisesRegex(RuntimeError, "not properly initialized"):
            executor.work_dir

    async def test_e14(self):
        """E14 a file in a directory that is missing"""
        result = await self.run_blocks(
            python("open('nosuch/file', 'w')"))
        self.assertNotEqual(result.exit_code, 0)
        self.assertIn("No such file or directory", result.output)

    async def test_e15(self):
        """E15 the current directory; start twice"""
        before = os.getcwd()
        os.chdir(self.dir)
        try:
            with self.assertWarns(DeprecationWarning):
                executor = self.executor(work_dir=".")
            await executor.start()
            await executor.start()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = await executor.execute_code_blocks(
                    [shell("echo here")], CancellationToken())
            self.assertEqual((result.exit_code, result.output), (0, "here\n"))
            if ON_DOCKER:
                self.client.api.kill(executor.container_name)
            await executor.stop()
        finally:
            os.chdir(before)

    async def test_e16(self):
        """E16 a private work dir, gone after stop"""
        executor = DockerCommandLineCodeExecutor(image=IMAGE)
        await executor.start()
        place = executor.work_dir
        self.assertTrue(place.exists())
        result = await executor.execute_code_blocks(
            [python("open('made', 'w').write('1'); print('ok')")],
            CancellationToken())
        self.assertEqual(result.output, "ok\n")
        if ON_DOCKER:
            self.client.api.kill(executor.container_name)
        await executor.stop()
        self.assertFalse(place.exists())

    async def test_e17(self):
        """E17 files are kept, or deleted when asked"""
        kept = await self.run_blocks(python("print(1)"))
        self.assertTrue(os.path.exists(kept.code_file))
        for blocks in ([python("print(2)")], [python("print(3)"), python("print(4)")],
                       [python("raise SystemExit(5)")]):
            gone = await self.run_blocks(*blocks, delete_tmp_files=True)
            self.assertFalse(os.path.exists(gone.code_file))
        self.assertEqual(os.listdir(self.dir), [os.path.basename(kept.code_file)])

    async def test_restart(self):
        """restart: the same work dir, what was running is gone"""
        async with self.executor() as executor:
            await executor.execute_code_blocks(
                [shell("echo kept >file")], CancellationToken())
            if not ON_DOCKER:  # 10 s there
                await executor.restart()
            result = await executor.execute_code_blocks(
                [shell("cat file")], CancellationToken())
            self.assertEqual((result.exit_code, result.output), (0, "kept\n"))
            if ON_DOCKER:
                self.client.api.kill(executor.container_name)

    async def test_functions(self):
        """a function of the caller's, imported by the code"""
        result = await self.run_blocks(
            python("from functions import add_two\nprint(add_two(1, 2))"),
            functions=[add_two])
        self.assertEqual((result.exit_code, result.output), (0, "3\n"))

    async def test_parallel(self):
        """eight executors at once"""
        async def one(i):
            async with DockerCommandLineCodeExecutor(image=IMAGE) as executor:
                result = await executor.execute_code_blocks(
                    [python(f"print({i} * {i})")], CancellationToken())
                if ON_DOCKER:
                    self.client.api.kill(executor.container_name)
                return result.output
        have = await asyncio.gather(*map(one, range(8)))
        self.assertEqual(have, [f"{i * i}\n" for i in range(8)])


MODEL = {"vision": False, "function_calling": True, "json_output": True,
         "family": ModelFamily.UNKNOWN, "structured_output": True}
REPLY = """Here it is:
```python
print(sum(range(101)))
```
"""


class Agents(Base):
    async def test_code_executor_agent(self):
        """CodeExecutorAgent runs what the model wrote"""
        model = ReplayChatCompletionClient([REPLY, "The sum is 5050."],
                                           model_info=MODEL)
        async with self.executor() as executor:
            agent = CodeExecutorAgent("coder", code_executor=executor,
                                      model_client=model)
            seen = [m async for m in agent.run_stream(
                task="Add the numbers from 1 to 100.")]
            if ON_DOCKER:
                self.client.api.kill(executor.container_name)
        results = [m.result for m in seen if isinstance(m, CodeExecutionEvent)]
        self.assertEqual([(r.exit_code, r.output) for r in results],
                         [(0, "5050\n")])
        self.assertEqual(seen[-1].messages[-1].to_text(), "The sum is 5050.")

    async def test_without_model(self):
        """CodeExecutorAgent runs what a message holds"""
        async with self.executor() as executor:
            agent = CodeExecutorAgent("coder", code_executor=executor)
            response = await agent.on_messages(
                [TextMessage(content=REPLY, source="user")],
                CancellationToken())
            self.assertEqual(response.chat_message.content, "5050\n")
            if ON_DOCKER:
                self.client.api.kill(executor.container_name)

    async def test_tool(self):
        """an AssistantAgent with the code execution tool"""
        call = CreateResult(
            finish_reason="function_calls", cached=False,
            usage=RequestUsage(prompt_tokens=0, completion_tokens=0),
            content=[FunctionCall(id="1", name="CodeExecutor",
                                  arguments='{"code": "print(6 * 7)"}')])
        model = ReplayChatCompletionClient([call, "42, says the box."],
                                           model_info=MODEL)
        async with self.executor() as executor:
            tool = PythonCodeExecutionTool(executor)
            call.content[0].name = tool.name
            agent = AssistantAgent("assistant", model_client=model,
                                   tools=[tool], reflect_on_tool_use=True)
            result = await agent.run(task="6 times 7?")
            if ON_DOCKER:
                self.client.api.kill(executor.container_name)
        texts = [m.to_text() for m in result.messages]
        self.assertTrue(any("42" in t for t in texts[1:-1]), texts)
        self.assertEqual(texts[-1], "42, says the box.")


@unittest.skipIf(ON_DOCKER, "AutoGen asks a Docker Engine for no wall, and gets none")
class Walls(Base):
    """The same executor; what its code met."""

    async def test_network(self):
        """no network: no address, no name, no raw socket, no host's socket"""
        name = f"cordon-clients-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as abstract, \
                socket.create_server(("127.0.0.1", 0)) as server:
            abstract.bind("\0" + name)
            abstract.listen()
            port = server.getsockname()[1]
            code = f"""
import socket
def tries(f):
    try:
        f()
        return "reached"
    except OSError:
        return "no"
def connect(kind, where):
    s = socket.socket(kind)
    s.settimeout(3)
    s.connect(where)
print(tries(lambda: connect(socket.AF_INET, ("192.0.2.1", 80))),
      tries(lambda: connect(socket.AF_INET, ("127.0.0.1", {port}))),
      tries(lambda: connect(socket.AF_UNIX, "\\0{name}")),
      tries(lambda: socket.getaddrinfo("example.com", 80)),
      tries(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
      tries(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
"""
            for image in IMAGES:
                self.assertEqual(await self.value(code, image=image),
                                 " ".join(["no"] * 6))

    async def test_privileges(self):
        """not root, no capabilities, no new privileges, a filter"""
        code = """
import os
s = dict(l.split(":", 1) for l in open("/proc/self/status"))
print(os.getuid() != 0, *(s[k].strip() for k in
    ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")))
"""
        for image in IMAGES:
            self.assertEqual(await self.value(code, image=image),
                             " ".join(["True"] + ["0" * 16] * 5 + ["1", "2"]))

    async def test_memory(self):
        """memory is limited"""
        result = await self.run_blocks(
            python("x = b'x' * (2 << 30)\nprint('had it')"))
        self.assertNotEqual(result.exit_code, 0)
        self.assertNotIn("had it", result.output)

    async def test_pids(self):
        """processes are limited"""
        have = await self.value("""
import os, signal, time
n = 0
try:
    while n < 1000:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        n += 1
except OSError:
    pass
print(n)
""")
        self.assertLess(int(have), 300)

    async def test_cpu(self):
        """processor time is limited"""
        have = await self.value("""
import os, time
end = time.monotonic() + 2
while time.monotonic() < end:
    pass
print(sum(os.times()[:2]))
""")
        self.assertLess(float(have), 1.6)

    async def test_disk(self):
        """disk is limited"""
        result = await self.run_blocks(python(
            "f = open('/tmp/big', 'wb')\n"
            "for _ in range(4096):\n    f.write(b'x' * (1 << 20))\n"
            "f.flush()\nprint('had it')\n"))
        self.assertNotEqual(result.exit_code, 0)
        self.assertNotIn("had it", result.output)

    async def test_host_files(self):
        """no file of the host but the work dir"""
        with tempfile.NamedTemporaryFile("w", suffix=".secret") as f:
            f.write("secret")
            f.flush()
            os.chmod(f.name, 0o644)
            for image in IMAGES:
                self.assertEqual(await self.value(f"""
import os
print(*(os.path.exists(p) for p in
        ({f.name!r}, {os.path.abspath(__file__)!r}, "/etc/shadow")))
""", image=image), "False False False")

    async def test_environment(self):
        """nothing of this process' environment"""
        os.environ["CLIENTS_SECRET"] = "x"
        self.assertEqual(await self.value(
            "import os\nprint('CLIENTS_SECRET' in os.environ)"), "False")

    async def test_planted_link(self):
        """a link planted where AutoGen writes next is not followed"""
        with tempfile.TemporaryDirectory() as other:
            victim = Path(other) / "victim"
            victim.write_text("untouched")
            victim.chmod(0o666)
            second = "print('second')"
            name = f"tmp_code_{sha256(second.encode()).hexdigest()}.python"
            plant = (f"import os\ntry:\n    os.symlink({str(victim)!r}, {name!r})\n"
                     "except OSError as e:\n    print('refused')\n")
            async with self.executor() as executor:
                first = await executor.execute_code_blocks(
                    [python(plant)], CancellationToken())
                self.assertEqual(first.output, "refused\n")
                result = await executor.execute_code_blocks(
                    [python(second)], CancellationToken())
                self.assertEqual(result.output, "second\n")
            self.assertEqual(victim.read_text(), "untouched")
            self.assertFalse((self.dir / name).is_symlink())

    async def test_planted_fifo(self):
        """nor can a FIFO, a socket or a device wait for the host there"""
        have = await self.run_blocks(python("""
import os, socket, stat
def tries(f):
    try:
        f()
        print("made")
    except OSError:
        print("refused")
tries(lambda: os.mkfifo("fifo"))
tries(lambda: socket.socket(socket.AF_UNIX).bind("socket"))
tries(lambda: os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 3)))
open("su", "w").write("x")
try:
    os.chmod("su", 0o6777)
except OSError:
    pass
"""))
        self.assertEqual(have.output, "refused\n" * 3)
        self.assertEqual(os.listdir(self.dir).count("fifo"), 0)
        self.assertEqual((self.dir / "su").stat().st_mode & 0o6000, 0)

    async def test_owner(self):
        """files made inside belong to the owner of the work dir"""
        await self.run_blocks(python("open('mine', 'w').write('x')"))
        self.assertEqual((self.dir / "mine").stat().st_uid,
                         self.dir.stat().st_uid)

    async def test_pkill(self):
        """cancel needs no pkill in the image, and kills at once"""
        async with self.executor() as executor:
            token = CancellationToken()
            task = asyncio.create_task(executor.execute_code_blocks(
                [python("import signal, time\n"
                        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                        "time.sleep(120)")], token))
            await asyncio.sleep(1)
            box = self.client.containers.get(executor.container_name)
            self.assertIn("tmp_code_", str(box.top()["Processes"]))
            token.cancel()
            await asyncio.wait_for(task, 10)
            await asyncio.gather(*map(asyncio.wrap_future,
                                      executor._cancellation_futures))
            self.assertNotIn("tmp_code_", str(box.top()["Processes"]))

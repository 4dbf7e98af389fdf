# SPDX-License-Identifier: Apache-2.0
"""The asynchronous client: as `cordon.client`, for asyncio. A task that is
cancelled while it waits for a run closes its connection, and that cancels the
run: nothing of it lives on."""
from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Any, AsyncGenerator, AsyncIterator, Mapping

from . import _calls
from ._calls import CodeLike, Command
from ._wire import (FRAME_HEAD, MAX_HEAD, Call, Frames, Head, Place,
                    decode, parse_chunk_size, parse_frame, parse_head)
from .client import OnOutput, output_of
from .errors import CordonError, Unreachable
from .types import BoxInfo, ExecInfo, Output, Result


class _Answer:
    """A connection whose head has been read. Closing it is the caller's."""

    def __init__(self, reader: asyncio.StreamReader,
                 writer: asyncio.StreamWriter, head: Head):
        self.reader, self.writer, self.head = reader, writer, head

    async def parts(self) -> AsyncGenerator[bytes, None]:
        if not self.head.has_body:
            return
        if self.head.is_chunked:
            while size := parse_chunk_size(await self.reader.readline()):
                yield await self.exactly(size)
                await self.reader.readline()
            return
        left = self.head.length
        while left is None or left > 0:
            some = await self.reader.read(
                65536 if left is None else min(left, 65536))
            if not some:
                if left:
                    raise Unreachable("the connection broke")
                return
            left = None if left is None else left - len(some)
            yield some

    async def exactly(self, n: int) -> bytes:
        try:
            return await self.reader.readexactly(n)
        except asyncio.IncompleteReadError as error:
            raise Unreachable("the connection broke") from error

    async def whole(self) -> bytes:
        return b"".join([part async for part in self.parts()])

    async def outputs(self) -> AsyncIterator[Output]:
        if self.head.status != 101 and (self.head.is_chunked or
                                        self.head.length is not None):
            frames = Frames(self.head.is_framed)
            async for part in self.parts():
                for output in frames.cut(part):
                    yield output
            return
        while self.head.is_framed:
            try:
                head = await self.reader.readexactly(FRAME_HEAD)
            except asyncio.IncompleteReadError:
                return
            stream, length = parse_frame(head)
            yield Output(stream, await self.exactly(length))
        while some := await self.reader.read(65536):
            yield Output(1, some)

    def close(self) -> None:
        self.writer.close()


async def _read_head(reader: asyncio.StreamReader) -> Head:
    total = 0
    while total <= MAX_HEAD:
        try:
            text = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return parse_head([])
        head = parse_head(text.rstrip(b"\r\n").split(b"\r\n"))
        if head.status != 100:
            return head
        total += len(text)
    raise Unreachable("the answer's head is too long")


class _Asker:
    def __init__(self, place: Place):
        self.place = place

    async def begin(self, call: Call) -> _Answer:
        try:
            reader, writer = await asyncio.open_unix_connection(
                self.place.path, limit=MAX_HEAD)
        except OSError as error:
            raise Unreachable(
                f"no daemon at '{self.place.path}': {error}; 'cordon serve' starts "
                "one") from error
        try:
            self.place.check(writer.get_extra_info("socket"))
            writer.write(call.encode())
            try:
                await writer.drain()
            except ConnectionError:
                pass  # refused before it was read; the answer says why
            try:
                answer = _Answer(reader, writer, await _read_head(reader))
            except OSError as error:
                raise Unreachable(f"the connection broke: {error}") from error
            if answer.head.status >= 400:
                decode(answer.head, await answer.whole())
            return answer
        except BaseException:
            writer.close()
            raise

    @asynccontextmanager
    async def open(self, call: Call) -> AsyncIterator[_Answer]:
        answer = await self.begin(call)
        try:
            yield answer
        finally:
            answer.close()

    async def ask(self, call: Call) -> Any:
        async with self.open(call) as answer:
            return decode(answer.head, await answer.whole())

    async def data(self, call: Call) -> bytes:
        async with self.open(call) as answer:
            return await answer.whole()

    async def lines(self, call: Call) -> AsyncGenerator[Any, None]:
        async with self.open(call) as answer:
            have = b""
            async with aclosing(answer.parts()) as parts:
                async for part in parts:
                    have += part
                    *whole, have = have.split(b"\n")
                    for line in whole:
                        if line.strip():
                            yield json.loads(line)


class AsyncProcess:
    """As `cordon.Process`: iterate with ``async for``."""

    def __init__(self, asker: _Asker, answer: _Answer, ident: str):
        self._asker, self._answer, self.id = asker, answer, ident

    def __aiter__(self) -> AsyncIterator[Output]:
        return self._answer.outputs()

    async def write(self, data: bytes) -> None:
        self._answer.writer.write(data)
        await self._answer.writer.drain()

    def close_stdin(self) -> None:
        self._answer.writer.write_eof()

    async def communicate(self, data: bytes = b"") -> tuple[bytes, bytes]:
        async def feed() -> None:
            try:
                if data:
                    await self.write(data)
                self.close_stdin()
            except (OSError, RuntimeError):
                pass  # it has ended

        feeding = asyncio.create_task(feed())
        streams = {1: bytearray(), 2: bytearray()}
        try:
            async for output in self:
                streams[output.stream] += output.data
        finally:
            feeding.cancel()
        return bytes(streams[1]), bytes(streams[2])

    async def wait(self) -> ExecInfo:
        async for _ in self:
            pass
        return await self.info()

    async def info(self) -> ExecInfo:
        return ExecInfo.of(await self._asker.ask(_calls.one(self.id)))

    async def kill(self, signal: str = "KILL") -> None:
        await self._asker.ask(_calls.one(self.id, "kill", "POST",
                                         signal=signal))

    async def resize(self, rows: int, cols: int) -> None:
        await self._asker.ask(_calls.one(self.id, "resize", "POST",
                                         rows=rows, cols=cols))

    def close(self) -> None:
        self._answer.close()

    async def __aenter__(self) -> "AsyncProcess":
        return self

    async def __aexit__(self, kind: type[BaseException] | None,
                        value: BaseException | None,
                        trace: TracebackType | None) -> None:
        self.close()


class AsyncBox:
    """As `cordon.Box`; each method is awaited."""

    def __init__(self, asker: _Asker, ident: str, name: str = ""):
        self._asker, self.id, self.name = asker, ident, name

    def __repr__(self) -> str:
        return f"<cordon.AsyncBox {self.name or self.id[:12]}>"

    async def _do(self, verb: str, **query: Any) -> None:
        await self._asker.ask(_calls.box(self.id, verb, "POST", **query))

    async def info(self) -> BoxInfo:
        return BoxInfo.of(await self._asker.ask(_calls.box(self.id)))

    async def start(self) -> None:
        await self._do("start")

    async def stop(self, timeout: int | None = None,
                   signal: str | None = None) -> None:
        await self._do("stop", timeout=timeout, signal=signal)

    async def restart(self, timeout: int | None = None) -> None:
        await self._do("restart", timeout=timeout)

    async def kill(self, signal: str = "KILL") -> None:
        await self._do("kill", signal=signal)

    async def pause(self) -> None:
        await self._do("pause")

    async def resume(self) -> None:
        await self._do("resume")

    async def rename(self, name: str) -> None:
        await self._do("rename", name=name)
        self.name = name

    async def wait(self, condition: str = "not-running") -> int:
        answer = await self._asker.ask(_calls.box(
            self.id, "wait", "POST", condition=condition))
        return int(answer["exit_code"])

    async def remove(self, force: bool = False) -> None:
        await self._asker.ask(_calls.box(self.id, "", "DELETE",
                                         force=force or None))

    async def run(self, command: Command | None = None, *,
                  code: CodeLike | None = None, language: str = "python",
                  stdin: str | bytes | None = None,
                  env: Mapping[str, str] | None = None,
                  workdir: str | None = None,
                  timeout: float | str | None = None, id: str | None = None,
                  on_output: OnOutput | None = None) -> Result:
        return await _run(self._asker, _calls.run(
            command=command, code=code, language=language, stdin=stdin,
            ident=id, box=self.id, events=on_output is not None, env=env,
            workdir=workdir, timeout=timeout), on_output)

    async def exec(self, command: Command | None = None, *,
                   code: CodeLike | None = None, language: str = "python",
                   env: Mapping[str, str] | None = None,
                   workdir: str | None = None, user: str | None = None,
                   tty: bool = False, stdin: bool = False,
                   rows: int | None = None, cols: int | None = None,
                   timeout: float | str | None = None) -> AsyncProcess:
        answer = await self._asker.begin(_calls.execute(
            self.id, _calls.exec_want(
                command, code, language, env, workdir=workdir, user=user,
                tty=tty, stdin=stdin, rows=rows, cols=cols, timeout=timeout)))
        return AsyncProcess(self._asker, answer,
                            answer.head.headers.get("cordon-exec", ""))

    async def spawn(self, command: Command, *,
                    env: Mapping[str, str] | None = None,
                    workdir: str | None = None, user: str | None = None,
                    timeout: float | str | None = None) -> ExecInfo:
        return ExecInfo.of(await self._asker.ask(_calls.execute(
            self.id, _calls.exec_want(
                command, None, "", env, workdir=workdir, user=user,
                timeout=timeout, detach=True))))

    async def process(self, ident: str) -> AsyncProcess:
        answer = await self._asker.begin(_calls.one(ident, "attach", "POST",
                                                    upgrade=True))
        return AsyncProcess(self._asker, answer, ident)

    async def processes(self) -> list[ExecInfo]:
        answer = await self._asker.ask(_calls.box(self.id, "execs"))
        return [ExecInfo.of(e) for e in answer["execs"]]

    async def logs(self, *, follow: bool = False, tail: int | None = None,
                   stdout: bool = True, stderr: bool = True,
                   since_ms: int | None = None) -> AsyncIterator[Output]:
        async with self._asker.open(_calls.box(
                self.id, "logs", follow=follow, tail=tail, stdout=stdout,
                stderr=stderr, since_ms=since_ms)) as answer:
            async for output in answer.outputs():
                yield output

    async def read_file(self, path: str) -> bytes:
        return _calls.file_of(await self.get_tar(path), path)

    async def write_file(self, path: str, data: str | bytes,
                         mode: int = 0o644) -> None:
        directory, name = _calls.split_path(path)
        content = data.encode() if isinstance(data, str) else data
        await self.put_tar(directory, _calls.tar_of(name, content, mode))

    async def get_tar(self, path: str) -> bytes:
        return await self._asker.data(_calls.box(self.id, "files", path=path))

    async def put_tar(self, path: str, data: bytes,
                      no_overwrite: bool = False,
                      owners: bool = False) -> None:
        await self._asker.ask(_calls.put_tar(self.id, path, data,
                                             no_overwrite, owners))

    async def stat(self, path: str) -> Mapping[str, Any]:
        return dict(await self._asker.ask(_calls.box(self.id, "stat",
                                                     path=path)))

    async def changes(self) -> list[Mapping[str, str]]:
        answer = await self._asker.ask(_calls.box(self.id, "changes"))
        return list(answer["changes"])

    async def stats(self) -> Mapping[str, Any]:
        return dict(await self._asker.ask(_calls.box(self.id, "stats")))

    async def top(self) -> list[Mapping[str, Any]]:
        answer = await self._asker.ask(_calls.box(self.id, "top"))
        return list(answer["processes"])

    async def __aenter__(self) -> "AsyncBox":
        return self

    async def __aexit__(self, kind: type[BaseException] | None,
                        value: BaseException | None,
                        trace: TracebackType | None) -> None:
        try:
            await self.remove(force=True)
        except CordonError as error:
            if error.status != 404 and kind is None:
                raise


async def _run(asker: _Asker, call: Call,
               on_output: OnOutput | None) -> Result:
    if on_output is None:
        return Result.of(await asker.ask(call))
    async with aclosing(asker.lines(call)) as lines:
        async for line in lines:
            if line["event"] == "output":
                on_output(output_of(line))
            elif line["event"] == "result":
                return Result.of(line["result"])
    raise Unreachable("the daemon went before the run's end")


class AsyncClient:
    """As `cordon.Client`; each method is awaited."""

    def __init__(self, socket: str | None = None):
        place = Place.find(socket)
        self.socket = place.path
        self._asker = _Asker(place)

    async def version(self) -> str:
        return str((await self._asker.ask(Call("GET", "/v1/version")))
                   ["version"])

    async def info(self) -> Mapping[str, Any]:
        return dict(await self._asker.ask(Call("GET", "/v1/info")))

    def events(self, since_ms: int | None = None,
               follow: bool = True) -> AsyncIterator[Mapping[str, Any]]:
        return self._asker.lines(Call("GET", "/v1/events", {
            "since_ms": since_ms, "follow": follow}))

    async def run(self, command: Command | None = None, *,
                  code: CodeLike | None = None, language: str = "python",
                  stdin: str | bytes | None = None, id: str | None = None,
                  on_output: OnOutput | None = None,
                  **settings: Any) -> Result:
        return await _run(self._asker, _calls.run(
            command=command, code=code, language=language, stdin=stdin,
            ident=id, settings=settings, events=on_output is not None),
            on_output)

    async def cancel(self, id: str) -> None:
        await self._asker.ask(_calls.cancel(id))

    async def create(self, command: Command | None = None, *,
                     name: str | None = None, main: bool | None = None,
                     start: bool = True, tty: bool = False,
                     stdin: bool = False, auto_remove: bool = False,
                     clamp: bool = False, kill_exec_rest: bool = False,
                     kill_on_disconnect: bool = False,
                     stop_signal: str | None = None,
                     stop_timeout: int | None = None,
                     idle_timeout: float | str | None = None,
                     life_timeout: float | str | None = None,
                     exec_timeout: float | str | None = None,
                     extra: Mapping[str, Any] | None = None,
                     **settings: Any) -> AsyncBox:
        want = dict(
            name=name, main=main, start=start, tty=tty, stdin=stdin,
            auto_remove=auto_remove, clamp=clamp,
            kill_exec_rest=kill_exec_rest,
            kill_on_disconnect=kill_on_disconnect, stop_signal=stop_signal,
            stop_timeout=stop_timeout, idle_timeout=idle_timeout,
            life_timeout=life_timeout, exec_timeout=exec_timeout, extra=extra)
        info = BoxInfo.of(await self._asker.ask(
            _calls.create(command, settings, want)))
        return AsyncBox(self._asker, info.id, info.name)

    async def box(self, ident: str) -> AsyncBox:
        info = BoxInfo.of(await self._asker.ask(_calls.box(ident)))
        return AsyncBox(self._asker, info.id, info.name)

    async def boxes(self, all: bool = False) -> list[BoxInfo]:
        answer = await self._asker.ask(Call("GET", "/v1/boxes", {"all": all}))
        return [BoxInfo.of(b) for b in answer["boxes"]]

    async def images(self) -> list[Mapping[str, Any]]:
        return list(await self._asker.ask(Call("GET", "/v1/images")))

    async def image(self, name: str) -> Any:
        return await self._asker.ask(_calls.image(name))

    async def load_images(self, archive: bytes) -> Any:
        return await self._asker.ask(Call("POST", "/v1/images/load",
                                          data=archive))

    async def import_image(self, name: str, archive: bytes) -> Any:
        return await self._asker.ask(Call("POST", "/v1/images/import",
                                          {"name": name}, data=archive))

    async def remove_image(self, name: str, force: bool = False) -> Any:
        return await self._asker.ask(_calls.image(name, "", "DELETE",
                                                  force=force or None))

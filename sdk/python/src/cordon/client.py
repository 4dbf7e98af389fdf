# SPDX-License-Identifier: Apache-2.0
"""The synchronous client. Safe to use from several threads: each request has
a connection of its own."""
from __future__ import annotations

import base64
import json
import socket as sockets
import threading
from contextlib import contextmanager
from types import TracebackType
from typing import Any, BinaryIO, Callable, Iterator, Mapping

from . import _calls
from ._calls import CodeLike, Command
from ._wire import (FRAME_HEAD, MAX_HEAD, Call, Frames, Head, Place,
                    decode, parse_chunk_size, parse_frame, parse_head)
from .errors import CordonError, Unreachable
from .types import BoxInfo, ExecInfo, Output, Result

OnOutput = Callable[[Output], None]


class _Answer:
    """A connection whose head has been read. Closing it is the caller's."""

    def __init__(self, sock: sockets.socket):
        self.sock = sock
        self.file: BinaryIO = sock.makefile("rb")
        self.head = self._read_head()

    def _read_head(self) -> Head:
        lines: list[bytes] = []
        total = 0
        while True:
            line = self.file.readline(MAX_HEAD)
            total += len(line)
            if total > MAX_HEAD:
                raise Unreachable("the answer's head is too long")
            if line in (b"\r\n", b"\n") and lines:
                head = parse_head(lines)
                if head.status != 100:
                    return head
                lines = []
            elif not line.endswith(b"\n"):
                return parse_head([])
            else:
                lines.append(line.rstrip(b"\r\n"))

    def exactly(self, n: int) -> bytes:
        data = self.file.read(n)
        if len(data) < n:
            raise Unreachable("the connection broke")
        return data

    def parts(self) -> Iterator[bytes]:
        """The body as it comes."""
        if not self.head.has_body:
            return
        if self.head.is_chunked:
            while size := parse_chunk_size(self.file.readline(128)):
                yield self.exactly(size)
                self.file.readline(4)
            return
        left = self.head.length
        while left is None or left > 0:
            some = self.file.read1(65536 if left is None  # type: ignore
                                   else min(left, 65536))
            if not some:
                if left:
                    raise Unreachable("the connection broke")
                return
            left = None if left is None else left - len(some)
            yield some

    def outputs(self) -> Iterator[Output]:
        """The frames of a stream; of a terminal, bytes as they come."""
        if self.head.status != 101 and (self.head.is_chunked or
                                        self.head.length is not None):
            frames = Frames(self.head.is_framed)
            for part in self.parts():
                yield from frames.cut(part)
            return
        while self.head.is_framed:
            head = self.file.read(FRAME_HEAD)
            if len(head) < FRAME_HEAD:
                return
            stream, length = parse_frame(head)
            yield Output(stream, self.exactly(length))
        while some := self.file.read1(65536):  # type: ignore
            yield Output(1, some)

    def close(self) -> None:
        self.file.close()
        self.sock.close()


class _Asker:
    """Sends requests."""

    def __init__(self, place: Place, timeout: float | None):
        self.place, self.timeout = place, timeout

    @contextmanager
    def open(self, call: Call) -> Iterator[_Answer]:
        answer = self.begin(call)
        try:
            yield answer
        finally:
            answer.close()

    def begin(self, call: Call) -> _Answer:
        sock = sockets.socket(sockets.AF_UNIX)
        sock.settimeout(self.timeout)
        try:
            sock.connect(self.place.path)
            self.place.check(sock)
            try:
                sock.sendall(call.encode())
            except BrokenPipeError:
                pass  # refused before it was read; the answer says why
            answer = _Answer(sock)
        except OSError as error:
            sock.close()
            raise Unreachable(
                f"no answer from the daemon at '{self.place.path}': {error}; "
                "'cordon serve' starts one") from error
        except BaseException:
            sock.close()
            raise
        if answer.head.status >= 400:
            try:
                decode(answer.head, b"".join(answer.parts()))
            finally:
                answer.close()
        return answer

    def ask(self, call: Call) -> Any:
        with self.open(call) as answer:
            return decode(answer.head, b"".join(answer.parts()))

    def data(self, call: Call) -> bytes:
        with self.open(call) as answer:
            return b"".join(answer.parts())

    def lines(self, call: Call) -> Iterator[Any]:
        with self.open(call) as answer:
            have = b""
            for part in answer.parts():
                have += part
                *whole, have = have.split(b"\n")
                for line in whole:
                    if line.strip():
                        yield json.loads(line)


class Process:
    """A program in a box, with its streams. Iterating gives its `Output` until
    it ends; `wait()` gives how it ended. Leaving the `with` lets go of the
    streams, not of the program: `kill()` ends it and all that it started.
    """

    def __init__(self, asker: _Asker, answer: _Answer, ident: str):
        self._asker, self._answer, self.id = asker, answer, ident

    def __iter__(self) -> Iterator[Output]:
        yield from self._answer.outputs()

    def write(self, data: bytes) -> None:
        """To its standard input (it was started with ``stdin=True``)."""
        self._answer.sock.sendall(data)

    def close_stdin(self) -> None:
        """The end of its standard input."""
        self._answer.sock.shutdown(sockets.SHUT_WR)

    def communicate(self, data: bytes = b"") -> tuple[bytes, bytes]:
        """All to its standard input, all from its output."""
        def feed() -> None:
            try:
                if data:
                    self.write(data)
                self.close_stdin()
            except OSError:
                pass  # it has ended

        thread = threading.Thread(target=feed, daemon=True)
        thread.start()
        streams = {1: bytearray(), 2: bytearray()}
        for output in self:
            streams[output.stream] += output.data
        thread.join()
        return bytes(streams[1]), bytes(streams[2])

    def wait(self) -> ExecInfo:
        """Reads what is left of its output; then how it ended."""
        for _ in self:
            pass
        return self.info()

    def info(self) -> ExecInfo:
        return ExecInfo.of(self._asker.ask(_calls.one(self.id)))

    def kill(self, signal: str = "KILL") -> None:
        """KILL ends all that it started, too."""
        self._asker.ask(_calls.one(self.id, "kill", "POST", signal=signal))

    def resize(self, rows: int, cols: int) -> None:
        self._asker.ask(_calls.one(self.id, "resize", "POST",
                                   rows=rows, cols=cols))

    def close(self) -> None:
        self._answer.close()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class Box:
    """A box that lives. As a context manager it is removed at the end."""

    def __init__(self, asker: _Asker, ident: str, name: str = ""):
        self._asker, self.id, self.name = asker, ident, name

    def __repr__(self) -> str:
        return f"<cordon.Box {self.name or self.id[:12]}>"

    def _do(self, verb: str, **query: Any) -> None:
        self._asker.ask(_calls.box(self.id, verb, "POST", **query))

    def info(self) -> BoxInfo:
        return BoxInfo.of(self._asker.ask(_calls.box(self.id)))

    def start(self) -> None:
        self._do("start")

    def stop(self, timeout: int | None = None,
             signal: str | None = None) -> None:
        self._do("stop", timeout=timeout, signal=signal)

    def restart(self, timeout: int | None = None) -> None:
        self._do("restart", timeout=timeout)

    def kill(self, signal: str = "KILL") -> None:
        self._do("kill", signal=signal)

    def pause(self) -> None:
        self._do("pause")

    def resume(self) -> None:
        self._do("resume")

    def rename(self, name: str) -> None:
        self._do("rename", name=name)
        self.name = name

    def wait(self, condition: str = "not-running") -> int:
        """Its exit code, when it is so (or next-exit, removed)."""
        answer = self._asker.ask(_calls.box(self.id, "wait", "POST",
                                            condition=condition))
        return int(answer["exit_code"])

    def remove(self, force: bool = False) -> None:
        self._asker.ask(_calls.box(self.id, "", "DELETE",
                                   force=force or None))

    # programs

    def run(self, command: Command | None = None, *,
            code: CodeLike | None = None, language: str = "python",
            stdin: str | bytes | None = None,
            env: Mapping[str, str] | None = None, workdir: str | None = None,
            timeout: float | str | None = None, id: str | None = None,
            on_output: OnOutput | None = None) -> Result:
        """Runs a program, or code, in it to its end."""
        return _run(self._asker, _calls.run(
            command=command, code=code, language=language, stdin=stdin,
            ident=id, box=self.id, events=on_output is not None, env=env,
            workdir=workdir, timeout=timeout), on_output)

    def exec(self, command: Command | None = None, *,
             code: CodeLike | None = None, language: str = "python",
             env: Mapping[str, str] | None = None, workdir: str | None = None,
             user: str | None = None, tty: bool = False, stdin: bool = False,
             rows: int | None = None, cols: int | None = None,
             timeout: float | str | None = None) -> Process:
        """Starts a program in it; its streams are the caller's."""
        answer = self._asker.begin(_calls.execute(self.id, _calls.exec_want(
            command, code, language, env, workdir=workdir, user=user, tty=tty,
            stdin=stdin, rows=rows, cols=cols, timeout=timeout)))
        return Process(self._asker, answer,
                       answer.head.headers.get("cordon-exec", ""))

    def spawn(self, command: Command, *,
              env: Mapping[str, str] | None = None,
              workdir: str | None = None, user: str | None = None,
              timeout: float | str | None = None) -> ExecInfo:
        """Starts a program in it and lets it run; `process()` attaches."""
        return ExecInfo.of(self._asker.ask(_calls.execute(
            self.id, _calls.exec_want(
                command, None, "", env, workdir=workdir, user=user,
                timeout=timeout, detach=True))))

    def process(self, ident: str) -> Process:
        """Attaches to a program that `spawn()` started, from its beginning."""
        answer = self._asker.begin(_calls.one(ident, "attach", "POST",
                                              upgrade=True))
        return Process(self._asker, answer, ident)

    def processes(self) -> list[ExecInfo]:
        """Programs that were started in it."""
        answer = self._asker.ask(_calls.box(self.id, "execs"))
        return [ExecInfo.of(e) for e in answer["execs"]]

    # what it wrote, what it has

    def logs(self, *, follow: bool = False, tail: int | None = None,
             stdout: bool = True, stderr: bool = True,
             since_ms: int | None = None) -> Iterator[Output]:
        """What its main program wrote."""
        with self._asker.open(_calls.box(
                self.id, "logs", follow=follow, tail=tail, stdout=stdout,
                stderr=stderr, since_ms=since_ms)) as answer:
            yield from answer.outputs()

    def read_file(self, path: str) -> bytes:
        """A file in it. Links in it lead nowhere outside."""
        return _calls.file_of(self.get_tar(path), path)

    def write_file(self, path: str, data: str | bytes,
                   mode: int = 0o644) -> None:
        directory, name = _calls.split_path(path)
        content = data.encode() if isinstance(data, str) else data
        self.put_tar(directory, _calls.tar_of(name, content, mode))

    def get_tar(self, path: str) -> bytes:
        return self._asker.data(_calls.box(self.id, "files", path=path))

    def put_tar(self, path: str, data: bytes,
                no_overwrite: bool = False, owners: bool = False) -> None:
        self._asker.ask(_calls.put_tar(self.id, path, data, no_overwrite,
                                       owners))

    def stat(self, path: str) -> Mapping[str, Any]:
        return dict(self._asker.ask(_calls.box(self.id, "stat", path=path)))

    def changes(self) -> list[Mapping[str, str]]:
        """What differs from its image."""
        return list(self._asker.ask(_calls.box(self.id, "changes"))["changes"])

    def stats(self) -> Mapping[str, Any]:
        return dict(self._asker.ask(_calls.box(self.id, "stats")))

    def top(self) -> list[Mapping[str, Any]]:
        return list(self._asker.ask(_calls.box(self.id, "top"))["processes"])

    def __enter__(self) -> "Box":
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 value: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            self.remove(force=True)
        except CordonError as error:
            if error.status != 404 and kind is None:
                raise


def _run(asker: _Asker, call: Call, on_output: OnOutput | None) -> Result:
    if on_output is None:
        return Result.of(asker.ask(call))
    for line in asker.lines(call):
        if line["event"] == "output":
            on_output(output_of(line))
        elif line["event"] == "result":
            return Result.of(line["result"])
    raise Unreachable("the daemon went before the run's end")


def output_of(line: Mapping[str, Any]) -> Output:
    data = base64.b64decode(line["b64"]) if "b64" in line \
        else line["text"].encode()
    return Output(1 if line["stream"] == "stdout" else 2, data)


class Client:
    """Talks to the daemon at `socket` (default: as the command does).

    Further keywords of `run()` and `create()` are settings, under the names of
    the command line or of docker-py: ``memory="64m"``, ``timeout=5``,
    ``volumes={"/data": {"bind": "/data", "mode": "ro"}}``. The daemon refuses
    what it does not know; the policy decides what may be had.
    """

    def __init__(self, socket: str | None = None,
                 timeout: float | None = None):
        place = Place.find(socket)
        self.socket = place.path
        self._asker = _Asker(place, timeout)

    def version(self) -> str:
        return str(self._asker.ask(Call("GET", "/v1/version"))["version"])

    def info(self) -> Mapping[str, Any]:
        return dict(self._asker.ask(Call("GET", "/v1/info")))

    def events(self, since_ms: int | None = None,
               follow: bool = True) -> Iterator[Mapping[str, Any]]:
        return self._asker.lines(Call("GET", "/v1/events", {
            "since_ms": since_ms, "follow": follow}))

    def run(self, command: Command | None = None, *,
            code: CodeLike | None = None, language: str = "python",
            stdin: str | bytes | None = None, id: str | None = None,
            on_output: OnOutput | None = None, **settings: Any) -> Result:
        """Runs a program, or code, in a box of its own, to its end."""
        return _run(self._asker, _calls.run(
            command=command, code=code, language=language, stdin=stdin,
            ident=id, settings=settings, events=on_output is not None),
            on_output)

    def cancel(self, id: str) -> None:
        """Ends the run with this id; its result says so."""
        self._asker.ask(_calls.cancel(id))

    def create(self, command: Command | None = None, *,
               name: str | None = None, main: bool | None = None,
               start: bool = True, tty: bool = False, stdin: bool = False,
               auto_remove: bool = False, clamp: bool = False,
               kill_exec_rest: bool = False, kill_on_disconnect: bool = False,
               stop_signal: str | None = None, stop_timeout: int | None = None,
               idle_timeout: float | str | None = None,
               life_timeout: float | str | None = None,
               exec_timeout: float | str | None = None,
               extra: Mapping[str, Any] | None = None,
               **settings: Any) -> Box:
        """Makes a box that lives, and starts it. Without a command it has no
        main program and lives until it is stopped."""
        want = dict(
            name=name, main=main, start=start, tty=tty, stdin=stdin,
            auto_remove=auto_remove, clamp=clamp,
            kill_exec_rest=kill_exec_rest,
            kill_on_disconnect=kill_on_disconnect, stop_signal=stop_signal,
            stop_timeout=stop_timeout, idle_timeout=idle_timeout,
            life_timeout=life_timeout, exec_timeout=exec_timeout, extra=extra)
        info = BoxInfo.of(self._asker.ask(
            _calls.create(command, settings, want)))
        return Box(self._asker, info.id, info.name)

    def box(self, ident: str) -> Box:
        """One that is there, by id, the beginning of one, or name."""
        info = BoxInfo.of(self._asker.ask(_calls.box(ident)))
        return Box(self._asker, info.id, info.name)

    def boxes(self, all: bool = False) -> list[BoxInfo]:
        """The caller's, newest first; those that run, or all."""
        answer = self._asker.ask(Call("GET", "/v1/boxes", {"all": all}))
        return [BoxInfo.of(b) for b in answer["boxes"]]

    def images(self) -> list[Mapping[str, Any]]:
        return list(self._asker.ask(Call("GET", "/v1/images")))

    def image(self, name: str) -> Any:
        return self._asker.ask(_calls.image(name))

    def load_images(self, archive: bytes) -> Any:
        """From a docker-save archive or an OCI layout."""
        return self._asker.ask(Call("POST", "/v1/images/load", data=archive))

    def import_image(self, name: str, archive: bytes) -> Any:
        """From the tar of a root file system."""
        return self._asker.ask(Call("POST", "/v1/images/import",
                                    {"name": name}, data=archive))

    def remove_image(self, name: str, force: bool = False) -> Any:
        return self._asker.ask(_calls.image(name, "", "DELETE",
                                            force=force or None))

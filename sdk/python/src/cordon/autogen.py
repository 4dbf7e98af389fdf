# SPDX-License-Identifier: Apache-2.0
"""An executor for AutoGen's agents whose options are real.

Articles show `DockerCommandLineCodeExecutor` with ``mem_limit``,
``network_disabled``, ``read_only``, ``user`` and the like; in AutoGen's own
class these do not exist. Here they do, under the same names, enforced by
Cordon's daemon; what cannot be enforced is refused, nothing is ignored::

    from cordon.autogen import DockerCommandLineCodeExecutor

    executor = DockerCommandLineCodeExecutor(
        image="host", timeout=15, mem_limit="128m", network_disabled=True)

Where `autogen_core` is installed the class is one of its `CodeExecutor`s and
can be dumped and loaded; without it the class works on its own.
"""
from __future__ import annotations

import asyncio
import math
import os
import re
import shutil
import tempfile
import time
import uuid
import warnings as _warnings
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, List, Mapping, Optional, Sequence

from . import _calls
from ._names import Refused, file_name, suffix_of
from .aio import AsyncBox, AsyncClient
from .client import Client
from .errors import CordonError, NotFound
from .types import Code, Result

try:
    from autogen_core import CancellationToken, Component
    from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
    from pydantic import BaseModel, ConfigDict

    HAS_AUTOGEN = True
except ImportError:
    HAS_AUTOGEN = False

__all__ = ["CodeBlock", "CommandLineCodeResult",
           "DockerCommandLineCodeExecutor"]

WORKSPACE = "/workspace"  # the work dir, in the box
GONE = "Code execution was cancelled."

if not HAS_AUTOGEN:
    @dataclass
    class CodeBlock:  # type: ignore[no-redef]
        """A piece of code, as AutoGen's."""

        code: str
        language: str

    @dataclass
    class CodeResult:  # type: ignore[no-redef]
        """How it went, as AutoGen's."""

        exit_code: int
        output: str


@dataclass
class CommandLineCodeResult(CodeResult):  # type: ignore[misc]
    """As AutoGen's: `exit_code`, `output` (both streams, in the order in which
    they came), `code_file` (of the first block). And what Cordon knows: the
    `cause` of the end, both streams apart, one `Result` for each block that
    was run, warnings."""

    code_file: Optional[str] = None
    status: str = "success"
    cause: str = "exited"
    stdout: str = ""
    stderr: str = ""
    runs: List[Result] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)


if HAS_AUTOGEN:
    class DockerCommandLineCodeExecutorConfig(BaseModel):
        """Every argument of the constructor."""

        model_config = ConfigDict(extra="forbid")

        image: str = "host"
        container_name: Optional[str] = None
        timeout: int = 60
        work_dir: Optional[str] = None
        bind_dir: Optional[str] = None
        auto_remove: bool = True
        stop_container: bool = True
        functions_module: str = "functions"
        extra_volumes: dict[str, dict[str, str]] = {}
        extra_hosts: dict[str, str] = {}
        init_command: Optional[str] = None
        delete_tmp_files: bool = False
        mem_limit: Optional[str | int] = None
        cpu_period: Optional[int] = None
        cpu_quota: Optional[int] = None
        cpus: Optional[float] = None
        pids_limit: Optional[int] = None
        network_disabled: bool = True
        allow_hosts: list[str] = []
        read_only: bool = True
        user: Optional[str | int] = None
        tmpfs: dict[str, str] = {}
        environment: dict[str, str] = {}
        security_opt: list[str] = []
        ulimits: list[str] = []
        disk_limit: Optional[str | int] = None
        max_output: Optional[str | int] = None
        hard_output: Optional[str | int] = None
        kill_grace: Optional[str | float] = None
        total_timeout: Optional[str | float] = None
        idle_timeout: Optional[str | float] = 900
        extra_docker_args: dict[str, Any] = {}
        docker_args: list[str] = []
        allow_cwd: bool = False
        socket: Optional[str] = None

    class _Base(CodeExecutor,
                Component[DockerCommandLineCodeExecutorConfig]):
        component_config_schema = DockerCommandLineCodeExecutorConfig
        component_provider_override = (
            "cordon.autogen.DockerCommandLineCodeExecutor")
else:
    class _Base:  # type: ignore[no-redef]
        async def __aenter__(self) -> Any:
            await self.start()  # type: ignore[attr-defined]
            return self

        async def __aexit__(self, kind: type[BaseException] | None,
                            value: BaseException | None,
                            trace: TracebackType | None) -> None:
            await self.stop()  # type: ignore[attr-defined]


_NEVER = {"privileged": "a box never has privileges",
          "cap_add": "a box never has a capability",
          "device": "a box has no device of the host",
          "devices": "a box has no device of the host",
          "device_requests": "a box has no device of the host",
          "gpus": "a box has no device of the host"}


def _check_docker_args(named: Mapping[str, Any],
                       words: Sequence[str]) -> None:
    """By the same names as of the executor's own arguments."""
    asked = dict(named)
    for word in words:
        name, _, value = str(word).partition("=")
        if name.startswith("--"):
            asked[name] = value not in ("false", "0")
    for name, value in asked.items():
        plain = name.lstrip("-").replace("-", "_")
        if plain in _NEVER:
            _refuse(plain, value, _NEVER[plain])


def _refuse(name: str, value: Any, why: str) -> None:
    if value:
        raise ValueError(f"{name} is refused: {why}")


class DockerCommandLineCodeExecutor(_Base):
    """Runs code blocks in a box of Cordon's.

    With `start()` (or ``async with``) one box lives until `stop()`, and files
    in the work dir stay between blocks; what a block leaves running is ended
    with it. `execute()` and `run()` are synchronous, and where nothing was
    started each call has a fresh box of its own.

    Args:
        image: An image in Cordon's store; ``host`` is this machine's /usr.
        container_name: The box's name; one that is there is replaced.
        timeout: Seconds for each block, at least 1.
        work_dir: A directory of the host, at /workspace in the box; made if
            it is missing; a private one, removed at the end, if not given.
            ``"/workspace"`` is the path inside, as some articles have it.
        bind_dir: The same directory as the daemon sees it.
        auto_remove, remove: The box is gone after `stop()`.
        stop_container: False leaves the box running, until its idle time.
        volumes, extra_volumes: ``{host: {"bind": path, "mode": "ro"}}``;
            read-only unless ``rw`` is said.
        extra_hosts: Names for /etc/hosts.
        init_command: Run by sh when the box has started; if it fails, so does
            `start()`.
        delete_tmp_files: The files of the blocks are removed after the call.
        mem_limit, cpu_period, cpu_quota, cpus, pids_limit, disk_limit,
        ulimits, max_output, hard_output: Limits, as in docker-py.
        network_disabled: True; there is no open network.
        allow_hosts: ``["api.example.org:443"]``: hosts to reach all the same,
            of those that the daemon's policy allows.
        read_only: Whether the box's root is.
        user: Who the code is, by number or by a name of the image.
        tmpfs, environment, security_opt: As in docker-py.
        kill_grace, total_timeout, idle_timeout: Times, in seconds.
        extra_docker_args: ``{"pids-limit": 128}``; docker_args: ``["--memory",
            "64m"]``. An option that is not known is an error.
        allow_cwd: Whether the current directory may be the work dir.
        socket: Where the daemon listens.
        functions, device_requests, devices, privileged, cap_add: refused.
    """

    SUPPORTED_LANGUAGES = ["bash", "shell", "sh", "pwsh", "powershell", "ps1",
                           "python"]

    def __init__(
            self, image: str = "host", container_name: Optional[str] = None,
            *, timeout: int = 60,
            work_dir: Optional[str | Path] = None,
            bind_dir: Optional[str | Path] = None,
            auto_remove: Optional[bool] = None, remove: Optional[bool] = None,
            stop_container: bool = True,
            device_requests: Optional[Sequence[Any]] = None,
            functions: Sequence[Any] = (), functions_module: str = "functions",
            extra_volumes: Optional[Mapping[str, Mapping[str, str]]] = None,
            volumes: Optional[Mapping[str, Mapping[str, str]]] = None,
            extra_hosts: Optional[Mapping[str, str]] = None,
            init_command: Optional[str] = None,
            delete_tmp_files: bool = False,
            mem_limit: Optional[str | int] = None,
            cpu_period: Optional[int] = None, cpu_quota: Optional[int] = None,
            cpus: Optional[float] = None, pids_limit: Optional[int] = None,
            network_disabled: bool = True, allow_hosts: Sequence[str] = (),
            read_only: bool = True,
            user: Optional[str | int] = None,
            tmpfs: Optional[Mapping[str, str]] = None,
            environment: Optional[Mapping[str, str]] = None,
            security_opt: Sequence[str] = (), ulimits: Sequence[str] = (),
            disk_limit: Optional[str | int] = None,
            max_output: Optional[str | int] = None,
            hard_output: Optional[str | int] = None,
            kill_grace: Optional[str | float] = None,
            total_timeout: Optional[str | float] = None,
            idle_timeout: Optional[str | float] = 900,
            extra_docker_args: Optional[Mapping[str, Any]] = None,
            docker_args: Sequence[str] = (), allow_cwd: bool = False,
            privileged: bool = False, cap_add: Sequence[str] = (),
            devices: Sequence[str] = (), socket: Optional[str] = None):
        if timeout < 1:
            raise ValueError("Timeout must be greater than or equal to 1.")
        if not functions_module.isidentifier():
            raise ValueError("Module name must be a valid Python identifier")
        if auto_remove is not None and remove is not None and \
                auto_remove != remove:
            raise ValueError("remove and auto_remove are the same; say one")
        _refuse("privileged", privileged, "a box never has privileges")
        _refuse("cap_add", cap_add, "a box never has a capability")
        _refuse("devices", devices, "a box has no device of the host")
        _check_docker_args(extra_docker_args or {}, docker_args)
        _refuse("device_requests", device_requests,
                "a box has no device of the host")
        _refuse("functions", functions, "function modules come later; put "
                "the functions into the code")
        _refuse("network_disabled=False", not network_disabled,
                "there is no open network; allow_hosts names hosts")
        if isinstance(allow_hosts, str):
            raise TypeError("allow_hosts is a list of hosts")
        self._image, self._timeout = image, timeout
        self.container_name = container_name or \
            f"autogen-code-exec-{uuid.uuid4()}"
        self._auto_remove = True if auto_remove is None and remove is None \
            else bool(remove if auto_remove is None else auto_remove)
        self._stop_container, self._init_command = stop_container, init_command
        self._delete_tmp_files = delete_tmp_files
        self._functions_module = functions_module
        self._volumes = _check_volumes(
            {**(volumes or {}), **(extra_volumes or {})})
        self._extra_hosts = dict(extra_hosts or {})
        self._kill_grace, self._total_timeout = kill_grace, total_timeout
        self._total_s = _seconds(total_timeout)
        self._idle_timeout, self._socket = idle_timeout, socket
        self._allow_cwd = allow_cwd
        self._plain: dict[str, Any] = {
            "mem_limit": mem_limit, "cpu_period": cpu_period,
            "cpu_quota": cpu_quota, "cpus": cpus, "pids_limit": pids_limit,
            "network_disabled": network_disabled,
            "allow_hosts": list(allow_hosts), "read_only": read_only,
            "user": user, "tmpfs": dict(tmpfs or {}),
            "environment": dict(environment or {}),
            "security_opt": list(security_opt), "ulimits": list(ulimits),
            "disk_limit": disk_limit, "max_output": max_output,
            "hard_output": hard_output,
            "extra_docker_args": dict(extra_docker_args or {}),
            "docker_args": list(docker_args)}
        self._work_dir = self._check_work_dir(work_dir)
        self._bind_dir = Path(bind_dir) if bind_dir is not None else None
        self._private: Optional[Path] = None
        self._client = AsyncClient(socket)
        self._box: Optional[AsyncBox] = None
        self._lock: Optional[asyncio.Lock] = None

    def _check_work_dir(self, work_dir: Optional[str | Path]
                        ) -> Optional[Path]:
        if work_dir is None or str(work_dir) == WORKSPACE:
            return None
        path = Path(work_dir)
        if path.resolve() == Path.cwd().resolve():
            if not self._allow_cwd:
                raise ValueError("the current directory as work_dir needs "
                                 "allow_cwd=True: code could change all in it")
            _warnings.warn("the current directory is the work dir: code can "
                           "change all in it", UserWarning, stacklevel=3)
        path.mkdir(parents=True, exist_ok=True)
        return path

    # what it is

    @property
    def timeout(self) -> int:
        """Seconds for each block."""
        return self._timeout

    @property
    def work_dir(self) -> Path:
        """On the host. A private one is there only between start and stop."""
        path = self._work_dir or self._private
        if path is None:
            raise RuntimeError("Working directory not properly initialized: "
                               "the executor must first be started")
        return path

    @property
    def bind_dir(self) -> Path:
        """The work dir, as the daemon sees it."""
        return self._bind_dir or self.work_dir

    def _settings(self) -> dict[str, Any]:
        """For the daemon, which enforces or refuses each of them."""
        settings = {k: v for k, v in self._plain.items()
                    if v not in (None, {}, [])}
        for ours, theirs in (("environment", "env"),
                             ("allow_hosts", "allow_host"),
                             ("max_output", "output_limit")):
            if ours in settings:
                settings[theirs] = settings.pop(ours)
        if "allow_host" in settings:  # "disabled" would be: not even these
            del settings["network_disabled"]
        settings["image"] = self._image
        if self._kill_grace is not None:
            settings["kill_grace"] = _time(self._kill_grace)
        if self._extra_hosts:
            settings["extra_hosts"] = [f"{name}:{address}" for name, address
                                       in self._extra_hosts.items()]
        volumes = self._mounts()
        if volumes:
            settings["volumes"] = volumes
        return settings

    def _mounts(self) -> dict[str, dict[str, str]]:
        mounts: dict[str, dict[str, str]] = {}
        here = self._work_dir or self._private
        if here is not None:
            mounts[os.path.abspath(self.bind_dir)] = {
                "bind": WORKSPACE, "mode": "rw"}
        for source, how in self._volumes.items():
            mounts[os.path.abspath(source)] = {
                "bind": how["bind"], "mode": how.get("mode", "ro")}
            self._make_point(how["bind"], source, here)
        return mounts

    @staticmethod
    def _make_point(target: str, source: str, here: Optional[Path]) -> None:
        """A mount inside the work dir needs a place there."""
        place = PurePosixPath(target)
        if here is None or PurePosixPath(WORKSPACE) not in place.parents:
            return
        path = here / place.relative_to(WORKSPACE)
        if os.path.isdir(source):
            path.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    # its life

    async def start(self) -> None:
        """One box, until `stop()`. An error if it does not come up: there is
        no other place where the code could run."""
        await self._remove_box()
        if self._work_dir is None and self._private is None:
            self._private = Path(tempfile.mkdtemp(prefix="cordon-"))
        try:
            try:
                await (await self._client.box(
                    self.container_name)).remove(force=True)
            except NotFound:
                pass
            self._box = await self._client.create(
                name=self.container_name, main=False, start=True,
                auto_remove=self._auto_remove, kill_exec_rest=True,
                kill_on_disconnect=True, idle_timeout=self._idle_timeout,
                **self._settings())
            self._lock = asyncio.Lock()
            await self._initialise()
        except BaseException:
            await self._remove_box()
            self._remove_private()
            raise

    async def _initialise(self) -> None:
        if not self._init_command or self._box is None:
            return
        done = await self._box.run(["sh", "-c", self._init_command],
                                   timeout=self._timeout)
        if not done.ok:
            raise RuntimeError(
                f"init_command failed ({done.cause}, exit code "
                f"{done.exit_code}): {done.stdout}{done.stderr}"
                f"{done.message}")

    async def stop(self) -> None:
        """Ends the box and what runs in it; the private work dir goes after
        it. Does nothing if there is none."""
        if self._box is None:
            return
        if not self._stop_container:
            self._box = None  # it lives on, and so does its work dir
            return
        if self._auto_remove:
            await self._remove_box()
        else:
            box, self._box = self._box, None
            await box.stop(timeout=0)
        self._remove_private()

    async def restart(self) -> None:
        """A new box with the same settings and work dir."""
        self._must_run()
        await self.start()

    async def _remove_box(self) -> None:
        box, self._box = self._box, None
        if box is None:
            return
        try:
            await box.remove(force=True)
        except NotFound:
            pass

    def _remove_private(self) -> None:
        if self._private is not None:
            shutil.rmtree(self._private)
            self._private = None

    def _must_run(self) -> AsyncBox:
        if self._box is None:
            raise ValueError("Container is not running: it must first be "
                             "started with either start or a context "
                             "manager.")
        return self._box

    # running

    def _plan(self, blocks: Sequence[Any]) -> list[Code]:
        """All are looked at before any runs. Raises `Refused`."""
        if not blocks:
            raise ValueError("No code blocks to execute.")
        plan = []
        for block in blocks:
            if suffix_of(block.language) is None:
                raise Refused(f"unknown language {block.language}")
            plan.append(Code(block.code, block.language,
                             file_name(block.language, block.code)))
        return plan

    @staticmethod
    def _refused(why: Refused) -> CommandLineCodeResult:
        unknown = str(why).startswith("unknown language")
        return CommandLineCodeResult(
            exit_code=127 if unknown else 1, output=str(why), status="error",
            cause="not_found" if unknown else "denied")

    async def execute_code_blocks(
            self, code_blocks: List[Any],
            cancellation_token: Optional[Any] = None) -> CommandLineCodeResult:
        """Runs the blocks in order, up to the first that fails."""
        box = self._must_run()
        assert self._lock is not None
        try:
            plan = self._plan(code_blocks)
        except Refused as why:
            return self._refused(why)
        runs: list[Result] = []
        started: list[Code] = []
        async with self._lock:
            end = time.monotonic() + self._total_s
            try:
                for code in plan:
                    started.append(code)
                    runs.append(await self._run_block(
                        box, code, cancellation_token,
                        end - time.monotonic()))
                    if not runs[-1].ok:
                        break
            finally:
                notes = self._delete_files(started)
        return self._collect(runs, plan, notes)

    async def _run_block(self, box: AsyncBox, code: Code,
                         token: Optional[Any], left: float) -> Result:
        """A cancel may come from any thread; the answer comes when nothing of
        the run is left. `left`: seconds of all blocks together."""
        if left <= 0:
            return _timed_out()
        loop = asyncio.get_running_loop()
        told = asyncio.Event()
        ident = _calls.new_id()
        if token is not None:
            if token.is_cancelled():
                return _cancelled()
            token.add_callback(lambda: loop.call_soon_threadsafe(told.set))
        run = asyncio.ensure_future(box.run(
            code=code, timeout=min(self._timeout, left), id=ident))
        wait = asyncio.ensure_future(told.wait())
        try:
            await asyncio.wait({run, wait},
                               return_when=asyncio.FIRST_COMPLETED)
            while not run.done():
                await self._cancel(ident)
                await asyncio.wait({run}, timeout=0.2)
            return await run
        finally:
            wait.cancel()
            run.cancel()

    async def _cancel(self, ident: str) -> None:
        try:
            await self._client.cancel(ident)
        except NotFound:
            pass  # not yet begun, or over

    def _delete_files(self, started: Sequence[Code]) -> list[str]:
        """Removes them without following a link; what stays is a warning."""
        notes = []
        if not self._delete_tmp_files:
            return notes
        for code in started:
            assert code.filename is not None
            try:
                _unlink_below(self.work_dir, code.filename)
            except FileNotFoundError:
                pass
            except OSError as error:
                notes.append(f"'{code.filename}' could not be deleted: "
                             f"{error.strerror}")
        for note in notes:
            _warnings.warn(note, UserWarning, stacklevel=3)
        return notes

    def _collect(self, runs: Sequence[Result], plan: Sequence[Code],
                 notes: list[str]) -> CommandLineCodeResult:
        last = runs[-1]
        place = self._work_dir or self._private
        name = plan[0].filename or ""
        return CommandLineCodeResult(
            exit_code=last.exit_code, output="".join(map(_text, runs)),
            code_file=str(place / name) if place else f"{WORKSPACE}/{name}",
            status=last.status, cause=last.cause,
            stdout="".join(r.stdout for r in runs),
            stderr="".join(r.stderr for r in runs), runs=list(runs),
            warnings=[w for r in runs for w in r.warnings] + notes)

    # as in the articles

    def execute(self, code: str,
                language: str = "python") -> CommandLineCodeResult:
        """Runs one piece of code, synchronously."""
        try:
            plan = self._plan([CodeBlock(code=code, language=language)])
        except Refused as why:
            return self._refused(why)
        result = self._run_now(code=plan)
        return self._collect([result], plan, self._delete_files(plan)
                             if self._work_dir or self._private else [])

    def run(self, cmd: Sequence[str],
            timeout: Optional[float] = None) -> Result:
        """Runs a program, synchronously; `stdout` and `stderr` are text."""
        return self._run_now(command=list(cmd), timeout=timeout)

    def _run_now(self, timeout: Optional[float] = None,
                 **what: Any) -> Result:
        client = Client(self._client.socket)
        seconds = self._timeout if timeout is None else timeout
        if self._box is not None:
            return client.box(self._box.id).run(
                timeout=min(seconds, self._total_s), **what)
        settings = self._settings()
        if self._total_timeout is not None:
            settings["total_timeout"] = _time(self._total_timeout)
        return client.run(**what, **{**settings, "timeout": seconds})

    # as data

    def _to_config(self) -> Any:
        plain = dict(self._plain)
        return DockerCommandLineCodeExecutorConfig(
            image=self._image, container_name=self.container_name,
            timeout=self._timeout,
            work_dir=str(self._work_dir) if self._work_dir else None,
            bind_dir=str(self._bind_dir) if self._bind_dir else None,
            auto_remove=self._auto_remove,
            stop_container=self._stop_container,
            functions_module=self._functions_module,
            extra_volumes={k: dict(v) for k, v in self._volumes.items()},
            extra_hosts=self._extra_hosts, init_command=self._init_command,
            delete_tmp_files=self._delete_tmp_files,
            kill_grace=self._kill_grace, total_timeout=self._total_timeout,
            idle_timeout=self._idle_timeout, allow_cwd=self._allow_cwd,
            socket=self._socket, **plain)

    @classmethod
    def _from_config(cls, config: Any) -> "DockerCommandLineCodeExecutor":
        return cls(**config.model_dump())


def _check_volumes(volumes: Mapping[str, Mapping[str, str]]
                   ) -> Mapping[str, Mapping[str, str]]:
    for source, how in volumes.items():
        if set(how) - {"bind", "mode"} or "bind" not in how or \
                how.get("mode", "ro") not in ("ro", "rw"):
            raise ValueError(f"volumes: '{source}' takes "
                             '{"bind": PATH, "mode": "ro" or "rw"}')
    return volumes


def _time(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value}s"


def _seconds(value: Optional[str | float]) -> float:
    """A time as a number of seconds; none is a time without an end."""
    if value is None:
        return math.inf
    if not isinstance(value, str):
        return float(value)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)?", value.strip())
    if not match:
        raise ValueError(f"'{value}' is not a time such as 30s, 500ms or 2m")
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
    return float(match[1]) * unit[match[2] or "s"]


def _text(run: Result) -> str:
    """Nothing that ran, and no output: the reason is all there is to say."""
    if run.output or run.cause in ("exited", "signal"):
        return run.output
    return run.message


def _cancelled() -> Result:
    return Result(status="error", cause="cancelled", exit_code=130,
                  output=GONE, message=GONE)


def _timed_out() -> Result:
    return Result(status="timeout", cause="timeout", exit_code=124,
                  output="\nTimeout", message="the time of all blocks is over")


def _unlink_below(top: Path, name: str) -> None:
    """Removes a file below a directory; a link on the way is an error."""
    parts = name.split("/")
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_PATH | os.O_CLOEXEC
    at = os.open(top, os.O_DIRECTORY | os.O_PATH | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = os.open(part, flags, dir_fd=at)
            os.close(at)
            at = below
        os.unlink(parts[-1], dir_fd=at)
    finally:
        os.close(at)

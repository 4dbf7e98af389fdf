# SPDX-License-Identifier: Apache-2.0
"""Documents of the daemon as values. What a newer daemon adds is in `raw`."""
from __future__ import annotations

import base64
from dataclasses import dataclass, field, fields
from typing import Any, Mapping, TypeVar

T = TypeVar("T", bound="_Document")


@dataclass(frozen=True)
class _Document:
    @classmethod
    def of(cls: type[T], document: Mapping[str, Any]) -> T:
        names = {f.name for f in fields(cls)} - {"raw"}
        known = {k: v for k, v in document.items()
                 if k in names and v is not None}
        return cls(**cls._convert(known), raw=document)

    @classmethod
    def _convert(cls, known: dict[str, Any]) -> dict[str, Any]:
        return known


@dataclass(frozen=True)
class File(_Document):
    """A file of the workspace that a run made or changed."""

    path: str = ""
    size: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Denial(_Document):
    """What a program tried and must not."""

    layer: str = ""
    what: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


def _bytes(document: Mapping[str, Any], name: str) -> bytes:
    exact = document.get(name + "_b64")
    if exact is not None:
        return base64.b64decode(exact)
    return str(document.get(name, "")).encode()


@dataclass(frozen=True)
class Result(_Document):
    """How a run ended: the result document, cordon-result(5).

    `status` is success, error, timeout or resource_exceeded; `cause` says
    which: exited, signal, timeout, cpu, memory, pids, disk, output, denied,
    cancelled, not_found, invalid, setup, lost. It was observed, not guessed
    from the exit code.
    """

    id: str = ""
    status: str = "error"
    cause: str = "lost"
    exit_code: int = 125
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated: bool = False
    execution_time_ms: int = 0
    cpu_time_ms: int = 0
    memory_used_mb: float = 0.0
    peak_pids: int = 0
    events: Mapping[str, int] = field(default_factory=dict)
    code_file: str | None = None
    message: str = ""
    cancel_reason: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[File, ...] = ()
    denials: tuple[Denial, ...] = ()
    not_enforced: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    output: str = ""
    runs: tuple["Result", ...] = ()
    skipped: tuple[Any, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def _convert(cls, known: dict[str, Any]) -> dict[str, Any]:
        each = {"files": File.of, "denials": Denial.of, "runs": Result.of}
        for name in ("files", "denials", "runs", "not_enforced", "warnings",
                     "skipped"):
            if name in known:
                make = each.get(name, lambda item: item)
                known[name] = tuple(make(item) for item in known[name])
        return known

    @property
    def ok(self) -> bool:
        """The program ended by itself, with 0."""
        return self.status == "success"

    @property
    def stdout_data(self) -> bytes:
        """What was kept of the stream, byte by byte."""
        return _bytes(self.raw, "stdout")

    @property
    def stderr_data(self) -> bytes:
        """As `stdout_data`."""
        return _bytes(self.raw, "stderr")


@dataclass(frozen=True)
class BoxInfo(_Document):
    """All about a box, as it was when it was asked for."""

    id: str = ""
    name: str = ""
    state: str = ""
    owner: int = 0
    face: str = ""
    image: str = ""
    command: list[str] = field(default_factory=list)
    created_ms: int | None = None
    started_ms: int | None = None
    finished_ms: int | None = None
    exit_code: int | None = None
    cause: str | None = None
    error: str | None = None
    oom_killed: bool = False
    pid: int | None = None
    restarts: int = 0
    tty: bool = False
    stdin: bool = False
    auto_remove: bool = False
    execs: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    clamped: list[Any] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ExecInfo(_Document):
    """A program that was started in a box."""

    id: str = ""
    box: str = ""
    running: bool = False
    exit_code: int | None = None
    cause: str | None = None
    pid: int | None = None
    command: list[str] = field(default_factory=list)
    user: str = ""
    tty: bool = False
    started_ms: int | None = None
    finished_ms: int | None = None
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    dropped_bytes: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Output:
    """Some bytes of a program: `stream` is 1 (stdout) or 2 (stderr)."""

    stream: int
    data: bytes


@dataclass(frozen=True)
class Code:
    """A piece of code to run. The name of its file is made up if not given."""

    code: str
    language: str = "python"
    filename: str | None = None

    def document(self) -> dict[str, str]:
        """As the daemon takes it."""
        out = {"language": self.language, "code": self.code}
        if self.filename is not None:
            out["filename"] = self.filename
        return out

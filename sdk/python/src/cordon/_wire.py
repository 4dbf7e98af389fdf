# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as the daemon speaks it on its unix socket, without any input or
output of its own: what a request looks like, what an answer's head and a
frame say. The two clients differ only in how they read and write.
"""
from __future__ import annotations

import json
import os
import socket
import struct
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Protocol
from urllib.parse import quote, urlencode

from .errors import CordonError, Unreachable, error_of
from .types import Output

FRAMED = "application/vnd.docker.multiplexed-stream"
FRAME_HEAD = 8
MAX_HEAD = 64 << 10


@dataclass(frozen=True)
class Place:
    """Where the daemon listens: as named, else CORDON_SOCKET, else the runtime
    directory's, else the system's."""

    path: str
    is_named: bool

    @classmethod
    def find(cls, named: str | None) -> Place:
        named = named or os.environ.get("CORDON_SOCKET")
        return cls(named, True) if named else cls(_usual_socket(), False)

    def check(self, sock: Socket) -> None:
        """At one that nobody named only root or this user is spoken to: in
        /tmp anybody may have made it. The kernel knows who called listen(2).
        The system's socket is not tried instead: somebody should look."""
        if self.is_named:
            return
        form = struct.Struct("iII")
        pid, uid, _ = form.unpack(sock.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, form.size))
        if uid not in (0, os.geteuid()):
            raise Unreachable(
                f"user {uid} listens at '{self.path}' (process {pid}), "
                "neither you nor root: nothing was sent; if that is meant, "
                "name the socket, or set CORDON_SOCKET")


class Socket(Protocol):
    """A socket, or what asyncio shows of one."""

    def getsockopt(self, level: int, name: int, size: int, /) -> bytes: ...


def _usual_socket() -> str:
    own = os.environ.get("CORDON_RUNTIME_DIR")
    xdg = os.environ.get("XDG_RUNTIME_DIR")
    if own:
        place = own
    elif os.geteuid() == 0:
        place = "/run/cordon"
    elif xdg:
        place = xdg + "/cordon"
    else:
        place = f"/tmp/cordon-{os.geteuid()}"
    path = place + "/cordon.sock"
    system = "/run/cordon/cordon.sock"
    return path if own or os.path.exists(path) else (
        system if os.path.exists(system) else path)


@dataclass(frozen=True)
class Call:
    """One request: what is sent, and whether the connection becomes a pipe."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None  # as JSON
    data: bytes | None = None  # or these bytes, a tar
    upgrade: bool = False

    def encode(self) -> bytes:
        target = self.path
        query = {k: _query(v) for k, v in self.query.items() if v is not None}
        if query:
            target += "?" + urlencode(query)
        head = [f"{self.method} {target} HTTP/1.1", "Host: cordon"]
        content = b""
        if self.body is not None:
            content = json.dumps(self.body).encode()
            head.append("Content-Type: application/json")
        elif self.data is not None:
            content = self.data
            head.append("Content-Type: application/x-tar")
        if content or self.method in ("POST", "PUT"):
            head.append(f"Content-Length: {len(content)}")
        if self.upgrade:
            head += ["Connection: Upgrade", "Upgrade: tcp"]
        else:
            head.append("Connection: close")
        return "\r\n".join(head + ["", ""]).encode() + content


def _query(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def segment(text: str) -> str:
    """As a part of a path."""
    return quote(text, safe="")


@dataclass
class Head:
    """The first lines of an answer."""

    status: int
    headers: dict[str, str]

    @property
    def is_chunked(self) -> bool:
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    @property
    def length(self) -> int | None:
        text = self.headers.get("content-length")
        return int(text) if text is not None else None

    @property
    def is_framed(self) -> bool:
        return self.headers.get("content-type", "").startswith(FRAMED)

    @property
    def has_body(self) -> bool:
        return self.status not in (101, 204, 304)


def parse_head(lines: list[bytes]) -> Head:
    if not lines:
        raise Unreachable("the daemon closed the connection without an answer")
    parts = lines[0].split(None, 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") \
            or not parts[1].isdigit():
        raise Unreachable("what listens there does not speak HTTP")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return Head(int(parts[1]), headers)


def parse_chunk_size(line: bytes) -> int:
    try:
        return int(line.split(b";")[0], 16)
    except ValueError:
        raise Unreachable("a chunk of the answer has no size") from None


def parse_frame(head: bytes) -> tuple[int, int]:
    """Stream and length."""
    stream, length = struct.unpack(">BxxxI", head)
    if stream not in (1, 2):
        raise Unreachable(f"a frame of stream {stream}")
    return stream, length


class Frames:
    """Cuts the parts of a body into output; without frames all is of
    stream 1, as it comes."""

    def __init__(self, is_framed: bool):
        self.is_framed, self.rest = is_framed, b""

    def cut(self, part: bytes) -> Iterator[Output]:
        if not self.is_framed:
            yield Output(1, part)
            return
        self.rest += part
        while len(self.rest) >= FRAME_HEAD:
            stream, length = parse_frame(self.rest[:FRAME_HEAD])
            end = FRAME_HEAD + length
            if len(self.rest) < end:
                break
            yield Output(stream, self.rest[FRAME_HEAD:end])
            self.rest = self.rest[end:]


def decode(head: Head, body: bytes) -> Any:
    """The answer's document, or the exception that it is."""
    document: Any = None
    if body:
        try:
            document = json.loads(body)
        except ValueError:
            if head.status < 400:
                raise CordonError("the answer is no JSON", "internal",
                                  head.status) from None
    if head.status >= 400:
        raise error_of(head.status, document)
    return document

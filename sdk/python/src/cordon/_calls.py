# SPDX-License-Identifier: Apache-2.0
"""Every request of the daemon's own API (api/openapi.yaml) as a value."""
from __future__ import annotations

import base64
import io
import secrets
import tarfile
import time
from typing import Any, Mapping, Sequence

from ._wire import Call, segment
from .errors import CordonError, NotFound
from .types import Code

Command = Sequence[str]
CodeLike = str | Code | Sequence[Code]


def new_id() -> str:
    """An id for a run, of the client's choice."""
    return secrets.token_hex(16)


def blocks(code: CodeLike, language: str) -> list[dict[str, str]]:
    if isinstance(code, str):
        code = Code(code, language)
    if isinstance(code, Code):
        code = [code]
    return [block.document() for block in code]


def clean(document: Mapping[str, Any]) -> dict[str, Any]:
    """Without what was not given."""
    return {k: v for k, v in document.items() if v is not None}


def command_list(command: Command | None) -> list[str] | None:
    if isinstance(command, str):
        raise TypeError("a command is a list of words; no shell reads it "
                        "(['sh', '-c', text] has one)")
    return list(command) if command is not None else None


def run(*, command: Command | None, code: CodeLike | None, language: str,
        stdin: str | bytes | None, ident: str | None, box: str | None = None,
        settings: Mapping[str, Any] | None = None, events: bool = False,
        env: Mapping[str, str] | None = None, workdir: str | None = None,
        timeout: Any = None) -> Call:
    if (command is None) == (code is None):
        raise TypeError("either a command or code")
    body = clean({
        "id": ident, "box": box, "command": command_list(command),
        "code": blocks(code, language) if code is not None else None,
        "settings": clean(settings) if settings else None,
        "env": pairs(env), "workdir": workdir, "timeout": timeout,
        "events": events or None})
    if isinstance(stdin, bytes):
        body["stdin_b64"] = base64.b64encode(stdin).decode()
    elif stdin is not None:
        body["stdin"] = stdin
    return Call("POST", "/v1/run", body=body)


def pairs(env: Mapping[str, str] | None) -> list[str] | None:
    return [f"{k}={v}" for k, v in env.items()] if env else None


def cancel(ident: str) -> Call:
    return Call("DELETE", f"/v1/runs/{segment(ident)}")


def create(command: Command | None, settings: Mapping[str, Any],
           want: Mapping[str, Any]) -> Call:
    body = clean({**want, "command": command_list(command)})
    if settings:
        body["settings"] = clean(settings)
    return Call("POST", "/v1/boxes", body=body)


def box(ident: str, verb: str = "", method: str = "GET",
        **query: Any) -> Call:
    path = f"/v1/boxes/{segment(ident)}" + (f"/{verb}" if verb else "")
    return Call(method, path, query)


def execute(ident: str, want: Mapping[str, Any]) -> Call:
    return Call("POST", f"/v1/boxes/{segment(ident)}/execs",
                body=clean(want), upgrade=not want.get("detach"))


def exec_want(command: Command | None, code: CodeLike | None, language: str,
              env: Mapping[str, str] | None, **more: Any) -> dict[str, Any]:
    if (command is None) == (code is None):
        raise TypeError("either a command or code")
    return clean({"command": command_list(command), "env": pairs(env),
                  "code": blocks(code, language) if code is not None else None,
                  **more})


def one(ident: str, verb: str = "", method: str = "GET",
        upgrade: bool = False, **query: Any) -> Call:
    """A program that was started in a box."""
    path = f"/v1/execs/{segment(ident)}" + (f"/{verb}" if verb else "")
    return Call(method, path, query, upgrade=upgrade)


def image(name: str, verb: str = "", method: str = "GET",
          **query: Any) -> Call:
    parts = "/".join(segment(part) for part in name.split("/"))
    return Call(method, f"/v1/images/{parts}" + (f"/{verb}" if verb else ""),
                query)


def put_tar(ident: str, path: str, data: bytes, no_overwrite: bool,
            owners: bool) -> Call:
    return Call("PUT", f"/v1/boxes/{segment(ident)}/files",
                {"path": path, "no_overwrite": no_overwrite or None,
                 "owners": owners or None},
                data=data)


def tar_of(name: str, data: bytes, mode: int) -> bytes:
    """One file as a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = len(data), mode, int(time.time())
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def file_of(data: bytes, path: str) -> bytes:
    """The one file that a tar holds."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            if member.isreg():
                found = tar.extractfile(member)
                assert found is not None
                return found.read()
            raise CordonError(f"'{path}' is not a regular file", "invalid")
    raise NotFound(f"'{path}' is not there", "no_file", 404)


def split_path(path: str) -> tuple[str, str]:
    """Directory and name."""
    directory, _, name = path.rpartition("/")
    if not name or name in (".", ".."):
        raise ValueError(f"'{path}' names no file")
    return directory or "/", name

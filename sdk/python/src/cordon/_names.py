# SPDX-License-Identifier: Apache-2.0
"""Languages, and the file that a piece of code is kept in.

The daemon knows all of this too and has the last word. Here it is known ahead,
so that a list of blocks is looked at whole before the first of them runs.
"""
from __future__ import annotations

import re
from hashlib import sha256

SUFFIXES = {
    "python": ".py", "py": ".py", "python3": ".py", "sh": ".sh",
    "shell": ".sh", "bash": ".sh", "powershell": ".ps1", "pwsh": ".ps1",
    "ps1": ".ps1", "javascript": ".js", "js": ".js", "node": ".js",
    "perl": ".pl", "ruby": ".rb", "r": ".R", "lua": ".lua", "php": ".php",
    "c": ".c", "c++": ".cc", "cpp": ".cc", "cxx": ".cc", "go": ".go",
    "rust": ".rs", "rs": ".rs",
}
_DIRECTIVE = re.compile(r"\s*(?:#|//|--|;)\s*filename:(.*)", re.IGNORECASE)


class Refused(Exception):
    """The block does not run; the text is for the caller."""


def suffix_of(language: str) -> str | None:
    """The ending of a file in this language; None: it is not known."""
    name = language.strip().lower()
    if re.fullmatch(r"python3\.\d{1,3}", name):
        return ".py"
    return SUFFIXES.get(name)


def file_name(language: str, code: str) -> str:
    """Where a block is kept, below the work dir: what its first line says, or
    a name made of its content. Raises `Refused`."""
    first = re.split(r"\r\n|\r|\n", code, maxsplit=1)[0]
    match = _DIRECTIVE.fullmatch(first)
    if match:
        return check_name(match.group(1).strip())
    content = language.strip().lower().encode() + b"\0" + \
        code.encode("utf-8", "surrogatepass")
    return f"code_{sha256(content).hexdigest()[:16]}{suffix_of(language)}"


def check_name(name: str) -> str:
    """The name as it is used. Raises `Refused`."""
    parts = []
    if name.startswith("/"):
        raise Refused("Filename is not in the workspace")
    if not name or name.endswith("/"):
        raise Refused("Filename is not valid: it names no file")
    if any(ord(c) < 32 or ord(c) == 127 for c in name):
        raise Refused("Filename is not valid: control character")
    for part in name.split("/"):
        if part == "..":
            if not parts:
                raise Refused("Filename is not in the workspace")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if not parts:
        raise Refused("Filename is not valid: it names no file")
    if len(parts) > 16 or len(name.encode()) > 4096 or \
            any(len(part.encode()) > 255 for part in parts):
        raise Refused("Filename is not valid: too long")
    return "/".join(parts)

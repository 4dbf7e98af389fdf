# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a caller and the daemon.

How a program in a box ended is never an exception; it is in the `Result`.
"""
from __future__ import annotations

from typing import Any


class CordonError(Exception):
    """The daemon's answer was an error.

    `code` is its word for it (``not_found``, ``denied`` ...), `status` the
    HTTP status; 0 where no answer came.
    """

    def __init__(self, message: str, code: str = "internal", status: int = 0):
        super().__init__(message)
        self.code, self.status = code, status


class Unreachable(CordonError):
    """No daemon listens there, or the connection broke."""


class Invalid(CordonError):
    """The request is wrong in itself; nothing was done."""


class Denied(CordonError):
    """The policy says no; the message names the rule."""


class NotFound(CordonError):
    """No such box, program, image or file; or the box is lost."""


class Conflict(CordonError):
    """Not in the state that it has: running, stopped, name taken."""


class Busy(CordonError):
    """The daemon has as much to do as it is allowed to; try later."""


class Unsupported(CordonError):
    """Not in this build."""


_CLASSES = {400: Invalid, 403: Denied, 404: NotFound, 409: Conflict,
            410: NotFound, 413: Invalid, 501: Unsupported, 503: Busy}


def error_of(status: int, body: Any) -> CordonError:
    """The exception for an answer with this status and JSON body."""
    error = body.get("error", {}) if isinstance(body, dict) else {}
    message = error.get("message") or f"the daemon answered with {status}"
    return _CLASSES.get(status, CordonError)(
        message, error.get("code", "internal"), status)

# SPDX-License-Identifier: Apache-2.0
"""Cordon runs code that nobody has read yet inside a box: no network, no host
files, no privileges, bounded memory, processors, processes, disk and time.

This package talks to the daemon (``cordon serve``) over its unix socket and
needs nothing but the standard library::

    import cordon

    result = cordon.Client().run(code="print(6 * 7)", memory="64m", timeout=5)
    print(result.status, result.stdout)

`AsyncClient` is the same for asyncio, `cordon.autogen` an executor for
AutoGen's agents.
"""
from .aio import AsyncBox, AsyncClient, AsyncProcess
from .client import Box, Client, Process
from .errors import (Busy, Conflict, CordonError, Denied, Invalid, NotFound,
                     Unreachable, Unsupported)
from .types import BoxInfo, Code, Denial, ExecInfo, File, Output, Result

__version__ = "0.1.0"
__all__ = [
    "AsyncBox", "AsyncClient", "AsyncProcess", "Box", "BoxInfo", "Busy",
    "Client", "Code", "Conflict", "CordonError", "Denial", "Denied",
    "ExecInfo", "File", "Invalid", "NotFound", "Output", "Process", "Result",
    "Unreachable", "Unsupported",
]

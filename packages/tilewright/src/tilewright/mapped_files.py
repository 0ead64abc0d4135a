# SPDX-License-Identifier: Apache-2.0
"""Files mapped into memory; where Python cannot map them, as in some browsers, they are read."""

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

mmap: Any = None  # the module, if there is one
with suppress(ModuleNotFoundError):
    mmap = import_module("mmap")

__all__ = ["PAGE_BYTES", "map_file", "mmap"]

PAGE_BYTES = 4096 if mmap is None else mmap.PAGESIZE  # of what the system maps


def map_file(handle: int) -> Any:
    """Return the bytes of an open file, by its descriptor `handle`: a map that can only be read, or a copy.

    >>> with open(__file__, "rb") as file:
    ...     bytes(map_file(file.fileno())[:6])
    b'# SPDX'
    """
    size = os.fstat(handle).st_size
    if size == 0:  # which cannot be mapped
        return b""
    if mmap is not None:
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    os.lseek(handle, 0, os.SEEK_SET)
    parts = []
    while part := os.read(handle, size):
        parts.append(part)
    return b"".join(parts)

# SPDX-License-Identifier: Apache-2.0
"""The library at each level of instructions that this machine has."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from functools import cache

from .abi import LIBRARY, NativeNest
from .remote import COMMAND

LEVELS = ("best",) if COMMAND else ("best", "avx2", "portable")


@cache
def at_level(level, function="tw_run"):
    """Return tw_run, or a function like it, of a library that was held back to a level.

    A library chooses once, when it is first used; so every level gets a copy of its own.
    """
    if level == "best":
        return _typed(getattr(LIBRARY, function))
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(LIBRARY._name, os.path.join(folder, f"{level}.so"))
        library = ctypes.CDLL(copy)
    before = os.environ.get("TILEWRIGHT_CPU")
    os.environ["TILEWRIGHT_CPU"] = level
    try:
        library.tw_cpu_features.restype = ctypes.c_char_p
        found = library.tw_cpu_features().decode()
    finally:
        if before is None:
            del os.environ["TILEWRIGHT_CPU"]
        else:
            os.environ["TILEWRIGHT_CPU"] = before
    assert "avx512" not in found
    return _typed(getattr(library, function))


def _typed(function):
    function.argtypes, function.restype = LIBRARY.tw_run.argtypes, ctypes.c_int32
    return function


def run_at(tw_run, nests, src, dst, threads):
    """Run the nests with the tw_run of some level and return the status."""
    array = (NativeNest * len(nests))(*nests)
    return tw_run(ctypes.byref(array), len(nests), src.ctypes.data, dst.ctypes.data, threads)

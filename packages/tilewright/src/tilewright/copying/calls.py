# SPDX-License-Identifier: Apache-2.0
"""Calls like an earlier one, which the extension module `_calls` repeats without running Python, where there is one.

There is none in a pure Python installation, on Windows, on a free-threaded Python, and where Python's headers were
missing when the package was built. Nothing but the time of a small copy depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..formats import BlockFormat, ScalarFormat

try:
    from .._calls import environment
    from .._calls import remember as _remember
except ImportError:

    def environment() -> tuple[object, object]:
        """Return the variables that a copy depends on."""
        return os.environ.get("TILEWRIGHT_ENGINE"), os.environ.get("TILEWRIGHT_THREADS")

    def _remember(prepare: Callable[..., Any], immutable: tuple[type, ...], /) -> Callable[..., Any] | None:
        return None


# Options that are the same as long as they are the same object. Others are not remembered.
_IMMUTABLE = (int, float, str, type(None), type, np.dtype, np.generic, ScalarFormat, BlockFormat)


class ReadyCopy(NamedTuple):
    """A copy whose plan is ready: the fields that `_calls` reads, in this order.

    `low` is the offset of the lowest byte of an array from its first element. `dtype` is the type of a new result, None
    if the target is an argument. `owner` keeps the nests alive.
    """

    run: int  # the address of the C function
    nests: int
    nest_count: int
    threads: int
    source_low: int
    target_low: int
    source_bytes: int
    target_bytes: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    owner: object


def remember(prepare: Callable[..., tuple[Any, ReadyCopy | None]]) -> Callable[..., Any]:
    """Return a function of (source, target or None, option, ...) that repeats what an earlier call has prepared.

    `prepare` takes the same arguments and returns a result, and the copy for all calls with options, shapes, strides,
    dtypes and environment like these, or None.

    >>> remember(lambda source, target, factor: (source * factor, None))(np.arange(3), None, 2).tolist()
    [0, 2, 4]
    """
    return _remember(prepare, _IMMUTABLE) or (lambda *arguments: prepare(*arguments)[0])

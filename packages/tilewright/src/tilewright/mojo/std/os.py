# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.os`: how a program gives up, and its environment."""

from __future__ import annotations

import os as _os
from typing import Any

from ..simd import FailedAssertion

__all__ = ["abort", "getenv"]


def abort(*message: Any, **_: Any) -> None:
    """End the program with a message.

    >>> try:
    ...     abort("no row")
    ... except FailedAssertion as problem:
    ...     print(problem)
    no row
    """
    raise FailedAssertion("".join(map(str, message)) or "abort")


def getenv(name: str, default: str = "") -> str:
    """Return a variable of the environment.

    >>> getenv("NO_SUCH_VARIABLE_OF_OURS", "none")
    'none'
    """
    return _os.environ.get(name, default)

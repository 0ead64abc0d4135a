# SPDX-License-Identifier: Apache-2.0
"""Operands that share storage: what a target overwrites must not be read after that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


class Stretch(NamedTuple):
    """The bytes that an array lies in: of which memory, file or object, from where to where, and arranged how.

    >>> Stretch("memory", 0, 8, (0, 1)).meets(Stretch("memory", 7, 9, (7, 1)))
    True
    """

    where: Any
    start: int
    end: int
    arrangement: Any

    def meets(self, other: Stretch) -> bool:
        """Return whether two stretches have a byte in common."""
        return self.where == other.where and max(self.start, other.start) < min(self.end, other.end)


class Stored(Protocol):
    """What knows the bytes it lies in. A mapped file has two answers: its memory, and its place in the file."""

    def stretches(self) -> Sequence[Stretch]:
        """Return the bytes it lies in."""


def share_storage(source: Stored, target: Stored) -> bool:
    """Return whether a byte that is written to one is read from the other.

    >>> import numpy as np
    >>> from tilewright.tiling.operands import port_of
    >>> a = np.zeros(8)
    >>> share_storage(port_of(a[:5]), port_of(a[4:])), share_storage(port_of(a[:4]), port_of(a[4:]))
    (True, False)
    """
    return any(one.meets(other) for one in source.stretches() for other in target.stretches())


def are_one(source: Stored, target: Stored) -> bool:
    """Return whether both are one array: equal indices are the same bytes.

    >>> import numpy as np
    >>> from tilewright.tiling.operands import port_of
    >>> a = np.zeros(8)
    >>> are_one(port_of(a), port_of(a)), are_one(port_of(a), port_of(a[::-1]))
    (True, False)
    """
    return any(
        one.where == other.where and one.arrangement == other.arrangement
        for one in source.stretches()
        for other in target.stretches()
    )


def identity_of(thing: Any) -> Any:
    """Return what two handles of one stored array have in common: where zarr keeps it, or else the object itself.

    >>> class Array:
    ...     store_path = "file:///a.zarr"
    >>> identity_of(Array()) == identity_of(Array())
    True
    """
    kept = getattr(thing, "store_path", None)
    return ("object", id(thing)) if kept is None else ("store", str(kept))

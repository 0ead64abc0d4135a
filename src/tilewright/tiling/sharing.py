# SPDX-License-Identifier: Apache-2.0
"""Operands that share storage: what a target overwrites must not be read after that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple, Protocol

from ..copying.footprint import Footprint
from ..errors import TransferError


class Stretch(NamedTuple):
    """The bytes that an array lies on: of which memory, file or object, which of them, and arranged how.

    >>> from tilewright.copying.footprint import dense_footprint
    >>> Stretch("memory", dense_footprint(0, 8), (0, 1)).meets(Stretch("memory", dense_footprint(7, 2), (7, 1)))
    True
    """

    where: Any
    footprint: Footprint
    arrangement: Any

    def meets(self, other: Stretch) -> bool:
        """Return whether two stretches have a byte in common."""
        return bool(self.where == other.where) and self.footprint.overlaps(other.footprint)


class Stored(Protocol):
    """What knows the bytes it lies on. A mapped file has two answers: its memory, and its place in the file."""

    def stretches(self) -> Sequence[Stretch]:
        """Return the bytes it lies on."""


def share_storage(source: Stored, target: Stored) -> bool:
    """Return whether a byte that is written to one is read from the other.

    >>> import numpy as np
    >>> from tilewright.tiling.operands import port_of
    >>> a = np.zeros(8)
    >>> share_storage(port_of(a[:5]), port_of(a[4:])), share_storage(port_of(a[::2]), port_of(a[1::2]))
    (True, False)
    """
    return any(one.meets(other) for one in source.stretches() for other in target.stretches())


def check_targets_apart(targets: Sequence[Stored]) -> None:
    """Raise if two targets have a byte in common, which would keep what was written last.

    >>> import numpy as np
    >>> from tilewright.tiling.operands import port_of
    >>> a = np.zeros(8)
    >>> check_targets_apart([port_of(a[::2]), port_of(a[1::2])])
    """
    if any(share_storage(*pair) for pair in combinations(targets, 2)):
        raise shared_targets()


def shared_targets() -> TransferError:
    """Return the error that two targets are one.

    >>> str(shared_targets())[:17]
    'two targets share'
    """
    return TransferError(
        "two targets share memory or a file, and tiles of one would overwrite the other's; give each its own"
    )


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

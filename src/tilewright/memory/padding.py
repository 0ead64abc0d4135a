# SPDX-License-Identifier: Apache-2.0
"""From logical extents and an alignment to padded extents."""

from __future__ import annotations

from math import prod

from ..errors import MemoryConfigError
from ..layout.tuples import round_up


def padded_extents(shape: tuple[int, ...], alignment: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents rounded up to an alignment, whose entries belong to the last dimensions.

    The last two dimensions are rounded to their own entries. Further out an entry counts rows of the folded matrix:
    it must divide what the dimensions inside already make, or be a multiple of it.

    >>> padded_extents((2, 33, 1), (32, 32)), padded_extents((7,), (32, 32)), padded_extents((5, 7), (2,))
    ((2, 64, 32), (32, 32), (5, 8))
    >>> padded_extents((3, 5, 7), (24, 6, 9))
    (4, 6, 9)
    """
    if any(entry < 1 for entry in alignment):
        raise MemoryConfigError(f"alignment {list(alignment)} has an entry below 1; use 1 or more")
    rank = max(len(shape), len(alignment))
    extents = [1] * (rank - len(shape)) + list(shape)
    rows = 1
    for d in range(-1, -len(alignment) - 1, -1):
        entry = alignment[d]
        if d >= -2:
            extents[d] = round_up(extents[d], entry)
        elif rows == 0 or rows % entry == 0:
            pass  # the dimensions inside are aligned already
        elif entry % rows == 0:
            extents[d] = round_up(extents[d], entry // rows)
        else:
            raise MemoryConfigError(
                f"alignment {list(alignment)} does not fit shape {list(shape)}: entry {entry} of dimension {d} and the"
                f" {rows} rows inside it do not divide each other; use a multiple of {rows}"
            )
        if d < -1:
            rows *= extents[d]
    return tuple(extents)


def alignment_of(padded: tuple[int, ...]) -> tuple[int, ...]:
    """Return the alignment that pads any smaller shape of the same rank to these extents, as files store it.

    >>> alignment_of((4, 6, 9)), padded_extents((3, 5, 7), alignment_of((4, 6, 9)))
    ((24, 6, 9), (4, 6, 9))
    """
    rows = [prod(padded[d:-1]) for d in range(len(padded) - 2)]
    return (*rows, *padded[-2:])

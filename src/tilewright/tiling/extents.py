# SPDX-License-Identifier: Apache-2.0
"""How plain numbers become extents, one an axis."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from ..errors import LayoutError


def extents(value: Any, what: str, rank: int | None = None) -> tuple[int, ...]:
    """Return a number for each axis: a sequence as it is, or one number for all of them.

    >>> extents(2, "overlap", 3), extents([4, 5], "space")
    ((2, 2, 2), (4, 5))
    """
    numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else None
    try:
        found = (index(value),) * (rank or 1) if numbers is None else tuple([index(n) for n in numbers])
    except TypeError:
        raise LayoutError(f"{what} is {value!r}; give an integer, or one integer for each axis") from None
    if rank is not None and len(found) != rank:
        raise LayoutError(f"{what} {found} has {len(found)} axes, but the space has {rank}; give one number an axis")
    return found

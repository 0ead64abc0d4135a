# SPDX-License-Identifier: Apache-2.0
"""Regroup and reorder the modes of a strided layout: one change for its shape, its strides and its guards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LayoutError
from .base import require_layout
from .guards import Guard
from .strided import Layout, make


def require_strided(value: Any, who: str) -> Any:
    """Return value if it is a strided layout, else raise an error that names the function.

    >>> require_strided(Layout(4), "sort")
    Layout(4, 1)
    """
    if not isinstance(require_layout(value, who), Layout):
        raise LayoutError(f"{who} of {value}: it has no strides; do that to a strided layout, and compose after that")
    return value


def restructure(layout: Layout, change: Callable[[Any, Any], Any]) -> Layout:
    """Return layout with its modes regrouped or reordered.

    change(tree, unit) does it to shape, strides and guards alike; unit is what a mode of size 1 holds in that tree.

    >>> restructure(Layout((4, 8)), lambda tree, unit: (tree[1], (tree[0], unit)))
    Layout((8, (4, 1)), (4, (1, 0)))
    """
    require_strided(layout, "regrouping the modes")
    guards = [Guard(change(guard.stride, 0), guard.limit, guard.offset) for guard in layout.guards]
    return make(change(layout._shape, 1), change(layout._stride, 0), layout.offset, layout.replicas, tuple(guards))

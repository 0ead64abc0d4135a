# SPDX-License-Identifier: Apache-2.0
"""CuTe's questions about layouts and shapes: their extents, strides, modes and nesting."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..layout import LayoutLike, Place, Swizzle
from ..layout.layout_like import require_layout
from ..layout.tuples import (
    as_tree,
    as_tuple,
    is_compatible,
    is_congruent,
    is_weakly_congruent,
    leaves,
    map_leaves,
    product,
    tree_depth,
)
from ..layout.validation import as_integer, check_mode
from .core_results import as_cute
from .layout import Layout  # noqa: F401  (the examples use it)


def shape(value: Any, *modes: int) -> Any:
    """Return the shape of `value`, a layout, tensor or shape; with `modes`, of that mode of a mode.

    >>> shape(Layout((4, (2, 3)))), shape(Layout((4, (2, 3))), 1), shape(Layout((4, (2, 3))), 1, 0), shape([4, 8])
    ((4, (2, 3)), (2, 3), 2, (4, 8))
    """
    form = getattr(value, "layout", value)
    return get(form.shape if isinstance(form, LayoutLike) else as_tree(form), *modes)


def stride(layout: Any, *modes: int) -> Any:
    """Return the strides of a layout or tensor; with `modes`, of that mode of a mode.

    >>> stride(Layout((4, (2, 3)))), stride(Layout((4, (2, 3))), 1, 0)
    ((1, (4, 8)), 4)
    """
    return get(getattr(layout, "layout", layout).stride, *modes)


def get(value: Any, *modes: int) -> Any:
    """Return a mode of `value`, a layout or a tuple: CuTe's `get<1>`; with several `modes`, a mode of that mode.

    >>> print(get(Layout((4, (2, 3))), 1), get((4, (2, 3)), 1, 0))
    (2,3):(4,8) 2
    """
    for k in modes:
        value = mode(value, k)
    return value


def mode(value: Any, k: int) -> Any:
    """Return mode `k` of a layout or shape, `value`.

    >>> print(mode(Layout((4, (2, 3))), 1), mode((4, (2, 3)), 1))
    (2,3):(4,8) (2, 3)
    """
    if isinstance(value, LayoutLike):
        return value.mode(k)
    branches = as_tuple(as_tree(value))
    if not -len(branches) <= k < len(branches):
        raise LayoutError(f"{value} has no mode {k}; it has modes 0 to {len(branches) - 1}")
    return branches[k]


def take(value: Any, begin: int, end: int) -> Any:
    """Return the modes of `value`, a layout or tuple, from `begin` up to but not including `end`: CuTe's `take<0, 2>`.

    >>> print(take(Layout((2, 3, 4)), 1, 3), take((2, 3, 4), 0, 2))
    (3,4):(2,6) (2, 3)
    """
    if isinstance(value, LayoutLike):
        return select(value, *range(value.rank)[begin:end])
    return as_tuple(as_tree(value))[begin:end]


def front(value: Any) -> Any:
    """Return the first leaf of `value`, a nested tuple, or the first mode of a layout down to its first leaf.

    >>> front(((4, 2), 3)), front(4), str(front(Layout(((4, 2), 3))))
    (4, 4, '4:1')
    """
    while (value.depth if isinstance(value, LayoutLike) else isinstance(value, tuple)) and rank(value):
        value = mode(value, 0)
    return value


def size(value: Any, *modes: int) -> int:
    """Return the number of coordinates of `value`, a layout or shape, or of the mode that `modes` name.

    >>> size(Layout((4, (2, 3)))), size((4, 8)), size(()), size(Layout((4, (2, 3))), 1)
    (24, 32, 1, 6)
    """
    if isinstance(value, Swizzle):
        return value.size
    return int(as_integer(product(shape(value, *modes)), "a shape"))


def cosize(layout: Any, *modes: int) -> Any:
    """Return the size of the smallest buffer that holds every offset of a layout, or of the mode that `modes` name.

    Of a composition, too, where CuTe gives that of the inner layout, whatever the outer one does to its offsets.

    >>> cosize(Layout((4, 8), (1, 5))), cosize(Layout((4, 8), (1, 5)), 0)
    (39, 4)
    """
    return require_layout(get(layout, *modes), "cosize").cosize


def coshape(layout: Any) -> Any:
    """Return the extents that the results of a layout stay below: an integer, or one per basis stride.

    >>> from tilewright import cute
    >>> coshape(Layout((4, 8), (1, 5))), coshape(cute.make_identity_layout((4, 8)))
    (39, (4, 8))
    """
    if not require_layout(layout, "coshape").axes:
        return layout.cosize
    last = layout(size(layout) - 1)
    return map_leaves(_successor, last) if isinstance(last, tuple) else last


def _successor(number: Any) -> Any:
    return number + 1


def rank(value: Any, *modes: int) -> int:
    """Return the number of top-level modes of `value`, or of the mode that `modes` name; an integer shape has none.

    >>> rank(Layout((4, 8))), rank(Layout(4)), rank((4, 8)), rank(4), rank((4, (2, 3, 5)), 1)
    (2, 1, 2, 0, 3)
    """
    value = get(value, *modes)
    if isinstance(value, LayoutLike):
        return value.rank
    return len(value) if isinstance(value, (tuple, list)) else 0


def depth(value: Any, *modes: int) -> int:
    """Return the depth of nesting of a layout or shape `value`, or of the mode that `modes` name.

    >>> depth(Layout((4, (2, 3)))), depth(4), depth((4, (2, 3)), 1)
    (2, 0, 1)
    """
    return tree_depth(shape(value, *modes))


def select(layout: LayoutLike, *modes: int) -> Any:
    """Return the layout of some `modes` of `layout`, in that order: CuTe's `select<0, 2>`. Offset and padding stay.

    >>> print(select(Layout((2, 3, 4)), 2, 0), select(Layout((2, 3, 4)) + 5, 2, 0))
    (4,2):(6,1) (4,2):(6,1)+5
    """
    chosen = [check_mode(k, layout.rank, layout) for k in modes]
    result = layout._restructure(lambda tree, _: tuple([as_tuple(tree)[k] for k in chosen]), "select")
    return as_cute(result, layout)


def congruent(a: Any, b: Any) -> bool:
    """Return whether two shapes or layouts, `a` and `b`, have the same nesting.

    >>> congruent(((2, 3), 4), ((5, 6), 7)), congruent((2, 3), 6)
    (True, False)
    """
    return is_congruent(shape(a), shape(b))


def weakly_congruent(a: Any, b: Any) -> bool:
    """Return whether `b` is nested like `a`, or deeper.

    >>> weakly_congruent((2, 3), (5, (6, 7))), weakly_congruent((2, (3, 4)), (5, 6))
    (True, False)
    """
    return is_weakly_congruent(shape(a), shape(b))


def compatible(a: Any, b: Any) -> bool:
    """Return whether every coordinate of `a` is also one of `b`: `b` has the size of `a` and refines its modes.

    >>> compatible(12, (4, 3)), compatible((4, 3), ((2, 2), 3)), compatible((4, 3), 12)
    (True, True, False)
    """
    return is_compatible(shape(a), shape(b))


def is_layout(value: object) -> bool:
    """Return whether `value` is a layout of any kind.

    >>> is_layout(Layout(4)), is_layout((4,))
    (True, False)
    """
    return isinstance(value, LayoutLike)


def is_major(mode: int, stride: Any) -> bool:
    """Return whether `mode` of a `stride` has a leaf of stride 1.

    >>> is_major(1, (8, 1)), is_major(0, (8, 1))
    (True, False)
    """
    return any(leaf == 1 for leaf in leaves(get(as_tree(stride), mode)))


def leading_dim(shape: Any, stride: Any) -> Any:
    """Return the mode of `stride` 1, preferring one whose `shape` has more than one element; None if there is none.

    A nested mode is named by its path.

    >>> leading_dim((4, 8), (8, 1)), leading_dim((4, (2, 4)), (8, (1, 2))), leading_dim((4,), (2,))
    (1, (1, 0), None)
    """
    paths = [(path, n) for path, n, d in _leaf_paths(as_tree(shape), as_tree(stride), ()) if d == 1]
    path = next((path for path, n in paths if n != 1), paths[0][0] if paths else None)
    return path[0] if path is not None and len(path) == 1 else path


def _leaf_paths(shape: Any, stride: Any, path: tuple[int, ...]) -> list[tuple[tuple[int, ...], Any, Any]]:
    """Return (path, extent, stride) of every leaf."""
    if not isinstance(shape, tuple):
        return [(path or (0,), shape, stride)]
    pairs = enumerate(zip(shape, stride, strict=True))
    return [leaf for k, (n, d) in pairs for leaf in _leaf_paths(n, d, (*path, k))]


def basis_value(basis: Any) -> Any:
    """Return the amount of a basis stride, such as 3 of `3 * E(1)`; an integer is returned as it is.

    >>> from tilewright import cute
    >>> basis_value(3 * cute.E(1)), basis_value(7)
    (3, 7)
    """
    return next(iter(basis.values())) if isinstance(basis, Place) else basis


def basis_get(basis: Any, value: Any) -> Any:
    """Return the mode of `value` that a basis stride names: `get` along its path; of an integer, `value` itself.

    >>> from tilewright import cute
    >>> basis_get(cute.E(1), (4, 8)), basis_get(cute.E(1, 0), (4, (2, 3)))
    (8, 2)
    """
    if not isinstance(basis, Place):
        return value
    return get(value, *[int(part[1:]) for part in next(iter(basis.axes)).split(".")])

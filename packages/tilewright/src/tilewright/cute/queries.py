# SPDX-License-Identifier: Apache-2.0
"""CuTe's questions about layouts and shapes: their extents, strides, modes and nesting."""

from __future__ import annotations

from math import gcd
from typing import Any, TypeAlias, overload

from .._integers import ceil_div
from ..errors import LayoutError
from ..layout import Layout as NativeLayout
from ..layout import (
    LayoutLike,
    Offset,
    Place,
    ShapeArgument,
    Stride,
    StrideArgument,
    Swizzle,
    as_integer,
    as_tree,
    as_tuple,
    check_mode,
    is_compatible,
    is_congruent,
    is_weakly_congruent,
    leaves,
    map_leaves,
    product,
    require_layout,
    require_strided,
    tree_depth,
)
from ..layout import Shape as NativeShape
from ..tensor import TileTensor
from .layout import Layout, as_cute, replace_leaves

__all__ = [
    "basis_get", "basis_value", "compatible", "congruent", "coshape", "cosize", "depth", "downcast", "front", "get",
    "is_layout", "is_major", "leading_dim", "mode", "print_latex", "print_layout", "rank", "recast", "recast_layout",
    "select", "shape", "size", "stride", "take", "upcast", "weakly_congruent",
]  # fmt: skip

Modes: TypeAlias = "LayoutLike | TileTensor | ShapeArgument"


def shape(value: Modes, *modes: int) -> NativeShape | Any:
    """Return the shape of `value`, a layout, tensor or shape; with `modes`, of that mode of a mode.

    >>> shape(Layout((4, (2, 3)))), shape(Layout((4, (2, 3))), 1), shape(Layout((4, (2, 3))), 1, 0), shape([4, 8])
    ((4, (2, 3)), (2, 3), 2, (4, 8))
    """
    form = getattr(value, "layout", value)
    return get(form.shape if isinstance(form, LayoutLike) else as_tree(form), *modes)


def stride(layout: LayoutLike | TileTensor, *modes: int) -> Stride | Any:
    """Return the strides of a layout or tensor; with `modes`, of that mode of a mode.

    >>> stride(Layout((4, (2, 3)))), stride(Layout((4, (2, 3))), 1, 0)
    ((1, (4, 8)), 4)
    """
    strided: Any = getattr(layout, "layout", layout)
    return get(strided.stride, *modes)


@overload
def get(value: LayoutLike, *modes: int) -> Layout | Any: ...
@overload
def get(value: ShapeArgument, *modes: int) -> NativeShape: ...
def get(value: LayoutLike | ShapeArgument, *modes: int) -> Layout | NativeShape | Any:
    """Return a mode of `value`, a layout or a tuple: CuTe's `get<1>`; with several `modes`, a mode of that mode.

    >>> print(get(Layout((4, (2, 3))), 1), get((4, (2, 3)), 1, 0))
    (2,3):(4,8) 2
    """
    for k in modes:
        value = mode(value, k)
    return value


@overload
def mode(value: LayoutLike, k: int) -> Layout | Any: ...
@overload
def mode(value: ShapeArgument, k: int) -> NativeShape: ...
def mode(value: LayoutLike | ShapeArgument, k: int) -> Layout | NativeShape | Any:
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


@overload
def take(value: LayoutLike, begin: int, end: int) -> Layout | Any: ...
@overload
def take(value: ShapeArgument, begin: int, end: int) -> tuple[NativeShape, ...]: ...
def take(value: LayoutLike | ShapeArgument, begin: int, end: int) -> Layout | tuple[NativeShape, ...] | Any:
    """Return the modes of `value`, a layout or tuple, from `begin` up to but not including `end`: CuTe's `take<0, 2>`.

    >>> print(take(Layout((2, 3, 4)), 1, 3), take((2, 3, 4), 0, 2))
    (3,4):(2,6) (2, 3)
    """
    if isinstance(value, LayoutLike):
        return select(value, *range(value.rank)[begin:end])
    return as_tuple(as_tree(value))[begin:end]


@overload
def front(value: LayoutLike) -> Layout | Any: ...
@overload
def front(value: ShapeArgument) -> NativeShape: ...
def front(value: LayoutLike | ShapeArgument) -> Layout | NativeShape | Any:
    """Return the first leaf of `value`, a nested tuple, or the first mode of a layout down to its first leaf.

    >>> front(((4, 2), 3)), front(4), str(front(Layout(((4, 2), 3))))
    (4, 4, '4:1')
    """
    while (value.depth if isinstance(value, LayoutLike) else isinstance(value, tuple)) and rank(value):
        value = mode(value, 0)
    return value


def size(value: Modes | Swizzle, *modes: int) -> int:
    """Return the number of coordinates of `value`, a layout or shape, or of the mode that `modes` name.

    >>> size(Layout((4, (2, 3)))), size((4, 8)), size(()), size(Layout((4, (2, 3))), 1)
    (24, 32, 1, 6)
    """
    if isinstance(value, Swizzle):
        return value.size
    return int(as_integer(product(shape(value, *modes)), "a shape"))


def cosize(layout: LayoutLike, *modes: int) -> int | Any:
    """Return the size of the smallest buffer that holds every offset of a layout, or of the mode that `modes` name.

    Compositions are included; CuTe gives the result of the inner layout, whatever the outer one does to its offsets.

    >>> cosize(Layout((4, 8), (1, 5))), cosize(Layout((4, 8), (1, 5)), 0)
    (39, 4)
    """
    return require_layout(get(layout, *modes), "cosize").cosize


def coshape(layout: LayoutLike) -> NativeShape:
    """Return the extents that the results of a layout stay below: an integer, or one per basis stride.

    >>> from tilewright import cute
    >>> coshape(Layout((4, 8), (1, 5))), coshape(cute.make_identity_layout((4, 8)))
    (39, (4, 8))
    """
    if not require_layout(layout, "coshape").axes:
        return layout.cosize
    last: Any = layout(size(layout) - 1)
    return map_leaves(_successor, last) if isinstance(last, tuple) else last


def _successor(number: Any) -> Any:
    return number + 1


def rank(value: Modes, *modes: int) -> int:
    """Return the number of top-level modes of `value`, or of the mode that `modes` name; an integer shape has none.

    >>> rank(Layout((4, 8))), rank(Layout(4)), rank((4, 8)), rank(4), rank((4, (2, 3, 5)), 1)
    (2, 1, 2, 0, 3)
    """
    form: Any = value
    part = get(form, *modes)
    if isinstance(part, LayoutLike):
        return part.rank
    return len(part) if isinstance(part, (tuple, list)) else 0


def depth(value: Modes, *modes: int) -> int:
    """Return the depth of nesting of a layout or shape `value`, or of the mode that `modes` name.

    >>> depth(Layout((4, (2, 3)))), depth(4), depth((4, (2, 3)), 1)
    (2, 0, 1)
    """
    return tree_depth(shape(value, *modes))


def select(layout: LayoutLike, *modes: int) -> Layout | Any:
    """Return the layout of some `modes` of `layout`, in that order: CuTe's `select<0, 2>`. Offset and padding stay.

    >>> print(select(Layout((2, 3, 4)), 2, 0), select(Layout((2, 3, 4)) + 5, 2, 0))
    (4,2):(6,1) (4,2):(6,1)+5
    """
    chosen = [check_mode(k, layout.rank, layout) for k in modes]
    result = layout._restructure(lambda tree, _: tuple([as_tuple(tree)[k] for k in chosen]), "select")
    return as_cute(result, layout)


def congruent(a: Modes, b: Modes) -> bool:
    """Return whether two shapes or layouts, `a` and `b`, have the same nesting.

    >>> congruent(((2, 3), 4), ((5, 6), 7)), congruent((2, 3), 6)
    (True, False)
    """
    return is_congruent(shape(a), shape(b))


def weakly_congruent(a: Modes, b: Modes) -> bool:
    """Return whether `b` is nested like `a`, or deeper.

    >>> weakly_congruent((2, 3), (5, (6, 7))), weakly_congruent((2, (3, 4)), (5, 6))
    (True, False)
    """
    return is_weakly_congruent(shape(a), shape(b))


def compatible(a: Modes, b: Modes) -> bool:
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


def is_major(mode: int, stride: StrideArgument) -> bool:
    """Return whether `mode` of a `stride` has a leaf of stride 1.

    >>> is_major(1, (8, 1)), is_major(0, (8, 1))
    (True, False)
    """
    return any(leaf == 1 for leaf in leaves(get(as_tree(stride), mode)))


def leading_dim(shape: ShapeArgument, stride: StrideArgument) -> int | tuple[int, ...] | None:
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


def basis_value(basis: Offset) -> int:
    """Return the amount of a basis stride, such as 3 of `3 * E(1)`; an integer is returned as it is.

    >>> from tilewright import cute
    >>> basis_value(3 * cute.E(1)), basis_value(7)
    (3, 7)
    """
    return next(iter(basis.values())) if isinstance(basis, Place) else basis


@overload
def basis_get(basis: Offset, value: LayoutLike) -> Layout | Any: ...
@overload
def basis_get(basis: Offset, value: ShapeArgument) -> NativeShape: ...
def basis_get(basis: Offset, value: LayoutLike | ShapeArgument) -> Layout | NativeShape | Any:
    """Return the mode of `value` that a basis stride names: `get` along its path; of an integer, `value` itself.

    >>> from tilewright import cute
    >>> basis_get(cute.E(1), (4, 8)), basis_get(cute.E(1, 0), (4, (2, 3)))
    (8, 2)
    """
    if not isinstance(basis, Place):
        return value
    return get(value, *[int(part[1:]) for part in next(iter(basis.axes)).split(".")])


# CuTe's layouts of the same memory for wider or narrower elements.


def upcast(layout: NativeLayout, factor: int) -> Layout:
    """Return `layout` over elements that are `factor` times wider: contiguous extents and all strides shrink.

    >>> print(upcast(Layout((32, 32), (32, 1)), 16))
    (32,2):(2,1)
    """
    factor = _check_factor(factor)
    require_strided(layout, "upcast")
    extents, strides = [], []
    inside_one = 0  # how far the offsets of all modes together reach into a wide element
    for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        size = abs(_require_int(d, layout))
        if d == 0:
            extents.append(n)
            strides.append(0)
        elif size % factor == 0:
            extents.append(n)
            strides.append(d // factor)
        elif factor % size == 0:
            inside = factor // size
            if d < 0 and n > 1:
                raise LayoutError(
                    f"upcast of {layout} by {factor}: the negative stride {d} lies inside an element; reverse it"
                )
            inside_one += (min(n, inside) - 1) * size
            extents.append(ceil_div(n, inside))
            strides.append(1 if d > 0 else -1)
        else:
            raise LayoutError(f"upcast of {layout} by {factor}: neither stride {d} nor the factor divides the other")
    if inside_one >= factor:
        raise LayoutError(f"upcast of {layout} by {factor}: several modes together exceed a wide element")
    offset = _require_int(layout.offset, layout)
    if offset % factor:
        raise LayoutError(f"upcast of {layout} by {factor}: the offset {offset} is not divisible by the factor")
    return replace_leaves(layout, extents, strides, offset // factor)


def downcast(layout: NativeLayout, factor: int) -> Layout:
    """Return `layout` over elements that are `factor` times narrower: modes of stride 1 or -1 widen, others scale.

    >>> print(downcast(Layout((32, 2), (2, 1)), 16))
    (32,32):(32,1)
    """
    factor = _check_factor(factor)
    require_strided(layout, "downcast")
    steps = [_require_int(step, layout) for step in leaves(layout.stride)]
    pairs = [
        (n * factor, d) if abs(d) == 1 else (n, d * factor) for n, d in zip(leaves(layout.shape), steps, strict=True)
    ]
    extents, strides = [n for n, _ in pairs], [d for _, d in pairs]
    return replace_leaves(layout, extents, strides, _require_int(layout.offset, layout) * factor)


def recast(layout: NativeLayout, old_bits: int, new_bits: int) -> Layout:
    """Return `layout` of the same memory for elements of `new_bits` instead of `old_bits`.

    >>> print(recast(Layout((4, 8), (8, 1)), 16, 32), recast(Layout((4, 8), (8, 1)), 16, 8))
    (4,4):(4,1) (4,16):(16,1)
    """
    old, new = _check_factor(old_bits), _check_factor(new_bits)
    if new % old == 0:
        return upcast(layout, new // old)
    if old % new == 0:
        return downcast(layout, old // new)
    raise LayoutError(f"recast from {old} to {new} bits: one width must be a multiple of the other (divisible)")


def recast_layout(new_bits: int, old_bits: int, layout: NativeLayout) -> Layout:
    """Return `recast(layout, old_bits, new_bits)`, with the arguments in the order of CuTe's `recast_layout`.

    Where neither width is a multiple of the other, the layout is first cast to their common divisor.

    >>> print(recast_layout(32, 16, Layout((4, 8), (8, 1))), recast_layout(6, 4, Layout(24)))
    (4,4):(4,1) 16:1
    """
    old, new = _check_factor(old_bits), _check_factor(new_bits)
    common = gcd(old, new)
    return (
        downcast(upcast(layout, new // common), old // common) if common not in (old, new) else recast(layout, old, new)
    )


def _check_factor(factor: object) -> int:
    number = int(as_integer(factor, "an element width or factor"))
    if number < 1:
        raise LayoutError(f"an element width or factor must be at least 1, got {number}")
    return number


def _require_int(stride: Offset, layout: NativeLayout) -> int:
    """Return a stride or offset if it is an integer."""
    if not isinstance(stride, int):
        raise LayoutError(f"{layout} lies on named axes; recast one of them with .project(axis)")
    return stride


# Pictures of CuTe's layouts: tables in text and in LaTeX.


def _table_extents(layout: LayoutLike, caller: str) -> tuple[int, int]:
    """Return the extents of a layout of rank 2; raise an error that names `caller` for any other."""
    if require_layout(layout, caller).rank != 2:
        raise LayoutError(f"{caller} of {layout}: expected a layout of rank 2, got rank {layout.rank}")
    return int(layout.mode(0).size), int(layout.mode(1).size)


def print_layout(layout: LayoutLike) -> None:
    """Print `layout`, of rank 2, and a table of its offsets.

    >>> from tilewright.cute import Layout
    >>> print_layout(Layout((2, 3), (3, 1)))
    (2,3):(3,1)
          0   1   2
        +---+---+---+
     0  | 0 | 1 | 2 |
        +---+---+---+
     1  | 3 | 4 | 5 |
        +---+---+---+
    """
    rows, columns = _table_extents(layout, "print_layout")
    width = len(str(layout.cosize)) if isinstance(layout.cosize, int) else 8
    line = "    " + f"+{'-' * (width + 2)}" * columns + "+"
    print(layout)
    print("    " + "".join(f"  {n:>{width}} " for n in range(columns)).rstrip())
    for m in range(rows):
        print(line)
        print(f"{m:2d}  " + "".join(f"| {layout(m, n)!s:>{width}} " for n in range(columns)) + "|")
    print(line)


def print_latex(layout: LayoutLike) -> None:
    """Print `layout`, of rank 2, as a picture in LaTeX (TikZ): a cell for each coordinate, with its offset.

    >>> from tilewright.cute import Layout
    >>> print_latex(Layout((1, 2), (2, 1)))
    % Layout: (1,2):(2,1)
    \\documentclass[convert]{standalone}
    \\usepackage{tikz}
    \\begin{document}
    \\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm, outer sep=0pt}]
    \\node[draw] at (0,0) {0};
    \\node[draw] at (0,1) {1};
    \\node at (0,-1) {0};
    \\node at (-1,0) {0};
    \\node at (-1,1) {1};
    \\end{tikzpicture}
    \\end{document}
    """
    rows, columns = _table_extents(layout, "print_latex")
    lines = [
        f"% Layout: {layout}",
        r"\documentclass[convert]{standalone}",
        r"\usepackage{tikz}",
        r"\begin{document}",
        r"\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm, outer sep=0pt}]",
        *[rf"\node[draw] at ({m},{n}) {{{layout(m, n)}}};" for m in range(rows) for n in range(columns)],
        *[rf"\node at ({m},-1) {{{m}}};" for m in range(rows)],
        *[rf"\node at (-1,{n}) {{{n}}};" for n in range(columns)],
        r"\end{tikzpicture}",
        r"\end{document}",
    ]
    print("\n".join(lines))

# SPDX-License-Identifier: Apache-2.0
"""The algebra of Mojo's older layouts, over that of the core: composition, complements, divisions and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import layout as algebra
from ...errors import LayoutError
from ...layout import ComposedLayout, leaves, nest_like
from ..brackets import Bracketed
from .int_layout import Layout, from_core, make_layout
from .int_tuple import UNKNOWN_VALUE, IntTuple, compact_order, shape_div
from .nested_integers import as_int_tree, of_tree

__all__ = [
    "apply_tiler",
    "blocked_product",
    "coalesce",
    "complement",
    "composition",
    "downcast",
    "expand_modes_alike",
    "expand_strides",
    "hierarchical_unzip",
    "logical_divide",
    "logical_product",
    "make_ordered_layout",
    "right_inverse",
    "tile_to_shape",
    "upcast",
    "zip_modes",
    "zipped_divide",
]


def _result(layout: Any, caller: str) -> Layout:
    if isinstance(layout, ComposedLayout):
        raise LayoutError(f"{caller}: the result has no strides; tilewright.compose has an exact answer")
    return from_core(layout)


def _without_unit_strides(layout: Layout) -> Layout:
    """Return the layout with stride 0 where an extent is 1, as Mojo's divisions and products have it."""
    pairs = zip(leaves(layout.shape._tree), leaves(layout.stride._tree), strict=True)
    strides = iter([0 if n == 1 else d for n, d in pairs])
    return Layout(layout.shape, of_tree(nest_like(layout.shape._tree, strides)))


def coalesce(layout: Layout, keep_rank: bool = False) -> Layout:
    """Return the layout with neighbouring modes merged where they continue each other; `keep_rank` only within modes.

    >>> print(coalesce(Layout(IntTuple(2, 8), IntTuple(4, 8))))
    (16:4)
    """
    if keep_rank:
        return make_layout(*[coalesce(mode) for mode in layout])
    if layout.all_dims_known():
        return from_core(algebra.coalesce(layout.core()))
    shape, stride = [1], [0]
    for n, d in zip(leaves(layout.shape._tree), leaves(layout.stride._tree), strict=True):
        continues = UNKNOWN_VALUE not in (shape[-1], stride[-1], n, d) and shape[-1] * stride[-1] == d
        if n == 1:
            continue
        if shape[-1] == 1:
            shape[-1], stride[-1] = n, d
        elif continues:
            shape[-1] *= n
        else:
            shape.append(n)
            stride.append(d)
    trees = [tuple(part) if len(part) > 1 else part[0] for part in (shape, stride)]
    return Layout(of_tree(trees[0]), of_tree(trees[1]))


def composition(layout_a: Layout, layout_b: Any) -> Layout:
    """Return the layout i -> layout_a(layout_b(i)); with a list of layouts, mode by mode.

    >>> print(composition(Layout.row_major(4, 8), Layout(4, 2)))
    ((2, 2):(16, 1))
    """
    if not isinstance(layout_b, Layout):
        return apply_tiler[composition](layout_a, layout_b)
    return _result(algebra.compose(layout_a.core(), layout_b.core()), "composition")


def complement(layout: Layout, size: Any = 1) -> Layout:
    """Return the layout of the indices below `size` that a layout leaves out, as far as they repeat it.

    >>> print(complement(Layout(4, 2), 24), complement(Layout(4, 1), UNKNOWN_VALUE))
    ((2, 3):(1, 8)) (-1:4)
    """
    count = int(size)
    if count != UNKNOWN_VALUE:
        return _without_unit_strides(from_core(algebra.complement(layout.core(), count)))
    end = layout.cosize()
    inner = from_core(algebra.complement(layout.core(), end))
    rest = Layout(UNKNOWN_VALUE, end)
    return rest if inner.size() == 1 else make_layout(*_modes(inner), rest)


def _modes(layout: Layout) -> list[Layout]:
    return list(layout) if layout.shape.is_tuple() else [layout]


def _apply_tiler(_: Any, parameters: tuple[Any, ...], layout_a: Layout, tiler: Any) -> Layout:
    tilers = list(tiler)
    if not tilers:
        return layout_a
    parts = [parameters[0](layout_a[k], tile) for k, tile in enumerate(tilers)]
    return make_layout(*parts, *[layout_a[k] for k in range(len(tilers), len(layout_a))])


class _ApplyTiler(Bracketed[Layout]):
    """`apply_tiler[function](layout, tiler)`: a function of each mode and the layout of a list for it.

    >>> print(apply_tiler[composition](Layout.row_major(8, 4), [Layout(4, 1), Layout(2, 1)]))
    ((4, 2):(4, 1))
    """


apply_tiler = _ApplyTiler(_apply_tiler)


def logical_divide(layout_a: Layout, layout_b: Any) -> Layout:
    """Return the layout as (tile, tiles): the elements that `layout_b` selects, and where the others repeat them.

    >>> print(logical_divide(Layout(IntTuple(4, 2, 3), IntTuple(2, 1, 8)), Layout(4, 2)))
    (((2, 2), (2, 3)):((4, 1), (2, 8)))
    """
    if not isinstance(layout_b, Layout):
        return apply_tiler[logical_divide](layout_a, layout_b)
    divided = algebra.logical_divide(layout_a.core(), layout_b.core())
    return _without_unit_strides(_result(divided, "logical_divide"))


def logical_product(layout_a: Layout, layout_b: Any) -> Layout:
    """Return the layout (block, copies): `layout_a`, repeated as `layout_b` says.

    >>> print(logical_product(Layout(IntTuple(2, 2), IntTuple(4, 1)), Layout(6, 1)))
    (((2, 2), (2, 3)):((4, 1), (2, 8)))
    """
    if not isinstance(layout_b, Layout):
        tilers = list(layout_b)
        if len(tilers) == 1:
            return logical_product(layout_a, tilers[0])
        return apply_tiler[logical_product](layout_a, tilers)
    product = _result(algebra.logical_product(layout_a.core(), layout_b.core()), "logical_product")
    return make_layout(layout_a, _without_unit_strides(product[1]))


def zip_modes(layout_a: Layout, layout_b: Layout) -> Layout:
    """Return the layout whose modes are pairs of the modes of two layouts.

    >>> print(zip_modes(Layout.row_major(2, 3), Layout.row_major(4, 5)))
    (((2, 4), (3, 5)):((3, 5), (1, 1)))
    """
    return make_layout(*[make_layout(a, b) for a, b in zip(_modes(layout_a), _modes(layout_b), strict=True)])


def blocked_product(layout_a: Layout, layout_b: Layout, coalesce_output: bool = False) -> Layout:
    """Return `layout_a` repeated by `layout_b` as a grid of blocks; `coalesce_output` merges within the modes.

    >>> print(blocked_product(Layout.row_major(2, 2), Layout.row_major(2, 3)))
    (((2, 2), (2, 3)):((2, 12), (1, 4)))
    """
    if layout_a.rank() != layout_b.rank():
        raise LayoutError(f"blocked_product: {layout_a} and {layout_b} have different ranks; they must match")
    pair = logical_product(layout_a, layout_b)
    blocks = zip_modes(pair[0], pair[1])
    return coalesce(blocks, keep_rank=True) if coalesce_output else blocks


def tile_to_shape(tile: Layout, target_shape: Any, order: Any = None) -> Layout:
    """Return `tile` repeated until it has the target shape; the mode with the lowest `order` is repeated first.

    >>> print(tile_to_shape(Layout.row_major(2, 5), IntTuple(6, 20)))
    (((2, 3), (5, 4)):((5, 10), (1, 30)))
    """
    shape = of_tree(as_int_tree(target_shape))
    counts = shape_div(_flat_shape(shape), _flat_shape(tile.shape))
    return blocked_product(tile, make_ordered_layout(counts, order) if order is not None else Layout(counts))


def _flat_shape(shape: IntTuple) -> IntTuple:
    return shape.product_flatten()


def make_ordered_layout(shape: Any, order: Any) -> Layout:
    """Return the layout of a shape without gaps, the mode with the lowest `order` fastest.

    >>> print(make_ordered_layout(IntTuple(2, 3, 4), IntTuple(1, 2, 0)))
    ((2, 3, 4):(4, 8, 1))
    """
    form = of_tree(as_int_tree(shape))
    return Layout(form, compact_order(form, order))


def hierarchical_unzip(layout_a: Layout, layout_b: Any) -> Layout:
    """Return the layout as (tile, tiles), each with one mode per mode of `layout_b`, whose strides have no effect.

    >>> print(hierarchical_unzip(Layout.row_major(4, 4), Layout.row_major(2, 2)))
    (((2, 2), (2, 2)):((4, 1), (8, 2)))
    """
    is_layout = isinstance(layout_b, Layout)
    if is_layout and (len(layout_a) == 1 or len(layout_b) == 1):
        return logical_divide(layout_a, Layout(layout_b.shape))
    tilers = list(layout_b)
    parts = [hierarchical_unzip(layout_a[k], tile) for k, tile in enumerate(tilers)]
    rest = [layout_a[k] for k in range(len(tilers), len(layout_a))]
    return make_layout(make_layout(*[part[0] for part in parts]), make_layout(*[part[1] for part in parts], *rest))


zipped_divide = hierarchical_unzip


def right_inverse(layout: Layout) -> Layout:
    """Return the layout r with layout(r(i)) = i, for as many i as there is one.

    >>> print(right_inverse(Layout.row_major(4, 8)))
    ((8, 4):(4, 1))
    """
    return from_core(algebra.right_inverse(layout.core()))


def _recast(change: Callable[[int, int, int], tuple[int, int]]) -> Callable[..., Layout]:
    def convert(_: Any, parameters: tuple[Any, ...], layout: Layout, factor: Any, **__: Any) -> Layout:
        pairs = zip(leaves(layout.shape._tree), leaves(layout.stride._tree), strict=True)
        changed = [change(n, d, int(factor)) for n, d in pairs]
        trees = [nest_like(layout.shape._tree, iter(numbers)) for numbers in zip(*changed, strict=True)]
        return Layout(of_tree(trees[0]), of_tree(trees[1]))

    return convert


def _widen(n: int, d: int, factor: int) -> tuple[int, int]:
    return int(shape_div(n, shape_div(factor, d))), int(shape_div(d, factor))


def _narrow(n: int, d: int, factor: int) -> tuple[int, int]:
    return (n * factor, d) if d == 1 else (n, d * factor)


class _Upcast(Bracketed[Layout]):
    """`upcast(layout, factor)`: the layout over elements that are `factor` times as wide.

    >>> print(upcast(Layout(IntTuple(4, 3), IntTuple(2, 4)), 2))
    ((4, 3):(1, 2))
    """


upcast = _Upcast(_recast(_widen))


class _Downcast(Bracketed[Layout]):
    """`downcast(layout, factor)`: the layout over elements that are `factor` times as narrow.

    >>> print(downcast(Layout(IntTuple(4, 3), IntTuple(3, 1)), 2))
    ((4, 6):(6, 1))
    """


downcast = _Downcast(_recast(_narrow))


def expand_strides(shape: Any, stride: Any) -> IntTuple:
    """Return the strides of the integers of a shape that together have one stride.

    >>> print(expand_strides(IntTuple(3, IntTuple(5, 2)), 2))
    (2, (6, 30))
    """
    tree, step, strides = shape._tree, int(stride), []
    for leaf in leaves(tree):
        strides.append(step)
        step *= leaf
    return of_tree(nest_like(tree, iter(strides)))


def expand_modes_alike(layout_a: Layout, layout_b: Layout) -> list[Layout]:
    """Return two layouts of equal extents with the same nesting: an integer is split as the other's mode is.

    >>> for layout in expand_modes_alike(Layout.row_major(2, 2), Layout(4)):
    ...     print(layout)
    ((2, 2):(2, 1))
    ((2, 2):(1, 2))
    """
    shape, ours, theirs = _expand(layout_a.shape, layout_a.stride, layout_b.shape, layout_b.stride)
    return [Layout(shape, ours), Layout(shape, theirs)]


def _expand(shape_a: IntTuple, stride_a: IntTuple, shape_b: IntTuple, stride_b: IntTuple) -> tuple[IntTuple, ...]:
    if shape_a.is_value() and shape_b.is_value():
        return shape_b, stride_a, stride_b
    if shape_a.is_value():
        return shape_b, expand_strides(shape_b, stride_a), stride_b
    if shape_b.is_value():
        return shape_a, stride_a, expand_strides(shape_a, stride_b)
    if len(shape_a) != len(shape_b):
        raise LayoutError(f"expand_modes_alike: {shape_a} and {shape_b} have different numbers of modes")
    parts = [_expand(*modes) for modes in zip(shape_a, stride_a, shape_b, stride_b, strict=True)]
    shape, ours, theirs = (of_tree(tuple([part._tree for part in column])) for column in zip(*parts, strict=True))
    return shape, ours, theirs

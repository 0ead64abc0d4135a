# SPDX-License-Identifier: Apache-2.0
"""Reshaping: other shapes over the same scalars, and vectors of them. None of them copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LayoutError
from ..layout import ComposedLayout, Layout, LayoutLike
from ..layout.integers import DynamicInt, as_integer, is_dynamic
from ..layout.strided import make
from ..layout.tuples import as_tree, leaves, map_leaves, product, suffix_product
from .cutting import paired, transposed, vectorized

if TYPE_CHECKING:
    from .tile_tensor import TileTensor


def reshape(tensor: TileTensor, fixed: tuple[Any, ...], *shape: Any, allow_resize: bool = False) -> TileTensor:
    """Return the same scalars in another shape: `t.reshape[2, 6]()`, `t.reshape(shape)`, or `t.reshape(layout)`.

    A shape needs elements that follow each other in row-major order, and as many of them. A layout is laid over the
    storage from t's first scalar on; one of another size needs `allow_resize=True`.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4))
    >>> t.reshape[2, 6]().layout, t.reshape(tw.col_major(2, 6)).layout
    (Layout((2, 6), (6, 1)), Layout((2, 6), (1, 2)))
    """
    if not fixed and len(shape) == 1 and isinstance(shape[0], LayoutLike):
        return _relaid(tensor, shape[0], allow_resize)
    if fixed:
        form = as_tree(fixed)
    else:
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        form = as_tree(given)
    form = map_leaves(lambda n: as_integer(n, "an extent"), form)
    require_row_major(tensor, "reshape")
    if product(form) != tensor.numel():
        raise LayoutError(
            f"cannot reshape {tensor.numel()} elements of shape {tensor.layout.shape} to {form}, which has"
            f" {product(form)}"
        )
    size = tensor.element_size
    if size == 1:
        return tensor._view(paired(make(form, suffix_product(form))), tensor._offset)
    lanes = tuple([1] * (len(form) - 1) + [size]) if form else (size,)
    steps = tuple([1] * len(lanes))
    return tensor._view(make((form, lanes), (suffix_product(form, size), steps)), tensor._offset)


def _relaid(tensor: TileTensor, layout: LayoutLike, allow_resize: bool) -> TileTensor:
    if tensor.element_size != 1:
        raise LayoutError("a vectorized tensor cannot take another layout; reshape it before vectorize")
    if tensor.is_ragged:
        raise LayoutError(
            "a ragged view cannot take another layout: its scalars outside the valid part are not its own"
        )
    if layout.size != tensor.numel() and not allow_resize:
        raise LayoutError(
            f"{layout} has {layout.size} elements, but the tensor has {tensor.numel()}; allow_resize=True allows"
            " another size"
        )
    found = tensor._view(paired(layout), tensor._offset)
    found._check_inside()
    return found


def require_row_major(tensor: TileTensor, who: str) -> None:
    """Raise unless the elements follow each other without gaps, the last mode fastest.

    >>> import tilewright as tw
    >>> require_row_major(tw.TileTensor(bytearray(12), tw.row_major(3, 4)), "reshape")
    """
    if not follows_row_major(tensor):
        raise LayoutError(
            f"{who} needs elements that follow each other in row-major order, but the layout is {tensor.layout}"
            + (" with a ragged edge" if tensor.is_ragged else "")
            + "; copy it first: TileTensor(t.to_numpy())"
        )


def follows_row_major(tensor: TileTensor) -> bool:
    """Return whether the elements follow each other without gaps, the last mode fastest.

    >>> import tilewright as tw
    >>> follows_row_major(tw.TileTensor(bytearray(12), tw.row_major(3, 4)).transpose())
    False
    """
    whole = tensor._whole
    if not isinstance(whole, Layout) or whole.guards:
        return False
    modes = [*zip(whole.shape[0], whole.stride[0], strict=True)][::-1]
    # inside a nested mode the first leaf is the fastest
    runs = [pair for shape, stride in modes for pair in zip(leaves(shape), leaves(stride), strict=True)]
    lanes = [*zip(whole.shape[1], whole.stride[1], strict=True)][::-1]
    block = [pair for shape, stride in lanes for pair in zip(leaves(shape), leaves(stride), strict=True)]
    expected = 1
    for n, step in [*block, *runs]:
        if n != 1:
            if step != expected:
                return False
            expected *= n
    return True


def coalesce(tensor: TileTensor) -> TileTensor:
    """Return the tensor with one mode; its elements must follow each other in row-major order.

    >>> import tilewright as tw
    >>> tw.TileTensor(list(range(12)), tw.row_major(3, 4)).coalesce().layout
    Layout((12,), (1,))
    """
    require_row_major(tensor, "coalesce")
    count: Any = tensor.numel()
    if any(map(is_dynamic, leaves(tensor.layout.shape))):
        count = DynamicInt(count)
    size = tensor.element_size
    whole = make(((count,), (size,) if size > 1 else ()), ((size,), (1,) if size > 1 else ()))
    return tensor._view(whole, tensor._offset)


def transpose(tensor: TileTensor) -> TileTensor:
    """Return the tensor with its modes in reverse.

    >>> import tilewright as tw
    >>> tw.TileTensor(list(range(12)), tw.row_major(3, 4)).transpose().layout
    Layout((4, 3), (1, 4))
    """
    return tensor._view(transposed(tensor._whole), tensor._offset)


def make_dynamic(tensor: TileTensor, fixed: tuple[Any, ...] = ()) -> TileTensor:
    """Return the same view with every extent and stride dynamic: `t.make_dynamic[DType.int64]()`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(12), tw.row_major(3, 4)).make_dynamic().layout
    Layout((Idx(3), Idx(4)), (Idx(4), Idx(1)))
    """
    return tensor._view(_dynamic(tensor._whole), tensor._offset)


def _dynamic(whole: Any) -> Any:
    if isinstance(whole, ComposedLayout):
        return ComposedLayout(whole.outer, _dynamic(whole.inner))
    return whole.make_dynamic()


def flatten_leading(tensor: TileTensor) -> TileTensor:
    """Return a tensor of rank 3 with its first two modes as one, where their strides allow it.

    >>> import tilewright as tw
    >>> flatten_leading(tw.TileTensor(bytearray(24), tw.row_major(2, 3, 4))).layout
    Layout((Idx(6), 4), (4, 1))
    """
    layout = tensor.layout
    if not isinstance(layout, Layout) or layout.rank != 3 or layout.flat_rank != 3 or tensor.element_size != 1:
        raise LayoutError(f"flatten_leading needs three plain modes of scalars, not {layout}")
    (a, b, c), (d, e, f) = layout.shape, layout.stride
    if tensor.is_ragged or (a > 1 and d != b * e):
        raise LayoutError(f"the first two modes of {layout} are not one: stride {d} is not {b} * {e}")
    return tensor._view(paired(make((DynamicInt(a * b), c), (e, f))), tensor._offset)


def vectorize(tensor: TileTensor, fixed: tuple[Any, ...], *, simd_bytes: int = 64) -> TileTensor:
    """Return the tensor with blocks of elements as single elements: `t.vectorize[1, 4]()`.

    Without brackets, blocks are as long in the last mode as `simd_bytes` holds scalars. An element is the real block
    in its own shape; at a ragged edge it has fewer valid lanes.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(120)), tw.row_major(10, 12)).vectorize[1, 4]()
    >>> t.layout, t.element_size, t[1, 0].tolist()
    (Layout((10, 3), (12, 4)), 4, [12, 13, 14, 15])
    """
    rank = len(tensor._extents)
    if not fixed:
        lanes = max(1, simd_bytes // tensor._store.format.itemsize)
        fixed = (*[1] * (rank - 1), lanes) if rank else ()
    if len(fixed) != rank:
        raise LayoutError(
            f"a vector shape {tuple(fixed)} does not fit a tensor of shape {tensor.layout.shape}: give {rank} extents"
        )
    widths = [int(as_integer(n, "a vector extent")) for n in fixed]
    if any(n < 1 for n in widths):
        raise LayoutError(f"a vector shape {tuple(fixed)} is empty; extents must be at least 1")
    if all(n == 1 for n in widths):
        return tensor._view(tensor._whole, tensor._offset, tensor.linear_idx_type)
    return tensor._view(vectorized(tensor._whole, widths), tensor._offset, tensor.linear_idx_type)

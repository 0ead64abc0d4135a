# SPDX-License-Identifier: Apache-2.0
"""Whole tensors: fill, copy, compare and turn into arrays all scalars at once, at memory speed."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..copying.engine import execute
from ..copying.plan import plan_copy
from ..errors import LayoutError
from ..layout.tuples import product_each
from .access import require_writable
from .scalars import SMALL, Array, Scalars, assign, box, box_of_mask, run_plan

if TYPE_CHECKING:
    from .tile_tensor import TileTensor


def fill(tensor: TileTensor, value: Any, use_runtime_layout: bool | None = None) -> TileTensor:
    """Return the tensor after every valid scalar of every element was set to a value.

    >>> import tilewright as tw
    >>> tw.TileTensor([0] * 4, tw.row_major(2, 2)).fill(7).to_numpy().tolist()
    [[7, 7], [7, 7]]
    """
    require_writable(tensor)
    scalars = Scalars.of(tensor)
    view = scalars.view()
    if view is not None:
        view[...] = value
    else:
        table, mask = scalars.places()
        tensor._store.host[table[mask]] = value
    return tensor


def copy_from(tensor: TileTensor, source: Any, order: str | None = None, fill: Any = None) -> TileTensor:
    """Return the tensor after the elements of another one, or of an array, were copied and converted into it.

    Equal extents mean the same coordinate. Other shapes with as many scalars need an order: "row" (last mode fastest)
    or "colex" (first fastest). A source that has less valid than the target needs `fill` for the rest.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 4, tw.col_major(2, 2))
    >>> t.copy_from(tw.TileTensor([1, 2, 3, 4], tw.row_major(2, 2))).to_numpy().tolist()
    [[1, 2], [3, 4]]
    """
    require_writable(tensor)
    target = Scalars.of(tensor)
    if not tensor._store.on_host or (hasattr(source, "_store") and not source._store.on_host):
        return _copy_by_device(tensor, target, source)
    if not hasattr(source, "_whole"):
        values = np.asarray(source)
        return _from_array(
            tensor, target, np.broadcast_to(values, target.extents) if values.ndim == 0 else values, order
        )
    origin = Scalars.of(source)
    if origin.extents != target.extents:
        return _from_array(tensor, target, origin.read(), order)
    if origin.is_whole or origin.valid == target.valid or fill is not None or _covers(origin, target):
        _copy_scalars(origin, target, fill)
        return tensor
    raise LayoutError(
        f"the source has {origin.valid} of {origin.extents} valid, less than the {target.valid} of the target; give"
        " fill=x for the rest"
    )


def _copy_by_device(tensor: TileTensor, target: Scalars, source: Any) -> TileTensor:
    """Copy by a plan between tensors of which one is in the memory of a device: boxes of equal extents."""
    if not hasattr(source, "_whole"):
        raise tensor._store.data.unreachable()
    origin = Scalars.of(source)
    ours = theirs = None
    if target.valid is not None and origin.valid == target.valid:
        ours = target.placed(target.valid, anywhere=True)
        theirs = origin.placed(target.valid, anywhere=True)
    if ours is None or theirs is None:
        raise LayoutError(
            f"in the memory of a device, tensors of equal extents are copied, such as {target.valid or target.extents};"
            " copy whole buffers with ctx.enqueue_copy, or give the source that shape"
        )
    if target.valid and prod(target.valid):
        execute(plan_copy(theirs[0], ours[0]), theirs[1], ours[1])
    return tensor


def _covers(origin: Scalars, target: Scalars) -> bool:
    """Return whether all that is valid in target is valid in origin."""
    if origin.valid is not None and target.valid is not None:
        return all(a >= b for a, b in zip(origin.valid, target.valid, strict=True))
    return bool((origin.places()[1] | ~target.places()[1]).all())


def _copy_scalars(origin: Scalars, target: Scalars, fill: Any) -> None:
    if target.valid is not None and prod(target.valid) >= SMALL and origin.valid is not None and fill is None:
        ours, theirs = origin.placed(target.valid), target.placed(target.valid)
        if ours is not None and theirs is not None and run_plan(*ours, *theirs):
            return
    if origin.valid == target.valid and origin.valid is not None:
        source, view = origin.view(), target.view()
        if source is not None and view is not None and source.shape == view.shape:
            assign(source, view, target.tensor)
            return
        target.write(origin.read())
        return
    if origin.is_whole and target.valid is not None:
        target.write(origin.read())
        return
    target.write(origin.read(fill=0 if fill is None else fill))


def _from_array(tensor: TileTensor, target: Scalars, values: Array, order: str | None) -> TileTensor:
    if order is None:
        if values.shape not in (target.extents, target.valid):
            raise LayoutError(
                f"cannot copy shape {values.shape} into {target.extents}: the extents differ; order='row' or 'colex'"
                " copies in linear order"
            )
        target.write(values)
        return tensor
    if order not in ("row", "colex"):
        raise LayoutError(f"order={order!r}: use 'row' (last mode fastest) or 'colex' (first fastest)")
    shape = target.extents if target.valid is None else target.valid
    if values.size != prod(shape):
        raise LayoutError(f"cannot copy {values.size} scalars into {prod(shape)}; the counts must be equal")
    layout_order: Any = "C" if order == "row" else "F"
    target.write(values.reshape(-1, order=layout_order).reshape(shape, order=layout_order))
    return tensor


def to_numpy(tensor: TileTensor, fill: Any = None, copy: bool | None = True) -> Array:
    """Return the elements in logical order as an array: a dimension a mode, then those of a vector element.

    A ragged view gives its valid part, or with `fill` its full shape. `copy=False` gives a view of the storage or
    raises; `copy=None` copies only where strides do not allow a view.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(6)), tw.col_major(2, 3))
    >>> t.to_numpy().tolist(), t.to_numpy(copy=False).base is not None
    ([[0, 2, 4], [1, 3, 5]], True)
    """
    scalars = Scalars.of(tensor)
    lanes = tuple([int(n) for n in product_each(tensor._whole.shape[1])])
    if tensor.numel() == 0:
        fill = 0  # nothing is outside an empty shape
    if lanes and fill is None and scalars.valid is not None and 0 in scalars.valid:
        return np.empty((*[0] * tensor.rank, *[n for n in lanes if n != 1]), dtype=tensor._store.format.dtype)
    if lanes and fill is None and not _whole_lanes(scalars, lanes, tensor):
        raise LayoutError(
            f"elements at the ragged edge of {tensor.layout} have fewer than {tensor.element_size} lanes, so no array"
            " holds just the valid ones; give fill=x for the rest"
        )
    if not copy and (fill is None or scalars.is_whole):
        view = scalars.view()
        if view is not None and view.ndim == len(scalars.extents):
            return _by_element(view, lanes, len(tensor._whole.shape[0]))
    if copy is False:
        raise LayoutError(f"{tensor.layout} cannot be seen as an array without a copy; leave out copy=False")
    return _by_element(scalars.read(fill), lanes, len(tensor._whole.shape[0]))


def _whole_lanes(scalars: Scalars, lanes: tuple[int, ...], tensor: TileTensor) -> bool:
    if scalars.valid is None:
        return False
    if len(lanes) != tensor.rank:  # a slice dropped modes whose lanes are still there
        return scalars.is_whole
    return all(n % lane == 0 for n, lane in zip(scalars.valid, lanes, strict=True))


def _by_element(found: Array, lanes: tuple[int, ...], rank: int) -> Array:
    """Return scalars, mode by mode, as elements followed by their lanes; lanes of extent 1 have no dimension."""
    if not lanes:
        return found
    if found.ndim == rank:
        split: list[int] = []
        for n, lane in zip(found.shape, lanes, strict=True):
            split += [n // lane, lane]
        found = found.reshape(split).transpose([*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)])
    elements = found.shape[: found.ndim - len(lanes)]
    return found.reshape((*elements, *[lane for lane in lanes if lane != 1]))


def from_elements(tensor: TileTensor, values: Array) -> None:
    """Write an array in the form of `to_numpy` over the elements.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 4, tw.row_major(2, 2)).vectorize[1, 2]()
    >>> from_elements(t, np.array([[1, 2], [3, 4]]).reshape(2, 1, 2))
    >>> t.to_numpy().tolist()
    [[[1, 2]], [[3, 4]]]
    """
    lanes = tuple([int(n) for n in product_each(tensor._whole.shape[1])])
    if not lanes:
        Scalars.of(tensor).write(values)
        return
    rank = len(tensor._whole.shape[0])
    elements = values.shape[:rank]
    whole = values.reshape((*elements, *lanes))
    if len(lanes) == rank:
        whole = whole.transpose([k for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for k in pair])
        whole = whole.reshape([n * lane for n, lane in zip(elements, lanes, strict=True)])
    Scalars.of(tensor).write(whole)


def mask(tensor: TileTensor) -> Array:
    """Return which elements of the full shape are valid, and for vectors which lanes, as an array of bools.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(6), tw.row_major(2, 3)).tile[2, 2](0, 1).mask().tolist()
    [[True, False], [True, False]]
    """
    scalars = Scalars.of(tensor)
    lanes = tuple([int(n) for n in product_each(tensor._whole.shape[1])])
    return _by_element(np.array(scalars.places()[1]), lanes, len(tensor._whole.shape[0]))


def valid_elements(tensor: Any) -> tuple[int, ...] | None:
    """Return how many elements of each mode have a valid lane, if those are a box; else None.

    >>> import tilewright as tw
    >>> valid_elements(tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 4](1, 0).vectorize[1, 3]())
    (2, 2)
    """
    if tensor.element_size == 1:
        return box(tensor._mode_layout, tensor.shape)
    found = mask(tensor)
    return box_of_mask(np.asarray(found.any(axis=tuple(range(tensor.rank, found.ndim)))))


def equals(tensor: TileTensor, other: Any) -> bool:
    """Return whether another tensor or array has the same valid elements at the same coordinates.

    >>> import tilewright as tw
    >>> a = tw.TileTensor([1, 2, 3, 4], tw.row_major(2, 2))
    >>> a.equals([[1, 2], [3, 4]]), a.equals(a.transpose())
    (True, False)
    """
    theirs = to_numpy(other, fill=0, copy=None) if hasattr(other, "_whole") else np.asarray(other)
    ours = to_numpy(tensor, fill=0, copy=None)
    if hasattr(other, "_whole") and not np.array_equal(mask(tensor), mask(other)):
        return False
    if ours.shape != theirs.shape and tensor.is_ragged and not hasattr(other, "_whole"):
        ours = to_numpy(tensor, copy=None)
    return bool(np.array_equal(ours, theirs))

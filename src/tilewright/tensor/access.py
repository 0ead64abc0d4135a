# SPDX-License-Identifier: Apache-2.0
"""Access: from the index of an element to its scalars in storage, checked on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CoordinateError, LayoutError
from ..layout import Layout
from ..layout.coords import is_array, is_slice
from ..layout.integers import as_integer
from ..layout.tuples import leaves, product, product_each
from .pointer import Pointer

if TYPE_CHECKING:
    from .tile_tensor import TileTensor


def place_of(tensor: TileTensor, index: tuple[Any, ...]) -> Any:
    """Return where the first scalar of an element lies in storage; the index takes any of the accepted forms.

    >>> import tilewright as tw
    >>> place_of(tw.TileTensor(bytearray(48), tw.row_major(6, 8)), (1, 3))
    11
    """
    layout = tensor.layout
    _refuse_slices(index)
    try:
        place = layout(*index)
        inside = True if not tensor.is_ragged else layout.valid(*index)
    except LayoutError as problem:
        raise _refused(tensor, index, problem) from None
    if not np.all(inside):
        raise CoordinateError(
            f"index {_shown(index)} is outside the valid part of a ragged view of shape {layout.shape}:"
            f" {_valid_part(tensor)}; load(..., fill=x) pads"
        )
    return tensor.offset + place


def _refuse_slices(index: tuple[Any, ...]) -> None:
    if is_slice(index):  # layouts would keep those modes
        raise TypeError(f"a coordinate must be an integer, got None or a slice in {index}")


def _refused(tensor: TileTensor, index: tuple[Any, ...], problem: LayoutError) -> CoordinateError:
    """Return the error for an index that the layout refused: out of range, or of another form."""
    return _outside(tensor, index) if isinstance(problem, CoordinateError) else CoordinateError(str(problem))


def _outside(tensor: TileTensor, index: tuple[Any, ...]) -> CoordinateError:
    shape = tensor.layout.shape
    if any(isinstance(part, int) and part < 0 for part in index):
        return CoordinateError(
            f"index {_shown(index)} is negative; indices of a tensor of shape {shape} count from 0 (slices may wrap)"
        )
    return CoordinateError(f"index {_shown(index)} is outside a tensor of shape {shape}: {_rule(tensor, index)}")


def _rule(tensor: TileTensor, index: tuple[Any, ...]) -> str:
    """Return what the first mode that an index leaves would take."""
    if len(index) == 1 and tensor.rank != 1:
        return f"a linear index takes 0 to {tensor.numel() - 1}"
    extents = tensor.shape if len(index) == tensor.rank else tuple(leaves(tensor.layout.shape))
    for k, (part, extent) in enumerate(zip(index, extents, strict=False)):
        if not isinstance(part, int) or part >= extent:
            return f"mode {k} takes 0 to {extent - 1}"
    return f"its modes take less than {extents}"


def _shown(index: tuple[Any, ...]) -> str:
    return str(index[0] if len(index) == 1 else index)


def _valid_part(tensor: TileTensor) -> str:
    try:
        return f"its valid shape is {tensor.valid_shape}"
    except LayoutError:
        return "mask() shows it"


def block_places(tensor: TileTensor, index: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return (places, valid) of all lanes of an element, as arrays in the shape of an element.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(bytearray(96), tw.row_major(8, 12)).vectorize[2, 2]()
    >>> block_places(t, (1, 0))[0].tolist()
    [[24, 25], [36, 37]]
    """
    whole = tensor._whole
    _refuse_slices(index)
    try:
        at = tensor.layout._coordinate(index)
        lanes = np.arange(tensor.element_size)
        # without lanes the coordinate of the lane changes nothing, and the answers are single numbers
        places = np.broadcast_to(whole(at, lanes) + tensor.offset, lanes.shape)
        valid = np.broadcast_to(whole.valid(at, lanes) if tensor.is_ragged else True, lanes.shape)
    except LayoutError as problem:
        raise _refused(tensor, index, problem) from None
    shape = product_each(_lane_shape(whole))
    block = tuple([n for n in shape if n != 1]) or (1,)
    return places.reshape(block, order="F"), valid.reshape(block, order="F")


def _lane_shape(whole: Any) -> Any:
    return whole.shape[1]


def read_element(tensor: TileTensor, index: tuple[Any, ...], fill: Any = None) -> Any:
    """Return an element: a scalar, or the array of its lanes; with fill, what is not valid reads as fill.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4)).vectorize[1, 2]()
    >>> read_element(t, (1, 1)).tolist()
    [6, 7]
    """
    data = tensor._store.host
    if tensor.element_size == 1:
        if fill is None or not tensor.is_ragged or tensor.layout.valid(*index):
            return data[place_of(tensor, index)]
        if product(tensor.layout.shape) == 0:
            raise _outside(tensor, index)
        tensor.layout(*index)  # outside the full shape nothing is padded
        return data.dtype.type(fill)
    places, valid = block_places(tensor, index)
    if valid.all():
        return data[places]
    if fill is None:
        raise _partly(tensor, index, valid, "load(..., fill=x) pads")
    found = np.full(places.shape, fill, dtype=data.dtype)
    found[valid] = data[places[valid]]
    return found


def write_element(tensor: TileTensor, index: tuple[Any, ...], value: Any, masked: bool = False) -> None:
    """Write an element: a scalar goes into all lanes; masked writes only those lanes that are valid.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 4, tw.row_major(2, 2))
    >>> write_element(t, (1, 0), 7)
    >>> t.to_numpy().tolist()
    [[0, 0], [7, 0]]
    """
    require_writable(tensor)
    data = tensor._store.host
    if tensor.element_size == 1:
        if masked and tensor.is_ragged and not tensor.layout.valid(*index):
            tensor.layout(*index)
            return
        data[place_of(tensor, index)] = value
        return
    places, valid = block_places(tensor, index)
    lanes = np.asarray(value, dtype=data.dtype)
    if lanes.ndim and lanes.size != places.size:
        raise LayoutError(
            f"an element has {places.size} scalars in shape {places.shape}, but the value has {lanes.size}; give one"
            " scalar, or that many"
        )
    if not valid.all() and not masked:
        raise _partly(tensor, index, valid, "store(..., fill=x) writes only those lanes")
    block = np.broadcast_to(lanes.reshape(places.shape) if lanes.ndim else lanes, places.shape)
    data[places[valid]] = block[valid]


def _partly(tensor: TileTensor, index: tuple[Any, ...], valid: Any, remedy: str) -> CoordinateError:
    return CoordinateError(
        f"element {_shown(index)} of a ragged view has {int(valid.sum())} valid lanes of {valid.size}; {remedy}"
    )


def require_writable(tensor: TileTensor) -> None:
    """Raise if a tensor is read-only.

    >>> import tilewright as tw
    >>> require_writable(tw.TileTensor(bytearray(4), tw.row_major(2, 2)))
    """
    if tensor._store.readonly:
        raise LayoutError("this tensor is read-only (its storage is, or as_immut made it so) and cannot be written")


def run_of(tensor: TileTensor, index: tuple[Any, ...], width: Any, alignment: Any) -> tuple[int, int]:
    """Return (place, width) of so many scalars in a row from an element on, inside storage and aligned.

    >>> import tilewright as tw
    >>> run_of(tw.TileTensor(bytearray(48), tw.row_major(6, 8)), (1, 6), 4, None)
    (14, 4)
    """
    count = as_integer(width, "a width")
    place = place_of(tensor, index)
    if count < 1 or is_array(place):
        raise LayoutError(f"a load of {count} scalars needs one index and a width of at least 1")
    if place + count > tensor._store.size:
        raise CoordinateError(
            f"{count} scalars from {place} on leave the storage, which has {tensor._store.size}; use a smaller width"
        )
    check_alignment(tensor, place, alignment)
    return place, count


def check_alignment(tensor: TileTensor, place: int, alignment: Any) -> None:
    """Raise unless the byte address of a scalar is a multiple of alignment.

    >>> import tilewright as tw
    >>> check_alignment(tw.TileTensor(bytearray(4), tw.row_major(2, 2)), 1, 1)
    """
    if alignment is None:
        return
    step = as_integer(alignment, "an alignment")
    if step < 1:
        raise LayoutError(f"an alignment of {step} bytes is no alignment; use 1 or more")
    address = Pointer(tensor._store, place).address
    if address % step:
        raise LayoutError(
            f"scalar {place} lies at address {address:#x}, {address % step} bytes past a multiple of {step}; align the"
            " storage, or ask for less"
        )


def load(
    tensor: TileTensor,
    fixed: tuple[Any, ...],
    *index: Any,
    width: Any = None,
    alignment: Any = None,
    invariant: bool = False,
    fill: Any = None,
) -> Any:
    """Return the element at an index; with a width, that many scalars that follow each other in storage.

    `load[4](...)` fixes the width, `alignment` in bytes is checked, `invariant` is a hint. With `fill`, lanes and
    elements outside the valid part of a ragged view read as that value.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(48)), tw.row_major(6, 8))
    >>> int(t.load(2, 3)), t.load[4](1, 6).tolist()
    (19, [14, 15, 16, 17])
    """
    width, alignment = _static(fixed, width, alignment)
    index = _index(tensor, index)
    if width is None:
        if alignment is not None:
            check_alignment(tensor, place_of(tensor, index), alignment)
        return read_element(tensor, index, fill)
    place, count = run_of(tensor, index, width, alignment)
    return tensor._store.host[place : place + count].copy()


def store(
    tensor: TileTensor,
    fixed: tuple[Any, ...],
    *index_and_value: Any,
    width: Any = None,
    alignment: Any = None,
    fill: Any = None,
) -> None:
    """Write the element at an index; with a width, that many scalars that follow each other in storage.

    The value comes last. With `fill` (any value) only the valid lanes of a ragged view are written.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 8, tw.row_major(2, 4))
    >>> t.store[2]((1, 0), [5, 6])
    >>> t.to_numpy().tolist()
    [[0, 0, 0, 0], [5, 6, 0, 0]]
    """
    if len(index_and_value) < 2:
        raise TypeError("store takes an index and a value, store(index, value)")
    *given, value = index_and_value
    width, alignment = _static(fixed, width, alignment)
    index = _index(tensor, tuple(given))
    require_writable(tensor)
    if width is None:
        if alignment is not None:
            check_alignment(tensor, place_of(tensor, index), alignment)
        write_element(tensor, index, value, masked=fill is not None)
        return
    place, count = run_of(tensor, index, width, alignment)
    scalars = np.asarray(value).reshape(-1)
    if scalars.size != count:
        raise LayoutError(f"store of width {count} got {scalars.size} scalars; give exactly that many")
    tensor._store.host[place : place + count] = scalars


def _static(fixed: tuple[Any, ...], width: Any, alignment: Any) -> tuple[Any, Any]:
    """Return width and alignment, given in brackets (width, alignment, invariant) or by name."""
    if len(fixed) > 3:
        raise TypeError(f"brackets take width, alignment and invariant, got {fixed}")
    return (fixed[0] if fixed else width), (fixed[1] if len(fixed) > 1 else alignment)


def _index(tensor: TileTensor, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the index as separate entries, from separate entries or one tuple."""
    if len(index) == 1 and isinstance(index[0], (tuple, list)):
        return tuple(index[0])
    return index


def ptr_at_offset(tensor: TileTensor, *index: Any) -> Pointer:
    """Return a pointer to the first scalar of the element at an index.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).ptr_at_offset(1, 3).offset
    11
    """
    return Pointer(tensor._store, place_of(tensor, _index(tensor, index)))


def quick_access(tensor: TileTensor) -> tuple[tuple[int, ...], tuple[Any, ...], Any]:
    """Return (extents, steps, lanes) for access without further checks; extents that fit no index where there is none.

    The step of a nested mode is the (extent, stride) of each of its leaves. Lanes are the offsets within an element,
    None for scalars.

    >>> import tilewright as tw
    >>> quick_access(tw.TileTensor(bytearray(24), tw.Layout((4, (2, 3)), (6, (3, 1)))))
    ((4, 6), (6, [(2, 3), (3, 1)]), None)
    """
    whole = tensor._whole
    if not isinstance(whole, Layout) or whole.guards:
        return (0,), (0,), None
    steps = [
        [(int(n), int(d)) for n, d in zip(leaves(shape), leaves(stride), strict=True)]
        if isinstance(stride, tuple)
        else int(stride)
        for shape, stride in zip(whole.shape[0], whole.stride[0], strict=True)
    ]
    lanes = None
    if whole.shape[1]:
        lanes = Layout(whole.shape[1], whole.stride[1]).offsets()
        lanes = lanes.reshape(tuple([n for n in lanes.shape if n != 1]) or (1,))
    return tensor.shape, tuple(steps), lanes


def raw_load(tensor: TileTensor, fixed: tuple[Any, ...], offset: int) -> Any:
    """Return scalars from an offset after the view's first one, whatever the layout: `t.raw_load[width](offset)`.

    >>> import tilewright as tw
    >>> tw.TileTensor(list(range(8)), tw.col_major(2, 4)).raw_load[2](5).tolist()
    [5, 6]
    """
    place, count = _raw_run(tensor, fixed[0] if fixed else 1, offset)
    found = tensor._store.host[place : place + count].copy()
    return found if fixed else found[0]


def raw_store(tensor: TileTensor, fixed: tuple[Any, ...], offset: int, value: Any) -> None:
    """Write scalars from an offset after the view's first one on, whatever the layout.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 4, tw.row_major(2, 2))
    >>> t.raw_store[2](1, [5, 6])
    >>> t.to_numpy().tolist()
    [[0, 5], [6, 0]]
    """
    require_writable(tensor)
    scalars = np.asarray(value).reshape(-1)
    place, count = _raw_run(tensor, fixed[0] if fixed else scalars.size, offset)
    if scalars.size != count:
        raise LayoutError(f"store of width {count} got {scalars.size} scalars; give exactly that many")
    tensor._store.host[place : place + count] = scalars


def _raw_run(tensor: TileTensor, width: Any, offset: Any) -> tuple[int, int]:
    place, count = tensor.offset + as_integer(offset, "an offset"), as_integer(width, "a width")
    if count < 1 or place < 0 or place + count > tensor._store.size:
        raise CoordinateError(f"scalars {place} to {place + count - 1} leave the storage of {tensor._store.size}")
    return place, count

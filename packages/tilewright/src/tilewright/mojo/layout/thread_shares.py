# SPDX-License-Identifier: Apache-2.0
"""The elements of one thread: thread layouts may be nested, and projected on one axis."""

from __future__ import annotations

from typing import Any

from ..._dialect import unwrap
from ..._integers import ceil_div
from ...errors import CoordinateError, LayoutError
from ...layout import Layout as NativeLayout
from ...layout import as_integer, as_tuple, leaves, make_layout, product, product_each
from ...tensor import cut_modes


def thread_arguments(method: str, given: tuple[Any, ...], thread_id: object, *layouts: Any) -> tuple[Any, ...]:
    """Return (thread layout, other parameters, thread id) of `distribute`, from its positional and named arguments.

    >>> thread_arguments("distribute", (5,), None, "threads")
    ('threads', 5)
    """
    named = [layout for layout in layouts if layout is not None]
    values = (*named, *given, *([] if thread_id is None else [thread_id]))
    if len(values) < 2 or len(named) > 1:
        raise TypeError(
            f"{method} takes a layout of threads and the id of a thread: t.{method}[row_major[2, 4]()](thread_id)"
        )
    return values


def checked_options(method: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `distribute` that are set; raise for one that it does not have.

    >>> checked_options("distribute", {"axis": None, "wrap": True})
    {'wrap': True}
    """
    for name in options:
        if name not in ("axis", "submode_axis", "swizzle", "wrap", "ragged"):
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
    return {name: value for name, value in options.items() if value is not None}


def distribute_elements(
    tensor: Any,
    arguments: tuple[Any, ...],
    *,
    axis: Any = None,
    swizzle: object = None,
    submode_axis: object = None,
    wrap: bool = True,
    ragged: str = "cover",
) -> tuple[Any, tuple[int, ...], int]:
    """Return (view, coordinates, offset) of a thread; the thread layout may be nested, and projected on an axis.

    >>> from tilewright.mojo.layout import Layout, LayoutTensor
    >>> distribute_elements(LayoutTensor(list(range(32)), Layout.row_major(4, 8)), (Layout.row_major(2, 4), 5))[1:]
    ((1, 1), 9)
    """
    *parameters, thread_id = arguments
    threads = unwrap(parameters[0])
    if not isinstance(threads, NativeLayout):
        raise TypeError(f"the thread layout must be a Layout, got {type(threads).__name__} {threads!r}")
    for value in parameters[1:]:
        if value is not None:
            axis, swizzle = (value, swizzle) if isinstance(value, int) else (axis, value)
    thread = int(as_integer(thread_id, "a thread id"))
    if wrap:
        thread %= int(threads.cosize)
    elif not 0 <= thread < threads.size:
        raise CoordinateError(f"thread {thread} is outside the {threads.size} threads of {threads}")
    shape, stride = as_tuple(threads.shape), as_tuple(threads.stride)
    if len(shape) != tensor.rank and not (axis is not None and tensor.rank == 1):
        raise LayoutError(f"thread layout {threads} does not fit a tensor of shape {tensor.layout.shape}")
    if axis is not None:
        k = int(axis)
        if tensor.rank == 1:
            shape, stride = (shape[k],), (stride[k],)
        else:
            shape = tuple([n if j == k else 1 for j, n in enumerate(shape)])
            stride = tuple([d if j == k else 0 for j, d in enumerate(stride)])
    return _share(tensor, shape, stride, thread, swizzle, ragged)


def _share(
    tensor: Any, shape: Any, stride: Any, thread: int, swizzle: Any, ragged: str
) -> tuple[Any, tuple[int, ...], int]:
    pair = tensor._pair
    coords = tuple([_position(n, d, thread) for n, d in zip(shape, stride, strict=True)])
    modes = pair.shape[0] if isinstance(pair, NativeLayout) else ()
    if any(isinstance(n, tuple) and isinstance(m, tuple) for n, m in zip(modes, shape, strict=False)):
        return _share_nested(tensor, shape, stride, thread, coords)
    counts = [int(n) for n in product_each(tuple(shape))]
    cuts = []
    for n, count, start in zip(tensor._extents, counts, coords, strict=True):
        share = n // count if ragged == "floor" or n % count == 0 else ceil_div(n, count)
        cuts.append((start, share, count))
    view_pair, shift = cut_modes(pair, cuts)
    if swizzle is not None:
        size = tensor.element_size
        shift = int(swizzle(shift // size)) * size
    view = tensor._view(view_pair, tensor._offset + shift)
    if swizzle is not None:
        view._check_bounds()
    return view, coords, view.offset - tensor.offset


def _position(shape: Any, stride: Any, thread: int) -> int:
    """Return the position of a thread along a mode; the first of nested extents is the fastest."""
    position, weight = 0, 1
    for n, d in zip(leaves(shape), leaves(stride), strict=True):
        position += (thread // int(d) % int(n) if d else 0) * weight
        weight *= int(n)
    return position


def _share_nested(
    tensor: Any, shape: Any, stride: Any, thread: int, coords: tuple[int, ...]
) -> tuple[Any, tuple[int, ...], int]:
    """Return the elements of a thread of nested modes: every leaf is divided by the leaf of the threads."""
    pair = tensor._pair
    extents, steps, shift = [], [], 0
    for n, d, count, step in zip(pair.shape[0], pair.stride[0], shape, stride, strict=True):
        part = _divide_mode(n, d, count, step, thread)
        extents.append(part[0])
        steps.append(part[1])
        shift += part[2]
    layout = make_layout((tuple(extents), pair.shape[1]), (tuple(steps), pair.stride[1]))
    return tensor._view(layout, tensor._offset + shift), coords, shift


def _divide_mode(n: Any, d: Any, count: Any, step: Any, thread: int) -> tuple[Any, Any, int]:
    if isinstance(n, tuple) and isinstance(count, tuple) and len(n) == len(count):
        parts = [_divide_mode(*leaf, thread) for leaf in zip(n, d, count, step, strict=True)]
        return tuple([part[0] for part in parts]), tuple([part[1] for part in parts]), sum(part[2] for part in parts)
    if isinstance(n, tuple):
        raise LayoutError(f"threads {count} do not fit a mode of shape {n}")
    total = int(product(count))
    if n % total:
        raise LayoutError(f"{n} elements do not divide among {total} threads of a nested mode")
    return n // total, d * total, int(_position(count, step, thread) * d)

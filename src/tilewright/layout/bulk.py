# SPDX-License-Identifier: Apache-2.0
"""Whole tables of places at NumPy speed. NumPy is imported only when one of these functions runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import LayoutError
from .axes import PLAIN, Place
from .coords import is_array
from .integers import Count
from .tuples import as_tree, leaves, product, product_each

if TYPE_CHECKING:
    from .base import LayoutLike
    from .strided import Layout


def offsets(layout: LayoutLike, fill: Any, dtype: Any) -> Any:
    """Return the place of every coordinate, one dimension a mode; see `LayoutLike.offsets`.

    >>> from tilewright import Layout
    >>> offsets(Layout((2, 2)), None, None).tolist()
    [[0, 2], [1, 3]]
    """
    places = layout._table()
    if isinstance(places, Place):
        return Place._of({name: _finish(layout, table, fill, dtype) for name, table in places._parts.items()})
    return _finish(layout, places, fill, dtype)


def _finish(layout: LayoutLike, table: Any, fill: Any, dtype: Any) -> Any:
    import numpy as np

    if fill is not None:
        mask = layout._valid_table()
        if mask is not None:
            mask = mask.reshape(mask.shape + (1,) * (table.ndim - mask.ndim))
            table = np.where(mask, table, np.asarray(fill, dtype=table.dtype))
    if dtype is None or np.dtype(dtype) == table.dtype:
        return table
    limits = np.iinfo(dtype)
    if table.size and not (limits.min <= table.min() and table.max() <= limits.max):
        raise LayoutError(f"places from {table.min()} to {table.max()} do not fit {np.dtype(dtype)}; use a wider dtype")
    return table.astype(dtype)


def strided_table(shape: Any, steps: Any, offset: Any, replicas: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    """Return offset + sum(coordinate * step) for every coordinate: the sum of one vector a mode.

    >>> strided_table((2, 3), (3, 1), 0, (), ()).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if names:
        every = (*names, PLAIN) if any(_on(step, PLAIN) for step in [*leaves(steps), offset]) else names
        return Place._of({name: _one_axis(shape, steps, offset, replicas, name) for name in every})
    return _one_axis(shape, steps, offset, replicas, None)


def _on(step: Any, name: str | None) -> int:
    if name is None:
        return int(step)
    if isinstance(step, Place):
        return int(step.along(name))
    return 0 if name else int(step)


def _one_axis(shape: Any, steps: Any, offset: Any, replicas: tuple[Any, ...], name: str | None) -> Any:
    import numpy as np

    modes = [(shape, steps)] if shape.__class__ is not tuple else list(zip(shape, steps, strict=True))
    modes += [(count, step) for count, step in replicas]
    vectors = []
    reach = abs(_on(offset, name))
    for extents, strides in modes:
        vector = np.zeros(1, dtype=np.int64)
        for extent, step in zip(leaves(extents), leaves(strides), strict=True):
            step = _on(step, name)
            reach += max(extent - 1, 0) * abs(step)
            if reach >= 2**63:
                raise LayoutError(
                    f"places reach {reach}, beyond 2^63 - 1, and do not fit a 64-bit table; use L(i) instead"
                )
            vector = (np.arange(extent, dtype=np.int64)[:, None] * step + vector).reshape(-1)
        vectors.append(vector)
    if not vectors:
        return np.array(_on(offset, name), dtype=np.int64)
    total = vectors[0] + _on(offset, name)
    for vector in vectors[1:]:
        total = total[..., None] + vector
    return total


def inside(layout: LayoutLike, coord: tuple[Any, ...]) -> Any:
    """Return, for arrays of coordinates of which some leave the shape, which of them are data.

    >>> import numpy as np
    >>> from tilewright import Layout
    >>> inside(Layout(4), (np.array([3, 4]),)).tolist()
    [True, False]
    """
    import numpy as np

    at = as_tree(coord[0]) if len(coord) == 1 else as_tree(coord)
    parts = at if at.__class__ is tuple else (at,)
    extents = product_each(layout.shape) if at.__class__ is tuple else (product(layout.shape),)
    if len(parts) != len(extents):
        extents = tuple(leaves(layout.shape))
    ok: Any = True
    clipped = []
    for part, extent in zip(parts, extents, strict=True):
        part = np.asarray(part)
        ok = ok & (part >= 0) & (part < extent)
        clipped.append(np.clip(part, 0, max(extent - 1, 0)))
    return ok & layout.valid(*clipped) if layout.size else ok  # where there is nothing, nothing is inside


def all_true(at: list[Any]) -> Any:
    """Return True, or for arrays of leaf coordinates an array of it in their common shape.

    >>> import numpy as np
    >>> all_true([1, 2]), all_true([1, np.arange(2)]).tolist()
    (True, [True, True])
    """
    if not any(map(is_array, at)):
        return True
    import numpy as np

    return np.ones(np.broadcast_shapes(*[np.shape(part) for part in at]), dtype=bool)


def check_reach(layout: Layout, index: Any) -> None:
    """Raise if the continued layout takes an index of the array beyond 64 bits.

    >>> import numpy as np
    >>> from tilewright import Layout
    >>> check_reach(Layout(4, 2), np.arange(4))
    """
    if not index.size:
        return
    furthest = max(abs(int(index.min())), abs(int(index.max())))
    extents, steps = layout.canonical_modes()
    turns = furthest // (product(tuple(extents[:-1])) or 1)
    for name in layout.axes or (None,):
        reach = abs(_on(layout.offset, name)) + turns * abs(_on(steps[-1], name))
        reach += sum(max(n - 1, 0) * abs(_on(step, name)) for n, step in zip(extents[:-1], steps[:-1], strict=True))
        if reach >= 2**63:
            raise LayoutError(f"{layout} reaches {reach}, beyond 2^63 - 1, and arrays hold 64 bits; use single indices")


def chunks(layout: LayoutLike, limit: int = 1 << 20) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (indices, places, valid) of the whole domain, a bounded number of indices at a time.

    >>> from tilewright import Layout
    >>> [places.tolist() for _, places, _ in chunks(Layout(6, 2), limit=4)]
    [[0, 2, 4, 6], [8, 10]]
    """
    import numpy as np

    size = layout.size
    for start in range(0, size, limit):
        index = np.arange(start, min(size, start + limit), dtype=np.int64)
        valid = layout.valid(index)
        places = _everywhere(layout._places(index), index.shape)
        yield index, places, valid if is_array(valid) else np.full(index.shape, bool(valid))


def _everywhere(places: Any, shape: tuple[int, ...]) -> Any:
    """Return places as arrays; a layout without modes has one place, whatever the array of indices."""
    import numpy as np

    if isinstance(places, Place):
        return Place._of({name: _everywhere(part, shape) for name, part in places._parts.items()})
    return np.full(shape, places) if isinstance(places, int) else places


def cosize(layout: LayoutLike) -> Any:
    """Return the size of the smallest buffer that holds every place and place 0, from all places.

    >>> from tilewright import Layout
    >>> cosize(Layout((4, 8), (1, 5)))
    39
    """
    if layout.size == 0:
        return Count(0)
    lows: dict[str, int] = {}
    highs: dict[str, int] = {}
    for _, places, _ in chunks(layout):
        for name, table in (places._parts if isinstance(places, Place) else {PLAIN: places}).items():
            lows[name] = min(lows.get(name, 0), int(table.min()))
            highs[name] = max(highs.get(name, 0), int(table.max()))
    sizes = {name: highs[name] + 1 - lows[name] for name in lows}
    return Count(sizes[PLAIN]) if sizes.keys() == {PLAIN} else Place(sizes)

# SPDX-License-Identifier: Apache-2.0
"""The methods of Mojo's `TileTensor` that take parameters in brackets, with Mojo's names for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ...errors import CoordinateError, LayoutError
from ...layout import Layout as CoreLayout
from ...layout.layout import make_layout
from ...layout.validation import as_integer
from ...tensor.shape_views import (
    ReshapeBrackets,
    SliceBrackets,
    SliceEntries,
    SplitBrackets,
    VectorizeBrackets,
    slice_leaves,
)
from ...tensor.tile_views import (
    DistributeBrackets,
    Extents,
    LocatedDistributeBrackets,
    LocatedTileBrackets,
    LocatedView,
    TileBrackets,
    tile,
    tile_with_offset,
)
from ...tensor.view_layouts import pair_layout
from .elementwise import ElementwiseTensor
from .strided_layout import plain_layout
from .thread_shares import checked_options, distribute_elements, thread_arguments

Kind = TypeVar("Kind", bound=ElementwiseTensor)


class TileTensorBrackets(TileBrackets[Kind]):
    """`t.tile[4, 8](1, 0)`; nested layouts are tiled by leaves, as in Mojo."""

    __slots__ = ()

    def __getitem__(self, shape: Extents) -> partial[Kind]:
        extents, options = _split_stride_layout(shape)
        return partial(_tile, self._tensor, extents, **options)

    def __call__(self, shape: Any, coords: Any = None, *, coordinates: Any = None, stride_layout: Any = None) -> Kind:
        """Return the tile of a `shape` that is known only at run time, at `coords`, which Mojo calls `coordinates`."""
        return super().__call__(shape, *_one_of(self.method, (coords,), coordinates), stride_layout=stride_layout)


class _LocatedTileBrackets(LocatedTileBrackets[Kind]):
    """`t.tile_with_offset[4, 8](1, 0)`; as `tile`, strides that are known may come last in brackets."""

    __slots__ = ()

    def __getitem__(self, shape: Extents) -> partial[LocatedView[Kind]]:
        extents, options = _split_stride_layout(shape)
        return partial(_tile_with_offset, self._tensor, extents, **options)

    def __call__(
        self, shape: Any, coords: Any = None, *, coordinates: Any = None, stride_layout: Any = None
    ) -> LocatedView[Kind]:
        """Return (tile, corner, offset) for a `shape` that is known only at run time, at `coords`."""
        return super().__call__(shape, *_one_of(self.method, (coords,), coordinates), stride_layout=stride_layout)


def _split_stride_layout(parameters: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (extents, options) of brackets; a layout after the extents is `stride_layout`."""
    values = parameters if isinstance(parameters, tuple) else (parameters,)
    if values and isinstance(values[-1], CoreLayout):
        return values[:-1], {"stride_layout": values[-1]}
    return values, {}


class _ReshapeBrackets(ReshapeBrackets[Kind]):
    """`t.reshape[2, 6]()` of a static layout; `t.reshape(layout)` takes any layout within the storage, as Mojo does."""

    __slots__ = ()

    def __getitem__(self, shape: Extents) -> partial[Kind]:
        _require_static(self._tensor, "reshape[...]", "pass the shape at run time: t.reshape(Coord(Idx(2), Idx(6)))")
        return super().__getitem__(shape)

    def with_parameters(self, *parameters: Any, new_layout: Any = None, **named: Any) -> Any:
        """Return the method with its brackets filled; the type of the layout follows from the layout."""
        return super().with_parameters(*parameters, **named)

    def __call__(self, *shape: Any, layout_val: Any = None, new_shape: Any = None, allow_resize: bool = True) -> Kind:
        """Return the tensor under the layout `layout_val`, or in the shape `new_shape`; names may be left out."""
        values = [value for value in (layout_val, new_shape) if value is not None]
        if len(values) + bool(shape) != 1:
            raise TypeError("reshape takes a shape or a layout: t.reshape[2, 6](), or t.reshape(layout)")
        return super().__call__(*shape, *values, allow_resize=allow_resize)


class _SliceBrackets(SliceBrackets[Kind]):
    """`t.slice[1:3, 2:5]()` of a static layout, or at run time `t.slice((1, 3), (2, 5))`."""

    __slots__ = ()

    def __getitem__(self, entries: SliceEntries) -> partial[Kind]:
        _require_static(self._tensor, "slice[...]", "pass the ranges at run time: t.slice((1, 3), (2, 5))")
        return super().__getitem__(entries)

    def __call__(self, *ranges: Any) -> Kind:
        """Return the part given by ranges known at run time; `All` and single indices leave what is known as it is."""
        is_known = bool(ranges) and all(isinstance(entry, (slice, int)) for entry in ranges)
        return slice_leaves(self._tensor, ranges, not is_known)


def _require_static(tensor: Any, caller: str, remedy: str) -> None:
    """Raise unless every extent and stride of a tensor is known at compile time, as Mojo demands."""
    if not tensor.all_dims_known:
        raise LayoutError(
            f"{caller} needs extents and strides that are known at compile time, but the layout is {tensor.layout!r};"
            f" {remedy}"
        )


def _one_of(method: str, given: tuple[Any, ...], named: Any) -> tuple[Any, ...]:
    """Return the arguments of a method: those given without a name, or the one that Mojo's name gives."""
    given = tuple([value for value in given if value is not None])
    if (named is None) != bool(given):
        raise TypeError(f"{method} takes the coordinates of a tile once: t.{method}[2, 2](1, 0), or coordinates=(1, 0)")
    return given or (named,)


def _tile_with_offset(
    tensor: Kind, shape: tuple[int, ...], *coords: Any, coordinates: Any = None, stride_layout: Any = None
) -> LocatedView[Kind]:
    """Return (tile, corner, offset), with the coordinates under the name that Mojo gives them."""
    position = _one_of("tile_with_offset", coords, coordinates)
    return tile_with_offset(tensor, shape, *position, stride_layout=stride_layout)


def _tile(
    tensor: Kind,
    shape: tuple[int, ...],
    *coords: Any,
    coordinates: Any = None,
    stride_layout: Any = None,
) -> Kind:
    """Return a tile; in a nested layout it steps through the first leaf of each mode and keeps the last, as in Mojo."""
    coords = _one_of("tile", coords, coordinates)
    layout = tensor._core_layout
    is_nested = tensor.flat_rank != tensor.rank and isinstance(tensor._pair, CoreLayout)
    if not is_nested or tensor.element_size != 1 or tensor.tiles_logically or not isinstance(layout, CoreLayout):
        return tile(tensor, shape, *coords, stride_layout=stride_layout)
    position = coords[0] if len(coords) == 1 and isinstance(coords[0], (tuple, list)) else coords
    shift, steps = 0, []
    if not len(shape) == len(position) == tensor.rank:
        raise LayoutError(
            f"a tile of {len(shape)} extents at {len(position)} coordinates does not fit a tensor of shape"
            f" {layout.shape}; give {tensor.rank} of each, one per mode"
        )
    shape = tuple([as_integer(n, "an extent") for n in shape])
    for k, (n, c) in enumerate(zip(shape, [as_integer(c, "a coordinate") for c in position], strict=True)):
        extents, strides = layout.mode(k).flat_modes()
        if not 0 <= c < extents[0] or not 0 < n <= extents[-1]:
            raise CoordinateError(
                f"mode {k} of {layout} has tiles 0 to {extents[0] - 1} of up to {extents[-1]} elements, got {c} of {n}"
            )
        shift += int(c * strides[0])
        steps.append(strides[-1])
    return tensor._view(pair_layout(make_layout(tuple(map(int, shape)), tuple(steps))), tensor._offset + shift)


# In Python's errors about arguments
_tile.__qualname__, _tile_with_offset.__qualname__ = "TileTensor.tile", "TileTensor.tile_with_offset"


def _is_plain(threads: Any) -> bool:
    return isinstance(threads, CoreLayout) and threads.depth <= 1


def _distribute_any(tensor: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    threads, *rest, thread_id = arguments
    if _is_plain(threads) and options.get("axis") is None:
        if len(rest) > 1:
            raise TypeError(f"distribute takes a thread layout and a swizzle in brackets, got {(threads, *rest)!r}")
        return LocatedDistributeBrackets(tensor)((plain_layout(threads), *rest), thread_id, **options)
    ragged = options.pop("ragged", "floor")
    return distribute_elements(tensor, arguments, ragged=ragged, **options)


class _DistributeBrackets(DistributeBrackets[Kind]):
    """`t.distribute[threads](thread_id)`, also of nested threads, and with named parameters."""

    __slots__ = ()

    def __getitem__(self, threads: Any) -> partial[Kind]:
        return partial(self, *(threads if type(threads) is tuple else (threads,)))

    def with_parameters(self, *parameters: Any, **named: Any) -> Any:
        return partial(self, *parameters, **named)

    def __call__(
        self,
        *arguments: Any,
        thread_id: Any = None,
        thread_layout: Any = None,
        threads_layout: Any = None,
        **options: Any,
    ) -> Kind:
        values = thread_arguments(self.method, arguments, thread_id, thread_layout, threads_layout)
        view: Kind = _distribute_any(self._tensor, values, checked_options(self.method, options))[0]
        return view


class _LocatedDistributeBrackets(LocatedDistributeBrackets[Kind]):
    """`t.distribute_with_offset[threads](thread_id)`, also of nested threads, and with named parameters."""

    __slots__ = ()

    def __getitem__(self, threads: Any) -> partial[LocatedView[Kind]]:
        return partial(self, *(threads if type(threads) is tuple else (threads,)))

    with_parameters = _DistributeBrackets.with_parameters

    def __call__(
        self,
        *arguments: Any,
        thread_id: Any = None,
        thread_layout: Any = None,
        threads_layout: Any = None,
        **options: Any,
    ) -> LocatedView[Kind]:
        values = thread_arguments(self.method, arguments, thread_id, thread_layout, threads_layout)
        located: LocatedView[Kind] = _distribute_any(self._tensor, values, checked_options(self.method, options))
        return located


class _VectorizeBrackets(VectorizeBrackets[Kind]):
    """`t.vectorize[1, 4]()`; the result keeps the index type."""

    __slots__ = ()

    def __getitem__(self, block: Extents) -> partial[Kind]:
        return partial(_keep_index_type, self._tensor, super().__getitem__(block))

    def __call__(self, *, simd_bytes: int = 64) -> Kind:
        view: Kind = _keep_index_type(self._tensor, partial(super().__call__, simd_bytes=simd_bytes))
        return view


class _SplitBrackets(SplitBrackets[Kind]):
    """`t.split[count, axis]()`; the results keep the index type."""

    __slots__ = ()

    def __getitem__(self, parameters: Extents) -> partial[Any]:
        return partial(self._split, parameters if isinstance(parameters, tuple) else (parameters,))

    def __call__(
        self, count: int, k: int | None = None, *, axis: int = 0, alignment: int = 1, idx: int | None = None
    ) -> Any:
        """Return part `k`, `idx` in Mojo, of `count` along `axis`, or all parts: `t.split[count=2, axis=1]()`.

        Each is a multiple of `alignment` long but for the last ones.
        """
        part = k if idx is None else idx
        return self._split((count, axis)) if part is None else self._split((axis, alignment), count, part)

    def _split(
        self,
        parameters: tuple[int, ...],
        *part: int,
        axis: int | None = None,
        split_alignment: int | None = None,
        count: int | None = None,
        idx: int | None = None,
    ) -> Any:
        part = (*part, *[number for number in (count, idx) if number is not None])
        everything = parameters if axis is None else (axis,) if part and not parameters else (*parameters, axis)
        everything = everything if split_alignment is None else (*everything, split_alignment)
        return _keep_index_type(self._tensor, super().__getitem__(everything), *part)


_SplitBrackets._split.__qualname__ = "TileTensor.split"  # in Python's errors about arguments


def _keep_index_type(tensor: Any, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a method, views of `tensor`, with its index type."""
    result = method(*arguments, **options)
    for view in result if isinstance(result, list) else [result]:
        view._index_type = tensor.linear_idx_type
    return result

# SPDX-License-Identifier: Apache-2.0
"""`stream`: an array of any size through a compute, tile by tile, with bounded memory; `suggest_tile` for the tile."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..copying.host_memory import CACHE_LINE
from ..errors import TransferError
from ..files.array_file import create_array, open_array
from ..layout.tuples import round_up
from .array_store import shared_targets_error
from .operands import (
    Input,
    Output,
    as_list,
    tiler_with_halo,
    validate_equal_shapes,
    validate_npy_path,
    validate_operand,
)
from .pipeline import Pipeline
from .schedule import buffer_bytes
from .tile_compute import CancelFlag, ProgressCallback
from .tiler import Extents, Margins, Tiler, as_extents, as_margins
from .trace import PipelineReport, Trace
from .transfers import TransferQueue

DEFAULT_LIMIT = 8 << 20
"""Bytes of buffers by default: tiles then stay near the caches of one core."""

CACHED_TILE = 1 << 20
"""Bytes up to which a tile stays in the caches between its import, its compute and its export."""

SHORT_ROW = 4096
"""Bytes of a row below which starting the row costs more than copying it."""


ElementSizes = tuple[list[int], list[int]]
"""Bytes of an element of each input, and of each output."""


@dataclass(frozen=True, slots=True)
class TileSuggestion:
    """A tile and a depth, the bytes of buffers they take, and the reason.

    >>> TileSuggestion((256, 256), 2, 1 << 20, "because").tile
    (256, 256)
    """

    tile: tuple[int, ...]
    depth: int
    buffer_bytes: int
    why: str


def suggest_tile(
    space: Extents,
    inputs: Sequence[Any] = ("float32",),
    outputs: Sequence[Any] = ("float32",),
    memory_limit: int = DEFAULT_LIMIT,
    halo: Margins = 0,
    scheme: str = "double",
    depth: int | None = None,
) -> TileSuggestion:
    """Return the output tile that fits a memory limit at the lowest cost, and the reason.

    The cost counts halos, which are read twice, short rows, and tiles that exceed the caches.

    Args:
        space: the extents to cut.
        inputs: the dtypes of the inputs.
        outputs: the dtypes of the outputs.
        memory_limit: the most bytes that buffers may take.
        halo: how far an input tile extends beyond its output tile, as an augmentation of `Tiler`.
        scheme: the buffering scheme of the pipeline.
        depth: the depth of "buffered" and "direct".

    >>> suggest_tile((4096, 4096), memory_limit=2 << 20).tile
    (32, 4096)
    >>> print(suggest_tile((4096, 4096), memory_limit=2 << 20, halo=8).why)
    118 x 1024 tiles: 2081536 of 2097152 bytes for double buffering, halos add 15 % to the reads, rows of 4096 bytes
    """
    extents = as_extents(space, "space")
    halos = tuple([before + after for before, after in as_margins(halo, "halo", len(extents))])
    sizes = [np.dtype(kind).itemsize for kind in inputs], [np.dtype(kind).itemsize for kind in outputs]
    depth = depth or 3
    best: tuple[float, tuple[int, ...]] | None = None
    for tile in _candidate_tiles(extents, halos, sizes, scheme, depth, memory_limit):
        cost = _transfer_cost(tile, halos, sizes)
        if best is None or cost < best[0]:
            best = (cost, tile)
    if best is None:
        least = _buffer_bytes((1,) * len(extents), halos, sizes, scheme, depth)
        raise TransferError(
            f"tiles of one element with this halo take {least} bytes with {scheme} buffering, the limit is"
            f" {memory_limit}; raise the limit, or use a scheme with fewer buffers"
        )
    tile = best[1]
    nbytes = _buffer_bytes(tile, halos, sizes, scheme, depth)
    extra = prod((t + n) / t for t, n in zip(tile, halos, strict=True)) - 1
    halo_text = f", halos add {extra:.0%} to the reads".replace("%", " %") if extra else ""
    row = tile[-1] * max(*sizes[0], *sizes[1], 1)
    why = (
        f"{' x '.join(map(str, tile))} tiles: {nbytes} of {memory_limit} bytes for {scheme} buffering{halo_text},"
        f" rows of {row} bytes"
    )
    return TileSuggestion(tile, depth if scheme in ("buffered", "direct") else 2, nbytes, why)


def _buffer_bytes(tile: tuple[int, ...], halos: tuple[int, ...], sizes: ElementSizes, scheme: str, depth: int) -> int:
    """Return the bytes of buffers that a tile takes, each rounded up to a cache line."""
    padded = prod([t + n for t, n in zip(tile, halos, strict=True)])
    read = [round_up(padded * size, CACHE_LINE) for size in sizes[0]]
    return buffer_bytes(scheme, depth, read, [round_up(prod(tile) * size, CACHE_LINE) for size in sizes[1]])


def _candidate_tiles(
    space: tuple[int, ...], halos: tuple[int, ...], sizes: ElementSizes, scheme: str, depth: int, limit: int
) -> Iterator[tuple[int, ...]]:
    """Yield, for each row width and each power-of-two share of the limit, the largest tile that fits."""
    for width in _row_widths(space[-1]):
        budget = limit
        while budget:

            def fits(tile: tuple[int, ...], budget: int = budget) -> bool:
                return _buffer_bytes(tile, halos, sizes, scheme, depth) <= budget

            tile = _grow_tile(space, width, fits)
            if tile is None:
                break
            yield tile
            budget //= 2


def _grow_tile(space: tuple[int, ...], width: int, fits: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...] | None:
    """Return the largest tile of a width that fits, grown from the inner axes outwards; None if no row fits."""
    tile = [1] * len(space)
    tile[-1] = width
    if not fits(tuple(tile)):
        return None
    for axis in reversed(range(len(space) - 1)):
        low, high = 1, max(1, space[axis])
        while low < high:
            tile[axis] = (low + high + 1) // 2
            if fits(tuple(tile)):
                low = tile[axis]
            else:
                high = tile[axis] - 1
        tiles = -(-space[axis] // low)
        tile[axis] = max(1, -(-space[axis] // max(1, tiles)))  # the same number of tiles, without a thin last one
    return tuple(tile)


def _row_widths(space: int) -> Iterator[int]:
    """Yield the full row and its halves, quarters and so on: widths that leave no thin last tile."""
    width = max(1, space)
    while True:
        yield width
        if width == 1:
            return
        width = -(-width // 2)


def _transfer_cost(tile: tuple[int, ...], halos: tuple[int, ...], sizes: ElementSizes) -> float:
    """Return the relative cost per element: halos, short rows, and tiles that are small or exceed the caches."""
    size = max(*sizes[0], *sizes[1], 1)
    nbytes = prod(tile) * size
    read = prod((t + n) / t for t, n in zip(tile, halos, strict=True))
    rows = 1 + SHORT_ROW / 16 / (tile[-1] * size)
    handling = 1 + (64 << 10) / nbytes
    memory = 1 if nbytes <= CACHED_TILE else 1.3
    return float(read * rows * handling * memory)


Array = np.ndarray[Any, Any]


def stream(
    source: Any,
    target: Any,
    compute: Any = None,
    tile: Extents | None = None,
    overlap: Margins = 0,
    pad: Any = 0,
    scheme: str | None = None,
    workers: int = 1,
    depth: int | None = None,
    memory_limit: int | None = None,
    order: str = "row_major",
    dtype: Any = None,
    progress: ProgressCallback | None = None,
    cancel: CancelFlag | None = None,
    trace: Trace | None = None,
    queue: TransferQueue | None = None,
    concurrent: bool = False,
) -> PipelineReport:
    """Compute a target from a source tile by tile, with bounded memory, and return a report.

    Args:
        source: an array, a memory map, an `.npy` file or anything that slices; or a list of them, all of one shape.
        target: the same; an `.npy` file is created.
        compute: a function `compute(*inputs, *outputs)` of NumPy views, which writes into the outputs. It may be
            compiled by numba, or be a C function `f(in, in_shape, ..., out, out_shape)` of pointers to elements and to
            `int64_t` extents. It is called for one tile at a time, in order. None copies the source.
        tile: the extents of an output tile; by default chosen to fit `memory_limit`.
        overlap: how far an input tile extends beyond its output tile, on both sides or as (before, after) per axis.
        pad: what an input tile holds outside the source: a value, "edge", "reflect", "symmetric" or "wrap".
        scheme, workers, depth, queue: those of `Pipeline`.
        memory_limit: the most bytes that buffers may take.
        order: the order of the tiles, as of `Tiler`.
        dtype: the element type of a created target file, by default that of the source.
        progress, cancel, trace: those of `Pipeline.run`.
        concurrent: allow calling the compute for several tiles at once, in each worker and in the caller.

    >>> a, b = np.arange(12.0).reshape(3, 4), np.zeros((3, 4))
    >>> stream(a, b, lambda x, y: np.multiply(x, 2, out=y), tile=(2, 2)).tiles
    4
    >>> b[2].tolist()
    [16.0, 18.0, 20.0, 22.0]
    """
    with ExitStack() as files:
        sources = [_open_path(item) for item in as_list(source)]
        if not sources:
            raise TransferError("expected at least one source: an array, a file, or a list of them")
        for array in sources:
            validate_operand(array, "source")
        paths = [item for item in as_list(target) if isinstance(item, (str, Path))]
        arrays = [item for item in as_list(target) if not isinstance(item, (str, Path))]
        for path in paths:
            validate_npy_path(path)
        for array in arrays:
            validate_operand(array, "target")
        validate_equal_shapes(sources, arrays)
        if len({os.path.realpath(path) for path in paths}) < len(paths):
            raise shared_targets_error()
        shape = tuple([int(n) for n in sources[0].shape])
        target_dtype = np.dtype(sources[0].dtype if dtype is None else dtype)
        function = _as_array_function(compute)
        targets = [
            files.enter_context(create_array(item, shape, target_dtype)) if isinstance(item, (str, Path)) else item
            for item in as_list(target)
        ]
        if compute is not None:
            scheme = scheme or "double"
        elif scheme is None:
            scheme = "direct"
        halo = as_margins(overlap, "overlap", len(shape))
        if tile is None:
            tile, depth = _choose_tile(shape, sources, targets, halo, scheme, depth, memory_limit)
        pipeline = Pipeline(
            [Input(array, tiler_with_halo(array.shape, tile, halo, order), pad) for array in sources],
            [Output(array, Tiler(array.shape, tile, order=order)) for array in targets],
            scheme=scheme,
            depth=depth,
            workers=workers,
            queue=queue,
            memory_limit=memory_limit,
        )
        return pipeline.run(function, trace, progress, cancel, concurrent)


def _open_path(source: Any) -> Any:
    """Return the array of an `.npy` path, and any other source as it is."""
    if not isinstance(source, (str, Path)):
        return source
    validate_npy_path(source)
    return open_array(source)


def _choose_tile(
    shape: tuple[int, ...],
    sources: Sequence[Any],
    targets: Sequence[Any],
    halo: tuple[tuple[int, int], ...],
    scheme: str,
    depth: int | None,
    limit: int | None,
) -> tuple[tuple[int, ...], int | None]:
    suggestion = suggest_tile(
        shape,
        [array.dtype for array in sources],
        [array.dtype for array in targets] if scheme != "direct" else [],
        DEFAULT_LIMIT if limit is None else limit,
        halo,
        scheme,
        depth,
    )
    return suggestion.tile, suggestion.depth if scheme in ("buffered", "direct") else depth


def _as_array_function(compute: Any) -> Callable[..., Any] | None:
    """Return a compute as a function of arrays; a C function is called with pointers."""
    pointer_like = getattr(compute, "ctypes", None)  # numba's cfunc
    if pointer_like is not None and not isinstance(compute, np.ndarray):
        compute = pointer_like
    if not isinstance(compute, ctypes._CFuncPtr):  # type: ignore[attr-defined]  # it has no public name
        if compute is not None and not callable(compute):
            raise TransferError(f"expected a callable compute, got {compute!r}")
        return compute  # type: ignore[no-any-return]
    function: Any = compute
    shapes: dict[tuple[int, ...], Any] = {}

    def call(*arrays: Array) -> None:
        arguments: list[Any] = []
        for array in arrays:
            extent = shapes.get(array.shape)
            if extent is None:
                extent = shapes[array.shape] = (ctypes.c_int64 * array.ndim)(*array.shape)
            arguments += [ctypes.c_void_p(array.ctypes.data), extent]
        function(*arguments)  # ctypes releases the GIL

    return call

# SPDX-License-Identifier: Apache-2.0
"""`stream`: an array of any size through a compute, tile by tile, with bounded memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TransferError
from ..files import absolute_name, create_array, parse_array_name
from .array_store import chunk_shape, read_chunk_shape, shared_targets_error
from .operands import (
    Input,
    Output,
    as_list,
    open_operand,
    tiler_with_halo,
    validate_equal_shapes,
    validate_operand,
)
from .pipeline import Pipeline
from .store_access import is_stored, open_access
from .tile_compute import CancelFlag, ProgressCallback
from .tile_suggestion import fit_depth, suggest_tile
from .tiler import Extents, Margins, Tiler, as_extents, as_margins
from .trace import PipelineReport, Trace
from .transfers import TransferQueue

Array = np.ndarray[Any, Any]

REMOTE_WORKERS = 8
"""Threads that wait for stores in a network at the same time."""


def stream(
    source: Any,
    target: Any,
    compute: Any = None,
    tile: Extents | None = None,
    overlap: Margins = 0,
    pad: Any = 0,
    scheme: str | None = None,
    workers: int | None = None,
    depth: int | None = None,
    memory_limit: int | None = None,
    order: str = "row_major",
    dtype: Any = None,
    chunks: Sequence[int] | None = None,
    progress: ProgressCallback | None = None,
    cancel: CancelFlag | None = None,
    trace: Trace | None = None,
    queue: TransferQueue | None = None,
    concurrent: bool = False,
) -> PipelineReport:
    """Compute a target from a source tile by tile, with bounded memory, and return a report.

    Args:
        source: an array or anything that slices, a memory map, or a name: `a.npy`, `a.zarr`, `a.h5::x`, a URL of these,
            `tensorstore:` with a spec; or a list of them, all of one shape.
        target: the same; a name is created.
        compute: a function `compute(*inputs, *outputs)` of NumPy views, which writes into the outputs. It may be
            compiled by numba, or be a C function `f(in, in_shape, ..., out, out_shape)` of pointers to elements and to
            `int64_t` extents. It is called for one tile at a time, in order. None copies the source.
        tile: the extents of an output tile; by default chosen to fit `memory_limit`.
        overlap: how far an input tile extends beyond its output tile, on both sides or as (before, after) per axis.
        pad: what an input tile holds outside the source: a value, "edge", "reflect", "symmetric" or "wrap".
        scheme, depth, queue: those of `Pipeline`.
        workers: threads beside the caller, as of `Pipeline`; by default 1, and one per core for zarr and other stores
            that decode in parallel.
        memory_limit: the most bytes that buffers and cached chunks may take.
        order: the order of the tiles, as of `Tiler`.
        dtype: the element type of a created target, by default that of the source.
        chunks: the chunks of a created target, by default those of the source.
        progress, cancel, trace: those of `Pipeline.run`.
        concurrent: allow calling the compute for several tiles at once, in each worker and in the caller.

    >>> a, b = np.arange(12.0).reshape(3, 4), np.zeros((3, 4))
    >>> stream(a, b, lambda x, y: np.multiply(x, 2, out=y), tile=(2, 2)).tiles
    4
    >>> b[2].tolist()
    [16.0, 18.0, 20.0, 22.0]
    """
    with ExitStack() as files:
        names = [parse_array_name(item) for item in as_list(target) if isinstance(item, (str, Path))]
        sources = [open_source(item, as_list(target)) for item in as_list(source)]
        if not sources:
            raise TransferError("expected at least one source: an array, a name, or a list of them")
        for array in sources:
            validate_operand(array, "source")
        given = [open_operand(item) if not isinstance(item, (str, Path)) else item for item in as_list(target)]
        arrays = [item for item in given if not isinstance(item, (str, Path))]
        for array in arrays:
            validate_operand(array, "target")
        validate_equal_shapes(sources, arrays)
        if len({absolute_name(name) for name in names}) < len(names):
            raise shared_targets_error()
        function = _as_array_function(compute)
        like = next((array for array in sources if read_chunk_shape(array)), sources[0])
        targets = [
            files.enter_context(create_like(item, like, sources[0].dtype if dtype is None else dtype, chunks))
            if isinstance(item, (str, Path))
            else item
            for item in given
        ]
        shape = tuple([int(n) for n in sources[0].shape])
        is_chosen = workers is None and scheme is None and depth is None
        if workers is None:
            workers = default_workers([*sources, *targets])
            if is_chosen and workers > 1:  # every worker has its own buffers
                scheme, depth = ("direct" if compute is None else "buffered"), workers + 1
        scheme = scheme or ("direct" if compute is None else "double")
        halo = as_margins(overlap, "overlap", len(shape))
        if tile is None:
            suggestion = suggest_tile(shape, sources, targets, memory_limit, halo, scheme, depth)
            tile = suggestion.tile
            depth = suggestion.depth if scheme in ("buffered", "direct") else depth
        elif is_chosen and memory_limit is not None and depth is not None:
            extents = as_extents(tile, "tile", len(shape))
            depth = fit_depth(extents, sources, targets, memory_limit, halo, scheme, depth)
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


def default_workers(arrays: Sequence[Any]) -> int:
    """Return how many threads beside the caller suit some arrays: 1, or more where stores decode in parallel.

    >>> default_workers([np.zeros(4)])
    1
    """
    stores = [open_access(array) for array in arrays if is_stored(array)]
    if not stores or not all(store.is_parallel for store in stores):
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # one more than computes at a time: while one waits for its turn, the others decode and encode
    return max(cores, REMOTE_WORKERS if any(store.is_remote for store in stores) else 1)


def open_source(source: Any, targets: Sequence[Any]) -> Any:
    """Return the array of a source; HDF5 has to open a file that targets are written to for writing, too.

    >>> open_source(np.zeros(3), []).shape
    (3,)
    """
    if not isinstance(source, (str, Path)):
        return open_operand(source)
    name = parse_array_name(source)
    files = [parse_array_name(target).path for target in targets if isinstance(target, (str, Path))]
    is_written = os.path.realpath(name.path) in map(os.path.realpath, files)
    return open_operand(source, writing=name.kind == "hdf5" and is_written)


def create_like(
    name: str | Path, like: Any, dtype: Any, chunks: Sequence[int] | None = None
) -> AbstractContextManager[Any]:
    """Return the context in which an array is created by name, with the shape and the chunks of the array `like`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, create_like(f"{folder}/a.npy", np.zeros((2, 3)), "int8") as array:
    ...     array.shape
    (2, 3)
    """
    extents, shards = tuple([int(n) for n in like.shape]), None
    if chunks is not None and parse_array_name(name).kind in ("raw", "npy"):
        raise TransferError(f"{name} has no chunks; leave chunks out, or write a .zarr")
    if chunks is None:
        chunks, shards = read_chunk_shape(like), chunk_shape(like)
        shards = None if shards == chunks else shards
    return create_array(name, extents, dtype, chunks, shards)


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

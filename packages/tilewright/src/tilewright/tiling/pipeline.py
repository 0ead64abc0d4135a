# SPDX-License-Identifier: Apache-2.0
"""`Pipeline`: tiles imported, computed and exported at the same time, by a schedule that is known beforehand."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from math import prod
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._lazy import companion_name
from ..errors import LayoutError, TransferError
from ..files import absolute_name, create_array, parse_array_name
from ..layout import Box, empty_box
from .endpoints import (
    Endpoint,
    Input,
    MemoryEndpoint,
    Output,
    SlicedEndpoint,
    as_list,
    open_operand,
    tiler_with_halo,
    validate_equal_shapes,
    validate_operand,
)
from .schedule import Compute, Export, Import, PipelineReport, Trace, TraceSpan, TransferKey, TransferKind, Wait
from .stores import ChunkCache, chunk_shape, is_stored, open_access, read_chunk_shape, share_bytes, shared_targets_error
from .tile_choice import STORE_LIMIT, choose_tile, fit_depth
from .tile_compute import (
    Array,
    CancelFlag,
    CancelledError,
    PipelineSpec,
    ProgressCallback,
    Step,
    check_written,
    mark_outputs,
    run_compute,
)
from .tile_copies import Fill, TileBuffer, Work, direct_copy
from .tiler import Extents, Margins, Tiler, as_extents, as_margins
from .transfers import InlineQueue, ThreadQueue, Transfer, TransferQueue, raise_failures, start_transfer
from .workers import TileWorkers, choose_worker_count


class _OperandBuffer:
    """A buffer of one operand: its memory, its endpoint, and the tile that is in it now."""

    __slots__ = ("_views", "array", "buffer", "endpoint", "fill", "tile", "tiles")

    def __init__(self, buffer: TileBuffer, endpoint: Endpoint, tiles: Iterator[Box], fill: Fill = None) -> None:
        self.buffer, self.endpoint, self.tiles, self.fill = buffer, endpoint, tiles, fill
        self.tile = empty_box(0)
        self.array: Array = buffer.view((0,), endpoint.dtype)
        self._views: dict[tuple[int, ...], Array] = {}

    def advance(self) -> Array:
        """Advance to the operand's next tile, and return its array; all schedules take tiles in order."""
        self.tile = tile = next(self.tiles)
        array = self._views.get(tile.shape)
        if array is None:
            array = self._views[tile.shape] = self.buffer.view(tile.shape, self.endpoint.dtype)
        self.array = array
        return array


class ScheduledRun:
    """One run of a pipeline: its buffers, and the transfers that are running.

    >>> import numpy as np
    >>> from tilewright.tiling import Input, Output, Pipeline, Tiler
    >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (2,))
    >>> run = ScheduledRun(Pipeline([Input(a, tiler)], [Output(b, tiler)]))
    >>> for step in run.steps():
    ...     step.outputs[0][...] = step.inputs[0] + 1
    >>> b.tolist(), run.exported
    ([1, 2, 3, 4], 2)
    """

    def __init__(
        self,
        pipeline: PipelineSpec,
        trace: Trace | None = None,
        progress: ProgressCallback | None = None,
        cancel: CancelFlag | None = None,
    ) -> None:
        self.pipeline, self.trace, self.progress, self.cancel = pipeline, trace, progress, cancel
        self.running: dict[tuple[TransferKind, int, int], Transfer] = {}  # by the values of a TransferKey
        self.nbytes: dict[TransferKind, int] = {"import": 0, "export": 0}
        self.exported = 0
        self._has_compute = pipeline.scheme != "direct"
        # overlapping tiles of an output are written in order: the last export of each such operand
        self._last_export: dict[int, Transfer | None] = {
            operand: None for operand, (_, item) in enumerate(pipeline.targets) if any(item.tiler.overlap)
        }
        input_buffers, output_buffers = pipeline.make_buffers()
        sources = [(endpoint, iter(item.tiler), item.fill) for endpoint, item in pipeline.sources]
        targets = [(endpoint, iter(item.tiler)) for endpoint, item in pipeline.targets]
        # simplex has a buffer per operand of the side that has more: zip stops at the shorter side
        self._inputs = {
            name: [_OperandBuffer(buffer, *source) for buffer, source in zip(buffers, sources)]  # noqa: B905
            for name, buffers in input_buffers.items()
        }
        self._outputs = {
            name: [_OperandBuffer(buffer, *target) for buffer, target in zip(buffers, targets)]  # noqa: B905
            for name, buffers in output_buffers.items()
        }

    def steps(self) -> Generator[Step, None, None]:
        """Yield the tiles one by one; whatever ends the loop, no transfer is left running."""
        queue, workers = self.pipeline.queue, self.pipeline.workers
        own_queue: TransferQueue | None = None
        if queue is None:
            queue = own_queue = ThreadQueue(workers) if workers else InlineQueue()
        self.queue = queue
        try:
            for action in self.pipeline.schedule().actions():
                if type(action) is Import:
                    operand = self._inputs[action.buffer][action.operand]
                    operand.advance()
                    work = operand.endpoint.plan_import(operand.tile, operand.buffer, operand.fill)
                    self._start_transfer("import", action, work, operand.array.nbytes)
                elif type(action) is Export:
                    operand = self._outputs[action.buffer][action.operand]
                    if not self._has_compute:
                        operand.advance()
                    work = operand.endpoint.plan_export(operand.tile, operand.buffer)
                    self._start_transfer("export", action, work, operand.array.nbytes)
                elif type(action) is Wait:
                    self._wait_for(action.retires)
                elif type(action) is Compute:
                    inputs = tuple([operand.array for operand in self._inputs[action.read_buffer]])
                    outputs = tuple([operand.advance() for operand in self._outputs[action.write_buffer]])
                    step = Step(action.tile, inputs, outputs)
                    marks = mark_outputs(step) if action.tile == 0 else None
                    began = perf_counter_ns()
                    yield step
                    if marks is not None:
                        check_written(step, marks)
                    if self.trace is not None:
                        self.trace.spans.append(TraceSpan("compute", action.tile, 0, began, perf_counter_ns()))
        finally:
            try:
                queue.wait(list(self.running.values()))
            finally:
                for transfer in self.running.values():  # dropped transfers must not run later
                    transfer.abandon(TransferError("the run is over"))
                    transfer.join()
                if own_queue is not None:
                    own_queue.close()

    def _start_transfer(self, kind: TransferKind, action: Import | Export, work: Work, nbytes: int) -> None:
        after = [self.running[key] for key in action.after if key in self.running] if action.after else []
        transfer = Transfer(kind, action.tile, work, nbytes, after, action.operand)
        if kind == "export" and action.operand in self._last_export:
            previous = self._last_export[action.operand]
            if previous is not None:
                after.append(previous)
            self._last_export[action.operand] = transfer
        self.running[kind, action.tile, action.operand] = transfer
        self.nbytes[kind] += nbytes
        start_transfer(self.queue, transfer)

    def _wait_for(self, keys: tuple[TransferKey, ...]) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError(
                f"cancelled at tile {keys[0].tile} of {self.pipeline.tiles}, after exporting {self.exported}"
            )
        transfers = [self.running[key] for key in keys]
        began = perf_counter_ns()
        self.queue.wait(transfers)
        if self.trace is not None:
            self.trace.spans.append(TraceSpan("wait", keys[0].tile, 0, began, perf_counter_ns()))
            for transfer in transfers:
                self.trace.add_transfer(transfer)
        for key in keys:
            del self.running[key]
        raise_failures(transfers)
        for kind, _, operand in keys:
            if kind == "export" and not operand:
                self.exported += 1
                if self.progress is not None:
                    self.progress(self.exported, self.pipeline.tiles)


BAND_BYTES = 64 << 20
"""Bytes of a direct copy: much more than is copied while threads start, and few enough to cancel in between."""


class PipelineKernel(Protocol):
    """A pipeline as one kernel of a device: the `TileKernel` of the companion tilewright-gpu."""

    source: str
    """The program, in the C of its engine."""

    @property
    def local_bytes(self) -> int:
        """The local memory of one work-group."""

    def run(self, groups: int | None = None) -> PipelineReport:
        """Run the kernel on all tiles, shared among `groups` groups of threads, and return a report."""


class Pipeline(PipelineSpec):
    """Inputs and outputs cut into equally many tiles, and a scheme that transfers and computes them.

    Args:
        inputs: the operands to read.
        outputs: the operands to write.
        scheme: "simplex" (3 buffers), "duplex" (2), "double" (4), "buffered" (2 x depth), or "direct" (no compute).
        depth: the buffers per operand of "buffered" and "direct".
        workers: threads beside the caller. They run transfers; where tiles come from memory, files or zarr arrays, each
            takes its tiles from import through compute to export (see `workers.py`). 0 uses no threads.
        queue: what runs the transfers, in place of threads.
        memory_limit: the most bytes that buffers may take; "buffered" chooses its depth by it. What they leave of it
            holds decoded chunks of stores that several tiles need.

    >>> import numpy as np
    >>> from tilewright.tiling import Input, Output
    >>> a, b = np.arange(32.0).reshape(4, 8), np.zeros((4, 8))
    >>> from tilewright.tiling import Input, Output
    >>> tiler = Tiler((4, 8), (2, 4))
    >>> pipeline = Pipeline([Input(a, tiler)], [Output(b, tiler)], scheme="duplex")
    >>> pipeline.run(lambda x, y: np.multiply(x, 2, out=y)).tiles
    4
    >>> bool((b == 2 * a).all())
    True
    """

    def steps(
        self, trace: Trace | None = None, progress: ProgressCallback | None = None, cancel: CancelFlag | None = None
    ) -> Iterator[Step]:
        """Yield the tiles one by one, imported; a tile's outputs are exported when the next tile is requested.

        Leaving the loop early, by break or by an exception, waits for started transfers; the current tile is then not
        exported. `trace`, `progress` and `cancel` are as in `run`.

        >>> import numpy as np
        >>> from tilewright.tiling import Input, Output
        >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (2,))
        >>> for step in Pipeline([Input(a, tiler)], [Output(b, tiler)]).steps():
        ...     step.outputs[0][...] = step.inputs[0] + 1
        >>> b.tolist()
        [1, 2, 3, 4]
        """
        return ScheduledRun(self, trace, progress, cancel).steps()

    def run(
        self,
        compute: Callable[..., Any] | None,
        trace: Trace | None = None,
        progress: ProgressCallback | None = None,
        cancel: CancelFlag | None = None,
        concurrent: bool = False,
    ) -> PipelineReport:
        """Import, compute and export every tile, and return a report.

        Args:
            compute: a function of the input arrays, then the output arrays, which it writes into. It is called for one
                tile at a time, in order, though not always by the same thread. None copies the tiles.
            trace: records when each action began and ended.
            progress: called with the number of exported tiles, and the number of all tiles.
            cancel: stops the run when it is set.
            concurrent: allow calling the compute for several tiles at once, where that is faster.

        >>> import numpy as np
        >>> from tilewright.tiling import Input, Output
        >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (3,))
        >>> done = []
        >>> report = Pipeline([Input(a, tiler)], [Output(b, tiler)]).run(
        ...     lambda x, y: np.negative(x, out=y), progress=lambda tiles, total: done.append(tiles)
        ... )
        >>> b.tolist(), done[-1]
        ([0, -1, -2, -3], 2)
        """
        if compute is None:
            self._validate_copy()
        elif self.scheme == "direct":
            raise LayoutError(f"scheme 'direct' has no compute, got {compute!r}; use another scheme")
        started = perf_counter()
        if compute is None and self.queue is None and trace is None and self._can_copy_directly():
            copied = self._copy_directly(progress, cancel)
            return PipelineReport(self.tiles, perf_counter() - started, copied, copied, 0)
        direct = self.scheme == "direct"  # a tile is exported from the buffer it was imported into
        with self._share_chunks() as cache:
            if count := choose_worker_count(self, concurrent or direct):
                function = _pass_tiles if direct else compute or _copy_tiles
                TileWorkers(self, function, count, concurrent or direct, trace, progress, cancel).run()
                read, written = _transferred_bytes(self.sources), _transferred_bytes(self.targets)
            else:
                run = ScheduledRun(self, trace, progress, cancel)
                with closing(run.steps()) as steps:
                    for step in steps:
                        run_compute(compute or _copy_tiles, step)
                read, written = run.nbytes["import"], run.nbytes["export"]
        seconds, amplification = perf_counter() - started, self._read_amplification(cache)
        return PipelineReport(self.tiles, seconds, read, written, self.buffer_bytes, amplification)

    @contextmanager
    def _share_chunks(self) -> Iterator[ChunkCache]:
        """Read the chunks of sources through one cache while the context lasts."""
        stores = [endpoint for endpoint, _ in self.sources if isinstance(endpoint, SlicedEndpoint)]
        limit = STORE_LIMIT if self.memory_limit is None else self.memory_limit
        decoding = self.depth * max([endpoint.chunk_bytes for endpoint in stores], default=0)  # one for each worker
        cache = ChunkCache(max(0, limit - self.buffer_bytes - decoding))
        for number, (endpoint, item) in enumerate(self.sources):
            if isinstance(endpoint, SlicedEndpoint):
                endpoint.share_chunks(item.tiler, cache, number)
        try:
            yield cache
        finally:
            for endpoint in stores:
                endpoint.stop_sharing()

    def _read_amplification(self, cache: ChunkCache) -> float:
        """Return the bytes that the sources delivered over those that they hold."""
        size = sum([prod(endpoint.shape) * endpoint.dtype.itemsize for endpoint, _ in self.sources])
        others = [pair for pair in self.sources if getattr(pair[0], "chunks", None) is None]
        return (cache.loaded_bytes + _transferred_bytes(others)) / size if size else 1.0

    def _can_copy_directly(self) -> bool:
        """Return whether sources and targets are arrays in memory that share no bytes, without halo or padding."""
        if any(any(item.tiler.overlap) or any(map(any, item.tiler.augmentation)) for item in self.inputs):
            return False
        # exact types: a mapped file is better read and written than touched
        if any(type(endpoint) is not MemoryEndpoint for endpoint, _ in (*self.sources, *self.targets)):
            return False
        return not any(share_bytes(source, target) for source, _ in self.sources for target, _ in self.targets)

    def _copy_directly(self, progress: ProgressCallback | None, cancel: CancelFlag | None) -> int:
        """Copy sources to targets without buffers, in bands of whole rows of tiles; return the bytes."""
        total = sum([item.tiler.volume * endpoint.dtype.itemsize for endpoint, item in self.sources])
        copied, threads = 0, max(1, self.workers)
        for (source, item), (target, _) in zip(self.sources, self.targets, strict=True):
            assert isinstance(source, MemoryEndpoint)
            assert isinstance(target, MemoryEndpoint)
            for band in _cut_into_bands(item.tiler, source.dtype.itemsize):
                if cancel is not None and cancel.is_set():
                    raise CancelledError(f"cancelled after {copied} of {total} bytes")
                direct_copy(source.tensor.tile(band), target.tensor.tile(band), threads)()
                copied += band.size * source.dtype.itemsize
                if progress is not None:
                    progress(self.tiles * copied // total, self.tiles)
        return copied

    def kernel(
        self, compute: object, engine: str | None = None, each: str = "element", functions: str = "", threads: int = 256
    ) -> PipelineKernel:
        """Return this pipeline as one device kernel with a compute in C; its `run` does the work.

        Args:
            compute: an expression of `in0`, `in1`, ... (one per output), or statements that assign to `out0`, ...; they
                are computed for every element of the first output's tile. `in0(i0 + 1, i1)` is any element of an
                input's tile, relative to the indices `i0`, `i1` of the current element; `x0`, `x1` are its coordinates
                in the array, `tile` is the number of the tile.
            engine: "opencl" or "cuda"; by default the engine of an operand's memory, or OpenCL.
            each: "element", or "tile": the statements then run once per tile, by all threads, and store with
                `set_out0(value, i0, i1)`.
            functions: C functions that the compute may call.
            threads: threads of a work-group.

        >>> import numpy as np
        >>> from tilewright.tiling import Input, Output
        >>> a, b, tiler = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32), Tiler((8, 8), (4, 4))
        >>> kernel = Pipeline([Input(a, tiler)], [Output(b, tiler)]).kernel("sqrt(in0)", engine="opencl")
        >>> "async_work_group_copy" in kernel.source
        True
        """
        extra = "cuda" if engine == "cuda" else "opencl"
        tile_kernel = companion_name("tilewright.tiling.TileKernel", "tilewright_gpu", extra)
        kernel: PipelineKernel = tile_kernel(self, compute, engine, each, functions, threads)
        return kernel


def _cut_into_bands(tiler: Tiler, itemsize: int) -> Tiler:
    """Return an array cut into bands of whole rows of tiles, large enough to be worth starting threads."""
    rest = [max(1, n) for n in tiler.space[1:]]
    row = tiler.tile[0] * prod(rest) * itemsize
    return Tiler(tiler.space, (tiler.tile[0] * -(-BAND_BYTES // max(1, row)), *rest))


def _transferred_bytes(operands: Sequence[tuple[Endpoint, Input | Output]]) -> int:
    return sum([item.tiler.volume * endpoint.dtype.itemsize for endpoint, item in operands])


def _copy_tiles(*arrays: Array) -> None:
    """Copy each input to its output: the compute of a pipeline that has none."""
    half = len(arrays) // 2
    for source, target in zip(arrays[:half], arrays[half:], strict=True):
        target[...] = source


def _pass_tiles(*arrays: Array) -> None:
    """Do nothing: input and output are the same buffer."""


# `stream`: an array of any size through a compute, tile by tile, with bounded memory.

REMOTE_WORKERS = 8
"""Threads that wait for stores in a network at the same time."""


def stream(
    source: object,
    target: object,
    compute: Callable[..., object] | None = None,
    tile: Extents | None = None,
    overlap: Margins = 0,
    pad: Fill = 0,
    scheme: str | None = None,
    workers: int | None = None,
    depth: int | None = None,
    memory_limit: int | None = None,
    order: str = "row_major",
    dtype: npt.DTypeLike | None = None,
    chunks: Sequence[int] | None = None,
    progress: ProgressCallback | None = None,
    cancel: CancelFlag | None = None,
    trace: Trace | None = None,
    queue: TransferQueue | None = None,
    concurrent: bool = False,
) -> PipelineReport:
    """Compute a target from a source tile by tile, with bounded memory, and return a report.

    Args:
        source: an array or anything that slices, a memory map, or a name: `a.npy`, `a.zarr`, `a.h5::x`, a URL of these;
            or a list of them, all of one shape.
        target: the same; a name is created.
        compute: a function `compute(*inputs, *outputs)` of NumPy views, which writes into the outputs. It may be
            compiled by numba, or be a C function `f(in, in_shape, ..., out, out_shape)` of pointers to elements and to
            `int64_t` extents. It is called for one tile at a time, in order. None copies the source.
        tile: the extents of an output tile; by default chosen to fit `memory_limit`.
        overlap: how far an input tile extends beyond its output tile, on both sides or as (before, after) per axis.
        pad: the content of an input tile outside the source: a value, "edge", "reflect", "symmetric" or "wrap".
        scheme, depth, queue: as in `Pipeline`.
        workers: threads beside the caller, as in `Pipeline`; by default 1, and one per core for zarr and other stores
            that decode in parallel.
        memory_limit: the most bytes that buffers and cached chunks may take.
        order: the order of the tiles, as in `Tiler`.
        dtype: the element type of a created target, by default the source's.
        chunks: the chunks of a created target, by default the source's.
        progress, cancel, trace: as in `Pipeline.run`.
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
        requested: list[Any] = as_list(target)
        arrays = [item for item in requested if not isinstance(item, (str, Path))]
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
            for item in requested
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
            choice = choose_tile(shape, sources, targets, memory_limit, halo, scheme, depth)
            tile = choice.tile
            depth = choice.depth if scheme in ("buffered", "direct") else depth
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


def open_source(source: object, targets: Sequence[object]) -> Any:
    """Return the array of a source; HDF5 has to open a file with targets for writing as well.

    >>> open_source(np.zeros(3), []).shape
    (3,)
    """
    if not isinstance(source, (str, Path)):
        return source
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


def _as_array_function(compute: object) -> Callable[..., Any] | None:
    """Return a compute as a function of arrays; a C function is called with pointers."""
    pointer_like = getattr(compute, "ctypes", None)  # numba's cfunc
    if pointer_like is not None and not isinstance(compute, np.ndarray):
        compute = pointer_like
    if not isinstance(compute, ctypes._CFuncPtr):  # type: ignore[attr-defined]  # it has no public name
        if compute is not None and not callable(compute):
            raise TransferError(f"expected a callable compute, got {compute!r}")
        return compute
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

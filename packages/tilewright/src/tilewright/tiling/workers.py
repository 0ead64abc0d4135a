# SPDX-License-Identifier: Apache-2.0
"""Workers: threads that take their tiles from import through compute to export, within the caches of one core.

Where transfers are copies in memory, threads that only copy gain little: the tile crosses from core to core twice,
which takes longer than the copy. Where transfers decode and encode the chunks of a store, they take longer than most
computes, and every core is needed for them. Here worker j of n takes the tiles j, j + n, ... in its own buffers.
Workers import and export at the same time, and compute in turns, in the order of the tiles, unless the compute may run
for several tiles at once. Between two computes a worker makes one native call, without the GIL: it passes the turn on,
exports, imports its next tile and waits for its turn.

That call takes tables of native copies. Tiles with the same position relative to the edges of their space (inside, or
outside by the same amounts) have the same copies but for their addresses, so the copies of one tile of each group are
planned, and NumPy fills in a table for all others of the group. Tables are cached without base addresses, for other
workers and other arrays that are cut the same way. Tiles of files and stores, which are read and written rather than
copied, remain `Work` to call.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..copying import NativeRunner, native
from ..errors import TransferError
from .endpoints import Endpoint, Input, MemoryEndpoint, Output, SlicedEndpoint
from .schedule import Trace, TraceSpan, TransferKind
from .tile_compute import CancelFlag, CancelledError, PipelineSpec, ProgressCallback, Step, WriteGate, run_compute
from .tile_copies import CopyList, Fill, TileBuffer, Work, validate_fill
from .tiler import Tiler
from .transfers import Transfer, raise_failures

MIN_TILE_BYTES = 256 << 10
"""Bytes of a tile, in and out, from which a second worker gains more than passing the turn costs. A quarter is enough
where computes may overlap, so that no turn is passed, and where tiles come from files, which takes longer."""

INTERRUPT_WAIT_NS = 100_000_000
"""How long an interruption waits for the workers to end; one that is in a long compute ends on its own."""

_STOPPED = 1 << 62

Array = np.ndarray[Any, Any]
Shapes = tuple[tuple[int, ...], ...]
"""The shapes of a tile's operands."""

BATCH_TILES = 512
"""Tiles in one table."""

_MAX_CACHED_TABLES = 64
_COPY_FIELDS = [("parts", "i8"), ("source", "i8"), ("target", "i8"), ("count", "i4"), ("streaming", "i4")]
_COPY_BYTES = 32
"""`tw_transfer` of native/tilewright.h."""

NativeCopies: TypeAlias = tuple[int, int]
"""An array of `tw_transfer`: its address, and its length."""

NO_COPIES: NativeCopies = (0, 0)


def choose_worker_count(pipeline: PipelineSpec, concurrent: bool = False) -> int:
    """Return how many workers suit a pipeline; 0 where transfers need a queue.

    >>> from tilewright.tiling import Input, Output, Pipeline, Tiler
    >>> a, tiler = np.zeros((512, 512)), Tiler((512, 512), (128, 128))
    >>> choose_worker_count(Pipeline([Input(a, tiler)], [Output(a.copy(), tiler)])) == (
    ...     2 if native.is_available() else 0
    ... )
    True
    """
    if pipeline.queue is not None or not native.is_available():
        return 0
    if any(any(item.tiler.overlap) for item in pipeline.outputs):
        return 0  # exports of overlapping tiles have to keep their order
    endpoints = [endpoint for endpoint, _ in (*pipeline.sources, *pipeline.targets)]
    in_memory = all(type(endpoint) is MemoryEndpoint for endpoint in endpoints)
    if pipeline.scheme in ("duplex", "simplex"):
        return 1 if in_memory else 0
    if not all(map(is_parallel, endpoints)):
        return 0
    if not all(isinstance(endpoint, MemoryEndpoint) for endpoint in endpoints):
        return max(1, min(pipeline.depth, pipeline.workers + 1, pipeline.tiles))
    min_bytes = MIN_TILE_BYTES if in_memory and not concurrent else MIN_TILE_BYTES // 4
    if pipeline.buffer_bytes < pipeline.depth * min_bytes:
        return 1
    return max(1, min(pipeline.depth, pipeline.workers + 1, pipeline.tiles))


def is_parallel(endpoint: Endpoint) -> bool:
    """Return whether several threads may read and write an endpoint at once, and gain by it.

    >>> from tilewright.tiling.endpoints import open_endpoint
    >>> is_parallel(open_endpoint(np.zeros(4)))
    True
    """
    return isinstance(endpoint, MemoryEndpoint) or (
        isinstance(endpoint, SlicedEndpoint) and endpoint.access.is_parallel
    )


def _avoid_core(thread: threading.Thread, core: int) -> None:
    """Keep a thread off a core, if it may run on others.

    A thread that wakes up is often put on the core of the one that woke it, and two workers there would take turns.
    """
    with suppress(AttributeError, OSError):  # not every system has or allows this, and the thread may have ended
        others = os.sched_getaffinity(0) - {core}
        if others and thread.native_id is not None:
            os.sched_setaffinity(thread.native_id, others)


class TileWorkers:
    """A run of a pipeline by workers.

    >>> from tilewright.tiling import Input, Output, Pipeline, Tiler
    >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (2,))
    >>> workers = TileWorkers(Pipeline([Input(a, tiler)], [Output(b, tiler)]), lambda x, y: np.negative(x, out=y), 1)
    >>> if native.is_available():
    ...     workers.run()
    ...     assert (b == -a).all()
    """

    def __init__(
        self,
        pipeline: PipelineSpec,
        compute: Callable[..., Any],
        count: int,
        concurrent: bool = False,
        trace: Trace | None = None,
        progress: ProgressCallback | None = None,
        cancel: CancelFlag | None = None,
    ) -> None:
        self.pipeline, self.compute, self.count, self.concurrent = pipeline, compute, count, concurrent
        self.trace, self.progress, self.cancel = trace, progress, cancel
        self.exported = 0
        self._gate = WriteGate()
        self._other_threads: list[threading.Thread] = []
        self._checks_outputs = pipeline.scheme != "direct"  # direct has no compute
        endpoints = [endpoint for endpoint, _ in (*pipeline.sources, *pipeline.targets)]
        self._pins_threads = all(isinstance(endpoint, MemoryEndpoint) for endpoint in endpoints)
        self._is_watched = progress is not None or cancel is not None
        self._run_native: Any = native.load_library().tw_run_transfers if native.is_available() else None
        self._turn = ctypes.c_int64(0)  # computed tiles; only the library writes it
        self._turn_address = ctypes.addressof(self._turn)
        self._state_lock = threading.Lock()
        self._failure: tuple[int, BaseException] | None = None

    def run(self) -> None:
        """Run all tiles; nothing is written after this has returned or raised.

        Several workers have a thread each, and the caller waits for them: a worker that computes, or waits for its
        turn in the native library, would not notice an interruption. After one, workers in a compute are left to it.
        """
        inputs, outputs = (list(buffers.values()) for buffers in self.pipeline.make_buffers())
        if self.pipeline.scheme == "simplex":
            outputs = outputs[1:]  # all buffers serve both sides: the second can be the output of the first
        if self.count == 1:
            self._run_worker(0, inputs[0], outputs[0])
        else:
            self._run_threads(inputs, outputs)
        if self._failure is not None:
            raise self._failure[1]

    def _run_threads(self, inputs: list[list[TileBuffer]], outputs: list[list[TileBuffer]]) -> None:
        error_state = np.geterr()  # NumPy has one per thread
        threads = [
            threading.Thread(
                target=copy_context().run,
                args=(self._run_thread, k, inputs[k], outputs[k], error_state),
                name=f"tilewright-{k}",
                daemon=True,
            )
            for k in range(self.count)
        ]
        self._other_threads = threads[1:]
        try:
            for thread in reversed(threads):  # the first keeps the others off its core
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException as problem:  # a thread could not start, or an interruption
            self._fail(-1, problem)
            self._gate.close()
            deadline = perf_counter_ns() + INTERRUPT_WAIT_NS
            for thread in threads:
                with suppress(RuntimeError):  # it never started
                    thread.join(None if isinstance(problem, Exception) else max(0, deadline - perf_counter_ns()) / 1e9)

    def _run_thread(
        self, worker: int, inputs: list[TileBuffer], outputs: list[TileBuffer], error_state: dict[str, Any]
    ) -> None:
        if worker == 0 and self._pins_threads:
            core = native.load_library().tw_current_core()
            for thread in self._other_threads:
                _avoid_core(thread, core)
        with np.errstate(**error_state):
            self._run_worker(worker, inputs, outputs)

    def _run_worker(self, worker: int, inputs: list[TileBuffer], outputs: list[TileBuffer]) -> None:
        tile = worker
        try:
            tiles, count = self.pipeline.tiles, self.count
            imports = TransferTable(_pair_with_buffers(inputs, self.pipeline.sources), tiles, importing=True)
            exports = TransferTable(_pair_with_buffers(outputs, self.pipeline.targets), tiles, importing=False)
            self._transfer_between(exports, imports, tile - count)
            # From here to the next compute every other worker waits for this one: no step too many.
            for tile in range(worker, tiles, count):
                if self._turn.value >= _STOPPED:
                    return
                if self._is_watched:
                    self._raise_if_cancelled(tile)
                began = perf_counter_ns()
                step = Step(tile, imports.arrays(tile), exports.arrays(tile))
                run_compute(self.compute, step, check=not tile and self._checks_outputs)
                if self.trace is not None:
                    self.trace.spans.append(TraceSpan("compute", tile, 0, began, perf_counter_ns()))
                with self._gate:
                    self._transfer_between(exports, imports, tile)
                if self._is_watched:
                    self._count_export()
        except BaseException as problem:
            self._fail(tile, problem)

    def _raise_if_cancelled(self, tile: int) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError(f"cancelled at tile {tile} of {self.pipeline.tiles}, after exporting {self.exported}")

    def _transfer_between(self, exports: TransferTable, imports: TransferTable, tile: int) -> None:
        """Pass the turn on after a compute, export its tile, import the worker's next one, and wait for the turn.

        Before the first compute of the worker, `tile` is negative.
        """
        upcoming = tile + self.count
        is_first, has_next = tile < 0, upcoming < self.pipeline.tiles
        done, awaited = 0 if is_first else tile + 1, upcoming if has_next else 0
        if self.concurrent:
            done = awaited = 0
        if self.trace is None:
            export_copies = NO_COPIES if is_first else exports.native_copies(tile)
            import_copies = imports.native_copies(upcoming) if has_next else NO_COPIES
            if export_copies is not None and import_copies is not None:
                self._call_native(done, export_copies, import_copies, awaited)
                return
        self._call_native(done, NO_COPIES, NO_COPIES, 0)
        if not is_first:
            self._run_transfers("export", tile, exports.plan_transfers(tile))
        if has_next:
            self._run_transfers("import", upcoming, imports.plan_transfers(upcoming))
        began = perf_counter_ns()
        self._call_native(0, NO_COPIES, NO_COPIES, awaited)
        if self.trace is not None and has_next:
            self.trace.spans.append(TraceSpan("wait", upcoming, 0, began, perf_counter_ns()))

    def _call_native(self, done: int, export_copies: NativeCopies, import_copies: NativeCopies, awaited: int) -> None:
        """Set the turn to `done`, run the copies, and wait until the turn is `awaited`; 0 skips either."""
        status = self._run_native(self._turn_address, done, *export_copies, *import_copies, awaited)
        if status:
            raise TransferError(f"out of memory while copying a tile (status {status}); use smaller tiles")

    def _run_transfers(self, kind: TransferKind, tile: int, works: list[Work]) -> None:
        """Run the transfers of a tile, one per operand."""
        for operand, work in enumerate(works):
            transfer = Transfer(kind, tile, work, operand=operand)
            transfer.run()
            if self.trace is not None:
                self.trace.add_transfer(transfer)
            if transfer.error is not None:
                raise_failures([transfer])

    def _count_export(self) -> None:
        with self._state_lock:
            self.exported += 1
            if self.progress is not None:
                self.progress(self.exported, self.pipeline.tiles)

    def _fail(self, tile: int, problem: BaseException) -> None:
        """Store the failure of the earliest tile, and stop all workers."""
        with self._state_lock:
            if self._failure is None or tile < self._failure[0]:
                self._failure = (tile, problem)
        self._call_native(_STOPPED, NO_COPIES, NO_COPIES, 0)


def _pair_with_buffers(
    buffers: list[TileBuffer], operands: Sequence[tuple[Endpoint, Input | Output]]
) -> list[BufferedOperand]:
    # simplex has a buffer per operand of the side that has more: zip stops at the shorter side
    pairs: Any = zip(buffers, operands)  # noqa: B905
    return [
        BufferedOperand(endpoint, item.tiler, buffer, getattr(item, "fill", None)) for buffer, (endpoint, item) in pairs
    ]


class BufferedOperand(NamedTuple):
    """An operand of a worker: its endpoint, its tiler, its buffer, and the fill outside of its space.

    >>> from tilewright.tiling import ExternalTensor
    >>> BufferedOperand(MemoryEndpoint(ExternalTensor(np.zeros(4))), Tiler((4,), (2,)), TileBuffer(16)).fill is None
    True
    """

    endpoint: MemoryEndpoint | SlicedEndpoint
    tiler: Tiler
    buffer: TileBuffer
    fill: Fill = None

    def plan_transfer(self, tile: int, importing: bool) -> Work:
        """Return the work that imports or exports a tile."""
        box = self.tiler[tile]
        if importing:
            return self.endpoint.plan_import(box, self.buffer, self.fill)
        return self.endpoint.plan_export(box, self.buffer)


class CopyTable(NamedTuple):
    """The copies of a batch of tiles, with addresses relative to arrays, fills and buffers.

    >>> from tilewright.tiling import ExternalTensor
    >>> operand = BufferedOperand(MemoryEndpoint(ExternalTensor(np.arange(6))), Tiler((6,), (2,)), TileBuffer(64))
    >>> build_copy_table([operand], range(0, 3), importing=True).shapes
    [((2,),), ((2,),), ((2,),)]
    """

    shapes: list[Shapes]
    spans: Array  # (first copy, number of copies) of each tile; -1 copies: its transfer is not made of copies
    copies: Array
    origins: Array  # the base of each copy's outer address: 2 * operand, or 2 * operand + 1 for its fill
    runners: list[NativeRunner]  # keeps the targets of the copies' pointers alive


class TransferTable:
    """The imports or the exports of a worker's tiles.

    >>> from tilewright.copying import native
    >>> from tilewright.tiling import ExternalTensor
    >>> operand = BufferedOperand(MemoryEndpoint(ExternalTensor(np.arange(6))), Tiler((6,), (2,)), TileBuffer(64))
    >>> imports = TransferTable([operand], 3, importing=True)
    >>> imports.arrays(1)[0].shape, not native.is_available() or imports.native_copies(1)[1] == 1
    ((2,), True)
    """

    def __init__(self, operands: Sequence[BufferedOperand], tiles: int, importing: bool) -> None:
        self._operands, self._tiles, self._importing = operands, tiles, importing
        self._first = self._end = 0
        self._copies: list[NativeCopies] = []
        self._arrays: list[tuple[Array, ...]] = []
        self._owners: Any = None  # keeps the targets of the copies' pointers alive

    def arrays(self, tile: int) -> tuple[Array, ...]:
        """Return a tile's views of the buffers."""
        if tile >= self._end:
            self._load_batch(tile)
        return self._arrays[tile - self._first]

    def native_copies(self, tile: int) -> NativeCopies | None:
        """Return the native copies of a tile; None if its transfer takes more than those."""
        if tile >= self._end:
            self._load_batch(tile)
        copies = self._copies[tile - self._first]
        return copies if copies[1] >= 0 else None

    def plan_transfers(self, tile: int) -> list[Work]:
        """Return the transfers of a tile as work to call, one per operand."""
        return [operand.plan_transfer(tile, self._importing) for operand in self._operands]

    def _load_batch(self, tile: int) -> None:
        first = tile - tile % BATCH_TILES
        tiles = range(first, min(first + BATCH_TILES, self._tiles))
        table = _cached_copy_table(self._operands, tiles, self._importing)
        copies, bases, fills = table.copies.copy(), [], []
        for operand in self._operands:
            fill = validate_fill(operand.fill, operand.endpoint.dtype) if operand.fill is not None else None
            fills.append(fill)
            bases += [_base_address(operand.endpoint), fill.ctypes.data if isinstance(fill, np.ndarray) else 0]
        outer, inner = ("source", "target") if self._importing else ("target", "source")
        copies[outer] += np.array(bases, np.int64)[table.origins]
        copies[inner] += np.array([operand.buffer.address for operand in self._operands], np.int64)[table.origins >> 1]
        views: dict[Shapes, tuple[Array, ...]] = {}
        for shapes in table.shapes:
            if shapes not in views:
                pairs = zip(self._operands, shapes, strict=True)
                views[shapes] = tuple([operand.buffer.view(shape, operand.endpoint.dtype) for operand, shape in pairs])
        self._first, self._end = first, tiles.stop
        self._arrays = [views[shapes] for shapes in table.shapes]
        addresses = table.spans * (_COPY_BYTES, 1) + (copies.ctypes.data, 0)
        self._copies = [(address, count) for address, count in addresses.tolist()]
        self._owners = table, copies, fills


def _base_address(endpoint: Endpoint) -> int:
    """Return the address that the copies of an endpoint are relative to; 0 if it has none."""
    return endpoint.tensor.address if isinstance(endpoint, MemoryEndpoint) else 0


_TABLES: dict[Any, CopyTable] = {}


def _cached_copy_table(operands: Sequence[BufferedOperand], tiles: range, importing: bool) -> CopyTable:
    """Return a copy table, cached for all arrays with the same tiler, strides and alignment."""
    key_parts: list[Any] = [importing, tiles]
    for operand in operands:
        if operand.endpoint.copy_key is None:
            return build_copy_table(operands, tiles, importing)
        fill = operand.fill if operand.fill is None else validate_fill(operand.fill, operand.endpoint.dtype)
        key_parts += [operand.tiler, operand.endpoint.copy_key, fill if fill is None or isinstance(fill, str) else True]
    key = tuple(key_parts)
    table = _TABLES.get(key)
    if table is None:  # two threads may build equal tables
        table = build_copy_table(operands, tiles, importing)
        if len(_TABLES) >= _MAX_CACHED_TABLES:
            _TABLES.clear()
        _TABLES[key] = table
    return table


def build_copy_table(operands: Sequence[BufferedOperand], tiles: range, importing: bool) -> CopyTable:
    """Return the copies of some tiles, derived from one tile of each group.

    >>> build_copy_table([], range(0, 2), importing=False).spans.tolist()
    [[0, 0], [0, 0]]
    """
    positions = [_tile_positions(operand, np.arange(tiles.start, tiles.stop)) for operand in operands]
    groups = _number_distinct_rows([column for columns, _ in positions for column in columns], len(tiles))
    shapes, spans = [], np.zeros((len(tiles), 2), np.int64)
    copies, origins, runners = [np.zeros(0, _COPY_FIELDS)], [np.zeros(0, np.int64)], []
    count = 0
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        model = tiles[int(members[0])]
        shapes.append(tuple([operand.tiler[model].shape for operand in operands]))
        rows, bases, steps = [], [], []
        model_copies = _native_copies(operands, model, importing)
        for number, run, outer, inner in model_copies or ():
            operand, starts = operands[number], positions[number][1]
            assert isinstance(operand.endpoint, MemoryEndpoint)  # others have no native copies
            tensor = operand.endpoint.tensor
            is_data = not importing or tensor.memory.contains(outer)  # otherwise it is a fill
            outer = outer - tensor.address - int(starts[members[0]]) if is_data else 0
            inner -= operand.buffer.address
            source, target = (outer, inner) if importing else (inner, outer)
            rows.append((run.nests, source, target, run.count, run.streaming))
            bases.append(2 * number + (not is_data))
            steps.append(starts[members] if is_data else 0)
            runners.append(run)
        table = np.tile(np.array(rows, _COPY_FIELDS), (len(members), 1))
        for column, step in zip(table.T, steps, strict=True):
            column["source" if importing else "target"] += step
        spans[members, 0] = count + np.arange(len(members)) * len(rows)
        spans[members, 1] = -1 if model_copies is None else len(rows)
        copies.append(table.reshape(-1))
        origins.append(np.tile(np.array(bases, np.int64), len(members)))
        count += table.size
    return CopyTable([shapes[k] for k in groups], spans, np.concatenate(copies), np.concatenate(origins), runners)


def _native_copies(
    operands: Sequence[BufferedOperand], tile: int, importing: bool
) -> list[tuple[int, NativeRunner, int, int]] | None:
    """Return (operand, runner, outer address, buffer address) of each copy of a tile; None if not all are native."""
    copies = []
    for number, operand in enumerate(operands):
        if operand.endpoint.copy_key is None:
            return None
        work = operand.plan_transfer(tile, importing)
        if not isinstance(work, CopyList):
            return None
        for copy in work:
            if not isinstance(copy.run, NativeRunner):
                return None
            addresses = (copy.source, copy.target) if importing else (copy.target, copy.source)
            copies.append((number, copy.run, *addresses))
    return copies


def _tile_positions(operand: BufferedOperand, numbers: Array) -> tuple[list[Array], Array]:
    """Return (per axis: elements outside before, outside after, length) of some tiles, and their byte offsets."""
    tiler, endpoint = operand.tiler, operand.endpoint
    if tiler.order == "row_major":
        coords = np.stack(np.unravel_index(numbers, tiler.grid))
    else:
        coords = np.array([tiler.coords(int(number)) for number in numbers]).T
    columns, starts = [], np.zeros(len(numbers), np.int64)
    strides = endpoint.tensor.strides if isinstance(endpoint, MemoryEndpoint) else None
    strides = strides or (0,) * tiler.rank
    for at, extent, stride, axis in zip(coords, endpoint.shape, strides, tiler.axes, strict=True):
        step, first, tile_extent, last, rest = axis
        start = at * step + first
        length = np.where(at == last, rest, tile_extent)
        columns += [np.maximum(-start, 0), np.maximum(start + length - extent, 0), length]
        starts += start * stride
    return columns, starts


def _number_distinct_rows(columns: list[Array], count: int) -> Array:
    """Return a number for each row of some columns, the same for equal rows."""
    numbers = np.zeros(count, np.int64)
    for column in columns:
        if column.min() < column.max():
            values, ranks = np.unique(column, return_inverse=True)
            numbers = np.unique(numbers * len(values) + ranks, return_inverse=True)[1]
    return numbers

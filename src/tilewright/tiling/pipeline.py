# SPDX-License-Identifier: Apache-2.0
"""Pipelines: tiles imported, computed and exported at the same time, by a schedule that is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from time import perf_counter, perf_counter_ns
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..copy.buffers import CACHE_LINE
from ..errors import LayoutError, TransferError
from .fills import check_fill
from .operands import Input, Output, port_of
from .ports import Port, Room
from .schedule import Compute, Export, Import, Key, Kind, Schedule, Wait
from .tile import Tile
from .tiler import Tiler
from .trace import Span, Trace
from .transfers import Engine, InlineEngine, ThreadEngine, Transfer, raise_failures

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]


class Switch(Protocol):
    """Anything with `is_set`, such as a `threading.Event`: it stops a run when it is set.

    >>> import threading
    >>> threading.Event().is_set()
    False
    """

    def is_set(self) -> bool:
        """Return whether the run should stop."""


class CancelledError(TransferError):
    """A run that was stopped on request, after what was in flight had ended.

    >>> issubclass(CancelledError, TransferError)
    True
    """


class Step(NamedTuple):
    """One tile at work: its id, and the arrays to read and to write.

    >>> Step(0, (), ()).tile
    0
    """

    tile: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


@dataclass(frozen=True)
class Report:
    """What a run did: tiles, seconds, bytes read and written by transfers, and bytes of buffers.

    >>> Report(tiles=4, seconds=0.5, bytes_in=10**9, bytes_out=10**9, buffer_bytes=1 << 20).bytes_per_second
    4000000000.0
    """

    tiles: int
    seconds: float
    bytes_in: int
    bytes_out: int
    buffer_bytes: int

    @property
    def bytes_per_second(self) -> float:
        """Return the speed of the transfers, both directions together.

        >>> Report(1, 2.0, 3, 1, 0).bytes_per_second
        2.0
        """
        return (self.bytes_in + self.bytes_out) / self.seconds if self.seconds else 0.0


class Pipeline:
    """Inputs and outputs cut into equally many tiles, a scheme to move them, and the buffers that it needs.

    `scheme` is "simplex" (3 buffers), "duplex" (2), "double" (4) or "buffered" with a `depth` (2 x depth); "direct"
    has no compute. `workers` threads carry the transfers; 0 does without threads. `memory_limit` bounds the buffers,
    and lets "buffered" choose its depth.

    >>> a, b = np.arange(32.0).reshape(4, 8), np.zeros((4, 8))
    >>> tiler = Tiler((4, 8), (2, 4))
    >>> pipeline = Pipeline([Input(a, tiler)], [Output(b, tiler)], scheme="duplex")
    >>> pipeline.run(lambda x, y: np.multiply(x, 2, out=y)).tiles
    4
    >>> bool((b == 2 * a).all())
    True
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output],
        scheme: str = "double",
        depth: int | None = None,
        workers: int = 1,
        engine: Engine | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.scheme, self.workers, self.engine = scheme, workers, engine
        self._sources = [port_of(operand.source) for operand in self.inputs]
        self._targets = [port_of(operand.target, writing=True) for operand in self.outputs]
        self.tiles = self._check()
        self.depth = self._chosen_depth(depth, memory_limit)
        self._check_limit(memory_limit)

    def _check(self) -> int:
        """Return the number of tiles that all operands have."""
        if not self.inputs and not self.outputs:
            raise LayoutError("a pipeline needs at least one input or output")
        operands = [(item.tiler, port) for item, port in zip(self.inputs, self._sources, strict=True)]
        operands += [(item.tiler, port) for item, port in zip(self.outputs, self._targets, strict=True)]
        for tiler, port in operands:
            if tiler.space != port.shape:
                raise LayoutError(f"a tiler of the space {tiler.space} cannot cut an array of shape {port.shape}")
        counts = [tiler.count for tiler, _ in operands]
        if len(set(counts)) > 1:
            raise LayoutError(
                f"the operands are cut into {counts} tiles; a pipeline needs the same number of each, such as an input"
                " tiler with tile + halo, overlap = halo and augmentation beside an output tiler of tile"
            )
        for item, port in zip(self.inputs, self._sources, strict=True):
            if item.fill is not None:
                check_fill(item.fill, port.dtype)
        if self.scheme == "direct":
            self._check_direct()
        return counts[0]

    def _check_direct(self) -> None:
        """Raise unless every output takes exactly what its input gives: there is no compute to change it."""
        into = [(item.tiler, port.dtype) for item, port in zip(self.inputs, self._sources, strict=True)]
        out = [(item.tiler, port.dtype) for item, port in zip(self.outputs, self._targets, strict=True)]
        if into != out:
            raise LayoutError(
                f"direct buffering has no compute, so inputs and outputs must be cut alike and of one type, not {into}"
                f" and {out}"
            )

    def _chosen_depth(self, depth: int | None, limit: int | None) -> int:
        if depth is not None or self.scheme not in ("buffered", "direct"):
            return 2 if depth is None else depth
        if limit is None:
            return 3
        return max(1, min(8, self.tiles, limit // max(1, self._bytes_of_depth(1))))

    def _check_limit(self, limit: int | None) -> None:
        if limit is not None and self.buffer_bytes > limit:
            raise TransferError(
                f"{self.scheme} buffering of these tiles takes {self.buffer_bytes} bytes, the limit is {limit};"
                " use smaller tiles (suggest_tile finds them), or a scheme with fewer buffers"
            )

    def schedule(self) -> Schedule:
        """Return every action of a run, as data, before anything runs.

        >>> tiler = Tiler((4,), (2,))
        >>> pipeline = Pipeline([Input(np.zeros(4), tiler)], [Output(np.zeros(4), tiler)], scheme="duplex")
        >>> print(next(iter(pipeline.schedule())))
        start: import 0 -> in
        """
        return Schedule(self.scheme, self.tiles, len(self.inputs), len(self.outputs), self.depth)

    @cached_property
    def buffer_bytes(self) -> int:
        """Return the bytes of all buffers.

        >>> tiler = Tiler((1024,), (128,))
        >>> Pipeline([Input(np.zeros(1024), tiler)], [Output(np.zeros(1024), tiler)]).buffer_bytes
        4096
        """
        return self._bytes_of_depth(self.depth)

    def _bytes_of_depth(self, depth: int) -> int:
        into, out = self._operand_bytes()
        if self.scheme in ("simplex", "direct"):
            return (3 if self.scheme == "simplex" else depth) * sum(self._lanes())
        return (sum(into) + sum(out)) * (1 if self.scheme == "duplex" else depth)

    def _operand_bytes(self) -> tuple[list[int], list[int]]:
        """Return the bytes that the largest tile of each input and of each output takes."""
        into = [_room_bytes(item.tiler, port) for item, port in zip(self.inputs, self._sources, strict=True)]
        out = [_room_bytes(item.tiler, port) for item, port in zip(self.outputs, self._targets, strict=True)]
        return into, out

    def _lanes(self) -> list[int]:
        """Return the bytes of each lane of a simplex buffer, which serves an input and an output in turn."""
        into, out = self._operand_bytes()
        count = max(len(into), len(out))
        return [max((*into[k : k + 1], *out[k : k + 1])) for k in range(count)]

    def _rooms(self) -> tuple[dict[str, list[Room]], dict[str, list[Room]]]:
        """Return the buffers of the inputs and those of the outputs, by name, one for each operand."""
        into, out = self._operand_bytes()
        names = self.schedule().buffers
        if self.scheme in ("simplex", "direct"):
            lanes = {name: [Room(nbytes) for nbytes in self._lanes()] for name in names}
            return lanes, lanes
        return (
            {name: [Room(nbytes) for nbytes in into] for name in names if name.startswith("in")},
            {name: [Room(nbytes) for nbytes in out] for name in names if name.startswith("out")},
        )

    def steps(
        self, trace: Trace | None = None, progress: Progress | None = None, cancel: Switch | None = None
    ) -> Iterator[Step]:
        """Yield the tiles one by one, imported; what is in the outputs when the next is asked for is exported.

        Leaving the loop early, by break or by an exception, ends what is in flight before it goes on; the tile at
        hand is then not exported.

        >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (2,))
        >>> for step in Pipeline([Input(a, tiler)], [Output(b, tiler)]).steps():
        ...     step.outputs[0][...] = step.inputs[0] + 1
        >>> b.tolist()
        [1, 2, 3, 4]
        """
        return _Run(self, trace, progress, cancel).steps()

    def run(
        self,
        compute: Callable[..., Any] | None,
        trace: Trace | None = None,
        progress: Progress | None = None,
        cancel: Switch | None = None,
    ) -> Report:
        """Return what happened when every tile was imported, computed and exported.

        `compute` takes the arrays of the inputs, then those of the outputs, and writes into the latter. `progress` is
        called with the number of tiles whose exports are over, and the number of all tiles. Only a "direct" pipeline
        runs without a compute.

        >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (3,))
        >>> seen = []
        >>> report = Pipeline([Input(a, tiler)], [Output(b, tiler)]).run(
        ...     lambda x, y: np.negative(x, out=y), progress=lambda done, tiles: seen.append(done)
        ... )
        >>> b.tolist(), seen[-1]
        ([0, -1, -2, -3], 2)
        """
        if (compute is None) != (self.scheme == "direct"):
            raise LayoutError(f"{self.scheme} buffering and the compute {compute!r} do not go together; see `scheme`")
        started = perf_counter()
        work = _Run(self, trace, progress, cancel)
        for step in work.steps():
            assert compute is not None  # a direct schedule has no steps
            result = compute(*step.inputs, *step.outputs)
            if result is not None:
                _check_result(result, step)
        return Report(
            self.tiles, perf_counter() - started, work.moved["import"], work.moved["export"], self.buffer_bytes
        )


class _Run:
    """One run of a pipeline: its buffers, and the transfers that are under way."""

    def __init__(
        self, pipeline: Pipeline, trace: Trace | None, progress: Progress | None, cancel: Switch | None
    ) -> None:
        self.pipeline, self.trace, self.progress, self.cancel = pipeline, trace, progress, cancel
        self.under_way: dict[Key, Transfer] = {}
        self.moved: dict[Kind, int] = {"import": 0, "export": 0}
        self.done = 0

    def steps(self) -> Iterator[Step]:
        pipeline = self.pipeline
        engine = pipeline.engine
        owned: Engine | None = None
        if engine is None:
            engine = owned = ThreadEngine(pipeline.workers) if pipeline.workers else InlineEngine()
        self.engine = engine
        self.rooms_in, self.rooms_out = pipeline._rooms()
        self.inputs = [_Tiles(item.tiler) for item in pipeline.inputs]
        self.outputs = [_Tiles(item.tiler) for item in pipeline.outputs]
        at = -1
        try:
            for action in pipeline.schedule().actions():
                kind = type(action)
                if kind is Import or kind is Export:
                    self._start(action)  # type: ignore[arg-type]  # the two differ in name alone
                elif kind is Wait:
                    self._wait(action.retires)  # type: ignore[union-attr]
                else:
                    at = action.tile  # type: ignore[union-attr]
                    step = self._step(action)  # type: ignore[arg-type]
                    began = perf_counter_ns()
                    yield step
                    if self.trace is not None:
                        self.trace.spans.append(Span("compute", at, 0, began, perf_counter_ns()))
                    at = -1
        except Exception as problem:
            _name_tile(problem, at)
            raise
        finally:
            engine.wait(list(self.under_way.values()))
            if owned is not None:
                owned.close()

    def _start(self, action: Import | Export) -> None:
        number, operand = action.tile, action.operand
        work: Callable[[], None]
        if type(action) is Import:
            kind: Kind = "import"
            tiles = self.inputs[operand]
            tile = tiles.last_use(number) if self.pipeline.scheme == "direct" else tiles.tile(number)
            port = self.pipeline._sources[operand]
            work = port.importing(tile, self.rooms_in[action.buffer][operand], self.pipeline.inputs[operand].fill)
        else:
            kind = "export"
            tile = self.outputs[operand].last_use(number)
            port = self.pipeline._targets[operand]
            work = port.exporting(tile, self.rooms_out[action.buffer][operand])
        nbytes = prod(tile.shape) * port.dtype.itemsize
        after = [self.under_way[key] for key in action.after if key in self.under_way] if action.after else ()
        transfer = Transfer(kind, number, work, nbytes, after, operand)
        self.under_way[Key(kind, number, operand)] = transfer
        self.moved[kind] += nbytes
        self.engine.start(transfer)

    def _wait(self, keys: tuple[Key, ...]) -> None:
        self._check_cancel(keys[0].tile)
        transfers = [self.under_way[key] for key in keys]
        if self.trace is None:
            self.engine.wait(transfers)
        else:
            began = perf_counter_ns()
            self.engine.wait(transfers)
            self.trace.spans.append(Span("wait", keys[0].tile, 0, began, perf_counter_ns()))
            for transfer in transfers:
                self.trace.add_transfer(transfer)
        for key in keys:
            del self.under_way[key]
        raise_failures(transfers)
        for key in keys:
            if key.kind == "export" and key.operand == 0:
                self.done += 1
                if self.progress is not None:
                    self.progress(self.done, self.pipeline.tiles)

    def _check_cancel(self, tile: int) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError(f"cancelled at tile {tile} of {self.pipeline.tiles}; {self.done} are exported")

    def _step(self, action: Compute) -> Step:
        number = action.tile
        inputs = [
            room.view(tiles.last_use(number).shape, port.dtype)
            for room, tiles, port in zip(
                self.rooms_in[action.read_buffer], self.inputs, self.pipeline._sources, strict=False
            )  # a simplex buffer has a lane for each operand of the side that has more
        ]
        outputs = [
            room.view(tiles.tile(number).shape, port.dtype)
            for room, tiles, port in zip(
                self.rooms_out[action.write_buffer], self.outputs, self.pipeline._targets, strict=False
            )
        ]
        return Step(number, tuple(inputs), tuple(outputs))


class _Tiles:
    """The tiles of an operand as they come up, each made once for its two uses: schedules go through them in order."""

    def __init__(self, tiler: Tiler) -> None:
        self._coming = enumerate(tiler)
        self._known: dict[int, Tile] = {}

    def tile(self, number: int) -> Tile:
        known = self._known
        while number not in known:
            at, tile = next(self._coming)
            known[at] = tile
        return known[number]

    def last_use(self, number: int) -> Tile:
        tile = self.tile(number)
        del self._known[number]
        return tile


def _room_bytes(tiler: Tiler, port: Port) -> int:
    nbytes = prod(tiler.largest) * port.dtype.itemsize
    return -(-nbytes // CACHE_LINE) * CACHE_LINE


def _name_tile(problem: Exception, tile: int) -> None:
    """Add the tile to an error of a compute, where Python can add notes."""
    if tile >= 0 and hasattr(problem, "add_note"):
        problem.add_note(f"while computing tile {tile}")


def _check_result(result: Any, step: Step) -> None:
    """Raise if a compute returned an array of its own, which would be lost."""
    found = result if isinstance(result, tuple) else (result,)
    for array in found:
        if isinstance(array, np.ndarray) and not any(np.shares_memory(array, out) for out in step.outputs):
            raise TransferError(
                f"the compute of tile {step.tile} returned an array of shape {array.shape}, which would be lost;"
                " write into the output view instead, as in out[...] = result"
            )

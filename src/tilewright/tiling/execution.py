# SPDX-License-Identifier: Apache-2.0
"""A run of a pipeline: it follows the schedule, action by action, and leaves nothing behind whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..errors import TransferError
from ..layout.boxes import Box, empty_box
from .ports import Port, Room
from .schedule import Compute, Export, Import, Key, Kind, Wait
from .trace import Span, Trace
from .transfers import Engine, InlineEngine, ThreadEngine, Transfer, raise_failures

if TYPE_CHECKING:
    from .pipeline import Pipeline

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


class _Lane:
    """A buffer as one operand uses it: its room, the port at the other end, and the tile that is in it now."""

    __slots__ = ("_views", "array", "fill", "port", "room", "tile", "tiles")

    def __init__(self, room: Room, port: Port, tiles: Iterator[Box], fill: Any = None) -> None:
        self.room, self.port, self.tiles, self.fill = room, port, tiles, fill
        self.tile = empty_box(0)
        self.array: Array = room.view((0,), port.dtype)
        self._views: dict[tuple[int, ...], Array] = {}

    def advance(self) -> Array:
        """Return room for the next tile of the operand; every schedule takes them in order."""
        self.tile = tile = next(self.tiles)
        array = self._views.get(tile.shape)
        if array is None:
            array = self._views[tile.shape] = self.room.view(tile.shape, self.port.dtype)
        self.array = array
        return array


class Run:
    """One run of a pipeline: its buffers, and the transfers that are under way.

    >>> from tilewright.tiling import Input, Output, Pipeline, Tiler
    >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (2,))
    >>> run = Run(Pipeline([Input(a, tiler)], [Output(b, tiler)]))
    >>> [step.inputs[0].tolist() for step in run.steps()], run.done
    ([[0, 1], [2, 3]], 2)
    """

    def __init__(
        self,
        pipeline: Pipeline,
        trace: Trace | None = None,
        progress: Progress | None = None,
        cancel: Switch | None = None,
    ) -> None:
        self.pipeline, self.trace, self.progress, self.cancel = pipeline, trace, progress, cancel
        self.under_way: dict[tuple[Kind, int, int], Transfer] = {}  # by the values of a Key
        self.moved: dict[Kind, int] = {"import": 0, "export": 0}
        self.done = 0
        self._computes = pipeline.scheme != "direct"
        rooms_in, rooms_out = pipeline.rooms()
        reading = [(port, iter(item.tiler), item.fill) for port, item in pipeline.reading()]
        writing = [(port, iter(item.tiler)) for port, item in pipeline.writing()]
        # a simplex buffer has a room for each operand of the side that has more: zip takes as many as there are
        self._in = {name: [_Lane(room, *end) for room, end in zip(rooms, reading)] for name, rooms in rooms_in.items()}  # noqa: B905
        self._out = {
            name: [_Lane(room, *end) for room, end in zip(rooms, writing)]  # noqa: B905
            for name, rooms in rooms_out.items()
        }

    def steps(self) -> Generator[Step, None, None]:
        """Yield the tiles one by one; whatever ends the loop, nothing is left under way."""
        engine, workers = self.pipeline.engine, self.pipeline.workers
        owned: Engine | None = None
        if engine is None:
            engine = owned = ThreadEngine(workers) if workers else InlineEngine()
        self.engine = engine
        try:
            for phase in self.pipeline.schedule():
                for action in phase.actions:
                    if type(action) is Import:
                        self._begin_import(action)
                    elif type(action) is Export:
                        self._begin_export(action)
                    elif type(action) is Wait:
                        self._wait(action.retires)
                    elif type(action) is Compute:
                        inputs = tuple([lane.array for lane in self._in[action.read_buffer]])
                        outputs = tuple([lane.advance() for lane in self._out[action.write_buffer]])
                        began = perf_counter_ns()
                        yield Step(action.tile, inputs, outputs)
                        if self.trace is not None:
                            self.trace.spans.append(Span("compute", action.tile, 0, began, perf_counter_ns()))
        finally:
            engine.wait(list(self.under_way.values()))
            if owned is not None:
                owned.close()

    def _begin_import(self, action: Import) -> None:
        lane = self._in[action.buffer][action.operand]
        lane.advance()
        self._begin("import", action, lane.port.importing(lane.tile, lane.room, lane.fill), lane.array.nbytes)

    def _begin_export(self, action: Export) -> None:
        lane = self._out[action.buffer][action.operand]
        if not self._computes:
            lane.advance()
        self._begin("export", action, lane.port.exporting(lane.tile, lane.room), lane.array.nbytes)

    def _begin(self, kind: Kind, action: Import | Export, work: Callable[[], None], nbytes: int) -> None:
        after = [self.under_way[key] for key in action.after if key in self.under_way] if action.after else ()
        transfer = Transfer(kind, action.tile, work, nbytes, after, action.operand)
        self.under_way[kind, action.tile, action.operand] = transfer
        self.moved[kind] += nbytes
        self.engine.start(transfer)

    def _wait(self, keys: tuple[Key, ...]) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError(f"cancelled at tile {keys[0].tile} of {self.pipeline.tiles}; {self.done} are exported")
        transfers = [self.under_way[key] for key in keys]
        began = perf_counter_ns()
        self.engine.wait(transfers)
        if self.trace is not None:
            self.trace.spans.append(Span("wait", keys[0].tile, 0, began, perf_counter_ns()))
            for transfer in transfers:
                self.trace.add_transfer(transfer)
        for key in keys:
            del self.under_way[key]
        raise_failures(transfers)
        for kind, _, operand in keys:
            if kind == "export" and not operand:
                self.done += 1
                if self.progress is not None:
                    self.progress(self.done, self.pipeline.tiles)


def computed(compute: Callable[..., Any], step: Step) -> None:
    """Compute a tile; an error names it, and a result that would be lost is one.

    >>> computed(lambda x: x.fill(1), Step(0, (np.zeros(2),), ()))
    """
    try:
        result = compute(*step.inputs, *step.outputs)
    except Exception as problem:
        name_tile(problem, step.tile)
        raise
    if result is not None:
        check_result(result, step)


def name_tile(problem: Exception, tile: int) -> None:
    """Add the tile to an error of a compute, where Python can add notes.

    >>> name_tile(ValueError("no"), 3)
    """
    if hasattr(problem, "add_note"):
        problem.add_note(f"while computing tile {tile}")


def check_result(result: Any, step: Step) -> None:
    """Raise if a compute returned an array of its own, which would be lost.

    >>> check_result(None, Step(0, (), ()))
    """
    found = result if isinstance(result, tuple) else (result,)
    for array in found:
        if isinstance(array, np.ndarray) and not any(np.shares_memory(array, out) for out in step.outputs):
            raise TransferError(
                f"the compute of tile {step.tile} returned an array of shape {array.shape}, which would be lost;"
                " write into the output view instead, as in out[...] = result"
            )

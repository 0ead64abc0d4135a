# SPDX-License-Identifier: Apache-2.0
"""A run of a pipeline: it follows the schedule, action by action, and leaves nothing behind whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from math import gcd, log
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..errors import TransferError
from ..layout.box import Box, empty_box
from .ports import Port, Room
from .schedule import Compute, Export, Import, Key, Kind, Wait
from .trace import Span, Trace
from .transfers import Engine, InlineEngine, ThreadEngine, Transfer, raise_failures, start_transfer

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
    >>> for step in run.steps():
    ...     step.outputs[0][...] = step.inputs[0] + 1
    >>> b.tolist(), run.done
    ([1, 2, 3, 4], 2)
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
        # tiles that share elements of an output are written in their order: the last export of each such operand
        self._last: dict[int, Transfer | None] = {
            operand: None for operand, (_, item) in enumerate(pipeline.writing()) if any(item.tiler.overlap)
        }
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
                        step = Step(action.tile, inputs, outputs)
                        marks = mark_outputs(step) if action.tile == 0 else None
                        began = perf_counter_ns()
                        yield step
                        if marks is not None:
                            check_written(step, marks)
                        if self.trace is not None:
                            self.trace.spans.append(Span("compute", action.tile, 0, began, perf_counter_ns()))
        finally:
            try:
                engine.wait(list(self.under_way.values()))
            finally:
                for transfer in self.under_way.values():  # what an engine has dropped must not run later on
                    transfer.abandon(TransferError("the run is over"))
                    transfer.join()
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
        after = [self.under_way[key] for key in action.after if key in self.under_way] if action.after else []
        transfer = Transfer(kind, action.tile, work, nbytes, after, action.operand)
        if kind == "export" and action.operand in self._last:
            before = self._last[action.operand]
            if before is not None:
                after.append(before)
            self._last[action.operand] = transfer
        self.under_way[kind, action.tile, action.operand] = transfer
        self.moved[kind] += nbytes
        start_transfer(self.engine, transfer)

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


class Gate:
    """What lets tiles out until it is closed: `with gate:` raises then, and `close` waits for those under way.

    A thread cannot be stopped in the middle of a compute. What it has computed need not be written, though.

    >>> gate = Gate()
    >>> with gate:
    ...     print("written")
    written
    >>> gate.close()
    >>> with gate:
    ...     print("written")
    Traceback (most recent call last):
        ...
    tilewright.tiling.execution.CancelledError: the run was stopped, and nothing more is written
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    def __reduce__(self) -> tuple[type[Gate], tuple[()]]:
        return Gate, ()  # in another process it cannot be closed from here

    def __enter__(self) -> None:
        with self._changed:
            if self._closed:
                raise CancelledError("the run was stopped, and nothing more is written")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let nothing through from now on, and return when nothing is inside."""
        with self._changed:
            self._closed = True
            while self._inside:
                self._changed.wait()


def run_compute(compute: Callable[..., Any], step: Step, check: bool = False) -> None:
    """Compute a tile; an error names it, and a result that would be lost is one.

    `check`, for the first tile of a run, raises if the compute leaves elements of an output unwritten.

    >>> run_compute(lambda x: x.fill(1), Step(0, (np.zeros(2),), ()))
    """
    marks = mark_outputs(step) if check else []
    try:
        result = compute(*step.inputs, *step.outputs)
    except Exception as problem:
        name_tile(problem, step.tile)
        raise
    if result is not None:
        check_result(result, step)
    if check:
        check_written(step, marks)


def name_tile(problem: Exception, tile: int) -> None:
    """Add the tile to an error of a compute, where Python can add notes.

    >>> name_tile(ValueError("no"), 3)
    """
    if hasattr(problem, "add_note"):
        problem.add_note(f"while computing tile {tile}")


def check_result(result: Any, step: Step) -> None:
    """Raise if a compute returned something of its own, which would be lost; NumPy's functions return the output.

    >>> check_result(None, Step(0, (), ()))
    """
    for value in result if isinstance(result, (tuple, list)) else (result,):
        if value is None or any(_is_same(value, out) for out in step.outputs):
            continue
        shown = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        remedy = (
            "write into the output view instead, as in out[...] = result"
            if step.outputs
            else "there is no output: append it to a list, say"
        )
        raise TransferError(f"the compute of tile {step.tile} returned {shown}, which would be lost; {remedy}")


def _is_same(value: Any, out: Array) -> bool:
    """Return whether a value is an output, or a view of all of it as it is."""
    if value is out:
        return True
    return isinstance(value, np.ndarray) and value.__array_interface__ == out.__array_interface__


def mark_outputs(step: Step) -> list[Array]:
    """Return random bytes for each output, which are in it now: an element that still has its own was not written.

    >>> step = Step(0, (), (np.zeros(4),))
    >>> bool((mark_outputs(step)[0] == step.outputs[0].view(np.uint8)).all())
    True
    """
    random = np.random.SFC64()  # the fastest: 0.3 ms for 1 MiB
    marks = [random.random_raw(-(-out.nbytes // 8)).view(np.uint8)[: out.nbytes] for out in step.outputs]
    for mark, out in zip(marks, step.outputs, strict=True):
        out.reshape(-1).view(np.uint8)[...] = mark
    return marks


def check_written(step: Step, marks: list[Array]) -> None:
    """Raise if more elements of an output have their random bytes than chance allows: the compute left them unwritten.

    Small elements meet them by chance, one byte once in 256. Chernoff's bound says how likely as many are.

    >>> step = Step(0, (), (np.zeros(4),))
    >>> check_written(step, mark_outputs(step))
    Traceback (most recent call last):
        ...
    tilewright.errors.TransferError: the compute left 4 of 4 elements of output 0 unwritten in tile 0, ...
    """
    for number, (mark, out) in enumerate(zip(marks, step.outputs, strict=True)):
        size = out.dtype.itemsize
        word = f"u{gcd(size, 8)}"
        same = out.reshape(-1).view(word) == mark.view(word)
        if size > same.itemsize * gcd(size, 8):
            same = same.reshape(out.size, -1).all(axis=1)
        found = np.count_nonzero(same)
        expected = out.size / 256.0**size
        if found > expected and found - expected - found * log(found / expected) < _CHANCE:
            raise TransferError(
                f"the compute left {found} of {out.size} elements of output {number} unwritten in tile {step.tile},"
                " which would have whatever was in memory; write all of them, as in out[...] = result, or out[...] = 0"
                " first"
            )


_CHANCE = log(1e-7)
"""The logarithm of how likely it is that a compute is taken for one that leaves elements unwritten."""

# SPDX-License-Identifier: Apache-2.0
"""A run of a pipeline: it follows the schedule, action by action, and leaves nothing behind whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..errors import TransferError
from .schedule import Compute, Export, Import, Key, Kind, Wait
from .tile import Tile
from .tiler import Tiler
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


class Run:
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


def _name_tile(problem: Exception, tile: int) -> None:
    """Add the tile to an error of a compute, where Python can add notes."""
    if tile >= 0 and hasattr(problem, "add_note"):
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

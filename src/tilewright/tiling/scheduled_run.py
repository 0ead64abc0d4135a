# SPDX-License-Identifier: Apache-2.0
"""`ScheduledRun`: runs a pipeline by its schedule, action by action, and leaves no transfer running."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from time import perf_counter_ns
from typing import Any

from ..errors import TransferError
from ..layout.box import Box, empty_box
from .compute_step import Array, CancelFlag, CancelledError, ProgressCallback, Step, check_written, mark_outputs
from .endpoints import Endpoint, TileBuffer, Work
from .pipeline_spec import PipelineSpec
from .schedule import Compute, Export, Import, TransferKey, TransferKind, Wait
from .trace import Trace, TraceSpan
from .transfers import InlineQueue, ThreadQueue, Transfer, TransferQueue, raise_failures, start_transfer


class _OperandBuffer:
    """A buffer of one operand: its memory, its endpoint, and the tile that is in it now."""

    __slots__ = ("_views", "array", "buffer", "endpoint", "fill", "tile", "tiles")

    def __init__(self, buffer: TileBuffer, endpoint: Endpoint, tiles: Iterator[Box], fill: Any = None) -> None:
        self.buffer, self.endpoint, self.tiles, self.fill = buffer, endpoint, tiles, fill
        self.tile = empty_box(0)
        self.array: Array = buffer.view((0,), endpoint.dtype)
        self._views: dict[tuple[int, ...], Array] = {}

    def advance(self) -> Array:
        """Go on to the operand's next tile, and return the array for it; all schedules take tiles in order."""
        self.tile = tile = next(self.tiles)
        array = self._views.get(tile.shape)
        if array is None:
            array = self._views[tile.shape] = self.buffer.view(tile.shape, self.endpoint.dtype)
        self.array = array
        return array

    def plan_import(self) -> Work:
        """Return the work that imports the current tile."""
        return self.endpoint.plan_import(self.tile, self.buffer, self.fill)

    def plan_export(self) -> Work:
        """Return the work that exports the current tile."""
        return self.endpoint.plan_export(self.tile, self.buffer)


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
                    self._start("import", action, operand.plan_import(), operand.array.nbytes)
                elif type(action) is Export:
                    operand = self._outputs[action.buffer][action.operand]
                    if not self._has_compute:
                        operand.advance()
                    self._start("export", action, operand.plan_export(), operand.array.nbytes)
                elif type(action) is Wait:
                    self._wait(action.retires)
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
                for transfer in self.running.values():  # what a queue has dropped must not run later
                    transfer.abandon(TransferError("the run is over"))
                    transfer.join()
                if own_queue is not None:
                    own_queue.close()

    def _start(self, kind: TransferKind, action: Import | Export, work: Work, nbytes: int) -> None:
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

    def _wait(self, keys: tuple[TransferKey, ...]) -> None:
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

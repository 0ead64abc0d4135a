# SPDX-License-Identifier: Apache-2.0
"""`Pipeline`: tiles imported, computed and exported at the same time, by a schedule that is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from math import prod
from time import perf_counter
from typing import Any

from ..errors import LayoutError
from .compute_step import CancelFlag, CancelledError, ProgressCallback, Step, run_compute
from .endpoints import MemoryEndpoint
from .operands import Input, Output
from .pipeline_spec import PipelineSpec
from .scheduled_run import ScheduledRun
from .store_location import share_bytes
from .tile_copies import direct_copy
from .tile_kernel import TileKernel
from .tiler import Tiler
from .trace import RunReport, Trace
from .transfers import TransferQueue
from .workers import TileWorkers, choose_worker_count

BAND_BYTES = 64 << 20
"""Bytes of a direct copy: much more than is copied while threads start, and few enough to cancel in between."""


class Pipeline(PipelineSpec):
    """Inputs and outputs cut into equally many tiles, and a scheme that transfers and computes them.

    Args:
        inputs: the operands to read.
        outputs: the operands to write.
        scheme: "simplex" (3 buffers), "duplex" (2), "double" (4), "buffered" (2 x depth), or "direct" (no compute).
        depth: the buffers per operand of "buffered" and "direct".
        workers: threads beside the caller. They run transfers; where tiles come from memory or files, each takes its
            tiles from import through compute to export (see `workers.py`). 0 uses no threads.
        queue: what runs the transfers, in place of threads.
        memory_limit: the most bytes that buffers may take; "buffered" chooses its depth by it.

    >>> import numpy as np
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
        queue: TransferQueue | None = None,
        memory_limit: int | None = None,
    ) -> None:
        super().__init__(inputs, outputs, scheme, depth, workers, queue, memory_limit)

    def steps(
        self,
        trace: Trace | None = None,
        progress: ProgressCallback | None = None,
        cancel: CancelFlag | None = None,
    ) -> Iterator[Step]:
        """Yield the tiles one by one, imported; a tile's outputs are exported when the next tile is requested.

        Leaving the loop early, by break or by an exception, waits for started transfers; the current tile is then not
        exported. `trace`, `progress` and `cancel` are those of `run`.

        >>> import numpy as np
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
    ) -> RunReport:
        """Import, compute and export every tile, and return a report.

        Args:
            compute: a function of the input arrays, then the output arrays, which it writes into. It is called for one
                tile at a time, in order, though not always by the same thread. None copies the tiles.
            trace: records when each action began and ended.
            progress: called with the number of exported tiles, and the number of all tiles.
            cancel: stops the run when it is set.
            concurrent: allow calling the compute for several tiles at once, where that is faster.

        >>> import numpy as np
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
            return RunReport(self.tiles, perf_counter() - started, copied, copied, 0)
        direct = self.scheme == "direct"  # a tile is exported from the buffer it was imported into
        if count := choose_worker_count(self, concurrent or direct):
            function = _pass_tiles if direct else compute or _copy_tiles
            TileWorkers(self, function, count, concurrent or direct, trace, progress, cancel).run()
            read = sum([item.tiler.volume * endpoint.dtype.itemsize for endpoint, item in self.sources])
            written = sum([item.tiler.volume * endpoint.dtype.itemsize for endpoint, item in self.targets])
            return RunReport(self.tiles, perf_counter() - started, read, written, self.buffer_bytes)
        run = ScheduledRun(self, trace, progress, cancel)
        with closing(run.steps()) as steps:
            for step in steps:
                run_compute(compute or _copy_tiles, step)
        seconds = perf_counter() - started
        return RunReport(self.tiles, seconds, run.nbytes["import"], run.nbytes["export"], self.buffer_bytes)

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
            for band in _bands(item.tiler, source.dtype.itemsize):
                if cancel is not None and cancel.is_set():
                    raise CancelledError(f"cancelled after {copied} of {total} bytes")
                direct_copy(source.tensor.tile(band), target.tensor.tile(band), threads)()
                copied += band.size * source.dtype.itemsize
                if progress is not None:
                    progress(self.tiles * copied // total, self.tiles)
        return copied

    def kernel(
        self, compute: Any, engine: str | None = None, each: str = "element", functions: str = "", threads: int = 256
    ) -> TileKernel:
        """Return this pipeline as one device kernel with a compute in C; its `run` does the work.

        Args:
            compute: an expression of `in0`, `in1`, ... (one per output), or statements that assign to `out0`, ...; they
                are computed for every element of the first output's tile. `in0(i0 + 1, i1)` is any element of an
                input's tile, relative to the indices `i0`, `i1` of the current element; `x0`, `x1` are its coordinates
                in the array, `tile` is the number of the tile.
            engine: "opencl" or "cuda"; by default that of an operand's memory, or OpenCL.
            each: "element", or "tile": the statements then run once per tile, by all threads, and store with
                `set_out0(value, i0, i1)`.
            functions: C functions that the compute may call.
            threads: threads of a work-group.

        >>> import numpy as np
        >>> a, b, tiler = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32), Tiler((8, 8), (4, 4))
        >>> kernel = Pipeline([Input(a, tiler)], [Output(b, tiler)]).kernel("sqrt(in0)", engine="opencl")
        >>> "async_work_group_copy" in kernel.source
        True
        """
        return TileKernel(self, compute, engine, each, functions, threads)


def _bands(tiler: Tiler, itemsize: int) -> Tiler:
    """Return an array cut into bands of whole rows of tiles, large enough to be worth starting threads."""
    rest = [max(1, n) for n in tiler.space[1:]]
    row = tiler.tile[0] * prod(rest) * itemsize
    return Tiler(tiler.space, (tiler.tile[0] * -(-BAND_BYTES // max(1, row)), *rest))


def _copy_tiles(*arrays: Any) -> None:
    """Copy each input to its output: the compute of a pipeline that has none."""
    half = len(arrays) // 2
    for source, target in zip(arrays[:half], arrays[half:], strict=True):
        target[...] = source


def _pass_tiles(*arrays: Any) -> None:
    """Do nothing: input and output are the same buffer."""

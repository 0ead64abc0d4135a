# SPDX-License-Identifier: Apache-2.0
"""Pipelines: tiles imported, computed and exported at the same time, by a schedule that is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from math import prod
from time import perf_counter
from typing import Any, TypeVar

from ..copying.host_memory import CACHE_LINE
from ..errors import LayoutError, TransferError
from ..showing import Shown
from .execution import Progress, Run, Step, Switch, run_compute
from .fills import REPEATING, check_fill
from .kernels import TileKernel
from .lanes import Lanes, lanes_for
from .operands import Input, Output, port_of
from .ports import Port, Room
from .schedule import Schedule
from .sharing import are_one, check_targets_apart, share_storage
from .straight import can_go_straight, copy_straight
from .tiler import Tiler
from .trace import Trace
from .transfers import Engine

Operand = TypeVar("Operand", Input, Output)


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


class Pipeline(Shown):
    """Inputs and outputs cut into equally many tiles, a scheme to move them, and the buffers that it needs.

    `scheme` is "simplex" (3 buffers), "duplex" (2), "double" (4) or "buffered" with a `depth` (2 x depth); "direct"
    has no compute. `workers` threads work beside the caller: they transfer, and where tiles come from memory or files
    they carry their own all the way, the compute included (see `lanes`). 0 does without threads. `memory_limit` bounds
    the buffers, and lets "buffered" choose its depth.

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
        engine: Engine | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.inputs, self.outputs = _operands(inputs, Input), _operands(outputs, Output)
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
            self._check_copy()
        check_targets_apart(self._targets)
        self._check_in_place()
        return counts[0]

    def _check_in_place(self) -> None:
        """Raise if an output overwrites what an input still has to read; the same tiles in place are safe."""
        for source, item in self.reading():
            for target, other in self.writing():
                meets = any(item.tiler.overlap) or (item.fill in REPEATING and any(map(any, item.tiler.augmentation)))
                same_tiles = item.tiler == other.tiler and not (item.tiler.count > 1 and meets)
                if share_storage(source, target) and not (same_tiles and are_one(source, target)):
                    raise TransferError(
                        "a source and a target share memory but not their tiles, so later tiles would read what earlier"
                        " ones have written; write to another array"
                    )

    def _check_copy(self) -> None:
        """Raise unless every output takes exactly what its input gives: there is no compute to change it."""
        into = [(item.tiler, port.dtype) for item, port in zip(self.inputs, self._sources, strict=True)]
        out = [(item.tiler, port.dtype) for item, port in zip(self.outputs, self._targets, strict=True)]
        if into != out:
            raise LayoutError(
                f"without a compute, inputs and outputs must be cut alike and of one type, not {into} and {out}"
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

        >>> import numpy as np
        >>> tiler = Tiler((4,), (2,))
        >>> pipeline = Pipeline([Input(np.zeros(4), tiler)], [Output(np.zeros(4), tiler)], scheme="duplex")
        >>> print(next(iter(pipeline.schedule())))
        start: import 0 -> in
        """
        return Schedule(self.scheme, self.tiles, len(self.inputs), len(self.outputs), self.depth)

    @cached_property
    def buffer_bytes(self) -> int:
        """Return the bytes of all buffers.

        >>> import numpy as np
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

    def rooms(self) -> tuple[dict[str, list[Room]], dict[str, list[Room]]]:
        """Return new buffers of the inputs and of the outputs, by name, one for each operand.

        >>> import numpy as np
        >>> tiler = Tiler((4,), (2,))
        >>> sorted(Pipeline([Input(np.zeros(4), tiler)], [Output(np.zeros(4), tiler)]).rooms()[0])
        ['in0', 'in1']
        """
        into, out = self._operand_bytes()
        names = self.schedule().buffers
        if self.scheme in ("simplex", "direct"):
            lanes = {name: [Room(nbytes) for nbytes in self._lanes()] for name in names}
            return lanes, lanes
        return (
            {name: [Room(nbytes) for nbytes in into] for name in names if name.startswith("in")},
            {name: [Room(nbytes) for nbytes in out] for name in names if name.startswith("out")},
        )

    def reading(self) -> Iterable[tuple[Port, Input]]:
        """Return the inputs with their ports."""
        return zip(self._sources, self.inputs, strict=True)

    def writing(self) -> Iterable[tuple[Port, Output]]:
        """Return the outputs with their ports."""
        return zip(self._targets, self.outputs, strict=True)

    def steps(
        self, trace: Trace | None = None, progress: Progress | None = None, cancel: Switch | None = None
    ) -> Iterator[Step]:
        """Yield the tiles one by one, imported; what is in the outputs when the next is asked for is exported.

        Leaving the loop early, by break or by an exception, ends what is in flight before it goes on; the tile at
        hand is then not exported.

        >>> import numpy as np
        >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (2,))
        >>> for step in Pipeline([Input(a, tiler)], [Output(b, tiler)]).steps():
        ...     step.outputs[0][...] = step.inputs[0] + 1
        >>> b.tolist()
        [1, 2, 3, 4]
        """
        return Run(self, trace, progress, cancel).steps()

    def run(
        self,
        compute: Callable[..., Any] | None,
        trace: Trace | None = None,
        progress: Progress | None = None,
        cancel: Switch | None = None,
        concurrent: bool = False,
    ) -> Report:
        """Return what happened when every tile was imported, computed and exported.

        `compute` takes the arrays of the inputs, then those of the outputs, and writes into the latter. It is called
        for one tile at a time, in order, though not always by the same thread; `concurrent` allows it to be called for
        several at once, where that is faster. Without a compute, tiles are copied, between memories straight from
        source to target. `progress` is called with the number of tiles whose exports are over, and that of all tiles.

        >>> import numpy as np
        >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (3,))
        >>> seen = []
        >>> report = Pipeline([Input(a, tiler)], [Output(b, tiler)]).run(
        ...     lambda x, y: np.negative(x, out=y), progress=lambda done, tiles: seen.append(done)
        ... )
        >>> b.tolist(), seen[-1]
        ([0, -1, -2, -3], 2)
        """
        if compute is None:
            self._check_copy()
        elif self.scheme == "direct":
            raise LayoutError(f"direct buffering has no compute, and {compute!r} is one; use another scheme")
        started = perf_counter()
        tilers = [item.tiler for item in self.inputs]
        if compute is None and self.engine is None and trace is None:
            ends = (self._sources, self._targets, tilers)
            if can_go_straight(*ends):
                moved = copy_straight(*ends, max(1, self.workers), progress, cancel)
                return Report(self.tiles, perf_counter() - started, moved, moved, 0)
        direct = self.scheme == "direct"  # a tile leaves from the buffer in which it arrived, and waits for no other
        if count := lanes_for(self, concurrent or direct):
            work = _leave_tiles if direct else compute or _copy_tiles
            Lanes(self, work, count, concurrent or direct, trace, progress, cancel).run()
            into = sum([item.tiler.volume * port.dtype.itemsize for port, item in self.reading()])
            out = sum([item.tiler.volume * port.dtype.itemsize for port, item in self.writing()])
            return Report(self.tiles, perf_counter() - started, into, out, self.buffer_bytes)
        run = Run(self, trace, progress, cancel)
        with closing(run.steps()) as steps:
            for step in steps:
                run_compute(compute or _copy_tiles, step)
        return Report(self.tiles, perf_counter() - started, run.moved["import"], run.moved["export"], self.buffer_bytes)

    def kernel(
        self, compute: Any, engine: str | None = None, each: str = "element", functions: str = "", threads: int = 256
    ) -> TileKernel:
        """Return this pipeline as one kernel of a device, with a compute in C; its `run` does the work.

        `compute` is an expression of `in0`, `in1`, ... (several outputs: one expression each), or statements that
        assign to `out0`, ...; they are computed for every element of the first output's tile. `in0(i0 + 1, i1)` is
        any element of the tile of an input, at the index `i0`, `i1` of the element at hand moved on; `x0`, `x1` is its
        place in the whole, `tile` the number of the tile. With `each="tile"` statements run once a tile, by all
        threads, and store with `set_out0(value, i0, i1)`. `functions` are C functions that the compute may call. The
        engine, "opencl" or "cuda", is by default that of an operand's memory, or OpenCL.

        >>> import numpy as np
        >>> a, b, tiler = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32), Tiler((8, 8), (4, 4))
        >>> kernel = Pipeline([Input(a, tiler)], [Output(b, tiler)]).kernel("sqrt(in0)", engine="opencl")
        >>> "async_work_group_copy" in kernel.source
        True
        """
        return TileKernel(self, compute, engine, each, functions, threads)


def _operands(given: Sequence[Operand], kind: type[Operand]) -> tuple[Operand, ...]:
    """Return the inputs or outputs of a pipeline; an array alone says nothing of its tiles."""
    listed = given if isinstance(given, (list, tuple)) else [given]
    for each in listed:
        if not isinstance(each, kind):
            name = kind.__name__
            raise TypeError(
                f"a pipeline takes a list of {name}, each an array and its tiler, got {type(each).__name__};"
                f" write [{name}(array, Tiler(array.shape, tile))]"
            )
    return tuple(listed)


def _copy_tiles(*arrays: Any) -> None:
    """Copy each input to its output: what a pipeline does without a compute."""
    half = len(arrays) // 2
    for source, target in zip(arrays[:half], arrays[half:], strict=True):
        target[...] = source


def _leave_tiles(*arrays: Any) -> None:
    """Do nothing to tiles that leave as they came."""


def _room_bytes(tiler: Tiler, port: Port) -> int:
    nbytes = prod(tiler.largest) * port.dtype.itemsize
    return -(-nbytes // CACHE_LINE) * CACHE_LINE

# SPDX-License-Identifier: Apache-2.0
"""The compute of a tile: running a function on it, checking its output, stopping it; and computes by name.

`Step` holds the arrays of a tile. `run_compute` calls the function and rejects results that would be lost. `WriteGate`
keeps a computed tile from being written after its run has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd, log, prod
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .._integers import round_up
from ..copying import CACHE_LINE
from ..display import Drawable
from ..errors import LayoutError, TransferError
from .endpoints import Endpoint, Input, Output, open_endpoint
from .schedule import Schedule, buffer_bytes, shared_buffer_sizes
from .stores import are_same_array, share_bytes, validate_separate_targets
from .tile_copies import REPEATING_FILLS, TileBuffer, validate_fill
from .tiler import Tiler
from .transfers import TransferQueue

Array = np.ndarray[Any, Any]

ProgressCallback = Callable[[int, int], None]
"""Called with the number of finished tiles or tasks, and the number of all."""

_LOG_FALSE_ALARM = log(1e-7)
"""The logarithm of the probability that a complete output is reported as incomplete."""


class CancelFlag(Protocol):
    """Anything with `is_set`, such as a `threading.Event`: setting it stops a run.

    >>> import threading
    >>> threading.Event().is_set()
    False
    """

    def is_set(self) -> bool:
        """Return whether the run should stop."""


class CancelledError(TransferError):
    """A run that was stopped on request, after all started transfers were over."""


class Step(NamedTuple):
    """The compute of one tile: its number, the `inputs` to read and the `outputs` to write.

    >>> Step(0, (), ()).tile
    0
    """

    tile: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


class WriteGate:
    """Allows writes until it is closed: `with gate:` raises then, and `close` waits for running writes.

    A thread cannot be stopped in the middle of a compute, but its result need not be written.

    >>> gate = WriteGate()
    >>> with gate:
    ...     print("written")
    written
    >>> gate.close()
    >>> with gate:
    ...     print("written")
    Traceback (most recent call last):
        ...
    tilewright.tiling.tile_compute.CancelledError: the run was stopped, and nothing more is written
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._writers = 0
        self._closed = False

    def __reduce__(self) -> tuple[type[WriteGate], tuple[()]]:
        return WriteGate, ()  # a copy in another process cannot be closed from here

    def __enter__(self) -> None:
        with self._changed:
            if self._closed:
                raise CancelledError("the run was stopped, and nothing more is written")
            self._writers += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._writers -= 1
            self._changed.notify_all()

    def close(self, timeout: float | None = None) -> None:
        """Reject further writes, and return when none is running, or after `timeout` seconds."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._writers, timeout)


class StepCompute:
    """A compute that is given the step, with the number of its tile, and not only the arrays."""

    def run_step(self, step: Step) -> None:
        """Compute a tile."""
        raise NotImplementedError

    def __call__(self, *arrays: Array) -> None:
        """Raise: without a step there is no number of the tile."""
        raise TypeError(f"{type(self).__name__} is run by steps")


def run_compute(compute: Callable[..., Any], step: Step, check: bool = False) -> None:
    """Call a compute for a tile; an error gets a note with the tile, and a returned result is an error.

    `check`, for the first tile of a run, raises if the compute leaves elements of an output unwritten.

    >>> run_compute(lambda x: x.fill(1), Step(0, (np.zeros(2),), ()))
    """
    marks = mark_outputs(step) if check else []
    try:
        if isinstance(compute, StepCompute):
            compute.run_step(step)
            result = None
        else:
            result = compute(*step.inputs, *step.outputs)
    except Exception as problem:
        if hasattr(problem, "add_note"):  # Python 3.11
            problem.add_note(f"while computing tile {step.tile}")
        raise
    if result is not None:
        _reject_result(result, step)
    if check:
        check_written(step, marks)


def _reject_result(result: object, step: Step) -> None:
    """Raise if a compute returned an array of its own; NumPy's functions return the output."""
    for value in result if isinstance(result, (tuple, list)) else (result,):
        if value is None or any(_is_same_array(value, out) for out in step.outputs):
            continue
        returned = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        remedy = "write into the output view, as in out[...] = result" if step.outputs else "append it to a list"
        raise TransferError(f"the compute of tile {step.tile} returned {returned}, which would be lost; {remedy}")


def _is_same_array(value: object, out: Array) -> bool:
    """Return whether a value is an output, or a view of all of it."""
    if value is out:
        return True
    return isinstance(value, np.ndarray) and value.__array_interface__ == out.__array_interface__


def mark_outputs(step: Step) -> list[Array]:
    """Fill each output with random bytes and return them: an element that still has its own was not written.

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
    """Raise if more elements of an output have their random bytes than chance allows: they were not written.

    A one-byte element has its random byte by chance once in 256. Chernoff's bound limits the count.

    >>> step = Step(0, (), (np.zeros(4),))
    >>> check_written(step, mark_outputs(step))
    Traceback (most recent call last):
        ...
    tilewright.errors.TransferError: the compute left 4 of 4 elements of output 0 unwritten in tile 0; ...
    """
    for number, (mark, out) in enumerate(zip(marks, step.outputs, strict=True)):
        size = out.dtype.itemsize
        word = f"u{gcd(size, 8)}"
        unchanged = out.reshape(-1).view(word) == mark.view(word)
        if size > unchanged.itemsize * gcd(size, 8):
            unchanged = unchanged.reshape(out.size, -1).all(axis=1)
        count = np.count_nonzero(unchanged)
        expected = out.size / 256.0**size
        if count > expected and count - expected - count * log(count / expected) < _LOG_FALSE_ALARM:
            raise TransferError(
                f"the compute left {count} of {out.size} elements of output {number} unwritten in tile {step.tile};"
                " write all of them, as in out[...] = result, or start with out[...] = 0"
            )


@dataclass(frozen=True, slots=True)
class NamedCompute:
    """A compute with a name: its function, its number of inputs, its halo, and a summary.

    >>> COMPUTES["cross"].halo
    1
    """

    function: Callable[..., None] | None
    inputs: int
    halo: int
    summary: str


def scale(x: Array, out: Array, factor: float = 2.0) -> None:
    """Write the elements times a factor.

    >>> out = np.zeros(3)
    >>> scale(np.arange(3.0), out, factor=10)
    >>> out.tolist()
    [0.0, 10.0, 20.0]
    """
    np.multiply(x, factor, out=out, dtype=_compute_dtype(x, out), casting="unsafe")


def shift(x: Array, out: Array, amount: float = 1.0) -> None:
    """Write the elements plus an amount.

    >>> out = np.zeros(3)
    >>> shift(np.arange(3.0), out, amount=10)
    >>> out.tolist()
    [10.0, 11.0, 12.0]
    """
    np.add(x, amount, out=out, dtype=_compute_dtype(x, out), casting="unsafe")


def clip(x: Array, out: Array, low: float = 0.0, high: float = 1.0) -> None:
    """Write the elements, none below low and none above high.

    >>> out = np.zeros(3)
    >>> clip(np.arange(3.0), out)
    >>> out.tolist()
    [0.0, 1.0, 1.0]
    """
    np.clip(x, low, high, out=out, casting="unsafe")


def absolute(x: Array, out: Array) -> None:
    """Write the elements without their signs.

    >>> out = np.zeros(2)
    >>> absolute(np.array([-2.0, 3.0]), out)
    >>> out.tolist()
    [2.0, 3.0]
    """
    np.absolute(x, out=out, casting="unsafe")


def add(x: Array, y: Array, out: Array) -> None:
    """Write the sum of two inputs.

    >>> out = np.zeros(2)
    >>> add(np.ones(2), np.ones(2), out)
    >>> out.tolist()
    [2.0, 2.0]
    """
    np.add(x, y, out=out, dtype=_compute_dtype(x, out), casting="unsafe")


def subtract(x: Array, y: Array, out: Array) -> None:
    """Write the first input less the second.

    >>> out = np.zeros(2)
    >>> subtract(np.ones(2), np.ones(2), out)
    >>> out.tolist()
    [0.0, 0.0]
    """
    np.subtract(x, y, out=out, dtype=_compute_dtype(x, out), casting="unsafe")


def cross(x: Array, out: Array) -> None:
    """Write the sum of every element and its nearest neighbours along each axis.

    >>> out = np.zeros((1, 1))
    >>> cross(np.ones((3, 3)), out)
    >>> out.tolist()
    [[5.0]]
    """
    inner = (slice(1, -1),) * x.ndim
    total = x[inner].astype(out.dtype)
    for axis in range(x.ndim):
        for shifted in (slice(None, -2), slice(2, None)):
            total += x[(*inner[:axis], shifted, *inner[axis + 1 :])].astype(out.dtype, copy=False)
    out[...] = total


def box(x: Array, out: Array) -> None:
    """Write the mean of every element and all its neighbours, corners included.

    >>> out = np.zeros((1, 1))
    >>> box(np.arange(9.0).reshape(3, 3), out)
    >>> out.tolist()
    [[4.0]]
    """
    total = np.zeros(out.shape, np.float64)
    for steps in product(range(3), repeat=x.ndim):
        total += x[tuple([slice(k, k + n) for k, n in zip(steps, out.shape, strict=True)])]
    np.divide(total, 3**x.ndim, out=out, casting="unsafe")


def _compute_dtype(x: Array, out: Array) -> np.dtype[Any] | None:
    """Return the type to compute in: at least as precise as a floating-point output."""
    return np.result_type(x, out) if out.dtype.kind == "f" else None


COMPUTES = {
    "copy": NamedCompute(None, 1, 0, "copy the source"),
    "scale": NamedCompute(scale, 1, 0, "multiply by factor (2)"),
    "shift": NamedCompute(shift, 1, 0, "add amount (1)"),
    "clip": NamedCompute(clip, 1, 0, "keep between low (0) and high (1)"),
    "absolute": NamedCompute(absolute, 1, 0, "drop the signs"),
    "add": NamedCompute(add, 2, 0, "add two sources"),
    "subtract": NamedCompute(subtract, 2, 0, "subtract the second source"),
    "cross": NamedCompute(cross, 1, 1, "sum with the nearest neighbours"),
    "box": NamedCompute(box, 1, 1, "mean with all neighbours"),
}
"""Computes by name, for the command line."""


# `PipelineSpec`: the operands, scheme and buffers of a pipeline, validated; running it is `Pipeline`'s part.

Operand = TypeVar("Operand", Input, Output)
Buffers = dict[str, list[TileBuffer]]
"""Buffers by their name in the schedule, one per operand."""


class PipelineSpec(Drawable):
    """Inputs and outputs that are cut into the same number of tiles, the scheme, and the buffers it needs.

    Arguments as in `Pipeline`.

    >>> import numpy as np
    >>> tiler = Tiler((1024,), (128,))
    >>> PipelineSpec([Input(np.zeros(1024), tiler)], [Output(np.zeros(1024), tiler)]).buffer_bytes
    4096
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
        self.inputs, self.outputs = _validate_operands(inputs, Input), _validate_operands(outputs, Output)
        self.scheme, self.workers, self.queue = scheme, workers, queue
        self.sources: list[tuple[Endpoint, Input]] = [(open_endpoint(item.source), item) for item in self.inputs]
        self.targets: list[tuple[Endpoint, Output]] = [
            (open_endpoint(item.target, writing=True), item) for item in self.outputs
        ]
        self.memory_limit = memory_limit
        self.tiles = self._validate_tiles()
        self.depth = self._choose_depth(depth, memory_limit)
        if memory_limit is not None and self.buffer_bytes > memory_limit:
            raise TransferError(
                f"{self.scheme} buffering of these tiles takes {self.buffer_bytes} bytes, the limit is {memory_limit};"
                " use smaller tiles, or a scheme with fewer buffers"
            )

    def _validate_tiles(self) -> int:
        """Return the number of tiles of every operand; raise if they differ or overwrite each other."""
        if not self.inputs and not self.outputs:
            raise LayoutError("a pipeline needs at least one input or output")
        operands = [(endpoint, item.tiler) for endpoint, item in self.sources]
        operands += [(endpoint, item.tiler) for endpoint, item in self.targets]
        for endpoint, tiler in operands:
            if tiler.space != endpoint.shape:
                raise LayoutError(f"the tiler has space {tiler.space}, but the array has shape {endpoint.shape}")
        counts = [tiler.count for _, tiler in operands]
        if len(set(counts)) > 1:
            raise LayoutError(
                f"all operands need the same number of tiles, got {counts}; for a halo, give the input tiler tile +"
                " halo, overlap=halo and an augmentation"
            )
        for endpoint, item in self.sources:
            if item.fill is not None:
                validate_fill(item.fill, endpoint.dtype)
        if self.scheme == "direct":
            self._validate_copy()
        validate_separate_targets([endpoint for endpoint, _ in self.targets])
        self._validate_in_place()
        return counts[0]

    def _validate_in_place(self) -> None:
        """Raise if an output overwrites elements that an input still has to read."""
        for source, item in self.sources:
            pads_with_data = item.fill in REPEATING_FILLS and any(map(any, item.tiler.augmentation))
            reads_neighbours = item.tiler.count > 1 and (any(item.tiler.overlap) or pads_with_data)
            for target, other in self.targets:
                in_place = item.tiler == other.tiler and not reads_neighbours and are_same_array(source, target)
                if share_bytes(source, target) and not in_place:
                    raise TransferError(
                        "a source and a target share memory but not tiles, so later tiles would read what earlier ones"
                        " have written; write to another array"
                    )

    def _validate_copy(self) -> None:
        """Raise unless inputs and outputs have equal tilers and types, as a pipeline without a compute needs."""
        read = [(item.tiler, endpoint.dtype) for endpoint, item in self.sources]
        written = [(item.tiler, endpoint.dtype) for endpoint, item in self.targets]
        if read != written:
            raise LayoutError(
                f"without a compute, inputs and outputs need equal tilers and types, got {read} and {written}"
            )

    def _choose_depth(self, depth: int | None, limit: int | None) -> int:
        if depth is not None or self.scheme not in ("buffered", "direct"):
            return 2 if depth is None else depth
        if limit is None:
            return 3
        return max(1, min(8, self.tiles, limit // max(1, buffer_bytes(self.scheme, 1, *self._tile_bytes()))))

    def schedule(self) -> Schedule:
        """Return every action of a run, as data, before anything runs.

        >>> import numpy as np
        >>> tiler = Tiler((4,), (2,))
        >>> pipeline = PipelineSpec([Input(np.zeros(4), tiler)], [Output(np.zeros(4), tiler)], scheme="duplex")
        >>> print(next(iter(pipeline.schedule())))
        start: import 0 -> in
        """
        return Schedule(self.scheme, self.tiles, len(self.inputs), len(self.outputs), self.depth)

    @cached_property
    def buffer_bytes(self) -> int:
        """The bytes of all buffers."""
        return buffer_bytes(self.scheme, self.depth, *self._tile_bytes())

    def _tile_bytes(self) -> tuple[list[int], list[int]]:
        """Return the buffer bytes of the largest tile of each input and of each output."""
        read = [_aligned_tile_bytes(item.tiler, endpoint) for endpoint, item in self.sources]
        return read, [_aligned_tile_bytes(item.tiler, endpoint) for endpoint, item in self.targets]

    def make_buffers(self) -> tuple[Buffers, Buffers]:
        """Return new buffers for the inputs and for the outputs; simplex and direct schemes share them.

        >>> import numpy as np
        >>> tiler = Tiler((4,), (2,))
        >>> sorted(PipelineSpec([Input(np.zeros(4), tiler)], [Output(np.zeros(4), tiler)]).make_buffers()[0])
        ['in0', 'in1']
        """
        read, written = self._tile_bytes()
        names = self.schedule().buffers
        if self.scheme in ("simplex", "direct"):
            shared = {name: [TileBuffer(nbytes) for nbytes in shared_buffer_sizes(read, written)] for name in names}
            return shared, shared
        return (
            {name: [TileBuffer(nbytes) for nbytes in read] for name in names if name.startswith("in")},
            {name: [TileBuffer(nbytes) for nbytes in written] for name in names if name.startswith("out")},
        )


def _validate_operands(operands: Sequence[Operand], expected_class: type[Operand]) -> tuple[Operand, ...]:
    """Return the inputs or outputs of a pipeline as a tuple; raise for anything else, such as a plain array."""
    items = operands if isinstance(operands, (list, tuple)) else [operands]
    for item in items:
        if not isinstance(item, expected_class):
            name = expected_class.__name__
            raise TypeError(
                f"expected a list of {name}, got {type(item).__name__}; write [{name}(array, Tiler(array.shape, tile))]"
            )
    return tuple(items)


def _aligned_tile_bytes(tiler: Tiler, endpoint: Endpoint) -> int:
    return round_up(prod(tiler.largest_tile) * endpoint.dtype.itemsize, CACHE_LINE)

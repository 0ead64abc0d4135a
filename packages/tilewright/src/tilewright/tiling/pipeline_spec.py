# SPDX-License-Identifier: Apache-2.0
"""`PipelineSpec`: the operands, scheme and buffers of a pipeline, validated; running it is `Pipeline`'s part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import TypeVar

from .._integers import round_up
from ..copying import CACHE_LINE
from ..display import Shown
from ..errors import LayoutError, TransferError
from .array_store import are_same_array, share_bytes, validate_separate_targets
from .endpoints import Endpoint
from .operands import Input, Output, open_endpoint
from .schedule import Schedule, buffer_bytes, shared_buffer_sizes
from .tile_copies import REPEATING_FILLS, validate_fill
from .tiler import Tiler
from .transfer_tensors import TileBuffer
from .transfers import TransferQueue

Operand = TypeVar("Operand", Input, Output)
Buffers = dict[str, list[TileBuffer]]
"""Buffers by their name in the schedule, one per operand."""


class PipelineSpec(Shown):
    """Inputs and outputs that are cut into the same number of tiles, the scheme, and the buffers it needs.

    Arguments as of `Pipeline`.

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
                " use smaller tiles (suggest_tile finds them), or a scheme with fewer buffers"
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
        """Return the bytes of all buffers."""
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


def _validate_operands(operands: Sequence[Operand], kind: type[Operand]) -> tuple[Operand, ...]:
    """Return the inputs or outputs of a pipeline as a tuple; raise for anything else, such as a plain array."""
    items = operands if isinstance(operands, (list, tuple)) else [operands]
    for item in items:
        if not isinstance(item, kind):
            name = kind.__name__
            raise TypeError(
                f"expected a list of {name}, got {type(item).__name__}; write [{name}(array, Tiler(array.shape, tile))]"
            )
    return tuple(items)


def _aligned_tile_bytes(tiler: Tiler, endpoint: Endpoint) -> int:
    return round_up(prod(tiler.largest_tile) * endpoint.dtype.itemsize, CACHE_LINE)

# SPDX-License-Identifier: Apache-2.0
"""`rechunk` and `transpose`: stored arrays copied to other chunks, or with other axes, within a limit of memory.

A tile of the copy consists of whole chunks of the target, so that each is encoded once. With enough memory it also
consists of whole chunks of the source, or a cache holds those that several tiles need: each is decoded once, in one
pass. With less, chunks of the source would be decoded again and again. Then a first pass reads whole chunks of the
source into a temporary file, and a second one writes whole chunks of the target: every element is read and written
twice, and every chunk still decoded and encoded once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from .._text import format_bytes, parse_size
from ..copying import CACHE_LINE
from ..errors import LayoutError, TransferError
from ..files import create_array
from .array_store import chunk_shape, read_chunk_shape, share_bytes
from .array_stream import default_workers, open_source
from .operands import Input, Output, open_endpoint, open_operand, validate_equal_shapes, validate_operand
from .pipeline import Pipeline
from .scratch_array import ScratchArray
from .tile_compute import CancelFlag, ProgressCallback
from .tile_suggestion import STORE_LIMIT, read_amplification, suggest_tile
from .tiler import Tiler
from .trace import PipelineReport
from .transposed_array import transpose_array

MAX_AMPLIFICATION = 2.0
"""How often chunks may be decoded in one pass before two passes are better."""


@dataclass(frozen=True)
class RechunkReport:
    """What a copy to other chunks did.

    `read_amplification` is what was decoded of the source over what it holds; `scratch_bytes` is the size of the
    temporary file between two passes, 0 for one pass.

    >>> report = RechunkReport(
    ...     passes=1, tiles=4, seconds=0.5, buffer_bytes=1 << 20, read_amplification=1.0, scratch_bytes=0
    ... )
    >>> report.passes
    1
    """

    passes: int
    tiles: int
    seconds: float
    buffer_bytes: int
    read_amplification: float
    scratch_bytes: int


@dataclass(frozen=True, eq=False)  # it stands for storage, which equals only itself
class RechunkPlan:
    """How a source is copied to a target: the tile of each pass, and the blocks of the temporary file between two.

    >>> plan = plan_rechunk(np.zeros((64, 64)), np.zeros((64, 64)))
    >>> plan.tiles, plan.block, plan.read_amplification
    (((64, 64),), None, 1.0)
    """

    source: Any
    target: Any
    tiles: tuple[tuple[int, ...], ...]
    block: tuple[int, ...] | None
    depth: int
    memory: int
    read_amplification: float
    """How often chunks of the source are decoded, as far as is known beforehand."""

    def explain(self) -> str:
        """Return the passes in words.

        >>> print(plan_rechunk(np.zeros((64, 64)), np.zeros((64, 64))).explain())
        one pass in tiles of 64 x 64: every chunk of the source is decoded 1 times, within 256 MiB
        """
        tiles = [" x ".join(map(str, tile)) for tile in self.tiles]
        if self.block is None:
            return (
                f"one pass in tiles of {tiles[0]}: every chunk of the source is decoded {self.read_amplification:.3g}"
                f" times, within {format_bytes(self.memory)}"
            )
        size = prod(self.source.shape) * np.dtype(self.source.dtype).itemsize
        return (
            f"two passes within {format_bytes(self.memory)}: tiles of {tiles[0]} into a temporary file of"
            f" {format_bytes(size)}, in blocks of {' x '.join(map(str, self.block))}; tiles of {tiles[1]} from there"
        )

    def run(
        self,
        progress: ProgressCallback | None = None,
        cancel: CancelFlag | None = None,
        scratch: str | os.PathLike[str] | None = None,
    ) -> RechunkReport:
        """Copy the source to the target, and return a report.

        Args:
            progress: called with the number of tiles that are done, and the number of all tiles.
            cancel: stops the run when it is set.
            scratch: the folder of the temporary file, by default the system's.
        """
        started = perf_counter()
        if self.block is None:
            report = self._copy(self.source, self.target, self.tiles[0], progress, cancel)
            reports, size = [report], 0
        else:
            counts = [Tiler(self.source.shape, tile).count for tile in self.tiles]
            shape, dtype = self.source.shape, np.dtype(self.source.dtype)
            folder = None if scratch is None else os.fspath(scratch)
            with ScratchArray(shape, dtype, self.block, folder) as between:
                ends = ((self.source, between), (between, self.target))
                reports = [
                    self._copy(*pair, tile, _count_from(progress, done, sum(counts)), cancel)
                    for pair, tile, done in zip(ends, self.tiles, (0, counts[0]), strict=True)
                ]
                size = between.nbytes
        return RechunkReport(
            len(reports),
            sum([report.tiles for report in reports]),
            perf_counter() - started,
            max([report.buffer_bytes for report in reports]),
            reports[0].read_amplification,
            size,
        )

    def _copy(
        self,
        source: Any,
        target: Any,
        tile: tuple[int, ...],
        progress: ProgressCallback | None,
        cancel: CancelFlag | None,
    ) -> PipelineReport:
        tiler = Tiler(target.shape, tile)
        pipeline = Pipeline(
            [Input(source, tiler)],
            [Output(target, tiler)],
            scheme="direct",
            depth=self.depth,
            workers=self.depth - 1,
            memory_limit=self.memory,
        )
        return pipeline.run(None, progress=progress, cancel=cancel)


def _count_from(progress: ProgressCallback | None, done: int, total: int) -> ProgressCallback | None:
    return None if progress is None else lambda tiles, _: progress(done + tiles, total)


def plan_rechunk(
    source: Any,
    target: Any,
    memory: int | str | None = None,
    axes: Sequence[int] | None = None,
    workers: int | None = None,
) -> RechunkPlan:
    """Return how a source is copied to a target that exists, in one pass or two.

    Args:
        source: an array, anything that slices, or a name.
        target: the same, of the same elements.
        memory: the most bytes of buffers and cached chunks, as a number or as text such as "1GiB"; 256 MiB by default.
        axes: the axis of the source that each axis of the target is; by default in order.
        workers: threads beside the caller, by default one per core where that helps.

    >>> plan_rechunk(np.zeros((6, 4)), np.zeros((4, 6)), axes=(1, 0)).source.shape
    (4, 6)
    """
    limit = _parse_memory(memory)
    target = open_operand(target, writing=True)
    source = open_operand(source)
    validate_operand(source, "source")
    validate_operand(target, "target")
    if axes is not None:
        source = transpose_array(source, axes)
    validate_equal_shapes([source], [target])
    if share_bytes(open_endpoint(source), open_endpoint(target, writing=True)):
        raise TransferError("the source and the target share bytes; write to another array")
    size = np.dtype(source.dtype).itemsize
    if np.dtype(source.dtype) != np.dtype(target.dtype):
        raise LayoutError(
            f"source has type {source.dtype}, target has type {target.dtype}; give a target of the same type, or use"
            " stream with a compute that converts"
        )
    depth = 1 + (default_workers([source, target]) if workers is None else workers)
    shape = tuple([int(n) for n in source.shape])
    suggestion = suggest_tile(shape, [source], [target], limit, 0, "direct", depth)
    reads, writes = read_chunk_shape(source), chunk_shape(target)
    amplification = read_amplification(source, target, suggestion.tile, limit - suggestion.buffer_bytes)
    if amplification > MAX_AMPLIFICATION and reads is not None:
        decoding = prod(reads) * size
        for threads in range(depth, 0, -1):
            buffer = limit // threads // CACHE_LINE * CACHE_LINE  # buffers are whole cache lines
            first = _grow_tile(shape, reads, writes or shape, (buffer - decoding) // size)
            second = _grow_tile(shape, writes or (1,) * len(shape), first or shape, buffer // size)
            if first is not None and second is not None:
                block = tuple(map(min, first, second))
                return RechunkPlan(source, target, (first, second), block, threads, limit, 1.0)
    return RechunkPlan(source, target, (suggestion.tile,), None, suggestion.depth, limit, amplification)


def _grow_tile(
    shape: tuple[int, ...], unit: Sequence[int], wanted: Sequence[int], elements: int
) -> tuple[int, ...] | None:
    """Return the largest tile of whole units with at most some elements, grown towards what is wanted; None if none."""
    tile = [min(u, n) for u, n in zip(unit, shape, strict=True)]
    if prod(tile) > elements:
        return None
    axes = set(range(len(shape)))
    while axes:
        axis = max(axes, key=lambda k: min(wanted[k], shape[k]) / tile[k])
        larger = min(2 * tile[axis], shape[axis])
        if larger > tile[axis] and prod(tile) // tile[axis] * larger <= elements:
            tile[axis] = larger
        else:
            axes.remove(axis)
    return tuple(tile)


def _parse_memory(memory: int | str | None) -> int:
    nbytes = STORE_LIMIT if memory is None else parse_size(memory) if isinstance(memory, str) else int(memory)
    if nbytes is None or nbytes < 1:
        raise TransferError(f"expected a number of bytes as memory, such as 1 << 30 or '1GiB', got {memory!r}")
    return nbytes


def rechunk(
    source: Any,
    target: Any,
    memory: int | str | None = None,
    chunks: Sequence[int] | None = None,
    workers: int | None = None,
    progress: ProgressCallback | None = None,
    cancel: CancelFlag | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> RechunkReport:
    """Copy an array to another one with other chunks, within a limit of memory, and return a report.

    Args:
        source: an array, anything that slices, or a name such as `a.zarr`, `a.h5::x` or `s3://bucket/a.zarr`.
        target: the same; a name is created, with `chunks`.
        memory: the most bytes of buffers and cached chunks, as a number or as text such as "1GiB"; 256 MiB by default.
            Where that is too little to decode every chunk once, the copy goes through a temporary file.
        chunks: the chunks of a target that is created, by default at most 4 MiB each.
        workers: threads beside the caller, by default one per core where that helps.
        progress, cancel, scratch: those of `RechunkPlan.run`.

    >>> a, b = np.arange(12).reshape(3, 4), np.zeros((3, 4), int)
    >>> rechunk(a, b).passes, bool((a == b).all())
    (1, True)
    """
    return _run(source, target, None, memory, chunks, workers, progress, cancel, scratch)


def transpose(
    source: Any,
    target: Any,
    axes: Sequence[int] | None = None,
    memory: int | str | None = None,
    chunks: Sequence[int] | None = None,
    workers: int | None = None,
    progress: ProgressCallback | None = None,
    cancel: CancelFlag | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> RechunkReport:
    """Copy an array to another one with its axes in another order, and return a report.

    Args:
        source: an array, anything that slices, or a name such as `a.zarr`, `a.h5::x` or `s3://bucket/a.zarr`.
        target: the same; a name is created, with `chunks`.
        axes: the axis of the source that each axis of the target is; by default reversed.
        memory, chunks, workers, progress, cancel, scratch: those of `rechunk`.

    >>> a, b = np.arange(12).reshape(3, 4), np.zeros((4, 3), int)
    >>> transpose(a, b).passes, bool((a.T == b).all())
    (1, True)
    """
    source = open_source(source, [target])
    validate_operand(source, "source")
    order = tuple(reversed(range(len(source.shape)))) if axes is None else tuple(axes)
    return _run(source, target, order, memory, chunks, workers, progress, cancel, scratch)


def _run(
    source: Any,
    target: Any,
    axes: Sequence[int] | None,
    memory: int | str | None,
    chunks: Sequence[int] | None,
    workers: int | None,
    progress: ProgressCallback | None,
    cancel: CancelFlag | None,
    scratch: str | os.PathLike[str] | None,
) -> RechunkReport:
    with ExitStack() as files:
        source = open_source(source, [target])
        validate_operand(source, "source")
        view = source if axes is None else transpose_array(source, axes)
        if isinstance(target, (str, Path)):
            target = files.enter_context(create_array(target, view.shape, view.dtype, chunks))
        elif chunks is not None:
            raise TransferError(f"the target exists, so its chunks cannot be {tuple(chunks)}; give its name instead")
        return plan_rechunk(view, target, memory, None, workers).run(progress, cancel, scratch)

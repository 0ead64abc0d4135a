# SPDX-License-Identifier: Apache-2.0
"""The conversion of tensors, slab by slab, by a pool of threads: while one waits for the disk, others convert.

A tensor's file is written under a temporary name, and renamed when it is complete and on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from math import lcm, prod
from pathlib import Path
from threading import Lock, Thread
from typing import NamedTuple

import numpy as np

from ..atomic import Draft, write_file
from ..copying.host_memory import CACHE_LINE, aligned_empty
from ..errors import FormatError, OutOfMemory
from ..files.source_file import ByteArray
from ..files.stored_tensor import PagedBoxes, inverse_order
from ..layout.box import Box, cut_into_slabs, largest_slab
from ..layout.tuples import ceil_div, round_up
from .assembled_source import AssembledSource, PartValues
from .conversion_item import PAYLOAD, ConversionItem, ItemRecord, final_path
from .output_file import OutputFile, Piece, PieceHashes, SourceHashes, hash_pieces, hash_range
from .rules import ConversionTarget, needs_range_check

_MIN_BYTES_FOR_TWO = 1 << 20  # scratch memory below which a thread converts one slab at a time
_OUTPUT = 0  # the first of the hashed byte ranges; those of the sources follow

ItemCallback = Callable[[ConversionItem, ItemRecord], None]
"""Called with an item that is finished, and its record."""

BytesCallback = Callable[[int], None]
"""Called with the source bytes of a slab that is finished."""


class Slab(NamedTuple):
    """A box of a tensor that is converted at a time: `window` is the device's part, and `box` is relative to it."""

    window: int
    box: Box


@dataclass(frozen=True)
class SlabCutter:
    """The slabs of one tensor, part by part: boxes of the target that take at most `max_bytes` each.

    Slabs are cut from the outermost dimension of the source inwards, so that the source is read from front to back.
    Their edges are page edges on both sides. `whole_rows` cuts row-major targets between rows, for bank images.

    >>> import tempfile, numpy
    >>> from tilewright import TensorSpec, open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((100, 64), numpy.float32))
    ...     source = AssembledSource.of(open_tensors(folder)["x"])
    ...     slabs = SlabCutter(source, ConversionTarget(TensorSpec((100, 64), "bfloat8_b")), 24_000)
    >>> [slab.box.shape for slab in slabs]
    [(64, 64), (36, 64)]
    """

    source: AssembledSource
    target: ConversionTarget
    max_bytes: int
    whole_rows: bool = False

    @cached_property
    def windows(self) -> list[Box]:
        """Return the distinct parts of the devices, as boxes of the entire tensor."""
        shape = self.target.spec.shape.logical
        return [Box((0,) * len(shape), shape)] if self.target.mesh is None else list(self.target.mesh.windows())

    @cached_property
    def _axes(self) -> list[int]:
        """Return the axes of the target, the outermost of the source first."""
        return self.source.axes_from_outermost()

    @cached_property
    def _units(self) -> list[int]:
        """Return the units of slab extents, so that slabs are entire pages on both sides."""
        spec = self.target.spec
        units = PagedBoxes(spec).units
        if self.whole_rows and units and not spec.is_tiled:  # the pages of rows
            units = (*units[:-1], max(1, spec.shape.logical[-1]))
        return [lcm(unit, own) for unit, own in zip(units, self.source.units(), strict=True)]

    def slab_bytes(self, extents: Sequence[int]) -> int:
        """Return the memory of the first slab of these extents: as stored, as values, and as written."""
        spec = self.target.spec
        box = Box(self.windows[0].offset, tuple(extents))
        padded = [round_up(n, unit) for n, unit in zip(extents, PagedBoxes(spec).units, strict=True)]
        rank_one = spec.tile.height if spec.is_tiled and len(padded) == 1 else 1
        written = ceil_div(prod(padded) * rank_one * spec.page_bytes, spec.page_elements)
        return self.source.box_bytes(box, spec) + written * (2 if self.whole_rows else 1)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Return the extents of a slab; slabs at the edges may be smaller."""
        shape, axes = self.target.spec.shape.logical, self._axes
        back = inverse_order(tuple(axes))

        def fits(permuted: list[int]) -> bool:
            return self.slab_bytes([permuted[d] for d in back]) <= self.max_bytes

        permuted = largest_slab(tuple([shape[d] for d in axes]), [self._units[d] for d in axes], fits)
        extents = tuple([permuted[d] for d in back])
        if self.slab_bytes(extents) > self.max_bytes:
            raise OutOfMemory(
                f"{', '.join(self.source.tensors)}: the smallest slab, {' x '.join(map(str, extents))}, takes"
                f" {self.slab_bytes(extents)} bytes, but each job has {self.max_bytes}; give more memory or fewer jobs"
            )
        return extents

    def __len__(self) -> int:
        shape = self.target.spec.shape.logical
        return len(self.windows) * prod(
            [max(1, ceil_div(n, step)) for n, step in zip(shape, self.extents, strict=True)]
        )

    def __iter__(self) -> Iterator[Slab]:
        shape, axes = self.target.spec.shape.logical, tuple(self._axes)
        back = inverse_order(axes)
        permuted = (tuple([shape[d] for d in axes]), tuple([self.extents[d] for d in axes]))
        for window in range(len(self.windows)):
            for box in cut_into_slabs(*permuted):
                yield Slab(window, box.permute(back))


class Scratch:
    """Per-thread scratch memory, reused for every step; a slab larger than planned gets memory of its own."""

    def __init__(self, size: int) -> None:
        self._bytes: ByteArray = aligned_empty(size + 4 * CACHE_LINE, np.uint8)
        self._used = 0

    def reset(self) -> None:
        """Free all allocations."""
        self._used = 0

    def allocate(self, size: int) -> ByteArray:
        """Return `size` bytes that stay valid until `reset()`."""
        start = self._used
        self._used = round_up(start + size, CACHE_LINE)
        if self._used > len(self._bytes):
            return aligned_empty(size, np.uint8)
        return self._bytes[start : start + size]


class TensorJob:
    """The conversion of one tensor: reads, packs, writes and hashes its slabs, from any thread."""

    def __init__(self, item: ConversionItem, slabs: SlabCutter, out: Path, drafts: Path, threads: int) -> None:
        self.item, self.slabs, self.threads = item, slabs, threads
        slot, self.final, self._drafts = item.slot, final_path(out, item.slot), drafts
        begins = [tensor.byte_range[0] for tensor in item.source.tensors.values()]
        self.hashes = PieceHashes(slot.start if slot.shared else 0, *begins)
        self._boxes = PagedBoxes(item.target.spec)
        self._slabs_left, self._lock = len(slabs), Lock()
        self._draft = None if slot.shared else Draft(self.final, drafts)
        self._open_file = (drafts / PAYLOAD).open("r+b", buffering=0) if self._draft is None else self._draft.file
        self._file = OutputFile(self._open_file.fileno(), self.final)

    def write_head(self) -> None:
        """Write and hash what comes before the data."""
        if self.item.slot.head:
            self._file.write(0, self.item.slot.head)
            self.hashes.add_prefix(_OUTPUT, self.item.slot.head)

    def convert_slab(self, slab: Slab, scratch: Scratch) -> tuple[Piece, ...]:
        """Read, pack and write a slab; return its pieces of output and sources, to be hashed."""
        item = self.item
        window = self.slabs.windows[slab.window]
        parts = list(item.source.read_parts(slab.box.relative_to(tuple([-n for n in window.offset])), scratch.allocate))
        for part in parts:
            self._check_range(part)
        spec = self._boxes.box_spec(slab.box)
        pages = scratch.allocate(spec.nbytes)
        if spec.nbytes:
            item.source.pack(parts, spec, pages, scratch.allocate, item.target.pad_value, self.threads)
        pieces = self._output_pieces(slab, pages)
        for offset, piece in pieces:
            self._file.write(offset, piece)
        start = pieces[0][0] if len(pieces) == 1 and item.slot.image is None else None
        return ((start, pages), *[item.source.piece_of(name, parts) for name in item.source.tensors])

    def finish_slab(self) -> bool:
        """Count a finished slab, and return whether it was the last one."""
        with self._lock:
            self._slabs_left -= 1
            return self._slabs_left == 0

    def _check_range(self, part: PartValues) -> None:
        """Raise if integers do not fit the target's format."""
        values = part.values
        source, target = self.item.source.tensors[part.part.source].format, self.item.target.spec.dtype
        if values.size and source is not None and needs_range_check(source, target):
            low, high, limits = int(values.min()), int(values.max()), target.limits
            if low < limits.lowest or high > limits.highest:
                worst = low if low < limits.lowest else high
                raise FormatError(
                    f"{self.item.name} contains {worst}, which does not fit {target}; choose another dtype for it, or"
                    " leave it out with skip = true"
                )

    def _output_pieces(self, slab: Slab, pages: ByteArray) -> list[tuple[int, ByteArray]]:
        """Return the pieces (file offset, bytes) of the file that the pages of a slab make."""
        slot = self.item.slot
        begin = slot.start + slab.window * slot.step
        pieces, position = [], 0
        for start, size in self._boxes.runs(slab.box):
            piece = pages[position : position + size]
            if slot.image is None:
                pieces.append((begin + start, piece))
            else:
                pieces += slot.image.scatter_pages(start, piece)
            position += size
        return pieces or [(begin, pages)]

    def finish(self, source_hashes: SourceHashes) -> ItemRecord:
        """Flush the file, give it its name, and return the record with the hashes."""
        item, slot, tensors = self.item, self.item.slot, list(self.item.source.tensors.values())
        for stream, tensor in enumerate(tensors, 1):
            if self.hashes.in_order[stream] and self.hashes.position(stream) == tensor.byte_range[1]:
                source_hashes.add(tensor, self.hashes.hexdigest(stream))
        hashes = tuple([source_hashes.get(tensor) for tensor in tensors])
        if not slot.shared:  # a shared file is extended beforehand, and flushed when it is complete
            self._file.extend(slot.size)
        output_hash = self.hashes.hexdigest(_OUTPUT)
        if not self.hashes.in_order[_OUTPUT]:
            output_hash = hash_range(Path(self._open_file.name), slot.start if slot.shared else 0, slot.size)
        if self._draft is not None:
            for name, content in slot.beside.items():
                write_file(self.final.with_name(name), content, folder=self._drafts)
            self._draft.commit()
        self._open_file.close()
        time = 0 if slot.shared else self.final.stat().st_mtime_ns
        files = tuple([(tensor.file.time, tensor.file.size) for tensor in tensors])
        return ItemRecord(item.key, hashes, output_hash, files, time)

    def abandon(self) -> None:
        """Close the file, and remove it unless it is shared."""
        self.hashes.abandon()
        if self._draft is not None:
            self._draft.discard()
        self._open_file.close()


class _SlabStep(NamedTuple):
    """One slab of a tensor, and its number."""

    job: TensorJob
    number: int
    slab: Slab


class WorkerPool:
    """Threads that convert items, slab by slab, each with its own scratch memory of `slab_bytes`."""

    def __init__(self, items: list[ConversionItem], out: Path, drafts: Path, threads: int, slab_bytes: int) -> None:
        self.items, self.out, self.drafts, self.threads, self.slab_bytes = items, out, drafts, threads, slab_bytes
        self._copy_threads = max(1, (os.cpu_count() or 1) // threads)
        self._lock = Lock()
        self._open_jobs: set[TensorJob] = set()
        self._source_hashes = SourceHashes()
        self._problem: BaseException | None = None
        self._stopped = False

    def run(self, on_item: ItemCallback, on_bytes: BytesCallback) -> None:
        """Convert all items; the first error stops all threads and is raised, and finished items stay.

        The callbacks are called one at a time, from any thread.
        """
        steps = self._steps()
        workers = [
            Thread(target=self._run_thread, args=(steps, on_item, on_bytes), daemon=True) for _ in range(self.threads)
        ]
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                while worker.is_alive():
                    worker.join(0.2)  # wakes up for Ctrl-C
        except BaseException as problem:
            self._stop(problem)
            for worker in workers:
                with suppress(RuntimeError):  # it has not started, and will find the pool stopped
                    worker.join()
        finally:
            for job in list(self._open_jobs):
                job.abandon()
        if self._problem is not None:
            raise self._problem

    def _steps(self) -> Iterator[list[_SlabStep]]:
        """Yield the slabs that a thread converts at a time: one of each of two tensors, hashed together.

        Steps are taken in order, and the slabs of a tensor are in consecutive steps. So a thread that waits for its
        turn waits for an earlier step, and the earliest waits for none.
        """
        streams = 2 if len(self.items) > 1 and self.slab_bytes >= _MIN_BYTES_FOR_TWO else 1
        items = iter(self.items)
        for slabs in zip_longest(*[self._iterate_slabs(items, self.slab_bytes // streams) for _ in range(streams)]):
            yield [step for step in slabs if step is not None]

    def _iterate_slabs(self, items: Iterator[ConversionItem], slab_bytes: int) -> Iterator[_SlabStep]:
        """Yield the slabs of one tensor after the other, taking items from a shared iterator."""
        for item in items:
            slabs = SlabCutter(item.source, item.target, slab_bytes, item.slot.image is not None)
            job = TensorJob(item, slabs, self.out, self.drafts, self._copy_threads)
            self._open_jobs.add(job)
            job.write_head()
            for number, slab in enumerate(slabs):
                yield _SlabStep(job, number, slab)

    def _run_thread(self, steps: Iterator[list[_SlabStep]], on_item: ItemCallback, on_bytes: BytesCallback) -> None:
        try:
            scratch = Scratch(self.slab_bytes)
            while True:
                with self._lock:
                    step = None if self._stopped else next(steps, None)
                if step is None:
                    return
                scratch.reset()
                hash_pieces([(job.hashes, number, job.convert_slab(slab, scratch)) for job, number, slab in step])
                for job, number, _ in step:
                    self._finish_slab(job, number, on_item, on_bytes)
        except BaseException as problem:
            self._stop(problem)

    def _finish_slab(self, job: TensorJob, number: int, on_item: ItemCallback, on_bytes: BytesCallback) -> None:
        """Report a finished slab, and after the last one the finished tensor."""
        if job.finish_slab():
            record = job.finish(self._source_hashes)
            with self._lock:
                self._open_jobs.discard(job)
                on_item(job.item, record)
        total, count = job.item.bytes_in, len(job.slabs)
        with self._lock:
            on_bytes(total * (number + 1) // count - total * number // count)

    def _stop(self, problem: BaseException) -> None:
        with self._lock:
            self._stopped = True
            self._problem = self._problem or problem
            jobs = list(self._open_jobs)
        for job in jobs:  # so that no thread waits for a piece that never comes
            job.hashes.abandon()

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
from typing import Any, NamedTuple

import numpy as np

from ..atomic import Draft, write_file
from ..copying import execute, plan_copy
from ..copying.host_memory import CACHE_LINE, aligned_empty, placement_of
from ..errors import FormatError, OutOfMemory
from ..files import StoredTensor
from ..files.source_file import ByteArray
from ..files.stored_tensor import PagedBoxes, inverse_order
from ..layout.box import Box, cut_into_slabs, largest_slab
from ..layout.tuples import ceil_div, round_up
from ..memory import TensorSpec
from ..memory.device import as_stored_array, host_placement
from .conversion_item import PAYLOAD, ConversionItem, ItemRecord, final_path
from .output_file import OutputFile, Piece, PieceHashes, hash_pieces, hash_range
from .rules import ConversionTarget, needs_range_check

_MIN_BYTES_FOR_TWO = 1 << 20  # scratch memory below which a thread converts one slab at a time
_SOURCE, _OUTPUT = 0, 1  # the hashed byte ranges

ItemCallback = Callable[[ConversionItem, ItemRecord], None]
"""Called with an item that is finished, and its record."""

BytesCallback = Callable[[int], None]
"""Called with the source bytes of a slab that is finished."""


@dataclass(frozen=True)
class SlabCutter:
    """The slabs of one tensor: boxes of the source, with dimensions as stored, of at most `max_bytes` each.

    Slabs are cut from the outermost dimension of the source inwards, so that the source is read from front to back.
    Their edges are page edges on both sides. `whole_rows` cuts row-major targets between rows, for bank images.

    >>> import tempfile, numpy
    >>> from tilewright import TensorSpec, open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((100, 64), numpy.float32))
    ...     slabs = SlabCutter(
    ...         open_tensors(folder)["x"], ConversionTarget(TensorSpec((100, 64), "bfloat8_b"), (0, 1)), 24_000
    ...     )
    >>> [slab.shape for slab in slabs]
    [(64, 64), (36, 64)]
    """

    source: StoredTensor
    target: ConversionTarget
    max_bytes: int
    whole_rows: bool = False

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Return the order of the source's stored dimensions in the target."""
        return tuple([self.source.order[d] for d in self.target.order])

    @cached_property
    def _target_units(self) -> tuple[int, ...]:
        return PagedBoxes(self.target.spec).units

    @cached_property
    def _stored_shape(self) -> tuple[int, ...]:
        return tuple([self.source.shape[d] for d in inverse_order(self.source.order)])

    @cached_property
    def _units(self) -> list[int]:
        """Return the units of slab extents, so that slabs are entire pages on both sides."""
        back = inverse_order(self.order)
        out = self._target_units
        if self.whole_rows and out and not self.target.spec.is_tiled:  # the pages of rows
            out = (*out[:-1], max(1, self.target.spec.shape.logical[-1]))
        into = self.source.pages.units if len(self.source.parts) == 1 else (1,) * len(self._stored_shape)
        return [lcm(unit, out[back[d]]) for d, unit in enumerate(into)]

    def slab_bytes(self, extents: Sequence[int]) -> int:
        """Return the memory of a slab of these extents: as stored, as values, and as written."""
        spec, host = self.target.spec, self.source.pages.spec
        padded_in = prod([round_up(n, unit) for n, unit in zip(extents, self.source.pages.units, strict=True)])
        read = ceil_div(padded_in * host.page_bytes, host.page_elements)
        in_place = not host.is_tiled and not self.source.swapped and len(self.source.parts) == 1
        values = 0 if in_place else prod(extents) * self.source.dtype.itemsize
        back = [extents[d] for d in self.order]
        turned = [round_up(n, unit) for n, unit in zip(back, self._target_units, strict=True)]
        rank_one = spec.tile.height if spec.is_tiled and len(turned) == 1 else 1
        written = ceil_div(prod(turned) * rank_one * spec.page_bytes, spec.page_elements)
        return read + values + written * (2 if self.whole_rows else 1)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Return the extents of a slab; slabs at the edges may be smaller."""
        extents = largest_slab(self._stored_shape, self._units, lambda slab: self.slab_bytes(slab) <= self.max_bytes)
        if self.slab_bytes(extents) > self.max_bytes:
            raise OutOfMemory(
                f"{self.source.name}: the smallest slab, {' x '.join(map(str, extents))}, takes"
                f" {self.slab_bytes(extents)} bytes, but each job has {self.max_bytes}; give more memory or fewer jobs"
            )
        return extents

    def __len__(self) -> int:
        return prod([max(1, ceil_div(n, step)) for n, step in zip(self._stored_shape, self.extents, strict=True)])

    def __iter__(self) -> Iterator[Box]:
        return cut_into_slabs(self._stored_shape, self.extents)


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


class PackedPages(NamedTuple):
    """The pages of a slab, and the pieces (file offset, bytes) of the file that they make."""

    pages: ByteArray
    pieces: list[tuple[int, ByteArray]]


class TensorJob:
    """The conversion of one tensor: reads, packs, writes and hashes its slabs, from any thread."""

    def __init__(self, item: ConversionItem, slabs: SlabCutter, out: Path, drafts: Path, threads: int) -> None:
        self.item, self.slabs, self.threads = item, slabs, threads
        slot, self.final, self._drafts = item.slot, final_path(out, item.slot), drafts
        self.hashes = PieceHashes(item.source.byte_range[0], slot.start if slot.shared else 0)
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

    def convert_slab(self, slab: Box, scratch: Scratch) -> tuple[Piece, Piece]:
        """Read, pack and write a slab; return its pieces of source and output, to be hashed."""
        source_piece, values = self._read(slab, scratch)
        self._check_range(values)
        packed = self._pack(values.transpose(self.slabs.order), slab.permute(self.slabs.order), scratch)
        for offset, piece in packed.pieces:
            self._file.write(offset, piece)
        is_one_piece = len(packed.pieces) == 1 and self.item.slot.image is None
        return source_piece, (packed.pieces[0][0] if is_one_piece else None, packed.pages)

    def finish_slab(self) -> bool:
        """Count a finished slab, and return whether it was the last one."""
        with self._lock:
            self._slabs_left -= 1
            return self._slabs_left == 0

    def _read(self, slab: Box, scratch: Scratch) -> tuple[Piece, Any]:
        """Return the stored bytes of a slab, with their start if they are one run, and the values."""
        source = self.item.source
        if len(source.parts) > 1:
            return (None, np.empty(0, np.uint8)), source.read_stored(slab)
        runs = source.runs(slab)
        data = scratch.allocate(sum([size for _, size in runs]))
        source.file.read_runs(runs, data)
        start = runs[0][0] if len(runs) == 1 else None
        return (start, data), source.decode(data, source.pages.box_spec(slab))

    def _check_range(self, values: Any) -> None:
        """Raise if integers do not fit the target's format."""
        source, target = self.item.source.format, self.item.target.spec.dtype
        if values.size and source is not None and needs_range_check(source, target):
            low, high, limits = int(values.min()), int(values.max()), target.limits
            if low < limits.lowest or high > limits.highest:
                worst = low if low < limits.lowest else high
                raise FormatError(
                    f"{self.item.name} contains {worst}, which does not fit {target}; choose another dtype for it, or"
                    " leave it out with skip = true"
                )

    def _pack(self, values: Any, box: Box, scratch: Scratch) -> PackedPages:
        spec, slot = self._boxes.box_spec(box), self.item.slot
        pages = scratch.allocate(spec.nbytes)
        if spec.nbytes:
            pack_pages(values, spec, self.item.target.pad_value, pages, self.threads)
        pieces, position = [], 0
        for start, size in self._boxes.runs(box):
            piece = pages[position : position + size]
            if slot.image is None:
                pieces.append((slot.start + start, piece))
            else:
                pieces += slot.image.scatter_pages(start, piece)
            position += size
        return PackedPages(pages, pieces or [(slot.start, pages)])

    def finish(self) -> ItemRecord:
        """Flush the file, give it its name, and return the record with the hashes."""
        item, slot, source = self.item, self.item.slot, self.item.source
        source_hash = self.hashes.hexdigest(_SOURCE)
        if not self.hashes.in_order[_SOURCE]:
            source_hash = hash_range(source.path, *source.byte_range, source.file)
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
        return ItemRecord(item.key, source_hash, output_hash, source.file.time, source.file.size, time)

    def abandon(self) -> None:
        """Close the file, and remove it unless it is shared."""
        self.hashes.abandon()
        if self._draft is not None:
            self._draft.discard()
        self._open_file.close()


def pack_pages(values: Any, spec: TensorSpec, pad_value: float, out: ByteArray, threads: int) -> None:
    """Convert values to the pages of a spec, into `out`.

    >>> out = np.zeros(4, np.uint8)
    >>> pack_pages(np.array([[1, 2], [3, 4]]), TensorSpec((2, 2), "uint8"), 0, out, 1)
    >>> out.tolist()
    [1, 2, 3, 4]
    """
    array = as_stored_array(values, spec)
    execute(plan_copy(placement_of(array), host_placement(spec, pad_value)), array, out, threads)


class _SlabStep(NamedTuple):
    """One slab of a tensor, and its number."""

    job: TensorJob
    number: int
    slab: Box


class WorkerPool:
    """Threads that convert items, slab by slab, each with its own scratch memory of `slab_bytes`."""

    def __init__(self, items: list[ConversionItem], out: Path, drafts: Path, threads: int, slab_bytes: int) -> None:
        self.items, self.out, self.drafts, self.threads, self.slab_bytes = items, out, drafts, threads, slab_bytes
        self._copy_threads = max(1, (os.cpu_count() or 1) // threads)
        self._lock = Lock()
        self._open_jobs: set[TensorJob] = set()
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
            record = job.finish()
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

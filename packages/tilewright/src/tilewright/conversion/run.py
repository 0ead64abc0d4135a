# SPDX-License-Identifier: Apache-2.0
"""`convert`: runs a conversion plan; finished tensors are reused, and the result appears when it is complete."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from math import prod
from pathlib import Path
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .._files import Draft, rename_over, write_file
from .._integers import round_up
from .._lazy import late_function
from ..copying import CACHE_LINE, aligned_empty
from ..errors import FormatError, MemoryConfigError, TilewrightError, TransferError
from ..files import MANIFEST_NAME, ByteArray, FilePath, PagedBoxes
from ..memory import TensorSpec
from .plan import (
    DEFAULT_MEMORY,
    PAYLOAD,
    ConversionItem,
    ConversionPlan,
    ItemRecord,
    Slab,
    SlabCutter,
    Sources,
    final_path,
    plan_conversion,
)
from .rules import RuleLines, needs_range_check
from .source import (
    BLOCK_BYTES,
    NumberedPieces,
    OutputFile,
    PartValues,
    PieceHashes,
    Rounding,
    SourceHashes,
    hash_pieces,
    hash_range,
    name_targets,
    note_exceptional,
)
from .work_folder import ExistingOutput, Journal, WorkFolder, is_in_payload

count_workers, submit_unique = [  # of executors
    late_function("tilewright", "tiling", name) for name in ("count_workers", "submit_unique")
]

# The memory of a conversion: scratch for the slabs of each thread, and buffers for outputs that come out of order.

_MAX_SLAB_BYTES = 24 << 20  # larger ones are not faster
_MAX_BUFFER_BYTES = 24 << 20


class MemoryPlan(NamedTuple):
    """How the memory of a conversion is shared: threads, the bytes of each one's slabs, and the bytes of a buffer."""

    threads: int
    slab_bytes: int
    buffer_bytes: int


class Scratch:
    """Per-thread scratch memory, reused for every step; a slab larger than planned gets memory of its own."""

    def __init__(self, size: int) -> None:
        self._bytes = _block_aligned(size + 4 * BLOCK_BYTES)
        self._used = 0

    def reset(self) -> None:
        """Free all allocations."""
        self._used = 0

    def allocate(self, size: int, offset: int | None = None) -> ByteArray:
        """Return `size` bytes that stay valid until `reset()`; at the place in a disk block that `offset` has."""
        start = self._used if offset is None else round_up(self._used, BLOCK_BYTES) + offset % BLOCK_BYTES
        self._used = round_up(start + size, CACHE_LINE)
        if self._used > len(self._bytes):
            return aligned_empty(size, np.uint8)
        return self._bytes[start : start + size]


class OutputBuffers:
    """Buffers for strips of outputs, each of at most `size` bytes; those that are released are used again.

    >>> buffers = OutputBuffers(1 << 20)
    >>> buffer = buffers.take(100, 600_000)
    >>> len(buffer), buffer.ctypes.data % BLOCK_BYTES
    (600000, 100)
    >>> buffers.release(buffer)
    """

    def __init__(self, size: int) -> None:
        self.size, self._lock = size, Lock()
        self._free: list[ByteArray] = []
        self._memory: dict[int, ByteArray] = {}  # of the buffers in use, by address

    def take(self, offset: int, size: int) -> ByteArray:
        """Return a buffer of `size` bytes at the place in a disk block that the file `offset` has."""
        with self._lock:
            memory = self._free.pop() if self._free else _block_aligned(self.size + BLOCK_BYTES)
            start = offset % BLOCK_BYTES
            buffer = memory[start : start + size]
            self._memory[buffer.ctypes.data] = memory
            return buffer

    def release(self, buffer: ByteArray) -> None:
        """Take a buffer back."""
        with self._lock:
            self._free.append(self._memory.pop(buffer.ctypes.data))


def _block_aligned(size: int) -> ByteArray:
    """Return `size` bytes at the start of a disk block."""
    memory = np.empty(size + BLOCK_BYTES, np.uint8)
    start = -memory.ctypes.data % BLOCK_BYTES
    return memory[start : start + size]


# `TensorJob`: the conversion of one tensor, slab by slab.


@dataclass
class OpenStrip:
    """A strip of the output that is being made: its bytes in the file, its buffer, and the number of missing slabs."""

    number: int
    start: int
    nbytes: int
    slabs_left: int
    buffer: ByteArray | None = None


class TensorJob:
    """The conversion of one tensor: reads, packs, writes and hashes its slabs, from any thread."""

    def __init__(
        self, item: ConversionItem, slabs: SlabCutter, out: Path, drafts: Path, threads: int, buffers: OutputBuffers
    ) -> None:
        self.item, self.threads, self._buffers = item, threads, buffers
        slot, self.final, self._drafts = item.slot, final_path(out, item.slot), drafts
        self._begin = slot.start if slot.shared else 0  # of the bytes written here
        self.output_hashes = PieceHashes(self._begin)
        self.source_hashes = PieceHashes(*[tensor.byte_range[0] for tensor in item.source.tensors.values()])
        self._boxes, self._slabs = PagedBoxes(item.target.spec), slabs
        self._strips = slabs.strips(buffers.size, slot.stride)
        is_small = all(strip.nbytes <= buffers.size for strip in self._strips)
        self._is_buffered = is_small and slot.image is None and not slabs.in_output_order
        self._strips_left, self._lock = len(self._strips), Lock()
        self.slab_count = sum([len(strip.slabs) for strip in self._strips])
        self._draft = None if slot.shared else Draft(self.final, drafts)
        self._open_file = (drafts / PAYLOAD).open("r+b", buffering=0) if self._draft is None else self._draft.file
        self._file = OutputFile(self._open_file.fileno(), self.final)
        self._may_round = item.recorded is None and item.source.may_round(item.target.spec)
        self._rounding = Rounding(0 if self._may_round else prod(item.source.value.shape))

    @property
    def can_be_hashed_later(self) -> bool:
        """Whether all of the output is in one buffer."""
        return self._is_buffered and len(self._strips) == 1

    def steps(self) -> Iterator[tuple[OpenStrip, Slab]]:
        """Write what comes before the data, and yield the slabs with the strips that they belong to."""
        slot = self.item.slot
        if slot.head:
            self._file.write(0, slot.head)
            self.output_hashes.add_prefix(0, slot.head)
        for number, strip in enumerate(self._strips):
            state = OpenStrip(number, slot.start + strip.start, strip.nbytes, len(strip.slabs))
            if self._is_buffered:
                state.buffer = self._buffers.take(state.start, strip.nbytes)
                if len(self._slabs.windows) > 1 or not self.item.source.covers(self.item.target.spec):
                    state.buffer[:] = 0  # what no slab covers
            for slab in strip.slabs:
                yield state, slab

    def convert_slab(self, number: int, strip: OpenStrip, slab: Slab, scratch: Scratch) -> list[NumberedPieces]:
        """Read, pack and write a slab; return the bytes to hash."""
        item, box = self.item, self._slabs.whole_box(slab)
        parts = list(item.source.read_parts(box, scratch.allocate))
        for part in parts:
            self._check_range(part)
        if not self._may_round and item.recorded is None:
            self._add_rounding(item.source.count_exceptional(parts, item.target.spec, box))
        begin = item.slot.start + slab.window * item.slot.stride
        sources = tuple([item.source.piece_of(name, parts) for name in item.source.tensors])
        hashed: list[NumberedPieces] = [(self.source_hashes, number, sources)]
        if strip.buffer is not None:
            self._pack(parts, item.target.spec, strip.buffer, scratch, slab.box, begin - strip.start)
            return hashed
        spec, runs = self._boxes.box_spec(slab.box), self._boxes.runs(slab.box)
        start = begin + runs[0][0] if len(runs) == 1 and item.slot.image is None else None
        pages = scratch.allocate(spec.nbytes, start)
        if spec.nbytes:
            self._pack(parts, spec, pages, scratch)
        position = 0
        for offset, size in runs:
            self._write_pages(begin, offset, pages[position : position + size])
            position += size
        return [*hashed, (self.output_hashes, number, ((start, pages),))]

    def _pack(self, parts: list[PartValues], spec: TensorSpec, pages: ByteArray, scratch: Scratch, *where: Any) -> None:
        """Pack a slab, and count the values that were rounded; `where` is the box, and its start in the pages."""
        source, allocate = self.item.source, scratch.allocate
        source.pack(parts, spec, pages, allocate, self.item.target.pad_value, self.threads, *where)
        if self._may_round:
            self._add_rounding(source.measure_rounding(parts, spec, pages, allocate, self.threads, *where))

    def _add_rounding(self, here: Rounding) -> None:
        with self._lock:
            self._rounding += here

    def _write_pages(self, begin: int, offset: int, pages: ByteArray) -> None:
        """Write pages with an offset in the tensor, whose data begin at `begin`."""
        image = self.item.slot.image
        for at, piece in [(begin + offset, pages)] if image is None else image.scatter_pages(offset, pages):
            self._file.write(at, piece)

    def finish_slab(self, strip: OpenStrip) -> bool:
        """Count a finished slab, and return whether it was the last one of its strip."""
        with self._lock:
            strip.slabs_left -= 1
            return strip.slabs_left == 0

    def strip_pieces(self, strip: OpenStrip) -> list[NumberedPieces]:
        """Return the part of a finished strip that has to be hashed."""
        if strip.buffer is None:
            return []
        return [(self.output_hashes, strip.number, ((strip.start, strip.buffer),))]

    def finish_strip(self, strip: OpenStrip) -> bool:
        """Write a strip that is hashed, and return whether it was the last one."""
        if strip.buffer is not None:
            self._file.write(strip.start, strip.buffer)
            self._buffers.release(strip.buffer)
            strip.buffer = None
        with self._lock:
            self._strips_left -= 1
            return self._strips_left == 0

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

    def finish(self, source_hashes: SourceHashes) -> ItemRecord:
        """Flush the file, give it its name, and return the record with the hashes."""
        item, slot, tensors = self.item, self.item.slot, list(self.item.source.tensors.values())
        for stream, tensor in enumerate(tensors):
            if self.source_hashes.in_order[stream] and self.source_hashes.position(stream) == tensor.byte_range[1]:
                source_hashes.add(tensor, self.source_hashes.hexdigest(stream))
        hashes = tuple([source_hashes.get(tensor) for tensor in tensors])
        if not slot.shared:  # a shared file is extended beforehand, and flushed when it is complete
            self._file.extend(slot.size)
        output_hash = self.output_hashes.hexdigest(0)
        if not self.output_hashes.in_order[0] or self.output_hashes.position(0) != slot.size:
            output_hash = hash_range(Path(self._open_file.name), self._begin, slot.size)
        if self._draft is not None:
            for name, content in slot.beside.items():
                write_file(self.final.with_name(name), content, folder=self._drafts)
            self._draft.commit()
        self._close()
        time = 0 if slot.shared else self.final.stat().st_mtime_ns
        files = tuple([tensor.file_state for tensor in tensors])
        return ItemRecord(item.key, hashes, output_hash, files, time, self._rounding)

    def abandon(self) -> None:
        """Close the file, and remove it unless it is shared."""
        self.stop_waiting()
        if self._draft is not None:
            self._draft.discard()
        self._close()

    def stop_waiting(self) -> None:
        """Release all threads that wait for a piece: it will never come."""
        self.output_hashes.abandon()
        self.source_hashes.abandon()

    def _close(self) -> None:
        self._file.close()
        self._open_file.close()


# `WorkerPool`: threads that convert tensors, slab by slab: while one waits for the disk, others convert.

_MIN_BYTES_FOR_TWO = 1 << 20  # scratch memory below which a thread converts one slab at a time

ItemCallback = Callable[[ConversionItem, ItemRecord], None]
"""Called with an item that is finished, and its record."""

BytesCallback = Callable[[int], None]
"""Called with the source bytes of a slab that is finished."""


class _SlabTask(NamedTuple):
    """One slab of a tensor, its number, and its strip."""

    job: TensorJob
    number: int
    strip: OpenStrip
    slab: Slab


class WorkerPool:
    """Threads that convert items, slab by slab, each with its own scratch memory."""

    def __init__(self, items: list[ConversionItem], out: Path, drafts: Path, memory: MemoryPlan) -> None:
        self.items, self.out, self.drafts, self.memory = items, out, drafts, memory
        self._copy_threads = max(1, (os.cpu_count() or 1) // memory.threads)
        self._buffers = OutputBuffers(memory.buffer_bytes)
        self._unhashed: tuple[TensorJob, OpenStrip] | None = None  # waits for another, to be hashed together
        self._lock = Lock()
        self._open_jobs: set[TensorJob] = set()
        self._source_hashes = SourceHashes()
        self._problem: BaseException | None = None
        self._stopped = False

    def run(self, on_item: ItemCallback, on_bytes: BytesCallback) -> None:
        """Convert all items; the first error stops all threads and is raised, and finished items stay.

        The callbacks are called one at a time, from any thread.
        """
        batches = self._steps()
        # Not joined: where Ctrl-C interrupts a join, Python 3.11 takes the thread for ended, and the journal is closed
        # before the thread has recorded the file that it just finished.
        ended = [Event() for _ in range(self.memory.threads)]
        workers = [
            Thread(target=self._run_thread, args=(batches, on_item, on_bytes, event), daemon=True) for event in ended
        ]
        try:
            for worker in workers:
                worker.start()
            for event in ended:
                while not event.wait(0.2):  # wakes up for Ctrl-C
                    pass
        except BaseException as problem:
            self._stop(problem)
            for worker, event in zip(workers, ended, strict=True):
                while worker.ident is not None and not event.wait(0.2):  # others find the pool stopped
                    pass
        finally:
            for job in list(self._open_jobs):
                job.abandon()
        if self._problem is not None:
            raise self._problem

    def _steps(self) -> Iterator[list[_SlabTask]]:
        """Yield the slabs that a thread converts at a time: one of each of two tensors, hashed together.

        Steps are taken in order, and the slabs of a tensor are in consecutive steps. So a thread that waits for its
        turn waits for an earlier step, and the earliest waits for none.
        """
        slab_bytes = self.memory.slab_bytes
        streams = 2 if len(self.items) > 1 and slab_bytes >= _MIN_BYTES_FOR_TWO else 1
        items = iter(self.items)
        for slabs in zip_longest(*[self._iterate_slabs(items, slab_bytes // streams) for _ in range(streams)]):
            yield [task for task in slabs if task is not None]

    def _iterate_slabs(self, items: Iterator[ConversionItem], slab_bytes: int) -> Iterator[_SlabTask]:
        """Yield the slabs of one tensor after the other, taking items from a shared iterator."""
        for item in items:
            slabs = SlabCutter(item.source, item.target, slab_bytes, item.slot.image is not None)
            job = TensorJob(item, slabs, self.out, self.drafts, self._copy_threads, self._buffers)
            self._open_jobs.add(job)
            for number, (strip, slab) in enumerate(job.steps()):
                yield _SlabTask(job, number, strip, slab)

    def _run_thread(
        self, batches: Iterator[list[_SlabTask]], on_item: ItemCallback, on_bytes: BytesCallback, ended: Event
    ) -> None:
        try:
            scratch = Scratch(self.memory.slab_bytes)
            while True:
                with self._lock:
                    batch = None if self._stopped else next(batches, None)
                if batch is None:
                    self._finish_strips([], on_item)
                    return
                scratch.reset()
                hash_pieces(
                    [
                        pieces
                        for job, number, strip, slab in batch
                        for pieces in job.convert_slab(number, strip, slab, scratch)
                    ]
                )
                for task in batch:
                    self._finish_slab(task, on_item, on_bytes)
        except BaseException as problem:
            self._stop(problem)
        finally:
            ended.set()

    def _finish_slab(self, task: _SlabTask, on_item: ItemCallback, on_bytes: BytesCallback) -> None:
        """Report a finished slab; finish the strip that it was the last one of."""
        job, number = task.job, task.number
        if job.finish_slab(task.strip):
            self._finish_strips([(job, task.strip)], on_item)
        total, count = job.item.bytes_in, job.slab_count
        with self._lock:
            on_bytes(total * (number + 1) // count - total * number // count)

    def _finish_strips(self, strips: list[tuple[TensorJob, OpenStrip]], on_item: ItemCallback) -> None:
        """Hash and write strips, and finish the tensors that are complete.

        A strip that is a whole output waits for another one, since two are hashed in little more time than one.
        """
        with self._lock:
            can_wait = all(job.can_be_hashed_later for job, _ in strips)
            if can_wait and self._unhashed is not None:
                strips, self._unhashed = [*strips, self._unhashed], None
            elif can_wait and strips:
                self._unhashed = strips.pop()
        hash_pieces([pieces for job, strip in strips for pieces in job.strip_pieces(strip)])
        for job, strip in strips:
            if job.finish_strip(strip):
                record = job.finish(self._source_hashes)
                with self._lock:
                    self._open_jobs.discard(job)
                    on_item(job.item, record)

    def _stop(self, problem: BaseException) -> None:
        with self._lock:
            self._stopped = True
            self._problem = self._problem or problem
            jobs = list(self._open_jobs)
        for job in jobs:  # so that no thread waits for a piece that never comes
            job.stop_waiting()


ProgressCallback = Callable[["ProgressEvent"], None]
_BASE_MEMORY = 80 << 20  # Python, NumPy and file headers
MIN_SLAB_BYTES = 1 << 16
_RETRIES = 2


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """A progress event ("start", "reused", "bytes", "tensor" or "done"), with the totals so far.

    >>> ProgressEvent("tensor", "wte", 10, 40, 1, 4).bytes_done
    10
    """

    kind: str
    name: str | None
    bytes_done: int
    bytes_total: int
    tensors_done: int
    tensors_total: int

    def to_json(self) -> dict[str, Any]:
        """Return the event as plain data.

        >>> ProgressEvent("start", None, 0, 40, 0, 4).to_json()["kind"]
        'start'
        """
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ConversionReport:
    """The result of a conversion; it is not `complete` while other parts are missing.

    `rounding` has for each converted tensor the number of rounded values, the largest change, and the number of values
    that are NaN, infinite or out of range; `notes` name the tensors that have such values.

    >>> ConversionReport("out", "npy", 4, 0, 0, 96, 608, 0.5, True).converted
    4
    """

    out: str
    to: str
    converted: int
    reused: int
    elsewhere: int
    bytes_in: int
    bytes_out: int
    seconds: float
    complete: bool
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rounding: Mapping[str, Rounding] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data.

        >>> ConversionReport("out", "npy", 4, 0, 0, 96, 608, 0.5, True).to_json()["complete"]
        True
        """
        return asdict(self)


def convert(
    sources: Sources,
    out: FilePath,
    to: str | None = None,
    rules: RuleLines | None = None,
    *,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    resume: bool = False,
    force: bool = False,
    part: tuple[int, int] | None = None,
    executor: Executor | None = None,
    progress: ProgressCallback | None = None,
    follow_symlinks: bool = False,
    **for_all: Any,
) -> ConversionReport:
    """Convert the tensors of files to tiled files at `out`, and return a report.

    Args:
        sources, out, to, rules, follow_symlinks, for_all: as in `plan_conversion`.
        memory: the most bytes of memory to use, however large the tensors are.
        jobs: the number of threads, by default one more than there are cores.
        resume: keep the finished work of an earlier run. An existing `out` is otherwise an error.
        force: replace an existing `out`.
        part: (i, n) converts part i of n, for batch systems.
        executor: distributes tensors over any `concurrent.futures` executor that sees the same files.
        progress: called with a `ProgressEvent`.

    >>> import tempfile, numpy, tilewright as tw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(f"{folder}/m.npz", w=numpy.ones((60, 90), numpy.float32), b=numpy.arange(3))
    ...     report = convert(f"{folder}/m.npz", f"{folder}/out", dtype="bfloat8_b")
    ...     report.converted, tw.open_tensors(f"{folder}/out")["w"].spec
    (2, TensorSpec((60, 90), 'bfloat8_b', 'tile'))
    """
    plan = plan_conversion(sources, out, to, rules, follow_symlinks, **for_all)
    return run_plan(
        plan, memory=memory, jobs=jobs, resume=resume, force=force, part=part, executor=executor, progress=progress
    )


def run_plan(
    plan: ConversionPlan,
    *,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    resume: bool = False,
    force: bool = False,
    part: tuple[int, int] | None = None,
    executor: Executor | None = None,
    progress: ProgressCallback | None = None,
) -> ConversionReport:
    """Run a `plan` and return a report.

    `memory`, `jobs`, `resume`, `force`, `part`, `executor` and `progress` are as in `convert`.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((60, 90), numpy.float32))
    ...     run_plan(plan_conversion(f"{folder}/x.npy", f"{folder}/o.safetensors")).complete
    True
    """
    shares = plan_memory(memory, jobs)
    items = list(plan.items) if part is None else plan.part(*part)
    if part is not None and force:
        raise MemoryConfigError(
            "force cannot be used with part: it would remove other parts; remove the output before starting them"
        )
    folder = WorkFolder(plan.out, plan.is_single_file)
    existing = ExistingOutput(plan, folder)
    existing.validate(resume or part is not None, resume, force)
    started = perf_counter()
    with folder.lock(part):
        existing.validate(resume or part is not None, resume, force)
        done = existing.load_records(force, items, part)
        run = _ConversionRun(plan, items, done, folder, progress)
        if run.pending:
            with folder.journal(part) as journal:
                run.run(journal, shares, executor)
        complete = _finish_conversion(plan, folder, existing, done)
        run.report_progress("done", None)
    elsewhere = 0 if complete else sum([item.key not in done for item in plan.items])
    return ConversionReport(
        str(plan.out),
        plan.to,
        len(run.pending),
        len(items) - len(run.pending),
        elsewhere,
        run.bytes_in,
        sum([item.bytes_out for item in run.pending]),
        perf_counter() - started,
        complete,
        plan.skipped,
        (*plan.notes, *run.note_exceptional()),
        run.rounding(),
    )


def plan_memory(memory: int, jobs: int | None) -> MemoryPlan:
    """Return how `memory` bytes are shared among `jobs` threads: slabs first, then buffers for the strips being made.

    There may be one strip for each slab that a thread converts, two that slabs are taken from, and one to be hashed.

    >>> plan_memory(256 << 20, 4)
    MemoryPlan(threads=4, slab_bytes=25165824, buffer_bytes=7626007)
    """
    if not isinstance(memory, int):
        raise MemoryConfigError(
            f"expected a number of bytes as memory, got {memory!r}; place tensors with shard, grid and buffer, or with"
            " a memory config in rules={'*': {'memory': ...}}"
        )
    if jobs is not None and jobs < 1:
        raise MemoryConfigError(f"expected at least 1 job, got {jobs}")
    threads = jobs or (os.cpu_count() or 1) + 1  # one of them waits for the disk
    available = memory - _BASE_MEMORY if memory >= 2 * _BASE_MEMORY else memory // 2
    threads = max(1, min(threads, available // MIN_SLAB_BYTES))
    if available < MIN_SLAB_BYTES:
        raise MemoryConfigError(f"expected at least {2 * MIN_SLAB_BYTES} bytes of memory, got {memory}")
    slab = min(_MAX_SLAB_BYTES, available // threads)
    buffer = (available - threads * slab) // (2 * threads + 3)
    return MemoryPlan(threads, slab, min(_MAX_BUFFER_BYTES, buffer))


class _ConversionRun:
    """One run of a plan: the pending items, the totals so far, and the progress callback."""

    def __init__(
        self,
        plan: ConversionPlan,
        items: list[ConversionItem],
        done: dict[str, ItemRecord],
        folder: WorkFolder,
        progress: ProgressCallback | None,
    ) -> None:
        self.plan, self.items, self.done, self.folder, self.progress = plan, items, done, folder, progress
        self.pending = [item for item in items if item.key not in done]
        self.bytes_in = sum([item.bytes_in for item in self.pending])
        reused = [item for item in items if item.key in done]
        self.total_bytes, self.total = sum([item.bytes_in for item in items]), len(items)
        self.bytes_done, self.tensors_done = sum([item.bytes_in for item in reused]), len(reused)
        self.report_progress("start", None)
        for item in reused:
            self.report_progress("reused", item.name)

    def rounding(self) -> dict[str, Rounding]:
        """Return how the tensors that were converted were rounded."""
        roundings = {item.name: self.done[item.key].rounding for item in self.pending if item.key in self.done}
        return {name: rounding for name, rounding in roundings.items() if rounding is not None}

    def note_exceptional(self) -> Iterator[str]:
        """Yield notes about values that are NaN, infinite or out of range."""
        finished = [(item, self.done[item.key]) for item in self.items if item.key in self.done]
        copied = [item.recorded.exceptional if item.recorded is not None else {} for item, _ in finished]
        counts = [record.exceptional or recorded for (_, record), recorded in zip(finished, copied, strict=True)]
        return note_exceptional(
            [
                (item.name, exceptional, name_targets(*item.source.through, item.spec.dtype))
                for (item, _), exceptional in zip(finished, counts, strict=True)
            ]
        )

    def report_progress(self, kind: str, name: str | None) -> None:
        """Call the progress callback with an event."""
        if self.progress is not None:
            self.progress(ProgressEvent(kind, name, self.bytes_done, self.total_bytes, self.tensors_done, self.total))

    def add_bytes(self, count: int) -> None:
        """Count source bytes that are converted."""
        self.bytes_done += count
        self.report_progress("bytes", None)

    def run(self, journal: Journal, memory: MemoryPlan, executor: Executor | None) -> None:
        """Convert the pending items, here or on an executor."""
        _check_disk_space(self.plan, self.pending)
        if self.plan.is_single_file:
            _allocate_payload(self.folder, self.plan)

        def add_record(item: ConversionItem, record: ItemRecord) -> None:
            journal.add(item, record)
            self.done[item.key] = record
            self.tensors_done += 1
            self.report_progress("tensor", item.name)

        if executor is None:
            WorkerPool(self.pending, self.plan.out, self.folder.drafts, memory).run(add_record, self.add_bytes)
            return
        for item, record in _run_on_executor(self.pending, executor, self.plan.out, self.folder.drafts, memory):
            add_record(item, record)
            self.add_bytes(item.bytes_in)


def convert_item(item: ConversionItem, out: Path, drafts: Path, memory: MemoryPlan, call_id: str = "") -> ItemRecord:
    """Convert an item here and return its record; this is what travels to a worker.

    `call_id` makes the call unique (see `submit_unique`).
    """
    records: list[ItemRecord] = []
    WorkerPool([item], out, drafts, memory).run(lambda _, record: records.append(record), lambda _: None)
    return records[0]


def _run_on_executor(
    items: list[ConversionItem], executor: Executor, out: Path, drafts: Path, memory: MemoryPlan
) -> Iterator[tuple[ConversionItem, ItemRecord]]:
    """Yield items as an executor finishes them; failures are retried, perhaps on another worker."""
    waiting = iter(sorted(items, key=lambda item: -item.bytes_in))  # largest first
    running: dict[Future[ItemRecord], tuple[ConversionItem, int]] = {}

    def submit(item: ConversionItem, attempt: int) -> None:
        where = (out.absolute(), drafts.absolute())
        running[submit_unique(executor, convert_item, item, *where, memory)] = (item, attempt)

    try:
        while True:
            most = 2 * count_workers(executor) + 2  # a cluster may have grown
            while len(running) < most and (item := next(waiting, None)) is not None:
                submit(item, 0)
            if not running:
                return
            for future in wait(list(running), return_when=FIRST_COMPLETED).done:
                item, attempt = running.pop(future)
                problem = future.exception()
                if isinstance(problem, BrokenExecutor):
                    raise TransferError(
                        f"the executor broke ({type(problem).__name__}: {problem}): a worker may have been killed or"
                        " run out of memory; convert again with resume and a new executor"
                    ) from problem
                if problem is None:
                    yield item, future.result()
                elif attempt < _RETRIES and not isinstance(problem, TilewrightError):
                    submit(item, attempt + 1)
                else:
                    raise problem
    finally:
        wait([future for future in running if not future.cancel()])  # cancelled futures never run


def _check_disk_space(plan: ConversionPlan, pending: list[ConversionItem]) -> None:
    """Raise if the disk is too full for the pending output."""
    need = sum([item.bytes_out for item in pending])
    target = plan.out if plan.out.is_dir() else plan.out.parent
    free = shutil.disk_usage(target).free
    if free < need:
        raise OSError(errno.ENOSPC, f"{need} bytes needed, but the disk has {free} left", str(plan.out))


def _allocate_payload(folder: WorkFolder, plan: ConversionPlan) -> None:
    """Create or resize the draft of a single output file, which all tensors are written to."""
    path = folder.drafts / PAYLOAD
    with path.open("ab"):
        pass
    if path.stat().st_size != plan.items[-1].slot.size:
        os.truncate(path, plan.items[-1].slot.size)


def _finish_conversion(
    plan: ConversionPlan, folder: WorkFolder, existing: ExistingOutput, done: dict[str, ItemRecord]
) -> bool:
    """Return whether the conversion is complete; if so, write the manifest and remove the work folder."""
    with folder.finish_lock():
        if (
            existing.is_finished and not (folder.drafts / PAYLOAD).exists()
        ):  # it was complete, or another part finished it
            folder.remove()
            return True
        records = existing.records()
        finished = {**records, **done}
        if any(item.key not in finished for item in plan.items):
            return False
        others = [item for item in plan.items if item.slot.shared and item.key not in done]
        if not all(is_in_payload(item, finished[item.key], folder) for item in others):
            return False  # results of other parts are gone; they will be converted again
        manifest = plan.manifest(finished)
        if plan.is_single_file:
            _allocate_payload(folder, plan)
            with (folder.drafts / PAYLOAD).open("r+b", buffering=0) as opened:
                file = OutputFile(opened.fileno(), plan.out)
                file.write(0, plan.head(manifest))
                file.sync()
            rename_over(folder.drafts / PAYLOAD, plan.out)
        else:
            existing.remove_orphans()
            for name, content in plan.beside.items():
                write_file(plan.out / name, content, folder=folder.drafts)
            write_file(plan.out / MANIFEST_NAME, manifest.to_bytes(), folder=folder.drafts)
        folder.remove()
    return True

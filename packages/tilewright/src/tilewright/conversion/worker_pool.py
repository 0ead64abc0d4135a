# SPDX-License-Identifier: Apache-2.0
"""`WorkerPool`: threads that convert tensors, slab by slab: while one waits for the disk, others convert."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from threading import Event, Lock, Thread
from typing import NamedTuple

from .conversion_item import ConversionItem, ItemRecord
from .job_memory import MemoryPlan, OutputBuffers, Scratch
from .output_file import SourceHashes, hash_pieces
from .slabs import Slab, SlabCutter
from .tensor_job import OpenStrip, TensorJob

_MIN_BYTES_FOR_TWO = 1 << 20  # scratch memory below which a thread converts one slab at a time

ItemCallback = Callable[[ConversionItem, ItemRecord], None]
"""Called with an item that is finished, and its record."""

BytesCallback = Callable[[int], None]
"""Called with the source bytes of a slab that is finished."""


class _SlabStep(NamedTuple):
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
        steps = self._steps()
        # Not joined: where Ctrl-C interrupts a join, Python 3.11 takes the thread for ended, and the journal is closed
        # before the thread has recorded the file that it just finished.
        ended = [Event() for _ in range(self.memory.threads)]
        workers = [
            Thread(target=self._run_thread, args=(steps, on_item, on_bytes, event), daemon=True) for event in ended
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

    def _steps(self) -> Iterator[list[_SlabStep]]:
        """Yield the slabs that a thread converts at a time: one of each of two tensors, hashed together.

        Steps are taken in order, and the slabs of a tensor are in consecutive steps. So a thread that waits for its
        turn waits for an earlier step, and the earliest waits for none.
        """
        slab_bytes = self.memory.slab_bytes
        streams = 2 if len(self.items) > 1 and slab_bytes >= _MIN_BYTES_FOR_TWO else 1
        items = iter(self.items)
        for slabs in zip_longest(*[self._iterate_slabs(items, slab_bytes // streams) for _ in range(streams)]):
            yield [step for step in slabs if step is not None]

    def _iterate_slabs(self, items: Iterator[ConversionItem], slab_bytes: int) -> Iterator[_SlabStep]:
        """Yield the slabs of one tensor after the other, taking items from a shared iterator."""
        for item in items:
            slabs = SlabCutter(item.source, item.target, slab_bytes, item.slot.image is not None)
            job = TensorJob(item, slabs, self.out, self.drafts, self._copy_threads, self._buffers)
            self._open_jobs.add(job)
            for number, (strip, slab) in enumerate(job.steps()):
                yield _SlabStep(job, number, strip, slab)

    def _run_thread(
        self, steps: Iterator[list[_SlabStep]], on_item: ItemCallback, on_bytes: BytesCallback, ended: Event
    ) -> None:
        try:
            scratch = Scratch(self.memory.slab_bytes)
            while True:
                with self._lock:
                    step = None if self._stopped else next(steps, None)
                if step is None:
                    self._finish_strips([], on_item)
                    return
                scratch.reset()
                hash_pieces(
                    [
                        pieces
                        for job, number, strip, slab in step
                        for pieces in job.convert_slab(number, strip, slab, scratch)
                    ]
                )
                for each in step:
                    self._finish_slab(each, on_item, on_bytes)
        except BaseException as problem:
            self._stop(problem)
        finally:
            ended.set()

    def _finish_slab(self, step: _SlabStep, on_item: ItemCallback, on_bytes: BytesCallback) -> None:
        """Report a finished slab; finish the strip that it was the last one of."""
        job, number = step.job, step.number
        if job.finish_slab(step.strip):
            self._finish_strips([(job, step.strip)], on_item)
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

# SPDX-License-Identifier: Apache-2.0
"""The engine: threads that take slab after slab. While one waits for the disk, others convert, all at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from threading import Lock, Thread

from ..layout.box import Box
from .items import Done, Item
from .rolling_hash import hash_together
from .slabs import Slabs
from .work import Room, Work

_LEAST_FOR_TWO = 1 << 20  # bytes of memory of a thread below which it has one slab at a time
Slab = tuple[Work, int, Box]
Report = Callable[[Item, Done], None]
Advance = Callable[[int], None]


class Engine:
    """Threads that convert items, slab by slab, each with its own memory of `slab_bytes`."""

    def __init__(self, items: list[Item], out: Path, parts: Path, jobs: int, slab_bytes: int) -> None:
        self.items, self.out, self.parts, self.jobs, self.slab_bytes = items, out, parts, jobs, slab_bytes
        self.threads = max(1, (os.cpu_count() or 1) // jobs)
        self._lock = Lock()
        self._open: set[Work] = set()
        self._problem: BaseException | None = None
        self._stopped = False

    def run(self, report: Report, advance: Advance) -> None:
        """Convert everything; the first error stops all threads and is raised, and what was finished stays.

        `report` is called for every item that is done, `advance` with the bytes of the source of every slab; one call
        at a time, from any thread.
        """
        steps = self._steps()
        workers = [Thread(target=self._work, args=(steps, report, advance), daemon=True) for _ in range(self.jobs)]
        try:
            for each in workers:
                each.start()
            for each in workers:
                while each.is_alive():
                    each.join(0.2)  # so that Ctrl-C is heard
        except BaseException as problem:
            self._fail(problem)
            for each in workers:
                with suppress(RuntimeError):  # it has not begun, and will find that all is stopped
                    each.join()
        finally:
            for work in list(self._open):
                work.give_up()
        if self._problem is not None:
            raise self._problem

    def _steps(self) -> Iterator[list[Slab]]:
        """Yield what a thread does at a time: a slab each of two tensors, since two hashes go better than one.

        Steps are taken in order, and the slabs of a tensor are in steps one after the other. So whoever waits for its
        turn waits for an earlier step, and the earliest waits for nobody.
        """
        lanes = 2 if len(self.items) > 1 and self.slab_bytes >= _LEAST_FOR_TWO else 1
        items = iter(self.items)
        for slabs in zip_longest(*[self._lane(items, self.slab_bytes // lanes) for _ in range(lanes)]):
            yield [each for each in slabs if each is not None]

    def _lane(self, items: Iterator[Item], slab_bytes: int) -> Iterator[Slab]:
        """Yield the slabs of one tensor after the other, taking the next that no other lane has taken."""
        for item in items:
            slabs = Slabs(item.source, item.target, slab_bytes, item.slot.image is not None)
            work = Work(item, slabs, self.out, self.parts, self.threads)
            self._open.add(work)
            work.start()
            for number, box in enumerate(slabs):
                yield work, number, box

    def _work(self, steps: Iterator[list[Slab]], report: Report, advance: Advance) -> None:
        try:
            room = Room(self.slab_bytes)
            while True:
                with self._lock:
                    step = None if self._stopped else next(steps, None)
                if step is None:
                    return
                room.reset()
                hash_together([(work.hashes, number, work.convert(box, room)) for work, number, box in step])
                for work, number, _ in step:
                    self._over(work, number, report, advance)
        except BaseException as problem:
            self._fail(problem)

    def _over(self, work: Work, number: int, report: Report, advance: Advance) -> None:
        """Finish a tensor after its last slab, and say how far the work is."""
        if work.is_last():
            done = work.finish()
            with self._lock:
                self._open.discard(work)
                report(work.item, done)
        share = work.item.bytes_in * (number + 1) // len(work.slabs) - work.item.bytes_in * number // len(work.slabs)
        with self._lock:
            advance(share)

    def _fail(self, problem: BaseException) -> None:
        with self._lock:
            self._stopped = True
            self._problem = self._problem or problem
            waiting = list(self._open)
        for work in waiting:  # nobody must wait for a piece that never comes
            work.hashes.give_up()

# SPDX-License-Identifier: Apache-2.0
"""The engine: threads that take slab after slab. While one waits for the disk, others convert, all at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock, Thread

from ..files.boxes import Box
from .items import Done, Item
from .slabs import Slabs
from .work import Room, Work

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
        pieces = self._pieces()
        workers = [Thread(target=self._work, args=(pieces, report, advance), daemon=True) for _ in range(self.jobs)]
        try:
            for each in workers:
                each.start()
            for each in workers:
                while each.is_alive():
                    each.join(0.2)  # so that Ctrl-C is heard
        except BaseException as problem:
            self._fail(problem)
            for each in workers:
                each.join()
        finally:
            for work in list(self._open):
                work.give_up()
        if self._problem is not None:
            raise self._problem

    def _pieces(self) -> Iterator[tuple[Work, int, Box]]:
        for item in self.items:
            slabs = Slabs(item.source, item.target, self.slab_bytes, item.slot.image is not None)
            work = Work(item, slabs, self.out, self.parts, self.threads)
            self._open.add(work)
            for number, box in enumerate(slabs):
                yield work, number, box

    def _work(self, pieces: Iterator[tuple[Work, int, Box]], report: Report, advance: Advance) -> None:
        try:
            room = Room(self.slab_bytes)
            while True:
                with self._lock:
                    found = None if self._stopped else next(pieces, None)
                if found is None:
                    return
                work, number, box = found
                if work.convert(number, box, room):
                    done = work.finish()
                    with self._lock:
                        self._open.discard(work)
                        report(work.item, done)
                share = work.item.bytes_in * (number + 1) // len(work.slabs)
                share -= work.item.bytes_in * number // len(work.slabs)
                with self._lock:
                    advance(share)
        except BaseException as problem:
            self._fail(problem)

    def _fail(self, problem: BaseException) -> None:
        with self._lock:
            self._stopped = True
            self._problem = self._problem or problem
            waiting = list(self._open)
        for work in waiting:  # nobody must wait for a piece that never comes
            work.hashes.give_up()

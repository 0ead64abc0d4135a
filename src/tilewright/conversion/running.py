# SPDX-License-Identifier: Apache-2.0
"""`convert`: a plan carried out. What is done is kept, what is missing is made, the result appears when complete."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from ..atomic import rename_over, write_file
from ..errors import MemoryConfigError, TilewrightError, TransferError
from ..files.conversion_manifest import MANIFEST_NAME
from ..tiling.executors import count_workers, submit_unique
from .engine import Engine
from .items import Done, Item
from .output_file import OutputFile
from .plan import ConversionPlan, plan_conversion
from .previous import Previous, is_in_payload
from .workplace import PAYLOAD, Journal, Workplace

Progress = Callable[["Event"], None]
DEFAULT_MEMORY = 1 << 30
_INTERPRETER = 80 << 20  # what Python, NumPy and the headers of files take besides the slabs
_LARGEST_SLAB = 12 << 20  # larger ones are no faster
LEAST_SLAB = 1 << 16
_RETRIES = 2


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: "start", "kept", "bytes", "tensor" or "done", with how far the whole is.

    >>> Event("tensor", "wte", 10, 40, 1, 4).bytes_done
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

        >>> Event("start", None, 0, 40, 0, 4).to_json()["kind"]
        'start'
        """
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ConversionReport:
    """What a conversion did. It is not `complete` while other parts are missing.

    >>> ConversionReport("out", "npy", 4, 0, 0, 96, 608, 0.5, True).converted
    4
    """

    out: str
    to: str
    converted: int
    kept: int
    elsewhere: int
    bytes_in: int
    bytes_out: int
    seconds: float
    complete: bool
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data.

        >>> ConversionReport("out", "npy", 4, 0, 0, 96, 608, 0.5, True).to_json()["complete"]
        True
        """
        return asdict(self)


def convert(
    sources: Any,
    out: Any,
    to: str | None = None,
    rules: Any = None,
    *,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    resume: bool = False,
    force: bool = False,
    part: tuple[int, int] | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    follow_symlinks: bool = False,
    **for_all: Any,
) -> ConversionReport:
    """Return what was done to convert the tensors of files to tiled files at `out`.

    See `plan_conversion` for sources, kinds of output and rules. Memory stays below `memory` bytes, whatever the size
    of the tensors; `jobs` threads work, by default one more than there are cores. `resume` keeps what an earlier run
    finished; `force` replaces what is there; without them an `out` that exists is refused. `part` (i, n) does one of n
    parts, for batch systems; `executor` spreads tensors over any `concurrent.futures` executor that sees the same
    files.

    >>> import tempfile, numpy, tilewright as tw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(f"{folder}/m.npz", w=numpy.ones((60, 90), numpy.float32), b=numpy.arange(3))
    ...     report = convert(f"{folder}/m.npz", f"{folder}/out", dtype="bfloat8_b")
    ...     report.converted, tw.open_tensors(f"{folder}/out")["w"].spec
    (2, TensorSpec((60, 90), 'bfloat8_b', 'tile'))
    """
    plan = plan_conversion(sources, out, to, rules, follow_symlinks, **for_all)
    return run_plan(
        plan,
        memory=memory,
        jobs=jobs,
        resume=resume,
        force=force,
        part=part,
        executor=executor,
        progress=progress,
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
    progress: Progress | None = None,
) -> ConversionReport:
    """Return what was done to carry out a plan; the arguments are those of `convert`.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((60, 90), numpy.float32))
    ...     run_plan(plan_conversion(f"{folder}/x.npy", f"{folder}/o.safetensors")).complete
    True
    """
    threads, slab = budget(memory, jobs)
    items = list(plan.items) if part is None else plan.part(*part)
    if part is not None and force:
        raise MemoryConfigError(
            "force would remove what other parts did; remove the output first, then start the parts"
        )
    place = Workplace(plan.out, plan.single)
    previous = Previous(plan, place)
    previous.check(resume or part is not None, resume, force)
    started = perf_counter()
    with place.locked(part):
        previous.check(resume or part is not None, resume, force)
        done = previous.taken_over(force, items, part)
        run = _Run(plan, items, done, place, progress)
        if run.todo:
            with place.journal(part) as journal:
                run.go(journal, threads, slab, executor)
        complete = _finish(plan, place, previous, done)
        run.tell("done", None)
    elsewhere = 0 if complete else sum([item.key not in done for item in plan.items])
    return ConversionReport(
        str(plan.out),
        plan.to,
        len(run.todo),
        len(items) - len(run.todo),
        elsewhere,
        run.bytes_in,
        sum([item.bytes_out for item in run.todo]),
        perf_counter() - started,
        complete,
        plan.skipped,
        plan.notes,
    )


def budget(memory: int, jobs: int | None) -> tuple[int, int]:
    """Return how many threads work, and the bytes of a slab of each.

    >>> budget(256 << 20, 4)
    (4, 12582912)
    """
    if jobs is not None and jobs < 1:
        raise MemoryConfigError(f"{jobs} jobs do nothing; use 1 or more")
    threads = jobs or (os.cpu_count() or 1) + 1  # one of them waits for the disk
    room = memory - _INTERPRETER if memory >= 2 * _INTERPRETER else memory // 2
    threads = max(1, min(threads, room // LEAST_SLAB))
    if room < LEAST_SLAB:
        raise MemoryConfigError(f"{memory} bytes of memory are too few; give at least {2 * LEAST_SLAB}")
    return threads, min(_LARGEST_SLAB, room // threads)


class _Run:
    """One run: what is to do, how far it is, and who is told."""

    def __init__(
        self,
        plan: ConversionPlan,
        items: list[Item],
        done: dict[str, Done],
        place: Workplace,
        progress: Progress | None,
    ) -> None:
        self.plan, self.done, self.place, self.progress = plan, done, place, progress
        self.todo = [item for item in items if item.key not in done]
        self.bytes_in = sum([item.bytes_in for item in self.todo])
        kept = [item for item in items if item.key in done]
        self.total_bytes, self.total = sum([item.bytes_in for item in items]), len(items)
        self.bytes_done, self.tensors_done = sum([item.bytes_in for item in kept]), len(kept)
        self.tell("start", None)
        for item in kept:
            self.tell("kept", item.name)

    def tell(self, kind: str, name: str | None) -> None:
        if self.progress is not None:
            self.progress(Event(kind, name, self.bytes_done, self.total_bytes, self.tensors_done, self.total))

    def advance(self, count: int) -> None:
        self.bytes_done += count
        self.tell("bytes", None)

    def go(self, journal: Journal, threads: int, slab: int, executor: Executor | None) -> None:
        _check_space(self.plan, self.todo)
        if self.plan.single:
            _make_payload(self.place, self.plan)

        def report(item: Item, done: Done) -> None:
            journal.add({**done.to_json(), "file": item.slot.file, "beside": list(item.slot.beside)})
            self.done[item.key] = done
            self.tensors_done += 1
            self.tell("tensor", item.name)

        if executor is None:
            Engine(self.todo, self.plan.out, self.place.parts, threads, slab).run(report, self.advance)
            return
        for item, record in _spread(self.todo, executor, self.plan.out, self.place.parts, threads, slab):
            report(item, record)
            self.advance(item.bytes_in)


def convert_item(item: Item, out: Path, parts: Path, jobs: int, slab: int, call: str = "") -> Done:
    """Return the record of an item after it was converted here. This is what travels to a worker.

    `call` only makes a call unlike others (see `submit_unique`).
    """
    found: list[Done] = []
    Engine([item], out, parts, jobs, slab).run(lambda _, done: found.append(done), lambda _: None)
    return found[0]


def _spread(
    items: list[Item], executor: Executor, out: Path, parts: Path, jobs: int, slab: int
) -> Iterator[tuple[Item, Done]]:
    """Yield items as an executor finishes them; what fails is tried again, perhaps on another worker."""
    waiting = iter(sorted(items, key=lambda item: -item.bytes_in))  # the largest must not come last
    under_way: dict[Future[Done], tuple[Item, int]] = {}

    def submit(item: Item, attempt: int) -> None:
        where = (out.absolute(), parts.absolute())
        under_way[submit_unique(executor, convert_item, item, *where, jobs, slab)] = (item, attempt)

    try:
        while True:
            most = 2 * count_workers(executor) + 2  # a cluster may have grown meanwhile
            while len(under_way) < most and (item := next(waiting, None)) is not None:
                submit(item, 0)
            if not under_way:
                return
            for future in wait(list(under_way), return_when=FIRST_COMPLETED).done:
                item, attempt = under_way.pop(future)
                problem = future.exception()
                if isinstance(problem, BrokenExecutor):
                    raise TransferError(
                        f"the executor is broken: {type(problem).__name__}: {problem}; a worker may have been killed,"
                        " or have run out of memory. Convert again with a new executor: what is done is not done again"
                    ) from problem
                if problem is None:
                    yield item, future.result()
                elif attempt < _RETRIES and not isinstance(problem, TilewrightError):
                    submit(item, attempt + 1)
                else:
                    raise problem
    finally:
        wait([future for future in under_way if not future.cancel()])  # what is cancelled in time never runs


def _check_space(plan: ConversionPlan, todo: list[Item]) -> None:
    """Raise if the disk has not enough room for what is to be written."""
    need = sum([item.bytes_out for item in todo])
    place = plan.out if plan.out.is_dir() else plan.out.parent
    free = shutil.disk_usage(place).free
    if free < need:
        raise OSError(errno.ENOSPC, f"{need} bytes are to be written, and the disk has {free} left", str(plan.out))


def _make_payload(place: Workplace, plan: ConversionPlan) -> None:
    """Make the file that all tensors of a single file are written to, each at its place."""
    path = place.parts / PAYLOAD
    with path.open("ab"):
        pass
    if path.stat().st_size != plan.items[-1].slot.size:
        os.truncate(path, plan.items[-1].slot.size)


def _finish(plan: ConversionPlan, place: Workplace, previous: Previous, done: dict[str, Done]) -> bool:
    """Return whether the conversion is complete; if it is, the manifest is written and the workplace removed."""
    with place.finishing():
        if previous.is_finished and not (place.parts / PAYLOAD).exists():  # it was complete, or another part is done
            place.remove()
            return True
        records = previous.records()
        known = {**records, **done}
        if any(item.key not in known for item in plan.items):
            return False
        others = [item for item in plan.items if item.slot.shared and item.key not in done]
        if not all(is_in_payload(item, known[item.key], place) for item in others):
            return False  # what other parts once did is gone; they will do it again
        manifest = plan.manifest(known)
        if plan.single:
            _make_payload(place, plan)
            with (place.parts / PAYLOAD).open("r+b", buffering=0) as opened:
                file = OutputFile(opened.fileno(), plan.out)
                file.write(0, plan.head(manifest))
                file.sync()
            rename_over(place.parts / PAYLOAD, plan.out)
        else:
            previous.remove_orphans()
            write_file(plan.out / MANIFEST_NAME, manifest.to_bytes(), folder=place.parts)
        place.remove()
    return True

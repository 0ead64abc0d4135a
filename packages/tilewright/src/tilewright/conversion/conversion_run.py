# SPDX-License-Identifier: Apache-2.0
"""`convert`: runs a conversion plan; finished tensors are reused, and the result appears when it is complete."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from ..atomic import rename_over, write_file
from ..errors import MemoryConfigError, TilewrightError, TransferError
from ..files.conversion_manifest import MANIFEST_NAME
from ..files.source_file import FilePath
from ..tiling.plan_executor import count_workers, submit_unique
from .conversion_item import PAYLOAD, ConversionItem, ItemRecord
from .conversion_plan import ConversionPlan, Sources, plan_conversion
from .exactness import Rounding, name_targets, note_exceptional
from .job_memory import MemoryPlan
from .output_file import OutputFile
from .work_folder import ExistingOutput, Journal, WorkFolder, is_in_payload
from .worker_pool import WorkerPool

ProgressCallback = Callable[["ProgressEvent"], None]
DEFAULT_MEMORY = 1 << 30
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
    """What a conversion did; it is not `complete` while other parts are missing.

    `rounding` says for each tensor that was converted how many of its values were rounded, and by how much at most,
    and how many are NaN, infinite or out of range; `notes` name the tensors that have such values.

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
    rules: Any = None,
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
        sources, out, to, rules, follow_symlinks, for_all: those of `plan_conversion`.
        memory: the most bytes of memory to use, however large the tensors are.
        jobs: the number of threads, by default one more than there are cores.
        resume: keep what an earlier run finished. An existing `out` is otherwise an error.
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

    `memory`, `jobs`, `resume`, `force`, `part`, `executor` and `progress` are those of `convert`.

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
    """Return how `memory` bytes are shared among `jobs` threads.

    >>> plan_memory(256 << 20, 4)
    MemoryPlan(threads=4, slab_bytes=25165824, buffer_bytes=7626007)
    """
    if not isinstance(memory, int):
        raise MemoryConfigError(
            f"memory is the most bytes to use, got {memory!r}; place tensors with shard, grid and buffer, or with a"
            " memory config in rules={'*': {'memory': ...}}"
        )
    if jobs is not None and jobs < 1:
        raise MemoryConfigError(f"expected at least 1 job, got {jobs}")
    threads = jobs or (os.cpu_count() or 1) + 1  # one of them waits for the disk
    available = memory - _BASE_MEMORY if memory >= 2 * _BASE_MEMORY else memory // 2
    threads = max(1, min(threads, available // MIN_SLAB_BYTES))
    if available < MIN_SLAB_BYTES:
        raise MemoryConfigError(f"expected at least {2 * MIN_SLAB_BYTES} bytes of memory, got {memory}")
    return MemoryPlan.of(threads, available)


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
        known = {item.name: self.done[item.key].rounding for item in self.pending if item.key in self.done}
        return {name: rounding for name, rounding in known.items() if rounding is not None}

    def note_exceptional(self) -> Iterator[str]:
        """Yield notes about values that are NaN, infinite or out of range."""
        known = [(item, self.done[item.key]) for item in self.items if item.key in self.done]
        copied = [item.recorded.exceptional if item.recorded is not None else {} for item, _ in known]
        counts = [record.exceptional or other for (_, record), other in zip(known, copied, strict=True)]
        return note_exceptional(
            [
                (item.name, each, name_targets(*item.source.through, item.spec.dtype))
                for (item, _), each in zip(known, counts, strict=True)
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
        raise OSError(errno.ENOSPC, f"{need} bytes are to be written, but the disk has {free} left", str(plan.out))


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
        known = {**records, **done}
        if any(item.key not in known for item in plan.items):
            return False
        others = [item for item in plan.items if item.slot.shared and item.key not in done]
        if not all(is_in_payload(item, known[item.key], folder) for item in others):
            return False  # results of other parts are gone; they will be converted again
        manifest = plan.manifest(known)
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

# SPDX-License-Identifier: Apache-2.0
"""The audit of a run: a graph report or a database against the model, and its memory over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from .._text import count_of
from ..files import GraphReport, PageBatch, read_graph_report
from ..memory import Chip
from ..severity import Severity
from .address_check import find_overlaps, replay_addresses
from .advice import find_idle_tensors, note_idle_tensors
from .audit_report import AuditReport
from .buffer_check import BufferCheck, list_live
from .clash_check import find_clashes
from .database_check import check_database
from .database_run import find_failures, read_run
from .finding import AuditFinding, rank_findings
from .operation_check import check_call
from .page_check import PageCheck
from .report_chip import candidate_chips, name_machine
from .run import KNOWN_FIELDS, Run, build_run
from .seen_reshards import find_reshards, note_reshards
from .tensor_specs import SpecReader
from .timeline import build_timeline

_SAMPLE = 200  # buffers that decide between chips


def audit_graph(path: Path, chip: Chip | None = None) -> AuditReport:
    """Return the audit of the graph report at `path`, on the `chip` of its devices or another one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = Path(folder, "report.json")
    ...     _ = report.write_text('[{"counter": 0, "node_type": "capture_start"}]')
    ...     audit_graph(report, Chip.named("n150")).counts["buffers"]
    0
    """
    report = read_graph_report(path)
    run = build_run(report.nodes)
    candidates = candidate_chips(report.devices, report.boards, count_devices(report))
    target, notes = (chip, []) if chip is not None else _select_chip(run, candidates)
    result = _RunAudit(run, target)
    result.notes += [*notes, *_note_unread(report)]
    result.facts += _describe_mesh(report, result)
    result.check_pages(report)
    calls = {call.number: call for call in run.calls}
    live = list_live(run, result.checked)
    for number, rows in report.read_operation_buffers():
        if number in calls:
            result.findings += check_call(calls[number], rows, live[number])
    if report.skipped:
        result.notes.append(_scope_note(f"{report.skipped} entries of the graph are no nodes and were left out"))
    return result.build(path, "graph report")


def audit_database(path: Path, chip: Chip | None = None) -> AuditReport:
    """Return the audit of the database of ttnn-visualizer at `path`, on the `chip` of its devices or another one.

    >>> import tempfile
    >>> import tilewright as tw
    >>> from tilewright.ttnn.visualizer_report import write_visualizer_report
    >>> allocator = tw.Allocator("wormhole_n150")
    >>> _ = allocator.allocate(tw.TensorSpec((512, 512), "bfloat16", "tile", memory="l1", chip="wormhole_n150"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     audit_database(write_visualizer_report(allocator, folder) / "db.sqlite").clean
    True
    """
    database = read_run(path)
    target, notes = (chip, []) if chip is not None else _select_chip(database.run, candidate_chips(database.devices))
    result = _RunAudit(database.run, target)
    result.notes += [*notes, *database.notes]
    result.findings += [*find_failures(database), *check_database(database, result.checked, SpecReader(target))]
    return result.build(path, "database")


class _RunAudit:
    """The audit of a run on a chip, as far as it goes without pages and lists."""

    def __init__(self, run: Run, chip: Chip) -> None:
        self.run, self.chip, self.reader = run, chip, SpecReader(chip)
        self.checked, self.findings = BufferCheck(run, self.reader).check_all()
        self.notes: list[AuditFinding] = []
        self.facts: list[tuple[str, str]] = []
        self.pages = 0
        self.findings += _find_aborted(run)
        self.findings += find_overlaps(run, self.checked, chip)
        self.replay = replay_addresses(run, self.checked, chip)
        self.devices = run.on_each_device()
        for part in self.devices.values() or [run]:
            self.findings += find_clashes(part, self.checked, chip, self.replay.predicted)
        timelines = {device: build_timeline(part, self.checked, chip) for device, part in self._distinct_devices()}
        self.busiest = max(timelines, key=lambda device: timelines[device].peaks.total)
        self.timeline = timelines[self.busiest]
        self.reshards = find_reshards(run, self.reader)

    def _distinct_devices(self) -> Iterator[tuple[int, Run]]:
        """Yield a device for each way in which devices use L1; on a mesh nearly all do the same."""
        seen = set()
        for device, part in self.devices.items() or [(0, self.run)]:
            use = tuple(
                [(local.kind, local.size, local.cores, self.run.call_at(local.start)) for local in part.local_buffers]
            )
            if use not in seen:
                seen.add(use)
                yield device, part

    def check_pages(self, report: GraphReport) -> None:
        """Compare the pages of all allocations, and those at the end of the run."""
        by_number = {one.buffer.number: one for one in self.checked}
        placed = [one for one in self.checked if one.buffer.memory.is_l1 and one.buffer.is_placed]
        if "buffer_pages_by_address" in report.sections:
            check = PageCheck(self.run)
            for batch in report.read_pages():
                check.add(batch, by_number.get(batch.owner if batch.owner is not None else -1))
            self.findings += check.findings([one for one in placed if one.buffer.allocation is not None])
            self.pages += check.pages
        if "buffer_pages" in report.sections:
            check = PageCheck(self.run)
            final = {one.buffer.address: one for one in placed if one.buffer.end is None}
            for batch in report.read_final_pages():
                for address, part in _split_by_address(batch):
                    check.add(part, final.get(address))
            self.findings += check.findings([one for one in final.values() if one.buffer.allocation is not None])
            self.pages += check.pages

    def build(self, path: Path, kind: str) -> AuditReport:
        """Return the report of all that was found."""
        findings = [*self.findings, *self.replay.findings, *self.notes, *self._list_notes()]
        counts = {
            "calls": len(self.run.calls),
            "buffers": len(self.checked),
            "pages": self.pages,
            "addresses": self.replay.compared,
            "predicted_addresses": self.replay.matching,
        }
        compared = ", ".join([count_of(counts[f"{name}s"], name) for name in ("call", "buffer", "page")])
        addresses = "1 address" if counts["addresses"] == 1 else f"{counts['addresses']} addresses"
        matched = f"{counts['predicted_addresses']} of them as predicted"
        facts = (*self.facts, ("compared", f"{compared}, {addresses}, {matched}"))
        ranked = rank_findings(_without_repeats(findings))
        return AuditReport(
            path,
            kind,
            self.chip,
            tuple([finding for finding in ranked if finding.severity is not Severity.NOTE]),
            tuple([finding for finding in ranked if finding.severity is Severity.NOTE]),
            self.timeline,
            tuple(self.reshards),
            counts,
            facts,
        )

    def _list_notes(self) -> Iterator[AuditFinding]:
        idle = find_idle_tensors(self.run, self.checked)
        yield from note_idle_tensors(self.run, idle, self.timeline)
        yield from note_reshards(self.reshards, self.run)
        if self.checked and not self.run.is_placed:
            yield _scope_note("the run placed nothing: every address is 0, and only sizes were compared")
        hits = sum([node.params.get("program_cache_hit") is True for node in self.run.nodes])
        if hits:
            yield _scope_note(
                f"{hits} programs came from the program cache: their circular buffers are not in the report, and peaks"
                " are without them"
            )


def count_devices(report: GraphReport) -> int:
    """Return the devices that tensors of a report are on, or else those that it lists.

    >>> from ..files.source_file import as_source_file
    >>> count_devices(GraphReport(as_source_file(__file__), ()))
    0
    """
    held = [node.text("device_tensors").count('"device_id"') for node in report.nodes if node.kind == "tensor"]
    return max(held, default=0) or len(report.devices)


def _describe_mesh(report: GraphReport, audit: _RunAudit) -> list[tuple[str, str]]:
    """Return the line about the devices of a run, if there are several."""
    count = count_devices(report)
    if count < 2:
        return []
    machine = name_machine(audit.chip, count)
    named = f"{machine}, {count} devices" if machine else f"{count} devices"
    if len(audit.devices) < 2:
        return [("mesh", f"{named}, of which the graph has one")]
    return [("mesh", f"{named}; circular buffers are counted on the fullest, device {audit.busiest}")]


def _note_unread(report: GraphReport) -> Iterator[AuditFinding]:
    """Yield what is in a report and not understood."""
    kinds = Counter(node.kind for node in report.nodes if node.kind not in KNOWN_FIELDS)
    for kind, count in kinds.items():
        yield _scope_note(f"{count_of(count, 'node')} of the unknown type {kind!r} left out")
    fields = dict.fromkeys(
        f"{node.kind}.{name}"
        for node in report.nodes
        if node.kind in KNOWN_FIELDS
        for name in sorted(node.params.keys() - KNOWN_FIELDS[node.kind])
    )
    if fields:
        yield _scope_note(f"unknown parameters of nodes were not read: {', '.join(fields)}")
    if report.unread:
        yield _scope_note(f"unknown sections of the report were not read: {', '.join(report.unread)}")


def _find_aborted(run: Run) -> Iterator[AuditFinding]:
    """Yield the calls that the capture saw fail."""
    for node in run.nodes:
        if node.kind == "function_end" and node.text("aborted") == "true":
            name = node.text("name")
            yield AuditFinding(
                "failed call",
                f"{name} raised an error and was aborted",
                node=node.number,
                call=name,
                remedy="see the error in the log of the run",
            )


def _scope_note(message: str) -> AuditFinding:
    return AuditFinding("scope", message, Severity.NOTE)


def _without_repeats(findings: Sequence[AuditFinding]) -> list[AuditFinding]:
    """Return findings without those that say the same about the same node, as two lists of pages do."""
    return list({(each.kind, each.node, each.message): each for each in reversed(findings)}.values())[::-1]


def _select_chip(run: Run, candidates: Sequence[Chip]) -> tuple[Chip, list[AuditFinding]]:
    """Return the chip that explains most buffers of a run, the first of those that explain as many."""
    if len(candidates) == 1:
        return candidates[0], []
    if not candidates:
        return Chip.named("wormhole_n150"), [_scope_note("the devices of the report are not known; pass chip=...")]
    part = Run(run.nodes, run.calls, run.buffers[:_SAMPLE], ())

    def count_problems(chip: Chip) -> int:
        checked, _ = BufferCheck(part, SpecReader(chip)).check_all()
        replay = replay_addresses(part, checked, chip)
        return sum([not one.explained for one in checked]) + replay.compared - replay.matching

    fewest, best = len(run.nodes) + len(run.buffers), candidates[0]
    for chip in candidates:
        problems = count_problems(chip)
        if problems < fewest:
            fewest, best = problems, chip
        if not problems:
            break
    return best, []


def _split_by_address(batch: PageBatch) -> Iterator[tuple[int, PageBatch]]:
    """Yield the pages of a batch by the address of their buffer."""
    addresses = batch.column("address")
    for address in dict.fromkeys(addresses.tolist()):
        chosen = addresses == address
        yield address, PageBatch(batch.owner, {name: column[chosen] for name, column in batch.columns.items()})

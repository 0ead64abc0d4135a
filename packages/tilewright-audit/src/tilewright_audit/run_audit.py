# SPDX-License-Identifier: Apache-2.0
"""Compare a recorded run with the model, and with the IR it was compiled from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright._text import count_of
from tilewright.errors import TilewrightError
from tilewright.findings import Severity
from tilewright.memory import Chip, PageLayout, TensorSpec
from tilewright.notation import LayoutUse, MlirLayout, find_layouts

from .buffers import BufferCheck, CheckedBuffer, SpecReader, SpecText, list_live
from .database import find_failures, read_run
from .findings import AuditFinding, rank_findings, scope_note
from .graph_report import GraphReport, PageBatch, read_graph_report
from .memory_use import (
    build_dram_timeline,
    build_timeline,
    find_clashes,
    find_idle_tensors,
    find_overlaps,
    note_idle_tensors,
    replay_addresses,
)
from .pages import PageCheck, check_call, check_database
from .report import AuditReport
from .reshards import find_reshards, note_reshards, output_nodes
from .run import KNOWN_FIELDS, Run, build_run, candidate_chips, name_machine, small_l1

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
    chips = candidate_chips(report.devices, report.boards, count_devices(report))
    result = _RunAudit(run, chip, chips, small_l1(report.devices))
    result.notes += _note_unread(report)
    result.facts += _describe_mesh(report, result)
    result.check_pages(report)
    calls = {call.number: call for call in run.calls}
    live = list_live(run, result.checked)
    for number, rows in report.read_operation_buffers():
        if number in calls:
            result.findings += check_call(calls[number], rows, live[number])
    if report.skipped:
        result.notes.append(scope_note(f"{report.skipped} entries of the graph are no nodes and were left out"))
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
    result = _RunAudit(database.run, chip, candidate_chips(database.devices))
    result.notes += database.notes
    result.findings += find_failures(database.database)
    result.findings += check_database(database, result.checked, SpecReader(result.chip))
    return result.build(path, "database")


class _RunAudit:
    """The audit of a run on a chip, as far as it goes without pages and lists."""

    def __init__(self, run: Run, requested: Chip | None, candidates: Sequence[Chip], small: int = 0) -> None:
        chip = _select_chip(run, candidates) if requested is None else requested
        self.run, self.chip, self.reader = run, chip, SpecReader(chip)
        self.checked, self.findings = BufferCheck(run, self.reader).check_all()
        self.notes: list[AuditFinding] = []
        if requested is None and not candidates:
            self.notes.append(scope_note("the devices of the report are not known; pass chip=..."))
        self.facts: list[tuple[str, str]] = []
        self.pages = 0
        self.findings += _find_aborted(run)
        self.findings += find_overlaps(self.checked, chip)
        self.replay = replay_addresses(self.checked, chip, small)
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
        placed = [one for one in self.checked if one.buffer.memory.is_l1 and one.buffer.is_placed]
        if "buffer_pages_by_address" in report.sections:
            by_number: dict[int | None, CheckedBuffer] = {one.buffer.number: one for one in self.checked}
            self._compare_pages(((batch, by_number.get(batch.owner)) for batch in report.read_pages()), placed)
        if "buffer_pages" in report.sections:
            final = {one.buffer.address: one for one in placed if one.buffer.end is None}
            parts = (part for batch in report.read_final_pages() for part in _split_by_address(batch))
            self._compare_pages(((part, final.get(address)) for address, part in parts), final.values())

    def _compare_pages(
        self, batches: Iterable[tuple[PageBatch, CheckedBuffer | None]], expected: Iterable[CheckedBuffer]
    ) -> None:
        check = PageCheck()
        for batch, one in batches:
            check.add(batch, one)
        self.findings += check.findings([one for one in expected if one.buffer.allocation is not None])
        self.pages += check.pages

    def build(self, path: Path, kind: str) -> AuditReport:
        """Return the report of all findings."""
        findings = _without_repeats([*self.findings, *self.replay.findings, *self.notes, *self._list_notes()])
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
        report = AuditReport.of(path, kind, self.chip, findings, counts, facts, self.timeline, self.reshards)
        return replace(report, dram=build_dram_timeline(self.run, self.checked))

    def _list_notes(self) -> Iterator[AuditFinding]:
        idle = find_idle_tensors(self.run, self.checked)
        yield from note_idle_tensors(self.run, idle, self.timeline)
        yield from note_reshards(self.reshards, self.run)
        if self.checked and not self.run.is_placed:
            yield scope_note("the run placed nothing: every address is 0, and only sizes were compared")
        hits = sum([node.params.get("program_cache_hit") is True for node in self.run.nodes])
        if hits:
            yield scope_note(
                f"{hits} programs came from the program cache: their circular buffers are not in the report, and peaks"
                " are without them"
            )


def count_devices(report: GraphReport) -> int:
    """Return the number of devices that hold tensors of a report, or else that it lists.

    >>> from tilewright.files import as_source_file
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
    """Yield the parts of a report that are not understood."""
    kinds = Counter(node.kind for node in report.nodes if node.kind not in KNOWN_FIELDS)
    for kind, count in kinds.items():
        yield scope_note(f"{count_of(count, 'node')} of the unknown type {kind!r} left out")
    fields = dict.fromkeys(
        f"{node.kind}.{name}"
        for node in report.nodes
        if node.kind in KNOWN_FIELDS
        for name in sorted(node.params.keys() - KNOWN_FIELDS[node.kind])
    )
    if fields:
        yield scope_note(f"unknown parameters of nodes were not read: {', '.join(fields)}")
    if report.unread:
        yield scope_note(f"unknown sections of the report were not read: {', '.join(report.unread)}")


def _find_aborted(run: Run) -> Iterator[AuditFinding]:
    """Yield the calls that failed during the capture."""
    for node in run.nodes:
        if node.kind == "function_end" and node.text("aborted") == "true":
            name, remedy = node.text("name"), "see the error in the log of the run"
            message = f"{name} raised an error and was aborted"
            yield AuditFinding("failed call", message, remedy=remedy, node=node.number, call=name)


def _without_repeats(findings: Sequence[AuditFinding]) -> list[AuditFinding]:
    """Return findings without repetitions about the same node, as from two lists of pages."""
    last = {(finding.kind, finding.node, finding.message): finding for finding in reversed(findings)}
    return list(last.values())[::-1]


def _select_chip(run: Run, candidates: Sequence[Chip]) -> Chip:
    """Return the chip that explains most buffers of a run, the first one if several do."""
    if len(candidates) < 2:
        return candidates[0] if candidates else Chip.named("wormhole_n150")
    part = Run(run.nodes, run.calls, run.buffers[:_SAMPLE], ())

    def count_problems(chip: Chip) -> int:
        checked, _ = BufferCheck(part, SpecReader(chip)).check_all()
        replay = replay_addresses(checked, chip)
        return sum([not one.explained for one in checked]) + replay.compared - replay.matching

    fewest, best = len(run.nodes) + len(run.buffers), candidates[0]
    for chip in candidates:
        problems = count_problems(chip)
        if problems < fewest:
            fewest, best = problems, chip
        if not problems:
            break
    return best


def _split_by_address(batch: PageBatch) -> Iterator[tuple[int, PageBatch]]:
    """Yield the pages of a batch by the address of their buffer."""
    addresses = batch.column("address")
    for address in dict.fromkeys(addresses.tolist()):
        chosen = addresses == address
        yield address, PageBatch(batch.owner, {name: column[chosen] for name, column in batch.columns.items()})


_MAX_OPERATIONS = 20_000
_MAX_FINDINGS = 1000
_WINDOW = 64  # operations that only one side has, in a row


@dataclass(frozen=True, slots=True)
class OperationTensors:
    """An operation with the specs of its results: its name, where it is, and the specs as far as they are known.

    >>> OperationTensors("ttnn.add", "12:5", (None,)).short_name
    'add'
    """

    name: str
    place: str
    results: tuple[TensorSpec | None, ...]

    @property
    def short_name(self) -> str:
        """The name without its dialect or module, by which both sides are matched.

        >>> OperationTensors("ttnn.transformer.softmax", "1:1", ()).short_name
        'softmax'
        """
        return self.name.rsplit(".", 1)[-1].rsplit("::", 1)[-1]


def compare_with_run(ir: Path, report: Path, is_graph: bool, chip: Chip | None = None) -> AuditReport:
    """Compare the tensors of the `ir` file with the `report` of its run, a graph report or else a database."""
    audited = (audit_graph if is_graph else audit_database)(report, chip)
    run = build_run(read_graph_report(report).nodes) if is_graph else read_run(report).run
    assert audited.chip is not None  # a run has one
    compiled, ran = list_compiled(ir, audited.chip), list_ran(run, SpecReader(audited.chip))
    pairs = match_operations(compiled, ran)
    findings = [finding for one, other in pairs for finding in compare_operation(one, other)]
    tensors = sum([min(len(one.results), len(other.results)) for one, other in pairs])
    same = tensors - len({finding.message.partition(": ")[0] for finding in findings})
    facts = [
        ("compiled", f"{count_of(len(compiled), 'operation')} with a tensor on a device, in {ir.name}"),
        ("ran", f"{count_of(len(ran), 'call')} with a tensor on a device, in {report.name}"),
        ("compared", f"{count_of(tensors, 'tensor')} of {count_of(len(pairs), 'operation')}, {same} the same"),
    ]
    notes = (*_note_unmatched(compiled, ran, pairs), *audited.notes)
    ranked = rank_findings([*findings[:_MAX_FINDINGS], *audited.findings])
    counts = {**audited.counts, "operations": len(pairs), "tensors": tensors, "same": same}
    kind, facts = f"IR of tt-mlir against the {audited.kind}", [*facts, *audited.facts]
    return replace(audited, kind=kind, path=ir, findings=ranked, notes=notes, counts=counts, facts=tuple(facts))


def list_compiled(path: Path, chip: Chip) -> list[OperationTensors]:
    """Return the operations of the IR file at `path` that have results in the memory of a device, in order.

    >>> import tempfile
    >>> text = (
    ...     "#a = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>,"
    ...     " <interleaved>>\\n"
    ...     '%2 = "ttnn.relu"(%1) : (tensor<32x32xf32, #a>) -> tensor<32x32xf32, #a>\\n'
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "model.mlir").write_text(text)
    ...     [one.name for one in list_compiled(Path(folder, "model.mlir"), Chip.named("n150"))]
    ['ttnn.relu']
    """
    operations: list[OperationTensors] = []
    line = 0
    for use in find_layouts(path):
        spec = _spec_of(use, chip)
        if not use.is_result or not use.operation or spec is None:
            continue
        if use.line == line and operations:
            operations[-1] = replace(operations[-1], results=(*operations[-1].results, spec))
        elif len(operations) < _MAX_OPERATIONS:
            operations.append(OperationTensors(use.operation, use.place, (spec,)))
        line = use.line
    return operations


def _spec_of(use: LayoutUse, chip: Chip) -> TensorSpec | None:
    if not isinstance(use.layout, MlirLayout) or use.tensor is None or use.layout.memref.space not in ("dram", "l1"):
        return None
    try:
        return use.layout.to_spec(use.tensor, chip)
    except TilewrightError:
        return None


def list_ran(run: Run, reader: SpecReader) -> list[OperationTensors]:
    """Return the outermost calls of a `run` that returned tensors on a device, in order.

    >>> list_ran(build_run([]), SpecReader(Chip.named("n150")))
    []
    """
    by_number = {node.number: node for node in run.nodes}
    operations: list[OperationTensors] = []
    for call in run.calls:
        if call.frees or len(operations) >= _MAX_OPERATIONS:
            continue
        # the outermost call rarely has its results itself, but the last operation in it does
        ends = [node for node in run.nodes[call.start : call.end + 1] if node.kind == "function_end"]
        numbers = next(filter(None, [output_nodes(node, by_number) for node in reversed(ends)]), [])
        outputs = [by_number[number] for number in numbers]
        texts = [SpecText.of(node.params) for node in outputs if node.text("memory_config")]
        specs = tuple([reader.read(text).spec for text in texts])
        if any(spec is not None for spec in specs):
            operations.append(OperationTensors(call.name, f"node {call.number}", specs))
    return operations


def match_operations(
    compiled: list[OperationTensors], ran: list[OperationTensors]
) -> list[tuple[OperationTensors, OperationTensors]]:
    """Return pairs of operations that are the same on both sides: by name, in order.

    Where the two differ, the side that skips fewer operations is followed.

    >>> one = [OperationTensors(f"ttnn.{name}", "", ()) for name in ("to_device", "add", "relu")]
    >>> other = [OperationTensors(f"ttnn.{name}", "", ()) for name in ("add", "typecast", "relu")]
    >>> [first.short_name for first, _ in match_operations(one, other)]
    ['add', 'relu']
    """
    pairs, left, right = [], 0, 0
    while left < len(compiled) and right < len(ran):
        if compiled[left].short_name == ran[right].short_name:
            pairs.append((compiled[left], ran[right]))
            left, right = left + 1, right + 1
            continue
        ahead_of = (compiled[left + 1 : left + _WINDOW], ran[right + 1 : right + _WINDOW])
        wanted = (ran[right].short_name, compiled[left].short_name)
        skips = [
            (ahead, side)
            for side in (0, 1)
            for ahead, operation in enumerate(ahead_of[side], 1)
            if operation.short_name == wanted[side]
        ]
        if not skips:  # neither goes on in the other
            left, right = left + 1, right + 1
            continue
        ahead, side = min(skips)
        left, right = (left + ahead, right) if side == 0 else (left, right + ahead)
    return pairs


def compare_operation(compiled: OperationTensors, ran: OperationTensors) -> Iterator[AuditFinding]:
    """Yield the differences between the results of an operation as `compiled` and as it `ran`.

    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> sides = [OperationTensors("ttnn.add", place, (result,)) for place, result in (("7:9", spec), ("node 4", spec))]
    >>> list(compare_operation(*sides))
    []
    >>> moved = OperationTensors("ttnn.add", "node 4", (spec.with_memory("l1"),))
    >>> print(next(compare_operation(sides[0], moved)).message)
    ttnn.add (7:9), result 0: memory is interleaved in DRAM as compiled, interleaved in L1 in node 4
    """
    for number, (one, other) in enumerate(zip(compiled.results, ran.results, strict=False)):
        if one is None or other is None:
            continue
        for name, first, second in _list_differences(one, other):
            which = f"{compiled.name} ({compiled.place}), result {number}"
            yield AuditFinding(
                "compiled differently",
                f"{which}: {name} is {first} as compiled, {second} in {ran.place}",
                Severity.WARNING,
                "the runtime did not do what the compiler assumed",
                "check what the operation was called with, and its default output memory",
                call=ran.name,
                tensor=str(other),
                recorded=second,
                expected=first,
            )


def _list_differences(one: TensorSpec, other: TensorSpec) -> Iterator[tuple[str, str, str]]:
    """Yield what differs between two specs: its name, and both sides. Leading dimensions of 1 do not count."""
    shapes = [_strip_ones(spec.shape.logical) for spec in (one, other)]
    if shapes[0] != shapes[1]:
        yield "shape", str(list(one.shape.logical)), str(list(other.shape.logical))
    if one.dtype != other.dtype:
        yield "dtype", one.dtype.name, other.dtype.name
    if one.page_layout != other.page_layout:
        sides = ["tile" if spec.page_layout is PageLayout.TILE else "row_major" for spec in (one, other)]
        yield "layout", sides[0], sides[1]
    memories = one.memory, other.memory
    kinds = [(memory.memory_layout, memory.buffer_type) for memory in memories]
    if kinds[0] != kinds[1]:
        yield "memory", str(memories[0]), str(memories[1])
        return
    first, second = (memory.sharding for memory in memories)
    if first is None or second is None:
        return
    if set(first.grid.cores()) != set(second.grid.cores()):
        yield "cores", str(first.grid), str(second.grid)
    elif first.orientation != second.orientation:
        yield "orientation", str(first.orientation), str(second.orientation)
    if _strip_ones(tuple(first.shape)) != _strip_ones(tuple(second.shape)):
        yield "shard shape", str(list(first.shape)), str(list(second.shape))


def _strip_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape


def _note_unmatched(
    compiled: list[OperationTensors],
    ran: list[OperationTensors],
    pairs: list[tuple[OperationTensors, OperationTensors]],
) -> Iterator[AuditFinding]:
    """Yield notes about operations that only one side has."""
    matched = {id(one) for pair in pairs for one in pair}
    for side, operations in (("only in the IR", compiled), ("only in the run", ran)):
        alone = [operation for operation in operations if id(operation) not in matched]
        if alone:
            names = ", ".join([f"{operation.name} ({operation.place})" for operation in alone[:5]])
            more = f" and {len(alone) - 5} more" if len(alone) > 5 else ""
            yield scope_note(f"{side}: {names}{more}")

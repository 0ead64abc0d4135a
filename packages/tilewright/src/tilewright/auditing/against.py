# SPDX-License-Identifier: Apache-2.0
"""What was compiled against what ran: the tensors of IR beside those of a report, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from .._text import count_of
from ..errors import TilewrightError
from ..files import read_graph_report
from ..memory import Chip, PageLayout, TensorSpec
from ..notation import LayoutUse, MlirLayout, find_layouts
from ..severity import Severity
from .audit_report import AuditReport
from .database_run import read_run
from .finding import AuditFinding, rank_findings
from .run import Run, build_run
from .run_audit import audit_database, audit_graph
from .seen_reshards import output_nodes
from .tensor_specs import SpecReader, SpecText

_MOST_OPERATIONS = 20_000
_MOST_FINDINGS = 1000
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
        """Return the name without its dialect or module, by which both sides are matched.

        >>> OperationTensors("ttnn.transformer.softmax", "1:1", ()).short_name
        'softmax'
        """
        return self.name.rsplit(".", 1)[-1].rsplit("::", 1)[-1]


def compare_with_run(ir: Path, report: Path, kind: str, chip: Chip | None = None) -> AuditReport:
    """Return how the tensors of the IR file differ from those of the `report` of its run, a "graph report" or database.

    >>> compare_with_run.__name__
    'compare_with_run'
    """
    audited = audit_graph(report, chip) if kind == "graph report" else audit_database(report, chip)
    run = build_run(read_graph_report(report).nodes) if kind == "graph report" else read_run(report).run
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
    notes = [*_note_unmatched(compiled, ran, pairs)]
    ranked = rank_findings([*findings[:_MOST_FINDINGS], *audited.findings])
    counts = {**audited.counts, "operations": len(pairs), "tensors": tensors, "same": same}
    return replace(
        audited,
        kind=f"IR of tt-mlir against the {audited.kind}",
        path=ir,
        findings=ranked,
        notes=(*notes, *audited.notes),
        counts=counts,
        facts=(*facts, *audited.facts),
    )


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
    found: list[OperationTensors] = []
    line = 0
    for use in find_layouts(path):
        spec = _spec_of(use, chip)
        if not use.is_result or not use.operation or spec is None:
            continue
        if use.line == line and found:
            found[-1] = replace(found[-1], results=(*found[-1].results, spec))
        elif len(found) < _MOST_OPERATIONS:
            found.append(OperationTensors(use.operation, use.place, (spec,)))
        line = use.line
    return found


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
    found: list[OperationTensors] = []
    for call in run.calls:
        if call.frees or len(found) >= _MOST_OPERATIONS:
            continue
        # the outermost call rarely has its results itself, but the last operation in it does
        ends = [node for node in run.nodes[call.start : call.end + 1] if node.kind == "function_end"]
        numbers = next(filter(None, [output_nodes(node, by_number) for node in reversed(ends)]), [])
        outputs = [by_number[number] for number in numbers]
        texts = [SpecText.of(node.params) for node in outputs if node.text("memory_config")]
        specs = tuple([reader.read(text).spec for text in texts])
        if any(spec is not None for spec in specs):
            found.append(OperationTensors(call.name, f"node {call.number}", specs))
    return found


def match_operations(
    compiled: list[OperationTensors], ran: list[OperationTensors]
) -> list[tuple[OperationTensors, OperationTensors]]:
    """Return pairs of operations that are the same on both sides: by name, in order.

    Where they part, the side that skips fewer operations to go on is followed.

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
        skips = [
            (ahead, side)
            for side, names, start, wanted in (
                (0, compiled, left, ran[right].short_name),
                (1, ran, right, compiled[left].short_name),
            )
            for ahead, each in enumerate(names[start + 1 : start + _WINDOW], 1)
            if each.short_name == wanted
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
    >>> sides = [OperationTensors("ttnn.add", place, (each,)) for place, each in (("7:9", spec), ("node 4", spec))]
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
            yield AuditFinding(
                "compiled differently",
                f"{compiled.name} ({compiled.place}), result {number}: {name} is {first} as compiled, {second} in"
                f" {ran.place}",
                Severity.WARNING,
                call=ran.name,
                tensor=str(other),
                recorded=second,
                expected=first,
                reason="the runtime did not do what the compiler assumed",
                remedy="check what the operation was called with, and its default output memory",
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
        alone = [each for each in operations if id(each) not in matched]
        if alone:
            names = ", ".join([f"{each.name} ({each.place})" for each in alone[:5]])
            more = f" and {len(alone) - 5} more" if len(alone) > 5 else ""
            yield AuditFinding("scope", f"{side}: {names}{more}", Severity.NOTE, count=1)

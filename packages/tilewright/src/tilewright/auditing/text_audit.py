# SPDX-License-Identifier: Apache-2.0
"""The audit of text: memory configs, tensor specs and core ranges that ttnn printed, pasted from a log."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from .._text import count_of
from ..errors import FileFormatError, TilewrightError
from ..files import SourceFile, as_source_file
from ..memory import (
    Chip,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    NdShardSpec,
    ShardSpec,
    TensorSpec,
    placement_violations,
)
from ..notation import TtnnText, find_ttnn_values, parse_ttnn
from ..severity import Severity
from .audit_report import AuditReport
from .finding import AuditFinding, rank_findings

_CHUNK = 1 << 20
_LONGEST = 1 << 16  # characters of one value
_MOST_NOTES = 50
_MOST_VALUES = 100_000  # different ones
_PASTED = Path("text")


def audit_text(text: str, chip: Chip | None = None) -> AuditReport:
    """Return the audit of a `text` with values that ttnn printed: what each is, and whether a `chip` can have it.

    >>> config = (
    ...     "MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1,shard_spec="
    ...     'ShardSpec{grid=[{"start":{"x":0,"y":0},"end":{"x":8,"y":0}], shape=[32, 64],'
    ...     " orientation=ShardOrientation::ROW_MAJOR})"
    ... )
    >>> print(audit_text(config, Chip.named("n150")).findings[0].message)
    line 1: MemoryConfig: core (8, 0) is not on wormhole_n150, whose grid is 8 x 8
    """
    audit = _TextAudit(chip)
    try:
        whole: TtnnText | None = parse_ttnn(text)
    except FileFormatError:
        whole = None
    if whole is not None:
        audit.add(1, whole)
    else:
        for _, line, value in _number_lines(text, 1):
            audit.add(line, value)
    return audit.build(_PASTED, text[:80])


def audit_text_file(path: Path, chip: Chip | None = None) -> AuditReport:
    """Return the audit of a log at `path`, which is read in pieces.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "run.log").write_text("op got Shape([1, 32])")
    ...     audit_text_file(Path(folder, "run.log")).counts["values"]
    1
    """
    file = as_source_file(path)
    if file.size <= _CHUNK:
        text = file.read(0, file.size).decode("utf-8-sig", "replace")
        return replace(audit_text(text, chip), path=Path(path))
    audit = _TextAudit(chip)
    for line, value in _find_in_pieces(file):
        audit.add(line, value)
    return audit.build(Path(path), str(path))


def _find_in_pieces(file: SourceFile) -> Iterator[tuple[int, TtnnText]]:
    """Yield the values of a long text with their lines; one that may go on in the next piece is looked at with it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text, line = "", 1
    for start in range(0, file.size, _CHUNK):
        size = min(_CHUNK, file.size - start)
        is_last = start + size == file.size
        text += decoder.decode(file.read(start, size), final=is_last)
        stop = len(text) if is_last else max(0, len(text) - _LONGEST)
        for at, number, value in _number_lines(text, line):
            if at >= stop:
                break
            yield number, value
        line += text.count("\n", 0, stop)
        text = text[stop:]


def _number_lines(text: str, line: int) -> Iterator[tuple[int, int, TtnnText]]:
    """Yield the values of a text whose first line is number `line`: where each starts, its line, and the value."""
    counted = 0
    for at, value in find_ttnn_values(text):
        line += text.count("\n", counted, at)
        counted = at
        yield at, line, value


class _TextAudit:
    """What a text says, value by value; a value that occurs again is counted."""

    def __init__(self, chip: Chip | None) -> None:
        self.chip = chip
        self.total = 0
        self.findings: list[AuditFinding] = []
        self.values: dict[str, AuditFinding] = {}

    def add(self, line: int, text: TtnnText) -> None:
        self.total += 1
        key = f"{text.kind} {text.value!r}"
        if key in self.values:
            self.values[key] = replace(self.values[key], count=self.values[key].count + 1)
            return
        if len(self.values) >= _MOST_VALUES:
            return
        described, problems = describe_value(text, self.chip)
        self.values[key] = AuditFinding("value", f"line {line}: {text.kind}: {described}", Severity.NOTE, recorded=line)
        self.findings += [
            AuditFinding(
                "placement",
                f"line {line}: {text.kind}: {problem}",
                tensor=described,
                recorded=line,
                remedy="choose cores and shards that the chip has, or name the chip that it ran on",
            )
            for problem in problems
        ]

    def build(self, path: Path, name: str) -> AuditReport:
        if not self.total:
            raise FileFormatError(
                f"{name!r} has no value that ttnn prints, such as MemoryConfig(...), Shape([...]) or {{[0-0 - 7-7]}}"
            )
        different = f", {len(self.values)} different" if len(self.values) < self.total else ""
        facts = [("read", f"{count_of(self.total, 'value')} of ttnn{different}")]
        if self.chip is None:
            facts.append(("placement", "not checked; pass --chip (chip=...) for the rules of a chip"))
        notes = list(self.values.values())
        if len(notes) > _MOST_NOTES:
            rest = count_of(len(notes) - _MOST_NOTES, "other value")
            notes = [*notes[:_MOST_NOTES], AuditFinding("scope", f"and {rest}", Severity.NOTE)]
        counts = {"values": self.total, "different": len(self.values)}
        return AuditReport(
            path, "text", self.chip, rank_findings(self.findings), tuple(notes), counts=counts, facts=tuple(facts)
        )


def describe_value(text: TtnnText, chip: Chip | None) -> tuple[str, list[str]]:
    """Return what a value of ttnn is in words, and what is wrong with it on a `chip`.

    >>> describe_value(parse_ttnn("{[0-0 - 7-0]}"), None)
    ('8 cores: [(0, 0) - (7, 0)]', [])
    """
    value = text.value
    plain = getattr(value, "plain", value)
    if isinstance(plain, TensorSpec):
        return _describe_spec(plain, text, chip)
    if isinstance(plain, MemoryConfig):
        problems = _check_cores(None if plain.sharding is None else plain.sharding.grid, plain.buffer_type.is_l1, chip)
        without = "" if text.has_placement else ", without shards: it has no placement before a tensor gets it"
        return f"{plain}{without}", problems
    if isinstance(plain, (ShardSpec, NdShardSpec)):
        shape = " x ".join(map(str, plain.shape))
        return f"shards of {shape} on {count_of(plain.grid.num_cores, 'core')}", _check_cores(plain.grid, True, chip)
    if isinstance(plain, (CoreRangeSet, CoreRange)):
        cores = CoreRangeSet([plain]) if isinstance(plain, CoreRange) else plain
        ranges = ", ".join([f"[{box.start} - {box.end}]" for box in cores][:8])
        return f"{count_of(cores.num_cores, 'core')}: {ranges}", _check_cores(cores, True, chip)
    return str(plain), []


def _describe_spec(spec: TensorSpec, text: TtnnText, chip: Chip | None) -> tuple[str, list[str]]:
    """Return what a tensor is, with its pages and bytes on the chip."""
    described = str(spec)
    if not text.has_placement:
        return f"{described}, without shards: it has no placement", []
    if chip is None and spec.chip is None:
        return described, []
    try:
        placed = spec if chip is None else spec.with_chip(chip)
        problems = [str(violation) for violation in placement_violations(placed, any_size=True)]
        if problems:
            return described, problems
        pages = f"{count_of(placed.num_pages, 'page')} of {placed.page_bytes} bytes"
        size, bank = placed.bytes_per_bank, placed.known_chip.bank_bytes(placed.memory.buffer_type)
        if size > bank:
            problems.append(f"it takes {size} bytes of each bank of {placed.memory.buffer_type}, which has {bank}")
    except TilewrightError as problem:
        return described, [str(problem)]
    return f"{described}: {pages}, {size} bytes per bank", problems


def _check_cores(grid: CoreRangeSet | None, in_l1: bool, chip: Chip | None) -> list[str]:
    """Return that cores are not on the chip."""
    if grid is None or chip is None or not in_l1:
        return []
    across, down = chip.compute_grid
    for box in grid:
        if box.end.x >= across or box.end.y >= down:
            return [f"core {box.end} is not on {chip.name}, whose grid is {across} x {down}"]
    return []

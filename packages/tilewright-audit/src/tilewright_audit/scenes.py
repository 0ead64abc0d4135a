# SPDX-License-Identifier: Apache-2.0
"""The picture of an audit: the findings, L1 of each core at the peak, and L1 over the calls of the run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from tilewright._text import count_of, format_bytes
from tilewright.findings import Severity
from tilewright.memory import Chip, CoreCoord
from tilewright.views import (
    MAX_SIDE,
    Entry,
    Fact,
    Field,
    Grid,
    Panel,
    Scene,
    SceneOptions,
    Span,
    Tracks,
    scene_function,
)

from .findings import AuditFinding
from .memory_use import Life, Share, Timeline
from .report import REHEARSAL, AuditReport, shorten
from .reshards import group_moves

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MAX_ENTRIES = 200
_MAX_LIVES = 24  # tensors and buffers whose lives are drawn
_MAX_NAMED = 6  # on one core
_MAX_COLUMNS = 24  # of calls, so that their labels fit
_MAX_NAME = 40


@scene_function
def audit_scene(
    report: AuditReport, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the scene of an audit: its findings and notes, L1 of each core at the peak, and L1 over the calls.

    `side` is the maximum number of columns of calls, at most 24, and `title` the title of the picture; `options` are
    the options that every scene has.

    >>> from pathlib import Path
    >>> audit_scene(AuditReport(Path("report.json"), "graph report", Chip.named("n150"))).title
    'report.json: clean'
    """
    listed = [*report.findings, *report.notes][:_MAX_ENTRIES]
    panels: list[Panel] = []
    timeline = report.timeline
    if report.chip is not None and timeline.peak is not None:
        panels = [_chip_grid(timeline, report.chip), _usage_grid(timeline, side), *_life_tracks(timeline)]
    if report.kind == REHEARSAL and report.dram.peak is not None:
        panels.append(_usage_grid(report.dram, side, "DRAM", "bank"))
    return Scene(
        title or report.title,
        tuple(panels),
        tuple(_list_facts(report)),
        f"{report.subject[:1].upper()}{report.subject[1:]}.",
        (2,) if len(panels) > 2 else (),  # the chip and the calls side by side
        entries=tuple([_make_entry(finding) for finding in listed]),
    )


def _make_entry(finding: AuditFinding) -> Entry:
    lines = [("tensor", finding.tensor), ("call", finding.call), ("why", finding.reason), ("remedy", finding.remedy)]
    shown = tuple([(name, value) for name, value in lines if value and value not in finding.message])
    return Entry(str(finding), shown, "plain" if finding.severity is Severity.NOTE else "bad")


def _list_facts(report: AuditReport) -> list[Fact]:
    facts = [Fact("findings", str(len(report.findings)), "good" if report.clean else "bad")]
    facts += [Fact(name, value) for name, value in report.facts]
    peak, chip = report.timeline.peak, report.chip
    if peak is not None and chip is not None:
        facts.append(Fact("peak of L1", f"{peak.describe(chip)}, in {peak.call}"))
        facts += [
            Fact("held by", f"{share.label}: {share.bytes_per_core} bytes{', idle' if share.idle else ''}")
            for share in report.timeline.shares[:_MAX_NAMED]
        ]
    for move, count in group_moves(report.reshards)[:_MAX_NAMED]:
        times = "" if count == 1 else f"{count} x "
        duration = "" if move.microseconds is None else f", about {move.microseconds:.1f} us"
        facts.append(Fact("move", f"{times}{move.path_text}: {format_bytes(move.bytes_moved)}{duration}"))
    return facts


def _chip_grid(timeline: Timeline, chip: Chip) -> Grid:
    """Return the cores of the chip with their contents at the peak."""
    across, down = chip.compute_grid
    cores = [CoreCoord(x, y) for y in range(down) for x in range(across)]
    held = [[share for share in timeline.shares if share.cores is None or core in share.cores] for core in cores]
    used = [sum([share.bytes_per_core for share in shares]) for shares in held]
    bank = chip.bank_bytes("l1")
    fields = (
        Field("KiB", tuple([_kibibytes(size) for size in used]), "heat"),
        Field("bytes", tuple(used)),
        Field("share", tuple([f"{100 * size / bank:.1f} % of L1" for size in used])),
        Field("holds", tuple([_name_shares(shares) for shares in held])),
        Field("highest ever", tuple([f"{timeline.cores.get(core, 0)} bytes" for core in cores])),
        Field("core", tuple([str(core) for core in cores])),
    )
    return Grid(
        down,
        across,
        fields,
        title=f"L1 of each core at the peak, in {timeline.peak.call}" if timeline.peak is not None else "L1",
        color="KiB",
        label="KiB",
        row_axis="row",
        column_axis="column",
    )


def _name_shares(shares: Sequence[Share]) -> str:
    """Return the contents of a core, the largest first, as lines of text."""
    if not shares:
        return "nothing"
    names = [
        f"{share.bytes_per_core} bytes: {shorten(share.label, _MAX_NAME)}{' (idle)' if share.idle else ''}"
        for share in shares[:_MAX_NAMED]
    ]
    more = [f"and {count_of(len(shares) - _MAX_NAMED, 'other')}"] if len(shares) > _MAX_NAMED else []
    return "\n".join(["", *names, *more])


def _usage_grid(timeline: Timeline, side: int, memory: str = "L1", part: str = "core") -> Grid:
    """Return the most bytes per core, or bank, of a memory in each call, of tensors and of the buffers of programs.

    Calls in a row share a column if there are too many.
    """
    starts = [call.start for call in timeline.calls] or [0]
    group = -(-len(starts) // max(1, min(side, _MAX_COLUMNS)))
    columns = -(-len(starts) // group)
    most = []  # of both, of tensors and of buffers, in each column
    level = (0, 0)
    moments, at = timeline.moments, 0
    for column in range(columns):
        last = (column + 1) * group
        end = starts[last] if last < len(starts) else float("inf")
        states = [level]
        while at < len(moments) and moments[at].time < end:
            level = (moments[at].tensor_bytes, moments[at].local_bytes)
            states.append(level)
            at += 1
        most.append([max(map(sum, states)), *map(max, zip(*states, strict=True))])
    rows = list(zip(*most, strict=True))
    names = _name_columns(timeline, group, columns)
    return Grid(
        3,
        columns,
        (
            Field(f"KiB per {part}", tuple([_kibibytes(size) for size in chain(*rows)]), "heat"),
            Field("bytes", tuple(chain(*rows))),
            Field("call", tuple(names * 3)),
        ),
        title=f"{memory} over the calls: the most in each" + (f" {group} calls" if group > 1 else ""),
        color=f"KiB per {part}",
        label=f"KiB per {part}",
        row_names=("total", "tensors", "buffers"),
        column_names=tuple([str(k * group) for k in range(columns)]),
        column_axis="call",
    )


def _name_columns(timeline: Timeline, group: int, columns: int) -> list[str]:
    names = [call.name for call in timeline.calls] or [""]
    return [
        names[k * group] if group == 1 else f"{names[k * group]} to {names[min(len(names), (k + 1) * group) - 1]}"
        for k in range(columns)
    ]


def _life_tracks(timeline: Timeline) -> list[Tracks]:
    """Return the largest tensors and buffers as spans from the call that made them to the one that freed them."""
    if not timeline.calls or not timeline.lives:
        return []
    starts = [call.start for call in timeline.calls]
    last = len(starts)

    def position(time: int) -> int:
        return max(0, bisect_right(starts, time) - 1)

    def cost(life: Life) -> int:
        end = last if life.end is None else position(life.end)
        return life.bytes_per_core * max(1, end - position(life.start))

    lives = sorted(timeline.lives, key=lambda life: (-cost(life), life.start))[:_MAX_LIVES]
    lives.sort(key=lambda life: (life.start, life.node))
    spans = []
    for track, life in enumerate(lives):
        begin = position(life.start)
        end = last if life.end is None else max(begin + 1, position(life.end))
        used = end if life.last_use is None else min(end, position(life.last_use) + 1)
        freed = "not freed" if life.end is None else f"freed in call {position(life.end)}"
        note = f"{life.label}\n{life.bytes_per_core} bytes per core\nmade in call {begin}, {freed}"
        size = format_bytes(life.bytes_per_core)
        spans.append(Span(track, begin, max(used, begin + 0.5), size, life.kind, note=note, link=life.node))
        if max(used, begin + 0.5) < end:
            idle = f"{note}\nnot used after call {used - 1}"
            spans.append(Span(track, max(used, begin + 0.5), end, "", "not used any more", True, idle, life.node))
    hidden = len(timeline.lives) - len(lives)
    title = "what is in L1, from call to call" + (
        f": the {len(lives)} that take most, for longest, of {len(timeline.lives)}" if hidden else ""
    )
    return [Tracks(tuple([shorten(life.label, _MAX_NAME) for life in lives]), tuple(spans), 0, last, "calls", title)]


def _kibibytes(size: int) -> int:
    return -(-size // 1024)  # used space is not 0

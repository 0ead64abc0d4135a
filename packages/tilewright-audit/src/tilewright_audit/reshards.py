# SPDX-License-Identifier: Apache-2.0
"""Operations of a run that only moved data: bytes, time, and how to avoid them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright._text import format_bytes
from tilewright.errors import TilewrightError
from tilewright.findings import Severity
from tilewright.memory import MemoryConfig, TensorSpec
from tilewright.traffic import LayoutChain, ReshardPlan, cheaper_targets, reshard

from .buffers import SpecReader, SpecText
from .findings import AuditFinding
from .graph_report import ReportNode
from .run import Run

MAX_NOTES = 5  # the most expensive first
_MAX_PLANNED = 1 << 22  # pages of all moves whose time is estimated
_MAX_TRIED = 1 << 15  # pages of a tensor for which other targets are tried
_RESHARDING = re.compile(r"InterleavedToSharded|ShardedToInterleaved|Reshard")


@dataclass(frozen=True, slots=True)
class SeenReshard:
    """An operation of a run that moved a tensor from one placement to another.

    `source` and `target` are specs; `plan` is the plan of its transfers, and None where one of them is not known or
    nothing moves between such specs.

    >>> SeenReshard(13, "ttnn.to_memory_config", "ReshardDeviceOperation", None, None, 2048).bytes_moved
    2048
    """

    node: int
    call: str
    operation: str
    source: TensorSpec | None
    target: TensorSpec | None
    bytes_moved: int
    buffers: tuple[int | None, int | None] = (None, None)  # numbers of those before and after
    plan: ReshardPlan | None = field(default=None, compare=False, repr=False)

    @property
    def microseconds(self) -> float | None:
        """The estimated time, or None if there is no estimate.

        >>> SeenReshard(13, "ttnn.to_memory_config", "Reshard", None, None, 2048).microseconds is None
        True
        """
        try:
            return None if self.plan is None else self.plan.cycles.microseconds
        except TilewrightError:  # the network of the chip is not known
            return None

    @property
    def bound_text(self) -> str:
        """The bound of the time, and the number of passes if there are several; empty without an estimate.

        >>> SeenReshard(13, "ttnn.to_memory_config", "Reshard", None, None, 2048).bound_text
        ''
        """
        if self.plan is None or self.microseconds is None:
            return ""
        estimate = self.plan.cycles
        passes = f", {len(self.plan.steps)} passes" if len(self.plan.steps) > 1 else ""
        return f"{estimate.bound_by.resource}{passes}"

    @property
    def path_text(self) -> str:
        """Both placements in a few words.

        >>> SeenReshard(13, "ttnn.to_memory_config", "Reshard", TensorSpec((4, 8)), None, 2048).path_text
        'DRAM interleaved -> ?'
        """
        return " -> ".join(["?" if spec is None else brief_memory(spec.memory) for spec in (self.source, self.target)])

    def to_json(self) -> dict[str, Any]:
        """Return the move as plain data.

        >>> SeenReshard(13, "ttnn.to_memory_config", "Reshard", None, None, 2048).to_json()["bytes"]
        2048
        """
        plan = self.plan
        return {
            "node": self.node,
            "call": self.call,
            "operation": self.operation,
            "source": None if self.source is None else str(self.source),
            "target": None if self.target is None else str(self.target),
            "bytes": self.bytes_moved,
            "noc_bytes": None if plan is None else plan.noc_bytes,
            "local": None if plan is None else plan.local,
            "microseconds": self.microseconds,
            "bound_by": self.bound_text,
        }

    def __str__(self) -> str:
        source = "?" if self.source is None else str(self.source.memory)
        target = "?" if self.target is None else str(self.target.memory)
        return f"{self.operation} in {self.call}: {format_bytes(self.bytes_moved)} from {source} to {target}"


def brief_memory(memory: MemoryConfig) -> str:
    """Return a memory in a few words, for tables.

    >>> brief_memory(TensorSpec((4, 8)).memory)
    'DRAM interleaved'
    """
    kind = str(memory.memory_layout).lower().removesuffix("_sharded").removesuffix(" sharded")
    cores = "" if memory.sharding is None else f" on {memory.sharding.grid.num_cores}"
    return f"{memory.buffer_type} {kind}{cores}"


@dataclass
class ReshardPlanner:
    """Plans the moves of a file, each pair of specs once, as long as they have not too many pages in all.

    A file may claim tensors of any size.

    >>> ReshardPlanner().plan(None, TensorSpec((4, 8))) is None
    True
    """

    pages: int = 0
    plans: dict[tuple[TensorSpec, TensorSpec], ReshardPlan | None] = field(default_factory=dict)

    def plan(self, source: TensorSpec | None, target: TensorSpec | None) -> ReshardPlan | None:
        """Return the plan between two specs, or None: one is not known, they are too large, or not of one tensor.

        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> ReshardPlanner().plan(spec, spec.with_memory("l1")).total_bytes
        8192
        """
        if source is None or target is None:
            return None
        if (source, target) not in self.plans:
            self.plans[source, target] = self._make_plan(source, target)
        return self.plans[source, target]

    def _make_plan(self, source: TensorSpec, target: TensorSpec) -> ReshardPlan | None:
        pages = source.num_pages + target.num_pages
        if self.pages + pages > _MAX_PLANNED:
            return None
        self.pages += pages
        try:
            return reshard(source, target)
        except TilewrightError:
            return None


def find_reshards(run: Run, reader: SpecReader) -> list[SeenReshard]:
    """Return the operations that only moved data, the slowest first, then the most bytes first.

    >>> from tilewright.memory import Chip
    >>> from .run import build_run
    >>> find_reshards(build_run([]), SpecReader(Chip.named("wormhole_n150")))
    []
    """
    by_number = {node.number: node for node in run.nodes}
    owners, planner = _find_owners(run), ReshardPlanner()

    def find_tensor(numbers: Sequence[int]) -> ReportNode | None:
        for number in numbers:
            node = by_number.get(number)
            if node is not None and node.kind == "tensor" and node.text("memory_config"):
                return node
        return None

    seen: list[SeenReshard] = []
    open_calls: list[tuple[ReportNode, int]] = []
    for time, node in enumerate(run.nodes):
        if node.kind == "function_start":
            open_calls.append((node, time))
        elif node.kind == "function_end" and open_calls:
            start, began = open_calls.pop()
            if not open_calls or not _RESHARDING.search(start.text("name")):
                continue
            nodes = find_tensor(start.inputs), find_tensor(output_nodes(node, by_number))
            source, target = [None if node is None else reader.read(SpecText.of(node.params)).spec for node in nodes]
            before, after = [None if node is None else owners.get(node.number) for node in nodes]
            names, size = (run.name_call(began), start.text("name")), 0 if target is None else target.nbytes
            plan = planner.plan(source, target)
            seen.append(SeenReshard(start.number, *names, source, target, size, (before, after), plan))
    return sorted(seen, key=lambda move: (-(move.microseconds or 0.0), -move.bytes_moved, move.node))


def output_nodes(end: ReportNode, by_number: dict[int, ReportNode]) -> list[int]:
    """Return the nodes of the tensors that a call returned, from the node of its end.

    >>> output_nodes(ReportNode(5, "function_end", {}, (4,)), {4: ReportNode(4, "tensor", {})})
    [4]
    """
    return [number for number in end.connections if by_number.get(number, end).kind == "tensor"]


def note_reshards(reshards: Sequence[SeenReshard], run: Run) -> Iterator[AuditFinding]:
    """Yield a note for each of the most expensive moves of a `run`, with what would avoid it.

    Of moves in a row only the first has a note, since it is about all of them.

    >>> from .run import build_run
    >>> list(note_reshards([], build_run([])))
    []
    """
    uses = _count_uses(run)
    moved = {move.buffers[1] for move in reshards}
    firsts = [move for move in reshards if not _is_moved_on(move, moved, uses)]
    for move, count in group_moves(firsts)[:MAX_NOTES]:
        time, plan, reason = move.microseconds, move.plan, ""
        if time is not None and plan is not None:
            reason = f"about {time:.1f} us, bound by {plan.cycles.bound_by}"
        if plan is not None and len(plan.steps) > 1:
            reason += f"; {len(plan.steps)} passes, through {plan.steps[0].target.memory}"
        note = AuditFinding("reshard", str(move), Severity.NOTE, reason, _advise(move, reshards, uses), count)
        yield replace(note, node=move.node, call=move.call, recorded=move.bytes_moved, expected=0)


def group_moves(reshards: Sequence[SeenReshard]) -> list[tuple[SeenReshard, int]]:
    """Return the first of each kind of move, between the same two specs, and how many there are; in order.

    >>> moves = [SeenReshard(node, "ttnn.to_memory_config", "Reshard", None, None, 2048) for node in (3, 9)]
    >>> [(move.node, count) for move, count in group_moves(moves)]
    [(3, 2)]
    """
    groups: dict[tuple[str, TensorSpec | None, TensorSpec | None], list[SeenReshard]] = {}
    for move in reshards:
        groups.setdefault((move.operation, move.source, move.target), []).append(move)
    return [(group[0], len(group)) for group in groups.values()]


def _find_owners(run: Run) -> dict[int, int]:
    """Return the buffer of each node of a tensor, by their numbers."""
    return {node.number: buffer.number for buffer in run.buffers for node in buffer.tensors}


def _count_uses(run: Run) -> Counter[int]:
    """Return how many calls each buffer is an input of; calls that free it do not count."""
    owners = _find_owners(run)
    uses: Counter[int] = Counter()
    for call in run.calls:
        if call.frees:
            continue
        inside = [node for node in run.nodes[call.start : call.end] if node.kind == "function_start"]
        uses.update({owners[number] for node in inside for number in node.inputs if number in owners})
    return uses


def _advise(seen: SeenReshard, reshards: Sequence[SeenReshard], uses: Counter[int]) -> str:
    """Return a remedy that avoids a move, or makes it cheaper, with numbers where they were computed."""
    chain = _follow(seen, reshards, uses)
    if len(chain) > 1:
        return _advise_direct(chain)
    return f"let the operation before it write this placement, or the one after it read the other{_advise_other(seen)}"


def _is_moved_on(seen: SeenReshard, moved: Collection[int | None], uses: Counter[int]) -> bool:
    """Return whether a move only moves on one of the buffers that others `moved`, and nothing else uses it."""
    first = seen.buffers[0]
    return first is not None and uses[first] <= 1 and first in moved


def _follow(seen: SeenReshard, reshards: Sequence[SeenReshard], uses: Counter[int]) -> list[SeenReshard]:
    """Return a move and the moves of its result after it, as long as nothing else uses the tensor in between."""
    chain = [seen]
    while len(chain) <= len(reshards):
        last = chain[-1].buffers[1]
        after = [move for move in reshards if last is not None and move.buffers[0] == last]
        if len(after) != 1 or last is None or uses[last] > 1 or after[0] in chain:
            break
        chain.append(after[0])
    return chain


def _advise_direct(chain: Sequence[SeenReshard]) -> str:
    """Return the advice for a tensor that is moved several times in a row."""
    *others, last = [f"{move.node}" for move in chain[1:]]
    nodes = f"nodes {', '.join(others)} and {last} move" if others else f"node {last} moves"
    source, target = chain[0].source, chain[-1].target
    if source is not None and source == target:
        return f"{nodes} it back, and nothing uses it in between: leave out all of them"
    direct = ReshardPlanner().plan(source, target)
    times = [move.microseconds for move in chain]
    known = [time for time in times if time is not None]
    if direct is None or len(known) < len(times):
        return f"{nodes} it on, and nothing uses it in between: move it once"
    once, memory = direct.cycles.microseconds, direct.target.memory
    if once >= sum(known):
        return f"{nodes} it on; to move it to {memory} at once would be no faster"
    return (
        f"{nodes} it on, and nothing uses it in between: move it to {memory} at once, in {once:.1f} us instead of"
        f" {sum(known):.1f}"
    )


def _advise_other(seen: SeenReshard) -> str:
    """Return a target of the same kind that is reached in less time, if there is one."""
    best = _cheapest(seen)
    other = None if best is None else ReshardPlanner().plan(*best.specs)
    if other is None or seen.microseconds is None or other.cycles.microseconds >= seen.microseconds:
        return ""
    memory, sharding = other.target.memory, other.target.memory.sharding
    where = "" if sharding is None else f" {sharding.grid}, {sharding.orientation}"
    return f"; or move it to {memory}{where}: {other.cycles.microseconds:.1f} us instead of {seen.microseconds:.1f}"


def _cheapest(seen: SeenReshard) -> LayoutChain | None:
    """Return a target of the same kind that is reached in less time, unless the tensor is too large to try."""
    if seen.plan is None or seen.plan.source.num_pages > _MAX_TRIED:
        return None
    try:
        return next(iter(cheaper_targets(seen.plan, most=1)), None)
    except TilewrightError:
        return None

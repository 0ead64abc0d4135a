# SPDX-License-Identifier: Apache-2.0
"""Changes to a program that ttnn accepts on its mock: every suggestion was run.

Where a call fails, its placement and program config are varied, tensors in its way are moved to other memory, and
tensors that are no longer used are freed. Where the program fits, the same is tried for the tensors at its peak of L1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.findings import Severity
from tilewright.memory import MemoryConfig, TensorSpec, fit, interleaved
from tilewright.notation import parse_dtype, parse_memory_config, parse_shape, parse_ttnn

from ..buffers import BufferCheck, CheckedBuffer, SpecReader
from ..findings import AuditFinding
from ..graph_report import read_graph_report
from ..report import AuditReport
from ..reshards import ReshardPlanner
from ..run import Run, build_run
from .process import ProgramRun, Stage
from .recorder import name_stack
from .rehearsal import TtnnProgram, describe_place

_MAX_TRIED = 20
_MAX_LISTED = 5
_MAX_TENSORS = 4  # in the way of a call, the largest first
_MAX_SUBBLOCK = 8  # tiles that the registers of a core hold
_MEMORY = "memory_config"
_PROGRAM = "program_config"


@dataclass(frozen=True)
class Change:
    """A change to try: the arguments to replace, by the number or line of the call, its text, and its cost.

    `microseconds` is the predicted time to move a tensor from its placement to the other one; None if it is not known.

    >>> Change({"3": {"program_config": None}}, "ttnn.matmul without its program_config").microseconds
    0.0
    """

    arguments: Mapping[str, Any]
    text: str
    microseconds: float | None = 0.0


def suggest_changes(program: TtnnProgram, stage: Stage, run: ProgramRun, report: AuditReport) -> list[AuditFinding]:
    """Return notes about changes to a `program` that ttnn accepts, the cheapest first.

    Args:
        program: the program to change.
        stage: the mock machine that it runs on.
        run: its run with addresses, which failed in a call, or did not.
        report: the report on it, with its peak.
    """
    scene, failed = _Scene.of(run, report), run.failure
    if scene is None or (failed is None and run.kind != "ended"):
        return []
    accepted: list[tuple[tuple[bool, float, int], AuditFinding]] = []
    changes = {change.text: change for change in islice(scene.list_changes(failed), _MAX_TRIED)}
    for number, change in enumerate(changes.values()):
        after, peak = program.run_on(stage, "NORMAL", change.arguments), 0
        if after.kind == "ended":
            again = program.run_on(stage, "NO_DISPATCH", change.arguments)
            peak = max([capture["peaks"]["peak_total"] for capture in again.details.get("captures", ())], default=0)
        helps = 0 < peak < report.peaks.total if failed is None else peak > 0
        later = after.failure is not None and failed is not None and after.failure["call"] > failed["call"]
        if helps or later:
            cost = float("inf") if change.microseconds is None else change.microseconds
            accepted.append(((not helps, cost, number), _describe(change, after, peak)))
    if not accepted and changes:
        message = f"no change of a single line that was tried helps, of {len(changes)}"
        return [AuditFinding("suggestion", message, Severity.NOTE, remedy="use a smaller shape, or another machine")]
    return [finding for _, finding in sorted(accepted, key=lambda item: item[0])[:_MAX_LISTED]]


def _describe(change: Change, run: ProgramRun, peak: int) -> AuditFinding:
    result = f"the program then runs to its end, with a peak of {peak} bytes per core"
    if run.failure is not None:
        place = describe_place(run.calls[run.failure["call"]]["stack"])
        result = f"the call then succeeds; the next that fails is at {place}"
    cost = f"about {change.microseconds:.1f} us of traffic to move the tensor there" if change.microseconds else ""
    return AuditFinding("suggestion", f"{change.text}: {result}", Severity.NOTE, cost)


@dataclass(frozen=True)
class _Scene:
    """The captured run with its buffers checked, and the calls of the program."""

    calls: Sequence[Mapping[str, Any]]
    run: Run
    checked: Sequence[CheckedBuffer]
    reader: SpecReader
    peak: int  # the node in which L1 is fullest

    @classmethod
    def of(cls, run: ProgramRun, report: AuditReport) -> _Scene | None:
        if not run.captures or report.chip is None:
            return None
        captured = build_run(read_graph_report(run.captures[-1]).nodes)
        reader = SpecReader(report.chip)
        checked, _ = BufferCheck(captured, reader).check_all()
        starts = [one.buffer.start for one in checked if one.buffer.memory.is_l1]
        held = {time: sum([one.bytes_per_bank for one in checked if _is_in_l1(one, time)]) for time in starts}
        peak = max(starts, key=lambda time: held[time], default=0)
        return cls(run.calls, captured, checked, reader, peak)

    def list_changes(self, failed: Mapping[str, Any] | None) -> Iterator[Change]:
        """Yield changes to try, the most promising first."""
        if failed is None:
            yield from (*self._free_earlier(self.peak), *self._move_others(self.peak))
            return
        time = self._time_of(failed["call"])
        yield from (*self._vary_config(failed), *self._free_earlier(time), *self._vary_placement(failed, time))
        yield from self._move_others(time)

    def _time_of(self, number: int) -> int:
        """Return the time at which a call of the program begins, or the end of the run."""
        for time, node in enumerate(self.run.nodes):
            if node.kind == "function_start" and node.integer("call") == number:
                return time
        return len(self.run.nodes)

    def _number_at(self, time: int) -> int | None:
        """Return the number of the call of the program at a time."""
        call = self.run.call_at(time)
        return None if call is None else self.run.nodes[call.start].integer("call")

    def _name(self, number: int) -> str:
        call = self.calls[number]
        place = describe_place(call["stack"])
        return f"{place}: {call['name']}" if place else str(call["name"])

    def _in_line(self, number: int, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the change of the arguments of a call, and of all others that its line makes, as in a loop."""
        stack = self.calls[number]["stack"]
        return {name_stack(stack) if stack else str(number): arguments}

    def _vary_config(self, failed: Mapping[str, Any]) -> Iterator[Change]:
        """Yield other program configs of the call that fails: its own with other blocks, and the choice of ttnn."""
        config = failed["kwargs"].get(_PROGRAM)
        if not isinstance(config, dict) or "fields" not in config:
            return
        number, name = str(failed["call"]), self._name(failed["call"])
        for fields in _other_fields(config["fields"]):
            text = ", ".join([f"{field}={value}" for field, value in fields.items()])
            yield Change({number: {_PROGRAM: {"fields": fields}}}, f"{name} with {text}")
        yield Change({number: {_PROGRAM: None}}, f"{name} without its program_config, so that ttnn chooses one")

    def _vary_placement(self, failed: Mapping[str, Any], time: int) -> Iterator[Change]:
        """Yield other placements of the result of the failing call: what `fit` proposes beside the contents of L1."""
        argument, wanted = _find_memory(failed)
        known, source = _read_request(failed)
        held = sum([one.bytes_per_bank for one in self.checked if _is_in_l1(one, time)])
        proposed: list[MemoryConfig] = []
        with suppress(TilewrightError):
            if known and wanted is not None:
                answer = fit({**known, "memory": wanted}, self.reader.chip, circular_buffers=held)
                same = [option.spec for option in answer.alternatives if option.spec.dtype == known["dtype"]]
                proposed = [spec.memory for spec in same]
        for memory in (*proposed, interleaved("l1"), interleaved("dram")):
            if memory != wanted:
                change = self._in_line(failed["call"], {argument: describe_memory(memory)})
                text = f"{self._name(failed['call'])} with {_name_memory(memory)}"
                yield Change(change, text, self._cost({**known, "memory": source or wanted}, memory))

    def _cost(self, known: dict[str, Any], memory: MemoryConfig) -> float | None:
        """Return the predicted time to move a tensor, of which the arguments are known, to another memory."""
        with suppress(TilewrightError, TypeError):
            spec = TensorSpec(**{**known, "chip": self.reader.chip})
            plan = ReshardPlanner().plan(spec, spec.with_memory(memory))
            return None if plan is None else plan.cycles.microseconds
        return None

    def _free_earlier(self, time: int) -> Iterator[Change]:
        """Yield tensors to free after their last use before a time, the largest first."""
        for one in self._list_held(time):
            used = one.buffer.last_use
            if used is None or used >= time:
                continue
            made, last = self._number_at(one.buffer.start), self._number_at(used)
            if made is not None and last is not None and last < (self._number_at(time) or last + 1):
                text = f"free the result of {self._name(made)} after {self._name(last)}, with ttnn.deallocate"
                yield Change({str(made): {"release after": last}}, text)

    def _move_others(self, time: int) -> Iterator[Change]:
        """Yield other placements of the tensors that L1 holds at a time, the largest first."""
        memory = interleaved("dram")
        for one in self._list_held(time):
            made = self._number_at(one.buffer.start)
            if made is not None:
                text = f"{self._name(made)} with {_name_memory(memory)}"
                cost = None if one.spec is None else self._cost(one.spec.arguments(), memory)
                yield Change(self._in_line(made, {_MEMORY: describe_memory(memory)}), text, cost)

    def _list_held(self, time: int) -> list[CheckedBuffer]:
        held = [one for one in self.checked if _is_in_l1(one, time) and one.buffer.start < time]
        return sorted(held, key=lambda one: -one.bytes_per_bank)[:_MAX_TENSORS]


def _is_in_l1(one: CheckedBuffer, time: int) -> bool:
    return one.buffer.memory.is_l1 and one.buffer.allocation is not None and one.buffer.is_live(time)


def _read_request(failed: Mapping[str, Any]) -> tuple[dict[str, Any], MemoryConfig | None]:
    """Return shape, dtype and layout of the result of a call, if known, and the memory of its first tensor."""
    kwargs = failed["kwargs"]
    values = [*failed["args"], *kwargs.values()]
    with suppress(TilewrightError, StopIteration, TypeError):
        tensor = next((value["tensor"] for value in values if isinstance(value, dict) and "tensor" in value), None)
        if tensor is None:
            sizes = kwargs.get("shape") or next(value for value in values if isinstance(value, list))
            dtype, layout = kwargs.get("dtype") or "DataType.BFLOAT16", kwargs.get("layout") or "Layout.ROW_MAJOR"
            tensor = [f"Shape({sizes})", dtype, layout, ""]
        shape = parse_shape(tensor[0]).logical
        known = {"shape": shape, "dtype": parse_dtype(tensor[1]), "page_layout": parse_ttnn(tensor[2]).value}
        return known, parse_memory_config(tensor[3]) if tensor[3] else None
    return {}, None


def _find_memory(failed: Mapping[str, Any]) -> tuple[str, MemoryConfig | None]:
    """Return the argument of a call that is its memory config, and its value."""
    named = [(name, value) for name, value in failed["kwargs"].items()]
    for name, value in [*named, *((f"#{place}", value) for place, value in enumerate(failed["args"], 1))]:
        if isinstance(value, str) and value.startswith("MemoryConfig("):
            with suppress(TilewrightError):
                return name, parse_memory_config(value)
            return name, None
    return _MEMORY, None


def _other_fields(fields: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    """Yield other blocks of a matmul's config: sub-blocks that divide, then smaller steps along K and the output."""
    height = fields.get("out_block_h") or fields.get("per_core_M")
    width = fields.get("out_block_w") or fields.get("per_core_N")
    if height and width and "out_subblock_w" in fields:
        own = (fields["out_subblock_h"], fields["out_subblock_w"])
        sizes = [(h, w) for h in _divisors(height) for w in _divisors(width) if h * w <= _MAX_SUBBLOCK]
        sizes.sort(key=lambda size: (-size[0] * size[1], size[0]))
        for h, w in [size for size in sizes if size != own][:_MAX_TENSORS]:
            yield {"out_subblock_h": h, "out_subblock_w": w}
    for step in [step for step in reversed(_divisors(fields.get("in0_block_w") or 1)) if step != fields["in0_block_w"]]:
        yield {"in0_block_w": step}


def _divisors(number: int) -> list[int]:
    return [step for step in range(1, number + 1) if number % step == 0]


def describe_memory(memory: MemoryConfig) -> dict[str, Any]:
    """Return a `memory` as plain data, of which the recorder makes a memory config of ttnn.

    >>> describe_memory(interleaved("dram"))
    {'layout': 'INTERLEAVED', 'buffer': 'DRAM'}
    """
    data: dict[str, Any] = {"layout": memory.memory_layout.name, "buffer": memory.buffer_type.name}
    shards = memory.shard_spec
    if shards is not None:
        data["grid"] = [[box.start.x, box.start.y, box.end.x, box.end.y] for box in shards.grid]
        data |= {"shard": list(shards.shape), "orientation": shards.orientation.name}
    return data


def _name_memory(memory: MemoryConfig) -> str:
    """Return a memory config as programs write it, or in words if it has shards."""
    if memory.sharding is None:
        return f"memory_config=ttnn.{memory.buffer_type.name}_MEMORY_CONFIG"
    return f"a memory_config of {memory}, on {memory.sharding.grid}"

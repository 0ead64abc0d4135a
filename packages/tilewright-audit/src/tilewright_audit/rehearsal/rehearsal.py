# SPDX-License-Identifier: Apache-2.0
"""`rehearse`: run a ttnn program on a mock machine, in both modes of capture, and audit it."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright._text import count_of
from tilewright.errors import FileFormatError
from tilewright.files import FilePath
from tilewright.findings import Severity
from tilewright.notation import ExplainedError, explain_error

from ..findings import AuditFinding, rank_findings, scope_note
from ..report import REHEARSAL, AuditReport
from ..run_audit import audit_graph
from .machine import MockMachine
from .process import ProgramRun, Stage, Ttnn, find_ttnn
from .recorder import ENDING

LIMIT = 300.0  # seconds for a run of the program
_MARKED = re.compile(r"(.*) @(\d+)")
_FATAL_SIGNALS = {11: "a segmentation fault", 6: "an abort", 9: "a kill", 139: "a segmentation fault"}
_UNKNOWN = "values (all are zeros), the time of compute, and what the program decides by values that it reads back"


@dataclass(frozen=True)
class TtnnProgram:
    """A program to rehearse: a script or a module, its arguments, its time limit, and whether its output is shown.

    >>> program = TtnnProgram("models/serve.py", ("--users", "32"))
    >>> program.name
    'serve.py'
    """

    target: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False
    limit: float = LIMIT
    shown: bool = False

    @property
    def name(self) -> str:
        """The name of the script, or of the module.

        >>> TtnnProgram("models/serve.py").name
        'serve.py'
        """
        return self.target if self.is_module else Path(self.target).name

    def run_on(self, stage: Stage, mode: str = "NORMAL", changes: Mapping[str, Any] | None = None) -> ProgramRun:
        """Run the program on a `stage`, in a `mode` of capture, with `changes` to the arguments of its calls."""
        shown = self.shown and mode == "NORMAL" and not changes
        return stage.run(
            self.target, self.arguments, mode, self.limit, is_module=self.is_module, changes=changes, shown=shown
        )


def rehearse(
    program: FilePath | TtnnProgram,
    machine: str | MockMachine = "N150",
    *,
    python: str | None = None,
    suggest: bool = False,
) -> AuditReport:
    """Run a ttnn program on a mock of a machine, with the ttnn of your Python, and audit how it used memory.

    The program runs twice: once with real addresses, and once for the buffers of all programs.

    Args:
        program: a script, or a `TtnnProgram` with arguments.
        machine: N150, N300, T3K, P100, P150, P150x2, P150x4 or P150x8, or the TOML file of a chip.
        python: the Python that has ttnn; by default this one.
        suggest: whether to try changes where it fails, or at its peak, and to list the ones that ttnn accepts.

    >>> from tilewright_audit import rehearse
    >>> report = rehearse("decoder.py", "N150")  # doctest: +SKIP
    >>> print(report.findings[0].message)  # doctest: +SKIP
    decoder.py:18: ttnn.matmul failed: The operation's own buffers end at 1285472, and a tensor begins at 712704.
    """
    known = program if isinstance(program, TtnnProgram) else TtnnProgram(str(program))
    if not known.is_module and not Path(known.target).is_file():
        raise FileNotFoundError(2, "No such file or directory", known.target)
    place = machine if isinstance(machine, MockMachine) else MockMachine.named(machine)
    ttnn = find_ttnn(python or sys.executable)
    with tempfile.TemporaryDirectory(prefix="tilewright-rehearsal-") as folder:
        stage = Stage.build(Path(folder).resolve(), place, ttnn)
        try:
            runs = [known.run_on(stage, "NORMAL")]
            if runs[0].captures and runs[0].kind != "stopped":
                runs.append(known.run_on(stage, "NO_DISPATCH"))
            report = report_runs(known, place, ttnn, runs)
            if suggest:
                from .suggestions import suggest_changes

                notes = [*report.notes, *suggest_changes(known, stage, runs[0], report)]
                report = replace(report, notes=rank_findings(notes))
        finally:
            stage.end_processes()
    return report


def report_runs(program: TtnnProgram, machine: MockMachine, ttnn: Ttnn, runs: Sequence[ProgramRun]) -> AuditReport:
    """Return the report of a `program` on a `machine` with a `ttnn`, from its runs: NORMAL, then NO_DISPATCH.

    Addresses and errors come from the first run, memory over time from the second, which has all buffers.

    >>> ttnn = Ttnn("python3", Path("/venv/ttnn"), "0.81.1")
    >>> report = report_runs(TtnnProgram("a.py"), MockMachine.named("N150"), ttnn, [ProgramRun("ended", {})])
    >>> report.notes[0].message
    'no device was opened, so there is nothing to audit'
    """
    first, last = runs[0], runs[-1]
    for run in runs:
        for path in run.captures:
            place_calls(path, run)
    if last is not first:
        for path, other_path in zip(first.captures, last.captures, strict=False):
            copy_addresses(path, other_path)
    audits = [_audit_run(run, machine) for run in runs]
    report = audits[0] or AuditReport(Path(program.target), REHEARSAL, machine.chip)
    notes = [note for note in report.notes if note.kind != "scope"]
    other = audits[-1]
    if other is not None and last is not first and len(last.calls) >= len(first.calls):
        report = replace(report, timeline=other.timeline, dram=other.dram, reshards=other.reshards)
        notes = [note for note in other.notes if note.kind != "scope"]
    elif last is not first:
        notes.append(scope_note("the run for the buffers of programs ended earlier: peaks may be without them"))
    end = list(_explain_end(program, first))
    failure = [finding for finding in end if finding.severity is not Severity.NOTE]
    # ttnn accepted what it ran: where the model differs, the model is in doubt, and not the program
    doubts = [finding for finding in report.findings if finding.kind not in ("failed call", "clash", "out of memory")]
    verdict = "fits" if first.captures else "nothing to rehearse: no device was opened"
    verdict = f"{verdict}, as far as it ran" if end and not failure else failure[0].message if failure else verdict
    notes += [replace(finding, severity=Severity.NOTE) for finding in doubts]
    notes += [*(finding for finding in end if finding.severity is Severity.NOTE), *_note_rest(first)]
    peaks = [capture["peaks"]["peak_total"] for capture in last.details.get("captures", ())]
    facts = [
        ("verdict", verdict),
        ("machine", f"{machine.name} ({count_of(machine.devices, 'device')}), ttnn {ttnn.version} on its mock"),
        *report.facts,
        ("peak of ttnn", f"{max(peaks)} bytes per core" if peaks else ""),
        ("not known", _UNKNOWN),
    ]
    return replace(
        report,
        path=Path(program.target),
        kind=REHEARSAL,
        findings=rank_findings(failure),
        notes=rank_findings(notes),
        facts=tuple([(name, value) for name, value in facts if value]),
    )


def _audit_run(run: ProgramRun, machine: MockMachine) -> AuditReport | None:
    """Return the audit of the capture with the highest peak, or of the last one of a run that failed."""
    chip = machine.chip if machine.name == machine.chip.name else None  # or from a file
    audits = [audit_graph(path, chip) for path in run.captures]
    if not audits:
        return None
    if run.kind != "ended":
        return audits[-1]
    return max(audits, key=lambda audit: (not audit.clean, audit.peaks.total))


def place_calls(path: Path, run: ProgramRun) -> None:
    """Write into the capture at `path` where the calls of a `run` are in the program, in place of their numbers.

    >>> import tempfile
    >>> node = {"counter": 1, "node_type": "function_start", "params": {"name": "ttnn.add @0"}}
    >>> run = ProgramRun("ended", {"calls": [{"name": "ttnn.add", "stack": [["model.py", 7]]}]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "report.json")
    ...     _ = path.write_text(json.dumps({"graph": [node]}))
    ...     place_calls(path, run)
    ...     json.loads(path.read_text())["graph"][0]["params"]
    {'name': 'ttnn.add', 'place': 'model.py:7', 'call': 0}
    """
    data = json.loads(path.read_text())
    for node in data["graph"]:
        params = node.get("params") or {}
        match = _MARKED.fullmatch(params.get("name", ""))
        if match is not None and int(match[2]) < len(run.calls):
            params["name"] = match[1]
            if node["node_type"] == "function_start":
                params |= {"place": describe_place(run.calls[int(match[2])]["stack"]), "call": int(match[2])}
    path.write_text(json.dumps(data))


def copy_addresses(placed: Path, other: Path) -> None:
    """Write the addresses of a capture into another one of the same program, which placed nothing.

    Args:
        placed: the capture with addresses.
        other: the capture without.
    """
    data = json.loads(other.read_text())
    addresses: dict[tuple[Any, ...], list[Any]] = {}
    for key, params in _list_allocations(json.loads(placed.read_text())["graph"]):
        addresses.setdefault(key, []).append(params["address"])
    for key, params in _list_allocations(data["graph"]):
        if addresses.get(key):
            params["address"] = addresses[key].pop(0)
    other.write_text(json.dumps(data))


def _list_allocations(nodes: Sequence[dict[str, Any]]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield the parameters of each allocation, with its call, memory and size."""
    call = None
    for node in nodes:
        params = node["params"] or {}
        call = params.get("call", call)
        if node["node_type"] == "buffer_allocate":
            yield (call, params.get("type"), params.get("size")), params


def describe_place(stack: Sequence[Sequence[Any]]) -> str:
    """Return where a call is in the program, from the `stack` of its files and lines, the innermost first.

    >>> describe_place([["models/mlp.py", 7], ["models/mlp.py", 30]])
    'mlp.py:7'
    """
    return f"{Path(stack[0][0]).name}:{stack[0][1]}" if stack else ""


def _explain_end(program: TtnnProgram, run: ProgramRun) -> Iterator[AuditFinding]:
    """Yield the reason that the program did not end as it should, if any: a failed call, or an error of its own."""
    details = run.details
    if run.kind == "raised":
        if run.failure is not None:
            yield explain_call(run, run.failure)
            return
        place = describe_place(details.get("stack", ()))
        explained = _explain(details["text"])
        where = f"{place or program.name}: "
        if explained is not None and (explained.kind != "unexplained" or "TT_" in details["text"]):
            message = f"{where}{explained.message}"
            yield AuditFinding("failed call", message, Severity.ERROR, explained.reason, explained.remedy)
            return
        text = " ".join(f"{details['type']}: {details['text']}".split())[:300]
        reason, severity = "the program raised it itself", Severity.ERROR
        if details.get("reads"):
            reason += "; it had read values back before, which are zeros in a rehearsal"
            severity = Severity.NOTE if details["type"] == "AssertionError" else severity
        remedy = "check values only on a card, for what follows to be rehearsed" if severity is Severity.NOTE else ""
        yield AuditFinding("program stopped", f"{where}{text}", severity, reason, remedy)
    elif run.kind == "exited" and details.get("status"):
        text = f" ({details['text']})" if details.get("text") else ""
        last = _describe_last(run)
        yield AuditFinding("program stopped", f"the program exited with status {details['status']}{text}, {last}")
    elif run.kind == "stopped":
        remedy = "raise --limit, or bound what the program does: loops that wait for values see only zeros"
        message = f"the program was stopped after {program.limit:g} s, {_describe_last(run)}"
        yield AuditFinding("program stopped", message, Severity.ERROR, "it did not end by itself", remedy)
    elif run.kind == "killed":
        why = _FATAL_SIGNALS.get(details["signal"], f"status {details['signal']}")
        message = f"the process ended with {why}, {_describe_last(run)}"
        reason, remedy = "a mock cannot do all that a card can", "leave that call out of the rehearsal"
        if run.calls and run.calls[-1].get("freed"):
            reason, remedy = "one of its tensors had been deallocated before", "deallocate it after its last use"
        yield AuditFinding("program stopped", message, Severity.ERROR, reason, remedy)


def _describe_last(run: ProgramRun) -> str:
    if not run.calls:
        return "before any call of ttnn"
    last = run.calls[-1]
    return f"after {last['name']} at {describe_place(last['stack'])}"


def explain_call(run: ProgramRun, error: Mapping[str, Any]) -> AuditFinding:
    """Return the finding that a call of a `run` failed, with the `error` of ttnn explained.

    >>> run = ProgramRun("raised", {"calls": [{"name": "ttnn.matmul", "stack": [["model.py", 7]]}]})
    >>> error = {"call": 0, "type": "RuntimeError", "text": "TT_FATAL: Kt (16) must be divisible by in0_block_w (5)"}
    >>> print(explain_call(run, error).message)
    model.py:7: ttnn.matmul failed: in0_block_w=5 does not divide the 16 tiles of K.
    """
    call = run.calls[error["call"]]
    place = describe_place(call["stack"])
    explained = _explain(error["text"])
    message, reason, remedy = f"{error['type']}: {' '.join(error['text'].split())[:300]}", "", ""
    if explained is not None:
        message, reason, remedy = explained.message, explained.reason, explained.remedy
    callers = [f"{Path(file).name}:{line}" for file, line in call["stack"][1:4]]
    if callers:
        reason = f"{reason} Called from {', '.join(callers)}.".strip()
    name = f"{call['name']} at {place}" if place else call["name"]
    finding = AuditFinding("failed call", f"{place}: {call['name']} failed: {message}", Severity.ERROR, reason, remedy)
    recorded = " ".join(error["text"].partition("info:")[2].split()) or error["text"]
    return replace(finding, call=name, recorded=recorded)


def _explain(text: str) -> ExplainedError | None:
    try:
        return explain_error(text).errors[0]
    except FileFormatError:
        return None


def _note_rest(run: ProgramRun) -> Iterator[AuditFinding]:
    """Yield what the rehearsal left out, and the errors that the program handled."""
    details = run.details
    if not run.captures:
        lost = "the capture was lost with the process" if run.calls else "no device was opened"
        yield scope_note(f"{lost}, so there is nothing to audit")
    if len(run.captures) > 1:
        yield scope_note(f"{len(run.captures)} devices were opened one after another; the fullest is reported")
    for error in run.errors:
        if error is run.failure:
            continue
        finding = explain_call(run, error)
        yield replace(finding, severity=Severity.NOTE, message=f"{finding.message} The program handled it.")
    left_out = details.get("left_out", {})
    if any(name in left_out for name in ENDING):
        yield scope_note("calls of traces were left out: what a trace records ran once, as it was recorded")
    others = [f"{name} ({count})" for name, count in left_out.items() if name not in ENDING]
    if others:
        yield scope_note(f"calls that a mock cannot do were left out: {', '.join(others)}")
    if details.get("reads"):
        skipped = f"; {count_of(details['unchecked'], 'comparison')} passed unchecked" if details["unchecked"] else ""
        yield scope_note(f"values were read back {count_of(details['reads'], 'time')}, and are zeros{skipped}")

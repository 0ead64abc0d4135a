# SPDX-License-Identifier: Apache-2.0
"""The tab of kernels: a program in Mojo or Python, run on the machine that checks it."""

from __future__ import annotations

import io
import json
import linecache
import os
import re
import sys
import traceback
from contextlib import redirect_stdout
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.explorer import FormFields, render_for_page

from ..fence import raise_fence
from ..language.support import describe_failure
from ..running import run_collecting
from ..scenes import kernel_scene
from ..simt import Defect, KernelReport, collect_reports
from .kernel_programs import parse_program

_PLACE = re.compile(r"<(?:stdin|kernel)>:(?=[0-9])")
MAX_PRINTED = 20_000  # characters that a program prints
MAX_REPORTS = 8  # launches that are shown
MAX_LINES = 60  # accesses that are listed for a launch
MAX_SIDE = 64  # rows and columns of a picture


def describe_kernel(fields: FormFields) -> dict[str, Any]:
    """Return the output of the form's program, the error that stopped it, and the reports of its kernels.

    >>> describe_kernel({"source": "def main():\\n    print(1 + 1)"})["output"]
    '2\\n'
    """
    language, source = parse_program(fields)
    output = BoundedOutput(MAX_PRINTED)
    with redirect_stdout(output):
        problem, reports = (_run_mojo if language == "mojo" else _run_python)(source)
    first = next((k for k, report in enumerate(reports) if not report.clean), 0)
    start = max(0, min(first, len(reports) - MAX_REPORTS))
    return {
        "output": output.getvalue(),
        "error": problem and _name_lines(_shorten(problem)),
        "launches": len(reports),
        "reports": [describe_report(report) for report in reports[start : start + MAX_REPORTS]],
    }


class BoundedOutput(io.StringIO):
    """The output of a program, up to `most` characters; the rest is dropped, with a note.

    >>> output = BoundedOutput(4)
    >>> _ = output.write("abcdef")
    >>> output.getvalue()
    'abcd\\n... and more'
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._left = most

    def write(self, text: str) -> int:
        """Write what still fits."""
        if self._left > 0:
            super().write(text[: self._left])
            self._left -= len(text)
            if self._left < 0:
                super().write("\n... and more")
        return len(text)


def _run_mojo(source: str) -> tuple[str | None, list[KernelReport]]:
    outcome = run_collecting(source, True, (), {}, True)
    if outcome.problem is None:
        note = "nothing ran: the program has no function main; write 'def main():'" if outcome.is_idle else None
        return note, outcome.reports
    return describe_failure(outcome.problem, outcome.sources), outcome.reports


def _run_python(source: str) -> tuple[str | None, list[KernelReport]]:
    """Run a program of Python, which the browser confines."""
    name = "<kernel>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with collect_reports() as reports:
        try:
            exec(compile(source, name, "exec"), {"__name__": "__main__"})  # noqa: S102  (see can_run_python)
        except BaseException as problem:  # of the program, whatever it is
            return _explain_failure(problem, name), reports
    return None, reports


def _explain_failure(problem: BaseException, name: str) -> str:
    """Return an error of a Python program with the last of its own lines."""
    if isinstance(problem, TilewrightError):
        return str(problem)
    lines = [step.lineno for step in traceback.extract_tb(problem.__traceback__) if step.filename == name]
    place = f"line {lines[-1]}: " if lines else ""
    return f"{place}{''.join(traceback.format_exception_only(problem)).strip()}"


def describe_report(report: KernelReport) -> dict[str, Any]:
    """Return a report for the page: its defects, the cost of its lines, and the picture of each thread's accesses.

    >>> from tilewright_mojo.simt import Dim
    >>> describe_report(KernelReport("scale", Dim(4), Dim(64)))["title"]
    'scale: 4 blocks of 64 threads: no errors'
    """
    return {
        "title": str(report).partition("\n")[0],
        "clean": report.clean,
        "defects": [_describe_defect(defect) for defect in (*report.errors, *report.warnings)],
        "lines": [
            {
                "line": cost.site.line,
                "source": cost.site.text,
                "action": f"{cost.action} {cost.space} {cost.memory}",
                "accesses": cost.accesses,
                "cost": str(cost),
                "ideal": cost.units == cost.ideal,
            }
            for cost in report.sites[:MAX_LINES]
        ],
        "scene": render_for_page(kernel_scene(report, side=MAX_SIDE)) if report.touches else None,
    }


def _shorten(text: str) -> str:
    """Return the part of an error that the page shows: a program can raise a text of any length."""
    return text if len(text) <= MAX_PRINTED else f"{text[:MAX_PRINTED]}\n... and more"


def _name_lines(text: str) -> str:
    """Return a text in which places have lines only: there is one source, which has no name."""
    return _PLACE.sub("line ", text)


def _describe_defect(defect: Defect) -> dict[str, Any]:
    more = f" ({defect.count - 1} more like it)" if defect.count > 1 else ""
    return {
        "severity": defect.severity.value,
        "kind": defect.kind,
        "message": _name_lines(f"{defect.message}{more}"),
        "remedy": defect.remedy,
        "witnesses": [{"text": _name_lines(str(witness)), "source": witness.site.text} for witness in defect.witnesses],
    }


def main() -> None:
    """Answer the question on standard input, in a fenced process that ends with it."""
    question = json.load(sys.stdin)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as output:
        os.dup2(2, 1)  # output of the program is not an answer
        unfenced = raise_fence()
        try:
            answer = {**describe_kernel(question), "unfenced": unfenced}
        except TilewrightError as problem:
            answer = {"refused": str(problem), "field": getattr(problem, "field", None)}
        json.dump(answer, output)


if __name__ == "__main__":
    main()

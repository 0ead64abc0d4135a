# SPDX-License-Identifier: Apache-2.0
"""Seeded defects in Mojo kernels, mechanically: the checks, or the program's own assertions, find every one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright_mojo.running import run_collecting

pytestmark = pytest.mark.slow

TEXT = Path(__file__).with_name("kernels_to_mutate.mojo").read_text()
KERNELS = TEXT[: TEXT.index("def main()")]
MAIN = TEXT[len(KERNELS) :]

HARMLESS = {("range + 1", "for step in range(2):"): "one more tile, which is beyond the matrices: all zeros"}


def replace_in_line(k: int, line: str) -> str:
    lines = KERNELS.split("\n")
    lines[k] = line
    return "\n".join(lines) + MAIN


def mutants() -> Iterator[tuple[str, str, str]]:
    """Yield (kind of change, the line, the program)."""
    for k, line in enumerate(KERNELS.split("\n")):
        text = line.strip()
        space = line[: len(line) - len(line.lstrip())]
        if text == "barrier()":
            yield "removed barrier", text, replace_in_line(k, f"{space}pass")
            yield "skipped barrier", text, replace_in_line(k, f"{space}if thread_idx.x != 1: barrier()")
        for match in re.finditer(r" ([<>]) ", line if text.startswith(("if", "while")) else ""):
            yield "off by one", text, replace_in_line(k, f"{line[: match.end(1)]}={line[match.end(1) :]}")
        if text.startswith("if"):
            yield "removed guard", text, replace_in_line(k, f"{space}if True:")
        for match in re.finditer(r"range\((\w+)\)", line):
            for change in ("+ 1", "- 1"):
                yield f"range {change}", text, replace_in_line(k, line.replace(match[1], f"{match[1]} {change}"))
        if re.match(r"\w+\[.*\] = 0$", text):
            yield "removed initialisation", text, replace_in_line(k, f"{space}pass")
        for match in re.finditer(r"\[([\w.]+), ([\w.]+)\]", line if "total" in text or "_tile[" in text else ""):
            swapped = f"[{match[2]}, {match[1]}]"
            yield "swapped indices", text, replace_in_line(k, line[: match.start()] + swapped + line[match.end() :])


def is_found(text: str) -> bool:
    outcome = run_collecting(text, True, (), {}, True)
    return outcome.problem is not None or not all(report.clean for report in outcome.reports)


def test_the_kernels_themselves_are_clean():
    outcome = run_collecting(TEXT, True, (), {}, True)
    assert outcome.problem is None
    assert len(outcome.reports) == 3
    assert not [str(defect) for report in outcome.reports for defect in report.errors]


def test_every_seeded_defect_is_found():
    changes = list(mutants())
    assert len(changes) > 40
    missed = [(kind, line) for kind, line, text in changes if (kind, line) not in HARMLESS and not is_found(text)]
    assert not missed

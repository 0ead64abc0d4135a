# SPDX-License-Identifier: Apache-2.0
"""`tilewright fit MODEL --for MACHINE`: whether a model fits with its users, and what to change if it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from .._text import format_table
from .console import Answer, ExitCode, table_width, wrap_lines
from .show import picture_text

if TYPE_CHECKING:
    from ..conversion import Capacity


def answer_capacity(model: str, machine: str, solve: str | None, explain: bool, question: Mapping[str, Any]) -> Answer:
    """Return whether a model fits a machine, with the largest numbers, and with `explain` a picture and remedies.

    `question` are the other arguments of `capacity`, and `solve` is what is to be as large, or as exact, as possible.
    """
    from ..conversion import capacity, solve_precision
    from ..memory import format_steps

    lines: list[tuple[str, str]] = []
    if solve == "precision":
        found, report = solve_precision(model, machine, **question)
        lines.append(("precision", found if report.fits else "none that is known suffices"))
    else:
        report = capacity(model, machine, **question)
        report = report if solve is None else report.solve(solve)
    changes = list(report.changes()) if explain or not report.fits else []
    lines += [("change" if k == 0 else "", text) for k, text in enumerate(changes)]
    data = report.to_json() | {"solved": solve, "changes": changes}
    verdict, _, rest = str(report).partition("\n")
    first = click.style(wrap_lines(verdict), fg="green" if report.fits else "red", bold=True)

    def text() -> str:
        picture = ["", picture_text(_draw(report))] if explain else []
        return "\n".join([first, rest, *([format_steps(lines)] if lines else []), *picture])

    return Answer(text, data, ExitCode.OK if report.fits else ExitCode.NO)


def _draw(report: Capacity) -> Any:
    from ..views import scene_of

    return scene_of(report)


def answer_machines(model: str, question: Mapping[str, Any]) -> Answer:
    """Return a table of all machines: whether a model fits, and the largest numbers of users and tokens."""
    from ..conversion import list_machines

    reports = list_machines(model, **question)
    rows = [("machine", "devices", "fits", "left", "users", "context")]
    notes = []
    for name, report in reports.items():
        if isinstance(report, str):
            rows.append((name, "", "unknown", "", "", ""))
            notes.append(f"{name}: {report}")
            continue
        fits = ("fits" if report.fits else "does not fit") + ", estimated" * report.is_estimate
        left = f"{report.free / report.bank_bytes:.0%}" if report.fits else ""
        devices = str(report.mesh[0] * report.mesh[1])
        rows.append((name, devices, fits, left, str(report.largest_users or 0), str(report.largest_context or 0)))
    known = [report for report in reports.values() if not isinstance(report, str)]
    context = known[0].context if known else 0
    notes += [
        f"users: with {context} tokens each, all at once; context: of one user, with all of the cache",
        *known[0].notes,
    ]
    data = {name: report if isinstance(report, str) else report.to_json() for name, report in reports.items()}
    lines = format_table(rows, table_width(), right=[1, 3, 4, 5])
    is_any = any(report.fits for report in known)
    return Answer(lambda: "\n".join([*lines, *notes]), data, ExitCode.OK if is_any else ExitCode.NO)

# SPDX-License-Identifier: Apache-2.0
"""`tilewright verify`: check converted files against their manifest and their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .._text import count_of, format_bytes
from .console import Answer, ExitCode, Progress, table_width, wrap_lines
from .options import SIZE, device_option
from .program import follow_links_option, verb

if TYPE_CHECKING:
    from ..conversion import VerifyReport
    from ..memory import DeviceLike

_MAX_LINES = 20


@verb("verify")
@click.argument("out", type=click.Path())
@click.argument("sources", nargs=-1, type=click.Path(), metavar="[SOURCE]...")
@click.option("--source", "extra", multiple=True, metavar="PATH", help="Another way to give SOURCE; may be repeated.")
@click.option("--memory", "memory_limit", type=SIZE, default="1GiB", show_default=True, help="Memory limit.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Threads. [one more than cores]")
@device_option
@follow_links_option
def command(
    out: str,
    sources: tuple[str, ...],
    extra: tuple[str, ...],
    memory_limit: int,
    jobs: int | None,
    device: DeviceLike | None,
    follow_links: bool,
) -> Answer:
    """Check converted files: OUT is what convert made, a directory or a .safetensors file.

    Every file is hashed, compared with the manifest and decoded. With its SOURCE every tensor is also converted again
    and compared byte for byte, and the distance between values is measured; with --device, only what that device of
    a mesh holds.

    \b
    tilewright verify out/
    tilewright verify out/ model.safetensors

    The exit status is 0 if everything is correct, and 1 if it is not.
    """
    from ..conversion import verify

    with Progress("verifying", "tensors") as progress:
        report = verify(
            out,
            [*sources, *extra] or None,
            memory=memory_limit,
            jobs=jobs,
            progress=progress.update,
            follow_symlinks=follow_links,
            device=device,
        )
    return Answer(lambda: _format_answer(report), report.to_json(), ExitCode.OK if report else ExitCode.NO)


def _format_answer(report: VerifyReport) -> str:
    lines = [f"note: {note}" for note in report.notes]
    bad = click.style("bad:", fg="red", bold=True)
    lines += [f"{bad} {verdict.name}: {verdict.problem}" for verdict in report.problems[:_MAX_LINES]]
    if len(report.problems) > _MAX_LINES:
        lines.append(f"... and {len(report.problems) - _MAX_LINES} more; --json lists all")
    size = format_bytes(sum(verdict.nbytes for verdict in report.verdicts))
    if report.problems:
        lines.append(f"{report.out}: {len(report.problems)} of {count_of(len(report.verdicts), 'tensor')} failed")
        return "\n".join(lines)
    against = "manifest and source" if report.against_source else "manifest"
    good, count = click.style("good:", fg="green", bold=True), count_of(len(report.verdicts), "tensor")
    match = "matches its" if len(report.verdicts) == 1 else "match their"
    lines.append(f"{good} {report.out}: {count}, {size}, {match} {against}")
    if report.against_source and report.verdicts:
        worst = max(report.verdicts, key=lambda verdict: verdict.largest_error or 0)
        lines.append(
            f"largest error: {worst.largest_error:.3g} in {worst.name}, where the largest value is"
            f" {worst.largest_value:.3g}"
        )
    return wrap_lines("\n".join(lines), table_width())

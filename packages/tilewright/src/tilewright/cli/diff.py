# SPDX-License-Identifier: Apache-2.0
"""`tilewright diff`: compare two files across formats and layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .console import Answer, ExitCode, Progress, check_output_path, save_picture, table_width, wrap_lines
from .options import FILE, SIZE, device_option, tensors_option
from .program import follow_links_option, verb

if TYPE_CHECKING:
    from ..conversion import Comparison, TensorComparison


@verb("diff")
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@tensors_option
@click.option("--atol", type=click.FloatRange(0), default=0.0, metavar="X", help="Accept errors up to X + rtol x |a|.")
@click.option("--rtol", type=click.FloatRange(0), default=0.0, metavar="X", help="Relative tolerance; see --atol.")
@click.option(
    "--ulp", type=click.FloatRange(0), metavar="N", help="Also accept errors up to N ULPs of the coarser format."
)
@click.option("--pcc", type=click.FloatRange(-1, 1), metavar="P", help="Require a correlation of at least P.")
@click.option(
    "--transpose/--no-transpose",
    default=None,
    help="Whether B has its last two dimensions swapped.  [from the manifest of a conversion]",
)
@click.option("--memory", type=SIZE, default=64 << 20, help="Memory limit. [64MiB]")
@click.option("--map", "with_map", is_flag=True, help="Draw the errors of the worst tensor, block by block.")
@click.option("--show", type=FILE, help="Save that picture: .svg or .html.")
@device_option
@follow_links_option
def command(
    a: str, b: str, tensors: tuple[str, ...], with_map: bool, show: str | None, follow_links: bool, **settings: Any
) -> Answer:
    """Compare two files or directories across number formats and layouts, tensor by tensor, by logical coordinates.

    Without a tolerance, elements must be equal. A file packed from another one is within --ulp 1 of it.

    \b
    tilewright diff model.safetensors converted/ --ulp 1
    tilewright diff a.npy b.tensorbin --rtol 1e-2 --map

    Tensors on a mesh of devices are compared as a whole, or with --device what one of them holds.
    The exit status is 0 if all tensors are the same, and 1 if they are not.
    """
    from ..conversion import diff
    from ..files import open_tensors

    if show is not None:
        check_output_path(show)
    with Progress("comparing", "elements") as progress:
        comparison = diff(
            open_tensors(a, follow_links),
            open_tensors(b, follow_links),
            tensors=tensors or None,
            progress=progress.update,
            **settings,
        )
    worst = comparison.worst
    if show is not None and worst is not None:
        save_picture(worst, show)
    status = ExitCode.OK if comparison.same else ExitCode.NO
    return Answer(
        lambda: _format_answer(comparison, worst if with_map else None, show),
        comparison.to_json() | {"show": show},
        status,
    )


def _format_answer(comparison: Comparison, drawn: TensorComparison | None, show: str | None) -> str:
    summary, _, details = comparison.text(table_width()).partition("\n\n")
    heading, _, table = summary.partition("\n")
    parts = [click.style(heading, fg="green" if comparison.same else "red", bold=True), table]
    parts += ["", wrap_lines(details)] if details else []
    if drawn is not None and drawn.unequal:
        from ..views import scene_of, to_text

        parts += ["", to_text(scene_of(drawn))]
    if show is not None:
        parts.append(f"wrote {show}")
    return "\n".join(parts)

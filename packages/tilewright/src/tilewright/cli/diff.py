# SPDX-License-Identifier: Apache-2.0
"""`tilewright diff`: compare two files across formats and layouts, or two texts of tensors or layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .._text import count_of, format_extents
from .console import Answer, ExitCode, Progress, check_output_path, save_picture, shorten, table_width, wrap_lines
from .options import FILE, NO_CHIP, SIZE, SpecOptions, device_option, tensors_option
from .program import follow_links_option, refuse_options, verb
from .subjects import TEXT, is_text, parse_subject, read_text

if TYPE_CHECKING:
    from ..conversion import Comparison, DifferenceReason, TensorComparison
    from ..layout import LayoutLike

MAX_COMPARED = 1 << 22  # elements of layouts that are compared one by one


@verb("diff")
@click.argument("a", metavar="FILE|TEXT", type=TEXT)
@click.argument("b", metavar="FILE|TEXT", type=TEXT)
@tensors_option
@click.option("--atol", type=click.FloatRange(0), default=0.0, metavar="X", help="Accept errors up to X + rtol x |a|.")
@click.option("--rtol", type=click.FloatRange(0), default=0.0, metavar="X", help="Relative tolerance; see --atol.")
@click.option(
    "--ulp", type=click.FloatRange(0), metavar="N", help="Also accept errors up to N ULPs of the coarser format."
)
@click.option("--pcc", type=click.FloatRange(-1, 1), metavar="P", help="Require a correlation of P; alone, only that.")
@click.option(
    "--transpose/--no-transpose",
    default=None,
    help="Whether B has its last two dimensions swapped.  [from the manifest of a conversion]",
)
@click.option("--memory", type=SIZE, default=64 << 20, help="Memory limit. [64MiB]")
@click.option("--why", is_flag=True, help="Say why each tensor differs: another order, format, scale, layer, or part.")
@click.option("--map", "with_map", is_flag=True, help="Draw the errors of the worst tensor, block by block.")
@click.option("--show", type=FILE, help="Save that picture: .svg or .html.")
@device_option
@follow_links_option
def command(
    a: str,
    b: str,
    tensors: tuple[str, ...],
    why: bool,
    with_map: bool,
    show: str | None,
    follow_links: bool,
    **settings: Any,
) -> Answer:
    """Compare two files or directories across number formats and layouts, tensor by tensor, by logical coordinates.

    Without a tolerance, elements must be equal. A file packed from another one is within --ulp 1 of it.

    \b
    tilewright diff model.safetensors converted/ --ulp 1
    tilewright diff a.npy b.tensorbin --rtol 1e-2 --map
    tilewright diff "(4,8):(8,1)" "(4,8):(1,4)"

    Of two texts, tensors as ttnn prints them or layouts in any notation, it lists what differs: shape, dtype, layout,
    memory, and whether each index has the same offset.

    With --why, each difference is explained, if a reason holds for all elements. Of dumps that are numbered in the
    order of a run, it shows where the error jumps.

    Tensors on a mesh of devices are compared as a whole, or with --device what one of them holds.
    The exit status is 0 if all tensors are the same, and 1 if they are not.
    """
    from ..conversion import diff, explain_difference
    from ..files import open_tensors

    a, b = read_text(a), read_text(b)
    if is_text(a) or is_text(b):
        options = [str(option.name) for option in click.get_current_context().command.params]
        refuse_options([name for name in options if name not in ("a", "b", "json", "debug")], "on texts")
        return _diff_texts(a, b)
    if show is not None:
        check_output_path(show)
    ours, theirs = open_tensors(a, follow_links), open_tensors(b, follow_links)
    with Progress("comparing", "elements") as progress:
        comparison = diff(ours, theirs, tensors=tensors or None, progress=progress.update, **settings)
    reasons = explain_difference(ours, theirs, comparison=comparison) if why else []
    worst = comparison.worst
    if show is not None and worst is not None:
        save_picture(worst, show)
    return Answer(
        lambda: _format_answer(comparison, reasons, worst if with_map else None, show),
        comparison.to_json() | {"show": show} | ({"why": [reason.to_json() for reason in reasons]} if why else {}),
        ExitCode.OK if comparison.same else ExitCode.NO,
    )


def _diff_texts(a: str, b: str) -> Answer:
    """Return in which fields two texts differ, and whether their layouts are the same function."""
    from ..memory import format_steps

    (left, layout), (right, other) = map(_read_side, (a, b))
    equal, where = _compare_layouts(layout, other)
    names = list(dict.fromkeys([*left, *right]))
    different = [name for name in names if left.get(name) != right.get(name) and not (name == "layout" and equal)]
    steps = []
    for name in names:
        pair = left.get(name, "not stated"), right.get(name, "not stated")
        steps += [(name, pair[0])] if pair[0] == pair[1] else [(f"{name} A", pair[0]), (f"{name} B", pair[1])]
    steps.append(("function", where))
    heading = f"A and B differ in {', '.join(different)}" if different else "A and B are the same"
    first = click.style(heading, fg="red" if different else "green", bold=True)
    data = {
        "same": not different,
        "different": different,
        "same_function": equal,
        "fields": {name: [left.get(name), right.get(name)] for name in names},
    }
    return Answer(lambda: f"{first}\n{format_steps(steps)}", data, ExitCode.NO if different else ExitCode.OK)


def _read_side(text: str) -> tuple[dict[str, str], LayoutLike | None]:
    """Return the fields of a text by name, and its layout from coordinates to elements, if it has one."""
    from ..layout import LayoutLike, product_each
    from ..memory import MemoryConfig, PageLayout, TensorSpec
    from ..notation import ParsedText

    if not is_text(text):
        raise click.UsageError(f"one side is a text, but {shorten(text)} is none; compare two texts, or two files")
    parsed = parse_subject(text, SpecOptions(chip=NO_CHIP))
    about = parsed.subject if isinstance(parsed, ParsedText) else parsed
    if isinstance(about, TensorSpec):
        tiles = f"tiles of {format_extents(about.tile.shape)}" if about.page_layout is PageLayout.TILE else "rows"
        fields = {"shape": format_extents(about.shape.logical, "scalar"), "dtype": about.dtype.name, "pages": tiles}
        return fields | {"layout": str(about.stored), "memory": str(about.memory)}, about.stored
    if isinstance(about, MemoryConfig):
        return {"memory": str(about)}, None
    if getattr(parsed, "notation", "") == "error":
        raise click.UsageError(f"{shorten(text)} is an error message, which has no layout; use tilewright explain")
    fields = {"shape": format_extents(product_each(about.shape), "scalar")} if isinstance(about, LayoutLike) else {}
    if isinstance(parsed, ParsedText) and parsed.element_bits is not None:
        fields["element"] = count_of(parsed.element_bits, "bit")
    return fields | {"layout": str(about)}, about if isinstance(about, LayoutLike) else None


def _compare_layouts(a: LayoutLike | None, b: LayoutLike | None) -> tuple[bool | None, str]:
    """Return whether two layouts have the same offset for every index, or None if unknown; and a sentence about it."""
    import numpy as np

    from ..layout import Layout, functionally_equal, index_to_coordinate, product_each

    if a is None or b is None:
        return None, "not compared: only layouts of elements are functions"
    if a.size != b.size:
        return False, f"different: {a.size} and {b.size} elements"
    if a.size > MAX_COMPARED and not (isinstance(a, Layout) and isinstance(b, Layout)):
        return None, f"not compared: more than {MAX_COMPARED} elements"
    if functionally_equal(a, b):
        return True, "the same: every index has the same offset"
    numbers, extents = np.arange(min(a.size, MAX_COMPARED)), product_each(a.shape)
    if any(side.axes or side.is_replicated for side in (a, b)) or extents != product_each(b.shape):
        return False, "different"
    unequal = (a(numbers) != b(numbers)) | (a.valid(numbers) != b.valid(numbers))
    if not unequal.any():
        return False, f"different, after the first {MAX_COMPARED} elements"
    first = int(np.argmax(unequal))
    return False, f"different, first at {index_to_coordinate(first, extents)}: offsets {a(first)} and {b(first)}"


def _format_answer(
    comparison: Comparison, reasons: list[DifferenceReason], drawn: TensorComparison | None, show: str | None
) -> str:
    summary, _, details = comparison.text(table_width()).partition("\n\n")
    heading, _, table = summary.partition("\n")
    parts = [click.style(heading, fg="green" if comparison.same else "red", bold=True), table]
    parts += ["", wrap_lines(details)] if details else []
    if reasons:
        width = max(len(reason.name) for reason in reasons)
        parts += ["", *[wrap_lines(f"{reason.name:<{width}}  {reason}") for reason in reasons]]
    elif any(not tensor.same for tensor in comparison):
        parts += ["", "--why gives the reason for each, if one holds for all elements"]
    if drawn is not None and drawn.unequal:
        from ..views import scene_of, to_text

        parts += ["", to_text(scene_of(drawn))]
    if show is not None:
        parts.append(f"wrote {show}")
    return "\n".join(parts)

# SPDX-License-Identifier: Apache-2.0
"""`tilewright conflicts`: the bank conflicts of an access to shared memory, and what removes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import click

from .._text import count_of
from ..errors import LayoutError
from .console import Answer, ExitCode, save_picture, shorten
from .options import FILE, ParsedType
from .program import verb
from .show import check_picture_path, picture_text
from .subjects import TEXT, read_text, text_shape_option

if TYPE_CHECKING:
    from ..analysis import BankReport, Certificate
    from ..layout import LayoutLike, Linear
    from ..views import Fact, Scene

INSTRUCTIONS = ("ld", "st", *[f"{verb}matrix.x{count}" for verb in ("ld", "st") for count in (1, 2, 4)])
_MAX_WARPS = 8  # that are listed; --json has all
_MAX_PHASES = 16  # that are drawn


def _parse_instruction(text: str) -> str:
    from ..analysis.accesses import Instruction

    Instruction.of(text)
    return text


INSTRUCTION = ParsedType("instruction", _parse_instruction, lambda: INSTRUCTIONS)


@verb("conflicts")
@click.argument("text", metavar="TEXT", type=TEXT)
@click.option("--threads", metavar="T", help="Layout from threads (and values) to coordinates. [TEXT's first mode]")
@click.option("--itemsize", type=click.IntRange(1), metavar="N", help="Bytes of an element. [as TEXT states, or 4]")
@click.option("--vector", type=click.IntRange(1), metavar="N", help="Elements per thread and instruction. [widest]")
@click.option("--instruction", type=INSTRUCTION, default="ld", help="ld, st, ldmatrix.x4, ld.shared.v4.f32 ... [ld]")
@click.option("--fix", is_flag=True, help="Find a swizzle, or padding, that removes the conflicts.")
@click.option("-o", "--output", type=FILE, help="Write the picture to an .svg, .html, .txt or .json.")
@text_shape_option
def command(
    text: str,
    threads: str | None,
    itemsize: int | None,
    vector: int | None,
    instruction: str,
    fix: bool,
    output: str | None,
    text_shape: tuple[int, ...] | None,
) -> Answer:
    """Count the bank conflicts of an access to shared memory, warp by warp, and find a remedy.

    TEXT is the layout of the memory, from coordinates to elements, in any notation; the size of its elements decides
    the banks. T is a layout from threads, and the values of each, to coordinates: colexicographic, as CuTe counts
    them, or on the axes 0, 1 ...; or an encoding of registers by Triton.

    \b
    tilewright conflicts "(32,32):(32,1)" --threads 32:1 --itemsize 4 --fix
    tilewright conflicts "(_64,_64):(_64,_1)" --itemsize 2 \\
        --threads "((_8,_4),_2):((_1@0,_2@1),_1@1)"
    tilewright conflicts "Sw<3,4,3> o smem_ptr[16b](unset) o (_16,_64):(_64,_1)" \\
        --threads "(16,2):(1,128)" --instruction ldmatrix.x4

    The exit status is 0 if there are no conflicts, or if --fix finds a remedy without any, and otherwise 1.
    """
    from ..analysis import bank_conflicts, conflicts_by_warp, find_remedy
    from ..views import Fact

    check_picture_path(output)
    memory, stated = _read_memory(text, text_shape)
    access = None if threads is None else _read_threads(threads, memory)
    options: dict[str, Any] = {"itemsize": itemsize or stated, "vector": vector, "instruction": instruction}
    report = bank_conflicts(memory, access, **options)
    warps = conflicts_by_warp(memory, access, **options)
    worst = max(range(len(warps)), key=lambda number: warps[number].excess)
    scene = _draw(warps[worst])
    facts = [Fact("memory", str(memory)), *([] if threads is None else [Fact("threads", shorten(threads))])]
    facts += [*scene.facts, *_list_warps(report, warps)]
    data = {"layout": str(memory), "threads": threads, **options, "itemsize": itemsize or stated or 4}
    data |= {**_report_data(report), "assumption": report.assumption, "warps": list(map(_report_data, warps))}
    data |= {"collisions": list(map(str, report.collisions)), "remedy": None}
    panels, is_free = list(scene.panels), report.conflict_free
    if fix and not is_free:
        remedy = find_remedy(memory, access, **options)
        fixed, is_free = remedy.apply(memory), remedy.is_conflict_free
        facts += _list_remedy(remedy, fixed, memory)
        data["remedy"] = _remedy_data(remedy, fixed)
        if fixed is not None:
            after = _draw(conflicts_by_warp(fixed, access, **options)[worst])
            panels.append(replace(after.panels[0], title="with the remedy"))
    title = scene.title if len(warps) == 1 else f"bank conflicts of warp {worst}, the worst of {len(warps)}"
    scene = replace(scene, title=title, panels=tuple(panels), facts=tuple(facts))
    if output is not None:
        save_picture(scene, output)
    written = "" if output is None else f"\nwrote {output}"
    return Answer(lambda: picture_text(scene) + written, data, ExitCode.OK if is_free else ExitCode.NO)


def _read_memory(text: str, shape: tuple[int, ...] | None) -> tuple[LayoutLike, int | None]:
    """Return the layout of the memory that a text describes, and the bytes of an element, if it states them."""
    from ..layout import LayoutLike
    from ..notation import ParsedText, parse

    parsed = parse(read_text(text), shape)
    layout = parsed.memory_layout if isinstance(parsed, ParsedText) else parsed
    if not isinstance(layout, LayoutLike):
        raise click.UsageError(f"{shorten(text)} has no offsets; give a layout from coordinates to elements of memory")
    bits = parsed.element_bits if isinstance(parsed, ParsedText) else None
    if bits is not None and bits % 8:
        raise LayoutError(f"elements of {bits} bits share bytes; give the layout of the bytes, and --itemsize 1")
    return layout, None if bits is None else bits // 8


def _read_threads(text: str, memory: LayoutLike) -> LayoutLike | Linear:
    """Return the layout of the threads that a text describes; without a shape, it has the memory's."""
    from ..layout import LayoutLike, Linear, product_each
    from ..notation.parsing import parse_with_spare_shape

    parsed = parse_with_spare_shape(read_text(text), product_each(memory.shape))
    layout = getattr(parsed, "layout", parsed)
    if not isinstance(layout, (LayoutLike, Linear)):
        raise click.UsageError(
            f"--threads {shorten(text)} is not a layout from threads to coordinates; write it as 32:1"
        )
    return layout


def _draw(report: BankReport) -> Scene:
    """Return the picture of a warp's access, of its first phases."""
    from ..views import Fact, scene_of

    scene = scene_of(replace(report, phase_words=report.phase_words[:_MAX_PHASES]))
    more = len(report.phase_words) - _MAX_PHASES
    return replace(scene, facts=(*scene.facts, Fact("not drawn", f"{more} other phases"))) if more > 0 else scene


def _list_warps(report: BankReport, warps: tuple[BankReport, ...]) -> Iterator[Fact]:
    """Yield the conflicts of each warp, if there are several."""
    from ..views import Fact

    if len(warps) > 1:
        for number, warp in enumerate(warps[:_MAX_WARPS]):
            counted = f"{warp.wavefronts} wavefronts in {count_of(warp.instructions, 'instruction')}"
            yield Fact(f"warp {number}", f"{replace(warp, assumption='')}, {counted}", _judge(warp.conflict_free))
        clashing = sum([not warp.conflict_free for warp in warps])
        counted = f"{report.wavefronts} wavefronts, without conflicts {report.ideal}"
        yield Fact("all warps", f"{clashing} of {len(warps)} with conflicts, {counted}")


def _list_remedy(remedy: Certificate, fixed: LayoutLike | None, memory: LayoutLike) -> Iterator[Fact]:
    from ..views import Fact

    tone = _judge(remedy.is_conflict_free)
    yield Fact("remedy", str(remedy.remedy) if fixed is None else str(fixed), tone)
    yield Fact("certificate", f"{remedy}; counted again: {'confirmed' if remedy.verify() else 'not so'}", tone)
    if fixed is not None and fixed.cosize != memory.cosize:
        yield Fact("memory with it", f"{fixed.cosize} elements instead of {memory.cosize}")


def _judge(is_conflict_free: bool) -> Literal["good", "bad"]:
    return "good" if is_conflict_free else "bad"


def _report_data(report: BankReport) -> dict[str, Any]:
    names = ("ways", "wavefronts", "ideal", "excess", "conflict_free", "instructions", "phases")
    return {name: getattr(report, name) for name in names}


def _remedy_data(remedy: Certificate, fixed: LayoutLike | None) -> dict[str, Any]:
    return {
        "layout": None if fixed is None else str(fixed),
        "remedy": None if remedy.remedy is None else str(remedy.remedy),
        "padding_after": remedy.row,
        "wavefronts": sum(remedy.wavefronts),
        "ideal": sum(remedy.ideal),
        "conflict_free": remedy.is_conflict_free,
        "searched": remedy.searched,
        "verified": remedy.verify(),
    }

# SPDX-License-Identifier: Apache-2.0
"""`tilewright show`: layouts, tensors, memory, tiles and pipelines as pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import exit_codes
from .console import Answer
from .failures import Failure, told
from .spec_options import SpecOptions, given_options, spec_options
from .subjects import Subject
from .targets import check_target, save_picture
from .values import COORDINATE, SHAPE, SIZE
from .verb import SectionedOption, verb
from .verb import follow_links as links_option

if TYPE_CHECKING:
    from ..memory import Allocator
    from ..views import Scene

SUFFIXES = (".svg", ".html", ".png", ".txt", ".json")
SCHEMES = ("simplex", "duplex", "double", "buffered", "direct")


def _in(section: str) -> Callable[..., Callable[..., Any]]:
    return lambda *names, **settings: click.option(*names, cls=SectionedOption, section=section, **settings)


_motion, _memory = _in("Tiles in motion"), _in("Memory")


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be seen of the subjects, as given on the command line."""

    at: tuple[int, ...] | None = None
    page: int | None = None
    error: bool = False
    color: str | None = None
    label: str | None = None
    side: int | None = None
    tiles: tuple[int, ...] | None = None
    overlap: int = 0
    halo: int = 0
    pipeline: str | None = None
    depth: int | None = None
    times: tuple[int, ...] | None = None
    memory: str | None = None
    each: bool = False
    cb: tuple[int, ...] = ()

    def options(self) -> dict[str, Any]:
        """Return the cap on rows and columns, if there is one."""
        return {} if self.side is None else {"side": self.side}


@verb("show")
@click.argument("things", nargs=-1, required=True, metavar="THING...")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write .svg, .html, .png, .txt or .json."
)
@click.option("--at", type=COORDINATE, metavar="I,J,K", help="Mark the way of an element.")
@click.option("--page", type=click.IntRange(0), metavar="N", help="Draw the elements of one page.")
@click.option("--tensor", metavar="NAME", help="Which tensor of a file.")
@click.option("--error", is_flag=True, help="Draw what --dtype does to the values of a file.")
@click.option("--color", metavar="NAME", help="What cells of a layout are painted by.")
@click.option("--label", metavar="NAME", help="What is written into them.")
@click.option("--side", type=click.IntRange(1, 512), metavar="N", help="Most rows and columns drawn.")
@_motion("--tiles", type=SHAPE, metavar="SHAPE", help="Draw how tiles cut the tensor.")
@_motion("--overlap", type=click.IntRange(0), default=0, metavar="N", help="Elements that tiles share.")
@_motion("--halo", type=click.IntRange(0), default=0, metavar="N", help="Elements beyond the edges.")
@_motion("--pipeline", type=click.Choice(SCHEMES), help="Draw the schedule of moving those tiles.")
@_motion("--depth", type=click.IntRange(1, 64), metavar="N", help="Buffers of buffered and direct. [3]")
@_motion("--times", type=COORDINATE, metavar="I,C,E", help="Times of import, compute, export. [1,1,1]")
@_memory("--memory", type=click.Choice(["l1", "dram"]), help="Draw the memory map with all THINGs in it.")
@_memory("--each", is_flag=True, help="A lane for every bank.")
@_memory("--cb", type=SIZE, multiple=True, metavar="SIZE", help="Circular buffer of each core; repeat for more.")
@_memory(
    "--ttnn-visualizer",
    "report",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write THINGs as a report for ttnn-visualizer.",
)
@links_option
@spec_options
def command(
    things: tuple[str, ...],
    output: str | None,
    tensor: str | None,
    report: str | None,
    follow_links: bool,
    options: SpecOptions,
    **asked: Any,
) -> Answer:
    """Draw a THING: a layout, a tensor by its shape, or a tensor in a file.

    \b
    tilewright show '(4,8):(8,1)'
    tilewright show 4x60x90 --dtype bfloat8_b --shard block --grid 8x8 --at 2,33,5
    tilewright show model.safetensors --tensor wte.weight -o wte.svg
    tilewright show 200x300 --tiles 64x64 --overlap 2 --pipeline double
    tilewright show 512x512:buffer=l1 4096x64:shard=height --memory l1 -o l1.html

    Without -o it is drawn in the terminal; --json gives the scene as data. Settings after a shape are for that tensor
    alone, and are named like the options.
    """
    _check_output(output)
    given = given_options(click.get_current_context())
    subjects = [Subject.of(text, tensor, follow_links) for text in things]
    question = Question(**asked)
    if report is not None:
        return _report(subjects, question, options, given, report)
    scene = _scene(subjects, question, options, given)
    return _answer(scene, output)


def _check_output(output: str | None) -> None:
    if output is None:
        return
    suffix = Path(output).suffix.lower()
    if suffix not in SUFFIXES:
        raise click.UsageError(f"-o {output}: a picture ends in one of {', '.join(SUFFIXES)}; give it such a name")
    check_target(output)
    if suffix == ".png":
        from ..views.png import png_converter

        if png_converter() is None:
            raise Failure(
                "a .png needs cairosvg or Chromium, and neither is installed; pip install cairosvg, or write an .svg",
                exit_codes.MISSING,
            )


def _answer(scene: Scene, output: str | None) -> Answer:
    from ..views import to_data, to_text
    from ..views.terminal import has_colours

    if output is None:
        return Answer(lambda: to_text(scene, color=has_colours(sys.stdout)), to_data(scene))
    save_picture(scene, output)
    written = Path(output)
    size = written.stat().st_size
    return Answer(f"{scene.title}: {written} ({size} bytes)", {"title": scene.title, "path": written, "bytes": size})


def _scene(subjects: list[Subject], question: Question, options: SpecOptions, given: frozenset[str]) -> Scene:
    """Return the scene that was asked for."""
    from .. import views

    if question.memory is not None:
        allocator, names = _allocated(subjects, question, options, given)
        return views.memory_scene(allocator, buffer_type=question.memory, each=question.each, names=names)
    if len(subjects) > 1:
        raise click.UsageError("several things are drawn together only in memory; add --memory l1, or name one")
    subject = subjects[0]
    if question.tiles is not None or question.pipeline is not None:
        return _motion_scene(subject, question)
    if question.error:
        return _error_scene(subject, question, options)
    if subject.layout is not None:
        chosen = {name: value for name in ("color", "label") if (value := getattr(question, name)) is not None}
        return views.scene_of(subject.layout, **chosen, **question.options())
    spec, at = subject.spec(options, given), question.at
    mesh = subject.stored.mesh if subject.stored is not None and spec.shape.logical != subject.extents else None
    if mesh is not None and at is not None:
        _, at = mesh.locate(at)
    if question.page is not None:
        return views.page_scene(spec, question.page, at=at)
    title = f"{subject.name}: {spec}" if subject.name else ""
    title = title if mesh is None else f"{title}, one part of {mesh}"
    return views.spec_scene(spec, at=at, title=title, **question.options())


def _motion_scene(subject: Subject, question: Question) -> Scene:
    from ..tiling import Schedule, Tiler
    from ..views import schedule_scene, tiler_scene

    shape = subject.extents
    tile = question.tiles or shape
    tile = (1,) * (len(shape) - len(tile)) + tile
    tiler = Tiler(shape, tile, _last_two(question.overlap, shape), _last_two(question.halo, shape))
    if question.pipeline is None:
        return tiler_scene(tiler, **question.options())
    times = question.times or (1, 1, 1)
    if len(times) != 3 or min(times) < 1:
        raise click.UsageError("--times takes three numbers of at least 1: import, compute, export, such as 1,2,1")
    depth = question.depth or (3 if question.pipeline in ("buffered", "direct") else 2)
    schedule = Schedule(question.pipeline, tiler.count, depth=depth)
    return schedule_scene(schedule, times=(times[0], times[1], times[2]))


def _last_two(margin: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a margin for the last two axes, and none for those before."""
    return tuple(margin if axis >= len(shape) - 2 else 0 for axis in range(len(shape)))


def _error_scene(subject: Subject, question: Question, options: SpecOptions) -> Scene:
    from ..views import block_scene

    if subject.stored is None:
        raise click.UsageError("--error needs the values of a file; name one, such as model.safetensors")
    return block_scene(subject.stored.read(), options.dtype, **question.options())


def _allocated(
    subjects: list[Subject], question: Question, options: SpecOptions, given: frozenset[str]
) -> tuple[Allocator, dict[int, str]]:
    """Return an allocator with all subjects in it, in order, and their names by the number of their blocks."""
    from ..memory import Allocator

    allocator = Allocator(options.machine())
    names: dict[int, str] = {}
    for subject in subjects:
        block = allocator.allocate(subject.spec(options, given).with_chip(allocator.chip))
        if subject.name:
            names[block.number] = subject.name
    if sum(question.cb):
        block = allocator.reserve(allocator.start("l1"), sum(question.cb), "l1")
        names[block.number] = "circular buffers"
    return allocator, names


def _report(
    subjects: list[Subject], question: Question, options: SpecOptions, given: frozenset[str], folder: str
) -> Answer:
    from ..views import write_visualizer_report

    allocator, names = _allocated(subjects, question, options, given)
    try:
        written = write_visualizer_report(allocator, folder, names)
    except OSError as problem:
        raise Failure(told(problem).line, exit_codes.OUTPUT) from None
    text = f"{len(subjects)} tensors: {written}\nlook at them with: ttnn-visualizer --profiler-path {written}"
    return Answer(text, {"path": written, "tensors": len(subjects)})

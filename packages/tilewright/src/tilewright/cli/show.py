# SPDX-License-Identifier: Apache-2.0
"""`tilewright show`: draw layouts, tensors, memory, tiles and pipelines."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._text import count_of
from .console import (
    Answer,
    CommandError,
    ExitCode,
    check_input_path,
    check_output_path,
    describe_error,
    save_picture,
    shorten,
)
from .options import (
    CHIP_OPTIONS,
    COORDINATE,
    FILE,
    FILE_OPTIONS,
    FOLDER,
    NO_CHIP,
    SHAPE,
    SIZE,
    STATED_BY_TEXT,
    SpecOptions,
    TensorName,
    describe_assumptions,
    device_option,
    list_assumptions,
    refuse_overridden,
    spec_options,
    stated_by_file,
    typed_options,
)
from .program import follow_links_option, option_in, refuse_options, reject_options, verb
from .subjects import TEXT, names_file, open_stored, parse_subject, read_text, text_shape_option

if TYPE_CHECKING:
    from ..files import StoredTensor
    from ..layout import LayoutLike
    from ..memory import Allocator, DeviceLike, TensorSpec
    from ..tiling import Schedule, Tiler
    from ..views import Animation, Scene


# `--animate` of show and reshard: a schedule, a copy or a reshard as a page that plays it.


def check_animation_path(output: str | None) -> str:
    """Return the path `output`; raise unless an animation can be written to it.

    >>> check_animation_path("copy.html")
    'copy.html'
    """
    if output is None or Path(output).suffix.lower() != ".html":
        name = "nothing" if output is None else output
        raise click.UsageError(f"--animate needs -o with a name that ends in .html, got {name}")
    check_output_path(output)
    return output


def animate_copy(layouts: Sequence[LayoutLike], **options: Any) -> Animation:
    """Return the copy from the first of `layouts` to the second, or from row-major order to a single one.

    `options` are the options of the scene.

    >>> from tilewright import Layout
    >>> animate_copy([Layout((2, 2))]).captions[-1]
    '4 of 4 elements copied'
    """
    from ..copying import Placement, plan_copy
    from ..layout import row_major
    from ..views import animate

    target = Placement(layouts[-1], "uint8")
    source = Placement(layouts[0] if len(layouts) > 1 else row_major(*target.data_extents), "uint8")
    return animate(plan_copy(source, target), **options)


SUFFIXES = (".svg", ".html", ".txt", ".json")
SCHEMES = ("simplex", "duplex", "double", "buffered", "direct")


_tiles_option, _memory_option = option_in("Tiles"), option_in("Memory")


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """The requested parts of the drawing, as given on the command line."""

    at: tuple[int, ...] | None = None
    page: int | None = None
    error: bool = False
    color: str | None = None
    label: str | None = None
    address: str | None = None
    side: int | None = None
    tiles: tuple[int, ...] | None = None
    overlap: int | None = None
    halo: int | None = None
    pipeline: str | None = None
    depth: int | None = None
    times: tuple[int, ...] | None = None
    memory: str | None = None
    each: bool = False
    cb: tuple[int, ...] = ()
    animate: bool = False

    @property
    def mode(self) -> str:
        """The subject of the drawing: the option that asks for it, or "" for the THING itself.

        >>> ShowOptions(tiles=(8, 8), pipeline="double").mode, ShowOptions().mode
        ('pipeline', '')
        """
        modes = [name for name in _MODES if _is_asked(getattr(self, name))]
        return modes[0] if modes else ""

    def scene_options(self, *names: str) -> dict[str, Any]:
        """Return the common scene options that were given, and the options in `names`.

        >>> ShowOptions(label="page,bank", side=4).scene_options("side")
        {'label': ('page', 'bank'), 'side': 4}
        """
        label = None if self.label is None else tuple(name.strip() for name in self.label.split(","))
        options = {"color": self.color, "label": label, "address": self.address}
        options |= {name: getattr(self, name) for name in names}
        return {name: value for name, value in options.items() if value is not None}

    def check(self, subject: Thing, report: bool) -> None:
        """Raise if an option was given that has no effect on the drawing; `typed` are the options of placements."""
        mode = "report" if report else self.mode or ("" if subject.layout is None else "layout")
        for name, modes in _USED_IN.items():
            if not _is_asked(getattr(self, name)) or mode in modes:
                continue
            raise click.UsageError(f"--{name} has no effect {_describe_mode(mode)}; {_REMEDIES[name]}")
        if self.cb and self.memory == "dram":
            raise click.UsageError("--cb has no effect with --memory dram: circular buffers are in L1; remove it")
        if subject.layout is not None and mode == "page":
            raise click.UsageError(f"--page needs a tensor, such as 4x60x90, but {shorten(subject.text)} is a layout")
        if self.pipeline not in (None, "buffered", "direct") and self.depth is not None:
            raise click.UsageError(
                f"--depth has no effect on {self.pipeline} buffering; remove it, or use --pipeline buffered"
            )
        typed = subject.typed - subject.used
        unused = {"pipeline": typed, "tiles": typed, "layout": typed, "error": typed - {"dtype"}}
        refuse_options(unused.get(mode, ()), _describe_mode(mode))
        if subject.settings and mode in ("pipeline", "tiles"):
            raise click.UsageError(f"settings have no effect {_describe_mode(mode)}; give only the shape")


def _is_asked(value: object) -> bool:
    """Return whether the value of an option is one that was given; page 0 is."""
    return value is not None and value is not False and value != ()


_MODES = ("memory", "pipeline", "tiles", "error", "page")
# The modes in which each option has an effect; "" is the picture of a tensor.
_USED_IN = {
    "at": ("", "page"),
    "page": ("page",),
    "error": ("error",),
    "color": ("", "layout", *_MODES),
    "label": ("", "layout", *_MODES),
    "address": ("", "layout", "memory", "page"),
    "side": ("", "layout", "memory", "pipeline", "tiles", "error"),
    "memory": ("memory",),
    "pipeline": ("pipeline",),
    "animate": ("", "layout", "pipeline"),
    "tiles": ("tiles", "pipeline"),
    "overlap": ("tiles", "pipeline"),
    "halo": ("tiles", "pipeline"),
    "depth": ("pipeline",),
    "times": ("pipeline",),
    "each": ("memory",),
    "cb": ("memory", "report"),
}
_REMEDIES = {
    **dict.fromkeys(
        ("at", "page", "error", "color", "label", "address", "side", "memory", "pipeline", "animate"), "remove it"
    ),
    **dict.fromkeys(("tiles", "overlap", "halo"), "add --tiles, and nothing else that is to be drawn"),
    **dict.fromkeys(("depth", "times"), "add --pipeline"),
    **dict.fromkeys(("each", "cb"), "add --memory l1 or dram"),
}


def _describe_mode(mode: str) -> str:
    if mode in ("", "layout"):
        return f"on the picture of a {mode or 'tensor'}"
    return "with --ttnn-visualizer" if mode == "report" else f"with --{mode}"


@verb("show")
@click.argument("things", nargs=-1, required=True, metavar="THING...", type=TEXT)
@click.option("-o", "--output", type=FILE, help="Write .svg, .html, .txt or .json.")
@click.option("--at", type=COORDINATE, metavar="I,J,K", help="Mark one element and trace it to its byte.")
@click.option("--page", type=click.IntRange(0), metavar="N", help="Draw the elements of one page.")
@click.option("--tensor", type=TensorName(), help="Tensor to draw, of a file that holds several.")
@text_shape_option
@click.option("--error", is_flag=True, help="Draw the error that --dtype adds to the values of a file.")
@click.option("--color", metavar="NAME", help="Attribute that colors the cells.")
@click.option("--label", metavar="NAME,...", help="Attributes that label the cells, such as page.")
@click.option("--address", type=click.Choice(["decimal", "hex"]), help="How addresses are written. [decimal]")
@click.option("--side", type=click.IntRange(1, 512), metavar="N", help="Maximum rows and columns to draw.")
@click.option("--animate", is_flag=True, help="Write an animation as an .html page.")
@_tiles_option("--tiles", type=SHAPE, help="Draw how tiles cut the tensor.")
@_tiles_option("--overlap", type=click.IntRange(0), metavar="N", help="Overlap of neighbouring tiles, in elements.")
@_tiles_option("--halo", type=click.IntRange(0), metavar="N", help="Padding beyond the edges, in elements.")
@_tiles_option("--pipeline", type=click.Choice(SCHEMES), help="Draw the schedule that transfers those tiles.")
@_tiles_option("--depth", type=click.IntRange(1, 64), metavar="N", help="Buffers, if buffered or direct. [3]")
@_tiles_option("--times", type=COORDINATE, metavar="I,C,E", help="Times of import, compute, export. [1,1,1]")
@_memory_option("--memory", type=click.Choice(["l1", "dram"]), help="Draw the memory map with all THINGs in it.")
@_memory_option("--each", is_flag=True, help="Draw one row per bank.")
@_memory_option("--cb", type=SIZE, multiple=True, help="Circular buffer of each core; may be repeated.")
@_memory_option(
    "--ttnn-visualizer",
    "report",
    type=FOLDER,
    metavar="DIR",
    help="Write THINGs as a report for ttnn-visualizer.",
)
@device_option
@follow_links_option
@spec_options
def command(
    things: tuple[str, ...],
    output: str | None,
    tensor: str | None,
    text_shape: tuple[int, ...] | None,
    report: str | None,
    device: DeviceLike | None,
    follow_links: bool,
    options: SpecOptions,
    **drawing_options: Any,
) -> Answer:
    """Draw a layout, a tensor given by its shape or as ttnn prints it, or a tensor in a file.

    \b
    tilewright show '(4,8):(8,1)'
    tilewright show 4x60x90 --dtype bfloat8_b --shard block --grid 8x8 --at 2,33,5
    tilewright show model.safetensors --tensor wte.weight -o wte.svg
    tilewright show 200x300 --tiles 64x64 --overlap 2 --pipeline double
    tilewright show 512x512:buffer=l1 4096x64:shard=height --memory l1 -o l1.html
    tilewright show '(8,8):(8,1)' '(8,8):(1,8)' --animate -o copy.html

    --animate plays the schedule of a --pipeline, the copy from one layout to another (or to one, from row-major order),
    or the reshard from one placement to another.

    Without -o the picture is drawn in the terminal; --json prints the scene as data. Settings after a shape apply to
    that tensor only, and have the names of the options. Of a tensor that a mesh of devices shares, the picture shows
    which device holds what, and where the part of one of them lies; with --device, only that part.
    """
    show_options = ShowOptions(**drawing_options)
    if show_options.animate:
        check_animation_path(output)
    else:
        check_picture_path(output)
    subjects = [Thing.parse(text, options, tensor, follow_links, device, text_shape) for text in things]
    for subject in subjects:
        show_options.check(subject, report is not None)
        if text_shape is not None and subject.layout is None and subject.printed is None:
            raise click.UsageError(f"--shape is for the text of a layout, which {shorten(subject.text)} is not")
        if subject.stored is None:
            reject_options(FILE_OPTIONS, f"needs a file, but {shorten(subject.text)} is not one")
    if all(subject.shape is not None for subject in subjects):
        refuse_overridden([SpecOptions.setting_names(subject.settings) for subject in subjects])
    if report is not None:
        refuse_options(["output"], "with --ttnn-visualizer")
        return _write_report(subjects, show_options, report)
    from ..views.scene_options import SceneOptionError

    build = _build_animation if show_options.animate else _build_scene
    try:
        return _build_answer(build(subjects, show_options), output)
    except SceneOptionError as problem:  # in the words of Python
        raise click.UsageError(re.sub(r"^(\w+)='([^']*)'", r"--\1 \2", str(problem))) from None


def check_picture_path(output: str | None) -> None:
    """Raise unless a picture can be written to the path `output`, if one was given."""
    if output is None:
        return
    suffix = Path(output).suffix.lower()
    if suffix not in SUFFIXES:
        raise click.UsageError(f"-o {output}: expected a name that ends in one of {', '.join(SUFFIXES)}")
    check_output_path(output)


def _build_answer(picture: Scene | Animation, output: str | None) -> Answer:
    from ..views import Scene, to_data

    scene = picture if isinstance(picture, Scene) else picture.scene
    if output is None:
        return Answer(lambda: picture_text(scene), to_data(scene))
    save_picture(picture, output)
    path = Path(output)
    size = path.stat().st_size
    return Answer(f"{scene.title}: {path} ({size} bytes)", {"title": scene.title, "path": path, "bytes": size})


def picture_text(scene: Scene) -> str:
    """Return a picture as text for standard output."""
    from ..views import to_text
    from ..views.text import supports_color, terminal_width

    return to_text(scene, terminal_width(sys.stdout), supports_color(sys.stdout))


def _build_scene(subjects: list[Thing], show_options: ShowOptions) -> Scene:
    """Return the scene that was asked for."""
    from .. import views

    if show_options.memory is not None:
        allocator, names = _allocate_subjects(subjects, show_options)
        scene = views.memory_scene(
            allocator,
            buffer_type=show_options.memory,
            each=show_options.each,
            names=names,
            **show_options.scene_options("side"),
        )
        assumed: dict[str, str] = {}
        elsewhere = []
        for subject in subjects:
            spec = subject.spec()
            assumed |= subject.assumptions(spec)
            if spec.memory.buffer_type.is_l1 != (show_options.memory == "l1"):
                elsewhere.append(f"{shorten(subject.text)}, in {spec.memory.buffer_type.name}")
        facts = (views.Fact("not drawn", "; ".join(elsewhere)),) if elsewhere else ()
        return name_assumptions(replace(scene, facts=(*scene.facts, *facts)), assumed)
    scenes = [_subject_scene(subject, show_options) for subject in subjects]
    return scenes[0] if len(scenes) == 1 else views.side_by_side(*scenes)


def _subject_scene(subject: Thing, show_options: ShowOptions) -> Scene:
    """Return the scene of one THING."""
    from .. import views

    if show_options.mode in ("tiles", "pipeline"):
        return _tiling_scene(subject, show_options)
    if show_options.error:
        return _error_scene(subject, show_options)
    if subject.layout is not None:
        from ..views.scenes.layouts import bank_options

        stated = bank_options(subject.layout, subject.itemsize)
        return views.scene_of(subject.layout, **stated, **show_options.scene_options("side"))
    spec, at, page, own = subject.spec(), show_options.at, show_options.page, show_options.scene_options("side")
    mesh = subject.stored.mesh if subject.stored is not None and not subject.typed - CHIP_OPTIONS else None
    if mesh is not None and at is not None and page is not None:
        _, at = mesh.locate(at)
    if page is not None:
        scene = views.page_scene(spec, page, at=at, **show_options.scene_options())
    elif mesh is not None:
        scene = views.mesh_scene(mesh, spec=spec, at=at, title=f"{subject.name}: {mesh}", **own)
    else:
        scene = views.spec_scene(spec, at=at, title=f"{subject.name}: {spec}" if subject.name else "", **own)
    return name_assumptions(scene, subject.assumptions(spec))


def name_assumptions(scene: Scene, assumed: Mapping[str, str]) -> Scene:
    """Return the scene with a fact that lists its assumptions, if there are any."""
    from ..views import Fact

    line = describe_assumptions(assumed)
    return replace(scene, facts=(*scene.facts, Fact("assumed", line))) if line else scene


def _build_animation(subjects: list[Thing], show_options: ShowOptions) -> Animation:
    """Animate a pipeline, a copy between layouts, or a reshard, step by step."""
    from ..traffic import reshard
    from ..views import animate

    if show_options.mode == "pipeline" and len(subjects) == 1:
        schedule, times = _make_schedule(subjects[0], show_options)
        return animate(schedule, times=times, **show_options.scene_options("side"))
    layouts = [subject.layout for subject in subjects if subject.layout is not None]
    if not show_options.mode and len(layouts) == len(subjects) <= 2:
        return animate_copy(layouts, **show_options.scene_options("side"))
    if not show_options.mode and not layouts and len(subjects) == 2:
        source, target = (subject.spec() for subject in subjects)
        played = animate(reshard(source, target), **show_options.scene_options("side"))
        return replace(played, scene=name_assumptions(played.scene, subjects[0].assumptions(source)))
    raise click.UsageError(
        "--animate needs --pipeline with one THING, one or two layouts, or a tensor in two placements"
    )


def _make_tiler(subject: Thing, show_options: ShowOptions) -> Tiler:
    from ..tiling import Tiler

    shape = subject.extents
    tile = show_options.tiles or shape
    tile = (1,) * (len(shape) - len(tile)) + tile
    outer, inner = max(0, len(shape) - 2), min(2, len(shape))
    overlap, halo = ((0,) * outer + (n,) * inner for n in (show_options.overlap or 0, show_options.halo or 0))
    return Tiler(shape, tile, overlap, halo)


def _make_schedule(subject: Thing, show_options: ShowOptions) -> tuple[Schedule, tuple[int, int, int]]:
    """Return the schedule of a pipeline, and the times of import, compute and export."""
    from ..tiling import Schedule

    assert show_options.pipeline is not None
    times = show_options.times or (1, 1, 1)
    if len(times) != 3 or min(times) < 1:
        raise click.UsageError("--times takes three positive integers: import, compute, export, such as 1,2,1")
    depth = show_options.depth or (3 if show_options.pipeline in ("buffered", "direct") else 2)
    tiles = _make_tiler(subject, show_options).count
    return Schedule(show_options.pipeline, tiles, depth=depth), (times[0], times[1], times[2])


def _tiling_scene(subject: Thing, show_options: ShowOptions) -> Scene:
    from ..views import schedule_scene, tiler_scene

    if show_options.pipeline is None:
        return tiler_scene(_make_tiler(subject, show_options), **show_options.scene_options("side"))
    schedule, times = _make_schedule(subject, show_options)
    return schedule_scene(schedule, times=times, **show_options.scene_options("side"))


def _error_scene(subject: Thing, show_options: ShowOptions) -> Scene:
    from ..views import block_scene

    if subject.stored is None:
        raise click.UsageError("--error needs values; name a file, such as model.safetensors")
    return block_scene(subject.stored.read(), subject.options.dtype, **show_options.scene_options("side"))


def _allocate_subjects(subjects: list[Thing], show_options: ShowOptions) -> tuple[Allocator, dict[int, str]]:
    """Return an allocator that holds all subjects, and their names by block number."""
    from ..memory import Allocator

    allocator = Allocator(subjects[0].options.build_chip())
    names: dict[int, str] = {}
    for subject in subjects:
        block = allocator.allocate(subject.spec().with_chip(allocator.chip))
        if subject.name:
            names[block.number] = subject.name
    if sum(show_options.cb):
        block = allocator.reserve(allocator.start_address("l1"), sum(show_options.cb), "l1")
        names[block.number] = "circular buffers"
    return allocator, names


def _write_report(subjects: list[Thing], show_options: ShowOptions, folder: str) -> Answer:
    from ..ttnn import write_visualizer_report

    allocator, names = _allocate_subjects(subjects, show_options)
    try:
        report = write_visualizer_report(allocator, folder, names)
    except OSError as problem:
        raise CommandError(describe_error(problem).line, ExitCode.OUTPUT) from None
    summary = f"{count_of(len(subjects), 'tensor')} written to {report}"
    text = f"{summary}\nopen the report with: ttnn-visualizer --profiler-path {report}"
    return Answer(text, {"path": report, "tensors": len(subjects)})


_SHAPE = re.compile(r"(?:\[[0-9,x ]*\]|[0-9]+(?:[x×][0-9]+)+|[0-9]+)(?::\s*[a-zM].*)?")


@dataclass(frozen=True, slots=True)
class Thing:
    """One argument of `show`: the text, and the layout, shape or stored tensor that it names.

    >>> Thing.parse("(4,8):(8,1)", SpecOptions()).layout
    Layout((4, 8), (8, 1))
    >>> Thing.parse("512x512:buffer=l1", SpecOptions()).shape
    (512, 512)
    """

    text: str
    options: SpecOptions
    layout: Any = None
    shape: tuple[int, ...] | None = None
    settings: str = ""
    stored: StoredTensor | None = None
    printed: TensorSpec | None = None  # by ttnn
    itemsize: int | None = None  # bytes of an element, if the text of a layout states them
    used: frozenset[str] = frozenset()  # options of placements that it needs

    @classmethod
    def parse(
        cls,
        text: str,
        options: SpecOptions,
        tensor: str | None = None,
        follow_links: bool = False,
        device: DeviceLike | None = None,
        text_shape: tuple[int, ...] | None = None,
    ) -> Thing:
        """Return the subject of a text: an existing file, a shape with settings, or a layout.

        >>> Thing.parse("4x60x90", SpecOptions()).shape
        (4, 60, 90)
        """
        text = read_text(text)
        if names_file(text):
            return cls(text, options, stored=open_stored(text, tensor, device, follow_links))
        if _SHAPE.fullmatch(text):
            shape, _, settings = text.partition(":")
            return cls(text, options, shape=SHAPE.convert(shape, None, None), settings=settings)
        from ..memory import TensorSpec

        check_input_path(text)
        subject = parse_subject(text, SpecOptions(chip=NO_CHIP), text_shape)
        if isinstance(subject, TensorSpec):
            return cls(text, options, printed=subject)
        if (notation := getattr(subject, "notation", "")) == "error":
            raise click.UsageError(f"{shorten(text)} is an error message, which has no picture; use tilewright explain")
        if notation == "tt-metal":
            if options.chip is None:
                raise click.UsageError("the words of a kernel have coordinates of cores; state the chip with --chip")
            drawn = [accessor for accessor in subject.value.accessors(options.find_chip()) if accessor.is_sharded]
            if len(drawn) != 1:
                rule = "one sharded accessor is drawn, since an interleaved one does not state its pages"
                raise click.UsageError(f"{rule}; {shorten(text)} has {len(drawn)}; pass the words of one")
            return cls(text, options, layout=drawn[0], used=CHIP_OPTIONS)
        layout, itemsize = getattr(subject, "subject", subject), getattr(subject, "itemsize", None)
        return cls(text, options, layout=layout, itemsize=itemsize)

    @property
    def typed(self) -> frozenset[str]:
        """The options of placements that were typed."""
        return typed_options(click.get_current_context())

    @property
    def name(self) -> str:
        """The tensor's name in the picture."""
        return self.stored.name if self.stored is not None else ""

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape of a tensor."""
        shape = self.stored.shape if self.stored is not None else self.shape
        if self.printed is not None:
            return self.printed.shape.logical
        if shape is None:
            raise click.UsageError(f"{shorten(self.text)} is a layout; expected the shape of a tensor, such as 4x60x90")
        return shape

    def spec(self) -> TensorSpec:
        """Return the placement: the file's own, unless other options were typed."""
        options = self.options
        if self.printed is not None:
            reject_options(self.typed - CHIP_OPTIONS, "cannot be used with a printed tensor, which states it")
            return self.printed.with_chip(options.find_chip())
        if self.settings:
            options = options.with_settings(self.settings)
        if self.stored is None:
            return options.build_spec(self.extents)
        if self.stored.spec is not None and not self.typed - CHIP_OPTIONS:
            spec = self.stored.spec
            return spec if spec.chip is not None and not self.typed else spec.with_chip(options.find_chip())
        if self.stored.format is not None and "dtype" not in self.typed:
            options = replace(options, dtype=self.stored.format.name)
        return options.build_spec(self.extents)

    def assumptions(self, spec: TensorSpec) -> dict[str, str]:
        """Return the assumptions about the tensor's placement that neither it nor an option states."""
        stated = STATED_BY_TEXT if self.printed is not None else SpecOptions.setting_names(self.settings)
        of_file = frozenset[str]() if self.stored is None else stated_by_file(self.stored, self.typed)
        return list_assumptions(spec, self.typed | stated | of_file)

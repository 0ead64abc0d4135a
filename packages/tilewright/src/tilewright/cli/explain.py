# SPDX-License-Identifier: Apache-2.0
"""`tilewright explain`: where an element lives, step by step, and what an address holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .._text import count_of, parse_extents
from ..errors import CoordinateError, LayoutError
from .console import Answer, color_names, shorten
from .options import (
    ADDRESS,
    COORDINATE,
    CORE,
    FILE_OPTIONS,
    PLACEMENT_OPTIONS,
    STATED_BY_TEXT,
    SpecOptions,
    TensorName,
    describe_assumptions,
    device_option,
    list_assumptions,
    parse_shape,
    refuse_overridden,
    spec_options,
    stated_by_file,
    typed_options,
)
from .program import follow_links_option, refuse_options, reject_options, verb
from .show import name_assumptions, picture_text
from .subjects import TEXT, is_text, names_file, open_stored, parse_subject, read_text, split_shape, text_shape_option

if TYPE_CHECKING:
    from ..files import StoredTensor
    from ..memory import DeviceLike, Mesh, TensorSpec


_OF_ELEMENTS = ("at", "address", "core", "bank", "bit", "base", "text_shape")  # options


@verb("explain")
@click.argument("what", metavar="SHAPE[:NAME=VALUE]|FILE|TEXT", type=TEXT)
@click.option("--at", type=COORDINATE, metavar="I,J,K", help="The element to find.")
@click.option("--address", type=ADDRESS, metavar="BYTE", help="Explain this address instead, of --core or --bank.")
@click.option("--core", type=CORE, metavar="X,Y", help="Core that --address is in.")
@click.option("--bank", type=click.IntRange(min=0), metavar="N", help="Bank that --address is in.")
@click.option("--bit", type=click.IntRange(0, 7), default=0, help="Bit of the byte, for formats below 8 bits.")
@click.option("--base", type=ADDRESS, metavar="BYTE", help="Start address of the buffer. [as on an empty chip]")
@click.option("--tensor", type=TensorName(), help="Tensor to explain, of a FILE that holds several.")
@click.option("--offset", type=click.IntRange(min=0), help="First word of the accessors of a kernel.")
@text_shape_option
@device_option
@follow_links_option
@spec_options
@click.pass_context
def command(
    ctx: click.Context,
    what: str,
    at: tuple[int, ...] | None,
    address: int | None,
    core: tuple[int, ...] | None,
    bank: int | None,
    bit: int,
    base: int | None,
    tensor: str | None,
    offset: int | None,
    text_shape: tuple[int, ...] | None,
    device: DeviceLike | None,
    follow_links: bool,
    options: SpecOptions,
) -> Answer:
    """Show where an element of a tensor lives, from its coordinate to its byte; what an address holds; or an error.

    \b
    tilewright explain 4x60x90 --dtype bfloat8_b --shard block --grid 8x8 \\
        --at 2,33,17
    tilewright explain 4x60x90 --dtype bfloat8_b --shard block --grid 8x8 \\
        --core 0,5 --address 1498385
    tilewright explain tiles/ --tensor wte.weight --at 2,33
    tilewright explain "Sw<3,3,3> o _0 o (_8,_64):(_64,_1)" --at 1,8
    tilewright explain run.log
    tilewright explain "KERNEL_COMPILE_TIME_ARGS=2,2048" --chip n150

    Without --at and --address, the tensor or the layout is described as a whole. Settings after a shape are named like
    the options, or are what ttnn prints: SHAPE:MemoryConfig(...).
    A tensor of a file is placed according to the file; its value and its bytes in the file are shown as well. If a mesh
    of devices shares it, so are the devices that hold the element; with --device, coordinates are those in its part.
    A TEXT is a layout in the notation of CuTe, XLA, MLIR or another system, see translate, a tensor as ttnn prints its
    spec, or an error of ttnn or tt-metal, with all that is around it in a log: what happened, and what would help. The
    command that compiles a kernel is searched for the words of its TensorAccessors. A TEXT may be in a file; "-" is
    standard input.
    """
    from ..layout import Linear
    from ..memory import TensorSpec, explain, explain_address

    what, settings = split_shape(read_text(what))
    own = SpecOptions.setting_names(settings)
    refuse_overridden([own])
    options = options.with_settings(settings)
    has_text = text_shape is not None or is_text(what)
    subject: Any = parse_subject(what, options, text_shape) if has_text else None  # a spec, or what has `explain`
    if subject is None and not names_file(what):
        parse_shape(what)  # before the options, which do not matter if there is nothing to explain
    if getattr(subject, "notation", "") == "error":
        refuse_options([*PLACEMENT_OPTIONS, *FILE_OPTIONS, *_OF_ELEMENTS, "offset"], "on an error message")
        return Answer(subject.explain(), subject.value.to_json())
    if getattr(subject, "notation", "") == "tt-metal":
        refuse_options([*STATED_BY_TEXT, *FILE_OPTIONS, *_OF_ELEMENTS], "on a kernel")
        refuse_options(["dispatch", "harvested"] if options.chip is None else [], "without --chip")
        chip = None if options.chip is None else options.find_chip()
        return Answer(subject.value.explain(chip, offset), subject.value.to_json(chip, offset))
    refuse_options(["offset"], "except on a kernel")
    _check_options(at, address, core, bank)
    if address is None:
        refuse_options(["bit"], "without --address")
    if subject is not None and not isinstance(subject, TensorSpec):
        refuse_options([*PLACEMENT_OPTIONS, *FILE_OPTIONS, "base"], "on a layout")
        if address is not None:
            raise click.UsageError("--address is for tensors on a chip; a layout takes --at I,J")
        if at is None:
            return _describe(subject, {})
        layout = getattr(subject, "memory_layout", subject)
        if isinstance(layout, Linear):
            raise click.UsageError(
                f"a layout of {', '.join(layout.inputs)} has no offsets to explain; draw it with tilewright show"
            )
        explanation = explain(subject, at)
        try:
            data = explanation.to_json()
        except CoordinateError as problem:
            raise click.UsageError(str(problem).partition("; ")[0]) from None  # the rest is for Python
        return Answer(lambda: color_names(str(explanation)), {"layout": str(layout), **data})
    stored = _open_stored(what, tensor, device, follow_links, is_printed=subject is not None)
    spec = _choose_spec(stored, what, options) if subject is None else subject
    typed = typed_options(ctx)
    stated = STATED_BY_TEXT if subject is not None else own if stored is None else stated_by_file(stored, typed)
    assumed = list_assumptions(spec, typed | stated)
    if at is None and address is None:
        refuse_options(["base"], "without --at and --address")
        return _describe(spec, assumed)
    if at is not None:
        if stored is None:
            element: Any = explain(spec, at, base)
        else:
            from ..files import read_element

            element = read_element(stored, at, options.build_chip(), base)
        return _build_answer(spec, assumed, [], element, shape=None if stored is None else stored.shape)
    assert address is not None  # checked above
    owner = bank if core is None else core
    assert owner is not None  # checked above
    resident = explain_address(spec, owner, address, bit, base)
    place_name = f"bank {bank}" if core is None else f"core ({core[0]}, {core[1]})"
    if core is not None and not spec.memory.buffer_type.is_l1:
        place_name += f", which is DRAM bank {core[0]}"
    lines = [("address", f"{address} ({address:#x}) of {place_name}"), ("holds", str(resident))]
    if stored is not None and stored.mesh is not None:
        lines.insert(0, ("mesh", str(stored.mesh)))
        if resident.coordinate is not None:
            lines += [("in tensor", holder) for holder in _list_holders(stored.mesh, resident.coordinate)]
    way = explain(spec, resident.coordinate, base) if resident.kind == "data" and resident.coordinate else None
    whole = None if stored is None else stored.shape
    return _build_answer(
        spec, assumed, lines, way, {"address": address, "core": core, "bank": bank, **resident.to_json()}, whole
    )


def _describe(subject: object, assumed: dict[str, str]) -> Answer:
    """Return a tensor or a layout as a whole: the facts of its picture."""
    from ..memory import MemoryConfig
    from ..notation import ParsedText
    from ..views import Fact, Scene, scene_of

    stated = []
    if isinstance(subject, ParsedText):
        size = "" if subject.element_bits is None else f", elements of {count_of(subject.element_bits, 'bit')}"
        stated = [Fact("notation", subject.notation + size)]
        stated += [Fact("also states", part) for part in subject.besides]
    try:
        own = subject.subject if isinstance(subject, ParsedText) else subject
        scene = Scene(str(own)) if isinstance(own, MemoryConfig) else scene_of(subject)
    except LayoutError:  # no picture, as of a swizzle, which has no shape
        scene = Scene(str(getattr(subject, "placement", subject)))
    scene = name_assumptions(Scene(scene.title, facts=(*stated, *scene.facts)), assumed)
    facts = {fact.name: fact.value for fact in scene.facts}
    return Answer(lambda: picture_text(scene), {"what": scene.title, "facts": facts, "assumed": assumed})


def _build_answer(
    spec: TensorSpec,
    assumed: dict[str, str],
    lines: list[tuple[str, str]],
    element: Any,
    data: dict[str, Any] | None = None,
    shape: tuple[int, ...] | None = None,
) -> Answer:
    from ..memory import format_steps

    shared = shape is not None and shape != spec.shape.logical  # by a mesh of devices
    steps = [("part spec" if shared else "tensor", str(spec)), *lines, *([] if element is None else element.steps())]
    steps += [("assumed", describe_assumptions(assumed))] if assumed else []
    facts = {"tensor": str(spec), "shape": spec.shape.logical if shape is None else shape, "assumed": assumed}
    return Answer(lambda: color_names(format_steps(steps)), facts | (element.to_json() if data is None else data))


def _list_holders(mesh: Mesh, inside: tuple[int, ...]) -> list[str]:
    """Return, for the element of each device's part, its coordinate in the entire tensor."""
    from ..memory import format_devices

    lines = []
    for box, devices in mesh.windows().items():
        at = tuple([a + c for a, c in zip(box.offset, inside, strict=True)])
        lines.append(f"{at} on {'device' if len(devices) == 1 else 'devices'} {format_devices(devices)}")
    return lines


def _open_stored(
    what: str, tensor: str | None, device: DeviceLike | None, follow_links: bool, is_printed: bool
) -> StoredTensor | None:
    """Return the tensor that a file name refers to, or None if `what` is a shape, or a tensor as ttnn printed it."""
    is_shape = not is_printed and parse_extents(what) is not None
    if is_printed or is_shape:
        reject_options(FILE_OPTIONS, f"needs a file, but {shorten(what)} is {'a text' if is_printed else 'a shape'}")
    if is_shape:
        return None
    subject = f"{'a printed tensor' if is_printed else 'a file'}: {shorten(what)} states how its tensors are placed"
    reject_options(STATED_BY_TEXT, f"cannot be used with {subject}")
    return None if is_printed else open_stored(what, tensor, device, follow_links)


def _choose_spec(stored: StoredTensor | None, what: str, options: SpecOptions) -> TensorSpec:
    if stored is None:
        return options.build_spec(parse_shape(what))
    from ..files import spec_on_chip

    return spec_on_chip(stored, options.build_chip())


def _check_options(at: object, address: object, core: object, bank: object) -> None:
    if at is not None and address is not None:
        raise click.UsageError("give either --at I,J,K (an element) or --address with --core X,Y (an address)")
    if address is None and (core is not None or bank is not None):
        raise click.UsageError("--core and --bank are only for --address; remove them or --at")
    if address is not None and (core is None) == (bank is None):
        raise click.UsageError("--address needs either --core X,Y or --bank N")

# SPDX-License-Identifier: Apache-2.0
"""The form of the explorer: text fields parsed into a spec, and a spec spelled as fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, TypeVar

from .._text import canonical_word, parse_extents, parse_size, spell_extents
from ..errors import LayoutError, MemoryConfigError, TilewrightError
from ..formats import format_of
from ..memory import (
    Chip,
    CoreRangeSet,
    MemoryConfig,
    Mesh,
    NdShardSpec,
    PageLayout,
    ShardSpec,
    TensorMemoryLayout,
    TensorSpec,
    Tile,
    block_sharded,
    chip_names,
    height_sharded,
    interleaved,
    nd_sharded,
    parse_grid,
    placement_violations,
    width_sharded,
)
from ..notation import ParsedText, parse
from ..views.html import panel_data, panel_markup
from ..views.scene import Fact, Scene
from ..views.scene_options import SceneOptionError, SceneOptions

FormFields: TypeAlias = Mapping[str, str]
Made = TypeVar("Made")

# Requests can ask for anything; these limits keep every answer quick.
DEFAULT_CHIP = "wormhole_n150"
MAX_CHARACTERS = 400  # characters of one field
MAX_DIMENSIONS = 8
MAX_DIGITS = 12
MAX_CORES = 4096
MAX_DEVICES = 1024

_PASTED = re.compile(r"(?s)\s*[A-Za-z#!%].*[<({]")  # a text of another system, rather than a shape
_STRATEGIES = {"height_sharded": height_sharded, "width_sharded": width_sharded, "block_sharded": block_sharded}
FIELDS = (
    *("shape", "dtype", "layout", "tile", "memory", "buffer", "grid", "shard", "orientation", "distribution"),
    *("chip", "dispatch", "circular", "alignment", "mesh", "cut", "device", "label", "color", "base"),
)
BASES = ("decimal", "hex")
MEMORIES = ("interleaved", *_STRATEGIES, "nd_sharded")
_NOUNS = {
    "shape": "a shape",
    "extents": "a shape",
    "grid": "a grid of cores",
    "tile": "the shape of a tile",
    "tile_moved": "the shape of a tile",
    "shard": "the shape of a shard",
    "alignment": "an alignment",
    "mesh": "the shape of a mesh",
    "device": "a device",
    "at": "the index of an element",
    "core": "a core",
    "times": "a list of times",
}  # the content of a field of several integers


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab of another distribution: `choices` are its form's, and `answer` answers a question with the fields.

    >>> Tab(dict, lambda fields: {"said": fields["text"]}).answer({"text": "hello"})
    {'said': 'hello'}
    """

    choices: Callable[[], dict[str, Any]]
    answer: Callable[[FormFields], dict[str, Any]]


class FieldError(LayoutError):
    """An error in one field of the form; the page shows the message beside it.

    >>> FieldError("shape", "4xfoo is not a shape; use 4x60").field
    'shape'
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def parse_integers(fields: FormFields, field: str, example: str, most: int = MAX_DIMENSIONS) -> tuple[int, ...]:
    """Return the integers in a field, written as 4x60x90, 4,60,90 or (4, 60, 90); () if it is empty.

    >>> (
    ...     parse_integers({"shape": "4x60x90"}, "shape", "4x60"),
    ...     parse_integers({"at": "(2, 33)"}, "at", "0,0"),
    ...     parse_integers({}, "at", "0"),
    ... )
    ((4, 60, 90), (2, 33), ())
    """
    text = fields.get(field, "").strip()
    numbers = parse_extents(text)
    if numbers is None:
        raise FieldError(field, f"{text!r} is not {_NOUNS.get(field, 'a whole number')}; write it as {example}")
    if len(numbers) > most:
        raise FieldError(field, f"{text!r} has {len(numbers)} numbers, expected at most {most}; write it as {example}")
    if max(numbers, default=0) >= 10**MAX_DIGITS:
        raise FieldError(field, f"a number in {text!r} is too large; use at most {MAX_DIGITS} digits")
    return numbers


def parse_integer(fields: FormFields, field: str, default: int) -> int:
    """Return the integer in a field, or `default` if it is empty.

    >>> parse_integer({"circular": "65536"}, "circular", 0), parse_integer({}, "circular", 0)
    (65536, 0)
    """
    values = parse_integers(fields, field, str(default), 1)
    return values[0] if values else default


def parse_bytes(fields: FormFields, field: str) -> int:
    """Return the number of bytes in a field, such as 64KiB; 0 if it is empty.

    >>> (
    ...     parse_bytes({"circular": "64KiB"}, "circular"),
    ...     parse_bytes({"circular": "65536"}, "circular"),
    ...     parse_bytes({}, "circular"),
    ... )
    (65536, 65536, 0)
    """
    text = fields.get(field, "").strip()
    count = parse_size(text) if text else 0
    if count is None or len(str(count)) > MAX_DIGITS:
        raise FieldError(field, f"{text!r} is not a size; write it as 64KiB, or as a number of bytes such as 65536")
    return count


def parse_cores(fields: FormFields, chip: Chip) -> CoreRangeSet:
    """Return the cores in the field `grid`: columns x rows, or ranges such as 0,0-3,1+5,0-6,1; all if it is empty.

    >>> chip = Chip.named("n150")
    >>> parse_cores({"grid": "8x4"}, chip).num_cores, parse_cores({"grid": "0,0-3,1+5,0-6,1"}, chip).num_cores
    (32, 12)
    """
    text = fields.get("grid", "").strip()
    if not text:
        return CoreRangeSet.of(tuple(chip.shard_grid(fields.get("buffer") or "dram")))
    cores = attribute_errors("grid", lambda: CoreRangeSet.of(parse_grid(text)))
    if cores.num_cores > MAX_CORES:
        raise FieldError("grid", f"{text!r} has {cores.num_cores} cores; use at most {MAX_CORES}")
    return cores


def parse_scene_options(fields: FormFields, *names: str) -> SceneOptions:
    """Return the options of a picture: its base of addresses, the options in `names`, "label" and "color".

    >>> parse_scene_options({"label": "page, bank", "base": "hex"}, "label", "color")
    {'address': 'hex', 'label': ('page', 'bank')}
    """
    base = fields.get("base") or "decimal"
    if base not in BASES:
        raise FieldError("base", f"addresses are written in one of {', '.join(BASES)}, got {base!r}")
    options = SceneOptions(address="hex" if base == "hex" else "decimal")
    if "label" in names and fields.get("label", "").strip():
        options["label"] = tuple(name.strip() for name in fields["label"].split(","))
    if "color" in names and fields.get("color", "").strip():
        options["color"] = fields["color"].strip()
    return options


def attribute_scene(fields: FormFields, draw: Callable[[SceneOptions], Made]) -> Made:
    """Return the result of `draw` with a form's label, color and base; an unknown attribute is an error of its field.

    >>> attribute_scene({"label": "page"}, lambda options: options["label"])
    ('page',)
    """
    options = parse_scene_options(fields, "label", "color")
    try:
        return draw(options)
    except SceneOptionError as problem:
        field = "color" if str(problem).startswith("color") else "label"
        raise FieldError(field, str(problem)) from None


def fill_pasted(fields: FormFields) -> FormFields:
    """Return the fields, filled from a tensor that another system printed, if its text is pasted as the shape.

    >>> text = "#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<1x8xf32, #dram>, <interleaved>>"
    >>> from tilewright.notation import write
    >>> fill_pasted({"shape": write(TensorSpec((4, 8), "float32"), "ttnn"), "dtype": "bfloat16"})["dtype"]
    'float32'
    """
    text = fields.get("shape", "").strip()
    if parse_extents(text) is not None or not _PASTED.match(text):
        return fields
    chip = Chip.named(fields.get("chip") or DEFAULT_CHIP, fields.get("dispatch") or "fast")
    pasted = attribute_errors("shape", lambda: parse(text))
    if not isinstance(pasted, ParsedText):
        raise FieldError("shape", f"{text[:40]!r} is a layout, which the tab Layout shows; paste a TensorSpec here")
    return {**fields, **attribute_errors("shape", lambda: spell_spec(pasted.spec.with_chip(chip)))}


def spec_arguments(fields: FormFields) -> dict[str, Any]:
    """Return the arguments of `TensorSpec` that the fields spell; every problem names its field.

    >>> spec_arguments({"shape": "64x64", "dtype": "bfloat8_b", "chip": "n150"})["shape"]
    (64, 64)
    """
    for field, text in fields.items():
        if len(text) > MAX_CHARACTERS:
            raise FieldError(field, f"{field} has {len(text)} characters; use at most {MAX_CHARACTERS}")
    shape = parse_integers(fields, "shape", "1x4x60x90")
    if not shape:
        raise FieldError("shape", "the shape is missing; write it as 1x4x60x90")
    chip = attribute_errors(
        "chip", lambda: Chip.named(fields.get("chip") or DEFAULT_CHIP, fields.get("dispatch") or "fast")
    )
    mesh = parse_mesh(fields)
    arguments: dict[str, Any] = {
        "shape": shape if mesh is None else mesh.part_shape,
        "dtype": attribute_errors("dtype", lambda: format_of(fields.get("dtype") or "bfloat16")),
        "page_layout": attribute_errors("layout", lambda: PageLayout.of(fields.get("layout") or "tile")),
        "chip": chip,
        "memory": _parse_memory(fields, chip),
    }
    if tile := parse_integers(fields, "tile", "32x32", 2):
        arguments["tile"] = attribute_errors("tile", lambda: Tile(tile).require_on_chips())
    if alignment := parse_integers(fields, "alignment", "32x32"):
        arguments["alignment"] = alignment
    return arguments


def parse_mesh(fields: FormFields) -> Mesh | None:
    """Return the mesh of devices that share the tensor, None for one device.

    `mesh` is its shape, and `cut` the dimension that each of its axes cuts, with - for none, or one that all cut.

    >>> print(parse_mesh({"shape": "64x96", "mesh": "2x2", "cut": "-,1"}))
    2 x 2 devices, 2 replicas, 2 along dimension 1; each holds 64 x 48
    """
    shape = parse_integers(fields, "mesh", "1x2", 4)
    if not shape:
        return None
    if not 0 < prod(shape) <= MAX_DEVICES:
        raise FieldError("mesh", f"{fields['mesh']!r} has {prod(shape)} devices; use 1 to {MAX_DEVICES}")
    text = fields.get("cut", "").replace(" ", "")
    words = text.split(",") if text else []
    if not all(re.fullmatch(r"-|-?[0-9]{1,2}", word) for word in words):
        raise FieldError(
            "cut", f"{text!r} is not a cut; write a dimension, as 1, or one for each axis of the mesh, as -,1"
        )
    cuts = [None if word == "-" else int(word) for word in words]
    whole = parse_integers(fields, "shape", "1x4x60x90")
    one_cut = cuts[0] if len(cuts) == 1 else None
    return attribute_errors("cut", lambda: Mesh.dividing(whole, shape, cuts if len(cuts) > 1 else one_cut))


def spell_mesh(mesh: Mesh) -> dict[str, str]:
    """Return the fields of a mesh, with the shape of the entire tensor.

    >>> spell_mesh(Mesh.dividing((64, 96), (2, 2), (None, 1)))
    {'shape': '64x96', 'mesh': '2x2', 'cut': '-,1'}
    """
    cuts = ",".join(["-" if cut is None else str(cut) for cut in mesh.topology.placements])
    return {"shape": spell_extents(mesh.global_shape), "mesh": spell_extents(mesh.shape), "cut": cuts}


def parse_device(fields: FormFields, mesh: Mesh) -> tuple[int, ...]:
    """Return the coordinate of the device in the field `device`, or of the first one if it is empty.

    >>> parse_device({"device": "1,0"}, Mesh.dividing((64, 96), (2, 2), None))
    (1, 0)
    """
    at = parse_integers(fields, "device", "0,1", 4) or (0,)
    return attribute_errors("device", lambda: mesh.coordinate_of(at[0] if len(at) == 1 else at))


def _parse_memory(fields: FormFields, chip: Chip) -> Any:
    memory_layout, buffer = canonical_word(fields.get("memory") or "interleaved"), fields.get("buffer") or "dram"
    if memory_layout not in MEMORIES:
        raise FieldError("memory", f"unknown memory layout {memory_layout!r}; choose one of {', '.join(MEMORIES)}")
    if memory_layout == "interleaved":
        return attribute_errors("buffer", lambda: interleaved(buffer))
    shard = parse_integers(fields, "shard", "64x32")
    order = fields.get("orientation") or "row_major"
    grid = attribute_errors("grid", lambda: parse_cores(fields, chip))
    if memory_layout == "nd_sharded":
        if not shard:
            raise FieldError("shard", "nd sharding needs a shard shape; give one extent per dimension, such as 1x32x64")
        distribution = fields.get("distribution") or "round_robin_1d"
        return attribute_errors("shard", lambda: nd_sharded(shard, grid, order, distribution, buffer))
    return attribute_errors("shard", lambda: _STRATEGIES[memory_layout](grid, shard or None, order, buffer))


def attribute_errors(field: str, make: Callable[[], Made], *others: type[Exception]) -> Made:
    """Return the result of `make`; its errors, and `others` besides our own, are reported for `field`.

    >>> attribute_errors("count", lambda: int("7"))
    7
    """
    expected: tuple[type[Exception], ...] = (TilewrightError, *others)
    try:
        return make()
    except FieldError:
        raise
    except expected as problem:
        raise FieldError(field, str(problem)) from None


def parse_spec(fields: FormFields) -> TensorSpec:
    """Return the spec that the `fields` spell.

    >>> print(parse_spec({"shape": "64x96", "memory": "block_sharded", "buffer": "l1", "grid": "8x8", "chip": "n150"}))
    [64, 96] bfloat16 in tiles of 32 x 32, block sharded in L1, shards of 32 x 32 on 64 cores, wormhole_n150
    """
    return TensorSpec(**spec_arguments(fields))


def spell_spec(spec: TensorSpec) -> dict[str, str]:
    """Return the fields of a spec: `parse_spec(spell_spec(spec))` has the same placement.

    >>> spell_spec(TensorSpec((64, 96), "bfloat16", memory=height_sharded((2, 1)), chip="n150"))["shard"]
    '32x96'
    """
    chip = spec.known_chip
    if chip.name not in chip_names() or chip != Chip.named(chip.name, chip.dispatch):
        raise MemoryConfigError(f"the explorer supports the shipped chips only, got {chip!r}")
    words = {
        "shape": spell_extents(spec.shape.logical),
        "dtype": spec.dtype.name,
        "layout": spec.page_layout.name.lower(),
        "tile": spell_extents(spec.tile.shape),
        "memory": "interleaved",
        "buffer": spec.memory.buffer_type.name.lower(),
        "chip": chip.name,
        "dispatch": chip.dispatch,
    }
    if spec.alignment is not None:
        words["alignment"] = spell_extents(spec.alignment)
    sharding = spec.memory.sharding
    if sharding is not None:
        words["memory"] = _sharding_name(spec.memory, sharding)
        words |= {"grid": _spell_grid(sharding.grid), "shard": spell_extents(sharding.shape)}
        words |= {"orientation": sharding.orientation.name.lower()}
        if words["memory"] == "nd_sharded":
            words["distribution"] = sharding.distribution.name.lower()
    return words


def _sharding_name(memory: MemoryConfig, sharding: NdShardSpec) -> str:
    """Return the name of a sharding: a strategy's name if the placement is the same, otherwise "nd_sharded"."""
    layout = memory.memory_layout
    if layout is TensorMemoryLayout.ND_SHARDED or len(sharding.shape) != 2:
        return "nd_sharded"
    rebuilt = MemoryConfig(layout, memory.buffer_type, ShardSpec(sharding.grid, sharding.shape, sharding.orientation))
    return layout.name.lower() if rebuilt.sharding == sharding else "nd_sharded"


def _spell_grid(grid: CoreRangeSet) -> str:
    first = grid.ranges[0]
    if len(grid) == 1 and tuple(first.start) == (0, 0):
        return f"{first.width}x{first.height}"
    return "+".join(f"{r.start.x},{r.start.y}-{r.end.x},{r.end.y}" for r in grid.ranges)


def parse_element(fields: FormFields, spec: TensorSpec) -> tuple[int, ...]:
    """Return the coordinate in the field `at`, or the first element if it is empty.

    >>> parse_element({"at": "1,2"}, TensorSpec((4, 8))), parse_element({}, TensorSpec((4, 8)))
    ((1, 2), (0, 0))
    """
    at = parse_integers(fields, "at", ",".join("0" * max(1, spec.shape.rank)))
    if not at:
        return (0,) * spec.shape.rank
    shape = spec.shape.logical
    if len(at) != len(shape) or not all(c < n for c, n in zip(at, shape, strict=True)):
        raise FieldError(
            "at", f"element {at} is outside shape {list(shape)}: give {len(shape)} entries, each below its extent"
        )
    return at


def require_placement(spec: TensorSpec) -> TensorSpec:
    """Return the spec, or raise if it has no elements, or its placement is illegal on its chip (its size aside).

    >>> require_placement(parse_spec({"shape": "64x64"})).num_pages
    4
    """
    if not spec.num_pages or not prod(spec.shape.logical):
        raise FieldError("shape", f"{list(spec.shape.logical)} has no elements; give every dimension at least 1")
    for violation in placement_violations(spec, any_size=True):
        raise FieldError("memory", str(violation))
    return spec


# Scenes and animations as plain data for the page, which builds its elements from them.


def render_for_page(scene: Scene) -> dict[str, Any]:
    """Return a scene for the page: every panel as SVG, with the data shown on pointing.

    >>> from tilewright import row_major
    >>> from tilewright.views import scene_of
    >>> sorted(render_for_page(scene_of(row_major(2, 2))))
    ['facts', 'note', 'panels', 'title']
    """
    return {
        "title": scene.title,
        "note": scene.note,
        "facts": render_facts(scene.facts),
        "panels": [
            {"svg": svg, "data": panel_data(panel)}
            for svg, panel in zip(panel_markup(scene), scene.panels, strict=True)
        ],
    }


def render_facts(facts: Iterable[Fact]) -> list[dict[str, str]]:
    """Return `facts` for the page.

    >>> render_facts([Fact("threads", "32")])
    [{'name': 'threads', 'value': '32', 'tone': 'plain'}]
    """
    return [{"name": fact.name, "value": fact.value, "tone": fact.tone} for fact in facts]

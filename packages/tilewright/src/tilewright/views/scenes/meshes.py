# SPDX-License-Identifier: Apache-2.0
"""The scene of a mesh: which device holds which part of a tensor, and where that part lies on its chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ..._text import format_extents, list_some
from ...conversion import ItemExplanation, Piece, format_box
from ...errors import LayoutError
from ...files import SharedElement, StoredElement
from ...layout import Box
from ...memory import Coordinate, Mesh, TensorSpec, format_devices
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Field, Grid, Outline, Scene, Tracks
from ..scene_options import SceneOptions, scene_function
from .placements import explanation_scene, spec_scene

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...notation import DeviceSharding


_MAX_FACTS = 8  # parts that are listed below the picture
_MAX_IN_CELL = 2  # devices that are named in a cell
_MAX_DRAWN = 4096  # devices of a sharding
_MAX_TITLE = 100


@scene_function
def mesh_scene(
    mesh: Mesh,
    *,
    spec: TensorSpec | None = None,
    at: Sequence[int] | None = None,
    side: int = MAX_SIDE,
    title: str = "",
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the devices of a `mesh` with their parts, and the tensor cut into these parts; replicas have one color.

    With the `spec` of a part, its pages and banks are drawn as well. `at` is the coordinate of an element of the entire
    tensor to mark, `side` the most rows and columns of pages that are drawn, and `title` the picture's title. `options`
    are the common scene options: devices and parts have the attributes `part`, `device` and `holds`.

    >>> devices, tensor = mesh_scene(Mesh.dividing((64, 96), (2, 2), (None, 1))).panels
    >>> [devices.cell(row, 1).attributes["held"] for row in (0, 1)], tensor.cell(0, 1).attributes["device"]
    (['part 1', '= 0,1'], '0,1 1,1')
    """
    windows = mesh.windows()
    holders, inside = ((), None) if at is None else mesh.locate(tuple(at))
    panels = [_device_grid(mesh.shape, windows, holders), _tensor_grid(windows, holders)]
    whole, part_text = (format_extents(shape, "scalar") for shape in (mesh.global_shape, mesh.part_shape))
    parts, note = _describe_parts(windows, format_devices)
    facts = [Fact("tensor", f"{whole}, {part_text} on each device"), *parts]
    if spec is None:
        return Scene(title or str(mesh), tuple(panels), tuple(facts), note)
    part = spec_scene(spec, at=inside, side=side)
    part_panels = [replace(panel, title=f"each part: {panel.title}") for panel in part.panels]
    return Scene(
        title or str(mesh),
        (*panels, *part_panels),
        (*facts, *part.facts),
        f"{note} {part.note}".strip(),
        breaks=(len(panels),),
    )


@scene_function
def sharding_scene(
    sharding: DeviceSharding,
    *,
    shape: Sequence[int] | None = None,
    at: Sequence[int] | None = None,
    side: int = MAX_SIDE,
    title: str = "",
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the devices of a `sharding` with the parts of a tensor of `shape` that they hold, and the tensor cut so.

    `at` is the coordinate of an element to mark, `side` has no effect, and `title` is the picture's title. `options`
    are the common scene options: devices and parts have the attributes `part`, `device` and `holds`.

    >>> from tilewright.notation import parse_sharding
    >>> devices, tensor = sharding_scene(parse_sharding("{devices=[2]1,0}"), shape=(7,)).panels
    >>> [(tensor.cell(0, k).attributes["device"], tensor.cell(0, k).attributes["holds"]) for k in (0, 1)]
    [('1', '[0:4]'), ('0', '[4:7]')]
    """
    placed = sharding if shape is None else sharding.on(shape)
    if len(placed.devices) > _MAX_DRAWN:
        raise LayoutError(f"a picture has at most {_MAX_DRAWN} devices, got {len(placed.devices)}; use .windows(shape)")
    mesh_shape = placed.mesh_shape or (1,)
    names = dict(zip(product(*[range(n) for n in mesh_shape]), map(str, placed.devices), strict=True))
    held = {box: places for box, places in placed.boxes().items() if not box.empty}
    if not held:
        raise LayoutError(f"cannot draw a sharding of shape {list(placed.shape or ())}: it has no elements")
    marked = () if at is None else tuple([place for _, place, _ in placed.explain_element(at).tiles])
    counted = ", counted in this order, which the text does not state" if placed.numbers is None else ""
    axes = ", ".join([f"{name} = {size}" for name, size in placed.axes])
    parts, note = _describe_parts(held, lambda places: list_some([names[place] for place in places], _MAX_FACTS))
    facts = [
        Fact("tensor", format_extents(placed.shape or (), "scalar")),
        Fact("mesh", f"{axes or '1 device'}{counted}"),
        *parts,
        *[Fact("besides", text) for text in placed.besides],
    ]
    panels = (_device_grid(mesh_shape, held, marked, names.__getitem__), _tensor_grid(held, marked, names.__getitem__))
    text = " ".join(str(placed).split())
    text = text if len(text) <= _MAX_TITLE else f"{text[: _MAX_TITLE - 3]}..."
    return Scene(title or text, panels, tuple(facts), note)


def _describe_parts(
    windows: dict[Box, list[Coordinate]], format_holders: Callable[[Sequence[Coordinate]], str]
) -> tuple[list[Fact], str]:
    """Return the first parts with the devices that hold them, and a note about the others."""
    facts = [
        Fact(f"part {k}", f"{_format_box(box)} on {format_holders(devices)}")
        for k, (box, devices) in enumerate(list(windows.items())[:_MAX_FACTS])
    ]
    has_copies = any(len(devices) > 1 for devices in windows.values())
    notes = ["= names the device that holds the same part."] * has_copies
    notes += [f"{len(windows) - _MAX_FACTS} more parts are not listed."] * (len(windows) > _MAX_FACTS)
    return facts, " ".join(notes)


def _format_device(device: Coordinate) -> str:
    return ",".join(map(str, device))


def _device_grid(
    mesh_shape: tuple[int, ...],
    windows: dict[Box, list[Coordinate]],
    marked: tuple[Coordinate, ...],
    name: Callable[[Coordinate], str] = _format_device,
) -> Grid:
    """Return the devices as the mesh has them; one that holds the part of an earlier one names it."""
    parts = {device: (k, devices[0]) for k, devices in enumerate(windows.values()) for device in devices}
    devices = list(product(*[range(n) for n in mesh_shape]))
    columns = mesh_shape[-1]
    labels = []
    for device in devices:
        part, first = parts.get(device, (None, device))
        labels.append(None if part is None else f"part {part}" if first == device else f"= {name(first)}")
    numbers = tuple([parts[device][0] if device in parts else None for device in devices])
    boxes = list(windows)
    return Grid(
        prod(mesh_shape[:-1]),
        columns,
        (
            Field("held", tuple(labels)),
            Field("part", numbers),
            Field("device", tuple([name(device) for device in devices])),
            Field("holds", tuple([None if k is None else _format_box(boxes[k]) for k in numbers])),
        ),
        title="devices and their parts",
        color="part",
        label="held",
        valid=tuple([k is not None for k in numbers]),
        link=tuple([None if k is None else f"part {k}" for k in numbers]),
        outlines=_mark([at for at, device in enumerate(devices) if device in marked], columns),
        row_names=tuple([_format_device(device[:-1]) or "0" for device in devices[::columns]]),
        column_names=tuple(map(str, range(columns))),
        hatched="no part",
    )


def _tensor_grid(
    windows: dict[Box, list[Coordinate]],
    marked: tuple[Coordinate, ...],
    name: Callable[[Coordinate], str] = _format_device,
) -> Grid:
    """Return the parts where they lie in the tensor, folded to a matrix; each names the devices that hold it."""
    boxes = list(windows)
    rows = sorted({box.offset[:-1] for box in boxes})
    columns = sorted({box.offset[-1:] for box in boxes})
    order = {(*row, *column): k for k, (row, column) in enumerate(product(rows, columns))}
    cells: list[int | None] = [None] * len(order)
    for k, box in enumerate(boxes):
        cells[order[box.offset]] = k
    holders = [() if k is None else tuple(windows[boxes[k]]) for k in cells]
    return Grid(
        len(rows),
        len(columns),
        (
            Field("device", tuple([_format_holders(devices, name) for devices in holders])),
            Field("part", tuple(cells)),
            Field("holds", tuple([None if k is None else _format_box(boxes[k]) for k in cells])),
        ),
        title="the tensor, part by part",
        color="part",
        label="device",
        link=tuple([None if k is None else f"part {k}" for k in cells]),
        outlines=_mark([at for at, devices in enumerate(holders) if marked and devices == marked], len(columns)),
        row_names=tuple([",".join(map(str, row)) for row in rows]),
        column_names=tuple([",".join(map(str, column)) or "0" for column in columns]),
        row_axis="starts at",
    )


def _mark(cells: list[int], columns: int) -> tuple[Outline, ...]:
    return tuple([Outline(at // columns, at % columns, 1, 1, "mark") for at in cells])


def _format_holders(devices: tuple[Coordinate, ...], name: Callable[[Coordinate], str]) -> str:
    more = len(devices) - _MAX_IN_CELL
    names = " ".join([name(device) for device in devices[:_MAX_IN_CELL]])
    return f"{names} +{more}" if more > 0 else names


def _format_box(box: Box) -> str:
    return f"[{', '.join([f'{a}:{b}' for a, b in zip(box.offset, box.end, strict=True)])}]"


# The scene of a converted tensor: which source every piece of it comes from, and which device holds it.

_ZERO = "zero"
_MAX_PIECES = 12  # pieces that are listed below the picture


@scene_function
def assembly_scene(
    explanation: ItemExplanation, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the pieces of a tensor, from its `explanation`, colored by source, and the devices of its mesh.

    Cells are the largest boxes that lie in one piece and on one device: their names are where they begin. `side` is the
    most rows and columns that are drawn, and `title` the picture's title. `options` are the common scene options: cells
    have the attributes `source`, `label`, `piece` and `from`.

    >>> import tempfile, numpy
    >>> from tilewright.conversion import plan_conversion
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(f"{folder}/m.npz", q=numpy.zeros((64, 32)), k=numpy.zeros((32, 32)))
    ...     rules = {"qk": {"value": "join(tensor('q'), tensor('k'))"}}
    ...     plan = plan_conversion(f"{folder}/m.npz", f"{folder}/out", rules=rules)
    >>> pieces = assembly_scene(plan.explain("qk")[0]).panels[0]
    >>> [cell.attributes["source"] for cell in (pieces.cell(0, 0), pieces.cell(1, 0))]
    ['q', 'k']
    """
    item = explanation.item
    shape = item.source.value.shape
    windows = list(explanation.devices) or [Box((0,) * len(shape), shape)]
    grid, cut = _piece_grid(explanation.pieces, windows, shape, side)
    panels: list[Grid | Tracks] = [grid]
    if len(explanation.devices) > 1 and item.target.mesh is not None:
        panels.append(mesh_scene(item.target.mesh).panels[0])
    facts = [
        Fact("file", item.slot.file or item.name),
        Fact("tensor", f"{format_extents(shape, 'scalar')}, {' -> '.join(explanation.steps)}"),
        *[Fact(format_box(piece.box), str(piece)) for piece in explanation.pieces[:_MAX_PIECES]],
    ]
    if explanation.zeros:
        facts.append(Fact("zero", f"{explanation.zeros} elements of padding"))
    notes = [f"{len(explanation.pieces) - _MAX_PIECES} more pieces are not listed."] * (
        len(explanation.pieces) > _MAX_PIECES
    )
    if cut:
        notes.append(f"Only the first {side} rows and columns of boxes are drawn.")
    return Scene(title or item.name, tuple(panels), tuple(facts), " ".join(notes))


def _piece_grid(
    pieces: Sequence[Piece], windows: Sequence[Box], shape: tuple[int, ...], side: int
) -> tuple[Grid, bool]:
    """Return the tensor, cut where pieces and parts begin, and whether some of it is not drawn."""
    boxes = [*[piece.box for piece in pieces], *windows]
    flat = [_fold(box, shape) for box in boxes]
    extents = _fold(Box((0,) * len(shape), shape), shape).shape
    edges = [sorted({0, *[box.offset[d] for box in flat], *[box.end[d] for box in flat]}) for d in (0, 1)]
    starts = [[at for at in own if at < extent] for own, extent in zip(edges, extents, strict=True)]
    rows, columns = (values[:side] for values in starts)
    folded = flat[: len(pieces)]
    owners: list[int | None] = []
    for row in rows:
        for column in columns:
            at = Box((row, column), (1, 1))
            owners.append(next((k for k, box in enumerate(folded) if not box.intersection(at).empty), None))
    sources = tuple([None if k is None else pieces[k].source for k in owners])
    labels = _label_pieces(pieces)
    grid = Grid(
        len(rows),
        len(columns),
        (
            Field("source", sources),
            Field("label", tuple([_ZERO if k is None else labels[k] for k in owners])),
            Field("piece", tuple(owners)),
            Field("from", tuple([None if k is None else str(pieces[k]) for k in owners])),
        ),
        title="pieces, by their source",
        color="source" if len({piece.source for piece in pieces}) > 1 else "piece",
        label="label",
        valid=tuple([k is not None for k in owners]),
        link=tuple([None if k is None else f"piece {k}" for k in owners]),
        outlines=_outline_windows([_fold(box, shape) for box in windows], rows, columns),
        row_names=tuple(map(str, rows)),
        column_names=tuple(map(str, columns)),
        row_axis="starts at",
        hatched="zeros",
    )
    return grid, (len(rows), len(columns)) != tuple(map(len, starts))


def _outline_windows(windows: Sequence[Box], rows: Sequence[int], columns: Sequence[int]) -> tuple[Outline, ...]:
    """Return an outline around the cells of each device's part, if there are several."""
    outlines = []
    for k, box in enumerate(windows if len(windows) > 1 else ()):
        spans = []
        for d, starts in enumerate((rows, columns)):
            inside = [at for at, start in enumerate(starts) if box.offset[d] <= start < box.end[d]]
            spans.append((inside[0], len(inside)) if inside else (0, 0))
        (row, height), (column, width) = spans
        if height and width:
            outlines.append(Outline(row, column, height, width, "tile", f"part {k}"))
    return tuple(outlines)


def _fold(box: Box, shape: tuple[int, ...]) -> Box:
    """Return a box of a tensor as one of the matrix of its rows; of a box in several rows of planes, the hull."""
    offset, extents = (0,) * (2 - len(shape)) + box.offset, (1,) * (2 - len(shape)) + box.shape
    whole = (1,) * (2 - len(shape)) + shape
    strides = [prod(whole[d + 1 : -1]) for d in range(len(whole) - 1)]
    first = sum([a * stride for a, stride in zip(offset, strides, strict=False)])
    last = sum([(a + n - 1) * stride for a, n, stride in zip(offset, extents, strides, strict=False)])
    return Box((first, offset[-1]), (last - first + 1, extents[-1]))


def _label_pieces(pieces: Sequence[Piece]) -> list[str]:
    """Return a short label for each piece: its source, or its range where all have the same source."""
    boxes = [piece.source_box for piece in pieces]
    if len({piece.source for piece in pieces}) > 1 or len(pieces) < 2 or None in boxes:
        return [_short_name(piece.source) for piece in pieces]
    ranges = [list(zip(box.offset, box.end, strict=True)) for box in boxes if box is not None]
    varying = [d for d in range(len(ranges[0])) if len({own[d] for own in ranges}) > 1]
    return [" ".join(f"{own[d][0]}:{own[d][1]}" for d in varying) for own in ranges]


def _short_name(name: str) -> str:
    """Return the part of a name that tells tensors of a layer apart.

    >>> _short_name("model.layers.0.self_attn.q_proj.weight"), _short_name("lm_head.weight"), _short_name("q")
    ('q_proj', 'lm_head', 'q')
    """
    parts = name.split(".")
    return parts[-2] if len(parts) > 1 and parts[-1] in ("weight", "bias") else parts[-1]


def element_scene(subject: SharedElement | StoredElement, **options: Any) -> Scene:
    """Return where an element of a stored tensor lives, and the devices of a mesh that hold it."""
    if subject.mesh is not None:
        return mesh_scene(subject.mesh, **{"spec": subject.explanation.spec, "at": subject.coordinate, **options})
    return explanation_scene(subject.explanation, **options)

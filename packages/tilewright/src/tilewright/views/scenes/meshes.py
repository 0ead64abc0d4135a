# SPDX-License-Identifier: Apache-2.0
"""The scene of a mesh: which device holds which part of a tensor, and where that part lies on its chip."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ...layout import Box
from ...memory import Coordinate, Mesh, TensorSpec, format_devices
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Field, Grid, Outline, Scene
from ..scene_options import SceneOptions, scene_function
from .specs import spec_scene

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MAX_FACTS = 8  # parts that are listed below the picture
_MAX_IN_CELL = 2  # devices that are named in a cell


@scene_function
def mesh_scene(
    mesh: Mesh,
    *,
    spec: TensorSpec | None = None,
    at: Any = None,
    side: int = MAX_SIDE,
    title: str = "",
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the devices of a `mesh` with their parts, and the tensor cut into these parts; replicas have one color.

    With the `spec` of a part, its pages and banks are drawn as well. `at` is the coordinate of an element of the entire
    tensor to mark, `side` the most rows and columns of pages that are drawn, and `title` that of the picture. `options`
    are those of every scene: devices and parts have the attributes `part`, `device` and `holds`.

    >>> devices, tensor = mesh_scene(Mesh.dividing((64, 96), (2, 2), (None, 1))).panels
    >>> [devices.cell(row, 1).attributes["held"] for row in (0, 1)], tensor.cell(0, 1).attributes["device"]
    (['part 1', '= 0,1'], '0,1 1,1')
    """
    windows = mesh.windows()
    boxes = list(windows)
    holders, inside = ((), None) if at is None else mesh.locate(tuple(at))
    panels = [_device_grid(mesh, windows, holders), _tensor_grid(windows, holders)]
    facts = [
        Fact("tensor", f"{_format_extents(mesh.global_shape)}, {_format_extents(mesh.part_shape)} on each device"),
        *[
            Fact(f"part {k}", f"{_format_box(box)} on {format_devices(windows[box])}")
            for k, box in enumerate(boxes[:_MAX_FACTS])
        ],
    ]
    more = f"{len(boxes) - _MAX_FACTS} more parts are not listed." if len(boxes) > _MAX_FACTS else ""
    replicas = "= names the device that holds the same part." if len(boxes) < len(mesh.topology.coordinates) else ""
    note = " ".join([text for text in (replicas, more) if text])
    if spec is None:
        return Scene(title or str(mesh), tuple(panels), tuple(facts), note)
    part = spec_scene(spec, at=inside, side=side)
    each = [replace(panel, title=f"each part: {panel.title}") for panel in part.panels]
    return Scene(
        title or str(mesh),
        (*panels, *each),
        (*facts, *part.facts),
        f"{note} {part.note}".strip(),
        breaks=(len(panels),),
    )


def _device_grid(mesh: Mesh, windows: dict[Box, list[Coordinate]], marked: tuple[Coordinate, ...]) -> Grid:
    """Return the devices as the mesh has them; one that holds the part of an earlier one names it."""
    parts = {device: (k, devices[0]) for k, devices in enumerate(windows.values()) for device in devices}
    devices = list(product(*[range(n) for n in mesh.shape]))
    columns = mesh.shape[-1]
    held = []
    for device in devices:
        part, first = parts.get(device, (None, device))
        held.append(None if part is None else f"part {part}" if first == device else f"= {_format_device(first)}")
    numbers = tuple([parts[device][0] if device in parts else None for device in devices])
    boxes = list(windows)
    return Grid(
        prod(mesh.shape[:-1]),
        columns,
        (
            Field("held", tuple(held)),
            Field("part", numbers),
            Field("device", tuple([_format_device(device) for device in devices])),
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


def _tensor_grid(windows: dict[Box, list[Coordinate]], marked: tuple[Coordinate, ...]) -> Grid:
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
            Field("device", tuple([_format_holders(each) for each in holders])),
            Field("part", tuple(cells)),
            Field("holds", tuple([None if k is None else _format_box(boxes[k]) for k in cells])),
        ),
        title="the tensor, part by part",
        color="part",
        label="device",
        link=tuple([None if k is None else f"part {k}" for k in cells]),
        outlines=_mark([at for at, each in enumerate(holders) if marked and each == marked], len(columns)),
        row_names=tuple([",".join(map(str, row)) for row in rows]),
        column_names=tuple([",".join(map(str, column)) or "0" for column in columns]),
        row_axis="starts at",
    )


def _mark(cells: list[int], columns: int) -> tuple[Outline, ...]:
    return tuple([Outline(at // columns, at % columns, 1, 1, "mark") for at in cells])


def _format_device(device: Coordinate) -> str:
    return ",".join(map(str, device))


def _format_holders(devices: tuple[Coordinate, ...]) -> str:
    more = len(devices) - _MAX_IN_CELL
    named = " ".join([_format_device(device) for device in devices[:_MAX_IN_CELL]])
    return f"{named} +{more}" if more > 0 else named


def _format_box(box: Box) -> str:
    return f"[{', '.join([f'{a}:{b}' for a, b in zip(box.offset, box.end, strict=True)])}]"


def _format_extents(extents: tuple[int, ...]) -> str:
    return " x ".join(map(str, extents)) or "scalar"

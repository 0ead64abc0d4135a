# SPDX-License-Identifier: Apache-2.0
"""Scenes of kernels: the threads that touched each element, step by step between barriers, and the races."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tilewright._text import count_of
from tilewright.errors import LayoutError
from tilewright.views import Fact, Field, Grid, Outline, Scene, SceneOptions, scene_function

from .simt import KernelReport, TouchMap

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MAX_PANELS = 12
_MAX_ELEMENTS = 4096  # of a tensor whose accesses are in a report


@scene_function
def kernel_scene(
    report: KernelReport,
    *,
    memory: str | None = None,
    step: int | None = None,
    side: int = _MAX_ELEMENTS,
    **options: Unpack[SceneOptions],
) -> Scene:
    """Draw the threads' accesses in one block of a launch, from its `report`: the first with a race, else the first.

    There is a panel for each tensor and each step between barriers; `memory` chooses a tensor by its name, `step`
    one step. Cells are colored by thread, races are marked. At most `side` rows and columns are drawn. `options`
    are the common scene options.

    >>> import numpy as np
    >>> from tilewright_mojo.simt import launch, thread_idx
    >>> def kernel(out):
    ...     out[thread_idx.x] = thread_idx.x
    >>> scene = kernel_scene(launch(kernel, np.zeros(4), grid=1, block=4))
    >>> scene.panels[0].cell(0, 2).attributes
    {'thread': 2, 'warp': 0, 'by': 'w2', 'action': 'write'}
    """
    chosen = [
        touched
        for touched in report.touches
        if (memory is None or touched.memory == memory) and (step is None or touched.step == step)
    ]
    if not chosen:
        names = ", ".join(sorted({touched.memory for touched in report.touches})) or "none"
        raise LayoutError(f"{report.kernel} touched no such memory in that step; the tensors it touched are {names}")
    shown = chosen[:_MAX_PANELS]
    mood: Literal["good", "bad"] = "good" if report.clean else "bad"
    facts = [
        Fact("launch", f"grid {_extents(report.grid)}, block {_extents(report.block)}"),
        Fact("block", str(shown[0].block)),
        Fact("errors", count_of(len(report.errors), "error") if report.errors else "none", mood),
        *[Fact(defect.kind, defect.message, "bad") for defect in report.errors[:4]],
        *[Fact(defect.kind, defect.message) for defect in report.warnings[:4]],
    ]
    if len(chosen) > len(shown):
        facts.append(Fact("not shown", f"{len(chosen) - len(shown)} more steps; choose with memory= and step="))
    note = "w: written by the thread; r: read by it; the last one of each step."
    panels = tuple([_panel(touched, report.warp, side) for touched in shown])
    return Scene(f"{report.kernel}: who touched what", panels, tuple(facts), note)


def _extents(extents: tuple[int, ...]) -> str:
    used = [n for k, n in enumerate(extents) if n != 1 or k == 0]
    return " x ".join(map(str, used))


def _panel(touched: TouchMap, warp: int, side: int) -> Grid:
    rows, columns = min(touched.shape[0], side), min(touched.shape[1], side)
    drawn = [row * touched.shape[1] + column for row in range(rows) for column in range(columns)]
    pairs = [(touched.readers[k], touched.writers[k]) for k in drawn]
    threads = [reader if writer is None else writer for reader, writer in pairs]
    racing = [divmod(place, columns) for place, k in enumerate(drawn) if touched.racing[k]]
    return Grid(
        rows,
        columns,
        (
            Field("thread", tuple(threads)),
            Field("warp", tuple([None if thread is None else thread // warp for thread in threads])),
            Field("by", tuple([_by(reader, writer) for reader, writer in pairs])),
            Field("action", tuple([_action(reader, writer) for reader, writer in pairs])),
        ),
        title=f"{touched.memory} ({touched.space}), step {touched.step}" + (": races" if racing else ""),
        color="thread",
        label="by",
        valid=() if None not in threads else tuple([thread is not None for thread in threads]),
        outlines=tuple([Outline(row, column, 1, 1, "mark", "race") for row, column in racing]),
        row_axis="row" if rows > 1 else "",
        column_axis="column" if rows > 1 else "element",
        hatched="not touched",
    )


def _by(reader: int | None, writer: int | None) -> str | None:
    if writer is None:
        return None if reader is None else f"r{reader}"
    return f"w{writer}" if reader is None else f"w{writer} r{reader}"


def _action(reader: int | None, writer: int | None) -> str | None:
    if writer is None:
        return None if reader is None else "read"
    return "write" if reader is None else "read and write"

# SPDX-License-Identifier: Apache-2.0
"""The scene of a swizzle: banks before and after, and the conflicts of reading rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...analysis import BankReport, bank_conflicts
from ...errors import LayoutError
from ...layout import ComposedLayout, LayoutLike, Swizzle, compose
from ..layout_grid import MAX_SIDE, LayoutGrid, sample_layout
from ..scene import Fact, Field, Grid, Scene
from .layouts import layout_title

_WARP = 32  # threads that read at the same time


def swizzle_scene(
    swizzle: Swizzle | ComposedLayout,
    layout: LayoutLike | None = None,
    *,
    itemsize: int = 4,
    banks: int = 32,
    width: int = 4,
    side: int = MAX_SIDE,
) -> Scene:
    """Return the banks of a layout before and after a swizzle, and the conflicts of reading rows and columns.

    A composition with a swizzle can be given as it is. Banks are `width` bytes wide, elements `itemsize` bytes.

    >>> from tilewright import row_major
    >>> scene = swizzle_scene(Swizzle(5, 0, 5), row_major(32, 32))
    >>> [(fact.name, fact.value) for fact in scene.facts if "column" in fact.name]
    [('read a column, before', '32-way conflict'), ('read a column, after', 'no conflict')]
    """
    if isinstance(swizzle, ComposedLayout):
        layout = swizzle.inner
        swizzle = swizzle.outer
    if not isinstance(swizzle, Swizzle) or layout is None or layout.axes:
        raise LayoutError(
            f"swizzle_scene needs a swizzle and a layout of plain offsets, got {swizzle!r} and {layout!r};"
            " give compose(swizzle, layout), or both"
        )
    after = compose(swizzle, layout)
    sheets = [sample_layout(layout, side), sample_layout(after, side)]
    grids = [
        _bank_grid(sheet, name, itemsize, banks, width) for sheet, name in zip(sheets, ("before", "after"), strict=True)
    ]
    facts = [Fact("swizzle", str(swizzle)), Fact("layout", str(layout)), Fact("banks", f"{banks} of {width} bytes")]
    for axis, name in ((1, "row"), (0, "column")):
        for sheet, when in zip(sheets, ("before", "after"), strict=True):
            if sheet.is_complete:
                worst = _worst(sheet, axis, itemsize, banks, width)
                facts.append(Fact(f"read a {name}, {when}", str(worst), "good" if worst.conflict_free else "bad"))
    return Scene(f"{swizzle} on {layout_title(layout)}", tuple(grids), tuple(facts))


def _bank_grid(sheet: LayoutGrid, title: str, itemsize: int, banks: int, width: int) -> Grid:
    offsets = sheet.places()["offset"]
    bank = offsets * itemsize // width % banks
    return Grid(
        sheet.rows,
        sheet.columns,
        (Field("bank", tuple(bank.reshape(-1).tolist())), Field("offset", tuple(offsets.reshape(-1).tolist()), "ramp")),
        title=title,
        color="bank",
        label="bank",
        link=tuple(zip(*[part.reshape(-1).tolist() for part in np.indices(bank.shape)], strict=True)),
        row_axis="row",
        column_axis="column",
        block=sheet.block,
    )


def _worst(sheet: LayoutGrid, axis: int, itemsize: int, banks: int, width: int) -> BankReport:
    """Return the access with the most conflicts among all rows, or all columns, by at most 32 threads."""
    offsets: Any = sheet.places()["offset"]
    lines = offsets.T if axis == 0 else offsets
    reports = [
        bank_conflicts(line[start : start + _WARP], itemsize, banks, width)
        for line in lines
        for start in range(0, len(line), _WARP)
    ]
    return max(reports, key=lambda report: report.wavefronts)

# SPDX-License-Identifier: Apache-2.0
"""The scene of a difference: where two arrays that should be alike are not, and by how much."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import LayoutError
from ..scene import Fact, Field, Grid, Outline, Scene
from ..sheet import SIDE
from .blocks import largest_of_cells


def difference_scene(expected: Any, found: Any, *, tolerance: float = 0.0, side: int = SIDE, title: str = "") -> Scene:
    """Return a heat map of how far one array is from another of the same shape, its worst element marked.

    Leading dimensions follow each other downwards. Elements that are NaN in both are alike; in one, infinitely far.

    >>> scene = difference_scene(np.zeros((2, 3)), np.array([[0, 0, 0], [0, 0.5, 0]]))
    >>> scene.panels[0].field("difference").values, [fact.value for fact in scene.facts][:2]
    ((0.0, 0.0, 0.0, 0.0, 0.5, 0.0), ['1 of 6 (16.7%)', '0.5 at (1, 1): 0 expected, 0.5 found'])
    """
    before, after = np.asarray(expected, dtype=np.float64), np.asarray(found, dtype=np.float64)
    if before.shape != after.shape or not before.size:
        raise LayoutError(
            f"shapes {before.shape} and {after.shape} cannot be compared; they must be equal, and not empty"
        )
    with np.errstate(invalid="ignore"):
        distance = np.abs(after - before)
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    distance = np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
    cells, step = largest_of_cells(distance, side)
    worst = int(distance.argmax())
    width = before.shape[-1] if before.ndim else 1
    mark = Outline(worst // width // step[0], worst % width // step[1], 1, 1, "mark", "worst")
    rows, columns = cells.shape
    grid = Grid(
        rows,
        columns,
        (Field("difference", tuple(cells.reshape(-1).tolist()), "heat"),),
        title="how far apart",
        color="difference",
        label="difference",
        outlines=(mark,) if distance.max() else (),
        row_axis="row",
        column_axis="column",
        block=step,
    )
    note = "" if step == (1, 1) else f"Each cell stands for {step[0]} x {step[1]} elements, and shows the largest."
    shape = " x ".join(map(str, before.shape))
    facts = _facts(before, after, distance, worst, tolerance)
    return Scene(title or f"differences of {shape}", (grid,), tuple(facts), note)


def _facts(before: Any, after: Any, distance: Any, worst: int, tolerance: float) -> list[Fact]:
    apart = int(np.count_nonzero(distance > tolerance))
    at = tuple(int(k) for k in np.unravel_index(worst, distance.shape))
    values = f"{before.flat[worst]:.6g} expected, {after.flat[worst]:.6g} found"
    finite = distance[np.isfinite(distance)]
    return [
        Fact(
            "differ" + (f" by more than {tolerance:g}" if tolerance else ""),
            f"{apart} of {distance.size} ({apart / distance.size:.1%})",
            "bad" if apart else "good",
        ),
        Fact("largest", f"{distance.flat[worst]:.6g} at {at}: {values}"),
        Fact("rms", f"{float(np.sqrt(np.mean(finite * finite))) if finite.size else 0.0:.6g}"),
    ]

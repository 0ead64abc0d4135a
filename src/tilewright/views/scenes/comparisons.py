# SPDX-License-Identifier: Apache-2.0
"""The scenes of comparisons: where two tensors differ, and how all tensors of two files differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compare import Comparison, TensorComparison
from ...errors import LayoutError
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Field, Grid, Outline, Scene
from .block_formats import largest_of_cells


def comparison_scene(found: TensorComparison, *, side: int = MAX_SIDE, title: str = "") -> Scene:
    """Return a heat map of the largest error of every block of a tensor, with the figures of the comparison.

    >>> import tilewright as tw
    >>> scene = comparison_scene(tw.diff(np.zeros((64, 64)), np.eye(64)).tensors[0])
    >>> scene.panels[0].field("error").values
    (1.0, 0.0, 0.0, 1.0)
    """
    name = found.name or "two arrays"
    if found.error_map is None:
        return Scene(title or name, (), tuple(_facts(found)))
    cells, step = largest_of_cells(found.error_map, side)
    block = (found.map_block[0] * step[0], found.map_block[1] * step[1])
    rows, columns = cells.shape
    grid = Grid(
        rows,
        columns,
        (Field("error", tuple(cells.reshape(-1).tolist()), "heat"),),
        title=f"largest error of each {block[0]} x {block[1]} block",
        color="error",
        label="error",
        outlines=_worst(found, block),
        row_axis="row",
        column_axis="column",
        block=block,
    )
    return Scene(title or f"{name}: {found.format_a} and {found.format_b}", (grid,), tuple(_facts(found)))


def _worst(found: TensorComparison, block: tuple[int, int]) -> tuple[Outline, ...]:
    if found.worst is None:
        return ()
    *outer, column = found.worst.coordinate or (0,)
    row = int(np.ravel_multi_index(outer, found.shape[:-1])) if outer else 0
    return (Outline(row // block[0], column // block[1], 1, 1, "mark", "worst"),)


def _facts(found: TensorComparison) -> list[Fact]:
    facts = []
    for name, text in found.lines()[1:]:
        tone: Any = "plain"
        if name in ("unequal", "problem") and not found.same:
            tone = "bad"
        elif name == "equal":
            tone = "good"
        hidden = text.startswith("- ")
        facts.append(Fact(name or ("what PCC hides" if hidden else "what PCC says"), text.removeprefix("- "), tone))
    return facts


def comparisons_scene(found: Comparison, *, side: int = MAX_SIDE, title: str = "") -> Scene:
    """Return the relative error of every tensor of two files as a heat map, one row each, the worst first.

    >>> import tilewright as tw
    >>> scene = comparisons_scene(tw.diff({"x": np.ones(3), "y": np.ones(2)}, {"x": np.ones(3), "y": np.zeros(2)}))
    >>> scene.panels[0].row_names
    ('y', 'x')
    """
    if len(found.tensors) == 1:
        return comparison_scene(found.tensors[0], side=side, title=title)
    ranked = sorted(found.tensors, key=lambda each: (-bool(each.problem), -each.relative_rms))[:side]
    if not ranked:
        raise LayoutError(f"{found.a} and {found.b} have no tensor in common; nothing to draw")
    values = [None if each.problem else each.relative_rms for each in ranked]
    grid = Grid(
        len(ranked),
        1,
        (Field("relative error", tuple(values), "heat"),),
        title="error of each tensor, as a share of its rms",
        color="relative error",
        label="relative error",
        row_names=tuple([each.name for each in ranked]),
        column_names=("rms error",),
    )
    same = sum(each.same for each in found.tensors)
    facts = [
        Fact("the same", f"{same} of {len(found.tensors)} ({found.tolerance})", "good" if found.same else "bad"),
        Fact("only in A", ", ".join(found.only_a) or "none", "bad" if found.only_a else "plain"),
        Fact("only in B", ", ".join(found.only_b) or "none", "bad" if found.only_b else "plain"),
    ]
    worst = found.worst
    facts += [Fact("worst", worst.name), *_facts(worst)] if worst is not None and worst.unequal else []
    omitted = len(found.tensors) - len(ranked)
    return Scene(
        title or f"{found.a} and {found.b}", (grid,), tuple(facts), f"{omitted} more are not shown." if omitted else ""
    )


def difference_scene(
    expected: Any, found: Any, *, tolerance: float = 0.0, side: int = MAX_SIDE, title: str = ""
) -> Scene:
    """Return a heat map of the absolute difference of two arrays of the same shape, with the worst element marked.

    Leading dimensions are stacked. Elements that are NaN in both are equal; NaN in one counts as infinite.

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
        title="absolute difference",
        color="difference",
        label="difference",
        outlines=(mark,) if distance.max() else (),
        row_axis="row",
        column_axis="column",
        block=step,
    )
    note = "" if step == (1, 1) else f"Each cell stands for {step[0]} x {step[1]} elements and shows the largest."
    shape = " x ".join(map(str, before.shape))
    facts = _difference_facts(before, after, distance, worst, tolerance)
    return Scene(title or f"differences of {shape}", (grid,), tuple(facts), note)


def _difference_facts(before: Any, after: Any, distance: Any, worst: int, tolerance: float) -> list[Fact]:
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

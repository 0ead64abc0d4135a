# SPDX-License-Identifier: Apache-2.0
"""The scenes of comparisons: where two tensors differ, block by block, and how all tensors of two files do."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compare import Comparison, TensorComparison
from ...errors import LayoutError
from ..scene import Fact, Field, Grid, Outline, Scene
from ..sheet import SIDE
from .blocks import largest_of_cells


def comparison_scene(found: TensorComparison, *, side: int = SIDE, title: str = "") -> Scene:
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


def comparisons_scene(found: Comparison, *, side: int = SIDE, title: str = "") -> Scene:
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
        raise LayoutError(f"{found.a} and {found.b} have no tensor in common: there is nothing to see")
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
    left = len(found.tensors) - len(ranked)
    return Scene(
        title or f"{found.a} and {found.b}", (grid,), tuple(facts), f"{left} more are not shown." if left else ""
    )

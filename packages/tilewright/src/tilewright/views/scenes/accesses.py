# SPDX-License-Identifier: Apache-2.0
"""Scenes for kernels: words that each bank serves, operands of matrix instructions, distributions over threads."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...analysis import BankReport, MatrixAtom
from ...errors import LayoutError
from ...layout import Linear
from ..scene import Fact, Field, Grid, Scene
from ..scene_options import SceneOptions, scene_function
from .threads import thread_value_scene

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MOST_PLACES = 1 << 16  # of a linear map that are drawn
_MOST_COLLISIONS = 4  # that are listed


@scene_function
def bank_scene(report: BankReport, **options: Unpack[SceneOptions]) -> Scene:
    """Return how many words each bank serves in each phase of an access: more than one is a conflict.

    `report` is that of `bank_conflicts`; `options` are those of every scene.

    >>> from tilewright import Layout
    >>> from tilewright.analysis import bank_conflicts
    >>> scene = bank_scene(bank_conflicts(Layout(32, 2)))
    >>> scene.panels[0].cell(0, 2).attributes["words"]
    2
    """
    table = np.array(report.phase_words or [report.words])
    threads = {(clash.phase, clash.bank): str(clash).partition(": ")[2] for clash in report.collisions}
    banks = table.shape[1]
    waiting = tuple([threads.get((row, bank)) for row in range(len(table)) for bank in range(banks)])
    # Nothing is hot where no thread waits.
    words = Field.of_table("words", table, "ramp" if report.conflict_free else "heat")
    grid = Grid(
        len(table),
        banks,
        (words, Field("waiting", waiting)),
        title="words that each bank serves",
        color="words",
        label="words",
        row_axis="phase",
        column_axis="bank",
    )
    facts = [
        Fact("conflicts", str(report), "good" if report.conflict_free else "bad"),
        Fact("wavefronts", f"{report.wavefronts}, without conflicts {report.ideal}"),
        Fact("instructions", str(report.instructions)),
        *[Fact("waiting", str(clash), "bad") for clash in report.collisions[:_MOST_COLLISIONS]],
    ]
    return Scene("bank conflicts", (grid,), tuple(facts))


@scene_function
def atom_scene(atom: MatrixAtom, **options: Unpack[SceneOptions]) -> Scene:
    """Return which thread holds which element of the operands A, B and C of a matrix instruction, `atom`.

    `options` are those of every scene.

    >>> from tilewright import atoms
    >>> scene = atom_scene(atoms["SM80_8x8x4_F64F64F64F64_TN"])
    >>> [panel.title for panel in scene.panels], scene.panels[2].cell(1, 3).attributes["holds"]
    (['A: 8 x 4', 'B: 8 x 4', 'C: 8 x 8'], 'T5 V1')
    """
    panels = []
    for name in "ABC":
        layout, (rows, columns) = atom.operand(name)
        owners = thread_value_scene(layout, (rows, columns)).panels[0]
        panels.append(replace(owners, title=f"{name}: {rows} x {columns}"))
    facts = [Fact(name, str(atom.operand(name)[0])) for name in "ABC"]
    m, n, k = atom.shape
    return Scene(f"{atom.name}: {m} x {n} x {k}, {atom.threads} threads", tuple(panels), tuple(facts))


@scene_function
def linear_scene(linear: Linear, **options: Unpack[SceneOptions]) -> Scene:
    """Return what a `linear` map has at each element: its register, lane and warp, or its offset.

    The map must have one or two output axes; `options` are those of every scene.

    >>> scene = linear_scene(Linear({"register": [(0, 1)], "lane": [(1, 0)]}, {"row": 2, "column": 2}))
    >>> scene.panels[0].cell(1, 1).attributes
    {'register': 1, 'lane': 1, 'held by': '1, 1'}
    """
    extents, names = tuple(linear.outputs.values()), tuple(linear.inputs)
    if not 1 <= len(extents) <= 2:
        raise LayoutError(
            f"expected a map to one or two axes, got {list(linear.outputs)}; compose it with another first"
        )
    count = prod(linear.inputs.values())
    if count > _MOST_PLACES:
        raise LayoutError(f"a map of {count} places is more than can be drawn; at most {_MOST_PLACES}")
    rows, columns = extents if len(extents) == 2 else (1, *extents)
    held: list[list[tuple[int, ...]]] = [[] for _ in range(rows * columns)]
    for place in product(*[range(extent) for extent in linear.inputs.values()]):
        image = tuple(linear(**dict(zip(names, place, strict=True))).values())
        row, column = image if len(image) == 2 else (0, *image)
        held[row * columns + column].append(place)
    shown = [name for name in names if linear.inputs[name] > 1] or list(names[:1])
    fields = [
        Field(name, tuple([places[0][names.index(name)] if places else None for places in held])) for name in shown
    ]
    texts = tuple(["; ".join([_format_place(place, names, shown) for place in places]) or None for places in held])
    color = next((name for name in ("lane", "offset", "warp") if name in shown), shown[0])
    axes = list(linear.outputs) if len(extents) == 2 else ["", *linear.outputs]
    grid = Grid(
        rows,
        columns,
        (*fields, Field("held by", texts)),
        title="places of each element",
        color=color,
        label=color,
        row_axis=axes[0],
        column_axis=axes[1],
    )
    facts = [
        Fact("from", ", ".join([f"{name} {extent}" for name, extent in linear.inputs.items()])),
        Fact(
            "every element is held", "yes" if linear.is_surjective else "no", "plain" if linear.is_surjective else "bad"
        ),
        Fact("copies of each element", str(count >> linear.rank)),
    ]
    return Scene("a linear map", (grid,), tuple(facts))


def _format_place(place: tuple[int, ...], names: tuple[str, ...], shown: list[str]) -> str:
    return ", ".join([str(place[names.index(name)]) for name in shown])

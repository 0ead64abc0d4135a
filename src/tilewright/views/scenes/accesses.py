# SPDX-License-Identifier: Apache-2.0
"""Scenes of accesses to memory: how many words each bank serves in each phase; and of matrix instructions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...analysis import BankReport, MatrixAtom
from ..scene import Fact, Field, Grid, Scene
from ..scene_options import SceneOptions, scene_function
from .threads import thread_value_scene

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
    grid = Grid(
        len(table),
        banks,
        (Field.of_table("words", table, "heat"), Field("waiting", waiting)),
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

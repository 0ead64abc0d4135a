# SPDX-License-Identifier: Apache-2.0
"""Scenes of threads: which thread holds which element, by a thread-value layout or by `distribute`."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analysis import BankReport, MatrixAtom, bank_conflicts, coalescing
from ...errors import LayoutError
from ...layout import Layout, LayoutLike, Linear, product, product_each, require_layout, row_major
from ...tensor import TileTensor
from ..scene import Fact, Field, Grid, Scene
from ..scene_options import SceneOptions, scene_function

if TYPE_CHECKING:
    from typing_extensions import Unpack


_WARP = 32


@scene_function
def thread_value_scene(layout: LayoutLike, shape: object, **options: Unpack[SceneOptions]) -> Scene:
    """Return which thread holds which element, by a `layout` from (thread, value) to the index in a tile of a `shape`.

    Indices of elements are colexicographic, as in CuTe: the first coordinate of the tile runs fastest. `options` are
    the common scene options.

    >>> from tilewright import Layout
    >>> scene = thread_value_scene(Layout(((2, 4), (2, 1)), ((8, 1), (4, 0))), (4, 4))
    >>> scene.panels[0].cell(1, 0).attributes
    {'thread': 2, 'value': 0, 'holds': 'T2 V0'}
    """
    require_layout(layout, "thread_value_scene")
    rows, columns = (int(n) for n in product_each(shape)) if isinstance(shape, tuple) and len(shape) == 2 else (0, 0)
    if layout.rank != 2 or layout.axes or not rows * columns or not layout.size:
        raise LayoutError(
            "thread_value_scene needs a layout of (thread, value) and a tile of two extents, none of them 0,"
            f" got {layout} and {shape}"
        )
    table = np.asarray(layout.offsets())
    threads, values = table.shape
    if table.min() < 0 or table.max() >= rows * columns:
        raise LayoutError(
            f"{layout} maps to element {int(table.max())}, outside a tile of {rows} x {columns} = {rows * columns};"
            " use the shape of the tile the layout describes"
        )
    cell_numbers = (table % rows) * columns + table // rows  # as row-major numbers of cells
    owners = _owner_grid(cell_numbers, rows, columns)
    value_grid = Grid(
        threads,
        values,
        (
            Field("element", tuple(f"{k // columns},{k % columns}" for k in cell_numbers.reshape(-1).tolist())),
            Field("thread", tuple(np.repeat(np.arange(threads), values).tolist())),
        ),
        title="elements of each thread",
        color="thread",
        label="element",
        link=tuple(cell_numbers.reshape(-1).tolist()),
        row_axis="thread",
        column_axis="value",
    )
    facts = [
        Fact("layout", str(layout)),
        Fact("threads", f"{threads} with {values} values each"),
        *_coverage_facts(cell_numbers, rows * columns),
    ]
    return Scene(f"threads and values on a {rows} x {columns} tile", (owners, value_grid), tuple(facts))


@scene_function
def distribute_scene(
    tensor: object,
    threads: Layout,
    *,
    vector: tuple[int, ...] = (),
    swizzle: object = None,
    itemsize: int = 4,
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return which thread holds which element after `distribute`: `tensor` is a tensor or its layout.

    `threads` is the layout of the threads, `vector` the shape of the vectors that they hold, `swizzle` the swizzle of
    their offsets, and `itemsize` the bytes of an element of a layout. `options` are the common scene options.

    >>> import tilewright as tw
    >>> scene = distribute_scene(tw.row_major(4, 8), tw.row_major(2, 4))
    >>> scene.panels[0].cell(1, 5).attributes
    {'thread': 5, 'value': 1, 'holds': 'T5 V1'}
    """
    if isinstance(tensor, TileTensor):
        layout, itemsize = tensor.layout, tensor.dtype.itemsize
    else:
        layout = require_layout(tensor, "distribute_scene")
    extents = tuple(int(n) for n in product_each(layout.shape))
    if len(extents) != 2 or layout.axes:
        raise LayoutError(f"distribute_scene draws matrices of plain offsets, got {layout}")
    rows, columns = extents
    # Distributing the numbers of the cells tells which cells each thread gets, whatever the rules are.
    numbers = TileTensor(np.arange(rows * columns, dtype=np.int64), row_major(rows, columns))
    view: Any = numbers.vectorize[vector]() if vector else numbers
    fixed = (threads,) if swizzle is None else (threads, swizzle)
    count = int(product(threads.shape))
    shares = [np.asarray(view.distribute[fixed](k).to_numpy()).reshape(-1) for k in range(count)]
    cell_numbers = np.stack(shares)
    facts = [
        Fact("tensor", str(layout)),
        Fact("threads", str(threads)),
        Fact(
            "each thread", f"{cell_numbers.shape[1]} elements" + (f" in vectors of {product(vector)}" if vector else "")
        ),
        *_coverage_facts(cell_numbers, rows * columns),
        *_access_facts(layout, cell_numbers, columns, product(vector) if vector else 1, itemsize),
    ]
    return Scene(f"{rows} x {columns} over {count} threads", (_owner_grid(cell_numbers, rows, columns),), tuple(facts))


def _owner_grid(cell_numbers: NDArray[Any], rows: int, columns: int) -> Grid:
    """Return a grid of the thread and value that hold each element; the first if there are several."""
    threads, values = cell_numbers.shape
    thread: list[Any] = [None] * (rows * columns)
    value: list[Any] = [None] * (rows * columns)
    for t, v, cell in zip(
        np.repeat(np.arange(threads), values).tolist(),
        np.tile(np.arange(values), threads).tolist(),
        cell_numbers.reshape(-1).tolist(),
        strict=True,
    ):
        if thread[cell] is None:
            thread[cell], value[cell] = t, v
    holds = [None if t is None else f"T{t} V{v}" for t, v in zip(thread, value, strict=True)]
    return Grid(
        rows,
        columns,
        (Field("thread", tuple(thread)), Field("value", tuple(value)), Field("holds", tuple(holds))),
        title="thread of each element",
        color="thread",
        label="holds",
        valid=() if None not in thread else tuple(t is not None for t in thread),
        link=tuple(range(rows * columns)),
        row_axis="row",
        column_axis="column",
        hatched="no thread",
    )


def _coverage_facts(cell_numbers: NDArray[Any], count: int) -> list[Fact]:
    distinct = len(np.unique(cell_numbers))
    if distinct == count == cell_numbers.size:
        return [Fact("coverage", "every element once", "good")]
    missing, again = count - distinct, cell_numbers.size - distinct
    parts = [f"{missing} of {count} elements have no thread"] if missing else []
    parts += [f"{again} are duplicates"] if again else []
    return [Fact("coverage", ", ".join(parts), "bad" if missing else "plain")]


def _access_facts(
    layout: LayoutLike, cell_numbers: NDArray[Any], columns: int, vector: int, itemsize: int
) -> list[Fact]:
    """Return the cost of the first access of the first 32 threads, in global and in shared memory."""
    cells = cell_numbers[:_WARP, :vector]
    offsets = np.asarray(layout.extended(cells // columns, cells % columns))
    moved = coalescing(offsets, itemsize=itemsize)
    banks = bank_conflicts(offsets, itemsize=itemsize)
    return [
        Fact("first access, global memory", str(moved), "good" if moved.sectors == moved.ideal else "bad"),
        Fact("first access, shared memory", str(banks), "good" if banks.conflict_free else "bad"),
    ]


# Scenes for kernels: words that each bank serves, operands of matrix instructions, distributions over threads.

_MAX_POINTS = 1 << 16  # of a linear map that are drawn
_MAX_COLLISIONS = 4  # that are listed


@scene_function
def bank_scene(report: BankReport, **options: Unpack[SceneOptions]) -> Scene:
    """Return how many words each bank serves in each phase of an access: more than one is a conflict.

    `report` is the result of `bank_conflicts`; `options` are the common scene options.

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
        *[Fact("waiting", str(clash), "bad") for clash in report.collisions[:_MAX_COLLISIONS]],
    ]
    return Scene("bank conflicts", (grid,), tuple(facts))


@scene_function
def atom_scene(atom: MatrixAtom, **options: Unpack[SceneOptions]) -> Scene:
    """Return which thread holds which element of the operands A, B and C of a matrix instruction, `atom`.

    `options` are the common scene options.

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
    """Draw the owner of each element under a `linear` map: its register, lane and warp, or its offset.

    The map must have one or two output axes; `options` are the common scene options.

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
    if count > _MAX_POINTS:
        raise LayoutError(f"a map of {count} points is too large to draw; use at most {_MAX_POINTS}")
    rows, columns = extents if len(extents) == 2 else (1, *extents)
    coordinates: list[list[tuple[int, ...]]] = [[] for _ in range(rows * columns)]
    for point in itertools.product(*[range(extent) for extent in linear.inputs.values()]):
        image = tuple(linear(**dict(zip(names, point, strict=True))).values())
        row, column = image if len(image) == 2 else (0, *image)
        coordinates[row * columns + column].append(point)
    shown = [name for name in names if linear.inputs[name] > 1] or list(names[:1])
    fields = [
        Field(name, tuple([cell[0][names.index(name)] if cell else None for cell in coordinates])) for name in shown
    ]
    positions = [names.index(name) for name in shown]
    texts = [
        "; ".join([", ".join([str(point[k]) for k in positions]) for point in cell]) or None for cell in coordinates
    ]
    color = next((name for name in ("lane", "offset", "warp") if name in shown), shown[0])
    axes = list(linear.outputs) if len(extents) == 2 else ["", *linear.outputs]
    grid = Grid(
        rows,
        columns,
        (*fields, Field("held by", tuple(texts))),
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

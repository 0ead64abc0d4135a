# SPDX-License-Identifier: Apache-2.0
"""The scenes of layouts: coordinates and memory side by side, linked cell by cell; copy plans; banks of a swizzle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._text import count_of
from ...analysis import BankModel, BankReport, bank_conflicts, contiguous_runs, padding_share
from ...copying import Plan
from ...errors import LayoutError
from ...layout import ComposedLayout, InverseLayout, Layout, LayoutLike, Swizzle, compose, is_injective, require_layout
from ..layout_grid import MAX_SIDE, LayoutGrid, sample_layout
from ..scene import Fact, Field, Grid, Outline, Scene
from ..scene_options import CATEGORIES, SceneOptions, derived_field, scene_function
from . import scene_of, side_by_side

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...notation import ParsedText


# Memory as a grid, beside the coordinates of a layout: in rows of offsets, by named axes, or tile by tile.

_MAX_FROM_ZERO = 1024  # offsets up to which memory is drawn from its start
_MAX_BOXES = 256  # tiles that memory is drawn in
_MAX_CELLS = MAX_SIDE * MAX_SIDE


def tiled_memory_grid(
    grid: Grid, elements: list[str], offsets: NDArray[Any], requested: tuple[str, ...] = ()
) -> Grid | None:
    """Return memory tile by tile, with the offset of every row; None unless each tile is one block of memory.

    Tiles that consist of faces are drawn face by face. `grid` has the coordinates with their tiles outlined, `elements`
    names them, `offsets` are their offsets, and `requested` the attributes that memory is to have as well.

    >>> from tilewright import row_major, blocked_product
    >>> from tilewright.views import scene_of
    >>> memory = scene_of(blocked_product(row_major(2, 2), row_major(1, 2))).panels[1]
    >>> memory.title, memory.boxes, memory.box_rows
    ('memory, tile by tile', (2, 2), (('0', '2'), ('4', '6')))
    """
    has_faces = any(box.kind == "face" for box in grid.outlines)
    boxes = {(box.rows, box.columns) for box in grid.outlines if box.kind == ("face" if has_faces else "tile")}
    if len(boxes) != 1:
        return None
    ((high, wide),) = boxes
    down, across = grid.rows // high, grid.columns // wide
    if (down * high, across * wide) != (grid.rows, grid.columns) or down * across > _MAX_BOXES:
        return None
    tiles = offsets.reshape(down, high, across, wide).transpose(0, 2, 1, 3).reshape(down * across, high * wide)
    if not (np.diff(tiles, axis=1) == 1).all():
        return None
    shared_fields = dict.fromkeys((grid.color, *(name for name in requested if name != "element")))
    fields = [field for field in grid.fields if field.name in shared_fields]
    return Grid(
        grid.rows,
        grid.columns,
        (Field("element", tuple(elements)), *fields),
        title="memory, face by face" if has_faces else "memory, tile by tile",
        color=grid.color,
        label="element",
        valid=grid.valid,
        link=grid.link,
        row_axis="offset",
        boxes=(high, wide),
        box_rows=tuple(tuple(str(start) for start in tile[::wide].tolist()) for tile in tiles),
    )


def memory_grid(
    grid: Grid,
    elements: list[str],
    positions: dict[str, Any],
    link: NDArray[Any],
    valid: NDArray[Any],
    scalars: tuple[int, ...] = (0,),
    padding: bool = True,
    requested: tuple[str, ...] = (),
) -> Grid | None:
    """Return memory as a grid, colored like the grid of coordinates; None if it is too large to draw.

    `elements` names each coordinate. Offsets are folded into rows; of named axes the first goes across, the others
    down. `scalars` are the offsets of the scalars of an element from its first one; `padding` tells whether padding
    has offsets, and `requested` names attributes of the coordinates that memory is to have as well.

    >>> logical = Grid(1, 2, (Field("offset", (0, 2), "ramp"),), color="offset")
    >>> offsets, valid = np.array([[0, 2]]), np.array([True, True])
    >>> memory = memory_grid(logical, ["0,0", "0,1"], {"offset": offsets}, offsets.reshape(-1), valid)
    >>> memory.columns, memory.field("element").values
    (3, ('0,0', None, '0,1'))
    """
    here = np.arange(len(elements)) if padding else np.flatnonzero(valid)
    if not len(here):
        return None
    which = np.repeat(here, len(scalars))  # the cell of each scalar
    tables = {
        name: (table.reshape(-1)[here][:, None] + np.array(scalars)).reshape(-1) for name, table in positions.items()
    }
    across = next(iter(positions.values()))
    row_stride = int(across[1, 0] - across[0, 0]) if len(across) > 1 else 0
    at, shape, names = _arrange_memory(tables, grid.columns, row_stride)
    count = shape[0] * shape[1]
    if count > _MAX_CELLS:
        return None
    owner: list[int | None] = [None] * count  # the coordinate that each cell of memory shows
    alive = valid.reshape(-1).tolist()
    for address, k in zip(at.tolist(), which.tolist(), strict=True):
        shown = owner[address]
        if shown is None or (alive[k] and not alive[shown]):
            owner[address] = k

    def pick(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([None if k is None else values[k] for k in owner])

    fields = [Field("element", pick(elements))]
    fields += [
        replace(field, values=pick(field.values)) for field in grid.fields if field.name in (grid.color, *requested)
    ]
    shared = np.bincount(at, minlength=count)
    if shared.max() > 1:
        fields.append(Field.of_table("elements here", shared, "ramp"))
    data = tuple([k is not None and alive[k] for k in owner])
    return Grid(
        *shape,
        tuple(fields),
        title="memory",
        color=grid.color,
        label="element",
        valid=() if all(data) else data,
        link=pick(link.tolist()),
        outlines=_origin_outline(at, which, shape[1], grid),
        hatched="unused" if all(alive[k] for k in set(which.tolist())) else "padding or unused",
        **names,
    )


def _arrange_memory(
    tables: dict[str, NDArray[Any]], columns: int, row_stride: int
) -> tuple[NDArray[Any], tuple[int, int], dict[str, Any]]:
    """Return the cell of each scalar, the rows and columns of cells, and the names of both and of their axes."""
    (first, across), *others = tables.items()
    if not others:
        low, high = int(across.min()), int(across.max())
        width = _memory_columns(columns, row_stride, high + 1 - min(low, 0))
        low = 0 if 0 < low <= high < _MAX_FROM_ZERO else low - low % width
        rows = -(-(high + 1 - low) // width)
        names = {
            "row_names": tuple(str(low + row * width) for row in range(rows)),
            "column_names": tuple(f"+{k}" for k in range(width)),
            "row_axis": "offset",
        }
        return across - low, (rows, width), names
    values, column = np.unique(across, return_inverse=True)
    rest = np.stack([table for _, table in others], axis=1)
    down, row = np.unique(rest, axis=0, return_inverse=True)
    names = {
        "row_names": tuple(",".join(map(str, entry)) for entry in down.tolist()),
        "column_names": tuple(map(str, values.tolist())),
        "row_axis": ",".join(name for name, _ in others),
        "column_axis": first,
    }
    return row.reshape(-1) * len(values) + column.reshape(-1), (len(down), len(values)), names


def _memory_columns(columns: int, row_stride: int, size: int) -> int:
    """Return the number of offsets per row: a row of the layout with its surroundings, if that is at most 64."""
    whole_rows = columns == row_stride >= 4 and size <= 32 * columns
    if columns < row_stride <= min(64, size) or whole_rows:
        return row_stride
    return min(columns if 8 <= columns <= 64 else 32 if size > 64 else 16, size)


def _origin_outline(at: NDArray[Any], which: NDArray[Any], columns: int, grid: Grid) -> tuple[Outline, ...]:
    """Return a mark on the first element, unless it is at the beginning of memory."""
    (first,) = np.flatnonzero(which == 0)[:1].tolist() or [None]
    if first is None or grid.color != "offset" or not grid.field("offset").values[0]:
        return ()
    return (Outline(*divmod(int(at[first]), columns), 1, 1, "mark", "origin"),)


def number_in_bytes(grid: Grid, itemsize: int) -> Grid:
    """Return a picture of memory with the addresses of bytes rather than the offsets of elements.

    >>> number_in_bytes(Grid(2, 1, row_names=("0", "8"), row_axis="offset"), 4).row_names
    ('0', '32')
    """
    if itemsize < 1:
        raise LayoutError(f"expected an itemsize of at least 1 byte, got {itemsize}")

    def scale(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(("+" if name.startswith("+") else "") + str(int(name) * itemsize) for name in names)

    return replace(
        grid,
        row_axis="address",
        row_names=scale(grid.row_names),
        column_names=scale(grid.column_names),
        box_rows=tuple(map(scale, grid.box_rows)),
    )


_MAX_COUNTED = 1 << 18  # elements that facts are counted on; larger layouts have fewer facts

_WARP = 32  # threads that read at the same time
_MAX_NESTS = 4  # of the loop nests, those that are written out
_OPERATIONS = ("copy ", "fill ", "pack ", "unpack ")


@scene_function
def layout_scene(
    layout: LayoutLike,
    *,
    memory: bool = True,
    itemsize: int | None = None,
    side: int = MAX_SIDE,
    title: str = "",
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the scene of a layout: offsets or named axes, nested coordinates, padding, and memory beside it.

    `memory` draws memory beside the coordinates: tile by tile, where each tile is one block of it. It is numbered in
    elements, or in bytes if their `itemsize` is given. `side` is the most rows and columns that are drawn, and `title`
    the picture's title. `options` are the common scene options: cells have the attributes `offset`, or the names of
    axes, and `tile`, `row`, `column`, `coordinate`, and `row_major`, the number of the element if one counts row by
    row; padding has none.

    >>> from tilewright import row_major
    >>> scene = layout_scene(row_major(4, 8))
    >>> [panel.title for panel in scene.panels], scene.panels[0].cell(2, 5).attributes["offset"]
    (['coordinates', 'memory'], 21)
    """
    require_layout(layout, "layout_scene")
    sheet = sample_layout(layout, side)
    panels = layout_panels(sheet, (), requested_attributes(options), memory)
    if itemsize is not None and not layout.axes:
        panels = tuple(number_in_bytes(panel, itemsize) if panel.row_axis == "offset" else panel for panel in panels)
    return Scene(title or layout_title(layout), panels, tuple(layout_facts(layout)), block_note(sheet))


def layout_panels(
    sheet: LayoutGrid,
    extra: tuple[Field, ...] = (),
    requested: tuple[str, ...] = (),
    memory: bool = True,
    scalars: tuple[int, ...] = (0,),
    padding: bool = True,
    folded: bool = False,
) -> tuple[Grid, ...]:
    """Return the coordinates as a grid, and memory as a second one if it is small enough to draw.

    `extra` are further attributes, of which the last is the label; `requested` names attributes that are to be there,
    also in memory. `scalars` are the offsets of the scalars of an element from its first one, `padding` tells whether
    padding has offsets, and `folded` draws memory in rows even where it could be drawn tile by tile.

    >>> from tilewright import row_major
    >>> (
    ...     len(layout_panels(sample_layout(row_major(2, 2)))),
    ...     len(layout_panels(sample_layout(row_major(2, 2)), memory=False)),
    ... )
    (2, 1)
    """
    _require_elements(sheet)
    tables = sheet.positions()
    valid, link = sheet.valid(), link_numbers(list(tables.values()))
    fields = [position_field(name, table, valid if sheet.has_holes else None) for name, table in tables.items()]
    first = fields[0].name
    if sheet.layout.depth > 1 or requested:
        fields.append(Field("coordinate", tuple(sheet.names())))
    if requested:
        fields.append(Field("row_major", sheet.row_major_numbers(), "ramp"))
    several = len(sheet.extents) > 1
    grid = Grid(
        sheet.rows,
        sheet.columns,
        (*fields, *extra),
        title="coordinates",
        color=first,
        label=extra[-1].name if extra else first,
        valid=() if valid.all() else tuple(valid.reshape(-1).tolist()),
        link=tuple(link.tolist()),
        outlines=sheet.outlines(),
        row_names=sheet.row_names(),
        row_axis="row" if several else "",
        column_axis="column" if several else "",
        block=sheet.block,
    )
    for name in requested:
        if all(field.name != name for field in grid.fields) and (derived := derived_field(grid, name)):
            grid = replace(grid, fields=(*grid.fields, derived))
    if not memory or not sheet.is_complete:
        return (grid,)
    if list(tables) == ["offset"] and scalars == (0,) and sheet.layout.depth > 1 and not (folded or sheet.has_holes):
        tiles = tiled_memory_grid(grid, sheet.elements(), tables["offset"], requested)
        if tiles is not None:
            return (grid, tiles)
    has_padding = padding and not sheet.has_holes
    below = memory_grid(grid, sheet.elements(), tables, link, valid, scalars, has_padding, requested)
    return (grid,) if below is None else (grid, below)


def requested_attributes(options: SceneOptions) -> tuple[str, ...]:
    """Return the names of attributes that options ask for.

    >>> requested_attributes({"label": ("row", "column"), "color": "tile"})
    ('row', 'column', 'tile')
    """
    label = options.get("label") or ()
    return (*((label,) if isinstance(label, str) else label), *filter(None, (options.get("color"),)))


def position_field(name: str, table: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Field:
    """Return an axis of positions as an attribute of cells: a few values are categories, many are a ramp.

    Cells that are not `valid` have no value.

    >>> position_field("bank", np.array([[0, 1]])).scale, position_field("offset", np.array([[0, 1]])).scale
    ('category', 'ramp')
    """
    values = tuple(table.reshape(-1).tolist())
    if valid is not None:
        values = tuple(
            value if alive else None for value, alive in zip(values, valid.reshape(-1).tolist(), strict=True)
        )
    few = name != "offset" and len(set(values)) <= len(CATEGORIES)
    return Field(name, values, "category" if few else "ramp")


def link_numbers(tables: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return a number per cell; cells whose values agree in all tables get the same number.

    >>> link_numbers([np.array([[0, 1, 0]]), np.array([[5, 5, 5]])]).tolist()
    [0, 1, 0]
    """
    if len(tables) == 1:
        return tables[0].reshape(-1)
    rows = np.stack([table.reshape(-1) for table in tables], axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def block_note(sheet: LayoutGrid) -> str:
    """Return the note for a grid whose cells stand for blocks.

    >>> from tilewright import row_major
    >>> block_note(sample_layout(row_major(512, 64)))
    'Each cell stands for 4 x 1 elements and shows the first.'
    """
    high, wide = sheet.block
    return "" if sheet.is_complete else f"Each cell stands for {high} x {wide} elements and shows the first."


def layout_title(layout: LayoutLike) -> str:
    """Return a layout as a title: without padding, and shortened.

    >>> from tilewright import pad, Layout
    >>> layout_title(pad(Layout(5), 8))
    '8:1'
    """
    words = str(layout).split(" where ")[0]
    return words if len(words) <= 90 else words[:89] + "…"


def layout_facts(layout: LayoutLike, scalars: tuple[int, ...] = (0,), padding: bool = True) -> list[Fact]:
    """Return the facts shown beside the picture of a layout.

    `scalars` are the offsets of the scalars of an element from its first one, () if they are not known, and `padding`
    tells whether padding has offsets. Memory is counted from the first scalar to the last.

    >>> from tilewright import row_major
    >>> [(fact.name, fact.value) for fact in layout_facts(row_major(4, 8))][1:4]
    [('elements', '32'), ('memory', '32 elements'), ('contiguous, row-major', '1 run of 32')]
    """
    facts = [Fact("layout", str(layout)), Fact("elements", str(layout.size))]
    small = layout.size <= _MAX_COUNTED
    replicas = getattr(layout, "replicas", ())
    if not (small or isinstance(layout, Layout)):
        pass  # a large composition would have to be evaluated at every coordinate
    elif layout.axes:
        extents: Any = layout.cosize  # a Place
        facts.append(Fact("memory", ", ".join(f"{name} 0 to {n - 1}" for name, n in extents.items())))
    elif scalars == (0,) and (padding or replicas or not small):
        facts.append(_memory_fact(layout.cosize))
        if small and not replicas:
            table = sample_layout(layout, 1 << 62)
            runs = contiguous_runs(table.positions()["offset"], table.valid())
            facts.append(Fact("contiguous, row-major", str(runs)))
    elif small and scalars:
        table = sample_layout(layout, 1 << 62)
        offsets = (table.positions()["offset"].reshape(-1, 1) + np.array(scalars)).reshape(-1)
        valid = np.repeat(table.valid().reshape(-1), len(scalars))
        used = offsets[valid]
        count = int(used.max() - used.min() + 1) if used.size else 0
        facts.append(_memory_fact(count, "element" if scalars == (0,) else "scalar"))
        facts.append(Fact("contiguous, row-major", str(contiguous_runs(offsets, valid))))
    share = padding_share(layout) if small else 0.0
    if share:
        facts.append(Fact("padding", f"{share:.1%} of the elements"))
    if replicas:
        facts.append(Fact("replicas", ", ".join(f"{count} copies" for count, _ in replicas)))
    elif small and layout.shape != () and not isinstance(layout, InverseLayout):  # an inverse is always injective
        facts.append(Fact("injective", "yes" if is_injective(layout) else "no: some offsets hold several elements"))
    return facts


def _memory_fact(count: int, noun: str = "element") -> Fact:
    return Fact("memory", count_of(count, noun))


@scene_function
def swizzle_scene(
    swizzle: Swizzle | LayoutLike,
    layout: LayoutLike | None = None,
    *,
    itemsize: int | None = None,
    banks: int = 32,
    width: int = 4,
    side: int = MAX_SIDE,
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the banks of a layout before and after a swizzle, and the conflicts of reading rows and columns.

    `swizzle` is composed with `layout`; a composition with a swizzle can be given as it is. There are `banks` banks,
    `width` bytes wide, and elements of `itemsize` bytes: without it, 4 are assumed, as the picture tells. `side` is the
    most rows and columns that are drawn. `options` are the common scene options.

    >>> from tilewright import row_major
    >>> scene = swizzle_scene(Swizzle(5, 0, 5), row_major(32, 32))
    >>> [(fact.name, fact.value) for fact in scene.facts if "column" in fact.name]
    [('read a column, before', '32-way conflict'), ('read a column, after', 'no conflict')]
    """
    if isinstance(swizzle, ComposedLayout):
        layout, swizzle = swizzle.inner, swizzle.outer
    if not isinstance(swizzle, Swizzle) or layout is None or layout.axes:
        raise LayoutError(
            f"swizzle_scene needs a swizzle and a layout of plain offsets, got {swizzle!r} and {layout!r};"
            " give compose(swizzle, layout), or both"
        )
    after = compose(swizzle, layout)
    size = 4 if itemsize is None else itemsize
    sheets = [sample_layout(layout, side), sample_layout(after, side)]
    _require_elements(sheets[0])
    grids = [
        _bank_grid(sheet, name, size, banks, width) for sheet, name in zip(sheets, ("before", "after"), strict=True)
    ]
    stated = count_of(itemsize or size, "byte") + (" each" if itemsize else " each, assumed: their size is not stated")
    facts = [Fact("swizzle", str(swizzle)), Fact("layout", str(layout)), Fact("banks", f"{banks} of {width} bytes")]
    facts.append(Fact("elements", stated))
    for axis, name in ((1, "row"), (0, "column")):
        for sheet, when in zip(sheets, ("before", "after"), strict=True):
            if sheet.is_complete:
                worst = _worst_access(sheet, axis, size, banks, width)
                facts.append(Fact(f"read a {name}, {when}", str(worst), "good" if worst.conflict_free else "bad"))
    return Scene(f"{swizzle} on {layout_title(layout)}", tuple(grids), tuple(facts))


def bank_options(layout: object, itemsize: int | None) -> dict[str, int]:
    """Return the option `itemsize` for the scene of a `layout` that is drawn by its banks, if the bytes are stated.

    >>> bank_options(compose(Swizzle(1, 0, 1), Layout((2, 2), (2, 1))), 2), bank_options(Layout(4), 2)
    ({'itemsize': 2}, {})
    """
    is_swizzled = isinstance(layout, ComposedLayout) and isinstance(layout.outer, Swizzle)
    return {"itemsize": itemsize} if is_swizzled and itemsize is not None else {}


def text_scene(parsed: ParsedText, **options: Any) -> Scene:
    """Return the scene of the subject of a `parsed` text, with its `options`; for a kernel, also its `chip`.

    >>> from tilewright import parse
    >>> text_scene(parse("f32[4,8]{1,0}")).title
    '(4,8):(8,1)'
    """
    if parsed.notation == "error":
        raise LayoutError("an error message has no picture; explain() explains it, as does tilewright explain")
    if parsed.notation == "tt-metal":
        return side_by_side(*parsed.value.accessors(options.pop("chip", None)), title=parsed.value.name, **options)
    return scene_of(parsed.subject, **{**bank_options(parsed.subject, parsed.itemsize), **options})


def _require_elements(sheet: LayoutGrid) -> None:
    if not sheet.rows * sheet.columns:
        raise LayoutError(f"cannot draw {sheet.layout}: it is empty; give every mode an extent of at least 1")


def _bank_grid(sheet: LayoutGrid, title: str, itemsize: int, banks: int, width: int) -> Grid:
    offsets = sheet.positions()["offset"]
    bank = offsets * itemsize // width % banks
    return Grid(
        sheet.rows,
        sheet.columns,
        (Field.of_table("bank", bank), Field.of_table("offset", offsets, "ramp")),
        title=title,
        color="bank",
        label="bank",
        link=tuple(zip(*[part.reshape(-1).tolist() for part in np.indices(bank.shape)], strict=True)),
        row_axis="row",
        column_axis="column",
        block=sheet.block,
    )


def _worst_access(sheet: LayoutGrid, axis: int, itemsize: int, banks: int, width: int) -> BankReport:
    """Return the access with the most conflicts among all rows, or all columns, by at most 32 threads."""
    offsets: Any = sheet.positions()["offset"]
    lines = offsets.T if axis == 0 else offsets
    reports = [
        bank_conflicts(line[start : start + _WARP], itemsize=itemsize, machine=BankModel(banks, width))
        for line in lines
        for start in range(0, len(line), _WARP)
    ]
    return max(reports, key=lambda report: report.wavefronts)


@scene_function
def plan_scene(plan: Plan, *, side: int = MAX_SIDE, **options: Unpack[SceneOptions]) -> Scene:
    """Return both memories of a `plan`, painted by where elements lie in the source, so that the copy can be followed.

    Memories with more than `side` rows or columns are shown as coordinates, in blocks, colored by offset. `options` are
    the common scene options.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "int8"), Placement(col_major(2, 3), "int8"))
    >>> target = plan_scene(plan).panels[1]
    >>> target.title, target.field("element").values, target.field("source").values
    ('target: int8', ('0,0', '1,0', '0,1', '1,1', '0,2', '1,2'), (0, 3, 1, 4, 2, 5))
    """
    target = sample_layout(plan.target.layout, side)
    block = None if target.is_complete else target.block  # the same for both, to compare them cell by cell
    source = sample_layout(plan.source.layout, side, block)
    titles = [f"{role}: {placement.format}" for role, placement in (("source", plan.source), ("target", plan.target))]
    before, after = layout_panels(source, folded=True), layout_panels(target, folded=True)
    if len(before) == len(after) == 2:
        panels = _color_by_source(before[1], after[1], titles)
    else:
        cells = tuple(range(target.rows * target.columns))
        panels = tuple(
            replace(grids[0], title=title, link=cells if len(grids[0].link) == len(cells) else ())
            for grids, title in zip((before, after), titles, strict=True)
        )
    return Scene(
        plan.explain().split("\n", 1)[0], panels, tuple(_plan_facts(plan)), block_note(target) or block_note(source)
    )


def _color_by_source(before: Grid, after: Grid, titles: list[str]) -> tuple[Grid, ...]:
    """Return both memories colored by the offset in the source, and linked by element."""
    elements = before.field("element").values
    offset_of = {name: k for k, name in enumerate(elements) if name is not None}
    grids = []
    for grid, title in zip((before, after), titles, strict=True):
        names = grid.field("element").values
        source = tuple(offset_of.get(name) for name in names)
        fields = (grid.field("element"), Field("source", source, "ramp"))
        link = tuple(
            name if name is None or origin is not None else None for name, origin in zip(names, source, strict=True)
        )
        grids.append(replace(grid, fields=fields, color="source", title=title, link=link))
    return tuple(grids)


def _plan_facts(plan: Plan) -> list[Fact]:
    _, moved, *rest = plan.explain().split("\n")
    facts = [Fact("source", str(plan.source.layout)), Fact("target", str(plan.target.layout)), Fact("moved", moved)]
    for line in rest:
        if line.startswith("  "):  # a loop of the nest above it
            last = facts.pop()
            facts.append(Fact(last.name, f"{last.value}; {line.strip()}"))
        else:
            facts.append(Fact("loop nest" if line.startswith(_OPERATIONS) else "beside", line.replace(" %", "%")))
    nests = [fact for fact in facts if fact.name == "loop nest"]
    hidden = nests[_MAX_NESTS:]
    if hidden:
        facts = [fact for fact in facts if fact not in hidden] + [Fact("and", f"{len(hidden)} more, for the edges")]
    return facts


def refuse_swizzle(subject: Swizzle, **options: Any) -> Scene:
    """Raise an error: a swizzle alone has no shape to draw."""
    raise LayoutError(
        f"cannot draw {subject} alone: it has no shape; compose it with a layout, as in {subject} o (8,8):(8,1)"
    )


def composed_scene(subject: ComposedLayout, **options: Any) -> Scene:
    """Return the scene of a swizzled layout with its banks, or of any other composition as a layout."""
    swizzled = isinstance(subject.outer, Swizzle) and not options.keys() & {"memory", "title"}
    return swizzle_scene(subject, **options) if swizzled else layout_scene(subject, **options)

# SPDX-License-Identifier: Apache-2.0
"""The scenes of tensors: their values, where they are stored, and one tile of a tensor in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._text import format_extents
from ...conversion import Comparison, TensorComparison
from ...errors import LayoutError
from ...files import DecodedTile, Tensorbin
from ...formats import QuantizationReport, quantization_error
from ...layout import Layout, LayoutLike, Swizzle
from ...memory import PageLayout
from ...tensor import Tensor, TileTensor
from ..layout_grid import MAX_SIDE, LayoutGrid, sample_layout
from ..scene import Fact, Field, Grid, Outline, ScaleKind, Scene, outline_blocks
from ..scene_options import SceneOptions, scene_function
from .layouts import block_note, layout_facts, layout_panels, requested_attributes
from .meshes import mesh_scene
from .placements import bytes_fact, spec_scene

if TYPE_CHECKING:
    from typing_extensions import Unpack


_MAX_VALUES = 1 << 20  # elements whose values are decoded for a picture


@scene_function
def tensor_scene(
    tensor: TileTensor, *, memory: bool = True, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the scene of a tensor: values in its cells, tiles and faces outlined, and its memory beside it.

    Offsets count from the first scalar of storage, so that views of one storage can be compared. `memory`, `side` and
    `title` are as in `layout_scene`, and so are the attributes that `options` can name; `value` is one more.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(np.arange(48), tw.row_major(6, 8)).tile[4, 4](1, 1)
    >>> scene = tensor_scene(t)
    >>> scene.panels[0].cell(0, 0).attributes, scene.panels[0].cell(3, 0).valid
    ({'offset': 36, 'value': 36}, False)
    """
    sheet = sample_layout(_in_storage(tensor), side)
    values = _value_field(tensor, sheet)
    scalars = _scalar_offsets(tensor)
    panels = layout_panels(sheet, (values,), requested_attributes(options), memory, scalars or (0,), padding=False)
    vectors = f" of {tensor.element_size} scalars" if tensor.element_size > 1 else ""
    facts = [
        Fact("elements", f"{tensor.size} of {tensor.dtype.name}{vectors}"),
        Fact("first scalar", f"{tensor.offset} in storage"),
        *[fact for fact in layout_facts(tensor.layout, scalars, False) if fact.name not in ("elements", "injective")],
    ]
    shape = format_extents(tensor.shape)
    return Scene(
        title or f"{type(tensor).__name__} {shape}, {tensor.dtype.name}", panels, tuple(facts), block_note(sheet)
    )


def _value_field(tensor: TileTensor, sheet: LayoutGrid) -> Field:
    """Return the value of every cell's first element; None for padding."""
    at = sheet.coordinates()
    valid = sheet.valid().reshape(-1).tolist()
    if sheet.is_complete:
        table: Any = np.asarray(tensor.to_numpy(fill=0))
        cells = table.reshape(len(valid), -1) if tensor.element_size > 1 else table.reshape(-1)
        cell_values = [_to_python(value) for value in cells]
    else:
        index = zip(*[part.reshape(-1).tolist() for part in at], strict=True)
        cell_values = [_to_python(tensor[where]) if alive else None for where, alive in zip(index, valid, strict=True)]
    values = tuple(value if alive else None for value, alive in zip(cell_values, valid, strict=True))
    return Field("value", values, "ramp" if tensor.element_size == 1 else "category")


def _scalar_offsets(tensor: TileTensor) -> tuple[int, ...]:
    """Return the offsets of the scalars of an element from its first one; () if a swizzle varies them."""
    scalars = tensor.element_layout
    if tensor.element_size == 1:
        return (0,)
    if not isinstance(scalars, Layout) or isinstance(getattr(tensor.layout, "outer", None), Swizzle):
        return ()
    return tuple(sorted((scalars.offsets() - scalars.offset).reshape(-1).tolist()))


def _in_storage(tensor: TileTensor) -> LayoutLike:
    """Return the layout of a tensor with offsets from the start of its storage."""
    layout: Any = tensor.layout
    if not tensor.offset or isinstance(getattr(layout, "outer", None), Swizzle):
        return layout  # type: ignore[no-any-return]
    return layout + tensor.offset  # type: ignore[no-any-return]


def _to_python(value: Any) -> Any:
    """Return a NumPy scalar or vector as plain Python numbers."""
    if np.ndim(value):
        return tuple(_to_python(part) for part in value)
    if np.asarray(value).dtype.kind in "biu":
        return int(value)
    return float(value)


@scene_function
def values_scene(tensor: Tensor, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]) -> Scene:
    """Return the values of a tensor, leading dimensions downwards, and its pages if its chip is known.

    Values of a `tensor` larger than a million elements are omitted. `side` is the most rows and columns that are drawn,
    and `title` the picture's title. `options` are the common scene options.

    >>> from tilewright import Tensor
    >>> scene = values_scene(Tensor.of(np.arange(6.0).reshape(2, 3), dtype="bfloat16", page_layout="tile"))
    >>> scene.panels[0].field("value").values
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    """
    spec = tensor.spec
    count = spec.shape.logical_volume()
    fits = 0 < count <= _MAX_VALUES
    if not fits and spec.num_pages:
        return spec_scene(spec, side=side, title=title)
    placed = spec.chip is not None and fits
    placement = spec_scene(spec, side=side) if placed else None
    values = np.asarray(tensor.numpy(), dtype=np.float64).reshape(-1, spec.shape.logical[-1] if spec.shape.rank else 1)
    panels = [_value_grid(values, tensor, side)] if fits else []
    facts = [
        Fact("tensor", str(spec)),
        Fact("storage", tensor.storage_type.name.lower().replace("_", " ")),
        *_value_facts(values),
    ]
    if placement is None:
        facts.append(bytes_fact(spec))
    shape = format_extents(spec.shape.logical, "one")
    return Scene(
        title or f"{shape} {spec.dtype}",
        (*panels, *(placement.panels if placement else ())),
        (*facts, *(placement.facts if placement else ())),
        placement.note if placement else "",
    )


def _value_grid(values: NDArray[np.float64], tensor: Tensor, side: int) -> Grid:
    high, wide = (max(1, -(-n // side)) for n in values.shape)
    cells = values[::high, ::wide]
    rows, columns = cells.shape
    many = f"; each cell shows the first of {high} x {wide}" if (high, wide) != (1, 1) else ""
    return Grid(
        rows,
        columns,
        (Field.of_table("value", cells, "ramp"),),
        title=f"values{many}",
        color="value",
        label="value",
        outlines=_tile_outlines(tensor, values.shape, (high, wide)),
        row_axis="row",
        column_axis="column",
        block=(high, wide),
    )


def _tile_outlines(tensor: Tensor, shape: tuple[int, ...], step: tuple[int, int]) -> tuple[Outline, ...]:
    """Return boxes around the tiles of a matrix that is drawn element by element."""
    spec = tensor.spec
    if spec.page_layout is not PageLayout.TILE or spec.shape.rank != 2 or step != (1, 1):
        return ()
    return outline_blocks(shape[0], shape[1], *spec.tile.shape, "tile")


def _value_facts(values: NDArray[Any]) -> list[Fact]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return []
    facts = [Fact("values", f"{finite.min():.6g} to {finite.max():.6g}, {finite.mean():.4g} on average")]
    odd = values.size - finite.size
    return [*facts, Fact("not finite", f"{odd} of {values.size}", "bad")] if odd else facts


@scene_function
def tile_scene(
    decoded: DecodedTile, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the values of one `decoded` tile or window, its faces outlined, and the exponents of its blocks.

    `side` is the most rows and columns that are drawn, and `title` the picture's title. `options` are the common
    scene options.

    >>> reading = DecodedTile("x", "int8", (0, 0), (0, 0), (1, 1), np.ones((1, 1)), np.ones((1, 1), bool))
    >>> tile_scene(reading).panels[0].field("value").values
    (1.0,)
    """
    whole = decoded.values.shape
    window = (slice(side), slice(side))
    cells = decoded.values[window]
    rows, columns = cells.shape
    valid = tuple(decoded.valid[window].reshape(-1).tolist())
    outlines = () if decoded.face is None else outline_blocks(rows, columns, *decoded.face, "face")
    values = tuple(v if ok else None for v, ok in zip(cells.reshape(-1).tolist(), valid, strict=True))
    link = tuple(range(rows * columns))
    panels = [Grid(rows, columns, (Field("value", values, "ramp"),), "values", "value", "value", valid, link, outlines)]
    if decoded.exponents is not None:
        field = Field.of_table("exponent", decoded.exponents[window], "ramp")
        panels.append(Grid(rows, columns, (field,), "shared exponents", "exponent", "exponent", valid, link, outlines))
    data = decoded.values[decoded.valid]
    facts = [
        Fact("format", decoded.format),
        Fact(
            "elements",
            str(data.size) if decoded.valid.all() else f"{data.size} of {decoded.values.size}, the rest is padding",
        ),
    ]
    if data.size:
        facts.append(Fact("values", f"{np.nanmin(data):.6g} to {np.nanmax(data):.6g}"))
    at = ", ".join(map(str, decoded.start))
    note = "" if (rows, columns) == whole else f"The first {rows} x {columns} of {whole[0]} x {whole[1]} elements."
    what = "window" if decoded.face is None else "tile"
    return Scene(title or f"{decoded.name}, {what} {decoded.tile}, from ({at})", tuple(panels), tuple(facts), note)


# The scenes of errors: heat maps of a block format, of two tensors, of all tensors of two files.

_ERRORS = {"max_abs_error": "largest error", "max_relative_error": "largest relative error", "flattened": "flattened"}


def largest_of_cells(table: NDArray[Any], side: int) -> tuple[NDArray[Any], tuple[int, int]]:
    """Return a table as a matrix of at most `side` rows and columns, each the largest of the block it stands for.

    >>> cells, block = largest_of_cells(np.arange(16).reshape(4, 4), 2)
    >>> cells.tolist(), block
    ([[5, 7], [13, 15]], (2, 2))
    """
    matrix = table.reshape(-1, table.shape[-1]) if table.ndim > 1 else table.reshape(1, -1)
    high, wide = (-(-n // side) for n in matrix.shape)
    rows, columns = -(-matrix.shape[0] // high), -(-matrix.shape[1] // wide)
    padding = ((0, rows * high - matrix.shape[0]), (0, columns * wide - matrix.shape[1]))
    padded = np.pad(matrix, padding, mode="edge")
    return padded.reshape(rows, high, columns, wide).max(axis=(1, 3)), (high, wide)


def _matrix_grid(
    cells: NDArray[Any],
    name: str,
    title: str,
    block: tuple[int, int],
    worst: tuple[int, ...] | None = None,
    shape: tuple[int, ...] = (),
    scale: ScaleKind = "heat",
    link: tuple[int, ...] = (),
) -> Grid:
    """Return a matrix as a grid of one attribute; `worst` is the index of the element of `shape` to mark."""
    outlines: tuple[Outline, ...] = ()
    if worst is not None:
        *outer, column = worst or (0,)
        row = int(np.ravel_multi_index(outer, shape[:-1])) if outer else 0
        cell = (row // block[0], min(column // block[1], cells.shape[1] - 1))
        outlines = (Outline(*cell, 1, 1, "mark", "worst"),)
    rows, columns = cells.shape
    return Grid(
        rows,
        columns,
        (Field.of_table(name, cells, scale),),
        title=title,
        color=name,
        label=name,
        link=link,
        outlines=outlines,
        row_axis="row",
        column_axis="column",
        block=block,
    )


@scene_function
def block_scene(
    report: Any,
    format: Any = None,  # noqa: A002  (the word of `quantization_error`)
    *,
    error: str = "max_abs_error",
    side: int = MAX_SIDE,
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the exponents of the blocks of an array, and a heat map of their errors.

    Give a `report` of `quantization_error`, or an array and a `format`. `error` is one of `max_abs_error`,
    `max_relative_error` and `flattened`, the number of elements that a large neighbour made zero. `side` is the most
    rows and columns that are drawn. `options` are the common scene options.

    >>> values = np.ones((2, 32))
    >>> values[1, 20] = 1000.0
    >>> scene = block_scene(values, "bfloat8_b", error="flattened")
    >>> scene.panels[0].field("exponent").values, scene.panels[1].field("flattened").values
    ((0, 0, 0, 9), (0, 0, 0, 15))
    """
    if not isinstance(report, QuantizationReport):
        report = quantization_error(report, format)
    if not report.scales.size:
        raise LayoutError(f"an array of shape {report.shape} has no blocks; nothing to draw")
    if error not in _ERRORS:
        raise ValueError(f"unknown error {error!r}; use one of {', '.join(_ERRORS)}")
    across = report.format.block if report.axis == len(report.shape) - 1 else 1
    down = report.format.block if across == 1 else 1
    exponents, step = largest_of_cells(report.scale_exponents, side)
    errors, _ = largest_of_cells(getattr(report, error).astype(np.int64 if error == "flattened" else np.float64), side)
    block = (down * step[0], across * step[1])
    link = tuple(range(exponents.size))
    worst = report.worst.index if report.worst is not None and report.worst.error else None
    panels = (
        _matrix_grid(exponents, "exponent", "shared exponents", block, scale="ramp", link=link),
        _matrix_grid(errors, error, f"{_ERRORS[error]} of each block", block, worst, report.shape, link=link),
    )
    note = "" if step == (1, 1) else f"Each cell stands for {step[0]} x {step[1]} blocks and shows the largest value."
    shape = format_extents(report.shape)
    return Scene(f"{report.format} on {shape}", panels, tuple(_quantization_facts(report)), note)


def _quantization_facts(report: QuantizationReport) -> list[Fact]:
    blocks = report.scales.size
    facts = [
        Fact("format", f"{report.format}: {report.format.block} elements of {report.format.bits} bits share a scale"),
        Fact("blocks", str(blocks)),
        Fact("rms error", f"{report.rms_error:.4g}"),
    ]
    if report.worst is not None:
        worst = report.worst
        facts.append(
            Fact("worst element (outlined)", f"{worst.value:.6g} at {worst.index} is stored as {worst.stored:.6g}")
        )
    lost = int(report.flattened.sum())
    count = int(np.prod(report.shape))
    facts.append(Fact("flushed to zero", f"{lost} of {count} elements", "bad" if lost else "good"))
    return facts


@scene_function
def comparison_scene(
    comparison: TensorComparison, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return a heat map of the largest error of every block of a tensor, with the figures of the `comparison`.

    `side` is the most rows and columns that are drawn, and `title` the picture's title. `options` are the common
    scene options.

    >>> import tilewright as tw
    >>> scene = comparison_scene(tw.diff(np.zeros((64, 64)), np.eye(64)).tensors[0])
    >>> scene.panels[0].field("error").values
    (1.0, 0.0, 0.0, 1.0)
    """
    name = comparison.name or "two arrays"
    if comparison.error_map is None:
        return Scene(title or name, (), tuple(_comparison_facts(comparison)))
    cells, step = largest_of_cells(comparison.error_map, side)
    block = (comparison.map_block[0] * step[0], comparison.map_block[1] * step[1])
    size = f"{block[0]} x {block[1]}"
    worst = None if comparison.worst is None else comparison.worst.coordinate
    grid = _matrix_grid(cells, "error", f"largest error of each {size} block", block, worst, comparison.shape)
    return Scene(
        title or f"{name}: {comparison.format_a} and {comparison.format_b}",
        (grid,),
        tuple(_comparison_facts(comparison)),
    )


def _comparison_facts(comparison: TensorComparison) -> list[Fact]:
    facts = []
    for name, text in comparison.lines()[1:]:
        tone: Any = "plain"
        if name in ("unequal", "problem") and not comparison.same:
            tone = "bad"
        elif name == "equal":
            tone = "good"
        hidden = text.startswith("- ")
        facts.append(Fact(name or ("what PCC hides" if hidden else "what PCC says"), text.removeprefix("- "), tone))
    return facts


@scene_function
def comparisons_scene(
    comparison: Comparison, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the relative error of every tensor of a `comparison` as a heat map, one row each, the worst first.

    `side` is the most rows that are drawn, and `title` the picture's title. `options` are the common scene options.

    >>> import tilewright as tw
    >>> scene = comparisons_scene(tw.diff({"x": np.ones(3), "y": np.ones(2)}, {"x": np.ones(3), "y": np.zeros(2)}))
    >>> scene.panels[0].row_names
    ('y', 'x')
    """
    if len(comparison.tensors) == 1:
        return comparison_scene(comparison.tensors[0], side=side, title=title)
    ranked = sorted(comparison.tensors, key=lambda tensor: (-bool(tensor.problem), -tensor.relative_rms))[:side]
    if not ranked:
        raise LayoutError(f"{comparison.a} and {comparison.b} have no tensor in common; nothing to draw")
    values = [None if tensor.problem else tensor.relative_rms for tensor in ranked]
    grid = Grid(
        len(ranked),
        1,
        (Field("relative error", tuple(values), "heat"),),
        title="error of each tensor, as a share of its rms",
        color="relative error",
        label="relative error",
        row_names=tuple([tensor.name for tensor in ranked]),
        column_names=("rms error",),
    )
    same = sum(tensor.same for tensor in comparison.tensors)
    facts = [
        Fact(
            "the same",
            f"{same} of {len(comparison.tensors)} ({comparison.tolerance})",
            "good" if comparison.same else "bad",
        ),
        Fact("only in A", ", ".join(comparison.only_a) or "none", "bad" if comparison.only_a else "plain"),
        Fact("only in B", ", ".join(comparison.only_b) or "none", "bad" if comparison.only_b else "plain"),
    ]
    worst = comparison.worst
    facts += [Fact("worst", worst.name), *_comparison_facts(worst)] if worst is not None and worst.unequal else []
    omitted = len(comparison.tensors) - len(ranked)
    return Scene(
        title or f"{comparison.a} and {comparison.b}",
        (grid,),
        tuple(facts),
        f"{omitted} more are not shown." if omitted else "",
    )


@scene_function
def difference_scene(
    expected: ArrayLike,
    actual: ArrayLike,
    *,
    tolerance: float = 0.0,
    side: int = MAX_SIDE,
    title: str = "",
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return a heat map of the absolute difference of two arrays of the same shape, with the worst element marked.

    `expected` and `actual` are the arrays; differences up to `tolerance` are not counted. Leading dimensions are
    stacked. Elements that are NaN in both are equal; NaN in one counts as infinite. `side` is the most rows and columns
    that are drawn, and `title` the picture's title. `options` are the common scene options.

    >>> scene = difference_scene(np.zeros((2, 3)), np.array([[0, 0, 0], [0, 0.5, 0]]))
    >>> scene.panels[0].field("difference").values, [fact.value for fact in scene.facts][:2]
    ((0.0, 0.0, 0.0, 0.0, 0.5, 0.0), ['1 of 6 (16.7%)', '0.5 at (1, 1): 0 expected, 0.5 found'])
    """
    before, after = np.asarray(expected, dtype=np.float64), np.asarray(actual, dtype=np.float64)
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
    at = tuple(int(k) for k in np.unravel_index(worst, distance.shape))
    grid = _matrix_grid(
        cells, "difference", "absolute difference", step, at if distance.max() else None, distance.shape
    )
    note = "" if step == (1, 1) else f"Each cell stands for {step[0]} x {step[1]} elements and shows the largest."
    shape = format_extents(before.shape)
    facts = _difference_facts(before, after, distance, at, tolerance)
    return Scene(title or f"differences of {shape}", (grid,), tuple(facts), note)


def _difference_facts(
    before: NDArray[Any], after: NDArray[Any], distance: NDArray[Any], worst: tuple[int, ...], tolerance: float
) -> list[Fact]:
    apart = int(np.count_nonzero(distance > tolerance))
    values = f"{before[worst]:.6g} expected, {after[worst]:.6g} found"
    finite = distance[np.isfinite(distance)]
    return [
        Fact(
            "differ" + (f" by more than {tolerance:g}" if tolerance else ""),
            f"{apart} of {distance.size} ({apart / distance.size:.1%})",
            "bad" if apart else "good",
        ),
        Fact("largest", f"{distance[worst]:.6g} at {worst}: {values}"),
        Fact("rms", f"{float(np.sqrt(np.mean(finite * finite))) if finite.size else 0.0:.6g}"),
    ]


def tensorbin_scene(subject: Tensorbin, **options: Any) -> Scene:
    """Return the values of a tensor in a file, or the mesh that it is distributed over."""
    if len(subject.shards) == 1:
        return values_scene(subject.tensor(), **options)
    return mesh_scene(subject.mesh, **{"spec": subject.spec, **options})

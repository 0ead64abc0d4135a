# SPDX-License-Identifier: Apache-2.0
"""The scene of a block format: the shared exponents, and the error of every block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LayoutError
from ...formats import QuantizationReport, quantization_error
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Field, Grid, Outline, Scene

_ERRORS = {"max_abs_error": "largest error", "max_relative_error": "largest relative error", "flattened": "flattened"}


def block_scene(
    report: Any,
    format: Any = None,  # noqa: A002  (the word of `quantization_error`)
    *,
    error: str = "max_abs_error",
    side: int = MAX_SIDE,
) -> Scene:
    """Return the exponents of the blocks of an array, and a heat map of their errors.

    Give a report of `quantization_error`, or an array and a format. `error` is one of `max_abs_error`,
    `max_relative_error` and `flattened`, the number of elements that a large neighbour made zero.

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
    errors, _ = largest_of_cells(getattr(report, error).astype(np.float64), side)
    block = (down * step[0], across * step[1])
    common = {"row_axis": "row", "column_axis": "column", "block": block}
    rows, columns = exponents.shape
    link = tuple(range(rows * columns))
    heat = tuple(errors.reshape(-1).tolist())
    panels = (
        Grid(
            rows,
            columns,
            (Field("exponent", tuple(exponents.reshape(-1).tolist()), "ramp"),),
            title="shared exponents",
            color="exponent",
            label="exponent",
            link=link,
            **common,  # type: ignore[arg-type]
        ),
        Grid(
            rows,
            columns,
            (Field(error, tuple(map(int, heat)) if error == "flattened" else heat, "heat"),),
            title=f"{_ERRORS[error]} of each block",
            color=error,
            label=error,
            link=link,
            outlines=_worst(report, block, columns),
            **common,  # type: ignore[arg-type]
        ),
    )
    note = "" if step == (1, 1) else f"Each cell stands for {step[0]} x {step[1]} blocks and shows the largest value."
    shape = " x ".join(map(str, report.shape))
    return Scene(f"{report.format} on {shape}", panels, tuple(_facts(report)), note)


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


def _worst(report: QuantizationReport, block: tuple[int, int], columns: int) -> tuple[Outline, ...]:
    if report.worst is None or not report.worst.error:
        return ()
    *outer, column = report.worst.index
    row = int(np.ravel_multi_index(outer, report.shape[:-1])) if outer else 0
    return (Outline(row // block[0], min(column // block[1], columns - 1), 1, 1, "mark", "worst"),)


def _facts(report: QuantizationReport) -> list[Fact]:
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

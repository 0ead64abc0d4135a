# SPDX-License-Identifier: Apache-2.0
"""A plug-in for tilewright: one chip, one number format, one reader of files, one notation and one recipe."""

import re
import struct
from pathlib import Path

from tilewright import FileFormatError, Layout, LayoutError, format_of
from tilewright.files import FileKind, SourceFile, StoredTensor
from tilewright.formats import BlockFormat, PowerOfTwo, SignMagnitude
from tilewright.layout import LayoutLike
from tilewright.memory import Chip
from tilewright.notation import Notation

_CHIP = """
arch = "example"

[cores]
grid = [4, 4]

[l1]
base = 65536
end = 1048576

[dram]
banks = 4
base = 1024
end = 1073741824
alignment = 64
"""


def make_chip() -> Chip:
    """Return a chip of 4 x 4 cores and four banks of DRAM; a function, so that it is made only when it is needed."""
    return Chip.from_toml(_CHIP, "example_4x4")


# Sixteen numbers of six bits, a sign and a magnitude, share an exponent.
FORMAT = BlockFormat("example_fp6", 16, SignMagnitude(6), PowerOfTwo(8, 127), alignment=16, aligned=True)

_HEADER = struct.Struct("<4sII")  # "GRID", rows, columns; then float32 numbers, row by row


def _read_grid(file: SourceFile) -> tuple[list[StoredTensor], dict[str, str]]:
    _, rows, columns = _HEADER.unpack(file.read(0, _HEADER.size))
    nbytes = rows * columns * 4
    if _HEADER.size + nbytes != file.size:
        raise FileFormatError(f"{rows} x {columns} numbers take {nbytes} bytes, but {file.size - _HEADER.size} follow")
    element = format_of("float32")
    return [StoredTensor.dense(file.path.stem, "F32", (rows, columns), element, file, _HEADER.size, nbytes)], {}


GRID_FILE = FileKind("grid", (".grid",), _read_grid, lambda start, size: start.startswith(b"GRID") and size >= 12)


def _read_matrix(text: str) -> Layout:
    matrix = re.fullmatch(r"matrix (\d+) by (\d+)", text.strip())
    if matrix is None:
        raise LayoutError(f"expected a matrix such as 'matrix 4 by 8', got {text[:40]!r}")
    rows, columns = int(matrix[1]), int(matrix[2])
    return Layout((rows, columns), (columns, 1))


def _write_matrix(layout: LayoutLike) -> str:
    if layout.rank != 2 or layout != _read_matrix(f"matrix {layout.shape[0]} by {layout.shape[1]}"):
        raise LayoutError(f"a matrix has two modes in row-major order, got {layout}")
    return f"matrix {layout.shape[0]} by {layout.shape[1]}"


# A notation for matrices in rows: `tilewright translate "matrix 4 by 8" --to cute`.
MATRIX = Notation(r"\s*matrix\b", _read_matrix, _write_matrix)

# The folder of a recipe: here one file, which adds a family of models to the recipe of tt_transformers.
RECIPE = Path(__file__).parent / "recipe"

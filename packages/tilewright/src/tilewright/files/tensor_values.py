# SPDX-License-Identifier: Apache-2.0
"""Decoded values of a stored tensor: one tile, one element with its location, and the scales of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._text import format_number
from ..display import Drawable
from ..errors import FormatError, LayoutError
from ..formats import PackedTiles, split_tiles
from ..memory import (
    ChipLike,
    Coordinate,
    Explanation,
    Mesh,
    TensorSpec,
    explain,
    format_devices,
    format_steps,
    from_bytes,
    scale_name,
    validate_coordinate,
)
from .source import ByteArray

if TYPE_CHECKING:
    from .stored_tensor import StoredTensor

Array = np.ndarray[Any, Any]


def read_block_scales(tensor: StoredTensor, box: object = None) -> Array:
    """Return the scale factor of the block of every element in `box`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright import to_bytes
    >>> from tilewright.files import Tensorbin, open_tensors, write_tensorbin
    >>> spec = TensorSpec((1, 32), "bfloat8_b")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     values = np.repeat(np.float32([3.0, 0.25]), 16).reshape(1, 32)
    ...     write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(spec, to_bytes(values, spec)))
    ...     read_block_scales(open_tensors(folder)["x"])[0, 15:17].tolist()
    [2.0, 0.25]
    """

    def decode(data: ByteArray, spec: TensorSpec) -> Array:
        # as float64: the scale of a block with an infinity exceeds float32
        return _decode_tiles(
            data, spec, lambda tiles: np.repeat(tiles.factors(), tiles.format.block, axis=1), np.dtype(np.float64)
        )

    return tensor.read(box, decode)


def read_step_sizes(tensor: StoredTensor, box: object = None) -> Array:
    """Return the distance to the next representable number for every element in `box`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright import to_bytes
    >>> from tilewright.files import Tensorbin, open_tensors, write_tensorbin
    >>> spec = TensorSpec((1, 32), "bfloat8_b")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(spec, to_bytes(np.ones((1, 32), np.float32), spec)))
    ...     float(read_step_sizes(open_tensors(folder)["x"])[0, 0])
    0.015625
    """
    return tensor.read(box, decode_step_sizes)


def decode_step_sizes(data: ByteArray, spec: TensorSpec) -> Array:
    """Return the distance to the next representable number for every element of `data`, the pages of `spec`.

    >>> from tilewright import to_bytes
    >>> spec = TensorSpec((1, 32), "bfloat8_b")
    >>> float(decode_step_sizes(to_bytes(np.ones((1, 32), np.float32), spec), spec)[0, 0])
    0.015625
    """
    return _decode_tiles(data, spec, PackedTiles.steps)


def _decode_tiles(
    data: ByteArray,
    spec: TensorSpec,
    numbers: Callable[[PackedTiles], Array],
    dtype: np.dtype[Any] = np.dtype(np.float32),  # noqa: B008
) -> Array:
    """Return `numbers` [tiles, elements] of packed tiles for every element of the pages of `spec`."""
    result = numbers(split_tiles(data, spec.dtype, spec.page_elements)).astype(dtype)
    untransposed = TensorSpec(spec.shape.logical, dtype.name, spec.page_layout, spec.tile, alignment=spec.alignment)
    return from_bytes(result.reshape(-1).view(np.uint8), untransposed)


_CELL = 9  # characters per number
_WINDOW = (32, 32)  # shown of a tensor without tiles
_COLUMNS = 16  # of such a window, side by side


@dataclass(frozen=True, slots=True, eq=False)
class DecodedTile(Drawable):
    """One decoded tile of a tensor: its values, and for block formats the exponent of the scale of each element.

    Padding elements are NaN in `values` and False in `valid`. The exponent of a scale that is NaN is NaN. Of a tensor
    without tiles, this is a window of 32 x 32, clipped to the tensor: `face` is None, and there is no padding.

    >>> import tempfile
    >>> from tilewright.files import inspect
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(6.0).reshape(2, 3))
    ...     inspect(folder).tile("x", 0, 0).values[:2, :3].tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """

    name: str
    format: str
    tile: tuple[int, int]
    start: tuple[int, ...]
    face: tuple[int, int] | None
    values: NDArray[np.float64]
    valid: NDArray[np.bool_]
    exponents: NDArray[Any] | None = None
    transposed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain data; padding is None.

        >>> reading = DecodedTile("x", "int8", (0, 0), (0, 0), (1, 1), np.ones((1, 1)), np.ones((1, 1), bool))
        >>> reading.to_json()["values"]
        [[1.0]]
        """
        rows = zip(self.values.tolist(), self.valid.tolist(), strict=True)
        values = [[v if ok else None for v, ok in zip(*row, strict=True)] for row in rows]
        result = {field.name: getattr(self, field.name) for field in fields(self)}
        exponents = None if self.exponents is None else self.exponents.tolist()
        return {**result, "values": values, "valid": None, "exponents": exponents}

    def text(self, width: int = 80) -> str:
        """Return the tile as text of at most `width` columns, face by face: row number, shared exponent, values.

        >>> reading = DecodedTile("x", "int8", (0, 0), (0, 0), (1, 2), np.ones((1, 2)), np.ones((1, 2), bool))
        >>> print(reading.text())
        x: tile (0, 0) of int8, from element (0, 0)
        <BLANKLINE>
        face 0: rows 0 to 0, columns 0 to 1
         0        1        1
        """
        at = ", ".join(map(str, self.start))
        what = f"window {self.tile}" if self.face is None else f"tile {self.tile}"
        stored = ", which is stored in rows" if self.face is None else ""
        lines = [f"{self.name}: {what} of {self.format}{stored}, from element ({at})"]
        if self.exponents is not None:
            lines.append("each line: row, shared exponent of the block, values")
        rows, columns = (int(n) for n in self.values.shape)
        high, wide = (rows, _COLUMNS) if self.face is None else self.face
        for top in range(0, rows, high):
            for left in range(0, columns, wide):
                right = min(left + wide, columns)
                face = "" if self.face is None else f"face {self._face_number(top // high, left // wide)}: "
                lines.append(f"\n{face}rows {top} to {top + high - 1}, columns {left} to {right - 1}")
                lines += self._face_lines(slice(top, top + high), slice(left, right), width)
        return "\n".join(lines)

    def _face_number(self, down: int, across: int) -> int:
        """Return the number of a face, in the order of storage."""
        (rows, columns), (high, wide) = self.values.shape, self.face or self.values.shape
        return int(across * (rows // high) + down if self.transposed else down * (columns // wide) + across)

    def _face_lines(self, down: slice, across: slice, width: int) -> list[str]:
        scales = None if self.exponents is None else self.exponents[down, across]
        along_rows = scales is not None and np.array_equal(scales, np.broadcast_to(scales[:, :1], scales.shape), True)
        lines = []
        if scales is not None and not along_rows:  # blocks run down the columns
            lines += _wrap_cells(f"{'exp':>8}", [f"{scale:.0f}" for scale in scales[0]], width)
        for row in range(down.start, down.stop):
            front = f"{row:>2}"
            if self.exponents is not None:
                front += f" {f'{self.exponents[row, across.start]:.0f}' if along_rows else '':>5}"
            valid = self.valid[row, across]
            numbers = zip(self.values[row, across], valid, strict=True)
            cells = [_format_number(value) if ok else "." for value, ok in numbers]
            lines += _wrap_cells(front, cells, width) if valid.any() else [f"{row:>2} padding"]
        return lines

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<DecodedTile {self.name!r}, tile {self.tile}, {self.format}>"


def _format_number(value: float) -> str:
    """Return a number in eight characters at most."""
    texts = [format_number(value, digits) for digits in (3, 2, 1)]
    return next((text for text in texts if len(text) < _CELL), texts[-1])


def _wrap_cells(front: str, cells: list[str], width: int) -> list[str]:
    """Return cells in as many lines as they need, the first one after a prefix."""
    per_line = 16 if width >= len(front) + 16 * _CELL else 8
    aligned = [f"{cell:>{_CELL}}" for cell in cells]
    pieces = ["".join(aligned[k : k + per_line]) for k in range(0, len(aligned), per_line)]
    return [front + pieces[0], *(" " * len(front) + piece for piece in pieces[1:])]


def read_tile(tensor: StoredTensor, row: int, column: int) -> DecodedTile:
    """Return the decoded tile at (row, column) of a tensor; a tensor without tiles is cut into 32 x 32 windows.

    >>> import tempfile
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(6.0).reshape(2, 3))
    ...     int(read_tile(open_tensors(folder)["x"], 0, 0).valid.sum())
    6
    """
    tile = tensor.spec.tile if tensor.spec is not None and tensor.spec.is_tiled else None
    high, wide = _WINDOW if tile is None else tile.shape
    shape = tensor.shape if len(tensor.shape) > 1 else (1, *(tensor.shape or (1,)))
    *outer, rows, columns = shape
    down, across = -(-rows // high), -(-columns // wide)
    if not (0 <= row < down * prod(outer) and 0 <= column < across):
        part = "window" if tile is None else "tile"
        raise LayoutError(
            f"{part} ({row}, {column}) does not exist: {tensor.name!r} has {down * prod(outer)} x {across} {part}s of"
            f" {high} x {wide}"
        )
    matrix, row_in_matrix = divmod(row, down)
    leading = [int(k) for k in np.unravel_index(matrix, outer)] if outer else []
    top, left = row_in_matrix * high, column * wide
    start = (*leading, top, left)
    box = (
        *[slice(k, k + 1) for k in leading],
        slice(top, min(top + high, rows)),
        slice(left, min(left + wide, columns)),
    )[len(shape) - len(tensor.shape) :]
    result = tensor.read(box).astype(np.float64)
    result = result.reshape(min(high, rows - top), min(wide, columns - left))
    if tile is None:  # rows have no padding
        high, wide = result.shape
    values, valid = np.full((high, wide), np.nan), np.zeros((high, wide), np.bool_)
    inside = (slice(0, result.shape[0]), slice(0, result.shape[1]))
    values[inside], valid[inside] = result, True
    exponents = None
    if tensor.format is not None and tensor.format.has_blocks:
        factors = np.ones((high, wide))
        factors[inside] = read_block_scales(tensor, box).reshape(result.shape)
        exponents = np.frexp(factors)[1].astype(np.int64) - 1
        if np.isnan(factors).any():
            exponents = np.where(np.isnan(factors), np.nan, exponents)
    return DecodedTile(
        tensor.name,
        tensor.format_name or tensor.kind,
        (row, column),
        start[len(shape) - len(tensor.shape) :],
        None if tile is None else tile.face_shape,
        values,
        valid,
        exponents,
        tile is not None and tile.transpose,
    )


@dataclass(frozen=True, slots=True)
class StoredElement(Drawable):
    """One element of a stored tensor: `offset` is the byte of its value in the file, `scale_offset` of its scale.

    `coordinate` counts in the stored tensor. On a mesh, the explanation is for the part of `devices`, which all hold
    the element.

    >>> import tempfile, numpy
    >>> from tilewright.files import inspect
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.arange(6.0).reshape(2, 3))
    ...     element = inspect(folder).element("x", (1, 2))
    >>> element.value, element.offset
    (5.0, 168)
    """

    name: str
    path: str
    value: float
    offset: int
    scale_offset: int | None
    explanation: Explanation
    coordinate: Coordinate
    devices: tuple[Coordinate, ...] = ()
    mesh: Mesh | None = None

    @property
    def _location(self) -> Explanation | SharedElement:
        if self.mesh is None:
            return self.explanation
        return SharedElement(self.coordinate, self.devices, self.mesh, self.explanation)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        stored: dict[str, Any] = {"name": self.name, "path": self.path, "value": self.value}
        stored |= {"offset": self.offset, "scale_offset": self.scale_offset}
        return {**stored, **self._location.to_json()}

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps from value and file offset to the location on the chip."""
        also = scale_name(self.explanation.spec)
        shared = "" if self.scale_offset is None else f", its {also} at byte {self.scale_offset}"
        stored = [("value", f"{self.value!r}"), ("file", f"{self.path}, at byte {self.offset}{shared}")]
        return [*stored, *self._location.steps()]

    def __str__(self) -> str:
        name = "tensor" if self.mesh is None else "part spec"
        return format_steps([*self.steps(), (name, str(self.explanation.spec))])


@dataclass(frozen=True, slots=True)
class SharedElement(Drawable):
    """One element of a tensor that a `mesh` shares: the `devices` that hold it, and where it is in their part.

    >>> mesh = Mesh.dividing((64, 96), (1, 2), 1)
    >>> element = SharedElement.locate(mesh, TensorSpec(mesh.part_shape, "int32", chip="n150"), (33, 50))
    >>> print(element)
    element   (33, 50) of [64, 96]
    device    (0, 1) of 1 x 2 devices, 2 along dimension 1; each holds 64 x 48
    part      element (33, 2) of [64, 48]
    matrix    row 33, column 2, of 64 x 48
    page      33 of 64, 192 bytes each: element 2
    value     byte 8 = 2 x 4
    bank      9 of the 12 banks of DRAM
    address   1049032 (0x1001c8) = buffer 1048640 + page at 384 + byte 8
    """

    coordinate: Coordinate
    devices: tuple[Coordinate, ...]
    mesh: Mesh
    explanation: Explanation

    @classmethod
    def locate(cls, mesh: Mesh, spec: TensorSpec, at: Coordinate, base: int | None = None) -> SharedElement:
        """Return where the element `at` a coordinate of the entire tensor is; parts have a `spec`, and start at `base`.

        >>> mesh = Mesh.dividing((64, 96), (2, 1), (0, None))
        >>> SharedElement.locate(mesh, TensorSpec(mesh.part_shape, chip="n150"), (33, 50)).devices
        ((1, 0),)
        """
        validate_coordinate(at, mesh.global_shape)
        devices, inside = mesh.locate(at)
        return cls(at, devices, mesh, explain(spec, inside, base))

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps from the coordinate to the devices, and on their chips."""
        (_, inside), *rest = self.explanation.steps()
        return [
            ("element", f"{self.coordinate} of {list(self.mesh.global_shape)}"),
            ("device" if len(self.devices) == 1 else "devices", f"{format_devices(self.devices)} of {self.mesh}"),
            ("part", f"element {inside}"),
            *rest,
        ]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        devices = [list(device) for device in self.devices]
        shared = {"mesh": self.mesh.to_json(), "devices": devices, "tensor_coordinate": list(self.coordinate)}
        return {**shared, **self.explanation.to_json()}

    def __str__(self) -> str:
        return format_steps(self.steps())


def read_element(
    tensor: StoredTensor, coordinate: Iterable[int], chip: ChipLike, base: int | None = None
) -> StoredElement:
    """Return the element of a stored tensor at `coordinate`; `chip` is used if the tensor names none.

    >>> import tempfile, numpy
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.arange(6, dtype=numpy.int16))
    ...     print(read_element(open_tensors(folder)["x"], (5,), "wormhole_n150").explanation.where.bank)
    0
    """
    placed = spec_on_chip(tensor, chip)
    at = tuple([int(c) for c in coordinate])
    validate_coordinate(at, tensor.shape)
    devices, inside = ((), at) if tensor.mesh is None else tensor.mesh.locate(at)
    too_large = placed.allocated_bytes > placed.known_chip.bank_bytes(placed.memory.buffer_type)
    result = explain(placed, inside, 0 if base is None and too_large else base)  # a file may hold more than a chip
    value = tensor.read(tuple([slice(c, c + 1) for c in at])).reshape(-1)[0].item()
    offset, scale_offset = tensor.file_offsets(at)
    return StoredElement(tensor.name, str(tensor.path), value, offset, scale_offset, result, at, devices, tensor.mesh)


def spec_on_chip(tensor: StoredTensor, chip: ChipLike) -> TensorSpec:
    """Return the spec of a stored tensor, on `chip` if it names none; row-major if the file has no spec.

    >>> import tempfile, numpy
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.arange(6, dtype=numpy.int16))
    ...     print(spec_on_chip(open_tensors(folder)["x"], "n150"))
    [6] int16 in rows, interleaved in DRAM, wormhole_n150
    """
    if tensor.format is None:
        raise FormatError(f"{tensor.name} cannot be read: {tensor.problem}")
    spec = tensor.spec or TensorSpec(tensor.shape, tensor.format)
    return spec if spec.chip is not None else spec.with_chip(chip)

# SPDX-License-Identifier: Apache-2.0
"""`StoredTensor`: one tensor in a file of any format: its spec, its bytes and its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..copying.host_memory import aligned_empty
from ..errors import FormatError
from ..formats import Format, ScalarFormat
from ..layout import Box
from ..memory import PageLayout, TensorSpec, from_bytes
from .mesh import Mesh
from .paged_boxes import PagedBoxes, Runs, as_box
from .source_file import ByteArray, SourceFile

Array = np.ndarray[Any, Any]


class ScatteredPages(Protocol):
    """Pages that are scattered over a file, such as a bank image.

    >>> ScatteredPages.__name__
    'ScatteredPages'
    """

    @property
    def nbytes(self) -> int:
        """Return the bytes of the file that the pages span."""

    def runs(self, runs: Runs) -> Runs:
        """Return the runs of the file that hold runs of entire pages."""


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A box of a tensor, and the file offset of its pages.

    >>> StoredPart(Box((0, 0), (4, 8)), 128).offset
    128
    """

    box: Box
    offset: int


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file: `name`, `shape`, number `format`, and `spec` where its bytes are tiled or placed.

    `kind` is the file's name of the element type. `format` is None for types without a number format, which can only be
    read as bytes. `byte_range` is (start, end) in the file at `path`, and `raw` those bytes, mapped. The bytes are the
    pages of the spec `host`, with dimensions in the order that `order` undoes; `swapped` elements are big-endian. On a
    `mesh` of devices, `shape` is that of the entire tensor, and `spec` and `host` are those of each device's part.

    >>> import tempfile
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), np.arange(6).reshape(2, 3))
    ...     x = open_tensors(Path(folder, "x.npy"))["x"]
    ...     x.shape, x.format, x.byte_range, x.read((slice(1, 2), slice(1, 3))).tolist()
    ((2, 3), format_of('int64'), (128, 176), [[4, 5]])
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    format: Format | None
    spec: TensorSpec | None
    byte_range: tuple[int, int]
    file: SourceFile
    host: TensorSpec | None
    parts: tuple[StoredPart, ...]
    order: tuple[int, ...]
    swapped: bool = False
    image: ScatteredPages | None = None
    mesh: Mesh | None = None

    @classmethod
    def dense(
        cls,
        name: str,
        kind: str,
        shape: Sequence[int],
        element: ScalarFormat | None,
        file: SourceFile,
        start: int,
        nbytes: int,
        fortran: bool = False,
        swapped: bool = False,
    ) -> StoredTensor:
        """Return a tensor of contiguous elements, row-major, or column-major if `fortran`.

        >>> from tilewright import format_of
        >>> StoredTensor.dense("x", "F32", (2, 3), format_of("float32"), SourceFile(__file__), 64, 24).byte_range
        (64, 88)
        """
        extents = tuple(shape)
        rank = len(extents)
        order = tuple(reversed(range(rank))) if fortran else tuple(range(rank))
        stored_shape = extents[::-1] if fortran else extents
        host = None if element is None else TensorSpec(stored_shape, element, "row_major")
        part = StoredPart(Box((0,) * rank, stored_shape), start)
        return cls(name, kind, extents, element, None, (start, start + nbytes), file, host, (part,), order, swapped)

    @classmethod
    def paged(
        cls, name: str, kind: str, spec: TensorSpec, file: SourceFile, start: int, image: ScatteredPages | None = None
    ) -> StoredTensor:
        """Return a tensor that is stored as the pages of a spec, contiguous or scattered by an `image`.

        >>> StoredTensor.paged("x", "U8", TensorSpec((4, 8), "bfloat8_b"), SourceFile(__file__), 64).nbytes
        1088
        """
        shape = spec.shape.logical
        part = StoredPart(Box((0,) * len(shape), shape), start)
        reach = (start, start + (spec.nbytes if image is None else image.nbytes))
        order = tuple(range(len(shape)))
        return cls(name, kind, shape, spec.dtype, spec, reach, file, spec, (part,), order, image=image)

    @property
    def path(self) -> Path:
        """Return the path of the file.

        >>> import tempfile
        >>> from tilewright.files import open_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "x.npy"), np.zeros(3))
        ...     open_tensors(Path(folder, "x.npy"))["x"].path.name
        'x.npy'
        """
        return self.file.path

    @property
    def nbytes(self) -> int:
        """Return the bytes that the tensor takes in its file.

        >>> StoredTensor.paged("x", "U8", TensorSpec((4, 8), "uint8"), SourceFile(__file__), 64).nbytes
        32
        """
        return self.byte_range[1] - self.byte_range[0]

    @property
    def size(self) -> int:
        """Return the number of elements.

        >>> StoredTensor.paged("x", "U8", TensorSpec((4, 8), "uint8"), SourceFile(__file__), 64).size
        32
        """
        return prod(self.shape)

    @property
    def raw(self) -> ByteArray:
        """Return the bytes of the tensor in its file, memory-mapped.

        >>> StoredTensor.paged("x", "U8", TensorSpec((3,), "uint8"), SourceFile(__file__), 0).raw.tobytes()
        b'# S'
        """
        start, end = self.byte_range
        return self.file.map()[start:end]

    @cached_property
    def pages(self) -> PagedBoxes:
        """Return the paged boxes of a part, with dimensions as stored.

        >>> StoredTensor.paged("x", "U8", TensorSpec((64, 8), "bfloat8_b"), SourceFile(__file__), 0).pages.units
        (32, 32)
        """
        if self.host is None:
            raise FormatError(
                f"{self.name} has elements of type {self.kind}, which has no number format in tilewright; use raw for"
                " its bytes"
            )
        return PagedBoxes(self.host)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the NumPy type of the values that are read: float32 for block formats.

        >>> StoredTensor.paged("x", "U8", TensorSpec((64, 8), "bfloat8_b"), SourceFile(__file__), 0).dtype
        dtype('float32')
        """
        element = self.pages.spec.dtype
        return np.dtype(np.float32) if element.has_blocks else element.dtype

    def read(self, box: Any = None) -> Array:
        """Return the values in `box` (slices; by default all) as a new array; block formats become float32.

        Only the pages of the box are read, so that a large tensor can be read piece by piece.

        >>> import tempfile
        >>> from tilewright.files import open_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "x.npy"), np.arange(12).reshape(4, 3))
        ...     open_tensors(Path(folder, "x.npy"))["x"].read(slice(2, 3)).tolist()
        [[6, 7, 8]]
        """
        stored_box = as_box(box, self.shape).permute(inverse_order(self.order))
        result: Array | None = None
        for part, common in self._parts_in(stored_box):
            values = self._read_part(part, common)
            if common == stored_box:
                result = values
                break
            result = np.empty(stored_box.shape, values.dtype) if result is None else result
            result[common.relative_to(stored_box.offset).slices] = values
        if result is None:
            result = np.empty(stored_box.shape, self.dtype)
        return result.transpose(self.order)

    def _parts_in(self, box: Box) -> Iterator[tuple[StoredPart, Box]]:
        """Yield the parts that intersect a box, with the intersections."""
        for part in self.parts:
            common = box.intersection(part.box)
            if not common.empty:
                yield part, common

    def _read_part(self, part: StoredPart, box: Box) -> Array:
        inside = box.relative_to(part.box.offset)
        around = self.pages.enclosing_box(inside)
        data: ByteArray = self.read_pages(around, part)
        return self.decode(data, self.pages.box_spec(around))[inside.relative_to(around.offset).slices]

    def runs(self, box: Box, part: StoredPart | None = None) -> Runs:
        """Return the runs (offset, size) of the file that hold a box of entire pages, in the order of the pages.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((64, 64), "bfloat8_b"), SourceFile(__file__), 100)
        >>> x.runs(Box((32, 0), (32, 32)))
        [(2276, 1088)]
        """
        part = self.parts[0] if part is None else part
        runs = self.pages.runs(box)
        runs = runs if self.image is None else self.image.runs(runs)
        return [(part.offset + at, size) for at, size in runs]

    def read_pages(self, box: Box, part: StoredPart | None = None, out: ByteArray | None = None) -> ByteArray:
        """Return the bytes of a box of entire pages, read into the start of `out` if given.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((2, 3), "uint8"), SourceFile(__file__), 0)
        >>> x.read_pages(Box((0, 0), (1, 3))).tobytes()
        b'# S'
        """
        runs = self.runs(box, part)
        size = sum([size for _, size in runs])
        data: ByteArray = aligned_empty(size, np.uint8) if out is None else out[:size]
        self.file.read_runs(runs, data)
        return data

    def decode(self, data: ByteArray, spec: TensorSpec) -> Array:
        """Return the values of pages of this tensor, with dimensions as stored.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((3,), "uint8"), SourceFile(__file__), 0)
        >>> x.decode(np.array([7, 8], np.uint8), TensorSpec((2,), "uint8")).tolist()
        [7, 8]
        """
        plain = spec.page_layout is PageLayout.ROW_MAJOR and prod(spec.padded_shape) == prod(spec.shape.logical)
        if plain and not spec.dtype.has_blocks:
            values = data.view(spec.dtype.dtype)
            return (values.byteswap() if self.swapped else values).reshape(spec.shape.logical)
        return from_bytes(data, spec)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape)) or "scalar"
        return f"<StoredTensor {self.name!r}: {shape} {self.format or self.kind}, {self.nbytes} bytes>"


def inverse_order(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of dimensions that undoes another.

    >>> inverse_order((2, 0, 1))
    (1, 2, 0)
    """
    return tuple(sorted(range(len(order)), key=order.__getitem__))

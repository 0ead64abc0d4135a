# SPDX-License-Identifier: Apache-2.0
"""`StoredTensor`: one tensor of a file, whatever the file; what it is, where its bytes are, and its values."""

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
from ..formats import BlockFormat, Format, ScalarFormat
from ..layout.boxes import Box
from ..memory import PageLayout, TensorSpec, from_bytes
from .boxes import PagedBoxes, Runs, box_of
from .mesh import Mesh
from .source_file import Bytes, SourceFile

Array = np.ndarray[Any, Any]


class ScatteredPages(Protocol):
    """Pages that do not follow each other in the file: where the runs of the host are there.

    >>> ScatteredPages.__name__
    'ScatteredPages'
    """

    @property
    def nbytes(self) -> int:
        """Return the bytes of all pages as they are scattered."""

    def runs(self, runs: Runs) -> Runs:
        """Return where runs of whole pages are."""


@dataclass(frozen=True, slots=True)
class Part:
    """A box of a tensor whose pages are in one place of a file.

    >>> Part(Box((0, 0), (4, 8)), 128).offset
    128
    """

    box: Box
    offset: int


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file: `name`, `shape`, number `format`, and `spec` where its bytes are tiled or placed.

    `kind` is the file's own word for the element type. `format` is None where we have none for it (then the bytes can
    be had, but no values). `byte_range` is (start, end) in the file at `path`, and `raw` those bytes, mapped. `host`
    says how the bytes lie: as the pages of this spec, with dimensions in the order that `order` undoes; big-endian
    elements are `swapped`. Where a `mesh` of devices shares the tensor, `shape` is that of the whole, and `spec` and
    `host` are those of each device's part.

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
    parts: tuple[Part, ...]
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
        """Return a tensor whose elements lie one after the other, rows first, or columns first if `fortran`.

        >>> from tilewright import format_of
        >>> StoredTensor.dense("x", "F32", (2, 3), format_of("float32"), SourceFile(__file__), 64, 24).byte_range
        (64, 88)
        """
        extents = tuple(shape)
        rank = len(extents)
        order = tuple(reversed(range(rank))) if fortran else tuple(range(rank))
        laid = extents[::-1] if fortran else extents
        host = None if element is None else TensorSpec(laid, element, "row_major")
        part = Part(Box((0,) * rank, laid), start)
        return cls(name, kind, extents, element, None, (start, start + nbytes), file, host, (part,), order, swapped)

    @classmethod
    def paged(
        cls, name: str, kind: str, spec: TensorSpec, file: SourceFile, start: int, image: ScatteredPages | None = None
    ) -> StoredTensor:
        """Return a tensor whose bytes are the pages of a spec, one after the other, or scattered as in an image.

        >>> StoredTensor.paged("x", "U8", TensorSpec((4, 8), "bfloat8_b"), SourceFile(__file__), 64).nbytes
        1088
        """
        shape = spec.shape.logical
        part = Part(Box((0,) * len(shape), shape), start)
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
    def raw(self) -> Bytes:
        """Return the bytes of the tensor in its file, mapped: they are read when they are touched.

        >>> StoredTensor.paged("x", "U8", TensorSpec((3,), "uint8"), SourceFile(__file__), 0).raw.tobytes()
        b'# S'
        """
        start, end = self.byte_range
        return self.file.map()[start:end]

    @cached_property
    def pages(self) -> PagedBoxes:
        """Return the boxes of whole pages of a part, in the order of dimensions in which it is stored.

        >>> StoredTensor.paged("x", "U8", TensorSpec((64, 8), "bfloat8_b"), SourceFile(__file__), 0).pages.units
        (32, 32)
        """
        if self.host is None:
            raise FormatError(
                f"{self.name} has elements of type {self.kind}, for which there is no number format here; its bytes"
                " are in raw"
            )
        return PagedBoxes(self.host)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the NumPy type of the values that are read: float32 for block formats.

        >>> StoredTensor.paged("x", "U8", TensorSpec((64, 8), "bfloat8_b"), SourceFile(__file__), 0).dtype
        dtype('float32')
        """
        element = self.pages.spec.dtype
        return np.dtype(np.float32) if isinstance(element, BlockFormat) else element.dtype

    def read(self, box: Any = None) -> Array:
        """Return the values in a box, given as slices, or all of them, as a new array; block formats become float32.

        Only the pages that hold the box are read, so that a large tensor can be taken piece by piece.

        >>> import tempfile
        >>> from tilewright.files import open_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "x.npy"), np.arange(12).reshape(4, 3))
        ...     open_tensors(Path(folder, "x.npy"))["x"].read(slice(2, 3)).tolist()
        [[6, 7, 8]]
        """
        asked = box_of(box, self.shape)
        laid = asked.turned(_inverse(self.order))
        found: Array | None = None
        for part, common in self._touched(laid):
            values = self._read_part(part, common)
            if common == laid:
                found = values
                break
            found = np.empty(laid.shape, values.dtype) if found is None else found
            found[common.relative_to(laid.offset).slices] = values
        if found is None:
            found = np.empty(laid.shape, self.dtype)
        return found.transpose(self.order)

    def _touched(self, box: Box) -> Iterator[tuple[Part, Box]]:
        """Yield the parts that hold something of a box, each with what it holds of it."""
        for part in self.parts:
            common = box.meeting(part.box)
            if not common.empty:
                yield part, common

    def _read_part(self, part: Part, box: Box) -> Array:
        inside = box.relative_to(part.box.offset)
        around = self.pages.around(inside)
        data: Bytes = self.read_pages(around, part)
        return self.decode(data, self.pages.spec_of(around))[inside.relative_to(around.offset).slices]

    def runs(self, box: Box, part: Part | None = None) -> Runs:
        """Return the ranges of the file, as (offset, size), that hold a box of whole pages, in the order of the pages.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((64, 64), "bfloat8_b"), SourceFile(__file__), 100)
        >>> x.runs(Box((32, 0), (32, 32)))
        [(2276, 1088)]
        """
        part = self.parts[0] if part is None else part
        runs = self.pages.runs(box)
        runs = runs if self.image is None else self.image.runs(runs)
        return [(part.offset + at, size) for at, size in runs]

    def read_pages(self, box: Box, part: Part | None = None, out: Bytes | None = None) -> Bytes:
        """Return the pages of a box of whole pages, read into the start of out where it is given.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((2, 3), "uint8"), SourceFile(__file__), 0)
        >>> x.read_pages(Box((0, 0), (1, 3))).tobytes()
        b'# S'
        """
        runs = self.runs(box, part)
        size = sum([size for _, size in runs])
        data: Bytes = aligned_empty(size, np.uint8) if out is None else out[:size]
        self.file.read_runs(runs, data)
        return data

    def decode(self, data: Bytes, spec: TensorSpec) -> Array:
        """Return the values of pages that were read from this tensor, in the order of dimensions that they have there.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((3,), "uint8"), SourceFile(__file__), 0)
        >>> x.decode(np.array([7, 8], np.uint8), TensorSpec((2,), "uint8")).tolist()
        [7, 8]
        """
        plain = spec.page_layout is PageLayout.ROW_MAJOR and prod(spec.padded_shape) == prod(spec.shape.logical)
        if plain and isinstance(spec.dtype, ScalarFormat):
            values = data.view(spec.dtype.dtype)
            return (values.byteswap() if self.swapped else values).reshape(spec.shape.logical)
        return from_bytes(data, spec)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape)) or "scalar"
        return f"<StoredTensor {self.name!r}: {shape} {self.format or self.kind}, {self.nbytes} bytes>"


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))

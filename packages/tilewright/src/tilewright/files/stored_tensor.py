# SPDX-License-Identifier: Apache-2.0
"""`StoredTensor`: one tensor in a file of any format, read in boxes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._files import as_path
from .._integers import round_up
from .._text import format_extents
from ..copying import Mode, Part, aligned_empty, modes_layout
from ..errors import FileFormatError, FormatError, LayoutError, MemoryConfigError
from ..formats import Format, ScalarFormat
from ..layout import Box, Layout
from ..memory import Coordinate, DeviceLike, Integers, Mesh, TensorSpec, alignment_of, from_bytes, padded_extents
from .source import ByteArray, FilePath, SourceFile, read_json
from .spec_json import spec_from_json, spec_to_json
from .tensor_values import StoredElement, read_element

# `PagedBoxes`: the runs of bytes that hold a box of a tensor.

Runs = list[tuple[int, int]]


@dataclass(frozen=True)
class PagedBoxes:
    """The boxes of a tensor that consist of entire pages: tiles, or elements of rows.

    >>> boxes = PagedBoxes(TensorSpec((100, 70), "bfloat8_b"))
    >>> box = boxes.enclosing_box(Box((40, 33), (10, 1)))
    >>> box, boxes.runs(box)
    (Box(offset=(32, 32), shape=(32, 32)), [(4352, 1088)])
    """

    spec: TensorSpec

    @cached_property
    def units(self) -> tuple[int, ...]:
        """The extents that boxes are multiples of, up to the edge of the tensor.

        >>> PagedBoxes(TensorSpec((5, 100, 70), "bfloat8_b")).units
        (1, 32, 32)
        """
        return _last_units(self.spec.unit, self.spec.shape.rank)

    @cached_property
    def _stored_units(self) -> tuple[int, ...]:
        """The same, with the rank of the padded shape."""
        return _last_units(self.spec.unit, len(self.spec.padded_shape))

    @cached_property
    def _grid(self) -> tuple[int, ...]:
        """The number of units along each dimension as stored, padding included."""
        return tuple([n // unit for n, unit in zip(self.spec.padded_shape, self._stored_units, strict=True)])

    @cached_property
    def _unit_bytes(self) -> int:
        return self.spec.page_bytes if self.spec.is_tiled else self.spec.dtype.storage_format.itemsize

    def enclosing_box(self, box: Box) -> Box:
        """Return the smallest box of entire pages that contains a box.

        >>> PagedBoxes(TensorSpec((100, 70), page_layout="tile")).enclosing_box(Box((0, 65), (33, 5)))
        Box(offset=(0, 64), shape=(64, 6))
        """
        start = tuple([a // unit * unit for a, unit in zip(box.offset, self.units, strict=True)])
        ends = zip(box.end, self.units, self.spec.shape.logical, strict=True)
        return Box.between(start, tuple([min(round_up(b, unit), n) for b, unit, n in ends]))

    def _unit_range(self, box: Box) -> tuple[list[int], list[int]]:
        """Return the start and extents of a box of entire pages, in units as stored."""
        lead = len(self._grid) - len(box.offset)
        start, count = [0] * lead, list(self._grid[:lead])  # a tensor without rows is stored with some
        ends = zip(box.offset, box.end, self.units, self.spec.shape.logical, self._grid[lead:], strict=True)
        for a, b, unit, n, units in ends:
            if a % unit or (b % unit and b != n):
                raise LayoutError(f"{box} is not a box of entire pages of {self.spec}; use enclosing_box(box)")
            start.append(a // unit)
            count.append((units if b == n else b // unit) - a // unit)  # the last box has the padding
        return start, count

    def runs(self, box: Box) -> Runs:
        """Return the runs of bytes (offset, size) of a box of entire pages, in the order of its pages.

        >>> PagedBoxes(TensorSpec((4, 8), "int16")).runs(Box((1, 2), (2, 2)))
        [(20, 4), (36, 4)]
        """
        start, count = self._unit_range(box)
        if not all(count):
            return []
        inner = len(count)  # dimensions from here on are whole, and lie in one run with the one before
        while inner and count[inner - 1] == self._grid[inner - 1]:
            inner -= 1
        strides = [prod(self._grid[d + 1 :]) * self._unit_bytes for d in range(len(self._grid))]
        last = max(inner - 1, 0)
        size = prod(count[last:]) * self._unit_bytes if count else self._unit_bytes
        offsets = np.full((), sum(a * stride for a, stride in zip(start, strides, strict=True)), np.int64)
        for n, stride in zip(count[:last], strides[:last], strict=True):
            offsets = offsets[..., None] + np.arange(n, dtype=np.int64) * stride
        return [(int(at), size) for at in offsets.reshape(-1)]

    def page_window(self, box: Box) -> Box:
        """Return a box of entire pages with the padding in them, in coordinates of the padded tensor.

        >>> PagedBoxes(TensorSpec((100, 70), "bfloat8_b")).page_window(Box((96, 0), (4, 70)))
        Box(offset=(96, 0), shape=(32, 96))
        """
        start, count = self._unit_range(box)
        extents = [
            tuple([n * unit for n, unit in zip(corner, self._stored_units, strict=True)]) for corner in (start, count)
        ]
        return Box(extents[0], extents[1])

    def box_spec(self, box: Box) -> TensorSpec:
        """Return the spec of the bytes of a box of entire pages.

        >>> PagedBoxes(TensorSpec((100, 70), "bfloat8_b")).box_spec(Box((96, 0), (4, 70)))
        TensorSpec((4, 70), 'bfloat8_b', 'tile')
        """
        whole = self.spec
        _, count = self._unit_range(box)
        padded = tuple([n * unit for n, unit in zip(count, self._stored_units, strict=True)])
        is_default = padded_extents(box.shape, whole.tile.shape if whole.is_tiled else (1,)) == padded or 0 in padded
        alignment = None if is_default else alignment_of(padded)
        return TensorSpec(box.shape, whole.dtype, whole.page_layout, whole.tile, alignment=alignment)


def _last_units(unit: tuple[int, int], rank: int) -> tuple[int, ...]:
    """Return the units of `rank` dimensions; the last two have a unit of (rows, columns)."""
    return ((1,) * rank + unit)[-rank:] if rank else ()


# `PartReading`: the runs of elements that hold a strided part of a source, and the part's layout over them.

_MIN_RUN_BYTES = 512  # shorter runs are read with what lies between them,
_MAX_GAPS = 4  # if that is not more than this many times as much


@dataclass(frozen=True, slots=True)
class PartReading:
    """How a part is read: runs of `count` elements of its source, and its layout over their joint content.

    >>> from tilewright.copying.assembly import Assembly
    >>> PartReading.of(Assembly.of("w", (2, 3)).transpose().parts[0], 4).layout
    Layout((3, 2), (1, 3))
    """

    starts: NDArray[np.int64]
    count: int
    layout: Layout

    @classmethod
    def of(cls, part: Part, itemsize: int) -> PartReading:
        """Return the reading of a part of a source with elements of `itemsize` bytes.

        >>> from tilewright.copying.assembly import Assembly
        >>> columns = Assembly.of("w", (4, 4096)).slice(0, 1024, axis=1).parts[0]
        >>> PartReading.of(columns, 2).starts, PartReading.of(columns, 2).count
        (array([    0,  4096,  8192, 12288]), 1024)
        """
        starts, count, layout = _plan_reading(part.modes, itemsize)
        return cls(starts + part.offset, count, layout)

    @property
    def elements(self) -> int:
        """The number of elements that are read.

        >>> from tilewright.copying.assembly import Assembly
        >>> PartReading.of(Assembly.of("w", (2, 3)).parts[0], 4).elements
        6
        """
        return len(self.starts) * self.count


@lru_cache(maxsize=128)  # layers have parts of the same shapes
def _plan_reading(modes: tuple[Mode, ...], itemsize: int) -> tuple[NDArray[np.int64], int, Layout]:
    """Return the starts of the runs of a part, the elements of a run, and the layout over them."""
    leaves = sorted([pair for mode in modes for pair in mode if pair[0] > 1 and pair[1]], key=lambda p: p[1])
    dense, inner = 1, 0
    for extent, stride in leaves:
        if stride > dense and (stride > _MAX_GAPS * dense or dense * itemsize >= _MIN_RUN_BYTES):
            break
        dense = (extent - 1) * stride + dense
        inner += 1
    outer, reached = leaves[inner:], dense
    for extent, stride in outer:
        if stride < reached:  # runs would overlap: take all from the first element to the last
            outer, dense = [], sum([(n - 1) * stride for n, stride in leaves]) + 1
            break
        reached += (extent - 1) * stride
    compact = {}
    size = dense
    for extent, stride in outer:
        compact[(extent, stride)] = size
        size *= extent
    starts = np.zeros((), np.int64)
    for extent, stride in reversed(outer):
        starts = starts[..., None] + np.arange(extent, dtype=np.int64) * stride
    compact_modes = tuple([tuple([(n, compact.get((n, stride), stride)) for n, stride in mode]) for mode in modes])
    return starts.reshape(-1), dense, modes_layout(compact_modes)


Array = np.ndarray[Any, Any]
Decoder = Callable[[ByteArray, TensorSpec], Array]
_DEFAULT_CHIP = "wormhole_n150"  # of tensors that name none
_MAX_ELEMENTS = 2**59  # whose values, of 8 bytes and more, still have a size; an extent of 0 does not excuse the others


def as_box(ranges: object, shape: tuple[int, ...]) -> Box:
    """Return slices of a shape as a box; None is the entire shape, and missing dimensions are entire.

    >>> as_box((slice(2, 5),), (8, 10)), as_box(slice(3, None), (8, 10)).shape
    (Box(offset=(2, 0), shape=(3, 10)), (5, 10))
    """
    if isinstance(ranges, Box):
        return ranges
    slices = () if ranges is None else ranges if isinstance(ranges, tuple) else (ranges,)
    if len(slices) > len(shape):
        raise LayoutError(f"expected at most {len(shape)} slices for shape {list(shape)}, got {len(slices)}")
    start, stop = [0] * len(shape), list(shape)
    for d, part in enumerate(slices):
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise LayoutError(f"expected slices without a step, one per dimension, got {part!r}")
        start[d], stop[d], _ = part.indices(shape[d])
    return Box.between(tuple(start), tuple(stop))


Content: TypeAlias = "tuple[list[StoredTensor], dict[str, str]]"
"""The tensors of a file, and its metadata, or what else it has by name."""


class StoredPart(NamedTuple):
    """A box of a tensor, and the file offset of its pages.

    >>> StoredPart(Box((0, 0), (4, 8)), 128).offset
    128
    """

    box: Box
    offset: int


@dataclass(frozen=True, slots=True)
class DevicePart:
    """A box of a tensor on a mesh: the devices that hold it, and its bytes in the file, which they share.

    >>> DevicePart(((0, 0), (1, 0)), Box((0, 0), (32, 64)), (640, 4736)).byte_range
    (640, 4736)
    """

    devices: tuple[Coordinate, ...]
    box: Box
    byte_range: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Return plain data.

        >>> DevicePart(((0, 0),), Box((0, 0), (32, 64)), (640, 4736)).to_json()["start"]
        [0, 0]
        """
        return {
            "devices": [list(device) for device in self.devices],
            "start": list(self.box.offset),
            "shape": list(self.box.shape),
            "byte_range": list(self.byte_range),
        }


def validate_extents(name: str, shape: Sequence[int]) -> None:
    """Raise if the tensor `name` has a shape that no array can have, even if an extent of 0 makes it empty.

    >>> validate_extents("x", (0, 2**40))
    """
    if prod(shape) > _MAX_ELEMENTS or (0 in shape and prod([n for n in shape if n]) > _MAX_ELEMENTS):
        raise FileFormatError(
            f"{name!r} has shape {list(shape)}, which is too large: expected at most {_MAX_ELEMENTS} elements"
            " (extents of 0 ignored)"
        )


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file: `name`, `shape`, number `format`, and `spec` where its bytes are tiled or placed.

    `kind` is the file's name of the element type. `format` is None for types without a number format, which can only be
    read as bytes. `byte_range` is (start, end) in the file at `path`, and `raw` those bytes, mapped. The bytes are the
    pages of the spec `host`, with dimensions in the order that `order` undoes; `swapped` elements are big-endian. On a
    `mesh` of devices, `shape` describes the entire tensor, and `spec` and `host` describe each device's part.
    Where a tensor is a view, `strides` are the steps between its elements in the file, and `byte_range` is all from its
    first element to its last. `source_order` is how a conversion permuted the dimensions of its source, if it did.

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
    image: BankImage | None = None
    mesh: Mesh | None = None
    strides: tuple[int, ...] | None = None
    source_order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        validate_extents(self.name, self.shape)

    def __getattr__(self, name: str) -> Any:
        """Return `host` or `parts`, which `dense` leaves out until they are needed."""
        if name not in ("host", "parts"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        extents = tuple([self.shape[d] for d in inverse_order(self.order)])
        value: object
        if name == "parts":
            value = (StoredPart(Box((0,) * len(extents), extents), self.byte_range[0]),)
        else:
            value = None if self.format is None else _dense_spec(extents, self.format)
        self.__dict__[name] = value
        return value

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

        `name` and `kind` are the file's names of the tensor and its type, `element` is its number format, byte by byte
        `swapped` if it is big-endian. It has this `shape` and takes `nbytes` of `file` from `start` on.

        >>> from tilewright import format_of
        >>> StoredTensor.dense("x", "F32", (2, 3), format_of("float32"), SourceFile(__file__), 64, 24).byte_range
        (64, 88)
        """
        extents = tuple(shape)
        validate_extents(name, extents)
        # without the constructor, which takes most of the time to open a checkpoint of 100,000 tensors
        tensor = object.__new__(cls)
        order = range(len(extents))
        tensor.__dict__.update(
            name=name,
            kind=kind,
            shape=extents,
            format=element,
            spec=None,
            byte_range=(start, start + nbytes),
            file=file,
            order=tuple(order[::-1] if fortran else order),
            swapped=swapped,
        )
        return tensor

    @classmethod
    def strided(
        cls,
        name: str,
        kind: str,
        shape: Sequence[int],
        strides: Sequence[int],
        element: ScalarFormat | None,
        itemsize: int,
        file: SourceFile,
        start: int,
        swapped: bool = False,
    ) -> StoredTensor:
        """Return a tensor whose elements are `strides` elements of `itemsize` bytes apart, from `start` of `file` on.

        `name`, `kind`, `shape`, `element` and `swapped` are as in `dense`. Strides are not negative; elements may be
        used several times. A tensor that is contiguous in some order of its dimensions is stored as a dense one.

        >>> from tilewright import format_of
        >>> every_other = ((4,), (2,), format_of("uint8"), 1, SourceFile(__file__), 2)
        >>> StoredTensor.strided("x", "U8", *every_other).read().tobytes()
        b'SD-i'
        """
        extents = tuple(shape)
        canonical_strides = tuple([stride if n > 1 else 0 for n, stride in zip(extents, strides, strict=True)])
        if 0 in extents or canonical_strides == _dense_strides(extents):
            return cls.dense(name, kind, extents, element, file, start, prod(extents) * itemsize, swapped=swapped)
        permuted = sorted(range(len(extents)), key=lambda d: (extents[d] > 1, -canonical_strides[d], d))
        is_dense = tuple([canonical_strides[d] for d in permuted]) == _dense_strides([extents[d] for d in permuted])
        order = inverse_order(tuple(permuted)) if is_dense else tuple(range(len(extents)))
        box = Box((0,) * len(extents), tuple([extents[d] for d in inverse_order(order)]))
        host = None if element is None else TensorSpec(box.shape, element, "row_major")
        span = sum([(n - 1) * stride for n, stride in zip(extents, canonical_strides, strict=True)]) + 1
        location = ((start, start + span * itemsize), file, host, (StoredPart(box, start),), order, swapped)
        return cls(name, kind, extents, element, None, *location, strides=None if is_dense else canonical_strides)

    @classmethod
    def paged(
        cls, name: str, kind: str, spec: TensorSpec, file: SourceFile, start: int, image: BankImage | None = None
    ) -> StoredTensor:
        """Return a tensor that is stored as the pages of `spec`, contiguous or scattered by an `image`.

        `name` and `kind` are the file's names of the tensor and its type; the pages are in `file` from `start` on.

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
        """The path of the file.

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
        """The bytes that the tensor takes in its file.

        >>> StoredTensor.paged("x", "U8", TensorSpec((4, 8), "uint8"), SourceFile(__file__), 64).nbytes
        32
        """
        return sum([end - start for start, end in [section.byte_range for section in self.sections]])

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """The tensors of the file that the values are made from: the tensor itself, unless it is quantised.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((4, 8), "uint8"), SourceFile(__file__), 64)
        >>> x.sections == (x,)
        True
        """
        return (self,)

    @property
    def file_state(self) -> tuple[int, int]:
        """The times and sizes of the files, added up: they change when one of the files does.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((4, 8), "uint8"), SourceFile(__file__), 64)
        >>> x.file_state == (x.file.time, x.file.size)
        True
        """
        return sum([part.file.time for part in self.sections]), sum([part.file.size for part in self.sections])

    @property
    def format_name(self) -> str | None:
        """The name of the format of the stored numbers, None if tilewright has none for their type.

        >>> StoredTensor.paged("x", "U8", TensorSpec((4, 8), "uint8"), SourceFile(__file__), 64).format_name
        'uint8'
        """
        return None if self.format is None else self.format.name

    @property
    def problem(self) -> str | None:
        """The reason why the values cannot be read, None if they can.

        >>> StoredTensor.dense("x", "C64", (1,), None, SourceFile(__file__), 0, 8).problem
        'complex numbers (C64) have no number format in tilewright; store real and imaginary parts'
        """
        if self.format is not None:
            return None
        if self.kind.lower().lstrip("<>=|").startswith(("c64", "c128", "c8", "c16", "complex")):
            return f"complex numbers ({self.kind}) have no number format in tilewright; store real and imaginary parts"
        return f"elements of type {self.kind} have no number format in tilewright"

    @property
    def size(self) -> int:
        """The number of elements.

        >>> StoredTensor.paged("x", "U8", TensorSpec((4, 8), "uint8"), SourceFile(__file__), 64).size
        32
        """
        return prod(self.shape)

    @property
    def raw(self) -> ByteArray:
        """The bytes of the tensor in its file, memory-mapped.

        >>> StoredTensor.paged("x", "U8", TensorSpec((3,), "uint8"), SourceFile(__file__), 0).raw.tobytes()
        b'# S'
        """
        return self.file.map_range(*self.byte_range)

    @property
    def device_parts(self) -> tuple[DevicePart, ...]:
        """The parts that the devices of the mesh hold; empty without a mesh.

        >>> StoredTensor.paged("x", "U8", TensorSpec((64, 8), "bfloat8_b"), SourceFile(__file__), 0).device_parts
        ()
        """
        if self.mesh is None:
            return ()
        size = self.pages.spec.nbytes
        windows = self.mesh.windows().items()
        return tuple(
            [
                DevicePart(tuple(devices), box, (part.offset, part.offset + size))
                for (box, devices), part in zip(windows, self.parts, strict=True)
            ]
        )

    def on_device(self, device: DeviceLike) -> StoredTensor:
        """Return the part of one device of the mesh, given by its mesh coordinate or its number.

        >>> import tempfile
        >>> from tilewright.files import Tensorbin, Topology, open_tensors, write_tensorbin
        >>> halves, topology = {(0, 0): b"ab", (0, 1): b"cd"}, Topology((2,), (0,), ((0, 0), (0, 1)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     whole = Tensorbin(TensorSpec((2,), "uint8"), halves, (1, 2), topology)
        ...     write_tensorbin(Path(folder, "x.tensorbin"), whole)
        ...     x = open_tensors(folder)["x"]
        ...     x.shape, x.on_device((0, 1)).read().tolist()
        ((4,), [99, 100])
        """
        if self.mesh is None:
            raise LayoutError(f"{self.name} is not on a mesh of devices; leave out device {device}")
        window = self.mesh.window_of(device)
        part = next(part for part in self.device_parts if part.box == window)
        whole = Box((0,) * len(part.box.shape), part.box.shape)
        parts = (StoredPart(whole, part.byte_range[0]),)
        shape, byte_range = part.box.shape, part.byte_range
        return replace(self, shape=shape, byte_range=byte_range, parts=parts, mesh=None, source_order=None)

    def crop(self, box: Box) -> StoredTensor:
        """Return the part of the tensor in a box, to be read like a tensor; it has no spec of its own.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((2, 3), "uint8"), SourceFile(__file__), 0)
        >>> bytes(x.crop(Box((1, 1), (1, 2))).read()) == bytes(x.read()[1, 1:])
        True
        """
        start = box.permute(inverse_order(self.order)).offset
        parts = tuple([StoredPart(part.box.relative_to(start), part.offset) for part in self.parts])
        return replace(self, shape=box.shape, spec=None, parts=parts, mesh=None, source_order=None)

    def explain_stored(
        self, coordinate: Sequence[int], base: int | None = None, device: DeviceLike | None = None
    ) -> StoredElement:
        """Return where the element at `coordinate` is: in the file, and on a chip, from the address `base` on.

        For a tensor on a mesh, `device` names one device, and `coordinate` then counts in its part.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((2, 3), "uint8"), SourceFile(__file__), 0)
        >>> x.explain_stored((1, 2)).offset
        5
        """
        chosen = self if device is None else self.on_device(device)
        return read_element(chosen, coordinate, _DEFAULT_CHIP, base)

    @cached_property
    def pages(self) -> PagedBoxes:
        """The paged boxes of a part, with dimensions as stored.

        >>> StoredTensor.paged("x", "U8", TensorSpec((64, 8), "bfloat8_b"), SourceFile(__file__), 0).pages.units
        (32, 32)
        """
        if self.host is None:
            raise FormatError(f"{self.name} cannot be read: {self.problem}; use raw for its bytes")
        return PagedBoxes(self.host)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of the values that are read: float32 for block formats.

        >>> StoredTensor.paged("x", "U8", TensorSpec((64, 8), "bfloat8_b"), SourceFile(__file__), 0).dtype
        dtype('float32')
        """
        return self.pages.spec.dtype.value_dtype

    def read(self, box: object = None, decode: Decoder | None = None) -> Array:
        """Return the values in `box` (slices; by default all) as a new array; block formats become float32.

        Only the pages of the box are read, so that a large tensor can be read piece by piece. `decode` returns other
        values of some pages, from their bytes and their spec.

        >>> import tempfile
        >>> from tilewright.files import open_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "x.npy"), np.arange(12).reshape(4, 3))
        ...     open_tensors(Path(folder, "x.npy"))["x"].read(slice(2, 3)).tolist()
        [[6, 7, 8]]
        """
        stored_box = as_box(box, self.shape).permute(inverse_order(self.order))
        return self.read_stored(stored_box, decode).transpose(self.order)

    def read_stored(self, box: Box, decode: Decoder | None = None) -> Array:
        """Return the values in a box, both with dimensions as stored; `decode` is as in `read`.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((2, 3), "uint8"), SourceFile(__file__), 0)
        >>> x.read_stored(Box((0, 1), (1, 2))).tolist()
        [[32, 83]]
        """
        result: Array | None = None
        for part, common in self.parts_in(box):
            values = self._read_part(part, common, decode or self.decode)
            if common == box:
                return values
            result = np.empty(box.shape, values.dtype) if result is None else result
            result[common.relative_to(box.offset).slices] = values
        return np.empty(box.shape, self.dtype) if result is None else result

    def parts_in(self, box: Box) -> Iterator[tuple[StoredPart, Box]]:
        """Yield the parts that intersect a box with dimensions as stored, with the intersections."""
        for part in self.parts:
            common = box.intersection(part.box)
            if not common.empty:
                yield part, common

    def _read_part(self, part: StoredPart, box: Box, decode: Decoder) -> Array:
        inside = box.relative_to(part.box.offset)
        if self.strides is not None:
            return self._read_view(inside, part.offset, decode)
        around = self.pages.enclosing_box(inside)
        values = decode(self.read_pages(around, part), self.pages.box_spec(around))
        return values[inside.relative_to(around.offset).slices]

    def _read_view(self, box: Box, start: int, decode: Decoder) -> Array:
        """Return the values in a box of a view whose first element is at byte `start`."""
        assert self.strides is not None
        modes = tuple([((n, stride),) for n, stride in zip(box.shape, self.strides, strict=True)])
        offset = sum([at * stride for at, stride in zip(box.offset, self.strides, strict=True)])
        size = self.dtype.itemsize
        reading = PartReading.of(Part(box, self.name, offset, modes), size)
        data = aligned_empty(reading.elements * size, np.uint8)
        self.file.read_equal_runs(start + reading.starts * size, reading.count * size, data)
        values = decode(data, TensorSpec((reading.elements,), self.pages.spec.dtype, "row_major"))
        byte_strides = [stride * size for stride in reading.layout.stride]
        return np.lib.stride_tricks.as_strided(values, box.shape, byte_strides, writeable=False).copy()

    def runs(self, box: Box, part: StoredPart | None = None) -> Runs:
        """Return the runs (offset, size) of the file that hold `part`, a box of entire pages, in page order.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((64, 64), "bfloat8_b"), SourceFile(__file__), 100)
        >>> x.runs(Box((32, 0), (32, 32)))
        [(2276, 1088)]
        """
        if self.strides is not None:
            raise LayoutError(f"{self.name} is a view with strides {list(self.strides)}, not whole pages; use read")
        part = self.parts[0] if part is None else part
        runs = self.pages.runs(box)
        runs = runs if self.image is None else self.image.runs(runs)
        return [(part.offset + at, size) for at, size in runs]

    def read_pages(self, box: Box, part: StoredPart | None = None) -> ByteArray:
        """Return the bytes of `part`, a box of entire pages.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((2, 3), "uint8"), SourceFile(__file__), 0)
        >>> x.read_pages(Box((0, 0), (1, 3))).tobytes()
        b'# S'
        """
        runs = self.runs(box, part)
        data: ByteArray = aligned_empty(sum([size for _, size in runs]), np.uint8)
        self.file.read_runs(runs, data)
        return data

    def decode(self, data: ByteArray, spec: TensorSpec) -> Array:
        """Return the values in `data`, pages of this tensor that `spec` describes, with dimensions as stored.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((3,), "uint8"), SourceFile(__file__), 0)
        >>> x.decode(np.array([7, 8], np.uint8), TensorSpec((2,), "uint8")).tolist()
        [7, 8]
        """
        is_dense = not spec.is_tiled and prod(spec.padded_shape) == prod(spec.shape.logical)
        if is_dense and not spec.dtype.has_blocks:
            values = data.view(spec.dtype.dtype)
            return (values.byteswap() if self.swapped else values).reshape(spec.shape.logical)
        return from_bytes(data, spec)

    def file_offsets(self, at: Coordinate) -> tuple[int, int | None]:
        """Return the file offsets of the value of the element `at` a coordinate, and of its scale if it has one.

        >>> x = StoredTensor.paged("x", "U8", TensorSpec((64, 64), "bfloat8_b"), SourceFile(__file__), 100)
        >>> x.file_offsets((0, 17))
        (421, 116)
        """
        host = self.pages.spec
        laid = tuple([at[self.order.index(d)] for d in range(len(at))])
        part, _ = next(self.parts_in(Box(laid, (1,) * len(laid))))
        inside = [c - a for c, a in zip(laid, part.box.offset, strict=True)]
        if self.strides is not None:
            element = sum([c * stride for c, stride in zip(inside, self.strides, strict=True)])
            return part.offset + element * self.dtype.itemsize, None
        page, element = divmod(host.host(*inside), host.page_elements)
        start = page * host.page_bytes
        if self.image is not None:
            ((start, _),) = self.image.runs([(start, host.page_bytes)])
        start += part.offset
        if not host.dtype.has_blocks:
            return start + element * host.dtype.itemsize, None
        data = host.dtype.sections(host.page_elements).data_offset
        return start + data + element * host.dtype.bits // 8, start + element // host.dtype.block

    def __repr__(self) -> str:
        shape = format_extents(self.shape, "scalar")
        return f"<StoredTensor {self.name!r}: {shape} {self.format_name or self.kind}, {self.nbytes} bytes>"


@lru_cache(maxsize=4096)  # a checkpoint has many tensors of few shapes
def _dense_spec(shape: tuple[int, ...], element: Format) -> TensorSpec:
    """Return the spec of contiguous elements with dimensions as stored."""
    return TensorSpec(shape, element, "row_major")


def _dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of contiguous elements, 0 along dimensions of extent 1."""
    return tuple([prod(shape[d + 1 :]) if n > 1 else 0 for d, n in enumerate(shape)])


def inverse_order(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of dimensions that undoes another.

    >>> inverse_order((2, 0, 1))
    (1, 2, 0)
    """
    return tuple(sorted(range(len(order)), key=order.__getitem__))


_MAX_INDEX_BYTES = 10_000_000


INDEX_SUFFIX, IMAGE_SUFFIX = ".banks.json", ".banks.bin"


@dataclass(frozen=True)
class BankImage:
    """The offsets of a tensor's pages in its bank image.

    >>> image = BankImage(TensorSpec((64, 64), "bfloat8_b", chip="wormhole_n150"))
    >>> image.bank_bytes, image.nbytes, image.page_offsets(np.arange(4)).tolist()
    (1088, 13056, [0, 1088, 2176, 3264])
    """

    spec: TensorSpec

    @property
    def bank_bytes(self) -> int:
        """The bytes of one bank.

        >>> BankImage(TensorSpec((64, 640), "bfloat8_b", chip="wormhole_n150")).bank_bytes
        4352
        """
        return self.spec.bytes_per_bank

    @cached_property
    def nbytes(self) -> int:
        """The bytes of the image.

        >>> BankImage(TensorSpec((4, 4), "uint8", chip="wormhole_n150")).nbytes
        384
        """
        return len(self.spec.paging.cores) * self.bank_bytes

    def page_offsets(self, pages: Integers) -> Integers:
        """Return the offset of each page in the image.

        >>> BankImage(TensorSpec((24, 4), "uint8", chip="wormhole_n150")).page_offsets(np.array([0, 1, 12])).tolist()
        [0, 64, 32]
        """
        page_map = self.spec.page_map
        slots = np.asarray(page_map.slot_of_page(pages))
        layouts = (page_map.position_of_slot, page_map.offset_of_slot)
        position, address = [np.broadcast_to(np.asarray(layout(slots)), pages.shape) for layout in layouts]
        result: Integers = position.astype(np.int64) * self.bank_bytes + address
        return result

    def runs(self, runs: Runs) -> Runs:
        """Return the runs of the image that hold runs of entire pages, page by page.

        >>> image = BankImage(TensorSpec((24, 4), "uint8", chip="wormhole_n150"))
        >>> image.runs([(0, 8)])
        [(0, 4), (64, 4)]
        """
        size = self.spec.page_bytes
        result: Runs = []
        for start, length in runs:
            if start % size or length % size:
                raise MemoryConfigError(f"bytes {start} to {start + length} are not entire pages of {size} bytes")
            result += [(int(at), size) for at in self.page_offsets(np.arange(start // size, (start + length) // size))]
        return result

    def scatter_pages(self, start: int, pages: ByteArray) -> list[tuple[int, ByteArray]]:
        """Return host pages from byte `start` on as pieces (offset, bytes) of the image.

        >>> image = BankImage(TensorSpec((24, 4), "uint8", chip="wormhole_n150"))
        >>> [(at, part.nbytes) for at, part in image.scatter_pages(48, np.zeros(48, np.uint8))][:2]
        [(32, 32), (96, 32)]
        """
        size, stride = self.spec.page_bytes, self.spec.aligned_page_bytes
        first, count = start // size, len(pages) // size
        offsets = self.page_offsets(np.arange(first, first + count))
        order = np.argsort(offsets, kind="stable")
        rows = np.zeros((count, stride), np.uint8)
        rows[:, :size] = pages.reshape(count, size)[order]
        offsets = offsets[order]
        cuts = [0, *(np.flatnonzero(np.diff(offsets) != stride) + 1).tolist(), count]
        flat = rows.reshape(-1)
        return [(int(offsets[a]), flat[a * stride : b * stride]) for a, b in pairwise(cuts) if a < b]

    def index_json(self) -> bytes:
        """Return the index of the image as JSON: the spec, and the core and offset of each bank.

        >>> index = BankImage(TensorSpec((4, 4), "uint8", chip="wormhole_n150")).index_json()
        >>> json.loads(index)["banks"][1]
        {'bank': 1, 'core': [1, 0], 'offset': 32}
        """
        spec = self.spec
        banks = [
            {"bank": bank, "core": list(core), "offset": k * self.bank_bytes}
            for k, (bank, core) in enumerate(zip(spec.banks, spec.paging.cores, strict=True))
        ]
        result = {
            "spec": spec_to_json(spec),
            "buffer": spec.memory.buffer_type.name.lower(),
            "bank_bytes": self.bank_bytes,
            "page_bytes": spec.page_bytes,
            "page_step": spec.aligned_page_bytes,
            "banks": banks,
        }
        return (json.dumps(result, indent=1) + "\n").encode()


def read_bank_image(path: FilePath, name: str) -> StoredTensor:
    """Return the tensor of a bank image; `path` is the path of its index.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright import to_bytes
    >>> image = BankImage(TensorSpec((2, 4), "uint8", chip="wormhole_n150"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = bytearray(image.nbytes)
    ...     for at, part in image.scatter_pages(0, np.arange(8, dtype=np.uint8)):
    ...         data[at : at + len(part)] = part.tobytes()
    ...     _ = Path(folder, "x.banks.bin").write_bytes(data)
    ...     _ = Path(folder, "x.banks.json").write_bytes(image.index_json())
    ...     read_bank_image(Path(folder, "x.banks.json"), "x").read().tolist()
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    index = as_path(path)
    content = read_json(index, "the index of a bank image", _MAX_INDEX_BYTES)
    result = content if isinstance(content, dict) else {}
    image = BankImage(spec_from_json(result.get("spec")))
    data = SourceFile(index.with_name(index.name[: -len(INDEX_SUFFIX)] + IMAGE_SUFFIX))
    try:
        size = image.nbytes
    except MemoryConfigError as problem:
        raise FileFormatError(f"invalid index: {problem}") from None
    for key in sorted(result.keys() | (facts := json.loads(image.index_json())).keys()):
        if result.get(key, facts.get(key)) != facts.get(key):
            raise FileFormatError(f"invalid index: {key} does not match the spec; write the image again")
    if data.size != size:
        raise FileFormatError(f"{data.path} has {data.size} bytes, but the image of {image.spec} takes {size}")
    return StoredTensor.paged(name, image.spec.dtype.name, image.spec, data, 0, image)

# SPDX-License-Identifier: Apache-2.0
"""`ConversionPlan`: the tensors, bytes in and out, padding and time of a conversion, before it runs."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import accumulate, pairwise
from math import lcm, prod
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._files import as_path
from .._integers import ceil_div, round_up
from .._text import format_bytes, format_extents, list_some, name_axis, suggest
from ..copying import Part, count_elements
from ..display import Drawable
from ..errors import FileFormatError, FormatError, MemoryConfigError, OutOfMemory, TilewrightError
from ..files import (
    IMAGE_SUFFIX,
    INDEX_SUFFIX,
    MAX_HEADER_BYTES,
    METADATA_KEY,
    SUFFIXES,
    BankImage,
    ByteArray,
    ByteRange,
    ConversionManifest,
    FilePath,
    ManifestEntry,
    PagedBoxes,
    SafetensorsEntry,
    SourceEntry,
    StoredTensor,
    TensorFile,
    decode_small_floats,
    encode_file_start,
    encode_header,
    inverse_order,
    open_tensors,
    store_arrays,
    unique_file_names,
)
from ..layout import Box, cut_into_slabs, largest_slab
from ..memory import Coordinate, Mesh, TensorSpec
from ..version import __version__
from .rules import (
    OUTPUT_TYPES,
    ConversionTarget,
    OutputTensor,
    RuleLines,
    Rules,
    choose_rounding,
    choose_target,
    dimension_order,
    list_outputs,
)
from .source import AssembledSource, Rounding, aligned_bytes, stored_shape

# One tensor of a conversion: its source, its target, and its slot in an output file; items can be sent to workers.

DEFAULT_MEMORY = 1 << 30  # of a conversion
NO_HASH = "0" * 64
PAYLOAD = "payload"  # the draft of a single output file, which all tensors are written to


@dataclass(frozen=True)
class OutputSlot:
    """The byte range of a tensor in an output file: pages start at `start`, after `head` (empty in shared files).

    Parts of a mesh follow each other at distances of `stride`. `image` scatters the pages over banks; `beside` are
    small files, by name, that are written with this one.

    >>> OutputSlot("x.tensorbin", 64, 128, b"head").size
    128
    """

    file: str
    start: int
    size: int
    head: bytes = b""
    shared: bool = False
    stride: int = 0
    image: BankImage | None = None
    beside: Mapping[str, bytes] = field(default_factory=dict)


def _file_slot(file: str, target: ConversionTarget, to: str) -> OutputSlot:
    spec = target.spec
    if to == "banks":
        image = BankImage(spec)
        beside = {file + INDEX_SUFFIX: image.index_json()}
        return OutputSlot(file + IMAGE_SUFFIX, 0, image.nbytes, image=image, beside=beside)
    if to == "tensorbin":
        return tensorbin_slot(f"{file}.{to}", spec, target.mesh)
    head = _encode_npy_head(spec)
    return OutputSlot(f"{file}.{to}", len(head), len(head) + spec.nbytes, head)


def tensorbin_slot(file: str, spec: TensorSpec, mesh: Mesh | None = None) -> OutputSlot:
    """Return the slot of a tensor in its own tensorbin file, which the devices of a `mesh` share.

    >>> tensorbin_slot("x.tensorbin", TensorSpec((4, 8), "bfloat8_b")).stride
    1088
    """
    head, stride = encode_file_start(spec, mesh)
    parts = 1 if mesh is None else len(mesh.windows())
    return OutputSlot(file, len(head), len(head) + (parts - 1) * stride + spec.nbytes, head, stride=stride)


def _encode_npy_head(spec: TensorSpec) -> bytes:
    """Return the header of an `.npy` file; types without a NumPy name are stored as unsigned integers."""
    if spec.dtype.has_blocks:
        raise TypeError(f"{spec.dtype} is not a NumPy type")
    own = spec.dtype.dtype
    dtype = own if own.kind in "biuf" and own.isbuiltin == 1 else np.dtype(f"u{own.itemsize}")
    header: dict[str, Any] = {"descr": dtype.str, "fortran_order": False, "shape": spec.shape.logical}
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def assign_shared_slots(file: str, entries: list[ManifestEntry], metadata: Mapping[str, str]) -> list[OutputSlot]:
    """Return a slot per tensor in one safetensors file, end to end; its header's size does not depend on the hashes.

    `metadata` is free text for the header.

    >>> whole = SourceEntry(ByteRange("m.npz", 0, 24, NO_HASH), "<f4")
    >>> entry = ManifestEntry("x", {"x": whole}, TensorSpec((2, 3), "bfloat8_b"), ByteRange("o", 0, 1088, NO_HASH))
    >>> assign_shared_slots("o", [entry], {})[0].start % 64
    0
    """
    ends = [0, *accumulate(entry.spec.nbytes for entry in entries)]
    placed = [
        replace(entry, output=replace(entry.output, start=start, end=end))
        for entry, (start, end) in zip(entries, pairwise(ends), strict=True)
    ]
    begin = len(encode_safetensors_head(placed, metadata))
    return [OutputSlot(file, begin + start, begin + end, shared=True) for start, end in pairwise(ends)]


def encode_safetensors_head(entries: list[ManifestEntry], metadata: Mapping[str, str]) -> bytes:
    """Return the bytes before the data of a tiled safetensors file: its header, with the manifest and `metadata` in it.

    >>> encode_safetensors_head([], {})[8:9]
    b'{'
    """
    listed = [
        SafetensorsEntry(entry.name, "U8", (entry.spec.nbytes,), entry.output.start, entry.output.end)
        for entry in entries
    ]
    manifest = ConversionManifest("safetensors", __version__, {entry.name: entry for entry in entries})
    start = encode_header(listed, {**metadata, METADATA_KEY: manifest.to_bytes().decode()})
    if len(start) > MAX_HEADER_BYTES:
        raise FileFormatError(
            f"{len(entries)} tensors need a header of {len(start)} bytes, more than the {MAX_HEADER_BYTES} of a"
            " safetensors file; write tensorbin files instead"
        )
    return start


@dataclass(frozen=True)
class ConversionItem:
    """One tensor to convert.

    `recorded` is the manifest entry of a file whose pages are copied as they are, with its original sources.
    `made_as` are the expressions of a recipe that put it together, for explanations.

    >>> [field for field in ConversionItem.__dataclass_fields__]
    ['name', 'source', 'target', 'slot', 'to', 'recorded', 'made_as']
    """

    name: str
    source: AssembledSource
    target: ConversionTarget
    slot: OutputSlot
    to: str
    recorded: ManifestEntry | None = None
    made_as: tuple[str, ...] = ()

    @property
    def spec(self) -> TensorSpec:
        """The spec of the file: the spec of each device's part on a mesh."""
        return self.target.spec if self.recorded is None else self.recorded.spec

    @property
    def mesh(self) -> Mesh | None:
        """The distribution of the file over devices, None if there is one device."""
        return self.target.mesh if self.recorded is None else self.recorded.mesh

    @property
    def source_shape(self) -> tuple[int, ...]:
        """The shape of the source, or of the value if there are several sources."""
        tensors = list(self.source.tensors.values())
        return tensors[0].shape if len(tensors) == 1 else self.source.value.shape

    @cached_property
    def bytes_in(self) -> int:
        """The bytes of the sources that are used."""
        used = dict.fromkeys(self.source.tensors, 0)
        for part in self.source.value.parts:
            used[part.source] += prod([n for mode in part.modes for n, stride in mode if stride])
        total = 0
        for name, tensor in self.source.tensors.items():
            elements = prod(tensor.shape)
            total += tensor.nbytes * min(used[name], elements) // max(1, elements)
        return total

    @property
    def bytes_out(self) -> int:
        """The bytes that are written, headers included."""
        return self.slot.size - (self.slot.start if self.slot.shared else 0)

    @property
    def padding_bytes(self) -> int:
        """The padding that is written, in the parts of all devices."""
        parts = 1 if self.mesh is None else len(self.mesh.windows())
        return parts * (self.spec.nbytes - self.spec.data_bytes)

    @cached_property
    def key(self) -> str:
        """A hash that identifies the work: sources, spec, slot and version."""
        identity: dict[str, Any] = {
            "entry": self.entry().to_json(),
            "parts": [repr(part) for part in self.source.value.parts],
            "laid": [
                [list(tensor.order), tensor.swapped, *(tensor.strides or ())] for tensor in self.source.tensors.values()
            ],
            "output": [self.to, self.slot.file, self.slot.start, self.slot.size],
            "tilewright": __version__,
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def entry(
        self,
        source_hashes: Sequence[str] = (),
        output_hash: str = NO_HASH,
        begin: int = 0,
        exceptional: Mapping[str, int] | None = None,
    ) -> ManifestEntry:
        """Return the manifest entry, with `exceptional` counts; in a shared file, offsets count from `begin`."""
        slot, target, source = self.slot, self.target, self.source
        start = slot.start if slot.shared else 0
        hashes = source_hashes or [NO_HASH] * len(source.tensors)
        if self.recorded is not None:
            return self._copied_entry(self.recorded, hashes, output_hash)
        return ManifestEntry(
            self.name,
            {
                name: describe_source(tensor, digest)
                for (name, tensor), digest in zip(source.tensors.items(), hashes, strict=True)
            },
            target.spec,
            ByteRange("" if slot.shared else slot.file, start - begin, slot.size - begin, output_hash),
            target.order,
            target.pad_value,
            target.value,
            tuple([element.name for element in source.through]),
            target.mesh,
            # the header of a shared file, which has the manifest, is laid out before values are seen
            {} if slot.shared or exceptional is None else exceptional,
        )

    def _copied_entry(self, recorded: ManifestEntry, hashes: Sequence[str], output_hash: str) -> ManifestEntry:
        """Return the recorded entry with the file that is written; sources that were not hashed yet get their hash."""
        sources = recorded.sources
        if any(entry.bytes.sha256 == NO_HASH for entry in sources.values()):
            pairs = zip(sources.items(), hashes, strict=True)
            sources = {key: replace(entry, bytes=replace(entry.bytes, sha256=digest)) for (key, entry), digest in pairs}
        return replace(recorded, sources=sources, output=ByteRange(self.slot.file, 0, self.slot.size, output_hash))


def describe_source(tensor: StoredTensor, digest: str) -> SourceEntry:
    """Return the manifest entry of a source tensor, whose bytes have a hash.

    >>> from tilewright.files.tensor_file import store_arrays
    >>> describe_source(store_arrays({"x": np.zeros(3, np.uint8)})["x"], NO_HASH).kind
    'uint8'
    """
    first, *others = [ByteRange(section.path.name, *section.byte_range, digest) for section in tensor.sections]
    return SourceEntry(first, tensor.kind, tuple([(section.file, section.start, section.end) for section in others]))


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """The record of a finished item: the hashes, and the times and sizes that reveal a change.

    >>> ItemRecord.from_json(ItemRecord("k", ("a",), "b", ((1, 2),), 3).to_json()).output_hash
    'b'
    """

    key: str
    source_hashes: tuple[str, ...]
    output_hash: str
    source_files: tuple[tuple[int, int], ...]  # time and size of the file of each source
    output_time: int
    rounding: Rounding | None = None  # not known of a finished file that was only hashed again

    @property
    def exceptional(self) -> dict[str, int]:
        """The number of values that are NaN, infinite or out of range, as far as it is known.

        >>> ItemRecord("k", ("a",), "b", ((1, 2),), 3, Rounding(8, nan=1)).exceptional
        {'nan': 1}
        """
        return {} if self.rounding is None else self.rounding.exceptional

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data.

        >>> ItemRecord("k", ("a",), "b", ((1, 2),), 3).to_json()["key"]
        'k'
        """
        rounding = None if self.rounding is None else astuple(self.rounding)
        return {**{name: getattr(self, name) for name in self.__slots__}, "rounding": rounding}

    @classmethod
    def from_json(cls, data: Any) -> ItemRecord | None:
        """Return the record of plain data, None if it is not one.

        >>> ItemRecord.from_json({}) is None
        True
        """
        try:
            files = tuple([(int(time), int(size)) for time, size in data["source_files"]])
            numbers = data.get("rounding")
            rounding = None
            if numbers is not None:
                rounding = Rounding(int(numbers[0]), int(numbers[1]), float(numbers[2]), *map(int, numbers[3:6]))
            hashes = tuple(data["source_hashes"])
            return cls(data["key"], hashes, data["output_hash"], files, data["output_time"], rounding)
        except (KeyError, TypeError, ValueError, IndexError):
            return None


def final_path(out: Path, slot: OutputSlot) -> Path:
    """Return the path of the finished file of a slot.

    >>> final_path(Path("out"), OutputSlot("x.npy", 0, 0)).as_posix()
    'out/x.npy'
    """
    return out if slot.shared else out / slot.file


# `ItemExplanation`: where every piece of a converted tensor comes from, how it is stored, and which device holds it.

_MAX_PIECES = 24  # that are written out
_MAX_DEVICES = 8


@dataclass(frozen=True)
class Piece:
    """A box of the output, and the range of the source that fills it.

    `source_box` is None where the elements are not a box of the source. `changes` lists the conversions on the way.
    """

    box: Box
    source: str
    source_box: Box | None
    changes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the piece as plain data: its box, its source with the range, and the changes."""
        box = None if self.source_box is None else _ranges(self.source_box)
        return {"box": _ranges(self.box), "source": self.source, "from": box, "changes": list(self.changes)}

    @classmethod
    def of(cls, part: Part, source_shape: Sequence[int]) -> Piece:
        """Return the piece of a part of an assembly; `source_shape` is the shape of the source as stored.

        >>> from tilewright.copying.assembly import Assembly
        >>> str(Piece.of(Assembly.of("w", (4, 6)).slice(1, 3).transpose().parts[0], (4, 6)))
        'w[1:3, 0:6], transposed'
        """
        strides = [prod(source_shape[d + 1 :]) for d in range(len(source_shape))]
        start = [part.offset // stride % n for stride, n in zip(strides, source_shape, strict=True)]
        extents = [1] * len(strides)
        dimensions: list[int] = []  # of the source, in the order of the output
        changes = []
        for mode in part.modes:
            own: list[list[tuple[int, int]]] = [[] for _ in strides]
            for n, stride in mode:
                if n > 1 and stride:
                    d = next((d for d, unit in enumerate(strides) if stride >= unit), len(strides) - 1)
                    own[d].append((n, stride // strides[d]))
                    extents[d] += (n - 1) * (stride // strides[d])
                elif n > 1:
                    changes.append(f"repeated {n} times")
            for d, leaves in enumerate(own):
                dimensions += [d] if leaves else []
                if order := _describe_order(leaves):
                    changes.append(f"{name_axis(d, len(strides))} {order}")
        if sorted(dimensions) != dimensions:
            changes.insert(0, "transposed")
        if len(set(dimensions)) < len(dimensions):
            changes.append("reshaped")
        repeats = prod([n for mode in part.modes for n, stride in mode if not stride])
        inside = all(a + n <= whole for a, n, whole in zip(start, extents, source_shape, strict=True))
        is_box = inside and prod(extents) * repeats == part.box.size
        box = Box(tuple(start), tuple(extents)) if is_box else None
        return cls(part.box, part.source, box, tuple(changes))

    def __str__(self) -> str:
        box = "" if self.source_box is None else format_box(self.source_box)
        return ", ".join([f"{self.source}{box}", *self.changes])


def _describe_order(leaves: Sequence[tuple[int, int]]) -> str | None:
    """Return how a mode with several leaves reorders a dimension; None if it does not."""
    if all(outer == stride * n for (_, outer), (n, stride) in pairwise(leaves)):
        return None
    extents, strides = ([leaf[k] for leaf in leaves] for k in (0, 1))
    if extents[-1] == 2 and strides[-2:] == [1, extents[-2]]:
        return f"in pairs, {extents[-2]} apart"
    return f"in the order ({','.join(map(str, extents))}):({','.join(map(str, strides))})"


@dataclass(frozen=True)
class ItemExplanation(Drawable):
    """The explanation of one converted tensor: its pieces, the way of its values, and its devices."""

    item: ConversionItem

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of the tensor, in the order of its assembly."""
        source = self.item.source
        shapes = {name: stored_shape(tensor) for name, tensor in source.tensors.items()}
        return tuple([Piece.of(part, shapes[part.source]) for part in source.value.parts])

    @property
    def zeros(self) -> int:
        """The number of elements that come from no source."""
        return prod(self.item.source.value.shape) - sum([piece.box.size for piece in self.pieces])

    @property
    def steps(self) -> list[str]:
        """The formats of the values, from the sources to the file, and the constant that is added."""
        source = self.item.source
        stages = [source.kind, *[element.name for element in source.through]]
        if source.value.added:
            stages.insert(min(2, len(stages)), f"+ {source.value.added:g}")
        return [*stages, self.item.target.spec.dtype.name]

    @property
    def devices(self) -> dict[Box, list[Coordinate]]:
        """The boxes that devices hold, and those devices; empty without a mesh."""
        return {} if self.item.target.mesh is None else self.item.target.mesh.windows()

    def __str__(self) -> str:
        item, spec = self.item, self.item.target.spec
        tiles = f"tiles of {spec.tile.height}x{spec.tile.width}" if spec.is_tiled else "rows"
        lines = [
            item.slot.file or item.name,
            f"  shape     {format_extents(item.source.value.shape, 'scalar')}, {spec.dtype} in {tiles}, {spec.memory}",
            f"  values    {' -> '.join(self.steps)}",
            f"  made as   {(item.made_as or (item.source.value.text,))[0]}",
            *[f"    where {line}" for line in item.made_as[1:]],
            *self._piece_lines(),
            *self._device_lines(),
        ]
        return "\n".join(lines)

    def _piece_lines(self) -> Iterator[str]:
        yield "  pieces"
        boxes = [format_box(piece.box) for piece in self.pieces[:_MAX_PIECES]]
        width = max(map(len, boxes), default=0)
        for box, piece in zip(boxes, self.pieces, strict=False):
            yield f"    {box:<{width}}  <-  {piece}"
        if len(self.pieces) > _MAX_PIECES:
            yield f"    and {len(self.pieces) - _MAX_PIECES} more"
        if self.zeros:
            yield f"    the other {self.zeros} elements are zero"

    def _device_lines(self) -> Iterator[str]:
        windows = self.devices
        mesh = self.item.target.mesh
        if mesh is None:
            return
        if len(mesh.topology.coordinates) == 1:
            yield "  devices   every device holds all of it" if mesh.shape == (1, 1) else "  devices   one"
            return
        yield f"  devices   {mesh}"
        for box, devices in list(windows.items())[:_MAX_DEVICES]:
            names = ", ".join([str(device) for device in devices[:4]]) + (" ..." if len(devices) > 4 else "")
            yield f"    {names}  hold{'s' if len(devices) == 1 else ''}  {format_box(box)}"
        if len(windows) > _MAX_DEVICES:
            yield f"    and {len(windows) - _MAX_DEVICES} more parts"

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain data: the pieces, the steps of values, the expression and the devices."""
        item = self.item
        return {
            "name": item.name,
            "file": item.slot.file,
            "shape": list(item.source.value.shape),
            "spec": str(item.target.spec),
            "made_as": list(item.made_as),
            "value": item.source.value.text,
            "steps": self.steps,
            "pieces": [piece.to_json() for piece in self.pieces],
            "zeros": self.zeros,
            "devices": [
                {"box": _ranges(box), "devices": [list(device) for device in devices]}
                for box, devices in self.devices.items()
            ],
        }


def find_items(items: Sequence[ConversionItem], pattern: str) -> list[ConversionItem]:
    """Return the items that a pattern names: a name or a file, the start or a part of one, or wildcards as in "*.wo*".

    >>> try:
    ...     find_items([], "w")
    ... except FormatError as problem:
    ...     print(problem)
    no tensor is called 'w'; there are none
    """
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: name == pattern,
        lambda name: fnmatchcase(name, pattern),
        lambda name: name.startswith(pattern),
        lambda name: pattern in name,
    )
    for test in tests:
        if matches := [item for item in items if test(item.name) or test(item.slot.file)]:
            return matches
    names = [item.name for item in items]
    hint = suggest(pattern, names, f"there are {', '.join(names[:8]) or 'none'}")
    raise FormatError(f"no tensor is called {pattern!r}; {hint}")


def _ranges(box: Box) -> list[list[int]]:
    return [[start, end] for start, end in zip(box.offset, box.end, strict=True)]


def format_box(box: Box) -> str:
    """Return a box as NumPy would index it.

    >>> format_box(Box((0, 32), (1, 64)))
    '[0, 32:96]'
    """
    pairs = zip(box.offset, box.end, strict=True)
    return f"[{', '.join([str(a) if b == a + 1 else f'{a}:{b}' for a, b in pairs])}]"


# `SlabCutter`: the boxes of a tensor that are converted at a time, and the strips of the output that they make.

_MIN_RUN_BYTES = 512  # shorter ones are slow to read


class Slab(NamedTuple):
    """A box of a tensor that is converted at a time: `window` is the device's part, and `box` is relative to it."""

    window: int
    box: Box


class ConvertedSlab(NamedTuple):
    """A slab as it must be in a file: its box of the entire tensor, its spec and pages, and its exceptional values."""

    box: Box
    spec: TensorSpec
    pages: ByteArray
    exceptional: Rounding


@dataclass(frozen=True)
class SlabCutter:
    """The slabs of one tensor, part by part: boxes of the target that take at most `max_bytes` each.

    Slabs are cut from the outermost dimension of the source inwards, so that the source is read from front to back.
    Their edges are page edges on both sides. `whole_rows` cuts row-major targets between rows, for bank images.

    >>> import tempfile, numpy
    >>> from tilewright import TensorSpec, open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((100, 64), numpy.float32))
    ...     source = AssembledSource.of(open_tensors(folder)["x"])
    ...     slabs = SlabCutter(source, ConversionTarget(TensorSpec((100, 64), "bfloat8_b")), 40_000)
    >>> [slab.box.shape for slab in slabs]
    [(64, 64), (36, 64)]
    """

    source: AssembledSource
    target: ConversionTarget
    max_bytes: int
    whole_rows: bool = False
    region: Box | None = None  # of every part; all of it by default
    numbers: Sequence[int] | None = None  # of the parts; all of them by default

    @cached_property
    def windows(self) -> list[Box]:
        """The distinct parts of the devices, as boxes of the entire tensor."""
        shape = self.target.spec.shape.logical
        return [Box((0,) * len(shape), shape)] if self.target.mesh is None else list(self.target.mesh.windows())

    @cached_property
    def _region(self) -> Box:
        shape = self.target.spec.shape.logical
        return Box((0,) * len(shape), shape) if self.region is None else self.region

    @cached_property
    def _numbers(self) -> Sequence[int]:
        return range(len(self.windows)) if self.numbers is None else self.numbers

    @cached_property
    def _axes(self) -> list[int]:
        """The axes of the target, the outermost of the source first."""
        return self.source.axes_from_outermost()

    @cached_property
    def _units(self) -> list[int]:
        """The units of slab extents, so that slabs are entire pages on both sides."""
        spec = self.target.spec
        units = PagedBoxes(spec).units
        if self.whole_rows and units and not spec.is_tiled:  # the pages of rows
            units = (*units[:-1], max(1, spec.shape.logical[-1]))
        return [lcm(unit, own) for unit, own in zip(units, self.source.units(), strict=True)]

    def slab_bytes(self, extents: Sequence[int]) -> int:
        """Return the memory of the first slab of these extents: as stored, as values, and as written."""
        spec = self.target.spec
        box = Box(self.windows[0].offset, tuple(extents))
        padded = [round_up(n, unit) for n, unit in zip(extents, PagedBoxes(spec).units, strict=True)]
        rank_one = spec.tile.height if spec.is_tiled and len(padded) == 1 else 1
        output_bytes = ceil_div(prod(padded) * rank_one * spec.page_bytes, spec.page_elements)
        return self.source.box_bytes(box, spec) + output_bytes * (2 if self.whole_rows else 1)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The extents of a slab; slabs at the edges may be smaller."""
        shape, axes = self._region.shape, self._axes
        back = inverse_order(tuple(axes))

        def fits(permuted: list[int]) -> bool:
            return self.slab_bytes([permuted[d] for d in back]) <= self.max_bytes

        permuted = largest_slab(tuple([shape[d] for d in axes]), [self._units[d] for d in axes], fits)
        extents = tuple([permuted[d] for d in back])
        if self.slab_bytes(extents) > self.max_bytes:
            raise OutOfMemory(
                f"{', '.join(self.source.tensors)}: the smallest slab, {' x '.join(map(str, extents))}, takes"
                f" {self.slab_bytes(extents)} bytes, but each job has {self.max_bytes}; give more memory or fewer jobs"
            )
        return extents

    @cached_property
    def in_output_order(self) -> bool:
        """Whether the slabs, one after the other, make the output from front to back."""
        boxes, end = PagedBoxes(self.target.spec), 0
        for slab in self:
            runs = boxes.runs(slab.box)
            if len(runs) > 1 or any(slab.window * self.target.spec.nbytes + start != end for start, _ in runs):
                return False
            end += sum([size for _, size in runs])
        return True

    def __len__(self) -> int:
        counts = [max(1, ceil_div(n, extent)) for n, extent in zip(self._region.shape, self.extents, strict=True)]
        return len(self._numbers) * prod(counts)

    def __iter__(self) -> Iterator[Slab]:
        shape, axes = self._region.shape, tuple(self._axes)
        back = inverse_order(axes)
        permuted = (tuple([shape[d] for d in axes]), tuple([self.extents[d] for d in axes]))
        origin = tuple([-n for n in self._region.offset])
        for window in self._numbers:
            for box in cut_into_slabs(*permuted):
                yield Slab(window, box.permute(back).relative_to(origin))

    def whole_box(self, slab: Slab) -> Box:
        """Return the box of a slab in the entire tensor."""
        return slab.box.relative_to(tuple([-n for n in self.windows[slab.window].offset]))

    def convert(self, slab: Slab) -> ConvertedSlab:
        """Return the pages that a slab must have, to be compared with the pages of a file."""
        box, source, target = self.whole_box(slab), self.source, self.target
        parts = list(source.read_parts(box, aligned_bytes))
        spec = PagedBoxes(target.spec).box_spec(slab.box)
        pages = aligned_bytes(spec.nbytes)
        if spec.nbytes:
            source.pack(parts, spec, pages, aligned_bytes, target.pad_value)
        return ConvertedSlab(box, spec, pages, source.count_exceptional(parts, spec, box))

    def strips(self, max_bytes: int, stride: int) -> list[Strip]:
        """Return strips of at most `max_bytes` that make the output; parts lie at distances of `stride`.

        There is one strip for all of it if slabs make it from front to back anyway, or if rows of the source would have
        to be read in pieces that are too short.
        """
        spec = self.target.spec
        total = (len(self.windows) - 1) * stride + spec.nbytes
        whole = Strip(0, total, self)
        if total <= max_bytes or self.whole_rows or self.in_output_order:
            return [whole]
        shape, units = spec.shape.logical, PagedBoxes(spec).units
        axis = next((d for d, n in enumerate(shape) if n > 1), len(shape) - 1)
        row_bytes = spec.nbytes // ceil_div(shape[axis], units[axis])  # of one row of pages
        rows = max_bytes // row_bytes * units[axis] // self._units[axis] * self._units[axis]
        if not rows or self.source.run_bytes(axis, rows) < _MIN_RUN_BYTES:
            return [whole]
        extents = (*shape[:axis], rows, *shape[axis + 1 :])
        strips = []
        for window in range(len(self.windows)):
            for box in cut_into_slabs(shape, extents):
                first, count = box.offset[axis] // units[axis], ceil_div(box.shape[axis], units[axis])
                slabs = replace(self, region=box, numbers=[window])
                strips.append(Strip(window * stride + first * row_bytes, count * row_bytes, slabs))
        return strips


class Strip(NamedTuple):
    """A range of the output's bytes, counted from its first page, and the slabs that make it."""

    start: int
    nbytes: int
    slabs: SlabCutter


Source: TypeAlias = "FilePath | TensorFile | Mapping[str, Any]"  # a mapping of names to arrays
Sources: TypeAlias = "Source | Iterable[Source]"
_SAMPLE_BYTES = 8 << 20
_SECONDS_PER_FILE = 0.005  # to flush a small file to disk
_MIN_NOTED_PADDING = 1 << 20
_MAX_LISTED_PROBLEMS = 5  # per message
_MAX_COPIED_TEXT = 1 << 16  # characters of metadata


@dataclass(frozen=True)
class ConversionPlan:
    """A conversion as a list of independent items, with notes, the names of skipped tensors, and files beside them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((60, 90), np.float32))
    ...     plan = plan_conversion(f"{folder}/x.npy", f"{folder}/out", dtype="bfloat8_b")
    ...     len(plan.items), plan.bytes_in, plan.bytes_out, plan.padding_bytes
    (1, 21600, 6912, 791)
    """

    out: Path
    to: str
    items: tuple[ConversionItem, ...]
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    beside: Mapping[str, bytes] = field(default_factory=dict)
    recipe: Mapping[str, Any] | None = None  # of a weight cache, as its manifest records it
    metadata: Mapping[str, str] = field(default_factory=dict)  # of the sources

    @property
    def is_single_file(self) -> bool:
        """Whether the result is one file.

        >>> ConversionPlan(Path("o.safetensors"), "safetensors", ()).is_single_file
        True
        """
        return self.to == "safetensors"

    @property
    def data_start(self) -> int:
        """The offset of the first tensor of a single file, after its header; 0 for several files."""
        return self.items[0].slot.start if self.is_single_file and self.items else 0

    @property
    def bytes_in(self) -> int:
        """The bytes of all sources."""
        return sum([item.bytes_in for item in self.items])

    @property
    def bytes_out(self) -> int:
        """The bytes of all outputs, headers included."""
        return self.data_start + sum([item.bytes_out for item in self.items])

    @property
    def padding_bytes(self) -> int:
        """The padding bytes of all outputs."""
        return sum([item.padding_bytes for item in self.items])

    def part(self, i: int, n: int) -> list[ConversionItem]:
        """Return the items of the i-th of n parts, which have about the same number of bytes.

        >>> ConversionPlan(Path("o"), "npy", ()).part(0, 4)
        []
        """
        if not 0 <= i < n:
            raise MemoryConfigError(f"part {i} of {n} does not exist; use 0 to {n - 1}")
        loads = [0] * n
        mine = []
        largest_first = sorted(self.items, key=lambda item: (-item.bytes_in, item.name))
        for item in largest_first:
            home = loads.index(min(loads))
            loads[home] += item.bytes_in
            if home == i:
                mine.append(item)
        position = {item.name: k for k, item in enumerate(self.items)}
        return sorted(mine, key=lambda item: position[item.name])

    def explain(self, pattern: str) -> list[ItemExplanation]:
        """Return where the pieces of some tensors come from: `pattern` is a name, the start of one, or has wildcards.

        >>> try:
        ...     ConversionPlan(Path("o"), "npy", ()).explain("x")
        ... except FormatError as problem:
        ...     print(problem)
        no tensor is called 'x'; there are none
        """
        return [ItemExplanation(item) for item in find_items(self.items, pattern)]

    def manifest(self, done: dict[str, ItemRecord]) -> ConversionManifest:
        """Return the manifest of the finished conversion, from `done`, the records of all items by key."""
        records = [(item, done[item.key]) for item in self.items]
        entries = {
            item.name: item.entry(record.source_hashes, record.output_hash, self.data_start, record.exceptional)
            for item, record in records
        }
        return ConversionManifest(self.to, __version__, entries, self.recipe, self.metadata)

    def head(self, manifest: ConversionManifest) -> bytes:
        """Return the bytes before the data of a single file, which end with its `manifest`."""
        return encode_safetensors_head(list(manifest.entries.values()), self.metadata)

    def seconds(self, jobs: int | None = None) -> float:
        """Return the estimated seconds with `jobs` threads, from converting and hashing a sample of the largest tensor.

        The speed of the disk is not included.
        """
        if not self.items:
            return 0.0
        largest = max(self.items, key=lambda item: item.bytes_in)
        slabs = SlabCutter(largest.source, largest.target, _SAMPLE_BYTES)
        try:
            slab = next(iter(slabs))
        except TilewrightError:  # the smallest slab is larger than the sample
            return float("nan")
        started = perf_counter()
        parts = list(largest.source.read_parts(slab.box, aligned_bytes))
        spec = PagedBoxes(largest.target.spec).box_spec(slab.box)
        out = np.empty(spec.nbytes, np.uint8)
        if spec.nbytes:
            largest.source.pack(parts, spec, out, aligned_bytes)
        arrays = [part.values.view(np.uint8) for part in parts]
        for array in (*arrays, out):
            hashlib.sha256(array.data)
        spent = perf_counter() - started
        workers = min(jobs or os.cpu_count() or 1, os.cpu_count() or 1)
        files = 1 if self.is_single_file else len(self.items)
        return (spent * self.bytes_in / max(1, sum(map(len, arrays))) + files * _SECONDS_PER_FILE) / workers

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data.

        >>> sorted(ConversionPlan(Path("o"), "npy", ()).to_json())
        ['bytes_in', 'bytes_out', 'notes', 'out', 'padding_bytes', 'skipped', 'tensors', 'to']
        """
        recipe = self.recipe and {key: value for key, value in self.recipe.items() if key != "checkpoint"}
        return {
            "out": str(self.out),
            "to": self.to,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "padding_bytes": self.padding_bytes,
            "tensors": [
                {
                    "name": item.name,
                    "shape": list(item.source_shape),
                    "from": item.source.kind,
                    "spec": str(item.spec),
                    "file": item.slot.file,
                    "bytes_in": item.bytes_in,
                    "bytes_out": item.bytes_out,
                    "padding_bytes": item.padding_bytes,
                    **({} if item.mesh is None else {"mesh": item.mesh.to_json()}),
                }
                for item in self.items
            ],
            "skipped": list(self.skipped),
            "notes": list(self.notes),
            **({} if recipe is None else {"recipe": recipe}),
        }


def plan_conversion(
    sources: Sources,
    out: FilePath,
    to: str | None = None,
    rules: RuleLines | None = None,
    follow_symlinks: bool = False,
    **for_all: Any,
) -> ConversionPlan:
    """Return the plan that converts the tensors of files, or of an opened `TensorFile`, to files at `out`.

    Args:
        sources: a path, an opened `TensorFile`, a mapping of names to arrays, or a list of these.
        out: the output directory or file.
        to: "tensorbin" (a directory with a file per tensor), "safetensors" (one file), "banks" (bank images of a chip)
            or "npy"; by default chosen by the suffix of `out`.
        rules: a TOML file, or patterns and their settings.
        follow_symlinks: allow links that point outside of a directory.
        for_all: settings for all tensors; see `Settings`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((60, 90), np.float32))
    ...     plan_conversion(f"{folder}/x.npy", f"{folder}/o.safetensors", rules={"y*": {"dtype": "float32"}}).notes
    ("no tensor matches the pattern 'y*'",)
    """
    path = as_path(out)
    file_type = ("safetensors" if path.suffix == ".safetensors" else "tensorbin") if to is None else to
    if file_type not in OUTPUT_TYPES:
        raise FormatError(f"unknown output type {file_type!r}; choose one of {', '.join(OUTPUT_TYPES)}")
    if file_type == "safetensors" and path.suffix != ".safetensors":
        raise FormatError(f"expected an output that ends in .safetensors, got {path}")
    all_rules = Rules.of(rules, **for_all)
    files = _open_files(sources, follow_symlinks)
    tensors = _join_files(files)
    candidates = list(list_outputs(tensors, all_rules))
    outputs, skipped, notes = _choose_targets(candidates, all_rules, file_type)
    names = list(dict.fromkeys([*tensors, *[output.name for output in candidates]]))
    unmatched = all_rules.unmatched_patterns(names)
    notes = [f"no tensor matches the pattern {pattern!r}" for pattern in unmatched] + notes
    notes += [*all_rules.note_unused_lines(names), *_note_unused_elements(tensors, candidates, all_rules)]
    notes += [note for file in files for note in (*file.notes, *_metadata_notes(file))]
    if file_type != "safetensors" and path.suffix in SUFFIXES:
        notes.append(f"{path.name} is a directory with a file for each tensor; name it x.safetensors to get one file")
    if not outputs:
        reason = f"all {len(tensors)} tensors are skipped" if tensors else "the source has no tensors"
        raise FormatError(f"nothing to convert: {reason}")
    metadata = {key: text for file in files for key, text in _copied_metadata(file).items()}
    slots = _assign_slots(outputs, path, file_type, metadata)
    items = [replace(item, slot=slot) for item, slot in zip(outputs, slots, strict=True)]
    plan = ConversionPlan(path, file_type, tuple(items), tuple(notes), tuple(skipped), metadata=metadata)
    return replace(plan, notes=(*_padding_notes(plan), *plan.notes))


def _note_unused_elements(
    tensors: Mapping[str, StoredTensor], outputs: Iterable[OutputTensor], rules: Rules
) -> Iterator[str]:
    """Yield a note for each tensor with elements that the values of rules leave out."""
    if all(settings.value is None for _, settings in rules.lines):
        return
    used = count_elements([output.source.value for output in outputs])  # including skipped ones: these were named
    for name, tensor in tensors.items():
        size = prod(tensor.shape)
        if tensor.host is not None and used[name] < size:
            yield f"{name}: {used[name]} of {size} elements are used; the others are in no output"


def _padding_notes(plan: ConversionPlan) -> Iterator[str]:
    """Yield a note if most of a large output is padding."""
    padding = plan.padding_bytes
    if padding < _MIN_NOTED_PADDING or 2 * padding < plan.bytes_out:
        return
    worst = max(plan.items, key=lambda item: item.padding_bytes)
    spec = worst.target.spec
    yield (
        f"{format_bytes(padding)} of {format_bytes(plan.bytes_out)} are padding, most in {worst.name}:"
        f" {list(spec.shape.logical)} is padded to {list(spec.padded_shape)}; layout = 'row_major', or another shape,"
        " avoids it"
    )


def open_sources(sources: Sources, follow_symlinks: bool = False) -> dict[str, StoredTensor]:
    """Return all tensors of one or several sources by name; raise if a name exists twice.

    >>> open_sources([])
    {}
    """
    return _join_files(_open_files(sources, follow_symlinks))


def _open_files(sources: Sources, follow_symlinks: bool) -> list[TensorFile]:
    listed = [sources] if isinstance(sources, (str, bytes, os.PathLike, Mapping)) else list(sources)
    return [_open_source(source, follow_symlinks) for source in listed]


def _join_files(files: list[TensorFile]) -> dict[str, StoredTensor]:
    paths = Path(", ".join([str(file.path) for file in files]))
    tensors = [decode_small_floats(tensor) for file in files for tensor in file.values()]
    return dict(TensorFile(paths, "sources", tensors))


def _open_source(source: Source, follow_symlinks: bool) -> TensorFile:
    if isinstance(source, TensorFile):
        return source
    return store_arrays(source) if isinstance(source, Mapping) else open_tensors(source, follow_symlinks)


def _copied_metadata(file: TensorFile) -> dict[str, str]:
    """Return the free text of safetensors files, which outputs get too; what other files have is not only text."""
    if not file.kind.endswith(("safetensors", "directory", "converted")):
        return {}
    texts = {key: text for key, text in file.metadata.items() if key != METADATA_KEY}
    return texts if sum(map(len, texts.values())) <= _MAX_COPIED_TEXT else {}


def _metadata_notes(file: TensorFile) -> Iterator[str]:
    """Yield a note if a source has metadata that no output gets."""
    keys = [key for key in file.metadata if key not in {METADATA_KEY, *_copied_metadata(file)}]
    if keys:
        yield f"{file.path.name}: metadata is not carried over: {list_some(keys, _MAX_LISTED_PROBLEMS)}"


def _choose_targets(
    outputs: Iterable[OutputTensor], rules: Rules, to: str
) -> tuple[list[ConversionItem], list[str], list[str]]:
    """Return the items, without slots, the skipped names, and notes; raise one error for all problems."""
    result: dict[str, ConversionItem] = {}
    skipped, notes, problems = [], [], []
    for output in outputs:
        try:
            target = choose_target(output, rules.for_all, to)
            if output.name in result:
                raise FormatError("two tensors have this name; rename one of them")
        except TilewrightError as problem:
            problems.append((output.name, problem))
            continue
        if target is None:
            skipped.append(output.name)
            continue
        result[output.name] = _build_item(output, target, rules, to)
        if target.note is not None:
            notes.append(f"{output.name}: {target.note}")
    if problems:
        first = type(problems[0][1])
        alike: dict[str, list[str]] = {}
        for name, reason in problems:
            alike.setdefault(str(reason), []).append(name)
        lines = [f"{list_some(names)}: {text}" for text, names in list(alike.items())[:_MAX_LISTED_PROBLEMS]]
        left = len(problems) - sum([len(names) for names in list(alike.values())[:_MAX_LISTED_PROBLEMS]])
        more = [f"and {left} more"] if left else []
        count = f"{len(problems)} tensors cannot be converted:\n" if len(problems) > 1 else ""
        raise first(count + "\n".join(lines + more))
    return list(result.values()), skipped, notes


def _build_item(output: OutputTensor, target: ConversionTarget, rules: Rules, to: str) -> ConversionItem:
    """Return the item of a tensor, which has no slot yet."""
    source, settings = output.source, output.own.with_defaults(rules.for_all)
    order = dimension_order(len(source.value.shape), settings.transpose)
    source = replace(source.transpose(order), through=choose_rounding(settings, source.format, target.spec))
    return ConversionItem(output.name, source, target, OutputSlot("", 0, 0), to)


def _assign_slots(items: list[ConversionItem], out: Path, to: str, metadata: Mapping[str, str]) -> list[OutputSlot]:
    if to != "safetensors":
        files = unique_file_names([item.name for item in items])
        return [_file_slot(files[item.name], item.target, to) for item in items]
    entries = [replace(item, slot=OutputSlot(out.name, 0, 0, shared=True)).entry() for item in items]
    return assign_shared_slots(out.name, entries, metadata)

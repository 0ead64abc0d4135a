# SPDX-License-Identifier: Apache-2.0
"""One tensor of a conversion: its source, its target, and its slot in an output file; items can be sent to workers."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileFormatError
from ..files.bank_image import IMAGE_SUFFIX, INDEX_SUFFIX, BankImage
from ..files.conversion_manifest import ByteRange, ConversionManifest, ManifestEntry, SourceEntry
from ..files.file_names import unique_file_names
from ..files.mesh import Mesh
from ..files.safetensors import MAX_HEADER_BYTES, METADATA_KEY, SafetensorsEntry, encode_header
from ..files.stored_tensor import StoredTensor
from ..files.tensorbin import encode_file_start
from ..memory import TensorSpec
from .assembled_source import AssembledSource
from .exactness import Rounding
from .rules import ConversionTarget

NO_HASH = "0" * 64
PAYLOAD = "payload"  # the draft of a single output file, which all tensors are written to


@dataclass(frozen=True)
class OutputSlot:
    """The byte range of a tensor in an output file: pages start at `start`, after `head` (empty in shared files).

    Parts of a mesh follow each other at distances of `step`. `image` scatters the pages over banks; `beside` are small
    files, by name, that are written with this one.

    >>> OutputSlot("x.tensorbin", 64, 128, b"head").size
    128
    """

    file: str
    start: int
    size: int
    head: bytes = b""
    shared: bool = False
    step: int = 0
    image: BankImage | None = None
    beside: Mapping[str, bytes] = field(default_factory=dict)


def assign_file_slots(targets: Mapping[str, ConversionTarget], to: str) -> list[OutputSlot]:
    """Return a slot per tensor, each in its own file; `targets` are given by name, and `to` is the kind of files.

    >>> assign_file_slots({"a/b": ConversionTarget(TensorSpec((4, 8), "bfloat8_b"))}, "tensorbin")[0].file
    'a%2Fb.tensorbin'
    """
    files = unique_file_names(list(targets))
    return [_file_slot(files[name], target, to) for name, target in targets.items()]


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

    >>> tensorbin_slot("x.tensorbin", TensorSpec((4, 8), "bfloat8_b")).step
    1088
    """
    head, step = encode_file_start(spec, mesh)
    parts = 1 if mesh is None else len(mesh.windows())
    return OutputSlot(file, len(head), len(head) + (parts - 1) * step + spec.nbytes, head, step=step)


def _encode_npy_head(spec: TensorSpec) -> bytes:
    """Return the header of an `.npy` file; types without a NumPy name are stored as unsigned integers."""
    if spec.dtype.has_blocks:
        raise TypeError(f"{spec.dtype} is not a NumPy type")
    own = spec.dtype.dtype
    named = own if own.kind in "biuf" and own.isbuiltin == 1 else np.dtype(f"u{own.itemsize}")
    header: dict[str, Any] = {"descr": named.str, "fortran_order": False, "shape": spec.shape.logical}
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def assign_shared_slots(
    file: str, entries: list[ManifestEntry], version: str, metadata: Mapping[str, str] | None = None
) -> list[OutputSlot]:
    """Return a slot per tensor in one safetensors file, end to end; its header's size does not depend on the hashes.

    `metadata` is free text for the header.

    >>> whole = SourceEntry(ByteRange("m.npz", 0, 24, NO_HASH), "<f4")
    >>> entry = ManifestEntry("x", {"x": whole}, TensorSpec((2, 3), "bfloat8_b"), ByteRange("o", 0, 1088, NO_HASH))
    >>> assign_shared_slots("o", [entry], "0.0.1")[0].start % 64
    0
    """
    ends = [0, *accumulate(entry.spec.nbytes for entry in entries)]
    placed = [
        replace(entry, output=replace(entry.output, start=start, end=end))
        for entry, (start, end) in zip(entries, pairwise(ends), strict=True)
    ]
    begin = len(encode_safetensors_head(placed, version, metadata))
    return [OutputSlot(file, begin + start, begin + end, shared=True) for start, end in pairwise(ends)]


def encode_safetensors_head(
    entries: list[ManifestEntry], version: str, metadata: Mapping[str, str] | None = None
) -> bytes:
    """Return the bytes before the data of a tiled safetensors file: its header, with the manifest and `metadata` in it.

    >>> encode_safetensors_head([], "0.0.1")[8:9]
    b'{'
    """
    listed = [
        SafetensorsEntry(entry.name, "U8", (entry.spec.nbytes,), entry.output.start, entry.output.end)
        for entry in entries
    ]
    manifest = ConversionManifest("safetensors", version, {entry.name: entry for entry in entries})
    start = encode_header(listed, {**(metadata or {}), METADATA_KEY: manifest.to_bytes().decode()})
    if len(start) > MAX_HEADER_BYTES:
        raise FileFormatError(
            f"{len(entries)} tensors need a header of {len(start)} bytes, more than the {MAX_HEADER_BYTES} of a"
            " safetensors file; write tensorbin files instead"
        )
    return start


@dataclass(frozen=True)
class ConversionItem:
    """One tensor to convert.

    `recorded` is the manifest entry of a file whose pages are copied as they are: what it was made from at first.
    `made_as` are the expressions of a recipe that say how it is put together, for explanations.

    >>> [field for field in ConversionItem.__dataclass_fields__]
    ['name', 'source', 'target', 'slot', 'version', 'to', 'recorded', 'made_as']
    """

    name: str
    source: AssembledSource
    target: ConversionTarget
    slot: OutputSlot
    version: str
    to: str
    recorded: ManifestEntry | None = None
    made_as: tuple[str, ...] = ()

    @property
    def spec(self) -> TensorSpec:
        """Return the spec of the file: that of each device's part on a mesh."""
        return self.target.spec if self.recorded is None else self.recorded.spec

    @property
    def mesh(self) -> Mesh | None:
        """Return how devices share the file, None if there is one."""
        return self.target.mesh if self.recorded is None else self.recorded.mesh

    @property
    def source_shape(self) -> tuple[int, ...]:
        """Return the shape of the source; that of the value if there are several."""
        tensors = list(self.source.tensors.values())
        return tensors[0].shape if len(tensors) == 1 else self.source.value.shape

    @cached_property
    def bytes_in(self) -> int:
        """Return the bytes of the sources that are used."""
        used = dict.fromkeys(self.source.tensors, 0)
        for part in self.source.value.parts:
            used[part.source] += prod([n for mode in part.modes for n, step in mode if step])
        total = 0
        for name, tensor in self.source.tensors.items():
            elements = prod(tensor.shape)
            total += tensor.nbytes * min(used[name], elements) // max(1, elements)
        return total

    @property
    def bytes_out(self) -> int:
        """Return the bytes that are written, headers included."""
        return self.slot.size - (self.slot.start if self.slot.shared else 0)

    @property
    def padding_bytes(self) -> int:
        """Return the padding that is written, in the parts of all devices."""
        parts = 1 if self.mesh is None else len(self.mesh.windows())
        return parts * (self.spec.nbytes - self.spec.data_bytes)

    @cached_property
    def key(self) -> str:
        """Return a hash that identifies the work: sources, spec, slot and version."""
        identity: dict[str, Any] = {
            "entry": self.entry().to_json(),
            "parts": [repr(part) for part in self.source.value.parts],
            "laid": [
                [list(tensor.order), tensor.swapped, *(tensor.strides or ())] for tensor in self.source.tensors.values()
            ],
            "output": [self.to, self.slot.file, self.slot.start, self.slot.size],
            "tilewright": self.version,
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
            tuple([each.name for each in source.through]),
            target.mesh,
            # the header of a shared file, which has the manifest, is laid out before values are seen
            {} if slot.shared or exceptional is None else exceptional,
        )

    def _copied_entry(self, recorded: ManifestEntry, hashes: Sequence[str], output_hash: str) -> ManifestEntry:
        """Return the recorded entry with the file that is written; sources that were not hashed yet get their hash."""
        sources = recorded.sources
        if any(each.bytes.sha256 == NO_HASH for each in sources.values()):
            pairs = zip(sources.items(), hashes, strict=True)
            sources = {key: replace(each, bytes=replace(each.bytes, sha256=digest)) for (key, each), digest in pairs}
        return replace(recorded, sources=sources, output=ByteRange(self.slot.file, 0, self.slot.size, output_hash))


def describe_source(tensor: StoredTensor, digest: str) -> SourceEntry:
    """Return the manifest entry of a source tensor, whose bytes have a hash.

    >>> from tilewright.files.stored_arrays import store_arrays
    >>> describe_source(store_arrays({"x": np.zeros(3, np.uint8)})["x"], NO_HASH).kind
    'uint8'
    """
    first, *others = [ByteRange(each.path.name, *each.byte_range, digest) for each in tensor.sections]
    return SourceEntry(first, tensor.kind, tuple([(each.file, each.start, each.end) for each in others]))


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
    rounding: Rounding | None = None  # of records of earlier releases, it is not known

    @property
    def exceptional(self) -> dict[str, int]:
        """Return how many values are NaN, infinite or out of range, as far as it is known.

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

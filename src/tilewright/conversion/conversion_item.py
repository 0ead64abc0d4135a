# SPDX-License-Identifier: Apache-2.0
"""One tensor of a conversion: its source, its target, and its slot in an output file; items can be sent to workers."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileFormatError
from ..files import StoredTensor
from ..files.bank_image import IMAGE_SUFFIX, INDEX_SUFFIX, BankImage
from ..files.conversion_manifest import ByteRange, ConversionManifest, ManifestEntry
from ..files.file_names import unique_file_names
from ..files.safetensors import MAX_HEADER_BYTES, METADATA_KEY, SafetensorsEntry, encode_header
from ..files.strict_json import spec_to_json
from ..files.tensorbin import encode_file_start
from ..memory import TensorSpec
from .rules import ConversionTarget

NO_HASH = "0" * 64
PAYLOAD = "payload"  # the draft of a single output file, which all tensors are written to


@dataclass(frozen=True)
class OutputSlot:
    """The byte range of a tensor in an output file: pages start at `start`, after `head` (empty in shared files).

    `image` scatters the pages over banks; `beside` are small files, by name, that are written with this one.

    >>> OutputSlot("x.tensorbin", 64, 128, b"head").size
    128
    """

    file: str
    start: int
    size: int
    head: bytes = b""
    shared: bool = False
    image: BankImage | None = None
    beside: Mapping[str, bytes] = field(default_factory=dict)


def assign_file_slots(specs: Mapping[str, TensorSpec], to: str) -> list[OutputSlot]:
    """Return a slot per tensor, each in its own file; `specs` are given by name, and `to` is the kind of files.

    >>> assign_file_slots({"a/b": TensorSpec((4, 8), "bfloat8_b")}, "tensorbin")[0].file
    'a%2Fb.tensorbin'
    """
    files = unique_file_names(list(specs))
    return [_file_slot(files[name], spec, to) for name, spec in specs.items()]


def _file_slot(file: str, spec: TensorSpec, to: str) -> OutputSlot:
    if to == "banks":
        image = BankImage(spec)
        beside = {file + INDEX_SUFFIX: image.index_json()}
        return OutputSlot(file + IMAGE_SUFFIX, 0, image.nbytes, image=image, beside=beside)
    head = encode_file_start(spec) if to == "tensorbin" else _encode_npy_head(spec)
    return OutputSlot(f"{file}.{to}", len(head), len(head) + spec.nbytes, head)


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


def assign_shared_slots(file: str, entries: list[ManifestEntry], version: str) -> list[OutputSlot]:
    """Return a slot per tensor in one safetensors file, end to end; its header's size does not depend on the hashes.

    >>> whole = ByteRange("m.npz", 0, 24, NO_HASH)
    >>> entry = ManifestEntry("x", whole, "<f4", TensorSpec((2, 3), "bfloat8_b"), ByteRange("o", 0, 1088, NO_HASH))
    >>> assign_shared_slots("o", [entry], "0.0.1")[0].start % 64
    0
    """
    ends = [0, *accumulate(entry.spec.nbytes for entry in entries)]
    placed = [
        replace(entry, output=replace(entry.output, start=start, end=end))
        for entry, (start, end) in zip(entries, pairwise(ends), strict=True)
    ]
    begin = len(encode_safetensors_head(placed, version))
    return [OutputSlot(file, begin + start, begin + end, shared=True) for start, end in pairwise(ends)]


def encode_safetensors_head(entries: list[ManifestEntry], version: str) -> bytes:
    """Return the bytes before the data of a tiled safetensors file: its header, with the manifest in it.

    >>> encode_safetensors_head([], "0.0.1")[8:9]
    b'{'
    """
    listed = [
        SafetensorsEntry(entry.name, "U8", (entry.spec.nbytes,), entry.output.start, entry.output.end)
        for entry in entries
    ]
    manifest = ConversionManifest("safetensors", version, {entry.name: entry for entry in entries})
    start = encode_header(listed, {METADATA_KEY: manifest.to_bytes().decode()})
    if len(start) > MAX_HEADER_BYTES:
        raise FileFormatError(
            f"{len(entries)} tensors need a header of {len(start)} bytes, more than the {MAX_HEADER_BYTES} of a"
            " safetensors file; write tensorbin files instead"
        )
    return start


@dataclass(frozen=True)
class ConversionItem:
    """One tensor to convert.

    >>> [field for field in ConversionItem.__dataclass_fields__]
    ['source', 'target', 'slot', 'source_file', 'version', 'to']
    """

    source: StoredTensor
    target: ConversionTarget
    slot: OutputSlot
    source_file: str
    version: str
    to: str

    @property
    def name(self) -> str:
        """Return the name of the tensor."""
        return self.source.name

    @property
    def bytes_in(self) -> int:
        """Return the bytes of the source."""
        return self.source.nbytes

    @property
    def bytes_out(self) -> int:
        """Return the bytes that are written, headers included."""
        return self.slot.size - (self.slot.start if self.slot.shared else 0)

    @cached_property
    def key(self) -> str:
        """Return a hash that identifies the work: source, spec, slot and version."""
        start, end = self.source.byte_range
        identity: dict[str, Any] = {
            "source": [self.source_file, start, end, self.source.kind, list(self.source.shape), self.name],
            "laid": [list(self.source.order), self.source.swapped],
            "spec": spec_to_json(self.target.spec),
            "order": list(self.target.order),
            "pad": repr(self.target.pad_value),
            "output": [self.to, self.slot.file, self.slot.start, self.slot.size],
            "tilewright": self.version,
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def entry(self, source_hash: str = NO_HASH, output_hash: str = NO_HASH, begin: int = 0) -> ManifestEntry:
        """Return the manifest entry; in a shared file, offsets count from `begin`."""
        slot, target = self.slot, self.target
        start = slot.start if slot.shared else 0
        turned = target.order != tuple(range(len(target.order)))
        return ManifestEntry(
            self.name,
            ByteRange(self.source_file, *self.source.byte_range, source_hash),
            self.source.kind,
            target.spec,
            ByteRange(slot.file, start - begin, slot.size - begin, output_hash),
            target.order if turned else None,
            target.pad_value,
        )


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """The record of a finished item: the hashes, and the times and size that reveal a change.

    >>> ItemRecord.from_json(ItemRecord("k", "a", "b", 1, 2, 3).to_json()).output_hash
    'b'
    """

    key: str
    source_hash: str
    output_hash: str
    source_time: int
    source_size: int
    output_time: int

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data.

        >>> ItemRecord("k", "a", "b", 1, 2, 3).to_json()["key"]
        'k'
        """
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Any) -> ItemRecord | None:
        """Return the record of plain data, None if it is not one.

        >>> ItemRecord.from_json({}) is None
        True
        """
        try:
            return cls(**{name: data[name] for name in cls.__slots__})
        except (KeyError, TypeError):
            return None


def final_path(out: Path, slot: OutputSlot) -> Path:
    """Return the path of the finished file of a slot.

    >>> final_path(Path("out"), OutputSlot("x.npy", 0, 0)).as_posix()
    'out/x.npy'
    """
    return out if slot.shared else out / slot.file

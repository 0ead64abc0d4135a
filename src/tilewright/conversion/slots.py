# SPDX-License-Identifier: Apache-2.0
"""Slots: where each tensor goes in the files of a conversion, and all that is there besides its bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import FileFormatError
from ..files.bank_image import IMAGE_SUFFIX, INDEX_SUFFIX, BankImage
from ..files.conversion_manifest import ByteRange, ConversionManifest, ManifestEntry
from ..files.file_names import unique_file_names
from ..files.safetensors import MAX_HEADER_BYTES, METADATA_KEY, SafetensorsEntry, encode_header
from ..files.tensorbin import encode_file_start
from ..formats import ScalarFormat
from ..memory import TensorSpec

NO_HASH = "0" * 64


@dataclass(frozen=True)
class Slot:
    """A place in a file: the pages start at `start`, after `head`. A file that several tensors share has no head here.

    `image` scatters the pages over banks; `beside` are small files, by name, that belong to this one.

    >>> Slot("x.tensorbin", 64, 128, b"head").size
    128
    """

    file: str
    start: int
    size: int
    head: bytes = b""
    shared: bool = False
    image: BankImage | None = None
    beside: Mapping[str, bytes] = field(default_factory=dict)


def own_slots(names: list[str], specs: list[TensorSpec], to: str) -> list[Slot]:
    """Return a slot for each tensor in a file of its own.

    >>> own_slots(["a/b"], [TensorSpec((4, 8), "bfloat8_b")], "tensorbin")[0].file
    'a%2Fb.tensorbin'
    """
    files = unique_file_names(names)
    return [_own_slot(files[name], spec, to) for name, spec in zip(names, specs, strict=True)]


def _own_slot(file: str, spec: TensorSpec, to: str) -> Slot:
    if to == "banks":
        image = BankImage(spec)
        beside = {file + INDEX_SUFFIX: image.index()}
        return Slot(file + IMAGE_SUFFIX, 0, image.nbytes, image=image, beside=beside)
    head = encode_file_start(spec) if to == "tensorbin" else _npy_head(spec)
    return Slot(f"{file}.{to}", len(head), len(head) + spec.nbytes, head)


def _npy_head(spec: TensorSpec) -> bytes:
    """Return the header of an `.npy` file; what NumPy has no name for is kept as unsigned integers of its size."""
    if not isinstance(spec.dtype, ScalarFormat):
        raise TypeError(f"{spec.dtype} is no type of NumPy")
    own = spec.dtype.dtype
    named = own if own.kind in "biuf" and own.isbuiltin == 1 else np.dtype(f"u{own.itemsize}")
    header: dict[str, Any] = {"descr": named.str, "fortran_order": False, "shape": spec.shape.logical}
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def shared_slots(file: str, entries: list[ManifestEntry], version: str) -> list[Slot]:
    """Return a slot for each tensor in one safetensors file; its header has a known size before any hash is known.

    >>> whole = ByteRange("m.npz", 0, 24, NO_HASH)
    >>> entry = ManifestEntry("x", whole, "<f4", TensorSpec((2, 3), "bfloat8_b"), ByteRange("o", 0, 1088, NO_HASH))
    >>> shared_slots("o", [entry], "0.0.1")[0].start % 64
    0
    """
    begin = len(safetensors_start(entries, version))
    return [Slot(file, begin + entry.output.start, begin + entry.output.end, shared=True) for entry in entries]


def laid_end_to_end(entries: list[ManifestEntry]) -> list[ManifestEntry]:
    """Return entries whose outputs follow each other, counted from the first byte of data of their file.

    >>> laid_end_to_end([])
    []
    """
    found, end = [], 0
    for entry in entries:
        start, end = end, end + entry.spec.nbytes
        found.append(replace(entry, output=ByteRange(entry.output.file, start, end, entry.output.sha256)))
    return found


def safetensors_start(entries: list[ManifestEntry], version: str) -> bytes:
    """Return all that comes before the data of a tiled safetensors file: its header, with the manifest in it.

    >>> safetensors_start([], "0.0.1")[8:9]
    b'{'
    """
    listed = [
        SafetensorsEntry(each.name, "U8", (each.spec.nbytes,), each.output.start, each.output.end) for each in entries
    ]
    manifest = ConversionManifest("safetensors", version, {each.name: each for each in entries})
    start = encode_header(listed, {METADATA_KEY: manifest.to_bytes().decode()})
    if len(start) > MAX_HEADER_BYTES:
        raise FileFormatError(
            f"{len(entries)} tensors need a header of {len(start)} bytes, and a safetensors file has at most"
            f" {MAX_HEADER_BYTES}; write tensorbin files instead"
        )
    return start

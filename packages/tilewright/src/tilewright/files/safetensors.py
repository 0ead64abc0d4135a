# SPDX-License-Identifier: Apache-2.0
"""Safetensors files: a header that is validated completely before it is used, and mapped data.

8 bytes    size of the header, little-endian
header     JSON: for each name the element type, the shape, and where the bytes are; free text in __metadata__
data       the elements, little-endian, rows first, without gaps
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from .._files import replace_file
from .._json import expect_integer, expect_integers, expect_keys, expect_string, parse_json
from ..errors import FileFormatError
from ..formats import SCALAR_FORMATS, ScalarFormat, format_of
from .file_names import validate_tensor_name
from .source_file import FilePath, SourceFile, as_source_file
from .stored_tensor import StoredTensor
from .strict_json import spec_from_json

MAX_HEADER_BYTES = 100_000_000  # what the format allows
SIZE_BYTES = 8
METADATA = "__metadata__"
METADATA_KEY = "tilewright"  # the key of the metadata that holds our specs

# The bits of an element, and its number format. Types without a format can only be read as bytes.
KINDS: dict[str, tuple[int, ScalarFormat | None]] = {
    **{
        kind: (SCALAR_FORMATS[name].bits, SCALAR_FORMATS[name])
        for kind, name in {
            "BOOL": "bool",
            "U8": "uint8",
            "I8": "int8",
            "U16": "uint16",
            "I16": "int16",
            "U32": "uint32",
            "I32": "int32",
            "U64": "uint64",
            "I64": "int64",
            "F8_E4M3": "float8_e4m3",
            "F8_E5M2": "float8_e5m2",
            "F16": "float16",
            "BF16": "bfloat16",
            "F32": "float32",
            "F64": "float64",
        }.items()
    },
    "F4": (4, None),
    "F6_E2M3": (6, None),
    "F6_E3M2": (6, None),
    "F8_E8M0": (8, None),
    "F8_E4M3FNUZ": (8, None),
    "F8_E5M2FNUZ": (8, None),
    "C64": (64, None),
}


class SafetensorsEntry(NamedTuple):
    """One tensor of a header; start and end count from the first byte of data.

    >>> SafetensorsEntry("x", "F32", (2, 3), 0, 24).shape
    (2, 3)
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    start: int
    end: int


def parse_header(data: bytes | memoryview, data_bytes: int) -> tuple[list[SafetensorsEntry], dict[str, str]]:
    """Return the tensors of a header in the order of their bytes, and its metadata; `data_bytes` follow the header.

    >>> parse_header(b'{"x": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}', 3)
    ([SafetensorsEntry(name='x', kind='U8', shape=(3,), start=0, end=3)], {})
    """
    if bytes(data[:1]) != b"{":
        raise FileFormatError("the header does not start with '{'")
    result = parse_json(data, "the header")
    metadata = result.pop(METADATA, {})
    if not isinstance(metadata, dict):
        raise FileFormatError(f"expected an object as {METADATA}, got {repr(metadata)[:40]}")
    metadata = {
        expect_string(k, "a key of the metadata"): expect_string(v, f"metadata {k!r}") for k, v in metadata.items()
    }
    entries = sorted([_parse_entry(*item) for item in result.items()], key=attrgetter("start", "end"))
    reached = 0
    for entry in entries:
        if entry.start != reached:
            problem = "overlaps the tensor before it" if entry.start < reached else f"leaves a gap from byte {reached}"
            raise FileFormatError(f"{entry.name!r} at bytes {entry.start} to {entry.end} {problem}")
        reached = entry.end
    if reached != data_bytes:
        remedy = "; the file is incomplete: download or copy it again" if data_bytes < reached else ""
        raise FileFormatError(f"the tensors take {reached} bytes, but {data_bytes} follow the header{remedy}")
    return entries, metadata


def _parse_entry(name: Any, fields: Any) -> SafetensorsEntry:
    name = expect_string(name, "a tensor's name")
    try:  # all at once: a checkpoint may have 100,000 entries
        kind, shape, (start, end) = fields["dtype"], fields["shape"], fields["data_offsets"]
        numbers = [*shape, start, end]
        is_sound = len(shape) <= 64 and {*map(type, numbers)} == {int} and 0 <= min(numbers) <= max(numbers) < 1 << 63
        is_known = len(fields) == 3
        if is_known and is_sound and type(shape) is list and prod(shape) * KINDS[kind][0] == 8 * (end - start):
            return SafetensorsEntry(name, kind, tuple(shape), start, end)
    except (TypeError, ValueError, KeyError):
        pass  # the rest says what is wrong
    if not isinstance(fields, dict):
        raise FileFormatError(f"expected an object for {name!r}, got {repr(fields)[:40]}")
    missing = {"dtype", "shape", "data_offsets"} - set(fields)
    if missing:
        raise FileFormatError(f"{name!r} has no {', '.join(sorted(missing))}")
    expect_keys(fields, {"dtype", "shape", "data_offsets"}, repr(name))
    kind = expect_string(fields["dtype"], f"the dtype of {name!r}")
    if kind not in KINDS:
        raise FileFormatError(f"{name!r} has unknown dtype {kind[:40]!r}; known dtypes: {', '.join(KINDS)}")
    shape = expect_integers(fields["shape"], f"the shape of {name!r}")
    start, end = _parse_offsets(fields["data_offsets"], name)
    bits = prod(shape) * KINDS[kind][0]
    if bits % 8 or end - start != bits // 8:
        raise FileFormatError(
            f"{name!r} of shape {list(shape)} and dtype {kind} takes {bits / 8:g} bytes, but its data_offsets span"
            f" {end - start}"
        )
    return SafetensorsEntry(name, kind, shape, start, end)


def _parse_offsets(value: Any, name: str) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise FileFormatError(f"expected [start, end] as data_offsets of {name!r}, got {repr(value)[:40]}")
    start, end = [expect_integer(n, f"a data offset of {name!r}") for n in value]
    return start, end


def read_safetensors(path: FilePath | SourceFile) -> tuple[list[StoredTensor], dict[str, str]]:
    """Return the tensors of a safetensors file, and its metadata; tensors that `convert` wrote have their spec.

    >>> import tempfile
    >>> from pathlib import Path
    >>> header = b'{"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.safetensors")
    ...     _ = path.write_bytes(len(header).to_bytes(8, "little") + header + bytes.fromhex("803f0040"))
    ...     read_safetensors(path)[0][0].read().astype(float).tolist()
    [1.0, 2.0]
    """
    file = as_source_file(path)
    if file.size < SIZE_BYTES:
        raise FileFormatError(f"not a safetensors file: {file.size} bytes are too few for the 8-byte header size")
    size = int.from_bytes(file.read(0, SIZE_BYTES), "little")
    available = file.size - SIZE_BYTES
    if size > min(MAX_HEADER_BYTES, available):
        raise FileFormatError(f"the header size is {size}, expected at most {min(MAX_HEADER_BYTES, available)}")
    entries, metadata = parse_header(file.read(SIZE_BYTES, size), available - size)
    start = SIZE_BYTES + size
    specs = _parse_own_metadata(metadata)
    missing = specs.keys() - {entry.name for entry in entries}
    if missing:
        raise FileFormatError(f"the metadata describes {sorted(missing)[0]!r}, which is not in the file")
    return [_make_tensor(entry, file, start, specs.get(entry.name)) for entry in entries], metadata


def _parse_own_metadata(metadata: dict[str, str]) -> dict[str, Any]:
    """Return the entry of each tensor in tilewright's own metadata."""
    if METADATA_KEY not in metadata:
        return {}
    own = parse_json(metadata[METADATA_KEY], f"the metadata {METADATA_KEY!r}")
    tensors = own.get("tensors") if isinstance(own, dict) else None
    if not isinstance(tensors, dict) or not all(isinstance(tensor, dict) for tensor in tensors.values()):
        raise FileFormatError(f"the metadata {METADATA_KEY!r} lists no tensors")
    return tensors


def _make_tensor(
    entry: SafetensorsEntry, file: SourceFile, data_start: int, metadata: dict[str, Any] | None
) -> StoredTensor:
    if metadata is None:
        element = KINDS[entry.kind][1]
        nbytes = entry.end - entry.start
        return StoredTensor.dense(entry.name, entry.kind, entry.shape, element, file, data_start + entry.start, nbytes)
    spec = spec_from_json(metadata.get("spec"))
    if entry.kind != "U8" or entry.shape != (spec.nbytes,):
        raise FileFormatError(
            f"expected U8 of shape [{spec.nbytes}] for {entry.name!r} ({spec}), got {entry.kind} of shape"
            f" {list(entry.shape)}"
        )
    made = StoredTensor.paged(entry.name, entry.kind, spec, file, data_start + entry.start)
    order = metadata.get("order")
    return made if order is None else replace(made, source_order=expect_integers(order, "the order"))


def encode_header(entries: list[SafetensorsEntry], metadata: dict[str, str]) -> bytes:
    """Return the bytes before the data of a safetensors file: header size and header, padded to 64.

    >>> len(encode_header([SafetensorsEntry("x", "U8", (3,), 0, 3)], {"made": "here"})) % 64
    0
    """
    listed: dict[str, Any] = {METADATA: metadata} if metadata else {}
    for each in entries:
        listed[each.name] = {"dtype": each.kind, "shape": list(each.shape), "data_offsets": [each.start, each.end]}
    header = json.dumps(listed, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-(SIZE_BYTES + len(header)) % 64)
    return len(header).to_bytes(SIZE_BYTES, "little") + header


_TYPE_OF_FORMAT = {format_.name: kind for kind, (_, format_) in KINDS.items() if format_ is not None}


def write_safetensors(path: FilePath, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays by name to a safetensors file at `path`, atomically; `metadata` is free text.

    >>> import tempfile
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_safetensors(f"{folder}/x.safetensors", {"a": np.arange(3, dtype=np.int16)})
    ...     open_tensors(folder)["a"].read().tolist()
    [0, 1, 2]
    """
    entries, values, reached = [], [], 0
    for name, array in arrays.items():
        if validate_tensor_name(name) == METADATA:
            raise FileFormatError(f"a tensor cannot be named {METADATA!r}, which the format reserves")
        result = np.asarray(array)
        result = np.ascontiguousarray(result).reshape(result.shape)  # the former makes vectors of scalars
        plain = result.astype(result.dtype.newbyteorder("<"), copy=False)
        end = reached + plain.nbytes
        entries.append(SafetensorsEntry(name, _TYPE_OF_FORMAT[format_of(plain).name], plain.shape, reached, end))
        values.append(plain)
        reached = end
    with replace_file(path) as file:
        file.write(encode_header(entries, dict(metadata or {})))
        for value in values:
            file.write(value.reshape(-1).view(np.uint8).data)

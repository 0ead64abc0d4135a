# SPDX-License-Identifier: Apache-2.0
"""GGUF files of llama.cpp: plain tensors, and blocks of ggml that are decoded when read; several parts as one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._integers import ceil_div
from ..copying import can_decode, decode_codes
from ..errors import FileFormatError
from ..formats import GGML_TYPES, GgmlType, Singles, uint8
from ..layout import Box
from .file_names import resolve_inside
from .gguf_header import SCALAR_TYPES, GgufEntry, GgufHeader, read_gguf_header, text_of
from .quantized_tensor import QuantizedTensor
from .source_file import SourceFile
from .stored_tensor import StoredTensor

SUFFIX = ".gguf"
SPLIT_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")
_MAX_PARTS = 10_000
_MAX_NAMED = 4


@dataclass(frozen=True)
class GgmlBlocks:
    """A tensor of blocks of a ggml `kind`: their bytes are those of `records`, [..., bytes of a row].

    >>> from tilewright.files.stored_arrays import store_arrays
    >>> stored = store_arrays({"w": np.array([[0, 0x3C, *range(32)]], np.uint8)})
    >>> GgmlBlocks(GGML_TYPES[8], (1, 32), stored["w"]).read(Box((0, 3), (1, 2))).tolist()
    [[3.0, 4.0]]
    """

    kind: GgmlType
    shape: tuple[int, ...]
    records: StoredTensor

    @property
    def name(self) -> str:
        """Return the name of the type."""
        return self.kind.name

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """Return the bytes of the blocks."""
        return (self.records,)

    def read(self, box: Box, out: Singles | None = None) -> Singles:
        """Return the values in a `box`, in `out` where that saves a copy; only the blocks that it touches are read."""
        if box.empty:
            return np.empty(box.shape, np.float32)
        (*lead, left), (*extents, columns) = box.offset, box.shape
        first, last = left // self.kind.elements, ceil_div(left + columns, self.kind.elements)
        size = self.kind.nbytes
        window = Box((*lead, first * size), (*extents, (last - first) * size))
        rows = np.ascontiguousarray(self.records.read_stored(window)).reshape(-1, window.shape[-1])
        width = (last - first) * self.kind.elements
        if can_decode(self.name):
            if out is not None and width == columns:
                decode_codes(self.name, rows, width, out=out.reshape(-1, width))
                return out
            values = decode_codes(self.name, rows, width)
        else:
            values = self.kind.decode(rows.reshape(-1, size))
        start = left - first * self.kind.elements
        return values.reshape(*extents, -1)[..., start : start + columns]

    def locate(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offset of the block of the element `at` a coordinate; its scales are in it."""
        index = int(np.ravel_multi_index(at, self.shape))
        return self.records.byte_range[0] + index // self.kind.elements * self.kind.nbytes, None


def read_gguf(file: SourceFile) -> tuple[list[StoredTensor], dict[str, str]]:
    """Return the tensors of a GGUF `file`, and its metadata as text; of a model in several files, those of all parts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.gguf")
    ...     _ = path.write_bytes(b"GGUF" + bytes([3, 0, 0, 0]) + bytes(16))
    ...     read_gguf(SourceFile(path))
    ([], {})
    """
    header = read_gguf_header(file)
    count = _split_number(header, "split.count")
    parts = [(file, header)] if count < 2 else _read_parts(file.path, count)
    tensors = [_make_tensor(entry, each) for each, part in parts for entry in part.entries]
    metadata = {key: text_of(value) for _, part in reversed(parts) for key, value in part.metadata.items()}
    return tensors, metadata


def choose_gguf_file(names: Iterable[str]) -> str | None:
    """Return the one GGUF file of the `names` in a directory, the first of several parts; None if there is none.

    >>> choose_gguf_file(["config.json", "m-00002-of-00002.gguf", "m-00001-of-00002.gguf"])
    'm-00001-of-00002.gguf'
    """
    files = sorted([name for name in names if name.lower().endswith(SUFFIX)])
    models = {SPLIT_NAME.sub(r"\1-of-\3", name): name for name in reversed(files)}
    if len(models) > 1:
        shown = ", ".join(sorted(models.values())[:_MAX_NAMED])
        raise FileFormatError(f"the directory has {len(models)} GGUF models: {shown}; give one of them")
    return next(iter(models.values()), None)


def _split_number(header: GgufHeader, key: str) -> int:
    value = header.metadata.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FileFormatError(f"expected a number as {key}, got {text_of(value)[:40]}")
    return value


def _read_parts(path: Path, count: int) -> list[tuple[SourceFile, GgufHeader]]:
    """Return the parts of a model that is split into several files, in their order."""
    found = SPLIT_NAME.fullmatch(path.name)
    if found is None or int(found[3]) != count or count > _MAX_PARTS:
        raise FileFormatError(
            f"{path} is one of {count} parts, which are found by names such as model-00001-of-{count:05}.gguf; give it"
            " back that name"
        )
    parts = []
    for number in range(1, count + 1):
        name = f"{found[1]}-{number:05}-of-{found[3]}.gguf"
        try:
            file = SourceFile(resolve_inside(path.parent, name))
        except FileNotFoundError:
            raise FileFormatError(f"{path} is one of {count} parts, of which {name} does not exist") from None
        header = read_gguf_header(file)
        own = (_split_number(header, "split.no"), _split_number(header, "split.count"))
        if own != (number - 1, count):
            raise FileFormatError(
                f"{file.path} says that it is part {own[0] + 1} of {own[1]}, but its name says {number} of {count}"
            )
        parts.append((file, header))
    tensors = sum([len(header.entries) for _, header in parts])
    expected = _split_number(parts[0][1], "split.tensors.count")
    if expected not in (0, tensors):
        raise FileFormatError(f"the parts of {path} hold {tensors} tensors; expected {expected}")
    return parts


def _make_tensor(entry: GgufEntry, file: SourceFile) -> StoredTensor:
    start, size = entry.start, entry.end - entry.start
    if entry.type in SCALAR_TYPES:
        element = SCALAR_TYPES[entry.type][1]
        return StoredTensor.dense(entry.name, entry.kind, entry.shape, element, file, start, size)
    kind = GGML_TYPES[entry.type]
    if kind.unpack is None:
        return StoredTensor.dense(entry.name, kind.name, entry.shape, None, file, start, size)
    *rows, columns = entry.shape
    stored = (*rows, columns // kind.elements * kind.nbytes)
    records = StoredTensor.dense(entry.name, kind.name, stored, uint8, file, start, size)
    return QuantizedTensor.of(entry.name, GgmlBlocks(kind, entry.shape, records))

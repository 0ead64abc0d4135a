# SPDX-License-Identifier: Apache-2.0
"""The manifest of converted files: each tensor's source, spec, output and hashes; and the tensors it lists.

It depends only on the content: converting the same sources in the same way gives the same manifest, byte for byte,
wherever and whenever that is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._files import as_path
from .._json import expect_integer, expect_integers, expect_keys, expect_string, parse_json
from ..errors import FileFormatError, MemoryConfigError
from ..formats import Format
from ..memory import Integers, Mesh, TensorSpec
from .npy import read_npy
from .source import ByteArray, FilePath, SourceFile, read_json, resolve_inside
from .spec_json import spec_from_json, spec_to_json
from .stored_tensor import Runs, StoredTensor
from .tensorbin import read_tensorbin_tensor

# Bank images: the bytes of a tensor as each bank or core holds them, one bank after the other in one file.

INDEX_SUFFIX, IMAGE_SUFFIX = ".banks.json", ".banks.bin"
_MAX_INDEX_BYTES = 10_000_000


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
        """Return the bytes of one bank.

        >>> BankImage(TensorSpec((64, 640), "bfloat8_b", chip="wormhole_n150")).bank_bytes
        4352
        """
        return self.spec.bytes_per_bank

    @cached_property
    def nbytes(self) -> int:
        """Return the bytes of the image.

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
        slots = page_map.slot_of_page(pages)
        layouts = (page_map.position_of_slot, page_map.offset_of_slot)
        position, address = [np.broadcast_to(layout(slots), pages.shape) for layout in layouts]
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
        size, step = self.spec.page_bytes, self.spec.aligned_page_bytes
        first, count = start // size, len(pages) // size
        offsets = self.page_offsets(np.arange(first, first + count))
        order = np.argsort(offsets, kind="stable")
        rows = np.zeros((count, step), np.uint8)
        rows[:, :size] = pages.reshape(count, size)[order]
        offsets = offsets[order]
        cuts = [0, *(np.flatnonzero(np.diff(offsets) != step) + 1).tolist(), count]
        flat = rows.reshape(-1)
        return [(int(offsets[a]), flat[a * step : b * step]) for a, b in pairwise(cuts) if a < b]

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
    """Return the tensor of a bank image; `path` is that of its index.

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
    result = read_json(index, "the index of a bank image", _MAX_INDEX_BYTES)
    image = BankImage(spec_from_json(result.get("spec") if isinstance(result, dict) else None))
    data = SourceFile(index.with_name(index.name[: -len(INDEX_SUFFIX)] + IMAGE_SUFFIX))
    try:
        size = image.nbytes
    except MemoryConfigError as problem:
        raise FileFormatError(f"invalid index: {problem}") from None
    for key in sorted(result.keys() | (facts := json.loads(image.index_json())).keys()):
        if result.get(key, facts.get(key)) != facts.get(key):
            raise FileFormatError(f"invalid index: {key} is not as the spec says; write the image again")
    if data.size != size:
        raise FileFormatError(f"{data.path} has {data.size} bytes, but the image of {image.spec} takes {size}")
    return StoredTensor.paged(name, image.spec.dtype.name, image.spec, data, 0, image)


MANIFEST_NAME = "tilewright.json"
MARKER_PREFIX = ".weights_complete."  # of files that say that a weight cache is complete, for its readers
EXCEPTIONAL = frozenset({"nan", "infinite", "out_of_range"})  # values that are counted
_VERSION = 1
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A byte range of a file and its SHA-256; `file` has no directories, and is empty for the manifest's own file.

    >>> ByteRange("model.safetensors", 64, 88, "00" * 32).size
    24
    """

    file: str
    start: int
    end: int
    sha256: str

    @property
    def size(self) -> int:
        """Return the number of bytes.

        >>> ByteRange("x", 10, 12, "").size
        2
        """
        return self.end - self.start

    def to_json(self) -> dict[str, Any]:
        """Return the range as plain data.

        >>> ByteRange("x", 10, 12, "").to_json()
        {'file': 'x', 'range': [10, 12], 'sha256': ''}
        """
        named = {"file": self.file} if self.file else {}  # a file that is renamed must not hold its old name
        return {**named, "range": [self.start, self.end], "sha256": self.sha256}

    @classmethod
    def from_json(cls, data: Any) -> ByteRange:
        """Return the range of plain data.

        >>> ByteRange.from_json({"file": "x", "range": [0, 2], "sha256": "00" * 32}).end
        2
        """
        expect_keys(data, {"file", "range", "sha256"}, "a byte range")
        ends = expect_integers(data.get("range"), "byte range")
        digest = expect_string(data.get("sha256"), "a SHA-256")
        if len(ends) != 2 or ends[0] > ends[1]:
            raise FileFormatError(f"expected [start, end] as byte range, got {list(ends)}")
        if len(digest) != 64 or not set(digest) <= _HEX:
            raise FileFormatError(f"expected 64 hexadecimal digits as SHA-256, got {digest[:80]!r}")
        return cls(expect_string(data.get("file", ""), "a file name"), *ends, digest)


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A tensor of the source: its bytes, and the file's name of their type.

    A quantised tensor has other `sections`, (file, start, end) each; the hash is that of all bytes in this order.

    >>> SourceEntry(ByteRange("m.npz", 64, 88, "00" * 32), "F32").to_json()["dtype"]
    'F32'
    """

    bytes: ByteRange
    kind: str
    sections: tuple[tuple[str, int, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the source as plain data.

        >>> sorted(SourceEntry(ByteRange("m.npz", 64, 88, "00" * 32), "F32").to_json())
        ['dtype', 'file', 'range', 'sha256']
        """
        sections = [{"file": file, "range": [start, end]} for file, start, end in self.sections]
        return {**self.bytes.to_json(), "dtype": self.kind, **({"sections": sections} if sections else {})}

    @classmethod
    def from_json(cls, data: Any) -> SourceEntry:
        """Return the source of plain data.

        >>> SourceEntry.from_json({"file": "x", "range": [0, 2], "sha256": "00" * 32, "dtype": "U8"}).kind
        'U8'
        """
        expect_keys(data, {"file", "range", "sha256", "dtype", "sections"}, "a source")
        first = ByteRange.from_json({key: value for key, value in data.items() if key not in ("dtype", "sections")})
        kind = expect_string(data.get("dtype"), "the dtype of the source")
        listed = data.get("sections", [])
        if not isinstance(listed, list):
            raise FileFormatError(f"expected a list of sections of the source, got {repr(listed)[:40]}")
        return cls(first, kind, tuple([_parse_section(each) for each in listed]))


def _parse_section(data: Mapping[str, Any]) -> tuple[str, int, int]:
    expect_keys(data, {"file", "range"}, "a section")
    ends = expect_integers(data.get("range"), "byte range")
    if len(ends) != 2 or ends[0] > ends[1]:
        raise FileFormatError(f"expected [start, end] as byte range, got {list(ends)}")
    return expect_string(data.get("file", ""), "a file name"), ends[0], ends[1]


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One tensor: its sources by name, spec, output, padding value, and how it is put together.

    A tensor that is one source has the `order` of its dimensions, or None if that is the source's. One that is put
    together has `value`, an expression over its sources, and `through`, the formats that its values are rounded to on
    the way. `mesh` is how devices share it; `spec` is then that of each part. `exceptional` counts values of the source
    that are NaN, infinite or out of range, where there are any.

    >>> made = ByteRange("x.tensorbin", 0, 2112, "11" * 32)
    >>> source = SourceEntry(ByteRange("m.npz", 64, 88, "00" * 32), "F32")
    >>> entry = ManifestEntry("x", {"x": source}, TensorSpec((2, 3), "uint8"), made)
    >>> ManifestEntry.from_json("x", entry.to_json()) == entry
    True
    """

    name: str
    sources: Mapping[str, SourceEntry]
    spec: TensorSpec
    output: ByteRange
    order: tuple[int, ...] | None = None
    pad_value: float = 0
    value: str | None = None
    through: tuple[str, ...] = ()
    mesh: Mesh | None = None
    exceptional: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the entry as plain data.

        >>> made = ByteRange("x.tensorbin", 0, 2112, "11" * 32)
        >>> source = SourceEntry(ByteRange("m.npz", 64, 88, "00" * 32), "F32")
        >>> sorted(ManifestEntry("x", {"x": source}, TensorSpec((2, 3)), made).to_json())
        ['output', 'source', 'spec']
        """
        listed = {name: source.to_json() for name, source in self.sources.items()}
        result: dict[str, Any] = {"source": listed[self.name]} if self.value is None else {"sources": listed}
        result |= {"spec": spec_to_json(self.spec), "output": self.output.to_json()}
        if self.order is not None:
            result["order"] = list(self.order)
        if self.pad_value:
            result["pad_value"] = self.pad_value
        if self.value is not None:
            result["value"] = self.value
        if self.through:
            result["through"] = list(self.through)
        if self.mesh is not None:
            result["mesh"] = self.mesh.to_json()
        if self.exceptional:
            result["exceptional"] = dict(self.exceptional)
        return result

    @classmethod
    def from_json(cls, name: str, data: Any) -> ManifestEntry:
        """Return the entry of plain data, or raise a `FileFormatError`.

        >>> try:
        ...     ManifestEntry.from_json("x", {"source": {}})
        ... except FileFormatError as problem:
        ...     print(problem)
        entry 'x': expected a list of at most 64 integers as byte range, got None
        """
        try:
            known = {"spec", "output", "order", "pad_value", "value", "through", "mesh", "exceptional"}
            of_source = "sources" if isinstance(data, dict) and "value" in data else "source"
            expect_keys(data, {of_source, *known}, "it")
            order, pad_value, value = data.get("order"), data.get("pad_value", 0), data.get("value")
            if type(pad_value) not in (int, float):
                raise FileFormatError(f"expected a number as pad_value, got {repr(pad_value)[:40]}")
            sources = {name: data.get("source")} if value is None else data.get("sources")
            through = data.get("through", [])
            if not isinstance(sources, dict) or not isinstance(through, list):
                raise FileFormatError("expected an object as sources and a list as through")
            entries = {key: SourceEntry.from_json(source) for key, source in sources.items()}
            spec, mesh = spec_from_json(data.get("spec")), data.get("mesh")
            counts = data.get("exceptional", {})
            if not isinstance(counts, dict) or not set(counts) <= EXCEPTIONAL:
                raise FileFormatError(
                    f"expected counts of {', '.join(sorted(EXCEPTIONAL))} as exceptional, got {repr(counts)[:40]}"
                )
            return cls(
                name,
                entries,
                spec,
                ByteRange.from_json(data.get("output")),
                None if order is None else expect_integers(order, "the order"),
                pad_value,
                None if value is None else expect_string(value, "the value"),
                tuple([expect_string(each, "a format") for each in through]),
                None if mesh is None else Mesh.from_json(mesh, spec.shape.logical),
                {key: expect_integer(count, "a count") for key, count in counts.items()},
            )
        except FileFormatError as problem:
            raise FileFormatError(f"entry {name!r}: {problem}") from None


@dataclass(frozen=True, slots=True)
class ConversionManifest:
    """The result of a conversion: the kind of files, the version of tilewright, and an entry per tensor.

    `recipe` is what a weight cache was made from: the recipe, its revision, the machine and so on, as plain data.
    `metadata` is the free text that the sources carried.

    >>> ConversionManifest("tensorbin", "0.0.1").to_bytes()[:40]
    b'{"manifest": 1,\\n "tilewright": "0.0.1",\\n'
    """

    to: str
    version: str
    entries: Mapping[str, ManifestEntry] = field(default_factory=dict)
    recipe: Mapping[str, Any] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON, one line per tensor, in the order of the entries.

        >>> ConversionManifest.from_bytes(ConversionManifest("npy", "0.0.1").to_bytes()) == ConversionManifest(
        ...     "npy", "0.0.1"
        ... )
        True
        """
        lines = [f"  {json.dumps(name)}: {json.dumps(entry.to_json())}" for name, entry in self.entries.items()]
        tensors = "{\n" + ",\n".join(lines) + "\n }" if lines else "{}"
        head = f'{{"manifest": {_VERSION},\n "tilewright": {json.dumps(self.version)},\n "to": {json.dumps(self.to)},\n'
        recipe = "" if self.recipe is None else f' "recipe": {json.dumps(self.recipe)},\n'
        metadata = f' "metadata": {json.dumps(dict(self.metadata))},\n' if self.metadata else ""
        return f'{head}{recipe}{metadata} "tensors": {tensors}}}\n'.encode()

    @classmethod
    def from_bytes(cls, data: bytes | str) -> ConversionManifest:
        """Return the manifest of the JSON text `data`, or raise a `FileFormatError`.

        >>> try:
        ...     ConversionManifest.from_bytes(b"{}")
        ... except FileFormatError as problem:
        ...     print(problem)
        expected an integer from 0 to 1 as manifest version, got None
        """
        return cls.from_json(parse_json(data, "the manifest"))

    @classmethod
    def from_json(cls, result: Any) -> ConversionManifest:
        """Return the manifest of plain data, or raise a `FileFormatError`."""
        if not isinstance(result, dict):
            raise FileFormatError(f"expected an object as manifest, got {repr(result)[:40]}")
        expect_integer(result.get("manifest"), "manifest version", _VERSION)
        expect_keys(result, {"manifest", "tilewright", "to", "recipe", "metadata", "tensors"}, "the manifest")
        tensors = result.get("tensors")
        if not isinstance(tensors, dict):
            raise FileFormatError("the manifest lists no tensors")
        entries = {expect_string(name, "a name"): ManifestEntry.from_json(name, data) for name, data in tensors.items()}
        version, recipe = expect_string(result.get("tilewright"), "the version"), result.get("recipe")
        if recipe is not None and not isinstance(recipe, dict):
            raise FileFormatError(f"expected an object as recipe, got {repr(recipe)[:40]}")
        texts = result.get("metadata", {})
        if not isinstance(texts, dict):
            raise FileFormatError(f"expected an object as metadata, got {repr(texts)[:40]}")
        metadata = {key: expect_string(text, f"metadata {key!r}") for key, text in texts.items()}
        return cls(expect_string(result.get("to"), "the kind of files"), version, entries, recipe, metadata)


_MAX_BYTES = 100_000_000  # of a manifest


def read_manifest(path: FilePath) -> ConversionManifest:
    """Return the manifest at a path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tilewright.json")
    ...     _ = path.write_bytes(ConversionManifest("npy", "0.0.1").to_bytes())
    ...     read_manifest(path).to
    'npy'
    """
    return ConversionManifest.from_json(read_json(path, "the manifest", _MAX_BYTES))


def open_converted_tensors(
    folder: Path, manifest: ConversionManifest, follow_symlinks: bool = False
) -> list[StoredTensor]:
    """Return the tensors that a manifest lists, from their files.

    >>> open_converted_tensors(Path("nowhere"), ConversionManifest("npy", "0.0.1"))
    []
    """
    result = []
    for name, entry in manifest.entries.items():
        path = resolve_inside(folder, entry.output.file, follow_symlinks)
        try:
            result.append(open_converted_tensor(path, name, entry, manifest.to))
        except FileNotFoundError:
            raise FileFormatError(f"the manifest lists {entry.output.file!r}, which does not exist") from None
        except FileFormatError as problem:
            raise FileFormatError(f"{path}: {problem}") from None
    return result


def open_converted_tensor(path: Path, name: str, entry: ManifestEntry, to: str) -> StoredTensor:
    """Return a converted tensor from its file; raise unless the file matches its manifest entry.

    >>> try:
    ...     open_converted_tensor(Path("x.zip"), "x", None, "zip")
    ... except FileFormatError as problem:
    ...     print(problem)
    unknown kind of files 'zip' in the manifest; expected tensorbin, npy or banks
    """
    if to == "tensorbin":
        made = read_tensorbin_tensor(path, name)
        whole = entry.spec.shape.logical if entry.mesh is None else entry.mesh.global_shape
        matches = (made.host, made.shape) == (drop_chip(entry.spec), whole)
    elif to == "npy":
        made = reinterpret_format(read_npy(path, name), entry.spec.dtype)
        matches = made.shape == entry.spec.shape.logical
    elif to == "banks":
        made = read_bank_image(path.with_name(path.name[: -len(IMAGE_SUFFIX)] + INDEX_SUFFIX), name)
        matches = made.host == entry.spec
    else:
        raise FileFormatError(f"unknown kind of files {to!r} in the manifest; expected tensorbin, npy or banks")
    if not matches:
        raise FileFormatError(f"the file holds {made.host}, but the manifest says {entry.spec}")
    return made if entry.order is None else replace(made, source_order=entry.order)


def drop_chip(spec: TensorSpec) -> TensorSpec:
    """Return a spec without its chip, which tensorbin files do not store.

    >>> drop_chip(TensorSpec((4, 4), chip="n150"))
    TensorSpec((4, 4), 'bfloat16', 'row_major')
    """
    return spec if spec.chip is None else spec.with_chip(None)


def reinterpret_format(tensor: StoredTensor, element: Format) -> StoredTensor:
    """Return a dense tensor with its elements reinterpreted as a format of the same size, such as bfloat16 for uint16.

    >>> import tempfile, numpy
    >>> from tilewright import format_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(Path(folder, "x.npy"), numpy.array([0x3F80], numpy.uint16))
    ...     reinterpret_format(read_npy(Path(folder, "x.npy"), "x"), format_of("bfloat16")).read().astype(
    ...         float
    ...     ).tolist()
    [1.0]
    """
    if tensor.format == element or tensor.host is None:
        return tensor
    if getattr(element, "itemsize", 0) != tensor.dtype.itemsize:
        raise FileFormatError(f"cannot reinterpret elements of {tensor.kind} as {element}")
    return replace(tensor, format=element, host=TensorSpec(tensor.host.shape.logical, element, "row_major"))

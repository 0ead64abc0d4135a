# SPDX-License-Identifier: Apache-2.0
"""The manifest of converted files: each tensor's source, spec, output and hashes; and the tensors it lists.

It depends only on the content: converting the same sources in the same way gives the same manifest, byte for byte,
wherever and whenever that is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .._json import expect_integer, expect_integers, expect_keys, expect_string, parse_json
from ..errors import FileFormatError
from ..formats import Format
from ..memory import Mesh, TensorSpec
from .npy import read_npy
from .source import MANIFEST_NAME, FilePath, read_json, resolve_inside  # noqa: F401  (as others import it)
from .spec_json import spec_from_json, spec_to_json
from .stored_tensor import IMAGE_SUFFIX, INDEX_SUFFIX, StoredTensor, read_bank_image
from .tensorbin import read_tensorbin_tensor

MARKER_PREFIX = ".weights_complete."  # of files that mark a weight cache as complete, for its readers
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
        """The number of bytes.

        >>> ByteRange("x", 10, 12, "").size
        2
        """
        return self.end - self.start

    def to_json(self) -> dict[str, Any]:
        """Return the range as plain data.

        >>> ByteRange("x", 10, 12, "").to_json()
        {'file': 'x', 'range': [10, 12], 'sha256': ''}
        """
        file_entry = {"file": self.file} if self.file else {}  # a file that is renamed must not hold its old name
        return {**file_entry, "range": [self.start, self.end], "sha256": self.sha256}

    @classmethod
    def from_json(cls, data: object) -> ByteRange:
        """Return the range of plain data.

        >>> ByteRange.from_json({"file": "x", "range": [0, 2], "sha256": "00" * 32}).end
        2
        """
        data = expect_keys(data, {"file", "range", "sha256"}, "a byte range")
        file, start, end = _read_range(data)
        digest = expect_string(data.get("sha256"), "a SHA-256")
        if len(digest) != 64 or not set(digest) <= _HEX:
            raise FileFormatError(f"expected 64 hexadecimal digits as SHA-256, got {digest[:80]!r}")
        return cls(file, start, end, digest)


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A tensor of the source: its bytes, and the file's name of their type.

    A quantised tensor has other `sections`, (file, start, end) each; the hash covers all bytes in this order.

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
    def from_json(cls, data: object) -> SourceEntry:
        """Return the source of plain data.

        >>> SourceEntry.from_json({"file": "x", "range": [0, 2], "sha256": "00" * 32, "dtype": "U8"}).kind
        'U8'
        """
        data = expect_keys(data, {"file", "range", "sha256", "dtype", "sections"}, "a source")
        first = ByteRange.from_json({key: value for key, value in data.items() if key not in ("dtype", "sections")})
        dtype = expect_string(data.get("dtype"), "the dtype of the source")
        listed = data.get("sections", [])
        if not isinstance(listed, list):
            raise FileFormatError(f"expected a list of sections of the source, got {repr(listed)[:40]}")
        sections = [_read_range(expect_keys(section, {"file", "range"}, "a section")) for section in listed]
        return cls(first, dtype, tuple(sections))


def _read_range(data: Mapping[str, Any]) -> tuple[str, int, int]:
    ends = expect_integers(data.get("range"), "byte range")
    if len(ends) != 2 or ends[0] > ends[1]:
        raise FileFormatError(f"expected [start, end] as byte range, got {list(ends)}")
    return expect_string(data.get("file", ""), "a file name"), ends[0], ends[1]


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One tensor: its sources by name, spec, output, padding value, and how it is put together.

    A tensor that is one source has the `order` of its dimensions, or None if that is the source's. One that is put
    together has `value`, an expression over its sources, and `through`, the formats that its values are rounded to on
    the way. `mesh` is how devices share it; `spec` then describes each part. `exceptional` counts values of the source
    that are NaN, infinite or out of range, where there are any.

    >>> output = ByteRange("x.tensorbin", 0, 2112, "11" * 32)
    >>> source = SourceEntry(ByteRange("m.npz", 64, 88, "00" * 32), "F32")
    >>> entry = ManifestEntry("x", {"x": source}, TensorSpec((2, 3), "uint8"), output)
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

        >>> output = ByteRange("x.tensorbin", 0, 2112, "11" * 32)
        >>> source = SourceEntry(ByteRange("m.npz", 64, 88, "00" * 32), "F32")
        >>> sorted(ManifestEntry("x", {"x": source}, TensorSpec((2, 3)), output).to_json())
        ['output', 'source', 'spec']
        """
        listed = {name: source.to_json() for name, source in self.sources.items()}
        result: dict[str, Any] = {"source": listed[self.name]} if self.value is None else {"sources": listed}
        result |= {"spec": spec_to_json(self.spec), "output": self.output.to_json()}
        optional = {
            "order": None if self.order is None else list(self.order),
            "pad_value": self.pad_value or None,
            "value": self.value,
            "through": list(self.through) or None,
            "mesh": None if self.mesh is None else self.mesh.to_json(),
            "exceptional": dict(self.exceptional) or None,
        }
        return result | {key: value for key, value in optional.items() if value is not None}

    @classmethod
    def from_json(cls, name: str, data: object) -> ManifestEntry:
        """Return the entry of plain data, or raise a `FileFormatError`.

        >>> try:
        ...     ManifestEntry.from_json("x", {"source": {}})
        ... except FileFormatError as problem:
        ...     print(problem)
        entry 'x': expected a list of at most 64 integers as byte range, got None
        """
        try:
            keys = {"spec", "output", "order", "pad_value", "value", "through", "mesh", "exceptional"}
            of_source = "sources" if isinstance(data, dict) and "value" in data else "source"
            data = expect_keys(data, {of_source, *keys}, "it")
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
                tuple([expect_string(element, "a format") for element in through]),
                None if mesh is None else Mesh.from_json(mesh, spec.shape.logical),
                {key: expect_integer(count, "a count") for key, count in counts.items()},
            )
        except FileFormatError as problem:
            raise FileFormatError(f"entry {name!r}: {problem}") from None


@dataclass(frozen=True, slots=True)
class ConversionManifest:
    """The result of a conversion: the file type, the version of tilewright, and an entry per tensor.

    `recipe` is the origin of a weight cache: the recipe, its revision, the machine and so on, as plain data.
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
    def from_json(cls, result: object) -> ConversionManifest:
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
    unknown file type 'zip' in the manifest; expected tensorbin, npy or banks
    """
    if to == "tensorbin":
        tensor = read_tensorbin_tensor(path, name)
        whole = entry.spec.shape.logical if entry.mesh is None else entry.mesh.global_shape
        spec = entry.spec if entry.spec.chip is None else entry.spec.with_chip(None)  # the file has none
        matches = (tensor.host, tensor.shape) == (spec, whole)
    elif to == "npy":
        tensor = reinterpret_format(read_npy(path, name), entry.spec.dtype)
        matches = tensor.shape == entry.spec.shape.logical
    elif to == "banks":
        tensor = read_bank_image(path.with_name(path.name[: -len(IMAGE_SUFFIX)] + INDEX_SUFFIX), name)
        matches = tensor.host == entry.spec
    else:
        raise FileFormatError(f"unknown file type {to!r} in the manifest; expected tensorbin, npy or banks")
    if not matches:
        raise FileFormatError(f"the file holds {tensor.host}, but the manifest says {entry.spec}")
    return tensor if entry.order is None else replace(tensor, source_order=entry.order)


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

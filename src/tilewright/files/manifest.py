# SPDX-License-Identifier: Apache-2.0
"""The manifest of converted files: for each tensor what it was made from, what it is, and what its bytes hash to.

It depends on nothing but the content: converting the same sources in the same way gives the same manifest, byte for
byte, wherever and whenever that is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import FileFormatError
from ..memory import TensorSpec
from .spec_json import spec_from_json, spec_to_json
from .strict_json import parse_json, text_of, whole_number, whole_numbers

MANIFEST = "tilewright.json"
_VERSION = 1
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A range of bytes of a file, and their SHA-256; the name of a source is that of the file without directories.

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
        return {"file": self.file, "range": [self.start, self.end], "sha256": self.sha256}

    @classmethod
    def from_json(cls, data: Any) -> ByteRange:
        """Return the range that plain data describe.

        >>> ByteRange.from_json({"file": "x", "range": [0, 2], "sha256": "00" * 32}).end
        2
        """
        if not isinstance(data, dict):
            raise FileFormatError(f"a range of bytes is an object, not {repr(data)[:40]}")
        ends = whole_numbers(data.get("range"), "a range of bytes")
        digest = text_of(data.get("sha256"), "a SHA-256")
        if len(ends) != 2 or ends[0] > ends[1]:
            raise FileFormatError(f"{list(ends)} is no range of bytes")
        if len(digest) != 64 or not set(digest) <= _HEX:
            raise FileFormatError(f"{digest[:80]!r} is no SHA-256: it has 64 digits of 0 to 9 and a to f")
        return cls(text_of(data.get("file"), "a file name"), *ends, digest)


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One tensor: its source, its spec, how it was turned, and its output.

    >>> made = ByteRange("x.tensorbin", 0, 2112, "11" * 32)
    >>> entry = ManifestEntry("x", ByteRange("m.npz", 64, 88, "00" * 32), "F32", TensorSpec((2, 3), "uint8"), made)
    >>> ManifestEntry.from_json("x", entry.to_json()) == entry
    True
    """

    name: str
    source: ByteRange
    kind: str
    spec: TensorSpec
    output: ByteRange
    order: tuple[int, ...] | None = None
    pad_value: float = 0

    def to_json(self) -> dict[str, Any]:
        """Return the entry as plain data.

        >>> made = ByteRange("x.tensorbin", 0, 2112, "11" * 32)
        >>> entry = ManifestEntry("x", ByteRange("m.npz", 64, 88, "00" * 32), "F32", TensorSpec((2, 3)), made)
        >>> sorted(entry.to_json())
        ['output', 'source', 'spec']
        """
        found: dict[str, Any] = {
            "source": {**self.source.to_json(), "dtype": self.kind},
            "spec": spec_to_json(self.spec),
            "output": self.output.to_json(),
        }
        if self.order is not None:
            found["order"] = list(self.order)
        if self.pad_value:
            found["pad_value"] = self.pad_value
        return found

    @classmethod
    def from_json(cls, name: str, data: Any) -> ManifestEntry:
        """Return the entry that plain data describe, or raise a `FileFormatError`.

        >>> try:
        ...     ManifestEntry.from_json("x", {"source": {}})
        ... except FileFormatError as problem:
        ...     print(problem)
        entry 'x': a range of bytes is None; it must be a list of at most 64 whole numbers
        """
        try:
            if not isinstance(data, dict):
                raise FileFormatError(f"it is {repr(data)[:40]}; it must be an object")
            source, order, pad_value = data.get("source"), data.get("order"), data.get("pad_value", 0)
            if type(pad_value) not in (int, float):
                raise FileFormatError(f"the pad_value is {repr(pad_value)[:40]}; it must be a number")
            return cls(
                name,
                ByteRange.from_json(source),
                text_of(source.get("dtype"), "the dtype of the source"),  # type: ignore[union-attr]
                spec_from_json(data.get("spec")),
                ByteRange.from_json(data.get("output")),
                None if order is None else whole_numbers(order, "the order"),
                pad_value,
            )
        except FileFormatError as problem:
            raise FileFormatError(f"entry {name!r}: {problem}") from None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a conversion made: the kind of files, the version of the tool, and an entry for each tensor.

    >>> Manifest("tensorbin", "0.0.1").to_bytes()[:40]
    b'{"manifest": 1,\\n "tilewright": "0.0.1",\\n'
    """

    to: str
    version: str
    entries: Mapping[str, ManifestEntry] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON, one line for each tensor, in the order of the entries.

        >>> Manifest.from_bytes(Manifest("npy", "0.0.1").to_bytes()) == Manifest("npy", "0.0.1")
        True
        """
        lines = [f"  {json.dumps(name)}: {json.dumps(entry.to_json())}" for name, entry in self.entries.items()]
        tensors = "{\n" + ",\n".join(lines) + "\n }" if lines else "{}"
        head = f'{{"manifest": {_VERSION},\n "tilewright": {json.dumps(self.version)},\n "to": {json.dumps(self.to)},\n'
        return f'{head} "tensors": {tensors}}}\n'.encode()

    @classmethod
    def from_bytes(cls, data: bytes | str) -> Manifest:
        """Return the manifest that a JSON text is, or raise a `FileFormatError`.

        >>> try:
        ...     Manifest.from_bytes(b"{}")
        ... except FileFormatError as problem:
        ...     print(problem)
        the version of the manifest is None; it must be a whole number from 0 to 1
        """
        found = parse_json(data, "the manifest")
        if not isinstance(found, dict):
            raise FileFormatError(f"the manifest is {repr(found)[:40]}; it must be an object")
        whole_number(found.get("manifest"), "the version of the manifest", _VERSION)
        tensors = found.get("tensors")
        if not isinstance(tensors, dict):
            raise FileFormatError("the manifest lists no tensors")
        entries = {text_of(name, "a name"): ManifestEntry.from_json(name, data) for name, data in tensors.items()}
        to, version = text_of(found.get("to"), "the kind of files"), text_of(found.get("tilewright"), "the version")
        return cls(to, version, entries)

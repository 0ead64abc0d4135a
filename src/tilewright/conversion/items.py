# SPDX-License-Identifier: Apache-2.0
"""Items: one tensor of a plan each: its source, what it becomes, where it goes. They can be sent to other machines."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..files import StoredTensor
from ..files.conversion_manifest import ByteRange, ManifestEntry
from ..files.spec_json import spec_to_json
from .slots import NO_HASH, Slot
from .targets import Target


@dataclass(frozen=True)
class Item:
    """One tensor to convert.

    >>> [field for field in Item.__dataclass_fields__]
    ['source', 'target', 'slot', 'source_file', 'version', 'to']
    """

    source: StoredTensor
    target: Target
    slot: Slot
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
        """Return what tells this work from any other: source, spec, place and version, hashed."""
        start, end = self.source.byte_range
        said: dict[str, Any] = {
            "source": [self.source_file, start, end, self.source.kind, list(self.source.shape), self.name],
            "laid": [list(self.source.order), self.source.swapped],
            "spec": spec_to_json(self.target.spec),
            "order": list(self.target.order),
            "pad": repr(self.target.pad_value),
            "output": [self.to, self.slot.file, self.slot.start, self.slot.size],
            "tilewright": self.version,
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def entry(self, source_hash: str = NO_HASH, output_hash: str = NO_HASH, begin: int = 0) -> ManifestEntry:
        """Return the entry of the manifest; in a shared file, places count from `begin`."""
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
class Done:
    """What is known of an item that was converted: the hashes, and the time and size by which a change would show.

    >>> Done.from_json(Done("k", "a", "b", 1, 2, 3).to_json()).output_hash
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

        >>> Done("k", "a", "b", 1, 2, 3).to_json()["key"]
        'k'
        """
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Any) -> Done | None:
        """Return the record that plain data describe, None if they describe none.

        >>> Done.from_json({}) is None
        True
        """
        try:
            return cls(**{name: data[name] for name in cls.__slots__})
        except (KeyError, TypeError):
            return None


def final_path(out: Path, slot: Slot) -> Path:
    """Return the path of the finished file of a slot.

    >>> final_path(Path("out"), Slot("x.npy", 0, 0)).as_posix()
    'out/x.npy'
    """
    return out if slot.shared else out / slot.file

# SPDX-License-Identifier: Apache-2.0
"""`ConversionPlan`: what a conversion would do, before it does it: tensors, bytes in and out, padding, time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from .. import __version__
from ..errors import FormatError, MemoryConfigError, TilewrightError
from ..files import StoredTensor, TensorFile, open_tensors
from ..files.conversion_manifest import ConversionManifest
from ..layout.boxes import Box
from .items import Done, Item
from .rules import Rules
from .slabs import Slabs
from .slots import Slot, laid_end_to_end, own_slots, safetensors_start, shared_slots
from .targets import KINDS, Target, target_of
from .work import pack

_SAMPLE_BYTES = 8 << 20
_SECONDS_PER_FILE = 0.005  # until a small file is on the disk
_MOST_PROBLEMS = 5  # that one message names


@dataclass(frozen=True)
class ConversionPlan:
    """The work of a conversion, as a list of independent items, and what there is to say about it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((60, 90), np.float32))
    ...     plan = plan_conversion(f"{folder}/x.npy", f"{folder}/out", dtype="bfloat8_b")
    ...     len(plan.items), plan.bytes_in, plan.bytes_out, plan.padding_bytes
    (1, 21600, 6912, 791)
    """

    out: Path
    to: str
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def single(self) -> bool:
        """Return whether the result is one file.

        >>> ConversionPlan(Path("o.safetensors"), "safetensors", ()).single
        True
        """
        return self.to == "safetensors"

    @property
    def bytes_in(self) -> int:
        """Return the bytes of all sources."""
        return sum([item.bytes_in for item in self.items])

    @property
    def bytes_out(self) -> int:
        """Return the bytes of all results, their headers included."""
        head = self.items[0].slot.start if self.single else 0
        return head + sum([item.bytes_out for item in self.items])

    @property
    def padding_bytes(self) -> int:
        """Return the bytes of the results that hold padding."""
        return sum([item.target.spec.padding_bytes for item in self.items])

    def part(self, i: int, n: int) -> list[Item]:
        """Return the items of the i-th of n parts, which have about the same number of bytes.

        >>> ConversionPlan(Path("o"), "npy", ()).part(0, 4)
        []
        """
        if not 0 <= i < n:
            raise MemoryConfigError(f"part {i} of {n} does not exist; parts are counted from 0 to {n - 1}")
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

    def manifest(self, done: dict[str, Done]) -> ConversionManifest:
        """Return the manifest of the finished conversion, from the record of each item by its key."""
        begin = self.items[0].slot.start if self.single else 0
        entries = {}
        for item in self.items:
            record = done[item.key]
            entries[item.name] = item.entry(record.source_hash, record.output_hash, begin)
        return ConversionManifest(self.to, __version__, entries)

    def head(self, manifest: ConversionManifest) -> bytes:
        """Return what comes before the data of a single file."""
        return safetensors_start(list(manifest.entries.values()), __version__)

    def seconds(self, jobs: int | None = None) -> float:
        """Return an estimate of the time it takes, from a sample of the largest tensor that is converted and hashed.

        It knows nothing of the disk that is written to.
        """
        if not self.items:
            return 0.0
        largest = max(self.items, key=lambda item: item.bytes_in)
        slabs = Slabs(largest.source, largest.target, _SAMPLE_BYTES)
        try:
            box: Box = next(iter(slabs))
        except TilewrightError:  # even the smallest slab is larger than the sample
            return float("nan")
        started = perf_counter()
        source = largest.source
        values = source.read(box.turned(source.order))
        turned = values.transpose(largest.target.order)
        spec = largest.target.spec
        small = Target(type(spec)(turned.shape, spec.dtype, spec.page_layout, spec.tile), largest.target.order)
        out = np.empty(small.spec.nbytes, np.uint8)
        if small.spec.nbytes:
            pack(turned, small.spec, 0, out, 1)
        _hash(values), _hash(out)
        spent = perf_counter() - started
        workers = min(jobs or os.cpu_count() or 1, os.cpu_count() or 1)
        files = 1 if self.single else len(self.items)
        return (spent * self.bytes_in / max(1, values.nbytes) + files * _SECONDS_PER_FILE) / workers

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data.

        >>> sorted(ConversionPlan(Path("o"), "npy", ()).to_json())
        ['bytes_in', 'bytes_out', 'notes', 'out', 'padding_bytes', 'skipped', 'tensors', 'to']
        """
        return {
            "out": str(self.out),
            "to": self.to,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "padding_bytes": self.padding_bytes,
            "tensors": [
                {
                    "name": item.name,
                    "shape": list(item.source.shape),
                    "from": item.source.kind,
                    "spec": str(item.target.spec),
                    "file": item.slot.file,
                    "bytes_in": item.bytes_in,
                    "bytes_out": item.bytes_out,
                    "padding_bytes": item.target.spec.padding_bytes,
                }
                for item in self.items
            ],
            "skipped": list(self.skipped),
            "notes": list(self.notes),
        }


def _hash(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()


def plan_conversion(
    sources: Any, out: Any, to: str | None = None, rules: Any = None, follow_symlinks: bool = False, **for_all: Any
) -> ConversionPlan:
    """Return the plan that converts the tensors of files, or of an opened `TensorFile`, to files at `out`.

    `to` is "tensorbin" (a directory with a file for each tensor), "safetensors" (one file), "banks" (images of the
    banks of a chip) or "npy"; left out, it is told from the suffix of `out`. `rules` are a TOML file, or patterns and
    their settings; further arguments are settings for all tensors: see `Settings`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((60, 90), np.float32))
    ...     plan_conversion(f"{folder}/x.npy", f"{folder}/o.safetensors", rules={"y*": {"dtype": "float32"}}).notes
    ("no tensor fits the pattern 'y*'",)
    """
    path = Path(out)
    kind = ("safetensors" if path.suffix == ".safetensors" else "tensorbin") if to is None else to
    if kind not in KINDS:
        raise FormatError(f"{kind!r} is no kind of output; choose one of {', '.join(KINDS)}")
    if kind == "safetensors" and path.suffix != ".safetensors":
        raise FormatError(f"{path} is to be a safetensors file; let its name end in .safetensors")
    ruled = Rules.of(rules, **for_all)
    tensors = opened_sources(sources, follow_symlinks)
    targets, skipped, notes = _targets(tensors.values(), ruled, kind)
    notes = [f"no tensor fits the pattern {pattern!r}" for pattern in ruled.unused(tensors)] + notes
    if not targets:
        raise FormatError(f"no tensor is left to convert: {len(tensors)} are there, and all of them are skipped")
    kept = [tensors[name] for name in targets]
    slots = _slots(kept, targets, path, kind)
    items = [
        Item(source, targets[source.name], slot, source.path.name, __version__, kind)
        for source, slot in zip(kept, slots, strict=True)
    ]
    return ConversionPlan(path, kind, tuple(items), tuple(notes), tuple(skipped))


def opened_sources(sources: Any, follow_symlinks: bool = False) -> dict[str, StoredTensor]:
    """Return all tensors of one or several sources by name; a name that is there twice is an error.

    >>> opened_sources([])
    {}
    """
    given = [sources] if isinstance(sources, (str, Path, TensorFile)) else list(sources)
    files = [each if isinstance(each, TensorFile) else open_tensors(each, follow_symlinks) for each in given]
    whole = TensorFile(Path(", ".join(map(str, given))), "sources", [each for file in files for each in file.values()])
    return dict(whole)


def _targets(tensors: Iterable[StoredTensor], rules: Rules, to: str) -> tuple[dict[str, Target], list[str], list[str]]:
    """Return what each tensor becomes, the names left out, and notes; all that cannot be is told at once."""
    found: dict[str, Target] = {}
    skipped, notes, problems = [], [], []
    for source in tensors:
        try:
            target = target_of(source, rules, to)
        except TilewrightError as problem:
            problems.append((source.name, problem))
            continue
        if target is None:
            skipped.append(source.name)
            continue
        found[source.name] = target
        if target.note is not None:
            notes.append(f"{source.name}: {target.note}")
    if problems:
        first = type(problems[0][1])
        lines = [f"{name}: {problem}" for name, problem in problems[:_MOST_PROBLEMS]]
        more = [f"and {len(problems) - _MOST_PROBLEMS} more"] if len(problems) > _MOST_PROBLEMS else []
        count = f"{len(problems)} tensors cannot be converted:\n" if len(problems) > 1 else ""
        raise first(count + "\n".join(lines + more))
    return found, skipped, notes


def _slots(kept: list[StoredTensor], targets: dict[str, Target], out: Path, to: str) -> list[Slot]:
    if to != "safetensors":
        return own_slots([each.name for each in kept], [targets[each.name].spec for each in kept], to)
    nowhere = Slot(out.name, 0, 0)
    entries = [Item(each, targets[each.name], nowhere, each.path.name, __version__, to).entry() for each in kept]
    return shared_slots(out.name, laid_end_to_end(entries), __version__)

# SPDX-License-Identifier: Apache-2.0
"""`ConversionPlan`: what a conversion will do: tensors, bytes in and out, padding, time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from ..atomic import as_path
from ..byte_sizes import format_bytes
from ..copying.assembly import count_elements
from ..errors import FormatError, MemoryConfigError, TilewrightError
from ..files import StoredTensor, TensorFile, open_tensors
from ..files.conversion_manifest import ConversionManifest
from ..files.file_kinds import SUFFIXES
from ..files.paged_boxes import PagedBoxes
from ..files.quantized_tensor import decode_small_floats
from ..files.safetensors import METADATA_KEY
from ..files.source_file import FilePath
from ..files.stored_arrays import store_arrays
from ..version import __version__
from .assembled_source import aligned_bytes
from .assembly_explanation import ItemExplanation, explain_item, find_items
from .conversion_item import (
    ConversionItem,
    ItemRecord,
    OutputSlot,
    assign_file_slots,
    assign_shared_slots,
    encode_safetensors_head,
)
from .rules import (
    OUTPUT_KINDS,
    ConversionTarget,
    OutputTensor,
    Rules,
    choose_rounding,
    choose_target,
    dimension_order,
    list_outputs,
)
from .slabs import SlabCutter

Source: TypeAlias = "FilePath | TensorFile | Mapping[str, Any]"  # a mapping of names to arrays
Sources: TypeAlias = "Source | Iterable[Source]"
_SAMPLE_BYTES = 8 << 20
_SECONDS_PER_FILE = 0.005  # to flush a small file to disk
_MIN_NOTED_PADDING = 1 << 20
_MAX_LISTED_PROBLEMS = 5  # per message
_MAX_COPIED_TEXT = 1 << 16  # characters of metadata


@dataclass(frozen=True)
class ConversionPlan:
    """A conversion as a list of independent items, with notes, the names of skipped tensors, and files beside them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((60, 90), np.float32))
    ...     plan = plan_conversion(f"{folder}/x.npy", f"{folder}/out", dtype="bfloat8_b")
    ...     len(plan.items), plan.bytes_in, plan.bytes_out, plan.padding_bytes
    (1, 21600, 6912, 791)
    """

    out: Path
    to: str
    items: tuple[ConversionItem, ...]
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    beside: Mapping[str, bytes] = field(default_factory=dict)
    recipe: Mapping[str, Any] | None = None  # of a weight cache, as its manifest records it
    metadata: Mapping[str, str] = field(default_factory=dict)  # of the sources

    @property
    def is_single_file(self) -> bool:
        """Return whether the result is one file.

        >>> ConversionPlan(Path("o.safetensors"), "safetensors", ()).is_single_file
        True
        """
        return self.to == "safetensors"

    @property
    def data_start(self) -> int:
        """Return where the tensors of a single file start, after its header; 0 for several files."""
        return self.items[0].slot.start if self.is_single_file and self.items else 0

    @property
    def bytes_in(self) -> int:
        """Return the bytes of all sources."""
        return sum([item.bytes_in for item in self.items])

    @property
    def bytes_out(self) -> int:
        """Return the bytes of all outputs, headers included."""
        return self.data_start + sum([item.bytes_out for item in self.items])

    @property
    def padding_bytes(self) -> int:
        """Return the padding bytes of all outputs."""
        return sum([item.padding_bytes for item in self.items])

    def part(self, i: int, n: int) -> list[ConversionItem]:
        """Return the items of the i-th of n parts, which have about the same number of bytes.

        >>> ConversionPlan(Path("o"), "npy", ()).part(0, 4)
        []
        """
        if not 0 <= i < n:
            raise MemoryConfigError(f"part {i} of {n} does not exist; use 0 to {n - 1}")
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

    def explain(self, pattern: str) -> list[ItemExplanation]:
        """Return where the pieces of some tensors come from: `pattern` is a name, the start of one, or has wildcards.

        >>> try:
        ...     ConversionPlan(Path("o"), "npy", ()).explain("x")
        ... except FormatError as problem:
        ...     print(problem)
        no tensor is called 'x'; there are none
        """
        return [explain_item(item) for item in find_items(self.items, pattern)]

    def manifest(self, done: dict[str, ItemRecord]) -> ConversionManifest:
        """Return the manifest of the finished conversion, from `done`, the records of all items by key."""
        records = [(item, done[item.key]) for item in self.items]
        entries = {
            item.name: item.entry(record.source_hashes, record.output_hash, self.data_start, record.exceptional)
            for item, record in records
        }
        return ConversionManifest(self.to, __version__, entries, self.recipe, self.metadata)

    def head(self, manifest: ConversionManifest) -> bytes:
        """Return the bytes before the data of a single file, which end with its `manifest`."""
        return encode_safetensors_head(list(manifest.entries.values()), __version__, self.metadata)

    def seconds(self, jobs: int | None = None) -> float:
        """Return the estimated seconds with `jobs` threads, from converting and hashing a sample of the largest tensor.

        The speed of the disk is not included.
        """
        if not self.items:
            return 0.0
        largest = max(self.items, key=lambda item: item.bytes_in)
        slabs = SlabCutter(largest.source, largest.target, _SAMPLE_BYTES)
        try:
            slab = next(iter(slabs))
        except TilewrightError:  # the smallest slab is larger than the sample
            return float("nan")
        started = perf_counter()
        parts = list(largest.source.read_parts(slab.box, aligned_bytes))
        spec = PagedBoxes(largest.target.spec).box_spec(slab.box)
        out = np.empty(spec.nbytes, np.uint8)
        if spec.nbytes:
            largest.source.pack(parts, spec, out, aligned_bytes)
        read = [part.values.view(np.uint8) for part in parts]
        for array in (*read, out):
            hashlib.sha256(array.data)
        spent = perf_counter() - started
        workers = min(jobs or os.cpu_count() or 1, os.cpu_count() or 1)
        files = 1 if self.is_single_file else len(self.items)
        return (spent * self.bytes_in / max(1, sum(map(len, read))) + files * _SECONDS_PER_FILE) / workers

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data.

        >>> sorted(ConversionPlan(Path("o"), "npy", ()).to_json())
        ['bytes_in', 'bytes_out', 'notes', 'out', 'padding_bytes', 'skipped', 'tensors', 'to']
        """
        recipe = self.recipe and {key: value for key, value in self.recipe.items() if key != "checkpoint"}
        return {
            "out": str(self.out),
            "to": self.to,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "padding_bytes": self.padding_bytes,
            "tensors": [
                {
                    "name": item.name,
                    "shape": list(item.source_shape),
                    "from": item.source.kind,
                    "spec": str(item.spec),
                    "file": item.slot.file,
                    "bytes_in": item.bytes_in,
                    "bytes_out": item.bytes_out,
                    "padding_bytes": item.padding_bytes,
                    **({} if item.mesh is None else {"mesh": item.mesh.to_json()}),
                }
                for item in self.items
            ],
            "skipped": list(self.skipped),
            "notes": list(self.notes),
            **({} if recipe is None else {"recipe": recipe}),
        }


def plan_conversion(
    sources: Sources,
    out: FilePath,
    to: str | None = None,
    rules: Any = None,
    follow_symlinks: bool = False,
    **for_all: Any,
) -> ConversionPlan:
    """Return the plan that converts the tensors of files, or of an opened `TensorFile`, to files at `out`.

    Args:
        sources: a path, an opened `TensorFile`, a mapping of names to arrays, or a list of these.
        out: the output directory or file.
        to: "tensorbin" (a directory with a file per tensor), "safetensors" (one file), "banks" (bank images of a chip)
            or "npy"; by default chosen by the suffix of `out`.
        rules: a TOML file, or patterns and their settings.
        follow_symlinks: allow links that point outside of a directory.
        for_all: settings for all tensors; see `Settings`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((60, 90), np.float32))
    ...     plan_conversion(f"{folder}/x.npy", f"{folder}/o.safetensors", rules={"y*": {"dtype": "float32"}}).notes
    ("no tensor matches the pattern 'y*'",)
    """
    path = as_path(out)
    kind = ("safetensors" if path.suffix == ".safetensors" else "tensorbin") if to is None else to
    if kind not in OUTPUT_KINDS:
        raise FormatError(f"unknown kind of output {kind!r}; choose one of {', '.join(OUTPUT_KINDS)}")
    if kind == "safetensors" and path.suffix != ".safetensors":
        raise FormatError(f"expected an output that ends in .safetensors, got {path}")
    all_rules = Rules.of(rules, **for_all)
    files = _open_files(sources, follow_symlinks)
    tensors = _join_files(files)
    asked = list(list_outputs(tensors, all_rules))
    outputs, skipped, notes = _choose_targets(asked, all_rules, kind)
    names = list(dict.fromkeys([*tensors, *[output.name for output in asked]]))
    unmatched = all_rules.unmatched_patterns(names)
    notes = [f"no tensor matches the pattern {pattern!r}" for pattern in unmatched] + notes
    notes += [*all_rules.note_unused_lines(names), *_note_unused_elements(tensors, asked, all_rules)]
    notes += [note for file in files for note in (*file.notes, *_metadata_notes(file))]
    if kind != "safetensors" and path.suffix in SUFFIXES:
        notes.append(f"{path.name} is a directory with a file for each tensor; name it x.safetensors to get one file")
    if not outputs:
        reason = f"all {len(tensors)} tensors are skipped" if tensors else "the source has no tensors"
        raise FormatError(f"nothing to convert: {reason}")
    metadata = {key: text for file in files for key, text in _copied_metadata(file).items()}
    slots = _assign_slots(outputs, path, kind, metadata)
    items = [replace(item, slot=slot) for item, slot in zip(outputs, slots, strict=True)]
    plan = ConversionPlan(path, kind, tuple(items), tuple(notes), tuple(skipped), metadata=metadata)
    return replace(plan, notes=(*_padding_notes(plan), *plan.notes))


def _note_unused_elements(
    tensors: Mapping[str, StoredTensor], outputs: Iterable[OutputTensor], rules: Rules
) -> Iterator[str]:
    """Yield a note for each tensor of which the values of rules leave out elements."""
    if all(settings.value is None for _, settings in rules.lines):
        return
    used = count_elements([output.source.value for output in outputs])  # of skipped ones, too: these were named
    for name, tensor in tensors.items():
        size = prod(tensor.shape)
        if tensor.host is not None and used[name] < size:
            yield f"{name}: {used[name]} of {size} elements are used; the others are in no output"


def _padding_notes(plan: ConversionPlan) -> Iterator[str]:
    """Yield a note if most of a large output is padding."""
    padding = plan.padding_bytes
    if padding < _MIN_NOTED_PADDING or 2 * padding < plan.bytes_out:
        return
    worst = max(plan.items, key=lambda item: item.padding_bytes)
    spec = worst.target.spec
    yield (
        f"{format_bytes(padding)} of {format_bytes(plan.bytes_out)} are padding, most in {worst.name}:"
        f" {list(spec.shape.logical)} is padded to {list(spec.padded_shape)}; layout = 'row_major', or another shape,"
        " avoids it"
    )


def open_sources(sources: Sources, follow_symlinks: bool = False) -> dict[str, StoredTensor]:
    """Return all tensors of one or several sources by name; raise if a name exists twice.

    >>> open_sources([])
    {}
    """
    return _join_files(_open_files(sources, follow_symlinks))


def _open_files(sources: Sources, follow_symlinks: bool) -> list[TensorFile]:
    given = [sources] if isinstance(sources, (str, bytes, os.PathLike, Mapping)) else list(sources)
    return [_open_source(each, follow_symlinks) for each in given]


def _join_files(files: list[TensorFile]) -> dict[str, StoredTensor]:
    paths = Path(", ".join([str(file.path) for file in files]))
    return dict(TensorFile(paths, "sources", [decode_small_floats(each) for file in files for each in file.values()]))


def _open_source(source: Source, follow_symlinks: bool) -> TensorFile:
    if isinstance(source, TensorFile):
        return source
    return store_arrays(source) if isinstance(source, Mapping) else open_tensors(source, follow_symlinks)


def _copied_metadata(file: TensorFile) -> dict[str, str]:
    """Return the free text of safetensors files, which outputs get too; what other files have is not only text."""
    if not file.kind.endswith(("safetensors", "directory", "converted")):
        return {}
    texts = {key: text for key, text in file.metadata.items() if key != METADATA_KEY}
    return texts if sum(map(len, texts.values())) <= _MAX_COPIED_TEXT else {}


def _metadata_notes(file: TensorFile) -> Iterator[str]:
    """Yield a note if a source has metadata that no output gets."""
    keys = [key for key in file.metadata if key not in {METADATA_KEY, *_copied_metadata(file)}]
    if keys:
        more = f" and {len(keys) - _MAX_LISTED_PROBLEMS} more" if len(keys) > _MAX_LISTED_PROBLEMS else ""
        yield f"{file.path.name}: metadata is not carried over: {', '.join(keys[:_MAX_LISTED_PROBLEMS])}{more}"


def _choose_targets(
    outputs: Iterable[OutputTensor], rules: Rules, to: str
) -> tuple[list[ConversionItem], list[str], list[str]]:
    """Return the items, without slots, the skipped names, and notes; raise one error for all problems."""
    result: dict[str, ConversionItem] = {}
    skipped, notes, problems = [], [], []
    for output in outputs:
        try:
            target = choose_target(output, rules.for_all, to)
            if output.name in result:
                raise FormatError("two tensors have this name; rename one of them")
        except TilewrightError as problem:
            problems.append((output.name, problem))
            continue
        if target is None:
            skipped.append(output.name)
            continue
        result[output.name] = _build_item(output, target, rules, to)
        if target.note is not None:
            notes.append(f"{output.name}: {target.note}")
    if problems:
        first = type(problems[0][1])
        alike: dict[str, list[str]] = {}
        for name, reason in problems:
            alike.setdefault(str(reason), []).append(name)
        lines = [
            f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}: {text}"
            for text, names in list(alike.items())[:_MAX_LISTED_PROBLEMS]
        ]
        left = len(problems) - sum([len(names) for names in list(alike.values())[:_MAX_LISTED_PROBLEMS]])
        more = [f"and {left} more"] if left else []
        count = f"{len(problems)} tensors cannot be converted:\n" if len(problems) > 1 else ""
        raise first(count + "\n".join(lines + more))
    return list(result.values()), skipped, notes


def _build_item(output: OutputTensor, target: ConversionTarget, rules: Rules, to: str) -> ConversionItem:
    """Return the item of a tensor, which has no slot yet."""
    source, settings = output.source, output.own.with_defaults(rules.for_all)
    order = dimension_order(len(source.value.shape), settings.transpose)
    source = replace(source.transpose(order), through=choose_rounding(settings, source.format, target.spec))
    return ConversionItem(output.name, source, target, OutputSlot("", 0, 0), __version__, to)


def _assign_slots(items: list[ConversionItem], out: Path, to: str, metadata: Mapping[str, str]) -> list[OutputSlot]:
    if to != "safetensors":
        return assign_file_slots({item.name: item.target for item in items}, to)
    entries = [replace(item, slot=OutputSlot(out.name, 0, 0, shared=True)).entry() for item in items]
    return assign_shared_slots(out.name, entries, __version__, metadata)

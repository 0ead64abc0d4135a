# SPDX-License-Identifier: Apache-2.0
"""`retarget_cache`: the weight cache of one machine made into that of another with the same mesh.

The pages of a weight do not depend on the chip; only the number of DRAM banks in the header does. Files with the same
pages get another header. What differs is made from the checkpoint; the head of a tied model, from the embedding.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic import as_path
from ..conversion.assembled_source import AssembledSource
from ..conversion.conversion_item import NO_HASH, ConversionItem, tensorbin_slot
from ..conversion.conversion_plan import ConversionPlan
from ..conversion.conversion_run import DEFAULT_MEMORY, ConversionReport, ProgressCallback, run_plan
from ..conversion.output_file import hash_range
from ..conversion.rules import ConversionTarget
from ..copying.assembly import Assembly, join
from ..errors import FileFormatError, FormatError
from ..files import StoredTensor
from ..files.conversion_manifest import ByteRange, ManifestEntry, SourceEntry
from ..files.source_file import FilePath
from ..files.tensorbin import read_tensorbin_tensor
from ..formats import scalar_format_of
from ..memory import TensorSpec
from ..version import __version__
from .cache_folder import CacheFolder
from .cache_preparation import build_item
from .weight_cache import CacheFile, CacheOptions, WeightCache, open_checkpoint

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MOST_LISTED = 4  # files in a message


def plan_retarget(
    cache: FilePath,
    out: FilePath | None,
    machine: str,
    source: FilePath | None = None,
    *,
    original: str | None = None,
    **options: Unpack[CacheOptions],
) -> ConversionPlan:
    """Return the plan that makes a cache for another machine with the same mesh; nothing is written.

    Args:
        cache: the directory with the files, or one above it that holds a single cache.
        out: what TT_CACHE_PATH will name for the other machine; by default that of the cache, whose path must then
            end as tt_transformers names it.
        machine: the other machine, such as "P150".
        source: the checkpoint. A cache that tilewright made needs it only where more than headers differ, and the head
            is not tied to the embedding.
        original: the machine that the cache is for, if its path does not say so.
        options: those of `plan_cache`, where they cannot be seen from the cache.

    >>> import tempfile
    >>> from tilewright.weights import prepare
    >>> from tilewright.files import write_sample_llama
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_llama(f"{folder}/Llama-3.2-1B")
    ...     _ = prepare(f"{folder}/Llama-3.2-1B", f"{folder}/cache", "N150")
    ...     plan_retarget(f"{folder}/cache", None, "P150").notes
    ('22 of 22 files differ in their headers at most',)
    """
    folder = CacheFolder(cache)
    recipe = options.get("recipe") or folder.recipe
    checkpoint, tensors = (None, {}) if source is None else open_checkpoint(source, recipe)
    old = folder.describe(checkpoint, original, **options)
    new = WeightCache(old.checkpoint, machine, **old.options)
    if old.machine.mesh != new.machine.mesh:
        raise FormatError(
            f"{old.machine.name} is a mesh of {list(old.machine.mesh)}, and {new.machine.name} one of"
            f" {list(new.machine.mesh)}: every file differs; prepare the cache from the checkpoint"
        )
    known = {file.file: file for file in old.files if file.file in set(folder.names)}
    same = {file.file for file in new.files if file.file in known and file.has_same_pages(known[file.file])}
    held = {name: file for name, file in old.whole_tensors().items() if file.file in same} if source is None else {}
    available = {*tensors, *held}
    others = [file.file for file in new.files if file.file not in same and not available.issuperset(file.value.sources)]
    if others:
        more = f" and {len(others) - _MOST_LISTED} more" if len(others) > _MOST_LISTED else ""
        raise FormatError(
            f"{len(others)} of {len(new.files)} files differ in more than their headers, or are missing:"
            f" {', '.join(others[:_MOST_LISTED])}{more}; give the checkpoint, to make them from it"
        )
    _validate_hashes(folder, same)
    items = []
    for file in new.files:
        if file.file in same:
            items.append(_build_rewrite(folder, known[file.file], file))
        elif source is None:
            items.append(_build_from_cache(folder, held, file))
        else:
            items.append(build_item(file, tensors))
    notes = (f"{len(same)} of {len(items)} files differ in their headers at most", *new.describe_unused(tensors))
    target = (_find_root(folder.path, old.directory) if out is None else as_path(out)) / new.directory
    return ConversionPlan(target, "tensorbin", tuple(items), notes, new.unused, new.marker(), new.record())


def _find_root(path: Path, directory: str) -> Path:
    """Return the directory that TT_CACHE_PATH names, above a cache.

    >>> _find_root(Path("cache/N150/tensor_cache_bfp8"), "N150/tensor_cache_bfp8").name
    'cache'
    """
    parts = Path(directory).parts
    whole = path if len(path.parts) > len(parts) else path.absolute()
    if whole.parts[-len(parts) :] != parts:
        raise FormatError(f"{path} does not end in {directory}, so name the output, which TT_CACHE_PATH will name")
    return whole.parents[len(parts) - 1]


def _validate_hashes(folder: CacheFolder, files: set[str]) -> None:
    """Raise if one of these files has changed since it was made, as far as a manifest says."""
    recorded = [] if folder.manifest is None else [entry.output for entry in folder.manifest.entries.values()]

    def has_changed(output: ByteRange) -> bool:
        return hash_range(folder.path / output.file, output.start, output.end) != output.sha256

    outputs = [output for output in recorded if output.file in files]
    with ThreadPoolExecutor() as pool:
        for output, changed in zip(outputs, pool.map(has_changed, outputs), strict=True):
            if changed:
                raise FileFormatError(f"{folder.path / output.file} has changed since it was made; prepare it again")


def _build_rewrite(folder: CacheFolder, old: CacheFile, new: CacheFile) -> ConversionItem:
    """Return the item that gives the pages of an existing file a new header."""
    content = folder.open(old.file)
    if content.spec != old.spec or content.mesh_shape != old.mesh.shape or content.topology != old.mesh.topology:
        raise FileFormatError(f"{folder.path / old.file} is not what the recipe says; see prepare --check")
    recorded = None if folder.manifest is None else folder.manifest.entries.get(new.name)
    stem = old.file.removesuffix(".tensorbin")
    stored = read_tensorbin_tensor(folder.path / old.file, stem)
    slot = tensorbin_slot(new.file, new.spec, new.mesh)
    pages, value = _view_as_bytes(stored, slot.step)
    if recorded is None:
        file = ByteRange(old.file, *pages.byte_range, NO_HASH)
        recorded = ManifestEntry(
            new.name, {stem: SourceEntry(file, stored.kind)}, new.spec, file, value=f"tensor({stem!r})", mesh=new.mesh
        )
    target = ConversionTarget(TensorSpec(value.shape, "uint8"))
    source = AssembledSource(value, {stem: pages})
    return ConversionItem(
        new.name, source, target, slot, __version__, "tensorbin", replace(recorded, spec=new.spec, mesh=new.mesh)
    )


def _build_from_cache(folder: CacheFolder, held: Mapping[str, CacheFile], file: CacheFile) -> ConversionItem:
    """Return the item that makes a file from tensors that others hold, and records what those were made from."""
    assert folder.manifest is not None  # which described the cache
    item = build_item(file, {name: folder.open_tensor(held[name], name) for name in file.value.sources})
    entries = [folder.manifest.entries[held[name].name] for name in file.value.sources]
    sources = {name: entry.sources[name] for name, entry in zip(file.value.sources, entries, strict=True)}
    return replace(item, recorded=replace(item.entry(), sources=sources))


def _view_as_bytes(stored: StoredTensor, step: int) -> tuple[StoredTensor, Assembly]:
    """Return the parts of a tensor as bytes of its file, and how they follow each other at distances of `step`."""
    start, end = stored.byte_range
    size = stored.pages.spec.nbytes
    pages = StoredTensor.dense(
        stored.name, "U8", (end - start,), scalar_format_of("uint8"), stored.file, start, end - start
    )
    whole = Assembly.of(stored.name, (end - start,))
    parts = [whole.slice(part.offset - start, part.offset - start + size) for part in stored.parts]
    return pages, join([*[part.pad(step) for part in parts[:-1]], parts[-1]])


def retarget_cache(
    cache: FilePath,
    out: FilePath | None,
    machine: str,
    source: FilePath | None = None,
    *,
    original: str | None = None,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    resume: bool = False,
    force: bool = False,
    part: tuple[int, int] | None = None,
    executor: Executor | None = None,
    progress: ProgressCallback | None = None,
    **options: Unpack[CacheOptions],
) -> ConversionReport:
    """Write the cache of another machine with the same mesh, and return a report; the old cache stays as it is.

    Args:
        cache, out, machine, source, original, options: those of `plan_retarget`.
        memory, jobs, resume, force, part, executor, progress: those of `prepare`.

    >>> import tempfile
    >>> from tilewright.weights import prepare
    >>> from tilewright.files import write_sample_llama
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_llama(f"{folder}/Llama-3.2-1B-Instruct")
    ...     _ = prepare(f"{folder}/Llama-3.2-1B-Instruct", f"{folder}/wormhole", "N300")
    ...     report = retarget_cache(f"{folder}/wormhole", f"{folder}/blackhole", "P300")
    >>> report.converted, report.out.rpartition("blackhole/")[2]
    (22, 'P300/tensor_cache_instruct_bfp8')
    """
    plan = plan_retarget(cache, out, machine, source, original=original, **options)
    return run_plan(
        plan, memory=memory, jobs=jobs, resume=resume, force=force, part=part, executor=executor, progress=progress
    )

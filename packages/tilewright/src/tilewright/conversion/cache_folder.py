# SPDX-License-Identifier: Apache-2.0
"""`CacheFolder`: an existing weight cache: its files, and the facts in its path, headers and manifest."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import memory
from .._files import as_path
from .._lazy import late_function
from .._text import list_some
from ..copying import Assembly, join
from ..errors import FileFormatError, FormatError, TilewrightError
from ..files import (
    MANIFEST_NAME,
    ByteRange,
    ConversionManifest,
    FilePath,
    ManifestEntry,
    PendingTensor,
    SourceEntry,
    StoredTensor,
    Tensorbin,
    TensorFile,
    open_tensors,
    read_manifest,
    read_tensorbin,
    read_tensorbin_tensor,
)
from ..formats import scalar_format_of
from ..memory import ChipLike, CircularBuffers, Fit, FitRequest, Mesh, TensorSpec
from .cache import CacheFile, CacheOptions, Checkpoint, Machine, WeightCache, open_checkpoint, read_options
from .device_fit import WEIGHTS_ONLY, DeviceTensor, fit_device, mark_weights
from .plan import DEFAULT_MEMORY, NO_HASH, ConversionItem, ConversionPlan, tensorbin_slot
from .recipe import DEFAULT_RECIPE, MODES, Optimizations, Recipe, recipe_names
from .rules import ConversionTarget
from .source import AssembledSource, hash_range

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .run import ConversionReport, ProgressCallback

run_plan: Callable[..., ConversionReport] = late_function(__package__, "run", "run_plan")

_DIRECTORY = re.compile(r"tensor_cache_(instruct_)?(bfp8|bf16)")


class CacheFolder:
    """A directory with the files of a weight cache.

    Args:
        path: the directory, or one above it that holds a single cache.
    """

    def __init__(self, path: FilePath) -> None:
        self.path = _find_cache(as_path(path))
        self.names = sorted([file.name for file in self.path.iterdir() if file.suffix == ".tensorbin"])

    def open(self, name: str) -> Tensorbin:
        """Return the content of a file, mapped while it is used; raise if it is missing or cannot be read."""
        return read_tensorbin(self.path / name)

    def open_tensor(self, file: CacheFile, name: str) -> StoredTensor:
        """Return the tensor of a file under the name of the tensor of the checkpoint that it holds."""
        return read_tensorbin_tensor(self.path / file.file, name)

    @cached_property
    def headers(self) -> dict[str, tuple[TensorSpec, Mesh]]:
        """The spec of each device's part and the mesh of all files that can be read."""
        result = {}
        for name in self.names:
            try:
                content = self.open(name)
            except (FileFormatError, OSError):
                continue
            result[name] = (content.spec, content.mesh)
        return result

    @cached_property
    def manifest(self) -> ConversionManifest | None:
        """The manifest, None if tilewright did not make the cache."""
        path = self.path / MANIFEST_NAME
        return read_manifest(path) if path.exists() else None

    @property
    def record(self) -> Mapping[str, Any] | None:
        """The manifest's record of the recipe, the machine and the checkpoint."""
        return None if self.manifest is None else self.manifest.recipe

    @property
    def recipe(self) -> str:
        """The name of the recipe that made the cache; raises for a user's recipe, which is known by its file."""
        name = DEFAULT_RECIPE if self.record is None else str(self.record.get("name"))
        if name not in recipe_names():
            raise FormatError(
                f"{self.path} was made with the recipe {name!r}, which does not come with tilewright; give its file or"
                " folder with --recipe (recipe=...)"
            )
        return name

    def machine(self, recipe: Recipe) -> str | None:
        """Return the name of the machine in the manifest or the path; None if they have none."""
        if self.record is not None:
            return str(self.record.get("machine"))
        above = self.path.parent
        name = (above.parent if above.name == "hf_rope" else above).name
        return name if _DIRECTORY.fullmatch(self.path.name) and name in recipe.devices else None

    def options(self) -> CacheOptions:
        """Return the options in the manifest or the path."""
        if self.record is not None:
            return read_options(self.record)
        match = _DIRECTORY.fullmatch(self.path.name)
        if match is None:
            return {}
        return {
            "hf_rope": self.path.parent.name == "hf_rope",
            "instruct": match[1] is not None,
            "model_dtype": "bfloat8_b" if match[2] == "bfp8" else "bfloat16",
        }

    @cached_property
    def mesh(self) -> tuple[int, ...] | None:
        """The shape of the mesh that most files are for, None if they are for any."""
        shapes = Counter([mesh.shape for _, mesh in self.headers.values() if not suits_any_mesh(mesh)])
        return shapes.most_common(1)[0][0] if shapes else None

    def describe(
        self, checkpoint: Checkpoint | None, machine: str | None = None, **options: Unpack[CacheOptions]
    ) -> WeightCache:
        """Return the cache as it should be, for a checkpoint, or for the one in the manifest.

        Facts that `machine` and `options` leave open are taken from the manifest, the path and the headers;
        the mode of optimization is the one of most files.
        """
        recipe = options.get("recipe") or self.recipe
        if checkpoint is None:
            if self.record is None:
                raise FormatError(f"{self.path} has no manifest to identify its model; give the checkpoint")
            return WeightCache.from_record(self.record, machine or str(self.record["machine"]), recipe)
        options["recipe"] = recipe
        rules = Recipe.load(recipe)
        name = machine or self.machine(rules)
        if name is None:
            raise FormatError(f"cannot tell from {self.path} which machine it is for; name it, such as N300")
        chosen: CacheOptions = {**self.options(), **options}
        usual = Machine.of(name, rules).mesh
        if "mesh" not in chosen and self.mesh not in (None, (1, 1), usual) and prod(self.mesh or ()) == prod(usual):
            chosen["mesh"] = self.mesh or usual
        modes: list[FilePath | Optimizations] = [chosen["optimizations"]] if "optimizations" in chosen else [*MODES]
        caches, problems = [], []
        for mode in modes:
            try:
                chosen["optimizations"] = mode
                caches.append(WeightCache(checkpoint, name, **chosen))
            except TilewrightError as problem:
                problems.append(problem)
        if not caches:
            raise problems[0]
        return max(caches, key=lambda cache: len({file.file for file in cache.files} & set(self.names)))


def suits_any_mesh(mesh: Mesh) -> bool:
    """Return whether every device loads all of a file of this mesh, on whatever mesh.

    >>> suits_any_mesh(Mesh.dividing((32, 64), (1, 2), None))
    True
    """
    return mesh.topology.placements == (None,)


def _find_cache(path: Path) -> Path:
    """Return the directory of a cache: this one, or the only one below it that holds tensorbin files."""
    if not path.is_dir():
        raise FileFormatError(f"{path} is not a directory of tensorbin files")
    if list(path.glob("*.tensorbin")):
        return path
    below = sorted({file.parent for file in path.rglob("*.tensorbin") if not file.parent.name.startswith(".")})
    if len(below) != 1:
        what = f"{', '.join(map(str, below[:4]))}; name one of them" if below else "none"
        raise FileFormatError(f"expected one cache of tensorbin files below {path}, got {what}")
    return below[0]


# `prepare`: writes the weight cache of a model for one machine, from its checkpoint and a recipe.


def plan_cache(source: FilePath, out: FilePath | None, machine: str, **options: Unpack[CacheOptions]) -> ConversionPlan:
    """Return the plan of a weight cache: every file with its parts, spec and mesh; nothing is written.

    Args:
        source: the checkpoint: a directory of Hugging Face with config.json, a snapshot of its hub, or a GGUF file of
            an architecture that `gguf_names` has a table for.
        out: what TT_CACHE_PATH will name; by default "model_cache/" and the name of the source, where tt_transformers
            looks without that variable.
        machine: the machine, such as "N300"; the recipe lists them.
        options: see `CacheOptions`.

    >>> import tempfile
    >>> from tilewright.files import write_sample_llama
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_llama(f"{folder}/Llama-3.2-1B-Instruct")
    ...     plan = plan_cache(f"{folder}/Llama-3.2-1B-Instruct", "cache", "N300")
    >>> len(plan.items), plan.items[1].slot.file
    (22, 'layers.0.attention.wqkv_sharded_2d_dtype_BFLOAT8_B_layout_TILE.tensorbin')
    """
    checkpoint, tensors = open_checkpoint(source, options.get("recipe", DEFAULT_RECIPE))
    return plan_files(WeightCache(checkpoint, machine, **options), tensors, out)


def plan_files(cache: WeightCache, tensors: Mapping[str, StoredTensor], out: FilePath | None) -> ConversionPlan:
    """Return the plan that writes the files of a `cache` below `out` from opened `tensors`."""
    folder = Path("model_cache", cache.hf_model) if out is None else as_path(out)
    items = tuple([build_item(file, tensors) for file in cache.files])
    notes = (*cache.describe_layers(), *cache.describe_unused(tensors))
    return ConversionPlan(
        folder / cache.directory, "tensorbin", items, notes, cache.unused, cache.marker(), cache.record()
    )


def build_item(file: CacheFile, tensors: Mapping[str, StoredTensor]) -> ConversionItem:
    """Return the conversion of one file of a cache."""
    source = AssembledSource(file.value, {name: tensors[name] for name in file.value.sources}, file.through)
    target = ConversionTarget(file.spec, value=file.value.text, mesh=file.mesh)
    slot = tensorbin_slot(file.file, file.spec, file.mesh)
    return ConversionItem(file.name, source, target, slot, "tensorbin", made_as=file.made_as)


def prepare(
    source: FilePath,
    out: FilePath | None,
    machine: str,
    *,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    resume: bool = False,
    force: bool = False,
    part: tuple[int, int] | None = None,
    executor: Executor | None = None,
    progress: ProgressCallback | None = None,
    **options: Unpack[CacheOptions],
) -> ConversionReport:
    """Write the weight cache that tt_transformers would build on the card, from a checkpoint, and return a report.

    Args:
        source, out, machine, options: as in `plan_cache`.
        memory: the most bytes of memory to use, however large the tensors are.
        jobs: the number of threads, by default one more than there are cores.
        resume: keep the finished work of an earlier run. An existing cache is otherwise an error.
        force: replace an existing cache.
        part: (i, n) makes part i of n, for batch systems.
        executor: distributes files over any `concurrent.futures` executor that sees the same directories.
        progress: called with a `ProgressEvent`.

    >>> import tempfile
    >>> from tilewright.files import write_sample_llama
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_llama(f"{folder}/Llama-3.2-1B-Instruct")
    ...     report = prepare(f"{folder}/Llama-3.2-1B-Instruct", f"{folder}/cache", "N300", optimizations="accuracy")
    >>> report.converted, report.complete, report.out.rpartition("cache/")[2]
    (22, True, 'N300/tensor_cache_instruct_bfp8')
    """
    plan = plan_cache(source, out, machine, **options)
    return run_plan(
        plan, memory=memory, jobs=jobs, resume=resume, force=force, part=part, executor=executor, progress=progress
    )


# `fit`: whether a checkpoint, a cache, a file or a plan fits the devices that hold it, or tensors fit a chip.

Holdings: TypeAlias = "str | os.PathLike[str] | TensorFile | StoredTensor | Tensorbin | ConversionPlan"


def list_device_tensors(source: Holdings, placement: Mapping[str, Any] | None = None) -> list[DeviceTensor]:
    """Return a device's parts of the tensors of a file, directory or plan.

    `placement` are arguments of a `TensorSpec` for tensors whose file does not place them, and override its format.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((4, 8), numpy.float32))
    ...     list_device_tensors(folder)[0].request["dtype"]
    format_of('float32')
    """
    if isinstance(source, Tensorbin):
        return [DeviceTensor("", source.spec, source.mesh)]
    if isinstance(source, ConversionPlan):
        return [DeviceTensor(item.name, item.spec, item.mesh) for item in source.items]
    opened = {source.name: source} if isinstance(source, StoredTensor) else source
    tensors = open_tensors(opened) if isinstance(opened, (str, os.PathLike)) else opened
    headers = tensors.headers if isinstance(tensors, TensorFile) else tensors.values()
    requests: dict[Any, FitRequest] = {}  # few of the very many tensors of a checkpoint differ
    result = []
    for tensor in headers:
        key = id(tensor) if tensor.spec is not None else (tensor.shape, id(tensor.format), tensor.kind)
        if key not in requests:
            requests[key] = _place(tensor, placement or {})
        result.append(DeviceTensor(tensor.name, requests[key], tensor.mesh))
    return result


def _place(tensor: StoredTensor | PendingTensor, placement: Mapping[str, Any]) -> FitRequest:
    if tensor.spec is not None:
        return tensor.spec
    if tensor.format is None and "dtype" not in placement:
        raise FormatError(
            f"{tensor.name} has elements of type {tensor.kind}, which has no number format in tilewright; give a dtype"
        )
    return {"dtype": tensor.format, **placement, "shape": tensor.shape}


def fit(
    request: Any,  # specs, tensors of any kind, arguments of specs, or what `list_device_tensors` takes
    chip: ChipLike | None = None,
    circular_buffers: CircularBuffers = 0,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
    *,
    machine: str | None = None,
    **options: Any,
) -> Fit:
    """Return whether tensors fit a chip, or each device of a mesh, and what would fit if they do not.

    Args:
        request: a spec or a tensor, a dict of arguments of `TensorSpec`, or a list of these, allocated in order; or the
            path of a checkpoint, cache or file, what `open_tensors` or `read_tensorbin` returned for it, or the plan of
            a conversion. Of tensors that a mesh shares, each device holds its part. A tensor in memory with a layout is
            fitted as its storage, into one bank.
        chip: the chip; the default is the chip of the first tensor, or of the machine.
        circular_buffers: bytes per core: a number, several, or several by name.
        l1_small_size: bytes reserved at the top of L1.
        trace_region_size: bytes reserved in all DRAM.
        machine: the machine, such as "N300", whose weight cache of the checkpoint `request` is to fit.
        options: with a machine, the options of `plan_cache`; otherwise arguments of `TensorSpec` for tensors in files
            that do not place them.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(f"{folder}/m.npz", w=numpy.zeros((2048, 2048), numpy.float32), b=numpy.zeros(2048))
    ...     print(fit(f"{folder}/m.npz", "n150", dtype="bfloat8_b", page_layout="tile", memory="l1"))
    fits wormhole_n150
    w: [2048, 2048] bfloat8_b in tiles of 32 x 32, interleaved in L1
      69632 bytes in each of 64 banks, at 1429504, padding 0 bytes (0 %)
    b: [1[32], 2048] bfloat8_b in tiles of 32 x 32, interleaved in L1
      1088 bytes in each of 64 banks, at 1428416, padding 67456 bytes (97 %, in pages)
    L1: 70720 of 1393312 bytes in each of 64 banks used, largest free block 1322592
      in all 4.32 MiB of 85 MiB, 80.7 MiB left
    """
    reserved = (l1_small_size, trace_region_size)
    if machine is not None:
        plan = plan_cache(request, None, machine, **options)
        return fit_plan(plan, machine, chip, circular_buffers, *reserved, **options)
    if not isinstance(request, (str, os.PathLike, TensorFile, StoredTensor, Tensorbin, ConversionPlan)):
        if options:
            raise FormatError(f"{', '.join(options)} cannot be given here: the specs say how tensors are placed")
        return memory.fit(request, chip, circular_buffers, *reserved)
    report = fit_device(list_device_tensors(request, options), chip, circular_buffers, *reserved)
    if isinstance(request, ConversionPlan) and request.recipe:
        return _of_weights(report, request)
    return mark_weights(report, [request])


def fit_plan(
    plan: ConversionPlan,
    machine: str,
    chip: ChipLike | None = None,
    circular_buffers: CircularBuffers = 0,
    *reserved: int,
    recipe: FilePath | None = None,
    mesh: Sequence[int] | None = None,
    **options: Any,
) -> Fit:
    """Return whether the weight cache that a `plan` writes fits each device of its `machine`.

    The other arguments are as in `fit` and `plan_cache`.
    """
    target = Machine.of(machine, Recipe.load(recipe or DEFAULT_RECIPE), mesh)
    shape = target.mesh if prod(target.mesh) > 1 else ()
    report = fit_device(list_device_tensors(plan), chip or target.chip, circular_buffers, *reserved, mesh=shape)
    return _of_weights(report, plan)


def _of_weights(report: Fit, plan: ConversionPlan) -> Fit:
    return replace(report, scope=WEIGHTS_ONLY, notes=plan.notes)


# `retarget_cache`: convert the weight cache of one machine for another with the same mesh.

_MAX_LISTED = 4  # files in a message


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
        out: the TT_CACHE_PATH of the other machine; by default the cache's own, whose path must then end as
            tt_transformers names it.
        machine: the other machine, such as "P150".
        source: the checkpoint. A cache that tilewright made needs it only where more than headers differ, and the head
            is not tied to the embedding.
        original: the machine that the cache is for, if its path does not name it.
        options: as in `plan_cache`, where they cannot be seen from the cache.

    >>> import tempfile
    >>> from tilewright.conversion import prepare
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
    old_files = {file.file: file for file in old.files if file.file in set(folder.names)}
    same = {file.file for file in new.files if file.file in old_files and file.has_same_pages(old_files[file.file])}
    whole = {name: file for name, file in old.whole_tensors().items() if file.file in same} if source is None else {}
    available = {*tensors, *whole}
    others = [file.file for file in new.files if file.file not in same and not available.issuperset(file.value.sources)]
    if others:
        raise FormatError(
            f"{len(others)} of {len(new.files)} files differ in more than their headers, or are missing:"
            f" {list_some(others, _MAX_LISTED)}; give the checkpoint, to make them from it"
        )
    _validate_hashes(folder, same)
    items = []
    for file in new.files:
        if file.file in same:
            items.append(_build_rewrite(folder, old_files[file.file], file))
        elif source is None:
            items.append(_build_from_cache(folder, whole, file))
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
        raise FormatError(f"{path} does not end in {directory}; name the output, for TT_CACHE_PATH")
    return whole.parents[len(parts) - 1]


def _validate_hashes(folder: CacheFolder, files: set[str]) -> None:
    """Raise if one of these files has changed since it was made, as far as a manifest shows."""
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
        raise FileFormatError(f"{folder.path / old.file} does not match the recipe; run prepare --check")
    recorded = None if folder.manifest is None else folder.manifest.entries.get(new.name)
    stem = old.file.removesuffix(".tensorbin")
    stored = read_tensorbin_tensor(folder.path / old.file, stem)
    slot = tensorbin_slot(new.file, new.spec, new.mesh)
    pages, value = _view_as_bytes(stored, slot.stride)
    if recorded is None:
        file = ByteRange(old.file, *pages.byte_range, NO_HASH)
        recorded = ManifestEntry(
            new.name, {stem: SourceEntry(file, stored.kind)}, new.spec, file, value=f"tensor({stem!r})", mesh=new.mesh
        )
    target = ConversionTarget(TensorSpec(value.shape, "uint8"))
    source = AssembledSource(value, {stem: pages})
    return ConversionItem(new.name, source, target, slot, "tensorbin", replace(recorded, spec=new.spec, mesh=new.mesh))


def _build_from_cache(folder: CacheFolder, cache_files: Mapping[str, CacheFile], file: CacheFile) -> ConversionItem:
    """Return the item that makes a file from tensors that others hold, and records what those were made from."""
    assert folder.manifest is not None  # which described the cache
    item = build_item(file, {name: folder.open_tensor(cache_files[name], name) for name in file.value.sources})
    entries = [folder.manifest.entries[cache_files[name].name] for name in file.value.sources]
    sources = {name: entry.sources[name] for name, entry in zip(file.value.sources, entries, strict=True)}
    return replace(item, recorded=replace(item.entry(), sources=sources))


def _view_as_bytes(stored: StoredTensor, stride: int) -> tuple[StoredTensor, Assembly]:
    """Return the parts of a tensor as bytes of its file, and how they follow each other at distances of `stride`."""
    start, end = stored.byte_range
    size = stored.pages.spec.nbytes
    pages = StoredTensor.dense(
        stored.name, "U8", (end - start,), scalar_format_of("uint8"), stored.file, start, end - start
    )
    whole = Assembly.of(stored.name, (end - start,))
    parts = [whole.slice(part.offset - start, part.offset - start + size) for part in stored.parts]
    return pages, join([*[part.pad(stride) for part in parts[:-1]], parts[-1]])


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
        cache, out, machine, source, original, options: as in `plan_retarget`.
        memory, jobs, resume, force, part, executor, progress: as in `prepare`.

    >>> import tempfile
    >>> from tilewright.conversion import prepare
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

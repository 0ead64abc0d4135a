# SPDX-License-Identifier: Apache-2.0
"""`prepare`: writes the weight cache of a model for one machine, from its checkpoint and a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic import as_path
from ..conversion.assembled_source import AssembledSource
from ..conversion.conversion_item import ConversionItem, tensorbin_slot
from ..conversion.conversion_plan import ConversionPlan
from ..conversion.conversion_run import DEFAULT_MEMORY, ConversionReport, ProgressCallback, run_plan
from ..conversion.rules import ConversionTarget
from ..files import StoredTensor
from ..files.source_file import FilePath
from ..version import __version__
from .recipe import DEFAULT_RECIPE
from .weight_cache import CacheFile, CacheOptions, WeightCache, open_checkpoint

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
    return ConversionItem(file.name, source, target, slot, __version__, "tensorbin", made_as=file.made_as)


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
        source, out, machine, options: those of `plan_cache`.
        memory: the most bytes of memory to use, however large the tensors are.
        jobs: the number of threads, by default one more than there are cores.
        resume: keep what an earlier run finished. An existing cache is otherwise an error.
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

# SPDX-License-Identifier: Apache-2.0
"""`prepare`: the weight cache of a model for one machine, from its checkpoint and a recipe."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ..errors import FileFormatError, FormatError, LayoutError
from ..files import StoredTensor, open_tensors
from ..files.mesh import Mesh, Topology
from ..files.source_file import FilePath
from ..files.strict_json import read_json
from ..formats import Format, ScalarFormat, format_of, scalar_format_of
from ..layout.tuples import ceil_div
from ..memory import Chip, TensorSpec, interleaved, width_sharded
from ..version import __version__
from .assembled_source import AssembledSource, stored_assembly
from .conversion_item import ConversionItem, tensorbin_slot
from .conversion_plan import ConversionPlan
from .conversion_run import ConversionReport, run_plan
from .recipe import Recipe, RecipeOutput, RecipeRun
from .rules import ConversionTarget

_MAX_CONFIG_BYTES = 1 << 20
_SNAPSHOT = re.compile(r".*models--[^/]*?--([^/]+)/snapshots/[^/]+")


@dataclass(frozen=True)
class Machine:
    """The machine that a cache is for: its name, chip, and mesh of devices."""

    name: str
    chip: Chip
    mesh: tuple[int, int]
    ring: bool = False

    @classmethod
    def of(cls, name: str, recipe: Recipe, mesh: Sequence[int] | None = None) -> Machine:
        """Return the machine of a name that the recipe knows, with another shape of its mesh if one is given."""
        known = recipe.cache["devices"]
        if name not in known:
            raise FormatError(f"unknown machine {name!r}; recipe {recipe.name} has {', '.join(known)}")
        table = known[name]
        shape = tuple(table["mesh"] if mesh is None else mesh)
        if prod(shape) != prod(table["mesh"]) or len(shape) != 2:
            raise FormatError(f"{name} has {prod(table['mesh'])} devices, which do not make a mesh of {list(shape)}")
        return cls(name, Chip.named(table["chip"]), (shape[0], shape[1]), table.get("ring", False))


def plan_cache(
    source: FilePath,
    out: FilePath,
    machine: str,
    *,
    recipe: str = "tt_transformers",
    optimizations: str = "performance",
    model_dtype: str = "bfloat8_b",
    hf_rope: bool = False,
    instruct: bool = False,
    mesh: Sequence[int] | None = None,
    layers: Sequence[int] | None = None,
    pad_mlp_cores: int = 0,
    max_batch_size: int = 1,
) -> ConversionPlan:
    """Return the plan of a weight cache."""
    rules = Recipe.named(recipe)
    target = Machine.of(machine, rules, mesh)
    folder = Path(source)
    config = read_json(folder / "config.json", "config.json", _MAX_CONFIG_BYTES)
    if not isinstance(config, dict):
        raise FileFormatError(f"{folder / 'config.json'}: expected an object")
    tensors = open_tensors(folder, follow_symlinks=True)
    run = RecipeRun(
        rules,
        config,
        {name: stored_assembly(tensor) for name, tensor in tensors.items()},
        {
            "device": target.name,
            "rows": target.mesh[0],
            "columns": target.mesh[1],
            "devices": prod(target.mesh),
            "ring": target.ring,
            "architecture": target.chip.arch,
            "banks": target.chip.banks("dram"),
            "source_name": os.fspath(source),
            "model_name": model_name(source),
            "mode": optimizations,
            "model_dtype": model_dtype,
            "hf_rope": hf_rope,
            "instruct": instruct,
            "pad_mlp_cores": pad_mlp_cores,
        },
    )
    directory = Path(out) / run.evaluate(rules.cache["directory"])
    memory_dtype = scalar_format_of(config.get("torch_dtype") or config.get("dtype") or "bfloat16")
    items = tuple([_build_item(output, tensors, target, memory_dtype) for output in run.outputs(layers)])
    name, body = marker(run, items, target, max_batch_size, memory_dtype)
    return ConversionPlan(directory, "tensorbin", items, beside={name: json.dumps(body).encode()})


def prepare(source: FilePath, out: FilePath, machine: str, **options: Any) -> ConversionReport:
    """Write the weight cache of a model."""
    names = ("memory", "jobs", "resume", "force", "part", "executor", "progress")
    running = {name: options.pop(name) for name in names if name in options}
    return run_plan(plan_cache(source, out, machine, **options), **running)


def model_name(source: FilePath) -> str:
    """Return the name of a model: the last part of its path, or the name of a hub snapshot.

    >>> model_name("cache/models--org--Llama-3.1-8B/snapshots/0e9e39f2"), model_name("models/phi-4/")
    ('Llama-3.1-8B', 'phi-4')
    """
    path = os.fspath(source).rstrip("/")
    snapshot = _SNAPSHOT.fullmatch(path)
    return snapshot[1] if snapshot else path.rpartition("/")[2]


def _build_item(
    output: RecipeOutput, tensors: Mapping[str, StoredTensor], machine: Machine, memory_dtype: ScalarFormat
) -> ConversionItem:
    mesh = _build_mesh(output, machine)
    dtype = format_of(output.dtype)
    memory: Any = interleaved("dram")
    if output.memory == "dram_sharded":
        banks = machine.chip.banks("dram")
        height, width = mesh.part_shape[-2:]
        memory = width_sharded((banks, 1), (height, ceil_div(width, 32 * banks) * 32), buffer_type="dram")
    elif output.memory != "interleaved":
        raise FormatError(f"{output.name}: expected interleaved or dram_sharded as memory, got {output.memory!r}")
    spec = TensorSpec(mesh.part_shape, dtype, output.layout, memory=memory)
    used = {name: tensors[name] for name in output.value.sources}
    source = AssembledSource(output.value, used, _rounding(used, dtype, output.memory, memory_dtype))
    file = f"{output.name}_dtype_{dtype.name.upper()}_layout_{output.layout.upper()}.tensorbin"
    target = ConversionTarget(spec, value=output.value.text, mesh=mesh)
    return ConversionItem(output.name, source, target, tensorbin_slot(file, spec, mesh), __version__, "tensorbin")


def _rounding(
    tensors: Mapping[str, StoredTensor], dtype: Format, memory: str, memory_dtype: ScalarFormat
) -> tuple[ScalarFormat, ...]:
    """Return the formats that values are rounded to between the checkpoint and the cache.

    The checkpoint is loaded as the dtype of its config, and sharded block formats are packed from bfloat16.
    """
    rounding = () if all(format_of(each.dtype) == memory_dtype for each in tensors.values()) else (memory_dtype,)
    if dtype.has_blocks and memory == "dram_sharded" and memory_dtype.name != "bfloat16":
        rounding = (*rounding, scalar_format_of("bfloat16"))
    return rounding


def _build_mesh(output: RecipeOutput, machine: Machine) -> Mesh:
    """Return how the devices of a machine share an output."""
    if output.mesh == "replicated":  # on any mesh
        return Mesh((1, 1), Topology.replicated([(0, 0)]), output.value.shape)
    try:
        return Mesh.dividing(output.value.shape, machine.mesh, output.mesh)
    except LayoutError as problem:
        raise FormatError(f"{output.name}: {problem}") from None


def marker(
    run: RecipeRun, items: Sequence[ConversionItem], machine: Machine, max_batch_size: int, memory_dtype: ScalarFormat
) -> tuple[str, dict[str, Any]]:
    """Return the name and body of the file that says that a cache is complete."""
    names = run.names
    spelled = []
    for layer in range(names["layers"]):
        formats = run.precision(layer)
        given = [formats.get(group) for group in ("FF1_FF3", "FF2", "WQKV", "WO", "KV_CACHE", "ACTIVATION")]
        spelled += [f"DataType.{each.upper()}" if each else "None" for each in given]
    variant = {
        "prefetcher": False,
        "precision": _short_hash("|".join(spelled)),
        "batch": max_batch_size,
        "fused_ag": bool(names["fused"]),
        "hf_rope": names["hf_rope"],
    }
    body = {
        "format_version": 3,
        "model_name": names["model_name"],
        "n_layers": names["layers"],
        "mesh_shape": str(machine.mesh),
        "components": ["all"],
        "build_variant": variant,
        "cache_files": sorted([item.slot.file for item in items]),
        "is_moe": bool(names["experts"]),
        "host_weights": [],
        "weights": {key: [list(value.shape), f"torch.{memory_dtype.name}"] for key, value in run.all_weights().items()},
    }
    return f".weights_complete.{_short_hash(json.dumps(variant, sort_keys=True))}", body


def _short_hash(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]

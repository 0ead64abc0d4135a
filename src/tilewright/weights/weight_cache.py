# SPDX-License-Identifier: Apache-2.0
"""`WeightCache`: the files of a model's weight cache for one machine: how each is put together, stored and shared.

It is derived from a recipe, config.json, and the names, shapes and types of tensors; no tensor is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from ..conversion.assembled_source import stored_assembly
from ..copying.assembly import Assembly
from ..errors import FileFormatError, FormatError, LayoutError
from ..files import StoredTensor, open_tensors
from ..files.conversion_manifest import MARKER_PREFIX
from ..files.file_names import find_checkpoint_folder
from ..files.mesh import Mesh, Topology
from ..files.quantized_checkpoint import RefusedTensor
from ..files.remote_file import is_url
from ..files.source_file import FilePath, SourceFile
from ..files.strict_json import expect_integers, expect_string, read_json
from ..formats import Format, ScalarFormat, format_of, scalar_format_of
from ..layout.tuples import ceil_div
from ..memory import Chip, MemoryConfig, Sharding, TensorSpec, interleaved, width_sharded
from .gguf_names import NamedModel, model_spelling, name_gguf_model
from .optimizations import Optimizations
from .recipe import DEFAULT_RECIPE, Recipe
from .recipe_run import RecipeOutput, RecipeRun

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MAX_CONFIG_BYTES = 1 << 20
_HUB_FOLDER = re.compile(r"models--([^/]+?)--([^/]+)")
_HUB_URL = re.compile(r"hf://([^/@]+/[^/@]+)(?:@[^/]+)?/?")
_SNAPSHOT = re.compile(r".*models--[^/]*?--([^/]+)/snapshots/[^/]+")
_MODEL_DTYPES = ("bfloat8_b", "bfloat16")


class CacheOptions(TypedDict, total=False):
    """What decides a weight cache besides the checkpoint and the machine.

    `recipe` is the name of a recipe, or the path of its file or folder; `optimizations` the number formats:
    "performance" (the default), "accuracy", a decoder config (JSON), or text such as "precision_cfg = {wqkv: bf16}";
    `model_dtype` the format of the head, "bfloat8_b" or "bfloat16"; `hf_rope` keeps the order of rotary halves;
    `instruct` takes the directory of instruct models; `hf_model` is what HF_MODEL will be where the model is served,
    by default the source as it is spelled, and the names of the model and of the directory go by it; `mesh` is the
    shape of the mesh, if not that of the machine; `layers` are the only layers to make; `pad_mlp_cores` is
    PAD_MLP_CORES, by default that of the environment; `max_batch_size` is the batch size that the marker is for.

    >>> options: CacheOptions = {"optimizations": "accuracy", "layers": [0, 1]}
    """

    recipe: FilePath
    optimizations: FilePath | Optimizations
    model_dtype: str
    hf_rope: bool
    instruct: bool
    hf_model: str
    mesh: Sequence[int]
    layers: Sequence[int]
    pad_mlp_cores: int
    max_batch_size: int


@dataclass(frozen=True)
class Machine:
    """The machine that a cache is for: its name, chip, and mesh of devices.

    >>> Machine.of("N300", Recipe.load()).mesh
    (1, 2)
    """

    name: str
    chip: Chip
    mesh: tuple[int, int]
    ring: bool = False

    @classmethod
    def of(cls, name: str, recipe: Recipe, mesh: Sequence[int] | None = None) -> Machine:
        """Return the machine of a `name` that the recipe knows, with another shape of its mesh if one is given."""
        machines = {known.lower(): known for known in recipe.devices}
        if name.lower() not in machines:
            raise FormatError(f"unknown machine {name!r}; recipe {recipe.name} has {', '.join(recipe.devices)}")
        known = machines[name.lower()]
        table = recipe.devices[known]
        shape = tuple(table.mesh if mesh is None else mesh)
        if len(shape) != 2 or prod(shape) != prod(table.mesh):
            raise FormatError(
                f"{known} has {prod(table.mesh)} devices, which do not make a mesh of {list(shape)}; it is"
                f" {list(table.mesh)} by default"
            )
        return cls(known, Chip.named(table.chip), (shape[0], shape[1]), table.ring)


@dataclass(frozen=True)
class Checkpoint:
    """What a recipe needs to know of a checkpoint: how the user spells it, its config.json, and its tensors.

    `tensors` are assemblies of one source each, and `formats` their number formats; those without one are left out.
    """

    spelling: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Assembly]
    formats: Mapping[str, Format]

    @classmethod
    def of(cls, source: FilePath, tensors: Mapping[str, StoredTensor]) -> Checkpoint:
        """Return the checkpoint at a path, with its opened tensors."""
        try:
            file = _open_config(source, tensors)
            config = read_json(file, str(file.path), _MAX_CONFIG_BYTES)
        except FileNotFoundError:
            raise FileFormatError(f"{source} has no config.json; give the directory of a Hugging Face model") from None
        if not isinstance(config, dict):
            raise FileFormatError(f"{file.path}: expected an object, got {repr(config)[:40]}")
        numbers = {name: tensor for name, tensor in tensors.items() if tensor.format is not None}
        return cls(
            _spell_checkpoint(source),
            config,
            {name: stored_assembly(tensor) for name, tensor in numbers.items()},
            {name: format_of(tensor.dtype) for name, tensor in numbers.items()},
        )

    @classmethod
    def of_gguf(cls, source: FilePath, model: NamedModel) -> Checkpoint:
        """Return the checkpoint of a GGUF model at a path."""
        numbers = {name: tensor for name, tensor in model.tensors.items() if tensor.format is not None}
        whole = {name: stored_assembly(tensor) for name, tensor in numbers.items()}
        formats = {name: format_of(tensor.dtype) for name, tensor in numbers.items()}
        formats |= {name: formats[value.sources[0]] for name, value in model.weights.items()}
        return cls(model_spelling(_spell_checkpoint(source)), model.config, {**whole, **model.weights}, formats)

    @property
    def memory_dtype(self) -> ScalarFormat:
        """Return the type that the checkpoint is loaded as, which its config.json says."""
        name = self.config.get("torch_dtype") or self.config.get("dtype") or "bfloat16"
        try:
            return scalar_format_of(name)
        except (FormatError, TypeError):
            raise FileFormatError(f"config.json: expected a torch_dtype such as bfloat16, got {name!r}") from None

    def to_json(self) -> dict[str, Any]:
        """Return the checkpoint as plain data, which is enough to plan its cache again."""
        tensors = {name: [self.formats[name].name, list(value.shape)] for name, value in self.tensors.items()}
        return {"config": self.config, "tensors": tensors}

    @classmethod
    def from_json(cls, data: Any, name: str) -> Checkpoint:
        """Return the checkpoint of plain data, with the name of its model, or raise a `FileFormatError`."""
        if not isinstance(data, dict) or not isinstance(data.get("config"), dict):
            raise FileFormatError("the manifest does not describe the checkpoint")
        tensors, formats = {}, {}
        for key, entry in dict(data.get("tensors") or {}).items():
            kind, shape = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
            tensors[key] = Assembly.of(key, expect_integers(shape, f"the shape of {key!r}"))
            formats[key] = format_of(expect_string(kind, f"the dtype of {key!r}"))
        return cls(name, data["config"], tensors, formats)


@dataclass(frozen=True)
class CacheFile:
    """A file of a cache: what it is put together from, the spec of each device's part, and how devices share it."""

    name: str
    file: str
    value: Assembly
    through: tuple[ScalarFormat, ...]
    spec: TensorSpec
    mesh: Mesh
    layer: int | None
    made_as: tuple[str, ...] = ()  # the expressions of the recipe

    def has_same_pages(self, other: CacheFile) -> bool:
        """Return whether two files differ in their headers at most."""
        mine, others = (
            (each.value, each.through, each.spec.shape, each.spec.dtype, each.spec.page_layout, each.mesh)
            for each in (self, other)
        )
        return mine == others


class WeightCache:
    """The weight cache of a checkpoint for a machine, as a recipe describes it.

    Args:
        checkpoint: the checkpoint.
        machine: the name of the machine.
        options: what else decides the cache.

    >>> from tilewright.files.sample_model import LLAMA_CONFIG, sample_llama
    >>> weights = sample_llama()
    >>> tensors = {name: Assembly.of(name, values.shape) for name, values in weights.items()}
    >>> checkpoint = Checkpoint("Llama-3.2-1B", LLAMA_CONFIG, tensors, dict.fromkeys(weights, format_of("bfloat16")))
    >>> cache = WeightCache(checkpoint, "N300")
    >>> cache.directory, len(cache.files), cache.files[1].mesh.part_shape
    ('N300/tensor_cache_bfp8', 22, (1, 1, 256, 256))
    """

    def __init__(self, checkpoint: Checkpoint, machine: str, **options: Unpack[CacheOptions]) -> None:
        unknown = options.keys() - CacheOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"unknown option {min(unknown)!r}; there are {', '.join(CacheOptions.__annotations__)}")
        self.checkpoint, self.options = checkpoint, options
        self.hf_model = options.get("hf_model", checkpoint.spelling)
        self.recipe = Recipe.load(options.get("recipe", DEFAULT_RECIPE))
        self.machine = Machine.of(machine, self.recipe, options.get("mesh"))
        self.optimizations = Optimizations.of(options.get("optimizations", "performance"), self.recipe)
        model_dtype = options.get("model_dtype", _MODEL_DTYPES[0])
        if model_dtype not in _MODEL_DTYPES:
            raise FormatError(f"expected one of {', '.join(_MODEL_DTYPES)} as model_dtype, got {model_dtype!r}")
        self.run = RecipeRun(
            self.recipe,
            checkpoint.config,
            checkpoint.tensors,
            {
                "device": self.machine.name,
                "rows": self.machine.mesh[0],
                "columns": self.machine.mesh[1],
                "devices": prod(self.machine.mesh),
                "ring": self.machine.ring,
                "architecture": self.machine.chip.arch,
                "banks": self.machine.chip.banks("dram"),
                "source_name": self.hf_model,
                "model_name": model_name(self.hf_model),
                "mode": self.optimizations.mode,
                "model_dtype": model_dtype,
                "hf_rope": options.get("hf_rope", False),
                "instruct": options.get("instruct", False),
                "pad_mlp_cores": options.get("pad_mlp_cores"),
            },
            self.optimizations,
        )

    @property
    def directory(self) -> str:
        """Return the directory of the files, below the one that the user names."""
        return "" if self.recipe.directory is None else str(self.run.evaluate(self.recipe.directory))

    @cached_property
    def files(self) -> tuple[CacheFile, ...]:
        """Return the files."""
        return tuple([self._build_file(output) for output in self.run.outputs(self.options.get("layers"))])

    def whole_tensors(self) -> dict[str, CacheFile]:
        """Return the tensors of the checkpoint that a file holds as they are loaded, and that file.

        Other files can be made from these: the head of a tied model, from the embedding.
        """
        result: dict[str, CacheFile] = {}
        for file in self.files if self.checkpoint.memory_dtype.name == "bfloat16" else ():
            size = prod(file.value.shape)
            whole = self.checkpoint.tensors[file.value.sources[0]] if len(file.value.parts) == 1 else None
            if whole is None or file.spec.dtype.name != "bfloat16" or file.value.added or prod(whole.shape) != size:
                continue
            if file.value.reshape(size).parts == whole.reshape(size).parts:
                result.setdefault(file.value.sources[0], file)
        return result

    def _build_file(self, output: RecipeOutput) -> CacheFile:
        mesh = self._build_mesh(output)
        dtype = format_of(output.dtype)
        try:
            memory = self._choose_memory(output, mesh.part_shape)
            spec = TensorSpec(mesh.part_shape, dtype, output.layout, memory=memory)
        except (LayoutError, FormatError) as problem:
            raise FormatError(f"{output.where}: {problem}") from None
        file = f"{output.name}_dtype_{dtype.name.upper()}_layout_{output.layout.upper()}.tensorbin"
        return CacheFile(
            output.name, file, output.value, self._rounding(output, dtype), spec, mesh, output.layer, output.made_as
        )

    def _choose_memory(self, output: RecipeOutput, part_shape: tuple[int, ...]) -> MemoryConfig | Sharding:
        if output.memory == "interleaved":
            return interleaved("dram")
        if output.memory != "dram_sharded":
            raise FormatError(f"expected interleaved or dram_sharded as memory, got {output.memory!r}")
        banks = self.machine.chip.banks("dram")
        height, width = part_shape[-2:]
        return width_sharded((banks, 1), (height, ceil_div(width, 32 * banks) * 32), buffer_type="dram")

    def _build_mesh(self, output: RecipeOutput) -> Mesh:
        """Return how the devices share an output."""
        if output.mesh == "replicated":  # on any mesh
            return Mesh((1, 1), Topology.replicated([(0, 0)]), output.value.shape)
        try:
            return Mesh.dividing(output.value.shape, self.machine.mesh, output.mesh)
        except (LayoutError, TypeError) as problem:
            raise FormatError(f"{output.where}: {output.name}: {problem}") from None

    def _rounding(self, output: RecipeOutput, dtype: Format) -> tuple[ScalarFormat, ...]:
        """Return the formats that values are rounded to between the checkpoint and the cache.

        The checkpoint is loaded as the type of its config, and sharded block formats are packed from bfloat16.
        """
        loaded = self.checkpoint.memory_dtype
        stored = [self.checkpoint.formats[name] for name in output.value.sources]
        rounding = () if all(each == loaded for each in stored) else (loaded,)
        if dtype.has_blocks and output.memory == "dram_sharded" and loaded.name != "bfloat16":
            rounding = (*rounding, scalar_format_of("bfloat16"))
        return rounding

    @property
    def is_complete(self) -> bool:
        """Return whether all layers are made."""
        layers = self.options.get("layers")
        return layers is None or set(layers) == set(range(self.run.names["layers"]))

    def marker(self) -> dict[str, bytes]:
        """Return the file that says that the cache is complete, by name; none if it is not, or the recipe has none."""
        if not self.recipe.marker or not self.is_complete:
            return {}
        names = self.run.names
        spelled = []
        for layer in range(names["layers"]):
            formats = self.run.formats(layer)
            chosen = [formats.get(group) for group in self.recipe.groups]
            spelled += [f"DataType.{each.upper()}" if each else "None" for each in chosen]
        variant = {
            "prefetcher": False,
            "precision": _short_hash("|".join(spelled)),
            "batch": self.options.get("max_batch_size", 1),
            "fused_ag": bool(names["fused"]),
            "hf_rope": names["hf_rope"],
        }
        loaded = f"torch.{self.checkpoint.memory_dtype.name}"
        body = {
            "format_version": 3,
            "model_name": names["model_name"],
            "n_layers": names["layers"],
            "mesh_shape": str(self.machine.mesh),
            "components": ["all"],
            "build_variant": variant,
            "cache_files": sorted([each.file for each in self.files]),
            "is_moe": bool(names["experts"]),
            "host_weights": [],
            "weights": {key: [list(value.shape), loaded] for key, value in self.run.all_weights().items()},
        }
        return {marker_name(variant): json.dumps(body).encode()}

    def record(self) -> dict[str, Any]:
        """Return what the manifest says of the cache: the recipe, the machine, the options, and the checkpoint."""
        # without where the user has the checkpoint: the same everywhere
        options: dict[str, Any] = {
            key: value for key, value in self.options.items() if key not in ("recipe", "hf_model")
        }
        options |= {"optimizations": self.optimizations.to_json(), "instruct": self.run.names.get("instruct", False)}
        return {
            **self.recipe.to_json(),
            "family": self.run.family.name,
            "machine": self.machine.name,
            "directory": self.directory,
            "model": self.run.names["model_name"],
            "options": options,
            "checkpoint": self.checkpoint.to_json(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], machine: str, recipe: FilePath) -> WeightCache:
        """Return the cache that the `record` of a manifest describes, made by a `recipe` for a `machine`."""
        name = expect_string(record.get("model"), "the name of the model")
        options = read_options(record)
        options["recipe"] = recipe
        return cls(Checkpoint.from_json(record.get("checkpoint"), name), machine, **options)


def read_options(record: Mapping[str, Any]) -> CacheOptions:
    """Return the options of a cache that its manifest records, without the recipe."""
    options = record.get("options")
    if not isinstance(options, dict) or not options.keys() <= CacheOptions.__annotations__.keys():
        raise FileFormatError(f"expected the options of a cache in the manifest, got {repr(options)[:60]}")
    known = cast("CacheOptions", dict(options))
    known["optimizations"] = Optimizations.from_json(options.get("optimizations"))
    return known


def _open_config(source: FilePath, tensors: Mapping[str, StoredTensor]) -> SourceFile:
    """Return the config.json of a checkpoint: behind a URL, that beside its tensors."""
    if not is_url(source):
        return SourceFile(find_checkpoint_folder(Path(source)) / "config.json")
    if not tensors:
        raise FileFormatError(f"{source} has no tensors")
    return next(iter(tensors.values())).file.open_beside("config.json")


def _spell_checkpoint(source: FilePath) -> str:
    """Return how the user spells a checkpoint; owner/model for one of the hub."""
    text = os.fspath(source)
    if remote := _HUB_URL.fullmatch(text):
        return remote[1]
    hub = _HUB_FOLDER.fullmatch(Path(source).name)
    return "/".join(hub.groups()) if hub else text


def open_checkpoint(source: FilePath) -> tuple[Checkpoint, Mapping[str, StoredTensor]]:
    """Return the checkpoint at a path, and its tensors; links of a hub snapshot are followed."""
    tensors = open_tensors(source, follow_symlinks=True)
    if tensors.kind == "gguf":
        model = name_gguf_model(tensors.metadata, tensors)
        return Checkpoint.of_gguf(source, model), model.tensors
    for tensor in tensors.values():
        if isinstance(tensor, RefusedTensor):  # a weight; what has no number format for another reason may not be one
            raise FormatError(f"{tensor.name} cannot be read: {tensor.problem}")
    return Checkpoint.of(source, tensors), tensors


def model_name(source: FilePath) -> str:
    """Return the name of a model: the last part of its path, or the name of a hub snapshot.

    >>> model_name("cache/models--org--Llama-3.1-8B/snapshots/0e9e39f2"), model_name("models/phi-4/")
    ('Llama-3.1-8B', 'phi-4')
    """
    path = os.fspath(source).rstrip("/")
    snapshot = _SNAPSHOT.fullmatch(path)
    return snapshot[1] if snapshot else path.rpartition("/")[2]


def marker_name(variant: Mapping[str, Any]) -> str:
    """Return the name of the file that marks a build as complete: a hash of what tells builds apart.

    >>> marker_name({})
    '.weights_complete.bf21a9e8fbc5'
    """
    return f"{MARKER_PREFIX}{_short_hash(json.dumps(variant, sort_keys=True))}"


def _short_hash(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]

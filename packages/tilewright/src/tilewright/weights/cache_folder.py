# SPDX-License-Identifier: Apache-2.0
"""`CacheFolder`: an existing weight cache: its files, and what its path, headers and manifest say about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..atomic import as_path
from ..errors import FileFormatError, FormatError, TilewrightError
from ..files.conversion_manifest import MANIFEST_NAME, ConversionManifest, read_manifest
from ..files.mesh import Topology
from ..files.source_file import FilePath
from ..files.stored_tensor import StoredTensor
from ..files.tensorbin import Tensorbin, read_tensorbin, read_tensorbin_tensor
from ..memory import TensorSpec
from .optimizations import MODES, Optimizations
from .recipe import DEFAULT_RECIPE, Recipe, recipe_names
from .weight_cache import CacheFile, CacheOptions, Checkpoint, Machine, WeightCache, read_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

_DIRECTORY = re.compile(r"tensor_cache_(instruct_)?(bfp8|bf16)")


class FileHeader(NamedTuple):
    """The header of a file: the spec of each device's part, and how devices share it."""

    spec: TensorSpec
    mesh_shape: tuple[int, ...]
    topology: Topology

    @property
    def suits_any_mesh(self) -> bool:
        """Return whether every device loads all of it, on whatever mesh."""
        return self.topology.placements == (None,)


class CacheFolder:
    """A directory with the files of a weight cache.

    Args:
        path: the directory, or one above it that holds a single cache.
    """

    def __init__(self, path: FilePath) -> None:
        self.path = _find_cache(as_path(path))
        self.names = sorted([each.name for each in self.path.iterdir() if each.suffix == ".tensorbin"])

    def open(self, name: str) -> Tensorbin:
        """Return the content of a file, mapped while it is used; raise if it is missing or cannot be read."""
        return read_tensorbin(self.path / name)

    def open_tensor(self, file: CacheFile, name: str) -> StoredTensor:
        """Return the tensor of a file under the name of the tensor of the checkpoint that it holds."""
        return read_tensorbin_tensor(self.path / file.file, name)

    @cached_property
    def headers(self) -> dict[str, FileHeader]:
        """Return the headers of all files that can be read."""
        result = {}
        for name in self.names:
            try:
                content = self.open(name)
            except (FileFormatError, OSError):
                continue
            result[name] = FileHeader(content.spec, content.mesh_shape, content.topology)
        return result

    @cached_property
    def manifest(self) -> ConversionManifest | None:
        """Return the manifest, None if tilewright did not make the cache."""
        path = self.path / MANIFEST_NAME
        return read_manifest(path) if path.exists() else None

    @property
    def record(self) -> Mapping[str, Any] | None:
        """Return what the manifest says of the recipe, the machine and the checkpoint."""
        return None if self.manifest is None else self.manifest.recipe

    @property
    def recipe(self) -> str:
        """Return the name of the recipe that made the cache; raise if it is one of a user, who has its file."""
        name = DEFAULT_RECIPE if self.record is None else str(self.record.get("name"))
        if name not in recipe_names():
            raise FormatError(
                f"{self.path} was made with the recipe {name!r}, which does not come with tilewright; give its file or"
                " folder with --recipe (recipe=...)"
            )
        return name

    def machine(self, recipe: Recipe) -> str | None:
        """Return the name of the machine that the manifest or the path says; None if they say nothing."""
        if self.record is not None:
            return str(self.record.get("machine"))
        above = self.path.parent
        name = (above.parent if above.name == "hf_rope" else above).name
        return name if _DIRECTORY.fullmatch(self.path.name) and name in recipe.devices else None

    def options(self) -> CacheOptions:
        """Return the options that the manifest, or the path, says."""
        if self.record is not None:
            return read_options(self.record)
        found = _DIRECTORY.fullmatch(self.path.name)
        if found is None:
            return {}
        return {
            "hf_rope": self.path.parent.name == "hf_rope",
            "instruct": found[1] is not None,
            "model_dtype": "bfloat8_b" if found[2] == "bfp8" else "bfloat16",
        }

    @cached_property
    def mesh(self) -> tuple[int, ...] | None:
        """Return the shape of the mesh that most files are for, None if they are for any."""
        shapes = Counter([header.mesh_shape for header in self.headers.values() if not header.suits_any_mesh])
        return shapes.most_common(1)[0][0] if shapes else None

    def describe(
        self, checkpoint: Checkpoint | None, machine: str | None = None, **options: Unpack[CacheOptions]
    ) -> WeightCache:
        """Return what the cache should be, for a checkpoint, or the one that the manifest describes.

        What is not said by `machine` and `options` is taken from the manifest, the path and the headers; of the modes
        of optimization, it is the one that most files are of.
        """
        recipe = options.get("recipe") or self.recipe
        if checkpoint is None:
            if self.record is None:
                raise FormatError(f"{self.path} has no manifest that says which model it is for; give the checkpoint")
            return WeightCache.from_record(self.record, machine or str(self.record["machine"]), recipe)
        options["recipe"] = recipe
        rules = Recipe.load(recipe)
        name = machine or self.machine(rules)
        if name is None:
            raise FormatError(f"cannot tell from {self.path} which machine it is for; name it, such as N300")
        known: CacheOptions = {**self.options(), **options}
        usual = Machine.of(name, rules).mesh
        if "mesh" not in known and self.mesh not in (None, (1, 1), usual) and prod(self.mesh or ()) == prod(usual):
            known["mesh"] = self.mesh or usual
        modes: list[FilePath | Optimizations] = [known["optimizations"]] if "optimizations" in known else [*MODES]
        caches, problems = [], []
        for mode in modes:
            try:
                known["optimizations"] = mode
                caches.append(WeightCache(checkpoint, name, **known))
            except TilewrightError as problem:
                problems.append(problem)
        if not caches:
            raise problems[0]
        return max(caches, key=lambda cache: len({file.file for file in cache.files} & set(self.names)))


def _find_cache(path: Path) -> Path:
    """Return the directory of a cache: this one, or the only one below it that holds tensorbin files."""
    if not path.is_dir():
        raise FileFormatError(f"{path} is not a directory of tensorbin files")
    if list(path.glob("*.tensorbin")):
        return path
    below = sorted({each.parent for each in path.rglob("*.tensorbin") if not each.parent.name.startswith(".")})
    if len(below) != 1:
        what = f"{', '.join(map(str, below[:4]))}; name one of them" if below else "none"
        raise FileFormatError(f"expected one cache of tensorbin files below {path}, got {what}")
    return below[0]

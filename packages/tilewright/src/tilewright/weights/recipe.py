# SPDX-License-Identifier: Apache-2.0
"""`Recipe`: the files of a weight cache as expressions over the tensors of a checkpoint, read from TOML.

A recipe is a folder: one file has the files of the cache, machines and number formats, and every other one the weights
of a family of models. A file of a user is a recipe of its own, or adds to one: a family, or more files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..atomic import as_path
from ..errors import FileFormatError, FormatError
from ..files.source_file import FilePath
from ..plugins import list_plugins, load_plugin
from .recipe_file import (
    PLACEHOLDER,
    Expression,
    FormatRule,
    MachineTable,
    ModelFormats,
    OutputTable,
    RecipeFile,
    Refusal,
    Table,
    parse_signature,
)

DEFAULT_RECIPE = "tt_transformers"
GUIDE = "docs/guides/write-a-recipe.md"
GIVEN_NAMES = (
    "device", "rows", "columns", "devices", "ring", "architecture", "banks", "source_name", "model_name", "mode",
    "model_dtype", "hf_rope", "instruct", "pad_mlp_cores",
)  # fmt: skip
"""What the user and the machine decide, by the names that expressions use."""

RUN_FUNCTIONS = ("config", "config_size", "has_config", "tensor", "weight", "has_weight", "environment")
"""The functions that a recipe has besides those of all expressions."""

_MAX_BYTES = 1 << 20  # of a file


@dataclass(frozen=True)
class Family:
    """A family of models: its weights by key, and what it adds to the files, formats, values and functions of a recipe.

    >>> Recipe.load("tt_transformers").families["qwen2"].model_types
    ('qwen2',)
    """

    name: str
    model_types: tuple[str, ...] = ()
    weights: Mapping[str, Expression] = field(default_factory=dict)
    functions: Mapping[str, Expression] = field(default_factory=dict)
    values: Mapping[str, Expression] = field(default_factory=dict)
    refuse: tuple[Refusal, ...] = ()
    precision: tuple[FormatRule, ...] = ()
    output: tuple[OutputTable, ...] = ()

    def extend(self, name: str, file: RecipeFile) -> Family:
        """Return the family of a file that extends this one."""
        for key in file.without:
            if key not in self.weights:
                raise FileFormatError(f"{file.where}: without: {self.name or 'no family'} has no weight {key!r}")
        weights = {key: value for key, value in self.weights.items() if key not in file.without}
        return Family(
            name,
            file.model_types,
            {**weights, **file.weights},
            {**self.functions, **file.functions},
            {**self.values, **file.values},
            (*self.refuse, *file.refuse),
            (*file.precision, *self.precision),
            add_outputs(self.output, file.output),
        )


@dataclass(frozen=True)
class Recipe:
    """A recipe: what the files of a cache are, for which machines, and how families of models name their weights.

    >>> recipe = Recipe.load("tt_transformers")
    >>> recipe.families["llama"].model_types, len(recipe.devices), recipe.follows[:22]
    (('llama', 'mistral'), 11, 'models/tt_transformers')
    """

    name: str
    revision: str = ""  # the first digits of a hash of its files
    follows: str = ""
    directory: Expression | None = None
    marker: bool = False
    devices: Mapping[str, MachineTable] = field(default_factory=dict, repr=False, compare=False)
    groups: Mapping[str, Table] = field(default_factory=dict, repr=False, compare=False)
    precision: tuple[FormatRule, ...] = field(default=(), repr=False, compare=False)
    model_precision: tuple[ModelFormats, ...] = field(default=(), repr=False, compare=False)
    shapes: Mapping[str, Expression] = field(default_factory=dict, repr=False, compare=False)
    output: tuple[OutputTable, ...] = field(default=(), repr=False, compare=False)
    functions: Mapping[str, Expression] = field(default_factory=dict, repr=False, compare=False)
    values: Mapping[str, Expression] = field(default_factory=dict, repr=False, compare=False)
    refuse: tuple[Refusal, ...] = field(default=(), repr=False, compare=False)
    families: Mapping[str, Family] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, name: FilePath = DEFAULT_RECIPE) -> Recipe:
        """Return a recipe: the `name` of one that is known, or the path of a TOML file or of a folder.

        >>> Recipe.load().name
        'tt_transformers'
        """
        path = as_path(name)
        if str(name) in _built_in_names():
            return _load_built_in(str(name))
        added = load_plugin("recipes", str(name), Path)
        if isinstance(added, Path):
            return _load_path(added)
        if path.is_dir() or path.suffix == ".toml":
            return _load_path(path)
        raise FormatError(
            f"unknown recipe {str(name)!r}; tilewright has {', '.join(recipe_names())}; for one of your own, give its"
            f" .toml file or its folder ({GUIDE} shows how to write one)"
        )

    def family(self, model_type: str) -> Family:
        """Return the family of a `model_type`, as config.json has it; the one that was added last counts."""
        for family in reversed(list(self.families.values())):
            if model_type in family.model_types:
                return family
        known = sorted({each for family in self.families.values() for each in family.model_types})
        raise FormatError(
            f"recipe {self.name} has no family for model_type {model_type!r}; it has {', '.join(known)}; if the model"
            f" is built like one of them, a TOML file of a few lines adds it: {GUIDE} shows how"
        )

    def outputs(self, family: Family) -> tuple[OutputTable, ...]:
        """Return the files of a `family`: those of the recipe, and its own.

        >>> recipe = Recipe.load()
        >>> len(recipe.outputs(recipe.families["llama"])) == len(recipe.output)
        True
        """
        return add_outputs(self.output, family.output)

    def to_json(self) -> dict[str, str]:
        """Return what identifies the recipe, as manifests record it.

        >>> sorted(Recipe.load().to_json())
        ['follows', 'name', 'revision']
        """
        return {"name": self.name, "revision": self.revision, "follows": self.follows}

    def _add(self, file: RecipeFile) -> Recipe:
        """Return the recipe with what a file adds to all families; the file's own counts first."""
        shared: dict[str, Any] = {}
        if not file.is_family:
            shared = {
                "functions": {**self.functions, **file.functions},
                "values": {**self.values, **file.values},
                "refuse": (*self.refuse, *file.refuse),
                "precision": (*file.precision, *self.precision),
                "output": add_outputs(self.output, file.output),
            }
        return replace(
            self,
            follows=file.follows or self.follows,
            directory=file.directory or self.directory,
            marker=self.marker if file.marker is None else file.marker,
            devices={**self.devices, **file.devices},
            groups={**self.groups, **file.groups},
            model_precision=(*file.model_precision, *self.model_precision),
            shapes={**self.shapes, **file.shapes},
            **shared,
        )

    def _validate(self) -> None:
        """Raise if an expression uses a name that does not exist."""
        for family in list(self.families.values()) or [Family("")]:
            functions, values = {**self.functions, **family.functions}, {**self.values, **family.values}
            names = {*GIVEN_NAMES, *RUN_FUNCTIONS, *values}
            for signature in functions:
                names.add(parse_signature(signature)[0])
            for expression, own in self._expressions(family):
                expression.validate(names | set(own))
            for table in self.outputs(family):
                if table.dtype.isupper() and table.dtype not in self.groups:
                    raise FileFormatError(
                        f"{table.name.where}: dtype {table.dtype} is not a group of [groups], which has"
                        f" {', '.join(self.groups) or 'none'}"
                    )
                if table.per_layer and "layers" not in values:
                    raise FileFormatError(f"{table.name.where}: {{layer}} needs a value 'layers' in [values]")

    def _expressions(self, family: Family) -> Iterator[tuple[Expression, Collection[str]]]:
        """Yield all expressions that apply to a family, with the names that only they have."""
        if self.directory is not None:
            yield self.directory, ()
        for signature, expression in {**self.functions, **family.functions}.items():
            yield expression, parse_signature(signature)[1]
        for value in {**self.values, **family.values}.values():
            yield value, ()
        for rule in (*family.precision, *self.precision):
            yield rule.when, ()
        for refusal in (*self.refuse, *family.refuse):
            yield from ((refusal.when, ()), (refusal.message, ()))
        for key, expression in (*self.shapes.items(), *family.weights.items()):
            yield expression, PLACEHOLDER.findall(key)
        for table in self.outputs(family):
            yield from ((each, ()) for each in (table.when, *table.each.values()))
            own = (*table.each, "layer") if table.per_layer else (*table.each,)
            yield from ((each, own) for each in (table.name, table.value, table.memory, table.mesh))


def add_outputs(tables: tuple[OutputTable, ...], more: tuple[OutputTable, ...]) -> tuple[OutputTable, ...]:
    """Return the files of two tables; those of the second replace those of the same name."""
    names = {table.name.text for table in more}
    return (*[table for table in tables if table.name.text not in names], *more)


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with tilewright, and of those of plug-ins.

    >>> recipe_names()
    ['tt_transformers']
    """
    return sorted({*_built_in_names(), *list_plugins("recipes")})


def _built_in_names() -> list[str]:
    return [each.name for each in (files("tilewright.weights") / "recipes").iterdir() if each.is_dir()]


@lru_cache
def _load_built_in(name: str) -> Recipe:
    folder = files("tilewright.weights") / "recipes" / name
    texts = {each.name: each.read_bytes() for each in folder.iterdir() if each.name.endswith(".toml")}
    return _build_recipe(name, "", texts, is_built_in=True)


def _load_path(path: Path) -> Recipe:
    """Return the recipe of a user's file or folder."""
    paths = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    if not paths:
        raise FileFormatError(f"{path} has no .toml files; a recipe is a folder of them, or one file")
    for each in paths:
        if each.stat().st_size > _MAX_BYTES:
            raise FileFormatError(f"{each} has {each.stat().st_size} bytes, more than {_MAX_BYTES}")
    folder = path if path.is_dir() else path.parent
    prefix = "" if folder == Path() else f"{folder}/"  # as the user wrote it
    return _build_recipe(path.resolve().stem, prefix, {each.name: each.read_bytes() for each in paths})


def _build_recipe(name: str, folder: str, texts: Mapping[str, bytes], is_built_in: bool = False) -> Recipe:
    """Return the recipe of some files, by name. It adds to another one unless it has all that a recipe needs."""
    parsed = {file.removesuffix(".toml"): RecipeFile.parse(texts[file], folder + file) for file in sorted(texts)}
    named = [file.recipe for file in parsed.values() if file.recipe is not None]
    is_complete = any(file.devices for file in parsed.values()) and any(file.output for file in parsed.values())
    recipe = Recipe(name) if is_built_in or (is_complete and not named) else Recipe.load((*named, DEFAULT_RECIPE)[0])
    digest = hashlib.sha256(recipe.revision.encode())
    for file, text in sorted(texts.items()):
        digest.update(file.encode() + b"\0" + text)
    for content in parsed.values():
        recipe = recipe._add(content)
    families = dict(recipe.families)
    for key in _order_families(parsed, families):
        base = parsed[key].extends
        families[key] = (Family("") if base is None else families[base]).extend(key, parsed[key])
    result = replace(recipe, name=name, revision=digest.hexdigest()[:12], families=families)
    result._validate()
    return result


def _order_families(parsed: Mapping[str, RecipeFile], known: Mapping[str, Family]) -> Sequence[str]:
    """Return the names of the families of some files, each after the one that it extends."""
    ordered: list[str] = []
    pending = [name for name, file in parsed.items() if file.is_family]
    while pending:
        free = {None, *ordered, *known.keys() - set(pending)}
        ready = [name for name in pending if parsed[name].extends in free or parsed[name].extends == name in known]
        if not ready:
            file = parsed[pending[0]]
            families = ", ".join([*known, *ordered]) or "none"
            raise FileFormatError(f"{file.where}: extends: unknown family {file.extends!r}; expected one of {families}")
        ordered += ready
        pending = [name for name in pending if name not in ready]
    return ordered

# SPDX-License-Identifier: Apache-2.0
"""`Recipe`: the files of a weight cache as expressions over the tensors of a checkpoint, read from TOML."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from ..copying.assembly import Assembly
from ..errors import FileFormatError, FormatError
from .expressions import evaluate

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SIGNATURE = re.compile(r"(\w+)\(([\w, ]*)\)")


class MissingTensorError(FormatError):
    """A recipe asks for a tensor that the checkpoint does not have."""


@dataclass(frozen=True)
class RecipeOutput:
    """A file of the cache: how it is put together, and how it is stored and spread over a mesh."""

    name: str
    value: Assembly
    dtype: str
    layout: str
    memory: str
    mesh: Any
    layer: int | None


@dataclass(frozen=True)
class Recipe:
    """A recipe: the common files of the cache, and the weights of each family of models.

    >>> Recipe.named("tt_transformers").families["llama"]["model_types"]
    ['llama', 'mistral']
    """

    name: str
    cache: Mapping[str, Any]
    families: Mapping[str, Mapping[str, Any]]

    @classmethod
    @lru_cache
    def named(cls, name: str) -> Recipe:
        """Return a recipe that comes with tilewright."""
        folder = files("tilewright.conversion") / "recipes" / name
        texts = {Path(each.name).stem: each.read_text(encoding="utf-8") for each in folder.iterdir()}
        tables = {stem: tomllib.loads(text) for stem, text in sorted(texts.items())}
        return cls(name, tables.pop("cache"), tables)

    def family(self, model_type: str) -> dict[str, Any]:
        """Return the functions, refusals and weights of the family of a model type."""
        for name, table in self.families.items():
            if model_type in table["model_types"]:
                return self._extended(name)
        known = sorted({each for table in self.families.values() for each in table["model_types"]})
        raise FormatError(
            f"recipe {self.name} has no family for the model type {model_type!r}; it has {', '.join(known)}; write a"
            " recipe of your own, as docs/guides/write-a-recipe.md shows"
        )

    def _extended(self, name: str) -> dict[str, Any]:
        own = self.families[name]
        base = self._extended(own["extends"]) if "extends" in own else {"functions": {}, "refuse": [], "weights": {}}
        without = own.get("without", ())
        return {
            "functions": {**base["functions"], **own.get("functions", {})},
            "refuse": [*base["refuse"], *own.get("refuse", [])],
            "weights": {**{k: v for k, v in base["weights"].items() if k not in without}, **own.get("weights", {})},
        }


@dataclass
class RecipeRun:
    """A recipe applied to one checkpoint and one machine.

    Args:
        recipe: the recipe.
        config: the checkpoint's config.json.
        shapes: the shape of every tensor of the checkpoint.
        given: what the user chose: device, mesh, mode and so on, by the names that expressions use.
    """

    recipe: Recipe
    config: Mapping[str, Any]
    tensors: Mapping[str, Assembly]
    given: Mapping[str, Any]

    def __post_init__(self) -> None:
        model_type = self.config.get("model_type")
        if not isinstance(model_type, str):
            raise FileFormatError(f"config.json has no model_type; got {model_type!r}")
        self.family = self.recipe.family(model_type)
        self._weights: dict[str, Assembly] = {}
        self._patterns = [(_compile_key(key), text) for key, text in self.family["weights"].items()]
        self.names: dict[str, Any] = dict(self.given)
        self.names.update(config=self.config.get, tensor=self.tensor, weight=self.weight, has_weight=self.has_weight)
        for signature, text in {**self.recipe.cache.get("functions", {}), **self.family["functions"]}.items():
            self._define(signature, text)
        for name, text in self.recipe.cache.get("values", {}).items():
            self.names[name] = self.evaluate(text)
        for refusal in [*self.recipe.cache.get("refuse", []), *self.family["refuse"]]:
            if self.evaluate(refusal["when"]):
                raise FormatError(self.evaluate(refusal["message"]))

    def _define(self, signature: str, text: str) -> None:
        found = _SIGNATURE.fullmatch(signature)
        if found is None:
            raise FormatError(f"expected a function such as 'rotary(weight, heads)', got {signature!r}")
        parameters = [each.strip() for each in found[2].split(",") if each.strip()]

        def function(*arguments: Any) -> Any:
            if len(arguments) != len(parameters):
                raise FormatError(f"{signature} takes {len(parameters)} arguments, got {len(arguments)}")
            return self.evaluate(text, dict(zip(parameters, arguments, strict=True)))

        self.names[found[1]] = function

    def evaluate(self, text: str, more: Mapping[str, Any] | None = None) -> Any:
        return evaluate(text, {**self.names, **(more or {})})

    def tensor(self, name: str) -> Assembly:
        """Return a tensor of the checkpoint."""
        if name not in self.tensors:
            raise MissingTensorError(f"the checkpoint has no tensor {name!r}")
        return self.tensors[name]

    def weight(self, key: str) -> Assembly:
        """Return a weight by its key, such as "layers.0.attention.wq.weight"."""
        if key not in self._weights:
            for pattern, text in reversed(self._patterns):
                if (found := pattern.fullmatch(key)) is not None:
                    bound = {name: int(value) for name, value in found.groupdict().items()}
                    self._weights[key] = self.evaluate(text, bound)
                    break
            else:
                raise MissingTensorError(f"the family has no weight {key!r}")
        return self._weights[key]

    def has_weight(self, key: str) -> bool:
        """Return whether there is a weight, and the tensors that it is made from."""
        try:
            self.weight(key)
        except FormatError:
            return False
        return True

    def all_weights(self) -> dict[str, Assembly]:
        """Return all weights by key, layer by layer."""
        keys: list[str] = []
        layered = [key for key in self.family["weights"] if "{layer}" in key]
        for key in self.family["weights"]:
            if key not in layered:
                keys.append(key)
            elif key == layered[0]:
                for layer in range(self.names["layers"]):
                    for each in layered:
                        experts = range(self.names["experts"]) if "{expert}" in each else [0]
                        keys += [each.format(layer=layer, expert=expert) for expert in experts]
        return {key: self.weight(key) for key in keys if self.has_weight(key)}

    def outputs(self, layers: Sequence[int] | None = None) -> Iterator[RecipeOutput]:
        """Yield the files of the cache; `layers` limits those that belong to a layer."""
        for table in self.recipe.cache["output"]:
            if not self.evaluate(table.get("when", "True")):
                continue
            loops = {key: list(self.evaluate(text)) for key, text in table.get("each", {}).items()}
            per_layer = "{layer}" in table["name"]
            chosen = range(self.names["layers"]) if layers is None else layers
            for layer in chosen if per_layer else [None]:
                for values in product(*loops.values()):
                    bound = dict(zip(loops, values, strict=True))
                    if layer is not None:
                        bound["layer"] = layer
                    yield self._output(table, layer, bound)

    def _output(self, table: Mapping[str, Any], layer: int | None, bound: dict[str, Any]) -> RecipeOutput:
        name = self.evaluate(f'f"""{table["name"]}"""', bound)
        dtype = table["dtype"]
        if dtype == "model_dtype":
            dtype = self.names["model_dtype"]
        elif dtype.isupper():
            dtype = self.precision(layer or 0)[dtype]
        return RecipeOutput(
            name,
            self.evaluate(table["value"], bound),
            dtype,
            table.get("layout", "tile"),
            self.evaluate(table.get("memory", "'interleaved'"), bound),
            self.evaluate(table["mesh"], bound),
            layer,
        )

    def precision(self, layer: int) -> dict[str, str]:
        """Return the number format of every group of weights in a layer."""
        name, mode = self.names["model_name"], self.names["mode"]
        formats = dict.fromkeys(("FF1_FF3", "FF2", "WQKV", "WO", "KV_CACHE"), "bfloat8_b")
        single = [t for t in self.recipe.cache["model_precision"] if name in t["models"] and mode in t["modes"]]
        for table in single:
            if layer in table["layers"]:
                return {**formats, **table["formats"]}
        base = {"base_name": "model"} if single else {}
        for table in self.recipe.cache["precision"]:
            if self.evaluate(table["when"], base):
                return {**formats, **table["formats"]}
        return formats


def _compile_key(key: str) -> re.Pattern[str]:
    """Return the pattern of a key with placeholders such as {layer}."""
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[0-9]+)", re.escape(key)))

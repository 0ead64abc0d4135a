# SPDX-License-Identifier: Apache-2.0
"""`RecipeRun`: a recipe applied to one checkpoint and one machine: weights, outputs, and number formats."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from .._text import count_of
from ..copying import Assembly
from ..errors import FileFormatError, FormatError
from .recipe import (
    MODEL_DTYPE,
    PLACEHOLDER,
    Expression,
    Family,
    Formats,
    Optimizations,
    OutputTable,
    Recipe,
    parse_signature,
)
from .recipe_logic import Choices
from .rules import ExpressionError, evaluate

# Weights that not all models have: the pattern of their keys, and a field of config.json that announces them.
_OPTIONAL_WEIGHTS = (
    (r"attention\.w[qkv]\.bias$", "attention_bias"),
    (r"attention\.[qk]_norm\.weight$", "use_qk_norm"),
    (r"\.(pre|post)_feedforward_layernorm\.weight$", ""),
)
_PLACEHOLDER_MODEL = "model"  # the name that layers go by which a decoder config does not list


class MissingTensorError(ExpressionError):
    """A recipe asks for a `tensor` that the checkpoint does not have."""

    def __init__(self, message: str, tensor: str = "") -> None:
        super().__init__(message)
        self.tensor = tensor


@dataclass(frozen=True)
class RecipeOutput:
    """A file of the cache: how it is put together, and how it is stored and spread over a mesh."""

    name: str
    value: Assembly
    dtype: str
    layout: str
    memory: str
    mesh: Any  # as written: "replicated", a dimension, or one per axis of the mesh
    layer: int | None
    where: str
    made_as: tuple[str, ...]  # the expressions of the recipe behind it


def find_family(recipe: Recipe, config: Mapping[str, Any]) -> Family:
    """Return the family of a `recipe` that the model of a config.json belongs to, or raise."""
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise FileFormatError(f"config.json: expected a model_type, such as 'llama', got {model_type!r}")
    return recipe.family(model_type)


class RecipeRun:
    """A recipe applied to one checkpoint and one machine.

    Args:
        recipe: the recipe.
        config: the checkpoint's config.json.
        tensors: the tensors of the checkpoint, by name; None if only config.json is known, which implies their shapes.
        choices: the choices of the user and the machine.
        optimizations: the number formats that the user chose.
    """

    def __init__(
        self,
        recipe: Recipe,
        config: Mapping[str, Any],
        tensors: Mapping[str, Assembly] | None,
        choices: Choices,
        optimizations: Optimizations,
    ) -> None:
        self.recipe, self.tensors, self.optimizations = recipe, tensors or {}, optimizations
        self.config = recipe.complete(config)
        self._is_implied = tensors is None
        self.family = find_family(recipe, config)
        self._weights: dict[str, Assembly] = {}
        self._last_tensor = ""  # that an expression asked for, for messages
        self._used: dict[str, str] = {}  # the weights of an output, and their expressions
        self._places = [f"recipe {recipe.name}"]  # and the expressions that are being evaluated, for messages
        self._patterns = [(_compile_key(key), text) for key, text in self.family.weights.items()]
        self.config_fields = {"model_type", "text_config", "vision_config"}
        """The fields of config.json that were read."""
        self._shapes = [(_compile_key(key), text) for key, text in recipe.shapes.items()]
        self.names: dict[str, Any] = {
            **choices._asdict(),
            "config": self.config_entry,
            "config_size": self.config_size,
            "has_config": self.has_config,
            "tensor": self.tensor,
            "has_tensor": self.tensors.__contains__,
            "weight": self.weight,
            "has_weight": self.has_weight,
            "environment": os.environ.get,
        }
        functions = {**recipe.functions, **self.family.functions}.items()
        defined = {self._define(signature, expression) for signature, expression in functions}
        values = {**recipe.values, **self.family.values}
        logic = recipe.logic(choices, self.config, self.config_size, self.has_weight)
        for name in {**dict.fromkeys(recipe.logic.names()), **values}:
            if name in values:
                self.names[name] = vars(logic)[name] = self.evaluate(values[name])
            elif name not in defined:
                self.names[name] = getattr(logic, name)
        for key in self.required(0):
            self._require(key)
        for message in logic.refusals():
            raise FormatError(message)
        for refusal in (*recipe.refuse, *self.family.refuse):
            if self.evaluate(refusal.when):
                raise FormatError(self.evaluate(refusal.message))

    def _define(self, signature: str, expression: Expression) -> str:
        """Define the function of a signature, and return its name."""
        name, parameters = parse_signature(signature)

        def function(*arguments: Any) -> Any:
            if len(arguments) != len(parameters):
                raise FormatError(f"{signature} takes {len(parameters)} arguments, got {len(arguments)}")
            return self.evaluate(expression, dict(zip(parameters, arguments, strict=True)))

        self.names[name] = function
        return name

    def evaluate(self, expression: Expression, more: Mapping[str, Any] | None = None) -> Any:
        """Return the value of an expression of the recipe; `more` are names that only it has."""
        self._places.append(expression.where)
        try:
            return evaluate(expression.text, {**self.names, **(more or {})})
        except (_LocatedError, MissingTensorError):
            raise
        except ExpressionError as problem:
            raise _LocatedError(f"{expression.where}: {problem}") from None
        finally:
            self._places.pop()

    def required(self, layer: int) -> list[str]:
        """Return the keys of the weights of a layer that all models of the family have."""
        return [number for key in self.family.required for number in self._number_key(key, layer)]

    def _require(self, key: str) -> None:
        try:
            self.weight(key)
        except MissingTensorError as problem:
            raise MissingTensorError(
                f"all models of family {self.family.name} have {key}, but the checkpoint has no {problem.tensor!r}; use"
                " a checkpoint with all tensors",
                problem.tensor,
            ) from None

    def config_entry(self, key: str) -> object:
        """Return an entry of config.json, None if there is none; raise for a size that its text_config contradicts."""
        self.config_fields.add(key)
        value, inner = self.config.get(key), self.config.get("text_config")
        other = inner.get(key, value) if isinstance(inner, Mapping) else value
        if type(other) is int and other != value:
            raise _LocatedError(
                f"config.json: {key} is {value!r:.40}, but its text_config says {other}; tt_transformers goes by the"
                " first, and transformers by the second, so correct the wrong one"
            )
        return value

    def has_config(self, key: str) -> bool:
        """Return whether config.json has an entry, if only null."""
        return key in self.config

    def config_size(self, key: str, default: int | None = None) -> int:
        """Return an entry of config.json that is a positive integer, or the default if it is missing, null or 0."""
        value = self.config_entry(key)
        if not value and default is not None:
            return default
        if type(value) is not int or value < 1:
            problem = "is missing" if key not in self.config else f"is {value!r:.40}"
            raise _LocatedError(f"config.json: {key} {problem}; expected a positive integer")
        return value

    def tensor(self, name: str) -> Assembly:
        """Return a tensor of the checkpoint."""
        if name not in self.tensors:
            raise MissingTensorError(f"the checkpoint has no tensor {name!r}, which {self._places[-1]} needs", name)
        self._last_tensor = name
        return self.tensors[name]

    def _describe_names(self, missing: str) -> str:
        """Return a remark about tensors that are named otherwise than a missing one."""
        if not missing:
            return ""
        prefix, _, rest = missing.partition(".")
        for name in self.tensors if rest else ():
            if name.endswith(f".{missing}") or name == rest:
                return f"; it has {name!r}, under another prefix: save the model again with names such as {missing!r}"
        if not any(name.startswith(f"{prefix}.") for name in self.tensors):
            return f"; none of its names starts with {prefix!r}: they are such as {next(iter(self.tensors), '')!r}"
        return ""

    def weight(self, key: str) -> Assembly:
        """Return a weight by its key, such as "layers.0.attention.wq.weight"."""
        for pattern, expression in reversed(self._patterns):
            if (match := pattern.fullmatch(key)) is not None:
                self._used[key] = expression.text
                if self._is_implied and key not in self._weights:
                    self._weights[key] = self._imply_weight(key)
                if key not in self._weights:
                    self._weights[key] = self._check_shape(key, self._make_weight(key, expression, _numbers(match)))
                return self._weights[key]
        raise MissingTensorError(f"family {self.family.name} has no weight {key!r}, which {self._places[-1]} needs")

    def _imply_weight(self, key: str) -> Assembly:
        """Return a weight of the shape that config.json implies, if transformers gives one to such a model."""
        for pattern, field in _OPTIONAL_WEIGHTS:
            own = any(_compile_key(required).fullmatch(key) for required in self.family.required)
            if re.search(pattern, key) and not own and not self.config.get(field):
                raise MissingTensorError(f"a model of type {self.config['model_type']} has no {key}")
        shape = self._expected_shape(key)
        if shape is None:
            raise MissingTensorError(f"config.json does not imply the shape of {key}")
        return Assembly.of(key, shape)

    def _make_weight(self, key: str, expression: Expression, numbers: dict[str, int]) -> Assembly:
        self._last_tensor = ""
        try:
            value: Assembly = self.evaluate(expression, numbers)
        except _LocatedError as problem:
            expected = self._expected_shape(key)
            implied = "" if expected is None else f"; config.json says that {key} has shape {list(expected)}"
            raise _LocatedError(f"{problem} ({key} from {self._last_tensor}){implied}") from None
        return value

    def _check_shape(self, key: str, value: Assembly) -> Assembly:
        """Return a weight if it has the shape that config.json implies."""
        expected = self._expected_shape(key)
        if expected not in (None, value.shape):
            raise _LocatedError(
                f"{key} has shape {list(value.shape)} (from {', '.join(value.sources)}), but config.json says"
                f" {list(expected or ())}; is that the config.json of this checkpoint?"
            )
        return value

    def _expected_shape(self, key: str) -> tuple[int, ...] | None:
        for pattern, expression in self._shapes:
            if (match := pattern.fullmatch(key)) is not None:
                return tuple(self.evaluate(expression, _numbers(match)))
        return None

    def has_weight(self, key: str) -> bool:
        """Return whether there is a weight, and the tensors that it is made from."""
        try:
            self.weight(key)
        except MissingTensorError:
            return False
        return True

    def _number_key(self, key: str, layer: int) -> list[str]:
        """Return the keys of a layer for a key with placeholders: one for all numbers of the others, as `experts`."""
        names = PLACEHOLDER.findall(key)
        counts = [[layer] if name == "layer" else range(self.names.get(f"{name}s", 0)) for name in names]
        return [key.format(**dict(zip(names, numbers, strict=True))) for numbers in product(*counts)]

    def _check_layers(self) -> None:
        """Raise if a weight that one layer has is missing in another: it was lost, and the model is not complete."""
        if self._is_implied:
            return
        if self.names.get("layers", 0) > len(self.tensors):  # not to look for very many
            raise FormatError(
                f"config.json says that the model has {self.names['layers']} layers, but the checkpoint has"
                f" {count_of(len(self.tensors), 'tensor')}; use the config.json of this checkpoint"
            )
        for key in self.family.weights if "layers" in self.names else ():
            layers = self.names["layers"] if "{layer}" in key else 1
            numbered = [weight for layer in range(layers) for weight in self._number_key(key, layer)]
            present = [weight for weight in numbered if self.has_weight(weight)]
            for weight in numbered if 0 < len(present) < len(numbered) else ():
                try:
                    self.weight(weight)
                except MissingTensorError as problem:
                    raise MissingTensorError(
                        f"{problem}; there is {self.weight(present[0]).sources[0]!r}, and config.json says that the"
                        f" model has {count_of(self.names['layers'], 'layer')}"
                    ) from None

    def all_weights(self) -> dict[str, Assembly]:
        """Return all weights by key, layer by layer."""
        keys: list[str] = []
        layered = [key for key in self.family.weights if "{layer}" in key]
        for key in self.family.weights:
            if key not in layered:
                keys += self._number_key(key, 0)
            elif key == layered[0]:
                for layer in range(self.names["layers"]):
                    keys += [numbered for own in layered for numbered in self._number_key(own, layer)]
        return {key: self.weight(key) for key in keys if self.has_weight(key)}

    def outputs(self, layers: Sequence[int] | None = None) -> Iterator[RecipeOutput]:
        """Yield the files of the cache; `layers` restricts the files of layers."""
        self._check_layers()
        for table in self.recipe.outputs(self.family):
            if not self.evaluate(table.when):
                continue
            loops = {key: list(self.evaluate(expression)) for key, expression in table.each.items()}
            for layer in self._choose_layers(layers) if table.per_layer else [None]:
                for values in product(*loops.values()):
                    bound = dict(zip(loops, values, strict=True))
                    yield self._build_output(table, layer, bound if layer is None else {**bound, "layer": layer})

    def _choose_layers(self, layers: Sequence[int] | None) -> Sequence[int]:
        count = self.names["layers"]
        for layer in layers or ():
            if layer >= count:
                raise FormatError(f"layer {layer} does not exist: the model has {count}, from 0 to {count - 1}")
        return range(count) if layers is None else layers

    def _build_output(self, table: OutputTable, layer: int | None, bound: dict[str, Any]) -> RecipeOutput:
        dtype = table.dtype
        if dtype == MODEL_DTYPE:
            dtype = self.names["model_dtype"]
        elif dtype in self.recipe.groups:
            dtype = self.formats(layer or 0)[dtype]
        self._used = {}
        try:
            value = self.evaluate(table.value, bound)
        except MissingTensorError as problem:
            raise MissingTensorError(f"{problem}{self._describe_names(problem.tensor)}") from None
        if not isinstance(value, Assembly):
            raise FormatError(f"{table.value.where}: expected a tensor, got {value!r}")
        return RecipeOutput(
            f"{self.names.get('file_prefix', '')}{self.evaluate(table.name, bound)}",
            value,
            dtype,
            table.layout,
            self.evaluate(table.memory, bound),
            self.evaluate(table.mesh, bound),
            layer,
            table.name.where,
            (table.value.text, *[f"weight({key!r}) = {text}" for key, text in self._used.items()]),
        )

    def formats(self, layer: int) -> dict[str, str]:
        """Return the number format of every group of weights in a layer."""
        usual = {group: table["format"] for group, table in self.recipe.groups.items() if "format" in table}
        if self.optimizations.all_layers is not None:
            return {**usual, **self.optimizations.all_layers}
        listed = self._listed_layers()
        if listed is None:
            return {**usual, **self._mode_formats({})}
        if layer > max(listed):
            raise FormatError(
                f"the decoder config ends at layer {max(listed)}, but the model has {self.names['layers']} layers, and"
                f" tt_transformers stops there; use one that lists layer {self.names['layers'] - 1}"
            )
        own = listed.get(layer)
        return {**usual, **(self._mode_formats({"base_name": _PLACEHOLDER_MODEL}) if own is None else own)}

    def _listed_layers(self) -> Mapping[int, Formats | None] | None:
        """Return the layers that a decoder config lists: the user's, or the recipe's for this very model."""
        if self.optimizations.layers is not None:
            return self.optimizations.layers
        name, mode = self.names["model_name"], self.optimizations.mode
        single = [entry for entry in self.recipe.model_precision if name in entry.models and mode in entry.modes]
        return {layer: entry.formats for entry in reversed(single) for layer in entry.layers} if single else None

    def _mode_formats(self, names: Mapping[str, Any]) -> Formats:
        """Return the formats of the first line of the recipe that matches."""
        for rule in (*self.family.precision, *self.recipe.precision):
            if self.evaluate(rule.when, names):
                return rule.formats
        return {}


class _LocatedError(ExpressionError):
    """An error with its position in the recipe."""


def _numbers(match: re.Match[str]) -> dict[str, int]:
    return {name: int(value) for name, value in match.groupdict().items()}


def _compile_key(key: str) -> re.Pattern[str]:
    """Return the pattern of a key with placeholders such as {layer}.

    >>> _compile_key("layers.{layer}.norm").fullmatch("layers.12.norm")["layer"]
    '12'
    """
    parts = PLACEHOLDER.split(key)
    return re.compile("".join([f"(?P<{part}>[0-9]+)" if k % 2 else re.escape(part) for k, part in enumerate(parts)]))

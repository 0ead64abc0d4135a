# SPDX-License-Identifier: Apache-2.0
"""`Optimizations`: the number formats that a user chose: a mode of the recipe, a decoder config, or one for all layers.

A decoder config is the JSON that tt_transformers keeps per model and takes with --decoder_config_file:

    {"decoders": {"31": {"precision_cfg": {"FF1_FF3": "BFP8"}}}}

The setting for all layers is what its demos take: "precision_cfg = {ff1_3: bfp4, wqkv: bf16}".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..atomic import as_path
from ..errors import FileFormatError, FormatError
from ..files.source_file import FilePath, read_json
from .recipe import Recipe

MODES = ("performance", "accuracy")
_FORMATS = {"BFP4": "bfloat4_b", "BFP8": "bfloat8_b", "BF16": "bfloat16"}
_SETTING = re.compile(r"\s*(\w+)\s*[=:]\s*\{([^{}]*)\}\s*(?:,|$)")
_SETTINGS = ("precision_cfg", "fidelity_cfg")  # the second one changes how the card computes, not the weights
_MAX_BYTES = 1 << 22  # of a decoder config

Formats = Mapping[str, str]
"""Number formats by group of weights."""


@dataclass(frozen=True)
class Optimizations:
    """The number formats of groups of weights: those of a `mode`, with `layers` or `all_layers` set otherwise.

    A layer of `layers` may be None: it is listed, but its formats are those of the mode.

    >>> Optimizations.of("accuracy", Recipe.load()).mode
    'accuracy'
    >>> Optimizations.of("precision_cfg = {ff1_3: bfp4, wqkv: bf16}", Recipe.load()).all_layers
    {'FF1_FF3': 'bfloat4_b', 'WQKV': 'bfloat16'}
    """

    mode: str = "performance"
    layers: Mapping[int, Formats | None] | None = None
    all_layers: Formats | None = None

    @classmethod
    def of(cls, text: FilePath | Optimizations, recipe: Recipe) -> Optimizations:
        """Return the number formats that a `text` names: a mode, a JSON file, or a setting for all layers.

        `recipe` is the one that names the groups of weights.
        """
        if isinstance(text, Optimizations):
            return text
        name = str(text)
        if name in MODES:
            return cls(name)
        if name.endswith(".json"):
            return cls(layers=_read_decoder_config(as_path(text), recipe))
        if (settings := _parse_settings(name)) is not None:
            pairs = [each.partition(":") for each in settings.get("precision_cfg", "").split(",") if each.strip()]
            aliases = {str(table.get("alias", group)).upper(): group for group, table in recipe.groups.items()}
            # "mixed" stands for the usual format of activations
            given = [
                (key.strip().upper(), value.strip()) for key, _, value in pairs if value.strip().lower() != "mixed"
            ]
            _refuse_repeats([key for key, _ in given], "precision_cfg")
            return cls(all_layers=_parse_formats(dict(given), aliases, "precision_cfg"))
        raise FormatError(
            f"expected performance, accuracy, a decoder config that ends in .json, or 'precision_cfg = {{wqkv: bf16}}'"
            f" as optimizations, got {name!r}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data.

        >>> Optimizations("accuracy").to_json()
        {'mode': 'accuracy'}
        """
        chosen = {"mode": self.mode, "layers": self.layers, "all_layers": self.all_layers}
        return {key: value for key, value in chosen.items() if value is not None}

    @classmethod
    def from_json(cls, data: Any) -> Optimizations:
        """Return the optimizations of plain data, or raise a `FileFormatError`.

        >>> Optimizations.from_json({"mode": "accuracy"})
        Optimizations(mode='accuracy', layers=None, all_layers=None)
        """
        if not isinstance(data, dict) or data.get("mode") not in MODES:
            raise FileFormatError(f"expected optimizations with a mode, got {repr(data)[:60]}")
        layers = data.get("layers")
        by_number = None if layers is None else {int(layer): formats for layer, formats in layers.items()}
        return cls(data["mode"], by_number, data.get("all_layers"))


def _parse_settings(text: str) -> dict[str, str] | None:
    """Return the settings of a text such as "precision_cfg = {...}, fidelity_cfg = {...}"; None for other texts."""
    found = list(_SETTING.finditer(text))
    if not found or sum([len(each[0]) for each in found]) != len(text):
        return None
    names = [each[1] for each in found]
    _refuse_unknown_settings(names, "optimizations")
    _refuse_repeats(names, "optimizations")
    return {each[1]: each[2] for each in found}


def _refuse_unknown_settings(names: Iterable[str], where: str) -> None:
    for name in names:
        if name not in _SETTINGS:
            raise FileFormatError(f"{where}: unknown setting {name!r}; there are {' and '.join(_SETTINGS)}")


def _refuse_repeats(names: list[str], where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise FileFormatError(f"{where}: {name} is set {names.count(name)} times; set it once")


def _read_decoder_config(path: Path, recipe: Recipe) -> dict[int, Formats | None]:
    """Return the number formats of the layers that a decoder config lists."""
    data = read_json(path, str(path), _MAX_BYTES)
    decoders = data.get("decoders") if isinstance(data, dict) else None
    if not isinstance(decoders, dict) or not decoders:
        raise FileFormatError(f'{path}: expected {{"decoders": {{"0": ...}}}}, with at least one layer')
    for key in data.keys() - {"decoders"}:
        raise FileFormatError(f"{path}: unknown key {key!r} beside 'decoders'; remove it")
    groups = {group: group for group in recipe.groups}
    layers: dict[int, Formats | None] = {}
    for layer, settings in decoders.items():
        if not layer.isdecimal() or not isinstance(settings, dict):
            raise FileFormatError(f"{path}: expected a number of a layer and its settings, got {layer!r}")
        _refuse_unknown_settings(settings, f"{path}: layer {layer}")
        chosen = settings.get("precision_cfg")
        if chosen is not None and not isinstance(chosen, dict):
            raise FileFormatError(f"{path}: layer {layer}: expected an object as precision_cfg, got {chosen!r}")
        where = f"{path}: layer {layer}"
        layers[int(layer)] = None if chosen is None else _parse_formats(chosen, groups, where)
    return layers


def _parse_formats(chosen: Mapping[str, Any], groups: Mapping[str, str], where: str) -> dict[str, str]:
    formats = {}
    for key, value in chosen.items():
        if key not in groups:
            near = get_close_matches(key, list(groups), 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(groups)}"
            raise FileFormatError(f"{where}: unknown group of weights {key!r}; {hint}")
        if str(value).upper() not in _FORMATS:
            raise FileFormatError(f"{where}: expected one of {', '.join(_FORMATS)} for {key}, got {value!r}")
        formats[groups[key]] = _FORMATS[str(value).upper()]
    return formats

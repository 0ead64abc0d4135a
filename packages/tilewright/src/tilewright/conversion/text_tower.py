# SPDX-License-Identifier: Apache-2.0
"""The language model of a model of several parts, such as a vision model: its config, and the names of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import FileFormatError
from ..files import StoredTensor

_PARTS = ("text_config", "vision_config")
# How transformers has named the language model, and the names in a model that is only a language model.
_PREFIXES = {
    "language_model.lm_head.": "lm_head.",
    "language_model.model.": "model.",
    "model.language_model.": "model.",
}


def merge_text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config.json with the entries of its `text_config`; its own count first, as in tt_transformers.

    >>> merge_text_config({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 64}})
    {'model_type': 'gemma3', 'text_config': {'model_type': 'gemma3_text', 'hidden_size': 64}, 'hidden_size': 64}
    """
    inner = config.get("text_config")
    own = inner.items() if isinstance(inner, Mapping) else ()
    return {**config, **{key: value for key, value in own if key not in config}}


def is_part(config: Mapping[str, Any]) -> bool:
    """Return whether the language model is one of several parts of a model.

    >>> is_part({"model_type": "qwen2_5_vl", "vision_config": {}})
    True
    """
    return any(part in config for part in _PARTS)


def rename(name: str) -> str:
    """Return the name of a tensor in a model that is only a language model; a tensor of another part keeps its own.

    >>> rename("language_model.model.norm.weight"), rename("model.language_model.norm.weight"), rename("visual.norm")
    ('model.norm.weight', 'model.norm.weight', 'visual.norm')
    """
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
    return _PREFIXES.get(prefix, "") + name.removeprefix(prefix)


def name_language_model(tensors: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Return the `tensors` of a checkpoint, with its language model named as if there were no other part.

    >>> from tilewright.files.tensor_file import store_arrays
    >>> import numpy
    >>> stored = store_arrays({"language_model.model.norm.weight": numpy.zeros(4), "vision_tower.w": numpy.zeros(4)})
    >>> list(name_language_model(stored))
    ['model.norm.weight', 'vision_tower.w']
    """
    result: dict[str, StoredTensor] = {}
    for name, tensor in tensors.items():
        renamed = rename(name)
        if renamed in result:
            raise FileFormatError(
                f"two tensors are {renamed!r} of the language model; one is named {name!r}: remove the wrong one"
            )
        result[renamed] = tensor if renamed == name else replace(tensor, name=renamed)
    return result

# SPDX-License-Identifier: Apache-2.0
"""The card of a model in the tab of tensors: whether it fits a machine with its users, from a config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..conversion import Capacity, Recipe, capacity, list_machines
from ..views.scenes.memory_maps import capacity_scene
from .form import FieldError, FormFields, attribute_errors, parse_integer, render_for_page

MAX_CONFIG = 1 << 18  # characters of a config.json


def list_model_choices() -> dict[str, Any]:
    """Return the machines that a model can be fitted on.

    >>> list_model_choices()["machine"][:2]
    ['N150', 'N300']
    """
    return {"machine": list(Recipe.load().devices)}


def describe_model(fields: FormFields) -> dict[str, Any]:
    """Return whether the model of a pasted `config` fits a `machine`, with `users` and a `context`, and what would.

    >>> config = '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,'
    >>> config += '"intermediate_size": 64, "vocab_size": 64}'
    >>> describe_model({"config": config, "machine": "N300", "users": "8"})["fits"]
    True
    """
    text = fields.get("config", "").strip()
    if len(text) > MAX_CONFIG:
        raise FieldError("config", f"the config.json has {len(text)} characters; use at most {MAX_CONFIG}")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FieldError("config", f"expected JSON: {problem}; paste the whole config.json of a model") from None
    if not isinstance(config, Mapping):
        raise FieldError("config", f"expected an object, got {text[:40]}; paste the whole config.json of a model")
    question: dict[str, Any] = {
        "users": parse_integer(fields, "users", 1),
        "context": parse_integer(fields, "context", 0) or None,
    }
    machine = fields.get("machine") or "N150"
    report = attribute_errors("config", lambda: capacity(config, machine, **question))
    others = attribute_errors("config", lambda: list_machines(config, **question))
    verdict, _, rest = str(report).partition("\n")
    return {
        "fits": report.fits,
        "verdict": verdict,
        "text": rest,
        "changes": list(report.changes()),
        "machines": [
            {"name": name, "fits": other.fits, "users": other.largest_users, "context": other.largest_context}
            for name, other in others.items()
            if isinstance(other, Capacity)
        ],
        "scene": render_for_page(capacity_scene(report)),
    }

# SPDX-License-Identifier: Apache-2.0
"""A scene as plain data, for programs: nothing but what JSON knows."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

from .scene import Grid, Scene


def to_data(scene: Scene) -> dict[str, Any]:
    """Return a scene as dictionaries and lists; each panel says whether it is a `grid` or `lanes`.

    >>> to_data(Scene("two", (Grid(1, 2),)))["panels"][0]["columns"]
    2
    """
    found: dict[str, Any] = _plain(scene)
    for panel, data in zip(scene.panels, found["panels"], strict=True):
        data["kind"] = "grid" if isinstance(panel, Grid) else "lanes"
    return found


def to_json(scene: Scene) -> str:
    """Return a scene as JSON.

    >>> json.loads(to_json(Scene("a title")))["title"]
    'a title'
    """
    return json.dumps(to_data(scene), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):  # JSON has no infinity
        return value if isfinite(value) else str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return str(value)

# SPDX-License-Identifier: Apache-2.0
"""Extensions by other packages, by entry points: chips, formats, readers, recipes, verbs, scenes, engines, and more.

Nothing is looked up before a name is asked for that tilewright itself does not have.
"""

from __future__ import annotations

import warnings
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group: TypeAlias = Literal["chips", "formats", "readers", "recipes", "verbs", "scenes", "tabs", "notations", "engines"]
GROUPS: tuple[Group, ...] = get_args(Group)


@lru_cache(maxsize=len(GROUPS))
def list_plugins(group: Group) -> dict[str, EntryPoint]:
    """Return the entry points of a `group` by name, without loading them; of two with one name, the first.

    >>> isinstance(list_plugins("chips"), dict)
    True
    """
    metadata = import_module("importlib.metadata")  # which takes longer to import than most of tilewright
    entries: dict[str, EntryPoint] = {}
    for entry in metadata.entry_points(group=f"tilewright.{group}"):
        entries.setdefault(entry.name, entry)
    return entries


@cache
def load_plugin(group: Group, name: str, expected: type) -> object | None:
    """Return the object that a plug-in of a `group` provides under a `name`; None if there is none, or none that works.

    It is an object of the `expected` type, or a function that returns one. A plug-in that cannot be loaded is named in
    a warning.

    >>> load_plugin("chips", "no_such_chip", object) is None
    True
    """
    entry = list_plugins(group).get(name)
    if entry is None:
        return None
    try:
        value = entry.load()
        value = value() if callable(value) and not isinstance(value, expected) else value
    except Exception as problem:
        _warn_of(entry, f"{type(problem).__name__}: {problem}")
        return None
    if not isinstance(value, expected):
        _warn_of(entry, f"expected a {expected.__name__} or a function that returns one, got {type(value).__name__}")
        return None
    return value


def _warn_of(entry: EntryPoint, reason: str) -> None:
    package = entry.dist.name if entry.dist is not None else "an unknown package"
    warnings.warn(
        f"the plug-in {entry.name!r} of {package} ({entry.value}) cannot be used: {reason}",
        RuntimeWarning,
        stacklevel=4,
    )

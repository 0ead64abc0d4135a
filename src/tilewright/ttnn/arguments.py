# SPDX-License-Identifier: Apache-2.0
"""Arguments in any order: ttnn overloads its constructors, and the kinds of what is given tell the overloads apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def by_kind(kinds: Mapping[str, Any], given: tuple[Any, ...], what: str) -> dict[str, Any]:
    """Return what was given by position under the name of its kind; None counts as not given.

    >>> by_kind({"count": int, "name": str}, ("x", None, 5), "a thing")
    {'name': 'x', 'count': 5}
    """
    found = {}
    for each in given:
        if each is None:
            continue
        name = next((name for name, kind in kinds.items() if isinstance(each, kind)), None)
        if name is None:
            raise TypeError(f"{what} has no place for {type(each).__name__} {each!r}")
        found[name] = each
    return found

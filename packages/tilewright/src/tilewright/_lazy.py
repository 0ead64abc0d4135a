# SPDX-License-Identifier: Apache-2.0
"""Packages whose names load their module on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package that imports a module when one of its names is first used.

    `package` is its `__name__`; `modules` lists the names of each module, which is named relative to the package.

    >>> find, names = lazy_names("tilewright", {"layout": ("Layout",)})
    >>> find("Layout").__name__, names()
    ('Layout', ['Layout'])
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{homes[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted(homes)

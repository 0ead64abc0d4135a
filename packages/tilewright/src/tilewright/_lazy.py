# SPDX-License-Identifier: Apache-2.0
"""Packages and functions that load their module on first use, and names of companions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


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


def late_function(package: str, module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports the `module` of a `package`, and calls its function `name`.

    >>> late_function("tilewright", "_integers", "ceil_div")(7, 2)
    4
    """

    def call(*args: Any, **options: Any) -> Any:
        return getattr(import_module(f".{module}", package), name)(*args, **options)

    return call


def companion_name(asked: str, module: str, extra: str) -> Any:
    """Return the name that a companion's `module` has for `asked`, which is a name of the library.

    If the companion is not installed, the error names the `extra` of tilewright that installs it.

    >>> companion_name("tilewright.nothing", "tilewright_nothing", "nothing")
    Traceback (most recent call last):
    ImportError: tilewright.nothing is not installed: pip install 'tilewright[nothing]'
    """
    try:
        return getattr(import_module(module), asked.rpartition(".")[2])
    except ModuleNotFoundError as problem:
        if problem.name != module.partition(".")[0]:
            raise
        raise ImportError(f"{asked} is not installed: pip install 'tilewright[{extra}]'") from None

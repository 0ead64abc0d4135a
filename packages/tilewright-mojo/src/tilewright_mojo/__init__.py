# SPDX-License-Identifier: Apache-2.0
"""Mojo source and its standard library, `LayoutTensor`, and a machine that runs kernels thread by thread.

`tilewright.mojo` has the vocabulary of `TileTensor`; `run` and the other names here are also found there.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tilewright._lazy import lazy_names

from . import exports  # makes the modules of Mojo's packages

if TYPE_CHECKING:
    from . import simt
    from .collections import List, Optional
    from .importing import imports, install, uninstall
    from .running import run
    from .types import String

_NAMES = {
    "collections": ("List", "Optional"),
    "importing": ("imports", "install", "uninstall"),
    "running": ("run",),
    "types": ("String",),
}
_PACKAGES = ("layout", "max", "simt", "std")
_find, _names = lazy_names(__name__, _NAMES)


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    return _find(name)


def __dir__() -> list[str]:
    return sorted([*_names(), *_PACKAGES])


__all__ = ["List", "Optional", "String", "imports", "install", "run", "simt", "uninstall"]

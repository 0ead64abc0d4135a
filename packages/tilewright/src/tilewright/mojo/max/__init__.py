# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `max`: its `gpu` is the one of `std`, module by module."""

import sys
from importlib import import_module

from ..importing import MODULES
from ..std import gpu

__all__ = ["gpu"]

_HOME = __name__.rpartition(".")[0]
for _name, _place in MODULES.items():
    if _name.startswith("max."):
        sys.modules[f"{_HOME}.{_name}"] = import_module(f"{_HOME}.{_place}")

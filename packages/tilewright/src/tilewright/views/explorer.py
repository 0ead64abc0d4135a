# SPDX-License-Identifier: Apache-2.0
"""The old place of the explorer, which is a package of its own now: `tilewright.explorer`."""

import warnings
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name != "Explorer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{__name__}.Explorer is now tilewright.explorer.server.Explorer", DeprecationWarning, stacklevel=2)
    return import_module("tilewright.explorer.server").Explorer

# SPDX-License-Identifier: Apache-2.0
"""The engines of devices, by name: loaded when one is asked for, since most programs use none."""

from __future__ import annotations

from importlib import import_module
from typing import Any

DEVICE_ENGINES = ("opencl", "cuda")


def driver(name: str) -> Any:
    """Return the module that runs plans on a kind of device, which may still say why it cannot.

    >>> why = driver("opencl").why_not()
    >>> why is None or "OpenCL" in why
    True
    """
    return import_module(f".{name}_engine", __package__)

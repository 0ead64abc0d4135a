# SPDX-License-Identifier: Apache-2.0
"""How tensors are printed: to the character as ttnn prints them, with its `set_printoptions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..errors import FormatError
from ..memory import from_bytes
from ..tensor import Tensor, padding_as_data
from .types import DataType, Layout, cpp_name

_PREFIX = "ttnn.Tensor("
_EDGE = 2  # elements at either end of a shortened dimension
_PROFILES = ("empty", "short", "full")
_SCI_MODES = {"true": True, "false": False, "default": None}
_INTEGER_WIDTH = 5


@dataclass(frozen=True)
class PrintOptions:
    """How tensors are printed: which elements, in scientific notation or not (None: if need be), and digits.

    >>> PrintOptions().precision
    4
    """

    profile: str = "short"
    sci_mode: bool | None = None
    precision: int = 4


_OPTIONS = [PrintOptions()]  # those in use


def set_printoptions(
    *, profile: str, sci_mode: bool | Literal["true", "false", "default"] | None = None, precision: int | None = None
) -> None:
    """Set how tensors are printed from now on.

    Args:
        profile: "short" for at most four elements of a dimension, "full" for all of them, "empty" for none.
        sci_mode: whether scientific notation is used; by default if the values are far apart, large or small.
        precision: digits after the decimal point, by default 4.

    >>> from tilewright.ttnn import from_torch
    >>> set_printoptions(profile="short", precision=1)
    >>> from_torch(np.arange(6, dtype=np.float32))
    ttnn.Tensor([ 0.0,  1.0,  ...,  4.0,  5.0], shape=Shape([6]), dtype=DataType::FLOAT32, layout=Layout::ROW_MAJOR)
    >>> set_printoptions(profile="short")
    """
    if profile.lower() not in _PROFILES:
        raise FormatError(f"unknown print profile {profile!r}; use one of {', '.join(map(repr, _PROFILES))}")
    mode = _SCI_MODES.get(sci_mode.lower(), sci_mode) if isinstance(sci_mode, str) else sci_mode
    if mode not in (True, False, None):
        raise FormatError(f'expected True, False, None or "default" as sci_mode, got {sci_mode!r}')
    digits = PrintOptions.precision if precision is None else int(precision)
    if digits < 0:
        raise FormatError(f"expected a precision of 0 or more digits, got {precision}")
    _OPTIONS[0] = PrintOptions(profile.lower(), mode, digits)


def tensor_text(tensor: Tensor) -> str:
    """Return the text of a core tensor as ttnn prints it.

    >>> print(tensor_text(Tensor.of(np.ones((2, 2), np.int32))))
    ttnn.Tensor([[    1,     1],
                 [    1,     1]], shape=Shape([2, 2]), dtype=DataType::INT32, layout=Layout::ROW_MAJOR)
    """
    dtype, layout = cpp_name(DataType.of(tensor.dtype)), cpp_name(Layout.of(tensor.spec.page_layout))
    properties = f"shape=Shape({list(tensor.shape.logical)}), dtype={dtype}, layout={layout}"
    return f"{_PREFIX}{_values_text(tensor)}, {properties})"


def _values_text(tensor: Tensor) -> str:
    options = _OPTIONS[0]
    if not tensor.is_allocated():
        return "<buffer is not allocated>"
    if options.profile == "empty":
        return "..."
    values = tensor.numpy()
    if values.dtype.kind in "iu":
        width, spec = _INTEGER_WIDTH, "d"
    else:
        scientific = _needs_exponents(tensor) if options.sci_mode is None else options.sci_mode
        width, spec = options.precision + (7 if scientific else 3), f".{options.precision}{'e' if scientific else 'f'}"
    return _nested_text(values, width, spec, options.profile == "full")


def _needs_exponents(tensor: Tensor) -> bool:
    """Return whether the finite values other than zero, padding included, are far apart, very large or very small."""
    host = tensor.from_device()
    values = np.abs(from_bytes(host.pages, padding_as_data(host.spec)).astype(np.float64))
    values = values[np.isfinite(values) & (values != 0)]
    if not values.size:
        return False
    smallest, largest = values.min(), values.max()
    return bool(largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4)


def _nested_text(values: np.ndarray[Any, Any], width: int, spec: str, full: bool, depth: int = 0) -> str:
    """Return the elements of an array in brackets, the inner ones indented as deep as they are nested."""
    if values.ndim == 0:
        return _element_text(values[()], width, spec)
    indent = " " * (len(_PREFIX) + depth + 1)
    between, gap = {1: (", ", " "), 2: (f",\n{indent}", "")}.get(values.ndim, (f",\n\n{indent}", ""))
    count = len(values)
    shortened = not full and count > 2 * _EDGE
    picked = [*range(_EDGE), *range(count - _EDGE, count)] if shortened else range(count)
    parts = [_nested_text(values[k], width, spec, full, depth + 1) for k in picked]
    if shortened:
        parts.insert(_EDGE, f"{gap}...")
    return f"[{between.join(parts)}]"


def _element_text(value: Any, width: int, spec: str) -> str:
    number = int(value) if spec == "d" else float(value)
    text = f"{number:{spec}}"
    if text == "nan" and np.signbit(number):
        text = "-nan"
    return f"{text:>{width}}"

# SPDX-License-Identifier: Apache-2.0
"""How ttnn makes a tensor of an array: its default data types, and intermediate rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..copying.dlpack import as_host_array
from ..errors import FormatError
from ..formats import Format, cast, format_of
from ..memory import Device, PageLayout, TensorSpec
from ..tensor import Tensor
from .enums import DataType, DataTypeLike
from .memory import MemoryConfig
from .tensor_spec import TileLike
from .wrapper import unwrap

_BFLOAT16 = format_of("bfloat16")
# Types that ttnn does not have, and what it stores them in by default.
_DEFAULT_FORMATS = {
    "bool": "uint8",
    "float16": "bfloat16",
    "float64": "float32",
    "int64": "uint32",
    "int16": "uint16",
    "uint64": "uint32",
}
# Types that reach a block format through bfloat16, and so are rounded twice.
_THROUGH_BFLOAT16 = ("float64", "float16", "int64", "int16", "uint64")


def create_tensor(
    source: ArrayLike,
    dtype: DataTypeLike | None = None,
    layout: PageLayout | str | None = None,
    tile: TileLike | None = None,
    pad_value: float | None = None,
    memory: MemoryConfig | None = None,
    col_tilize: bool = False,
    device: Device | None = None,
) -> Tensor:
    """Return the core tensor that ttnn makes of an array; the arguments are those of `ttnn.from_torch`.

    >>> create_tensor(np.ones((5, 7), np.float16)).dtype
    format_of('bfloat16')
    """
    values = as_host_array(source)
    source_format = format_of(values.dtype)
    element = _default_format(values, source_format) if dtype is None else DataType.of(dtype).format
    if col_tilize:
        if not element.has_blocks or values.ndim < 2:
            raise FormatError(
                f"col_tilize expects bfloat8_b or bfloat4_b and rank 2 or more, got {element} of rank {values.ndim}"
            )
        values = values.swapaxes(-1, -2)
    spec = TensorSpec(values.shape, element, layout, unwrap(tile), unwrap(memory))
    if element.has_blocks and (source_format.name in _THROUGH_BFLOAT16 or spec.memory.is_sharded):
        values = cast(values, _BFLOAT16)
    fill = 0 if pad_value is None else cast(np.array(pad_value), values.dtype).item()
    tensor = Tensor.from_array(values, spec, fill)
    return tensor if device is None else tensor.to_device(device)


def _default_format(values: np.ndarray[Any, Any], source_format: Format) -> Format:
    """Return the format that ttnn stores `values` in by default, or raise if they do not fit it."""
    name = _DEFAULT_FORMATS.get(source_format.name, source_format.name)
    element = DataType.of(name).format
    if source_format.name in ("int64", "int16", "uint64"):
        try:
            cast(values, element, on_overflow="raise")
        except FormatError as problem:
            raise FormatError(f"ttnn stores {source_format} as {element} by default; pass a dtype: {problem}") from None
    return element

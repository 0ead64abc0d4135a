# SPDX-License-Identifier: Apache-2.0
"""How ttnn makes a tensor of an array: which type it takes, and what it rounds to on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..copying.dlpack import as_host_array
from ..errors import FormatError
from ..formats import Format, cast, format_of
from ..memory import TensorSpec
from ..tensor import Tensor
from .data_types import DataType, DataTypeLike

_BFLOAT16 = format_of("bfloat16")
# Types that ttnn does not have, and what it takes instead when no other is asked for.
_INSTEAD = {
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
    source: Any,
    dtype: DataTypeLike | None = None,
    layout: Any = None,
    tile: Any = None,
    pad_value: float | None = None,
    memory: Any = None,
    col_tilize: bool = False,
    device: Any = None,
) -> Tensor:
    """Return the tensor that ttnn makes of an array, on the host or on a device.

    >>> create_tensor(np.ones((5, 7), np.float16)).dtype
    format_of('bfloat16')
    """
    values = as_host_array(source)
    given = format_of(values.dtype)
    element = _default_format(values, given) if dtype is None else DataType.of(dtype).format
    packs = element.has_blocks
    if col_tilize:
        if not packs or values.ndim < 2:
            raise FormatError(
                f"col_tilize packs columns of a matrix in a block format, not {element} of rank {values.ndim};"
                " use bfloat8_b or bfloat4_b, and rank 2 or more"
            )
        values = values.swapaxes(-1, -2)
    spec = TensorSpec(values.shape, element, layout, tile, memory)
    if packs and (given.name in _THROUGH_BFLOAT16 or spec.memory.is_sharded):
        values = cast(values, _BFLOAT16)
    fill = 0 if pad_value is None else cast(np.array(pad_value), values.dtype).item()
    tensor = Tensor.from_array(values, spec, fill)
    return tensor if device is None else tensor.to_device(device)


def _default_format(values: np.ndarray[Any, Any], given: Format) -> Format:
    """Return the type that ttnn takes when none is asked for; values must fit it."""
    name = _INSTEAD.get(given.name, given.name)
    element = DataType.of(name).format
    if given.name in ("int64", "int16", "uint64"):
        try:
            cast(values, element, on_overflow="raise")
        except FormatError as problem:
            raise FormatError(f"ttnn takes {given} as {element} unless a dtype is given: {problem}") from None
    return element

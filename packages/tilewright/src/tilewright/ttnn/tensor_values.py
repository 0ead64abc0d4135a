# SPDX-License-Identifier: Apache-2.0
"""How ttnn makes a tensor of an array or a list: default data types, rounding, and what does not fit a type."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import memory, tensor
from ..copying.dlpack import as_host_array
from ..errors import FormatError, LayoutError, MemoryConfigError
from ..formats import Format, cast, fit_values, format_of
from .enums import DataType, DataTypeLike, LayoutLike
from .memory import MemoryConfig
from .mesh_mappers import TensorToMesh
from .mesh_parts import MeshParts
from .tensor_spec import TileLike
from .wrapper import unwrap

_INTEGERS = ("uint8", "uint16", "uint32", "int8", "int32")


def reshape_values(
    flat: np.ndarray[Any, Any], shape: tuple[int, ...], dtype: DataTypeLike | None
) -> np.ndarray[Any, Any]:
    """Return the numbers of a list in `shape` and an integer `dtype`, or in float32; by default integers are int32.

    >>> reshape_values(np.array([1, 2]), (2, 1), None).dtype
    dtype('int32')
    """
    if flat.size != prod(shape):
        raise LayoutError(f"cannot reshape {flat.size} elements to shape {list(shape)}, which has {prod(shape)}")
    default = "int32" if flat.dtype.kind in "iu" else "float32"
    name = default if dtype is None else DataType.of(dtype).format.name
    return fit_values(flat, name if name in _INTEGERS else "float32").reshape(shape)


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
    layout: LayoutLike | None = None,
    tile: TileLike | None = None,
    pad_value: float | None = None,
    memory_config: MemoryConfig | None = None,
    col_tilize: bool = False,
) -> tensor.Tensor:
    """Return the core tensor that ttnn makes of an array; the arguments are those of `ttnn.from_torch`.

    >>> create_tensor(np.ones((5, 7), np.float16)).dtype
    format_of('bfloat16')
    """
    values = _host_values(source)
    source_format = format_of(values.dtype)
    element = default_format(values) if dtype is None else DataType.of(dtype).format
    if col_tilize:
        if not element.has_blocks or values.ndim < 2:
            raise FormatError(
                f"col_tilize expects bfloat8_b or bfloat4_b and rank 2 or more, got {element} of rank {values.ndim}"
            )
        values = values.swapaxes(-1, -2)
    page_layout = None if layout is None else memory.PageLayout.of(layout)
    spec = memory.TensorSpec(values.shape, element, page_layout, unwrap(tile), unwrap(memory_config))
    fill: Any = 0 if pad_value is None else pad_value
    if element.has_blocks and (source_format.name in _THROUGH_BFLOAT16 or spec.memory.is_sharded):
        values, fill = cast(values, _BFLOAT16), cast(np.array(fill), _BFLOAT16).item()
    elif needs_truncation(source_format, element):
        values = truncate(values, element)
    return tensor.Tensor.from_array(values, spec, fill)


def create_parts(
    source: ArrayLike, mesh_mapper: TensorToMesh | None = None, dtype: DataTypeLike | None = None, **properties: Any
) -> MeshParts:
    """Return the parts that ttnn makes of an array, cut as `mesh_mapper` says; the others are those of `create_tensor`.

    The data type is that of the array as a whole, and each part is padded and packed on its own.

    >>> create_parts(np.ones((5, 7), np.float32)).first.nbytes
    140
    """
    mapper = validate_mapper(mesh_mapper)
    if mapper is None:
        return MeshParts.single(create_tensor(source, dtype, **properties))
    values = _host_values(source)
    if dtype is None:
        dtype = default_format(values).name
    return MeshParts.distribute(values, mapper, lambda part: create_tensor(part, dtype, **properties))


def has_fractions(element: Format) -> bool:
    """Return whether a format has numbers with a fraction: floats, alone or in blocks.

    >>> has_fractions(format_of("bfloat8_b")), has_fractions(format_of("uint8"))
    (True, False)
    """
    return element.has_blocks or element.kind == "float"


def needs_truncation(source: Format, target: Format) -> bool:
    """Return whether numbers can lose a fraction, or be outside the range, of the `target`.

    >>> needs_truncation(format_of("float32"), format_of("uint8"))
    True
    """
    return has_fractions(source) and target.name in _INTEGERS


def truncate(values: np.ndarray[Any, Any], element: Format) -> np.ndarray[Any, Any]:
    """Return floats in an integer format, without their fraction; raise if one is outside its range.

    >>> truncate(np.array([1.9, -1.9]), format_of("int8")).tolist()
    [1, -1]
    """
    try:
        return cast(values, element, on_overflow="raise")
    except FormatError as problem:
        reason = str(problem).partition(";")[0]
        raise FormatError(f"{reason}; clip the array first, or use a type that holds its values") from None


def validate_mapper(mesh_mapper: object) -> TensorToMesh | None:
    """Return `mesh_mapper`, a mesh mapper or None; raise if it is anything else.

    >>> validate_mapper(None) is None
    True
    """
    if mesh_mapper is None or isinstance(mesh_mapper, TensorToMesh):
        return mesh_mapper
    raise MemoryConfigError(
        f"mesh_mapper={mesh_mapper!r:.60} is not a mesh mapper, such as ttnn.ShardTensorToMesh(mesh_device, dim=0)"
    )


def default_format(source: ArrayLike) -> Format:
    """Return the format that ttnn stores an array in by default, or raise if it would change a value.

    >>> default_format(np.ones(3, np.float16))
    format_of('bfloat16')
    """
    values = _host_values(source)
    source_format = format_of(values.dtype)
    name = _DEFAULT_FORMATS.get(source_format.name, source_format.name)
    element = DataType.of(name).format
    if name != source_format.name:
        require_exact(values, element, f"ttnn stores {source_format} as {element} by default")
    return element


def require_exact(values: np.ndarray[Any, Any], element: Format, choice: str) -> None:
    """Raise unless every number is a value of a format that nobody asked for; `choice` names who chose it.

    What is not a number stays that, and an infinity an infinity.

    >>> require_exact(np.float16([0.5, np.nan, np.inf]), format_of("bfloat16"), "by default")
    """
    if element.has_blocks:
        stored = create_tensor(values.astype(np.float32).reshape(1, -1), element.name).numpy().reshape(values.shape)
    elif element.name in _INTEGERS:
        try:
            stored = fit_values(values, element)
        except FormatError as problem:
            raise FormatError(f"{choice}; pass a dtype: {str(problem).partition(';')[0]}") from None
    else:
        stored = cast(values, element)
    changed = (stored != values) & (values == values)  # what is not a number differs from itself
    if changed.any():
        index = np.unravel_index(int(changed.argmax()), changed.shape)
        place = f" at {', '.join(map(str, index))}" if index else ""
        raise FormatError(
            f"{choice}; pass a dtype: {values[index].item()!r}{place} is not a value of {element}, and"
            f" dtype=ttnn.{element} would round it to {stored[index].item()!r}"
        )


def _host_values(source: ArrayLike) -> np.ndarray[Any, Any]:
    """Return an array; the numbers of a list have no type of their own, and those with a fraction become float32."""
    values = as_host_array(source)
    untyped = isinstance(source, (list, tuple, float)) and values.dtype == np.float64
    return fit_values(values, "float32") if untyped else values

# SPDX-License-Identifier: Apache-2.0
"""The block formats by name, and `format_of`, which returns any format by name, dtype or array."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

from ..errors import FormatError
from ..plugins import list_plugins, load_plugin
from .block_format import BlockFormat
from .encodings import (
    E2M1,
    E2M3,
    E3M2,
    E4M3,
    E5M2,
    ElementEncoding,
    FloatScale,
    PowerOfTwo,
    SignMagnitude,
    TwosComplement,
)
from .scalar_format import ALIASES, SCALAR_FORMATS, FormatLike, ScalarFormat, find_scalar_format


class HasDtype(Protocol):
    """An array of any library with NumPy dtypes."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


Format: TypeAlias = ScalarFormat | BlockFormat

# The exponent section is padded to 16 bytes, the L1 alignment of every chip that has these formats.
_L1_ALIGNMENT = 16
_EXPONENT_A = PowerOfTwo(5, 15)
_EXPONENT_B = PowerOfTwo(8, 127)
_E8M0 = PowerOfTwo(8, 127, nan=255)


def _block_float(name: str, bits: int, exponent: PowerOfTwo) -> BlockFormat:
    return BlockFormat(name, 16, SignMagnitude(bits), exponent, alignment=_L1_ALIGNMENT, aligned=True)


def _microscaling(name: str, element: ElementEncoding) -> BlockFormat:
    return BlockFormat(name, 32, element, _E8M0)


bfloat8_b = _block_float("bfloat8_b", 8, _EXPONENT_B)
bfloat4_b = _block_float("bfloat4_b", 4, _EXPONENT_B)
bfloat2_b = _block_float("bfloat2_b", 2, _EXPONENT_B)
bfloat8_a = _block_float("bfloat8_a", 8, _EXPONENT_A)
bfloat4_a = _block_float("bfloat4_a", 4, _EXPONENT_A)
bfloat2_a = _block_float("bfloat2_a", 2, _EXPONENT_A)
mxfp8_e4m3 = _microscaling("mxfp8_e4m3", E4M3)
mxfp8_e5m2 = _microscaling("mxfp8_e5m2", E5M2)
mxfp6_e2m3 = _microscaling("mxfp6_e2m3", E2M3)
mxfp6_e3m2 = _microscaling("mxfp6_e3m2", E3M2)
mxfp4 = _microscaling("mxfp4", E2M1)
mxint8 = _microscaling("mxint8", TwosComplement(8, 6))
nvfp4 = BlockFormat("nvfp4", 16, E2M1, FloatScale(E4M3), tensor_scaled=True)

BLOCK_FORMATS: dict[str, BlockFormat] = {
    entry.name: entry
    for entry in (
        *(bfloat8_b, bfloat4_b, bfloat2_b, bfloat8_a, bfloat4_a, bfloat2_a),
        *(mxfp8_e4m3, mxfp8_e5m2, mxfp6_e2m3, mxfp6_e3m2, mxfp4, mxint8, nvfp4),
    )
}

_BY_NAME: dict[str, Format] = {
    **SCALAR_FORMATS,
    **{alias: SCALAR_FORMATS[name] for alias, name in ALIASES.items()},
    **BLOCK_FORMATS,
    "mxfp4_e2m1": mxfp4,
}


def format_of(value: FormatLike | HasDtype) -> Format:
    """Return the format of `value`: a name, a NumPy dtype, an array, or a format.

    >>> import numpy as np
    >>> format_of("bfloat8_b").bytes_per_tile(1024), format_of("bf16"), format_of(np.zeros(3))
    (1088, format_of('bfloat16'), format_of('float64'))
    """
    if isinstance(value, (ScalarFormat, BlockFormat)):
        return value
    number_format = _find_named(value) if isinstance(value, str) else find_scalar_format(value)
    if number_format is None:
        if not isinstance(value, str) and not hasattr(value, "dtype") and not hasattr(value, "itemsize"):
            raise TypeError(f"expected a format name, a NumPy dtype or an array, got {type(value).__name__} {value!r}")
        name = value if isinstance(value, str) else str(getattr(value, "dtype", value))
        known = [*SCALAR_FORMATS, *BLOCK_FORMATS, *list_plugins("formats")]
        raise FormatError(f"unknown format {name!r}; use one of {', '.join(known)}")
    return number_format


def _find_named(name: str) -> Format | None:
    """Return the format with a name: our own, or that of a plug-in."""
    own = _BY_NAME.get(name)
    added = load_plugin("formats", name, BlockFormat) if own is None else None
    return added if isinstance(added, BlockFormat) else own


def block_format_of(value: FormatLike) -> BlockFormat:
    """Return the block format of `value`, a name or format; raise a FormatError if it is a scalar format.

    >>> block_format_of("bfloat8_b").block
    16
    """
    number_format = format_of(value)
    if not number_format.has_blocks:
        raise FormatError(f"expected a block format ({', '.join(BLOCK_FORMATS)}), got {number_format}")
    return number_format

# SPDX-License-Identifier: Apache-2.0
"""A stand-in for ml_dtypes, where there is none: the types that tilewright uses."""

from numpy.number_types import bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz
from numpy.type_promotion import finfo, iinfo

__all__ = [
    "bfloat16",
    "finfo",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "iinfo",
]

# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.utils.numerics`: the limits of number types."""

from __future__ import annotations

import math
from typing import Any

from ..brackets import Bracketed
from ..simd import DType, Scalar, scalar_format
from .math import isfinite, isinf, isnan

__all__ = [
    "get_accum_type",
    "inf",
    "isfinite",
    "isinf",
    "isnan",
    "max_finite",
    "max_or_inf",
    "min_finite",
    "min_or_neg_inf",
    "nan",
    "neg_inf",
]


def _limit(value: Any) -> Bracketed[Any]:
    def find(_: Any, parameters: tuple[Any, ...], *, dtype: Any = None) -> Any:
        kind = scalar_format((*parameters, dtype)[0])
        return Scalar[kind](value(kind))

    return Bracketed(find)


max_finite, min_finite = _limit(lambda kind: kind.limits.highest), _limit(lambda kind: kind.limits.lowest)
inf, neg_inf, nan = _limit(lambda _: math.inf), _limit(lambda _: -math.inf), _limit(lambda _: math.nan)
max_or_inf = _limit(lambda kind: math.inf if kind.kind == "float" else kind.limits.highest)
min_or_neg_inf = _limit(lambda kind: -math.inf if kind.kind == "float" else kind.limits.lowest)


def _accum_type(_: Any, parameters: tuple[Any, ...], **named: Any) -> DType:
    kind = scalar_format((*parameters, *named.values())[0])
    return DType.float32 if kind.kind == "float" and kind.itemsize < 4 else kind


get_accum_type = Bracketed(_accum_type)

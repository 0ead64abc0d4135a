# SPDX-License-Identifier: Apache-2.0
"""The native engine: plans handed to the C++ library, which runs them without the GIL and on several threads."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..formats import BLOCK_FORMATS, BlockFormat, ScalarFormat
from . import native
from .compiled import CompiledPlans
from .loop_nest import LoopNest
from .plan import Plan
from .reference import fill_value, table

_MAX_RANK = 24
_MAX_BLOCK = 32
_OPERATIONS = {"copy": 0, "fill": 1, "pack": 2, "unpack": 3, "clear": 1}
# the numbers of native/tilewright.h, in its order
_FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
_BLOCK_FLOATS = ("bfloat8_b", "bfloat4_b", "bfloat2_b", "bfloat8_a", "bfloat4_a", "bfloat2_a")
_SCALED = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4")
_TYPES = {name: code for code, name in enumerate((*_FLOATS, *_INTEGERS))}
_BLOCK_TYPES = {name: code for code, name in enumerate((*_BLOCK_FLOATS, *_SCALED), start=100)}
_compiled: CompiledPlans[tuple[Plan, Any, list[Any]]] = CompiledPlans(lambda made: sum(each.nbytes for each in made[2]))


class _NativePart(ctypes.Structure):
    """`tw_nest` of native/tilewright.h."""

    _fields_ = (
        ("op", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("src_type", ctypes.c_int32),
        ("dst_type", ctypes.c_int32),
        ("extent", ctypes.c_int64 * _MAX_RANK),
        ("src_stride", ctypes.c_int64 * _MAX_RANK),
        ("dst_stride", ctypes.c_int64 * _MAX_RANK),
        ("aux_stride", ctypes.c_int64 * _MAX_RANK),
        ("src_offset", ctypes.c_int64),
        ("dst_offset", ctypes.c_int64),
        ("aux_offset", ctypes.c_int64),
        ("element_offset", ctypes.c_int64 * _MAX_BLOCK),
        ("element_mask", ctypes.c_uint32),
        ("block", ctypes.c_int32),
        ("fill", ctypes.c_uint8 * 16),
        ("table_count", ctypes.c_int64),
        ("src_table", ctypes.c_void_p),
        ("dst_table", ctypes.c_void_p),
        ("aux_table", ctypes.c_void_p),
    )


def can_run(plan: Plan) -> bool:
    """Return whether the native library is there and knows the formats of a plan.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(4), "float32"), Placement(Layout(4), "bfloat16"))
    >>> can_run(plan) == native.available()
    True
    """
    known = all(_type_code(place.format) is not None for place in (plan.source, plan.target))
    return known and native.available() and all(len(nest.extents) <= _MAX_RANK for nest in plan.nests)


def run(plan: Plan, source: int, target: int, threads: int) -> None:
    """Carry out a plan of one step on memory at two addresses, on up to `threads` threads (0: all cores).

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(3), "uint8"), Placement(Layout(3, -1) + 2, "uint8"))
    >>> a, b = np.arange(3, dtype=np.uint8), np.zeros(3, dtype=np.uint8)
    >>> if can_run(plan):
    ...     run(plan, a.ctypes.data, b.ctypes.data, 1)
    ...     assert b.tolist() == [2, 1, 0]
    """
    _, nests, _ = compiled(plan)
    status = native.library().tw_run(nests, len(plan.nests), source, target, threads)
    if status:
        raise RuntimeError(
            f"the native engine refused a plan it had accepted (status {status}); use engine='reference'"
        )


def compiled(plan: Plan) -> tuple[Plan, Any, list[Any]]:
    """Return a plan, its nests as the library takes them, and the tables they point to; hold on to all three.

    They are made once, since they do not depend on addresses.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(3), "uint8"), Placement(Layout(3), "uint8"))
    >>> len(compiled(plan)[1])
    1
    """
    return _compiled.get(plan, None, lambda: _translated(plan))


def _translated(plan: Plan) -> tuple[Plan, Any, list[Any]]:
    kept: list[Any] = []
    nests = (_NativePart * len(plan.nests))()
    for native_part, nest in zip(nests, plan.nests, strict=True):
        _translate(plan, nest, native_part, kept)
    return plan, nests, kept


def _translate(plan: Plan, nest: LoopNest, out: Any, kept: list[Any]) -> None:
    out.op = _OPERATIONS[nest.operation]
    out.rank = len(nest.extents)
    clears = nest.operation == "clear"
    out.src_type = _TYPES["uint8"] if clears else _type_code(plan.source.format)
    out.dst_type = _TYPES["uint8"] if clears else _type_code(plan.target.format)
    for name, values in (
        ("extent", nest.extents),
        ("src_stride", nest.source),
        ("dst_stride", nest.target),
        ("aux_stride", nest.scale),
        ("element_offset", nest.element_offsets),
    ):
        field = getattr(out, name)
        for k, value in enumerate(values):
            field[k] = value
    out.src_offset, out.dst_offset, out.aux_offset = nest.source_offset, nest.target_offset, nest.scale_offset
    out.element_mask = nest.data_mask
    out.block = len(nest.element_offsets)
    for k, byte in enumerate(b"" if clears else fill_value(plan).tobytes()):
        out.fill[k] = byte
    if nest.tabulated is not None:
        for name, place in (("src_table", plan.source), ("dst_table", plan.target)):
            if nest.operation == "fill" and name == "src_table":
                places = np.zeros(nest.tabulated.count, dtype=np.int64)
            else:
                assert not place.format.has_blocks
                places = np.ascontiguousarray(table(place, nest.tabulated) * place.format.itemsize)
            kept.append(places)
            setattr(out, name, places.ctypes.data)
        out.table_count = nest.tabulated.count


def _type_code(element: ScalarFormat | BlockFormat) -> int | None:
    if not element.has_blocks:
        return _TYPES.get(element.name)
    # Somebody else's format may have a name that is known.
    return _BLOCK_TYPES.get(element.name) if BLOCK_FORMATS.get(element.name) == element else None

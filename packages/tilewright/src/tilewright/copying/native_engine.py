# SPDX-License-Identifier: Apache-2.0
"""The native engine: runs plans in the C++ library, without the GIL and on several threads."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from ..formats import BLOCK_FORMATS, Format
from . import native_library
from .kernel_cache import PlanCache
from .loop_nest import LoopNest
from .placement import fill_value
from .plan import Plan

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


class _NativeNest(ctypes.Structure):
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


class TranslatedPlan(NamedTuple):
    """The loop nests of a plan as the library takes them, and the tables they point to, which must stay alive."""

    plan: Plan
    nests: ctypes.Array[_NativeNest]
    tables: list[np.ndarray[Any, np.dtype[np.int64]]]


_translated: PlanCache[TranslatedPlan] = PlanCache(lambda plan: sum(table.nbytes for table in plan.tables))


def can_run(plan: Plan) -> bool:
    """Return whether the native library is available and supports the formats of a plan.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(4), "float32"), Placement(Layout(4), "bfloat16"))
    >>> can_run(plan) == native_library.is_available()
    True
    """
    known = all(_type_code(place.format) is not None for place in (plan.source, plan.target))
    return known and native_library.is_available() and all(len(nest.extents) <= _MAX_RANK for nest in plan.nests)


def run_plan(plan: Plan, source: int, target: int, threads: int) -> None:
    """Run a plan of one step on memory at two addresses, on up to `threads` threads (0: all cores).

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(3), "uint8"), Placement(Layout(3, -1) + 2, "uint8"))
    >>> a, b = np.arange(3, dtype=np.uint8), np.zeros(3, dtype=np.uint8)
    >>> if can_run(plan):
    ...     run_plan(plan, a.ctypes.data, b.ctypes.data, 1)
    ...     assert b.tolist() == [2, 1, 0]
    """
    nests = translate_plan(plan).nests
    status = native_library.load_library().tw_run(nests, len(nests), source, target, threads)
    if status:
        raise RuntimeError(f"the native library rejected a plan (status {status}); use engine='reference'")


def translate_plan(plan: Plan) -> TranslatedPlan:
    """Return a plan as the library takes it: made once, since it does not depend on addresses.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(3), "uint8"), Placement(Layout(3), "uint8"))
    >>> len(translate_plan(plan).nests)
    1
    """

    def translate() -> TranslatedPlan:
        tables: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        nests = (_NativeNest * len(plan.nests))()
        for native_nest, nest in zip(nests, plan.nests, strict=True):
            _fill_native_nest(native_nest, nest, plan, tables)
        return TranslatedPlan(plan, nests, tables)

    return _translated.get(plan, None, translate)


class NativeRunner:
    """A function that runs a plan in the native library, from one address to another.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(2), "int16"), Placement(Layout(2), "int16"))
    >>> NativeRunner(plan, threads=1, streaming=False).count if can_run(plan) else 1
    1
    """

    __slots__ = ("_run", "_translated", "count", "nests", "streaming", "threads")

    def __init__(self, plan: Plan, threads: int, streaming: bool) -> None:
        library = native_library.load_library()
        self._run = library.tw_run_streaming if streaming else library.tw_run
        self._translated = translate_plan(plan)  # keeps the tables alive that its nests point to
        self.nests: int = ctypes.addressof(self._translated.nests)
        self.count, self.threads, self.streaming = len(plan.nests), threads, streaming

    def __call__(self, source: int, target: int) -> None:
        if self._run(self.nests, self.count, source, target, self.threads):
            run_plan(self._translated.plan, source, target, self.threads)  # raises the error


def _fill_native_nest(
    out: _NativeNest, nest: LoopNest, plan: Plan, tables: list[np.ndarray[Any, np.dtype[np.int64]]]
) -> None:
    """Fill in the C struct of a nest; its tables are appended to `tables`."""
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
    for k, byte in enumerate(b"" if clears else fill_value(plan.source, plan.target).tobytes()):
        out.fill[k] = byte
    if nest.tabulated is not None:
        for name, place in (("src_table", plan.source), ("dst_table", plan.target)):
            if nest.operation == "fill" and name == "src_table":
                offsets = np.zeros(nest.tabulated.count, dtype=np.int64)
            else:
                offsets = np.ascontiguousarray(place.table_offsets(nest.tabulated) * place.itemsize)
            tables.append(offsets)
            setattr(out, name, offsets.ctypes.data)
        out.table_count = nest.tabulated.count


def _type_code(element: Format) -> int | None:
    """Return the number of a format in native/tilewright.h, or None if the library does not support it."""
    if not element.has_blocks:
        return _TYPES.get(element.name)
    # a format that users define may have a known name
    return _BLOCK_TYPES.get(element.name) if BLOCK_FORMATS.get(element.name) == element else None

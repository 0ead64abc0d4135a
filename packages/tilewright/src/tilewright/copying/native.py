# SPDX-License-Identifier: Apache-2.0
"""The native library: C++ behind a plain C ABI, loaded with ctypes, optional.

It is loaded on first use. Set ``TILEWRIGHT_NATIVE=0`` before that to disable it, or ``TILEWRIGHT_LIBRARY`` to the path
of another build.

>>> is_available() == (unavailable_reason() is None)
True
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..formats import BLOCK_FORMATS, Format
from .placement import LoopNest, aligned_empty, fill_value
from .plan import Plan, PlanCache

if TYPE_CHECKING:
    from collections.abc import Sequence


ABI_VERSION = 5
"""The TW_ABI_VERSION of native/tilewright.h that this module expects."""

_FILE_NAME = {"win32": "_native.dll", "darwin": "_native.dylib"}.get(sys.platform, "_native.so")
_REINSTALL = "reinstall tilewright from source with a C++20 compiler present"

_POINTER, _INT32, _INT64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
# the results and parameters of the functions of native/tilewright.h
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "tw_run": (_INT32, [_POINTER, _INT32, _POINTER, _POINTER, _INT32]),
    "tw_run_streaming": (_INT32, [_POINTER, _INT32, _POINTER, _POINTER, _INT32]),
    "tw_run_transfers": (_INT32, [_POINTER, _INT64, _POINTER, _INT32, _POINTER, _INT32, _INT64]),
    "tw_decode": (_INT32, [_POINTER, _POINTER, _POINTER, _INT64, _INT64, _POINTER]),
    "tw_recode": (_INT32, [_POINTER, _POINTER, _POINTER, _INT64, _INT64, _POINTER]),
    "tw_current_core": (_INT32, []),
    "tw_sha256_pair": (_INT32, [_POINTER, _POINTER, _INT64, _POINTER, _POINTER, _INT64]),
    "tw_read_runs": (_INT64, [_INT32, _POINTER, _INT64, _INT64, _POINTER]),
    "tw_pair_sums": (None, [_POINTER, _POINTER, _INT64, _POINTER, _POINTER]),
    "tw_differences": (_INT64, [_INT32, _POINTER, _POINTER, _INT64, _POINTER]),
    "tw_cpu_features": (ctypes.c_char_p, []),
}


@cache
def is_available() -> bool:
    """Return whether the native library is loaded and has the expected ABI.

    >>> isinstance(is_available(), bool)
    True
    """
    return _load()[0] is not None


def unavailable_reason() -> str | None:
    """Return why the native library is unavailable and what to do about it, or None if it is available.

    >>> reason = unavailable_reason()
    >>> reason is None or reason.startswith("the native library")
    True
    """
    return _load()[1]


@cache
def load_library() -> Any:
    """Return the native library, ready to call, or None if it is not available.

    >>> is_available() == (load_library() is not None)
    True
    """
    return _load()[0]


def _package_folders() -> Sequence[str]:
    """Return the folders of the installed package.

    An editable install has two, the source tree and the one the build installed into, so ``__file__`` would
    not be enough.
    """
    package = sys.modules[__name__.partition(".")[0]]
    return list(package.__path__)


@cache
def _load() -> tuple[ctypes.CDLL | None, str | None]:
    """Return the library, ready to call, and None; or None and the reason there is none."""
    if os.environ.get("TILEWRIGHT_NATIVE") == "0":
        return None, "the native library is disabled by TILEWRIGHT_NATIVE=0; unset the variable to use it"
    override = os.environ.get("TILEWRIGHT_LIBRARY")
    candidates = [Path(override)] if override else [Path(folder, _FILE_NAME) for folder in _package_folders()]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        return None, f"the native library is missing: expected {' or '.join(map(str, candidates))}; {_REINSTALL}"
    try:
        library = ctypes.CDLL(str(path))
        version = library.tw_abi_version()
        if version != ABI_VERSION:
            wanted = f"this package needs {ABI_VERSION}; {_REINSTALL}"
            return None, f"the native library {path} has ABI version {version}, {wanted}"
        for name, (result, parameters) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
    except (OSError, AttributeError) as problem:  # not a library of this machine, or a symbol is missing
        return None, f"the native library {path} cannot be loaded ({problem}); {_REINSTALL}"
    return library, None


# The native engine: runs plans in the C++ library, without the GIL and on several threads.

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
    >>> can_run(plan) == is_available()
    True
    """
    known = all(_type_code(placement.format) is not None for placement in (plan.source, plan.target))
    return known and is_available() and all(len(nest.extents) <= _MAX_RANK for nest in plan.nests)


def run_plan(plan: Plan, source: int, target: int, threads: int) -> None:
    """Run a plan of one stage on memory at two addresses, on up to `threads` threads (0: all cores).

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(3), "uint8"), Placement(Layout(3, -1) + 2, "uint8"))
    >>> a, b = np.arange(3, dtype=np.uint8), np.zeros(3, dtype=np.uint8)
    >>> if can_run(plan):
    ...     run_plan(plan, a.ctypes.data, b.ctypes.data, 1)
    ...     assert b.tolist() == [2, 1, 0]
    """
    nests = translate_plan(plan).nests
    status = load_library().tw_run(nests, len(nests), source, target, threads)
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
        library = load_library()
        self._run = library.tw_run_streaming if streaming else library.tw_run
        self._translated = translate_plan(plan)  # keeps the tables alive that its nests point to
        self.nests: int = ctypes.addressof(self._translated.nests)
        self.count, self.threads, self.streaming = len(plan.nests), threads, streaming

    @property
    def address(self) -> int:
        """The address of the C function that runs the nests."""
        return ctypes.cast(self._run, ctypes.c_void_p).value or 0

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
        for name, placement in (("src_table", plan.source), ("dst_table", plan.target)):
            if nest.operation == "fill" and name == "src_table":
                offsets = np.zeros(nest.tabulated.count, dtype=np.int64)
            else:
                offsets = np.ascontiguousarray(placement.table_offsets(nest.tabulated) * placement.itemsize)
            tables.append(offsets)
            setattr(out, name, offsets.ctypes.data)
        out.table_count = nest.tabulated.count


def _type_code(element: Format) -> int | None:
    """Return the number of a format in native/tilewright.h, or None if the library does not support it."""
    if not element.has_blocks:
        return _TYPES.get(element.name)
    # a format that users define may have a known name
    return _BLOCK_TYPES.get(element.name) if BLOCK_FORMATS.get(element.name) == element else None


# `decode_codes`, `recode_codes`: float32 values or bfloat8_b tiles of quantised codes by the native library.

# the TW_CODE_ numbers of native/tilewright.h
_CODES = ("e2m1", "float8_e4m3", "float8_e5m2", "int8", "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "MXFP4")
CODE_NUMBERS = {name: number for number, name in enumerate(_CODES)}
TILE_BYTES = 64 + 32 * 32
"""The bytes of a bfloat8_b tile: its exponents and its codes."""


class NativeCoding(ctypes.Structure):
    """The struct `tw_coding` of native/tilewright.h."""

    _fields_ = (
        ("element", ctypes.c_int32),
        ("bits", ctypes.c_int32),
        *[
            (name, ctypes.c_int64)
            for name in ("row_bytes", "scale_row", "group_rows", "group_columns", "first_row", "first_column")
        ],
    )


def can_decode(code: str) -> bool:
    """Return whether the native library knows codes by this name.

    >>> can_decode("IQ1_S")
    False
    """
    return code in CODE_NUMBERS and is_available()


def decode_codes(
    code: str,
    codes: NDArray[np.uint8],
    columns: int,
    scales: NDArray[np.float32] | None = None,
    group: tuple[int, int] = (1, 1),
    first: tuple[int, int] = (0, 0),
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Return the values [rows, columns] of rows of codes, in groups of (rows, columns) that share a scale.

    `code` is one that `can_decode` accepts. `codes` are bytes [rows, bytes]. `scales` are a grid for the groups; the
    first code is at `first` of its group. Block types hold their own scales. `out` is a contiguous array for
    the values; without it, one is allocated.

    >>> codes = np.array([[1, 255], [2, 3]], np.uint8)
    >>> if can_decode("int8"):
    ...     values = decode_codes("int8", codes, 2, np.array([[0.5], [2]], np.float32), (1, 2)).tolist()
    >>> values if can_decode("int8") else [[0.5, -0.5], [4.0, 6.0]]
    [[0.5, -0.5], [4.0, 6.0]]
    """
    shape = (len(codes), columns)
    values: NDArray[np.float32] = aligned_empty(shape, np.float32) if out is None else out
    if values.dtype != np.float32 or values.shape != shape or not values.flags.c_contiguous:
        raise FormatError(
            f"expected out to be contiguous float32 of shape {shape}, got {values.dtype} of {values.shape}"
        )
    _run("tw_decode", code, codes, columns, scales, group, first, values.ctypes.data)
    return values


def recode_codes(
    code: str,
    codes: NDArray[np.uint8],
    columns: int,
    scales: NDArray[np.float32] | None = None,
    group: tuple[int, int] = (1, 1),
    first: tuple[int, int] = (0, 0),
    out: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint8]:
    """Return the bfloat8_b tiles of rows of codes, bit for bit equal to packing the result of `decode_codes`.

    The parameters are as in `decode_codes`; rows and columns are whole tiles of 32 x 32, and blocks. `out` are the
    bytes to write, 1088 for each tile; without it, they are allocated. No float32 go to memory, which is several
    times as fast as decoding and packing (on AVX-512 with VBMI: float8_e4m3, e2m1, Q8_0, Q4_K).

    >>> codes = np.full((32, 32), 3, np.uint8)
    >>> tile = recode_codes("int8", codes, 32, np.ones((1, 1), np.float32), (32, 32)) if can_decode("int8") else None
    >>> [128, 96] if tile is None else [int(tile[0]), int(tile[64])]  # 2^(128 - 127) x 96 / 64 is 3
    [128, 96]
    """
    rows = len(codes)
    if rows % 32 or columns % 32:
        raise FormatError(
            f"expected rows and columns that are whole tiles of 32 x 32, got {rows} x {columns}; pad the codes"
        )
    size = rows // 32 * (columns // 32) * TILE_BYTES
    tiles: NDArray[np.uint8] = aligned_empty(size, np.uint8) if out is None else out
    if tiles.dtype != np.uint8 or tiles.size != size or not tiles.flags.c_contiguous:
        raise FormatError(f"expected out to be {size} contiguous bytes, got {tiles.dtype} of shape {tiles.shape}")
    _run("tw_recode", code, codes, columns, scales, group, first, tiles.ctypes.data)
    return tiles


def _run(
    function: str,
    code: str,
    codes: NDArray[np.uint8],
    columns: int,
    scales: NDArray[np.float32] | None,
    group: tuple[int, int],
    first: tuple[int, int],
    out: int,
) -> None:
    """Call a function of the library that makes something of codes, at the address `out`."""
    library: Any = load_library()
    packed = np.ascontiguousarray(codes)
    grid = np.ones((1, 1), np.float32) if scales is None else np.ascontiguousarray(scales, np.float32)
    number, bits = CODE_NUMBERS[code], 4 if code == "e2m1" else 8
    coding = NativeCoding(number, bits, packed.strides[0] if packed.ndim else 0, grid.shape[1], *group, *first)
    run = getattr(library, function)
    status = run(ctypes.addressof(coding), packed.ctypes.data, grid.ctypes.data, len(packed), columns, out)
    assert status == 0, (code, codes.shape, columns)

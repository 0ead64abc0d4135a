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
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ABI_VERSION", "fingerprint", "is_available", "load_library", "unavailable_reason"]

ABI_VERSION = 5
"""The TW_ABI_VERSION of native/tilewright.h that this module expects."""

_FILE_NAME = {"win32": "_native.dll", "darwin": "_native.dylib"}.get(sys.platform, "_native.so")
_REINSTALL = "reinstall tilewright from source with a C++20 compiler present"

_POINTER, _INT32, _INT64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
# the results and parameters of the functions of native/tilewright.h
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "tw_fingerprint": (ctypes.c_uint64, [_POINTER, ctypes.c_size_t]),
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

_FNV_OFFSET_BASIS = 0xCBF29CE484222325
_FNV_PRIME = 0x00000100000001B3
_MASK_64 = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class _LoadResult:
    """The loaded library, or the problem; exactly one of the two is None."""

    library: ctypes.CDLL | None
    problem: str | None


@cache
def is_available() -> bool:
    """Return whether the native library is loaded and has the expected ABI.

    >>> isinstance(is_available(), bool)
    True
    """
    return _load().library is not None


def unavailable_reason() -> str | None:
    """Return why the native library is unavailable and what to do about it, or None if it is available.

    >>> reason = unavailable_reason()
    >>> reason is None or reason.startswith("the native library")
    True
    """
    return _load().problem


@cache
def load_library() -> Any:
    """Return the native library, ready to call, or None if it is not available.

    >>> is_available() == (load_library() is not None)
    True
    """
    return _load().library


def fingerprint(data: Any) -> int:
    """Return the 64-bit FNV-1a hash of the bytes of a contiguous buffer.

    Not cryptographic: it detects accidental changes only. Raises TypeError for an object without a buffer and
    ValueError for a buffer that is not C-contiguous.

    >>> hex(fingerprint(b"foobar"))
    '0x85944171f73967e8'
    >>> fingerprint(bytearray(b"foobar")) == fingerprint(memoryview(b"foobar"))
    True
    """
    flat = _flat_bytes(data)
    library = _load().library
    if library is None:
        return _fingerprint_in_python(flat)
    return int(library.tw_fingerprint(flat.ctypes.data, flat.size))


def _fingerprint_in_python(flat: NDArray[np.uint8]) -> int:
    """Return the same hash as tw_fingerprint, if the library is not available."""
    value = _FNV_OFFSET_BASIS
    for byte in flat.tobytes():
        value = ((value ^ byte) * _FNV_PRIME) & _MASK_64
    return value


def _flat_bytes(data: Any) -> NDArray[np.uint8]:
    """Return the bytes of a contiguous buffer as a flat array that shares its memory."""
    if isinstance(data, np.ndarray):
        # Some element types (bfloat16 of ml_dtypes, datetime64) export no buffer; every array has bytes.
        if not data.flags.c_contiguous:
            raise ValueError(
                f"fingerprint needs contiguous bytes, got an array of shape {data.shape} with byte strides "
                f"{data.strides}; pass numpy.ascontiguousarray(...) of it"
            )
        return data.reshape(-1).view(np.uint8)
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(
            f"fingerprint needs a bytes-like object, got {type(data).__name__}; "
            "pass bytes, bytearray, memoryview or a NumPy array"
        ) from None
    if not view.c_contiguous:
        raise ValueError(
            f"fingerprint needs contiguous bytes, got a buffer of shape {view.shape} with byte strides "
            f"{view.strides}; pass bytes(...) of it"
        )
    if view.nbytes == 0:
        return np.empty(0, np.uint8)
    return np.frombuffer(view, np.uint8)


def _package_folders() -> Sequence[str]:
    """Return the folders of the installed package.

    An editable install has two, the source tree and the one the build installed into, so ``__file__`` would
    not be enough.
    """
    package = sys.modules[__name__.partition(".")[0]]
    return list(package.__path__)


@cache
def _load() -> _LoadResult:
    """Return the library, ready to call, or the reason there is none."""
    if os.environ.get("TILEWRIGHT_NATIVE") == "0":
        return _LoadResult(None, "the native library is disabled by TILEWRIGHT_NATIVE=0; unset the variable to use it")
    folders = _package_folders()
    override = os.environ.get("TILEWRIGHT_LIBRARY")
    candidates = [Path(override)] if override else [Path(folder, _FILE_NAME) for folder in folders]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        return _LoadResult(
            None,
            f"the native library is missing: expected {' or '.join(map(str, candidates))}; {_REINSTALL}",
        )
    try:
        library = ctypes.CDLL(str(path))
        version = library.tw_abi_version()
        if version != ABI_VERSION:
            return _LoadResult(
                None,
                f"the native library {path} has ABI version {version}, this package needs {ABI_VERSION}; {_REINSTALL}",
            )
        for name, (result, parameters) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
    except (OSError, AttributeError) as problem:  # not a library of this machine, or a symbol is missing
        return _LoadResult(None, f"the native library {path} cannot be loaded ({problem}); {_REINSTALL}")
    return _LoadResult(library, None)

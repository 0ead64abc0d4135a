# SPDX-License-Identifier: Apache-2.0
"""`AssembledSource`: an assembly over stored tensors, whose boxes are read and packed into pages in one pass.

A part of a box is read as the runs of bytes that hold it, and copied from there to its place in the pages: transposed,
converted and packed on the way.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from math import inf, prod
from pathlib import Path
from threading import Condition, Lock
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .._integers import ceil_div, round_up
from ..copying import Assembly, Part, Placement, aligned_empty, execute, native, plan_copy
from ..errors import FileFormatError
from ..files import ByteArray, PagedBoxes, PartReading, QuantizedTensor, StoredTensor, inverse_order
from ..formats import Format, ScalarFormat, find_scalar_format, format_of, out_of_range, scalar_format_of
from ..layout import Box, Layout, compose, cut_into_slabs, largest_slab, row_major
from ..memory import TensorSpec, host_placement

# How values differ from their source: `Rounding` counts the values that a conversion changed, with the largest change.

_LARGEST = sys.float_info.max
_CHUNK = 1 << 17  # elements at a time
_TYPE_CODES = {np.dtype(np.float32): 1, np.dtype(ml_dtypes.bfloat16): 3}  # of native/tilewright.h


@dataclass(frozen=True, slots=True)
class Rounding:
    """Rounding statistics: `rounded` of `values` elements changed; `largest_error` is over finite numbers.

    `nan` and `infinite` count such values of the source, and `out_of_range` its finite values that are too large for
    the format that they are converted to.

    >>> print(Rounding(1024, 0, 0.0))
    exact
    >>> print(Rounding(1024, 3, 0.25) + Rounding(1024, 1, 0.5))
    4 of 2048 values rounded, largest error 0.5
    """

    values: int
    rounded: int = 0
    largest_error: float = 0.0
    nan: int = 0
    infinite: int = 0
    out_of_range: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether no value was changed.

        >>> Rounding(1024, 3, 0.25).is_exact
        False
        """
        return not self.rounded

    @property
    def exceptional(self) -> dict[str, int]:
        """The numbers of values that are NaN, infinite or out of range, where there are any.

        >>> Rounding(1024, nan=2).exceptional
        {'nan': 2}
        """
        counts = {"nan": self.nan, "infinite": self.infinite, "out_of_range": self.out_of_range}
        return {name: count for name, count in counts.items() if count}

    def __add__(self, other: Rounding) -> Rounding:
        error = max(self.largest_error, other.largest_error)
        counts = [getattr(self, name) + getattr(other, name) for name in ("nan", "infinite", "out_of_range")]
        return Rounding(self.values + other.values, self.rounded + other.rounded, error, *counts)

    def __str__(self) -> str:
        if self.is_exact:
            return "exact"
        return f"{self.rounded} of {self.values} values rounded, largest error {self.largest_error:.6g}"


_NAMES = {"nan": "NaN", "infinite": "infinite", "out_of_range": "out of range"}
_MAX_NAMED = 8  # tensors with exceptional values


def describe_exceptional(counts: Mapping[str, int], target: object = None) -> str:
    """Return exceptional values in words: their `counts` by name, and the format `target` that they are converted to.

    >>> describe_exceptional({"nan": 1, "out_of_range": 2}, "float16")
    '1 value is NaN, 2 values are out of range of float16'
    """
    parts = []
    for name, count in counts.items():
        of = f" of {target}" if name == "out_of_range" and target is not None else ""
        parts.append(f"{count} {'value is' if count == 1 else 'values are'} {_NAMES[name]}{of}")
    return ", ".join(parts)


def name_targets(*formats: object) -> str:
    """Return the formats that values are converted to, in order, as `describe_exceptional` names them.

    >>> name_targets("bfloat16", "bfloat8_b"), name_targets("bfloat16", "bfloat16")
    ('bfloat16 or bfloat8_b', 'bfloat16')
    """
    *others, last = dict.fromkeys(map(str, formats))
    return " or ".join([", ".join(others), last] if others else [last])


def note_exceptional(counts: Iterable[tuple[str, Mapping[str, int], object]]) -> Iterator[str]:
    """Yield a note for each tensor with exceptional values, from names, counts and formats; many are counted together.

    >>> list(note_exceptional([("x", {"nan": 3}, "bfloat16"), ("y", {}, "bfloat16")]))
    ['x: 3 values are NaN']
    """
    affected = [(name, special, target) for name, special, target in counts if special]
    yield from [f"{name}: {describe_exceptional(special, target)}" for name, special, target in affected[:_MAX_NAMED]]
    rest = [special for _, special, _ in affected[_MAX_NAMED:]]
    if rest:
        sums = {name: total for name in _NAMES if (total := sum([special.get(name, 0) for special in rest]))}
        yield f"and {len(rest)} more tensors: {describe_exceptional(sums)}"


def count_exceptional(values: NDArray[Any], targets: Sequence[Format] = ()) -> Rounding:
    """Return how many values are NaN, infinite, or finite but out of range of one of the formats of `targets`.

    >>> count_exceptional(np.array([1.0, np.nan, 1e5, -np.inf]), [find_scalar_format("float16")]).exceptional
    {'nan': 1, 'infinite': 1, 'out_of_range': 1}
    """
    flat = values.reshape(-1)
    if not has_exceptional(flat, targets):
        return Rounding(0)
    total = Rounding(0)
    for start in range(0, flat.size, _CHUNK):
        with np.errstate(invalid="ignore"):  # of signalling NaNs
            wide = flat[start : start + _CHUNK].astype(np.float64)
        nan, infinite = np.isnan(wide), np.isinf(wide)
        beyond = np.zeros(wide.shape, np.bool_)
        for element in targets:
            beyond |= _exceeds(wide, element)
        counts = [int(np.count_nonzero(mask)) for mask in (nan, infinite, beyond & ~(nan | infinite))]
        total += Rounding(0, 0, 0.0, *counts)
    return total


def has_exceptional(values: NDArray[Any], targets: Sequence[Format] = ()) -> bool:
    """Return whether some values are NaN, infinite, or perhaps out of range of a format; quickly, from the largest.

    >>> has_exceptional(np.float32([1.0, 2.0])), has_exceptional(np.float32([1e5]), [find_scalar_format("float16")])
    (False, True)
    """
    return not _holds(targets, *_extremes(values))


def _holds(targets: Sequence[Format], least: float, largest: float) -> bool:
    """Return whether numbers between these two, perhaps NaN, are finite and in range of all formats."""
    ranges = [(-_LARGEST, _LARGEST), *map(_limits, targets)]
    return all(low <= least and largest <= high for low, high in ranges)


def _extremes(values: NDArray[Any]) -> tuple[float, float]:
    """Return the least and the largest value, NaN if there is one; of float32, perhaps of either sign."""
    element = find_scalar_format(values.dtype)
    if not values.size or element is None:
        return 0.0, 0.0
    if element.kind != "float":
        return values.min().item(), values.max().item()
    library = native.load_library()
    if library is not None and values.dtype == np.float32 and values.flags.c_contiguous:
        largest = (ctypes.c_float * 2)()
        address = values.ctypes.data
        library.tw_differences(_TYPE_CODES[values.dtype], address, address, values.size, ctypes.addressof(largest))
        return -largest[1], largest[1]
    # codes order like magnitudes: of positive numbers as signed integers, of negative ones as unsigned integers
    is_odd = element.name.endswith("fnuz")  # where the code of a negative zero is NaN
    codes = []
    for start in range(0, values.size, _CHUNK):
        signed = values[start : start + _CHUNK].view(f"i{element.itemsize}")
        codes += [signed.max(), signed.view(f"u{element.itemsize}").max().view(signed.dtype)]
        codes += [signed.min()] if is_odd else []
    wide = np.array(codes).view(element.dtype).astype(np.float64)
    return float(wide.min()), float(wide.max())


def _limits(target: Format) -> tuple[float, float]:
    if target.has_blocks and target.tensor_scaled:  # its scale is chosen for the values
        return -inf, inf
    return target.limits.lowest, target.limits.highest


def _exceeds(wide: NDArray[np.float64], target: Format) -> NDArray[np.bool_]:
    """Return which numbers are too large for a format, after rounding."""
    if not target.has_blocks:
        return out_of_range(wide, target)
    highest = _limits(target)[1]
    return np.abs(wide) > highest


def compare_values(expected: NDArray[Any], actual: NDArray[Any], targets: Sequence[Format] = ()) -> Rounding:
    """Return how `actual` values differ from `expected` ones; a NaN equals a NaN.

    Exceptional values among the expected ones are counted, also those out of range of the formats of `targets`.

    >>> print(compare_values(np.array([1.0, 2.0, np.nan]), np.array([1.0, 2.5, np.nan])))
    1 of 3 values rounded, largest error 0.5
    """
    library, code = native.load_library(), _TYPE_CODES.get(expected.dtype)
    is_contiguous = expected.flags.c_contiguous and actual.flags.c_contiguous
    if library is not None and code is not None and expected.dtype == actual.dtype and is_contiguous:
        largest = (ctypes.c_float * 2)()
        addresses = (expected.ctypes.data, actual.ctypes.data, expected.size, ctypes.addressof(largest))
        rounding = Rounding(expected.size, int(library.tw_differences(code, *addresses)), largest[0])
        return rounding if _holds(targets, -largest[1], largest[1]) else rounding + count_exceptional(expected, targets)
    a, b = expected.astype(np.float64), actual.astype(np.float64)
    differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        away = np.abs(a[differs] - b[differs])
    rounding = Rounding(a.size, int(differs.sum()), float(away[np.isfinite(away)].max(initial=0.0)))
    return rounding + count_exceptional(expected, targets)


def describe_difference(expected: NDArray[Any], actual: NDArray[Any], box: Box) -> str:
    """Return how many `actual` values in a `box` of a tensor are not the `expected` ones, and which is the first.

    >>> print(describe_difference(np.zeros((2, 4)), np.eye(2, 4), Box((32, 0), (2, 4))))
    2 of 8 values, the first at (32, 0): 1 instead of 0
    """
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        a, b = expected.astype(np.float64), actual.astype(np.float64)
    differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
    if not differs.any():
        return "only bytes of padding, or signs of zeros"
    at = tuple([int(indices[0]) for indices in np.nonzero(differs)])
    position = ", ".join([str(start + k) for start, k in zip(box.offset, at, strict=True)])
    many = f"{np.count_nonzero(differs)} of {a.size} {'value' if a.size == 1 else 'values'}"
    return f"{many}, the first at ({position}): {b[at]:.6g} instead of {a[at]:.6g}"


def may_round(source: Format, target: Format) -> bool:
    """Return whether a value of one format may not exist in another.

    >>> from tilewright import format_of
    >>> may_round(format_of("bfloat16"), format_of("float32")), may_round(format_of("float16"), format_of("bfloat16"))
    (False, True)
    >>> may_round(format_of("bfloat16"), format_of("bfloat8_b")), may_round(format_of("int32"), format_of("int64"))
    (True, False)
    """
    if source == target:
        return False
    if source.has_blocks or target.has_blocks:
        return True
    if target.kind != "float":
        return source.kind == "float"  # integers that do not fit are refused
    if source.kind != "float":
        return bool(source.bits > _float_info(target).nmant + 1)
    inner, outer = _float_info(source), _float_info(target)
    return bool(inner.nmant > outer.nmant or inner.maxexp > outer.maxexp or inner.minexp < outer.minexp)


def holds_values(target: Format, element: ScalarFormat) -> bool:
    """Return whether every value of a target, a scalar or one with shared exponents of 8 bits, is one of `element`.

    >>> from tilewright import format_of
    >>> (
    ...     holds_values(format_of("bfloat8_b"), format_of("bfloat16")),
    ...     holds_values(format_of("mxfp4"), format_of("float16")),
    ... )
    (True, False)
    """
    if target.has_blocks:
        return target.aligned and element.name in ("bfloat16", "float32")
    return not may_round(target, element)


def _float_info(element: ScalarFormat) -> Any:
    finfo: Any = ml_dtypes.finfo  # which has no types
    return finfo(element.dtype)


# Output files that several threads write in pieces, and the SHA-256 of byte ranges, two at a time.

_HASHED_BYTES = 1 << 20  # bytes that are hashed at a time
BLOCK_BYTES = 4096  # of a disk: direct writes start and end between blocks, in memory and in the file
_MIN_DIRECT_BYTES = 1 << 18  # shorter writes go through the page cache
_DIRECT = getattr(os, "O_DIRECT", 0)


Bytes: TypeAlias = "ByteArray | bytes | memoryview"


class OutputFile:
    """A file that several threads write at different offsets; errors name the final path `named`.

    Long writes bypass the page cache where the system allows it, if the memory is aligned like the file: bytes that
    have to be on the disk anyway are not copied once more.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as opened:
    ...     file = OutputFile(opened.fileno(), Path("x"))
    ...     file.write(2, b"cd")
    ...     file.write(0, b"ab")
    ...     file.extend(6)
    ...     file.sync()
    ...     opened.read()
    b'abcd\\x00\\x00'
    """

    def __init__(self, handle: int, path: Path) -> None:
        self.named = path
        self._handle = handle
        self._seek_lock = Lock()
        self._direct: int | None = None

    def _call_with_path(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except OSError as problem:
            raise type(problem)(problem.errno, problem.strerror, str(self.named)) from None

    def write(self, offset: int, data: Bytes) -> None:
        """Write bytes at an offset."""
        view = memoryview(data).cast("B") if not isinstance(data, np.ndarray) else data.data.cast("B")
        first = min(-offset % BLOCK_BYTES, len(view))  # bytes before the first block, and after the last one
        last = len(view) - (len(view) - first) % BLOCK_BYTES
        is_aligned = isinstance(data, np.ndarray) and (data.ctypes.data + first) % BLOCK_BYTES == 0
        if not is_aligned or last - first < _MIN_DIRECT_BYTES:
            first = last = len(view)
        self._call_with_path(lambda: self._write_all(view[:first], offset))
        self._call_with_path(lambda: self._write_blocks(view[first:last], offset + first))
        self._call_with_path(lambda: self._write_all(view[last:], offset + last))

    def _write_all(self, view: memoryview, offset: int) -> None:
        while len(view):
            count = self._write_at(view, offset)
            view, offset = view[count:], offset + count

    def _write_blocks(self, view: memoryview, offset: int) -> None:
        """Write blocks past the page cache, or through it if the file system refuses."""
        with self._seek_lock:
            if len(view) and self._direct is None:
                self._direct = _open_direct(self._handle)
        count = 0
        if len(view) and self._direct is not None:
            try:
                count = os.pwrite(self._direct, view, offset)
            except OSError as problem:
                if problem.errno != errno.EINVAL:
                    raise
        self._write_all(view[count:], offset + count)

    def _write_at(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._handle, view, offset)
        with self._seek_lock:
            os.lseek(self._handle, offset, os.SEEK_SET)
            return os.write(self._handle, view)

    def extend(self, size: int) -> None:
        """Extend the file to at least `size` bytes."""
        if os.fstat(self._handle).st_size < size:
            self._call_with_path(lambda: os.truncate(self._handle, size))

    def sync(self) -> None:
        """Flush the file to disk."""
        self._call_with_path(lambda: os.fsync(self._handle))

    def close(self) -> None:
        """Close the files opened here; the handle stays open."""
        if self._direct is not None:
            os.close(self._direct)
            self._direct = None


def _open_direct(handle: int) -> int | None:
    """Return a handle of the same file that bypasses the page cache, None if the system has none."""
    try:
        return os.open(f"/proc/self/fd/{handle}", os.O_WRONLY | _DIRECT) if _DIRECT else None
    except OSError:
        return None


def hash_range(path: Path, start: int, end: int) -> str:
    """Return the SHA-256 of the bytes from `start` to `end` of the file at `path`.

    The rest of the file may change meanwhile: several threads or processes write the tensors of a shared output.

    >>> hash_range(Path(__file__), 0, 0)[:8]
    'e3b0c442'
    """
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(min(_HASHED_BYTES, max(1, end - start))))
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while start < end:
            count = file.readinto(buffer[: end - start])
            if not count:
                raise FileFormatError(f"{path} ends at byte {start}, but {end - start} more bytes were expected")
            digest.update(buffer[:count])
            start += count
    return digest.hexdigest()


def hash_tensor(tensor: StoredTensor) -> str:
    """Return the SHA-256 of the bytes of a stored tensor, its sections concatenated.

    >>> from tilewright.files.tensor_file import store_arrays
    >>> hash_tensor(store_arrays({"x": np.frombuffer(b"abc", np.uint8)})["x"])[:8]
    'ba7816bf'
    """
    digest = hashlib.sha256()
    for section in tensor.sections:
        start, end = section.byte_range
        buffer = np.empty(min(_HASHED_BYTES, max(1, end - start)), np.uint8)
        for at in range(start, end, _HASHED_BYTES):
            piece = buffer[: min(_HASHED_BYTES, end - at)]
            section.file.read_runs([(at, len(piece))], piece)
            digest.update(piece.data)
    return digest.hexdigest()


class SourceHashes:
    """The hashes of source tensors, each computed once: several outputs may use the same source."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[Path, tuple[int, int]], str] = {}

    def add(self, tensor: StoredTensor, digest: str) -> None:
        """Add the hash of a tensor that was read from front to back."""
        self._hashes[tensor.path, tensor.byte_range] = digest

    def get(self, tensor: StoredTensor) -> str:
        """Return the hash of a tensor, which is read again if it is not known."""
        key = tensor.path, tensor.byte_range
        if key not in self._hashes:
            self._hashes[key] = hash_tensor(tensor)
        return self._hashes[key]


Piece = tuple[int | None, "Bytes"]
"""The start of a piece in its range (None: it is in several places), and its bytes; no bytes are always in order."""


NumberedPieces: TypeAlias = "tuple[PieceHashes, int, tuple[Piece, ...]]"
"""Hashes, the number of the next pieces, and a piece of each range."""


class PieceHashes:
    """The SHA-256 of byte ranges, such as a source and an output, from numbered pieces of several threads.

    A piece that does not start where the previous one ended means that its range must be read again; `in_order`
    is True for each range where that never happened.

    >>> hashes = PieceHashes(0, 100)
    >>> hashes.add(0, (0, b"ab"), (100, b"x"))
    >>> hashes.add(1, (2, b"c"), (None, b"y"))
    >>> hashes.in_order, hashes.hexdigest(0)[:8]
    ([True, False], 'ba7816bf')
    """

    def __init__(self, *begins: int) -> None:
        self._hashes = [new_hash() for _ in begins]
        self._positions = list(begins)
        self._next_number = 0
        self._changed = Condition()
        self.in_order = [True for _ in begins]

    def add_prefix(self, stream: int, data: bytes) -> None:
        """Hash bytes before the first piece of a range.

        >>> hashes = PieceHashes(0, 0)
        >>> hashes.add_prefix(1, b"abc")
        >>> hashes.hexdigest(1)[:8]
        'ba7816bf'
        """
        self._hashes[stream].update(data)
        self._positions[stream] += len(data)

    def add(self, number: int, *pieces: Piece) -> None:
        """Hash piece `number` of each range, after the previous pieces.

        >>> hashes = PieceHashes(0, 0)
        >>> hashes.add(0, (None, b"a"), (None, b""))
        >>> hashes.in_order
        [False, True]
        """
        hash_pieces([(self, number, pieces)])

    def _wait_for_turn(self, number: int, pieces: tuple[Piece, ...]) -> list[int]:
        """Wait for the turn of piece `number`, and return the ranges to hash."""
        with self._changed:
            for k, (start, data) in enumerate(pieces):
                if start is None and len(data):
                    self.in_order[k] = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not any(self.in_order) or self._next_number == number)
            for k, (start, data) in enumerate(pieces):
                self.in_order[k] = self.in_order[k] and (not len(data) or start == self._positions[k])
            return [k for k, in_order in enumerate(self.in_order) if in_order and len(pieces[k][1])]

    def _pass_turn(self, pieces: tuple[Piece, ...], active: list[int]) -> None:
        """Pass the turn to the next piece."""
        with self._changed:
            for k in active:
                self._positions[k] += len(pieces[k][1])
            self._next_number += 1
            self._changed.notify_all()

    def position(self, stream: int) -> int:
        """Return where the next piece of a range starts.

        >>> hashes = PieceHashes(5)
        >>> hashes.add(0, (5, b"ab"))
        >>> hashes.position(0)
        7
        """
        return self._positions[stream]

    def abandon(self) -> None:
        """Release all waiting threads: a piece will never come."""
        with self._changed:
            self.in_order = [False for _ in self.in_order]
            self._changed.notify_all()

    def hexdigest(self, stream: int) -> str:
        """Return the hash of a range so far.

        >>> PieceHashes(0).hexdigest(0)[:8]
        'e3b0c442'
        """
        return self._hashes[stream].hexdigest()


def hash_pieces(pieces_of: list[NumberedPieces]) -> None:
    """Add pieces to several hashes in their turn, two pieces of similar length at a time.

    >>> one, other = PieceHashes(0), PieceHashes(0)
    >>> hash_pieces([(one, 0, ((0, b"abc"),)), (other, 0, ((0, b"abc"),))])
    >>> one.hexdigest(0) == other.hexdigest(0)
    True
    """
    begun = [(hashes, pieces, hashes._wait_for_turn(number, pieces)) for hashes, number, pieces in pieces_of]
    # while it is their turn, no other thread uses them
    update_hashes([(hashes._hashes[k], pieces[k][1]) for hashes, pieces, active in begun for k in active])
    for hashes, pieces, active in begun:
        hashes._pass_turn(pieces, active)


def update_hashes(streams: list[tuple[Hash, Any]]) -> None:
    """Update hashes with their data, two of similar length at a time.

    >>> hashes = [new_hash() for _ in range(3)]
    >>> update_hashes([(digest, b"abc") for digest in hashes])
    >>> {digest.hexdigest()[:8] for digest in hashes}
    {'ba7816bf'}
    """
    longest_first = sorted(streams, key=lambda stream: -len(stream[1]))
    for (first_hash, first), (second_hash, second) in zip(longest_first[::2], longest_first[1::2], strict=False):
        update_pair(first_hash, first, second_hash, second)
    if len(streams) % 2:
        last, data = longest_first[-1]
        last.update(_as_buffer(data))


Hash: TypeAlias = "PairedHash | hashlib._Hash"

_BLOCK = 64
_START = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)


def new_hash() -> Hash:
    """Return a new SHA-256.

    >>> one = new_hash()
    >>> one.update(b"abc")
    >>> one.hexdigest()[:8]
    'ba7816bf'
    """
    return PairedHash() if _is_native() else hashlib.sha256()


@cache
def _is_native() -> bool:
    library = native.load_library()
    nothing = np.array(_START, np.uint32)
    address = nothing.ctypes.data
    return library is not None and library.tw_sha256_pair(address, None, 0, address, None, 0) == 0


def update_pair(first_hash: Hash, first: Bytes, second_hash: Hash, second: Bytes) -> None:
    """Update two hashes, in little more time than the longer update takes.

    >>> one, other = new_hash(), new_hash()
    >>> update_pair(one, b"a" * 1000, other, b"b" * 70)
    >>> other.hexdigest() == hashlib.sha256(b"b" * 70).hexdigest()
    True
    """
    if isinstance(first_hash, PairedHash) and isinstance(second_hash, PairedHash):
        a, b = first_hash.complete_blocks(first), second_hash.complete_blocks(second)
        _compress_pair(first_hash, a, second_hash, b)
    else:
        first_hash.update(_as_buffer(first))
        second_hash.update(_as_buffer(second))


class PairedHash:
    """A SHA-256 with an accessible state, so that two of them can be updated together.

    >>> if _is_native():
    ...     hashed = PairedHash()
    ...     hashed.update(b"abc")
    ...     assert hashed.hexdigest() == hashlib.sha256(b"abc").hexdigest()
    """

    __slots__ = ("_count", "_tail", "state")

    def __init__(self) -> None:
        self.state = np.array(_START, np.uint32)
        self._tail, self._count = b"", 0

    def complete_blocks(self, data: Bytes) -> ByteArray:
        """Return the complete blocks of more bytes as an array; the remainder is kept for the next bytes."""
        rest = np.frombuffer(_as_buffer(data), np.uint8)
        self._count += len(rest)
        if self._tail:
            missing = _BLOCK - len(self._tail)
            self._tail, rest = self._tail + rest[:missing].tobytes(), rest[missing:]
            if len(self._tail) < _BLOCK:
                return rest
            block, self._tail = np.frombuffer(self._tail, np.uint8), b""
            _compress_pair(self, block, self, block[:0])
        whole = len(rest) - len(rest) % _BLOCK
        self._tail = rest[whole:].tobytes()
        return rest[:whole]

    def update(self, data: Bytes, /) -> None:
        """Add bytes."""
        blocks = self.complete_blocks(data)
        _compress_pair(self, blocks, self, blocks[:0])

    def hexdigest(self) -> str:
        """Return the hash of all bytes so far."""
        ended = PairedHash()
        ended.state = self.state.copy()
        end = b"\x80" + bytes(-(len(self._tail) + 9) % _BLOCK) + (8 * self._count).to_bytes(8, "big")
        blocks = np.frombuffer(self._tail + end, np.uint8)
        _compress_pair(ended, blocks, ended, blocks[:0])
        return ended.state.astype(">u4").tobytes().hex()


def _as_buffer(data: Bytes) -> bytes | memoryview:
    return data.data if isinstance(data, np.ndarray) else data


def _compress_pair(first_hash: PairedHash, a: ByteArray, second_hash: PairedHash, b: ByteArray) -> None:
    first, second = (first_hash.state.ctypes.data, a.ctypes.data), (second_hash.state.ctypes.data, b.ctypes.data)
    native.load_library().tw_sha256_pair(*first, len(a) // _BLOCK, *second, len(b) // _BLOCK)


_COUNTED_AT_A_TIME = 1 << 16  # values
Allocate = Callable[[int], ByteArray]


class PartValues(NamedTuple):
    """A part of a box, how it was read, and the elements of its runs, concatenated."""

    part: Part
    reading: PartReading
    values: Any


@dataclass(frozen=True)
class AssembledSource:
    """A tensor that is put together from stored tensors: `value` over `tensors`, by name.

    The elements of a source count in the order in which they are stored. Values are rounded to the formats of
    `through`, one after the other, before they are packed; a constant is added in the first of those.

    >>> import tempfile
    >>> from tilewright import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(6, dtype=np.uint8).reshape(2, 3))
    ...     source = AssembledSource.of(open_tensors(folder)["x"])
    ...     source.transpose((1, 0)).read(Box((1, 0), (2, 2))).tolist()
    [[1, 4], [2, 5]]
    """

    value: Assembly
    tensors: Mapping[str, StoredTensor]
    through: tuple[ScalarFormat, ...] = ()

    @classmethod
    def of(cls, tensor: StoredTensor) -> AssembledSource:
        """Return a stored tensor as it is; a type without a number format has a shape, but no values."""
        value = Assembly.of(tensor.name, tensor.shape) if tensor.host is None else stored_assembly(tensor)
        return cls(value, {tensor.name: tensor})

    @property
    def format(self) -> Format | None:
        """The number format of the sources: the widest, if they have several."""
        formats = [tensor.format for tensor in self.tensors.values()]
        stored = [element for element in formats if element is not None]
        return None if len(stored) < len(formats) or not stored else max(stored, key=lambda element: element.bits)

    def transpose(self, order: Sequence[int]) -> AssembledSource:
        """Return the tensor with its dimensions in another order."""
        return replace(self, value=self.value.transpose(order)) if self.value.shape else self

    @property
    def kind(self) -> str:
        """The types of the sources, as their files name them."""
        return ", ".join(dict.fromkeys([tensor.kind for tensor in self.tensors.values()]))

    def _element(self, name: str) -> ScalarFormat:
        """Return the number format of the values of a source."""
        return scalar_format_of(self.tensors[name].dtype)

    @cached_property
    def _largest_part(self) -> Part | None:
        return max(self.value.parts, key=lambda part: part.box.size, default=None)

    def axes_from_outermost(self) -> list[int]:
        """Return the axes, by the strides of the source, the largest first."""
        part = self._largest_part
        if part is None:
            return list(range(len(self.value.shape)))
        strides = [max(stride for _, stride in mode) for mode in part.modes]
        return sorted(range(len(strides)), key=lambda d: (-strides[d], d))

    def run_bytes(self, axis: int, extent: int) -> int:
        """Return the bytes that lie together in the largest source, in a box of `extent` along an axis, else whole."""
        part = self._largest_part
        if part is None or not is_plain(self.tensors[part.source]):
            return 0
        leaves = sorted({pair for mode in part.modes for pair in mode if pair[0] > 1}, key=lambda pair: pair[1])
        run = 1
        for n, stride in leaves:
            if stride != run:
                break
            is_cut = (n, stride) in part.modes[axis]
            run *= min(n, extent) if is_cut else n
            if is_cut:
                break
        return run * self.tensors[part.source].dtype.itemsize

    def units(self) -> tuple[int, ...]:
        """Return the extents that boxes should be multiples of, so that tiled sources are read page by page."""
        units = [1] * len(self.value.shape)
        if len(self.value.parts) == 1 and len(self.tensors) == 1:
            (tensor,) = self.tensors.values()
            part = self.value.parts[0]
            stored = stored_shape(tensor)
            own = tensor.pages.units if len(tensor.parts) == 1 else (1,) * len(stored)
            by_stride = {prod(stored[d + 1 :]): unit for d, unit in enumerate(own)}
            if part.box.shape == self.value.shape and all(len(mode) == 1 for mode in part.modes):
                units = [by_stride.get(mode[0][1], 1) for mode in part.modes]
        return tuple(units)

    def box_bytes(self, box: Box, spec: TensorSpec) -> int:
        """Return the memory for reading a box, and for its values if they have to be gathered."""
        total, parts = 0, []
        for part, reading in self._readings(box):
            tensor = self.tensors[part.source]
            elements = reading.elements
            total += elements * tensor.dtype.itemsize
            if not is_plain(tensor):  # also as stored
                host = tensor.pages.spec
                total += ceil_div(elements * host.page_bytes, host.page_elements)
            parts.append(part)
        if self._page_windows(parts, spec) is None:
            total += box.size * max([dtype.itemsize for dtype in self._steps(parts)])
        if self.may_round(spec):  # values as they come out, to be compared
            direct = len(parts) == 1 and holds_values(spec.dtype, self._element(parts[0].source))
            total += box.size * (4 if direct else 2 * self._wide_format(spec).itemsize)
        return total

    def _readings(self, box: Box) -> Iterator[tuple[Part, PartReading]]:
        """Yield the parts of a box, relative to it, and how they are read."""
        for part in self.value.parts_in(box):
            inside = replace(part, box=part.box.relative_to(box.offset))
            tensor = self.tensors[part.source]
            yield inside, PartReading.of(inside, tensor.dtype.itemsize)

    def read_parts(self, box: Box, allocate: Allocate) -> Iterator[PartValues]:
        """Yield the parts of a box with their elements; `allocate` returns memory for a number of bytes."""
        for part, reading in self._readings(box):
            tensor = self.tensors[part.source]
            if not is_plain(tensor):
                yield _read_decoded(tensor, part, allocate)
                continue
            start, size = tensor.byte_range[0], tensor.dtype.itemsize
            data = allocate(reading.elements * size)
            tensor.file.read_equal_runs(start + reading.starts * size, reading.count * size, data)
            yield PartValues(part, reading, data.view(tensor.dtype))

    def piece_of(self, name: str, parts: Sequence[PartValues]) -> Piece:
        """Return the bytes of a source that parts were read from, and where they start; None: in several places."""
        tensor = self.tensors[name]
        own = [piece for piece in parts if piece.part.source == name]
        if not own:
            return None, b""
        if len(own) > 1 or len(own[0].reading.starts) > 1 or not is_plain(tensor):
            return None, own[0].values
        start = tensor.byte_range[0] + int(own[0].reading.starts[0]) * tensor.dtype.itemsize
        return start, own[0].values.view(np.uint8)

    def read(self, box: Box) -> NDArray[Any]:
        """Return the values of a box, rounded, with the constant added."""
        parts = list(self.read_parts(box, aligned_bytes))
        values: NDArray[Any] = self._gather(parts, box.shape, aligned_bytes, 1)
        return values.reshape(box.shape)

    def pack(
        self,
        parts: Sequence[PartValues],
        spec: TensorSpec,
        out: ByteArray,
        allocate: Allocate,
        pad_value: float = 0,
        threads: int = 1,
        box: Box | None = None,
        start: int = 0,
    ) -> None:
        """Pack the parts of a box into `out`, the pages of `spec`, which begin `start` bytes after its own begin.

        The box is all of the tensor by default. If it is not, the pages of what no part covers must be zero already.
        """
        target = host_placement(spec, pad_value)
        if box is not None:
            target, at, spec = _place_box(spec, pad_value, box)
            out = out[start + at :]
        shape = spec.shape.logical
        lead = len(spec.padded_shape) - len(shape)
        windows = self._page_windows([piece.part for piece in parts], spec)
        if windows is None or (pad_value and [piece.part.box.shape for piece in parts] != [shape]):
            values = self._gather(parts, shape, allocate, threads)
            source = Placement(_add_modes(row_major(*shape), lead), format_of(values.dtype))
            execute(plan_copy(source, target), values, out, threads)
            return
        if box is None and sum([window.size for window in windows]) < prod(spec.padded_shape):
            out[:] = 0
        for (part, reading, values), window in zip(parts, windows, strict=True):
            source = Placement(_add_modes(reading.layout, lead), self._element(part.source))
            whole = target if window.shape == spec.padded_shape else _cut_placement(target, window)
            execute(plan_copy(source, whole, pad=True), values, out, threads)

    def may_round(self, spec: TensorSpec) -> bool:
        """Return whether values may change on the way to `spec`."""
        formats = [tensor.format for tensor in self.tensors.values()]
        return bool(self.value.added) or any(
            may_round(source, target)
            for source in formats
            for target in (*self.through, spec.dtype)
            if source is not None
        )

    def measure_rounding(
        self,
        parts: Sequence[PartValues],
        spec: TensorSpec,
        pages: ByteArray,
        allocate: Allocate,
        threads: int = 1,
        box: Box | None = None,
        start: int = 0,
    ) -> Rounding:
        """Return how the values that `pack` wrote with these arguments differ from the values of the sources."""
        targets = (*self.through, spec.dtype)
        packed = host_placement(spec)
        if box is not None:
            packed, at, spec = _place_box(spec, 0, box)
            pages = pages[start + at :]
        shape = spec.shape.logical
        if not prod(shape):
            return Rounding(0)
        lead = len(spec.padded_shape) - len(shape)
        if len(parts) == 1 and parts[0].part.box.shape == shape and not self.value.added:
            # where the source lies without gaps, values are compared as it holds them
            _, reading, values = parts[0]
            element = self._element(parts[0].part.source)
            if reading.elements == values.size == prod(shape) and holds_values(spec.dtype, element):
                actual = allocate(values.nbytes).view(values.dtype)
                placement = Placement(_add_modes(reading.layout, lead), element)
                execute(plan_copy(packed, placement, crop=True), pages, actual, threads)
                return compare_values(values, actual, targets)
        wide = self._wide_format(spec)
        expected = replace(self, through=(wide,))._gather(parts, shape, allocate, threads)
        rows = Placement(_add_modes(row_major(*shape), lead), wide)
        actual = allocate(rows.nbytes).view(wide.dtype)
        execute(plan_copy(packed, rows, crop=True), pages, actual, threads)
        return compare_values(expected, actual, targets)

    def count_exceptional(self, parts: Sequence[PartValues], spec: TensorSpec, box: Box) -> Rounding:
        """Return how many values of a box, which `parts` were read for, are NaN, infinite or out of range."""
        targets = (*self.through, spec.dtype)
        total = Rounding(0)
        if any(has_exceptional(piece.values, targets) for piece in parts):  # more than the box may have been read
            wide = replace(self, through=(self._wide_format(spec),))
            extents = largest_slab(box.shape, (1,) * len(box.shape), lambda slab: prod(slab) <= _COUNTED_AT_A_TIME)
            for small in cut_into_slabs(box.shape, extents):
                total += count_exceptional(wide.read(small.relative_to(tuple([-n for n in box.offset]))), targets)
        return total

    def _wide_format(self, spec: TensorSpec) -> ScalarFormat:
        """Return a format in which the values of sources and target are compared."""
        single = scalar_format_of("float32")
        formats = [scalar_format_of(tensor.dtype) for tensor in self.tensors.values()]
        fits = not any(may_round(element, single) for element in (*formats, spec.dtype.value_format))
        return single if fits else scalar_format_of("float64")

    def covers(self, spec: TensorSpec) -> bool:
        """Return whether the parts fill all pages of `spec` without padding."""
        is_whole = sum([part.box.size for part in self.value.parts]) == prod(self.value.shape)
        return is_whole and prod(spec.shape.logical) == prod(spec.padded_shape)

    def _page_windows(self, parts: list[Part], spec: TensorSpec) -> list[Box] | None:
        """Return the box of whole pages that each part fills; None if parts cannot be packed one by one."""
        return None if self.value.added or self.through else _page_windows(parts, spec)

    def _steps(self, parts: Sequence[Part]) -> tuple[ScalarFormat, ...]:
        """Return the formats that values have between source and target."""
        return self.through or (self._element(parts[0].source) if parts else scalar_format_of("float32"),)

    def _gather(
        self, parts: Sequence[PartValues], shape: tuple[int, ...], allocate: Allocate, threads: int
    ) -> NDArray[Any]:
        """Return the values of a box in row-major order, rounded, with the constant added."""
        first, *others = self._steps([piece.part for piece in parts])
        size = prod(shape)
        values = allocate(size * first.itemsize).view(first.dtype)
        if sum([piece.part.box.size for piece in parts]) < size:
            values[:] = 0
        target = Placement(row_major(*shape), first)
        for part, reading, data in parts:
            source = Placement(reading.layout, self._element(part.source))
            execute(plan_copy(source, _cut_placement(target, part.box)), data, values, threads)
        if self.value.added:
            values += first.dtype.type(self.value.added)
        for stage in others:
            rounded = allocate(size * stage.itemsize).view(stage.dtype)
            ends = [Placement(Layout(size), element) for element in (format_of(values.dtype), stage)]
            execute(plan_copy(*ends), values, rounded, threads)
            values = rounded
        return values


def aligned_bytes(size: int) -> ByteArray:
    """Return new memory for a number of bytes."""
    return aligned_empty(size, np.uint8)


def _page_windows(parts: list[Part], spec: TensorSpec) -> list[Box] | None:
    """Return the boxes of whole pages that parts fill, each by itself; None if a page needs several parts."""
    rank = len(spec.padded_shape)
    unit = (1,) * (rank - 2) + spec.unit if spec.dtype.has_blocks else (1,) * rank
    lead = rank - len(parts[0].box.shape) if parts else 0
    boxes = [Box((0,) * lead + part.box.offset, (1,) * lead + part.box.shape) for part in parts]
    windows = []
    for part, box in zip(parts, boxes, strict=True):
        if spec.dtype.has_blocks and any(len(mode) > 1 for mode in part.modes[-2:]):
            return None
        if box.shape[lead:] == spec.shape.logical:  # with all the padding
            return [Box((0,) * rank, spec.padded_shape)]
        ends = [round_up(end, n) for end, n in zip(box.end, unit, strict=True)]
        window = Box.between(box.offset, tuple(ends))
        if any(start % n for start, n in zip(box.offset, unit, strict=True)):
            return None
        if any(other is not box and not other.intersection(window).empty for other in boxes):
            return None
        windows.append(window)
    return windows


def is_plain(tensor: StoredTensor) -> bool:
    """Return whether the elements of a tensor are contiguous in its file, stored as they are."""
    is_dense = tensor.host is not None and not tensor.host.is_tiled
    is_stored = tensor.sections[0] is tensor  # not made from codes and scales
    return is_dense and is_stored and not tensor.swapped and len(tensor.parts) == 1 and tensor.image is None


def stored_shape(tensor: StoredTensor) -> tuple[int, ...]:
    """Return the shape of a tensor with its dimensions as stored."""
    return tuple([tensor.shape[d] for d in inverse_order(tensor.order)])


def stored_assembly(tensor: StoredTensor) -> Assembly:
    """Return a stored tensor as an assembly over its elements in the order in which they are stored."""
    if tensor.strides is not None and is_plain(tensor):  # a view: over all elements from its first to its last
        modes = tuple([((n, stride),) for n, stride in zip(tensor.shape, tensor.strides, strict=True)])
        part = Part(Box((0,) * len(modes), tensor.shape), tensor.name, 0, modes)
        return Assembly(tensor.shape, (part,), text=f"tensor({tensor.name!r})")
    whole = Assembly.of(tensor.name, stored_shape(tensor))
    return replace(whole.transpose(tensor.order), text=whole.text) if tensor.order else whole


def _read_decoded(tensor: StoredTensor, part: Part, allocate: Allocate) -> PartValues:
    """Return a part of a tensor that is tiled, swapped or shared by a mesh: its enclosing box, decoded."""
    stored = stored_shape(tensor)
    strides = [prod(stored[d + 1 :]) for d in range(len(stored))]
    low, rest = [], part.offset
    for stride in strides:
        digit, rest = divmod(rest, stride)
        low.append(digit)
    extent = [1] * len(stored)
    axis_of = {}
    for n, stride in {pair for mode in part.modes for pair in mode if pair[0] > 1 and pair[1]}:
        d = next(d for d, own in enumerate(strides) if stride % own == 0 and stride >= own)
        axis_of[(n, stride)] = d
        extent[d] += (n - 1) * (stride // strides[d])
    if any(at + n > whole for at, n, whole in zip(low, extent, stored, strict=True)):  # merged dimensions: take rows
        first, last = part.span[0] // strides[0], (part.span[1] - 1) // strides[0]
        low, extent = [first] + [0] * (len(stored) - 1), [last + 1 - first, *stored[1:]]
        axis_of = {}
    box = Box(tuple(low), tuple(extent))
    if isinstance(tensor, QuantizedTensor):
        values = allocate(box.size * tensor.dtype.itemsize).view(tensor.dtype).reshape(box.shape)
        tensor.read_into(box, values)
    else:
        values = np.ascontiguousarray(tensor.read_stored(box))
    inner = [prod(box.shape[d + 1 :]) for d in range(len(stored))]

    def rebase(n: int, stride: int) -> int:
        d = axis_of.get((n, stride))
        return stride if d is None else stride // strides[d] * inner[d]

    start = part.offset - sum([at * stride for at, stride in zip(low, strides, strict=True)]) if not axis_of else 0
    modes = tuple([tuple([(n, rebase(n, stride)) for n, stride in mode]) for mode in part.modes])
    layout = Part(part.box, part.source, start, modes).layout(0)
    return PartValues(part, PartReading(np.zeros(1, np.int64), values.size, layout), values.reshape(-1))


def _add_modes(layout: Layout, count: int) -> Layout:
    """Return a layout with modes of extent 1 before its own."""
    if not count:
        return layout
    result: Layout = Layout((*(1,) * count, *layout.shape), (*(0,) * count, *layout.stride)) + layout.offset
    return result


@lru_cache(maxsize=1024)  # layers have boxes of the same specs
def _place_box(spec: TensorSpec, pad_value: float, box: Box) -> tuple[Placement, int, TensorSpec]:
    """Return the placement of a box in the pages of `spec`, the bytes before its first page, and its own spec.

    Boxes of the same shape have the same placement, and so the same plan, wherever they are.
    """
    boxes = PagedBoxes(spec)
    placement = _cut_placement(host_placement(spec, pad_value), boxes.page_window(box))
    assert isinstance(placement.layout, Layout)
    elements = int(placement.layout.offset)
    moved = Placement(placement.layout - elements, placement.format, placement.fill, placement.tile_elements)
    return moved, elements * spec.page_bytes // spec.page_elements, boxes.box_spec(box)


def _cut_placement(placement: Placement, box: Box) -> Placement:
    """Return the placement of a box of a tensor."""
    windows = tuple([Layout(n) + start for start, n in zip(box.offset, box.shape, strict=True)])
    return Placement(compose(placement.layout, windows), placement.format, placement.fill, placement.tile_elements)

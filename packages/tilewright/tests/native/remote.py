# SPDX-License-Identifier: Apache-2.0
"""A library that runs in another process, such as one for aarch64 under an emulator, called as if it were loaded here.

`TILEWRIGHT_TEST_REMOTE` is the command that starts it: remote.cpp with the path of a library. Memory goes there and
back, as much of it as the nests of a call reach.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import struct
import subprocess
import threading
from functools import partial
from types import SimpleNamespace

from tilewright.copying import native
from tilewright.copying.native import NativeCoding, _NativeNest

COMMAND = os.environ.get("TILEWRIGHT_TEST_REMOTE")
# bytes of the scalar types that take more than one, bits of a code
_SIZES = {**dict.fromkeys((0, 9, 13), 8), **dict.fromkeys((1, 8, 12), 4), **dict.fromkeys((2, 3, 7, 11), 2)}
_CODE_BITS = {100: 8, 101: 4, 102: 2, 103: 8, 104: 4, 105: 2, 106: 8, 107: 8, 108: 6, 109: 6, 110: 4, 111: 8, 112: 4}
COPY, FILL, PACK, UNPACK = range(4)


class RemoteLibrary:
    """The functions of native/tilewright.h that tests call, answered by another process."""

    def __init__(self, command: str) -> None:
        self._process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()
        self.tw_run = _RemoteFunction(partial(self._run, "tw_run"))
        self.tw_run_streaming = _RemoteFunction(partial(self._run, "tw_run_streaming"))
        self.tw_decode = _RemoteFunction(partial(self._decode, "tw_decode", lambda rows, columns: 4 * rows * columns))
        self.tw_recode = _RemoteFunction(
            partial(self._decode, "tw_recode", lambda rows, columns: rows * columns * 17 // 16)
        )
        self.tw_sha256_pair = _RemoteFunction(self._sha256_pair)
        self.tw_pair_sums = _RemoteFunction(self._pair_sums)
        self.tw_cpu_features = _RemoteFunction(self._cpu_features)

    def _ask(self, name, *parts):
        data = b"".join([struct.pack("<q", len(name)), name.encode(), *parts])
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _read(self, count):
        data = self._process.stdout.read(count)
        if len(data) != count:
            raise RuntimeError(f"the remote library ended with status {self._process.wait()}")
        return data

    def _number(self):
        return struct.unpack("<q", self._read(8))[0]

    def _run(self, name, nests, count, src, dst, threads):
        nests = (_NativeNest * count).from_address(nests)
        if not all(_is_valid(nest) for nest in nests):
            return -1  # without a size, there is no telling what they reach
        tables = b"".join(
            ctypes.string_at(table, 8 * nest.table_count)
            for nest in nests
            for table in (nest.src_table, nest.dst_table, nest.aux_table)
            if table
        )
        (src_low, src_high), (dst_low, dst_high) = _reach(nests)
        head = struct.pack("<qq", threads, count) + bytes(nests) + tables
        spans = struct.pack("<qqq", (src + src_low) % 4096, src_low, src_high - src_low)
        spans += struct.pack("<qqq", (dst + dst_low) % 4096, dst_low, dst_high - dst_low)
        read = ctypes.string_at(src + src_low, src_high - src_low)
        before = ctypes.string_at(dst + dst_low, dst_high - dst_low)
        with self._lock:
            self._ask(name, head, spans, read, before)
            status = self._number()
            after = self._read(len(before))
        assert status != -1000, "written outside of the target"
        ctypes.memmove(dst + dst_low, after, len(after))
        return status

    def _decode(self, name, made, coding, codes, scales, rows, columns, out):
        own = NativeCoding.from_address(coding)
        down, across = (
            (own.first_row + rows - 1) // own.group_rows,
            (own.first_column + columns - 1) // own.group_columns,
        )
        read = [
            ctypes.string_at(codes, rows * own.row_bytes),
            ctypes.string_at(scales, 4 * (down * own.scale_row + across + 1)) if own.element < 4 else b"",
        ]
        sizes = struct.pack("<qqqqq", rows, columns, *map(len, read), made(rows, columns))
        with self._lock:
            self._ask(name, bytes(own), sizes, *read)
            status = self._number()
            after = self._read(made(rows, columns))
        assert status != -1000, "written outside of the target"
        ctypes.memmove(out, after, len(after))
        return status

    def _sha256_pair(self, state_a, a, blocks_a, state_b, b, blocks_b):
        parts = [ctypes.string_at(state, 32) for state in (state_a, state_b)]
        parts += [struct.pack("<q", n) + ctypes.string_at(data, 64 * n) for data, n in ((a, blocks_a), (b, blocks_b))]
        with self._lock:
            self._ask("tw_sha256_pair", *parts)
            status, after = self._number(), self._read(64)
        ctypes.memmove(state_a, after[:32], 32)
        ctypes.memmove(state_b, after[32:], 32)
        return status

    def _pair_sums(self, a, b, count, sums, span):
        with self._lock:
            numbers = [ctypes.string_at(each, 8 * count) for each in (a, b)]
            self._ask("tw_pair_sums", struct.pack("<q", count), *numbers)
            ends, made = self._read(16), self._read(8 * 7 * 2100)
        ctypes.memmove(span, ends, 16)
        first, last = struct.unpack("<qq", ends)
        for row in range(7):
            start = 8 * (row * 2100 + first)
            ctypes.memmove(sums + start, made[start : start + 8 * (last - first)], max(0, 8 * (last - first)))

    def _cpu_features(self):
        with self._lock:
            self._ask("tw_cpu_features")
            return self._read(self._number())


class _RemoteFunction:
    """A function that takes pointers as ctypes does."""

    def __init__(self, call) -> None:
        self._call = call

    def __call__(self, *arguments):
        return self._call(*map(_plain, arguments))


def _plain(argument):
    if argument is None:
        return 0
    if isinstance(argument, int):
        return argument
    if hasattr(argument, "_obj"):  # what byref makes
        return ctypes.addressof(argument._obj)
    return argument.value if hasattr(argument, "value") else ctypes.addressof(argument)


def _is_valid(nest):
    scalar, block = (nest.dst_type, nest.src_type) if nest.op == UNPACK else (nest.src_type, nest.dst_type)
    if nest.op not in (COPY, FILL, PACK, UNPACK) or not 0 <= nest.rank <= 24 or nest.table_count < 0:
        return False
    if nest.op in (PACK, UNPACK):
        size = 16 if block in range(100, 106) or block == 112 else 32
        return 0 <= scalar < 15 and block in _CODE_BITS and nest.block == size
    return 0 <= nest.dst_type < 15 and (nest.op == FILL or 0 <= nest.src_type < 15)


def _reach(nests):
    """Return the first byte and one past the last that nests read and write, as offsets."""
    reads, writes = [], []
    for nest in nests:
        extents = list(nest.extent[: nest.rank])
        if 0 in extents:
            continue

        def span(side, table, size, offset, nest=nest, extents=extents):
            ends = [(n - 1) * s for n, s in zip(extents, side[: nest.rank], strict=True)]
            places = [0]
            if nest.table_count and table:
                places = (ctypes.c_int64 * nest.table_count).from_address(table)
            low = offset + min(places) + sum(min(e, 0) for e in ends)
            return low, offset + max(places) + sum(max(e, 0) for e in ends) + size

        def elements(side, table, kind, offset, nest=nest, span=span):
            if nest.op in (COPY, FILL):
                return [span(side, table, _SIZES.get(kind, 1), offset)]
            chosen = [nest.element_offset[i] for i in range(nest.block) if nest.element_mask >> i & 1]
            return [span(side, table, _SIZES.get(kind, 1), offset + at) for at in chosen]

        def codes(side, table, kind, offset, nest=nest, span=span):
            return [span(side, table, nest.block * _CODE_BITS[kind] // 8, offset)]

        source = (nest.src_stride, nest.src_table, nest.src_type, nest.src_offset)
        target = (nest.dst_stride, nest.dst_table, nest.dst_type, nest.dst_offset)
        scales = span(nest.aux_stride, nest.aux_table, 1, nest.aux_offset)
        if nest.op == UNPACK:
            reads += [*codes(*source), scales]
            writes += elements(*target)
        else:
            reads += elements(*source) if nest.op != FILL else []
            writes += [*codes(*target), scales] if nest.op == PACK else elements(*target)
    return [(min(s[0] for s in spans), max(s[1] for s in spans)) if spans else (0, 0) for spans in (reads, writes)]


def install():
    """Have the package use the remote library."""
    library = RemoteLibrary(COMMAND)
    native._load = lambda: SimpleNamespace(library=library, problem=None)

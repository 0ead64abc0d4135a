# SPDX-License-Identifier: Apache-2.0
"""`KernelJob`, a loop nest to be run by a kernel, and `Kernel`, its statements and launch size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any

import numpy as np

from tilewright.copying import WIDEST, LoopNest, Placement
from tilewright.formats import BlockFormat, block_format_of

from .c_code import INT_MAX, CDialect, LoopAxis, raw_type

MAX_SHIFTS = 8  # of an index, to compute the entries of a table
MAX_STATIC_SHARED = 48 << 10  # bytes of shared memory that a CUDA kernel can declare; more is dynamic
EDGE_THREADS = 1 << 16  # kernels with fewer threads are merged into one launch
WARP = 32  # threads that access memory together
BANKS, BANK_BYTES = 32, 4  # of shared memory
Table = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Tuning:
    """How the work of a kernel is divided on a device.

    `threads` per work-group; bytes that each thread has `in_flight`; `shared` bytes of memory per work-group, to within
    a factor of two; the number of work-groups (`groups`) to fill before a thread gets more work; neighbouring
    work-groups that should access neighbouring memory (`cluster`); the preferred ratio (`lean`) of run lengths in
    target and source.

    >>> smaller = Tuning(threads=128)
    >>> smaller.shared
    24576
    """

    threads: int = 256
    in_flight: int = 64
    shared: int = 24576
    groups: int = 1024
    cluster: int = 16
    lean: int = 1
    unroll: bool = True


# The best tunings for a large GPU, by family of kernels, measured by bench/gpu.py --sweep. A transpose of elements of
# four bytes or more is "wide", blocks of elements of less are "narrow".
DEFAULTS = {
    "copy": Tuning(in_flight=16, lean=2, cluster=1),
    "transpose": Tuning(threads=512),
    "wide": Tuning(threads=512, in_flight=128, shared=49152, lean=4),
    "staged": Tuning(threads=512),
    "pack": Tuning(threads=64, in_flight=128, lean=4),
    "unpack": Tuning(threads=512, in_flight=32, lean=16, cluster=1),
    "pack narrow": Tuning(threads=64, in_flight=128, lean=1),
    "unpack narrow": Tuning(threads=256, in_flight=32, lean=1, cluster=1),
}
Tunings = Tuning | Mapping[str, Tuning] | None


def tuning_by_kernel(tuning: Tunings) -> Mapping[str, Tuning]:
    """Return the tuning of each family of kernels, from one for all, one per family, or the defaults.

    >>> tuning_by_kernel(Tuning(threads=128))["pack"].threads, tuning_by_kernel(None)["pack"].threads
    (128, 64)
    """
    if tuning is None:
        return DEFAULTS
    return dict.fromkeys(DEFAULTS, tuning) if isinstance(tuning, Tuning) else tuning


@dataclass(frozen=True, slots=True)
class Kernel:
    """The statements of a kernel, and its launch size: `groups` work-groups of `threads` threads.

    `shared` has names and bytes of the arrays in shared memory; a kernel with any also has a barrier. `stage` is the
    stage of the plan that the kernel belongs to.

    >>> Kernel("tw_copy_0", "copy", (), groups=4, threads=256).groups
    4
    """

    name: str
    note: str
    body: tuple[str, ...]
    groups: int
    threads: int
    tables: tuple[Table, ...] = ()
    shared: tuple[tuple[str, int], ...] = ()
    stage: int = 0

    @property
    def large_shared(self) -> int:
        """The bytes of dynamic shared memory: 0 if a CUDA kernel can declare them.

        >>> Kernel("tw_copy_0", "copy", (), 1, 256, shared=(("tile", 1000),)).large_shared
        0
        """
        total = sum(-(-nbytes // WIDEST) * WIDEST for _, nbytes in self.shared)
        return total if total > MAX_STATIC_SHARED else 0


@dataclass(frozen=True, slots=True)
class KernelJob:
    """A loop nest between two placements that becomes a kernel, and the alignment in bytes of the memory on both sides.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(8), "int16"), Placement(Layout(8, 2), "int16"))
    >>> from .c_code import c_dialect
    >>> job = KernelJob("tw_copy_0", plan.source, plan.target, plan.nests[0], c_dialect("opencl"), (16, 16))
    >>> job.sizes, job.axes
    ((2, 2), [LoopAxis(extent=8, strides=(2, 4))])
    """

    name: str
    source: Placement
    target: Placement
    nest: LoopNest
    dialect: CDialect
    aligned: tuple[int, int]
    tuning: Tuning = field(default_factory=Tuning)

    @property
    def sizes(self) -> tuple[int, int]:
        """The size of an element in bytes on each side; 1 for a block format."""
        source, target = (
            placement.format.itemsize if not placement.format.has_blocks else 1
            for placement in (self.source, self.target)
        )
        return source, target

    @property
    def axes(self) -> list[LoopAxis]:
        """The loops of the nest, with strides in source, target and, for a block format, scales."""
        nest = self.nest
        strides = (nest.source, nest.target, nest.scale) if nest.scale else (nest.source, nest.target)
        return [LoopAxis(n, tuple([column[k] for column in strides])) for k, n in enumerate(nest.extents)]

    def tables(self) -> tuple[Table, Table] | None:
        """Return the offsets in bytes of the tabulated modes on both sides, or None if the nest has none."""
        if self.nest.tabulated is None:
            return None
        tables = []
        for placement, size, is_used in zip(
            (self.source, self.target), self.sizes, (self.nest.operation != "fill", True), strict=True
        ):
            count = self.nest.tabulated.count
            offsets = (
                placement.table_offsets(self.nest.tabulated) * size if is_used else np.zeros(count, dtype=np.int64)
            )
            fits = offsets.size == 0 or int(offsets.max()) <= INT_MAX
            tables.append(np.ascontiguousarray(offsets, dtype=np.int32 if fits else np.int64))
        return tables[0], tables[1]

    @property
    def block_format(self) -> BlockFormat:
        """The block format of a job that packs or unpacks."""
        return block_format_of(self.target.format if self.nest.operation == "pack" else self.source.format)


def common_alignment(base: int, *strides: int) -> int:
    """Return the largest power of two, up to 16, that divides the alignment `base` of the memory and all `strides`.

    >>> common_alignment(16, 64, 8, 0), common_alignment(16, 100)
    (8, 4)
    """
    return gcd(WIDEST, base, *strides)


def bank_passes(offsets: Iterable[int], width: int) -> int:
    """Return the passes over the banks of shared memory that accesses to `width` bytes at several `offsets` take.

    >>> bank_passes([0, 4, 8], 4), bank_passes([0, 128, 256], 4)
    (1, 3)
    """
    words: dict[int, set[int]] = {}
    for offset in offsets:
        for word in range(offset // BANK_BYTES, (offset + width - 1) // BANK_BYTES + 1):
            words.setdefault(word % BANKS, set()).add(word)
    return max(map(len, words.values()), default=1)


def least_conflicts(options: Iterable[tuple[int, int, list[int]]]) -> tuple[int, list[int]]:
    """Return bytes and strides of the first of `options` without bank conflicts, or of the one with the fewest.

    Args:
        options: the conflicts, the bytes in shared memory and the strides of each.

    >>> least_conflicts(iter([(4, 64, [1]), (2, 80, [2]), (2, 72, [3])]))
    (72, [3])
    """
    best: tuple[int, int, list[int]] | None = None
    for option in options:
        if best is None or option[:2] < best[:2]:
            best = option
        if not option[0]:
            break
    assert best is not None
    return best[1:]


def xor_expression(table: Table, index: str = "entry") -> str | None:
    """Return a table as an expression of its `index` where every bit of it sets bits of its own: swizzles are so.

    None if the table is not of this kind, or takes more than a few operations.

    >>> xor_expression(np.array([0, 5, 8, 13], dtype=np.int32) + 16)
    '16 + (((entry & 3u) << 2) ^ (entry & 1u))'
    """
    count = table.size
    if count < 2 or count & (count - 1):
        return None
    offsets = table.astype(np.int64) - int(table[0])
    bits = count.bit_length() - 1
    images = [int(offsets[1 << bit]) for bit in range(bits)]
    expected = np.zeros(1, dtype=np.int64)
    for image in images:
        expected = np.concatenate([expected, expected ^ image])
    if min(images) < 0 or not np.array_equal(expected, offsets):
        return None
    masks: dict[int, int] = {}  # by how far bits are shifted to the left: which bits
    for bit, image in enumerate(images):
        for target in range(image.bit_length()):
            if image >> target & 1:
                masks[target - bit] = masks.get(target - bit, 0) | 1 << bit
    if len(masks) > MAX_SHIFTS:
        return None
    wide = "(u64)" if table.dtype == np.int64 else ""
    terms = []
    for shift, mask in sorted(masks.items(), reverse=True):
        part = f"{wide}({index} & {mask}u)" if wide else f"({index} & {mask}u)"
        terms.append(part if shift == 0 else f"({part} {'<<' if shift > 0 else '>>'} {abs(shift)})")
    total = " ^ ".join(terms)
    return f"{int(table[0])} + ({total})" if table[0] else f"({total})"


def table_alignment(tables: Sequence[Table]) -> list[int]:
    """Return the largest number that divides all entries of each table.

    >>> table_alignment([np.array([0, 8, 12])])
    [4]
    """
    return [int(np.gcd.reduce(table)) if table.size else 0 for table in tables]


def vector_type(width: int) -> str:
    """Return the C type of `width` bytes: v16, v8, or an unsigned integer.

    >>> vector_type(16), vector_type(2)
    ('v16', 'u16')
    """
    return f"v{width}" if width > 4 else raw_type(width)


def elements_type(count: int, size: int) -> tuple[str, str]:
    """Return name and definition of a union of a vector and its elements.

    >>> elements_type(4, 4)[0]
    'x4_u32'
    """
    name = f"x{count}_{raw_type(size)}"
    return name, f"typedef union {{ {vector_type(count * size)} all; {raw_type(size)} each[{count}]; }} {name};\n"


def vector_constant(width: int, element: bytes) -> str:
    """Return a vector that repeats the bytes of one element.

    >>> vector_constant(8, bytes([1, 0, 2, 0])), vector_constant(1, bytes([7]))
    ('v8_of(0x20001u, 0x20001u)', '0x7u')
    """
    data = element * (-(-width // len(element)))
    words = [f"{int.from_bytes(data[k : k + 4], 'little'):#x}u" for k in range(0, width, 4)]
    return words[0] if width <= 4 else f"v{width}_of({', '.join(words)})"

# SPDX-License-Identifier: Apache-2.0
"""What every kernel is made of: the job it does, its text, and how it is launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formats import BlockFormat, ScalarFormat
from ..reference import table
from .axes import Axis
from .dialect import Dialect
from .numbers import raw_type
from .text import INT_MAX

if TYPE_CHECKING:
    from ..loop_nest import LoopNest
    from ..plan import Plan

MOST_DECLARED = 48 << 10  # bytes of shared memory; beyond, a launch has to ask for it
EDGE_THREADS = 1 << 16  # a nest of fewer threads is an edge, which does not get a launch of its own
WIDEST = 16  # bytes that one thread can load or store at once
Table = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Tuning:
    """How kernels are cut for a device.

    `threads` of a work-group, bytes each thread has `in_flight`, about so many `shared` bytes of a work-group (never
    twice as many), work-groups that must remain busy before a thread is given more to do (`groups`), neighbouring
    work-groups that should touch neighbouring memory (`cluster`), and how many times as long runs of the target
    should be as those of the source (`lean`). `as_arguments` gives a large packing kernel its extents as arguments:
    it takes the longest to compile, and so a new shape need not compile it again.

    >>> Tuning(threads=128).shared
    24576
    """

    threads: int = 256
    in_flight: int = 64
    shared: int = 24576
    groups: int = 1024
    cluster: int = 16
    lean: int = 1
    large_first: bool = False
    load: str = "cached"
    store: str = "plain"
    unroll: bool = True
    as_arguments: bool = False


# What suits a large GPU best, by the kind of kernel, as measured by bench/gpu.py --sweep. A staged kernel whose
# elements have four bytes or more is "wide": it needs twice the bytes for runs of as many elements.
DEFAULTS = {
    "direct": Tuning(in_flight=16, lean=2, cluster=1),
    "staged": Tuning(threads=512),
    "wide": Tuning(threads=512, in_flight=128, shared=49152, lean=4),
    "pack": Tuning(threads=64, lean=8, as_arguments=True),
    "unpack": Tuning(threads=512, in_flight=32, lean=16, cluster=1),
}
Tunings = Tuning | Mapping[str, Tuning] | None


def by_kind(tuning: Tunings) -> Mapping[str, Tuning]:
    """Return the tuning of each kind of kernel: one for all, one for each, or the defaults.

    >>> by_kind(Tuning(threads=128))["pack"].threads, by_kind(None)["pack"].threads
    (128, 64)
    """
    if tuning is None:
        return DEFAULTS
    return dict.fromkeys(DEFAULTS, tuning) if isinstance(tuning, Tuning) else tuning


@dataclass(frozen=True, slots=True)
class Kernel:
    """The statements of a kernel, how many work-groups of how many threads run it, and what memory it has beside.

    `shared` names arrays of the work-group and their bytes; a kernel that has any also has a barrier. `arguments` are
    numbers that the kernel is given at its launch, with their types; `step` is the step of the plan it belongs to.

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
    arguments: tuple[tuple[str, int], ...] = ()
    step: int = 0

    @property
    def scalars(self) -> list[Any]:
        """Return the arguments as NumPy scalars of their types.

        >>> kernel = Kernel("tw_pack_0", "pack", (), 1, 64, arguments=(("i32", -4),))
        >>> [(int(each), each.dtype.name) for each in kernel.scalars]
        [(-4, 'int32')]
        """
        kinds = {"u32": np.uint32, "i32": np.int32, "i64": np.int64}
        return [kinds[kind](value) for kind, value in self.arguments]

    @property
    def large_shared(self) -> int:
        """Return the bytes of shared memory if they are more than a kernel can declare in CUDA, otherwise 0.

        >>> Kernel("tw_copy_0", "copy", (), 1, 256, shared=(("tile", 1000),)).large_shared
        0
        """
        total = sum(-(-nbytes // WIDEST) * WIDEST for _, nbytes in self.shared)
        return total if total > MOST_DECLARED else 0


@dataclass(frozen=True, slots=True)
class Job:
    """A nest of a plan that is to become a kernel, and the alignment of the memory on both sides.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(8), "int16"), Placement(Layout(8, 2), "int16"))
    >>> from .dialect import dialect_of
    >>> job = Job("tw_copy_0", plan, plan.nests[0], dialect_of("opencl"), (16, 16))
    >>> job.sizes, job.axes
    ((2, 2), [Axis(extent=8, steps=(2, 4))])
    """

    name: str
    plan: Plan
    nest: LoopNest
    dialect: Dialect
    aligned: tuple[int, int]
    tuning: Tuning = field(default_factory=Tuning)

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the bytes of an element on each side; 1 where elements are in blocks."""
        source, target = (
            place.format.itemsize if not place.format.has_blocks else 1
            for place in (self.plan.source, self.plan.target)
        )
        return source, target

    @property
    def axes(self) -> list[Axis]:
        """Return the loops of the nest, with steps in source, target and, for blocks, scales."""
        nest = self.nest
        steps = (nest.source, nest.target, nest.scale) if nest.scale else (nest.source, nest.target)
        return [Axis(n, tuple([each[k] for each in steps])) for k, n in enumerate(nest.extents)]

    def tables(self) -> tuple[Table, Table] | None:
        """Return the bytes that each entry of the tabulated modes adds on both sides, if the nest has any."""
        if self.nest.tabulated is None:
            return None
        found = []
        for place, size, given in zip(
            (self.plan.source, self.plan.target), self.sizes, (self.nest.operation != "fill", True), strict=True
        ):
            places = table(place, self.nest.tabulated) * size if given else np.zeros(self.nest.tabulated.count, dtype=np.int64)
            fits = places.size == 0 or int(places.max()) <= INT_MAX
            found.append(np.ascontiguousarray(places, dtype=np.int32 if fits else np.int64))
        return found[0], found[1]


def alignment(base: int, *steps: int) -> int:
    """Return the largest power of two, up to 16, that divides the alignment of memory and all steps in it.

    >>> alignment(16, 64, 8, 0), alignment(16, 100)
    (8, 4)
    """
    return gcd(WIDEST, base, *steps)


def table_alignment(tables: Sequence[Table]) -> list[int]:
    """Return the largest number that divides all entries of each table.

    >>> table_alignment([np.array([0, 8, 12])])
    [4]
    """
    return [int(np.gcd.reduce(each)) if each.size else 0 for each in tables]


def vector(width: int) -> str:
    """Return the type that is loaded or stored at once: v16, v8, or an unsigned integer.

    >>> vector(16), vector(2)
    ('v16', 'u16')
    """
    return f"v{width}" if width > 4 else raw_type(width)


def elements_type(count: int, size: int) -> tuple[str, str]:
    """Return the name and the definition of a type that is one vector and also its elements.

    >>> elements_type(4, 4)[0]
    'x4_u32'
    """
    name = f"x{count}_{raw_type(size)}"
    return name, f"typedef union {{ {vector(count * size)} all; {raw_type(size)} each[{count}]; }} {name};\n"


def constant(width: int, element: bytes) -> str:
    """Return a vector that repeats the bytes of one element.

    >>> constant(8, bytes([1, 0, 2, 0])), constant(1, bytes([7]))
    ('v8_of(0x20001u, 0x20001u)', '0x7u')
    """
    data = element * (-(-width // len(element)))
    words = [f"{int.from_bytes(data[k : k + 4], 'little'):#x}u" for k in range(0, width, 4)]
    return words[0] if width <= 4 else f"v{width}_of({', '.join(words)})"


def block_format(job: Job) -> BlockFormat:
    """Return the block format of a job that packs or unpacks."""
    place = job.plan.target if job.nest.operation == "pack" else job.plan.source
    assert place.format.has_blocks
    return place.format

# SPDX-License-Identifier: Apache-2.0
"""Conversion between two distributions of a tensor over registers: the moves, and through which memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from typing import Literal

from .._integers import ceil_div
from ..errors import LayoutError
from ..layout import ColumnSpace, Linear

_AXIS_BITS = 32
Means = Literal["nothing", "registers", "shuffles", "shared memory", "cluster"]
_LEVELS: tuple[tuple[Means, tuple[str, ...]], ...] = (
    ("registers", ("lane", "warp", "block")),  # within a thread: lane, warp and block stay
    ("shuffles", ("warp", "block")),
    ("shared memory", ("block",)),
    ("cluster", ()),
)


@dataclass(frozen=True)
class Conversion:
    """The moves from one distribution to another.

    `means` is the nearest exchange that is enough: nothing, registers of a thread, shuffles between the lanes of a
    warp, shared memory of a block, or memory of a cluster. Registers are enough if every thread holds all that it will
    need, even where lanes or warps have to select different ones. `registers` is how many a thread holds afterwards,
    `shuffles` how many of 32 bits are needed at least to bring what some thread does not hold yet, and `shared_bytes`
    what goes through shared memory, each element once.

    >>> rows = Linear({"register": [(1,)], "lane": [(2,), (4,)]}, {"dim0": 8})
    >>> columns = Linear({"register": [(4,)], "lane": [(1,), (2,)]}, {"dim0": 8})
    >>> convert = conversion(rows, columns, itemsize=4)
    >>> convert.means, convert.registers, convert.shuffles
    ('shuffles', 2, 2)
    """

    means: Means
    registers: int
    shuffles: int = 0
    shared_bytes: int = 0

    def __str__(self) -> str:
        amount = {
            "shuffles": f", at least {self.shuffles} of 32 bits per thread",
            "shared memory": f", {self.shared_bytes} bytes",
            "cluster": f", {self.shared_bytes} bytes",
        }.get(self.means, "")
        return f"{self.means}{amount}"


def conversion(source: Linear, target: Linear, itemsize: int = 4) -> Conversion:
    """Return the moves from a `source` to a `target` distribution of the same tensor.

    Both map `register`, `lane`, `warp` and `block`, as far as they have them, to the dimensions of the tensor; `source`
    must hold every element that `target` needs. `itemsize` is the bytes of an element.

    >>> one = Linear({"register": [(1,), (2,)], "lane": [(4,)]}, {"dim0": 8})
    >>> other = Linear({"register": [(2,), (1,)], "lane": [(4,)]}, {"dim0": 8})
    >>> conversion(one, other).means, conversion(one, one).means
    ('registers', 'nothing')
    """
    for linear in (source, target):
        if not isinstance(linear, Linear):
            raise LayoutError(f"a distribution is a Linear map of registers and lanes, got {type(linear).__name__}")
        unknown = set(linear.inputs) - {"register", "lane", "warp", "block"}
        if unknown:
            raise LayoutError(
                f"a distribution is over register, lane, warp and block, got {', '.join(sorted(unknown))}"
            )
    if source.outputs != target.outputs:
        raise LayoutError(f"the distributions are of different tensors: {source.outputs} and {target.outputs}")
    registers = target.inputs.get("register", 1)
    moved = target.divide(source)  # for each point of the target, a point of the source that holds its element
    if _stays(moved, source, ("register", "lane", "warp", "block")):
        return Conversion("nothing", registers)
    size = itemsize * prod(source.outputs.values()) // source.inputs.get("block", 1)
    for means, axes in _LEVELS:
        if _stays(moved, source, axes):
            shuffles = ceil_div(_most_missing(source, target) * itemsize, 4) if means == "shuffles" else 0
            shared = size if means in ("shared memory", "cluster") else 0
            return Conversion(means, registers, shuffles, shared)
    raise AssertionError("a cluster reaches everything")


def _most_missing(source: Linear, target: Linear) -> int:
    """Return how many elements of the target a thread does not hold in the source, at most over all threads.

    The elements of a thread are a coset of the first thread's elements. Two cosets share nothing, or as much as the
    spaces do; they share something in every thread if the first elements of both never differ by more than the spaces.
    """
    before, after = _columns(source), _columns(target)
    held, wanted = before.pop("register", []), after.pop("register", [])
    either = ColumnSpace(held + wanted)
    total = ColumnSpace(wanted).rank
    for axis in {*before, *after}:
        for one, other in zip_longest(before.get(axis, []), after.get(axis, []), fillvalue=0):
            if either.solve(one ^ other) is None:
                return 1 << total
    shared = ColumnSpace(held).rank + total - either.rank
    return (1 << total) - (1 << shared)


def _columns(linear: Linear) -> dict[str, list[int]]:
    """Return the images of the bits of each input, as one number each."""
    return {
        name: [_pack(dict(zip(linear.outputs, image, strict=True)), tuple(linear.outputs)) for image in images]
        for name, images in linear.bases.items()
    }


def _stays(moved: Linear, source: Linear, axes: Sequence[str]) -> bool:
    """Return whether each point of the target finds its element at a point of the source with the same `axes`.

    Several points of the source may hold an element: they differ by the kernel of its map.
    """
    free = ColumnSpace([_pack(point, axes) for point in source.kernel()])
    for name, images in moved.bases.items():
        for k, image in enumerate(images):
            point = dict(zip(moved.outputs, image, strict=True))
            point[name] = point.get(name, 0) ^ 1 << k
            if free.solve(_pack(point, axes)) is None:
                return False
    return True


def _pack(point: dict[str, int], axes: Sequence[str]) -> int:
    """Return the coordinates of a point on some axes as one number."""
    return sum(point.get(axis, 0) << _AXIS_BITS * k for k, axis in enumerate(axes))

# SPDX-License-Identifier: Apache-2.0
"""The names that Mojo gives to what layouts have: `Coord`, and methods such as `shape_coord` and `static_product`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import LayoutError
from .integers import DynamicInt, StaticInt, as_integer, is_dynamic
from .tuples import as_tree, leaves, like, product, tree_congruent


class Coord(tuple[Any, ...]):
    """A coordinate or shape of Mojo: nested, with entries that are static (`Idx[4]`) or dynamic (plain integers).

    >>> from tilewright import Idx
    >>> c = Coord(5, (3, Idx[2]()), 7)
    >>> print(c, c.rank, c.flat_rank, c.product(), c.flatten())
    (5, (3, 2), 7) 3 4 210 (5, 3, 2, 7)
    """

    __slots__ = ()

    def __new__(cls, *entries: Any) -> Coord:
        return super().__new__(cls, [_entry(part) for part in entries])

    @property
    def rank(self) -> int:
        """Return the number of entries.

        >>> Coord(1, (2, 3)).rank
        2
        """
        return len(self)

    @property
    def flat_rank(self) -> int:
        """Return the number of integers.

        >>> Coord(1, (2, 3)).flat_rank
        3
        """
        return len(leaves(as_tree(self)))

    def flatten(self) -> Coord:
        """Return all integers without nesting.

        >>> print(Coord(1, (2, 3)).flatten())
        (1, 2, 3)
        """
        return Coord(*leaves(as_tree(self)))

    def reverse(self) -> Coord:
        """Return the entries in reverse, nested ones as they are.

        >>> print(Coord(1, (2, 3)).reverse())
        ((2, 3), 1)
        """
        return Coord(*self[::-1])

    def concat(self, other: Any) -> Coord:
        """Return the entries of both.

        >>> print(Coord(1).concat(Coord(2, 3)))
        (1, 2, 3)
        """
        return Coord(*self, *other)

    def product(self) -> int:
        """Return the product of all integers.

        >>> Coord(2, (3, 4)).product()
        24
        """
        return int(product(as_tree(self)))

    def sum(self) -> int:
        """Return the sum of all integers.

        >>> Coord(2, (3, 4)).sum()
        9
        """
        return int(sum(leaves(as_tree(self))))

    def inner_product(self, other: Any) -> int:
        """Return the sum of products with another coordinate that nests alike.

        >>> Coord(2, (3, 4)).inner_product(Coord(1, (10, 100)))
        432
        """
        ours, theirs = as_tree(self), as_tree(other)
        if not tree_congruent(ours, theirs):
            raise LayoutError(f"inner_product: {self} and {other} nest differently")
        return int(sum(a * b for a, b in zip(leaves(ours), leaves(theirs), strict=True)))

    def make_dynamic(self, _: Any = None) -> Coord:
        """Return the same numbers, all of them dynamic.

        >>> from tilewright import Idx
        >>> Coord(Idx[2]()).make_dynamic()
        Coord(Idx(2))
        """
        return Coord(*_mapped(self, DynamicInt))

    def cast(self, _: Any = None) -> Coord:
        """Return the same coordinate: our integers have no width.

        >>> print(Coord(1, 2).cast())
        (1, 2)
        """
        return self

    def __call__(self) -> Coord:
        return self

    def __str__(self) -> str:
        return f"({', '.join(map(str, self))})"

    def __repr__(self) -> str:
        return f"Coord({', '.join(map(repr, self))})"


class _StaticCoord:
    """`coord[2, 3]` is a coordinate of static integers.

    >>> coord[2, 3]
    Coord(Idx[2](), Idx[3]())
    """

    __slots__ = ()

    def __getitem__(self, entries: Any) -> Coord:
        given = entries if isinstance(entries, tuple) else (entries,)
        return Coord(*_mapped(given, lambda n: n if is_dynamic(n) else StaticInt(n)))


coord = _StaticCoord()


def _entry(part: Any) -> Any:
    if isinstance(part, (tuple, list)):
        return part if isinstance(part, Coord) else Coord(*part)
    if isinstance(part, StaticInt):
        return part
    return DynamicInt(as_integer(part, "an entry of Coord"))


def _mapped(tree: Any, change: Any) -> Iterator[Any]:
    for part in tree:
        yield tuple(_mapped(part, change)) if isinstance(part, (tuple, list)) else change(part)


def as_coord(tree: Any) -> Coord:
    """Return a shape or stride as a `Coord`, plain integers static.

    >>> as_coord((4, (2, 3)))
    Coord(Idx[4](), Coord(Idx[2](), Idx[3]()))
    """
    return coord[tree if isinstance(tree, tuple) else (tree,)]


class MojoNames:
    """Methods of a strided layout in Mojo's spelling.

    >>> from tilewright import row_major
    >>> L = row_major(4, 6)
    >>> print(L.shape_coord(), L.stride_coord(), L.static_product, L.idx2crd(13), format(L, "mojo"))
    (4, 6) (6, 1) 24 (2, 1) ((4, 6):(6, 1))
    """

    __slots__ = ()

    def shape_coord(self: Any) -> Coord:
        """Return the shape.

        >>> from tilewright import row_major
        >>> print(row_major(4, 6).shape_coord())
        (4, 6)
        """
        return as_coord(self.shape)

    def stride_coord(self: Any) -> Coord:
        """Return the strides.

        >>> from tilewright import row_major
        >>> print(row_major(4, 6).stride_coord())
        (6, 1)
        """
        return as_coord(self.stride)

    def product(self: Any) -> int:
        """Return the number of coordinates.

        >>> from tilewright import row_major
        >>> row_major(4, 6).product()
        24
        """
        return int(product(self.shape))

    @property
    def static_product(self: Any) -> int:
        """Return the number of coordinates, -1 if an extent is dynamic.

        >>> from tilewright import Idx, row_major
        >>> row_major(4, 6).static_product, row_major(4, Idx(6)).static_product
        (24, -1)
        """
        return int(product(self.shape)) if self.shape_known else -1

    @property
    def static_cosize(self: Any) -> int:
        """Return the size of the buffer that the layout needs, -1 if an extent or stride is dynamic.

        >>> from tilewright import Layout
        >>> Layout((4, 6), (8, 1)).static_cosize
        30
        """
        return int(self.cosize) if self.all_dims_known else -1

    def idx2crd(self: Any, offset: int) -> Any:
        """Return the coordinate at an offset: the inverse of the layout, leaf by leaf.

        >>> from tilewright import row_major
        >>> row_major(4, 6).idx2crd(13)
        (2, 1)
        """
        found = offset2crd(offset, self.shape, self.stride)
        if self(found) != offset:
            raise LayoutError(f"{self} puts no coordinate at offset {offset}")
        return found

    def reverse(self: Any) -> Any:
        """Return the layout with its modes in reverse, nested modes as they are.

        >>> from tilewright import row_major
        >>> row_major(4, 6).reverse()
        Layout((6, 4), (1, 6))
        """
        from .regrouping import restructure

        return restructure(self, lambda tree, _: tree[::-1] if isinstance(tree, tuple) else tree)

    transpose = reverse

    def to_layout(self) -> Any:
        """Return the layout itself.

        >>> from tilewright import row_major
        >>> row_major(4, 6).to_layout()
        Layout((4, 6), (6, 1))
        """
        return self

    def __format__(self: Any, style: str) -> str:
        if style == "mojo":
            return f"({_mojo_tree(self.shape)}:{_mojo_tree(self.stride)})"
        return format(str(self), style)


def _mojo_tree(tree: Any) -> str:
    parts = tree if isinstance(tree, tuple) else (tree,)
    return f"({', '.join(_mojo_tree(part) if isinstance(part, tuple) else str(part) for part in parts)})"


def offset2crd(offset: int, shape: Any, stride: Any) -> Any:
    """Return `(offset // stride) % shape` for each leaf, 0 where the stride is 0: Mojo's `idx2crd`.

    >>> offset2crd(13, ((2, 2), (2, 3)), ((2, 12), (1, 4)))
    ((0, 1), (1, 0))
    """
    shape, stride = as_tree(shape), as_tree(stride)
    parts = [
        int(offset // step % n) if step and n else 0 for n, step in zip(leaves(shape), leaves(stride), strict=True)
    ]
    return like(shape, iter(parts))

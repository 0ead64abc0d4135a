# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.coord`: coordinates, and integers known at compile time or at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar

from ...errors import CoordinateError, LayoutError
from ...formats import format_of
from ...layout import TaggedInt, as_integer, as_tree, check_congruent, leaves, product
from ..brackets import brackets
from ..builtins import Index, IndexList
from ..simd import DType


class _ComptimeBrackets(type):
    """`ComptimeInt[4]` is the integer."""

    def __getitem__(cls, value: int) -> ComptimeInt:
        return ComptimeInt(as_integer(value, "ComptimeInt[...]"))


class ComptimeInt(int, metaclass=_ComptimeBrackets):
    """An integer known at compile time, made by `ComptimeInt[4]()` or `Idx[4]()`.

    >>> ComptimeInt[4](), Idx[4]() + 1
    (Idx[4](), 5)
    """

    __slots__ = ()

    def __call__(self) -> ComptimeInt:
        return self

    def value(self) -> int:
        """Return the integer.

        >>> Idx[4].value()
        4
        """
        return int(self)

    @property
    def static_value(self) -> int:
        """The integer.

        >>> Idx[4].static_value
        4
        """
        return int(self)

    is_static_value, is_value, is_tuple = True, True, False

    def __repr__(self) -> str:
        return f"Idx[{int(self)}]()"

    __str__ = int.__repr__


class _RuntimeBrackets(type):
    """`RuntimeInt[dtype]` are the integers of a type, which is a label: our integers have no width."""

    def __getitem__(cls, dtype: object) -> type[RuntimeInt]:
        return _runtime_type(integer_type(dtype, "RuntimeInt[...]"))

    def with_parameters(cls, dtype: object = None) -> type[RuntimeInt]:
        """Return the integers of a type, as brackets do; of int64 without one."""
        return RuntimeInt if dtype is None else cls[dtype]

    def __repr__(cls) -> str:
        return f"RuntimeInt[{cls.DTYPE!r}]"  # type: ignore[attr-defined]


class RuntimeInt(TaggedInt, metaclass=_RuntimeBrackets):
    """An integer known only at run time, made by `RuntimeInt(n)` or `Idx(n)`; arithmetic with it stays so.

    >>> RuntimeInt["int32"](4), Idx(6) * 4, 3 + Idx(1), Idx(6) == 6
    (RuntimeInt[DType.int32](4), Idx(24), Idx(4), True)
    """

    __slots__ = ()
    DTYPE: ClassVar[DType] = DType.int64

    def __reduce__(self) -> tuple[Any, ...]:
        return _runtime_int, (self.DTYPE, int(self))

    def __call__(self) -> RuntimeInt:
        return self

    def value(self) -> int:
        """Return the integer.

        >>> Idx(4).value()
        4
        """
        return int(self)

    def __repr__(self) -> str:
        return f"Idx({int(self)})" if type(self) is RuntimeInt else f"{type(self)!r}({int(self)})"

    __str__ = int.__repr__

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)


@cache
def _runtime_type(dtype: DType) -> type[RuntimeInt]:
    if dtype == RuntimeInt.DTYPE:
        return RuntimeInt
    return _RuntimeBrackets("RuntimeInt", (RuntimeInt,), {"__slots__": (), "DTYPE": dtype})  # type: ignore[return-value]


def _runtime_int(dtype: DType, value: int) -> RuntimeInt:
    return RuntimeInt[dtype](value)


def integer_type(dtype: Any, name: str) -> DType:
    """Return the number type of integers; raise an error that calls it `name` if it is of other numbers.

    >>> integer_type("int32", "an index")
    DType.int32
    """
    element = format_of(dtype)
    if element.has_blocks or element.kind not in ("int", "uint"):
        raise LayoutError(f"{name} must be an integer format, got {element.name}")
    return DType.of(element)


def is_dynamic(value: object) -> bool:
    """Return whether `value` is an integer known only at run time.

    >>> is_dynamic(Idx(6)), is_dynamic(Idx[6]()), is_dynamic(6)
    (True, False, False)
    """
    return isinstance(value, RuntimeInt)


class _IdxBrackets:
    """`Idx[4]()` is an integer known at compile time, `Idx(n)` one known at run time.

    >>> Idx[4](), Idx(6)
    (Idx[4](), Idx(6))
    """

    __slots__ = ()

    def __getitem__(self, value: int) -> ComptimeInt:
        return ComptimeInt(as_integer(value, "Idx[...]"))

    def with_parameters(self, value: int) -> ComptimeInt:
        """Return an integer known at compile time, which may have its name: `Idx[value=4]()`."""
        return self[value]

    def __call__(self, value: int) -> RuntimeInt:
        return RuntimeInt(as_integer(value, "Idx(...)"))

    def __repr__(self) -> str:
        return "Idx"


Idx = _IdxBrackets()


All = slice(None)


class _CoordLike(type):
    """An entry of a coordinate: an integer, or a coordinate."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (int, Coord))


class CoordLike(metaclass=_CoordLike):
    """The trait of coordinates and of their entries.

    >>> isinstance(Idx[4], CoordLike), isinstance(Coord(1), CoordLike), isinstance("a", CoordLike)
    (True, True, False)
    """


class _CoordBrackets(type):
    """`Coord[ComptimeInt[2], Int32]` is the type of coordinates, and itself one, with 0 for unknown entries."""

    def __getitem__(cls, entries: object) -> Coord:
        parts = entries if isinstance(entries, tuple) and not isinstance(entries, Coord) else (entries,)
        return Coord(*[part if isinstance(part, (int, tuple)) else RuntimeInt(0) for part in parts])


class Coord(tuple[Any, ...], metaclass=_CoordBrackets):
    """A coordinate or shape: nested, with entries known at compile time (`Idx[4]`) or at run time (plain integers).

    >>> c = Coord(5, (3, Idx[2]()), 7)
    >>> print(c, c.rank, c.flat_rank, c.product(), c.flatten())
    (5, (3, 2), 7) 3 4 210 (5, 3, 2, 7)
    """

    __slots__ = ()

    def __new__(cls, *entries: Any) -> Coord:
        return super().__new__(cls, [_as_entry(part) for part in entries])

    @property
    def rank(self) -> int:
        """The number of entries.

        >>> Coord(1, (2, 3)).rank
        2
        """
        return len(self)

    @property
    def flat_rank(self) -> int:
        """The number of integers.

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
        """Return the entries of this coordinate and of `other`.

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

    def inner_product(self, other: object) -> int:
        """Return the sum of products with `other`, a coordinate of the same nesting.

        >>> Coord(2, (3, 4)).inner_product(Coord(1, (10, 100)))
        432
        """
        ours, theirs = as_tree(self), as_tree(other)
        check_congruent(ours, theirs, "inner_product")
        return int(sum(a * b for a, b in zip(leaves(ours), leaves(theirs), strict=True)))

    @brackets
    def make_dynamic(self, parameters: tuple[Any, ...], dyn_dtype: object = None) -> Coord:
        """Return the same numbers, all of them known only at run time, as integers of a type: `make_dynamic[dtype]()`.

        >>> Coord(Idx[2]()).make_dynamic()
        Coord(Idx(2))
        """
        return Coord(*_map_entries(self, RuntimeInt.with_parameters((*parameters, dyn_dtype)[0])))

    @brackets
    def cast(self, parameters: object, _: object = None) -> Coord:
        """Return the same coordinate: our integers have no width.

        >>> print(Coord(1, 2).cast())
        (1, 2)
        """
        return self

    def __call__(self, *entries: Any) -> Coord:
        return Coord(*entries) if entries else self

    def tuple(self) -> Coord:
        """Return the coordinate itself.

        >>> print(Coord(1, 2).tuple())
        (1, 2)
        """
        return self

    def value(self) -> int:
        """Return the integer of a coordinate with one entry.

        >>> Coord(3).value()
        3
        """
        if self.flat_rank != 1:
            raise CoordinateError(f"{self} is not a single integer")
        return int(leaves(as_tree(self))[0])

    def parametrized_type(self) -> Coord:
        """Return the type of the coordinate, which the coordinate itself stands for.

        >>> Coord(1, 2).parametrized_type().rank
        2
        """
        return self

    @property
    def element_types(self) -> Coord:
        """The types of the entries, which the entries stand for.

        >>> print(Coord(Idx[2], Idx[4]).element_types)
        (2, 4)
        """
        return self

    ParamListType = VariadicType = element_types

    @property
    def all_dims_known(self) -> bool:
        """Whether all entries are known at compile time.

        >>> Coord(Idx[2], 4).all_dims_known
        False
        """
        return not any(map(is_dynamic, leaves(as_tree(self))))

    @property
    def static_product(self) -> int:
        """The product of all integers, -1 if one is known only at run time.

        >>> Coord(Idx[2], Idx[4]).static_product
        8
        """
        return self.product() if self.all_dims_known else -1

    def __str__(self) -> str:
        return f"({', '.join(map(str, self))})"

    def __repr__(self) -> str:
        return f"Coord({', '.join(map(repr, self))})"


class _StaticCoord:
    """`coord[2, 3]` is a coordinate of compile-time integers.

    >>> coord[2, 3]
    Coord(Idx[2](), Idx[3]())
    """

    def __getitem__(self, entries: object) -> Coord:
        values = entries if isinstance(entries, tuple) else (entries,)
        return Coord(*_map_entries(values, lambda n: n if is_dynamic(n) else ComptimeInt(n)))


coord = _StaticCoord()


def _as_entry(part: object) -> Any:
    """Return an entry of a Coord: nested tuples as Coords, plain integers as run-time ones."""
    if isinstance(part, (tuple, list)):
        return part if isinstance(part, Coord) else Coord(*part)
    if isinstance(part, (ComptimeInt, RuntimeInt)):
        return part
    return RuntimeInt(as_integer(part, "an entry of Coord"))


def _map_entries(tree: Any, function: Callable[[Any], Any]) -> Iterator[Any]:
    for part in tree:
        yield tuple(_map_entries(part, function)) if isinstance(part, (tuple, list)) else function(part)


def as_coord(tree: object) -> Coord:
    """Return a shape or stride as a `Coord`; plain integers are known at compile time.

    >>> as_coord((4, (2, 3)))
    Coord(Idx[4](), Coord(Idx[2](), Idx[3]()))
    """
    return coord[tree if isinstance(tree, tuple) else (tree,)]


class StaticExtents:
    """The facts about a layout or a tensor at compile time; a leaf that is known only at run time counts as -1.

    >>> from tilewright.mojo.layout import Layout
    >>> layout = Layout((4, Idx(8)))
    >>> layout.flat_rank, layout.static_shape, layout.static_stride, layout.shape_known, layout.stride_known
    (2, (4, -1), (1, 4), False, True)
    """

    __slots__ = ()

    def _leaf_extents(self) -> list[int]:
        raise NotImplementedError

    def _leaf_strides(self) -> list[Any]:
        raise NotImplementedError

    @property
    def flat_rank(self) -> int:
        """The number of leaves.

        >>> from tilewright.mojo.layout import Layout
        >>> Layout((4, (2, 3))).flat_rank
        3
        """
        return len(self._leaf_extents())

    @property
    def shape_known(self) -> bool:
        """Whether every extent is known at compile time.

        >>> from tilewright.mojo.layout import Layout, row_major
        >>> Layout((4, 8)).shape_known, row_major(4, 8).shape_known
        (True, False)
        """
        return not any(map(is_dynamic, self._leaf_extents()))

    @property
    def stride_known(self) -> bool:
        """Whether every stride is known at compile time.

        >>> from tilewright.mojo.layout import Layout, row_major
        >>> row_major(4, Idx[6]()).stride_known, Layout((Idx(4), 8)).stride_known
        (True, False)
        """
        return not any(map(is_dynamic, self._leaf_strides()))

    @property
    def all_dims_known(self) -> bool:
        """Whether every extent and stride is known at compile time.

        >>> from tilewright.mojo.layout import Layout
        >>> Layout((4, 8)).all_dims_known
        True
        """
        return self.shape_known and self.stride_known

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The extent of each leaf, -1 where it is known only at run time.

        >>> from tilewright.mojo.layout import Layout
        >>> Layout((4, Idx(8))).static_shape
        (4, -1)
        """
        return _Leaves([-1 if is_dynamic(leaf) else leaf for leaf in self._leaf_extents()])

    @property
    def static_stride(self) -> tuple[Any, ...]:
        """The stride of each leaf, -1 where it is known only at run time.

        >>> from tilewright.mojo.layout import Layout
        >>> Layout((4, 8)).static_stride
        (1, 4)
        """
        return _Leaves([-1 if is_dynamic(leaf) else leaf for leaf in self._leaf_strides()])


class _Leaves(tuple[int, ...]):
    """Numbers per leaf; an index out of range is a coordinate error."""

    __slots__ = ()

    def with_parameters(self, *index: Any, i: object = None) -> Any:
        """Return the number of leaf `i`: `static_shape[i=0]`."""
        if len(index) + (i is not None) != 1:
            raise TypeError("static_shape and static_stride take the number of one leaf: t.static_shape[0]")
        return self[(*index, i)[0]]

    def __getitem__(self, k: Any) -> Any:
        if not isinstance(k, slice) and not 0 <= as_integer(k, "a leaf") < len(self):
            raise CoordinateError(f"the layout has leaves 0 to {len(self) - 1}, got {k}")
        return super().__getitem__(k)


def coord_to_index_list(value: object) -> IndexList:
    """Return a flat coordinate as an `IndexList`.

    >>> coord_to_index_list(Coord(2, 3))
    (2, 3)
    """
    return Index(*leaves(as_tree(value)))

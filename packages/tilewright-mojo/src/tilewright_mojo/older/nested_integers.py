# SPDX-License-Identifier: Apache-2.0
"""Mojo's `IntTuple`: nested tuples of integers, known or `UNKNOWN_VALUE`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from tilewright.errors import CoordinateError, LayoutError
from tilewright.layout import as_integer, as_tuple, leaves
from tilewright.mojo import MojoValue, ParametrizedMeta, brackets
from tilewright.mojo.layout import Coord

from ..collections import Optional

UNKNOWN_VALUE = -1


def multiply(a: int, b: int) -> int:
    """Return a product, unknown if a factor is.

    >>> multiply(3, 4), multiply(3, UNKNOWN_VALUE)
    (12, -1)
    """
    return UNKNOWN_VALUE if UNKNOWN_VALUE in (a, b) else a * b


def multiply_leaves(tree: Any) -> int:
    """Return the product of all integers of a tree, unknown if one is.

    >>> multiply_leaves((2, (3, 4)))
    24
    """
    result = 1
    for leaf in leaves(tree):
        result = multiply(result, leaf)
    return result


class IntTuple(metaclass=ParametrizedMeta):
    """A nested tuple of integers; of one integer, that integer.

    >>> t = IntTuple(2, IntTuple(3, 4))
    >>> print(t, t[1], len(t), int(t[0]), IntTuple(5), IntTuple(IntTuple(5)))
    (2, (3, 4)) (3, 4) 2 2 5 (5)
    """

    __slots__ = ("_tree",)
    __bracketed__: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *elements: Any, num_elems: object = None) -> None:
        if len(elements) == 1:
            (value,) = elements
            is_wrapped = isinstance(value, (IntTuple, Coord))
            tree = as_int_tree(value)
            self._tree: Any = (tree,) if is_wrapped else tree
        else:
            self._tree = tuple([as_int_tree(element) for element in elements])

    @staticmethod
    def convert_implicitly(value: object) -> MojoValue:
        """Return an integer, or a list of integers, as a tuple; other values as they are.

        >>> print(IntTuple.convert_implicitly([2, [3, 4]]))
        (2, (3, 4))
        """
        is_list = isinstance(value, (int, list)) or type(value).__name__ == "List"
        return of_tree(as_int_tree(value)) if is_list else value

    @classmethod
    def _with_parameters(cls, *elements: Any) -> Callable[[], IntTuple]:
        """Return the function that makes the tuple: `IntTuple[2, 3]()`.

        >>> print(IntTuple.with_parameters(2, 3)())
        (2, 3)
        """
        return lambda: cls(*elements)

    # Entries.

    def __len__(self) -> int:
        return len(as_tuple(self._tree))

    def __iter__(self) -> IntTupleIterator:
        return IntTupleIterator([of_tree(part) for part in as_tuple(self._tree)])

    def __getitem__(self, k: Any) -> IntTuple:
        parts = as_tuple(self._tree)
        if isinstance(k, slice):
            return of_tree(parts[k])
        index = as_integer(k, "an index")
        if not 0 <= index < len(parts):
            raise CoordinateError(f"entry {index} is outside {self}, which has {len(parts)} entries")
        return of_tree(parts[index])

    def is_value(self, *k: Any) -> bool:
        """Return whether this, or entry `k`, is an integer.

        >>> IntTuple(2, IntTuple(3, 4)).is_value(0), IntTuple(2).is_value()
        (True, True)
        """
        return not self.is_tuple(*k)

    def is_tuple(self, *k: Any) -> bool:
        """Return whether this, or entry `k`, is a tuple.

        >>> IntTuple(2, IntTuple(3, 4)).is_tuple(1)
        True
        """
        return isinstance(self[k[0]]._tree if k else self._tree, tuple)

    def value(self, *k: Any) -> int:
        """Return the integer that this, or entry `k`, is.

        >>> IntTuple(2, 3).value(1)
        3
        """
        tree = self[k[0]]._tree if k else self._tree
        while isinstance(tree, tuple) and len(tree) == 1:
            (tree,) = tree
        if isinstance(tree, tuple):
            raise LayoutError(f"{of_tree(tree)} is a tuple of {len(tree)} entries, not an integer")
        return int(tree)

    __int__ = __index__ = value

    def _itself(self) -> IntTuple:
        return self

    def replace_entry(self, k: object, value: object = None, *, int_value: object = None) -> IntTuple:
        """Return the tuple with another entry `k`; `int_value` also changes this tuple.

        >>> print(IntTuple(2, 3).replace_entry(1, IntTuple(4, 5)))
        (2, (4, 5))
        """
        parts = list(as_tuple(self._tree))
        parts[as_integer(k, "an index")] = as_int_tree(int_value if value is None else value)
        if value is None:
            self._tree = tuple(parts)
        return of_tree(tuple(parts))

    def append(self, *elements: Any) -> None:
        """Add entries at the end.

        >>> t = IntTuple(2, 3)
        >>> t.append(IntTuple(4, 5))
        >>> print(t)
        (2, 3, (4, 5))
        """
        self._tree = (*as_tuple(self._tree), *[as_int_tree(element) for element in elements])

    def extend(self, other: IntTuple) -> None:
        """Add the entries of another tuple at the end.

        >>> t = IntTuple(2, 3)
        >>> t.extend(IntTuple(4, 5))
        >>> print(t)
        (2, 3, 4, 5)
        """
        self.append(*other)

    # As a whole.

    def count_values(self) -> int:
        """Return the number of integers.

        >>> IntTuple(2, IntTuple(3, 4)).count_values()
        3
        """
        return len(leaves(self._tree))

    def size(self) -> int:
        """Return the number of integers that Mojo needs to hold the tuple: one for each, and one for each tuple.

        >>> IntTuple(2, 3).size()
        3
        """
        return 1 if not isinstance(self._tree, tuple) else 1 + sum([part.size() for part in self])

    def flatten(self) -> IntTuple:
        """Return all integers without nesting.

        >>> print(IntTuple(2, IntTuple(3, 4)).flatten())
        (2, 3, 4)
        """
        return of_tree(tuple(leaves(self._tree)))

    def product_flatten(self) -> IntTuple:
        """Return the product of each entry.

        >>> print(IntTuple(2, IntTuple(3, 4)).product_flatten())
        (2, 12)
        """
        return of_tree(tuple([multiply_leaves(part) for part in as_tuple(self._tree)]))

    @brackets
    def all_known(self, parameters: tuple[Any, ...], *, start: int = 0, end: int | None = None) -> bool:
        """Return whether no integer is `UNKNOWN_VALUE`; of entries `start` to `end` in brackets.

        >>> IntTuple(2, UNKNOWN_VALUE).all_known(), IntTuple(2, UNKNOWN_VALUE).all_known[0, 1]()
        (False, True)
        """
        low, high = parameters or (start, end)
        return UNKNOWN_VALUE not in leaves(as_tuple(self._tree)[low:high])

    def owned_copy(self) -> IntTuple:
        """Return an equal tuple.

        >>> IntTuple(2, 3).owned_copy() == IntTuple(2, 3)
        True
        """
        return of_tree(self._tree)

    __copy__ = copy = owned_copy

    def __eq__(self, other: object) -> bool:
        try:
            return bool(self._tree == as_int_tree(other))
        except (TypeError, LayoutError):
            return False

    def __hash__(self) -> int:
        return hash(self._tree)

    def __lt__(self, other: object) -> bool:
        return _is_less(self._tree, as_int_tree(other))

    def __bool__(self) -> bool:
        return bool(self._tree != ())

    def __str__(self) -> str:
        return format_tree(self._tree)

    def __repr__(self) -> str:
        if not isinstance(self._tree, tuple):
            return f"IntTuple({self._tree})"
        return f"IntTuple({', '.join(repr(part) if part.is_tuple() else str(part) for part in self)})"

    def __reduce__(self) -> Any:
        return of_tree, (self._tree,)

    tuple = _itself  # Mojo's name, last since it is also Python's


class IntTupleIterator(Iterator[IntTuple]):
    """The iterator over the entries of a tuple; `bounds()` counts the rest.

    >>> IntTupleIterator([IntTuple(1)]).bounds()[0]
    1
    """

    def __init__(self, parts: list[IntTuple]) -> None:
        self._parts = parts

    def __next__(self) -> IntTuple:
        if not self._parts:
            raise StopIteration
        return self._parts.pop(0)

    def bounds(self) -> tuple[int, Optional]:
        """Return how many entries are left, at least and at most.

        >>> iter(IntTuple(1, 2)).bounds()
        (2, Optional(2))
        """
        return len(self._parts), Optional(len(self._parts))


def of_tree(tree: object) -> IntTuple:
    """Return a tree of integers and tuples as an `IntTuple`.

    >>> of_tree((2, (3, 4)))
    IntTuple(2, IntTuple(3, 4))
    """
    result = object.__new__(IntTuple)
    result._tree = tree
    return result


def as_int_tree(value: object) -> Any:
    """Return a tuple of integers, of any kind, as integers and tuples of Python.

    >>> as_int_tree(IntTuple(2, IntTuple(3, 4))), as_int_tree([1, [2]])
    ((2, (3, 4)), (1, (2,)))
    """
    if isinstance(value, IntTuple):
        return value._tree
    tree = getattr(value, "int_tree", None)  # of a RuntimeTuple
    if tree is not None:
        return tree
    if isinstance(value, (tuple, list)) or (hasattr(value, "__iter__") and not hasattr(value, "__index__")):
        return tuple([as_int_tree(part) for part in value])
    return int(as_integer(value, "an entry of an IntTuple"))


def format_tree(tree: Any) -> str:
    """Return a tree as Mojo prints it: `(2, (3, 4))`, of one entry `(2)`.

    >>> format_tree((2, (3,)))
    '(2, (3))'
    """
    return f"({', '.join(map(format_tree, tree))})" if isinstance(tree, tuple) else str(int(tree))


def _is_less(a: object, b: object) -> bool:
    """Return whether one tree comes before another: entry by entry, integers before the tuples that they start."""
    for left, right in zip(as_tuple(a), as_tuple(b), strict=False):
        if isinstance(left, tuple) or isinstance(right, tuple):
            if _is_less(left, right):
                return True
            if _is_less(right, left):
                return False
        elif left != right:
            return bool(left < right)
    return len(as_tuple(a)) < len(as_tuple(b))

# SPDX-License-Identifier: Apache-2.0
"""Mojo's lists of a fixed length: `IndexList` and `Index` of integers, `StaticTuple` of anything."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, SupportsIndex

from ..errors import CoordinateError
from ..layout import as_integer

__all__ = ["Index", "IndexList", "StaticTuple"]


def _each(function: Callable[[int, int], int]) -> Any:
    """Return the method that combines two lists, or a list and an integer, entry by entry."""

    def method(self: IndexEntries, other: Any) -> IndexEntries:
        others = other if isinstance(other, (tuple, list)) else (other,) * len(self)
        if len(others) != len(self):
            raise CoordinateError(f"lists of {len(self)} and {len(others)} indices do not fit together")
        return IndexEntries([function(a, int(b)) for a, b in zip(self, others, strict=True)])

    return method


class IndexEntries(list[int]):
    """The value of an `IndexList`: a fixed number of integers with arithmetic entry by entry; equal to their tuple.

    >>> Index(1, 2) + Index(10, 20), Index(3, 4) * 2, Index(3, 4).flattened_length()
    ((11, 22), (6, 8), 12)
    """

    __slots__ = ()

    @property
    def size(self) -> int:
        """Return the number of entries.

        >>> Index(1, 2).size
        2
        """
        return len(self)

    def __getitem__(self, k: Any) -> Any:
        return tuple(self)[k] if isinstance(k, slice) else super().__getitem__(self._check_index(k))

    def __setitem__(self, k: Any, value: Any) -> None:
        super().__setitem__(self._check_index(k), int(as_integer(value, "an index")))

    def _check_index(self, k: Any) -> int:
        index = int(as_integer(k, "an index"))
        if not 0 <= index < len(self):
            raise CoordinateError(f"index {index} is outside {len(self)} entries")
        return index

    def parametrized_type(self) -> IndexListType:
        """Return the type of the list.

        >>> Index(3, 4).parametrized_type()
        IndexList[2]
        """
        return IndexListType(len(self))

    def flattened_length(self) -> int:
        """Return the product of the entries.

        >>> Index(3, 4).flattened_length()
        12
        """
        result = 1
        for entry in self:
            result *= entry
        return result

    def canonicalize(self) -> IndexEntries:
        """Return the same list.

        >>> Index(3, 4).canonicalize()
        (3, 4)
        """
        return self

    def cast(self, *_: Any) -> IndexEntries:
        """Return the same list: our integers have no width.

        >>> Index(3, 4).cast()
        (3, 4)
        """
        return self

    __add__, __sub__, __mul__ = _each(operator.add), _each(operator.sub), _each(operator.mul)
    __floordiv__, __mod__ = _each(operator.floordiv), _each(operator.mod)
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (tuple, list)) else NotImplemented

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __copy__(self) -> IndexEntries:
        return IndexEntries(self)

    def __repr__(self) -> str:
        return f"({', '.join(map(str, self))})"

    __str__ = __repr__


@dataclass(frozen=True, slots=True, repr=False)
class IndexListType:
    """The type `IndexList[size]`: called with its `entries`, a tuple of so many integers; `isinstance` checks tuples.

    >>> isinstance((2, 4), IndexList[2]), isinstance((2, 4), IndexList[3])
    (True, False)
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("size",)

    size: int

    def __call__(self, *entries: Any, fill: Any = None) -> IndexEntries:
        if fill is not None:
            entries = (fill,)
        if len(entries) == 1 and isinstance(entries[0], (tuple, list)):
            entries = tuple(entries[0])
        numbers = [int(as_integer(entry, "an entry of an IndexList")) for entry in entries or (0,)]
        if len(numbers) == 1:
            numbers *= self.size
        if len(numbers) != self.size:
            raise CoordinateError(f"{self!r} takes one integer or {self.size}, got {len(numbers)}")
        return IndexEntries(numbers)

    def __instancecheck__(self, value: object) -> bool:
        is_list = isinstance(value, (tuple, IndexEntries)) and len(value) == self.size
        return is_list and all(isinstance(entry, int) for entry in value)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"IndexList[{self.size}]"


class _IndexListBrackets:
    """`IndexList[2](1, 2)` is a tuple of two integers, its `entries`.

    >>> IndexList[2](1, 2), IndexList[3](0)
    ((1, 2), (0, 0, 0))
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("size",)

    def __repr__(self) -> str:
        return "IndexList"

    def __getitem__(self, size: SupportsIndex) -> Any:
        return self.with_parameters(*(size if isinstance(size, tuple) else (size,)))

    def with_parameters(self, size: Any = None, *_: Any, **named: Any) -> Any:
        """Return `IndexList[size, element_type=...]`; the integers have no width here."""
        if size is None or size is ...:
            return self
        return IndexListType(as_integer(size, "the size of an IndexList"))

    def __call__(self, *entries: Any) -> IndexEntries:
        return IndexListType(len(entries))(*entries)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, IndexEntries)


IndexList = _IndexListBrackets()


class _Index:
    """`Index(1, 2)`: an `IndexList` of its arguments.

    >>> Index(1, 2)
    (1, 2)
    """

    def __call__(self, *entries: Any) -> IndexEntries:
        if len(entries) == 1 and isinstance(entries[0], (tuple, list)):
            entries = tuple(entries[0])
        return IndexEntries([int(as_integer(entry, "an index")) for entry in entries])

    def with_parameters(self, *_: Any, **named: Any) -> _Index:
        """Return the same function: the integers have no width here."""
        return self

    def __repr__(self) -> str:
        return "Index"


Index = _Index()


class StaticTuple(list[Any]):
    """`StaticTuple[T, size](...)`: a list of a fixed length; one value fills it.

    >>> entries = StaticTuple[int, 3](7)
    >>> entries[1] = 5
    >>> print(entries)
    (7, 5, 7)
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("element_type", "size")

    def __class_getitem__(cls, parameters: Any) -> Any:
        _, size = parameters
        count = as_integer(size, "the size of a StaticTuple")

        def create(*values: Any, fill: Any = 0) -> StaticTuple:
            if len(values) == 1:
                fill, values = values[0], ()
            if values and len(values) != count:
                raise CoordinateError(f"a StaticTuple of {count} takes one value or {count}, got {len(values)}")
            return cls(values or [fill] * count)

        return create

    def __getitem__(self, k: Any) -> Any:
        return super().__getitem__(self._check_index(k))

    def __setitem__(self, k: Any, value: Any) -> None:
        super().__setitem__(self._check_index(k), value)

    get_subscript = __getitem__

    @property
    def size(self) -> int:
        """Return the number of entries.

        >>> StaticTuple[int, 3](7).size
        3
        """
        return len(self)

    def _check_index(self, k: Any) -> int:
        index = int(as_integer(k, "an index"))
        if not 0 <= index < len(self):
            raise CoordinateError(f"index {index} is outside {len(self)} entries")
        return index

    def __str__(self) -> str:
        return f"({', '.join(map(str, self))})"

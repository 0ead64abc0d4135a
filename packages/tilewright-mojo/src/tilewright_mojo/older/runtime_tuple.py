# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.runtime_tuple`: nested integers whose nesting, and some values, are known at compile time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.errors import LayoutError
from tilewright.layout import as_tuple, leaves, nest_like
from tilewright.mojo import SIMD, Index, IndexList, ParametrizedMeta, brackets

from . import int_tuple
from .int_tuple import IntTuple, to_unknown
from .nested_integers import as_int_tree, format_tree, of_tree

signum = int_tuple.signum


class RuntimeTuple(metaclass=ParametrizedMeta):
    """Nested integers: `S` has the known ones, and `UNKNOWN_VALUE` for those that are given at run time.

    >>> t = RuntimeTuple[IntTuple(-1, IntTuple(2, 4))](8, 2, 4)
    >>> print(t, t.S, t[1], t.flatten())
    (8, (2, 4)) (-1, (2, 4)) (2, 4) (8, 2, 4)
    """

    __slots__ = ("S", "int_tree")
    __bracketed__: ClassVar[tuple[str, ...]] = ("S",)
    S: IntTuple
    int_tree: Any

    def __init__(self, *values: Any) -> None:
        self.int_tree = as_int_tree(values[0] if len(values) == 1 else values)
        self.S = to_unknown(of_tree(self.int_tree))

    @classmethod
    def _with_parameters(cls, S: object = None, **_: Any) -> Any:  # noqa: N803  (Mojo's name)
        """Return the type `RuntimeTuple[S, element_type=...]`; the integers have no width here.

        >>> RuntimeTuple.with_parameters(IntTuple(-1, 4))(3, 4).S
        IntTuple(-1, 4)
        """
        return cls if S is None or S is ... else RuntimeTupleType(of_tree(as_int_tree(S)))

    @classmethod
    def _of(cls, known: object, tree: object) -> RuntimeTuple:
        result = object.__new__(cls)
        result.S, result.int_tree = of_tree(as_int_tree(known)), tree
        return result

    @property
    def scalar_length(self) -> int:
        """The number of integers.

        >>> RuntimeTuple(2, 3).scalar_length
        2
        """
        return len(leaves(self.int_tree))

    @property
    def value(self) -> IndexList:
        """All integers without nesting.

        >>> RuntimeTuple(2, 3).value
        (2, 3)
        """
        return Index(*leaves(self.int_tree))

    def __len__(self) -> int:
        return len(as_tuple(self.int_tree))

    def __getitem__(self, k: Any) -> RuntimeTuple:
        return RuntimeTuple._of(self.S[k], of_tree(self.int_tree)[k]._tree)

    def get_int(self) -> int:
        """Return the integer that the tuple is.

        >>> RuntimeTuple(3).get_int()
        3
        """
        return of_tree(self.int_tree).value()

    __int__ = __index__ = get_int

    def flatten(self) -> RuntimeTuple:
        """Return all integers without nesting.

        >>> print(RuntimeTuple(2, IntTuple(3, 4)).flatten())
        (2, 3, 4)
        """
        return RuntimeTuple._of(self.S.flatten(), tuple(leaves(self.int_tree)))

    def concat(self, rhs: RuntimeTuple) -> RuntimeTuple:
        """Return the entries of this tuple, followed by the entries of another.

        >>> print(RuntimeTuple(2, 3).concat(RuntimeTuple(4, 5)))
        (2, 3, 4, 5)
        """
        tree = (*as_tuple(self.int_tree), *as_tuple(rhs.int_tree))
        return RuntimeTuple._of((*as_tuple(self.S._tree), *as_tuple(rhs.S._tree)), tree)

    @brackets
    def cast(self, parameters: object, **_: Any) -> RuntimeTuple:
        """Return the same tuple: its integers have no width.

        >>> print(RuntimeTuple(2, 3).cast())
        (2, 3)
        """
        return self

    def parametrized_type(self) -> RuntimeTupleType:
        """Return the type of the tuple.

        >>> RuntimeTuple(2, 3).parametrized_type().scalar_length
        2
        """
        return RuntimeTupleType(self.S)

    def __eq__(self, other: object) -> bool:
        try:
            return bool(self.int_tree == as_int_tree(other))
        except (TypeError, LayoutError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.int_tree)

    def __str__(self) -> str:
        return format_tree(self.int_tree)

    def __repr__(self) -> str:
        return f"RuntimeTuple[{self.S!r}]({', '.join(map(str, leaves(self.int_tree)))})"


@dataclass(frozen=True, slots=True, repr=False)
class RuntimeTupleType:
    """The type `RuntimeTuple[S]`: called with the integers, or one list of them; without, the known ones.

    >>> print(RuntimeTuple[IntTuple(3, 4)]())
    (3, 4)
    """

    S: IntTuple

    @property
    def scalar_length(self) -> int:
        """The number of integers.

        >>> RuntimeTuple[IntTuple(3, 4)].scalar_length
        2
        """
        return self.S.count_values()

    def __call__(self, *values: Any) -> RuntimeTuple:
        if len(values) == 1 and not isinstance(values[0], (int, SIMD)) and len(leaves(as_int_tree(values[0]))) != 1:
            values = tuple(leaves(as_int_tree(values[0])))
        numbers = [int(value) for value in values] or leaves(self.S._tree)
        if len(numbers) != self.scalar_length:
            raise LayoutError(f"{self!r} has {self.scalar_length} integers, got {len(numbers)}")
        return RuntimeTuple._of(self.S, nest_like(self.S._tree, iter(numbers)))

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, RuntimeTuple) and value.S == self.S

    def __repr__(self) -> str:
        return f"RuntimeTuple[{self.S!r}]"


def _runtime(value: object) -> RuntimeTuple:
    return value if isinstance(value, RuntimeTuple) else RuntimeTuple._of(value, as_int_tree(value))


def _derive(function: Any, *arguments: RuntimeTuple) -> RuntimeTuple:
    """Apply a function to tuples; results are known where its arguments are known at compile time."""
    tree = as_int_tree(function(*[argument.int_tree for argument in arguments]))
    return RuntimeTuple._of(function(*[argument.S for argument in arguments]), tree)


def is_tuple(t: object) -> bool:
    """Return whether a tuple is more than an integer.

    >>> is_tuple(RuntimeTuple(2, 3))
    True
    """
    return isinstance(_runtime(t).int_tree, tuple)


def is_int(t: object) -> bool:
    """Return whether a tuple is an integer.

    >>> is_int(RuntimeTuple(2))
    True
    """
    return not is_tuple(t)


def product(t: object) -> int:
    """Return the product of all integers.

    >>> product(RuntimeTuple(2, 3))
    6
    """
    return int_tuple.product(_runtime(t).int_tree)


def prefix_product(t: object) -> RuntimeTuple:
    """Return the product of all integers before each.

    >>> t = prefix_product(RuntimeTuple[IntTuple(-1, IntTuple(2, 4))](8, 2, 4))
    >>> print(t, t.S)
    (1, (8, 16)) (1, (-1, -1))
    """
    return _derive(int_tuple.prefix_product, _runtime(t))


def shape_div(a: object, b: object) -> RuntimeTuple:
    """Return a shape divided by another.

    >>> print(shape_div(RuntimeTuple(4, 4), RuntimeTuple(2, 1)))
    (2, 4)
    """
    return _derive(int_tuple.shape_div, _runtime(a), _runtime(b))


def idx2crd(idx: object, shape: object, _stride: object = None) -> RuntimeTuple:
    """Return the coordinate of an index.

    >>> print(idx2crd(RuntimeTuple(7), RuntimeTuple(4, 2)))
    (3, 1)
    """
    stride = None if _stride is None else _runtime(_stride).int_tree
    return RuntimeTuple(int_tuple.idx2crd(_runtime(idx).int_tree, _runtime(shape).int_tree, stride))


def crd2idx(crd: object, shape: object, _stride: object = None) -> int:
    """Return the index of a coordinate.

    >>> crd2idx(RuntimeTuple(3, 1), RuntimeTuple(4, 2))
    7
    """
    stride = None if _stride is None else _runtime(_stride).int_tree
    return int_tuple.crd2idx(_runtime(crd).int_tree, _runtime(shape).int_tree, stride)


def concat(lhs: object, rhs: object) -> IntTuple:
    """Return the entries of two tuples of compile time.

    >>> print(concat(IntTuple(1, 2), IntTuple(3, 4)))
    (1, 2, 3, 4)
    """
    return of_tree((*as_tuple(as_int_tree(lhs)), *as_tuple(as_int_tree(rhs))))


def to_index_list(t: object, *_: Any) -> IndexList:
    """Return all integers as an `IndexList`.

    >>> to_index_list(RuntimeTuple(2, 3))
    (2, 3)
    """
    return _runtime(t).value

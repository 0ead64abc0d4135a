# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.int_tuple`: nested tuples of integers, known or `UNKNOWN_VALUE`, and functions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ...errors import CoordinateError, LayoutError
from ...layout import Layout as CoreLayout
from ...layout.tuples import as_tuple, leaves, map_leaves, nest_like
from ...layout.validation import as_integer
from ..brackets import Bracketed, brackets
from ..containers import Optional
from ..index_list import Index, IndexEntries
from ..parametrized import ParametrizedMeta
from .coord import Coord

__all__ = [
    "UNKNOWN_VALUE",
    "IntTuple",
    "abs",
    "apply",
    "apply_zip",
    "compact_order",
    "compatible",
    "congruent",
    "coord_to_int_tuple",
    "crd2idx",
    "create_unknown_int_tuple",
    "depth",
    "fill_like",
    "flatten",
    "idx2crd",
    "inner_product",
    "is_flat",
    "is_int",
    "is_tuple",
    "mul",
    "prefix_product",
    "product",
    "product_each",
    "propagate_unknown",
    "reduce",
    "reverse",
    "shallow_apply",
    "shape_div",
    "signum",
    "size",
    "sorted",
    "sum",
    "to_index_list",
    "to_nest",
    "to_unknown",
    "tuple_max",
    "tuple_min",
    "weakly_compatible",
    "weakly_congruent",
]

UNKNOWN_VALUE = -1
_sort = sorted  # the functions below have the names of Python's


class IntTuple(metaclass=ParametrizedMeta):
    """A nested tuple of integers; of one integer, that integer.

    >>> t = IntTuple(2, IntTuple(3, 4))
    >>> print(t, t[1], len(t), int(t[0]), IntTuple(5), IntTuple(IntTuple(5)))
    (2, (3, 4)) (3, 4) 2 2 5 (5)
    """

    __slots__ = ("_tree",)
    PARAMETERS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *elements: Any, num_elems: Any = None) -> None:
        if len(elements) == 1:
            (value,) = elements
            is_wrapped = isinstance(value, (IntTuple, Coord))
            tree = as_int_tree(value)
            self._tree: Any = (tree,) if is_wrapped else tree
        else:
            self._tree = tuple([as_int_tree(element) for element in elements])

    @staticmethod
    def convert_implicitly(value: Any) -> Any:
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

    def replace_entry(self, k: Any, value: Any = None, *, int_value: Any = None) -> IntTuple:
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
        return 1 if not isinstance(self._tree, tuple) else 1 + _sum([part.size() for part in self])

    def flatten(self) -> IntTuple:
        """Return all integers without nesting.

        >>> print(IntTuple(2, IntTuple(3, 4)).flatten())
        (2, 3, 4)
        """
        return flatten(self)

    def product_flatten(self) -> IntTuple:
        """Return the product of each entry.

        >>> print(IntTuple(2, IntTuple(3, 4)).product_flatten())
        (2, 12)
        """
        return product_each(self)

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

    def __lt__(self, other: Any) -> bool:
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
    """The iterator over the entries of a tuple; `bounds()` says how many are left.

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


def of_tree(tree: Any) -> IntTuple:
    """Return a tree of integers and tuples as an `IntTuple`.

    >>> of_tree((2, (3, 4)))
    IntTuple(2, IntTuple(3, 4))
    """
    made = object.__new__(IntTuple)
    made._tree = tree
    return made


def as_int_tree(value: Any) -> Any:
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


def _is_less(a: Any, b: Any) -> bool:
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


def _multiply(a: int, b: int) -> int:
    return UNKNOWN_VALUE if UNKNOWN_VALUE in (a, b) else a * b


def _sum(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total += number
    return total


def signum(a: Any) -> int:
    """Return the sign of an integer: -1, 0 or 1.

    >>> signum(-7)
    -1
    """
    return int(a > 0) - int(a < 0)


def is_int(t: Any) -> bool:
    """Return whether a tuple is an integer.

    >>> is_int(IntTuple(2)), is_int(IntTuple(2, 3))
    (True, False)
    """
    return not isinstance(as_int_tree(t), tuple)


def is_tuple(t: Any) -> bool:
    """Return whether a tuple is more than an integer.

    >>> is_tuple(IntTuple(2, 3))
    True
    """
    return not is_int(t)


def is_flat(t: Any) -> bool:
    """Return whether no entry is a tuple.

    >>> is_flat(IntTuple(2, 3)), is_flat(IntTuple(2, IntTuple(3, 4)))
    (True, False)
    """
    return not any(isinstance(part, tuple) for part in as_tuple(as_int_tree(t)))


def flatten(t: Any) -> IntTuple:
    """Return all integers without nesting.

    >>> print(flatten(IntTuple(2, IntTuple(3, 4))))
    (2, 3, 4)
    """
    return of_tree(tuple(leaves(as_int_tree(t))))


def to_nest(nested: Any, flat: Any) -> IntTuple:
    """Return the integers of `flat` in the nesting of `nested`.

    >>> print(to_nest(IntTuple(0, IntTuple(0, 0)), IntTuple(2, 3, 4)))
    (2, (3, 4))
    """
    return of_tree(nest_like(as_int_tree(nested), iter(leaves(as_int_tree(flat)))))


def to_unknown(t: Any) -> IntTuple:
    """Return the nesting with every integer unknown.

    >>> print(to_unknown(IntTuple(2, IntTuple(3, 4))))
    (-1, (-1, -1))
    """
    return fill_like(t, UNKNOWN_VALUE)


def fill_like(src: Any, val: Any) -> IntTuple:
    """Return the nesting with every integer `val`.

    >>> print(fill_like(IntTuple(2, IntTuple(3, 4)), 0))
    (0, (0, 0))
    """
    number = as_int_tree(val)
    return of_tree(map_leaves(lambda _: number, as_int_tree(src)))


def propagate_unknown(src: Any, target: Any) -> IntTuple:
    """Return `target` with every integer unknown that is unknown in `src`, of the same nesting.

    >>> print(propagate_unknown(IntTuple(-1, 2), IntTuple(3, 4)))
    (-1, 4)
    """
    pairs = zip(leaves(as_int_tree(src)), leaves(as_int_tree(target)), strict=True)
    numbers = [UNKNOWN_VALUE if a == UNKNOWN_VALUE else b for a, b in pairs]
    return of_tree(nest_like(as_int_tree(target), iter(numbers)))


def create_unknown_int_tuple(rank: Any) -> IntTuple:
    """Return a tuple of `rank` unknown integers.

    >>> print(create_unknown_int_tuple(2))
    (-1, -1)
    """
    return of_tree((UNKNOWN_VALUE,) * int(rank))


def reverse(src: Any) -> IntTuple:
    """Return the entries in reverse, at every level.

    >>> print(reverse(IntTuple(2, IntTuple(3, 4))))
    ((4, 3), 2)
    """
    tree = as_int_tree(src)
    return of_tree(tuple([reverse(part)._tree for part in tree[::-1]]) if isinstance(tree, tuple) else tree)


def depth(src: Any) -> int:
    """Return how deeply the tuple is nested: 0 for an integer.

    >>> depth(IntTuple(1)), depth(IntTuple(1, IntTuple(2, 3)))
    (0, 2)
    """
    tree = as_int_tree(src)
    level = 0
    while isinstance(tree, tuple):  # level by level
        level += 1
        tree = tuple([leaf for part in tree if isinstance(part, tuple) for leaf in part]) or None
    return level


def abs(t: Any) -> IntTuple:  # noqa: A001  (Mojo's name)
    """Return the absolute value of every integer.

    >>> print(abs(IntTuple(-2, IntTuple(3, -4))))
    (2, (3, 4))
    """
    return of_tree(map_leaves(lambda leaf: leaf if leaf >= 0 else -leaf, as_int_tree(t)))


def mul(lhs: Any, rhs: Any) -> IntTuple:
    """Return every integer times `rhs`.

    >>> print(mul(IntTuple(2, IntTuple(3, 4)), 10))
    (20, (30, 40))
    """
    return of_tree(map_leaves(lambda leaf: _multiply(leaf, int(rhs)), as_int_tree(lhs)))


def sum(t: Any) -> int:  # noqa: A001
    """Return the sum of all integers, unknown if one is.

    >>> sum(IntTuple(2, IntTuple(3, 4)))
    9
    """
    numbers = leaves(as_int_tree(t))
    return UNKNOWN_VALUE if UNKNOWN_VALUE in numbers else _sum(numbers)


def product(t: Any) -> int:
    """Return the product of all integers, unknown if one is.

    >>> product(IntTuple(2, IntTuple(3, 4)))
    24
    """
    result = 1
    for leaf in leaves(as_int_tree(t)):
        result = _multiply(result, leaf)
    return result


size = product


def product_each(t: Any) -> IntTuple:
    """Return the product of each entry.

    >>> print(product_each(IntTuple(2, IntTuple(3, 4))))
    (2, 12)
    """
    tree = as_int_tree(t)
    return of_tree(tuple([product(part) for part in tree]) if isinstance(tree, tuple) else tree)


def inner_product(a: Any, b: Any) -> int:
    """Return the sum of products of integers at the same place.

    >>> inner_product(IntTuple(1, 2), IntTuple(3, 2))
    7
    """
    left, right = leaves(as_int_tree(a)), leaves(as_int_tree(b))
    if len(left) != len(right):
        raise LayoutError(f"inner_product needs tuples of the same nesting, got {a} and {b}")
    return sum([_multiply(x, y) for x, y in zip(left, right, strict=True)])


def tuple_max(t: Any) -> int:
    """Return the largest integer.

    >>> tuple_max(IntTuple(1, IntTuple(7, 3)))
    7
    """
    return int(max(leaves(as_int_tree(t))))


def tuple_min(a: Any, b: Any) -> IntTuple:
    """Return the smaller of two integers, at every place.

    >>> print(tuple_min(IntTuple(1, 5), IntTuple(4, 2)))
    (1, 2)
    """
    _require_congruent(a, b, "tuple_min")
    pairs = zip(leaves(as_int_tree(a)), leaves(as_int_tree(b)), strict=True)
    smaller = [UNKNOWN_VALUE if UNKNOWN_VALUE in (x, y) else min(x, y) for x, y in pairs]
    return of_tree(nest_like(as_int_tree(a), iter(smaller)))


def _require_congruent(a: Any, b: Any, caller: str) -> None:
    if not congruent(a, b):
        raise LayoutError(f"{caller} needs tuples of the same nesting, got {a} and {b}")


def _sorted(_: Any, parameters: tuple[Any, ...], t: Any, cmp: Any = None) -> IntTuple:
    is_before = (*parameters, cmp)[0] or (lambda a, b: a < b)
    parts: list[IntTuple] = []
    for part in of_tree(as_int_tree(t)):  # insertion keeps equal entries in their order
        k = len(parts)
        while k and is_before(part, parts[k - 1]):
            k -= 1
        parts.insert(k, part)
    return of_tree(tuple([part._tree for part in parts]))


class _Sorted(Bracketed[IntTuple]):
    """`sorted(t)`, or `sorted[cmp](t)`: the entries in order.

    >>> print(sorted(IntTuple(7, 3, 1)))
    (1, 3, 7)
    """


sorted = _Sorted(_sorted)  # noqa: A001


def _reduce(_: Any, parameters: tuple[Any, ...], t: Any, initializer: Any) -> Any:
    result = initializer
    for part in of_tree(as_int_tree(t)):
        result = parameters[-1](result, part)
    return result


class _Reduce(Bracketed[Any]):
    """`reduce[reducer](t, initializer)`: the entries combined, one after another.

    >>> reduce[lambda a, b: a + int(b)](IntTuple(1, 2, 3), 10)
    16
    """


reduce = _Reduce(_reduce)


def _apply(_: Any, parameters: tuple[Any, ...], t: Any) -> IntTuple:
    return of_tree(map_leaves(lambda leaf: int(parameters[0](leaf)), as_int_tree(t)))


class _Apply(Bracketed[IntTuple]):
    """`apply[function](t)`: a function of every integer.

    >>> print(apply[lambda n: n * n](IntTuple(2, IntTuple(3, 4))))
    (4, (9, 16))
    """


apply = _Apply(_apply)


def _shallow_apply(_: Any, parameters: tuple[Any, ...], t: Any) -> IntTuple:
    tree = as_int_tree(t)
    if not isinstance(tree, tuple):
        return of_tree(int(parameters[0](of_tree(tree))))
    return of_tree(tuple([int(parameters[0](of_tree(part))) for part in tree]))


class _ShallowApply(Bracketed[IntTuple]):
    """`shallow_apply[function](t)`: a function of every entry.

    >>> print(shallow_apply[product](IntTuple(2, IntTuple(3, 4))))
    (2, 12)
    """


shallow_apply = _ShallowApply(_shallow_apply)


def _apply_zip(_: Any, parameters: tuple[Any, ...], *tuples: Any) -> IntTuple:
    parts = zip(*[of_tree(as_int_tree(t)) for t in tuples], strict=False)
    return of_tree(tuple([as_int_tree(parameters[0](*entries)) for entries in parts]))


class _ApplyZip(Bracketed[IntTuple]):
    """`apply_zip[function](a, b)`: a function of the entries at the same place of two or three tuples.

    >>> print(apply_zip[lambda a, b: int(a) + int(b)](IntTuple(1, 2), IntTuple(10, 20)))
    (11, 22)
    """


apply_zip = _ApplyZip(_apply_zip)


def congruent(a: Any, b: Any) -> bool:
    """Return whether two tuples have the same nesting.

    >>> congruent(IntTuple(1, IntTuple(2, 3)), IntTuple(4, IntTuple(5, 6)))
    True
    """
    return _compare(a, b, lambda x, y: not isinstance(y, tuple))


def weakly_congruent(a: Any, b: Any) -> bool:
    """Return whether `b` has the nesting of `a`, or a deeper one.

    >>> weakly_congruent(IntTuple(1, 2), IntTuple(4, IntTuple(5, 6)))
    True
    """
    return _compare(a, b, lambda x, y: True)


def compatible(a: Any, b: Any) -> bool:
    """Return whether `b` refines `a`: every integer of `a` is the size of the entry at its place.

    >>> compatible(IntTuple(4, 30), IntTuple(4, IntTuple(5, 6)))
    True
    """
    return _compare(a, b, lambda x, y: x == product(y))


def weakly_compatible(a: Any, b: Any) -> bool:
    """Return whether every integer of `a` divides the size of the entry of `b` at its place.

    >>> weakly_compatible(IntTuple(4, 15), IntTuple(4, IntTuple(5, 6)))
    True
    """
    return _compare(a, b, lambda x, y: x != 0 and product(y) % x == 0)


def _compare(a: Any, b: Any, is_fit: Callable[[int, Any], bool]) -> bool:
    """Return whether every integer of one tuple fits the entry of the other at its place."""
    left, right = as_int_tree(a), as_int_tree(b)
    if not isinstance(left, tuple):
        return is_fit(left, right)
    if not isinstance(right, tuple) or len(left) != len(right):
        return False
    return all(_compare(x, y, is_fit) for x, y in zip(left, right, strict=True))


def prefix_product(a: Any, init: Any = 1) -> IntTuple:
    """Return the product of all integers before each, times `init`: the strides of column-major order.

    >>> print(prefix_product(IntTuple(IntTuple(2, 3), 4)))
    ((1, 2), 6)
    """
    tree, running = as_int_tree(a), as_int_tree(init)
    if isinstance(running, tuple):
        pairs = zip(as_tuple(tree), running, strict=True)
        return of_tree(tuple([prefix_product(part, start)._tree for part, start in pairs]))
    strides = []
    for leaf in leaves(tree):
        strides.append(running)
        running = _multiply(running, leaf)
    return of_tree(nest_like(tree, iter(strides)))


def _shape_div(_: Any, parameters: tuple[Any, ...], a: Any, b: Any, check: bool = False) -> IntTuple:
    return of_tree(_divide(as_int_tree(a), as_int_tree(b)))


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) != len(b):
            raise LayoutError(f"shape_div needs tuples of the same length, got {format_tree(a)} and {format_tree(b)}")
        return tuple([_divide(x, y) for x, y in zip(a, b, strict=True)])
    if isinstance(a, tuple):
        parts = []
        for part in a:
            parts.append(_divide(part, b))
            b = _divide(b, product(part))
        return tuple(parts)
    if isinstance(b, tuple):
        return _divide(a, product(b))
    if UNKNOWN_VALUE in (a, b):
        return UNKNOWN_VALUE
    return a // b if b and a % b == 0 else signum(a * b)


class _ShapeDiv(Bracketed[IntTuple]):
    """`shape_div(a, b)`: a shape divided by another one, or by a number that its first modes use up.

    >>> print(shape_div(IntTuple(3, 4), 6))
    (1, 2)
    """


shape_div = _ShapeDiv(_shape_div)


def idx2crd(idx: Any, shape: Any, _stride: Any = None) -> IntTuple:
    """Return the coordinate of an index: `(idx // stride) % shape` for every integer, 0 where the stride is 0.

    >>> print(idx2crd(7, IntTuple(4, 2)))
    (3, 1)
    """
    index, form = as_int_tree(idx), as_int_tree(shape)
    steps = (prefix_product(form) if _stride is None else of_tree(as_int_tree(_stride)))._tree
    if isinstance(index, tuple):
        if len(index) != len(as_tuple(form)):
            raise LayoutError(f"idx2crd needs one index per entry of {format_tree(form)}, got {format_tree(index)}")
        parts = zip(index, as_tuple(form), as_tuple(steps), strict=True)
        return of_tree(tuple([idx2crd(i, n, d)._tree for i, n, d in parts]))
    pairs = zip(leaves(form), leaves(steps), strict=True)
    return of_tree(nest_like(form, iter([index // d % n if d and n else 0 for n, d in pairs])))


def crd2idx(crd: Any, shape: Any, _stride: Any = None) -> int:
    """Return the index of a coordinate: entry by entry, an integer of a nested entry as a colexicographic index.

    >>> crd2idx(IntTuple(3, 1), IntTuple(4, 2), IntTuple(1, 4))
    7
    """
    form = as_int_tree(shape)
    steps = (prefix_product(form) if _stride is None else of_tree(as_int_tree(_stride)))._tree
    return int(CoreLayout(form, steps).extended(as_int_tree(crd)))


def compact_order(shape: Any, order: Any) -> IntTuple:
    """Return the strides of a shape without gaps, the integer with the lowest `order` fastest.

    >>> print(compact_order(IntTuple(2, 3, 4, 5), IntTuple(1, 4, 3, 5)))
    (1, 8, 2, 24)
    """
    form = as_int_tree(shape)
    ranks = _spread(form, as_int_tree(order))
    numbers = leaves(form)
    strides, running = [0] * len(numbers), 1
    for k in _argsort(ranks):
        strides[k] = running
        running = _multiply(running, numbers[k])
    return of_tree(nest_like(form, iter(strides)))


def _argsort(keys: list[int]) -> list[int]:
    return [k for _, k in _sort([(key, k) for k, key in enumerate(keys)])]


def _spread(shape: Any, order: Any) -> list[int]:
    """Return the order of every integer of a shape; one order for a nested entry is that of all its integers."""
    if isinstance(order, tuple):
        if not isinstance(shape, tuple) or len(shape) != len(order):
            raise LayoutError(f"the order {format_tree(order)} does not fit the shape {format_tree(shape)}")
        return [rank for part, rule in zip(shape, order, strict=True) for rank in _spread(part, rule)]
    return [order] * len(leaves(shape))


def to_index_list(t: Any, *_: Any) -> IndexEntries:
    """Return a flat tuple as an `IndexList`.

    >>> to_index_list(IntTuple(2, 3))
    (2, 3)
    """
    return Index(*leaves(as_int_tree(t)))


def _coord_to_int_tuple(_: Any, parameters: tuple[Any, ...], value: Any = None) -> IntTuple:
    return of_tree(as_int_tree(parameters if value is None else value))


class _CoordToIntTuple(Bracketed[IntTuple]):
    """`coord_to_int_tuple(coord)`, or of types in brackets: an `IntTuple` of the same nesting.

    >>> print(coord_to_int_tuple(Coord(Coord(2, 3), 4)))
    ((2, 3), 4)
    """


coord_to_int_tuple = _CoordToIntTuple(_coord_to_int_tuple)

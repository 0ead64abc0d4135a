# SPDX-License-Identifier: Apache-2.0
"""Mojo's collections: optionals, dictionaries, sets, lists, deques, counters, owning pointers and variants."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from tilewright.errors import CoordinateError, LayoutError
from tilewright.layout import as_integer
from tilewright.mojo import (
    SIMD,
    Error,
    MemoryArray,
    MemoryType,
    MojoValue,
    ParametrizedMeta,
    SIMDType,
    alloc,
    brackets,
    format_value,
)

from .types import name_type, represent

_NO_DEFAULT = object()


class DictKeyError(Error, CoordinateError):
    """A `key` that a dictionary does not have; a program can catch it.

    >>> print(DictKeyError("a"))
    the dictionary has no key 'a'
    """

    def __init__(self, key: object) -> None:
        super().__init__(f"the dictionary has no key {key!r}")
        self.key = key

    def mojo_text(self) -> str:
        """Return the text that Mojo prints: the type of the key.

        >>> DictKeyError("a").mojo_text()
        'DictKeyError[String]()'
        """
        return f"DictKeyError[{name_type(self.key)}]()"


class DictEntry(NamedTuple):
    """A key with its value.

    >>> DictEntry("a", 1).key
    'a'
    """

    key: Any
    value: Any


class Dict(dict[Any, Any], metaclass=ParametrizedMeta):
    """A dictionary: `Dict[String, Int]()`. A key that is not there is an error of ours.

    >>> counts = Dict[str, int]()
    >>> counts["a"] = 1
    >>> [(entry.key, entry.value) for entry in counts.items()], str(counts), counts.find("b") == None
    ([('a', 1)], '{a: 1}', True)
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("K", "V")

    def __missing__(self, key: object) -> Any:
        raise DictKeyError(key)

    def items(self) -> Iterator[DictEntry]:  # type: ignore[override]  # as in Mojo
        """Return the entries, each with `key` and `value`.

        >>> next(Dict({1: 2}).items()).value
        2
        """
        return (DictEntry(key, value) for key, value in super().items())

    def find(self, key: object) -> Optional:
        """Return the value of a key, or none.

        >>> Dict({1: 2}).find(1).value()
        2
        """
        return Optional(super().get(key))

    def get(self, key: object, default: object = _NO_DEFAULT) -> MojoValue:
        """Return the value of a key, or `default`; an optional value where there is no default.

        >>> Dict({1: 2}).get(1).value(), Dict({1: 2}).get(5, 0)
        (2, 0)
        """
        return self.find(key) if default is _NO_DEFAULT else super().get(key, default)

    def pop(self, key: object, default: object = _NO_DEFAULT) -> MojoValue:
        """Remove a key and return its value, or `default` if the key is not there.

        >>> Dict({1: 2}).pop(1), Dict({1: 2}).pop(5, 0)
        (2, 0)
        """
        if default is _NO_DEFAULT and key not in self:
            raise DictKeyError(key)
        return super().pop(key, default)

    def popitem(self) -> DictEntry:
        """Remove the newest entry and return it.

        >>> Dict["K", "V"](a=1).popitem().key
        'a'
        """
        if not self:
            raise Error("EmptyDictError()")
        return DictEntry(*super().popitem())

    def copy(self) -> Dict:
        """Return a dictionary of the same entries.

        >>> print(Dict({1: 2}).copy())
        {1: 2}
        """
        return Dict(self)

    def __str__(self) -> str:
        return format_value(dict(self))


class Set(set[Any], metaclass=ParametrizedMeta):
    """A set: `Set[Int](1, 2)`.

    >>> print(Set[int](1))
    {1}
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("T",)

    def __init__(self, *values: Any) -> None:
        super().__init__(values)

    def remove(self, value: object) -> None:
        """Remove an element, `value`, which must be there.

        >>> numbers = Set(1, 2)
        >>> numbers.remove(1)
        >>> print(numbers)
        {2}
        """
        if value not in self:
            raise DictKeyError(value)
        self.discard(value)

    def pop(self) -> MojoValue:
        """Remove an element and return it.

        >>> Set(1).pop()
        1
        """
        if not self:
            raise Error("Pop on empty set")
        return super().pop()

    def copy(self) -> Set:
        """Return a set of the same elements.

        >>> print(Set(1).copy())
        {1}
        """
        return Set(*self)

    def union(self, *others: Any) -> Set:
        """Return the elements of this set and of the `others`.

        >>> print(Set(1).union(Set(2)))
        {1, 2}
        """
        return Set(*super().union(*others))

    def intersection(self, *others: Any) -> Set:
        """Return the elements that are in this set and in all `others`.

        >>> print(Set(1, 2).intersection(Set(2)))
        {2}
        """
        return Set(*super().intersection(*others))

    def difference(self, *others: Any) -> Set:
        """Return the elements that are in none of the `others`.

        >>> print(Set(1, 2).difference(Set(2)))
        {1}
        """
        return Set(*super().difference(*others))

    def symmetric_difference(self, other: Any) -> Set:
        """Return the elements that are in this set or in the `other` one, but not in both.

        >>> print(Set(1, 2).symmetric_difference(Set(2, 3)))
        {1, 3}
        """
        return Set(*super().symmetric_difference(other))

    __or__, __and__, __sub__, __xor__ = union, intersection, difference, symmetric_difference

    def __str__(self) -> str:
        return f"{{{', '.join(map(format_value, self))}}}"


class Optional(metaclass=ParametrizedMeta):
    """A value or none: `Optional(3)`, `Optional()`.

    >>> Optional(3).value(), bool(Optional()), Optional[int](None).or_else(5), Optional() == None
    (3, False, 5, True)
    """

    __slots__ = ("_value",)
    __bracketed__: ClassVar[tuple[str, ...]] = ("T",)

    _value: Any

    def __init__(self, value: object = None) -> None:
        self._value = value._value if isinstance(value, Optional) else value

    def value(self) -> MojoValue:
        """Return the value; raise if there is none.

        >>> Optional(3).value()
        3
        """
        if self._value is None:
            raise LayoutError("the optional value is none")
        return self._value

    unsafe_value = value

    def get_subscript(self) -> MojoValue:
        """Return the value: `optional[]`; a program can catch the error if there is none.

        >>> Optional(3).get_subscript()
        3
        """
        if self._value is None:
            raise Error("the optional value is none")
        return self._value

    def take(self) -> MojoValue:
        """Return the value and leave none.

        >>> number = Optional(3)
        >>> number.take(), bool(number)
        (3, False)
        """
        value = self.value()
        self._value = None
        return value

    unsafe_take = take

    def or_else(self, default: object) -> MojoValue:
        """Return the value, or `default` if there is none.

        >>> Optional().or_else(5)
        5
        """
        return default if self._value is None else self._value

    def copy(self) -> Optional:
        """Return an equal optional value.

        >>> Optional(3).copy() == Optional(3)
        True
        """
        return Optional(self._value)

    def __bool__(self) -> bool:
        return self._value is not None

    def __iter__(self) -> Iterator[Any]:
        return iter(() if self._value is None else (self._value,))

    def __eq__(self, other: object) -> bool:
        return bool(self._value == (other._value if isinstance(other, Optional) else other))

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return format_value(self._value)

    def represent_in_mojo(self) -> str:
        """Return what Mojo's `repr` shows.

        >>> Optional(3).represent_in_mojo()
        'Optional[SIMD[DType.int, 1]](Int(3))'
        """
        if self._value is None:
            return repr(self)
        return f"Optional[{name_type(self._value)}]({represent(self._value)})"

    def __repr__(self) -> str:
        return f"Optional({self._value!r})"


class List(MemoryArray):
    """`List[Float32](length=4, fill=0)`, `List[Float32](1, 2, 3)` or `List[Float32](capacity=8)`; it grows.

    Its `values` may be of any type.

    >>> numbers = List["int32"](1, 2, 3)
    >>> numbers.append(4)
    >>> print(numbers, len(numbers))
    [1, 2, 3, 4] 4
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ("T",)
    takes_lists: ClassVar[bool] = True

    def __init__(self, *values: Any, length: object = 0, fill: object = None, capacity: object = 0, **_: Any) -> None:
        self._fill_new(MemoryType(List, None), values, length, fill)

    def _fill_new(self, kind: MemoryType, values: tuple[Any, ...], length: object, fill: object) -> None:
        if len(values) == 1 and isinstance(values[0], (list, tuple, MemoryArray)) and kind.element is not list:
            values = tuple(values[0])
        if not values and fill is not None:
            values = (fill,) * int(as_integer(length, "the length of a list"))
            length = 0
        self._hold(kind, values)
        if length:
            self.resize(int(as_integer(length, "the length of a list")), 0)

    @classmethod
    def _with_parameters(cls, *parameters: Any, T: object = None, **_: Any) -> MemoryType:  # noqa: N803
        """Return the type `List[T]`.

        >>> List.with_parameters("int8")
        List[DType.int8]
        """
        return MemoryType.of(cls, (*parameters, T)[0])

    @classmethod
    def _of_type(
        cls,
        kind: MemoryType,
        *values: Any,
        length: object = 0,
        fill: object = None,
        unsafe_uninit_length: object = 0,
        **_: Any,
    ) -> List:
        result = object.__new__(cls)
        result._fill_new(kind, values, length or unsafe_uninit_length, fill)
        return result

    @property
    def capacity(self) -> int:
        """The number of elements that fit without new memory.

        >>> List["int8"](1, 2).capacity >= 2
        True
        """
        return int(self.memory.size)

    # Growth.

    def reserve(self, count: Any) -> None:
        """Make memory for at least `count` elements.

        >>> List["int8"]().reserve(5)
        """
        size = int(as_integer(count, "a capacity"))
        memory = self.memory
        if memory.format is None or size <= memory.size:
            return
        grown = alloc[memory.format](size).memory
        grown.host[: self._size] = memory.host[: self._size]
        self.memory = grown

    def append(self, value: Any) -> None:
        """Add an element, `value`, at the end.

        >>> numbers = List["int8"]()
        >>> numbers.append(7)
        >>> print(numbers)
        [7]
        """
        memory = self.memory
        if memory.format is None:
            if not memory.data and memory.kind is object and isinstance(value, (SIMD, int, float)):
                self._fill_new(MemoryType(List, None), (value,), 0, None)  # the first element gives the type
                return
            memory.data.append(value)
            self._size += 1
            return
        if self._size == memory.size:
            self.reserve(max(4, 2 * memory.size))
        self.unsafe_ptr()[self._size] = value
        self._size += 1

    def extend(self, values: Iterable[Any]) -> None:
        """Add elements, `values`, at the end.

        >>> numbers = List["int8"](1)
        >>> numbers.extend([2, 3])
        >>> print(numbers)
        [1, 2, 3]
        """
        for value in list(values):
            self.append(value)

    def resize(self, length: object, value: object = 0) -> None:
        """Shorten the list, or add elements `value` up to a length.

        >>> numbers = List["int8"](1)
        >>> numbers.resize(3, 7)
        >>> print(numbers)
        [1, 7, 7]
        """
        count = int(as_integer(length, "the length of a list"))
        self.reserve(count)
        while self._size < count:
            self.append(value)
        self.shrink(count)

    def shrink(self, length: object) -> None:
        """Drop the elements from `length` on.

        >>> numbers = List["int8"](1, 2, 3)
        >>> numbers.shrink(1)
        >>> print(numbers)
        [1]
        """
        count = int(as_integer(length, "the length of a list"))
        if not 0 <= count <= self._size:
            raise CoordinateError(f"cannot shrink a list of {self._size} elements to {count}")
        self._size = count
        if self.memory.format is None:
            del self.memory.data[count:]

    def clear(self) -> None:
        """Drop all elements.

        >>> numbers = List["int8"](1, 2, 3)
        >>> numbers.clear()
        >>> len(numbers)
        0
        """
        self.shrink(0)

    def pop(self, k: Any = -1) -> MojoValue:
        """Remove element `k`, the last one if not told, and return it.

        >>> List["int8"](1, 2, 3).pop(0)
        Int8(1)
        """
        index = self._size - 1 if as_integer(k, "an index") == -1 else k
        value = self[index]
        rest = [self[j] for j in range(int(index) + 1, self._size)]
        self.shrink(int(index))
        self.extend(rest)
        return value

    def insert(self, k: object, value: object) -> None:
        """Insert an element, `value`, before index `k`.

        >>> numbers = List["int8"](1, 3)
        >>> numbers.insert(1, 2)
        >>> print(numbers)
        [1, 2, 3]
        """
        index = int(as_integer(k, "an index"))
        if not 0 <= index <= self._size:
            raise CoordinateError(f"index {index} is outside a list of {self._size} elements")
        rest = [self[j] for j in range(index, self._size)]
        self.shrink(index)
        self.extend([value, *rest])

    def swap_elements(self, i: object, j: object) -> None:
        """Exchange elements `i` and `j`.

        >>> numbers = List["int8"](1, 3)
        >>> numbers.swap_elements(0, 1)
        >>> print(numbers)
        [3, 1]
        """
        self[i], self[j] = self[j], self[i]

    def reverse(self) -> None:
        """Reverse the order of the elements.

        >>> numbers = List["int8"](1, 3)
        >>> numbers.reverse()
        >>> print(numbers)
        [3, 1]
        """
        for k, value in enumerate([self[j] for j in reversed(range(self._size))]):
            self[k] = value

    def index(self, value: object) -> int:
        """Return the index of the first element equal to `value`.

        >>> List["int8"](1, 3).index(3)
        1
        """
        for k, element in enumerate(self):
            if element == value:
                return k
        raise Error("ValueError: Given element is not in list")  # as Mojo says it

    def count(self, value: object) -> int:
        """Return how many elements are equal to `value`.

        >>> List["int8"](1, 3, 1).count(1)
        2
        """
        return sum(1 for element in self if element == value)

    def represent_in_mojo(self) -> str:
        """Return what Mojo's `repr` shows: the type of the elements, and each of them.

        >>> List["int8"](1, 2).represent_in_mojo()
        'List[SIMD[DType.int8, 1]]([Int8(1), Int8(2)])'
        """
        elements = list(self)
        kind = f"[{name_type(elements[0])}]" if elements else ""
        return f"List{kind}([{', '.join(map(represent, elements))}])"

    def __add__(self, other: Iterable[Any]) -> List:
        joined = self.__copy__()
        joined.extend(other)
        return joined

    def __iadd__(self, other: Iterable[Any]) -> List:
        self.extend(other)
        return self

    def __mul__(self, count: object) -> List:
        repeated = self.__copy__()
        for _ in range(int(as_integer(count, "a number of copies")) - 1):
            repeated.extend(self)
        return repeated

    __copy__ = copy = MemoryArray._copied


class Deque(deque[Any], metaclass=ParametrizedMeta):
    """`Deque[Int](1, 2)`, from its `values` or from a list `elements`; at most `maxlen` of them if that is positive.

    >>> numbers = Deque[int](1, 2)
    >>> numbers.appendleft(0)
    >>> print(numbers, numbers.pop())
    [0, 1] 2
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("ElementType",)

    def __init__(self, *values: Any, elements: Any = (), maxlen: int = -1, **_: Any) -> None:
        super().__init__([*values, *elements], maxlen=maxlen if maxlen > 0 else None)

    def pop(self) -> MojoValue:  # type: ignore[override]  # positions do not exist in Mojo's either
        """Remove the last element and return it.

        >>> Deque(1, 2).pop()
        2
        """
        self._check_filled("pop")
        return super().pop()

    def popleft(self) -> MojoValue:
        """Remove the first element and return it.

        >>> Deque(1, 2).popleft()
        1
        """
        self._check_filled("popleft")
        return super().popleft()

    def copy(self) -> Deque:
        """Return a deque of the same elements.

        >>> print(Deque(1).copy())
        [1]
        """
        return Deque(*self, maxlen=self.maxlen or -1)

    def _check_filled(self, action: str) -> None:
        if not self:
            raise Error(f"IndexError: {action} from an empty Deque")

    def __str__(self) -> str:
        return format_value(list(self))


class OwnedPointer(metaclass=ParametrizedMeta):
    """`OwnedPointer(value)`: the only owner of a `value`, which is read and written with empty brackets.

    >>> box = OwnedPointer(5)
    >>> box.set_subscript(6)
    >>> box.get_subscript()
    6
    """

    __slots__ = ("_value",)

    def __init__(self, value: object = None, **named: Any) -> None:
        self._value = named.get("copy_value", value)

    def get_subscript(self) -> MojoValue:
        """Return the value: `pointer[]`.

        >>> OwnedPointer(5).get_subscript()
        5
        """
        return self._value

    def set_subscript(self, value: object) -> None:
        """Replace the value: `pointer[] = value`.

        >>> OwnedPointer(5).set_subscript(6)
        """
        self._value = value

    def take(self) -> MojoValue:
        """Return the value; the pointer is not used afterwards.

        >>> OwnedPointer(5).take()
        5
        """
        return self._value

    def __str__(self) -> str:
        return f"{type(self).__name__}({format_value(self._value)})"


class ArcPointer(OwnedPointer):
    """`ArcPointer(value)`: one of several owners of a value; `a is b` tells whether two own the same.

    >>> first = ArcPointer(5)
    >>> second = first.copy()
    >>> second.set_subscript(6)
    >>> first.get_subscript()
    6
    """

    __slots__ = ()

    def copy(self) -> ArcPointer:
        """Return another owner of the same value, which here is the same pointer.

        >>> ArcPointer(5).copy().get_subscript()
        5
        """
        return self


@dataclass(frozen=True, slots=True)
class VariantType:
    """`Variant[Int, String]`: the type of values of one of some `types`.

    >>> kind = VariantType((int, str))
    >>> kind("a").isa[str](), kind("a")[str], isinstance(kind(3), kind)
    (True, 'a', True)
    """

    types: tuple[Any, ...]

    def __call__(self, value: object) -> Variant:
        if isinstance(value, Variant):
            return Variant(self, value.value)
        if not any(isinstance(value, kind) for kind in self.types):  # a literal takes the first type that takes it
            takers = [kind for kind in self.types if isinstance(kind, SIMDType) and isinstance(value, (int, float))]
            if not takers:
                raise LayoutError(f"{format_value(value)} has none of the types of {self}")
            value = takers[0](value)
        return Variant(self, value)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, Variant) and value.kind == self

    convert_implicitly = __call__

    def converts_implicitly(self, value: object) -> bool:
        """Return whether a value has one of the types.

        >>> VariantType((int,)).converts_implicitly(3)
        True
        """
        return any(isinstance(value, kind) for kind in self.types)

    def __str__(self) -> str:
        return f"Variant[{', '.join(map(repr, self.types))}]"


class Variant(metaclass=ParametrizedMeta):
    """A `value` of one of the types of its `kind`: `Variant[Int, String](3)`.

    >>> number = Variant[int, str](3)
    >>> number.isa[int](), number[int], str(number)
    (True, 3, '3')
    """

    __slots__ = ("kind", "value")

    def __init__(self, kind: VariantType, value: object) -> None:
        self.kind, self.value = kind, value

    @classmethod
    def _with_parameters(cls, *types: Any) -> VariantType:
        return VariantType(types)

    @brackets
    def isa(self, parameters: tuple[Any, ...]) -> bool:
        """Return whether the value has a type: `variant.isa[Int]()`.

        >>> Variant[int, str](3).isa[str]()
        False
        """
        return isinstance(self.value, parameters[0])

    def __getitem__(self, kind: Any) -> Any:
        if not isinstance(self.value, kind):
            raise LayoutError(f"the variant has a value of another type than {kind!r}; ask with isa first")
        return self.value

    @brackets
    def set(self, parameters: tuple[Any, ...], value: Any) -> None:
        """Replace the value: `variant.set[Int](3)`.

        >>> number = Variant[int, str](3)
        >>> number.set[str]("a")
        >>> number[str]
        'a'
        """
        self.value = self.kind(value).value

    @brackets
    def take(self, parameters: tuple[Any, ...]) -> MojoValue:
        """Return the value: `variant.take[Int]()`.

        >>> Variant[int, str](3).take[int]()
        3
        """
        return self[parameters[0]]

    def copy(self) -> Variant:
        """Return an equal variant.

        >>> Variant[int, str](3).copy()[int]
        3
        """
        return Variant(self.kind, self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variant) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return format_value(self.value)


@dataclass(frozen=True, slots=True)
class CountTuple:
    """A value and how often it occurs, `_value` and `_count` in Mojo.

    >>> entry = CountTuple("a", 2)
    >>> entry[0], entry._count
    ('a', 2)
    """

    _value: Any
    _count: int

    def __getitem__(self, k: int) -> Any:
        return (self._value, self._count)[k]


class Counter(Dict):
    """`Counter[String]("a", "b")`: a dictionary of counts of `items`, 0 for what was never counted.

    >>> letters = Counter[str]("a", "b", "a")
    >>> letters["a"], letters["z"], letters.total(), letters.most_common(1)[0][0]
    (2, 0, 3, 'a')
    """

    def __init__(self, *items: Any) -> None:
        super().__init__()
        is_collection = len(items) == 1 and isinstance(items[0], Iterable) and not isinstance(items[0], str)
        self.update(items[0] if is_collection else items)

    def __missing__(self, key: object) -> int:
        return 0

    def update(self, other: Any) -> None:  # type: ignore[override]  # counts are added, as in Mojo
        """Add the counts of an `other` counter, or count the values of a list.

        >>> letters = Counter("a")
        >>> letters.update(["a"])
        >>> letters["a"]
        2
        """
        for value in other:
            self[value] += other[value] if isinstance(other, Mapping) else 1

    def total(self) -> int:
        """Return the sum of the counts.

        >>> Counter("a", "b").total()
        2
        """
        return sum(self.values())

    def most_common(self, n: int | None = None) -> tuple[CountTuple, ...]:
        """Return the `n` most frequent values with their counts, all of them if not told.

        >>> Counter("a", "b", "b").most_common(1)[0]._value
        'b'
        """
        ordered = sorted(self, key=lambda value: -self[value])
        return tuple([CountTuple(value, self[value]) for value in ordered[:n]])

    def copy(self) -> Counter:
        """Return a counter of the same counts.

        >>> Counter("a").copy()["a"]
        1
        """
        return Counter(self)

# SPDX-License-Identifier: Apache-2.0
"""Named axes: strides such as `64 @ addr`, and the `Place` over several axes that they add up to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, SupportsIndex, TypeAlias, TypeGuard

from ..errors import LayoutError
from .tuples import (
    MAX_DEPTH,
    IntOrArray,
    Nested,
    Shape,
    ShapeArgument,
    as_integer,
    as_tree,
    as_tuple,
    index_strides,
    leaves,
    product,
    validate_shape,
)

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z", re.ASCII)
PLAIN = ""  # the key of the part of a Place that lies on no named axis


class Axis:
    """A named axis of memory: `64 @ Axis("addr")` is a stride of 64 along it.

    `name` is an identifier; `core.x` is the axis named "core.x".

    >>> bank, core = Axis("bank"), Axis("core")
    >>> 2 @ bank, 1 @ core.x
    (Place(bank=2), Place({'core.x': 1}))
    """

    __slots__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", check_axis_name(name))

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"an Axis is immutable; create another with Axis({value!r})")

    def __getattr__(self, part: str) -> Axis:
        if part.startswith("_"):
            raise AttributeError(part)
        return Axis(f"{self.name}.{part}")

    def __rmatmul__(self, amount: int) -> Place:
        return Place._of(
            {self.name: amount if type(amount) is int else as_integer(amount, f"the stride along {self.name}")}
        )

    def __repr__(self) -> str:
        return f"Axis({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Axis, (self.name,)


def check_axis_name(name: object) -> str:
    """Return name if it can name an axis, else raise.

    >>> check_axis_name("core.x")
    'core.x'
    """
    if not isinstance(name, str):
        raise TypeError(f"an axis name must be a str, got {type(name).__name__} {name!r}")
    if not _NAME.match(name):
        rule = "use letters, digits and _, with dots between parts, as in 'core.x'"
        raise LayoutError(f"{name!r} cannot name an axis: {rule}")
    return name


def axis_name(axis: Axis | str) -> str:
    """Return the name of an axis given as an `Axis` or by name.

    >>> axis_name(Axis("bank")), axis_name("bank")
    ('bank', 'bank')
    """
    return axis.name if isinstance(axis, Axis) else check_axis_name(axis)


class Place(Mapping[str, Any]):
    """A point over named axes, such as `Place(bank=1, addr=2048)`; also a stride, the difference of two places.

    `parts` are plain integers and mappings from axis names to amounts, `axes` amounts by axis name; all are added.
    Places add, subtract and scale like vectors; an axis that is not mentioned counts as 0. Read one coordinate with
    `p.addr`, `p["addr"]` or `p[addr]`; `p.core` gathers `core.x` and `core.y`.

    >>> p = Place(bank=1, addr=2048) + 64 @ addr
    >>> p.addr, p["bank"], p * 2
    (2112, 1, Place(bank=2, addr=4224))
    >>> Place({"core.x": 3, "core.y": 1}).core
    Place(x=3, y=1)
    """

    __slots__ = ("_parts",)
    __array_ufunc__ = None  # array * place is for the place to answer, not for NumPy element by element
    _parts: dict[str, Any]

    def __init__(self, *parts: int | Mapping[str, int], **axes: int) -> None:
        total: dict[str, Any] = {}
        for part in (*parts, axes):
            named = part if isinstance(part, Mapping) else {PLAIN: part}
            for name, amount in named.items():
                key = name if name == PLAIN else check_axis_name(name)
                total[key] = total.get(key, 0) + as_integer(amount, f"the stride along {key or 'no axis'}")
        object.__setattr__(self, "_parts", total)

    @classmethod
    def _of(cls, parts: dict[str, Any]) -> Place:
        """Return a place from amounts by axis name, without checking them."""
        place = object.__new__(cls)
        object.__setattr__(place, "_parts", parts)
        return place

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"a Place is immutable; add to it instead, as in place + {value!r} @ {key}")

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes, in the order in which they were first used.

        >>> Place(bank=1, addr=0).axes
        ('bank', 'addr')
        """
        return tuple(name for name in self._parts if name != PLAIN)

    @property
    def plain(self) -> int | Any:
        """The amount that lies on no named axis.

        >>> (Place(bank=1) + 7).plain
        7
        """
        return self._parts.get(PLAIN, 0)

    def __getitem__(self, axis: Axis | str) -> Any:
        return self._parts[axis_name(axis)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        parts = self._parts
        if name in parts:
            return parts[name]
        inner = {key[len(name) + 1 :]: amount for key, amount in parts.items() if key.startswith(name + ".")}
        if inner:
            return Place._of(inner)
        raise AttributeError(f"{self!r} has no axis {name!r}; it has {', '.join(self.axes) or 'none'}")

    def __contains__(self, axis: object) -> bool:
        return (axis.name if isinstance(axis, Axis) else axis) in self.axes

    def __iter__(self) -> Iterator[str]:
        return iter(self.axes)

    def __len__(self) -> int:
        return len(self.axes)

    def __bool__(self) -> bool:
        return any(self._parts.values())

    def __add__(self, other: IntOrArray | Place) -> Place:
        if type(other) is int and other == 0:
            return self
        parts = _parts_of(other)
        if parts is None:
            return NotImplemented
        total = dict(self._parts)
        for name, amount in parts.items():
            total[name] = total[name] + amount if name in total else amount
        return Place._of(total)

    __radd__ = __add__

    def __neg__(self) -> Place:
        return Place._of({name: -amount for name, amount in self._parts.items()})

    def __sub__(self, other: IntOrArray | Place) -> Place:
        parts = _parts_of(other)
        return NotImplemented if parts is None else self + -Place._of(parts)

    def __rsub__(self, other: IntOrArray) -> Place:
        return (-self).__add__(other)

    def __mul__(self, factor: IntOrArray) -> Place:
        if not _is_integral(factor):
            return NotImplemented
        return Place._of({name: amount * factor for name, amount in self._parts.items()})

    __rmul__ = __mul__

    def __matmul__(self, axis: object) -> Place:
        raise TypeError(f"{self!r} already lies on named axes; write a sum, such as 1 @ bank + 64 @ addr")

    def __eq__(self, other: object) -> bool:
        parts = _parts_of(other)
        return parts is not None and _drop_zeros(self._parts) == _drop_zeros(parts)

    def __hash__(self) -> int:
        parts = _drop_zeros(self._parts)
        if not parts.keys() - {PLAIN}:
            return hash(parts.get(PLAIN, 0))
        return hash(frozenset(parts.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Place._of, (self._parts,)

    def __repr__(self) -> str:
        plain = [repr(self.plain)] if PLAIN in self._parts and (self.plain != 0) is not False else []
        named = {name: self._parts[name] for name in self.axes}
        if any("." in name for name in named):
            return f"Place({', '.join([*plain, repr(named)])})"
        return f"Place({', '.join([*plain, *(f'{name}={amount!r}' for name, amount in named.items())])})"


Offset: TypeAlias = "int | Place"
Stride: TypeAlias = "Nested[Offset]"


def as_offset(value: object, name: str) -> Offset:
    """Return an offset or a stride, an integer or a `Place`; raise a TypeError that calls it `name` if it is neither.

    >>> as_offset(5, "the offset")
    5
    """
    return value if isinstance(value, Place) else as_integer(value, name)


def component(offset: Offset, axis: str) -> int | Any:
    """Return the part of an offset that lies along the axis with that name; for the name "", along no axis.

    >>> component(Place(bank=2), "bank"), component(5, "bank"), component(5, "")
    (2, 0, 5)
    """
    if isinstance(offset, Place):
        return offset._parts.get(axis, 0)
    return 0 if axis else offset


def format_tree(tree: Nested[Any]) -> str:
    """Return a shape, stride or coordinate as text without spaces; a stride along several axes is in braces.

    >>> format_tree((4, (2, 3))), format_tree((7,)), format_tree((8, Place(bank=1, addr=64)))
    ('(4,(2,3))', '(7)', '(8,{1@bank+64@addr})')
    """
    if isinstance(tree, tuple):
        return f"({','.join(map(format_tree, tree))})"
    terms = _format_terms(tree)
    return terms[0] if len(terms) == 1 else f"{{{_join_terms(terms)}}}"


def format_signed(offset: Offset) -> str:
    """Return an offset as signed terms: `+5`, `-3@bank`.

    >>> format_signed(5), format_signed(Place(bank=-3, addr=64))
    ('+5', '-3@bank+64@addr')
    """
    text = _join_terms(_format_terms(offset))
    return text if text.startswith("-") else f"+{text}"


def _format_terms(offset: Offset) -> list[str]:
    """Return the text of every term of an offset, such as ["1@bank", "64@addr"]."""
    if not isinstance(offset, Place):
        return [str(offset)]
    # a zero stride along an axis still means that offsets lie on that axis
    return [
        f"{amount}@{name}" if name else str(amount) for name, amount in offset._parts.items() if name or amount
    ] or ["0"]


def _join_terms(terms: list[str]) -> str:
    return "+".join(terms).replace("+-", "-")


def _parts_of(value: object) -> dict[str, Any] | None:
    """Return the amounts by axis of a place or an integer, None for anything else."""
    if isinstance(value, Place):
        return value._parts
    return {PLAIN: value} if _is_integral(value) else None


def _is_integral(value: object) -> TypeGuard[IntOrArray]:
    """Return whether value is an integer or an array of integers."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u")


def _drop_zeros(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: amount for name, amount in parts.items() if amount != 0}


addr = Axis("addr")
bank = Axis("bank")
core = Axis("core")
device = Axis("device")
lane = Axis("lane")


# Strides: their validation, how far they reach, and how flat lists of them merge.

MAX_OFFSET = 2**63 - 1

# A number of copies that exist at the same time, and the stride between them.
Replica: TypeAlias = "tuple[int, Offset]"
# What strides may be written as: lists count as tuples.
StrideArgument: TypeAlias = "SupportsIndex | Place | tuple[StrideArgument, ...] | list[Any]"
# One mode, ready for evaluation: its size, (extent, stride) of its coalesced leaves but the last, and the last stride.
ModeProgram: TypeAlias = "tuple[int, list[tuple[int, Any]], Any]"


def _plain_reach(shape: object, stride: object, depth: int = 0) -> int:
    """Return the largest distance between two offsets of plain nested integers; -1 if the arguments are anything else.

    The one in C returns -1 also where the distance, or an integer, has more than 64 bits.

    >>> _plain_reach((4, (2, 3)), (6, (3, 1))), _plain_reach((4, 8), (1, "x")), _plain_reach((4, 8), 1)
    (23, -1, -1)
    """
    if type(shape) is not tuple or type(stride) is not tuple:
        return (shape - 1) * abs(stride) if type(shape) is int and type(stride) is int and shape > 0 else -1
    if len(shape) != len(stride) or depth >= MAX_DEPTH:
        return -1
    reach = 0
    for n, d in zip(shape, stride):  # noqa: B905  (of one length; saying strict=True takes as long as two modes)
        if type(n) is int and type(d) is int:
            if n <= 0:
                return -1
            reach += (n - 1) * (d if d >= 0 else -d)
        else:
            inner = _plain_reach(n, d, depth + 1)
            if inner < 0:
                return -1
            reach += inner
    return reach


try:
    from .._calls import plain_reach
except ImportError:
    plain_reach = _plain_reach


def validate_shape_and_stride(shape: ShapeArgument, stride: StrideArgument | None) -> tuple[Shape, Stride]:
    """Return a shape and strides as nested tuples of integers and places; without strides, the compact ones.

    >>> validate_shape_and_stride([4, 8], None)
    ((4, 8), (1, 4))
    """
    extents = validate_shape(shape)
    strides = index_strides(extents) if stride is None else validate_stride(as_tree(stride), extents, (shape, stride))
    check_offset_range(extents, strides)
    return extents, strides


def validate_stride(stride: Nested[object], shape: Shape, arguments: tuple[object, object]) -> Stride:
    """Return strides that are nested like `shape`; a message quotes `arguments`, the shape and strides as passed.

    >>> validate_stride((1, 4), (4, 8), ((4, 8), (1, 4)))
    (1, 4)
    """
    if not isinstance(stride, tuple):
        leaf = stride if type(stride) is int else as_offset(stride, "stride")
        if not isinstance(shape, tuple):
            return leaf
    elif isinstance(shape, tuple) and len(stride) == len(shape):
        return tuple([validate_stride(d, s, arguments) for d, s in zip(stride, shape, strict=True)])
    raise _mismatch_error(stride, shape, arguments)


def validate_replica(replica: object) -> Replica:
    """Return a (count, stride) pair of copies.

    >>> validate_replica((2, 100))
    (2, 100)
    """
    if not isinstance(replica, tuple) or len(replica) != 2:
        raise TypeError(f"replicas are (count, stride) pairs, got {replica!r}")
    count, stride = as_integer(replica[0], "the number of copies"), as_offset(replica[1], "the stride between copies")
    if count < 1:
        raise LayoutError(f"the number of copies must be at least 1, got {count}")
    return int(count), stride


def _mismatch_error(stride: object, shape: Shape, arguments: tuple[object, object]) -> LayoutError:
    if not isinstance(shape, tuple):
        rule = f"the extent {shape} needs one stride, got {stride}"
    elif arguments == (shape, stride):
        rule = f"a tuple of {len(shape)} modes needs a tuple of {len(shape)} strides"
    else:
        rule = f"the mode {shape} needs {len(shape)} strides, got {stride}"
    return LayoutError(f"stride {arguments[1]} does not match shape {arguments[0]}: {rule}")


def check_offset_range(shape: Shape, stride: Stride, offset: Offset = 0) -> None:
    """Raise if offsets would not fit into 64 bits, in which the copy engines compute them.

    >>> check_offset_range((4, 8), (1, 4))
    """
    reach = _magnitude(offset)
    strides: list[Offset] = leaves(stride)
    for extent, leaf in zip(leaves(shape), strides, strict=True):
        if extent == 0:
            return
        reach += (extent - 1) * _magnitude(leaf)
    if reach > MAX_OFFSET:
        text = f"{format_tree(shape)}:{format_tree(stride)}{format_signed(offset) if offset else ''}"
        raise LayoutError(f"{text} reaches {reach}, beyond 2^63 - 1; use smaller extents, strides or offsets")


def _magnitude(offset: Offset) -> int:
    """Return the largest absolute amount of an offset along any axis."""
    return max(map(abs, offset._parts.values()), default=0) if isinstance(offset, Place) else abs(offset)


def value_range(extents: list[int], strides: list[Any], offset: object) -> tuple[Any, Any]:
    """Return the lowest and highest value of offset + sum(coordinate * stride).

    >>> value_range([4, 8], [-1, 4], 0)
    (-3, 28)
    """
    low = high = offset
    for extent, stride in zip(extents, strides, strict=True):
        reach = (extent - 1) * stride
        if reach > 0:
            high = high + reach
        else:
            low = low + reach
    return low, high


def merge_modes(extents: list[int], channels: list[list[Any]]) -> tuple[list[int], list[list[Any]]]:
    """Return modes merged wherever all channels continue, without units; at least one mode remains.

    A channel is a list of strides, one per extent: the strides of a layout, or of one of its guards.

    >>> merge_modes([2, 1, 6], [[1, 7, 2]])
    ([12], [[1]])
    """
    merged: list[int] = []
    if len(channels) == 1:
        line: list[Any] = []
        next_stride: Any = None  # with which the last mode continues
        for extent, stride in zip(extents, channels[0]):  # noqa: B905  (of one length; strict=True takes 0.2 us)
            if extent == 1:
                continue
            if next_stride == stride:
                merged[-1] = merged[-1] * extent
            else:
                merged.append(extent)
                line.append(stride)
            next_stride = extent * stride
        return (merged, [line]) if merged else ([1], [[0]])
    strides: list[list[Any]] = [[] for _ in channels]
    for k, extent in enumerate(extents):
        if extent == 1:
            continue
        pairs = zip(strides, channels, strict=True)
        if merged and all(line[-1] * merged[-1] == channel[k] for line, channel in pairs):
            merged[-1] = merged[-1] * extent
        else:
            merged.append(extent)
            for line, channel in zip(strides, channels, strict=True):
                line.append(channel[k])
    return (merged, strides) if merged else ([1], [[0] for _ in channels])


def mode_program(extents: list[int], strides: list[Any]) -> ModeProgram:
    """Return a mode, given by its coalesced leaves, ready for evaluation.

    >>> mode_program([4, 8], [1, 5])
    (32, [(4, 1)], 5)
    """
    return prod(extents), list(zip(extents[:-1], strides[:-1], strict=True)), strides[-1]


def mode_programs(shape: Shape, stride: Stride) -> list[ModeProgram]:
    """Return every top-level mode ready for evaluation.

    >>> mode_programs((4, (2, 3)), (6, (3, 1)))
    [(4, [], 6), (6, [(2, 3)], 1)]
    """
    pairs = zip(as_tuple(shape), as_tuple(stride), strict=True)
    merged = [merge_modes(leaves(extents), [leaves(strides)]) for extents, strides in pairs]
    return [mode_program(extents, strides) for extents, (strides,) in merged]


@dataclass(frozen=True, slots=True)
class Guard:
    """A bound on coordinates: they are data where `0 <= offset + sum(coordinate * stride) < limit`, padding elsewhere.

    >>> Guard((1, 32), 100)  # of 4 tiles of 32, only the first 100 elements are data
    Guard(stride=(1, 32), limit=100, offset=0)
    """

    stride: Nested[int]
    limit: int
    offset: int = 0

    def is_data(self, coordinates: list[Any]) -> bool | Any:
        """Return whether `coordinates`, one per leaf, are inside the data; arrays give arrays.

        >>> Guard((1, 32), 100).is_data([3, 3]), Guard((1, 32), 100).is_data([4, 3])
        (True, False)
        """
        value = self.offset + sum(c * stride for c, stride in zip(coordinates, leaves(self.stride), strict=True))
        return (value >= 0) & (value < self.limit)

    def with_stride(self, stride: Nested[int], shift: int = 0) -> Guard:
        """Return the bound over other coordinates: with other strides, and an offset that is `shift` further.

        >>> Guard((1, 32), 100).with_stride(32, 5)
        Guard(stride=32, limit=100, offset=5)
        """
        return Guard(stride, self.limit, self.offset + shift)

    def __str__(self) -> str:
        return f"{format_tree(self.stride)}{format_signed(self.offset) if self.offset else ''}<{self.limit}"


def live_guards(shape: Shape, guards: list[Guard]) -> tuple[Guard, ...]:
    """Return the distinct guards that exclude some coordinate of `shape`.

    >>> live_guards((32, 4), [Guard((1, 32), 100), Guard((1, 32), 128)])
    (Guard(stride=(1, 32), limit=100, offset=0),)
    """
    if not guards or product(shape) == 0:
        return ()
    extents: list[int] = leaves(shape)
    live = []
    for guard in guards:
        low, high = value_range(extents, leaves(guard.stride), guard.offset)
        if low < 0 or high >= guard.limit:
            live.append(guard)
    return tuple(dict.fromkeys(live))


def validate_guard(guard: object, shape: Shape) -> Guard:
    """Return `guard` if its strides are integers nested like `shape`.

    >>> validate_guard(Guard((1, 32), 100), (32, 4))
    Guard(stride=(1, 32), limit=100, offset=0)
    """
    if not isinstance(guard, Guard):
        raise TypeError(f"guards must be Guard objects, got {type(guard).__name__} {guard!r}")
    for stride in leaves(validate_stride(guard.stride, shape, (shape, guard.stride))):
        as_integer(stride, "the stride of a guard")
    as_integer(guard.limit, "the limit of a guard")
    as_integer(guard.offset, "the offset of a guard")
    return guard


def data_extents(shape: Shape, guards: tuple[Guard, ...]) -> tuple[int, ...] | None:
    """Return the extent of the data in each mode if every guard bounds the index of a single mode; else None.

    >>> data_extents((64, (32, 4)), (Guard((0, (1, 32)), 100),)), data_extents((8, 8), (Guard((8, 1), 60),))
    ((64, 100), None)
    """
    modes = shape if isinstance(shape, tuple) else (shape,)
    extents = [int(product(mode)) for mode in modes]
    used: set[Guard] = set()
    for guard in guards:
        strides = guard.stride if isinstance(guard.stride, tuple) else (guard.stride,)
        bounded = [k for k, stride in enumerate(strides) if any(leaves(stride))]
        if len(bounded) == 1 and guard.offset >= 0 and _is_index(strides[bounded[0]], modes[bounded[0]]):
            k = bounded[0]
            extents[k] = min(extents[k], max(0, guard.limit - guard.offset))
            used.add(guard)
    return tuple(extents) if used == set(guards) else None


def _is_index(strides: Nested[int], mode: Shape) -> bool:
    """Return whether the strides of a guard give the index in a mode."""
    trees = zip(leaves(mode), leaves(strides), leaves(index_strides(mode)), strict=True)
    return all(stride == unit for extent, stride, unit in trees if extent > 1)

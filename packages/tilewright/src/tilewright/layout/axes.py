# SPDX-License-Identifier: Apache-2.0
"""Named axes: steps such as `64 @ addr`, and places, the points that they add up to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, TypeGuard

from ..errors import LayoutError
from .tuples import IntOrArray, Nested
from .validation import as_integer

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
            {self.name: amount if type(amount) is int else as_integer(amount, f"the step along {self.name}")}
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
    """A point over named axes, such as `Place(bank=1, addr=2048)`; also a stride, the step between two places.

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
                total[key] = total.get(key, 0) + as_integer(amount, f"the step along {key or 'no axis'}")
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
        """Return the names of the axes, in the order in which they were first used.

        >>> Place(bank=1, addr=0).axes
        ('bank', 'addr')
        """
        return tuple(name for name in self._parts if name != PLAIN)

    @property
    def plain(self) -> Any:
        """Return the amount that lies on no named axis.

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


Step: TypeAlias = "int | Place"
Stride: TypeAlias = "Nested[Step]"


def as_step(value: object, name: str) -> Step:
    """Return a step, an integer or a `Place`; raise a TypeError that calls it `name` if it is neither.

    >>> as_step(5, "the offset")
    5
    """
    return value if isinstance(value, Place) else as_integer(value, name)


def component(step: Step, axis: str) -> Any:
    """Return the part of a step that lies along the axis with that name; for the name "", along no axis.

    >>> component(Place(bank=2), "bank"), component(5, "bank"), component(5, "")
    (2, 0, 5)
    """
    if isinstance(step, Place):
        return step._parts.get(axis, 0)
    return 0 if axis else step


def format_tree(tree: Nested[Any]) -> str:
    """Return a shape, stride or coordinate as text without spaces; a step along several axes is in braces.

    >>> format_tree((4, (2, 3))), format_tree((7,)), format_tree((8, Place(bank=1, addr=64)))
    ('(4,(2,3))', '(7)', '(8,{1@bank+64@addr})')
    """
    if isinstance(tree, tuple):
        return f"({','.join(map(format_tree, tree))})"
    terms = _format_terms(tree)
    return terms[0] if len(terms) == 1 else f"{{{_join_terms(terms)}}}"


def format_signed(step: Step) -> str:
    """Return a step as signed terms: `+5`, `-3@bank`.

    >>> format_signed(5), format_signed(Place(bank=-3, addr=64))
    ('+5', '-3@bank+64@addr')
    """
    text = _join_terms(_format_terms(step))
    return text if text.startswith("-") else f"+{text}"


def _format_terms(step: Step) -> list[str]:
    """Return the text of every term of a step, such as ["1@bank", "64@addr"]."""
    if not isinstance(step, Place):
        return [str(step)]
    # a zero step along an axis still says that places lie on that axis
    return [f"{amount}@{name}" if name else str(amount) for name, amount in step._parts.items() if name or amount] or [
        "0"
    ]


def _join_terms(terms: list[str]) -> str:
    return "+".join(terms).replace("+-", "-")


def _parts_of(value: object) -> dict[str, Any] | None:
    """Return the parts of a place or of a plain number, None for anything else."""
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

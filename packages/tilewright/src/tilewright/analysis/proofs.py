# SPDX-License-Identifier: Apache-2.0
"""`prove`: whether a layout is injective, stays within a bound or apart from another, for all sizes it may have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, TypeAlias

from .._text import TextCursor
from ..errors import FileFormatError, LayoutError, MissingPackage
from ..layout import MAX_DEPTH, Layout, LayoutLike, leaves

Method = Literal["Presburger arithmetic", "nested strides"]
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


@dataclass(frozen=True)
class Monomial:
    """A number times names of sizes: 8, m, 4 * m * n.

    >>> str(Monomial(4, ("m", "n")) * Monomial(2))
    '8 * m * n'
    """

    factor: int
    names: tuple[str, ...] = ()

    def __mul__(self, other: Monomial) -> Monomial:
        return Monomial(self.factor * other.factor, tuple(sorted(self.names + other.names)))

    def quotient(self, other: Monomial) -> Monomial | None:
        """Return self / other if that is a monomial, else None.

        >>> str(Monomial(8, ("m", "n")).quotient(Monomial(2, ("m",))))
        '4 * n'
        """
        if not other.factor or self.factor % other.factor or Counter(other.names) - Counter(self.names):
            return None
        rest = Counter(self.names) - Counter(other.names)
        return Monomial(self.factor // other.factor, tuple(sorted(rest.elements())))

    def __str__(self) -> str:
        return " * ".join([*([str(self.factor)] if self.factor != 1 or not self.names else []), *self.names])


Modes: TypeAlias = "list[tuple[Monomial, Monomial]]"  # extent and stride of each leaf


@dataclass(frozen=True)
class Proof:
    """Whether a claim holds for all sizes; if not, a `counterexample` with the sizes and coordinates that break it.

    >>> answer = Proof("injective", True, "nested strides")
    >>> bool(answer), str(answer)
    (True, 'injective: proved by nested strides')
    """

    claim: str
    holds: bool
    method: Method
    counterexample: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        if self.holds:
            return f"{self.claim}: proved by {self.method}"
        example = ", ".join([f"{name} = {value}" for name, value in self.counterexample.items()])
        return f"{self.claim}: false, for example with {example}"


def prove(
    layout: str | LayoutLike,
    *,
    injective: bool = False,
    within: str | int | None = None,
    disjoint: str | LayoutLike | None = None,
    where: Sequence[str] = (),
) -> Proof:
    """Return a proof, or a counterexample, of one claim about a `layout` for all sizes of at least 1.

    `layout` is a layout, or its text with names for sizes, such as "(m,8):(8,1)". The claim is one of: `injective`, no
    two coordinates have the same offset; `within`, all offsets are at least 0 and less than a bound, such as "8 * m";
    `disjoint`, no offset is one of another layout with the same names. `where` adds conditions on names, such as
    "m <= n" or "m <= 64".

    Sizes that multiply each other are decided by how strides nest; everything else needs islpy (the extra `prove`).

    >>> print(prove("(m,n):(n,1)", injective=True))
    injective: proved by nested strides
    >>> print(prove("(m,8):(7,1)", injective=True))
    injective: false, for example with m = 2, coordinates = ((0, 7), (1, 0)), offset = 7
    """
    claims = [
        name
        for name, given in (
            ("injective", injective),
            ("within", within is not None),
            ("disjoint", disjoint is not None),
        )
        if given
    ]
    if len(claims) != 1:
        raise LayoutError(f"prove one claim at a time: injective, within or disjoint; got {claims or 'none'}")
    try:
        modes, offset = _read_modes(layout)
        conditions = [_read_condition(text) for text in where]
        bound = None if within is None else _read_monomial(str(within))
        others = None if disjoint is None else _read_modes(disjoint)
    except FileFormatError as problem:  # a text, not a file
        raise LayoutError(str(problem)) from None
    if injective and not conditions and _is_nested(modes):
        return Proof("injective", True, "nested strides")
    if bound is not None and not conditions and offset == 0 and _fits_nested(modes, bound):
        return Proof(f"within {within}", True, "nested strides")
    if injective:
        return _prove_injective(modes, conditions)
    if bound is not None:
        return _prove_within(modes, offset, bound, conditions)
    assert others is not None
    return _prove_disjoint(modes, offset, *others, conditions, str(disjoint))


# Reading.


def _read_modes(layout: str | LayoutLike) -> tuple[Modes, int]:
    if isinstance(layout, str):
        cursor = TextCursor(layout, "a layout with names")
        shape = _read_tree(cursor, 0)
        cursor.expect(":")
        stride = _read_tree(cursor, 0)
        offset = cursor.integer() if cursor.accept("+") else 0
        cursor.expect_end()
        extents, steps = _flatten(shape), _flatten(stride)
        if len(extents) != len(steps):
            raise LayoutError(f"{layout!r} has {len(extents)} extents and {len(steps)} strides")
        return list(zip(extents, steps, strict=True)), offset
    if not isinstance(layout, Layout) or layout.axes or layout.is_replicated or layout.guards:
        raise LayoutError(f"{layout} is not a strided layout of plain offsets; give such a layout, or text")
    pairs = zip(leaves(layout.shape), leaves(layout.stride), strict=True)
    return [(Monomial(int(n)), Monomial(int(d))) for n, d in pairs], int(layout.offset)


def _read_tree(cursor: TextCursor, depth: int) -> Any:
    if not cursor.accept("("):
        return _read_product(cursor)
    if depth > MAX_DEPTH:
        cursor.fail(f"at most {MAX_DEPTH} levels")
    branches: list[Any] = []
    while not cursor.accept(")"):
        if branches:
            cursor.expect(",")
        branches.append(_read_tree(cursor, depth + 1))
    return branches


def _flatten(tree: Any) -> list[Monomial]:
    return [leaf for branch in tree for leaf in _flatten(branch)] if isinstance(tree, list) else [tree]


def _read_product(cursor: TextCursor) -> Monomial:
    total = _read_factor(cursor)
    while cursor.accept("*"):
        total = total * _read_factor(cursor)
    return total


def _read_factor(cursor: TextCursor) -> Monomial:
    if found := cursor.match(_NAME):
        return Monomial(1, (found[0],))
    sign = -1 if cursor.accept("-") else 1
    return Monomial(sign * cursor.integer("a size: a number or a name"))


def _read_monomial(text: str) -> Monomial:
    cursor = TextCursor(text, "a bound")
    bound = _read_product(cursor)
    cursor.expect_end()
    return bound


def _read_condition(text: str) -> tuple[Monomial, str, Monomial]:
    cursor = TextCursor(text, "a condition")
    left = _read_product(cursor)
    sign = next((sign for sign in ("<=", ">=", "<", ">", "=") if cursor.accept(sign)), None)
    if sign is None:
        cursor.fail("one of <=, >=, <, >, =")
    cursor.accept("=")
    right = _read_product(cursor)
    cursor.expect_end()
    return left, str(sign), right


# Nested strides: each stride is a multiple of what the modes before it span.


def _nested_order(modes: Modes) -> Modes | None:
    """Return the modes in an order in which each stride is a multiple of the extent times the stride before it."""
    rest = [mode for mode in modes if mode[0] != Monomial(1)]
    order: Modes = []
    while rest:
        fitting = [
            mode
            for mode in rest
            if mode[1].factor > 0 and (not order or _is_multiple(mode[1], order[-1][0] * order[-1][1]))
        ]
        smallest = [m for m in fitting if all(_is_multiple(other[1], m[0] * m[1]) for other in rest if other is not m)]
        if not smallest:
            return None
        order.append(smallest[0])
        rest.remove(smallest[0])
    return order


def _is_multiple(value: Monomial, of: Monomial) -> bool:
    quotient = value.quotient(of)
    return quotient is not None and quotient.factor >= 1


def _is_nested(modes: Modes) -> bool:
    return _nested_order(modes) is not None


def _fits_nested(modes: Modes, bound: Monomial) -> bool:
    order = _nested_order(modes)
    return order is not None and (not order or _is_multiple(bound, order[-1][0] * order[-1][1]))


# Presburger arithmetic.


def _prove_injective(modes: Modes, conditions: list[Any]) -> Proof:
    first, second = _names("a", modes), _names("b", modes)
    differs = " or ".join(
        [
            " and ".join([*[f"{first[j]} = {second[j]}" for j in range(k)], f"{first[k]} < {second[k]}"])
            for k in range(len(modes))
        ]
    )
    clauses = [*_inside(first, modes), *_inside(second, modes), f"({differs or '1 = 0'})"]
    clauses.append(f"{_offset_text(first, modes, 0)} = {_offset_text(second, modes, 0)}")
    example = _sample([*first, *second], clauses, modes, conditions, [])
    if example is None:
        return Proof("injective", True, "Presburger arithmetic")
    coordinates = tuple(example[name] for name in first), tuple(example[name] for name in second)
    return _refute(
        "injective", example, modes, coordinates=coordinates, offset=_value(coordinates[0], modes, 0, example)
    )


def _prove_within(modes: Modes, offset: int, bound: Monomial, conditions: list[Any]) -> Proof:
    names = _names("a", modes)
    place = _offset_text(names, modes, offset)
    clauses = [*_inside(names, modes), f"({place} < 0 or {place} >= {_linear_text(bound)})"]
    example = _sample(names, clauses, modes, conditions, [bound])
    claim = f"within {bound}"
    if example is None:
        return Proof(claim, True, "Presburger arithmetic")
    coordinate = tuple(example[name] for name in names)
    return _refute(claim, example, modes, coordinate=coordinate, offset=_value(coordinate, modes, offset, example))


def _prove_disjoint(modes: Modes, offset: int, others: Modes, shift: int, conditions: list[Any], other: str) -> Proof:
    first, second = _names("a", modes), _names("b", others)
    clauses = [*_inside(first, modes), *_inside(second, others)]
    clauses.append(f"{_offset_text(first, modes, offset)} = {_offset_text(second, others, shift)}")
    example = _sample([*first, *second], clauses, [*modes, *others], conditions, [])
    claim = f"disjoint from {other}"
    if example is None:
        return Proof(claim, True, "Presburger arithmetic")
    coordinates = tuple(example[name] for name in first), tuple(example[name] for name in second)
    place = _value(coordinates[0], modes, offset, example)
    return _refute(claim, example, [*modes, *others], coordinates=coordinates, offset=place)


def _refute(claim: str, example: Mapping[str, int], modes: Modes, **found: Any) -> Proof:
    sizes = {name: example[name] for name in _sizes(modes) if name in example}
    return Proof(claim, False, "Presburger arithmetic", {**sizes, **found})


def _names(prefix: str, modes: Modes) -> list[str]:
    return [f"{prefix}_{k}" for k in range(len(modes))]


def _sizes(modes: Modes) -> list[str]:
    return sorted({name for mode in modes for part in mode for name in part.names})


def _inside(names: Sequence[str], modes: Modes) -> list[str]:
    return [f"0 <= {name} < {_linear_text(extent)}" for name, (extent, _) in zip(names, modes, strict=True)]


def _linear_text(value: Monomial) -> str:
    if len(value.names) > 1:
        raise LayoutError(f"{value} multiplies sizes, which cannot be decided here; give all but one of them a number")
    return f"{value.factor}{value.names[0]}" if value.names else str(value.factor)


def _offset_text(names: Sequence[str], modes: Modes, offset: int) -> str:
    terms = []
    for name, (_, stride) in zip(names, modes, strict=True):
        if stride.names:
            raise LayoutError(
                f"a coordinate times the size {stride} cannot be decided unless strides nest; give {stride} a number"
            )
        terms.append(f"{stride.factor}{name}")
    return " + ".join([*terms, str(offset)])


def _value(coordinate: Sequence[int], modes: Modes, offset: int, example: Mapping[str, int]) -> int:
    strides = [stride.factor * prod(example[name] for name in stride.names) for _, stride in modes]
    return offset + sum(c * d for c, d in zip(coordinate, strides, strict=True))


def _sample(
    names: Sequence[str], clauses: Sequence[str], modes: Modes, conditions: Sequence[Any], bounds: Sequence[Monomial]
) -> dict[str, int] | None:
    """Return values of names and sizes that satisfy all clauses, or None if there are none."""
    try:
        import islpy
    except ImportError:
        raise MissingPackage(
            "this claim is decided by islpy, which is not installed; pip install 'tilewright[prove]'"
        ) from None
    sizes = sorted(
        {
            *_sizes(modes),
            *[n for bound in bounds for n in bound.names],
            *[n for a, _, b in conditions for n in a.names + b.names],
        }
    )
    given = [f"{_linear_text(left)} {sign} {_linear_text(right)}" for left, sign, right in conditions]
    variables = [*sizes, *names]
    text = " and ".join([*[f"{size} >= 1" for size in sizes], *given, *clauses])
    found = islpy.Set(f"{{ [{', '.join(variables)}] : {text} }}")
    if found.is_empty():
        return None
    point = found.lexmin().sample_point()  # the smallest sizes: all variables have a lower bound
    values = [point.get_coordinate_val(islpy.dim_type.set, k).to_python() for k in range(len(variables))]
    return dict(zip(variables, values, strict=True))

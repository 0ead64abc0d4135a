# SPDX-License-Identifier: Apache-2.0
"""C expressions: digits out of an index, offsets out of digits, and guards where an axis is not cut evenly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .axes import Axis, Digit

INT_MAX = 2**31 - 1


class Literals:
    """Numbers that depend on a shape, as they stand in a kernel: written out, so that compilers know them.

    >>> Literals().unsigned(12), Literals().signed(-4)
    ('12u', '-4')
    """

    always_guarded = False

    def unsigned(self, value: int) -> str:
        """Return a number of things."""
        return f"{value}u"

    def signed(self, value: int) -> str:
        """Return a number of bytes, which may be negative."""
        return str(value)


class Arguments(Literals):
    """The same as arguments of the kernel: shapes that are cut alike share one program, compiled once.

    >>> numbers = Arguments()
    >>> numbers.unsigned(12), numbers.signed(-4), numbers.values
    ('n0', 'n1', [('u32', 12), ('i32', -4)])
    """

    always_guarded = True

    def __init__(self) -> None:
        self.values: list[tuple[str, int]] = []

    def unsigned(self, value: int) -> str:
        """Return a number of things."""
        return self._named("u32", value)

    def signed(self, value: int) -> str:
        """Return a number of bytes, which may be negative."""
        return self._named("i32" if abs(value) <= INT_MAX else "i64", value)

    def _named(self, kind: str, value: int) -> str:
        self.values.append((kind, value))
        return f"n{len(self.values) - 1}"


LITERALS = Literals()


@dataclass(frozen=True, slots=True)
class Named:
    """A digit and the C expression that holds it.

    >>> Named(Digit(0, 4, 1), "t0").digit.count
    4
    """

    digit: Digit
    name: str


def decoded(index: str, digits: Sequence[Digit]) -> list[Named]:
    """Return each digit as an expression of an index, the first digit fastest.

    >>> [each.name for each in decoded("i", [Digit(0, 4, 1), Digit(1, 3, 1), Digit(0, 5, 4)])]
    ['i % 4u', 'i / 4u % 3u', 'i / 12u']
    """
    found, below = [], 1
    for k, digit in enumerate(digits):
        text = index if below == 1 else f"{index} / {below}u"
        found.append(Named(digit, text if k == len(digits) - 1 else f"{text} % {digit.count}u"))
        below *= digit.count
    return found


def declared(
    index: str, digits: Sequence[Digit], prefix: str, numbers: Literals = LITERALS
) -> tuple[list[str], list[Named]]:
    """Return declarations of variables that hold the digits of an index, and the digits with these names.

    >>> declared("thread", [Digit(0, 4, 1), Digit(1, 8, 1)], "t")[0]
    ['const u32 t0 = thread % 4u, t1 = thread / 4u;']
    >>> declared("group", [Digit(0, 4, 1), Digit(1, 8, 1)], "g", Arguments())[0]
    ['const u32 g_from1 = group / n0, g0 = group - g_from1 * n0, g1 = g_from1;']
    """
    if not digits:
        return [], []
    names = [Named(digit, f"{prefix}{k}") for k, digit in enumerate(digits)]
    if not isinstance(numbers, Arguments):
        nests = [f"{prefix}{k} = {each.name}" for k, each in enumerate(decoded(index, digits))]
        return [f"const u32 {', '.join(nests)};"], names
    nests, rest = [], index  # divisions that nobody can turn into shifts: as few as possible
    for k, digit in enumerate(digits[:-1]):
        count, above = numbers.unsigned(digit.count), f"{prefix}_from{k + 1}"
        nests += [f"{above} = {rest} / {count}", f"{prefix}{k} = {rest} - {above} * {count}"]
        rest = above
    return [f"const u32 {', '.join([*nests, f'{prefix}{len(digits) - 1} = {rest}'])};"], names


def term(name: str, step: int, wide: bool, numbers: Literals = LITERALS) -> str:
    """Return an index times a step, as a signed integer.

    >>> term("t0", -16, False), term("g1", 4096, True)
    ('(i32)(t0) * -16', '(i64)(g1) * 4096')
    """
    return f"({'i64' if wide else 'i32'})({name}) * {numbers.signed(step)}"


def offset(
    named: Iterable[Named], axes: Sequence[Axis], side: int, constant: int = 0, numbers: Literals = LITERALS
) -> str:
    """Return the bytes that digits add up to in one memory, with 64 bits only where 32 are too few.

    >>> offset([Named(Digit(0, 4, 2), "t0")], [Axis(8, (4, 64))], 0)
    '(i32)(t0) * 8'
    >>> offset([Named(Digit(0, 4, 2**30), "g0")], [Axis(2**32, (4, 64))], 0, 64)
    '(i64)(g0) * 4294967296 + 64'
    """
    terms = [(each, (axes[each.digit.axis].steps[side] or 0) * each.digit.radix) for each in named]
    reach = abs(constant) + sum((each.digit.count - 1) * abs(step) for each, step in terms)
    texts = [term(each.name, step, reach > INT_MAX, numbers) for each, step in terms if step]
    if constant or not texts:
        texts.append(str(constant))
    return " + ".join(texts)


def index_of(named: Iterable[Named], axis: int, numbers: Literals = LITERALS) -> str:
    """Return the index of one axis that its digits add up to.

    >>> index_of([Named(Digit(0, 4, 1), "t0"), Named(Digit(1, 4, 1), "t1"), Named(Digit(0, 5, 4), "g0")], 0)
    't0 + (g0) * 4u'
    """
    texts = [
        each.name if each.digit.radix == 1 else f"({each.name}) * {numbers.unsigned(each.digit.radix)}"
        for each in named
        if each.digit.axis == axis
    ]
    return " + ".join(texts) or "0u"


def guard(named: Sequence[Named], axes: Sequence[Axis], numbers: Literals = LITERALS) -> str:
    """Return the condition that all indices are inside, empty if they always are.

    >>> guard([Named(Digit(0, 4, 1), "t0"), Named(Digit(0, 2, 4), "g0")], [Axis(7, (4, 4))])
    't0 + (g0) * 4u < 7u'
    """
    conditions = []
    for k, axis in enumerate(axes):
        own = [each for each in named if each.digit.axis == k]
        last = sum((each.digit.count - 1) * each.digit.radix for each in own)
        if last >= axis.extent or (numbers.always_guarded and len(own) > 1):
            conditions.append(f"{index_of(own, k, numbers)} < {numbers.unsigned(axis.extent)}")
    return " && ".join(conditions)


def indented(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Return lines moved to the right.

    >>> indented(["a"])
    ['    a']
    """
    return ["    " * depth + line for line in lines]


def loop(name: str, count: int, body: Sequence[str]) -> list[str]:
    """Return an unrolled loop, or its body alone if it runs once.

    >>> loop("r", 2, ["go(r);"])
    ['UNROLL', 'for (u32 r = 0; r < 2u; ++r) {', '    go(r);', '}']
    """
    if count == 1:
        return ["{", *indented([f"const u32 {name} = 0;", *body]), "}"]
    return ["UNROLL", f"for (u32 {name} = 0; {name} < {count}u; ++{name}) {{", *indented(body), "}"]


def when(condition: str, body: Sequence[str]) -> list[str]:
    """Return a body under a condition, or the body alone if there is none.

    >>> when("", ["go();"]), when("ok", ["go();"])
    (['go();'], ['if (ok) {', '    go();', '}'])
    """
    return [f"if ({condition}) {{", *indented(body), "}"] if condition else list(body)

# SPDX-License-Identifier: Apache-2.0
"""The C of kernels: its two dialects, OpenCL and CUDA, with their headers, and expressions and statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ...errors import TransferError
from .thread_mapping import Digit, LoopAxis

INT_MAX = 2**31 - 1


@cache
def read_header(name: str) -> str:
    """Return the text of a header of this package, without its licence and summary.

    >>> read_header("cuda_double").splitlines()[0]
    'typedef double f64;'
    """
    text = resources.files(__package__).joinpath("headers", f"{name}.h").read_text(encoding="utf-8")
    return text.split("\n", 2)[2]


@cache
def read_sections(name: str) -> dict[str, str]:
    """Return the sections of a header by their titles, each after a line `// == title`.

    >>> list(read_sections("conversions"))[:2]
    ['half_value', 'e4m3_value']
    """
    _, *parts = read_header(name).split("\n// == ")
    titled = [part.partition("\n") for part in parts]
    return {title: f"{text.strip()}\n" for title, _, text in titled}


@dataclass(frozen=True, slots=True)
class CDialect:
    """A dialect of C: its prelude, what float64, blocks and asynchronous copies need, whether threads can exchange
    registers (`shuffles`), and whether arguments have start offsets (`starts`).

    >>> c_dialect("cuda").shuffles, c_dialect("opencl").starts
    (True, True)
    """

    name: str
    prelude: str
    doubles: str
    blocks: str
    async_copies: str
    shuffles: bool
    starts: bool


def c_dialect(name: str, unroll: bool = True) -> CDialect:
    """Return the dialect "opencl" or "cuda"; without `unroll`, OpenCL does not unroll loops.

    >>> c_dialect("opencl").name
    'opencl'
    """
    if name not in ("opencl", "cuda"):
        raise TransferError(f"unknown dialect {name!r}; use 'opencl' or 'cuda'")
    pragma = '_Pragma("unroll")' if unroll or name == "cuda" else ""
    prelude = f"#define UNROLL {pragma}\n{read_header(name)}"
    double, blocks, async_copies = [read_header(f"{name}_{part}") for part in ("double", "blocks", "async")]
    return CDialect(name, prelude, double, blocks, async_copies, shuffles=name == "cuda", starts=name == "opencl")


@dataclass(frozen=True, slots=True)
class NamedDigit:
    """A digit and its C expression.

    >>> NamedDigit(Digit(0, 4, 1), "t0").digit.count
    4
    """

    digit: Digit
    name: str


def digit_expressions(index: str, digits: Sequence[Digit]) -> list[NamedDigit]:
    """Return the expression of each digit of an index, the first digit fastest.

    >>> [digit.name for digit in digit_expressions("i", [Digit(0, 4, 1), Digit(1, 3, 1), Digit(0, 5, 4)])]
    ['i % 4u', 'i / 4u % 3u', 'i / 12u']
    """
    found, below = [], 1
    for k, digit in enumerate(digits):
        text = index if below == 1 else f"{index} / {below}u"
        found.append(NamedDigit(digit, text if k == len(digits) - 1 else f"{text} % {digit.count}u"))
        below *= digit.count
    return found


def declare_digits(index: str, digits: Sequence[Digit], prefix: str) -> tuple[list[str], list[NamedDigit]]:
    """Return declarations of variables for the digits of an index, and the digits with these names.

    >>> declare_digits("thread", [Digit(0, 4, 1), Digit(1, 8, 1)], "t")[0]
    ['const u32 t0 = thread % 4u, t1 = thread / 4u;']
    """
    if not digits:
        return [], []
    names = [NamedDigit(digit, f"{prefix}{k}") for k, digit in enumerate(digits)]
    declarations = [f"{prefix}{k} = {digit.name}" for k, digit in enumerate(digit_expressions(index, digits))]
    return [f"const u32 {', '.join(declarations)};"], names


def product_term(name: str, step: int, wide: bool) -> str:
    """Return the product of an index and a step, as a signed integer.

    >>> product_term("t0", -16, False), product_term("g1", 4096, True)
    ('(i32)(t0) * -16', '(i64)(g1) * 4096')
    """
    return f"({'i64' if wide else 'i32'})({name}) * {step}"


def offset_expression(digits: Iterable[NamedDigit], axes: Sequence[LoopAxis], side: int, constant: int = 0) -> str:
    """Return the offset in bytes of digits on one side, in 64 bits only if 32 are too few.

    >>> offset_expression([NamedDigit(Digit(0, 4, 2), "t0")], [LoopAxis(8, (4, 64))], 0)
    '(i32)(t0) * 8'
    >>> offset_expression([NamedDigit(Digit(0, 4, 2**30), "g0")], [LoopAxis(2**32, (4, 64))], 0, 64)
    '(i64)(g0) * 4294967296 + 64'
    """
    terms = [(digit, (axes[digit.digit.axis].steps[side] or 0) * digit.digit.radix) for digit in digits]
    reach = abs(constant) + sum((digit.digit.count - 1) * abs(step) for digit, step in terms)
    texts = [product_term(digit.name, step, reach > INT_MAX) for digit, step in terms if step]
    if constant or not texts:
        texts.append(str(constant))
    return " + ".join(texts)


def index_expression(digits: Iterable[NamedDigit], axis: int) -> str:
    """Return the index along one axis.

    >>> index_expression(
    ...     [NamedDigit(Digit(0, 4, 1), "t0"), NamedDigit(Digit(1, 4, 1), "t1"), NamedDigit(Digit(0, 5, 4), "g0")], 0
    ... )
    't0 + (g0) * 4u'
    """
    texts = [
        digit.name if digit.digit.radix == 1 else f"({digit.name}) * {digit.digit.radix}u"
        for digit in digits
        if digit.digit.axis == axis
    ]
    return " + ".join(texts) or "0u"


def guard_expression(digits: Sequence[NamedDigit], axes: Sequence[LoopAxis]) -> str:
    """Return the condition that all indices are inside their axes; empty if they always are.

    >>> guard_expression([NamedDigit(Digit(0, 4, 1), "t0"), NamedDigit(Digit(0, 2, 4), "g0")], [LoopAxis(7, (4, 4))])
    't0 + (g0) * 4u < 7u'
    """
    conditions = []
    for k, axis in enumerate(axes):
        own = [digit for digit in digits if digit.digit.axis == k]
        last = sum((digit.digit.count - 1) * digit.digit.radix for digit in own)
        if last >= axis.extent:
            conditions.append(f"{index_expression(own, k)} < {axis.extent}u")
    return " && ".join(conditions)


def indent(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Return indented lines.

    >>> indent(["a"])
    ['    a']
    """
    return ["    " * depth + line for line in lines]


def unrolled_loop(name: str, count: int, body: Sequence[str]) -> list[str]:
    """Return an unrolled loop, or only its body if it runs once.

    >>> unrolled_loop("r", 2, ["go(r);"])
    ['UNROLL', 'for (u32 r = 0; r < 2u; ++r) {', '    go(r);', '}']
    """
    if count == 1:
        return ["{", *indent([f"const u32 {name} = 0;", *body]), "}"]
    return ["UNROLL", f"for (u32 {name} = 0; {name} < {count}u; ++{name}) {{", *indent(body), "}"]


def shared_loop(name: str, total: int, threads: int, condition: str, body: Sequence[str]) -> list[str]:
    """Return an unrolled loop in which `threads` threads share `total` items: `at` is an item that meets the condition.

    >>> shared_loop("r", 5, 4, "", ["go(at);"])[2:4]
    ['    const u32 at = thread + r * 4u;', '    if (at < 5u) {']
    """
    if total % threads:
        condition = " && ".join(filter(None, [f"at < {total}u", condition]))
    items = [f"const u32 at = thread + {name} * {threads}u;", *conditional(condition, body)]
    return unrolled_loop(name, -(-total // threads), items)


def conditional(condition: str, body: Sequence[str]) -> list[str]:
    """Return statements under a condition, or alone if the condition is empty.

    >>> conditional("", ["go();"]), conditional("ok", ["go();"])
    (['go();'], ['if (ok) {', '    go();', '}'])
    """
    return [f"if ({condition}) {{", *indent(body), "}"] if condition else list(body)

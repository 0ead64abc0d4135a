# SPDX-License-Identifier: Apache-2.0
"""The index function of a layout as source text, to paste into a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ..errors import LayoutError
from .tuples import as_tuple, leaves

Language = Literal["cuda", "opencl", "triton", "python", "mlir"]
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class IndexExpression:
    """An expression of integers: an argument, a constant, or an operation on two expressions.

    >>> str(IndexExpression.argument("i") * 8 + IndexExpression.argument("j"))
    'i * 8 + j'
    """

    operation: str  # "argument", "constant", or one of + * / % ^ & >> <<
    left: Any
    right: Any = None

    @classmethod
    def argument(cls, name: str) -> IndexExpression:
        """Return an argument."""
        return cls("argument", name)

    @classmethod
    def constant(cls, value: int) -> IndexExpression:
        """Return a constant."""
        return cls("constant", value)

    def _combine(self, operation: str, other: IndexExpression | int) -> IndexExpression:
        right = other if isinstance(other, IndexExpression) else IndexExpression.constant(other)
        is_constant = right.operation == "constant"
        neutral = {"*": 1, "/": 1, "+": 0, "^": 0, ">>": 0, "<<": 0}.get(operation)
        if is_constant and right.left == neutral:
            return self
        if is_constant and right.left == 0 and operation in ("*", "&"):
            return right
        if operation in ("+", "^") and self == IndexExpression.constant(0):
            return right
        return IndexExpression(operation, self, right)

    def __add__(self, other: IndexExpression | int) -> IndexExpression:
        return self._combine("+", other)

    def __mul__(self, other: int) -> IndexExpression:
        return self._combine("*", other)

    def __floordiv__(self, other: int) -> IndexExpression:
        return self._combine("/", other)

    def __mod__(self, other: int) -> IndexExpression:
        return self._combine("%", other)

    def __xor__(self, other: IndexExpression | int) -> IndexExpression:
        return self._combine("^", other)

    def __and__(self, other: int) -> IndexExpression:
        return self._combine("&", other)

    def __rshift__(self, other: int) -> IndexExpression:
        return self._combine(">>", other)

    def __lshift__(self, other: int) -> IndexExpression:
        return self._combine("<<", other)

    def __str__(self) -> str:
        return format_expression(self)


_LEVELS = {"*": 5, "/": 5, "%": 5, "+": 4, "<<": 3, ">>": 3, "&": 2, "^": 1}


def format_expression(expression: IndexExpression, division: str = "/") -> str:
    """Return an expression as text, with the sign for `division` that the language has for integers.

    >>> format_expression(IndexExpression.argument("i") // 8 % 4, "//")
    'i // 8 % 4'
    """
    return _format(expression, division)[0]


def _format(expression: IndexExpression, division: str) -> tuple[str, int]:
    if expression.operation in ("argument", "constant"):
        negative = expression.operation == "constant" and expression.left < 0
        return (f"({expression.left})" if negative else str(expression.left)), 6
    level = _LEVELS[expression.operation]
    left, left_level = _format(expression.left, division)
    right, right_level = _format(expression.right, division)
    # bit operators get parentheses around everything but names and numbers: their precedence is rarely known by heart
    is_bitwise = level < 4
    left = left if left_level > 5 or (left_level >= level and not is_bitwise) else f"({left})"
    right = right if right_level > level and (right_level > 5 or not is_bitwise) else f"({right})"
    sign = division if expression.operation == "/" else expression.operation
    return f"{left} {sign} {right}", level


class HasIndex(Protocol):
    """Objects with an index function: layouts, swizzles, linear maps."""

    def index_expression(self, arguments: tuple[IndexExpression, ...]) -> IndexExpression:
        """Return the offset as an expression of the coordinates, one per mode, or one for all."""
        ...


def strided_expression(
    shape: object, stride: object, offset: int, arguments: tuple[IndexExpression, ...]
) -> IndexExpression:
    """Return the offset of a strided layout: the sum of the parts of its coordinates times their strides.

    >>> print(
    ...     strided_expression(
    ...         ((2, 4), 8), ((1, 16), 2), 5, (IndexExpression.argument("i"), IndexExpression.argument("j"))
    ...     )
    ... )
    i % 2 + i / 2 * 16 + j * 2 + 5
    """
    modes = list(zip(as_tuple(shape), as_tuple(stride), strict=True))
    if len(arguments) == 1 and len(modes) != 1:
        modes = [(shape, stride)]
    total = IndexExpression.constant(0)
    for argument, (extents, strides) in zip(arguments, modes, strict=True):
        pairs = [(int(n), int(d)) for n, d in zip(leaves(extents), leaves(strides), strict=True)]
        divisor = 1
        for k, (extent, step) in enumerate(pairs):
            is_last = all(n == 1 for n, _ in pairs[k + 1 :])
            if extent > 1 and step:
                part = argument // divisor
                total = total + (part if is_last else part % extent) * step
            divisor *= extent
    return total + offset


def write_index_code(
    layout: HasIndex, rank: int, language: str, name: str, is_wide: bool = False, is_signed: bool = False
) -> str:
    """Return a function of `rank` coordinates in a `language` that computes an offset; see `LayoutLike.code`.

    `is_wide` takes 64 bits, `is_signed` signed numbers.

    >>> from tilewright import Swizzle
    >>> print(write_index_code(Swizzle(2, 0, 2), 1, "opencl", "place"))
    static inline uint place(uint i0) {
        return i0 ^ ((i0 & 12) >> 2);
    }
    """
    if language not in _WRITERS:
        raise LayoutError(f"unknown language {language!r}; code can be written in {', '.join(_WRITERS)}")
    if not _NAME.fullmatch(name):
        raise LayoutError(f"{name!r} is not a name for a function")
    names = tuple([f"i{k}" for k in range(rank)])
    expression = layout.index_expression(tuple(map(IndexExpression.argument, names)))
    return _WRITERS[language](name, names, expression, is_wide, is_signed)


def _hoist(expression: IndexExpression) -> tuple[list[tuple[str, IndexExpression]], IndexExpression]:
    """Return the parts that a swizzle uses twice as named values, and the expression with their names."""
    named: list[tuple[str, IndexExpression]] = []

    def replace(node: object) -> Any:
        if not isinstance(node, IndexExpression) or node.operation in ("argument", "constant"):
            return node
        left, right = replace(node.left), replace(node.right)
        if (
            node.operation == "^"
            and isinstance(left, IndexExpression)
            and left.operation in "+*/%"
            and _contains(right, left)
        ):
            named.append((f"x{len(named)}" if named else "x", left))
            name = IndexExpression.argument(named[-1][0])
            left, right = name, _substitute(right, left, name)
        return IndexExpression(node.operation, left, right)

    return named, replace(expression)


def _contains(node: object, part: IndexExpression) -> bool:
    return isinstance(node, IndexExpression) and (
        node == part or _contains(node.left, part) or _contains(node.right, part)
    )


def _substitute(node: object, part: IndexExpression, name: IndexExpression) -> Any:
    if not isinstance(node, IndexExpression):
        return node
    if node == part:
        return name
    return IndexExpression(node.operation, _substitute(node.left, part, name), _substitute(node.right, part, name))


def _write_c(prefix: str, types: tuple[str, str, str, str]) -> Callable[..., str]:
    """Return a writer of C, with its unsigned and signed types of 32 and 64 bits."""

    def write(name: str, names: tuple[str, ...], expression: IndexExpression, is_wide: bool, is_signed: bool) -> str:
        integer = types[2 * is_signed + is_wide]
        arguments = ", ".join([f"{integer} {argument}" for argument in names])
        named, result = _hoist(expression)
        lines = [f"    const {integer} {part} = {format_expression(value)};" for part, value in named]
        body = "\n".join([*lines, f"    return {format_expression(result)};"])
        return f"{prefix}{integer} {name}({arguments}) {{\n{body}\n}}"

    return write


def _write_python(
    name: str, names: tuple[str, ...], expression: IndexExpression, is_wide: bool, is_signed: bool
) -> str:
    named, result = _hoist(expression)
    lines = [f"    {part} = {format_expression(value, '//')}" for part, value in named]
    return "\n".join([f"def {name}({', '.join(names)}):", *lines, f"    return {format_expression(result, '//')}"])


def _write_triton(
    name: str, names: tuple[str, ...], expression: IndexExpression, is_wide: bool, is_signed: bool
) -> str:
    head, *body = _write_python(name, names, expression, is_wide, is_signed).splitlines()
    # the coordinates of a kernel have 32 bits, and so would all that is computed from them
    casts = [f"    {argument} = tl.cast({argument}, tl.int64)" for argument in names] if is_wide else []
    return "\n".join(["@triton.jit", head, *casts, *body])


def _write_mlir(name: str, names: tuple[str, ...], expression: IndexExpression, is_wide: bool, is_signed: bool) -> str:
    """Return a function of arith operations on index values."""
    integer, lines = "index", list[str]()
    operations = {
        "+": "addi",
        "*": "muli",
        "/": "divui",
        "%": "remui",
        "^": "xori",
        "&": "andi",
        ">>": "shrui",
        "<<": "shli",
    }
    known: dict[Any, str] = {}

    def value(node: IndexExpression) -> str:
        if node.operation == "argument":
            return f"%{node.left}"
        if node not in known:
            if node.operation == "constant":
                text = f"arith.constant {node.left} : {integer}"
            else:
                left, right = value(node.left), value(node.right)
                text = f"arith.{operations[node.operation]} {left}, {right} : {integer}"
            known[node] = f"%{len(known)}"
            lines.append(f"  {known[node]} = {text}")
        return known[node]

    result = value(expression)
    arguments = ", ".join([f"%{argument}: {integer}" for argument in names])
    return "\n".join([f"func.func @{name}({arguments}) -> {integer} {{", *lines, f"  return {result} : {integer}", "}"])


_WRITERS: dict[str, Callable[..., str]] = {
    "cuda": _write_c("__device__ __forceinline__ ", ("unsigned int", "unsigned long long", "int", "long long")),
    "opencl": _write_c("static inline ", ("uint", "ulong", "int", "long")),
    "triton": _write_triton,
    "python": _write_python,
    "mlir": _write_mlir,
}

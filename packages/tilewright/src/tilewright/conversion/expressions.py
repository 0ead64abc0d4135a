# SPDX-License-Identifier: Apache-2.0
"""Expressions over tensors and numbers, as recipes and rules write them: a small, safe part of Python.

    transpose(join(tensor("q_proj.weight"), tensor("k_proj.weight")))

Nothing is executed but arithmetic, comparisons, comprehensions and the functions listed here. `validate` finds what can
be found without values: syntax, and names that do not exist.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from .._integers import ceil_div, round_up
from ..copying.assembly import Assembly, join
from ..errors import FormatError, TilewrightError

_MAX_LENGTH = 1 << 16  # characters of an expression
_MAX_ITEMS = 1 << 20  # of a range


class ExpressionError(FormatError):
    """An expression that cannot be read or evaluated; the message quotes the innermost one.

    >>> try:
    ...     evaluate("1 // 0", {})
    ... except ExpressionError as problem:
    ...     print(problem)
    1 // 0: integer division or modulo by zero
    """


def _as_list(tensors: tuple[Any, ...]) -> Sequence[Assembly]:
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def _join(*tensors: Any, axis: int = 0) -> Assembly:
    return join(_as_list(tensors), axis)


def _stack(*tensors: Any) -> Assembly:
    return join([each.reshape(1, *each.shape) for each in _as_list(tensors)])


def _pairs(tensor: Assembly, heads: int = 1) -> Assembly:
    """Return the rows of every head in pairs, one of each half: from the order of rotated halves to that of pairs."""
    rows, rest = tensor.shape[0], tensor.shape[1:]
    half = rows // heads // 2
    axes = range(3, 3 + len(rest))
    return tensor.reshape(heads, 2, half, *rest).transpose((0, 2, 1, *axes)).reshape(rows, *rest)


def _match(pattern: str, text: str) -> str | None:
    """Return the first group of a regular expression that matches the start of a text, or None."""
    found = re.match(pattern, text)
    return None if found is None else found[1]


def _range(*bounds: int) -> range:
    result = range(*bounds)
    if len(result) > _MAX_ITEMS:
        raise FormatError(f"range of {len(result)} items is longer than {_MAX_ITEMS}")
    return result


def _multiply(one: Any, other: Any) -> Any:
    if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):  # no text of any length
        raise FormatError(f"expected two numbers to multiply, got {one!r} and {other!r}")
    return one * other


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "join": _join,
    "stack": _stack,
    "transpose": Assembly.transpose,
    "reshape": Assembly.reshape,
    "slice": Assembly.slice,
    "chunk": Assembly.chunk,
    "pad": Assembly.pad,
    "repeat": Assembly.repeat,
    "pairs": _pairs,
    "shape": lambda tensor: tensor.shape,
    "range": _range,
    "integer": int,
    "len": len,
    "min": min,
    "max": max,
    "any": any,
    "all": all,
    "lower": str.lower,
    "starts": str.startswith,
    "match": _match,
    "ceil_div": ceil_div,
    "round_up": round_up,
}
"""The functions of expressions; rules add `tensor(name)`, and recipes what `RecipeRun` defines."""

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, group: value in group,
    ast.NotIn: lambda value, group: value not in group,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression.

    Args:
        text: the expression, such as "transpose(tensor('w'))".
        names: the variables and further functions that it may use.

    >>> evaluate("round_up(vocabulary, 32 * devices)", {"vocabulary": 2003, "devices": 2})
    2048
    >>> evaluate("transpose(w)", {"w": Assembly.of("w", (4, 6))}).shape
    (6, 4)
    """
    tree = _parse(text)
    try:
        return _Evaluator({**FUNCTIONS, **names}).evaluate(tree)
    except ExpressionError:
        raise
    except TilewrightError as problem:
        raise ExpressionError(f"{text}: {problem}") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as problem:
        raise ExpressionError(f"{text}: {problem}") from None


def validate(text: str, names: Collection[str]) -> None:
    """Raise unless an expression can be read and uses only known names.

    Args:
        text: the expression.
        names: the variables and further functions that it may use.

    >>> try:
    ...     validate("round_up(vocabulry, 32)", ["vocabulary"])
    ... except ExpressionError as problem:
    ...     print(problem)
    round_up(vocabulry, 32): unknown name 'vocabulry'; did you mean 'vocabulary'?
    """
    tree = _parse(text)
    bound = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    known = {*FUNCTIONS, *names, *bound}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in known:
            raise ExpressionError(f"{text}: {_describe_unknown(node.id, known)}")
        is_known = hasattr(_Evaluator, f"_{type(node).__name__.lower()}")
        if isinstance(node, ast.expr) and not is_known and not isinstance(node, (ast.FormattedValue, ast.Starred)):
            raise ExpressionError(f"{text}: {type(node).__name__} is not possible in an expression")
        if isinstance(node, ast.operator | ast.unaryop | ast.cmpop) and type(node) not in _OPERATORS:
            raise ExpressionError(f"{text}: the operator {type(node).__name__} is not possible in an expression")


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    """Return the tree of an expression."""
    if len(text) > _MAX_LENGTH:
        raise ExpressionError(f"an expression of {len(text)} characters is longer than {_MAX_LENGTH}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        reason = f"{problem.msg} at column {problem.offset}" if isinstance(problem, SyntaxError) else str(problem)
        raise ExpressionError(f"cannot read the expression {text!r}: {reason}") from None


def _describe_unknown(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, list(known), 1)
    return f"unknown name {name!r}; " + (
        f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}"
    )


class _Evaluator:
    """Evaluates the nodes of an expression with some names."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = dict(names)

    def evaluate(self, node: ast.AST) -> Any:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise FormatError(f"{type(node).__name__} is not possible in an expression")
        return method(node)

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            raise FormatError(_describe_unknown(node.id, self.names))
        return self.names[node.id]

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._list(node))

    def _list(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [value for each in node.elts for value in self._arguments(each)]

    def _dict(self, node: ast.Dict) -> Any:
        return {
            self.evaluate(key): self.evaluate(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }

    def _binop(self, node: ast.BinOp) -> Any:
        return self._operator(node.op)(self.evaluate(node.left), self.evaluate(node.right))

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        return self._operator(node.op)(self.evaluate(node.operand))

    def _boolop(self, node: ast.BoolOp) -> Any:
        is_or = isinstance(node.op, ast.Or)
        value: Any = None
        for each in node.values:
            value = self.evaluate(each)
            if bool(value) == is_or:
                return value
        return value

    def _compare(self, node: ast.Compare) -> bool:
        left = self.evaluate(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator)
            if not self._operator(op)(left, right):
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp) -> Any:
        return self.evaluate(node.body if self.evaluate(node.test) else node.orelse)

    def _subscript(self, node: ast.Subscript) -> Any:
        value, index = self.evaluate(node.value), self.evaluate(node.slice)
        return value[index]

    def _slice(self, node: ast.Slice) -> slice:
        return slice(*[None if each is None else self.evaluate(each) for each in (node.lower, node.upper, node.step)])

    def _joinedstr(self, node: ast.JoinedStr) -> str:
        parts = [each.value if isinstance(each, ast.FormattedValue) else each for each in node.values]
        return "".join([str(self.evaluate(each)) for each in parts])

    def _call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name):
            raise FormatError("only functions can be called in an expression, by their name")
        arguments = [value for each in node.args for value in self._arguments(each)]
        keywords = {each.arg: self.evaluate(each.value) for each in node.keywords if each.arg is not None}
        if len(keywords) < len(node.keywords):
            raise FormatError("** is not possible in an expression")
        return self._name(node.func)(*arguments, **keywords)

    def _arguments(self, node: ast.AST) -> Sequence[Any]:
        return tuple(self.evaluate(node.value)) if isinstance(node, ast.Starred) else (self.evaluate(node),)

    def _listcomp(self, node: ast.ListComp) -> list[Any]:
        return list(self._items(node.elt, node.generators))

    def _generatorexp(self, node: ast.GeneratorExp) -> list[Any]:
        return list(self._items(node.elt, node.generators))

    def _items(self, item: ast.AST, generators: list[ast.comprehension]) -> Iterator[Any]:
        if not generators:
            yield self.evaluate(item)
            return
        first, *others = generators
        for value in self.evaluate(first.iter):
            inner = _Evaluator({**self.names, **_bind(first.target, value)})
            if all(inner.evaluate(test) for test in first.ifs):
                yield from inner._items(item, others)

    def _operator(self, node: ast.AST) -> Callable[..., Any]:
        if type(node) not in _OPERATORS:
            raise FormatError(f"the operator {type(node).__name__} is not possible in an expression")
        return _OPERATORS[type(node)]


def _bind(target: ast.AST, value: Any) -> dict[str, Any]:
    """Return the names that a comprehension gives to a value."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple):
        return {
            name: item
            for each, part in zip(target.elts, value, strict=True)
            for name, item in _bind(each, part).items()
        }
    raise FormatError(f"{type(target).__name__} cannot be the variable of a comprehension")

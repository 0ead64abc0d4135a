# SPDX-License-Identifier: Apache-2.0
"""TVM's index maps, such as `lambda n, c, h, w: [n, c // 16, h, w, c % 16]`, in and out."""

from __future__ import annotations

import ast
import re
from math import prod

from ..errors import FileFormatError, LayoutError
from ..layout import LayoutLike
from .index_maps import IndexMap, Term, index_digit
from .strided_parts import compact_parts, logical_extents, stored_extents

MAX_TEXT = 1 << 14
LOOKS_LIKE = re.compile(r"\s*(?:T\.index_map\(\s*)?lambda\b")
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}
_SYMBOLS = {"floordiv": "//", "mod": "%", "+": "+", "-": "-", "*": "*"}


def parse_index_map(text: str) -> IndexMap:
    """Return the map that a `text` describes: a lambda, with `T.index_map(...)` around it or without.

    >>> blocked = parse_index_map("lambda n, c, h, w: [n, c // 16, h, w, c % 16]")
    >>> blocked(1, 27, 3, 2), blocked.layout((2, 32, 5, 7))(1, 27, 3, 2)
    ((1, 1, 3, 2, 11), 2059)
    """
    if len(text) > MAX_TEXT:
        raise FileFormatError(f"an index map has at most {MAX_TEXT} characters, got {len(text)}")
    try:
        node: ast.AST = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise FileFormatError(f"{text[:60]!r} is not an index map: expected lambda i, j: [...] ({problem})") from None
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("T.index_map", "tir.index_map") and node.args:
        if len(node.args) > 1 or node.keywords:
            unread = ", ".join(map(ast.unparse, [*node.args[1:], *node.keywords]))
            raise FileFormatError(
                f"an index map is read from its lambda alone, got {unread[:60]!r} as well; leave it out"
            )
        node = node.args[0]
    if not isinstance(node, ast.Lambda) or ast.unparse(node.args) != ", ".join([each.arg for each in node.args.args]):
        raise FileFormatError(
            f"{text[:60]!r} is not an index map: expected lambda with plain names, such as lambda i, j: [j, i]"
        )
    names = tuple([argument.arg for argument in node.args.args])
    if len(set(names)) != len(names):
        raise FileFormatError(
            f"{text[:60]!r} is not an index map: every name must be given once, got {', '.join(names)}"
        )
    body = node.body.elts if isinstance(node.body, (ast.List, ast.Tuple)) else [node.body]
    try:
        return IndexMap(names, tuple([_read_term(part, names, 0) for part in body]))
    except LayoutError as problem:
        raise FileFormatError(f"{text[:60]!r} is not an index map: {problem}") from None


def _read_term(node: ast.AST, names: tuple[str, ...], depth: int) -> Term:
    if depth > 100:
        raise LayoutError("it has more than 100 operations within each other")
    if isinstance(node, ast.Name) and node.id in names:
        return Term.input(node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Term.number(node.value)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("T.int64", "T.int32"):
        if len(node.args) != 1 or node.keywords:
            raise LayoutError(f"{ast.unparse(node)[:40]!r} is not a single integer")
        return _read_term(node.args[0], names, depth + 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return Term.number(0).combine("-", _read_term(node.operand, names, depth + 1))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _read_term(node.left, names, depth + 1), _read_term(node.right, names, depth + 1)
        return left.combine(_OPERATORS[type(node.op)], right)
    raise LayoutError(f"{ast.unparse(node)[:40]!r} is not an index, an integer or one of + - * // %")


def write_index_map(index_map: IndexMap) -> str:
    """Return an `index_map` as a lambda.

    >>> write_index_map(parse_index_map("lambda c: [c // 16, c % 16]"))
    'lambda c: [c // 16, c % 16]'
    """
    for result in index_map.results:
        if unknown := result.operations() - set(_SYMBOLS):
            raise LayoutError(f"TVM's index maps have no {unknown.pop()}, as in {result.format()}")
    results = ", ".join([result.format(_SYMBOLS) for result in index_map.results])
    return f"lambda {', '.join(index_map.inputs)}: [{results}]"


def write_index_lambda(layout: LayoutLike) -> str:
    """Return a compact `layout` as TVM's index map: its parts from the outermost to the innermost.

    >>> from tilewright import Layout
    >>> write_index_lambda(Layout(((2, 2), 4), ((1, 8), 2)))
    'lambda i0, i1: [i0 // 2, i1, i0 % 2]'
    """
    parts, shape = compact_parts(layout, "TVM"), logical_extents(layout)
    names = tuple([f"i{k}" for k in range(len(shape))])
    index_map = IndexMap(names, tuple([index_digit(part, names) for part in parts]) or (Term.number(0),))
    if prod(index_map.mapped_shape(shape)) != prod(stored_extents(layout)):
        raise LayoutError(f"{layout} has more padding than its parts need; TVM's mapped arrays have none beyond that")
    return write_index_map(index_map)

# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of numbers as they are written: Mojo computes it exactly, and rounds the result."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from fractions import Fraction
from math import isfinite

_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def fold(node: ast.expr) -> Fraction | None:
    """Return the exact value of an expression of literals with a floating-point number or a quotient; else None.

    >>> float(fold(ast.parse("0.1 + 0.2", mode="eval").body)), fold(ast.parse("1 + 2", mode="eval").body)
    (0.3, None)
    """
    return None if is_whole(node) else _evaluate(node)


def is_whole(node: ast.expr) -> bool:
    """Return whether an expression has only integers, and operations that give integers.

    >>> is_whole(ast.parse("1 + 2", mode="eval").body), is_whole(ast.parse("1 / 2", mode="eval").body)
    (True, False)
    """
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.Div) and is_whole(node.left) and is_whole(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_whole(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) is int


def _evaluate(node: ast.expr) -> Fraction | None:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value = node.value
        is_small = (type(value) is float and isfinite(value)) or (type(value) is int and abs(value) < 2**64)
        return Fraction(repr(value)) if is_small else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _evaluate(node.operand)
        return None if inner is None else -inner
    if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATIONS:
        return None
    left, right = _evaluate(node.left), _evaluate(node.right)
    if left is None or right is None or (isinstance(node.op, ast.Div) and right == 0):
        return None
    result = _OPERATIONS[type(node.op)](left, right)
    return result if abs(result) < 2**1000 and result.denominator.bit_length() < 10_000 else None

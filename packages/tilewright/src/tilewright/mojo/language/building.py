# SPDX-License-Identifier: Apache-2.0
"""Small pieces of Python's syntax tree, with the position of the Mojo node that they stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TypeVar

from .scopes import FunctionScope

Node = TypeVar("Node", bound=ast.AST)

SUPPORT = "mojo·"  # starts the names of run-time support, which no Mojo program can spell


def at(node: Node, place: ast.AST) -> Node:
    """Return the node with the position of `place`.

    >>> at(ast.Name("x"), ast.Name("y", lineno=3, col_offset=1)).lineno
    3
    """
    return ast.copy_location(node, place)


def load(name: str, place: ast.AST) -> ast.Name:
    """Return the value of a name."""
    return at(ast.Name(id=name, ctx=ast.Load()), place)


def constant(value: object, place: ast.AST) -> ast.Constant:
    """Return a constant."""
    return at(ast.Constant(value=value), place)  # type: ignore[arg-type]


def call(function: ast.expr, arguments: Sequence[ast.expr], place: ast.AST, **options: ast.expr) -> ast.Call:
    """Return a call with arguments and options."""
    keywords = [ast.keyword(arg=name, value=value) for name, value in options.items()]
    return at(ast.Call(func=function, args=list(arguments), keywords=keywords), place)


def support(name: str, arguments: Sequence[ast.expr], place: ast.AST, **options: ast.expr) -> ast.Call:
    """Return a call of run-time support.

    >>> place = ast.Constant(value=0, lineno=1, col_offset=0)
    >>> ast.unparse(support("convert", [constant(1, place)], place))
    'mojo·convert(1)'
    """
    return call(load(SUPPORT + name, place), arguments, place, **options)


def make_tuple(elements: Iterable[ast.expr], place: ast.AST) -> ast.Tuple:
    """Return a tuple."""
    return at(ast.Tuple(elts=list(elements), ctx=ast.Load()), place)


def make_dict(items: Iterable[ast.keyword], place: ast.AST) -> ast.Dict:
    """Return the dictionary of keyword arguments."""
    pairs = [(None if item.arg is None else constant(item.arg, place), item.value) for item in items]
    return at(ast.Dict(keys=[key for key, _ in pairs], values=[value for _, value in pairs]), place)


def assign(name: str, value: ast.expr, place: ast.AST) -> ast.Assign:
    """Return `name = value`."""
    return at(ast.Assign(targets=[at(ast.Name(id=name, ctx=ast.Store()), place)], value=value), place)


def thunk(value: ast.expr, names: Sequence[str], place: ast.AST) -> ast.Lambda:
    """Return `lambda names: value`; names that the value does not use are allowed."""
    parameters = ast.arguments([], [ast.arg(arg=name) for name in names], None, [], [], None, [])
    for parameter in parameters.args:
        at(parameter, place)
    return at(ast.Lambda(args=parameters, body=value), place)


def define(name: str, arguments: ast.arguments, body: list[ast.stmt], place: ast.AST) -> ast.FunctionDef:
    """Return a function definition; an empty body does nothing."""
    node = ast.FunctionDef(name=name, args=arguments, body=body or [at(ast.Pass(), place)], decorator_list=[])
    node.returns = None
    node.type_params = []  # type: ignore[attr-defined]  # from Python 3.12 on
    return at(node, place)


def names_in(node: ast.AST) -> set[str]:
    """Return all names that a tree mentions.

    >>> sorted(names_in(ast.parse("x + y.z")))
    ['x', 'y']
    """
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def with_outer(scope: FunctionScope, body: list[ast.stmt], place: ast.AST) -> list[ast.stmt]:
    """Return a body that says which variables of outer functions it assigns."""
    outer: list[ast.stmt] = []
    if scope.globals:
        outer.append(at(ast.Global(names=sorted(scope.globals)), place))
    if scope.nonlocals:
        outer.append(at(ast.Nonlocal(names=sorted(scope.nonlocals)), place))
    return outer + body


def clone(node: Node) -> Node:
    """Return a copy of a tree, whose parts can be lowered independently."""
    copy = type(node).__new__(type(node))  # its fields follow, and Python wants them at once
    copy.__dict__.update(node.__dict__)
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            setattr(copy, name, clone(value))
        elif isinstance(value, list):
            setattr(copy, name, [clone(part) if isinstance(part, ast.AST) else part for part in value])
    return copy

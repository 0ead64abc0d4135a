# SPDX-License-Identifier: Apache-2.0
"""Functions that return references: beside each stands a setter, which assigns what the function would return."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .building import at, call, clone, load
from .syntax import ArgumentNode, FunctionNode, Transfer

SETTER = "·assign"  # follows the name of the function; the setter of `__getitem__` is `__setitem__`
_VALUE = "value·assigned"


def setter_name(name: str) -> str:
    """Return the name of the setter of a function.

    >>> setter_name("__getitem__"), setter_name("first")
    ('__setitem__', 'first·assign')
    """
    return "__setitem__" if name == "__getitem__" else name + SETTER


def returns_reference(node: ast.AST) -> bool:
    """Return whether this is a function that returns a reference, which the parser marks with a star."""
    return isinstance(node, FunctionNode) and isinstance(node.returns, ast.Starred)


def with_setters(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return declarations with the setters of functions that return references, unless they are declared."""
    names = {node.name for node in body if isinstance(node, FunctionNode)}
    getters = [node for node in body if isinstance(node, FunctionNode) and returns_reference(node)]
    return [*body, *[make_setter(node) for node in getters if setter_name(node.name) not in names]]


def make_setter(getter: FunctionNode) -> FunctionNode:
    """Return a function with one more argument, the value, that it assigns to what the getter returns."""
    setter = clone(getter)
    setter.name, setter.returns = setter_name(getter.name), None
    value = ArgumentNode(annotation=None, default=None)
    value.name, value.kind, value.convention = _VALUE, "any", "read"
    setter.arguments = [*setter.arguments, at(value, getter)]
    setter.body = [assign_returned(statement) for statement in setter.body]
    return setter


def assign_returned(node: ast.stmt) -> ast.stmt:
    """Return a statement in which `return place` assigns the place."""
    if isinstance(node, ast.Return) and node.value is not None:
        value = at(Transfer(value=load(_VALUE, node)), node)
        return at(ast.Assign(targets=[node.value], value=value), node)
    for name in ("body", "orelse", "finalbody"):
        if hasattr(node, name):
            setattr(node, name, [assign_returned(part) for part in getattr(node, name)])
    return node


def find_referring(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names of functions that return references; methods have a dot before theirs."""
    names = {node.name for node in body if isinstance(node, FunctionNode) and returns_reference(node)}
    for node in body:
        members = getattr(node, "body", []) if hasattr(node, "traits") else []
        names |= {f".{member.name}" for member in members if returns_reference(member)}
    return names


def call_setter(getter: ast.Call, value: ast.expr, node: ast.AST) -> ast.Call:
    """Return the lowered call of the setter instead of the getter."""
    function = clone(getter.func)
    target = function.value if isinstance(function, ast.Subscript) else function
    if isinstance(target, ast.Name):
        target.id = setter_name(target.id)
    elif isinstance(target, ast.Attribute):
        target.attr = setter_name(target.attr)
    return call(function, [*[clone(argument) for argument in getter.args], value], node)

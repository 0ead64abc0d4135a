# SPDX-License-Identifier: Apache-2.0
"""Building blocks of the lowering: scopes, Python's syntax nodes, references and literals."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import Literal, TypeAlias, TypeVar

from .expressions import ArgumentNode, FunctionNode, Transfer

BindingKind: TypeAlias = Literal["variable", "argument", "parameter", "comptime", "function", "type", "import", "alias"]


@dataclass(slots=True)
class FunctionScope:
    """A function of Python that lowered code is in; None of a module. It collects the outer names that it assigns."""

    is_module: bool = False
    nonlocals: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)  # of Python, so that each variable has its own


@dataclass(slots=True)
class Binding:
    """The meaning of a Mojo name: the Python name, or for a reference the expression it was bound to."""

    name: str
    kind: BindingKind
    scope: FunctionScope
    annotation: ast.expr | None = None
    place: ast.expr | None = None  # of a reference: what it refers to, lowered
    is_literal: bool = False  # a number as it is written, which has no type yet
    block: Block | None = None  # where it is first assigned: there and inside it has a value


@dataclass(slots=True)
class Block:
    """The names that are declared in a block, and the block around it."""

    scope: FunctionScope
    parent: Block | None = None
    bindings: dict[str, Binding] = field(default_factory=dict)

    def find(self, name: str) -> Binding | None:
        """Return the innermost binding of a name.

        >>> block = Block(FunctionScope())
        >>> block.find("x") is None
        True
        """
        block: Block | None = self
        while block is not None:
            if name in block.bindings:
                return block.bindings[name]
            block = block.parent
        return None

    def declare(self, name: str, kind: BindingKind = "variable", annotation: ast.expr | None = None) -> Binding:
        """Return a new binding; its Python name is unlike any other variable's of the same function.

        >>> inner = Block(scope := FunctionScope(), Block(scope))
        >>> inner.parent.declare("x").name, inner.declare("x").name
        ('x', 'x·1')
        """
        before = self.bindings.get(name)
        python = name if before is None else before.name
        if before is None and python in self.scope.names:
            count = 1
            while f"{name}·{count}" in self.scope.names:
                count += 1
            python = f"{name}·{count}"
        self.scope.names.add(python)
        binding = self.bindings[name] = Binding(python, kind, self.scope, annotation, block=self)
        return binding

    def is_inside(self, other: Block | None) -> bool:
        """Return whether this block is `other`, or inside it.

        >>> outer = Block(FunctionScope())
        >>> Block(FunctionScope(), outer).is_inside(outer), outer.is_inside(Block(FunctionScope()))
        (True, False)
        """
        block: Block | None = self
        while block is not None and block is not other:
            block = block.parent
        return block is not None

    def function_block(self) -> Block:
        """Return the outermost block of the same function, where implicit variables live."""
        block = self
        while block.parent is not None and block.parent.scope is self.scope:
            block = block.parent
        return block

    def visible(self) -> Iterator[str]:
        """Yield every name that is visible here."""
        block: Block | None = self
        while block is not None:
            yield from block.bindings
            block = block.parent


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
    """Return a body that declares the variables of outer functions that it assigns."""
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

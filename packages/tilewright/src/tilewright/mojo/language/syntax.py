# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of Mojo: Python's own nodes where the languages agree, and these where Mojo has more."""

from __future__ import annotations

import ast
from typing import Any, Literal, TypeAlias

ArgumentKind: TypeAlias = Literal["infer", "positional", "any", "keyword", "variadic", "variadic keyword"]
Convention: TypeAlias = Literal["read", "mut", "var", "out", "deinit", "ref"]


class MojoNode(ast.AST):
    """A node that is made from its parts by name."""

    def __init__(self, **parts: Any) -> None:  # Any: each node declares its parts
        for name, value in parts.items():
            setattr(self, name, value)


class ArgumentNode(MojoNode):
    """A parameter in brackets or an argument in parentheses; `kind` says how it can be given."""

    _fields = ("annotation", "default")
    name: str
    kind: ArgumentKind
    convention: Convention
    annotation: ast.expr | None
    default: ast.expr | None


class Capture(MojoNode):
    """An entry of a closure's capture list; an empty name stands for all that are not named."""

    _fields = ()
    name: str
    convention: Convention


class Decorator(MojoNode):
    """A decorator: its dotted name and what is in its parentheses."""

    _fields = ("arguments",)
    name: str
    arguments: list[ast.expr]


class FunctionNode(MojoNode, ast.stmt):
    """A function; `captures` is None where there is no capture list."""

    _fields = ("decorators", "parameters", "arguments", "returns", "condition", "body")
    name: str
    decorators: list[Decorator]
    parameters: list[ArgumentNode]
    arguments: list[ArgumentNode]
    captures: list[Capture] | None
    variable: str = ""  # of a lambda: the variable that it is assigned to
    overload: int = -1  # its number among functions of the same name; -1 if there is no other
    returns: ast.expr | None
    condition: ast.expr | None
    body: list[ast.stmt]

    def has_decorator(self, name: str) -> bool:
        """Return whether the function has the decorator of that name."""
        return any(decorator.name == name for decorator in self.decorators)


class StructNode(MojoNode, ast.stmt):
    """A struct: parameters, the traits it conforms to, and its members."""

    _fields = ("decorators", "parameters", "traits", "body")
    name: str
    decorators: list[Decorator]
    parameters: list[ArgumentNode]
    traits: list[ast.expr]
    body: list[ast.stmt]


class TraitNode(MojoNode, ast.stmt):
    """A trait: the traits it extends, default methods and associated members."""

    _fields = ("decorators", "traits", "body")
    name: str
    decorators: list[Decorator]
    traits: list[ast.expr]
    body: list[ast.stmt]


class Variable(MojoNode, ast.stmt):
    """`var`, `let` or `ref` with targets, an optional type and an optional value."""

    _fields = ("target", "annotation", "value")
    is_reference: bool
    target: ast.expr
    annotation: ast.expr | None
    value: ast.expr | None


class Comptime(MojoNode, ast.stmt):
    """`comptime` or `alias`: a name, or several, with parameters, a type and a value."""

    _fields = ("target", "parameters", "annotation", "value")
    target: ast.expr
    parameters: list[ArgumentNode]
    annotation: ast.expr | None
    value: ast.expr | None


class ReferenceFor(ast.For):
    """`for ref x in ...`: assigning `x` assigns the element."""


class Brackets(MojoNode, ast.expr):
    """`value[arguments, keywords]`: an element of a value, or the parameters of a function or type."""

    _fields = ("value", "arguments", "keywords")
    value: ast.expr
    arguments: list[ast.expr]
    keywords: list[ast.keyword]


class Transfer(MojoNode, ast.expr):
    """`value^`: the end of a variable's life."""

    _fields = ("value",)
    value: ast.expr


class FunctionTypeNode(MojoNode, ast.expr):
    """The type of a function, `def(Int) -> Int`; only its being one matters at run time."""

    _fields = ()


class LambdaFunction(MojoNode, ast.expr):
    """A lambda: a function without a name whose body is one expression."""

    _fields = ("function",)
    function: FunctionNode


class InitializerNode(MojoNode, ast.expr):
    """`{1, 2}` or `{x=1}`: a set, or the arguments of the type that is expected there."""

    _fields = ("arguments", "keywords")
    arguments: list[ast.expr]
    keywords: list[ast.keyword]

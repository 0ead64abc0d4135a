# SPDX-License-Identifier: Apache-2.0
"""What a name means at a place of the program: blocks inside functions inside the module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

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
    """What a Mojo name stands for: the Python name, or for a reference the expression it was bound to."""

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
        """Return a new binding; its Python name differs from those of other variables of the same function.

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

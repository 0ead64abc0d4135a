# SPDX-License-Identifier: Apache-2.0
"""A whole program as a module of Python: imports first, declarations in the order they need each other, statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .building import names_in
from .lower_functions import find_mutating
from .lower_structs import StructLowerer
from .members import guard_members
from .modules import exported_names, get_member
from .problems import Source
from .references import find_referring, with_setters
from .scopes import BindingKind, Block, FunctionScope
from .syntax import ArgumentNode, Comptime, FunctionNode, StructNode, TraitNode, Variable

Declaration = (FunctionNode, StructNode, TraitNode, Comptime)
Import = Callable[[str | None, int, "str | None"], Any]  # module, dots before it, a name in it


class ProgramLowerer(StructLowerer):
    """Lowers the statements of a file; imported things go into `namespace`, the globals of the module."""

    def __init__(self, source: Source, namespace: dict[str, Any], import_from: Import) -> None:
        builtin = Block(FunctionScope(is_module=True))
        for name in namespace:
            builtin.declare(name, "import")
        scope = FunctionScope(is_module=True)
        super().__init__(source, Block(scope, builtin))
        self.namespace, self.import_from = namespace, import_from

    def lower_program(self, body: Sequence[ast.stmt]) -> ast.Module:
        """Return a module of Python that does what the program does."""
        self.referring = find_referring(body)
        body = with_setters(body)
        self.mutating = find_mutating(body)
        self.has_destructors = any(
            isinstance(part, FunctionNode) and part.name == "__del__" for item in body for part in ast.walk(item)
        )
        self.mark_overloads(body)
        for statement in body:
            self._declare(statement)
        for statement in body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self.lower_statement(statement)
        lowered: list[ast.stmt] = []
        for statement in order_declarations(body):
            if not isinstance(statement, (ast.Import, ast.ImportFrom)):
                lowered += self.lower_statement(statement)
        return guard_members(ast.Module(body=lowered, type_ignores=[]))

    def _declare(self, statement: ast.stmt) -> None:
        """Declare a name of the module ahead: functions may use what comes after them."""
        if isinstance(statement, FunctionNode):
            self.module.declare(statement.name, "function")
        elif isinstance(statement, (StructNode, TraitNode)):
            self.module.declare(statement.name, "type")
        elif isinstance(statement, (Comptime, Variable)):
            kind: BindingKind = "comptime" if isinstance(statement, Comptime) else "variable"
            for part in ast.walk(statement.target):
                if isinstance(part, ast.Name):
                    binding = self.module.declare(part.id, kind, statement.annotation)
                    is_open = kind == "comptime" and statement.annotation is None and statement.value is not None
                    binding.is_literal = is_open and self.is_literal(statement.value)  # type: ignore[arg-type]

    # Imports: they are carried out now, so that names can be checked before the program runs.

    def _lower_Import(self, node: ast.Import) -> list[ast.stmt]:  # noqa: N802  (named after the node)
        for item in node.names:
            if item.asname is not None:
                self._bind_import(item.asname, self._import(node, item.name, 0, None))
            else:
                self._import(node, item.name, 0, None)
                top = item.name.partition(".")[0]
                self._bind_import(top, self._import(node, top, 0, None))
        return []

    def _lower_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:  # noqa: N802
        for item in node.names:
            if item.name == "*":
                module = self._import(node, node.module, node.level, None)
                for name in exported_names(module):
                    self._bind_import(name, get_member(module, name, name))
            else:
                value = self._import(item, node.module, node.level, item.name)
                self._bind_import(item.asname or item.name, value)
        return []

    def _import(self, node: ast.AST, module: str | None, level: int, name: str | None) -> Any:
        try:
            return self.import_from(module, level, name)
        except ImportError as problem:
            self.fail(str(problem), node)

    def _bind_import(self, name: str, value: Any) -> None:
        binding = self.block.declare(name, "import")
        if not self.block.scope.is_module:  # a name of its own among the globals
            binding.name = f"{name}·import{len(self.namespace)}"
            binding.scope = self.module.scope
        self.namespace[binding.name] = value


def order_declarations(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return declarations before what needs them to be computed, and other statements after them in their order.

    Computing a value may call functions, which need what their bodies mention; defining a function needs only the
    defaults of its arguments. Values that use variables of the module stay among the statements.
    """
    variables = {name for statement in body if isinstance(statement, Variable) for name in names_in(statement.target)}
    declarations = [item for item in body if isinstance(item, Declaration)]
    by_name: dict[str, list[ast.stmt]] = {}
    for item in declarations:
        for name in _declared_names(item):
            by_name.setdefault(name, []).append(item)
    mentioned = {id(item): names_in(item) for item in declarations}
    late = _depending(variables, declarations, mentioned)
    ordered: list[ast.stmt] = []
    placed: set[int] = set()
    complete: set[str] = set()

    def place(item: ast.stmt) -> None:
        if id(item) not in placed and not (isinstance(item, Comptime) and id(item) in late):
            placed.add(id(item))
            for name in sorted(_computed_names(item)):
                place_all(name)
            ordered.append(item)

    def place_all(name: str) -> None:
        """Place what a name needs to be computed with: its declarations, and all that they mention."""
        if name not in complete:
            complete.add(name)
            for item in by_name.get(name, ()):
                place(item)
                for other in sorted(mentioned[id(item)]):
                    place_all(other)

    for item in declarations:
        place(item)
    return ordered + [item for item in body if id(item) not in placed]


def _depending(variables: set[str], declarations: Sequence[ast.stmt], mentioned: dict[int, set[str]]) -> set[int]:
    """Return the declarations that mention variables of the module, or what mentions them."""
    users: dict[str, list[ast.stmt]] = {}
    for item in declarations:
        for name in mentioned[id(item)]:
            users.setdefault(name, []).append(item)
    depending: set[int] = set()
    waiting = list(variables)
    while waiting:
        for item in users.get(waiting.pop(), ()):
            if id(item) not in depending:
                depending.add(id(item))
                waiting += _declared_names(item)
    return depending


def _declared_names(item: ast.stmt) -> set[str]:
    return names_in(item.target) if isinstance(item, Comptime) else {item.name}  # type: ignore[attr-defined]


def _computed_names(item: ast.AST) -> set[str]:
    """Return the names that are needed when a declaration is carried out."""
    if isinstance(item, Comptime):
        return set() if item.parameters else names_in(item)
    if isinstance(item, FunctionNode):
        arguments: list[ArgumentNode] = [] if item.parameters else item.arguments
        return {name for argument in arguments if argument.default for name in names_in(argument.default)}
    if isinstance(item, StructNode) and item.parameters:
        return set()
    names: set[str] = set()
    for part in getattr(item, "traits", []):
        names |= names_in(part)
    for member in getattr(item, "body", []):
        names |= _computed_names(member) if isinstance(member, (FunctionNode, Comptime)) else set()
    return names

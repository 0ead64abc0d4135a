# SPDX-License-Identifier: Apache-2.0
"""Lowering of structs and of whole programs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .building import (
    BindingKind,
    Block,
    FunctionScope,
    assign,
    at,
    clone,
    constant,
    define,
    find_referring,
    load,
    make_tuple,
    names_in,
    support,
    thunk,
    with_outer,
    with_setters,
)
from .expressions import ArgumentNode, Comptime, Decorator, FunctionNode, StructNode, TraitNode, Transfer, Variable
from .lower_functions import FunctionLowerer, _parameters, find_mutating, parameter_name
from .members import guard_members
from .modules import exported_names, get_member
from .tokens import Source, is_magic

CLASS = "class·"  # that gets the members; a program can make its `Self` another value


class StructLowerer(FunctionLowerer):
    """Lowers structs and traits."""

    def _lower_StructNode(self, node: StructNode) -> list[ast.stmt]:  # noqa: N802  (named after the node)
        name = (self.block.bindings.get(node.name) or self.block.declare(node.name, "type")).name
        maker = f"{name}·of"
        for parameter in node.parameters:
            if is_magic(parameter.name):  # as a member of the class, Python would call it
                self.fail(f"{parameter.name} is a method of values, and no parameter", parameter)
        is_value = any(item.name in ("value", "register_passable") for item in node.decorators)
        if any(item.name in ("fieldwise_init", "value") for item in node.decorators):
            node.body = [*node.body, fieldwise_constructor(node)]
        node.body = with_setters(node.body)
        initializers = self._lower_initializers(node)
        parameters = self.lower_parameters(node.parameters)
        scope, outer, outer_function = FunctionScope(), self.struct, self.function
        self.struct, self.function = node, None
        with self.inside(scope):
            names = [self.block.declare(parameter.name, "parameter").name for parameter in node.parameters]
            self.block.declare("Self", "type")
            values = [make_tuple([constant(item, node), load(item, node)], node) for item in names]
            traits = self._lower_traits(node)
            fields = [name for member in node.body if isinstance(member, Variable) for name in names_in(member.target)]
            listed = make_tuple([constant(name, node) for name in fields], node)
            declared = [constant(node.name, node), make_tuple(values, node), traits, listed]
            body: list[ast.stmt] = [assign(CLASS, support("declare_struct", declared, node), node)]
            body += [assign("Self", load(CLASS, node), node), *self._lower_members(node)]
            complete = [load(CLASS, node), constant(is_value, node)]
            body.append(at(ast.Return(value=support("complete_struct", complete, node)), node))
        self.struct, self.function = outer, outer_function
        factory = define(maker, _parameters(names, node), with_outer(scope, body, node), node)
        if not node.parameters:
            result: ast.expr = at(ast.Call(func=load(maker, node), args=[], keywords=[]), node)
        else:
            result = support(
                "StructTemplate", [constant(node.name, node), load(maker, node), parameters, initializers], node
            )
        return [factory, assign(name, result, node)]

    def _lower_traits(self, node: StructNode | TraitNode) -> ast.expr:
        traits: list[ast.expr] = []
        waiting = list(node.traits)
        while waiting:
            trait = waiting.pop(0)
            if isinstance(trait, ast.BinOp) and isinstance(trait.op, ast.BitAnd):
                waiting = [trait.left, trait.right, *waiting]
            else:
                traits.append(self.lower(trait))
        return thunk(make_tuple(traits, node), [], node)

    def _lower_members(self, node: StructNode | TraitNode) -> list[ast.stmt]:
        """Return statements that set the methods and associated values of `Self`."""
        for member in node.body:
            self._check_protocol(member)
        self.mark_overloads(node.body)
        functions = [member for member in node.body if isinstance(member, FunctionNode)]
        values = [member for member in node.body if isinstance(member, Comptime)]
        for value in values:
            for name in [part for part in ast.walk(value.target) if isinstance(part, ast.Name)]:
                self.block.declare(name.id, "comptime")
        early = [member for member in functions if not has_defaults(member)]
        late = [member for member in functions if has_defaults(member)]
        groups = {member.name for member in late}
        statements: list[ast.stmt] = []
        for function in [member for member in early if member.name not in groups]:
            statements += self._lower_method(function, node.name)
        for value in values:
            if value.value is not None:
                names = [part.id for part in ast.walk(value.target) if isinstance(part, ast.Name)]
                statements += self.lower_statement(value)
                statements += [self._add_value(name, value) for name in names]
        for function in [member for member in functions if member.name in groups]:
            statements += self._lower_method(function, node.name)
        for member in node.body:
            if not isinstance(member, (FunctionNode, Comptime, Variable, ast.Pass, ast.Expr)):
                self.fail("expected a field, a method or a comptime member", member)
            if isinstance(member, Variable) and not isinstance(member.target, ast.Name):
                self.fail("a field has one name", member)
        return statements

    def _add_value(self, name: str, node: ast.AST) -> ast.stmt:
        parts = [load(CLASS, node), constant(name, node), load(self.block.bindings[name].name, node)]
        return at(ast.Expr(value=support("add_value", parts, node)), node)

    def _check_protocol(self, member: ast.stmt) -> None:
        """Refuse what Python would call with its own values, such as a traceback, in place of a method of Mojo."""
        is_value = isinstance(member, (Comptime, Variable))
        names = names_in(member.target) if is_value else set()  # type: ignore[attr-defined]
        if isinstance(member, FunctionNode) and member.has_decorator("staticmethod"):
            names = {member.name} & {"__enter__", "__exit__", "__getattr__"}
        for name in sorted(filter(is_magic, names)):
            self.fail(f"{name} is a method of values; write def {name}(self)", member)

    def _lower_method(self, function: FunctionNode, owner: str) -> list[ast.stmt]:
        name = f"{owner}·{function.name}"
        self.pending, outer = [], self.pending
        statements = self.define_function(function, name)
        statements, self.pending = [*self.pending, *statements], outer
        flags = [function.has_decorator("staticmethod"), function.has_decorator("implicit")]
        parts = [load(CLASS, function), constant(function.name, function), load(name, function)]
        added = support("add_member", [*parts, *[constant(flag, function) for flag in flags]], function)
        return [*statements, at(ast.Expr(value=added), function)]

    def _lower_initializers(self, node: StructNode) -> ast.expr:
        """Return the arguments of every constructor, from which parameters of the struct are inferred."""
        names = {parameter.name for parameter in node.parameters}
        signatures: list[list[ArgumentNode]] = [
            [argument for argument in member.arguments if argument.name != "self"]
            for member in node.body
            if isinstance(member, FunctionNode) and member.name == "__init__"
        ]
        entries = []
        for signature in signatures if names else []:
            arguments: list[ast.expr] = []
            for argument in signature:
                annotation = None if argument.annotation is None else without_self(clone(argument.annotation))
                own = {item.name for item in signature} | {"Self"}
                pattern = self._lower_safely(annotation, names, own)
                parts = [argument.name, argument.kind, argument.convention, argument.default is not None]
                constants = [constant(part, argument) for part in parts]
                arguments.append(support("Argument", [*constants, pattern], argument))
            entries.append(make_tuple(arguments, node))
        return make_tuple(entries, node)

    def _lower_safely(self, annotation: ast.expr | None, names: set[str], own: set[str]) -> ast.expr:
        """Return a pattern outside the struct, where its members are not known: such types say nothing."""
        if annotation is not None:
            known = {part.id for part in ast.walk(annotation) if isinstance(part, ast.Name)} - names
            if any(self.block.find(name) is None for name in known):
                annotation = None
        return self.lower_pattern(annotation, names, own)

    def _lower_TraitNode(self, node: TraitNode) -> list[ast.stmt]:  # noqa: N802
        name = (self.block.bindings.get(node.name) or self.block.declare(node.name, "type")).name
        maker = f"{name}·of"
        traits = self._lower_traits(node)
        scope, outer = FunctionScope(), self.struct
        defaults = StructNode(
            decorators=[], parameters=[], traits=[], body=[m for m in node.body if has_default_body(m)]
        )
        defaults.name = node.name
        at(defaults, node)
        self.struct = defaults
        with self.inside(scope):
            self.block.declare("Self", "type")
            body = [assign("Self", load(CLASS, node), node), *self._lower_members(defaults)]
        self.struct = outer
        factory = define(maker, _parameters([CLASS], node), with_outer(scope, body, node), node)
        required = [
            member.name for member in node.body if isinstance(member, FunctionNode) and member not in defaults.body
        ]
        parts = [constant(node.name, node), traits, load(maker, node)]
        result = support("Trait", [*parts, make_tuple([constant(item, node) for item in required], node)], node)
        return [factory, assign(name, result, node)]


def fieldwise_constructor(node: StructNode) -> FunctionNode:
    """Return the constructor that `@fieldwise_init` stands for: an argument for each field, assigned to it."""
    function = FunctionNode(decorators=[], parameters=[], returns=None, condition=None, body=[])
    function.name, function.captures = "__init__", None
    receiver = ArgumentNode(annotation=None, default=None)
    receiver.name, receiver.kind, receiver.convention = "self", "any", "out"
    fields = [field_argument(member) for member in node.body if isinstance(member, Variable)]
    function.arguments = [at(receiver, node), *fields]
    for field in fields:
        owner = at(ast.Name(id="self", ctx=ast.Load()), field)
        target = at(ast.Attribute(value=owner, attr=field.name, ctx=ast.Store()), field)
        value = at(Transfer(value=load(field.name, field)), field)
        function.body.append(at(ast.Assign(targets=[target], value=value), field))
    if any(item.name == "fieldwise_init" and item.arguments for item in node.decorators):
        implicit = Decorator(arguments=[])
        implicit.name = "implicit"
        function.decorators = [at(implicit, node)]
    return at(function, node)


def has_defaults(node: FunctionNode) -> bool:
    """Return whether a function has arguments with defaults, which are computed when it is made."""
    return any(argument.default is not None for argument in node.arguments)


def has_default_body(node: ast.stmt) -> bool:
    """Return whether a trait's member has a value or a body, which structs inherit."""
    if isinstance(node, Comptime):
        return node.value is not None
    if not isinstance(node, FunctionNode):
        return not isinstance(node, (ast.Expr, ast.Pass, Variable))
    return not all(is_text(part) for part in node.body)


def is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a documentation string, or `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def field_argument(member: Variable) -> ArgumentNode:
    """Return a field as an argument of the fieldwise constructor."""
    argument = ArgumentNode(annotation=member.annotation, default=member.value)
    argument.name = member.target.id if isinstance(member.target, ast.Name) else ""
    argument.kind, argument.convention = "any", "var"
    return at(argument, member)


def without_self(node: ast.expr) -> ast.expr:
    """Return a type in which `Self.T` is `T`."""
    for name, value in list(ast.iter_fields(node)):
        if isinstance(value, ast.expr):
            setattr(node, name, without_self(value))
        elif isinstance(value, list):
            setattr(node, name, [without_self(part) if isinstance(part, ast.expr) else part for part in value])
    if isinstance(node, ast.Attribute) and parameter_name(node):
        return at(ast.Name(id=node.attr, ctx=ast.Load()), node)
    return node


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

    def _bind_import(self, name: str, value: object) -> None:
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

# SPDX-License-Identifier: Apache-2.0
"""Lowering of statements and functions to Python's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from .building import (
    Binding,
    FunctionScope,
    assign,
    at,
    clone,
    constant,
    define,
    load,
    make_dict,
    make_tuple,
    names_in,
    support,
    thunk,
    with_outer,
)
from .expressions import (
    ArgumentNode,
    Brackets,
    Comptime,
    FunctionNode,
    FunctionTypeNode,
    LambdaFunction,
    ReferenceFor,
    Transfer,
    Variable,
)
from .lower_expressions import ExpressionLowerer, copy_place, is_immutable, needs_conversion
from .tokens import NOT_YET


def _constructed_type(value: ast.expr | None) -> ast.expr | None:
    """Return the type of `Variant[...](...)` and `Optional[...](...)`, which convert later assignments."""
    function = value.func if isinstance(value, ast.Call) else None
    if not isinstance(function, Brackets) or not isinstance(function.value, ast.Name):
        return None
    return clone(function) if function.value.id in ("Optional", "Variant") else None


class StatementLowerer(ExpressionLowerer):
    """Lowers statements; one statement of Mojo may become several of Python."""

    def lower_block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Lower the statements of a block in a scope of its own."""
        with self.inside():
            return self.lower_statements(body)

    def lower_statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Lower statements in the current block; the first may be a documentation string."""
        lowered: list[ast.stmt] = []
        for statement in body:
            lowered += self.lower_statement(statement)
        return lowered

    def lower_statement(self, node: ast.stmt) -> list[ast.stmt]:
        """Return statements that do what this one does."""
        outer, self.pending = self.pending, []
        method = getattr(self, f"_lower_{type(node).__name__}")
        lowered = method(node)
        lowered, self.pending = [*self.pending, *lowered], outer
        return lowered

    def _lower_Pass(self, node: ast.stmt) -> list[ast.stmt]:  # noqa: N802  (named after the node, as all below)
        return [node]

    _lower_Break = _lower_Continue = _lower_Pass  # noqa: N815

    def _lower_Expr(self, node: ast.Expr) -> list[ast.stmt]:  # noqa: N802
        value = node.value
        if isinstance(value, ast.Constant):  # a documentation string, or `...`
            return [at(ast.Pass(), node)]
        is_call = isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
        if is_call and value.func.id == "swap" and len(value.args) == 2:  # type: ignore[attr-defined]
            return self._lower_swap(node, *value.args)  # type: ignore[attr-defined]
        return [at(ast.Expr(value=self.lower(value)), node)]

    def _lower_swap(self, node: ast.AST, left: ast.expr, right: ast.expr) -> list[ast.stmt]:
        name = self.new_name("swap")
        values = make_tuple([self.lower(right), self.lower(left)], node)
        halves = [
            at(ast.Subscript(value=load(name, node), slice=constant(k, node), ctx=ast.Load()), node) for k in (0, 1)
        ]
        writes = [self.write_back(left, halves[0]), self.write_back(right, halves[1])]
        return [assign(name, values, node), *[at(ast.Expr(value=write), node) for write in writes]]

    # Variables.

    def _lower_Variable(self, node: Variable) -> list[ast.stmt]:  # noqa: N802
        if node.is_reference and node.value is not None and isinstance(node.target, ast.Name):
            return self._lower_reference(node.target.id, node.value, node)
        kind = node.annotation or _constructed_type(node.value)
        value = None if node.value is None else self.lower_value(node.value, node.annotation)
        targets = self._declare_targets(node.target, kind)
        if value is None:  # a closure may be the first to assign it
            if self.block.scope.is_module or not isinstance(targets, ast.Name):
                return []
            gone = at(ast.Delete(targets=[at(ast.Name(id=targets.id, ctx=ast.Del()), node)]), node)
            return [assign(targets.id, constant(None, node), node), gone]  # to read it now is an error
        return [at(ast.Assign(targets=[targets], value=value), node)]

    def _declare_targets(self, target: ast.expr, annotation: ast.expr | None = None) -> ast.expr:
        """Declare the names of a target; return it with the names of Python."""
        if isinstance(target, ast.Name):
            binding = self.block.declare(target.id, "variable", annotation)
            return at(ast.Name(id=binding.name, ctx=ast.Store()), target)
        if isinstance(target, ast.Tuple):
            elements = [self._declare_targets(element) for element in target.elts]
            return at(ast.Tuple(elts=elements, ctx=ast.Store()), target)
        if isinstance(target, ast.Starred):
            return at(ast.Starred(value=self._declare_targets(target.value), ctx=ast.Store()), target)
        return self.fail("expected a name after 'var'", target)

    def _lower_reference(self, name: str, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        """Make a name stand for a place: what the place depends on is computed now, the place at each use."""
        is_referring = isinstance(value, ast.Call) and self._callee_name(value.func) in self.referring
        place = self._fix_place(self.lower(value))
        binding = self.block.declare(name, "alias")
        if is_referring or isinstance(place, (ast.Name, ast.Attribute, ast.Subscript)) or is_subscript_call(place):
            binding.place = place
            return []
        return [assign(binding.name, place, node)]

    def _fix_place(self, place: ast.expr) -> ast.expr:
        if isinstance(place, ast.Attribute):
            place.value = self.save(self._fix_place(place.value), "owner")
        elif isinstance(place, ast.Subscript):
            place.value = self.save(self._fix_place(place.value), "owner")
            if isinstance(place.slice, ast.Tuple):
                place.slice.elts = [self.save(part, "index") for part in place.slice.elts]
            else:
                place.slice = self.save(place.slice, "index")
        elif isinstance(place, ast.Call) and not any(isinstance(part, ast.Starred) for part in place.args):
            if isinstance(place.func, ast.Attribute):
                place.func.value = self.save(place.func.value, "owner")
            place.args = [self.save(part, "argument") for part in place.args]
        return place

    def _lower_Comptime(self, node: Comptime) -> list[ast.stmt]:  # noqa: N802
        if node.value is None:
            self._declare_targets(node.target)
            return []
        if node.parameters:
            return self._lower_parametric_alias(node)
        is_literal = node.annotation is None and self.is_literal(node.value)
        value = self.lower(node.value)
        if node.annotation is not None and needs_conversion(node.annotation):
            value = support("convert", [value, self.lower_type(node.annotation)], node)
        for name in self.names_of(node.target):
            before = self.block.bindings.get(name.id)  # declared ahead, at the top of a module
            binding = before or self.block.declare(name.id, "comptime")
            binding.is_literal = is_literal
            name.id = binding.name
        return [at(ast.Assign(targets=[node.target], value=value), node)]

    def _lower_parametric_alias(self, node: Comptime) -> list[ast.stmt]:
        raise NotImplementedError

    # Assignments.

    def _lower_Assign(self, node: ast.Assign) -> list[ast.stmt]:  # noqa: N802
        annotation = self._declared_type(node.targets[0]) if len(node.targets) == 1 else None
        first = node.targets[0]
        is_typed = not isinstance(first, ast.Name) or self._is_assigned(first.id)
        value = self.lower_value(node.value, annotation, is_typed)
        if annotation is None and is_number(node.value) and isinstance(first, ast.Name) and self._is_assigned(first.id):
            value = support("convert_like", [value, self.lower(at(ast.Name(first.id, ast.Load()), first))], node)
        if annotation is None and is_number(node.value) and isinstance(first, ast.Attribute):
            owner = self.save(self.lower(first.value), "owner")  # the field has a type, though it is not known here
            before = support("read_member", [owner, constant(first.attr, node), constant(None, node)], node)
            member = at(ast.Attribute(value=owner, attr=first.attr, ctx=ast.Store()), first)
            return [at(ast.Assign(targets=[member], value=support("convert_like", [value, before], node)), node)]
        if len(node.targets) > 1:
            value = self.save(value, "value")
        statements: list[ast.stmt] = []
        for target in node.targets:
            statements += self.lower_assignment(target, value, node)
        return statements

    def _is_assigned(self, name: str) -> bool:
        """Return whether a variable has a value already, which decides the type of a literal that it is assigned."""
        binding = self.block.find(name)
        is_variable = binding is not None and binding.kind in ("variable", "argument") and not binding.scope.is_module
        return is_variable and self.block.is_inside(binding.block)  # type: ignore[union-attr]

    def _declared_type(self, target: ast.expr) -> ast.expr | None:
        """Return the declared type of a variable, or of a field of the struct around."""
        if isinstance(target, ast.Name):
            binding = self.block.find(target.id)
            return None if binding is None or binding.kind == "argument" else binding.annotation
        is_field = (
            isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
        )
        if is_field and self.struct is not None:
            for member in self.struct.body:
                names = names_in(member.target) if isinstance(member, Variable) else ()
                if target.attr in names:  # type: ignore[attr-defined]
                    return member.annotation  # type: ignore[attr-defined, no-any-return]
        return None

    def lower_assignment(self, target: ast.expr, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        """Return statements that assign a lowered value to a target of Mojo."""
        if isinstance(target, ast.Name) and target.id == "_":
            return [at(ast.Expr(value=value), node)]
        if isinstance(target, ast.Name):
            binding = self.store(target.id, target)
            if target.id == "self" and binding.kind == "argument":
                return [at(ast.Expr(value=support("assign_fields", [load("self", node), value], node)), node)]
            if binding.place is not None:
                return [at(ast.Expr(value=self.write_back(target, value)), node)]
            self._refuse_reference(binding, target)
            return [assign(binding.name, value, node)]
        if isinstance(target, ast.Tuple):
            return self._lower_unpacking(target, value, node)
        if isinstance(target, Brackets):
            return self._assign_brackets(target, value, node)
        if isinstance(target, ast.Attribute):
            owner = self.lower(target.value)
            member = at(ast.Attribute(value=owner, attr=target.attr, ctx=ast.Store()), target)
            return [at(ast.Assign(targets=[member], value=value), node)]
        if isinstance(target, ast.Call) and self._callee_name(target.func) in self.referring:
            place = self.lower(target)
            return [at(ast.Expr(value=self._write_place(place, value, node)), node)]
        return self.fail(f"assigning to the result of a call: {NOT_YET}", target)

    def _refuse_reference(self, binding: Binding, target: ast.AST) -> None:
        """Refuse to assign a reference that a function returned, rather than lose the assignment."""
        if binding.kind == "alias" and binding.place is None:
            self.fail(f"assigning through a reference that a function returns: {NOT_YET}", target)

    def _lower_unpacking(self, target: ast.Tuple, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        names = [self.new_name("part") for _ in target.elts]
        parts: list[ast.expr] = [at(ast.Name(id=name, ctx=ast.Store()), node) for name in names]
        unpack: ast.stmt = at(ast.Assign(targets=[at(ast.Tuple(elts=parts, ctx=ast.Store()), node)], value=value), node)
        statements = [unpack]
        for element, name in zip(target.elts, names, strict=True):
            statements += self.lower_assignment(element, load(name, element), node)
        return statements

    def _assign_brackets(self, target: Brackets, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        owner, arguments, keywords = self.lower_brackets(target)
        if keywords or not arguments:
            entries = [owner, make_tuple(arguments, node), make_dict(keywords, node), value]
            return [at(ast.Expr(value=support("set_subscript", entries, node)), node)]
        element = at(ast.Subscript(value=owner, slice=self.make_index(arguments, target), ctx=ast.Store()), target)
        return [at(ast.Assign(targets=[element], value=value), node)]

    def _lower_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:  # noqa: N802
        target: ast.expr = node.target
        if isinstance(node.op, ast.Div) and isinstance(target, (ast.Name, ast.Attribute, Brackets)):
            return self._lower_division(target, node)
        value = self.lower(node.value)
        if isinstance(target, ast.Name):
            binding = self.store(target.id, target)
            if binding.place is not None:
                return self._augment_place(binding, node, value)
            self._refuse_reference(binding, target)
            new: ast.expr = at(ast.Name(id=binding.name, ctx=ast.Store()), target)
        elif isinstance(target, Brackets):
            owner, arguments, keywords = self.lower_brackets(target)
            if keywords or not arguments:
                entries = [self.save(owner, "owner"), make_tuple(arguments, node), make_dict(keywords, node)]
                result = at(ast.BinOp(left=support("subscript", entries, node), op=node.op, right=value), node)
                return [at(ast.Expr(value=support("set_subscript", [*entries, result], node)), node)]
            new = at(ast.Subscript(value=owner, slice=self.make_index(arguments, target), ctx=ast.Store()), target)
        elif isinstance(target, ast.Attribute):
            new = at(ast.Attribute(value=self.lower(target.value), attr=target.attr, ctx=ast.Store()), target)
        elif isinstance(target, ast.Call) and self._callee_name(target.func) in self.referring:
            place = self._fix_place(self.lower(target))
            result = at(ast.BinOp(left=copy_place(place, node), op=node.op, right=value), node)
            return [at(ast.Expr(value=self._write_place(place, result, node)), node)]
        else:
            self.fail(f"this assignment needs a variable, a member or an element; else {NOT_YET}", target)
        return [at(ast.AugAssign(target=new, op=node.op, value=value), node)]  # type: ignore[arg-type]

    def _lower_division(self, target: ast.expr, node: ast.AugAssign) -> list[ast.stmt]:
        """Lower `x /= y`, where the quotient of two integers is one."""
        if isinstance(target, ast.Name):
            quotient = support("divide", [self.lower(clone(target)), self.lower(node.value)], node)
            return self.lower_assignment(target, quotient, node)
        place = self._fix_place(self.lower(target))
        quotient = support("divide", [copy_place(place, node), self.lower(node.value)], node)
        if isinstance(place, (ast.Attribute, ast.Subscript)):
            place.ctx = ast.Store()
            return [at(ast.Assign(targets=[place], value=quotient), node)]
        return [at(ast.Expr(value=self._write_place(place, quotient, node)), node)]

    def _augment_place(self, binding: Binding, node: ast.AugAssign, value: ast.expr) -> list[ast.stmt]:
        assert binding.place is not None  # of a reference
        before = self.lower(at(ast.Name(id=node.target.id, ctx=ast.Load()), node))  # type: ignore[union-attr]
        result = at(ast.BinOp(left=before, op=node.op, right=value), node)
        return [at(ast.Expr(value=self.write_back(node.target, result)), node)]

    # Control flow.

    def _lower_If(self, node: ast.If) -> list[ast.stmt]:  # noqa: N802
        condition = self.lower(node.test)
        body, otherwise = self.lower_block(node.body), self.lower_block(node.orelse)
        return [at(ast.If(test=condition, body=body or [at(ast.Pass(), node)], orelse=otherwise), node)]

    def _lower_While(self, node: ast.While) -> list[ast.stmt]:  # noqa: N802
        condition = self.lower(node.test)
        body, otherwise = self.lower_block(node.body), self.lower_block(node.orelse)
        return [at(ast.While(test=condition, body=body or [at(ast.Pass(), node)], orelse=otherwise), node)]

    def _lower_For(self, node: ast.For) -> list[ast.stmt]:  # noqa: N802
        values = self.lower(node.iter)
        with self.inside():
            target = self._declare_targets(node.target)
            body = self.lower_statements(node.body)
        otherwise = self.lower_block(node.orelse)
        loop = ast.For(target=target, iter=values, body=body or [at(ast.Pass(), node)], orelse=otherwise)
        return [at(loop, node)]

    def _lower_ReferenceFor(self, node: ReferenceFor) -> list[ast.stmt]:  # noqa: N802
        """Lower a loop over references; the elements are only addressed if the body assigns them."""
        if not isinstance(node.target, ast.Name) or not assigns(node.body, node.target.id):
            return self._lower_For(node)
        values = self.save(self.lower(node.iter), "values")
        with self.inside():
            index = self.new_name("index")
            binding = self.block.declare(node.target.id, "alias")
            binding.place = at(ast.Subscript(value=values, slice=load(index, node), ctx=ast.Load()), node)
            body = self.lower_statements(node.body)
        otherwise = self.lower_block(node.orelse)
        indices = support("indices", [values], node)
        target = at(ast.Name(id=index, ctx=ast.Store()), node)
        return [at(ast.For(target=target, iter=indices, body=body, orelse=otherwise), node)]

    def _lower_With(self, node: ast.With) -> list[ast.stmt]:  # noqa: N802
        with self.inside():
            items = []
            for item in node.items:
                context = self.lower(item.context_expr)
                target = None if item.optional_vars is None else self._declare_targets(item.optional_vars)
                items.append(ast.withitem(context_expr=context, optional_vars=target))
            body = self.lower_statements(node.body)
        return [at(ast.With(items=items, body=body or [at(ast.Pass(), node)]), node)]

    # Errors.

    def _lower_Try(self, node: ast.Try) -> list[ast.stmt]:  # noqa: N802
        body = self.lower_block(node.body)
        handlers = [self._lower_handler(handler) for handler in node.handlers]
        otherwise, final = self.lower_block(node.orelse), self.lower_block(node.finalbody)
        attempt = ast.Try(body=body or [at(ast.Pass(), node)], handlers=handlers, orelse=otherwise, finalbody=final)
        return [at(attempt, node)]

    def _lower_handler(self, handler: ast.ExceptHandler) -> ast.ExceptHandler:
        caught = self.new_name("caught")
        with self.inside():
            statements: list[ast.stmt] = []
            if handler.name is not None and handler.name != "_":
                binding = self.block.declare(handler.name)
                statements.append(assign(binding.name, support("payload", [load(caught, handler)], handler), handler))
            statements += self.lower_statements(handler.body)
        kind = load("mojo·Raised", handler)
        return at(ast.ExceptHandler(type=kind, name=caught, body=statements or [at(ast.Pass(), handler)]), handler)

    def _lower_Raise(self, node: ast.Raise) -> list[ast.stmt]:  # noqa: N802
        error = None if node.exc is None else support("as_exception", [self.lower(node.exc)], node)
        return [at(ast.Raise(exc=error, cause=None), node)]

    def _lower_Assert(self, node: ast.Assert) -> list[ast.stmt]:  # noqa: N802
        condition = at(ast.UnaryOp(op=ast.Not(), operand=self.lower(node.test)), node)
        message = constant("assertion failed", node) if node.msg is None else self.lower(node.msg)
        failure: ast.stmt = at(ast.Expr(value=support("fail_assertion", [thunk(message, [], node)], node)), node)
        return [at(ast.If(test=condition, body=[failure], orelse=[]), node)]


def is_subscript_call(node: ast.expr) -> bool:
    """Return whether a lowered expression is an element that is named by keywords, or by empty brackets."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "mojo·subscript"


def is_number(node: ast.expr) -> bool:
    """Return whether an expression is a number as it is written, such as `-1`.

    >>> is_number(ast.parse("-1", mode="eval").body), is_number(ast.parse("x", mode="eval").body)
    (True, False)
    """
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def assigns(body: Sequence[ast.stmt], name: str) -> bool:
    """Return whether statements assign the variable, or transfer it or pass it on, where it may be assigned."""
    for statement in body:
        for part in ast.walk(statement):
            targets: list[ast.expr] = []
            if isinstance(part, ast.Assign):
                targets = part.targets
            elif isinstance(part, ast.AugAssign):
                targets = [part.target]
            elif isinstance(part, ast.Call):
                targets = part.args
            elif isinstance(part, Transfer):
                targets = [part.value]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return True
    return False


MAX_PASSING = 10  # functions through which a `mut` argument is passed on


class FunctionLowerer(StatementLowerer):
    """Lowers functions, closures and parametric aliases."""

    function: FunctionNode | None = None  # around the current statement
    mutated: tuple[str, ...] = ()  # arguments of it that are returned to the caller
    result: str | None = None  # its named result
    has_destructors = False  # whether it matters when a value ends

    def lower_statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Lower statements; functions of the same name are overloads, and a variable ends after its last use."""
        self.mark_overloads(body)
        if not self.has_destructors or self.block.scope.is_module:
            return super().lower_statements(body)
        endings = last_uses(body)
        lowered: list[ast.stmt] = []
        for k, statement in enumerate(body):
            lowered += self.lower_statement(statement)
            for name in endings.get(k, ()):
                lowered.append(assign(self.block.bindings[name].name, constant(None, statement), statement))
        return lowered

    def mark_overloads(self, body: Sequence[ast.stmt]) -> None:
        """Number the functions of the same name; -1 marks a name that has only one."""
        groups: dict[str, list[FunctionNode]] = {}
        for statement in body:
            if isinstance(statement, FunctionNode):
                groups.setdefault(statement.name, []).append(statement)
        for group in groups.values():
            for k, function in enumerate(group):
                function.overload = k if len(group) > 1 else -1

    def _lower_FunctionNode(self, node: FunctionNode) -> list[ast.stmt]:  # noqa: N802  (named after the node)
        if self.block.find(node.name) is None or node.name not in self.block.bindings:
            self.block.declare(node.name, "function")
        return self.lower_function(node)

    def lower_function(self, node: FunctionNode) -> list[ast.stmt]:
        """Return statements that bind the function's name; captured copies are the arguments of an outer function."""
        name = self.block.bindings[node.name].name
        copies = self._captured_copies(node)
        if not copies:
            return self.define_function(node, name)
        scope = FunctionScope()
        with self.inside(scope):
            for copy in copies:
                self.block.declare(copy)
            self.block.declare(node.name, "function")
            inner = self.block.bindings[node.name].name
            body: list[ast.stmt] = self.define_function(node, inner)
            body.append(at(ast.Return(value=load(inner, node)), node))
        maker = f"{name}·captures"
        values: list[ast.expr] = [support("copy_value", [self.lower(load(copy, node))], node) for copy in copies]
        closure = at(ast.Call(func=load(maker, node), args=values, keywords=[]), node)
        factory = define(maker, _parameters(copies, node), with_outer(scope, body, node), node)
        return [factory, assign(name, closure, node)]

    def _captured_copies(self, node: FunctionNode) -> list[str]:
        """Return the variables that a closure copies when it is made."""
        captures = node.captures or []
        names = {capture.name for capture in captures if capture.convention == "var" and capture.name}
        if any(capture.convention == "var" and not capture.name for capture in captures):
            others = {capture.name for capture in captures}
            names |= {name for statement in node.body for name in names_in(statement)} - others
        own = {argument.name for argument in (*node.arguments, *node.parameters)}
        bindings = {name: self.block.find(name) for name in names - own}
        return sorted(
            name
            for name, binding in bindings.items()
            if binding is not None and not binding.scope.is_module and binding.kind in ("variable", "argument", "alias")
        )

    def define_function(self, node: FunctionNode, name: str) -> list[ast.stmt]:
        """Return statements that bind `name` to the function."""
        mutated = self.mutated_arguments(node)
        if not node.parameters and node.overload < 0 and not mutated and not node.has_decorator("implicit"):
            return [self._define_body(node, name)]
        maker = f"{name}·of"
        scope = FunctionScope()
        with self.inside(scope):
            names = [self.block.declare(parameter.name, "parameter").name for parameter in node.parameters]
            hoisted = self._hoist(node)
            inner = f"{node.name}·body"  # a name of its own: `f` inside `f` means all overloads
            body: list[ast.stmt] = [*hoisted, self._define_body(node, inner, mutated)]
            body.append(at(ast.Return(value=load(inner, node)), node))
        factory = define(maker, _parameters(names, node), with_outer(scope, body, node), node)
        before = load(name, node) if node.overload > 0 else constant(None, node)
        entry = support(
            "Overload",
            [
                constant(node.name, node),
                load(maker, node),
                self.lower_parameters(node.parameters),
                self.lower_arguments(node),
                make_tuple([constant(item, node) for item in mutated], node),
                self._lower_condition(node),
            ],
            node,
        )
        return [factory, assign(name, support("define_function", [before, entry], node), node)]

    def mutated_arguments(self, node: FunctionNode) -> tuple[str, ...]:
        """Return the arguments whose values go back to the caller: those that the body may bind anew."""
        name = node.variable or node.name
        positions = self.mutating.get(name, set()) | self.mutating.get(f".{name}", set())
        return tuple(argument.name for argument in mutable_arguments(node) if argument.name in positions)

    def _hoist(self, node: FunctionNode) -> list[ast.stmt]:
        """Lower the associated values of a function that depend on its parameters only: they are computed once."""
        own = {argument.name for argument in node.arguments} | _assigned_names(node.body)
        hoisted: list[ast.stmt] = []
        rest: list[ast.stmt] = []
        for statement in node.body:
            is_value = isinstance(statement, Comptime) and not statement.parameters and statement.value is not None
            if is_value and not (names_in(statement.value) & own) and isinstance(statement.target, ast.Name):  # type: ignore[attr-defined]
                own.discard(statement.target.id)  # type: ignore[attr-defined]
                hoisted += self.lower_statement(statement)
            else:
                rest.append(statement)
        node.body = rest
        return hoisted

    def _define_body(self, node: FunctionNode, name: str, mutated: tuple[str, ...] = ()) -> ast.FunctionDef:
        scope = FunctionScope()
        outer = self.function, self.mutated, self.result
        results = [argument for argument in node.arguments if argument.convention == "out" and argument.name != "self"]
        self.function, self.mutated, self.result = node, mutated, None
        with self.inside(scope):
            arguments = self._lower_signature(node)
            body = self._convert_arguments(node)
            for result in results:
                self.result = self.block.declare(result.name, "variable", result.annotation).name
            with self.inside():
                body += self.lower_statements(node.body)
            if mutated or self.result is not None:
                body.append(self._make_return(None, node))
        self.function, self.mutated, self.result = outer
        return define(name, arguments, with_outer(scope, body, node), node)

    def _lower_signature(self, node: FunctionNode) -> ast.arguments:
        """Declare the arguments; return them for Python, with defaults that are computed where the function is."""
        signature = ast.arguments([], [], None, [], [], None, [])
        block, self.block = self.block, self.block.parent or self.block  # defaults do not see the arguments
        arguments = {
            item.name: self.lower_value(clone(item.default), None, True)
            for item in node.arguments
            if item.default is not None
        }
        self.block = block
        has_default = False
        for argument in node.arguments:
            if argument.convention == "out" and argument.name != "self":
                continue
            parameter = at(
                ast.arg(arg=self.block.declare(argument.name, "argument", argument.annotation).name), argument
            )
            value = arguments.get(argument.name)
            if argument.kind == "variadic":
                signature.vararg = parameter
            elif argument.kind == "variadic keyword":
                signature.kwarg = parameter
            elif argument.kind == "keyword":
                signature.kwonlyargs.append(parameter)
                signature.kw_defaults.append(value)
            else:
                (signature.posonlyargs if argument.kind == "positional" else signature.args).append(parameter)
                has_default = has_default or value is not None
                if has_default:
                    signature.defaults.append(constant(None, argument) if value is None else value)
        return signature

    def _convert_arguments(self, node: FunctionNode) -> list[ast.stmt]:
        """Return the first statements of a function: arguments become values of their declared types."""
        statements: list[ast.stmt] = []
        for argument in node.arguments:
            name = argument.name
            if argument.convention == "out" or name == "self" or argument.kind == "variadic":
                continue
            if argument.kind == "variadic keyword":
                statements.append(assign(name, support("make_dict", [load(name, argument)], argument), argument))
            elif argument.annotation is not None and needs_conversion(argument.annotation):
                if argument.convention == "var":
                    statements.append(assign(name, support("copy_value", [load(name, argument)], argument), argument))
                value = support("convert", [load(name, argument), self.lower_type(argument.annotation)], argument)
                statements.append(assign(name, value, argument))
            elif argument.annotation is not None and is_immutable(argument.annotation):
                statements.append(assign(name, support("as_immutable", [load(name, argument)], argument), argument))
        return statements

    def _lower_Return(self, node: ast.Return) -> list[ast.stmt]:  # noqa: N802
        if self.function is None:
            self.fail("'return' outside a function", node)
        returns = self.function.returns
        value = None
        if node.value is not None:
            is_reference = isinstance(returns, ast.Starred)
            value = self.lower(node.value) if is_reference else self.lower_value(node.value, returns)
        return [self._make_return(value, node)]

    def _make_return(self, value: ast.expr | None, node: ast.AST) -> ast.Return:
        if value is None and self.result is not None:
            value = load(self.result, node)
        if self.mutated:
            entries = [constant(None, node) if value is None else value]
            value = make_tuple([*entries, *[load(name, node) for name in self.mutated]], node)
        return at(ast.Return(value=value), node)

    # What the run-time support knows of a function.

    def lower_parameters(self, parameters: Sequence[ArgumentNode]) -> ast.expr:
        """Return the parameters of a function or struct: how they are given, their types and defaults."""
        entries: list[ast.expr] = []
        names = [parameter.name for parameter in parameters]
        for parameter in parameters:
            kind = None
            if parameter.annotation is not None and not (names_in(parameter.annotation) & set(names)):
                kind = parameter.annotation
            default = self._lower_thunk(parameter.default, names, parameter)
            type_of = self._lower_thunk(None if is_function_type(kind) else kind, [], parameter)
            parts: list[ast.expr] = [constant(parameter.name, parameter), constant(parameter.kind, parameter)]
            pattern: ast.expr = constant(None, parameter)
            if parameter.annotation is not None and kind is None:
                pattern = self.lower_pattern(parameter.annotation, set(names), {parameter.name})
            entries.append(support("Parameter", [*parts, type_of, default, pattern], parameter))
        place = parameters[0] if parameters else ast.Constant(value=0, lineno=1, col_offset=0)
        return make_tuple(entries, place)

    def _lower_thunk(self, value: ast.expr | None, names: Sequence[str], place: ast.AST) -> ast.expr:
        if value is None:
            return constant(None, place)
        outer, self.pending = self.pending, []
        with self.inside(FunctionScope()):
            for name in names:
                self.block.declare(name, "parameter")
            lowered = self.lower(clone(value))
        if self.pending:
            outer = [*outer, *self.pending]
        self.pending = outer
        return thunk(lowered, names, place)

    def lower_arguments(self, node: FunctionNode) -> ast.expr:
        """Return the arguments of a function: how they are given, and the patterns that infer parameters from them."""
        names = {parameter.name for parameter in node.parameters}
        own = {argument.name for argument in node.arguments}
        entries: list[ast.expr] = []
        for argument in node.arguments:
            if argument.convention == "out" and argument.name != "self":
                continue
            pattern = self.lower_pattern(argument.annotation, names, own)
            parts = [argument.name, argument.kind, argument.convention, argument.default is not None]
            entries.append(support("Argument", [*[constant(part, argument) for part in parts], pattern], argument))
        return make_tuple(entries, node)

    def lower_pattern(self, annotation: ast.expr | None, names: set[str], own: set[str]) -> ast.expr:
        """Return the pattern of an argument's type: a parameter, a type with parameters inside, or a plain type."""
        nothing = ast.Constant(value=None, lineno=1, col_offset=0)
        if annotation is None or isinstance(annotation, (FunctionTypeNode, ast.BinOp)):
            return nothing
        if isinstance(annotation, ast.Starred):
            annotation = annotation.value
        name = parameter_name(annotation)
        if name in names:
            return support("ParameterPattern", [constant(name, annotation)], annotation)
        mentioned = names_in(annotation) | {"Self" if is_self(annotation) else ""}
        if mentioned & own and not isinstance(annotation, Brackets):
            return nothing
        if isinstance(annotation, Brackets):
            return self._lower_head_pattern(annotation, names, own)
        if mentioned & names:
            return nothing
        return support("TypePattern", [self._lower_thunk(annotation, [], annotation)], annotation)

    def _lower_head_pattern(self, annotation: Brackets, names: set[str], own: set[str]) -> ast.expr:
        if names_in(annotation.value) & (names | own):
            return ast.Constant(value=None, lineno=1, col_offset=0)
        entries: list[ast.expr] = []
        parts: Iterable[tuple[int | str, ast.expr]] = [
            *enumerate(annotation.arguments),
            *[(item.arg, item.value) for item in annotation.keywords if item.arg is not None],
        ]
        for key, value in parts:
            if isinstance(value, (ast.Starred, ast.Slice)) or (isinstance(value, ast.Constant) and value.value is ...):
                continue
            if isinstance(value, ast.Name) and value.id == "_":
                continue
            is_known = not (names_in(value) & (names | own)) and not is_self(value)
            if is_known and not isinstance(value, FunctionTypeNode):
                pattern: ast.expr = support("ValuePattern", [self._lower_thunk(value, [], annotation)], annotation)
            else:
                pattern = self.lower_pattern(value, names, own)
            if not isinstance(pattern, ast.Constant):
                entries.append(make_tuple([constant(key, annotation), pattern], annotation))
        head = self._lower_thunk(annotation.value, [], annotation)
        return support("HeadPattern", [head, make_tuple(entries, annotation)], annotation)

    def _lower_condition(self, node: FunctionNode) -> ast.expr:
        """Return the `where` clause of an overload as a function of its parameters; others are not checked."""
        names = [parameter.name for parameter in node.parameters]
        own = {argument.name for argument in node.arguments}
        if node.condition is None or names_in(node.condition) & own or node.overload < 0:
            return constant(None, node)
        return self._lower_thunk(node.condition, names, node)

    def _lower_parametric_alias(self, node: Comptime) -> list[ast.stmt]:
        """Lower `comptime Name[parameters] = value` as a function of the parameters."""
        assert isinstance(node.target, ast.Name)  # the parser gives parameters to a name only
        before = self.block.bindings.get(node.target.id)
        name = (before or self.block.declare(node.target.id, "comptime")).name
        value = self._lower_thunk(node.value, [parameter.name for parameter in node.parameters], node)
        alias = support("ParametricAlias", [constant(name, node), self.lower_parameters(node.parameters), value], node)
        return [assign(name, alias, node)]


def last_uses(body: Sequence[ast.stmt]) -> dict[int, list[str]]:
    """Return after which statement of a block its variables are not used any more.

    Mojo ends a value after its last use, and Python when nothing refers to it. Variables that closures or references
    use are left alone, until the function ends.
    """
    declared: set[str] = set()
    held: set[str] = set()
    last: dict[str, int] = {}
    for k, statement in enumerate(body):
        if isinstance(statement, Variable) and isinstance(statement.target, ast.Name) and statement.value is not None:
            declared.add(statement.target.id)
        for part in ast.walk(statement):
            if isinstance(part, ast.Name):
                last[part.id] = k
            elif isinstance(part, (FunctionNode, LambdaFunction)) or (isinstance(part, Variable) and part.is_reference):
                held |= names_in(part)
    endings: dict[int, list[str]] = {}
    for name in sorted(declared - held):
        if not isinstance(body[last[name]], (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            endings.setdefault(last[name], []).append(name)
    return endings


def mutable_arguments(node: FunctionNode) -> list[ArgumentNode]:
    """Return the arguments that a function can change for its caller."""
    return [item for item in node.arguments if item.convention in ("mut", "ref") and item.name != "self"]


def find_mutating(body: Sequence[ast.stmt]) -> dict[str, set[int | str]]:
    """Return the functions and methods that bind a `mut` argument anew, with its position and name.

    Methods have a dot before their name. A function that passes its argument on to such a function is one as well.
    """
    functions: list[tuple[str, FunctionNode]] = []
    nodes: list[ast.AST] = list(body)
    while nodes:
        node = nodes.pop()
        inside_type = isinstance(node, ast.stmt) and hasattr(node, "traits")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FunctionNode):
                functions.append((f".{child.name}" if inside_type else child.name, child))
            elif isinstance(child, Variable) and isinstance(child.value, LambdaFunction):
                child.value.function.variable = "".join(names_in(child.target))
                functions.append((child.value.function.variable, child.value.function))
            nodes.append(child)
    functions += [(node.name, node) for node in body if isinstance(node, FunctionNode)]
    mutating: dict[str, set[int | str]] = {}
    size = -1
    for _ in range(MAX_PASSING):
        if size == sum(map(len, mutating.values())):
            break
        size = sum(map(len, mutating.values()))
        for key, function in functions:
            names = [item.name for item in function.arguments if item.name != "self" and item.convention != "out"]
            for argument in mutable_arguments(function):
                if _rebinds(function.body, argument.name, mutating):
                    mutating.setdefault(key, set()).update((names.index(argument.name), argument.name))
    return mutating


def _rebinds(body: Sequence[ast.stmt], name: str, mutating: dict[str, set[int | str]]) -> bool:
    for statement in body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Call):
                function = part.func.value if isinstance(part.func, Brackets) else part.func
                is_method = isinstance(function, ast.Attribute)
                callee = f".{function.attr}" if is_method else getattr(function, "id", "")  # type: ignore[attr-defined]
                passed = any(isinstance(argument, ast.Name) and argument.id == name for argument in part.args)
                if passed and (callee in mutating or callee == "swap"):
                    return True
                is_change = is_method and function.attr.startswith("__i")  # type: ignore[attr-defined]
                if is_change and isinstance(function.value, ast.Name) and function.value.id == name:  # type: ignore[attr-defined]
                    return True
            elif isinstance(part, (ast.Assign, ast.AugAssign)) and assigns([part], name):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                if any(name in names_in(target) for target in targets):
                    return True
    return False


def is_function_type(node: ast.expr | None) -> bool:
    """Return whether this is a type that no value is checked against."""
    return isinstance(node, (FunctionTypeNode, ast.BinOp, ast.Starred))


def is_self(node: ast.AST) -> bool:
    """Return whether a type mentions `Self`, whose parameters are known only inside the struct."""
    return any(isinstance(part, ast.Name) and part.id == "Self" for part in ast.walk(node))


def parameter_name(node: ast.expr) -> str:
    """Return the name of the parameter that `T` or `Self.T` may be; empty for other types."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Self":
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _assigned_names(body: Sequence[ast.stmt]) -> set[str]:
    return {
        part.id
        for statement in body
        for part in ast.walk(statement)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    } | {part.name for statement in body for part in ast.walk(statement) if isinstance(part, FunctionNode)}


def _parameters(names: Sequence[str], place: ast.AST) -> ast.arguments:
    return ast.arguments([], [at(ast.arg(arg=name), place) for name in names], None, [], [], None, [])

# SPDX-License-Identifier: Apache-2.0
"""Statements of Mojo as statements of Python: variables of blocks, references, assignments, loops and errors."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .building import assign, at, clone, constant, load, make_dict, make_tuple, names_in, support, thunk
from .lower_expressions import ExpressionLowerer, copy_place, needs_conversion
from .problems import NOT_YET
from .scopes import Binding
from .syntax import Brackets, Comptime, ReferenceFor, Transfer, Variable


def _constructed_type(value: ast.expr | None) -> ast.expr | None:
    """Return the type of `Variant[...](...)` and `Optional[...](...)`, which convert what is assigned later."""
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

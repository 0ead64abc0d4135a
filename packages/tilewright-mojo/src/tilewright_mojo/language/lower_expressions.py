# SPDX-License-Identifier: Apache-2.0
"""Expressions of Mojo as expressions of Python: names are looked up, brackets and literals get their meaning."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from .building import (
    Binding,
    Block,
    FunctionScope,
    assign,
    at,
    call,
    call_setter,
    clone,
    constant,
    define,
    fold,
    load,
    make_dict,
    make_tuple,
    support,
    thunk,
    with_outer,
)
from .expressions import Brackets, FunctionNode, FunctionTypeNode, InitializerNode, LambdaFunction, StructNode, Transfer
from .modules import explain_literal, explain_name
from .structs import TEXT_MEMBERS
from .tokens import MojoSourceError, Source, characters, words

IN_PLACE = words("__iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__")
NUMBER_MEMBERS = frozenset({"cast", "copy", "length"})
"""Members of all numbers in Mojo, which numbers of Python do not have."""
LVALUES = (ast.Name, ast.Attribute, Brackets)


class ExpressionLowerer:
    """Lowers expressions in the block that it is in; `pending` statements come before the current one."""

    def __init__(self, source: Source, module: Block) -> None:
        self.source, self.module, self.block = source, module, module
        self.pending: list[ast.stmt] = []
        self.count = 0  # of temporary names
        self.struct: StructNode | None = None  # whose members are lowered
        self.referring: set[str] = set()  # functions that return references
        self.mutating: dict[str, set[int | str]] = {}  # functions with `mut` arguments: which, by position and name

    def fail(self, message: str, node: ast.AST) -> NoReturn:
        """Raise an error that points at a node."""
        raise MojoSourceError(message, self.source, *characters(self.source, node))

    @contextmanager
    def inside(self, scope: FunctionScope | None = None) -> Iterator[Block]:
        """Enter a block of this function, or the first block of another."""
        outer = self.block
        self.block = Block(outer.scope if scope is None else scope, outer)
        try:
            yield self.block
        finally:
            self.block = outer

    def new_name(self, what: str) -> str:
        """Return a name that nothing else has."""
        self.count += 1
        name = f"{what}·{self.count}"
        self.block.scope.names.add(name)
        return name

    def lower(self, node: ast.expr) -> ast.expr:
        """Return an expression of Python with the same value."""
        method = getattr(self, f"_lower_{type(node).__name__}", None)
        if method is not None:
            return method(node)  # type: ignore[no-any-return]
        return self._lower_parts(node)

    def lower_all(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Lower expressions one after the other."""
        return [self.lower(node) for node in nodes]

    def _lower_parts(self, node: ast.expr) -> ast.expr:
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, name, self.lower(value))
            elif isinstance(value, list):
                setattr(node, name, [self.lower(part) if isinstance(part, ast.expr) else part for part in value])
        return node

    # Names.

    def find(self, node: ast.Name) -> Binding:
        """Return the meaning of a name, or fail with a suggestion."""
        binding = self.block.find(node.id)
        if binding is None:
            self.fail(f"unknown name {node.id!r}{explain_name(node.id, sorted(set(self.block.visible())))}", node)
        return binding

    def _lower_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802  (named after the node, as all below)
        if node.id == "_":
            return constant(..., node)
        if self.block.find(node.id) is None and self.struct is not None and self._is_member(node.id):
            return at(ast.Attribute(value=load("Self", node), attr=node.id, ctx=ast.Load()), node)
        if node.id == "__functions_in_module":
            return load("mojo·functions_in_module", node)
        if self.struct is not None and node.id == self.struct.name and not self.struct.parameters:
            return load("Self", node)  # the name is bound only after the struct is made
        binding = self.find(node)
        if binding.place is not None:
            return copy_place(binding.place, node)
        self._reserve(binding)
        return load(binding.name, node)

    def _reserve(self, binding: Binding) -> None:
        """Take a name of an outer function in all functions that see it: a variable of theirs gets another one."""
        block: Block | None = self.block
        while block is not None and block.scope is not binding.scope:
            block.scope.names.add(binding.name)
            block = block.parent

    def _is_member(self, name: str) -> bool:
        """Return whether the struct around has an associated value or a static method of that name."""
        assert self.struct is not None  # asked only there
        for member in self.struct.body:
            target = getattr(member, "target", None)
            if (isinstance(target, ast.Name) and target.id == name) or getattr(member, "name", None) == name:
                return True
        return False

    def store(self, name: str, node: ast.AST) -> Binding:
        """Return the binding that an assignment to a name changes; an unknown name is declared."""
        binding = self.block.find(name)
        scope = self.block.scope
        if binding is None or (binding.scope.is_module and not scope.is_module and binding.kind != "variable"):
            declared = self.block.function_block().declare(name)
            declared.block = self.block
            return declared
        if binding.scope is not scope and binding.place is None:
            (scope.globals if binding.scope.is_module else scope.nonlocals).add(binding.name)
        return binding

    def _lower_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:  # noqa: N802
        value = self.lower(node.value)
        binding = self.store(node.target.id, node)
        target = at(ast.Name(id=binding.name, ctx=ast.Store()), node)
        return at(ast.NamedExpr(target=target, value=value), node)

    def is_literal(self, node: ast.expr) -> bool:
        """Return whether an expression is made of numbers as they are written: its division is exact, as Mojo's."""
        if isinstance(node, ast.BinOp):
            return self.is_literal(node.left) and self.is_literal(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.is_literal(node.operand)
        if isinstance(node, ast.Name):
            binding = self.block.find(node.id)
            return binding is not None and binding.is_literal
        return isinstance(node, ast.Constant)

    def _lower_BinOp(self, node: ast.BinOp) -> ast.expr:  # noqa: N802
        exact = fold(node)
        if exact is not None:
            return constant(float(exact), node)
        if not isinstance(node.op, ast.Div) or self.is_literal(node):
            return self._lower_parts(node)
        return support("divide", [self.lower(node.left), self.lower(node.right)], node)

    def _lower_Compare(self, node: ast.Compare) -> ast.expr:  # noqa: N802
        right = node.comparators[0]
        if not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or not isinstance(right, ast.Constant) or node.ops[1:]:
            return self._lower_parts(node)
        is_none = support("is_none", [self.lower(node.left)], node)
        return is_none if isinstance(node.ops[0], ast.Is) else at(ast.UnaryOp(op=ast.Not(), operand=is_none), node)

    # Literals.

    def _lower_Constant(self, node: ast.Constant) -> ast.expr:  # noqa: N802
        return node

    def _lower_List(self, node: ast.List) -> ast.expr:  # noqa: N802
        return support("make_list", [at(ast.List(elts=self.lower_all(node.elts), ctx=ast.Load()), node)], node)

    def _lower_Dict(self, node: ast.Dict) -> ast.expr:  # noqa: N802
        return support("make_dict", [self._lower_parts(node)], node)

    def _lower_InitializerNode(self, node: InitializerNode) -> ast.expr:  # noqa: N802
        arguments, keywords = self.lower_all(node.arguments), self._lower_keywords(node.keywords)
        return support("Initializer", [make_tuple(arguments, node), make_dict(keywords, node)], node)

    def _lower_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:  # noqa: N802
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.lower(part.value)
        return node

    def _lower_comprehension(self, node: ast.expr, generators: list[ast.comprehension], parts: Sequence[str]) -> None:
        with self.inside():
            for generator in generators:
                generator.iter = self.lower(generator.iter)
                self._declare_names(generator.target)
                generator.ifs = self.lower_all(generator.ifs)
            for part in parts:
                setattr(node, part, self.lower(getattr(node, part)))

    def _declare_names(self, target: ast.expr) -> None:
        for name in self.names_of(target):
            name.id = self.block.declare(name.id).name

    def names_of(self, target: ast.expr) -> list[ast.Name]:
        """Return the names of a target that consists of names only."""
        parts = [part for part in ast.walk(target) if not isinstance(part, (ast.Tuple, ast.Starred, ast.expr_context))]
        for part in parts:
            if not isinstance(part, ast.Name):
                self.fail("expected a name", target)
        return [part for part in parts if isinstance(part, ast.Name)]

    def _lower_ListComp(self, node: ast.ListComp) -> ast.expr:  # noqa: N802
        self._lower_comprehension(node, node.generators, ["elt"])
        return support("make_list", [node], node)

    def _lower_SetComp(self, node: ast.SetComp) -> ast.expr:  # noqa: N802
        self._lower_comprehension(node, node.generators, ["elt"])
        return support("make_set", [at(ast.ListComp(elt=node.elt, generators=node.generators), node)], node)

    def _lower_DictComp(self, node: ast.DictComp) -> ast.expr:  # noqa: N802
        self._lower_comprehension(node, node.generators, ["key", "value"])
        return support("make_dict", [node], node)

    def _lower_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:  # noqa: N802
        self._lower_comprehension(node, node.generators, ["elt"])
        return node

    def materialize(self, node: ast.expr, lowered: ast.expr) -> ast.expr:
        """Return a literal as the value of the type it has in a variable: a String, a Float64, or a Set."""
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        if isinstance(node, ast.BinOp) and isinstance(lowered, ast.Constant):
            node = lowered
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return support("String", [lowered], node)
        if isinstance(node, InitializerNode) and node.arguments and not node.keywords:
            return support("make_set", [lowered], node)
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            return support("Float64", [lowered], node)
        return lowered

    # Members, brackets and calls.

    def _lower_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802
        value = self.materialize(node.value, self.lower(node.value))
        if node.attr in NUMBER_MEMBERS or node.attr in TEXT_MEMBERS:
            value = support("with_members", [value], node)
        return at(ast.Attribute(value=value, attr=node.attr, ctx=ast.Load()), node)

    def _lower_Transfer(self, node: Transfer) -> ast.expr:  # noqa: N802
        return self.lower(node.value)

    def _lower_FunctionTypeNode(self, node: FunctionTypeNode) -> ast.expr:  # noqa: N802
        return load("mojo·FunctionType", node)

    def _lower_keywords(self, keywords: Sequence[ast.keyword]) -> list[ast.keyword]:
        lowered = [(item, self.lower(item.value)) for item in keywords]
        return [
            at(ast.keyword(arg=item.arg, value=support("check_options", [v], item) if item.arg is None else v), item)
            for item, v in lowered
        ]

    def _lower_Slice(self, node: ast.Slice) -> ast.expr:  # noqa: N802
        parts = [constant(None, node) if part is None else self.lower(part) for part in (node.lower, node.upper)]
        step = [] if node.step is None else [self.lower(node.step)]
        return support("slice", [*parts, *step], node)

    def lower_brackets(self, node: Brackets) -> tuple[ast.expr, list[ast.expr], list[ast.keyword]]:
        """Return the parts of brackets; `**_`, which leaves parameters unbound, is dropped."""
        keywords = [item for item in node.keywords if item.arg is not None or not is_unbound(item.value)]
        arguments = [part for part in node.arguments if not (isinstance(part, ast.Starred) and is_unbound(part.value))]
        if not arguments and not keywords and (node.arguments or node.keywords):
            arguments = [constant(..., node)]
        value = self.materialize(node.value, self.lower(node.value))
        return value, self.lower_all(arguments), self._lower_keywords(keywords)

    def _lower_Brackets(self, node: Brackets) -> ast.expr:  # noqa: N802
        value, arguments, keywords = self.lower_brackets(node)
        if keywords or not arguments or (len(arguments) == 1 and isinstance(arguments[0], ast.Tuple)):
            return support("subscript", [value, make_tuple(arguments, node), make_dict(keywords, node)], node)
        return at(ast.Subscript(value=value, slice=self.make_index(arguments, node), ctx=ast.Load()), node)

    def make_index(self, arguments: list[ast.expr], node: ast.AST) -> ast.expr:
        """Return the index of a subscript of Python."""
        if len(arguments) == 1 and not isinstance(arguments[0], ast.Starred):
            return arguments[0]
        return make_tuple(arguments, node)

    def _lower_Call(self, node: ast.Call) -> ast.expr:  # noqa: N802
        if isinstance(node.func, ast.Attribute):
            changed = self._lower_change(node, node.func)
            if changed is not None:
                return changed
        if any(item.arg == "to" and self._is_place(item.value) for item in node.keywords):
            return self._lower_pointer(node)
        name = self._callee_name(node.func)
        mutated = self.mutating.get(name, set())
        if mutated and any(self._is_place(argument) for argument in self._mutated(node, mutated)):
            return self._lower_mutating_call(node, mutated)
        function = self.lower(node.func)
        if isinstance(function, ast.Attribute) and function.attr == "value" and not node.args:
            function.value = support("with_members", [function.value], node)  # of a number that a type contains
        arguments = self.lower_all(node.args)
        return at(ast.Call(func=function, args=arguments, keywords=self._lower_keywords(node.keywords)), node)

    def _lower_change(self, node: ast.Call, function: ast.Attribute) -> ast.expr | None:
        """Return a method call that changes a number or a text, which Python cannot change; None for others."""
        owner, name = function.value, function.attr
        if name in IN_PLACE and self._is_place(owner):
            parts = [self.lower(owner), constant(name, node), *self.lower_all(node.args)]
            return self.write_back(owner, support("change_in_place", parts, node))
        if name == "write" and self._is_place(owner) and not node.keywords:
            return self.write_back(owner, support("write_text", [self.lower(owner), *self.lower_all(node.args)], node))
        operands = [*node.args, *[item.value for item in node.keywords if item.arg in ("w", "writer")]]
        is_writer = len(operands) == len(node.args) + len(node.keywords) == 1 and self._is_place(operands[0])
        if name in ("write_to", "write_repr_to") and is_writer:
            value = support("with_members", [self.lower(owner)], node)
            parts = [value, constant(name, node), self.lower(operands[0])]
            return self.write_back(operands[0], support("write_value", parts, node))
        return None

    def _lower_pointer(self, node: ast.Call) -> ast.expr:
        """Return a pointer to a place, `UnsafePointer(to=x)`: two functions read and write it."""
        target = next(item.value for item in node.keywords if item.arg == "to")
        self.count += 1
        name = f"write·{self.count}"
        scope = FunctionScope()
        with self.inside(scope):
            read = thunk(self.lower(clone(target)), [], node)
            self.block.declare("value")
            write: ast.stmt = at(ast.Expr(value=self.write_back(clone(target), load("value", node))), node)
        arguments = ast.arguments([], [at(ast.arg(arg="value"), node)], None, [], [], None, [])
        self.pending.append(define(name, arguments, with_outer(scope, [write], node), node))
        return support("point_to", [read, load(name, node)], node)

    def _callee_name(self, function: ast.expr) -> str:
        if isinstance(function, Brackets):
            function = function.value
        if isinstance(function, ast.Name):
            return function.id
        return f".{function.attr}" if isinstance(function, ast.Attribute) else ""

    def _mutated(self, node: ast.Call, mutated: set[int | str]) -> list[ast.expr]:
        positional = [argument for k, argument in enumerate(node.args) if k in mutated]
        return positional + [item.value for item in node.keywords if item.arg in mutated]

    def _is_place(self, node: ast.expr) -> bool:
        """Return whether a value has to be written back: names of types and functions do not change."""
        if isinstance(node, ast.Name) and node.id != "self":
            binding = self.block.find(node.id)
            return binding is not None and binding.kind in ("variable", "argument", "alias")
        return isinstance(node, (ast.Attribute, Brackets))

    def _lower_mutating_call(self, node: ast.Call, mutated: set[int | str]) -> ast.expr:
        """Return a call whose `mut` arguments are assigned the values that they have at its end.

        Numbers are immutable in Python, so the callee returns them: `(t := call_back(f, ...), x := t[1], t[0])[-1]`.
        """
        temporary = self.new_name("call")
        function = self.lower(node.func)
        arguments, keywords = self.lower_all(node.args), self._lower_keywords(node.keywords)
        called = support("call_back", [function, make_tuple(arguments, node), make_dict(keywords, node)], node)
        steps: list[ast.expr] = [
            at(ast.NamedExpr(target=at(ast.Name(id=temporary, ctx=ast.Store()), node), value=called), node)
        ]
        sources = [(k, argument) for k, argument in enumerate(node.args) if k in mutated]
        offset = len(node.args)
        sources += [(offset + k, item.value) for k, item in enumerate(node.keywords) if item.arg in mutated]
        for k, argument in sources:
            if self._is_place(argument):
                steps.append(self.write_back(argument, self._entry(temporary, k + 1, node)))
        steps.append(self._entry(temporary, 0, node))
        last = constant(len(steps) - 1, node)
        return at(ast.Subscript(value=make_tuple(steps, node), slice=last, ctx=ast.Load()), node)

    def _entry(self, name: str, index: int, node: ast.AST) -> ast.expr:
        return at(ast.Subscript(value=load(name, node), slice=constant(index, node), ctx=ast.Load()), node)

    def write_back(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """Return an expression that assigns; where nothing changed, members and elements are left alone."""
        if isinstance(target, ast.Name):
            binding = self.store(target.id, target)
            name = binding.place if isinstance(binding.place, ast.Name) else binding
            if name is binding and binding.place is not None:
                return self._write_place(binding.place, value, target)
            identifier = name.name if isinstance(name, Binding) else name.id
            return at(ast.NamedExpr(target=at(ast.Name(id=identifier, ctx=ast.Store()), target), value=value), target)
        return self._write_place(self.lower(target), value, target)

    def _write_place(self, place: ast.expr, value: ast.expr, node: ast.AST) -> ast.expr:
        if isinstance(place, ast.Attribute):
            return support("write_member", [place.value, constant(place.attr, node), value], node)
        if isinstance(place, ast.Subscript):
            return support("write_element", [place.value, place.slice, value], node)
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Name) and place.func.id == "mojo·subscript":
            return support("write_subscript", [*place.args, value], node)
        if isinstance(place, ast.Call):
            return call_setter(place, value, node)
        return value

    # Lambdas.

    def _lower_LambdaFunction(self, node: LambdaFunction) -> ast.expr:  # noqa: N802
        function = node.function
        if self._is_plain(function):
            return self._lower_plain_lambda(function, node)
        self.count += 1
        function.name = f"lambda·{self.count}"
        binding = self.block.declare(function.name, "function")
        self.pending += self.lower_function(function)
        return load(binding.name, node)

    def _is_plain(self, function: FunctionNode) -> bool:
        """Return whether a lambda is one of Python: nothing is inferred, converted, copied or given back."""
        copies = any(capture.convention == "var" for capture in function.captures or [])
        return not (function.parameters or copies) and all(
            argument.default is None and argument.convention == "read" and argument.kind == "any"
            for argument in function.arguments
        )

    def _lower_plain_lambda(self, function: FunctionNode, node: ast.AST) -> ast.expr:
        body = function.body[0]
        assert isinstance(body, ast.Return)  # as the parser makes it
        assert body.value is not None
        with self.inside(FunctionScope()):
            names = [self.block.declare(item.name, "argument", item.annotation).name for item in function.arguments]
            value = self.lower_value(body.value, function.returns)
        return thunk(value, names, node)

    def lower_function(self, node: FunctionNode) -> list[ast.stmt]:
        """Return the definition of a function; a subclass knows how."""
        raise NotImplementedError

    # Values that are copied.

    def lower_value(self, node: ast.expr, annotation: ast.expr | None = None, is_typed: bool = False) -> ast.expr:
        """Return a value that is assigned: converted to the declared type, and copied if it has another name.

        A literal gets its own type, unless its target has one.
        """
        if isinstance(node, InitializerNode) and annotation is not None:
            keywords = self._lower_keywords(node.keywords)
            result = call(self.lower_type(annotation), self.lower_all(node.arguments), node)
            result.keywords = keywords
            return result
        if isinstance(node, ast.Constant) and isinstance(annotation, ast.Name):
            problem = explain_literal(node.value, annotation.id)
            if problem:
                self.fail(problem, node)
        lowered = self.lower(node)
        if isinstance(node, LVALUES) and not self._is_comptime(node):
            lowered = support("copy_value", [lowered], node)
        if annotation is not None and needs_conversion(annotation):
            return support("convert", [lowered, self.lower_type(annotation)], node)
        if annotation is not None and is_immutable(annotation):
            return support("as_immutable", [lowered], node)
        return lowered if is_typed else self.materialize(node, lowered)

    def _is_comptime(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Name):
            return False
        binding = self.block.find(node.id)
        return binding is not None and binding.kind in ("function", "type", "import", "parameter")

    def lower_type(self, annotation: ast.expr) -> ast.expr:
        """Return a type; the tree of the annotation stays as it is, since it may be needed again."""
        return self.lower(clone(annotation))

    def save(self, value: ast.expr, what: str) -> ast.expr:
        """Return a name for the value of an expression, computed before the current statement, if it is not one."""
        if isinstance(value, (ast.Name, ast.Constant)):
            return value
        name = self.new_name(what)
        self.pending.append(assign(name, value, value))
        return load(name, value)


PLAIN_TYPES = words(
    "Int Bool None DType TileTensor LayoutTensor Layout UnsafePointer DeviceContext DeviceBuffer HostBuffer "
    "AnyType Some Self Error"
)
"""Types of arguments and variables that no literal is converted to."""


def needs_conversion(annotation: ast.expr | None) -> bool:
    """Return whether a value of another type may become one of this type without being asked to.

    >>> needs_conversion(ast.Name("Int")), needs_conversion(ast.Name("Float32"))
    (False, True)
    """
    while isinstance(annotation, Brackets):
        annotation = annotation.value
    if annotation is None or isinstance(annotation, (FunctionTypeNode, ast.Constant, ast.Starred, ast.BinOp)):
        return False
    return not (isinstance(annotation, ast.Name) and annotation.id in PLAIN_TYPES)


def is_immutable(annotation: ast.expr) -> bool:
    """Return whether this is a type of tensors that cannot be written: Mojo casts others to it.

    >>> origin = ast.Name("ImmutAnyOrigin")
    >>> is_immutable(Brackets(value=ast.Name("TileTensor"), arguments=[origin], keywords=[]))
    True
    """
    if not isinstance(annotation, Brackets) or not isinstance(annotation.value, ast.Name):
        return False
    if annotation.value.id not in ("TileTensor", "LayoutTensor"):
        return False
    named = {item.arg: item.value for item in annotation.keywords}
    mut, origin = named.get("mut"), named.get("origin")
    entries = [*annotation.arguments, *([] if origin is None else [origin])]
    is_false = isinstance(mut, ast.Constant) and mut.value is False
    return is_false or any(isinstance(entry, ast.Name) and entry.id.startswith("Immut") for entry in entries)


def is_unbound(node: ast.expr) -> bool:
    """Return whether this is `_`, the parameter that is not given."""
    return isinstance(node, ast.Name) and node.id == "_"


def copy_place(place: ast.expr, node: ast.AST) -> ast.expr:
    """Return what a reference refers to, to be read at `node`."""
    copy = clone(place)
    for part in ast.walk(copy):
        if isinstance(part, (ast.expr, ast.keyword)):
            at(part, node)
    return copy

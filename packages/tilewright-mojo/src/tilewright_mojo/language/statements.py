# SPDX-License-Identifier: Apache-2.0
"""The parser of signatures and statements."""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from .expressions import (
    ArgumentKind,
    ArgumentNode,
    Capture,
    Comptime,
    Convention,
    Decorator,
    ExpressionParser,
    FunctionNode,
    FunctionTypeNode,
    LambdaFunction,
    ReferenceFor,
    StructNode,
    TraitNode,
    Variable,
    as_target,
)
from .tokens import KEYWORDS, NOT_MOJO, NOT_YET, Source, Token, suggest, tokenize, words

CONVENTIONS: dict[str, Convention] = {
    "read": "read",
    "imm": "read",
    "immut": "read",
    "borrowed": "read",
    "mut": "mut",
    "inout": "mut",
    "var": "var",
    "owned": "var",
    "out": "out",
    "deinit": "deinit",
    "ref": "ref",
}
EFFECTS = ("raises", "capturing", "unified", "escaping", "thin", "register_passable", "abi", "async")


class SignatureParser(ExpressionParser):
    """Parses what follows `def name`, up to the colon."""

    def parse_signature(self, name: str, begin: Token) -> FunctionNode:
        """Return a function without a body."""
        function = FunctionNode()
        function.name, function.decorators, function.body = name, [], []
        function.parameters = self.parse_parameters() if self.accept("[") else []
        function.arguments = []
        if self.accept("("):
            function.arguments = self._parse_list_of_arguments(")")
        elif not name.startswith("<"):
            self.fail(f"expected '(' and the arguments of {name}, got {self.describe()}")
        function.captures = self._parse_effects()
        function.returns = self._parse_result() if self.accept("->") else None
        function.captures = self._parse_effects() or function.captures
        function.condition = self.parse_expression() if self.accept("where") else None
        return self.place(function, begin)

    def parse_parameters(self) -> list[ArgumentNode]:
        """Return the parameters up to the closing bracket; those before `//` are only inferred."""
        return self._parse_list_of_arguments("]")

    def _parse_list_of_arguments(self, closing: str) -> list[ArgumentNode]:
        arguments: list[ArgumentNode] = []
        kind: ArgumentKind = "any"
        while not self.accept(closing):
            if self.accept("//"):
                for argument in arguments:
                    argument.kind = "infer"
            elif self.accept("/"):
                for argument in arguments:
                    argument.kind = "positional" if argument.kind == "any" else argument.kind
            elif self.at("*") and self.peek().text in (",", closing):
                self.advance()
                kind = "keyword"
            else:
                arguments.append(self._parse_argument(kind))
                if arguments[-1].kind == "variadic":
                    kind = "keyword"
            if not self.at(closing):
                self.expect(",", "a parameter" if closing == "]" else "an argument")
        return arguments

    def _parse_argument(self, kind: ArgumentKind) -> ArgumentNode:
        begin = self.token
        argument = ArgumentNode()
        argument.convention = self._parse_convention()
        argument.kind = kind
        if self.accept("**"):
            argument.kind = "variadic keyword"
        elif self.accept("*"):
            argument.kind = "variadic"
        self._parse_convention()  # `*mut args` and `mut *args` are both seen
        argument.name = self.expect_name("a name").text
        argument.annotation = self._parse_type() if self.accept(":") else None
        argument.default = self.parse_expression() if self.accept("=") else None
        return self.place(argument, begin)

    def _parse_type(self) -> ast.expr:
        """Return a type; `*Ts` stands for several, and a conformance may have a condition."""
        begin = self.token
        if self.accept("*"):
            return self.place(ast.Starred(value=self.parse_expression(), ctx=ast.Load()), begin)
        annotation = self.parse_expression()
        if self.accept("where"):
            self.parse_expression()
        return annotation

    def _parse_convention(self) -> Convention:
        """Return how the argument is passed; the word is a convention only if a name follows."""
        word, following = self.token, self.peek()
        is_followed = (following.kind == "name" and following.text not in ("in", "if")) or following.text in ("*", "**")
        if word.text == "ref" and following.text == "[":
            self.advance()
            self.advance()
            self.parse_arguments("]")
            return "ref"
        if word.kind == "name" and word.text in CONVENTIONS and is_followed:
            self.advance()
            return CONVENTIONS[word.text]
        return "read"

    def _parse_effects(self) -> list[Capture] | None:
        """Go past the effects of a function; return its capture list if it has one."""
        captures = None
        while self.at(*EFFECTS, "{"):
            word = self.advance()
            if word.text == "{":
                captures = self._parse_captures()
            elif word.text == "capturing" and self.accept("["):
                self.parse_arguments("]")
            elif word.text == "abi" and self.accept("("):
                self.parse_arguments(")")
            elif word.text == "raises" and self.token.kind == "name" and not self.at(*EFFECTS, "where"):
                self._parse_binary(5)  # the type of the errors
        return captures

    def _parse_captures(self) -> list[Capture]:
        captures = []
        brace = self.tokens[self.index - 1]
        if self.token.line > brace.line and (self.token.text in KEYWORDS or self.peek().text in ("(", "=", ".", "[")):
            self.fail("expected ':' and an indented block: '{' does not start a block in Mojo", brace)
        while not self.accept("}"):
            begin = self.token
            capture = Capture()
            capture.name, capture.convention = "", "read"
            if begin.text in CONVENTIONS and self.peek().text in ("}", ",", "^"):
                capture.convention = CONVENTIONS[self.advance().text]
            else:
                capture.convention = self._parse_convention()
                capture.name = self.expect_name("the name of a captured variable").text
            if self.accept("^"):
                capture.convention = "var"
            captures.append(self.place(capture, begin))
            if not self.at("}"):
                self.expect(",", "a captured variable")
        return captures

    def _parse_result(self) -> ast.expr:
        """Return the type of the result; `ref[origin] T` is a reference to one."""
        begin = self.token
        if self.at("ref") and (self.peek().text == "[" or self.peek().kind == "name"):
            self.advance()
            if self.accept("["):
                self.parse_arguments("]")
            result = self.parse_expression()
            return self.place(ast.Starred(value=result, ctx=ast.Load()), begin)  # marks a reference
        return self.parse_expression()

    def parse_lambda(self) -> LambdaFunction:
        """Return a lambda: a signature, a colon and an expression."""
        begin = self.advance()
        if self.token.kind == "name" and not self.at(*EFFECTS):  # `lambda x, y: ...`
            function = FunctionNode()
            function.name, function.decorators, function.parameters = "<lambda>", [], []
            function.arguments = self._parse_plain_arguments()
            function.captures, function.returns, function.condition = None, None, None
            self.place(function, begin)
        else:
            function = self.parse_signature("<lambda>", begin)
        self.expect(":", "the arguments of a lambda")
        value = self.parse_expression()
        function.body = [self.place(ast.Return(value=value), value)]
        return self.place(LambdaFunction(function=function), begin)

    def _parse_plain_arguments(self) -> list[ArgumentNode]:
        arguments = []
        while self.token.kind == "name":
            begin = self.token
            argument = ArgumentNode(annotation=None, default=None)
            argument.name, argument.kind, argument.convention = self.advance().text, "any", "read"
            if self.accept("="):
                argument.default = self.parse_expression()
            arguments.append(self.place(argument, begin))
            if not self.accept(","):
                break
        return arguments

    def parse_function_type(self) -> FunctionTypeNode:
        """Return the type of a function, such as `def[width: Int](Int) raises -> None`; types need no names there."""
        begin = self.advance()
        if self.accept("["):
            self.parse_parameters()
        if self.accept("("):
            while not self.accept(")"):
                self._parse_argument_type()
                if not self.at(")"):
                    self.expect(",", "the type of an argument")
        self._parse_effects()
        if self.accept("->"):
            self._parse_result()
            self._parse_effects()
        return self.place(FunctionTypeNode(), begin)

    def _parse_argument_type(self) -> None:
        if self.at("/", "//") or (self.at("*") and self.peek().text in (",", ")")):
            self.advance()
            return
        self._parse_convention()
        self.accept("*", "**")
        if self.token.kind == "name" and self.peek().text == ":":
            self.advance()
            self.advance()
        self._parse_type()
        if self.accept("="):
            self.parse_expression()


AUGMENTED: dict[str, ast.operator] = {
    "+=": ast.Add(),
    "-=": ast.Sub(),
    "*=": ast.Mult(),
    "/=": ast.Div(),
    "//=": ast.FloorDiv(),
    "%=": ast.Mod(),
    "**=": ast.Pow(),
    "@=": ast.MatMult(),
    "&=": ast.BitAnd(),
    "|=": ast.BitOr(),
    "^=": ast.BitXor(),
    "<<=": ast.LShift(),
    ">>=": ast.RShift(),
}
DECORATORS = words(
    "always_inline no_inline inline parameter __parameter staticmethod fieldwise_init value implicit export "
    "deprecated register_passable register_passable_trivial doc_private doc_hidden explicit_destroy align "
    "nonmaterializable __copy_capture __llvm_metadata __llvm_arg_metadata __name __allow_legacy_any_origin_fields "
    "__allow_legacy_custom_self_type compiler.register extensibility.register parameter_only unsafe_no_track "
    "fieldwise_init.implicit extern fast_math"
)
"""The decorators that a program can use; all but a few only concern the compiler."""
REFUSED_STATEMENTS = {
    "class": f"'class' is reserved, {NOT_MOJO} yet; use struct",
    "extension": f"'extension' is refused: {NOT_YET}",
    "async": f"'async' is refused: {NOT_YET}",
    "await": f"'await' is refused: {NOT_YET}",
    "yield": f"'yield' is refused: {NOT_MOJO}",
    "match": f"'match' is refused: {NOT_MOJO}",
    "del": f"'del' is refused: {NOT_MOJO}; a value ends after its last use, or with 'x^'",
    "nonlocal": f"'nonlocal' is refused: {NOT_MOJO}; list the variable in braces, as {{mut x}}",
    "global": f"'global' is refused: {NOT_MOJO}",
    "__extension": f"'__extension' is refused: {NOT_YET}",
}
MAX_CHAIN = 100  # elif after elif, which are nested in the tree


class StatementParser(SignatureParser):
    """Parses statements; a block is a list of them."""

    def parse_program(self) -> list[ast.stmt]:
        """Return all statements of the program."""
        body: list[ast.stmt] = []
        while self.token.kind != "end":
            if self.token.kind == "indent":
                self._refuse_indentation()
            body += self.parse_statements()
        return body

    def _refuse_indentation(self) -> NoReturn:
        self.advance()
        self.fail("unexpected indentation: the line before does not end in a colon, so indent this one like it")

    def parse_block(self, after: str) -> list[ast.stmt]:
        """Return the statements after a colon: an indented block, or the rest of the line."""
        if self.at("=") and after.startswith("the condition"):
            self.fail("'=' assigns; use '==' to compare")
        self.expect(":", after)
        if self.token.kind != "newline":
            return self.parse_statements()
        self.advance()
        if self.kind() != "indent":
            self.fail(f"expected an indented block after {after}, got {self.describe()}")
        self.advance()
        body: list[ast.stmt] = []
        while self.kind() != "dedent":
            if self.kind() == "indent":
                self._refuse_indentation()
            body += self.parse_statements()
        self.advance()
        return body

    def parse_statements(self) -> list[ast.stmt]:
        """Return a compound statement, or the simple statements of a line."""
        begin = self.token
        if begin.kind == "name" and not self.is_quoted():
            self._refuse(begin)
            if self.at("@"):
                return [self._parse_decorated()]
            compound = self._parse_compound()
            if compound is not None:
                return [compound]
        elif self.at("@"):
            return [self._parse_decorated()]
        statements = [self._parse_simple()]
        while self.accept(";"):
            if self.token.kind != "newline":
                statements.append(self._parse_simple())
        if self.token.kind not in ("newline", "end"):
            self.fail(f"expected the end of the statement, got {self.describe()}{self._explain_keyword()}")
        if self.token.kind == "newline":
            self.advance()
        return statements

    def _refuse(self, token: Token) -> None:
        following = self.peek()
        if token.text in REFUSED_STATEMENTS and following.kind in ("name", "string") and following.text != "in":
            self.fail(REFUSED_STATEMENTS[token.text])

    def _explain_keyword(self) -> str:
        words = ["def", "fn", "var", "struct", "trait", "comptime", "alias", "import", "from", "return", "raise"]
        previous = self.tokens[self.index - 1] if self.index else None
        return suggest(previous.text, words) if previous is not None and previous.kind == "name" else ""

    def _parse_compound(self) -> ast.stmt | None:
        """Return a statement with a block; None if the next word does not start one."""
        begin = self.token
        if self.at("def", "fn"):
            return self._parse_function([])
        if self.at("struct"):
            return self._parse_struct([])
        if self.at("trait"):
            return self._parse_trait([])
        if self.at("if"):
            return self._parse_if()
        if self.accept("while"):
            condition = self.parse_expression()
            body = self.parse_block("the condition of while")
            return self.place(ast.While(test=condition, body=body, orelse=self._parse_else()), begin)
        if self.at("for"):
            return self._parse_for()
        if self.accept("try"):
            return self._parse_try(begin)
        if self.accept("with"):
            return self._parse_with(begin)
        if self.at("comptime") and self.peek().text in ("if", "for"):
            self.advance()
            return self._parse_compound()
        return None

    def _parse_else(self) -> list[ast.stmt]:
        return self.parse_block("else") if self.accept("else") else []

    def _parse_if(self, count: int = 0) -> ast.If:
        begin = self.advance()
        if count > MAX_CHAIN:
            self.fail(f"more than {MAX_CHAIN} elif after each other; use a function or a table", begin)
        condition = self.parse_expression()
        body = self.parse_block(f"the condition of {begin.text}")
        node = self.place(ast.If(test=condition, body=body, orelse=[]), begin)
        if self.at("comptime") and self.peek().text in ("elif", "else"):
            self.advance()
        node.orelse = [self._parse_if(count + 1)] if self.at("elif") else self._parse_else()
        return node

    def _parse_for(self) -> ast.For:
        begin = self.advance()
        word = self.accept("var", "ref")
        target = as_target(self, self._parse_targets())
        self.expect("in", "the target of for")
        values = self.parse_expressions()
        body = self.parse_block("the values of for")
        kind = ReferenceFor if word is not None and word.text == "ref" else ast.For
        return self.place(kind(target=target, iter=values, body=body, orelse=self._parse_else()), begin)

    def _parse_try(self, begin: Token) -> ast.Try:
        body = self.parse_block("try")
        handlers, otherwise, final = [], [], []
        while self.at("except"):
            start = self.advance()
            name = self.expect_name("a name").text if self.token.kind == "name" else None
            block = self.parse_block("except")
            handlers.append(self.place(ast.ExceptHandler(type=None, name=name, body=block), start))
        if self.at("else"):
            otherwise = self._parse_else()
        if self.accept("finally"):
            final = self.parse_block("finally")
        if not handlers and not final:
            self.fail(f"expected 'except' or 'finally' after try, got {self.describe()}")
        if len(handlers) > 1:
            self.fail_at(f"a second 'except' of one try: {NOT_MOJO}", handlers[1])
        if otherwise and not handlers:
            self.fail_at("'else' of try needs an 'except'", otherwise[0])
        return self.place(ast.Try(body=body, handlers=handlers, orelse=otherwise, finalbody=final), begin)

    def _parse_with(self, begin: Token) -> ast.With:
        items = []
        has_parenthesis = self.at("(") and self._is_with_list()
        if has_parenthesis:
            self.advance()
        while True:
            context = self.parse_expression()
            target = None
            if self.accept("as"):
                self.accept("var", "ref")
                target = as_target(self, self._parse_postfix())
            items.append(ast.withitem(context_expr=context, optional_vars=target))
            if not self.accept(",") or self.at(")"):
                break
        if has_parenthesis:
            self.expect(")", "the contexts of with")
        return self.place(ast.With(items=items, body=self.parse_block("with")), begin)

    def _is_with_list(self) -> bool:
        """Return whether the parenthesis encloses all contexts of `with`: a colon follows it."""
        depth, at = 0, self.index
        while at < len(self.tokens):
            text = self.tokens[at].text if self.tokens[at].kind == "operator" else ""
            depth += (text == "(") - (text == ")")
            if depth == 0:
                return self.tokens[at + 1].text == ":"
            at += 1
        return False

    def _parse_decorated(self) -> ast.stmt:
        decorators = []
        while self.at("@"):
            begin = self.advance()
            name = self.expect_member()
            while self.accept("."):
                name += f".{self.expect_member()}"
            decorator = Decorator(arguments=[])
            decorator.name = name
            if self.accept("("):
                decorator.arguments = self.parse_arguments(")")[0]
            if name not in DECORATORS:
                self.fail(f"unknown decorator @{name}{suggest(name, sorted(DECORATORS))}", begin)
            decorators.append(self.place(decorator, begin))
            if self.token.kind == "newline":
                self.advance()
        if self.at("if", "for"):  # `@parameter if`, which is now `comptime if`
            statement = self._parse_compound()
            assert statement is not None  # both start one
            return statement
        if self.at("def", "fn"):
            return self._parse_function(decorators)
        if self.at("struct"):
            return self._parse_struct(decorators)
        if self.at("trait"):
            return self._parse_trait(decorators)
        if self.at("var", "comptime", "alias"):
            return self.parse_statements()[0]
        self._refuse(self.token)
        return self.fail(f"expected a function, struct or trait after a decorator, got {self.describe()}")

    def _parse_function(self, decorators: list[Decorator]) -> FunctionNode:
        begin = self.advance()
        name = self.expect_name("the name of the function").text
        function = self.parse_signature(name, begin)
        function.decorators = decorators
        if self.token.kind == "newline":  # a requirement of a trait
            self.fail(f"expected ':' and the body of {name}")
        function.body = self.parse_block(f"the signature of {name}")
        return function

    def _parse_struct(self, decorators: list[Decorator]) -> StructNode:
        begin = self.advance()
        struct = StructNode(decorators=decorators)
        struct.name = self.expect_name("the name of the struct").text
        struct.parameters = self.parse_parameters() if self.accept("[") else []
        struct.traits = self._parse_traits()
        if self.accept("where"):
            self.parse_expression()
        struct.body = self.parse_block(f"the name of struct {struct.name}")
        return self.place(struct, begin)

    def _parse_trait(self, decorators: list[Decorator]) -> TraitNode:
        begin = self.advance()
        trait = TraitNode(decorators=decorators)
        trait.name = self.expect_name("the name of the trait").text
        trait.traits = self._parse_traits()
        trait.body = self.parse_block(f"the name of trait {trait.name}")
        return self.place(trait, begin)

    def _parse_traits(self) -> list[ast.expr]:
        """Return the traits in parentheses; the condition of a conformance is parsed and not used."""
        traits: list[ast.expr] = []
        if not self.accept("("):
            return traits
        while not self.accept(")"):
            traits.append(self._parse_type())
            if not self.at(")"):
                self.expect(",", "a trait")
        return traits

    def _parse_simple(self) -> ast.stmt:
        begin = self.token
        if self.accept("pass"):
            return self.place(ast.Pass(), begin)
        if self.accept("break"):
            return self.place(ast.Break(), begin)
        if self.accept("continue"):
            return self.place(ast.Continue(), begin)
        if self.accept("return"):
            value = None if self.token.kind == "newline" or self.at(";") else self.parse_expressions()
            return self.place(ast.Return(value=value), begin)
        if self.accept("raise"):
            value = None if self.token.kind == "newline" else self.parse_expression()
            return self.place(ast.Raise(exc=value, cause=None), begin)
        if self.at("assert") or (self.at("comptime") and self.peek().text == "assert"):
            return self._parse_assert(begin)
        if self.at("import"):
            return self._parse_import()
        if self.at("from"):
            return self._parse_from_import()
        if self.at("comptime", "alias") and self.peek().kind in ("name", "operator") and self.peek().text != "(":
            return self._parse_comptime()
        if self.at("var") or (self.at("let", "ref") and (self.peek().kind == "name" or self.peek().text == "[")):
            return self._parse_variable()
        return self._parse_assignment()

    def _parse_assert(self, begin: Token) -> ast.Assert:
        self.accept("comptime")
        self.advance()
        condition = self.parse_expression()
        message = self.parse_expression() if self.accept(",") else None
        return self.place(ast.Assert(test=condition, msg=message), begin)

    def _parse_import(self) -> ast.Import:
        begin = self.advance()
        names = []
        while True:
            name = self._parse_dotted_name()
            rename = self.expect_name("a name after 'as'").text if self.accept("as") else None
            names.append(ast.alias(name=name, asname=rename))
            if not self.accept(","):
                return self.place(ast.Import(names=names), begin)

    def _parse_dotted_name(self) -> str:
        name = self.expect_name("the name of a module").text
        while self.accept("."):
            name += f".{self.expect_member()}"
        return name

    def _parse_from_import(self) -> ast.ImportFrom:
        begin = self.advance()
        level = 0
        while self.at(".", "..."):
            level += len(self.advance().text)
        module = None if self.at("import") else self._parse_dotted_name()
        self.expect("import", "the name of the module")
        if self.accept("*"):
            return self.place(ast.ImportFrom(module=module, names=[ast.alias(name="*")], level=level), begin)
        has_parenthesis = self.accept("(")
        names: list[ast.alias] = []
        while not (has_parenthesis and self.accept(")")):
            start = self.token
            name = self.expect_name("the name to import").text
            rename = self.expect_name("a name after 'as'").text if self.accept("as") else None
            names.append(self.place(ast.alias(name=name, asname=rename), start))
            if not self.accept(","):
                if has_parenthesis:
                    self.expect(")", "the imported names")
                break
        return self.place(ast.ImportFrom(module=module, names=names, level=level), begin)

    def _parse_comptime(self) -> Comptime:
        begin = self.advance()
        node = Comptime(parameters=[], annotation=None, value=None)
        node.target = as_target(self, self._parse_comptime_targets(node))
        node.annotation = self._parse_type() if self.accept(":") else None
        node.value = self.parse_expressions() if self.accept("=") else None
        if self.accept("where"):
            self.parse_expression()
        return self.place(node, begin)

    def _parse_comptime_targets(self, node: Comptime) -> ast.expr:
        begin = self.token
        if self.at("("):
            return self._parse_postfix()
        elements: list[ast.expr] = []
        while True:
            name = self.expect_name(f"a name after {self.tokens[self.index - 1].text!r}")
            elements.append(self.place(ast.Name(id=name.text, ctx=ast.Store()), name))
            if self.accept("["):
                node.parameters = self.parse_parameters()
            if not self.accept(","):
                break
        return elements[0] if len(elements) == 1 else self.place(ast.Tuple(elts=elements, ctx=ast.Store()), begin)

    def _parse_variable(self) -> Variable:
        begin = self.advance()
        if begin.text == "ref" and self.accept("["):
            self.parse_arguments("]")
        node = Variable(annotation=None, value=None)
        node.is_reference = begin.text == "ref"
        node.target = as_target(self, self._parse_targets())
        node.annotation = self._parse_type() if self.accept(":") else None
        node.value = self.parse_expressions() if self.accept("=") else None
        if self.at("=") and node.value is not None:
            self.fail(f"several variables in one declaration: {NOT_YET}; declare them one by one")
        return self.place(node, begin)

    def _parse_assignment(self) -> ast.stmt:
        begin = self.token
        target = self.parse_expressions()
        if self.token.kind == "operator" and self.token.text in AUGMENTED:
            operator = AUGMENTED[self.advance().text]
            value = self.parse_expressions()
            place: Any = as_target(self, target)  # Python's types know no other brackets
            return self.place(ast.AugAssign(target=place, op=operator, value=value), begin)
        if self.at(":") and isinstance(target, ast.Name):
            self.advance()
            node = Variable(target=as_target(self, target), annotation=self._parse_type(), value=None)
            node.is_reference = False
            node.value = self.parse_expressions() if self.accept("=") else None
            return self.place(node, begin)
        if not self.at("="):
            return self.place(ast.Expr(value=target), begin)
        targets = [as_target(self, target)]
        self.advance()
        value = self.parse_expressions()
        while self.accept("="):
            targets.append(as_target(self, value))
            value = self.parse_expressions()
        return self.place(ast.Assign(targets=targets, value=value), begin)


def parse_program(source: Source) -> list[ast.stmt]:
    """Return the statements of a program; raise an error with its place if it is not Mojo.

    >>> [type(statement).__name__ for statement in parse_program(Source("var x = 1\\nprint(x)", "a.mojo"))]
    ['Variable', 'Expr']
    """
    return StatementParser(source, tokenize(source)).parse_program()

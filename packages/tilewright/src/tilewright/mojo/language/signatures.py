# SPDX-License-Identifier: Apache-2.0
"""The parser of signatures: parameters in brackets, arguments, captures, effects, results; lambdas, function types."""

from __future__ import annotations

import ast

from .expressions import ExpressionParser
from .stream import KEYWORDS
from .syntax import ArgumentKind, ArgumentNode, Capture, Convention, FunctionNode, FunctionTypeNode, LambdaFunction
from .tokens import Token

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

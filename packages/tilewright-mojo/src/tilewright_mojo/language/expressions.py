# SPDX-License-Identifier: Apache-2.0
"""Mojo's syntax tree, and the parser of expressions."""

from __future__ import annotations

import ast
import re
from typing import Any, Literal, TypeAlias

from .tokens import KEYWORDS, NOT_MOJO, NOT_YET, Token, Tokenizer, TokenStream, words

ArgumentKind: TypeAlias = Literal["infer", "positional", "any", "keyword", "variadic", "variadic keyword"]
Convention: TypeAlias = Literal["read", "mut", "var", "out", "deinit", "ref"]


class MojoNode(ast.AST):
    """A node that is made from its parts by name."""

    def __init__(self, **parts: Any) -> None:  # Any: each node declares its parts
        for name, value in parts.items():
            setattr(self, name, value)


class ArgumentNode(MojoNode):
    """A parameter in brackets or an argument in parentheses; `kind` is the way to pass it."""

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
    """A decorator: its dotted name and its arguments."""

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


BINARY: dict[str, tuple[int, ast.operator]] = {
    "|": (5, ast.BitOr()),
    "^": (6, ast.BitXor()),
    "&": (7, ast.BitAnd()),
    "<<": (8, ast.LShift()),
    ">>": (8, ast.RShift()),
    "+": (9, ast.Add()),
    "-": (9, ast.Sub()),
    "*": (10, ast.Mult()),
    "/": (10, ast.Div()),
    "//": (10, ast.FloorDiv()),
    "%": (10, ast.Mod()),
    "@": (10, ast.MatMult()),
}
"""The operators with their precedence; unary operators bind tighter than all of them, `**` tighter still."""

COMPARISON: dict[str, ast.cmpop] = {
    "==": ast.Eq(),
    "!=": ast.NotEq(),
    "<": ast.Lt(),
    "<=": ast.LtE(),
    ">": ast.Gt(),
    ">=": ast.GtE(),
    "in": ast.In(),
    "is": ast.Is(),
}
UNARY: dict[str, ast.unaryop] = {"-": ast.USub(), "+": ast.UAdd(), "~": ast.Invert()}
ENDINGS = words(") ] } , : = . ; == != < <= > >= + * / // % & | ^ and or if else for in is not as where")
"""What can follow a transfer `x^` but not an exclusive or; `x ^ -y` and `x ^ (y)` are the latter."""
REFUSED = {"await": NOT_YET, "async": NOT_YET, "yield": NOT_MOJO}


class ExpressionParser(TokenStream):
    """Parses expressions and types, which are expressions in Mojo."""

    def parse_expression(self) -> ast.expr:
        """Return a conditional expression, a lambda, or `name := value`."""
        begin = self.token
        self.enter()
        if self.at("lambda"):
            expression: ast.expr = self.parse_lambda()
        else:
            expression = self._parse_or()
            if self.accept(":="):
                if not isinstance(expression, ast.Name):
                    self.fail("':=' assigns a name", begin)
                expression.ctx = ast.Store()
                value = self.parse_expression()
                expression = self.place(ast.NamedExpr(target=expression, value=value), begin)
            elif self.accept("if"):
                condition = self._parse_or()
                self.expect("else", "the condition of a conditional expression")
                otherwise = self.parse_expression()
                expression = self.place(ast.IfExp(test=condition, body=expression, orelse=otherwise), begin)
        self.depth -= 1
        return expression

    def parse_expressions(self) -> ast.expr:
        """Return an expression, or a tuple of several that are separated by commas."""
        begin = self.token
        first = self._parse_starred()
        if not self.at(","):
            return first
        elements = [first]
        while self.accept(","):
            if self.token.kind == "newline" or self.at("=", ")", ":"):
                break
            elements.append(self._parse_starred())
        return self.place(ast.Tuple(elts=elements, ctx=ast.Load()), begin)

    def parse_lambda(self) -> LambdaFunction:
        """Return a lambda; signatures are parsed by a subclass."""
        raise NotImplementedError

    def parse_function_type(self) -> FunctionTypeNode:
        """Return the type of a function; signatures are parsed by a subclass."""
        raise NotImplementedError

    def _parse_starred(self) -> ast.expr:
        begin = self.token
        if self.accept("*"):
            return self.place(ast.Starred(value=self._parse_binary(5), ctx=ast.Load()), begin)
        if self.at("var", "ref") and self.peek().kind == "name":  # `_, var y = ...`
            self.advance()
        return self.parse_expression()

    def _parse_or(self) -> ast.expr:
        return self._parse_boolean("or", ast.Or())

    def _parse_boolean(self, word: str, operator: ast.boolop) -> ast.expr:
        begin = self.token
        parse = self._parse_not if word == "and" else lambda: self._parse_boolean("and", ast.And())
        values = [parse()]
        while self.accept(word):
            values.append(parse())
        return values[0] if len(values) == 1 else self.place(ast.BoolOp(op=operator, values=values), begin)

    def _parse_not(self) -> ast.expr:
        begin = self.token
        if self.accept("not"):
            self.enter()
            operand = self._parse_not()
            self.depth -= 1
            return self.place(ast.UnaryOp(op=ast.Not(), operand=operand), begin)
        return self._parse_comparison()

    def _parse_comparison(self) -> ast.expr:
        begin = self.token
        left = self._parse_binary(5)
        operators: list[ast.cmpop] = []
        operands: list[ast.expr] = []
        while (self.token.text in COMPARISON and self.token.kind in ("name", "operator")) or self._at_not_in():
            if self.accept("not"):
                self.advance()
                operators.append(ast.NotIn())
            else:
                operator = COMPARISON[self.advance().text]
                is_not = isinstance(operator, ast.Is) and self.accept("not")
                operators.append(ast.IsNot() if is_not else operator)
            operands.append(self._parse_binary(5))
        return left if not operators else self.place(ast.Compare(left=left, ops=operators, comparators=operands), begin)

    def _at_not_in(self) -> bool:
        return self.at("not") and self.peek().text == "in"

    def _parse_binary(self, lowest: int) -> ast.expr:
        begin, before = self.token, self.depth
        left = self._parse_unary()
        while self.token.kind == "operator" and self.token.text in BINARY:
            precedence, operator = BINARY[self.token.text]
            if precedence < lowest:
                break
            self.enter()
            self.advance()
            right = self._parse_binary(precedence + 1)
            left = self.place(ast.BinOp(left=left, op=operator, right=right), begin)
        self.depth = before
        return left

    def _parse_unary(self) -> ast.expr:
        begin = self.token
        if begin.kind == "operator" and begin.text in UNARY:
            self.advance()
            self.enter()
            operand = self._parse_unary()
            self.depth -= 1
            return self.place(ast.UnaryOp(op=UNARY[begin.text], operand=operand), begin)
        base = self._parse_postfix()
        if self.accept("**"):
            self.enter()
            exponent = self._parse_unary()
            self.depth -= 1
            return self.place(ast.BinOp(left=base, op=ast.Pow(), right=exponent), begin)
        return base

    def _parse_postfix(self) -> ast.expr:
        begin, before = self.token, self.depth
        value = self._parse_primary()
        while self.token.kind == "operator":
            if self.accept("."):
                name = self.expect_member()
                value = self.place(ast.Attribute(value=value, attr=name, ctx=ast.Load()), begin)
            elif self.accept("("):
                arguments, keywords = self.parse_arguments(")")
                value = self.place(ast.Call(func=value, args=arguments, keywords=keywords), begin)
            elif self.accept("["):
                arguments, keywords = self.parse_arguments("]")
                value = self.place(Brackets(value=value, arguments=arguments, keywords=keywords), begin)
            elif self.at("^") and self._is_transfer():
                self.advance()
                value = self.place(Transfer(value=value), begin)
            else:
                break
            self.enter()
        self.depth = before
        return value

    def expect_member(self) -> str:
        """Return the name after a dot, which may be any word."""
        if self.token.kind != "name":
            self.fail(f"expected a name after '.', got {self.describe()}")
        return self.advance().text

    def _is_transfer(self) -> bool:
        following = self.peek()
        return following.kind in ("newline", "end", "dedent") or (
            following.kind in ("name", "operator") and following.text in ENDINGS
        )

    def parse_arguments(self, closing: str) -> tuple[list[ast.expr], list[ast.keyword]]:
        """Return the arguments between brackets: expressions, slices and `*x`; then `name=value` and `**x`."""
        arguments: list[ast.expr] = []
        keywords: list[ast.keyword] = []
        while not self.accept(closing):
            begin = self.token
            if self.accept("**"):
                value = self._parse_binary(5)
                keywords.append(self.place(ast.keyword(arg=None, value=value), begin))
            elif begin.kind == "name" and self.peek().text == "=" and self.peek().kind == "operator":
                self.advance()
                self.advance()
                value = self._parse_slice() if closing == "]" else self.parse_expression()
                keywords.append(self.place(ast.keyword(arg=begin.text, value=value), begin))
            elif closing == "]":
                arguments.append(self._parse_slice())
            else:
                argument = self._parse_starred()
                arguments.append(self._parse_generators(argument, begin) if self.at("for", "comptime") else argument)
            if not self.at(closing):
                self.expect(",", "an argument")
        return arguments, keywords

    def _parse_slice(self) -> ast.expr:
        begin = self.token
        parts: list[ast.expr | None] = [None, None, None]
        if not self.at(":"):
            first = self._parse_starred()
            if not self.at(":"):
                return first
            parts[0] = first
        for k in (1, 2):
            if self.accept(":") and not self.at(":", ",", "]"):
                parts[k] = self.parse_expression()
        return self.place(ast.Slice(lower=parts[0], upper=parts[1], step=parts[2]), begin)

    def _parse_primary(self) -> ast.expr:
        begin = self.token
        if begin.kind == "number":
            self.advance()
            return self.place(ast.Constant(value=self._read_number(begin)), begin)
        if begin.kind == "string":
            return self._parse_strings()
        if begin.kind == "name" and (begin.text not in KEYWORDS or self.is_quoted()):
            return self._parse_name()
        if self.at("def", "fn"):
            return self.parse_function_type()
        if self.at("comptime"):
            self.advance()
            return self._parse_postfix()
        if self.accept("..."):
            return self.place(ast.Constant(value=...), begin)
        if self.accept("("):
            return self._parse_parentheses(begin)
        if self.accept("["):
            return self._parse_list(begin)
        if self.accept("{"):
            return self._parse_braces(begin)
        return self.fail(f"expected an expression, got {self.describe()}{self._explain_operator()}")

    def _explain_operator(self) -> str:
        """Return what to write instead of an operator of C, or of a part of `if` that has lost its beginning."""
        token, before = self.token, self.tokens[max(0, self.index - 1)]
        if token.text in ("elif", "else", "except", "finally"):
            return (
                "; it has to follow the block of an if, a loop or a try, with the same indentation, and else comes last"
            )
        is_repeated = before.text == token.text and before.position + len(token.text) == token.position
        if is_repeated and token.text in ("&", "|"):
            return f"; write {'and' if token.text == '&' else 'or'}"
        for sign in "+-":
            if [part.text for part in self.tokens[max(0, self.index - 2) : self.index]] == [sign, sign]:
                return f"; Mojo has no {sign}{sign}: write {sign}= 1"
        return "; write not" if token.text == "!" else ""

    def _parse_name(self) -> ast.expr:
        begin = self.advance()
        if begin.text in ("True", "False", "None"):
            return self.place(ast.Constant(value={"True": True, "False": False}.get(begin.text)), begin)
        if begin.text in REFUSED and self.token.kind == "name":
            self.fail(f"{begin.text!r} is refused: {REFUSED[begin.text]}", begin)
        if begin.text.startswith(("__mlir_", "__get_mvalue", "__get_lvalue")):
            self.fail(f"{begin.text} is MLIR inside Mojo: {NOT_YET}", begin)
        return self.place(ast.Name(id=begin.text, ctx=ast.Load()), begin)

    def _read_number(self, token: Token) -> int | float:
        text = token.text.replace("_", "")
        if re.fullmatch(r"0[xXbBoO].*", text):
            if len(text) == 2:
                self.fail(f"the number {token.text} has no digits", token)
            return int(text, 0)
        if len(text) > 4000:
            self.fail("a number has more than 4000 digits", token)
        return int(text) if text.isdigit() else float(text)

    def _parse_parentheses(self, begin: Token) -> ast.expr:
        if self.accept(")"):
            return self.place(ast.Tuple(elts=[], ctx=ast.Load()), begin)
        inside = self.parse_expressions()
        if self.at("for", "comptime"):
            inside = self._parse_generators(inside, begin)
        self.expect(")", "the expression in parentheses")
        return self.place(inside, begin) if isinstance(inside, ast.Tuple) else inside

    def _parse_list(self, begin: Token) -> ast.expr:
        elements: list[ast.expr] = []
        while not self.accept("]"):
            elements.append(self._parse_starred())
            if self.at("for", "comptime"):
                generators = self._parse_for_clauses()
                self.expect("]", "the comprehension")
                return self.place(ast.ListComp(elt=elements[0], generators=generators), begin)
            if not self.at("]"):
                self.expect(",", "an element of the list")
        return self.place(ast.List(elts=elements, ctx=ast.Load()), begin)

    def _parse_braces(self, begin: Token) -> ast.expr:
        """Return a dictionary, a set, or the arguments of the type that is expected."""
        if (self.token.kind == "name" and self.peek().text == "=") or self.at("}"):
            arguments, keywords = self.parse_arguments("}")
            return self.place(InitializerNode(arguments=arguments, keywords=keywords), begin)
        keys: list[ast.expr] = []
        values: list[ast.expr] = []
        is_dictionary = False
        while not self.accept("}"):
            keys.append(self._parse_starred())
            if self.accept(":"):
                is_dictionary = True
                values.append(self.parse_expression())
            if self.at("for", "comptime"):
                generators = self._parse_for_clauses()
                self.expect("}", "the comprehension")
                if is_dictionary:
                    return self.place(ast.DictComp(key=keys[0], value=values[0], generators=generators), begin)
                return self.place(ast.SetComp(elt=keys[0], generators=generators), begin)
            if not self.at("}"):
                self.expect(",", "an element in braces")
        if not is_dictionary:
            return self.place(InitializerNode(arguments=keys, keywords=[]), begin)
        if len(keys) != len(values):
            self.fail("a dictionary needs ':' and a value after each key", begin)
        return self.place(ast.Dict(keys=list(keys), values=values), begin)

    def _parse_generators(self, element: ast.expr, begin: Token) -> ast.expr:
        return self.place(ast.GeneratorExp(elt=element, generators=self._parse_for_clauses()), begin)

    def _parse_for_clauses(self) -> list[ast.comprehension]:
        clauses = []
        while self.at("for") or (self.at("comptime") and self.peek().text == "for"):
            self.accept("comptime")
            self.advance()
            self.accept("var", "ref")
            target = as_target(self, self._parse_targets())
            self.expect("in", "the target of a comprehension")
            values = self._parse_or()
            conditions = []
            while self.accept("if"):
                conditions.append(self._parse_or())
            clauses.append(ast.comprehension(target=target, iter=values, ifs=conditions, is_async=0))
        return clauses

    def _parse_targets(self) -> ast.expr:
        """Return the target of a loop: a name, or several; `in` ends it."""
        begin = self.token
        elements = [self._parse_postfix()]
        while self.accept(","):
            if self.at("in"):
                break
            elements.append(self._parse_postfix())
        return elements[0] if len(elements) == 1 else self.place(ast.Tuple(elts=elements, ctx=ast.Load()), begin)

    def _parse_strings(self) -> ast.expr:
        """Return one string from all that follow each other."""
        begin = self.token
        parts: list[ast.expr] = []
        while self.token.kind == "string":
            parts += self._parse_string(self.advance())
        texts = [part.value for part in parts if isinstance(part, ast.Constant)]
        if len(texts) == len(parts):
            return self.place(ast.Constant(value="".join(map(str, texts))), begin)
        return self.place(ast.JoinedStr(values=parts), begin)

    def _parse_string(self, token: Token) -> list[ast.expr]:
        prefix, quotes, content_at = split_string(token)
        content = token.text[content_at : len(token.text) - len(quotes)]
        raw = "r" in prefix
        if not ("t" in prefix or "f" in prefix):
            return [self.place(ast.Constant(value=content if raw else self._unescape(content, token)), token)]
        return self._parse_template(token, token.position + content_at, token.position + content_at + len(content), raw)

    def _unescape(self, text: str, token: Token) -> str:
        def replace(match: re.Match[str]) -> str:
            code = match[1]
            if code[0] in "xuU":
                value = int(code[1:], 16)
                if value > 0x10FFFF:
                    self.fail(f"\\{code} is not a Unicode character", token)
                return chr(value)
            return chr(int(code, 8) & 255) if code[0] in "01234567" else _ESCAPES.get(code, match[0])

        if "\\" not in text:
            return text
        return _ESCAPE.sub(replace, text)

    def _parse_template(self, token: Token, begin: int, end: int, raw: bool) -> list[ast.expr]:
        """Return the parts of a template: its texts, and the values of the expressions in braces."""
        text, at = self.source.text, begin
        parts: list[ast.expr] = []
        literal = ""
        while at < end:
            brace = _BRACE.search(text, at, end)
            stop = end if brace is None else brace.start()
            literal += text[at:stop] if raw else self._unescape(text[at:stop], token)
            if brace is None:
                break
            at = brace.end()
            if len(brace[0]) == 2:
                literal += brace[0][0]
            elif brace[0] == "}":
                self.fail("'}' closes nothing in the template; write '}}' for a brace", token)
            else:
                parts += [ast.Constant(value=literal)] if literal else []
                literal = ""
                value, at = self._parse_value(token, at, end)
                parts.append(value)
        parts += [ast.Constant(value=literal)] if literal or not parts else []
        return [part if hasattr(part, "lineno") else self.place(part, token) for part in parts]

    def _parse_value(self, token: Token, begin: int, end: int) -> tuple[ast.expr, int]:
        """Return the expression in braces that starts at `begin`, and the position after its brace."""
        line = token.line + self.source.text.count("\n", token.position, begin)
        tokenizer = Tokenizer(self.source, begin, end, line)
        parser = type(self)(self.source, list(tokenizer.read_braces()))
        parser.depth = self.depth + 10
        expression = parser.parse_expression()
        if parser.token.kind != "end":
            parser.fail(f"expected '}}' after the expression in the template, got {parser.describe()}")
        node = ast.FormattedValue(value=expression, conversion=-1, format_spec=None)
        return parser.place(node, expression), tokenizer.position


def split_string(token: Token) -> tuple[str, str, int]:
    """Return prefix, quotes and the position of the content of a string.

    >>> split_string(Token("string", 't"x"', 1, 0, 0))
    ('t', '"', 2)
    """
    body = token.text.lstrip("rRtTfF")
    prefix = token.text[: len(token.text) - len(body)].lower()
    quotes = body[:3] if body[:3] in ('"""', "'''") else body[:1]
    return prefix, quotes, len(prefix) + len(quotes)


def as_target(parser: TokenStream, node: ast.expr) -> ast.expr:
    """Return the node as the target of an assignment, or fail at it."""
    if isinstance(node, (ast.Tuple, ast.List)):
        elements = [as_target(parser, element) for element in node.elts]
        return ast.copy_location(ast.Tuple(elts=elements, ctx=ast.Store()), node)
    if isinstance(node, (ast.Name, ast.Attribute)):
        node.ctx = ast.Store()
        return node
    if isinstance(node, ast.Starred):
        node.value = as_target(parser, node.value)
        node.ctx = ast.Store()
        return node
    if isinstance(node, (Brackets, ast.Call)):  # a call that returns a reference
        return node
    if isinstance(node, Transfer):
        return as_target(parser, node.value)
    return parser.fail_at("this cannot be assigned to", node)


_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|\r?\n|.)", re.DOTALL)
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "\n": "", "\r\n": "",
}  # fmt: skip
_BRACE = re.compile(r"\{\{|\}\}|\{|\}")

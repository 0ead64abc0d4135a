# SPDX-License-Identifier: Apache-2.0
"""Programs that are not valid, or use what is not run: the message, and the line and column that it points at."""

import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import TilewrightError
from tilewright_mojo.language.program import Program
from tilewright_mojo.language.tokens import LARGEST, MojoSourceError, Source

CASES = [  # source, part of the message, line, column
    ("var x = (1", "'(' is never closed", 1, 9),
    ("print(1))", "')' closes nothing", 1, 9),
    ("print([1)", "does not close '['", 1, 9),
    ("if True:\nprint(1)", "expected an indented block", 2, 1),
    ("var a = 1\n  var b = 2", "unexpected indentation", 2, 3),
    ("if True:\n    var a = 1\n  var b = 2", "does not match any block", 3, 3),
    ("if True:\n\tpass", "contains a tab", 2, 1),
    ("var s = 'abc", "not closed", 1, 9),
    ("var s = t'{a'", "not closed", 1, 9),
    ("var x = 3 $ 4", "unexpected character '$'", 1, 11),
    ("var x = 0x", "expected the end of the statement", 1, 10),
    ("def f(x: Int:\n    pass", "'(' is never closed", 1, 6),
    ("def f() -> Int\n    return 1", "expected ':'", 1, 15),
    ("def f():\n    return\n    y = 1 +\n", "expected an expression", 3, 12),
    ("class A:\n    pass", "use struct", 1, 1),
    ("extension A:\n    pass", "Mojo has this", 1, 1),
    ("async def f():\n    pass", "Mojo has this", 1, 1),
    ("@unrolled\ndef f():\n    pass", "unknown decorator @unrolled", 1, 1),
    ("@alway_inline\ndef f():\n    pass", "did you mean always_inline?", 1, 1),
    ("var x = __mlir_op.`index.add`()", "MLIR", 1, 9),
    ("from python import Python", "Python inside Mojo is refused", 1, 20),
    ("from layout import TileTensr", "did you mean TileTensor?", 1, 20),
    ("import nowhere", "not one of Mojo's packages", 1, 1),
    ("def f():\n    prnt(1)", "did you mean print?", 2, 5),
    ("def f(x: Itn):\n    pass\nf(1)", "unknown name 'Itn'", 1, 10),
    ("def f():\n    é = 1\n    print(é, q)", "unknown name 'q'", 3, 14),
    ("1 = x", "cannot be assigned to", 1, 1),
    ("break", "'break' outside loop", 1, 1),
    ("return 1", "'return' outside a function", 1, 1),
    ("try:\n    pass", "expected 'except' or 'finally'", 2, 9),
    ("var a = {1: 2, 3}", "a value after each key", 1, 9),
    ("print(t'{1')", "not closed", 1, 7),
    ("print(t'}')", "closes nothing in the template", 1, 7),
]


def compile_program(text: str) -> Program:
    return Program(Source(text, "a.mojo"), None, {})


def test_messages_and_places():
    for text, message, line, column in CASES:
        with pytest.raises(MojoSourceError) as caught:
            compile_program(text)
        problem = caught.value
        assert message in problem.message, (text, problem.message)
        assert (problem.line, problem.column) == (line, column), (text, problem.message, problem.line, problem.column)
        assert f"a.mojo:{line}:{column}" in str(problem), text


def test_the_caret_is_below_the_character():
    with pytest.raises(MojoSourceError) as caught:
        compile_program("def f():\n    var ü = 1; prnt(ü)")
    lines = str(caught.value).splitlines()
    assert lines[1] == "  at a.mojo:2:16"
    assert lines[2][lines[3].index("^") :].startswith("prnt")


def test_deep_nesting_is_refused():
    for text in ("(" * 3000, "[" * 3000 + "]" * 3000, "x = " + "-" * 5000 + "1", "not " * 5000 + "x"):
        with pytest.raises(MojoSourceError):
            compile_program(text)
    for text in (
        "x = " + "1 + " * 5000 + "1",
        "x = 1" + ".a" * 5000,
        "x = 1" + " ** 1" * 5000,
        "x = " + "a if b else " * 999,
    ):
        with pytest.raises(MojoSourceError):
            compile_program(text)
    blocks = "".join(" " * k + "if True:\n" for k in range(200)) + " " * 200 + "pass"
    with pytest.raises(MojoSourceError, match="nested more than"):
        compile_program(blocks)
    chain = "if True:\n    pass\n" + "elif True:\n    pass\n" * 500
    with pytest.raises(MojoSourceError, match="elif"):
        compile_program(chain)
    loops = "".join("    " * k + "for i in range(1):\n" for k in range(30)) + "    " * 30 + "pass"
    with pytest.raises(MojoSourceError):
        compile_program(loops)


def test_large_and_binary_texts_are_refused():
    with pytest.raises(MojoSourceError, match="characters; at most"):
        compile_program("x" * (LARGEST + 1))
    with pytest.raises(MojoSourceError, match="zero byte"):
        compile_program("print(1)\0")


@given(st.text(max_size=80))
def test_any_text_is_taken_or_refused(text):
    with suppress(TilewrightError):
        compile_program(text)


FRAGMENTS = (
    "def f(x: Int) -> Int:\n    ", "return x", "\n", "    ", "var y = ", "x", "y", "(", ")", "[", "]", "{", "}", "1",
    "0.5", "'a'", "t'{x}'", " + ", " ^ ", "^", ", ", ": ", " = ", " := ", "struct S[T: AnyType]:\n    ",
    "var z: Int\n", "comptime ", "alias ", "for i in range(3):\n    ", "while x:\n    ", "if x:\n    ", "else:\n    ",
    "lambda ", "not ", " in ", "...", "@parameter\n", "try:\n    ", "except e:\n    ", "with x as y:\n    ", "*",
    "**", "//", "->", "ref ", "mut ", "raise ", "pass\n",
)  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25))
def test_any_sequence_of_words_is_taken_or_refused(fragments):
    with suppress(TilewrightError):
        compile_program("".join(fragments))


@pytest.mark.slow
def test_damaged_programs_are_taken_or_refused():
    generator = random.Random(5)
    for path in sorted((Path(__file__).parent / "programs").glob("*.mojo")):
        text = path.read_text()
        for _ in range(40):
            begin = generator.randrange(len(text))
            end = min(len(text), begin + generator.choice((1, 1, 3, 20)))
            middle = generator.choice(("", text[end:begin:-1], generator.choice(FRAGMENTS)))
            with suppress(TilewrightError):
                compile_program(text[:begin] + middle + text[end:])

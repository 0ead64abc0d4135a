# SPDX-License-Identifier: Apache-2.0
"""Wrong programs as students write them: the message says what was meant, in Mojo's words."""

import pytest

from tilewright import TilewrightError
from tilewright.mojo import run
from tilewright_mojo.running import run_collecting

WRONG = {
    "print(sqrt(2.0))": "write 'from std.math import sqrt' at the top",
    "with DeviceContext() as ctx:\n    pass": "write 'from std.gpu.host import DeviceContext' at the top",
    "var x = true": "Mojo writes True",
    "var x: Int = 'three'": "expected a value of type Int, got the text 'three'",
    "var x: Int = 1.5": "Int(1.5) converts it",
    "var s: String = 5": "String(5) converts it",
    "var x = 1\nx++": "write += 1",
    "if 1 > 0 && 2 > 1:\n    pass": "write and",
    "if 1 > 0:\n    pass\nelse:\n    pass\nelif 2 > 1:\n    pass": "else comes last",
    "var x = 1\nif x = 1:\n    pass": "use '==' to compare",
    "def main() {\n    print(1)\n}": "'{' does not start a block",
    "print('a' + 1)": "+ is not defined for String and Int",
    "for i in 5:\n    pass": "Int cannot be looped over; for numbers use range(n)",
    "var x = 3\nprint(x(1))": "Int cannot be called",
    "var x = 3\nprint(x[0])": "Int has no elements",
    "var l = List[Int]()\nl.apend(3)": "did you mean append?",
    "def f():\n    var y: Int\n    print(y)\nf()": "variable 'y' has no value here",
    "assert 1 == 2, 'no'": "no",
}


def test_messages_say_what_was_meant():
    for text, meant in WRONG.items():
        with pytest.raises(TilewrightError) as caught:
            run(text)
        assert meant in str(caught.value), (text, str(caught.value))
        assert "object" not in str(caught.value)


def test_a_function_that_calls_itself_takes_one_line():
    outcome = run_collecting("def f(n: Int) -> Int:\n    return f(n + 1)\nprint(f(0))", True, (), {}, False)
    assert "nested too deep" in str(outcome.problem)


def test_a_program_without_main_is_idle():
    assert run_collecting("def man():\n    pass", True, (), {}, False).is_idle
    assert not run_collecting("def main():\n    pass", True, (), {}, False).is_idle

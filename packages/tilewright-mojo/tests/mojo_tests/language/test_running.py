# SPDX-License-Identifier: Apache-2.0
"""Running programs from Python and from the command line: values, imports, arguments, failures."""

import json
import sys

import pytest
from click.testing import CliRunner

from tilewright import TilewrightError, mojo
from tilewright.cli.program import program as command
from tilewright.errors import FileFormatError
from tilewright.mojo import Error
from tilewright_mojo.errors import FailedAssertion
from tilewright_mojo.language.support import ProgramFailure, describe_failure
from tilewright_mojo.language.tokens import MojoSourceError


def run_command(*arguments: str, text: str | None = None):
    return CliRunner().invoke(command, ["run", *arguments], input=text)


def test_a_program_can_be_used_from_python():
    program = mojo.run("comptime n = 4\ndef add(x: Int, y: Int = n) -> Int:\n    return x + y\n")
    assert program.add(1) == 5
    assert program["add"](1, y=2) == 3
    assert list(program) == ["n", "add"]
    with pytest.raises(AttributeError, match="has no name 'sub'"):
        _ = program.sub


def test_main_is_called_unless_it_should_not_be(capsys):
    text = "def main():\n    print('ran')"
    mojo.run(text)
    mojo.run(text, main=False)
    assert capsys.readouterr().out == "ran\n"


def test_declarations_may_follow_their_use():
    program = mojo.run(
        "comptime a = double(b)\ncomptime b = Box(3).x\n"
        "def double(x: Int) -> Int:\n    return 2 * x\n"
        "@fieldwise_init\nstruct Box:\n    var x: Int\n"
    )
    assert program.a == 6


def test_imports_are_looked_for_in_folders_that_are_named(tmp_path, capsys):
    """As `mojo -I` does: after the program's own folder, also for a text, and for what a module imports in turn."""
    library, program = tmp_path / "library", tmp_path / "program"
    for folder in (library, program):
        folder.mkdir()
    (library / "shapes.mojo").write_text("from sizes import side\ndef area() -> Int:\n    return side * side\n")
    (library / "sizes.mojo").write_text("comptime side = 3\n")
    text = "from shapes import area\ndef main():\n    print(area())\n"
    (program / "main.mojo").write_text(text)
    mojo.run(program / "main.mojo", paths=[library])
    mojo.run(text, paths=[str(library)])
    assert run_command("-I", str(library), str(program / "main.mojo")).stdout == "9\n"
    (program / "shapes.mojo").write_text("def area() -> Int:\n    return 100\n")
    mojo.run(program / "main.mojo", paths=[library])
    assert capsys.readouterr().out == "9\n9\n100\n"
    with pytest.raises(
        MojoSourceError, match=r"'shapes' is not one of Mojo's packages .* not a file: the program is a text"
    ):
        mojo.run(text)
    with pytest.raises(FileFormatError, match=r"cannot import from .*: it is not a folder"):
        mojo.run(text, paths=[tmp_path / "missing"])
    assert run_command("-I", str(tmp_path / "missing"), str(program / "main.mojo")).exit_code == 3


def test_a_file_imports_its_neighbours(tmp_path, capsys):
    (tmp_path / "shapes.mojo").write_text("from .sizes import side\ndef area() -> Int:\n    return side * side\n")
    (tmp_path / "sizes.mojo").write_text("comptime side = 3\n")
    (tmp_path / "main.mojo").write_text(
        "from shapes import area\nimport sizes\ndef main():\n    print(area(), sizes.side)\n"
    )
    mojo.run(tmp_path / "main.mojo")
    assert capsys.readouterr().out == "9 3\n"


def test_files_that_import_each_other_are_refused(tmp_path):
    (tmp_path / "a.mojo").write_text("from b import y\ncomptime x = 1\n")
    (tmp_path / "b.mojo").write_text("from a import x\ncomptime y = 2\n")
    with pytest.raises(MojoSourceError, match="imports itself"):
        mojo.run(tmp_path / "a.mojo")


def test_arguments_and_defined_names(capsys):
    text = (
        "from std.sys import argv, get_defined_int, is_defined\n"
        "def main():\n    print(len(argv()), argv()[1], get_defined_int['N', 2](), is_defined['M']())\n"
    )
    mojo.run(text, arguments=["--fast"], defines={"N": "8"})
    assert capsys.readouterr().out == "2 --fast 8 False\n"


def test_errors_of_programs_are_those_of_the_library():
    with pytest.raises(Error, match="no 3"):
        mojo.run("raise Error('no ', 3)")
    with pytest.raises(FailedAssertion, match="n is 3"):
        mojo.run("var n = 3\nassert n == 4, t'n is {n}'")
    with pytest.raises(ProgramFailure, match=r"Int has no member 'size' here[^@]*at a.mojo:2(:7)?"):
        mojo.run("var n = 3\nprint(n.size)", name="a.mojo")
    with pytest.raises(ProgramFailure, match="division by zero"):
        mojo.run("print(1 // 0)")
    with pytest.raises(TilewrightError, match="nested too deep"):
        mojo.run("def f(n: Int) -> Int:\n    return f(n + 1)\nprint(f(0))")


def test_a_failure_shows_the_calls_of_the_source():
    text = "def inner[n: Int](x: Int) raises:\n    raise Error('bad')\n\ndef main() raises:\n    inner[2](1)\n"
    with pytest.raises(Error) as caught:
        mojo.run(text, name="a.mojo")
    lines = [
        "bad",
        "  at a.mojo:2:5 in inner",
        "    raise Error('bad')",
        "    ^^^^^^^^^^^^^^^^^^",
        "  called from a.mojo:5:5 in main",
    ]
    if sys.version_info < (3, 11):  # which knows only the lines of its instructions
        lines = [line.replace(":5 in", " in") for line in lines if "^" not in line]
    assert describe_failure(caught.value, frozenset({"a.mojo"})).splitlines() == lines


def test_the_command(tmp_path):
    path = tmp_path / "a.mojo"
    path.write_text("from std.sys import argv\ndef main() raises:\n    print(argv()[1])\n    raise Error('stop')\n")
    for arguments in (["--fast"], ["--check", "--fast"], ["--", "--check"]):
        result = run_command(str(path), *arguments)
        assert result.exit_code == 1
        assert result.output.startswith(arguments[-1]), arguments
    assert run_command("-", text="print(1 + 1)").output == "2\n"
    assert run_command("-", text="print(").exit_code == 2
    assert run_command(str(tmp_path / "missing.mojo")).exit_code == 3
    data = json.loads(run_command("--json", "-", text="print('a')").output)
    assert data == {"file": "-", "failed": False, "output": "a\n"}

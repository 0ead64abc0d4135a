# SPDX-License-Identifier: Apache-2.0
"""Run a page as its reader would, in a folder of its own: Python, commands, and the files that it tells to save."""

import doctest
import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tilewright.cli import program

from .pages import Block, blocks_of, page_name

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@contextmanager
def working_in(folder: Path):
    """Work in a folder, from which modules can be imported too."""
    before = Path.cwd()
    modules = set(sys.modules)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
        for name in set(sys.modules) - modules:
            if str(folder) in str(getattr(sys.modules[name], "__file__", None)):
                del sys.modules[name]


def run_page(path: Path, folder: Path) -> dict[str, Any]:
    """Return the names that a page leaves behind, after running all of its blocks in order."""
    namespace: dict[str, Any] = {"__name__": "page"}
    with working_in(folder):
        for block in blocks_of(path):
            run_block(block, path, namespace)
    return namespace


def run_block(block: Block, path: Path, namespace: dict[str, Any]) -> None:
    """Run or save one block; anything but what it promises is an AssertionError."""
    if block.file is not None:
        Path(block.file).write_text(block.text, encoding="utf-8")
    elif block.language == "console":
        run_console(block.text, f"{page_name(path)}:{block.line}")
    elif block.language == "python" and ">>> " in block.text:
        run_session(block.text, path, block.line, namespace)
    elif block.language == "python":
        # The blank lines make a traceback name the line of the page.
        exec(compile("\n" * (block.line - 1) + block.text, str(path), "exec"), namespace)


def run_session(text: str, path: Path, line: int, namespace: dict[str, Any]) -> None:
    """Run lines with their answers, as doctest does."""
    parsed = doctest.DocTestParser().get_doctest(text, {}, path.stem, str(path), line - 1)
    parsed.globs = namespace  # the parser copies the dictionary it is given
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(parsed, out=report.append, clear_globs=False)
    assert not failed, "".join(report)


def run_console(text: str, where: str) -> None:
    """Run every `$ tilewright ...` of a block; what it prints must be what the block shows.

    A command that ends with a status other than 0 must be followed by `$ echo $?`, which shows it.
    """
    status, commands = 0, text.replace("\\\n", "").split("\n$ ")
    for k, command in enumerate(commands):
        line, _, expected = command.removeprefix("$ ").partition("\n")
        words = shlex.split(line)
        if words == ["echo", "$?"]:
            said, status = f"{status}\n", 0
        else:
            assert words[0] == "tilewright", f"{where}: only tilewright is run, not {line!r}"
            found = CliRunner().invoke(program, words[1:])
            if found.exception is not None and not isinstance(found.exception, SystemExit):
                raise found.exception
            said, status = found.stdout + found.stderr, found.exit_code
            shown_next = k + 1 < len(commands) and commands[k + 1].startswith("echo $?")
            assert status == 0 or shown_next, f"{where}: {line!r} ended with status {status}\n{said}"
        if expected or words[0] == "echo":
            same = doctest.OutputChecker().check_output(with_blank_lines(expected), said, FLAGS)
            assert same, f"{where}: {line!r} printed\n{said}\nwhere the page shows\n{expected}"


def with_blank_lines(text: str) -> str:
    """Return an expected text ending as printed ones do."""
    return text if text.endswith("\n") else text + "\n"

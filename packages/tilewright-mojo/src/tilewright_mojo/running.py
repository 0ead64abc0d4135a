# SPDX-License-Identifier: Apache-2.0
"""Running Mojo programs: `run` takes a text or a file."""

from __future__ import annotations

import linecache
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import FileFormatError, TilewrightError

from .language.program import SUFFIXES, Program, read_source
from .language.support import ProgramFailure, describe_failure
from .language.tokens import MojoSourceError, Source
from .library.numbers import own_generator
from .program_arguments import start_with
from .simt import KernelReport, collect_reports


def run(
    source: str | os.PathLike[str],
    *,
    main: bool = True,
    arguments: Sequence[str] = (),
    defines: Mapping[str, str] | None = None,
    paths: Sequence[str | os.PathLike[str]] = (),
    name: str | None = None,
) -> Program:
    """Run a Mojo program and return it: its definitions can be used from Python.

    `source` is the text of a program, or the path of a file, which ends in `.mojo`. The statements at the top run, then
    its function `main`, if there is one and `main` is true. `arguments` are what `argv()` returns after the name of the
    program, `defines` what `get_defined_int` and the like find, `paths` folders in which imports are looked for after
    the program's own, and `name` is how errors call a text.

    What the program prints is printed while it runs. Errors are the library's, with Mojo's lines in their
    traceback; an invalid program raises `MojoSourceError` before any of it runs.

    >>> program = run('''
    ... def area[width: Int](height: Int) -> Int:
    ...     return width * height
    ...
    ... def main():
    ...     print("area", area[3](4))
    ... ''')
    area 12
    >>> program.area[2](5)
    10
    """
    path = as_path(source)
    text = read_source(path) if path is not None else Source(str(source), name or _new_name())
    return _run(text, path, main, arguments, defines or {}, {}, import_folders(paths))


def _run(
    text: Source,
    path: Path | None,
    main: bool,
    arguments: Sequence[str],
    defines: Mapping[str, str],
    loaded: dict[Path, Program | None],
    paths: Sequence[Path],
) -> Program:
    with start_with([text.name, *arguments], defines), own_generator():
        key = Path(text.name) if path is None else path.resolve()
        loaded[key] = None
        try:
            program = Program(text, None if path is None else path.parent, loaded, paths)
        except MojoSourceError as problem:
            raise problem.with_traceback(None) from None  # the compiler's own frames explain nothing
        loaded[key] = program
        try:
            program._execute()
            if main and callable(program._namespace.get("main")):
                program.main()
        except RecursionError as problem:
            raise TooManyCalls(text.name, problem) from None
        except TilewrightError:
            raise
        except Exception as problem:  # of Python, in terms that a Mojo programmer need not know
            names = frozenset(each._source.name for each in loaded.values() if each is not None)
            raise ProgramFailure(describe_failure(problem, names)) from problem
    return program


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a program: the error that stopped it, the reports of its kernels, and the names of its sources.

    `is_idle` marks a program without statements and without a function `main`.

    >>> outcome = Outcome(None, [], frozenset())
    >>> outcome.problem is None
    True
    """

    problem: BaseException | None
    reports: list[KernelReport]
    sources: frozenset[str]
    is_idle: bool = False


def import_folders(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the folders of paths; raise if one is not a folder.

    >>> import_folders(["."])
    [PosixPath('.')]
    """
    folders = [Path(path) for path in paths]
    for folder in folders:
        if not folder.is_dir():
            raise FileFormatError(f"cannot import from {folder}: it is not a folder")
    return folders


def run_collecting(
    source: str,
    is_text: bool,
    arguments: Sequence[str],
    defines: Mapping[str, str],
    check: bool,
    paths: Sequence[str] = (),
) -> Outcome:
    """Run a program for the command line: return its error instead of raising it, and with `check` all reports.

    >>> str(run_collecting("print(1 // 0)", True, (), {}, False).problem).splitlines()[0]
    'division by zero'
    """
    loaded: dict[Path, Program | None] = {}
    reports: list[KernelReport] = []
    problem: BaseException | None = None
    names: set[str] = set()
    is_idle = False
    try:
        folders = import_folders(paths)
        text = Source(source, "<stdin>") if is_text else read_source(Path(source))
        names.add(text.name)
        with collect_reports() if check else nullcontext(reports) as reports:
            path = None if is_text else Path(source)
            is_idle = _run(text, path, True, arguments, defines, loaded, folders)._is_idle
    except BaseException as error:  # of the program, whatever it is
        problem = error
    names |= {program._source.name for program in loaded.values() if program is not None}
    return Outcome(problem, reports, frozenset(names), is_idle)


class TooManyCalls(TilewrightError, RuntimeError):  # noqa: N818  (what went wrong, not its kind)
    """A program whose functions call each other without end.

    >>> str(TooManyCalls("a.mojo", RecursionError()))
    'a.mojo: calls are nested too deep; does a function call itself forever?'
    """

    def __init__(self, name: str, problem: RecursionError) -> None:
        super().__init__(f"{name}: calls are nested too deep; does a function call itself forever?")
        self.__traceback__ = problem.__traceback__


def as_path(source: str | os.PathLike[str]) -> Path | None:
    """Return the path that a source is; None if it is the text of a program.

    >>> as_path("a.mojo"), as_path("print(1)")
    (PosixPath('a.mojo'), None)
    """
    if not isinstance(source, str):
        return Path(source)
    return Path(source) if source.endswith(SUFFIXES) and "\n" not in source else None


def _new_name() -> str:
    """Return `<mojo>` for the first text and a number for later ones, whose functions live on."""
    count = 1
    while (name := "<mojo>" if count == 1 else f"<mojo {count}>") in linecache.cache:
        count += 1
    return name

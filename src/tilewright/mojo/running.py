# SPDX-License-Identifier: Apache-2.0
"""Running Mojo programs: `run` takes a text or a file."""

from __future__ import annotations

import linecache
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import TilewrightError
from .language.problems import Source
from .language.program import SUFFIXES, Program, read_source


def run(
    source: str | os.PathLike[str],
    *,
    main: bool = True,
    arguments: Sequence[str] = (),
    defines: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Program:
    """Return a Mojo program after it ran: what it defines can be used from Python.

    `source` is the text of a program, or the path of a file, which ends in `.mojo`. The statements at the top run, then
    its function `main`, if there is one and `main` is true. `arguments` are what `argv()` returns after the name of the
    program, `defines` what `get_defined_int` and the like find, and `name` is how errors call a text.

    What the program prints is printed while it runs. Errors are those of the library, with Mojo's lines in their
    traceback; `MojoSourceError` if the program is not valid, which is said before anything of it runs.

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
    folder = None if path is None else path.parent
    try:
        loaded: dict[Path, Program] = {}
        program = Program(text, folder, loaded)
        if path is not None:
            loaded[path.resolve()] = program
        program._execute()
        if main and callable(program._namespace.get("main")):
            program.main()
    except RecursionError:
        raise TilewrightError(f"{text.name}: calls are nested too deep; does a function call itself forever?") from None
    return program


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

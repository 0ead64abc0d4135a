# SPDX-License-Identifier: Apache-2.0
"""Programs: source files that are read, lowered, compiled and run; a file imports its neighbours."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any
from warnings import catch_warnings, simplefilter

from tilewright.errors import FileFormatError

from ..prelude import PRELUDE
from ..program_arguments import PROGRAM_MARK
from ..simt.kernel_thread import register_syntax
from .building import SUPPORT
from .expressions import FunctionNode, StructNode, TraitNode
from .lower_program import ProgramLowerer
from .members import Exports
from .modules import get_member, import_from_dialect
from .statements import parse_program
from .support import SUPPORT_NAMES, is_function
from .tokens import NOT_YET, MojoSourceError, Source

SUFFIXES = (".mojo", ".🔥")


class Program(Exports):
    """A program that has been run: its functions, structs and values are attributes, and can be used from Python.

    >>> from tilewright.mojo import run
    >>> program = run("def double(x: Int) -> Int:\\n    return 2 * x")
    >>> program.double(4), program["double"](5), list(program)
    (8, 10, ['double'])
    """

    def __init__(
        self, source: Source, folder: Path | None, loaded: dict[Path, Program | None], paths: Sequence[Path] = ()
    ) -> None:
        self._source, self._folder, self._loaded, self._paths = source, folder, loaded, paths
        self._namespace: dict[str, Any] = {**PRELUDE, **SUPPORT_NAMES, PROGRAM_MARK: True, "__name__": source.name}
        self._given = set(self._namespace)
        self._namespace[f"{SUPPORT}functions_in_module"] = lambda: tuple(
            [self._namespace[name] for name in self if is_function(self._namespace[name])]
        )
        self._code = self._compile()

    def _compile(self) -> CodeType:
        lowerer = ProgramLowerer(self._source, self._namespace, self._import)
        try:
            body = parse_program(self._source)
            self._is_idle = is_idle(body)
            module = lowerer.lower_program(body)
            with catch_warnings():
                simplefilter("ignore", SyntaxWarning)  # such as a call of a number, which fails where it runs
                code = compile(module, self._source.name, "exec", dont_inherit=True)
        except SyntaxError as problem:  # a rule that Python checks late, such as a break outside a loop
            line, column = problem.lineno or 1, max(0, (problem.offset or 1) - 1)
            raise MojoSourceError(problem.msg, self._source, line, column) from None
        except RecursionError:
            raise MojoSourceError("the program is nested too deep", self._source, 1, 0) from None
        self._declared = list(lowerer.module.bindings)
        lines = self._source.text.splitlines(keepends=True)
        linecache.cache[self._source.name] = (len(self._source.text), None, lines, self._source.name)
        register_syntax(self._source.name, ast.fix_missing_locations(module))
        return code

    def _execute(self) -> None:
        """Run the statements of the file, where Python's own built-ins have no names."""
        self._namespace["__builtins__"] = {"iter": iter}  # which kernels that wait are rewritten with
        exec(self._code, self._namespace)  # noqa: S102  (what our own compiler made of a checked program)

    def _import(self, module: str | None, level: int, name: str | None) -> Any:
        """Return the subject of an import statement: a module, or a name of one."""
        target: Any = None if level else import_from_dialect(module or "")
        if target is None:
            target = self._import_neighbour(module, level, name)
            if name is not None and module is None:
                return target
        return target if name is None else get_member(target, name, module or "." * level)

    def _import_neighbour(self, module: str | None, level: int, name: str | None) -> Any:
        folder = self._folder
        wanted = module or name or ""
        if not all(part.isidentifier() for part in wanted.split(".")):  # a name in backticks, which could be any path
            raise ImportError(f"{wanted!r} is not the name of a module")
        for _ in range(level - 1 if folder else 0):
            folder = folder.parent if folder else None
        folders = [*([] if folder is None else [folder]), *([] if level else self._paths)]
        if not folders:
            raise ImportError(
                f"module {wanted!r} is not one of Mojo's packages in tilewright, and not a file: the program is a text"
            )
        for place in folders:
            base = place.joinpath(*wanted.split("."))
            for suffix in SUFFIXES:
                for path in (base.with_name(base.name + suffix), base / f"__init__{suffix}"):
                    if path.is_file():
                        return load_program(path, self._loaded, self._paths)
        raise ImportError(
            f"module {wanted!r} is not one of Mojo's packages in tilewright, and not a file in"
            f" {' or '.join(repr(place.name) for place in folders)}"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name not in self.__dict__.get("_namespace", {}):
            raise AttributeError(name)
        try:
            return self._namespace[name]
        except KeyError:
            raise AttributeError(f"{self!r} has no name {name!r}") from None

    def __getitem__(self, name: str) -> Any:
        if name not in self.exported_names():  # a program that imports this one has brackets too
            raise KeyError(f"{self!r} has no name {name!r}")
        return self._namespace[name]

    def __iter__(self) -> Iterator[str]:
        names = [name for name in self._declared if name in self._namespace and name not in self._given]
        return (name for name in names if "·" not in name)  # not those that only lowered code uses

    def exported_names(self) -> list[str]:
        """Return the definitions of the program, which its importers see."""
        return list(self)

    __dir__ = exported_names

    def __repr__(self) -> str:
        return f"<Mojo program {self._source.name}>"


def is_idle(body: Sequence[ast.stmt]) -> bool:
    """Return whether a program only declares functions and types, none of them `main`: nothing of it would run.

    >>> is_idle(parse_program(Source("def man():\\n    pass", "a.mojo"))), is_idle([])
    (True, True)
    """
    declarations = (ast.Import, ast.ImportFrom, FunctionNode, StructNode, TraitNode)
    return all(isinstance(part, declarations) and getattr(part, "name", "") != "main" for part in body)


def load_program(path: Path, loaded: dict[Path, Program | None], paths: Sequence[Path] = ()) -> Program:
    """Return the program of a file, after its top-level statements ran; a file is loaded once.

    `loaded` has the programs by their paths, None for those that are being loaded; `paths` are folders in which its
    imports are looked for after its own.

    >>> load_program(Path("missing.mojo"), {})
    Traceback (most recent call last):
    tilewright.errors.FileFormatError: cannot read missing.mojo: No such file or directory
    """
    key = path.resolve()
    if key in loaded:
        known = loaded[key]
        if known is None:
            raise ImportError(f"{path.name} imports itself, through another module: {NOT_YET}")
        return known
    loaded[key] = None
    program = Program(read_source(path), path.parent, loaded, paths)
    loaded[key] = program
    program._execute()
    return program


def read_source(path: Path) -> Source:
    """Return the text of a file, which must be UTF-8.

    >>> import os
    >>> read_source(Path(os.devnull)).text
    ''
    """
    try:
        return Source(path.read_bytes().decode("utf-8"), str(path))
    except UnicodeDecodeError as problem:
        raise FileFormatError(
            f"{path} is not text: byte {problem.start} is not UTF-8; a Mojo program is UTF-8"
        ) from None
    except OSError as problem:
        remedy = f"; pass -I {path.parent} if it may be read" if isinstance(problem, PermissionError) else ""
        raise FileFormatError(f"cannot read {path}: {problem.strerror}{remedy}") from None

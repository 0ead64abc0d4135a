# SPDX-License-Identifier: Apache-2.0
"""The architecture: a package imports only from packages above it, at the top of its files, without large cycles."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "tilewright"

PACKAGES = (
    "version",
    "errors",
    "atomic",
    "byte_sizes",
    "logs",
    "plugins",  # what other packages add
    "plain",  # what an object of a dialect stands for
    "findings",  # results of checks
    "spelling",
    "tables",  # reports as text
    "mapped_files",
    "fence",
    "small_numpy",  # a stand-in where NumPy is missing
    "ndarrays",  # NumPy, or its stand-in
    "showing",  # `.show()` of every object, which imports the views when it is called
    "layout",
    "formats",
    "copying",
    "memory",
    "tensor",
    "files",
    "notation",  # texts of other systems, which are checked as files are
    "tiling",  # streams read .npy files through the checked readers of files
    "traffic",
    "testing",  # for the tests of those who write operations
    "conversion",
    "weights",
    "compare",
    "analysis",
    "simt",  # kernels, run and checked thread by thread
    "views",
    "cute",
    "mojo",
    "ttl",
    "ttnn",
    "explorer",  # the page, which asks all of the above
    "cli",
    "__main__",
)


class Import(NamedTuple):
    file: str
    line: int
    module: str  # relative to the library, such as "copying.plan"
    inside: bool  # of a function
    typing: bool  # for type checkers only


def imports(path: Path) -> Iterator[Import]:
    """Yield the imports of a file from the library."""
    file = path.relative_to(SOURCES)

    def visit(node: ast.AST, inside: bool, typing: bool) -> Iterator[Import]:
        if isinstance(node, ast.ImportFrom) and node.level:
            package = list(file.parts[: len(file.parts) - node.level])
            base = [*package, *node.module.split(".")] if node.module else package
            for module in _modules(base, [alias.name for alias in node.names]):
                yield Import(file.as_posix(), node.lineno, module, inside, typing)
        inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        typing |= isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):  # which holds no statements
                yield from visit(child, inside, typing)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), inside=False, typing=False)


def _modules(base: list[str], names: list[str]) -> set[str]:
    """Return the modules that `from base import names` reads: files, or the packages themselves."""
    modules = set()
    for name in names:
        path = SOURCES.joinpath(*base, name)
        modules.add(".".join([*base, name] if path.is_dir() or path.with_suffix(".py").is_file() else base))
    return modules


def package_of(dotted: str) -> str:
    return dotted.split(".", maxsplit=1)[0].split("/", maxsplit=1)[0].removesuffix(".py")


FILES = sorted(SOURCES.rglob("*.py"))


@cache
def all_imports() -> list[Import]:
    return [statement for path in FILES for statement in imports(path)]


def test_every_package_is_listed():
    packages = {path.relative_to(SOURCES).parts[0].removesuffix(".py") for path in FILES} - {"__init__"}
    assert packages == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_from_packages_above_it(package):
    allowed = {*PACKAGES[: PACKAGES.index(package) + 1], ""}  # "" is the library, for its version
    own = [statement for statement in all_imports() if package_of(statement.file) == package]
    assert not [statement for statement in own if package_of(statement.module) not in allowed]


def test_imports_are_at_the_top_of_files():
    deferred = {(statement.file, statement.module) for statement in all_imports() if statement.inside}
    assert not {pair for pair in deferred if pair[0].split("/")[0] not in ("cli", "__init__.py", "display.py")}


def module_graph(typing: bool) -> dict[str, set[str]]:
    """Return which modules each module imports at its top; with `typing`, also for type checkers only."""
    graph: dict[str, set[str]] = {}
    for statement in all_imports():
        module = statement.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        # a package re-exports its files: their importing each other through it is not a cycle of files
        if not statement.inside and (typing or not statement.typing) and not module.startswith(f"{statement.module}."):
            graph.setdefault(module, set()).add(statement.module)
    return graph


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of more than one module."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen, stack = set(), [start]
        while stack:
            for other in graph.get(stack.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        reach[start] = seen
    components = {frozenset({m for m in reach[k] if k in reach.get(m, ())}) for k in graph if k in reach[k]}
    return [set(component) for component in components]


def test_no_modules_import_each_other():
    assert not cycles(module_graph(typing=False))


def test_cycles_for_type_checkers_are_small():
    assert not [sorted(cycle) for cycle in cycles(module_graph(typing=True)) if len(cycle) > MOST_IN_A_CYCLE]


MOST_IN_A_CYCLE = 3

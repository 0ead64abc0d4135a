# SPDX-License-Identifier: Apache-2.0
"""The architecture: a room imports only from rooms above it, at the top of its files, and no files are in a knot."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "tilewright"

PACKAGES = (
    "errors",
    "atomic",
    "sizes",  # of memory, as people type them
    "showing",  # `.show()` of everything, which looks for the views only when it is called
    "layout",
    "formats",
    "copying",
    "memory",
    "tensor",
    "files",
    "tiling",  # streams read .npy through the checks of files
    "conversion",
    "compare",
    "views",
    "mojo",
    "ttl",
    "ttnn",
    "cli",
    "__main__",
)

INSIDE_FUNCTIONS = {
    ("copying/cuda_engine.py", "copying.cuda_arrays"),
    ("copying/device_array.py", "copying.cuda_arrays"),
    ("copying/device_array.py", "copying.opencl_arrays"),  # which imports PyOpenCL
    ("copying/opencl_engine.py", "copying.opencl_arrays"),
    ("copying/plan.py", "copying.codegen"),  # a plan shows the source that is made of it
    ("tiling/kernels/tile_kernel.py", "tiling.pipeline"),
    ("layout/mojo.py", "layout.modes"),  # the names that Mojo gives to what strided layouts do
    ("layout/products.py", "layout.logical_shape"),
    ("memory/spec.py", "memory.fitting"),  # `spec.fit()` asks the room's largest question
    ("tensor/tile_tensor.py", "tensor.layout_tensor"),
}
"""Imports that wait until a function is called, each because the other file needs this one first."""


class Import(NamedTuple):
    file: str
    line: int
    module: str  # from the package, such as "copying.plan"
    inside: bool  # of a function
    typing: bool  # for type checkers only


def imports(path: Path) -> Iterator[Import]:
    """Yield the imports of a file from its own package."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = path.relative_to(SOURCES)
    typed = {id(n) for test in ast.walk(tree) if _checks_types(test) for n in ast.walk(test)}
    inside = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(f)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        package = list(file.parts[: len(file.parts) - node.level])
        base = [*package, *(node.module or "").split(".")] if node.module else package
        for module in _modules(base, [alias.name for alias in node.names]):
            yield Import(str(file), node.lineno, module, id(node) in inside, id(node) in typed)


def _checks_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _modules(base: list[str], names: list[str]) -> set[str]:
    """Return the modules that `from base import names` reads: files, or the packages themselves."""
    found = set()
    for name in names:
        path = SOURCES.joinpath(*base, name)
        found.add(".".join([*base, name] if path.is_dir() or path.with_suffix(".py").is_file() else base))
    return found


def package_of(dotted: str) -> str:
    return dotted.split(".", maxsplit=1)[0].split("/", maxsplit=1)[0].removesuffix(".py")


FILES = sorted(SOURCES.rglob("*.py"))
ALL = [each for path in FILES for each in imports(path)]


def test_every_room_has_its_place():
    found = {path.relative_to(SOURCES).parts[0].removesuffix(".py") for path in FILES} - {"__init__"}
    assert found == set(PACKAGES)


@pytest.mark.parametrize("room", PACKAGES)
def test_a_room_imports_only_from_rooms_above_it(room):
    allowed = {*PACKAGES[: PACKAGES.index(room) + 1], ""}  # "" is the package, for its version
    wrong = [
        each
        for each in ALL
        if package_of(each.file.replace("\\", "/")) == room and package_of(each.module) not in allowed
    ]
    assert not wrong


def test_imports_are_at_the_top_of_files():
    found = {(each.file.replace("\\", "/"), each.module) for each in ALL if each.inside}
    lazy = {pair for pair in found if pair[0].split("/")[0] not in ("cli", "__init__.py", "showing.py")}
    assert lazy == INSIDE_FUNCTIONS


def test_no_two_files_need_each_other():
    needs: dict[str, set[str]] = {}
    for each in ALL:
        if not each.inside and not each.typing:
            here = each.file.replace("\\", "/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            needs.setdefault(here, set()).add(each.module)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " needs ".join([*path[path.index(module) :], module])
        if module not in done:
            for other in sorted(needs.get(module, ())):
                # a package that gathers its files is no neighbour of theirs
                if not module.startswith(f"{other}."):
                    visit(other, (*path, module))
            done.add(module)

    for module in sorted(needs):
        visit(module, ())

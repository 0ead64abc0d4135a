# SPDX-License-Identifier: Apache-2.0
"""Every example a reader can see is executed, and each check fails if it finds nothing to execute."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import tilewright
import tilewright.files
import tilewright.layout
import tilewright.memory
import tilewright.tensor
import tilewright.tiling
import tilewright.views
from tilewright.copy import device_moves, opencl_engine

README = Path(__file__).parent.parent / "README.md"
ACCELERATORS = README.parent / "docs" / "accelerators.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FEWEST_DOCSTRING_EXAMPLES = 20

# Extras that need not be installed: a module that wants one of them is skipped, not failed.
OPTIONAL = {"cupy", "dask", "distributed", "pyopencl", "torch", "zarr"}


def module_names() -> list[str]:
    """Return the names of all modules of the package, less the native library, which only looks like one."""
    found = pkgutil.walk_packages(tilewright.__path__, "tilewright.")
    return ["tilewright", *sorted({info.name for info in found} - {"tilewright._native"})]


def import_or_skip(name: str):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name in OPTIONAL:
            pytest.skip(f"{name} needs {problem.name}")
        raise


def doctests(module) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


def run_doctest(test: doctest.DocTest) -> None:
    """Run one test; on failure show what doctest would have printed."""
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert not failed, "".join(report)


def blocks_of(document: Path) -> list[tuple[int, str]]:
    """Return (line number, code) of every block fenced as python in a document."""
    text = document.read_text(encoding="utf-8")
    fences = re.finditer(r"^```python[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, fence.start(1)) + 1, fence[1]) for fence in fences]


def public_objects() -> list[str]:
    """Return "room.name" of every function and class that a room exports."""
    shown = (
        tilewright.layout,
        tilewright.memory,
        tilewright.tensor,
        tilewright.tiling,
        tilewright.files,
        tilewright.views,
    )
    exported = (
        (f"{room.__name__.split('.')[-1]}.{name}", getattr(room, name)) for room in shown for name in room.__all__
    )
    return [name for name, value in exported if inspect.isfunction(value) or inspect.isclass(value)]


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples(name):
    for test in doctests(import_or_skip(name)):
        run_doctest(test)


def test_docstring_examples_are_found():
    count = 0
    for name in module_names():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue  # reported by test_docstring_examples
        count += sum(len(test.examples) for test in doctests(module))
    assert count >= FEWEST_DOCSTRING_EXAMPLES


@pytest.mark.parametrize("name", public_objects())
def test_public_name_has_an_example(name):
    room, public = name.split(".")
    docstring = inspect.getdoc(getattr(getattr(tilewright, room), public)) or ""
    assert ">>> " in docstring, f"tilewright.{name} has no >>> example in its docstring"


def test_public_names_are_found():
    assert public_objects()


def test_readme_examples_are_found():
    assert blocks_of(README)
    assert blocks_of(ACCELERATORS)


def run_document(document: Path) -> None:
    """Run all examples of a document, one after the other, as a reader would."""
    namespace = {"__name__": document.stem}
    for line, code in blocks_of(document):
        if ">>> " in code:
            parsed = doctest.DocTestParser().get_doctest(code, {}, document.stem, str(document), line - 1)
            parsed.globs = namespace  # the parser copies the dictionary it is given
            run_doctest(parsed)
        else:
            # The blank lines make a traceback name the line of the document.
            exec(compile("\n" * (line - 1) + code, str(document), "exec"), namespace)


def test_readme_examples():
    run_document(README)


def test_examples_on_accelerators():
    reason = opencl_engine.why_not()
    if reason is not None:
        pytest.skip(reason)
    device_moves._said.clear()  # as in a new process, which has said nothing yet
    run_document(ACCELERATORS)

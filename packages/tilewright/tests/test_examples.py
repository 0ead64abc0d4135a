# SPDX-License-Identifier: Apache-2.0
"""Every example of a docstring is executed; those of pages are in tests/docs. Each check fails if it finds nothing."""

import doctest
import importlib
import inspect
import pkgutil
from functools import cached_property
from importlib.util import find_spec

import pytest

import tilewright
import tilewright.conversion
import tilewright.files
import tilewright.layout
import tilewright.memory
import tilewright.tensor
import tilewright.tiling
import tilewright.traffic
import tilewright.views

from .test_surface import COMPANIONS

FLAGS = doctest.ELLIPSIS
FEWEST_DOCSTRING_EXAMPLES = 20

# Extras that need not be installed: a module that wants one of them is skipped, not failed.
OPTIONAL = {"anywidget", "cupy", "dask", "distributed", "h5py", "islpy", "pyopencl", "torch", "zarr"}


def module_names() -> list[str]:
    """Return the names of all modules of the library and its companions, without the native library."""
    roots = [importlib.import_module(name) for name in ("tilewright", *COMPANIONS)]
    found = {info.name for root in roots for info in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")}
    return [*[root.__name__ for root in roots], *sorted(found - {"tilewright._native"})]


def import_or_skip(name: str):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name in OPTIONAL:
            pytest.skip(f"{name} needs {problem.name}")
        raise


def doctests(module) -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder()
    found = finder.find(module)
    known = {test.name for test in found}
    # Before Python 3.13 the finder passes cached properties by.
    for name, owner in inspect.getmembers(
        module, lambda each: inspect.isclass(each) and each.__module__ == module.__name__
    ):
        for key, value in vars(owner).items():
            path = f"{module.__name__}.{name}.{key}"
            if isinstance(value, cached_property) and path not in known:
                found += finder.find(value.func, path, module)
    return [test for test in found if test.examples]


def run_doctest(test: doctest.DocTest) -> None:
    """Run one test; on failure show what doctest would have printed."""
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert not failed, "".join(report)


def public_objects() -> list[str]:
    """Return "package.name" of every function and class that a package exports."""
    shown = (
        tilewright.layout,
        tilewright.memory,
        tilewright.tensor,
        tilewright.tiling,
        tilewright.traffic,
        tilewright.files,
        tilewright.conversion,
        tilewright.conversion,
        tilewright.views,
    )
    exported = (
        (f"{package.__name__.split('.')[-1]}.{name}", getattr(package, name))
        for package in shown
        for name in package.__all__
    )
    return [name for name, value in exported if inspect.isfunction(value) or inspect.isclass(value)]


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples(name):
    for test in doctests(import_or_skip(name)):
        try:
            run_doctest(test)
        except AssertionError as problem:
            wanted = [extra for extra in OPTIONAL if find_spec(extra) is None and extra in str(problem)]
            if not wanted:
                raise
            pytest.skip(f"an example of {test.name} needs {wanted[0]}")


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
    package, public = name.split(".")
    docstring = inspect.getdoc(getattr(getattr(tilewright, package), public)) or ""
    assert ">>> " in docstring, f"tilewright.{name} has no >>> example in its docstring"


def test_public_names_are_found():
    assert public_objects()

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


def nouns_and_verbs() -> list[str]:
    """Return the names of the functions and classes that `tw` offers; what else a package exports needs no example."""
    offered = [(name, getattr(tilewright, name)) for name in tilewright.__all__]
    return [
        name
        for name, value in offered
        if inspect.isfunction(value) or (inspect.isclass(value) and not issubclass(value, Exception))
    ]


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


def test_nouns_and_verbs_have_an_example():
    names = nouns_and_verbs()
    assert names
    without = [name for name in names if ">>> " not in (inspect.getdoc(getattr(tilewright, name)) or "")]
    assert not without, "nouns and verbs of tw without a >>> example in their docstring"

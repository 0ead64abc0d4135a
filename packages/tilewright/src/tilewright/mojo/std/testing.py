# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.testing`: assertions, and suites of tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import TilewrightError
from ..brackets import Bracketed
from ..builtins import format_value
from ..simd import Error

__all__ = [
    "TestSuite",
    "assert_almost_equal",
    "assert_equal",
    "assert_equal_pyobj",
    "assert_false",
    "assert_is",
    "assert_is_not",
    "assert_not_equal",
    "assert_raises",
    "assert_true",
]


def _fail(text: str, msg: Any) -> None:
    raise Error(f"AssertionError: {text}", f" reason: {format_value(msg)}" if str(msg) else "")


def _is_equal(lhs: Any, rhs: Any) -> bool:
    result = lhs == rhs
    return bool(np.all(result))


def assert_true(val: Any, msg: Any = "condition was unexpectedly False", **_: Any) -> None:
    """Raise unless a value is true.

    >>> assert_true(1 < 2)
    """
    if not val:
        raise Error("AssertionError: ", format_value(msg))


def assert_false(val: Any, msg: Any = "condition was unexpectedly True", **_: Any) -> None:
    """Raise if a value is true.

    >>> assert_false(2 < 1)
    """
    if val:
        raise Error("AssertionError: ", format_value(msg))


def assert_equal(lhs: Any, rhs: Any, msg: Any = "", **_: Any) -> None:
    """Raise unless two values are equal.

    >>> assert_equal(3, 3)
    """
    if not _is_equal(lhs, rhs):
        _fail(f"`left == right` comparison failed: left: {format_value(lhs)} right: {format_value(rhs)}", msg)


assert_equal_pyobj = assert_equal


def assert_not_equal(lhs: Any, rhs: Any, msg: Any = "", **_: Any) -> None:
    """Raise if two values are equal.

    >>> assert_not_equal(3, 4)
    """
    if _is_equal(lhs, rhs):
        _fail(f"`left != right` comparison failed: left: {format_value(lhs)} right: {format_value(rhs)}", msg)


def assert_almost_equal(
    lhs: Any, rhs: Any, msg: Any = "", *, atol: Any = 1e-8, rtol: Any = 1e-5, equal_nan: Any = False, **_: Any
) -> None:
    """Raise unless two numbers, or vectors, differ by at most `atol + rtol * |rhs|`.

    >>> assert_almost_equal(1.0, 1.000001)
    """
    left, right = (np.asarray(value, np.float64) for value in (lhs, rhs))
    tolerance = float(atol), float(rtol)
    if not np.allclose(left, right, atol=tolerance[0], rtol=tolerance[1], equal_nan=bool(equal_nan)):
        with np.errstate(invalid="ignore"):
            difference = float(np.max(np.abs(left - right)))
        _fail(
            f"{format_value(lhs)} is not close to {format_value(rhs)} with a diff of"
            f" {difference if math.isfinite(difference) else format_value(difference)}",
            msg,
        )


def assert_is(lhs: Any, rhs: Any, msg: Any = "", **_: Any) -> None:
    """Raise unless two values are the same object.

    >>> assert_is(None, None)
    """
    if lhs is not rhs:
        _fail(f"`left is right` identification failed: left: {lhs} right: {rhs}", msg)


def assert_is_not(lhs: Any, rhs: Any, msg: Any = "", **_: Any) -> None:
    """Raise if two values are the same object.

    >>> assert_is_not(3, None)
    """
    if lhs is rhs:
        _fail(f"`left is not right` identification failed: left: {lhs} right: {rhs}", msg)


class assert_raises:  # noqa: N801  (Mojo's name)
    """`with assert_raises(contains="text"):` expects the block to raise an error, with that text in its message.

    >>> with assert_raises(contains="no row"):
    ...     raise Error("no row 3")
    """

    def __init__(self, *, contains: Any = None, **_: Any) -> None:
        self._contains = contains

    def __enter__(self) -> assert_raises:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: Any) -> bool:
        if problem is None:
            raise Error("AssertionError: Didn't raise")
        if not isinstance(problem, (TilewrightError, StopIteration)):
            return False
        return self._contains is None or str(self._contains) in str(problem)


class TestSuite:
    """The tests of a program: `TestSuite.discover_tests[__functions_in_module()]().run()`.

    >>> def test_sum() -> None:
    ...     assert_equal(1 + 1, 2)
    >>> TestSuite.discover_tests[(test_sum,)]().run()
    Running 1 tests
        PASS test_sum
    1 tests: 1 passed, 0 failed, 0 skipped
    """

    __test__ = False  # not a class of tests itself

    def __init__(self, *_: Any, **__: Any) -> None:
        self._tests: list[Any] = []
        self._skipped: set[str] = set()

    discover_tests = Bracketed(lambda _, parameters, **options: TestSuite._discover(parameters))

    @staticmethod
    def _discover(parameters: tuple[Any, ...]) -> TestSuite:
        suite = TestSuite()
        for part in parameters:
            for function in part if isinstance(part, (tuple, list)) else (part,):
                if _name_of(function).startswith("test_"):
                    suite._tests.append(function)
        return suite

    def _add(self, parameters: tuple[Any, ...]) -> None:
        self._tests += parameters

    @property
    def test(self) -> Bracketed[None]:
        """Add a test: `suite.test[function]()`.

        >>> suite = TestSuite()
        >>> suite.test[print]()
        """
        return Bracketed(TestSuite._add, self)

    @property
    def skip(self) -> Bracketed[None]:
        """Leave out a test: `suite.skip[function]()`.

        >>> TestSuite().skip[print]()
        """
        return Bracketed(lambda suite, parameters: suite._skipped.update(map(_name_of, parameters)), self)

    def run(self, **_: Any) -> None:
        """Run the tests; raise if one fails.

        >>> TestSuite().run()
        Running 0 tests
        0 tests: 0 passed, 0 failed, 0 skipped
        """
        print(f"Running {len(self._tests)} tests")
        failed = []
        for function in self._tests:
            name = _name_of(function)
            if name in self._skipped:
                print(f"    SKIP {name}")
                continue
            try:
                function()
            except TilewrightError as problem:
                failed.append(problem)
                print(f"    FAIL {name}\n      {problem}")
            else:
                print(f"    PASS {name}")
        skipped = sum(_name_of(function) in self._skipped for function in self._tests)
        passed = len(self._tests) - len(failed) - skipped
        print(f"{len(self._tests)} tests: {passed} passed, {len(failed)} failed, {skipped} skipped")
        if failed:
            raise Error(f"{len(failed)} of {len(self._tests)} tests failed; the first: {failed[0]}") from failed[0]


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", function))

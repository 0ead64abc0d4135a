# SPDX-License-Identifier: Apache-2.0
"""The errors of Mojo programs: values of any type, and failed assertions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.mojo import Error, MojoValue


class RaisedValue(TilewrightError):  # noqa: N818  (a value, of any type)
    """A value that a program raised: Mojo's errors may have any type.

    >>> RaisedValue(3).value
    3
    """

    def __init__(self, value: object) -> None:
        super().__init__(f"{type(value).__name__}: {value}")
        self.value = value


Raised = (Error, RaisedValue)
"""The exceptions that `except` catches. Errors that end a Mojo program, such as a wrong index, are not caught."""


def as_exception(value: object) -> BaseException:
    """Return the exception that Python raises for a value of Mojo.

    >>> as_exception("no")
    Error('no')
    """
    if isinstance(value, BaseException):
        return value
    if isinstance(value, type) and issubclass(value, BaseException):
        return value()
    return Error(value) if isinstance(value, str) else RaisedValue(value)


def payload(caught: BaseException) -> MojoValue:
    """Return the value that `except e` binds.

    >>> payload(as_exception(3))
    3
    """
    return caught.value if isinstance(caught, RaisedValue) else caught


class FailedAssertion(TilewrightError, AssertionError):  # noqa: N818  (what happened)
    """An `assert` whose condition is false: it ends a program, as in Mojo.

    >>> isinstance(FailedAssertion("n is 3"), AssertionError)
    True
    """


def fail_assertion(message: Callable[[], Any]) -> None:
    """Raise the error of an assertion; its message is computed only now.

    >>> fail_assertion(lambda: "n is 3")
    Traceback (most recent call last):
    tilewright_mojo.errors.FailedAssertion: n is 3
    """
    raise FailedAssertion(str(message()))

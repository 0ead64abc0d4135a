# SPDX-License-Identifier: Apache-2.0
"""Tests of many cases name the cases that fail, and run all of them."""

import pytest

from . import cases as cases_module
from .cases import all_cases


@pytest.fixture(autouse=True)
def _all_of_them(monkeypatch):
    monkeypatch.setattr(cases_module, "MOST", None)  # also in a quick run


@all_cases(("left", range(3)), ("right, more", [(10, 1), (20, 2)]), groups=2)
def test_every_argument_is_given(left, right, more):
    assert (left in range(3), right) == (True, 10 * more)


def run(test, **arguments):
    """Run all cases of a decorated test in this process."""
    (mark,) = test.pytestmark
    for cases in mark.args[1]:
        test(cases=cases, **arguments)


def test_all_cases_run_and_failures_are_named():
    seen = []

    @all_cases(("number", range(5)))
    def check(number):
        seen.append(number)
        assert number % 2 == 0

    with pytest.raises(AssertionError, match=r"2 of 5 cases failed:\n  number=1\n  number=3"):
        run(check)
    assert seen == [0, 1, 2, 3, 4]


def test_a_test_is_skipped_only_if_all_of_its_cases_are():
    @all_cases(("number", range(2)))
    def check(number):
        if number < limit:
            pytest.skip("too small")

    limit = 1
    run(check)
    limit = 2
    with pytest.raises(pytest.skip.Exception, match="too small"):
        run(check)


def test_no_cases_are_an_error():
    with pytest.raises(AssertionError, match="there are no cases"):
        all_cases(("number", []))


def test_a_step_leaves_cases_out():
    seen = []

    @all_cases(("number", range(10)), step=lambda fixtures: fixtures["every"])
    def check(number, every):
        seen.append(number)

    run(check, every=4)
    assert seen == [0, 4, 8]

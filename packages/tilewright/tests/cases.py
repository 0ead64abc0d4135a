# SPDX-License-Identifier: Apache-2.0
"""Many cases in one test item, each named in the message if it fails: an item costs more than most cases."""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import settings

MOST: int | None = None
"""How many cases of a test are run, when not all are (`pytest --quick`)."""


def examples(count: int, **options: Any) -> settings:
    """Return Hypothesis' settings for a law that needs `count` examples where most take a hundred, in every profile."""
    return settings(max_examples=max(1, count * settings().max_examples // 100), **options)


def some(cases: list[Any], most: int | None) -> list[Any]:
    """Return at most this many of the cases, evenly spread, or all.

    >>> some([0, 1, 2, 3, 4, 5, 6], 3)
    [0, 3, 6]
    """
    return cases if most is None else cases[:: max(1, -(-len(cases) // most))]


def all_cases(
    *axes: tuple[str, Iterable[Any]],
    groups: int = 1,
    name: Callable[..., str] | None = None,
    step: Callable[[Mapping[str, Any]], int] | None = None,
) -> Callable[[Any], Any]:
    """Return a decorator that runs a test for every combination of values along the axes, in `groups` test items.

    An axis is the name of an argument, or of several, and its values. All cases run, also after one has failed.
    `name` makes the name of a case from its arguments; `step` says, for the fixtures of an item, of how many cases one
    is run.

    >>> @all_cases(("left", [1, 2]), ("right, more", [(3, 4), (5, 6)]))
    ... def test_sums_are_positive(left, right, more):
    ...     assert left + right + more > 0
    """
    names = [[part.strip() for part in arguments.split(",")] for arguments, _ in axes]
    cases = [
        {k: v for ks, value in zip(names, values, strict=True) for k, v in _pairs(ks, value)}
        for values in itertools.product(*[values for _, values in axes])
    ]
    assert cases, "there are no cases"
    parts = [cases[k::groups] for k in range(min(groups, len(cases)))]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, cases: list[dict[str, Any]], **fixtures: Any) -> None:
            failed, skipped, first = [], [], None
            chosen = some(cases[:: step(fixtures)] if step else cases, MOST)
            for case in chosen:
                try:
                    test(*args, **case, **fixtures)
                except pytest.skip.Exception as skip:
                    skipped.append(str(skip))
                except Exception as problem:
                    words = (f"{k}={v!r:.80}" for k, v in case.items())
                    failed.append(name(*case.values()) if name else ", ".join(words))
                    first = first or problem
            if failed:
                shown = "\n  ".join(failed[:20])
                raise AssertionError(f"{len(failed)} of {len(chosen)} cases failed:\n  {shown}") from first
            if len(skipped) == len(chosen):
                pytest.skip("; ".join(dict.fromkeys(skipped)))

        taken = set(itertools.chain.from_iterable(names))
        parameters = [p for p in inspect.signature(test).parameters.values() if p.name not in taken]
        parameters.append(inspect.Parameter("cases", inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = inspect.Signature(parameters)
        del run.__wrapped__  # or pytest would ask the test for its arguments
        ids = [f"{len(part)} cases" + f", part {k}" * (len(parts) > 1) for k, part in enumerate(parts)]
        return pytest.mark.parametrize("cases", parts, ids=ids)(run)

    return decorate


def _pairs(names: list[str], value: Any) -> Iterable[tuple[str, Any]]:
    """Return the arguments that one value of an axis stands for; it may be a `pytest.param`."""
    if isinstance(value, type(pytest.param())):
        return zip(names, value.values, strict=True)
    return [(names[0], value)] if len(names) == 1 else zip(names, value, strict=True)

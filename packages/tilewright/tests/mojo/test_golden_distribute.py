# SPDX-License-Identifier: Apache-2.0
"""The shares of threads, plain and swizzled, as Mojo recorded them."""

import warnings

import pytest

from tilewright import LayoutError
from tilewright.mojo.layout import Swizzle

from .golden import assert_view, layout_of, listed, replay, tensor_of


def start_of(case):
    """Return the tensor to hand out, its thread layout and its swizzle."""
    t = tensor_of(case)
    if case.get("vectorize"):
        t = t.vectorize[tuple(case["vectorize"])]()
    return t, layout_of(case["thread_layout"]), Swizzle(*case["swizzle"]) if "swizzle" in case else None


def divides(t, threads):
    return all(extent % n == 0 for extent, n in zip(t.shape, threads.shape, strict=True))


def assert_shares(case):
    """Compare all shares, with thread ids past the end taken modulo the threads and remainders dropped, as in Mojo."""
    t, threads, swizzle = start_of(case)
    for result in case["results"]:
        thread = result["args"]["thread_id"]
        share, at, offset = t.distribute_with_offset[threads, swizzle](thread, wrap=True, ragged="floor")
        assert_view(share, result["view"])
        assert (listed(at), offset) == (result["thread_coords"], result["linear_offset"])
        assert_view(t.distribute[threads](thread, swizzle=swizzle, wrap=True, ragged="floor"), result["view"])


@replay("distribute")
def test_distribute(case):
    assert_shares(case)


@replay("distribute_swizzle")
def test_distribute_with_a_swizzle(case):
    assert_shares(case)


@replay("distribute")
def test_thread_ids_past_the_end_are_refused(case):
    t, threads, _ = start_of(case)
    for result in case["results"]:
        thread = result["args"]["thread_id"]
        if thread < threads.size():
            assert t.distribute[threads](thread, ragged="floor").offset == result["view"]["offset"]
        else:
            with pytest.raises(IndexError, match="outside the"):
                t.distribute[threads](thread, ragged="floor")


@replay("distribute")
def test_what_is_lost_is_reported(case):
    t, threads, _ = start_of(case)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        t.distribute[threads](0)
    assert [warning.category for warning in caught] == ([] if divides(t, threads) else [RuntimeWarning])


@replay("distribute")
def test_what_does_not_divide_can_be_refused(case):
    t, threads, _ = start_of(case)
    result = case["results"][0]
    thread = result["args"]["thread_id"]
    if divides(t, threads):
        assert_view(t.distribute[threads](thread, wrap=True, ragged="error"), result["view"])
    else:
        with pytest.raises(LayoutError, match="does not divide"):
            t.distribute[threads](thread, wrap=True, ragged="error")


def test_the_recordings_hold_the_cases_that_differ():
    marks = [mark for mark in test_distribute.pytestmark if mark.name == "parametrize"]
    cases = [param.values[0] for param in marks[0].args[1]]
    starts = [(case, *start_of(case)[:2]) for case in cases]
    past = [case for case, _, threads in starts for r in case["results"] if r["args"]["thread_id"] >= threads.size()]
    assert len(past) == 8
    assert sum(not divides(t, threads) for _, t, threads in starts) == 7

# SPDX-License-Identifier: Apache-2.0
"""Slices in their four forms, as Mojo recorded them."""

import pytest

from tilewright.mojo.layout import All

from .golden import assert_view, replay, tensor_of


def bounds(entry):
    return slice(*entry) if isinstance(entry, list) else entry


def sliced(t, args):
    """Return the slice that a result asks for."""
    if args["form"] == "getitem_All":
        return t[tuple(All if entry == "All" else entry for entry in args["index"])]
    if args["form"] == "slice(tuples)":
        return t.slice(*map(tuple, args["slices"]))
    entries = tuple(map(bounds, args["slices"]))
    return t.slice[entries]() if args["form"] == "slice[]" else t[entries]


@replay("slice")
def test_slice(case):
    t = tensor_of(case)
    for result in case["results"]:
        record = result["view"]
        if result["args"]["form"] == "getitem_All":
            record = with_extents_at_run_time(record)
        assert_view(sliced(t, result["args"]), record)


def with_extents_at_run_time(record):
    """Return the record of a subscript with `All`, which here is `:`, so that extents are dynamic."""
    dynamic = {"static_shape": [-1] * record["rank"], "shape_known": False, "all_dims_known": False}
    return {**record, **dynamic, "linear_idx_type": "int64"}


@replay("slice")
def test_static_slices_past_the_end_are_refused(case):
    t = tensor_of(case)
    past = tuple(slice(0, n + 1) for n in case["layout"]["shape"])
    with pytest.raises(IndexError, match="must lie within"):
        t.slice[past]()
    assert_view(t[past], with_extents_at_run_time(case["base_view"]))

# SPDX-License-Identifier: Apache-2.0
"""Iterators over tiles in memory, as Mojo recorded them; ours end at their bound."""

from itertools import islice

import pytest

from tilewright.mojo.layout import TileTensor, TileTensorIter, row_major

from .golden import assert_view, layout_of, replay, storage


def iterator_of(case):
    memory = TileTensor(storage(), row_major[storage().size]())
    return TileTensorIter(
        memory, layout_of(case["layout"]), case["bound"], case["stride"], case["offset"], circular=case["circular"]
    )


def inside(case, offset):
    return case["circular"] or offset < case["bound"]


@replay("tile_iter")
def test_the_first_view(case):
    (result,) = case["results"]
    assert_view(iterator_of(case).get(), result["view"])


@replay("tile_iter")
def test_steps(case):
    it = iterator_of(case)
    for offset in case["results"][0]["offsets"]:
        if inside(case, offset):
            assert it.get().offset == offset
        else:
            with pytest.raises(IndexError, match="past the bound"):
                it.get()
        it += 1


@replay("tile_iter")
def test_looking_ahead(case):
    it = iterator_of(case)
    for k, offset in enumerate(case["results"][0]["next_offsets"]):
        if inside(case, offset):
            assert it.next(k).offset == offset
        else:
            with pytest.raises(IndexError, match="past the bound"):
                it.next(k)


@replay("tile_iter")
def test_loops_end_at_the_bound(case):
    offsets = [offset for offset in case["results"][0]["offsets"] if inside(case, offset)]
    assert [view.offset for view in islice(iterator_of(case), case["steps"])] == offsets

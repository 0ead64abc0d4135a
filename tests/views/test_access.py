# SPDX-License-Identifier: Apache-2.0
"""Costs of access patterns, against counts made one lane and one byte at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import views

offsets = st.lists(st.integers(0, 300), min_size=1, max_size=32)


@given(offsets, st.sampled_from([1, 2, 4]), st.sampled_from([4, 8, 32]))
def test_conflicts_are_the_most_words_of_a_bank(lanes, itemsize, banks):
    report = views.bank_conflicts(np.array(lanes), itemsize, banks)
    together = max(1, banks * 4 // itemsize)
    wavefronts = []
    for start in range(0, len(lanes), together):
        words = {
            (offset * itemsize + byte) // 4 for offset in lanes[start : start + together] for byte in range(itemsize)
        }
        wavefronts.append(max(sum(word % banks == bank for word in words) for bank in range(banks)))
    assert (report.ways, report.wavefronts, report.ideal) == (max(wavefronts), sum(wavefronts), len(wavefronts))


@given(offsets, st.sampled_from([1, 2, 4, 8]))
def test_sectors_are_those_that_hold_a_byte(lanes, itemsize):
    report = views.coalescing(np.array(lanes), itemsize)
    wanted = {offset * itemsize + byte for offset in lanes for byte in range(itemsize)}
    assert report.sectors == len({byte // 32 for byte in wanted})
    assert report.lines == len({byte // 128 for byte in wanted})
    assert report.used == len(wanted)
    assert 0 < report.efficiency <= 1


def test_known_patterns():
    # 16-byte vectors: a quarter of the lanes at a time, without conflicts
    report = views.bank_conflicts(np.arange(128).reshape(32, 4))
    assert (report.ideal, report.conflict_free) == (4, True)
    # everyone wants the same word: it is read once
    assert views.bank_conflicts(np.zeros(32)).ways == 1
    column = tw.row_major(32, 32).offsets()[:, 0]
    assert views.bank_conflicts(column).ways == 32
    assert views.bank_conflicts(tw.Swizzle(5, 0, 5)(column)).ways == 1
    assert views.coalescing(column).sectors == 32


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=40))
def test_runs_end_where_places_jump_or_padding_begins(entries):
    places, valid = (list(part) for part in zip(*entries, strict=True))
    lengths = []
    for k, (place, alive) in enumerate(entries):
        if alive and k and valid[k - 1] and places[k - 1] + 1 == place:
            lengths[-1] += 1
        elif alive:
            lengths.append(1)
    report = views.contiguous_runs(places, valid)
    assert report.runs == len(lengths)
    assert (report.shortest, report.longest) == ((min(lengths), max(lengths)) if lengths else (0, 0))


def test_padding_share_counts_what_valid_says():
    for layout in (tw.within(tw.row_major(8, 8), (5, 7)), tw.logical_divide(tw.Layout(100), 32), tw.row_major(3, 3)):
        assert views.padding_share(layout) == pytest.approx(
            1 - sum(bool(layout.valid(k)) for k in range(layout.size)) / layout.size
        )


def test_balance():
    report = views.balance([100, 100, 50, 0])
    assert (report.least, report.most, report.idle, report.imbalance) == (0, 100, 1, 1.6)
    assert views.balance([0, 0]).imbalance == 1.0
    with pytest.raises(tw.LayoutError, match="at least one"):
        views.balance([])
    with pytest.raises(tw.LayoutError, match="bank_conflicts needs lanes"):
        views.bank_conflicts([])

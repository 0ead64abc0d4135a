# SPDX-License-Identifier: Apache-2.0
"""Costs of access patterns, against counts made one lane and one byte at a time."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import analysis

from ..cases import examples

GOLDEN = Path(__file__).parent.parent / "golden" / "access"
offsets = st.lists(st.integers(0, 300), min_size=1, max_size=32)


@st.composite
def layouts(draw):
    """Return a layout of threads, or of threads and their values."""
    leaf = st.tuples(st.integers(1, 6), st.integers(0, 40))
    modes = draw(st.lists(st.lists(leaf, min_size=1, max_size=2), min_size=1, max_size=3))
    shape = tuple(tuple(n for n, _ in mode) for mode in modes)
    return tw.Layout(shape, tuple(tuple(d for _, d in mode) for mode in modes))


@given(offsets, st.sampled_from([1, 2, 4]), st.sampled_from([4, 8, 32]))
def test_conflicts_are_the_most_words_of_a_bank(lanes, itemsize, banks):
    report = analysis.bank_conflicts(np.array(lanes), itemsize=itemsize, machine=analysis.BankModel(banks))
    together = max(1, banks * 4 // itemsize)
    wavefronts = []
    for start in range(0, len(lanes), together):
        words = {
            (offset * itemsize + byte) // 4 for offset in lanes[start : start + together] for byte in range(itemsize)
        }
        wavefronts.append(max(sum(word % banks == bank for word in words) for bank in range(banks)))
    assert (report.ways, report.wavefronts, report.ideal) == (max(wavefronts), sum(wavefronts), len(wavefronts))


# One access per instruction, as counted on an NVIDIA H200.


def recorded(name):
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def test_recorded_conflicts():
    count = 0
    for case in recorded("bank_conflicts"):
        rows = np.array(case["offsets"])[:, None] + np.arange(case["vector"])
        if "matrix" in case["op"]:
            rows = np.array(case["offsets"])
        for op in case["op"].split("/"):
            report = analysis.bank_conflicts(rows, itemsize=case["itemsize"], instruction=op, active=case.get("active"))
            assert (report.wavefronts, report.ideal) == (case["wavefronts"], case["ideal"]), (case["name"], op)
            assert report.instructions == 1
            count += 1
    assert count > 90


def test_measured_conflicts():
    count = 0
    for case in recorded("measured_h200"):
        active = [bool(int(case.get("active_mask", "0xffffffff"), 16) >> lane & 1) for lane in range(32)]
        for instruction, (wavefronts, excess, _) in case["measured"].items():
            op, _, kind = instruction.partition(".shared.b")
            if not kind:
                report = analysis.bank_conflicts(case["bytes"], itemsize=1, instruction=instruction, active=active)
                assert (report.wavefronts, report.excess) == (wavefronts, excess), (case["name"], instruction)
            else:
                size = int(kind) // 8
                report = analysis.bank_conflicts(
                    np.array(case["bytes"]) // size, itemsize=size, instruction=op, active=active
                )
                found = (report.wavefronts, report.wavefronts - report.ideal)
                assert found == (wavefronts, excess), (case["name"], instruction)
                count += 1
    assert count > 600


def test_recorded_sectors():
    for case in recorded("coalescing"):
        first = np.array(case["offsets"]) + case["base"] // case["itemsize"]
        report = analysis.coalescing(first[:, None] + np.arange(case["vector"]), itemsize=case["itemsize"])
        found = (report.sectors, report.lines, report.used, report.ideal)
        assert found == (case["sectors"], case["lines"], case["unique_bytes"], case["ideal_sectors"]), case["name"]


# Layouts and tensors are where elements lie.


@examples(30)
@given(layouts(), st.sampled_from([1, 2, 4, 8]))
def test_a_layout_is_its_offsets(layout, itemsize):
    lanes = layout.mode(0).size
    rest = layout.size // lanes
    rows = np.array([[layout(lane + lanes * value) for value in range(rest)] for lane in range(lanes)])
    for ask in (analysis.bank_conflicts, analysis.coalescing):
        assert ask(layout, itemsize=itemsize) == ask(rows, itemsize=itemsize)
    held = tw.TileTensor(np.full(int(rows.max()) + 1, 7, f"u{itemsize}"), layout)
    for ask in (analysis.bank_conflicts, analysis.coalescing):
        assert ask(held) == ask(rows, itemsize=itemsize)


def test_known_layouts():
    assert analysis.bank_conflicts(tw.Layout(32, 32)).ways == 32
    assert analysis.coalescing(tw.Layout(32, 32)).sectors == 32
    assert analysis.bank_conflicts(tw.compose(tw.Swizzle(5, 0, 5), tw.Layout(32, 32))).ways == 1
    tile = tw.TileTensor(np.zeros(1024, np.float32), tw.row_major(32, 32))
    assert analysis.bank_conflicts(tile.tile[32, 1](0, 3)).ways == 32
    assert analysis.contiguous_runs(tw.col_major(4, 8)).runs == 32
    # padding is not touched
    assert analysis.coalescing(tw.with_logical_shape(tw.Layout(32, 32), 5)).sectors == 5
    # vectors of four
    report = analysis.bank_conflicts(tw.TileTensor(np.zeros(128, np.float32), tw.row_major(32, 4)).vectorize[1, 4]())
    assert (report.instructions, report.wavefronts) == (1, 4)


@pytest.mark.parametrize("wrong", [tw.Layout(4, 1 @ tw.bank), [1.5, 2], ["a"], {"a": 1}, tw.TensorSpec((4, 4))])
def test_what_has_no_offsets_is_refused_by_name(wrong):
    for ask in (analysis.bank_conflicts, analysis.coalescing, analysis.contiguous_runs):
        with pytest.raises(tw.LayoutError, match=r"takes the offsets of the elements|named axes"):
            ask(wrong)


# More than an instruction moves.


@given(st.integers(1, 40), st.integers(0, 5), st.integers(0, 3), st.sampled_from([1, 2, 4, 8, 16]))
def test_an_access_is_that_of_its_instructions(stride, values, first, itemsize):
    """However many elements each thread has, they cost what the instructions for them cost, one after the other."""
    rows = first + np.arange(32)[:, None] * stride + np.arange(values + 1)
    for ask in (analysis.bank_conflicts, analysis.coalescing):
        whole = ask(rows, itemsize=itemsize)
        assert whole.instructions >= -(-rows.shape[1] * itemsize // 16)
        apart = [ask(rows[:, k : k + 1], itemsize=itemsize) for k in range(rows.shape[1])]
        assert whole.instructions <= len(apart)
        if whole.instructions == len(apart):
            for field in ("wavefronts", "ideal", "sectors", "lines", "used"):
                if hasattr(whole, field):
                    assert getattr(whole, field) == sum(getattr(each, field) for each in apart)


def test_wide_accesses_do_not_hide_conflicts():
    rows = [[8 * thread + k for k in range(8)] for thread in range(32)]
    report = analysis.bank_conflicts(rows)
    assert (report.instructions, report.ways, report.wavefronts, report.ideal) == (2, 2, 16, 8)
    halves = [analysis.bank_conflicts(np.array(rows)[:, half]) for half in (slice(0, 4), slice(4, 8))]
    assert [each.ways for each in halves] == [2, 2]
    assert analysis.coalescing(rows).efficiency == 0.5
    # what does not follow, or is not aligned, is no vector
    assert analysis.bank_conflicts(np.arange(128).reshape(32, 4) + 1).instructions == 3  # of one, two and one
    assert analysis.bank_conflicts(np.arange(64).reshape(2, 32).T).instructions == 2
    for size in (3, 32, 0, "bf16"):
        with pytest.raises(tw.LayoutError, match="expected an itemsize of 1, 2, 4, 8, 16"):
            analysis.bank_conflicts(np.arange(32), itemsize=size)


@given(offsets, st.sampled_from([1, 2, 4, 8]))
def test_sectors_are_those_that_hold_a_byte(lanes, itemsize):
    report = analysis.coalescing(np.array(lanes), itemsize=itemsize)
    wanted = {offset * itemsize + byte for offset in lanes for byte in range(itemsize)}
    assert report.sectors == len({byte // 32 for byte in wanted})
    assert report.lines == len({byte // 128 for byte in wanted})
    assert report.used == len(wanted)
    assert 0 < report.efficiency <= 1


def test_known_patterns():
    # 16-byte vectors: a quarter of the lanes at a time, without conflicts
    report = analysis.bank_conflicts(np.arange(128).reshape(32, 4))
    assert (report.ideal, report.conflict_free) == (4, True)
    # everyone wants the same word: it is read once
    assert analysis.bank_conflicts(np.zeros(32)).ways == 1
    column = tw.row_major(32, 32).offsets()[:, 0]
    assert analysis.bank_conflicts(column).ways == 32
    assert analysis.bank_conflicts(tw.Swizzle(5, 0, 5)(column)).ways == 1
    assert analysis.coalescing(column).sectors == 32


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=40))
def test_runs_end_where_places_jump_or_padding_begins(entries):
    places, valid = (list(part) for part in zip(*entries, strict=True))
    lengths = []
    for k, (place, alive) in enumerate(entries):
        if alive and k and valid[k - 1] and places[k - 1] + 1 == place:
            lengths[-1] += 1
        elif alive:
            lengths.append(1)
    report = analysis.contiguous_runs(places, valid)
    assert report.runs == len(lengths)
    assert (report.shortest, report.longest) == ((min(lengths), max(lengths)) if lengths else (0, 0))


def test_padding_share_counts_what_valid_says():
    for layout in (
        tw.with_logical_shape(tw.row_major(8, 8), (5, 7)),
        tw.logical_divide(tw.Layout(100), 32),
        tw.row_major(3, 3),
    ):
        assert analysis.padding_share(layout) == pytest.approx(
            1 - sum(bool(layout.valid(k)) for k in range(layout.size)) / layout.size
        )


def test_balance():
    report = analysis.balance([100, 100, 50, 0])
    assert (report.least, report.most, report.idle, report.imbalance) == (0, 100, 1, 1.6)
    assert analysis.balance([0, 0]).imbalance == 1.0
    with pytest.raises(tw.LayoutError, match="at least one"):
        analysis.balance([])
    with pytest.raises(tw.LayoutError, match="bank_conflicts needs at least one thread"):
        analysis.bank_conflicts([])


@pytest.mark.parametrize("ask", [analysis.bank_conflicts, analysis.coalescing, analysis.find_remedy])
def test_a_number_of_threads_is_not_their_layout(ask):
    with pytest.raises(tw.LayoutError, match=r"expected a layout of threads, such as Layout\(32\), got 32"):
        ask(tw.row_major(32, 32), 32)

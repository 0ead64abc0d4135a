# SPDX-License-Identifier: Apache-2.0
"""Proofs about layouts with named sizes: they hold for every size that is tried, and counterexamples are real."""

import itertools
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Layout, LayoutError
from tilewright.analysis import prove

from ..cases import examples

needs_islpy = pytest.mark.skipif(find_spec("islpy") is None, reason="islpy is not installed")


def offsets(layout):
    return [int(layout(index)) for index in range(int(layout.size))]


@st.composite
def named_layouts(draw):
    """Return text with at most two named extents and constant strides, and a function from sizes to the layout."""
    extents = draw(st.lists(st.sampled_from(["m", "n", 1, 2, 3, 4, 8]), min_size=1, max_size=3))
    strides = draw(st.lists(st.integers(0, 12), min_size=len(extents), max_size=len(extents)))
    text = f"({','.join(map(str, extents))}):({','.join(map(str, strides))})"

    def build(sizes):
        return Layout(tuple(sizes.get(extent, extent) for extent in extents), tuple(strides))

    return text, build


SIZES = [dict(zip("mn", pair, strict=True)) for pair in itertools.product((1, 2, 3, 5), repeat=2)]


@needs_islpy
@examples(40)
@given(named_layouts())
def test_injective(case):
    text, build = case
    proof = prove(text, injective=True)
    if proof:
        for sizes in SIZES:
            places = offsets(build(sizes))
            assert len(set(places)) == len(places), (text, sizes)
    else:
        sizes = {name: value for name, value in proof.counterexample.items() if name in "mn"}
        first, second = proof.counterexample["coordinates"]
        layout = build(sizes)
        assert first != second
        assert layout(*first) == layout(*second) == proof.counterexample["offset"]


@needs_islpy
@examples(40)
@given(named_layouts(), st.sampled_from(["m", "8*m", "4 * n", 16, 40]))
def test_within(case, bound):
    text, build = case
    proof = prove(text, within=bound)
    if proof:
        for sizes in SIZES:
            limit = eval(str(bound), {}, sizes)  # noqa: S307  (our own text)
            assert max(offsets(build(sizes))) < limit, (text, sizes)
    else:
        sizes = {name: value for name, value in proof.counterexample.items() if name in "mn"}
        place = build(sizes)(*proof.counterexample["coordinate"])
        assert place == proof.counterexample["offset"]


@needs_islpy
def test_disjoint():
    assert prove("(m,4):(8,1)", disjoint="(m,4):(8,1)+4")
    proof = prove("(m,5):(8,1)", disjoint="(m,4):(8,1)+4")
    assert not proof
    assert proof.counterexample["offset"] == 4
    assert "false, for example with" in str(proof)


def test_sizes_that_multiply_each_other():
    assert prove("(m,n):(n,1)", injective=True)
    assert prove("(b,m,n):(m*n,n,1)", injective=True)
    assert prove("(m,n):(n,1)", within="m*n")
    assert prove(tw.row_major(4, 8), within=32)
    with pytest.raises(LayoutError, match="cannot be decided"):
        prove("(m,n):(5,n)", injective=True)


@pytest.mark.parametrize("claim", [{"within": "m +"}, {"injective": True, "where": ["m ? 3"]}, {"disjoint": "(m"}])
def test_texts_that_cannot_be_read_are_refused(claim):
    with pytest.raises(LayoutError, match="expected"):
        prove("(m,8):(8,1)", **claim)


@needs_islpy
def test_one_claim_at_a_time():
    with pytest.raises(LayoutError, match="one claim at a time"):
        prove("(m):(1)")
    with pytest.raises(LayoutError, match="one claim at a time"):
        prove("(m):(1)", injective=True, within=8)
    with pytest.raises(LayoutError, match="not a strided layout"):
        prove(tw.compose(tw.Swizzle(1, 0, 1), tw.row_major(2, 2)), injective=True)
    assert prove("(m,8):(8,1)", within=64, where=["m <= 8"])

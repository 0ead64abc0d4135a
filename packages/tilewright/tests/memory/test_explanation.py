# SPDX-License-Identifier: Apache-2.0
"""Explanations lead to the byte and back, and say of every byte what it holds."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.memory import explain, explain_address

from ..cases import examples
from .strategies import specs


@examples(60)
@given(st.data())
def test_the_way_leads_back(data):
    spec = data.draw(specs())
    coordinate = tuple(data.draw(st.integers(0, n - 1)) for n in spec.shape.logical)
    found = explain(spec, coordinate)
    back = explain_address(spec, found.where.bank, found.where.address, found.where.bit)
    assert (back.kind, back.coordinate) == ("data", coordinate)
    assert all(len(line) <= 80 for line in str(found).splitlines())
    if found.neighbours is not None:
        shared = explain_address(spec, found.where.bank, found.where.exponent)
        assert (shared.kind, shared.is_data) == ("exponent", True)
        assert (shared.coordinate, shared.last) == found.neighbours


def test_bytes_of_a_bank_are_counted_once():
    spec = tw.TensorSpec((40, 40), "bfloat8_b", memory=tw.height_sharded((2, 1)), chip="wormhole_n150")
    kinds = {"data": 0, "padding": 0, "exponent": 0, "gap": 0}
    for core in spec.paging.cores:
        for byte in range(spec.bytes_per_bank):
            kinds[explain_address(spec, core, spec.address_on_empty_chip + byte).kind] += 1
    assert kinds == {"data": 40 * 40, "padding": 64 * 64 - 40 * 40, "exponent": 64 * 64 // 16, "gap": 0}


@pytest.mark.parametrize(
    ("place", "address"), [((7, 7), 0), (0, 10**9)], ids=["a core without a shard", "an address past the end"]
)
def test_nothing_is_said_to_be_nothing(place, address):
    spec = tw.TensorSpec((40, 40), "bfloat8_b", memory=tw.height_sharded((2, 1)), chip="wormhole_n150")
    assert str(explain_address(spec, place, spec.address_on_empty_chip + address)) == "nothing of this tensor"


def test_elements_below_a_byte_say_their_bits():
    spec = tw.TensorSpec((32, 32), "bfloat4_b", chip="wormhole_n150")
    assert ("value", "byte 72, bits 4 to 7: 4 bits each, from byte 64 on") in explain(spec, (1, 1)).steps()
    spec = tw.TensorSpec((32, 32), "mxfp6_e2m3", chip="wormhole_n150")
    spans = [text for name, text in explain(spec, (0, 1)).steps() if name == "value"]
    assert spans == ["byte 32, bits 6 to 3 of the next byte: 6 bits each, from byte 32 on"]


def test_a_shard_that_ends_early_leaves_a_gap():
    spec = tw.TensorSpec((96, 32), "float32", "tile", memory=tw.height_sharded((2, 1), (64, 32)), chip="wormhole_n150")
    assert explain_address(spec, (1, 0), spec.address_on_empty_chip + 4096).kind == "gap"


def test_a_bit_outside_a_byte_is_refused():
    with pytest.raises(tw.MemoryConfigError, match="expected a bit from 0 to 7, got 8"):
        explain_address(tw.TensorSpec((4, 4), chip="n150"), 0, 0, bit=8)


def test_json_has_only_plain_values():
    import json

    spec = tw.TensorSpec((4, 60, 90), "bfloat8_b", memory=tw.block_sharded((8, 8)), chip="wormhole_n150")
    found = json.loads(json.dumps(explain(spec, (2, 33, 17)).to_json()))
    assert (found["address"], found["core"], found["block"]) == (1498385, [0, 5], [[2, 33, 16], [2, 33, 31]])
    assert prod(found["padded_shape"]) == 4 * 64 * 96


def test_an_explanation_has_a_picture():
    spec = tw.TensorSpec((4, 60, 90), "bfloat8_b", memory=tw.block_sharded((8, 8)), chip="wormhole_n150")
    assert explain(spec, (2, 33, 17))._repr_html_().startswith("<div")


def test_without_a_chip_pages_follow_one_another():
    values = np.arange(60 * 90, dtype=np.int32).reshape(60, 90)
    for tile in ((32, 32), (2, 2), (5, 7)):
        spec = tw.TensorSpec((60, 90), "int32", "tile", tile=tile)
        stored = np.frombuffer(tw.to_bytes(values, spec), np.int32)
        for at in ((0, 0), (33, 17), (59, 89)):
            found = explain(spec, at)
            assert stored[found.where.address // 4] == values[at]
            assert found.to_json()["bank"] is None
    assert explain(tw.TensorSpec((4, 8), "uint8"), (1, 3), base=100).where.address == 111
    with pytest.raises(tw.MemoryConfigError, match="depend on the chip"):
        explain(tw.TensorSpec((64, 64), "uint8", "tile", memory=tw.height_sharded((2, 1))), (1, 3))


def test_a_bank_that_the_chip_does_not_have_is_refused():
    spec = tw.TensorSpec((60, 90), chip="n150")
    for bank in (12, 99, -1):
        with pytest.raises(tw.MemoryConfigError, match=f"DRAM banks 0 to 11, got bank {bank}"):
            spec.element_at(bank, spec.address_on_empty_chip)
    assert spec.element_at(11, spec.address_on_empty_chip) == (11, 0)

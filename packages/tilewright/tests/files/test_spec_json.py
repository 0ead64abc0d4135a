# SPDX-License-Identifier: Apache-2.0
"""Tensor specs as plain data."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files.spec_json import spec_from_json, spec_to_json
from tilewright.memory import Chip, TensorSpec

from ..memory.strategies import specs

FULL = spec_to_json(
    TensorSpec((64, 64), "bfloat8_b", memory=tw.height_sharded((2, 1)), chip="wormhole_n150", alignment=(32, 32))
)


@given(specs(empty=True))
def test_specs_come_back(spec):
    data = json.loads(json.dumps(spec_to_json(spec)))
    back = spec_from_json(data)
    assert back == spec
    assert (back.memory.made_with_nd, back.memory.memory_layout) == (
        spec.memory.made_with_nd,
        spec.memory.memory_layout,
    )
    assert spec_to_json(back) == data


@pytest.mark.parametrize("chip", [Chip.named("n300"), Chip.named("p150", dispatch="slow", harvested=1)])
def test_shipped_chips_are_named(chip):
    spec = TensorSpec((4, 4), chip=chip)
    assert spec_from_json(spec_to_json(spec)).chip == chip
    assert "l1_base" not in json.dumps(spec_to_json(spec))


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(junk)
def test_junk_is_refused(data):
    with pytest.raises(tw.FileFormatError):
        spec_from_json(data)


@given(st.data())
def test_a_damaged_spec_is_refused_or_read(data):
    """Whatever one entry becomes, the answer is a spec or a FileFormatError."""
    damaged = json.loads(json.dumps(FULL))
    where = damaged["memory"] if data.draw(st.booleans()) else damaged
    where[data.draw(st.sampled_from(sorted(where)))] = data.draw(junk)
    try:
        spec = spec_from_json(damaged)
    except tw.FileFormatError:
        return
    assert isinstance(spec, TensorSpec)

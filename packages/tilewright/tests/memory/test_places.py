# SPDX-License-Identifier: Apache-2.0
"""The laws of places: where and element_at undo each other, nothing shares a byte, all views of a spec agree."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import MemoryConfigError, OutOfMemory, TensorSpec
from tilewright.errors import CoordinateError
from tilewright.formats import BlockFormat
from tilewright.memory import block_sharded, height_sharded, interleaved, nd_sharded

from .strategies import specs


def some_coordinates(spec, data, count=6):
    return [tuple(data.draw(st.integers(0, n - 1)) for n in spec.shape) for _ in range(count)]


@given(specs(), st.data())
def test_element_at_undoes_where(spec, data):
    for coordinate in some_coordinates(spec, data):
        place = spec.where(*coordinate, base=4096)
        assert spec.element_at(place, base=4096) == coordinate
        assert spec.element_at(place.bank, place.address, place.bit, base=4096) == coordinate


@given(specs(), st.data())
def test_where_agrees_with_the_placement_and_the_page_table(spec, data):
    table = spec.pages(base=0)
    for coordinate in some_coordinates(spec, data):
        place = spec.where(*coordinate, base=0)
        found = spec.address_layout(*coordinate)
        assert spec.banks[found[spec.axis]] == place.bank
        assert found["addr"] == place.address
        assert table.bank[place.page] == place.bank
        assert (table.core_x[place.page], table.core_y[place.page]) == place.core
        assert table.address[place.page] + place.byte == place.address


@given(specs(), st.data())
def test_the_steps_of_the_way_agree_with_each_other(spec, data):
    for at in some_coordinates(spec, data):
        place, (rows, columns) = spec.where(*at, base=0), spec.physical_shape
        assert 0 <= place.row < rows
        assert 0 <= place.column < columns
        if place.tile is None:
            assert place.page * spec.page_elements + place.element == place.row * columns + place.column
            continue
        (height, width), (high, wide) = spec.tile.shape, spec.tile.face_shape
        assert place.page == place.tile[0] * (columns // width) + place.tile[1]
        row, column = place.in_face[::-1] if spec.tile.transpose else place.in_face
        assert place.element == place.face * high * wide + row * (high if spec.tile.transpose else wide) + column
        assert (place.tile[0] * height + place.in_tile[0], place.tile[1] * width + place.in_tile[1]) == (
            place.row,
            place.column,
        )


@given(specs())
def test_no_two_pages_share_a_byte_and_all_fit_their_bank(spec):
    table = spec.pages(base=0)
    order = np.lexsort((table.address, table.bank))
    bank, start = table.bank[order], table.address[order]
    same = bank[1:] == bank[:-1]
    assert (start[1:][same] - start[:-1][same] >= spec.aligned_page_bytes).all()
    assert (start >= 0).all()
    assert (start + spec.aligned_page_bytes <= spec.bytes_per_bank).all()
    assert (start % spec.known_chip.page_alignment(spec.memory.buffer_type) == 0).all()


@given(specs(rank=3))
def test_no_two_elements_share_their_bits(spec):
    physical = spec.host.offsets(fill=-1).reshape(-1)
    physical = physical[physical >= 0]
    assert len(np.unique(physical)) == spec.shape.logical_volume()
    page, element = np.divmod(physical, spec.page_elements)
    bits = spec.dtype.bits if isinstance(spec.dtype, BlockFormat) else 8 * spec.dtype.itemsize
    assert page.max() < spec.num_pages
    assert ((element + 1) * bits <= 8 * spec.page_bytes).all()


@given(specs(empty=True))
def test_sizes_add_up(spec):
    assert spec.nbytes == spec.num_pages * spec.page_bytes
    assert 0 <= spec.padding_bytes <= spec.total_bytes
    assert 0 <= spec.with_chip(None).padding_bytes <= spec.nbytes
    assert len(spec.pages(base=0)) == spec.num_pages
    assert spec.allocated_bytes >= spec.bytes_per_bank
    assert spec.bytes_per_bank * len(set(spec.banks)) >= spec.num_pages * spec.aligned_page_bytes


@given(specs())
def test_the_filled_in_config_places_alike(spec):
    again = spec.with_memory(spec.memory)
    assert again == spec
    assert hash(again) == hash(spec)
    assert np.array_equal(again.pages(base=0).rows(), spec.pages(base=0).rows())


@given(specs())
def test_repr_is_a_constructor_call(spec):
    import tilewright.memory

    if spec.known_chip.name != "small":
        assert eval(repr(spec), vars(tilewright.memory)) == spec  # noqa: S307


def test_the_chain_of_the_reference():
    spec = TensorSpec((1, 4, 60, 90), "int32", "tile", chip="wormhole_n150")
    place = spec.where(0, 2, 33, 17)
    assert (place.row, place.column, place.page, place.face, place.element, place.byte) == (161, 17, 15, 1, 273, 1092)
    assert (place.bank, place.address) == (3, 1053828)
    assert spec.known_chip.noc_address(place.bank, place.address) == 1053828 + 0x40000000
    place = spec.with_memory("l1").where(0, 2, 33, 17)
    assert (place.bank, place.core, place.address) == (15, (6, 4), 1496132)
    place = spec.with_memory(block_sharded((8, 8), (32, 32))).where(0, 2, 33, 17)
    assert (place.shard_coordinate, place.core, place.address) == ((5, 0), (0, 5), 1496132)


def test_the_figure_of_the_original_document():
    spec = TensorSpec((128, 128), page_layout="tile", memory=block_sharded((2, 2), (64, 64)), chip="wormhole_n150")
    table = spec.pages()
    on = {}
    for page in range(16):
        on.setdefault((int(table.core_x[page]), int(table.core_y[page])), []).append(page)
    assert on == {(0, 0): [0, 1, 4, 5], (1, 0): [2, 3, 6, 7], (0, 1): [8, 9, 12, 13], (1, 1): [10, 11, 14, 15]}


def test_interleaved_is_the_case_of_shards_of_one_page():
    plain = TensorSpec((100, 150), page_layout="tile", chip="wormhole_n150")
    banks = [((k, 0), (k, 0)) for k in range(12)]
    dealt = plain.with_memory(nd_sharded((32, 32), banks, buffer_type="dram"))
    assert np.array_equal(plain.pages().rows(), dealt.pages().rows())


def test_exponents_lead_their_tile():
    place = TensorSpec((64, 64), "bfloat8_b", chip="wormhole_n150").where(33, 17, base=0)
    assert place.element == 273
    assert place.byte == 64 + 273
    assert place.exponent == place.address - 337 + 17


def test_elements_that_straddle_bytes_have_a_place_but_no_layout():
    spec = TensorSpec((64, 64), "mxfp6_e2m3", "tile", chip="wormhole_n150")
    for at in ((0, 0), (0, 1), (63, 63), (33, 18)):
        assert spec.element_at(spec.where(*at)) == at
    with pytest.raises(MemoryConfigError, match=r"6 bits and cross bytes"):
        _ = spec.address_layout


def test_padding_and_gaps_hold_no_element():
    spec = TensorSpec((5, 7), "float32", memory=height_sharded((2, 1), (3, 7)), chip="wormhole_n150")
    last = spec.where(4, 6, base=0)
    assert last.core == (1, 0)
    assert spec.element_at(last.core, last.address + 4, base=0) is None  # 28 bytes of 32: a gap
    assert spec.element_at(last.core, last.address + 32, base=0) is None  # the third row of the second shard: a hole
    assert spec.element_at((2, 0), 0, base=0) is None  # a core without a shard
    padded = TensorSpec((5, 7), "float32", "tile", chip="wormhole_n150")
    assert padded.element_at(0, 7 * 4, base=0) is None


def test_a_scalar_has_a_place():
    spec = TensorSpec((), "float32", chip="wormhole_n150")
    assert spec.where().address == spec.known_chip.base("dram")
    assert spec.element_at(spec.where()) == ()
    assert spec.address_layout()["addr"] == 0


def test_questions_about_banks_need_a_chip():
    with pytest.raises(MemoryConfigError, match="choose one, such as wormhole_n150"):
        TensorSpec((4, 4)).where(0, 0)


def test_coordinates_are_checked():
    spec = TensorSpec((4, 4), chip="wormhole_n150")
    for wrong in ((4, 0), (0,), (0, -1), (0, 0, 0)):
        with pytest.raises(CoordinateError, match="outside shape"):
            spec.where(*wrong)


def test_a_tensor_that_does_not_fit_has_no_first_address():
    spec = TensorSpec((16384, 16384), page_layout="tile", memory=interleaved("l1"), chip="wormhole_n150")
    with pytest.raises(OutOfMemory, match="8388608"):
        spec.where(0, 0)
    assert spec.where(0, 0, base=0).address == 0


def test_large_tensors_answer_at_once():
    start = time.perf_counter()
    spec = TensorSpec((2**20, 2**20), page_layout="tile", memory=nd_sharded((96, 160), (7, 7)), chip="wormhole_n150")
    assert spec.element_at(spec.where(12345, 999999, base=0), base=0) == (12345, 999999)
    assert time.perf_counter() - start < 5  # no table of 10^9 pages was made on the way

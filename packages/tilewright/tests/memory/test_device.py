# SPDX-License-Identifier: Apache-2.0
"""A simulated chip keeps the promise of the page table, byte by byte, and gives back what it was given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import LayoutError, MemoryConfigError, TensorSpec
from tilewright.formats import BlockFormat
from tilewright.memory import Device, from_bytes, height_sharded, nd_sharded, to_bytes

from ..cases import examples
from .strategies import SMALL, specs


def some_values(spec):
    """Return values that every format keeps apart from the next, as far as it can."""
    count = spec.shape.logical_volume()
    return (np.arange(count) % 97).reshape(spec.shape.logical).astype(np.float32)


@examples(100)
@given(specs(empty=True))
def test_the_bytes_are_where_the_page_table_says(spec):
    device = Device(spec.known_chip)
    if spec.allocated_bytes > device.memory_view(spec.memory.buffer_type).free:
        return
    tensor = device.put(some_values(spec), spec, pad_value=5)
    host = to_bytes(some_values(spec), spec, pad_value=5)
    kind = spec.memory.buffer_type
    table = spec.pages(tensor.address)
    for page in range(spec.num_pages):
        place = (int(table.core_x[page]), int(table.core_y[page]))
        found = device.read_bytes(place, int(table.address[page]), spec.page_bytes, kind)
        assert np.array_equal(found, host[page * spec.page_bytes : (page + 1) * spec.page_bytes])
    assert np.array_equal(device.read(tensor), host)


@examples(100)
@given(specs(empty=True))
def test_what_is_put_can_be_got(spec):
    device = Device(spec.known_chip)
    if spec.allocated_bytes > device.memory_view(spec.memory.buffer_type).free:
        return
    values = some_values(spec)
    tensor = device.put(values, spec)
    found = device.get(tensor, dtype="float32")
    assert np.array_equal(found, from_bytes(to_bytes(values, spec), spec, dtype="float32"))
    if not isinstance(spec.dtype, BlockFormat):
        assert np.array_equal(found, values)


@examples(60)
@given(specs(rank=3), st.data())
def test_single_elements_are_where_they_should(spec, data):
    if isinstance(spec.dtype, BlockFormat) or spec.allocated_bytes > 10**6:
        return
    device = Device(spec.known_chip)
    values = some_values(spec)
    tensor = device.put(values, spec)
    at = tuple(data.draw(st.integers(0, n - 1)) for n in spec.shape)
    place = spec.where(*at, base=tensor.address)
    raw = device.read_bytes(place.bank, place.address, spec.dtype.itemsize, spec.memory.buffer_type)
    assert raw.view(spec.dtype.dtype)[0] == values[at]


def test_holes_and_gaps_keep_their_bytes():
    device = Device(SMALL)
    spec = TensorSpec((5, 7), "float32", memory=height_sharded((2, 1), (3, 7)), chip=SMALL)
    tensor = device.allocate(spec)
    for core in ((0, 0), (1, 0)):
        device.write_bytes(core, tensor.address, b"\xee" * tensor.size, "l1")
    device.write_array(tensor, np.zeros((5, 7)))
    last = device.read_bytes((1, 0), tensor.address, 96, "l1")
    assert not last[:28].any()
    assert (last[28:32] == 0xEE).all()
    assert (last[64:] == 0xEE).all()


def test_freed_memory_keeps_its_bytes_and_is_used_again():
    device = Device(SMALL)
    first = device.put(np.full((4, 4), 7), TensorSpec((4, 4), "uint8"))
    device.free(first)
    assert device.memory_view("dram").allocated == 0
    second = device.allocate(TensorSpec((4, 4), "uint8"))
    assert second.address == first.address
    assert (device.get(second) == 7).all()
    with pytest.raises(MemoryConfigError, match="freed already"):
        device.free(first)


def test_images_can_be_written_and_read(tmp_path):
    device = Device(SMALL)
    a = device.put(np.arange(100).reshape(10, 10), TensorSpec((10, 10), "int32", memory=nd_sharded((3, 4), (3, 3))))
    b = device.put(np.arange(640).reshape(10, 64), TensorSpec((10, 64), "bfloat8_b"))
    device.dump(tmp_path)
    assert len(list(tmp_path.glob("*.bin"))) == 12 + 5
    other = Device.load(tmp_path, SMALL)
    for tensor in (a, b):
        assert np.array_equal(other.get(tensor), device.get(tensor))
    assert other.memory_view("l1").allocated == device.memory_view("l1").allocated
    with pytest.raises(MemoryConfigError, match="is a dump of small"):
        Device.load(tmp_path, "wormhole_n150")
    manifest = (tmp_path / "banks.json").read_text()
    for damage in ("", "[]", "{}", manifest.replace("ranges", "range"), manifest.replace('"L1"', "7, 8")):
        (tmp_path / "banks.json").write_text(damage)
        with pytest.raises(MemoryConfigError, match="is damaged"):
            Device.load(tmp_path, SMALL)
    (tmp_path / "banks.json").write_text(manifest)
    image = (tmp_path / "l1_003.bin").read_bytes()
    (tmp_path / "l1_003.bin").write_bytes(bytes([image[0] ^ 1]) + image[1:])  # of another dump, which was interrupted
    with pytest.raises(MemoryConfigError, match="does not match"):
        Device.load(tmp_path, SMALL)
    (tmp_path / "l1_003.bin").write_bytes(b"short")
    with pytest.raises(MemoryConfigError, match="has 5 bytes"):
        Device.load(tmp_path, SMALL)


def test_what_does_not_fit_is_refused():
    device = Device(SMALL)
    tensor = device.allocate(TensorSpec((4, 4), "uint8"))
    with pytest.raises(LayoutError, match="they must be equal"):
        device.write_array(tensor, np.zeros((4, 5)))
    with pytest.raises(LayoutError, match=r"16 contiguous bytes.* got 15"):
        device.write(tensor, np.zeros(15, np.uint8))
    with pytest.raises(MemoryConfigError, match=r"outside the address range .* of DRAM of small"):
        device.read_bytes(0, 0, 1)
    with pytest.raises(MemoryConfigError, match="got bank 5"):
        device.read_bytes(5, 64, 1)
    with pytest.raises(MemoryConfigError, match="but the allocator is for"):
        device.allocate(TensorSpec((4, 4), chip="wormhole_n150"))
    raw = device.allocator.allocate_bytes(64, "l1")
    with pytest.raises(MemoryConfigError, match="is not a tensor"):
        device.read(raw)


def test_views_of_arrays_can_be_put():
    device = Device(SMALL)
    values = np.arange(120, dtype=np.int16).reshape(10, 12)
    tensor = device.put(values.T[::2], TensorSpec((6, 10), "int16", "tile"))
    assert np.array_equal(device.get(tensor), values.T[::2])


def test_a_spec_for_no_chip_is_taken_for_this_one():
    device = Device("blackhole_p150")
    assert device.allocate(TensorSpec((4, 4))).spec.chip == device.chip

# SPDX-License-Identifier: Apache-2.0
"""`Tensor`: storage, exchange with NumPy and DLPack, and operations that are always right and say what they are."""

import gc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.copying.devices import from_dlpack
from tilewright.memory import ChangeKind, Device, TensorSpec, to_bytes
from tilewright.tensor import StorageType, Tensor

from ..cases import examples
from ..memory.strategies import specs

BLOCKS = ("bfloat8_b", "bfloat4_b")


def values_for(spec, seed=0):
    """Return small whole numbers, which every format holds exactly if its blocks span them."""
    top = 8 if spec.dtype.name in BLOCKS else 100
    return np.random.default_rng(seed).integers(0, top, spec.shape.logical).astype(np.float32)


def tensor_for(spec, seed=0):
    return Tensor.from_array(values_for(spec, seed), spec)


def same(tensor, expected):
    np.testing.assert_array_equal(tensor.numpy().astype(np.float32), expected)
    assert tensor.shape == list(expected.shape)
    assert tensor.pages.nbytes == tensor.spec.nbytes


def check_kind(before, after):
    """Views share bytes, and nothing else does."""
    share = np.shares_memory(before.pages, after.pages)
    assert share == (after.made_by.on_host is ChangeKind.VIEW) or not before.nbytes


plain = specs().filter(lambda spec: not spec.memory.is_sharded)


@given(specs(), st.integers(0, 99))
def test_values_survive(spec, seed):
    same(tensor_for(spec, seed), values_for(spec, seed))


@examples(80)
@given(plain, st.data())
def test_reshape(spec, data):
    x = tensor_for(spec)
    volume = spec.shape.logical_volume()
    divisors = [n for n in range(1, volume + 1) if volume % n == 0]
    first = data.draw(st.sampled_from(divisors))
    shape = data.draw(st.sampled_from([(first, -1), (first, volume // first), (volume,), (1, first, -1), (-1, first)]))
    y = x.reshape(shape)
    same(y, values_for(spec).reshape(shape))
    check_kind(x, y)


@examples(80)
@given(plain, st.data())
def test_reshape_keeps_matrices(spec, data):
    assume(spec.shape.rank >= 2)
    x = tensor_for(spec)
    y = x.reshape(-1, *spec.shape.logical[-2:])
    assert y.made_by.on_host is ChangeKind.VIEW
    same(y, values_for(spec).reshape(-1, *spec.shape.logical[-2:]))


@examples(80)
@given(plain, st.data())
def test_permute(spec, data):
    x = tensor_for(spec)
    order = data.draw(st.permutations(range(spec.shape.rank)))
    y = x.permute(order)
    same(y, values_for(spec).transpose(order))
    check_kind(x, y)


@examples(80)
@given(plain, st.data())
def test_slice(spec, data):
    x = tensor_for(spec)
    ranges = []
    for n in spec.shape.logical:
        start = data.draw(st.integers(0, n - 1))
        ranges.append(slice(start, data.draw(st.integers(start + 1, n)), data.draw(st.sampled_from([1, 1, 1, 2]))))
    y = x[tuple(ranges)]
    same(y, values_for(spec)[tuple(ranges)])
    check_kind(x, y)


@examples(80)
@given(plain, st.sampled_from([None, (32, 32), (16, 32), (8, 16)]))
def test_to_layout(spec, tile):
    x = tensor_for(spec)
    if spec.dtype.name in BLOCKS and tile is None:
        with pytest.raises(tw.MemoryConfigError, match="to_dtype"):
            x.to_layout("row_major")
        return
    y = x.to_layout("row_major" if tile is None else "tile", tile, pad_value=3)
    same(y, values_for(spec))
    check_kind(x, y)


@examples(80)
@given(specs(), st.sampled_from(["float32", "bfloat16", "int32", "uint8"]))
def test_to_dtype(spec, dtype):
    assume(not spec.memory.is_sharded or spec.dtype.name not in BLOCKS)
    x = tensor_for(spec)
    y = x.to_dtype(dtype)
    same(y, values_for(spec))
    check_kind(x, y)


@examples(30)
@given(specs())
def test_devices_hold_the_same_values(spec):
    x = tensor_for(spec)
    device = Device(spec.chip)
    there = x.to_device(device)
    assert there.storage_type is StorageType.DEVICE
    same(there, values_for(spec))
    back = there.from_device()
    np.testing.assert_array_equal(back.pages, x.pages)
    assert device.allocator.memory_view(spec.memory.buffer_type).allocated
    del there
    gc.collect()
    assert not device.allocator.memory_view(spec.memory.buffer_type).allocated


@examples(80)
@given(specs(), specs())
def test_memory_configs_change_places_only(one, other):
    x = tensor_for(one)
    try:
        y = x.to_memory_config(other.memory)
    except tw.MemoryConfigError:
        assume(False)
    same(y, values_for(one))


def test_operations_on_a_device_stay_there():
    device = Device("wormhole_n150")
    values = np.arange(2 * 64 * 64, dtype=np.float32).reshape(2, 64, 64)
    x = Tensor.of(values, page_layout="tile").to_device(device, "l1")
    for y, expected in (
        (x.reshape(128, 64), values.reshape(128, 64)),
        (x.reshape(64, 128), values.reshape(64, 128)),
        (x.transpose(1, 2), values.transpose(0, 2, 1)),
        (x[1:, 32:], values[1:, 32:]),
        (x.to_layout("row_major"), values),
        (x.to_dtype("bfloat16").to_dtype("float32"), values.astype(ml_dtypes.bfloat16).astype(np.float32)),
        (x.to_memory_config(tw.block_sharded((4, 2))), values),
    ):
        assert y.device is device
        same(y, expected)
    view = x.reshape(128, 64)
    assert view.made_by.on_host is ChangeKind.VIEW
    x.deallocate()
    assert not view.is_allocated()
    with pytest.raises(tw.TransferError, match="deallocated"):
        view.numpy()


def test_a_tiled_reshape_is_right_where_ttnn_is_not():
    values = np.arange(64 * 64, dtype=np.int32).reshape(64, 64)
    y = Tensor.of(values, page_layout="tile").reshape(32, 128)
    assert y.made_by.kind is ChangeKind.UNTILIZE
    same(y, values.reshape(32, 128))


def test_whole_tiles_keep_their_bits():
    # bytes that no packing makes survive a move of whole tiles
    spec = TensorSpec((2, 3, 64, 64), "bfloat8_b")
    noise = np.random.default_rng(5).integers(0, 256, spec.nbytes).astype(np.uint8)
    x = Tensor.from_pages(noise, spec)
    there = x.permute(1, 0, 2, 3)
    assert there.made_by.kind is ChangeKind.COPY
    np.testing.assert_array_equal(there.permute(1, 0, 2, 3).pages, noise)
    np.testing.assert_array_equal(x[1, 2, 32:, :32].pages, noise.reshape(2, 3, 2, 2, -1)[1, 2, 1, 0])


def test_borrowed_memory_is_shared_both_ways():
    values = np.zeros((4, 6), dtype=np.float32)
    x = Tensor.of(values, borrow=True)
    values[1, 2] = 7
    assert x.numpy()[1, 2] == 7
    np.asarray(x)[0, 0] = 5
    assert values[0, 0] == 5
    assert np.frombuffer(x.raw, np.float32)[8] == 7
    assert Tensor.of(values, borrow=False).storage_type is StorageType.OWNED_HOST
    for other in ({"page_layout": "tile"}, {"dtype": "bfloat16"}):
        with pytest.raises(tw.LayoutError, match="cannot borrow"):
            Tensor.of(values, borrow=True, **other)
    with pytest.raises(tw.LayoutError, match="cannot borrow"):
        Tensor.of(values.T, borrow=True)


def test_read_only_memory_stays_so():
    values = np.arange(6.0)
    values.flags.writeable = False
    assert not np.asarray(Tensor.of(values)).flags.writeable


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8", "float8_e4m3"])
@pytest.mark.parametrize("layout", ["tile", "row_major"])
def test_dlpack_gives_logical_values(dtype, layout):
    if (dtype, layout) == ("float8_e4m3", "tile"):
        pytest.skip("float8 has no tiles")
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = Tensor.of(values, dtype, page_layout=layout)
    assert x.__dlpack_device__() == (1, 0)
    found = from_dlpack(x)
    assert found.dtype == tw.format_of(dtype).dtype
    np.testing.assert_array_equal(found.astype(np.float32), values)
    again = Tensor.of(x)  # a tensor is itself an object with DLPack
    np.testing.assert_array_equal(again.numpy().astype(np.float32), values)


def test_numpy_may_ask_for_no_copy():
    x = Tensor.of(np.zeros((2, 3), np.float32))
    assert np.shares_memory(x.__array__(copy=False), x.pages)
    assert not np.shares_memory(x.__array__(copy=True), x.pages)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy=False"):
        x.to_layout("tile").__array__(copy=False)


@examples(60)
@given(st.data())
def test_pad_and_unpad(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    start = [data.draw(st.integers(0, 3)) for _ in shape]
    outer = [at + n + data.draw(st.integers(0, 3)) for at, n in zip(start, shape, strict=True)]
    x = Tensor.of(values).pad(outer, start, -1)
    expected = np.full(outer, -1, np.float32)
    window = tuple(slice(at, at + n) for at, n in zip(start, shape, strict=True))
    expected[window] = values
    assert list(x.padded_shape) == outer
    np.testing.assert_array_equal(x.pages.view(np.float32).reshape(outer), expected)
    same(x, values)  # also where the data do not start at the origin
    same(x.to_layout("tile"), values)
    same(x.reshape(-1), values.reshape(-1))
    same(x.to_device(Device("wormhole_n150")), values)
    same(x.to_dtype("int32"), values)
    same(x.unpad(start, [at + n for at, n in zip(start, shape, strict=True)]), values)
    same(x.unpad([0] * len(outer), outer), expected)


def test_padding_is_converted_with_the_data():
    x = Tensor.of(np.ones((5, 7), np.float32), page_layout="tile", pad_value=3).to_dtype("bfloat16")
    np.testing.assert_array_equal(
        x.pages, to_bytes(np.ones((5, 7), np.float32), TensorSpec((5, 7), "bfloat16", "tile"), 3)
    )


def test_vectors_and_numbers():
    for shape in ((), (7,), (1,), (0, 4), (4, 0)):
        values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for layout in ("row_major", "tile"):
            x = Tensor.of(values, page_layout=layout)
            same(x, values)
            same(x.to_layout("tile"), values)
            same(x.to_layout("row_major"), values)
            same(x.to_dtype("bfloat16"), values)
            same(x.reshape(-1) if values.size else x.reshape(shape), values.reshape(-1) if values.size else values)
    assert Tensor.of(3.5).item() == 3.5
    with pytest.raises(TypeError):
        len(Tensor.of(3.5))


def test_refusals_say_what_would_be_right():
    x = Tensor.of(np.zeros((4, 6), np.float32))
    for wrong, words in (
        (lambda: x.reshape(5, 5), "24 elements"),
        (lambda: x.reshape(-1, -1), "cannot be reshaped"),
        (lambda: x.permute(0, 0), "once, got"),
        (lambda: x.transpose(0, 2), "has no dimensions"),
        (lambda: x[7], "outside a dimension of 4"),
        (lambda: x[::-1], "must be positive"),
        (lambda: x[0, 0, 0], "expected at most"),
        (lambda: x.pad((4,)), "a padded extent and a start per dimension"),
        (lambda: x.pad((4, 6), (1, 0)), "does not fit"),
        (lambda: x.to_layout("tile").pad((64, 64)), "row_major"),
        (lambda: x.unpad((0, 0), (5, 6)), "not inside"),
        (lambda: x.to_layout("tile").unpad((0, 0), (4, 6)), "row-major"),
        (lambda: x.numpy("bfloat8_b"), "scalar format"),
        (lambda: Tensor.from_pages(bytes(3), x.spec), "96 contiguous bytes"),
    ):
        with pytest.raises((tw.LayoutError, tw.MemoryConfigError, tw.FormatError), match=words):
            wrong()
    sharded = Tensor.of(np.zeros((64, 64), np.float32), page_layout="tile", memory=tw.height_sharded((2, 1), (32, 64)))
    with pytest.raises(tw.MemoryConfigError, match="reshard first"):
        sharded.reshape(32, 128)

# SPDX-License-Identifier: Apache-2.0
"""Storage: everything a tensor can lie over, without a copy, checked against the layout before it is touched."""

import array
import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright_mojo.std.gpu.host import DeviceContext

import tilewright as tw
from tilewright import (
    FormatError,
    Layout,
    LayoutError,
    Swizzle,
    addr,
    bank,
    col_major,
    compose,
    core,
    format_of,
    row_major,
)
from tilewright.formats import SCALAR_FORMATS
from tilewright.mojo import Array, DType, Float32, InlineArray, Int32, List, Span
from tilewright.mojo.layout import AddressSpace, MixedLayout, TensorLayout, TileTensor, stack_allocation
from tilewright.tensor.store import DeviceMemory, Store
from tilewright.tensor.view import pair_layout

from .strategies import iota


class WithInterface:
    """An object that exports its memory as `__array_interface__` and as nothing else."""

    def __init__(self, data):
        self.data = data

    @property
    def __array_interface__(self):
        return self.data.__array_interface__


class WithDLPack:
    """An object that exports its memory as DLPack and as nothing else."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class FarAway(WithDLPack):
    """Memory of a device that the host cannot reach."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **options):
        raise BufferError("the memory is on a GPU")


# Twelve int32 numbers in every kind of storage that is shared: each gives the object and an array over its memory.


def shared(kind, numbers):
    if kind == "ndarray":
        return numbers, numbers
    if kind == "matrix":
        return numbers.reshape(3, 4), numbers
    if kind == "bytearray":
        memory = bytearray(numbers.tobytes())
        return memory, np.frombuffer(memory, dtype=np.int32)
    if kind == "memoryview":
        return memoryview(numbers), numbers
    if kind == "array.array":
        memory = array.array("i", numbers.tolist())
        return memory, np.frombuffer(memory, dtype=np.int32)
    if kind == "Span":
        return Span(numbers), numbers
    if kind == "InlineArray":
        memory = InlineArray[Int32, 12](*numbers.tolist())
        return memory, memory.array
    if kind == "Array":
        memory = Array[Int32, 12](*numbers.tolist())
        return memory, memory.array
    if kind == "List":
        memory = List[Int32](*numbers.tolist())
        return memory, memory.array
    if kind == "HostBuffer":
        memory = DeviceContext().enqueue_create_host_buffer[DType.int32](12)
        for k, number in enumerate(numbers):
            memory[k] = number
        return memory, memory.array
    if kind == "__array_interface__":
        return WithInterface(numbers), numbers
    return WithDLPack(numbers), numbers


SHARED = (
    "ndarray",
    "matrix",
    "bytearray",
    "memoryview",
    "array.array",
    "Span",
    "InlineArray",
    "Array",
    "List",
    "HostBuffer",
    "__array_interface__",
    "DLPack",
)


@pytest.mark.parametrize("kind", SHARED)
def test_storage_is_read_and_written_in_place(kind):
    storage, memory = shared(kind, iota(12, np.int32))
    tensor = TileTensor(storage, col_major(3, 4), dtype="int32" if kind == "bytearray" else None)
    assert tensor.dtype == format_of("int32")
    assert tensor.origin.owner is tensor.ptr.storage is storage
    np.testing.assert_array_equal(tensor.to_numpy(), iota(12).reshape(3, 4, order="F"))
    memory[0] = -1
    assert tensor[0, 0] == -1
    # NumPy 1.26 speaks DLPack of before version 1, which cannot say that memory may be written.
    assert tensor.mut == (kind != "DLPack" or np.lib.NumpyVersion(np.__version__) >= "2.0.0")
    if tensor.mut:
        tensor[2, 1] = 99
        assert memory[5] == 99


@pytest.mark.parametrize("kind", ["list", "tuple"])
def test_numbers_are_copied(kind):
    numbers = {"list": list, "tuple": tuple}[kind](range(12))
    tensor = TileTensor(numbers, row_major(3, 4))
    tensor[0, 0] = 99
    assert numbers[0] == 0
    assert tensor.origin.owner is numbers
    assert TileTensor([1.5, 2.5], row_major(2)).dtype == format_of("float64")
    assert TileTensor([1, 2], row_major(2), dtype="bfloat16").dtype == format_of("bfloat16")


def test_bytes_give_a_read_only_tensor():
    tensor = TileTensor(bytes(range(12)), row_major(3, 4))
    assert tensor.dtype == format_of("uint8")
    assert tensor.readonly
    assert tensor[1, 1] == 5
    assert TileTensor(bytes(16), row_major(4), dtype="float32").to_numpy().tolist() == [0, 0, 0, 0]


def test_torch_tensors_are_shared():
    torch = pytest.importorskip("torch")
    memory = torch.arange(12, dtype=torch.int32)
    tensor = TileTensor(memory, col_major(3, 4))
    tensor[2, 1] = 99
    assert int(memory[5]) == 99


def test_objects_without_memory_are_refused():
    for storage in (None, 7, "text", {1: 2}, object()):
        with pytest.raises(TypeError, match=f"storage must be an array.*got {type(storage).__name__}"):
            TileTensor(storage, row_major(2))


def test_device_memory_behind_dlpack_is_refused():
    with pytest.raises(LayoutError, match=r"cannot share the memory of FarAway through DLPack.*to the host first"):
        TileTensor(FarAway(np.zeros(4)), row_major(4))


def test_storage_lives_as_long_as_a_view_of_it():
    memory = np.zeros(16)
    gone = weakref.ref(memory)
    tile = TileTensor(memory, row_major(4, 4)).tile[2, 2](1, 1)
    del memory
    gc.collect()
    assert gone() is not None
    assert tile.fill(3).to_numpy().tolist() == [[3, 3], [3, 3]]
    del tile
    gc.collect()
    assert gone() is None


# Arrays keep their strides when no layout is given.


@given(st.data())
def test_an_array_of_any_strides_is_its_own_layout(data):
    parent = iota(2 * 6 * 8 * 3).reshape(12, 8, 3)
    key = []
    for n in parent.shape:
        edge = st.none() | st.integers(-n - 1, n + 1)
        slices = st.slices(n) | st.builds(slice, edge, edge, st.sampled_from([None, 1, 2, -1, -3]))
        key.append(data.draw(slices | st.integers(0, n - 1)))
    view = parent[(*key, ...)]
    view = view.transpose(data.draw(st.permutations(range(view.ndim))))
    if data.draw(st.booleans()):
        view = np.broadcast_to(view, (2, *view.shape))
    tensor = TileTensor(view)
    assert tensor.shape == view.shape
    np.testing.assert_array_equal(tensor.to_numpy(), view)
    assert tensor.readonly == (not view.flags.writeable)
    if view.size and view.flags.writeable:
        tensor.fill(-1)
        assert (view == -1).all()
        assert (parent == -1).sum() == np.unique(view.__array_interface__["data"][0] + offsets_in_bytes(view)).size


def offsets_in_bytes(view):
    grids = np.indices(view.shape)
    return sum((grid * step for grid, step in zip(grids, view.strides, strict=True)), np.zeros(view.shape, dtype=int))


def test_a_contiguous_array_is_row_major_with_static_extents():
    tensor = TileTensor(np.zeros((3, 1, 4)))
    assert tensor.is_row_major
    assert tensor.all_dims_known
    assert tensor.layout == row_major(3, 1, 4)


def test_from_numpy_shares_memory():
    memory = iota(6).reshape(2, 3)
    TileTensor.from_numpy(memory.T)[2, 1] = 99
    assert memory[1, 2] == 99


def test_strides_between_elements_are_refused():
    records = np.zeros(4, dtype=[("a", np.int32), ("b", np.int16)])
    with pytest.raises(LayoutError, match=r"strides \(6,\) are not multiples of the element size 4"):
        TileTensor(records["a"])


def test_a_layout_needs_a_plain_run_of_scalars():
    with pytest.raises(LayoutError, match=r"with strides \(8, 24\).*ascontiguousarray"):
        TileTensor(np.zeros((4, 3)).T, row_major(3, 4))


# The layout has to fit.


@given(st.data())
def test_exactly_the_cosize_of_a_layout_is_enough(data):
    n, m = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    layout = Layout((n, m), (data.draw(st.integers(0, 20)), data.draw(st.integers(0, 20))))
    need = int(layout.cosize)
    TileTensor(iota(need), layout)
    with pytest.raises(LayoutError, match=rf"the storage has {need - 1} \(0 to {need - 2}\); it needs {need}"):
        TileTensor(iota(need - 1), layout)


@given(st.data())
def test_the_lowest_place_must_not_lie_before_storage(data):
    n, step = data.draw(st.integers(2, 9)), data.draw(st.integers(1, 5))
    reach = (n - 1) * step
    TileTensor(iota(reach + 1), Layout((n,), (-step,)) + reach)
    short = data.draw(st.integers(0, reach - 1))
    with pytest.raises(LayoutError, match=rf"covers scalars {short - reach} to {short}"):
        TileTensor(iota(reach + 1), Layout((n,), (-step,)) + short)


@pytest.mark.parametrize(
    ("layout", "need"),
    [
        (compose(Swizzle(3, 0, 3), row_major(8, 8)), 64),
        (compose(Swizzle(2, 0, 2), row_major(3, 3)), 11),
        (compose(Layout((4, 2), (1, 8)), row_major(8)), 12),
        (Layout(((2, 2), (2, 3)), ((2, 12), (1, 4))), 24),
        (Layout((4, 4), (100, 1)), 304),
    ],
    ids=str,
)
def test_composed_and_nested_layouts_are_measured_exactly(layout, need):
    TileTensor(iota(need), layout)
    with pytest.raises(LayoutError, match=f"the storage has {need - 1}"):
        TileTensor(iota(need - 1), layout)


def test_the_original_pages_host_buffer_is_too_small():
    buffer = DeviceContext().enqueue_create_host_buffer[DType.float32](8)
    with pytest.raises(LayoutError, match=r"covers scalars 0 to 15, but the storage has 8.*needs 16"):
        TileTensor(buffer, row_major(4, 4))


def test_an_empty_layout_fits_anything():
    assert TileTensor(np.zeros(0), row_major(0, 4)).to_numpy().shape == (0, 4)
    assert TileTensor([], row_major(4, 0)).size == 0


def test_what_is_no_layout_is_refused():
    with pytest.raises(TypeError, match=r"a tensor view needs a layout, got tuple \(4, 4\); create one with row_major"):
        TileTensor(np.zeros(16), (4, 4))
    with pytest.raises(LayoutError, match=r"a tensor already has a layout.*t.reshape\(layout\)"):
        TileTensor(TileTensor(np.zeros(16)), row_major(4, 4))


# Layouts of other kinds.


def test_named_axes_are_dimensions_of_the_storage():
    banks = iota(12).reshape(3, 4)
    tensor = TileTensor(banks, Layout((4, 3), (1 @ addr, 1 @ bank)))
    np.testing.assert_array_equal(tensor.to_numpy(), banks.T)
    tensor[1, 2] = 99
    assert banks[2, 1] == 99
    assert tensor.origin.owner is banks


def test_the_address_axis_is_the_last_dimension():
    memory = iota(24).reshape(2, 3, 4)
    layout = Layout((2, 4, 3), (1 @ core.x, 1 @ addr, 1 @ bank))
    names = [name for name in layout.axes if name != "addr"]
    tensor = TileTensor(memory.transpose([["core.x", "bank"].index(name) for name in names] + [2]).copy(), layout)
    np.testing.assert_array_equal(tensor.to_numpy(), memory.transpose(0, 2, 1))


def test_named_axes_need_as_many_dimensions_and_room():
    layout = Layout((3, 4), (1 @ bank, 1 @ addr))
    with pytest.raises(LayoutError, match=r"needs 2 dimensions in that order, got\s+shape \(12,\)"):
        TileTensor(iota(12), layout)
    with pytest.raises(LayoutError, match="needs 3 offsets along axis bank, but the storage has 2"):
        TileTensor(iota(8).reshape(2, 4), layout)


class Diagonal:
    """A layout from elsewhere: it has only what Mojo's trait asks for."""

    rank = flat_rank = 1
    shape_known = stride_known = all_dims_known = True
    static_shape, static_stride = (4,), (5,)
    size, cosize = 4, 16

    def shape_coord(self):
        return (4,)

    def stride_coord(self):
        return (5,)

    def __call__(self, *coord):
        return 5 * coord[0]


def test_any_object_with_the_layout_protocol_will_do():
    assert isinstance(Diagonal(), TensorLayout)
    assert isinstance(MixedLayout.wrap(row_major(4, 4)), TensorLayout)
    assert not isinstance((4, 4), TensorLayout)
    tensor = TileTensor(iota(16), Diagonal())
    assert tensor.to_numpy().tolist() == [0, 5, 10, 15]


def test_a_tensor_of_a_tensor_is_the_same_view_read_only():
    tensor = TileTensor(iota(48), row_major(6, 8)).tile[4, 3](1, 2).vectorize[2, 1]()
    view = TileTensor(tensor)
    assert (view.readonly, view.offset, view.layout) == (True, tensor.offset, tensor.layout)
    assert view.element_layout == tensor.element_layout
    assert view.equals(tensor)


# Memory made to measure.


def test_stack_allocation_has_room_for_the_whole_layout():
    tensor = stack_allocation[DType.float32](Layout((4, 4), (100, 1)))
    assert tensor.ptr.store.size == 304
    assert tensor.dtype == format_of("float32")
    shared_memory = stack_allocation[Float32, AddressSpace.SHARED](row_major(4, 4))
    assert shared_memory.address_space is AddressSpace.SHARED
    assert shared_memory.fill(2).to_numpy().sum() == 32


def test_inline_arrays_are_filled_given_or_left_alone():
    assert InlineArray[Float32, 3](fill=1.5).array.tolist() == [1.5, 1.5, 1.5]
    assert InlineArray[Float32, 3](1, 2, 3).array.tolist() == [1, 2, 3]
    assert len(InlineArray[Float32, 16](uninitialized=True)) == 16
    assert List[Int32](length=2, fill=7).array.tolist() == [7, 7]
    with pytest.raises(IndexError, match="expected 3 values for an array of 3 scalars, got 2"):
        InlineArray[Float32, 3](1, 2)
    with pytest.raises(IndexError, match="index 3 is outside 3 elements"):
        InlineArray[Float32, 3](fill=0)[3]


# Number formats.


@pytest.mark.parametrize("name", sorted(SCALAR_FORMATS))
def test_every_scalar_format_can_be_stored(name):
    element = format_of(name)
    bits = np.zeros(6 * element.itemsize, dtype=np.uint8)
    for tensor in (
        TileTensor(bits, row_major(2, 3), dtype=name),
        TileTensor(bits.view(element.dtype), row_major(2, 3)),
        stack_allocation[element](row_major(2, 3)),
    ):
        assert tensor.dtype == element
        tensor.fill(1)
        assert tensor[1, 2] == element.dtype.type(1)
        assert tensor.to_numpy().dtype == element.dtype


def test_narrow_floats_round_what_is_written():
    tensor = TileTensor(np.zeros(2, dtype=ml_dtypes.bfloat16), row_major(2))
    tensor[0] = 1.00390625  # 1 + 2**-8 lies between two bfloat16 numbers; the even one is 1
    assert float(tensor[0]) == 1
    small = TileTensor(np.zeros(2, dtype=ml_dtypes.float8_e4m3fn), row_major(2))
    small.copy_from(np.array([0.3, 240.0], dtype=np.float32))
    assert small.to_numpy().astype(np.float32).tolist() == [0.3125, 240.0]
    assert (tensor + tensor).dtype == format_of("bfloat16")


def test_bytes_can_be_read_as_another_format_if_they_divide():
    assert TileTensor(bytearray(12), row_major(3), dtype="float32").shape == (3,)
    with pytest.raises(LayoutError, match="10 bytes of storage are not a multiple of 4"):
        TileTensor(bytearray(10), row_major(2), dtype="float32")
    with pytest.raises(FormatError, match="needs a scalar format, got bfloat8_b"):
        TileTensor(bytearray(12), row_major(3), dtype="bfloat8_b")


def test_bitcast_reads_the_same_bytes():
    tensor = TileTensor(np.array([1.0, -2.0], dtype=np.float32), row_major(2))
    assert tensor.bitcast["uint32"]().to_numpy().tolist() == [0x3F800000, 0xC0000000]
    with pytest.raises(LayoutError, match=r"float32 and uint8 differ in size.*rescale=True"):
        tensor.bitcast["uint8"]()
    low = tensor.bitcast["uint16"](rescale=True)
    assert (low.layout, low.to_numpy().tolist()) == (Layout((2,), (2,)), [0, 0])


# Out again: NumPy and DLPack.


def test_numpy_sees_a_view_where_strides_allow():
    memory = iota(12)
    tensor = TileTensor(memory, col_major(3, 4))
    assert np.shares_memory(np.asarray(tensor), memory)
    assert np.asarray(tensor, dtype=np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(tensor), memory)
    assert not np.shares_memory(tensor.to_numpy(), memory)
    assert np.shares_memory(tensor.to_numpy(copy=False), memory)
    np.testing.assert_array_equal(np.asarray(tensor), memory.reshape(3, 4, order="F"))


def test_numpy_sees_a_copy_where_strides_do_not_allow():
    memory = iota(64)
    tensor = TileTensor(memory, compose(Swizzle(3, 0, 3), row_major(8, 8)))
    assert not np.shares_memory(np.asarray(tensor), memory)
    with pytest.raises(LayoutError, match="cannot become an array without a copy"):
        tensor.to_numpy(copy=False)
    with pytest.raises(LayoutError, match="cannot become an array without a copy"):
        np.from_dlpack(tensor)


@pytest.mark.parametrize("layout", [row_major(3, 4), col_major(3, 4), Layout((2, 3), (6, 2))], ids=str)
def test_dlpack_shares_memory(layout):
    memory = iota(12)
    tensor = TileTensor(memory, layout)
    seen = np.from_dlpack(tensor)
    assert np.shares_memory(seen, memory)
    np.testing.assert_array_equal(seen, tensor.to_numpy())
    assert tensor.__dlpack_device__() == (1, 0)
    again = TileTensor(tensor.to_numpy(copy=False))
    assert again.equals(tensor)


def test_a_tile_can_be_given_to_numpy_without_a_copy():
    memory = iota(48)
    edge = TileTensor(memory, row_major(6, 8)).tile[4, 3](1, 2)
    np.testing.assert_array_equal(np.asarray(edge), [[38, 39], [46, 47]])
    assert np.shares_memory(np.asarray(edge), memory)


# Devices.


def test_device_memory_cannot_be_reached_from_the_host():
    context = DeviceContext()
    buffer = context.enqueue_create_buffer[DType.float32](16)
    tensor = TileTensor(buffer, row_major(4, 4))
    assert tensor.tile[2, 2](1, 1).offset == 10
    assert tensor.dtype == format_of("float32")
    reaches = [
        lambda: tensor[0, 0],
        tensor[1:3, 0].to_numpy,
        lambda: tensor.load(0, 0),
        lambda: tensor.load[4](0, 0),
        lambda: tensor.store(0, 0, 1),
        lambda: tensor.__setitem__((0, 0), 1),
        lambda: tensor.fill(0),
        lambda: tensor.copy_from(np.zeros((4, 4))),
        lambda: tensor.vectorize[1, 4]()[0, 0],
        tensor.to_numpy,
        lambda: np.asarray(tensor),
        lambda: str(tensor),
        lambda: tensor + 1,
        lambda: tensor.ptr[0],
        lambda: tensor.ptr.address,
        lambda: buffer[0],
        lambda: tensor.raw_load(0),
        tensor.bitcast["int32"],
    ]
    for reach in reaches:
        with pytest.raises(LayoutError, match=r"device memory cannot be reached.*copy it to a host buffer"):
            reach()


def test_data_goes_to_a_device_and_back():
    context = DeviceContext()
    host, device = context.enqueue_create_host_buffer["int32"](6), context.enqueue_create_buffer["int32"](6)
    TileTensor(host, row_major(2, 3)).copy_from(iota(6).reshape(2, 3))
    context.enqueue_copy(device, host)
    host.array[...] = 0
    context.enqueue_copy(host, device)
    context.synchronize()
    assert TileTensor(host, row_major(2, 3)).to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(LayoutError, match="7 x int32"):  # as much as the target holds is copied
        context.enqueue_copy(context.enqueue_create_buffer["int32"](7), host)


def test_to_device_buffer_takes_contiguous_views():
    context = DeviceContext()
    tensor = TileTensor(iota(12, np.int32), row_major(3, 4))
    host = context.enqueue_create_host_buffer["int32"](4)
    context.enqueue_copy(host, tensor.slice[1:2, 0:4]().to_device_buffer(context))
    assert host.array.tolist() == [4, 5, 6, 7]
    with pytest.raises(LayoutError, match="to_device_buffer needs elements in row-major order"):
        tensor.transpose().to_device_buffer(context)


@pytest.mark.parametrize("layout", [tw.Layout(9), tw.Layout(2, 8), tw.Layout(2, -1)], ids=str)
def test_a_view_is_checked_where_it_becomes_an_array(layout):
    view = tw.TileTensor(np.zeros(8), tw.row_major(8))._view(pair_layout(layout), 0)
    with pytest.raises(tw.LayoutError, match="exceeds its storage, which has 8"):
        view.to_numpy()


def test_memory_has_scalars_of_its_format():
    with pytest.raises(TypeError, match="memory of int8 has no scalars of float64"):
        Store(np.zeros(8, np.int8), tw.format_of("float64"), None, False)
    with pytest.raises(TypeError, match="memory is an array of scalars, got list"):
        Store([1, 2], tw.format_of("int8"), None, False)
    with pytest.raises(tw.LayoutError, match="scalars 2 to 4 exceed device memory, which has 4"):
        DeviceMemory(tw.format_of("int8"), np.zeros(4, np.int8)).section(2, 3)

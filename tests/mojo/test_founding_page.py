# SPDX-License-Identifier: Apache-2.0
"""The snippets of Mojo's TileTensor page, run as Python: without `var` and `comptime`, from the dialect's modules."""

import io

import pytest

from tilewright import LayoutError
from tilewright.mojo import DType, Float32, InlineArray, Scalar, Span, UInt8
from tilewright.mojo.layout import AddressSpace, Coord, Idx, LayoutTensor, TileTensor
from tilewright.mojo.layout.tile_layout import PageLayout, blocked_product, row_major
from tilewright.mojo.std.gpu.host import DeviceContext


def test_the_opening_example():
    storage = InlineArray[Float32, 16](uninitialized=True)
    tensor = TileTensor(storage, row_major[4, 4]()).fill(0.0)
    tensor[0, 0] = 1.0
    tensor[1, 2] = 2.0
    tile = tensor.tile[2, 2](1, 0)
    vec = tensor.vectorize[1, 4]()
    assert (storage[0], storage[6]) == (1.0, 2.0)
    assert (tile.shape, tile.offset) == ((2, 2), 8)
    assert (vec.shape, vec.element_layout.shape) == ((4, 1), (1, 4))
    assert vec[1, 0].tolist() == [0.0, 0.0, 2.0, 0.0]


def test_a_device_buffer():
    dtype = DType.float32
    ctx = DeviceContext()
    dev_buf = ctx.enqueue_create_buffer[dtype](16)
    host_buf = ctx.enqueue_create_host_buffer[dtype](16)
    ctx.synchronize()
    for i in range(16):
        host_buf[i] = Scalar[dtype](i)
    ctx.enqueue_copy(dev_buf, host_buf)
    tensor = TileTensor(
        dev_buf,
        row_major((Idx[4](), Idx[4]())),
    )
    assert (tensor.shape, tensor.all_dims_known) == ((4, 4), True)
    with pytest.raises(LayoutError, match="device memory cannot be reached"):
        tensor[0, 0]
    back = ctx.enqueue_create_host_buffer[dtype](16)
    ctx.enqueue_copy(back, tensor.to_device_buffer(ctx))
    assert [back[i] for i in range(16)] == list(range(16))


def test_a_host_buffer_of_8_scalars_is_too_small():
    dtype = DType.float32
    ctx = DeviceContext()
    host_buf = ctx.enqueue_create_host_buffer[dtype](8)
    with pytest.raises(LayoutError, match="it needs 16"):
        TileTensor(
            host_buf,
            row_major((Idx[4](), Idx[4]())),
        )


def test_a_host_buffer_of_16_scalars():
    dtype = DType.float32
    ctx = DeviceContext()
    host_buf = ctx.enqueue_create_host_buffer[dtype](16)
    tensor = TileTensor(
        host_buf,
        row_major((Idx[4](), Idx[4]())),
    )
    tensor[3, 3] = 7.0
    assert host_buf[15] == 7.0


def test_write_to(capsys):
    storage = InlineArray[Float32, 2 * 3](uninitialized=True)
    tensor = TileTensor(storage, row_major[2, 3]()).fill(1.0)
    print(tensor)  # calls `write_to`
    text = "[[1.0, 1.0, 1.0],\n[1.0, 1.0, 1.0]]"
    assert capsys.readouterr().out == f"{text}\n"
    writer = io.StringIO()
    tensor.write_to(writer)
    assert writer.getvalue() == text


def test_tile():
    storage = InlineArray[Float32, 16](uninitialized=True)
    tensor = TileTensor(storage, row_major[4, 4]()).fill(1.0)
    t = tensor.tile[2, 2](1, 0)
    t.fill(5.0)
    assert tensor.to_numpy().tolist() == [[1.0] * 4] * 2 + [[5.0, 5.0, 1.0, 1.0]] * 2


def test_reshape():
    storage = InlineArray[Float32, 12](uninitialized=True)
    tensor = TileTensor(storage, row_major[3, 4]()).fill(1.0)
    reshaped = tensor.reshape[2, 6]()
    reshaped_1d = tensor.reshape[12]()
    assert (reshaped.shape, reshaped_1d.shape) == ((2, 6), (12,))
    assert reshaped_1d.layout == tensor.coalesce().layout
    reshaped[1, 0] = 3.0
    assert tensor[1, 2] == reshaped_1d[6] == 3.0


def test_reshape_with_run_time_dimensions():
    storage = InlineArray[Float32, 12](uninitialized=True)
    tensor = TileTensor(storage, row_major[3, 4]()).fill(1.0)
    rows = 2
    cols = 6
    reshaped = tensor.reshape(Coord(Idx(rows), Idx(cols)))
    assert (reshaped.shape, reshaped.shape_known) == ((2, 6), False)


def test_fill(capsys):
    storage = InlineArray[Float32, 3 * 4](uninitialized=True)
    tensor = TileTensor(storage, row_major[3, 4]()).fill(0.0)
    print(tensor)
    assert capsys.readouterr().out == "[" + ",\n".join(["[0.0, 0.0, 0.0, 0.0]"] * 3) + "]\n"


def test_fill_returns_the_tensor():
    storage = InlineArray[Float32, 3 * 4](uninitialized=True)
    tensor = TileTensor(storage, row_major[3, 4]()).fill(0.0)
    same = tensor
    tensor = tensor.fill(0.0)
    assert tensor is same
    _ = tensor.fill(2.0)
    assert storage[11] == 2.0


def test_slice_with_static_bounds():
    layout_3d = row_major[16, 16, 16]()
    stack = InlineArray[UInt8, layout_3d.static_product](fill=0)
    tensor_3d = TileTensor(stack, layout_3d)
    slice = tensor_3d.slice[0:2, 1:3, 0:4]()  # noqa: A001
    assert (slice.shape, slice.offset) == ((2, 2, 4), 16)


def test_slice_with_run_time_bounds():
    tensor = TileTensor(list(range(48)), row_major[6, 8]())
    sliced = tensor.slice((1, 3), (2, 5))
    assert sliced.to_numpy().tolist() == [[10, 11, 12], [18, 19, 20]]
    assert not sliced.shape_known


def test_make_dynamic():
    storage = InlineArray[Float32, 12](uninitialized=True)
    tensor = TileTensor(Span(storage), row_major[3, 4]())
    dynamic = tensor.make_dynamic[DType.int64]()
    assert (dynamic.shape_known, dynamic.stride_known) == (False, False)
    assert (dynamic.layout.shape, dynamic.layout.stride) == (tensor.layout.shape, tensor.layout.stride)


# what its text says by example


def test_vectorize_by_blocks():
    tensor = TileTensor(list(range(256)), row_major[16, 16]())
    vectors = tensor.vectorize[4, 4]()
    assert (vectors.shape, vectors.element_size) == ((4, 4), 16)
    assert vectors[1, 2].tolist() == tensor.to_numpy()[4:8, 8:12].tolist()


def test_coalesce():
    assert TileTensor(list(range(16)), row_major[4, 4]()).coalesce().shape == (16,)


def test_coalesce_flattens_vector_elements_too():
    vectors = TileTensor(list(range(64)), row_major[4, 16]()).vectorize[1, 4]().coalesce()
    assert (vectors.shape, vectors.element_layout.shape) == ((16,), (4,))


def test_nested_layouts_are_indexed_by_all_their_leaves():
    tensor = TileTensor(list(range(24)), blocked_product(row_major[2, 2](), row_major[2, 3](), order="grouped"))
    assert (tensor.rank, tensor.flat_rank) == (2, 4)
    assert tensor[1, 0, 0, 2] == 2 + 8
    tensor[1, 0, 0, 2] = -1
    assert tensor[Coord(1, 0, 0, 2)] == -1


def test_a_mutable_tensor_is_taken_as_an_immutable_one():
    tensor = TileTensor(list(range(16)), row_major[4, 4]())
    assert (tensor.mut, TileTensor(tensor).mut) == (True, False)
    with pytest.raises(LayoutError, match="read-only"):
        TileTensor(tensor)[0, 0] = 1


def test_address_spaces_are_labels():
    tensor = TileTensor(list(range(16)), row_major[4, 4]())
    shared = tensor.address_space_cast[AddressSpace.SHARED]()
    assert (tensor.address_space, shared.address_space) == (AddressSpace.GENERIC, AddressSpace.SHARED)
    assert shared[3, 3] == 15


# every name of the page

PARAMETERS = "mut dtype origin address_space linear_idx_type element_size ptr layout"
COMPTIME = (
    "__copy_ctor_is_trivial __del__is_trivial __move_ctor_is_trivial AddressSpaceCastType all_dims_known CoalescedType"
    " device_type DynamicType ElementType flat_rank GenericType is_row_major OriginCastType rank ReshapedType"
    " shape_known SIMDVectorizedType static_shape static_stride stride_known VectorizedType ViewType"
)
METHODS = (
    "__getitem__ __setitem__ get_type_name load store ptr_at_offset prefetch numel write_to tile tile_with_offset"
    " reshape distribute distribute_with_offset fill dim dynamic_stride slice vectorize coalesce make_dynamic"
    " to_layout_tensor as_any_origin as_immut address_space_cast to_device_buffer"
)
ALIASES = [name for name in COMPTIME.split() if name.endswith(("Type", "_type")) and name != "ElementType"]


@pytest.fixture
def tensor():
    return TileTensor(InlineArray[Float32, 16](fill=0), row_major[4, 4]())


@pytest.mark.parametrize("name", f"{PARAMETERS} {COMPTIME} {METHODS}".split())
def test_every_member_is_there(tensor, name):
    assert hasattr(tensor, name)
    assert callable(getattr(tensor, name)) or name not in METHODS.split()


def test_the_page_has_22_comptime_members():
    assert len(COMPTIME.split()) == 22


@pytest.mark.parametrize("name", ALIASES)
def test_type_aliases_name_the_class(name):
    alias = getattr(TileTensor, name)
    assert alias is TileTensor
    assert alias[DType.float32] is TileTensor


@pytest.mark.parametrize("name", [name for name in COMPTIME.split() if name.endswith("_trivial")])
def test_tensors_are_trivial_to_copy(tensor, name):
    assert getattr(tensor, name) is True


def test_values_of_members(tensor):
    assert (tensor.rank, tensor.flat_rank, tensor.element_size, tensor.numel()) == (2, 2, 1, 16)
    assert (tensor.static_shape[1], tensor.static_stride[0], tensor.dim[0](), tensor.dim(1)) == (4, 4, 4, 4)
    assert (tensor.dynamic_stride(0), tensor.dtype, tensor.linear_idx_type) == (4, DType.float32, DType.int32)
    assert isinstance(tensor.layout, PageLayout)
    assert isinstance(tensor.to_layout_tensor(), LayoutTensor)
    assert TileTensor.get_type_name() == "TileTensor"
    assert tensor.get_type_name() == (
        "TileTensor[mut=True, dtype=float32, Engine=DefaultEngine[element_size=1],"
        " address_space=AddressSpace.GENERIC, linear_idx_type=int32]"
    )

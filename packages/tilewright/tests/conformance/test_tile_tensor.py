# SPDX-License-Identifier: Apache-2.0
"""The reference of Mojo's TileTensor, statement by statement.

Its snippets are Python after the rule of the dictionary: without `var`, `comptime` and `raises`, with keywords of
brackets in the parentheses, and Mojo's modules installed.
"""

import copy
import io
import re
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright import mojo
from tilewright.mojo import (
    SIMD,
    AnyType,
    Copyable,
    DevicePassable,
    DType,
    Float32,
    ImmutAnyOrigin,
    ImplicitlyCopyable,
    ImplicitlyDestructible,
    IndexList,
    InlineArray,
    Int,
    List,
    Movable,
    MutAnyOrigin,
    Optional,
    Origin,
    RegisterPassable,
    Scalar,
    Span,
    String,
    TrivialRegisterPassable,
    UInt,
    UInt8,
    UnsafePointer,
    Writable,
    simd_width_of,
)
from tilewright.mojo.layout.tensor_type import type_of
from tilewright.mojo.layout.tile_layout import Layout as TileLayout

from .statements import shows

with mojo.imports():
    from buffer import Dim, DimList, NDBuffer
    from layout import (
        AddressSpace,
        Coord,
        Idx,
        Layout,
        LayoutTensor,
        RowMajorLayout,
        RuntimeInt,
        Swizzle,
        TensorLayout,
        TileTensor,
    )
    from layout.tile_layout import blocked_product, col_major, row_major
    from std.gpu import block_idx, thread_idx
    from std.gpu.host import DeviceContext


INTEGERS = (
    "the numbers are right, but integers of Python, which mix with any other; the type of an index is a label here"
)


def matrix(rows=6, columns=8, dtype=np.float32):
    """Return a row-major matrix whose elements are their own offsets."""
    return TileTensor(np.arange(rows * columns, dtype=dtype), row_major[rows, columns]())


def run_time_matrix(rows=6, columns=8):
    """Return a matrix whose extents are known only at run time."""
    return TileTensor(np.arange(rows * columns, dtype=np.float32), row_major(rows, columns))


def blocked():
    """Return the 4 x 6 matrix of blocks of 2 x 2: a nested layout of rank 2 with 4 leaves."""
    return TileTensor(np.arange(24), blocked_product(row_major[2, 2](), row_major[2, 3]()))


# The struct and its parameters.


@shows("J1", "3", "a TileTensor is passed in registers: copying it is trivial")
@shows("J25", "53-57", "copying, moving and destroying are trivial, as comptime members say")
def test_copies_are_trivial():
    t = matrix()
    u = copy.copy(t)
    u[0, 0] = 5.0
    assert t[0, 0] == 5.0
    assert isinstance(t, RegisterPassable)
    for name in ("__copy_ctor_is_trivial", "__del__is_trivial", "__move_ctor_is_trivial"):
        kind = TileTensor[DType.float32, Layout, MutAnyOrigin]
        assert all(getattr(owner, name) is True for owner in (TileTensor, t, kind, type_of(t), t.layout, t.LayoutType))


@shows(
    "J2",
    "4",
    "TileTensor[dtype, LayoutType, origin] is a type, with an address space, an index type and an element size",
)
@shows("J3", "4", "the parameters after `*` are keywords: by the stated rule they go to the parentheses")
def test_the_type_with_its_parameters():
    kind = TileTensor[DType.float32, RowMajorLayout, MutAnyOrigin]
    t = kind(
        np.zeros(48, np.float32),
        row_major[6, 8](),
        address_space=AddressSpace.SHARED,
        linear_idx_type=DType.int64,
        element_size=1,
    )
    assert type(t) is TileTensor
    pairs = kind(np.arange(48, dtype=np.float32), row_major[6, 7](), element_size=2)
    assert (pairs.element_size, pairs[1, 1].tolist()) == (2, [8.0, 9.0])
    assert isinstance(pairs, TileTensor[DType.float32, RowMajorLayout, MutAnyOrigin, None, None, 2])
    in_brackets = mojo.run(
        "from layout import TileTensor, RowMajorLayout\nfrom layout.tile_layout import row_major\n"
        "var storage = InlineArray[Float32, 48](fill=1)\n"
        "var t = TileTensor[DType.float32, RowMajorLayout[6, 4], MutAnyOrigin, address_space=AddressSpace.SHARED,"
        " linear_idx_type=DType.int64, element_size=2](Span(storage), row_major[6, 4]())\n"
    ).t
    assert (in_brackets.element_size, in_brackets.address_space) == (2, AddressSpace.SHARED)
    assert in_brackets.linear_idx_type == DType.int64
    assert isinstance(t, kind)
    assert (t.dtype, t.address_space, t.linear_idx_type, t.element_size, t.mut) == (
        DType.float32,
        AddressSpace.SHARED,
        DType.int64,
        1,
        True,
    )
    assert not isinstance(t, TileTensor[DType.float32, Layout, ImmutAnyOrigin])
    assert not isinstance(TileTensor(np.zeros(48, np.float32), col_major[6, 8]()), kind)
    assert not TileTensor[DType.float32, Layout, ImmutAnyOrigin](np.zeros(4, np.float32), row_major[2, 2]()).mut


@shows("J146", "4", "the parameters in brackets are the storage's and the layout's")
def test_parameters_are_checked():
    zeros = np.zeros(4, np.float32)
    with pytest.raises(tw.FormatError, match=r"TileTensor\[DType\.int8, Layout, _\] cannot be a view of float32"):
        TileTensor[DType.int8, Layout](zeros, row_major[2, 2]())
    with pytest.raises(tw.LayoutError, match=r"cannot have the layout Layout\(\(2, 2\), \(1, 2\)\)"):
        TileTensor[DType.float32, RowMajorLayout](zeros, col_major[2, 2]())
    with pytest.raises(tw.LayoutError, match=r"cannot have the layout Layout\(\(2, 2\), \(2, 1\)\)"):
        TileTensor[DType.float32, RowMajorLayout[4, 1]](zeros, row_major[2, 2]())
    zeros.flags.writeable = False
    with pytest.raises(tw.LayoutError, match="is mutable, but the storage is read-only"):
        TileTensor[DType.float32, Layout, MutAnyOrigin](zeros, row_major[2, 2]())


@shows("J4", "5", "layouts may be nested, and are indexed by all their leaves")
@shows("J35", "90-93", "flat_rank counts the leaves of a nested layout")
@shows("J36", "93", "flat_rank is greater than rank for the layout of a blocked product, else equal")
@shows("J66", "240", "an element of a nested layout takes flat_rank indices")
def test_nested_layouts_by_leaves():
    b = blocked()
    assert (b.rank, b.flat_rank) == (2, 4)
    assert b[1, 0, 0, 2] == b.layout(1, 0, 0, 2) == 10
    assert (matrix().rank, matrix().flat_rank) == (2, 2)


@shows("J5", "5", "indexing is hierarchical: one tuple for each mode")
@shows("J6", "5", "a nested mode also takes one index, first leaf fastest")
def test_nested_layouts_by_modes():
    b = blocked()
    assert b[(1, 0), (0, 2)] == 10
    assert b[1, 2] == b[(1, 0), (0, 1)] == 6


@shows("J7", "8-9", "any type that implements TensorLayout can be the layout")
def test_any_tensor_layout():
    class Diagonal:
        rank = flat_rank = 2
        shape_known = stride_known = all_dims_known = True
        static_shape, static_stride = (4, 4), (1, 1)
        size, cosize = 16, 7

        def shape_coord(self):
            return (4, 4)

        def stride_coord(self):
            return (1, 1)

        def __call__(self, i, j):
            return i + j

    assert isinstance(Diagonal(), TensorLayout)
    assert TileTensor(np.arange(7), Diagonal())[2, 3] == 5


@shows(
    "J8",
    "13",
    "LayoutTensor has copy_dma and collective_load",
    differs="no release of Mojo has them; the copies of `layout.layout_tensor` are there, and `copy_from`",
)
@shows("J148", "13", "LayoutTensor has established operations: copies between memories, tiles, vectors, threads")
def test_layout_tensor_has_the_established_operations():
    for name in ("copy_dma", "collective_load"):
        assert not hasattr(LayoutTensor, name)
    for name in ("copy_from", "tile", "vectorize", "distribute"):
        assert hasattr(LayoutTensor, name)
    with mojo.imports():
        from layout.layout_tensor import copy_dram_to_local, copy_dram_to_sram, copy_local_to_dram, copy_sram_to_dram
    source = matrix().to_layout_tensor()
    for move in (copy_dram_to_sram, copy_sram_to_dram, copy_dram_to_local, copy_local_to_dram):
        target = TileTensor(np.zeros(48, np.float32), col_major[6, 8]()).to_layout_tensor()
        assert move(target, source).equals(source)


@shows("J9", "14", "to_layout_tensor() leads to the older type")
def test_both_types_interoperate():
    t = matrix()
    old = t.to_layout_tensor()
    assert type(old) is LayoutTensor
    old[1, 2] = -1.0
    assert t[1, 2] == -1.0


@shows(
    "J10",
    "16-18",
    "`from layout import TileTensor`, `from layout.tile_layout import row_major`, inside imports() or after install()",
)
@shows("J56", "179", "`from std.gpu.host import DeviceContext, DeviceBuffer`, likewise")
def test_imports_as_mojo_spells_them():
    names = ["layout", "layout.tile_layout", "std", "std.gpu.host"]
    with mojo.imports():
        from layout import Idx, TileTensor
        from layout.tile_layout import row_major
        from std.gpu.host import DeviceBuffer, DeviceContext, HostBuffer
        from std.memory import AddressSpace, UnsafePointer  # noqa: F401
    assert TileTensor is mojo.layout.TileTensor
    assert row_major[4, 4]() == row_major(Idx[4](), Idx[4]())
    assert isinstance(DeviceContext().enqueue_create_buffer[DType.int8](1), DeviceBuffer)
    assert isinstance(DeviceContext().enqueue_create_host_buffer[DType.int8](1), HostBuffer)
    assert not [name for name in names if name in sys.modules]
    mojo.install()
    try:
        import layout.tile_layout

        assert layout.tile_layout.row_major is mojo.layout.row_major
    finally:
        mojo.uninstall()
    with pytest.raises(ModuleNotFoundError, match="No module named 'layout'"):
        from layout import LayoutTensor  # noqa: F401


@shows("J11", "16-18", "the same modules are part of the dialect")
def test_imports_with_the_prefix():
    from tilewright.mojo.layout import Idx as SameIdx
    from tilewright.mojo.layout import TileTensor as SameTensor
    from tilewright.mojo.layout.tile_layout import row_major as same_row_major

    assert (SameIdx, SameTensor, same_row_major) == (Idx, TileTensor, row_major)


@shows("J12", "19-28", "the opening example: storage, fill, two elements, a tile, and vectors of shape 4 x 1")
@shows("J13", "19-28", "its variables, declared with `var`, which the stated rule removes")
def test_the_opening_example():
    storage = InlineArray[Float32, 16](uninitialized=True)
    tensor = TileTensor(storage, row_major[4, 4]()).fill(0.0)
    tensor[0, 0] = 1.0
    tensor[1, 2] = 2.0
    tile = tensor.tile[2, 2](1, 0)
    vec = tensor.vectorize[1, 4]()
    assert (storage[0], storage[6]) == (1.0, 2.0)
    assert (tile.shape, tile.offset, tile.to_numpy().tolist()) == ((2, 2), 8, [[0.0, 0.0], [0.0, 0.0]])
    assert (vec.shape, vec.element_size, vec.element_layout.shape) == ((4, 1), 4, (1, 4))
    assert vec[1, 0].tolist() == [0.0, 0.0, 2.0, 0.0]


@shows("J14", "29-30", "mut is the mutability of the pointer, inferred")
def test_mutability_is_inferred():
    fixed = np.arange(4.0)
    fixed.flags.writeable = False
    assert (TileTensor(fixed, row_major[2, 2]()).mut, matrix().mut) == (False, True)


@shows("J15", "30-31", "dtype is the type of the elements, such as DType.float32")
@shows("J16", "31-32", "LayoutType is the type of the layout, such as Layout")
@shows("J17", "31-32", "or such as RowMajorLayout")
@shows("J23", "39-40", "the field layout maps coordinates to offsets")
def test_dtype_and_layout():
    t = matrix()
    assert t.dtype == DType.float32
    assert isinstance(t.layout, TileLayout)
    assert t.layout == Layout((6, 8), (8, 1))
    assert t.layout(2, 3) == 19
    assert isinstance(t.layout, RowMajorLayout)
    assert not isinstance(col_major[6, 8](), RowMajorLayout)
    assert RowMajorLayout[6, 8] == t.layout


@shows("J18", "32-33", "origin tracks the lifetime of what the pointer points to")
def test_origin():
    storage = np.zeros(4)
    references = sys.getrefcount(storage)
    t = TileTensor(storage, row_major[2, 2]())
    assert isinstance(t.origin, Origin)
    assert t.origin.mut
    assert t.origin.owner is storage
    assert sys.getrefcount(storage) > references
    assert t.tile[1, 1](0, 0).origin.owner is storage


@shows("J19", "33-34", "address_space is GENERIC, SHARED, CONSTANT and others; GENERIC by default")
def test_address_spaces():
    assert matrix().address_space is AddressSpace.GENERIC
    assert {"GENERIC", "SHARED", "CONSTANT"} < {space.name for space in AddressSpace}
    shared = TileTensor(np.zeros(4), row_major[2, 2](), address_space=AddressSpace.SHARED)
    assert shared.address_space is AddressSpace.SHARED


@shows(
    "J20",
    "34-35",
    "linear_idx_type is int32 in shared and constant memory, int64 elsewhere",
    differs="int32 also for a static layout of less than 2^31 scalars, as in Mojo 26.2 and later",
)
@shows(
    "J153",
    "341-668",
    "every view has the linear_idx_type of its tensor",
    differs="Mojo 26.2 and 26.7 keep it in vectorize and in casts and derive it from the layout in other views, and so"
    " does tilewright; the derived types agree with the views",
)
def test_linear_index_type():
    assert run_time_matrix().linear_idx_type == DType.int64
    for space in (AddressSpace.SHARED, AddressSpace.CONSTANT):
        assert TileTensor(np.zeros(48), row_major(6, 8), address_space=space).linear_idx_type == DType.int32
    assert matrix().linear_idx_type == DType.int32
    wide = TileTensor(np.zeros(48), row_major[6, 8](), linear_idx_type=DType.int64)
    kept = (
        wide.vectorize[1, 4](),
        wide.as_immut(),
        wide.as_any_origin(),
        wide.address_space_cast[AddressSpace.SHARED](),
    )
    assert {view.linear_idx_type for view in kept} == {DType.int64}
    derived = (wide.tile[2, 4](0, 0), wide.reshape[48](), wide.coalesce(), wide.distribute[row_major[2, 2]()](0))
    assert {view.linear_idx_type for view in derived} == {DType.int32}
    types = (wide.VectorizedType[1, 4], wide.ReshapedType[48], wide.CoalescedType, wide.DynamicType[DType.int64])
    views = (wide.vectorize[1, 4](), wide.reshape[48](), wide.coalesce(), wide.make_dynamic[DType.int64]())
    assert types == tuple(map(type_of, views))
    assert wide.make_dynamic[DType.int64]().linear_idx_type == DType.int64 == wide.slice((0, 2), (0, 2)).linear_idx_type


@shows("J21", "35-36", "element_size counts the scalars of an element: 1, more after vectorize")
def test_element_size():
    assert matrix().element_size == 1
    assert matrix().vectorize[2, 4]().element_size == 8


@shows("J22", "38-39", "the field ptr is an UnsafePointer to the first scalar")
def test_pointer():
    t = matrix().tile[2, 4](1, 1)
    assert isinstance(t.ptr, UnsafePointer[Scalar[DType.float32], t.origin])
    assert (t.ptr.offset, t.ptr[0], t.ptr[3]) == (20, 20.0, 23.0)


@shows("J24", "41-50", "the nine traits that a TileTensor implements")
def test_traits():
    traits = (
        *(AnyType, Copyable, DevicePassable, ImplicitlyCopyable, ImplicitlyDestructible, Movable, RegisterPassable),
        *(TrivialRegisterPassable, Writable),
    )
    assert len(traits) == 9
    for trait in traits:
        assert isinstance(matrix(), trait), trait
        assert isinstance(trait, type)
    for trait in (Copyable, DevicePassable, Movable, Writable):
        assert not isinstance(3, trait), trait


# Comptime members.


@shows("J26", "58-63", "AddressSpaceCastType[space] is the type after address_space_cast")
@shows("J37", "94-97", "GenericType is the type in the address space GENERIC")
@shows("J141", "684-691", "address_space_cast[space]() is the same view in another address space")
def test_address_space_types():
    t = matrix()
    shared = t.address_space_cast[AddressSpace.SHARED]()
    assert shared.address_space is AddressSpace.SHARED
    assert shared[5, 7] == 47.0
    assert isinstance(shared, t.AddressSpaceCastType[AddressSpace.SHARED])
    assert isinstance(shared, TileTensor.AddressSpaceCastType[AddressSpace.SHARED])
    assert not isinstance(t, t.AddressSpaceCastType[AddressSpace.SHARED])
    assert isinstance(t, t.GenericType)
    assert isinstance(t, shared.GenericType)
    assert not isinstance(shared, shared.GenericType)


@shows("J27", "64-67", "all_dims_known: extents and strides are known at compile time")
@shows("J42", "114-116", "shape_known: the extents are")
@shows("J46", "132-134", "stride_known: the strides are")
@shows("J44", "120-125", "static_shape[i] is an extent, or -1 if it is known only at run time")
@shows("J45", "126-131", "static_stride[i] is a stride, or -1 likewise")
def test_what_is_known_at_compile_time():
    t, dynamic = matrix(), run_time_matrix()
    assert (t.all_dims_known, t.shape_known, t.stride_known) == (True, True, True)
    assert (t.static_shape[1], t.static_stride[0]) == (8, 8)
    assert (dynamic.all_dims_known, dynamic.shape_known, dynamic.stride_known) == (False, False, False)
    assert (dynamic.static_shape[1], dynamic.static_stride[0]) == (-1, -1)
    mixed = TileTensor(np.zeros(48), row_major(Idx(6), Idx[8]()))
    assert (mixed.shape_known, mixed.stride_known, mixed.static_shape) == (False, True, (-1, 8))


@shows(
    "J28",
    "64-67",
    "vectorize needs extents and strides that are known at compile time",
    differs="Mojo 26.7 takes others, and so does tilewright; the result is known only at run time, too",
)
@shows(
    "J29",
    "64-67",
    "so does distribute",
    differs="Mojo 26.7 takes others, and so does tilewright; the result is known only at run time, too",
)
def test_vectors_and_threads_of_dynamic_layouts():
    vectors = run_time_matrix().vectorize[1, 4]()
    assert (vectors.shape, vectors.strides, vectors.all_dims_known) == ((6, 2), (8, 4), False)
    part = run_time_matrix().distribute[row_major[2, 4]()](0)
    assert (part.shape, part.strides, part.all_dims_known) == ((3, 2), (16, 4), False)


@shows("J30", "68-75", "CoalescedType has one dimension of all elements, with stride 1")
@shows("J133", "629-646", "coalesce() of a 4 x 4 tensor has rank 1 and 16 elements")
def test_coalesced_type():
    t = matrix(4, 4)
    flat = t.coalesce()
    assert flat.layout == Layout((16,), (1,)) == t.CoalescedType.layout
    assert flat.to_numpy().tolist() == list(range(16))
    assert isinstance(flat, t.CoalescedType)
    assert not isinstance(t, t.CoalescedType)


@shows("J31", "76-78", "device_type is the type that a kernel takes: the same")
def test_device_type():
    t = matrix()
    assert isinstance(t, t.device_type)
    assert t.device_type.dtype == DType.float32
    assert not isinstance(matrix(dtype=np.int32), t.device_type)


@shows("J32", "79-84", "DynamicType[dtype] is the type after make_dynamic")
@shows("J137", "647-661", "make_dynamic[DType.int64]() makes every extent and stride a run-time integer")
def test_dynamic_type():
    storage = InlineArray[Float32, 12](uninitialized=True)
    tensor = TileTensor(Span(storage), row_major[3, 4]())
    dynamic = tensor.make_dynamic[DType.int64]()
    assert (dynamic.shape_known, dynamic.stride_known) == (False, False)
    assert (dynamic.shape, dynamic.strides) == ((3, 4), (4, 1))
    assert isinstance(dynamic, tensor.DynamicType[DType.int64])
    assert not isinstance(tensor, tensor.DynamicType[DType.int64])
    assert tensor.DynamicType[DType.int64].all_dims_known is False
    assert [n.DTYPE for n in dynamic.layout.shape_coord()] == [n.DTYPE for n in dynamic.layout.stride_coord()]
    assert all(isinstance(n, RuntimeInt[DType.int64]) for n in dynamic.layout.shape_coord())
    other = tensor.make_dynamic[DType.int32]()
    assert all(type(n) is RuntimeInt[DType.int32] for n in other.layout.stride_coord())
    assert not isinstance(other, tensor.DynamicType[DType.int64])
    assert isinstance(other, type_of(tensor).DynamicType[DType.int32])


@shows("J33", "85-89", "ElementType is SIMD[dtype, element_size]: a scalar, or a vector")
@shows("J34", "85-89", "SIMD[dtype, size] is a vector of numbers")
def test_element_type():
    t = matrix()
    assert t.ElementType == SIMD[DType.float32, 1] == Scalar[DType.float32]
    assert isinstance(t[1, 2], t.ElementType)
    vectors = t.vectorize[1, 4]()
    assert vectors.ElementType == SIMD[DType.float32, 4]
    assert isinstance(vectors[1, 0], SIMD[DType.float32, 4])
    assert isinstance(t.load[4](Coord(1, 2)), SIMD[DType.float32, 4])
    v = SIMD[DType.float32, 4](1, 2, 3, 4)
    assert (repr(v), str(v * 2), len(v)) == ("SIMD[DType.float32, 4](1.0, 2.0, 3.0, 4.0)", "[2.0, 4.0, 6.0, 8.0]", 4)
    vectors[1, 0] = v
    assert t[1, 3] == 4.0
    assert (SIMD[DType.uint8, 2](255) + np.uint8(1)).tolist() == [0, 0]  # integers wrap around, as in Mojo


@shows("J38", "98-100", "is_row_major: contiguous, last index fastest")
@shows("J40", "105-107", "rank is the number of dimensions")
def test_row_major_and_rank():
    assert (matrix().is_row_major, matrix().rank) == (True, 2)
    assert not TileTensor(np.zeros(48), col_major[6, 8]()).is_row_major
    assert TileTensor(np.zeros(24), row_major[2, 3, 4]()).rank == 3
    assert TileTensor[DType.float32, row_major[6, 8](), MutAnyOrigin].is_row_major
    assert not TileTensor[DType.float32, col_major[6, 8](), MutAnyOrigin].is_row_major
    assert (type_of(matrix()).is_row_major, type_of(matrix()).rank) == (True, 2)


@shows("J39", "101-104", "OriginCastType[origin] is the type with another origin")
@shows("J140", "679-683", "as_immut() is the same view, which cannot be written")
def test_origin_types():
    t = matrix()
    fixed = t.as_immut()
    assert not fixed.mut
    assert fixed[1, 2] == 10.0
    with pytest.raises(tw.LayoutError, match="read-only"):
        fixed[1, 2] = 0.0
    assert isinstance(fixed, t.OriginCastType[ImmutAnyOrigin])
    assert not isinstance(t, t.OriginCastType[ImmutAnyOrigin])
    assert isinstance(t, fixed.OriginCastType[MutAnyOrigin])


@shows("J41", "108-113", "ReshapedType[shape types] is the type after reshape")
@shows("J48", "141-147", "ViewType[layout] names the type of a view with another layout")
def test_types_of_other_shapes():
    t = matrix()
    assert isinstance(t.reshape[4, 12](), t.ReshapedType[4, 12])
    assert isinstance(t.reshape(Coord(Idx(4), Idx(12))), t.ReshapedType[Idx(4), Idx(12)])
    assert not isinstance(t.reshape[12, 4](), t.ReshapedType[4, 12])

    def transposed(tensor: t.ViewType[Layout]) -> t.ViewType[col_major[8, 6]()]:
        return tensor.transpose()

    assert isinstance(transposed(t), transposed.__annotations__["return"])
    assert not isinstance(t, t.ViewType[col_major[8, 6]()])
    assert t.ViewType[col_major[8, 6]()].dtype == DType.float32
    assert type_of(t.reshape[4, 12]()) == t.ReshapedType[4, 12]  # to the type of its indices
    assert type_of(t.vectorize[1, 4]()) == t.VectorizedType[1, 4]
    assert type_of(t.coalesce()) == t.CoalescedType
    assert type_of(t.make_dynamic[DType.int64]()) == t.DynamicType[DType.int64]


@shows("J43", "117-119", "SIMDVectorizedType is the type after vectorize(), along the last dimension")
@shows("J132", "623-628", "vectorize() makes vectors of the SIMD width along the last dimension")
@shows("J147", "118-119", "simd_width_of[dtype]() is the number of scalars of a vector register")
def test_vectors_of_the_simd_width():
    t = matrix(4, 32)
    width = simd_width_of[DType.float32]()
    assert width * 4 == simd_width_of[DType.int8]() == 64
    vectors = t.vectorize()
    assert (vectors.shape, vectors.element_size, vectors.strides) == ((4, 32 // width), width, (32, width))
    assert isinstance(vectors, t.SIMDVectorizedType)
    assert isinstance(vectors, t.VectorizedType[1, width])


@shows("J47", "135-140", "VectorizedType[*shape] is the type after vectorize")
@shows("J129", "598-622", "vectorize[4, 4] of 16 x 16 elements has 4 x 4 elements, each the block that starts there")
@shows("J130", "606-608", "its strides are scaled by the vector shape")
@shows("J131", "598", "extents that do not divide are rounded up")
def test_vectorize():
    t = matrix(16, 16)
    v = t.vectorize[4, 4]()
    assert (v.shape, v.element_size, v.layout) == ((4, 4), 16, Layout((4, 4), (64, 4)))
    assert v[1, 2].tolist() == t.to_numpy()[4:8, 8:12].reshape(-1).tolist()
    assert isinstance(v, t.VectorizedType[4, 4])
    assert (t.VectorizedType[4, 4].layout, t.VectorizedType[4, 4].element_size) == (v.layout, 16)
    assert matrix(6, 10).vectorize[1, 4]().shape == (6, 3)


# Constructors.


@shows("J49", "150-156", "a tensor from a Span and a layout")
@shows("J50", "150", "the Span of a List")
@shows("J51", "150", "a List itself")
def test_constructors_from_spans_and_lists():
    assert TileTensor(Span(InlineArray[Float32, 12](fill=2)), row_major[3, 4]())[2, 3] == 2.0
    for storage in (Span(List[Float32](1, 2, 3, 4)), List[Float32](1, 2, 3, 4)):
        assert TileTensor(storage, row_major[2, 2]()).to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


@shows("J52", "157-168", "a tensor from an NDBuffer, which keeps its shape")
@shows("J53", "160-163", "its static dimensions become compile-time integers, the others run-time integers")
@shows("J54", "162-164", "its strides are row-major, known as far as the extents they are products of")
def test_constructor_from_a_buffer():
    storage = np.arange(12, dtype=np.float32)
    t = TileTensor(NDBuffer[DType.float32, 2, MutAnyOrigin, DimList(3, Dim())](storage, (3, 4)))
    assert (t.shape, t.strides, t[2, 3]) == ((3, 4), (4, 1), 11.0)
    assert (t.static_shape, t.static_stride) == ((3, -1), (-1, 1))
    assert TileTensor(NDBuffer[DType.float32, 2, MutAnyOrigin, DimList(3, 4)](storage)).all_dims_known
    assert TileTensor(NDBuffer[DType.float32, 2](storage, (3, 4))).static_shape == (-1, -1)
    pointer = List[Float32](*map(float, storage)).unsafe_ptr()  # as Mojo's buffers are made
    assert TileTensor(buffer=NDBuffer[DType.float32, 2, MutAnyOrigin, DimList(3, 4)](pointer))[2, 3] == 11.0
    with pytest.raises(tw.TilewrightError, match="exceeds"):
        NDBuffer[DType.float32, 2](pointer, (4, 4))
    assert row_major(Idx(3), Idx[4]()).static_stride == (4, 1)
    with pytest.raises(tw.LayoutError, match="says 3 at compile time, but 4 at run time"):
        NDBuffer[DType.float32, 2, MutAnyOrigin, DimList(3, Dim())](storage, (4, 3))


def device_example(ctx, dtype=DType.float32):
    """Return (tensor, device buffer) of the example of the page, on a device with 16 numbers."""
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
    return tensor, dev_buf


@shows("J55", "169-199", "the DeviceBuffer example")
@shows("J58", "175-176", "its data cannot be accessed on the CPU")
@shows("J142", "692-698", "to_device_buffer(ctx) is the data as a buffer of the device")
@shows("J144", "178-199", "the buffers and copies of a context complete the round trip")
def test_device_buffer():
    ctx = DeviceContext()
    tensor, dev_buf = device_example(ctx)
    assert (tensor.shape, tensor.all_dims_known, tensor.dtype) == ((4, 4), True, DType.float32)
    for access in (lambda: tensor[0, 0], lambda: tensor.fill(0.0), lambda: dev_buf[0], lambda: print(tensor)):
        with pytest.raises(tw.LayoutError, match="device memory cannot be reached from the host"):
            access()
    back = ctx.enqueue_create_host_buffer[DType.float32](16)
    ctx.enqueue_copy(back, tensor.to_device_buffer(ctx))
    assert [back[i] for i in range(16)] == list(range(16))
    assert len(matrix().to_device_buffer(ctx)) == 48


@shows(
    "J57",
    "170",
    "the layout over a DeviceBuffer or HostBuffer must be known at compile time",
    differs="no release of Mojo demands it (the signature does not, 26.7 compiles it), and tilewright does not",
)
def test_buffers_under_dynamic_layouts():
    ctx = DeviceContext()
    for buffer in (ctx.enqueue_create_buffer[DType.int8](16), ctx.enqueue_create_host_buffer[DType.int8](16)):
        assert TileTensor(buffer, row_major(4, 4)).shape == (4, 4)


@shows("J59", "171-176", "a tensor over a DeviceBuffer is accessed on the device: by kernels, and by copies")
def test_access_on_the_device():
    ctx = DeviceContext()
    tensor, _ = device_example(ctx)
    turned = TileTensor(ctx.enqueue_create_buffer[DType.float32](16), col_major[4, 4]())

    def kernel(source, target):
        row, column = thread_idx.x, block_idx.x
        target[row, column] = 2 * source[row, column]

    ctx.enqueue_function[kernel](tensor, turned, grid_dim=4, block_dim=4)
    back = ctx.enqueue_create_host_buffer[DType.float32](16)
    ctx.enqueue_copy(back, turned.reshape(row_major[16]()).to_device_buffer(ctx))
    rows = np.arange(16).reshape(4, 4)
    assert [back[i] for i in range(16)] == (2 * rows).reshape(-1, order="F").tolist()
    turned.tile[2, 4](0, 0).copy_from(tensor.tile[2, 4](1, 0))
    ctx.enqueue_copy(back, turned.reshape(row_major[16]()).to_device_buffer(ctx))
    assert [back[i] for i in range(2)] == [8.0, 12.0]
    with pytest.raises(tw.LayoutError, match="device memory cannot be reached from the host"):
        tensor[0, 0]


@shows(
    "J60",
    "204-217",
    "the HostBuffer example: a 4 x 4 layout over 8 scalars",
    differs="it needs 16 scalars and is refused; Mojo would read beyond the buffer",
)
@shows("J61", "206", "a tensor over a HostBuffer is accessed on the CPU")
def test_host_buffer():
    dtype = DType.float32
    ctx = DeviceContext()
    host_buf = ctx.enqueue_create_host_buffer[dtype](8)
    with pytest.raises(tw.LayoutError, match=r"but the storage has 8.*; it needs 16"):
        TileTensor(
            host_buf,
            row_major((Idx[4](), Idx[4]())),
        )
    host_buf = ctx.enqueue_create_host_buffer[dtype](16)
    tensor = TileTensor(
        host_buf,
        row_major((Idx[4](), Idx[4]())),
    )
    tensor[3, 3] = 7.0
    assert host_buf[15] == 7.0


@shows("J62", "222-228", "a mutable tensor is taken as an immutable one")
@shows("J63", "222-228", "which cannot be written")
def test_cast_to_immutable():
    tensor = matrix()
    fixed = TileTensor(tensor)
    assert (tensor.mut, fixed.mut) == (True, False)
    tensor[1, 2] = -1.0
    assert fixed[1, 2] == -1.0
    with pytest.raises(tw.LayoutError, match="this tensor is read-only"):
        fixed[0, 0] = 1.0


@pytest.mark.parametrize("kind", ["DType.float32, _, ImmutAnyOrigin", "mut=False, DType.float32, ..."])
@pytest.mark.parametrize("use", ["read(tensor)", "var t: TileTensor[KIND] = tensor\n    t[0, 0] = 2"])
def test_a_source_casts_to_the_immutable_type_that_it_declares(kind, use, capsys):
    source = """
from layout import TileTensor
from layout.tile_layout import row_major
def read(t: TileTensor[KIND]):
    print(t.mut, t[0, 0])
    t[0, 0] = 2
def main():
    var storage = InlineArray[Float32, 4](fill=1)
    var tensor = TileTensor(storage, row_major[2, 2]())
    print(tensor.mut)
    USE
"""
    with pytest.raises(tw.TilewrightError, match="this tensor is read-only"):
        mojo.run(source.replace("USE", use).replace("KIND", kind))
    assert capsys.readouterr().out == "True\n" + ("False 1.0\n" if use.startswith("read") else "")


# Elements.


@shows("J64", "230-237", "an element by a Coord of flat_rank integers")
@shows("J65", "238-246", "an element by indices: tensor[i, j, k]")
def test_read_elements():
    assert blocked()[Coord(1, 0, 0, 2)] == 10
    assert TileTensor(np.arange(24), row_major[2, 3, 4]())[1, 2, 3] == 23
    assert TileTensor(np.arange(4), row_major[4]())[3] == 3


@pytest.mark.parametrize("make", [matrix, run_time_matrix, blocked, matrix().vectorize[1, 4]])
@pytest.mark.parametrize("index", [1, Coord(1), Idx[1](), UInt(1), 99], ids=repr)
def test_one_index_is_for_load_only(make, index):
    """The page demands flat_rank indices of everything else, `where` its signatures say so."""
    t = make()
    before = t.to_numpy().copy()
    for access in (
        lambda: t[index],
        lambda: t.__setitem__(index, 5),
        lambda: t.store(index, 5),
        lambda: t.store[2](index, 5),
        lambda: t.ptr_at_offset(index),
        lambda: t.prefetch(index),
        lambda: t.load_linear(index),
        lambda: t.store_linear(index, 5),
        lambda: t.to_layout_tensor()[index],
    ):
        with pytest.raises(IndexError, match=r"^one index, .*, does not address an element of a tensor of shape"):
            access()
    assert (t.to_numpy() == before).all()
    assert index == 99 or t.load(index).tolist() == t.load(Coord(1, *[0] * (t.rank - 1))).tolist()


@shows("J67", "248-251", "an element is set by a Coord")
@shows("J68", "252-259", "an element is set by indices, of nested layouts by all of them")
@shows("J69", "252", "the value is SIMD[dtype, element_size]")
@shows("J70", "252", "one number sets all scalars of a vector element")
def test_write_elements():
    t, b = matrix(), blocked()
    t[Coord(1, 2)] = 5.0
    b[1, 0, 0, 2] = -1
    assert (t[1, 2], b[1, 0, 0, 2]) == (5.0, -1)
    t.__setitem__(coord=Coord(1, 2), value=6.0)
    b.__setitem__(1, 0, 0, 2, value=-2)
    assert (t.__getitem__(coord=Coord(1, 2)), b.__getitem__(1, 0, 0, 2)) == (6.0, -2)
    for index in ((1,), (1, 2, 3)):
        with pytest.raises(IndexError):
            t[index] = 0.0
    v = matrix().vectorize[1, 4]()
    v[1, 0] = SIMD[DType.float32, 4](1, 2, 3, 4)
    v[1, 1] = 9.0
    assert (v[1, 0].tolist(), v[1, 1].tolist()) == ([1.0, 2.0, 3.0, 4.0], [9.0] * 4)


@shows("J71", "260-264", "get_type_name() names the type")
def test_type_name():
    assert TileTensor.get_type_name() == "TileTensor"
    assert matrix().get_type_name() == (
        "TileTensor[mut=True, dtype=float32, Engine=DefaultEngine[element_size=1],"
        " address_space=AddressSpace.GENERIC, linear_idx_type=int32]"
    )
    for t in (matrix(), matrix().vectorize[1, 4](), matrix().as_immut(), run_time_matrix()):
        assert type_of(t).get_type_name() == t.get_type_name()  # static: of the type as of its tensors


@shows("J72", "266-278", "load[width](coord) reads width scalars")
@shows("J73", "266", "the default width is the element size")
@shows(
    "J74", "266", "load takes width, alignment and invariant: in brackets in order, by the stated rule in parentheses"
)
@shows("J75", "266", "the alignment may follow the width")
def test_load():
    t = TileTensor(InlineArray[Float32, 48](*range(48)), row_major[6, 8]())
    assert t.load[4](Coord(1, 2)).tolist() == [10.0, 11.0, 12.0, 13.0]
    assert t.load(Coord(1, 2)) == 10.0
    assert t.vectorize[1, 4]().load(Coord(1, 1)).tolist() == [12.0, 13.0, 14.0, 15.0]
    wanted = [12.0, 13.0, 14.0, 15.0]
    assert t.load(Coord(1, 4), width=4, alignment=16, invariant=True).tolist() == wanted
    assert t.load[4, 16, True](Coord(1, 4)).tolist() == wanted
    assert t.load[4, 16](Coord(1, 4)).tolist() == wanted


@shows("J76", "271", "a load is aligned as its address is; another address is refused")
@shows("J82", "266", "a load stays inside the storage, or is refused")
def test_loads_that_cannot_be():
    t = TileTensor(InlineArray[Float32, 48](*range(48)), row_major[6, 8]())
    with pytest.raises(tw.LayoutError, match=r"scalar 9 is at address .*, which is not a multiple of 16"):
        t.load[4, 16](Coord(1, 1))
    with pytest.raises(IndexError, match="scalars 46 to 49 exceed the storage of 48; use a smaller width"):
        t.load[4](Coord(5, 6))


@shows("J77", "268", "load takes hierarchical indices, one for each mode, and flat ones, one for each leaf")
@shows("J78", "268", "load takes one linear index, first mode fastest")
def test_load_of_nested_layouts():
    b = blocked()
    assert b.load[1](Coord(1, 0, 0, 2)).tolist() == b.load[1](Coord((1, 0), (0, 2))).tolist() == [10]
    assert matrix().load[2](Coord(5)).tolist() == [40.0, 41.0]


@shows("J79", "280-287", "store[width](coord, value) writes width scalars")
@shows("J80", "280", "the default width is the element size")
@shows("J81", "280", "the alignment may follow the width")
def test_store():
    t = TileTensor(InlineArray[Float32, 48](*range(48)), row_major[6, 8]())
    t.store[4](Coord(0, 0), SIMD[DType.float32, 4](9, 8, 7, 6))
    t.store(Coord(0, 5), 1.5)
    t.store[2, 8](Coord(0, 6), [2, 3])
    assert t.to_numpy()[0].tolist() == [9.0, 8.0, 7.0, 6.0, 4.0, 1.5, 2.0, 3.0]


@shows("J83", "289-295", "ptr_at_offset(coords) points at an element")
@shows("J84", "297-311", "prefetch(coords) is a hint, and changes nothing")
@shows("J85", "313-317", "numel() is the product of the extents")
def test_pointers_and_counts():
    t = matrix()
    assert (t.ptr_at_offset(Coord(1, 2)).offset, t.ptr_at_offset(Coord(1, 2))[0]) == (10, 10.0)
    assert isinstance(t.ptr_at_offset(Coord(1, 2)), UnsafePointer)
    assert t.prefetch(Coord(1, 2)) is None
    assert t.to_numpy().tolist() == matrix().to_numpy().tolist()
    assert (t.numel(), t.vectorize[1, 4]().numel()) == (48, 12)


# Text.


@shows("J86", "319-336", "write_to(writer) writes the elements; two dimensions as a grid")
@shows("J87", "322-330", "its example prints two rows of 1.0")
@shows("J145", "325", "`def main() raises:` of two examples; the stated rule removes `raises`")
def test_write_to(capsys):
    def main():
        storage = InlineArray[Float32, 2 * 3](uninitialized=True)
        tensor = TileTensor(storage, row_major[2, 3]()).fill(1.0)
        print(tensor)  # Internally calls `write_to` with a StringWriter
        return tensor

    tensor = main()
    text = "[[1.0, 1.0, 1.0],\n[1.0, 1.0, 1.0]]"
    assert capsys.readouterr().out == f"{text}\n"
    for same in (tensor, tensor.make_dynamic[DType.int64](), tensor.slice((0, 2), (0, 3))):
        writer = io.StringIO()
        same.write_to(w=writer)
        assert writer.getvalue() == str(same) == text


@pytest.mark.parametrize("layout", ["row_major[2, 3]()", "row_major(2, 3)", "row_major(2, Idx[3]())"])
def test_print_and_write_to_agree_in_mojo(layout, capsys):
    """In Mojo source too, with extents of compile time or run time, and with `raises` as the page prints it."""
    mojo.run(
        "from layout import Idx, TileTensor\nfrom layout.tile_layout import row_major\n"
        "def main() raises:\n"
        "    var storage = InlineArray[Float32, 2 * 3](uninitialized=True)\n"
        f"    var tensor = TileTensor(storage, {layout}).fill(1.0)\n"
        "    print(tensor) # Internally calls `write_to` with a StringWriter\n"
        "    var text = String()\n"
        "    tensor.write_to(text)\n"
        "    print(text)\n"
        "    var named = String()\n"
        "    tensor.write_to(w=named)\n"
        "    print(named)\n"
    )
    assert capsys.readouterr().out == "[[1.0, 1.0, 1.0],\n[1.0, 1.0, 1.0]]\n" * 3


def test_the_string_of_a_tensor_is_the_one_that_modular_tests(capsys):
    mojo.run(
        "from layout import TileTensor\nfrom layout.tile_layout import row_major\n"
        "def main() raises:\n"
        "    var storage = InlineArray[Float32, 4](fill=1.0)\n"
        "    print(String(TileTensor(storage, row_major[2, 2]())))\n"
        "    print(String(TileTensor(storage, row_major(2, 2))))\n"
    )
    assert capsys.readouterr().out == "[[1.0, 1.0], [1.0, 1.0]]\n[1.0, 1.0, 1.0, 1.0]\n"


@shows("J88", "332", "other ranks print all values, first coordinate fastest")
@shows("J89", "333", "an empty tensor prints nothing")
@shows("J90", "336", "the text of a large tensor may be truncated")
@shows("J91", "332", "vector elements print as lists")
def test_texts():
    assert str(TileTensor(np.arange(8), row_major[2, 2, 2]())) == "[0, 4, 2, 6, 1, 5, 3, 7]"
    assert str(TileTensor(np.arange(4), row_major[4]())) == "[0, 1, 2, 3]"
    assert str(TileTensor(np.zeros(0), row_major[0, 4]())) == ""
    assert len(str(TileTensor(np.zeros(10**6, np.float32), row_major[1000, 1000]()))) < 1000
    rows = "[[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]],\n[[8.0, 9.0, 10.0, 11.0], [12.0, 13.0, 14.0, 15.0]]]"
    assert str(matrix(2, 8).vectorize[1, 4]()) == rows


@shows("J143", "1-701", "a tensor can be drawn")
def test_a_picture(capsys):
    matrix(2, 4).show()
    text = capsys.readouterr().out
    assert "2 x 4" in text
    assert re.search(r"4\s+5\s+6\s+7", text)


# Views.


@shows("J92", "341-350", "tile[sizes](Coord) is the tile at a position in the grid of tiles")
@shows("J93", "341", "it keeps the strides")
@shows("J97", "364-380", "tile[2, 2](1, 0), the example, with integers instead of a Coord")
def test_tile():
    t = matrix()
    assert t.tile[2, 4](Coord(1, 1)).to_numpy().tolist() == t.to_numpy()[2:4, 4:8].tolist()
    assert t.tile[2, 4](1, 1).layout == Layout((2, 4), (8, 1))
    storage = InlineArray[Float32, 16](uninitialized=True)
    tensor = TileTensor(storage, row_major[4, 4]()).fill(1.0)
    t = tensor.tile[2, 2](1, 0)
    t.fill(5.0)
    assert (t.shape, t.offset) == ((2, 2), 8)
    assert tensor.to_numpy().tolist() == [[1.0] * 4] * 2 + [[5.0, 5.0, 1.0, 1.0]] * 2


@shows(
    "J94",
    "351-363",
    "tile with stride_layout has strides that are known at compile time, of a parent where they are not",
)
@shows(
    "J95",
    "351-363",
    "stride_layout is a keyword of the brackets: by the stated rule it goes to the parentheses, or last",
)
@shows("J96", "381-403", "tile_with_offset takes it likewise")
def test_tiles_with_static_strides():
    dynamic = TileTensor(np.arange(48), Layout((6, 8), (Idx(8), Idx(1))))
    assert not dynamic.tile[2, 4](Coord(1, 1)).all_dims_known
    strides = row_major[8, 1]()
    for tile in (
        dynamic.tile[2, 4](Coord(1, 1), stride_layout=strides),
        dynamic.tile[2, 4, strides](Coord(1, 1)),
        dynamic.tile_with_offset[2, 4](Coord(1, 1), stride_layout=strides)[0],
        dynamic.tile_with_offset[2, 4, strides](Coord(1, 1))[0],
    ):
        assert tile.all_dims_known
        assert (tile.offset, tile.layout) == (20, Layout((2, 4), (8, 1)))
    with pytest.raises(tw.LayoutError, match=r"stride_layout states strides \(9, 1\)"):
        dynamic.tile[2, 4](Coord(1, 1), stride_layout=row_major[9, 1]())


@shows("J98", "381-403", "tile_with_offset returns the tile, its corner and its offset")
@shows("J149", "38", "UnsafePointer, IndexList, Origin, Optional, String and UInt are names of the dialect")
def test_tile_with_offset():
    tile, corner, offset = matrix().tile_with_offset[2, 4](Coord(1, 1))
    assert (tile.offset, corner, offset) == (20, (2, 4), 20)
    assert isinstance(corner, IndexList[2])
    assert not isinstance(corner, IndexList[3])
    assert IndexList[2](2, 4) == corner
    assert isinstance(UInt(offset), UInt)
    assert Optional[Swizzle](None) == None  # noqa: E711  (Mojo's comparison)
    assert String(corner) == "(2, 4)"
    assert isinstance(tile.ptr, UnsafePointer)
    assert isinstance(tile.origin, Origin)


@shows("J99", "404-415", "reshape(layout) is a view of the same memory under another layout")
@shows("J100", "404-415", "the layout may be any: its size is not restricted")
def test_reshape_to_a_layout():
    t = matrix()
    assert t.reshape(row_major[8, 6]()).shape == (8, 6)
    assert t.reshape(col_major[6, 8]())[1, 2] == 13.0
    corner = t.reshape(Layout((2, 2), (1, 8)))
    assert corner.to_numpy().tolist() == [[0.0, 8.0], [1.0, 9.0]]
    corner[1, 1] = -1.0
    assert t[1, 1] == -1.0
    with pytest.raises(tw.LayoutError, match="it needs 49"):
        t.reshape(row_major[7, 7]())


@shows("J101", "416-440", "reshape[2, 6](), the example, and reshape[12](), the same as coalesce")
@shows("J102", "432-434", "reshape needs row-major strides")
@shows("J103", "434", "the number of elements must stay")
@shows("J104", "432", "reshape in brackets needs a layout that is known at compile time")
def test_reshape():
    storage = InlineArray[Float32, 12](uninitialized=True)
    tensor = TileTensor(storage, row_major[3, 4]()).fill(1.0)
    reshaped = tensor.reshape[2, 6]()
    reshaped_1d = tensor.reshape[12]()
    assert (reshaped.shape, reshaped_1d.shape) == ((2, 6), (12,))
    assert reshaped_1d.layout == tensor.coalesce().layout
    reshaped[1, 0] = 3.0
    assert tensor[1, 2] == reshaped_1d[6] == 3.0
    with pytest.raises(tw.LayoutError, match="reshape needs elements in row-major order"):
        TileTensor(np.zeros(12), col_major[3, 4]()).reshape[2, 6]()
    with pytest.raises(tw.LayoutError, match=r"cannot reshape 12 elements of shape \(3, 4\) to \(2, 5\), which has 10"):
        tensor.reshape[2, 5]()
    with pytest.raises(tw.LayoutError, match=r"reshape\[\.\.\.\] needs extents and strides that are known at compile"):
        TileTensor(np.zeros(12), row_major(3, 4)).reshape[2, 6]()


@shows("J105", "441-468", "reshape(Coord(Idx(rows), Idx(cols))), the example, with extents of run time")
@shows("J106", "459", "the number of elements is checked then")
def test_reshape_at_run_time():
    storage = InlineArray[Float32, 12](uninitialized=True)
    tensor = TileTensor(storage, row_major[3, 4]()).fill(1.0)
    rows = 2
    cols = 6
    reshaped = tensor.reshape(Coord(Idx(rows), Idx(cols)))
    assert (reshaped.shape, reshaped.shape_known) == ((2, 6), False)
    assert run_time_matrix().reshape(Coord(Idx(4), Idx(12))).shape == (4, 12)
    with pytest.raises(tw.LayoutError, match=r"cannot reshape 12 elements .*, which has 10"):
        tensor.reshape(Coord(Idx(5), Idx(2)))


@shows("J107", "469-482", "distribute[thread_layout](thread_id) has the elements of one thread")
@shows("J109", "469", "its extents are divided, and its strides multiplied, by the extents of the threads")
@shows("J110", "470", "extents that do not divide are rounded down")
@shows("J111", "478-479", "thread ids count from 0; one beyond the threads is refused")
def test_distribute():
    t = matrix()
    part = t.distribute[row_major[2, 4]()](5)
    assert part.to_numpy().tolist() == t.to_numpy()[1::2, 1::4].tolist() == [[9.0, 13.0], [25.0, 29.0], [41.0, 45.0]]
    assert part.layout == Layout((3, 2), (16, 4))
    with pytest.warns(RuntimeWarning, match="the last 1 of mode 0 belong to no thread"):
        assert matrix(7, 8).distribute[row_major[2, 4]()](0).shape == (3, 2)
    with pytest.raises(IndexError, match="thread 8 is outside the 8 threads"):
        t.distribute[row_major[2, 4]()](8)


@shows("J108", "469", "a swizzle after the threads moves where each starts")
def test_distribute_with_a_swizzle():
    t = matrix(8, 8)
    threads = row_major[8, 8]()
    assert t.distribute[threads](9).offset == 9
    assert t.distribute[threads, Swizzle(3, 0, 3)](9).offset == Swizzle(3, 0, 3)(9) == 8
    assert t.distribute[threads](9, swizzle=Swizzle(3, 0, 3)).offset == 8


@shows("J112", "483-494", "distribute_with_offset returns the view, the coordinates of the thread and the offset")
def test_distribute_with_offset():
    part, coords, offset = matrix().distribute_with_offset[row_major[2, 4]()](5)
    assert (part.layout, coords, offset) == (Layout((3, 2), (16, 4)), (1, 1), 9)
    assert isinstance(coords, IndexList[2])


@shows("J113", "495-527", "fill(value) sets all elements and returns the tensor")
@shows(
    "J114",
    "497",
    "use_runtime_layout is a keyword of its brackets: by the stated rule in the parentheses, or alone in brackets",
)
@shows("J115", "500-504", "fill respects the layout of views, and fills all scalars of vector elements")
def test_fill():
    t = matrix()
    assert t.fill(3.0) is t
    assert (t.to_numpy() == 3.0).all()
    assert t.fill(1.0, use_runtime_layout=True)[0, 0] == 1.0
    assert t.fill[True](2.0)[0, 0] == 2.0
    t.vectorize[1, 4]().fill(2.5)
    t.tile[2, 4](0, 1).fill(7.0)
    assert t.to_numpy()[0].tolist() == [2.5] * 4 + [7.0] * 4


@shows("J116", "505-510", "its example prints 3 x 4 zeros")
@shows("J117", "511-520", "the result is reassigned, or discarded with `_`")
def test_fill_examples(capsys):
    storage = InlineArray[Float32, 3 * 4](uninitialized=True)
    tensor = TileTensor(storage, row_major[3, 4]()).fill(0.0)
    print(tensor)
    assert capsys.readouterr().out == "[" + ",\n".join(["[0.0, 0.0, 0.0, 0.0]"] * 3) + "]\n"
    same = tensor
    tensor = tensor.fill(0.0)
    assert tensor is same
    _ = tensor.fill(2.0)
    assert storage[11] == 2.0


@shows("J118", "525", "the value of fill must be of the tensor's type")
@shows("J150", "525", "so must the value of an element or of a store")
@shows("J151", "525", "a number outside the range of the type is refused")
def test_values_must_be_of_the_type():
    t = TileTensor(np.zeros(4, np.int32), row_major[2, 2]())
    for write in (lambda: t.fill(1.5), lambda: t.store(Coord(0, 0), 1.5), lambda: t.__setitem__((0, 0), 1.5)):
        with pytest.raises(
            tw.FormatError, match=r"^1\.5 is not a value of int32, which holds whole numbers from -2147"
        ):
            write()
    assert t.to_numpy().tolist() == [[0, 0], [0, 0]]
    assert t.fill(2.0)[1, 1] == 2  # a whole number
    small = TileTensor(np.zeros(4, np.uint8), row_major[2, 2]())
    for value in (300, -1):
        with pytest.raises(
            tw.FormatError, match=f"^{value} is not a value of uint8, which holds whole numbers from 0 to 255"
        ):
            small.fill(value)


@pytest.mark.parametrize("value", [UInt8(3), Scalar[DType.float64](0.5), SIMD[DType.int32, 2](1, 2)], ids=repr)
def test_numbers_of_another_type_are_refused(value):
    """A number of Mojo has a type, which must be that of the memory; a literal takes it."""
    storage = InlineArray[Float32, 48](fill=0)
    t = TileTensor(storage, row_major[6, 8]())
    for write in (
        lambda: t.fill(value),
        lambda: t.__setitem__((0, 0), value),
        lambda: t.vectorize[1, 2]().__setitem__((0, 0), value),
        lambda: t.store(Coord(0, 0), value),
        lambda: t.store[2](Coord(0, 0), value),
        lambda: t.raw_store(0, value),
        lambda: t.to_layout_tensor().__setitem__((0, 0), value),
        lambda: t.ptr.store(0, value),
        lambda: storage.unsafe_ptr().store(0, value),
    ):
        with pytest.raises(
            tw.FormatError, match=r"cannot be stored as float32: the types must match; convert it: x\.cas"
        ):
            write()
    assert not t.to_numpy().any()
    t.store(Coord(0, 0), value.cast[DType.float32]())
    assert t[0, 0] == value[0].item()


@shows("J119", "529-535", "dim[i]() is the extent of a dimension, as a Scalar[linear_idx_type]", differs=INTEGERS)
@shows("J120", "536-545", "dim(index) is the same at run time", differs=INTEGERS)
@shows("J121", "546-556", "dynamic_stride(index) is the stride of a dimension, likewise", differs=INTEGERS)
def test_dimensions():
    t = matrix()
    assert (t.dim[1](), t.dim(1), t.dynamic_stride(0), t.dynamic_stride(1)) == (8, 8, 8, 1)
    assert (t.dim(i=1), t.dim(index=1), t.dynamic_stride(index=0)) == (8, 8, 8)
    assert (t.dim[Int](1), t.dim(index=1, IndexType=Int), t.dynamic_stride[UInt](0)) == (8, 8, 8)
    assert t.dynamic_stride(index=0, IndexType=Int) == 8
    for wrong in (t.dim[Int], lambda: t.dim(1, IndexType=3), t.dynamic_stride):
        with pytest.raises(TypeError, match=r"the (number of a mode|type of an index)"):
            wrong()
    assert type(t.dim(1)) is int


@shows("J122", "557-568", "slice[0:2, 1:3, 0:4]() of a 16 x 16 x 16 tensor, the example")
@shows("J123", "560", "the step of a slice must be 1")
@shows("J124", "561", "there must be one slice for each dimension")
@shows("J125", "574", "a slice is a view: what is written to it is written to the tensor")
def test_slice():
    layout_3d = row_major[16, 16, 16]()
    stack = InlineArray[UInt8, layout_3d.static_product](fill=0)
    tensor_3d = TileTensor(stack, layout_3d)
    slice = tensor_3d.slice[0:2, 1:3, 0:4]()  # noqa: A001  (the page's name)
    assert (slice.shape, slice.offset, slice.layout) == ((2, 2, 4), 16, Layout((2, 2, 4), (256, 16, 1)))
    t = matrix()
    with pytest.raises(tw.LayoutError, match="slice takes ranges with step 1, got step 2"):
        t.slice[0:4:2, 0:4]()
    with pytest.raises(tw.LayoutError, match=r"2 leaves|one for each"):
        t.slice[0:4]()
    t.slice[0:2, 1:3]().fill(-1.0)
    assert t.to_numpy()[0].tolist() == [0.0, -1.0, -1.0, 3.0, 4.0, 5.0, 6.0, 7.0]


@shows(
    "J126",
    "577",
    "the bounds of a slice are not checked",
    differs="they are checked here, and by Mojo 26.7; a wrong bound is an error instead of undefined",
)
@shows(
    "J127",
    "578",
    "the extents and strides of a slice are run-time integers",
    differs="its signature says compile-time integers, Mojo has them, and so does tilewright; slice((a, b)) is dynamic",
)
def test_bounds_and_extents_of_slices():
    with pytest.raises(IndexError, match="range 0:9 of mode 0"):
        matrix().slice[0:9, 0:4]()
    part = matrix().slice[0:2, 1:3]()
    assert (part.static_shape, part.all_dims_known) == ((2, 2), True)


@shows("J128", "585-597", "slice((1, 3), (2, 5)), the example, has bounds and extents of run time")
def test_slice_at_run_time():
    sliced = matrix().slice((1, 3), (2, 5))
    assert sliced.to_numpy().tolist() == [[10.0, 11.0, 12.0], [18.0, 19.0, 20.0]]
    assert (sliced.static_shape, sliced.stride_known) == ((-1, -1), True)
    assert run_time_matrix().slice((1, 3), (2, 5)).shape == (2, 3)


@shows(
    "J134", "635-636", "a tensor of shape (4, 4) with vectors of shape (4, 4) coalesces to (16,) with vectors of (16,)"
)
@shows("J135", "636", "vectors that follow each other do coalesce, and their elements are flat, too")
@shows("J136", "642-643", "coalesce needs row-major strides, and a layout that is known at compile time")
def test_coalesce():
    blocks = TileTensor(np.arange(256), blocked_product(row_major[4, 4](), row_major[4, 4]())).vectorize[4, 4]()
    assert (blocks.shape, blocks.element_layout.shape) == ((4, 4), (4, 4))
    flat = blocks.coalesce()
    assert (flat.shape, flat.element_layout.shape) == ((16,), (16,))
    assert [flat[k].tolist() for k in range(16)] == np.arange(256).reshape(16, 16).tolist()
    with pytest.raises(tw.LayoutError, match="coalesce needs elements in row-major order"):
        matrix(16, 16).vectorize[4, 4]().coalesce()  # blocks of a row-major matrix do not follow each other
    rows = matrix(4, 16).vectorize[1, 4]().coalesce()
    assert (rows.shape, rows.element_layout, rows[1].tolist()) == ((16,), Layout((4,), (1,)), [4.0, 5.0, 6.0, 7.0])
    with pytest.raises(tw.LayoutError, match="coalesce needs elements in row-major order"):
        TileTensor(np.zeros(12), col_major[3, 4]()).coalesce()
    with pytest.raises(tw.LayoutError, match="coalesce needs extents and strides that are known at compile time"):
        run_time_matrix().coalesce()


@shows("J138", "662-668", "to_layout_tensor() has the same shape, strides and address space")
def test_to_layout_tensor():
    shared = matrix().address_space_cast[AddressSpace.SHARED]()
    old = shared.to_layout_tensor()
    assert (old.layout, old.address_space) == (shared.layout, AddressSpace.SHARED)
    assert blocked().to_layout_tensor()[1, 0, 0, 2] == 10  # nested ones, too


@shows(
    "J139",
    "669-678",
    "as_any_origin() needs a mutable tensor",
    differs="its signature keeps the mutability, Mojo takes an immutable tensor, and so does tilewright: it stays so",
)
def test_any_origin():
    t = matrix()
    assert t.as_any_origin().origin == MutAnyOrigin
    assert t.as_any_origin().origin.owner is None
    fixed = t.as_immut().as_any_origin()
    assert (fixed.mut, fixed.origin) == (False, ImmutAnyOrigin)


@shows("J152", "169-199", "the DeviceBuffer example on a real device")
def test_device_buffer_on_opencl():
    pytest.importorskip("pyopencl")
    try:
        ctx = DeviceContext("opencl")
    except tw.TransferError as problem:
        pytest.skip(str(problem))
    tensor, _ = device_example(ctx)
    with pytest.raises(tw.LayoutError, match="device memory cannot be reached from the host"):
        tensor[0, 0]
    back = ctx.enqueue_create_host_buffer[DType.float32](16)
    ctx.enqueue_copy(back, tensor.to_device_buffer(ctx))
    ctx.synchronize()
    assert [back[i] for i in range(16)] == list(range(16))


# Every name of the page.

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


def test_every_member_of_the_page_is_there():
    t = matrix()
    for name in f"{PARAMETERS} {COMPTIME} {METHODS}".split():
        assert hasattr(t, name), name
        assert hasattr(TileTensor, name), name
    for name in METHODS.split():
        assert callable(getattr(t, name)), name
    assert len(COMPTIME.split()) == 22

# SPDX-License-Identifier: Apache-2.0
"""Vectors and scalars as Mojo 26.7 has them: what its own programs print."""

import copy
import pickle

import numpy as np
import pytest
from tilewright_mojo.std.gpu.host import DeviceBuffer, DeviceContext, HostBuffer

from tilewright import FormatError, LayoutError, TileTensor
from tilewright.formats import format_of
from tilewright.mojo import (
    SIMD,
    Bool,
    DType,
    Float16,
    Float32,
    Int8,
    Int32,
    MutAnyOrigin,
    Scalar,
    Span,
    UInt8,
    UnsafePointer,
    align_of,
    simd_width_of,
    size_of,
)
from tilewright.mojo.layout import AddressSpace, Layout, RowMajorLayout, row_major, stack_allocation
from tilewright.mojo.layout import TileTensor as MojoTensor
from tilewright.mojo.layout.tile_layout import upcast

V = SIMD[DType.int32, 4](1, 9, 3, 4)


def test_what_mojo_prints():
    v = SIMD[DType.float32, 4](1, 2, 3, 4)
    assert str(v) == "[1.0, 2.0, 3.0, 4.0]"
    assert repr(v) == "SIMD[DType.float32, 4](1.0, 2.0, 3.0, 4.0)"
    assert str(SIMD[DType.float32, 4](7)) == "[7.0, 7.0, 7.0, 7.0]"
    assert (str(v * 2), v[2], v.reduce_add(), len(v)) == ("[2.0, 4.0, 6.0, 8.0]", 3.0, 10.0, 4)
    assert str(v.cast[DType.int32]()) == "[1, 2, 3, 4]"
    assert str(v.lt(3)) == "[True, True, False, False]"
    assert (v == v, v == v + 1, v != v) == (True, False, False)
    assert [str(V + 1), str(2 * V), str(-V)] == ["[2, 10, 4, 5]", "[2, 18, 6, 8]", "[-1, -9, -3, -4]"]
    assert [str(V // 2), str(V % 2), str(V << 1)] == ["[0, 4, 1, 2]", "[1, 1, 1, 0]", "[2, 18, 6, 8]"]
    assert (V.reduce_max(), V.reduce_min(), V.reduce_mul()) == (9, 1, 108)
    assert str(V.join(V)) == "[1, 9, 3, 4, 1, 9, 3, 4]"
    assert str(SIMD[DType.bool, 2](True, False).select(SIMD[DType.int32, 2](1), SIMD[DType.int32, 2](2))) == "[1, 2]"
    assert (SIMD[DType.int8, 2](-100) - SIMD[DType.int8, 2](100)).tolist() == [56, 56]
    assert (int(Int8(np.float32(3.9))), int(UInt8(np.int64(-1)))) == (3, 255)


def test_numbers_are_converted_as_mojo_does():
    assert (UInt8(300), UInt8(-1), Int8(3.9), Int32(float("nan"))) == (44, 255, 3, 0)
    assert SIMD[DType.int8, 2](1, 3.9).tolist() == [1, 3]
    with pytest.raises(FormatError, match=r"2\.5 is not a value of int8"):
        Int8(1) * 2.5
    with pytest.raises(FormatError, match=r"Int8\(1\) and Int32\(1\) have different types"):
        Int8(1) + Int32(1)
    with pytest.raises(FormatError, match="cannot divide the integer 1 by 0"):
        Int8(1) // 0


def test_arithmetic_keeps_the_type():
    assert repr(Float32(1) / 3) == "Float32(0.33333334)"
    assert repr([Int32(7) / Int32(2), Int32(-7) / 2, Int32(-7) // 2, Int32(-7) % 3]) == (
        "[Int32(3), Int32(-3), Int32(-4), Int32(2)]"
    )
    assert repr([Float32(7) // 2, Float32(-7) % 3, 1 - Float32(0.5), 2 * Int8(100), Int8(127) + 1]) == (
        "[Float32(3.0), Float32(2.0), Float32(0.5), Int8(-56), Int8(-128)]"
    )
    assert str(Float32(1) / 0) == "inf"
    assert str(Float32(0) / 0) == "nan"
    assert str(Float32(1e38) * 1e38) == "inf"
    assert (Float32(2) ** 3, Int32(2) ** 3, Int8(1) << 7) == (8, 8, -128)
    assert [str(round(Float32(2.5))), str(round(Float32(3.5))), str(abs(Float16(-1)))] == ["2.0", "4.0", "1.0"]


def test_sizes():
    with pytest.raises(LayoutError, match="takes one number or 4, got 3"):
        SIMD[DType.int8, 4](1, 2, 3)
    with pytest.raises(LayoutError, match="must be a power of two, got 3"):
        SIMD[DType.int8, 3]
    with pytest.raises(LayoutError, match="takes one number or 4, got 2"):
        SIMD[DType.int8, 4](np.zeros(2))
    assert SIMD[DType.int8, 2](SIMD[DType.int32, 2](1, 2)).dtype == DType.int8


def test_types():
    assert SIMD[DType.float32, 1] == Scalar[DType.float32] == Float32
    assert isinstance(np.float32(1), Float32)
    assert not isinstance(1.0, Float32)
    assert isinstance(Bool(1), Bool)
    assert not isinstance(1, Bool)
    assert format_of(Int32) == DType.int32
    assert TileTensor(bytearray(8), row_major[2](), dtype=Int32).dtype == DType.int32
    assert simd_width_of[Float32]() == 16
    with pytest.raises(FormatError, match="expected the type of a number"):
        Scalar[SIMD[DType.float32, 4]]
    again = pickle.loads(pickle.dumps(V))  # noqa: S301  (our own)
    assert (type(again), again == V, copy.copy(V) == V) == (SIMD, True, True)


def test_types_of_tensors():
    t = MojoTensor(np.zeros(8, np.float32), row_major[2, 4]())
    kind = MojoTensor[DType.float32, RowMajorLayout[2, 4]]
    assert repr(kind) == "TileTensor[DType.float32, Layout[(2, 4):(4, 1)], _]"
    assert isinstance(t, kind)
    assert kind == MojoTensor[DType.float32, row_major[2, 4]()]
    assert (kind.rank, kind.static_shape, kind.all_dims_known) == (2, (2, 4), True)
    assert isinstance(t, MojoTensor[DType.float32, row_major[2, 4](), t.origin])
    assert not isinstance(t, MojoTensor[DType.float32, row_major(2, 4)])
    assert not isinstance(t, MojoTensor[DType.float32, Layout, t.origin].AddressSpaceCastType[3])
    assert not isinstance(t.to_numpy(), kind)
    assert not isinstance(t, type(t.to_layout_tensor())[DType.float32])
    assert MojoTensor[DType.int8](bytearray(4), row_major[4]()).dtype == DType.int8
    assert MojoTensor[DType.int8]([1, 2], row_major[2]()).to_numpy().dtype == np.int8
    with pytest.raises(AttributeError, match="leaves rank open; add a layout"):
        MojoTensor[DType.int8].rank  # noqa: B018
    with pytest.raises(TypeError, match="expected an origin"):
        MojoTensor[DType.int8, Layout, 3]
    with pytest.raises(TypeError, match="six parameters"):
        MojoTensor[1, 2, 3, 4, 5, 6, 7]
    assert pickle.loads(pickle.dumps(kind)) == kind  # noqa: S301
    for name in ("CoalescedType", "GenericType", "SIMDVectorizedType", "device_type"):
        assert isinstance(t, getattr(MojoTensor, name)), name


def test_types_of_memory():
    context = DeviceContext()
    span, buffer = Span(np.zeros(2, np.float32)), context.enqueue_create_buffer[DType.float32](2)
    for memory, kind in ((span, Span), (buffer, DeviceBuffer), (MojoTensor(span, row_major[2]()).ptr, UnsafePointer)):
        assert isinstance(memory, kind[Float32]), kind
        assert isinstance(memory, kind[DType.float32, MutAnyOrigin]), kind
        assert not isinstance(memory, kind[DType.int32]), kind
    assert isinstance(context.enqueue_create_host_buffer[Float32](2), HostBuffer[Float32])
    assert Span[DType.float32](np.zeros(2, np.float32)).dtype == DType.float32
    with pytest.raises(FormatError, match=r"Span\[DType\.int8\] cannot hold float32"):
        Span[DType.int8](np.zeros(2, np.float32))
    assert (size_of[Float32](), align_of[SIMD[DType.float32, 4]](), size_of[DType.int8]()) == (4, 16, 1)


def test_keywords_of_brackets_go_to_the_parentheses():
    t = MojoTensor(np.arange(24.0), row_major[2, 12]())
    shared = stack_allocation[DType.float32](row_major[2, 2](), address_space=AddressSpace.SHARED)
    assert shared.address_space is stack_allocation[Float32, AddressSpace.SHARED](row_major[2]()).address_space
    assert [part.layout for part in t.split[3](axis=1)] == [part.layout for part in t.split[3, 1]()]
    assert t.split(4, 2, axis=1, alignment=4).shape == t.split[1, 4](4, 2).shape == (2, 4)
    assert t.split(2, 1).shape == (1, 12)
    assert upcast(row_major[3, 12](), factor=3) == upcast[3](row_major[3, 12]()) == upcast(row_major[3, 12](), 3)
    assert MojoTensor(np.zeros(2), row_major[2]()).exp(scale=2.0)[0] == 1.0
    with pytest.raises(LayoutError, match="upcast needs a factor"):
        upcast(row_major[3, 12]())

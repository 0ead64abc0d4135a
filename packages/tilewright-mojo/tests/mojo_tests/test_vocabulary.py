# SPDX-License-Identifier: Apache-2.0
"""The memory and the modules of Mojo's standard library, from Python."""

from contextlib import ExitStack

import numpy as np
import pytest
from tilewright_mojo.std import algorithm, bit, math, memory, random, testing

from tilewright.errors import CoordinateError, FormatError, LayoutError, TilewrightError
from tilewright.mojo import DType, Float32, InlineArray, Int, Int32, List, Span, UnsafePointer
from tilewright.mojo.layout import IntTuple, Layout, LayoutTensor, RuntimeLayout, TileTensor, row_major
from tilewright.mojo.memory import alloc
from tilewright.mojo.simd import SIMD
from tilewright.tensor import kernel_memory
from tilewright_mojo.collections import Dict, Optional
from tilewright_mojo.types import materialize, rebind, type_of


class Log:
    """What a watcher was told."""

    def __init__(self):
        self.calls = []

    def read(self, store, places, width=1):
        self.calls.append(("read", np.ravel(places).tolist(), width))

    def write(self, store, places, width=1):
        self.calls.append(("write", np.ravel(places).tolist(), width))


def test_one_memory_is_one_store():
    array = InlineArray[Int32, 6](1, 2, 3, 4, 5, 6)
    pointer, span, tensor = array.unsafe_ptr(), Span(array), TileTensor(array, row_major[2, 3]())
    pointer[4] = 50
    assert (span[4], tensor[1, 1], array[4]) == (50, 50, 50)
    assert pointer.memory.data is span.memory.data is tensor._store.data
    assert span[2:4].unsafe_ptr().offset == 2


def test_whoever_watches_learns_of_every_access():
    array = InlineArray[Int32, 6](fill=0)
    tensor, log = TileTensor(array, row_major[2, 3]()), Log()
    with ExitStack() as stack:
        stack.callback(kernel_memory.reset, kernel_memory.set(log))
        array[1] = tensor[1, 0]
        array.unsafe_ptr().store(2, SIMD(1, 2).cast[DType.int32]())
        array.unsafe_ptr().load[2](4)
        tensor[0, 2] = Int32(7)
    assert log.calls == [
        ("read", [3], 1),
        ("write", [1], 1),
        ("write", [2], 2),
        ("read", [4], 2),
        ("write", [2], 1),
    ]


def test_memory_is_bounded():
    pointer = alloc[Float32](4)
    for access in (lambda: pointer[4], lambda: pointer[-1], lambda: pointer.load[4](1), lambda: (pointer + 9)[0]):
        with pytest.raises(CoordinateError, match="outside the storage, which has 0 to 3"):
            access()
    with pytest.raises(CoordinateError, match="index 2 is outside 2 elements"):
        List[Int](1, 2)[2]
    with pytest.raises(LayoutError, match="different storage"):
        _ = pointer - alloc[Float32](4)
    with pytest.raises(FormatError, match=r"1\.5 is not a value of int32"):
        alloc[Int32](1)[0] = 1.5


def test_lists_hold_numbers_or_anything():
    words = List[str]("a", "b")
    words.append("c")
    words.swap_elements(0, 2)
    assert (str(words), len(words), "b" in words) == ("[c, b, a]", 3, True)
    numbers = List(1, 2)
    numbers += [3]
    numbers.insert(0, 0)
    assert (str(numbers * 2), numbers.pop(1), numbers == [0, 2, 3]) == ("[0, 1, 2, 3, 0, 1, 2, 3]", 1, True)
    assert isinstance(numbers, List[Int])
    assert not isinstance(numbers, List[Float32])


def test_pointers_to_objects_and_bytes():
    cells = alloc[dict](2)
    cells[1] = {"a": 1}
    assert cells.get_subscript(unsafe_offset=1) == {"a": 1}
    single = alloc[Float32](1)
    single.set_subscript(1)
    assert single.bitcast["uint32"]()[0] == 0x3F800000
    assert isinstance(single, UnsafePointer[Float32])


def test_small_types():
    assert (Dict({"a": 1}).find("a").value(), Optional().or_else(3), bool(Optional(0))) == (1, 3, True)
    with pytest.raises(LayoutError, match="is none"):
        Optional().value()
    with pytest.raises(CoordinateError, match="no key 'b'"):
        Dict()["b"]
    assert (rebind[Float32](2), materialize[3](), repr(type_of(Float32(1)))) == (2, 3, "SIMD[DType.float32, 1]")


def test_mathematics_keeps_the_type():
    assert repr(math.sqrt(Float32(2))) == "Float32(1.4142135)"
    assert repr(math.exp(SIMD[DType.float32, 2](0, 1))) == "SIMD[DType.float32, 2](1.0, 2.7182817)"
    assert repr(math.max(Int32(3), 4)) == "Int32(4)"
    assert (math.ceildiv(7, 2), math.align_up(7, 4), math.align_down(7, 4), bit.log2_ceil(9)) == (4, 8, 4, 4)
    assert repr(bit.count_leading_zeros(Int32(1))) == "Int32(31)"
    with pytest.raises(FormatError, match="sqrt needs a float"):
        math.sqrt(Int32(4))


def test_loops_over_functions_run_in_order():
    seen = []
    algorithm.parallelize[seen.append](3)
    assert seen == [0, 1, 2]
    random.seed(3)
    assert 0 <= random.random_float64().item() < 1


def test_assertions_raise_errors_of_ours():
    testing.assert_equal(SIMD(1, 2), SIMD(1, 2))
    testing.assert_almost_equal(Float32(1), 1.000001)
    for check in (
        lambda: testing.assert_equal(1, 2),
        lambda: testing.assert_true(False),
        lambda: testing.assert_almost_equal(1.0, 2.0),
        lambda: testing.assert_raises().__exit__(None, None, None),
    ):
        with pytest.raises(TilewrightError, match="AssertionError"):
            check()


def test_memory_on_the_stack():
    pointer = memory.stack_allocation[4, Float32]()
    memory.memset_zero(pointer, 4)
    assert pointer.load[4](0) == SIMD[DType.float32, 4](0)


def test_older_tensors_take_what_is_known_and_what_is_not():
    known = Layout.row_major(-1, 4)
    tensor = LayoutTensor[DType.int64, known](np.arange(12), RuntimeLayout[known].row_major((3, 4)))
    assert (tensor.shape[0](), tensor.dim(0), str(tensor.layout), tensor[2, 3]) == (-1, 3, "((-1, 4):(4, 1))", 11)
    with pytest.raises(LayoutError, match="has unknown extents or strides"):
        LayoutTensor[DType.int64, known](np.arange(12))
    with pytest.raises(LayoutError, match="cannot be a view of int64"):
        LayoutTensor[DType.float32, Layout.row_major(3, 4)](np.arange(12))
    with pytest.raises(CoordinateError, match="entry 2 is outside"):
        IntTuple(1, 2)[2]

# SPDX-License-Identifier: Apache-2.0
"""Calls at run time: overloads, parameters that are given, inferred or missing, and what is refused."""

import pytest

from tilewright import LayoutError, TilewrightError, mojo
from tilewright.mojo import DType, Float32, Int32

SOURCE = """\
def kind(x: Int) -> String:
    return "Int"

def kind(x: Float32) -> String:
    return "Float32"

def kind[dtype: DType](x: Scalar[dtype]) -> String:
    return String("Scalar of ", dtype)

def kind(x: Int, y: Int = 2) -> String:
    return "two"

def kind(*, name: String) -> String:
    return "named"

def size_of_list[T: Copyable, //, n: Int = 3](values: List[T]) -> Int:
    return n * len(values)

def unknown[n: Int]() -> Int:
    return 4

def uses_unknown[n: Int]() -> Int:
    return n + 1

@fieldwise_init
struct Box[T: Copyable, n: Int = 2]:
    var value: Self.T

struct Celsius:
    var degrees: Float32

    @implicit
    def __init__(out self, degrees: Float32):
        self.degrees = degrees

def show(t: Celsius) -> Float32:
    return t.degrees
"""


@pytest.fixture(scope="module")
def program():
    return mojo.run(SOURCE, name="calls.mojo")


def test_overloads_are_chosen_by_number_names_and_types(program):
    assert program.kind(1) == "Int"
    assert program.kind(Float32(1)) == "Float32"
    assert program.kind(Int32(1)) == "Scalar of int32"
    assert program.kind(1, 2) == "two"
    assert program.kind(1, y=3) == "two"
    assert program.kind(name="a") == "named"
    with pytest.raises(LayoutError, match=r"kind cannot be called with \(int, int, int\); it is kind\(x\); or kind"):
        program.kind(1, 2, 3)


def test_parameters_are_given_inferred_or_default(program):
    numbers = mojo.List(1, 2)
    assert program.size_of_list(numbers) == 6
    assert program.size_of_list[5](numbers) == 10
    assert program.size_of_list.with_parameters(n=7)(numbers) == 14
    with pytest.raises(LayoutError, match=r"does not take the parameters \[1, 2\]"):
        program.size_of_list[1, 2]


def test_an_unknown_parameter_is_an_error_where_it_is_used(program):
    assert program.unknown() == 4
    with pytest.raises(LayoutError, match="parameter 'n' of uses_unknown is not known"):
        program.uses_unknown()


def test_structs_infer_their_parameters(program):
    box = program.Box(DType.int8)
    assert box.value == DType.int8
    assert (box.n, program.Box[mojo.Int, 5](3).n) == (2, 5)
    assert isinstance(box, program.Box)
    with pytest.raises(LayoutError, match=r"struct Box has the parameters \[T, n\]"):
        program.Box[1, 2, 3]


def test_arguments_are_converted_where_a_constructor_is_implicit(program):
    assert float(program.show(20)) == 20.0
    assert float(program.show(Float32(1.5))) == 1.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("print(1, color=2)", "print has no argument 'color'"),
        ("print('{}'.format(x=1))", "format has no argument 'x'"),
        ("_ = Int(text=1)", "Int has no argument 'text'"),
        ("_ = SIMD[DType.int8, 4](each=1)", "SIMD has no argument 'each'"),
        ("_ = tensor[crd=Coord(0, 0)]", "[] has no argument 'crd'"),
        ("_ = tensor.fill()", "fill needs the argument val"),
        ("_ = Float32(1).cast(DType.int8)", "cast is given too many arguments"),
        ("_ = row_major[2, 2](3)", "the function is given too many arguments"),
        ("DeviceContext().enqueue_function[pair]()", "enqueue_function needs the arguments grid_dim and block_dim"),
        ("pair()", "pair needs the arguments x and y"),
        ("pair(1, x=2)", "pair is given 'x' twice"),
        ("pair(1, 2, 3)", "pair() takes 2 positional arguments but 3 were given"),
    ],
)
def test_wrong_arguments_are_told_in_the_words_of_mojo(call, message):
    source = f"""
from layout import Coord, TileTensor, row_major
from std.gpu.host import DeviceContext
def pair(x: Int, y: Int): pass
def main() raises:
    var tensor = TileTensor(alloc[Int8](4), row_major[2, 2]())
    {call}
"""
    with pytest.raises(TilewrightError) as caught:
        mojo.run(source)
    assert str(caught.value).splitlines()[0] == message


def test_an_index_has_the_name_of_the_page(capsys):
    mojo.run("""
from layout import Coord, TileTensor, row_major
def main():
    var tensor = TileTensor(alloc[Float32](6), row_major[2, 3]()).fill(1)
    tensor[coord=Coord(1, 2)] = 5
    tensor[coord=Coord(1, 2)] += 2
    print(tensor[coord=Coord(1, 2)], tensor[1, 2], tensor[Coord(0, 0)])
""")
    assert capsys.readouterr().out == "7.0 7.0 1.0\n"


@pytest.mark.parametrize(
    ("named", "plain"),
    [
        ("older.load[2](m=1, n=0)", "older.load[2](1, 0)"),
        ("older.load[2](coords=Index(1, 0))", "older.load[2](1, 0)"),
        ("older.aligned_load[2](m=1, n=0)", "older.aligned_load[2](1, 0)"),
        ("older.store[2](m=1, n=0, val=pair)", "older.store[2](1, 0, pair)"),
        ("older.store[2](coords=Index(1, 0), val=pair)", "older.store[2](1, 0, pair)"),
        ("older.aligned_store[2](m=1, n=0, val=pair)", "older.aligned_store[2](1, 0, pair)"),
        ("older.prefetch(m=1, n=0)", "older.prefetch(1, 0)"),
        ("older.stride(idx=0)", "older.stride(0)"),
        ("older.split[count=2, axis=1]()[1]", "older.split[2, 1]()[1]"),
        ("older.split[axis=1](count=2, idx=1)", "older.split[1](2, 1)"),
        ("older.copy_from(other=older.transpose())", "older.copy_from(older.transpose())"),
        ("row_major(shape=Coord(2, 3))", "row_major(Coord(2, 3))"),
        ("col_major(shape=Coord(2, 3))", "col_major(2, 3)"),
        ("row_major[2, 3]()(index=Coord(1, 2))", "row_major[2, 3]()(Coord(1, 2))"),
        ("row_major[2, 3]().idx2crd(idx=5)", "row_major[2, 3]().idx2crd(5)"),
        ("Idx[value=3]()", "Idx[3]()"),
        ("Layout.row_major(shape=IntTuple(2, 3))", "Layout.row_major(2, 3)"),
        ("Layout.col_major(shape=IntTuple(2, 3))", "Layout.col_major(2, 3)"),
        ("Layout.row_major(2, 3)(idx=IntTuple(1, 2))", "Layout.row_major(2, 3)(IntTuple(1, 2))"),
        ("RuntimeLayout[Layout.row_major(2, 3)].row_major(shape=Index(2, 3))", "Layout.row_major(2, 3)"),
        ("Swizzle(1, 0, 3)(index=8)", "Swizzle(1, 0, 3)(8)"),
        ("Swizzle(1, 0, 3)(offset=8)", "Swizzle(1, 0, 3)(8)"),
    ],
)
def test_arguments_of_tensors_and_layouts_have_mojos_names(capsys, named, plain):
    outputs = []
    for call in (named, plain):
        mojo.run(f"""
from layout import Coord, Idx, IntTuple, Layout, LayoutTensor, RuntimeLayout, col_major, row_major
from layout.swizzle import Swizzle
from std.utils import Index
def main() raises:
    var pair = SIMD[DType.float32, 2](20, 30)
    var numbers = InlineArray[Float32, 16](fill=0)
    for k in range(16):
        numbers[k] = Float32(k)
    var older = LayoutTensor[DType.float32, Layout.row_major(4, 4)](numbers)
    print({call})
    print(older)
""")
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]

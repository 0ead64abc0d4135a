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

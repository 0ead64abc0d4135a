# SPDX-License-Identifier: Apache-2.0
from std.algorithm import vectorize
from std.sys import simd_width_of, argv
from std.math import pi, tanh, cos, log2, isnan, isinf, erf, copysign, hypot, trunc, remainder
from std.bit import count_trailing_zeros, pop_count, next_power_of_two
from std.memory import ArcPointer, OwnedPointer
from std.collections import Set
from std.itertools import product


struct Node(Copyable, Movable):
    var value: Int
    var children: List[ArcPointer[Node]]

    def __init__(out self, value: Int):
        self.value = value
        self.children = {}

    def total(self) -> Int:
        var t = self.value
        for c in self.children:
            t += c[].total()
        return t


@fieldwise_init
struct Color(Equatable, ImplicitlyCopyable, Writable):
    var _v: Int
    comptime RED = Self(0)
    comptime GREEN = Self(1)

    def write_to(self, mut writer: Some[Writer]):
        if self == Self.RED:
            writer.write("RED")
        else:
            writer.write("GREEN")


trait Animal:
    comptime legs: Int

    def sound(self) -> String:
        ...

    @staticmethod
    def kind() -> String:
        ...


@fieldwise_init
struct Dog(Animal):
    comptime legs = 4

    def sound(self) -> String:
        return "woof"

    @staticmethod
    def kind() -> String:
        return "dog"


@fieldwise_init
struct Bird(Animal):
    comptime legs = 2

    def sound(self) -> String:
        return "tweet"

    @staticmethod
    def kind() -> String:
        return "bird"


def tell[A: Animal](a: A):
    print(A.kind(), a.sound(), A.legs)


def tell_all[*As: Animal](*animals: *As):
    comptime for i in range(As.__len__()):
        tell(animals[i])


struct Temperature:
    var celsius: Float64

    @implicit
    def __init__(out self, c: Float64):
        self.celsius = c

    @implicit
    def __init__(out self, c: Int):
        self.celsius = Float64(c)

    def fahrenheit(self) -> Float64:
        return self.celsius * 9 / 5 + 32


def hot(t: Temperature) -> Bool:
    return t.fahrenheit() > 86


def fib(n: Int) -> Int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def divide(a: Int, b: Int) raises -> Int:
    if b == 0:
        raise Error("division by zero: {}/{}".format(a, b))
    return a // b


def stats(xs: List[Float64]) -> Tuple[Float64, Float64]:
    var lo = xs[0]
    var hi = xs[0]
    for x in xs:
        lo = min(lo, x)
        hi = max(hi, x)
    return lo, hi


def main() raises:
    var root = ArcPointer(Node(1))
    root[].children.append(ArcPointer(Node(2)))
    root[].children.append(ArcPointer(Node(3)))
    print(root[].total(), len(root[].children))
    var box = OwnedPointer(5)
    box[] += 1
    print(box[])
    print(Color.RED, Color.GREEN, Color.RED == Color.GREEN)
    tell_all(Dog(), Bird())
    print(hot(35), hot(12.5))
    print(fib(15))
    try:
        print(divide(7, 2), divide(1, 0))
    except e:
        print(e)
    var lo, hi = stats([3.0, 1.5, 9.25])
    print(lo, hi)
    print(pop_count(7), count_trailing_zeros(8), next_power_of_two(9))
    print(hypot(3.0, 4.0), isnan(Float32(0) / 0), trunc(2.7), tanh(Float64(0.5)))
    print(copysign(3.0, -1.0), log2(Float64(8)), pi)
    var src: List[Float32] = [1, 2, 3, 4, 5, 6, 7]
    var sum = Float32(0)
    def add[w: Int](i: Int) {mut}:
        for k in range(w): sum += src[i + k]
    vectorize[4](len(src), add)
    print(sum)
    for i, j in product(range(2), range(2)):
        print(i, j, end="; ")
    print()
    var grid: List[List[Int]] = []
    for i in range(3):
        var row = List[Int]()
        for j in range(3):
            row.append(i * j)
        grid.append(row^)
    print(grid)
    var f = lambda (x: Int) -> Int: x * x
    print(f(7))
    var i = 0
    while i < 10:
        i += 1
        if i % 2:
            continue
        if i > 6:
            break
        print(i, end=" ")
    else:
        print("never")
    print()
    var s = Span(src)
    print(s[1:3][0], len(s[2:]), src[1:4])
    var big: Int = 1 << 62
    print(big, UInt32(4294967295) + 1, Int64(-5) >> 1, UInt8(200) // 3)
    print(Float64(7) % 2.5, -7.5 // 2, 2.0 ** 2.0, 10 % 4)
    var b = True
    b = b and False
    print(b, True ^ True, b or True)
    var (q, r) = divmod(-7, 2)
    print(q, r)
    print(len(argv()) > 0)
    print(String("abc")[byte=1], "é".byte_length(), "tab\tq", r"raw\n")
    print(max(1, 2, 3), min(4.0, 2.0), abs(Float32(-2)), pow(2, 5), round(2.5), round(3.5))
    print(Int32(5).cast[DType.float32]() / 2, Float32(2.7).cast[DType.int32](), Int(Float32(2.7)))
    print(any([False, True]), all([True, True]))

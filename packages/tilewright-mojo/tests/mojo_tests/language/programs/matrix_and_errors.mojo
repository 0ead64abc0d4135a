# SPDX-License-Identifier: Apache-2.0
from std.math import sqrt
from std.random import seed, random_float64
from std.time import perf_counter_ns
from std.testing import assert_equal, assert_true, assert_almost_equal, assert_raises
from std.utils import Variant, IndexList
from std.os import abort

comptime Number = Variant[Int, Float64]


@fieldwise_init
struct ParseError(Copyable, Movable, Writable):
    var message: String
    var line: Int

    def write_to(self, mut writer: Some[Writer]):
        writer.write("ParseError(", self.message, ", line ", self.line, ")")


def parse(s: String) raises ParseError -> Int:
    if s == "":
        raise ParseError("empty", 3)
    return s.byte_length()


struct Matrix[rows: Int, cols: Int, dtype: DType = DType.float32](Copyable, Movable, Writable):
    var data: List[Scalar[Self.dtype]]

    def __init__(out self, fill: Scalar[Self.dtype] = 0):
        self.data = List[Scalar[Self.dtype]](length=Self.rows * Self.cols, fill=fill)

    def __getitem__(self, r: Int, c: Int) -> Scalar[Self.dtype]:
        return self.data[r * Self.cols + c]

    def __setitem__(mut self, r: Int, c: Int, v: Scalar[Self.dtype]):
        self.data[r * Self.cols + c] = v

    def __matmul__[k: Int](self, other: Matrix[Self.cols, k, Self.dtype]) -> Matrix[Self.rows, k, Self.dtype]:
        var out = Matrix[Self.rows, k, Self.dtype]()
        for i in range(Self.rows):
            for j in range(k):
                var acc: Scalar[Self.dtype] = 0
                for l in range(Self.cols):
                    acc += self[i, l] * other[l, j]
                out[i, j] = acc
        return out^

    def write_to(self, mut writer: Some[Writer]):
        for i in range(Self.rows):
            for j in range(Self.cols):
                if j:
                    writer.write(" ")
                writer.write(self[i, j])
            writer.write("\n")


struct Countdown(Iterable, Iterator, Copyable, Movable):
    comptime Element = Int
    comptime IteratorType[m: Bool, //, o: Origin[mut=m]]: Iterator = Self
    var n: Int

    def __init__(out self, n: Int):
        self.n = n

    def __iter__(ref self) -> Self:
        return self.copy()

    def __next__(mut self) raises StopIteration -> Int:
        if self.n == 0:
            raise StopIteration()
        self.n -= 1
        return self.n + 1


def mean[T: DType, //](xs: List[Scalar[T]]) -> Scalar[T]:
    var t = Scalar[T](0)
    for x in xs:
        t += x
    return t / Scalar[T](len(xs))


def largest[T: Comparable & Copyable & Movable & ImplicitlyCopyable](a: T, b: T) -> T:
    return a if a > b else b


def compose(f: def(Int) thin -> Int, g: def(Int) thin -> Int, x: Int) -> Int:
    return f(g(x))


def inc(x: Int) -> Int:
    return x + 1


def dbl(x: Int) -> Int:
    return x * 2


@always_inline
def clamp_to[lo: Int, hi: Int](x: Int) -> Int where lo <= hi:
    return max(lo, min(hi, x))


comptime PRIMES = sieve(20)


def sieve(n: Int) -> List[Int]:
    var out = List[Int]()
    for i in range(2, n):
        var prime = True
        for p in out:
            if i % p == 0:
                prime = False
                break
        if prime:
            out.append(i)
    return out^


def main() raises:
    try:
        print(parse("abc"))
        print(parse(""))
    except e:
        print(e.message, e.line, e)
    var m = Matrix[2, 2](1)
    m[0, 1] = 5
    print(m @ m, end="")
    m[1, 1] += 2
    print(m[1, 1])
    for i in Countdown(3):
        print(i, end=" ")
    print()
    print(mean([Float32(1), Float32(2), Float32(6)]), largest(3, 9), largest(2.5, 1.5))
    print(compose(inc, dbl, 5), clamp_to[0, 10](42))
    print(materialize[PRIMES]())
    var n: Number = 3
    if n.isa[Int]():
        print("int", n[Int])
    n = 2.5
    print(n.isa[Float64](), n[Float64])
    assert_equal(1 + 1, 2)
    assert_almost_equal(Float64(0.1) + 0.2, 0.3, atol=1e-9)
    with assert_raises(contains="boom"):
        raise Error("boom!")
    try:
        assert_true(False, "told you")
    except e:
        print("assertion" in String(e) or "told you" in String(e))
    var il = IndexList[3](1, 2, 3)
    print(il, il[1], len(il))
    var t0 = perf_counter_ns()
    seed(1)
    var r = random_float64()
    print(r < 1.0, perf_counter_ns() >= t0)
    var p = alloc[Int](4)
    for i in range(4):
        p[i] = i * i
    print(p[3], (p + 1)[])
    p.free()
    var arr = Array[Int, 3](fill=7)
    arr[1] = 8
    print(arr[0], arr[1], len(arr))
    var sp = Span(arr)
    print(len(sp), sp[2])
    var x = 5
    ref rx = x
    rx += 1
    print(x)
    comptime width = 4
    comptime if width > 2:
        print("wide")
    comptime assert width == 4, "width"
    var total = 0
    comptime for i in range(1, 10, 3):
        total += i
    print(total)
    var name: String = "x"
    if name == "x" and not (total > 100 or False):
        pass
    print(len("abc".codepoints()), [1.5, 2.5], ("a", 1))
    var words: List[String] = ["pear", "fig", "apple"]
    sort(words)
    print(words, ", ".join(words))
    var freq = Dict[String, Int]()
    for w in ["a", "b", "a"]:
        freq[w] = freq.get(w, 0) + 1
    print(freq)

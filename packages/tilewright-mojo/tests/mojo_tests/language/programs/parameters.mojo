comptime Pair = Tuple[Int, Int]
comptime Doubled[n: Int] = n * 2
comptime table = [1, 2, 4, 8]

def product[*factors: Int]() -> Int:
    var result = 1
    comptime for i in range(len(factors)):
        result *= factors[i]
    return result

def first_of[T: Copyable & Writable, //](values: List[T]) -> T:
    return values[0].copy()

def lanes[dtype: DType, width: SIMDLength, //](v: SIMD[dtype, width]) -> String:
    return String(dtype, " x ", Int(width))

def pick[flag: Bool](a: Int, b: Int) -> Int:
    comptime if flag:
        return a
    else:
        return b

def compare[a: Int, b: Int]() -> String where a < b:
    return "less"

def compare[a: Int, b: Int]() -> String where a >= b:
    return "not less"

def kind[n: Int]() -> String:
    return String("int ", n)

def kind[s: StaticString]() -> String:
    return String("text ", s)

def named[*, rows: Int, cols: Int = rows]() -> Int:
    return rows * 10 + cols

struct Buffer[dtype: DType, size: Int](Copyable, Sized):
    comptime Element = Scalar[Self.dtype]
    comptime bytes = Self.size * 4
    var data: Array[Self.Element, Self.size]

    def __init__(out self, fill: Self.Element = 0):
        self.data = Array[Self.Element, Self.size](fill=fill)

    @staticmethod
    def capacity() -> Int:
        return Self.size

    def sum(self) -> Self.Element:
        var total: Self.Element = 0
        for i in range(Self.size):
            total += self.data[i]
        return total

    def resized[new_size: Int](self) -> Buffer[Self.dtype, new_size]:
        return Buffer[Self.dtype, new_size](self.data[0])

    def __len__(self) -> Int:
        return Self.size

def total[dtype: DType, n: Int](buffer: Buffer[dtype, n]) -> Scalar[dtype]:
    return buffer.sum()

def show_all[*Ts: Writable](*values: *Ts):
    comptime for i in range(values.__len__()):
        print(values[i], end="|")
    print()

def apply_all[f: def(Int) thin -> Int, n: Int]() -> Int:
    var sum = 0
    for i in range(n):
        sum += f(i)
    return sum

def cube(x: Int) -> Int:
    return x * x * x

def main() raises:
    var p: Pair = (1, 2)
    print(p[0] + p[1], Doubled[21], product[2, 3, 7](), product[]())
    comptime size = Doubled[4] + 1
    print(size, pick[True](1, 2), pick[size > 100](1, 2))
    print(first_of([7, 8]), first_of(["a", "b"]), lanes(SIMD[DType.uint8, 4](1)))
    print(compare[1, 2](), compare[2, 1](), kind[3](), kind["x"]())
    print(named[rows=2](), named[rows=2, cols=5]())
    var b = Buffer[DType.float32, 4](1.5)
    print(b.sum(), total(b), Buffer[DType.int8, 3].capacity(), len(b.resized[2]()), b.bytes)
    show_all(1, "two", 3.5, True)
    print(apply_all[cube, 4](), materialize[table]()[2])

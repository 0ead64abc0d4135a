
def twice(x: Int) -> Int:
    return 2 * x

def greet(name: String, *, times: Int = 1) -> String:
    var text = String("")
    for k in range(times):
        if k:
            text += " "
        text += "hello " + name
    return text

def scale[factor: Int, dtype: DType](x: Scalar[dtype]) -> Scalar[dtype]:
    comptime doubled = factor * 2
    return x * Scalar[dtype](doubled)

def total(*values: Int) -> Int:
    var result = 0
    for value in values:
        result += value
    return result

def bump(mut x: Int, by: Int = 1):
    x += by

def bump_twice(mut x: Int):
    bump(x)
    bump(x, by=10)

def divide(a: Int, b: Int, out quotient: Int):
    quotient = a // b

def describe(x: Int) -> String:
    return "an Int"

def describe(x: Float64) -> String:
    return "a Float64"

def describe(x: String) -> String:
    return "a String"

def describe[T: Copyable, n: Int](x: Array[T, n]) -> String:
    return "an Array"

def width_of[dtype: DType, n: SIMDLength](v: SIMD[dtype, n]) -> Int:
    return Int(n)

def power[n: Int](x: Int) -> Int:
    comptime if n == 0:
        return 1
    else:
        return x * power[n - 1](x)

def apply[f: def(Int) thin -> Int](x: Int) -> Int:
    return f(x)

def defaults[a: Int, b: Int = a * 2]() -> Int:
    return b

def main() raises:
    print(twice(4), greet("you"), greet("we", times=2))
    print(scale[3](Float32(1.5)), scale[2](Int8(5)))
    print(total(), total(1, 2, 3))
    var n = 1
    bump(n)
    bump_twice(n)
    print(n, divide(17, 5))
    print(describe(1), describe(1.5), describe("x"), describe(Array[Int, 2](fill=0)))
    print(width_of(SIMD[DType.int16, 8](0)), power[5](2), apply[twice](21))
    print(defaults[3](), defaults[3, 4]())
    var numbers: List[Int] = [3, 1, 2]
    bump(numbers[1], by=5)
    print(numbers, len(numbers))
    var a = 1
    var b = 2
    swap(a, b)
    print(a, b)

# SPDX-License-Identifier: Apache-2.0
from std.math import sqrt, iota, ceildiv, exp, fma, floor, ceil, sin, log, clamp, gcd, align_up
from std.sys import simd_width_of

def dot[dt: DType, w: SIMDLength](a: SIMD[dt, w], b: SIMD[dt, w]) -> Scalar[dt]:
    return (a * b).reduce_add()

def fact[n: Int]() -> Int:
    comptime if n <= 1:
        return 1
    else:
        return n * fact[n - 1]()

comptime TABLE = [1, 2, 3]

def main() raises:
    var v = SIMD[DType.float32, 4](1, 2, 3, 4)
    var w = SIMD[DType.float32, 4](2)
    print(v, v * w, v + 1, dot(v, w))
    print(v.reduce_max(), v.reduce_min(), v.reduce_mul(), sqrt(v))
    print(v.cast[DType.int32](), v.shuffle[3, 2, 1, 0]())
    print(v.gt(2.0).select(v, w))
    print(v.slice[2, offset=1](), v.join(w))
    print(iota[DType.int32, 8](), iota[DType.int32, 4](10))
    comptime for i in range(3):
        print(i, fact[i + 3]())
    var m = v.lt(3)
    print(m, any(m), all(m))
    print(v.fma(w, v), v[2], len(v))
    var x: UInt8 = 250
    x += 10
    print(x)
    var y: Int8 = 127
    print(y + 1)
    print(7 // 2, -7 // 2, -7 % 3, 7 / 2, 2 ** 10)
    print(Int32(7) // Int32(-2), Int32(-7) % Int32(3))
    print(ceildiv(10, 3), min(3, 4), max(2.5, 1.0), abs(-3), round(2.567, 2))
    print(divmod(17, 5))
    var a, b = (1, 2)
    a, b = b, a
    print(a, b)
    print(Float32(0.1), Float64(0.1), Float16(0.1), BFloat16(0.1))
    print(1e10, 1e-5, 1.0e20, Float32(16777216.0), 123456789.0)
    print(DType.float32, DType.int8.is_signed(), Float32.MAX, Int32.MAX, Int8.MIN, UInt64.MAX)
    print(0xFF, 0b101, 0o17, 1_000_000)
    print(5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 4, 256 >> 2)
    print(v.rotate_left[1](), v.shift_left[1](), v.reversed())
    var t = (1, "two", 3.0)
    print(t[0], t[1], t[2], len(t))
    print(t)
    var bb = SIMD[DType.bool, 4](True, False, True, True)
    print(bb, ~bb, bb.reduce_or(), bb.reduce_and(), bb.cast[DType.int32]().reduce_add())
    print(exp(Float32(1)), fma(2.0, 3.0, 1.0))
    print(v.deinterleave()[0], v.interleave(w))
    print(v == w, v.eq(w))
    print(Int(Float32(-3.9)), Bool(3), Float32(3) // 2)
    print(v.clamp(2, 3), round(v * 1.3), floor(v * 1.5), ceil(v * 1.5))
    print(clamp(5, 0, 3), gcd(12, 18), align_up(13, 8))
    print(sin(Float64(0.5)), log(Float32(2)))
    print(Float32(1) / 3, Float64(1) / 0, Float32(5).cast[DType.int32]())
    print(v.reduce_add[2](), v.insert[offset=2](SIMD[DType.float32, 2](9)))
    print(SIMD[DType.int32, 4](1, 2, 3, 4) << 1, SIMD[DType.int32, 4](5) % 3)

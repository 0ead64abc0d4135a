comptime big = 1e20
def show(x: Float64):
    print(x)
def main() raises:
    print(1e20, 1e16, 1e15, 123456789.125, 1e-4, 1e-5, 1.5e-7, 0.1 + 0.2)
    print(Float32(1e20), Float32(0.1), Float32(1) / 3, Float32(16777216), Float32(1e-5))
    var x = 1e16
    print(x, -x, x * 10, big, -0.0)
    show(3)
    print(Float16(0.1), BFloat16(0.1), Float64(1) / 0, -Float64(1) / 0)
    print(True, False)
    var t = (1, 2.5, True, "s")
    print(t)
    print([1.5, 2.0], ["a", "b"], [True])
    var o: Optional[Int] = 3
    print(o)
    print(String(1.0), String(10), String(True), String([1, 2]))
    print(repr("a"), repr(1.5))
    print("a", "b", sep="-", end="!\n")
    var i = Int.MAX
    print(i, UInt8(255) + 1, Int8(-128) - 1)
    print(1 << 62, 1 << 3, -1 >> 1, Int(True), Bool(0))
    print(hex(255), bin(5), oct(8), ord("a"), chr(98))
    print(t"{1.5} {2} {True} {'q'}", "x=" + String(4))
    var s = "héllo"
    print(s, s.byte_length(), len(s.codepoints()))
    print(Int("42") + 1, Float64("2.5"), atol("7"))

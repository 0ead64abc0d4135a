@fieldwise_init
struct Vec(ImplicitlyCopyable, Writable, Equatable):
    var x: Float64
    var y: Float64

    def __add__(self, o: Self) -> Self:
        return {self.x + o.x, self.y + o.y}

    def __sub__(self, o: Self) -> Self:
        return {self.x - o.x, self.y - o.y}

    def __mul__(self, k: Float64) -> Self:
        return {self.x * k, self.y * k}

    def __rmul__(self, k: Float64) -> Self:
        return self * k

    def __matmul__(self, o: Self) -> Float64:
        return self.x * o.x + self.y * o.y

    def __getitem__(self, i: Int) -> Float64:
        return self.x if i == 0 else self.y

    def __setitem__(mut self, i: Int, value: Float64):
        if i == 0:
            self.x = value
        else:
            self.y = value

    def __bool__(self) -> Bool:
        return self.x != 0 or self.y != 0

    def __call__(self, t: Float64) -> Float64:
        return self.x * t + self.y

    def __contains__(self, v: Float64) -> Bool:
        return v == self.x or v == self.y

    def __isub__(mut self, o: Self):
        self = self - o

struct Bits(Copyable, Intable):
    var n: Int

    def __init__(out self, n: Int):
        self.n = n

    def __or__(self, o: Self) -> Self:
        return Self(self.n | o.n)

    def __and__(self, o: Self) -> Self:
        return Self(self.n & o.n)

    def __invert__(self) -> Self:
        return Self(~self.n)

    def __lshift__(self, k: Int) -> Self:
        return Self(self.n << k)

    def __pow__(self, k: Int) -> Int:
        return self.n**k

    def __int__(self) -> Int:
        return self.n

def main() raises:
    var a = Vec(1, 2)
    var b = Vec(3, 4)
    print(a + b, a - b, a * 2, 2.0 * a, a @ b)
    a[0] = 10
    a[1] += 5
    print(a[0], a[1], a(2), 10.0 in a, 3.0 in a, True if a else False)
    b -= Vec(3, 4)
    print(b, "empty" if not b else "full")
    print((Bits(6) | Bits(1)).n, (Bits(6) & Bits(3)).n, (~Bits(0)).n, (Bits(1) << 4).n, Bits(2) ** 5, Int(Bits(9)))
    var u: UInt8 = 7
    print(u & 3, u | 8, u ^ 1, u << 1, u >> 1, -Int8(5), u // 2, u % 4)
    print(Float32(7) // 2, Float32(7) % 2, Float64(2) ** 3, 7.5 // 2)
    var i = 7
    i //= 2
    i <<= 3
    i |= 1
    i ^= 5
    i %= 17
    i **= 2
    print(i)
    print(1 if i > 3 and i < 10 or i == 64 else 0, not (i == 64), i != 3, 5 in [1, 5])
    var s: String = "ab"
    s += "cd"
    s = s * 2
    print(s, s == "abcdabcd", "x" < "y")

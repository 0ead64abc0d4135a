comptime n = 7
def f[k: Int]() -> String:
    return String(k / 2, " ", k // 2, " ", -k / 2)
def main():
    var m = 7
    var z = -7
    print(m / 2, z / 2, m // 2, z // 2, z % 2, m % -2)
    print(n / 2, 7 / 2, f[7]())
    var x = 7 / 2
    print(x)
    m /= 2
    print(m)
    print(Int32(7) / 2, Int32(-7) / 2, UInt(7) / 2, Int32(-7) // 2, Int32(-7) % 4)

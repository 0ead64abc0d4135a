def classify(n: Int) -> String:
    if n < 0:
        return "negative"
    elif n == 0:
        return "zero"
    return "small" if n < 10 else "large"

def find(values: List[Int], wanted: Int) -> Int:
    for i in range(len(values)):
        if values[i] == wanted:
            break
    else:
        return -1
    return 1

def risky(n: Int) raises -> Int:
    if n > 2:
        raise Error("too large: ", n)
    return n

def attempt(n: Int) -> String:
    try:
        var value = risky(n)
        return String("ok ", value)
    except e:
        return String("failed: ", e)

def cleanup() raises:
    try:
        print("try")
        _ = risky(1)
    except e:
        print("except")
    else:
        print("else")
    finally:
        print("finally")

def main() raises:
    print(classify(-1), classify(0), classify(5), classify(50))
    print(find([4, 5], 5), find([4, 5], 6))
    print(attempt(1), attempt(3))
    cleanup()
    var i = 0
    while True:
        i += 1
        if i == 2:
            continue
        if i > 4:
            break
    print(i)
    var x = 1
    if x == 1:
        var x = 2
        x += 1
        print("inner", x)
    print("outer", x)
    comptime for k in range(3):
        print(k, end=" ")
    print()
    var values: List[Int] = [1, 2, 3]
    for ref value in values:
        value *= 10
    print(values)
    ref first = values[0]
    first += 1
    print(values[0])
    var a, b = 3, 4
    (a, b) = (b, a)
    print(a, b, 1 < a < 5, not a == 4, a // -3, a % -3, -7 // 2, -7 % 3, 2**10, 7 / 2)
    print(0xFF, 0b101, 0o17, 1_000, 6 & 3, 6 | 3, 6 ^ 3, ~6, 1 << 4, 256 >> 4)
    var squares = [k * k for k in range(5) if k % 2 == 0]
    print(squares)
    print(t"{a} + {b} = {a + b}", t"{{braces}}", 'single', "tab\tend", r"raw\n")
    print("""three
lines
here""")
    var text = String("abc")
    print(text + "def", 1 if text else 0, "b" in text)

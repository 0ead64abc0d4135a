def call[f: def(Int) capturing [_] -> None](n: Int):
    for k in range(n):
        f(k)

def main() raises:
    var total = 0

    def add(k: Int) {mut total}:
        total += k

    add(3)
    add(4)
    print(total)
    var offset = 10

    def shifted(k: Int) {imm offset} -> Int:
        return k + offset

    var snapshot = 5

    def frozen() {var snapshot} -> Int:
        return snapshot

    snapshot = 50
    offset = 20
    print(shifted(1), frozen(), snapshot)
    var square = lambda (x: Int) -> Int: x * x
    print(square(7))

    def outer(x: Int) -> Int:
        def inner(y: Int) {imm x} -> Int:
            return x * y
        return inner(x + 1)

    print(outer(4))

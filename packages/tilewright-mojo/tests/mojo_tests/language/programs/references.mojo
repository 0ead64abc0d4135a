def first[T: Copyable](ref data: List[T]) -> ref[data[0]] T:
    return data[0]

struct Pairs:
    var a: List[Int]
    def __init__(out self):
        self.a = [1, 2]
    def at(ref self, i: Int) -> ref[self.a[0]] Int:
        return self.a[i]

def main() raises:
    var l: List[Int] = [10, 20]
    ref x = first(l)
    x = 99
    print(l, first(l))
    first(l) = 5
    print(l)
    var p = Pairs()
    ref y = p.at(1)
    y += 40
    p.at(0) = 7
    p.at(0) += 1
    print(p.a)

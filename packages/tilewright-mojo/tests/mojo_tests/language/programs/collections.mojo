# SPDX-License-Identifier: Apache-2.0
from std.collections import Dict, List, Optional, Set

trait Shape(Copyable, Movable):
    def area(self) -> Float64:
        ...

    def name(self) -> String:
        return "shape"


@fieldwise_init
struct Square(Shape, Writable):
    var side: Float64

    def area(self) -> Float64:
        return self.side * self.side

    def write_to(self, mut writer: Some[Writer]):
        writer.write("Square(", self.side, ")")


@fieldwise_init
struct Circle(Shape):
    var r: Float64
    comptime PI = 3.0

    def area(self) -> Float64:
        return Self.PI * self.r ** 2

    def name(self) -> String:
        return "circle"


def describe[T: Shape](s: T) -> String:
    return String(s.name(), " of area ", s.area())


struct Stack[T: Copyable & Movable & Deinitable](Sized, Boolable):
    var items: List[Self.T]

    def __init__(out self):
        self.items = List[Self.T]()

    def push(mut self, var x: Self.T):
        self.items.append(x^)

    def pop(mut self) raises -> Self.T:
        if len(self.items) == 0:
            raise Error("empty stack")
        return self.items.pop()

    def __len__(self) -> Int:
        return len(self.items)

    def __bool__(self) -> Bool:
        return len(self) > 0


def main() raises:
    print(describe(Square(2.0)), describe(Circle(1.0)))
    print(Square(3))
    var s = Stack[Int]()
    for i in range(4):
        s.push(i * i)
    while s:
        print(s.pop(), end=" ")
    print()
    try:
        _ = s.pop()
    except e:
        print("caught:", e)
    finally:
        print("finally")
    var d: Dict[String, Int] = {"a": 1, "b": 2}
    d["c"] = 3
    for entry in d.items():
        print(entry.key, entry.value)
    for k in d:
        print(k, d[k])
    for v in d.values():
        print(v)
    print(d.get("z").or_else(-1), d.get("a", 9), "a" in d, len(d))
    print(d.pop("a"), len(d))
    print(d)
    print(d.setdefault("q", 8), d.find("q").value())
    d.update({"b": 20})
    print(d["b"])
    try:
        print(d["nope"])
    except e:
        print("no key:", e)
    var o: Optional[Int] = None
    print(o.__bool__(), o.or_else(5))
    o = 7
    if o:
        print(o.value(), o)
    print(o.take(), o is None, o)
    var st: Set[Int] = {1, 2, 3}
    st.add(2)
    print(len(st), 2 in st, 5 in st)
    print(len(st | {7, 8}), len(st & {1}), len(st - {1}))
    st.discard(1)
    print(st)
    var l: List[Int] = [3, 1, 2]
    sort(l)
    print(l, l.index(2), 3 in l)
    l.extend([9, 8])
    l.insert(0, 100)
    l.reverse()
    print(l, len(l), l[len(l) - 1])
    print(l.pop(0), l.count(9), l)
    l.resize(2, 0)
    print(l, l.copy() == l)
    l.clear()
    print(l, Bool(l))
    var sq = [x * x for x in range(5) if x % 2 == 0]
    print(sq)
    var dd = {x: x * 2 for x in range(3)}
    print(dd)
    var nested: List[List[Int]] = [[1, 2], [3]]
    print(nested[0][1], len(nested))
    var big = List[Int](length=3, fill=7)
    print(big, big[1:3])
    sort(big, descending)



def descending(a: Int, b: Int) -> Bool:
    return a > b

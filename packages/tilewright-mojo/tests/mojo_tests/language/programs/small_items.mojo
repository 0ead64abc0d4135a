# SPDX-License-Identifier: Apache-2.0
from std.utils import Variant
from std.collections import Set

@fieldwise_init
struct Item(Copyable, Movable, Comparable, Writable):
    var name: String
    var price: Float64

    def __lt__(self, o: Self) -> Bool:
        return self.price < o.price

    def __eq__(self, o: Self) -> Bool:
        return self.price == o.price

    def write_to(self, mut writer: Some[Writer]):
        writer.write(self.name, "=", self.price)


@fieldwise_init
struct Plain(Writable, Copyable, Equatable, Hashable):
    var a: Int
    var b: String




def find(xs: List[Int], wanted: Int) -> Optional[Int]:
    for i in range(len(xs)):
        if xs[i] == wanted:
            return i
    return None


def main() raises:
    var items: List[Item] = [Item("pen", 2.5), Item("cup", 1.25)]
    sort(items)
    for ref item in items:
        item.price *= 2
    print(items[0], items[1].name)
    print(Plain(1, "x"), Plain(1, "x") == Plain(1, "x"))
    var f = find([4, 5], 5)
    if f:
        print(f.value())
    print(find([4], 9).or_else(-1))
    var found = find([4], 4)
    if found is not None:
        print("found")
    var total = 0
    for v in {"a": 1, "b": 2}.values():
        total += v
    print(total)
    var v = Variant[Int, String](4)
    v = String("x")
    print(v[String])
    var m = Dict[String, List[Int]]()
    m["x"] = [1]
    m["x"].append(2)
    print(m["x"])
    m.setdefault("y", []).append(9)
    print(m["y"], len(m))
    var text = String("a=1;b=2")
    for part in text.split(";"):
        var kv = part.split("=")
        print(kv[0], Int(kv[1]) * 10)
    print(String("abc")[byte=0], text.count("="), text.find("b"))
    var t = ("x", 3)
    var (a, b) = t
    print(a, b)
    assert total == 3, "total"
    var u: UInt = 5
    print(u - 3, UInt(7) // 2)
    print([i for i in range(3)], {i for i in range(2)})
    print(Optional(3).value() + 1, Optional[String]("s"))
    var x = Float32(1.5)
    print(t"{x} and {items[0].name}")

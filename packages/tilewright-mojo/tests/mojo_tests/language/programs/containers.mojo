from std.testing import assert_equal, assert_raises

trait Animal:
    def name(self) -> String: ...
    def speak(self) -> String:
        return self.name() + "!"

@fieldwise_init
struct Dog(Animal, Copyable):
    def name(self) -> String:
        return "dog"

def loud[A: Animal](a: A) -> String:
    return a.speak()

def describe(a: Some[Animal]) -> String:
    return a.name()

struct Node[T: ImplicitlyCopyable & Deinitable](Copyable):
    var value: Self.T
    var next: Optional[Int]
    def __init__(out self, value: Self.T, next: Optional[Int] = None):
        self.value = value
        self.next = next

def fails() raises:
    raise Error("broken")

def main() raises:
    print(loud(Dog()), describe(Dog()))
    var n = Node(3)
    n.next = 5
    print(n.value, n.next.value(), n.next.value() + 1)
    with assert_raises(contains="brok"):
        fails()
    var d = Dict[String, Int]()
    d["a"] = 1
    d["b"] = 2
    for key in d:
        print(key, d[key])
    for e in d.items():
        print(e.key, e.value)
    if "c" not in d:
        print("no c")
    var t = (1, 2.5, "x")
    var (a, b, c) = t
    print(a, b, c)
    var nested = [[1, 2], [3, 4]]
    nested[0][1] = 9
    print(nested[0][1], len(nested))
    var text = "a,b,c"
    for part in text.split(","):
        print(part, end=" ")
    print()
    print(text.upper(), text.replace("a", "z"), text.find("b"), String("-").join(["x", "y"]))
    var m: Int = 7
    var f = Float64(m) / 2
    print(f, Int(f), round(f), m / 2, Float32(m) / 2)
    print(max(1, 2, 3), min(2, 1), abs(-1.5), pow(2, 3), divmod(7, 2))
    assert_equal(len(d), 2)

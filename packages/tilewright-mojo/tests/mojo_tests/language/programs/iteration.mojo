struct Steps(Copyable, Iterable, Iterator):
    comptime Element = Int
    comptime IteratorType[o: Origin]: Iterator = Self
    var at: Int
    var stop: Int

    def __init__(out self, stop: Int):
        self.at = 0
        self.stop = stop

    def __iter__(ref self) -> Self:
        return self.copy()

    def __next__(mut self) raises StopIteration -> Int:
        if self.at >= self.stop:
            raise StopIteration()
        self.at += 1
        return self.at

@fieldwise_init
struct Version(Comparable, ImplicitlyCopyable):
    var major: Int
    var minor: Int

    def __lt__(self, other: Self) -> Bool:
        if self.major != other.major:
            return self.major < other.major
        return self.minor < other.minor

    def __eq__(self, other: Self) -> Bool:
        return self.major == other.major and self.minor == other.minor

@fieldwise_init
struct NotPositive(Copyable, Writable):
    var value: Int

    def write_to(self, mut writer: Some[Writer]):
        writer.write("not positive: ", self.value)

def root(n: Int) raises NotPositive -> Int:
    if n <= 0:
        raise NotPositive(n)
    return n

def main() raises:
    for step in Steps(3):
        print(step, end=" ")
    print()
    print(Version(1, 2) < Version(1, 3), Version(2, 0) > Version(1, 9), Version(1, 1) <= Version(1, 1))
    try:
        _ = root(-4)
    except e:
        print(e, e.value)
    var ages: Dict[String, Int] = {"ann": 3, "bob": 4}
    ages["cid"] = 5
    for item in ages.items():
        print(item.key, item.value, end="; ")
    print(len(ages), "ann" in ages, ages["bob"])
    var maybe: Optional[Int] = None
    print(maybe.or_else(7))
    maybe = 4
    if maybe:
        print(maybe.value())
    for i, name in enumerate(["x", "y"]):
        print(i, name, end=" ")
    print()
    for i in range(10, 0, -3):
        print(i, end=" ")
    print()
    var three: List[Int] = [1, 2, 3]
    for value in reversed(three):
        print(value, end=" ")
    print()
    var words: List[String] = ["b", "a"]
    words.append("c")
    words.insert(0, "z")
    _ = words.pop()
    print(words, len(words))

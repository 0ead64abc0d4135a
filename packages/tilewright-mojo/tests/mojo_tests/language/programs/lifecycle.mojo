struct Loud(Movable):
    var name: String

    def __init__(out self, name: String):
        self.name = name
        print("make", self.name)

    def __del__(deinit self):
        print("end", self.name)

def use(x: Loud):
    print("use", x.name)

def consume(var x: Loud):
    print("consume", x.name)

struct Tracked(Copyable):
    var n: Int

    def __init__(out self, n: Int):
        self.n = n

    def __init__(out self, *, copy: Self):
        self.n = copy.n + 1

def main():
    var a = Loud("a")
    use(a)
    var b = Loud("b")
    consume(b^)
    print("after")
    var t = Tracked(1)
    var u = t.copy()
    print(t.n, u.n)

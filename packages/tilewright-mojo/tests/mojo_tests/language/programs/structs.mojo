@fieldwise_init
struct Point(ImplicitlyCopyable, Writable, Equatable):
    var x: Int
    var y: Int

    def __add__(self, other: Self) -> Self:
        return Self(self.x + other.x, self.y + other.y)

    def __iadd__(mut self, other: Self):
        self.x += other.x
        self.y += other.y

    def __neg__(self) -> Self:
        return {-self.x, -self.y}

    @staticmethod
    def origin() -> Self:
        return Point(0, 0)

    def write_to(self, mut writer: Some[Writer]):
        writer.write("<", self.x, " ", self.y, ">")


struct Grid[rows: Int, columns: Int = rows](Sized):
    comptime size = Self.rows * Self.columns
    var data: List[Int]

    def __init__(out self, fill: Int = 0):
        self.data = List[Int](length=Self.size, fill=fill)

    def __getitem__(self, i: Int, j: Int) -> Int:
        return self.data[i * Self.columns + j]

    def __setitem__(mut self, i: Int, j: Int, value: Int):
        self.data[i * Self.columns + j] = value

    def __len__(self) -> Int:
        return Self.size


trait Shape:
    comptime corners: Int

    def area(self) -> Float64:
        ...

    def describe(self) -> String:
        return String("area ", self.area(), " with ", Self.corners, " corners")


@fieldwise_init
struct Square(Shape, Copyable):
    comptime corners = 4
    var side: Float64

    def area(self) -> Float64:
        return self.side * self.side


@fieldwise_init
struct Circle(Shape, Copyable):
    comptime corners = 0
    var radius: Float64

    def area(self) -> Float64:
        return 3.0 * self.radius * self.radius

    def describe(self) -> String:
        return "round"


def show[T: Shape](shape: T) -> String:
    return shape.describe()


@fieldwise_init
struct Pair[T: ImplicitlyCopyable & Deinitable](Copyable):
    var first: Self.T
    var second: Self.T

    def swapped(self) -> Self:
        return Self(self.second, self.first)


struct Meters(Copyable):
    var value: Float64

    @implicit
    def __init__(out self, value: Float64):
        self.value = value


def length(m: Meters) -> Float64:
    return m.value


struct Countdown:
    var left: Int

    def __init__(out self, left: Int):
        self.left = left

    def __enter__(mut self) -> Int:
        print("enter")
        return self.left

    def __exit__(mut self):
        print("exit")


def main() raises:
    var p = Point(1, 2)
    var q = p
    q.x = 10
    q += p
    print(p, q, p + q, -p, Point.origin(), p == Point(1, 2), p != q)
    var g = Grid[2, 3](fill=7)
    g[1, 2] = 5
    g[0, 0] += 1
    print(g[0, 0], g[1, 2], len(g), Grid[4].size)
    print(show(Square(2.0)), show(Circle(1.0)))
    var pair = Pair(1, 2)
    var other = pair.swapped()
    print(other.first, other.second, Pair[String]("a", "b").swapped().first)
    print(length(2.5))
    with Countdown(3) as n:
        print("inside", n)

@fieldwise_init
struct Item(Copyable, Writable):
    var name: String
    var count: Int

@fieldwise_init
struct Cell(ImplicitlyCopyable):
    var v: Int

def take(var c: Cell) -> Int:
    c.v += 100
    return c.v

def look(c: Cell) -> Int:
    return c.v

def edit(mut c: Cell):
    c.v = 7

def replace(mut c: Cell):
    c = Cell(8)

def main() raises:
    var item = Item("nut", 3)
    print(item)
    var copy = item.copy()
    copy.count = 9
    print(item.count, copy.count)
    var c = Cell(1)
    var d = c
    d.v = 2
    print(c.v, d.v, take(c), c.v, look(c))
    edit(c)
    print(c.v)
    replace(c)
    print(c.v)
    var cells = [Cell(1), Cell(2)]
    var first = cells[0]
    first.v = 50
    cells[1].v = 60
    print(cells[0].v, cells[1].v)
    var x: Float32 = 1
    x = x / 3
    print(x)
    x = 2
    print(x, x * 2, 1 / x)
    var y = 0.1
    print(y + 0.2, Float32(y), Float64(1) / 3)
    var u: UInt8 = 250
    u += 10
    print(u, Int8(127) + 1, UInt32(1) - 2)
    var t = (1, "two", 3.0)
    print(t[0], t[1], t[2], len(t))
    var v = SIMD[DType.float32, 4](1, 2, 3, 4)
    v[1] = 9
    var w = v
    w[0] = 100
    print(v, w, v.reduce_add(), v * 2 + 1)
    print(Bool(1), True and False, 3 if True else 4, min(3, 5), max(2.5, 1.5), abs(-4))

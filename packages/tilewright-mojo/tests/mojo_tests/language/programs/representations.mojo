# SPDX-License-Identifier: Apache-2.0
@fieldwise_init
struct Plain(Writable, Copyable):
    var a: Int
    var b: String
    var c: Float32

def main() raises:
    var n = 3
    print(repr(n), repr(3), repr(True), repr(2.5), repr((1, "a")))
    print(repr(Plain(1, "x", 2)))
    var l: List[String] = ["a"]
    print(repr(l))
    print(repr(Optional[Int](3)))

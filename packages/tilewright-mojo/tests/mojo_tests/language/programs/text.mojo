# SPDX-License-Identifier: Apache-2.0
def main() raises:
    var s = String("Hello, World")
    print(s.upper(), s.lower(), s.byte_length())
    print(s.find("World"), s.replace("World", "Mojo"), s.startswith("Hell"), s.endswith("x"))
    for p in s.split(","):
        print("[", p, "]", sep="")
    print("  trim ".strip(), "|", sep="")
    print("a-b-c".split("-"))
    print("x" * 3, "ab" + "cd", "b" in "abc")
    print(",".join(["a", "b", "c"]))
    print(s[byte=0:5])
    for c in "abc".codepoint_slices():
        print(c, end=";")
    print()
    print(Int("42") + 1, Float64("2.5") * 2)
    print("{} and {}".format(1, "two"))
    print("{1} {0}".format("a", "b"))
    print(String(3.0), String(True), repr("hi"))
    print(ord("a"), chr(98), hex(255), bin(5), oct(8))
    print("count", "banana".count("an"))
    var t = "tstring"
    print(t"value {t} {1 + 2}")
    print(s.as_bytes()[0])
    print("abc" < "abd", "abc" == "abc")
    var u = String()
    u += "x"
    u.write("y", 3, 2.5)
    print(u)
    print("hello".ascii_rjust(8), "hello".ascii_ljust(8), "|")
    print(s.rfind("o"), s.find("zz"), "  a ".lstrip(), "a  ".rstrip(), "|")
    print("a b  c".split(), len("a,b,,c".split(",")))
    for c in s.codepoints():
        if c.is_ascii_upper():
            print(String(c), Int(c), end=" ")
    print()
    for b in String("hi").bytes():
        print(b, end=" ")
    print()
    try:
        print(Int("abc"))
    except e:
        print(e)
    if u:
        print("not empty")
    print(String("a", 1, 2.5, True))
    print(repr(String("q\n")), String([1, 2]))
    print(s == "Hello, World", s != "x", hash("a") == hash("a"))
    print("%", 'single', """triple""")
    print("a" "b")
    print(1, 2, 3, sep=", ", end="!\n")

# SPDX-License-Identifier: Apache-2.0
from std.collections import Set, Deque, Counter
def main() raises:
    var s = {1, 2, 3}
    s.add(4)
    print(s, len(s))
    var q = Deque[Int]()
    q.append(1)
    q.append(2)
    q.appendleft(0)
    print(q.popleft(), q.pop(), len(q), q)
    var c = Counter[String]()
    c["a"] += 1
    c["a"] += 1
    print(c["a"], c["zz"])
    for item in c.most_common(1):
        print(item._value, item._count)

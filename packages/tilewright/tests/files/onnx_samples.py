# SPDX-License-Identifier: Apache-2.0
"""ONNX models, written field by field."""

import numpy as np

MATRIX = np.arange(6, dtype="<f4").reshape(2, 3)


def varint(value):
    value &= (1 << 64) - 1
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | 2) + varint(len(data)) + data


def initializer(name, shape, kind, number=None, data=b"", more=b""):
    dims = b"".join([field(1, n) for n in shape])
    values = b"" if number is None else field(number, data)
    return field(5, dims + field(2, kind) + field(8, name) + values + more)


def model(*initializers):
    node = field(1, field(4, "Add"))
    return field(1, 10) + field(2, "here") + field(7, node + b"".join(initializers) + field(2, "graph")) + field(5, 1)


def packed(values):
    return b"".join([varint(int(n)) for n in values])


def external(**entries):
    return field(14, 1) + b"".join([field(13, field(1, key) + field(2, str(each))) for key, each in entries.items()])


SOUND = model(
    initializer("a", (2, 3), 1, 9, MATRIX.tobytes()),
    initializer("b", (3,), 6, 5, packed([-1, 2, 300])),
    initializer("c", (2, 3), 1, 4, MATRIX.tobytes()),
)

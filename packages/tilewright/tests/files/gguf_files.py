# SPDX-License-Identifier: Apache-2.0
"""A small writer of GGUF files for tests, sound ones and others."""

import struct
from pathlib import Path

import numpy as np

TYPES = {"u8": 0, "i8": 1, "u16": 2, "i16": 3, "u32": 4, "i32": 5, "f32": 6, "u64": 10, "i64": 11, "f64": 12}
CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
KINDS = {"float32": 0, "float16": 1, "int8": 24, "int16": 25, "int32": 26, "int64": 27, "float64": 28, "bfloat16": 30}


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def typed(value):
    """Return the type number and the bytes of a value; a pair (type, value) chooses the type."""
    if isinstance(value, bool):
        return 7, bytes([value])
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str | bytes):
        return 8, text(value)
    if isinstance(value, list):
        items = [typed(each) for each in value]
        kind = items[0][0] if items else 4
        return 9, struct.pack("<IQ", kind, len(items)) + b"".join([data for _, data in items])
    kind = TYPES[value[0]]
    return kind, struct.pack(f"<{CODES[kind]}", value[1])


def gguf_bytes(tensors, metadata=None, version=3, alignment=32):
    """Return a GGUF file: tensors by name are arrays, or (type number, shape, bytes); the metadata may be pairs."""
    pairs = list(metadata.items()) if isinstance(metadata, dict) else list(metadata or [])
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    for key, value in pairs:
        kind, data = typed(value)
        head += text(key) + struct.pack("<I", kind) + data
    body = b""
    for name, value in tensors.items() if isinstance(tensors, dict) else tensors:
        if isinstance(value, np.ndarray):
            value = KINDS[value.dtype.name], value.shape, value.tobytes()
        kind, shape, data = value
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
        head += struct.pack("<IQ", kind, len(body))
        body += data + bytes(-len(data) % alignment)
    return head + bytes(-len(head) % alignment) + body


def write_gguf(path, tensors, metadata=None, **options):
    Path(path).write_bytes(gguf_bytes(tensors, metadata, **options))
    return Path(path)

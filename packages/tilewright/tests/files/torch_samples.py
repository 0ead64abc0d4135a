# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as torch writes them, made without torch: pickles by opcodes, in both containers."""

from __future__ import annotations

import io
import struct
import zipfile


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def integer(value):
    if value < 0 or value >= 1 << 31:
        data = value.to_bytes(16, "little", signed=True)
        return b"\x8a" + bytes([len(data)]) + data
    return b"J" + struct.pack("<i", value)


def integers(values):
    return b"(" + b"".join(map(integer, values)) + b"t"


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def tensor(key, shape, strides, offset=0, kind="FloatStorage", count=6, metadata=b""):
    storage = b"(" + text("storage") + name("torch", kind) + text(key) + text("cpu") + integer(count) + b"tQ"
    arguments = storage + integer(offset) + integers(shape) + integers(strides) + b"\x89}" + metadata
    return name("torch._utils", "_rebuild_tensor_v2") + b"(" + arguments + b"tR"


def dictionary(entries):
    return b"}(" + b"".join([text(key) + value for key, value in entries.items()]) + b"u"


def pickle(value):
    return b"\x80\x02" + value + b"."


def zipped(value, storages, prefix="model/", byteorder=None, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(f"{prefix}data.pkl", pickle(value))
        for key, data in storages.items():
            archive.writestr(f"{prefix}data/{key}", data)
        if byteorder is not None:
            archive.writestr(f"{prefix}byteorder", byteorder)
    return file.getvalue()


def legacy(value, storages, itemsize=4, is_little=True):
    magic = b"\x8a\x0a" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little")
    system = b"}" + text("little_endian") + (b"\x88" if is_little else b"\x89") + b"s"
    keys = b"](" + b"".join(map(text, storages)) + b"e"
    start = b"".join(map(pickle, [magic, integer(1001), system, value, keys]))
    return start + b"".join([struct.pack("<q", len(data) // itemsize) + data for data in storages.values()])

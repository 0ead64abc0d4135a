# SPDX-License-Identifier: Apache-2.0
"""Change what a file says, and keep its frame sound: lengths and checksums that a parser would refuse at once.

A fuzzer that only changes bytes seldom gets past them. Half of the inputs that have a frame are changed inside of it.
"""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable

Change = Callable[[bytes, int], bytes]  # of some bytes, into at most so many

# Where a parser finds the length of its header: the bytes before it, and how many of them hold the length.
LENGTHS = {"safetensors": (8, 8), "tensorbin": (8, 8), "npy": (10, 2)}

# Numbers at which sizes overflow or come to nothing.
NUMBERS = [0, -1, 1, 255, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63)]


def changed(parser: str, data: bytes, most: int, seed: int, change: Change) -> bytes:
    """Return the bytes with a change, in half of the cases inside of their frame."""
    if random.Random(seed).random() < 0.5:
        if parser in LENGTHS:
            return with_new_header(data, *LENGTHS[parser], most, change)
        if parser == "npz" or (parser == "torch" and data.startswith(b"PK")):
            return with_new_member(data, most, seed, change)
    return change(data, most)


def with_new_header(data: bytes, start: int, width: int, most: int, change: Change) -> bytes:
    """Return a file with another header, and the length of that."""
    length = int.from_bytes(data[start - width : start], "little")
    if not 0 < length <= len(data) - start:
        return change(data, most)
    rest = data[start + length :]
    header = change(data[start : start + length], max(1, min(most - start - len(rest), (1 << 8 * width) - 1)))
    return data[: start - width] + len(header).to_bytes(width, "little") + header + rest


def with_new_member(data: bytes, most: int, seed: int, change: Change) -> bytes:
    """Return an archive in which one member is another, with the checksum of that."""
    chance = random.Random(seed)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            held = [(info, archive.read(info)) for info in archive.infolist()]
    except Exception:  # of a damaged archive anything
        held = []
    if not held:
        return change(data, most)
    chosen = chance.randrange(len(held))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for k, (info, member) in enumerate(held):
            if k == chosen:
                inner = "npy" if info.filename.endswith(".npy") else ""
                member = changed(inner, member, max(1, most // 2), seed + 1, change)
            archive.writestr(info.filename, member)
    whole = made.getvalue()
    return whole if len(whole) <= most else change(data, most)


def dictionary(sound: list[bytes]) -> str:
    """Return the words of sound files, and numbers to put beside them, as a dictionary of libFuzzer."""
    words = {word for data in sound for word in re.findall(rb'"[^"\x00-\x1f]{1,40}"|[A-Za-z_]{3,20}', data)}
    words |= {str(number).encode() for number in NUMBERS}
    words |= {(number % 2**64).to_bytes(8, "little") for number in NUMBERS}
    return "".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in sorted(words))

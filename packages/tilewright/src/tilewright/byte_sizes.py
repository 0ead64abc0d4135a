# SPDX-License-Identifier: Apache-2.0
"""Sizes in bytes, as people type and read them: `64KiB`, `1.5 GiB`, `4096`."""

from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1}
_UNITS |= {unit: 1024 ** (k + 1) for k, unit in enumerate(("KIB", "MIB", "GIB", "TIB"))}
_UNITS |= {unit: 1000 ** (k + 1) for k, unit in enumerate(("KB", "MB", "GB", "TB"))}
_UNITS |= {unit: 1024 ** (k + 1) for k, unit in enumerate(("K", "M", "G", "T"))}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) *([A-Za-z]{0,3})", re.ASCII)


def parse_size(text: str) -> int | None:
    """Return the number of bytes that `text` spells, or None if it is not a size.

    >>> parse_size("64KiB"), parse_size("1.5 K"), parse_size("4096"), parse_size("4 apples")
    (65536, 1536, 4096, None)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].upper() not in _UNITS:
        return None
    number, unit = found[1], _UNITS[found[2].upper()]
    return int(float(number) * unit) if "." in number else int(number) * unit


def format_bytes(count: int) -> str:
    """Return a number of bytes as text with a unit that keeps it short.

    >>> format_bytes(1000), format_bytes(268435456), format_bytes(1610612736)
    ('1000 bytes', '256 MiB', '1.5 GiB')
    """
    size, unit = float(count), ""
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}" if unit and size < 1000 else f"{size:.0f} {unit}" if unit else f"{count} bytes"


def format_count(count: int) -> str:
    """Return a number of things as text that is short if it is large.

    >>> format_count(999), format_count(12_345_678), format_count(8_030_261_248)
    ('999', '12.3 million', '8.03 billion')
    """
    for unit, size in ((" trillion", 10**12), (" billion", 10**9), (" million", 10**6)):
        if count >= size:
            return f"{count / size:.3g}{unit}" if count < 1000 * size else f"{count // size}{unit}"
    return str(count)

# SPDX-License-Identifier: Apache-2.0
"""Sizes as people type them: `64KiB`, `1.5 GiB`, `4096`."""

from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1}
_UNITS |= {unit: 1024 ** (k + 1) for k, unit in enumerate(("KIB", "MIB", "GIB", "TIB"))}
_UNITS |= {unit: 1000 ** (k + 1) for k, unit in enumerate(("KB", "MB", "GB", "TB"))}
_UNITS |= {unit: 1024 ** (k + 1) for k, unit in enumerate(("K", "M", "G", "T"))}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) *([A-Za-z]{0,3})", re.ASCII)


def parse_size(text: str) -> int | None:
    """Return the bytes that a text gives, None if it gives none.

    >>> parse_size("64KiB"), parse_size("1.5 K"), parse_size("4096"), parse_size("4 apples")
    (65536, 1536, 4096, None)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].upper() not in _UNITS:
        return None
    number, unit = found[1], _UNITS[found[2].upper()]
    return int(float(number) * unit) if "." in number else int(number) * unit

# SPDX-License-Identifier: Apache-2.0
"""`take_apart`: the scales and codes of packed tiles, and how far apart the numbers are that each code can hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .admission import as_bytes
from .bits import sparse
from .block import BlockFormat
from .catalogue import format_of

Codes = NDArray[np.uint8]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Anatomy:
    """Packed tiles in their parts: the scale bytes [tiles, blocks] and the codes [tiles, elements].

    >>> parts = take_apart(format_of("bfloat8_b").pack(np.ones(16), tile_elements=16), "bfloat8_b", 16)
    >>> parts.scales.tolist(), parts.codes[0, :2].tolist()
    ([[127]], [64, 64])
    """

    format: BlockFormat
    scales: Codes
    codes: Codes

    def factors(self) -> Floats:
        """Return the number that each scale stands for.

        >>> take_apart(format_of("bfloat8_b").pack(np.full(16, 3.0), tile_elements=16), "bfloat8_b", 16).factors()
        array([[2.]])
        """
        found: Floats = np.asarray(self.format.scale.value(self.scales), np.float64)
        return found

    def steps(self) -> Floats:
        """Return, for each element, how far the next larger number is that its block could hold there.

        >>> packed = format_of("bfloat8_b").pack(np.full(16, 3.0), tile_elements=16)
        >>> float(take_apart(packed, "bfloat8_b", 16).steps()[0, 0])
        0.03125
        """
        wide = np.repeat(self.factors(), self.format.block, axis=1)
        found: Floats = wide * _spacing(self.format)[self.codes]
        return found


def take_apart(data: Any, format: Any, tile_elements: int) -> Anatomy:  # noqa: A002  (the word every reader expects)
    """Return the scales and codes of packed tiles of so many elements.

    >>> take_apart(bytes(1088), "bfloat8_b", 1024).scales.shape
    (1, 64)
    """
    found = format_of(format)
    if not isinstance(found, BlockFormat):
        raise FormatError(f"{found} has no blocks to take apart; use a block format such as bfloat8_b")
    sections = found.sections(tile_elements)
    flat = as_bytes(data, found.name)
    if flat.size % sections.total:
        raise FormatError(f"{found}: {flat.size} bytes are no whole number of tiles of {sections.total} bytes")
    tiles = flat.reshape(-1, sections.total)
    codes = sparse(np.ascontiguousarray(tiles[:, sections.data_offset :]), found.bits)
    return Anatomy(found, tiles[:, : sections.scales], codes.reshape(len(tiles), tile_elements))


@lru_cache(maxsize=32)
def _spacing(format_: BlockFormat) -> Floats:
    """Return, for each code, the distance to the next larger magnitude; the last one's is that before it."""
    magnitude = np.abs(format_.element.decode(np.arange(1 << format_.bits, dtype=np.uint8)))
    known = np.unique(magnitude[np.isfinite(magnitude)])
    gaps = np.append(np.diff(known), known[-1] - known[-2])
    with np.errstate(invalid="ignore"):
        at = np.minimum(np.searchsorted(known, magnitude), len(known) - 1)
    found: Floats = np.where(np.isfinite(magnitude), gaps[at], np.nan)
    found.setflags(write=False)
    return found

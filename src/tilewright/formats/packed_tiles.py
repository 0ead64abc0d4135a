# SPDX-License-Identifier: Apache-2.0
"""`PackedTiles`: the scales and codes of packed tiles, and the spacing of representable values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .block_format import BlockFormat, byte_array
from .catalogue import block_format_of
from .element_encoding import unpack_codes

Codes = NDArray[np.uint8]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PackedTiles:
    """The scale bytes [tiles, blocks] and the codes [tiles, elements] of packed tiles.

    >>> from tilewright.formats import bfloat8_b
    >>> tiles = split_tiles(bfloat8_b.pack(np.ones(16), tile_elements=16), "bfloat8_b", 16)
    >>> tiles.scales.tolist(), tiles.codes[0, :2].tolist()
    ([[127]], [64, 64])
    """

    format: BlockFormat
    scales: Codes
    codes: Codes

    def factors(self) -> Floats:
        """Return the factor that each scale byte stands for.

        >>> from tilewright.formats import bfloat8_b
        >>> split_tiles(bfloat8_b.pack(np.full(16, 3.0), tile_elements=16), "bfloat8_b", 16).factors()
        array([[2.]])
        """
        factors: Floats = np.asarray(self.format.scale.value(self.scales), np.float64)
        return factors

    def steps(self) -> Floats:
        """Return, for each element, the distance to the next larger value that its block can represent.

        >>> from tilewright.formats import bfloat8_b
        >>> packed = bfloat8_b.pack(np.full(16, 3.0), tile_elements=16)
        >>> float(split_tiles(packed, "bfloat8_b", 16).steps()[0, 0])
        0.03125
        """
        wide = np.repeat(self.factors(), self.format.block, axis=1)
        steps: Floats = wide * _spacing(self.format)[self.codes]
        return steps


def split_tiles(data: Any, format: Any, tile_elements: int) -> PackedTiles:  # noqa: A002  (the word every reader expects)
    """Return the scales and codes of packed `data` in a block `format`, in tiles of `tile_elements`.

    >>> split_tiles(bytes(1088), "bfloat8_b", 1024).scales.shape
    (1, 64)
    """
    packed = block_format_of(format)
    sections = packed.sections(tile_elements)
    flat = byte_array(data, packed.name)
    if flat.size % sections.total:
        raise FormatError(f"{packed}: {flat.size} bytes are not a whole number of tiles of {sections.total} bytes")
    tiles = flat.reshape(-1, sections.total)
    codes = unpack_codes(np.ascontiguousarray(tiles[:, sections.data_offset :]), packed.bits)
    return PackedTiles(packed, tiles[:, : sections.scales], codes.reshape(len(tiles), tile_elements))


@lru_cache(maxsize=32)
def _spacing(format_: BlockFormat) -> Floats:
    """Return, for each code, the distance to the next larger magnitude; for the largest, to the next smaller."""
    magnitude = np.abs(format_.element.decode(np.arange(1 << format_.bits, dtype=np.uint8)))
    known = np.unique(magnitude[np.isfinite(magnitude)])
    gaps = np.append(np.diff(known), known[-1] - known[-2])
    with np.errstate(invalid="ignore"):
        at = np.minimum(np.searchsorted(known, magnitude), len(known) - 1)
    spacing: Floats = np.where(np.isfinite(magnitude), gaps[at], np.nan)
    spacing.setflags(write=False)
    return spacing

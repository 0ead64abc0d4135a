# SPDX-License-Identifier: Apache-2.0
"""`GgmlType`: the block types of ggml, which GGUF files hold, and their values as float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..errors import FormatError
from . import ggml_code_books as books
from . import ggml_k_blocks as k_blocks
from . import ggml_small_blocks as small
from .ggml_groups import BlockGroups, Records, Singles

_CHUNK = 1 << 16  # elements decoded at a time, which bounds the temporary arrays


@dataclass(frozen=True, slots=True)
class GgmlType:
    """A block type: its `name` and `number` in files, and the elements and bytes of a block.

    `unpack` takes blocks apart; it is None for types that ggml uses in memory only.

    >>> GGML_TYPES[12].name, GGML_TYPES[12].elements, GGML_TYPES[12].nbytes
    ('Q4_K', 256, 144)
    """

    name: str
    number: int
    elements: int
    nbytes: int
    unpack: Callable[[Records], BlockGroups] | None = field(default=None, repr=False, compare=False)

    def decode(self, records: Records) -> Singles:
        """Return the values of blocks, [blocks, elements], from their bytes, [blocks, bytes].

        >>> GGML_TYPES[8].decode(np.array([[0, 0x3C, *range(32)]], np.uint8))[0, :4].tolist()
        [0.0, 1.0, 2.0, 3.0]
        """
        if self.unpack is None:
            raise FormatError(f"{self.name} is a type of ggml for use in memory, and its values cannot be read")
        if records.ndim != 2 or records.shape[1] != self.nbytes:
            raise FormatError(
                f"expected blocks of {self.nbytes} bytes as [blocks, {self.nbytes}] for {self.name}, got shape"
                f" {list(records.shape)}"
            )
        values = np.empty((len(records), self.elements), np.float32)
        step = _CHUNK // self.elements
        with np.errstate(over="ignore", invalid="ignore"):  # scales may be infinite or NaN
            for start in range(0, len(records), step):
                self.unpack(records[start : start + step]).values(values[start : start + step])
        return values


GGML_TYPES: dict[int, GgmlType] = {
    entry.number: entry
    for entry in (
        GgmlType("Q4_0", 2, 32, 18, small.unpack_q4_0),
        GgmlType("Q4_1", 3, 32, 20, small.unpack_q4_1),
        GgmlType("Q5_0", 6, 32, 22, small.unpack_q5_0),
        GgmlType("Q5_1", 7, 32, 24, small.unpack_q5_1),
        GgmlType("Q8_0", 8, 32, 34, small.unpack_q8_0),
        GgmlType("Q8_1", 9, 32, 40),
        GgmlType("Q2_K", 10, 256, 84, k_blocks.unpack_q2_k),
        GgmlType("Q3_K", 11, 256, 110, k_blocks.unpack_q3_k),
        GgmlType("Q4_K", 12, 256, 144, k_blocks.unpack_q4_k),
        GgmlType("Q5_K", 13, 256, 176, k_blocks.unpack_q5_k),
        GgmlType("Q6_K", 14, 256, 210, k_blocks.unpack_q6_k),
        GgmlType("Q8_K", 15, 256, 292),
        GgmlType("IQ2_XXS", 16, 256, 66, books.unpack_iq2_xxs),
        GgmlType("IQ2_XS", 17, 256, 74, books.unpack_iq2_xs),
        GgmlType("IQ3_XXS", 18, 256, 98, books.unpack_iq3_xxs),
        GgmlType("IQ1_S", 19, 256, 50, books.unpack_iq1_s),
        GgmlType("IQ4_NL", 20, 32, 18, small.unpack_iq4_nl),
        GgmlType("IQ3_S", 21, 256, 110, books.unpack_iq3_s),
        GgmlType("IQ2_S", 22, 256, 82, books.unpack_iq2_s),
        GgmlType("IQ4_XS", 23, 256, 136, small.unpack_iq4_xs),
        GgmlType("IQ1_M", 29, 256, 56, books.unpack_iq1_m),
        GgmlType("TQ1_0", 34, 256, 54, small.unpack_tq1_0),
        GgmlType("TQ2_0", 35, 256, 66, small.unpack_tq2_0),
        GgmlType("MXFP4", 39, 32, 17, small.unpack_mxfp4),
        GgmlType("NVFP4", 40, 64, 36, small.unpack_nvfp4),
        GgmlType("Q1_0", 41, 128, 18),
    )
}
"""The block types by their number in files; sizes are those of the gguf package."""

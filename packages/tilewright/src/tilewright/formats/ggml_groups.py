# SPDX-License-Identifier: Apache-2.0
"""`BlockGroups`: ggml blocks taken apart into codes, scales and offsets, and the ways in which ggml packs small fields.

Records are the bytes of blocks, [blocks, bytes per block]. In every type a value is `code x scale + offset`, with codes
of at most eight bits, and scales and offsets in float32 that groups of elements share.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Records: TypeAlias = NDArray[np.uint8]
Singles: TypeAlias = NDArray[np.float32]


class BlockGroups(NamedTuple):
    """Codes [blocks, groups, elements], scales [blocks, groups], and offsets [blocks, groups] if the type has any.

    >>> groups = BlockGroups(np.array([[[3, -1]]], np.int8), np.array([[0.5]], np.float32), None)
    >>> groups.values().tolist()
    [[1.5, -0.5]]
    """

    codes: NDArray[np.int8]
    scales: Singles
    offsets: Singles | None

    def values(self, out: Singles | None = None) -> Singles:
        """Return the values [blocks, elements], written to `out` if it is given.

        Each is rounded once after the product and once after the sum, as ggml does.

        >>> BlockGroups(np.ones((1, 2, 2), np.int8), np.ones((1, 2), np.float32), np.ones((1, 2), np.float32)).values()
        array([[2., 2., 2., 2.]], dtype=float32)
        """
        blocks, groups, elements = self.codes.shape
        result = np.empty((blocks, groups * elements), np.float32) if out is None else out
        grouped = result.reshape(self.codes.shape)
        np.multiply(self.codes, self.scales[..., None], out=grouped)
        if self.offsets is not None:
            grouped += self.offsets[..., None]
        return result


def read_halves(records: Records, start: int, count: int = 1) -> Singles:
    """Return `count` half floats of each record as float32, from byte `start` on.

    >>> read_halves(np.array([[0, 0x3C, 0, 0xC0]], np.uint8), 0, 2).tolist()
    [[1.0, -2.0]]
    """
    return _view_words(records, start, count, "<f2").astype(np.float32)


def read_words(records: Records, start: int, count: int, size: int) -> NDArray[np.uint32]:
    """Return `count` unsigned integers of `size` bytes of each record, from byte `start` on.

    >>> read_words(np.array([[9, 1, 2, 3, 4]], np.uint8), 1, 2, 2).tolist()
    [[513, 1027]]
    """
    return _view_words(records, start, count, f"<u{size}").astype(np.uint32)


def _view_words(records: Records, start: int, count: int, dtype: str) -> NDArray[np.generic]:
    size = np.dtype(dtype).itemsize
    return np.ascontiguousarray(records[:, start : start + count * size]).view(dtype)


def split_fields(data: Records, bits: int) -> Records:
    """Return the fields of `bits` bits of bytes [..., n] as [..., 8 / bits, n]: the lowest fields of all bytes first.

    >>> split_fields(np.array([[0x21, 0x43]], np.uint8), 4).tolist()
    [[[1, 3], [2, 4]]]
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    return (data[..., None, :] >> shifts) & np.uint8((1 << bits) - 1)


def split_bytes(data: Records, bits: int) -> Records:
    """Return the fields of `bits` bits of bytes [blocks, n] as [blocks, n x 8 / bits], byte by byte, the lowest first.

    >>> split_bytes(np.array([[0x21, 0x43]], np.uint8), 4).tolist()
    [[1, 2, 3, 4]]
    """
    return split_fields(data[..., None], bits).reshape(len(data), -1)


def group_codes(codes: NDArray[np.integer], elements: int) -> NDArray[np.int8]:
    """Return codes of blocks, of any shape, as int8 in groups of some elements.

    >>> group_codes(np.arange(4, dtype=np.uint8).reshape(1, 4), 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    size = codes.size // len(codes) if len(codes) else elements
    return codes.reshape(len(codes), size // elements, elements).astype(np.int8)

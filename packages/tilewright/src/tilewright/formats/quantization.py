# SPDX-License-Identifier: Apache-2.0
"""`quantization_error`: the errors of an array in a block format; `PackedTiles`: the scales and codes of its tiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..display import Drawable
from ..errors import FormatError
from .blocks import BlockFormat, PackedData, block_format_of, byte_array
from .scalars import Codes, Floats, FormatLike, Rounding, Singles, to_float32, unpack_codes, validate_rounding

_CHUNK = 1 << 16  # elements examined at a time, which bounds the temporary arrays


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element with the largest error: its index, its value, the stored value, and the error.

    >>> WorstElement((0, 3), 1.1, 1.125, 0.025).index
    (0, 3)
    """

    index: tuple[int, ...]
    value: float
    stored: float
    error: float


@dataclass(frozen=True, slots=True)
class Flattening:
    """A block in which one large element made others zero.

    `block` is the index of the block's first element, `count` the number of elements that became zero, `index` and
    `value` the index and value of the large element.

    >>> Flattening((0, 16), 3, (0, 20), 1000.0).count
    3
    """

    block: tuple[int, ...]
    count: int
    index: tuple[int, ...]
    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuantizationReport(Drawable):
    """The errors of an array in a block format. Arrays have one entry per block: the shape of the array, with blocks
    instead of elements along `axis`.

    `scales` are the scale bytes and `scale_exponents` the exponents of the scales (128 where a scale is NaN);
    `max_abs_error` and `max_relative_error` the largest absolute and relative error of an element; `flattened` the
    number of elements that became zero because of a neighbour, and `dominating` the index along `axis` of the block's
    largest element. `rms_error` is over the whole array and `worst` its worst element (None if the array is empty). A
    finite number that came back as NaN or infinity has an infinite error.

    >>> report = quantization_error(np.ones((2, 32)), "bfloat8_b")
    >>> report.scale_exponents.tolist(), report.worst.error
    ([[0, 0], [0, 0]], 0.0)
    """

    format: BlockFormat
    shape: tuple[int, ...]
    axis: int
    scales: NDArray[np.uint8]
    scale_exponents: NDArray[np.int16]
    max_abs_error: Floats
    max_relative_error: Floats
    flattened: NDArray[np.int64]
    dominating: NDArray[np.int64]
    dominating_values: Singles
    rms_error: float
    worst: WorstElement | None

    def flattening(self, limit: int = 10) -> tuple[Flattening, ...]:
        """Return the blocks with elements that became zero because of a large neighbour, worst first, at most `limit`.

        >>> values = np.ones((2, 32))
        >>> values[1, 20] = 1000.0
        >>> quantization_error(values, "bfloat8_b").flattening()
        (Flattening(block=(1, 16), count=15, index=(1, 20), value=1000.0),)
        """
        counts = self.flattened.reshape(-1)
        order = np.argsort(-counts, kind="stable")[: max(limit, 0)]
        reports = []
        for at in order[counts[order] > 0]:
            block = [int(i) for i in np.unravel_index(int(at), self.flattened.shape)]
            index = block.copy()
            index[self.axis] = int(self.dominating[tuple(block)])
            value = float(self.dominating_values[tuple(block)])
            block[self.axis] *= self.format.block
            reports.append(Flattening(tuple(block), int(counts[at]), tuple(index), value))
        return tuple(reports)

    def summary(self, limit: int = 5) -> str:
        """Return the report as text of at most 80 columns, with at most `limit` flattened blocks.

        >>> values = np.ones((2, 32), dtype=np.float32)
        >>> values[1, 20] = 1000.0
        >>> print(quantization_error(values, "bfloat8_b").summary())
        bfloat8_b, shape (2, 32): 4 blocks of 16 along axis 1
        scales         2^0 to 2^9
        rms error      0.484123
        worst error    1 at (1, 16): 1 is stored as 0
        worst relative 1 in the block at (1, 16)
        flattened      15 of 64 elements, in 1 of 4 blocks
          15 by 1000 at (1, 20), in the block at (1, 16)
        """
        title = f"{self.format}, shape {self.shape}: {self.scales.size} blocks of {self.format.block}"
        lines = [title, f"  along axis {self.axis}"] if len(title) > 60 else [f"{title} along axis {self.axis}"]
        if self.worst is not None:
            worst, low, high = self.worst, int(self.scale_exponents.min()), int(self.scale_exponents.max())
            blocks = f"{int(np.count_nonzero(self.flattened))} of {self.flattened.size}"
            relative = int(np.argmax(self.max_relative_error))
            lines += [
                f"scales         2^{low} to 2^{high}",
                f"rms error      {self.rms_error:g}",
                f"worst error    {worst.error:g} at {worst.index}: {worst.value:g} is stored as {worst.stored:g}",
                f"worst relative {self.max_relative_error.flat[relative]:g} in the block at {self._start(relative)}",
                f"flattened      {int(self.flattened.sum())} of {math.prod(self.shape)} elements, in {blocks} blocks",
            ]
        for entry in self.flattening(limit):
            lines.append(f"  {entry.count} by {entry.value:g} at {entry.index}, in the block at {entry.block}")
        return "\n".join(line if len(line) <= 80 else line[:77] + "..." for line in lines)

    def __repr__(self) -> str:
        return f"<QuantizationReport of {self.format}, shape {self.shape}, rms error {self.rms_error:g}>"

    def _start(self, block: int) -> tuple[int, ...]:
        start = [int(i) for i in np.unravel_index(block, self.scales.shape)]
        start[self.axis] *= self.format.block
        return tuple(start)


def quantization_error(
    array: ArrayLike,
    format: FormatLike,  # noqa: A002  (the word every reader expects)
    axis: int = -1,
    *,
    rounding: Rounding = "nearest_even",
    seed: int | None = None,
    tensor_scale: float = 1.0,
) -> QuantizationReport:
    """Return the errors of `array` in a block `format` with blocks along `axis`.

    Use axis -1 for tiled matrices with 16-wide faces, and -2 for transposed tiles; pass data with any other physical
    order in that order. A partial last block is padded with zeros. Values are converted to float32 first, and errors
    are measured from there. `rounding`, `seed` and `tensor_scale` are as in `BlockFormat.encode`.

    >>> report = quantization_error([1.0, 1.01, -0.003, 0.002], "bfloat8_b")
    >>> report.worst
    WorstElement(index=(1,), value=1.0099999904632568, stored=1.015625, error=0.005625009536743164)
    >>> report.flattening()
    (Flattening(block=(0,), count=2, index=(1,), value=1.0099999904632568),)
    """
    packed = block_format_of(format)
    validate_rounding(rounding, seed)
    factor = packed._validate_tensor_scale(tensor_scale)
    values = np.atleast_1d(np.asarray(array))
    single = to_float32(values)
    if not -values.ndim <= axis < values.ndim:
        raise FormatError(f"axis {axis} is outside shape {values.shape}; use {-values.ndim} to {values.ndim - 1}")
    axis %= values.ndim
    lines = np.moveaxis(single, axis, -1)
    length = lines.shape[-1]
    across = -(-length // packed.block)
    if length % packed.block:
        padded = np.zeros((*lines.shape[:-1], across * packed.block), dtype=np.float32)
        padded[..., :length] = lines
        lines = padded
    errors = _BlockErrors(packed, lines.reshape(-1, packed.block), rounding, seed, factor)
    shape = (*lines.shape[:-1], across)
    start = np.arange(across, dtype=np.int64) * packed.block

    def per_block(entries: NDArray[Any]) -> NDArray[Any]:
        return np.moveaxis(entries.reshape(shape), -1, axis)

    return QuantizationReport(
        format=packed,
        shape=values.shape,
        axis=axis,
        scales=per_block(errors.scales),
        scale_exponents=per_block(errors.exponents()),
        max_abs_error=per_block(errors.absolute),
        max_relative_error=per_block(errors.relative),
        flattened=per_block(errors.flattened),
        dominating=per_block(errors.dominating.reshape(shape) + start),
        dominating_values=per_block(errors.dominating_values),
        rms_error=float(np.sqrt(errors.squares / values.size)) if values.size else 0.0,
        worst=errors.worst(shape, axis) if values.size else None,
    )


class _BlockErrors:
    """The errors of every block, computed for a bounded number of blocks at a time."""

    def __init__(
        self, format_: BlockFormat, groups: Singles, rounding: Rounding, seed: int | None, factor: float
    ) -> None:
        count = len(groups)
        self.format, self.groups, self.rounding, self.seed, self.factor = format_, groups, rounding, seed, factor
        self.scales = np.zeros(count, dtype=np.uint8)
        self.absolute, self.relative = np.zeros(count), np.zeros(count)
        self.flattened, self.dominating = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self.dominating_values = np.zeros(count, dtype=np.float32)
        self.squares = 0.0
        step = max(1, _CHUNK // format_.block)
        for start in range(0, count, step):
            self._measure(slice(start, min(count, start + step)))

    def _quantize(self, part: slice) -> tuple[NDArray[np.uint8], Singles]:
        first = part.start * self.format.block
        scales, codes = self.format._encode(self.groups[part], self.rounding, self.seed, first, self.factor)
        return scales, self.format._decode(scales, codes, self.factor)

    def _measure(self, part: slice) -> None:
        values = self.groups[part]
        self.scales[part], stored = self._quantize(part)
        error = _absolute_error(values, stored)
        with np.errstate(all="ignore"):
            magnitude = np.abs(values.astype(np.float64))
            relative = np.where(error == 0.0, 0.0, error / magnitude)
            self.squares += float(np.sum(error * error))
        self.absolute[part] = error.max(axis=1)
        self.relative[part] = np.where(np.isnan(relative), np.inf, relative).max(axis=1)
        # NaN and infinity count as the largest: they determine the scale.
        size = np.where(np.isnan(magnitude), np.inf, magnitude)
        largest = size.argmax(axis=1)
        self.dominating[part] = largest
        self.dominating_values[part] = values[np.arange(len(values)), largest]
        # A value below the smallest of the format is zero even without neighbours.
        alone = size >= self.format.limits.smallest * self.factor
        self.flattened[part] = np.count_nonzero(alone & (stored == 0.0), axis=1)

    def exponents(self) -> NDArray[np.int16]:
        factors = self.format.scale.value(self.scales)
        exponents = np.frexp(np.where(np.isfinite(factors), np.abs(factors), 0.0))[1].astype(np.int16) - 1
        exponents = np.where(factors == 0.0, np.frexp(self.format.scale.smallest)[1] - 1, exponents)
        return np.where(np.isnan(factors), 128, exponents).astype(np.int16)

    def worst(self, shape: tuple[int, ...], axis: int) -> WorstElement:
        block = int(np.argmax(self.absolute))
        values = self.groups[block]
        stored = self._quantize(slice(block, block + 1))[1][0]
        error = _absolute_error(values, stored)
        at = int(np.argmax(error))
        *outer, across = (int(i) for i in np.unravel_index(block, shape))
        index = (*outer[:axis], across * self.format.block + at, *outer[axis:])
        return WorstElement(index, float(values[at]), float(stored[at]), float(error[at]))


def _absolute_error(values: Singles, stored: Singles) -> Floats:
    """Return the absolute error: 0 if both are NaN, infinite if one is."""
    with np.errstate(all="ignore"):
        error = np.abs(values.astype(np.float64) - stored.astype(np.float64))
    same = (values == stored) | (np.isnan(values) & np.isnan(stored))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


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
        return np.asarray(self.format.scale.value(self.scales), np.float64)

    def steps(self) -> Floats:
        """Return, for each element, the distance to the next larger value that its block can represent.

        >>> from tilewright.formats import bfloat8_b
        >>> packed = bfloat8_b.pack(np.full(16, 3.0), tile_elements=16)
        >>> float(split_tiles(packed, "bfloat8_b", 16).steps()[0, 0])
        0.03125
        """
        wide = np.repeat(self.factors(), self.format.block, axis=1)
        return wide * _spacing(self.format)[self.codes]


def split_tiles(data: PackedData, format: FormatLike, tile_elements: int) -> PackedTiles:  # noqa: A002  (the word every reader expects)
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

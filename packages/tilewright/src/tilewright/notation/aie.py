# SPDX-License-Identifier: Apache-2.0
"""AMD AIE's access patterns and buffer descriptors: `TensorAccessPattern((9, 4), 0, sizes=[3, 2], strides=[4, 1])`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from .._text import TextCursor
from ..errors import FileFormatError, LayoutError
from ..layout import Layout, LayoutLike
from .strided_parts import logical_extents, offset_of, stored_extents, strided_parts

LOOKS_LIKE = re.compile(r"\s*(?:TensorAccessPattern|TensorAccessSequence|TAP)\b")
_SLOTS = 4  # of a buffer descriptor: the iteration, d2, d1, d0
# The bits of wraps (extents) and steps (strides) of the tiles, from the outermost slot to d0, and of a length in words.
LIMITS: dict[str, dict[str, int]] = {
    "shim": {"wrap": 10, "step": 20, "iteration": 6},
    "memory": {"wrap": 10, "step": 17, "iteration": 6},
    "core": {"wrap": 8, "step": 13, "iteration": 6, "length": 14},
}


@dataclass(frozen=True)
class AccessPattern:
    """An order in which elements of a tensor are visited: offset + index * stride, the last index fastest.

    >>> pattern = parse_access_pattern("TensorAccessPattern((9, 4), 14, sizes=[1, 1, 3, 2], strides=[0, 0, 4, 1])")
    >>> pattern.layout(0, 0, 2, 1), pattern.visits()
    (23, [14, 15, 18, 19, 22, 23])
    """

    tensor_shape: tuple[int, ...]
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.tensor_shape or min(self.tensor_shape) < 1:
            raise LayoutError(f"an access pattern needs a tensor with extents of at least 1, got {self.tensor_shape}")
        if not 0 <= self.offset < prod(self.tensor_shape):
            raise LayoutError(f"the offset {self.offset} is outside a tensor of {prod(self.tensor_shape)} elements")
        if not self.sizes or len(self.sizes) != len(self.strides):
            raise LayoutError(
                f"sizes and strides must be as many, and at least one, got {self.sizes} and {self.strides}"
            )
        if min(self.sizes) < 1 or min(self.strides) < 0:
            raise LayoutError(f"sizes must be at least 1 and strides at least 0, got {self.sizes} and {self.strides}")
        last = self.offset + sum((n - 1) * d for n, d in zip(self.sizes, self.strides, strict=True))
        if last >= prod(self.tensor_shape):
            raise LayoutError(f"the pattern reaches element {last} of a tensor of {prod(self.tensor_shape)} elements")

    @property
    def layout(self) -> Any:
        """Return the layout from the steps of the pattern to elements."""
        layout = Layout(self.sizes, self.strides)
        return layout + self.offset if self.offset else layout

    def visits(self) -> list[int]:
        """Return the elements in the order in which they are visited."""
        return [int(place) for place in self.layout.offsets().reshape(-1)]

    def slots(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return sizes and strides in the four slots of a buffer descriptor, the iteration first.

        A repetition without a step, which only the iteration can do, stays there.

        >>> AccessPattern((16,), 0, (16,), (1,)).slots()
        ((1, 1, 1, 16), (0, 0, 0, 1))
        """
        pairs = list(zip(self.sizes, self.strides, strict=True))
        while len(pairs) > _SLOTS and pairs[0][0] == 1:
            pairs = pairs[1:]
        if len(pairs) > _SLOTS:
            raise LayoutError(f"a buffer descriptor has {_SLOTS} dimensions, the pattern needs {len(pairs)}")
        if len(pairs) < _SLOTS and pairs[0][1] == 0 and pairs[0][0] > 1:
            pairs = [pairs[0], *[(1, 0)] * (_SLOTS - len(pairs)), *pairs[1:]]
        pairs = [*[(1, 0)] * (_SLOTS - len(pairs)), *pairs]
        return tuple([n for n, _ in pairs]), tuple([d for _, d in pairs])

    def check(self, tile: str, itemsize: int = 4) -> None:
        """Raise unless a buffer descriptor of a `tile`, shim, memory or core, can do it.

        `itemsize` is the bytes of an element.

        >>> AccessPattern((4096,), 0, (2, 512), (512, 1)).check("core")
        Traceback (most recent call last):
        ...
        tilewright.errors.LayoutError: d0 has 512 words; a core tile takes at most 255
        """
        if tile not in LIMITS:
            raise LayoutError(f"expected a shim, memory or core tile, got {tile!r}")
        limits, (sizes, strides) = LIMITS[tile], self.slots()
        _require_words(self.offset * itemsize, "the offset")
        for k, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
            name = "the iteration" if k == 0 else f"d{_SLOTS - 1 - k}"
            is_contiguous = k == _SLOTS - 1 and stride == 1
            words = size if not is_contiguous else _require_words(size * itemsize, name)
            most = (1 << limits["iteration" if k == 0 else "wrap"]) - (0 if k == 0 else 1)
            if words > most:
                raise LayoutError(f"{name} has {words} words; a {tile} tile takes at most {most}")
            if stride == 0 and size > 1 and k:
                raise LayoutError(f"{name} repeats without a step, which only the iteration can do")
            step = 1 if is_contiguous else _require_words(stride * itemsize, f"the stride of {name}")
            if step > 1 << limits["step"]:
                raise LayoutError(
                    f"{name} has a stride of {step} words; a {tile} tile takes at most {1 << limits['step']}"
                )
        length = prod(sizes[1:]) * itemsize // 4
        if "length" in limits and length > (1 << limits["length"]) - 1:
            raise LayoutError(
                f"the pattern has {length} words; a {tile} tile takes at most {(1 << limits['length']) - 1}"
            )

    def __str__(self) -> str:
        return (
            f"TensorAccessPattern({self.tensor_shape}, {self.offset}, sizes={list(self.sizes)},"
            f" strides={list(self.strides)})"
        )


def _require_words(size: int, what: str) -> int:
    if size % 4:
        raise LayoutError(f"{what} is {size} bytes; buffer descriptors count words of 4 bytes")
    return size // 4


def tile_stream(shape: Sequence[int], tile: Sequence[int]) -> AccessPattern:
    """Return the pattern that reads a row-major matrix of a `shape` tile by tile.

    >>> tile_stream((32, 16), (8, 4)).sizes, tile_stream((32, 16), (8, 4)).strides
    ((4, 4, 8, 4), (128, 4, 16, 1))
    """
    (rows, columns), (height, width) = shape, tile
    _require_tiles(shape, tile)
    sizes = (rows // height, columns // width, height, width)
    return AccessPattern(tuple(shape), 0, sizes, (height * columns, width, columns, 1))


def untile_stream(shape: Sequence[int], tile: Sequence[int]) -> AccessPattern:
    """Return the pattern that reads a matrix of a `shape`, stored `tile` by tile, in row-major order.

    >>> untile_stream((32, 16), (8, 4)).strides
    (128, 4, 32, 1)
    """
    (rows, columns), (height, width) = shape, tile
    _require_tiles(shape, tile)
    sizes = (rows // height, height, columns // width, width)
    return AccessPattern(tuple(shape), 0, sizes, (height * columns, width, height * width, 1))


def _require_tiles(shape: Sequence[int], tile: Sequence[int]) -> None:
    if min(tile) < 1 or any(extent % part for extent, part in zip(shape, tile, strict=True)):
        raise LayoutError(f"tiles of {tuple(tile)} do not divide {tuple(shape)}")


def parse_access_pattern(text: str) -> AccessPattern:
    """Return the pattern that a `text` describes, with names of arguments or without.

    >>> parse_access_pattern("TensorAccessPattern((2, 3), 0, [2, 3], [3, 1])").strides
    (3, 1)
    """
    cursor = TextCursor(text, "an access pattern")
    if not (cursor.accept("TensorAccessPattern") or cursor.accept("TAP")):
        cursor.fail("TensorAccessPattern")
    cursor.expect("(")
    values: dict[str, Any] = {}
    for name in ("tensor_dims", "offset", "sizes", "strides"):
        if values:
            cursor.expect(",")
        if cursor.accept(f"{name}"):
            cursor.expect("=")
        values[name] = cursor.signed() if name == "offset" else _read_integers(cursor)
    cursor.expect(")")
    cursor.expect_end()
    try:
        return AccessPattern(values["tensor_dims"], values["offset"], values["sizes"], values["strides"])
    except LayoutError as problem:
        raise FileFormatError(f"{text[:60]!r} is not an access pattern: {problem}") from None


def _read_integers(cursor: TextCursor) -> tuple[int, ...]:
    closing = ")" if cursor.accept("(") else "]"
    if closing == "]":
        cursor.expect("[")
    return tuple(cursor.items(closing, cursor.signed, is_python=True))


def write_access_pattern(layout: LayoutLike, shape: Sequence[int] | None = None) -> str:
    """Return a strided `layout` as AIE's access pattern over a tensor of a `shape`, by default a flat one.

    >>> write_access_pattern(Layout((3, 2), (4, 1)), (9, 4))
    'TensorAccessPattern((9, 4), 0, sizes=[3, 2], strides=[4, 1])'
    """
    parts, offset = strided_parts(layout, "an access pattern"), offset_of(layout)
    if logical_extents(layout) != stored_extents(layout):
        raise LayoutError(f"{layout} has padding, which an access pattern would visit, too; write the padded layout")
    ordered = sorted(parts, key=lambda part: (part.mode, -part.divisor))
    last = offset + sum((part.extent - 1) * part.stride for part in ordered)
    tensor = (last + 1,) if shape is None else tuple(shape)
    return str(AccessPattern(tensor, offset, tuple([p.extent for p in ordered]), tuple([p.stride for p in ordered])))

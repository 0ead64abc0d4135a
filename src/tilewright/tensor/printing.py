# SPDX-License-Identifier: Apache-2.0
"""Printing: tensors as people read them, and exactly as Mojo prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LayoutError
from .access import block_places
from .whole import mask, to_numpy

if TYPE_CHECKING:
    from .tile_tensor import TileTensor

MOST_SHOWN = 1000  # elements beyond which `str` leaves out the middle
EDGE = 3  # how many are shown at each end then


def number_text(value: Any) -> str:
    """Return a number with the fewest digits that tell it apart, in fixed form from 1e-4 up to 1e16.

    >>> number_text(np.float32(0.1)), number_text(np.float64(1e20)), number_text(np.float32(-3.5e-5)), number_text(7)
    ('0.1', '1e+20', '-3.5e-05', '7')
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    # narrow floats are shown by the digits that tell them apart as float32
    number = value if isinstance(value, (np.float32, np.float64)) else np.float32(value)
    if not np.isfinite(number):
        return "nan" if np.isnan(number) else "inf" if number > 0 else "-inf"
    size = abs(float(number))
    if size == 0 or 1e-4 <= size < 1e16:
        return str(np.format_float_positional(number, unique=True, trim="0"))
    return str(np.format_float_scientific(number, unique=True, trim="-", exp_digits=2))


def _texts(tensor: TileTensor) -> Any:
    """Return the text of every element in logical order, `_` where nothing is valid; vectors in brackets."""
    values = to_numpy(tensor, fill=0)
    valid = mask(tensor)
    texts = np.empty(values.shape, dtype=object)
    for at in np.ndindex(*values.shape):
        texts[at] = number_text(values[at]) if valid[at] else "_"
    rank = len(tensor._extents)
    if values.ndim == rank:
        return texts
    joined = np.empty(values.shape[:rank], dtype=object)
    for at in np.ndindex(*joined.shape):
        joined[at] = _listed(_lane_order(texts[at], tensor))
    return joined


def _lane_order(block: Any, tensor: TileTensor) -> list[str]:
    return [str(text) for text in block.reshape(-1)]


def _listed(texts: Any) -> str:
    return f"[{', '.join(texts)}]"


def mojo_text(tensor: TileTensor) -> str:
    """Return what Mojo 26.7 prints: two plain modes as rows, everything else flat with the first index fastest.

    >>> import tilewright as tw
    >>> mojo_text(tw.TileTensor(list(range(6)), tw.col_major(2, 3)))
    '[[0, 2, 4], [1, 3, 5]]'
    """
    if tensor.numel() == 0:
        return ""
    texts = _texts(tensor)
    if texts.ndim == 2 and tensor.flat_rank == 2:
        return _listed([_listed(row) for row in texts])
    return _listed(texts.reshape(-1, order="F"))


def grid_text(tensor: TileTensor) -> str:
    """Return what Mojo 26.2 prints: rows of numbers, each followed by a space; nothing for other ranks than 2.

    >>> import tilewright as tw
    >>> grid_text(tw.TileTensor(list(range(6)), tw.row_major(2, 3)))
    '0 1 2 \\n3 4 5 '
    """
    if tensor.numel() == 0 or len(tensor._extents) != 2 or tensor.flat_rank != 2:
        return ""
    return "\n".join("".join(f"{text} " for text in row) for row in _texts(tensor))


def readable_text(tensor: TileTensor) -> str:
    """Return two modes as a grid, other ranks flat with the first index fastest; the middle of large ones left out.

    >>> import tilewright as tw
    >>> print(readable_text(tw.TileTensor(list(range(6)), tw.row_major(2, 3))))
    [[0, 1, 2],
    [3, 4, 5]]
    """
    if tensor.numel() == 0:
        return ""
    if len(tensor._extents) == 2:
        rows = [_listed(row) for row in _edges(tensor, 2)]
        return f"[{_joined_rows(rows, tensor)}]"
    if tensor.numel() <= MOST_SHOWN:
        return _listed(_texts(tensor).reshape(-1, order="F"))
    ends = [_element_text(tensor, k) for k in range(EDGE)]
    ends += ["..."] + [_element_text(tensor, k) for k in range(tensor.numel() - EDGE, tensor.numel())]
    return _listed(ends)


def _joined_rows(rows: list[str], tensor: TileTensor) -> str:
    if tensor.numel() > MOST_SHOWN and tensor._extents[0] > 2 * EDGE:
        rows = [*rows[:EDGE], "...", *rows[-EDGE:]]
    return ",\n".join(rows)


def _edges(tensor: TileTensor, rank: int) -> list[list[str]]:
    """Return the texts of a matrix, row by row; of a large one only the first and last few rows and columns."""
    if tensor.numel() <= MOST_SHOWN:
        return [list(row) for row in _texts(tensor)]
    chosen = [list(range(n)) if n <= 2 * EDGE else [*range(EDGE), *range(n - EDGE, n)] for n in tensor._extents]
    found = []
    for i in chosen[0]:
        row = [_element_text(tensor, i, j) for j in chosen[1]]
        if tensor._extents[1] > 2 * EDGE:
            row[EDGE:EDGE] = ["..."]
        found.append(row)
    return found


def _element_text(tensor: TileTensor, *index: int) -> str:
    places, valid = block_places(tensor, index)
    data = tensor._store.host
    texts = [
        number_text(data[place]) if ok else "_" for place, ok in zip(places.reshape(-1), valid.reshape(-1), strict=True)
    ]
    return texts[0] if tensor.element_size == 1 else _listed(texts)


def pretty_text(tensor: TileTensor) -> str:
    """Return every matrix of the last two modes as a grid under its leading coordinates.

    >>> import tilewright as tw
    >>> print(pretty_text(tw.TileTensor(list(range(8)), tw.row_major(2, 2, 2))))
    [0, :, :]
      0 1
      2 3
    [1, :, :]
      4 5
      6 7
    """
    texts = _texts(tensor)
    if texts.ndim < 2:
        return " ".join(texts.reshape(-1))
    width = max((len(text) for text in texts.reshape(-1)), default=0)
    lines = []
    for at in np.ndindex(*texts.shape[:-2]):
        if at:
            lines.append(f"[{', '.join(map(str, at))}, :, :]")
        indent = "  " if at else ""
        lines += [indent + " ".join(text.rjust(width) for text in row) for row in texts[at]]
    return "\n".join(lines)


STYLES = {"": readable_text, "mojo": mojo_text, "grid": grid_text, "pretty": pretty_text}


def formatted(tensor: TileTensor, style: str) -> str:
    """Return a tensor in one of the styles of `format(t, style)`: "", "mojo", "grid" or "pretty".

    >>> import tilewright as tw
    >>> formatted(tw.TileTensor([1, 2], tw.row_major(2)), "mojo")
    '[1, 2]'
    """
    if style not in STYLES:
        raise LayoutError(f"there is no print style {style!r}; use 'mojo', 'grid', 'pretty', or none")
    return STYLES[style](tensor)

# SPDX-License-Identifier: Apache-2.0
"""Tensors as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .contents import mask, to_numpy
from .element_access import vector_places
from .store import Number
from .view import View

MAX_PRINTED = 1000  # with more elements `str` omits the middle
EDGE = 3  # rows and columns printed at each end then


def format_number(value: Number) -> str:
    """Return the shortest text that identifies a number, in fixed notation from 1e-4 up to 1e16.

    >>> (
    ...     format_number(np.float32(0.1)),
    ...     format_number(np.float64(1e20)),
    ...     format_number(np.float32(-3.5e-5)),
    ...     format_number(7),
    ... )
    ('0.1', '1e+20', '-3.5e-05', '7')
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    # narrow floats are printed with the digits that identify them as float32
    number = value if isinstance(value, (np.float32, np.float64)) else np.float32(value)
    if not np.isfinite(number):
        return "nan" if np.isnan(number) else "inf" if number > 0 else "-inf"
    size = abs(float(number))
    if size == 0 or 1e-4 <= size < 1e16:
        return str(np.format_float_positional(number, unique=True, trim="0"))
    return str(np.format_float_scientific(number, unique=True, trim="-", exp_digits=2))


def element_texts(tensor: View) -> Any:
    """Return the text of every element as an array, `_` where it is not valid; vectors in brackets.

    >>> import tilewright as tw
    >>> element_texts(tw.TileTensor([1, 2, 3], tw.row_major(3)).tile[2](1)).tolist()
    ['3', '_']
    """
    values: Any = to_numpy(tensor, fill=0)
    valid = mask(tensor)
    texts = np.empty(values.shape, dtype=object)
    for at in np.ndindex(*values.shape):
        texts[at] = format_number(values[at]) if valid[at] else "_"
    rank = len(tensor._extents)
    if values.ndim == rank:
        return texts
    joined = np.empty(values.shape[:rank], dtype=object)
    for at in np.ndindex(*joined.shape):
        joined[at] = join_texts(tensor._arrange(texts[at]).reshape(-1))
    return joined


def join_texts(texts: Iterable[str]) -> str:
    """Return texts as one list: "[a, b]".

    >>> join_texts(["1", "2"])
    '[1, 2]'
    """
    return f"[{', '.join(texts)}]"


def format_tensor(tensor: View) -> str:
    """Return two modes as a grid, other ranks flat with the first index fastest; large ones without the middle.

    >>> import tilewright as tw
    >>> print(format_tensor(tw.TileTensor(list(range(6)), tw.row_major(2, 3))))
    [[0, 1, 2],
    [3, 4, 5]]
    """
    if tensor.size == 0:
        return ""
    if len(tensor._extents) == 2:
        rows = [join_texts(row) for row in _matrix_texts(tensor)]
        return f"[{_join_rows(rows, tensor)}]"
    if tensor.size <= MAX_PRINTED:
        return join_texts(element_texts(tensor).reshape(-1, order="F"))
    ends = [_element_text(tensor, k) for k in range(EDGE)]
    ends += ["..."] + [_element_text(tensor, k) for k in range(tensor.size - EDGE, tensor.size)]
    return join_texts(ends)


def _join_rows(rows: list[str], tensor: View) -> str:
    if tensor.size > MAX_PRINTED and tensor._extents[0] > 2 * EDGE:
        rows = [*rows[:EDGE], "...", *rows[-EDGE:]]
    return ",\n".join(rows)


def _matrix_texts(tensor: View) -> list[list[str]]:
    """Return the texts of a matrix, row by row; of a large one only the first and last rows and columns."""
    if tensor.size <= MAX_PRINTED:
        return [list(row) for row in element_texts(tensor)]
    chosen = [list(range(n)) if n <= 2 * EDGE else [*range(EDGE), *range(n - EDGE, n)] for n in tensor._extents]
    rows = []
    for i in chosen[0]:
        row = [_element_text(tensor, i, j) for j in chosen[1]]
        if tensor._extents[1] > 2 * EDGE:
            row[EDGE:EDGE] = ["..."]
        rows.append(row)
    return rows


def _element_text(tensor: View, *index: int) -> str:
    places, valid = vector_places(tensor, index)
    data = tensor._store.host
    texts = [
        format_number(data[place]) if ok else "_"
        for place, ok in zip(places.reshape(-1), valid.reshape(-1), strict=True)
    ]
    return texts[0] if tensor.element_size == 1 else join_texts(texts)


def format_matrices(tensor: View) -> str:
    """Return every matrix of the last two modes as a grid under its leading coordinates.

    >>> import tilewright as tw
    >>> print(format_matrices(tw.TileTensor(list(range(8)), tw.row_major(2, 2, 2))))
    [0, :, :]
      0 1
      2 3
    [1, :, :]
      4 5
      6 7
    """
    texts = element_texts(tensor)
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

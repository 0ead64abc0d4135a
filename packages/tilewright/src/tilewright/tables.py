# SPDX-License-Identifier: Apache-2.0
"""Tables of names and figures as text, and counted nouns: one way for all reports."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os.path import commonprefix

_ELISION = ".."
_MAX_PLAIN = 999999.5  # numbers from here on are written with an exponent
_MIN_NAME = 24  # columns of names, however narrow the terminal


def count_of(number: int, noun: str) -> str:
    """Return a counted noun.

    >>> count_of(1, "tensor"), count_of(2, "tensor"), count_of(0, "file")
    ('1 tensor', '2 tensors', '0 files')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def format_number(value: float, digits: int) -> str:
    """Return a number with `digits` significant digits, and all digits before the point up to six of them.

    >>> format_number(0.1234, 2), format_number(100.0, 2), format_number(123456.7, 3), format_number(1e6, 2)
    ('0.12', '100', '123457', '1e6')
    """
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    if 1 <= abs(value) < _MAX_PLAIN:
        return f"{value:.0f}"
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{int(exponent)}"


def shorten_names(names: Sequence[str], width: int | None) -> list[str]:
    """Return names of at most `width` characters: what the long ones have in common is cut; None cuts nothing.

    The start or the end that they share loses its middle, so that what tells them apart remains. If that is not enough,
    each loses its own middle; names that would become equal stay as they are.

    >>> shorten_names(["model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight", "norm"], 26)
    ['mode..mlp.gate_proj.weight', 'mode..mlp.up_proj.weight', 'norm']
    """
    long = [name for name in names if width is not None and len(name) > width]
    if width is None or len(long) < 2:
        return list(names)
    front = len(commonprefix(long))  # noqa: RUF071  (names, not paths)
    back = len(commonprefix([name[front:][::-1] for name in long]))  # noqa: RUF071
    excess = max(map(len, long)) - width
    cuts = []
    for common, from_end in sorted([(front, False), (back, True)], reverse=True):
        size = min(excess + len(_ELISION), common) if excess > 0 else 0
        if size > len(_ELISION):
            cuts.append((common, size, from_end))
            excess -= size - len(_ELISION)
    result = {name: name for name in names}
    for common, size, from_end in cuts:
        for name in long:
            result[name] = _cut_common(result[name], common, size, from_end)
    shortened = [result[name] for name in names]
    is_useful = excess <= 0 and len(set(shortened)) == len(set(names))
    return shortened if is_useful else _cut_middles(names, width)


def _cut_middles(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most `width` characters without the middle of long ones, if they stay different."""
    for tail in (2 * width // 3, width // 2, width // 3):
        head = width - len(_ELISION) - tail
        result = [name if len(name) <= width else name[:head] + _ELISION + name[-tail:] for name in names]
        if len(set(result)) == len(set(names)):
            return result
    return list(names)


def _cut_common(name: str, common: int, size: int, from_end: bool) -> str:
    """Return a name without `size` characters in the middle of its first or last `common` ones."""
    front = (common - size + 1) // 2
    start = len(name) - common + front if from_end else front
    return name[:start] + _ELISION + name[start + size :]


def format_table(
    rows: Sequence[Sequence[str]], width: int | None = None, right: Collection[int] = (), indent: str = ""
) -> list[str]:
    """Return lines with aligned columns; the names in the first column are shortened to fit `width`, if it is given.

    Columns that are numbered in `right` are aligned to the right.

    >>> for line in format_table([("tensor", "bytes"), ("wte", "98304"), ("wpe", "512")], right=[1]):
    ...     print(line)
    tensor  bytes
    wte     98304
    wpe       512
    """
    if not rows:
        return []
    widths = [max([len(row[k]) for row in rows]) for k in range(len(rows[0]))]
    if width is not None:
        others = len(indent) + sum([each + 2 for each in widths[1:]])
        names = shorten_names([row[0] for row in rows], max(_MIN_NAME, width - others))
        rows = [(name, *row[1:]) for name, row in zip(names, rows, strict=True)]
        widths[0] = max(map(len, names))
    lines = []
    for row in rows:
        pairs = enumerate(zip(row, widths, strict=True))
        cells = [f"{cell:>{n}}" if k in right else f"{cell:<{n}}" for k, (cell, n) in pairs]
        lines.append(f"{indent}{'  '.join(cells)}".rstrip())
    return lines

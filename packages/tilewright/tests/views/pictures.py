# SPDX-License-Identifier: Apache-2.0
"""Reading pictures back: which color and which words an SVG gives each cell of a grid."""

import re
from dataclasses import dataclass
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
BOX = re.compile(r"M(-?[\d.]+) (-?[\d.]+)h([\d.]+)v([\d.]+)h-([\d.]+)z")


@dataclass
class DrawnGrid:
    rows: int
    columns: int
    colors: dict[tuple[int, int], list[str]]  # every color that was painted on a cell: one, if all is well
    labels: dict[tuple[int, int], list[str]]


def parse(svg: str) -> ElementTree.Element:
    """Return the tree of an SVG, which must be well-formed XML."""
    return ElementTree.fromstring(svg)


def drawn_grids(svg: str) -> list[DrawnGrid]:
    """Return all grids of a picture, from nothing but its markup."""
    return [_grid(group) for group in parse(svg).iter(f"{SVG}g") if group.get("class") == "tw-cells"]


def _grid(group: ElementTree.Element) -> DrawnGrid:
    rows, columns, left, top, width, height = (
        int(group.get(f"data-{name}")) for name in ("rows", "columns", "left", "top", "width", "height")
    )
    tall, wide = (int(group.get(f"data-{name}") or whole) for name, whole in (("tall", rows), ("wide", columns)))
    right, down = int(group.get("data-right") or wide * width), int(group.get("data-down") or tall * height)

    def place(x: float, y: float) -> tuple[float, float]:
        """Return the row and column of a point, which are whole numbers at the corner of a cell."""
        across, below = (x - left) // right, (y - top) // down
        return below * tall + (y - top - below * down) / height, across * wide + (x - left - across * right) / width

    colors: dict[tuple[int, int], list[str]] = {}
    for path in group.findall(f"{SVG}path"):
        if path.get("class") != "tw-cell":
            continue
        found = BOX.findall(path.get("d"))
        assert "".join(f"M{x} {y}h{w}v{h}h-{back}z" for x, y, w, h, back in found) == path.get("d")
        for x, y, w, h, back in found:
            assert w == back
            assert float(h) == height
            row, column = place(float(x), float(y))
            assert row.is_integer()
            assert column.is_integer()
            for k in range(round(float(w) / width)):
                colors.setdefault((int(row), int(column) + k), []).append(path.get("fill"))
    labels: dict[tuple[int, int], list[str]] = {}
    for label_group in group.findall(f"{SVG}g"):
        if label_group.get("class").startswith("tw-label"):
            for text in label_group:
                row, column = place(float(text.get("x")), float(text.get("y")))
                labels.setdefault((int(row), int(column)), []).append(text.text)
    return DrawnGrid(rows, columns, colors, labels)

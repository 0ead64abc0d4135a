# SPDX-License-Identifier: Apache-2.0
"""Draw the bar charts of docs/performance.md from its own tables, so that they always show the same figures.

    python tools/pictures/make_charts.py

A picture `images/performance_*.svg` on that page is drawn from the first table after it. The first column has the
labels; every other column whose cells are all numbers, or "-" for none, becomes a series.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tilewright.views.svg import LIGHT, SANS, dark_style, text_element, text_width

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
PICTURE = re.compile(r"!\[([^\]]*)\]\(images/(performance_\w+\.svg)\)")
COLORS = ("#2f6f9f", "#d08a3e", "#7aa874", "#9c6b98", "#8c959f")
LABELS_WIDTH, BARS_WIDTH, VALUES_WIDTH = 330, 360, 60
BAR, GAP, TOP = 13, 9, 62


class Table(NamedTuple):
    """The labels of the rows of a table, and its series by their titles: numbers as they are written, or "-"."""

    labels: list[str]
    series: dict[str, list[str]]


def read_table(lines: list[str]) -> Table:
    """Return the first table in some lines of Markdown."""
    first = next(k for k, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|")])
    titles, _, *body = rows
    series = {
        title: [row[k] for row in body]
        for k, title in enumerate(titles)
        if k and all(re.fullmatch(r"-|\d+(\.\d+)?", row[k]) for row in body)
    }
    return Table([row[0] for row in body], series)


def draw_chart(title: str, table: Table) -> str:
    """Return a chart of horizontal bars, a group for each row of a table; a line marks a ratio of 1."""
    scale = BARS_WIDTH / max([float(cell) for column in table.series.values() for cell in column if cell != "-"])
    group = BAR * len(table.series) + GAP
    width = LABELS_WIDTH + BARS_WIDTH + VALUES_WIDTH
    height = TOP + group * len(table.labels) + 12
    body = [text_element(14, 24, title, 14, bold=True)]
    x = 14.0
    for color, name in zip(COLORS[: len(table.series)], table.series, strict=True):
        body.append(f'<rect x="{x:g}" y="38" width="11" height="11" fill="{color}"/>')
        body.append(text_element(x + 16, 48, name, 12, "soft"))
        x += 34 + text_width(name, 12)
    is_ratio, one = "ratio" in title, LABELS_WIDTH + scale
    for row, label in enumerate(table.labels):
        top = TOP + row * group
        middle = top + BAR * len(table.series) / 2 + 4
        body.append(text_element(LABELS_WIDTH - 10, middle, label, 12, anchor="end"))
        for k, column in enumerate(table.series.values()):
            cell, y = column[row], top + k * BAR
            if cell != "-":
                length = float(cell) * scale
                size = f'width="{length:.1f}" height="{BAR - 2}"'
                body.append(f'<rect x="{LABELS_WIDTH}" y="{y}" {size} fill="{COLORS[k]}"/>')
                x = LABELS_WIDTH + length + 5
                if is_ratio and x - 3 < one < x + text_width(cell, 11) + 3:
                    x = one + 5  # beside the line, not across it
                body.append(text_element(round(x, 1), y + BAR - 3, cell, 11, "soft"))
    if is_ratio:
        body.append(f'<path d="M{one:.1f} {TOP - 6}V{height - 10}" stroke="{LIGHT["soft"]}" stroke-dasharray="3 3"/>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    paper = f'<rect class="tw-paper" width="{width}" height="{height}" fill="{LIGHT["paper"]}"/>'
    return "\n".join([f'{head} font-family="{SANS}">', dark_style(), paper, *body, "</svg>", ""])


def draw_charts(page: str) -> dict[str, str]:
    """Return the charts of a page by the names of their files."""
    lines = page.splitlines()
    charts = {}
    for k, line in enumerate(lines):
        for title, name in PICTURE.findall(line):
            charts[name] = draw_chart(title, read_table(lines[k + 1 :]))
    return charts


if __name__ == "__main__":
    for name, chart in draw_charts(PAGE.read_text(encoding="utf-8")).items():
        PAGE.parent.joinpath("images", name).write_text(chart, encoding="utf-8")
        print(f"wrote {name}")

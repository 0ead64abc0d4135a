# SPDX-License-Identifier: Apache-2.0
"""Pictures of CuTe's layouts: tables in text and in LaTeX."""

from __future__ import annotations

from ..errors import LayoutError
from ..layout import LayoutLike
from ..layout.layout_like import require_layout


def print_layout(layout: LayoutLike) -> None:
    """Print `layout`, of rank 2, and a table of its offsets.

    >>> from tilewright.cute import Layout
    >>> print_layout(Layout((2, 3), (3, 1)))
    (2,3):(3,1)
          0   1   2
        +---+---+---+
     0  | 0 | 1 | 2 |
        +---+---+---+
     1  | 3 | 4 | 5 |
        +---+---+---+
    """
    if require_layout(layout, "print_layout").rank != 2:
        raise LayoutError(f"print_layout of {layout}: expected a layout of rank 2, got rank {layout.rank}")
    rows, columns = (layout.mode(k).size for k in (0, 1))
    width = len(str(layout.cosize)) if isinstance(layout.cosize, int) else 8
    line = "    " + f"+{'-' * (width + 2)}" * columns + "+"
    print(layout)
    print("    " + "".join(f"  {n:>{width}} " for n in range(columns)).rstrip())
    for m in range(rows):
        print(line)
        print(f"{m:2d}  " + "".join(f"| {layout(m, n)!s:>{width}} " for n in range(columns)) + "|")
    print(line)


def print_latex(layout: LayoutLike) -> None:
    """Print `layout`, of rank 2, as a picture in LaTeX (TikZ): a cell for each coordinate, with its offset.

    >>> from tilewright.cute import Layout
    >>> print_latex(Layout((1, 2), (2, 1)))
    % Layout: (1,2):(2,1)
    \\documentclass[convert]{standalone}
    \\usepackage{tikz}
    \\begin{document}
    \\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm, outer sep=0pt}]
    \\node[draw] at (0,0) {0};
    \\node[draw] at (0,1) {1};
    \\node at (0,-1) {0};
    \\node at (-1,0) {0};
    \\node at (-1,1) {1};
    \\end{tikzpicture}
    \\end{document}
    """
    if require_layout(layout, "print_latex").rank != 2:
        raise LayoutError(f"print_latex of {layout}: expected a layout of rank 2, got rank {layout.rank}")
    rows, columns = (int(layout.mode(k).size) for k in (0, 1))
    lines = [
        f"% Layout: {layout}",
        r"\documentclass[convert]{standalone}",
        r"\usepackage{tikz}",
        r"\begin{document}",
        r"\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm, outer sep=0pt}]",
        *[rf"\node[draw] at ({m},{n}) {{{layout(m, n)}}};" for m in range(rows) for n in range(columns)],
        *[rf"\node at ({m},-1) {{{m}}};" for m in range(rows)],
        *[rf"\node at (-1,{n}) {{{n}}};" for n in range(columns)],
        r"\end{tikzpicture}",
        r"\end{document}",
    ]
    print("\n".join(lines))

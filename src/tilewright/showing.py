# SPDX-License-Identifier: Apache-2.0
"""`Shown`: how things of every room are looked at, without those rooms knowing the room that draws.

Pictures are made by `tilewright.views`, which stands below all rooms that it draws. It is looked up when somebody
looks, so that importing a layout imports no pictures.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Shown:
    """A thing with a picture: `.show()` in a terminal or a file, and by itself in a notebook.

    >>> from tilewright import row_major
    >>> isinstance(row_major(4, 8), Shown)
    True
    """

    __slots__ = ()

    def show(self, to: Any = None, **options: Any) -> None:
        """Show this as text in a terminal, as a picture in a notebook, or in a file: .svg, .html, .txt or .png.

        >>> from tilewright import Layout
        >>> Layout(3, 2).show(memory=False)
        3:2
        <BLANKLINE>
          coordinates
            0 1 2
          0 0 2 4
          offset:  0 to 4
        <BLANKLINE>
          layout                  3:2
          elements                3
          memory                  5 places
          contiguous, row by row  3 runs of 1
          one element a place     yes
        """
        import_module("tilewright.views").show(self, to, **options)

    def _repr_html_(self) -> str | None:
        found: str | None = import_module("tilewright.views").notebook_html(self)
        return found

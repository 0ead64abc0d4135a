# SPDX-License-Identifier: Apache-2.0
"""`Drawable`: the `.show()` method of layouts, tensors, specs, plans and reports.

`tilewright.views` draws them and imports all their packages, so it is imported only when something is shown.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike


class Drawable:
    """Base class of objects that can be drawn: `.show()`, and pictures in notebooks.

    >>> from tilewright import row_major
    >>> isinstance(row_major(4, 8), Drawable)
    True
    """

    __slots__ = ()

    def show(self, to: str | PathLike[str] | None = None, **options: object) -> None:
        """Draw this object: as text in a terminal, as a picture in a notebook, or into a file.

        Args:
            to: path of a file to write, ending in .svg, .html, .txt or .json; by default nothing is written.
            options: the options of the scene; all scenes have `label=`, `color=` and `address="hex"`, most have
            `side=`.

        >>> from tilewright import Layout
        >>> Layout(3, 2).show(memory=False)
        3:2
        <BLANKLINE>
          coordinates
            0 1 2
          0 0 2 4
          offset:  0 to 4
        <BLANKLINE>
          layout                 3:2
          elements               3
          memory                 5 elements
          contiguous, row-major  3 runs of 1
          injective              yes
        """
        import_module("tilewright.views").show(self, to, **options)

    def _repr_html_(self) -> str | None:
        html: str | None = import_module("tilewright.views").notebook_html(self)
        return html

# SPDX-License-Identifier: Apache-2.0
"""`--animate` of show and reshard: a schedule, a copy or a reshard as a page that plays it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import check_output_path

if TYPE_CHECKING:
    from ..layout import LayoutLike
    from ..views import Animation


def check_animation_path(output: str | None) -> str:
    """Return the path `output`; raise unless an animation can be written to it.

    >>> check_animation_path("copy.html")
    'copy.html'
    """
    if output is None or Path(output).suffix.lower() != ".html":
        given = "nothing" if output is None else output
        raise click.UsageError(f"--animate needs -o with a name that ends in .html, got {given}")
    check_output_path(output)
    return output


def animate_copy(layouts: Sequence[LayoutLike], **options: Any) -> Animation:
    """Return the copy from the first of `layouts` to the second, or from row-major order to a single one.

    `options` are those of the scene.

    >>> from tilewright import Layout
    >>> animate_copy([Layout((2, 2))]).captions[-1]
    '4 of 4 elements copied'
    """
    from ..copying import Placement, plan_copy
    from ..layout import row_major
    from ..views import animate

    target = Placement(layouts[-1], "uint8")
    source = Placement(layouts[0] if len(layouts) > 1 else row_major(*target.data_extents), "uint8")
    return animate(plan_copy(source, target), **options)

# SPDX-License-Identifier: Apache-2.0
"""The subject of an argument: a file, or the text of a layout or of a tensor on a chip, however long it is."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from ..memory import TensorSpec
    from .options import SpecOptions

_SHAPE = re.compile(r"\s*(?:\[[0-9,x ]*\]|\(\s*\)|\(?[0-9]+(?:\s*[x×,]\s*[0-9]+)*\)?)\s*(?::\s*[a-z_]+\s*=|\Z)")
_URL = re.compile(r"\s*[a-zA-Z][a-zA-Z0-9+.-]*://")


def names_file(text: str) -> bool:
    """Return whether an argument is a URL or the path of an existing file; a text that cannot be a path is neither.

    >>> names_file("hf://org/model"), names_file("4x60x90"), names_file("(4,8):(8,1)" * 100)
    (True, False, False)
    """
    return _URL.match(text) is not None or os.path.exists(text)


def is_text(text: str) -> bool:
    """Return whether an argument is the text of a layout or a tensor, rather than a shape or the name of a file.

    >>> is_text("(4,8):(8,1)"), is_text("4x60x90:dtype=float32"), is_text("()"), is_text("model.safetensors")
    (True, False, False, False)
    """
    return any(mark in text for mark in "<[({") and not _SHAPE.match(text) and not names_file(text)


def _convert_shape(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    from .options import SHAPE

    return None if value is None else cast("tuple[int, ...]", SHAPE.convert(value, param, ctx))


text_shape_option = click.option(
    "--shape",
    "text_shape",
    callback=_convert_shape,
    metavar="SHAPE",
    help="The shape, for a TEXT without one: oneDNN, TVM.",
)
"""The option of verbs that take a text of a layout."""


def parse_subject(text: str, options: SpecOptions, shape: tuple[int, ...] | None = None) -> TensorSpec | Any:
    """Return the object that a text describes: a tensor spec on the chip of the options, or a layout.

    `shape` is for notations without one.

    The text is in any notation, as a system printed it: a tensor of ttnn is a spec, and everything else a layout.

    >>> from tilewright.cli.options import SpecOptions
    >>> print(parse_subject("(_4,_8):(_8,_1)", SpecOptions()))
    (4,8):(8,1)
    """
    from ..memory import TensorSpec
    from ..notation import ParsedText, parse

    parsed = parse(text, shape)
    if not isinstance(parsed, ParsedText):
        return parsed
    if isinstance(parsed.placement, TensorSpec):
        if parsed.besides:
            click.echo(f"note: the answer leaves out {', '.join(parsed.besides)}", err=True)
        return parsed.placement.with_chip(options.find_chip())
    return parsed


def shorten(text: str, most: int = 60) -> str:
    """Return a text that fits into a message: its beginning, if it is longer than `most` characters.

    >>> shorten("(4,8):(8,1)"), shorten("TensorSpec(logical_shape=Shape([64, 64]))", 20)
    ('(4,8):(8,1)', 'TensorSpec(logical_s...')
    """
    return text if len(text) <= most else f"{text[:most]}..."

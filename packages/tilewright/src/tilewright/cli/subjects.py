# SPDX-License-Identifier: Apache-2.0
"""The subject of an argument: a file, or the text of a layout or of a tensor on a chip, however long it is."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click

from .console import CommandError
from .options import SHAPE, SpecOptions

if TYPE_CHECKING:
    from ..files import StoredTensor
    from ..memory import DeviceLike, TensorSpec

_SHAPE = re.compile(r"\s*(?:\[[0-9,x ]*\]|\(\s*\)|\(?[0-9]+(?:\s*[x×,]\s*[0-9]+)*\)?)\s*(?::\s*[a-z_]+\s*=|\Z)")
_MAX_NAMES = 12  # of a file's tensors that an error lists
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


text_shape_option = click.option(
    "--shape", "text_shape", type=SHAPE, help="The shape, for a TEXT without one: oneDNN, TVM."
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


def open_stored(path: str, name: str | None, device: DeviceLike | None, follow_links: bool) -> StoredTensor:
    """Return the tensor `name` of a file, or its only one; with a `device` of a mesh, the part on it."""
    from ..files import open_tensors

    stored = open_tensors(path, follow_links)
    stored = stored if device is None else stored.on_device(device)
    names = list(stored)
    more = f" and {len(names) - _MAX_NAMES} others" if len(names) > _MAX_NAMES else ""
    listed = f"it has {', '.join(names[:_MAX_NAMES])}{more}" if names else "it is empty"
    if name is None and len(names) != 1:
        raise CommandError(f"{path} holds {len(names)} tensors; choose one with --tensor NAME: {listed}")
    if name is not None and name not in stored:
        raise CommandError(f"{path} has no tensor {name!r}; {listed}")
    return stored[names[0] if name is None else name]

# SPDX-License-Identifier: Apache-2.0
"""The subject of an argument: a file of tensors, or a text, however long it is, also in a file or on standard input."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ..errors import LayoutError
from .console import CommandError, ExitCode
from .options import SHAPE, SpecOptions

if TYPE_CHECKING:
    from ..files import StoredTensor
    from ..memory import DeviceLike, TensorSpec

# A shape, and the start of settings or of a MemoryConfig.
_SHAPE = re.compile(r"\s*(?:\[[0-9,x ]*\]|\(\s*\)|\(?[0-9]+(?:\s*[x×,]\s*[0-9]+)*\)?)\s*(?::\s*[a-zM]|\Z)")
_TEXT = re.compile(r"[<\[({]|\S\s+\S|KERNEL_COMPILE_TIME_ARGS=")  # brackets, several words, or a kernel's words
_SNIFFED = 4096  # bytes of a file, in which a text has no zero
_MAX_NAMES = 12  # of a file's tensors that an error lists
_URL = re.compile(r"\s*[a-zA-Z][a-zA-Z0-9+.-]*://")
_MAX_BYTES = 1 << 26  # of a text in a file or on standard input


class TextType(click.types.StringParamType):
    """The type of arguments that are a text, or name a file: a shell completes the file.

    >>> TEXT.convert("(4,8):(8,1)", None, None)
    '(4,8):(8,1)'
    """

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the request to complete the name of a file."""
        return [CompletionItem(incomplete, type="file")]


TEXT = TextType()


def read_text(argument: str) -> str:
    """Return the text that an argument stands for: standard input for "-", the content of a text file, or itself.

    A folder, a file of tensors and a URL stand for themselves.

    >>> read_text("(4,8):(8,1)")
    '(4,8):(8,1)'
    """
    from .. import files

    if argument == "-":
        content, name = getattr(sys.stdin, "buffer", sys.stdin).read(_MAX_BYTES + 1), "standard input"
    elif (
        not os.path.isfile(argument)
        or argument.endswith(".json")
        or files.find_file_kind(files.SourceFile(argument)) is not None
    ):
        return argument
    else:
        with Path(argument).open("rb") as file:
            content, name = file.read(_MAX_BYTES + 1), argument
        if b"\0" in content[:_SNIFFED]:
            return argument
    text = content if isinstance(content, str) else content.decode("utf-8-sig", "replace")
    if len(content) > _MAX_BYTES or not text.strip():
        problem = "is empty" if not text.strip() else f"is longer than {_MAX_BYTES} bytes"
        raise CommandError(f"{name} {problem}; expected the text of a layout, a tensor or an error", ExitCode.INPUT)
    return text.strip()


def names_file(text: str) -> bool:
    """Return whether an argument is a URL or the path of an existing file; a text that cannot be a path is neither.

    >>> names_file("hf://org/model"), names_file("4x60x90"), names_file("(4,8):(8,1)" * 100)
    (True, False, False)
    """
    return _URL.match(text) is not None or os.path.exists(text)


def split_shape(text: str) -> tuple[str, str]:
    """Return a shape and the settings after it; what is no shape has none.

    >>> split_shape("4x60x90:dtype=float32"), split_shape("(4,8):(8,1)")
    (('4x60x90', 'dtype=float32'), ('(4,8):(8,1)', ''))
    """
    shape, _, settings = text.partition(":")
    return (shape, settings) if _SHAPE.match(text) and not names_file(text) else (text, "")


def is_text(text: str) -> bool:
    """Return whether an argument is the text of a layout, a tensor or an error, rather than a shape or a file.

    >>> is_text("(4,8):(8,1)"), is_text("4x60x90:dtype=float32"), is_text("()"), is_text("model.safetensors")
    (True, False, False, False)
    """
    return _TEXT.search(text) is not None and not _SHAPE.match(text) and not names_file(text)


text_shape_option = click.option(
    "--shape", "text_shape", type=SHAPE, help="The shape, for a TEXT without one: oneDNN, TVM, Triton, shardings."
)
"""The option of verbs that take a text of a layout."""


def parse_subject(text: str, options: SpecOptions, shape: tuple[int, ...] | None = None) -> TensorSpec | Any:
    """Return the object that a text describes: a spec on the chip of the options, a layout, a sharding, a `ParsedText`.

    `shape` is for notations without one.

    The text is in any notation, as a system printed it: a tensor of ttnn is a spec. A log is read for its errors.

    >>> from tilewright.cli.options import SpecOptions
    >>> print(parse_subject("(_4,_8):(_8,_1)", SpecOptions()))
    (4,8):(8,1)
    """
    from .. import notation
    from ..layout import Layout
    from ..memory import TensorSpec

    try:
        parsed = notation.parse(text, shape)
    except LayoutError:
        report = notation.find_errors(text, is_message=True)
        if not report.errors:
            raise
        return notation.ParsedText("error", report)
    if isinstance(parsed, Layout) or not isinstance(parsed, notation.ParsedText):
        return parsed
    if isinstance(parsed.placement, notation.DeviceSharding):
        return parsed.placement
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

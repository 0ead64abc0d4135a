# SPDX-License-Identifier: Apache-2.0
"""What `show` is asked to draw: a layout, a tensor that is yet to be placed, or one in a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import exit_codes
from .failures import Failure
from .spec_options import OF_THE_MACHINE, SpecOptions
from .values import SHAPE

if TYPE_CHECKING:
    from ..files.stored_tensor import StoredTensor
    from ..memory import TensorSpec

_SHAPE = re.compile(r"(?:\[[0-9,x ]*\]|[0-9]+(?:[x×][0-9]+)+|[0-9]+)(?::[a-z].*)?")
_MOST_NAMES = 12  # of a file's tensors that are told


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing to draw: the text that named it, and what it turned out to be.

    >>> Subject.of("(4,8):(8,1)").layout
    Layout((4, 8), (8, 1))
    >>> Subject.of("512x512:buffer=l1").shape
    (512, 512)
    """

    text: str
    layout: Any = None
    shape: tuple[int, ...] | None = None
    settings: str = ""
    stored: StoredTensor | None = None

    @classmethod
    def of(cls, text: str, tensor: str | None = None, follow_links: bool = False) -> Subject:
        """Return what a text names: a file that is there, a shape with settings, or a layout.

        >>> Subject.of("4x60x90").shape
        (4, 60, 90)
        """
        if Path(text).exists():
            return cls(text, stored=_stored(text, tensor, follow_links))
        if _SHAPE.fullmatch(text):
            shape, _, settings = text.partition(":")
            return cls(text, shape=SHAPE.convert(shape, None, None), settings=settings)
        from ..files.tensor_file import SUFFIXES
        from ..layout import parse

        if text.endswith(SUFFIXES):
            raise FileNotFoundError(2, "No such file or directory", text)
        return cls(text, layout=parse(text))

    @property
    def name(self) -> str:
        """Return what a picture calls it."""
        return self.stored.name if self.stored is not None else ""

    @property
    def extents(self) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        found = self.stored.shape if self.stored is not None else self.shape
        if found is None:
            raise click.UsageError(f"{self.text} is a layout; give the shape of a tensor, such as 4x60x90")
        return found

    def spec(self, options: SpecOptions, given: frozenset[str]) -> TensorSpec:
        """Return the placement: what a file says, unless options say otherwise; `given` names those that were typed."""
        if self.settings:
            options = options.changed(self.settings)
        if self.stored is None:
            return options.spec(self.extents)
        if self.stored.spec is not None and not given - OF_THE_MACHINE:
            spec = self.stored.spec
            return spec if spec.chip is not None and not given else spec.with_chip(options.machine())
        if self.stored.format is not None and "dtype" not in given:
            from dataclasses import replace

            options = replace(options, dtype=self.stored.format.name)
        return options.spec(self.extents)


def _stored(path: str, name: str | None, follow_links: bool) -> StoredTensor:
    from ..files import open_tensors

    found = open_tensors(path, follow_links)
    if name is not None:
        if name not in found:
            raise Failure(f"{path} has no tensor {name!r}; {_names(list(found))}", exit_codes.INPUT)
        return found[name]
    if len(found) != 1:
        raise Failure(f"{path} holds {len(found)} tensors; choose one with --tensor NAME: {_names(list(found))}")
    return next(iter(found.values()))


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} others" if len(names) > _MOST_NAMES else ""
    return f"it has {', '.join(names[:_MOST_NAMES])}{more}" if names else "it is empty"

# SPDX-License-Identifier: Apache-2.0
"""Types of command-line values: shapes `4x60x90`, sizes `256MiB`, coordinates `2,33,17`, cores `0,5`, names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ..byte_sizes import parse_size

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:  # older releases of click have no brackets here
    ParamType = click.ParamType

_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)")


class ShapeType(ParamType):
    """Extents, as in 4x60x90; a single number is a vector, and () has no dimensions."""

    name = "shape"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the extents that a text gives."""
        if isinstance(value, tuple):
            return value
        text = str(value).strip().strip("()[]").replace(" ", "")
        parts = re.split(r"[x×X,]", text.rstrip(",")) if text else []
        if not all(part.isascii() and part.isdigit() for part in parts):
            self.fail(f"{value!r} is not a shape; write extents as 4x60x90", param, ctx)
        return tuple([int(part) for part in parts])


class IntegerList(ParamType):
    """Integers, as in 2,33,17: a coordinate, dimensions."""

    name = "numbers"

    def __init__(self, what: str, example: str, count: int | None = None) -> None:
        self.what, self.example, self.count = what, example, count
        self.name = what.rsplit(maxsplit=1)[-1]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the integers that a text gives."""
        if isinstance(value, tuple):
            return value
        text = str(value).strip().strip("()[]")
        parts = [part.strip() for part in text.rstrip(",").split(",")] if text else []
        is_valid = all(_NUMBER.fullmatch(part) for part in parts) and self.count in (None, len(parts))
        if not is_valid:
            self.fail(f"{value!r} is not a {self.what}; write it as {self.example}", param, ctx)
        return tuple([int(part, 0) if "x" in part.lower() else int(part) for part in parts])


class SizeType(ParamType):
    """Bytes, as in 256MiB, 1.5GiB, 64KB or 4096."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes that a text gives."""
        if isinstance(value, int):
            return value
        size = parse_size(str(value))
        if size is None:
            self.fail(f"{value!r} is not a size; write it as 256MiB, 1.5GiB or a number of bytes", param, ctx)
        return size


class AddressType(ParamType):
    """A byte address, decimal or as 0x16e9d1."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the address that a text gives."""
        if isinstance(value, int):
            return value
        text = str(value).strip().replace("_", "")
        if not _NUMBER.fullmatch(text) or text.startswith("-"):
            self.fail(f"{value!r} is not an address; write it as 1498385 or 0x16dd11", param, ctx)
        return int(text, 16) if "x" in text.lower() else int(text)


class GridType(ParamType):
    """Cores: columns x rows from (0, 0) as 8x4, or ranges of cores as 0,0-3,1+5,0-5,1."""

    name = "grid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return (columns, rows), or a list of ranges, each two corners."""
        if isinstance(value, (tuple, list)):
            return value
        text = str(value).replace(" ", "")
        plain = re.fullmatch(r"([0-9]+)[xX×]([0-9]+)", text)
        if plain:
            return int(plain[1]), int(plain[2])
        ranges = [re.fullmatch(r"\(?(\d+),(\d+)\)?(?:-\(?(\d+),(\d+)\)?)?", part) for part in text.split("+")]
        if not all(ranges):
            self.fail(f"{value!r} is not a grid; write columns x rows as 8x4, or ranges as 0,0-3,1+5,0-5,1", param, ctx)
        corners = [[int(n) for n in found.groups() if n is not None] for found in ranges if found]
        return [((c[0], c[1]), (c[-2], c[-1])) for c in corners]


class FormatType(ParamType):
    """A number format: bfloat16, bfloat8_b, float32 and the others."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name of a format, or fail if it is unknown."""
        from ..errors import FormatError
        from ..formats import format_of

        try:
            return format_of(value).name
        except FormatError as problem:
            self.fail(str(problem), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the format names that complete a prefix."""
        from ..formats import BLOCK_FORMATS, SCALAR_FORMATS

        return [CompletionItem(name) for name in (*BLOCK_FORMATS, *SCALAR_FORMATS) if name.startswith(incomplete)]


class ChipType(ParamType):
    """A chip by name, or the TOML file that describes one."""

    name = "chip"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the chip."""
        from ..errors import MemoryConfigError
        from ..memory import Chip

        if not isinstance(value, str):
            return value
        try:
            return Chip.read(value) if value.endswith(".toml") else Chip.named(value)
        except MemoryConfigError as problem:
            self.fail(str(problem), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the chip names that complete a prefix."""
        from ..memory import chip_names

        return [CompletionItem(name) for name in chip_names() if name.startswith(incomplete)]


SHAPE = ShapeType()
SIZE = SizeType()
ADDRESS = AddressType()
GRID = GridType()
FORMAT = FormatType()
CHIP = ChipType()
COORDINATE = IntegerList("coordinate", "2,33,17")
CORE = IntegerList("core", "column,row, such as 0,5", 2)
DIMENSIONS = IntegerList("list of dimensions", "0,1")

# SPDX-License-Identifier: Apache-2.0
"""Rules: how each tensor is converted. Patterns with settings, in order; the last match of each setting wins."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..errors import FileFormatError, FormatError
from ..formats import format_of
from ..memory import Chip, PageLayout, Tile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_BYTES = 1 << 20
SHARD_KINDS = ("height", "width", "block", "nd", "dims")
_FOREIGN_KEYS = {  # keys of other libraries, where the closest match would be wrong
    "memory_layout": "shard",
    "memory_config": "shard",
    "strategy": "shard",
    "buffer_type": "buffer",
    "core_grid": "grid",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a tensor is converted; None means not set.

    `dtype`, `layout`, `tile`, `transpose_tile` and `pad_value` are those of the pages. `transpose` swaps the last two
    dimensions (true), or permutes all of them (a list). `shard` is "height", "width", "block", "nd" or "dims", over the
    cores of `grid`; `buffer` is "dram" or "l1"; `memory` is a memory config, in Python. `skip` leaves the tensor
    out.

    >>> Settings(dtype="bfloat8_b", tile=(16, 32)).with_defaults(Settings(dtype="float32", skip=True))
    Settings(dtype='bfloat8_b', tile=(16, 32), skip=True)
    """

    dtype: Any = None
    layout: Any = None
    tile: Any = None
    transpose_tile: bool | None = None
    transpose: Any = None
    pad_value: Any = None
    shard: str | None = None
    grid: Any = None
    shard_shape: Any = None
    shard_dims: Any = None
    orientation: Any = None
    distribution: Any = None
    buffer: Any = None
    memory: Any = None
    chip: Any = None
    skip: bool | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> Settings:
        """Return validated settings; raise for an unknown or invalid one, with `where` in the message.

        >>> try:
        ...     Settings.of({"dtyp": "bfloat16"}, "rule '*'")
        ... except FormatError as problem:
        ...     print(problem)
        unknown key 'dtyp' in rule '*'; did you mean 'dtype'?
        """
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                near = [_FOREIGN_KEYS[key]] if key in _FOREIGN_KEYS else get_close_matches(str(key), known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
                raise FormatError(f"unknown key {key!r} in {where}; {hint}")
        result = cls(**values)
        try:
            result._validate()
        except (ValueError, TypeError) as problem:  # including our own errors
            raise FormatError(f"{where}: {problem}") from None
        return result

    def _validate(self) -> None:
        if self.dtype is not None:
            format_of(self.dtype)
        if self.layout is not None:
            PageLayout.of(self.layout)
        if self.tile is not None:
            Tile.of(tuple(self.tile) if isinstance(self.tile, list) else self.tile)
        if self.chip is not None:
            Chip.of(self.chip)
        for name in ("transpose_tile", "skip"):
            if not isinstance(getattr(self, name), (bool, type(None))):
                raise FormatError(f"expected true or false as {name}, got {getattr(self, name)!r}")
        if self.shard is not None and self.shard not in SHARD_KINDS:
            raise FormatError(f"expected one of {', '.join(SHARD_KINDS)} as shard, got {self.shard!r}")
        if not (self.transpose is None or isinstance(self.transpose, bool) or _is_order(self.transpose)):
            raise FormatError(
                f"expected true, false, or an order such as [1, 0, 2] as transpose, got {self.transpose!r}"
            )
        if self.pad_value is not None and (isinstance(self.pad_value, bool) or not _is_number(self.pad_value)):
            raise FormatError(f"expected a number as pad_value, got {self.pad_value!r}")

    def with_defaults(self, others: Settings) -> Settings:
        """Return these settings, with `others` where they are not set.

        >>> Settings(layout="tile").with_defaults(Settings(layout="row_major", dtype="int32")).layout
        'tile'
        """
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return Settings(**{k: getattr(others, k) if value is None else value for k, value in own.items()})

    def __repr__(self) -> str:
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return f"Settings({', '.join(f'{k}={value!r}' for k, value in said.items() if value is not None)})"


def _is_order(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(type(n) is int for n in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


@dataclass(frozen=True, slots=True)
class Rules:
    """Patterns with settings, in order, on top of the settings for all tensors.

    Patterns are those of the shell: `*`, `?` and `[...]` match any text (dots included), one character, and one of
    several. A dtype for all tensors applies to floating-point tensors only; integers keep theirs unless a pattern
    matches.

    >>> rules = Rules.of({"*norm*": {"dtype": "bfloat16"}, "*.bias": {"skip": True}}, dtype="bfloat8_b")
    >>> rules.settings("encoder.norm.bias")
    Settings(dtype='bfloat16', skip=True)
    """

    lines: tuple[tuple[str, Settings], ...] = ()
    for_all: Settings = Settings()

    @classmethod
    def of(cls, lines: Any = None, **for_all: Any) -> Rules:
        """Return rules from a TOML file, a mapping or pairs of patterns and settings, and settings for all tensors.

        >>> Rules.of([("*", {"layout": "tile"})]).lines
        (('*', Settings(layout='tile')),)
        """
        if isinstance(lines, Rules):
            return cls(lines.lines, Settings.of(for_all, "the settings for all tensors").with_defaults(lines.for_all))
        if isinstance(lines, (str, Path)):
            given = _read_toml(lines)
        else:
            given = list(lines.items() if isinstance(lines, Mapping) else lines or ())
        pairs = tuple([(pattern, Settings.of(settings, f"rule {pattern!r}")) for pattern, settings in given])
        return cls(pairs, Settings.of(for_all, "the settings for all tensors"))

    def settings(self, name: str) -> Settings:
        """Return the settings of the matching patterns for a tensor, without those for all tensors.

        >>> Rules.of({"*": {"dtype": "float32"}, "a*": {"dtype": "bfloat16"}}).settings("abc").dtype
        'bfloat16'
        """
        result = Settings()
        for pattern, settings in self.lines:
            if fnmatchcase(name, pattern):
                result = settings.with_defaults(result)
        return result

    def unmatched_patterns(self, names: Iterable[str]) -> list[str]:
        """Return the patterns that match none of these names.

        >>> Rules.of({"a*": {}, "*.wieght": {}}).unmatched_patterns(["a.weight", "b.weight"])
        ['*.wieght']
        """
        listed = list(names)
        return [pattern for pattern, _ in self.lines if not any(fnmatchcase(name, pattern) for name in listed)]


def _read_toml(path: str | Path) -> list[tuple[str, Any]]:
    size = Path(path).stat().st_size
    if size > _MAX_BYTES:
        raise FileFormatError(f"{path} has {size} bytes, more than {_MAX_BYTES} for rules")
    try:
        result = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileFormatError(f"{path} is not TOML: {problem}") from None
    except RecursionError:
        raise FileFormatError(f"{path} is nested too deeply for rules") from None
    for pattern, settings in result.items():
        if not isinstance(settings, dict):
            raise FileFormatError(
                f'{path}: expected settings for the pattern {pattern!r}, got {settings!r}; write "*norm*" = {{dtype = '
                f'"bfloat16"}}'
            )
    return list(result.items())

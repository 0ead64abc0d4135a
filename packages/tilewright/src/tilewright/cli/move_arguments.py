# SPDX-License-Identifier: Apache-2.0
"""A tensor before and after a move, in two arguments: settings after a shape, or what ttnn prints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import click

from ..errors import LayoutError
from .console import shorten
from .options import MEMORY_OPTIONS, SHAPE, STATED_BY_TEXT, SpecOptions

if TYPE_CHECKING:
    from ..memory import TensorSpec

_TENSOR_SETTINGS = ("dtype", "layout", "tile", "transpose_tile", "alignment", "chip", "dispatch", "harvested")
_PRINTED = ("TensorSpec(", "MemoryConfig(", "Tensor(", "{", "tt::", "ttnn.", "#ttnn.")  # how printed values begin


class Move(NamedTuple):
    """A tensor before and after a move, the options that SOURCE overrides, and those that both override."""

    before: TensorSpec
    after: TensorSpec
    stated: frozenset[str]
    overridden: frozenset[str]


def parse_move(source: str, target: str, options: SpecOptions) -> Move:
    """Return the move that two arguments name; settings that the target leaves out are the source's.

    >>> move = parse_move("64x64:layout=tile", "shard=height:grid=2x1", SpecOptions())
    >>> print(move.after.memory)
    height sharded in L1, shards of 32 x 64 on 2 cores
    >>> sorted(move.stated)
    ['layout']
    """
    before = _parse_source(source, options)
    after = _parse_target(target, before, options)
    follows = frozenset(_TENSOR_SETTINGS) | _stated_by_target(target)
    return Move(before.spec, after, before.stated, before.stated & follows)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A placed tensor, the options that placed it, and the options that its text overrides."""

    spec: TensorSpec
    options: SpecOptions
    stated: frozenset[str]


def _parse_source(text: str, options: SpecOptions) -> _Placed:
    """Return the tensor that SOURCE names."""
    if text.lstrip().startswith(_PRINTED):
        spec = _parse_printed(text, "SOURCE", options)
        return _Placed(spec, replace(options, chip=spec.chip), STATED_BY_TEXT)
    shape, _, settings = text.partition(":")
    extents = SHAPE.convert(shape, None, None)
    own = options.with_settings(settings)
    return _Placed(own.build_spec(extents), own, SpecOptions.setting_names(settings))


def _stated_by_target(text: str) -> frozenset[str]:
    """Return the options that TARGET overrides."""
    words = text.strip()
    if words in ("dram", "l1") or any(mark in words for mark in _PRINTED):
        return MEMORY_OPTIONS
    settings = words.partition(":")[2] if words[:1].isdigit() or words[:1] in ("[", "(") else words
    return SpecOptions.setting_names(settings)


def _parse_target(text: str, source: _Placed, options: SpecOptions) -> TensorSpec:
    """Return the tensor where TARGET puts it; omitted settings are the source's."""
    words = text.strip()
    if words.startswith(_PRINTED):
        return _parse_printed(words, "TARGET", options, source.spec)
    if words in ("dram", "l1"):
        return source.spec.with_memory(words)
    options = replace(options, **{name: getattr(source.options, name) for name in _TENSOR_SETTINGS})
    if words[:1].isdigit() or words[:1] in ("[", "("):
        shape, _, settings = words.partition(":")
        return options.with_settings(settings).build_spec(SHAPE.convert(shape, None, None))
    if "=" not in words:
        raise click.UsageError(
            f"{shorten(text)!r} is not a target; write settings as shard=height:grid=8x1, or dram, l1, or a"
            " MemoryConfig(...)"
        )
    for setting in words.split(":"):
        name = setting.partition("=")[0].replace("-", "_")
        if name in _TENSOR_SETTINGS:
            raise click.UsageError(f"{setting!r} of TARGET: a reshard moves a tensor as it is; give it to SOURCE")
    return source.spec.with_memory(options.with_settings(words).memory())


def _parse_printed(text: str, role: str, options: SpecOptions, source: TensorSpec | None = None) -> TensorSpec:
    """Return the tensor of a text that ttnn printed; a memory config is one of the `source`, if there is one."""
    from ..memory import MemoryConfig, TensorSpec
    from ..notation import ParsedText, parse

    try:
        parsed = parse(text)
        value = parsed.subject if isinstance(parsed, ParsedText) else parsed
    except LayoutError as problem:
        raise click.UsageError(f"{role}: {problem}") from None
    if isinstance(value, MemoryConfig) and source is not None:
        return source.with_memory(value)
    if not isinstance(value, TensorSpec):
        expected = "a TensorSpec" if source is None else "a TensorSpec or a MemoryConfig"
        remedy = "; write SHAPE:MemoryConfig(...)" if isinstance(value, MemoryConfig) else ""
        raise click.UsageError(f"{role}: expected {expected} as ttnn prints it, got a {type(value).__name__}{remedy}")
    return value.with_chip(options.find_chip() if source is None else source.chip)

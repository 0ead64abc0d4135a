# SPDX-License-Identifier: Apache-2.0
"""A tensor on the command line, in one argument: `512x512:layout=tile:shard=block:grid=2x1`, or as ttnn prints it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from .options import SHAPE, SpecOptions

if TYPE_CHECKING:
    from ..memory import TensorSpec


def parse_spec_argument(text: str, chip: Any = None, like: TensorSpec | None = None) -> TensorSpec:
    """Return the spec that an argument describes: a shape with settings, or a TensorSpec or MemoryConfig of ttnn.

    A memory config has no shape: it is that of the tensor `like`, which must be given before it.

    >>> print(parse_spec_argument("64x64:layout=tile:shard=height:grid=2x1").memory)
    height sharded in L1, shards of 32 x 64 on 2 cores
    """
    if "(" not in text and "{" not in text:
        shape, _, settings = text.partition(":")
        options = SpecOptions(chip=chip)
        options = options.with_settings(settings) if settings else options
        return options.build_spec(SHAPE.convert(shape, None, None))
    from ..memory import Chip, MemoryConfig, TensorSpec
    from ..notation import parse_ttnn

    value = parse_ttnn(text).value
    known = replace(SpecOptions(), chip=chip).build_chip() if not isinstance(chip, Chip) else chip
    if isinstance(value, TensorSpec):
        return value.with_chip(known)
    if isinstance(value, MemoryConfig):
        if like is None:
            raise click.UsageError("a MemoryConfig does not say what is stored; name the other tensor with its shape")
        return like.with_memory(value)
    raise click.UsageError(f"expected a tensor such as 512x512:layout=tile, or a TensorSpec of ttnn, got {text[:60]!r}")

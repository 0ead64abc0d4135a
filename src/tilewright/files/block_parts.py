# SPDX-License-Identifier: Apache-2.0
"""What a block format keeps beside the values, read box by box as the values are: scales, and steps between numbers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ..formats.packed_tiles import PackedTiles, split_tiles
from ..memory import TensorSpec, from_bytes
from .stored_tensor import StoredTensor

Array = np.ndarray[Any, Any]


def read_factors(tensor: StoredTensor, box: Any = None) -> Array:
    """Return, for every element in a box, the factor that the scale of its block stands for.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright import to_bytes
    >>> from tilewright.files import Tensorbin, open_tensors, write_tensorbin
    >>> spec = TensorSpec((1, 32), "bfloat8_b")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     values = np.repeat(np.float32([3.0, 0.25]), 16).reshape(1, 32)
    ...     write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(spec, to_bytes(values, spec)))
    ...     read_factors(open_tensors(folder)["x"])[0, 15:17].tolist()
    [2.0, 0.25]
    """
    return _Factors(**_fields(tensor)).read(box)


def read_steps(tensor: StoredTensor, box: Any = None) -> Array:
    """Return, for every element in a box, how far the next larger number is that its block could hold there.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright import to_bytes
    >>> from tilewright.files import Tensorbin, open_tensors, write_tensorbin
    >>> spec = TensorSpec((1, 32), "bfloat8_b")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(spec, to_bytes(np.ones((1, 32), np.float32), spec)))
    ...     float(read_steps(open_tensors(folder)["x"])[0, 0])
    0.015625
    """
    return _Steps(**_fields(tensor)).read(box)


def _fields(tensor: StoredTensor) -> dict[str, Any]:
    return {each.name: getattr(tensor, each.name) for each in fields(tensor)}


class _Parts(StoredTensor):
    """The same tensor read the same way, but for what is made of its bytes."""

    def decode(self, data: Any, spec: TensorSpec) -> Array:
        """Return a number for every element of pages, in logical order."""
        found = self.numbers(split_tiles(data, spec.dtype, spec.page_elements))
        plain = TensorSpec(spec.shape.logical, "float32", spec.page_layout, spec.tile, alignment=spec.alignment)
        return from_bytes(found.astype(np.float32).reshape(-1).view(np.uint8), plain)

    def numbers(self, parts: PackedTiles) -> Array:
        """Return a number for every element, [tiles, elements]."""
        raise NotImplementedError


class _Factors(_Parts):
    def numbers(self, parts: PackedTiles) -> Array:
        return np.repeat(parts.factors(), parts.format.block, axis=1)


class _Steps(_Parts):
    def numbers(self, parts: PackedTiles) -> Array:
        return parts.steps()

# SPDX-License-Identifier: Apache-2.0
"""What can be compared: tensors of files, arrays, tensors in memory; all are read box by box, in logical space."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..copying.dlpack import as_host_array
from ..errors import LayoutError
from ..files.paged_boxes import as_box
from ..files.stored_tensor import StoredTensor
from ..files.tensor_file import open_tensors
from ..files.tensor_values import read_step_sizes
from ..formats import BlockFormat, Format, format_of
from ..memory import TensorSpec

Array = np.ndarray[Any, Any]


class Operand(Protocol):
    """One side of a comparison: its shape and format, its placement if it has one, and its values box by box.

    >>> operands_of(np.zeros((2, 3)))[""].shape
    (2, 3)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""

    @property
    def format(self) -> Format | None:
        """Return the number format; None where the file has a type that is not known."""

    @property
    def spec(self) -> TensorSpec | None:
        """Return the placement, where there is one."""

    def read(self, box: Any = None) -> Array:
        """Return the values in a box."""

    def steps(self, box: Any) -> Array | None:
        """Return how far apart neighbouring numbers are in a box, for block formats."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrayOperand:
    """An array in memory.

    >>> ArrayOperand(np.zeros((2, 3), np.float32)).format
    format_of('float32')
    """

    array: Array
    spec: TensorSpec | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""
        return tuple(self.array.shape)

    @property
    def format(self) -> Format:
        """Return the number format."""
        return format_of(self.array) if self.spec is None else self.spec.dtype

    def read(self, box: Any = None) -> Array:
        """Return the values in a box."""
        return self.array[as_box(box, self.shape).slices]

    def steps(self, box: Any) -> Array | None:
        """Return None: an array has no blocks."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class StoredOperand:
    """A tensor of a file."""

    tensor: StoredTensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""
        return self.tensor.shape

    @property
    def format(self) -> Format | None:
        """Return the number format."""
        return self.tensor.format

    @property
    def spec(self) -> TensorSpec | None:
        """Return the placement, where there is one; a mesh has one for each device, and other coordinates there."""
        return self.tensor.spec if self.tensor.mesh is None else None

    def read(self, box: Any = None) -> Array:
        """Return the values in a box."""
        return self.tensor.read(box)

    def steps(self, box: Any) -> Array | None:
        """Return how far apart neighbouring numbers are in a box, for block formats."""
        return read_step_sizes(self.tensor, box) if isinstance(self.format, BlockFormat) else None


@dataclass(frozen=True, slots=True, eq=False)
class Rearranged:
    """An operand seen with its dimensions in another order, and with dimensions of one left out or put in.

    >>> Rearranged(ArrayOperand(np.zeros((1, 2, 3))), (2, 3)).read((slice(0, 1), slice(0, 2))).shape
    (1, 2)
    """

    inner: Operand
    shape: tuple[int, ...]
    transposed: bool = False

    @property
    def format(self) -> Format | None:
        """Return the number format."""
        return self.inner.format

    @property
    def spec(self) -> TensorSpec | None:
        """Return None: coordinates are not those of the placement."""
        return None

    def read(self, box: Any = None) -> Array:
        """Return the values in a box."""
        return self._seen(box, self.inner.read)

    def steps(self, box: Any) -> Array | None:
        """Return how far apart neighbouring numbers are in a box, for block formats."""
        return None if not isinstance(self.format, BlockFormat) else self._seen(box, self.inner.steps)

    def _seen(self, box: Any, read: Any) -> Array:
        asked = as_box(box, self.shape)
        if self.transposed:
            order = (*range(len(self.shape) - 2), len(self.shape) - 1, len(self.shape) - 2)
            found: Array = read(asked.turned(order))
            return found.transpose(order)
        kept = iter([each for each, n in zip(asked.slices, self.shape, strict=True) if n != 1])
        found = read(tuple([slice(0, 1) if n == 1 else next(kept) for n in self.inner.shape]))
        return found.reshape(asked.shape)


def operands_of(thing: Any) -> dict[str, Operand]:
    """Return the operands of a path, an array, a tensor, or a mapping of names to these.

    >>> sorted(operands_of({"a": np.zeros(3), "b": np.ones(2)}))
    ['a', 'b']
    """
    if isinstance(thing, (str, os.PathLike)):
        return {name: StoredOperand(tensor) for name, tensor in open_tensors(thing).items()}
    if isinstance(thing, Mapping):
        return {str(name): _operand(value) for name, value in thing.items()}
    return {"": _operand(thing)}


def _operand(thing: Any) -> Operand:
    if isinstance(thing, StoredTensor):
        return StoredOperand(thing)
    spec = getattr(thing, "spec", None)
    if isinstance(spec, TensorSpec):
        return ArrayOperand(np.asarray(thing), spec)
    return ArrayOperand(as_host_array(thing))


def matched(a: Operand, b: Operand, transpose: bool = False) -> Operand:
    """Return b with the shape of a: dimensions of one may be there or not; the last two are swapped if asked.

    >>> matched(ArrayOperand(np.zeros((2, 3))), ArrayOperand(np.zeros((1, 2, 3)))).shape
    (2, 3)
    """
    swapped = (*b.shape[:-2], *b.shape[:-3:-1])
    if transpose and len(b.shape) > 1 and swapped == a.shape:
        return Rearranged(b, a.shape, transposed=True)
    if a.shape == b.shape:
        return b
    if [n for n in a.shape if n != 1] == [n for n in b.shape if n != 1]:
        return Rearranged(b, a.shape)
    hint = "; if B is A transposed, say so (transpose=True)" if swapped == a.shape else ""
    raise LayoutError(f"the shapes {list(a.shape)} and {list(b.shape)} differ{hint}")

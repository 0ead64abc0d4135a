# SPDX-License-Identifier: Apache-2.0
"""The two sides of a comparison: tensors of files, arrays, tensors in memory; all are read box by box."""

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


class ComparedTensor(Protocol):
    """One side of a comparison: its shape, format and spec, and its values box by box.

    >>> collect_tensors(np.zeros((2, 3)))[""].shape
    (2, 3)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""

    @property
    def format(self) -> Format | None:
        """Return the number format; None for element types without one."""

    @property
    def spec(self) -> TensorSpec | None:
        """Return the spec, if there is one."""

    def read(self, box: Any = None) -> Array:
        """Return the values in a box."""

    def step_sizes(self, box: Any) -> Array | None:
        """Return the distance to the next representable number in a box, for block formats."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedArray:
    """An array in memory.

    >>> ComparedArray(np.zeros((2, 3), np.float32)).format
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

    def step_sizes(self, box: Any) -> Array | None:
        """Return None: an array has no blocks."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class ComparedStoredTensor:
    """A tensor in a file."""

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
        """Return the spec, if there is one for the entire tensor; a mesh has one per device."""
        return self.tensor.spec if self.tensor.mesh is None else None

    def read(self, box: Any = None) -> Array:
        """Return the values in a box."""
        return self.tensor.read(box)

    def step_sizes(self, box: Any) -> Array | None:
        """Return the distance to the next representable number in a box, for block formats."""
        return read_step_sizes(self.tensor, box) if isinstance(self.format, BlockFormat) else None


@dataclass(frozen=True, slots=True, eq=False)
class ReshapedTensor:
    """A tensor with its last two dimensions swapped, or with dimensions of extent 1 added or removed.

    >>> ReshapedTensor(ComparedArray(np.zeros((1, 2, 3))), (2, 3)).read((slice(0, 1), slice(0, 2))).shape
    (1, 2)
    """

    inner: ComparedTensor
    shape: tuple[int, ...]
    transposed: bool = False

    @property
    def format(self) -> Format | None:
        """Return the number format."""
        return self.inner.format

    @property
    def spec(self) -> TensorSpec | None:
        """Return None: its coordinates differ from those of the spec."""
        return None

    def read(self, box: Any = None) -> Array:
        """Return the values in a box."""
        return self._read_through(box, self.inner.read)

    def step_sizes(self, box: Any) -> Array | None:
        """Return the distance to the next representable number in a box, for block formats."""
        return None if not isinstance(self.format, BlockFormat) else self._read_through(box, self.inner.step_sizes)

    def _read_through(self, box: Any, read: Any) -> Array:
        requested = as_box(box, self.shape)
        if self.transposed:
            order = (*range(len(self.shape) - 2), len(self.shape) - 1, len(self.shape) - 2)
            result: Array = read(requested.permute(order))
            return result.transpose(order)
        slices = iter([each for each, n in zip(requested.slices, self.shape, strict=True) if n != 1])
        result = read(tuple([slice(0, 1) if n == 1 else next(slices) for n in self.inner.shape]))
        return result.reshape(requested.shape)


def collect_tensors(value: Any) -> dict[str, ComparedTensor]:
    """Return the tensors of a path, an array, a tensor, or a mapping of names to these.

    >>> sorted(collect_tensors({"a": np.zeros(3), "b": np.ones(2)}))
    ['a', 'b']
    """
    if isinstance(value, (str, os.PathLike)):
        return {name: ComparedStoredTensor(tensor) for name, tensor in open_tensors(value).items()}
    if isinstance(value, Mapping):
        return {str(name): _as_compared_tensor(value) for name, value in value.items()}
    return {"": _as_compared_tensor(value)}


def _as_compared_tensor(value: Any) -> ComparedTensor:
    if isinstance(value, StoredTensor):
        return ComparedStoredTensor(value)
    spec = getattr(value, "spec", None)
    if isinstance(spec, TensorSpec):
        return ComparedArray(np.asarray(value), spec)
    return ComparedArray(as_host_array(value))


def match_shape(a: ComparedTensor, b: ComparedTensor, transpose: bool = False) -> ComparedTensor:
    """Return b with the shape of a: dimensions of extent 1 are added or removed, `transpose` swaps the last two.

    >>> match_shape(ComparedArray(np.zeros((2, 3))), ComparedArray(np.zeros((1, 2, 3)))).shape
    (2, 3)
    """
    swapped = (*b.shape[:-2], *b.shape[:-3:-1])
    if transpose and len(b.shape) > 1 and swapped == a.shape:
        return ReshapedTensor(b, a.shape, transposed=True)
    if a.shape == b.shape:
        return b
    if [n for n in a.shape if n != 1] == [n for n in b.shape if n != 1]:
        return ReshapedTensor(b, a.shape)
    hint = "; if B is A transposed, use transpose=True" if swapped == a.shape else ""
    raise LayoutError(f"shapes {list(a.shape)} and {list(b.shape)} differ{hint}")

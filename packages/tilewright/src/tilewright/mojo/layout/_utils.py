# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout._utils`: a tensor that owns its memory, on the host and on a device."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..brackets import brackets
from ..parametrized import ParametrizedMeta
from ..simd import SIMD, as_vector, scalar_format
from .int_layout import Layout, to_core
from .int_tuple import product
from .layout_tensor_type import LayoutTensorType
from .layout_tensor_view import LayoutTensor

__all__ = ["ManagedLayoutTensor", "load_to_simd"]


class ManagedLayoutTensor(metaclass=ParametrizedMeta):
    """A tensor with memory of its own: `ManagedLayoutTensor[dtype, layout]()`, with a `DeviceContext` also on a device.

    >>> managed = ManagedLayoutTensor["float32", Layout.row_major(2, 2)]()
    >>> managed.tensor().fill(1).size()
    4
    """

    def __init__(self, dtype: Any, layout: Layout, *arguments: Any) -> None:
        self.dtype, self.layout = scalar_format(dtype), layout
        runtime = [value for value in arguments if hasattr(value, "shape")]
        self.ctx = next((value for value in arguments if hasattr(value, "enqueue_create_buffer")), None)
        self.runtime_layout = runtime[0] if runtime else None
        kind = LayoutTensorType(LayoutTensor, self.dtype, layout)
        if self.runtime_layout is None:
            self._host = kind.stack_allocation()
        else:
            count = product(self.runtime_layout.shape.int_tree)
            whole = LayoutTensorType(LayoutTensor, self.dtype, Layout(count)).stack_allocation()
            self._host = kind(whole.ptr, self.runtime_layout)
        self._host.fill(0)
        self._device = None
        if self.ctx is not None:
            self._device = self.ctx.enqueue_create_buffer[self.dtype](self._host._store.size)

    @classmethod
    def _with_parameters(cls, dtype: Any, layout: Any, **_: Any) -> Any:
        """Return the constructor with its parameters bound.

        >>> ManagedLayoutTensor.with_parameters("int8", Layout(2))().tensor().size()
        2
        """
        return partial(cls, dtype, layout)

    @brackets
    def tensor(self, parameters: tuple[Any, ...], *, update: bool = True) -> Any:
        """Return the tensor on the host, with what the device has written.

        >>> ManagedLayoutTensor["int8", Layout(2)]().tensor().rank
        1
        """
        if self._device is not None and (parameters or (update,))[0]:
            self.ctx.enqueue_copy(self._host._store.host, self._device)  # type: ignore[union-attr]
        return self._host

    @brackets
    def device_tensor(self, parameters: tuple[Any, ...], *, update: bool = True) -> Any:
        """Return the tensor on the device, with what the host has written; without a device, that of the host.

        >>> ManagedLayoutTensor["int8", Layout(2)]().device_tensor().rank
        1
        """
        if self._device is None:
            return self._host
        if (parameters or (update,))[0]:
            self.ctx.enqueue_copy(self._device, self._host._store.host)  # type: ignore[union-attr]
        return LayoutTensor(self._device, self._layout())

    def _layout(self) -> Any:
        return to_core(self.layout) if self.runtime_layout is None else self.runtime_layout.core()


def load_to_simd(tensor: Any) -> SIMD:
    """Return all scalars of a tensor as one vector, the first index fastest.

    >>> load_to_simd(LayoutTensor([1, 2], Layout(2)))
    SIMD[DType.int64, 2](1, 2)
    """
    return as_vector(tensor.flat())

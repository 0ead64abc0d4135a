# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.element`: the scalars of one element of a tensor, in a layout of their own."""

from __future__ import annotations

from typing import Any, ClassVar

from ...tensor import contents
from ..parametrized import ParametrizedMeta
from ..pointer import Pointer
from ..simd import SIMD, SIMDType, as_vector, scalar_format
from .int_layout import Layout
from .int_tuple import of_tree
from .layout_tensor_view import LayoutTensor
from .runtime_layout import RuntimeLayout

__all__ = ["Element"]


class _ElementType:
    """`Element[dtype, layout]`: it makes elements, and loads them from memory."""

    def __init__(self, dtype: Any, layout: Layout) -> None:
        self.dtype, self.layout = scalar_format(dtype), layout

    @property
    def element_data_type(self) -> SIMDType:
        """Return the type of the scalars together."""
        return SIMDType(self.dtype, self.layout.size())

    def __call__(self, element_data: Any, *_: Any) -> Element:
        return Element(self.element_data_type(element_data), self.layout)

    def load(self, ptr: Pointer, runtime_layout: Any = None) -> Element:
        """Return the element at a pointer."""
        layout = self.layout if runtime_layout is None else _at_run_time(runtime_layout)
        return Element(as_vector(_view(ptr, layout).flat(order="row")), layout)

    def masked_load(self, ptr: Pointer, runtime_layout: Any = None) -> Element:
        """Return the element at a pointer, with zeros where the layout at run time is smaller."""
        if runtime_layout is None:
            return self.load(ptr)
        values = _clipped(ptr, self.layout, runtime_layout).to_numpy(fill=0)
        return Element(as_vector(values.reshape(-1)), self.layout)


class Element(metaclass=ParametrizedMeta):
    """The scalars of an element, and where they lie from a pointer on.

    >>> from tilewright.mojo import Span
    >>> element = Element["int64", Layout(2, 2)].load(Span([1, 2, 3]).unsafe_ptr())
    >>> print(element)
    [1, 3]
    """

    PARAMETERS: ClassVar[tuple[str, ...]] = ("dtype", "layout")

    def __init__(self, element_data: SIMD, layout: Layout) -> None:
        self.element_data, self.layout = element_data, layout

    @classmethod
    def _with_parameters(cls, dtype: Any = None, layout: Any = None, *_: Any, **__: Any) -> Any:
        """Return the type `Element[dtype, layout]`.

        >>> Element.with_parameters("int8", Layout(2)).element_data_type
        SIMD[DType.int8, 2]
        """
        return cls if dtype is None else _ElementType(dtype, layout)

    @staticmethod
    def load(ptr: Pointer, runtime_layout: Any) -> Element:
        """Return the element at a pointer, of the layout that is given.

        >>> from tilewright.mojo import Span
        >>> print(Element.load(Span([1, 2, 3]).unsafe_ptr(), Layout(2)))
        [1, 2]
        """
        return _ElementType(ptr.dtype, runtime_layout).load(ptr, runtime_layout)

    @staticmethod
    def masked_load(ptr: Pointer, runtime_layout: Any) -> Element:
        """Return the element at a pointer, with zeros where the layout at run time is smaller.

        >>> from tilewright.mojo import Span
        >>> from tilewright.mojo.layout import RuntimeLayout
        >>> print(Element.masked_load(Span([1, 2, 3]).unsafe_ptr(), RuntimeLayout[Layout(2)](1, 1)))
        [1, 0]
        """
        return _ElementType(ptr.dtype, runtime_layout.layout).masked_load(ptr, runtime_layout)

    @property
    def dtype(self) -> Any:
        """Return the number type.

        >>> Element["int8", Layout(2)](3).dtype
        DType.int8
        """
        return self.element_data.dtype

    def store(self, ptr: Pointer) -> None:
        """Write the scalars from a pointer on.

        >>> from tilewright.mojo.pointer import alloc
        >>> Element["int8", Layout(2)](3).store(alloc["int8"](2))
        """
        view = _view(ptr, self.layout)
        contents.copy_from(view, self.element_data.array.reshape(tuple(view.shape)))

    def masked_store(self, ptr: Pointer, runtime_layout: Any = None) -> None:
        """Write the scalars that the layout at run time has.

        >>> from tilewright.mojo.pointer import alloc
        >>> Element["int8", Layout(2)](3).masked_store(alloc["int8"](2))
        """
        if runtime_layout is None:
            self.store(ptr)
            return
        view = _clipped(ptr, self.layout, runtime_layout)
        values = self.element_data.array.reshape(tuple(view._extents))
        contents.copy_from(view, values)

    def __str__(self) -> str:
        return str(self.element_data)


def _at_run_time(layout: Any) -> Layout:
    """Return the layout with the numbers of run time."""
    if not isinstance(layout, RuntimeLayout):
        return layout  # type: ignore[no-any-return]
    made: Layout = Layout(of_tree(layout.shape.int_tree), of_tree(layout.stride.int_tree))
    return made


def _view(ptr: Pointer, layout: Any) -> LayoutTensor:
    return LayoutTensor(ptr, layout)


def _clipped(ptr: Pointer, layout: Layout, runtime: RuntimeLayout) -> Any:
    """Return the tensor of an element that is cut off where the layout at run time ends."""
    whole = _view(ptr, runtime)
    sizes = tuple([part.value() if part.is_value() else part.flatten().count_values() for part in layout.shape])
    return whole.tile[sizes](*[0] * len(sizes))


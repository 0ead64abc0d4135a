# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.element`: the scalars of one element of a tensor, in a layout of their own."""

from __future__ import annotations

from typing import Any, ClassVar

from tilewright.layout import as_tuple, make_layout
from tilewright.mojo import SIMD, Pointer, SIMDType
from tilewright.mojo.brackets import ParametrizedMeta
from tilewright.mojo.simd import as_vector, scalar_format
from tilewright.tensor import Scalars, elements

from .layout import Layout, to_core
from .layout_tensor_view import LayoutTensor
from .runtime_layout import RuntimeLayout


class _ElementType:
    """`Element[dtype, layout]`: it makes elements, and loads them from memory."""

    def __init__(self, dtype: Any, layout: Layout) -> None:
        self.dtype, self.layout = scalar_format(dtype), layout

    @property
    def element_data_type(self) -> SIMDType:
        """Return the type of the scalars together."""
        return SIMDType(self.dtype, self.layout.size())

    def __call__(self, element_data: Any, runtime_layout: Any = None) -> Element:
        layout = self.layout if runtime_layout is None else runtime_layout
        return Element(self.element_data_type(element_data), layout)

    def load(self, ptr: Pointer, runtime_layout: Any = None) -> Element:
        """Return the element at a pointer."""
        layout = self.layout if runtime_layout is None else runtime_layout
        view = _view(ptr, layout)
        return Element(as_vector(view.flat(order=_order(view))), layout)

    def masked_load(self, ptr: Pointer, runtime_layout: Any = None) -> Element:
        """Return the element at a pointer, with zeros where the layout at run time is smaller."""
        if runtime_layout is None:
            return self.load(ptr)
        view = _clipped(ptr, runtime_layout)
        values = view.to_numpy(fill=0)
        return Element(as_vector(values.reshape(-1, order="C" if _order(view) == "row" else "F")), runtime_layout)


class Element(metaclass=ParametrizedMeta):
    """The scalars of an element, and where they lie from a pointer on.

    >>> from tilewright.mojo import Span
    >>> element = Element["int64", Layout(2, 2)].load(Span([1, 2, 3]).unsafe_ptr())
    >>> print(element)
    [1, 3]
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("dtype", "layout")

    assignable_fields = ("element_data",)

    def __init__(self, element_data: SIMD, layout: Any) -> None:
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

        >>> from tilewright.mojo.memory import alloc
        >>> Element["int8", Layout(2)](3).store(alloc["int8"](2))
        """
        view = _view(ptr, self.layout)
        elements.copy_from(view, _in_shape(view, self.element_data.array))

    def masked_store(self, ptr: Pointer, runtime_layout: Any = None) -> None:
        """Write the scalars that the layout at run time has.

        >>> from tilewright.mojo.memory import alloc
        >>> Element["int8", Layout(2)](3).masked_store(alloc["int8"](2))
        """
        layout = self.layout if runtime_layout is None else runtime_layout
        if not isinstance(layout, RuntimeLayout):
            self.store(ptr)
            return
        view = _clipped(ptr, layout)
        Scalars.of(view).write(_in_shape(view, self.element_data.array))

    def __str__(self) -> str:
        return str(self.element_data)


def _order(view: LayoutTensor) -> str:
    """Return the order of the scalars of an element: where only the last of two indices has stride 1, by rows."""
    steps = tuple(view.strides)
    return "row" if len(steps) == 2 and steps[1] == 1 != steps[0] else "colex"


def _in_shape(view: LayoutTensor, scalars: Any) -> Any:
    """Return the scalars of an element as an array in the shape of its layout."""
    return scalars.reshape(tuple(view._extents), order="C" if _order(view) == "row" else "F")


def _view(ptr: Pointer, layout: Any) -> LayoutTensor:
    """Return the tensor of an element; a layout at run time replaces what is not known, and clips nothing."""
    if not isinstance(layout, RuntimeLayout):
        return LayoutTensor(ptr, layout)
    known = layout.layout
    shape = known.shape if known.known_shape() else layout.shape.int_tree
    return LayoutTensor(ptr, to_core(known, shape, layout.stride))


def _clipped(ptr: Pointer, layout: RuntimeLayout) -> Any:
    """Return the tensor of an element, masked where the layout at run time ends; known strides stay."""
    known = layout.layout
    steps = to_core(known, layout.shape, layout.stride).stride
    whole = LayoutTensor(ptr, make_layout(as_tuple(layout.shape.int_tree), as_tuple(steps)))
    sizes = tuple([part.value() for part in known.shape.product_flatten()])
    return whole.tile[sizes](*[0] * len(sizes))

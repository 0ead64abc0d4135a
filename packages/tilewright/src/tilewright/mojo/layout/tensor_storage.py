# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.tensor_storage`: what a tensor does with its memory; here memory is always behind a pointer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tensor import elements
from ..brackets import MojoValue, ParametrizedMeta, brackets
from ..memory import AddressSpace, Pointer
from ..simd import DType
from .coord import Coord
from .tile_tensor import TileTensor


class TensorStorage:
    """The trait of memory under a tensor.

    >>> issubclass(PointerStorage, TensorStorage)
    True
    """


class TensorOps(TensorStorage):
    """The trait of memory that can be calculated with.

    >>> issubclass(PointerStorage, TensorOps)
    True
    """


def _tensor(pair: Any) -> Any:
    pointer, layout = pair
    return TileTensor(ptr=pointer, layout=layout)


def _elementwise(function: Callable[..., Any]) -> Any:
    """Return a function of named tensors, each a pair of memory and layout: the target, then the operands."""

    def calculate(parameters: tuple[Any, ...], *, dst: object, **operands: Any) -> None:
        target = _tensor(dst)
        sources = [_tensor(pair) for pair in operands.values()]
        copied = TileTensor(sources[0].to_numpy().copy())
        elements.copy_from(target, function(copied, *sources[1:], *parameters).to_numpy())

    return staticmethod(brackets(calculate))


def _in_place(operator: str) -> Callable[..., Any]:
    return lambda tensor, *others: getattr(tensor, operator)(*others)


class PointerStorage(TensorOps, metaclass=ParametrizedMeta):
    """Memory behind a pointer: loads, stores and distances, all checked.

    >>> from tilewright.mojo.memory import alloc
    >>> memory = alloc["float32"](4)
    >>> PointerStorage.store(memory, 3, 7.0)
    >>> PointerStorage.load[1](memory, 3)
    Float32(7.0)
    """

    @staticmethod
    @brackets
    def load(
        parameters: tuple[Any, ...], pointer: Pointer, offset: object = 0, *, width: object = 1, **_: Any
    ) -> MojoValue:
        """Return the scalars at an offset: `PointerStorage.load[width](pointer, offset)`."""
        return pointer.load[(*parameters, width)[0]](offset)

    store = staticmethod(
        brackets(lambda parameters, pointer, *offset_and_value, **__: pointer.store(*offset_and_value))
    )
    unsafe_cast = staticmethod(brackets(lambda parameters, pointer, **__: _cast(parameters, pointer)))
    add, sub = _elementwise(_in_place("__iadd__")), _elementwise(_in_place("__isub__"))
    mul, div = _elementwise(_in_place("__imul__")), _elementwise(_in_place("__itruediv__"))
    min, max = _elementwise(_in_place("min")), _elementwise(_in_place("max"))
    abs, recip = _elementwise(_in_place("abs")), _elementwise(_in_place("recip"))
    exp = _elementwise(lambda tensor, *scale: tensor.exp(*scale))

    @staticmethod
    def offset(pointer: Pointer, count: object) -> Pointer:
        """Return the pointer some elements further on.

        >>> from tilewright.mojo.memory import alloc
        >>> PointerStorage.offset(alloc["int8"](4), Coord(2)).offset
        2
        """
        return pointer + (count.value() if isinstance(count, Coord) else count)

    @staticmethod
    def distance(pointer: Pointer, other: Pointer) -> int:
        """Return how many elements lie between two pointers.

        >>> from tilewright.mojo.memory import alloc
        >>> memory = alloc["int8"](4)
        >>> PointerStorage.distance(memory + 3, memory)
        3
        """
        return (pointer.address - other.address) // pointer.dtype.itemsize

    @staticmethod
    def unsafe_ptr(pointer: Pointer) -> Pointer:
        """Return the pointer itself.

        >>> from tilewright.mojo.memory import alloc
        >>> PointerStorage.unsafe_ptr(alloc["int8"](4)).offset
        0
        """
        return pointer


TileTensor.Storage = PointerStorage


def _cast(parameters: tuple[Any, ...], pointer: Pointer) -> Pointer:
    result = pointer
    for parameter in parameters:
        if isinstance(parameter, AddressSpace):
            result = result.address_space_cast[parameter]()
        elif not hasattr(parameter, "mut"):
            result = result.bitcast[DType.of(parameter)]()
    return result

# SPDX-License-Identifier: Apache-2.0
"""The types of memory with the type of its elements in brackets: `Span[Float32]`, `UnsafePointer[Int32, origin]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import FormatError
from .dtype import DType
from .parametrized import ParametrizedMeta
from .scalar_memory import number_type_of
from .simd import SIMDType

NAMES = {"Pointer": "UnsafePointer"}  # where our class has another name


@dataclass(frozen=True, slots=True, repr=False)
class MemoryType:
    """The type of memory with the type of its elements: it makes such memory, and `isinstance` checks values.

    `dtype` is the number type, None if the elements are other objects, of the type `element`, or of any.

    >>> import numpy as np
    >>> from tilewright.mojo import Span
    >>> isinstance(Span(np.arange(4)), Span["int64"]), isinstance(Span(np.arange(4)), Span["int8"])
    (True, False)
    """

    kind: Any
    dtype: DType | None
    element: Any = None
    size: int | None = None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        of_type = getattr(self.kind, "_of_type", None)
        if of_type is not None:
            return of_type(self, *arguments, **options)
        memory = self.kind(*arguments, **options)
        if self.dtype is not None and memory.dtype != self.dtype:
            raise FormatError(f"{self!r} cannot hold {memory.dtype}; use {self.kind.__name__}[{memory.dtype!r}]")
        return memory

    def convert_implicitly(self, value: Any) -> Any:
        """Return a list, or other memory, as memory of this type; other values as they are."""
        is_list = type(value) in (list, tuple) or (hasattr(value, "memory") and type(value).__name__ == "List")
        accepts = getattr(self.kind, "takes_lists", False)
        return self(value) if is_list and accepts and not self.__instancecheck__(value) else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("type", "T", "ElementType", "element_type"):
            return self.element if self.dtype is None else SIMDType(self.dtype, 1)
        static = getattr(self.kind, f"_static_{name}", None)
        if static is None:
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return lambda *arguments, **options: static(self, *arguments, **options)

    def __instancecheck__(self, value: object) -> bool:
        if not isinstance(value, self.kind):
            return False
        if self.size is not None and len(value) != self.size:
            return False
        return self.dtype is None or value.memory.format == self.dtype

    def __repr__(self) -> str:
        name = NAMES.get(self.kind.__name__, self.kind.__name__)
        element = repr(self.dtype) if self.dtype else getattr(self.element, "__name__", str(self.element))
        return f"{name}[{element}{'' if self.size is None else f', {self.size}'}]"


class MemoryMeta(ParametrizedMeta):
    """The class of kinds of memory: `Span[Float32]` is a type of memory."""

    def __getitem__(cls, parameters: Any) -> MemoryType:  # noqa: N805  (a class of classes)
        made: MemoryType = super().__getitem__(parameters)
        return made


def memory_type(kind: Any, parameters: Any, size: int | None = None) -> MemoryType:
    """Return `kind[type, ...]`: the type of the elements comes first, and what follows has no meaning on a host.

    >>> from tilewright.mojo import Span
    >>> memory_type(Span, ("float32", None))
    Span[DType.float32]
    """
    values = parameters if isinstance(parameters, tuple) else (parameters,)
    element = values[0] if values else None
    if element is None or element is ...:
        return MemoryType(kind, None, None, size)
    return MemoryType(kind, number_type_of(element), element, size)

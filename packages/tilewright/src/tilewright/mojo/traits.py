# SPDX-License-Identifier: Apache-2.0
"""Mojo's traits that `TileTensor` implements, as Python types: `isinstance(tensor, Writable)`."""

from __future__ import annotations

from abc import ABC
from typing import Any


class AnyType(ABC):  # noqa: B024  (everything is one)
    """Anything.

    >>> isinstance(3, AnyType)
    True
    """

    @classmethod
    def __subclasshook__(cls, _: type) -> Any:
        return True if cls is AnyType else NotImplemented


class ImplicitlyDestructible(AnyType):
    """A value that goes away by itself; in Python, every object does.

    >>> isinstance(3, ImplicitlyDestructible)
    True
    """

    @classmethod
    def __subclasshook__(cls, _: type) -> Any:
        return True if cls is ImplicitlyDestructible else NotImplemented


class Copyable(ABC):  # noqa: B024  (what has the member is one)
    """A value that can be copied; the copy of a tensor is another view of the same memory.

    >>> isinstance(3, Copyable)
    False
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        return hasattr(kind, "__copy__") if cls is Copyable else NotImplemented


class Writable(ABC):  # noqa: B024  (what has the member is one)
    """A value that writes itself to a writer.

    >>> isinstance(3, Writable)
    False
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        return hasattr(kind, "write_to") if cls is Writable else NotImplemented


class DevicePassable(ABC):  # noqa: B024  (what has the member is one)
    """A value that a kernel takes, as its `device_type`.

    >>> isinstance(3, DevicePassable)
    False
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        return hasattr(kind, "device_type") if cls is DevicePassable else NotImplemented


class Movable(ABC):  # noqa: B024  (tensors are registered)
    """A value that can be moved; in Python, a name is bound to it.

    >>> from tilewright.mojo.layout import TileTensor
    >>> issubclass(TileTensor, Movable)
    True
    """


class ImplicitlyCopyable(ABC):  # noqa: B024  (tensors are registered)
    """A value that is copied without being asked to; in Python, a name is bound to it.

    >>> from tilewright.mojo.layout import TileTensor
    >>> issubclass(TileTensor, ImplicitlyCopyable)
    True
    """


class RegisterPassable(ABC):  # noqa: B024  (tensors are registered)
    """A value that Mojo passes in registers: a pointer and a layout.

    >>> from tilewright.mojo.layout import TileTensor
    >>> issubclass(TileTensor, RegisterPassable)
    True
    """


class TrivialRegisterPassable(ABC):  # noqa: B024  (tensors are registered)
    """A value that Mojo copies, moves and destroys bit by bit.

    >>> from tilewright.mojo.layout import TileTensor
    >>> issubclass(TileTensor, TrivialRegisterPassable)
    True
    """

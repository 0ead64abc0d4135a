# SPDX-License-Identifier: Apache-2.0
"""Structs of C in Python: fields are assigned and copied as C does it, and have their kinds."""

from __future__ import annotations

from operator import index
from typing import Any, ClassVar, TypeVar

from ..errors import LayoutError

_Struct = TypeVar("_Struct", bound="struct_t")


class struct_t:
    """A struct of C: fields can be assigned, and a struct that is stored in a field is copied, as C copies it.

    `structs` says which fields are structs, and of which kind.

    >>> from tilewright.ttl import layout_t
    >>> spacing = layout_t(16)
    >>> spacing.row_spacing = 20
    >>> spacing
    layout_t(row_spacing=20, plane_spacing=0)
    """

    __slots__ = ()
    structs: ClassVar[dict[str, type[struct_t]]] = {}
    __match_args__: ClassVar[tuple[str, ...]] = ()  # the names of the fields

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self.structs.get(name)
        if kind is not None:
            if not isinstance(value, kind):
                require_struct(kind, value, f"{name} of {type(self).__name__}")
            value = value.__copy__()
        elif name not in self.__match_args__ and not hasattr(type(self), name):
            fields = ", ".join(self.__match_args__)
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; its fields are {fields}")
        object.__setattr__(self, name, value)

    @classmethod
    def of_fields(cls: type[_Struct], *values: Any) -> _Struct:
        """Return a struct of fields that are known to be right, and that nobody else has.

        >>> from tilewright.ttl import shape_t
        >>> shape_t.of_fields(4, 3, 1)
        shape_t(width=4, height=3, depth=1)
        """
        made = object.__new__(cls)
        for name, value in zip(cls.__match_args__, values, strict=True):
            object.__setattr__(made, name, value)
        return made

    def __copy__(self: _Struct) -> _Struct:
        fields = [getattr(self, name) for name in self.__match_args__]
        return self.of_fields(*[field.__copy__() if isinstance(field, struct_t) else field for field in fields])


class integers_t(struct_t):
    """A struct of integers.

    >>> import numpy as np
    >>> from tilewright.ttl import shape_t
    >>> shape_t(np.int64(4))
    shape_t(width=4, height=1, depth=1)
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, require_integer(value, f"{name} of {type(self).__name__}"))


def require_integer(value: Any, name: str) -> int:
    """Return `value` as an integer of Python; `name` says what it is for.

    >>> require_integer(True, "tile_id")
    1
    """
    try:
        return index(value)
    except TypeError:
        raise LayoutError(f"expected an integer as {name}, got {value!r}") from None


def require_struct(kind: type[_Struct], value: Any, name: str) -> _Struct:
    """Return `value` if it is a struct of a kind; `name` says what it is for.

    >>> from tilewright.ttl import shape_t
    >>> require_struct(shape_t, shape_t(4), "tile")
    shape_t(width=4, height=1, depth=1)
    """
    if not isinstance(value, kind):
        call = _CONSTRUCTORS.get(kind.__name__, f"{kind.__name__}(...)")
        raise LayoutError(f"expected {kind.__name__} as {name}, got {value!r}; make one with {call}")
    return value


_CONSTRUCTORS = {
    "shape_t": "create_shape(width, height, depth)",
    "offset_t": "create_offset(x, y, z)",
    "overlap_t": "create_overlap(width, height, depth)",
    "augmentation_t": "create_augmentation(left, right, top, bottom, front, back)",
    "layout_t": "create_layout(row_spacing, plane_spacing)",
    "tile_t": "get_tile(tile_id, tiler)",
    "tiler_t": "create_tiler(space, tile)",
}

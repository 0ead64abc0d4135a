# SPDX-License-Identifier: Apache-2.0
"""`unwrap`: from a dialect object to the native object behind it.

An object of a dialect wraps one object of the library, its `native`; whatever takes the native object takes the
wrapper as well.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, overload

_Native_co = TypeVar("_Native_co", covariant=True)
_Value = TypeVar("_Value")


class _Wrapper(Protocol[_Native_co]):
    @property
    def native(self) -> _Native_co: ...


@overload
def unwrap(value: _Wrapper[_Native_co]) -> _Native_co: ...
@overload
def unwrap(value: _Value) -> _Value: ...
def unwrap(value: Any) -> Any:
    """Return the native object behind a dialect object, or `value` itself if it is not of a dialect.

    >>> from tilewright import ttl
    >>> unwrap(ttl.create_shape(4, 3)), unwrap(5)
    (Layout((3, 4), (4, 1)), 5)
    """
    while hasattr(type(value), "native"):
        value = value.native
    return value

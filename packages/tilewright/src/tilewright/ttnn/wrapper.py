# SPDX-License-Identifier: Apache-2.0
"""`Wrapper`: a core value with the names of ttnn; and the arguments of ttnn's functions.

Positional arguments are bound by type, as in ttnn. Every function accepts all keywords of its ttnn counterpart, so
that a misspelt one is an error. Of those without an effect here, the ones that only tune execution (`use_multicore`,
`queue_id`, ...) are ignored, and the ones that would change the result are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from ..errors import MemoryConfigError

if TYPE_CHECKING:
    from typing import Self

Plain = TypeVar("Plain")
_Value = TypeVar("_Value")


class Wrapper(Generic[Plain]):
    """A ttnn value around a core value, `plain`; two are equal if their core values are.

    >>> Wrapper.wrap(5) == Wrapper.wrap(5), Wrapper.wrap(5).plain
    (True, 5)
    """

    __slots__ = ("plain",)
    plain: Plain

    @classmethod
    def wrap(cls, value: Plain | Self) -> Self:
        """Return `value` wrapped; a wrapper is returned unchanged.

        >>> Wrapper.wrap(Wrapper.wrap(5)).plain
        5
        """
        if isinstance(value, cls):
            return value
        wrapper = object.__new__(cls)
        wrapper.plain = cast(Plain, value)
        return wrapper

    def __eq__(self, other: object) -> bool:
        return bool(self.plain == unwrap(other)) if isinstance(other, (Wrapper, type(self.plain))) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.plain)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __str__(self) -> str:
        return str(self.plain)


@overload
def unwrap(value: Wrapper[Plain]) -> Plain: ...
@overload
def unwrap(value: _Value) -> _Value: ...
def unwrap(value: Any) -> Any:
    """Return the core value of a wrapper, and any other `value` unchanged.

    >>> unwrap(Wrapper.wrap(5)), unwrap(5)
    (5, 5)
    """
    return value.plain if isinstance(value, Wrapper) else value


def bind_by_type(
    function: str,
    types: Mapping[str, type | tuple[type, ...]],
    values: tuple[object, ...],
    named: Mapping[str, object],
) -> dict[str, Any]:
    """Return arguments of `function` by name: `named` ones, and `values` matched to `types`; None is ignored.

    >>> bind_by_type("f", {"count": int, "name": str}, ("x", None), {"count": 5})
    {'count': 5, 'name': 'x'}
    """
    arguments = {name: value for name, value in named.items() if value is not None}
    for value in values:
        if value is None:
            continue
        name = next((name for name, accepted in types.items() if isinstance(value, accepted)), None)
        if name is None:
            raise TypeError(
                f"{function} got an unexpected {type(value).__name__}: {value!r}; expected {', '.join(types)}"
            )
        if name in arguments:
            raise TypeError(f"{function} got {name} twice: {arguments[name]!r} and {value!r}; pass one of them")
        arguments[name] = value
    return arguments


def reject_unsupported(**unsupported: object) -> None:
    """Raise if an argument that would change the result, and is not supported here, has a value.

    >>> reject_unsupported(output_tensor=None, enable_bfloat_opt=False)
    """
    for name, value in unsupported.items():
        if value is not None and value is not False:
            raise MemoryConfigError(f"{name}={value!r:.60} is not supported: {_REMEDIES[name]}")


_REMEDIES = {
    "groups": "tensors are joined one after the other; omit it",
    "pad_value": "padding keeps zeros; use to_layout(..., pad_value=...)",
    "output_tensor": "operations return new tensors; omit it",
    "tile": "tilize always makes tiles of 32 x 32; use from_torch(..., tile=...)",
    "preserve_nan_values": "every NaN of a float32 source becomes the same bfloat16 NaN; omit it",
    "enable_bfloat_opt": "values are always rounded as on the host; omit it",
}

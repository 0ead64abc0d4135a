# SPDX-License-Identifier: Apache-2.0
"""Parameters from arguments: `def f[dtype: DType](x: SIMD[dtype, 4])` learns `dtype` from the value of `x`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ...errors import LayoutError
from ..builtins import type_of
from .conversion import CONVERTED, EXACT, GENERAL, fits
from .syntax import ArgumentKind, Convention


class UnknownParameter:
    """A parameter that was neither given nor could be inferred; using it is an error.

    >>> str(UnknownParameter("n", "f"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tilewright.errors.LayoutError: parameter 'n' of f is not known: it cannot be inferred; give it in brackets
    """

    def __init__(self, name: str, owner: str) -> None:
        self.__dict__.update(parameter=name, owner=owner)

    def _fail(self, *_: Any, **__: Any) -> NoReturn:
        name, owner = self.__dict__["parameter"], self.__dict__["owner"]
        raise LayoutError(f"parameter {name!r} of {owner} is not known: it cannot be inferred; give it in brackets")

    __getattr__ = __getitem__ = __call__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _fail
    __floordiv__ = __rfloordiv__ = __mod__ = __index__ = __int__ = __bool__ = __len__ = __iter__ = _fail
    __lt__ = __le__ = __gt__ = __ge__ = __str__ = _fail

    def __hash__(self) -> int:
        return hash((self.__dict__["parameter"], self.__dict__["owner"]))

    def __eq__(self, other: object) -> bool:  # so that a function is made once for equal parameters
        return other.__class__ is UnknownParameter and self.__dict__ == other.__dict__


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in brackets; type and default are functions, the latter of all parameters.

    >>> width = Parameter("width", "any", None, lambda width: 4)
    >>> width.default(None)
    4
    """

    name: str
    kind: ArgumentKind
    type: Callable[[], Any] | None
    default: Callable[..., Any] | None
    pattern: Pattern | None = None  # other parameters that follow from its value


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument in parentheses, with what its type says about parameters.

    >>> x = Argument("x", "any", "read", False, None)
    >>> x.name
    'x'
    """

    name: str
    kind: ArgumentKind
    convention: Convention
    has_default: bool
    pattern: Pattern | None


class Pattern:
    """What the type of an argument says about its value."""

    def infer(self, value: Any, known: dict[str, Any]) -> None:
        """Add the parameters that follow from a value to `known`."""

    def score(self, value: Any) -> int:
        """Return how well the value fits; 0 if it does not."""
        return GENERAL


@dataclass(frozen=True, slots=True)
class ParameterPattern(Pattern):
    """A parameter in place of a type: `x: T`.

    >>> known = {}
    >>> ParameterPattern("T").infer(True, known)
    >>> sorted(known)
    ['T']
    """

    name: str

    def infer(self, value: Any, known: dict[str, Any]) -> None:
        """Set the parameter to the value's type, or to the value where it is already a type or a number."""
        known.setdefault(self.name, type_of(value))

    def infer_value(self, value: Any, known: dict[str, Any]) -> None:
        """Set the parameter to what stands in the brackets of a type."""
        known.setdefault(self.name, value)


@dataclass(frozen=True, slots=True)
class ValuePattern(Pattern):
    """A value in brackets that is known: `x: SIMD[DType.float32, n]`.

    >>> ValuePattern(lambda: 4).agrees(4)
    True
    """

    value: Callable[[], Any]

    def agrees(self, value: Any) -> bool:
        """Return whether a value in the brackets of an argument's type is the one that is asked for."""
        wanted = self.value()
        return wanted is ... or bool(wanted == value) or (not isinstance(value, (int, str)) and not _is_dtype(value))


@dataclass(frozen=True, slots=True)
class TypePattern(Pattern):
    """A type without parameters to infer.

    >>> TypePattern(lambda: int).score(3)
    3
    """

    type: Callable[[], Any]

    def score(self, value: Any) -> int:
        """Return how well the value fits the type."""
        return fits(value, self.type())


@dataclass(frozen=True, slots=True)
class HeadPattern(Pattern):
    """A type with brackets: its entries, by position or name, are patterns for the parameters of the value's type.

    >>> from tilewright.mojo import SIMD, DType
    >>> known = {}
    >>> pattern = HeadPattern(lambda: SIMD, ((0, ParameterPattern("dtype")), (1, ParameterPattern("n"))))
    >>> pattern.infer(SIMD[DType.int8, 4](0), known)
    >>> known["n"]
    4
    """

    head: Callable[[], Any]
    entries: tuple[tuple[int | str, Pattern], ...]
    read: Callable[[Any, str, Any], Any] = getattr  # of programs `read_member`: the names in brackets are theirs

    def infer(self, value: Any, known: dict[str, Any]) -> None:
        """Add the parameters that the brackets name."""
        for pattern, entry in self._entries(value):
            if isinstance(pattern, ParameterPattern):
                pattern.infer_value(entry, known)
            else:
                pattern.infer(entry, known)

    def _entries(self, value: Any) -> list[tuple[Pattern, Any]]:
        head = self.head()
        names: Any = getattr(value, "__bracketed__", None) or getattr(head, "__bracketed__", ())
        if value.__class__ is float or value.__class__ is int:  # a literal, which takes the type it is given
            return []
        own = getattr(head, "__bracketed__", names)
        pairs = []
        for key, pattern in self.entries:
            name = key if isinstance(key, str) else own[key] if key < len(own) else None
            entry = _MISSING if name is None else self.read(value, name, _MISSING)
            if entry is not _MISSING:
                pairs.append((pattern, entry))
        return pairs

    def score(self, value: Any) -> int:
        """Return how well the value fits the type before the brackets and the known values in them."""
        head = self.head()
        if value.__class__ in (int, float, bool) and getattr(head, "__bracketed__", ())[:1] == ("dtype",):
            return CONVERTED * (getattr(head, "__name__", repr(head)) in ("SIMD", "Scalar"))
        result = fits(value, head)
        if result:
            for pattern, entry in self._entries(value):
                if isinstance(pattern, ValuePattern) and not pattern.agrees(entry):
                    return CONVERTED if isinstance(value, (list, tuple)) else 0
                if isinstance(pattern, HeadPattern) and not pattern.score(entry):
                    return 0
        return EXACT if result == GENERAL else result


_MISSING = object()


def _is_dtype(value: Any) -> bool:
    return hasattr(value, "itemsize")


def bind_given(
    owner: str, parameters: Sequence[Parameter], given: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the parameters that stand in brackets, by name; None if there are too many or unknown ones.

    >>> bind_given("f", [Parameter("n", "any", None, None)], [3], {})
    {'n': 3}
    """
    known: dict[str, Any] = {}
    rest = list(given)
    for parameter in parameters:
        if parameter.kind == "variadic" and (rest or parameter.name not in named):
            if rest or given:
                known[parameter.name] = tuple(rest)
            rest = []
        elif parameter.kind in ("any", "positional") and rest and parameter.name not in named:
            known[parameter.name] = rest.pop(0)
    names = {parameter.name for parameter in parameters}
    if rest or not set(named) <= names:
        return None
    known.update(named)
    return {name: value for name, value in known.items() if value is not ...}


def complete_parameters(owner: str, parameters: Sequence[Parameter], known: dict[str, Any]) -> tuple[Any, ...]:
    """Return the values of all parameters: those that are known, then defaults; what is left stays unknown.

    >>> complete_parameters("f", [Parameter("n", "any", None, lambda n: 8)], {})
    (8,)
    """
    values = {parameter.name: known.get(parameter.name, _MISSING) for parameter in parameters}
    for parameter in parameters:
        if values[parameter.name] is _MISSING:
            unknown = {name: UnknownParameter(name, owner) if v is _MISSING else v for name, v in values.items()}
            if parameter.default is not None:
                values[parameter.name] = parameter.default(**unknown)
            else:
                values[parameter.name] = () if parameter.kind == "variadic" else unknown[parameter.name]
    return tuple(values.values())

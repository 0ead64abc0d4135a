# SPDX-License-Identifier: Apache-2.0
"""Functions with parameters at run time: conversion of arguments, inference of parameters, overloads."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from tilewright.errors import LayoutError
from tilewright.mojo import SIMD, MemoryType, MojoValue, SIMDType, Span

from ..collections import List, Optional
from ..simt.kernel_thread import coroutine_twin
from ..types import type_of
from .expressions import ArgumentKind, Convention

EXACT, GENERAL, CONVERTED = 3, 2, 1  # how well a value fits a type


class Initializer:
    """The arguments of a type that is not known yet: `{1, 2}`, `{x = 1}`; on its own it is a set.

    >>> Initializer((1, 2), {}).make(complex)
    (1+2j)
    """

    __slots__ = ("arguments", "keywords")

    def __init__(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.arguments, self.keywords = arguments, keywords

    def make(self, kind: Any) -> MojoValue:
        """Return a value of a type from the arguments.

        >>> Initializer((), {"real": 1.0}).make(complex)
        (1+0j)
        """
        return kind(*self.arguments, **self.keywords)

    def __iter__(self) -> Any:
        return iter(self.arguments)

    def __len__(self) -> int:
        return len(self.arguments)

    def __contains__(self, value: object) -> bool:
        return value in self.arguments


class FunctionType:
    """The type of every function.

    >>> isinstance(print, FunctionType())
    True
    """

    def __instancecheck__(self, value: object) -> bool:
        return callable(value)

    def __repr__(self) -> str:
        return "def(...)"


def convert(value: Any, kind: Any) -> MojoValue:
    """Return a value as one of a type, if Mojo converts it without being asked to; else the value itself.

    >>> from tilewright.mojo.simd import Float32
    >>> float(convert(1, Float32)), convert("a", Float32)
    (1.0, 'a')
    """
    kind_class = kind.__class__
    if kind_class is SIMDType:
        if value.__class__ in (int, float, bool):
            return kind(value)
        if isinstance(value, SIMD) and kind.size != 1 and value.size == 1:
            return kind(value)
        return value
    if value.__class__ is Initializer:
        return value.make(kind)
    if kind is Optional:
        return value if isinstance(value, Optional) else Optional(value)
    if kind_class is MemoryType and isinstance(value, List) and not isinstance(value, kind):
        return kind(value) if kind.kind is Span else kind(*value)  # a list literal takes the type it is given
    if fits(value, kind) == EXACT:
        return value
    implicit = getattr(kind, "convert_implicitly", None)
    return value if implicit is None else implicit(value)


def convert_like(value: object, other: object) -> MojoValue:
    """Return a number as one of the type that a variable has already.

    >>> from tilewright.mojo.simd import Float32
    >>> float(convert_like(2, Float32(1))), convert_like(2, 1), convert_like(2, None)
    (2.0, 2, 2)
    """
    if isinstance(other, SIMD):
        return SIMDType(other.dtype, other.size)(value)
    return value


def fits(value: Any, kind: Any) -> int:
    """Return how well a value fits a type: exactly, as one of many, after a conversion, or 0: not at all.

    >>> fits(1, int), fits(1.5, int), fits(True, int)
    (3, 0, 0)
    """
    if kind is None or kind is ...:
        return GENERAL
    if kind.__class__ is SIMDType:
        if isinstance(value, SIMD):
            return EXACT if value.dtype == kind.dtype and value.size == kind.size else 0
        if value.__class__ is float:
            return EXACT if kind.dtype.name == "float64" else CONVERTED * ("float" in kind.dtype.name)
        return CONVERTED if value.__class__ is int or (value.__class__ is bool and kind.dtype.name == "bool") else 0
    if kind is int:
        return EXACT if value.__class__ is int else 0
    check = getattr(kind, "conforms", None)
    if check is not None:
        return GENERAL if check(value) else 0
    try:
        if isinstance(value, kind):
            return GENERAL if isinstance(kind, ABCMeta) else EXACT
    except TypeError:  # an alias of Python's typing, or anything that is no type
        return GENERAL
    if isinstance(kind, ABCMeta):  # a trait of the library, which cannot tell for numbers of Python
        return CONVERTED
    converts = getattr(kind, "converts_implicitly", None)
    if converts is not None:
        return CONVERTED if converts(value) else 0
    return CONVERTED if value.__class__ is Initializer else 0


def copy_value(value: Any) -> MojoValue:
    """Return the value for a second variable: a copy of a struct that is copied implicitly, else the value itself.

    >>> copy_value(3)
    3
    """
    kind = value.__class__
    if kind is SIMD:  # elements of a vector can be assigned; a scalar cannot change
        return value if value.size == 1 else value.__copy__()
    copy = getattr(kind, "copy_implicitly", None)
    return value if copy is None else copy(value)


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
    """An argument in parentheses, with the constraints of its type on parameters.

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
    """The constraint of an argument's type on its value."""

    def infer(self, value: object, known: dict[str, Any]) -> None:
        """Add the parameters that follow from a value to `known`."""

    def score(self, value: object) -> int:
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

    def infer(self, value: object, known: dict[str, Any]) -> None:
        """Set the parameter to the value's type, or to the value where it is already a type or a number."""
        known.setdefault(self.name, type_of(value))

    def infer_value(self, value: object, known: dict[str, Any]) -> None:
        """Set the parameter to the value in the brackets of a type."""
        known.setdefault(self.name, value)


@dataclass(frozen=True, slots=True)
class ValuePattern(Pattern):
    """A value in brackets that is known: `x: SIMD[DType.float32, n]`.

    >>> ValuePattern(lambda: 4).agrees(4)
    True
    """

    value: Callable[[], Any]

    def agrees(self, value: object) -> bool:
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

    def score(self, value: object) -> int:
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

    def infer(self, value: object, known: dict[str, Any]) -> None:
        """Add the parameters that the brackets name."""
        for pattern, entry in self._entries(value):
            if isinstance(pattern, ParameterPattern):
                pattern.infer_value(entry, known)
            else:
                pattern.infer(entry, known)

    def _entries(self, value: object) -> list[tuple[Pattern, Any]]:
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

    def score(self, value: object) -> int:
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


def _is_dtype(value: object) -> bool:
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
    """Return the values of all parameters: those that are known, then defaults; the rest stays unknown.

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


Call = Callable[..., Any]


class Overload:
    """One definition of a function: its factory, signature, and the arguments that go back to the caller."""

    __slots__ = ("_cache", "arguments", "condition", "factory", "mutated", "name", "parameters")

    def __init__(
        self,
        name: str,
        factory: Call,
        parameters: tuple[Parameter, ...],
        arguments: tuple[Argument, ...],
        mutated: tuple[str, ...] = (),
        condition: Call | None = None,
    ) -> None:
        self.name, self.factory, self.parameters, self.arguments = name, factory, parameters, arguments
        self.mutated, self.condition = mutated, condition
        self._cache: dict[Any, Call] = {}

    def specialize(self, known: dict[str, Any]) -> Call:
        """Return the function for the parameters; it is made once for equal ones.

        >>> overload = Overload("f", lambda n: lambda x: n * x, (Parameter("n", "any", None, None),), ())
        >>> overload.specialize({"n": 3})(5)
        15
        """
        values = complete_parameters(self.name, self.parameters, self._convert(known))
        try:
            key = tuple([(value.__class__, value) for value in values])
            function = self._cache.get(key)
        except TypeError:  # a value without a hash
            return self.factory(*values)  # type: ignore[no-any-return]
        if function is None:
            function = self._cache[key] = self.factory(*values)
        return function

    def _convert(self, known: dict[str, Any]) -> dict[str, Any]:
        for parameter in self.parameters:
            if parameter.type is not None and parameter.name in known:
                value = known[parameter.name]
                if value.__class__ in (int, float):
                    known[parameter.name] = convert(value, parameter.type())
        return known

    def bind(self, values: Sequence[Any], options: Mapping[str, Any]) -> list[tuple[Argument, Any]] | None:
        """Return the arguments with their values; None if their number or names do not fit.

        >>> Overload("f", print, (), (Argument("x", "any", "read", False, None),)).bind([1, 2], {}) is None
        True
        """
        pairs: list[tuple[Argument, Any]] = []
        rest, names = list(values), dict(options)
        for argument in self.arguments:
            if argument.kind == "variadic":
                pairs += [(argument, value) for value in rest]
                rest = []
            elif argument.kind == "variadic keyword":
                pairs += [(argument, value) for value in names.values()]
                names = {}
            elif rest and argument.kind in ("any", "positional"):
                pairs.append((argument, rest.pop(0)))
            elif argument.name in names and argument.kind != "positional":
                pairs.append((argument, names.pop(argument.name)))
            elif not argument.has_default:
                return None
        return None if rest or names else pairs

    def score(self, pairs: Sequence[tuple[Argument, Any]], known: Mapping[str, Any]) -> int:
        """Return how well arguments and parameters fit the types; 0 if they do not."""
        total = 1
        for argument, value in pairs:
            fit = GENERAL if argument.pattern is None else argument.pattern.score(value)
            if fit == 0:
                return 0
            total += 4 * fit - (argument.kind == "variadic")
        for parameter in self.parameters:
            if parameter.name in known and parameter.type is not None:
                fit = fits(known[parameter.name], parameter.type())
                if fit == 0 and known[parameter.name].__class__ in (int, float, str, bool):
                    return 0
                total += fit
        return total

    def infer(self, pairs: Sequence[tuple[Argument, Any]], known: dict[str, Any]) -> dict[str, Any]:
        """Return the known parameters and those that follow from arguments."""
        packs: dict[str, list[Any]] = {}
        for parameter in self.parameters:
            if parameter.pattern is not None and parameter.name in known:
                parameter.pattern.infer(known[parameter.name], known)
        for argument, value in pairs:
            if argument.pattern is None:
                continue
            if argument.kind == "variadic" and isinstance(argument.pattern, ParameterPattern):
                single: dict[str, Any] = {}
                argument.pattern.infer(value, single)
                packs.setdefault(argument.pattern.name, []).append(single[argument.pattern.name])
            else:
                argument.pattern.infer(value, known)
        kinds = {parameter.name: parameter.kind for parameter in self.parameters}
        for name, types in packs.items():
            known.setdefault(name, tuple(types) if kinds.get(name) == "variadic" else types[0])
        return known

    def describe(self) -> str:
        """Return the signature as text, without types.

        >>> Overload("f", print, (), (Argument("x", "any", "read", False, None),)).describe()
        'f(x)'
        """
        brackets = f"[{', '.join(parameter.name for parameter in self.parameters)}]" if self.parameters else ""
        return f"{self.name}{brackets}({', '.join(argument.name for argument in self.arguments)})"


class Function:
    """A function with parameters, or several overloads: calling it chooses one and infers its parameters.

    >>> n = Parameter("n", "any", None, None)
    >>> f = Function([Overload("f", lambda n: lambda x: n * x, (n,), (Argument("x", "any", "read", False, None),))])
    >>> f[3](5)
    15
    """

    def __init__(self, overloads: list[Overload]) -> None:
        self.overloads = overloads
        self._known: dict[Any, Any] = {}  # the function for parameters in brackets
        self.__name__ = self.__qualname__ = overloads[0].name

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"

    def __getitem__(self, parameters: Any) -> Any:
        return self.with_parameters(*(parameters if isinstance(parameters, tuple) else (parameters,)))

    def with_parameters(self, *given: Any, **named: Any) -> MojoValue:
        """Return the function with parameters in brackets; those that are left are inferred when it is called."""
        if named:
            return self._bind(given, named)
        try:  # threads of a kernel ask again and again
            key = tuple([(value.__class__, value) for value in given])
            function = self._known.get(key)
        except TypeError:  # a value without a hash
            return self._bind(given, named)
        if function is None:
            function = self._known[key] = self._bind(given, named)
        return function

    def _bind(self, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        overload = self.overloads[0]
        if len(self.overloads) == 1 and not overload.mutated:
            known = bind_given(self.__name__, overload.parameters, given, named)
            if known is None:
                self._refuse_parameters(given, named)
            known = overload.infer((), known)
            if all(parameter.name in known for parameter in overload.parameters):
                return overload.specialize(known)
        return ParametrizedFunction(self, given, named)

    def _refuse_parameters(self, given: Sequence[Any], named: Mapping[str, Any]) -> NoReturn:
        texts = [*map(str, given), *[f"{name}={value}" for name, value in named.items()]]
        options = "; or ".join(overload.describe() for overload in self.overloads)
        raise LayoutError(f"{self.__name__} does not take the parameters [{', '.join(texts)}]; it is {options}")

    def __call__(self, *values: Any, **options: Any) -> Any:
        overload, function, _ = self.choose((), {}, values, options)
        result = function(*values, **options)
        return result[0] if overload.mutated else result

    def __get__(self, owner: object, kind: object = None) -> Any:
        return self if owner is None else BoundFunction(self, owner)

    def suspending(self) -> MojoValue:
        """Return the function to call inside a kernel, where functions may have to wait."""
        return partial(self._call_suspending, (), {}, ())

    def _call_suspending(
        self, given: Sequence[Any], named: Mapping[str, Any], first: tuple[Any, ...], *values: Any, **options: Any
    ) -> Any:
        overload, function, _ = self.choose(given, named, (*first, *values), options)
        result = coroutine_twin(function)(*first, *values, **options)
        return _first(result) if overload.mutated else result

    def choose(
        self, given: Sequence[Any], named: Mapping[str, Any], values: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[Overload, Call, list[tuple[Argument, Any]]]:
        """Return the overload that fits best, the function for its parameters, and its bound arguments."""
        best: tuple[int, Overload, dict[str, Any], list[tuple[Argument, Any]]] | None = None
        for overload in self.overloads:
            known = bind_given(self.__name__, overload.parameters, given, named)
            pairs = None if known is None else overload.bind(values, options)
            if known is None or pairs is None:
                continue
            if len(self.overloads) == 1:
                best = (1, overload, overload.infer(pairs, known), pairs)
                break
            score = overload.score(pairs, known)
            if score and (best is None or score > best[0]):
                known = overload.infer(pairs, known)
                if overload.condition is None or self._holds(overload, known):
                    best = (score, overload, known, pairs)
        if best is None:
            self._refuse(values, options)
        _, overload, known, pairs = best
        return overload, overload.specialize(known), pairs

    def _holds(self, overload: Overload, known: dict[str, Any]) -> bool:
        values = complete_parameters(overload.name, overload.parameters, dict(known))
        assert overload.condition is not None  # asked only then
        return bool(overload.condition(*values))

    def _refuse(self, values: Sequence[Any], options: Mapping[str, Any]) -> NoReturn:
        kinds = [type(value).__name__ for value in values] + [
            f"{name}={type(v).__name__}" for name, v in options.items()
        ]
        candidates = "; or ".join(overload.describe() for overload in self.overloads)
        raise LayoutError(f"{self.__name__} cannot be called with ({', '.join(kinds)}); it is {candidates}")


class ParametrizedFunction:
    """A function with some of its parameters given in brackets."""

    def __init__(self, function: Function, given: Sequence[Any], named: Mapping[str, Any], first: tuple[Any, ...] = ()):
        self.function, self.given, self.named, self.first = function, tuple(given), dict(named), first
        self.__name__ = function.__name__

    def __repr__(self) -> str:
        return f"<function {self.__name__} with parameters>"

    def __call__(self, *values: Any, **options: Any) -> Any:
        values = (*self.first, *values)
        overload, function, _ = self.function.choose(self.given, self.named, values, options)
        result = function(*values, **options)
        return result[0] if overload.mutated else result

    def __getitem__(self, parameters: Any) -> Any:
        return self.with_parameters(*(parameters if isinstance(parameters, tuple) else (parameters,)))

    def with_parameters(self, *given: Any, **named: Any) -> MojoValue:
        """Return the function with more parameters."""
        return ParametrizedFunction(self.function, (*self.given, *given), {**self.named, **named}, self.first)

    def suspending(self) -> MojoValue:
        """Return the function to call inside a kernel."""
        return partial(self.function._call_suspending, self.given, self.named, self.first)


class BoundFunction(ParametrizedFunction):
    """A method of a value, before its parameters are given."""

    def __init__(self, function: Function, owner: object) -> None:
        super().__init__(function, (), {}, (owner,))

    @property
    def __self__(self) -> Any:
        return self.first[0]


class ParametricAlias:
    """`comptime Name[parameters] = value`.

    >>> double = ParametricAlias("double", (Parameter("n", "any", None, None),), lambda n: 2 * n)
    >>> double[4]
    8
    """

    def __init__(self, name: str, parameters: tuple[Parameter, ...], value: Call) -> None:
        self.__name__, self.parameters, self.value = name, parameters, value
        self.__bracketed__ = tuple(parameter.name for parameter in parameters if parameter.kind != "infer")

    def __getitem__(self, parameters: Any) -> Any:
        return self.with_parameters(*(parameters if isinstance(parameters, tuple) else (parameters,)))

    def with_parameters(self, *given: Any, **named: Any) -> MojoValue:
        """Return the value for these parameters."""
        known = bind_given(self.__name__, self.parameters, given, named)
        if known is None:
            raise LayoutError(f"{self.__name__} takes the parameters [{', '.join(self.__bracketed__)}]")
        return self.value(*complete_parameters(self.__name__, self.parameters, known))

    def __call__(self, *values: Any, **options: Any) -> Any:
        return self.with_parameters()(*values, **options)

    def __repr__(self) -> str:
        return self.__name__


def define_function(before: Function | None, overload: Overload) -> Function:
    """Return a function with one more overload.

    >>> define_function(None, Overload("f", lambda: print, (), ())).__name__
    'f'
    """
    return Function([overload] if before is None else [*before.overloads, overload])


def call_back(function: Any, values: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
    """Call a function; return its result and then all arguments, those that it changed with their new values.

    >>> call_back(max, (1, 2), {})
    [2, 1, 2]
    """
    after = [*values, *options.values()]
    inner = function.function if isinstance(function, ParametrizedFunction) else function
    if not isinstance(inner, Function):
        return [function(*values, **options), *after]
    bound = isinstance(function, ParametrizedFunction)
    given, named, first = (function.given, function.named, function.first) if bound else ((), {}, ())
    overload, chosen, pairs = inner.choose(given, named, (*first, *values), options)
    result = chosen(*first, *values, **options)
    if not overload.mutated:
        return [result, *after]
    final = dict(zip(overload.mutated, result[1:], strict=True))
    names = [argument.name for argument, _ in pairs][len(first) :]
    for k, name in enumerate(names[: len(values)]):
        after[k] = final.get(name, after[k])
    for k, name in enumerate(options):
        after[len(values) + k] = final.get(name, after[len(values) + k])
    return [result[0], *after]


async def _first(result: Any) -> Any:
    """Wait for a function that returns changed arguments as well; return its own result."""
    return (await result)[0] if hasattr(result, "__await__") else result[0]

# SPDX-License-Identifier: Apache-2.0
"""Functions with parameters and overloads at run time: which one is meant, and for which parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from ...errors import LayoutError
from ...simt.coroutines import coroutine_twin
from .conversion import GENERAL, convert, fits
from .inference import Argument, Parameter, ParameterPattern, bind_given, complete_parameters

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

    def with_parameters(self, *given: Any, **named: Any) -> Any:
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

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else BoundFunction(self, owner)

    def suspending(self) -> Any:
        """Return what to call inside a kernel, where functions may have to wait."""
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

    def with_parameters(self, *given: Any, **named: Any) -> Any:
        """Return the function with more parameters."""
        return ParametrizedFunction(self.function, (*self.given, *given), {**self.named, **named}, self.first)

    def suspending(self) -> Any:
        """Return what to call inside a kernel."""
        return partial(self.function._call_suspending, self.given, self.named, self.first)


class BoundFunction(ParametrizedFunction):
    """A method of a value, before its parameters are given."""

    def __init__(self, function: Function, owner: Any) -> None:
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

    def with_parameters(self, *given: Any, **named: Any) -> Any:
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

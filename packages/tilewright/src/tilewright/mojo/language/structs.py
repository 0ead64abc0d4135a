# SPDX-License-Identifier: Apache-2.0
"""Structs and traits at run time: classes that are made from their members, one for each set of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import LayoutError
from ..builtins import Bool, Int, String
from ..simd import SIMDType
from .functions import Function, Overload
from .inference import Argument, Parameter, bind_given
from .struct_members import StructValue, adapt_member, add_comparisons, add_iteration
from .tokens import is_magic

COPIED = frozenset({"ImplicitlyCopyable", "RegisterPassable", "TrivialRegisterPassable", "RegisterType"})
"""Traits whose structs are copied when another variable is assigned; others are moved, or copied by `copy()`."""


def declare_struct(
    name: str,
    parameters: tuple[tuple[str, Any], ...],
    traits: Callable[[], tuple[Any, ...]],
    fields: tuple[str, ...] = (),
) -> type:
    """Return a new class without members; its parameters are attributes, and its values have only the fields.

    >>> declare_struct("Pair", (("n", 2),), lambda: ()).n
    2
    """
    members: dict[str, Any] = dict(parameters)
    members["__fields__"] = fields
    if not any(field.startswith("__") for field in fields):  # which Python would give other names
        members["__slots__"] = fields
    members["__bracketed__"] = tuple(name for name, _ in parameters)
    members["__implicit__"] = []
    members["__list_traits__"] = staticmethod(traits)
    return type(name, (StructValue,), members)


def add_member(cls: Any, name: str, member: Any, is_static: bool, is_implicit: bool) -> None:
    """Set a method or a static method of a struct.

    >>> point = declare_struct("Point", (), lambda: ())
    >>> add_member(point, "two", lambda: 2, True, False)
    >>> point.two()
    2
    """
    if is_implicit and isinstance(member, Function):
        cls.__implicit__.append(member.overloads[-1])
    if name == "__init__" and _is_copy_constructor(member):
        cls.__has_copy_constructor__ = True
    if is_static:
        setattr(cls, name, staticmethod(member))
        return
    for key, value in adapt_member(name, member).items():
        setattr(cls, key, value)


def add_value(cls: Any, name: str, value: Any) -> None:
    """Set an associated value of a struct, which is none of the methods that Python calls.

    >>> add_value(declare_struct("Point", (), lambda: ()), "__getattr__", print)
    Traceback (most recent call last):
    TypeError: __getattr__ is a method of values
    """
    if is_magic(name):
        raise TypeError(f"{name} is a method of values")
    setattr(cls, name, value)


def _is_copy_constructor(member: Any) -> bool:
    if isinstance(member, Function):
        return any(argument.name == "copy" for overload in member.overloads for argument in overload.arguments)
    return "copy" in member.__code__.co_varnames[: member.__code__.co_argcount + member.__code__.co_kwonlyargcount]


def complete_struct(cls: Any, is_value: bool) -> Any:
    """Return the struct with what its traits add; `is_value` says that it is copied implicitly.

    >>> complete_struct(declare_struct("Point", (), lambda: (), ("x",)), False).__fields__
    ('x',)
    """
    traits = all_traits(cls.__list_traits__())
    cls.__traits__ = traits
    for trait in traits:
        if isinstance(trait, Trait):
            trait.add_defaults(cls)
    names = {getattr(trait, "__name__", "") for trait in traits}
    if is_value or names & COPIED or "__copyinit__" in cls.__dict__:
        cls.copy_implicitly = cls.copy
    add_comparisons(cls)
    add_iteration(cls)
    return cls


def all_traits(traits: Sequence[Any]) -> tuple[Any, ...]:
    """Return traits with all that they extend."""
    result: list[Any] = []
    waiting = list(traits)
    while waiting:
        trait = waiting.pop(0)
        if isinstance(trait, TraitUnion):
            waiting += trait.traits
        elif trait not in result:
            result.append(trait)
            waiting += trait.extended() if isinstance(trait, Trait) else getattr(trait, "__bases__", ())
    return tuple(result)


class Trait:
    """A trait: what it extends, a function that adds its default members to a struct, and what it requires.

    >>> named = Trait("Named", lambda: (), lambda Self: None, ("name",))
    >>> named.conforms(3)
    False
    """

    def __init__(
        self,
        name: str,
        extended: Callable[[], tuple[Any, ...]],
        factory: Callable[[Any], None],
        required: tuple[str, ...],
    ) -> None:
        self.__name__, self.extended, self.factory, self.required = name, extended, factory, required

    def __repr__(self) -> str:
        return self.__name__

    def add_defaults(self, cls: Any) -> None:
        """Add the default members that a struct does not have itself."""
        self.factory(DefaultMembers(cls))

    def conforms(self, value: Any) -> bool:
        """Return whether a value, or a type, has the trait: structs say so, others have its methods."""
        kind = value if isinstance(value, type) else type(value)
        if issubclass(kind, StructValue):
            return self in kind.__traits__
        return bool(self.required) and all(hasattr(value, name) for name in self.required)

    __instancecheck__ = conforms

    def __and__(self, other: Any) -> TraitUnion:
        return TraitUnion([self, other])

    __rand__ = __and__


class DefaultMembers:
    """Stands for a struct while a trait adds members to it: those that the struct has stay as they are."""

    def __init__(self, cls: Any) -> None:
        object.__setattr__(self, "cls", cls)

    def __setattr__(self, name: str, value: Any) -> None:
        cls = object.__getattribute__(self, "cls")
        if name not in cls.__dict__:
            setattr(cls, name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "cls"), name)

    def __call__(self, *values: Any, **options: Any) -> Any:
        return object.__getattribute__(self, "cls")(*values, **options)


class TraitUnion:
    """Several traits, `A & B`.

    >>> first = Trait("A", lambda: (), lambda Self: None, ())
    >>> (first & first).traits == [first, first]
    True
    """

    def __init__(self, traits: list[Any]) -> None:
        self.traits = traits

    def __and__(self, other: Any) -> TraitUnion:
        return TraitUnion([*self.traits, other])

    __rand__ = __and__


class StructTemplate:
    """A struct with parameters: brackets choose its class, and a call infers them from the constructor's arguments.

    >>> box = StructTemplate(
    ...     "Box", lambda n: declare_struct("Box", (("n", n),), lambda: ()), (Parameter("n", "any", None, None),), ()
    ... )
    >>> box[3].n
    3
    """

    def __init__(
        self,
        name: str,
        factory: Callable[..., Any],
        parameters: tuple[Parameter, ...],
        initializers: tuple[tuple[Argument, ...], ...],
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.parameters = parameters
        self.__bracketed__ = tuple(parameter.name for parameter in parameters if parameter.kind != "infer")
        self._maker = Overload(name, factory, parameters, ())
        self._initializers = [Overload(name, factory, parameters, arguments) for arguments in initializers]

    def __repr__(self) -> str:
        return self.__name__

    def __getitem__(self, parameters: Any) -> Any:
        return self.with_parameters(*(parameters if isinstance(parameters, tuple) else (parameters,)))

    def with_parameters(self, *given: Any, **named: Any) -> Any:
        """Return the class for these parameters; if some are missing, what infers them when it is called."""
        known = bind_given(self.__name__, self.parameters, given, named)
        if known is None:
            raise LayoutError(f"struct {self.__name__} has the parameters [{', '.join(self.__bracketed__)}]")
        missing = [item for item in self.parameters if item.name not in known and item.default is None]
        if missing and any(item.kind != "variadic" for item in missing):
            return PartialStruct(self, known)
        return self.make(known)

    @property
    def cls(self) -> Any:
        """The class whose parameters all have their defaults."""
        return self.make({})

    def make(self, known: dict[str, Any]) -> Any:
        """Return the class for known parameters."""
        cls: Any = self._maker.specialize(dict(known))
        cls.__template__ = self
        return cls

    def infer(self, known: Mapping[str, Any], values: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Return the class whose constructor takes these arguments."""
        best: tuple[int, dict[str, Any]] | None = None
        for overload in self._initializers:
            pairs = overload.bind(values, options)
            score = 0 if pairs is None else overload.score(pairs, {})
            if pairs is not None and score and (best is None or score > best[0]):
                best = (score, overload.infer(pairs, dict(known)))
        return self.make(dict(known) if best is None else best[1])

    def __call__(self, *values: Any, **options: Any) -> Any:
        return self.infer({}, values, options)(*values, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.cls, name)

    def __instancecheck__(self, value: object) -> bool:
        return getattr(type(value), "__template__", None) is self


class PartialStruct:
    """A struct with some of its parameters."""

    def __init__(self, template: StructTemplate, known: dict[str, Any]) -> None:
        self.template, self.known = template, known
        self.__bracketed__ = template.__bracketed__

    @property
    def cls(self) -> Any:
        """The class for these parameters, the others having their defaults."""
        return self.template.make(dict(self.known))

    def __call__(self, *values: Any, **options: Any) -> Any:
        return self.template.infer(self.known, values, options)(*values, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.cls, name)

    def __instancecheck__(self, value: object) -> bool:
        same = isinstance(value, self.template)  # type: ignore[arg-type]
        return same and all(getattr(value, name, None) == entry for name, entry in self.known.items())

    def __repr__(self) -> str:
        return f"{self.template!r}[...]"


def conforms_to(kind: Any, trait: Any) -> bool:
    """Return whether a type has a trait.

    >>> conforms_to(int, Trait("Named", lambda: (), lambda Self: None, ("name",)))
    False
    """
    if isinstance(trait, TraitUnion):
        return all(conforms_to(kind, part) for part in trait.traits)
    if isinstance(kind, type) and issubclass(kind, StructValue):
        return trait in kind.__traits__ or getattr(trait, "__name__", "") in ("AnyType", "ImplicitlyDestructible")
    samples = {Int: 0, Bool: False, String: ""}
    if kind in samples or kind.__class__ is SIMDType:
        sample = samples[kind] if kind in samples else kind(0)
        return trait.conforms(sample) if isinstance(trait, Trait) else True
    if isinstance(trait, Trait):
        return trait.conforms(kind)
    try:
        return issubclass(kind, trait)
    except TypeError:
        return True

# SPDX-License-Identifier: Apache-2.0
"""Structs and texts at run time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, ClassVar

from tilewright.errors import FormatError, LayoutError
from tilewright.mojo import Bool, DType, Error, Int, MojoValue, SIMDType, UInt8, format_value

from ..collections import List
from ..errors import payload
from ..types import String, represent
from .functions import Argument, Function, Overload, Parameter, bind_given, copy_value
from .tokens import is_magic, words


@dataclass(frozen=True, slots=True, order=True)
class Codepoint:
    """A character by its `number` in Unicode.

    >>> letter = Codepoint(97)
    >>> print(letter, int(letter))
    a 97
    """

    number: int

    def __post_init__(self) -> None:
        if not 0 <= int(self.number) <= 0x10FFFF:
            raise FormatError(f"a codepoint is between 0 and 0x10FFFF, got {self.number}")
        object.__setattr__(self, "number", int(self.number))

    @staticmethod
    def ord(text: str) -> Codepoint:
        """Return the codepoint of a text of one character.

        >>> Codepoint.ord("b").number
        98
        """
        if len(text) != 1:
            raise FormatError(f"ord takes a text of one character, got {text!r}")
        return Codepoint(ord(text))

    def is_ascii(self) -> bool:
        """Return whether it is one of the 128 characters of ASCII.

        >>> Codepoint.ord("é").is_ascii()
        False
        """
        return self.number < 128

    def is_ascii_digit(self) -> bool:
        """Return whether it is one of 0 to 9.

        >>> Codepoint.ord("7").is_ascii_digit()
        True
        """
        return "0" <= str(self) <= "9"

    def is_ascii_upper(self) -> bool:
        """Return whether it is one of A to Z.

        >>> Codepoint.ord("A").is_ascii_upper()
        True
        """
        return "A" <= str(self) <= "Z"

    def is_ascii_whitespace(self) -> bool:
        """Return whether it is a space, a tabulator or the end of a line.

        >>> Codepoint.ord(" ").is_ascii_whitespace()
        True
        """
        return self.is_ascii() and str(self).isspace()

    def __int__(self) -> int:
        return self.number

    def __str__(self) -> str:
        return chr(self.number)


_OPERATIONS = words("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift")
IN_PLACE = frozenset(f"__i{name}__" for name in _OPERATIONS)
ANSWER = "answer·of"
"""The `__getattr__` of a struct, which answers for members that it does not declare."""


class TextWriter:
    """Collects the text that a struct's `write_to` writes.

    >>> writer = TextWriter()
    >>> writer.write("n = ", 3)
    >>> writer.text()
    'n = 3'
    """

    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, *values: Any) -> None:
        """Add the text of values.

        >>> TextWriter().write(1, "a")
        """
        self.parts += map(str, values)

    def write_string(self, value: object) -> None:
        """Add a text.

        >>> TextWriter().write_string("a")
        """
        self.parts.append(str(value))

    def text(self) -> str:
        """Return all that was written.

        >>> TextWriter().text()
        ''
        """
        return "".join(self.parts)


class StructValue:
    """The base of all structs. `__fields__` are their names; `__implicit__` the constructors that convert values."""

    __slots__ = ()

    __bracketed__: ClassVar[tuple[str, ...]] = ()
    __fields__: ClassVar[tuple[str, ...]] = ()
    __traits__: ClassVar[tuple[Any, ...]] = ()
    __implicit__: ClassVar[list[Overload]] = []
    __template__: ClassVar[Any] = None
    __has_copy_constructor__: ClassVar[bool] = False

    @classmethod
    def converts_implicitly(cls, value: object) -> bool:
        """Return whether a constructor takes the value without being asked to."""
        for overload in cls.__implicit__:
            pairs = overload.bind((None, value), {})
            if pairs is not None and overload.score(pairs[1:], {}):
                return True
        return False

    @classmethod
    def convert_implicitly(cls, value: object) -> MojoValue:
        """Return the value converted, if a constructor takes it implicitly."""
        make: Any = cls
        return make(value) if cls.converts_implicitly(value) else value

    def copy(self) -> MojoValue:
        """Return a copy: by the struct's own constructor, or field by field."""
        cls = type(self)
        new: Any = cls.__new__(cls)
        if "__copyinit__" in cls.__dict__:
            new.__copyinit__(self)
        elif cls.__has_copy_constructor__:
            new.__init__(copy=self)
        else:
            for name in self.__fields__:
                setattr(new, name, copy_field(getattr(self, name)))
        return new

    def __str__(self) -> str:
        writer = TextWriter()
        write_to = getattr(self, "write_to", None)
        if write_to is not None:
            write_to(writer)
            return writer.text()
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in self.__fields__)
        return f"{type(self).__name__}({fields})"

    def __repr__(self) -> str:
        write_to = getattr(self, "write_repr_to", None)
        if write_to is None:
            fields = ", ".join(f"{name}={represent(getattr(self, name))}" for name in self.__fields__)
            return f"{type(self).__name__}({fields})"
        writer = TextWriter()
        write_to(writer)
        return writer.text()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__fields__)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__fields__))

    def get_subscript(self, *position: Any, **named: Any) -> MojoValue:
        """Return an element: brackets with keywords, or empty ones."""
        return self.element_of(*position, **named)  # type: ignore[attr-defined]

    def set_subscript(self, value: object, *position: Any, **named: Any) -> None:
        """Assign an element."""
        self.assign_element(*position, value, **named)  # type: ignore[attr-defined]


def copy_field(value: object) -> MojoValue:
    """Return a copy of a field: of containers and structs, with all that they hold.

    >>> copy_field([1])
    [1]
    """
    if isinstance(value, StructValue):
        return value.copy()
    if isinstance(value, (list, dict, set)):
        return value.copy()
    return copy_value(value)


def assign_fields(target: Any, value: Any) -> None:
    """Assign a whole struct: `self = Self(...)`.

    >>> class Point(StructValue):
    ...     __fields__ = ("x",)
    >>> first, second = Point(), Point()
    >>> second.x = 3
    >>> assign_fields(first, second)
    >>> first.x
    3
    """
    is_struct = isinstance(target, StructValue) and isinstance(value, StructValue)
    if not is_struct or target.__fields__ != value.__fields__:
        raise TypeError(f"self is a value of {type(target).__name__}; it cannot become one of {type(value).__name__}")
    for name in value.__fields__:
        setattr(target, name, getattr(value, name))


def adapt_member(name: str, member: Any) -> dict[str, Any]:
    """Return a method under the names that Python calls it by, with Python's arguments.

    Brackets pass several indices as one tuple in Python, methods such as `__iadd__` return their result, and
    `__exit__` learns of errors by three arguments.
    """
    if name in IN_PLACE:
        return {name: _return_self(member)}
    if name == "__getitem__":
        return {name: _spread_index(member, 0), "element_of": member}
    if name == "__setitem__":
        return {name: _spread_index(member, 1), "assign_element": member}
    if name == "__exit__":
        return {name: _adapt_exit(member)}
    if name == "__hash__" and _takes(member, 2):
        return {"hash_into": member}
    if name == "__has_next__":
        return {name: member, "__iter__": lambda self: self}
    if name == "__getattr__":  # under a name that Python does not ask for: it would ask for `__array_interface__` too
        return {ANSWER: lambda self, attribute: member.with_parameters(attribute)(self)}
    return {name: member}


def _bound(member: Any, owner: Any) -> Callable[..., Any]:
    return member.__get__(owner, type(owner))  # type: ignore[no-any-return]


def _return_self(member: object) -> Callable[..., Any]:
    def change(self: object, other: object) -> MojoValue:
        _bound(member, self)(other)
        return self

    return change


def _takes(member: Any, count: int) -> bool:
    """Return whether a method, with `self`, can be called with `count` arguments."""
    if isinstance(member, Function):
        return any(overload.bind((None,) * count, {}) is not None for overload in member.overloads)
    code = member.__code__
    least = code.co_argcount - len(member.__defaults__ or ())
    return least <= count <= code.co_argcount or (bool(code.co_flags & 4) and count >= least)


def _spread_index(member: object, extra: int) -> Callable[..., Any]:
    def access(self: object, index: object, *value: Any) -> MojoValue:
        if isinstance(index, tuple) and _takes(member, 1 + len(index) + extra):
            return _bound(member, self)(*index, *value)
        return _bound(member, self)(index, *value)

    return access


def _adapt_exit(member: Any) -> Callable[..., Any]:
    def leave(self: Any, kind: object = None, error: Any = None, traceback: object = None) -> MojoValue:
        if error is not None and _takes(member, 2):
            return _bound(member, self)(payload(error))
        if _takes(member, 1):
            _bound(member, self)()
        return False

    return leave


def add_comparisons(cls: Any) -> None:
    """Add the comparisons that follow from `__lt__`, as Mojo's trait `Comparable` does."""
    if "__lt__" in cls.__dict__:
        if "__le__" not in cls.__dict__:
            cls.__le__ = lambda self, other: not operator.lt(other, self)
        if "__ge__" not in cls.__dict__:
            cls.__ge__ = lambda self, other: not operator.lt(self, other)


def add_iteration(cls: Any) -> None:
    """Make `__next__` end the loop when `__has_next__` is false."""
    if "__has_next__" in cls.__dict__ and "__next__" in cls.__dict__:
        following, has_next = cls.__dict__["__next__"], cls.__dict__["__has_next__"]

        def step(self: object) -> MojoValue:
            if not _bound(has_next, self)():
                raise StopIteration
            return _bound(following, self)()

        cls.__next__ = step
    if "__next__" in cls.__dict__ and "__iter__" not in cls.__dict__:
        cls.__iter__ = lambda self: self


TEXT_MEMBERS = words(
    "as_bytes as_string_slice ascii_center ascii_ljust ascii_rjust byte_length bytes codepoint_slices codepoints "
    "count_codepoints format graphemes is_ascii_digit is_ascii_printable is_ascii_whitespace write_to"
)
"""Methods of Mojo's strings that Python's do not have, or that reach further there."""


class Text(str):
    """A text with the methods that only Mojo's strings have; lengths and positions are in bytes of UTF-8.

    >>> Text("né").byte_length(), Text("né").count_codepoints(), Text("abc").get_subscript(byte=1)
    (3, 2, 'b')
    """

    __slots__ = ()

    def byte_length(self) -> int:
        """Return the number of bytes in UTF-8.

        >>> Text("é").byte_length()
        2
        """
        return len(self.encode())

    def copy(self) -> str:
        """Return the text.

        >>> Text("a").copy()
        'a'
        """
        return str(self)

    def count_codepoints(self) -> int:
        """Return the number of characters.

        >>> Text("é").count_codepoints()
        1
        """
        return len(self)

    def codepoints(self) -> tuple[Codepoint, ...]:
        """Return the characters as numbers.

        >>> Text("ab").codepoints()
        (Codepoint(number=97), Codepoint(number=98))
        """
        return tuple([Codepoint(ord(character)) for character in self])

    def codepoint_slices(self) -> tuple[str, ...]:
        """Return the characters as texts.

        >>> Text("ab").codepoint_slices()
        ('a', 'b')
        """
        return tuple(str(self))

    graphemes = codepoint_slices
    ascii_center, ascii_ljust, ascii_rjust = str.center, str.ljust, str.rjust

    def as_bytes(self) -> MojoValue:
        """Return the bytes in UTF-8.

        >>> print(Text("a").as_bytes())
        [97]
        """
        return List[UInt8](*self.encode())

    bytes = as_bytes

    def as_string_slice(self) -> str:
        """Return the text.

        >>> Text("a").as_string_slice()
        'a'
        """
        return str(self)

    def format(self, *values: Any) -> str:  # type: ignore[override]  # Python's would also read members of the values
        """Return the text with values in place of `{}`, `{1}` and `{!r}`.

        >>> Text("{} of {}, {0!r}").format(3, "a")
        '3 of a, Int(3)'
        >>> Text("{0.__class__}").format(3)
        Traceback (most recent call last):
        tilewright.mojo.simd.Error: a format text has {}, {0} or {!r} for its values, got {0.__class__}
        """
        parts, position = [], 0
        for literal, field, spec, conversion in Formatter().parse(self):
            parts.append(literal)
            if field is None:
                continue
            if spec or not (field == "" or field.isdecimal()) or conversion not in (None, "r", "s"):
                wanted = "".join([field, f"!{conversion}" if conversion else "", f":{spec}" if spec else ""])
                raise Error(f"a format text has {{}}, {{0}} or {{!r}} for its values, got {{{wanted}}}")
            index = int(field) if field else position
            position += not field
            if index >= len(values):
                raise Error(f"the format text wants value {index}, but there are {len(values)}")
            parts.append(represent(values[index]) if conversion == "r" else format_value(values[index]))
        return "".join(parts)

    def is_ascii_digit(self) -> bool:
        """Return whether all characters are digits.

        >>> Text("12").is_ascii_digit()
        True
        """
        return self.isascii() and self.isdigit()

    def is_ascii_printable(self) -> bool:
        """Return whether all characters are visible ones of ASCII, or spaces.

        >>> Text("a b").is_ascii_printable()
        True
        """
        return all(" " <= character <= "~" for character in self)

    def is_ascii_whitespace(self) -> bool:
        """Return whether there are only spaces, tabulators and ends of lines.

        >>> Text(" ").is_ascii_whitespace()
        True
        """
        return self.isascii() and self.isspace()

    def write_to(self, writer: Any) -> None:
        """Write the text.

        >>> Text("a").write_to(writer := TextWriter())
        >>> writer.text()
        'a'
        """
        writer.write(str(self))

    def get_subscript(self, *position: Any, byte: Any = None, codepoint: Any = None) -> str:
        """Return a part: `s[byte=1]`, `s[codepoint=0:3]`.

        >>> Text("né").get_subscript(codepoint=1)
        'é'
        """
        if byte is not None:
            part = self.encode()[byte if isinstance(byte, slice) else slice(byte, byte + 1)]
            return part.decode("utf-8", "replace")
        return str(self)[codepoint if codepoint is not None else position[0]]


def write_text(value: Any, *parts: Any) -> MojoValue:
    """Return a variable after `variable.write(parts)`: a text grows, others are written to.

    >>> write_text("n = ", 3)
    'n = 3'
    """
    if isinstance(value, str):
        return value + "".join(map(str, parts))
    value.write(*parts)
    return value


def write_value(value: object, method: str, writer: object) -> MojoValue:
    """Return a variable after `value.write_to(variable)`: a text grows, others are written to.

    >>> write_value(Text("3"), "write_to", "n = ")
    'n = 3'
    """
    if not isinstance(writer, str):
        getattr(value, method)(writer)
        return writer
    collected = TextWriter()
    getattr(value, method)(collected)
    return writer + collected.text()


class NumberMembers:
    """Members of Mojo's numbers and texts that Python's do not have.

    >>> from tilewright.mojo import DType
    >>> NumberMembers(3).copy(), int(NumberMembers(3).cast[DType.int8]())
    (3, 3)
    """

    __slots__ = ("_number", "cast")
    length = 1

    def __init__(self, value: object) -> None:
        self._number = value
        if not isinstance(value, tuple):
            self.cast = SIMDType(DType.of("float64" if isinstance(value, float) else "int64"), 1)(value).cast

    def copy(self) -> MojoValue:
        """Return the number.

        >>> NumberMembers(3).copy()
        3
        """
        return self._number

    value = copy


def with_members(value: object) -> MojoValue:
    """Return a value that has the members of Mojo's numbers.

    >>> with_members(3).copy(), with_members([1]).copy()
    (3, [1])
    """
    if value.__class__ is str:
        return Text(value)
    return NumberMembers(value) if value.__class__ in (int, float, bool, tuple) else value


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


def add_value(cls: object, name: str, value: object) -> None:
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
    """Return the struct with the members its traits add; `is_value` makes it copied implicitly.

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
    """A trait: the traits it extends, a function that adds its default members to a struct, and required methods.

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

    def add_defaults(self, cls: object) -> None:
        """Add the default members that a struct does not have itself."""
        self.factory(DefaultMembers(cls))

    def conforms(self, value: object) -> bool:
        """Return whether a value, or a type, has the trait: structs say so, others have its methods."""
        kind = value if isinstance(value, type) else type(value)
        if issubclass(kind, StructValue):
            return self in kind.__traits__
        return bool(self.required) and all(hasattr(value, name) for name in self.required)

    __instancecheck__ = conforms

    def __and__(self, other: object) -> TraitUnion:
        return TraitUnion([self, other])

    __rand__ = __and__


class DefaultMembers:
    """Stands for a struct while a trait adds members to it: the struct's own stay as they are."""

    def __init__(self, cls: object) -> None:
        object.__setattr__(self, "cls", cls)

    def __setattr__(self, name: str, value: object) -> None:
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

    def __and__(self, other: object) -> TraitUnion:
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

    def with_parameters(self, *given: Any, **named: Any) -> MojoValue:
        """Return the class for these parameters; if some are missing, what infers them when it is called."""
        known = bind_given(self.__name__, self.parameters, given, named)
        if known is None:
            raise LayoutError(f"struct {self.__name__} has the parameters [{', '.join(self.__bracketed__)}]")
        missing = [item for item in self.parameters if item.name not in known and item.default is None]
        if missing and any(item.kind != "variadic" for item in missing):
            return PartialStruct(self, known)
        return self.make(known)

    @property
    def cls(self) -> MojoValue:
        """The class whose parameters all have their defaults."""
        return self.make({})

    def make(self, known: dict[str, Any]) -> MojoValue:
        """Return the class for known parameters."""
        cls: Any = self._maker.specialize(dict(known))
        cls.__template__ = self
        return cls

    def infer(self, known: Mapping[str, Any], values: Sequence[Any], options: Mapping[str, Any]) -> MojoValue:
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
    def cls(self) -> MojoValue:
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

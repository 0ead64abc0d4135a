# SPDX-License-Identifier: Apache-2.0
"""Which members a program reaches: the allow-list behind every dot of a Mojo program.

A program is the code of a stranger and becomes Python, so nothing of Python may be within its reach: not the globals of
a function, not the frame of an error, not the methods of an array. `guard_members` rewrites the lowered program so that
each `value.name` becomes `mojo·visible(value, "name").name`; the rules are here and nowhere else:

- a struct of the program has its own fields and methods, and what its traits give it;
- a value or type of the dialect has the public names that classes of the dialect define;
- a number, a text or a tuple has the methods that `NATIVE` lists; a module has the names that it exports;
- everything else (functions, arrays, iterators, errors of Python) has no members at all.

Names between double underscores are Mojo's own or they are not names: the tokenizer refuses the others.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Collection
from enum import Enum
from types import FunctionType, GeneratorType, MemberDescriptorType, ModuleType
from typing import Any

from tilewright.formats import ScalarFormat
from tilewright.layout import Layout, LayoutLike, Swizzle
from tilewright.mojo import Error, MojoValue, brackets
from tilewright.tensor import TileTensor

from ..exports import MojoModule, is_of_dialect
from ..simt.kernel_thread import Dim, ThreadValue
from ..types import HiddenValue
from .building import SUPPORT, at, constant, load
from .structs import (
    ANSWER,
    Codepoint,
    DefaultMembers,
    NumberMembers,
    PartialStruct,
    StructTemplate,
    StructValue,
    Text,
    TextWriter,
)
from .tokens import MOJO_METHODS, is_magic, words

_NUMBER = words("cast copy length size value")
_TEXT = words(
    "as_bytes capitalize center copy count endswith find isdigit islower isprintable isspace isupper join ljust lower "
    "lstrip removeprefix removesuffix replace rfind rjust rstrip split splitlines startswith strip title upper zfill"
)
_VIEW = next(kind for kind in TileTensor.__mro__ if "layout" in vars(kind))  # what describes every tensor
NATIVE: dict[type, frozenset[str]] = {
    bool: _NUMBER,
    int: _NUMBER,
    float: _NUMBER,
    str: _TEXT,
    tuple: words("count index"),
    **dict.fromkeys(
        (enumerate, map, range, reversed, zip, GeneratorType, *map(type, map(iter, ([], (), "", {}, {1})))), words("")
    ),
    slice: words("start step stop"),
    list: words("copy count index"),
    dict: words("clear copy get items keys pop popitem setdefault update values"),
    set: words("add clear copy discard pop remove union intersection difference symmetric_difference update"),
    deque: words("append appendleft clear copy count extend extendleft index insert pop popleft remove reverse"),
    Enum: words("name value"),
    Dim: words("x y z"),
    ThreadValue: words("x y z"),
    ScalarFormat: words("bits itemsize name"),
    LayoutLike: words("cosize depth rank shape size"),
    Layout: words("cosize mode offset shape stride"),
    Swizzle: words("base bits cosize shift size"),
    _VIEW: words("dtype element_layout element_size is_row_major layout offset origin rank shape size"),
    TileTensor: words(
        "bitcast coalesce copy_from distribute distribute_with_offset fill load reshape slice split store tile "
        "tile_with_offset transpose vectorize"
    ),
}
"""The members of values that are Python's or the library's own; Mojo's methods such as `__add__` come on top."""
_LANGUAGE = (Codepoint, Error, NumberMembers, Text, TextWriter)
"""Classes of the front end whose values a program works with; it sees no member of the others."""
MOJO_PRIVATE = words(
    "__copy_ctor_is_trivial __del__is_trivial __move_ctor_is_trivial _compute_distribute_layout _count _format_layout "
    "_incr _print_layout _shape_types _stack_copy _storage _stride_types _unsafe_storage_cast _value _xchg"
)
"""Names with an underscore before them that Modular's own programs use."""
_OWN_ONLY = words("__init__ __getattr__")
"""Methods of structs only: a value of the library may be shared, and its methods would take any name."""
_METHODS = (FunctionType, MemberDescriptorType, property, brackets)
"""What a class gives its values, and no program takes from the class: it would apply it to values of its own."""
_STAND_INS = (StructTemplate, PartialStruct, DefaultMembers)
"""What stands for a struct: `cls` is the struct, with the parameters that are known."""
_PYTHON_ONLY = words("tolist")
"""Public names of the dialect that Mojo does not have. A list of Python could change while NumPy reads it."""
HOME = "tilewright_mojo"


class Exports:
    """The base of values whose members are names that they export: a program that another one imports."""

    def exported_names(self) -> Collection[str]:
        """Return the names that other programs see."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        raise NotImplementedError

    def parametrized_type(self) -> type:
        """Return what `type_of` tells of a program: nothing that could run another one."""
        return HiddenValue


_seen: set[tuple[type, str]] = set()  # members of values that passed, by class and name
_SEEN = 1 << 16  # entries at most: classes of programs that ended should not live on


def visible(value: Any, name: str) -> MojoValue:
    """Return the value, if a program may read its member `name`; raise AttributeError otherwise.

    >>> visible("text", "upper").upper()
    'TEXT'
    >>> visible(visible, "__globals__")
    Traceback (most recent call last):
    AttributeError: '__globals__' is not a member that a Mojo program can reach
    """
    kind = type(value)
    if (kind, name) in _seen:
        return value
    if kind in _STAND_INS:  # asked again, a struct with other parameters might answer
        value = value.cls
        kind = type(value)
    if _is_visible(kind, name):
        if len(_seen) >= _SEEN:
            _seen.clear()
        _seen.add((kind, name))
    elif not _is_own(value, name):
        if is_dynamic(kind) and not is_magic(name):
            return Answers(getattr(value, ANSWER))
        raise AttributeError(f"{name!r} is not a member that a Mojo program can reach", name=name, obj=value)
    elif isinstance(value, Exports):
        return Answers(value.__getitem__)
    return value


class Answers:
    """Stands for a value while a program reads a member by a function of its name, and not by Python's own lookup.

    A struct's `__getattr__` answers so: Python would want memory, iterators and the like from it. So does a program
    that another one imports: a name that it declares may be one of ours.

    >>> class Echo(StructValue):
    ...     pass
    >>> setattr(Echo, ANSWER, lambda self, name: name * 2)
    >>> visible(Echo(), "ab").ab, hasattr(Echo(), "ab")
    ('abab', False)
    """

    __slots__ = ("_answer",)

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self._answer = answer

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "_answer")(name)


def assignable(value: object, name: str) -> MojoValue:
    """Return the value, if a program may assign its member `name`; raise AttributeError otherwise.

    >>> assignable(3, "size")
    Traceback (most recent call last):
    AttributeError: 'size' is not a member that a Mojo program can assign
    """
    if not _is_assignable(type(value), name):
        raise AttributeError(f"{name!r} is not a member that a Mojo program can assign", name=name, obj=value)
    return value


def read_member(value: object, name: str, default: object) -> MojoValue:
    """Return a member that a program may read, or a default if there is none.

    >>> read_member(3, "__class__", None) is None
    True
    """
    try:
        return getattr(visible(value, name), name, default)
    except AttributeError:
        return default


def check_options(options: Any) -> dict[str, Any]:
    """Return the arguments that `**options` passes by name, if a program can spell all of the names.

    >>> check_options({"__class__": 3})
    Traceback (most recent call last):
    TypeError: '__class__' is not the name of an argument
    """
    named = dict(options)
    for name in named:
        if not isinstance(name, str) or "·" in name or (is_magic(name) and name not in MOJO_METHODS):
            raise TypeError(f"{name!r} is not the name of an argument")
    return named


def visible_members(value: object) -> list[str]:
    """Return the names of the members that a program can read.

    >>> from tilewright_mojo.std import math
    >>> visible_members(print), "sqrt" in visible_members(math)
    ([], True)
    """
    return [name for name in dir(value) if _is_visible(type(value), name) or _is_own(value, name)]


def is_exported(module: ModuleType, name: str) -> bool:
    """Return whether a program can import a name from a module of the dialect.

    >>> from tilewright_mojo.std import math
    >>> is_exported(math, "sqrt"), is_exported(math, "np")
    (True, False)
    """
    if not isinstance(module, MojoModule):
        return False
    return name in module.__all__ or isinstance(module.__dict__.get(name), MojoModule)


def _is_visible(kind: type, name: str) -> bool:
    """Return whether the values of a class have a member that programs may read."""
    if is_magic(name) and name not in MOJO_METHODS:
        return False
    if issubclass(kind, StructValue):
        return _is_struct_member(kind, name)
    if name in _OWN_ONLY or name in _PYTHON_ONLY:
        return False
    if issubclass(kind, (brackets, type)) or not _is_dialect_class(kind):
        return _is_native(kind, name)
    definer = next((cls for cls in kind.__mro__ if name in cls.__dict__), None)
    if definer is None:  # an attribute of the value, or one that the class computes
        return not name.startswith("_")
    return _is_native(definer, name) or (_is_dialect_class(definer) and not _is_private(name))


def _is_own(value: Any, name: str) -> bool:
    """Return whether a type, a module or a template has a member that its class does not tell of."""
    if isinstance(value, type):
        return _is_type_member(value, name)
    if isinstance(value, ModuleType):
        return is_exported(value, name)
    if isinstance(value, Exports):
        return name in value.exported_names()
    return type(value) in _STAND_INS and _is_type_member(value.cls, name)


def _is_type_member(kind: type, name: str) -> bool:
    if is_magic(name) and name not in MOJO_METHODS:
        return False
    if issubclass(kind, StructValue):  # a field without a place in the class would be a member of Python's `type`
        if name in kind.__dict__:
            return not isinstance(kind.__dict__[name], MemberDescriptorType)
        return name not in kind.__fields__ and _is_struct_member(kind, name)
    if name in _OWN_ONLY:
        return False
    for cls in (*kind.__mro__, *type(kind).__mro__):
        if name in cls.__dict__:
            is_bound = issubclass(cls, type) or not isinstance(cls.__dict__[name], _METHODS)
            return is_bound and _is_dialect_class(cls) and not _is_private(name)
    return _is_dialect_class(kind) and hasattr(type(kind), "__getattr__") and not name.startswith("_")


def _is_struct_member(kind: Any, name: str) -> bool:
    """Return whether a program declared a member of a struct, or every struct of Mojo has it."""
    if name in kind.__fields__ or name in kind.__bracketed__ or name == "copy":
        return True
    return any(name in cls.__dict__ for cls in kind.__mro__[: kind.__mro__.index(StructValue)])


def is_dynamic(kind: type) -> bool:
    """Return whether a struct answers for members that it does not declare, by a `__getattr__` of its own."""
    return issubclass(kind, StructValue) and hasattr(kind, ANSWER)


def _is_assignable(kind: Any, name: str) -> bool:
    """Return whether programs may assign a member: a field of a struct, or one that a class of the dialect lists."""
    if issubclass(kind, StructValue):
        return name in kind.__fields__
    if issubclass(kind, type) or not _is_dialect_class(kind) or name.startswith("_"):
        return False
    return name in getattr(kind, "assignable_fields", ())


def _is_native(kind: type, name: str) -> bool:
    known = next((cls for cls in kind.__mro__ if cls in NATIVE), None)
    return known is not None and (name in NATIVE[known] or (name in MOJO_METHODS and hasattr(known, name)))


def _is_dialect_class(kind: type) -> bool:
    """Return whether a class is one of the dialect that programs work with."""
    return kind in _LANGUAGE or is_of_dialect(kind.__module__)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not is_magic(name) and name not in MOJO_PRIVATE


class _Guard(ast.NodeTransformer):
    """Puts the rules between a value and each dot behind it."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        self.generic_visit(node)
        rule = "visible" if isinstance(node.ctx, ast.Load) else "assignable"
        checked = ast.Call(func=load(SUPPORT + rule, node), args=[node.value, constant(node.attr, node)], keywords=[])
        node.value = at(checked, node.value)
        return node


def guard_members(module: ast.Module) -> ast.Module:
    """Return the lowered program with a check behind every dot.

    >>> ast.unparse(guard_members(ast.fix_missing_locations(ast.parse("x.y = z.w"))))
    "mojo·assignable(x, 'y').y = mojo·visible(z, 'w').w"
    """
    return ast.fix_missing_locations(_Guard().visit(module))  # type: ignore[no-any-return]

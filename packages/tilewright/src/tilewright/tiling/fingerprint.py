# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of computes: whether two functions do the same.

A run that resumes another must do the same work. A function is identified by its byte code, defaults, closure and the
globals it names, and so are the functions it calls; members of the standard library and of installed packages are
identified by name and version. Lambdas have no name, and locks, files or generators have no value: such computes cannot
be identified.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from datetime import date, time, timedelta
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_LIBRARIES = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("purelib", "platlib")})

_NUMBERS: tuple[type, ...] = (bool, int, float, complex, Fraction, np.generic, np.dtype, date, time, timedelta)
_VALUES: tuple[type, ...] = (*_NUMBERS, str, bytes, type(None), type(Ellipsis), slice, range, PurePath)

_IGNORED_MEMBERS = (
    "__dict__",
    "__weakref__",
    "__module__",
    "__doc__",
    "__annotations__",
    "__firstlineno__",
    "__slotnames__",  # pickle leaves it in a class when it first sends an instance
    "__static_attributes__",  # in no fixed order
)
_IGNORED_TYPES = ("member_descriptor", "getset_descriptor", "_abc_data")


class UnidentifiedError(Exception):
    """A compute, or an object it uses, cannot be identified; the message says which and why."""


def name_compute(compute: Any) -> str:
    """Return the qualified name of a compute, or that of its type.

    >>> name_compute(np.negative), name_compute(functools.partial(np.clip, a_min=0))
    ('numpy.negative', 'functools.partial(numpy.clip)')
    """
    if isinstance(compute, functools.partial):
        return f"functools.partial({name_compute(compute.func)})"
    if isinstance(compute, np.ufunc):
        return f"numpy.{compute.__name__}"
    named = compute if hasattr(compute, "__qualname__") else type(compute)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


def fingerprint_compute(compute: Callable[..., Any]) -> str:
    """Return a hash that is equal only for computes that do the same; raise UnidentifiedError if there is none.

    >>> def make_scale(factor):
    ...     def scale(x, out):
    ...         out[...] = factor * x
    ...
    ...     return scale
    >>> fingerprint_compute(make_scale(2)) == fingerprint_compute(make_scale(2))
    True
    >>> fingerprint_compute(make_scale(2)) == fingerprint_compute(make_scale(3))
    False
    """
    digest = hashlib.sha256()
    try:
        for part in _PartsWalk().parts(compute, "the compute"):
            digest.update(f"{len(part)}:".encode() + part)
    except UnidentifiedError:
        raise
    except Exception as problem:  # any object may raise, and nesting may be too deep
        raise UnidentifiedError(f"the compute cannot be read ({type(problem).__name__}: {problem})") from None
    return digest.hexdigest()


class _PartsWalk:
    """A walk through all that a compute depends on, item object once."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.alive: list[Any] = []  # so that no other object gets the id of one that was seen

    def parts(self, value: Any, label: str) -> Iterator[bytes]:
        """Yield label the value is, as bytes that are the same in every process."""
        yield type(value).__qualname__.encode()
        if isinstance(value, Enum):
            yield from (name_compute(type(value)).encode(), value.name.encode())
        elif isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            yield from (repr((value.dtype, value.shape)).encode(), np.ascontiguousarray(value).tobytes())
        elif isinstance(value, _VALUES):
            yield repr(value).encode()
        elif isinstance(value, re.Pattern):
            yield repr((value.pattern, value.flags)).encode()
        elif id(value) in self.seen:
            yield str(self.seen[id(value)]).encode()
        else:
            self.seen[id(value)] = len(self.seen)
            self.alive.append(value)
            yield from self._compound_parts(value, label)

    def _compound_parts(self, value: Any, label: str) -> Iterator[bytes]:
        if (library := _find_library(value)) is not None:
            yield name_compute(value).encode()
            yield from _version_parts(library)
        elif isinstance(value, (list, tuple)):
            yield from self._sequence_parts(value, label)
        elif isinstance(value, (set, frozenset)):
            # in no order, so label was seen in one element must not be a reference in the next
            yield from sorted([b"".join(_PartsWalk().parts(item, label)) for item in value])
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from self.parts(key, label)
                yield from self.parts(item, f"{label}[{key!r}]")
        elif isinstance(value, functools.partial):
            yield from self._sequence_parts((value.func, value.args, value.keywords), label)
        elif isinstance(value, MethodType):
            yield from self._sequence_parts((value.__func__, value.__self__), label)
        elif isinstance(value, FunctionType):
            yield from self._function_parts(value, label)
        elif isinstance(value, np.ufunc):
            yield name_compute(value).encode()
            if value.__name__ not in vars(np):  # numpy.frompyfunc, numba.vectorize
                raise UnidentifiedError(f"{label} is the ufunc {value.__name__}, which is not one of NumPy's")
        elif isinstance(value, ModuleType):
            yield from _version_parts(value)
        elif isinstance(value, BuiltinFunctionType):  # a method, such as [].append
            yield name_compute(value).encode()
            yield from self.parts(value.__self__, f"the object of {label}")
        elif isinstance(value, type):
            yield from self._class_parts(value, label)
        elif hasattr(value, "py_func"):  # compiled by numba
            yield from self.parts(value.py_func, label)
        else:
            yield from self._instance_parts(value, label)

    def _sequence_parts(self, values: Iterable[Any], label: str) -> Iterator[bytes]:
        for value in values:
            yield from self.parts(value, label)

    def _function_parts(self, function: FunctionType, label: str) -> Iterator[bytes]:
        yield name_compute(function).encode()
        if "<lambda>" in function.__qualname__.split(".")[-1] and label == "the compute":
            raise UnidentifiedError("the compute is a lambda, which has no name")
        yield from self._code_parts(function.__code__)
        yield from self.parts(function.__defaults__, f"a default of {function.__qualname__}")
        yield from self.parts(function.__kwdefaults__, f"a default of {function.__qualname__}")
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            yield from self.parts(value, f"{name}, which {function.__qualname__} encloses,")
        yield from self._global_parts(function)
        if function.__dict__:
            yield from self.parts({k: v for k, v in vars(function).items() if k != "__wrapped__"}, label)

    def _code_parts(self, code: CodeType) -> Iterator[bytes]:
        yield code.co_code
        yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_flags)).encode()
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from self._code_parts(constant)
            else:
                yield from self.parts(constant, "a constant")

    def _global_parts(self, function: FunctionType) -> Iterator[bytes]:
        names = sorted(set(_code_names(function.__code__)))
        for name in names:
            if name not in function.__globals__:
                continue
            value = function.__globals__[name]
            yield name.encode()
            yield from self.parts(value, f"the global {name} of {function.__qualname__}")
            if isinstance(value, ModuleType) and not _is_library(value.__name__):
                for attribute in names:  # helpers.FACTOR is two names in byte code
                    if attribute in vars(value):
                        yield from self.parts(vars(value)[attribute], f"{name}.{attribute}")

    def _class_parts(self, kind: type, label: str) -> Iterator[bytes]:
        yield name_compute(kind).encode()
        yield from self._sequence_parts(kind.__bases__, label)
        for name, value in vars(kind).items():
            if name in _IGNORED_MEMBERS or type(value).__name__ in (
                "member_descriptor",
                "getset_descriptor",
                "_abc_data",
            ):
                continue
            inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
            yield name.encode()
            yield from self.parts(inner, f"{kind.__qualname__}.{name}")

    def _instance_parts(self, value: Any, label: str) -> Iterator[bytes]:
        kind = type(value)
        slots = [name for item in kind.__mro__ for name in _slot_names(item) if hasattr(value, name)]
        if _is_library(kind.__module__) or not (hasattr(value, "__dict__") or slots):
            raise UnidentifiedError(f"{label} is a {kind.__module__}.{kind.__qualname__}, which has no known value")
        yield from self.parts(kind, label)
        yield from self.parts(
            {**{name: getattr(value, name) for name in slots}, **getattr(value, "__dict__", {})}, label
        )


def _slot_names(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _code_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_names(constant)


def _is_library(module: str | None) -> bool:
    """Return whether a module belongs to Python or to an installed package, so that its version identifies it."""
    loaded = sys.modules.get(module or "")
    if module is None or loaded is None:
        return False
    path = getattr(loaded, "__file__", None)
    in_python = module.partition(".")[0] in sys.stdlib_module_names
    return in_python or (path is not None and str(path).startswith(_LIBRARIES))


def _find_library(value: Any) -> ModuleType | None:
    """Return the library module that a function or class can be imported from, None if there is none."""
    name, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(name, str) or not isinstance(qualified, str) or not _is_library(name):
        return None
    member: Any = sys.modules[name]
    for part in qualified.split("."):
        member = getattr(member, part, None)
    return sys.modules[name] if member is value else None


def _version_parts(module: ModuleType) -> Iterator[bytes]:
    top = sys.modules.get(module.__name__.partition(".")[0])
    yield repr((module.__name__, str(getattr(top, "__version__", "")))).encode()

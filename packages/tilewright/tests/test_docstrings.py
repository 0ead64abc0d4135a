# SPDX-License-Identifier: Apache-2.0
"""Every public function, method and class says in its docstring what each parameter means, by its name.

Of data classes, those that `tw` offers are meant to be made by hand; the others are what functions return.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from enum import Enum

from .test_surface import PACKAGES, public_names

HIDDEN = ("self", "cls", "tensor")  # a method of tensors may be a function of a tensor


def public_callables() -> Iterator[tuple[str, Callable[..., object], str]]:
    """Yield the name, the function and the docstring of whatever a user may call."""
    seen = set()
    for package in PACKAGES:
        for name in public_names(package):
            value = getattr(importlib.import_module(package), name)
            if (
                id(value) in seen
                or not callable(value)
                or not getattr(value, "__module__", "").startswith("tilewright")
            ):
                continue
            seen.add(id(value))
            if not inspect.isclass(value):
                yield f"{package}.{name}", value, inspect.getdoc(value) or ""
            elif not issubclass(value, Exception | Enum):
                yield from callables_of_class(f"{package}.{name}", value)


def callables_of_class(name: str, owner: type) -> Iterator[tuple[str, Callable[..., object], str]]:
    about = (inspect.getdoc(owner) or "") + commented_fields(owner)
    made_by_hand = not is_dataclass(owner) or (name.startswith("tilewright.") and name.count(".") == 1)
    if made_by_hand and ("__init__" in vars(owner) or "__new__" in vars(owner)):
        yield name, owner, about + (inspect.getdoc(owner.__init__) or "")
    for method in [m for m in vars(owner) if not m.startswith("_")]:
        function = getattr(owner, method)
        if inspect.isfunction(function) or inspect.ismethod(function):
            yield f"{name}.{method}", function, inspect.getdoc(function) or ""


def commented_fields(owner: type) -> str:
    """Return the names of the fields of a class that a comment or a string explains."""
    if not is_dataclass(owner):
        return ""
    return " ".join(re.findall(r"^    (\w+):.*(?:#|\n    \"{3})", inspect.getsource(owner), re.MULTILINE))


def unexplained(function: Callable[..., object], documentation: str) -> list[str]:
    """Return the parameters that a docstring does not name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    names = [name for name in parameters if name not in HIDDEN and not name.startswith("_")]
    return [name for name in names if not re.search(rf"\b{re.escape(name)}\b", documentation)]


def test_docstrings_name_every_parameter():
    missing = [
        f"{name}: {', '.join(parameters)}"
        for name, function, documentation in public_callables()
        if (parameters := unexplained(function, documentation))
    ]
    assert not missing, f"{len(missing)} docstrings leave parameters out:\n" + "\n".join(missing)

# SPDX-License-Identifier: Apache-2.0
"""Mojo's own module names on request: `from layout import TileTensor` inside `imports()`, or after `install()`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from .exports import MojoModule, module_names

PACKAGES = ("layout", "std", "max", "buffer")
_HOME = __name__.rpartition(".")[0]
_installed: dict[str, ModuleType] | None = None  # the modules that had the names before `install`
_open_blocks: list[dict[str, ModuleType]] = []  # and before each `imports()` that has not ended


def install() -> None:
    """Let `from layout import ...`, and imports from `std`, `max` and `buffer`, mean Mojo's modules.

    They do until `uninstall()`. Raises an ImportError if another module has one of these names; `imports()` takes
    precedence over it, for a while. To install twice is to install once.

    >>> install()
    >>> from layout.tile_layout import row_major
    >>> row_major[4, 8]()
    Layout((4, 8), (8, 1))
    >>> uninstall()
    """
    global _installed  # noqa: PLW0603  (as global as sys.modules)
    if _installed is not None:
        return
    for name in PACKAGES:
        module = sys.modules.get(name)
        if module is None and find_spec(name) is None:
            continue
        if module is None or not _is_of_dialect(module):
            where = getattr(module, "__file__", None) or getattr(find_spec(name), "origin", None) or "a folder"
            raise ImportError(
                f"cannot install Mojo's {name!r}: another module has that name ({where}); import inside"
                f" 'with tilewright.mojo.imports():', or from {_HOME}.{name}"
            )
    _installed = _replace_modules()


def uninstall() -> None:
    """Undo `install()`: Mojo's module names are unknown again. What was imported stays.

    >>> uninstall()
    """
    global _installed  # noqa: PLW0603  (as global as sys.modules)
    if _installed is not None:
        _restore_modules(_installed)
        _installed = None


@contextmanager
def imports() -> Iterator[None]:
    """Let Mojo's module names be imported inside a `with` block, even if other modules have the same names.

    >>> with imports():
    ...     from layout import TileTensor
    ...     from std.gpu.host import DeviceContext
    >>> TileTensor.__module__
    'tilewright.mojo.layout.tile_tensor'
    """
    _open_blocks.append({name: module for name, module in _replace_modules().items() if not _is_of_dialect(module)})
    try:
        yield
    finally:
        _restore_modules(_open_blocks.pop())
        if _open_blocks or _installed is not None:
            _replace_modules()


def _modules() -> dict[str, ModuleType]:
    """Return Mojo's modules by their names, all of them imported."""
    return {name: import_module(f"{_HOME}.{name}") for name in module_names()}


def _is_of_dialect(module: ModuleType) -> bool:
    return isinstance(module, MojoModule)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def _replace_modules() -> dict[str, ModuleType]:
    """Give Mojo's names to the modules of the dialect; return the modules that had them."""
    modules = _modules()
    before = {name: module for name, module in sys.modules.items() if _is_ours(name)}
    for name in before:
        del sys.modules[name]
    sys.modules.update(modules)
    return before


def _restore_modules(before: dict[str, ModuleType]) -> None:
    for name in [name for name in sys.modules if _is_ours(name)]:
        del sys.modules[name]
    sys.modules.update(before)

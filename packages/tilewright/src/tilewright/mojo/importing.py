# SPDX-License-Identifier: Apache-2.0
"""Mojo's own module names on request: `from layout import TileTensor` inside `imports()`, or after `install()`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages
from types import ModuleType

MODULES = {
    "std.sys.info": "std.sys_info",
    "std.sys.param_env": "std.sys",
    "std.sys.defines": "std.sys",
    "std.utils.index": "std.utils",
    "std.utils.static_tuple": "std.utils",
    "std.utils.coord": "layout.coord",
    "std.utils.numerics": "std.utils_numerics",
    "std.collections.array": "std.collections",
    "std.collections.dict": "std.collections",
    "std.collections.inline_array": "std.collections",
    "std.collections.list": "std.collections",
    "std.collections.optional": "std.collections",
    "std.math.math": "std.math",
    "std.math.constants": "std.math",
    "std.memory.unsafe": "std.memory",
    "std.memory.unsafe_pointer": "std.memory",
    "std.memory.pointer": "std.memory",
    "std.memory.span": "std.memory",
    "std.benchmark.bencher": "std.benchmark",
    "std.benchmark.compiler": "std.benchmark",
    "std.testing.testing": "std.testing",
    "std.gpu.block": "std.gpu.primitives.block",
    "std.gpu.id": "std.gpu.primitives.id",
    "std.gpu.warp": "std.gpu.primitives.warp",
    # The newer name of std.gpu.
    "max.gpu": "std.gpu",
    "max.gpu.globals": "std.gpu.globals",
    "max.gpu.host": "std.gpu.host",
    "max.gpu.host.compile": "std.gpu.host",
    "max.gpu.host.info": "std.gpu.device_info",
    "max.gpu.intrinsics": "std.gpu.intrinsics",
    "max.gpu.memory": "std.gpu.memory",
    "max.gpu.primitives": "std.gpu.primitives",
    "max.gpu.primitives.block": "std.gpu.primitives.block",
    "max.gpu.primitives.cluster": "std.gpu.primitives.cluster",
    "max.gpu.primitives.id": "std.gpu.primitives.id",
    "max.gpu.primitives.warp": "std.gpu.primitives.warp",
    "max.gpu.sync": "std.gpu.sync",
}


def resolve_module(name: str) -> str:
    """Return the name of our module for one of Mojo's, both without `tilewright.mojo.`.

    >>> resolve_module("std.sys.info"), resolve_module("layout.coord")
    ('std.sys_info', 'layout.coord')
    """
    return MODULES.get(name, name)


PACKAGES = ("layout", "std", "max", "buffer")
_HOME = __name__.rpartition(".")[0]
_installed: dict[str, ModuleType] | None = None  # the modules that had the names before `install`
_open_blocks: list[dict[str, ModuleType]] = []  # and before each `imports()` that has not ended


def install() -> None:
    """Let `from layout import ...`, `from std.memory import ...` and those of `max` and `buffer` mean Mojo's modules.

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
    """Return the modules of the dialect by Mojo's names, all of them imported."""
    found: dict[str, ModuleType] = {}
    for name in PACKAGES:
        package = import_module(f"{_HOME}.{name}")
        paths = getattr(package, "__path__", ())
        full_names = [package.__name__, *[each.name for each in walk_packages(paths, f"{package.__name__}.")]]
        found |= {full_name.removeprefix(f"{_HOME}."): import_module(full_name) for full_name in full_names}
    return found | {name: found[place] for name, place in MODULES.items() if _is_ours(name)}


def _is_of_dialect(module: ModuleType) -> bool:
    return module.__name__.startswith(f"{_HOME}.")


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

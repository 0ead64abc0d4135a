# SPDX-License-Identifier: Apache-2.0
"""The ttnn dialect, over simulated chips: with `import tilewright.ttnn as ttnn`, the examples of its documents run.

Nothing here imports ttnn or torch: both can be used beside it in one process.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import *
    from .creation import *
    from .devices import *
    from .files import *
    from .operations import *
    from .strict_rules import *
    from .tensor import *
    from .types import *
    from .visualizer_report import *

_MODULES = (
    "config", "creation", "devices", "files", "operations", "strict_rules", "tensor", "types", "visualizer_report",
)  # fmt: skip


def _load() -> None:
    """Load all modules, with all their names."""
    names: dict[str, Any] = {"__all__": []}
    for module in [import_module(f".{name}", __name__) for name in _MODULES]:
        names["__all__"] += module.__all__
        names |= {name: getattr(module, name) for name in module.__all__}
    globals().update(names)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if "__all__" not in globals():
            _load()
            if name in globals():
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __getattr__("__all__") if "__all__" not in globals() else globals()["__all__"]

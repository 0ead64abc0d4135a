# SPDX-License-Identifier: Apache-2.0
"""NumPy and ml_dtypes, or where they are missing, as in a browser, a stand-in for what the library uses of them.

Every module takes `np` from here and is written once, against NumPy's interface. Layouts need it only for tables: they
take `lazy_np`, so that importing them does not import NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import MissingPackage

if TYPE_CHECKING:
    import ml_dtypes
    import numpy as lazy_np
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["ArrayLike", "DTypeLike", "NDArray", "has_numpy", "lazy_np", "ml_dtypes", "np", "require_numpy"]


def has_numpy() -> bool:
    """Return whether `np` is NumPy itself.

    >>> import tilewright.ndarrays
    >>> has_numpy() == (tilewright.ndarrays.np.__name__ == "numpy")
    True
    """
    return bool(_import_numpy().__name__ == "numpy")


def require_numpy(what: str) -> None:
    """Raise if NumPy is not installed, which `what` needs.

    >>> require_numpy("a copy between addresses") if has_numpy() else None
    """
    if not has_numpy():
        raise MissingPackage(f"{what} needs NumPy, which is not installed; install numpy and ml_dtypes")


def _import_numpy() -> Any:
    if "np" not in globals():
        try:
            globals()["np"] = import_module("numpy")
        except ModuleNotFoundError as problem:
            if problem.name != "numpy":  # it is installed, and something else is wrong
                raise
            globals()["np"] = import_module(".small_numpy", __package__)
    return globals()["np"]


class _LazyModule:
    """NumPy, imported when one of its names is first used; it remembers names, so that they are found as quickly."""

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = getattr(_import_numpy(), name)
        return value


if not TYPE_CHECKING:
    lazy_np = _LazyModule()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _import_numpy()
    if name == "ml_dtypes":
        value = import_module("ml_dtypes") if has_numpy() else module.ml_dtypes
    elif name != "np":
        value = getattr(import_module("numpy.typing"), name) if has_numpy() else module.ndarray
    else:
        value = module
    globals()[name] = value
    return value

# SPDX-License-Identifier: Apache-2.0
"""NumPy and ml_dtypes, or where they are missing, as in a browser, a stand-in for what the library uses of them.

Every module takes `np` from here and is written once, against NumPy's interface.
"""

from typing import TYPE_CHECKING, Any

from .errors import MissingPackage

if TYPE_CHECKING:
    import ml_dtypes
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike, NDArray
else:
    try:
        import numpy as np
    except ModuleNotFoundError as problem:
        if problem.name != "numpy":  # it is installed, and something else is wrong
            raise
        from . import small_numpy as np

__all__ = ["ArrayLike", "DTypeLike", "NDArray", "has_numpy", "ml_dtypes", "np", "require_numpy"]


def has_numpy() -> bool:
    """Return whether `np` is NumPy itself.

    >>> has_numpy() == (np.__name__ == "numpy")
    True
    """
    return np.__name__ == "numpy"


def require_numpy(what: str) -> None:
    """Raise if NumPy is not installed, which `what` needs.

    >>> require_numpy("a copy between addresses") if has_numpy() else None
    """
    if not has_numpy():
        raise MissingPackage(f"{what} needs NumPy, which is not installed; install numpy and ml_dtypes")


def __getattr__(name: str) -> Any:
    """Return what only some modules need, imported at its first use: `ml_dtypes`, and the names of annotations."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not has_numpy():
        value = getattr(np, "ml_dtypes" if name == "ml_dtypes" else "ndarray")
    elif name == "ml_dtypes":
        import ml_dtypes as value
    else:
        import numpy.typing

        value = getattr(numpy.typing, name)
    globals()[name] = value
    return value

# SPDX-License-Identifier: Apache-2.0
"""NumPy and ml_dtypes, or where they are missing, as in a browser, a stand-in for what the library uses of them.

Every module takes `np` from here and is written once, against NumPy's interface.
"""

from typing import TYPE_CHECKING, Any

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

__all__ = ["ArrayLike", "DTypeLike", "NDArray", "ml_dtypes", "np"]


def __getattr__(name: str) -> Any:
    """Return what only some modules need, imported at its first use: `ml_dtypes`, and the names of annotations."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if np.__name__ != "numpy":
        value = getattr(np, "ml_dtypes" if name == "ml_dtypes" else "ndarray")
    elif name == "ml_dtypes":
        import ml_dtypes as value
    else:
        import numpy.typing

        value = getattr(numpy.typing, name)
    globals()[name] = value
    return value

# SPDX-License-Identifier: Apache-2.0
"""A stand-in for NumPy where there is none: the part of it that tilewright uses, in plain Python.

The playground brings it under the name `numpy` where Pyodide's own NumPy could not be fetched. It is written for sizes
that can be drawn, some ten thousand elements. Names, arguments and results are NumPy's.
"""

from collections.abc import Callable
from math import inf, nan
from types import SimpleNamespace
from typing import Any

from tilewright.errors import MissingPackage

from . import array_functions, array_sets, elementwise_functions, float_texts, number_types, type_promotion
from .array_class import ndarray
from .array_strides import broadcast_shapes
from .operators import UFUNCS, NDArrayOperatorsMixin
from .ufuncs import ufunc

__version__ = "2.0.0"  # whose rules for types these are

for _module in (array_functions, array_sets, elementwise_functions, float_texts, number_types, type_promotion):
    _own = {
        name: value for name, value in vars(_module).items() if getattr(value, "__module__", "") == _module.__name__
    }
    globals().update({name: value for name, value in _own.items() if not name.startswith("_")})
globals().update(UFUNCS)


def _as_function(name: str) -> Callable[..., Any]:
    def apply(source: Any, *arguments: Any, **options: Any) -> Any:
        return getattr(ndarray.of(source), name)(*arguments, **options)

    return apply


for _name in (
    *("sum", "prod", "min", "max", "any", "all", "mean", "var"),
    *("argmin", "argmax", "cumsum", "clip", "round", "swapaxes"),
):
    globals()[_name] = _as_function(_name)


def shape(source: Any) -> tuple[int, ...]:
    """Return the shape of a value as an array."""
    return ndarray.of(source).shape


def ndim(source: Any) -> int:
    """Return the number of dimensions of a value as an array."""
    return ndarray.of(source).ndim


def outer(a: Any, b: Any) -> Any:
    """Return the products of all pairs of elements."""
    return UFUNCS["multiply"].outer(ndarray.of(a).reshape(-1), ndarray.of(b).reshape(-1))


class memmap(ndarray):
    """An array over a file, of which there are none here."""

    __slots__ = ()


class _Namespace(SimpleNamespace):
    """A part of NumPy, which says what of it is missing."""

    def __getattr__(self, name: str) -> Any:
        return __getattr__(name)


lib = _Namespace(
    mixins=SimpleNamespace(NDArrayOperatorsMixin=NDArrayOperatorsMixin),
    stride_tricks=SimpleNamespace(as_strided=array_functions.as_strided),
)
ma = _Namespace(getmaskarray=array_functions.getmaskarray)
exceptions = SimpleNamespace(TooHardError=array_sets.TooHardError)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingPackage(f"this needs numpy.{name}, and NumPy is not installed; install numpy and ml_dtypes")

# SPDX-License-Identifier: Apache-2.0
"""The dialect of Khronos TTL: every public name, with its prefix or without, so that a kernel reads line for line the
same: `ttl.TTL_create_shape` is `ttl.create_shape`.

Shapes are (width, height, depth). `&` and `*` disappear, since events and schemes are objects; `TTL_import` is
`ttl.import_`. Where TTL is known to be wrong, the dialect is right: simplex is ordered, planes have their own
spacing, bounds and const are enforced, integers are exact.
"""

from typing import Any

from . import buffering, tensor_functions, tensors, values
from .buffering import *
from .tensor_functions import *
from .tensors import *
from .values import *

globals().update(tensor_functions.FUNCTIONS)

__all__: list[str] = []
__all__ += buffering.__all__
__all__ += tensor_functions.__all__
__all__ += tensors.__all__
__all__ += values.__all__
# the kinds of tensors bring a name for each function
__all__ += sorted(tensor_functions.FUNCTIONS)  # noqa: PLE0605
# `from tilewright.ttl import *` is TTL's #include, and brings the names as TTL writes them
__all__ += ["TTL_" + name.rstrip("_") for name in [*__all__, *tensor_functions.TYPED_NAMES]]


def __getattr__(name: str) -> Any:
    """Return the object behind a name with TTL's prefix, or with an element type in it."""
    short = name.removeprefix("TTL_")
    if short == "import":  # a word of Python
        return buffering.import_
    value = globals().get(short) if short in __all__ else tensor_functions.typed_name(short)
    if value is None:
        raise AttributeError(f"module 'tilewright.ttl' has no attribute {name!r}")
    return value

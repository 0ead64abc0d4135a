# SPDX-License-Identifier: Apache-2.0
"""Values from and to other libraries: whatever holds numbers as an array, and an array as a DLPack capsule."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .dlpack import from_dlpack
from .exchange import tensor_in

Array = np.ndarray[Any, Any]
# the DLPack type code of formats that NumPy cannot export, and integers of the same size that it can
_CODES = {
    np.dtype(ml_dtypes.bfloat16): (4, np.uint16),
    np.dtype(ml_dtypes.float8_e4m3fn): (10, np.uint8),
    np.dtype(ml_dtypes.float8_e5m2): (12, np.uint8),
}


def values_of(thing: Any) -> Array:
    """Return what holds numbers as an array, sharing its memory where that is possible.

    Tensors of torch are recognised by what they can do: their gradient and their device are left behind.

    >>> values_of([[1, 2]]).shape
    (1, 2)
    """
    if isinstance(thing, np.ndarray):
        return thing
    for step in ("detach", "cpu"):
        thing = getattr(thing, step)() if hasattr(thing, step) else thing
    return from_dlpack(thing) if hasattr(thing, "__dlpack__") else np.asarray(thing)


def exported(array: Array, **options: Any) -> Any:
    """Return an array as a DLPack capsule, also in formats that NumPy itself cannot export.

    >>> from tilewright.copying.dlpack import from_dlpack
    >>> class Exporter:
    ...     def __dlpack__(self, **options):
    ...         return exported(np.ones(2, ml_dtypes.bfloat16))
    ...
    ...     def __dlpack_device__(self):
    ...         return 1, 0
    >>> from_dlpack(Exporter()).dtype
    dtype(bfloat16)
    """
    source = array if array.flags.writeable else array.copy()  # not every capsule can say that memory is read-only
    if array.dtype not in _CODES:
        return source.__dlpack__(**options)
    code, bits = _CODES[array.dtype]
    capsule = source.view(bits).__dlpack__()  # exported as integers, and relabelled
    tensor_in(capsule).code = code
    return capsule

# SPDX-License-Identifier: Apache-2.0
"""Positional arguments bound by type, as in ttnn; and arguments of ttnn that are not supported here.

Every function names all keywords that ttnn's has, so that a misspelt one is an error. Of those that mean nothing here,
the ones that only say how ttnn goes about its work (`use_multicore`, `queue_id`, ...) are ignored, and the ones that
would change the result are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import MemoryConfigError


def bind_by_type(kinds: Mapping[str, Any], values: tuple[Any, ...], function: str, **named: Any) -> dict[str, Any]:
    """Return arguments by name: positional `values` by their type, and `named` ones; None is ignored.

    >>> bind_by_type({"count": int, "name": str}, ("x", None), "f", count=5)
    {'count': 5, 'name': 'x'}
    """
    arguments = {name: value for name, value in named.items() if value is not None}
    for value in values:
        if value is None:
            continue
        name = next((name for name, kind in kinds.items() if isinstance(value, kind)), None)
        if name is None:
            raise TypeError(f"{function} takes no {type(value).__name__}, got {value!r}")
        if name in arguments:
            raise TypeError(f"{function} got {name} twice: {arguments[name]!r} and {value!r}; pass one of them")
        arguments[name] = value
    return arguments


def reject_unsupported(**unsupported: Any) -> None:
    """Raise for an argument that ttnn has, that would change the result, and that is not supported here.

    >>> reject_unsupported(mesh_mapper=None, enable_bfloat_opt=False)
    """
    for name, value in unsupported.items():
        if value is not None and value is not False:
            raise MemoryConfigError(f"{name}={value!r:.60} is not supported: {_INSTEAD[name]}")


_ONE_DEVICE = "tensors of this dialect are on one device; leave it out, and see tilewright.files.Tensorbin for meshes"
_INSTEAD = {
    "mesh_mapper": _ONE_DEVICE,
    "mesh_composer": _ONE_DEVICE,
    "mode": _ONE_DEVICE,
    "cache_dump_mode": _ONE_DEVICE,
    "output_tensor": "results are new tensors; leave it out",
    "tile": "to_layout and tilize make tiles of 32 x 32; use from_torch(..., tile=...)",
    "preserve_nan_values": "every NaN of a float32 source becomes one NaN of bfloat16; leave it out",
    "enable_bfloat_opt": "values are rounded as on the host; leave it out",
}

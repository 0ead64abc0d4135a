# SPDX-License-Identifier: Apache-2.0
"""Positional arguments bound by type, as in ttnn; and keywords of ttnn that are not supported here.

Every function accepts all keywords of its ttnn counterpart, so that a misspelt one is an error. Of those without an
effect here, the ones that only tune execution (`use_multicore`, `queue_id`, ...) are ignored, and the ones that would
change the result are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import MemoryConfigError


def bind_by_type(
    types: Mapping[str, type | tuple[type, ...]], values: tuple[object, ...], function: str, **named: object
) -> dict[str, Any]:
    """Return arguments of `function` by name: `named` ones, and `values` matched to `types`; None is ignored.

    >>> bind_by_type({"count": int, "name": str}, ("x", None), "f", count=5)
    {'count': 5, 'name': 'x'}
    """
    arguments = {name: value for name, value in named.items() if value is not None}
    for value in values:
        if value is None:
            continue
        name = next((name for name, accepted in types.items() if isinstance(value, accepted)), None)
        if name is None:
            raise TypeError(
                f"{function} got an unexpected {type(value).__name__}: {value!r}; expected {', '.join(types)}"
            )
        if name in arguments:
            raise TypeError(f"{function} got {name} twice: {arguments[name]!r} and {value!r}; pass one of them")
        arguments[name] = value
    return arguments


def reject_unsupported(**unsupported: object) -> None:
    """Raise if an argument that would change the result, and is not supported here, has a value.

    >>> reject_unsupported(mesh_mapper=None, enable_bfloat_opt=False)
    """
    for name, value in unsupported.items():
        if value is not None and value is not False:
            raise MemoryConfigError(f"{name}={value!r:.60} is not supported: {_REMEDIES[name]}")


_ONE_DEVICE = "tensors are on one device here; omit it, and use tilewright.files.Tensorbin for meshes"
_REMEDIES = {
    "mesh_mapper": _ONE_DEVICE,
    "mesh_composer": _ONE_DEVICE,
    "mode": _ONE_DEVICE,
    "cache_dump_mode": _ONE_DEVICE,
    "output_tensor": "operations return new tensors; omit it",
    "tile": "tilize always makes tiles of 32 x 32; use from_torch(..., tile=...)",
    "preserve_nan_values": "every NaN of a float32 source becomes the same bfloat16 NaN; omit it",
    "enable_bfloat_opt": "values are always rounded as on the host; omit it",
}

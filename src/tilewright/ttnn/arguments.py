# SPDX-License-Identifier: Apache-2.0
"""Arguments as ttnn takes them: in any order, distinguished by their kinds; and those that mean nothing here.

Every function names all keywords that ttnn's has, so that a misspelt one is an error. Of those that mean nothing here,
the ones that only say how ttnn goes about its work (`use_multicore`, `queue_id`, ...) are ignored, and the ones that
would change the result are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import MemoryConfigError


def by_kind(kinds: Mapping[str, Any], given: tuple[Any, ...], what: str, **named: Any) -> dict[str, Any]:
    """Return what was given, by position under the name of its kind or by name; None counts as not given.

    >>> by_kind({"count": int, "name": str}, ("x", None), "a thing", count=5)
    {'count': 5, 'name': 'x'}
    """
    found = {name: value for name, value in named.items() if value is not None}
    for each in given:
        if each is None:
            continue
        name = next((name for name, kind in kinds.items() if isinstance(each, kind)), None)
        if name is None:
            raise TypeError(f"{what} has no place for {type(each).__name__} {each!r}")
        if name in found:
            raise TypeError(f"{what} got {name} twice: {found[name]!r} and {each!r}; give one of them")
        found[name] = each
    return found


def refuse(**unsupported: Any) -> None:
    """Raise for an argument that ttnn has, that would change the result, and that is not supported here.

    >>> refuse(mesh_mapper=None, enable_bfloat_opt=False)
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

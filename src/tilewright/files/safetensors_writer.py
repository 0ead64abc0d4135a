# SPDX-License-Identifier: Apache-2.0
"""`write_safetensors`: arrays to a .safetensors file, bfloat16 and float8 included, without the safetensors package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..atomic import replace_file
from ..errors import FileFormatError
from ..formats import format_of
from .names import check_tensor_name
from .safetensors import KINDS, METADATA, Entry, encode_header

_KIND_OF = {format_.name: kind for kind, (_, format_) in KINDS.items() if format_ is not None}


def write_safetensors(path: Any, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays by name to a file that appears whole, or not at all.

    >>> import tempfile
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_safetensors(f"{folder}/x.safetensors", {"a": np.arange(3, dtype=np.int16)})
    ...     open_tensors(folder)["a"].read().tolist()
    [0, 1, 2]
    """
    entries, values, reached = [], [], 0
    for name, array in arrays.items():
        if check_tensor_name(name) == METADATA:
            raise FileFormatError(f"no tensor can be called {METADATA!r}, which the format keeps for itself")
        found = np.asarray(array)
        found = np.ascontiguousarray(found).reshape(found.shape)  # the former makes vectors of scalars
        plain = found.astype(found.dtype.newbyteorder("<"), copy=False)
        end = reached + plain.nbytes
        entries.append(Entry(name, _KIND_OF[format_of(plain).name], plain.shape, reached, end))
        values.append(plain)
        reached = end
    with replace_file(path) as file:
        file.write(encode_header(entries, dict(metadata or {})))
        for each in values:
            file.write(each.reshape(-1).view(np.uint8).data)

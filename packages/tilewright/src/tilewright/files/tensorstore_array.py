# SPDX-License-Identifier: Apache-2.0
"""Arrays of TensorStore, as arrays that slice: with a NumPy type, chunks, and boxes that are read at once."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .array_name import ArrayName, import_library


def is_tensorstore(array: Any) -> bool:
    """Return whether an object is a TensorStore.

    >>> is_tensorstore(np.zeros(3))
    False
    """
    kind = type(array)
    return kind.__module__.partition(".")[0] == "tensorstore" and kind.__name__ == "TensorStore"


class TensorStoreArray:
    """A TensorStore that is sliced as NumPy arrays are, from coordinate 0.

    `store_key` identifies its storage; `private` says why another process cannot open it.

    Args:
        store: the TensorStore.
    """

    is_parallel = True

    def __init__(self, store: Any) -> None:
        self._given = store  # its identity is that of arrays in memory
        self.store = store[(slice(None),) * store.rank].translate_to[(0,) * store.rank]
        self.shape: tuple[int, ...] = tuple([int(n) for n in store.shape])
        self.dtype: np.dtype[Any] = np.dtype(store.dtype.numpy_dtype)
        layout = store.chunk_layout
        self.chunks = _whole_chunks(layout.read_chunk.shape)
        written = _whole_chunks(layout.write_chunk.shape)
        self.shards = written if written != self.chunks else None
        self.store_key, self.private, self.is_remote = _describe_storage(store)

    def __getitem__(self, box: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.store[box].read().result())

    def __setitem__(self, box: Any, values: Any) -> None:
        self.store[box].write(np.asarray(values, self.dtype)).result()

    def __reduce__(self) -> Any:
        return TensorStoreArray, (self.store,)


def open_tensorstore(name: ArrayName, writing: bool) -> TensorStoreArray:
    """Return the array that a spec in JSON or a URL of TensorStore describes."""
    tensorstore = import_library("tensorstore", name.text)
    try:
        return TensorStoreArray(tensorstore.open(_parse_spec(name), read=True, write=writing).result())
    except ValueError as problem:
        if "NOT_FOUND" in str(problem):
            raise FileNotFoundError(2, "No such file or directory", name.text) from None
        raise


def create_tensorstore(
    name: ArrayName, shape: Sequence[int], dtype: np.dtype[Any], chunks: Sequence[int] | None
) -> TensorStoreArray:
    """Return a new array for a spec in JSON or a URL of TensorStore, in place of what was there."""
    tensorstore = import_library("tensorstore", name.text)
    layout = None if chunks is None else tensorstore.ChunkLayout(chunk_shape=list(chunks))
    options = {"create": True, "delete_existing": True, "shape": list(shape), "dtype": dtype, "chunk_layout": layout}
    store = tensorstore.open(_parse_spec(name), **{key: value for key, value in options.items() if value is not None})
    return TensorStoreArray(store.result())


def _parse_spec(name: ArrayName) -> Any:
    return json.loads(name.path) if name.path.lstrip().startswith("{") else name.path


def _whole_chunks(shape: Any) -> tuple[int, ...] | None:
    extents = tuple([int(n or 0) for n in shape or ()])
    return extents if extents and all(extents) else None


def _describe_storage(store: Any) -> tuple[tuple[Any, ...], str, bool]:
    """Return what identifies the storage of a TensorStore, why it is private to this process, and if it is remote."""
    spec = store.spec().to_json()
    place = spec.get("kvstore", {})
    driver = place.get("driver", spec.get("driver", "")) if isinstance(place, dict) else str(place)
    if driver == "file":
        return ("file", os.path.realpath(place["path"])), "", False
    key = ("tensorstore", json.dumps(place or spec, sort_keys=True))
    if driver in ("memory", "array"):
        return (*key, id(store)), "a TensorStore in the memory of this process", False
    return key, "", True

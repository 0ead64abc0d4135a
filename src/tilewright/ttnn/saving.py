# SPDX-License-Identifier: Apache-2.0
"""Tensors in files: dump, load, and a cache that never returns another tensor than the one asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..copy.foreign import values_of
from ..errors import FileFormatError
from ..files import Tensorbin, read_tensorbin, write_tensorbin
from ..memory import TensorLayout
from ..tensor import Tensor as PlainTensor
from .creation import made
from .door import plain
from .tensor import Tensor

EXTENSION = ".tensorbin"


def dump_tensor(file_name: Any, tensor: Tensor, **_: Any) -> None:
    """Write a tensor to a .tensorbin file, which ttnn can load.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_tensor(f"{folder}/x.tensorbin", Tensor([1, 2], [1, 2]))
    ...     load_tensor(f"{folder}/x.tensorbin").to_list()
    [[1, 2]]
    """
    path, held = _checked(file_name), tensor.plain.from_device()
    if any(held.data_start):
        held = held.settled()  # a file's data begin at the origin
    write_tensorbin(path, Tensorbin(held.spec, held.pages))


def load_tensor(file_name: Any, *, device: Any = None) -> Tensor:
    """Return the tensor of a .tensorbin file, mapped into memory, or on a device.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_tensor(f"{folder}/x.tensorbin", Tensor([1, 2], [1, 2]))
    ...     load_tensor(f"{folder}/x.tensorbin").layout
    TensorLayout.ROW_MAJOR
    """
    tensor = read_tensorbin(_checked(file_name)).tensor()
    return Tensor.around(tensor if device is None else tensor.to_device(device))


def _checked(file_name: Any) -> Path:
    path = Path(file_name)
    if path.suffix != EXTENSION:
        raise FileFormatError(f"{path} must have the extension {EXTENSION}; use {path.with_suffix(EXTENSION)}")
    return path


def as_tensor(
    tensor: Any,
    dtype: Any = None,
    *,
    layout: Any = TensorLayout.ROW_MAJOR,
    device: Any = None,
    memory_config: Any = None,
    cache_file_name: Any = None,
    preprocess: Callable[[Any], Any] | None = None,
    **_: Any,
) -> Tensor:
    """Return the tensor of an array, kept in a file from one run to the next.

    The name of the file covers the whole spec and the content, so that a file made for anything else is not used.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = as_tensor(np.zeros((2, 2), np.float32), cache_file_name=f"{folder}/w")
    ...     other = as_tensor(np.ones((2, 3), np.float32), cache_file_name=f"{folder}/w")
    ...     other.to_list(), len(list(Path(folder).iterdir()))
    ([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], 2)
    """
    values = values_of(tensor if preprocess is None else preprocess(tensor))

    def fresh() -> PlainTensor:
        return made(values, dtype, layout, memory=plain(memory_config))

    if cache_file_name is None:
        held = fresh()
    else:
        path = _cache_path(cache_file_name, values, (dtype, layout, plain(memory_config)))
        try:
            held = read_tensorbin(path).tensor()
        except (FileNotFoundError, FileFormatError):
            held = fresh()
            path.parent.mkdir(parents=True, exist_ok=True)
            write_tensorbin(path, Tensorbin(held.spec, held.pages))
    return Tensor.around(held if device is None else held.to_device(device))


def _cache_path(name: Any, values: np.ndarray[Any, Any], asked: tuple[Any, ...]) -> Path:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((values.shape, str(values.dtype), asked)).encode())
    digest.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    base = Path(name)
    return base.with_name(f"{base.name.removesuffix(EXTENSION)}_{digest.hexdigest()}{EXTENSION}")

# SPDX-License-Identifier: Apache-2.0
"""Tensors in files: dump, load, and a cache that is never stale."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..copying.dlpack import as_host_array
from ..errors import FileFormatError
from ..files import Tensorbin, read_tensorbin, write_tensorbin
from ..tensor import Tensor as PlainTensor
from .devices import Device
from .enums import DataType, DataTypeLike, Layout, LayoutLike
from .memory import MemoryConfig
from .tensor import Tensor
from .tensor_values import create_tensor
from .wrapper import reject_unsupported

EXTENSION = ".tensorbin"


def dump_tensor(file_name: str | os.PathLike[str], tensor: Tensor, *, mode: object = None) -> None:
    """Write `tensor` to the .tensorbin file `file_name`, which ttnn can load; `mode` is not supported.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_tensor(f"{folder}/x.tensorbin", Tensor([1, 2], [1, 2]))
    ...     load_tensor(f"{folder}/x.tensorbin").to_list()
    [[1, 2]]
    """
    reject_unsupported(mode=mode)
    path, plain = _validate_path(file_name), tensor.plain.from_device()
    if any(plain.data_start):
        plain = plain.without_extra_padding()  # the data in a file start at the origin
    write_tensorbin(path, Tensorbin(plain.spec, plain.pages))


def load_tensor(file_name: str | os.PathLike[str], *, device: Device | None = None) -> Tensor:
    """Return the tensor in the .tensorbin file `file_name`, mapped into memory, or on `device`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_tensor(f"{folder}/x.tensorbin", Tensor([1, 2], [1, 2]))
    ...     load_tensor(f"{folder}/x.tensorbin").layout
    Layout.ROW_MAJOR
    """
    tensor = read_tensorbin(_validate_path(file_name)).tensor()
    return Tensor.wrap(tensor if device is None else tensor.to_device(device))


def _validate_path(file_name: str | os.PathLike[str]) -> Path:
    path = Path(file_name)
    if path.suffix != EXTENSION:
        raise FileFormatError(
            f"expected a file name that ends in {EXTENSION}, got {path}; use {path.with_suffix(EXTENSION)}"
        )
    return path


def as_tensor(
    tensor: ArrayLike | None,
    dtype: DataTypeLike | None = None,
    *,
    layout: LayoutLike | None = Layout.ROW_MAJOR,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    cache_file_name: str | os.PathLike[str] | None = None,
    preprocess: Callable[[ArrayLike], ArrayLike] | None = None,
    mesh_mapper: object = None,
    cache_dump_mode: object = None,
) -> Tensor:
    """Return an array as a ttnn tensor, cached in a file of the name that ttnn gives it.

    Unlike in ttnn, the file is rewritten if it is damaged or contains another tensor.

    Args:
        tensor: the array; None returns whatever is cached.
        dtype: the data type, by default that of the array or the one ttnn has instead.
        layout: rows or tiles.
        device: the device it goes to, by default the host.
        memory_config: the memory it lies in on a device.
        cache_file_name: the start of the file's name, to which data type and layout are appended; None for no cache.
        preprocess: called with the array first.
        mesh_mapper, cache_dump_mode: not supported.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = as_tensor(np.zeros((2, 2), np.float32), cache_file_name=f"{folder}/w")
    ...     other = as_tensor(np.ones((2, 3), np.float32), cache_file_name=f"{folder}/w")
    ...     other.to_list(), [path.name for path in Path(folder).iterdir()]
    ([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], ['w_dtype_None_layout_ROW_MAJOR.tensorbin'])
    """
    reject_unsupported(mesh_mapper=mesh_mapper, cache_dump_mode=cache_dump_mode)
    path = None if cache_file_name is None else _cache_path(cache_file_name, dtype, layout)
    if tensor is None:
        if path is None:
            raise FileFormatError("as_tensor got neither a tensor nor a cache_file_name; pass one of them")
        plain = read_tensorbin(path).tensor()
    else:
        values = as_host_array(tensor if preprocess is None else preprocess(tensor))
        plain = create_tensor(values, dtype, layout, memory_config=memory_config)
        if path is not None and not _file_matches(path, plain):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_tensorbin(path, Tensorbin(plain.spec, plain.pages))
    return Tensor.wrap(plain if device is None else plain.to_device(device))


def _cache_path(prefix: str | os.PathLike[str], dtype: DataTypeLike | None, layout: LayoutLike | None) -> Path:
    """Return the path of the cache file as ttnn builds it from the arguments of as_tensor."""
    dtype_name = "None" if dtype is None else DataType.of(dtype).name
    layout_name = "None" if layout is None else Layout.of(layout).name
    return Path(f"{os.fspath(prefix)}_dtype_{dtype_name}_layout_{layout_name}{EXTENSION}")


def _file_matches(path: Path, tensor: PlainTensor) -> bool:
    """Return whether the file at `path` contains exactly this tensor: its spec and all of its bytes."""
    try:
        stored = read_tensorbin(path)
    except (FileNotFoundError, FileFormatError):
        return False
    same_spec = len(stored.shards) == 1 and stored.spec == tensor.spec
    return same_spec and np.array_equal(stored.pages(), np.asarray(tensor.pages).reshape(-1).view(np.uint8))

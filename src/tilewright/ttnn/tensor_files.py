# SPDX-License-Identifier: Apache-2.0
"""Tensors in files: dump, load, and a cache that never returns another tensor than the one asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..copying.dlpack import as_host_array
from ..errors import FileFormatError
from ..files import Tensorbin, read_tensorbin, write_tensorbin
from ..memory import PageLayout
from ..tensor import Tensor as PlainTensor
from .arguments import reject_unsupported
from .data_types import DataType, DataTypeLike
from .memory import MemoryConfig
from .tensor import Tensor
from .tensor_creation import create_tensor
from .wrapper import unwrap

EXTENSION = ".tensorbin"


def dump_tensor(file_name: Any, tensor: Tensor, *, mode: Any = None) -> None:
    """Write a tensor to a .tensorbin file, which ttnn can load.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_tensor(f"{folder}/x.tensorbin", Tensor([1, 2], [1, 2]))
    ...     load_tensor(f"{folder}/x.tensorbin").to_list()
    [[1, 2]]
    """
    reject_unsupported(mode=mode)
    path, held = _checked(file_name), tensor.plain.from_device()
    if any(held.data_start):
        held = held.without_extra_padding()  # a file's data begin at the origin
    write_tensorbin(path, Tensorbin(held.spec, held.pages))


def load_tensor(file_name: Any, *, device: Any = None) -> Tensor:
    """Return the tensor of a .tensorbin file, mapped into memory, or on a device.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_tensor(f"{folder}/x.tensorbin", Tensor([1, 2], [1, 2]))
    ...     load_tensor(f"{folder}/x.tensorbin").layout
    PageLayout.ROW_MAJOR
    """
    tensor = read_tensorbin(_checked(file_name)).tensor()
    return Tensor.wrap(tensor if device is None else tensor.to_device(device))


def _checked(file_name: Any) -> Path:
    path = Path(file_name)
    if path.suffix != EXTENSION:
        raise FileFormatError(f"{path} must have the extension {EXTENSION}; use {path.with_suffix(EXTENSION)}")
    return path


def as_tensor(
    tensor: Any,
    dtype: DataTypeLike | None = None,
    *,
    layout: Any = PageLayout.ROW_MAJOR,
    device: Any = None,
    memory_config: MemoryConfig | None = None,
    cache_file_name: Any = None,
    preprocess: Callable[[Any], Any] | None = None,
    mesh_mapper: object = None,
    cache_dump_mode: object = None,
) -> Tensor:
    """Return the tensor of an array, cached in a file under the name that ttnn gives it.

    `cache_file_name` is the start of that name; data type and layout follow. Unlike ttnn's, the file is used only if it
    holds this very tensor, and is made again if it holds another one, or is damaged. Where `tensor` is None, whatever
    is cached under the name is returned.

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
            raise FileFormatError("as_tensor got neither a tensor nor a cache_file_name to find one under; give one")
        held = read_tensorbin(path).tensor()
    else:
        values = as_host_array(tensor if preprocess is None else preprocess(tensor))
        held = create_tensor(values, dtype, layout, memory=unwrap(memory_config))
        if path is not None and not _holds(path, held):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_tensorbin(path, Tensorbin(held.spec, held.pages))
    return Tensor.wrap(held if device is None else held.to_device(device))


def _cache_path(name: Any, dtype: DataTypeLike | None, layout: Any) -> Path:
    """Return the path that ttnn's as_tensor makes of its arguments, of which either may be None."""
    kind = "None" if dtype is None else DataType.of(dtype).name
    pages = "None" if layout is None else PageLayout.of(layout).name
    return Path(f"{name}_dtype_{kind}_layout_{pages}{EXTENSION}")


def _holds(path: Path, tensor: PlainTensor) -> bool:
    """Return whether a file holds a tensor, with its spec and all of its bytes."""
    try:
        found = read_tensorbin(path)
    except (FileNotFoundError, FileFormatError):
        return False
    alone = len(found.shards) == 1 and found.spec == tensor.spec
    return alone and np.array_equal(found.pages(), np.asarray(tensor.pages).reshape(-1).view(np.uint8))

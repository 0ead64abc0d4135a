# SPDX-License-Identifier: Apache-2.0
"""Tensors in files: dump, load, and the cache of `as_tensor`, whose files are ttnn's.

A cached file is used as it is, as in ttnn: neither the array nor `preprocess` is looked at, so that a cache made
elsewhere serves without the weights. Where ttnn would load a file of another shape, type, memory or mesh, or write the
array over a file that it cannot read, the file is refused here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from .._dialect import unwrap
from ..errors import FileFormatError, MemoryConfigError
from ..files import Tensorbin, read_tensorbin, write_tensorbin
from ..memory import Coordinate, Mesh, PageLayout, Topology
from ..memory import TensorSpec as NativeSpec
from ..tensor import Tensor as NativeTensor
from .config import MemoryConfig
from .devices import AnyDevice, MeshParts, ReplicateTensorToMesh, TensorToMesh
from .tensor import Tensor, create_parts, default_format, validate_mapper
from .types import DataType, DataTypeLike, DumpTensorMode, Layout, LayoutLike

__all__ = ["as_tensor", "dump_tensor", "load_tensor"]

EXTENSION = ".tensorbin"


def dump_tensor(
    file_name: str | os.PathLike[str], tensor: Tensor, *, mode: DumpTensorMode = DumpTensorMode.DISTRIBUTED_GATHER
) -> None:
    """Write `tensor`, with all its parts on a mesh, to the .tensorbin file `file_name`, which ttnn can load.

    `mode` is ignored: there is one host, and it has all parts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_tensor(f"{folder}/x.tensorbin", Tensor([1, 2], [1, 2]))
    ...     load_tensor(f"{folder}/x.tensorbin").to_list()
    [[1, 2]]
    """
    _write_parts(_validate_path(file_name), tensor.parts.from_device())


def _write_parts(path: Path, parts: MeshParts) -> None:
    if any(parts.first.data_start):
        parts = parts.map(lambda part: part.without_extra_padding())  # the data in a file start at the origin
    shards = {at: part.pages for at, part in parts.by_device.items()}
    write_tensorbin(path, Tensorbin(parts.first.spec, shards, parts.mesh_shape, parts.topology))


def load_tensor(file_name: str | os.PathLike[str], *, device: AnyDevice | None = None) -> Tensor:
    """Return the tensor in the .tensorbin file `file_name`, mapped into memory, or on `device`.

    A file of one device goes to every device of a mesh; one of a mesh keeps the devices that it names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_tensor(f"{folder}/x.tensorbin", Tensor([1, 2], [1, 2]))
    ...     load_tensor(f"{folder}/x.tensorbin").layout
    Layout.ROW_MAJOR
    """
    return _wrap_file(read_tensorbin(_validate_path(file_name)), device)


def _wrap_file(stored: Tensorbin, device: AnyDevice | None) -> Tensor:
    """Return the parts of a file, replicas as one object, on the host or on `device`."""
    tensors: dict[int, NativeTensor] = {}
    parts: dict[Coordinate, NativeTensor] = {}
    for at, pages in stored.shards.items():
        parts[at] = tensors.setdefault(pages.ctypes.data, NativeTensor.from_pages(pages, stored.spec))
    loaded = MeshParts(parts, stored.mesh_shape, stored.topology)
    return Tensor.wrap_parts(loaded if device is None else loaded.to_device(device, None))


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
    device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
    cache_file_name: str | os.PathLike[str] | None = None,
    preprocess: Callable[[ArrayLike], ArrayLike] | None = None,
    mesh_mapper: TensorToMesh | None = None,
    cache_dump_mode: DumpTensorMode = DumpTensorMode.DISTRIBUTED_GATHER,
) -> Tensor:
    """Return an array as a ttnn tensor, cached in a file of the name that ttnn gives it.

    A file that is there is used without looking at the values of the array, as in ttnn. Unlike in ttnn, a file with
    another shape, data type, memory config or mesh than asked for, or a damaged one, is refused, and never overwritten.

    Args:
        tensor: the array; None returns whatever is cached.
        dtype: the data type, by default the array's or the one ttnn has instead.
        layout: rows or tiles.
        device: the device or mesh it goes to, by default the host; it needs a `memory_config`.
        memory_config: the memory it lies in on a device.
        cache_file_name: the start of the file's name, to which data type and layout are appended; None for no cache.
        preprocess: called with the array first, unless it is cached.
        mesh_mapper: how the array is cut for a mesh. `ReplicateTensorToMesh` caches it once, for any mesh.
        cache_dump_mode: ignored: there is one host, and it has all parts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = as_tensor(np.zeros((2, 2), np.float32), cache_file_name=f"{folder}/w")
    ...     print(*[path.name for path in Path(folder).iterdir()])
    ...     as_tensor(np.ones((2, 3), np.float32), cache_file_name=f"{folder}/w")
    Traceback (most recent call last):
        ...
    tilewright.errors.FileFormatError: w_dtype_None_layout_ROW_MAJOR.tensorbin holds shape [2, 2], expected [2, 3]; ...
    """
    if device is not None and memory_config is None:
        raise MemoryConfigError("as_tensor with a device needs a memory_config, such as ttnn.DRAM_MEMORY_CONFIG")
    validate_mapper(mesh_mapper)
    path = None if cache_file_name is None else _cache_path(cache_file_name, dtype, layout)
    cached_mapper = None if isinstance(mesh_mapper, ReplicateTensorToMesh) else mesh_mapper
    if path is not None and (tensor is None or path.is_file()):
        stored = _read_cached(path)
        shape = None
        if tensor is not None and preprocess is None:
            shape = np.shape(tensor)
            dtype = default_format(tensor).name if dtype is None else dtype
        if tensor is None and memory_config is None:
            memory_config = MemoryConfig.wrap(stored.spec.memory)  # whatever is cached
        anything = tensor is None and mesh_mapper is None
        _validate_cached(path.name, stored, shape, dtype, layout, memory_config, cached_mapper, anything)
        return _wrap_file(stored, device)
    if tensor is None:
        raise FileFormatError("as_tensor got neither a tensor nor a cache_file_name; pass one of them")
    values = tensor if preprocess is None else preprocess(tensor)
    mapper = mesh_mapper if path is None else cached_mapper
    parts = create_parts(values, mapper, dtype, layout=layout, memory_config=memory_config)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_parts(path, parts)
    return Tensor.wrap_parts(parts if device is None else parts.to_device(device, None))


def _cache_path(prefix: str | os.PathLike[str], dtype: DataTypeLike | None, layout: LayoutLike | None) -> Path:
    """Return the path of the cache file as ttnn builds it from the arguments of as_tensor."""
    dtype_name = "None" if dtype is None else DataType.of(dtype).name
    layout_name = "None" if layout is None else Layout.of(layout).name
    return Path(f"{os.fspath(prefix)}_dtype_{dtype_name}_layout_{layout_name}{EXTENSION}")


def _read_cached(path: Path) -> Tensorbin:
    try:
        return read_tensorbin(path)
    except FileFormatError as problem:
        raise FileFormatError(f"the cached file cannot be used: {problem}; {_DELETE}") from None


_DELETE = "delete the file to have it written again, or use another cache_file_name"


def _validate_cached(
    name: str,
    stored: Tensorbin,
    shape: Sequence[int] | None,
    dtype: DataTypeLike | None,
    layout: LayoutLike | None,
    memory_config: MemoryConfig | None,
    mapper: TensorToMesh | None,
    any_mesh: bool,
) -> None:
    """Raise unless the file `name` holds the tensor that as_tensor expects; `shape` and `dtype` may be unknown."""

    def expect(what: str, stored: object, expected: object) -> None:
        if stored != expected:
            raise FileFormatError(f"{name} holds {what} {stored}, expected {expected}; {_DELETE}")

    spec, topology = stored.spec, stored.topology
    element = spec.dtype if dtype is None else DataType.of(dtype).format
    pages = spec.page_layout if layout is None else PageLayout.of(layout)
    expect("dtype", spec.dtype, element)
    expect("layout", spec.page_layout, pages)
    part = spec.shape.logical
    whole = topology.global_shape(part) if shape is None else tuple(shape)
    mesh = Mesh(stored.mesh_shape, topology, part)
    if mapper is not None:
        expect("a mesh of", list(stored.mesh_shape), list(mapper.mesh_shape))
        mesh = mapper.divide(whole)
    elif not any_mesh:
        mesh = Mesh((1, 1), Topology.replicated([(0, 0)]), whole)
        expect("a mesh of", list(stored.mesh_shape), list(mesh.shape))
    expect("placements", list(topology.placements), list(mesh.topology.placements))
    expect("a distribution of", list(topology.distribution), list(mesh.topology.distribution))
    expect("devices", list(topology.coordinates), list(mesh.topology.coordinates))
    expect("shape", list(part), list(mesh.part_shape))
    expected = NativeSpec(mesh.part_shape, element, pages, None, unwrap(memory_config))
    expect("memory", spec.memory, expected.memory)
    expect("a spec of", spec, expected)

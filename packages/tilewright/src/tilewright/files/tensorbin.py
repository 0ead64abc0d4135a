# SPDX-License-Identifier: Apache-2.0
"""Tensorbin files, memory-mapped to read and written whole: the pages of a tensor, for one device or a mesh of them.

8 bytes    size of the header, little-endian
header     a flatbuffer (see tensorbin_header), zeros at its end up to a multiple of 64 from the start of the file
data       the pages of each device's part as they lie on the host, each part at a multiple of 64
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import IO, Any

import numpy as np

from .._files import as_path, map_file, replace_file
from .._integers import round_up
from ..copying import copy
from ..errors import FileFormatError, LayoutError, TilewrightError
from ..formats import FormatLike
from ..layout import Box
from ..memory import (
    Coordinate,
    DeviceLike,
    Explanation,
    Mesh,
    TensorSpec,
    Topology,
    explain,
    format_devices,
    from_bytes,
    validate_placement,
)
from ..tensor import Tensor
from .source_file import ByteArray, FilePath, SourceFile, as_source_file
from .stored_tensor import StoredPart, StoredTensor
from .tensor_values import SharedElement
from .tensorbin_header import ByteExtent, TensorbinHeader, decode_header, dtype_code, encode_header

SIZE_BYTES = 8
_ALIGNMENT = 64


class Tensorbin:
    """The content of a tensorbin file: a tensor spec, and the pages of each device of a mesh.

    Args:
        spec: the spec of each device's part.
        shards: bytes by mesh coordinate; one array of bytes stands for one device. Those of a file are lazy views.
        mesh_shape: the shape of the mesh.
        topology: how the parts make one tensor; by default all devices hold the same.

    >>> from tilewright.memory import to_bytes
    >>> spec = TensorSpec((2, 3), "float32", "tile")
    >>> tensorbin = Tensorbin(spec, to_bytes([[1, 2, 3], [4, 5, 6]], spec))
    >>> tensorbin.mesh_shape, tensorbin.pages().nbytes, tensorbin.array().tolist()
    ((1, 1), 4096, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    """

    def __init__(
        self, spec: TensorSpec, shards: Any, mesh_shape: Iterable[int] = (1, 1), topology: Topology | None = None
    ) -> None:
        self.spec = spec
        self.mesh_shape = tuple([int(n) for n in mesh_shape])
        parts = shards if isinstance(shards, Mapping) else {(0,) * len(self.mesh_shape): shards}
        self.shards: dict[Coordinate, ByteArray] = {
            tuple(at): self._validate_part(at, part) for at, part in parts.items()
        }
        self.topology = self._replicated_topology() if topology is None else topology

    def _replicated_topology(self) -> Topology:
        """Return the topology of identical devices; raise if they differ."""
        first = next(iter(self.shards), None)
        for at, part in self.shards.items():
            if first is not None and not _are_equal_bytes(part, self.shards[first]):
                raise LayoutError(
                    f"devices {first} and {at} hold different bytes; give a topology, such as"
                    " Topology((2,), (0,), ((0, 0), (0, 1))) for two devices along dimension 0"
                )
        return Topology.replicated(self.shards)

    def _validate_part(self, at: Sequence[int], part: Any) -> ByteArray:
        if len(at) != len(self.mesh_shape) or not all(0 <= c < n for c, n in zip(at, self.mesh_shape, strict=True)):
            raise LayoutError(f"device {tuple(at)} is outside the mesh {list(self.mesh_shape)}")
        data: ByteArray = np.asarray(part) if hasattr(part, "__array__") else np.frombuffer(part, np.uint8)
        if not data.flags.c_contiguous or data.nbytes != self.spec.nbytes:
            raise LayoutError(
                f"expected {self.spec.nbytes} contiguous bytes for device {tuple(at)} ({self.spec}), got {data.nbytes}"
                f" bytes with strides {data.strides}"
            )
        return data.reshape(-1).view(np.uint8)

    @property
    def mesh(self) -> Mesh:
        """Return the mesh: its shape, the topology, and the shape of each part.

        >>> print(Tensorbin(TensorSpec((4,), "uint8"), b"abcd").mesh)
        1 x 1 devices; each holds 4
        """
        return Mesh(self.mesh_shape, self.topology, self.spec.shape.logical)

    def pages(self, device: DeviceLike | None = None) -> ByteArray:
        """Return the bytes of a device's pages, without a copy; `device` is required where devices differ.

        It is a mesh coordinate, or a number in row-major order.

        >>> Tensorbin(TensorSpec((4,), "uint8"), b"abcd").pages((0, 0)).tolist()
        [97, 98, 99, 100]
        """
        if device is None and self._is_replicated:
            return next(iter(self.shards.values()))
        if device is None:
            parts = format_devices(list(self.shards)) or "none"
            raise LayoutError(f"the devices hold different parts; choose one of {parts}, or gather all with array()")
        at = self.mesh.coordinate_of(device)
        if at not in self.shards:
            raise LayoutError(f"device {at} holds no part; choose one of {format_devices(list(self.shards)) or 'none'}")
        return self.shards[at]

    @property
    def _is_replicated(self) -> bool:
        whole = all(cut is None for cut in self.topology.placements)
        return len(self.shards) == 1 or (bool(self.shards) and whole)

    def tensor(self, device: DeviceLike | None = None) -> Tensor:
        """Return a device's part as a tensor that borrows its bytes; `device` is required where devices differ.

        >>> Tensorbin(TensorSpec((4,), "uint8"), b"abcd").tensor().storage_type.name
        'BORROWED_HOST'
        """
        return Tensor.from_pages(self.pages(device), self.spec)

    def array(self, device: DeviceLike | None = None, dtype: FormatLike | None = None) -> np.ndarray[Any, Any]:
        """Return the values of the part of `device`, or of the entire tensor, as `dtype`; block formats become float32.

        >>> halves = {(0, 0): b"ab", (0, 1): b"cd"}
        >>> topology = Topology((2,), (0,), ((0, 0), (0, 1)))
        >>> tensorbin = Tensorbin(TensorSpec((2,), "uint8"), halves, (1, 2), topology)
        >>> tensorbin.array((0, 1)).tolist(), tensorbin.array().tolist()
        ([99, 100], [97, 98, 99, 100])
        """
        if device is not None or self._is_replicated:
            return from_bytes(self.pages(device), self.spec, dtype)
        self.topology.validate_complete()
        shape = self.spec.shape.logical
        parts = (from_bytes(self.pages(at), self.spec, dtype) for at in self.topology.coordinates)
        first = next(parts)
        whole = np.empty(self.topology.global_shape(shape), first.dtype)
        for index, part in enumerate(chain([first], parts)):
            copy(part, whole[self.topology.device_window(index, shape)])
        return whole

    def explain_stored(
        self, coordinate: Sequence[int], base: int | None = None, device: DeviceLike | None = None
    ) -> SharedElement | Explanation:
        """Return where the element at `coordinate` is, on the devices that hold it, from the address `base` on.

        With a `device`, `coordinate` is that in its part.

        >>> Tensorbin(TensorSpec((4,), "uint8", chip="n150"), b"abcd").explain_stored((2,)).where.byte
        2
        """
        at = tuple([int(c) for c in coordinate])
        if device is not None:
            self.mesh.window_of(device)  # which refuses one that the mesh has not
        if device is not None or len(self.shards) == 1:
            return explain(self.spec, at, base)
        return SharedElement.locate(self.mesh, self.spec, at, base)

    def __repr__(self) -> str:
        mesh = "" if len(self.shards) == 1 else f", {len(self.shards)} parts on a mesh of {list(self.mesh_shape)}"
        return f"<Tensorbin {self.spec}{mesh}>"


def read_tensorbin(path: FilePath) -> Tensorbin:
    """Return what the tensorbin file at `path` holds; its data are mapped, not read, while anyone refers to them.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder) / "x.tensorbin", Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     read_tensorbin(Path(folder) / "x.tensorbin").array().tolist()
    [97, 98, 99, 100]
    """
    with as_path(path).open("rb") as file:
        mapped = map_file(file.fileno())
    try:
        return parse_tensorbin(mapped)
    except FileFormatError as problem:
        raise FileFormatError(f"{path}: {problem}") from None


def parse_tensorbin(data: Any) -> Tensorbin:
    """Return what `data`, the bytes of a tensorbin file, hold, as views of them.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_tensorbin_to(file, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    >>> parse_tensorbin(file.getvalue()).spec
    TensorSpec((4,), 'uint8', 'row_major')
    """
    view = memoryview(data)
    header, start = parse_file_start(view, len(view))
    parts: ByteArray = np.frombuffer(view[start:], np.uint8)
    result = {at: parts[offset : offset + length] for at, (offset, length) in header.extents.items()}
    return Tensorbin(header.spec, result, header.mesh_shape, header.topology)


def parse_file_start(data: bytes | memoryview, size: int) -> tuple[TensorbinHeader, int]:
    """Return the validated header of a tensorbin file of `size` bytes that starts with `data`, and the header's end.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_tensorbin_to(file, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    >>> parse_file_start(file.getvalue(), len(file.getvalue()))[0].extents
    {(0, 0): ByteExtent(offset=0, size=4)}
    """
    view = memoryview(data)
    if len(view) < SIZE_BYTES:
        raise FileFormatError(
            f"not a tensorbin file: {len(view)} bytes are too few for the {SIZE_BYTES}-byte header size"
        )
    header_size = int.from_bytes(view[:SIZE_BYTES], "little")
    if header_size % SIZE_BYTES or header_size > size - SIZE_BYTES:
        raise FileFormatError(
            f"the header size is {header_size}, expected a multiple of {SIZE_BYTES} of at most {size - SIZE_BYTES}"
        )
    start = SIZE_BYTES + header_size
    try:
        header = decode_header(view[SIZE_BYTES:start])
    except FileFormatError:
        raise
    except TilewrightError as problem:  # an impossible shape, tile or sharding
        raise FileFormatError(f"invalid tensor spec in the header: {problem}") from None
    if not header.spec.nbytes:
        raise FileFormatError(f"the header describes {header.spec}, which is empty")
    for at, (offset, length) in header.extents.items():
        if length != header.spec.nbytes:
            raise FileFormatError(
                f"the shard of device {at} has {length} bytes, but {header.spec} takes {header.spec.nbytes}"
            )
        if offset + length > size - start:
            raise FileFormatError(
                f"the shard of device {at} ends at byte {offset + length}, but there are {size - start} bytes of data"
            )
    end = max([offset + length for offset, length in header.extents.values()])
    if end < size - start:
        raise FileFormatError(f"the shards end at byte {end}, but there are {size - start} bytes of data")
    return header, start


def write_tensorbin(path: FilePath, tensorbin: Tensorbin) -> None:
    """Write a tensorbin file at `path`, atomically: an existing file is replaced only on success.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder) / "x.tensorbin", Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     (Path(folder) / "x.tensorbin").stat().st_size % 64
    4
    """
    with replace_file(path) as file:
        write_tensorbin_to(file, tensorbin)


def write_tensorbin_to(file: IO[bytes], tensorbin: Tensorbin) -> None:
    """Write a tensorbin file to an open file.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_tensorbin_to(file, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    >>> file.getvalue()[-4:]
    b'abcd'
    """
    dtype_code(tensorbin.spec.dtype)
    validate_placement(tensorbin.spec)
    if not tensorbin.spec.nbytes or not tensorbin.shards:
        raise LayoutError(
            f"cannot write {tensorbin.spec} on {len(tensorbin.shards)} devices to a tensorbin file: it is empty"
        )
    extents, parts, end = {}, [], 0
    placed: dict[Any, int] = {}  # offsets of parts that several devices share
    replicas = _find_replicas(tensorbin)
    for at, part in tensorbin.shards.items():
        keys = (part.ctypes.data, replicas.get(at, at))
        start = next((placed[key] for key in keys if key in placed), None)
        if start is None:
            start = round_up(end, _ALIGNMENT)
            parts.append((start - end, part))
            end = start + part.nbytes
        placed.update(dict.fromkeys(keys, start))
        extents[at] = ByteExtent(start, part.nbytes)
    file.write(_encode_header_block(TensorbinHeader(tensorbin.spec, tensorbin.mesh_shape, extents, tensorbin.topology)))
    for gap, part in parts:
        file.write(bytes(gap))
        file.write(part.data)


def _find_replicas(tensorbin: Tensorbin) -> dict[Coordinate, Coordinate]:
    """Return, per device, the first device with the same part; raise if their bytes differ."""
    topology, shape = tensorbin.topology, tensorbin.spec.shape.logical
    first: dict[Any, Coordinate] = {}
    result = {}
    for index, at in enumerate(topology.coordinates):
        if at not in tensorbin.shards:
            continue
        window = tuple([(each.start, each.stop) for each in topology.device_window(index, shape)])
        result[at] = first.setdefault(window, at)
        if not _are_equal_bytes(tensorbin.shards[at], tensorbin.shards[result[at]]):
            raise LayoutError(
                f"devices {result[at]} and {at} are replicas but hold different bytes; give both the same, or another"
                " topology"
            )
    return result


def _are_equal_bytes(one: ByteArray, other: ByteArray) -> bool:
    return one.ctypes.data == other.ctypes.data or bool(np.array_equal(one, other))


@lru_cache(maxsize=1024)  # a model has many tensors of few specs
def encode_file_start(spec: TensorSpec, mesh: Mesh | None = None) -> tuple[bytes, int]:
    """Return the bytes before the pages in a tensorbin file, and the distance between the parts of a mesh.

    `mesh` is how devices share the tensor, by default one device. The parts follow each other in the order of
    `mesh.windows()`; the caller validates the placement.

    >>> head, step = encode_file_start(TensorSpec((60, 90), "bfloat8_b"))
    >>> len(head) % 64, step
    (0, 6528)
    """
    dtype_code(spec.dtype)
    if not spec.nbytes:
        raise LayoutError(f"cannot write {spec} to a tensorbin file: it is empty")
    step = round_up(spec.nbytes, _ALIGNMENT)
    if mesh is None:
        mesh = Mesh((1, 1), Topology.replicated([(0, 0)]), spec.shape.logical)
    starts = {device: k * step for k, devices in enumerate(mesh.windows().values()) for device in devices}
    extents = {device: ByteExtent(starts[device], spec.nbytes) for device in mesh.topology.coordinates}
    return _encode_header_block(TensorbinHeader(spec, mesh.shape, extents, mesh.topology)), step


def _encode_header_block(header: TensorbinHeader) -> bytes:
    fields = encode_header(header)
    fields += bytes(-(SIZE_BYTES + len(fields)) % _ALIGNMENT)
    return len(fields).to_bytes(SIZE_BYTES, "little") + fields


_MAX_HEADER_READ = 1 << 26  # for the header of one tensor


def read_tensorbin_tensor(path: FilePath | SourceFile, name: str) -> StoredTensor:
    """Return the tensor of a tensorbin file; the parts of a mesh of devices make one tensor.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright.files import Tensorbin, write_tensorbin
    >>> from tilewright.memory import TensorSpec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     read_tensorbin_tensor(Path(folder, "x.tensorbin"), "x").read().tolist()
    [97, 98, 99, 100]
    """
    file = as_source_file(path)
    header, start = parse_file_start(_read_header_bytes(file), file.size)
    try:
        shape, parts = _device_parts(header, start)
    except FileFormatError:
        raise
    except TilewrightError as problem:
        raise FileFormatError(f"the parts of the mesh do not make a tensor: {problem}") from None
    spec = header.spec
    offsets = [start + extent.offset for extent in header.extents.values()]
    reach = (min(offsets), max(offsets) + spec.nbytes)
    order = tuple(range(len(shape)))
    mesh = Mesh(header.mesh_shape, header.topology, spec.shape.logical) if len(header.extents) > 1 else None
    return StoredTensor(name, spec.dtype.name, shape, spec.dtype, spec, reach, file, spec, parts, order, mesh=mesh)


def _read_header_bytes(file: SourceFile) -> bytes:
    """Return the bytes up to the end of the header, no more: a directory may have hundreds of large files."""
    size = int.from_bytes(file.read(0, min(file.size, SIZE_BYTES)), "little")
    return file.read(0, min(file.size, SIZE_BYTES + size, _MAX_HEADER_READ))


def _device_parts(header: TensorbinHeader, start: int) -> tuple[tuple[int, ...], tuple[StoredPart, ...]]:
    """Return the shape of the entire tensor, and its distinct parts."""
    shape, topology, extents = header.spec.shape.logical, header.topology, header.extents
    if not extents:
        raise FileFormatError("the file has no shards")
    if len(extents) == 1 or all(cut is None for cut in topology.placements):
        first = next(iter(extents.values()))
        return shape, (StoredPart(Box((0,) * len(shape), shape), start + first.offset),)
    topology.validate_complete()
    parts: dict[Box, StoredPart] = {}  # replicas are the same box again
    for index, at in enumerate(topology.coordinates):
        if at not in extents:
            raise FileFormatError(f"the shard of device {at} is missing")
        window = topology.device_window(index, shape)
        box = Box.between(tuple([each.start for each in window]), tuple([each.stop for each in window]))
        parts.setdefault(box, StoredPart(box, start + extents[at].offset))
    return topology.global_shape(shape), tuple(parts.values())

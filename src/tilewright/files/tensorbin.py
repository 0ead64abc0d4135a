# SPDX-License-Identifier: Apache-2.0
"""Tensorbin files, read by memory map and written whole: a tensor's pages, for one device or a mesh of them.

8 bytes    size of the header, little-endian
header     a flatbuffer (see tensorbin_header), zeros at its end up to a multiple of 64 from the start of the file
data       the pages of each device's part as they lie on the host, each part at a multiple of 64
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from ..atomic import replace_file
from ..copying import copy
from ..errors import FileFormatError, LayoutError, TilewrightError
from ..layout import round_up
from ..memory import TensorSpec, from_bytes
from ..memory.placement_rules import validate_placement
from ..tensor import Tensor
from .mesh import Coordinate, Topology
from .tensorbin_header import Extent, Header, decode_header, dtype_code, encode_header

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
SIZE_BYTES = 8
_ALIGNMENT = 64


class Tensorbin:
    """What a tensorbin file holds: a tensor spec, and for each device of a mesh the bytes of its pages.

    `shards` maps mesh coordinates to bytes; those of a file are read-only views of it, read when they are touched.
    One array of bytes is short for one device. Without a topology, all devices hold the same.

    >>> from tilewright.memory import to_bytes
    >>> spec = TensorSpec((2, 3), "float32", "tile")
    >>> held = Tensorbin(spec, to_bytes([[1, 2, 3], [4, 5, 6]], spec))
    >>> held.mesh_shape, held.pages().nbytes, held.array().tolist()
    ((1, 1), 4096, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    """

    def __init__(
        self, spec: TensorSpec, shards: Any, mesh_shape: Any = (1, 1), topology: Topology | None = None
    ) -> None:
        self.spec = spec
        self.mesh_shape = tuple([int(n) for n in mesh_shape])
        parts = shards if isinstance(shards, Mapping) else {(0,) * len(self.mesh_shape): shards}
        self.shards: dict[Coordinate, Bytes] = {tuple(at): self._checked(at, part) for at, part in parts.items()}
        self.topology = self._replicated() if topology is None else topology

    def _replicated(self) -> Topology:
        """Return the topology of devices that all hold the same, or raise if they do not."""
        first = next(iter(self.shards), None)
        for at, part in self.shards.items():
            if first is not None and not _same_bytes(part, self.shards[first]):
                raise LayoutError(
                    f"devices {first} and {at} hold different bytes; give the topology that makes one tensor of them,"
                    " such as Topology((2,), (0,), ((0, 0), (0, 1))) for two along dimension 0"
                )
        return Topology.replicated(self.shards)

    def _checked(self, at: Any, part: Any) -> Bytes:
        if len(at) != len(self.mesh_shape) or not all(0 <= c < n for c, n in zip(at, self.mesh_shape, strict=True)):
            raise LayoutError(f"device {tuple(at)} is outside the mesh {list(self.mesh_shape)}")
        data: Bytes = np.asarray(part) if hasattr(part, "__array__") else np.frombuffer(part, np.uint8)
        if not data.flags.c_contiguous or data.nbytes != self.spec.nbytes:
            raise LayoutError(
                f"the part of device {tuple(at)} has {data.nbytes} bytes with strides {data.strides}, and the pages of"
                f" {self.spec} are {self.spec.nbytes} contiguous bytes"
            )
        return data.reshape(-1).view(np.uint8)

    def pages(self, device: Any = None) -> Bytes:
        """Return the bytes of a device's pages, without a copy; device is needed where they differ.

        >>> Tensorbin(TensorSpec((4,), "uint8"), b"abcd").pages((0, 0)).tolist()
        [97, 98, 99, 100]
        """
        if device is None and self._all_alike:
            return next(iter(self.shards.values()))
        at = None if device is None else tuple(device)
        if at is None or at not in self.shards:
            asked = "the devices hold different parts" if at is None else f"there is no part for device {at}"
            parts = ", ".join(map(str, self.shards)) or "none"
            raise LayoutError(f"{asked}; name one of {parts}, or gather all of them with array()")
        return self.shards[at]

    @property
    def _all_alike(self) -> bool:
        whole = all(cut is None for cut in self.topology.placements)
        return len(self.shards) == 1 or (bool(self.shards) and whole)

    def tensor(self, device: Any = None) -> Tensor:
        """Return a device's part as a tensor that borrows its bytes; device is needed where they differ.

        >>> Tensorbin(TensorSpec((4,), "uint8"), b"abcd").tensor().storage_type.name
        'BORROWED_HOST'
        """
        return Tensor.from_pages(self.pages(device), self.spec)

    def array(self, device: Any = None, dtype: Any = None) -> np.ndarray[Any, Any]:
        """Return the values of a device's part, or of the whole tensor; block formats become float32.

        >>> halves = {(0, 0): b"ab", (0, 1): b"cd"}
        >>> topology = Topology((2,), (0,), ((0, 0), (0, 1)))
        >>> held = Tensorbin(TensorSpec((2,), "uint8"), halves, (1, 2), topology)
        >>> held.array((0, 1)).tolist(), held.array().tolist()
        ([99, 100], [97, 98, 99, 100])
        """
        if device is not None or self._all_alike:
            return from_bytes(self.pages(device), self.spec, dtype)
        self.topology.check_complete()
        shape = self.spec.shape.logical
        parts = (from_bytes(self.pages(at), self.spec, dtype) for at in self.topology.coordinates)
        first = next(parts)
        whole = np.empty(self.topology.shape_of_whole(shape), first.dtype)
        for index, part in enumerate(chain([first], parts)):
            copy(part, whole[self.topology.window(index, shape)])
        return whole

    def __repr__(self) -> str:
        mesh = "" if len(self.shards) == 1 else f", {len(self.shards)} parts on a mesh of {list(self.mesh_shape)}"
        return f"<Tensorbin {self.spec}{mesh}>"


def read_tensorbin(path: Any) -> Tensorbin:
    """Return what a tensorbin file holds; its data are mapped, not read, and stay so while anyone refers to them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder) / "x.tensorbin", Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     read_tensorbin(Path(folder) / "x.tensorbin").array().tolist()
    [97, 98, 99, 100]
    """
    with Path(path).open("rb") as file:
        # an empty file cannot be mapped
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.seek(0, 2) else b""
    try:
        return parse_tensorbin(mapped)
    except FileFormatError as problem:
        raise FileFormatError(f"{path}: {problem}") from None


def parse_tensorbin(data: Any) -> Tensorbin:
    """Return what the bytes of a tensorbin file hold, as views of them.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_to(file, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    >>> parse_tensorbin(file.getvalue()).spec
    TensorSpec((4,), 'uint8', 'row_major')
    """
    view = memoryview(data)
    header, start = parse_start(view, len(view))
    parts: Bytes = np.frombuffer(view[start:], np.uint8)
    found = {at: parts[offset : offset + length] for at, (offset, length) in header.extents.items()}
    return Tensorbin(header.spec, found, header.mesh_shape, header.topology)


def parse_start(data: bytes | memoryview, size: int) -> tuple[Header, int]:
    """Return the checked header of a tensorbin file of so many bytes, of which data are the first, and where it ends.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_to(file, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    >>> parse_start(file.getvalue(), len(file.getvalue()))[0].extents
    {(0, 0): Extent(offset=0, size=4)}
    """
    view = memoryview(data)
    if len(view) < SIZE_BYTES:
        raise FileFormatError(
            f"{len(view)} bytes are no tensorbin file: it starts with the {SIZE_BYTES} bytes of its header's size"
        )
    header_size = int.from_bytes(view[:SIZE_BYTES], "little")
    if header_size % SIZE_BYTES or header_size > size - SIZE_BYTES:
        raise FileFormatError(
            f"the header's size is {header_size}; it must be a multiple of {SIZE_BYTES} and at most"
            f" {size - SIZE_BYTES}, which is what follows"
        )
    start = SIZE_BYTES + header_size
    try:
        header = decode_header(view[SIZE_BYTES:start])
    except FileFormatError:
        raise
    except TilewrightError as problem:  # a shape, tile or sharding that cannot be
        raise FileFormatError(f"the header describes no tensor: {problem}") from None
    if not header.spec.nbytes:
        raise FileFormatError(f"the header describes {header.spec}, which has no bytes; no such file is written")
    for at, (offset, length) in header.extents.items():
        if length != header.spec.nbytes:
            raise FileFormatError(
                f"the shard of device {at} has {length} bytes, and the pages of {header.spec} have {header.spec.nbytes}"
            )
        if offset + length > size - start:
            raise FileFormatError(
                f"the shard of device {at} is {length} bytes at {offset}, and there are {size - start} bytes of data"
            )
    return header, start


def write_tensorbin(path: Any, held: Tensorbin) -> None:
    """Write a tensorbin file; what is at path is replaced when all is written, and stays if anything fails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder) / "x.tensorbin", Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     (Path(folder) / "x.tensorbin").stat().st_size % 64
    4
    """
    with replace_file(path) as file:
        write_to(file, held)


def write_to(file: IO[bytes], held: Tensorbin) -> None:
    """Write a tensorbin file to an open one.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_to(file, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    >>> file.getvalue()[-4:]
    b'abcd'
    """
    dtype_code(held.spec.dtype)
    validate_placement(held.spec)
    if not held.spec.nbytes or not held.shards:
        raise LayoutError(
            f"a tensorbin file cannot be empty, and {held.spec} on {len(held.shards)} devices has no bytes"
        )
    extents, parts, end = {}, [], 0
    placed: dict[Any, int] = {}  # devices that share memory, or are replicas, share a place in the file
    replicas = _replicas(held)
    for at, part in held.shards.items():
        keys = (part.ctypes.data, replicas.get(at, at))
        start = next((placed[key] for key in keys if key in placed), None)
        if start is None:
            start = round_up(end, _ALIGNMENT)
            parts.append((start - end, part))
            end = start + part.nbytes
        placed.update(dict.fromkeys(keys, start))
        extents[at] = Extent(start, part.nbytes)
    file.write(_start_of_file(Header(held.spec, held.mesh_shape, extents, held.topology)))
    for gap, part in parts:
        file.write(bytes(gap))
        file.write(part.data)


def _replicas(held: Tensorbin) -> dict[Coordinate, Coordinate]:
    """Return for each device the first one that holds the same part of the tensor; they must hold the same bytes."""
    topology, shape = held.topology, held.spec.shape.logical
    first: dict[Any, Coordinate] = {}
    found = {}
    for index, at in enumerate(topology.coordinates):
        if at not in held.shards:
            continue
        window = tuple([(each.start, each.stop) for each in topology.window(index, shape)])
        found[at] = first.setdefault(window, at)
        if not _same_bytes(held.shards[at], held.shards[found[at]]):
            raise LayoutError(
                f"devices {found[at]} and {at} are replicas of one part, and hold different bytes; give both the same,"
                " or another topology"
            )
    return found


def _same_bytes(one: Bytes, other: Bytes) -> bool:
    return one.ctypes.data == other.ctypes.data or bool(np.array_equal(one, other))


def start_of_file(spec: TensorSpec) -> bytes:
    """Return all that comes before the pages of a tensor in a tensorbin file for one device.

    >>> len(start_of_file(TensorSpec((60, 90), "bfloat8_b"))) % 64
    0
    """
    dtype_code(spec.dtype)
    validate_placement(spec)
    if not spec.nbytes:
        raise LayoutError(f"a tensorbin file cannot be empty, and {spec} has no bytes")
    devices: dict[Coordinate, Extent] = {(0, 0): Extent(0, spec.nbytes)}
    return _start_of_file(Header(spec, (1, 1), devices, Topology.replicated(devices)))


def _start_of_file(header: Header) -> bytes:
    fields = encode_header(header)
    fields += bytes(-(SIZE_BYTES + len(fields)) % _ALIGNMENT)
    return len(fields).to_bytes(SIZE_BYTES, "little") + fields

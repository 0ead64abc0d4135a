# SPDX-License-Identifier: Apache-2.0
"""The tensor of a tensorbin file, read piece by piece: the whole one, where a mesh of devices shares it."""

from __future__ import annotations

from typing import Any

from ..errors import FileFormatError, TilewrightError
from ..layout.box import Box
from .mesh import Mesh
from .source_file import SourceFile
from .stored_tensor import Part, StoredTensor
from .tensorbin import SIZE_BYTES, parse_start
from .tensorbin_header import Header

_MOST_START_BYTES = 1 << 26  # whose header describes one tensor


def read_tensorbin_tensor(path: Any, name: str) -> StoredTensor:
    """Return the tensor of a tensorbin file; one that a mesh of devices shares is the whole, its parts put together.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright.files import Tensorbin, write_tensorbin
    >>> from tilewright.memory import TensorSpec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     read_tensorbin_tensor(Path(folder, "x.tensorbin"), "x").read().tolist()
    [97, 98, 99, 100]
    """
    file = SourceFile(path)
    header, start = parse_start(_start_of(file), file.size)
    try:
        shape, parts = _mesh_parts(header, start)
    except FileFormatError:
        raise
    except TilewrightError as problem:
        raise FileFormatError(f"the parts of the mesh make no tensor: {problem}") from None
    spec = header.spec
    offsets = [start + each.offset for each in header.extents.values()]
    reach = (min(offsets), max(offsets) + spec.nbytes)
    order = tuple(range(len(shape)))
    mesh = Mesh(header.mesh_shape, header.topology, spec.shape.logical) if len(header.extents) > 1 else None
    return StoredTensor(name, spec.dtype.name, shape, spec.dtype, spec, reach, file, spec, parts, order, mesh=mesh)


def _start_of(file: SourceFile) -> bytes:
    """Return the bytes up to the end of the header, and no more: a directory may have hundreds of large files."""
    size = int.from_bytes(file.read(0, min(file.size, SIZE_BYTES)), "little")
    return file.read(0, min(file.size, SIZE_BYTES + size, _MOST_START_BYTES))


def _mesh_parts(header: Header, start: int) -> tuple[tuple[int, ...], tuple[Part, ...]]:
    """Return the shape of the whole tensor and where its parts are, each once."""
    shape, topology, extents = header.spec.shape.logical, header.topology, header.extents
    if not extents:
        raise FileFormatError("the file has no shard")
    if len(extents) == 1 or all(cut is None for cut in topology.placements):
        first = next(iter(extents.values()))
        return shape, (Part(Box((0,) * len(shape), shape), start + first.offset),)
    topology.check_complete()
    parts: dict[Box, Part] = {}  # replicas are the same box again
    for index, at in enumerate(topology.coordinates):
        if at not in extents:
            raise FileFormatError(f"there is no shard for the device {at}")
        window = topology.window(index, shape)
        box = Box.between(tuple([each.start for each in window]), tuple([each.stop for each in window]))
        parts.setdefault(box, Part(box, start + extents[at].offset))
    return topology.shape_of_whole(shape), tuple(parts.values())

# SPDX-License-Identifier: Apache-2.0
"""`open_tensors`: the tensors of a file or directory, whatever the format, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import FileFormatError, TilewrightError
from .boxes import Box
from .names import check_tensor_name, tensor_name
from .npy import read_npy, read_npz
from .safetensors import read_safetensors
from .source_file import SourceFile
from .stored_tensor import Part, StoredTensor
from .strict_json import parse_json, text_of
from .tensorbin import parse_start
from .tensorbin_header import Header

INDEX = ".safetensors.index.json"
SUFFIXES = (".safetensors", ".npy", ".npz", ".tensorbin")
_MOST_INDEX_BYTES = 100_000_000
_MOST_START_BYTES = 1 << 26  # of a tensorbin file, whose header describes one tensor


class TensorFile(Mapping[str, StoredTensor]):
    """The tensors of a file, of a sharded checkpoint or of a directory: a mapping from names to `StoredTensor`.

    `kind` is "safetensors", "sharded safetensors", "npy", "npz", "tensorbin" or "directory"; `files` are the paths
    that hold the tensors; `metadata` is the free text that safetensors files carry.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(Path(folder, "x.npz"), a=numpy.zeros(3), b=numpy.ones((2, 2)))
    ...     found = open_tensors(Path(folder, "x.npz"))
    ...     found.kind, list(found), found.nbytes, found["b"].read().tolist()
    ('npz', ['a', 'b'], 56, [[1.0, 1.0], [1.0, 1.0]])
    """

    def __init__(
        self, path: Path, kind: str, tensors: Iterable[StoredTensor], metadata: Mapping[str, str] | None = None
    ) -> None:
        self.path, self.kind, self.metadata = path, kind, dict(metadata or {})
        self._tensors: dict[str, StoredTensor] = {}
        for each in tensors:
            check_tensor_name(each.name)
            if each.name in self._tensors:
                places = sorted({str(self._tensors[each.name].path), str(each.path)})
                raise FileFormatError(f"the tensor {each.name!r} is there twice, in {' and '.join(places)}")
            self._tensors[each.name] = each

    def __getitem__(self, name: str) -> StoredTensor:
        try:
            return self._tensors[name]
        except KeyError:
            near = get_close_matches(str(name), list(self._tensors), 1)
            hint = f"; do you mean {near[0]!r}?" if near else f"; it has {len(self)} others"
            raise KeyError(f"{self.path} has no tensor {name!r}{hint}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def files(self) -> list[Path]:
        """Return the paths of the files that hold the tensors.

        >>> import tempfile, numpy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
        ...     [path.name for path in open_tensors(folder).files]
        ['x.npy']
        """
        return list(dict.fromkeys([each.path for each in self._tensors.values()]))

    @property
    def nbytes(self) -> int:
        """Return the bytes of all tensors.

        >>> import tempfile, numpy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
        ...     open_tensors(folder).nbytes
        24
        """
        return sum([each.nbytes for each in self._tensors.values()])

    def __repr__(self) -> str:
        return f"<TensorFile {self.path}: {self.kind}, {len(self)} tensors, {self.nbytes} bytes>"


def open_tensors(path: Any, follow_symlinks: bool = False) -> TensorFile:
    """Return the tensors of a file or directory; headers are read and checked, the data wait until they are asked for.

    `.safetensors` (also sharded, by its index), `.npy`, `.npz`, `.tensorbin`, or a directory of these. In a directory,
    links that lead out of it are refused unless `follow_symlinks`. What is damaged raises a `FileFormatError`.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
    ...     numpy.save(Path(folder, "y.npy"), numpy.ones(2))
    ...     {name: each.shape for name, each in open_tensors(folder).items()}
    {'x': (3,), 'y': (2,)}
    """
    given = Path(path)
    if given.is_dir():
        return _read_directory(given, follow_symlinks)
    if given.name.endswith(INDEX):
        return _named(given, lambda: _read_sharded(given, follow_symlinks))
    if given.suffix not in SUFFIXES:
        given.stat()  # a file that is not there is that, and not one of an unknown kind
        raise FileFormatError(f"{given} has the suffix {given.suffix!r}; known are {', '.join(SUFFIXES)} and *{INDEX}")
    return _named(given, lambda: _read_file(given))


def _named(path: Path, read: Callable[[], TensorFile]) -> TensorFile:
    """Return what is read, and let errors name the file."""
    try:
        return read()
    except FileFormatError as problem:
        text = str(problem)
        raise FileFormatError(text if str(path) in text else f"{path}: {text}") from None


def _read_file(path: Path) -> TensorFile:
    if path.suffix == ".safetensors":
        tensors, metadata = read_safetensors(path)
        return TensorFile(path, "safetensors", tensors, metadata)
    if path.suffix == ".npz":
        return TensorFile(path, "npz", read_npz(path))
    read = read_npy if path.suffix == ".npy" else read_tensorbin_tensor
    return TensorFile(path, path.suffix[1:], [read(path, tensor_name(path.stem))])


def read_tensorbin_tensor(path: Any, name: str) -> StoredTensor:
    """Return the tensor of a tensorbin file; one that a mesh of devices shares is the whole, its parts put together.

    >>> import tempfile
    >>> from tilewright.files import Tensorbin, write_tensorbin
    >>> from tilewright.memory import TensorSpec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     read_tensorbin_tensor(Path(folder, "x.tensorbin"), "x").read().tolist()
    [97, 98, 99, 100]
    """
    file = SourceFile(path)
    header, start = parse_start(file.read(0, min(file.size, _MOST_START_BYTES)), file.size)
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
    return StoredTensor(name, spec.dtype.name, shape, spec.dtype, spec, reach, file, spec, parts, order)


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
        box = Box(tuple([each.start for each in window]), tuple([each.stop for each in window]))
        parts.setdefault(box, Part(box, start + extents[at].offset))
    return topology.shape_of_whole(shape), tuple(parts.values())


def _read_sharded(index: Path, follow_symlinks: bool) -> TensorFile:
    """Return the tensors that the index of a sharded checkpoint lists, each from the file it names."""
    file = SourceFile(index)
    if file.size > _MOST_INDEX_BYTES:
        raise FileFormatError(f"an index of {file.size} bytes is too large; at most {_MOST_INDEX_BYTES} are read")
    found = parse_json(file.read(0, file.size), "the index")
    listed = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(listed, dict):
        raise FileFormatError("the index has no weight_map that maps names to files")
    homes = {text_of(name, "a name"): text_of(home, f"the file of {name!r}") for name, home in listed.items()}
    shards: dict[str, dict[str, StoredTensor]] = {}
    metadata: dict[str, str] = {}
    for home in dict.fromkeys(homes.values()):
        path = _inside(index.parent, home, follow_symlinks)
        if path.suffix != ".safetensors":
            raise FileFormatError(f"the index names {home!r}, which is no .safetensors file")
        try:
            shard = _named(path, lambda path=path: _read_file(path))  # type: ignore[misc]
        except FileNotFoundError:
            raise FileFormatError(f"the index names {home!r}, which is not there") from None
        shards[home] = dict(shard)
        metadata |= shard.metadata
    for name, home in homes.items():
        if name not in shards[home]:
            raise FileFormatError(f"the index says that {name!r} is in {home!r}, and it is not")
    tensors = [shards[home][name] for name, home in homes.items()]
    return TensorFile(index, "sharded safetensors", tensors, metadata)


def _inside(folder: Path, name: str, follow_symlinks: bool) -> Path:
    """Return the path of a file of a directory; a name that leads elsewhere raises."""
    if name != os.path.basename(name) or name in ("", ".", "..") or "\\" in name or "\0" in name:
        raise FileFormatError(f"the file name {name!r} leads out of the directory {folder}")
    path = folder / name
    if not follow_symlinks and path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        raise FileFormatError(
            f"{path} is a link that leads out of the directory, to {path.resolve()}; name the file itself, or say that"
            " links may be followed"
        )
    return path


def _read_directory(folder: Path, follow_symlinks: bool) -> TensorFile:
    names = sorted([each.name for each in folder.iterdir() if not each.name.startswith(".")])
    indices = [name for name in names if name.endswith(INDEX)]
    if len(indices) > 1:
        raise FileFormatError(f"{folder} has the indices {', '.join(indices)}; name one of them")
    if indices:
        index = _inside(folder, indices[0], follow_symlinks)
        return _named(index, lambda: _read_sharded(folder / indices[0], follow_symlinks))
    files = [_inside(folder, name, follow_symlinks) for name in names if Path(name).suffix in SUFFIXES]
    if not files:
        raise FileFormatError(f"{folder} has no files of a known kind: {', '.join(SUFFIXES)}")
    found = [_named(path, lambda path=path: _read_file(path)) for path in files]  # type: ignore[misc]
    metadata = {key: value for each in found for key, value in each.metadata.items()}
    return TensorFile(folder, "directory", [each for file in found for each in file.values()], metadata)

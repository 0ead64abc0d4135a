# SPDX-License-Identifier: Apache-2.0
"""`open_tensors`: the tensors of a file or directory of any format, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import FileFormatError, LayoutError
from ..tables import count_of
from .bank_image import INDEX_SUFFIX, read_bank_image
from .conversion_manifest import MANIFEST_NAME, open_converted_tensors, read_manifest
from .file_names import decode_file_name, find_checkpoint_folder, resolve_inside, validate_tensor_name
from .foreign_files import FOREIGN_SUFFIXES, refuse_foreign_file, refuse_lfs_pointer
from .gguf import SUFFIX as GGUF_SUFFIX
from .gguf import choose_gguf_file, read_gguf
from .mesh import DeviceLike
from .npy import read_npy, read_npz
from .quantization_config import read_quantization_config
from .quantized_checkpoint import join_sections
from .safetensors import read_safetensors
from .source_file import FilePath, SourceFile
from .stored_tensor import StoredTensor
from .strict_json import expect_string, read_json
from .tensorbin import read_tensorbin_tensor

INDEX = ".safetensors.index.json"
SUFFIXES = (".safetensors", ".npy", ".npz", ".tensorbin")
_MAX_INDEX_BYTES = 100_000_000
_CACHE_DEPTHS = ("*/*.tensorbin", "*/*/*.tensorbin", "*/*/*/*.tensorbin")  # of weight caches below their directory
_MAX_NAMED = 4


class TensorFile(Mapping[str, StoredTensor]):
    """The tensors at `path`, a file, sharded checkpoint or directory: a mapping from names to `StoredTensor`.

    `kind` is "safetensors", "sharded safetensors", "npy", "npz", "tensorbin", "gguf", "bank image", "converted" (a
    directory with our manifest) or "directory"; `files` are the paths that hold the tensors; `metadata` is the free
    text that safetensors files carry, or the metadata of a GGUF file.

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
        for tensor in tensors:
            validate_tensor_name(tensor.name)
            if tensor.name in self._tensors:
                places = sorted({str(self._tensors[tensor.name].path), str(tensor.path)})
                raise FileFormatError(f"tensor {tensor.name!r} exists twice, in {' and '.join(places)}")
            self._tensors[tensor.name] = tensor

    def __getitem__(self, name: str) -> StoredTensor:
        try:
            return self._tensors[name]
        except KeyError:
            near = get_close_matches(str(name), list(self._tensors), 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {count_of(len(self), 'other')}"
            raise KeyError(f"{self.path} has no tensor {name!r}{hint}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def on_device(self, device: DeviceLike) -> TensorFile:
        """Return what one device of a mesh holds: its parts, and entire tensors that are not on a mesh.

        `device` is a mesh coordinate, or a number in row-major order.

        >>> import tempfile, numpy, tilewright as tw
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros((64, 96)))
        ...     _ = tw.convert(f"{folder}/x.npy", f"{folder}/out", rules={"x": {"mesh": [1, 2], "cut": 1}})
        ...     open_tensors(f"{folder}/out").on_device((0, 1))["x"].shape
        (64, 48)
        """
        if all(tensor.mesh is None for tensor in self.values()):
            raise LayoutError(f"{self.path} has no tensor on a mesh of devices; leave out device {device}")
        parts = [tensor if tensor.mesh is None else tensor.on_device(device) for tensor in self.values()]
        return TensorFile(self.path, self.kind, parts, self.metadata)

    @property
    def files(self) -> list[Path]:
        """Return the paths of the files that hold the tensors.

        >>> import tempfile, numpy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
        ...     [path.name for path in open_tensors(folder).files]
        ['x.npy']
        """
        return list(dict.fromkeys([part.path for tensor in self._tensors.values() for part in tensor.sections]))

    @property
    def nbytes(self) -> int:
        """Return the bytes of all tensors.

        >>> import tempfile, numpy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
        ...     open_tensors(folder).nbytes
        24
        """
        return sum([_tensor.nbytes for _tensor in self._tensors.values()])

    def __repr__(self) -> str:
        return f"<TensorFile {self.path}: {self.kind}, {count_of(len(self), 'tensor')}, {self.nbytes} bytes>"


def select_names(names: Sequence[str], patterns: str | Iterable[str]) -> list[str]:
    """Return the names that equal or match shell patterns, in the order of the patterns.

    >>> select_names(["wq", "wk", "b"], "w*")
    ['wq', 'wk']
    """
    result: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        hits = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not hits:
            near = get_close_matches(pattern, names, 1)
            such_as = f", such as {names[0]!r}" if names else ""
            hint = f"did you mean {near[0]!r}?" if near else f"there are {len(names)}{such_as}"
            raise LayoutError(f"no tensor matches {pattern!r}; {hint}")
        result += hits
    return list(dict.fromkeys(result))


def open_tensors(path: FilePath, follow_symlinks: bool = False) -> TensorFile:
    """Return the tensors of a file or directory; headers are read and validated, data is read on demand.

    `path` is a `.safetensors` file (or the index of a sharded one), `.npy`, `.npz`, `.tensorbin`, `.gguf` (or any part
    of a split one), the index of a bank image, or a directory of these, such as a model of the Hugging Face hub or one
    of its snapshots, or the directory above a single weight cache. `follow_symlinks` allows links that point outside
    of a directory (or of the hub's model). Damaged files raise a `FileFormatError`.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
    ...     numpy.save(Path(folder, "y.npy"), numpy.ones(2))
    ...     {name: each.shape for name, each in open_tensors(folder).items()}
    {'x': (3,), 'y': (2,)}
    """
    file = Path(path)
    if file.is_dir():
        folder = find_checkpoint_folder(file)
        return _join_quantized(_read_directory(folder, follow_symlinks), folder)
    with _name_file_in_errors(file):
        tensors = _read_sharded(file, follow_symlinks) if file.name.endswith(INDEX) else _read_file(file)
    return _join_quantized(tensors, file.parent)


def _join_quantized(file: TensorFile, folder: Path) -> TensorFile:
    """Return the tensors of a checkpoint in a folder, those that are stored as codes and scales as one each."""
    if any(tensor.spec is not None for tensor in file.values()):  # made by convert, or by ttnn
        return file
    tensors = join_sections(list(file.values()), lambda: read_quantization_config(folder))
    return TensorFile(file.path, file.kind, tensors, file.metadata)


@contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Add the path of a file to errors that do not name it."""
    try:
        yield
    except FileFormatError as problem:
        text = str(problem)
        raise FileFormatError(text if str(path) in text else f"{path}: {text}") from None


def _read_file(path: Path) -> TensorFile:
    if path.name.endswith(INDEX_SUFFIX):
        image = read_bank_image(path, decode_file_name(path.name[: -len(INDEX_SUFFIX)]))
        return TensorFile(path, "bank image", [image])
    if path.suffix not in (*SUFFIXES, GGUF_SUFFIX):
        refuse_foreign_file(path, ", ".join((*SUFFIXES, GGUF_SUFFIX, f"*{INDEX}", f"*{INDEX_SUFFIX}")))
    refuse_lfs_pointer(path)
    if path.suffix == ".safetensors":
        tensors, metadata = read_safetensors(path)
        return TensorFile(path, "safetensors", tensors, metadata)
    if path.suffix == GGUF_SUFFIX:
        tensors, metadata = read_gguf(SourceFile(path))
        return TensorFile(path, "gguf", tensors, metadata)
    if path.suffix == ".npz":
        return TensorFile(path, "npz", read_npz(path))
    read = read_npy if path.suffix == ".npy" else read_tensorbin_tensor
    return TensorFile(path, path.suffix[1:], [read(path, decode_file_name(path.stem))])


def _read_sharded(index: Path, follow_symlinks: bool) -> TensorFile:
    """Return the tensors that the index of a sharded checkpoint lists."""
    result = read_json(index, "the index", _MAX_INDEX_BYTES)
    listed = result.get("weight_map") if isinstance(result, dict) else None
    if not isinstance(listed, dict):
        raise FileFormatError("the index has no weight_map")
    homes = {
        expect_string(name, "a name"): expect_string(home, f"the file of {name!r}") for name, home in listed.items()
    }
    shards: dict[str, dict[str, StoredTensor]] = {}
    metadata: dict[str, str] = {}
    for home in dict.fromkeys(homes.values()):
        path = resolve_inside(index.parent, home, follow_symlinks)
        if path.suffix != ".safetensors":
            raise FileFormatError(f"the index names {home!r}, which is not a .safetensors file")
        try:
            with _name_file_in_errors(path):
                shard = _read_file(path)
        except FileNotFoundError:
            raise FileFormatError(f"the index names {home!r}, which does not exist") from None
        shards[home] = dict(shard)
        metadata |= shard.metadata
    for name, home in homes.items():
        if name not in shards[home]:
            raise FileFormatError(f"the index says that {name!r} is in {home!r}, but it is not")
    tensors = [shards[home][name] for name, home in homes.items()]
    return TensorFile(index, "sharded safetensors", tensors, metadata)


def _read_directory(folder: Path, follow_symlinks: bool) -> TensorFile:
    names = sorted([each.name for each in folder.iterdir() if not each.name.startswith(".")])
    indices = [name for name in names if name.endswith(INDEX)]
    if len(indices) > 1:
        raise FileFormatError(f"{folder} has several indices: {', '.join(indices)}; give one of them")
    if indices:
        index = resolve_inside(folder, indices[0], follow_symlinks)
        with _name_file_in_errors(index):
            return _read_sharded(folder / indices[0], follow_symlinks)
    if MANIFEST_NAME in names:
        path = resolve_inside(folder, MANIFEST_NAME, follow_symlinks)
        with _name_file_in_errors(path):
            manifest = read_manifest(path)
            return TensorFile(folder, "converted", open_converted_tensors(folder, manifest, follow_symlinks))
    known = [name for name in names if Path(name).suffix in SUFFIXES or name.endswith(INDEX_SUFFIX)]
    files = [resolve_inside(folder, name, follow_symlinks) for name in known]
    if not files:
        with _name_file_in_errors(folder):
            model = choose_gguf_file(names)
        if model is not None:
            path = resolve_inside(folder, model, follow_symlinks)
            with _name_file_in_errors(path):
                return _read_file(path)
        for name in names:
            if name.endswith(FOREIGN_SUFFIXES):
                refuse_foreign_file(folder / name, "")
        below = find_caches_below(folder)
        if len(below) == 1:
            return _read_directory(below[0], follow_symlinks)
        choice = f"; choose one of those below it: {', '.join(map(str, below[:_MAX_NAMED]))}" if below else ""
        raise FileFormatError(f"{folder} has no tensor files ({', '.join(SUFFIXES)}){choice}")
    tensors: list[StoredTensor] = []
    metadata: dict[str, str] = {}
    for path in files:
        with _name_file_in_errors(path):
            file = _read_file(path)
        tensors += file.values()
        metadata |= file.metadata
    return TensorFile(folder, "directory", tensors, metadata)


def find_caches_below(folder: Path) -> list[Path]:
    """Return the folders below one that hold tensorbin files, as weight caches do; links are not followed.

    >>> find_caches_below(Path("no such folder"))
    []
    """
    found = {path.parent for depth in _CACHE_DEPTHS for path in folder.glob(depth)}
    return sorted([each for each in found if each.resolve() == folder.resolve() / each.relative_to(folder)])

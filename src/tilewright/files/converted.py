# SPDX-License-Identifier: Apache-2.0
"""The tensors of a directory that a conversion made, as its manifest lists them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import FileFormatError
from ..formats import Format
from ..memory import TensorSpec
from .bank_image import IMAGE_SUFFIX, INDEX_SUFFIX, read_bank_image
from .manifest import Manifest, ManifestEntry
from .names import path_inside
from .npy import read_npy
from .source_file import SourceFile
from .stored_tensor import StoredTensor
from .tensorbin_tensor import read_tensorbin_tensor

_MOST_BYTES = 100_000_000  # of a manifest


def read_manifest(path: Any) -> Manifest:
    """Return the manifest at a path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tilewright.json")
    ...     _ = path.write_bytes(Manifest("npy", "0.0.1").to_bytes())
    ...     read_manifest(path).to
    'npy'
    """
    file = SourceFile(path)
    if file.size > _MOST_BYTES:
        raise FileFormatError(f"a manifest of {file.size} bytes is too large; at most {_MOST_BYTES} are read")
    return Manifest.from_bytes(file.read(0, file.size))


def read_converted(folder: Path, manifest: Manifest, follow_symlinks: bool = False) -> list[StoredTensor]:
    """Return the tensors that a manifest lists, each from the file it names.

    >>> read_converted(Path("nowhere"), Manifest("npy", "0.0.1"))
    []
    """
    found = []
    for name, entry in manifest.entries.items():
        path = path_inside(folder, entry.output.file, follow_symlinks)
        try:
            found.append(converted_tensor(path, name, entry, manifest.to))
        except FileNotFoundError:
            raise FileFormatError(f"the manifest names {entry.output.file!r}, which is not there") from None
        except FileFormatError as problem:
            raise FileFormatError(f"{path}: {problem}") from None
    return found


def converted_tensor(path: Path, name: str, entry: ManifestEntry, to: str) -> StoredTensor:
    """Return a tensor that a conversion made, from its file; what the file says must be what the manifest says.

    >>> try:
    ...     converted_tensor(Path("x.zip"), "x", None, "zip")
    ... except FileFormatError as problem:
    ...     print(problem)
    the manifest is of files of the kind 'zip'; known are tensorbin, npy and banks
    """
    if to == "tensorbin":
        made = read_tensorbin_tensor(path, name)
        kept = (made.host, made.shape) == (without_chip(entry.spec), entry.spec.shape.logical)
    elif to == "npy":
        made = as_format(read_npy(path, name), entry.spec.dtype)
        kept = made.shape == entry.spec.shape.logical
    elif to == "banks":
        made = read_bank_image(path.with_name(path.name[: -len(IMAGE_SUFFIX)] + INDEX_SUFFIX), name)
        kept = made.host == entry.spec
    else:
        raise FileFormatError(f"the manifest is of files of the kind {to!r}; known are tensorbin, npy and banks")
    if not kept:
        raise FileFormatError(f"it holds {made.host}, and the manifest says {entry.spec}")
    return made


def without_chip(spec: TensorSpec) -> TensorSpec:
    """Return a spec without its chip, which tensorbin files do not keep.

    >>> without_chip(TensorSpec((4, 4), chip="n150"))
    TensorSpec((4, 4), 'bfloat16', 'row_major')
    """
    return spec if spec.chip is None else spec.with_chip(None)


def as_format(tensor: StoredTensor, element: Format) -> StoredTensor:
    """Return a dense tensor whose elements mean another format of the same size: NumPy has no name for bfloat16.

    >>> import tempfile, numpy
    >>> from tilewright import format_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(Path(folder, "x.npy"), numpy.array([0x3F80], numpy.uint16))
    ...     as_format(read_npy(Path(folder, "x.npy"), "x"), format_of("bfloat16")).read().astype(float).tolist()
    [1.0]
    """
    if tensor.format == element or tensor.host is None:
        return tensor
    if getattr(element, "itemsize", 0) != tensor.dtype.itemsize:
        raise FileFormatError(f"elements of {tensor.kind} are no {element}")
    return replace(tensor, format=element, host=TensorSpec(tensor.host.shape.logical, element, "row_major"))

# SPDX-License-Identifier: Apache-2.0
"""Names of arrays: paths and URLs of .npy, raw and zarr arrays, datasets of HDF5 files, and TensorStore specs.

a.npy    a.raw    a.zarr    a.zarr/group/x    a.h5::group/x    s3://bucket/a.zarr    https://host/a.npy
tensorstore:file:///data/a.zarr|zarr3:        tensorstore:{"driver": "n5", "kvstore": "file:///data/a"}
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote, urlsplit

from .._files import as_path
from ..errors import FileFormatError
from .source_file import FilePath

RAW_SUFFIXES = (".raw", ".bin", ".dat")

SUFFIXES_OF_KIND = {
    "npy": (".npy",),
    "zarr": (".zarr",),
    "hdf5": (".h5", ".hdf5", ".he5", ".nc"),
    "raw": RAW_SUFFIXES,
}
"""The kinds of arrays by the suffixes of their files; TensorStore has a prefix instead."""

SUFFIXES = tuple([suffix for suffixes in SUFFIXES_OF_KIND.values() for suffix in suffixes])

TENSORSTORE = "tensorstore:"

EXTRAS = {
    "zarr": "zarr",
    "h5py": "hdf5",
    "tensorstore": "tensorstore",
    "fsspec": "remote",
    "obstore": "remote",
}
"""The extra of this package that installs a library."""


@dataclass(frozen=True, slots=True)
class ArrayName:
    """The name of an array, taken apart: its kind, the scheme of a URL, the path or URL, and a dataset in the file.

    >>> parse_array_name("s3://bucket/a.zarr/x").kind, parse_array_name("a.h5::group/x").dataset
    ('zarr', 'group/x')
    """

    text: str
    kind: str
    path: str
    scheme: str = ""
    dataset: str = ""

    @property
    def is_local(self) -> bool:
        """Return whether the array is in a file or folder of this machine."""
        return not self.scheme


def parse_array_name(name: FilePath) -> ArrayName:
    """Return the parts of the name of an array; raise for names of unknown kind.

    >>> parse_array_name("file:///data/a.npy").path
    '/data/a.npy'
    >>> parse_array_name("a.h5")
    Traceback (most recent call last):
        ...
    tilewright.errors.FileFormatError: a.h5 is an HDF5 file; name a dataset in it, as in a.h5::name
    """
    text = os.fspath(name)
    if text.startswith(TENSORSTORE):
        return ArrayName(text, "tensorstore", text.removeprefix(TENSORSTORE))
    path, _, dataset = text.partition("::")
    scheme, path_of_url = "", path
    if "://" in path:
        url = urlsplit(path)
        scheme, path_of_url = url.scheme.lower(), unquote(url.path or url.netloc)
        if scheme in ("file", "local"):
            scheme, path = "", path_of_url
    if not scheme:
        as_path(path)
    kind = _find_kind(path_of_url, bool(scheme))
    if kind is None:
        suffix = PurePath(path_of_url).suffix
        raise FileFormatError(
            f"{text}: unknown suffix {suffix!r} for an array; use one of {', '.join(SUFFIXES)}, or {TENSORSTORE}spec"
        )
    if kind == "hdf5" and not dataset:
        raise FileFormatError(f"{text} is an HDF5 file; name a dataset in it, as in {text}::name")
    if kind != "hdf5" and dataset:
        raise FileFormatError(f"{text}: only HDF5 files have datasets after '::'; write {path}/{dataset} for zarr")
    return ArrayName(text, kind, path, scheme, dataset)


def absolute_name(name: ArrayName) -> str:
    """Return a name that means the same in every folder.

    >>> absolute_name(parse_array_name("/data/a.h5::x"))
    '/data/a.h5::x'
    """
    if not name.is_local or name.kind == "tensorstore":
        return name.text
    return os.path.abspath(name.path) + (f"::{name.dataset}" if name.dataset else "")


def _find_kind(path: str, is_remote: bool) -> str | None:
    suffix = PurePath(path).suffix
    for kind, suffixes in SUFFIXES_OF_KIND.items():
        if suffix in suffixes:
            return kind
    if any(part.endswith(".zarr") for part in PurePath(path).parts):
        return "zarr"
    is_zarr = not is_remote and any(os.path.exists(os.path.join(path, file)) for file in ("zarr.json", ".zarray"))
    return "zarr" if is_zarr else None


def import_library(library: str, name: str) -> Any:
    """Return an optional library; raise with the extra that installs it. `name` is the array that needs it.

    >>> import_library("h5py_", "a.h5::x")
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: a.h5::x needs h5py_, which is not installed; pip install h5py_
    """
    try:
        return import_module(library)
    except ModuleNotFoundError as problem:
        package = library.partition(".")[0]
        if problem.name is not None and problem.name.partition(".")[0] != package:
            raise
        extra = EXTRAS.get(package)
        remedy = f"pip install 'tilewright[{extra}]'" if extra else f"pip install {package}"
        raise ModuleNotFoundError(f"{name} needs {package}, which is not installed; {remedy}", name=package) from None

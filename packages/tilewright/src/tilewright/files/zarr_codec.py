# SPDX-License-Identifier: Apache-2.0
"""`tilewright.blocks`: the codec with which a zarr array of version 3 stores its chunks in a block format, in tiles.

Zarr finds it by its entry point (`zarr.codecs`), so it is enough that tilewright is installed. The stored bytes of a
chunk are those of `tilewright.tilize(chunk, dtype=format)`; the array itself has floating-point numbers. The class is
made on first use, since its base belongs to zarr, which is optional.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from ..copying import tilize, untilize
from ..errors import FormatError
from ..formats import BlockFormat, format_of
from .array_name import import_library

CODEC_NAME = "tilewright.blocks"

_OPTIONS = ("format", "tile", "face", "transpose")
_DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class BlockOptions:
    """The format of the stored blocks, and the tiles, faces and order that they are stored in, as of `tilize`.

    >>> BlockOptions("bfloat8_b").nbytes((64, 64))
    4352
    """

    format: str = "bfloat8_b"
    tile: tuple[int, int] = (32, 32)
    face: tuple[int, int] | None = field(default=None)
    transpose: bool = False

    def nbytes(self, shape: tuple[int, ...]) -> int:
        """Return the bytes of a chunk of a `shape`, padded to whole tiles."""
        return _encoded_size(self, shape)

    def encode(self, chunk: Any) -> np.ndarray[Any, Any]:
        """Return a chunk as bytes of the format, in tiles."""
        values = np.ascontiguousarray(chunk)
        packed = tilize(values, self.tile, self.face, self.transpose, self.format)
        return np.ascontiguousarray(packed).reshape(-1).view(np.uint8)

    def decode(self, data: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return the chunk of a `shape` and `dtype` from its bytes, `data`."""
        packed = np.frombuffer(data, np.uint8)
        values: np.ndarray[Any, Any] = untilize(packed, shape, self.tile, self.face, self.transpose, self.format)
        return values.astype(dtype, copy=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration of the codec, as zarr stores it."""
        face = None if self.face is None else list(self.face)
        return {"format": self.format, "tile": list(self.tile), "face": face, "transpose": self.transpose}


@lru_cache(maxsize=256)
def _encoded_size(options: BlockOptions, shape: tuple[int, ...]) -> int:
    return options.encode(np.zeros(shape, np.float32)).nbytes


def parse_block_options(configuration: Mapping[str, Any]) -> BlockOptions:
    """Return the options of a codec's configuration; raise for anything that `tilize` would not take.

    >>> parse_block_options({"format": "bfloat4_b"}).face
    (16, 16)
    >>> parse_block_options({"format": "float32"})
    Traceback (most recent call last):
        ...
    tilewright.errors.FormatError: tilewright.blocks stores block formats, got float32; use zarr's own codecs for it
    """
    unknown = sorted(set(configuration) - set(_OPTIONS))
    if unknown:
        raise FormatError(f"{CODEC_NAME} has no option {unknown[0]!r}; its options are {', '.join(_OPTIONS)}")
    number_format = format_of(configuration.get("format", "bfloat8_b"))
    if not isinstance(number_format, BlockFormat):
        raise FormatError(f"{CODEC_NAME} stores block formats, got {number_format}; use zarr's own codecs for it")
    tile, face = configuration.get("tile", (32, 32)), configuration.get("face", (16, 16))
    for name, value in (("tile", tile), ("face", face)):
        is_pair = isinstance(value, (list, tuple)) and len(value) == 2
        if not (is_pair and all(type(n) is int and n > 0 for n in value)) and not (name == "face" and value is None):
            raise FormatError(f"{CODEC_NAME}: expected {name} as [height, width], got {value!r}")
    transpose = configuration.get("transpose", False)
    if not isinstance(transpose, bool):
        raise FormatError(f"{CODEC_NAME}: expected transpose as true or false, got {transpose!r}")
    options = BlockOptions(
        number_format.name, (tile[0], tile[1]), None if face is None else (face[0], face[1]), transpose
    )
    options.nbytes((1, 1))  # a tile that the format does not fit is refused here
    return options


def make_block_codec() -> type[Any]:
    """Return the class of the codec, a subclass of zarr's `ArrayBytesCodec`."""
    abc = import_library("zarr.abc.codec", CODEC_NAME)

    class BlockCodec(abc.ArrayBytesCodec):  # type: ignore[misc, name-defined]  # zarr is optional
        """A codec that stores chunks in a block format, in tiles.

        Args:
            format: the name of the block format, such as "bfloat8_b".
            tile, face, transpose: those of `tilize`.
        """

        is_fixed_size = True

        def __init__(self, *, format: str = "bfloat8_b", **options: Any) -> None:  # noqa: A002  (zarr's convention)
            self.options = parse_block_options({"format": format, **options})

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self) and self.options == other.options

        def __hash__(self) -> int:
            return hash(self.options)

        def __repr__(self) -> str:
            options = self.options
            return f"BlockCodec(format={options.format!r}, tile={options.tile}, face={options.face})"

        @classmethod
        def from_dict(cls, data: Mapping[str, Any]) -> BlockCodec:
            configuration = data.get("configuration") or {}
            if not isinstance(configuration, Mapping):
                raise FormatError(f"{CODEC_NAME}: expected a configuration with options, got {configuration!r}")
            return cls(**configuration)

        def to_dict(self) -> dict[str, Any]:
            return {"name": CODEC_NAME, "configuration": self.options.to_dict()}

        def validate(self, *, shape: Any, dtype: Any, chunk_grid: Any) -> None:
            native = np.dtype(dtype.to_native_dtype())
            if native.name not in _DTYPES:
                raise FormatError(f"{CODEC_NAME} stores arrays of {', '.join(_DTYPES)}, got {native}; cast it first")
            if len(shape) < 2:
                raise FormatError(f"{CODEC_NAME} stores matrices in tiles, got shape {tuple(shape)}; add an axis")

        def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
            return self.options.nbytes(tuple(chunk_spec.shape))

        def _encode_sync(self, chunk_array: Any, chunk_spec: Any) -> Any:
            return chunk_spec.prototype.buffer.from_array_like(self.options.encode(chunk_array.as_numpy_array()))

        def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            shape, dtype = tuple(chunk_spec.shape), np.dtype(chunk_spec.dtype.to_native_dtype())
            data, expected = chunk_bytes.as_numpy_array(), self.options.nbytes(shape)
            if data.nbytes != expected:
                raise FormatError(
                    f"a chunk of {shape} in {self.options.format} takes {expected} bytes, got {data.nbytes}; it is"
                    " damaged, or was written with other options"
                )
            return chunk_spec.prototype.nd_buffer.from_numpy_array(self.options.decode(data, shape, dtype))

        async def _encode_single(self, chunk_array: Any, chunk_spec: Any) -> Any:
            return await asyncio.to_thread(self._encode_sync, chunk_array, chunk_spec)

        async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)

    BlockCodec.__qualname__ = "BlockCodec"  # so that it can be pickled
    return BlockCodec


def __getattr__(name: str) -> Any:
    if name != "BlockCodec":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, make_block_codec())

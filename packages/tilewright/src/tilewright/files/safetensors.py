# SPDX-License-Identifier: Apache-2.0
"""Safetensors files: a header that is validated completely before it is used, and mapped data.

8 bytes    size of the header, little-endian
header     JSON: for each name the element type, the shape, and where the bytes are; free text in __metadata__
data       the elements, little-endian, rows first, without gaps
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from .._files import as_path, replace_file, write_file
from .._json import expect_integer, expect_integers, expect_keys, expect_string, parse_json
from ..errors import FileFormatError
from ..formats import SCALAR_FORMATS, ScalarFormat, format_of
from .source import FilePath, SourceFile, as_source_file, validate_tensor_name
from .spec_json import spec_from_json
from .stored_tensor import Content, StoredTensor

MAX_HEADER_BYTES = 100_000_000  # the limit of the format
SIZE_BYTES = 8
METADATA = "__metadata__"
METADATA_KEY = "tilewright"  # the key of the metadata that holds our specs

# The bits of an element, and its number format. Types without a format can only be read as bytes.
KINDS: dict[str, tuple[int, ScalarFormat | None]] = {
    **{
        type_name: (SCALAR_FORMATS[name].bits, SCALAR_FORMATS[name])
        for type_name, name in {
            "BOOL": "bool",
            "U8": "uint8",
            "I8": "int8",
            "U16": "uint16",
            "I16": "int16",
            "U32": "uint32",
            "I32": "int32",
            "U64": "uint64",
            "I64": "int64",
            "F8_E4M3": "float8_e4m3",
            "F8_E5M2": "float8_e5m2",
            "F16": "float16",
            "BF16": "bfloat16",
            "F32": "float32",
            "F64": "float64",
        }.items()
    },
    "F4": (4, None),
    "F6_E2M3": (6, None),
    "F6_E3M2": (6, None),
    "F8_E8M0": (8, None),
    "F8_E4M3FNUZ": (8, None),
    "F8_E5M2FNUZ": (8, None),
    "C64": (64, None),
}


class SafetensorsEntry(NamedTuple):
    """One tensor of a header; start and end count from the first byte of data.

    >>> SafetensorsEntry("x", "F32", (2, 3), 0, 24).shape
    (2, 3)
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    start: int
    end: int


def parse_header(data: bytes | memoryview, data_bytes: int) -> tuple[list[SafetensorsEntry], dict[str, str]]:
    """Return the tensors of a header in the order of their bytes, and its metadata; `data_bytes` follow the header.

    >>> parse_header(b'{"x": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}', 3)
    ([SafetensorsEntry(name='x', kind='U8', shape=(3,), start=0, end=3)], {})
    """
    if bytes(data[:1]) != b"{":
        raise FileFormatError("the header does not start with '{'")
    result = parse_json(data, "the header")
    metadata = result.pop(METADATA, {})
    if not isinstance(metadata, dict):
        raise FileFormatError(f"expected an object as {METADATA}, got {repr(metadata)[:40]}")
    metadata = {
        expect_string(k, "a key of the metadata"): expect_string(v, f"metadata {k!r}") for k, v in metadata.items()
    }
    entries = sorted(_parse_entries(result), key=attrgetter("start", "end"))
    reached = 0
    for entry in entries:
        if entry.start != reached:
            problem = "overlaps the tensor before it" if entry.start < reached else f"leaves a gap from byte {reached}"
            raise FileFormatError(f"{entry.name!r} at bytes {entry.start} to {entry.end} {problem}")
        reached = entry.end
    if reached != data_bytes:
        remedy = "; the file is incomplete: download or copy it again" if data_bytes < reached else ""
        raise FileFormatError(f"the tensors take {reached} bytes, but {data_bytes} follow the header{remedy}")
    return entries, metadata


def _parse_entries(listed: dict[str, Any]) -> list[SafetensorsEntry]:
    """Return the tensors that a header lists: a checkpoint may have 100,000, but of few element types and shapes."""
    sizes: dict[tuple[Any, str], tuple[tuple[int, ...], int]] = {}  # of validated types and shapes
    entries = []
    for name, fields in listed.items():
        try:
            dtype, (start, end) = fields["dtype"], fields["data_offsets"]
            shape, nbytes = sizes[dtype, repr(fields["shape"])]  # by repr, as 2 is not 2.0 or "2"
            is_sound = type(start) is type(end) is int and 0 <= start <= end < 1 << 63 and end - start == nbytes
            if is_sound and len(fields) == 3 and name.isascii():
                entries.append(SafetensorsEntry(name, dtype, shape, start, end))
                continue
        except (TypeError, ValueError, KeyError):
            pass  # a new shape, or a problem, which is stated below
        entry = _parse_entry(name, fields)
        sizes[entry.kind, repr(list(entry.shape))] = entry.shape, entry.end - entry.start
        entries.append(entry)
    return entries


def _parse_entry(name: object, fields: Any) -> SafetensorsEntry:
    name = expect_string(name, "a tensor's name")
    if not isinstance(fields, dict):
        raise FileFormatError(f"expected an object for {name!r}, got {repr(fields)[:40]}")
    missing = {"dtype", "shape", "data_offsets"} - set(fields)
    if missing:
        raise FileFormatError(f"{name!r} has no {', '.join(sorted(missing))}")
    expect_keys(fields, {"dtype", "shape", "data_offsets"}, repr(name))
    dtype = expect_string(fields["dtype"], f"the dtype of {name!r}")
    if dtype not in KINDS:
        raise FileFormatError(f"{name!r} has unknown dtype {dtype[:40]!r}; known dtypes: {', '.join(KINDS)}")
    shape = expect_integers(fields["shape"], f"the shape of {name!r}")
    start, end = _parse_offsets(fields["data_offsets"], name)
    bits = prod(shape) * KINDS[dtype][0]
    if bits % 8 or end - start != bits // 8:
        raise FileFormatError(
            f"{name!r} of shape {list(shape)} and dtype {dtype} takes {bits / 8:g} bytes, but its data_offsets span"
            f" {end - start}"
        )
    return SafetensorsEntry(name, dtype, shape, start, end)


def _parse_offsets(value: object, name: str) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise FileFormatError(f"expected [start, end] as data_offsets of {name!r}, got {repr(value)[:40]}")
    start, end = [expect_integer(n, f"a data offset of {name!r}") for n in value]
    return start, end


def read_safetensors(path: FilePath | SourceFile) -> Content:
    """Return the tensors of a safetensors file, and its metadata; tensors that `convert` wrote have their spec.

    >>> import tempfile
    >>> from pathlib import Path
    >>> header = b'{"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.safetensors")
    ...     _ = path.write_bytes(len(header).to_bytes(8, "little") + header + bytes.fromhex("803f0040"))
    ...     read_safetensors(path)[0][0].read().astype(float).tolist()
    [1.0, 2.0]
    """
    file = as_source_file(path)
    if file.size < SIZE_BYTES:
        raise FileFormatError(f"not a safetensors file: {file.size} bytes are too few for the 8-byte header size")
    size = int.from_bytes(file.read(0, SIZE_BYTES), "little")
    available = file.size - SIZE_BYTES
    if size > min(MAX_HEADER_BYTES, available):
        raise FileFormatError(f"the header size is {size}, expected at most {min(MAX_HEADER_BYTES, available)}")
    entries, metadata = parse_header(file.read(SIZE_BYTES, size), available - size)
    start = SIZE_BYTES + size
    specs = _parse_own_metadata(metadata)
    missing = specs.keys() - {entry.name for entry in entries}
    if missing:
        raise FileFormatError(f"the metadata describes {sorted(missing)[0]!r}, which is not in the file")
    return [_make_tensor(entry, file, start, specs.get(entry.name)) for entry in entries], metadata


def _parse_own_metadata(metadata: dict[str, str]) -> dict[str, Any]:
    """Return the entry of each tensor in tilewright's own metadata."""
    if METADATA_KEY not in metadata:
        return {}
    own = parse_json(metadata[METADATA_KEY], f"the metadata {METADATA_KEY!r}")
    tensors = own.get("tensors") if isinstance(own, dict) else None
    if not isinstance(tensors, dict) or not all(isinstance(tensor, dict) for tensor in tensors.values()):
        raise FileFormatError(f"the metadata {METADATA_KEY!r} lists no tensors")
    return tensors


def _make_tensor(
    entry: SafetensorsEntry, file: SourceFile, data_start: int, metadata: dict[str, Any] | None
) -> StoredTensor:
    if metadata is None:
        element = KINDS[entry.kind][1]
        nbytes = entry.end - entry.start
        return StoredTensor.dense(entry.name, entry.kind, entry.shape, element, file, data_start + entry.start, nbytes)
    spec = spec_from_json(metadata.get("spec"))
    if entry.kind != "U8" or entry.shape != (spec.nbytes,):
        raise FileFormatError(
            f"expected U8 of shape [{spec.nbytes}] for {entry.name!r} ({spec}), got {entry.kind} of shape"
            f" {list(entry.shape)}"
        )
    tensor = StoredTensor.paged(entry.name, entry.kind, spec, file, data_start + entry.start)
    order = metadata.get("order")
    return tensor if order is None else replace(tensor, source_order=expect_integers(order, "the order"))


def encode_header(entries: list[SafetensorsEntry], metadata: dict[str, str]) -> bytes:
    """Return the bytes before the data of a safetensors file: header size and header, padded to 64.

    >>> len(encode_header([SafetensorsEntry("x", "U8", (3,), 0, 3)], {"made": "here"})) % 64
    0
    """
    listed: dict[str, Any] = {METADATA: metadata} if metadata else {}
    for entry in entries:
        listed[entry.name] = {"dtype": entry.kind, "shape": list(entry.shape), "data_offsets": [entry.start, entry.end]}
    header = json.dumps(listed, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-(SIZE_BYTES + len(header)) % 64)
    return len(header).to_bytes(SIZE_BYTES, "little") + header


_TYPE_OF_FORMAT = {format_.name: kind for kind, (_, format_) in KINDS.items() if format_ is not None}


def write_safetensors(path: FilePath, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays by name to a safetensors file at `path`, atomically; `metadata` is free text.

    >>> import tempfile
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_safetensors(f"{folder}/x.safetensors", {"a": np.arange(3, dtype=np.int16)})
    ...     open_tensors(folder)["a"].read().tolist()
    [0, 1, 2]
    """
    entries, values, reached = [], [], 0
    for name, array in arrays.items():
        if validate_tensor_name(name) == METADATA:
            raise FileFormatError(f"a tensor cannot be named {METADATA!r}, which the format reserves")
        result = np.asarray(array)
        result = np.ascontiguousarray(result).reshape(result.shape)  # the former makes vectors of scalars
        little = result.astype(result.dtype.newbyteorder("<"), copy=False)
        end = reached + little.nbytes
        entries.append(SafetensorsEntry(name, _TYPE_OF_FORMAT[format_of(little).name], little.shape, reached, end))
        values.append(little)
        reached = end
    with replace_file(path) as file:
        file.write(encode_header(entries, dict(metadata or {})))
        for value in values:
            file.write(value.reshape(-1).view(np.uint8).data)


# Small checkpoints for examples, the same everywhere: `write_sample_model`, and `write_sample_llama` with a config.

Array = np.ndarray[Any, Any]
WORDS, WIDTH, HIDDEN = 1000, 192, 768  # 1000 is not a multiple of a tile, so there is padding


def sample_model(layers: int = 2) -> dict[str, Array]:
    """Return the weights of a small transformer of `layers` by name: float32 matrices, bfloat16 norms, integers.

    They are drawn from fixed seeds and distributed like real weights: scaled by the matrix width, with a column of
    outliers, which are hard for block formats.

    >>> model = sample_model()
    >>> (
    ...     len(model),
    ...     model["layers.0.mlp.up.weight"].shape,
    ...     round(sum(values.nbytes for values in model.values()) / 1e6, 1),
    ... )
    (18, (768, 192), 4.3)
    """
    result: dict[str, Array] = {
        "embed.positions": np.arange(512, dtype=np.int32),
        "embed.weight": _weight_matrix(WORDS, WIDTH, 0),
    }
    for layer in range(layers):
        base, seed = f"layers.{layer}", 100 * (layer + 1)
        for k, name in enumerate("qkvo"):
            result[f"{base}.attention.{name}.weight"] = _weight_matrix(WIDTH, WIDTH, seed + k)
        result[f"{base}.mlp.up.weight"] = _weight_matrix(HIDDEN, WIDTH, seed + 10)
        result[f"{base}.mlp.down.weight"] = _weight_matrix(WIDTH, HIDDEN, seed + 11)
        result[f"{base}.norm.weight"] = np.linspace(0.5, 1.5, WIDTH, dtype=np.float32).astype(ml_dtypes.bfloat16)
        result[f"{base}.norm.bias"] = np.zeros(WIDTH, ml_dtypes.bfloat16)
    return result


def _weight_matrix(rows: int, columns: int, seed: int) -> Array:
    values = _normal_values(rows * columns, seed).reshape(rows, columns) / np.float32(np.sqrt(columns))
    values[:, seed % columns] *= 12
    return values


def _normal_values(count: int, seed: int) -> Array:
    """Return nearly normal numbers of mean 0 and variance 1, the same in every release of NumPy."""
    bits = np.arange(count, dtype=np.uint64) + np.uint64(seed << 32)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # the mixing of SplitMix64
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    total = sum([(bits >> np.uint64(16 * k) & np.uint64(0xFFFF)).astype(np.float64) for k in range(4)])
    result: Array = ((total / 65535 - 2) * np.sqrt(3)).astype(np.float32)
    return result


def write_sample_model(path: FilePath, layers: int = 2) -> None:
    """Write the sample model of `layers` to a .safetensors file at `path`; its bytes are the same wherever it is made.

    >>> import tempfile
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_model(f"{folder}/model.safetensors")
    ...     len(open_tensors(folder))
    18
    """
    write_safetensors(path, sample_model(layers), {"made by": "tilewright, as a sample"})


LLAMA_CONFIG = {
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "num_hidden_layers": 2,
    "vocab_size": 1003,
    "tie_word_embeddings": False,
}
"""The config.json of the sample Llama: heads that share keys, as in the large ones, and an odd vocabulary."""


def sample_llama() -> dict[str, Array]:
    """Return the weights of a small Llama by their Hugging Face names, as bfloat16.

    >>> model = sample_llama()
    >>> len(model), model["model.layers.0.self_attn.k_proj.weight"].shape
    (21, (128, 256))
    """
    dim, hidden, words, keys = 256, 512, 1003, 128
    shapes = {
        "self_attn.q_proj": (dim, dim),
        "self_attn.k_proj": (keys, dim),
        "self_attn.v_proj": (keys, dim),
        "self_attn.o_proj": (dim, dim),
        "mlp.gate_proj": (hidden, dim),
        "mlp.up_proj": (hidden, dim),
        "mlp.down_proj": (dim, hidden),
    }
    result = {"model.embed_tokens.weight": _weight_matrix(words, dim, 0)}
    for layer in range(2):
        base = f"model.layers.{layer}"
        for seed, (name, shape) in enumerate(shapes.items(), 100 * (layer + 1)):
            result[f"{base}.{name}.weight"] = _weight_matrix(*shape, seed)
        for seed, name in enumerate(("input_layernorm", "post_attention_layernorm"), 100 * layer + 50):
            result[f"{base}.{name}.weight"] = 1 + _normal_values(dim, seed) / 8
    result["model.norm.weight"] = 1 + _normal_values(dim, 3) / 8
    result["lm_head.weight"] = _weight_matrix(words, dim, 1)
    return {name: values.astype(ml_dtypes.bfloat16) for name, values in result.items()}


def write_sample_llama(folder: FilePath) -> None:
    """Write the small Llama to `folder` as Hugging Face does: config.json and model.safetensors.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_llama(f"{folder}/Llama-3.2-1B-Instruct")
    ...     sorted(path.name for path in Path(folder, "Llama-3.2-1B-Instruct").iterdir())
    ['config.json', 'model.safetensors']
    """
    home = as_path(folder)
    home.mkdir(parents=True, exist_ok=True)
    write_file(home / "config.json", json.dumps(LLAMA_CONFIG, indent=2).encode())
    write_safetensors(home / "model.safetensors", sample_llama(), {"format": "pt"})

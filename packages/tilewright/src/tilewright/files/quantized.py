# SPDX-License-Identifier: Apache-2.0
"""Quantised checkpoints: which of their tensors belong together, and the tensors that these make.

Names and shapes decide; the configuration supplies the rest, such as the size of blocks whose last one is short, and
must agree. A tensor that fits no convention is refused when it is read, with the reason, and never read unscaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._integers import ceil_div, round_up
from ..copying import aligned_empty, can_decode, decode_codes
from ..formats import CodeTable, ElementName, ScalarFormat, decode_e8m0, float32, scalar_format_of, uint8, unpack_codes
from ..layout import Box
from ..memory import TensorSpec
from .source import SourceFile, read_json
from .stored_tensor import Array, Decoder, StoredPart, StoredTensor

# `QuantizationConfig`: the configuration of a checkpoint's quantised weights.

_MAX_CONFIG_BYTES = 10_000_000
_CONFIG_FILES = ("config.json", "hf_quant_config.json")


@dataclass(frozen=True, slots=True)
class WeightScheme:
    """The configuration of quantised weights; None for absent fields.

    >>> WeightScheme(bits=8, block=(128, 128)).group is None
    True
    """

    bits: int | None = None
    group: int | None = None
    block: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class QuantizationConfig:
    """The `method` of a checkpoint, and the schemes of its weights.

    >>> QuantizationConfig.of({"quant_method": "fp8", "weight_block_size": [128, 128]}).schemes
    (WeightScheme(bits=None, group=None, block=(128, 128)),)
    """

    method: str
    schemes: tuple[WeightScheme, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> QuantizationConfig:
        """Return the configuration of plain `data`: the `quantization_config` of a config.json, or the like.

        >>> weights = {"num_bits": 4, "type": "int", "group_size": 128}
        >>> QuantizationConfig.of({"config_groups": {"group_0": {"weights": weights}}}).schemes[0].group
        128
        """
        method = data.get("quant_method") or data.get("quant_algo") or "unknown"
        groups = data.get("config_groups")
        listed = list(groups.values()) if isinstance(groups, dict) else []
        described = [group.get("weights") for group in listed if isinstance(group, dict)]
        schemes = [_read_scheme(group) for group in (*described, data) if isinstance(group, dict)]
        return cls(str(method), tuple(dict.fromkeys([scheme for scheme in schemes if scheme != WeightScheme()])))

    def values(self, get: Callable[[WeightScheme], Any]) -> list[Any]:
        """Return the values that schemes have for something, each once.

        >>> QuantizationConfig("fp8", (WeightScheme(bits=4), WeightScheme(bits=8))).values(lambda tensor: tensor.bits)
        [4, 8]
        """
        return [value for value in dict.fromkeys(map(get, self.schemes)) if value is not None]


def _read_scheme(data: Mapping[str, Any]) -> WeightScheme:
    bits = data.get("num_bits", data.get("bits"))
    group = data.get("group_size")
    block = data.get("weight_block_size", data.get("block_structure"))
    if isinstance(block, str):
        block = [int(n) if n.isdecimal() else 0 for n in block.split("x")]
    is_pair = isinstance(block, list) and len(block) == 2 and all(type(n) is int and n > 0 for n in block)
    return WeightScheme(
        bits if type(bits) is int and 1 <= bits <= 8 else None,
        group if type(group) is int and group > 0 else None,
        (block[0], block[1]) if is_pair else None,
    )


def read_quantization_config(open_beside: Callable[[str], SourceFile]) -> QuantizationConfig | None:
    """Return the quantisation in the configuration files of a checkpoint, None if there is none.

    `open_beside` opens a file next to the checkpoint, or raises FileNotFoundError.

    >>> read_quantization_config(lambda name: SourceFile(f"no such folder/{name}")) is None
    True
    """
    for name in _CONFIG_FILES:
        try:
            data = read_json(open_beside(name), name, _MAX_CONFIG_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            continue
        for config in (data, data.get("text_config")) if isinstance(data, dict) else ():
            for key in ("quantization_config", "compression_config", "quantization"):
                if isinstance(config, dict) and isinstance(config.get(key), dict):
                    return QuantizationConfig.of(config[key])
    return None


# `QuantizedTensor`: a tensor of float32 values that are made from stored sections: codes, scales, zero points.

Singles = NDArray[np.float32]
_BYTES = np.arange(256, dtype=np.uint8)


class QuantizedContent(Protocol):
    """The sections of a quantised tensor, and how boxes of it are read."""

    @property
    def name(self) -> str:
        """The name of the format."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """The stored tensors, codes first."""

    def read(self, box: Box, out: Singles | None = None) -> Singles:
        """Return the values in a box, in `out` if that is given and can be used."""

    def locate(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offsets of the code of an element, and of its scale if that is a tensor of its own."""


@dataclass(frozen=True, repr=False)
class QuantizedTensor(StoredTensor):
    """A tensor that is read as float32 from the sections of `content`; its file and byte range are the codes'.

    >>> from tilewright.files.tensor_file import store_arrays
    >>> stored = store_arrays({"w": np.array([[1, 2], [3, 4]], np.int8), "s": np.array([[0.5], [2]], np.float32)})
    >>> content = ScaledCodes("int8", (2, 2), CodeTable("int", 8), as_bytes(stored["w"]), stored["s"], (1, 2))
    >>> QuantizedTensor.of("w", content).read().tolist()
    [[0.5, 1.0], [6.0, 8.0]]
    """

    content: QuantizedContent | None = None

    @classmethod
    def of(cls, name: str, content: QuantizedContent) -> QuantizedTensor:
        """Return the tensor `name` with some `content`.

        >>> from tilewright.files.tensor_file import store_arrays
        >>> stored = store_arrays({"w": np.ones((2, 3), np.uint8), "s": np.ones((1, 1), np.float32)})
        >>> content = ScaledCodes("int8", (2, 3), CodeTable("int", 8), stored["w"], stored["s"], (2, 3))
        >>> QuantizedTensor.of("w", content).format_name
        'int8'
        """
        codes, shape = content.sections[0], content.shape
        part = StoredPart(Box((0,) * len(shape), shape), codes.byte_range[0])
        host = TensorSpec(shape, float32, "row_major")
        order = tuple(range(len(shape)))
        location = (codes.byte_range, codes.file, host, (part,), order)
        return cls(name, content.name, shape, float32, None, *location, content=content)

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """The stored tensors that the values are made from."""
        return (self,) if self.content is None else self.content.sections

    @property
    def format_name(self) -> str:
        """The name of the quantised format."""
        return self.kind

    def file_offsets(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offsets of the code of the element `at` a coordinate, and of its scale."""
        assert self.content is not None
        return self.content.locate(at)

    def read_into(self, box: Box, out: Singles) -> None:
        """Write the values in a `box` to a contiguous array of its shape.

        >>> from tilewright.files.tensor_file import store_arrays
        >>> stored = store_arrays({"w": np.ones((2, 3), np.uint8), "s": np.full((1, 1), 0.5, np.float32)})
        >>> content = ScaledCodes("int8", (2, 3), CodeTable("int", 8), stored["w"], stored["s"], (2, 3))
        >>> out = np.empty((1, 3), np.float32)
        >>> QuantizedTensor.of("w", content).read_into(Box((1, 0), (1, 3)), out)
        >>> out.tolist()
        [[0.5, 0.5, 0.5]]
        """
        assert self.content is not None
        for part, common in self.parts_in(box):
            inside = common.relative_to(part.box.offset)
            values = self.content.read(inside, out if common == box else None)
            if values is not out:
                out[common.relative_to(box.offset).slices] = values

    def _read_part(self, part: StoredPart, box: Box, decode: Decoder) -> Array:
        assert self.content is not None
        return self.content.read(box.relative_to(part.box.offset))


_SMALL_FLOATS = {  # by the names that safetensors, torch and ONNX have for them
    **dict.fromkeys(("F8_E4M3FNUZ", "float8_e4m3fnuz", "float8e4m3fnuz"), "float8_e4m3fnuz"),
    **dict.fromkeys(("F8_E5M2FNUZ", "float8_e5m2fnuz", "float8e5m2fnuz"), "float8_e5m2fnuz"),
    **dict.fromkeys(("F8_E8M0", "float8_e8m0fnu", "float8e8m0"), "float8_e8m0fnu"),
}


@dataclass(frozen=True)
class SmallFloats:
    """The elements of a small float type that is read only, `name`: `codes` are its bytes, each of which is a number.

    >>> from tilewright.files.tensor_file import store_arrays
    >>> stored = store_arrays({"w": np.array([[0x38, 0x80]], np.uint8)})
    >>> SmallFloats("float8_e4m3fnuz", stored["w"]).read(Box((0, 0), (1, 2))).tolist()
    [[0.5, nan]]
    """

    name: str
    codes: StoredTensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.codes.shape

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """The codes."""
        return (self.codes,)

    def read(self, box: Box, out: Singles | None = None) -> Singles:
        """Return the values in a `box`, in `out` if it is given."""
        codes = self.codes.read_stored(box)
        element: ElementName = "float8_e4m3fnuz" if self.name == "float8_e4m3fnuz" else "float8_e5m2fnuz"
        table = decode_e8m0(_BYTES) if self.name == "float8_e8m0fnu" else CodeTable(element, 8).numbers()
        return np.take(table, codes, out=out)

    def locate(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offset of the element `at` a coordinate; it has no scale."""
        return _dense_offset(self.codes, at), None


def decode_small_floats(tensor: StoredTensor) -> StoredTensor:
    """Return a tensor of a small float type without a number format, with values as float32; others as they are.

    >>> from tilewright.files.source import SourceFile
    >>> stored = StoredTensor.dense("w", "F8_E8M0", (4,), None, SourceFile(__file__), 0, 4)
    >>> decode_small_floats(stored).format_name
    'float8_e8m0fnu'
    """
    name = _SMALL_FLOATS.get(tensor.kind) if tensor.format is None and tensor.problem is not None else None
    is_dense = tensor.strides is None and tensor.order == tuple(range(len(tensor.shape)))
    if name is None or not is_dense or type(tensor) is not StoredTensor:
        return tensor
    return QuantizedTensor.of(tensor.name, SmallFloats(name, reshape_stored(tensor, tensor.shape, uint8)))


def as_bytes(tensor: StoredTensor) -> StoredTensor:
    """Return the elements of a contiguous tensor as bytes, element after element along the last dimension.

    >>> from tilewright.files.tensor_file import store_arrays
    >>> as_bytes(store_arrays({"w": np.ones((2, 3), np.int32)})["w"]).shape
    (2, 12)
    """
    rows = prod(tensor.shape[:-1])
    shape = (*tensor.shape[:-1], tensor.nbytes // max(1, rows)) if tensor.shape else (tensor.nbytes,)
    return reshape_stored(tensor, shape, uint8)


def reshape_stored(tensor: StoredTensor, shape: tuple[int, ...], element: ScalarFormat | None = None) -> StoredTensor:
    """Return a contiguous tensor with another shape, of as many elements, or of another format with as many bytes.

    >>> from tilewright.files.tensor_file import store_arrays
    >>> reshape_stored(store_arrays({"s": np.ones(4, np.float32)})["s"], (4, 1)).read().shape
    (4, 1)
    """
    start, end = tensor.byte_range
    own = scalar_format_of(tensor.dtype) if element is None else element
    return StoredTensor.dense(tensor.name, tensor.kind, shape, own, tensor.file, start, end - start)


@dataclass(frozen=True)
class ScaledCodes:
    """Codes of a `table`, in groups of (rows, columns) that share a scale: a value is (number - zero) x scale.

    `codes` are bytes [..., rows, bytes]; `scales` is a grid [..., group rows, group columns] of numbers, or of bytes
    that are exponents (`is_e8m0`); leading dimensions of extent 1 are shared. With a `factor`, scales are multiplied by
    it, or divided by it if it `divides`. `zeros` is a grid like the scales, or holds codes packed along the
    rows of the grid. All arithmetic is in float32, the factor first. `shape_section` holds the shape, where it
    does not follow from the codes.

    >>> from tilewright.files.tensor_file import store_arrays
    >>> stored = store_arrays({"w": np.array([[0x21, 0xF7]], np.uint8), "s": np.array([[128]], np.uint8)})
    >>> content = ScaledCodes("mxfp4", (1, 4), CodeTable("e2m1", 4), stored["w"], stored["s"], (1, 32), is_e8m0=True)
    >>> content.read(Box((0, 1), (1, 3))).tolist()
    [[2.0, 12.0, -12.0]]
    """

    name: str
    shape: tuple[int, ...]
    table: CodeTable
    codes: StoredTensor
    scales: StoredTensor
    group: tuple[int, int]
    is_e8m0: bool = False
    factor: StoredTensor | None = None
    divides: bool = False
    zeros: StoredTensor | None = None
    zeros_are_packed: bool = False
    shape_section: StoredTensor | None = None

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """The codes, the scales and all other sections."""
        others = (self.factor, self.zeros, self.shape_section)
        return (self.codes, self.scales, *[tensor for tensor in others if tensor is not None])

    def read(self, box: Box, out: Singles | None = None) -> Singles:
        """Return the values in a `box`, in `out` where that saves a copy."""
        if box.empty:
            return np.empty(box.shape, np.float32)
        lead, (first, rows), (left, columns) = self._split(box)
        step, bits = self.table.step, self.table.bits
        start = left // step * step
        stop = min(round_up(left + columns, step), self.codes.shape[-1] * 8 // bits)
        window = Box((*lead.offset, first, start * bits // 8), (*lead.shape, rows, ceil_div((stop - start) * bits, 8)))
        packed = self.codes.read_stored(window)
        if self.zeros is None and can_decode(self._code):
            is_whole = out is not None and (start, stop - start) == (left, columns)
            values = self._decode_natively(packed, lead, first, start, stop, out if is_whole else None)
            return values if is_whole else values[..., left - start : left - start + columns]
        numbers = self.table.decode(packed)[..., left - start : left - start + columns]
        down = (first + np.arange(rows)) // self.group[0]
        across = (left + np.arange(columns)) // self.group[1]
        spread = (..., (down - down[0])[:, None], across - across[0])
        corner = (int(down[0]), int(across[0]))
        extent = (int(down[-1]) - corner[0] + 1, int(across[-1]) - corner[1] + 1)
        with np.errstate(all="ignore"):
            if self.zeros is not None:
                numbers = numbers - self._read_zeros(lead, corner, extent)[spread]
            result: Singles = numbers * self._read_scales(lead, corner, extent)[spread]
        return result

    @property
    def _code(self) -> str:
        """The name of the codes in the native library."""
        return "int8" if self.table == CodeTable("int", 8) else self.table.element

    def _decode_natively(
        self, packed: Array, lead: Box, first: int, start: int, stop: int, out: Singles | None
    ) -> Singles:
        """Return the values of packed codes in columns `start` to `stop`, from row `first` on."""
        rows, (high, wide) = packed.shape[-2], self.group
        corner = (first // high, start // wide)
        extent = ((first + rows - 1) // high + 1 - corner[0], (stop - 1) // wide + 1 - corner[1])
        scales = self._read_scales(lead, corner, extent)
        scales = np.broadcast_to(scales, (*lead.shape, *extent))
        inside = (first % high, start % wide)
        values = aligned_empty((*lead.shape, rows, stop - start), np.float32) if out is None else out
        for at in np.ndindex(*lead.shape):
            decode_codes(self._code, packed[at], stop - start, scales[at], self.group, inside, values[at])
        return values

    def _split(self, box: Box) -> tuple[Box, tuple[int, int], tuple[int, int]]:
        """Return the leading dimensions of a box, and the start and extent of its rows and columns."""
        lead = Box(box.offset[:-2], box.shape[:-2])
        return lead, (box.offset[-2], box.shape[-2]), (box.offset[-1], box.shape[-1])

    def _read_scales(self, lead: Box, corner: tuple[int, int], extent: tuple[int, int]) -> Singles:
        """Return the scales of a part of the grid as float32, with the factor in them."""
        stored = _read_grid(self.scales, lead, corner, extent)
        scales = decode_e8m0(stored) if self.is_e8m0 else stored.astype(np.float32)
        if self.factor is None:
            return scales
        factor = _read_grid(self.factor, lead, (0, 0), (1, 1)).astype(np.float32)
        return scales / factor if self.divides else scales * factor

    def _read_zeros(self, lead: Box, corner: tuple[int, int], extent: tuple[int, int]) -> Singles:
        """Return the zero points of a part of the grid."""
        assert self.zeros is not None
        if not self.zeros_are_packed:
            return _read_grid(self.zeros, lead, corner, extent).astype(np.float32)
        grid = self._unpacked_zeros
        inside = tuple([slice(a, a + n) for a, n in zip((*lead.offset, *corner), (*lead.shape, *extent), strict=True)])
        return grid[inside]

    @cached_property
    def _unpacked_zeros(self) -> Singles:
        """Zero points that are packed along the rows of the grid."""
        assert self.zeros is not None
        words = np.ascontiguousarray(np.swapaxes(self.zeros.read(), -1, -2)).view(np.uint8)
        codes = unpack_codes(words.reshape(-1, words.shape[-1]), self.table.bits)
        numbers = self.table.numbers()[codes].reshape(*words.shape[:-1], -1)
        return np.swapaxes(numbers, -1, -2)[..., : ceil_div(self.shape[-2], self.group[0]), :]

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without cached values

    def locate(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offsets of the code and the scale of the element `at` a coordinate."""
        *lead, row, column = at
        code = _dense_offset(self.codes, (*lead, row, column * self.table.bits // 8))
        grid = (*lead, row // self.group[0], column // self.group[1])
        inside = [c if n > 1 else 0 for c, n in zip(grid, self.scales.shape, strict=True)]
        return code, _dense_offset(self.scales, tuple(inside))


def _read_grid(grid: StoredTensor, lead: Box, corner: tuple[int, int], extent: tuple[int, int]) -> Array:
    """Return a part of a grid, whose leading dimensions may have extent 1 to be shared."""
    shared = [n == 1 for n in grid.shape[:-2]]
    offset = [0 if once else at for once, at in zip(shared, lead.offset, strict=True)]
    shape = [1 if once else n for once, n in zip(shared, lead.shape, strict=True)]
    return grid.read_stored(Box((*offset, *corner), (*shape, *extent)))


def _dense_offset(tensor: StoredTensor, at: tuple[int, ...]) -> int:
    """Return the file offset of an element of a contiguous tensor."""
    index = int(np.ravel_multi_index(at, tensor.shape)) if at else 0
    return tensor.byte_range[0] + index * tensor.dtype.itemsize


_DEFAULT_BLOCK = (128, 128)  # of FP8 checkpoints whose configuration is missing
_MX_GROUP, _NVFP4_GROUP = 32, 16
_MIN_GROUP = 16
_E2M1 = CodeTable("e2m1", 4)
_INT8 = CodeTable("int", 8)
_FLOAT8: dict[str, ElementName] = {
    "float8_e4m3": "float8_e4m3",
    "float8_e5m2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}
_E8M0 = "F8_E8M0"
_CODES = (*_FLOAT8, "uint8", "int8", "F4")  # types of tensors that are codes if there are scales beside them
_SCALES = ("float32", "bfloat16", "float16")
_SCALE_SUFFIXES = ("_scale_inv", "_scale")  # of the name of the codes
_SCALE_NAMES = ("scale", "qscale_weight")  # in the place of "weight"
_FOREIGN = {  # what lies beside the codes of conventions that are not read
    "qzeros": "GPTQ or AWQ",
    "g_idx": "GPTQ",
    "absmax": "bitsandbytes",
    "SCB": "bitsandbytes",
    "codebooks": "AQLM",
    "weight_scales": "EETQ",
    "biases": "MLX",
    "bitmask": "sparse compression",
    "_scale": "quanto",
}
_FOREIGN_CODES = (*_CODES, "int32", "uint32")
_FOREIGN_NAMES = ("weight", "codes", "compressed", "_data")


_NOT_READ = "which is not read; use a checkpoint of the model in another format"


class _RefusedError(Exception):
    """The reason why tensors that belong together cannot be read."""


@dataclass(frozen=True, repr=False)
class RefusedTensor(StoredTensor):
    """A quantised tensor that is listed, but cannot be read, for a `reason`.

    >>> from tilewright.files.source import SourceFile
    >>> codes = StoredTensor.dense("w", "U8", (2,), None, SourceFile(__file__), 0, 2)
    >>> RefusedTensor.of("w", codes, "it has no scales").problem
    'it has no scales'
    """

    reason: str = ""

    @classmethod
    def of(cls, name: str, codes: StoredTensor, reason: str) -> RefusedTensor:
        """Return the tensor `name` that would be made from `codes`.

        >>> from tilewright.files.source import SourceFile
        >>> codes = StoredTensor.dense("w_packed", "U8", (2,), None, SourceFile(__file__), 0, 2)
        >>> RefusedTensor.of("w", codes, "it has no scales").format is None
        True
        """
        part = (codes.byte_range, codes.file, None, codes.parts, codes.order)
        return cls(name, codes.kind, codes.shape, None, None, *part, reason=reason)

    @property
    def problem(self) -> str:
        """The reason."""
        return self.reason


class PendingTensor(NamedTuple):
    """A tensor of a checkpoint with very many, which is made from `sections` when it is asked for.

    It is `like` another, already made one in all but its name and its sections; `join` makes it from its codes.

    >>> PendingTensor._fields
    ('name', 'sections', 'like', 'join')
    """

    name: str
    sections: tuple[StoredTensor, ...]
    like: StoredTensor
    join: Callable[[StoredTensor], StoredTensor | None]

    def __getattr__(self, name: str) -> Any:
        """Return its type, its shape and the like."""
        return getattr(self.like, name)

    @property
    def nbytes(self) -> int:
        """The bytes of all sections."""
        return sum([section.byte_range[1] - section.byte_range[0] for section in self.sections])

    @property
    def byte_range(self) -> tuple[int, int]:
        """The start and end of the codes in their file."""
        return self.sections[0].byte_range

    @property
    def path(self) -> Path:
        """The path of the file of the codes."""
        return self.sections[0].path

    def make(self) -> StoredTensor:
        """Return the tensor."""
        result = self.join(self.sections[0])
        assert result is not None  # as of the one that it is like
        return result


def join_sections(
    tensors: Sequence[StoredTensor], read_config: Callable[[], QuantizationConfig | None]
) -> Sequence[StoredTensor | PendingTensor]:
    """Return tensors, with codes, scales and the like that belong together joined into one.

    `read_config` returns the configuration of the checkpoint, and is called if any tensor may be quantised. What
    belongs together is decided once for all modules whose tensors have the same names, types and shapes; in all but
    the first of them, tensors are made when they are asked for.

    >>> import numpy as np
    >>> from tilewright.files.tensor_file import store_arrays
    >>> stored = store_arrays({"w": np.ones((2, 2), np.int8), "w_scale": np.full((2, 1), 0.5, np.float32)})
    >>> [(tensor.name, tensor.read().tolist()) for tensor in join_sections(list(stored.values()), lambda: None)]
    [('w', [[0.5, 0.5], [0.5, 0.5]])]
    """
    by_name = {tensor.name: tensor for tensor in tensors}
    if not any(_may_be_codes(tensor, by_name) for tensor in tensors):
        return tensors
    checkpoint = _Checkpoint(by_name, read_config())
    joint: dict[str, StoredTensor | PendingTensor] = {}
    used: set[str] = set()
    names = set(by_name)

    def add(codes: StoredTensor, joined: StoredTensor | PendingTensor) -> None:
        if joined.name != codes.name and joined.name in names:
            joined = RefusedTensor.of(codes.name, codes, f"there is another tensor {joined.name!r}")
        names.add(joined.name)
        joint[codes.name] = joined
        used.update([section.name for section in joined.sections if section.name != joined.name])

    modules: dict[str, list[StoredTensor]] = {}
    for tensor in tensors:
        modules.setdefault(tensor.name.rpartition(".")[0], []).append(tensor)
    # of bitsandbytes, which names the module after the codes, so that other modules matter
    is_local = not any(name.endswith("absmax") for name in names)
    joins_of: dict[Any, list[tuple[int, tuple[int, ...], StoredTensor]]] = {}  # codes, sections, the tensor
    for module, members in modules.items():
        start = len(module) + bool(module)
        facts = tuple([(t.name[start:], t.kind, id(t.format), t.shape, t.order, t.strides, t.swapped) for t in members])
        if is_local and facts in joins_of:
            for k, parts, like in joins_of[facts]:
                sections = tuple([members[i] for i in parts])
                codes = members[k]
                if sections:
                    add(codes, PendingTensor(_base_name(codes.name), sections, like, checkpoint.join))
                elif (other := checkpoint.join(codes)) is not None:
                    add(codes, other)
            continue
        joins = joins_of[facts] = []
        positions = {tensor.name: k for k, tensor in enumerate(members)}
        for k, codes in enumerate(members):
            joined = checkpoint.join(codes)
            if joined is not None:
                # a refusal names the tensor, and packed integers have a tensor with their shape, whose values matter
                is_own = isinstance(joined, RefusedTensor) or codes.name.endswith("_packed")
                parts = () if is_own else tuple([positions[section.name] for section in joined.sections])
                joins.append((k, parts, joined))
                add(codes, joined)
    return [joint.get(tensor.name, tensor) for tensor in tensors if tensor.name in joint or tensor.name not in used]


_BASE_ENDS = ("_blocks", "_packed", "_qdata")


def _base_name(name: str) -> str:
    """Return the name of the tensor that is made from codes of a name."""
    end = "_" + name.rpartition("_")[2]
    return name.removesuffix(end) if end in _BASE_ENDS else name


def _is_contiguous(tensor: StoredTensor) -> bool:
    in_order = tensor.order == tuple(range(len(tensor.shape)))
    return in_order and tensor.strides is None and not tensor.swapped


def _may_be_codes(tensor: StoredTensor, by_name: Mapping[str, StoredTensor]) -> bool:
    name = tensor.name
    if name.endswith(("_packed", "_blocks", "_qdata", ".qweight", ".compressed", "._data")):
        return True
    if _type_of(tensor) not in _FOREIGN_CODES:
        return False
    return name.rpartition(".")[2] == "weight" or any(f"{name}{end}" in by_name for end in _SCALE_SUFFIXES)


def _type_of(tensor: StoredTensor) -> str:
    """Return the name of the number format, or the file's name of a type that has none."""
    return tensor.format_name or tensor.kind


@dataclass(frozen=True)
class _Checkpoint:
    """The tensors of a checkpoint by name, and its configuration."""

    tensors: Mapping[str, StoredTensor]
    config: QuantizationConfig | None

    def join(self, tensor: StoredTensor) -> StoredTensor | None:
        """Return the tensor made from a tensor of codes and its neighbours, None if it is something else."""
        base, end = _base_name(tensor.name), "_" + tensor.name.rpartition("_")[2]
        makers = {"_blocks": self._join_blocks, "_packed": self._join_packed, "_qdata": self._join_torchao}
        make = makers.get(end, self._join_weight)
        try:
            content = make(base, tensor)
            if content is None:
                return None
            for section in content.sections:
                if not _is_contiguous(self.tensors[section.name]):
                    raise _RefusedError(f"the elements of {section.name!r} are not contiguous in the file")
        except _RefusedError as problem:
            return RefusedTensor.of(base, tensor, str(problem))
        return QuantizedTensor.of(base, content)

    def _expect(self, name: str) -> StoredTensor:
        tensor = self.tensors.get(name)
        if tensor is None:
            raise _RefusedError(f"quantised, but there is no {name!r}")
        return tensor

    def _join_blocks(self, base: str, codes: StoredTensor) -> ScaledCodes | None:
        """Return the MXFP4 experts of gpt-oss: blocks of 16 bytes, the last two dimensions merge."""
        scales = self.tensors.get(f"{base}_scales")
        is_mxfp4 = self.config is not None and self.config.method == "mxfp4"
        if _type_of(codes) != "uint8" or (scales is None and not is_mxfp4):
            return None
        scales = self._expect(f"{base}_scales")
        *lead, blocks, size = codes.shape if len(codes.shape) > 2 else (0, 0, 0)
        if size != _MX_GROUP // 2 or scales.shape != (*lead, blocks) or _type_of(scales) != "uint8":
            raise _RefusedError(
                f"MXFP4 needs blocks [..., n, 16] and scales [..., n] of bytes; got {_describe(codes)} and"
                f" {_describe(scales)}"
            )
        rows = reshape_stored(as_bytes(codes), (*lead, blocks * size))
        return ScaledCodes("mxfp4", (*lead, blocks * _MX_GROUP), _E2M1, rows, scales, (1, _MX_GROUP), is_e8m0=True)

    def _join_torchao(self, base: str, codes: StoredTensor) -> ScaledCodes | None:
        """Return a tensor of torchao, whose scales are exponents."""
        scales = self.tensors.get(f"{base}_scale")
        if scales is None or _type_of(codes) not in _CODES:
            return None
        return self._scale_codes(base, codes, scales)

    def _join_packed(self, base: str, codes: StoredTensor) -> ScaledCodes | None:
        """Return a tensor of compressed-tensors: packed small floats, or packed integers."""
        if _type_of(codes) == "int32":
            return self._join_integers(base, codes)
        if _type_of(codes) != "uint8":
            raise _RefusedError(f"expected packed codes of type uint8 or int32, got {_describe(codes)}")
        return self._scale_codes(base, codes, self._expect(f"{base}_scale"))

    def _join_weight(self, base: str, codes: StoredTensor) -> ScaledCodes | None:
        """Return codes under the name of the weight itself, if they have scales beside them."""
        module, _, last = base.rpartition(".")
        prefix = f"{module}." if module else ""
        foreign = last == "qweight" or f"{base}.absmax" in self.tensors
        is_weight = last in _FOREIGN_NAMES and _type_of(codes) in _FOREIGN_CODES
        for end, convention in _FOREIGN.items():
            if f"{prefix}{end}" in self.tensors and (foreign or is_weight):
                raise _RefusedError(f"quantised by {convention} (it has {end}), {_NOT_READ}")
        if foreign:
            raise _RefusedError(f"quantised by {'GPTQ or AWQ' if last == 'qweight' else 'bitsandbytes'}, {_NOT_READ}")
        if _type_of(codes) not in _CODES:
            return None
        names = [f"{base}{end}" for end in _SCALE_SUFFIXES]
        names += [f"{prefix}{suffix}" for suffix in _SCALE_NAMES] if last == "weight" else []
        scales = next((self.tensors[name] for name in names if name in self.tensors), None)
        if scales is not None:
            return self._scale_codes(base, codes, scales)
        if last == "weight" and self.config is not None:
            raise _RefusedError(f"the checkpoint is quantised ({self.config.method}), but there is no {names[1]!r}")
        if last == "weight" and _type_of(codes) in _FLOAT8 and self._scales_of_others is not None:
            raise _RefusedError(f"there is {self._scales_of_others!r}, but no {names[1]!r}")
        return None

    @cached_property
    def _scales_of_others(self) -> str | None:
        """The name of the scales of some weight, None if there are none."""
        ends = tuple([f".weight{end}" for end in _SCALE_SUFFIXES])
        return next((name for name in self.tensors if name.endswith(ends)), None)

    def _scale_codes(self, base: str, codes: StoredTensor, scales: StoredTensor) -> ScaledCodes:
        """Return codes of small floats or bytes with their scales."""
        if f"{base}_g_idx" in self.tensors:
            raise _RefusedError(f"its columns are in another order (see {base}_g_idx), {_NOT_READ}")
        if len(codes.shape) < 2:
            raise _RefusedError(f"expected codes of at least 2 dimensions, got {_describe(codes)}")
        code, scale_type = _type_of(codes), _type_of(scales)
        is_e8m0 = scale_type in ("uint8", _E8M0)
        packed = code in ("uint8", "F4") or (code == "int8" and is_e8m0)
        if packed:
            return self._scale_packed(base, codes, scales, is_e8m0)
        if not is_e8m0 and scale_type not in _SCALES:
            raise _RefusedError(f"expected scales of type float32, bfloat16 or float16, got {_describe(scales)}")
        table = _INT8 if code == "int8" else CodeTable(_FLOAT8[code], 8)
        grid, group = self._fit_scales(codes.shape, scales, _MX_GROUP if is_e8m0 else None)
        zeros = self.tensors.get(f"{base}_zero_point")
        if zeros is not None:
            zeros = _reshape_grid(zeros, grid, f"{base}_zero_point")
        is_mx = is_e8m0 and group == (1, _MX_GROUP)
        name = f"mxfp8_{table.element.removeprefix('float8_')}" if is_mx else table.element if code != "int8" else code
        return ScaledCodes(
            name if is_mx else f"{name} scaled per {_describe_group(codes.shape, grid, group)}",
            codes.shape,
            table,
            as_bytes(codes),
            _as_grid(scales, grid),
            group,
            is_e8m0,
            zeros=zeros,
        )

    def _scale_packed(self, base: str, codes: StoredTensor, scales: StoredTensor, is_e8m0: bool) -> ScaledCodes:
        """Return small floats of less than a byte: NVFP4 with float8 scales, MXFP4 and MXFP6 with exponents."""
        rows = as_bytes(codes)
        *lead, width = rows.shape
        count = scales.shape[-1] if scales.shape else 0
        if scales.shape[:-1] != tuple(lead) or not count:
            raise _RefusedError(
                f"expected a scale per group of each row of {_describe(codes)}, got {_describe(scales)}"
            )
        if is_e8m0:
            bits, rest = divmod(8 * width, count * _MX_GROUP)
            if rest or bits not in (4, 6):
                raise _RefusedError(
                    f"{count} scales of groups of {_MX_GROUP} do not fit rows of {width} bytes of 4-bit or 6-bit codes"
                )
            table = _E2M1 if bits == 4 else CodeTable("e2m3", 6)
            shape = (*lead, count * _MX_GROUP)
            name = "mxfp4" if bits == 4 else "mxfp6_e2m3"
            return ScaledCodes(name, shape, table, rows, as_bytes(scales), (1, _MX_GROUP), is_e8m0=True)
        if _type_of(scales) != "float8_e4m3":
            raise _RefusedError(f"packed codes need scales of type float8_e4m3 or uint8, got {_describe(scales)}")
        if 2 * width != count * _NVFP4_GROUP:
            raise _RefusedError(
                f"{2 * width} columns need {2 * width / _NVFP4_GROUP:g} scales, one per 16, got {count}"
            )
        divisor, factor = self.tensors.get(f"{base}_global_scale"), self.tensors.get(f"{base}_scale_2")
        chosen = divisor if divisor is not None else factor
        if chosen is None:
            raise _RefusedError(
                f"NVFP4 needs a scale of the tensor, but there is no '{base}_global_scale' or '{base}_scale_2'"
            )
        once = tuple([1] * len(rows.shape))
        per_matrix = (*lead[:-1], 1, 1)
        factor = _reshape_grid(chosen, per_matrix if prod(chosen.shape) > 1 else once, chosen.name)
        return ScaledCodes(
            "nvfp4",
            (*lead, 2 * width),
            _E2M1,
            rows,
            scales,
            (1, _NVFP4_GROUP),
            factor=factor,
            divides=divisor is not None,
        )

    def _join_integers(self, base: str, words: StoredTensor) -> ScaledCodes:
        """Return integers of a few bits that are packed into words along rows."""
        scales = self._expect(f"{base}_scale")
        if f"{base}_g_idx" in self.tensors:
            raise _RefusedError(f"its columns are in another order (see {base}_g_idx), {_NOT_READ}")
        if len(words.shape) < 2 or _type_of(scales) not in _SCALES:
            raise _RefusedError(
                f"expected packed rows and float scales, got {_describe(words)} and {_describe(scales)}"
            )
        *lead, count = words.shape
        shape = self._packed_shape(base, lead)
        bits = self._packed_bits(shape, count)
        shape = (*lead, count * 32 // bits) if shape is None else shape
        grid, group = self._fit_scales(shape, scales, None)
        zeros = self.tensors.get(f"{base}_zero_point")
        packed_zeros = zeros is not None and _type_of(zeros) == "int32"
        if zeros is not None and not packed_zeros:
            zeros = _reshape_grid(zeros, grid, zeros.name)
        elif zeros is not None:
            expected = (*lead[:-1], ceil_div(grid[-2] * bits, 32), grid[-1])
            if zeros.shape != expected:
                raise _RefusedError(f"expected zero points, int32 of shape {list(expected)}, got {_describe(zeros)}")
        name = f"int{bits} scaled per {_describe_group(shape, grid, group)}"
        return ScaledCodes(
            name,
            shape,
            CodeTable("offset_int", bits),
            as_bytes(words),
            _as_grid(scales, grid),
            group,
            zeros=zeros,
            zeros_are_packed=packed_zeros,
            shape_section=self.tensors.get(f"{base}_shape"),
        )

    def _packed_shape(self, base: str, lead: Sequence[int]) -> tuple[int, ...] | None:
        """Return the shape that a tensor beside packed integers holds."""
        stored = self.tensors.get(f"{base}_shape")
        if stored is None:
            return None
        if len(stored.shape) != 1 or not 2 <= stored.size <= 8 or _type_of(stored) not in ("int64", "int32"):
            raise _RefusedError(f"expected a shape of a few integers, got {_describe(stored)}")
        shape = tuple([int(n) for n in stored.read()])
        if shape[:-1] != tuple(lead) or shape[-1] < 1:
            raise _RefusedError(f"{base}_shape is {list(shape)}, which does not fit packed rows of {list(lead)}")
        return shape

    def _packed_bits(self, shape: tuple[int, ...] | None, words: int) -> int:
        """Return the width in bits of the integers, from the number of words in a row."""
        configured = [] if self.config is None else self.config.values(lambda scheme: scheme.bits)
        if shape is None:
            if len(configured) != 1:
                raise _RefusedError("packed integers need a '..._shape' beside them, or their bits in config.json")
            return int(configured[0])
        fitting = [bits for bits in range(1, 9) if words in _row_words(shape[-1], bits)]
        chosen = [bits for bits in fitting if bits in configured] or fitting
        if len(chosen) != 1 or (configured and chosen[0] not in configured):
            raise _RefusedError(
                f"rows of {shape[-1]} integers in {words} words have {' or '.join(map(str, fitting)) or 'no number of'}"
                f" bits; config.json says {' or '.join(map(str, configured)) or 'nothing'}"
            )
        return chosen[0]

    def _fit_scales(
        self, shape: Sequence[int], scales: StoredTensor, group: int | None
    ) -> tuple[tuple[int, ...], tuple[int, int]]:
        """Return the shape of the grid of scales, and the rows and columns that share one of them."""
        grids = {block: grid for grid, block in _fits(tuple(shape), scales.shape, self._candidates(group))}
        if len(grids) == 1:
            ((chosen, grid),) = grids.items()
            return grid, chosen
        if grids:
            choices = " or ".join([f"{rows} x {columns}" for rows, columns in grids])
            raise _RefusedError(f"scales of shape {list(scales.shape)} may be of blocks of {choices} of {list(shape)}")
        raise _RefusedError(
            f"scales of shape {list(scales.shape)} fit neither the tensor, nor rows, groups or blocks of {list(shape)}"
            + (f" as config.json describes them ({self._configured()})" if self._configured() else "")
        )

    def _candidates(self, group: int | None) -> list[tuple[int, int]]:
        """Return the blocks that scales may belong to, by the configuration, or else by custom."""
        blocks: list[tuple[int, int]] = []
        if self.config is not None:
            blocks += self.config.values(lambda scheme: scheme.block)
            blocks += [(1, n) for n in self.config.values(lambda scheme: scheme.group)]
        if group is not None:
            blocks.append((1, group))
        return list(dict.fromkeys(blocks)) or [_DEFAULT_BLOCK]

    def _configured(self) -> str:
        schemes = self._candidates(None) if self.config is not None and self.config.schemes else []
        return ", ".join([f"{rows} x {columns}" for rows, columns in schemes])


def _fits(
    shape: tuple[int, ...], scales: tuple[int, ...], blocks: Sequence[tuple[int, int]]
) -> Iterator[tuple[tuple[int, ...], tuple[int, int]]]:
    """Yield the shapes of the grid, and the blocks, that scales of a shape may mean for a tensor of a shape."""
    *lead, rows, columns = shape
    once = (1,) * len(lead)
    whole = (max(rows, 1), max(columns, 1))
    if prod(scales) == 1:
        yield (*once, 1, 1), whole
        return
    if scales in ((*lead, rows, 1), (*lead, rows)):
        yield (*lead, rows, 1), (1, whole[1])
        return
    if lead and scales in (tuple(lead), (*lead, 1), (*lead, 1, 1)):
        yield (*lead, 1, 1), whole
        return
    if scales == (*lead, 1, columns):
        yield (*lead, 1, columns), (whole[0], 1)
        return
    for high, wide in blocks:
        grid = (*lead, ceil_div(rows, high), ceil_div(columns, wide))
        if scales in (grid, (*lead, grid[-2], 1, grid[-1], 1)):
            yield grid, (high, wide)
            return
    if len(scales) == len(shape) and scales[:-1] == (*lead, rows) and scales[-1] and columns % scales[-1] == 0:
        group = columns // scales[-1]
        if blocks == [_DEFAULT_BLOCK] and group >= _MIN_GROUP and group.bit_count() == 1:
            yield scales, (1, group)


def _row_words(columns: int, bits: int) -> tuple[int, int]:
    """Return the words that a row of integers may take: filled as far as needed, or in whole sets of 32 integers."""
    return ceil_div(columns * bits, 32), ceil_div(columns, 32) * bits


def _as_grid(scales: StoredTensor, grid: tuple[int, ...]) -> StoredTensor:
    """Return scales with the shape of their grid; exponents as bytes."""
    return reshape_stored(as_bytes(scales) if scales.format is None else scales, grid)


def _reshape_grid(tensor: StoredTensor, grid: tuple[int, ...], name: str) -> StoredTensor:
    if prod(tensor.shape) != prod(grid):
        raise _RefusedError(f"expected {name!r} to have the shape {list(grid)}, got {_describe(tensor)}")
    return reshape_stored(tensor, grid)


def _describe(tensor: StoredTensor) -> str:
    return f"{_type_of(tensor)} of shape {list(tensor.shape)}"


def _describe_group(shape: Sequence[int], grid: tuple[int, ...], group: tuple[int, int]) -> str:
    """Return a description of what shares a scale."""
    if prod(grid) == 1:
        return "tensor"
    if group == (max(shape[-2], 1), max(shape[-1], 1)):
        return "matrix"
    if group == (1, shape[-1]):
        return "row"
    if group[0] == 1:
        return f"group of {group[1]}"
    return "column" if group[1] == 1 else f"{group[0]} x {group[1]}"

# SPDX-License-Identifier: Apache-2.0
"""Names, sizes, limits: what formats say about themselves."""

import pickle

import ml_dtypes
import numpy as np
import pytest

from tilewright import formats
from tilewright.formats import BLOCK_FORMATS, SCALAR_FORMATS, BlockFormat, ScalarFormat, Sections, format_of

from ..cases import all_cases

SCALARS = (
    "float64 float32 float16 bfloat16 float8_e4m3 float8_e5m2 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
)
BLOCKS = (
    "bfloat8_b bfloat4_b bfloat2_b bfloat8_a bfloat4_a bfloat2_a "
    "mxfp8_e4m3 mxfp8_e5m2 mxfp6_e2m3 mxfp6_e3m2 mxfp4 mxint8 nvfp4"
)


def test_names():
    assert list(SCALAR_FORMATS) == SCALARS.split()
    assert list(BLOCK_FORMATS) == BLOCKS.split()
    for name in [*SCALARS.split(), *BLOCKS.split()]:
        each = format_of(name)
        assert each.name == str(each) == name
        assert format_of(each) is each
        assert getattr(formats, "bool_" if name == "bool" else name) is each


def test_every_public_name_exists_and_is_documented():
    for name in formats.__all__:
        value = getattr(formats, name)
        if isinstance(value, type) or callable(value):
            assert ">>> " in value.__doc__, name


@all_cases(("each", SCALAR_FORMATS.values()), name=str)
def test_scalar_from_dtype_array_and_type(each):
    assert format_of(each.dtype) is each
    assert format_of(each.dtype.type) is each
    assert format_of(np.zeros((2, 3), dtype=each.dtype)) is each
    assert format_of(np.zeros(1, dtype=each.dtype)[0]) is each
    assert eval(repr(each)) is each  # noqa: S307  (our own text)
    assert each.bits == 8 * each.itemsize == 8 * np.dtype(each.dtype).itemsize
    assert each.bytes_per_tile(1024) == each.sections(1024).total == 1024 * each.itemsize


ALIASES = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8_e4m3": "float8_e4m3",
    "float8_e4m3fn": "float8_e4m3",
    "fp8_e5m2": "float8_e5m2",
    "mxfp4_e2m1": "mxfp4",
    "bfp8": "bfloat8_b",
    "BFP4": "bfloat4_b",
    "bfp2_b": "bfloat2_b",
    "bfp8_a": "bfloat8_a",
    "BFLOAT8_B": "bfloat8_b",
    "BF16": "bfloat16",
    "Float32": "float32",
    "f64": "float64",
    "u8": "uint8",
    "i64": "int64",
}


@all_cases(("alias, name", ALIASES.items()))
def test_aliases(alias, name):
    assert format_of(alias) is format_of(name)


def test_byte_order_does_not_matter():
    assert format_of(np.dtype(">f4")) is format_of("float32")
    assert format_of(np.dtype(np.longlong)) is format_of("int64")


@all_cases(("name", SCALARS.split()))
def test_scalar_limits(name):
    each = format_of(name)
    limits = each.limits
    if each.kind == "float":
        info = ml_dtypes.finfo(each.dtype)
        assert (limits.lowest, limits.highest) == (float(info.min), float(info.max))
        assert limits.smallest == float(info.smallest_subnormal)
    elif each.kind != "bool":
        assert (limits.lowest, limits.highest) == (np.iinfo(name).min, np.iinfo(name).max)
    assert each.max_value == limits.highest


# Elements of a tile -> bytes in bfp8, bfp4, bfp2: the table of the reference.
TILES = {
    1024: (1088, 576, 320),
    512: (544, 288, 160),
    256: (272, 144, 80),
    128: (144, 80, 48),
    64: (80, 48, 32),
    32: (48, 32, 24),
    16: (32, 24, 20),
}


@all_cases(("exponent", "ab"), ("elements", TILES))
def test_block_float_sizes(elements, exponent):
    for bits, size in zip((8, 4, 2), TILES[elements], strict=True):
        assert format_of(f"bfloat{bits}_{exponent}").bytes_per_tile(elements) == size


@all_cases(
    (
        "name, sections",
        [
            ("bfloat8_b", Sections(64, 0, 1024)),
            ("mxfp8_e4m3", Sections(32, 0, 1024)),
            ("mxfp8_e5m2", Sections(32, 0, 1024)),
            ("mxfp6_e2m3", Sections(32, 0, 768)),
            ("mxfp6_e3m2", Sections(32, 0, 768)),
            ("mxfp4", Sections(32, 0, 512)),
            ("mxint8", Sections(32, 0, 1024)),
            ("nvfp4", Sections(64, 0, 512)),
        ],
    )
)
def test_sections(name, sections):
    assert format_of(name).sections(1024) == sections
    assert format_of(name).pack(np.ones(1024)).size == sections.total


def test_no_padding_outside_the_block_floats():
    assert format_of("nvfp4").sections(16) == Sections(1, 0, 8)
    assert format_of("mxfp4").sections(32) == Sections(1, 0, 16)
    assert format_of("bfloat8_b").sections(0) == Sections(0, 0, 0)


@all_cases(("each", [*SCALAR_FORMATS.values(), *BLOCK_FORMATS.values()]), name=str)
def test_formats_are_values(each):
    again = pickle.loads(pickle.dumps(each))  # noqa: S301  (our own bytes)
    assert again == each
    assert hash(again) == hash(each)
    with pytest.raises(AttributeError):
        each.name = "other"


@all_cases(("each", BLOCK_FORMATS.values()), name=str)
def test_block_repr_is_a_constructor_call(each):
    assert eval(repr(each), vars(formats)) == each  # noqa: S307  (our own text)


def test_a_format_of_your_own():
    """The description is open: 64 elements of three exponent bits, sharing an E8M0 scale."""
    own = BlockFormat("mine", 64, formats.SmallFloat(3, 4), formats.PowerOfTwo(8, 127, nan=255))
    values = np.linspace(-1, 1, 640, dtype=np.float32)
    assert np.abs(own.unpack(own.pack(values, 640), 640) - values).max() < 1 / 32
    assert isinstance(format_of(own), BlockFormat)
    assert format_of(own) is own
    assert not isinstance(own, ScalarFormat)


@all_cases(("each", BLOCK_FORMATS.values()), name=str)
def test_pack_takes_any_scalar_array(each):
    values = np.arange(100)
    expected = each.pack(values.astype(np.float32), 64 * each.block)
    for dtype in ("int8", "int64", "uint16", "float16", "float64", "bfloat16"):
        typed = values.astype(format_of(dtype).dtype)
        assert each.pack(typed, 64 * each.block).tobytes() == expected.tobytes()
    assert each.pack(values.tolist(), 64 * each.block).tobytes() == expected.tobytes()
    strided = np.zeros((100, 2), dtype=np.float32)
    strided[:, 0] = values
    assert each.pack(strided[:, 0], 64 * each.block).tobytes() == expected.tobytes()


@all_cases(("each", BLOCK_FORMATS.values()), name=str)
def test_partial_tiles_and_counts(each):
    values = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    packed = each.pack(values)
    assert packed.size == 3 * each.bytes_per_tile(1024)
    whole = each.pack(np.concatenate([values, np.zeros(72, np.float32)]))
    assert packed.tobytes() == whole.tobytes()
    assert each.unpack(packed, count=3000).shape == (3000,)
    np.testing.assert_array_equal(each.unpack(packed)[:3000], each.unpack(packed.tobytes(), count=3000))
    assert not each.unpack(packed)[3000:].any()
    assert each.pack([]).size == each.unpack(b"").size == 0


@all_cases(("each", BLOCK_FORMATS.values()), name=str)
def test_more_than_one_chunk(each):
    values = np.random.default_rng(0).standard_normal(200 * 1024).astype(np.float32)
    packed = each.pack(values)
    tiles = [each.pack(tile) for tile in values.reshape(200, 1024)]
    assert packed.tobytes() == b"".join(tile.tobytes() for tile in tiles)
    unpacked = np.concatenate([each.unpack(tile) for tile in tiles])
    np.testing.assert_array_equal(each.unpack(packed), unpacked)


@all_cases(("each", BLOCK_FORMATS.values()), name=str)
def test_a_tile_larger_than_a_chunk(each):
    """One tile for the whole array, of which the last part is not full."""
    elements = 5 * (1 << 15)
    values = np.random.default_rng(0).standard_normal(elements - 100).astype(np.float32)
    scales, codes = each.encode(np.concatenate([values, np.zeros(100, np.float32)]))
    packed = each.pack(values, elements)
    sections = each.sections(elements)
    assert packed[: sections.scales].tobytes() == scales.tobytes()
    np.testing.assert_array_equal(each.unpack(packed, elements), each.decode(scales, codes).reshape(-1))
    # Data without their own scales have the same bytes, whatever the tile.
    small = each.pack(values).reshape(-1, each.bytes_per_tile(1024))[:, each.sections(1024).data_offset :]
    assert packed[sections.data_offset :].tobytes() == small.tobytes()

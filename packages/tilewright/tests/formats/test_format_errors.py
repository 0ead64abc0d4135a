# SPDX-License-Identifier: Apache-2.0
"""Bad input: each mistake gets the right exception, and a message that names the value, the rule and the remedy."""

import numpy as np
import pytest

from tilewright.errors import FormatError, TilewrightError
from tilewright.formats import (
    BlockFormat,
    PowerOfTwo,
    SignMagnitude,
    SmallFloat,
    TwosComplement,
    bfloat4_b,
    bfloat8_a,
    bfloat8_b,
    cast,
    format_of,
    mxfp4,
    mxint8,
    nvfp4,
)

ONES = np.ones(32, dtype=np.float32)


def case(name, call, error, *words):
    return pytest.param(call, error, words, id=name)


CASES = [
    case(
        "unknown-name", lambda: format_of("bfloat7"), FormatError, "unknown format 'bfloat7'; did you mean 'bfloat16'?"
    ),
    case(
        "unknown-word",
        lambda: format_of("zebra"),
        FormatError,
        "unknown format 'zebra'; use one of",
        "bfloat8_b",
        "int8",
    ),
    case("unknown-dtype", lambda: format_of(np.dtype("c8")), FormatError, "unknown format 'complex64'", "float32"),
    case("unknown-array", lambda: format_of(np.array(["a"])), FormatError, "unknown format '<U1'"),
    case("no-format", lambda: format_of(3.5), TypeError, "a format name, a NumPy dtype or an array", "3.5", "float"),
    case("none", lambda: format_of(None), TypeError, "NoneType"),
    case(
        "cast-block",
        lambda: cast(ONES, "bfloat8_b"),
        FormatError,
        "expected a scalar format",
        "got 'bfloat8_b'",
        ".pack(array)",
    ),
    case(
        "cast-block-object", lambda: cast(ONES, bfloat8_b), FormatError, "expected a scalar format", "got 'bfloat8_b'"
    ),
    case(
        "cast-objects", lambda: cast(np.array([None]), "int8"), FormatError, "expected a scalar format", "got 'object'"
    ),
    case(
        "cast-complex",
        lambda: cast(np.array([1j]), "int8"),
        FormatError,
        "expected a scalar format",
        "got 'complex128'",
    ),
    case("cast-option", lambda: cast(ONES, "int8", "wrap"), FormatError, "'wrap'", "'saturate' or 'raise'"),
    case("sections", lambda: mxfp4.sections(100), FormatError, "100 elements", "blocks of 32", "96 or 128"),
    case("sections-few", lambda: bfloat8_b.sections(7), FormatError, "7 elements", "use 16"),
    case("sections-negative", lambda: bfloat8_b.sections(-16), FormatError, "-16 elements", "use 16"),
    case("sections-type", lambda: mxfp4.sections(32.0), TypeError, "integer", "float"),
    case("sections-bool", lambda: mxfp4.sections(True), TypeError, "integer", "bool"),
    case("tile", lambda: mxfp4.pack(ONES, 16), FormatError, "16 elements", "use 32"),
    case("tile-zero", lambda: mxfp4.pack(ONES, 0), FormatError, "got 0", "at least 32 elements"),
    case("pack-objects", lambda: mxfp4.pack(np.array([None])), FormatError, "expected a scalar format", "got 'object'"),
    case("pack-empty-objects", lambda: mxfp4.pack(np.array([], dtype=object)), FormatError, "'object'"),
    case("encode-ragged", lambda: mxfp4.encode(np.ones(40)), FormatError, "40 elements", "32 or 64"),
    case("rounding", lambda: mxfp4.pack(ONES, 32, rounding="up"), FormatError, "'up'", "'nearest_even'", "'truncate'"),
    case("no-seed", lambda: mxfp4.pack(ONES, 32, rounding="stochastic"), FormatError, "seed from 0 to 2^64 - 1"),
    case("bad-seed", lambda: mxfp4.pack(ONES, 32, rounding="stochastic", seed=-1), FormatError, "seed", "-1"),
    case("float-seed", lambda: mxfp4.pack(ONES, 32, rounding="stochastic", seed=1.5), FormatError, "seed", "1.5"),
    case("idle-seed", lambda: mxfp4.pack(ONES, 32, seed=1), FormatError, "takes no seed, got 1", "'nearest_even'"),
    case("tensor-scale", lambda: mxfp4.pack(ONES, 32, tensor_scale=2.0), FormatError, "no tensor scale", "nvfp4"),
    case("tensor-scale-zero", lambda: nvfp4.pack(ONES, 32, tensor_scale=0.0), FormatError, "0.0", "positive"),
    case("tensor-scale-tiny", lambda: nvfp4.pack(ONES, 32, tensor_scale=1e-60), FormatError, "1e-60", "float32"),
    case("tensor-scale-nan", lambda: nvfp4.unpack(b"", tensor_scale=float("nan")), FormatError, "nan", "finite"),
    case("tensor-scale-type", lambda: nvfp4.pack(ONES, 32, tensor_scale="2"), TypeError, "number", "str"),
    case("unpack-size", lambda: bfloat8_b.unpack(bytes(1000)), FormatError, "1000 bytes", "1088", "pass 0 or 1088"),
    case("unpack-count", lambda: bfloat8_b.unpack(bytes(1088), count=1025), FormatError, "1025", "0 to 1024"),
    case("unpack-count-negative", lambda: bfloat8_b.unpack(bytes(1088), count=-1), FormatError, "-1", "0 to 1024"),
    case("unpack-dtype", lambda: bfloat8_b.unpack(np.zeros(1088)), TypeError, "uint8", "float64"),
    case("unpack-damaged", lambda: bfloat8_a.unpack(b"\x20" + bytes(31), 16), FormatError, "scale 32", "0 to 31"),
    case("decode-scale", lambda: mxint8.decode([300], [[0] * 32]), FormatError, "scale 300", "0 to 255"),
    case("decode-code", lambda: mxfp4.decode([1], [[16] * 32]), FormatError, "code 16", "0 to 15"),
    case("decode-negative", lambda: mxint8.decode([-1], [[0] * 32]), FormatError, "scale -1", "0 to 255"),
    case("decode-sizes", lambda: mxint8.decode([1, 2], [[0] * 32]), FormatError, "32 codes", "2 scales", "32 codes"),
    case("decode-type", lambda: mxint8.decode([1.0], [[0] * 32]), TypeError, "scales must be integers", "float64"),
    case("element-bits", lambda: SignMagnitude(9), FormatError, "2 to 8 bits", "got 9"),
    case("element-one-bit", lambda: TwosComplement(1, 0), FormatError, "2 to 8 bits", "got 1"),
    case("element-wide", lambda: SmallFloat(5, 10), FormatError, "3 to 8 bits", "got 16"),
    case("element-narrow", lambda: SmallFloat(0, 3), FormatError, "at least one exponent bit"),
    case("element-specials", lambda: SmallFloat(4, 3, "inf"), FormatError, "'none', 'nan' or 'ieee'"),
    case(
        "block-bytes",
        lambda: BlockFormat("mine", 3, SmallFloat(2, 1), PowerOfTwo(8, 127, nan=255)),
        FormatError,
        "blocks of 3 codes of 4 bits",
        "whole number of bytes",
    ),
    case(
        "no-nan",
        lambda: BlockFormat("mine", 16, SmallFloat(2, 1), PowerOfTwo(8, 127)),
        FormatError,
        "neither element nor scale has a NaN",
        "aligned=True",
    ),
    case(
        "aligned-scale",
        lambda: BlockFormat("m", 16, SignMagnitude(8), nvfp4.scale, aligned=True),
        FormatError,
        "PowerOfTwo",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), CASES)
def test_message(call, error, words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


OVERFLOWS = [
    (np.float32([[1, 2], [300, 4]]), "uint8", "300.0 at (1, 0) is outside 0 to 255"),
    (np.float32([1, np.nan]), "int32", "nan at 1 is outside -2147483648 to 2147483647"),
    (np.float64(2.0**63), "int64", "9.223372036854775808e+18 is outside"),
    (np.float16([-np.inf]), "int64", "-inf at 0 is outside"),
    (np.array([1, -1]), "uint64", "-1 at 1 is outside 0 to 18446744073709551615"),
    (np.array([2**64 - 1], dtype=np.uint64), "int64", "18446744073709551615 at 0 is outside"),
    (np.array([70000]), "uint16", "70000 at 0 is outside 0 to 65535"),
    (np.array([70000]), "float16", "70000 at 0 is outside -65504.0 to 65504.0"),
    (np.array([1e300]), "float32", "1e+300 at 0 is outside"),
    (np.float32([3.4e38]), "bfloat16", "at 0 is outside"),
    (np.float32([448, 464, 465]), "float8_e4m3", "465.0 at 2 is outside -448.0 to 448.0"),
    (np.float32([57344, 61440]), "float8_e5m2", "61440.0 at 1 is outside"),
    (np.float32([np.inf]), "float8_e5m2", "inf at 0 is outside"),
]


@pytest.mark.parametrize(("values", "target", "words"), OVERFLOWS)
def test_overflow_is_named(values, target, words):
    cast(values, target)
    with pytest.raises(FormatError) as caught:
        cast(values, target, on_overflow="raise")
    message = str(caught.value).replace("9.223372036854776e+18", "9.223372036854775808e+18")
    assert words in message
    assert "use a wider format, or on_overflow='saturate'" in message


@pytest.mark.parametrize(
    ("values", "target"),
    [
        (np.float32([255.9, -0.9]), "uint8"),
        (np.float32([65519.0, np.inf, -np.inf, np.nan]), "float16"),
        (np.float64([np.inf, np.nan]), "float32"),
        (np.float32([464.0, -464.0, np.nan, 0.0]), "float8_e4m3"),
        (np.array([True]), "uint8"),
        (np.array([2**64 - 1], dtype=np.uint64), "bool"),
        (np.array([2**64 - 1], dtype=np.uint64), "float32"),
        (np.array([], dtype=np.float32), "int8"),
    ],
)
def test_no_overflow(values, target):
    np.testing.assert_array_equal(
        cast(values, target, on_overflow="raise").astype(np.float64), cast(values, target).astype(np.float64)
    )


def test_format_errors_are_value_errors():
    assert issubclass(FormatError, TilewrightError)
    assert issubclass(FormatError, ValueError)


def test_codes_of_fewer_bits_are_checked_before_they_can_spill():
    with pytest.raises(FormatError, match="code 255 is outside 0 to 15"):
        bfloat4_b.decode([127], [[255] * 16])

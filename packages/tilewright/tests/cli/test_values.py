# SPDX-License-Identifier: Apache-2.0
"""Values as people type them."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright._text import format_bytes
from tilewright.cli.options import ADDRESS, COORDINATE, CORE, GRID, SHAPE, SIZE, SpecOptions


def taken(kind, text):
    return kind.convert(text, None, None)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=6), st.sampled_from(["x", "X", "×", ","]))
def test_shapes(extents, sign):
    assert taken(SHAPE, sign.join(map(str, extents))) == tuple(extents)


@given(st.lists(st.integers(-100, 10**12), min_size=1, max_size=6))
def test_coordinates(numbers):
    assert taken(COORDINATE, ",".join(map(str, numbers))) == tuple(numbers)
    assert taken(COORDINATE, str(tuple(numbers))) == tuple(numbers)


@given(st.integers(0, 10**6), st.sampled_from(["", "B", "KiB", "MiB", "GiB", "kib", "K", "KB", "MB"]))
def test_sizes(count, unit):
    factor = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "K": 2**10, "KB": 10**3, "MB": 10**6}
    assert taken(SIZE, f"{count}{unit}") == count * factor[unit.upper()]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SHAPE, "()", ()),
        (SHAPE, "[4, 60]", (4, 60)),
        (SHAPE, "7,", (7,)),
        (SIZE, "1.5GiB", 3 << 29),
        (SIZE, "256 MiB", 256 << 20),
        (ADDRESS, "0x16dd11", 1498385),
        (ADDRESS, "1_498_385", 1498385),
        (CORE, "(0, 5)", (0, 5)),
        (GRID, "8x4", (8, 4)),
        (GRID, "0,0-3,1+5,0", [((0, 0), (3, 1)), ((5, 0), (5, 0))]),
        (GRID, "(0,0)-(3,1)", [((0, 0), (3, 1))]),
        (COORDINATE, "()", ()),
    ],
)
def test_other_spellings(kind, text, value):
    assert taken(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *[(SHAPE, text) for text in ("4x", "x4", "4x-1", "a", "4xx4", "1.5", "٣x٤")],
        *[(COORDINATE, text) for text in ("1,,2", "a", "1;2", "1.0")],
        *[(SIZE, text) for text in ("-1", "1QiB", "MiB", "1e9", "1 2", "nan")],
        *[(ADDRESS, text) for text in ("-1", "0xzz", "", "1.0")],
        *[(CORE, text) for text in ("1", "1,2,3")],
        *[(GRID, text) for text in ("8", "8x", "0,0-1", "8x8x8", "+")],
    ],
)
def test_what_is_no_value_is_refused(kind, text):
    with pytest.raises(click.BadParameter, match="write"):
        taken(kind, text)


@pytest.mark.parametrize("count", [0, 1, 1000, 1023, 1024, 10**6, 256 << 20, 3 << 29, 10**15])
def test_sizes_in_words_are_short_and_near(count):
    text = format_bytes(count)
    assert len(text) <= 10
    back = taken(SIZE, text.replace(" bytes", ""))
    assert back == pytest.approx(count, rel=0.01)


def test_settings_of_one_tensor_are_spelled_like_options():
    changed = SpecOptions().with_settings("dtype=float32:shard=block:grid=2x2:shard-shape=64x64:transpose-tile")
    assert (changed.dtype, changed.shard, changed.grid, changed.shard_shape) == ("float32", "block", (2, 2), (64, 64))
    assert changed.transpose_tile
    for wrong in ("dtype", "dtype=nothing", "colour=blue", "grid=8"):
        with pytest.raises(click.UsageError):
            SpecOptions().with_settings(wrong)

# SPDX-License-Identifier: Apache-2.0
"""The streaming JSON reader: the same values as json.loads, in little memory, and errors with the byte."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import FileFormatError
from tilewright_audit import graph_report
from tilewright_audit.graph_report import JsonStream

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5), max_leaves=40
)


def walk(stream):
    """Return the value that comes next, walking into everything."""
    kind = stream.kind()
    if kind == "object":
        return {key: walk(stream) for key in stream.walk_object()}
    if kind == "array":
        return [walk(stream) for _ in stream.walk_array()]
    return stream.read_value()


@pytest.fixture(params=[7, 1 << 18])
def chunk(request, monkeypatch):
    monkeypatch.setattr(graph_report, "CHUNK_BYTES", request.param)
    monkeypatch.setattr(graph_report, "_FEW_CHARACTERS", request.param)
    return request.param


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("json") / "a.json"


@pytest.mark.parametrize("size", [5, 1 << 18])
@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_every_way_of_reading_gives_the_same_value(path, size, value, indent, ascii_only):
    before = graph_report.CHUNK_BYTES, graph_report._FEW_CHARACTERS
    graph_report.CHUNK_BYTES = graph_report._FEW_CHARACTERS = size
    try:
        surrogates = any(0xD800 <= ord(c) < 0xE000 for c in json.dumps(value, ensure_ascii=False))
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only or surrogates)
        path.write_bytes(text.encode())
        assert JsonStream(path, "it").read_value() == value
        assert walk(JsonStream(path, "it")) == value
        stream = JsonStream(path, "it")
        stream.skip()
        assert stream.at_end
        assert stream.byte == len(text.encode())
        if isinstance(value, list):
            assert [item for items in JsonStream(path, "it").read_items() for item in items] == value
    finally:
        graph_report.CHUNK_BYTES, graph_report._FEW_CHARACTERS = before


def test_a_value_that_is_not_taken_is_passed_over(path, chunk):
    path.write_text('{"a": [1, {"b": "}]"}], "c": 5, "d": [[], {}], "e": {"f": "last"}}')
    stream = JsonStream(path, "it")
    assert [key for key in stream.walk_object() if key != "c" or stream.read_value() == 5] == ["a", "c", "d", "e"]
    assert stream.at_end


@pytest.mark.parametrize(
    ("text", "byte"),
    [
        (b'{"a": [1, 2', 11), (b'{"a": nul}', 6), (b'{"a": 1,}', 8), (b'{"a" 1}', 5), (b"[1, 2,]", 6), (b"[1 2]", 3),
        (b'{"a": "b', 6), (b'{"\xc3\xa9": x}', 7), (b'{"a": NaN}', 6), (b"", 0), (b'{"a": {"b": 1, "b": 2}}', 6),
        (b'["\xff"]', 2),
    ],
)  # fmt: skip
def test_errors_name_the_byte(path, chunk, text, byte):
    path.write_bytes(text)
    with pytest.raises(FileFormatError, match=rf"at byte {byte}\b"):
        walk_items(JsonStream(path, "the report"))


def walk_items(stream):
    """Read the members of the outermost container one by one."""
    if stream.kind() == "object":
        for _ in stream.walk_object():
            stream.read_value()
    else:
        for _ in stream.walk_array():
            stream.read_value()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '["\\ud800"' + "[" * 50_000, "[" + "9" * 5000 + "]"]
)
def test_depth_and_long_numbers_are_refused(path, text):
    path.write_text(text)
    for read in (JsonStream.read_value, JsonStream.skip, walk_items):
        with pytest.raises(FileFormatError):
            read(JsonStream(path, "the report"))


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "big.json"
    item = json.dumps({"address": 1497088, "core_x": 3, "core_y": 4, "page_index": 17, "name": "x" * 40})
    path.write_text('{"pages": [' + ", ".join([item] * 60_000) + '], "rest": [' + ", ".join(["7"] * 400_000) + "]}")
    assert path.stat().st_size > 6_000_000
    tracemalloc.start()
    stream = JsonStream(path, "it")
    count = sum(
        len(items) for key in stream.walk_object() if key == "pages" for items in stream.read_items()
    )  # fmt: skip
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60_000
    assert peak < 4_000_000

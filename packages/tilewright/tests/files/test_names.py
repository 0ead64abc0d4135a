# SPDX-License-Identifier: Apache-2.0
"""File names made from names of tensors."""

from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import FileFormatError
from tilewright.files.source import decode_file_name, encode_file_name, unique_file_names

DEVICES = {"con", "prn", "aux", "nul", *(f"{kind}{k}" for kind in ("com", "lpt") for k in range(10))}  # of Windows
text = st.text(max_size=30).filter(lambda name: name.isprintable())
names = text | st.builds("".join, st.tuples(st.sampled_from(sorted(DEVICES)) | st.just("NUL"), st.just(".") | text))


@given(names)
def test_names_come_back_and_are_safe(name):
    try:
        made = encode_file_name(name)
    except FileFormatError:
        assert ".." in name or name[:1] in "/\\" or ":" in name or len(name.encode()) > 60
        return
    assert decode_file_name(made) == name
    for path in (PurePosixPath(made + ".npy"), PureWindowsPath(made + ".npy")):
        assert path.name == made + ".npy"
    assert made.split(".")[0].lower() not in DEVICES
    assert made.isascii()
    assert not made.startswith((".", "-"))


@given(st.lists(st.text("aAbB./é%", max_size=6), unique=True))
def test_names_stay_different_without_capitals(names):
    try:
        made = unique_file_names(names)
    except FileFormatError:
        return
    assert len({each.lower() for each in made.values()}) == len(names)
    assert {decode_file_name(each) for each in made.values()} == set(names)


@pytest.mark.parametrize(
    "name", ["../x", "a/../../b", "/etc/passwd", "..\\x", "\\\\host\\x", "C:\\x", "c:/x", "a\0b", "a\nb", "..", "a/.."]
)
def test_ways_out_of_the_directory_are_refused(name):
    with pytest.raises(FileFormatError):
        encode_file_name(name)


def test_a_name_that_is_too_long_is_refused():
    with pytest.raises(FileFormatError, match="201 bytes"):
        encode_file_name("x" * 201)
    assert encode_file_name("con.weight") == "%63on.weight"

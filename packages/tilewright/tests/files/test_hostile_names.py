# SPDX-License-Identifier: Apache-2.0
"""Names made to do harm: to leave the directory, to meet another file, to act on a terminal, to look like others."""

import unicodedata
from pathlib import PureWindowsPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.cli import main
from tilewright.files.source import decode_file_name, encode_file_name, unique_file_names, validate_tensor_name

from .samples import write_safetensors

TURNING = [*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]
ACTING = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
BREAKING = ["\u2028", "\u2029"]
RESERVED = ["con", "PRN", "aux.weight", "Nul", "com1", "LPT9.bias", "CON.x.y"]
ALIKE = [
    ["Layer.Weight", "layer.weight", "LAYER.WEIGHT"],
    ["\u00e9", "e\u0301"],  # one letter in its two normal forms
    ["\u212b", "\u00c5", "A\u030a"],  # the angstrom, the letter, and the letter with a ring
    ["\ufb01", "fi"],  # a ligature
    ["\u0130", "i\u0307", "I"],  # the dotted capital, which has a small letter of two characters
    ["\u1e9e", "\u00df", "ss", "SS"],
    ["a b", "a%20b", "a+b"],
    ["a.", "a", "a ", "a..."],
]


@pytest.mark.parametrize("character", [*ACTING, *BREAKING, *TURNING], ids=lambda each: f"U+{ord(each):04X}")
def test_characters_that_act_on_what_shows_them_are_refused(character):
    with pytest.raises(tw.FileFormatError, match="control") as caught:
        validate_tensor_name(f"layer{character}31m.weight")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["a\x1b[31mred", "a\x9b2J", "a\r\nb", "gpj\u202eexe"])
def test_no_file_with_such_a_name_reaches_a_terminal(tmp_path, capsys, name):
    path = write_safetensors(tmp_path / "m.safetensors", {name: np.zeros((4, 4), np.float32)})
    for words in (["inspect", path], ["convert", path, tmp_path / "out"], ["diff", path, path]):
        with pytest.raises(SystemExit) as ended:
            main(list(map(str, words)))
        assert ended.value.code
        told = "".join(capsys.readouterr())
        assert "control characters" in told
        assert all(line.isprintable() for line in told.split("\n")), told
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.safetensors"]


@pytest.mark.parametrize("names", ALIKE, ids=lambda names: names[0].encode("unicode_escape").decode())
def test_names_that_look_alike_become_files_of_their_own(tmp_path, names):
    """Also on a system that takes capitals for small letters, and one normal form for the other."""
    made = unique_file_names(names)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert len({unicodedata.normalize(form, each).casefold() for each in made.values()}) == len(names)
    assert {decode_file_name(each) for each in made.values()} == set(names)
    arrays = {name: np.full((32, 32), k, np.float32) for k, name in enumerate(names)}
    tw.convert(write_safetensors(tmp_path / "m.safetensors", arrays), tmp_path / "out", dtype="bfloat16")
    found = tw.open_tensors(tmp_path / "out")
    assert {name: float(found[name].read()[0, 0]) for name in names} == {name: k for k, name in enumerate(names)}


@pytest.mark.parametrize("name", RESERVED)
def test_names_of_devices_are_no_file_names(name):
    made = encode_file_name(name)
    assert made.split(".")[0].lower() not in {each.split(".")[0].lower() for each in RESERVED}
    assert PureWindowsPath(made + ".npy").parts == (made + ".npy",)
    assert decode_file_name(made) == name


@given(st.text(max_size=40))
def test_any_name_is_refused_or_stays_in_its_directory(name):
    try:
        made = encode_file_name(name)
    except tw.FileFormatError:
        return
    assert made.isascii()
    assert made.isprintable()
    assert len(made) <= 200
    assert not set(made) & set('/\\:*?"<>|\0 ')


@pytest.mark.parametrize("name", ["x" * 201, "é" * 40, "a/" * 90, "\U0001f600" * 30])
def test_names_longer_than_a_file_name_can_be(tmp_path, name):
    """They are refused before anything is written, and one file still holds them."""
    path = write_safetensors(tmp_path / "m.safetensors", {"a": np.zeros(3, np.float32), name: np.ones(3, np.float32)})
    with pytest.raises(tw.FileFormatError, match=r"write one \.safetensors file"):
        tw.convert(path, tmp_path / "out", "npy")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.safetensors"]
    tw.convert(path, tmp_path / "o.safetensors", dtype="bfloat16", layout="row_major")
    assert tw.open_tensors(tmp_path / "o.safetensors")[name].read().tolist() == [1, 1, 1]

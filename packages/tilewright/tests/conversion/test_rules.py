# SPDX-License-Identifier: Apache-2.0
"""Rules: patterns, settings, and which of them win."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.conversion import Rules, Settings

settings = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["bfloat16", "bfloat8_b", "float32"]),
        "layout": st.sampled_from(["tile", "row_major"]),
        "skip": st.booleans(),
        "transpose": st.booleans(),
        "pad_value": st.integers(-3, 3),
    },
)
patterns = st.text("ab*?.", min_size=1, max_size=5)


@given(st.lists(st.tuples(patterns, settings), max_size=5), st.text("ab.", max_size=5))
def test_the_last_line_that_fits_wins_for_each_setting(lines, name):
    found = Rules.of(lines).settings(name)
    for key in ("dtype", "layout", "skip", "transpose", "pad_value"):
        said = [given[key] for pattern, given in lines if fnmatchcase(name, pattern) and key in given]
        assert getattr(found, key) == (said[-1] if said else None)


@given(st.lists(patterns, max_size=5), st.lists(st.text("ab.", max_size=5), max_size=4))
def test_patterns_that_fit_nothing_are_known(lines, names):
    unused = Rules.of([(pattern, {}) for pattern in lines]).unmatched_patterns(names)
    assert unused == [each for each in lines if not any(fnmatchcase(name, each) for name in names)]


def test_toml(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(
        """
        # comments are fine
        "*" = {dtype = "bfloat8_b", tile = [16, 32]}
        "*norm*" = {dtype = "bfloat16"}
        ["lm_head.*"]
        shard = "width"
        grid = [8, 1]
        """
    )
    rules = Rules.of(path, layout="tile")
    assert rules.settings("a.norm.w") == Settings(dtype="bfloat16", tile=[16, 32])
    assert rules.settings("lm_head.weight").shard == "width"
    assert rules.for_all.layout == "tile"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("a = ", tw.FileFormatError, "not TOML"),
        ('"*" = "bfloat16"', tw.FileFormatError, "expected settings for the pattern"),
        ('"*" = {dtyp = "bfloat16"}', tw.FormatError, "did you mean 'dtype'"),
        ('"*" = {zebra = 1}', tw.FormatError, "use one of dtype"),
        ('"*" = {dtype = "bfloat17"}', tw.FormatError, "rule '\\*'.*bfloat17"),
        ('"*" = {dtype = 3}', tw.FormatError, "rule"),
        ('"*" = {layout = "diagonal"}', tw.FormatError, "rule"),
        ('"*" = {tile = [31, 32]}', tw.FormatError, "no tiles of 31 x 32"),
        ('"*" = {skip = "no"}', tw.FormatError, "true or false"),
        ('"*" = {shard = "diagonal"}', tw.FormatError, "as shard, got"),
        ('"*" = {transpose = "yes"}', tw.FormatError, "transpose"),
        ('"*" = {pad_value = "x"}', tw.FormatError, "pad_value"),
        ('"*" = {chip = "abacus"}', tw.FormatError, "abacus"),
    ],
)
def test_wrong_rules_are_told(tmp_path, text, error, message):
    (tmp_path / "rules.toml").write_text(text)
    with pytest.raises(error, match=message):
        Rules.of(tmp_path / "rules.toml")


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "{b = " * 50_000, '"*" = {}\n' * (1 << 18)])
def test_rules_that_cost_more_than_they_say(tmp_path, text):
    (tmp_path / "rules.toml").write_text(text)
    with pytest.raises(tw.FileFormatError, match=r"nested too deeply|not TOML|more than"):
        Rules.of(tmp_path / "rules.toml")


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "rules.toml").write_bytes(b'"\xff" = {}')
    with pytest.raises(tw.FileFormatError, match="not TOML"):
        Rules.of(tmp_path / "rules.toml")


@pytest.mark.parametrize(
    ("key", "meant"),
    [("memory_layout", "shard"), ("memory_config", "shard"), ("buffer_type", "buffer"), ("core_grid", "grid")],
)
def test_names_of_ttnn_lead_to_ours(key, meant):
    with pytest.raises(tw.FormatError, match=f"unknown key '{key}' in .*; did you mean '{meant}'"):
        Rules.of(None, **{key: "height_sharded"})


def test_a_rule_that_makes_a_tensor_matches_none_and_is_not_noted():
    rules = Rules.of({"qkv": {"value": "join(tensor('q'), tensor('k'))"}, "*.wieght": {"dtype": "bfloat16"}})
    assert rules.unmatched_patterns(["q", "k"]) == ["*.wieght"]

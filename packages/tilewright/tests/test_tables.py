# SPDX-License-Identifier: Apache-2.0
"""Tables as text: names are never cut to nothing, columns are aligned, nouns are counted."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright._text import count_of, format_table, shorten_names

LAYERS = [f"model.layers.{k}.self_attn.{part}_proj.weight" for k in range(3) for part in "qkvo"]


def test_what_names_have_in_common_is_cut_in_its_middle():
    assert shorten_names(LAYERS, 30)[:2] == ["mo...0.self_attn.q_proj.weight", "mo...0.self_attn.k_proj.weight"]
    cache = [f"layers.{k}.wo_dtype_BFLOAT8_B_layout_TILE.tensorbin" for k in range(2)]
    assert shorten_names(cache, 40) == [f"layers.{k}.wo_dtype_BFLOA.._TILE.tensorbin" for k in range(2)]


def test_nothing_is_cut_in_a_pipe_or_where_it_would_not_help():
    assert shorten_names(LAYERS, None) == LAYERS
    assert shorten_names(LAYERS, 60) == LAYERS
    assert shorten_names(LAYERS, 12) == LAYERS  # what differs is longer
    assert shorten_names(["a" * 50], 20) == ["a" * 50]


def test_names_with_little_in_common_lose_their_own_middle():
    names = [f"encoder.layer.{k}.attention.output.LayerNorm.weight" for k in range(2)]
    assert shorten_names([*names, "embeddings.position_embeddings.weight"], 30) == [
        "encoder.layer.0.at..orm.weight",
        "encoder.layer.1.at..orm.weight",
        "embeddings.positio..ngs.weight",
    ]


def test_short_names_stay_as_they_are():
    assert shorten_names([*LAYERS, "lm_head.weight"], 30)[-1] == "lm_head.weight"


@given(
    st.lists(st.text("ab.01", min_size=1, max_size=12), min_size=2, max_size=6, unique=True),
    st.text("mod.", max_size=20),
    st.text("wt.", max_size=20),
    st.integers(5, 60),
)
def test_shortened_names_differ_and_fit_or_are_whole(middles, front, back, width):
    names = [front + middle + back for middle in middles]
    shortened = shorten_names(names, width)
    assert len(set(shortened)) == len(names)
    assert shortened == names or max(map(len, shortened)) <= width
    for name, short in zip(names, shortened, strict=True):
        start, _, end = short.partition("..") if short != name else (name, "", "")
        assert name.startswith(start[:1])
        assert name.endswith(end[-1:])


def test_columns_are_aligned_and_names_give_way():
    rows = [("tensor", "bytes"), *[(name, "98304") for name in LAYERS]]
    lines = format_table(rows, 40, right=[1], indent="  ")
    assert {len(line) for line in lines[1:]} == {len(lines[0])}
    assert max(map(len, lines)) <= 40
    assert max(map(len, format_table(rows))) > 40
    assert format_table([]) == []


def test_nouns_are_counted():
    assert [count_of(n, "tensor") for n in (0, 1, 2)] == ["0 tensors", "1 tensor", "2 tensors"]

# SPDX-License-Identifier: Apache-2.0
"""Text for terminals: never wider than asked, the same words with and without colors, and no control of its own."""

import re

import pytest

import tilewright as tw
from tilewright import views

from .things import scenes

SCENES = scenes()
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [80, 60, 132])
@pytest.mark.parametrize("name", SCENES)
def test_no_line_is_wider_than_asked(name, width):
    for color in (False, True):
        text = ESCAPE.sub("", views.to_text(SCENES[name], width=width, color=color))
        assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("name", SCENES)
def test_plain_text_has_no_escape_sequences(name):
    assert "\x1b" not in views.to_text(SCENES[name])
    assert "\x1b[" in views.to_text(SCENES[name], color=True)


def test_a_small_layout_is_written_out():
    text = views.to_text(views.layout_scene(tw.blocked_product(tw.row_major(2, 2), tw.row_major(2, 2)), memory=False))
    assert text.splitlines()[2:9] == [
        "  coordinates",
        "     0  1    2  3",
        "  0  0  1 │  4  5",
        "  1  2  3 │  6  7",
        "    ──────┼──────",
        "  2  8  9 │ 12 13",
        "  3 10 11 │ 14 15",
    ]


def test_long_grids_are_shortened():
    text = views.to_text(views.layout_scene(tw.row_major(128, 100), memory=False), height=20)
    assert len(text.splitlines()) < 40
    assert "⋮" in text
    assert "…" in text


def test_lanes_are_drawn_to_scale():
    lines = views.to_text(SCENES["tracks"]).splitlines()
    first = next(line for line in lines if line.startswith("  bank 0"))
    assert abs(first.count("/") - (len(first) - 9) / 2) <= 1


def test_names_cannot_command_the_terminal():
    grid = views.Grid(
        1, 1, (views.Field("x\x1b[2J", ("\x1b[31m",)),), title="\x1b]0;t\x07", color="x\x1b[2J", label="x\x1b[2J"
    )
    tracks = views.Tracks(("\x1b[2J",), (views.Span(0, 0, 1, "\x1b[2J", "\x1b[2J"),))
    text = views.to_text(views.Scene("\x1b[2J", (grid, tracks), (views.Fact("\x1b[2J", "\x07"),), note="\x9b2J"))
    assert not set(text) & {"\x1b", "\x07", "\x9b"}

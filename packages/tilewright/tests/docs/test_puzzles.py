# SPDX-License-Identifier: Apache-2.0
"""The puzzles: their solutions pass (the page runs them), and answers that look right are refused."""

import re

import pytest

import tilewright as tw
from tilewright import addr, bank

from .pages import DOCS, blocks_of
from .running import UNANSWERED, run_page

PAGE = DOCS / "puzzles.md"

WRONG = {
    1: [tw.Layout((3, 5), (1, 3)), tw.Layout((3, 5), (4, 1)), 4],
    2: [tw.Layout((4, 6), (1, 0)), tw.row_major(4, 6), tw.Layout((1, 6), (0, 1)), 6],
    3: [tw.Layout(8, 8), tw.Layout(8, 1), (8, 9)],
    4: [
        tw.blocked_product(tw.row_major(3, 4), tw.row_major(2, 2)),
        tw.blocked_product(tw.col_major(3, 4), tw.col_major(2, 2)),
        tw.row_major(6, 8),
        None,
    ],
    5: [tw.Layout((3, 4, 2), (8, 1, 4)), tw.Layout((3, 4, 2), (1, 3, 12)), 4],
    6: [
        tw.Layout((8, 6), (1 @ bank, 2048 @ addr)),
        tw.Layout((2, 8, 3), (2048 @ addr, 1 @ bank, 2048 @ addr)),
        tw.Layout((2, 8), (2048 @ addr, 1 @ bank)),
        48,
    ],
    7: [(39, 4), (19, 8), 2500],
    8: [tw.Swizzle(3, 0, 4), tw.Swizzle(4, 0, 5), tw.Layout(16)],
}
"""Answers that somebody might give."""


def test_wrong_answers_are_refused(tmp_path):
    checks = run_page(PAGE, tmp_path)
    for number, answers in WRONG.items():
        for answer in answers:
            try:
                checks[f"check_{number}"](answer)
            except AssertionError:
                continue
            pytest.fail(f"puzzle {number} takes {answer}")


def test_every_puzzle_has_a_cell_and_a_solution():
    blocks = blocks_of(PAGE)
    calls = [re.findall(r"^check_(\d)\(answer\)$", block.text, re.MULTILINE) for block in blocks]
    cells = [int(call[0]) for block, call in zip(blocks, calls, strict=True) if call and UNANSWERED in block.text]
    solutions = [
        int(call[0]) for block, call in zip(blocks, calls, strict=True) if call and UNANSWERED not in block.text
    ]
    assert cells == solutions == sorted(WRONG) == list(range(1, 9))

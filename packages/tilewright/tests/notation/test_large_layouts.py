# SPDX-License-Identifier: Apache-2.0
"""Layouts of very many modes are written at once, or refused at once: no time for each pair of modes."""

import time

import pytest

import tilewright as tw
from tilewright.notation import WRITABLE, parse, write


def flat_text(count):
    return f"({','.join(['2'] * count)}):({','.join([str(2 * k) for k in range(count)])})"


def nested_text(count):
    return f"(({','.join(['2'] * count)}),4):(({','.join([str(2 * k) for k in range(count)])}),1)"


def ones_text(count):
    return f"({','.join(['1'] * count)}):({','.join(['0'] * count)})"


@pytest.mark.parametrize("count", [1_000, 5_000, 50_000])
@pytest.mark.parametrize("text", [flat_text, nested_text, ones_text, lambda count: "Sw<3,0,3> o " + flat_text(count)])
def test_many_modes_take_no_time(text, count):
    start = time.process_time()
    layout = parse(text(count))
    for notation in WRITABLE:
        try:
            written = write(layout, notation)
        except tw.LayoutError:
            written = ""
        if notation in ("tilewright", "cute"):
            assert parse(written) == layout
    with pytest.raises(tw.LayoutError, match="code is written for at most 256 modes"):
        layout.code("cuda")
    assert time.process_time() - start < 5  # seconds; they were hours


def test_the_bound_is_named():
    with pytest.raises(
        tw.LayoutError, match="triton has at most 64 dimensions and 1024 modes within them, got 5000 and 50"
    ):
        write(parse(flat_text(5_000)), "triton")

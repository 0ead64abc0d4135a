# SPDX-License-Identifier: Apache-2.0
"""Texts of tensors, tiles and vectors, as Mojo recorded them."""

import re

import numpy as np
import pytest

from tilewright.formats import format_of
from tilewright.mojo.layout import TileTensor, row_major

from .golden import blocks_of, is_run, replay, tensor_of, text_of

NUMBER = re.compile(r"-?(?:inf|nan|\d[\d.e+-]*)")


def printed_tensor(case):
    t = tensor_of(case)
    if case["first_values"]:
        with np.errstate(over="ignore"):  # 1e10 is inf in float16, there as here
            t.ptr.store.data[: len(case["first_values"])] = case["first_values"]
    return t


def numbers(text, dtype):
    return np.array([float(part) for part in NUMBER.findall(text)]).astype(format_of(dtype).dtype)


def assert_text(text, wanted, case):
    """Compare texts; where Mojo does not print the fewest digits, what is around the numbers and their values."""
    if case.get("float_digits_not_shortest"):
        assert NUMBER.sub("#", text) == NUMBER.sub("#", wanted)
        np.testing.assert_array_equal(numbers(text, case["dtype"]), numbers(wanted, case["dtype"]))
    else:
        assert text == wanted


@replay("print")
def test_tensors_and_tiles(case):
    t = printed_tensor(case)
    shown = [result for result in case["results"] if result["args"]["expr"] != "vectorize"]
    assert shown
    for result in shown:
        args = result["args"]
        part = t if args["expr"] == "t" else t.tile[tuple(args["tile_sizes"])](*args["coords"])
        assert_text(format(part, "mojo"), result["print"], case)


@replay("print", select=lambda case: any(r["args"]["expr"] == "vectorize" for r in case["results"]))
def test_vectors(case):
    t = printed_tensor(case)
    ((widths, wanted),) = [
        (result["args"]["vector_shape"], result["print"])
        for result in case["results"]
        if result["args"]["expr"] == "vectorize"
    ]
    text = format(t.vectorize[tuple(widths)](), "mojo")
    divides = all(n % width == 0 for n, width in zip(t.shape, widths, strict=True))
    if is_run(widths, case["layout"]["stride"]) and divides:
        assert_text(text, wanted, case)
    else:
        ours = text_of(blocks_of(t.to_numpy().astype(object), widths))
        assert NUMBER.sub("#", text) == NUMBER.sub("#", ours)
        np.testing.assert_array_equal(numbers(text, case["dtype"]), numbers(ours, case["dtype"]))


@pytest.mark.parametrize("style", ["mojo", "pretty"])
def test_empty_tensors_print_nothing(style):
    assert format(TileTensor([], row_major[0, 3]()), style) == ""

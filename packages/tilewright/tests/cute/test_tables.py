# SPDX-License-Identifier: Apache-2.0
"""Strides, divides, reversed tuples and slices of swizzled layouts, as CuTe's own unit tests have them."""

import json
from pathlib import Path

import pytest

import tilewright as tw
from tilewright import cute
from tilewright.cute.layout import is_static

from .test_expressions import evaluate, read, read_tree

TABLES = json.loads((Path(__file__).parent.parent / "golden" / "cute" / "tables.json").read_text(encoding="utf-8"))


def spell(tree):
    """Return a tuple as CuTe prints it."""
    return f"({','.join(map(spell, tree))})" if isinstance(tree, tuple) else str(tree)


def test_compact_strides():
    for operation, shape, first, expected in TABLES["strides"]:
        strides = getattr(cute, operation)(read_tree(shape), *([read_tree(first)] if first else []))
        assert spell(strides) == expected, f"{operation}({shape}, {first})"
    assert len(TABLES["strides"]) > 40


def test_layouts():
    for operation, first, second, expected in TABLES["layouts"]:
        result = evaluate(operation, first, second)
        assert str(result) == expected.replace(" o _0", ""), f"{operation}({first}, {second})"


def test_tiles_past_a_mode_of_one_element():
    layout = cute.Layout((4, (3, 1)), (3, (1, 12)))
    divided = cute.logical_divide(layout, (cute.Layout(2), cute.Layout(6)))
    assert str(divided) == "((2,2),((3,2),1)):((3,6),((1,12),0))"
    swizzled = cute.composition(tw.Swizzle(2, 0, 2), layout)
    assert str(cute.logical_divide(swizzled, (2, 6))) == f"Sw<2,0,2> o {divided}"


def test_reversed_tuples():
    for value, expected in TABLES["reversed"]:
        assert spell(cute.reverse(read_tree(value))) == expected


@pytest.mark.parametrize("case", range(3))
def test_slices_of_swizzled_layouts(case):
    text, offsets = TABLES["swizzled"][case]
    layout = read(text)
    rows, columns = (layout.mode(k).size for k in (0, 1))
    assert [layout(i) for i in range(layout.size)] == offsets
    for i in range(rows):
        part, offset = cute.slice_and_offset((i, None), layout)
        assert [part(j) + offset for j in range(columns)] == [offsets[i + rows * j] for j in range(columns)], (text, i)
    for j in range(columns):
        part, offset = cute.slice_and_offset((None, j), layout)
        assert [part(i) + offset for i in range(rows)] == [offsets[i + rows * j] for i in range(rows)], (text, j)


def test_slices_and_dices_of_nested_modes():
    layout = cute.Layout(((3, 2), ((2, 3), 2)), ((4, 1), ((2, 15), 100)))
    assert str(cute.slice_(((1, None), ((None, 0), None)), layout)) == "(2,2,2):(1,2,100)"
    assert str(cute.slice_((2, ((0, None), None)), layout)) == "(3,2):(15,100)"
    matrix = cute.Layout((3, 4), (1, 4))
    assert cute.dice(0, matrix) == matrix
    assert str(cute.dice((0, None), matrix)) == "(3):(1)"
    assert cute.idx2crd(7, matrix) == cute.idx2crd(7, (3, 4))
    assert cute.crd2idx((1, 2), matrix) == cute.crd2idx((1, 2), (3, 4))
    assert is_static(cute.reverse((cute.Int(1), cute.Int(2))))


def test_a_layout_stands_for_its_shape():
    like = cute.make_layout_like(cute.Layout((4, 8), (2, 8)), cute.Layout((4, 4)))
    assert str(like) == "(4,4):(2,8)"

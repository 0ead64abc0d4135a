# SPDX-License-Identifier: Apache-2.0
"""The expressions of CuTe's own unit tests give what CuTe prints, or the same function in another form."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import cute

GOLDEN = Path(__file__).parent.parent / "golden" / "cute" / "expressions.json"
CASES = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
TOKEN = re.compile(r"[(),]|(?P<static>_?)(?P<number>\d+)(?P<basis>(?:@\d+)*)")


def read_tree(text):
    """Return a shape or stride that CuTe printed, with static integers and basis strides."""
    levels = [[]]
    for token in TOKEN.finditer(text):
        if token[0] == "(":
            levels.append([])
        elif token[0] == ")":
            branch = tuple(levels.pop())
            levels[-1].append(branch)
        elif token[0] != ",":
            number = cute.Int(token["number"]) if token["static"] else int(token["number"])
            path = [int(mode) for mode in reversed(token["basis"].split("@")[1:])]
            levels[-1].append(cute.ScaledBasis(int(number), *path) if path else number)
    return levels[0][0]


def read(text):
    """Return an operand: a shape, a layout, or a swizzled layout."""
    if text.startswith("Sw"):
        swizzle, _, layout = text.split(" o ", 2)
        return cute.composition(tw.Swizzle(*[int(n) for n in re.findall(r"-?\d+", swizzle)]), read(layout))
    shape, colon, stride = text.partition(":")
    return cute.Layout(read_tree(shape), read_tree(stride)) if colon else read_tree(shape)


def evaluate(operation, *operands):
    return getattr(cute, operation)(*[read(operand) for operand in operands if operand is not None])


def is_better(operation, layout, recorded):
    """Return whether ours is an inverse although CuTe's is smaller or repeats: dynamic strides, and none but 0."""
    result, layout = evaluate(operation, layout), read(layout)
    if operation == "right_inverse":
        return cute.size(result) > cute.size(read(recorded)) and all(
            layout(result(i)) == i for i in range(cute.size(result))
        )
    return operation == "left_inverse" and all(layout(result(layout(i))) == layout(i) for i in range(layout.size))


@pytest.mark.parametrize("operation", sorted({case[0] for case in CASES}))
def test_expressions_are_the_functions_that_cute_gives(operation):
    for _, first, second, recorded in [case for case in CASES if case[0] == operation]:
        result, expected = evaluate(operation, first, second), read(recorded)
        same = cute.size(result) == cute.size(expected) and tw.functionally_equal(result, expected)
        assert same or is_better(operation, first, recorded), f"{operation}({first}, {second}): {result}"


def test_static_expressions_print_as_cute_prints_them():
    dynamic = re.compile(r"(?<![_\d])\d|@")
    static = [case for case in CASES if not any(dynamic.search(re.sub("Sw<.*?>", "", part or "")) for part in case[1:])]
    assert len(static) > 120
    different = [case for case in static if str(evaluate(*case[:3])) != case[3].replace(" o _0", "")]
    # modes of extent 1 lose their strides; zeros have a shorter inverse; a break in a run of broadcasts
    assert len(different) <= 5, different


@pytest.mark.parametrize(
    ("shape", "count", "layout"),
    [
        ("((_64,_3),(_8,_8))", 128, "(_64,_2):(_1,_192)"),
        ("(_192,(_8,_8))", 128, "(_64,_2):(_1,_192)"),
        ("((_64,_3),(_8,_8))", 1024, "(_64,_16):(_1,_192)"),
        ("(_192,(_8,_8))", 1024, "(_64,_16):(_1,_192)"),
        ("((_64,_3))", 128, "_64:_1"),
    ],
)
def test_elements_are_taken_evenly(shape, count, layout):
    assert str(cute.domain_distribute(read_tree(shape), cute.Int(count))) == layout


def test_elements_are_taken_of_something():
    for shape, count in (((4, 0), 2), ((4, 8), 0)):
        with pytest.raises(tw.LayoutError, match="both must be positive"):
            cute.domain_distribute(shape, count)


def test_what_divides_evenly():
    assert cute.evenly_divides(16, (16,))
    assert cute.evenly_divides(((2, 8),), (16,))
    assert not cute.evenly_divides(8, (16,))
    assert not cute.evenly_divides((2, 8), (16,))
    assert cute.evenly_divides((32, 64), (cute.Layout(8, 2), 32))
    assert not cute.evenly_divides((32, 64), (cute.Layout(8, 3), 32))


def test_a_last_mode_of_one_element_continues():
    once = cute.Layout((4, 3, 1), (3, 1, 0))
    again = cute.composition(once, cute.Layout(24))
    assert [again(i) for i in range(24)] == [once(i) for i in range(24)] == [once(i) for i in range(12)] * 2


@pytest.mark.parametrize("product", ["logical_product", "zipped_product", "blocked_product", "raked_product"])
def test_products_repeat_the_innermost_layout(product):
    swizzled = cute.composition(tw.Swizzle(2, 0, 2), cute.Layout((4, 4), (4, 1)))
    nested = tw.ComposedLayout(cute.Layout(16, 2), swizzled)
    copies = cute.Layout((2, 3))
    inner = getattr(cute, product)(cute.Layout((4, 4), (4, 1)), copies)
    for block in (swizzled, nested):
        repeated = getattr(cute, product)(block, copies)
        outer = tw.Swizzle(2, 0, 2)
        scale = 1 if block is swizzled else 2
        assert [repeated(i) for i in range(inner.size)] == [scale * outer(inner(i)) for i in range(inner.size)]


@given(st.permutations(range(5)), st.integers(1, 2), st.integers(0, 1), st.sampled_from([-3, -2, 2, 3]))
def test_swizzles_move_out_of_compositions(order, bits, base, shift):
    layout = cute.Layout((2,) * 5, tuple([2 << k for k in order]))
    inner = cute.composition(tw.Swizzle(bits, base, shift), cute.Layout((8, 4), (4, 1)))
    composed = cute.composition(layout, inner)
    assert [composed(i) for i in range(32)] == [layout(inner(i)) for i in range(32)]

# SPDX-License-Identifier: Apache-2.0
"""The steps of an operation end with its result, and each step holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Layout, LayoutError, cute
from tilewright.analysis import explain_steps

from ..cases import examples

DIVIDES = ("logical_divide", "zipped_divide", "tiled_divide", "flat_divide")
PRODUCTS = (
    *("logical_product", "zipped_product", "tiled_product", "flat_product"),
    *("blocked_product", "raked_product"),
)
layouts = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 6)), min_size=1, max_size=3).map(
    lambda modes: Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes))
)
operands = st.one_of(layouts, st.integers(1, 6), st.tuples(st.integers(1, 3)), st.tuples(layouts, st.integers(1, 3)))


def check_steps(operation, *values):
    """Assert that the steps end with the result, and that those of the algebra's own operations hold."""
    steps = explain_steps(operation, *values)
    result = getattr(tw.layout, operation)(*values)
    case = f"{operation}{values}"
    assert steps[-1].title == operation, case
    assert steps[-1].result == result, case
    for step in steps:
        assert step.sentence, case
        assert str(step), case
        operate = getattr(tw.layout, step.title, None)
        if operate and step.title != "complement":  # that of a product may go on past its bound
            again = operate(*step.operands)
            assert tw.functionally_equal(again, step.result), f"{case}: {step}"
    return steps


@examples(40)
@given(st.sampled_from(("compose", *DIVIDES, *PRODUCTS)), layouts, operands)
def test_steps_end_with_the_result(operation, layout, operand):
    try:
        getattr(tw.layout, operation)(layout, operand)
    except tw.TilewrightError as problem:
        with pytest.raises(type(problem)):
            explain_steps(operation, layout, operand)
        return
    check_steps(operation, layout, operand)


@examples(40)
@given(st.sampled_from(("coalesce", "complement", "right_inverse", "left_inverse")), layouts)
def test_steps_of_one_layout(operation, layout):
    try:
        getattr(tw.layout, operation)(layout)
    except tw.TilewrightError as problem:
        with pytest.raises(type(problem)):
            explain_steps(operation, layout)
        return
    check_steps(operation, layout)


def test_known_steps():
    gap, repeat = [step for step in check_steps("complement", Layout(4, 2), 24) if step.title in ("gap", "repeat")]
    assert (gap.result, repeat.result) == (Layout(2, 1), Layout(3, 8))
    titles = [step.title for step in check_steps("compose", Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))]
    assert titles == ["divide", "compose", "compose", "compose"]
    assert [step.title for step in check_steps("zipped_divide", Layout((8, 6)), (2, 3))][-2:] == [
        "logical_divide",
        "zipped_divide",
    ]
    assert "0 -> 0 -> 0, 1 -> 2 -> 4" in check_steps("compose", Layout(16, 2), Layout(4, 2))[-1].sentence
    swizzled = tw.compose(tw.Swizzle(2, 0, 2), Layout(16))
    check_steps("compose", swizzled, Layout(4, 2))
    check_steps("right_inverse", swizzled)
    check_steps("compose", tw.Layout((4, 8), (1 @ tw.bank, 1 @ tw.addr)), Layout(4, 2))
    check_steps("logical_divide", Layout((8, 6)), (2, None))
    check_steps("logical_product", Layout(4), Layout(8, 1 @ tw.core.x))
    assert explain_steps(cute.composition, Layout(8, 2), Layout(4))[-1].result == Layout(4, 2)


def test_what_has_no_steps():
    for arguments, reason in (
        (("size", Layout(4)), "cannot explain 'size'; operations with steps are blocked_product"),
        ((len, Layout(4)), "cannot explain 'len'"),
        (("compose", Layout(4)), "compose takes 2 operands, got 1"),
        (("complement",), "complement takes 1 or 2 operands, got 0"),
        (("logical_divide", Layout(4), (2, 2)), "more modes"),
    ):
        with pytest.raises(LayoutError, match=reason):
            explain_steps(*arguments)

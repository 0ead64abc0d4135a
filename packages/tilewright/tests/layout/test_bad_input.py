# SPDX-License-Identifier: Apache-2.0
"""Bad input: each mistake gets the right exception, and a message that names the value, the rule and the remedy."""

import ast
import inspect
import re
from contextlib import suppress
from itertools import product as combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Layout, LayoutError, Swizzle, addr, bank, cute, row_major
from tilewright.errors import CoordinateError
from tilewright.layout import Guard
from tilewright.layout.modes import compact_layout
from tilewright.layout.tuples import index_to_coordinate
from tilewright.mojo.layout import Idx

from .strategies import layouts, leaves, nested_like

GRID = Layout((4, 8))
NESTED = Layout((4, (2, 3)))
OVERLAPPING = Layout((4, 4), (1, 2))


def nested(depth, leaf=4):
    for _ in range(depth):
        leaf = (leaf,)
    return leaf


def case(name, call, error, *words):
    return pytest.param(call, error, words, id=name)


WRONG_VALUES = [
    ("str", "4"),
    ("float", 4.0),
    ("NoneType", None),
    ("dict", {4: 1}),
    ("set", {4}),
    ("bool", True),
    ("bytes", b"4"),
]

WRONG_TYPES = [
    test
    for kind, value in WRONG_VALUES
    for test in (
        case(f"shape-{kind}", lambda v=value: Layout(v), TypeError, "shape", kind),
        case(f"shape-in-tuple-{kind}", lambda v=value: Layout((4, v)), TypeError, "shape", kind),
        case(f"shape-nested-{kind}", lambda v=value: Layout((4, (2, v)), (1, (4, 8))), TypeError, "shape", kind),
        case(f"stride-in-tuple-{kind}", lambda v=value: Layout((4, 8), (1, v)), TypeError, "stride", kind),
        case(f"stride-nested-{kind}", lambda v=value: Layout((4, (2, 3)), (1, (4, v))), TypeError, "stride", kind),
        case(f"stride-beside-axis-{kind}", lambda v=value: Layout((4, 2), (1 @ bank, v)), TypeError, "stride", kind),
        case(f"offset-{kind}", lambda v=value: Layout(4, offset=v), TypeError, "offset", kind),
        case(f"row-major-{kind}", lambda v=value: row_major(4, v), TypeError, "shape", kind),
        case(f"idx-{kind}", lambda v=value: Idx(v), TypeError, "Idx", kind),
        case(f"static-idx-{kind}", lambda v=value: Idx[v], TypeError, "Idx", kind),
        case(f"copies-{kind}", lambda v=value: tw.replicate(GRID, v, 1), TypeError, "number of copies", kind),
        case(f"copy-step-{kind}", lambda v=value: tw.replicate(GRID, 2, v), TypeError, "stride", kind),
        case(f"swizzle-bits-{kind}", lambda v=value: Swizzle(v, 0, 4), TypeError, "bits", kind),
        case(f"swizzle-base-{kind}", lambda v=value: Swizzle(1, v, 4), TypeError, "base", kind),
        case(f"swizzle-shift-{kind}", lambda v=value: Swizzle(1, 0, v), TypeError, "shift", kind),
        case(f"mask-{kind}", lambda v=value: cute.make_swizzle(v, 1), TypeError, "mask", kind),
        case(f"pad-{kind}", lambda v=value: tw.pad(GRID, (4, v)), TypeError, "extent", kind),
        case(f"within-{kind}", lambda v=value: tw.with_logical_shape(GRID, (4, v)), TypeError, "extent", kind),
        case(f"order-{kind}", lambda v=value: cute.make_ordered_layout((4, 8), (0, v)), TypeError, "order", kind),
        case(f"guard-limit-{kind}", lambda v=value: Layout(4, guards=(Guard(1, v),)), TypeError, "limit", kind),
        case(f"width-{kind}", lambda v=value: cute.upcast(GRID, v), TypeError, "width", kind),
    )
] + [
    case(f"stride-{kind}", lambda v=value: Layout(4, v), TypeError, "stride", kind)
    for kind, value in WRONG_VALUES
    if value is not None  # no strides at all means the default ones
] + [
    case("shape-array", lambda: Layout(np.array([2, 3])), TypeError, "shape", "ndarray"),
    case("shape-numpy-bool", lambda: Layout(np.True_), TypeError, "shape", "bool"),
    case("shape-numpy-float", lambda: Layout(np.float64(4)), TypeError, "shape", "float64"),
    case("joined-with-shape", lambda: Layout(Layout(4), (3,)), TypeError, "joined", "tuple"),
    case("shape-and-layout", lambda: Layout((4, 8), (1, 4), Layout(4)), TypeError, "Layout"),
    case("guard", lambda: Layout(4, guards=(3,)), TypeError, "Guard", "int"),
    case("guard-on-axis", lambda: Layout(4, guards=(Guard(1 @ bank, 3),)), TypeError, "guard", "Place"),
    case("replica", lambda: Layout(4, replicas=(2,)), TypeError, "pairs", "2"),
    case("composed-outer", lambda: tw.ComposedLayout("x", GRID), TypeError, "outer", "str"),
    case("composed-inner", lambda: tw.ComposedLayout(GRID, Swizzle(1, 0, 1)), TypeError, "inner", "Swizzle"),
    case("tiler", lambda: tw.logical_divide(GRID, Swizzle(1, 0, 1)), TypeError, "tiler", "Swizzle(1, 0, 1)"),
    case("compose-str", lambda: tw.compose(GRID, "x"), TypeError, "str", "'x'"),
    case("compose-bool", lambda: tw.compose(GRID, True), TypeError, "bool"),
    case("divide-float", lambda: tw.logical_divide(GRID, (2, 2.5)), TypeError, "float", "2.5"),
    case("product-str", lambda: tw.logical_product(GRID, "x"), TypeError, "str", "'x'"),
    case("swizzled-float", lambda: Swizzle(3, 0, 3)(1.5), TypeError, "offset", "float"),
    case("swizzled-bool", lambda: Swizzle(3, 0, 3)(True), TypeError, "offset", "bool"),
    case("elem-scale", lambda: cute.elem_scale((1, 2), 3), TypeError, "(1, 2)", "2 scales"),
]  # fmt: skip

BROKEN_RULES = [
    case("negative-extent", lambda: Layout(-1), LayoutError, "nonnegative", "-1"),
    case("negative-extent-nested", lambda: Layout((2, (3, -4))), LayoutError, "nonnegative", "-4"),
    case("negative-extent-dynamic", lambda: Layout((2, Idx(-4))), LayoutError, "nonnegative", "-4"),
    case("negative-tile", lambda: tw.logical_divide(GRID, -2), LayoutError, "nonnegative", "-2"),
    case("strides-too-few", lambda: Layout((4, 8), (1,)), LayoutError, "(1,)", "(4, 8)", "2 strides"),
    case("strides-too-many", lambda: Layout((4, 8), (1, 2, 3)),
         LayoutError, "(1, 2, 3)", "(4, 8)", "2 strides"),
    case("stride-for-tuple", lambda: Layout((4, 8), 1), LayoutError, "stride 1", "(4, 8)", "2 strides"),
    case("strides-for-extent", lambda: Layout(4, (1,)), LayoutError, "(1,)", "4 needs one stride"),
    case("strides-not-nested", lambda: Layout((4, (2, 3)), (1, 2)), LayoutError, "(2, 3) needs 2 strides"),
    case("strides-nested", lambda: Layout((4, 8), (1, (2, 3))), LayoutError, "8 needs one stride", "(2, 3)"),
    case("strides-for-nothing", lambda: Layout((), 1), LayoutError, "does not match shape ()"),
    case("guard-not-nested", lambda: Layout(4, guards=(Guard((1, 2), 3),)), LayoutError, "(1, 2)", "shape 4"),
    case("deep-shape", lambda: Layout(nested(65)), LayoutError, "64 levels", "flatten"),
    case("very-deep-shape", lambda: Layout(nested(5000)), LayoutError, "64 levels", "flatten"),
    case("deep-row-major", lambda: row_major(nested(5000)), LayoutError, "64 levels"),
    case("reach-default", lambda: Layout((2**32, 2**32)), LayoutError, "2^63 - 1", "smaller"),
    case("reach-one-too-far", lambda: Layout(2**63 + 1), LayoutError, str(2**63), "2^63 - 1"),
    case("reach-stride", lambda: Layout(3, 2**62), LayoutError, str(2**63), "2^63 - 1"),
    case("reach-negative", lambda: Layout(3, -(2**62)), LayoutError, "2^63 - 1"),
    case("reach-axis", lambda: Layout(3, 2**62 @ bank), LayoutError, "2^63 - 1"),
    case("reach-row-major", lambda: row_major(2**40, 2**40), LayoutError, "2^63 - 1"),
    case("reach-offset", lambda: Layout(4, offset=2**63), LayoutError, "2^63 - 1"),
    case("reach-sum", lambda: Layout(4) + 2**63, LayoutError, "2^63 - 1"),
    case("reach-joined", lambda: Layout(Layout(2**62), Layout(2**62, 2)), LayoutError, "2^63 - 1"),
    case("rank-of-coordinate", lambda: NESTED(0, 0, 0, 0), LayoutError, "rank 4", "(4, (2, 3))", "1, 2 or 3"),
    case("no-coordinate", lambda: NESTED(*()), LayoutError, "rank 0", "(4, (2, 3))"),
    case("form-of-coordinate", lambda: NESTED((0, 0), 0), LayoutError, "(0, 0)", "shape 4", "one integer"),
    case("rank-of-idx2crd", lambda: cute.crd2idx((1, 2, 3), (4, 8)),
         LayoutError, "(1, 2, 3)", "(4, 8)", "differ in rank"),
    case("rank-of-strides", lambda: cute.crd2idx((1, 2), (4, 8), (1, 2, 3)),
         LayoutError, "(1, 2, 3)", "same rank"),
    case("rank-of-crd2crd", lambda: cute.crd2crd((1, 2), (4, 8, 2)), LayoutError, "(1, 2)", "differ in rank"),
    case("source-of-crd2crd", lambda: cute.crd2crd((1, 2), 8), LayoutError, "(1, 2)", "src_shape"),
    case("outside-index", lambda: index_to_coordinate(32, (4, 8)), CoordinateError, "32", "(4, 8)", "0 to 31"),
    case("compose-modes", lambda: tw.compose(GRID, (2, 2, 2)), LayoutError, "more modes", "(4, 8)"),
    case("compose-nested-modes", lambda: tw.compose(GRID, ((2, 2), 2)), LayoutError, "more modes", "shape 4"),
    case("divide-modes", lambda: tw.logical_divide(GRID, (2, 2, 2)), LayoutError, "more modes", "(2, 2, 2)"),
    case("zipped-divide-modes", lambda: tw.zipped_divide(GRID, (2, 2, 2)), LayoutError, "more modes"),
    case("product-modes", lambda: tw.logical_product(GRID, (2, 2, 2)),
         LayoutError, "more modes", "(2, 2, 2)"),
    case("coalesce-modes", lambda: tw.coalesce(GRID, (1, 1, 1)), LayoutError, "more modes"),
    case("filter-modes", lambda: cute.filter(GRID, (1, 1, 1)), LayoutError, "more modes"),
    case("like-modes", lambda: cute.make_layout_like(GRID, (4, 4, 4)), LayoutError, "more flat modes"),
    case("compose-swizzles", lambda: tw.compose(Swizzle(1, 0, 1), Swizzle(1, 0, 1)), LayoutError, "no shape"),
    case("compose-not-strided", lambda: tw.compose(Layout((3, 5), (5, 1)), Layout(6, 2), strided=True),
         LayoutError, "divisible", "(3,5):(5,1)", "6:2", "strided=True"),
    case("compose-not-inside", lambda: tw.compose(Layout(4), Layout(8), exact=True),
         LayoutError, "exact=True", "4:1", "8:1"),
    case("order-twice", lambda: compact_layout((4, 8), (0, 0)),
         LayoutError, "permutation", "(0, 0)", "(4, 8)"),
    case("order-beyond", lambda: compact_layout((4, 8), (1, 2)),
         LayoutError, "permutation", "0 to 1"),
    case("order-short", lambda: compact_layout((4, 8), (0,)), LayoutError, "permutation"),
    case("order-of-tiles", lambda: tw.tile_to_shape(GRID, (8, 8), (0, 0)), LayoutError, "permutation"),
    case("tile-rank", lambda: tw.tile_to_shape(GRID, 8),
         LayoutError, "same number of top-level modes", "(4,8):(1,4)"),
    case("tile-rank-3", lambda: tw.tile_to_shape(GRID, (8, 8, 8)),
         LayoutError, "same number of top-level modes"),
    case("tile-exact", lambda: tw.tile_to_shape(GRID, (6, 8), exact=True),
         LayoutError, "exact multiple", "(6, 8)", "(4, 8)"),
    case("divide-exact", lambda: tw.logical_divide(Layout(10), 4, exact=True), LayoutError, "exact=True"),
    case("no-copies", lambda: tw.replicate(GRID, 0, 1), LayoutError, "copies", "at least 1, got 0"),
    case("fewer-copies", lambda: tw.replicate(GRID, -1, 1), LayoutError, "copies", "at least 1, got -1"),
    case("no-replicas", lambda: Layout(4, replicas=((0, 1),)), LayoutError, "copies", "at least 1, got 0"),
    case("pad-smaller", lambda: tw.pad(GRID, (3, 8)), LayoutError, "3 is less than the extent 4", "(3, 8)"),
    case("pad-rank", lambda: tw.pad(GRID, (4, 8, 9)), LayoutError, "2 modes", "3 extents"),
    case("pad-nested", lambda: tw.pad(GRID, (4, (8, 9))), LayoutError, "nested", "(4, (8, 9))"),
    case("pad-negative", lambda: tw.pad(GRID, (4, -8)), LayoutError, "nonnegative", "-8"),
    case("within-rank", lambda: tw.with_logical_shape(GRID, (4,)), LayoutError, "2 modes", "1 extents"),
    case("within-negative", lambda: tw.with_logical_shape(GRID, (4, -1)), LayoutError, "nonnegative", "-1"),
    case("fields-overlap", lambda: Swizzle(3, 0, 2),
         LayoutError, "overlap", "at least 3", "Swizzle(3, 0, 2)"),
    case("fields-overlap-below", lambda: Swizzle(3, 0, -2), LayoutError, "overlap", "at least 3"),
    case("negative-bits", lambda: Swizzle(-1, 0, 3), LayoutError, "nonnegative"),
    case("negative-base", lambda: Swizzle(1, -1, 3), LayoutError, "nonnegative"),
    case("masks-differ", lambda: cute.make_swizzle(0b111, 0b11),
         LayoutError, "same number of bits", "0b111", "0b11"),
    case("mask-with-gap", lambda: cute.make_swizzle(0b101, 0b11), LayoutError, "adjacent", "0b101"),
    case("masks-overlap", lambda: cute.make_swizzle(0b11, 0b110), LayoutError, "overlap", "0b110"),
    case("mask-negative", lambda: cute.make_swizzle(-1, 1), LayoutError, "nonnegative"),
    case("complement-negative", lambda: tw.complement(Layout(4, -1)),
         LayoutError, "negative stride -1", "4:-1"),
    case("complement-negative-mode", lambda: tw.complement(Layout((4, 2), (2, -1))),
         LayoutError, "negative stride -1"),
    case("complement-overlap", lambda: tw.complement(OVERLAPPING),
         LayoutError, "not injective", "(4,4):(1,2)"),
    case("complement-composed", lambda: tw.complement(tw.compose(Swizzle(2, 0, 2), row_major(4, 4))),
         LayoutError, "not strided"),
    case("left-inverse-overlap", lambda: tw.left_inverse(OVERLAPPING),
         LayoutError, "not injective", "(4,4):(1,2)"),
    case("left-inverse-empty", lambda: tw.left_inverse(Layout(0)), LayoutError, "empty"),
    case("left-inverse-copies", lambda: tw.left_inverse(tw.replicate(GRID, 2, 64)),
         LayoutError, "sets", "replicas"),
    case("right-inverse-copies", lambda: tw.right_inverse(tw.replicate(GRID, 2, 64)),
         LayoutError, "sets", "replicas"),
    case("right-inverse-offset", lambda: tw.right_inverse(Layout(4) + 5),
         LayoutError, "no coordinate maps to 0", "L - 5"),
    case("product-overlap", lambda: tw.logical_product(OVERLAPPING, 3),
         LayoutError, "not injective", "(4,4):(1,2)"),
    case("product-negative", lambda: tw.logical_product(Layout(4, -1), 3), LayoutError, "negative stride -1"),
    case("group-nothing", lambda: tw.layout.group(GRID, 1, 1), LayoutError, "cannot group", "modes 0 to 1"),
    case("group-beyond", lambda: tw.layout.group(GRID, 0, 3), LayoutError, "cannot group", "modes 0 to 1"),
    case("unflatten-nested", lambda: cute.unflatten(((1, 2), 3), (0, (0, 0))), LayoutError, "flat entries", "((1, 2)"),
    case("unflatten", lambda: tw.layout.unflatten(Layout((2, 3)), (0, (0, 0))), LayoutError, "3 flat entries", "got 2"),
    case("mode-beyond", lambda: GRID.mode(2), LayoutError, "no mode", "modes 0 to 1"),
    case("mode-of-tuple", lambda: cute.mode((4, 8), 2), LayoutError, "no mode 2", "modes 0 to 1"),
    case("replace-beyond", lambda: cute.replace(GRID, 2, Layout(3)), LayoutError, "no mode 2", "modes 0 to 1"),
    case("width-zero", lambda: cute.upcast(GRID, 0), LayoutError, "at least 1"),
    case("widths", lambda: cute.recast(GRID, 8, 12), LayoutError, "8", "12", "divisible"),
    case("upcast", lambda: cute.upcast(GRID, 3), LayoutError, "divides", "by 3"),
    case("shape-div", lambda: cute.shape_div(6, 4), LayoutError, "6", "4", "divisible"),
    case("shape-div-rank", lambda: cute.shape_div((6, 4), (3,)), LayoutError, "rank", "(6, 4)", "(3,)"),
    case("safe-div", lambda: cute.safe_div(6, 4), LayoutError, "6 is not divisible by 4"),
    case("safe-div-zero", lambda: cute.safe_div(6, 0), LayoutError, "divisible"),
    case("inner-product", lambda: cute.inner_product((1, 2), (1,)), LayoutError, "(1, 2)", "(1,)", "same rank"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), WRONG_TYPES + BROKEN_RULES)
def test_a_mistake_is_named_with_its_value_and_its_rule(call, error, words):
    with pytest.raises(error) as caught:
        call()
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, f"{missing} not in {str(caught.value)!r}"


@pytest.mark.parametrize(("call", "error", "words"), BROKEN_RULES)
def test_every_broken_rule_is_also_a_value_error(call, error, words):
    with pytest.raises(ValueError, match=r"\w") as caught:
        call()
    assert isinstance(caught.value, tw.TilewrightError)


def test_a_refused_value_stays_refused():
    shape, stride = (2**40, 2**40), (1, 2**40)
    for _ in range(3):
        with pytest.raises(LayoutError, match="2\\^63"):
            Layout(shape, stride)


def test_the_edge_of_what_is_allowed_is_allowed():
    assert Layout(2**63).cosize == 2**63
    assert Layout((2**31, 2**32)).cosize == 2**63
    assert Layout(2, 2**63 - 1)(1) == 2**63 - 1
    assert Layout(nested(64)).depth == 64
    assert Layout((0, 2**70)).size == 0
    assert tw.pad(GRID, (4, 8)) == GRID
    assert tw.replicate(GRID, 1, 5)(0) == {0}
    assert Swizzle(3, 0, 3)(0) == Swizzle(0, 0, 0)(0) == 0


# Collisions


def collides(layout):
    """Return whether two coordinates share a place, broadcast modes counted once."""
    extents = [1 if step == 0 else n for n, step in zip(leaves(layout.shape), leaves(layout.stride), strict=True)]
    shape = nested_like(layout.shape, extents)
    found = [layout(nested_like(shape, at)) for at in combinations(*map(range, extents))]
    return len(set(found)) < len(found)


def named_pair(message):
    """Return the two coordinates that a message blames."""
    match = re.search(r"coordinates (.+?) and (.+?) (?:share|collide)", message)
    assert match, message
    return ast.literal_eval(match[1]), ast.literal_eval(match[2])


def assert_blames_a_real_pair(layout, caught):
    a, b = named_pair(str(caught.value))
    assert a != b
    assert layout(a) == layout(b)
    assert str(layout) in str(caught.value)


@st.composite
def upward_layouts(draw):
    """Return layouts with any strides that are not negative, so most of them overlap."""
    layout = draw(layouts(kinds=("arbitrary", "compact", "broadcast"), offsets=False, max_size=48))
    return Layout(layout.shape, nested_like(layout.shape, [abs(step) for step in leaves(layout.stride)]))


@given(upward_layouts())
def test_the_complement_refuses_exactly_what_overlaps_and_names_a_pair(layout):
    if collides(layout):
        with pytest.raises(LayoutError, match="not injective") as caught:
            tw.complement(layout, 200)
        assert_blames_a_real_pair(layout, caught)
    else:
        tw.complement(layout, 200)


@given(layouts(offsets=False, max_size=48))
def test_the_left_inverse_refuses_exactly_what_overlaps_and_names_a_pair(layout):
    if collides(layout):
        with pytest.raises(LayoutError, match="not injective") as caught:
            tw.left_inverse(layout)
        assert_blames_a_real_pair(layout, caught)
    else:
        tw.left_inverse(layout)


@given(upward_layouts(), st.integers(1, 4))
def test_products_refuse_exactly_what_overlaps_and_name_a_pair(layout, copies):
    if collides(layout):
        for multiply in (tw.logical_product, tw.blocked_product, tw.layout.raked_product, tw.layout.zipped_product):
            with pytest.raises(LayoutError, match="not injective") as caught:
                multiply(layout, Layout(copies))
            assert_blames_a_real_pair(layout, caught)
    else:
        assert tw.logical_product(layout, copies).size == layout.size * copies


# Layouts of the wrong kind: a function that needs strides says so, whatever else it is given.

KINDS = {
    "swizzled": tw.ComposedLayout(Swizzle(2, 0, 2), row_major(4, 4)),
    "composed": tw.ComposedLayout(Layout((5, 4), (1, 7)), Layout((3, 3), (1, 5))),
    "pages": tw.layout.PagedLayout(4, [0, 8, 4]),
    "inverse": tw.left_inverse(Layout((2, 2), (2, 3))),
    "swizzle": Swizzle(2, 0, 2),
    "replicated": tw.replicate(GRID, 2, 100),
    "named": Layout((4, 4), (1 @ bank, 1 @ addr)),
    "padded": tw.pad(Layout((3, 3)), (4, 4)),
    "empty": Layout((0, 3)),
}
SECOND = [None, 2, -1, (2, 2), "x", 1.5, Layout(2), *KINDS.values()]
FUNCTIONS = {
    name: function
    for name, function in vars(tw.layout).items()
    if inspect.isfunction(function) and name in tw.layout.__all__
}


def positions(function):
    return sum(each.default is each.empty and each.kind < 2 for each in inspect.signature(function).parameters.values())


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if 1 <= positions(function) <= 2])
def test_layouts_of_every_kind_are_taken_or_refused_with_an_explanation(name):
    function = FUNCTIONS[name]
    for first in KINDS.values():
        for rest in combinations(SECOND, repeat=positions(function) - 1):
            with suppress(tw.TilewrightError, TypeError):
                function(first, *rest)


def test_tilers_lie_on_no_axis():
    with pytest.raises(LayoutError, match=r"a tiler must not have named axes"):
        tw.logical_divide(GRID, KINDS["named"])

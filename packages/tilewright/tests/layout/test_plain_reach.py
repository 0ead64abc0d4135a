# SPDX-License-Identifier: Apache-2.0
"""The check of shapes and strides in C, and the one in Python: layouts and errors do not depend on which there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import Layout, addr
from tilewright.layout import axes
from tilewright.layout import layout as layouts
from tilewright.layout.tuples import TaggedInt

_calls = pytest.importorskip("tilewright._calls")

INTEGERS = st.one_of(st.integers(-3, 70), st.sampled_from([2**31, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**70)]))
LEAVES = st.one_of(
    *[INTEGERS] * 4, st.sampled_from([True, 2.0, None, "x", np.int64(3), TaggedInt(4), 2 @ addr, [2, 3]])
)
TREES = st.recursive(LEAVES, lambda tree: st.lists(tree, max_size=4).map(tuple), max_leaves=12)


def leaf_pairs(shapes, strides):
    """Return pairs of trees that are nested alike."""
    pair = st.recursive(st.tuples(shapes, strides), lambda inner: st.lists(inner, max_size=4), max_leaves=12)
    return pair.map(lambda tree: (pick(tree, 0), pick(tree, 1)))


def pick(tree, side):
    return tuple([pick(branch, side) for branch in tree]) if isinstance(tree, list) else tree[side]


def attempt(shape, stride):
    """Return the layout as text, or its error."""
    try:
        made = Layout(shape, stride)
    except (TypeError, ValueError) as problem:
        return type(problem), str(problem)
    return repr(made), made._tagged_leaves(), made.flat_modes(), made.canonical_modes()


def check(shape, stride):
    expected, found = axes._plain_reach(shape, stride), _calls.plain_reach(shape, stride)
    small = all(-(2**63) <= leaf < 2**63 for tree in (shape, stride) for leaf in axes.leaves(tree) if type(leaf) is int)
    assert found == (expected if expected < 2**63 and small else -1)
    with pytest.MonkeyPatch.context() as patch:
        results = []
        for function in (_calls.plain_reach, axes._plain_reach):
            patch.setattr(layouts, "plain_reach", function)
            results.append(attempt(shape, stride))
    assert results[0] == results[1]


@given(TREES, TREES)
def test_any_trees(shape, stride):
    check(shape, stride)


@given(leaf_pairs(LEAVES, LEAVES))
def test_trees_of_one_nesting(pair):
    check(*pair)


@given(leaf_pairs(st.integers(1, 2**12), st.integers(-(2**40), 2**40)))
def test_plain_layouts(pair):
    assert _calls.plain_reach(*pair) >= 0
    check(*pair)


@pytest.mark.parametrize("depth", [63, 64, 65, 2000])
def test_deep_trees(depth):
    tree = 1
    for _ in range(depth):
        tree = (tree,)
    found = _calls.plain_reach(tree, tree)
    assert found == (0 if depth <= 64 else -1)
    assert found == axes._plain_reach(tree, tree)

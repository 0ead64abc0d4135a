# SPDX-License-Identifier: Apache-2.0
"""Equality agrees with behaviour: no public function tells two layouts apart that compare equal."""

import inspect
from contextlib import suppress

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Axis, ComposedLayout, Layout, Place, Swizzle, cute
from tilewright.layout import Guard, InverseLayout, PagedLayout
from tilewright.mojo.layout import Idx
from tilewright.mojo.layout.tile_layout import make_dynamic_layout

from ..cases import examples
from .strategies import layouts, named_layouts

NAMES = {
    "ComposedLayout": ComposedLayout, "Guard": Guard, "Idx": Idx, "InverseLayout": InverseLayout, "Layout": Layout,
    "PagedLayout": PagedLayout, "Place": Place, "Swizzle": Swizzle,
}  # fmt: skip
UNARY = [
    tw.coalesce,
    tw.flatten,
    cute.sort,
    cute.filter,
    tw.complement,
    tw.left_inverse,
    tw.right_inverse,
    cute.nullspace,
]
UNARY += [
    tw.is_injective,
    tw.is_bijective,
    tw.is_contiguous,
    cute.cosize,
    cute.size,
    cute.rank,
    cute.depth,
    cute.make_layout_like,
]
UNARY += [lambda each: tw.zipped_divide(each, 2), lambda each: tw.logical_product(each, 2), lambda each: each + 3]
UNARY += [lambda each: tw.compose(each, 2), lambda each: cute.downcast(each, 2), lambda each: each.project("bank")]


def variants(layout):
    """Return layouts that are alike, each in a way that some function could notice."""
    yield layout
    yield eval(repr(layout), NAMES)  # noqa: S307  (its own repr)
    yield tw.parse(str(layout))
    yield layout + 0
    yield layout + 0 @ Axis("addr")
    yield tw.compose(Swizzle(1, 0, 1), layout) if not layout.axes else layout
    if isinstance(layout, Layout):
        yield make_dynamic_layout(layout)
        yield Layout(layout.shape, layout.stride, layout.offset, layout.replicas)
        yield tw.replicate(layout, 1, 5)
        yield tw.replicate(layout, 2, 0)
        if layout.rank and layout.size:
            yield tw.with_logical_shape(layout, [max(1, n - 1) for n in cute.product_each(layout.shape)])
            yield tw.with_logical_shape(layout, cute.product_each(layout.shape))


def observed(layout):
    """Return all that the public functions say of a layout."""
    answers = {}
    for name in dir(type(layout)):
        if name.startswith("_") or name == "show":
            continue
        with suppress(tw.TilewrightError, TypeError, NotImplementedError, MemoryError):
            member = getattr(layout, name)
            if callable(member) and not isinstance(member, int):
                with suppress(ValueError):
                    parameters = inspect.signature(member).parameters.values()
                    if any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
                        continue
                member = member()
            answers[name] = _plain(member)
    for function in UNARY:
        with suppress(tw.TilewrightError, TypeError):
            answers[function.__name__] = _plain(function(layout))
    answers["places"] = [(layout.locate(i)[0], layout.valid(i)) for i in range(min(layout.size, 64))]
    answers["text"] = (str(layout), repr(layout))
    return answers


def _plain(answer):
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, Place):
        return {name: _plain(part) for name, part in answer.items()}
    return repr(answer)


@examples(40)
@given(layouts(max_size=24) | named_layouts(max_size=24), st.booleans())
def test_no_public_function_tells_equal_layouts_apart(layout, padded):
    if padded and layout.size and layout.rank:
        layout = tw.with_logical_shape(layout, [max(1, n // 2) for n in cute.product_each(layout.shape)])
    every = list(variants(layout))
    for k, one in enumerate(every):
        for other in every[:k]:
            assert (one == other) == (other == one)
            if one == other:
                assert hash(one) == hash(other)
                seen, again = observed(one), observed(other)
                assert seen == again, [name for name in seen if seen[name] != again.get(name)]

# SPDX-License-Identifier: Apache-2.0
"""Vector elements: their views as Mojo recorded them, and their blocks as we document them.

Mojo reads an element as so many scalars in a row, which is our `load[e]`. Our element is the real block; where it lies
in one run and divides the tensor, both agree, and so do their texts.
"""

import numpy as np
import pytest

from .golden import (
    assert_view,
    blocks_of,
    is_run,
    recorded,
    replay,
    tensor_of,
    text_of,
    wide_loads,
)


def as_in_mojo(case):
    """Return whether the blocks lie in one run each, and divide the tensor."""
    shape, stride, widths = case["layout"]["shape"], case["layout"]["stride"], case["vector_shape"]
    return is_run(widths, stride) and all(n % width == 0 for n, width in zip(shape, widths, strict=True))


@replay("vectorize")
def test_views_and_wide_loads(case):
    vectors = tensor_of(case).vectorize[tuple(case["vector_shape"])]()
    (result,) = case["results"]
    assert_view(vectors, result["view"])
    assert wide_loads(vectors) == result["values"]


@replay("vectorize")
def test_elements_are_the_real_blocks(case):
    t = tensor_of(case)
    vectors = t.vectorize[tuple(case["vector_shape"])]()
    blocks = blocks_of(t.to_numpy(), case["vector_shape"])
    for index, lanes in blocks.items():
        if None in lanes:
            with pytest.raises(IndexError, match="valid scalars"):
                vectors[index]
        elif vectors.element_size > 1:
            assert vectors[index].reshape(-1).tolist() == lanes
        padded = np.reshape(vectors.load(*index, fill=-1), -1).tolist()
        assert padded == [-1 if lane is None else lane for lane in lanes]


@replay("vectorize")
def test_text(case):
    t = tensor_of(case)
    text = format(t.vectorize[tuple(case["vector_shape"])](), "mojo")
    if as_in_mojo(case):
        assert text == case["results"][0]["print"]
    assert text == text_of(blocks_of(t.to_numpy(), case["vector_shape"]))


def test_how_many_texts_are_the_same():
    assert sum(map(as_in_mojo, recorded("vectorize"))) == 11

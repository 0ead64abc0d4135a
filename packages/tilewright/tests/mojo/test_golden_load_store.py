# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of any width, and fills of views, as Mojo recorded them one after the other."""

import numpy as np

from tilewright.mojo.layout import Coord

from .golden import replay, tensor_of


def load(t, result):
    width, at = result["args"]["width"], Coord(*result["args"]["coord"])
    assert t.load[width](at).tolist() == result["value"]
    assert t.load(at, width=width, invariant=True).tolist() == result["value"]
    assert t.ptr_at_offset(at).offset == result["ptr_offset"]
    t.prefetch(at)


def store(t, result):
    args = result["args"]
    t.store[args["width"]](Coord(*args["coord"]), args["value"])
    assert_buffer(t, result)


def fill_tile(t, result):
    args = result["args"]
    t.tile[tuple(args["tile_sizes"])](*args["coords"]).fill(args["value"])
    assert_buffer(t, result)


def fill_vectors(t, result):
    """Fill a vectorized view: Mojo writes the first scalar of each element, we write all of them."""
    vectors, value = t.vectorize[tuple(result["args"]["vector_shape"])](), result["args"]["value"]
    before = memory(t).copy()
    assert vectors.fill(value) is vectors
    places = np.array([t.layout(k) for k in range(t.numel())])
    expected = before.copy()
    expected[places] = value
    np.testing.assert_array_equal(memory(t), expected)
    firsts = [vectors.layout(k) for k in range(vectors.numel())]
    before[firsts] = value
    assert before[: len(result["buffer"])].tolist() == result["buffer"]


def memory(t):
    return t.ptr.store.data


def assert_buffer(t, result):
    assert memory(t)[: len(result["buffer"])].tolist() == result["buffer"]


METHODS = {"load": load, "store": store, "tile.fill": fill_tile, "vectorize.fill": fill_vectors}


@replay("load_store")
def test_in_order(case):
    t = tensor_of(case)
    for result in case["results"]:
        METHODS[result["args"]["method"]](t, result)

# SPDX-License-Identifier: Apache-2.0
"""Views of views, as Mojo recorded them."""

import numpy as np

from .golden import assert_view, colex, is_run, layout_of, replay, tensor_of, text_of, wide_loads

STEPS = {
    "tile": lambda t, step: t.tile[tuple(step["tile_sizes"])](*step["coords"]),
    "vectorize": lambda t, step: t.vectorize[tuple(step["vector_shape"])](),
    "distribute": lambda t, step: t.distribute[layout_of(step["thread_layout"])](step["thread_id"]),
    "slice": lambda t, step: t.slice[tuple(slice(*bounds) for bounds in step["slices"])](),
    "transpose": lambda t, step: t.transpose(),
}


def walk(case):
    """Return the view after all steps, and the lanes of an element: their extents, and their steps in memory."""
    t = tensor_of(case)
    widths, steps = [1] * t.rank, list(t.layout.stride)
    for step in case["steps"]:
        if step["name"] == "vectorize":
            widths, steps = step["vector_shape"], list(t.layout.stride)
        t = STEPS[step["name"]](t, step)
    return t, widths, steps


@replay("chain")
def test_chain(case):
    t, widths, steps = walk(case)
    (result,) = case["results"]
    assert_view(t, result["view"])
    assert wide_loads(t) == result["values"]
    text = format(t, "mojo")
    if is_run(widths, steps):
        assert text == result["print"]
    else:
        assert text == text_of(real_blocks(result["view"], widths, steps))


def real_blocks(view, widths, steps):
    """Return {index: lanes}: what the elements of a view hold, when its storage holds its own offsets."""
    lanes = sum(np.indices(widths)[k] * step for k, step in enumerate(steps)).reshape(-1)
    return {
        index: (offset + lanes).tolist() for index, offset in zip(colex(view["shape"]), view["offsets"], strict=True)
    }

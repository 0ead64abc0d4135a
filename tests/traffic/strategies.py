# SPDX-License-Identifier: Apache-2.0
"""Random pairs of specs: the same tensor in two memories of a chip."""

from hypothesis import strategies as st

from ..memory.strategies import in_any_memory, specs


@st.composite
def pairs(draw):
    """Return two specs of the same tensor on the same chip."""
    source = draw(specs(empty=True))
    names = ("dtype", "page_layout", "tile", "chip")
    arguments = {"shape": source.shape.logical, **{name: getattr(source, name) for name in names}}
    return source, draw(in_any_memory(arguments))

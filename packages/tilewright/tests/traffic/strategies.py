# SPDX-License-Identifier: Apache-2.0
"""Random pairs of specs: the same tensor in two memories of a chip."""

from hypothesis import strategies as st

from tilewright.memory import Chip

from ..memory.strategies import SMALL, in_any_memory, specs

# of the others the network is not known
CHIPS = (SMALL, Chip.named("wormhole_n150"), Chip.named("blackhole_p150", dispatch="slow"))


@st.composite
def pairs(draw):
    """Return two specs of the same tensor on the same chip."""
    source = draw(specs(empty=True, chips=CHIPS))
    names = ("dtype", "page_layout", "tile", "chip")
    arguments = {"shape": source.shape.logical, **{name: getattr(source, name) for name in names}}
    return source, draw(in_any_memory(arguments))

# SPDX-License-Identifier: Apache-2.0
"""Other shapes over the same scalars, as Mojo recorded them."""

from tilewright.mojo import DType
from tilewright.mojo.layout import Coord, Idx, Layout, coord
from tilewright.mojo.layout.tile_tensor import flatten_leading

from .golden import assert_view, replay, tensor_of

METHODS = {
    "reshape[]": lambda t, args: t.reshape[tuple(args["shape"])](),
    "reshape(Coord)": lambda t, args: t.reshape(Coord(*map(Idx, args["shape"]))),
    "reshape(layout)": lambda t, args: t.reshape(Layout(coord[tuple(args["shape"])], coord[tuple(args["stride"])])),
    "coalesce": lambda t, args: t.coalesce(),
    "transpose": lambda t, args: t.transpose(),
    "make_dynamic[int32]": lambda t, args: t.make_dynamic[DType.int32](),
    "make_dynamic[int64]": lambda t, args: t.make_dynamic[DType.int64](),
    "flatten_leading": lambda t, args: flatten_leading(t),
}


@replay("reshape")
def test_reshape(case):
    t = tensor_of(case)
    for result in case["results"]:
        assert_view(METHODS[result["args"]["method"]](t, result["args"]), result["view"])

# SPDX-License-Identifier: Apache-2.0
"""Mojo's older layout algebra, as recorded, against ours."""

import json

from tilewright.cute import (
    Layout,
    blocked_product,
    coalesce,
    complement,
    composition,
    downcast,
    logical_divide,
    logical_product,
    make_ordered_layout,
    right_inverse,
    tile_to_shape,
    upcast,
    zipped_divide,
)

from .golden import nested, replay


def layout_at(args, name="a"):
    return Layout(*map(nested, args[name]))


OPERATIONS = {
    "composition": lambda args: composition(layout_at(args), layout_at(args, "b")),
    "complement": lambda args: complement(layout_at(args), args["size"]),
    "logical_divide": lambda args: logical_divide(layout_at(args), layout_at(args, "b")),
    "logical_product": lambda args: logical_product(layout_at(args), layout_at(args, "b")),
    "zipped_divide": lambda args: zipped_divide(layout_at(args), nested(args["tile"])),
    "blocked_product": lambda args: merged(blocked_product(layout_at(args), layout_at(args, "b")), args),
    "coalesce": lambda args: coalesce(layout_at(args)),
    "right_inverse": lambda args: right_inverse(layout_at(args)),
    "tile_to_shape": lambda args: tile_to_shape(layout_at(args), nested(args["shape"])),
    "make_ordered_layout": lambda args: make_ordered_layout(nested(args["shape"]), nested(args["order"])),
    "upcast": lambda args: upcast(layout_at(args), args["factor"]),
}


def parsed(text):
    """Return (shape, stride) of Mojo's text of a layout, such as `((2, 4):(4, 1))`."""
    return tuple(nested(json.loads(part.replace("(", "[").replace(")", "]"))) for part in text[1:-1].split(":"))


def plain(shape, stride):
    """Return a layout without what says nothing: tuples of one mode, and strides of extents 1."""
    if not isinstance(shape, tuple):
        return shape, 0 if shape == 1 else stride
    if len(shape) == 1:
        return plain(shape[0], stride[0])
    return tuple(plain(*mode) for mode in zip(shape, stride, strict=True))


def merged(layout, args):
    return coalesce(layout, (0,) * layout.rank) if args["coalesce_output"] else layout


@replay("legacy_layout", select=lambda case: case["op"] != "downcast")
def test_legacy_layout(case):
    layout = OPERATIONS[case["op"]](case["args"])
    result = case["result"]
    assert (layout.size, layout.cosize) == (result["size"], result["cosize"])
    assert [layout(k) for k in range(layout.size)] == result["offsets"]
    assert plain(layout.shape, layout.stride) == plain(*parsed(result["str"]))


@replay("legacy_layout", select=lambda case: case["op"] == "downcast")
def test_downcast(case):
    """Mojo only multiplies the strides; ours also has the narrow elements in between, as CuTe does."""
    layout, factor = layout_at(case["args"]), case["args"]["factor"]
    ours = downcast(layout, factor)
    narrow = [first + k for first in case["result"]["offsets"] for k in range(factor)]
    assert sorted(ours(k) for k in range(ours.size)) == sorted(narrow)
    assert upcast(ours, factor) == layout

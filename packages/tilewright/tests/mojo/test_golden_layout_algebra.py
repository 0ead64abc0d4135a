# SPDX-License-Identifier: Apache-2.0
"""Products, divides and recasts of tile layouts, as Mojo recorded them."""

from tilewright import is_injective
from tilewright.mojo.layout import Layout, coord
from tilewright.mojo.layout.tile_layout import blocked_product, coalesce, row_major, upcast, zipped_divide

from .golden import assert_layout, layout_of, listed, nested, replay


def only(op):
    return lambda case: case["op"] == op


def assert_result(layout, record):
    assert_layout(layout, record["layout"])


@replay("layout_algebra", select=only("blocked_product"))
def test_blocked_product(case):
    block, tiler = (layout_of(case["layout"][key]) for key in ("block", "tiler"))
    for result in case["results"]:
        merge = result["args"]["coalesce_output"]
        assert_result(blocked_product(block, tiler, coalesce_output=merge), result)


@replay("layout_algebra", select=only("zipped_divide"))
def test_zipped_divide(case):
    (result,) = case["results"]
    base, tile = layout_of(case["layout"]["base"]), nested(case["layout"]["tile"])
    assert_result(zipped_divide(base, tile, ragged="floor"), result)
    divides = all(n % m == 0 for n, m in zip(base.shape, tile, strict=True))
    ours = zipped_divide[tile](base)
    if divides:
        assert_result(ours, result)
    else:
        counts = [-(-n // m) for n, m in zip(base.shape, tile, strict=True)]
        assert listed(ours.shape) == [list(tile), counts]
        assert sum(bool(ours.valid(k)) for k in range(ours.size())) == base.size()


@replay("layout_algebra", select=only("coalesce"))
def test_coalesce(case):
    assert_result(coalesce(layout_of(case["layout"])), case["results"][0])


@replay("layout_algebra", select=only("upcast"))
def test_upcast(case):
    layout, factor = layout_of(case["layout"]), case["factor"]
    assert_result(upcast[factor](layout), case["results"][0])
    assert_result(upcast(layout, factor), case["results"][0])


@replay("layout_algebra", select=only("nested_major"))
def test_nested_layouts(case):
    layout = layout_of(case["layout"])
    (result,) = case["results"]
    assert_layout(layout, result["layout"])
    assert_layout(layout.transpose(), result["transpose"])
    assert_layout(layout.reverse(), result["transpose"])


def test_blocks_with_gaps_do_not_overlap():
    gaps = Layout(coord[2, 2], coord[4, 1])
    assert is_injective(blocked_product(gaps, row_major[2, 3]()))

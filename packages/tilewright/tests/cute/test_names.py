# SPDX-License-Identifier: Apache-2.0
"""The names of CuTe and pycute, by what their own definitions say of them."""

import pytest

from tilewright import cute
from tilewright.errors import LayoutError

from ..cases import all_cases

PYCUTE = """
    ComposedLayout Integer Layout LayoutBase Swizzle coalesce complement composition cosize crd2crd crd2idx elem_scale
    filter flatten has_none hier_unzip idx2crd inner_product is_int is_layout is_tuple left_inverse logical_divide
    logical_product make_layout prefix_product product right_inverse shape_div signum size slice_ slice_and_offset
    tiled_divide tiled_product tuple_max zipped_divide zipped_product
"""
CUTE = """
    C E GenColMajor GenRowMajor Int LayoutLeft LayoutRight ScaledBasis append basis_get basis_value blocked_product
    ceil_div compact_col_major compact_order compact_row_major compatible congruent coshape depth dice domain_distribute
    downcast elem_geq elem_gtr elem_leq elem_less evenly_divides filter_zeros flat_divide flat_product front get
    group_modes
    inner_partition is_major is_static leading_dim local_partition local_tile make_coord make_fragment_like
    make_identity_layout make_identity_tensor make_layout_like make_ordered_layout make_shape make_stride make_swizzle
    make_tensor make_tile max_common_layout max_common_vector nullspace outer_partition prepend print_layout
    product_each product_like raked_product rank recast_layout replace round_up select shape stride take tile_to_shape
    unflatten upcast weakly_congruent
"""


def test_every_name_is_there():
    assert not [name for name in (PYCUTE + CUTE).split() if not hasattr(cute, name)]
    assert cute._ is None
    assert cute.Layout((4, 8))(cute._, 3) == cute.Layout((4, 8))(None, 3)


@all_cases(
    (
        "shape, strides",
        [((1, 2, 3), "(_0,_1,_2)"), ((2, 1, 3), "(_1,_0,_2)"), ((1,), "(_0)"), ((4, (1, 2)), "(_1,(_0,_4))")],
    )
)
def test_static_extents_of_one_have_no_stride(shape, strides):
    def static(tree):
        return tuple(map(static, tree)) if isinstance(tree, tuple) else cute.Int(tree)

    assert str(cute.Layout(static(shape))).partition(":")[2] == strides


@all_cases(("coordinate", [1.5, "a", (1.0, 2), ([], 1)]))
def test_coordinates_are_integers(coordinate):
    with pytest.raises((TypeError, LayoutError)):
        cute.Layout((4, 8))(coordinate)


@all_cases(("layout", [cute.Layout((4, 8)), cute.Layout(((2, 2), 8), ((1, 16), 2)), cute.Layout((3, 5), (7, 42))]))
def test_a_layout_of_another_shape_is_the_same_function_of_the_index(layout):
    count = cute.size(layout)
    other = layout.with_shape(count)
    assert [other(k) for k in range(count)] == [layout(k) for k in range(count)]
    for k in range(count):
        offset = layout(k)  # as CuTe: from the offset to the coordinate
        assert layout(layout.get_hier_coord(offset)) == layout(layout.get_flat_coord(offset)) == offset
        assert layout.get_1d_coord(offset) == layout.get_1d_coord(layout.get_hier_coord(offset)) == k


@all_cases(("bits", [(4, 6), (6, 4), (8, 12), (16, 32), (32, 8)]), ("size", [96, 24]))
def test_recast_keeps_the_bits(bits, size):
    old, new = bits
    recast = cute.recast_layout(new, old, cute.Layout(size))
    assert cute.size(recast) * new == size * old
    assert recast == cute.Layout(size * old // new)


def test_partitions_meet_in_every_element():
    layout, tiler = cute.Layout((4, 8), (8, 1)), (2, 4)
    for row in range(2):
        for column in range(4):
            outer = cute.outer_partition(layout, tiler, (row, column))
            for y in range(2):
                for x in range(2):
                    inner = cute.inner_partition(layout, tiler, (y, x))
                    assert outer((y, x)) + layout(row, column) == layout(2 * y + row, 4 * x + column)
                    assert inner((row, column)) + layout(2 * y, 4 * x) == layout(2 * y + row, 4 * x + column)


def test_filtering_zeros_keeps_the_nesting():
    layout = cute.Layout((4, (3, 2)), (1, (0, 4)))
    assert str(cute.filter_zeros(layout)) == "(4,(1,2)):(1,(0,4))"
    assert cute.coalesce(cute.filter_zeros(layout)) == cute.filter(layout)


def test_fragments_are_compact_with_their_first_mode_contiguous():
    fragment = cute.make_fragment_like(cute.Layout(((4, 2), 3, 2), ((0, 8), 1, 100)))
    assert cute.shape(fragment) == ((4, 2), 3, 2)
    assert cute.stride(fragment, 0) == (0, 1)
    assert cute.cosize(fragment) == 2 * 3 * 2

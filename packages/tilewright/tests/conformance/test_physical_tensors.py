# SPDX-License-Identifier: Apache-2.0
"""The page on physical tensors of Khronos' OpenCL Tensor and Tile Library, statement by statement."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

import tilewright.ttl as ttl
from tilewright import LayoutError, TransferError, views

from .statements import shows

WIDTH, HEIGHT = 10, 7
KINDS = ("int", "const_int", "ext", "const_ext")


def image(dtype=np.int16):
    """Return a picture of WIDTH x HEIGHT elements, each with its own number."""
    return np.arange(WIDTH * HEIGHT, dtype=dtype).reshape(HEIGHT, WIDTH)


def tiles():
    """Return a tiler of the picture, and its tile in the middle."""
    tiler = ttl.create_tiler(ttl.create_shape(WIDTH, HEIGHT), ttl.create_shape(4, 3))
    return tiler, ttl.get_tile(4, tiler)


def local(dtype=np.int16):
    """Return an internal tensor of 4 x 3 elements, all zero."""
    return ttl.create_int_tensor(np.zeros(12, dtype), ttl.create_shape(4, 3))


def source(pixels):
    """Return a picture as a const external tensor."""
    return ttl.create_const_ext_tensor(pixels, ttl.create_shape(WIDTH, HEIGHT), ttl.create_layout(WIDTH))


def shown(subject, **options):
    """Return what an object prints when it is shown."""
    out = io.StringIO()
    with redirect_stdout(out):
        subject.show(**options)
    return out.getvalue()


# Layouts.


@shows("L1", "4-5", "The second layer lays logical tiles onto physical memory")
def test_a_tile_becomes_a_tensor_in_memory():
    _, tile = tiles()
    assert tile == ttl.tile_t(ttl.create_shape(4, 3), ttl.create_offset(4, 3))
    tensor = ttl.create_const_ext_tensor(image(), tile, ttl.create_layout(WIDTH))
    assert tensor.base.offset == (3 * WIDTH + 4) * 2  # bytes
    assert tensor.array()[0].tolist() == image()[3:6, 4:8].tolist()


@shows("L2", "7-11", "One tiler tiles images of other addresses, element sizes and alignments")
def test_one_tiler_for_two_images():
    tiler, _ = tiles()
    small, large = image(np.uint8), np.zeros((HEIGHT, 16), np.int32)
    large[:, :WIDTH] = image(np.int32)
    for tile_id in range(ttl.number_of_tiles(tiler)):
        tile = ttl.get_tile(tile_id, tiler)
        parts = []
        for pixels, spacing in ((small, WIDTH), (large, 16)):
            inside = ttl.create_int_tensor(np.zeros(12, pixels.dtype), tile)
            ttl.blocking_import(inside, ttl.create_const_ext_tensor(pixels, tile, ttl.create_layout(spacing)))
            parts.append(inside.array().tolist())
        assert parts[0] == parts[1], tile_id
    assert ttl.number_of_tiles(tiler) == 9


@shows("L3", "16-20", "A layout holds the spacing of rows and of planes, in elements")
@shows("L6", "24-27", "TTL_layout_t has the fields row_spacing and plane_spacing")
def test_layout_fields():
    layout = ttl.create_layout(16, 160)
    assert (layout.row_spacing, layout.plane_spacing) == (16, 160)
    assert layout == ttl.layout_t(row_spacing=16, plane_spacing=160)
    assert ttl.linearize(ttl.create_offset(3, 2, 1), layout) == 160 + 2 * 16 + 3


@shows("L4", "16-17", "A tile lies in an enclosing shape in global memory, which may have padding")
def test_padded_rows_outside():
    padded = np.full((HEIGHT, 16), -1, np.int16)
    padded[:, :WIDTH] = image()
    inside = local()
    ttl.blocking_import(inside, ttl.create_const_ext_tensor(padded, ttl.create_shape(4, 3), ttl.create_layout(16)))
    assert inside.array().tolist() == [[[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]]]


@shows("L5", "16-17", "and in local memory, too")
def test_padded_rows_inside():
    buffer = np.full(24, -1, np.int16)
    inside = ttl.create_int_tensor(buffer, ttl.create_shape(4, 3), ttl.create_layout(8))
    ttl.blocking_import(inside, ttl.create_const_ext_tensor(image(), ttl.create_shape(4, 3), ttl.create_layout(WIDTH)))
    gap = [-1] * 4
    assert buffer.tolist() == [0, 1, 2, 3, *gap, 10, 11, 12, 13, *gap, 20, 21, 22, 23, *gap]


@shows("L7", "24-27", "Fields of the struct can be assigned, and structs are copied, as in C")
def test_structs_are_assigned_and_copied():
    layout = ttl.create_layout(16)
    tensor = ttl.create_int_tensor(np.arange(48, dtype=np.int16), ttl.create_shape(4, 2), layout)
    layout.row_spacing = 20
    assert layout == ttl.create_layout(20)
    assert tensor.layout == ttl.create_layout(16)  # the tensor has a copy
    tensor.layout = layout  # and so has one that it is assigned to
    tile = ttl.tile_t(shape := ttl.create_shape(4, 2), ttl.create_offset())
    layout.row_spacing, shape.width = 24, 8
    assert (tensor.layout, tile.shape) == (ttl.create_layout(20), ttl.create_shape(4, 2))
    tensor.layout.row_spacing = 10
    tensor.shape.width = 3
    assert tensor.array().tolist() == [[[0, 1, 2], [10, 11, 12]]]
    with pytest.raises(LayoutError, match="expected an integer as row_spacing of layout_t, got 'wide'"):
        layout.row_spacing = "wide"
    with pytest.raises(AttributeError, match="int_tensor_t has no field 'spacing'; its fields are base, elem_size"):
        tensor.spacing = 10


@shows("L8", "33", "TTL_create_layout()")
@shows("L9", "33", "which does for a tensor of one row")
def test_create_layout_without_arguments():
    assert ttl.create_layout() == ttl.layout_t(0, 0)
    row = ttl.create_int_tensor(np.arange(8, dtype=np.int16), ttl.create_shape(8), ttl.create_layout())
    assert row.array().tolist() == [[[0, 1, 2, 3, 4, 5, 6, 7]]]


@shows("L10", "34", "TTL_create_layout(total_row_length)")
def test_create_layout_of_rows():
    assert ttl.create_layout(16) == ttl.create_layout(total_row_length=16) == ttl.layout_t(16, 0)
    assert ttl.create_layout(16).total_row_length == 16


def volume(layout):
    """Return 24 elements, imported as two planes of 4 x 3 through a layout."""
    shape = ttl.create_shape(4, 3, 2)
    inside = ttl.create_int_tensor(np.zeros(24, np.int16), shape)
    ttl.blocking_import(inside, ttl.create_const_ext_tensor(np.arange(24, dtype=np.int16), shape, layout))
    return inside.array()


@shows(
    "L11",
    "35",
    "TTL_create_layout(total_row_length, total_number_of_rows) by position: (4, 5) for planes of 4 x 5",
    differs="by position the second number is the plane spacing in elements, as in TTL's code; where the memory speaks"
    " for rows it is refused, with both remedies by name",
)
@pytest.mark.parametrize("rows", [3, 5, 8, 12])
@pytest.mark.parametrize("height", [1, 2])
def test_the_second_number_is_in_elements(rows, height):
    assert ttl.create_layout(4, rows).plane_spacing == rows
    pixels = np.arange(3 * rows * 4, dtype=np.int16).reshape(3, rows, 4)
    shape = ttl.create_shape(4, height, 3)
    remedy = rf"create_layout\(total_row_length=4, total_number_of_rows={rows}\)"
    memories = [pixels, ttl.pointer(pixels)] + ([pixels.ravel(), bytearray(pixels)] if rows % 4 else [])
    for memory in memories:
        with pytest.raises(TransferError, match=remedy):
            ttl.create_const_ext_tensor(memory, shape, ttl.create_layout(4, rows), 2).array()
    for layout in (
        ttl.create_layout(4, 4 * rows),
        ttl.create_layout(4, plane_spacing=4 * rows),
        ttl.create_layout(total_row_length=4, total_number_of_rows=rows),
    ):
        inside = ttl.create_int_tensor(np.zeros(12 * height, np.int16), shape)
        ttl.blocking_import(inside, ttl.create_const_ext_tensor(pixels, shape, layout))
        assert inside.array().tolist() == pixels[:, :height].tolist()


@pytest.mark.parametrize(
    ("extents", "tile", "corner"),
    [
        ((6, 2, 8), (1, 1, 1), (5, 1, 1)),  # one plane, but not the first
        ((3, 2, 8), (8, 2, 1), (0, 0, 1)),
        ((4, 4, 4), (1, 1, 3), (1, 1, 1)),
        ((5, 8, 4), (1, 1, 2), (1, 7, 0)),
    ],
)
@pytest.mark.parametrize("is_flat", [False, True])
def test_rows_by_position_are_never_read_as_elements(extents, tile, corner, is_flat):
    depth, rows, length = extents
    pixels = np.arange(depth * rows * length, dtype=np.int16).reshape(extents)
    memory, box = pixels.ravel() if is_flat else pixels, ttl.tile_t(ttl.create_shape(*tile), ttl.create_offset(*corner))
    with pytest.raises(TransferError, match=rf"total_number_of_rows={rows}\)"):
        ttl.create_const_ext_tensor(memory, box, ttl.create_layout(length, rows)).array()
    (x, y, z), (width, height, planes) = corner, tile
    for layout in (
        ttl.create_layout(length, plane_spacing=length * rows),
        ttl.create_layout(total_row_length=length, total_number_of_rows=rows),
    ):
        found = ttl.create_const_ext_tensor(memory, box, layout).array()
        assert found.tolist() == pixels[z : z + planes, y : y + height, x : x + width].tolist()


def test_a_tile_in_a_volume_is_told_its_planes():
    tile = ttl.tile_t(ttl.create_shape(4, 1, 3), ttl.create_offset(0, 1, 0))
    with pytest.raises(LayoutError, match=r"pass create_layout\(4, plane_spacing=20\) as ext_layout"):
        ttl.create_ext_tensor(np.zeros((3, 5, 4), np.int16), tile)


def test_spacings_by_name_are_in_elements():
    pixels, shape = np.arange(60, dtype=np.int16).reshape(3, 5, 4), ttl.create_shape(4, 1, 3)
    changed = ttl.create_layout(4, 20)
    changed.plane_spacing = 5
    for layout in (ttl.create_layout(4, plane_spacing=5), ttl.layout_t(4, 5), changed):
        tensor = ttl.create_const_ext_tensor(pixels, shape, layout)
        assert tensor.array()[:, 0, 0].tolist() == [0, 5, 10]
        assert tensor.layout == ttl.create_layout(4, 5)  # equal: only the unit was in doubt


def test_planes_that_overlap_are_refused():
    with pytest.raises(TransferError, match=r"plane spacing 0 is less than the plane size; use at least 12 elements$"):
        volume(ttl.create_layout(4))
    with pytest.raises(TransferError, match=r"plane spacing 2 is less than the plane size; use at least 12 elements$"):
        volume(ttl.create_layout(4, 2))
    with pytest.raises(LayoutError, match=r"takes a row spacing and one plane spacing, got \(4, 12, 1\) by position"):
        ttl.create_layout(4, 12, 1)
    with pytest.raises(LayoutError, match="plane_spacing=12"):
        ttl.create_layout(4, 12, plane_spacing=12)


@shows("L12", "35", "The parameters are called total_row_length and total_number_of_rows")
@shows("L13", "35", "and lay out planes of that number of rows")
@shows("L14", "35", "Planes may be given in elements")
def test_layouts_of_planes():
    by_rows = ttl.create_layout(total_row_length=4, total_number_of_rows=3)
    assert by_rows == ttl.create_layout(4, 12) == ttl.create_layout(row_spacing=4, plane_spacing=12)
    assert volume(by_rows).ravel().tolist() == list(range(24))
    for refused in ({"total_number_of_rows": 3}, {"row_spacing": 4, "plane_spacing": 12, "total_number_of_rows": 3}):
        with pytest.raises(LayoutError, match="pass it with the row spacing alone"):
            ttl.create_layout(**refused)
    with pytest.raises(LayoutError, match="mean the same; pass one of them"):
        ttl.create_layout(4, total_row_length=4)


@shows("L58", "16-20", "Rows do not overlap: their spacing is at least their width")
def test_rows_that_overlap_are_refused():
    tensor = ttl.create_int_tensor(np.zeros(24, np.int16), ttl.create_shape(4, 3), ttl.create_layout(2))
    outside = ttl.create_const_ext_tensor(image(), ttl.create_shape(4, 3), ttl.create_layout(WIDTH))
    with pytest.raises(TransferError, match="row spacing 2 is less than the row length; use at least 4"):
        ttl.blocking_import(tensor, outside)


# The family of tensors.


@shows("L15", "40-44", "The names are TTL_[const]_[int/ext]_[sub]_tensor_t")
@shows("L28", "67-76", "These are eight types")
def test_eight_types():
    names = [f"{kind}_{sub}tensor_t" for kind in KINDS for sub in ("", "sub_")]
    assert len({getattr(ttl, f"TTL_{name}") for name in names}) == 8
    assert [getattr(ttl, name).__name__ for name in names] == names


@shows("L16", "42", "There are local and global versions, with a const attribute")
def test_spaces_and_const():
    flags = [(getattr(ttl, f"{kind}_tensor_t").internal, getattr(ttl, f"{kind}_tensor_t").const) for kind in KINDS]
    assert flags == [(True, False), (True, True), (False, False), (False, True)]


@shows("L17", "42", "A const tensor is not written")
@shows("L18", "42", "nor exported to")
def test_const_is_kept():
    shape = ttl.create_shape(4, 3)
    with pytest.raises(TransferError, match="cannot write to const_int_tensor_t, which is const"):
        ttl.write_tensor(ttl.create_const_int_tensor(np.zeros(12, np.int16), shape), 1, 0, 0)
    with pytest.raises(TransferError, match="cannot export to const_ext_tensor_t, which is const"):
        ttl.blocking_export(local(), ttl.create_const_ext_tensor(image(), shape, ttl.create_layout(WIDTH)))


@shows("L19", "43-44", "A tensor has all that an import or export, and reading and writing, need")
@shows("L20", "46-47", "Tensors are passed to compute functions")
def test_transactions_and_compute():
    inside, result, pixels = local(), local(), image()
    event = ttl.get_event()
    ttl.import_(inside, ttl.create_const_ext_tensor(pixels, tiles()[1], ttl.create_layout(WIDTH)), event)
    ttl.wait(1, event)
    assert ttl.read_tensor(inside, 1, 2) == pixels[5, 5]

    def compute(given, made):
        for y in range(given.shape.height):
            for x in range(given.shape.width):
                ttl.write_tensor(made, 2 * ttl.read_tensor(given, x, y), x, y)

    compute(inside, result)
    target = np.zeros_like(pixels)
    ttl.blocking_export(result, ttl.create_ext_tensor(target, tiles()[1], ttl.create_layout(WIDTH)))
    assert target[3:6, 4:8].tolist() == (2 * pixels[3:6, 4:8]).tolist()
    assert target.sum() == 2 * pixels[3:6, 4:8].sum()


@shows("L21", "49-50", "An external tensor has all that a kernel needs to tile, import and export")
def test_a_kernel_of_external_tensors():
    def kernel(ext_in, ext_out):
        tiler = ttl.create_tiler(ext_in.shape, ttl.create_shape(4, 3))
        for tile_id in range(ttl.number_of_tiles(tiler)):
            tile = ttl.get_tile(tile_id, tiler)
            inside = ttl.create_int_tensor(np.zeros(12, ext_in.dtype), tile)
            ttl.blocking_import(inside, ttl.create_const_ext_tensor(ext_in.base, tile, ext_in.layout))
            inside.array()[...] += 100
            ttl.blocking_export(inside, ttl.create_ext_tensor(ext_out.base, tile, ext_out.layout))
        return ttl.number_of_tiles(tiler)

    pixels, result = image(), np.zeros((HEIGHT, WIDTH), np.int16)
    target = ttl.create_ext_tensor(result, ttl.create_shape(WIDTH, HEIGHT), ttl.create_layout(WIDTH))
    assert kernel(source(pixels), target) == 9
    assert (result == pixels + 100).all()


@shows("L22", "54-58", "The fields are base, elem_size, layout and shape")
@shows("L23", "55", "The base is a pointer")
def test_fields_of_a_tensor():
    tensor = ttl.create_int_tensor(np.arange(12, dtype=np.int16), ttl.create_shape(4, 3))
    assert (tensor.elem_size, tensor.layout, tensor.shape) == (2, ttl.create_layout(4, 12), ttl.create_shape(4, 3))
    assert (tensor.base[1], (tensor.base + 4)[0]) == (1, 4)
    by_name = ttl.int_tensor_t(base=tensor.base, elem_size=2, layout=tensor.layout, shape=tensor.shape)
    assert by_name == tensor
    with pytest.raises(IndexError, match="outside the memory of 24 bytes"):
        tensor.base[12]


@shows("L24", "59-64", "A sub tensor also has its origin: shape and sub_offset")
@shows("L25", "59-64", "beside base, elem_size, layout and shape")
def test_fields_of_a_sub_tensor():
    offset = ttl.create_offset(3, 2)
    layout = ttl.create_layout(4, 12)
    part = ttl.create_int_sub_tensor(
        np.arange(12, dtype=np.int16), ttl.create_shape(4, 3), layout, source(image()), offset
    )
    assert part.origin.shape == ttl.create_shape(WIDTH, HEIGHT)
    assert part.origin.sub_offset == offset
    assert (part.elem_size, part.layout, part.shape, part.base[5]) == (2, layout, ttl.create_shape(4, 3), 5)
    part.layout = ttl.create_layout(6, 18)
    assert part.layout.row_spacing == 6


@shows("L26", "59-64", "Every kind of tensor has sub tensors")
def test_sub_tensors_of_every_kind():
    for kind in KINDS:
        whole = getattr(ttl, f"create_{kind}_tensor")(np.zeros(12, np.int16), ttl.create_shape(4, 3))
        part = getattr(ttl, f"create_{kind}_sub_tensor")(whole)
        assert type(part).__name__ == f"{kind}_sub_tensor_t"
        assert part.origin.sub_offset == ttl.create_offset(0)


@shows("L27", "59-64", "A sub_offset may be negative: what lies outside the origin becomes zero")
def test_a_sub_tensor_that_begins_outside():
    pixels, corner, shape = image(), ttl.create_offset(-1, -1), ttl.create_shape(4, 3)
    part = ttl.create_int_sub_tensor(np.full(12, -5, np.int16), shape, ttl.create_layout(4, 12), source(pixels), corner)
    event = ttl.get_event()
    outside = ttl.create_const_ext_tensor(pixels, shape, ttl.create_layout(WIDTH), corner, 2)
    ttl.import_sub_tensor(part, outside, event)
    ttl.wait(1, event)
    assert part.array().tolist() == [[[0, 0, 0, 0], [0, 0, 1, 2], [0, 10, 11, 12]]]


# Constructors.


@shows("L29", "80", "The default layout is packed: its strides match the shape")
@shows("L30", "80", "also in three dimensions")
def test_the_default_layout_is_packed():
    assert local().layout == ttl.create_layout(4, 12)
    cube = ttl.create_int_tensor(np.arange(24, dtype=np.int16), ttl.create_shape(4, 3, 2))
    assert cube.layout == ttl.create_layout(4, 12)
    assert cube.array().ravel().tolist() == list(range(24))


@shows("L31", "81", "The element size is the size of the type that base points to")
@shows("L33", "81", "which may be a struct")
def test_element_sizes():
    assert [local(dtype).elem_size for dtype in ("u1", "i2", "f4", "f8")] == [1, 2, 4, 8]
    struct = np.dtype([("x", "i4"), ("y", "f8")], align=True)
    points = np.zeros(12, struct)
    points[5] = (7, 0.5)
    tensor = ttl.create_int_tensor(points, ttl.create_shape(4, 3))
    assert tensor.elem_size == 16
    assert ttl.read_tensor(tensor, 1, 1).tolist() == (7, 0.5)


@shows("L32", "81", "or a vector type of OpenCL")
def test_vector_types():
    sizes = [ttl.SIZEOF(name) for name in ("float4", "uchar3", "double2", "ushort16", "half8")]
    assert sizes == [16, 4, 16, 32, 16]  # three elements take the space of four
    values = np.arange(48, dtype=np.float32).reshape(12, 4)
    tensor = ttl.create_int_tensor(values, ttl.create_shape(4, 3), dtype=ttl.float4)
    assert tensor.elem_size == ttl.SIZEOF(ttl.float4) == 16
    assert ttl.read_tensor(tensor, 1, 1)["s"].tolist() == [20, 21, 22, 23]
    copied = ttl.create_int_tensor(np.zeros(12, ttl.float4), ttl.create_shape(4, 3))
    ttl.blocking_import(copied, ttl.create_const_ext_tensor(values, ttl.create_shape(4, 3), dtype=ttl.float4))
    assert (copied.array()["s"].reshape(12, 4) == values).all()


@shows("L34", "81", "but not void")
def test_void_has_no_size():
    with pytest.raises(LayoutError, match="bytearray memory has no element type; give elem_size"):
        ttl.create_int_tensor(bytearray(24), ttl.create_shape(4, 3))


@shows("L35", "82", "TTL_create_int_tensor(base, tile)")
@shows("L36", "85", "TTL_create_int_tensor(base, tile, int_layout)")
@shows("L37", "88", "TTL_create_int_tensor(base, tile, int_layout, elem_size)")
@shows("L38", "88", "where elem_size need not be the size of the type")
def test_internal_tensors_of_a_tile():
    _, tile = tiles()
    layout = ttl.create_layout(8)
    assert ttl.create_int_tensor(np.zeros(12, np.int16), tile).layout == ttl.create_layout(4, 12)
    assert ttl.create_int_tensor(np.zeros(24, np.int16), tile, layout).layout == layout
    of_bytes = ttl.create_int_tensor(bytearray(48), tile, layout, 2)
    assert (of_bytes.elem_size, of_bytes.shape, of_bytes.base.offset) == (2, tile.shape, 0)
    assert ttl.create_int_tensor(base=bytearray(48), tile=tile, int_layout=layout, elem_size=2).layout == layout
    wider = ttl.create_int_tensor(np.zeros(24, np.int16), tile, layout, 4)
    assert (wider.elem_size, wider.dtype) == (4, np.dtype("V4"))


@shows("L39", "91", "TTL_create_ext_tensor(base, tile, ext_layout)")
@shows("L40", "94", "TTL_create_ext_tensor(base, tile, ext_layout, elem_size)")
@shows("L41", "91", "An external tensor of a tile begins at the tile")
@shows("L42", "91", "also if an offset is given, which is added")
def test_external_tensors_of_a_tile():
    _, tile = tiles()
    layout, start = ttl.create_layout(WIDTH), (3 * WIDTH + 4) * 2
    tensor = ttl.create_ext_tensor(image(), tile, layout)
    assert (tensor.base.offset, tensor.shape) == (start, ttl.create_shape(4, 3))
    assert ttl.create_ext_tensor(bytearray(140), tile, layout, 2).base.offset == start
    assert ttl.create_ext_tensor(base=bytearray(140), tile=tile, ext_layout=layout, elem_size=2).base.offset == start
    inside = local()
    ttl.blocking_import(inside, tensor)
    assert ttl.read_tensor(inside, 0, 0) == image()[3, 4]
    assert ttl.create_ext_tensor(image(), tile, layout, ttl.create_offset(0, 0), 2).base.offset == start
    assert ttl.create_ext_tensor(image(), tile, layout, ttl.create_offset(1, 1), 2).base.offset == start + 22


@shows("L43", "96-98", "TTL_valid_int_tensor is 1 for a tensor that holds something, else 0")
@shows("L44", "96-98", "as an int")
def test_valid_tensors():
    assert ttl.valid_int_tensor(local()) == 1
    assert ttl.valid_int_tensor(ttl.create_empty_int_tensor()) == 0
    assert {type(ttl.valid_int_tensor(tensor)) for tensor in (local(), ttl.create_empty_int_tensor())} == {int}


@shows("L45", "97", "Prologs and epilogs create tensors that are not valid")
def test_prolog_and_epilog():
    tiler, _ = tiles()
    buffers = [np.zeros(12, np.int16) for _ in range(2)]
    scheme = ttl.start_import_double_buffering(*buffers, source(image()), ttl.get_event(), ttl.get_tile(0, tiler))
    count = ttl.number_of_tiles(tiler)
    valid = [ttl.valid_int_tensor(ttl.step_buffering(scheme, ttl.get_tile(i + 1, tiler))) for i in range(count + 1)]
    assert valid == [True] * count + [False]


@shows("L46", "100-102", "An explicit layout or element size overrides the default")
@shows("L47", "102", "There are constructors for explicit element types")
def test_defaults_are_overridden():
    memory, shape = np.zeros(24, np.int16), ttl.create_shape(4, 3)
    assert ttl.create_int_tensor(memory, shape, 2).elem_size == 2
    assert ttl.create_int_tensor(memory, shape, ttl.create_layout(5)).layout == ttl.create_layout(5)
    assert ttl.create_int_tensor(memory, shape, dtype="u1").elem_size == 1
    assert ttl.create_empty_int_uint_tensor().dtype == np.uint32
    assert ttl.const_ext_uchar_sub_tensor_t is ttl.const_ext_sub_tensor_t


# Tensors of a compute.


@shows("L48", "107-108", "TTL_io_tensors_t holds imported_to and to_export_from")
@shows("L49", "112-115", "which are internal tensors")
def test_io_tensors():
    first, second = local(), local(np.uint8)
    tensors = ttl.io_tensors_t(imported_to=first, to_export_from=second)
    assert tensors.imported_to is first
    assert tensors.to_export_from is second
    assert ttl.create_io_tensors(first, second) == tensors


@shows("L50", "107", "They are ready for processing")
def test_a_scheme_returns_io_tensors():
    pixels, result = image(), np.zeros((HEIGHT, WIDTH), np.int16)
    tiler, _ = tiles()
    target = ttl.create_ext_tensor(result, tiler.space, ttl.create_layout(WIDTH))
    readable = ttl.create_ext_tensor(pixels, tiler.space, ttl.create_layout(WIDTH))
    buffers, events = [np.zeros(12, np.int16) for _ in range(2)], [ttl.get_event(), ttl.get_event()]
    scheme = ttl.start_duplex_buffering(readable, buffers[0], target, buffers[1], events, ttl.get_tile(0, tiler))
    for tile_id in range(ttl.number_of_tiles(tiler)):
        tile = ttl.get_tile(tile_id, tiler)
        tensors = ttl.step_buffering(scheme, tile, tile)
        assert isinstance(tensors, ttl.io_tensors_t)
        assert tensors.imported_to.shape == tensors.to_export_from.shape == tile.shape
        tensors.to_export_from.array()[...] = tensors.imported_to.array() + 1
    ttl.finish_buffering(scheme)
    assert (result == pixels + 1).all()


@shows(
    "L51",
    "117-119",
    "TTL_tensors_empty returns true if tensors are valid",
    differs="as its name and TTL's code say, it is true if they are empty; valid_tensors is the opposite",
)
@shows("L52", "117-119", "It looks at the tensor that was imported to")
def test_tensors_empty():
    nothing = ttl.create_empty_int_sub_tensor()
    something = ttl.create_int_sub_tensor(local())
    empty, full = ttl.create_io_tensors(nothing, nothing), ttl.create_io_tensors(something, something)
    assert (ttl.tensors_empty(empty), ttl.tensors_empty(full)) == (True, False)
    assert (ttl.valid_tensors(empty), ttl.valid_tensors(full)) == (False, True)
    assert ttl.tensors_empty(ttl.create_io_tensors(nothing, something))
    assert not ttl.tensors_empty(ttl.create_io_tensors(something, nothing))


# Pictures, names and mistakes.


@shows("L53", "1-119", "A tensor in memory has a picture, with its spacing and its base")
@shows("L54", "16-20", "and so has a layout with padding")
@shows("L55", "1-119", "and every other object of the page")
def test_pictures():
    tiler, tile = tiles()
    tensor = ttl.create_const_ext_tensor(image(), tile, ttl.create_layout(WIDTH))
    text = shown(tensor)
    assert "34 35 36 37" in text  # the elements, in rows
    assert "54 55 56 57" in text
    assert "(3,4):(10,1)" in text
    assert shown(ttl.create_layout(8), memory=False).splitlines()[4:6] == [
        "  0  0  1  2  3  4  5  6  7",
        "  1  8  9 10 11 12 13 14 15",
    ]
    assert "7 x 10 in tiles of 3 x 4" in shown(tiler)
    corner = ttl.create_offset(-1, -1)
    part = ttl.create_int_sub_tensor(
        np.zeros(12, np.int16), tile.shape, ttl.create_layout(4, 12), source(image()), corner
    )
    assert "at (-1, -1) of an origin of 10 x 7 (width x height)" in shown(part).replace("\n", " ")
    origin = views.scene_of(part).panels[2]
    parts = origin.field("part").values
    assert (parts.count("inside"), parts.count("outside")) == (3 * 2, 12 - 3 * 2)
    assert (origin.rows, origin.columns, origin.row_names[0]) == (HEIGHT + 1, WIDTH + 1, "-1")
    for subject in (ttl.create_shape(4, 3), tile, part, local(), ttl.create_layout(4, 12)):
        assert "coordinates" in shown(subject)
        assert subject._repr_html_().startswith("<div")
        assert views.scene_of(subject).panels
    with pytest.raises(LayoutError, match="has no row spacing to draw"):
        ttl.create_layout().show()


@shows("L56", "1-119", "The names may keep their prefix, as TTL writes them")
def test_prefixed_names():
    from tilewright.ttl import TTL_create_tiler, TTL_import, TTL_int_tensor_t

    assert TTL_create_tiler is ttl.create_tiler
    assert TTL_import is ttl.import_
    assert TTL_int_tensor_t is ttl.int_tensor_t
    assert ttl.TTL_create_layout(16) == ttl.create_layout(16)
    assert ttl.TTL_const_ext_uchar_sub_tensor_t is ttl.const_ext_sub_tensor_t
    with pytest.raises(AttributeError, match="has no attribute 'TTL_create_nothing'"):
        ttl.TTL_create_nothing  # noqa: B018  (the access is what is tested)


@shows("L57", "22-119", "What is not a shape, tile or layout is refused by name")
def test_wrong_arguments():
    shape = r"expected shape_t as shape, got \(4, 3\); make one with create_shape\(width, height, depth\)"
    with pytest.raises(LayoutError, match=shape):
        ttl.create_int_tensor(np.zeros(12, np.int16), (4, 3))
    with pytest.raises(LayoutError, match="expected shape_t as space of tiler_t"):
        ttl.create_tiler((WIDTH, HEIGHT), ttl.create_shape(4, 3))
    with pytest.raises(LayoutError, match=r"expected an integer as width of shape_t, got \(4, 3\)"):
        ttl.create_shape((4, 3))
    with pytest.raises(LayoutError, match=r"create_int_tensor takes \(base, shape\), then elem_size, layout"):
        ttl.create_int_tensor(np.zeros(12, np.int16), ttl.create_shape(4, 3), (4, 12))
    with pytest.raises(TransferError, match="expected an internal and an external tensor, got ndarray"):
        ttl.blocking_import(local(), image())
    outside = ttl.create_ext_tensor(image(), ttl.create_shape(4, 3), ttl.create_layout(WIDTH))
    for tensor in (3, None, outside):
        with pytest.raises(LayoutError, match="expected an internal tensor as tensor, got"):
            ttl.valid_int_tensor(tensor)
        with pytest.raises(LayoutError, match="expected an internal tensor as to_export_from of io_tensors_t, got"):
            ttl.io_tensors_t(local(), tensor)
    with pytest.raises(LayoutError, match="expected io_tensors_t as tensors, got"):
        ttl.tensors_empty(local())
    tiler, _ = tiles()
    for call in (ttl.get_tile, ttl.get_tile_column_major, ttl.valid_tile_id):
        with pytest.raises(LayoutError, match="expected an integer as tile_id, got 'first'"):
            call("first", tiler)
        with pytest.raises(LayoutError, match="expected tiler_t as tiler, got 4"):
            call(0, 4)
    with pytest.raises(LayoutError, match="expected an integer as x, got None"):
        ttl.create_tile(None, 0, 0, tiler)
    with pytest.raises(LayoutError, match="expected an integer as row_spacing, got 'wide'"):
        ttl.create_ext_layout("wide", 4)
    with pytest.raises(LayoutError, match="expected an integer as row alignment, got 'even'"):
        ttl.create_ext_layout(4, "even")

# SPDX-License-Identifier: Apache-2.0
"""Every public name of TTL is there, with an example, and does what the tutorial writes."""

import inspect

import numpy as np
import pytest

from tilewright import LayoutError, TransferError, ttl

NAMES = [
    "dim_t",
    "offset_dim_t",
    "overlap_dim_t",
    "augmented_dim_t",
    "shape_t",
    "offset_t",
    "overlap_t",
    "augmentation_t",
    "tile_t",
    "tiler_t",
    "layout_t",
    "event_t",
    "io_tensors_t",
    "import_double_buffering_t",
    "export_double_buffering_t",
    "duplex_buffering_t",
    "simplex_buffering_t",
    "create_shape",
    "create_offset",
    "create_overlap",
    "create_augmentation",
    "create_layout",
    "create_int_layout",
    "create_ext_layout",
    "create_tiler",
    "create_overlap_tiler",
    "create_tile",
    "create_empty_tile",
    "get_tile",
    "get_tile_column_major",
    "valid_tile_id",
    "number_of_tiles",
    "tiles_in_width",
    "tiles_in_height",
    "tiles_in_depth",
    "shape_empty",
    "tile_empty",
    "tensors_empty",
    "linearize",
    "to_const_tensor",
    "to_void_tensor",
    "to_const_sub_tensor",
    "to_void_sub_tensor",
    "read_tensor",
    "write_tensor",
    "get_event",
    "wait",
    "import_",
    "export",
    "blocking_import",
    "blocking_export",
    "import_sub_tensor",
    "create_io_tensors",
    "start_import_double_buffering",
    "start_export_double_buffering",
    "start_duplex_buffering",
    "start_simplex_buffering",
    "step_buffering",
    "finish_buffering",
    "create_pipeline_iterations",
    "join_pipeline_iterations",
    "pipeline_iterations_t",
    "valid_int_tensor",
    "valid_tensors",
    "dump_shape",
    "dump_layout",
    "dump_offset",
    "dump_overlap",
    "dump_augmentation",
    "dump_tile",
    "dump_int_tensor",
    "dump_int_sub_tensor",
    "dump_ext_tensor",
    "dump_tiler",
    "ceil_of_a_div_b",
    "MAX",
    "SIZEOF",
    "ARRAYSIZE",
]
KINDS = [f"{const}{space}" for const in ("", "const_") for space in ("int", "ext")]
TYPES = ["void", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong"]


@pytest.mark.parametrize("name", NAMES)
def test_plain_names(name):
    assert name in ttl.__all__
    assert getattr(ttl, name) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_each_kind(kind):
    for sub in ("", "sub_"):
        assert f"{kind}_{sub}tensor_t" in ttl.__all__
        for name in (f"create_{kind}_{sub}tensor", f"create_empty_{kind}_{sub}tensor", f"{kind}_{sub}tensor_empty"):
            assert name in ttl.__all__
        for element in TYPES:
            typed = getattr(ttl, f"{kind}_{element}_{sub}tensor_t")
            assert typed is getattr(ttl, f"{kind}_{sub}tensor_t")
            empty = getattr(ttl, f"create_empty_{kind}_{element}_{sub}tensor")()
            assert getattr(ttl, f"{kind}_{sub}tensor_empty")(empty)


@pytest.mark.parametrize("element", TYPES)
def test_typed_names_of_schemes(element):
    assert getattr(ttl, f"io_{element}_tensor_t") is ttl.io_tensors_t
    for scheme in ("import_double", "export_double", "duplex", "simplex"):
        typed = getattr(ttl, f"{scheme}_const_{element}_tensor_buffering_t")
        assert typed is getattr(ttl, f"{scheme}_buffering_t")


def test_a_star_import_brings_the_names_as_ttl_writes_them():
    names: dict = {}
    exec("from tilewright.ttl import *", names)  # noqa: S102  (a star is only for modules)
    plain = [name for name in ttl.__all__ if not name.startswith("TTL_")]
    assert len(plain) > 100
    for name in plain:
        assert names[name] is names[f"TTL_{name.rstrip('_')}"] is getattr(ttl, name)
    assert names["TTL_import"] is ttl.import_
    for element in TYPES:
        assert names[f"TTL_const_ext_{element}_sub_tensor_t"] is ttl.const_ext_sub_tensor_t
        assert ttl.int_tensor_empty(names[f"TTL_create_empty_int_{element}_tensor"]())
        assert names[f"TTL_io_{element}_tensor_t"] is ttl.io_tensors_t


def test_names_that_are_not_there():
    for name in ("create_int_quux_tensor", "TTL_quux", "TTL_np", "int_float_tensor_t", "quux4", "float5"):
        with pytest.raises(AttributeError, match=name):
            getattr(ttl, name)


def test_every_public_function_has_an_example():
    documented = [name for name in ttl.__all__ if inspect.isfunction(getattr(ttl, name))]
    assert len(documented) > 70
    for name in documented:
        assert ">>> " in (inspect.getdoc(getattr(ttl, name)) or ""), name


def test_a_tile_stands_for_its_shape_and_moves_an_external_tensor():
    tiler = ttl.create_tiler(ttl.create_shape(10, 7), ttl.create_shape(4, 3))
    tile = ttl.get_tile(4, tiler)
    source = np.arange(70, dtype=np.uint8)
    inside = ttl.create_int_tensor(np.zeros(12, np.uint8), tile)
    ttl.blocking_import(inside, ttl.create_ext_tensor(source, tile, ttl.create_layout(10)))
    assert inside.array()[0].tolist() == source.reshape(7, 10)[3:6, 4:8].tolist()


IMAGE = np.arange(400, dtype=np.int16).reshape(20, 20)


@pytest.mark.parametrize("kind", ["ext", "const_ext"])
@pytest.mark.parametrize(("memory", "remedy"), [(IMAGE, "20"), (IMAGE.ravel(), "row_length"), (bytearray(800), "row")])
def test_a_tile_of_external_memory_needs_its_layout(kind, memory, remedy):
    tile = ttl.tile_t(ttl.create_shape(4, 3), ttl.create_offset(6, 5))
    create = getattr(ttl, f"create_{kind}_tensor")
    with pytest.raises(LayoutError, match=rf"needs the layout of the memory around .*pass create_layout\({remedy}"):
        create(memory, tile)
    assert create(memory, tile, ttl.create_layout(20), 2).base.offset == 2 * 106


def test_external_memory_whose_rows_are_not_packed_needs_its_layout():
    with pytest.raises(LayoutError, match=r"rows and planes of a packed .*create_layout\(20, plane_spacing=400\)"):
        ttl.create_ext_tensor(IMAGE, ttl.create_shape(4, 3))
    with pytest.raises(LayoutError, match="does not have the rows and planes"):
        ttl.create_ext_tensor(IMAGE.reshape(4, 5, 20), ttl.create_shape(20, 2, 2))
    assert ttl.create_ext_tensor(IMAGE, ttl.create_shape(4)).array().tolist() == [[[0, 1, 2, 3]]]
    assert ttl.create_ext_tensor(IMAGE, ttl.create_shape(20, 3)).array()[0].tolist() == IMAGE[:3].tolist()
    assert ttl.create_ext_tensor(IMAGE, ttl.create_shape(4, 3), ttl.create_layout(4)).array()[0, 1, 0] == 4


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ([1, 2, 3], "got list; for a list pass np.array"),
        (None, "got NoneType"),
        ("text", "got str"),
        (7, "got int"),
        (np.array([None, 1]), "whose elements are Python objects"),
        (IMAGE.T, "expected contiguous memory"),
        (memoryview(bytearray(8))[::2], "expected contiguous memory"),
    ],
)
def test_a_base_is_memory(base, message):
    for create in (ttl.create_int_tensor, ttl.create_const_ext_tensor):
        with pytest.raises(LayoutError, match=message):
            create(base, ttl.create_shape(2), ttl.create_layout(2), 1)
    with pytest.raises(LayoutError, match=message):
        ttl.pointer(base)


def test_element_types_are_named():
    for call in (
        lambda: ttl.SIZEOF("quux"),
        lambda: ttl.create_int_tensor(bytearray(8), ttl.create_shape(2), dtype="quux"),
        lambda: ttl.pointer(bytearray(8), 0, "quux"),
    ):
        with pytest.raises(LayoutError, match=r"expected a NumPy dtype or one of char, uchar, .*, got 'quux'"):
            call()


@pytest.mark.parametrize("extents", [(-1, 2), (2, -1), (2, 2, -3), (0,), (0, -1), (-1, -1)])
def test_a_shape_without_elements_is_empty(extents):
    shape = ttl.create_shape(*extents)
    tensor = ttl.create_int_tensor(np.zeros(12, np.int16), shape)
    assert ttl.shape_empty(shape)
    assert ttl.tile_empty(ttl.tile_t(shape, ttl.create_offset()))
    assert ttl.int_tensor_empty(tensor)
    assert not ttl.valid_int_tensor(tensor)
    with pytest.raises(TransferError, match="cannot transfer an empty tensor"):
        ttl.blocking_import(tensor, ttl.create_ext_tensor(np.zeros(12, np.int16), shape))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, [("a", "u1"), ("b", "<f4")], "V3"])
def test_any_element_type_moves(dtype):
    source = np.frombuffer(np.random.default_rng(0).bytes(24 * np.dtype(dtype).itemsize), dtype).copy()
    target = np.zeros(24, dtype)
    shape = ttl.create_shape(4, 3, 2)
    scratch_tensor = ttl.create_int_tensor(np.zeros(24, dtype), shape)
    ttl.blocking_import(scratch_tensor, ttl.create_const_ext_tensor(source, shape))
    ttl.blocking_export(scratch_tensor, ttl.create_ext_tensor(target, shape))
    assert target.tobytes() == source.tobytes()


def test_pointers_index_like_c():
    tensor = ttl.create_int_tensor(np.arange(12, dtype=np.int16), ttl.create_shape(4, 3))
    base = tensor.base
    assert base[1 * tensor.layout.row_spacing + 2] == 6
    (base + 5)[0] = 70
    assert ttl.read_tensor(tensor, 1, 1) == 70
    for index in (-1, 12):
        with pytest.raises(IndexError, match="outside the memory of 24 bytes"):
            base[index]


def test_forms_that_do_not_exist():
    with pytest.raises(LayoutError, match="takes"):
        ttl.create_int_tensor(bytearray(4), ttl.create_shape(4), ttl.create_offset(1))
    with pytest.raises(LayoutError, match="takes"):
        ttl.create_int_sub_tensor(1, 2, 3)
    with pytest.raises(LayoutError, match="2, 4 or 6"):
        ttl.create_augmentation(1)
    with pytest.raises(LayoutError, match="power of two"):
        ttl.create_int_layout(8, 3)
    with pytest.raises(LayoutError, match="3 of 2 events"):
        ttl.wait(3, [ttl.get_event(), ttl.get_event()])

# SPDX-License-Identifier: Apache-2.0
"""Every signature of the reference of Mojo's TileTensor binds with the names that it documents.

In Python a named parameter goes to the parentheses, by the rule of the dictionary; in Mojo source it stays in brackets.
"""

import inspect
import io
import re

import numpy as np
import pytest
from tilewright_mojo.buffer import DimList, NDBuffer
from tilewright_mojo.std.gpu.host import DeviceContext

import tilewright as tw
from tilewright import mojo
from tilewright.mojo import SIMD, DType, Float32, InlineArray, MutAnyOrigin, Span
from tilewright.mojo.layout import AddressSpace, Coord, Idx, Layout, Swizzle, TileTensor
from tilewright.mojo.layout.tensor_type import type_of
from tilewright.mojo.layout.tile_layout import col_major, row_major

# method[parameters](arguments) of the page, in its order; * is variadic. Parameters that are inferred are left out.
SIGNATURES = """\
TileTensor(span, layout)
TileTensor(buffer)
TileTensor(device_buffer, layout)
TileTensor(host_buffer, layout)
TileTensor(other)
__getitem__(coord)
__getitem__(*items)
__setitem__(coord, value)
__setitem__(*items, value)
get_type_name()
load[width, alignment, invariant](coord)
store[width, alignment](coord, value)
ptr_at_offset(coords)
prefetch(coords)
numel()
write_to(w)
tile[*tile_sizes](coordinates)
tile[*tile_sizes, stride_layout](coordinates)
tile[*tile_sizes](*tile_coords)
tile_with_offset[*tile_sizes](coordinates)
tile_with_offset[*tile_sizes, stride_layout](coordinates)
reshape[](layout_val)
reshape[*new_shape]()
reshape[](new_shape)
distribute[thread_layout, swizzle](thread_id)
distribute_with_offset[thread_layout, swizzle](thread_id)
fill[use_runtime_layout](val)
dim[i]()
dim(index)
dynamic_stride(index)
slice[*slices]()
slice(*slices)
vectorize[*vector_shape]()
vectorize()
coalesce()
make_dynamic[dyn_dtype]()
to_layout_tensor()
as_any_origin()
as_immut()
address_space_cast[target_address_space]()
to_device_buffer(ctx)"""

SOURCE = """\
from buffer import DimList, NDBuffer
from layout import Coord, Idx, RowMajorLayout, Swizzle, TileTensor
from layout.tile_layout import row_major
from std.gpu.host import DeviceContext
from std.memory import AddressSpace
var ctx = DeviceContext()
var device_memory = ctx.enqueue_create_buffer[DType.float32](48)
var host_memory = ctx.enqueue_create_host_buffer[DType.float32](48)
var storage = InlineArray[Float32, 48](fill=1)
for i in range(48):
    storage[i] = Float32(i)
var t = TileTensor(storage, row_major[6, 8]())
"""
NUMBERS = SIMD[DType.float32, 4](1, 2, 3, 4)
# {name: (the value, as Mojo writes it)}
VALUES = {
    "alignment": (4, "4"),
    "coord": (Coord(1, 2), "Coord(1, 2)"),
    "coordinates": (Coord(1, 1), "Coord(1, 1)"),
    "coords": (Coord(1, 2), "Coord(1, 2)"),
    "dyn_dtype": (DType.int32, "DType.int32"),
    "i": (1, "1"),
    "index": (1, "1"),
    "invariant": (True, "True"),
    "items": ((1, 2), "1, 2"),
    "layout": (row_major[6, 8](), "row_major[6, 8]()"),
    "layout_val": (row_major[8, 6](), "row_major[8, 6]()"),
    "stride_layout": (row_major[8, 1](), "row_major[8, 1]()"),
    "swizzle": (Swizzle(1, 0, 2), "Swizzle(1, 0, 2)"),
    "target_address_space": (AddressSpace.SHARED, "AddressSpace.SHARED"),
    "thread_id": (5, "5"),
    "thread_layout": (row_major[2, 4](), "row_major[2, 4]()"),
    "tile_coords": ((1, 1), "1, 1"),
    "tile_sizes": ((2, 4), "2, 4"),
    "use_runtime_layout": (True, "True"),
    "val": (2.5, "2.5"),
    "value": (NUMBERS, "SIMD[DType.float32, 4](1, 2, 3, 4)"),
    "vector_shape": ((2, 4), "2, 4"),
    "width": (4, "4"),
}


def read_names(text):
    return [name for name in re.split(r", ", text or "") if name]


def read_signature(line):
    method, parameters, arguments = re.fullmatch(r"(\w+)(?:\[(.*)\])?\((.*)\)", line).groups()
    return method, read_names(parameters), read_names(arguments)


def value_of(method, name, t, memory):
    """Return (value, Mojo's text) of a parameter or argument."""
    plain = name.removeprefix("*")
    if plain == "new_shape":
        return ((4, 12), "4, 12") if name.startswith("*") else (Coord(Idx(4), Idx(12)), "Coord(Idx(4), Idx(12))")
    if plain == "slices":
        ranges = (slice(1, 3), slice(2, 5)), "1:3, 2:5"
        return ranges if memory["brackets"] else (((1, 3), (2, 5)), "(1, 3), (2, 5)")
    if plain == "value" and method == "__setitem__":
        return 5.0, "5.0"
    return memory[plain] if plain in memory else VALUES[plain]


def describe(result):
    if isinstance(result, tuple):
        return [describe(part) for part in result]
    if isinstance(result, tw.TileTensor):
        dynamic = [str(getattr(leaf, "DTYPE", "")) for leaf in result._native_layout.shape]
        return (
            *(str(result.layout), result.offset, result.static_shape, result.static_stride, result.element_size),
            *(result.mut, result.address_space, str(result.dtype), dynamic),
        )
    return repr(result) if isinstance(result, (SIMD, str, int, type(None))) else type(result).__name__


def make_tensor():
    return TileTensor(InlineArray[Float32, 48](*range(48)), row_major[6, 8]())


def call(line, named):
    """Return (result, tensor) of a call of Python, with names or, as far as there are none, by position."""
    method, parameters, arguments = read_signature(line)
    t, context = make_tensor(), DeviceContext()
    writer = io.StringIO()
    memory = {
        "span": (Span(InlineArray[Float32, 48](fill=1)), ""),
        "buffer": (NDBuffer[DType.float32, 2, MutAnyOrigin, DimList(6, 8)](np.zeros(48, np.float32)), ""),
        "device_buffer": (context.enqueue_create_buffer[DType.float32](48), ""),
        "host_buffer": (context.enqueue_create_host_buffer[DType.float32](48), ""),
        "other": (t, ""),
        "ctx": (context, ""),
        "w": (writer, ""),
        "brackets": bool(parameters),
    }
    function = TileTensor if method == "TileTensor" else getattr(t, method)
    given = {name: value_of(method, name, t, memory)[0] for name in (*parameters, *arguments)}
    brackets = [given.pop(name) for name in parameters if name.startswith("*")]
    if brackets:
        function = function[brackets[0]]
    position = [part for name in arguments if name.startswith("*") for part in given.pop(name)]
    if named:
        return describe(function(*position, **given)), t, writer.getvalue()
    last = [given.pop(name) for name in arguments if name in given]
    if method.startswith("distribute"):
        return describe(function[given["thread_layout"], given["swizzle"]](*last)), t, writer.getvalue()
    return describe(function(*position, *last, **given)), t, writer.getvalue()


LINES = SIGNATURES.splitlines()
INTERNAL = re.compile(r"Brackets|MemoryTensor|ElementwiseTensor|__call__|lambda|unpack|\b_[a-z]")


def test_all_signatures_are_here():
    assert len(LINES) == 41
    assert len({read_signature(line)[0] for line in LINES}) == 27


@pytest.mark.parametrize("line", LINES)
def test_names_of_the_page_in_python(line):
    by_name, t, text = call(line, named=True)
    by_position, same, same_text = call(line, named=False)
    assert by_name == by_position
    assert text == same_text
    if not line.startswith("TileTensor"):
        assert t.to_numpy().tolist() == same.to_numpy().tolist()
    changes = line.startswith(("fill", "store", "__setitem__"))
    assert (t.to_numpy().tolist() != make_tensor().to_numpy().tolist()) is changes


@pytest.mark.parametrize("line", [line for line in LINES if not line.startswith("__") and "(w)" not in line])
def test_names_of_the_page_in_mojo(line):
    method, parameters, arguments = read_signature(line)
    memory = {
        "span": (None, "Span(storage)"),
        "buffer": (None, "NDBuffer[DType.float32, 2, MutAnyOrigin, DimList(6, 8)](storage)"),
        "device_buffer": (None, "device_memory"),
        "host_buffer": (None, "host_memory"),
        "other": (None, "t"),
        "ctx": (None, "ctx"),
        "brackets": bool(parameters),
    }

    def written(names):
        parts = [(name, value_of(method, name, None, memory)[1]) for name in names]
        return ", ".join(text if name.startswith("*") else f"{name}={text}" for name, text in parts)

    brackets = f"[{written(parameters)}]" if parameters else ""
    target = "TileTensor" if method == "TileTensor" else f"t.{method}"
    program = mojo.run(f"{SOURCE}var result = {target}{brackets}({written(arguments)})\n")
    wanted, t, _ = call(line, named=True)
    assert describe(program.result) == wanted
    assert program.t.to_numpy().tolist() == t.to_numpy().tolist()


@pytest.mark.parametrize("line", [line for line in LINES if not line.startswith("TileTensor")])
def test_other_names_are_refused_by_the_name_of_the_method(line):
    """An argument that a method does not have is refused, in words that name no class of ours."""
    method, parameters, _ = read_signature(line)
    function = getattr(make_tensor(), method)
    variadic = [name for name in parameters if name.startswith("*")]
    attempts = [function] if not variadic else [function[value_of(method, variadic[0], None, {"brackets": True})[0]]]
    for attempt in attempts:
        with pytest.raises(TypeError) as refusal:
            attempt(nonsense=1)
        assert method in str(refusal.value) or "reshape" in str(refusal.value)
        assert not INTERNAL.search(str(refusal.value))


@pytest.mark.parametrize("line", [line for line in LINES if "(" in line and not line.endswith("()")])
def test_missing_arguments_are_named(line):
    method, parameters, _ = read_signature(line)
    t = make_tensor()
    function = TileTensor if method == "TileTensor" else getattr(t, method)
    variadic = [name for name in parameters if name.startswith("*")]
    if variadic:
        function = function[value_of(method, variadic[0], None, {"brackets": True})[0]]
    if method == "slice" or (method == "reshape" and variadic):
        return
    with pytest.raises((TypeError, tw.LayoutError)) as refusal:
        function()
    assert not INTERNAL.search(str(refusal.value))


# Members of types.

NAMES = (
    "__copy_ctor_is_trivial __del__is_trivial __move_ctor_is_trivial all_dims_known flat_rank is_row_major rank"
    " shape_known static_shape static_stride stride_known mut dtype address_space linear_idx_type element_size"
    " ElementType"
)
MEMBERS = NAMES.split()
ALIASES = {
    "AddressSpaceCastType": ("address_space", AddressSpace.SHARED, "AddressSpace.SHARED"),
    "DynamicType": ("dyn_dtype", DType.int32, "DType.int32"),
    "OriginCastType": ("origin", MutAnyOrigin, "MutAnyOrigin"),
    "ViewType": ("new_layout", row_major[8, 6](), "row_major[8, 6]()"),
}
TENSORS = {
    "row-major": make_tensor,
    "column-major": lambda: TileTensor(np.zeros(48, np.int8), col_major[6, 8]()),
    "read-only": lambda: make_tensor().as_immut(),
    "vectors": make_tensor().vectorize[1, 4],
    "at run time": lambda: TileTensor(np.zeros(48), row_major(6, Idx[8]())),
    "shared": make_tensor().address_space_cast[AddressSpace.SHARED],
}


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_types_are_those_of_their_tensors(kind, name):
    t = TENSORS[kind]()
    full = TileTensor[t.dtype, t.layout, t.origin, t.address_space, t.linear_idx_type, t.element_size]
    assert getattr(type_of(t), name) == getattr(t, name) == getattr(full, name)


@pytest.mark.parametrize("name", [*MEMBERS, "GenericType.rank", "CoalescedType.rank", "device_type.mut"])
def test_members_of_types_in_mojo(name):
    if name.startswith("__"):
        expressions = [f"t.{name}", f"type_of(t).{name}", f"TileTensor.{name}"]
    else:
        expressions = [f"t.{name}", f"type_of(t).{name}"]
    program = mojo.run(SOURCE + "".join(f"var v{k} = {text}\n" for k, text in enumerate(expressions)))
    assert len({str(getattr(program, f"v{k}")) for k in range(len(expressions))}) == 1


@pytest.mark.parametrize("name", ALIASES)
def test_names_of_type_parameters(name):
    parameter, value, text = ALIASES[name]
    t = make_tensor()
    for owner in (t, type_of(t)):
        alias = getattr(owner, name)
        assert alias[value] == alias.with_parameters(value) == alias.with_parameters(**{parameter: value})
        with pytest.raises(TypeError, match=name):
            alias.with_parameters(nonsense=value)
    program = mojo.run(f"{SOURCE}var a = t.{name}[{parameter}={text}]\nvar b = type_of(t).{name}[{text}]\n")
    assert repr(program.a) == repr(program.b) == repr(getattr(type_of(program.t), name)[value])


def test_numbers_per_leaf_have_the_name_i():
    program = mojo.run(f"{SOURCE}var a = t.static_shape[i=1]\nvar b = type_of(t).static_stride[i=0]\n")
    assert (program.a, program.b) == (8, 8)


def test_parameters_of_the_struct_by_name():
    kind = "TileTensor[dtype=DType.float32, LayoutType=RowMajorLayout[2, 4], origin=MutAnyOrigin, element_size=4"
    program = mojo.run(f"{SOURCE}var v = {kind}](Span(storage), row_major[2, 4]())\n")
    assert (program.v.element_size, program.v.shape) == (4, (2, 4))
    vectors = TileTensor(np.arange(24, dtype=np.float32), Layout((2, 4), (8, 4)), element_size=4)
    assert vectors[1, 1].tolist() == [12.0, 13.0, 14.0, 15.0]
    assert isinstance(vectors, TileTensor[DType.float32, Layout, MutAnyOrigin, None, None, 4])
    with pytest.raises(tw.LayoutError, match="it needs 27"):
        TileTensor(np.zeros(24), Layout((2, 4), (8, 4)), element_size=7)
    with pytest.raises(tw.LayoutError, match="element_size must be at least 1"):
        TileTensor(np.zeros(24), Layout((2, 4), (8, 4)), element_size=0)


def test_the_type_of_run_time_integers_is_kept():
    t = make_tensor()
    for dtype in (DType.int32, DType.int64, DType.uint16):
        dynamic = t.make_dynamic[dtype]()
        assert [leaf.DTYPE for leaf in dynamic.layout.shape_coord()] == [dtype, dtype]
        assert isinstance(dynamic, t.DynamicType[dtype])
        assert isinstance(dynamic, type_of(t).DynamicType[dtype])
        others = [each for each in (DType.int32, DType.int64, DType.uint16) if each != dtype]
        assert not any(isinstance(dynamic, t.DynamicType[each]) for each in others)
    for make in (t.make_dynamic[DType.float32], lambda: t.DynamicType[DType.bool]):
        with pytest.raises(tw.LayoutError, match="must be an integer format"):
            make()


def test_the_package_points_to_the_names_of_layout():
    from tilewright.mojo import TileTensor as SameTensor

    assert SameTensor is TileTensor is mojo.TileTensor
    with pytest.raises(AttributeError, match="no attribute 'TensorTile'; Mojo's packages are layout, std and max"):
        _ = mojo.TensorTile


def test_open_types_say_what_is_missing():
    for name, remedy in (("mut", "add an origin"), ("is_row_major", "add a layout"), ("static_shape", "add a layout")):
        with pytest.raises(AttributeError, match=rf"TileTensor\[DType\.int8, _, _\] leaves {name} open; {remedy}"):
            getattr(TileTensor[DType.int8], name)


def test_signatures_of_plain_methods_have_the_names_of_the_page():
    for line in LINES:
        method, parameters, arguments = read_signature(line)
        function = inspect.getattr_static(TileTensor, method, None)
        if inspect.isfunction(function) and not parameters:
            names = inspect.signature(function).parameters
            assert {name.removeprefix("*") for name in arguments} <= {*names, "items", "tile_coords"}, line


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t: t.fill([]),
        lambda t: t.fill(SIMD[DType.float32, 2](1, 2)),
        lambda t: t.write_to(7),
        lambda t: t.distribute["x"](1),
        lambda t: t.distribute[row_major[2, 4]()](1.5),
        lambda t: t.address_space_cast["x"](),
        lambda t: t.AddressSpaceCastType[DType.int8],
        lambda t: t.to_device_buffer(None),
        lambda t: t.tile[2, 4](1.5, 0),
        lambda t: t.vectorize["x"](),
        lambda t: t.make_dynamic["x"](),
        lambda t: t.reshape("x"),
        lambda t: t.slice[0.5, 1](),
        lambda t: t.dim(1.5),
        lambda t: TileTensor(device_buffer=np.zeros(4), layout=row_major[4]()),
        lambda t: TileTensor(other=np.zeros(4)),
        lambda t: TileTensor(np.zeros(4), row_major[4](), span=np.zeros(4)),
        lambda t: TileTensor.with_parameters(DType.float32, nonsense=1),
    ],
)
def test_arguments_of_another_kind_are_refused(wrong):
    with pytest.raises((TypeError, tw.TilewrightError)) as refusal:
        wrong(make_tensor())
    assert not INTERNAL.search(str(refusal.value))
    assert "object has no attribute" not in str(refusal.value)

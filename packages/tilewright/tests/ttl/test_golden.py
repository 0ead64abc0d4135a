# SPDX-License-Identifier: Apache-2.0
"""TTL's recorded behaviour, replayed: tilers, layouts, transactions, schedules, kernels and alignments."""

import numpy as np

from tilewright import ttl
from tilewright.tiling import SimulatedQueue
from tilewright.tiling.schedule import Compute, Export, Import, Wait
from tilewright.tiling.transfers import COMPLETIONS

from ..cases import all_cases
from .golden import TYPES, cases, numbers, tiler_of, tilers_of
from .kernels import SCHEMES, kernel_of


@all_cases(("case", cases("tilers")))
def test_tilers(case):
    tiler = tiler_of(case)
    count = case["number_of_tiles"]
    assert ttl.number_of_tiles(tiler) == count
    assert ttl.tiles_in_width(tiler) == case["tiles_in_width"]
    assert ttl.tiles_in_height(tiler) == case["tiles_in_height"]
    assert ttl.tiles_in_depth(tiler) == case["tiles_in_depth"]
    assert tiler.tiles_in_plane == case["tiles_in_plane"]
    assert [numbers(ttl.get_tile(i, tiler)) for i in range(count)] == case["row_major"]
    assert [numbers(ttl.get_tile_column_major(i, tiler)) for i in range(count)] == case["column_major"]
    for number, other in case["out_of_range"].items():
        assert numbers(ttl.get_tile(int(number), tiler)) == other["tile"]
        assert ttl.tile_empty(ttl.get_tile(int(number), tiler)) == other["empty"]
        assert ttl.valid_tile_id(int(number), tiler) == other["valid_id"]
        assert ttl.tile_empty(ttl.get_tile_column_major(int(number), tiler))


@all_cases(("case", cases("layouts")))
def test_layouts(case):
    globals()[f"check_{case['kind']}"](case)


def check_create_layout(case):
    layout = ttl.create_layout(*case["args"])
    assert (layout.row_spacing, layout.plane_spacing) == (case["row_spacing"], case["plane_spacing"])


def check_linearize(case):
    assert ttl.linearize(ttl.create_offset(*case["offset"]), ttl.create_layout(*case["layout"])) == case["elements"]


def check_tensor(tensor, base, case):
    expect = case["expect"]
    assert tensor.base.address - base.ctypes.data == expect["base_byte_delta"]
    assert tensor.elem_size == expect["elem_size"]
    assert tensor.layout.row_spacing == expect["row_spacing"]
    shape = tensor.shape
    assert [shape.width, shape.height, shape.depth] == expect["shape"]
    # without a layout TTL takes the height for the plane spacing; packed is what it documents
    assert tensor.layout.plane_spacing == expect.get("plane_spacing_packed", expect["plane_spacing"])


def check_tensor_ctor(case):
    base = np.zeros(64, TYPES[case["type"]])
    given = {
        "base": base,
        "shape": ttl.create_shape(*case["shape"]),
        "layout": ttl.create_layout(*case.get("layout", ())),
        "offset": ttl.create_offset(*case.get("offset", ())),
        "elem_size": case.get("elem_size"),
    }
    arguments = [given[name] for name in case["form"].strip("()").split(",")]
    for const in ("", "const_"):
        tensor = getattr(ttl, f"create_{const}{case['space']}_tensor")(*arguments)
        check_tensor(tensor, base, case)
        assert getattr(ttl, f"{const}{case['space']}_tensor_empty")(tensor) == case["expect"]["empty"]


def check_sub_tensor_ctor(case):
    dtype = TYPES[case["type"]]
    base, elsewhere = np.zeros(64, dtype), np.zeros(64, dtype)
    shape, layout = ttl.create_shape(*case["origin"]["shape"]), ttl.create_layout(*case["origin"]["layout"])
    given = {
        "base": base,
        "shape": ttl.create_shape(*case.get("shape", (1,))),
        "layout": ttl.create_layout(*case.get("layout", ())),
        "offset": ttl.create_offset(*case.get("offset", ())),
        "elem_size": case.get("elem_size"),
        "origin_shape": shape,
        "sub_offset": ttl.create_offset(*case.get("sub_offset", ())),
        "origin_int_tensor": ttl.create_int_tensor(base, shape, layout),
        "origin_ext_tensor": ttl.create_ext_tensor(elsewhere, shape, layout),
    }
    tensor = ttl.create_int_sub_tensor(*[given[name] for name in case["form"].strip("()").split(",")])
    check_tensor(tensor, base, case)
    origin = tensor.origin
    assert [origin.shape.width, origin.shape.height, origin.shape.depth] == case["expect"]["origin_shape"]
    at = origin.sub_offset
    assert [at.x, at.y, at.z] == case["expect"]["origin_sub_offset"]


def check_address(case):
    x, y, z = case["coords"]
    dtype = np.dtype(TYPES[case["type"]])
    memory = np.zeros(case["byte_offset"] // dtype.itemsize + 1, dtype)
    tensor = ttl.create_int_tensor(memory, ttl.create_shape(x + 1, y + 1, z + 1), ttl.create_layout(*case["layout"]))
    ttl.write_tensor(tensor, 1, x, y, z)
    assert memory.nonzero()[0].tolist() == [case["byte_offset"] // dtype.itemsize]
    assert ttl.read_tensor(tensor, x, y, z) == 1


@all_cases(("case", cases("transactions")))
def test_transactions(case):
    dtype = TYPES[case["type"]]
    outside, inside = np.array(case["ext"]["data"], dtype), np.array(case["int"]["before"], dtype)
    shape, offset = ttl.create_shape(*case["int"]["shape"]), ttl.create_offset(*case["offset"])
    ext_layout, int_layout = (ttl.create_layout(*case[side]["layout"]) for side in ("ext", "int"))
    size = inside.itemsize
    if case["op"] == "import":
        external = ttl.create_const_ext_tensor(outside, shape, ext_layout, offset, size)
        ttl.blocking_import(ttl.create_int_tensor(inside, shape, int_layout), external)
    elif case["op"] == "export":
        external = ttl.create_ext_tensor(outside, shape, ext_layout, offset, size)
        ttl.blocking_export(ttl.create_const_int_tensor(inside, shape, int_layout), external)
    else:
        whole = ttl.create_const_ext_tensor(outside, ttl.create_shape(*case["ext"]["shape"]), ext_layout)
        external = ttl.create_const_ext_tensor(outside, shape, ext_layout, offset, size)
        event = ttl.get_event()
        ttl.import_sub_tensor(ttl.create_int_sub_tensor(inside, shape, int_layout, whole, offset), external, event)
        ttl.wait(1, event)
    expected = case.get("expect_int", case["int"]["before"]), case.get("expect_ext", case["ext"]["data"])
    assert (inside.tolist(), outside.tolist()) == expected


def run(case, ext_in, ext_out, event=ttl.get_event, shipped=False, compute=None):
    """Yield (phase, index, log of that phase, buffers) while a kernel runs."""
    get_tile = ttl.get_tile if case.get("order", "row_major") == "row_major" else ttl.get_tile_column_major
    loop = SCHEMES[case["scheme"]](
        ext_in, ext_out, *tilers_of(case), compute or kernel_of(case), event, get_tile, shipped
    )
    with ttl.record() as log:
        for phase, index, names in loop:
            yield phase, index, list(log), names
            log.clear()


def external_tensors(case, source, target, in_layout=None, out_layout=None):
    space = ttl.create_shape(*case["space"])
    row = [case["space"][0], case["space"][0] * case["space"][1]]
    return (
        ttl.create_const_ext_tensor(source, space, ttl.create_layout(*(in_layout or row))),
        ttl.create_ext_tensor(target, space, ttl.create_layout(*(out_layout or row))),
    )


@all_cases(("case", cases("pipelines")))
def test_shipped_schedules_as_they_happen(case):
    """Run the scheme, and compare every transaction and wait with those that TTL was seen to make."""
    size = max(1, int(np.prod(case["space"])))
    tensors = external_tensors(case, np.zeros(size, np.uint8), np.zeros(size, np.uint8))
    reading, writing = tilers_of(case)
    get_tile = ttl.get_tile if case["order"] == "row_major" else ttl.get_tile_column_major
    count = case["number_of_tiles"]
    tiles = [[numbers(get_tile(i, tiler)) for i in range(count)] for tiler in (reading, writing)]
    assert tiles == [case["input_tiles"], case["output_tiles"]]
    ids = {"import": {}, "export": {}}
    counts = {"import": 0, "export": 0, "wait": 0}
    phases = []
    for phase, index, log, names in run(case, *tensors, shipped=True):
        ops = []
        for entry in log:
            if hasattr(entry, "n_events"):
                counts["wait"] += 1
                retires = [[t.kind, ids[t.kind][t.tile]] for t in entry.retires]
                ops.append({"op": "wait", "n_events": entry.n_events, "retires": retires})
                continue
            known = ids[entry.kind]
            tile = known.setdefault(entry.tile, len(known))
            counts[entry.kind] += 1
            at, box = entry.offset, entry.shape
            ops.append(
                {
                    "op": entry.kind,
                    "tile": tile,
                    "buffer": next(name for name, memory in names.items() if ttl.pointer(memory) == entry.buffer),
                    "offset": [at.x, at.y, at.z],
                    "shape": [box.width, box.height, box.depth],
                    "int_elem_offset": entry.int_elem_offset,
                }
            )
        phases.append({"phase": phase, "ops": ops} | ({} if index is None else {"index": index}))
    recorded = [
        {key: value for key, value in phase.items() if key != "ops"}
        | {"ops": [op for op in phase["ops"] if op["op"] != "compute"]}
        for phase in case["phases"]
    ]
    assert phases == recorded
    assert [counts[kind] for kind in ("import", "export", "wait")] == [
        case["n_imports"],
        case["n_exports"],
        case["n_waits"],
    ]


@all_cases(("case", cases("pipelines")))
def test_shipped_schedules_as_data(case):
    found = []
    for phase in ttl.schedule(case["scheme"], case["number_of_tiles"], shipped=True):
        ops = []
        for action in phase.actions:
            if isinstance(action, Wait):
                retires = [[key.kind, key.tile] for key in action.retires]
                ops.append({"op": "wait", "n_events": action.events, "retires": retires})
            elif isinstance(action, Compute):
                ops.append(
                    {
                        "op": "compute",
                        "tile": action.tile,
                        "read_buffer": action.read_buffer,
                        "write_buffer": action.write_buffer,
                    }
                )
            else:
                ops.append({"op": type(action).__name__.lower(), "tile": action.tile, "buffer": action.buffer})
        found.append({"phase": phase.name, "ops": ops} | ({} if phase.step is None else {"index": phase.step}))
    where = ("offset", "shape", "int_elem_offset")
    recorded = [
        phase | {"ops": [{k: v for k, v in op.items() if k not in where} for op in phase["ops"]]}
        for phase in case["phases"]
    ]
    assert found == recorded


@all_cases(("scheme", ["double", "duplex", "simplex"]))
def test_our_schedules_differ_from_the_shipped_ones_where_we_say(scheme):
    for tiles in range(6):
        ours, theirs = list(ttl.schedule(scheme, tiles)), list(ttl.schedule(scheme, tiles, shipped=True))
        if scheme == "double":
            assert ours == theirs
        for mine, other in zip(ours, theirs, strict=True):
            if scheme == "duplex" and mine.step == 0:
                assert [type(a) for a in mine.actions] == [Wait, Compute]
                assert [type(a) for a in other.actions] == [Import, Wait, Compute]
            elif scheme == "simplex":
                bare = tuple(a._replace(after=()) if isinstance(a, Import) else a for a in mine.actions)
                assert bare == other.actions
                for action in mine.actions:
                    if isinstance(action, Import) and action.tile >= 2:
                        left = [a for a in mine.actions if isinstance(a, Export) and a.buffer == action.buffer]
                        assert action.after == ((("export", left[0].tile, 0)),)
            else:
                assert mine == other


@all_cases(("case", cases("kernels")))
def test_kernels(case):
    dtype = TYPES[case["type"]]
    source = np.array(case["input"], dtype)
    for completion in (None, *COMPLETIONS):
        target = np.array(case["output_before"], dtype)
        engine = completion and SimulatedQueue(completion)
        tensors = external_tensors(case, source, target, case["in_layout"], case["out_layout"])
        for _ in run(case, *tensors, event=lambda engine=engine: ttl.get_event(engine)):
            pass
        assert target.tolist() == case["output"], completion


@all_cases(("case", cases("alignment")))
def test_alignment(case):
    given = [case[name] for name in ("row_spacing", "row_alignment", "plane_spacing", "plane_alignment")]
    for layout in (ttl.create_ext_layout(*given), ttl.create_int_layout(*given)):
        assert [layout.row_spacing, layout.plane_spacing] == case["expect"]

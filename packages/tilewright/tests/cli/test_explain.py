# SPDX-License-Identifier: Apache-2.0
"""`explain`: the way of an element, and back."""

import pytest

import tilewright as tw

BLOCK = ("4x60x90", "--dtype", "bfloat8_b", "--shard", "block", "--grid", "8x8")


def test_the_whole_chain_is_told(run):
    shown = run("explain", *BLOCK, "--at", "2,33,17").out
    assert shown.splitlines()[2:] == [
        "element   (2, 33, 17) of [4, 60, 90]",
        "padded    to [4, 64, 96], of which 12.1 % is padding",
        "matrix    row 161 = 2 x 64 + 33, column 17, of 256 x 96",
        "tile      (5, 0) of 8 x 3: row 1, column 17",
        "face      1 of 4, 16 x 16 each: row 1, column 1",
        "page      15 of 24, 1088 bytes each: element 273",
        "value     byte 337 = 64 + 273, after the exponents",
        "exponent  byte 17, shared by the 16 elements (2, 33, 16) to (2, 33, 31)",
        "shard     15 = (5, 0) of 8 x 3, 32 x 32 each: page 0 of 1",
        "core      (0, 5), which is L1 bank 18",
        "address   1498385 (0x16dd11) = buffer 1498048 + page at 0 + byte 337",
        "exponent  1498065 (0x16dbd1) = buffer 1498048 + page at 0 + byte 17",
        "assumed   wormhole_n150",
    ]
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_the_way_back(run):
    there = run("explain", *BLOCK, "--at", "2,33,17", "--json").json
    back = run("explain", *BLOCK, "--core", "0,5", "--address", there["address"], "--json").json
    assert (back["kind"], back["coordinate"]) == ("data", [2, 33, 17])
    same = run("explain", *BLOCK, "--bank", there["bank"], "--address", hex(there["address"]), "--json").json
    assert same["coordinate"] == [2, 33, 17]
    assert (
        "exponent of (2, 33, 16) to (2, 33, 31)"
        in run("explain", *BLOCK, "--core", "0,5", "--address", there["exponent"]).out
    )
    assert "nothing of this tensor" in run("explain", *BLOCK, "--core", "7,7", "--address", "0").out


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        ([], {}),
        (["--layout", "tile", "--tile", "16x32"], {"page_layout": "tile", "tile": (16, 32)}),
        (
            ["--dtype", "float32", "--buffer", "l1", "--chip", "p150"],
            {"dtype": "float32", "memory": "l1", "chip": "p150"},
        ),
        (
            ["--shard", "nd", "--shard-shape", "1x64x32", "--grid", "4x2", "--layout", "tile"],
            {"page_layout": "tile", "memory": tw.nd_sharded((1, 64, 32), (4, 2))},
        ),
        (
            ["--shard", "dims", "--shard-dims", "0", "--grid", "4x1", "--layout", "tile"],
            {"page_layout": "tile", "memory": tw.memory.sharded_across_dims([0], (4, 1))},
        ),
        (
            ["--shard", "width", "--orientation", "col_major", "--layout", "tile"],
            {"page_layout": "tile", "memory": tw.width_sharded((8, 8), orientation="col_major")},
        ),
        (
            ["--shard", "height", "--grid", "0,0-3,1+5,0-5,1", "--layout", "tile"],
            {"page_layout": "tile", "memory": tw.height_sharded([((0, 0), (3, 1)), ((5, 0), (5, 1))])},
        ),
        (["--transpose-tile", "--base", "4096"], {"page_layout": "tile", "tile": tw.Tile((32, 32), transpose=True)}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_make_the_spec(run, options, spec):
    found = run("explain", "4x60x90", *options, "--at", "2,33,17", "--json").json
    wanted = tw.TensorSpec((4, 60, 90), **{"chip": "wormhole_n150", **spec})
    base = 4096 if "--base" in options else None
    assert found["address"] == wanted.where(2, 33, 17, base=base).address
    assert found["tensor"] == str(wanted)


def test_a_scalar_and_a_vector(run):
    assert run("explain", "()", "--at", "()", "--json").json["page"] == 0
    assert run("explain", "100", "--at", "99", "--dtype", "int32", "--json").json["byte"] == 396


def test_a_tensor_of_a_file_is_placed_as_the_file_says(run, files):
    found = run("explain", "bfloat8_b.tensorbin", "--at", "99,69", "--json").json
    values = tw.open_tensors("bfloat8_b.tensorbin")["bfloat8_b"].read()
    assert found["value"] == values[99, 69]
    assert found["core"] == [3, 0]
    back = run("explain", "bfloat8_b.tensorbin", "--core", "3,0", "--address", found["address"], "--json").json
    assert back["coordinate"] == [99, 69]
    shown = run("explain", ".", "--tensor", "w", "--at", "0,0", "--chip", "p150").out
    assert "w.npy, at byte 128" in shown
    assert "blackhole_p150" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["."], "holds 3 tensors; choose one with --tensor"),
        ([".", "--tensor", "v"], "has no tensor 'v'"),
        (["w.npy", "--dtype", "float32"], "--dtype cannot be used with a file: w.npy states"),
        (["4x4", "--tensor", "w"], "--tensor needs a file, but 4x4 is a shape"),
        (["nothing"], "is not a shape; write extents as 4x60x90, or name an existing file"),
    ],
)
def test_files_and_shapes_are_told_apart(run, files, arguments, message):
    assert message in run("explain", *arguments, "--at", "0,0", status=2).err


def test_the_core_of_a_dram_tensor_is_a_bank(run):
    said = run("explain", "60x90", "--core", "1,0", "--address", "0x100040").out
    assert "of core (1, 0), which is DRAM bank 1" in said
    assert "DRAM banks 0 to 11, got bank 99" in run("explain", "60x90", "--bank", "99", "--address", "0", status=2).err


def test_what_is_missing_is_said_before_the_options(run):
    for name in ("missing.safetensors", "missing/"):
        assert run("explain", name, status=3).err.startswith(f"tilewright: error: {name}: no such file or directory;")
    assert "'missing' is not a shape" in run("explain", "missing", status=2).err
    assert "--core X,Y or --bank N" in run("explain", "4x4", "--address", "0", status=2).err


def test_remedies_are_what_one_types_here(run):
    """Messages that reach the command line do not name calls of Python."""
    requests = (
        ("explain", "4x4", "--at", "0,0", "--chip", "nonsense"),
        ("explain", "4x4", "--core", "0,0", "--address", "0", "--chip", "none"),
        ("explain", "8192x8192", "--shard", "height", "--grid", "1x1", "--at", "0,0"),
        ("explain", "64x64", "--layout", "row_major", "--dtype", "bfloat8_b", "--at", "0,0"),
        ("explain", "64x64", "--layout", "row_major", "--tile", "16x16", "--at", "0,0"),
        ("explain", "64x64", "--shard", "block", "--grid", "3,3-1,1", "--at", "0,0"),
        ("explain", "(4,8):(8,1)", "--at", "9,9"),
        ("reshard", "64x64:shard=height:grid=2x1", "dram", "--step", "9", "--map"),
        ("reshard", "64x64", "l1", "--chip", "grayskull_e150", "--links"),
    )
    for request in requests:
        message = run(*request, status=2).err
        for call in ("Chip.read", "chip=", "fit()", "page_layout", "CoreRange(", "extended", "step=", "tw."):
            assert call not in message, (request, message)
    assert "the path of a .toml file" in run(*requests[0], status=2).err


SPEC = (
    "TensorSpec(logical_shape=Shape([{shape}]),tensor_layout=TensorLayout(dtype=DataType::{dtype},page_config=PageConfig("
    "config=TilePageConfig(tile=Tile(tile_shape={{32, 32}},face_shape={{16, 16}},num_faces=4))),memory_config="
    "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::{buffer},shard_spec=std::nullopt,"
    "nd_shard_spec=std::nullopt,created_with_nd_shard_spec=0),alignment=Alignment([32, 32])))"
)


@pytest.mark.parametrize(("shape", "dtype", "buffer"), [("64, 64", "BFLOAT16", "DRAM"), ("3, 70, 90", "UINT32", "L1")])
def test_a_printed_spec_is_explained_drawn_and_fitted_as_it_is(run, shape, dtype, buffer):
    text = SPEC.format(shape=shape, dtype=dtype, buffer=buffer)
    assert len(text) > 255  # longer than the name of a file may be
    typed = ["--dtype", dtype.lower(), "--layout", "tile", "--buffer", buffer.lower()]
    at = ",".join("2" for _ in shape.split(","))
    extents = shape.replace(", ", "x")
    own, printed = (run("explain", *arguments, "--at", at, "--json").json for arguments in ([extents, *typed], [text]))
    assert printed == own
    own, printed = (run("fit", *arguments, "--json").json for arguments in ([extents, *typed], [text]))
    assert printed == own
    own, printed = (run("show", *arguments, "--json").json for arguments in ([extents, *typed], [text]))
    assert printed == own
    assert "states how" in run("explain", text, "--at", at, "--dtype", "float32", status=2).err
    assert "states it" in run("show", text, "--dtype", "float32", status=2).err


@pytest.mark.parametrize("verb", ["explain", "show", "fit", "translate"])
@pytest.mark.parametrize(
    "text", ["x" * 300, "x" * 5000, "(" + "1," * 400 + "1)x", "a/" * 200 + "b", "\0", "MemoryConfig(" * 40]
)
def test_no_argument_is_too_long_for_a_clear_error(run, verb, text):
    more = ["--at", "0"] if verb == "explain" else []
    problem = run(verb, text, *more, status=2).err
    assert "file name too long" not in problem
    assert len(problem) < 700


def test_a_text_states_the_bytes_of_its_elements(run):
    text = "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)"
    assert run("explain", text, "--at", "1,8").out.splitlines()[-1] == "byte      128 = 64 x 2"
    assert run("explain", text, "--at", "1,8", "--json").json["itemsize"] == 2
    shared = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
    memory = f"!ttg.memdesc<8x64xf16, {shared}, #ttg.shared_memory, mutable>"
    assert run("explain", memory, "--at", "1,8").out.splitlines()[1:] == ["offset    64", "byte      128 = 64 x 2"]
    assert run("explain", shared, "--shape", "8x64", "--at", "1,8", "--json").json["itemsize"] is None


def test_registers_have_no_offsets(run):
    text = "tensor<32xf16, #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>>"
    assert "has no offsets to explain; draw it with tilewright show" in run("explain", text, "--at", "3", status=2).err


def test_what_a_spec_leaves_out_of_a_text_is_named(run):
    text = (
        "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, bf16>,"
        " #ttnn.buffer_type<dram>>, <interleaved>, quux = 3>"
    )
    assert run("explain", text, "--shape", "32x64", "--at", "1,3").err == "note: the answer leaves out quux = 3\n"


@pytest.mark.parametrize("mode", ["", ",mode=ShardMode::PHYSICAL,physical_shard_shape=std::nullopt"])
def test_a_memory_config_stands_behind_its_shape(run, mode):
    config = (
        "MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1,shard_spec=ShardSpec("
        f"grid={{[(x=0,y=0) - (x=7,y=3)]}},shape={{64, 512}},orientation=ShardOrientation::ROW_MAJOR{mode}))"
    )
    typed = ("2048x512", "--layout", "tile", "--shard", "height", "--grid", "8x4")
    for pasted in (f"2048x512:{config}", f"[2048, 512]: {config}", "2048x512:shard=height:grid=8x4"):
        for arguments in (("explain", "--at", "100,77"), ("explain",), ("fit",), ("show", "--label", "held")):
            found = run(arguments[0], pasted, "--layout", "tile", *arguments[1:])
            assert found.out == run(arguments[0], *typed, *arguments[1:]).out
        assert "--grid has no effect" in run("explain", pasted, "--grid", "8x4", status=2).err
    described = run("explain", config).out
    assert described.startswith("height sharded in L1, shards of 64 x 512 on 32 cores")
    assert ("mode=ShardMode::PHYSICAL" in described) == bool(mode)


def test_what_a_text_of_ttnn_states_besides_is_not_dropped(run):
    config = "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1,colour=blue)"
    assert "also states colour=blue, which is not modelled; leave it out" in run("explain", config, status=2).err

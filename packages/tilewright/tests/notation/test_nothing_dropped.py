# SPDX-License-Identifier: Apache-2.0
"""The law of texts: whatever a text contains is used, named in what `parse` returns, or refused.

An attribute that no system has is put into every place of a text of every notation. If the text is still read, the
name must be found again.
"""

import re

import pytest

import tilewright as tw
from tilewright.notation import NOTATIONS, parse
from tilewright.ttnn.text import ttnn_text

SHARDED = tw.MemoryConfig(
    "block_sharded", "l1", tw.memory.ShardSpec(tw.memory.CoreRangeSet([tw.memory.CoreRange((0, 0), (1, 1))]), (64, 64))
)
SPEC = tw.TensorSpec((128, 128), "bfloat16", "tile", memory=SHARDED)
JSON_RANGE = '{"start": {"x": 0, "y": 0}, "end": {"x": 7, "y": 1}}'
SHARDS = f'{{"grid": [{JSON_RANGE}], "shape": [32, 64], "orientation": 0}}'

INTERLEAVED = (
    "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<dram>>,"
    " <interleaved>>"
)
SAMPLES = {
    "error": [],  # is found within any text: what is around it is noise
    "tt-metal": [],  # so are the words of a kernel
    "tilewright": ["(4,8):(8,1)", "(4,(2,3)):(6,(1,2))+5", "Sw<3,0,3> o (8,8):(8,1)"],
    "cute": [
        "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
        "gmem_ptr[32b]((nil)) o (4,8):(_1,4)",
        "Layout<Shape<_4,_8>,Stride<_8,_1>>",
        "ComposedLayout<Swizzle<3,0,3>,_0,Layout<Shape<_8,_8>,Stride<_8,_1>>>",
        "Sw<3,4,3>_smem_ptr[16b](0x7f8f00001380) o (_8,_64):(_64,_1)",
        "tCtAcc:\ttmem_[32b](0x0000.0000) o ((_128,_256),_1,_1):((_65536,_1),_0,_0)",
        "counting_iter(5) o (4,8):(1,4)",
        "UMMA::DescriptorIterator o (_1,_1,_4):(_0,_0,_2)",
        (
            "cute::ComposedLayout<cute::Swizzle<3, 4, 3>, cute::smem_ptr_flag_bits<16>, cute::Layout<"
            "cute::tuple<cute::C<8>, cute::_64>, cute::tuple<cute::constant<int, 64>, cute::C<1> > > >"
        ),
        (
            "cute::Tensor<cute::ViewEngine<cute::smem_ptr<__half*> >, cute::ComposedLayout<cute::Swizzle<2, 3, 3>,"
            " cute::C<0>, cute::Layout<cute::tuple<cute::C<128>, cute::C<32> >,"
            " cute::tuple<cute::C<32>, cute::C<1> > > > >"
        ),
        "tensor<ptr<f16, smem, align<1024>> o S<3,4,3> o 0 o (64,8):(8,1)>",
        "tensor<ptr<bf16, smem, align<1024>, S<3,4,3>> o ((64,16),1,(4,2),2):((64,1),0,(16,4096),8192)>",
        "tensor<ptr<f32, gmem, align<16>> o (?,?{div=128}):(?{i64},1)>",
        "raw_ptr(0x00007fbeac604c00: f32, gmem, align<4>) o (4,8):(8,1)",
        "Tensor<0x000000000875f580@gmem o (30, 20):(20, 1)>",
        '!memref_smem_f16_ = !cute.memref<f16, smem, align<128>, S<3,4,3>, "((64,1),(8,8)):((1,0),(64,512))">',
        '%0 = cute.static : !cute.composed_layout<"S<3,4,3> o 0 o ((128,16),1,4):((64,1),0,16)">',
        '!cute.coord_tensor<"(0,0,0)", "(4,8,2):(1@0,1@1,1@2)">',
    ],
    "tt-mlir": [
        (
            "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x12>, memref<1x1x!ttcore.tile<32x32, f32>,"
            " #ttnn.buffer_type<dram>>,"
            " <width_sharded>, core_ranges = <[#ttnn.core_range<(0, 0), (11, 0)>]>>"
        ),
        f"#dram = {INTERLEAVED}",
        f'%2 = "ttnn.relu"(%1) : (tensor<32x64xf32, {INTERLEAVED}>) -> tensor<32x64xf32, {INTERLEAVED}>',
    ],
    "triton": [
        (
            "tensor<32x16xf16, #ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0],"
            " [4, 0]], warp = [[16, 0], [0, 8]], block = []}>>"
        ),
        (
            "tensor<64x64xf16, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1],"
            " instrShape = [16, 8]}>>"
        ),
        (
            "tensor<64x64xf16, #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8],"
            " isTransposed = true}>>"
        ),
        "tensor<16x16xf16, #ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>>",
        "tensor<32xf16, #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>>",
        (
            "tensor<64xf16, #ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0,"
            " warpsPerCTA = [4, 1], instrShape = [16, 8]}>}>>"
        ),
        (
            "tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0,"
            " warpsPerCTA = [4, 1], instrShape = [16, 8]}>, kWidth = 2}>>"
        ),
        (
            "!ttg.memdesc<8x64xf16, #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>,"
            " #ttg.shared_memory, mutable>"
        ),
        (
            "!ttg.memdesc<8x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true,"
            " elementBitWidth = 16}>,"
            " #ttg.shared_memory, mutable>"
        ),
        (
            "!ttg.memdesc<8x8xf16, #ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]},"
            " alignment = 16>, #ttg.shared_memory>"
        ),
        "!ttg.memdesc<16x64xf16, #ttg.padded_shared<[64:+8] {order = [1, 0], shape = [16, 64]}>, #ttg.shared_memory>",
        (
            "!ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>,"
            " #ttng.tensor_memory, mutable>"
        ),
        (
            "#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>\n"
            "%4 = tt.load %arg0 : tensor<64x!tt.ptr<f16>, #b> loc(#loc3)"
        ),
        "gl.PaddedSharedLayout.with_identity_for([[64, 8]], [16, 64], [1, 0])",
        (
            "part = gl.DistributedLinearLayout(reg_bases=[[0, 1], [8, 0]], block_bases=[], shape=[32, 16],"
            " lane_bases=[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp_bases=[[16, 0], [0, 8]])"
        ),
    ],
    "axe": [
        "TileLayout(S[(8,2,4,2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid)",
        "(8,4,2):(4@laneid,1@laneid,1@warpid) + [2:4@warpid]",
    ],
    "vpad": ['#tpu.vpad<"16,{0,*},(16,128),-2">', '#l = #tpu.vpad<"32,{*,128},(8,128)">'],
    "memref": [
        "memref<4x8xf32, strided<[64, 1], offset: 5>, #gpu.address_space<workgroup>>",
        "memref<4x8xf32, affine_map<(d0, d1) -> (d0 * 8 + d1)>, 3>",
    ],
    "mlir": ["affine_map<(d0, d1)[s0] -> (d0 floordiv 8 + s0, d1 mod 4)>"],
    "mosaic": ["Tiling((64, 64)(16, 16))"],
    "tvm": ["T.index_map(lambda n, c: (n, c // T.int64(16), c % T.int64(16)))", "lambda i, j: [j // 4, i, j % 4]"],
    "xla": ["pred[123,456]{1,0:T(8,128)L(4)E(32)S(3)SC(0:10)(1:4,5)M(8)}", "u32[]{:T(128)}", "f32[<=8,4]"],
    "ttnn": [
        ttnn_text(SPEC),
        f"Op | DEBUG | output_mem_config = {ttnn_text(SPEC.memory)}",
        ttnn_text(SPEC.replace(page_layout="row_major")),
        ttnn_text(SHARDED),
        f"Tensor(storage=DeviceStorage(),tensor_spec={ttnn_text(SPEC)})",
        f'{{"memory_layout": 2, "buffer_type": 1, "shard_spec": {SHARDS}}}',
        SHARDS,
        JSON_RANGE,
        '{"x": 7, "y": 3}',
        "Tile with shape: [16, 32]",
        "Shape([14[32], 28[32]])",
        "{[0-0 - 7-0], [0-1 - 1-1]}",
    ],
    "onednn": ["aBcd16b", "nChw16c"],
    "sharding": [
        '{devices=[2,1,2,2]<=[4,2]T(1,0) last_tile_dims={manual, replicated} metadata={op_name="dot"}}',
        "{devices=[4]3,1,2,0 last_tile_dim_replicate shard_as 1}",
        "{{maximal device=3}}",
        "{mesh['x'=2,'y'=4], device_ids=([8]), [{'x'}, {'y':(1)2, ?}]}",
        (
            'sdy.mesh @mesh = <["x"=2], device_ids=[1,0]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}]}}'
            ' #sdy.sharding<@mesh, [{"x"}p1, {?}], replicated={}>'
        ),
        "NamedSharding(mesh=Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto)), spec=P(('x', 'y')), memory_kind=device)",
        (
            "Mesh(device_ids=array([[0, 1],\n [2, 3]]), axis_names=('x', 'y'))"
            " PartitionSpec(UNCONSTRAINED, 'x', unreduced={'y'})"
        ),
        "GSPMDSharding({devices=[2]<=[2]}, memory_kind=device)",
        (
            "DTensorSpec(mesh=DeviceMesh((dp=2, tp=2), 'cuda', stride=(2, 1)), placements=(Shard(dim=0), Partial(sum)),"
            " tensor_meta=TensorMeta(shape=torch.Size([8, 4]), stride=(4, 1), dtype=torch.float32))"
        ),
        "DeviceMesh('cpu', [[0, 1], [2, 3]], mesh_dim_names=('dp', 'tp')) Spec(f32[8, 4](S(0)[1]S(0)[0]))",
        "DTensor(local_tensor=tensor([1, 2]), device_mesh=DeviceMesh((2,)), placements=(Replicate(),))",
        "Spec(RS(1) on (8, 4)) @ mesh: (2, 2)",
    ],
}
NAMELESS = {"onednn": (2, 32, 3, 5), "mosaic": (128, 128), "tvm": (8, 64)}
UNKNOWN = [
    *(
        "quux = 3, ",
        ", quux = 3",
        ", quux=3",
        "quux=3,",
        ', "quux": 3',
        '"quux": 3, ',
        ", #quux.a<3>",
        ", quux",
        "quux, ",
    ),
    *(";quux=3", ", quux: 3", "quux: 3, ", " quux", " quux=3", " quux = 0", ",quux=0", "QUUX(3)", " {quux = 3}"),
    *(', "quux": 0', ', "quux": null', ",quux=std::nullopt", ', "quux"', ", 'quux'", "<quux>", ", quux = false"),
]
WORD = re.compile(r"\w")


def places(text):
    """Yield the positions in a text where an attribute may stand: not within a word or a number."""
    for at in range(len(text) + 1):
        if not (WORD.match(text[at - 1 : at]) and WORD.match(text[at : at + 1])):
            yield at


def test_every_notation_has_samples():
    assert set(SAMPLES) == set(NOTATIONS)
    for notation, texts in SAMPLES.items():
        for text in texts:
            found = getattr(parse(text, NAMELESS.get(notation)), "notation", "tilewright")
            assert found == notation or {found, notation} == {"tilewright", "cute"}, text


@pytest.mark.parametrize("notation", SAMPLES)
def test_an_unknown_attribute_is_refused_or_named(notation):
    for text in SAMPLES[notation]:
        for at in places(text):
            for unknown in UNKNOWN:
                changed = text[:at] + unknown + text[at:]
                try:
                    parsed = parse(changed, NAMELESS.get(notation))
                except tw.TilewrightError:
                    continue
                value = getattr(parsed, "value", parsed)
                said = repr(value) if notation == "sharding" else f"{value!r} {parsed}"  # which has the text itself
                said += f" {getattr(parsed, 'around', '')}"
                assert "quux" in said.lower(), f"{changed!r} drops {unknown!r}"


@pytest.mark.parametrize(
    "text",
    [
        "f32[8,128]{1,0:Q(3)}",
        "f32[8,128]{1,0:S(1)S(2)}",
        "f32[8,128]{1,0:S(1)T(8,128)}",
        "f32[8]{0:D(C)}",
        "f32[8]{0:SC(1:4)}",
        "f32[8]{0:E(many)}",
        "f32[8]{0:P(f32[8]{0:P(f32[8])})}",
        "memref<4x8xf32, strided<[8, 1]>, strided<[1, 4]>>",
        "memref<4x8xf32, 3, strided<[8, 1]>>",
        "memref<4x8xf32, 3, 4>",
        "lambda i, **rest: [i]",
        "lambda i, /: [i]",
        "T.index_map(lambda i: [i], lambda i: [i])",
        '{"x": 7, "y": 3, "z": 1}',
    ],
)
def test_what_would_be_lost_is_refused(text):
    with pytest.raises(tw.LayoutError):
        parse(text, (8,) if "lambda" in text else None)


@pytest.mark.parametrize(
    "text",
    [
        "u32[]{:T(128)}",
        "f32[]",
        "f32[]{:S(5)}",
        "f32[<=8,128]{1,0:T(8,128)}",
        "pred[123,456]{1,0:S(3)SC(0:10)(1:4,5)}",
        "f32[8,128]{1,0:T(8,128)L(4)#(u32)*(s8)E(32)S(1)SC(0:4)P(f32[8,128]{1,0})M(16)}",
    ],
)
def test_what_xla_prints_is_read_and_written_back(text):
    assert str(parse(text)) == tw.write(parse(text), "xla") == text


@pytest.mark.parametrize("text", [text for text in SAMPLES["triton"] if "{" in text])
@pytest.mark.parametrize("unknown", ["quux = 3, ", "tilesPerQuux = [2, 2], "])
def test_an_unknown_field_of_an_encoding_has_no_layout(text, unknown):
    for at in [found.end() for found in re.finditer(r"(?<!ctaLayout = )\{", text)]:
        parsed = parse(text[:at] + unknown + text[at:])
        with pytest.raises(tw.LayoutError, match=rf"has a field '{unknown.split()[0]}', which may move elements"):
            parsed.layout  # noqa: B018


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (", quux = 3", "quux = 3"),
        (', mesh = <"m">', 'mesh = <"m">'),
        (", ignorePhysicalLayout = true", "ignorePhysicalLayout = true"),
    ],
)
def test_what_a_spec_does_not_have_is_named(extra, named):
    text = (
        "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1{}>, memref<1x2x!ttcore.tile<32x32, bf16>,"
        " #ttnn.buffer_type<dram>>, <interleaved>{}>"
    )
    assert parse(text.format("", extra), (32, 64)).besides == [named]
    assert parse(text.format(", quux", ""), (32, 64)).besides == ["grid map quux"]


def test_a_layout_attribute_alone_states_no_element_type():
    strided = parse("strided<[64, 1], offset: 3>", shape=(8, 64))
    assert strided.itemsize is None
    assert str(strided) == "strided<[64, 1], offset: 3>"
    assert strided.layout == tw.Layout((8, 64), (64, 1)) + 3
    for bits in (8, 16, 32):
        text = f"#ttg.nvmma_shared<{{swizzlingByteWidth = 128, transposed = false, elementBitWidth = {bits}}}>"
        assert parse(text, shape=(8, 1024 // bits)).itemsize == bits // 8
    swizzled = parse("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>", shape=(8, 64))
    assert swizzled.itemsize is None


@pytest.mark.parametrize(
    ("text", "itemsize"),
    [
        ("c64[8]{0}", 8),
        ("c128[8]{0}", 16),
        ("s4[8]{0}", 1),  # a byte each, unless they are packed
        ("s4[8]{0:E(4)}", None),
        ("pred[8]{0}", 1),
        ("f8e4m3fn[8]{0}", 1),
        ("f4e2m1fn[8]{0}", 1),
        ("memref<8xindex>", None),
        ("tensor<2xf8E8M0FNU, #ttg.linear<{register = [[1]], lane = [], warp = [], block = []}>>", 1),
        ("tensor<2xindex, #ttg.linear<{register = [[1]], lane = [], warp = [], block = []}>>", None),
        ("smem_ptr[128b](unset) o (_8):(_1)", 16),
    ],
)
def test_the_bytes_of_an_element(text, itemsize):
    assert parse(text).itemsize == itemsize


@pytest.mark.parametrize(
    "text",
    [
        "(4,8):(8,1)",
        "((2,2),8):((8,16),1)",
        "gmem_ptr[32b](0x7f) o (4,8):(8,1)",
        "f32[4,8]{1,0}",
        "memref<4x8xf32>",
        "memref<4x?xf32>",
        "tensor<4x8xf16, #ttg.linear<{register = [], lane = [[0, 1]], warp = [], block = []}>>",
        ttnn_text(tw.TensorSpec((4, 8), "bfloat16", "tile")),
    ],
)
def test_a_second_shape_is_refused(text):
    assert str(parse(text, (4, 8))) == str(parse(text))
    with pytest.raises(tw.LayoutError, match=r"states its shape, \(4, .*\), got \(5, 5\) as well; leave that out"):
        parse(text, (5, 5))


def test_the_start_of_coordinates_is_kept():
    parsed = parse("ArithTuple(3,5) o (4,8):(1@0,1@1)")
    assert dict(parsed.layout(1, 2)) == {"E0": 4, "E1": 7}
    assert str(parsed) == "ArithTuple(3,5) o (4,8):(1@0,1@1)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("smem_ptr[16b](unset) o gmem_ptr[32b](0x1) o (4):(1)", "expected one pointer"),
        ("smem_ptr[0b](unset) o (4):(1)", "have no bits"),
        ("Sw<3,4,3> o smem_ptr[6b](unset) o (_8,_256):(_256,_1)", "elements of 6 bits"),
        ("Sw<3,4,3>_smem_ptr[16b](0x1381) o (_8,_64):(_64,_1)", "0x1381 is not the address of elements of 16 bits"),
        ("Sw<3,4,3>_smem_ptr[16b](0x0) o Sw<3,4,3> o 0 o (_8,_64):(_64,_1)", "expected one swizzle"),
        ("Sw<3,4,3>_(_8,_64):(_64,_1)", "expected the end"),
        ("tensor<ptr<f16, smem, align<1024>, S<3,4,3>> o S<3,4,3> o 0 o (8,8):(8,1)>", "expected one swizzle"),
        ("smem_ptr[16b](0x1) o ComposedLayout<Swizzle<3,4,3>,smem_ptr_flag_bits<16>,Layout<_8,_1>>", "one pointer"),
        ("Sw<3,2,3> o smem_ptr[128b](unset) o (_8,_8):(_8,_1)", "moves parts of elements of 128 bits"),
        ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1) quux", "expected the end at character 54"),
        ("ArithTuple(1,(2,3)) o (4):(1@0)", "expected one integer per coordinate"),
    ],
)
def test_what_a_chain_of_cute_cannot_have(text, problem):
    with pytest.raises(tw.LayoutError, match=problem):
        parse(text)


def test_aliases_with_two_values_or_none_are_refused():
    line = "#a = #ttg.blocked<{{sizePerThread = [{}], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}}>\n"
    with pytest.raises(tw.LayoutError, match="#a is defined twice"):
        tw.parse(line.format(1) + line.format(2) + "tensor<256xf16, #a>")
    assert tw.parse(line.format(2) * 2 + "tensor<256xf16, #a>").itemsize == 2
    with pytest.raises(tw.LayoutError, match="#map may be a map or a memory space"):
        tw.parse("memref<4x8xf32, #map>")
    assert tw.parse("memref<4x8xf32, #gpu.address_space<workgroup>>").besides

# SPDX-License-Identifier: Apache-2.0
"""Texts as people paste them, from issues and documents: read as they are, checked against formulas of their own."""

import ast
import contextlib
import itertools
import math
import random
import re
from collections import Counter
from time import perf_counter

import pytest

from tilewright import Layout, LayoutError, TilewrightError
from tilewright.analysis import bank_conflicts
from tilewright.notation import parse

# CuTe: each text, its layout, what swizzles its bytes, the bits of an element, and what it says besides.

ALIGNED = "Sw<{},{},{}> acts on addresses, so the pointer is taken as a multiple of {} bytes"
CUTE = [
    # NVIDIA/cutlass#1559
    ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", "Sw<3,3,3> o (8,64):(64,1)", (3, 4, 3), 16,
     ["smem_ptr[16b]", ALIGNED.format(3, 4, 3, 1024)]),
    # NVIDIA/cutlass#2381
    ("Sw<3,4,3> o smem_ptr[16b](unset) o ((_64,_4),(_8,_8),(_1,_3)):((_1,_512),(_64,_2048),(_0,_16384))",
     "Sw<3,3,3> o ((64,4),(8,8),(1,3)):((1,512),(64,2048),(0,16384))", (3, 4, 3), 16,
     ["smem_ptr[16b]", ALIGNED.format(3, 4, 3, 1024)]),
    # The tutorials of CUTLASS for Blackwell
    ("tCsA:\tSw<3,4,3>_smem_ptr[16b](SMEM_ADDR_A) o ((_128,_16),_1,_4):((_64,_1),_0,_16)",
     "Sw<3,3,3> o ((128,16),1,4):((64,1),0,16)", (3, 4, 3), 16,
     ["smem_ptr[16b]", ALIGNED.format(3, 4, 3, 1024), "the name tCsA"]),
    ("tCtAcc: tmem_[32b](TMEM_ADDR) o ((_128,_256),_1,_1):((_65536,_1),_0,_0)",
     "((128,256),1,1):((65536,1),0,0)", None, 32, ["tmem_[32b]", "the name tCtAcc"]),
    ("tCrA:   UMMA::DescriptorIterator o (_1,_1,_4):(_0,_0,_2)", "(1,1,4):(0,0,2)", None, None,
     ["UMMA::DescriptorIterator", "the name tCrA"]),
    ("tCgA:   ArithTuple(_0,0) o ((_128,_16),_1,_4,4):((_1@1,_1@0),_0,_16@0,_64@0)",
     "((128,16),1,4,4):((1@E1,1@E0),0,16@E0,64@E0)", None, None, ["ArithTuple", "the name tCgA"]),
    # NVIDIA/cutlass#1717
    ("smem_ptr[16b](0x7f8f00000c00) o Sw<3,3,3> o _0 o (((_64,_256),_2)):(((_1,_64),_16384))",
     "Sw<3,3,3> o (((64,256),2)):(((1,64),16384))", (3, 4, 3), 16, ["smem_ptr[16b]"]),
    ("smem_ptr[16b](0x7f8f00000c00) o (64,256):(_1,64)", "(64,256):(1,64)", None, 16, ["smem_ptr[16b]"]),
    # NVIDIA/cutlass#2272
    ("sB: smem_ptr[32b](0x732145000800) o ((_32,_1),(_8,_1),(_1,_2)):((_1,_0),(_32,_0),(_0,_256))",
     "((32,1),(8,1),(1,2)):((1,0),(32,0),(0,256))", None, 32, ["smem_ptr[32b]", "the name sB"]),
    ("mA: gmem_ptr[32b](0x731ff4000200) o (128,64):(_1,128)", "(128,64):(1,128)", None, 32,
     ["gmem_ptr[32b]", "the name mA"]),
    # NVIDIA/cutlass#1051, #1199 and #2015
    (("decltype(\n    composition(Swizzle<3,3,3>{},\n                Layout<Shape < _8,_64>,\n"
     "                       Stride<_64, _1>>{}));"), "Sw<3,3,3> o (8,64):(64,1)", (3, 3, 3), None, []),
    (("using Layout_MN_SW128_Atom_Bits = ComposedLayout<Swizzle<3,4,3>, smem_ptr_flag,"
     " Layout<Shape<_1024,_8>,Stride<_1,_1024>>>;"), "Sw<3,7,3> o (1024,8):(1,1024)", (3, 4, 3), 1,
     ["smem_ptr[1b]", ALIGNED.format(3, 4, 3, 1024), "the name Layout_MN_SW128_Atom_Bits"]),
    # NVIDIA/cutlass#2728, types as nvcc spells them
    (("cute::Layout<cute::tuple<cute::C<(int)128>, cute::C<(int)128>>,"
     " cute::tuple<cute::ScaledBasis<cute::C<(int)1>, (int)1>, cute::ScaledBasis<cute::C<(int)1>, (int)0>>>"),
     "(128,128):(1@E1,1@E0)", None, None, []),
    # NVIDIA/cutlass#2629, #2631 and #2834, of the DSL
    ("tensor(raw_ptr(0x0000000000000400: f16, smem, align<1024>) o (8,8):(8,1), data=\n       [[", "(8,8):(8,1)", None,
     16, ["raw_ptr(0x0000000000000400: f16, smem, align<1024>)", "values data= [["]),
    ("gA raw_ptr(0x0000781f44200400: f32, gmem, align<16>) o (128,8,513):(4098,1,8) =\n  ( 2.232828, -0.914160",
     "(128,8,513):(4098,1,8)", None, 32,
     ["raw_ptr(0x0000781f44200400: f32, gmem, align<16>)", "values ( 2.232828, -0.914160", "the name gA"]),
    ("tensor<ptr<f32, smem, align<1024>, S<3,4,3>> o ((32,2),(8,8),(1,2)):((1,2048),(32,256),(0,4096))>",
     "Sw<3,2,3> o ((32,2),(8,8),(1,2)):((1,2048),(32,256),(0,4096))", (3, 4, 3), 32,
     ["ptr<f32, smem, align<1024>, S<3,4,3>>"]),
    ("tiledA: tensor<ptr<f32, gmem> o ((32,4),(4,4)):((4,4096),(1,1024))>", "((32,4),(4,4)):((4,4096),(1,1024))",
     None, 32, ["ptr<f32, gmem>", "the name tiledA"]),
    # What print_tensor and print_layout write
    ("rmem_4x8_like : ptr[32b](0x7f4158fffc60) o (_4,_8):(_8,_1):\n  0.0  1.0  2.0", "(4,8):(8,1)", None, 32,
     ["ptr[32b]", "values 0.0 1.0 2.0", "the name rmem_4x8_like"]),
    ("ArithTuple(_0,_0) o (_4,_8):(_1@0,_1@1):\n  (0,0)  (0,1)", "(4,8):(1@E0,1@E1)", None, None,
     ["ArithTuple", "values (0,0) (0,1)"]),
    ("Sw<3,3,3> o _0 o (_8,_64):(_64,_1)\n        0    1    2\n    +----+----+----+", "Sw<3,3,3> o (8,64):(64,1)",
     (3, 3, 3), None, ["values 0 1 2 +----+----+----+"]),
    # Types that the DSL dumps
    ('!memref_gmem_f32_2 = !cute.memref<f32, gmem, align<16>, "(64,256):(4096,1)">', "(64,256):(4096,1)", None, 32,
     ["ptr<f32, gmem, align<16>>",
     '!memref_gmem_f32_2 = !cute.memref<f32, gmem, align<16>, "(64,256):(4096,1)">']),
]  # fmt: skip


def numbers(text):
    """Return a tree of integers as nested tuples, bases as dictionaries."""
    return ast.literal_eval(re.sub(r"(\d+)@(E\d+)", r"{'\2': \1}", text))


def split(index, shape, stride):
    """Yield every digit of a column-major index with its stride."""
    if not isinstance(shape, tuple):
        yield index % shape, stride
        return
    for part, step in zip(shape, stride, strict=True):
        size = math.prod(leaves(part))
        yield from split(index % size, part, step)
        index //= size


def leaves(tree):
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def offset_of(index, shape, stride):
    """Return the inner product of CuTe's definition: an offset, or a coordinate for strides that are bases."""
    total, coordinate = 0, {}
    for digit, step in split(index, shape, stride):
        if isinstance(step, dict):
            for axis, amount in step.items():
                coordinate[axis] = coordinate.get(axis, 0) + digit * amount
        else:
            total += digit * step
    return {axis: amount for axis, amount in coordinate.items() if amount} if "E" in str(stride) else total


def steps(place):
    """Return how far a place is along each axis; of copies, the first."""
    first = min(place, key=lambda copy: sorted(copy.items())) if isinstance(place, frozenset) else place
    return {"": first} if isinstance(first, int) else {axis: amount for axis, amount in first.items() if amount}


def swizzled_bit(position, bits, base, shift):
    """Return the position of a bit of memory after a swizzle of the address of its byte."""
    mask = (1 << bits) - 1 << base + 3
    return position ^ (position >> shift & mask)


@pytest.mark.parametrize(("text", "layout", "swizzle", "bits", "besides"), CUTE, ids=[case[0][:40] for case in CUTE])
def test_what_cute_prints(text, layout, swizzle, bits, besides):
    parsed = parse(text)
    found = getattr(parsed, "layout", parsed) if besides else parsed
    assert str(found) == layout
    assert (getattr(parsed, "element_bits", None), getattr(parsed, "besides", [])) == (bits, besides)
    shape, stride = map(numbers, layout.split(" o ")[-1].split(":"))
    size = math.prod(leaves(shape))
    for index in {0, 1, size - 1, *random.Random(1).sample(range(size), min(size, 50))}:
        expected = offset_of(index, shape, stride)
        if swizzle:
            width = bits or 8
            assert swizzled_bit(expected * width, *swizzle) % width == 0
            expected = swizzled_bit(expected * width, *swizzle) // width
        assert (steps(found(index)) if isinstance(expected, dict) else found(index)) == expected


@pytest.mark.parametrize("head", ["", "Sw<3,4,3>_"])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_the_size_of_an_element_decides_the_banks(head, bits):
    parsed = parse(f"{head}smem_ptr[{bits}b](0x7f8f00001000) o (_32,_{1024 // bits}):(_{1024 // bits},_1)")
    words = {(parsed.layout(row, 0) * bits // 8) // 4 for row in range(32)}
    counted = bank_conflicts(parsed.layout, Layout(32, 1), itemsize=parsed.itemsize)
    assert counted.wavefronts == max(Counter(word % 32 for word in words).values()) == (4 if head else 32)


@pytest.mark.parametrize("start", [0, 0x80, 0x1380, 0x13F0])
@pytest.mark.parametrize(("bits", "shape", "stride"), [(16, (8, 64), (64, 1)), (8, (8, 128), (128, 1)), (32, 64, 3)])
def test_a_swizzled_pointer_moves_addresses(start, bits, shape, stride):
    spelled = re.sub(r"(\d+)", r"_\1", f"{shape}:{stride}".replace(" ", ""))
    parsed = parse(f"Sw<3,4,3>_smem_ptr[{bits}b]({start:#x}) o {spelled}")
    size = math.prod(leaves(shape))
    for index in range(size):
        address = start * 8 + offset_of(index, shape, stride) * bits
        assert parsed.layout(index) * bits == swizzled_bit(address, 3, 4, 3) - start // 1024 * 1024 * 8
    fact = f"offsets count from the multiple of 1024 bytes before {start:#x}"
    assert any(fact in each for each in parsed.besides) == bool(start % 1024)


DYNAMIC = [
    ('!cute.memref<f16, gmem, align<16>, "(?,?{div=64}):(?{i64 div=64},1)">', (3, 128), ["extent ? of mode 0",
     "extent ?{div=64} of mode 1", "stride ?{i64 div=64} of mode 0"], None),
    ('!cute.memref<f32, gmem, align<16>, "(64,?):(1,64)">', (64, 5), ["extent ? of mode 1"], "(64,5):(1,64)"),
    ("tensor<ptr<f32, gmem, align<16>> o ((?,?{div=4}),8):((8,64),1)>", (32, 8),
     ["extent ? of mode 0", "extent ?{div=4} of mode 0"], None),
    ("raw_ptr(0x00007f0000000000: f16, gmem, align<16>) o ((2,?{div=8}),4):((4,8),1)", (48, 4),
     ["extent ?{div=8} of mode 0"], "((2,24),4):((4,8),1)"),
    ("Layout<tuple<C<128>, int>, tuple<C<1>, long>>", (128, 7),
     ["extent int of mode 1", "stride long of mode 1"], None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape", "unknown", "filled"), DYNAMIC, ids=[case[0][:40] for case in DYNAMIC])
def test_numbers_of_the_run_time_are_named_or_given(text, shape, unknown, filled):
    with pytest.raises(LayoutError, match=re.escape(", ".join(unknown)) + r"; put them in"):
        parse(text).layout  # noqa: B018
    if filled:
        assert str(parse(text, shape=shape).layout) == filled
        with pytest.raises(LayoutError, match=r"cannot have the extents|states its shape"):
            parse(text, shape=(shape[0] + 1, shape[1] + 1))
    else:
        with pytest.raises(LayoutError, match=r"known at run time only|do not follow from their product"):
            parse(text, shape=shape).layout  # noqa: B018


@pytest.mark.parametrize("head", ["Sw<3,4,3> o smem_ptr[16b](unset)", "Sw<3,4,3>_smem_ptr[16b](0x80)", "S<3,3,3>"])
def test_a_layout_that_is_not_known_is_written_as_it_was_read(head):
    parsed = parse(f"{head} o (?,64):(64,1)")
    expected = parse(f"{head} o (8,64):(64,1)")
    filled = parse(str(parsed), shape=(8, 64))
    assert str(getattr(filled, "layout", filled)) == str(getattr(expected, "layout", expected))


# Triton: lines of TTGIR, and constructors of Gluon as their source has them, with what triton 3.9.0 makes of them.

BLOCKED = "{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}"
HEAD = f"""#blocked = #triton_gpu.blocked<{BLOCKED}>
#mma = #triton_gpu.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, 64, 16]}}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>
"""
GLUON = [
    ("gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])", (64, 16),
     {"register": [[0, 1], [0, 2], [32, 0]], "lane": [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]],
      "warp": [[8, 0], [16, 0]]}),
    ("layout: gl.constexpr = gl.SliceLayout(1, gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]))", (64,),
     {"register": [[32]], "lane": [[0], [0], [1], [2], [4]], "warp": [[8], [16]]}),
    ("gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])", (16, 64),
     {"register": [[0, 1], [8, 0], [0, 16], [0, 32]], "lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
      "warp": [[0, 8], [0, 0]]}),
    (("mma = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])\n"
     "b: gl.constexpr = gl.DotOperandLayout(operand_index=1, parent=mma, k_width=2)"), (16, 16),
     {"register": [[1, 0], [8, 0]], "lane": [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], "warp": [[0, 8], [0, 0]]}),
    ("gl.SwizzledSharedLayout(vec=8, per_phase=2, max_phase=2, order=[0, 1])", (64, 16),
     {"offset": [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [0, 1], [8, 2], [0, 4], [0, 8]]}),
    ("TensorMemoryLayout(block=(128, 64), col_stride=2, cga_layout=[[1, 0], [0, 1]], two_ctas=True)", (512, 32),
     {"row": [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]],
      "col": [[0, 0], [0, 1], [0, 2], [0, 4], [0, 8], [128, 0]], "block": [[256, 0], [0, 16]]}),
]  # fmt: skip


PRINTED = [  # by triton 3.9.0
    "BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0], cga_layout=[])",
    (
        "NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2, transposed=False, fp4_padded=False,"
        " cga_layout=[])"
    ),
    (
        "PaddedSharedLayout(interval_padding_pairs=[[64, 8]], offset_bases=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16],"
        " [0, 32], [1, 0], [2, 0], [4, 0], [8, 0]], cga_layout=[], shape=[16, 64])"
    ),
    "TensorMemoryLayout(block=(128, 64), col_stride=1, cga_layout=[], two_ctas=False, fp4_padded=False)",
]


@pytest.mark.parametrize("text", PRINTED, ids=[text[:20] for text in PRINTED])
def test_what_gluon_prints(text):
    shape = (16, 64) if "Padded" in text else (128, 64)
    parsed = parse(text, shape=shape)
    if "Padded" in text:
        assert [parsed.layout(row, 5) for row in range(16)] == [row * 72 + 5 for row in range(16)]
    elif "Tensor" in text:
        assert tuple(parsed.layout(row=100, col=7, block=0).values()) == (100, 7)
    assert parse(f"#printed = {parsed.value.encoding}", shape=shape).value.encoding == parsed.value.encoding


@pytest.mark.parametrize(("text", "shape", "bases"), GLUON, ids=[case[0][:40] for case in GLUON])
def test_what_gluons_constructors_mean(text, shape, bases):
    parsed = parse(text, shape=shape)
    found = {name: [list(image) for image in images] for name, images in parsed.layout.bases.items() if images}
    assert found == bases
    assert (" ".join(text.split()) in parsed.besides) == ("=" in text.split("(")[0])
    again = parse(f"#l = {parsed.value.encoding}", shape=shape)
    assert again.value.encoding == parsed.value.encoding
    with pytest.raises(LayoutError, match=r"a type with a shape around the encoding, .*, or a shape \(--shape\)"):
        parse(text)


def test_encodings_of_tensor_memory_that_have_no_layout():
    for text, shape, reason in (
        ("TensorMemoryLayout((64, 32), 1, [[0, 1]], True)", (64, 32), r"needs CGALayout to begin with \[1, 0\]"),
        ("TensorMemoryLayout((128, 32), 1)", (64, 32), "blocks of 64 or 128 rows of a matrix, got 128"),
        ("TensorMemoryScalesLayout()", (2, 64, 32), "leave out the buffers"),
        ("#ttng.tensor_memory_encoding<blockM = 64, blockN = 8, CTASplitM = 2>", (128, 8), "newer versions state CGA"),
    ):
        with pytest.raises(LayoutError, match=reason):
            parse(text, shape=shape).layout  # noqa: B018


def test_lines_of_ttgir_are_about_their_result():
    line = "%a = ttg.convert_layout %0 : tensor<64x64xf16, #blocked> -> tensor<64x128xbf16, #mma> loc(#loc3)"
    parsed = parse(HEAD + line)
    assert (parsed.value.shape, parsed.element_bits, parsed.value.encoding.name) == ((64, 128), 16, "nvidia_mma")
    assert parsed.besides == [line]
    blocked = parse(HEAD + "tensor<64x128xf16, #blocked>").layout
    for register, lane, warp in itertools.product(range(32), (0, 5, 31), (0, 7)):
        row = lane // 8 + 4 * warp + 32 * (register // 16)
        column = register % 8 + 8 * (lane % 8) + 64 * (register // 8 % 2)
        assert tuple(blocked(register=register, lane=lane, warp=warp, block=0).values()) == (row, column)
    memory = parse(
        HEAD + "%acc = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>"
    )
    assert tuple(memory.layout(row=77, col=33, block=0).values()) == (77, 33)
    pointers = parse(HEAD + "%p = tt.addptr %1, %2 : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi32, #blocked>")
    assert (pointers.value.dtype, pointers.element_bits) == ("i32", 32)
    with pytest.raises(LayoutError, match=r"#blocked1 is not defined; give its line '#blocked1 = #ttg\.\.\.' too"):
        parse(HEAD + "tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>")
    with pytest.raises(LayoutError, match=r"this text has 2 types.*; paste one, or one operation"):
        parse(f"{HEAD}%a = tt.x : tensor<64x64xf16, #blocked>\n%b = tt.y : tensor<64x64xf16, #mma>")


# Axe: the iters of a text, written out, and what its own documentation computes from them.

AXE = [
    ("TileLayout(S[(8,2,4,2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2:4@warpid] + 5@warpid)", (8, 16),
     [(8, 4, "laneid"), (2, 1, "warpid"), (4, 1, "laneid"), (2, 1, "m")], {"warpid": 5}, [(2, 4, "warpid")]),
    # as apache-tvm 0.27 prints it
    (("T.TileLayout(T.S[(8, 2, 4, 2):(4 @ Axis.laneid, 1 @ Axis.warpid, 1 @ Axis.laneid, 1)]"
     " + T.R[2:4 @ Axis.warpid] + 5 @ Axis.warpid)"), (8, 16),
     [(8, 4, "laneid"), (2, 1, "warpid"), (4, 1, "laneid"), (2, 1, "m")], {"warpid": 5}, [(2, 4, "warpid")]),
    ("T.TileLayout(T.S[(4, 8):(8, 1)] + 3)", None, [(4, 8, ""), (8, 1, "")], {"": 3}, []),
    ("acc = TileLayout(S[(128, 256) : (1@TLane, 1@TCol)])", None, [(128, 1, "TLane"), (256, 1, "TCol")], {}, []),
    ("TileLayout(S[(32, 16) : (1@TLane, 1@TCol)] + R[4:32@TLane])", None, [(32, 1, "TLane"), (16, 1, "TCol")], {},
     [(4, 32, "TLane")]),
    ("TileLayout(S[(2,128,112):(112@TCol,1@TLane,1@TCol)])", None,
     [(2, 112, "TCol"), (128, 1, "TLane"), (112, 1, "TCol")], {}, []),
    ("S[(8, 4) : (4@laneid, 1)]", (4, 8), [(8, 4, "laneid"), (4, 1, "m")], {}, []),
    ("S[(3, 4) : (4@laneid, 1)]", (4, 3), [(3, 4, "laneid"), (4, 1, "m")], {}, []),
    ("S[(8, 1) : (4@laneid, 1)]", None, [(8, 4, "laneid"), (1, 1, "m")], {}, []),
    ("S[8 : 4@laneid]", None, [(8, 4, "laneid")], {}, []),
    ("S[(8, 4, 2) : (4@laneid, 1@laneid, 1@reg)]", (8, 8), [(8, 4, "laneid"), (4, 1, "laneid"), (2, 1, "reg")], {}, []),
    ("T.TileLayout(T.S[4, 8])", None, [(4, 8, ""), (8, 1, "")], {}, []),
    ("S[8, 4, 2]", (8, 8), [(8, 8, ""), (4, 2, ""), (2, 1, "")], {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape", "iters", "start", "copies"), AXE, ids=[case[0][:40] for case in AXE])
def test_what_axe_spells(text, shape, iters, start, copies):
    layout = parse(text, shape=shape).layout
    extents = shape or tuple([extent for extent, *_ in iters])
    assert int(layout.rank) == len(extents)
    for coordinate in random.Random(2).sample(
        list(itertools.product(*map(range, extents))), min(64, math.prod(extents))
    ):
        flat, expected = 0, dict(start)
        for part, extent in zip(coordinate, extents, strict=True):
            flat = flat * extent + part
        for extent, stride, axis in reversed(iters):
            expected[axis] = expected.get(axis, 0) + flat % extent * stride
            flat //= extent
        found = steps(layout(*coordinate))
        assert {axis: n for axis, n in found.items() if n} == {axis: n for axis, n in expected.items() if n}
    assert str(layout).count("R[") == len(copies)
    assert all(f"R[{count}:{stride}@{axis}]" in str(layout) for count, stride, axis in copies)


# Mosaic: vectors in the registers of TPUs.

VPAD = [
    ('#tpu.vpad<"32,{0,0},(8,128)">', 32, (0, 0), (8, 128)),
    ('#l = #tpu.vpad<"32,{2,130},(8,256)">', 32, (2, 130), None),  # no tile of Mosaic
    ('"16,{0,0},(16,128)"', 16, (0, 0), (16, 128)),
    ('#tpu.vpad<"8,{3,7},(32,128)">', 8, (3, 7), (32, 128)),
    ('#tpu.vpad<"32,{*,0},(8,128)">', 32, (None, 0), (8, 128)),
]


@pytest.mark.parametrize(("text", "bits", "offsets", "tile"), VPAD, ids=[case[0] for case in VPAD])
def test_what_mosaic_prints(text, bits, offsets, tile):
    if tile is None:
        with pytest.raises(LayoutError, match="tiles are N x 128 or 1 x N"):
            parse(text, shape=(20, 300))
        return
    parsed, packing = parse(text, shape=(20, 300)), 32 // bits
    assert parsed.element_bits == bits
    columns = -(-(offsets[1] + 300) // 128)
    for row, column in random.Random(3).sample(list(itertools.product(range(20), range(300))), 200):
        down, across = (0 if offsets[0] is None else row + offsets[0]), column + offsets[1]
        expected = {"vreg": down // tile[0] * columns + across // 128, "lane": across % 128}
        expected |= {"sublane": down % tile[0] // packing, "part": down % packing}
        assert steps(parsed.layout(row, column)) == {axis: n for axis, n in expected.items() if n}
    with pytest.raises(LayoutError, match="vpad text has no shape of its own; give it one"):
        parse(text).layout  # noqa: B018


def test_dimensions_that_a_vector_of_mosaic_does_not_have():
    rows = parse('#tpu.vpad<"32,{*,0},(1,128),-2">', shape=(5, 3000)).layout
    for lead, column in itertools.product(range(5), (0, 1, 127, 128, 1023, 1024, 2999)):
        expected = {"vreg": 3 * lead + column // 1024, "sublane": column // 128 % 8, "lane": column % 128}
        assert steps(rows(lead, column)) == {axis: n for axis, n in expected.items() if n}
    blocks = parse('"8,{3,*},(32,128)"', shape=(4, 3, 30, 20)).layout
    for coordinate in itertools.product(range(4), range(3), range(30), (0, 19)):
        register, row = 2 * (3 * coordinate[0] + coordinate[1]) + (coordinate[2] + 3) // 32, (coordinate[2] + 3) % 32
        expected = {"vreg": register, "sublane": row // 4, "part": row % 4}
        assert steps(blocks(*coordinate)) == {axis: n for axis, n in expected.items() if n}
        assert len(blocks(*coordinate)) == 128
    with pytest.raises(LayoutError, match=r"needs 0 dimensions or more|needs 2 dimensions or more, got \(8,\)"):
        parse('"32,{0,0},(8,128)"', shape=(8,)).layout  # noqa: B018


def test_an_offset_beyond_a_register_is_named():
    parsed = parse('#tpu.vpad<"32,{*,128},(8,128)">', shape=(1, 128))  # of a broadcast that Mosaic failed to compile
    assert parsed.besides == ["an offset of 128 in a register of 8 x 128, which Mosaic refuses"]


# What is wrong is said, with what was expected instead.

REFUSED = [
    ("Sw<3,4,3> o smem_ptr[24b](unset) o (_8,_64):(_64,_1)", "a swizzle of bytes cannot be one of elements of 24 bits"),
    ("Sw<3,0,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", "moves parts of elements of 16 bits"),
    ("Sw<3,4,3>_smem_ptr[16b](0x1) o (_8,_64):(_64,_1)", "0x1 is not the address of elements of 16 bits"),
    ("smem_ptr[16b](0x0) o gmem_ptr[16b](0x0) o 4:1", "expected one pointer"),
    ("smem_ptr[0b](0x0) o 4:1", "have no bits"),
    ("Sw<3,4,3> o Sw<3,4,3> o smem_ptr[16b](0x0) o 4:1", "expected one swizzle"),
    ("Sw<3,4,3> o smem_ptr[16b](unset) o 7 o 5 o 4:1", "expected one offset"),
    ("tensor<ptr<f16, smem, align<1024>> 4:1>", "expected 'o' and a layout"),
    ("Layout<Shape<_4,_8>,Stride<_8>>", "have different nesting"),
    ("lambda i, **rest: [i]", "expected a plain name, as in lambda i, j: [j, i], at character 11"),
    ("lambda i: [i, j]", "expected one of i at character 15"),
    ("lambda i, i: [i]", "every name once, got ['i', 'i']"),
    ("lambda i: i / 2", "an index map of + - * // %: expected the end at character 13, got '/ 2'"),
    ("lambda i: i // j", "expected one of i at character 16"),
    ("lambda i: i // 0", "floordiv needs a constant of at least 1 on its right"),
    ("T.index_map(lambda i: i, inverse_index_map=None)", "read from its lambda alone; leave out what follows it"),
    ("TiledMMA\n  ThrLayoutVMNK:  (_32,_1,_1,_1):(_1,_0,_0,_0)\n  PermutationMNK: (_,_,_)", "paste one of its lines"),
    ("!a = !cute.layout<\"4:1\">\n!b = !cute.layout<\"8:1\">", "this text has 2 types; paste one, or one operation"),
    ('!cute.layout<quux "4:1">', "expected an integer at character 1, got 'quux 4:1'"),
    ("gl.BlockedLayout([1], [32], [4], [0], [], 3)", "an argument of BlockedLayout(size_per_thread, threads_per_warp"),
    ("gl.BlockedLayout(size_per_thread=[BLOCK], order=[0])", "a number, or a layout that a line above defines"),
    ("gl.AutoLayout()", "the compiler chooses it; print the layout that it chose"),
    ("gl.PartitionedSharedLayout(2)", "has no encoding: known are BlockedLayout"),
    ("#a = #ttg.slice<{dim = 0, parent = #a}>\ntensor<8xf16, #a>", "at most 16 nested encodings"),
    ("S[(8,4):(4@laneid)]", "as many strides as extents of at least 1, got 1 for [8, 4]"),
    ("S[(8,n):(4@laneid,1)]", "an extent, as a number"),
    ("S[(8,4):(4@laneid,1)] + R[2:1@warpid", "expected ']'"),
    ('#tpu.vpad<"24,{0,0},(8,128)">', "elements have 1, 2, 4, 8, 16 or 32 bits, got 24"),
    ('#tpu.vpad<"16,{0,0},(9,128)">', "tiles fill 1, 2, 4 or 8 rows of words of 2 elements, got 9 rows"),
    ('#tpu.vpad<"none">', 'expected #tpu.vpad<"32,{0,0},(8,128)">, got \'#tpu.vpad<"none">\''),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[case[0][:40] for case in REFUSED])
def test_a_refusal_names_the_reason(text, reason):
    with pytest.raises(LayoutError, match=re.escape(reason)):
        parse(text, shape=(8,) if "Layout(" in text else None)


def test_a_shape_that_the_shards_do_not_make_up():
    with pytest.raises(LayoutError, match=r"shards of \[8, 4\] do not make up the dimensions of \(4, 4\)"):
        parse("S[(8,4):(4@laneid,1)]", shape=(4, 4))


# Whatever is pasted: an answer or our error, in linear time.

TEXTS = [case[0] for cases in (CUTE, DYNAMIC, GLUON, AXE, VPAD, REFUSED) for case in cases]
HOSTILE = [
    "(" * 100_000,
    "((" * 50_000 + ":",
    "Sw<3,4,3> o " * 8000,
    "Sw<3,4,3>_smem_ptr[16b](" + "(" * 99_000,
    "smem_ptr[16b](" + ")" * 99_000,
    "tensor<" * 14_000,
    "tensor<ptr<f16, " + "align<8>, " * 9_000,
    "cute::" * 16_000,
    "{}" * 50_000 + "(4):(1)",
    "tuple<" * 16_000,
    "Layout<Shape<" + "_1," * 33_000,
    "decltype(" * 11_000,
    "decltype(" * 10_000 + "4:1" + ")" * 10_000,
    "ComposedLayout<Swizzle<3,4,3>,0," * 3_000,
    "composition(" * 8_000,
    "smem_ptr[16b](0x0) o " + "ComposedLayout<" * 6_000,
    "counting_iter(0) o " * 5_000,
    "0 o " * 25_000 + "4:1",
    '!cute.coord_tensor<"(0)", ' * 4_000,
    "lambda i: " + "(" * 90_000,
    "lambda i: " + "-" * 90_000 + "i",
    "lambda i: [" + "i + " * 25_000 + "i]",
    "lambda " + "i, " * 30_000 + ": i",
    "T.index_map(" * 8_000,
    "lambda i: " + "T.int64(" * 12_000,
    "(" + "?{div=8}," * 11_000,
    "?{" * 50_000,
    '!cute.layout<"' * 7_000,
    "using " + "a" * 99_000 + " = ",
    "a " * 50_000 + "raw_ptr(0x0: f32) o 4:1",
    " " * 100_000 + "x",
    "\t" * 50_000 + "tCsA:" + "\t" * 50_000 + "(4):(1)@",
    "#a = #ttg.blocked<{order = [0]}>\n" * 3_000,
    "\n".join([f"#a{k} = #ttg.slice<{{dim = 0, parent = #a{k + 1}}}>" for k in range(2000)]) + "\ntensor<8xf16, #a0>",
    "tensor<8xf16, #ttg.slice<{parent = " + "#ttg.slice<{parent = " * 4_000,
    "%0 = tt.x : " + "tensor<8xf16, " * 7_000,
    "tensor<" + "8x" * 50_000,
    "gl.SliceLayout(0, " * 5_000,
    "gl." * 30_000 + "BlockedLayout(",
    "gl.BlockedLayout(" + "[" * 90_000,
    "gl.BlockedLayout(" + "[[" + "1, " * 30_000,
    "a = gl.BlockedLayout([1], [32], [4], [0])\n" * 2_000,
    "S[" * 50_000,
    "S[(" + "8," * 50_000,
    "S[8:1@m]" + " + R[2:1@m]" * 9_000,
    "S[8:1@m]" + " + 1@m" * 15_000,
    '#tpu.vpad<"32,{' + "*," * 50_000,
    "#" + "l" * 99_000 + ' = #tpu.vpad<"32,{0,0},(8,128)">',
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:24].strip() + f"-{k}" for k, text in enumerate(HOSTILE)])
@pytest.mark.parametrize("shape", [None, (8, 8)])
def test_hostile_texts_take_linear_time(text, shape):
    start = perf_counter()
    with contextlib.suppress(TilewrightError):
        str(parse(text, shape=shape))
    assert perf_counter() - start < 5  # a tenth of a second each; quadratic ones take minutes


def test_damaged_texts_are_read_or_refused():
    chance = random.Random(11)
    pieces = ["", "(", ")", "<", ">", "[", "]", "{", "}", ",", ":", "=", "o", "_", "@", "*", "?", "-",
              "9" * 20, "é", "\n", '"', "#", "%", "0x", " o ", "S<3,4,3>", "smem_ptr[16b](0x8)", "None",
              "tensor<8xf16, #a>"]  # fmt: skip
    for _ in range(3000):
        text = list(chance.choice(TEXTS))
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(text) + 1)
            text[place : place + chance.randint(0, 3)] = chance.choice(pieces)
        damaged = "".join(text)
        with contextlib.suppress(TilewrightError):
            parsed = parse(damaged, shape=chance.choice([None, (8,), (8, 16), (64, 64)]))
            assert isinstance(f"{parsed} {getattr(parsed, 'layout', parsed)}", str)
            assert all(isinstance(fact, str) for fact in getattr(parsed, "besides", []))


@pytest.mark.parametrize(
    ("text", "index", "mapped"),
    [
        ("lambda n, c, h, w: [n, c // 16, h, w, c % 16]", (1, 27, 3, 2), (1, 1, 3, 2, 11)),
        ("lambda i, j: (i // 4, j, i % 4)", (9, 5), (2, 5, 1)),
        ("lambda i, j: (i + j) * 2", (3, 4), (14,)),
        ("lambda i, j: (i + j) * 2 - (j,)[0]", (3, 4), None),
        ("lambda i, j: (i,)", (3, 4), (3,)),
        ("lambda i: [-i // 4 + 3]", (6,), (1,)),
        ("T.index_map(lambda i: (i + 1,))", (6,), (7,)),
        ("tir.index_map(\n    lambda i,\n    j: [i - T.int64(2) * j % 3,\n j])", (6, 5), (5, 5)),
    ],
)
def test_what_tvm_spells(text, index, mapped):
    if mapped is None:
        with pytest.raises(LayoutError, match="expected"):
            parse(text)
    else:
        assert parse(text, notation="tvm").value(*index) == mapped


@pytest.mark.parametrize("offset", ["", "7 o "])
@pytest.mark.parametrize("head", ["Sw<3,4,3>_smem_ptr[16b](0x1380) o {}", "Sw<3,4,3> o smem_ptr[16b](0x1380) o {}"])
def test_what_is_written_begins_at_the_same_address(head, offset):
    text = head.format(offset) + "(_8,_64):(_64,_1)"
    if offset and "_smem" in text:
        with pytest.raises(LayoutError, match="no offset behind a swizzled pointer"):
            parse(text)
        return
    parsed = parse(text)
    again = parse(str(parsed))
    assert str(again.layout) == str(parsed.layout)
    assert [parsed.layout(i) for i in range(512)] == [again.layout(i) for i in range(512)]


def test_the_pieces_of_a_text_are_not_lost():
    for text, _, _, bits, besides in CUTE:
        if besides:
            parsed = parse(text)
            again = parse(str(parsed))
            assert str(getattr(again, "layout", again)) == str(parsed.layout)
            assert bits is None or again.element_bits == bits


# As issues, comments in code and pages of tutorials have them: behind words, or as HTML.
AMONG_WORDS = [
    ("// sA = smem_ptr[16b](0x7f155d000000) o (_128,_64,_3):(_64,_1,_8192)", "(128,64,3):(64,1,8192)", "the name sA"),
    ("# sA, sB\nsmem_ptr[16b](unset) o (_8,_64):(_64,_1)", "(8,64):(64,1)", "the text 'sA, sB'"),
    ("tCrA shape = ptr[16b](0x7f42) o ((_2,_2),_4):((_1,_2),_8)", "((2,2),4):((1,2),8)", "the text 'tCrA shape'"),
    ("tCgB  gmem_ptr[16b](0x7f61) o ( _2,_1,_2):( _1,_0,_8)", "(2,1,2):(1,0,8)", "the name tCgB"),
    ("tensor_2d\nsmem_ptr[16b](0x7f8f00000c00) o (64,256):(_1,64)", "(64,256):(1,64)", "the name tensor_2d"),
    (
        "NotImplementedError: load & store is not supported yet: tensor<ptr<f32, smem, align<1024>> o (8,64):(64,1)>",
        "(8,64):(64,1)",
        "the text 'NotImplementedError: load store is not supported yet'",
    ),
    ("tCsA: Sw&lt;3,4,3>_smem_ptr[16b](0x7f8800000400) o\n    (_8,_64):(_64,_1)", "Sw<3,3,3> o (8,64):(64,1)", ""),
]


@pytest.mark.parametrize(("text", "layout", "fact"), AMONG_WORDS)
def test_a_tensor_is_found_among_words(text, layout, fact):
    parsed = parse(text)
    assert str(parsed.layout).partition("+")[0] == layout
    assert parsed.notation == "cute"
    assert fact in parsed.besides or not fact


def test_several_tensors_are_refused():
    with pytest.raises(LayoutError, match="expected the end"):
        parse("tCsA: smem_ptr[16b](0x7f) o (_8,_64):(_64,_1)\ntCsB: smem_ptr[16b](0x8f) o (_8,_64):(_64,_1)")


LAYOUT = (
    "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<dram>>,"
    " <interleaved>>"
)


@pytest.mark.parametrize(
    "text",
    [
        f"tensor<32x64xbf16, {LAYOUT}>",
        f'%2 = "ttnn.relu"(%1) : (tensor<32x64xbf16, {LAYOUT}>) -> tensor<32x64xbf16, {LAYOUT}>',
        f'#a = {LAYOUT}\n%2 = "ttnn.relu"(%1) : (tensor<32x64xbf16, #a>) -> tensor<32x64xbf16, #a> loc(#loc)',
    ],
)
def test_an_operation_of_tt_mlir_states_a_tensor(text):
    parsed = parse(text)
    assert parsed.notation == "tt-mlir"
    assert (parsed.spec.shape.logical, parsed.spec.dtype.name) == ((32, 64), "bfloat16")
    assert parsed.around.split() == text.split()


def test_an_alias_of_tt_mlir_is_a_memory_config():
    parsed = parse(f"#layout3 = {LAYOUT}")
    assert (str(parsed.subject), parsed.besides) == ("interleaved in DRAM", ["the text '#layout3'"])
    with pytest.raises(LayoutError, match=r"got 2: tensor<32x64xbf16> and 1 more|got 2: tensor<32x64xbf16>, tensor"):
        parse(f"%1 = ttnn.f(%0) : tensor<32x64xbf16, {LAYOUT}> -> tensor<64x64xbf16, {LAYOUT}>")
    with pytest.raises(LayoutError, match="got 0"):
        parse("func.func @f() #ttnn.ttnn_layout")


def test_values_of_ttnn_are_found_behind_their_names():
    config = (
        "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1,shard_spec=std::nullopt)"
    )
    for name in ("output_mem_config = ", "Op | DEBUG    |    output_mem_config = ", "memory: "):
        parsed = parse(name + config)
        assert (str(parsed.subject), parsed.besides) == ("interleaved in L1", [f"the text {name.strip()!r}"])
    printed = "ttnn.Tensor([[ 0.12, 0.3]], shape=Shape([1, 2]), dtype=DataType.BFLOAT16, layout=Layout.TILE)"
    with pytest.raises(LayoutError, match=r"as print\(tensor.spec\) has it, since its values do not say where it is"):
        parse(printed)

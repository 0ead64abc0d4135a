# SPDX-License-Identifier: Apache-2.0
"""Layouts in files of IR: each is found once, where it is, whatever surrounds it, and in bounded memory."""

import random
import tracemalloc

import pytest

from tilewright import FileFormatError
from tilewright.notation import MetalLayout, MlirLayout, MlirNdLayout, check_layout, find_layouts, parse_tensor_type
from tilewright.notation.ir_file import scan_ir

from .recorded_texts import recorded

LAYOUTS = recorded("mlir/ttnn_layouts.json")["layouts"]

MODULE = """\
// RUN: ttmlir-opt %s | FileCheck %s
#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>   // tensor<1x1xf32, #never>
#loc = loc("a.py":1:2)
!tile = !ttcore.tile<32x32, f32>
#layout = #ttnn.ttnn_layout<
    (d0, d1) -> (d0, d1),   // folded
    <1x1>,
    memref<1x1x!tile, #dram>, <interleaved>>
#other = #layout
#sparse = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>
#metal = #ttcore.metal_layout<logical_shape = 8x300, dim_alignments = 32x32, collapsed_intervals = dense<[[0, 1], [1, 2]
    ]> : tensor<2x2xi64>, l1, sharded>
module attributes {note = "tensor<9x9xf32, #layout> \\" // #a = 3"} {
  // CHECK: tensor<32x32xf32, #layout>
  func.func @f(%arg0: tensor<32x32xf32, #other>, %1: tensor<8xf32, #sparse>, %2: tensor<8xi1>)
      -> tensor<64x32xf32, #layout> {
    %0 = "op"(%arg0) <{value = dense<"0xABCD"> : tensor<2xi32>}> : (tensor<32x32xf32,
        #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!tile, #l1>, <interleaved>>>)
        -> tensor<1x1x1x10x!tile, #metal>
    %3 = f() : tensor<1x32x32xbf16, #ttnn.ttnn_nd_layout<<2x4>, memref<1x1x1x!tile, #l1>, <nd_sharded>, <row_major>>>
    %4 = f() : tensor<[[N]]x32xbf16, #layout>, tensor<32x{{.*}}, #layout>
    %5 = f() : tensor<1x32xbf16, #nowhere>
  }
}
// -----
%6 = f() : tensor<32x32xf32, #layout>
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text(MODULE, encoding="utf-8")
    return path


def test_layouts_are_found_where_they_are(module):
    uses = list(find_layouts(module))
    places = [(use.place, type(use.layout), use.severity) for use in uses]
    assert places == [
        ("16:23", MlirLayout, "ok"),
        ("17:10", MlirLayout, "error"),
        ("18:69", MlirLayout, "ok"),
        ("20:12", MetalLayout, "ok"),
        ("21:16", MlirNdLayout, "ok"),
        ("23:16", type(None), "error"),
        ("27:12", type(None), "error"),
    ]
    lines = MODULE.splitlines()
    for use in uses:
        assert lines[use.line - 1][use.column - 1 :].startswith("tensor<")
        assert use.verdict == (check_layout(use.layout, use.tensor) if isinstance(use.layout, MlirLayout) else None)
    assert "#nowhere" in uses[-2].problem
    assert uses[3].layout.collapsed_intervals == ((0, 1), (1, 2))


def test_a_text_in_pieces_is_the_same_text():
    whole = list(scan_ir([MODULE]))
    assert len(whole) > 12
    chance = random.Random(3)
    for most in (1, 2, 5, 17, 200):
        pieces, at = [], 0
        while at < len(MODULE):
            size = chance.randint(1, most)
            pieces.append(MODULE[at : at + size])
            at += size
        assert list(scan_ir(pieces)) == whole, most


def test_tensor_types_know_their_operation(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text("""\
#dram = #ttnn.buffer_type<dram>
#a = #ttnn.ttnn_layout<(d0) -> (d0), <1x1>, memref<8xf32, #dram>, <interleaved>>
%1:2 = "ttnn.split"(%0) <{map = affine_map<(d0) -> (d0)>, name = "x.y"}> : (tensor<8xf32, #a>, tensor<4xf32, #a>,
    tensor<2xf32>) -> (tensor<8xf32, #a>, tensor<4xf32, #a>)
%2 = "ttnn.add"(%1) : (tensor<8xf32, #a>) -> (tensor<8xf32, #ttnn.ttnn_layout<(d0) -> (d0), <1x1>, memref<8xf32, #dram>,
return %2 : tensor<8xf32, #a>
%3 = "ttnn.pair"(%1) : (tensor<8xf32, #ttnn.ttnn_layout<(d0) -> (d0), <1x1>, memref<8xf32, #dram>, <interleaved>>>) \
-> (tensor<8xf32, #a>, tensor<4xf32, #a>)
""")
    assert [(use.line, use.operation, use.is_result) for use in find_layouts(path)] == [
        (3, "ttnn.split", False),
        (3, "ttnn.split", False),
        (4, "", False),
        (4, "", False),
        (5, "ttnn.add", False),
        (6, "", False),
        (7, "ttnn.pair", False),
        (7, "ttnn.pair", True),
        (7, "ttnn.pair", True),
    ]


def test_recorded_layouts_are_found_in_a_file(tmp_path):
    for number, case in enumerate(LAYOUTS):
        aliases = "".join(f"#{name} = {text}\n" for name, text in case["aliases_in_file"].items())
        uses = "".join(f"  %0 = f() : {str(parse_tensor_type(use['tensor']))[:-1]}, #here>\n" for use in case["uses"])
        path = tmp_path / f"{number}.mlir"
        path.write_text(f"{aliases}#here = {case['text']}\nmodule {{\n{uses}}}\n")
        found = list(find_layouts(path))
        assert [use.verdict.rule for use in found] == [use["verdict"] for use in case["uses"]], case
        assert [use.tensor.shape for use in found] == [parse_tensor_type(u["tensor"]).shape for u in case["uses"]]


def test_a_long_constant_takes_no_memory(tmp_path):
    path = tmp_path / "large.mlir"
    constant = '"0x' + "0123456789ABCDEF" * (1 << 16)
    with path.open("w") as file:
        file.write("#blob = dense<")
        file.writelines([constant] + [constant[3:]] * 30)
        file.write('"> : tensor<1xi8>\n' + MODULE)
        file.write("%7 = dense<")
        file.writelines([constant] + [constant[3:]] * 10)
        file.write('">\n' + " " * (3 << 20) + "// " + "-" * (3 << 20))
    tracemalloc.start()
    try:
        uses = list(find_layouts(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [use.line for use in uses] == [17, 18, 19, 21, 22, 24, 28]
    assert peak < 24 << 20


def test_what_is_not_text_is_refused(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_bytes(b"ML\xefR\x0d")
    with pytest.raises(FileFormatError, match="bytecode"):
        find_layouts(path)
    path.write_bytes(b"")
    assert not list(find_layouts(path))
    path.write_bytes(b"\xff\xfe tensor<8xf32, #\x00>")
    assert [use.severity for use in find_layouts(path)] == []


def test_damaged_files_are_read_to_their_end(tmp_path):
    chance = random.Random(5)
    path = tmp_path / "model.mlir"
    for _ in range(300):
        data = bytearray(MODULE.encode())
        for _ in range(chance.randrange(1, 12)):
            at = chance.randrange(len(data))
            data[at : at + chance.randrange(4)] = chance.choice(
                (b'"', b"<", b">", b"//", b"\n", b"\xff", b"#l1", b"9" * 30)
            )
        path.write_bytes(bytes(data))
        list(find_layouts(path))


@pytest.mark.parametrize(
    "text", ["tensor<", "#a = <", '#a = "', "tensor<<<", "#a =\n", "tensor<1x", "// -----\n#b = #b\n"]
)
def test_a_hostile_file_costs_no_more_than_its_size(tmp_path, text):
    path = tmp_path / "model.mlir"
    path.write_text(text * (400_000 // len(text)))
    assert not [use for use in find_layouts(path) if use.layout]

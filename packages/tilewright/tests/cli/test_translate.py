# SPDX-License-Identifier: Apache-2.0
"""`tilewright translate` and `tilewright explain TEXT`."""

import json

ATOM = "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)"


def test_all_notations_are_listed(run):
    result = run("translate", "((8,2),(128,3)):((128,3072),(1,1024))")
    assert result.status == 0
    for text in (
        "AB8a128b",
        "f32[16,384]{1,0:T(8,128)}",
        "lambda i0, i1: [i0 // 8, i1 // 128, i0 % 8, i1 % 128]",
        "Tiling((8, 128))",
        "no: ttnn prints tensor specs",
    ):
        assert text in result.out


def test_one_notation(run):
    for arguments, expected in [
        (("bf16[8,128]{1,0:T(8,128)(2,1)}", "--to", "cute"), "((2,4),128):((1,256),2)"),
        (("nChw16c", "--shape", "2x32x3x5", "--to", "tvm"), "lambda i0, i1, i2, i3: [i0, i1 // 16, i2, i3, i1 % 16]"),
        (("(_4,_8):(_8,_1)", "--to", "xla", "--dtype", "bf16"), "bf16[4,8]{1,0}"),
        (("Tiling((32, 32)(16, 16))", "--shape", "64x64", "--to", "onednn"), "AB2a2b16a16b"),
    ]:
        result = run("translate", *arguments)
        assert (result.status, result.out.strip()) == (0, expected)


def test_what_other_notations_leave_out_is_named(run):
    text = "f32[8,128]{1,0:T(8,128)S(3)}"
    left = run("translate", text, "--to", "cute")
    assert (left.out.strip(), "note: only xla has S(3)" in left.err) == ("(8,128):(128,1)", True)
    kept = run("translate", text, "--to", "xla")
    assert (kept.out.strip(), kept.err) == (text, "")
    assert json.loads(run("translate", text, "--to", "cute", "--json").out)["left_out"] == ["S(3)"]
    assert "memory space 3" in run("translate", "memref<4x8xf32, strided<[8, 1]>, 3>").err


def test_what_a_notation_cannot_say(run):
    assert "xla cannot say this" in run("translate", ATOM, "--to", "xla", status=1).out
    run("translate", "(4,8):(8", "--to", "xla", status=2)
    assert "use one of tilewright, cute, onednn" in run("translate", "(4,8):(8,1)", "--to", "klingon", status=2).err


def test_texts_about_the_memory_of_a_chip(run):
    layout = (
        "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, bf16>, "
        "#ttnn.buffer_type<dram>>, <interleaved>>"
    )
    spec = run("translate", layout, "--shape", "32x64", "--to", "ttnn").out.strip()
    assert spec.startswith("TensorSpec(logical_shape=Shape([32, 64])")
    assert run("translate", spec, "--to", "tt-mlir").out.strip() == layout
    assert "make a TensorSpec" in run("translate", layout, "--to", "ttnn", status=1).out
    listed = json.loads(run("translate", spec, "--json").out)["texts"]
    assert all(listed.values())
    assert listed["xla"].startswith("bf16[32,64]")  # the type that the spec states
    assert "% 16" in run("translate", spec, "--code", "cuda").out


def test_code_and_json(run):
    assert "x ^ ((x & 448) >> 3)" in run("translate", ATOM, "--code", "cuda").out
    found = json.loads(run("translate", ATOM, "--json").out)
    assert found["notation"] == "cute"
    assert found["texts"]["xla"] is None
    assert found["texts"]["cute"] == "Sw<3,3,3> o 0 o (8,64):(64,1)"


def test_a_text_is_explained(run):
    result = run("explain", ATOM, "--at", "1,8")
    assert result.status == 0
    assert "offset    64" in result.out
    assert json.loads(run("explain", "f32[8,4]{1,0:T(2,2)}", "--at", "3,1", "--json").out)["offset"] == 11

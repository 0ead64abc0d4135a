# SPDX-License-Identifier: Apache-2.0
"""Every verb takes a text wherever it takes a spec or a layout: as an argument, in a file, on standard input."""

import json

import pytest

import tilewright as tw

SPEC = str(tw.write(tw.TensorSpec((1, 1, 64, 128), "bfloat16", "tile", chip="wormhole_n150"), "ttnn"))
CONFIG = (
    "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1,shard_spec=std::nullopt)"
)
ERROR = "TT_FATAL: Input Tensor A is not allocated (assert.hpp:104)"
REQUESTS = [
    ("explain", (SPEC, "--at", "0,0,33,5"), "address   1048682"),
    ("explain", (SPEC,), "8 of 2048 bytes"),
    ("explain", ("(4,8):(8,1)", "--at", "1,2"), "offset    10"),
    ("explain", ("KERNEL_COMPILE_TIME_ARGS=2,2048",), "1      2048  0x800  bytes of a page, aligned"),
    ("show", (SPEC,), "DRAM banks and their pages"),
    ("show", ("{devices=[2,1]<=[2]}", "--shape", "8x8"), "part 0  [0:4, 0:8] on 0"),
    ("fit", (SPEC,), "fits wormhole_n150"),
    ("reshard", (SPEC, CONFIG), "to   interleaved in L1"),
    ("translate", (SPEC, "--to", "tt-mlir"), "#ttnn.ttnn_layout<"),
    ("diff", (SPEC, SPEC), "A and B are the same"),
    ("conflicts", ("(32,32):(33,1)", "--threads", "32:1"), "no conflict"),
    ("audit", (SPEC,), "1 value of ttnn"),
]


@pytest.mark.parametrize(("verb", "arguments", "words"), REQUESTS)
def test_a_text_is_an_argument_a_file_or_standard_input(run, tmp_path, verb, arguments, words):
    text, *rest = arguments
    path = tmp_path / "pasted.txt"
    path.write_text(f"\n{text}\n", encoding="utf-8")
    direct = run(verb, *arguments, status=None)
    for other in (run(verb, path, *rest, status=None), run(verb, "-", *rest, stdin=text, status=None)):
        assert words in direct.out
        assert words in other.out
        assert other.status == direct.status


def test_a_long_text_is_no_file_name(run):
    text = f"({','.join(['2'] * 3000)}):({','.join(['1'] * 3000)})"
    assert "file name" not in run("explain", text, "--at", "0", status=None).err.lower()
    assert "no such file" in run("explain", "no/such/model.safetensors", "--at", "0", status=3).err


def test_a_file_wins_over_a_text_of_its_name(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "aBcd16b").write_text("(4,8):(8,1)")
    assert "offset    10" in run("explain", "aBcd16b", "--at", "1,2").out


@pytest.mark.parametrize("content", ["", " \n\n"])
def test_an_empty_text_is_said(run, tmp_path, content):
    assert "standard input is empty; expected the text of a layout" in run("explain", "-", stdin=content, status=3).err
    (tmp_path / "a.txt").write_text(content)
    assert "a.txt is empty" in run("explain", tmp_path / "a.txt", status=3).err


def test_an_error_is_explained_wherever_it_stands(run, tmp_path):
    path = tmp_path / "run.log"
    path.write_text(f"INFO step 1\n{ERROR}\nINFO step 2\n")
    expected = "tensor_not_allocated: An input was deallocated before the call."
    assert expected in run("explain", path).out
    assert expected in run("explain", "-", stdin=path.read_text()).out
    assert json.loads(run("explain", ERROR, "--json").out)["errors"][0]["kind"] == "tensor_not_allocated"
    assert "--at" in run("explain", ERROR, "--at", "0,0", status=2).err
    for verb, words in (("show", "explain() says what it means"), ("fit", "is an error message; fit takes tensors")):
        assert words in run(verb, ERROR, status=2).err or "has no picture" in run(verb, ERROR, status=2).err
    assert "is an error message, which has no layout" in run("diff", ERROR, ERROR, status=2).err


def test_texts_that_differ_say_where(run):
    assert "different, first at (1, 0): offsets 8 and 1" in run("diff", "(4,8):(8,1)", "(4,8):(1,4)", status=1).out
    other = SPEC.replace("BFLOAT16", "FLOAT32")
    found = json.loads(run("diff", SPEC, other, "--json", status=1).out)
    assert found["different"] == ["dtype"]
    assert found["same_function"]
    assert "compare two texts, or two files" in run("diff", SPEC, "64x128", status=2).err
    assert "--atol has no effect on texts" in run("diff", SPEC, SPEC, "--atol", "1", status=2).err


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("(4,8):(8,1)", "Layout"),
        (SPEC, "TensorSpec"),
        (CONFIG, "MemoryConfig"),
        (ERROR, "ErrorReport"),
        ("{devices=[2,1]<=[2]}", "DeviceSharding"),
        ("f32[8,128]{1,0}", "Layout"),
    ],
)
def test_a_parsed_text_has_its_subject(text, kind):
    parsed = tw.parse(text)
    assert type(getattr(parsed, "subject", parsed)).__name__ == kind


@pytest.mark.parametrize("text", ["(4,8):(8,1)", "Sw<1,0,3> o (4,8):(8,1)", "f32[4,8]{1,0}", SPEC])
def test_what_has_a_layout_has_it_however_it_was_written(text):
    parsed = tw.parse(text)
    coordinate = (0,) * len(parsed.layout.shape)
    assert parsed.layout(*coordinate) == 0
    assert str(parsed.explain(coordinate)).startswith("element   (0, ")


def test_what_a_text_lacks_is_said():
    with pytest.raises(tw.LayoutError, match="has no tensor spec: it states a layout and no memory of a chip"):
        tw.parse("f32[8,128]{1,0}").spec  # noqa: B018
    with pytest.raises(tw.LayoutError, match="has no tensor spec: it states a memory config and no shape"):
        tw.parse(CONFIG).spec  # noqa: B018
    with pytest.raises(tw.LayoutError, match="an error message, which is not a layout"):
        tw.parse(ERROR).layout  # noqa: B018
    assert tw.parse(ERROR).explain() == tw.explain_error(ERROR).explain()
    assert tw.parse(SPEC).spec.shape.logical == (1, 1, 64, 128)


def test_the_words_of_a_kernel_are_explained(run):
    text = "g++ -DKERNEL_COMPILE_TIME_ARGS=0,4096,4,2,4096 -O2"
    assert "2 readings are possible" in run("explain", text).out
    found = run("explain", text, "--offset", "3", "--chip", "n150", "--json").json
    assert [each["words"] for run in found["readings"] for each in run] == [[2, 4096]]
    assert "has no effect without --chip" in run("explain", text, "--dispatch", "slow", status=2).err
    assert "--dtype has no effect on a kernel" in run("explain", text, "--dtype", "int8", status=2).err
    assert "--offset has no effect except on a kernel" in run("explain", SPEC, "--offset", "1", status=2).err
    assert "got 4096" in run("explain", text, "--offset", "1", status=None).err
    assert "state the chip with --chip" in run("show", text, status=2).err
    sharded = "KERNEL_COMPILE_TIME_ARGS=9,1,2048,2,2,7,5,8,4,319951378"
    assert "draws which core holds which pages" in run("explain", sharded).out
    assert "Core (1,0)" in run("show", sharded, "--chip", "n150").out
    assert "--dtype has no effect" in run("show", sharded, "--chip", "n150", "--dtype", "int8", status=2).err
    assert "pass the words of one" in run("show", "KERNEL_COMPILE_TIME_ARGS=2,2048", "--chip", "n150", status=2).err

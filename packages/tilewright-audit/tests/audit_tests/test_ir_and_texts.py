# SPDX-License-Identifier: Apache-2.0
"""IR and pasted texts: the verdicts of the shape rule, the rules of a chip, and what a file is by its content."""

import json

import pytest

import tilewright as tw
from tilewright.findings import Severity
from tilewright_audit import find_input_kind

from .damages import LIBRARY_GOLDEN, REPORTS
from .noc_traces import KERNELS, events_of

TEXTS = json.loads((LIBRARY_GOLDEN / "texts" / "ttnn_texts.json").read_text())["cases"]

IR = """
#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#good = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#rows = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x1>, memref<1x2x!ttcore.tile<32x32, bf16>, #l1>, <height_sharded>,
  core_ranges = <[#ttnn.core_range<(0,0), (1,0)>]>>
#far = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x1>, memref<1x2x!ttcore.tile<32x32, bf16>, #l1>, <height_sharded>,
  core_ranges = <[#ttnn.core_range<(12,0), (13,0)>]>>
#small = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
module {
  %1 = "ttnn.to_memory_config"(%0) : (tensor<64x64xbf16, #good>) -> tensor<64x64xbf16, #rows>
  %2 = "ttnn.relu"(%1) : (tensor<64x64xbf16, #rows>) -> tensor<64x64xbf16, #rows>
}
"""


@pytest.fixture
def ir(tmp_path):
    path = tmp_path / "whatever.json"
    path.write_text(IR)
    return path


def test_right_ir_is_clean_and_moves_have_their_cost(ir):
    report = tw.audit(ir, "wormhole_n150")
    assert report.clean
    assert report.counts["layouts"] == report.counts["ok"] == 4
    [move] = report.reshards
    assert move.plan.total_bytes == 8192
    assert "move" in dict(report.facts)
    assert dict(tw.audit(ir).facts)["placement"].startswith("not checked")


def test_a_layout_that_is_too_small_is_counted_once(ir):
    ir.write_text(IR.replace("#rows>\n", "#small>\n"))
    report = tw.audit(ir)
    [finding] = report.findings
    assert finding.kind == "layout"
    assert finding.count == 2
    assert "does not fit its layout" in finding.message
    assert "2x2" in finding.remedy


def test_cores_that_a_chip_does_not_have_need_a_chip_to_be_found(ir):
    ir.write_text(IR.replace("#rows>\n", "#far>\n"))
    assert tw.audit(ir).clean
    [finding] = tw.audit(ir, "wormhole_n150").findings
    assert finding.kind == "placement"
    assert "12" in finding.message


def test_kinds_are_decided_by_content(tmp_path, ir):
    assert find_input_kind(ir) == "IR"
    path = tmp_path / "file"
    path.write_text(json.dumps(events_of(next(iter(KERNELS.values())))))
    assert find_input_kind(path) == "NoC trace"
    for case in TEXTS:
        for text in filter(None, (case.get("repr"), case.get("to_json"))):
            path.write_text(text)
            if case["kind"] in ("MemoryConfig", "CoreRangeSet", "CoreRange", "ShardSpec", "Shape", "Tile"):
                assert find_input_kind(path) in ("text", "graph report"), text  # {} may be either
    for report in sorted(REPORTS.glob("*.json"))[:4]:
        assert find_input_kind(report) == "graph report"
    assert find_input_kind(next(REPORTS.glob("*.sqlite"))) == "database"


def test_values_in_a_log_are_described_once(tmp_path):
    config = "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1)"
    path = tmp_path / "run.log"
    path.write_text(f"info | start\nerror | got {config} on {{[0-0 - 8-7]}}\nerror | got {config}\n")
    report = tw.audit(path, "n150")
    assert report.counts == {"values": 3, "different": 2}
    assert [finding.message for finding in report.findings] == [
        "line 2: CoreRangeSet: core (8, 7) is not on wormhole_n150, whose grid is 8 x 8"
    ]
    assert all(note.severity is Severity.NOTE for note in report.notes)
    assert tw.audit(path).clean
    assert tw.audit(path.read_text()).counts == report.counts


def test_a_long_log_is_read_in_pieces(tmp_path):
    line = "x" * 500 + " Shape([1, 32])\n"
    path = tmp_path / "run.log"
    path.write_text(line * 5000 + "Shape([7, 7])")
    report = tw.audit(path)
    assert report.counts == {"values": 5001, "different": 2}
    assert report.notes[-1].message == "line 5001: Shape: [7, 7]"


@pytest.mark.parametrize(
    "case", [each for each in TEXTS if each["kind"] in ("MemoryConfig", "CoreRangeSet") and "repr" in each]
)
def test_printed_values_are_read(case):
    if case["repr"] != "{}":
        assert tw.audit(case["repr"]).counts["values"] == 1


def test_what_is_nothing_is_refused(tmp_path):
    path = tmp_path / "poem.txt"
    path.write_text("no values here")
    with pytest.raises(tw.FileFormatError, match="cannot audit"):
        tw.audit(path)
    with pytest.raises(tw.FileFormatError, match="no value"):
        tw.audit("f(x)")
    path.write_bytes(b"ML\xefR bytecode")
    with pytest.raises(tw.FileFormatError, match="bytecode"):
        tw.audit(path)


def test_an_alias_with_two_values_is_refused(tmp_path):
    layout = (
        "#a = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<{}x!ttcore.tile<32x32, bf16>, #d>, <interleaved>>"
    )
    path = tmp_path / "x.mlir"
    aliases = ["#d = #ttnn.buffer_type<dram>", layout.format("96x96"), layout.format("64x64")]
    path.write_text("\n".join([*aliases, "func.func @f(%a: tensor<64x64xbf16, #a>)"]))
    with pytest.raises(tw.FileFormatError, match="line 3: #a is defined twice"):
        tw.audit(path)


FATAL = (
    "Out of Memory: Not enough space to allocate 4096 B L1 buffer across 64 banks, where each bank needs to store 64 B,"
    " but bank size is 1395424 B"
)
WHOLE = f"TT_FATAL @ /project/a.cpp:9: x\ninfo:\n{FATAL}"


def test_an_error_in_a_log_is_explained_once(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(f"ok\n{WHOLE}\nop got Shape([1, 32])\n{WHOLE}\n")
    report = tw.audit(path)
    [failed] = [finding for finding in report.findings if finding.kind == "failed call"]
    assert failed.message.startswith("line 4: A buffer of 4096 B does not fit in L1 (full or fragmented: the message")
    assert failed.remedy == "Free other tensors first, with ttnn.deallocate."
    assert report.counts == {"values": 1, "different": 1, "errors": 1}
    assert dict(report.facts)["errors"] == "1 different; tilewright explain has their numbers"


def test_errors_of_a_long_log_have_their_lines(tmp_path):
    path = tmp_path / "run.log"
    line = "INFO step fine\n"
    lines = (1 << 20) // len(line) + 1
    path.write_text(line * lines + WHOLE + "\n" + line * lines + "TT_FATAL: Input Tensor A is not allocated\n" + line)
    found = {finding.recorded: finding.message for finding in tw.audit(path).findings}
    assert list(found) == [lines + 3, 2 * lines + 4]


def test_a_bare_message_in_a_file_is_an_error(tmp_path):
    path = tmp_path / "pasted.txt"
    path.write_text(FATAL)
    assert tw.audit(path).findings[0].kind == "failed call"
    path.write_text("all 12 tests passed")
    with pytest.raises(tw.FileFormatError, match="errors of ttnn, such as TT_FATAL"):
        tw.audit(path)

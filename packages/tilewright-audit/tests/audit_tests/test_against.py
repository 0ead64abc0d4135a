# SPDX-License-Identifier: Apache-2.0
"""Compiler IR against the report of a run: what is the same is not mentioned, what differs is named."""

from pathlib import Path

import pytest

import tilewright as tw
from tilewright.memory import Chip
from tilewright.notation import mlir_layout_of, mlir_tensor_type
from tilewright_audit.buffers import SpecReader
from tilewright_audit.graph_report import read_graph_report
from tilewright_audit.run import build_run
from tilewright_audit.run_audit import list_ran

from .damages import REPORTS

REPORT = REPORTS / "wormhole_n150.sharded_eltwise.normal.json"
CHIP = Chip.named("wormhole_n150")


def list_operations():
    return list_ran(build_run(read_graph_report(REPORT).nodes), SpecReader(CHIP))


def write_ir(path: Path, change=None) -> Path:
    """Write IR with the operations of the run, in which the result number `change[0]` has the spec `change[1]`."""
    aliases, lines = [], []
    for number, operation in enumerate(list_operations()):
        spec = change[1](operation.results[0]) if change is not None and change[0] == number else operation.results[0]
        aliases.append(f"#layout{number} = {mlir_layout_of(spec)}")
        kind = f"{'x'.join(map(str, spec.shape.logical))}x{mlir_tensor_type(spec).dtype}"
        lines.append(f'  %{number} = "{operation.name}"(%arg) : (tensor<f32>) -> tensor<{kind}, #layout{number}>')
    path.write_text("\n".join([*aliases, "module {", *lines, "}", ""]))
    return path


def test_the_run_has_operations():
    assert len(list_operations()) >= 3


def test_what_was_compiled_and_ran_the_same_is_clean(tmp_path):
    ir = write_ir(tmp_path / "model.mlir")
    report = tw.audit(ir, against=REPORT)
    assert report.clean, str(report)
    assert report.counts["same"] == report.counts["tensors"] == len(list_operations())
    assert tw.audit(REPORT, against=ir).counts == report.counts


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda spec: spec.with_memory("dram"), "memory"),
        (lambda spec: spec.replace(dtype="float32"), "dtype"),
        (lambda spec: tw.TensorSpec((64, 32), "bfloat16", "tile", chip=CHIP), "shape"),
    ],
)
def test_what_differs_is_named_with_both_sides(tmp_path, change, named):
    operations = list_operations()
    sharded = next(k for k, each in enumerate(operations) if each.results[0].memory.is_sharded)
    report = tw.audit(write_ir(tmp_path / "model.mlir", (sharded, change)), against=REPORT)
    messages = [finding.message for finding in report.findings if finding.kind == "compiled differently"]
    assert any(f"{operations[sharded].name} (" in each and f": {named} is " in each for each in messages)
    assert all(operations[sharded].place in each for each in messages)


def test_operations_of_one_side_are_noted(tmp_path):
    ir = write_ir(tmp_path / "model.mlir")
    text = ir.read_text().replace('"ttnn.', '"ttnn.x_', 1)
    ir.write_text(text)
    notes = [note.message for note in tw.audit(ir, against=REPORT).notes]
    assert any(each.startswith("only in the IR") for each in notes)
    assert any(each.startswith("only in the run") for each in notes)


def test_only_ir_and_a_report_can_be_compared(tmp_path):
    with pytest.raises(tw.FileFormatError, match="expected IR"):
        tw.audit(REPORT, against=REPORT)

# SPDX-License-Identifier: Apache-2.0
"""IR, traces and logs that are damaged or made up: an answer or a refusal, never another error."""

import json
import random

import pytest

import tilewright as tw
from tilewright_audit import audit_noc_trace
from tilewright_audit.run_audit import OperationTensors, match_operations

from .noc_traces import KERNELS, events_of, spec_of
from .test_ir_and_texts import IR, TEXTS

KERNEL = KERNELS["1x2_BLOCK_TO_2x4_HEIGHT"]
TRACE = json.dumps(events_of(KERNEL)[:40])
LOG = "\n".join([each["repr"] for each in TEXTS if "repr" in each])
ALPHABET = b'{}[]()<>#%"\\,:;x0123456789-\x00\xff\n'


def damage(data: bytes, numbers: random.Random) -> bytes:
    """Return data with a few bytes changed, left out or doubled."""
    content = bytearray(data)
    for _ in range(numbers.randint(1, 6)):
        at = numbers.randrange(len(content))
        kind = numbers.randrange(4)
        if kind == 0:
            content[at] = numbers.choice(ALPHABET)
        elif kind == 1:
            del content[at : at + numbers.randint(1, 40)]
        elif kind == 2:
            content[at:at] = content[at : at + numbers.randint(1, 200)]
        else:
            content[at:at] = b"9" * numbers.randint(1, 30)
        if not content:
            return b""
    return bytes(content)


@pytest.mark.parametrize("sample", [IR, TRACE, LOG], ids=["IR", "trace", "log"])
def test_damaged_inputs_are_answered_or_refused(sample, tmp_path):
    numbers = random.Random(24)
    path = tmp_path / "input"
    for _ in range(60):
        path.write_bytes(damage(sample.encode(), numbers))
        try:
            report = tw.audit(path, "wormhole_n150")
        except tw.TilewrightError:
            continue
        report.to_json()
        assert str(report)


def test_traces_with_any_numbers_are_compared(tmp_path):
    numbers = random.Random(24)
    path = tmp_path / "trace.json"
    source, target = spec_of(KERNEL["source"]), spec_of(KERNEL["target"])
    for _ in range(40):
        events = json.loads(TRACE)
        for event in numbers.sample(events, 3):
            event[numbers.choice(list(event))] = numbers.choice([-1, 10**30, 2**63, None, "x", [], {}, 1.5, True, 0])
        path.write_text(json.dumps(events))
        try:
            assert str(audit_noc_trace(path, source, target))
        except tw.TilewrightError:
            continue


def test_tensors_that_are_too_large_are_not_planned(tmp_path):
    path = tmp_path / "model.mlir"
    size = 1 << 30
    text = IR.replace("64x64", f"{size}x{size}").replace("memref<2x2x", f"memref<{size // 32}x{size // 32}x")
    path.write_text(text)
    assert tw.audit(path, "wormhole_n150").reshards == ()


def test_many_operations_of_one_name_are_matched():
    operations = [OperationTensors("ttnn.add", str(k), ()) for k in range(20_000)]
    others = [OperationTensors("ttnn.relu", str(k), ()) for k in range(20_000)]
    assert len(match_operations(operations, operations)) == 20_000
    assert match_operations(operations, others) == []


def test_a_log_of_very_many_values_is_numbered():
    text = "Shape([1])\n" * 50_000
    assert tw.audit(text).counts == {"values": 50_000, "different": 1}

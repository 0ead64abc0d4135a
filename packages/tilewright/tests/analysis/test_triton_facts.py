# SPDX-License-Identifier: Apache-2.0
"""What Triton compiled and counted: conversions between distributions, and conflicts of registers with memory."""

import json
from collections import Counter
from pathlib import Path

import numpy as np

from tilewright.analysis import bank_conflicts, conversion
from tilewright.layout.linear import Linear
from tilewright.notation import linear_of_encoding, parse_encoding

GOLDEN = Path(__file__).parent.parent / "golden" / "notations" / "triton"


def recorded(name):
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def test_conversions_need_no_more_than_triton_uses():
    means = Counter()
    exact = 0
    for case in recorded("conversions"):
        ends = [linear_of_encoding(parse_encoding(case[end]), case["shape"]) for end in ("source", "target")]
        convert = conversion(*ends, itemsize=case["bits"] // 8)
        used = "shared memory" if case["shared"] else "shuffles" if case["shuffles"] else "registers"
        needed = "registers" if convert.means == "nothing" else convert.means
        means[needed, used] += 1
        if needed == used == "shuffles":
            assert convert.shuffles <= case["shuffles"], case
            exact += convert.shuffles == case["shuffles"]
    # Triton goes through shared memory where many shuffles would do; it never gets by with less than is needed
    assert set(means) <= {
        ("registers", "registers"),
        ("shuffles", "shuffles"),
        ("shuffles", "shared memory"),
        ("shared memory", "shared memory"),
    }
    assert exact > 0.8 * means["shuffles", "shuffles"] > 20


def test_conflicts_between_distributions_and_memory():
    cases = recorded("bank_conflicts")
    assert len(cases) == 120
    for case in cases:
        extents = {f"dim{k}": extent for k, extent in enumerate(case["shape"])}
        registers = Linear(case["reg_linear"], extents)
        memory = Linear({axis: case["shared_linear"][axis] for axis in ("offset", "block")}, extents)
        size = case["bits"] // 8
        vector = case["vector_bytes"] // size
        first = registers.divide(memory)(register=0, lane=np.arange(registers.inputs["lane"]), warp=0, block=0)
        offsets = first["offset"][:, None] // vector * vector + np.arange(vector)
        report = bank_conflicts(offsets, itemsize=size, vector=vector, instruction="st")
        counted = case["brute_force"]
        assert (report.wavefronts, report.ideal) == (counted["wavefronts"], counted["ideal"]), case["register"]

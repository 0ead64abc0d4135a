# SPDX-License-Identifier: Apache-2.0
"""The addresses of shards allocated core by core, and in lockstep of their cores, on the real ttnn's mock device."""

import json
import os
import subprocess
import sys
from pathlib import Path

from ..memory.allocation_questions import answers, question

SCRIPT = Path(__file__).parent / "hybrid_allocator.py"
COUNT = 200


def test_addresses_of_random_tensors():
    questions = [question(seed) for seed in range(COUNT)]
    environment = os.environ | {"TT_METAL_ALLOCATOR_MODE_HYBRID": "1"}
    run = subprocess.run(
        [sys.executable, SCRIPT],
        input=json.dumps(questions),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    theirs = json.loads(run.stdout.strip().splitlines()[-1])
    for steps, found in zip(questions, theirs, strict=True):
        assert answers(steps) == [sorted(each) if isinstance(each, list) else each for each in found], steps

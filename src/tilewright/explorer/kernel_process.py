# SPDX-License-Identifier: Apache-2.0
"""Kernels of the explorer in a process of their own, which ends with them: with a limit of time and of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, cast

from .form import FieldError, FormFields
from .kernel_programs import parse_program

SECONDS = 20


def run_in_process(fields: FormFields) -> dict[str, Any]:
    """Return what `describe_kernel` returns, from a process that cannot run longer than 20 seconds.

    >>> run_in_process({"source": "def main():\\n    print(2 * 3)"})["output"]
    '6\\n'
    """
    parse_program(fields)  # refuses what is not run, without a process
    command = [sys.executable, "-m", f"{__package__}.kernel_tab"]
    try:
        done = subprocess.run(
            command, input=json.dumps(dict(fields)), capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise FieldError(
            "source", f"the program ran longer than {SECONDS} seconds and was stopped; does a loop never end?"
        ) from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise FieldError("source", "the program was stopped: it needs too much memory, or it ended itself") from None
    if "refused" in answer:
        raise FieldError(answer["field"] or "source", answer["refused"])
    return cast("dict[str, Any]", answer)

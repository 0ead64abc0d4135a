# SPDX-License-Identifier: Apache-2.0
"""Kernels of the explorer in a process of their own, which ends with them: fenced, and with a limit of time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

from tilewright.explorer import FieldError, FormFields

from .kernel_programs import parse_program

SECONDS = 20
ENVIRONMENT = ("PYTHON", "TILEWRIGHT_", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_")
"""Prefixes of the environment variables that Python needs; a program cannot read any others."""


def run_in_process(fields: FormFields) -> dict[str, Any]:
    """Return the result of `describe_kernel`, from a process that cannot run longer than 20 seconds.

    >>> run_in_process({"source": "def main():\\n    print(2 * 3)"})["output"]
    '6\\n'
    """
    parse_program(fields)  # refuses programs that are not run, without a process
    command = [sys.executable, "-m", f"{__package__}.kernel_tab"]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(dict(fields)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # nobody reads it, and a program can write there without end
            text=True,
            timeout=SECONDS,
            check=False,
            cwd=Path(__file__).parent,  # which Python would search for modules
            env={name: value for name, value in os.environ.items() if name.startswith(ENVIRONMENT)},
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

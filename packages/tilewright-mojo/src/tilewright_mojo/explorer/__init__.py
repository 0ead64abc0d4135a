# SPDX-License-Identifier: Apache-2.0
"""The explorer's tab of kernels, which the entry point `kernel` of the group `tilewright.tabs` names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tilewright.explorer import FormFields, Tab

from .kernel_process import run_in_process
from .kernel_programs import can_run_python, list_kernel_choices, read_example


def answer_kernel(fields: FormFields) -> dict[str, Any]:
    """Return the outcome of a program: in a browser, which confines it, in this process, else in one of its own.

    With the field `example`, return that example, or puzzle, instead.

    >>> answer_kernel({"source": "def main():\\n    print(2 * 3)"})["output"]
    '6\\n'
    """
    if "example" in fields:
        return dict(read_example(fields["example"]))
    if not can_run_python():
        return run_in_process(fields)
    # Mojo is loaded when it is needed, so that the first picture need not wait for it.
    answer: dict[str, Any] = import_module(f"{__name__}.kernel_tab").describe_kernel(fields)
    return answer


tab = Tab(list_kernel_choices, answer_kernel)

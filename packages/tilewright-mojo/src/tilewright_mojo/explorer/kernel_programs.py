# SPDX-License-Identifier: Apache-2.0
"""Programs with kernels, as the form has them: the examples, the languages, and which of them are run."""

from __future__ import annotations

import sys
from importlib import resources
from typing import Any

from tilewright.explorer import FieldError, FormFields

LANGUAGES = ("mojo", "python")
MAX_SOURCE = 12_000  # characters of a program
EXAMPLES = {
    "reverse.mojo": "a missing barrier",
    "transpose.mojo": "bank conflicts",
    "sum.mojo": "a correct sum",
    "early_return.py.txt": "an early return",
}
"""The examples of the page, each with its subject."""


def list_kernel_choices() -> dict[str, Any]:
    """Return the languages, and the examples with their sources.

    >>> [example["title"] for example in list_kernel_choices()["kernels"]][0]
    'a missing barrier'
    """
    folder = resources.files(__package__).joinpath("kernels")
    kernels = [
        {
            "title": title,
            "language": "mojo" if name.endswith(".mojo") else "python",
            "source": folder.joinpath(name).read_text(encoding="utf-8"),
        }
        for name, title in EXAMPLES.items()
    ]
    return {"language": list(LANGUAGES), "kernels": kernels}


def can_run_python() -> bool:
    """Return whether programs in Python are run: only inside a browser, which confines them.

    >>> can_run_python()
    False
    """
    return sys.platform == "emscripten"


def parse_program(fields: FormFields) -> tuple[str, str]:
    """Return the language and the source of the program in the form.

    >>> parse_program({"source": "print(1)"})
    ('mojo', 'print(1)')
    """
    language, source = fields.get("language") or LANGUAGES[0], fields.get("source", "")
    if language not in LANGUAGES:
        raise FieldError("language", f"unknown language {language!r}; choose one of {', '.join(LANGUAGES)}")
    if not source.strip():
        raise FieldError("source", "the program is missing; choose an example, or write one")
    if len(source) > MAX_SOURCE:
        raise FieldError("source", f"the program has {len(source)} characters; use at most {MAX_SOURCE}")
    if language == "python" and not can_run_python():
        raise FieldError(
            "language",
            "a Python kernel could do anything on this computer, so it is not run here; run the file with python"
            " yourself, or open this view in the playground, where the browser confines it (Share has the link)",
        )
    return language, source

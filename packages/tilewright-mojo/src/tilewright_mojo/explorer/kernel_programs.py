# SPDX-License-Identifier: Apache-2.0
"""Programs with kernels, as the form has them: the examples, the languages, and which of them are run."""

from __future__ import annotations

import re
import sys
from importlib import resources
from typing import Any

from tilewright.explorer import FieldError, FormFields

LANGUAGES = ("mojo", "python")
MAX_SOURCE = 12_000  # characters of a program
EXAMPLES = {
    "reverse": "a missing barrier",
    "transpose": "bank conflicts",
    "sum": "a correct sum",
    "early_return": "an early return",
}
"""The examples of the page, each with its subject; the names are in links, so they stay."""

PUZZLES = (
    *("map", "zip", "guard", "map_2d", "broadcast", "blocks", "shared_memory", "pooling", "dot_product"),
    *("convolution", "prefix_sum", "axis_sum", "matmul", "tiled_matmul"),
)
"""The puzzles in their order: programs in Mojo, of which a part is left to the reader."""

_PART = re.compile(r"(?m)^( *# your part.*\n)((?:.*\n)*?) *# end of your part\n")


def list_kernel_choices() -> dict[str, Any]:
    """Return the languages, and the titles of the examples and of the puzzles.

    >>> list_kernel_choices()["kernels"][0]
    {'name': 'reverse', 'title': 'a missing barrier', 'language': 'mojo'}
    """
    languages = {name: _read_program(name)[0] for name in EXAMPLES}
    return {
        "language": list(LANGUAGES),
        "kernels": [{"name": name, "title": title, "language": languages[name]} for name, title in EXAMPLES.items()],
        "puzzles": [{"name": name, "title": name.replace("_", " ").replace("2d", "2D")} for name in PUZZLES],
    }


def _read_program(name: str) -> tuple[str, str]:
    """Return the language and the text of an example or a puzzle."""
    folder = resources.files(__package__).joinpath("puzzles" if name in PUZZLES else "kernels")
    file = folder.joinpath(f"{name}.mojo")
    language, file = ("mojo", file) if file.is_file() else ("python", folder.joinpath(f"{name}.py.txt"))
    return language, file.read_text(encoding="utf-8")


def read_example(name: str) -> dict[str, str]:
    """Return the language and the source of an example; a puzzle comes without its part, and with a solution.

    >>> puzzle = read_example("map")
    >>> puzzle["language"], "numbers[i] +" in puzzle["source"], "numbers[i] +" in puzzle["solution"]
    ('mojo', False, True)
    """
    if name not in EXAMPLES and name not in PUZZLES:
        known = ", ".join((*EXAMPLES, *PUZZLES))
        raise FieldError("source", f"unknown example {name!r}; choose one of {known}")
    language, text = _read_program(name)
    exercise, solution = _PART.sub(r"\1", text), _PART.sub(r"\1\2", text)
    return {"language": language, "source": exercise} | ({"solution": solution} if name in PUZZLES else {})


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

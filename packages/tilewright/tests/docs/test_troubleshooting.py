# SPDX-License-Identifier: Apache-2.0
"""Every message in the troubleshooting page is a message that something really raises or prints."""

import contextlib
import doctest
import io
import re
import warnings

from .pages import DOCS, FENCE
from .running import run_console, working_in

PAGE = DOCS / "troubleshooting.md"
FEWEST_MESSAGES = 25


def sections():
    """Return (heading, text) of every message."""
    text = PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)
    return parts[0], list(zip(parts[1::2], parts[2::2], strict=True))


def said_by(text, names):
    """Return all that the blocks of a section raise, warn, print or show."""
    said = []
    for fence in FENCE.finditer(text):
        if fence["language"] == "console":
            said.append(fence["text"])  # compared with the real output by run_console
            run_console(fence["text"], PAGE.name)
            continue
        for example in doctest.DocTestParser().get_examples(fence["text"]) or [doctest.Example(fence["text"], "")]:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                try:
                    exec(compile(example.source, PAGE.name, "single" if example.want else "exec"), names)
                except Exception as problem:
                    said.append(str(problem))
            said.append(printed.getvalue())
    return said


def pattern_of(heading):
    """Return the pattern that a heading stands for: its words, with anything where it has three dots."""
    return ".*".join(re.escape(part.strip()) for part in heading.strip("`").split("..."))


def test_every_heading_is_a_real_message(tmp_path):
    opening, found = sections()
    assert len(found) >= FEWEST_MESSAGES
    names = {"__name__": "page"}
    with working_in(tmp_path), warnings.catch_warnings():
        said_by(opening, names)
        for heading, text in found:
            said = " ".join(" ".join(said_by(text, names)).split())
            assert re.search(pattern_of(heading), said), f"{heading!r} is not what is said: {said!r}"

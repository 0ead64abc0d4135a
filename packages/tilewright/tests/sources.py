# SPDX-License-Identifier: Apache-2.0
"""The project's own sources, parsed once for all tests that read them."""

import ast
from functools import cache
from pathlib import Path


@cache
def parse_source(path: Path) -> ast.Module:
    """Return the syntax tree of a source file; do not change it."""
    return ast.parse(path.read_text(encoding="utf-8"))

# SPDX-License-Identifier: Apache-2.0
"""The walkthroughs of docs/architecture.md are the ways that calls really go: they are run, and watched."""

import ast
import json
import os
import re
import subprocess
import sys

import pytest

from tilewright.copying import load_engine, native

from .pages import DOCS, PACKAGE, blocks_of
from .walkthroughs import WALKTHROUGHS

PAGE = DOCS / "architecture.md"
HOP = re.compile(r"^((?:src|native)/\S+)  +([\w.]+)  +\S", re.MULTILINE)
NATIVE = (".cpp", ".h")
FEWEST_HOPS = 50


def diagrams():
    """Return for each diagram its first line, which says what is run, and its hops: (file, function)."""
    texts = [block.text for block in blocks_of(PAGE) if HOP.search(block.text)]
    return {text.splitlines()[0]: HOP.findall(text) for text in texts}


def find_file(file):
    """Return the path of a file of the library or of a companion, or None."""
    return next((path for path in (package / file for package in PACKAGE.parent.iterdir()) if path.is_file()), None)


def functions_in(path):
    """Return the qualified names of all functions of a Python file, or the names before a bracket in a C++ file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in NATIVE:
        return set(re.findall(r"\b(\w+)\(", text))
    found = set()

    def visit(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                found.add(f"{prefix}{child.name}")
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(text), "")
    return found


NOT_TRACED = {"tw.stream(..., queue=...)"}  # what storage that is not memory uses


def test_the_walkthroughs_are_found():
    assert set(diagrams()) == {*WALKTHROUGHS, *NOT_TRACED}
    assert sum(map(len, diagrams().values())) >= FEWEST_HOPS


@pytest.mark.parametrize("walkthrough", diagrams())
def test_every_hop_exists(walkthrough):
    for file, function in diagrams()[walkthrough]:
        path = find_file(file)
        assert path is not None, f"{file} does not exist"
        assert function in functions_in(path), f"{file} has no {function}"


@pytest.mark.parametrize("walkthrough", WALKTHROUGHS)
def test_calls_go_that_way(walkthrough, tmp_path):
    for word, engine in (("gpu", "cuda"), ("pyopencl", "opencl")):
        if word in walkthrough and load_engine(engine).unavailable_reason():
            pytest.skip(load_engine(engine).unavailable_reason())
    if not native.is_available() and not re.search(r"where|tilize", walkthrough):
        pytest.skip(native.unavailable_reason())
    command = [sys.executable, "-m", "tests.docs.walkthroughs", str(list(WALKTHROUGHS).index(walkthrough))]
    path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = [tuple(call) for call in json.loads(done.stdout)]
    last = -1
    for file, function in diagrams()[walkthrough]:
        if not file.endswith(NATIVE):
            names = {function, function.rpartition(".")[2]} if sys.version_info < (3, 11) else {function}
            at = next((k for k, (where, name) in enumerate(made) if where == file and name in names), None)
            assert at is not None, f"{function} of {file} is not called"
            assert at > last, f"{function} of {file} is called before the hop above it"
            last = at


def test_files_in_the_text_exist():
    paths = re.findall(r"`((?:src|tests|native)/[\w/.]+)`", PAGE.read_text(encoding="utf-8"))
    assert paths
    assert not [path for path in paths if not (PACKAGE / path).exists()]

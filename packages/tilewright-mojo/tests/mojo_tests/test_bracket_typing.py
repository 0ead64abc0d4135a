# SPDX-License-Identifier: Apache-2.0
"""Brackets before parentheses are typed Python: mypy --strict accepts them, knows the results, sees mistakes."""

import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT.parents[1] / "examples").glob("*.py"))

pytest.importorskip("mypy")

# Each line: an expression in brackets, and the type that mypy has to find for it.
EXPRESSIONS = [
    ("t.tile[2, 2](1, 0)", "TileTensor"),
    ("t.tile[2, 2](Coord(1, 0))", "TileTensor"),
    ("t.tile((2, 2), (1, 0))", "TileTensor"),
    ("t.tile_with_offset[2, 2](1, 0)", "tuple[TileTensor, tuple[int, ...], int]"),
    ("t.tiles[2, 2]()", "Tiles[TileTensor]"),
    ("[part for part in t.tiles[2, 2]()]", "list[TileTensor]"),
    ("t.tiles[2, 2]()[3]", "TileTensor"),
    ("t.distribute[row_major[2, 2]()](3)", "TileTensor"),
    ("t.distribute[row_major[2, 2](), Swizzle(1, 0, 1)](3)", "TileTensor"),
    ("t.distribute[row_major[2, 2]()](3, ragged='cover')", "TileTensor"),
    ("t.distribute_with_offset[row_major[2, 2]()](3)", "tuple[TileTensor, tuple[int, ...], int]"),
    ("t.vectorize[1, 4]()", "TileTensor"),
    ("t.vectorize()", "TileTensor"),
    ("t.slice[0:2, 1:3]()", "TileTensor"),
    ("t.slice[0:2, 1]()", "TileTensor"),
    ("t.slice((0, 2), (1, 3))", "TileTensor"),
    ("t.reshape[2, 8]()", "TileTensor"),
    ("t.reshape(Coord(Idx(2), Idx[8]()))", "TileTensor"),
    ("t.reshape(row_major[16]())", "TileTensor"),
    ("t.coalesce()", "TileTensor"),
    ("t.transpose()", "TileTensor"),
    ("t.make_dynamic[DType.int64]()", "TileTensor"),
    ("t.as_immut()", "TileTensor"),
    ("t.as_any_origin()", "TileTensor"),
    ("t.address_space_cast[AddressSpace.SHARED]()", "TileTensor"),
    ("t.bitcast[DType.uint32]()", "TileTensor"),
    ("t.fill(0.0)", "TileTensor"),
    ("t.copy_from(t)", "TileTensor"),
    ("t.tile[2, 2](0, 0).vectorize[1, 2]().distribute[row_major[2, 1]()](0)", "TileTensor"),
    ("t.dim[0]()", "int"),
    ("t.dim(0)", "int"),
    ("t.numel()", "int"),
    ("t.shape", "tuple[int, ...]"),
    ("t.static_shape[0]", "int"),
    ("t.address_space", "AddressSpace"),
    ("t.ptr_at_offset(1, 2)", "Pointer"),
    ("t.is_ragged", "bool"),
    ("t.to_layout_tensor()", "TileTensor"),
    ("stack_allocation[DType.float32](row_major[4, 4]())", "TileTensor"),
    ("row_major[4, 4]()", "Layout"),
    ("col_major[4, 4]()", "Layout"),
    ("row_major(4, 4)", "Layout"),
    ("algebra.row_major(4, 4)", "Layout"),
    ("make_swizzle[8, 32, 4]()", "Swizzle"),
    ("Idx[4]()", "ComptimeInt"),
    ("coord[2, 3]", "Coord"),
    ("coord[2, 3]()", "Coord"),
]

PROGRAM = """
import tilewright as algebra
from tilewright.mojo import DType, Float32, InlineArray, Span, List
from tilewright.mojo.layout import (
    AddressSpace, Coord, Idx, Swizzle, TileTensor, coord, stack_allocation,
)
from tilewright.mojo.layout.swizzle import make_swizzle
from tilewright.mojo.layout.tile_layout import col_major, row_major
from tilewright_mojo.library.device import DeviceContext

storage = InlineArray[Float32, 16](uninitialized=True)
t = TileTensor(storage, row_major[4, 4]()).fill(0)
host = DeviceContext().enqueue_create_host_buffer[DType.float32](16)
numbers = List[Float32](1, 2, 3)
t[1, 2] = 2.0
t.store[4]((1, 0), t.load[4](0, 0))
t[0:2, :] = t[2:4, :]
t += t
t.exp[2.0]()
view: TileTensor = t.tile[2, 2](1, 0)
annotated: TileTensor.ViewType = view


def first(x: TileTensor) -> float:
    return float(x[0, 0])


first(view)
"""

WRONG = [
    ("x: int = t.tile[2, 2](1, 0)", "Incompatible types in assignment"),
    ("t.tile[2, 2](1, 0).no_such_method()", 'has no attribute "no_such_method"'),
    ("t.tyle[2, 2](1, 0)", 'has no attribute "tyle"'),
    ("t.tile[2, 2].shape", 'has no attribute "shape"'),  # the call is missing
    ("len(t.tile[2, 2])", "incompatible type"),
    ("t.coalesce(1)", "Too many arguments"),
    ("t.shape[0].upper()", 'has no attribute "upper"'),
    ("t.dim[0]() + 'x'", "Unsupported operand types"),
    ("row_major[4, 4].size", 'has no attribute "size"'),
    ("t.mut = True", "read-only"),
    ("t.tile['a', 4](1)", "Invalid index type"),
    ("t.vectorize['a']()", "Invalid index type"),
    ("t.distribute[4](1)", "Invalid index type"),
    ("algebra.Layout('x')", "No overload variant"),
]


def mypy(path: Path) -> tuple[int, str]:
    """Run mypy with the project's own strict settings on a program outside of the package."""
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--no-error-summary", "--no-pretty"]
    sources = {"MYPYPATH": "src:../tilewright/src"} if (ROOT / "src").is_dir() else {}  # else they are installed
    environment = os.environ | sources
    done = subprocess.run([*command, str(path)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def short(text: str) -> str:
    """Return the name of a type without the modules it comes from."""
    return re.sub(r"[a-z_]+\.", "", text)


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Return what mypy says about one program with all expressions and all mistakes: line by line."""
    lines = PROGRAM.splitlines()
    revealed = {len(lines) + k + 1: pair for k, pair in enumerate(EXPRESSIONS)}
    lines += [f"reveal_type({expression})" for expression, _ in EXPRESSIONS]
    mistakes = {len(lines) + k + 1: pair for k, pair in enumerate(WRONG)}
    lines += [line for line, _ in WRONG]
    path = tmp_path_factory.mktemp("typing") / "program.py"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _, report = mypy(path)
    said: dict[int, list[tuple[str, str]]] = {}
    for number, kind, text in re.findall(r"program\.py:(\d+): (error|note): (.*)", report):
        said.setdefault(int(number), []).append((kind, text))
    assert said, report
    return said, revealed, mistakes


def test_the_program_has_no_errors_but_the_mistakes(findings):
    said, _, mistakes = findings
    wrong = {number: notes for number, notes in said.items() if any(kind == "error" for kind, _ in notes)}
    assert wrong.keys() == mistakes.keys(), wrong


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS, ids=[expression for expression, _ in EXPRESSIONS])
def test_mypy_knows_the_type(findings, expression, expected):
    said, revealed, _ = findings
    (number,) = [number for number, pair in revealed.items() if pair == (expression, expected)]
    (text,) = [text for kind, text in said[number] if kind == "note"]
    assert short(re.fullmatch(r'Revealed type is "(.*)"', text)[1]) == expected


@pytest.mark.parametrize(("line", "problem"), WRONG, ids=[line for line, _ in WRONG])
def test_mypy_sees_the_mistake(findings, line, problem):
    said, _, mistakes = findings
    (number,) = [number for number, pair in mistakes.items() if pair == (line, problem)]
    assert any(kind == "error" and problem in text for kind, text in said[number]), said[number]


def test_the_expressions_run_as_they_are_typed(tmp_path):
    """What mypy accepts has to run too, so that the list above cannot drift away from the package."""
    path = tmp_path / "program.py"
    values = ", ".join(expression for expression, _ in EXPRESSIONS)
    path.write_text(f"{PROGRAM}\nfound = [{values}]\n", encoding="utf-8")
    found = runpy.run_path(str(path))["found"]
    for value, (expression, expected) in zip(found, EXPRESSIONS, strict=True):
        outer = expected.partition("[")[0]
        assert outer in [kind.__name__ for kind in type(value).__mro__], expression


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_mypy_accepts_the_examples(path):
    code, report = mypy(path)
    assert code == 0, report


def test_examples_are_found():
    assert EXAMPLES


def test_brackets_have_real_signatures():
    t = tw.TileTensor(np.arange(16), tw.row_major(4, 4))
    assert list(inspect.signature(t.tile).parameters) == ["shape", "coords", "stride_layout"]
    assert list(inspect.signature(t.tile[2, 2]).parameters) == ["coords", "stride_layout"]
    assert list(inspect.signature(t.distribute).parameters) == ["threads", "thread_id", "swizzle", "wrap", "ragged"]
    assert list(inspect.signature(t.vectorize).parameters) == ["simd_bytes"]
    for name in ("tile", "distribute", "vectorize"):
        assert f"t.{name}[" in inspect.getdoc(getattr(tw.TileTensor, name))

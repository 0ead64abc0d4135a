# SPDX-License-Identifier: Apache-2.0
"""Index functions as code: compiled as C++ and OpenCL, run as Python, interpreted as MLIR, they are the layout."""

import ctypes
import operator
import random
import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given

import tilewright as tw
from tilewright import Layout, LayoutError, Swizzle, compose
from tilewright.layout.linear import Linear

from ..cases import examples
from .strategies import layouts as strided_layouts

LAYOUTS = [
    Layout(8, 3),
    Layout((4, 8), (8, 1)),
    Layout((4, (2, 3)), (-1, (7, 0))) + 5,
    Layout(((2, 4), 1, (3, 5)), ((1, 40), 0, (2, 6))),
    compose(Swizzle(3, 3, 3), Layout(((8, 2), (64, 2)), ((64, 1024), (1, 512)))),
    compose(Swizzle(2, 0, -2), tw.row_major(4, 16)),
    compose(Swizzle(1, 0, 1), compose(Swizzle(2, 2, 2), tw.row_major(8, 8))),
    compose(Layout((3, 5), (5, 1)), Layout(6, 2)),
    Layout((70000, 70000), (70000, 1)),
    tw.with_logical_shape(tw.row_major(64, 96), (60, 90)),
]


def random_layouts(count):
    """Return strided, swizzled and composed layouts, the same ones every time."""
    chance = random.Random(11)
    found = []
    while len(found) < count:
        modes = [tuple(chance.choice([1, 2, 3, 4, 8]) for _ in range(chance.randint(1, 3))) for _ in range(2)]
        strides = [tuple(chance.choice([0, 1, 2, 8, 100, 4096]) for _ in mode) for mode in modes]
        layout = Layout(tuple(modes), tuple(strides)) + chance.choice([0, 7])
        swizzle = Swizzle(chance.randint(0, 3), chance.randint(0, 3), chance.choice([3, 4, -3]))
        pick = Layout((chance.randint(1, 9), 2), (chance.randint(1, 3), 1))
        found += [layout, compose(swizzle, layout), compose(swizzle, compose(layout, pick))]
    return found[:count]


def coordinates(layout, count=40):
    chance = random.Random(5)
    extents = [int(layout.mode(k).size) for k in range(int(layout.rank))]
    return [tuple(chance.randrange(extent) for extent in extents) for _ in range(count)]


def run_python(text, name="offset"):
    space = {}
    exec(text, space)  # noqa: S102  (our own text)
    return space[name]


def interpret_mlir(text):
    """Return the function that a text of arith operations describes."""
    operations = {
        "addi": operator.add,
        "muli": operator.mul,
        "divui": operator.floordiv,
        "remui": operator.mod,
        "xori": operator.xor,
        "andi": operator.and_,
        "shrui": operator.rshift,
        "shli": operator.lshift,
    }
    names = re.findall(r"(%i\d+): index", text)
    pattern = r"  (%\d+) = arith\.(?:constant (-?\d+)|(\w+) (%\w+), (%\w+)) : index"
    head, *body, end, brace = text.splitlines()
    steps = [re.fullmatch(pattern, line).groups() for line in body]
    result = re.fullmatch(r"  return (%\w+) : index", end)[1]
    assert re.fullmatch(r"func\.func @\w+\(.*\) -> index \{", head), head
    assert brace == "}"

    def function(*arguments):
        values = dict(zip(names, arguments, strict=True))
        for name, constant, operation, left, right in steps:
            assert name not in values, f"{name} is defined twice in {text}"
            value = int(constant) if constant else operations[operation](values[left], values[right])
            values[name] = value % 2**64  # an index wraps around, and divisions are unsigned
        return (values[result] + 2**63) % 2**64 - 2**63

    return function


def test_python_and_mlir():
    for layout in [*LAYOUTS, *random_layouts(60)]:
        for function in (run_python(layout.code("python")), interpret_mlir(layout.code("mlir"))):
            for coord in coordinates(layout):
                assert function(*coord) == layout(*coord), layout


@examples(60)
@given(strided_layouts())
def test_any_strided_layout(layout):
    if layout.axes or layout.is_replicated or not layout.size:
        return
    function = run_python(layout.code("python"))
    for coord in coordinates(layout, 10):
        assert function(*coord) == layout.extended(*coord)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_c_compiles_to_the_layout(tmp_path):
    parts = [
        "#define __device__",
        "#define __forceinline__ inline",
        "typedef unsigned int uint; typedef unsigned long ulong;",
    ]
    for k, layout in enumerate(LAYOUTS):
        for language in ("cuda", "opencl"):
            parts.append(layout.code(language, f"{language}_{k}"))
            names = ", ".join(f"c[{mode}]" for mode in range(int(layout.rank)))
            parts.append(
                f'extern "C" long long call_{language}_{k}(const long long *c) {{ return {language}_{k}({names}); }}'
            )
    source = tmp_path / "index.cpp"
    source.write_text("\n".join(parts))
    library = tmp_path / "index.so"
    subprocess.run(
        ["g++", "-Wall", "-Wno-unused-function", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True
    )
    loaded = ctypes.CDLL(str(library))
    for k, layout in enumerate(LAYOUTS):
        for language in ("cuda", "opencl"):
            function = getattr(loaded, f"call_{language}_{k}")
            function.restype = ctypes.c_longlong
            for coord in coordinates(layout):
                assert function((ctypes.c_longlong * len(coord))(*coord)) == layout(*coord), (language, layout)


def test_opencl_compiles_to_the_layout():
    cl = pytest.importorskip("pyopencl")
    layouts = [*LAYOUTS, *random_layouts(30)]
    points = [coordinates(layout, 16) for layout in layouts]
    parts, calls, begin = [], [], 0
    for k, layout in enumerate(layouts):
        parts.append(layout.code("opencl", f"offset_{k}"))
        rank = int(layout.rank)
        names = ", ".join(f"points[{begin} + {rank} * i + {mode}]" for mode in range(rank))
        calls.append(f"    places[{16 * k} + i] = offset_{k}({names});")
        begin += 16 * rank
    head = "__kernel void run(__global const long *points, __global long *places) {\n    size_t i = get_global_id(0);"
    source = "\n".join([*parts, head, *calls, "}"])
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    given_points = np.array([part for point in points for coord in point for part in coord], np.int64)
    places = np.zeros(16 * len(layouts), np.int64)
    flags = cl.mem_flags
    source_buffer = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=given_points)
    target_buffer = cl.Buffer(context, flags.WRITE_ONLY, places.nbytes)
    cl.Program(context, source).build().run(queue, (16,), None, source_buffer, target_buffer)
    cl.enqueue_copy(queue, places, target_buffer)
    for layout, point, found in zip(layouts, points, places.reshape(-1, 16).tolist(), strict=True):
        assert found == [layout(*coord) for coord in point], layout


def test_widths():
    assert "unsigned int" in LAYOUTS[1].code("cuda")
    assert "unsigned long long" in LAYOUTS[8].code("cuda")  # more than 32 bits
    assert " int offset(int i0" in LAYOUTS[2].code("cuda")  # negative strides
    assert LAYOUTS[1].code("triton").startswith("@triton.jit\ndef offset(i0, i1):\n    return")
    assert "    i1 = tl.cast(i1, tl.int64)\n" in LAYOUTS[8].code("triton")


def test_linear_maps():
    linear = Linear.of(LAYOUTS[4])
    function = run_python(linear.code("python"))
    for coord in coordinates(LAYOUTS[4]):
        assert function(*coord) == LAYOUTS[4](*coord)


def test_what_has_no_code():
    with pytest.raises(LayoutError, match=r"take one axis with \.project"):
        Layout(4, 1 @ tw.bank).code("cuda")
    with pytest.raises(LayoutError, match="unknown language 'cobol'"):
        Layout(4).code("cobol")
    with pytest.raises(LayoutError, match="not a name"):
        Layout(4).code("cuda", "1x")
    with pytest.raises(LayoutError, match="one result"):
        Linear({"lane": [(0, 1)]}, {"row": 2, "column": 2}).code("cuda")

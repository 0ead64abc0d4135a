# SPDX-License-Identifier: Apache-2.0
"""A sample of plans on a CUDA device, one of every kind of kernel, for checkers of memory and races to look at.

    compute-sanitizer --tool memcheck  python gpu_tests/cuda/sample_of_plans.py
    compute-sanitizer --tool racecheck python gpu_tests/cuda/sample_of_plans.py

Every allocation is CUDA's own, as large as asked for, so that a byte too far is one too many.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.copying import Placement, Plan, execute, load_engine, plan_copy
from tilewright.formats import ScalarFormat, format_of
from tilewright.layout import tiled_layout
from tilewright.tiling import Input, Output, Pipeline, Tiler
from tilewright_gpu import Tuning
from tilewright_gpu.backend import KernelBackend

BLOCKS = ("bfloat8_b", "bfloat4_b", "bfloat2_b", "bfloat8_a", "bfloat4_a", "bfloat2_a")
SMALL = Tuning(threads=64, in_flight=64, groups=1)  # repeats and clusters also for small plans


def plans() -> Iterator[tuple[str, Plan]]:
    """Yield one plan of every kind of kernel, with and without ragged edges."""
    for rows, columns in ((64, 128), (45, 77)):
        size = f"{rows} x {columns}"
        for name in ("float32", "bfloat16", "uint8", "float64"):
            plain, turned = tw.row_major(rows, columns), tw.Layout((rows, columns), (1, rows))
            yield f"tilize {name} {size}", _plan(plain, name, tiled_layout((rows, columns)), name)
            yield f"untilize {name} {size}", _plan(tiled_layout((rows, columns)), name, plain, name)
            yield f"transpose {name} {size}", _plan(plain, name, turned, name)
        yield f"float32 to bfloat16, transposed {size}", _plan(plain, "float32", turned, "bfloat16")
        yield f"float16 to float8 {size}", _plan(plain, "float16", plain, "float8_e4m3")
        for name in BLOCKS:
            tiles = Placement(tiled_layout((rows, columns)), name, 1.5, tile_elements=1024)
            yield f"pack {name} {size}", plan_copy(Placement(plain, "float32"), tiles)
            yield f"unpack {name} {size}", plan_copy(tiles, Placement(plain, "float32"))
        tiles = Placement(tiled_layout((rows, columns)), "bfloat8_b", tile_elements=1024)
        yield f"pack columns {size}", plan_copy(Placement(turned, "bfloat16"), tiles)
    for shape in ((1024, 1056), (1000, 1031)):
        large = Placement(tiled_layout(shape), "bfloat8_b", 1.5, tile_elements=1024)
        yield f"pack {shape}, given its extents", plan_copy(Placement(tw.row_major(*shape), "float32"), large)
    yield (
        "permutation",
        _plan(tw.row_major(6, 10, 12, 20), "float32", tw.Layout((6, 10, 12, 20), (1, 6, 1200, 60)), "float32"),
    )
    swizzled = tw.compose(tw.Swizzle(3, 0, 3), tw.row_major(8, 64))
    yield "swizzle, by table", _plan(tw.row_major(8, 64), "int16", swizzled, "int16")


def _plan(before: Any, first: str, after: Any, second: str) -> Plan:
    return plan_copy(Placement(before, first), Placement(after, second, 3), crop=True, pad=True)


def valid_data(plan: Plan, rng: np.random.Generator) -> Any:
    """Return random bytes for the source of a plan: any bits of scalars, and blocks that were packed from numbers."""
    if isinstance(plan.source.format, ScalarFormat):
        return rng.integers(0, 256, plan.source.nbytes, dtype=np.uint8)
    shape = plan.source.extents
    plain = Placement(tw.row_major(*shape), "float32")
    numbers = rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 10, shape)
    packed = np.zeros(plan.source.nbytes, dtype=np.uint8)
    execute(
        plan_copy(plain, plan.source, crop=True, pad=True),
        numbers.astype(np.float32).reshape(-1),
        packed,
        engine="reference",
    )
    return packed


def check(name: str, plan: Plan, tuning: Tuning | None) -> bool:
    """Run one plan on the device, over poisoned memory, and say whether every byte is the reference engine's."""
    home, byte = load_engine("cuda").default_backend(), format_of("uint8")
    assert isinstance(home, KernelBackend)
    assert isinstance(byte, ScalarFormat)
    data = valid_data(plan, np.random.default_rng(len(name)))
    wanted, made = np.full((2, plan.target.nbytes), 0xA5, dtype=np.uint8)
    ends = [home.empty((place.nbytes,), byte) for place in (plan.source, plan.target)]
    home.upload(data, ends[0])
    home.upload(wanted, ends[1])
    home.run_plan(plan, *ends, tuning=tuning)
    home.download(ends[1], made)
    execute(plan, data, wanted, engine="reference")
    right = bool(np.array_equal(made, wanted))
    if not right:
        print(f"WRONG: {name}", flush=True)
    return right


def pipelines() -> Iterator[tuple[str, Any, Any]]:
    """Yield pipelines, and what is right: with halos, ragged edges, many buffers, narrow elements and shared sums."""
    rng = np.random.default_rng(5)
    for name in ("float32", "bfloat16", "uint8"):
        for scheme, depth in (("double", None), ("duplex", None), ("buffered", 4)):
            for shape in ((64, 128), (45, 77)):
                a = rng.integers(1, 9, shape).astype(format_of(name).dtype)
                b = np.zeros_like(a)
                reading, writing = Tiler(shape, (18, 34), overlap=2, augmentation=1), Tiler(shape, (16, 32))
                pipeline = Pipeline([Input(a, reading, 3)], [Output(b, writing)], scheme=scheme, depth=depth)
                kernel = pipeline.kernel("in0(i0, i1 + 1) + in0(i0 + 2, i1 + 1)", "cuda", threads=128)
                around = np.pad(a.astype(np.float32), 1, constant_values=3)
                kernel.run(groups=3)
                yield f"pipeline {name} {scheme} {shape}", b, (around[:-2, 1:-1] + around[2:, 1:-1]).astype(b.dtype)


def main() -> None:
    problem = load_engine("cuda").unavailable_reason()
    if problem:
        raise SystemExit(problem)
    importlib.import_module("cupy").cuda.set_allocator(None)
    found = [check(name, plan, tuning) for name, plan in plans() for tuning in (None, SMALL)]
    for name, made, wanted in pipelines():
        found.append(bool(np.array_equal(made, wanted)))
        if not found[-1]:
            print(f"WRONG: {name}", flush=True)
    print(f"{sum(found)} of {len(found)} plans and pipelines right")
    sys.exit(not all(found))


if __name__ == "__main__":
    main()

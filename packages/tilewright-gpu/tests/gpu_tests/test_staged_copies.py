# SPDX-License-Identifier: Apache-2.0
"""Transposes of odd extents and alignments, through boxes in shared memory: on OpenCL, as NumPy does them."""

import random

import numpy as np

from tilewright.copying import execute, placement_of, plan_copy
from tilewright.formats import format_of
from tilewright_gpu.codegen import generate_program

from .on_devices import needs_opencl

PAIRS = [
    ("uint8", "uint8"),
    ("int16", "int16"),
    ("float32", "float32"),
    ("float32", "bfloat16"),
    ("bfloat16", "float32"),
]
CASES = 24
POISON = 77


def odd_views(seed):
    """Return a transposed source and a target, both in the middle of their memory and not aligned to words."""
    choose = random.Random(seed)
    rank = choose.choice([2, 3, 4])
    extents = [choose.randrange(3, 70 if rank == 2 else 24) | 1 for _ in range(rank)]
    source_format, target_format = (format_of(name).dtype for name in choose.choice(PAIRS))
    start = choose.randrange(5)
    memory = np.random.default_rng(seed).integers(0, 100, int(np.prod(extents)) + start).astype(source_format)
    source = memory[start:].reshape(extents)
    if seed % 3 == 1:
        source = source[tuple(slice(None, None, choose.choice([1, -1])) for _ in extents)]
    if seed % 3 == 2:
        source = source[..., 1:-1]
    axes = choose.sample(range(rank), rank)
    view = source.transpose(axes)
    around = np.full(view.size + 2 * start, POISON).astype(target_format)
    return view, around, around[start : start + view.size].reshape(view.shape)


@needs_opencl
def test_odd_transposes_are_those_of_numpy():
    staged = 0
    for seed in range(CASES):
        source, around, target = odd_views(seed)
        plan = plan_copy(placement_of(source), placement_of(target))
        staged += any("boxes" in kernel.note for kernel in generate_program(plan, "opencl").kernels)
        execute(plan, source, target, engine="opencl")
        case = f"seed {seed}: {source.shape} {source.dtype} to {target.dtype}, strides {source.strides}"
        np.testing.assert_array_equal(target, source.astype(target.dtype), err_msg=case)
        outside = (around.size - target.size) // 2
        assert (around[:outside] == POISON).all(), case
        assert (around[around.size - outside :] == POISON).all(), case
    assert staged >= CASES // 4, "too few of these cases are staged"

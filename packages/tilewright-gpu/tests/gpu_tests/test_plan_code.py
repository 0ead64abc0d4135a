# SPDX-License-Identifier: Apache-2.0
"""The code of plans: every nest is in a kernel, what has no code is refused, and blocks are packed as on the host."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import examples
from tests.copying.models import fitting, ragged_plan
from tests.copying.test_plan_truth import ALL, cases, check_truth, memory_of, place_of, seeds

import tilewright as tw
from tilewright.copying import Placement, plan_copy
from tilewright.errors import FormatError
from tilewright.formats import BLOCK_FORMATS, BlockFormat, format_of
from tilewright.formats.scalars import E2M1
from tilewright.layout import Layout, row_major, tiled_layout, with_logical_shape
from tilewright_gpu.codegen import formats_without_code, generate_program

from .on_devices import KNOWN_BLOCKS, needs_opencl

PLAIN = Placement(tw.row_major(64, 64), "float32", 3)
TILES = Placement(tiled_layout((64, 64)), "bfloat16")


@pytest.mark.parametrize("dialect", ["opencl", "cuda"])
def test_code_is_the_text_of_the_kernels(dialect):
    text = plan_copy(PLAIN, TILES).code(dialect)
    assert "KERNEL(" in text
    assert "brain_code" in text, "the conversion is part of the kernel"
    assert ("__kernel" in text) == (dialect == "opencl")
    assert plan_copy(TILES, PLAIN).code(dialect) != text


def test_an_unknown_dialect_is_refused_by_name():
    with pytest.raises(tw.TransferError, match="unknown device engine 'fortran'; use one of opencl, cuda"):
        plan_copy(PLAIN, TILES).code("fortran")


def check_code(plan):
    """Every nest that does something is in a kernel, of the step that it belongs to; what has no code is refused."""
    if formats_without_code(plan):
        with pytest.raises(FormatError, match="is not supported on devices"):
            plan.code("cuda")
        return
    for dialect in ("cuda", "opencl"):
        program = generate_program(plan, dialect)
        names = re.findall(r"^KERNEL\(\d+\) (\w+)\(", plan.code(dialect), re.MULTILINE)
        assert names == [kernel.name for kernel in program.kernels]
        assert len(set(names)) == len(names)
        for number, stage in enumerate(plan.passes):
            busy = [nest for nest in stage.nests if nest.elements or nest.operation == "pack"]
            mine = [kernel for kernel in program.kernels if kernel.stage == number]
            gathered = [re.match(r"(\d+) kernels in one launch", kernel.note) for kernel in mine]
            assert sum(int(match[1]) if match else 1 for match in gathered) >= len(busy)


@given(case=cases(ALL, ALL), fill=st.integers(-5, 5))
@examples(50)
def test_every_nest_is_in_a_kernel(case, fill):
    (first, source, tile), (second, target, other) = case
    before = place_of(source, first, tile)
    check_code(ragged_plan(before, place_of(target, second, other, fitting(fill, before.format.value_format))))


@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_every_block_format_has_code(name):
    layout = with_logical_shape(row_major(12, 64), (11, 50))
    check_code(plan_copy(Placement(layout, "bfloat8_b", 0, 128), Placement(layout, name, 2, 128)))


@needs_opencl
@given(case=cases(KNOWN_BLOCKS, KNOWN_BLOCKS), fill=st.integers(-5, 5), seed=seeds)
@examples(2)
def test_generated_code_repacks_as_the_reference_does(case, fill, seed):
    (first, source, tile), (second, target, other) = case
    before, after = place_of(source, first, tile), place_of(target, second, other, fill)
    check_truth(ragged_plan(before, after), source, target, memory_of(before, source, seed), ["opencl"])


def awkward_values(dtype, seed):
    """Return a matrix of values in which every rule of a block format is met: ties, specials, zeros, any bits."""
    rng = np.random.default_rng(seed)
    shape = (64, 96)
    values = (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 8, shape))).astype(np.float32)
    if seed % 4 == 1:  # any bits
        values = rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32).view(np.float32)
    elif seed % 4 == 2:  # some specials
        specials = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 3.4e38, 1e-45, -1e-40], np.float32)
        values = np.where(rng.random(shape) < 0.02, rng.choice(specials, shape), values)
    elif seed % 4 == 3:  # many ties
        values = (rng.integers(-64, 64, shape) / rng.choice([1, 2, 4, 8, 16], shape)).astype(np.float32)
    with np.errstate(all="ignore"):
        return values.astype(format_of(dtype).dtype)


@needs_opencl
@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_devices_pack_and_unpack_every_format_as_the_reference(name):
    for seed, dtype in product(range(4), ("float32", "bfloat16", "float16")):
        values = awkward_values(dtype, seed)
        for label, part in (("tiles", values), ("columns", values.T), ("ragged", values[:50, :70])):
            case = f"{dtype}, {label}, seed {seed}"
            packed = tw.tilize(part, dtype=name, engine="reference")
            np.testing.assert_array_equal(tw.tilize(part, dtype=name, engine="opencl"), packed, err_msg=case)
            if seed % 4 == 1 and not name.endswith("_a"):  # whose exponents have five bits
                packed = np.random.default_rng(seed).integers(0, 256, packed.size).astype(np.uint8)
            for out in ("float32", "bfloat16"):
                made, wanted = (
                    tw.untilize(packed, part.shape, dtype=name, out_dtype=out, engine=engine)
                    for engine in ("opencl", "reference")
                )
                bits = np.uint32 if out == "float32" else np.uint16
                np.testing.assert_array_equal(made.view(bits), wanted.view(bits), err_msg=f"{case} to {out}")


def test_a_block_format_that_devices_do_not_know_is_refused_by_name():
    element = BlockFormat("my_blocks", 16, E2M1, format_of("mxfp4").scale)
    memory_layout = Layout(64)
    plan = plan_copy(Placement(memory_layout, "float32"), Placement(memory_layout, element, tile_elements=16))
    assert formats_without_code(plan) == ["my_blocks"]
    for dialect in ("opencl", "cuda"):
        with pytest.raises(FormatError, match=r"my_blocks is not supported on devices.*engine='reference'"):
            plan.code(dialect)

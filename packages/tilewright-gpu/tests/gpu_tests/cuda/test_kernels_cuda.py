# SPDX-License-Identifier: Apache-2.0
"""Pipelines as kernels on CUDA: the tests of OpenCL, and operands of torch that never leave the device."""

import numpy as np
import pytest

from tilewright.tiling import Input, Output, Pipeline, Tiler

from ..test_kernels import *  # noqa: F403


@pytest.fixture(scope="session")
def device():
    """The engine that kernels run on."""
    return "cuda"


@pytest.mark.parametrize(("scheme", "depth"), [("double", None), ("duplex", None), ("buffered", 4)])
@pytest.mark.parametrize("shape", [(1024, 2048), (1000, 999)])
def test_torch_tensors_are_computed_where_they_are(scheme, depth, shape):
    torch = pytest.importorskip("torch")
    a = torch.randn(shape, device="cuda")
    b = torch.full(shape, float("nan"), device="cuda")
    reading = Tiler(shape, (34, 66), overlap=2, augmentation=1)
    pipeline = Pipeline([Input(a, reading, "edge")], [Output(b, Tiler(shape, (32, 64)))], scheme=scheme, depth=depth)
    up, down, left, right = "in0(i0, i1 + 1)", "in0(i0 + 2, i1 + 1)", "in0(i0 + 1, i1)", "in0(i0 + 1, i1 + 2)"
    pipeline.kernel(f"({up} + {down}) + ({left} + {right})", "cuda").run()
    padded = torch.nn.functional.pad(a[None], (1, 1, 1, 1), mode="replicate")[0]
    wanted = (padded[:-2, 1:-1] + padded[2:, 1:-1]) + (padded[1:-1, :-2] + padded[1:-1, 2:])
    assert torch.equal(b, wanted)


def test_tiles_beyond_what_a_kernel_declares_are_asked_for():
    a = np.random.default_rng(3).standard_normal((300, 512)).astype(np.float32)
    b = np.full_like(a, np.nan)
    tiler = Tiler(a.shape, (64, 128))
    kernel = Pipeline([Input(a, tiler)], [Output(b, tiler)], scheme="buffered", depth=4).kernel("in0 * in0", "cuda")
    assert kernel.local_bytes > 48 << 10
    kernel.run()
    np.testing.assert_array_equal(b, a * a)

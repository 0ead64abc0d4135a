# SPDX-License-Identifier: Apache-2.0
"""Kernels whose sources and targets are the same storage: refused, unless each tile only meets itself."""

import numpy as np
import pytest

from tilewright.errors import TransferError
from tilewright.tiling import Input, Output, Pipeline, Tiler
from tilewright.tiling.endpoints import open_endpoint
from tilewright.tiling.stores import share_bytes

from .on_devices import OPENCL, needs_opencl


def test_a_kernel_does_not_read_what_another_group_wrote():
    a, tiler = np.arange(16.0), Tiler((16,), (4,))
    Pipeline([Input(a, tiler)], [Output(a, tiler)]).kernel("2 * in0", engine="opencl")
    with pytest.raises(TransferError, match="share memory"):
        Pipeline([Input(a[::-1], tiler)], [Output(a, tiler)]).kernel("2 * in0", engine="opencl")


@needs_opencl
def test_arrays_in_one_buffer_of_a_device():
    whole = pytest.importorskip("pyopencl.array").to_device(OPENCL.default_backend().queue, np.arange(24.0))
    tiler, halo = Tiler((12,), (4,)), Tiler((12,), (6,), 2, 1)
    assert share_bytes(open_endpoint(whole[:13]), open_endpoint(whole[12:]))
    assert not share_bytes(open_endpoint(whole[:12]), open_endpoint(whole[12:]))
    assert not share_bytes(open_endpoint(whole), open_endpoint(whole.copy()))
    with pytest.raises(TransferError, match="share memory"):
        Pipeline([Input(whole[:12], halo)], [Output(whole[:12], tiler)])
    with pytest.raises(TransferError, match="share memory"):
        Pipeline([Input(whole[:12], tiler)], [Output(whole[1:13], tiler)])
    Pipeline([Input(whole[:12], tiler)], [Output(whole[:12], tiler)]).kernel("2 * in0").run()
    assert whole.get().tolist() == [*range(0, 24, 2), *range(12, 24)]

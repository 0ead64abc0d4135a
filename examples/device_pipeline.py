# SPDX-License-Identifier: Apache-2.0
"""A blur as one kernel: tiles with a halo arrive in local memory while others are computed.

    python examples/device_pipeline.py
    python examples/device_pipeline.py cuda --source

The same pipeline runs on the host with a Python compute, and on a device (opencl, or cuda) with the compute in C. Both
results are compared. With --source the program is printed as well; that needs no device.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tilewright.copying import load_engine
from tilewright.tiling import Input, Output, Pipeline, Tiler

SHAPE, TILE = (500, 700), (32, 64)
BLUR = "0.25f * ((in0(i0, i1 + 1) + in0(i0 + 2, i1 + 1)) + (in0(i0 + 1, i1) + in0(i0 + 1, i1 + 2)))"


def blurred(tile: Any, out: Any) -> None:
    """Compute the same on the host: each element is the mean of its four neighbours."""
    up, down, left, right = tile[:-2, 1:-1], tile[2:, 1:-1], tile[1:-1, :-2], tile[1:-1, 2:]
    out[...] = np.float32(0.25) * ((up + down) + (left + right))


def main() -> None:
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    engine = named[0] if named else "opencl"
    image = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    here, there = np.zeros_like(image), np.zeros_like(image)
    halo = Tiler(SHAPE, (TILE[0] + 2, TILE[1] + 2), overlap=2, augmentation=1)

    def pipeline(target: Any) -> Pipeline:
        return Pipeline([Input(image, halo, fill="edge")], [Output(target, Tiler(SHAPE, TILE))], scheme="double")

    kernel = pipeline(there).kernel(BLUR, engine)
    print(kernel)
    if "--source" in sys.argv:
        print(kernel.source)
    missing = load_engine(engine).unavailable_reason()
    if missing:
        print(f"not run: {missing}")
        return
    report = kernel.run()
    pipeline(here).run(blurred)
    print(f"{report.tiles} tiles, {report.bytes_in} bytes in, {report.bytes_out} bytes out, {report.seconds:.3f} s")
    if not np.array_equal(here, there):
        raise AssertionError("the device and the host disagree")
    print(f"one kernel of {engine}: a blur over {SHAPE[0]} x {SHAPE[1]}, the same as on the host")


if __name__ == "__main__":
    main()

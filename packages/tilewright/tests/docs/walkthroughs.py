# SPDX-License-Identifier: Apache-2.0
"""The walkthroughs of docs/architecture.md, each run in a process of its own, where nothing is cached yet.

python -m tests.docs.walkthroughs NUMBER          # prints the calls that it makes, as JSON
"""

import json
import os
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import tilewright as tw
from tilewright.cli import program
from tilewright.files import write_safetensors
from tilewright.files.safetensors import write_sample_llama


def calls_of(work):
    """Return (file, function) of every call into the package, in the order in which they are first made."""
    homes = {package: str(Path(find_spec(package).origin).parent) for package in ("tilewright", "tilewright_gpu")}
    seen = {}

    def watch(frame, event, _):
        code = frame.f_code
        for package, home in homes.items():
            if event == "call" and code.co_filename.startswith(f"{home}{os.sep}"):
                name = getattr(code, "co_qualname", code.co_name)  # Python 3.10 knows only the last part
                seen.setdefault((f"src/{package}/{Path(code.co_filename).relative_to(home).as_posix()}", name))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)


def convert_one():
    values = np.random.default_rng(0).standard_normal((96, 64)).astype(np.float32)
    write_safetensors("one.safetensors", {"w": values})
    return lambda: CliRunner().invoke(program, ["convert", "one.safetensors", "out", "--dtype", "bfloat8_b"])


def prepare_model():
    write_sample_llama("Llama-3.2-1B")
    return lambda: CliRunner().invoke(program, ["prepare", "Llama-3.2-1B", "cache", "--for", "N300"])


def ask_where():
    spec = tw.TensorSpec((4, 60, 90), "bfloat8_b", "tile", memory=tw.block_sharded((8, 8)), chip="wormhole_n150")
    return lambda: spec.where(2, 33, 17)


def copy_tile(size):
    t, source = tw.TileTensor(np.zeros((4 * size, size), np.float32)), tw.TileTensor(np.ones((size, size), np.float32))
    return lambda: t.tile[size, size](1, 0).copy_from(source)


def stream_files():
    np.save("in.npy", np.ones((256, 256), np.float32))
    compute = lambda x, out: np.add(x, 1, out=out)  # noqa: E731
    return lambda: tw.stream("in.npy", "out.npy", compute, tile=(64, 64), scheme="double")


def tilize_on_cuda():
    import cupy

    values = cupy.ones((96, 64), cupy.float32)
    return lambda: tw.tilize(values, dtype="bfloat8_b")


def tilize_on_opencl():
    import pyopencl
    from pyopencl import array

    queue = pyopencl.CommandQueue(pyopencl.Context([pyopencl.get_platforms()[0].get_devices()[0]]))
    values = array.to_device(queue, np.ones((96, 64), np.float32))
    return lambda: tw.tilize(values, dtype="bfloat8_b")


WALKTHROUGHS = {
    "tilewright convert one.safetensors out --dtype bfloat8_b": convert_one,
    "tilewright prepare Llama-3.2-1B cache --for N300": prepare_model,
    "spec.where(2, 33, 17)": ask_where,
    "t.tile[32, 32](1, 0).copy_from(source)": lambda: copy_tile(32),
    "t.tile[1024, 1024](1, 0).copy_from(source)": lambda: copy_tile(1024),
    'tw.stream("in.npy", "out.npy", compute, tile=(64, 64), scheme="double")': stream_files,
    'tw.tilize(array_on_a_gpu, dtype="bfloat8_b")': tilize_on_cuda,
    'tw.tilize(array_of_pyopencl, dtype="bfloat8_b")': tilize_on_opencl,
}


if __name__ == "__main__":
    print(json.dumps(calls_of(list(WALKTHROUGHS.values())[int(sys.argv[1])]())))

# SPDX-License-Identifier: Apache-2.0
"""Devices that are missing, full or broken: a clear error, or with engine="auto" the host and exactly one note."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from tilewright_mojo.std.gpu.host import DeviceContext

import tilewright as tw
from tilewright.copying import copy
from tilewright.copying import engine as copy_engine
from tilewright.errors import DeviceError, TransferError
from tilewright.formats import BlockFormat, mxfp4
from tilewright.formats.scalars import E2M1
from tilewright_gpu import opencl

from .on_devices import OPENCL, needs_opencl

pytestmark = pytest.mark.slow

EVERY_DOOR = """
import sys
import numpy as np
{first}
import tilewright as tw
from tilewright_mojo.std.gpu.host import DeviceContext
from tilewright.tiling import Input, Output, Pipeline, Tiler
a = np.ones((4, 4), np.float32)
tiler = Tiler((4, 4), (2, 2))
requests = [
    lambda: tw.tilize(a, engine="{engine}"),
    lambda: DeviceContext("{engine}"),
    lambda: Pipeline([Input(a, tiler)], [Output(a.copy(), tiler)]).kernel("in0", "{engine}").run(),
]
for request in requests:
    try:
        request()
    except tw.DeviceError as problem:
        print(problem)
assert tw.tilize(a, engine="auto").size == 1024
"""


def told(engine, first="", **variables):
    """Return what every request to an engine says in a process of its own."""
    text = EVERY_DOOR.format(engine=engine, first=first)
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], env=environment, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("named", "package"), [("opencl", "pyopencl"), ("cuda", "cupy")])
def test_a_missing_package_is_named_with_what_installs_it(named, package):
    lines = told(named, first=f"sys.modules[{package!r}] = None")
    assert len(lines) == 3
    assert all(f"pip install 'tilewright[{named}]'" in line and "cannot run" in line for line in lines)


@needs_opencl
def test_a_driver_without_devices_is_told_apart_from_a_missing_package():
    lines = told("opencl", PYOPENCL_CTX="no such platform")
    assert len(lines) == 3
    assert all("OpenCL found no device" in line for line in lines)


@needs_opencl
def test_no_room_on_the_device_is_said_with_the_bytes():
    with pytest.raises(DeviceError, match=rf"cannot allocate {8 << 40} bytes .*free arrays"):
        DeviceContext("opencl").enqueue_create_buffer["float64"](1 << 40)


@pytest.fixture
def there():
    """An array on the device, and the notes forgotten."""
    if OPENCL.unavailable_reason():
        pytest.skip(OPENCL.unavailable_reason())
    import pyopencl.array as cl_array

    before = set(copy_engine._warned)
    copy_engine._warned.clear()
    host = np.random.default_rng(2).standard_normal((40, 50)).astype(np.float32)
    yield host, cl_array.to_device(OPENCL.default_backend().queue, host)
    copy_engine._warned.clear()
    copy_engine._warned.update(before)


def test_a_format_without_code_goes_through_the_host_with_one_note(there):
    host, array = there
    own = BlockFormat("my_blocks", 16, E2M1, mxfp4.scale)  # devices know the formats of the library
    with pytest.warns(RuntimeWarning, match="copying through the host: my_blocks is not supported on devices") as notes:
        found = [tw.tilize(array, dtype=own) for _ in range(3)]
    assert len(notes) == 1
    for each in found:
        np.testing.assert_array_equal(each.get(), tw.tilize(host, dtype=own, engine="reference"))
    with pytest.raises(TransferError, match="cannot run this plan: my_blocks is not supported on devices"):
        tw.tilize(array, dtype=own, engine="opencl")


def test_a_kernel_that_the_driver_cannot_compile_is_run_on_the_host_with_one_note(there, monkeypatch):
    host, array = there
    real = opencl.generate_program

    def broken(*arguments):
        program = real(*arguments)
        return type(program)(program.text + "\nthis is not C", program.kernels)

    monkeypatch.setattr(opencl, "generate_program", broken)
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    with pytest.warns(RuntimeWarning, match="copying through the host: .* could not compile the plan") as notes:
        found = [tw.tilize(array, pad_value=pad) for pad in (1, 2)]
    assert len(notes) == 1
    for pad, each in zip((1, 2), found, strict=True):
        np.testing.assert_array_equal(each.get(), tw.tilize(host, pad_value=pad, engine="reference"))
    with pytest.raises(DeviceError, match=r"could not compile the plan[\s\S]*use engine='native'"):
        tw.tilize(array, pad_value=3, engine="opencl")


def test_a_context_that_is_lost_is_an_error_and_not_a_wrong_result(there, monkeypatch):
    import pyopencl

    _, array = there

    def lost(*_, **__):
        raise pyopencl.RuntimeError("clEnqueue failed: OUT_OF_RESOURCES")

    monkeypatch.setattr(pyopencl, "enqueue_nd_range_kernel", lost)
    monkeypatch.setattr(pyopencl, "enqueue_copy", lost)
    with pytest.raises(DeviceError, match=r"could not run the plan.*OUT_OF_RESOURCES"):
        tw.tilize(array)
    with pytest.raises(DeviceError, match=r"could not copy memory to the host: .*restart the process"):
        OPENCL.default_backend().download(tw.copying.engine.as_operand(array), np.zeros((40, 50), np.float32))


def test_arrays_of_a_device_are_not_moved_by_another_engine(there):
    _, array = there
    for engine in ("native", "reference", "cuda"):
        with pytest.raises(
            TransferError, match=f"opencl memory cannot be copied by engine='{engine}'; use engine='auto'"
        ):
            tw.tilize(array, engine=engine)


def test_a_host_array_never_asks_for_a_device(monkeypatch):
    def asked():
        raise AssertionError("a device was asked for")

    monkeypatch.setattr(opencl, "_find_queue", asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tw.tilize(np.ones((3, 3)), engine="auto").size == 1024


def test_memory_that_is_shared_or_too_small_is_refused(there):
    _, array = there
    with pytest.raises(TransferError, match="share memory"):
        copy(array[:20], array[10:30])
    with pytest.raises(TransferError, match="the target has 4 bytes, but layout"):
        tw.copying.execute(
            tw.plan_copy(tw.Placement(tw.Layout(8), "int8"), tw.Placement(tw.Layout(8), "int8")),
            np.zeros(8, np.int8),
            array.reshape(-1)[:1],
        )

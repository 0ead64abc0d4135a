# SPDX-License-Identifier: Apache-2.0
"""Outputs that are written past the page cache, and put together in buffers: the same bytes as otherwise."""

import errno
import hashlib
import os
import tempfile
import threading
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tests.cases import examples
from tilewright.conversion import run, source
from tilewright.conversion.run import OutputBuffers
from tilewright.conversion.source import BLOCK_BYTES, OutputFile
from tilewright.files.safetensors import write_safetensors


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 3 * BLOCK_BYTES), st.integers(0, 5 * BLOCK_BYTES)), min_size=1, max_size=6))
def test_blocks_and_their_edges_are_written(writes):
    buffers = OutputBuffers(8 * BLOCK_BYTES)
    expected = np.zeros(0, np.uint8)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(source, "_MIN_DIRECT_BYTES", BLOCK_BYTES),
        Path(folder, "out").open("w+b", buffering=0) as opened,
    ):
        path = Path(folder, "out")
        file = OutputFile(opened.fileno(), path)
        for number, (offset, size) in enumerate(writes, 1):
            data = buffers.take(offset, size)
            data[:] = number
            file.write(offset, data)
            expected = np.pad(expected, (0, max(0, offset + size - len(expected)))) if size else expected
            expected[offset : offset + size] = number
            buffers.release(data)
        file.close()
        assert path.read_bytes() == expected.tobytes()


def test_a_file_system_that_refuses_is_written_through_the_cache(tmp_path, monkeypatch):
    usual, refused = os.pwrite, []

    def refuse_direct(handle, view, offset):
        if handle != opened.fileno():
            refused.append(len(view))
            raise OSError(errno.EINVAL, "Invalid argument")
        return usual(handle, view, offset)

    monkeypatch.setattr(source.os, "pwrite", refuse_direct)
    monkeypatch.setattr(source, "_open_direct", os.dup)
    path = tmp_path / "out"
    data = OutputBuffers(1 << 19).take(0, 1 << 19)
    data[:] = 7
    with path.open("w+b", buffering=0) as opened:
        file = OutputFile(opened.fileno(), path)
        file.write(0, data)
        file.close()
    assert refused == [1 << 19]
    assert path.read_bytes() == data.tobytes()


@pytest.mark.parametrize("limit", [1 << 16, 300_000, 1 << 20, 24 << 20])
@pytest.mark.parametrize("jobs", [1, 3])
def test_transposed_outputs_are_put_together(tmp_path, monkeypatch, limit, jobs):
    monkeypatch.setattr(run, "_MAX_BUFFER_BYTES", limit)
    monkeypatch.setattr(run, "_MAX_SLAB_BYTES", 1 << 20)
    generator = np.random.default_rng(3)
    arrays = {name: generator.standard_normal((1100, 610), np.float32) for name in "abc"}
    write_safetensors(tmp_path / "m.safetensors", arrays)
    report = tw.convert(
        tmp_path / "m.safetensors", tmp_path / "out", dtype="bfloat8_b", transpose=True, memory=256 << 20, jobs=jobs
    )
    assert report.complete
    spec = tw.TensorSpec((610, 1100), "bfloat8_b")
    for name, array in arrays.items():
        held = tw.read_tensorbin(Path(tmp_path, "out", f"{name}.tensorbin"))
        np.testing.assert_array_equal(np.asarray(held.pages()), tw.to_bytes(array.T, spec))
    assert tw.verify(tmp_path / "out", tmp_path)


def dirty_bytes(size):
    """Return memory as it is after use, at the start of a block."""
    memory = np.full(size + BLOCK_BYTES, 0xA5, np.uint8)
    start = -memory.ctypes.data % BLOCK_BYTES
    return memory[start : start + size]


@st.composite
def assembled(draw):
    """Draw the sizes of two tensors that are joined, transposed, padded and cut for a mesh; a dtype; and limits."""
    devices = draw(st.sampled_from([1, 2, 4]))
    rows, more = (draw(st.one_of(st.integers(1, 300), st.sampled_from([32, 64, 256]))) for _ in range(2))
    columns = draw(st.integers(1, 14)) * 64
    padded = (rows + more + draw(st.integers(0, 70)) + devices - 1) // devices * devices
    cut = draw(st.sampled_from([0, 1]))
    dtype = draw(st.sampled_from(["bfloat8_b", "bfloat4_b", "bfloat16", "float32"]))
    limits = draw(st.integers(1 << 16, 300_000)), draw(st.integers(20_000, 300_000))
    return (rows, more, columns), padded, devices, cut, dtype, limits


@examples(60)
@given(assembled())
def test_any_assembly_has_the_bytes_of_its_values(drawn):
    (rows, more, columns), padded, devices, cut, dtype, (slab, strip) = drawn
    generator = np.random.default_rng(rows * 1000 + more)
    a, b = (generator.standard_normal((n, columns), np.float32) for n in (rows, more))
    value = f"pad(transpose(join(tensor('a'), tensor('b'))), {padded})"
    rules = {"out": {"value": value, "dtype": dtype, "mesh": [1, devices], "cut": [None, cut]}}
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(run, "_block_aligned", dirty_bytes),
        mock.patch.object(run, "_MAX_SLAB_BYTES", slab),
        mock.patch.object(run, "_MAX_BUFFER_BYTES", strip),
    ):
        write_safetensors(Path(folder, "m.safetensors"), {"a": a, "b": b})
        assert tw.convert(Path(folder, "m.safetensors"), Path(folder, "out"), rules=rules, jobs=1).complete
        held = tw.read_tensorbin(Path(folder, "out", "out.tensorbin"))
        expected = np.pad(np.concatenate([a, b]).T, ((0, 0), (0, padded - rows - more)))
        for device, part in enumerate(np.split(expected, devices, axis=cut)):
            spec = tw.TensorSpec(part.shape, dtype, "tile")
            np.testing.assert_array_equal(held.shards[0, device], tw.to_bytes(np.ascontiguousarray(part), spec))
        assert tw.verify(Path(folder, "out"))


def test_a_range_is_hashed_while_others_are_written(tmp_path: Path) -> None:
    # tensors of a single output file: one is hashed while another thread, or another process, writes the next
    size = 12 << 20
    path = tmp_path / "payload"
    path.write_bytes(bytes(size))
    stop, written = threading.Event(), 0

    def write_behind() -> None:
        nonlocal written
        with path.open("r+b", buffering=0) as file:
            while not stop.is_set():
                file.seek(size)
                written += file.write(b"x")
                os.utime(path, ns=(written, written))  # coarse clocks would hide the change

    writer = threading.Thread(target=write_behind)
    writer.start()
    try:
        while not written:
            pass
        assert source.hash_range(path, 1, size) == hashlib.sha256(bytes(size - 1)).hexdigest()
    finally:
        stop.set()
        writer.join()


def test_a_range_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "payload"
    path.write_bytes(bytes(10))
    with pytest.raises(tw.FileFormatError, match="ends at byte 10, but 3 more bytes were expected"):
        source.hash_range(path, 4, 13)

# SPDX-License-Identifier: Apache-2.0
"""Allocator traces, memory images and errors of the real system, on our simulated chips."""

import ml_dtypes
import numpy as np
import pytest

from tilewright import MemoryConfigError, OutOfMemory
from tilewright.formats import BlockFormat
from tilewright.memory import (
    Allocator,
    Device,
    MemoryConfig,
    ShardSpec,
    TensorSpec,
    height_sharded,
    interleaved,
    to_bytes,
    width_sharded,
)

from .golden import CHIPS, arrays, buffer_spec, recorded

IMAGED = [name for name in CHIPS if name.endswith("SD")]


@pytest.mark.parametrize("name", CHIPS)
def test_allocator_sequences(name):
    sequences = recorded(name)["allocator_sequences"]
    assert len(sequences) == 3
    for sequence in sequences:
        allocator, live = Allocator(CHIPS[name]), {}
        for step in sequence["ops"]:
            if step["op"] == "free":
                allocator.free(live.pop(step["id"]))
                continue
            live[step["id"]] = allocator.allocate_bytes(step["size_per_bank"], step["buf"])
            assert live[step["id"]].address == step["address"], step
        for memory, end in sequence["end"].items():
            view = allocator.memory_view(memory)
            assert (view.allocated, view.free, view.largest_free) == (
                end["allocated"],
                end["free"],
                end["largest_free"],
            )


@pytest.mark.parametrize("name", CHIPS)
def test_buffers_are_allocated_where_they_were(name):
    for case in recorded(name)["buffers"]:
        spec = buffer_spec(case, CHIPS[name])
        assert Allocator(CHIPS[name]).allocate(spec).address == case["address"] == spec.address_on_empty_chip


@pytest.mark.parametrize("name", IMAGED)
def test_memory_images(name):
    data, cases = arrays(name), [case for case in recorded(name)["buffers"] if case.get("has_memory_image")]
    assert cases
    for case in cases:
        spec, key = buffer_spec(case, CHIPS[name]), f"b{case['id']}"
        host, blob = data[f"{key}_host_bytes"], data[f"{key}_blob"]
        device = Device(CHIPS[name])
        tensor = device.allocate(spec)
        before = device.read(tensor)
        assert not before.any()
        device.write(tensor, host)
        assert np.array_equal(device.read(tensor), host)
        for is_dram, x, y, address, size, at in data[f"{key}_writes"].tolist():
            kind, place = ("dram", x) if is_dram else ("l1", (x, y))
            assert np.array_equal(device.read_bytes(place, address, size, kind), blob[at : at + size]), case
        assert data[f"{key}_writes"][:, 4].sum() == spec.nbytes  # and nothing else was written


def as_given(values, spec):
    """Return the values as ttnn packs them: to a block format in shards it goes through bfloat16."""
    if isinstance(spec.dtype, BlockFormat) and spec.memory.is_sharded:
        return values.astype(ml_dtypes.bfloat16).astype(np.float32)
    return values


@pytest.mark.parametrize("name", IMAGED)
def test_arrays_become_the_recorded_bytes(name):
    data = arrays(name)
    for case in recorded(name)["buffers"]:
        if not case.get("has_memory_image"):
            continue
        spec, key = buffer_spec(case, CHIPS[name]), f"b{case['id']}"
        values = as_given(data[f"{key}_in"].reshape(case["shape"]), spec)
        if case["dtype"] == "bfloat16" and values.dtype == np.uint16:
            values = values.view(ml_dtypes.bfloat16)
        assert np.array_equal(to_bytes(values, spec), data[f"{key}_host_bytes"]), case
        device = Device(CHIPS[name])
        tensor = device.put(values, spec)
        assert np.array_equal(device.read(tensor), data[f"{key}_host_bytes"])


@pytest.mark.parametrize("name", CHIPS)
def test_errors_by_condition(name):
    chip = CHIPS[name]
    recorded_names = {case["name"]: case["ok"] for case in recorded(name)["errors"]}
    assert len(recorded_names) == 6
    assert [case for case, ok in recorded_names.items() if ok] == ["RM interleaved host (5,7) f32 -> WIDTH shard (5,2)"]
    banks = chip.banks("l1")
    with pytest.raises(OutOfMemory, match=f"536870912 bytes of L1 over {banks} banks"):
        Allocator(chip).allocate(TensorSpec((1, 1, 16384, 16384), "bfloat16", "tile", memory="l1", chip=chip))
    shards = height_sharded((1, 1), (2048, 1024))
    with pytest.raises(OutOfMemory, match="4194304 bytes of L1 over 1 bank need 4194304 bytes"):
        Allocator(chip).allocate(TensorSpec((2048, 1024), "bfloat16", "tile", memory=shards, chip=chip))
    down = chip.compute_grid.y
    off = height_sharded([((0, 0), (0, down))], (32, 32))
    with pytest.raises(MemoryConfigError, match=rf"core \(0, {down}\) has no L1 bank"):
        Allocator(chip).allocate(TensorSpec((32 * (down + 1), 32), "bfloat16", "tile", memory=off, chip=chip))
    with pytest.raises(MemoryConfigError, match="shard height 16 is not a multiple of the tile height 32; use 32"):
        TensorSpec((16, 64), "bfloat16", "tile", memory=height_sharded((1, 1), (16, 64)), chip=chip)
    below = MemoryConfig("height_sharded", "dram", ShardSpec((1, 2), (32, 32)))
    with pytest.raises(MemoryConfigError, match=r"core \(0, 1\) is not a DRAM bank"):
        Allocator(chip).allocate(TensorSpec((64, 32), "bfloat16", "tile", memory=below, chip=chip))
    # what ttnn accepts on a mock device only; a host tensor in the sharded form is what makes it right
    wide = TensorSpec((5, 7), "float32", memory=width_sharded((4, 1), (5, 2)), chip=chip)
    assert wide.padded_shape == (5, 8)
    assert wide.nbytes != TensorSpec((5, 7), "float32", memory=interleaved(), chip=chip).nbytes

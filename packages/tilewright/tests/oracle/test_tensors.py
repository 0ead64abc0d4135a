# SPDX-License-Identifier: Apache-2.0
"""Bytes of tensors, operations on the host and files, side by side with the real ttnn."""

import numpy as np
import pytest
import ttnn as theirs
from hypothesis import given
from hypothesis import strategies as st

import tilewright.ttnn as ours
from tilewright import MemoryConfigError, OutOfMemory

from .questions import BLOCKS, SCALARS, TILES, both, described, memories, raw, shapes, values_for


@st.composite
def tensors(draw, dtypes=SCALARS + BLOCKS):
    """Return a question for a tensor: shape, type, layout, tile and pad value."""
    shape = draw(shapes)
    dtype = draw(st.sampled_from(dtypes))
    tiled = dtype in BLOCKS or draw(st.booleans())
    size = draw(st.sampled_from(TILES)) if tiled else (32, 32)
    transposed = tiled and size[0] >= 16 and draw(st.booleans())
    pad = draw(st.sampled_from([None, 0.0, 1.0, 3.0]))
    values = values_for(shape, draw(st.integers(0, 2**31)), dtype)

    def ask(d, memory=None):
        return d.Tensor(
            values,
            data_type=getattr(d, dtype),
            layout=d.TILE_LAYOUT if tiled else d.ROW_MAJOR_LAYOUT,
            tile=d.Tile(size, transposed) if tiled else None,
            pad_value=pad,
            mem_config=None if memory is None else memory(d),
        )

    ask.shape, ask.dtype, ask.tiled, ask.values, ask.unit = shape, dtype, tiled, values, size if tiled else (1, 1)
    return ask


def alike(mine, real):
    assert list(mine.shape) == list(real.shape)
    assert list(mine.padded_shape) == list(real.padded_shape)
    assert (mine.dtype.name, mine.layout.name) == (real.dtype.name, real.layout.name)
    assert described(mine.memory_config()) == described(real.memory_config())
    np.testing.assert_array_equal(raw(mine), raw(real))


@given(tensors())
def test_bytes(ask):
    mine, real = both(ask)
    alike(mine, real)
    assert repr(mine.shape) == repr(real.shape)
    assert (mine.volume(), mine.logical_volume()) == (real.volume(), real.logical_volume())
    if ask.dtype != "bfloat16":  # which the real one gives as an object
        np.testing.assert_array_equal(mine.to_numpy(), real.to_numpy())


@given(tensors(), st.sampled_from(SCALARS + BLOCKS))
def test_typecast(ask, dtype):
    if not np.isfinite(ask.values).all() or (dtype not in ("float32", "bfloat16", *BLOCKS) and ask.values.min() < 0):
        return  # outside the range of integers the real one depends on the position
    if dtype in BLOCKS and not ask.tiled:
        return
    if ask.dtype in (*BLOCKS, "float32", "bfloat16") and dtype not in (*BLOCKS, "float32", "bfloat16"):
        return
    mine, real = both(lambda d: d.typecast(ask(d), getattr(d, dtype)))
    alike(mine, real)


@given(tensors(SCALARS), st.data())
def test_host_operations(tmp_path_factory, ask, data):
    folder = tmp_path_factory.mktemp("padded")
    value = data.draw(st.sampled_from([0.0, 2.0]))
    alike(*both(lambda d: d.to_layout(ask(d), d.TILE_LAYOUT, pad_value=value) if not ask.tiled else ask(d)))
    if ask.tiled:
        return
    alike(*both(lambda d: d.to_layout(d.to_layout(ask(d), d.TILE_LAYOUT), d.ROW_MAJOR_LAYOUT)))
    if len(ask.shape) < 2:
        return  # the real one counts rows
    more = [n + data.draw(st.integers(0, 5)) for n in ask.shape]
    start = [data.draw(st.integers(0, m - n)) for m, n in zip(more, ask.shape, strict=True)]
    alike(*both(lambda d: ask(d).pad(more, start, value)))
    alike(*both(lambda d: ask(d).pad_to_tile(value)))
    padded = ask(theirs).pad(more, [0] * len(more), value)
    theirs.dump_tensor(str(folder / "theirs.tensorbin"), padded)
    mine = ours.load_tensor(folder / "theirs.tensorbin")
    alike(mine, padded)
    ours.dump_tensor(folder / "ours.tensorbin", mine)
    alike(mine, theirs.load_tensor(str(folder / "ours.tensorbin")))
    begin = [data.draw(st.integers(0, n - 1)) for n in ask.shape]
    end = [data.draw(st.integers(b + 1, n)) for b, n in zip(begin, ask.shape, strict=True)]
    alike(*both(lambda d: ask(d).unpad(begin, end)))


@given(tensors(), st.data())
def test_files_cross_over(tmp_path_factory, ask, data):
    folder = tmp_path_factory.mktemp("files")
    # a sharded bfloat16 or block float goes through torch, which need not be here
    plain = ask.dtype in ("bfloat16", *BLOCKS)
    memory = None if plain else data.draw(memories(ask.shape, ask.unit))
    mine, real = both(lambda d: ask(d, memory))
    assert (mine is None) == (real is None)
    if mine is None:
        return
    theirs.dump_tensor(str(folder / "theirs.tensorbin"), real)
    alike(ours.load_tensor(folder / "theirs.tensorbin"), real)
    if mine.native.spec.violations():  # theirs refuses once the tensor goes to a device, ours before it is in a file
        with pytest.raises((MemoryConfigError, OutOfMemory)):
            ours.dump_tensor(folder / "ours.tensorbin", mine)
        return
    ours.dump_tensor(folder / "ours.tensorbin", mine)
    alike(mine, theirs.load_tensor(str(folder / "ours.tensorbin")))
    assert ours.load_tensor(folder / "theirs.tensorbin").spec == ours.load_tensor(folder / "ours.tensorbin").spec


@given(st.lists(st.integers(1, 3), min_size=2, max_size=2), tensors())
def test_meshes_cross_over(tmp_path_factory, mesh, ask):
    from tilewright.files import Tensorbin, Topology, read_tensorbin, write_tensorbin

    path = str(tmp_path_factory.mktemp("mesh") / "x.tensorbin")
    count = mesh[0] * mesh[1]
    real = theirs.from_host_shards([ask(theirs) for _ in range(count)], theirs.MeshShape(*mesh))
    theirs.dump_tensor(path, real)
    stored = read_tensorbin(path)
    assert stored.mesh_shape == tuple(mesh)
    for part in stored.shards.values():
        np.testing.assert_array_equal(part, raw(ask(ours)))
    devices = tuple((i, j) for i in range(mesh[0]) for j in range(mesh[1]))
    parts = {at: np.array(stored.pages(at)) for at in devices}
    write_tensorbin(path, Tensorbin(stored.spec, parts, mesh, Topology((count,), (0,), devices)))
    again = theirs.load_tensor(path)
    for device in theirs.get_device_tensors(again):
        np.testing.assert_array_equal(raw(device), raw(ask(ours)))

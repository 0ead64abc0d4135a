# SPDX-License-Identifier: Apache-2.0
"""The same question in both dialects, and random questions that the real one survives."""

import contextlib

import numpy as np
import ttnn as theirs
from hypothesis import strategies as st

import tilewright.ttnn as ours
from tilewright import TilewrightError

SCALARS = ("bfloat16", "float32", "uint32", "uint8", "uint16", "int32", "int8")
BLOCKS = ("bfloat8_b", "bfloat4_b")
TILES = [(h, w) for h in (32, 16, 8, 4, 2, 1) for w in (32, 16)]
KINDS = ("HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED")


def both(ask):
    """Return what two dialects answer to a question, None where one refuses."""
    answers = []
    for dialect, refusals in ((ours, (TilewrightError,)), (theirs, (RuntimeError, ValueError, AttributeError))):
        answer = None
        with contextlib.suppress(*refusals):
            answer = ask(dialect)
        answers.append(answer)
    return answers


def raw(tensor):
    """Return the bytes of a tensor of either dialect."""
    if isinstance(tensor, ours.Tensor):
        return np.frombuffer(tensor.native.raw, np.uint8)
    return np.from_dlpack(tensor.host_buffer().get_shard(theirs.MeshCoordinate(0, 0))).copy()


def cores(dialect, ranges):
    corner = dialect.CoreCoord
    return dialect.CoreRangeSet([dialect.CoreRange(corner(a, b), corner(c, d)) for a, b, c, d in ranges])


def ranges_of(grid):
    return [[part.start.x, part.start.y, part.end.x, part.end.y] for part in grid.ranges()]


def described(config):
    """Return a memory config of either dialect as plain values."""
    matrix, general = config.shard_spec, config.nd_shard_spec
    return {
        "layout": config.memory_layout.name,
        "buffer": config.buffer_type.name,
        "matrix": matrix and (ranges_of(matrix.grid), list(matrix.shape), matrix.orientation.name),
        "general": general
        and (
            list(general.shard_shape),
            ranges_of(general.grid),
            general.orientation.name,
            general.shard_distribution_strategy.name,
        ),
    }


@st.composite
def range_lists(draw, most=3):
    """Return one to three ranges that do not overlap."""
    ranges = []
    for _ in range(draw(st.integers(1, most))):
        a, b = draw(st.integers(0, 5)), draw(st.integers(0, 5))
        new = [a, b, draw(st.integers(a, min(7, a + 3))), draw(st.integers(b, min(7, b + 3)))]
        if all(new[2] < o[0] or o[2] < new[0] or new[3] < o[1] or o[3] < new[1] for o in ranges):
            ranges.append(new)
    return ranges


@st.composite
def memories(draw, shape, unit):
    """Return a question for a memory config: interleaved, or shards of any kind, legal or not."""
    buffer = draw(st.sampled_from(["L1", "DRAM"]))
    kind = draw(st.sampled_from(["INTERLEAVED", *KINDS, "ND", "ND"]))
    orientation = draw(st.sampled_from(["ROW_MAJOR", "COL_MAJOR"]))
    grid = draw(range_lists())
    strategy = draw(st.sampled_from(["ROUND_ROBIN_1D", "GRID_2D", "CONTIGUOUS_1D"]))
    if kind == "INTERLEAVED":
        return lambda d: d.MemoryConfig(d.TensorMemoryLayout.INTERLEAVED, getattr(d.BufferType, buffer))

    def extent(n, step):
        return draw(st.integers(1, max(1, -(-n // step) + 1))) * step

    rows = int(np.prod(shape[:-1])) if len(shape) > 1 else 1
    columns = shape[-1] if shape else 1
    padded = (-(-rows // unit[0]) * unit[0], -(-columns // unit[1]) * unit[1])
    if kind == "ND":
        rank = draw(st.integers(1, max(1, len(shape))))
        units = ([1] * rank + list(unit))[-rank:]
        shard = [extent(n, step) for n, step in zip(([1] * rank + list(shape))[-rank:], units, strict=True)]

        def general(d):
            spec = d.NdShardSpec(
                d.Shape(shard),
                cores(d, grid),
                getattr(d.ShardOrientation, orientation),
                getattr(d.ShardDistributionStrategy, strategy),
            )
            return d.MemoryConfig(getattr(d.BufferType, buffer), spec)

        return general
    height = padded[0] if kind == "WIDTH_SHARDED" else extent(rows, unit[0])
    width = padded[1] if kind == "HEIGHT_SHARDED" else extent(columns, unit[1])

    def matrix(d):
        spec = d.ShardSpec(cores(d, grid), [height, width], getattr(d.ShardOrientation, orientation))
        return d.MemoryConfig(getattr(d.TensorMemoryLayout, kind), getattr(d.BufferType, buffer), spec)

    return matrix


shapes = st.lists(st.integers(1, 3), max_size=2).flatmap(
    lambda outer: st.lists(st.integers(1, 70), min_size=1, max_size=2).map(lambda inner: outer + inner)
)


def values_for(shape, seed, dtype):
    """Return numbers that every type can take, with a few that are hard for floats."""
    generator = np.random.default_rng(seed)
    if dtype in ("bfloat16", "float32", *BLOCKS):
        values = generator.standard_normal(shape) * 2.0 ** generator.integers(-12, 12, shape)
        special = generator.random(shape)
        values[special < 0.02] = 0.0
        values[special > 0.995] = np.inf
        return values.astype(np.float32)
    return generator.integers(0, 100, shape).astype(np.float32)

# SPDX-License-Identifier: Apache-2.0
"""One scene of every kind, for tests that hold for all of them."""

from functools import cache

import numpy as np

import tilewright as tw
from tilewright import addr, bank, views
from tilewright.copying import Placement, plan_copy
from tilewright.layout import tiled_layout
from tilewright.notation import parse_sharding
from tilewright.tiling import Schedule
from tilewright.tiling.schedule import TraceSpan as Happened

TILED = tiled_layout((20, 28), (8, 16), (4, 8))


def noisy(rows: int, columns: int) -> np.ndarray:
    values = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    values[3, 20] = 1000.0
    return values


@cache
def scenes() -> dict[str, views.Scene]:
    """Return the scenes by name, built once."""
    return build_scenes()


def build_scenes() -> dict[str, views.Scene]:
    """Return the scenes by name."""
    return {
        "row-major": views.scene_of(tw.row_major(4, 8)),
        "one mode": views.scene_of(tw.Layout(24, 3)),
        "three modes": views.scene_of(tw.row_major(2, 3, 4)),
        "nested": views.scene_of(tw.blocked_product(tw.row_major(4, 4), tw.row_major(2, 3))),
        "broadcast": views.scene_of(tw.Layout((4, 8), (0, 1))),
        "negative": views.scene_of(tw.Layout((4, 8), (8, -1))),
        "tiled": views.scene_of(TILED),
        "named axes": views.scene_of(tw.compose(tw.Layout((12, 100), (1 @ bank, 2048 @ addr)), tw.row_major(4, 5))),
        "inverse": views.scene_of(tw.layout.InverseLayout(tw.Layout((3, 4), (5, 2)))),
        "mixed axes": views.scene_of(tw.Layout((3, 4), (1 @ bank, 1 @ bank + 5))),
        "no modes": views.scene_of(tw.Layout(())),
        "a prime": views.scene_of(tw.Layout(1009)),
        "deep": views.scene_of(tw.Layout(((2, (2, 2)), ((2, 2), 2)))),
        "five modes": views.scene_of(tw.row_major(2, 2, 2, 2, 3)),
        "large composition": views.scene_of(
            tw.compose(tw.Layout((12, 10**9), (1 @ bank, 2048 @ addr)), tw.row_major(100_003, 70_001))
        ),
        "replicated": views.scene_of(tw.replicate(tw.row_major(2, 4), 2, 1 @ bank)),
        "huge": views.scene_of(tiled_layout((3000, 4000))),
        "swizzled": views.scene_of(tw.compose(tw.Swizzle(3, 0, 3), tw.row_major(8, 8)), banks=8),
        "threads and values": views.thread_value_scene(tw.Layout(((4, 8), (2, 2)), ((32, 1), (16, 8))), (16, 8)),
        "distributed": views.distribute_scene(tw.row_major(8, 32), tw.row_major(4, 8), vector=(1, 4)),
        "ragged tensor": views.scene_of(tw.TileTensor(np.arange(48), tw.row_major(6, 8)).tile[4, 4](1, 1)),
        "vectors": views.scene_of(tw.TileTensor(np.arange(48), tw.row_major(6, 8)).vectorize[1, 4]()),
        "blocks": views.block_scene(noisy(32, 64), "bfloat8_b"),
        "difference": views.difference_scene(noisy(30, 40), noisy(30, 40) + np.eye(30, 40)),
        "does not fit": views.scene_of(spec((16384, 8192), "float32", tw.height_sharded((2, 1)))),
        "plan": views.scene_of(
            plan_copy(
                Placement(tw.row_major(7, 10), "float32"), Placement(tiled_layout((7, 10), (4, 4), (2, 2)), "bfloat16")
            )
        ),
        "large plan": views.scene_of(
            plan_copy(Placement(tw.row_major(700, 1000), "float32"), Placement(tiled_layout((700, 1000)), "bfloat16"))
        ),
        "tracks": views.Scene("tracks", (tracks(),)),
        "interleaved": views.scene_of(spec((100, 150), "bfloat16"), at=(70, 118)),
        "block sharded": views.scene_of(
            spec((1, 4, 60, 90), "bfloat8_b", memory=tw.block_sharded((8, 8))), at=(0, 2, 33, 17)
        ),
        "height sharded": views.scene_of(spec((256, 128), "bfloat16", memory=tw.height_sharded((4, 2)))),
        "rows": views.scene_of(tw.TensorSpec((96, 64), "bfloat16", chip="wormhole_n150")),
        "many pages": views.scene_of(spec((4096, 14336), "bfloat8_b")),
        "L1": views.scene_of(allocator()),
        "each bank of L1": views.scene_of(allocator(), each=True, whole=True),
        "empty DRAM": views.memory_scene(allocator(), buffer_type="dram"),
        "tiler": views.scene_of(tw.Tiler((20, 30), (8, 10), overlap=2, augmentation=1), tile=4),
        "large tiler": views.scene_of(tw.Tiler((2000, 3000), (512, 512), overlap=32)),
        "tiler of a line": views.scene_of(tw.Tiler((40,), (12,), overlap=3)),
        "sharding": views.scene_of(parse_sharding("{devices=[2,1,2]3,1,2,0 last_tile_dim_replicate}"), shape=(5, 4)),
        "schedule": views.scene_of(Schedule("double", 9), times=(1, 1.5, 1)),
        "trace": views.scene_of(
            tw.tiling.Trace([Happened("import", 0, 0, 0, 9000), Happened("compute", 0, 0, 4000, 20_000)])
        ),
    }


def spec(shape: tuple[int, ...], dtype: str, memory: object = "dram") -> tw.TensorSpec:
    return tw.TensorSpec(shape, dtype, "tile", memory=memory, chip="wormhole_n150")


def allocator() -> tw.Allocator:
    """Return an allocator with three tensors and a hole."""
    found = tw.Allocator("wormhole_n150")
    found.allocate(spec((512, 512), "bfloat16", "l1"))
    hole = found.allocate(spec((512, 512), "bfloat16", "l1"))
    found.allocate(spec((2048, 512), "bfloat16", tw.height_sharded((4, 4))))
    found.allocate(spec((1024, 1024), "bfloat8_b", tw.block_sharded((8, 8))))
    found.free(hole)
    return found


def tracks() -> views.Tracks:
    spans = (
        views.Span(0, 0, 4096, "weights", "weights", note="weights: 0 to 4096", link="w"),
        views.Span(0, 4096, 8192, "", "free", hatched=True),
        views.Span(1, 0, 2048, "weights", "weights", link="w"),
        views.Span(1, 2048, 6144, "activations", "activations", link="a"),
    )
    return views.Tracks(("bank 0", "bank 1"), spans, end=8192, unit="bytes", title="memory")

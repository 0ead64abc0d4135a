# SPDX-License-Identifier: Apache-2.0
"""A user's script: what type checkers know of the public names. `test_consumer.py` checks it strictly, and runs it.

A line that ends in `type: ignore[...]` is wrong on purpose: were it not reported, the comment would be.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

import tilewright as tw
from tilewright import cute, ttl, ttnn
from tilewright.layout import LayoutLike
from tilewright.notation import ParsedText

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, _):
        return value


Array = np.ndarray[Any, Any]

# Layouts.
rows = tw.row_major(4, 8)
assert_type(rows, tw.Layout)
assert_type(rows(1, 2), int | Any)
assert_type(rows.size, int)
composed = tw.compose(rows, tw.Layout(4, 2))
assert_type(composed, tw.Layout | Any)
assert_type(tw.logical_divide(rows, (2, 4)), tw.Layout | Any)
assert_type(tw.coalesce(rows), tw.Layout | Any)
assert_type(tw.right_inverse(rows), tw.Layout | Any)
assert_type(tw.is_injective(rows), bool)
parsed = tw.parse("f32[8,128]{1,0}")
assert_type(parsed, LayoutLike | tw.Swizzle | ParsedText)
if isinstance(parsed, ParsedText):
    assert_type(parsed.notation, str)
assert_type(tw.write(rows, "cute"), str)


def misspelt_members() -> None:
    rows.sise  # type: ignore[attr-defined]
    rows(1, 2).offset  # type: ignore[union-attr]
    composed.strides  # type: ignore[union-attr]
    parsed.itemsize  # type: ignore[union-attr]
    tw.bank_conflict  # type: ignore[attr-defined]
    tw.analysis.bank_conflict  # type: ignore[attr-defined]
    ttnn.Layuot  # type: ignore[attr-defined]


# Dialects.
tile = cute.zipped_divide(cute.Layout((8, 8)), (2, 4))
assert_type(tile, cute.Layout | Any)
assert_type(cute.append(cute.Layout(4), cute.Layout(2, 4)), cute.Layout)
assert_type(cute.rank(tile), int)
assert_type(cute.round_up(10, 4), int)
assert_type(cute.make_tuple(4, 8), tuple[int, ...])
assert_type(cute.leading_dim((4, 8), (8, 1)), int | tuple[int, ...] | None)
view = tw.TileTensor(np.zeros(32), rows)
assert_type(cute.composition(view, cute.Layout(4)), tw.TileTensor)
assert_type(ttnn.full((1,), 2.5).item(), float)


# Placements.
spec = tw.TensorSpec((64, 96), "bfloat16", "tile", memory=tw.block_sharded((2, 3)), chip="wormhole_n150")
found = spec.where(33, 40)
assert_type(found.address, int)
assert_type(spec.element_at((0, 0), spec.where(0, 0).address), tuple[int, ...] | None)
assert_type(spec.bytes_per_bank, int)
assert_type(spec.memory, tw.MemoryConfig)


def misplaced() -> None:
    found.adress  # type: ignore[attr-defined]
    spec.known_chip.name.bits  # type: ignore[attr-defined]


# Copies.
values = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
packed = tw.tilize(values, dtype="bfloat8_b")
assert_type(packed, Array)
assert_type(tw.untilize(packed, (64, 96), dtype="bfloat8_b"), Array)
assert_type(tw.plan_copy(tw.Placement(rows, "float32"), tw.Placement(tw.col_major(4, 8), "float32")).scratch, int)

# Analyses.
report = tw.analysis.bank_conflicts(tw.Layout((64, 32), (32, 1)), tw.Layout(32), itemsize=4)
assert_type(report.ways, int)
certificate = tw.analysis.find_swizzle([tw.Layout(32, 32), tw.Layout(32)])
assert_type(certificate.wavefronts, tuple[int, ...])
plan = tw.reshard(spec, spec.with_memory("l1"))
assert_type(plan.total_bytes, int)


def misread() -> None:
    report.degrees  # type: ignore[attr-defined]
    plan.bytes_total  # type: ignore[attr-defined]


# Dialects.
assert_type(cute.congruent((4, 8), (2, 3)), bool)
assert_type(ttl.create_shape(4, 3).width, int)
assert_type(ttnn.CoreCoord(1, 2).x, int)

print("typed")

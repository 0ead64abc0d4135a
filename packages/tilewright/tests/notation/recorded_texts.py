# SPDX-License-Identifier: Apache-2.0
"""The recorded texts of ttnn and tt-mlir, and our values in the form in which their parameters were recorded."""

import json
from pathlib import Path

from tilewright.memory import CoreCoord, CoreRange, CoreRangeSet, NdShardSpec, Shape, ShardSpec, Tile

GOLDEN = Path(__file__).parent.parent / "golden"


def recorded(name):
    """Return the content of one file."""
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


def corners(cores):
    return [[list(part.start), list(part.end)] for part in cores]


def as_recorded(value):
    """Return a value as the parameters that were recorded with its text."""
    if isinstance(value, CoreCoord):
        return list(value)
    if isinstance(value, CoreRange):
        return [list(value.start), list(value.end)]
    if isinstance(value, CoreRangeSet):
        return corners(value)
    if isinstance(value, Shape):
        return list(value.logical)
    if isinstance(value, Tile):
        return {"shape": list(value.shape), "transpose": value.transpose}
    if isinstance(value, ShardSpec):
        return {
            "grid": corners(value.grid),
            "shape": list(value.shape),
            "orientation": value.orientation.name,
        }
    if isinstance(value, NdShardSpec):
        return {
            "shape": list(value.shape),
            "grid": corners(value.grid),
            "orientation": value.orientation.name,
            "strategy": value.distribution.name,
        }
    raise AssertionError(f"no recorded form of {value!r}")

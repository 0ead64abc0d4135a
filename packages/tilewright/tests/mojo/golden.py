# SPDX-License-Identifier: Apache-2.0
"""The recorded answers of Mojo: their cases, the layouts they start from, and comparison of views."""

import json
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

from tilewright.formats import format_of
from tilewright.mojo.layout import Coord, Idx, Layout, TileTensor, col_major, coord, row_major
from tilewright.mojo.layout.tile_layout import blocked_product, col_major_nested, row_major_nested, zipped_divide

FOLDER = Path(__file__).parent.parent / "golden" / "mojo"
STORAGE_SIZE = 8192


def recorded(name):
    """Return the cases of one file."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def replay(name, select=lambda case: True):
    """Return the decorator that runs a test once for each recorded case."""
    found = [pytest.param(case, id=case["id"]) for case in recorded(name) if select(case)]
    if not found:
        raise ValueError(f"no case of {name} was found; is {FOLDER.name} complete?")
    return pytest.mark.parametrize("case", found)


# what a case starts from


def nested(tree):
    """Return lists of JSON as tuples."""
    return tuple(nested(part) for part in tree) if isinstance(tree, list) else tree


def listed(tree):
    """Return tuples as lists of JSON, of plain integers."""
    return [listed(part) for part in tree] if isinstance(tree, tuple) else int(tree)


def leaves_of(tree):
    return [leaf for part in tree for leaf in leaves_of(part)] if isinstance(tree, list) else [tree]


def layout_of(spec):
    """Return the layout that a LAYOUTSPEC describes, made with the dialect; its kind says how."""
    kind = spec["kind"]
    if kind in MAKERS:
        return MAKERS[kind](spec)
    return blocked_product(*[layout_of(spec[key]) for key in ("block", "tiler")])


def _runtime(spec):
    extents = zip(spec["shape"], spec["known"], strict=True)
    return row_major(Coord(*[Idx[n] if known else Idx(n) for n, known in extents]))


MAKERS = {
    "row_major": lambda spec: row_major[nested(spec["shape"])](),
    "col_major": lambda spec: col_major[nested(spec["shape"])](),
    "custom": lambda spec: Layout(coord[nested(spec["shape"])], coord[nested(spec["stride"])]),
    "row_major_runtime": _runtime,
    "row_major_nested": lambda spec: row_major_nested(coord[nested(spec["shape"])]),
    "col_major_nested": lambda spec: col_major_nested(coord[nested(spec["shape"])]),
    "zipped_divide": lambda spec: zipped_divide[coord[nested(spec["tile"])]](layout_of(spec["base"]), ragged="floor"),
}


def storage(dtype="int32"):
    return np.arange(STORAGE_SIZE).astype(format_of(dtype).dtype)


def tensor_of(case):
    """Return the tensor that a case starts from, over storage whose scalars are their own offsets, after a check."""
    t = TileTensor(storage(case["dtype"]), layout_of(case["layout"]))
    if "base_view" in case:
        assert_view(t, case["base_view"])
    return t


# comparison


def row_major_strides(shape):
    return [prod(shape[k + 1 :]) for k in range(len(shape))]


def assert_view(t, record):
    """Compare a tensor with a VIEW record, field by field.

    Where Mojo answers by static values (`is_row_major` with run-time leaves), our own rule is checked instead: actual
    values. Empty views have no defined index type.
    """
    assert listed(t.layout.shape) == record["shape"]
    assert listed(t.layout.stride) == record["stride"]
    assert t.offset == t.ptr.offset == record["offset"]
    assert (t.rank, t.flat_rank) == (record["rank"], record["flat_rank"])
    assert t.element_size == record["element_size"]
    assert t.numel() == t.num_elements() == record["size"]
    assert list(t.static_shape) == record["static_shape"]
    assert list(t.static_stride) == record["static_stride"]
    assert _offsets(t) == record["offsets"]
    _assert_flags(t, record)


def _offsets(t):
    """Return where every element lies, the first index fastest."""
    return [t.offset + int(t.layout(k)) for k in range(t.numel())]


def _assert_flags(t, record):
    flags = {name: getattr(t, name) for name in ("shape_known", "stride_known", "all_dims_known")}
    shape_known, stride_known = (-1 not in record[name] for name in ("static_shape", "static_stride"))
    by_leaves = {
        "shape_known": shape_known,
        "stride_known": stride_known,
        "all_dims_known": shape_known and stride_known,
    }
    assert flags == by_leaves
    is_nested = record["rank"] != record["flat_rank"]
    assert flags == {name: record[name] for name in flags}
    assert record["size"] == 0 or t.linear_idx_type.name == record["linear_idx_type"]
    assert t.is_row_major == (not is_nested and record["stride"] == row_major_strides(record["shape"]))
    if flags["all_dims_known"]:
        assert t.is_row_major == record["is_row_major"]


def assert_layout(layout, record):
    """Compare a layout with a LAYOUT record; with run-time leaves the static sizes are -1, as we document."""
    assert format(layout, "mojo") == record["str"]
    assert listed(layout.shape_coord()) == record["shape"]
    assert listed(layout.stride_coord()) == record["stride"]
    assert (layout.rank, layout.flat_rank) == (record["rank"], record["flat_rank"])
    assert (layout.size(), layout.cosize()) == (record["size"], record["cosize"])
    assert layout.all_dims_known == record["all_dims_known"]
    static = record["all_dims_known"]
    assert layout.static_product == (record["static_product"] if static else -1)
    assert layout.static_cosize == (record["static_cosize"] if static else -1)
    assert [layout(k) for k in range(record["size"])] == record["offsets"]


# vector elements


def colex(shape):
    """Return every index of a shape, the first fastest."""
    return [index[::-1] for index in product(*[range(n) for n in reversed(shape)])]


def wide_loads(t):
    """Return every element as Mojo reads it: `element_size` scalars in a row from its first one on."""
    return [t.load[t.element_size](k).tolist() for k in range(t.numel())]


def is_run(widths, steps):
    """Return whether a block of these widths lies in memory as one run, its last index fastest."""
    runs = row_major_strides(widths)
    return all(n == 1 or step == run for n, step, run in zip(widths, steps, runs, strict=True))


def blocks_of(parent, widths):
    """Return {index: lanes} of the blocks of an array, last index fastest, with None where the array has ended.

    >>> blocks_of(np.array([[0, 1, 2], [3, 4, 5]]), (2, 2))
    {(0, 0): [0, 1, 3, 4], (0, 1): [2, None, 5, None]}
    """
    counts = [-(-n // width) for n, width in zip(parent.shape, widths, strict=True)]
    padded = np.full([n * width for n, width in zip(counts, widths, strict=True)], None, dtype=object)
    padded[tuple(slice(n) for n in parent.shape)] = parent
    corners = {
        index: [slice(k * n, (k + 1) * n) for k, n in zip(index, widths, strict=True)] for index in colex(counts)
    }
    return {index: padded[tuple(block)].reshape(-1).tolist() for index, block in corners.items()}


def text_of(elements):
    """Return the documented text of {index: lanes}, with `_` for lanes that are not there.

    >>> text_of({(0, 0): [0, 1], (0, 1): [2, None]})
    '[[[0, 1], [2, _]]]'
    """
    texts = {
        index: _bracketed("_" if lane is None else str(lane) for lane in lanes) for index, lanes in elements.items()
    }
    if len(next(iter(texts))) != 2:
        return _bracketed(texts.values())
    rows = [[texts[index] for index in sorted(texts) if index[0] == k] for k in sorted({index[0] for index in texts})]
    return _bracketed(map(_bracketed, rows))


def _bracketed(texts):
    return f"[{', '.join(texts)}]"

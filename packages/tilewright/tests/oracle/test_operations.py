# SPDX-License-Identifier: Apache-2.0
"""Operations of the real ttnn on the host, whose results `check_operation` compares byte by byte."""

import numpy as np
import pytest
import ttnn as theirs

import tilewright as tw
from tilewright import ttnn as ours
from tilewright.testing import check_operation

VALUES = np.arange(2 * 40 * 70, dtype=np.float32).reshape(2, 40, 70)


def host_operation(change, folder):
    """Return a function that gives a tensor to ttnn in a file, and gives back the file of the result."""

    def run(tensor):
        ours.dump_tensor(folder / "before.tensorbin", ours.Tensor.wrap(tensor))
        theirs.dump_tensor(
            str(folder / "after.tensorbin"), change(theirs.load_tensor(str(folder / "before.tensorbin")))
        )
        return folder / "after.tensorbin"

    return run


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint32"])
@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("row_major", "row_major", lambda tensor: tensor),
        ("row_major", "tile", lambda tensor: theirs.to_layout(tensor, theirs.TILE_LAYOUT)),
        ("tile", "row_major", lambda tensor: theirs.to_layout(tensor, theirs.ROW_MAJOR_LAYOUT)),
    ],
)
def test_host_operations(dtype, before, after, change, tmp_path):
    source, target = (
        tw.Tensor.of(VALUES, dtype, page_layout=layout, chip="wormhole_n150") for layout in (before, after)
    )
    checked = check_operation(host_operation(change, tmp_path), source, target)
    assert checked.pages == target.spec.num_pages
    with pytest.raises(AssertionError, match="page 0 of"):
        check_operation(host_operation(change, tmp_path), source, tw.Tensor.of(VALUES + 1, dtype, page_layout=after,
            chip="wormhole_n150"))  # fmt: skip


def test_a_tilize_that_is_left_out_is_named(tmp_path):
    source, target = (
        tw.Tensor.of(VALUES, page_layout=layout, chip="wormhole_n150") for layout in ("row_major", "tile")
    )
    with pytest.raises(AssertionError, match="the page layout is ROW_MAJOR, expected TILE"):
        check_operation(host_operation(lambda tensor: tensor, tmp_path), source, target)

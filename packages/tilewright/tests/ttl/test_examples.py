# SPDX-License-Identifier: Apache-2.0
"""The examples of TTL's tutorial run, and check themselves."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from tilewright import ttl

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("ttl_*.py"))


def test_there_is_one_for_each_scheme():
    assert [path.stem for path in EXAMPLES] == ["ttl_double", "ttl_duplex", "ttl_simplex"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert "the same as NumPy's" in capsys.readouterr().out


def test_double_buffering_with_prolog_and_epilog():
    """The tutorial's double loop joins the iterations of both schemes."""
    space, tile = ttl.create_shape(50, 30), ttl.create_shape(16, 9)
    tiler = ttl.create_tiler(space, tile)
    source, target = np.arange(1500, dtype=np.uint16), np.zeros(1500, np.uint16)
    buffers = [bytearray(16 * 9 * 2) for _ in range(4)]
    import_db = ttl.create_import_double_buffering(*buffers[:2], ttl.create_ext_tensor(source, space), ttl.get_event())
    export_db = ttl.create_export_double_buffering(*buffers[2:], ttl.create_ext_tensor(target, space), ttl.get_event())
    iterations = ttl.create_pipeline_iterations(import_db)
    iterations = ttl.join_pipeline_iterations(export_db, iterations)
    assert (iterations.prolog, iterations.epilog) == (1, 2)
    for i in range(-iterations.prolog, ttl.number_of_tiles(tiler) + iterations.epilog):
        imported_to = ttl.step_buffering(import_db, ttl.get_tile(i + 1, tiler))
        exported_from = ttl.step_buffering(export_db, ttl.get_tile(i, tiler))
        if ttl.valid_int_tensor(imported_to):
            np.add(imported_to.array(), 1, out=exported_from.array())
    assert (target == source + 1).all()

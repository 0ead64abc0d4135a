# SPDX-License-Identifier: Apache-2.0
"""`ttnn.strict()`: the rules of Tenstorrent's pages that ttnn has dropped, in a block, a thread or a task."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import tilewright as tw
from tilewright import ttnn

LISTED = ("uint16", "uint32", "float32", "bfloat16", "bfloat8_b")
NINE = [1] * 9


def is_strict():
    try:
        ttnn.Shape(NINE)
    except tw.LayoutError:
        return True
    return False


@pytest.mark.parametrize("dtype", list(ttnn.DataType), ids=lambda dtype: dtype.name)
def test_only_the_listed_types_exist(dtype):
    def make():
        return ttnn.from_torch(np.ones((32, 32), np.float32), dtype=dtype)

    assert make().dtype == dtype
    with ttnn.strict():
        if dtype.name.lower() in LISTED:
            assert make().dtype == dtype
        else:
            with pytest.raises(tw.FormatError, match="allow uint16, uint32, float32, bfloat16, bfloat8_b, got"):
                make()


@pytest.mark.parametrize(("dtype", "multiple"), list(zip(LISTED[:4], (2, 1, 1, 2), strict=True)))
def test_widths_on_a_device(dtype, multiple):
    with ttnn.manage_device() as device, ttnn.strict():
        for width in range(1, 9):
            rows = ttnn.from_torch(np.ones((4, width), np.float32), dtype=getattr(ttnn, dtype))
            if width % multiple:
                with pytest.raises(tw.LayoutError, match=f"are multiples of {multiple}, got {width}"):
                    ttnn.to_device(rows, device)
            else:
                assert ttnn.to_device(rows, device).shape == [4, width]


def test_every_way_to_a_tensor_is_checked():
    values = np.ones(NINE, np.float32)
    loose = ttnn.from_torch(values)
    pages = ttnn.from_torch(np.ones((4, 3), np.float32), dtype=ttnn.bfloat16)
    with ttnn.manage_device() as device, ttnn.strict():
        ttnn.SetDefaultDevice(device)
        for make in (
            lambda: ttnn.Tensor(values),
            lambda: ttnn.as_tensor(values),
            lambda: ttnn.zeros(NINE),
            lambda: ttnn.full(NINE, 1),
            lambda: ttnn.reshape(ttnn.from_torch(values.reshape(-1)), NINE),
            lambda: ttnn.typecast(loose, ttnn.bfloat16),
            lambda: ttnn.empty([4, 3], device=device),
            lambda: ttnn.to_memory_config(pages, ttnn.L1_MEMORY_CONFIG),
            lambda: ttnn.typecast(ttnn.from_torch(np.ones((4, 4), np.float32)), ttnn.int32),
        ):
            with pytest.raises(tw.TilewrightError, match="the rules of Tenstorrent's pages"):
                make()
    assert loose.shape == NINE  # outside of the block nothing has changed


def test_blocks_nest_and_end():
    assert not is_strict()
    with ttnn.strict():
        assert is_strict()
        with ttnn.strict(False):
            assert not is_strict()
        assert is_strict()
        with pytest.raises(ZeroDivisionError), ttnn.strict(False):
            1 / 0  # noqa: B018
        assert is_strict()
    assert not is_strict()


def test_a_block_is_that_of_its_thread():
    both = Barrier(2)

    def ask(enabled):
        with ttnn.strict(enabled):
            both.wait(10)
            found = [is_strict() for _ in range(50)]
            both.wait(10)
            return found

    with ThreadPoolExecutor(2) as pool:
        on, off = pool.map(ask, (True, False))
    assert (set(on), set(off)) == ({True}, {False})


def test_a_block_is_that_of_its_task():
    async def ask(enabled):
        with ttnn.strict(enabled):
            await asyncio.sleep(0)
            return is_strict()

    async def ask_both():
        return await asyncio.gather(ask(True), ask(False))

    assert asyncio.run(ask_both()) == [True, False]

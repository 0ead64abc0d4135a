# SPDX-License-Identifier: Apache-2.0
"""Mojo's module names: known inside `imports()` and after `install()`, unknown elsewhere; nothing else is shadowed."""

import importlib
import subprocess
import sys

import pytest

from tilewright import mojo

NAMES = ("layout", "layout.tile_layout", "layout.layout_tensor", "std", "std.gpu.host", "std.sys", "buffer")


def known():
    return [name for name in sys.modules if name.partition(".")[0] in ("layout", "std", "buffer")]


@pytest.fixture(autouse=True)
def clean():
    yield
    mojo.uninstall()
    assert not known()


def test_inside_a_block_only():
    with mojo.imports():
        for name in NAMES:
            assert importlib.import_module(name) is importlib.import_module(f"tilewright_mojo.{name}")
        with mojo.imports():
            importlib.import_module("layout")
        importlib.import_module("layout")
    assert not known()
    with pytest.raises(ModuleNotFoundError, match="No module named 'layout'"):
        importlib.import_module("layout")


def test_a_block_ends_with_an_exception_too():
    with pytest.raises(KeyError), mojo.imports():
        raise KeyError
    assert not known()


def test_install_and_uninstall():
    mojo.install()
    mojo.install()
    assert importlib.import_module("std.gpu.host").DeviceContext is mojo.std.gpu.host.DeviceContext
    with mojo.imports():
        pass
    importlib.import_module("layout")  # still installed
    mojo.uninstall()
    mojo.uninstall()
    assert not known()


def test_install_and_uninstall_inside_a_block():
    with mojo.imports():
        mojo.install()
    importlib.import_module("layout")
    with mojo.imports():
        mojo.uninstall()
    assert not known()


def test_a_module_that_does_not_exist():
    with mojo.imports(), pytest.raises(ModuleNotFoundError, match=r"No module named 'layout\.nothing'"):
        importlib.import_module("layout.nothing")


def test_another_module_of_the_name_is_not_shadowed_silently(tmp_path, monkeypatch):
    (tmp_path / "layout.py").write_text("answer = 42\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ImportError, match=r"cannot install Mojo's 'layout': another module has that name \(.*layout.py\)"
    ):
        mojo.install()
    theirs = importlib.import_module("layout")
    with pytest.raises(ImportError, match=r"import inside 'with tilewright.mojo.imports\(\):'"):
        mojo.install()
    with mojo.imports():
        assert importlib.import_module("layout") is importlib.import_module("tilewright_mojo.layout")
    assert importlib.import_module("layout") is theirs
    assert theirs.answer == 42
    del sys.modules["layout"]


def test_tensors_and_their_layouts_load_neither_the_front_end_nor_the_machine():
    program = (
        "import sys\n"
        "from tilewright.mojo.layout import TileTensor, row_major, stack_allocation\n"
        "stack_allocation['float32'](row_major[4, 4]()).fill(1).tile[2, 2](1, 0).distribute[row_major[2, 1]()](1)\n"
        "print(*sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not [name for name in run.stdout.split() if name.startswith("tilewright_mojo.")]

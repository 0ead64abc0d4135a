# SPDX-License-Identifier: Apache-2.0
"""Every function that takes a path answers a name that no file can have with an error of its own, or of the system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.cli.runner import invoke
from tilewright.files import Tensorbin, write_safetensors
from tilewright.files.safetensors import read_safetensors, write_sample_model
from tilewright.files.stored_tensor import read_bank_image
from tilewright.views import save, scene_of

ARRAYS = {"x": np.ones((32, 32), np.float32)}
PACKED = Tensorbin(tw.TensorSpec((32, 32)), np.zeros(2048, np.uint8))
FUNCTIONS: dict[str, Callable[[Any, Path], Any]] = {
    "open_tensors": lambda path, _: tw.open_tensors(path),
    "inspect": lambda path, _: tw.inspect(path),
    "convert from": lambda path, folder: tw.convert(path, folder / "o"),
    "convert to": lambda path, _: tw.convert(ARRAYS, path),
    "rules": lambda path, folder: tw.convert(ARRAYS, folder / "o", rules=path),
    "verify": lambda path, _: tw.verify(path),
    "verify from": lambda path, folder: tw.verify(folder, path),
    "diff": lambda path, _: tw.diff(path, np.ones(3)),
    "prepare": lambda path, folder: tw.prepare(path, folder / "o", "N300"),
    "check_cache": lambda path, _: tw.check_cache(path),
    "stream from": lambda path, folder: tw.stream(path, folder / "o.npy"),
    "stream to": lambda path, _: tw.stream(ARRAYS["x"], path),
    "read_tensorbin": lambda path, _: tw.read_tensorbin(path),
    "write_tensorbin": lambda path, _: tw.write_tensorbin(path, PACKED),
    "read_safetensors": lambda path, _: read_safetensors(path),
    "write_safetensors": lambda path, _: write_safetensors(path, ARRAYS),
    "read_bank_image": lambda path, _: read_bank_image(path, "x"),
    "write_sample_model": lambda path, _: write_sample_model(path),
    "chip": lambda path, _: tw.Chip.read(path),
    "picture": lambda path, _: save(scene_of(tw.row_major(2, 3)), f"{path}.svg"),
}
NAMES = ["\0", "a\0b.npy", "\ud800", "\ud800.npy", "x" * 5000, "y/" * 3000 + "z.npy", "n" * 300 + ".safetensors"]
ARGUMENTS = [name for name in NAMES if name.isprintable()]  # which the system passes to a command


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:12])
def test_names_that_no_file_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((tw.TilewrightError, OSError)) as caught:
        FUNCTIONS[function](name, tmp_path)
    assert "\0" not in str(caught.value)
    assert not isinstance(caught.value, OSError) or caught.value.errno, caught.value


@pytest.mark.parametrize("function", ["open_tensors", "inspect", "verify", "read_tensorbin", "read_safetensors"])
@pytest.mark.parametrize("name", ["", ".", "missing", "/dev"])
def test_folders_and_missing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((tw.TilewrightError, OSError)):
        FUNCTIONS[function](name, tmp_path)


@pytest.mark.parametrize("verb", ["inspect", "verify", "convert", "prepare"])
@pytest.mark.parametrize("name", ARGUMENTS, ids=lambda name: name[:12])
def test_the_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    more = {"convert": ["out"], "prepare": ["out", "--for", "N300"]}.get(verb, [])
    answer = invoke(verb, name, *more)
    assert answer.exit_code in (2, 3, 4), answer.output
    assert answer.exception is None or isinstance(answer.exception, SystemExit)


def test_empty_arrays_of_impossible_shapes(tmp_path: Path) -> None:
    with (tmp_path / "x.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (0, 2**62)}
        np.lib.format.write_array_header_1_0(file, header)
    for call in (tw.open_tensors, tw.inspect, lambda path: tw.stream(path, tmp_path / "o.npy")):
        with pytest.raises(tw.FileFormatError, match="extents of 0 ignored"):
            call(tmp_path / "x.npy")

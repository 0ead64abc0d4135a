# SPDX-License-Identifier: Apache-2.0
"""Files that are not read say what they are, and what the next step is."""

import numpy as np
import pytest

import tilewright as tw

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize(
    ("name", "start", "messages"),
    [
        ("model.pt", b"PK\x03\x04", ("cannot read the zip file",)),
        ("model.pth", b"\x80\x02", ("a pickle, but not of torch.save", "numpy.savez")),
        ("model.bin", b"\0" * 64, ("neither a PyTorch checkpoint", "torch.save(model.state_dict(), path)")),
        ("model.tar", bytes(257) + b"ustar\0", ("a tar archive", "unpack it")),
        ("old.pt", bytes(257) + b"ustar\0", ("a tar archive", "torch before 0.1.10")),
        ("model.bin", b"\x1f\x8b\x08", ("a compressed archive", "unpack it")),
        ("model.7z", b"7z\xbc\xaf'\x1c", ("a compressed archive",)),
        ("flax_model.msgpack", b"\x82", ("a Flax checkpoint", "safetensors.flax")),
        ("model.tflite", b"\x1c\0\0\0TFL3", ("a TensorFlow Lite model",)),
        ("model.ckpt.data-00000-of-00001", b"\1", ("a part of a TensorFlow checkpoint", "load_checkpoint")),
        ("model.ckpt.index", b"\1", ("a part of a TensorFlow checkpoint",)),
        ("saved_model.pb", b"\1", ("a TensorFlow SavedModel",)),
        ("model.mlmodel", b"\1", ("a Core ML model",)),
        ("model.bin", b"<!DOCTYPE html><html>", ("a web page, not the file itself",)),
        ("model.onnx", b"\x08\x07", ("not an ONNX model",)),
        ("model.xyz", b"", ("unknown suffix '.xyz'", ".safetensors, .npy")),
    ],
)
def test_files_of_others(tmp_path, name, start, messages):
    (tmp_path / name).write_bytes(start)
    for path in (tmp_path / name, tmp_path):
        if name.endswith(".xyz") and path is tmp_path:
            continue
        with pytest.raises(tw.FileFormatError) as problem:
            tw.open_tensors(path)
        assert name in str(problem.value)
        for message in messages:
            assert message in str(problem.value)


@pytest.mark.parametrize("suffix", [".safetensors", ".npy", ".npz", ".tensorbin", ".bin"])
def test_pointers_of_git_lfs(tmp_path, suffix):
    (tmp_path / f"model{suffix}").write_bytes(POINTER)
    for path in (tmp_path / f"model{suffix}", tmp_path):
        with pytest.raises(tw.FileFormatError, match=r"model\.\w+ is a Git LFS pointer, .*git lfs pull"):
            tw.open_tensors(path)


def test_a_folder_above_a_single_cache_is_that_cache(tmp_path):
    tw.convert({"w": [[1.0]]}, tmp_path / "cache" / "N300" / "tensor_cache_bfp8")
    assert list(tw.open_tensors(tmp_path / "cache")) == ["w"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "N300").symlink_to(tmp_path / "cache" / "N300")
    with pytest.raises(tw.FileFormatError, match="has no tensor files"):
        tw.open_tensors(tmp_path / "elsewhere")
    tw.convert({"w": [[1.0]]}, tmp_path / "cache" / "T3K" / "tensor_cache_bfp8")
    with pytest.raises(tw.FileFormatError, match=r"choose one of those below it: .*N300/.*, .*T3K/tensor_cache_bfp8"):
        tw.open_tensors(tmp_path / "cache")


def test_a_missing_file_is_missing_whatever_its_suffix(tmp_path):
    with pytest.raises(FileNotFoundError):
        tw.open_tensors(tmp_path / "model.pt")


@pytest.mark.parametrize("name", ["model", "model.bin", "model.dat"])
def test_files_are_read_by_content(tmp_path, name):
    tw.files.write_safetensors(tmp_path / name, {"w": np.arange(3)})
    assert tw.open_tensors(tmp_path / name).kind == "safetensors"
    with (tmp_path / name).open("wb") as file:
        np.save(file, np.arange(3))
    assert tw.open_tensors(tmp_path / name).kind == "npy"
    with (tmp_path / name).open("wb") as file:
        np.savez(file, w=np.arange(3))
    assert tw.open_tensors(tmp_path / name)["w"].read().tolist() == [0, 1, 2]


def test_web_pages_in_the_place_of_a_file(tmp_path):
    for name, page in {"model.safetensors": b"<!DOCTYPE html><html>404</html>", "m.gguf": b"<html>no</html>"}.items():
        (tmp_path / name).write_bytes(page)
        with pytest.raises(tw.FileFormatError, match=r"is a web page, .*download it again"):
            tw.open_tensors(tmp_path / name)

# SPDX-License-Identifier: Apache-2.0
"""Files that are not read say what they are, and what the next step is."""

import pytest

import tilewright as tw

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize(
    ("name", "start", "messages"),
    [
        ("model.pt", b"PK\x03\x04", ("a PyTorch checkpoint", "safetensors.torch.save_file")),
        ("pytorch_model.bin", b"PK\x03\x04", ("a PyTorch checkpoint", "weights_only=True")),
        ("model.pth", b"\x80\x02", ("a PyTorch checkpoint",)),
        ("renamed.bin", b"GGUF\x03", ("a GGUF file",)),
        ("model.onnx", b"\x08\x07", ("an ONNX model", "onnx.load")),
        ("model.h5", b"\x89HDF\r\n", ("an HDF5 file", "numpy.savez")),
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

# SPDX-License-Identifier: Apache-2.0
"""`diff` and `inspect` on real files."""

import numpy as np

import tilewright as tw
from tilewright.files import Tensorbin, write_safetensors, write_tensorbin


def test_files_that_are_the_same(run, files):
    done = run("diff", "w.npy", "float32.tensorbin")
    assert done.out.startswith("1 of 1 tensor is the same (equal)")
    assert run("diff", "w.npy", "bfloat8_b.tensorbin", "--ulp", "1").status == 0


def test_files_that_differ(run, files):
    done = run("diff", "w.npy", "bfloat8_b.tensorbin", "--map", status=1)
    for words in (
        "0 of 1 tensor is the same",
        "max ULP",
        "steps of bfloat8_b",
        "first",
        "core (0, 0)",
        "PCC",
        "largest error of each",
    ):
        assert words in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    data = run("diff", "w.npy", "bfloat8_b.tensorbin", "--json", status=1).json
    (tensor,) = data["tensors"]
    assert 0.5 <= tensor["max_ulp"] <= 1
    assert tensor["first"]["core"] == [0, 0]
    assert np.shape(tensor["error_map"]) == (4, 3)


def test_a_factor_of_two_is_found_where_pcc_is_one(run, files):
    np.save(files / "twice.npy", 2 * np.load(files / "w.npy"))
    done = run("diff", "w.npy", "twice.npy", "--pcc", "0.999", "--atol", "1e9")
    assert "B is 2 x A, which is 100 % of the squared error" in done.out
    assert "would pass and suggests no error" in done.out


def test_a_correlation_alone_is_all_that_is_asked(run, files):
    assert "PCC at least 0.99" in run("diff", "w.npy", "bfloat8_b.tensorbin", "--pcc", "0.99").out
    run("diff", "w.npy", "bfloat8_b.tensorbin", "--pcc", "0.9999999", status=1)
    run("diff", "w.npy", "bfloat8_b.tensorbin", "--pcc", "0.99", "--ulp", "1")
    run("diff", "w.npy", "bfloat8_b.tensorbin", "--pcc", "0.99", "--atol", "1e-9", status=1)
    values = np.load("w.npy")
    values.flat[3] = np.nan
    np.save("nan.npy", values)
    run("diff", "w.npy", "nan.npy", "--pcc", "0.5", status=1)


def test_pictures_are_saved(run, files):
    run("diff", "w.npy", "bfloat8_b.tensorbin", "--show", "diff.html", status=1)
    assert "<svg" in (files / "diff.html").read_text(encoding="utf-8")
    run("inspect", "w.npy", "--show", "w.svg")
    assert (files / "w.svg").read_text(encoding="utf-8").startswith("<svg")
    for name, status, message in (
        ("x.gif", 2, "expected a name that ends in"),
        ("nowhere/x.svg", 4, "the folder nowhere does not exist"),
    ):
        for arguments in (["diff", "w.npy", "bfloat8_b.tensorbin"], ["inspect", "w.npy"]):
            assert message in run(*arguments, "--show", name, status=status).err


def test_shapes_that_differ(run, files):
    np.save(files / "turned.npy", np.load(files / "w.npy").T.copy())
    assert "shapes [100, 70] and [70, 100] differ" in run("diff", "w.npy", "turned.npy", status=1).out
    run("diff", "w.npy", "turned.npy", "--transpose")


def test_directories_are_inspected(run, files):
    shown = run("inspect", ".").out
    assert "bfloat8_b" in shown
    assert "100x70" in shown
    data = run("inspect", ".", "--json").json
    assert {each["name"]: each["format"] for each in data["tensors"]} == {
        "w": "float32",
        "float32": "float32",
        "bfloat8_b": "bfloat8_b",
    }
    assert data["tensors"][0]["spec"]["memory"]["layout"] == "height_sharded"


def test_one_tensor_and_one_tile(run, files):
    assert "height sharded in L1" in run("inspect", "bfloat8_b.tensorbin", "--tensor", "bfloat8_b").out
    done = run("inspect", "bfloat8_b.tensorbin", "--tile", "3,2")
    assert "tile (3, 2) of bfloat8_b, from element (96, 64)" in done.out
    assert "padding" in done.out
    data = run("inspect", ".", "--tensor", "bfloat8_b", "--tile", "0,0", "--json").json
    assert np.shape(data["values"]) == np.shape(data["exponents"]) == (32, 32)
    assert "holds 3 tensors" in run("inspect", ".", "--tile", "0,0", status=2).err
    missing = run("inspect", "w.npy", "--tile", "4,0", status=2).err
    assert "window (4, 0) does not exist" in missing
    assert "tiles of" not in missing  # the file has none
    assert "did you mean 'float32'" in run("inspect", ".", "--tensor", "float23", status=2).err


def test_damaged_files_have_their_own_status(run, files):
    (files / "bad.tensorbin").write_bytes(b"garbage")
    for arguments in (["inspect", "bad.tensorbin"], ["diff", "w.npy", "bad.tensorbin"]):
        assert "bad.tensorbin" in run(*arguments, status=3).err


def test_a_summary_has_no_list(run, files):
    assert [line for line in run("inspect", "w.npy").out.splitlines() if line.startswith("w ")]
    found = run("inspect", "w.npy", "--summary").out
    assert not [line for line in found.splitlines() if line.startswith("w ")]
    assert "7000 parameters" in found
    assert "float32: 1 tensor, 7000 elements, 27.3 KiB" in found
    data = run("inspect", "w.npy", "--summary", "--json").json
    assert data["totals"] == [{"format": "float32", "tensors": 1, "elements": 7000, "nbytes": 28000}]
    assert "tensors" not in data
    assert "--summary has no effect" in run("inspect", "w.npy", "--summary", "--tensor", "w", status=2).err


def test_what_cannot_be_read_is_said_once(run, tmp_path):
    def parts(name):
        return {
            f"{name}.qweight": np.zeros((16, 128), np.int32),
            f"{name}.qzeros": np.zeros((1, 16), np.int32),
            f"{name}.scales": np.ones((1, 128), np.float16),
        }

    write_safetensors("one.safetensors", parts("a"))
    assert "a.qweight cannot be read: quantised by GPTQ or AWQ" in run("inspect", "one.safetensors", "--summary").out
    names = [f"layers.{layer}.q_proj" for layer in range(7)]
    write_safetensors("gptq.safetensors", {key: value for name in names for key, value in parts(name).items()})
    lines = run("inspect", "gptq.safetensors", "--summary").out.splitlines()
    (first,) = [number for number, line in enumerate(lines) if "cannot be read" in line]
    assert lines[first].startswith("7 tensors cannot be read: quantised by GPTQ or AWQ")
    assert lines[first + 1 :] == [f"  {name}.qweight" for name in names[:5]] + ["  and 2 more"]
    unread = run("inspect", "gptq.safetensors", "--json").json["tensors"]  # which invoke compares with the schema
    assert None in [each["format"] for each in unread]


def test_a_summary_counts_every_type_and_every_tensor(run, tmp_path):
    types = ("float16", "float32", "float64", "int8", "int16", "int32", "int64")
    np.savez("m.npz", **{name: np.zeros(4, name) for name in types})
    lines = run("inspect", "m.npz", "--summary").out.splitlines()
    assert {line.partition(":")[0] for line in lines} >= set(types)
    (tmp_path / "tiles").mkdir()
    for width in range(1, 8):
        spec = tw.TensorSpec((32, 32 * width), "uint8", "tile", memory=tw.width_sharded((width, 1)))
        write_tensorbin(f"tiles/{width}.tensorbin", Tensorbin(spec, np.zeros(spec.nbytes, np.uint8)))
    assert run("inspect", "tiles", "--summary").out.splitlines()[-1] == "2 tensors in 2 other ways"


def test_files_without_a_common_name_are_for_match(run, files):
    np.savez("a.npz", x=np.zeros(3), y=np.ones(3))
    np.savez("b.npz", z=np.zeros(3), w=np.ones(3))
    assert "note: no name is in both; tilewright match" in run("diff", "a.npz", "b.npz", status=1).out


def test_a_tensor_in_rows_has_no_tile_in_json(run, tmp_path):
    spec = tw.TensorSpec((8, 32), "bfloat16", "row_major")
    write_tensorbin("rows.tensorbin", Tensorbin(spec, np.zeros(8 * 64, np.uint8)))
    for arguments in ((), ("--tensor", "rows")):
        assert "tile" not in str(run("inspect", "rows.tensorbin", *arguments, "--json").json)

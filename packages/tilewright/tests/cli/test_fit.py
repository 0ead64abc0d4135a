# SPDX-License-Identifier: Apache-2.0
"""`fit`: the answer is the exit status, and alternatives are listed."""


def test_what_fits(run):
    done = run("fit", "2048x2048", "--dtype", "float32", "--layout", "tile", "--buffer", "l1")
    assert done.out.startswith("fits wormhole_n150\n")
    assert "262144 bytes in each of 64 banks" in done.out


def test_what_does_not_fit_gets_alternatives_that_do(run):
    question = ("2048x2048", "--dtype", "float32", "--layout", "tile", "--shard", "height", "--grid", "2x1")
    done = run("fit", *question, status=1)
    assert done.out.startswith("does not fit wormhole_n150\n")
    assert "alternatives that fit, nearest first:" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    data = run("fit", *question, "--json", status=1).json
    assert not data["fits"]
    assert data["alternatives"][0]["change"] == "height sharded (32, 2048) on 64 cores"


def test_an_illegal_spec_is_an_answer_not_an_error(run):
    done = run(
        "fit", "100x64", "--layout", "tile", "--shard", "height", "--grid", "4x1", "--shard-shape", "25x64", status=1
    )
    assert "shard height 25 is not a multiple of the tile height 32; use 32" in " ".join(done.out.split())


def test_several_tensors_with_settings_of_their_own_and_circular_buffers(run):
    tensors = ("4096x4096:buffer=l1", "1x4096:dtype=float32", "64x64:shard=block:grid=2x2")
    data = run("fit", *tensors, "--layout", "tile", "--cb", "256KiB", "--cb", "1000", "--json").json
    assert [each["bytes_per_bank"] for each in data["tensors"]] == [524288, 45056, 2048]
    assert data["circular_buffer_bytes"] == 256 * 1024 + 1000
    clash = run("fit", *tensors, "--layout", "tile", "--cb", "1MiB", status=1)
    assert "circular buffers use L1 from" in clash.out


def test_memory_that_is_kept_counts(run):
    run("fit", "4096x8192", "--layout", "tile", "--buffer", "l1")
    run("fit", "4096x8192", "--layout", "tile", "--buffer", "l1", "--l1-small", "512KiB", status=1)

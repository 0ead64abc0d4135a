# SPDX-License-Identifier: Apache-2.0
"""`tilewright conflicts`: bank conflicts of an access, and what removes them."""

import json

import numpy as np
import pytest

import tilewright as tw
from tilewright import analysis

SWIZZLED = "Sw<3,4,3> o smem_ptr[16b](unset) o (_16,_64):(_64,_1)"
MMA = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"


def data(run, *arguments, status=0):
    return json.loads(run("conflicts", *arguments, "--json", status=status).out)


@pytest.mark.parametrize(
    ("memory", "threads", "itemsize", "ways"),
    [
        ("(32,32):(32,1)", "32:1", 4, 32),
        ("(32,32):(33,1)", "32:1", 4, 1),
        ("(32,32):(32,1)", "32:1", 2, 16),
        ("(32,32):(32,1)", "32:1", 8, 16),
        ("(32,32):(34,1)", "32:1", 4, 2),
        ("(64,64):(64,1)", "32:64", 1, 1),
    ],
)
def test_ways_are_what_the_addresses_say(run, memory, threads, itemsize, ways):
    found = data(run, memory, "--threads", threads, "--itemsize", str(itemsize), "--vector", "1", status=int(ways > 1))
    offsets = np.array([tw.parse(memory)(tw.parse(threads)(k)) for k in range(32)]) * itemsize // 4
    half = offsets.reshape(-1, 16) if itemsize == 8 else offsets[None]  # a request of 8 bytes is two phases
    worst = max(len({word for word in row if word % 32 == bank}) for row in half for bank in range(32))
    assert found["ways"] == ways == worst
    assert found["conflict_free"] == (ways == 1)


def test_the_text_states_the_size_of_its_elements(run):
    found = data(run, SWIZZLED, "--threads", "(16,2):(1,128)", "--instruction", "ldmatrix.x4")
    assert (found["itemsize"], found["conflict_free"], found["wavefronts"]) == (2, True, found["ideal"])
    assert data(run, SWIZZLED, "--threads", "(16,2):(1,128)", "--itemsize", "1", status=None)["itemsize"] == 1
    assert data(run, "f32[32,32]{1,0}", "--threads", "32:1", status=1)["itemsize"] == 4
    run("conflicts", "s4[32,32]{1,0:E(4)}", "--threads", "32:1", status=2)


def test_without_threads_the_first_mode_counts_them(run):
    assert data(run, "32:32", "--itemsize", "4", status=1)["ways"] == 32


def test_coordinates_and_encodings_are_threads(run):
    columns = data(run, "(64,64):(64,1)", "--itemsize", "2", "--threads", "((8,4),2):((1@0,2@1),1@1)", status=1)
    counted = data(run, "(64,64):(64,1)", "--itemsize", "2", "--threads", "((8,4),2):((1,128),64)", status=1)
    assert columns["wavefronts"] == counted["wavefronts"]
    encoded = data(run, "(32,32):(32,1)", "--itemsize", "4", "--threads", MMA, status=None)
    assert len(encoded["warps"]) == 4
    assert (
        "bank_conflicts: the threads' map is to"
        in run("conflicts", "(32,64):(64,1)", "--threads", f"tensor<32x32xf16, {MMA}>", status=2).err
    )


@pytest.mark.parametrize(
    "access",
    [
        ("(32,32):(32,1)", "32:1"),
        ("(64,64):(64,1)", "((8,4),2):((1@0,2@1),1@1)"),
        ("(24,24):(24,1)", "24:1"),
        ("Sw<1,0,5> o (32,32):(32,1)", "32:1"),
        ("(128,32):(32,1)", "128:1"),
        ("(20,40):(40,1)", "(20,2):(1,20)"),
    ],
)
def test_a_remedy_is_found_and_counted_again(run, access):
    memory, threads = access
    found = data(run, memory, "--threads", threads, "--itemsize", "4", "--fix", status=None)
    remedy = found["remedy"]
    assert remedy["verified"]
    assert remedy["wavefronts"] < found["wavefronts"]
    again = data(run, remedy["layout"], "--threads", threads, "--itemsize", "4", status=None)
    assert (again["wavefronts"], again["conflict_free"]) == (remedy["wavefronts"], remedy["conflict_free"])
    fixed, plain = tw.parse(remedy["layout"]), tw.parse(memory)
    assert tw.is_injective(fixed)
    assert fixed.size == plain.size


def test_the_picture_has_both_accesses(run, tmp_path):
    result = run(
        "conflicts", "(128,32):(32,1)", "--threads", "128:1", "--itemsize", "4", "--fix", "-o", tmp_path / "a.svg"
    )
    for words in ("with the remedy", "warp 3", "all warps", "counted again: confirmed", "Sw<5,0,5> o"):
        assert words in result.out
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    run("conflicts", "32:1", "-o", "a.docx", status=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nonsense", "--threads", "32:1"), "'nonsense' is not a layout in any of the notations"),
        (("(4,8):(8,1)", "--threads", "33:1"), "thread 32 accesses element 32 of"),
        (("(4,8):(8,1)", "--threads", "Sw<1,0,1>"), "is not a layout from threads to coordinates"),
        (("(4,8):(8,1)", "--instruction", "ldmatrx"), "unknown instruction 'ldmatrx'; use ld, st, ldmatrix.x1"),
        ((MMA, "--shape", "32x32"), "has no offsets; give a layout from coordinates to elements of memory"),
        (("(4,8):(8,1)", "--itemsize", "0"), "0 is not in the range x>=1"),
    ],
)
def test_what_is_no_access_is_refused(run, arguments, words):
    assert words in run("conflicts", *arguments, status=2).err


def test_too_many_elements_are_refused():
    with pytest.raises(tw.LayoutError, match="a remedy is searched for at most 4096: give fewer threads"):
        analysis.find_remedy(tw.row_major(128, 64), tw.Layout((32, 256)), itemsize=4)


def test_padding_where_no_swizzle_can_be():
    memory = tw.row_major(32, 24)
    found = analysis.find_remedy(memory, tw.Layout(32), itemsize=4)
    padded = found.apply(memory)
    assert found.is_conflict_free
    assert analysis.bank_conflicts(padded, tw.Layout(32), itemsize=4).conflict_free

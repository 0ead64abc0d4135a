# SPDX-License-Identifier: Apache-2.0
"""Atoms as recorded, conversions against brute force, and swizzles and paddings that a checker confirms."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import LayoutError, analysis
from tilewright.analysis import Pattern, atoms, bank_conflicts, conversion, find_padding, find_swizzle
from tilewright.layout.linear import Linear
from tilewright.notation import parse_cute

from ..cases import examples

GOLDEN = Path(__file__).parent.parent / "golden" / "atoms"


def recorded(name):
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def assert_same_function(layout, text):
    # CuTe prints one stride with brackets of its own
    expected = parse_cute(text.replace("((_16,_8)))", "(_16,_8))")).layout
    assert (layout.mode(0).size, layout.mode(1).size) == (expected.mode(0).size, expected.mode(1).size), text
    index = np.arange(layout.size)
    assert np.array_equal(layout(index), expected(index)), text


def test_matrix_atoms():
    for case in recorded("mma_nvidia") + recorded("mma_amd"):
        atom = atoms[case["name"]]
        assert atom.shape == tuple(case["mnk"])
        assert atom.threads == (8 if case["name"].startswith("SM70") else case["threads"])
        for operand in "ABC":
            assert_same_function(atom.operand(operand)[0], case[operand])
        for operand, samples in case.get("ptx", {}).get("samples", {}).items():
            for thread, value, place in samples:
                row, column = atom.element(operand, thread, value)
                assert [row, column] == (place if operand != "B" else place[::-1]), (case["name"], operand)


def test_copy_atoms():
    for case in recorded("copy"):
        atom = atoms[case["name"]]
        assert_same_function(atom.source, case["src_bits"])
        assert_same_function(atom.target, case["dst_bits"])


def test_every_atom_of_the_catalogue_holds_every_element():
    for name in atoms:
        if name.startswith("SM90_64x") and name.split("x")[1] not in ("8", "24", "64"):
            continue  # the same, only wider
        atom = atoms[name]
        if isinstance(atom, analysis.CopyAtom):
            assert set(atom.source.offsets().reshape(-1)) == set(atom.target.offsets().reshape(-1)), name
            continue
        for operand in "ABC":
            layout, (rows, columns) = atom.operand(operand)
            held = layout.mode(1) if layout.stride[0] == 0 else layout  # all threads have the same
            assert np.array_equal(np.unique(held(np.arange(held.size))), np.arange(rows * columns)), (name, operand)


def test_unknown_atoms_are_refused_by_name():
    with pytest.raises(LayoutError, match="did you mean 'SM80_16x8x16_F32F16F16F32_TN'"):
        atoms["SM80_16x8x16_F32F16F16F32"]


# Conversions.


@st.composite
def distributions(draw):
    """Return two maps from registers, lanes and warps to 32 elements, both onto."""
    bits = 5
    found = []
    for _ in range(2):
        images = draw(st.permutations([1 << k for k in range(bits)])) + draw(
            st.lists(st.integers(0, 31), min_size=0, max_size=2)
        )
        order = draw(st.permutations(images))
        first, second = sorted([draw(st.integers(0, len(order))), draw(st.integers(0, len(order)))])
        parts = {"register": order[:first], "lane": order[first:second], "warp": order[second:]}
        found.append(Linear({name: [(image,) for image in part] for name, part in parts.items()}, {"dim0": 32}))
    return found


def nearest_exchange(source, target):
    """Return the means that brute force finds: for each place of the target, the nearest place with its element."""
    holders = {}
    for place in itertools.product(*[range(extent) for extent in source.inputs.values()]):
        holders.setdefault(source(**dict(zip(source.inputs, place, strict=True)))["dim0"], []).append(place)
    worst = 0
    for place in itertools.product(*[range(extent) for extent in target.inputs.values()]):
        element = target(**dict(zip(target.inputs, place, strict=True)))["dim0"]
        distance = []
        for register, lane, warp in holders[element]:
            if (register, lane, warp) == place:
                distance.append(0)
            else:
                distance.append(1 if (lane, warp) == place[1:] else 2 if warp == place[2] else 3)
        worst = max(worst, min(distance))
    return ["nothing", "registers", "shuffles", "shared memory"][worst]


@examples(60)
@given(distributions())
def test_conversions_take_the_nearest_exchange(pair):
    source, target = pair
    assert conversion(source, target).means == nearest_exchange(source, target)


def test_conversions_of_other_tensors_are_refused():
    one = Linear({"register": [(1,)]}, {"dim0": 2})
    with pytest.raises(LayoutError, match="different tensors"):
        conversion(one, Linear({"register": [(1,)]}, {"dim1": 2}))
    with pytest.raises(LayoutError, match="over register, lane, warp and block"):
        conversion(one, Linear({"offset": [(1,)]}, {"dim0": 2}))


# Swizzles and padding.


def test_known_swizzles():
    rows, columns = np.arange(32), np.arange(32) * 32
    found = find_swizzle([rows, columns])
    assert (found.remedy, found.is_conflict_free, found.verify()) == (tw.Swizzle(5, 0, 5), True, True)
    # a tile of halves, 64 wide: rows of 16 bytes down a column, as ldmatrix reads them
    tile = tw.row_major(16, 64)
    lanes = np.array([tile(lane % 16, 8 * (lane // 16)) for lane in range(32)])
    found = find_swizzle([Pattern(lanes, "ldmatrix.x4")], itemsize=2)
    assert found.is_conflict_free
    assert found.verify()
    assert bank_conflicts(found.place(lanes), itemsize=2, instruction="ldmatrix.x4").wavefronts == 4
    assert find_swizzle([rows]).remedy is None


def test_a_linear_map_where_no_swizzle_is_enough():
    def lanes(*steps):
        """Return the offsets of 16 lanes, whose bits step so."""
        return np.array([sum(step for bit, step in enumerate(steps) if lane >> bit & 1) for lane in range(16)])

    machine = analysis.BankModel(banks=16, warp=16)
    patterns = [lanes(1, 2, 4, 8), lanes(16, 2, 4, 64), lanes(32, 64, 4, 8), lanes(1, 32, 16, 8)]
    found = find_swizzle(patterns, machine=machine)
    assert found.verify()
    best = min(
        sum(bank_conflicts(swizzle(pattern), machine=machine).wavefronts for pattern in patterns)
        for swizzle in [
            tw.Swizzle(b, m, s) for b in range(1, 4) for m in range(7) for s in range(b, 8) if b + m + s <= 7
        ]
    )
    assert sum(found.wavefronts) <= best


@examples(8)
@given(st.lists(st.sampled_from([1, 2, 4, 8, 16, 32, 33, 64]), min_size=1, max_size=3), st.sampled_from([1, 2, 4, 8]))
def test_certificates_hold(strides, itemsize):
    patterns = [np.arange(32) * stride for stride in strides]
    for found in (find_swizzle(patterns, itemsize=itemsize), find_padding(patterns, 32, itemsize=itemsize)):
        assert found.verify()
        plain = [bank_conflicts(pattern, itemsize=itemsize).wavefronts for pattern in patterns]
        assert sum(found.wavefronts) <= sum(plain)
        tampered = analysis.Certificate(
            found.remedy, (1, *found.wavefronts), found.ideal, found.searched, found.patterns, found.itemsize
        )
        assert not tampered.verify()


def test_padding():
    found = find_padding([np.arange(32) * 32, np.arange(32)], 32)
    assert (found.remedy, found.is_conflict_free, found.verify()) == (1, True, True)
    assert found.apply(tw.row_major(32, 32)) == tw.Layout((32, 32), (33, 1))
    vectors = np.arange(32)[:, None] * 64 + np.arange(8)  # eight halves of a row of 64, down a column
    found = find_padding([vectors], 64, itemsize=2)
    assert (found.remedy % 8, found.is_conflict_free) == (0, True)  # vectors stay aligned


def test_memory_and_threads_are_composed():
    memory = tw.Layout((32, 32), (32, 1))
    by_rows, by_columns = tw.Layout((32, 1), (32, 0)), tw.Layout((32, 1), (1, 0))
    assert bank_conflicts(memory, by_rows).conflict_free
    report = bank_conflicts(memory, by_columns)
    assert (report.ways, len(report.collisions), report.collisions[0].threads[:2]) == (32, 1, ((0,), (1,)))
    swizzled = tw.compose(tw.Swizzle(5, 0, 5), memory)
    assert bank_conflicts(swizzled, by_columns).conflict_free
    assert analysis.coalescing(memory, by_columns).sectors == 32
    with pytest.raises(LayoutError, match="not vectors of 4"):
        bank_conflicts(np.arange(32)[:, None] * 2 + np.arange(4), vector=4)
    with pytest.raises(LayoutError, match="unknown instruction 'lea'"):
        bank_conflicts(memory, by_rows, instruction="lea")


def test_vectors_of_several_warps_stay_whole():
    vectors = np.arange(64)[:, None] * 32 + np.arange(4)  # two warps, four floats each
    found = find_swizzle([vectors])
    assert (found.remedy.base, found.is_conflict_free, sum(found.wavefronts)) == (2, True, 8)
    padding = find_padding([vectors], 32)
    assert (padding.remedy % 4, padding.is_conflict_free) == (0, True)
    # a thread has two vectors, of which only the second ones collide
    pairs = np.concatenate([np.arange(32)[:, None] * 4 + np.arange(4), vectors[:32] + 1024], axis=1)
    found = find_swizzle([Pattern(pairs, vector=4)])
    assert (found.remedy is None, found.is_conflict_free, found.ideal) == (False, True, (8,))


def test_a_table_is_one_access():
    column = np.arange(32) * 32
    for access in (column, column.reshape(32, 1), tw.Layout(32, 32), Pattern(column)):
        assert find_swizzle(access).remedy == tw.Swizzle(5, 0, 5)
    for wrong, reason in (
        ([0, 32, 64], "offsets of all its threads"),
        (7, "expected a list of accesses"),
        ([Pattern(column, "lea")], "unknown instruction"),
        ([Pattern(column, "ld", 3)], "not one that an instruction moves"),
    ):
        with pytest.raises(LayoutError, match=reason):
            find_swizzle(wrong)
    with pytest.raises(LayoutError, match="at least 0"):
        find_padding([column], 32, most=-1)
    with pytest.raises(LayoutError, match="a distribution is a Linear map"):
        conversion(1, 2)

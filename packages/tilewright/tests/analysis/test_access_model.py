# SPDX-License-Identifier: Apache-2.0
"""Bank conflicts and coalescing against a model that goes byte by byte and thread by thread."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import LayoutError, analysis

from ..cases import examples

WARP = 32


def widest_vector(rows, active, itemsize):
    """Return how many elements, from the first column on, every active thread can access at once."""
    count = 1
    while 2 * count * itemsize <= 16 and 2 * count <= len(rows[0]):
        for row, flags in zip(rows, active, strict=True):
            if any(flag != flags[0] for flag in flags[: 2 * count]):
                return count
            first = row[0]
            if flags[0] and (first % (2 * count) or any(row[k] != first + k for k in range(2 * count))):
                return count
        count *= 2
    return count


def instructions(rows, active, itemsize, vector):
    """Yield (addresses, active threads, bytes per thread) of the instructions of each warp, in order."""
    for start in range(0, len(rows), WARP):
        own, flags = rows[start : start + WARP], active[start : start + WARP]
        column = 0
        while column < len(own[0]):
            rest, rest_flags = [row[column:] for row in own], [row[column:] for row in flags]
            count = vector or widest_vector(rest, rest_flags, itemsize)
            yield [row[0] * itemsize for row in rest], [row[0] for row in rest_flags], count * itemsize
            column += count


def phases_of(addresses, active, width, is_load):
    """Return the threads that are served together."""
    together = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[width]
    if is_load and width > 4:
        threads = range(len(addresses))
        for bit in (1, 2):
            pairs = [(t, t ^ bit) for t in threads if t ^ bit < len(addresses) and active[t] and active[t ^ bit]]
            if all(addresses[t] == addresses[other] for t, other in pairs):
                together *= 2
                break
    return [range(k, min(k + together, len(addresses))) for k in range(0, len(addresses), together)]


def wavefronts_of(addresses, active, phases, width):
    """Return the wavefronts of each phase with an active thread."""
    found = []
    for phase in phases:
        words = {(addresses[t] + byte) // 4 for t in phase if active[t] for byte in range(width)}
        if words:
            found.append(max(sum(word % 32 == bank for word in words) for bank in range(32)))
    return found


def check_access(rows, active, itemsize, vector=None, instruction="ld", ask=None):
    """Assert that an access costs what the model says; `ask` is what bank_conflicts gets instead of the rows."""
    expected, count = [], 0
    for addresses, threads, width in instructions(rows, active, itemsize, vector):
        count += 1
        phases = phases_of(addresses, threads, width, instruction == "ld")
        expected += wavefronts_of(addresses, threads, phases, width)
    options = {"itemsize": itemsize, "vector": vector}
    arguments = ask or (np.array(rows),)
    mask = None if ask else [any(flags) for flags in active]
    report = analysis.bank_conflicts(*arguments, **options, instruction=instruction, active=mask)
    case = f"{rows}, {active}, {options}, {instruction}"
    assert (report.phases, report.instructions) == (tuple(expected), count), case
    assert (report.wavefronts, report.ideal, report.ways) == (sum(expected), len(expected), max(expected, default=0))
    warps = analysis.conflicts_by_warp(*arguments, **options, instruction=instruction, active=mask)
    assert sum([warp.phases for warp in warps], ()) == report.phases, case
    waiting = [clash.threads for warp in warps for clash in warp.collisions]
    assert waiting == [clash.threads for clash in report.collisions], case
    for clash in report.collisions:
        assert len(clash.threads) == report.phase_words[clash.phase][clash.bank]
        assert all(any(active[thread]) for group in clash.threads for thread in group), case
    sectors = lines = used = 0
    for addresses, threads, width in instructions(rows, active, itemsize, vector):
        wanted = {addresses[t] + k for t in range(len(addresses)) if threads[t] for k in range(width)}
        sectors += len({byte // 32 for byte in wanted})
        lines += len({byte // 128 for byte in wanted})
        used += len(wanted)
    moved = analysis.coalescing(*arguments, **options, active=mask)
    assert (moved.sectors, moved.lines, moved.used, moved.instructions) == (sectors, lines, used, count), case


@st.composite
def tables(draw):
    """Return offsets of each thread, which of them are active, the bytes of an element and the vector."""
    itemsize = draw(st.sampled_from([1, 2, 4, 8, 16]))
    vector = draw(st.sampled_from([n for n in (1, 2, 4, 8, 16) if n * itemsize <= 16]))
    threads = draw(st.sampled_from([1, 3, 8, 31, 32, 33, 64, 70]))
    reach = draw(st.sampled_from([1, 4, 40]))
    pick = st.integers(-2 if reach == 4 else 0, reach)
    starts = draw(st.lists(pick, min_size=threads, max_size=threads))
    pairing = draw(st.sampled_from([0, 0, 1, 2, 4]))  # neighbours that read the same
    starts = [starts[t & ~pairing] for t in range(threads)]
    if pairing and draw(st.booleans()):
        starts[draw(st.integers(0, threads - 1))] += 1
    active = draw(st.one_of(st.just([True] * threads), st.lists(st.booleans(), min_size=threads, max_size=threads)))
    repeats = draw(st.integers(1, 2))
    rows = [[start * vector + k + 64 * group for group in range(repeats) for k in range(vector)] for start in starts]
    return rows, [[flag] * len(rows[0]) for flag in active], itemsize, vector


@examples(60)
@given(tables(), st.sampled_from(["ld", "st"]), st.booleans())
def test_tables_of_offsets(table, instruction, by_width):
    rows, active, itemsize, vector = table
    check_access(rows, active, itemsize, vector if by_width else None, instruction)


@st.composite
def memories(draw):
    """Return the layout of a memory of 256 elements: strided, nested, swizzled, shifted or padded."""
    order = draw(st.permutations([1, 2, 3]))
    extents = [4, 8, 8]
    strides = [0, 0, 0]
    step = 1
    for k in sorted(range(3), key=lambda k: order[k]):
        strides[k] = step * draw(st.sampled_from([1, 1, -1, 0]))
        step *= extents[k] + draw(st.sampled_from([0, 0, 1]))
    memory = tw.Layout((4, (8, 8)), (strides[0], (strides[1], strides[2])))
    low = -memory.bounds[0]
    memory = memory + low + draw(st.sampled_from([0, 0, 5]))
    kind = draw(st.sampled_from(["plain", "swizzled", "padded"]))
    if kind == "swizzled":
        return tw.compose(tw.Swizzle(*draw(st.sampled_from([(3, 0, 3), (2, 1, 3), (3, 2, 3), (2, 0, -3)]))), memory)
    return tw.with_logical_shape(memory, (3, 50)) if kind == "padded" else memory


@st.composite
def thread_layouts(draw):
    """Return a layout from threads and values to the indices of 256 elements, without or with broadcasts."""
    steps = draw(st.permutations([1, 2, 4, 8, 16, 32, 64, 128]))
    broadcast = draw(st.sampled_from([None, 0, 3]))
    steps = [0 if k == broadcast else step for k, step in enumerate(steps)]
    values = draw(st.integers(0, 3))
    count = draw(st.integers(3, 8 - values))
    shape = ((2,) * count, (2,) * values) if values else ((2,) * count,)
    stride = (tuple(steps[:count]), tuple(steps[count : count + values])) if values else (tuple(steps[:count]),)
    return tw.Layout(shape, stride)


@examples(60)
@given(memories(), thread_layouts(), st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from(["ld", "st"]))
def test_layouts_of_memory_and_threads(memory, threads, itemsize, instruction):
    count = threads.mode(0).size
    values = threads.size // count
    index = [[threads(t + count * v) for v in range(values)] for t in range(count)]
    rows = [[int(memory(i)) for i in row] for row in index]
    active = [[bool(memory.valid(i)) for i in row] for row in index]
    for ask in ((memory, threads), (memory, np.array(index))):
        check_access(rows, active, itemsize, None, instruction, ask)


@examples(40)
@given(
    st.lists(st.integers(0, 60), min_size=32, max_size=32),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from(["ldmatrix", "stmatrix"]),
)
def test_matrix_instructions(starts, matrices, itemsize, name):
    """Eight threads at a time name rows of 16 bytes; the others name none, and nothing merges."""
    addresses = [16 * start for start in starts]
    phases = [range(8 * k, 8 * k + 8) for k in range(matrices)]
    expected = wavefronts_of(addresses, [True] * 32, phases, 16)
    offsets = np.array(addresses) // itemsize
    for rows in (offsets, offsets[:, None] + np.arange(16 // itemsize)):
        for end in ("", ".trans"):
            report = analysis.bank_conflicts(rows, itemsize=itemsize, instruction=f"{name}.x{matrices}{end}")
            assert report.phases == tuple(expected), f"{name}.x{matrices} {starts}"


def test_what_would_be_answered_wrongly_is_refused():
    memory = tw.Layout(32, 2)
    for arguments, options, reason in (
        ((memory, tw.Layout(33)), {}, "thread 32 accesses element 32 of 32:2"),
        ((memory, [0, -1]), {}, "thread 1 accesses element -1"),
        (([np.inf] * 4,), {}, "takes the offsets"),
        (([1e30] * 4,), {}, "takes the offsets"),
        (([[1], [2, 3]],), {}, "takes the offsets"),
        ((np.array([2**63], np.uint64),), {}, "too large"),
        ((np.array([2**62]),), {"itemsize": 16}, "too large"),
        ((memory,), {"active": range(32)}, "one True or False for each of 32"),
        ((memory,), {"active": "x" * 32}, "one True or False for each of 32"),
        ((tw.Layout(1 << 40),), {}, "at most"),
    ):
        for ask in (analysis.bank_conflicts, analysis.coalescing):
            with pytest.raises(LayoutError, match=reason):
                ask(*arguments, **options)
    with pytest.raises(LayoutError, match="expected a machine"):
        analysis.bank_conflicts(memory, machine="H200")
    for base in (2, -4, 1 << 63):
        with pytest.raises(LayoutError, match="base must be an address"):
            analysis.coalescing(memory, base=base)


def test_what_does_not_take_part():
    memory, column = tw.Layout((32, 32), (32, 1)), tw.Layout(32)
    # inactive threads may point anywhere, and masked offsets are not touched
    report = analysis.bank_conflicts(memory, np.arange(32) * 1000, active=[t < 1 for t in range(32)])
    assert (report.wavefronts, report.ideal) == (1, 1)
    assert analysis.bank_conflicts(np.ma.masked_array([0, 32, 64], mask=[0, 1, 0])).ways == 2
    padded = tw.with_logical_shape(memory, (5, 32))
    for threads in (column, np.arange(32)):
        assert analysis.bank_conflicts(padded, threads).ways == 5
    # vectors of a tensor are whole, also under threads
    tensor = tw.TileTensor(np.zeros(128, np.float32), tw.row_major(32, 4)).vectorize[1, 4]()
    for threads in (column, np.arange(32)):
        assert analysis.bank_conflicts(tensor, threads) == analysis.bank_conflicts(tensor)


def test_a_base_decides_what_is_aligned():
    rows = np.arange(128).reshape(32, 4)
    assert analysis.coalescing(rows).instructions == 1
    shifted = analysis.coalescing(rows, base=4)
    assert (shifted.instructions, shifted.used) == (3, 512)  # of one, two and one
    with pytest.raises(LayoutError, match="not vectors of 4"):
        analysis.coalescing(rows, base=8, vector=4)


def test_collisions_name_threads_of_the_block_and_phases_of_the_report():
    second = [[t, 32 * t] for t in range(32)]
    report = analysis.bank_conflicts([[t] * 2 for t in range(32)] + second)
    assert report.phases == (1, 1, 1, 32)
    (clash,) = report.collisions
    assert (clash.phase, clash.bank, clash.threads[:2]) == (3, 0, ((32,), (33,)))
    first, last = analysis.conflicts_by_warp([[t] * 2 for t in range(32)] + second)
    assert (first.conflict_free, last.ways, last.collisions[0].threads) == (True, 32, clash.threads)

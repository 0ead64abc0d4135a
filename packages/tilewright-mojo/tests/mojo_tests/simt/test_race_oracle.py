# SPDX-License-Identifier: Apache-2.0
"""Races of random programs, compared with brute force over all pairs of accesses."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright import TileTensor
from tilewright_mojo.simt import atomic_add, barrier, block_idx, shared_array, syncwarp, thread_idx
from tilewright_mojo.simt.kernel_thread import Dim
from tilewright_mojo.simt.machine import LaunchPlan, SimtMachine

WARP = 2
ELEMENTS = 3

# A program is a list of phases; after each there is a barrier of the block ("b") or of the warps ("w").
accesses = st.tuples(st.sampled_from("rwa"), st.integers(0, ELEMENTS - 1))
phases = st.tuples(st.lists(st.lists(accesses, max_size=3), min_size=4, max_size=4), st.sampled_from("bw"))
programs = st.lists(phases, min_size=1, max_size=4)


def interpret(memory, program, thread):
    for work, sync in program:
        for kind, element in work[thread]:
            if kind == "r":
                memory[element]
            elif kind == "w":
                memory[element] = thread
            else:
                atomic_add(memory, element, 1)
        if sync == "b":
            barrier()
        else:
            syncwarp()


def kernel_of_a_block(program):
    shared = shared_array(ELEMENTS, "int64")
    if thread_idx.x == 0:
        for k in range(ELEMENTS):
            shared[k] = 0
    barrier()
    interpret(shared, program, thread_idx.x)


def epochs(program):
    """Yield (phase, number of the barrier of the block, number of that of the warp) of each phase."""
    block = warp = 0
    for k, (_, sync) in enumerate(program):
        yield k, block, warp
        block, warp = block + (sync == "b"), warp + (sync == "w")


def conflict(a, b):
    return "w" in (a, b) or (a != b and "a" in (a, b))


def brute_force(program):
    """Return (barriers of the block before, element) of all races."""
    events = [
        (block, warp, thread, kind, element)
        for phase, block, warp in epochs(program)
        for thread, work in enumerate(program[phase][0])
        for kind, element in work
    ]
    racing = set()
    for (block, warp, thread, kind, element), other in combinations(events, 2):
        if other[0] != block or other[2] == thread or other[4] != element or not conflict(kind, other[3]):
            continue
        if thread // WARP == other[2] // WARP and warp != other[1]:
            continue  # a barrier of their warp is between them
        racing.add((block, element))
    return racing


@given(programs)
def test_races_within_a_block(program):
    machine = SimtMachine(LaunchPlan(kernel_of_a_block, (program,), Dim(1), Dim(4), warp=WARP, check="report"))
    machine.run()
    racing = {(epoch - 1, start // 8) for _, epoch, _, start in machine._races.racing}
    assert racing == brute_force(program)


def kernel_of_blocks(memory, program):
    for kind, element in program[block_idx.x]:
        if kind == "r":
            memory[element]
        elif kind == "w":
            memory[element] = 1
        else:
            atomic_add(memory, element, 1)


def first_of_each(work):
    return list(dict.fromkeys(work))


def flagged(one, other, access, access_2):
    """Return whether the first block sets a flag after its access that the second sees before its own."""
    after = {element for kind, element in one[one.index(access) + 1 :] if kind == "a"}
    before = {element for kind, element in other[: other.index(access_2)] if kind == "a"}
    return bool(after & before)


@given(st.lists(st.lists(accesses, max_size=3), min_size=3, max_size=3))
def test_races_between_blocks(program):
    memory = TileTensor(np.zeros(ELEMENTS, dtype=np.int64))
    machine = SimtMachine(LaunchPlan(kernel_of_blocks, (memory, program), Dim(3), Dim(1), check="report"))
    report = machine.run()
    expected = {
        element
        for one, other in combinations(program, 2)
        for kind, element in first_of_each(one)
        for kind_2, element_2 in first_of_each(other)
        if element == element_2 and conflict(kind, kind_2)
        if not flagged(one, other, (kind, element), (kind_2, element_2))
    }
    assert bool(report.errors) == bool(expected)
    assert {defect.kind for defect in report.errors} <= {"race between blocks"}
    named = {int(defect.element.partition("[")[2].rstrip("]")) for defect in report.errors}
    assert named <= expected

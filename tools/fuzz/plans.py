# SPDX-License-Identifier: Apache-2.0
"""A long random run of copy plans: every engine against a model in plain NumPy, with guards around all memory.

    python -m tools.fuzz.plans --plans 100000 --seed 1
    python -m tools.fuzz.plans --again 1/check_windows/12

The placements are those of the tests of `copying/`: strided, padded, guarded, reversed, swizzled, paged, composed, with
overlapping sources, of every scalar and block format, at any address. Each plan runs on the reference engine and on the
native one with one and several threads; a byte that no plan owns must stay as it was, and what
a plan says of itself must be what happened. Built with a small
TW_BYTES_PER_THREAD (make fuzz-plans does), the native library shares out even the smallest of them.

Plans are drawn in batches, and each batch has a seed of its own. That of a failure is printed, and --again runs it.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from tests.copying.models import POISON, SCALARS, any_bits, fitting, numbers, padding, ragged_plan
from tests.copying.strategies import SOURCES, TARGETS, Side, layouts, pairs
from tests.copying.test_plan_truth import check_truth
from tests.copying.test_random_plans import (
    Memory,
    block_sides,
    copied_one_by_one,
    filled_memory,
    fills,
    formats,
    physical,
    scalar_sides,
    seeds,
)
from tests.memory.strategies import specs

from tilewright.copying import Placement, execute, native, plan_copy
from tilewright.copying.engine import make_runner
from tilewright.copying.placement import LoopNest
from tilewright.copying.plan import Plan
from tilewright.formats import BLOCK_FORMATS, BlockFormat, cast, format_of
from tilewright.layout import Layout, PagedLayout, compose
from tilewright.memory import from_bytes, to_bytes

BATCH = 100  # draws that share a seed
ONE_BY_ONE = 60  # elements that the slowest model walks; larger plans take their places from tables of offsets
THREADS = (1, 2, 5)
shifts = st.tuples(*[st.integers(0, 8)] * 2)
DRAWN: dict[str, dict[str, Any]] = {}


def drawn(**strategies: Any) -> Callable[[Any], Any]:
    """Return a decorator that notes what a check is to be given; each batch draws it with a seed of its own."""

    def note(check: Any) -> Any:
        DRAWN[check.__name__] = strategies
        return check

    return note


def runs(plan: Plan) -> Iterator[tuple[str, Callable[[Any, Any], None]]]:
    """Yield every way to carry out a plan on the host."""
    yield "reference", lambda source, target: execute(plan, source, target, engine="reference")
    if not native.can_run(plan):
        return
    for count in THREADS:
        yield (
            f"native, {count} threads",
            lambda source, target, count=count: execute(plan, source, target, count, "native"),  # type: ignore[misc]
        )
    if not isinstance(plan.target.format, BlockFormat):
        row = make_runner(plan, 2, "native", streaming=True)
        yield "streaming", lambda source, target: row(source.ctypes.data, target.ctypes.data)


def check_runs(plan: Plan, source: Memory, before: Memory, wanted: Any) -> None:
    """Assert that every engine leaves exactly the wanted bytes, and the source as it was."""
    untouched = source.bytes.copy()
    start = before.bytes.copy()
    for name, run in runs(plan):
        before.bytes[...] = start
        run(source.elements, before.elements)
        wrong = np.flatnonzero(before.bytes != wanted)
        assert not wrong.size, f"{name}: {wrong.size} bytes are wrong, the first at {wrong[0] - before.start}"
        assert np.array_equal(source.bytes, untouched), f"{name}: the source was written to"


def common_box(source: Side, target: Side) -> tuple[slice, ...]:
    return tuple(slice(min(a, b)) for a, b in zip(source.data, target.data, strict=True))


def copied_by_offsets(source: Side, target: Side, memory: Memory, elements: Any, fill: Any, shift: int) -> Memory:
    """Return what the memory of the target should be, from the places of both layouts."""
    after = Memory(int(target.layout.cosize), format_of(elements[1]).dtype, shift)
    after.elements[target.layout.offsets().reshape(-1)] = padding(fill, *elements)
    box = common_box(source, target)
    at, to = source.layout.offsets()[box].reshape(-1), target.layout.offsets()[box].reshape(-1)
    after.elements[to] = cast(memory.elements[at], elements[1])
    return after


@drawn(pair=pairs(), kinds=st.lists(formats, min_size=4, max_size=4), fill=fills, seed=seeds, shift=shifts)
def check_copies(outcomes, pair, kinds, fill, seed, shift):
    """Copy between one pair of placements in several pairs of formats: drawing takes longer than copying."""
    for elements in kinds:
        check_copy(outcomes, pair, elements, fill, seed, shift)


def check_copy(outcomes, pair, elements, fill, seed, shift):
    source, target = pair.source, pair.target
    memory, fill = filled_memory(source, elements[0], seed, shift[0]), fitting(fill, elements[0])
    model = copied_one_by_one if prod(target.extents) <= ONE_BY_ONE else copied_by_offsets
    wanted = model(source, target, memory, elements, fill, shift[1])
    plan = ragged_plan(Placement(source.layout, elements[0]), Placement(target.layout, elements[1], fill))
    check_runs(plan, memory, Memory(int(target.layout.cosize), wanted.dtype, shift[1]), wanted.bytes)
    if prod(target.extents) <= ONE_BY_ONE:
        check_truth(plan, source, target, memory.elements)
    outcomes.update(kinds_of(plan.nests))


@drawn(pair=pairs(largest=70, most=20_000), elements=formats, fill=fills, seed=seeds, shift=shifts)
def check_larger_copies(outcomes, pair, elements, fill, seed, shift):
    source, target = pair.source, pair.target
    memory, fill = filled_memory(source, elements[0], seed, shift[0]), fitting(fill, elements[0])
    wanted = copied_by_offsets(source, target, memory, elements, fill, shift[1])
    plan = ragged_plan(Placement(source.layout, elements[0]), Placement(target.layout, elements[1], fill))
    check_runs(plan, memory, Memory(int(target.layout.cosize), wanted.dtype, shift[1]), wanted.bytes)
    outcomes.update(kinds_of(plan.nests))


@st.composite
def shuffled_pages(draw: Any, count: int) -> PagedLayout:
    """Return at least `count` places, in pages whose order is not that of memory, with gaps between them."""
    page = draw(st.integers(1, 9))
    slots = draw(st.permutations(range(-(-count // page) + draw(st.integers(0, 2)))))
    span = page + draw(st.integers(0, 3))
    return PagedLayout(page, [slot * span for slot in slots[: -(-count // page)]])


@st.composite
def shared_targets(draw: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return extents, and layouts that all fit in one memory: each lies in the gaps that the others leave."""
    extents = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    layout = draw(layouts(extents, draw(st.sampled_from(TARGETS))))
    if draw(st.booleans()):
        layout = compose(draw(shuffled_pages(int(layout.cosize))), layout)
    count, span = draw(st.integers(1, 3)), int(layout.cosize)
    if draw(st.booleans()):
        return extents, [compose(Layout(span, count) + k, layout) for k in range(count)]
    return extents, [compose(Layout(span) + k * span, layout) for k in range(count)]


@drawn(targets=shared_targets(), elements=formats, seed=seeds, shift=shifts, data=st.data())
def check_windows(outcomes, targets, elements, seed, shift, data):
    """Fill one memory from many sources: copies of a tensor, each in two windows, each from a source of its own."""
    extents, places = targets
    mode = data.draw(st.integers(0, len(extents) - 1))
    cut = data.draw(st.integers(0, extents[mode]))
    span = max(int(each.cosize) for each in places)
    memory, wanted = (Memory(span, format_of(elements[1]).dtype, shift[1]) for _ in range(2))
    windows = [(start, stop) for start, stop in ((0, cut), (cut, extents[mode])) if start < stop]
    for layout in data.draw(st.permutations(places)):
        for start, stop in windows:
            nests = [Layout(n) for n in extents]
            nests[mode] = Layout(stop - start) + start
            window = compose(layout, tuple(nests))
            shape = tuple(stop - start if k == mode else n for k, n in enumerate(extents))
            source = Side(data.draw(layouts(shape, data.draw(st.sampled_from(SOURCES)))), shape, shape)
            given_ = filled_memory(source, elements[0], seed, shift[0])
            inside = tuple(slice(start, stop) if k == mode else slice(None) for k in range(len(extents)))
            to = layout.offsets().reshape(extents)[inside].reshape(-1)
            at = source.layout.offsets().reshape(-1)
            wanted.elements[to] = cast(given_.elements[at], elements[1])
            plan = plan_copy(Placement(source.layout, elements[0]), Placement(window, elements[1]))
            check_runs(plan, given_, memory, wanted.bytes)
            outcomes["window"] += 1


blocks = st.sampled_from(sorted(BLOCK_FORMATS))


@drawn(name=blocks, source_format=st.sampled_from(SCALARS), fill=fills, seed=seeds, shift=shifts, data=st.data())
def check_packing(outcomes, name, source_format, fill, seed, shift, data):
    element = BLOCK_FORMATS[name]
    target, tile = data.draw(block_sides(element.block))
    source = data.draw(scalar_sides(target))
    memory, fill = filled_memory(source, source_format, seed, shift[0]), fitting(fill, source_format)
    values = np.full(target.extents, padding(fill, source_format, "float32"), dtype=np.float32)
    box = common_box(source, target)
    values[box] = cast(memory.elements[source.layout.offsets()[box]], "float32")
    place = Placement(target.layout, element, fill, tile_elements=tile)
    packed(place, element.pack(physical(target, values), tile_elements=tile), memory, source, source_format, shift[1])
    outcomes["packed"] += 1


def packed(place: Placement, whole: Any, memory: Memory, source: Side, element: Any, shift: int) -> None:
    before, wanted = (Memory(place.nbytes, np.uint8, shift) for _ in range(2))
    wanted.elements[...] = whole
    check_runs(ragged_plan(Placement(source.layout, element), place), memory, before, wanted.bytes)


def packed_side(side: Side, element: BlockFormat, tile: int, seed: int, shift: int) -> tuple[Memory, Any]:
    """Return memory with packed numbers, and these numbers by their places."""
    whole = element.pack(numbers(np.random.default_rng(seed), (prod(side.extents),)), tile_elements=tile)
    memory = Memory(whole.size, np.uint8, shift)
    memory.elements[...] = whole
    return memory, element.unpack(whole, tile_elements=tile)


@drawn(name=blocks, target_format=st.sampled_from(SCALARS), fill=fills, seed=seeds, shift=shifts, data=st.data())
def check_unpacking(outcomes, name, target_format, fill, seed, shift, data):
    element = BLOCK_FORMATS[name]
    source, tile = data.draw(block_sides(element.block))
    target = data.draw(scalar_sides(source))
    memory, flat = packed_side(source, element, tile, seed, shift[0])
    before, wanted = (Memory(int(target.layout.cosize), format_of(target_format).dtype, shift[1]) for _ in range(2))
    wanted.elements[target.layout.offsets().reshape(-1)] = cast(np.asarray(fill), target_format)
    box = common_box(source, target)
    wanted.elements[target.layout.offsets()[box]] = cast(flat[source.layout.offsets()[box]], target_format)
    place = Placement(source.layout, element, tile_elements=tile)
    check_runs(ragged_plan(place, Placement(target.layout, target_format, fill)), memory, before, wanted.bytes)
    outcomes["unpacked"] += 1


@drawn(names=st.tuples(blocks, blocks), fill=fills, seed=seeds, shift=shifts, data=st.data())
def check_repacking(outcomes, names, fill, seed, shift, data):
    first, second = (BLOCK_FORMATS[name] for name in names)
    source, tile = data.draw(block_sides(first.block))
    target, other_tile = data.draw(block_sides(second.block))
    memory, flat = packed_side(source, first, tile, seed, shift[0])
    values = np.full(target.extents, cast(np.asarray(fill), "float32"), dtype=np.float32)
    box = common_box(source, target)
    values[box] = flat[source.layout.offsets()[box]]
    place = Placement(target.layout, second, fill, tile_elements=other_tile)
    before, wanted = (Memory(place.nbytes, np.uint8, shift[1]) for _ in range(2))
    wanted.elements[...] = second.pack(physical(target, values), tile_elements=other_tile)
    plan = ragged_plan(Placement(source.layout, first, tile_elements=tile), place)
    check_runs(plan, memory, before, wanted.bytes)
    check_truth(plan, source, target, memory.elements)
    outcomes["repacked"] += 1


@drawn(spec=specs(), element=st.sampled_from(SCALARS), seed=seeds, fill=st.integers(-3, 3))
def check_tensors(outcomes, spec, element, seed, fill):
    """Tensors of a chip, sharded and interleaved in all ways, to pages and back: engines agree, and values return."""
    shape = spec.shape.logical
    values, fill = any_bits(np.random.default_rng(seed), shape, element), fitting(fill, element)
    found = []
    for name in ("reference", "native"):
        os.environ["TILEWRIGHT_ENGINE"] = name
        try:
            memory = Memory(spec.nbytes, np.uint8, 3)
            to_bytes(values, spec, fill, memory.elements)
            found.append((memory.bytes, from_bytes(memory.elements, spec).tobytes()))
            assert (memory.bytes[: memory.start] == POISON).all(), f"{name}: written before the pages"
            assert (memory.bytes[memory.start + spec.nbytes :] == POISON).all(), f"{name}: written behind the pages"
        finally:
            del os.environ["TILEWRIGHT_ENGINE"]
    assert np.array_equal(found[0][0], found[1][0]), "the engines wrote different pages"
    assert found[0][1] == found[1][1], "the engines read different values"
    if not isinstance(spec.dtype, BlockFormat):
        assert found[0][1] == cast(values, spec.dtype).tobytes(), "other values came back"
    outcomes["tensor"] += 1


def kinds_of(nests: tuple[LoopNest, ...]) -> Counter[str]:
    return Counter({"by table" if any(nest.tabulated for nest in nests) else "strided": 1})


# How many times each is drawn for a plan asked for; some draws make several plans.
CHECKS: list[tuple[Any, float]] = [
    (check_copies, 0.14),
    (check_larger_copies, 0.04),
    (check_windows, 0.04),
    (check_packing, 0.1),
    (check_unpacking, 0.1),
    (check_repacking, 0.06),
    (check_tensors, 0.06),
]


def run_batch(check: Any, seed: str, count: int, outcomes: Counter[str]) -> None:
    """Run so many random plans of one kind, the same ones for the same seed."""
    number = random.Random(seed).getrandbits(64)
    chosen = settings(
        max_examples=count,
        phases=[Phase.generate, Phase.shrink],
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )

    def one(**values: Any) -> None:
        check(outcomes, **values)

    seeded(number)(chosen(given(**DRAWN[check.__name__])(one)))()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--plans", type=int, default=10_000, help="how many random plans to try")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--again", metavar="SEED", help="run the batch of this seed")
    options = arguments.parse_args()
    if not native.is_available():
        raise SystemExit(f"there is nothing to compare with the reference engine: {native.unavailable_reason()}")
    outcomes: Counter[str] = Counter()
    if options.again:
        name = options.again.split("/")[1]
        run_batch(next(check for check, _ in CHECKS if check.__name__ == name), options.again, BATCH, outcomes)
        return 0
    features = native.load_library().tw_cpu_features().decode()
    print(f"seed {options.seed}, native library {native.load_library()._name} with {features}", flush=True)
    failures, started = 0, time.monotonic()
    for check, share in CHECKS:
        count = round(options.plans * share)
        for batch in range(-(-count // BATCH)):
            seed = f"{options.seed}/{check.__name__}/{batch}"
            try:
                run_batch(check, seed, min(BATCH, count - batch * BATCH), outcomes)
            except Exception as problem:
                failures += 1
                print(f"FAILED {seed}: {type(problem).__name__}: {problem}", file=sys.stderr)
                for note in getattr(problem, "__notes__", ()):
                    print(note, file=sys.stderr)
        print(f"{check.__name__}: {outcomes.total()} plans so far, {time.monotonic() - started:.0f} s", flush=True)
    kinds = ", ".join(f"{n} {name}" for name, n in outcomes.most_common())
    print(f"{outcomes.total()} plans: {kinds}; {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

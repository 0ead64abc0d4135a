# SPDX-License-Identifier: Apache-2.0
"""A long random run over the algebra: every pair composes, and every result obeys its law.

    python tools/fuzz/compose.py --pairs 100000 --seed 1
    python tools/fuzz/compose.py --again 1/check_compose/4711

Prints how the compositions came out, and exits with 1 if a single one was wrong or refused. The seed of a failure is
printed with it, and --again runs that one case.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import tilewright as tw
from tilewright import Layout, cute


def random_shape(rng: random.Random, budget: int, depth: int = 0) -> Any:
    """Return a random shape of at most `budget` elements, nested up to three deep."""
    if depth == 3 or rng.random() < 0.45:
        return rng.randint(1, max(1, min(budget, 12)))
    modes = []
    for _ in range(rng.randint(1, 3)):
        mode = random_shape(rng, budget, depth + 1)
        if cute.size(mode) > budget:
            mode = 1
        budget //= cute.size(mode)
        modes.append(mode)
    return tuple(modes)


def random_layout(rng: random.Random, budget: int, cosize: int | None = None) -> Layout:
    """Return a random layout: compact, padded, broadcast, overlapping, reversed or plain random strides."""
    shape = random_shape(rng, budget)
    leaves = cute.flatten(shape)
    kind = rng.randrange(5)
    if kind == 0:
        steps = [rng.choice([0, 1, 2, 3, 4, 5, 6, 8, 12, 16]) for _ in leaves]
    else:
        order = list(range(len(leaves)))
        rng.shuffle(order)
        steps, step = [0] * len(leaves), 1
        for k in order:
            steps[k] = 0 if kind == 2 and rng.random() < 0.3 else step
            step = step * leaves[k] + (rng.randint(0, 3) if kind == 3 else 0)
        if kind == 4:
            steps = [-s if rng.random() < 0.3 else s for s in steps]
    layout = Layout(shape, cute.unflatten(tuple(steps), shape) if isinstance(shape, tuple) else steps[0])
    low, high = layout.bounds
    layout = layout - low + (rng.randint(0, 4) if rng.random() < 0.2 else 0)
    if cosize is not None and high - low >= cosize:
        return random_layout(rng, max(1, budget // 2), cosize)
    return layout


def check_compose(rng: random.Random, outcomes: Counter[str]) -> None:
    outer = random_layout(rng, 96) if rng.random() < 0.9 else tw.pad(Layout(rng.randint(1, 50)), 64)
    inside = rng.random() < 0.6
    inner = random_layout(rng, 96, outer.size if inside else None)
    result = tw.compose(outer, inner)
    assert result.size == inner.size, f"size {result.size} is not {inner.size}"
    assert cute.compatible(inner, result), f"shape {result.shape} does not refine {inner.shape}"
    for i in range(inner.size):
        at = inner(i)
        assert result(i) == outer.extended(at), f"wrong at {i}: {result(i)} is not {outer.extended(at)}"
        assert result.valid(i) == (inner.valid(i) and outer.valid(at)), f"validity wrong at {i}"
    outcomes["strided" if isinstance(result, Layout) else "composed"] += 1


def check_inverses(rng: random.Random, outcomes: Counter[str]) -> None:
    layout = random_layout(rng, 96)
    layout = layout - layout.offset
    right = tw.right_inverse(layout)
    for i in range(right.size):
        assert layout(right(i)) == i, f"right inverse {right} wrong at {i}"
    injective = len({layout(i) for i in range(layout.size)}) == layout.size
    assert tw.is_injective(layout) == injective, "is_injective"
    places = sorted(layout(i) for i in range(layout.size))
    assert tw.is_bijective(layout) == (places == list(range(layout.size))), "is_bijective"
    try:
        left = tw.left_inverse(layout)
    except tw.LayoutError:
        assert not injective, "left inverse of an injective layout refused"
        outcomes["not invertible"] += 1
        return
    used = {layout(i) for i in range(layout.size)}
    for i in range(layout.size):
        assert layout(left(layout(i))) == layout(i), f"left inverse {left} wrong at {i}"
        assert not injective or left(layout(i)) == i, f"left inverse {left} wrong at {i}"
    if injective and min(used) >= 0:
        assert all(left.valid(x) == (x in used) for x in range(layout.cosize)), f"validity of {left}"
    outcomes["inverted"] += 1


def check_complement(rng: random.Random, outcomes: Counter[str]) -> None:
    layout = random_layout(rng, 48)
    layout = layout - layout.offset
    bound = rng.randint(1, 200)
    try:
        free = tw.complement(layout, bound)
    except tw.LayoutError as problem:
        if "negative" not in str(problem) and tw.is_injective(cute.filter(layout)):
            raise
        outcomes["no complement"] += 1
        return
    values = [free(i) for i in range(free.size)]
    assert all(a < b for a, b in pairwise(values)), f"{free} is not increasing"
    image = {layout(i) for i in range(layout.size)}
    assert image & set(values) == {0}, f"{free} meets the image"
    assert tw.layout.join(layout, free).cosize >= bound, f"{free} does not reach {bound}"
    if free.size > 1 and cute.as_tuple(free.stride)[-1] > max(image):
        *shape, last = cute.as_tuple(free.shape)
        fewer = Layout((*shape, last - 1), cute.as_tuple(free.stride))
        assert tw.layout.join(layout, fewer).cosize < bound, f"{free} overshoots {bound}"
    sums = [a + b for a in image for b in values]
    assert len(sums) == len(set(sums)), f"copies of {layout} at {free} collide"
    outcomes["complemented"] += 1


def check_divide(rng: random.Random, outcomes: Counter[str]) -> None:
    layout = random_layout(rng, 96)
    tiler: Any = rng.randint(1, 12)
    if isinstance(layout.shape, tuple) and rng.random() < 0.6:
        tiler = tuple([rng.choice([None, rng.randint(1, 7)]) for _ in range(rng.randint(1, layout.rank))])
    divided = tw.logical_divide(layout, tiler)
    expected = Counter(layout(i) for i in range(layout.size))
    for form in (
        divided,
        tw.zipped_divide(layout, tiler),
        tw.layout.tiled_divide(layout, tiler),
        tw.layout.flat_divide(layout, tiler),
    ):
        found = Counter(form(i) for i in range(form.size) if form.valid(i))
        assert found == expected, f"divide by {tiler} gave {form}"
    outcomes["ragged" if divided.size > layout.size else "divided"] += 1


def check_product(rng: random.Random, outcomes: Counter[str]) -> None:
    block = random_layout(rng, 24)
    block = block - block.offset
    copies = random_layout(rng, 12)
    copies = copies - copies.offset
    if min(copies.bounds[0], block.bounds[0]) < 0 or not tw.is_injective(cute.filter(block)):
        return
    result = tw.logical_product(block, copies)
    assert result.size == block.size * copies.size
    shifts: dict[int, int] = {}
    for j in range(copies.size):
        start = result(0, j)
        assert [result(i, j) - start for i in range(block.size)] == [block(i) for i in range(block.size)]
        assert shifts.setdefault(copies(j), start) == start, "equal positions, different copies"
    image = {block(i) for i in range(block.size)}
    places = [start + at for start in shifts.values() for at in image]
    assert len(places) == len(set(places)), f"copies collide in {result}"
    for form in (tw.blocked_product(block, copies), tw.layout.raked_product(block, copies)):
        assert Counter(form(i) for i in range(form.size)) == Counter(result(i) for i in range(result.size))
    outcomes["multiplied"] += 1


CHECKS: list[tuple[Callable[[random.Random, Counter[str]], None], float]] = [
    (check_compose, 1.0),
    (check_inverses, 0.2),
    (check_complement, 0.2),
    (check_divide, 0.2),
    (check_product, 0.1),
]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pairs", type=int, default=100_000, help="how many compositions to try")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--again", metavar="SEED", help="run the one case of this seed")
    options = arguments.parse_args()
    outcomes: Counter[str] = Counter()
    if options.again:
        name = options.again.split("/")[1]
        next(check for check, _ in CHECKS if check.__name__ == name)(random.Random(options.again), outcomes)
        return 0
    failures = 0
    started = time.monotonic()
    for check, share in CHECKS:
        count = int(options.pairs * share)
        for number in range(count):
            seed = f"{options.seed}/{check.__name__}/{number}"
            try:
                check(random.Random(seed), outcomes)
            except Exception as problem:
                failures += 1
                print(f"FAILED {seed}: {type(problem).__name__}: {problem}", file=sys.stderr)
                if failures > 20:
                    return 1
        print(f"seed {options.seed}: {check.__name__} {count} times, {time.monotonic() - started:.0f} s", flush=True)
    print(", ".join(f"{count} {name}" for name, count in outcomes.most_common()), f"; {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

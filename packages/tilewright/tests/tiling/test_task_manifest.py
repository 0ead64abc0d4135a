# SPDX-License-Identifier: Apache-2.0
"""A manifest belongs to its work: another compute, source, target or cut is refused, and nothing is skipped wrongly."""

import functools
import importlib
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from tilewright import TransferError
from tilewright.tiling import plan_tiles
from tilewright.tiling.manifest import UnidentifiedError, fingerprint_compute

FACTOR = 2


def doubled(x, y):
    np.multiply(x, 2, out=y)


def halved(x, y):
    np.divide(x, 2, out=y)


def by_global(x, y):
    np.multiply(x, FACTOR, out=y)


def helper(x):
    return x + 1


def by_helper(x, y):
    y[...] = helper(x)


def by_default(x, y, factor=2):
    np.multiply(x, factor, out=y)


def scaled(factor):
    def scale(x, y):
        np.multiply(x, factor, out=y)

    return scale


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x, y):
        np.multiply(x, self.factor, out=y)

    def negative(self, x, y):
        np.multiply(x, -self.factor, out=y)


class Table:
    def __init__(self, *values):
        self.values = np.array(values)

    def __call__(self, x, y):
        y[...] = self.values[0] * x


SAME = [
    (lambda: doubled),
    (lambda: np.negative),
    (lambda: np.clip),
    (lambda: functools.partial(by_default, factor=3)),
    (lambda: scaled(3)),
    (lambda: scaled({"a": [1.5, {2, 3}], "b": np.arange(3)})),
    (lambda: Scale(3)),
    (lambda: Scale(3).negative),
    (lambda: Table(1.0, 2.0)),
    (lambda: by_global),
    (lambda: by_helper),
]


def test_computes_are_told_apart_by_what_they_do():
    prints = [fingerprint_compute(make()) for make in SAME]
    assert prints == [fingerprint_compute(make()) for make in SAME]
    others = [
        halved,
        by_default,
        np.positive,
        np.add,
        functools.partial(by_default, factor=4),
        functools.partial(by_default, 3),
        functools.partial(doubled),
        scaled(4),
        scaled(3.0),
        scaled(True),
        scaled("3"),
        scaled([3]),
        scaled((3,)),
        scaled({"a": [1.5, {2, 4}], "b": np.arange(3)}),
        scaled({"a": [1.5, {2, 3}], "b": np.arange(3.0)}),
        scaled({"b": np.arange(3), "a": [1.5, {2, 3}]}),
        scaled(scaled(3)),
        Scale(4),
        Scale(3.0),
        Scale(4).negative,
        Table(1.0, 3.0),
    ]
    prints += [fingerprint_compute(compute) for compute in others]
    assert len(set(prints)) == len(prints)


def test_what_a_function_uses_is_part_of_it(monkeypatch):
    before = [fingerprint_compute(compute) for compute in (by_global, by_helper, by_default, Scale(3))]
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3)
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda x: x + 2)
    monkeypatch.setattr(by_default, "__defaults__", (3,))
    monkeypatch.setattr(Scale, "__call__", halved)
    after = [fingerprint_compute(compute) for compute in (by_global, by_helper, by_default, Scale(3))]
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_a_module_that_was_edited_is_other_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    prints = set()
    for text in ("SHIFT = 1", "SHIFT = 2", "def shift(x):\n    return x", "def shift(x):\n    return -x"):
        (tmp_path / "edited_helpers.py").write_text(f"SHIFT = 0\ndef shift(x):\n    return x + 7\n{text}\n")
        (tmp_path / "edited_compute.py").write_text(
            "import edited_helpers\ndef compute(x, y):\n    y[...] = edited_helpers.shift(x) + edited_helpers.SHIFT\n"
        )
        for name in ("edited_helpers", "edited_compute"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        prints.add(fingerprint_compute(importlib.import_module("edited_compute").compute))
    assert len(prints) == 4


def test_what_has_no_value_cannot_be_told_apart():
    lock, numbers = threading.Lock(), (n for n in [1])
    for compute in (
        lambda x, y: np.copyto(y, x),
        functools.partial(lambda x, y: np.copyto(y, x)),
        scaled(lock),
        scaled(numbers),
        scaled([{"a": lock}]),
        Scale(open),  # a function of Python is known ...
        Scale(sys.stdout),  # and a file is not
        np.frompyfunc(lambda x: x, 1, 1),
    ):
        if isinstance(compute, Scale) and compute.factor is open:
            assert fingerprint_compute(compute)
            continue
        with pytest.raises(UnidentifiedError):
            fingerprint_compute(compute)


def test_a_compute_that_was_sent_is_the_same():
    """Pickling an instance leaves a note in its class, which was taken for a change of the code."""

    class Local(Scale):
        pass

    before = fingerprint_compute(Local(3))
    Local(3).__reduce_ex__(2)  # as pickle does
    assert "__slotnames__" in vars(Local)
    assert fingerprint_compute(Local(3)) == before


def test_fingerprints_are_the_same_in_every_process():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_print_of, range(len(SAME)))) == [_print_of(k) for k in range(len(SAME))]


def _print_of(k):
    return fingerprint_compute(SAME[k]())


# Manifests.


def sources(tmp_path):
    """Yield a source of each kind, with a way to make it another one of the same shape."""
    values = np.arange(24.0)
    array = values.copy()
    yield "array", lambda: array, lambda: array.__setitem__(17, -1)
    yield "other array", iter([values, values + 1, values + 1]).__next__, lambda: None
    np.save(tmp_path / "a.npy", values)
    yield "file", lambda: tmp_path / "a.npy", lambda: np.save(tmp_path / "a.npy", values + 1)
    np.save(tmp_path / "b.npy", values)
    mapped = np.load(tmp_path / "b.npy", mmap_mode="r+")
    mapped[3] = 3  # its page is dirty from here on: writing to it again leaves the time of the file as it is
    yield "map", lambda: mapped, lambda: mapped.__setitem__(17, -1)
    part = np.lib.format.open_memmap(tmp_path / "c.npy", "w+", "f8", (48,))
    part[...] = 1
    yield "part of a map", lambda: part[::2], lambda: part.__setitem__(34, -1)
    zarr = pytest.importorskip("zarr")
    for name, store in (("zarr", str(tmp_path / "a.zarr")), ("memory", zarr.storage.MemoryStore())):
        stored = zarr.open(store, mode="w", shape=(24,), chunks=(8,), dtype="f8")
        stored[:] = values
        yield name, lambda stored=stored: stored, lambda stored=stored: stored.__setitem__(17, -1)
    h5py = pytest.importorskip("h5py")
    file = h5py.File(tmp_path / "a.h5", "w")
    file["x"], file["y"] = values, values
    yield "HDF5", lambda: file["x"], lambda: file["x"].__setitem__(17, -1)
    yield "other dataset", iter([file["x"], file["y"], file["y"]]).__next__, lambda: None


def test_a_source_that_changed_is_refused(tmp_path):
    """Only .npy files were compared: other sources were skipped, and the result stale."""
    for name, source, change in sources(tmp_path):
        target, done = np.zeros(24), tmp_path / f"{name}.jsonl"
        plan = plan_tiles(source(), target, tile=(4,))
        assert plan.run(doubled, manifest=done).tasks == 6, name
        if not name.startswith("other"):
            assert plan.run(doubled, manifest=done).skipped == 6, name
        change()
        with pytest.raises(TransferError, match=r"(?i)source .*remove"):
            plan_tiles(source(), target, tile=(4,)).run(doubled, manifest=done)
        done.unlink()
        current = source()
        plan_tiles(current, target, tile=(4,)).run(doubled, manifest=done)
        values = np.load(current) if isinstance(current, type(tmp_path)) else np.asarray(current[:])
        assert (target == 2 * values).all(), name


def test_another_compute_is_refused(tmp_path):
    target = np.zeros(24)
    plan = plan_tiles(np.arange(24.0), target, tile=(4,))
    pairs = [
        (doubled, halved),
        (scaled(2), scaled(3)),
        (Scale(2), Scale(3)),
        (functools.partial(by_default, factor=2), functools.partial(by_default, factor=3)),
        (np.negative, np.positive),
        (doubled, lambda x, y: np.divide(x, 2, out=y)),
    ]
    for k, (one, other) in enumerate(pairs):
        done = tmp_path / f"{k}"
        assert plan.run(one, manifest=done).tasks == 6
        assert plan.run(one, manifest=done).skipped == 6
        before = target.copy()
        with pytest.raises(TransferError, match=r"belongs to another plan: compute was .* Remove it"):
            plan.run(other, manifest=done)
        assert (target == before).all()


def test_a_lambda_needs_a_tag(tmp_path):
    target = np.zeros(24)
    plan = plan_tiles(np.arange(24.0), target, tile=(4,))
    assert plan.run(lambda x, y: np.multiply(x, 2, out=y), manifest=tmp_path / "m").tasks == 6
    with pytest.raises(TransferError, match=r"the compute is a lambda, which has no name; name the compute with tag="):
        plan.run(lambda x, y: np.multiply(x, 2, out=y), manifest=tmp_path / "m")
    assert plan.run(lambda x, y: np.multiply(x, 2, out=y), manifest=tmp_path / "t", tag="double").tasks == 6
    assert plan.run(lambda x, y: np.multiply(x, 2, out=y), manifest=tmp_path / "t", tag="double").skipped == 6
    for tag in ("halve", None):
        with pytest.raises(TransferError, match=r"belongs to another plan: compute was {'tag': 'double'"):
            plan.run(doubled, manifest=tmp_path / "t", tag=tag)
    with pytest.raises(TransferError, match="belongs to another plan: compute was"):
        plan.run(doubled, manifest=tmp_path / "m", tag="double")


def test_another_target_is_refused_and_an_empty_one_filled(tmp_path):
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.zeros(24))
    plan_tiles(np.arange(24.0), tmp_path / "a.npy", tile=(4,)).run(doubled, manifest=tmp_path / "m")
    with pytest.raises(TransferError, match=r"target 0 was {'path': .*a\.npy'} and is now {'path': .*b\.npy'}"):
        plan_tiles(np.arange(24.0), tmp_path / "b.npy", tile=(4,)).run(doubled, manifest=tmp_path / "m")
    np.save(tmp_path / "a.npy", np.zeros(24))
    assert plan_tiles(np.arange(24.0), tmp_path / "a.npy", tile=(4,)).run(doubled, manifest=tmp_path / "m").tasks == 6
    np.save(tmp_path / "a.npy", np.zeros(24, np.float32))
    with pytest.raises(TransferError, match=r"target 0 was {'dtype': '<f8'} and is now {'dtype': '<f4'}"):
        plan_tiles(np.arange(24.0), tmp_path / "a.npy", tile=(4,)).run(doubled, manifest=tmp_path / "m")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_that_stopped_anywhere_goes_on_to_the_same_result(tmp_path, workers):
    """Whatever was interrupted, changed or damaged in between, the result is that of a run in one go, or is refused."""
    random = np.random.default_rng(11)
    source, target = random.standard_normal((30, 20)), np.zeros((30, 20))

    class StoppedError(Exception):
        """Raised by the progress callback."""

    for number in range(12):
        done, stop = tmp_path / f"{number}", int(random.integers(1, 12))
        target[...] = 0
        plan = plan_tiles(source, target, tile=(8, 7), order="snake")

        def progress(count, _, stop=stop):
            if count == stop:
                raise StoppedError

        with ThreadPoolExecutor(2) as pool:
            executor = pool if workers else None
            with pytest.raises(StoppedError):
                plan.run(doubled, executor, manifest=done, progress=progress)
            if number % 3 == 1:
                target[random.integers(30), random.integers(20)] += 1
            if number % 3 == 2:
                with done.open("ab") as file:
                    file.write(b'{"done": 3, "re')
            report = plan.run(doubled, executor, manifest=done)
        assert report.tasks + report.skipped == len(plan)
        assert (target == 2 * source).all()

# SPDX-License-Identifier: Apache-2.0
"""Manifests of parts, merged: the plan resumes from them, and says what is missing, repeated or not its own."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import TransferError
from tilewright.tiling import plan_tiles
from tilewright.tiling.manifest import Checksums, TaskManifest, TaskRecords

from ..cases import examples


def doubled(x, y):
    np.multiply(x, 2, out=y)


def halved(x, y):
    np.divide(x, 2, out=y)


def numbers_of(ranges):
    return [number for span in ranges for number in span]


@examples(40)
@given(st.integers(1, 30), st.lists(st.tuples(st.integers(0, 7), st.integers(1, 8)), min_size=1, max_size=6))
def test_the_plan_resumes_from_its_parts(tmp_path_factory, count, parts):
    folder = tmp_path_factory.mktemp("parts")
    source, target = np.arange(1.0, count + 1), np.zeros(count)
    plan = plan_tiles(source, target, tile=(1,))
    paths, times = [], np.zeros(count, int)
    for k, (i, n) in enumerate(parts):
        part = plan.part(i % n, n)
        part.run(doubled, manifest=folder / f"{k}")
        times[part.first : part.last] += 1
        paths.append(folder / f"{k}")
    merged = plan.merge_manifests(paths, folder / "all")
    assert merged.done == np.count_nonzero(times)
    assert numbers_of(merged.missing) == np.flatnonzero(times == 0).tolist()
    assert numbers_of(merged.repeated) == np.flatnonzero(times > 1).tolist()
    report = plan.run(doubled, manifest=folder / "all")
    assert (report.tasks, report.skipped) == (np.count_nonzero(times == 0), np.count_nonzero(times))
    assert (target == 2 * source).all()


def test_what_exists_is_merged_too_and_parts_have_parts(tmp_path):
    target = np.zeros(12)
    plan = plan_tiles(np.arange(1.0, 13), target, tile=(1,))
    half = plan.part(1, 2)
    for i in range(2):
        half.part(i, 2).run(doubled, manifest=tmp_path / f"{i}")
        merged = half.merge_manifests([tmp_path / f"{i}"], tmp_path / "half")
    assert str(merged) == "6 of 6 tasks are done"
    assert half.run(doubled, manifest=tmp_path / "half").skipped == 6
    merged = plan.merge_manifests([tmp_path / "half", tmp_path / "0"], tmp_path / "half")
    assert str(merged) == "6 of 12 tasks are done; missing: 0 to 5; done by more than one part: 6 to 8"
    assert plan.run(doubled, manifest=tmp_path / "half").tasks == 6


def test_parts_of_other_work_are_refused(tmp_path):
    source = np.arange(1.0, 13)
    np.save(tmp_path / "a.npy", source)
    np.save(tmp_path / "b.npy", np.zeros(12))
    plan = plan_tiles(tmp_path / "a.npy", tmp_path / "b.npy", tile=(2,))
    plan.part(0, 2).run(doubled, manifest=tmp_path / "mine")
    other_cut = plan_tiles(tmp_path / "a.npy", tmp_path / "b.npy", tile=(3,))
    in_memory = plan_tiles(source, tmp_path / "b.npy", tile=(2,))
    others = {
        "compute": (plan.part(1, 2), halved, r"another plan: compute was .*halved.* and is now .*doubled"),
        "tilers": (other_cut.part(1, 2), doubled, "another plan: tilers was"),
        "source": (in_memory.part(1, 2), doubled, "another plan: source 0 was"),
        "lambda": (plan.part(1, 2), lambda x, y: np.multiply(x, 2, out=y), "another plan: compute was"),
    }
    for name, (part, compute, message) in others.items():
        part.run(compute, manifest=tmp_path / name)
        with pytest.raises(TransferError, match=message):
            plan.merge_manifests([tmp_path / "mine", tmp_path / name], tmp_path / "all")
        assert not (tmp_path / "all").exists(), name
    with pytest.raises(TransferError, match=r"lambda does not say by which code .* name the compute with tag="):
        plan.merge_manifests([tmp_path / "lambda"], tmp_path / "all")
    with pytest.raises(TransferError, match=r"mine belongs to another plan: it has the range of tasks \[0, 3\]"):
        plan.part(1, 2).merge_manifests([tmp_path / "mine"], tmp_path / "all")
    with pytest.raises(TransferError, match="got none"):
        plan.merge_manifests([], tmp_path / "all")
    with pytest.raises(FileNotFoundError):
        plan.merge_manifests([tmp_path / "nowhere"], tmp_path / "all")
    for text, message in ((b'{"plan": {"com', "cut off in its first line"), (b"notes\n", "not a tile plan manifest")):
        (tmp_path / "text").write_bytes(text)
        with pytest.raises(TransferError, match=message):
            plan.merge_manifests([tmp_path / "text"], tmp_path / "all")
    os.utime(tmp_path / "a.npy", ns=(0, 12345))
    with pytest.raises(TransferError, match=r"another plan: source 0 was .*modified_ns"):
        plan.merge_manifests([tmp_path / "mine"], tmp_path / "all")


def test_a_source_that_changed_between_the_parts_is_noticed(tmp_path):
    source = np.arange(1.0, 13)
    plan = plan_tiles(source, np.zeros(12), tile=(2,))
    plan.part(0, 2).run(doubled, manifest=tmp_path / "first")
    source[4:] += 1
    plan.run(doubled, manifest=tmp_path / "second")
    with pytest.raises(TransferError, match=r"task 2 read other bytes in .*second than in .*first: a source has chang"):
        plan.merge_manifests([tmp_path / "first", tmp_path / "second"], tmp_path / "all")


def test_a_part_cannot_claim_tasks_of_others(tmp_path):
    plan = plan_tiles(np.arange(1.0, 13), np.zeros(12), tile=(2,))
    plan.part(0, 2).run(doubled, manifest=tmp_path / "m")
    with (tmp_path / "m").open("ab") as file:
        file.write(json.dumps({"done": 5, "read": 0, "wrote": 0}).encode() + b"\n")
    with pytest.raises(TransferError, match="outside its part, 0 to 2"):
        plan.merge_manifests([tmp_path / "m"], tmp_path / "all")


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))))
def test_records_are_a_dictionary(records):
    known = {number: Checksums(read, wrote) for number, read, wrote in records}
    compact = TaskRecords(*zip(*records, strict=True)) if records else TaskRecords()
    assert len(compact) == len(known)
    for start in range(0, 41, 7):
        span = range(start, start + 5)
        assert compact.find(span) == {number: known[number] for number in span if number in known}


def test_a_manifest_of_very_many_tasks_takes_little_memory(tmp_path):
    with TaskManifest(tmp_path / "m", {}) as manifest:
        manifest.add([(number, Checksums(number, 7)) for number in range(100_000)])
    with TaskManifest(tmp_path / "m", {}) as manifest:
        assert manifest.done.find(range(99_998, 200_000)) == {n: Checksums(n, 7) for n in (99_998, 99_999)}
        assert sum(column.nbytes for column in vars(manifest.done).values()) == 16 * 100_000

# SPDX-License-Identifier: Apache-2.0
"""Conversions that are killed, resumed, repeated and changed: the result is always that of one run."""

import json
import os
import random
import signal
import time
from threading import Thread

import numpy as np
import pytest

import tilewright as tw
from tilewright._files import PREFIX
from tilewright.conversion import plan_conversion, run_plan
from tilewright.conversion.work_folder import WorkFolder

from ..files.samples import write_safetensors
from .checkpoints import checkpoint, contents, converted, started

KILLS = int(os.environ.get("TILEWRIGHT_KILLS", "2"))  # make kills: 25
IN_A_ROW = 6 if KILLS > 2 else 3
KINDS = ["tensorbin", "safetensors", "banks", "npy"] if KILLS > 2 else ["tensorbin", "safetensors"]
OUTS = {"tensorbin": "out", "safetensors": "out.safetensors", "banks": "out", "npy": "out"}


def options(to):
    return ["--to", to, "--dtype", "bfloat16" if to == "npy" else "bfloat8_b", "--memory", "256KiB", "--jobs", "2"]


def finished_tensors(out, to):
    """Return how many tensors the journal of a conversion says are done, or -1 where there is none."""
    folder = WorkFolder(out, to == "safetensors").path
    try:
        return sum(each.read_bytes().count(b"\n") for each in folder.glob("done*.jsonl")) if folder.exists() else -1
    except FileNotFoundError:  # it was there a moment ago
        return -1


def killed(source, out, to, rng, *more):
    """Convert until a random number of tensors is done and a little longer, then kill; return whether it still ran."""
    process = started(source, out, *options(to), *more)
    least = rng.randint(0, 21)
    while finished_tensors(out, to) < least and process.poll() is None:
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.05))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    if (out / "tilewright.json" if to != "safetensors" else out).exists():  # what looks finished is finished
        assert bool(tw.verify(out, source))
    return process.returncode == -signal.SIGKILL


def resumed(source, out, to, whole):
    """Resume a conversion to its end, compare it with one that was never killed, and return how many were kept."""
    ended = converted(source, out, *options(to), "--resume", "--json")
    assert ended.returncode == 0, ended.stderr
    assert contents(out) == contents(whole)
    assert sorted(each.name for each in out.parent.iterdir()) == [out.name]
    return json.loads(ended.stdout.splitlines()[-1])["reused"]


def never_killed(folder, to):
    """Return a checkpoint of 21 tensors, and what it is converted to."""
    source = checkpoint(folder / "m.safetensors", tensors=20)
    whole = folder / "whole" / OUTS[to]
    whole.parent.mkdir()
    assert converted(source, whole, *options(to)).returncode == 0
    return source, whole


@pytest.mark.parametrize("to", KINDS)
def test_killed_and_resumed_is_as_if_never_killed(tmp_path, to):
    source, whole = never_killed(tmp_path, to)
    rng = random.Random(to)
    deaths = kept = 0
    for attempt in range(KILLS):
        out = tmp_path / str(attempt) / OUTS[to]
        out.parent.mkdir()
        deaths += killed(source, out, to, rng)
        kept += resumed(source, out, to, whole)
    print(f"{to}: killed {deaths} of {KILLS} times, {kept} of {21 * KILLS} tensors were kept")
    assert deaths


@pytest.mark.parametrize("to", KINDS[: 1 if KILLS <= 2 else None])
def test_killed_in_a_row_and_resumed_is_as_if_never_killed(tmp_path, to):
    source, whole = never_killed(tmp_path, to)
    rng = random.Random(to)
    most = kept = 0
    for attempt in range(max(1, KILLS // 5)):
        out = tmp_path / str(attempt) / OUTS[to]
        out.parent.mkdir()
        deaths = 0
        while deaths < IN_A_ROW and killed(source, out, to, rng, "--resume"):
            deaths += 1
        most = max(most, deaths)
        kept += resumed(source, out, to, whole)
        print(f"{to}: killed {deaths} times in a row")
    assert most > 1


def test_killed_before_the_first_line_of_the_journal(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors", tensors=3), tmp_path / "out"
    whole = tmp_path / "whole" / "out"
    whole.parent.mkdir()
    tw.convert(source, whole, dtype="bfloat8_b")
    WorkFolder(out, single=False).path.mkdir(parents=True)
    first = min(whole.glob("*.tensorbin"))
    (out / first.name).write_bytes(first.read_bytes())
    tw.convert(source, out, dtype="bfloat8_b", resume=True)
    assert contents(out) == contents(whole)


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    source = checkpoint(tmp_path / "m.safetensors", tensors=40, rows=100)
    for attempt in range(10):  # on a busy machine it may be done before the signal comes
        out = tmp_path / f"out{attempt}"
        process = started(source, out, "--dtype", "bfloat8_b", "--memory", "256KiB")
        while not list(out.glob("*.tensorbin")) and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        if process.returncode:
            break
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert not list(out.rglob(f"{PREFIX}*"))
    report = tw.convert(source, out, dtype="bfloat8_b", resume=True)
    assert report.reused > 0
    assert bool(tw.verify(out, source))


@pytest.mark.parametrize("begun", range(3))
def test_ctrl_c_while_threads_are_started(tmp_path, monkeypatch, begun):
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / "out"
    start, started_so_far = Thread.start, []

    def stops(thread):
        if len(started_so_far) == begun:
            raise KeyboardInterrupt
        started_so_far.append(thread)
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", stops)
        with pytest.raises(KeyboardInterrupt):
            tw.convert(source, out, dtype="bfloat8_b", jobs=3)
    assert not any(thread.is_alive() for thread in started_so_far)
    tw.convert(source, out, dtype="bfloat8_b", resume=True)
    assert bool(tw.verify(out, source))


def interrupted(plan, after):
    """Run a plan until so many tensors are done, then stop it as Ctrl-C would."""
    seen = []

    def stop(event):
        if event.kind == "tensor":
            seen.append(event.name)
            if len(seen) == after:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, jobs=1, progress=stop)
    return seen


@pytest.mark.parametrize("to", ["tensorbin", "safetensors", "npy"])
def test_only_what_is_missing_is_done(tmp_path, to):
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / OUTS[to]
    plan = plan_conversion(source, out, to)
    seen = interrupted(plan, 4)
    assert not tw.conversion.work_folder.ExistingOutput(plan, WorkFolder(out, plan.is_single_file)).is_finished
    with pytest.raises(FileExistsError, match="unfinished"):
        run_plan(plan)
    if out.is_dir():
        with pytest.raises(tw.FileFormatError, match="unfinished"):
            tw.verify(out)
    report = run_plan(plan, resume=True)
    assert (report.reused, report.converted) == (len(seen), len(plan.items) - len(seen))
    assert bool(tw.verify(out, source))
    again = run_plan(plan, resume=True)
    assert (again.reused, again.converted) == (len(plan.items), 0)


def test_a_source_that_changed_is_converted_again(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / "out"
    interrupted(plan_conversion(source, out), 8)
    data = bytearray(source.read_bytes())
    first = tw.open_tensors(source)["layer.0.weight"]
    data[first.byte_range[0] + 3] ^= 1
    source.write_bytes(data)
    report = run_plan(plan_conversion(source, out), resume=True)
    assert report.reused == 7
    assert bool(tw.verify(out, source))


def test_a_source_that_was_only_touched_is_kept(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / "out"
    interrupted(plan_conversion(source, out), 8)
    os.utime(source, ns=(1, 1))
    assert run_plan(plan_conversion(source, out), resume=True).reused == 8


@pytest.mark.parametrize("harm", ["remove", "shorten", "change"])
def test_outputs_that_were_harmed_are_made_again(tmp_path, harm):
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / "out"
    plan = plan_conversion(source, out)
    for finished in (False, True):
        if finished:
            run_plan(plan, resume=True)
        else:
            interrupted(plan, 8)
        path = out / "layer.0.weight.tensorbin"
        if harm == "remove":
            path.unlink()
        elif harm == "shorten":
            os.truncate(path, 100)
        else:
            data = bytearray(path.read_bytes())
            data[-1] ^= 1
            path.write_bytes(data)
        report = run_plan(plan, resume=True)
        assert report.reused == (len(plan.items) - 1 if finished else 7)
        assert bool(tw.verify(out, source))


def test_changed_rules_change_only_their_tensors(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / "out"
    tw.convert(source, out, dtype="bfloat16")
    report = tw.convert(source, out, dtype="bfloat16", rules={"layer.3.*": {"dtype": "bfloat8_b"}}, resume=True)
    assert (report.converted, report.reused) == (1, 12)
    report = tw.convert(source, out, dtype="bfloat16", rules={"layer.4.*": {"skip": True}}, resume=True)
    assert (report.converted, report.reused) == (1, 11)
    assert not (out / "layer.4.weight.tensorbin").exists()
    fresh = tmp_path / "fresh" / "out"
    tw.convert(source, fresh, dtype="bfloat16", rules={"layer.4.*": {"skip": True}})
    assert contents(out) == contents(fresh)


def test_images_of_tensors_that_are_left_out_go_with_their_index(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors", tensors=2), tmp_path / "out"
    tw.convert(source, out, "banks", chip="n150")
    tw.convert(source, out, "banks", chip="n150", rules={"norm*": {"skip": True}}, resume=True)
    assert sorted(each.name for each in out.iterdir() if "norm" in each.name) == []
    assert bool(tw.verify(out, source))


def test_one_file_is_replaced_when_the_new_one_is_complete(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / "o.safetensors"
    tw.convert(source, out, dtype="bfloat16")
    before = out.read_bytes()
    plan = plan_conversion(source, out, dtype="bfloat8_b")
    seen = []

    def stop(event):
        seen.append(event.kind)
        if seen.count("tensor") == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, force=True, progress=stop)
    assert out.read_bytes() == before
    run_plan(plan, resume=True)
    assert bool(tw.verify(out, source))
    assert out.read_bytes() != before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.safetensors", "o.safetensors"]


def test_a_file_of_others_is_not_resumed(tmp_path):
    source = checkpoint(tmp_path / "m.safetensors", tensors=2)
    mine = write_safetensors(tmp_path / "mine.safetensors", {"x": np.zeros(3, np.float32)})
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"zebra")
    before = contents(mine), contents(damaged)
    for out in (mine, damaged):
        for resume in (False, True):
            with pytest.raises(FileExistsError, match="not made by convert"):
                tw.convert(source, out, resume=resume)
    assert (contents(mine), contents(damaged)) == before


def test_a_payload_that_was_harmed_is_made_again(tmp_path):
    """As a power cut could: the journal says that a tensor is done, and its bytes are not there."""
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / "o.safetensors"
    plan = plan_conversion(source, out)
    interrupted(plan, 8)
    payload = WorkFolder(out, single=True).drafts / "payload"
    with payload.open("r+b") as file:
        file.seek(plan.items[2].slot.start + 100)
        file.write(bytes(5))
    assert run_plan(plan, resume=True).reused == 7
    assert bool(tw.verify(out, source))
    interrupted(plan_conversion(source, tmp_path / "p.safetensors"), 8)
    os.truncate(WorkFolder(tmp_path / "p.safetensors", single=True).drafts / "payload", 100)
    assert tw.convert(source, tmp_path / "p.safetensors", resume=True).reused == 0


def test_nothing_is_overwritten_without_force(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors", tensors=2), tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep me")
    with pytest.raises(FileExistsError, match="other files"):
        tw.convert(source, out)
    tw.convert(source, out, force=True)
    assert (out / "mine.txt").read_text() == "keep me"
    with pytest.raises(FileExistsError, match="finished"):
        tw.convert(source, out)
    tw.convert(source, out, rules={"norm*": {"skip": True}}, force=True)
    assert sorted(each.name for each in out.iterdir()) == [
        "layer.0.weight.tensorbin",
        "layer.1.weight.tensorbin",
        "mine.txt",
        "tilewright.json",
    ]
    report = tw.verify(out, source)
    assert bool(report)
    assert report.notes == ("mine.txt is not in the manifest", "the source also has norm.bias")
    with pytest.raises(FileExistsError, match="not a directory"):
        tw.convert(source, out / "mine.txt", force=True)
    single = tmp_path / "x.safetensors"
    single.mkdir()
    with pytest.raises(FileExistsError, match="a directory"):
        tw.convert(source, single, force=True)


def test_a_source_is_never_replaced(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6).reshape(2, 3))
    write_safetensors(tmp_path / "m.safetensors", {"w": np.zeros((64, 64), np.float32)})
    before = contents(tmp_path)
    for source, out, to in ((tmp_path / "x.npy", tmp_path, "npy"), (tmp_path / "m.safetensors",) * 2 + (None,)):
        with pytest.raises(FileExistsError, match="source"):
            tw.convert(source, out, to, force=True)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(FileExistsError, match="source"):
        tw.convert(tmp_path / "m.safetensors", tmp_path / "link" / "m.safetensors", force=True)
    (tmp_path / "link").unlink()
    assert contents(tmp_path) == before


def test_links_in_the_output_are_not_followed(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors", tensors=2), tmp_path / "out"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("keep me")
    out.mkdir()
    (out / "norm.bias.tensorbin").symlink_to(outside / "mine")
    tw.convert(source, out, force=True)
    assert (outside / "mine").read_text() == "keep me"
    assert not (out / "norm.bias.tensorbin").is_symlink()
    assert bool(tw.verify(out, source))
    other = tmp_path / "other"
    other.mkdir()
    (other / ".tilewright").symlink_to(outside)
    with pytest.raises(FileExistsError, match="link"):
        tw.convert(source, other)
    assert sorted(each.name for each in outside.iterdir()) == ["mine"]


def test_another_kind_of_output_takes_the_place(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors", tensors=2), tmp_path / "out"
    tw.convert(source, out)
    tw.convert(source, out, "npy", resume=True)
    assert {each.suffix for each in out.iterdir()} == {".npy", ".json"}
    assert bool(tw.verify(out, source))


def test_a_journal_that_was_cut_off_or_spoilt(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / "out"
    plan = plan_conversion(source, out)
    interrupted(plan, 6)
    journal = out / ".tilewright" / "done.jsonl"
    os.truncate(journal, journal.stat().st_size - 5)
    assert run_plan(plan, resume=True).reused == 5
    interrupted(plan_conversion(source, tmp_path / "other"), 6)
    journal = tmp_path / "other" / ".tilewright" / "done.jsonl"
    journal.write_bytes(b"zebra\n")
    with pytest.raises(tw.FileFormatError, match="not a conversion journal"):
        tw.convert(source, tmp_path / "other", resume=True)
    assert tw.convert(source, tmp_path / "other", force=True).complete


def test_two_processes_do_not_share_an_output(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors", tensors=3), tmp_path / "out"
    place = WorkFolder(out, single=False)
    with place.lock():
        ended = converted(source, out)
        assert ended.returncode == 4
        assert "another process is converting" in ended.stderr
        with pytest.raises(BlockingIOError):
            tw.convert(source, out, part=(0, 2))
    assert not out.exists()
    processes = [started(source, out, "--dtype", "bfloat8_b") for _ in range(4)]
    results = [process.communicate() for process in processes]
    codes = sorted(process.returncode for process in processes)
    assert codes[0] == 0, results
    assert set(codes[1:]) == {4}, results
    assert bool(tw.verify(out, source))


def test_the_journal_holds_no_stale_hash(tmp_path):
    """A tensor whose values change under the same name and size is never taken for the old one."""
    source, out = tmp_path / "m.safetensors", tmp_path / "out"
    write_safetensors(source, {"w": np.zeros((64, 64), np.float32), "v": np.zeros(3, np.float32)})
    tw.convert(source, out)
    write_safetensors(source, {"w": np.ones((64, 64), np.float32), "v": np.zeros(3, np.float32)})
    report = tw.verify(out, source)
    assert [each.name for each in report.problems] == ["w"]
    assert "has changed" in report.problems[0].problem
    assert tw.convert(source, out, resume=True).converted == 1
    assert bool(tw.verify(out, source))

# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels on disk: found again, never half-written, never believed when damaged, and never too many."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.copying import PlanCache
from tilewright_gpu import kernel_cache, opencl

from .on_devices import needs_opencl


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    return tmp_path / "kernels"


def entries(folder):
    return sorted(folder.glob("*.kernel"))


def never():
    raise AssertionError("compiled again, although it was kept")


def test_what_was_compiled_is_found_again(folder):
    assert kernel_cache.load_or_compile(["device", "program"], lambda: b"code") == b"code"
    assert kernel_cache.load_or_compile(["device", "program"], never) == b"code"
    assert len(entries(folder)) == 1


def test_every_fact_counts_and_where_one_ends(folder):
    facts = [["ab", "c"], ["a", "bc"], ["abc"], ["ab", "c", ""], ["c", "ab"]]
    for number, each in enumerate(facts):
        assert kernel_cache.load_or_compile(each, lambda number=number: bytes([number])) == bytes([number])
    assert len(entries(folder)) == len(facts)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: b"another kernel 9\n" + data,
        lambda data: data + b"more",
        lambda data: os.urandom(len(data)),
    ],
    ids=["a byte short", "half", "empty", "a bit", "another format", "longer", "noise"],
)
def test_a_damaged_entry_is_compiled_anew_and_replaced(folder, damage):
    kernel_cache.load_or_compile(["a"], lambda: b"first" * 100)
    (path,) = entries(folder)
    path.write_bytes(damage(path.read_bytes()))
    assert kernel_cache.load_or_compile(["a"], lambda: b"second") == b"second"
    assert kernel_cache.load_or_compile(["a"], never) == b"second"


def test_a_folder_that_cannot_be_used_costs_time_and_no_error(tmp_path, monkeypatch):
    (tmp_path / "kernels").write_text("a file where the folder should be")
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    assert kernel_cache.load_or_compile(["a"], lambda: b"one") == b"one"
    assert kernel_cache.load_or_compile(["a"], lambda: b"two") == b"two"
    kernel_cache.remove_entry(["a"])


@pytest.mark.parametrize("off", ["0", "off", "none", "OFF"])
def test_it_can_be_turned_off(monkeypatch, off):
    monkeypatch.setenv("TILEWRIGHT_CACHE", off)
    assert kernel_cache.cache_directory() is None
    assert [kernel_cache.load_or_compile(["a"], lambda made=made: made) for made in (b"one", b"two")] == [
        b"one",
        b"two",
    ]


def test_a_failed_write_leaves_nothing_behind(folder, monkeypatch):
    def no_room(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", no_room)
    assert kernel_cache.load_or_compile(["a"], lambda: b"code") == b"code"
    assert list(folder.iterdir()) == []


def test_the_oldest_go_when_there_are_too_many(folder, monkeypatch):
    monkeypatch.setattr(kernel_cache, "MAX_FILES", 10)
    for number in range(10):
        kernel_cache.load_or_compile([str(number)], lambda number=number: bytes([number]))
        path = max(entries(folder), key=lambda each: each.stat().st_mtime_ns)
        os.utime(path, (number, number))
    kernel_cache.load_or_compile(["0"], never)  # used: no longer the oldest
    kernel_cache.load_or_compile(["one more"], lambda: b"x")
    assert len(entries(folder)) == 5
    kernel_cache.load_or_compile(["0"], never)
    assert kernel_cache.load_or_compile(["1"], lambda: b"again") == b"again"


def test_the_oldest_go_when_they_take_too_much_room(folder, monkeypatch):
    monkeypatch.setattr(kernel_cache, "MAX_FILE_BYTES", 10_000)
    for number in range(12):
        kernel_cache.load_or_compile([str(number)], lambda: bytes(1000))
        path = max(entries(folder), key=lambda each: each.stat().st_mtime_ns)
        os.utime(path, (number, number))
    assert sum(path.stat().st_size for path in entries(folder)) <= 10_000


def test_threads_that_write_the_same_entry_all_get_whole_ones(folder):
    wrong = []

    def work(number):
        for turn in range(30):
            body = bytes([number]) * (1 + 997 * turn)
            made = kernel_cache.load_or_compile([str(turn)], lambda body=body: body)
            if len(made) != 1 + 997 * turn or len(set(made)) != 1:
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not [path for path in folder.iterdir() if path.suffix != ".kernel"]


TWO = """
import sys
from tilewright_gpu import kernel_cache
wrong = 0
for turn in range(150):
    made = kernel_cache.load_or_compile([str(turn)], lambda: bytes([int(sys.argv[1])]) * (1000 + turn))
    wrong += len(made) != 1000 + turn or len(set(made)) != 1
print(wrong)
"""


def test_two_processes_share_a_cache(folder):
    command = [sys.executable, "-c", TWO]
    running = [subprocess.Popen([*command, str(k)], stdout=subprocess.PIPE, text=True) for k in (1, 2)]
    assert [process.communicate(timeout=120)[0].strip() for process in running] == ["0", "0"]
    assert len(entries(folder)) == 150


@needs_opencl
def test_kernels_of_opencl_are_kept_and_a_driver_that_refuses_one_is_given_the_source(folder, monkeypatch):
    values = np.arange(77, dtype=np.int16)
    layouts = tw.row_major(7, 11), tw.col_major(7, 11)
    wanted = values.reshape(7, 11).T.reshape(-1)

    def moved():
        monkeypatch.setattr(opencl, "_launches", PlanCache())  # as in a new process
        return tw.copying.relayout(values, *layouts, engine="opencl")

    np.testing.assert_array_equal(moved(), wanted)
    (path,) = entries(folder)
    before = path.read_bytes()
    np.testing.assert_array_equal(moved(), wanted)
    assert path.read_bytes() == before
    # an entry that is whole, but whose code the driver does not take
    body = b"no machine code at all"
    path.write_bytes(kernel_cache.FILE_SIGNATURE + kernel_cache.hashlib.sha256(body).digest() + body)
    np.testing.assert_array_equal(moved(), wanted)

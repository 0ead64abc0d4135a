# SPDX-License-Identifier: Apache-2.0
"""One way to replace a file: the old one or the new one, whatever happens in between."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tilewright import _files
from tilewright._files import PREFIX, Draft, remove_stale_drafts, rename_over, replace_file, replace_folder, write_file

POSIX = pytest.mark.skipif(os.name != "posix", reason="links and signals of POSIX")


def drafts(folder):
    return [name for name in os.listdir(folder) if name.startswith(PREFIX)]


@pytest.mark.parametrize(
    "problem", [ValueError("no"), KeyboardInterrupt(), SystemExit(3), OSError(errno.ENOSPC, "full")]
)
def test_after_any_exception_the_old_file_stays_and_no_draft(tmp_path, problem):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def fail():
        with replace_file(path) as file:
            file.write(b"new")
            raise problem

    with pytest.raises(type(problem)):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_an_error_of_the_system_names_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(OSError, match="No space") as caught, replace_file(tmp_path / "x"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "x")
    with pytest.raises(FileNotFoundError) as missing:
        write_file(tmp_path / "no" / "x", b"")
    assert missing.value.filename == str(tmp_path / "no" / "x")


@POSIX
def test_a_full_disk_leaves_the_old_file_and_no_draft(tmp_path):
    script = """
        import resource, signal, sys
        from tilewright._files import write_file
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            write_file(sys.argv[1], bytes(5000))
        except OSError as problem:
            print(problem.filename)
    """
    path = tmp_path / "x"
    path.write_bytes(b"old")
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), path], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


@POSIX
def test_a_link_is_replaced_and_its_victim_untouched(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("mine")
    link.symlink_to(victim)
    write_file(link, "new")
    assert victim.read_text() == "mine"
    assert not link.is_symlink()
    assert link.read_text() == "new"


@POSIX
def test_links_planted_where_a_draft_could_lie_are_never_followed(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    names = iter([b"\0", b"\1"])
    monkeypatch.setattr(_files.os, "urandom", lambda _: next(names))
    (tmp_path / f"{PREFIX}00").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "x", "new")
    remove_stale_drafts(tmp_path)
    assert victim.read_text() == "mine"


@POSIX
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_a_file_must_not_replace_is_refused_before_anything_is_written(tmp_path, kind):
    path = tmp_path / "x"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    other = tmp_path / "other"
    other.write_text("")
    for replace in (lambda: write_file(path, b"new"), lambda: rename_over(other, path)):
        with pytest.raises(OSError, match=str(path)):
            replace()
    assert sorted(os.listdir(tmp_path)) == ["other", "x"]


@POSIX
def test_permissions_stay_as_they_were(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    for mode in (0o600, 0o640, 0o755):
        path.chmod(mode)
        write_file(path, "new")
        assert path.stat().st_mode & 0o777 == mode
    old = os.umask(0o027)
    try:
        write_file(tmp_path / "y", "new")
    finally:
        os.umask(old)
    assert (tmp_path / "y").stat().st_mode & 0o777 == 0o640


def test_names_as_long_as_the_system_allows(tmp_path):
    write_file(tmp_path / ("x" * 255), "abc")
    assert (tmp_path / ("x" * 255)).read_text() == "abc"


RUN = """
    import os, sys, time
    from tilewright._files import replace_file, replace_folder
    kind, path = sys.argv[1:]
    with (replace_file if kind == "file" else replace_folder)(path) as draft:
        if kind == "file":
            draft.write(b"half")
            draft.flush()
        else:
            draft.mkdir()
        print("ready", flush=True)
        time.sleep(60)
"""


def interrupted(path, kind, how):
    """Return how a process ended that was sent a signal in the middle of replacing a file or folder."""
    arguments = [sys.executable, "-c", textwrap.dedent(RUN), kind, str(path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        busy = drafts(path.parent)
        remove_stale_drafts(path.parent)
        assert drafts(path.parent) == busy  # a draft in use is never taken for a stale one
        assert len(busy) == 1
        process.send_signal(how)
        return process.wait()


@POSIX
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_signal_to_terminate_removes_the_draft(tmp_path, kind):
    assert interrupted(tmp_path / "x", kind, signal.SIGTERM) == 128 + signal.SIGTERM
    assert os.listdir(tmp_path) == []


@POSIX
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_next_run_removes_drafts_of_processes_that_were_killed(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(_files, "_SWEEP_SHARE", 0)
    assert interrupted(tmp_path / "x", kind, signal.SIGKILL) == -signal.SIGKILL
    assert len(drafts(tmp_path)) == 1
    write_file(tmp_path / "y", b"")
    assert os.listdir(tmp_path) == ["y"]


@POSIX
def test_a_handler_of_the_program_stays(tmp_path):
    def handler(*_):
        """Do nothing."""

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with replace_file(tmp_path / "x"):
            assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    with replace_file(tmp_path / "x"):
        pass
    assert signal.getsignal(signal.SIGTERM) is before


def test_writers_of_one_file_at_a_time_never_mix(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "_SWEEP_SHARE", 0)  # every writer looks for stale drafts, too
    path, seen = tmp_path / "x", set()
    path.write_bytes(b"0" * 1000)

    def write(digit):
        for _ in range(30):
            with replace_file(path, durable=False) as file:
                for _ in range(10):
                    file.write(digit * 100)
            seen.add(path.read_bytes())

    threads = [threading.Thread(target=write, args=(b"%d" % k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen <= {b"%d" % k * 1000 for k in range(4)}
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("exchange", [True, False])
def test_folders_are_replaced_whole(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(_files, "_exchange", lambda *_: False)
    path = tmp_path / "x"
    for content in ("1", "2"):
        with replace_folder(path) as draft:
            draft.mkdir()
            (draft / content).write_text("")
        assert os.listdir(path) == [content]
    with pytest.raises(FileNotFoundError), replace_folder(path) as draft:
        (draft / "in" / "nothing").mkdir()
    with pytest.raises(FileNotFoundError), replace_folder(path):
        pass  # and nothing was made
    assert os.listdir(path) == ["2"]
    assert os.listdir(tmp_path) == ["x"]


def test_a_draft_discarded_twice_or_after_it_failed(tmp_path):
    draft = Draft(tmp_path / "x")
    draft.discard()
    draft.discard()
    assert os.listdir(tmp_path) == []


def test_every_file_is_replaced_by_this_one_mechanism():
    """No other module renames a draft over a file of the user, or names one itself."""
    sources = Path(_files.__file__).parent
    found = {
        path.relative_to(sources).as_posix()
        for path in sources.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("os.replace(", "os.rename(", '.part"', "mkstemp"))
    }
    assert not found


def test_a_missing_folder_is_named_once(tmp_path):
    with pytest.raises(FileNotFoundError) as told:
        write_file(tmp_path / "none" / "x", b"")
    assert str(told.value).endswith("x'")

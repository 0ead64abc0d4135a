# SPDX-License-Identifier: Apache-2.0
"""Disks that are full, places that are forbidden, sources that change: the file is named, the rest stays intact."""

import ctypes
import errno
import os
import resource
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import tilewright as tw
from tilewright._files import PREFIX
from tilewright.conversion import plan_conversion, run, run_plan
from tilewright.conversion.source import OutputFile

from ..files.samples import write_safetensors
from .checkpoints import checkpoint, command, contents


@contextmanager
def small_disk(path, size):
    """Mount a disk of this size; where that is not allowed the test is skipped."""
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


@pytest.mark.parametrize("to", ["tensorbin", "safetensors"])
def test_a_full_disk(tmp_path, monkeypatch, to):
    source = checkpoint(tmp_path / "m.safetensors", tensors=6)
    with small_disk(tmp_path / "disk", "700k") as disk:
        out = disk / ("o.safetensors" if to == "safetensors" else "out")
        plan = plan_conversion(source, out, to, dtype="bfloat8_b")
        with pytest.raises(OSError, match="the disk has") as told:
            run_plan(plan)  # it knows beforehand
        assert told.value.errno == errno.ENOSPC
        monkeypatch.setattr(run, "_check_disk_space", lambda plan, todo: None)
        with pytest.raises(OSError, match="No space left") as told:
            run_plan(plan, jobs=1)
        assert str(disk) in told.value.filename
        assert "part" not in told.value.filename
        finished = contents(out) if out.exists() else {}
        assert not any(name.startswith(PREFIX) for name in finished)
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        report = run_plan(plan, resume=True)
        assert report.reused > 0
        assert bool(tw.verify(out, source))
        assert all(contents(out)[name] == value for name, value in finished.items() if ".tilewright" not in name)


def test_a_file_that_may_not_grow(tmp_path):
    """Without being root: a limit on the size of files is an error while writing, too."""
    source = checkpoint(tmp_path / "m.safetensors", tensors=6, rows=50)
    wide = write_safetensors(tmp_path / "wide.safetensors", {"wide": np.ones((900, 900), np.float32)})

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    out = tmp_path / "out"
    ended = subprocess.run(
        [*command(source, wide, out), "--dtype", "bfloat8_b", "--jobs", "1"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
    )
    assert ended.returncode == 4, ended.stderr
    assert f"{out}/wide.tensorbin: file too large" in ended.stderr
    assert ended.stderr.count("error:") == 1
    assert "Traceback" not in ended.stderr
    report = tw.convert([source, wide], out, dtype="bfloat8_b", resume=True)
    assert report.reused >= 6  # what was in hand together with the one that failed is made again
    assert report.reused + report.converted == 8


def obey_permissions() -> None:
    """Let root, too, write only where permissions allow it; reading stays as it was, wherever the sources lie."""
    drop_from_bounding_set, dac_override = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
    ctypes.CDLL(None, use_errno=True).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
def test_a_place_that_is_forbidden(tmp_path):
    source = checkpoint(tmp_path / "m.safetensors", tensors=2)
    forbidden = tmp_path / "forbidden"
    forbidden.mkdir()
    forbidden.chmod(0o555)
    ended = subprocess.run(
        command(source, forbidden / "out"), capture_output=True, text=True, check=False, preexec_fn=obey_permissions
    )
    assert ended.returncode == 4, ended.stderr
    assert f"{forbidden}/out: permission denied" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not any(forbidden.iterdir())


def test_a_source_that_changes_while_it_is_converted(tmp_path):
    source, out = checkpoint(tmp_path / "m.safetensors"), tmp_path / "out"
    plan = plan_conversion(source, out)
    seen = []

    def change(event):
        if event.kind == "tensor":
            seen.append(event.name)
            if len(seen) == 3:
                os.truncate(source, 1000)

    with pytest.raises(tw.FileFormatError, match="changed"):
        run_plan(plan, jobs=1, progress=change)
    assert not (out / "tilewright.json").exists()
    assert sorted(each.name for each in out.glob("*")) == [".tilewright", *sorted(f"{name}.tensorbin" for name in seen)]


def test_the_first_error_stops_all_threads(tmp_path, monkeypatch):
    source, out = checkpoint(tmp_path / "m.safetensors", tensors=30), tmp_path / "out"
    written = []
    usual = OutputFile.write

    def failing(self, offset, data):
        written.append(self.named.name)
        if self.named.name == "layer.4.weight.tensorbin" and offset:
            raise OSError(errno.EIO, "Input/output error", str(self.named))
        usual(self, offset, data)

    monkeypatch.setattr(OutputFile, "write", failing)
    with pytest.raises(OSError, match=r"layer\.4\.weight\.tensorbin"):
        tw.convert(source, out, memory=2 << 17, jobs=4)
    assert "layer.29.weight.tensorbin" not in written
    assert not list(out.rglob(f"{PREFIX}*"))

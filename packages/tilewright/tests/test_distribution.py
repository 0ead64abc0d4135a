# SPDX-License-Identifier: Apache-2.0
"""What is handed out as source: all that is needed to build and to test, nothing else, and true words about it."""

import os
import shutil
import subprocess
import sys
import tarfile
from email import message_from_string
from pathlib import Path, PurePosixPath

import pytest
from tools.matrix.cells import PYTHONS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
BUILD = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"

pytest.importorskip("scikit_build_core", reason="the dev extra is not installed")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Return the paths of the files in the sdist, and its metadata."""
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-c", BUILD, str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    (path,) = folder.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        top = path.name.removesuffix(".tar.gz")
        metadata = archive.extractfile(f"{top}/PKG-INFO").read().decode("utf-8")
        names = {str(PurePosixPath(entry.name).relative_to(top)) for entry in archive.getmembers() if entry.isfile()}
    return names, message_from_string(metadata)


def files_under(folder: str, *patterns: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for pattern in patterns for path in (ROOT / folder).rglob(pattern)}


def test_the_sdist_has_all_that_builds_and_tests(sdist):
    names, _ = sdist
    needed = {
        "LICENSE",
        "README.md",
        "CMakeLists.txt",
        "pyproject.toml",
        "tests/surface.txt",
    }
    needed |= files_under("native", "*.cpp", "*.h", "CMakeLists.txt")
    needed |= files_under("src", "*.py", "*.css", "*.h", "*.js", "*.html", "py.typed")
    needed |= files_under("tests", "*.py", "*.json", "*.tensorbin", "*.npz")
    assert len(needed) > 600
    assert not needed - names


def test_the_sdist_has_nothing_else(sdist):
    names, _ = sdist
    tracked = git_files()
    if tracked is not None:  # a checkout, in which anything may lie about that nobody has added
        # only this file's rules: an sdist knows nothing of what git ignores for one user or one machine
        loose = git_files("--others", "--exclude-from", "../../.gitignore") or set()
        assert not names - tracked - loose - {"PKG-INFO"}
        names = names - loose
    junk = {".ci", ".git", ".venv", "build", "dist", "__pycache__", ".hypothesis"}
    assert not [name for name in names if junk & set(PurePosixPath(name).parts)]
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc", ".log", ".whl"))]


def git_files(*options: str) -> set[str] | None:
    """Return the files that git lists, by their true names; None where this is no checkout, or there is no git."""
    if shutil.which("git") is None:
        return None
    run = subprocess.run(["git", "ls-files", "-z", *options], cwd=ROOT, capture_output=True, check=False)
    return set(map(os.fsdecode, run.stdout.split(b"\0"))) - {""} if run.returncode == 0 else None


def test_the_metadata_tells_the_truth(sdist):
    _, metadata = sdist
    named = {line.removeprefix("Programming Language :: Python :: ") for line in metadata.get_all("Classifier")}
    assert set(PYTHONS) <= named
    assert not {line for line in named if line.startswith("3.")} - set(PYTHONS), "named, and not in the matrix"
    assert metadata["Requires-Python"] == f">={PYTHONS[0]}"
    assert (metadata["License-Expression"], metadata.get_all("License-File")) == ("Apache-2.0", ["LICENSE"])
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# tilewright")
    addresses = [line.partition(", ")[2] for line in metadata.get_all("Project-URL", [])]
    assert all(address.startswith("https://") for address in addresses)

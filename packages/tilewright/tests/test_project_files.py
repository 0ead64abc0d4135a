# SPDX-License-Identifier: Apache-2.0
"""What a repository has beside its sources: workflows, versions, and the links of the package."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_workflows_run_commands_that_exist():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = [
        (path.name, found) for path in WORKFLOWS for found in re.findall(r"make ([a-z][a-z0-9-]*)", path.read_text())
    ]
    assert len(commands) >= 14
    missing = [f"{name}: make {target}" for name, target in commands if target not in targets]
    assert not missing


def test_workflows_may_do_little_and_end():
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert "permissions:\n  contents: read\n" in text, path.name
        assert text.count("runs-on:") == text.count("timeout-minutes:"), f"{path.name}: a job without a time limit"
        assert text.count("actions/checkout@") == text.count("persist-credentials: false"), path.name


def test_one_version_everywhere():
    version = tilewright.__version__
    for name, line in {
        "packages/tilewright/pyproject.toml": f'version = "{version}"',
        "packages/tilewright-audit/pyproject.toml": f'version = "{version}"',
        "packages/tilewright-gpu/pyproject.toml": f'version = "{version}"',
        "packages/tilewright-mojo/pyproject.toml": f'version = "{version}"',
        "CITATION.cff": f"version: {version}",
        "CHANGELOG.md": f"## [{version}] - ",
    }.items():
        assert f"\n{line}" in (ROOT / name).read_text(encoding="utf-8"), name


def test_news_fragments_have_a_type_and_a_text():
    configuration = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    types = re.findall(r'directory = "(\w+)", name', configuration)
    assert len(types) >= 5
    for path in (ROOT / "news").iterdir():
        assert path.name == "README.md" or re.fullmatch(rf"[a-z0-9-]+\.({'|'.join(types)})\.md", path.name), path.name
        assert path.read_text(encoding="utf-8").strip(), f"{path.name} is empty"
    marker = re.search(r'start_string = "(.*)\\n"', configuration)
    assert marker is not None
    assert marker[1] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("length", "status"), [(72, 0), (73, 1)])
def test_a_subject_has_at_most_72_characters(length, status, tmp_path):
    message = tmp_path / "message"
    message.write_text(f"\n# a comment of git\n{'é' * length}\n\n{'w' * 100}\n", encoding="utf-8")
    hook = subprocess.run(
        [sys.executable, ROOT / "tools" / "commit_subject.py", message], capture_output=True, text=True, check=False
    )
    assert hook.returncode == status
    assert ("got 73" in hook.stderr) == bool(status)

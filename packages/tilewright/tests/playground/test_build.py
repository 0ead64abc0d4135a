# SPDX-License-Identifier: Apache-2.0
"""The parts of the playground's build: what is split from what, what has a name, and modules that come later."""

import importlib.util
import json
import sys
import zipfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[4] / "playground"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="not in a checkout")


def load(name):
    spec = importlib.util.spec_from_file_location(f"playground_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_archive(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def test_archives_are_compiled_and_split_by_what_is_imported(tmp_path):
    prepare = load("prepare")
    write_archive(tmp_path / "python_stdlib.zip", {"json/__init__.py": "", "csv.py": "ROWS = 3", "turtle.py": ""})
    tilewright = {
        "tilewright/__init__.py": "",
        "tilewright/chips/one.toml": "cores = 1",
        "tilewright/mojo/simd.py": "def wait(): pass",
    }
    write_archive(tmp_path / "tilewright.zip", tilewright)
    prepare.compile_archives(str(tmp_path))
    later = prepare.split_archives(str(tmp_path), "json tilewright sys")
    tag = sys.implementation.cache_tag
    files, modules = (prepare.read(tmp_path / name) for name in ("files.zip", "modules.zip"))
    assert later.split() == ["csv", "tilewright.mojo.simd"]
    assert files == {
        "tilewright/chips/one.toml": b"cores = 1",
        "tilewright/mojo/simd.py": b"def wait(): pass",  # which the simulated GPU reads
    }
    assert set(modules) == {"csv.pyc", f"tilewright/mojo/__pycache__/simd.{tag}.pyc"}
    (tmp_path / "rows.pyc").write_bytes(modules["csv.pyc"])
    spec = importlib.util.spec_from_file_location("rows", tmp_path / "rows.pyc")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.ROWS == 3


def test_a_question_that_needs_a_later_module_is_stopped_and_then_answered(tmp_path, monkeypatch):
    later = load("later_modules")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    later.expect(frozenset({"a_later_module"}))

    def ask():
        try:
            import a_later_module
        except Exception as problem:
            return problem
        return a_later_module.ANSWER

    with pytest.raises(later.NotHereYet):
        ask()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_module_at_all")
    (tmp_path / "a_later_module.py").write_text("ANSWER = 42")
    later.arrived()
    assert ask() == 42
    monkeypatch.delitem(sys.modules, "a_later_module")


def test_other_files_have_another_version(tmp_path):
    build = load("build")
    (tmp_path / "a.js").write_text("1")
    versions = {build.name_version(tmp_path)}
    (tmp_path / "a.js").write_text("2")
    versions.add(build.name_version(tmp_path))
    (tmp_path / "a.js").rename(tmp_path / "b.js")
    versions.add(build.name_version(tmp_path))
    assert len(versions) == 3


def test_what_is_kept_is_listed_without_what_is_rarely_used(tmp_path):
    build = load("build")
    for name in (*build.PACKED, "files.zip", "first.html", "main.js", *build.FALLBACK):
        (tmp_path / name).write_bytes(b"x" * 100)
    build.pack(tmp_path)
    facts = json.loads((tmp_path / "files.json").read_text(encoding="utf-8"))
    assert facts["files"] == ["files.zip", "main.js", "pyodide.asm.wasm.gz", "snapshot.bin.gz"]
    assert facts["first"] == sum((tmp_path / name).stat().st_size for name in build.FIRST)
    assert {path.name for path in tmp_path.iterdir()} == {*facts["files"], *build.FALLBACK, "files.json"}


def test_the_page_names_every_module_that_it_will_import(tmp_path):
    build = load("build")
    build.copy_page(tmp_path)
    modules = build.imported_modules(tmp_path, "main.js")
    assert {"main.js", "side.js", "dom.js", "marks.js"} <= modules
    text = build.page_text(tmp_path, "<p>first</p>")
    for name in modules:
        assert f'rel="modulepreload" href="{tmp_path.name}/{name}"' in text
    assert '<div id="sides" data-count="1"><p>first</p></div>' in text

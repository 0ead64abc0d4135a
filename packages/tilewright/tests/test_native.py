# SPDX-License-Identifier: Apache-2.0
"""The native library is optional: its absence is explained, never fatal."""

import ctypes
import os
import shutil
import subprocess
import sys

import pytest

from tilewright.copying import native

needs_native = pytest.mark.skipif(not native.is_available(), reason=f"{native.unavailable_reason()}")


@pytest.fixture
def fresh_loader():
    """Forget what was loaded, before and after, so that a test can change what the loader sees."""
    forget()
    yield
    forget()


def forget():
    for function in (native._load, native.load_library, native.is_available):
        function.cache_clear()


@needs_native
def test_available_means_no_reason():
    assert native.is_available()
    assert native.unavailable_reason() is None


def test_environment_variable_disables_the_library():
    program = (
        "from tilewright.copying import native\nassert not native.is_available()\nprint(native.unavailable_reason())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TILEWRIGHT_NATIVE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    (reason,) = run.stdout.splitlines()
    assert "TILEWRIGHT_NATIVE=0" in reason
    assert "unset" in reason


def test_an_absent_library_is_explained(fresh_loader, monkeypatch, tmp_path):
    monkeypatch.delenv("TILEWRIGHT_NATIVE", raising=False)
    monkeypatch.setattr(native, "_package_folders", lambda: [str(tmp_path)])
    assert not native.is_available()
    assert str(tmp_path) in native.unavailable_reason()
    assert "C++20 compiler" in native.unavailable_reason()


def test_a_damaged_library_is_explained(fresh_loader, monkeypatch, tmp_path):
    monkeypatch.delenv("TILEWRIGHT_NATIVE", raising=False)
    monkeypatch.setattr(native, "_package_folders", lambda: [str(tmp_path)])
    (tmp_path / native._FILE_NAME).write_bytes(b"not a shared library")
    assert not native.is_available()
    assert "cannot be loaded" in native.unavailable_reason()


@needs_native
def test_a_library_of_another_abi_is_refused(fresh_loader, monkeypatch):
    ours = native.ABI_VERSION
    monkeypatch.setattr(native, "ABI_VERSION", 999)
    assert not native.is_available()
    assert f"has ABI version {ours}, this package needs 999" in native.unavailable_reason()


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
@pytest.mark.skipif(sys.platform == "win32", reason="the compiler driver is called in the Unix way")
def test_a_library_that_lacks_a_function_is_explained(fresh_loader, monkeypatch, tmp_path):
    source = tmp_path / "partial.cpp"
    source.write_text(f'extern "C" int tw_abi_version() {{ return {native.ABI_VERSION}; }}\n')
    library = tmp_path / native._FILE_NAME
    subprocess.run(["c++", "-shared", "-fPIC", "-o", library, source], check=True)
    assert ctypes.CDLL(str(library)).tw_abi_version() == native.ABI_VERSION
    monkeypatch.delenv("TILEWRIGHT_NATIVE", raising=False)
    monkeypatch.setattr(native, "_package_folders", lambda: [str(tmp_path)])
    assert not native.is_available()
    assert "tw_run" in native.unavailable_reason()

# SPDX-License-Identifier: Apache-2.0
"""The native library and its Python fallback are one function; its absence is explained, never fatal."""

import ctypes
import os
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def fallback(data: bytes) -> int:
    return native._fingerprint_in_python(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8))


# Published FNV-1a test vectors.
@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_known_values(data, expected):
    assert native.fingerprint(data) == expected
    assert fallback(data) == expected


@needs_native
@given(st.binary(max_size=2000))
def test_native_equals_fallback(data):
    assert native.fingerprint(data) == fallback(data)


@given(st.binary(max_size=200))
def test_every_kind_of_buffer_gives_the_same_answer(data):
    expected = fallback(data)
    array = np.array(list(data), np.uint8)
    for same in (bytearray(data), memoryview(data), memoryview(bytearray(data)), array, memoryview(array)):
        assert native.fingerprint(same) == expected, type(same)


@pytest.mark.parametrize(
    "dtype", ["<f4", ">f4", "<i8", "?", "c16", "M8[s]", ml_dtypes.bfloat16, [("a", "u1"), ("b", "<f8")]]
)
def test_arrays_of_any_element_type(dtype):
    raw = np.random.default_rng(0).integers(0, 2, 864, np.uint8)
    array = raw.view(dtype).reshape(6, -1)
    assert native.fingerprint(array) == fallback(raw.tobytes())


def test_shape_does_not_matter():
    array = np.arange(24, dtype=np.int32)
    assert native.fingerprint(array.reshape(2, 3, 4)) == native.fingerprint(array)
    assert native.fingerprint(array[:1].reshape(())) == native.fingerprint(array[:1].tobytes())
    assert native.fingerprint(array.reshape(2, 3, 4)[:, :0]) == native.fingerprint(b"")


@pytest.mark.parametrize("scattered", [memoryview(b"abcdef")[::2], np.arange(12).reshape(3, 4).T])
def test_scattered_bytes_are_refused_with_the_remedy(scattered):
    with pytest.raises(ValueError, match=r"contiguous bytes, got .* strides .*; pass "):
        native.fingerprint(scattered)


def test_what_is_not_a_buffer_is_refused():
    with pytest.raises(TypeError, match="bytes-like object, got str"):
        native.fingerprint("text")


@needs_native
def test_available_means_no_reason():
    assert native.is_available()
    assert native.unavailable_reason() is None


def test_environment_variable_disables_the_library():
    program = (
        "from tilewright.copying import native\n"
        "assert not native.is_available()\n"
        "print(native.unavailable_reason())\n"
        "print(hex(native.fingerprint(b'foobar')))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TILEWRIGHT_NATIVE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    reason, value = run.stdout.splitlines()
    assert "TILEWRIGHT_NATIVE=0" in reason
    assert "unset" in reason
    assert value == "0x85944171f73967e8"


def test_an_absent_library_is_explained(fresh_loader, monkeypatch, tmp_path):
    monkeypatch.delenv("TILEWRIGHT_NATIVE", raising=False)
    monkeypatch.setattr(native, "_package_folders", lambda: [str(tmp_path)])
    assert not native.is_available()
    assert str(tmp_path) in native.unavailable_reason()
    assert "C++20 compiler" in native.unavailable_reason()
    assert native.fingerprint(b"a") == 0xAF63DC4C8601EC8C


def test_a_damaged_library_is_explained(fresh_loader, monkeypatch, tmp_path):
    monkeypatch.delenv("TILEWRIGHT_NATIVE", raising=False)
    monkeypatch.setattr(native, "_package_folders", lambda: [str(tmp_path)])
    (tmp_path / native._FILE_NAME).write_bytes(b"not a shared library")
    assert not native.is_available()
    assert "cannot be loaded" in native.unavailable_reason()
    assert native.fingerprint(b"a") == 0xAF63DC4C8601EC8C


@needs_native
def test_a_library_of_another_abi_is_refused(fresh_loader, monkeypatch):
    ours = native.ABI_VERSION
    monkeypatch.setattr(native, "ABI_VERSION", 999)
    assert not native.is_available()
    assert f"has ABI version {ours}, this package needs 999" in native.unavailable_reason()
    assert native.fingerprint(b"a") == 0xAF63DC4C8601EC8C


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
    assert "tw_fingerprint" in native.unavailable_reason()

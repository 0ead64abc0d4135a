# SPDX-License-Identifier: Apache-2.0
"""The build of the playground brings Pyodide's own NumPy, or else the stand-in; a wrong sum ends it."""

import hashlib
import importlib.util
import json
import threading
import urllib.request
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[4] / "playground" / "build.py"
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="not in a checkout")
WHEELS = {"numpy": "numpy-2.4.6-wasm32.whl", "ml-dtypes": "ml_dtypes-0.5.4-wasm32.whl"}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def load_build():
    spec = importlib.util.spec_from_file_location("playground_build", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fetch(address):
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.read()


@pytest.fixture
def cdn(tmp_path):
    """Serve two wheels as Pyodide's CDN does; return the address, and the lock file with their sums."""
    (tmp_path / "cdn").mkdir()
    packages = {}
    for name, file in WHEELS.items():
        (tmp_path / "cdn" / file).write_bytes(name.encode())
        packages[name] = {"file_name": file, "sha256": hashlib.sha256(name.encode()).hexdigest()}
    handler = partial(QuietHandler, directory=str(tmp_path / "cdn"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", {"packages": packages}
        server.shutdown()


def test_wheels_are_hosted_beside_the_page(cdn, tmp_path):
    address, lock = cdn
    (tmp_path / "pyodide-lock.json").write_text(json.dumps(lock))
    assert load_build().bring_numpy(tmp_path, address, fetch) == ["numpy", "ml-dtypes"]
    for name, file in WHEELS.items():
        assert (tmp_path / file).read_bytes() == name.encode()
    assert not (tmp_path / "stand_in.zip").exists()


def test_a_wheel_with_another_sum_ends_the_build(cdn, tmp_path):
    address, lock = cdn
    lock["packages"]["ml-dtypes"]["sha256"] = "0" * 64
    (tmp_path / "pyodide-lock.json").write_text(json.dumps(lock))
    with pytest.raises(SystemExit, match=r"ml_dtypes-0\.5\.4-wasm32\.whl does not have the sum"):
        load_build().bring_numpy(tmp_path, address, fetch)


@pytest.mark.parametrize("missing", ["wheel", "entry"])
def test_the_stand_in_takes_their_place(cdn, tmp_path, missing):
    address, lock = cdn
    if missing == "wheel":
        (tmp_path / "cdn" / WHEELS["ml-dtypes"]).unlink()
    else:
        del lock["packages"]["ml-dtypes"]
    (tmp_path / "pyodide-lock.json").write_text(json.dumps(lock))
    (tmp_path / WHEELS["numpy"]).write_bytes(b"of an earlier build")
    assert load_build().bring_numpy(tmp_path, address, fetch) == "stand_in.zip"
    names = zipfile.ZipFile(tmp_path / "stand_in.zip").namelist()
    assert {"ml_dtypes.py", "numpy/__init__.py", "numpy/typing.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]
    assert not list(tmp_path.glob("*.whl"))

# SPDX-License-Identifier: Apache-2.0
"""Build the playground, a page that needs no server, in build/playground: the explorer, Pyodide and tilewright.

    python playground/build.py [--into build/playground]

Pyodide comes from the npm registry: by npm, or where there is none, by HTTPS from the registry that
npm_config_registry or an .npmrc names; the sum in the registry's metadata is checked. tilewright is the wheel without
the native library, with that of tilewright-mojo; if node is installed, Pyodide compiles it in advance, which saves the
page more than a second. NumPy and ml_dtypes are Pyodide's own wheels, from its CDN, with the sums of its lock file;
where they cannot be fetched, a stand-in takes their place. All of it lies beside the page, which loads nothing from
elsewhere. `playground.json` lists what there is.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OLDEST = (0, 27)  # the first Pyodide with Python 3.12
NEEDED = re.compile(r"package/(pyodide\.mjs|pyodide\.asm\.\w+|python_stdlib\.zip|pyodide-lock\.json)")
MAX_BYTES = 200 << 20  # of a download, and of what is in it
ARCHIVE = "tilewright.zip"
STAND_IN = "stand_in.zip"
NUMPY = ("numpy", "ml-dtypes")  # as Pyodide's lock file calls them
CDN = "https://cdn.jsdelivr.net/pyodide/v{version}/full/"
PACKAGE = ROOT / "packages" / "tilewright"
COMPANION = ROOT / "packages" / "tilewright-mojo"
LIBRARY = PACKAGE / "src" / "tilewright"
# The page may load its own files and nothing else; what its worker may load is said by whoever serves it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " worker-src 'self'; base-uri 'none'; form-action 'none'"
)


def main() -> None:
    """Build what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "playground", help="the folder")
    folder: Path = parser.parse_args().into
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        version = extract_pyodide(fetch_pyodide(Path(scratch)), folder)
        wheel, companion = build_wheels(Path(scratch))
        merge_wheels([wheel, companion], folder / ARCHIVE)
    numpy = bring_numpy(folder, CDN.format(version=version))
    is_compiled = compile_archives(folder, [ARCHIVE, STAND_IN] if numpy == STAND_IN else [ARCHIVE])
    copy_page(folder)
    facts = {"pyodide": version, "archive": ARCHIVE, "wheel": wheel.name, "compiled": is_compiled, "numpy": numpy}
    (folder / "playground.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")


def copy_page(folder: Path) -> None:
    """Copy the files of the explorer into a folder; its page is told that the engine is the browser."""
    shared = [LIBRARY / "views" / name for name in ("marks.js", "player.js")]
    for path in (*(LIBRARY / "explorer" / "page").iterdir(), *shared):
        shutil.copyfile(path, folder / path.name)
    page = folder / "index.html"
    text = page.read_text(encoding="utf-8")
    changes = {
        '<meta name="tilewright-engine" content="server">': '<meta name="tilewright-engine" content="browser">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        "<title>tilewright explorer</title>": "<title>tilewright playground</title>",
        "tilewright <b>explorer</b>": "tilewright <b>playground</b>",
    }
    for old, new in changes.items():
        if old not in text:
            sys.exit(f"index.html lacks {old}")
        text = text.replace(old, new)
    page.write_text(text, encoding="utf-8")


def fetch_pyodide(scratch: Path) -> bytes:
    """Return Pyodide's archive from the npm registry."""
    oldest = ".".join(map(str, OLDEST))
    npm = shutil.which("npm")
    if npm is not None:  # which checks the sum itself
        command = [npm, "pack", "--silent", "--pack-destination", str(scratch), f"pyodide@>={oldest}"]
        subprocess.run(command, check=True, cwd=scratch, stdout=subprocess.DEVNULL)
        return next(scratch.glob("pyodide-*.tgz")).read_bytes()
    registry = find_registry()
    if registry is None:
        sys.exit("npm is not installed, and neither npm_config_registry nor an .npmrc names a registry; install npm")
    release = json.loads(download(f"{registry}/pyodide/latest"))
    if tuple(map(int, re.findall(r"\d+", release["version"])[:2])) < OLDEST:
        sys.exit(f"the registry's newest Pyodide is {release['version']}; {oldest} or newer is needed")
    archive = download(release["dist"]["tarball"])
    check_sum(archive, release["dist"]["integrity"])
    return archive


def find_registry() -> str | None:
    """Return the address of the npm registry that the environment or an .npmrc names."""
    named = next((value for name, value in os.environ.items() if name.lower() == "npm_config_registry"), None)
    for file in (ROOT / ".npmrc", Path.home() / ".npmrc"):
        if named is None and file.is_file():
            found = re.search(r"^\s*registry\s*=\s*(\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
            named = found and found[1]
    return named.rstrip("/") if named else None


def download(address: str) -> bytes:
    """Return what is at an HTTPS address."""
    if not address.startswith("https://"):
        sys.exit(f"{address} is not an https address")
    with urllib.request.urlopen(address, timeout=60) as answer:
        data: bytes = answer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        sys.exit(f"{address} has more than {MAX_BYTES} bytes")
    return data


def check_sum(data: bytes, integrity: str) -> None:
    """Exit if data do not have one of the sums of the registry's metadata, such as "sha512-..."."""
    for entry in integrity.split():
        name, _, expected = entry.partition("-")
        is_known = name in ("sha256", "sha384", "sha512")
        if is_known and base64.b64encode(hashlib.new(name, data).digest()).decode() == expected.partition("?")[0]:
            return
    sys.exit(f"the archive of Pyodide does not have the sum of the registry's metadata, {integrity}")


def extract_pyodide(archive: bytes, folder: Path) -> str:
    """Write the files of Pyodide that a page needs into a folder; return the version."""
    written = []
    version = ""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as members:
        for member in members:
            needed = NEEDED.fullmatch(member.name)
            if not member.isfile() or (needed is None and member.name != "package/package.json"):
                continue
            if member.size > MAX_BYTES:
                sys.exit(f"{member.name} has {member.size} bytes, more than {MAX_BYTES}")
            data = read_member(members, member)
            if needed is None:
                version = str(json.loads(data)["version"])
            else:
                (folder / needed[1]).write_bytes(data)
                written.append(needed[1])
    missing = {"pyodide.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"} - set(written)
    if missing:
        sys.exit(f"the archive of Pyodide {version} lacks {', '.join(sorted(missing))}")
    return version


def read_member(members: Any, member: tarfile.TarInfo) -> bytes:
    """Return the bytes of a file in an archive."""
    file = members.extractfile(member)
    return bytes(file.read())


def build_wheels(scratch: Path) -> list[Path]:
    """Return the wheels of tilewright without the native library, and of the companion that runs kernels."""
    environment = os.environ | {"TILEWRIGHT_NATIVE": "0"}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(scratch)]
    subprocess.run([*command, str(PACKAGE), str(COMPANION)], check=True, env=environment)
    return [next(scratch.glob(f"{name}-*.whl")) for name in ("tilewright", "tilewright_mojo")]


def merge_wheels(wheels: list[Path], archive: Path) -> None:
    """Write the files of all wheels into one archive, with their entry points."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as merged:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as files:
                for name in files.namelist():
                    merged.writestr(name, files.read(name))


def bring_numpy(folder: Path, base: str, fetch: Callable[[str], bytes] | None = None) -> list[str] | str:
    """Put Pyodide's NumPy and ml_dtypes into its folder and return their names; the stand-in if they cannot be had.

    A wheel without the sum of the lock file ends the build.
    """
    packages = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    (folder / STAND_IN).unlink(missing_ok=True)
    for name in NUMPY:
        for old in folder.glob(f"{name.replace('-', '_')}-*.whl"):
            old.unlink()
    try:
        wheels = {packages[name]["file_name"]: packages[name]["sha256"] for name in NUMPY}
        data = {name: (fetch or download)(base + name) for name in wheels}
    except (KeyError, OSError) as problem:
        print(f"Pyodide's NumPy cannot be fetched ({problem!r}): the stand-in takes its place")
        shutil.make_archive(str(folder / Path(STAND_IN).stem), "zip", stand_in_files(folder))
        shutil.rmtree(folder / "stand_in")
        return STAND_IN
    for name, expected in wheels.items():
        if hashlib.sha256(data[name]).hexdigest() != expected:
            sys.exit(f"{base}{name} does not have the sum of pyodide-lock.json, {expected}")
        (folder / name).write_bytes(data[name])
    return list(NUMPY)


def stand_in_files(folder: Path) -> Path:
    """Return a copy of the stand-in without what Python has compiled of it."""
    copy = folder / "stand_in"
    shutil.copytree(
        ROOT / "playground" / "stand_in", copy, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
    )
    return copy


def compile_archives(folder: Path, archives: list[str]) -> bool:
    """Let Pyodide compile archives in a folder, if node is there to run it; return whether it did."""
    node = shutil.which("node")
    if node is None:
        print("node is not installed: the page compiles tilewright itself, at every visit")
        return False
    for archive in archives:
        subprocess.run([node, str(ROOT / "playground" / "compile.mjs"), str(folder), archive], check=True)
    return True


if __name__ == "__main__":
    main()

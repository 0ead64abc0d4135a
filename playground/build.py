# SPDX-License-Identifier: Apache-2.0
"""Build the playground, a page that needs no server, in build/playground: the explorer, Pyodide and tilewright.

    python playground/build.py [--into build/playground]

Needs Node.js, whose npm fetches Pyodide from its registry and checks the sum. tilewright is the wheel without the
native library, with that of tilewright-mojo and a stand-in for NumPy that is quick enough for drawings.
`prepare.mjs` does in advance what a visit would have to wait for: the page comes with its first picture, and Python
with a snapshot of its memory. All of it lies beside the page, in a folder named after what is in it, and the page loads
nothing from elsewhere. `playground.json` names the folder.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "playground"
OLDEST = "0.29"  # the first Pyodide whose snapshots hold what we need
NEEDED = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
FIRST = ("pyodide.asm.wasm.gz", "snapshot.bin.gz", "files.zip")  # what Python waits for; modules.zip follows
FALLBACK = ("python_stdlib.zip", "tilewright.zip")  # fetched only where the snapshot is of no use
PACKED = ("pyodide.asm.wasm", "snapshot.bin")
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
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not installed; install Node.js 20 or newer, which brings it")
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        pyodide = bring_pyodide(Path(scratch), made)
        wheels = build_wheels(Path(scratch))
        merge_wheels(wheels, made / "tilewright.zip")
        copy_page(made)
        subprocess.run(["node", str(HERE / "prepare.mjs"), str(made)], check=True)
        picture = (made / "first.html").read_text(encoding="utf-8")
        pack(made)
        facts = {"version": name_version(made), "pyodide": pyodide, "wheel": wheels[0].name}
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder / facts["version"])
    shutil.copyfile(HERE / "page" / "service_worker.js", folder / "service_worker.js")
    (folder / "index.html").write_text(page_text(folder / facts["version"], picture), encoding="utf-8")
    (folder / "playground.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            print(f"{path.stat().st_size:>12,}  {path.relative_to(folder)}")


def bring_pyodide(scratch: Path, folder: Path) -> str:
    """Put the files of Pyodide that a page needs into a folder; return the version."""
    command = ["npm", "pack", "--silent", "--pack-destination", str(scratch), f"pyodide@>={OLDEST}"]
    subprocess.run(command, check=True, cwd=scratch, stdout=subprocess.DEVNULL)
    with tarfile.open(next(scratch.glob("pyodide-*.tgz"))) as archive:
        for name in NEEDED:
            try:
                member = archive.extractfile(f"package/{name}")
            except KeyError:
                sys.exit(f"the archive of Pyodide lacks {name}")
            (folder / name).write_bytes(b"" if member is None else member.read())
    lock = folder / "pyodide-lock.json"
    info = json.loads(lock.read_text(encoding="utf-8"))["info"]
    lock.write_text(json.dumps({"info": info, "packages": {}}), encoding="utf-8")  # the page has no use for any other
    found = re.search(r"pyodide-(.+)\.tgz", next(scratch.glob("pyodide-*.tgz")).name)
    return found[1] if found else ""


def build_wheels(scratch: Path) -> list[Path]:
    """Return the wheels of tilewright without the native library, and of the companion that runs kernels."""
    environment = os.environ | {"TILEWRIGHT_NATIVE": "0"}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(scratch)]
    subprocess.run([*command, str(PACKAGE), str(COMPANION)], check=True, env=environment)
    return [next(scratch.glob(f"{name}-*.whl")) for name in ("tilewright", "tilewright_mojo")]


def merge_wheels(wheels: list[Path], archive: Path) -> None:
    """Write the files of all wheels and the stand-in into one archive; the page lies beside it."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as merged:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as files:
                for name in files.namelist():
                    if "/explorer/page/" not in name:
                        merged.writestr(name, files.read(name))
        for path in sorted([*(HERE / "stand_in").rglob("*.py"), HERE / "later_modules.py"]):
            base = HERE if path.parent == HERE else HERE / "stand_in"
            merged.write(path, path.relative_to(base))


def copy_page(folder: Path) -> None:
    """Copy the scripts, styles and pictures of the explorer and of the playground into a folder."""
    shared = [LIBRARY / "views" / name for name in ("marks.js", "player.js")]
    for path in (*(LIBRARY / "explorer" / "page").iterdir(), *(HERE / "page").iterdir(), *shared):
        if path.name not in ("index.html", "server_engine.js", "service_worker.js"):
            shutil.copyfile(path, folder / path.name)


def pack(folder: Path) -> None:
    """Compress what is large, drop what was needed only to build, and list what is there to be kept by a browser."""
    (folder / "first.html").unlink()
    for name in PACKED:
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes(), 6, mtime=0))
        (folder / name).unlink()
    names = sorted(path.name for path in folder.iterdir() if path.name not in FALLBACK)
    first = sum((folder / name).stat().st_size for name in FIRST)
    (folder / "files.json").write_text(json.dumps({"first": first, "files": names}), encoding="utf-8")


def name_version(folder: Path) -> str:
    """Return a name for what is in a folder: other files, another name."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


def page_text(folder: Path, picture: str) -> str:
    """Return the page, whose files are in a folder beside it, with the first picture in its place."""
    text = (LIBRARY / "explorer" / "page" / "index.html").read_text(encoding="utf-8")
    at = folder.name
    modules = imported_modules(folder, "main.js") | imported_modules(folder, "browser_engine.js")
    loaded = [f'<link rel="modulepreload" href="{at}/{name}">' for name in sorted(modules)]
    changes = {
        '<meta name="tilewright-engine" content="server">': '<meta name="tilewright-engine" content="browser">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<script src="{at}/early.js"></script>',
        "<title>tilewright explorer</title>": "<title>tilewright playground</title>",
        "tilewright <b>explorer</b>": "tilewright <b>playground</b>",
        '<link rel="icon" href="icon.svg"': f'<link rel="icon" href="{at}/icon.svg"',
        '<img src="icon.svg"': f'<img src="{at}/icon.svg"',
        'href="style.css">': f'href="{at}/style.css">',
        '<script type="module" src="main.js"></script>': "".join(
            f'<script type="module" src="{at}/{name}"></script>\n' for name in ("browser_engine.js", "main.js")
        )
        + f'<link rel="preload" as="fetch" crossorigin href="{at}/first.json">\n'
        + "\n".join(loaded),
        '<div id="sides"></div>': f'<div id="sides" data-count="1">{picture}</div>',
    }
    for old, new in changes.items():
        if old not in text:
            sys.exit(f"index.html lacks {old}")
        text = text.replace(old, new)
    return text


def imported_modules(folder: Path, name: str) -> set[str]:
    """Return the modules that a module of a page imports, and those that they import."""
    found = {name}
    waiting = [name]
    while waiting:
        text = (folder / waiting.pop()).read_text(encoding="utf-8")
        new = set(re.findall(r'^import .*"\./([\w.]+)";$', text, re.MULTILINE)) - found
        found |= new
        waiting += new
    return found


if __name__ == "__main__":
    main()

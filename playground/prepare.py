# SPDX-License-Identifier: Apache-2.0
"""What prepare.mjs asks of Python, in Pyodide: archives compiled, and split into what a snapshot has and has not."""

import importlib.util
import site
import sys
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc
from pathlib import Path, PurePosixPath

LIBRARY = "python_stdlib.zip"
ARCHIVES = {
    LIBRARY: next(path for path in sys.path if path.endswith(".zip")),
    "tilewright.zip": site.getsitepackages()[0],
}
"""The archives, and where Python finds what is in them."""
UNNEEDED = {"ensurepip", "idlelib", "pydoc_data", "test", "tkinter", "turtle", "turtledemo", "venv"}  # of the library


def compile_archives(folder: str) -> None:
    """Compile the modules of all archives in a folder; those whose source the simulated GPU reads keep it."""
    for name, home in ARCHIVES.items():
        compiled = {}
        for entry, data in read(Path(folder, name)).items():
            path = PurePosixPath(entry)
            if path.suffix != ".py":
                compiled[entry] = data
                continue
            code = compile(data, f"{home}/{entry}", "exec", dont_inherit=True, optimize=2)
            pyc = bytes(_code_to_hash_pyc(code, importlib.util.source_hash(data), checked=False))
            if path.parts[0] == "tilewright_mojo" or "mojo" in path.parts:
                tag = sys.implementation.cache_tag
                compiled |= {entry: data, f"{path.parent}/__pycache__/{path.stem}.{tag}.pyc": pyc}
            else:
                compiled[f"{entry}c"] = pyc
        write(Path(folder, name), compiled)


def read(path: Path) -> dict[str, bytes]:
    """Return the files of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {entry: archive.read(entry) for entry in archive.namelist() if not entry.endswith("/")}


def write(path: Path, files: dict[str, bytes]) -> None:
    """Write an archive, the same for the same files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)


def unpack(folder: str) -> list[str]:
    """Put tilewright where it will be in the browser; return the paths of its files."""
    home = ARCHIVES["tilewright.zip"]
    with zipfile.ZipFile(Path(folder, "tilewright.zip")) as archive:
        archive.extractall(home)
        return [f"{home}/{entry}" for entry in archive.namelist()]


def module_name(entry: str) -> str | None:
    """Return the name of a compiled module, None for another file."""
    path = PurePosixPath(entry.replace("__pycache__/", ""))
    if path.suffix != ".pyc":
        return None
    parts = [*path.parts[:-1], path.name.partition(".")[0]]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def split_archives(folder: str, imported: str) -> str:
    """Write files.zip, with all that is no module, and modules.zip, with what was not imported; return its names."""
    files: dict[str, bytes] = {}
    modules: dict[str, bytes] = {}
    names = set(imported.split())
    later = set()
    for archive in ARCHIVES:
        for entry, data in read(Path(folder, archive)).items():
            module = module_name(entry)
            if module is None:
                files[entry] = data
            elif module not in names and module.partition(".")[0] not in UNNEEDED:
                modules[entry] = data
                later.add(module)
    write(Path(folder, "files.zip"), files)
    write(Path(folder, "modules.zip"), modules)
    return " ".join(sorted(later))

# SPDX-License-Identifier: Apache-2.0
"""A compiler that compiles nothing, and the folder in which ttnn finds it.

Opening a device and running an operation build kernels, and the wheel of ttnn has no compiler for them. A mock device
never runs a kernel, so an executable with nothing in it does.
"""

from __future__ import annotations

import struct
from pathlib import Path

COMPILER = "riscv-tt-elf-g++"
_EMPTY = "nothing.elf"
_SCRIPT = """#!/bin/sh
# The stand-in of tilewright for a compiler: writes an executable with nothing in it.
out= dependencies=
while [ $# -gt 0 ]; do
    case $1 in
    -o) out=$2; shift ;;
    -MF) dependencies=$2; shift ;;
    --version) echo "stand-in of tilewright 15.1.0" ;;
    esac
    shift
done
[ -z "$out" ] || cp "${0%/*}/nothing.elf" "$out"
[ -z "$dependencies" ] || echo "$out:" >"$dependencies"
"""

_HEADER, _PROGRAM, _SECTION, _CODE = 52, 32, 40, bytes(16)
_ENTRY = 0x4000


def empty_executable() -> bytes:
    """Return a RISC-V executable of four empty instructions, with the empty relocations that kernels must have.

    >>> empty_executable()[:4]
    b'\\x7fELF'
    """
    names = b"\0.text\0.rela.text\0.shstrtab\0"
    code = _HEADER + _PROGRAM
    sections = code + len(_CODE)
    kind = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)  # 32 bits, little-endian
    sizes = (_HEADER, _PROGRAM, 1, _SECTION, 4, 3)
    start = kind + struct.pack("<HHIIIIIHHHHHH", 2, 243, 1, _ENTRY, _HEADER, sections, 0, *sizes)
    load = struct.pack("<8I", 1, code, _ENTRY, _ENTRY, len(_CODE), len(_CODE), 7, 4)
    text = (names.index(b".text"), 1, 6, _ENTRY, code, len(_CODE), 0, 0, 4, 0)
    relocations = (names.index(b".rela.text"), 4, 0, 0, sections, 0, 0, 1, 4, 12)
    strings = (names.index(b".shstrtab"), 3, 0, 0, sections + 4 * _SECTION, len(names), 0, 0, 1, 0)
    table = bytes(_SECTION) + b"".join(struct.pack("<10I", *entry) for entry in (text, relocations, strings))
    return start + load + _CODE + table + names


def write_compiler(sfpi: Path) -> None:
    """Write the stand-in into the folder `sfpi`, where ttnn expects its compiler.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_compiler(Path(folder))
    ...     sorted(path.name for path in Path(folder, "compiler", "bin").iterdir())
    ['nothing.elf', 'riscv-tt-elf-g++']
    """
    bin_folder = sfpi / "compiler" / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    (sfpi / "include").mkdir(exist_ok=True)
    (bin_folder / _EMPTY).write_bytes(empty_executable())
    compiler = bin_folder / COMPILER
    compiler.write_text(_SCRIPT)
    compiler.chmod(0o755)


def write_runtime_root(folder: Path, ttnn: Path) -> None:
    """Fill a `folder` with links to all of the installed `ttnn` folder, except for the compiler, which is a stand-in.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as temporary:
    ...     installed, root = Path(temporary, "ttnn"), Path(temporary, "root")
    ...     (installed / "runtime" / "hw").mkdir(parents=True)
    ...     write_runtime_root(root, installed)
    ...     sorted(path.name for path in (root / "runtime").iterdir())
    ['hw', 'sfpi']
    """
    runtime = folder / "runtime"
    runtime.mkdir(parents=True)
    for source, target in ((ttnn, folder), (ttnn / "runtime", runtime)):
        for entry in source.iterdir() if source.is_dir() else ():
            if entry.name not in ("runtime", "sfpi", "__pycache__"):
                (target / entry.name).symlink_to(entry)
    write_compiler(runtime / "sfpi")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A compiler that compiles nothing, with which the real ttnn opens a device of its mock cluster.

Opening a device builds firmware, and the wheel has no compiler for it. A mock device never runs the firmware, so an
executable with nothing in it does. `--install` puts this file where ttnn looks for its compiler.
"""

import importlib.util
import shutil
import struct
import sys
from pathlib import Path

NAME = "riscv-tt-elf-g++"
ELF_HEADER, PROGRAM_HEADER, SECTION_HEADER, CODE = 52, 32, 40, bytes(16)


def executable():
    """Return a RISC-V executable of four empty instructions."""
    names = b"\0.shstrtab\0"
    sections = ELF_HEADER + PROGRAM_HEADER + len(CODE)
    kind = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)  # 32 bits, little-endian
    sizes = (ELF_HEADER, PROGRAM_HEADER, 1, SECTION_HEADER, 2, 1)
    start = kind + struct.pack("<HHIIIIIHHHHHH", 2, 243, 1, 0, ELF_HEADER, sections, 0, *sizes)
    load = struct.pack("<8I", 1, ELF_HEADER + PROGRAM_HEADER, 0, 0, len(CODE), len(CODE), 5, 4)
    strings = (1, 3, 0, 0, sections + 2 * SECTION_HEADER, len(names), 0, 0, 1, 0)
    table = bytes(SECTION_HEADER) + struct.pack("<10I", *strings)
    return start + load + CODE + table + names


def compile_nothing(arguments):
    """Do as a compiler would that was called with these arguments, and write what it would write."""
    if "--version" in arguments:
        print(f"{NAME} (a stand-in) 15.1.0")
    if "-o" not in arguments:
        return
    out = Path(arguments[arguments.index("-o") + 1])
    out.write_bytes(executable())
    if out.suffix == ".o":
        source = next((argument for argument in arguments if argument.endswith((".cc", ".cpp", ".S"))), "")
        out.with_suffix(".d").write_text(f"{out}: {source}\n")


def install():
    """Put this file where the installed ttnn looks for its compiler."""
    module = importlib.util.find_spec("ttnn")
    target = Path(module.origin).parent / "runtime" / "sfpi" / "compiler" / "bin" / NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(__file__, target)
    target.chmod(0o755)


if __name__ == "__main__":
    install() if sys.argv[1:] == ["--install"] else compile_nothing(sys.argv[1:])

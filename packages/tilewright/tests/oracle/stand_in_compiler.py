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
ENTRY = 0x4000


def executable():
    """Return a RISC-V executable of four empty instructions, with the empty relocations that kernels must have."""
    names = b"\0.text\0.rela.text\0.shstrtab\0"
    code = ELF_HEADER + PROGRAM_HEADER
    sections = code + len(CODE)
    kind = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)  # 32 bits, little-endian
    sizes = (ELF_HEADER, PROGRAM_HEADER, 1, SECTION_HEADER, 4, 3)
    start = kind + struct.pack("<HHIIIIIHHHHHH", 2, 243, 1, ENTRY, ELF_HEADER, sections, 0, *sizes)
    load = struct.pack("<8I", 1, code, ENTRY, ENTRY, len(CODE), len(CODE), 7, 4)
    text = (names.index(b".text"), 1, 6, ENTRY, code, len(CODE), 0, 0, 4, 0)
    relocations = (names.index(b".rela.text"), 4, 0, 0, sections, 0, 0, 1, 4, 12)
    strings = (names.index(b".shstrtab"), 3, 0, 0, sections + 4 * SECTION_HEADER, len(names), 0, 0, 1, 0)
    table = bytes(SECTION_HEADER) + b"".join(struct.pack("<10I", *entry) for entry in (text, relocations, strings))
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

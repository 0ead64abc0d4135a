# SPDX-License-Identifier: Apache-2.0
"""CUDA C to machine code: by NVRTC, through CuPy, or from the kernels on disk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ..errors import DeviceError
from . import kernel_cache

# Exact bits matter: no fused approximations, no flushing of subnormals.
OPTIONS = ("--std=c++17", "--ftz=false", "--prec-div=true", "--fmad=false")


# A tenth less to wait for, where the compiler knows it.
QUICK = ("-w", "--minimal")


def machine_code(text: str, architecture: str, driver: str, options: Sequence[str] = OPTIONS) -> bytes:
    """Return the cubin of a program for an architecture such as "90", compiled now or found on disk."""
    return kernel_cache.kept(_facts(text, architecture, driver, options), lambda: compiled(text, architecture, options))


def forget(text: str, architecture: str, driver: str, options: Sequence[str] = OPTIONS) -> None:
    """Remove the machine code of a program from the disk."""
    kernel_cache.forget(_facts(text, architecture, driver, options))


def compiled(text: str, architecture: str, options: Sequence[str] = OPTIONS) -> bytes:
    """Return the cubin of a program, freshly compiled."""
    nvrtc: Any = import_module("cupy").cuda.nvrtc
    program = nvrtc.createProgram(text, "tilewright.cu", (), ())
    try:
        quick = QUICK if nvrtc.getVersion() >= (12, 9) else ()
        nvrtc.compileProgram(program, (*options, *quick, f"-arch=sm_{architecture}"))
        return bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as problem:
        log = str(nvrtc.getProgramLog(program)).strip("\0 \n")
        raise DeviceError(
            f"NVRTC {'.'.join(map(str, nvrtc.getVersion()))} could not compile for sm_{architecture}: {problem}\n{log}"
        ) from problem
    finally:
        nvrtc.destroyProgram(program)


def _facts(text: str, architecture: str, driver: str, options: Sequence[str]) -> list[str]:
    return ["cuda", architecture, driver, _compiler(), *options, text]


@cache
def _compiler() -> str:
    return f"NVRTC {import_module('cupy').cuda.nvrtc.getVersion()}"

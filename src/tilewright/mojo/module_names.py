# SPDX-License-Identifier: Apache-2.0
"""Mojo's modules that have another place here: its packages have more levels than ours."""

from __future__ import annotations

MODULES = {
    "std.sys.info": "std.sys_info",
    "std.sys.param_env": "std.sys",
    "std.sys.defines": "std.sys",
    "std.utils.index": "std.utils",
    "std.utils.static_tuple": "std.utils",
    "std.utils.coord": "std.utils_coord",
    "std.utils.numerics": "std.utils_numerics",
    "std.collections.array": "std.collections",
    "std.collections.dict": "std.collections",
    "std.collections.inline_array": "std.collections",
    "std.collections.list": "std.collections",
    "std.collections.optional": "std.collections",
    "std.math.math": "std.math",
    "std.math.constants": "std.math",
    "std.memory.unsafe": "std.memory",
    "std.memory.unsafe_pointer": "std.memory",
    "std.memory.pointer": "std.memory",
    "std.memory.span": "std.memory",
    "std.benchmark.bencher": "std.benchmark",
    "std.benchmark.compiler": "std.benchmark",
    "std.testing.testing": "std.testing",
    "test_utils": "std.test_utils",
}


def resolve_module(name: str) -> str:
    """Return the name of our module for one of Mojo's, both without `tilewright.mojo.`.

    >>> resolve_module("std.sys.info"), resolve_module("layout.coord")
    ('std.sys_info', 'layout.coord')
    """
    return MODULES.get(name, name)

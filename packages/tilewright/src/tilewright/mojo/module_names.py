# SPDX-License-Identifier: Apache-2.0
"""Mojo's modules that have another place here: its packages have more levels than ours."""

from __future__ import annotations

MODULES = {
    "std.sys.info": "std.sys_info",
    "std.sys.param_env": "std.sys",
    "std.sys.defines": "std.sys",
    "std.utils.index": "std.utils",
    "std.utils.static_tuple": "std.utils",
    "std.utils.coord": "layout.coord",
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
    "std.gpu.block": "std.gpu.primitives.block",
    "std.gpu.id": "std.gpu.primitives.id",
    "std.gpu.warp": "std.gpu.primitives.warp",
    # The newer name of std.gpu.
    "max.gpu": "std.gpu",
    "max.gpu.globals": "std.gpu.globals",
    "max.gpu.host": "std.gpu.host",
    "max.gpu.host.compile": "std.gpu.host",
    "max.gpu.host.info": "std.gpu.device_info",
    "max.gpu.intrinsics": "std.gpu.intrinsics",
    "max.gpu.memory": "std.gpu.memory",
    "max.gpu.primitives": "std.gpu.primitives",
    "max.gpu.primitives.block": "std.gpu.primitives.block",
    "max.gpu.primitives.cluster": "std.gpu.primitives.cluster",
    "max.gpu.primitives.id": "std.gpu.primitives.id",
    "max.gpu.primitives.warp": "std.gpu.primitives.warp",
    "max.gpu.sync": "std.gpu.sync",
}


def resolve_module(name: str) -> str:
    """Return the name of our module for one of Mojo's, both without `tilewright.mojo.`.

    >>> resolve_module("std.sys.info"), resolve_module("layout.coord")
    ('std.sys_info', 'layout.coord')
    """
    return MODULES.get(name, name)

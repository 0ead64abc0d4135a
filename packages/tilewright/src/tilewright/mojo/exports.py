# SPDX-License-Identifier: Apache-2.0
"""Mojo's modules and the names they export, and where those are defined here: Mojo's packages have more levels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

EXPORTS: dict[str, dict[str, str]] = {
    "std.algorithm": {
        "mojo.std.functional": "elementwise map parallelize sync_parallelize tile unswitch vectorize",
    },
    "std.algorithm.functional": {
        "mojo.std.functional": "elementwise map parallelize sync_parallelize tile unswitch vectorize",
    },
    "std.benchmark": {
        "mojo.std.system": (
            "Bench BenchConfig BenchId BenchMetric Bencher BenchmarkInfo Report ThroughputMeasure bencher_iter_custom "
            "black_box keep run"
        ),
    },
    "std.bit": {
        "mojo.std.numbers": (
            "bit_reverse bit_width byte_swap count_leading_zeros count_trailing_zeros is_power_of_two log2_ceil "
            "log2_floor next_power_of_two pop_count prev_power_of_two"
        ),
    },
    "std.collections": {
        "mojo.memory": "Array InlineArray",
        "mojo.collections": "Counter Deque Dict List Optional Set",
    },
    "std.gpu": {
        "mojo.std.threads": (
            "MAX_THREADS_PER_BLOCK_METADATA WARP_SIZE block_id_in_cluster cluster_dim cluster_idx lane_id sm_id warp_id"
        ),
        "simt": "barrier block_dim block_idx global_idx grid_dim thread_idx",
    },
    "std.gpu.globals": {
        "mojo.std.threads": "MAX_THREADS_PER_BLOCK_METADATA WARPGROUP_SIZE WARP_SIZE",
    },
    "std.gpu.host": {
        "mojo.std.device": (
            "DeviceAttribute DeviceBuffer DeviceContext DeviceFunction Dim GPUInfo HostBuffer get_gpu_target"
        ),
    },
    "std.gpu.host.info": {
        "mojo.std.device": "DeviceAttribute Dim GPUInfo",
    },
    "std.gpu.intrinsics": {
        "mojo.std.threads": "Scope ldg threadfence",
    },
    "std.gpu.memory": {
        "mojo.memory": "AddressSpace",
        "mojo.std.threads": (
            "CacheEviction CacheOperation Fill async_copy async_copy_commit_group async_copy_wait_all "
            "async_copy_wait_group external_memory fence_mbarrier_init threadfence"
        ),
    },
    "std.gpu.primitives": {},
    "std.gpu.primitives.block": {
        "mojo.std.block": "broadcast max min prefix_sum reduce sum",
    },
    "std.gpu.primitives.cluster": {
        "mojo.std.threads": (
            "block_rank_in_cluster cluster_arrive cluster_arrive_relaxed cluster_sync cluster_sync_relaxed "
            "cluster_wait elect_one_sync"
        ),
    },
    "std.gpu.primitives.id": {
        "simt": "block_dim block_idx global_idx grid_dim thread_idx",
        "mojo.std.threads": "block_id_in_cluster cluster_dim cluster_idx lane_id sm_id warp_id",
    },
    "std.gpu.primitives.warp": {
        "mojo.std.threads": "WARP_SIZE",
        "mojo.std.warp": (
            "broadcast lane_group_max lane_group_min lane_group_reduce lane_group_sum max min prefix_sum reduce "
            "shuffle_down shuffle_idx shuffle_up shuffle_xor sum vote"
        ),
    },
    "std.gpu.sync": {
        "simt": "barrier",
        "mojo.std.threads": (
            "mbarrier_arrive mbarrier_init mbarrier_test_wait mbarrier_try_wait_parity_shared named_barrier syncwarp"
        ),
    },
    "std.itertools": {
        "itertools": "chain count cycle product repeat takewhile",
        "mojo.std.system": "drop drop_while take take_while",
    },
    "std.memory": {
        "mojo.memory": "AddressSpace Pointer Span UnsafePointer alloc",
        "mojo.collections": "ArcPointer OwnedPointer",
        "mojo.std.system": (
            "bitcast memcmp memcpy memset memset_zero pack_bits stack_allocation unsafe_bitcast unsafe_memcpy "
            "unsafe_memset unsafe_memset_zero unsafe_stack_allocation"
        ),
    },
    "std.os": {
        "mojo.std.system": "abort getenv",
    },
    "std.random": {
        "mojo.std.numbers": "rand randint randn randn_float64 random_float64 random_si64 random_ui64 seed shuffle",
    },
    "std.testing": {
        "mojo.std.system": (
            "TestSuite assert_almost_equal assert_equal assert_equal_pyobj assert_false assert_is assert_is_not "
            "assert_not_equal assert_raises assert_true"
        ),
    },
    "std.utils": {
        "mojo.builtins": "Index IndexList StaticTuple",
        "mojo.collections": "Variant",
    },
    "std.utils.numerics": {
        "mojo.std.numbers": "get_accum_type inf max_finite max_or_inf min_finite min_or_neg_inf nan neg_inf",
        "mojo.std.math": "isfinite isinf isnan",
    },
}
"""The names that a module of Mojo exports, by the module that defines them; modules that are files list their own."""

MODULES = {
    "std.sys.info": "std.sys_info",
    "std.sys.param_env": "std.sys",
    "std.sys.defines": "std.sys",
    "std.utils.index": "std.utils",
    "std.utils.static_tuple": "std.utils",
    "std.utils.coord": "layout.coord",
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
    "max.gpu": "std.gpu",
    "max.gpu.globals": "std.gpu.globals",
    "max.gpu.host": "std.gpu.host",
    "max.gpu.host.compile": "std.gpu.host",
    "max.gpu.host.info": "std.gpu.host.info",
    "max.gpu.intrinsics": "std.gpu.intrinsics",
    "max.gpu.memory": "std.gpu.memory",
    "max.gpu.primitives": "std.gpu.primitives",
    "max.gpu.primitives.block": "std.gpu.primitives.block",
    "max.gpu.primitives.cluster": "std.gpu.primitives.cluster",
    "max.gpu.primitives.id": "std.gpu.primitives.id",
    "max.gpu.primitives.warp": "std.gpu.primitives.warp",
    "max.gpu.sync": "std.gpu.sync",
}
"""Other names of modules; `max.gpu` is the newer one of `std.gpu`."""
_LIBRARY, _, _ = __name__.partition(".")
_HOME = __name__.rpartition(".")[0]


def resolve_module(name: str) -> str:
    """Return the name of our module for one of Mojo's, both without `tilewright.mojo.`.

    >>> resolve_module("std.sys.info"), resolve_module("layout.coord")
    ('std.sys_info', 'layout.coord')
    """
    return MODULES.get(name, name)


def listed_module(name: str) -> str | None:
    """Return the entry of `EXPORTS` for a module of Mojo by any of its names; None for those that are files.

    >>> listed_module("max.gpu.host"), listed_module("std.math")
    ('std.gpu.host', None)
    """
    return next((key for key in (name, resolve_module(name)) if key in EXPORTS), None)


class ExportsFinder(MetaPathFinder, Loader):
    """Makes the modules of `EXPORTS` on their first import."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a listed module is made; None for others."""
        if not name.startswith(f"{_HOME}.") or listed_module(short := name.removeprefix(f"{_HOME}.")) is None:
            return None
        is_package = any(other.startswith(f"{short}.") for other in (*EXPORTS, *MODULES))
        return ModuleSpec(name, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        """Give a module the names that it exports."""
        key = listed_module(module.__name__.removeprefix(f"{_HOME}."))
        names: list[str] = []
        for home, listed in EXPORTS[str(key)].items():
            defining = import_module(f"{_LIBRARY}.{home}" if home.startswith(("mojo.", "simt")) else home)
            for name in listed.split():
                setattr(module, name, getattr(defining, name))
                names.append(name)
        module.__dict__["__all__"] = names


sys.meta_path.append(ExportsFinder())

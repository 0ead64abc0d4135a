# SPDX-License-Identifier: Apache-2.0
"""Mojo's modules: the names that each exports, and the modules that define them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

EXPORTS: dict[str, dict[str, str]] = {
    "buffer": {"tilewright_mojo.older.buffer": "Dim DimList NDBuffer"},
    "layout": {"tilewright.mojo.layout": "*", "tilewright_mojo.older": "*"},
    "layout._fillers": {"tilewright_mojo.older.functions": "arange random"},
    "layout.coord": {
        "tilewright.mojo.layout.coord": "All ComptimeInt Coord CoordLike Idx RuntimeInt coord coord_to_index_list"
    },
    "layout.int_tuple": {
        "tilewright_mojo.older.int_tuple": (
            "IntTuple UNKNOWN_VALUE abs apply compact_order compatible congruent coord_to_int_tuple crd2idx "
            "create_unknown_int_tuple depth fill_like flatten idx2crd inner_product is_int is_tuple mul "
            "prefix_product product product_each reduce reverse shape_div signum size sorted sum to_index_list "
            "to_unknown tuple_max weakly_compatible weakly_congruent"
        )
    },
    "layout.layout": {
        "tilewright_mojo.older.layout": (
            "IntTuple Layout LayoutList MakeLayoutList MakeTileLayoutList apply_tiler blocked_product coalesce "
            "complement composition cosize crd2idx downcast expand_modes_alike expand_strides "
            "hierarchical_unzip idx2crd is_row_major logical_divide logical_product make_layout make_ordered_layout "
            "print_layout right_inverse size sublayout tile_to_shape upcast zip_modes zipped_divide"
        ),
        "tilewright_mojo.older.int_tuple": "flatten",
    },
    "layout.layout_tensor": {
        "tilewright_mojo.older.int_tuple": "IntTuple UNKNOWN_VALUE",
        "tilewright_mojo.older.layout": "Layout LayoutList MakeLayoutList blocked_product composition print_layout",
        "tilewright_mojo.older.layout_tensor_view": "LayoutTensor stack_allocation_like",
        "tilewright_mojo.older.layout_tensor_iter": "LayoutTensorIter",
        "tilewright_mojo.older.runtime_layout": "RuntimeLayout",
        "tilewright_mojo.older.runtime_tuple": "RuntimeTuple",
        "tilewright_mojo.older.memory_copies": (
            "ThreadScope copy_dram_to_local copy_dram_to_sram copy_dram_to_sram_async copy_local_to_dram "
            "copy_local_to_local copy_local_to_shared copy_local_to_sram copy_sram_to_dram copy_sram_to_local"
        ),
        "tilewright_mojo.older.functions": "copy",
        "tilewright_mojo.library.system": "unsafe_stack_allocation",
    },
    "layout.math": {"tilewright_mojo.older.functions": "max mean outer_product_acc sum variance"},
    "layout.numpy": {"tilewright_mojo.older.functions": "from_numpy to_numpy"},
    "layout.runtime_layout": {"tilewright_mojo.older.runtime_layout": "RuntimeLayout coalesce make_layout"},
    "layout.runtime_tuple": {
        "tilewright_mojo.older.runtime_tuple": (
            "RuntimeTuple concat crd2idx idx2crd is_int is_tuple prefix_product product shape_div signum to_index_list"
        )
    },
    "layout.swizzle": {"tilewright.mojo.layout.swizzle": "ComposedLayout Swizzle make_ldmatrix_swizzle make_swizzle"},
    "layout.tensor_storage": {"tilewright.mojo.layout.tensor_storage": "PointerStorage TensorOps TensorStorage"},
    "layout.tile_layout": {
        "tilewright.mojo.layout.tile_layout": (
            "BlockedProductLayout CoalesceLayout ColMajorLayout Layout RowMajorLayout TensorLayout UpcastLayout "
            "WeaklyCompatible ZippedDivideLayout blocked_product coalesce col_major col_major_nested crd2idx idx2crd "
            "is_compatible_with row_major row_major_nested upcast zipped_divide"
        )
    },
    "layout.tile_tensor": {
        "tilewright.mojo.layout.tile_tensor": "TileTensor TileTensorIter flatten_leading stack_allocation",
        "tilewright.mojo.layout.coord": "All",
        "tilewright_mojo.older.layout_tensor_view": "NullableTileTensor lt_to_tt",
    },
    "std.algorithm": {
        "tilewright_mojo.library.functional": "elementwise map parallelize sync_parallelize tile vectorize"
    },
    "std.atomic": {
        "tilewright_mojo.library.atomic": "Atomic Consistency Ordering",
        "tilewright_mojo.simt.collectives": "fence",
    },
    "std.benchmark": {
        "tilewright_mojo.library.system": (
            "Bench BenchConfig BenchId BenchMetric Bencher Report ThroughputMeasure keep run"
        )
    },
    "std.bit": {
        "tilewright_mojo.library.numbers": (
            "bit_reverse bit_width byte_swap count_leading_zeros count_trailing_zeros is_power_of_two log2_ceil "
            "log2_floor next_power_of_two pop_count prev_power_of_two"
        )
    },
    "std.collections": {
        "tilewright.mojo.memory": "Array InlineArray",
        "tilewright_mojo.collections": "Counter Deque Dict List Optional Set",
    },
    "std.gpu": {
        "tilewright_mojo.library.threads": (
            "MAX_THREADS_PER_BLOCK_METADATA WARP_SIZE block_id_in_cluster cluster_dim cluster_idx lane_id warp_id"
        ),
        "tilewright_mojo.simt": "barrier block_dim block_idx global_idx grid_dim thread_idx",
    },
    "std.gpu.globals": {"tilewright_mojo.library.threads": "MAX_THREADS_PER_BLOCK_METADATA WARPGROUP_SIZE WARP_SIZE"},
    "std.gpu.host": {
        "tilewright_mojo.library.device": (
            "DeviceAttribute DeviceBuffer DeviceContext DeviceFunction Dim GPUInfo HostBuffer get_gpu_target"
        )
    },
    "std.gpu.intrinsics": {"tilewright_mojo.library.threads": "ldg threadfence"},
    "std.gpu.memory": {
        "tilewright.mojo.memory": "AddressSpace",
        "tilewright_mojo.library.threads": (
            "Fill async_copy async_copy_commit_group async_copy_wait_all "
            "async_copy_wait_group external_memory fence_mbarrier_init threadfence"
        ),
    },
    "std.gpu.primitives.block": {"tilewright_mojo.library.block": "broadcast max min prefix_sum reduce sum"},
    "std.gpu.primitives.cluster": {
        "tilewright_mojo.library.threads": (
            "block_rank_in_cluster cluster_arrive cluster_arrive_relaxed cluster_sync cluster_sync_relaxed "
            "cluster_wait elect_one_sync"
        )
    },
    "std.gpu.primitives.warp": {
        "tilewright_mojo.library.threads": "WARP_SIZE",
        "tilewright_mojo.library.warp": (
            "broadcast lane_group_max lane_group_min lane_group_reduce lane_group_sum max min prefix_sum reduce "
            "shuffle_down shuffle_idx shuffle_up shuffle_xor sum vote"
        ),
    },
    "std.gpu.sync": {
        "tilewright_mojo.simt": "barrier",
        "tilewright_mojo.library.threads": "mbarrier_arrive mbarrier_init mbarrier_test_wait syncwarp",
    },
    "std.itertools": {
        "itertools": "chain count cycle product repeat takewhile",
    },
    "std.math": {
        "tilewright_mojo.library.math": (
            "abs acos acosh align_down align_up asin asinh atan atan2 atanh cbrt ceil ceildiv clamp copysign cos cosh "
            "erf erfc exp exp2 expm1 factorial floor fma gamma gcd hypot iota isclose isfinite isinf isnan lcm lgamma "
            "log log10 log1p log2 max min pi pow recip remainder round rsqrt sin sinh sqrt tan tanh tau trunc"
        )
    },
    "std.memory": {
        "tilewright.mojo.memory": "AddressSpace Pointer Span UnsafePointer alloc",
        "tilewright_mojo.collections": "ArcPointer OwnedPointer",
        "tilewright_mojo.library.system": (
            "bitcast memcmp memcpy memset memset_zero pack_bits stack_allocation unsafe_bitcast unsafe_memcpy "
            "unsafe_memset unsafe_memset_zero unsafe_stack_allocation"
        ),
    },
    "std.os": {"tilewright_mojo.library.system": "abort getenv"},
    "std.random": {
        "tilewright_mojo.library.numbers": (
            "rand randint randn randn_float64 random_float64 random_si64 random_ui64 seed shuffle"
        )
    },
    "std.sys": {
        "tilewright.mojo.builtins": "align_of alignof bit_width_of bitwidthof simd_width_of simdwidthof size_of sizeof",
        "tilewright_mojo.library.sys_info": (
            "CompilationTarget exit has_accelerator has_amd_gpu_accelerator has_apple_gpu_accelerator "
            "has_nvidia_gpu_accelerator is_64bit is_amd_gpu is_apple_gpu is_gpu is_little_endian is_nvidia_gpu "
            "num_logical_cores num_physical_cores simd_byte_width stderr stdout"
        ),
        "tilewright_mojo.program_arguments": (
            "argv get_defined_bool get_defined_dtype get_defined_int get_defined_string is_defined"
        ),
    },
    "std.testing": {
        "tilewright_mojo.library.system": (
            "TestSuite assert_almost_equal assert_equal assert_false assert_not_equal assert_raises assert_true"
        )
    },
    "std.time": {
        "tilewright_mojo.library.sys_info": (
            "global_perf_counter_ns monotonic perf_counter perf_counter_ns sleep time_function"
        )
    },
    "std.utils": {
        "tilewright.mojo.builtins": "Index IndexList",
        "tilewright_mojo.types": "StaticTuple",
        "tilewright_mojo.collections": "Variant",
    },
    "std.utils.numerics": {
        "tilewright_mojo.library.numbers": (
            "get_accum_type inf max_finite max_or_inf min_finite min_or_neg_inf nan neg_inf"
        ),
        "tilewright_mojo.library.math": "isfinite isinf isnan",
    },
}
"""The names that a module of Mojo exports, by the module that defines them."""

_ALIASES = {
    "std.sys": "std.sys.param_env std.sys.defines std.sys.info",
    "std.utils": "std.utils.index std.utils.static_tuple",
    "layout.coord": "std.utils.coord",
    "std.collections": (
        "std.collections.array std.collections.dict std.collections.inline_array std.collections.list "
        "std.collections.optional"
    ),
    "std.math": "std.math.math std.math.constants",
    "std.memory": "std.memory.unsafe std.memory.unsafe_pointer std.memory.pointer std.memory.span",
    "std.benchmark": "std.benchmark.bencher std.benchmark.compiler",
    "std.testing": "std.testing.testing",
    "std.gpu.primitives.block": "std.gpu.block",
    "std.gpu": "std.gpu.id std.gpu.primitives.id",
    "std.gpu.primitives.warp": "std.gpu.warp",
    "std.algorithm": "std.algorithm.functional",
    "std.gpu.host": "std.gpu.host.info std.gpu.host.compile",
}
"""Other names of modules, by the name in `EXPORTS`."""
MODULES = {other: name for name, others in _ALIASES.items() for other in others.split()}
MODULES |= {  # the newer names of `std.gpu`
    f"max{name.removeprefix('std')}": MODULES.get(name, name)
    for name in (*EXPORTS, *MODULES)
    if name.startswith("std.gpu")
}
_HOME = __name__.rpartition(".")[0]
_DIALECT = (
    "tilewright.mojo.",
    *[f"{_HOME}.{name}" for name in ("collections", "errors", "library.", "older.", "prelude", "types")],
)
_MACHINERY = ("tilewright.mojo.brackets", "tilewright.mojo.scalar_memory")
_PACKAGES = {name[:k] for name in (*EXPORTS, *MODULES) for k, letter in enumerate(name) if letter == "."}


def is_of_dialect(module: str) -> bool:
    """Return whether programs work with the classes of a module, rather than it running them or holding their memory.

    >>> is_of_dialect("tilewright.mojo.simd"), is_of_dialect("tilewright_mojo.language.program")
    (True, False)
    """
    return module.startswith(_DIALECT) and not module.startswith(_MACHINERY)


def load_names(homes: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of names, which `homes` lists by the module that defines them; * is all that it lists.

    >>> load_names({"math": "pi"})
    {'pi': 3.141592653589793}
    """
    modules = [(import_module(home), names) for home, names in homes.items()]
    return {
        name: getattr(module, name)
        for module, names in modules
        for name in (module.__all__ if names == "*" else names.split())
    }


class MojoModule(ModuleType):
    """A module of Mojo: the names that the table lists for it."""

    def __init__(self, name: str, key: str | None) -> None:
        super().__init__(f"{_HOME}.{name}", f"Mojo's module `{name}`.")
        names = load_names(EXPORTS.get(key or "", {}))
        self.__dict__.update(names, __all__=list(names))

    def __setattr__(self, name: str, value: object) -> None:
        """Set what the import of a module sets, unless the package exports something else by the module's name."""
        if name not in self.__dict__["__all__"]:
            super().__setattr__(name, value)


def resolve_module(name: str) -> str | None:
    """Return the entry of `EXPORTS` for a module of Mojo by any of its names; None if there is none.

    >>> resolve_module("max.gpu.host"), resolve_module("std.nothing")
    ('std.gpu.host', None)
    """
    return next((key for key in (name, MODULES.get(name, "")) if key in EXPORTS), None)


def is_module(name: str) -> bool:
    """Return whether Mojo has a module or a package of a name here.

    >>> is_module("layout.coord"), is_module("std"), is_module("layout.nothing")
    (True, True, False)
    """
    return name in _PACKAGES or resolve_module(name) is not None


def module_names() -> list[str]:
    """Return the names of all modules and packages of Mojo, packages before their modules.

    >>> module_names()[:2]
    ['buffer', 'layout']
    """
    return sorted({*EXPORTS, *MODULES, *_PACKAGES})


class ExportsFinder(MetaPathFinder, Loader):
    """Makes Mojo's modules on their first import; all names of one module mean the same."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module of Mojo is made; None for others."""
        if not name.startswith(f"{_HOME}.") or not is_module(short := name.removeprefix(f"{_HOME}.")):
            return None
        return ModuleSpec(name, self, is_package=short in _PACKAGES)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module with the names that it exports."""
        name = spec.name.removeprefix(f"{_HOME}.")
        key = resolve_module(name)
        return MojoModule(name, key)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""


sys.meta_path.append(ExportsFinder())

# SPDX-License-Identifier: Apache-2.0
"""The ttnn dialect, over simulated chips: with `import tilewright.ttnn as ttnn`, the examples of its documents run.

Nothing here imports ttnn or torch: both can be used beside it in one process.
"""

from .cores import (
    CoreCoord,
    CoreGrid,
    CoreRange,
    CoreRangeSet,
    corerange_to_cores,
    num_cores_to_corerangeset,
    split_work_to_cores,
)
from .creation import (
    allocate_tensor_on_device,
    allocate_tensor_on_host,
    arange,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from .devices import (
    BufferPage,
    Device,
    GetDefaultDevice,
    SetDefaultDevice,
    close_device,
    dump_device_memory_state,
    get_buffer_pages,
    manage_device,
    open_device,
    synchronize_device,
)
from .distributed import (
    aggregate_as_tensor,
    aggregate_tensor,
    combine_device_tensors,
    distribute_tensor,
    from_host_shards,
    get_device_tensors,
)
from .enums import (
    BORROWED_HOST_STORAGE,
    DEVICE_STORAGE,
    DEVICE_STORAGE_TYPE,
    OWNED_HOST_STORAGE,
    ROW_MAJOR_LAYOUT,
    TILE_LAYOUT,
    WIDTH_MULTIPLES,
    BufferType,
    DataType,
    DumpTensorMode,
    Layout,
    ShardDistributionStrategy,
    ShardOrientation,
    ShardShapeAlignment,
    ShardStrategy,
    StorageType,
    TensorMemoryLayout,
    bfloat4_b,
    bfloat8_b,
    bfloat16,
    float32,
    fp8_e4m3,
    int8,
    int32,
    uint8,
    uint16,
    uint32,
    width_multiple,
)
from .memory import (
    DRAM_MEMORY_CONFIG,
    L1_BLOCK_SHARDED_MEMORY_CONFIG,
    L1_HEIGHT_SHARDED_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    L1_WIDTH_SHARDED_MEMORY_CONFIG,
    MemoryConfig,
    NdShardSpec,
    ShardSpec,
)
from .memory_view import MemoryView, get_memory_view
from .mesh_configs import MeshComposerConfig, MeshMapperConfig
from .mesh_device import (
    MeshDevice,
    close_mesh_device,
    create_mesh_device,
    get_device_ids,
    get_num_devices,
    open_mesh_device,
)
from .mesh_mappers import (
    ConcatMesh2dToTensor,
    ConcatMeshToTensor,
    MeshToTensor,
    ReplicateTensorToMesh,
    ShardTensor2dMesh,
    ShardTensorToMesh,
    TensorToMesh,
    concat_mesh_to_tensor_composer,
    create_mesh_composer,
    create_mesh_mapper,
    replicate_tensor_to_mesh_mapper,
    shard_tensor_to_mesh_mapper,
)
from .meshes import MeshCoordinate, MeshShape, PlacementReplicate, PlacementShard, TensorTopology
from .movement import (
    copy_device_to_host_tensor,
    copy_host_to_device_tensor,
    interleaved_to_sharded,
    reshard,
    sharded_to_interleaved,
)
from .operations import (
    deallocate,
    from_device,
    from_numpy,
    from_torch,
    get_memory_config,
    pad,
    permute,
    reciprocal,
    reshape,
    tilize,
    tilize_with_val_padding,
    tilize_with_zero_padding,
    to_device,
    to_dtype,
    to_layout,
    to_memory_config,
    to_numpy,
    to_torch,
    transpose,
    typecast,
    unpad,
    untilize,
    untilize_with_unpadding,
)
from .printing import set_printoptions
from .sharded_config import (
    create_dram_sharded_mem_config,
    create_sharded_memory_config,
    create_sharded_memory_config_,
)
from .slicing import concat, slice, squeeze, unsqueeze, unsqueeze_to_4D
from .strict_rules import strict
from .tensor import TILE_SIZE, Tensor
from .tensor_files import as_tensor, dump_tensor, load_tensor
from .tensor_spec import Shape, TensorSpec, Tile
from .visualizer_report import write_visualizer_report

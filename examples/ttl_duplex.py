# SPDX-License-Identifier: Apache-2.0
"""Duplex buffering in the TTL dialect, as TTL's tutorial writes it, with a prolog and an epilog around the tiles.

    python examples/ttl_duplex.py

The import of tile i and the export of tile i - 1 run together; then tile i is computed. Two buffers.
"""

from typing import Any

import numpy as np

from tilewright import ttl

WIDTH, HEIGHT, TILE_WIDTH, TILE_HEIGHT = 100, 70, 40, 48
MEMORY_SIZE = 1 << 14


def compute(tensor_in: Any, tensor_out: Any) -> None:
    """Add one to every element, through pointers, as a kernel does."""
    l_in, l_out = tensor_in.base, tensor_out.base
    stride_in, stride_out = tensor_in.layout.row_spacing, tensor_out.layout.row_spacing
    for y in range(tensor_in.shape.height):
        for x in range(tensor_in.shape.width):
            l_out[y * stride_out + x] = l_in[y * stride_in + x] + 1


def tile2tile_compute(
    ext_base_in: Any, external_stride_in: Any, ext_base_out: Any, external_stride_out: Any, width: Any, height: Any
) -> None:
    l_in, l_out = bytearray(MEMORY_SIZE), bytearray(MEMORY_SIZE)

    # Logical tiling.
    image_shape = ttl.create_shape(width, height)
    tile_shape = ttl.create_shape(TILE_WIDTH, TILE_HEIGHT)
    tiler = ttl.create_tiler(image_shape, tile_shape)

    # External tensors.
    ext_in = ttl.create_ext_tensor(ext_base_in, image_shape, ttl.create_layout(external_stride_in))
    ext_out = ttl.create_ext_tensor(ext_base_out, image_shape, ttl.create_layout(external_stride_out))

    sb_e_in = ttl.get_event()
    sb_e_out = ttl.get_event()
    sb_scheme = ttl.create_duplex_buffering(ext_in, l_in, ext_out, l_out, sb_e_in, sb_e_out)

    pipeline_iters = ttl.create_pipeline_iterations(sb_scheme)
    for i in range(-pipeline_iters.prolog, ttl.number_of_tiles(tiler) + pipeline_iters.epilog):
        t = ttl.get_tile(i, tiler)
        # Import the current tile, export the previous one, and wait for both.
        tensors = ttl.step_buffering(sb_scheme, t)
        if not ttl.tensors_empty(tensors):
            compute(tensors.imported_to, tensors.to_export_from)


def main() -> None:
    image = np.random.default_rng(0).integers(0, 100, (HEIGHT, WIDTH)).astype(np.uint8)
    result = np.zeros_like(image)
    tile2tile_compute(image, WIDTH, result, WIDTH, WIDTH, HEIGHT)
    if not np.array_equal(result, image + 1):
        raise AssertionError("the pipeline and NumPy disagree")
    print(f"duplex buffering: one added to {WIDTH} x {HEIGHT} elements, the same as NumPy's")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Simplex buffering in the TTL dialect, as TTL's tutorial writes it, and the schedule that it follows.

    python examples/ttl_simplex.py

Three buffers in rotation: each is read, then written, then exported and imported into again.
"""

from typing import Any

import numpy as np

from tilewright import ttl

WIDTH, HEIGHT, TILE_WIDTH, TILE_HEIGHT = 300, 200, 128, 88
MEMORY_SIZE = 1 << 14


def compute(tensor_in: Any, tensor_out: Any) -> None:
    """Add one to every element, through NumPy views of the tensors."""
    np.add(tensor_in.array(), 1, out=tensor_out.array())


def tile2tile_compute(
    ext_base_in: Any, external_stride_in: Any, ext_base_out: Any, external_stride_out: Any, width: Any, height: Any
) -> None:
    l_buff1, l_buff2, l_buff3 = (bytearray(MEMORY_SIZE) for _ in range(3))

    # Logical tiling.
    image_shape = ttl.create_shape(width, height)
    tile_shape = ttl.create_shape(TILE_WIDTH, TILE_HEIGHT)
    tiler = ttl.create_tiler(image_shape, tile_shape)

    # External tensors.
    ext_in = ttl.create_ext_tensor(ext_base_in, image_shape, ttl.create_layout(external_stride_in))
    ext_out = ttl.create_ext_tensor(ext_base_out, image_shape, ttl.create_layout(external_stride_out))

    tb_e_in = ttl.get_event()
    tb_e_out = ttl.get_event()
    tb_scheme = ttl.create_simplex_buffering(l_buff1, l_buff2, l_buff3, ext_in, ext_out, tb_e_in, tb_e_out)

    pipeline_iters = ttl.create_pipeline_iterations(tb_scheme)
    for i in range(-pipeline_iters.prolog, ttl.number_of_tiles(tiler) + pipeline_iters.epilog):
        next_tile = ttl.get_tile(i + 1, tiler)
        # Wait for import i and export i - 2; begin export i - 1 and, behind it in the same buffer, import i + 1.
        tensors = ttl.step_buffering(tb_scheme, next_tile)
        if not ttl.tensors_empty(tensors):
            compute(tensors.imported_to, tensors.to_export_from)


def main() -> None:
    image = np.random.default_rng(0).integers(0, 100, (HEIGHT, WIDTH)).astype(np.uint8)
    result = np.zeros_like(image)
    tile2tile_compute(image, WIDTH, result, WIDTH, WIDTH, HEIGHT)
    if not np.array_equal(result, image + 1):
        raise AssertionError("the pipeline and NumPy disagree")
    for phase in ttl.schedule("simplex", 4):
        print(phase)
    print(f"simplex buffering: one added to {WIDTH} x {HEIGHT} elements, the same as NumPy's")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Double buffering in the TTL dialect: a five-point cross over an image that does not fit internal memory.

    python examples/ttl_double.py

While tile i is computed, tile i + 1 arrives and tile i - 1 leaves. Four buffers: two in, two out.
"""

from typing import Any

import numpy as np

from tilewright import ttl

WIDTH, HEIGHT, TILE_WIDTH, TILE_HEIGHT, HALO = 100, 70, 24, 16, 1


def cross(tensor_in: Any, tensor_out: Any) -> None:
    """Add every element and its four neighbours; the input tile has a halo of one around the output tile."""
    tile, out = tensor_in.array()[0], tensor_out.array()[0]
    out[...] = tile[1:-1, 1:-1] + tile[:-2, 1:-1] + tile[2:, 1:-1] + tile[1:-1, :-2] + tile[1:-1, 2:]


def double_buffering(image: Any, result: Any) -> None:
    # Logical tiling: both tilers have the same number of tiles, and the same ids.
    space = ttl.create_shape(WIDTH, HEIGHT)
    tile_shape_in = ttl.create_shape(TILE_WIDTH + 2 * HALO, TILE_HEIGHT + 2 * HALO)
    overlap = ttl.create_overlap(2 * HALO, 2 * HALO)
    augmentation = ttl.create_augmentation(HALO, HALO, HALO, HALO)
    input_tiler = ttl.create_overlap_tiler(space, tile_shape_in, overlap, augmentation)
    output_tiler = ttl.create_tiler(space, ttl.create_shape(TILE_WIDTH, TILE_HEIGHT))

    # Physical tensors.
    layout = ttl.create_layout(WIDTH)
    ext_input_tensor = ttl.create_const_ext_tensor(image, space, layout)
    ext_output_tensor = ttl.create_ext_tensor(result, space, layout)
    l_in1, l_in2 = (np.empty((TILE_WIDTH + 2 * HALO) * (TILE_HEIGHT + 2 * HALO), image.dtype) for _ in range(2))
    l_out1, l_out2 = (np.empty(TILE_WIDTH * TILE_HEIGHT, result.dtype) for _ in range(2))

    import_db_e = ttl.get_event()
    import_db = ttl.start_import_double_buffering(
        l_in1, l_in2, ext_input_tensor, import_db_e, ttl.get_tile(0, input_tiler)
    )
    export_db_e = ttl.get_event()
    export_db = ttl.start_export_double_buffering(l_out1, l_out2, ext_output_tensor, export_db_e)

    for i in range(ttl.number_of_tiles(input_tiler)):
        tile_next_import = ttl.get_tile(i + 1, input_tiler)
        tile_current_export = ttl.get_tile(i, output_tiler)
        imported_to = ttl.step_buffering(import_db, tile_next_import)
        exported_from = ttl.step_buffering(export_db, tile_current_export)
        cross(imported_to, exported_from)

    ttl.finish_buffering(import_db)
    ttl.finish_buffering(export_db)


def main() -> None:
    image = np.random.default_rng(0).integers(0, 100, (HEIGHT, WIDTH)).astype(np.int32)
    result = np.zeros_like(image)
    double_buffering(image, result)
    around = np.pad(image, 1)
    expected = image + around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
    if not np.array_equal(result, expected):
        raise AssertionError("the pipeline and NumPy disagree")
    print(f"double buffering: a cross over {WIDTH} x {HEIGHT}, the same as NumPy's")


if __name__ == "__main__":
    main()

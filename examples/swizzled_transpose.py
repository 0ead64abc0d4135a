# SPDX-License-Identifier: Apache-2.0
"""A transpose through shared memory: why it is slow, and how a swizzle makes it fast. Checked against NumPy.

    python examples/swizzled_transpose.py

A matrix is transposed in tiles of 32 x 32. A warp of 32 threads writes a row of the tile into shared memory and reads
a column back, so that both sides of global memory are touched in whole rows. Shared memory has 32 banks of one word
each; words of different banks move in one pass, words of the same bank one after the other. A row lies in 32 banks. A
column of a plain tile lies in ONE: 32 passes. Padding every row by a word cures that and costs memory. A swizzle cures
it for nothing: it moves the word of row i and column j to bank i ^ j.
"""

import numpy as np

from tilewright import ComposedLayout, Layout, Swizzle, compose, row_major
from tilewright.mojo.layout import AddressSpace, TileTensor, stack_allocation

TILE = BANKS = WARP = 32
ROWS, COLUMNS = 100, 75  # no multiple of 32

STAGES: dict[str, Layout | ComposedLayout] = {
    "plain": row_major(TILE, TILE),
    "padded": Layout((TILE, TILE), (TILE + 1, 1)),
    "swizzled": compose(Swizzle(5, 0, 5), row_major(TILE, TILE)),
}


def words(view: TileTensor) -> np.ndarray:
    """Return where in shared memory the elements of a view lie: one word for each thread of a warp."""
    return np.asarray(view.offset + view.layout.offsets())


def passes(view: TileTensor) -> int:
    """Return how many passes a warp needs for its words: as many as the busiest bank has."""
    return int(np.bincount(words(view) % BANKS, minlength=BANKS).max())


def transpose(matrix: TileTensor, shared: TileTensor) -> tuple[TileTensor, int, int]:
    """Return the transpose, and how many passes the writes and the reads of shared memory took."""
    result = stack_allocation[matrix.dtype](row_major(matrix.shape[1], matrix.shape[0]))
    written = read = 0
    for i, j in matrix.tiles[TILE, TILE]().coordinates():
        source, target = matrix.tile[TILE, TILE](i, j), result.tile[TILE, TILE](j, i)
        for warp in range(TILE):
            row = shared[warp, :]
            row.copy_from(source[warp, :], fill=0)
            written += passes(row)
        # --- all threads meet here ---
        for warp in range(TILE):
            column = shared[:, warp]
            target[warp, :].copy_from(column)  # what lies beyond the edge of the result is not written
            read += passes(column)
    return result, written, read


def show_banks(title: str, layout: Layout | ComposedLayout) -> None:
    """Print the bank of every element of a small tile, with as many banks as it has columns."""
    places = TileTensor(np.arange(layout.cosize) % 8, layout)
    print(f"{title}:\n{places.pretty()}\n")


def main() -> None:
    print("The bank of every element, on a small machine with 8 banks")
    show_banks("8 x 8, plain (a column is one bank)", row_major(8, 8))
    show_banks("8 x 8, padded", Layout((8, 8), (9, 1)))
    show_banks("8 x 8, swizzled (every row and every column has all banks)", compose(Swizzle(3, 0, 3), row_major(8, 8)))

    array = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    matrix = TileTensor(array)
    tiles = len(matrix.tiles[TILE, TILE]())
    print(f"Transpose of {ROWS} x {COLUMNS} in {tiles} tiles of {TILE} x {TILE}; passes for each tile")
    print(f"{'shared tile':12}{'words':>8}{'writes':>8}{'reads':>8}")
    for name, layout in STAGES.items():
        shared = stack_allocation[matrix.dtype, AddressSpace.SHARED](layout)
        result, written, read = transpose(matrix, shared)
        assert (result.to_numpy() == array.T).all()
        print(f"{name:12}{layout.cosize:8}{written // tiles:8}{read // tiles:8}")
        assert written == tiles * WARP
        assert read == tiles * WARP * (WARP if name == "plain" else 1)
    print("All three agree with NumPy.")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A tiled matrix multiply, written the way a GPU kernel is written, on the CPU, checked against NumPy.

    python examples/tiled_matmul.py

One block of threads computes one 32 x 32 tile of C. It walks along K in steps of 16; in each step all threads together
bring a tile of A and a tile of B into shared memory, and then each thread multiplies its own rows with its own columns.
No size divides: A is 70 x 40 and B is 40 x 50. Nothing in the kernel mentions that. A tile at the edge knows which part
of it is real, loads pad with zeros, and stores leave out what is not there.
"""

import numpy as np

import tilewright as tw
from tilewright import Swizzle, compose, row_major
from tilewright.mojo.layout import AddressSpace, TileTensor, stack_allocation

M, N, K = 70, 50, 40
BLOCK_M, BLOCK_N, BLOCK_K = 32, 32, 16
THREADS = row_major(8, 8)  # thread (i, j) of a block owns rows i, i + 8, ... and columns j, j + 8, ... of a tile of C
COUNT = THREADS.size

# Who carries what from global to shared memory: vectors of 4 scalars, so a tile of A is 32 x 4 vectors and one of B is
# 16 x 8. Neighbouring threads take neighbouring vectors of a row: that is what makes a load coalesced.
CARRY_A, CARRY_B = row_major(16, 4), row_major(8, 8)


def carry(shared: TileTensor, tile: TileTensor, threads: tw.Layout) -> None:
    """Copy a tile to shared memory, each thread its share of vectors; beyond the edge of the matrix come zeros."""
    into, out_of = shared.vectorize[1, 4](), tile.vectorize[1, 4]()
    for thread in range(COUNT):
        into.distribute[threads](thread).copy_from(out_of.distribute[threads](thread), fill=0)


def block(a: TileTensor, b: TileTensor, c: TileTensor, i: int, j: int) -> None:
    """Compute tile (i, j) of C: what one block of threads does."""
    # A swizzle in steps of 4 scalars keeps vectors whole and spreads rows over the banks; see swizzled_transpose.py.
    swizzle = Swizzle(2, 2, 2)
    shared_a = stack_allocation[np.float32, AddressSpace.SHARED](compose(swizzle, row_major(BLOCK_M, BLOCK_K)))
    shared_b = stack_allocation[np.float32, AddressSpace.SHARED](row_major(BLOCK_K, BLOCK_N))
    registers = [np.zeros((BLOCK_M // 8, BLOCK_N // 8), dtype=np.float32) for _ in range(COUNT)]

    for k in range(a.tiles[BLOCK_M, BLOCK_K]().grid[1]):
        carry(shared_a, a.tile[BLOCK_M, BLOCK_K](i, k), CARRY_A)
        carry(shared_b, b.tile[BLOCK_K, BLOCK_N](k, j), CARRY_B)
        # --- all threads meet here: shared memory is complete ---
        for thread in range(COUNT):
            row, column = divmod(thread, 8)
            rows = shared_a.distribute[row_major(8, 1)](row)  # 4 x 16: every eighth row
            columns = shared_b.distribute[row_major(1, 8)](column)  # 16 x 4: every eighth column
            registers[thread] += rows.to_numpy() @ columns.to_numpy()
        # --- and here: nobody reads any more, so the next tiles may come ---

    tile = c.tile[BLOCK_M, BLOCK_N](i, j)
    for thread in range(COUNT):
        tile.distribute[THREADS](thread).copy_from(registers[thread])  # writes only what lies inside C


def multiply(a: TileTensor, b: TileTensor) -> TileTensor:
    """Return the product of two matrices, tile by tile: what the grid of blocks does, in any order."""
    c = stack_allocation[np.float32](row_major(a.shape[0], b.shape[1])).fill(float("nan"))
    for i, j in c.tiles[BLOCK_M, BLOCK_N]().coordinates():
        block(a, b, c, i, j)
    return c


def main() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((M, K), dtype=np.float32), rng.standard_normal((K, N), dtype=np.float32)
    a, b = TileTensor(left), TileTensor(right)
    tiles = a.tiles[BLOCK_M, BLOCK_K]()
    edge = tiles[-1]
    print(f"A is {M} x {K}: {tiles}")
    print(f"the last of them is {edge.shape} with {edge.valid_shape} inside the matrix")
    share = edge.vectorize[1, 4]().distribute[CARRY_A](5)
    print(f"thread 5 carries the vectors {share.shape} of it; valid lanes, row by row:")
    print("\n".join(f"  {''.join('x' if lane else '.' for lane in row.reshape(-1))}" for row in share.mask()))

    c = multiply(a, b)
    error = np.abs(c.to_numpy() - left.astype(np.float64) @ right.astype(np.float64)).max()
    print(f"C is {c.shape}; the largest difference to NumPy is {error:.1e}")
    assert error < 1e-4

    # B could lie in memory in any way at all: the kernel does not change, only the layout of its argument.
    for name, other in {
        "column-major": TileTensor(np.asfortranarray(right)),
        "in 8 x 8 blocks": stack_allocation[np.float32](
            tw.blocked_product(row_major(8, 8), row_major(-(-K // 8), -(-N // 8)))
        )[:K, :N].copy_from(b),
    }.items():
        assert (multiply(a, other).to_numpy() == c.to_numpy()).all()
        print(f"B {name}: the same numbers, bit for bit")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Where does every element of a matrix live? A walk through tilewright.layout, checked step by step against NumPy.

    python examples/layout_tour.py

A 100 x 70 matrix of bfloat16 (2 bytes an element) is stored in tiles of 32 x 32, each of four 16 x 16 faces; each tile
is a page of 2048 bytes, and the pages go round-robin over 12 memory banks.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import addr, bank
from tilewright.cute import ceil_div, idx2crd, product_each

ROWS, COLS, TILE, FACE, BANKS, ITEM = 100, 70, 32, 16, 12, 2
PAGE = TILE * TILE * ITEM
ELEMENT = (37, 50)


def check(fact: Any, claim: str) -> None:
    """Raise unless the fact holds: the demonstration prints nothing that it has not verified."""
    if not fact:
        raise AssertionError(f"not true: {claim}")


def heading(words: str) -> None:
    print(f"\n{words}\n{'-' * len(words)}")


def show_grid(title: str, table: np.ndarray) -> None:
    print(f"  {title}")
    for row in table:
        print("   " + "".join(f"{value:4}" for value in row))


def fastest(work: Callable[[], Any]) -> float:
    """Return the seconds of the quickest of five runs."""
    times = []
    for _ in range(5):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


heading("1. A small one: 4 x 8 in tiles of 2 x 2")
small = tw.blocked_product(tw.row_major(2, 2), tw.row_major(2, 4))
show_grid("row-major offsets", tw.row_major(4, 8).offsets())
show_grid(f"tilized offsets, {small}", small.offsets())
in_memory = np.arange(32).reshape(2, 2, 4, 2).transpose(0, 2, 1, 3).ravel()  # elements, tile after tile
check((np.argsort(small.offsets(), axis=None) == in_memory).all(), "memory holds one whole tile after the other")
print(f"  so memory starts with elements {', '.join(map(str, in_memory[:8]))}")

heading(f"2. The layout of a {ROWS} x {COLS} matrix in {TILE} x {TILE} tiles of {FACE} x {FACE} faces")
face = tw.row_major(FACE, FACE)
tile = tw.blocked_product(face, tw.row_major(TILE // FACE, TILE // FACE))
grid = tw.row_major(ceil_div(ROWS, TILE), ceil_div(COLS, TILE))
stored = tw.blocked_product(tile, grid)
matrix = tw.with_logical_shape(stored, (ROWS, COLS))  # the same offsets, and it knows what is padding
padded_shape = product_each(stored.shape)
print(f"  face    {face}\n  tile    {tile}\n  stored  {stored}")
print(f"  padded to {padded_shape}, of which {matrix.logical_shape} is data")
check(padded_shape == (128, 96) and matrix.logical_shape == (ROWS, COLS), "the padding is known")
check(matrix.valid(ROWS - 1, COLS - 1) and not matrix.valid(ROWS, 0), "padding starts after the last row")

heading(f"3. Its tiles as pages of {PAGE} bytes over {BANKS} banks")
deep = ceil_div(grid.size, BANKS)
pages = tw.Layout((TILE * TILE, (BANKS, deep)), (ITEM @ addr, (1 @ bank, PAGE @ addr)))
home = tw.compose(pages, stored)
home_shape, home_stride = str(home).split(":")
print(f"  pages   {pages}\n  home    {home_shape}\n        : {home_stride}")

heading(f"4. Where is element {ELEMENT}?")
row, col = ELEMENT
offset, place = matrix(row, col), home(row, col)
assert isinstance(place, tw.Place)  # home has the axes bank and addr
page, in_tile = divmod(offset, TILE * TILE)
number, in_face = divmod(in_tile, FACE * FACE)
print(f"  coordinate       ({row}, {col})")
print(f"  tile             ({row // TILE}, {col // TILE}) of {grid.shape}, number {page}")
print(f"  face             {number} of that tile, which starts at offset {number * FACE * FACE} in it")
print(f"  row in face      {row % FACE}, column {col % FACE}: {in_face} further")
print(f"  element offset   {page} x {TILE * TILE} + {number * FACE * FACE} + {in_face} = {offset}")
print(f"  page             {page}, byte {in_tile * ITEM} of {PAGE}")
print(f"  bank, address    bank {place.bank}, address {place.addr}")
check(page == grid(row // TILE, col // TILE), "the tile number is the page number")
check(in_tile == tile(row % TILE, col % TILE) and in_face == face(row % FACE, col % FACE), "the steps add up")
check(place == pages(in_tile, page) == page % BANKS @ bank + (page // BANKS * PAGE + in_tile * ITEM) @ addr, "place")

heading(f"5. What lives in bank {place.bank} at address {place.addr}?")
back = tw.left_inverse(home, axes=(bank, addr))
found = idx2crd(back(place.bank, place.addr), padded_shape)
print(f"  element {found}; one byte further starts {'an' if back.valid(place.bank, place.addr + 1) else 'no'} element")
check(found == ELEMENT and not back.valid(place.bank, place.addr + 1), "the inverse leads back")
last = idx2crd(back(BANKS - 1, PAGE - ITEM), padded_shape)
print(f"  the end of bank {BANKS - 1} holds {last}, which is {'data' if matrix.valid(*last) else 'padding'}")
check(last == (127, 95) and not matrix.valid(*last), "the last corner is padding")

heading("6. Tilize a real array with the table of offsets, and compare")
array = np.random.default_rng(0).integers(1, 2**16, (ROWS, COLS), dtype=np.uint16)  # stands for bfloat16 bits
table = matrix.offsets(fill=-1)
tilized = np.zeros(stored.cosize, array.dtype)
tilized[table[table >= 0]] = array.ravel()
padded = np.pad(array, [(0, n - m) for n, m in zip(padded_shape, array.shape, strict=True)])
plain = padded.reshape(4, 2, 16, 3, 2, 16).transpose(0, 3, 1, 4, 2, 5).ravel()
check((tilized == plain).all(), "the table tilizes like reshape and transpose")
print(f"  {array.size} elements and {(table < 0).sum()} of padding: equal to reshape, transpose and ravel")
places = home.offsets()
assert isinstance(places, tw.Place)
memory = np.zeros((BANKS, deep * PAGE // ITEM), array.dtype)
memory[places.bank, places.addr // ITEM] = padded
check((memory == plain.reshape(BANKS, -1)).all(), "each bank holds its pages")
print(f"  and {BANKS} banks of {memory.nbytes // BANKS} bytes filled through bank and address: equal too")

heading("7. A table of 4096 x 4096 offsets")
big = tw.blocked_product(tile, tw.row_major(128, 128))
down, across = big(np.arange(4096), 0), big(0, np.arange(4096))
check((big.offsets() == down[:, None] + across).all() and big(1234, 2345) == 5056041, "the large table")
ours, numpys = fastest(big.offsets), fastest(lambda: down[:, None] + across)
print(f"  {big.size:,} offsets in {ours * 1e3:.0f} ms; NumPy adding two ready vectors: {numpys * 1e3:.0f} ms")
print(f"  ratio {ours / numpys:.2f}\n\nEverything above was checked.")

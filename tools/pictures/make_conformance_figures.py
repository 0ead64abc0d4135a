# SPDX-License-Identifier: Apache-2.0
"""Draw the figures of the original documents and write docs/conformance-figures.md, each beside what it illustrates.

    python tools/pictures/make_conformance_figures.py

Pages and pictures are made as those of the gallery, by `make_gallery.py`.
"""

from pathlib import Path
from runpy import run_path

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PAGE = IMAGES.parent / "conformance-figures.md"
GALLERY = run_path(str(Path(__file__).with_name("make_gallery.py")))
Picture = GALLERY["Picture"]

TILIZED = "Tilized data layout"
LAYOUTS = "Tensor and memory layouts"
TENSOR = "ttnn.Tensor"
PHYSICAL = "Physical tensors"


def figure(name: str, title: str, document: str, lines: str, words: str, code: str, in_text: bool = False):
    """Return a figure: its title, the document and lines that it illustrates, and the code that draws it."""
    return Picture(name, title, f"*{document}*, lines {lines}. {words}", code, "conformance", in_text)


PICTURES = (
    figure(
        "row_major",
        "A row-major matrix",
        TILIZED,
        "22-39",
        "A matrix of 4 x 8 elements of one byte, before it is tilized. Every cell has the number of its element,"
        " counted row by row, and every row has its address at the left.",
        """
        matrix = tw.row_major(4, 8)
        scene = views.scene_of(matrix, label="row_major", address="hex", title="4 x 8, row-major")
        """,
        in_text=True,
    ),
    figure(
        "tilized",
        "The same matrix, tilized",
        TILIZED,
        "22-52",
        "A window of 2 x 2 moves over the matrix row by row, and its elements are stored together: tile by tile, with"
        " the address of each row of a tile. Below the element (0, 0) lies element 8, now two bytes away.",
        """
        tilized = tw.tiled_layout((4, 8), tile=(2, 2))
        scene = views.scene_of(tilized, label="row_major", address="hex", title="4 x 8 in tiles of 2 x 2")
        """,
        in_text=True,
    ),
    figure(
        "pages_of_rows",
        "Figure 1: pages of a row-major tensor",
        LAYOUTS,
        "33-37",
        "Every row of a 64 x 64 tensor is a page: 64 pages, distributed over the banks in turn.",
        """
        spec = tw.TensorSpec((64, 64), "bfloat16", "Row-Major", chip="wormhole")
        scene = views.scene_of(spec)
        """,
    ),
    figure(
        "pages_of_tiles",
        "Figure 2: pages of a tiled tensor",
        LAYOUTS,
        "42-45",
        "The same tensor in tiles of 32 x 32 has four pages.",
        """
        spec = tw.TensorSpec((64, 64), "bfloat16", "Tiled", chip="wormhole")
        scene = views.scene_of(spec)
        """,
    ),
    figure(
        "round_robin",
        "Figure 3: pages over banks in turn",
        LAYOUTS,
        "63-69",
        "Four pages over three banks: P3 wraps around to bank 0. The next tensor begins at bank 0 again, so that a"
        " part of the other banks stays unused.",
        """
        three = tw.Chip("three banks", "small", (3, 1), 0, 65536, 3, (0, 0), 65536, 32)
        spec = tw.TensorSpec((4, 8), "bfloat16", chip=three)
        allocator = tw.Allocator(three)
        first, second = allocator.allocate(spec), allocator.allocate(spec)
        names = {first.number: "first tensor", second.number: "second tensor"}
        scene = views.scene_of(allocator, each=True, names=names, address="hex")
        """,
        in_text=True,
    ),
    figure(
        "bank_columns",
        "Figure 3, with banks as columns",
        LAYOUTS,
        "65",
        "The pages of one tensor, and the banks that hold them.",
        """
        three = tw.Chip("three banks", "small", (3, 1), 0, 65536, 3, (0, 0), 65536, 32)
        scene = views.scene_of(tw.TensorSpec((4, 8), "bfloat16", chip=three), address="hex")
        """,
    ),
    figure(
        "shards",
        "Figure 4: a tensor sharded over cores",
        LAYOUTS,
        "90-96",
        "On the left the tensor as the host has it, 16 pages, P0 to P15; on the right the cores, each with the pages"
        " of its shard. Core (0,0) holds P0, P1, P4 and P5; its neighbour in the row, core (1,0), holds P2, P3, P6 and"
        " P7.",
        """
        sharded = tw.block_sharded((2, 2), (64, 64))
        spec = tw.TensorSpec((128, 128), "bfloat16", "tile", memory=sharded, chip="wormhole")
        scene = views.scene_of(spec)
        """,
        in_text=True,
    ),
    figure(
        "side_by_side",
        "Interleaved and sharded side by side",
        LAYOUTS,
        "57-99",
        "Interleaved pages go to all banks in turn; shards go to the cores that were named.",
        """
        interleaved = tw.TensorSpec((128, 128), "bfloat16", "tile", chip="wormhole")
        sharded = interleaved.with_memory(tw.block_sharded((2, 2)))
        scene = views.side_by_side(interleaved, sharded, title="interleaved and sharded")
        """,
    ),
    figure(
        "shape",
        "A tensor of 16 rows and 32 columns",
        TENSOR,
        "16-23",
        "Nothing is padded: 16 x 32 elements are stored.",
        """
        from tilewright import ttnn

        scene = views.scene_of(ttnn.Shape([16, 32]))
        """,
    ),
    figure(
        "padded_shape",
        "A tensor padded to a tile",
        TENSOR,
        "31-40",
        "14 rows and 28 columns of data in a tile of 32 x 32; padding is hatched.",
        """
        from tilewright import ttnn

        scene = views.scene_of(ttnn.Shape([14, 28], [32, 32]))
        """,
    ),
    figure(
        "row_major_4x4",
        "Row-major layout",
        TENSOR,
        "65-73",
        "Consecutive elements of a row lie next to each other.",
        """
        scene = views.scene_of(tw.row_major(4, 4), label="row_major", address="hex")
        """,
    ),
    figure(
        "tiles_4x4",
        "Tile layout",
        TENSOR,
        "79-87",
        "4 x 4 elements in tiles of 2 x 2, only to illustrate it: chips have no tiles of this size.",
        """
        scene = views.scene_of(tw.TensorSpec((4, 4), "uint8", "tile", tile=(2, 2)), label="row_major", address="hex")
        """,
    ),
    figure(
        "host_tiles",
        "A tensor on the host",
        TENSOR,
        "184-190",
        "128 x 128 elements in 4 x 4 tiles, numbered row by row.",
        """
        scene = views.scene_of(tw.TensorSpec((128, 128), "bfloat16", "tile", chip="wormhole"))
        """,
    ),
    figure(
        "sharded_tiles",
        "The same tensor, sharded over 2 x 2 cores",
        TENSOR,
        "205-212",
        "Every core has its coordinates (x, y); P is the tile in the memory of the core, H the tile of the host.",
        """
        sharded = tw.block_sharded((2, 2), (64, 64))
        spec = tw.TensorSpec((128, 128), "bfloat16", "tile", memory=sharded, chip="wormhole")
        scene = views.scene_of(spec, label=("local page", "host page"), color="core")
        """,
        in_text=True,
    ),
    figure(
        "row_spacing",
        "A tensor with spacing between rows and planes",
        PHYSICAL,
        "17-28",
        "A tensor of 4 x 3 x 2 elements embedded in a larger shape: its rows start 16 elements apart, its planes 48.",
        """
        from tilewright import ttl

        shape, layout = ttl.create_shape(4, 3, 2), ttl.create_layout(row_spacing=16, plane_spacing=48)
        tensor = ttl.create_int_tensor(np.arange(96, dtype=np.int16), shape, layout)
        scene = views.scene_of(tensor, address="hex")
        """,
    ),
    figure(
        "tile_of_tensor",
        "A tile of an external tensor, and its origin",
        PHYSICAL,
        "41-68",
        "Tile 5 of a tensor of 16 x 6 elements, cut into tiles of 4 x 3: it keeps the spacing of the whole, and its"
        " first element is marked.",
        """
        from tilewright import ttl

        tile = ttl.get_tile(5, ttl.create_tiler(ttl.create_shape(16, 6), ttl.create_shape(4, 3)))
        tensor = ttl.create_ext_tensor(np.arange(96, dtype=np.int16), tile, ttl.create_layout(16))
        scene = views.scene_of(tensor, address="hex")
        """,
        in_text=True,
    ),
)


def page() -> str:
    """Return the text of the page."""
    parts = [
        "# The conformance figures",
        "",
        (
            "Here are the figures and drawings of the five [original documents](conformance.md), drawn by tilewright."
            " Each one names the lines that it illustrates, and has the code that draws it. On the command line,"
            " `tilewright show` has the same options:"
            " `tilewright show 4x8 --dtype uint8 --layout tile --tile 2x2 --label row_major --address hex`."
        ),
        "",
        (
            "This page is written by [`make_conformance_figures.py`](../tools/pictures/make_conformance_figures.py)."
            " The code below each picture runs after these lines:"
        ),
        "",
        *GALLERY["IMPORTS"],
    ]
    for picture in PICTURES:
        parts += picture.section()
    return "\n".join([*parts, ""])


def files() -> dict[Path, str]:
    """Return every file of the page with its text."""
    return {PAGE: page(), **GALLERY["draw_pictures"](PICTURES)}


if __name__ == "__main__":
    GALLERY["write_files"](files())

# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of docs/gallery.md and write the page: every picture with the lines that make it.

    python tools/pictures/make_gallery.py

The lines shown under a picture are the lines that are run, so that none of them can be out of date; a test compares
the files with what this script would write.
"""

import linecache
import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import addr, bank, views
from tilewright.copying import Placement, plan_copy
from tilewright.layout import tiled_layout
from tilewright.tiling import Schedule, Tiler
from tilewright.tiling.schedule import TraceSpan

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PAGE = IMAGES.parent / "gallery.md"
GIVEN = {
    "np": np, "tw": tw, "views": views, "addr": addr, "bank": bank, "Placement": Placement, "plan_copy": plan_copy,
    "tiled_layout": tiled_layout, "Schedule": Schedule, "Tiler": Tiler,
    "TraceSpan": TraceSpan,
}  # fmt: skip


IMPORTS = (
    "```python",
    "from tempfile import mkdtemp",
    "",
    "import numpy as np",
    "import tilewright as tw",
    "from tilewright import addr, bank, views",
    "from tilewright.copying import Placement, plan_copy",
    "from tilewright.layout import tiled_layout",
    "from tilewright.tiling import Schedule, Tiler",
    "from tilewright.tiling.schedule import TraceSpan",
    "",
    "folder = mkdtemp()",
    "```",
)


INTRODUCTION = """\
Here is one picture of each kind that tilewright draws. Choose one to see it in full, with the code that makes it.

In a notebook, an object draws itself; `tw.views.widget(object)` also answers to the pointer, if anywidget is installed
(`pip install tilewright[notebook]`). In a terminal, call `.show()`. Give a file name to write a file:
`.show("x.svg")`, `.show("x.html")` or `.show("x.txt")`. On the command line, `tilewright show` does the same. The HTML
file needs nothing else, can be used with the keyboard, and highlights both ends of whatever you point at."""

OPTIONS = """\
All pictures accept `label=` and `color=`, which choose the attributes that label and colour the cells, and
`address="hex"`. An option that a picture does not have is refused by name. `views.side_by_side(a, b)` puts pictures
beside each other. The [conformance figures](conformance-figures.md) show these options at work.

This page is written by [`make_gallery.py`](../tools/pictures/make_gallery.py). The code below each picture runs after
these lines:"""

MOVING = """\
## Pictures that move

A schedule, a copy and a reshard can be played. `--animate` writes an HTML page with a player:

```console
$ tilewright show 40x60 --tiles 16x16 --pipeline double --animate -o pipeline.html
...pipeline.html (... bytes)
$ tilewright show "(8,8):(8,1)" "(8,8):(1,8)" --animate -o copy.html
...copy.html (... bytes)
$ tilewright show 512x512:shard=block:grid=2x1 512x512:shard=height:grid=4x2 --layout tile --animate -o reshard.html
...reshard.html (... bytes)
```"""


@dataclass(frozen=True)
class Picture:
    """A picture: the name of its file, its title, what there is to see, and the code whose `scene` it shows."""

    name: str
    title: str
    words: str
    code: str
    page: str = "gallery"  # of which it is a picture
    in_text: bool = False  # whether it is shown as text, too

    @property
    def file(self) -> str:
        return f"{self.page}_{self.name}.svg"

    def section(self) -> list[str]:
        """Return the lines of the page about this picture."""
        lines = ["", f"## {self.title}", "", self.words, "", f"![{self.title}](images/{self.file})", ""]
        lines += ["```python", dedent(self.code).strip(), "```"]
        return [*lines, "", "```text", views.to_text(self.scene()), "```"] if self.in_text else lines

    def scene(self) -> Any:
        with TemporaryDirectory() as folder:
            names = {**GIVEN, "folder": folder}
            code = dedent(self.code)
            linecache.cache[self.name] = (len(code), None, code.splitlines(True), self.name)  # for reports of kernels
            exec(compile(code, self.name, "exec"), names)
            return names["scene"]


PICTURES = (
    Picture(
        "layout",
        "A layout",
        "Each coordinate with its offset, and memory with the element at each place. Tiles are outlined because the"
        " shape is nested.",
        """
        layout = tw.blocked_product(tw.row_major(4, 4), tw.row_major(2, 3))
        scene = views.scene_of(layout)
        """,
    ),
    Picture(
        "banks",
        "Named axes: pages over banks",
        "Cells are coloured by the first named axis. Five tiles per row do not divide twelve banks evenly.",
        """
        pages = tw.Layout((12, 100), (1 @ bank, 2048 @ addr))
        scene = views.scene_of(tw.compose(pages, tw.row_major(4, 5)))
        """,
    ),
    Picture(
        "tiles",
        "Tiles, faces and padding",
        "A 20 x 28 matrix in tiles of 8 x 16 with faces of 4 x 8. Padding is hatched, here and in memory.",
        """
        scene = views.scene_of(tiled_layout((20, 28), tile=(8, 16), face=(4, 8)), memory=False)
        """,
    ),
    Picture(
        "swizzle",
        "A swizzle, and what it is for",
        "Eight banks, before and after. Reading a column takes one step instead of eight.",
        """
        swizzled = tw.compose(tw.Swizzle(3, 0, 3), tw.row_major(8, 8))
        scene = views.scene_of(swizzled, banks=8)
        """,
    ),
    Picture(
        "threads",
        "Threads and values",
        "The accumulator of a 16 x 8 matrix instruction: which thread holds which element, and the other way round.",
        """
        layout = tw.Layout(((4, 8), (2, 2)), ((32, 1), (16, 8)))
        scene = views.thread_value_scene(layout, (16, 8))
        """,
    ),
    Picture(
        "distribute",
        "A tensor distributed over threads",
        "Vectors of four elements, distributed over 32 threads. The first access is coalesced and free of conflicts.",
        """
        scene = views.distribute_scene(tw.row_major(8, 32), tw.row_major(4, 8), vector=(1, 4))
        """,
    ),
    Picture(
        "tensor",
        "A view with a ragged edge",
        "Tile (1, 1) of a 6 x 8 tensor in tiles of 4 x 4: two of its rows do not exist.",
        """
        tensor = tw.TileTensor(np.arange(100, 148), tw.row_major(6, 8))
        scene = views.scene_of(tensor.tile[4, 4](1, 1))
        """,
    ),
    Picture(
        "values",
        "A tensor with its values",
        "What a stored tensor holds, and the banks that would hold its tiles.",
        """
        wave = np.sin(np.arange(40)[:, None] / 5) * np.cos(np.arange(70) / 7)
        scene = views.scene_of(tw.Tensor.of(wave, dtype="bfloat16", page_layout="tile", chip="wormhole_n150"))
        """,
    ),
    Picture(
        "exponents",
        "A block format: exponents and errors",
        "Sixteen neighbours share an exponent. One large element takes the bits of its neighbours.",
        """
        values = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)
        values[3, 20] = 1000.0
        values[8:12] *= 0.01
        scene = views.block_scene(values, "bfloat8_b")
        """,
    ),
    Picture(
        "difference",
        "A difference",
        "What packing did to the same array, element by element.",
        """
        values = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
        values[3, 20] = 1000.0
        packed = tw.tilize(values, dtype="bfloat8_b")
        scene = views.difference_scene(values, tw.untilize(packed, values.shape, dtype="bfloat8_b"))
        """,
    ),
    Picture(
        "comparison",
        "What a comparison found",
        "`tw.diff` compares across number formats and layouts; its picture has the largest error of every block.",
        """
        values = np.random.default_rng(0).standard_normal((256, 512)).astype(np.float32)
        values[70, 200] = 1000.0
        scene = views.scene_of(tw.diff(values, tw.Tensor.of(values, dtype="bfloat8_b")))
        """,
    ),
    Picture(
        "plan",
        "A copy plan",
        "From row-major float32 to tiled bfloat16. Both memories are coloured by the place in the source.",
        """
        target = tiled_layout((7, 10), tile=(4, 4), face=(2, 2))
        scene = views.scene_of(plan_copy(Placement(tw.row_major(7, 10), "float32"), Placement(target, "bfloat16")))
        """,
    ),
    Picture(
        "assembly",
        "A weight and its pieces",
        "The fused attention weight of a layer for two devices: which tensor of the checkpoint each piece comes from.",
        """
        tw.files.write_sample_llama(f"{folder}/Llama-3.2-1B")
        plan = tw.conversion.plan_cache(f"{folder}/Llama-3.2-1B", "cache", "N300")
        scene = views.assembly_scene(plan.explain("layers.0.attention.wqkv")[0])
        """,
    ),
    Picture(
        "where",
        "Where an element lives",
        "From an element to its face, tile, page, bank and address, before anything runs.",
        """
        spec = tw.TensorSpec((100, 150), "bfloat16", "tile", chip="wormhole_n150")
        scene = views.scene_of(spec, at=(70, 118))
        """,
    ),
    Picture(
        "page",
        "The elements of a page",
        "One tile of a padded tensor with its faces: data and padding, coloured in storage order.",
        """
        spec = tw.TensorSpec((100, 150), "bfloat8_b", "tile", chip="wormhole_n150")
        scene = views.page_scene(spec, at=(98, 140))
        """,
    ),
    Picture(
        "shards",
        "Shards over cores",
        "A block-sharded tensor: pages coloured by shard, the cores that hold them, and how even the distribution is.",
        """
        memory = tw.block_sharded((4, 4))
        spec = tw.TensorSpec((512, 384), "bfloat8_b", "tile", memory=memory, chip="wormhole_n150")
        scene = views.scene_of(spec)
        """,
    ),
    Picture(
        "memory",
        "A memory map",
        "L1 with three tensors after a fourth was freed. Banks with the same contents share a track; free and"
        " unused memory is hatched.",
        """
        def spec(shape, dtype, memory):
            return tw.TensorSpec(shape, dtype, "tile", memory=memory, chip="wormhole_n150")

        allocator = tw.Allocator("wormhole_n150")
        allocator.allocate(spec((512, 512), "bfloat16", "l1"))
        freed = allocator.allocate(spec((1024, 512), "bfloat16", "l1"))
        allocator.allocate(spec((2048, 512), "bfloat16", tw.height_sharded((4, 4))))
        allocator.allocate(spec((1024, 1024), "bfloat8_b", tw.block_sharded((8, 8))))
        allocator.free(freed)
        scene = views.scene_of(allocator, names={0: "input", 2: "cache", 3: "weights"})
        """,
    ),
    Picture(
        "file",
        "The tensors of a file",
        "The place of every tensor in its file; here for two files of a folder.",
        """
        np.save(f"{folder}/bias.npy", np.zeros(640, np.float32))
        np.save(f"{folder}/query.npy", np.zeros((64, 64), np.float16))
        scene = views.scene_of(tw.inspect(folder), title="two files")
        """,
    ),
    Picture(
        "tile_of_file",
        "A tile of a file",
        "One tile of a packed tensor, decoded: its values, and the exponents that sixteen neighbours share.",
        """
        values = np.random.default_rng(0).standard_normal((20, 40)).astype(np.float32)
        spec = tw.TensorSpec((20, 40), "bfloat8_b")
        tw.write_tensorbin(f"{folder}/packed.tensorbin", tw.files.Tensorbin(spec, tw.to_bytes(values, spec)))
        scene = views.scene_of(tw.inspect(f"{folder}/packed.tensorbin").tile("packed", 0, 0))
        """,
    ),
    Picture(
        "mesh",
        "A mesh of devices",
        "A tensor that eight devices share: four parts, each on two devices, and the place of each part on its chip.",
        """
        mesh = tw.files.Mesh.dividing((256, 1024), (2, 4), (None, 1))
        spec = tw.TensorSpec(mesh.part_shape, "bfloat8_b", memory=tw.width_sharded((8, 1), buffer_type="dram"))
        scene = views.mesh_scene(mesh, spec=spec.with_chip("n150"), at=(40, 600))
        """,
    ),
    Picture(
        "tiler",
        "A tiler with overlap and halo",
        "Tiles of 8 x 10 that overlap by 2 and reach 1 beyond the space, with one of them marked.",
        """
        scene = views.scene_of(Tiler((20, 30), (8, 10), overlap=2, augmentation=1), tile=5)
        """,
    ),
    Picture(
        "trace",
        "A recorded run",
        "A run as a `Trace` recorded it. Most transfers were hidden behind the computation.",
        """
        happened = [TraceSpan("import", k, 0, 1000 * k, 1000 * k + 900) for k in range(6)]
        happened += [TraceSpan("compute", k, 0, 1000 * k + 950, 1000 * k + 1850) for k in range(6)]
        happened += [TraceSpan("export", k, 0, 1000 * k + 1900, 1000 * k + 2600) for k in range(6)]
        scene = views.scene_of(tw.tiling.Trace(happened))
        """,
    ),
    Picture(
        "pipeline",
        "A pipeline",
        "Double buffering, if import and export take 1 and compute takes 1.5: the timeline, and the use of every"
        " buffer. A recorded `Trace` has the same picture.",
        """
        scene = views.scene_of(Schedule("double", 9), times=(1, 1.5, 1))
        """,
    ),
    Picture(
        "reshard",
        "A reshard on the chip",
        "Cores and DRAM banks at their places on the network, who sends what to whom, and the bytes that arrive and"
        " leave. In the HTML file, pointing at a core shows its own flows and names both ends.",
        """
        blocks = tw.TensorSpec((512, 512), page_layout="tile", memory=tw.block_sharded((2, 1)), chip="wormhole_n150")
        plan = tw.reshard(blocks, blocks.with_memory(tw.height_sharded((4, 2))), kernel="2024")
        scene = views.scene_of(plan)
        """,
    ),
    Picture(
        "links",
        "The load of links",
        "The same reshard on both networks: how many bytes cross each link, in percent of the busiest. A cell is the"
        " link that leaves the node, and the networks are tori: what leaves on one side arrives on the other.",
        """
        blocks = tw.TensorSpec((512, 512), page_layout="tile", memory=tw.block_sharded((2, 1)), chip="wormhole_n150")
        plan = tw.reshard(blocks, blocks.with_memory(tw.height_sharded((4, 2))), kernel="2024")
        scene = views.scene_of(plan, view="links")
        """,
    ),
    Picture(
        "reshard_time",
        "The timeline of a reshard",
        "What its estimate assumes: when each RISC issues its requests and waits, and how long the busiest links, banks"
        " and cores take. It is a formula and not a simulation, and says so.",
        """
        rows = tw.TensorSpec((512, 512), memory=tw.height_sharded((8, 1)), chip="wormhole_n150")
        scene = views.scene_of(tw.reshard(rows, rows.with_memory(tw.width_sharded((8, 1)))), view="timeline")
        """,
    ),
    Picture(
        "audit",
        "An audit",
        "A report of a run, here a planned one: L1 of each core at the peak, the most in each call, and what is in it"
        " when. On the HTML page the findings come first, each with its reason and remedy.",
        """
        allocator = tw.Allocator("wormhole_n150")
        spec = tw.TensorSpec((1024, 1024), page_layout="tile", chip="wormhole_n150")
        for memory in ("l1", tw.block_sharded((4, 4)), tw.height_sharded((8, 2))):
            allocator.allocate(spec.with_memory(memory))
        report = tw.ttnn.write_visualizer_report(allocator, f"{folder}/run", {0: "weights", 1: "scores", 2: "rows"})
        scene = views.scene_of(tw.audit(report))
        """,
    ),
    Picture(
        "bank-conflicts",
        "Bank conflicts",
        "`ldmatrix.x4` on a tile of 16 x 64 halves: in each phase, eight threads want eight words of the same banks.",
        """
        lanes = tw.Layout(((16, 2),), ((1, 128),))
        report = tw.analysis.bank_conflicts(tw.row_major(16, 64), lanes, itemsize=2, instruction="ldmatrix.x4")
        scene = views.bank_scene(report)
        """,
    ),
    Picture(
        "atom",
        "A matrix instruction",
        "Which thread holds which element of A, B and C, and as which of its values it holds it.",
        """
        scene = views.atom_scene(tw.atoms["SM80_16x8x8_F32F16F16F32_TN"])
        """,
    ),
    Picture(
        "linear",
        "A distribution over threads",
        "An encoding of Triton: which lane of a warp holds which element of a tensor.",
        """
        fields = "sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]"
        scene = views.linear_scene(tw.parse(f"tensor<8x16xf16, #ttg.blocked<{{{fields}}}>>").layout)
        """,
    ),
    Picture(
        "kernel",
        "A kernel with a race",
        "Which thread accessed which element of shared memory between two barriers, as the SIMT machine recorded it."
        " There is no barrier after the first line, so threads may read elements that others have not written yet.",
        """
        def transpose(out, a):
            tile = tw.simt.shared_array((4, 4))
            x, y = tw.simt.thread_idx.x, tw.simt.thread_idx.y
            tile[y, x] = a[y, x]
            out[y, x] = tile[x, y]

        values, result = np.arange(16.0).reshape(4, 4), np.zeros((4, 4))
        scene = views.scene_of(tw.simt.launch(transpose, result, values, grid=1, block=(4, 4), check="report"))
        """,
    ),
)


def thumbnails(pictures: tuple[Picture, ...]) -> list[str]:
    """Return the lines of a grid of small pictures, each a link to its section."""
    lines = ['<div class="thumbnails">', ""]
    for picture in pictures:
        anchor = "-".join(re.sub(r"[^\w\s-]", "", picture.title.lower()).split())
        image = f'<img src="images/{picture.file}" alt="" width="180" loading="lazy">'
        lines += [f'<a href="#{anchor}">{image}<br>{picture.title}</a>']
    return [*lines, "", "</div>"]


def page() -> str:
    """Return the text of the gallery."""
    text = views.to_text(PICTURES[0].scene())
    parts = ["# Gallery", "", INTRODUCTION, "", *thumbnails(PICTURES), "", OPTIONS, "", *IMPORTS]
    for picture in PICTURES:
        parts += picture.section()
    parts += ["", MOVING, "", "## The same in a terminal", "", "```text", text, "```", ""]
    return "\n".join(parts)


def files() -> dict[Path, str]:
    """Return every file of the gallery with its text."""
    return {PAGE: page(), **draw_pictures(PICTURES)}


def draw_pictures(pictures: tuple[Picture, ...]) -> dict[Path, str]:
    """Return the files of pictures with their text."""
    return {IMAGES / picture.file: views.to_svg(picture.scene()) for picture in pictures}


def write_files(texts: dict[Path, str]) -> None:
    """Write the files of a page."""
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}, {len(text.encode()) / 1024:.1f} KiB")


if __name__ == "__main__":
    write_files(files())

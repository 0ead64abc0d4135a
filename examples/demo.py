# SPDX-License-Identifier: Apache-2.0
"""The main job, from end to end: the weights of a model become the cache of two cards, without the cards.

    make demo

It writes a small checkpoint with the shapes of a Llama, prepares it for an N300 (two chips), checks the result against
the checkpoint, finds one weight on its chip, draws it, and plans a reshard. These are the commands that anyone can
type; what they say is compared with the bytes. Everything goes to the folder named on the command line, or to
./tilewright-demo.
"""

import shutil
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import tilewright as tw
from tilewright import views
from tilewright.cli import program
from tilewright.files import write_sample_llama

# The output projection of the first layer. The card multiplies by its transpose: element (133, 77) there is (77, 133)
# of the checkpoint.
SOURCE_TENSOR = "model.layers.0.self_attn.o_proj.weight"
CACHED = "N300/tensor_cache_instruct_bfp8/layers.0.attention.wo_dtype_BFLOAT8_B_layout_TILE.tensorbin"
ELEMENT = (0, 0, 133, 77)


def check(fact: Any, claim: str) -> None:
    """Raise unless the fact holds: the demonstration prints nothing that it has not verified."""
    if not fact:
        raise AssertionError(f"not true: {claim}")


def heading(words: str) -> None:
    print(f"\n{words}\n{'-' * len(words)}")


def tilewright(*arguments: Any) -> None:
    """Run a command as if it had been typed, and show it."""
    texts = [str(each) for each in arguments]
    print(f"$ tilewright {' '.join(texts)}", flush=True)
    try:
        program.main(texts)
    except SystemExit as end:
        check(end.code in (None, 0), f"tilewright {' '.join(texts)} ends well")


began = perf_counter()
folder = Path(sys.argv[1] if len(sys.argv) > 1 else "tilewright-demo")
model, cache = folder / "Llama-3.2-1B-Instruct", folder / "cache"
shutil.rmtree(cache, ignore_errors=True)

heading("1. A small checkpoint with the shapes of a Llama")
write_sample_llama(model)
source = tw.open_tensors(model)
print(f"wrote {model}: {len(source)} tensors, {source.nbytes} bytes, the same ones wherever this runs")

heading("2. Prepared for the two chips of an N300: transposed, fused, split, packed")
tilewright("prepare", model, cache, "--for", "N300")

heading("3. Checked: every file against what the checkpoint makes of it")
tilewright("prepare", "--check", cache, model, "--full")

path = cache / CACHED
heading(f"4. Where is element {ELEMENT} of the output projection?")
tilewright("explain", path, "--at", ",".join(map(str, ELEMENT)), "--chip", "wormhole_n300")

cached = tw.inspect(path)
found = cached.element(cached.tensors[0].name, ELEMENT)
stored = path.read_bytes()
assert found.scale_offset is not None, "a block format has exponents"
code, exponent = stored[found.offset], stored[found.scale_offset]
step = 2.0 ** (exponent - 127 - 6)
number = (-1) ** (code >> 7) * (code & 127) * step
expected = float(source[SOURCE_TENSOR].read()[77, 133])
print(f"\nthe byte is {code:#04x} and the exponent {exponent}: {number:+g}; the checkpoint has {expected:+g}")
check(number == found.value, "these two bytes are what the file decodes to")
check(abs(number - expected) <= step, "and they are within one step of the checkpoint")

heading("5. Its picture")
pictures = [folder / "element.svg", folder / "element.html"]
for picture in pictures:
    views.save(views.scene_of(found), picture)
    print(f"wrote {picture.resolve()}")
check(all(picture.stat().st_size > 1000 for picture in pictures), "the pictures are there")

heading("6. A reshard, before it runs: who sends what to whom, and how long it takes")
tilewright(
    "reshard",
    "512x512:shard=block:grid=4x4",
    "shard=height:grid=8x2",
    "--layout",
    "tile",
    "-o",
    folder / "reshard.html",
)
blocks = tw.TensorSpec((512, 512), "bfloat16", "tile", memory=tw.block_sharded((4, 4)), chip="wormhole_n150")
plan = tw.reshard(blocks, blocks.with_memory(tw.height_sharded((8, 2))))
check(plan.noc_bytes + plan.local_bytes == 512 * 512 * 2, "every byte is sent, or stays where it is")

print(f"\nIn all {perf_counter() - began:.1f} s. Everything above was checked.")

# SPDX-License-Identifier: Apache-2.0
"""The main job, from end to end: a checkpoint becomes tiles, is verified, one element is explained and drawn.

    make demo

It runs the same commands that anyone can type, on a small sample model that it writes first, and checks what they say
against the bytes. Everything is written to one folder: the one named on the command line, or ./tilewright-demo.
"""

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import tilewright as tw
from tilewright import views
from tilewright.cli import program
from tilewright.files import write_sample_model

TENSOR, ELEMENT = "layers.0.mlp.up.weight", (333, 77)
PLACED = ["--dtype", "bfloat8_b", "--shard", "block", "--grid", "8x8"]


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
folder.mkdir(parents=True, exist_ok=True)
model, tiles = folder / "model.safetensors", folder / "tiles"
pictures = [folder / "element.svg", folder / "element.html"]

heading("1. A small model")
write_sample_model(model)
source = tw.open_tensors(model)
print(f"wrote {model}: {len(source)} tensors, {source.nbytes} bytes, the same ones wherever this runs")

heading("2. Converted to bfloat8_b tiles, a slab at a time")
tilewright("convert", model, tiles, *PLACED, "--force")

heading("3. Verified: hashes, and every byte packed again from the source")
tilewright("verify", tiles, model)

heading("4. Compared in logical space: within a step of the format, and what PCC would not tell")
tilewright("diff", model, tiles, "--ulp", 1, "--tensor", TENSOR)

heading(f"5. Where is element {ELEMENT} of {TENSOR}?")
tilewright("explain", tiles, "--tensor", TENSOR, "--at", ",".join(map(str, ELEMENT)))

found = tw.inspect(tiles).element(TENSOR, ELEMENT)
stored = Path(found.path).read_bytes()
assert found.scale_offset is not None, "a block format has exponents"
code, exponent = stored[found.offset], stored[found.scale_offset]
step = 2.0 ** (exponent - 127 - 6)
number = (-1) ** (code >> 7) * (code & 127) * step
expected = float(source[TENSOR].read()[ELEMENT])
print(f"\nthe byte is {code:#04x} and the exponent {exponent}: {number:+g}, and the source says {expected:+.6f}")
check(number == found.value, "these two bytes are what the file decodes to")
check(abs(number - expected) <= step, "and they are within one step of the source")
spec, where = found.explanation.spec, found.explanation.where
check(spec.element_at(where) == ELEMENT, "the address leads back to the element")

heading("6. Its picture")
for path in pictures:
    views.save(views.scene_of(found), path)
    print(f"wrote {path.resolve()}")
check(all(path.stat().st_size > 1000 for path in pictures), "the pictures are there")

print(f"\nIn all {perf_counter() - began:.1f} s. Everything above was checked.")

# SPDX-License-Identifier: Apache-2.0
"""Fuzz the parsers of files with atheris: whatever the bytes are, the answer is what they say or a FileFormatError.

    python -m tools.fuzz.files [--seconds 60] [--corpus build/fuzz] [PARSER...]

Each parser is fuzzed in a process of its own, guided by coverage, from a corpus of sound files. An input that makes it
do anything else is kept beside the corpus, and the exit status is not 0.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
from tests.files import onnx_samples, torch_samples
from tests.files.gguf_files import gguf_bytes

from .frames import changed, dictionary

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(4, dtype=np.uint8)}
PARSERS = {
    "safetensors": "x.safetensors",
    "npy": "x.npy",
    "npz": "x.npz",
    "tensorbin": "x.tensorbin",
    "gguf": "x.gguf",
    "index": "model.safetensors.index.json",
    "manifest": "tilewright.json",
    "image": "x.banks.json",
    "rules": "rules.toml",
    "torch": "x.pt",
    "onnx": "x.onnx",
    "ir": "x.mlir",
    "texts": "x.txt",
}
MAX_BYTES = 4096


def seeds(parser: str) -> list[bytes]:
    """Return sound files for a parser to start from."""
    import tilewright as tw
    from tilewright.files.safetensors import SafetensorsEntry as Entry
    from tilewright.files.safetensors import encode_header
    from tilewright.files.stored_tensor import BankImage

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "m.npz", **ARRAYS)
        if parser == "npy":
            made = []
            for array in (ARRAYS["a"], np.asfortranarray(ARRAYS["a"]), ARRAYS["a"].astype(">f8"), np.float32(3)):
                file = io.BytesIO()
                np.save(file, array)
                made.append(file.getvalue())
            return made
        if parser == "npz":
            np.savez_compressed(folder / "z.npz", **ARRAYS)
            return [(folder / "m.npz").read_bytes(), (folder / "z.npz").read_bytes()]
        if parser == "safetensors":
            plain = encode_header([Entry("a", "F32", (2, 3), 0, 24), Entry("b", "U8", (4,), 24, 28)], {"k": "v"})
            tw.convert(folder / "m.npz", folder / "o.safetensors", layout="row_major")
            return [plain + bytes(28), (folder / "o.safetensors").read_bytes()]
        if parser in ("tensorbin", "manifest"):
            converted = converted_in(folder / "out")
            suffix = ".tensorbin" if parser == "tensorbin" else ".json"
            return [path.read_bytes() for path in converted if path.suffix == suffix]
        if parser == "gguf":
            golden = Path(__file__).parents[2] / "packages/tilewright/tests/golden" / "quantised" / "gguf"
            arrays = {"a": ARRAYS["a"], "q": (8, (2, 32), bytes(68)), "k": (12, (256,), bytes(144))}
            metadata = {"general.alignment": 32, "words": ["a", "b"], "deep": [[1], [2]], "x": ("f64", 0.5), "y": True}
            return [gguf_bytes(arrays, metadata), (golden / "filled_k.gguf").read_bytes()]
        if parser == "torch":
            listed = b"](" + torch_samples.tensor("0", (6,), (1,)) + b"Ne"
            value = torch_samples.dictionary({"w": torch_samples.tensor("0", (2, 2), (3, 1)), "l": listed})
            return [make(value, {"0": bytes(24)}) for make in (torch_samples.zipped, torch_samples.legacy)]
        if parser == "onnx":
            return [onnx_samples.SOUND]
        if parser in ("ir", "texts"):
            return text_seeds(parser)
        if parser == "index":
            return [json.dumps({"metadata": {}, "weight_map": {"a": "m.safetensors"}}).encode()]
        if parser == "image":
            return [BankImage(tw.TensorSpec((2, 3), "uint8", chip="wormhole_n150")).index_json()]
        return [b'"*" = {dtype = "bfloat8_b", tile = [16, 32]}\n["a*"]\nskip = true\ngrid = [8, 8]\n']


def text_seeds(parser: str) -> list[bytes]:
    """Return recorded texts of ttnn, or modules of IR with recorded layouts."""
    golden = Path(__file__).parents[2] / "packages/tilewright/tests/golden"
    if parser == "texts":
        cases = json.loads((golden / "texts" / "ttnn_texts.json").read_text())["cases"]
        spelled = {case.get(key) for case in cases[::3] for key in ("repr", "text", "to_json")} - {None}
        return [text.encode() for text in sorted(spelled)]
    modules = []
    for case in json.loads((golden / "mlir" / "ttnn_layouts.json").read_text())["layouts"][::20]:
        aliases = "".join([f"#{name} = {text}\n" for name, text in case["aliases_in_file"].items()])
        uses = "".join([f"%0 = f() : {use['tensor'][:-1]}, #a>\n" for use in case["uses"]])
        modules.append(f"{aliases}#a = {case['text']}\n{uses}// -----\n".encode())
    others = json.loads((golden / "mlir" / "other_attributes.json").read_text())["attributes"]
    return [*modules, *[f"%0 = f() : tensor<1x2x3x4xf32, {case['text']}>\n".encode() for case in others[::9]]]


def converted_in(folder: Path) -> list[Path]:
    """Return the files of a small conversion: two tensors and the manifest that lists them."""
    import tilewright as tw

    with tempfile.TemporaryDirectory() as name:
        np.savez(Path(name, "m.npz"), **{key: np.atleast_2d(array) for key, array in ARRAYS.items()})  # for shards
        tw.convert(Path(name, "m.npz"), folder, layout="row_major", shard="height", grid=[2, 1], buffer="l1")
    return sorted(folder.iterdir())


def prepare_folder(parser: str, folder: Path) -> Path:
    """Return the folder for the inputs of a parser, with the files that they may name."""
    (folder / "m.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    (folder / "x.banks.bin").write_bytes(bytes(384))
    if parser == "manifest":
        folder /= "converted"
        converted_in(folder)  # so that what the manifest says is compared with files that are there
    return folder


def tried(parser: str, folder: Path, data: bytes) -> None:
    """Give bytes to a parser, and read every tensor it finds; only a FileFormatError is an answer besides."""
    import tilewright as tw
    from tilewright.conversion import Rules

    path = folder / PARSERS[parser]
    path.write_bytes(data)
    if parser in ("ir", "texts"):
        try_text(parser, path)
        return
    if parser == "rules":
        try:
            Rules.of(path)
        except (tw.FileFormatError, tw.FormatError):
            return
        return
    try:
        if parser == "manifest":
            tw.verify(folder, jobs=1)
        for each in tw.open_tensors(folder if parser == "manifest" else path).values():
            if each.format is not None and each.nbytes < 1 << 20:
                each.read()
    except tw.FileFormatError:
        return


def try_text(parser: str, path: Path) -> None:
    """Give a file to the parsers of texts; text of IR is read to its end."""
    import tilewright as tw
    from tilewright.notation import MlirLayout, find_layouts, find_ttnn_values, parse_ttnn

    if parser == "texts":
        text = path.read_bytes().decode("utf-8", "replace")
        list(find_ttnn_values(text))
        with contextlib.suppress(tw.FileFormatError):
            parse_ttnn(text)
        return
    with contextlib.suppress(tw.FileFormatError):  # of bytecode, and of very many aliases
        for use in find_layouts(path):
            if isinstance(use.layout, MlirLayout) and use.tensor is not None:
                with contextlib.suppress(tw.TilewrightError):
                    use.layout.to_spec(use.tensor, "wormhole_n150")


def instrumented_modules() -> list[ModuleType]:
    """Return the modules whose branches guide the fuzzer."""
    import tilewright.conversion.rules
    import tilewright.files
    import tilewright.notation

    packages = (tilewright.files, tilewright.notation)
    names = [f"{one.__name__}.{each.name}" for one in packages for each in pkgutil.iter_modules(one.__path__)]
    return [tilewright.conversion.rules, zipfile, *map(importlib.import_module, names)]


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions and methods that a module defines."""
    for value in vars(module).values():
        held = vars(value).values() if isinstance(value, type) else [value]
        for each in held:
            function = getattr(each, "__func__", each)
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                yield function


def fuzz(parser: str, corpus: Path, seconds: int) -> None:
    """Fuzz one parser in this process, which ends with it."""
    import atheris

    for module in instrumented_modules():
        for function in functions_of(module):
            atheris.instrument_func(function)  # an editable installation has a loader that atheris does not know
    (corpus / "words").write_text(dictionary(seeds(parser)))
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a busy disk must not look like a slow parser
    with tempfile.TemporaryDirectory(dir=memory) as name:
        folder = prepare_folder(parser, Path(name))
        arguments = [sys.argv[0], f"-max_total_time={seconds}", f"-max_len={MAX_BYTES}", "-rss_limit_mb=2048"]
        arguments += ["-timeout=3000", f"-artifact_prefix={corpus}/found-", "-print_final_stats=1", "-verbosity=0"]
        arguments += [f"-dict={corpus}/words", str(corpus / "seeds")]
        atheris.Setup(
            arguments,
            lambda data: tried(parser, folder, data),
            custom_mutator=lambda data, most, seed: changed(parser, bytes(data), most, seed, atheris.Mutate),
        )
        atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parsers", nargs="*", choices=[[], *PARSERS], metavar="PARSER")
    parser.add_argument("--seconds", type=int, default=60, help="for each parser")
    parser.add_argument("--corpus", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--only", choices=PARSERS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        fuzz(given.only, given.corpus / given.only, given.seconds)
        return
    worst = 0
    for name in given.parsers or PARSERS:
        home = given.corpus / name / "seeds"
        home.mkdir(parents=True, exist_ok=True)
        for k, data in enumerate(seeds(name)):
            (home / f"seed-{k}").write_bytes(data)
        print(f"== {name}", flush=True)
        own = [sys.executable, "-m", "tools.fuzz.files", "--only", name, "--seconds", str(given.seconds)]
        own += ["--corpus", str(given.corpus)]
        ended = subprocess.run(own, env={**os.environ, "TILEWRIGHT_THREADS": "1"}, check=False)
        worst = max(worst, abs(ended.returncode))
    print("no parser failed" if not worst else "a parser failed; what it was given is beside its corpus")
    sys.exit(worst)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Run a page as its reader would, in a folder of its own: Python, commands, and the files that it tells to save."""

import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tilewright.files import write_safetensors, write_sample_model
from tilewright.files.safetensors import sample_llama

from ..cli.runner import invoke
from .pages import Block, blocks_of, page_name

FLAGS = doctest.ELLIPSIS  # white space counts: it is what a table or a matrix looks like


class Checker(doctest.OutputChecker):
    """Compares what is printed with what a page shows, except for spaces at the end of a line, which nobody sees."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        want, got = ("\n".join(line.rstrip() for line in text.split("\n")) for text in (want, got))
        return super().check_output(want, got, optionflags)


EXIT = re.compile(r"^\[exit (\d+)\]\n", re.MULTILINE)

# Pages that speak of the reader's own model; it is the sample model here.
WITH_A_MODEL = {"docs/convert.md"}

PUZZLE = """from gpu import thread_idx
from gpu.host import DeviceContext

def add_ten(output: UnsafePointer[Float32, MutAnyOrigin], a: UnsafePointer[Float32, MutAnyOrigin]):
    var i = thread_idx.x
    output[i] = a[i] + 10

def main() raises:
    with DeviceContext() as ctx:
        var a = ctx.enqueue_create_buffer[DType.float32](4)
        var output = ctx.enqueue_create_buffer[DType.float32](4)
        a.enqueue_fill(1)
        ctx.enqueue_function[add_ten](output, a, grid_dim=1, block_dim=8)
"""
"""A kernel that lacks its guard."""

# A cell that the reader has to fill in; as it stands, its check must refuse it.
UNANSWERED = "answer = ...  # your answer\n"

# Pages with zarr arrays of format 3, an extra.
WITH_ZARR = {"docs/guides/arrays-in-chunks.md"}


@contextmanager
def working_in(folder: Path):
    """Work in a folder, from which modules can be imported, and in which temporary files are made."""
    before, temporary = Path.cwd(), tempfile.tempdir
    modules = set(sys.modules)
    os.chdir(folder)
    tempfile.tempdir = str(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        tempfile.tempdir = temporary
        sys.path.remove(str(folder))
        for name in set(sys.modules) - modules:
            if str(folder) in str(getattr(sys.modules[name], "__file__", None)):
                del sys.modules[name]


def run_page(path: Path, folder: Path) -> dict[str, Any]:
    """Return the names that a page leaves behind, after running all of its blocks in order."""
    if page_name(path) in WITH_ZARR:
        pytest.importorskip("zarr", minversion="3.0")
    namespace: dict[str, Any] = {"__name__": "page"}
    with working_in(folder):
        if page_name(path) in WITH_A_MODEL:
            write_sample_model("model.safetensors")
        if page_name(path) == "README.md":
            write_what_a_reader_has()
        for block in blocks_of(path):
            run_block(block, path, namespace)
    return namespace


def write_what_a_reader_has() -> None:
    """Write what the README's reader brings: a large model's config, two checkpoints, and a program with a mistake."""
    Path("Llama-3.1-8B-Instruct").mkdir()
    Path("Llama-3.1-8B-Instruct", "config.json").write_text(
        '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,'
        ' "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,'
        ' "max_position_embeddings": 131072}',
        encoding="utf-8",
    )
    theirs = sample_llama()
    in_pairs = {
        name: weight.reshape(-1, 2, 32, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
        for name, weight in theirs.items()
        if "q_proj" in name or "k_proj" in name
    }
    write_safetensors("theirs.safetensors", theirs)
    write_safetensors("ours.safetensors", theirs | in_pairs)
    Path("puzzle.mojo").write_text(PUZZLE, encoding="utf-8")


def run_block(block: Block, path: Path, namespace: dict[str, Any]) -> None:
    """Run or save one block; anything but what it promises is an AssertionError."""
    if block.file is not None:
        Path(block.file).write_text(block.text, encoding="utf-8")
    elif block.language == "console":
        run_console(block.text, f"{page_name(path)}:{block.line}")
    elif block.language == "python" and ">>> " in block.text:
        run_session(block.text, path, block.line, namespace)
    elif block.language == "python":
        # The blank lines make a traceback name the line of the page.
        code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
        with pytest.raises(AssertionError) if UNANSWERED in block.text else nullcontext():
            exec(code, namespace)


def run_session(text: str, path: Path, line: int, namespace: dict[str, Any]) -> None:
    """Run lines with their answers, as doctest does."""
    parsed = doctest.DocTestParser().get_doctest(text, {}, path.stem, str(path), line - 1)
    parsed.globs = namespace  # the parser copies the dictionary it is given
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(Checker(), optionflags=FLAGS).run(parsed, out=report.append, clear_globs=False)
    assert not failed, "".join(report)


def run_console(text: str, where: str) -> None:
    """Run every command of a block; what it prints must be what the block shows: stdout, or both stdout and stderr.

    A status other than 0 stands below the output, as `[exit 1]`. Commands are `tilewright ...` and `python -c ...`.
    """
    for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = command.replace("\\\n", "").partition("\n")
        expected_status = int(found[1]) if (found := EXIT.search(shown)) else 0
        expected = EXIT.sub("", shown)
        out, err, status = outcome_of(shlex.split(line))
        assert status == expected_status, f"{where}: {line!r} ended with status {status}\n{out}{err}"
        checker = Checker()
        same = any(checker.check_output(expected, said, FLAGS) for said in (out, out + err, err + out))
        assert same, f"{where}: {line!r} printed\n{out}{err}\nwhere the page shows\n{expected}"


def outcome_of(words: list[str]) -> tuple[str, str, int]:
    """Return what a command writes to stdout and stderr, and its status."""
    if words[0] == "python":
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=False)
        return done.stdout, done.stderr, done.returncode
    assert words[0] == "tilewright", f"only tilewright and python are run, not {words[0]}"
    found = invoke(*words[1:])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.stdout, found.stderr, found.exit_code

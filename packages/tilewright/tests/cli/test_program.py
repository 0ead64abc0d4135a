# SPDX-License-Identifier: Apache-2.0
"""What holds for every verb: help without imports, JSON, one-line errors, exit statuses."""

import subprocess
import sys

import click
import numpy as np
import pytest

from tilewright.cli import program
from tilewright.cli.console import CommandError, ExitCode, describe_error
from tilewright.cli.program import VERBS, Verb

EXPLAIN = ("explain", "4x60x90", "--dtype", "bfloat8_b", "--shard", "block", "--grid", "8x8", "--at", "2,33,17")


def commands():
    """Return the verbs that this build has."""
    context = click.Context(program, info_name="tilewright")
    found = {}
    for name in VERBS:
        try:
            found[name] = program.get_command(context, name)
        except CommandError:
            continue
    return found


COMMANDS = commands()


def test_most_verbs_are_there():
    assert {"completion", "diff", "doctor", "explain", "fit", "inspect", "stream"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_verb_says(name):
    command = COMMANDS[name]
    assert command.name == name
    assert isinstance(command, Verb)
    assert {"--json", "--debug"} <= {option for each in command.params for option in each.opts}
    assert VERBS[name].endswith(".")
    assert len(VERBS[name]) <= 66


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_80_columns(run, name):
    shown = run(*([name] if name else []), "--help").out
    assert shown.startswith("Usage: tilewright")
    assert all(len(line) <= 80 for line in shown.splitlines()), [line for line in shown.splitlines() if len(line) > 80]


def test_nothing_asked_is_help(run):
    assert run().out == run("--help").out
    assert run("--debug").out == run("--help").out


def test_json_can_be_asked_for_before_the_verb(run):
    assert run("--json", *EXPLAIN).json == run(*EXPLAIN, "--json").json


def test_help_lists_every_verb_and_exit_status(run):
    shown = run("--help").out
    assert all(f"  {name}" in shown for name in VERBS)
    assert all(f"{status:>3}  {status.meaning}" in shown for status in ExitCode)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["explain", "--help"], ["fit", "--help"], ["--version"]], ids=" ".join
)
def test_help_imports_neither_numpy_nor_verbs_that_are_not_asked_for(arguments):
    question = (
        "import sys\nfrom tilewright.cli import program\n"
        f"try: program.main({arguments!r})\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'ml_dtypes', 'tilewright.memory', 'tilewright.cli.stream'}\n"
        "print('imported:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "imported: []"


def test_a_mistyped_verb_gets_a_suggestion(run):
    assert "did you mean 'explain'? See tilewright --help" in run("explian", status=2).err
    assert "use one of convert, prepare, verify" in run("zzz", status=2).err


def test_a_verb_that_is_missing_does_not_break_the_others(run, monkeypatch):
    from tilewright.cli import program as module

    monkeypatch.setitem(sys.modules[module.__class__.__module__].VERBS, "later", "Comes later.")
    assert "Comes later." in run("--help").out
    assert "the verb 'later' is not installed" in run("later", status=ExitCode.MISSING).err


def test_a_verb_of_a_companion_names_its_extra(run, monkeypatch):
    from tilewright.cli import program as group

    monkeypatch.setattr(sys.modules[group.__class__.__module__], "load_plugin", lambda *_: None)
    said = run("audit", "report.json", status=ExitCode.MISSING).err
    assert "the verb 'audit' is not installed: pip install 'tilewright[audit]'" in said


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["explain", "4x60", "--at", "9,9"], 2, "coordinate (9, 9) is outside shape [4, 60]"),
        (["explain", "4xfish", "--at", "0,0"], 2, "'4xfish' is not a shape; write extents as 4x60x90"),
        (["explain", "4x60", "--at", "0,0", "--address", "0"], 2, "give either --at"),
        (["explain", "4x60", "--bit", "0"], 2, "--bit has no effect without --address"),
        (["explain", "4x60", "--base", "0"], 2, "--base has no effect without --at and --address"),
        (["explain", "4x60", "--at", "0,0", "--core", "0,0"], 2, "are only for --address"),
        (["explain", "4x60", "--address", "0"], 2, "needs either --core X,Y or --bank N"),
        (["explain", "4x60", "--at", "0,0", "--dtype", "bfloat9"], 2, "unknown format 'bfloat9'"),
        (["explain", "4x60", "--at", "0,0", "--chip", "potato"], 2, "unknown chip 'potato'"),
        (["explain", "4x60", "--at", "0,0", "--grid", "8"], 2, "is not a grid"),
        (["explain", "4x60", "--at", "0,0", "--grid", "8x8"], 2, "--grid needs --shard"),
        (["explain", "4x60", "--at", "0,0", "--shard", "nd"], 2, "--shard nd needs --shard-shape"),
        (["explain", "4x60", "--at", "0,0", "--chip", "none.toml"], 3, "none.toml: no such file"),
        (
            ["explain", "100x64", "--at", "0,0", "--layout", "tile", "--shard", "height", "--shard-shape", "25x64"],
            2,
            "use 32",
        ),
        (["explain", "99999x99999", "--at", "0,0", "--buffer", "l1"], 2, "has 1393312"),
        (["fit", "4x60:colour=blue"], 2, "is not a setting of a tensor"),
        (["fit", "4x60", "--cb", "lots"], 2, "'lots' is not a size; write it as 256MiB"),
        (["fit"], 2, "Missing argument"),
        (["fit", "none.npy"], 3, "none.npy: no such file or directory; check the path"),
        (["inspect", "none.npy"], 3, "none.npy: no such file or directory; check the path"),
        (["inspect", "none.txt"], 3, "none.txt: no such file"),
        (["diff", "none.npy", "none.npy"], 3, "none.npy: no such file"),
        (["stream", "copy", "none.npy", "x.npy"], 3, "none.npy: no such file"),
        (["verify", "none"], 3, "none: no such file or directory; check the path"),
        (["verify", ""], 3, "the name of a file is empty"),
        (["fit", ""], 2, "'' is not a shape; write extents as 4x60x90, or name an existing file"),
        (["fit", "none"], 2, "'none' is not a shape; write extents as 4x60x90, or name an existing file"),
        (["explain", "", "--at", "0"], 2, "'' is not a shape; write extents as 4x60x90"),
        (["stream", "twirl", "a.npy", "b.npy"], 2, "unknown compute 'twirl'; choose one of copy"),
        (["stream", "copy", "x.npy"], 2, "name at least one source"),
        (["completion", "tcsh"], 2, "'tcsh' is not one of"),
        (["--nonsense"], 2, "No such option"),
        (["fit", "--nonsense", "4x4"], 2, "see tilewright fit --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_every_error_is_one_line_with_a_remedy(run, arguments, status, message):
    done = run(*arguments, status=status)
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("tilewright: error: ")
    assert message in line
    told_to_a_program = run(*arguments, "--json", status=status).json
    assert message in told_to_a_program["error"]
    assert told_to_a_program["exit_code"] == status


def test_an_option_without_its_value_names_the_verb(run):
    said = run("fit", "4x4", "--solve", status=2).err
    assert "'--solve' requires an argument; see tilewright fit --help" in said


def test_a_traceback_only_if_asked_for(run):
    wrong = ("explain", "4x60", "--at", "9,9")
    assert "Traceback" not in run(*wrong, status=2).err
    assert "CoordinateError" in run(*wrong, "--debug", status=2).err
    assert "Traceback" in run("--debug", *wrong, status=2).err


def test_a_bug_says_that_it_is_one():
    said = describe_error(ZeroDivisionError("division by zero"))
    assert said.exit_code == ExitCode.BUG
    assert "this is a bug, please report what --debug prints" in said.line


@pytest.mark.parametrize(
    ("problem", "status", "line"),
    [
        (FileExistsError(17, "File exists", "out"), ExitCode.OUTPUT, "out: file exists; choose another path"),
        (OSError(28, "No space left on device", "out"), ExitCode.OUTPUT, "out: no space left on device; free some"),
        (PermissionError(13, "Permission denied", "in"), ExitCode.INPUT, "in: permission denied; check the permiss"),
        (ModuleNotFoundError("No module named 'zarr'", name="zarr"), ExitCode.MISSING, "zarr is not installed; pip"),
        (CommandError("one\n  two", 4), ExitCode.OUTPUT, "one two"),
        (MemoryError("8 TiB"), ExitCode.USAGE, "not enough memory (8 TiB); lower --memory"),
    ],
    ids=["exists", "full", "permission", "missing", "two lines", "memory"],
)
def test_problems_have_statuses(problem, status, line):
    said = describe_error(problem)
    assert said.exit_code == status
    assert said.line.startswith(line)


def test_json_is_one_line_with_what_json_lacks_as_text():
    from tilewright.cli.console import to_json

    assert to_json({"a": float("nan"), "b": (1, 2), "c": {3}}) == '{"a": "nan", "b": [1, 2], "c": [3]}'


def test_version(run):
    import tilewright

    assert run("--version").out == f"tilewright, version {tilewright.__version__}\n"


SPEC = (
    "TensorSpec(logical_shape=Shape([64, 64]),tensor_layout=TensorLayout(dtype=DataType::BFLOAT16,page_config="
    "PageConfig(config=TilePageConfig(tile=Tile(tile_shape={32, 32},face_shape={16, 16},num_faces=4))),"
    "memory_config=MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::DRAM),"
    "alignment=Alignment([32, 32])))"
)
WITHOUT_EFFECT = [
    "explain (8,8):(8,1) --at 1,1 | --dtype float32, --layout tile, --shard height, --chip n300, --harvested 1",
    "explain (8,8):(8,1) --at 1,1 | --base 4096, --tensor w, --device 0, --follow-links",
    "explain 64x96 --at 1,1 | --bit 3, --orientation col_major, --distribution grid_2d, --follow-links",
    "explain 64x96 --at 1,1 --shard height --grid 2x1 | --shard-dims 0, --distribution grid_2d",
    "explain 64x96 --at 1,1 --shard dims --shard-dims 0 --grid 2x1 | --shard-shape 32x32",
    "fit 64x96:dtype=float32 1x8:dtype=bfloat16 | --dtype float32, --follow-links",
    "fit SPEC | --dtype float32, --shard height, --alignment 1x128",
    "reshard SPEC l1 | --dtype float32, --layout tile, --grid 2x2",
    "reshard 64x64:shard=height:grid=2x1 dram | --shard block, --grid 2x2",
    "reshard 64x64:dtype=float32 l1 | --dtype bfloat16",
    "show (8,8):(8,1) | --page 0, --follow-links",
    "show 64x96:dtype=float32 | --dtype bfloat16",
    "show 64x96 --memory dram | --page 0, --pipeline double, --cb 1KiB, --tiles 8x8",
    "show 64x96 --memory l1 --buffer l1 | --animate -o x.html, --error",
    "show 64x96 --page 0 | --side 4",
    "show 64x96 --tiles 16x16 | --address hex, --page 0",
    "show 64x96 --ttnn-visualizer report | -o x.svg, --memory l1",
    "translate (8,8):(8,1) --code cuda | --to xla, --dtype f16",
    "translate (8,8):(8,1) --to cute | --dtype f16",
    "inspect w.npy --tensor * | --show x.svg",
    "prepare --check w.npy | --resume, --force, --dry-run, --part 0/2, --dask a",
    "prepare --recipes | --for N300, --jobs 2, --batch 2, --layers 0-1, --mesh 1x2",
    "prepare w.npy --for N300 --explain w | --force, --memory 1GiB",
    "convert w.npy out --dry-run | --part 0/2",
    "explore | --dtype float32, --follow-links",
    "explore shape=64x64 | --dtype float32",
]


@pytest.mark.parametrize("case", WITHOUT_EFFECT)
def test_options_without_effect_are_refused(run, tmp_path, case):
    np.save(tmp_path / "w.npy", np.zeros((4, 4), np.float32))
    words, _, options = case.partition(" | ")
    for option in options.split(","):
        arguments = [SPEC if word == "SPEC" else word for word in [*words.split(), *option.split()]]
        said = run(*arguments, status=2).err
        assert option.split()[0] in said
        assert any(reason in said for reason in ("has no effect", "needs", "cannot be used with")), said


def test_what_is_stated_twice_is_refused(run, tmp_path):
    assert "--dtype is given 2 times" in run("fit", "4x4", "--dtype", "float32", "--dtype", "uint8", status=2).err
    assert "dtype is set twice" in run("fit", "4x4:dtype=float32:dtype=uint8", status=2).err
    assert "layout is set twice" in run("reshard", "4x4:layout=tile:layout=tile", "l1", status=2).err
    (tmp_path / "a.mojo").write_text("def main():\n    pass\n")
    assert "-D N is given 2 times" in run("run", "-D", "N=1", "-D", "N=2", "a.mojo", status=2).err
    run("fit", "4x4", "--cb", "1KiB", "--cb", "2KiB")  # which may be repeated


def test_a_picture_without_a_kernel_is_named(run, tmp_path):
    (tmp_path / "a.mojo").write_text("def main():\n    pass\n")
    assert "x.svg is not written" in run("run", "a.mojo", "--picture", "x.svg").err


def test_pictures_are_written_with_json(run, tmp_path):
    np.save(tmp_path / "w.npy", np.zeros((4, 4), np.float32))
    assert run("inspect", "w.npy", "--show", "x.svg", "--json").json["show"] == "x.svg"
    assert (tmp_path / "x.svg").exists()

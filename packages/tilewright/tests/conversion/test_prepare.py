# SPDX-License-Identifier: Apache-2.0
"""`prepare` as its users run it: sources as they have them, what is refused, and the guarantees of every conversion."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tilewright as tw
from tilewright import FileFormatError, FormatError
from tilewright.conversion import plan_cache, run_plan
from tilewright.conversion.cache import model_name
from tilewright.conversion.work_folder import WorkFolder
from tilewright.files import read_tensorbin
from tilewright.files.safetensors import sample_llama

from ..cli.runner import invoke
from ..conversion.test_resume import finished_tensors
from ..files.samples import write_safetensors
from .llamas import NAME, files_of, numbers, write_model

FOLDER = "tensor_cache_instruct_bfp8"
KILLS = int(os.environ.get("TILEWRIGHT_KILLS", "2"))  # make kills: 25


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("source") / NAME)


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """Return the files of a cache that one run made."""
    out = tmp_path_factory.mktemp("whole")
    tw.prepare(source, out, "N300")
    return files_of(out)


def test_parts_give_the_same_cache_as_one_run(source, whole, tmp_path):
    reports = [tw.prepare(source, tmp_path / "out", "N300", part=(k, 3)) for k in (2, 0, 1)]
    assert [report.complete for report in reports] == [False, False, True]
    assert files_of(tmp_path / "out") == whole


def test_little_memory_and_an_executor_give_the_same_cache(source, whole, tmp_path):
    tw.prepare(source, tmp_path / "small", "N300", memory=1 << 20, jobs=1)
    with ThreadPoolExecutor(2) as executor:
        tw.prepare(source, tmp_path / "pool", "N300", executor=executor)
    assert files_of(tmp_path / "small") == files_of(tmp_path / "pool") == whole


def test_a_dask_cluster_gives_the_same_cache(source, whole, tmp_path):
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        tw.prepare(source, tmp_path / "out", "N300", executor=client.get_executor())
    assert files_of(tmp_path / "out") == whole


@pytest.mark.slow
def test_killed_runs_are_resumed_to_the_same_cache(source, whole, tmp_path):
    rng, interrupted = random.Random(3), 0
    for number in range(KILLS):
        out = tmp_path / f"out{number}"
        words = [sys.executable, "-m", "tilewright", "prepare", source, out, "--for", "N300", "--memory", "1MiB"]
        process = subprocess.Popen([*map(str, words), "--jobs", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        least = rng.randint(1, 18)
        while process.poll() is None and finished_tensors(out / "N300" / FOLDER, "tensorbin") < least:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        interrupted += process.returncode == -signal.SIGKILL
        tw.prepare(source, out, "N300", resume=True)
        assert files_of(out) == whole
    assert interrupted


def test_a_second_run_waits_for_no_lock_but_says_so(source, tmp_path):
    plan = plan_cache(source, tmp_path / "out", "N300")
    with WorkFolder(plan.out, False).lock(None), pytest.raises(BlockingIOError):
        run_plan(plan)


def test_an_existing_cache_is_kept_unless_it_may_be_replaced(source, whole, tmp_path):
    tw.prepare(source, tmp_path / "out", "N300")
    with pytest.raises(FileExistsError, match="already finished"):
        tw.prepare(source, tmp_path / "out", "N300")
    assert tw.prepare(source, tmp_path / "out", "N300", resume=True).reused == 22
    tw.prepare(source, tmp_path / "out", "N300", force=True)
    assert files_of(tmp_path / "out") == whole


def test_verify_takes_a_cache(source, tmp_path):
    out = tw.prepare(source, tmp_path / "out", "N300").out
    report = tw.verify(out, source)
    assert (bool(report), len(report.verdicts), report.notes) == (True, 22, ())


def test_only_some_layers_are_made_without_a_marker(source, tmp_path):
    report = tw.prepare(source, tmp_path / "out", "N300", layers=[1])
    names = {path.name for path in (tmp_path / "out" / "N300" / "tensor_cache_instruct_bfp8").iterdir()}
    assert not any(name.startswith(("layers.0.", ".weights_complete")) for name in names)
    note = "only 1 layer of 2 (1): tt_transformers converts the others itself"
    assert (report.converted, report.notes) == (13, (note,))
    for given in ([], [str(source)]):
        checked = invoke("prepare", "--check", str(tmp_path / "out"), *given)
        assert checked.exit_code == 0
        assert f"note: {note}" in checked.stdout
    said = invoke("prepare", str(source), str(tmp_path / "more"), "--for", "N300", "--layers", "1").stdout
    assert "tensor_cache_instruct_bfp8 has the layers that were asked for" in said
    with pytest.raises(FormatError, match="layer 2 does not exist: the model has 2, from 0 to 1"):
        plan_cache(source, "out", "N300", layers=[2])


def test_a_snapshot_of_the_hub_and_a_sharded_checkpoint_give_the_same_files(source, whole, tmp_path):
    tensors = sample_llama()
    home = tmp_path / "hub" / f"models--meta--{NAME}"
    snapshot, blobs = home / "snapshots" / "0e9e39f2", home / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    names, index = list(tensors), {}
    for number, own in enumerate((names[:9], names[9:])):
        write_safetensors(blobs / f"b{number}", {name: tensors[name] for name in own})
        file = f"model-{number + 1:05}-of-00002.safetensors"
        (snapshot / file).symlink_to(f"../../blobs/b{number}")
        index |= dict.fromkeys(own, file)
    for file, text in {
        "config.json": (source / "config.json").read_text(),
        "model.safetensors.index.json": json.dumps({"weight_map": index}),
    }.items():
        (blobs / file).write_text(text)
        (snapshot / file).symlink_to(f"../../blobs/{file}")
    made = {name: data for name, data in whole.items() if "tilewright.json" not in name}
    for number, given in enumerate((snapshot, home)):
        tw.prepare(given, tmp_path / f"out{number}", "N300")
        found = files_of(tmp_path / f"out{number}")
        assert {name: data for name, data in found.items() if "tilewright.json" not in name} == made


def test_tensors_that_no_weight_is_made_from_may_be_of_any_type(source, whole, tmp_path):
    home = tmp_path / NAME
    home.mkdir()
    (home / "config.json").write_bytes((source / "config.json").read_bytes())
    data = (source / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, end = json.loads(data[8 : 8 + size]), len(data) - 8 - size
    for name, kind in (("mask", "BOOL"), ("blocks", "F4"), ("scales", "F8_E8M0")):
        header[name] = {"dtype": kind, "shape": [16], "data_offsets": [end, end := end + (8 if kind == "F4" else 16)]}
    text = json.dumps(header).encode()
    (home / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :] + bytes(40))
    tw.prepare(home, tmp_path / "out", "N300")
    assert {k: v for k, v in files_of(tmp_path / "out").items() if ".json" not in k} == {
        k: v for k, v in whole.items() if ".json" not in k
    }


def test_the_name_of_a_model_is_read_off_its_path():
    cases = {
        "models/phi-4/": "phi-4",
        "phi-4": "phi-4",
        "meta-llama/Llama-3.1-8B": "Llama-3.1-8B",
        "/hub/models--meta-llama--Llama-3.1-8B/snapshots/0e9e/": "Llama-3.1-8B",
    }
    for path, name in cases.items():
        assert model_name(path) == name, path


def test_directories_go_by_the_spelling_of_the_source(tmp_path):
    source = write_model(tmp_path / "with" / "Llama-3.1-8B")
    cases = {"Llama-3.1-8B": "bfp8", "with/Llama-3.1-8B": "instruct_bfp8", "Llama-3.1-8B-INSTRUCT": "instruct_bfp8"}
    for spelling, name in cases.items():
        plan = plan_cache(source, "cache", "P150", hf_model=spelling)
        assert plan.out.as_posix() == f"cache/P150/tensor_cache_{name}", spelling
    plan = plan_cache(source, None, "N300", hf_model="m/Llama-3.1-8B", hf_rope=True, model_dtype="bfloat16")
    assert plan.out.as_posix() == "model_cache/m/Llama-3.1-8B/N300/hf_rope/tensor_cache_bf16"


def test_types_of_checkpoints_are_rounded_as_they_are_loaded(tmp_path):
    """A file of float32 or float16 is loaded as config.json says, and then packed from bfloat16."""
    values = {}
    for name, dtype, loaded in (
        ("f32", np.float32, "bfloat16"),
        ("f16", np.float16, "float16"),
        ("own", np.float32, "float32"),
    ):
        source = write_model(tmp_path / name / NAME, {"torch_dtype": loaded}, dtype=dtype)
        out = tw.prepare(source, tmp_path / name / "out", "N300").out
        values[name] = read_tensorbin(f"{out}/layers.0.attention.wo_dtype_BFLOAT8_B_layout_TILE.tensorbin").array()
        assert tw.check_cache(tmp_path / name / "out", source, full=True)
        assert tw.verify(out, source)
    assert np.array_equal(values["f32"], values["own"])
    assert np.array_equal(values["f32"], values["f16"])  # the values are those of bfloat16


def test_a_tied_head_is_the_embedding(tmp_path):
    source = write_model(tmp_path / NAME, {"tie_word_embeddings": True}, {"lm_head.weight": None})
    out = tw.prepare(source, tmp_path / "out", "N150", model_dtype="bfloat16").out
    head = read_tensorbin(f"{out}/output_lm_head_1_split_shard_0_1024_mode_0_dtype_BFLOAT16_layout_TILE.tensorbin")
    assert np.array_equal(head.array()[:, :1003].T, sample_llama()["model.embed_tokens.weight"])
    assert not head.array()[:, 1003:].any()


def test_biases_norms_and_fused_weights_of_other_families(tmp_path):
    layer = "model.layers.{}.self_attn"
    biases = {f"{layer.format(k)}.{n}_proj.bias": numbers(256 if n == "q" else 128) for k in (0, 1) for n in "qkv"}
    plan = plan_cache(write_model(tmp_path / "Qwen2.5-0.5B", {"model_type": "qwen2"}, biases), "out", "N300")
    assert sum("bias" in item.name for item in plan.items) == 4
    norms = {f"{layer.format(k)}.{n}_norm.weight": numbers(64) for k in (0, 1) for n in "qk"}
    plan = plan_cache(write_model(tmp_path / "Qwen3-0.6B", {"model_type": "qwen3"}, norms), "out", "N300")
    assert sum("_norm.weight" in item.name and "attention." in item.name for item in plan.items) == 4
    fused = {f"{layer.format(k)}.qkv_proj.weight": numbers(512, 256) for k in (0, 1)}
    fused |= {f"model.layers.{k}.mlp.gate_up_proj.weight": numbers(1024, 256) for k in (0, 1)}
    gone = {f"{layer.format(k)}.{n}_proj.weight": None for k in (0, 1) for n in "qkv"}
    plan = plan_cache(write_model(tmp_path / "phi-4", {"model_type": "phi3"}, {**fused, **gone}), "out", "N300")
    assert plan.explain("layers.0.feed_forward.w3")[0].pieces[0].source_box.offset == (512, 0)


REFUSED = {
    "no config.json": (None, {}, "N300", "has no config.json; give the directory of a Hugging Face model"),
    "no model_type": ({"model_type": None}, {}, "N300", "expected a model_type, such as 'llama', got None"),
    "unknown model_type": (
        {"model_type": "olmo"}, {}, "N300",
        "no family for model_type 'olmo'; it has gemma, gemma2, gemma3, llama, mistral, mistral3, mixtral, mllama",
    ),
    "unknown machine": ({}, {}, "N500", "unknown machine 'N500'; did you mean 'N300'?"),
    "missing tensor": (
        {}, {"model.layers.1.mlp.up_proj.weight": None}, "N300",
        "the checkpoint has no tensor 'model.layers.1.mlp.up_proj.weight', which llama.toml: weights:",
    ),
    "missing head": ({}, {"lm_head.weight": None}, "N300", "the checkpoint has no tensor 'lm_head.weight'"),
    "wrong shape": (
        {"hidden_size": 512}, {}, "N300",
        "has shape [1003, 256] (from model.embed_tokens.weight), but config.json says [1003, 512]; is that",
    ),
    "text for a number": (
        {"num_attention_heads": "four"}, {}, "N300",
        "config.json: num_attention_heads is 'four'; expected a positive integer",
    ),
    "a missing number": ({"hidden_size": None}, {}, "N300", "config.json: hidden_size is missing; expected a positive"),
    "a negative number": ({"num_key_value_heads": -2}, {}, "N300", "config.json: num_key_value_heads is -2; expected"),
    "heads": ({}, {}, "T3K", "4 heads and 2 key-value heads cannot be divided among 8 devices"),
    "narrow on a Galaxy": (
        {"num_attention_heads": 32, "num_key_value_heads": 8}, {}, "TG",
        "TG needs a hidden size that is a multiple of 1024, not 256",
    ),
    "no whole tiles": ({"intermediate_size": 500}, {}, "N300", "500 columns of the feed-forward network"),
    "odd width": ({"head_dim": 48}, {}, "N300", "a hidden size of 256 and heads of 48 must be multiples of 32"),
    "torch_dtype": ({"torch_dtype": "int4"}, {}, "N300", "float32 as torch_dtype, got 'int4'"),
    "experts": ({"model_type": "mixtral", "num_local_experts": 8}, {}, "N300", "8 experts need 8 devices, not 2"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_says_why(tmp_path, what):
    config, weights, machine, message = REFUSED[what]
    source = write_model(tmp_path / NAME, config, weights)
    if config is None:
        (source / "config.json").unlink()
    with pytest.raises((FormatError, FileFormatError)) as told:
        plan_cache(source, "out", machine)
    assert message in str(told.value)


def test_optional_sizes_of_zero_or_null_are_missing_ones(source, tmp_path):
    absent = {"num_local_experts": 0, "head_dim": 0}
    plan = plan_cache(write_model(tmp_path / NAME, absent), "out", "N300")
    assert [item.slot for item in plan.items] == [item.slot for item in plan_cache(source, "out", "N300").items]


def test_models_that_tt_transformers_does_not_run_on_a_machine(tmp_path, monkeypatch):
    source = write_model(tmp_path / "any")
    for name, machine, message in (
        ("Qwen2.5-7B-Instruct", "N150", "Qwen2.5-7B runs on 2 or 4 devices only"),
        ("Qwen2.5-32B-Instruct", "N300", "does not run Qwen2.5-32B on N300 unless MAX_PREFILL_CHUNK_SIZE is set"),
        ("Llama-3.1-70B-Instruct", "N150", "does not run Llama-3.1-70B on N150 unless MAX_PREFILL_CHUNK_SIZE is set"),
    ):
        with pytest.raises(FormatError) as told:
            plan_cache(source, "out", machine, hf_model=name)
        assert message in str(told.value)
    monkeypatch.setenv("MAX_PREFILL_CHUNK_SIZE", "4")
    assert plan_cache(source, "out", "N150", hf_model="Llama-3.1-70B-Instruct").items


def test_the_padding_of_networks_is_that_of_the_environment_unless_it_is_given(source, monkeypatch):
    def widths(**options):
        plan = plan_cache(source, "out", "N300", **options)
        return {item.name.partition(".hidden_dim_")[2] for item in plan.items if "w1_sharded" in item.name}

    assert widths() == {""}
    assert widths(pad_mlp_cores=16) == {"1024"}
    monkeypatch.setenv("PAD_MLP_CORES", "24")
    assert widths() == {"1536"}
    assert widths(pad_mlp_cores=16) == {"1024"}
    monkeypatch.setenv("PAD_MLP_CORES", "many")
    with pytest.raises(FormatError, match="expected a number of cores in PAD_MLP_CORES, got 'many'"):
        widths()


def test_a_mesh_of_another_shape(tmp_path):
    source = write_model(tmp_path / NAME, {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32})
    plan = plan_cache(source, "out", "t3k", mesh=(2, 4))
    assert plan.items[1].target.mesh.shape == (2, 4)
    with pytest.raises(FormatError, match=r"T3K has 8 devices, which do not make a mesh of \[2, 2\]"):
        plan_cache(source, "out", "T3K", mesh=(2, 2))


def test_unknown_options_are_refused(source):
    with pytest.raises(TypeError, match="unknown option 'optimisations'; there are recipe, optimizations"):
        tw.prepare(source, "out", "N300", optimisations="accuracy")


def test_the_command_says_what_it_made_and_what_to_do_next(source, tmp_path):
    ended = invoke("prepare", str(source), str(tmp_path / "cache"), "--for", "N300", "--batch", "4", "--layers", "0-1")
    lines = ended.stdout.splitlines()
    assert ended.exit_code == 0
    assert lines[0].startswith("22 files: 3.23 MiB read, 1.72 MiB written in ")
    assert lines[1] == f"{tmp_path}/cache/N300/tensor_cache_instruct_bfp8 is complete"
    assert (
        lines[2]
        == f"start tt_transformers with TT_CACHE_PATH={tmp_path}/cache; check it with tilewright prepare --check"
    )
    body = json.loads(next((tmp_path / "cache").rglob(".weights_complete.*")).read_text())
    assert body["build_variant"]["batch"] == 4


def test_a_dry_run_lists_like_files_together_and_writes_none(source, tmp_path):
    words = ["prepare", str(source), str(tmp_path / "cache"), "--for", "N300", "--dry-run"]
    lines = invoke(*words).stdout.splitlines()
    assert lines[0].startswith("recipe tt_transformers, which follows models/tt_transformers of tt-metal e4f9f0bb")
    assert lines[1] == f"22 files in {tmp_path}/cache/N300/tensor_cache_instruct_bfp8"
    items = plan_cache(source, "cache", "N300").items
    patterns = list(dict.fromkeys([re.sub(r"layers\.\d", "layers.*", item.slot.file) for item in items]))
    assert [line.split()[0] for line in lines[2 : 2 + len(patterns)]] == patterns
    assert [line.split("2 files")[1:] != [] for line in lines[2 : 2 + len(patterns)]] == [
        "*" in each for each in patterns
    ]
    assert lines[2 + len(patterns)].startswith("reads ")
    data = json.loads(invoke(*words, "--json").stdout)
    assert [each["file"] for each in data["tensors"]] == [item.slot.file for item in items]
    assert data["tensors"][1]["mesh"]["placements"] == [2, 3]
    assert (data["recipe"]["name"], data["recipe"]["machine"], data["fit"]["fits"]) == ("tt_transformers", "N300", True)
    assert not (tmp_path / "cache").exists()


def test_a_dry_run_in_a_narrow_terminal_takes_two_lines_a_group(source, tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.cli.prepare.table_width", lambda: 80)
    lines = invoke("prepare", str(source), "cache", "--for", "N300", "--dry-run").stdout.splitlines()
    first = lines.index("  tok_embeddings.weight_dtype_BFLOAT16_layout_ROW_MAJOR.tensorbin")
    assert lines[first + 1] == "      1x1x1003x128, interleaved in DRAM, 1x2, 2 along 3, 1 file, 502 KiB"
    assert all(len(line) <= 80 or " " not in line.strip() for line in lines), "only names of files are longer"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name the machine, such as --for N300"),
        (["--for", "N300"], "expected SOURCE and perhaps OUT, got 0 paths"),
        (["a", "b", "c", "--for", "N300"], "expected SOURCE and perhaps OUT, got 3 paths"),
        (["a", "--check", "--retarget"], "--check and --retarget cannot be used together"),
        (["a", "--full", "--for", "N300"], "--full is only for --check; remove it"),
        (["a", "--show", "x.svg", "--for", "N300"], "--show is only for --explain; remove it"),
        (["a", "--layers", "3-1", "--for", "N300"], "--layers 3-1 is not a list of layers; write 0-3, or 0,31"),
        (["--recipes", "x"], "--recipes takes no paths"),
    ],
)
def test_requests_that_are_wrong(words, message):
    ended = invoke("prepare", *words)
    assert ended.exit_code == 2
    assert message in ended.stderr


def test_the_command_lists_families_and_machines(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('model_types = ["olmo"]\nextends = "llama"\n')
    text = invoke("prepare", "--recipes", "--recipe", str(path)).stdout
    assert "recipe mine, revision " in text
    assert "\n  mine      olmo\n" in text
    assert "\n  gemma3    gemma3                recorded caches\n" in text
    assert "\n  P150x4  1x4  blackhole_p150\n" in text
    data = json.loads(invoke("prepare", "--recipes", "--json").stdout)
    assert data["families"]["llama"] == ["llama"]
    assert data["machines"]["TG"] == [8, 4, "wormhole_n150"]

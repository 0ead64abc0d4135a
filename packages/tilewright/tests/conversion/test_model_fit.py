# SPDX-License-Identifier: Apache-2.0
"""`fit` of checkpoints, caches, plans and machines: what each device holds, and what would fit if it does not."""

import json
from math import prod

import numpy as np
import pytest

import tilewright as tw
from tilewright._text import format_bytes
from tilewright.cli import program
from tilewright.conversion import Recipe, plan_cache
from tilewright.conversion.cache import Machine
from tilewright.files import write_sample_llama

from ..cli.runner import invoke
from .llamas import numbers, write_model


def large_checkpoint(folder, layers):
    """Write the headers of a checkpoint with large tensors, whose data is a hole in the file."""
    folder.mkdir(parents=True)
    dim, hidden = 4096, 14336
    shapes = {"model.embed_tokens.weight": (32000, dim), "lm_head.weight": (32000, dim), "model.norm.weight": (dim,)}
    for k in range(layers):
        projections = {"q_proj": (dim, dim), "k_proj": (1024, dim), "v_proj": (1024, dim), "o_proj": (dim, dim)}
        shapes |= {f"model.layers.{k}.self_attn.{name}.weight": shape for name, shape in projections.items()}
        mlp = {"gate_proj": (hidden, dim), "up_proj": (hidden, dim), "down_proj": (dim, hidden)}
        shapes |= {f"model.layers.{k}.mlp.{name}.weight": shape for name, shape in mlp.items()}
        norms = ("input_layernorm", "post_attention_layernorm")
        shapes |= {f"model.layers.{k}.{name}.weight": (dim,) for name in norms}
    header, at = {}, 0
    for name, shape in shapes.items():
        end = at + 2 * prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    data = json.dumps(header).encode()
    data += b" " * (-len(data) % 8)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(data).to_bytes(8, "little") + data)
        file.truncate(8 + len(data) + at)
    config = {"model_type": "llama", "hidden_size": dim, "intermediate_size": hidden, "num_attention_heads": 32}
    config |= {"num_key_value_heads": 8, "vocab_size": 32000, "num_hidden_layers": layers, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    return folder


def test_a_checkpoint_that_does_not_fit_gets_remedies_for_all_its_tensors(tmp_path):
    model = large_checkpoint(tmp_path / "Llama-3.1-8B-Instruct", 32)
    report = tw.fit(model, "n150")
    assert not report
    used = [tensor for tensor in report.tensors if tensor.address is not None]
    first = next(k for k, tensor in enumerate(report.tensors) if tensor.problems)
    assert all(tensor.address is not None for tensor in report.tensors[:first])
    total = sum(tensor.total_bytes for tensor in report.tensors)
    assert total > 12 << 30 > sum(tensor.total_bytes for tensor in used)
    text = str(report)
    assert f"the first is number {first + 1}:" in text
    assert report.tensors[first].name in text
    assert "all floating-point tensors as bfloat8_b" in report.remedies[0]
    assert "2 devices that share every tensor evenly" in report.remedies[-1]
    smaller = tw.fit(model, "n150", dtype="bfloat8_b", page_layout="tile")
    assert smaller, smaller


def test_a_machine_is_checked_device_by_device(tmp_path):
    model = large_checkpoint(tmp_path / "Llama-3.1-8B-Instruct", 2)
    one, two = (tw.fit(model, machine=machine) for machine in ("N150", "N300"))
    assert (one.mesh, two.mesh) == ((), (1, 2))
    held = [sum(each.total_bytes for each in report.tensors) for report in (one, two)]
    assert 0.45 < held[1] / held[0] < 0.6
    plan = plan_cache(model, tmp_path / "cache", "N300")
    again = tw.fit(plan, "n300")
    assert [each.spec for each in again.tensors] == [each.spec for each in two.tensors]
    assert str(again) == str(two)
    assert tw.fit(model, machine="N300", optimizations="accuracy").tensors[3].bytes_per_bank


def test_the_sum_of_all_tensors_is_what_the_banks_hold(tmp_path):
    write_sample_llama(tmp_path / "Llama-3.2-1B")  # whose shards do not reach all banks
    report = tw.fit(tmp_path / "Llama-3.2-1B", machine="N300")
    assert any(0 < each.banks < 12 for each in report.tensors)
    summary, dram, in_all = str(report).splitlines()[1:4]
    (memory,) = [view for view in report.memories if view.allocated]
    size = format_bytes(memory.allocated * memory.num_banks)
    assert f" tensors, {size}, of which " in summary
    assert str(memory.allocated) in dram
    assert f"in all {size} of " in in_all
    wide = sum(each.spec.data_bytes for each in report.tensors)
    assert f"of which {format_bytes(memory.allocated * memory.num_banks - wide)} are padding" in summary


def test_what_a_cache_leaves_out_is_said_with_its_size(tmp_path):
    source = write_model(tmp_path / "Llama-3.2-1B", weights={"score.weight": numbers(2, 256)})
    assert "score.weight" in tw.fit(source, machine="N300").notes[0]
    assert "note      unused: score.weight: " in invoke("fit", str(source), "--for", "N300").stdout


def test_machines_are_completed():
    for verb in ("fit", "prepare"):
        (option,) = [each for each in program.get_command(None, verb).params if each.name == "machine"]
        assert [each.value for each in option.type.shell_complete(None, option, "p15")] == ["P150", "P150x4", "P150x8"]


@pytest.mark.parametrize(
    ("name", "machine"),
    [("T3000", "T3K"), ("t3k", "T3K"), ("QuietBox", "T3K"), ("LOUDBOX", "T3K"), ("galaxy", "TG"),
     ("Blackhole Galaxy", "BHGLX"), ("blackhole-quietbox", "P150x4")],
)  # fmt: skip
def test_machines_have_the_names_that_people_use(name, machine):
    assert Machine.of(name, Recipe.load()).name == machine


def test_the_nearest_machine_is_named(tmp_path):
    with pytest.raises(tw.FormatError, match="unknown machine 'T3300'; did you mean 'T3000'"):
        Machine.of("T3300", Recipe.load())
    with pytest.raises(tw.FormatError, match="unknown machine 'abacus'; recipe tt_transformers has N150, N300"):
        Machine.of("abacus", Recipe.load())


def test_a_cache_holds_what_its_plan_said(tmp_path):
    write_sample_llama(tmp_path / "Llama-3.2-1B-Instruct")
    planned = tw.fit(tmp_path / "Llama-3.2-1B-Instruct", machine="N300")
    report = tw.prepare(tmp_path / "Llama-3.2-1B-Instruct", tmp_path / "cache", "N300")
    cached = tw.fit(report.out, "n300")
    assert cached.mesh == planned.mesh == (1, 2)
    sizes = [sorted(each.total_bytes for each in found.tensors) for found in (planned, cached)]
    assert sizes[0] == sizes[1]
    assert tw.verify(tmp_path / "cache", tmp_path / "Llama-3.2-1B-Instruct")
    (note,) = tw.verify(tmp_path / "cache").notes
    assert note == f"checked {report.out}, the only conversion below {tmp_path / 'cache'}"


def test_what_cannot_be_asked(tmp_path):
    with pytest.raises(tw.FormatError, match="cannot be given here"):
        tw.fit(tw.TensorSpec((4, 4)), "n150", dtype="float32")
    for mesh, name in (([1, 2], "a"), ([1, 4], "b")):
        tw.convert({name: np.zeros((64, 64), np.float32)}, tmp_path / name, mesh=mesh, cut=0)
        (tmp_path / name / f"{name}.tensorbin").rename(tmp_path / f"{name}.tensorbin")
        (tmp_path / name / "tilewright.json").unlink()
    with pytest.raises(tw.LayoutError, match=r"a is on a mesh of \[1, 2\], b on one of \[1, 4\]"):
        tw.fit(tmp_path, "n150")


def test_the_weights_of_a_model_alone_never_fit(tmp_path):
    source = write_model(tmp_path / "Llama-3.2-1B")
    for said in (str(tw.fit(source, "n150")), invoke("fit", str(source)).stdout):
        assert said.startswith("enough space on wormhole_n150, weights only: KV cache and activations are not")
    (source / "config.json").unlink()
    assert str(tw.fit(source, "n150")).startswith("fits wormhole_n150")


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    large_checkpoint(tmp_path / "Llama-3.1-8B-Instruct", 32)

    def ask(*arguments):
        done = invoke(*arguments)
        return done.exit_code, done.stdout + done.stderr

    status, said = ask("fit", "Llama-3.1-8B-Instruct", "--for", "N300")
    assert status == 0
    assert said.startswith("fits N300 (2 devices) with 1 user: ")
    assert "vision and sound are not counted: they share the" in " ".join(said.split())
    assert all(len(line) <= 80 for line in said.splitlines())
    status, said = ask("fit", "Llama-3.1-8B-Instruct")
    assert status == 1
    assert all(len(line) <= 80 for line in said.splitlines())
    assert "alternatives for all tensors together:" in said
    status, said = ask("prepare", "Llama-3.1-8B-Instruct", "--for", "N150", "--dry-run")
    assert status == 0
    assert "enough space on wormhole_n150, weights only: KV cache and" in said
    assert "fits" not in said
    data = json.loads(ask("prepare", "Llama-3.1-8B-Instruct", "--for", "N150", "--dry-run", "--json")[1])
    assert (data["fit"]["fits"], data["fit"]["scope"][:12], data["fit"]["notes"]) == (True, "weights only", [])
    assert len(data["fit"]["tensors"]) == len(data["tensors"])
    for arguments, message in (
        (["Llama-3.1-8B-Instruct", "--for", "N300", "--dtype", "float32"], "--dtype has no effect on a model"),
        (["Llama-3.1-8B-Instruct", "--for", "N3000"], "unknown machine 'N3000'"),
        (["Llama-3.1-8B-Instruct", "4x4", "--for", "N300"], "--for or --machines takes one checkpoint"),
        (["4x4", "--optimizations", "accuracy"], "--optimizations has no effect without --for"),
    ):
        status, said = ask("fit", *arguments)
        assert status == 2
        assert message in said

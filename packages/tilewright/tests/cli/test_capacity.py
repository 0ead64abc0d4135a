# SPDX-License-Identifier: Apache-2.0
"""`tilewright fit MODEL --for MACHINE`: models with their users."""

import json

import pytest

CONFIG = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072,
}  # fmt: skip


@pytest.fixture
def model(tmp_path):
    (tmp_path / "Llama-3.1-8B").mkdir()
    (tmp_path / "Llama-3.1-8B" / "config.json").write_text(json.dumps(CONFIG))
    return "Llama-3.1-8B/config.json"


def test_the_verdict_says_what_is_counted_and_what_is_not(run, model):
    said = run("fit", model, "--for", "n150", "--users", "32", "--context", "8192").out
    assert said.startswith("fits N150 with 32 users: ")
    for words in ("recipe tt_transformers", "KV cache", "rotary", "a region of 50000000 bytes", "are not counted"):
        assert words in said
    data = run("fit", model, "--for", "N150", "--users", "32", "--json").json
    assert data["fits"]
    assert sum(data["by_kind"].values()) == data["used"] + data["by_kind"]["trace"]
    assert {each["kind"] for each in data["demands"]} == {"weights", "KV cache", "tables"}


def test_what_does_not_fit_says_by_how_much_and_what_would(run, model):
    asked = ("fit", model, "--for", "N150", "--context", "131072")
    said = " ".join(run(*asked, status=1).out.split())
    data = json.loads(run(*asked, "--json", status=1).out)
    assert f"each bank lacks {data['shortfall']} bytes" in said
    assert "change KV cache in bfloat4_b:" in said
    assert data["changes"][-1].startswith("N300: ")
    assert run("fit", model, "--for", "N150", "--context", "131072", "--kv-dtype", "bfloat4_b").status == 0
    assert run("fit", model, "--for", "N150", "--context", "131072", "--trace-region", "0", status=1)


@pytest.mark.parametrize("what", ["users", "context", "precision"])
def test_the_largest_numbers_are_solved_for(run, model, what):
    data = json.loads(run("fit", model, "--for", "T3K", "--context", "32768", "--solve", what, "--json").out)
    assert data["fits"]
    assert data["solved"] == what
    if what == "users":
        assert data["users"] == data["largest_users"] == 41
    if what == "context":
        assert data["context"] == data["largest_context"] > 1_000_000
    if what == "precision":
        assert "precision accuracy" in run("fit", model, "--for", "T3K", "--solve", what).out


def test_the_stack_of_a_bank_is_drawn(run, model):
    said = run("fit", model, "--for", "N300", "--explain").out
    assert "what each bank holds" in said
    assert "DRAM of N300, each of 2 devices" in said


def test_all_machines_are_compared(run, model):
    said = run("fit", model, "--machines", "--context", "131072", "--users", "4").out.splitlines()
    assert said[0].split() == ["machine", "devices", "fits", "left", "users", "context"]
    assert "does not fit" in next(line for line in said if line.startswith("N150 "))
    assert next(line for line in said if line.startswith("P150x8")).split()[1:3] == ["8", "fits"]
    assert all(len(line) <= 80 for line in said)
    data = json.loads(run("fit", model, "--machines", "--json").out)
    assert data["TG"]["mesh"] == [8, 4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("4x4", "--users", "3"), "--users has no effect without --for"),
        (("MODEL", "--for", "N150", "--machines"), "--for or --machines takes one checkpoint"),
        (("MODEL", "--machines", "--solve", "users"), "--solve has no effect with --machines"),
        (("MODEL", "--for", "N150", "--cb", "64KiB"), "--cb has no effect on a model"),
        (("MODEL", "--for", "N150", "--users", "0"), "0 is not in the range x>=1"),
        (("MODEL", "--for", "N15"), "unknown machine 'N15'; did you mean 'N150'?"),
    ],
)
def test_wrong_requests_are_named(run, model, arguments, words):
    assert words in run("fit", *[model if word == "MODEL" else word for word in arguments], status=2).err


def test_a_config_alone_says_how_it_is_fitted(run, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert "its config.json is enough for tilewright fit --machines" in run("fit", tmp_path, status=3).err

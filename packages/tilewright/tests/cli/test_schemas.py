# SPDX-License-Identifier: Apache-2.0
"""The schemas of answers. `runner.invoke` compares every answer that a test of the command asks for with its schema."""

import json

import numpy as np
import pytest

from tilewright.cli.mcp import answer as answer_mcp
from tilewright.files import write_sample_llama
from tilewright.views import to_json

from ..json_schema import KEYWORDS, find_problems
from ..views.things import scenes
from .runner import check_answer, invoke, read_schema
from .test_program import COMMANDS

SERVERS = {"mcp"}  # which has answers of its own protocol


def nodes(value):
    """Yield every object in a JSON value."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(item)


@pytest.mark.parametrize("verb", sorted(set(COMMANDS) - SERVERS))
def test_every_verb_prints_the_schema_of_its_answers(verb):
    found = invoke(verb, "--json-schema")
    assert found.exit_code == 0, found.stderr
    schema = json.loads(found.stdout)
    name, _, version = schema["$id"].removeprefix("urn:tilewright:").rpartition(":")
    assert (name, schema["$schema"]) == (verb, "https://json-schema.org/draft/2020-12/schema")
    assert int(version) >= 1
    for node in nodes(schema):
        assert set(node.get("required", ())) <= set(node.get("properties", {})), node
        if "$ref" in node:
            assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]
    for option in schema["anyOf"]:
        assert set(option) <= KEYWORDS


def test_schemas_are_schemas():
    """As the reference implementation sees it, which notebooks need."""
    jsonschema = pytest.importorskip("jsonschema")
    for verb in sorted(set(COMMANDS) - SERVERS):
        jsonschema.Draft202012Validator.check_schema(read_schema(verb))
    answer = json.loads(invoke("fit", "64x64", "--json").stdout)
    jsonschema.validate(answer, read_schema("fit"))
    for tool in json.loads(answer_mcp('{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'))["result"]["tools"]:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])


@pytest.mark.parametrize("verb", sorted(SERVERS))
def test_what_does_not_answer_has_no_schema(verb):
    found = invoke(verb, "--json-schema")
    assert found.exit_code == 5
    assert f"{verb} has no schema of its answers" in found.stderr


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"fits": 1}, "$.fits is 1, expected boolean"),
        ({"tensors": None}, "$.tensors is None, expected array"),
        ({"more": 1}, "$ has 'more', which is not in the schema"),
        ({"fits": ...}, "$ has no 'fits'"),
    ],
)
def test_an_answer_is_compared_with_its_schema(change, problem):
    answer = json.loads(invoke("fit", "64x64", "--json").stdout) | change
    answer = {name: value for name, value in answer.items() if value is not ...}
    found = list(find_problems(answer, read_schema("fit")))
    assert (problem in found) if problem else not found
    if problem:
        with pytest.raises(AssertionError, match="new version"):
            check_answer("fit", answer)


@pytest.mark.parametrize(
    "words",
    [
        "inspect w.npy --tensor w --tile 0,0",
        "inspect w.npy --tensor w",
        "inspect bfloat8_b.tensorbin --tensor *",
        "diff inf.npy one.npy",
        "diff (4,8):(8,1) f32[4,8]{1,0}",
        "diff (4,8):(8,1) MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1)",
        "explain 64x64 --tile 2x2 --layout tile --at 3,3",
        "explain (4,8):(8@x,1@y) --at 1,2",
        "fit Llama-3.2-1B-Instruct --machines --users 999999",
        "reshard 512x512:shard=height:grid=8x1 shard=width:grid=8x1 --timeline",
        "reshard 512x512:shard=nd:shard-shape=64x64:grid=4x2 shard=nd:shard-shape=32x32:grid=8x8 --layout tile --reads",
    ],
)
def test_values_that_are_absent_or_rare_are_in_the_schema(run, files, words):
    np.save("inf.npy", np.full((4, 4), np.inf, np.float32))
    np.save("one.npy", np.ones((4, 4), np.float32))
    write_sample_llama("Llama-3.2-1B-Instruct")
    assert "error" not in run(*words.split(), "--json", status=None).json  # which was compared with the schema


def test_every_picture_is_in_the_schema():
    for picture in scenes().values():
        check_answer("show", json.loads(to_json(picture)))


def test_an_error_is_in_every_schema():
    error = json.loads(invoke("fit", "64x64", "--chip", "abacus", "--json").stdout)
    for verb in set(COMMANDS) - SERVERS:
        check_answer(verb, error)

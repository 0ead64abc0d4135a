# SPDX-License-Identifier: Apache-2.0
"""`tilewright mcp`: what clients of the Model Context Protocol ask, and what they hear."""

import json
import subprocess
import sys

import click
import numpy as np
import pytest

from tilewright.cli import FILE, FOLDER, mcp
from tilewright.cli.mcp import NEW, OLD

from .test_program import COMMANDS


def ask(method, write=False, **params):
    """Return the reply to one request."""
    return json.loads(mcp.answer(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}), write))


def use(tool, write=False, **arguments):
    """Return the result of a tool; names of options have underscores here."""
    words = {name.replace("_", "-"): value for name, value in arguments.items()}
    return ask("tools/call", write, name=tool, arguments=words)["result"]


def tools(write=False):
    return {tool["name"]: tool for tool in ask("tools/list", write)["result"]["tools"]}


@pytest.mark.parametrize(("asked", "answered"), [*[(each, each) for each in OLD], (NEW, OLD[0]), (None, OLD[0])])
def test_a_client_begins_with_a_revision(asked, answered):
    result = ask("initialize", protocolVersion=asked, capabilities={}, clientInfo={"name": "test"})["result"]
    assert result["protocolVersion"] == answered
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"]["name"] == "tilewright"


def test_requests_of_the_newer_protocol_name_their_revision():
    new = {"io.modelcontextprotocol/protocolVersion": NEW, "io.modelcontextprotocol/clientCapabilities": {}}
    found = ask("server/discover", _meta=new)["result"]
    assert found["supportedVersions"] == [NEW, *OLD]
    assert found["resultType"] == "complete"
    listed = ask("tools/list", _meta=new)["result"]
    assert listed["resultType"] == "complete"
    assert listed["ttlMs"] >= 0
    refused = ask("tools/list", _meta={**new, "io.modelcontextprotocol/protocolVersion": "1900-01-01"})["error"]
    assert (refused["code"], refused["data"]["requested"]) == (-32022, "1900-01-01")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", -32700),
        ('{"id": 1, "id": 2}', -32700),
        ("[" * 100_000, -32700),
        ("7", -32600),
        ("[]", -32600),
        ('{"id": 1, "method": "ping"}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 7}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/guess"}', -32601),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "explore"}}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": []}}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fit", "arguments": 7}}', -32602),
    ],
)
def test_what_is_not_of_the_protocol_is_an_error_of_it(message, code):
    assert json.loads(mcp.answer(message))["error"]["code"] == code


def test_notifications_and_replies_have_no_reply():
    assert mcp.answer('{"jsonrpc": "2.0", "method": "notifications/initialized"}') is None
    assert mcp.answer('{"jsonrpc": "2.0", "id": 3, "result": {}}') is None
    both = (
        '[{"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": "a", "method": "ping"}]'
    )
    assert json.loads(mcp.answer(both)) == [{"jsonrpc": "2.0", "id": "a", "result": {}}]


def test_a_tool_has_what_its_verb_has():
    assert set(tools(write=True)) == set(COMMANDS) - {"completion", "explore", "mcp"}
    for name, tool in tools(write=True).items():
        properties = tool["inputSchema"]["properties"]
        shown = [each for each in COMMANDS[name].params if each.expose_value and not getattr(each, "hidden", False)]
        assert len(properties) == len(shown)
        assert all(each["description"] for each in properties.values())
        for each in shown:
            if isinstance(each, click.Argument) and each.required:
                assert each.name in tool["inputSchema"]["required"]
    explain = tools()["explain"]["inputSchema"]
    assert explain["required"] == ["what"]
    assert explain["properties"]["bit"] | {"description": ""} == {
        "type": "integer", "minimum": 0, "maximum": 7, "description": "",
    }  # fmt: skip
    assert explain["properties"]["orientation"]["enum"] == ["row_major", "col_major"]
    assert explain["properties"]["transpose-tile"]["type"] == "boolean"


def test_a_tool_answers_as_its_verb_does(run):
    found = use("explain", what="4x60x90", dtype="bfloat8_b", shard="block", grid="8x8", at="2,33,17")
    said = run("explain", "4x60x90", "--dtype=bfloat8_b", "--shard=block", "--grid=8x8", "--at=2,33,17", "--json")
    assert found["structuredContent"] == said.json
    assert json.loads(found["content"][0]["text"]) == said.json
    assert not found["isError"]


def test_no_is_an_answer(run):
    found = use("fit", tensors=["99999x99999"], buffer="l1")
    assert not found["isError"]
    assert found["structuredContent"]["fits"] is False
    assert found["_meta"] == {"tilewright/exit_status": 1}


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("inspect", {"file": "none.npy"}, "none.npy: no such file"),
        ("inspect", {"fil": "none.npy"}, "did you mean 'file'?"),
        ("explain", {}, "explain needs the argument 'what'"),
        ("explain", {"what": "4x4", "bit": True}, "expected a text or a number as 'bit'"),
        ("explain", {"what": "4x4", "transpose-tile": "yes"}, "expected true or false"),
        ("explain", {"what": "4x4", "chip": "abacus"}, "unknown chip"),
        ("explain", {"what": "--help"}, "is not a shape"),
        ("check", {"files": ["a\0b"]}, "expected texts or numbers"),
    ],
)
def test_an_error_says_what_the_command_says(run, tool, arguments, words):
    found = ask("tools/call", name=tool, arguments=arguments)["result"]
    assert found["isError"]
    assert words in found["content"][0]["text"]


def test_nothing_is_written_or_run_unless_asked(run, files, tmp_path):
    before = sorted(tmp_path.iterdir())
    picture = use("show", things=["4x4"], output="x.svg")
    refused = [
        picture,
        use("convert", paths=["w.npy", "out"]),
        use("convert", paths=["w.npy", "out"], dry_run=False),
        use("prepare", paths=["w.npy"], **{"for": "N150"}),
        use("stream", compute="copy", paths=["w.npy", "b.npy"]),
        use("match", a="w.npy", b="w.npy", out="rules.toml"),
        use("diff", a="w.npy", b="w.npy", show="x.svg"),
    ]
    assert all(each["isError"] and "mcp --write" in each["content"][0]["text"] for each in refused)
    assert "stream" not in tools()
    assert "output" not in tools()["show"]["inputSchema"]["properties"]
    assert not use("convert", paths=["w.npy", "out"], dry_run=True)["isError"]
    assert sorted(tmp_path.iterdir()) == before
    assert not use("show", write=True, things=["4x4"], output="x.svg")["isError"]
    written = use("convert", write=True, paths=["w.npy", "out"], dtype="bfloat8_b")
    assert written["structuredContent"]["event"] == "report"
    assert {"out", "x.svg"} <= {path.name for path in tmp_path.iterdir()}


def test_no_option_of_a_reading_tool_names_a_file_that_is_written(run, files, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    asked = 0
    for name, tool in tools().items():
        properties = tool["inputSchema"]["properties"]
        for option, schema in properties.items():
            if "dry-run" not in properties and schema["type"] in ("string", "array") and "enum" not in schema:
                required = tool["inputSchema"]["required"]
                for subject, value in (("4x4", "new.html"), ("w.npy", "new.svg"), ("(4,8):(8,1)", "new")):
                    arguments = {
                        word: [subject] if word in ("things", "tensors", "files") else subject for word in required
                    }
                    arguments[option] = [value] if schema["type"] == "array" else value
                    assert ask("tools/call", name=name, arguments=arguments)["result"]["content"]
                    asked += 1
    assert asked > 100
    assert sorted(tmp_path.rglob("*")) == before


def test_every_path_that_is_an_option_is_one_that_is_written():
    """Or else a new option could write a file, and no one would have said so."""
    for command in COMMANDS.values():
        for each in command.params:
            is_input = (command.name, each.name) == ("match", "examples")
            if isinstance(each, click.Option) and isinstance(each.type, click.Path) and not is_input:
                assert each.type in (FILE, FOLDER), f"{command.name} {each.opts}"


def test_what_only_reads_is_called_so():
    hints = {name: tool["annotations"]["readOnlyHint"] for name, tool in tools().items()}
    assert all(hints.values())
    allowed = {name: tool["annotations"]["readOnlyHint"] for name, tool in tools(write=True).items()}
    assert not {name for name in ("convert", "prepare", "stream", "show", "diff") if allowed[name]}
    assert allowed["fit"]
    assert allowed["translate"]


def test_the_command_speaks_over_standard_streams(start, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 4), np.float32))
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": OLD[0]}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *[
            {"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
            for key, tool, arguments in (
                (2, "inspect", {"file": "a.npy"}),
                (3, "inspect", {"file": "b.npy"}),
                (4, "explain", {"what": "-"}),
            )
        ],
        {"jsonrpc": "2.0", "id": 5, "method": "ping"},
    ]
    server = start("mcp", stdin=-1)
    out, err = server.communicate("".join(json.dumps(each) + "\n" for each in requests), timeout=60)
    replies = [json.loads(line) for line in out.splitlines()]
    assert [each["id"] for each in replies] == [1, 2, 3, 4, 5]
    assert replies[1]["result"]["structuredContent"]["tensors"][0]["name"] == "a"
    assert replies[2]["result"]["isError"]
    assert "standard input is empty" in replies[3]["result"]["content"][0]["text"]
    assert "b.npy" in err
    assert server.returncode == 0


def test_what_a_program_prints_is_no_reply(start, tmp_path):
    """A verb that writes to the file descriptor of standard output itself does not disturb the protocol."""
    code = (
        "import os; from tilewright.cli import main, program; "
        "verb = program.get_command(None, 'doctor'); before = verb.callback; "
        "verb.callback = lambda *a, **k: (os.write(1, b'noise\\n'), before(*a, **k))[1]; main(['mcp'])"
    )
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "doctor"}}
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(request) + "\n", capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["id"] == 1
    assert "noise" in done.stderr

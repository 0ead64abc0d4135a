# SPDX-License-Identifier: Apache-2.0
"""`tilewright mcp` and the client of the protocol's own SDK, in both of its eras: it knows what a server may say."""

import asyncio
import json
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright.cli.mcp import NEW, OLD

mcp = pytest.importorskip("mcp", reason="the client is not installed")
anyio = pytest.importorskip("anyio")
pytestmark = pytest.mark.parametrize(("mode", "revision"), [("auto", NEW), ("legacy", OLD[0])])


@pytest.fixture
def talk(mode, revision, tmp_path, monkeypatch):
    """Return a function that runs a conversation with a server of its own."""
    monkeypatch.chdir(tmp_path)

    def run(conversation, *options):
        async def connect():
            server = mcp.StdioServerParameters(
                command=sys.executable, args=["-m", "tilewright", "mcp", *options], cwd=tmp_path
            )
            async with mcp.Client(server, mode=mode) as client:
                assert client.protocol_version == revision
                return await conversation(client)

        return asyncio.run(asyncio.wait_for(connect(), 120))

    return run


def test_tools_are_listed_and_called(talk):
    async def conversation(client):
        listed = (await client.list_tools()).tools
        assert {"explain", "fit", "convert"} <= {tool.name for tool in listed}
        found = await client.call_tool("explain", {"what": "4x60x90", "at": "2,33,17", "dtype": "bfp8"})
        assert not found.is_error
        assert found.structured_content == json.loads(found.content[0].text)
        refused = await client.call_tool("fit", {"tensors": ["99999x99999"], "buffer": "l1"})
        assert not refused.is_error
        assert refused.structured_content["fits"] is False
        return found.structured_content["coordinate"]

    assert talk(conversation) == [2, 33, 17]


def test_wrong_requests_are_answered_in_the_words_of_tools(talk):
    async def conversation(client):
        said = []
        for tool, arguments in (
            ("explain", {"what": "64x64", "at": [3, 3]}),
            ("explain", {"what": "64x64", "att": "3,3"}),
            ("explain", {"at": "3,3"}),
            ("fit", {}),
            ("inspect", {"file": "none.npy"}),
        ):
            found = await client.call_tool(tool, arguments)
            assert found.is_error
            said.append(found.content[0].text)
        with pytest.raises(mcp.MCPError, match="Unknown tool: nonsense"):
            await client.call_tool("nonsense", {})
        assert not (await client.call_tool("doctor", {})).is_error  # and the server goes on
        return said

    at, att, what, tensors, file = talk(conversation)
    assert "expected a text or a number as 'at'" in at
    assert "did you mean 'at'?" in att
    assert what == "explain needs the argument 'what'"
    assert tensors == "fit needs the argument 'tensors'"
    assert "none.npy: no such file" in file


def test_calls_at_once_and_cancelled_ones_keep_their_answers(talk, tmp_path):
    for name in "ab":
        np.save(f"{name}.npy", np.random.default_rng(0).standard_normal((1024, 1024)))

    async def conversation(client):
        async def offset(row):
            found = await client.call_tool("explain", {"what": "(64,8):(8,1)", "at": f"{row},3"})
            return found.structured_content["offset"]

        assert await asyncio.gather(*map(offset, range(20))) == [8 * row + 3 for row in range(20)]
        with anyio.move_on_after(0.01):
            await client.call_tool("diff", {"a": "a.npy", "b": "b.npy"})
        assert await offset(7) == 59
        big = await client.call_tool("show", {"things": ["(512,512):(512,1)"]})
        return len(big.content[0].text)

    assert talk(conversation) > 200_000


def test_files_are_written_only_if_asked(talk, tmp_path):
    np.save("w.npy", np.ones((64, 64), np.float32))

    async def conversation(client):
        found = await client.call_tool("convert", {"paths": ["w.npy", "tiles"], "dtype": "bfp8"})
        return found.content[0].text

    assert "start tilewright mcp --write" in talk(conversation)
    assert not (tmp_path / "tiles").exists()
    assert json.loads(talk(conversation, "--write"))["event"] == "report"
    assert tw.verify("tiles")

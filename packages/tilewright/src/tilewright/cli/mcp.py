# SPDX-License-Identifier: Apache-2.0
"""`tilewright mcp`: the verbs as tools of the Model Context Protocol, one JSON message per line of standard streams."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from inspect import cleandoc
from typing import Any

import click

from .._json import parse_json
from .._text import suggest
from ..errors import FileFormatError
from ..version import __version__
from .console import CommandError, ExitCode, to_json
from .options import FILE, FOLDER
from .program import Verb, program, verb

NEW, OLD = "2026-07-28", ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions of the protocol: the one whose requests each name it, and those that begin with `initialize`."""

_NAMED = "io.modelcontextprotocol/protocolVersion"  # where a request names its revision
_NO_TOOLS = frozenset(("completion", "explore", "mcp"))  # which serve people, or until they are stopped
_ABLE: dict[str, Any] = {"capabilities": {"tools": {}}}
_SELF = {"name": "tilewright", "version": __version__}
_CACHED = {"ttlMs": 3_600_000, "cacheScope": "private"}


@verb("mcp", speaks=True)
@click.option("--write", is_flag=True, help="Also offer tools that write files or run programs.")
def command(write: bool) -> None:
    """Serve the verbs as tools of the Model Context Protocol, on standard input and output, until the input ends.

    \b
    {"mcpServers": {"tilewright": {"command": "tilewright", "args": ["mcp"]}}}

    A tool has the options of its verb, and answers what the verb prints with --json. It reads all files that you may
    read. Without --write, it writes none.
    """
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as replies:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # verbs, and programs that they start, do not read requests
        os.dup2(2, 1)  # and what they print is not a reply
        for line in requests:
            if line.strip() and (reply := answer(line, write)) is not None:
                replies.write(f"{reply}\n".encode())
                replies.flush()


class ProtocolError(Exception):
    """A request that is not of the protocol: its `code` in JSON-RPC, the message, and `data` for programs."""

    def __init__(self, code: int, message: str, **data: Any) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({"data": data} if data else {})


def answer(line: bytes | str, write: bool = False) -> str | None:
    """Return the reply to a message, as one line of JSON; None to a notification.

    Args:
        line: a message of JSON-RPC 2.0, or a list of them.
        write: whether tools may write files and run programs.

    >>> answer('{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
    '{"jsonrpc": "2.0", "id": 1, "result": {}}'
    """
    try:
        message = parse_json(line, "the message")
    except FileFormatError as problem:
        return to_json({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": str(problem)}})
    if isinstance(message, list) and message:
        replies = [reply for request in message if (reply := _answer_one(request, write)) is not None]
        return to_json(replies) if replies else None
    reply = _answer_one(message, write)
    return None if reply is None else to_json(reply)


def _answer_one(message: Any, write: bool) -> dict[str, Any] | None:
    is_object = isinstance(message, dict)
    if is_object and "method" not in message and ("result" in message or "error" in message):
        return None  # a reply, though nothing was asked
    key = message.get("id") if is_object else None
    key = key if isinstance(key, (str, int)) else None
    try:
        if not is_object or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
            raise ProtocolError(-32600, 'expected an object with "jsonrpc": "2.0" and a method')
        if "id" not in message:
            return None  # a notification; a call that is cancelled runs to its end
        return {"jsonrpc": "2.0", "id": key, "result": _call(message["method"], message.get("params", {}), write)}
    except ProtocolError as problem:
        return {"jsonrpc": "2.0", "id": key, "error": problem.error}


def _call(method: str, params: Any, write: bool) -> dict[str, Any]:
    """Return the result of a method."""
    meta = params.get("_meta", {}) if isinstance(params, dict) else None
    if not isinstance(meta, dict):
        raise ProtocolError(-32602, "expected an object as params")
    revision = meta.get(_NAMED)
    if revision not in (None, NEW, *OLD):
        raise ProtocolError(-32022, "Unsupported protocol version", supported=[NEW, *OLD], requested=revision)
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {"protocolVersion": asked if asked in OLD else OLD[0], **_ABLE, "serverInfo": _SELF}
    if method == "server/discover":
        result = {"supportedVersions": [NEW, *OLD], **_ABLE, **_CACHED}
        result |= {"_meta": {"io.modelcontextprotocol/serverInfo": _SELF}}
    elif method == "tools/list":
        result = {"tools": [describe_tool(tool, write) for tool in _list_verbs(write)], **_CACHED}
    elif method == "tools/call":
        result = _call_tool(params.get("name"), params.get("arguments", {}), write)
    elif method == "ping":
        result = {}
    else:
        raise ProtocolError(-32601, f"Method not found: {method}")
    return result | ({"resultType": "complete"} if revision == NEW else {})


def _list_verbs(write: bool) -> Iterator[Verb]:
    """Yield the installed verbs that are tools; verbs that only write are included if that is allowed."""
    context = click.Context(program)
    for name in program.list_commands(context):
        try:
            tool = None if name in _NO_TOOLS else program.get_command(context, name)
        except CommandError:  # of a companion that is not installed
            continue
        if isinstance(tool, Verb) and (write or tool.writes_unless != ()):
            yield tool


def describe_tool(tool: Verb, write: bool = False) -> dict[str, Any]:
    """Return a verb, the `tool`, as the protocol describes it; with `write`, with the options that write files.

    >>> from tilewright.cli.show import command
    >>> describe_tool(command)["inputSchema"]["properties"]["at"]["type"]
    'string'
    """
    parameters = {name: parameter for name, parameter in _parameters(tool).items() if write or not _writes(parameter)}
    required = [name for name, parameter in parameters.items() if parameter.required]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _describe(parameter) for name, parameter in parameters.items()},
    }
    schema |= {"required": required, "additionalProperties": False}
    text = cleandoc(tool.help or "").replace("\b\n", "")
    is_reading = tool.writes_unless is None and not any(map(_writes, parameters.values()))
    annotations = {"readOnlyHint": is_reading or not write}
    return {"name": tool.name, "description": text, "inputSchema": schema, "annotations": annotations}


def _parameters(tool: Verb) -> dict[str, click.Parameter]:
    """Return the arguments and options of a verb, by the names that they have in a tool."""
    return {
        max(parameter.opts, key=len).lstrip("-"): parameter
        for parameter in tool.params
        if parameter.expose_value and not getattr(parameter, "hidden", False)
    }


def _writes(parameter: click.Parameter) -> bool:
    return parameter.type in (FILE, FOLDER)


def _describe(parameter: click.Parameter) -> dict[str, Any]:
    """Return the JSON schema of a parameter's values."""
    kind = parameter.type
    schema: dict[str, Any] = {"type": "string"}
    if isinstance(parameter, click.Option) and parameter.is_flag:
        schema = {"type": "boolean"}
    elif isinstance(kind, click.Choice):
        schema |= {"enum": list(kind.choices)}
    elif isinstance(kind, (click.types.IntParamType, click.types.FloatParamType)):
        schema = {"type": "integer" if isinstance(kind, click.types.IntParamType) else "number"}
        bounds = {"minimum": getattr(kind, "min", None), "maximum": getattr(kind, "max", None)}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
    if parameter.multiple or parameter.nargs == -1:
        schema = {"type": "array", "items": schema}
    about = [getattr(parameter, "help", None), parameter.metavar and f"({parameter.metavar})"]
    return schema | {"description": " ".join(filter(None, about)) or parameter.human_readable_name}


def _call_tool(name: Any, arguments: Any, write: bool) -> dict[str, Any]:
    """Return the result of a tool: the answer of its verb, or the error in words."""
    known = {str(tool.name): tool for tool in _list_verbs(True)}
    if not isinstance(name, str) or name not in known:
        raise ProtocolError(-32602, f"Unknown tool: {name}")
    if not isinstance(arguments, dict):
        raise ProtocolError(-32602, "expected an object as arguments")
    try:
        words = _spell_words(known[name], arguments, write)
    except click.UsageError as problem:
        return {"content": [{"type": "text", "text": problem.message}], "isError": True}
    with redirect_stdout(io.StringIO()) as printed:
        try:
            program.main([name, "--json", *words])
        except SystemExit as end:
            status = int(end.code or 0)
    if status == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    line = (printed.getvalue().splitlines() or ["null"])[-1]  # after events, the report
    data = json.loads(line)
    is_error = status > ExitCode.NO
    result = {"content": [{"type": "text", "text": data["error"] if is_error else line}], "isError": is_error}
    result |= {"_meta": {"tilewright/exit_status": status}}
    return result | ({"structuredContent": data} if isinstance(data, dict) and not is_error else {})


def _spell_words(tool: Verb, arguments: Mapping[str, Any], write: bool) -> list[str]:
    """Return the arguments of a tool as words of the command line; raise `UsageError` for unknown ones.

    Nothing that writes is spelled unless `write` allows it.
    """
    parameters = _parameters(tool)
    settings = {name: value for name, value in arguments.items() if value is not None}
    writing = [name for name in settings if name in parameters and _writes(parameters[name])]
    if tool.writes_unless is not None and not any(settings.get(name) for name in tool.writes_unless):
        writing.append(str(tool.name))
    if writing and not write:
        spared = [name for name in tool.writes_unless or () if name not in settings]
        other = f", or give one of {', '.join(spared)}" if str(tool.name) in writing and spared else ""
        raise click.UsageError(
            f"{writing[-1]} writes files or runs a program; start tilewright mcp --write to allow it{other}"
        )
    options, words = [], []
    for name in settings.keys() - parameters.keys():
        raise click.UsageError(f"{tool.name} has no argument {name!r}; {suggest(name, parameters)}")
    for name in [name for name, parameter in parameters.items() if parameter.required and name not in settings]:
        raise click.UsageError(f"{tool.name} needs the argument {name!r}")
    for name in filter(settings.__contains__, parameters):
        parameter, value = parameters[name], settings[name]
        is_flag = isinstance(parameter, click.Option) and parameter.is_flag
        is_list = parameter.multiple or parameter.nargs == -1
        values = value if is_list and isinstance(value, list) else [value]
        kinds = {bool} if is_flag else {str, int, float}
        if not {type(item) for item in values} <= kinds or "\0" in "".join(map(str, values)):
            expected = "true or false" if is_flag else "texts or numbers" if is_list else "a text or a number"
            raise click.UsageError(f"expected {expected} as {name!r}, got {json.dumps(value)[:80]}")
        if isinstance(parameter, click.Argument):
            words += [str(item) for item in values]
        elif is_flag:
            options += [parameter.opts[0]] if value else parameter.secondary_opts[:1]
        else:
            option = max(parameter.opts, key=len)
            options += [f"{option}={item}" if option.startswith("--") else f"{option}{item}" for item in values]
    return [*options, "--", *words]

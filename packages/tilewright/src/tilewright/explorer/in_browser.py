# SPDX-License-Identifier: Apache-2.0
"""The engine of the page in a browser: the worker of the playground calls it, in Pyodide."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path

from .answers import Reply, answer_query, encode_json, handle_errors
from .file_tab import describe_file


def answer_fields(path: str, fields: str) -> tuple[int, str]:
    """Return the status and the body of the answer to the question at a `path`; `fields` are a form's fields, as JSON.

    >>> answer_fields("answer/reshard", '{"shape": "4xfoo"}')[0]
    422
    """
    reply = answer_query(path, json.loads(fields))
    return int(reply.status), reply.body


def answer_file(path: str) -> tuple[int, str]:
    """Return the status and the body of the answer about the file at a `path`.

    >>> answer_file("missing.npy")[0]
    422
    """
    reply = handle_errors(lambda: Reply(HTTPStatus.OK, encode_json(describe_file(Path(path)))))
    return int(reply.status), reply.body

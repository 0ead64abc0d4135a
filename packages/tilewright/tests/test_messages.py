# SPDX-License-Identifier: Apache-2.0
"""Every message that a user can see, in one file that a reviewer can read in one go: messages.txt.

python -m tests.test_messages     # writes the file anew, after a message changed
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.sources import parse_source

SOURCES = Path(__file__).parents[1] / "src" / "tilewright"
COMPANIONS = sorted(Path(__file__).parents[2].glob("tilewright-*/src"))
RECORD = Path(__file__).with_name("messages.txt")

SPEAKING = {
    *(
        "fail",
        "CommandError",
        "UsageError",
        "BadParameter",
        "Violation",
        "broken_rule",
        "FieldError",
        "RequestRefusedError",
        "Fact",
        "warn",
    )
}
"""Calls whose text is shown to people, beside what is raised."""


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every message in a module: of errors, violations, facts and help."""
    for function in ast.walk(tree):
        for node in ast.iter_child_nodes(function):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for argument in node.exc.args:
                    yield from _texts(argument, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in SPEAKING:
            for argument in (*node.args, *[keyword.value for keyword in node.keywords]):
                yield from _texts(argument, None)
        if isinstance(node, ast.keyword) and node.arg == "help":
            yield from _texts(node.value, None)


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _texts(node: ast.AST, tree: ast.AST | None) -> Iterator[tuple[int, str]]:
    """Yield the text of an expression; that of a name is what is assigned to it in the module."""
    if isinstance(node, ast.Name) and tree is not None:
        for other in ast.walk(tree):
            if isinstance(other, ast.Assign) and any(ast.dump(t) == _stored(node) for t in other.targets):
                yield from _texts(other.value, None)
    text = _text(node)
    if re.search(r"[A-Za-z]{2,}.* ", re.sub(r"\{[^{}]*\}", "", text)):
        yield node.lineno, text


def _stored(name: ast.Name) -> str:
    return ast.dump(ast.Name(name.id, ast.Store()))


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _text(part) if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"
            for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.IfExp):
        return " | ".join(text for text in (_text(node.body), _text(node.orelse)) if " " in text)
    return ""


def record() -> str:
    """Return all messages, module by module."""
    parts = []
    files = [(path, root) for root in (SOURCES, *COMPANIONS) for path in sorted(root.rglob("*.py"))]
    for path, root in files:
        found = dict.fromkeys(text for _, text in sorted(messages(parse_source(path))))
        if found:
            parts.append(f"{path.relative_to(root).as_posix()}\n" + "".join(f"    {_line(text)}\n" for text in found))
    return "\n".join(parts)


def _line(text: str) -> str:
    return " ".join(text.split())


def test_messages_are_recorded():
    assert RECORD.read_text(encoding="utf-8") == record(), "run this file to record the messages, and read the change"


def test_most_messages_are_found():
    assert len(re.findall("^    ", record(), re.MULTILINE)) > 700


if __name__ == "__main__":
    RECORD.write_text(record(), encoding="utf-8")

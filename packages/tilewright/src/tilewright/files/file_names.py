# SPDX-License-Identifier: Apache-2.0
"""Names of tensors and files: a tensor's name makes one safe file name, which can be read back.

In the cache of the Hugging Face hub a model's snapshots are links to its blobs:

models--ORG--NAME/
    blobs/HASH              the files
    refs/main               the name of a snapshot
    snapshots/REVISION/     links to ../../blobs, under the names of the files
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from urllib.parse import quote, unquote

from ..errors import FileFormatError

_MODEL = re.compile(r"(models|datasets|spaces)--.+")
_SNAPSHOTS = "snapshots"
_MAX_REFERENCE_BYTES = 1000  # of refs/main, which is the name of a snapshot


def link_root(folder: Path) -> Path:
    """Return the directory that links of a folder may point into: the folder, or a snapshot's model directory.

    >>> link_root(Path("/hub/models--a--b/snapshots/12ab/sub")).name, link_root(Path("/hub/models--a--b/other")).name
    ('models--a--b', 'other')
    """
    whole = folder.resolve()
    for parent in whole.parents:
        if _MODEL.fullmatch(parent.name) and whole.relative_to(parent).parts[0] == _SNAPSHOTS:
            return parent
    return whole


def find_checkpoint_folder(folder: Path) -> Path:
    """Return the folder with the files of a checkpoint: for a model directory of the hub, its snapshot.

    >>> find_checkpoint_folder(Path("checkpoint"))
    PosixPath('checkpoint')
    """
    if not _MODEL.fullmatch(folder.resolve().name) or not (folder / _SNAPSHOTS).is_dir():
        return folder
    result = sorted([each for each in (folder / _SNAPSHOTS).iterdir() if each.is_dir()])
    main = folder / "refs" / "main"
    if main.is_file() and main.stat().st_size < _MAX_REFERENCE_BYTES:
        named = main.read_text(encoding="utf-8", errors="replace").strip()
        result = [each for each in result if each.name == named] or result
    if len(result) != 1:
        raise FileFormatError(
            f"expected one snapshot in {folder}, got {len(result)}, and refs/main names none of them; give the folder"
            f" of one: {', '.join(each.name for each in result[:8]) or 'none, download the model again'}"
        )
    return result[0]


_MAX_NAME_BYTES = 200  # of a file name; a suffix and a temporary name must fit into 255
# Control characters, and characters that break lines or reverse the text after them.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ELSEWHERE = re.compile(r"(^|[/\\])\.\.([/\\]|$)|^[/\\]|^[A-Za-z]:[/\\]")  # names that lead out of a directory
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def validate_tensor_name(name: str) -> str:
    """Return a tensor's name; raise a `FileFormatError` if it could point outside of a directory.

    >>> validate_tensor_name("decoder/layer.0/kernel")
    'decoder/layer.0/kernel'
    >>> try:
    ...     validate_tensor_name("../../secret")
    ... except FileFormatError as problem:
    ...     print(problem)
    tensor name '../../secret' points outside of its directory
    """
    if name.isascii() and name.isprintable() and not {"/", "\\", ":"}.intersection(name) and name != "..":
        return name  # nearly all of the very many that a checkpoint may have
    if _ELSEWHERE.search(name):
        raise FileFormatError(f"tensor name {name[:80]!r} points outside of its directory")
    if _UNSAFE.search(name):
        raise FileFormatError(f"tensor name {name[:80]!r} contains control characters")
    return name


def encode_file_name(name: str, all_capitals: bool = False) -> str:
    """Return the file name, without suffix, of a tensor: letters, digits, `_`, `-` and `.`; the rest as %XX.

    `all_capitals` also writes capitals as %XX, for names that differ only in case.

    >>> encode_file_name("encoder.layer.0.weight"), encode_file_name("a/b c"), encode_file_name(".hidden")
    ('encoder.layer.0.weight', 'a%2Fb%20c', '%2Ehidden')
    """
    text = quote(validate_tensor_name(name), safe="")
    text = text.replace("~", "%7E")
    if all_capitals:
        # not those of %XX themselves
        text = re.sub(r"%[0-9A-F]{2}|[A-Z]", lambda m: m[0] if len(m[0]) > 1 else f"%{ord(m[0]):02X}", text)
    if text[:1] in ("", ".", "-") or _RESERVED.match(text):
        text = f"%{ord(text[0]):02X}{text[1:]}" if text else "%"
    if len(text) > _MAX_NAME_BYTES:
        raise FileFormatError(
            f"tensor name {name[:40]!r}... makes a file name of {len(text)} bytes, more than {_MAX_NAME_BYTES}; write"
            " one .safetensors file instead"
        )
    return text


def decode_file_name(file: str) -> str:
    """Return the tensor name that a file name, without suffix, encodes.

    >>> decode_file_name("a%2Fb%20c"), decode_file_name("%2Ehidden"), decode_file_name("plain.name")
    ('a/b c', '.hidden', 'plain.name')
    """
    if file == "%":
        return ""
    try:
        return unquote(file, errors="strict")
    except UnicodeDecodeError:
        raise FileFormatError(f"file name {file!r} does not encode a tensor name") from None


def unique_file_names(names: list[str]) -> dict[str, str]:
    """Return a file name per tensor, unique also on case-insensitive file systems.

    >>> unique_file_names(["W", "w", "b"])
    {'W': '%57', 'w': 'w', 'b': 'b'}
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(encode_file_name(name).lower(), []).append(name)
    ambiguous = {name for group in groups.values() if len(group) > 1 for name in group}
    return {name: encode_file_name(name, name in ambiguous) for name in names}


def resolve_inside(folder: Path, name: str, follow_symlinks: bool = False) -> Path:
    """Return the path of a file in a directory; raise if its name or a link points outside.

    Links may point anywhere in the directory, and from a snapshot of the Hugging Face hub to the blobs of its model.
    `follow_symlinks` allows all links.

    >>> resolve_inside(Path("models"), "a.safetensors").name
    'a.safetensors'
    """
    if name != os.path.basename(name) or name in ("", ".", "..") or "\\" in name or "\0" in name:
        raise FileFormatError(f"file name {name[:80]!r} points outside of the directory {folder}")
    path = folder / name
    destination = path
    try:
        if stat.S_ISLNK(path.lstat().st_mode):
            destination = Path(os.path.realpath(path))
            path.stat()
    except FileNotFoundError:
        pass  # opening it raises
    except OSError as problem:  # a very long name, or a cycle of links
        raise FileFormatError(f"cannot open {name[:80]!r} in the directory {folder}: {problem.strerror}") from None
    if not follow_symlinks and destination is not path and not destination.is_relative_to(link_root(folder)):
        raise FileFormatError(
            f"{path} is a link that points outside of the directory, to {destination}; give the file itself, or allow"
            " such links with --follow-links (in Python, follow_symlinks=True)"
        )
    return path

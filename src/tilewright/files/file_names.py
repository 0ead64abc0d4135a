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
_MAX_BYTES = 1000  # of a reference, which is the name of a snapshot


def link_root(folder: Path) -> Path:
    """Return the directory that links of a folder may lead into: the folder, or for a snapshot the model's directory.

    >>> link_root(Path("/hub/models--a--b/snapshots/12ab/sub")).name, link_root(Path("/hub/models--a--b/other")).name
    ('models--a--b', 'other')
    """
    whole = folder.resolve()
    for parent in whole.parents:
        if _MODEL.fullmatch(parent.name) and whole.relative_to(parent).parts[0] == _SNAPSHOTS:
            return parent
    return whole


def find_checkpoint_folder(folder: Path) -> Path:
    """Return the folder that holds the files of a checkpoint: for a model's directory of the hub, its snapshot.

    >>> find_checkpoint_folder(Path("checkpoint"))
    PosixPath('checkpoint')
    """
    if not _MODEL.fullmatch(folder.resolve().name) or not (folder / _SNAPSHOTS).is_dir():
        return folder
    found = sorted([each for each in (folder / _SNAPSHOTS).iterdir() if each.is_dir()])
    main = folder / "refs" / "main"
    if main.is_file() and main.stat().st_size < _MAX_BYTES:
        named = main.read_text(encoding="utf-8", errors="replace").strip()
        found = [each for each in found if each.name == named] or found
    if len(found) != 1:
        raise FileFormatError(
            f"{folder} has {len(found)} snapshots, and refs/main names none of them; name the folder of one:"
            f" {', '.join(each.name for each in found[:8]) or 'there is none, so download the model again'}"
        )
    return found[0]


_MAX_BYTES = 200  # of a file name, so that a suffix and a temporary name still fit where 255 are allowed
# Terminals act on the first two ranges; the others break a line, or turn around what is shown after them.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def validate_tensor_name(name: str) -> str:
    """Return a tensor's name, or raise a `FileFormatError` if it is a way out of a directory rather than a name.

    >>> validate_tensor_name("decoder/layer.0/kernel")
    'decoder/layer.0/kernel'
    >>> try:
    ...     validate_tensor_name("../../secret")
    ... except FileFormatError as problem:
    ...     print(problem)
    the tensor name '../../secret' leads out of its directory; no tensor is called that
    """
    steps = re.split(r"[/\\]", name)
    if ".." in steps or name[:1] in ("/", "\\") or re.match(r"[A-Za-z]:[/\\]", name):
        raise FileFormatError(f"the tensor name {name[:80]!r} leads out of its directory; no tensor is called that")
    if _UNSAFE.search(name):
        raise FileFormatError(f"the tensor name {name[:80]!r} holds control characters; no tensor is called that")
    return name


def encode_file_name(name: str, all_capitals: bool = False) -> str:
    """Return the file name, without suffix, for a tensor: letters, digits, `_`, `-` and `.`; the rest as %XX.

    `all_capitals` writes capitals as %XX too, for names that differ in nothing else.

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
    if len(text) > _MAX_BYTES:
        raise FileFormatError(
            f"the tensor name {name[:40]!r}... makes a file name of {len(text)} bytes, and {_MAX_BYTES} are possible;"
            " write one .safetensors file instead"
        )
    return text


def decode_file_name(file: str) -> str:
    """Return the tensor's name that a file name, without suffix, was made from.

    >>> decode_file_name("a%2Fb%20c"), decode_file_name("%2Ehidden"), decode_file_name("plain.name")
    ('a/b c', '.hidden', 'plain.name')
    """
    if file == "%":
        return ""
    try:
        return unquote(file, errors="strict")
    except UnicodeDecodeError:
        raise FileFormatError(f"the file name {file!r} stands for no text") from None


def unique_file_names(names: list[str]) -> dict[str, str]:
    """Return the file name of each tensor, all different, also where a file system takes capitals for small letters.

    >>> unique_file_names(["W", "w", "b"])
    {'W': '%57', 'w': 'w', 'b': 'b'}
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(encode_file_name(name).lower(), []).append(name)
    crowded = {name for group in alike.values() if len(group) > 1 for name in group}
    return {name: encode_file_name(name, name in crowded) for name in names}


def resolve_inside(folder: Path, name: str, follow_symlinks: bool = False) -> Path:
    """Return the path of a file of a directory; a name that leads elsewhere, or a link that does, raises.

    Links may lead anywhere in the directory, and from a snapshot of the Hugging Face hub to the blobs of its model.

    >>> resolve_inside(Path("models"), "a.safetensors").name
    'a.safetensors'
    """
    if name != os.path.basename(name) or name in ("", ".", "..") or "\\" in name or "\0" in name:
        raise FileFormatError(f"the file name {name[:80]!r} leads out of the directory {folder}")
    path = folder / name
    leads_to = path
    try:
        if stat.S_ISLNK(path.lstat().st_mode):
            leads_to = Path(os.path.realpath(path))
            path.stat()
    except FileNotFoundError:
        pass  # whoever opens it says so
    except OSError as problem:  # a name of a thousand letters, or links that lead in a circle
        raise FileFormatError(f"{name[:80]!r} is no file in the directory {folder}: {problem.strerror}") from None
    if not follow_symlinks and leads_to is not path and not leads_to.is_relative_to(link_root(folder)):
        raise FileFormatError(
            f"{path} is a link that leads out of the directory, to {leads_to}; name the file itself, or follow such"
            " links with --follow-links (in Python, follow_symlinks=True)"
        )
    return path

# SPDX-License-Identifier: Apache-2.0
"""`parse`: a text is known by its form; the module that reads its notation is loaded on first use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import unescape
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .._text import spell_extents
from ..errors import FileFormatError, LayoutError
from ..layout import LayoutLike, Swizzle, product_each
from ..layout import parse as parse_own
from ..plugins import list_plugins, load_plugin
from .cute_texts import HAS_POINTER, PRINTED, parse_cute

if TYPE_CHECKING:
    from .any_text import ParsedText

MAX_TEXT = 1 << 20


_OWN = re.compile(r"\s*(?:[(\d_+@-]|S(?:w|W|_)?[<_]|\Z)")  # how texts of layouts, ours and CuTe's, begin


_CUTE_TYPE = re.compile(r"\s*(?:cute::|make_)?(?:Composed)?(?:Layout|Swizzle|layout)\s*[<(]")


_TTNN = re.compile(
    r"\s*(?:ttnn\.|tt::|(?:Tensor|TensorSpec|MemoryConfig|ShardSpec|NdShardSpec|Shape|Tile|CoreRange\w*|CoreCoord)\s*[({]"
    r"|Tile with|\{\[|\{\"|(?:BufferType|TensorMemoryLayout|ShardOrientation|Layout|DataType)[.:])"
)


_SHARDING = re.compile(
    r"\s*(?:(?:[a-z][\w.]*)?shardings?\s*[=:]\s*[\"{#N]"
    r"|\"?\{\s*(?:\{\s*)?(?:devices\s*=|replicated|maximal|manual|unknown|unreduced|mesh\s*\[)|#?sdy\."
    r"|(?:jax\.)?(?:sharding\.)?(?:(?:Named|GSPMD|SingleDevice)Sharding|(?:Abstract|Device)?Mesh|P(?:artitionSpec)?)\s*\("
    r"|(?:jax\.make|init_device)_mesh\s*\(|(?:DTensor(?:Spec)?|Spec)\s*\("
    r"|[\[(]\s*(?:(?:_?Strided)?Shard|Replicate|Partial|_?S)\s*\(|[\[(]\s*R\s*[\],)]|(?:Shard|Replicate)\s*\()"
)


# The notations, by name: the form of their texts, and the function that reads them, as "module.function".
# The first form that matches decides.
_READERS: dict[str, tuple[re.Pattern[str], str]] = {
    "tt-metal": (
        re.compile(r"(?s).{0,100000}?KERNEL_COMPILE_TIME_ARGS[\s=]+\d"),
        ".kernel_arguments.parse_kernel_arguments",
    ),
    "tt-mlir": (
        re.compile(r"(?s)\s*(?:#ttnn\.|(?:[#%\"]|tensor\b|ttnn\.|func\b|return\b).{0,100000}?#ttnn\.)ttnn_layout\b"),
        ".ttmlir.parse_mlir_layout",
    ),
    "triton": (
        re.compile(
            r"\s*(?:(?:#\w+\s*=\s*)?#(?:ttg|ttng|triton_gpu|triton_nvidia_gpu)\.|!(?:ttg|tt|triton_gpu)\.memdesc\b"
            r"|tensor\s*<\s*[\d?]|%(?![^\n]*\btpu\.)\w|(?:tt|ttg|ttng|triton_gpu)\.\w"
            r"|(?:[A-Za-z_]\w*[ \t]*(?::[ \t]*[A-Za-z_][\w.]*[ \t]*)?=\s*)?(?:[A-Za-z_]\w*\.)*"
            r"(?:Blocked|Slice|D[io]|NVMMA|AMD|S[wh]|Padded|Auto|Coal|TensorMemory|Part)\w*Layout"
            r"(?:\.with_identity_for)?\s*\()"
        ),
        ".triton.parse_triton_type",
    ),
    "memref": (re.compile(r"\s*(?:memref|strided)\s*<"), ".maps.parse_strided_memref"),
    "mlir": (
        re.compile(r"\s*(?:affine_map\s*<|\([\w\s,]*\)\s*(?:\[[\w\s,]*\]\s*)?->)"),
        ".maps.parse_index_expressions",
    ),
    "axe": (
        re.compile(
            r"\s*(?:\w+\s*=\s*)?(?:[A-Za-z_]\w*\.)*(?:TileLayout\s*\(|S\s*\[)"
            r"|\s*[(\[][^+]*\+\s*(?:\[|\d{1,19}\s*:)|\s*\[\s*(?:\(|\d+\s*:)"
        ),
        ".maps.parse_axe",
    ),
    "vpad": (re.compile(r"\s*(?:(?:#\w+\s*=\s*)?#?tpu\.vpad|%[^\n]*\btpu\.|\"?\d{1,2},\s*\{)"), ".tilings.parse_vpad"),
    "mosaic": (re.compile(r"\s*Tiling\s*\("), ".tilings.parse_mosaic"),
    "tvm": (re.compile(r"\s*(?:(?:T|tir)\.index_map\(\s*)?lambda\b"), ".maps.parse_index_map"),
    "xla": (re.compile(r"\s*(?:pred|[sufc]\d+|bf16|f[468]e\w+)\[[\d,\s<=]*\]", re.ASCII), ".tilings.parse_xla"),
    "sharding": (_SHARDING, ".shardings.parse_sharding"),
    "ttnn": (_TTNN, "..ttnn.text.parse_ttnn"),
    "onednn": (re.compile(r"\s*[A-Za-z]{1,12}(?:\d{1,6}[a-z])*\s*", re.ASCII), ".tilings.parse_onednn"),
    "error": (re.compile(r"(?s).{0,100000}?TT_(?:FATAL|THROW)"), "..ttnn.errors.explain_error"),
}


_SENTENCE = re.compile(r"(?s).{0,100000}?\b[A-Za-z][a-z]{2,20} [a-z0-9_]{2,20} [a-z]{2,20}")  # of an error, perhaps


# A name before a value of ttnn, as logs have it, and of an alias in IR.
_LABEL = re.compile(
    r"([^()<>\[\]{}\"'\n]{0,200}[:=|])\s*(?=(?:ttnn\.)?(?:TensorSpec|MemoryConfig|ShardSpec|NdShardSpec|Tensor)\s*[({])"
)
_ALIAS = re.compile(r"\s*(#\w+)\s*=\s*(?=#ttnn\.ttnn_layout\b[^\n]*\Z)")
_ESCAPED = re.compile("&(?:lt|gt|amp|quot|#39);")
_TAKE_SHAPES = ("triton", "axe")  # the notations whose readers want to know a shape that was given


NOTATIONS = ("tilewright", "cute", *_READERS)
"""The names of our own notations; `notation_names` has the plug-ins' as well."""


class Notation(NamedTuple):
    """A notation that a plug-in adds: how its texts begin, how one is read, and how a layout is written.

    `form` is a regular expression that matches the beginning of a text. `read` returns a layout, or a value that has a
    `layout`, and raises a `LayoutError` for a text it does not understand. `write` returns the text of a layout, or
    raises; None if layouts are only read. Texts that our own notations know are never given to it.

    >>> ruler = Notation(r"ruler\\b", lambda text: parse(f"{text.split()[1]}:1"))
    >>> print(ruler.read("ruler 8"))
    8:1
    """

    form: str
    read: Callable[[str], object]
    write: Callable[[LayoutLike], str] | None = None


def notation_names() -> list[str]:
    """Return the names of all notations, the library's before plug-ins'.

    >>> notation_names()[:2]
    ['tilewright', 'cute']
    """
    return [*NOTATIONS, *list_plugins("notations")]


def load_notation(name: str) -> Notation | None:
    """Return the notation that a plug-in provides under a `name`, None if there is none.

    >>> load_notation("xla") is None  # one of our own
    True
    """
    notation = None if name in NOTATIONS else load_plugin("notations", name, Notation)
    return notation if isinstance(notation, Notation) else None


def parse(
    text: str, shape: Sequence[int] | None = None, notation: str | None = None
) -> LayoutLike | Swizzle | ParsedText:
    """Return the layout that `text` describes, in the notation of any known system.

    The text of our layouts, and of CuTe's, gives a layout. Other texts have more, such as an element type, and give a
    `ParsedText` with a `layout` and a `value`. `shape` is needed by notations without one, such as oneDNN's tags;
    `notation` names the system where the form does not tell.

    >>> parse("(_4,_8):(_8,_1)"), parse("Layout<Shape<_4,_8>,Stride<_8,_1>>")
    (Layout((4, 8), (8, 1)), Layout((4, 8), (8, 1)))
    >>> parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)").layout(1, 0)
    72
    >>> parse("lambda i, j: [j // 4, i, j % 4]", shape=(8, 8)).layout(1, 5)
    37
    """
    parsed = parse_with_spare_shape(text, shape, notation)
    if shape is not None:
        _require_same_shape(parsed, tuple(shape))
    return parsed


def parse_with_spare_shape(
    text: str, shape: Sequence[int] | None = None, notation: str | None = None
) -> LayoutLike | Swizzle | ParsedText:
    """Parse as `parse` does, but ignore a `shape` that the text does not need: a form has the field for all texts.

    >>> parse_with_spare_shape("(4,8):(8,1)", (2, 32)), parse_with_spare_shape("ab", (2, 32)).layout
    (Layout((4, 8), (8, 1)), Layout((2, 32), (32, 1)))
    """
    if not isinstance(text, str):
        raise TypeError(f"a layout is parsed from a str, got {type(text).__name__} {text!r}")
    if len(text) > MAX_TEXT:
        raise LayoutError(f"a layout is at most {MAX_TEXT} characters of text, got {len(text)}")
    extents = None if shape is None else tuple([int(extent) for extent in shape])
    text = unescape(text) if _ESCAPED.search(text) else text  # pasted from the source of a page
    name = _recognize(text) if notation is None else notation
    if name in ("tilewright", "cute"):
        return _parse_layout(text, extents, must_be_own=notation == "tilewright")
    if (added := load_notation(name)) is not None:
        value = added.read(text)
        return value if isinstance(value, LayoutLike) else _parsed_text(name, value, extents)
    if name not in _READERS:
        raise LayoutError(f"unknown notation {name!r}; expected one of {', '.join(notation_names())}")
    attribute, whole, around = None, text, ""
    if name == "ttnn" and (label := _LABEL.match(text)):
        around, whole = label[1].strip(), text[label.end() :]
    if name == "tt-mlir" and (alias := _ALIAS.match(text)):
        around, whole = alias[1], text[alias.end() :]
    if name == "memref" and extents is not None and text.lstrip().startswith("strided"):  # without the type around it
        attribute = text.strip()
        whole = f"memref<{spell_extents(extents)}xf32, {attribute}>"
    try:
        if name == "tt-mlir" and not whole.lstrip().startswith("#ttnn."):  # an operation, or a type of tensors
            value, extents = _load(".ir_file.parse_ir")(whole)
            return _parsed_text(name, value, extents, None, " ".join(text.split()))
        read = _load(_READERS[name][1])
        value = read(whole, shape=extents) if name in _TAKE_SHAPES else read(whole)
        if name == "triton" and value.is_alone:
            attribute = str(value.encoding)
        return _parsed_text(name, value, extents, attribute, around)
    except FileFormatError as problem:  # a text, not a file
        also = f"; layouts and tensors are read as {', '.join(NOTATIONS[:-1])}" if name == "error" else ""
        raise LayoutError(f"{problem}{also}") from None


def _require_same_shape(parsed: Any, shape: tuple[int, ...]) -> None:
    """Raise if a text states a shape that differs from the given one."""
    own = parsed.stated_shape if hasattr(parsed, "notation") else _shape_of(parsed)
    if not isinstance(own, tuple):
        return
    if len(own) != len(shape) or any(n not in (None, extent) for n, extent in zip(own, shape, strict=True)):
        raise LayoutError(f"this text states its shape, {own}, got {shape} as well; leave that out")


def _shape_of(layout: LayoutLike | Swizzle) -> tuple[int, ...] | None:
    return product_each(layout.shape) if isinstance(layout, LayoutLike) else None


def _recognize(text: str) -> str:
    if _READERS["error"][0].match(text):
        return "error"
    if _LABEL.match(text):
        return "ttnn"
    if "!cute." in text or PRINTED.search(text):
        return "cute"
    own = next((name for name, (pattern, _) in _READERS.items() if _matches(name, pattern, text)), None)
    is_sentence = own is None and _SENTENCE.match(text)
    if own or (not is_sentence and (_OWN.match(text) or _CUTE_TYPE.match(text) or HAS_POINTER.search(text))):
        return own or "cute"
    for name in list_plugins("notations"):
        added = load_notation(name)
        if added is not None and re.match(added.form, text):
            return name
    return "error" if is_sentence else "cute"


def _matches(name: str, pattern: re.Pattern[str], text: str) -> bool:
    if name == "onednn":
        return pattern.fullmatch(text) is not None and _load(".tilings.has_tag_letters")(text)
    return pattern.match(text) is not None


def _parse_layout(text: str, shape: tuple[int, ...] | None, must_be_own: bool) -> LayoutLike | Swizzle | ParsedText:
    """Return a layout from our own text or CuTe's; the error comes from our own parser, which states the position."""
    try:
        return parse_own(text)
    except LayoutError as own_problem:
        if must_be_own:
            raise
        try:
            parsed = parse_cute(text, shape)
        except FileFormatError as problem:
            if _CUTE_TYPE.match(text) or HAS_POINTER.search(text):
                raise LayoutError(str(problem)) from None
            if _OWN.match(text):
                raise own_problem from None
            raise LayoutError(
                f"{text.strip()[:40]!r} is not a layout in any of the notations {', '.join(NOTATIONS)}; a layout is"
                " written as (4,8):(8,1)"
            ) from None
    is_plain = not parsed.besides and isinstance(parsed.layout, (LayoutLike, Swizzle))
    return parsed.layout if is_plain else _parsed_text("cute", parsed)


def _load(name: str) -> Any:
    """Return the function of a module of this package, which is loaded on first use."""
    module, _, function = name.rpartition(".")
    return getattr(import_module(module, __package__), function)


def _parsed_text(*fields: object) -> ParsedText:
    parsed: ParsedText = _load(".any_text.ParsedText")(*fields)
    return parsed

# SPDX-License-Identifier: Apache-2.0
"""`find_layouts`: the tensor types with a layout in a file of tt-mlir IR, each with the verdict of the shape rule."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .._text import MAX_RANK, TextCursor, list_some
from ..errors import FileFormatError
from ..files import FilePath, SourceFile, as_source_file
from ..memory import BufferType, CoreRangeSet, MemoryConfig, NdShardSpec, ShardDistribution, ShardOrientation, ShardSpec
from .maps import AffineMap, read_affine_map
from .ttmlir import (
    MEMORY_LAYOUTS,
    SPACES,
    Aliases,
    LayoutVerdict,
    Memref,
    MlirLayout,
    Part,
    TensorType,
    check_layout,
    is_test_pattern,
    parse_tensor_type,
    parse_with_aliases,
    read_attribute,
    read_core_ranges,
    read_dims,
    read_grid,
    read_layout,
    read_memory_layout,
    read_memref,
    read_parts,
    read_space,
    read_word,
    require_single,
    resolve_alias,
)

# `scan_ir`: the alias definitions and tensor types of MLIR text of any length, in a bounded amount of memory.

MAX_TEXT = 1 << 16
"""Characters of a tensor type or an alias; a longer one, such as a constant, is passed over."""

_TOKEN = re.compile(r'"|//|\btensor\s*<|^[ \t]*(?P<alias>[#!][A-Za-z_][\w$]*)[ \t]*=', re.MULTILINE | re.ASCII)
_TAIL = 512  # characters that may be the beginning of a token
_STRING_STOP = re.compile(r'["\\]')
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_TYPE_STOP = re.compile(r'->|//|["<>()\[\]{}%@^;]')  # neither values nor symbols are in a type
_SIMPLE_TYPE = re.compile(r"[\w ,#?*]{0,256}>", re.ASCII)
_OPERATION = re.compile(r'([a-z_]\w{0,63}\.[\w.$]{1,128})"[ \t]*\(', re.ASCII)
_ROLE = re.compile(r"->|:[ \t]*\(")
_ALIAS_STOP = re.compile(r'->|//|["<>()\[\]{}\n]')
_OPENING, _CLOSING = "<([{", ">)]}"
_SPLIT = re.compile(r"// -----[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class IrItem:
    """An alias definition or a tensor type in IR: its text, and the line and column at which it starts, from 1.

    >>> item = next(scan_ir(["#a = #ttnn.buffer_type<l1>\\n"]))
    >>> item.kind, item.name, item.text, item.line, item.column
    ('alias', '#a', '#ttnn.buffer_type<l1>', 1, 1)
    """

    kind: Literal["alias", "tensor", "split"]  # split: what follows is a module of its own
    text: str
    line: int
    column: int
    name: str = ""  # of an alias, with its mark: #a for an attribute, !a for a type; of the operation of a tensor type
    is_result: bool = False  # whether a tensor type is the type of a result of the operation


def scan_ir(chunks: Iterable[str]) -> Iterator[IrItem]:
    """Yield the alias definitions and tensor types of a text that comes in `chunks`, outside strings and comments.

    A tensor type has the name of the operation on whose line it is, if that is in quotes.

    >>> text = "#a = #ttnn.ttnn_layout<\\n  ...>\\n// tensor<1xf32>\\n%0 = f(%1) : tensor<8xf32, #a> -> tensor<f32>\\n"
    >>> [(item.kind, item.line, item.column) for item in scan_ir([text])]
    [('alias', 1, 1), ('tensor', 4, 14), ('tensor', 4, 35)]
    """
    window = _Window(iter(chunks))
    statement = _Statement(window)
    while True:
        match = _TOKEN.search(window.text, window.at)
        window.at = match.start() if match else max(window.at, len(window.text) - _TAIL)
        if len(window.text) - window.at < MAX_TEXT and window.fill():
            continue  # a token is looked at with all that may belong to it
        if match is None:
            return
        line, column = window.locate()
        window.at = match.end()
        if match[0] == '"':
            if operation := _OPERATION.match(window.text, window.at):
                statement.begin(operation[1], line)
            window.skip_string()
        elif match[0] == "//":
            if _SPLIT.match(window.text, match.start()):
                yield IrItem("split", "", line, column)
            window.skip_line()
        elif name := match["alias"]:
            text, window.at = _capture(window.text, window.at, _ALIAS_STOP)
            if text is not None:
                yield IrItem("alias", text.strip(), line, column + len(match[0]) - len(match[0].lstrip()), name)
        else:
            role = statement.role_at(match.start(), line)
            simple = _SIMPLE_TYPE.match(window.text, window.at)
            if simple:
                text, window.at = simple[0], simple.end()
            else:
                text, window.at = _capture(window.text, window.at, _TYPE_STOP)
            statement.skip_to(window.at)
            if text is not None:
                yield IrItem("tensor", f"tensor<{text}", line, column, *role)


class _Statement:
    """The operation on the line that is read, and whether its results were reached."""

    def __init__(self, window: _Window) -> None:
        self.window = window
        self.operation, self.line = "", 0
        self.is_result = False
        self._searched = 0  # counted from the start of the text

    def begin(self, operation: str, line: int) -> None:
        self.operation, self.line, self.is_result = operation, line, False
        self.skip_to(self.window.at)

    def skip_to(self, at: int) -> None:
        self._searched = self.window.forgotten + at

    def role_at(self, at: int, line: int) -> tuple[str, bool]:
        """Return the operation at a position, and whether its results are there: operands are in (...), then ->."""
        if line != self.line:
            return "", False
        for match in _ROLE.finditer(self.window.text, max(0, self._searched - self.window.forgotten), at):
            self.is_result = match[0] == "->"
        self.skip_to(at)
        return self.operation, self.is_result


class _Window:
    """The part of a long text that is in memory; text before `at` is forgotten except for one character,
    which tells whether a line starts at `at`.
    """

    def __init__(self, chunks: Iterator[str]) -> None:
        self.chunks = chunks
        self.text = "\n"
        self.at = 1
        self.forgotten = 0  # characters
        self._marked, self._line, self._line_start = 1, 1, 1  # up to where lines are counted

    def fill(self) -> bool:
        """Add a chunk, and return whether there was one."""
        chunk = next(self.chunks, None)
        if chunk is None:
            return False
        self.locate()
        before = self.at - 1
        self.text = self.text[before:] + chunk
        self.at = self._marked = 1
        self._line_start -= before
        self.forgotten += before
        return True

    def locate(self) -> tuple[int, int]:
        """Return the line and column at which the window is."""
        self._line += self.text.count("\n", self._marked, self.at)
        last = self.text.rfind("\n", self._marked, self.at)
        if last >= 0:
            self._line_start = last + 1
        self._marked = self.at
        return self._line, self.at - self._line_start + 1

    def skip_string(self) -> None:
        """Move past a string, whose opening quotation mark was read."""
        while True:
            match = _STRING_STOP.search(self.text, self.at)
            self.at = match.end() if match else len(self.text)
            if match and match[0] == '"':
                return
            if self.at == len(self.text) and not self.fill():
                return
            self.at += match is not None  # past the character after a backslash

    def skip_line(self) -> None:
        """Move to the end of the line."""
        while (end := self.text.find("\n", self.at)) < 0:
            self.at = len(self.text)
            if not self.fill():
                return
        self.at = end


def _capture(text: str, at: int, stop: re.Pattern[str]) -> tuple[str | None, int]:
    """Return the text of a type up to its closing bracket, or of an alias up to the end of its line, and its end.

    Comments are left out. Without such an end the text is None, and the end is as far as was looked.
    """
    limit, start, parts = min(len(text), at + MAX_TEXT), at, []
    is_alias = stop is _ALIAS_STOP
    depth = 0 if is_alias else 1
    while match := stop.search(text, at, limit):
        sign, at = match[0], match.end()
        if sign == '"':
            string = _STRING.match(text, match.start(), limit)
            if string is None:
                return None, match.start()
            at = string.end()
        elif sign == "//":
            parts.append(text[start : match.start()])
            start = at = text.find("\n", at, limit)
            if at < 0:
                return None, match.start()
        elif sign == "\n":
            value = "".join([*parts, text[start : at - 1]])
            if depth == 0 and value.strip():
                return value, at - 1
        elif sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
            if depth < 0:
                return None, at
            if depth == 0 and not is_alias:
                return "".join([*parts, text[start:at]]), at
        elif sign != "->":
            return None, at
    is_last_line = is_alias and depth == 0 and limit == len(text)
    return ("".join([*parts, text[start:limit]]) if is_last_line else None), limit if is_last_line else at


# Other attributes of tt-mlir that place tensors: cores, shards, memory configs, ND and metal layouts.

_MNEMONIC = re.compile(r"#(?:ttnn|ttcore|tt)\.(\w+)", re.ASCII)
_KEY = re.compile(r"([A-Za-z_]\w*)\s*=", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_INTEGERS = re.compile(r"\d{1,19}(?!\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class MlirNdLayout:
    """A #ttnn.ttnn_nd_layout: shards of any rank, one `memref` each, on a `grid` of cores.

    >>> layout = parse_mlir_attribute(
    ...     "#ttnn.ttnn_nd_layout<<2x4>, memref<1x1x1x!ttcore.tile<32x32, bf16>, #l1>, <nd_sharded>, <row_major>,"
    ...     " <round_robin_1d>>"
    ... )
    >>> layout.shard_shape, layout.distribution
    ((1, 32, 32), 'round_robin_1d')
    """

    grid: tuple[int, ...]
    memref: Memref
    memory_layout: str | None = None
    orientation: str | None = None
    distribution: str | None = None
    extra: tuple[str, ...] = ()  # what comes after these

    @property
    def shard_shape(self) -> tuple[int, ...]:
        """The extents of a shard in elements.

        >>> parse_mlir_attribute("#ttnn.ttnn_nd_layout<<2>, memref<4x8xf32, #l1>>").shard_shape
        (4, 8)
        """
        tile = (self.memref.tile or ())[-len(self.memref.shape) :]
        units = (*[1] * (len(self.memref.shape) - len(tile)), *tile)
        return tuple([n * unit for n, unit in zip(self.memref.shape, units, strict=True)])


@dataclass(frozen=True, slots=True)
class MetalLayout:
    """A #ttcore.metal_layout: the logical shape and its alignments, or, in an older form, a map, a grid and a memref.

    >>> layout = parse_mlir_attribute(
    ...     "#ttcore.metal_layout<logical_shape = 8x300, dim_alignments = 32x32, collapsed_intervals ="
    ...     " dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>, l1, sharded>"
    ... )
    >>> layout.logical_shape, layout.dim_alignments, layout.collapsed_intervals, layout.space
    ((8, 300), (32, 32), ((0, 1), (1, 2)), 'l1')
    """

    logical_shape: tuple[int, ...] | None = None
    dim_alignments: tuple[int, ...] | None = None
    collapsed_intervals: tuple[tuple[int, int], ...] = ()
    space: str | None = None
    memory_layout: str | None = None  # sharded or interleaved; in the older form, how it is sharded
    out_of_bounds: str | None = None  # what padding holds
    map: AffineMap | None = None
    grid: tuple[int, ...] | None = None
    memref: Memref | None = None
    extra: tuple[tuple[str, str], ...] = ()  # other named parts, as texts


@dataclass(frozen=True, slots=True)
class ShardStrides:
    """A #ttcore.shard: the byte strides of a shard in the memory of a core, and how many buffers it has.

    >>> parse_mlir_attribute("#ttcore.shard<16384x2048, 1>")
    ShardStrides(strides=(16384, 2048), buffers=1)
    """

    strides: tuple[int, ...]
    buffers: int


def parse_mlir_attribute(text: str, aliases: Mapping[str, str] | None = None) -> Any:
    """Return the value of an attribute of tt-mlir in a `text`; `aliases` are its file's, by name.

    Cores, shards and memory configs are the library's classes; layouts have classes of their own.

    >>> parse_mlir_attribute("#ttnn.memory_config<#ttnn.buffer_type<dram>, <interleaved>>")
    MemoryConfig('interleaved', 'dram')
    >>> parse_mlir_attribute("#ttnn.core_range_set<[#ttnn.core_range<(0,0), (7,7)>]>").num_cores
    64
    """
    return parse_with_aliases(text, aliases or {}, _read_any, "an attribute")


def _read_any(cursor: TextCursor, aliases: Aliases) -> Any:
    start = cursor.skip_space()
    match = cursor.match(_MNEMONIC)
    cursor.at = start
    if not match or match[1] not in _READERS:
        cursor.fail(f"one of {', '.join(_READERS)} of the dialects ttnn and ttcore")
    return _READERS[match[1]](cursor, aliases)


def _open(cursor: TextCursor, name: str) -> None:
    """Move past the name of an attribute and its opening bracket; the name may be left out."""
    if cursor.accept("#"):
        cursor.take(re.compile(rf"(?:ttnn|ttcore|tt)\.{name}(?!\w)"), f"'ttnn.{name}'")
    cursor.expect("<")


def _read_buffer_type(cursor: TextCursor, aliases: Aliases) -> BufferType:
    return BufferType.of(read_space(cursor, aliases))


def _read_shape(cursor: TextCursor) -> tuple[int, ...]:
    cursor.expect("<")
    shape = read_dims(cursor)
    cursor.expect(">")
    return shape


def _read_shards_on_cores(cursor: TextCursor, aliases: Aliases, name: str) -> tuple[CoreRangeSet, tuple[int, ...], str]:
    _open(cursor, name)
    cores = read_core_ranges(cursor, aliases)
    cursor.expect(",")
    shape = _read_shape(cursor)
    cursor.expect(",")
    return cores, shape, read_word(cursor, "an orientation")


def _read_shard_spec(cursor: TextCursor, aliases: Aliases) -> ShardSpec:
    cores, shape, orientation = _read_shards_on_cores(cursor, aliases, "shard_spec")
    if cursor.accept(","):  # of older compilers
        start = cursor.skip_space()
        if read_word(cursor, "a mode") != "physical":
            cursor.at = start
            cursor.fail("the mode <physical>, since the positions of logical shards are unknown,")
    cursor.expect(">")
    return ShardSpec(cores, shape, orientation)


def _read_nd_shard_spec(cursor: TextCursor, aliases: Aliases) -> NdShardSpec:
    cores, shape, orientation = _read_shards_on_cores(cursor, aliases, "nd_shard_spec")
    distribution = read_word(cursor, "a distribution") if cursor.accept(",") else "round_robin_1d"
    cursor.expect(">")
    return NdShardSpec(shape, cores, orientation, distribution)


def _read_shards(cursor: TextCursor, aliases: Aliases) -> ShardSpec | NdShardSpec:
    is_nd = cursor.peek("#ttnn.nd_shard_spec")
    return _read_nd_shard_spec(cursor, aliases) if is_nd else _read_shard_spec(cursor, aliases)


def _read_memory_config(cursor: TextCursor, aliases: Aliases) -> MemoryConfig:
    _open(cursor, "memory_config")
    buffer = _read_buffer_type(cursor, aliases)
    layout: str | None = None
    shards: ShardSpec | NdShardSpec | None = None
    while cursor.accept(","):
        if cursor.skip_space() and _MEMORY_LAYOUT.match(cursor.text, cursor.at):
            require_single(layout, cursor, "the memory layout")
            layout = read_memory_layout(cursor)
            continue
        require_single(shards, cursor, "the shard spec")
        is_nd = cursor.match(_ND_KEY) is not None
        shards = read_attribute(cursor, aliases, _read_nd_shard_spec if is_nd else _read_shards)
    cursor.expect(">")
    general = shards if isinstance(shards, NdShardSpec) else None
    matrix = shards if isinstance(shards, ShardSpec) else None
    if layout is None:
        layout = "nd_sharded" if general else "interleaved"
    return MemoryConfig(layout, buffer, matrix, general)


_MEMORY_LAYOUT = re.compile(r"(?:#ttnn\.tensor_memory_layout\s*)?<\s*[A-Za-z]")
_ND_KEY = re.compile(r"ndShardSpec\s*=")


def _read_nd_layout(cursor: TextCursor, aliases: Aliases) -> MlirNdLayout:
    _open(cursor, "ttnn_nd_layout")
    grid, _ = read_grid(cursor)
    cursor.expect(",")
    memref = read_memref(cursor, aliases)
    words: list[str] = []
    while cursor.accept(","):
        if len(words) == MAX_RANK:
            cursor.fail("the end of an ND layout")
        words.append(cursor.raw().removeprefix("<").removesuffix(">"))
    cursor.expect(">")
    fields = {}
    for name, members in _ND_WORDS.items():
        fields[name] = next((word for word in words if word in members), None)
    extra = [word for word in words if word not in fields.values()]
    return MlirNdLayout(grid, memref, **fields, extra=tuple(extra))


_ND_WORDS = {
    "memory_layout": MEMORY_LAYOUTS,
    "orientation": tuple([member.name.lower() for member in ShardOrientation]),
    "distribution": tuple([member.name.lower() for member in ShardDistribution]),
}


def _read_metal_layout(cursor: TextCursor, aliases: Aliases) -> MetalLayout:
    _open(cursor, "metal_layout")
    parts = read_parts(cursor, lambda _: _find_metal_part(cursor, aliases), MetalLayout.__slots__)
    layout = MetalLayout(**parts)
    if layout.memref is None and layout.logical_shape is None:
        raise FileFormatError(f"{cursor.name}: the layout up to character {cursor.at} lacks a logical shape")
    shape, alignments = layout.logical_shape or (), layout.dim_alignments
    if alignments is not None and len(alignments) != len(shape):
        raise FileFormatError(
            f"{cursor.name}: the layout up to character {cursor.at} has {len(shape)} extents, but {len(alignments)}"
            " alignments"
        )
    return layout


def _find_metal_part(cursor: TextCursor, aliases: Aliases) -> Part:
    """Return the field that comes next, and the reader of its value."""
    readers: dict[str, Callable[[], object]] = {
        "logical_shape": lambda: read_dims(cursor),
        "dim_alignments": lambda: read_dims(cursor),
        "collapsed_intervals": lambda: _read_intervals(cursor),
        "memref": lambda: read_memref(cursor, aliases),
        "grid": lambda: read_grid(cursor)[0],
        "space": lambda: read_space(cursor, aliases),
        "map": lambda: read_attribute(cursor, aliases, lambda at, _: read_affine_map(at)),
    }
    starts = {"memref": "memref", "<": "grid", "#ttcore.memory_space": "space"}
    starts |= dict.fromkeys(("(", "#", "affine_map"), "map")
    if key := cursor.match(_KEY):
        name = key[1]
        return name, name, readers[name] if name in _METAL_KEYS else cursor.raw
    if field := next((field for start, field in starts.items() if cursor.peek(start)), None):
        return field, field, readers[field]
    word = cursor.take(_WORD, "a part of a metal layout")
    field = "space" if word in SPACES else "memory_layout" if word in _METAL_MEMORY_LAYOUTS else "out_of_bounds"
    return field, field, lambda: word


_METAL_KEYS = ("logical_shape", "dim_alignments", "collapsed_intervals")
_METAL_MEMORY_LAYOUTS = ("sharded", *MEMORY_LAYOUTS)


def _read_intervals(cursor: TextCursor) -> tuple[tuple[int, int], ...]:
    """Return the pairs of a constant such as dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>."""
    cursor.expect("dense", "<")
    start = cursor.at
    text = "" if cursor.peek(">") else cursor.raw()
    cursor.expect(">")
    if cursor.accept(":"):
        cursor.raw()
    numbers = [int(number) for number in _INTEGERS.findall(text)]
    if len(numbers) % 2 or len(numbers) > 2 * MAX_RANK:
        cursor.at = start
        cursor.fail("pairs of integers")
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _read_shard_strides(cursor: TextCursor, _aliases: Aliases) -> ShardStrides:
    _open(cursor, "shard")
    strides = read_dims(cursor)
    cursor.expect(",")
    buffers = cursor.integer("the number of buffers")
    cursor.expect(">")
    return ShardStrides(strides, buffers)


_READERS: dict[str, Callable[[TextCursor, Aliases], Any]] = {
    "ttnn_layout": read_layout,
    "ttnn_nd_layout": _read_nd_layout,
    "memory_config": _read_memory_config,
    "shard_spec": _read_shard_spec,
    "nd_shard_spec": _read_nd_shard_spec,
    "core_range_set": read_core_ranges,
    "buffer_type": _read_buffer_type,
    "memory_space": read_space,
    "metal_layout": _read_metal_layout,
    "shard": _read_shard_strides,
}


_CHUNK = 1 << 20
_BYTECODE = b"ML\xefR"
_MAX_ALIAS_CHARACTERS = 1 << 26  # of one module
_MAX_CACHED = 1 << 14
_ALIAS_VALUE = re.compile(r"#|affine_map|!tt(?:core)?\.tile")  # others, such as locations, are not part of layouts
_LONE_ALIAS = re.compile(r"#([A-Za-z_][\w$]*)", re.ASCII)
_LAYOUT = re.compile(r"#(?:ttnn\.ttnn_layout|ttnn\.ttnn_nd_layout|ttcore\.metal_layout|tt\.metal_layout)\b")


@dataclass(frozen=True, slots=True)
class LayoutUse:
    """A tensor type with a layout in a file: where it is, the layout, and the verdict; or why it could not be read.

    >>> use = LayoutUse(3, 14, "tensor<8xf32, #a>", problem="alias #a is not defined")
    >>> print(use.severity, use.place)
    error 3:14
    """

    line: int  # from 1
    column: int  # from 1
    text: str
    tensor: TensorType | None = None
    layout: MlirLayout | MlirNdLayout | MetalLayout | None = None
    verdict: LayoutVerdict | None = None  # only for a #ttnn.ttnn_layout, to which the shape rule applies
    problem: str = ""
    operation: str = ""  # on the same line, such as ttnn.matmul
    is_result: bool = False  # of that operation

    @property
    def place(self) -> str:
        """The line and column, as compilers write them.

        >>> LayoutUse(3, 14, "tensor<8xf32, #a>").place
        '3:14'
        """
        return f"{self.line}:{self.column}"

    @property
    def severity(self) -> str:
        """The severity: ok, note, warning or error.

        >>> LayoutUse(3, 14, "tensor<8xf32, #a>").severity
        'ok'
        """
        if self.problem:
            return "error"
        return "ok" if self.verdict is None else self.verdict.severity


def find_layouts(path: FilePath | SourceFile) -> Iterator[LayoutUse]:
    """Return an iterator over the tensor types with a layout in the IR file at `path`, in order.

    The file is read in pieces, so it can be of any size. Comments,
    strings and test patterns are skipped; unreadable types are reported, and the rest is read all the same.

    >>> import tempfile
    >>> from pathlib import Path
    >>> text = '''
    ... #dram = #ttnn.buffer_type<dram>
    ... #layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>,
    ...     <interleaved>>
    ... func.func @f(%0: tensor<32x32xf32, #layout>) -> tensor<64x32xf32, #layout>
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "model.mlir").write_text(text)
    ...     for use in find_layouts(Path(folder, "model.mlir")):
    ...         print(use.place, use.tensor, use.severity)
    5:18 tensor<32x32xf32> ok
    5:49 tensor<64x32xf32> error
    """
    file = as_source_file(path)
    if file.read(0, min(len(_BYTECODE), file.size)) == _BYTECODE:
        raise FileFormatError(f"{file.path} is MLIR bytecode, not text; print it with ttmlir-opt first")
    return _find(_decode(file))


def parse_ir(text: str) -> tuple[MlirLayout, tuple[int, ...]]:
    """Return the layout of TTNN in a pasted `text` of IR, and the shape of its tensor; raise if there are several.

    >>> tiles = "memref<1x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<dram>>"
    >>> layout = f"#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, {tiles}, <interleaved>>"
    >>> parse_ir(f'%2 = "ttnn.relu"(%1) : (tensor<32x32xf32, {layout}>) -> tensor<32x32xf32, {layout}>')[1]
    (32, 32)
    """
    uses = {use.text: use for use in _find([text])}
    if len(uses) != 1:
        listed = f": {list_some([str(use.tensor) for use in uses.values()], 4)}" if uses else ""
        raise FileFormatError(
            f"a layout of tt-mlir: expected one tensor type with a #ttnn.ttnn_layout, got {len(uses)}{listed}; paste"
            " one of them, with the lines of its aliases"
        )
    use = next(iter(uses.values()))
    if use.problem or use.tensor is None or not isinstance(use.layout, MlirLayout) or None in use.tensor.shape:
        problem = use.problem or "its extents, or its layout, are known at run time only"
        raise FileFormatError(f"a layout of tt-mlir: {problem}")
    return use.layout, tuple([n for n in use.tensor.shape if n is not None])


def _decode(file: SourceFile) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for start in range(0, file.size, _CHUNK):
        size = min(_CHUNK, file.size - start)
        yield decoder.decode(file.read(start, size), final=start + size == file.size)


def _find(chunks: Iterable[str]) -> Iterator[LayoutUse]:
    aliases: dict[str, str] = {}
    cache: dict[str, LayoutUse | None] = {}
    fresh: set[str] = set()  # aliases that no tensor type has followed
    stored = 0
    for item in scan_ir(chunks):
        if item.kind == "tensor":
            fresh.clear()
            if item.text not in cache:
                if len(cache) >= _MAX_CACHED:
                    cache.clear()
                cache[item.text] = _read_use(item, aliases)
            use = cache[item.text]
            if use is not None:
                parts = (use.text, use.tensor, use.layout, use.verdict, use.problem)
                yield LayoutUse(item.line, item.column, *parts, item.name, item.is_result)
            continue
        cache.clear()  # the meaning of an alias may change
        if item.kind == "split":
            aliases.clear()
            fresh.clear()
            stored = 0
        elif _ALIAS_VALUE.match(item.text):
            name = item.name.removeprefix("#")
            stored += len(name) + len(item.text) - len(aliases.get(name, ""))
            if stored > _MAX_ALIAS_CHARACTERS:
                raise FileFormatError(
                    f"line {item.line}: the aliases of one module have more than {_MAX_ALIAS_CHARACTERS} characters"
                )
            if name in fresh and aliases[name] != item.text:
                raise FileFormatError(f"line {item.line}: {item.name} is defined twice, with different values")
            fresh.add(name)
            aliases[name] = item.text


def _read_use(item: IrItem, aliases: dict[str, str]) -> LayoutUse | None:
    """Return the layout part of a tensor type, or None if it has none."""
    tensor = None
    try:
        if "," not in item.text or is_test_pattern(item.text):
            return None
        encoding = _encoding_of(item.text)
        lone = _LONE_ALIAS.fullmatch(encoding)
        definition = resolve_alias(lone[1], aliases) if lone else encoding
        if definition is not None and (not _LAYOUT.match(definition) or is_test_pattern(definition)):
            return None
        tensor = parse_tensor_type(item.text, aliases)
        layout = parse_mlir_attribute(encoding, aliases)
        verdict = check_layout(layout, tensor) if isinstance(layout, MlirLayout) else None
        return LayoutUse(item.line, item.column, item.text, tensor, layout, verdict)
    except FileFormatError as problem:
        return LayoutUse(item.line, item.column, item.text, tensor, problem=str(problem))


def _encoding_of(text: str) -> str:
    """Return the encoding of a tensor type: what follows the first comma outside its element type."""
    depth, at = 0, len("tensor<")
    for match in re.finditer(r"[<>,]", text[at:]):
        sign = match[0]
        if sign == "," and depth == 0:
            return text[at + match.end() : -1].strip()
        depth += (sign == "<") - (sign == ">")
    return ""

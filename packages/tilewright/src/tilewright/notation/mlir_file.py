# SPDX-License-Identifier: Apache-2.0
"""`find_layouts`: the tensor types with a layout in a file of tt-mlir IR, each with the verdict of the shape rule."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..errors import FileFormatError
from ..files import FilePath, SourceFile, as_source_file
from .ir_scanner import IrItem, scan_ir
from .mlir_attributes import MetalLayout, MlirNdLayout, parse_mlir_attribute
from .mlir_layouts import MlirLayout, is_test_pattern
from .mlir_rule import LayoutVerdict, check_layout
from .mlir_types import TensorType, parse_tensor_type, resolve_alias

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
        """Return the line and column, as compilers write them.

        >>> LayoutUse(3, 14, "tensor<8xf32, #a>").place
        '3:14'
        """
        return f"{self.line}:{self.column}"

    @property
    def severity(self) -> str:
        """Return how much it matters: ok, note, warning or error.

        >>> LayoutUse(3, 14, "tensor<8xf32, #a>").severity
        'ok'
        """
        if self.problem:
            return "error"
        return "ok" if self.verdict is None else self.verdict.severity


def find_layouts(path: FilePath | SourceFile) -> Iterator[LayoutUse]:
    """Return an iterator over the tensor types with a layout in the IR file at `path`, in order.

    The file is read in pieces, so it can be of any size. Comments, strings and test patterns are passed over; what
    cannot be read is reported, and the rest is read all the same.

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
        cache.clear()  # what an alias stands for may change
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
    """Return what a tensor type says about its layout, or None if it has none."""
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
    for found in re.finditer(r"[<>,]", text[at:]):
        sign = found[0]
        if sign == "," and depth == 0:
            return text[at + found.end() : -1].strip()
        depth += (sign == "<") - (sign == ">")
    return ""

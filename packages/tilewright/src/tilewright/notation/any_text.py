# SPDX-License-Identifier: Apache-2.0
"""`ParsedText`, a text of another system, and `write`: layouts in the text of any known system."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import DTypeLike

from .._dialect import unwrap
from .._text import MAX_RANK
from ..display import Drawable
from ..errors import LayoutError
from ..layout import Coordinate, LayoutLike, Linear, Swizzle, coalesce, leaves, product_each
from ..memory import Explanation, MemoryConfig, OffsetExplanation, Shape, TensorSpec, TileExplanation, explain
from ..plugins import list_plugins
from ..ttnn.text import TtnnText, ttnn_text, write_ttnn
from .cute_texts import CuteText, DynamicLayout, write_cute
from .kernel_arguments import KernelArguments
from .maps import (
    IndexMap,
    StridedMemref,
    write_affine_map,
    write_index_expressions,
    write_index_lambda,
    write_index_map,
    write_memref,
)
from .parsing import load_notation, parse  # noqa: F401  (for the examples)
from .shardings import DeviceSharding
from .tilings import MosaicTiling, OnednnTag, VectorLayout, XlaShape, write_mosaic, write_onednn, write_xla
from .triton import TritonType, linear_of_encoding, memory_layout_of_encoding
from .triton_writer import write_triton
from .ttmlir import MlirLayout, TensorType, write_mlir_layout

if TYPE_CHECKING:
    from ..ttnn.errors import ErrorReport

Subject: TypeAlias = (
    "LayoutLike | Swizzle | Linear | TensorSpec | MemoryConfig | Shape | DeviceSharding | ErrorReport | KernelArguments"
)

_WITHOUT_LAYOUT = {"error": "an error message", "tt-metal": "the words of a kernel"}  # texts that explain themselves
_MAX_MODES = 1024  # that are written in the notation of another system
_ELEMENT = re.compile(r"(bf|f|si?|ui?|i|c|pred)((?:\d+(?:e\d+m\d+\w*)?)?)")  # an element type of XLA or MLIR


@dataclass(frozen=True)
class ParsedText(Drawable):
    """A text of another system: its `notation`, its `value` with all details, and the `subject` that it is about.

    A `subject` is a layout, a tensor spec, a memory config, a sharding, a report on an error or the arguments of a
    kernel, and `.show()` draws it.
    `.layout`, `.spec` and `.explain()` work on texts that have them; for others the error names what is missing.

    >>> parsed = parse("bf16[8,128]{1,0:T(8,128)(2,1)}")
    >>> parsed.notation, parsed.layout(1, 0), parsed.value.dtype
    ('xla', 1, 'bf16')
    """

    notation: str
    value: Any
    shape: tuple[int, ...] | None = None  # given for a text that has none of its own
    attribute: str | None = None  # the text, if it is a layout alone, around which `value` has an assumed element type
    around: str = ""  # what stands around the value: a name, or an operation

    @property
    def layout(self) -> LayoutLike | Swizzle | Linear:
        """The layout from coordinates to elements; of Triton's encodings, the `Linear` map to coordinates.

        Padding is not linear: shared memory with it has the layout that `memory_layout` is for all.

        A tensor of ttnn has the layout of its elements in its pages, whatever the chip.

        >>> parse("aBcd16b", shape=(2, 20, 3, 5)).layout(0, 17, 0, 0)
        241
        """
        value = self.value
        if isinstance(value, TritonType):
            if value.encoding.padding:
                return self.memory_layout
            return linear_of_encoding(value.encoding, value.shape, None if value.is_alone else value.bits)
        if isinstance(value, DeviceSharding) and value.shape is not None:
            return value.layout()
        if isinstance(value, (OnednnTag, MosaicTiling, VectorLayout, IndexMap, DeviceSharding)):
            if self.shape is None:
                raise LayoutError(
                    f"{self.notation} text has no shape of its own; give it one: shape=(8, 8) in Python, --shape 8x8 on"
                    " the command line, or Shape in the explorer"
                )
            laid_out: LayoutLike = value.layout(self.shape)
            return laid_out
        if isinstance(value, LayoutLike):
            return value
        layout = getattr(value, "layout", None)
        if isinstance(layout, DynamicLayout):
            remedy = "put them in" if "stride" in str(layout.unknown) else "put them in, or give a shape"
            names = ", ".join(layout.unknown)
            raise LayoutError(f"{layout} has numbers that are known at run time only: {names}; {remedy}")
        if isinstance(layout, (LayoutLike, Swizzle)):
            return layout
        subject = self.placement
        if isinstance(subject, TensorSpec):
            return subject.stored
        if isinstance(subject, (MlirLayout, MemoryConfig)):
            raise LayoutError(
                f"a {self.notation} text of a memory config does not state the tensor's shape; give it one:"
                " shape=(8, 8) in Python, SHAPE:MemoryConfig(...) on the command line"
            )
        raise LayoutError(
            f"this {self.notation} text describes {self._described}, which is not a layout; use .placement in Python"
        )

    @property
    def spec(self) -> TensorSpec:
        """The tensor spec that the text is about.

        >>> text = "#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<1x8xf32, #dram>, <interleaved>>"
        >>> parse(text, shape=(8,)).spec
        TensorSpec((8,), 'float32', 'row_major')
        """
        subject = self.subject
        if isinstance(subject, TensorSpec):
            return subject
        config = isinstance(subject, MemoryConfig)
        lacks = "a memory config and no shape" if config else f"{self._described} and no memory of a chip"
        raise LayoutError(
            f"this {self.notation} text has no tensor spec: it states {lacks}; make one with"
            f" TensorSpec(shape, dtype, memory={'parsed.subject' if config else '...'})"
        )

    @property
    def subject(self) -> Subject:
        """The subject of the text: a layout, a tensor spec, a memory config, a shape, a sharding, an error or a kernel.

        >>> print(
        ...     parse("MemoryConfig(memory_layout=TensorMemoryLayout.INTERLEAVED, buffer_type=BufferType.L1)").subject
        ... )
        interleaved in L1
        """
        value = self.placement
        value = value.memory_config if isinstance(value, MlirLayout) else value
        if self.notation in _WITHOUT_LAYOUT or isinstance(value, (TensorSpec, MemoryConfig, Shape, DeviceSharding)):
            about: Subject = value
            return about
        return self.memory_layout

    def explain(
        self, coordinate: Iterable[Coordinate] | None = None
    ) -> Explanation | OffsetExplanation | TileExplanation | str:
        """Return where the element at a `coordinate` is, step by step; the explanation of an error or a kernel.

        >>> print(parse("f32[8,128]{1,0}").explain((1, 5)))
        element   (1, 5) of (8,128):(128,1)
        offset    133 = 1 x 128 + 5
        byte      532 = 133 x 4
        """
        if self.notation in _WITHOUT_LAYOUT:
            explained: str = self.value.explain()
            return explained
        if coordinate is None:
            raise LayoutError("expected the coordinate of an element, such as explain((0, 0)), got none")
        subject = self.subject
        return explain(subject if isinstance(subject, (TensorSpec, Shape, DeviceSharding)) else self, coordinate)

    @property
    def itemsize(self) -> int | None:
        """The bytes of an element, if the text states its type in whole bytes.

        >>> parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)").itemsize, parse("f32[8,128]{1,0}").itemsize
        (2, 4)
        """
        bits = self.element_bits
        return bits // 8 if bits is not None and bits % 8 == 0 and bits > 0 else None

    @property
    def _described(self) -> str:
        value = self.value
        if self.notation in _WITHOUT_LAYOUT:
            return _WITHOUT_LAYOUT[self.notation]
        return "a layout" if self.notation not in _PLACEMENT_WRITERS else f"a {getattr(value, 'kind', 'memory config')}"

    @property
    def element_bits(self) -> int | None:
        """The bits of an element in memory, if the text states them.

        >>> parse("s4[8,128]{1,0:E(4)}").element_bits
        4
        """
        value = self.placement.dtype if isinstance(self.placement, TensorSpec) else self.value
        if isinstance(value, TritonType):
            width = value.encoding.fields.get("elementBitWidth")
            stated = width if isinstance(width, int) else None
            return stated if self.attribute is not None else value.bits
        if self.attribute is not None:
            return None
        bits = getattr(value, "bits", None)
        if bits is not None:
            return int(bits)
        dtype = getattr(value, "dtype", None) or getattr(value, "element", None)
        match = _ELEMENT.match(dtype.lower()) if isinstance(dtype, str) else None
        digits = None if match is None else re.match(r"\d+", match[2])
        number = int(digits[0]) if digits else 8 if match and match[1] == "pred" else None
        if isinstance(value, XlaShape) and number is not None:  # a byte for less than that, unless E packs them
            return int(value.properties.get("E", max(number, 8)))
        return number

    @property
    def memory_layout(self) -> LayoutLike | Swizzle | Linear:
        """The layout from coordinates to elements of memory, including Triton's shared memory.

        It is `layout` where there is none: of registers, and of maps that are neither strided nor swizzled.

        >>> text = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
        >>> print(parse(text, shape=(8, 64)).memory_layout)
        Sw<3,3,3> o (8,64):(64,1)
        """
        value = self.value
        if not isinstance(value, TritonType):
            return self.layout
        try:
            stored = memory_layout_of_encoding(value.encoding, value.shape)
        except LayoutError:
            if value.encoding.padding:  # which the map does not have
                raise
            return self.layout
        laid_out: LayoutLike = coalesce(stored, (1,) * len(value.shape))
        return laid_out

    @property
    def placement(self) -> Any:
        """The subject of a text about the memory of a chip: a tensor spec, a memory config, cores, and so on.

        A layout of tt-mlir has no shape of its own; with one that was given to `parse`, it is a tensor spec.

        >>> parse("{[0-0 - 7-0]}").placement.num_cores
        8
        """
        value = self.value
        if isinstance(value, TtnnText):
            known = ("storage", "mode=ShardMode::PHYSICAL")  # a spec has its memory, and shards in elements of it
            if unknown := [part for part in self._facts if not part.startswith(known)]:
                raise LayoutError(
                    f"this text also states {', '.join(unknown)}, which is not modelled; leave it out of the text"
                )
            return value.value
        if isinstance(value, MlirLayout) and self.shape is not None:
            return value.to_spec(TensorType(self.shape, None, value.memref.dtype))
        if isinstance(value, DeviceSharding) and self.shape is not None:
            return value.on(self.shape)
        return value

    @property
    def stated_shape(self) -> tuple[int | None, ...] | None:
        """The shape that the text itself states, None where it has none.

        >>> parse("f32[8,128]{1,0}").stated_shape, parse("ab", shape=(2, 32)).stated_shape
        ((8, 128), None)
        """
        value = self.value
        value = value.value if isinstance(value, TtnnText) else value.layout if isinstance(value, CuteText) else value
        if isinstance(value, TensorSpec):
            return value.shape.logical
        if isinstance(value, DynamicLayout):
            return value.extents
        return product_each(value.shape) if isinstance(value, LayoutLike) else getattr(value, "shape", None)

    @property
    def besides(self) -> list[str]:
        """The facts of the text that no layout has, and that other notations leave out: a memory, a pointer.

        >>> parse("f32[8,128]{1,0:T(8,128)S(3)}").besides, parse("memref<4xf32, 3>").besides
        (['S(3)'], ['memory space 3'])
        """
        return [*self._facts, *([f"the text {self.around[:80]!r}"] if self.around else [])]

    @property
    def _facts(self) -> list[str]:
        value = self.value
        if isinstance(value, XlaShape):
            bounds = [f"the bound of dimension {k}" for k in value.dynamic]
            return [*bounds, *[f"{name}({text})" for name, text in value.properties.items()]]
        if isinstance(value, (CuteText, VectorLayout)):
            return value.besides
        if isinstance(value, StridedMemref):
            return [f"memory space {value.space}"] if value.space else []
        if isinstance(value, TtnnText):
            return [f"{name}={text}" for name, text in value.extra]
        if isinstance(value, MlirLayout):
            return value.unplaced
        if isinstance(value, DeviceSharding):
            return list(value.besides)
        return [part for part in (value.rest, value.line) if part] if isinstance(value, TritonType) else []

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        """Return the offsets of the layout, as layouts do."""
        layout = self.memory_layout
        if not isinstance(layout, LayoutLike):
            raise LayoutError(f"the results of this {self.notation} text are not offsets; use its .layout")
        return layout.__array__(dtype, copy)

    def __str__(self) -> str:
        if self.attribute is not None:
            return self.attribute
        if isinstance(self.value, TtnnText):
            return ttnn_text(self.value.value)
        if isinstance(self.value, IndexMap):
            return (write_index_map if self.notation == "tvm" else write_index_expressions)(self.value)
        return str(self.value)


_WRITERS: dict[str, Callable[..., str]] = {
    "tilewright": str,
    "cute": write_cute,
    "onednn": lambda layout: str(write_onednn(layout)),
    "xla": write_xla,
    "mosaic": write_mosaic,
    "memref": write_memref,
    "mlir": write_affine_map,
    "tvm": write_index_lambda,
    "triton": write_triton,
}
_PLACEMENT_WRITERS: dict[str, Callable[..., str]] = {"ttnn": write_ttnn, "tt-mlir": write_mlir_layout}

WRITABLE = (*_WRITERS, *_PLACEMENT_WRITERS)
"""Our own notations that layouts can be written in; `writable_notations` has the plug-ins' as well."""


def writable_notations() -> list[str]:
    """Return the names of all notations that layouts can be written in, the library's before plug-ins'.

    >>> writable_notations()[:2]
    ['tilewright', 'cute']
    """
    added = [(name, load_notation(name)) for name in list_plugins("notations")]
    return [*WRITABLE, *[name for name, notation in added if notation is not None and notation.write is not None]]


TYPED = {"xla": "f32", "memref": "f32", "triton": "f16"}
"""The notations that state an element type, and the type that is assumed for a layout without one."""
_CHIP_TYPES = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bool": "pred",
    **{f"{sign}int{bits}": f"{'u' if sign else 's'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def element_options(parsed: object, notation: str) -> dict[str, str]:
    """Return the option `dtype` for `write`, if a `parsed` text names an element type that a `notation` has.

    >>> element_options(parse("s8[4,8]{1,0}"), "memref"), element_options(parse("memref<4xbf16>"), "xla")
    ({'dtype': 'i8'}, {'dtype': 'bf16'})
    """
    if notation not in TYPED or not isinstance(parsed, ParsedText) or parsed.attribute is not None:
        return {}
    value = parsed.value
    element = getattr(value, "dtype", None) or getattr(value, "element", None)
    if isinstance(subject := parsed.placement, TensorSpec):
        element = _CHIP_TYPES.get(subject.dtype.name)
        if element is None:
            raise LayoutError(f"{notation} has no element type {subject.dtype.name}; give another one with dtype")
    if not isinstance(element, str):
        return {}
    match = _ELEMENT.fullmatch(element.lower())
    if match is None or notation == parsed.notation:
        return {"dtype": element} if notation == parsed.notation else {}
    prefix, rest = match.groups()
    is_bit = prefix == "pred" or (prefix, rest) == ("i", "1")
    if notation == "xla":
        return {"dtype": "pred" if is_bit else {"i": "s", "si": "s", "ui": "u"}.get(prefix, prefix) + rest}
    unsigned = "ui" if notation == "memref" else "i"
    name = {"s": "i", "si": "i", "u": unsigned, "ui": unsigned}.get(prefix, prefix)
    return {"dtype": "i1" if is_bit else name + (rest.upper() if prefix == "f" else rest)}


def write(layout: object, notation: str, **options: Any) -> str:
    """Return a layout in a `notation`, or raise with the reason why it has no such text.

    `layout` is a layout, a linear map, a swizzle, or what `parse` returned. "ttnn" and "tt-mlir" are about the memory
    of a chip, and take a `TensorSpec`, a `MemoryConfig` and the like. `options` are the notation's other fields,
    such as `dtype` for "xla", "memref" and "triton"; by default the text's, if `layout` was parsed from one.

    >>> from tilewright import Layout
    >>> write(Layout((4, 8), (8, 1)), "cute"), write(Layout((4, 8), (8, 1)), "xla", dtype="f32")
    ('(4,8):(8,1)', 'f32[4,8]{1,0}')
    """
    if notation not in WRITABLE:
        added = load_notation(notation)
        if added is None or added.write is None:
            raise LayoutError(f"cannot write {notation!r}; layouts can be written as {', '.join(writable_notations())}")
        own = layout.memory_layout if isinstance(layout, ParsedText) else unwrap(layout)
        if not isinstance(own, LayoutLike):
            raise LayoutError(f"{notation} can express layouts only, got {type(own).__name__} {own!s:.60}")
        return added.write(own, **options)
    if isinstance(layout, ParsedText) and layout.notation == notation != "ttnn" and not options:
        return str(layout)
    if notation in _PLACEMENT_WRITERS:
        subject = layout.placement if isinstance(layout, ParsedText) else unwrap(layout)
        if isinstance(subject, Linear):
            raise LayoutError(f"{notation} has no text for a linear map; make a TensorSpec or a MemoryConfig of it")
        return _PLACEMENT_WRITERS[notation](subject, **options)
    options = element_options(layout, notation) | options
    subject = unwrap(layout)
    if isinstance(layout, ParsedText):
        subject = layout.layout if notation in ("tilewright", "triton") else layout.memory_layout
    if not isinstance(subject, (LayoutLike, Linear, Swizzle)):
        raise LayoutError(
            f"{notation} can express layouts only, got {type(subject).__name__} {subject!s:.60}; specs and memory"
            f" configs are written as {' or '.join(_PLACEMENT_WRITERS)}"
        )
    if isinstance(subject, Linear) and notation not in ("tilewright", "triton"):
        inputs = ", ".join(subject.inputs)
        raise LayoutError(f"{notation} has no text for a linear map from {inputs} to coordinates, which triton has")
    if isinstance(subject, LayoutLike) and notation not in ("tilewright", "cute"):
        _require_few_modes(subject, notation)
    return _WRITERS[notation](subject, **options)


def _require_few_modes(layout: LayoutLike, notation: str) -> None:
    """Raise if a layout has more modes than any array of another system; writing them takes time for each pair."""
    count = len(leaves(layout.shape))
    if layout.rank > MAX_RANK or count > _MAX_MODES:
        raise LayoutError(
            f"{notation} has at most {MAX_RANK} dimensions and {_MAX_MODES} modes within them, got {layout.rank} and"
            f" {count}; group or coalesce them first, or write it as tilewright or cute"
        )

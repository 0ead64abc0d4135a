# SPDX-License-Identifier: Apache-2.0
"""The C of kernels: its two dialects, OpenCL and CUDA, with their headers, and expressions and statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import prod
from string import Template

from tilewright.formats import BlockFormat, PowerOfTwo, ScalarFormat, SmallFloat, bfloat16

# How the loops of a nest are distributed over threads, repeats and work-groups.

SMALL_FACTORS = (2, 3, 5, 7)
MAX_PRIME_EXTENT = 16  # up to here an axis of prime extent is not split


@dataclass(frozen=True, slots=True)
class LoopAxis:
    """A loop: its extent, and its stride in bytes on each side; a stride of None comes from a table.

    >>> LoopAxis(16, (4, 64)).reach(1)
    960
    """

    extent: int
    strides: tuple[int | None, ...]

    def reach(self, side: int) -> int:
        """Return the distance in bytes from the first index to the last.

        >>> LoopAxis(3, (-8, None)).reach(0), LoopAxis(3, (-8, None)).reach(1)
        (16, 0)
        """
        return (self.extent - 1) * abs(self.strides[side] or 0)


@dataclass(frozen=True, slots=True)
class Digit:
    """A digit of the index of an axis: `count` values with a stride of `radix` indices.

    >>> Digit(axis=0, count=4, radix=2)
    Digit(axis=0, count=4, radix=2)
    """

    axis: int
    count: int
    radix: int


class BoxGrowth:
    """A box that grows along the side with the shorter run; each call of `take` returns the next digits.

    `order` has the sides, `runs` their initial runs in bytes. Runs of the target should be `lean` times as long as
    the source's.

    >>> axes = [LoopAxis(16, (4, 4)), LoopAxis(16, (512, 64)), LoopAxis(2, (64, 1024))]
    >>> growth = BoxGrowth(axes, order=(0, 1))
    >>> [(digit.axis, digit.count) for digit in growth.take(64)]
    [(0, 16), (2, 2), (1, 2)]
    """

    def __init__(
        self,
        axes: Sequence[LoopAxis],
        order: Sequence[int],
        runs: Sequence[int] | None = None,
        lean: int = 1,
    ) -> None:
        self.axes, self.lean = axes, lean
        self.sides = [_Side(axes, side, runs[side] if runs else 0) for side in order]
        self.taken = [1] * len(axes)
        self.left = [axis.extent for axis in axes]

    def take(self, limit: int) -> list[Digit]:
        """Return the next digits, with about `limit` combinations: less than twice as many.

        >>> growth = BoxGrowth([LoopAxis(37, (1, 1))], order=(0, 1))
        >>> growth.take(8), growth.left
        ([Digit(axis=0, count=8, radix=1)], [5])
        """
        digits: list[Digit] = []
        count = 1
        while count < limit:
            axis = self._next_axis()
            if axis is None:
                break
            factor = next_factor(self.left[axis])
            if count * factor >= 2 * limit:
                break
            append_digit(digits, Digit(axis, factor, self.taken[axis]))
            self.taken[axis] *= factor
            self.left[axis] = -(-self.left[axis] // factor)
            count *= factor
        return digits

    def rest(self) -> list[Digit]:
        """Return digits for the rest of all axes, in the order of the last side.

        >>> BoxGrowth([LoopAxis(5, (1, 7)), LoopAxis(7, (5, 1))], order=(0, 1)).rest()
        [Digit(axis=1, count=7, radix=1), Digit(axis=0, count=5, radix=1)]
        """
        order = self.sides[-1].order
        return [Digit(axis, self.left[axis], self.taken[axis]) for axis in order if self.left[axis] > 1]

    def _next_axis(self) -> int | None:
        candidates = [
            (side.run(self.taken) * (self.lean if side.side == 0 else 1), k)
            for k, side in enumerate(self.sides)
            if side.next_axis(self.left) is not None
        ]
        if not candidates:
            return None
        open_sides = [(run, k) for run, k in candidates if run]
        _, k = min(open_sides) if open_sides else candidates[-1]
        return self.sides[k].next_axis(self.left)


class _Side:
    """One side of a copy: its axes by increasing stride, and the run of the box there."""

    def __init__(self, axes: Sequence[LoopAxis], side: int, initial_run: int) -> None:
        self.axes, self.side, self.initial_run = axes, side, initial_run
        strides = [axis.strides[side] for axis in axes]
        unit = min((abs(stride) for stride in strides if stride), default=1)
        # Neighbours in a table are mostly neighbours in memory: right after the axis with the smallest stride.
        self.order = sorted(
            range(len(axes)), key=lambda k: (unit * 1.5 if strides[k] is None else abs(strides[k] or 0), k)
        )
        self.order.sort(key=lambda k: strides[k] == 0)

    def next_axis(self, left: Sequence[int]) -> int | None:
        return next((axis for axis in self.order if left[axis] > 1), None)

    def run(self, taken: Sequence[int]) -> int:
        """Return the bytes of the run of the box on this side, or 0 if it cannot grow."""
        run = self.initial_run
        for axis in self.order:
            stride = self.axes[axis].strides[self.side]
            if not run:
                run = abs(stride or 0)
            if not stride or abs(stride) != run:
                return 0
            run *= taken[axis]
            if taken[axis] < self.axes[axis].extent:
                return run
        return 0


def next_factor(count: int) -> int:
    """Return the factor to split an axis by: a small prime factor, all of a short axis, or 2 with a rest.

    >>> [next_factor(n) for n in (12, 9, 35, 11, 37)]
    [2, 3, 5, 11, 2]
    """
    for factor in SMALL_FACTORS:
        if count % factor == 0:
            return factor
    return count if count <= MAX_PRIME_EXTENT else 2


def append_digit(digits: list[Digit], digit: Digit) -> None:
    """Append a digit, merged with the previous one if it continues the same axis.

    >>> digits = [Digit(0, 2, 1)]
    >>> append_digit(digits, Digit(0, 2, 2))
    >>> digits
    [Digit(axis=0, count=4, radix=1)]
    """
    if digits and digits[-1].axis == digit.axis and digits[-1].radix * digits[-1].count == digit.radix:
        digits[-1] = Digit(digit.axis, digits[-1].count * digit.count, digits[-1].radix)
    else:
        digits.append(digit)


def digit_combinations(digits: Sequence[Digit]) -> int:
    """Return the number of combinations of the digits.

    >>> digit_combinations([Digit(0, 4, 1), Digit(1, 3, 1)])
    12
    """
    return prod(digit.count for digit in digits)


INT_MAX = 2**31 - 1


@cache
def read_header(name: str) -> str:
    """Return the text of a header of this package, without its licence and summary.

    >>> read_header("cuda_double").splitlines()[0]
    'typedef double f64;'
    """
    text = resources.files(__package__).joinpath("headers", f"{name}.h").read_text(encoding="utf-8")
    return text.split("\n", 2)[2]


@cache
def read_sections(name: str) -> dict[str, str]:
    """Return the sections of a header by their titles, each after a line `// == title`.

    >>> list(read_sections("conversions"))[:2]
    ['half_value', 'e4m3_value']
    """
    _, *parts = read_header(name).split("\n// == ")
    titled = [part.partition("\n") for part in parts]
    return {title: f"{text.strip()}\n" for title, _, text in titled}


@dataclass(frozen=True, slots=True)
class CDialect:
    """A dialect of C: its prelude, what float64, blocks and asynchronous copies need, whether threads can exchange
    registers (`shuffles`), and whether arguments have start offsets (`starts`).

    >>> c_dialect("cuda").shuffles, c_dialect("opencl").starts
    (True, True)
    """

    name: str
    prelude: str
    doubles: str
    blocks: str
    async_copies: str
    shuffles: bool
    starts: bool


def c_dialect(name: str, unroll: bool = True) -> CDialect:
    """Return the dialect "opencl" or "cuda"; without `unroll`, OpenCL does not unroll loops.

    >>> c_dialect("opencl").name
    'opencl'
    """
    pragma = '_Pragma("unroll")' if unroll or name == "cuda" else ""
    prelude = f"#define UNROLL {pragma}\n{read_header(name)}"
    double, blocks, async_copies = [read_header(f"{name}_{part}") for part in ("double", "blocks", "async")]
    return CDialect(name, prelude, double, blocks, async_copies, shuffles=name == "cuda", starts=name == "opencl")


@dataclass(frozen=True, slots=True)
class NamedDigit:
    """A digit and its C expression.

    >>> NamedDigit(Digit(0, 4, 1), "t0").digit.count
    4
    """

    digit: Digit
    name: str


def digit_expressions(index: str, digits: Sequence[Digit]) -> list[NamedDigit]:
    """Return the expression of each digit of an index, the first digit fastest.

    >>> [digit.name for digit in digit_expressions("i", [Digit(0, 4, 1), Digit(1, 3, 1), Digit(0, 5, 4)])]
    ['i % 4u', 'i / 4u % 3u', 'i / 12u']
    """
    named, below = [], 1
    for k, digit in enumerate(digits):
        text = index if below == 1 else f"{index} / {below}u"
        named.append(NamedDigit(digit, text if k == len(digits) - 1 else f"{text} % {digit.count}u"))
        below *= digit.count
    return named


def declare_digits(index: str, digits: Sequence[Digit], prefix: str) -> tuple[list[str], list[NamedDigit]]:
    """Return declarations of variables for the digits of an index, and the digits with these names.

    >>> declare_digits("thread", [Digit(0, 4, 1), Digit(1, 8, 1)], "t")[0]
    ['const u32 t0 = thread % 4u, t1 = thread / 4u;']
    """
    if not digits:
        return [], []
    names = [NamedDigit(digit, f"{prefix}{k}") for k, digit in enumerate(digits)]
    declarations = [f"{prefix}{k} = {digit.name}" for k, digit in enumerate(digit_expressions(index, digits))]
    return [f"const u32 {', '.join(declarations)};"], names


def product_term(name: str, stride: int, wide: bool) -> str:
    """Return the product of an index and a stride, as a signed integer.

    >>> product_term("t0", -16, False), product_term("g1", 4096, True)
    ('(i32)(t0) * -16', '(i64)(g1) * 4096')
    """
    return f"({'i64' if wide else 'i32'})({name}) * {stride}"


def offset_expression(digits: Iterable[NamedDigit], axes: Sequence[LoopAxis], side: int, constant: int = 0) -> str:
    """Return the offset in bytes of digits on one side, in 64 bits only if 32 are too few.

    >>> offset_expression([NamedDigit(Digit(0, 4, 2), "t0")], [LoopAxis(8, (4, 64))], 0)
    '(i32)(t0) * 8'
    >>> offset_expression([NamedDigit(Digit(0, 4, 2**30), "g0")], [LoopAxis(2**32, (4, 64))], 0, 64)
    '(i64)(g0) * 4294967296 + 64'
    """
    terms = [(digit, (axes[digit.digit.axis].strides[side] or 0) * digit.digit.radix) for digit in digits]
    reach = abs(constant) + sum((digit.digit.count - 1) * abs(stride) for digit, stride in terms)
    texts = [product_term(digit.name, stride, reach > INT_MAX) for digit, stride in terms if stride]
    if constant or not texts:
        texts.append(str(constant))
    return " + ".join(texts)


def index_expression(digits: Iterable[NamedDigit], axis: int) -> str:
    """Return the index along one axis.

    >>> index_expression(
    ...     [NamedDigit(Digit(0, 4, 1), "t0"), NamedDigit(Digit(1, 4, 1), "t1"), NamedDigit(Digit(0, 5, 4), "g0")], 0
    ... )
    't0 + (g0) * 4u'
    """
    texts = [
        digit.name if digit.digit.radix == 1 else f"({digit.name}) * {digit.digit.radix}u"
        for digit in digits
        if digit.digit.axis == axis
    ]
    return " + ".join(texts) or "0u"


def guard_expression(digits: Sequence[NamedDigit], axes: Sequence[LoopAxis]) -> str:
    """Return the condition that all indices are inside their axes; empty if they always are.

    >>> guard_expression([NamedDigit(Digit(0, 4, 1), "t0"), NamedDigit(Digit(0, 2, 4), "g0")], [LoopAxis(7, (4, 4))])
    't0 + (g0) * 4u < 7u'
    """
    conditions = []
    for k, axis in enumerate(axes):
        own = [digit for digit in digits if digit.digit.axis == k]
        last = sum((digit.digit.count - 1) * digit.digit.radix for digit in own)
        if last >= axis.extent:
            conditions.append(f"{index_expression(own, k)} < {axis.extent}u")
    return " && ".join(conditions)


def indent(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Return indented lines.

    >>> indent(["a"])
    ['    a']
    """
    return ["    " * depth + line for line in lines]


def unrolled_loop(name: str, count: int, body: Sequence[str]) -> list[str]:
    """Return an unrolled loop, or only its body if it runs once.

    >>> unrolled_loop("r", 2, ["go(r);"])
    ['UNROLL', 'for (u32 r = 0; r < 2u; ++r) {', '    go(r);', '}']
    """
    if count == 1:
        return ["{", *indent([f"const u32 {name} = 0;", *body]), "}"]
    return ["UNROLL", f"for (u32 {name} = 0; {name} < {count}u; ++{name}) {{", *indent(body), "}"]


def shared_loop(name: str, total: int, threads: int, condition: str, body: Sequence[str]) -> list[str]:
    """Return an unrolled loop in which `threads` threads share `total` items: `at` is an item that meets the condition.

    >>> shared_loop("r", 5, 4, "", ["go(at);"])[2:4]
    ['    const u32 at = thread + r * 4u;', '    if (at < 5u) {']
    """
    if total % threads:
        condition = " && ".join(filter(None, [f"at < {total}u", condition]))
    items = [f"const u32 at = thread + {name} * {threads}u;", *conditional(condition, body)]
    return unrolled_loop(name, -(-total // threads), items)


def conditional(condition: str, body: Sequence[str]) -> list[str]:
    """Return statements under a condition, or alone if the condition is empty.

    >>> conditional("", ["go();"]), conditional("ok", ["go();"])
    (['go();'], ['if (ok) {', '    go();', '}'])
    """
    return [f"if ({condition}) {{", *indent(body), "}"] if condition else list(body)


# Conversions of elements in C, with the same results as `formats.cast`.

_WIDEN = {
    "float64": ("f64", "double_of(x)"),
    "float32": ("f32", "float_of(x)"),
    "float16": ("f32", "half_value(x)"),
    "bfloat16": ("f32", "float_of((u32)x << 16)"),
    "float8_e4m3": ("f32", "e4m3_value(x)"),
    "float8_e5m2": ("f32", "half_value((u16)(x << 8))"),
    "int8": ("i32", "(i8)x"),
    "int16": ("i32", "(i16)x"),
    "int32": ("i32", "(i32)x"),
    "int64": ("i64", "(i64)x"),
    "uint8": ("u32", "x"),
    "uint16": ("u32", "x"),
    "uint32": ("u32", "x"),
    "uint64": ("u64", "x"),
    "bool": ("u32", "x != 0"),
}

_FROM_SINGLE = {
    "float16": "half_code",
    "bfloat16": "brain_code",
    "float8_e4m3": "e4m3_code",
    "float8_e5m2": "e5m2_code",
}


def raw_type(size: int) -> str:
    """Return the unsigned C type of `size` bytes.

    >>> raw_type(2)
    'u16'
    """
    return f"u{8 * size}"


def conversion_function(name: str, source: ScalarFormat, target: ScalarFormat) -> str:
    """Return a C function that converts the bits of one format to another.

    >>> from tilewright.formats import format_of
    >>> print(conversion_function("converted", format_of("bfloat16"), format_of("float32")))
    INLINE u32 converted(u16 x) { return bits_of(float_of((u32)x << 16)); }
    <BLANKLINE>
    """
    before, after = raw_type(source.itemsize), raw_type(target.itemsize)
    wide, value = _WIDEN[source.name]
    body = f"return {_narrow_expression(target, wide, value)};"
    if target.kind in ("int", "uint") and wide in ("f32", "f64"):
        body = f"const {wide} wide = {value}; {_truncate_statements(target, wide)}"
    elif target.name in ("float32", "float64") and wide in ("f32", "f64") and _TYPE[target.name] != wide:
        nan = "0x7fc00000u" if target.name == "float32" else "0x7ff8000000000000u"
        body = f"const {wide} wide = {value}; return wide == wide ? {_narrow_expression(target, wide, 'wide')} : {nan};"
    return "".join(_with_helpers(f"INLINE {after} {name}({before} x) {{ {body} }}\n"))


def reader_functions(name: str, element: ScalarFormat) -> tuple[str, list[str]]:
    """Return the C type for computing with a format, and the functions that convert its bits to that type.

    >>> from tilewright.formats import format_of
    >>> reader_functions("value", format_of("bfloat16"))
    ('f32', ['INLINE f32 value(u16 x) { return float_of((u32)x << 16); }\\n'])
    """
    wide, value = _WIDEN[element.name]
    return wide, _with_helpers(f"INLINE {wide} {name}({raw_type(element.itemsize)} x) {{ return {value}; }}\n")


def writer_functions(name: str, element: ScalarFormat) -> tuple[str, list[str]]:
    """Return the C type for computing with a format, and the functions that convert that type to its bits.

    >>> from tilewright.formats import format_of
    >>> writer_functions("code", format_of("int16"))
    ('i32', ['INLINE u16 code(i32 x) { return (u16)(x); }\\n'])
    """
    wide, _ = _WIDEN[element.name]
    body = f"return {_narrow_expression(element, wide, 'x')};"
    return wide, _with_helpers(f"INLINE {raw_type(element.itemsize)} {name}({wide} x) {{ {body} }}\n")


def _with_helpers(text: str) -> list[str]:
    """Return a function after the helper functions that it calls."""
    return [*[helper for name, helper in read_sections("conversions").items() if f"{name}(" in text], text]


def needs_double(*formats: object) -> bool:
    """Return whether one of the formats is float64, which some OpenCL devices lack.

    >>> from tilewright.formats import format_of
    >>> needs_double(format_of("float64"), format_of("int8"))
    True
    """
    return any(getattr(number_format, "name", "") == "float64" for number_format in formats)


_TYPE = {"float32": "f32", "float64": "f64"}


def _narrow_expression(target: ScalarFormat, wide: str, value: str) -> str:
    """Return an expression that converts a value of the C type `wide` to the bits of a format."""
    if target.name in _FROM_SINGLE:
        return f"{_FROM_SINGLE[target.name]}((f32)({value}))"
    if target.name == "float32":
        return f"bits_of((f32)({value}))" if wide != "f32" else f"bits_of({value})"
    if target.name == "float64":
        return f"double_bits((f64)({value}))"
    if target.kind == "bool":
        # bits rather than a comparison, since a device may take subnormals for zero
        if wide == "f32":
            return f"(u8)((bits_of({value}) & 0x7fffffffu) != 0)"
        if wide == "f64":
            return f"(u8)((double_bits({value}) & 0x7fffffffffffffffu) != 0)"
        return f"(u8)(({value}) != 0)"
    return f"({raw_type(target.itemsize)})({value})"


def _truncate_statements(target: ScalarFormat, wide: str) -> str:
    """Return statements that truncate; out of range becomes the nearest limit, NaN becomes 0."""
    low, high = int(target.limits.lowest), int(target.limits.highest)
    raw, bits = raw_type(target.itemsize), 8 * target.itemsize
    own = raw if target.kind == "uint" else f"i{bits}"
    suffix = "f" if wide == "f32" else ""
    lowest, highest = (f"({raw}){value & (2**bits - 1):#x}u" for value in (low, high))
    # one past the highest is a power of two and the lowest one or zero: both exact in any float
    return (
        f"if (!(wide > {float(low)!r}{suffix})) return wide == wide ? {lowest} : ({raw})0; "
        f"if (wide >= {float(high + 1)!r}{suffix}) return {highest}; return ({raw})({own})wide;"
    )


# Codes of block formats in C, with the same results as `formats.BlockFormat`, four at a time.

_WIDEN_PAIRS = """INLINE u32 four_codes_of_pairs(u32 ab, u32 cd, u32 shared) {
    return four_codes(low_half(ab), high_half(ab), low_half(cd), high_half(cd), shared);
}
"""
_INSTRUCTIONS = {"nan": ("E4M3_PAIR", "1"), "ieee": ("E5M2_PAIR", "shared < 256u")}


def counts_specials(element: BlockFormat) -> bool:
    """Return whether infinities or NaNs must not count in the largest magnitude of a block, since codes have them.

    >>> from tilewright.formats import bfloat8_b, mxfp8_e4m3
    >>> counts_specials(bfloat8_b), counts_specials(mxfp8_e4m3)
    (False, True)
    """
    return element.element.nan is not None


def packing_functions(element: BlockFormat, source: ScalarFormat) -> str:
    """Return the C functions that turn the bits of float32, or pairs of bfloat16, into scales and codes.

    >>> from tilewright.formats import bfloat8_b, float32
    >>> "u32 four_codes(" in packing_functions(bfloat8_b, float32)
    True
    """
    text, pairs = _aligned_packing(element) if element.aligned else _scaled_packing(element)
    if source != bfloat16:
        return text
    return text + (f"#ifdef PAIRS\n{pairs}#else\n{_WIDEN_PAIRS}#endif\n" if pairs else _WIDEN_PAIRS)


def unpacking_functions(element: BlockFormat, target: ScalarFormat) -> str:
    """Return the C functions that turn scales and codes into the bits of float32.

    Codes are only usual if a target of bfloat16 has their values exactly.

    >>> from tilewright.formats import bfloat8_b, float32
    >>> "u32 usual_value(" in unpacking_functions(bfloat8_b, float32)
    True
    """
    return _aligned_unpacking(element) if element.aligned else _scaled_unpacking(element, target)


def _aligned_packing(element: BlockFormat) -> tuple[str, str]:
    """Return the functions of a block float, and of pairs of bfloat16."""
    sections = read_sections("block_floats")
    exponent, m = _exponent_bits(element), element.bits - 1
    cut, top = 24 - m, (1 << m) - 1
    names = {
        "word": "INLINE" if exponent == 5 else "RARE",
        "below_half": f"{(1 << (cut - 1)) - 1:#x}",
        "cut": cut,
        "largest": top,
        "mantissa": m,
        "limit": f"{float(top << cut)}f",
        "step": f"{2.0**-cut!r}f",  # exact in decimal
        "sign": 7 - m,
    }
    titles = [f"magnitude, {exponent} exponent bits", "code", f"four codes, {exponent} exponent bits"]
    text = "".join([sections[title] for title in [*titles, f"dense, {element.bits} bits"]])
    pairs = ""
    if exponent == 8:
        pairs = Template(sections["pairs"]).substitute(
            top=f"{(0x4300 + top) * 0x10001:#x}", lift=253 + m, mask=f"{top * 0x01010101:#x}", sign=7 - m
        )
    return Template(text).substitute(names), pairs


def _aligned_unpacking(element: BlockFormat) -> str:
    sections = read_sections("block_floats")
    m = element.bits - 1
    top, bias = (1 << m) - 1, 112 if _exponent_bits(element) == 5 else 0
    return sections[f"sparse, {element.bits} bits"] + Template(sections["value"]).substitute(
        largest=top,
        mantissa=m,
        zeros=32 - m,
        bias=bias,
        hidden=1 << (m - 1),
        fraction=24 - m,
        low=m,
        span=254 - bias - m,
        mask=f"{top * 0x01010101:#x}",
        shift=31 - m,
        lift=f"{bias - (m - 1)}" if bias >= m - 1 else f"0x{(bias - (m - 1)) & 0xFFFFFFFF:x}",
    )


def _exponent_bits(element: BlockFormat) -> int:
    assert isinstance(element.scale, PowerOfTwo)
    return element.scale.bits


def _scaled_packing(element: BlockFormat) -> tuple[str, str]:
    """Return the functions of a format that rounds exact ratios, and of pairs of bfloat16."""
    sections, encoding = read_sections("scaled_blocks"), element.element
    has_power = isinstance(element.scale, PowerOfTwo)
    nan = element.scale.nan
    text = Template(sections[f"scale, {'power of two' if has_power else 'small float'}"]).safe_substitute(
        top=encoding.top_exponent, poison="" if counts_specials(element) else f"largest > 0x7f800000u ? {nan}u : "
    )
    code, codes, instruction = "code", "w", ""
    if isinstance(encoding, SmallFloat):
        lowest, cut = 127 + encoding.lowest_exponent, 23 - encoding.mantissa_bits
        text += Template(sections["code, small float"]).substitute(
            lowest=lowest, cut=cut, lift=f"{(cut << 23) - (lowest << 23 >> cut):#x}", limit=f"{encoding.largest}f"
        )
        mask = ((1 << (encoding.bits - 1)) - 1) * 0x01010101
        codes = f"(w & {mask:#x}u) | (top_bytes(a, b, c, d) & 0x80808080u) >> {8 - encoding.bits}"
        if encoding.specials in _INSTRUCTIONS:
            text += sections[f"counted, {encoding.specials}"] + sections[f"signed code, {encoding.specials}"]
            code, codes = "signed_code", "w"
            name, usual = _INSTRUCTIONS[encoding.specials]
            instruction = Template(sections["instruction"]).substitute(name=name, usual=usual)
    else:
        text += sections["code, integer"]
    text += Template(sections["four codes"]).substitute(instruction=instruction, nan=nan, code=code, codes=codes)
    pairs = sections["pairs" if has_power else "pairs, small float scale"] if element.bits == 4 else ""
    return text + _joining(element.bits, "dense"), pairs


def _joining(bits: int, name: str) -> str:
    header = "scaled_blocks" if bits == 6 else "block_floats"
    return read_sections(header)[f"{name}, {bits} bits"]


def _scaled_unpacking(element: BlockFormat, target: ScalarFormat) -> str:
    sections, encoding = read_sections("scaled_blocks"), element.element
    has_power = isinstance(element.scale, PowerOfTwo)
    text = Template(sections[f"scale, {'power of two' if has_power else 'small float'}"]).safe_substitute(
        top=0, poison=""
    )
    # products of all of these scales and any element are normal numbers
    low, high = (32, 255) if has_power and target == bfloat16 else (0, 255 if has_power else 127)
    names = {"nan": element.scale.nan, "low": low, "span": high - low}
    text += _joining(element.bits, "sparse")
    if not isinstance(encoding, SmallFloat):
        return text + Template(sections["value, integer"]).substitute(names)
    m, last = encoding.mantissa_bits, (1 << (encoding.bits - 1)) - 1
    specials, finite = "", ""
    if encoding.specials != "none":
        first = encoding.largest_code + 1
        step = 1 if encoding.specials == "nan" else 1 << m
        specials = f"if (a > {first - (encoding.specials == 'nan')}u) return sign | 0x7fc00000u;"
        if encoding.infinity is not None:
            specials += f" if (a == {encoding.infinity}u) number = sign | 0x7f800000u;"
        mask = (last + 1 - step) if step > 1 else last
        finite = f" && (((w & {mask * 0x01010101:#x}u) + {step * 0x01010101:#x}u) & 0x80808080u) == 0u"
    return text + Template(sections["value, small float"]).substitute(
        names,
        sign=encoding.bits - 1,
        last=last,
        fraction=23 - m,
        lift=253 + encoding.lowest_exponent,
        specials=specials,
        finite=finite,
        nan_scale=f"shared == {element.scale.nan}u" if has_power else f"(shared & 0x7fu) == {element.scale.nan}u",
        nan_value="0x7fc00000u" if has_power else "0x7fc00000u | shared >> 7 << 31",
        align=32 - encoding.bits,
        shift=8 - encoding.exponent_bits,
        mask=f"{1 << 31 | last << (23 - m):#x}",
    )

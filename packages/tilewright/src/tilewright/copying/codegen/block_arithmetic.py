# SPDX-License-Identifier: Apache-2.0
"""Codes of block formats in C, with the same results as `formats.BlockFormat`, four at a time.

Kernels find the largest magnitude of a block, as the bits of a float32; `scale_of` returns its scale byte, and
`four_codes` the codes of four values under it, a byte each, which `dense` joins. Two neighbours in bfloat16 are packed
without being widened where a device can compute with both at once (`four_codes_of_pairs`). Back again, `sparse` takes
four codes apart, and `usual_value` returns the bits of a float32 if `usual_codes` says so; `value` does for any code.

Codes are computed with float instructions: multiplying by a power of two aligns a value exactly, and adding a large
power of two rounds to even. Block floats truncate in between, which drops what the hardware would shift out.
"""

from __future__ import annotations

from string import Template

from ...errors import FormatError
from ...formats import BLOCK_FORMATS, BlockFormat, Format, ScalarFormat, bfloat16
from ...formats.encodings import PowerOfTwo, SmallFloat
from .c_language import read_sections

_WIDEN_PAIRS = """INLINE u32 four_codes_of_pairs(u32 ab, u32 cd, u32 shared) {
    return four_codes(low_half(ab), high_half(ab), low_half(cd), high_half(cd), shared);
}
"""
_INSTRUCTIONS = {"nan": ("E4M3_PAIR", "1"), "ieee": ("E5M2_PAIR", "shared < 256u")}


def validate_block_format(number_format: Format) -> None:
    """Raise a FormatError if there is no device code for a format: for block formats that users define.

    >>> from tilewright.formats import format_of
    >>> validate_block_format(format_of("mxfp4"))
    """
    if number_format.has_blocks and BLOCK_FORMATS.get(number_format.name) != number_format:
        raise FormatError(
            f"{number_format.name} is not supported on devices, only scalar formats and {', '.join(BLOCK_FORMATS)};"
            " use engine='reference' on the host"
        )


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

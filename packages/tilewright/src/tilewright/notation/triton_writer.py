# SPDX-License-Identifier: Apache-2.0
"""Triton's types from linear maps and from layouts of shared memory, with the encoding that people would write.

The few parameters of an encoding are read off the map, or tried; the result is written only if its own map is the
same. Other maps are written as linear encodings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, TypeAlias

from ..errors import LayoutError
from ..layout import Layout, LayoutLike, Linear, Swizzle, unflatten
from .maps import logical_extents, offset_of, stored_extents, strided_parts
from .triton import DISTRIBUTED, TritonEncoding, TritonType, element_bits, linear_of_encoding

_MAX_RANK = 5  # up to which all orders of the dimensions are tried
Images: TypeAlias = "Sequence[Sequence[int]]"
Bases: TypeAlias = "dict[str, list[tuple[int, ...]]]"
Fields: TypeAlias = dict[str, Any]  # of an encoding


def write_triton(layout: Linear | LayoutLike | Swizzle, dtype: str = "f16") -> str:
    """Return a tensor type of elements of a `dtype`: of a linear map to dimensions, or of a `layout` of shared memory.

    The map is one from register, lane, warp and block, or from offset and block; a layout, one from coordinates to
    offsets.

    >>> write_triton(Linear({"register": [(1,)], "lane": [(2,)], "warp": [], "block": []}, {"dim0": 4}))
    'tensor<4xf16, #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [2], warpsPerCTA = [1], order = [0]}>>'
    >>> write_triton(Layout((16, 64), (72, 1))).removesuffix(", #ttg.shared_memory, mutable>")
    '!ttg.memdesc<16x64xf16, #ttg.padded_shared<[64:+8] {order = [1, 0], shape = [16, 64]}>'
    """
    padding: tuple[tuple[int, int], ...] = ()
    if isinstance(layout, Linear):
        linear = layout
    elif isinstance(layout, LayoutLike):
        linear, padding = _memory_map(layout)
    else:
        raise LayoutError(f"Triton's encodings are of linear maps and of layouts of shared memory, got {layout}")
    shape, names, bits = tuple(linear.outputs.values()), set(linear.inputs), element_bits(dtype)
    if bits is None:
        raise LayoutError(f"the bits of an element of {dtype!r} are not known; give a dtype such as f16 or i32")
    if not shape:
        raise LayoutError(f"Triton's encodings are of tensors with at least one dimension, got {layout}")
    if names <= set(DISTRIBUTED):
        return str(TritonType(shape, dtype, _find_distributed(linear, shape, bits)))
    if names <= {"offset", "block"}:
        encoding = _padded_encoding(linear, shape, padding) if padding else _find_shared(linear, shape, bits)
        return str(TritonType(shape, dtype, encoding, True, "#ttg.shared_memory, mutable"))
    raise LayoutError(f"Triton's axes are register, lane, warp and block, or offset and block, got {list(names)}")


def _with_inputs(linear: Linear, names: Sequence[str]) -> Bases:
    """Return the bases of a map by input; an input that it lacks has no bases."""
    return {name: linear.bases.get(name, []) for name in names}


# Registers, lanes and warps.


def _find_distributed(linear: Linear, shape: tuple[int, ...], bits: int) -> TritonEncoding:
    bases = _with_inputs(linear, DISTRIBUTED)
    for encoding in _distributed_candidates(bases, shape, bits):
        if _means(encoding, shape, bits, bases):
            return encoding
    return TritonEncoding("linear", {name: list(map(list, images)) for name, images in bases.items()})


def _means(encoding: TritonEncoding, shape: Sequence[int], bits: int, bases: Bases) -> bool:
    """Return whether an encoding of a tensor of a shape has these bases."""
    try:
        return linear_of_encoding(encoding, shape, bits).bases == bases
    except LayoutError:  # it cannot have this shape
        return False


def _distributed_candidates(bases: Bases, shape: tuple[int, ...], bits: int) -> Iterator[TritonEncoding]:
    """Yield the encodings that may have these bases, the simplest first."""
    blocks, rank = _block_fields(bases["block"], shape), len(shape)
    if blocks is None:
        return
    yield from _blocked_candidates(bases, shape, blocks)
    yield from _matrix_candidates(bases, rank, bits, blocks)
    for operand in (0, 1):
        for parent in _blocked_candidates(bases, shape, blocks):
            yield TritonEncoding("dot_op", {"opIdx": operand, "parent": parent})
    for dimension in range(rank + 1):
        wider = {name: [_insert(image, dimension, 0) for image in images] for name, images in bases.items()}
        more_blocks = {name: [list(_insert(row, dimension, 0)) for row in rows] for name, rows in blocks.items()}
        for parent in _blocked_candidates(wider, _insert(shape, dimension, 1), more_blocks):
            yield TritonEncoding("slice", {"dim": dimension, "parent": parent})
        for parent in _matrix_candidates(wider, rank + 1, bits, more_blocks):
            yield TritonEncoding("slice", {"dim": dimension, "parent": parent})


def _insert(values: Sequence[int], position: int, value: int) -> tuple[int, ...]:
    return (*values[:position], value, *values[position:])


def _block_fields(images: Images, shape: Sequence[int]) -> Fields | None:
    """Return the field for the blocks of a cluster, counted in blocks, or None if they do not divide the tensor."""
    counts = [1] * len(shape)
    for image in images:
        counts = [2 * count if part else count for count, part in zip(counts, image, strict=True)]
    rows = []
    for image in images:
        parts = [max(1, extent // count) for extent, count in zip(shape, counts, strict=True)]
        if any(offset % part for offset, part in zip(image, parts, strict=True)):
            return None
        rows.append([offset // part for offset, part in zip(image, parts, strict=True)])
    return {"CGALayout": rows} if rows else {}


def _blocked_candidates(bases: Bases, shape: tuple[int, ...], blocks: Fields) -> Iterator[TritonEncoding]:
    """Yield blocked encodings: registers, lanes and warps step along the dimensions in order, each beyond the last."""
    remaining, rank = list(shape), len(shape)
    for image in bases["block"]:
        remaining = [extent // 2 if part else extent for extent, part in zip(remaining, image, strict=True)]
    registers = bases["register"]
    for order in _orders(rank):
        for count in range(len(registers), -1, -1):  # registers that come before the lanes
            covered, fields = [1] * rank, Fields()
            for name, images in (
                ("sizePerThread", registers[:count]),
                ("threadsPerWarp", bases["lane"]),
                ("warpsPerCTA", bases["warp"]),
            ):
                counts = _count_steps(images, order, covered, remaining)
                if counts is None:
                    break
                fields[name] = counts
            else:
                yield TritonEncoding("blocked", {**fields, "order": list(order), **blocks})


def _count_steps(images: Images, order: Sequence[int], covered: list[int], shape: Sequence[int]) -> list[int] | None:
    """Return how far images step along each dimension, in order, or None if they do not; `covered` grows with them.

    An image of nothing is a step along the next dimension that is covered already.
    """
    counts, first = [1] * len(order), 0
    for image in images:
        dimensions = [k for k, part in enumerate(image) if part]
        if not dimensions:
            dimensions = [k for k in order[first:] if covered[k] >= shape[k]][:1]
        elif len(dimensions) > 1 or image[dimensions[0]] != covered[dimensions[0]]:
            return None
        if not dimensions or order.index(dimensions[0]) < first:
            return None
        (k,) = dimensions
        first = order.index(k)
        counts[k] *= 2
        covered[k] *= 2
    return counts


def _splits(bits: int, rank: int) -> list[tuple[int, ...]]:
    """Return the ways to write a power of two, by its logarithm, as a product of `rank` powers of two."""
    if rank == 1:
        return [(1 << bits,)]
    return [(*rest, 1 << first) for first in range(bits + 1) for rest in _splits(bits - first, rank - 1)]


def _matrix_candidates(bases: Bases, rank: int, bits: int, blocks: Fields) -> Iterator[TritonEncoding]:
    """Yield the encodings of matrix instructions: of their results, then of their operands."""
    if rank not in (2, 3) or len(bases["warp"]) > 6:
        return
    results = [*_nvidia_results(bases, rank, bits, blocks)] if len(bases["lane"]) == 5 else []
    results += _mfma_results(bases, rank, blocks) if len(bases["lane"]) == 6 else _wmma_results(bases, rank, blocks)
    yield from results
    for parent in results:
        fields, columns = parent.fields, parent.fields["instrShape"][-2]
        if fields.get("isTransposed", columns == 4) != (columns == 4) or fields.get("isTranspose"):
            continue  # the result of the transposed instruction has the same operands
        if parent.name == "nvidia_mma" and fields["versionMajor"] == 3 and columns != 8:
            continue  # and so has the result of a wider one
        widths = _OPERAND_WIDTHS.get(fields.get("version", 0) if parent.name == "amd_wmma" else 0, ())
        for operand in (0,) if fields.get("versionMajor") == 3 else (0, 1):
            for width in sorted(widths, key=lambda width: width != 32 // bits):
                yield TritonEncoding("dot_op", {"opIdx": operand, "parent": parent, "kWidth": width})


# What Triton takes as kWidth, by the version of AMD's WMMA; 0 is any other instruction.
_OPERAND_WIDTHS = {0: (1, 2, 4, 8), 1: (8, 16), 2: (4, 8, 16), 3: (2, 4, 8, 16)}


def _nvidia_results(bases: Bases, rank: int, bits: int, blocks: Fields) -> Iterator[TritonEncoding]:
    for version in (2, 3):
        for split in _splits(len(bases["warp"]), rank):
            fields = {"versionMajor": version, "versionMinor": 0, "warpsPerCTA": list(split), **blocks}
            if version == 2:
                yield TritonEncoding("nvidia_mma", {**fields, "instrShape": [*[1] * (rank - 2), 16, 8]})
            elif rank == 2 and split[0] >= 4:  # the warps of a group are below each other
                for columns in (8, 16, 32, 64, 128, 256):
                    yield TritonEncoding("nvidia_mma", {**fields, "instrShape": [16, columns, 256 // bits]})


def _mfma_results(bases: Bases, rank: int, blocks: Fields) -> Iterator[TritonEncoding]:
    for instruction in ([32, 32, 8], [16, 16, 16], [4, 64, 4], [64, 4, 4], [16, 16, 4]):
        for is_transposed in (False, True):
            if (instruction[0], is_transposed) in ((4, True), (64, False)):
                continue  # Triton has no such form
            for tiles in [(1, 1), (2, 1), (1, 2), (2, 2)] if rank == 2 else [(1,) * rank]:
                for split in _splits(len(bases["warp"]), rank):
                    fields: Fields = {"version": 3, "warpsPerCTA": list(split)}
                    if max(tiles) > 1:
                        fields["tilesPerWarp"] = list(tiles)
                    fields |= {"instrShape": instruction, "isTransposed": is_transposed, **blocks}
                    if instruction[2] == 4 and instruction[0] == 16:
                        fields["elementBitWidth"] = 64  # of doubles; other elements are as in 16 x 16 x 16
                    yield TritonEncoding("amd_mfma", fields)


def _wmma_results(bases: Bases, rank: int, blocks: Fields) -> Iterator[TritonEncoding]:
    if rank != 2 or len(bases["lane"]) != 5:
        return
    warps = [[part // 16 for part in image] for image in bases["warp"]]
    for version, depth in ((1, 16), (2, 16), (3, 32), (3, 64)):
        for is_transposed in (False, True):
            for count in (0, 1, 2):  # listed registers after the registers of a tile
                registers = [[part // 16 for part in image] for image in bases["register"][3 : 3 + count]]
                layout = {"register": registers, "warp": warps} if count else {"warp": warps}
                fields = {"version": version, "isTranspose": is_transposed, "ctaLayout": layout, **blocks}
                yield TritonEncoding("amd_wmma", {**fields, "instrShape": [16, 16, depth]})


# Shared memory.


def _memory_map(layout: LayoutLike) -> tuple[Linear, tuple[tuple[int, int], ...]]:
    """Return the map from offsets to the elements of a layout of memory, and its padding, after how many elements."""
    padding: tuple[tuple[int, int], ...] = ()
    compact: Any = layout
    if layout.axes or layout.is_replicated:
        raise LayoutError(f"{layout} has several results, and Triton's shared memory has one offset")
    if isinstance(layout, Layout):
        if offset_of(layout) or 0 in stored_extents(layout) or logical_extents(layout) != stored_extents(layout):
            raise LayoutError(f"{layout} has an offset, no elements or padded extents, which no encoding of Triton has")
        compact, padding = _without_padding(layout)
    try:
        linear = Linear.of(compact)
        if not linear.is_bijective:
            raise LayoutError("two elements share an offset, or an offset has none")
        elements = linear.inverse()
    except LayoutError as problem:
        raise LayoutError(f"{layout} is not a layout of Triton's shared memory: {problem}") from None
    return elements, padding


def _without_padding(layout: Layout) -> tuple[Layout, tuple[tuple[int, int], ...]]:
    """Return a strided layout without gaps, and the gaps: after how many elements how many are left out."""
    parts = strided_parts(layout, "Triton")
    strides, count = [0] * len(parts), 1
    pairs: list[tuple[int, int]] = []
    for position in sorted(range(len(parts)), key=lambda k: (parts[k].stride, parts[k].extent)):
        part = parts[position]
        extra = part.stride - count - sum(count // interval * padding for interval, padding in pairs)
        if part.extent > 1 and (extra < 0 or (extra and count == 1)):
            return layout, ()  # elements overlap, or a gap is after every one of them
        if part.extent > 1 and extra:
            pairs.append((count, extra))
        strides[position] = count
        count *= part.extent
    if not pairs:
        return layout, ()
    flat = Layout(tuple([part.extent for part in parts]), tuple(strides))
    return unflatten(flat, layout.shape), tuple(pairs)


def _find_shared(linear: Linear, shape: tuple[int, ...], bits: int) -> TritonEncoding:
    bases = _with_inputs(linear, ("offset", "block"))
    for encoding in _shared_candidates(bases, shape, bits):
        if _means(encoding, shape, bits, bases):
            return encoding
    fields = {name: list(map(list, images)) for name, images in bases.items() if images or name == "offset"}
    return TritonEncoding("shared_linear", fields, {"alignment": 16})


def _shared_candidates(bases: Bases, shape: tuple[int, ...], bits: int) -> Iterator[TritonEncoding]:
    blocks = _block_fields(bases["block"], shape)
    if blocks is None:
        return
    for order in _orders(len(shape)):
        yield TritonEncoding("swizzled_shared", {**_phases(bases["offset"], order), "order": list(order), **blocks})
    rank = {"rank": len(shape)} if len(shape) > 2 else {}
    for width in (32, 64, 128, 0):
        for is_transposed in (False, True):
            fields = {"swizzlingByteWidth": width, "transposed": is_transposed, "elementBitWidth": bits}
            yield TritonEncoding("nvmma_shared", {**fields, **blocks, **rank})
            if (width, bits, is_transposed) == (128, 8, False):
                yield TritonEncoding("nvmma_shared", {**fields, "fp4Padded": True, **blocks, **rank})


def _phases(images: Images, order: Sequence[int]) -> dict[str, int]:
    """Return the fields of the XOR of columns with rows, which are the first and the second dimension of an order."""
    if len(order) > 1:
        columns, rows = order[:2]
        shifted = [image for image in images if image[rows] and image[columns]]
        if shifted:
            first = shifted[0]
            return {"vec": first[columns], "perPhase": first[rows], "maxPhase": 1 << len(shifted)}
    return {"vec": 1, "perPhase": 1, "maxPhase": 1}


def _padded_encoding(linear: Linear, shape: tuple[int, ...], padding: tuple[tuple[int, int], ...]) -> TritonEncoding:
    """Return the encoding of a map with padding: with an order of the dimensions, or else with its bases."""
    for interval, extra in padding:
        if extra & (extra - 1):
            raise LayoutError(f"Triton's padding is a power of two, got {extra} elements after every {interval}")
    bases = _with_inputs(linear, ("offset", "block"))
    for order in _orders(len(shape)):
        encoding = TritonEncoding("padded_shared", {"order": list(order), "shape": list(shape)}, {}, padding)
        if _means(encoding, shape, 16, bases):
            return encoding
    return TritonEncoding("padded_shared", {name: list(map(list, rows)) for name, rows in bases.items()}, {}, padding)


def _orders(rank: int) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the dimensions, the last being the fastest first."""
    return permutations(reversed(range(rank))) if rank <= _MAX_RANK else iter(())

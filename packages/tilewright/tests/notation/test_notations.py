# SPDX-License-Identifier: Apache-2.0
"""Layouts in the texts of other systems mean what was recorded from those systems, and are written back."""

import contextlib
import hashlib
import random
import re

import numpy as np
import pytest

import tilewright as tw
from tilewright import Layout, LayoutError, TilewrightError
from tilewright.layout.linear import Linear
from tilewright.notation import (
    linear_of_encoding,
    memory_layout_of_encoding,
    parse,
    parse_cute,
    parse_encoding,
    parse_mosaic,
    parse_onednn,
    parse_triton_type,
    write,
)
from tilewright.notation.maps import parse_index_map, write_index_map

from .recorded_texts import recorded


def offsets(layout, shape):
    grid = np.ix_(*[np.arange(extent) for extent in shape])
    return np.ascontiguousarray(np.broadcast_to(np.asarray(layout(*grid)), shape).astype("<i8"))


def digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


def test_xla_shapes():
    data = recorded("notations/xla/shapes.json")
    for case in data["cases"]:
        parsed = parse(case["text"])
        assert parsed.notation == "xla"
        assert str(parsed) == case.get("printed", str(parsed)), case["text"]
        assert parsed.value.padded_size == case.get("padded_elements", parsed.value.padded_size), case["text"]
        for index, offset in case.get("points", ()):
            assert parsed.layout(*index) == offset, (case["text"], index)
    for fact in data["facts"]:
        assert parse(fact["text"]).layout(*fact["index"]) == fact["offset"], fact
    for case in data["row_major_after_all"]:
        parsed = parse(case["text"])
        shape = parsed.value.shape
        assert np.array_equal(offsets(parsed.layout, shape), offsets(tw.row_major(*shape), shape)), case


def test_onednn_tags_and_their_aliases():
    data = recorded("notations/onednn/tags.json")
    for case in data["cases"]:
        tag, shape = parse_onednn(case["tag"]), tuple(case["dims"])
        layout = parse(case["tag"], shape=shape).layout
        assert str(tag) == case["tag"]
        assert 4 * int(np.prod(tag.padded_shape(shape))) == case["bytes"], case["tag"]
        assert digest(offsets(layout, shape)) == case["sha256"], case["tag"]
        padded = tag.padded_shape(shape)
        again = parse_onednn(write(tag.layout(padded), "onednn"))
        assert np.array_equal(offsets(again.layout(padded), padded), offsets(tag.layout(padded), padded)), case["tag"]
    for alias, tag in data["aliases"].items():
        assert str(parse_onednn(alias)) == tag, alias


def test_cute_texts_in_every_spelling():
    data = recorded("notations/cute/texts.json")
    for case in data["cases"]:
        for text in case["accept"]:
            parsed = parse(text)
            layout = getattr(parsed, "layout", parsed)
            places = np.asarray(layout(np.arange(case["size"]))).astype("<i8")
            assert case["sha256"] in (None, digest(places)), text
            for index, offset in case["points"]:
                assert layout(index) == offset, text
            assert parse_cute(str(parse_cute(text))).layout == layout, text
    for case in data["other_texts"]:
        parse_cute(case["text"])


def test_mlir_maps_and_memrefs():
    for case in recorded("notations/mlir/maps.json")["cases"]:
        parsed = parse(case["text"])
        if case["kind"] != "affine_map":
            assert str(parsed) == case["text"]
            for index, offset in case.get("points", ()):
                assert parsed.layout(*index) == offset, case["text"]
            continue
        for dims, *symbols, results in case["points"]:
            assert parsed.value(*dims, symbols=symbols[0] if symbols else ()) == tuple(results), case["text"]
        assert parse(str(parsed)).value == parsed.value, case["text"]


def test_tvm_index_maps():
    for case in recorded("notations/tvm/index_maps.json")["cases"]:
        index_map, shape = parse_index_map(case["text"]), case["shape"]
        assert index_map.mapped_shape(shape) == tuple(case["mapped_shape"])
        layout = parse(case["text"], shape=shape).layout
        for index, mapped, offset in case["points"]:
            assert (index_map(*index), layout(*index)) == (tuple(mapped), offset), case["name"]
        assert parse_index_map(case["printed"]) == index_map
        assert parse_index_map(write_index_map(index_map)) == index_map


def test_mosaic_tilings():
    for case in recorded("notations/mosaic/tilings.json")["cases"]:
        tiling, shape = parse_mosaic(case["text"]), case["shape"]
        assert str(tiling) == case["text"]
        assert tiling.tile_shape(shape) == tuple(case["tiled_shape"])
        assert tiling.tile_strides(case["strides"]) == tuple(case["tiled_strides"])
        stored = tw.row_major(*case["tiled_shape"])
        for index, tiled in case["points"]:
            assert tiling.tile_index(index) == tuple(tiled)
            assert tiling.layout(shape)(*index) == stored(*tiled), case["text"]


def test_linear_maps():
    def linear(record):
        bases = {name: [tuple(image) for image in images] for name, images in record["bases"]}
        return Linear(bases, dict(map(tuple, record["outs"])))

    for case in recorded("notations/triton/linear.json")["cases"]:
        if case["op"] == "compose":
            assert linear(case["first"]).then(linear(case["then"])) == linear(case["result"]), case
        elif case["op"] == "product":
            assert linear(case["left"]) * linear(case["right"]) == linear(case["result"]), case
        elif case["op"] == "invert_and_compose":
            assert linear(case["reg"]).divide(linear(case["smem"])) == linear(case["result"]), case
        else:
            value, names = linear(case), [name for name, _ in case["bases"]]
            for inputs, outputs in case["points"]:
                assert list(value(**dict(zip(names, inputs, strict=True))).values()) == outputs, case
            assert (value.is_injective, value.is_surjective, value.is_bijective) == (
                case["injective"],
                case["surjective"],
                case["invertible"],
            )
            assert value.matrix() == case["matrix"]
            for name in ("inverse", "pseudoinverse"):
                if name in case:
                    assert value.inverse() == linear(case[name]), case


def test_triton_encodings():
    for case in recorded("notations/triton/encodings.json")["cases"]:
        parsed = parse_triton_type(case["type"], case["aliases"])
        bases = case.get("linear") or {"offset": case["offset_bases"], "block": []}
        expected = {name: [tuple(image) for image in images] for name, images in bases.items() if name != "alignment"}
        assert linear_of_encoding(parsed.encoding, parsed.shape, parsed.bits).bases == expected, case
        definitions = "\n".join([f"#{name} = {value}" for name, value in case["aliases"].items()])
        text = parse(f"{definitions}\n{case['type']}")
        assert text.layout == text.memory_layout if parsed.encoding.padding else text.layout.bases == expected, case
        found = text.memory_layout
        if isinstance(found, Linear):
            assert (found.bases, parsed.encoding.padding) == (expected, ()), case
        else:  # shared memory that is strided or swizzled: coordinates to offsets, with the padding
            for k, image in enumerate(expected["offset"]):
                padding = sum([(1 << k) // interval * extra for interval, extra in parsed.encoding.padding])
                assert not any(image) or found(*image) == (1 << k) + padding, case  # no image: a gap
        for index, offset in case.get("points", ()):
            assert memory_layout_of_encoding(parsed.encoding, parsed.shape)(*index) == offset, case
            assert isinstance(found, Linear) or found(*index) == offset, case
        again = parse_encoding(str(parsed.encoding))
        assert again == parsed.encoding


def test_texts_that_are_refused():
    texts = [
        case["text"] for name in ("xla/shapes", "mlir/maps") for case in recorded(f"notations/{name}.json")["refuse"]
    ]
    texts += recorded("notations/cute/texts.json")["refuse"]
    texts += [
        "memref<4x8xf32, strided<[8]>>",
        "affine_map<(d0) -> (d0 floordiv 0)>",
        "aBcd",
        "abcd16b",
        "Tiling((0, 2))",
    ]
    texts += ["", "lambda i: [i, j]", "lambda i: [i ** 2]", "lambda i: __import__('os')", "tensor<8xf16, #missing>"]
    texts += [
        "S<3,3,3> o 0 o (8,64):(6,_1@1)",
        "lambda n, n: [n]",
        f"SW_{'1' * 5000}_0_3",
        f"(d0) -> ({' + '.join(['d0'] * 5000)})",
    ]
    texts += [f"f32[8,128]{{1,0:T{'(8,128)' * 2000}}}", f"Tiling({'(8, 8)' * 2000})", f"aB{'2b' * 2000}"]
    for text in texts:
        with pytest.raises(TilewrightError):
            assert not parse(text), text
    line = "!ttg.memdesc<64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 32, elementBitWidth = 16}>, #smem>"
    with pytest.raises(LayoutError, match="for matrices"):
        parse(line).layout  # noqa: B018
    with pytest.raises(LayoutError, match="a type with a shape around the encoding"):
        parse("#ttg.blocked<{order = [1, 0]}>")


def test_fields_of_the_wrong_kind_are_refused():
    kinds = ["5", "-1", "0", "true", "[]", "[1]", "[[1]]", "{}", "{warp = 5}", "foo", "[foo]", "[-1, -2]", "[0, 0]"]
    chance, field = random.Random(3), re.compile(r"= (\[[^=#{}]*\]|\{[^{}]*\}|-?\w+)")
    for case in recorded("notations/triton/encodings.json")["cases"]:
        text = "\n".join([*[f"#{name} = {value}" for name, value in case["aliases"].items()], case["type"]])
        for _ in range(8):
            place = chance.choice(list(field.finditer(text)))
            with contextlib.suppress(TilewrightError):
                parse(text[: place.start(1)] + chance.choice(kinds) + text[place.end(1) :]).layout  # noqa: B018


def test_what_is_written_back_is_in_the_same_notation():
    for text in ("lambda i, j: [j // 4, i, j % 4]", "affine_map<(i, j) -> (j floordiv 4, i, j mod 4)>", "1@1"):
        assert str(parse(text)) == text


def test_damaged_texts_are_refused_with_our_errors():
    sources = [case["text"] for case in recorded("notations/xla/shapes.json")["cases"][:20]]
    sources += [text for case in recorded("notations/cute/texts.json")["cases"] for text in case["accept"]]
    sources += [case["text"] for case in recorded("notations/mlir/maps.json")["cases"][:20]]
    for case in recorded("notations/triton/encodings.json")["cases"][:20]:
        sources.append(
            "\n".join([f"#{name} = {value}" for name, value in case["aliases"].items()]) + "\n" + case["type"]
        )
    sources += ["lambda n, c: [n, c // 16, c % 16]", "aBcd16b", "Tiling((64, 64)(16, 16))"]
    chance = random.Random(7)
    for _ in range(4000):
        text = list(chance.choice(sources))
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(text) + 1)
            text[place : place + chance.randint(0, 2)] = chance.choice(
                ["", "(", ")", "<", ">", ",", "9", "_", "o", "{", "-", "é", " "]
            )
        damaged = "".join(text)
        with contextlib.suppress(TilewrightError):
            str(parse(damaged))


def test_maps_need_the_shape_of_their_indices():
    for text, shape in (("() -> (0)", (4,)), ("(i, j) -> (j, i)", (4,)), ("(i) -> (i)", (0,)), ("(i)[s] -> (s)", (4,))):
        with pytest.raises(LayoutError, match="the map"):
            parse(text, shape=shape).layout  # noqa: B018
    with pytest.raises(LayoutError, match=r"beyond 64 bits|not strided"):  # NumPy 1.26 computes with such numbers
        parse(f"T.index_map(lambda i: (i + 1) % T.int64({10**20}) // T.int64(2))", shape=(4,)).layout  # noqa: B018


LAYOUTS = [
    Layout((4, 8), (8, 1)),
    Layout((4, 8), (1, 4)),
    Layout(((8, 2), (128, 3)), ((128, 3072), (1, 1024))),
    Layout(((16, 2, 2), (16, 2, 3)), ((16, 512, 3072), (1, 256, 1024))),
    Layout((2, (16, 2), 3, 5), (480, (1, 240), 80, 16)),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts_are_written_and_read_back(layout):
    shape = tuple([layout.mode(k).size for k in range(int(layout.rank))])
    for notation in ("tilewright", "cute", "mlir", "memref", "tvm", "onednn", "xla"):
        text = write(layout, notation)
        parsed = parse(text, shape=shape, notation=notation)
        again = getattr(parsed, "layout", parsed)
        assert np.array_equal(offsets(again, shape), offsets(layout, shape)), text


def test_writers_say_why_not():
    swizzled = tw.compose(tw.Swizzle(2, 0, 2), tw.row_major(4, 4))
    for notation in ("onednn", "xla", "mlir", "memref", "tvm"):
        with pytest.raises(LayoutError, match="not a strided layout"):
            write(swizzled, notation)
    with pytest.raises(LayoutError, match="gaps or overlaps"):
        write(Layout((4, 8), (16, 1)), "xla")
    with pytest.raises(LayoutError, match="cannot write 'klingon'"):
        write(Layout(4), "klingon")
    with pytest.raises(LayoutError, match="unknown notation 'klingon'"):
        parse("(4):(1)", notation="klingon")
    with pytest.raises(LayoutError, match="give it one"):
        parse("nchw").layout  # noqa: B018


def test_a_translation_has_the_element_type_of_its_source():
    expected = {
        ("bf16[4,8]{1,0}", "memref"): "memref<4x8xbf16, strided<[8, 1]>>",
        ("s8[4,8]{1,0}", "memref"): "memref<4x8xi8, strided<[8, 1]>>",
        ("u8[4,8]{1,0}", "memref"): "memref<4x8xui8, strided<[8, 1]>>",
        ("pred[4,8]{1,0}", "memref"): "memref<4x8xi1, strided<[8, 1]>>",
        ("f8e4m3fn[4,8]{1,0}", "memref"): "memref<4x8xf8E4M3FN, strided<[8, 1]>>",
        ("memref<4x8xi8>", "xla"): "s8[4,8]{1,0}",
        ("memref<4x8xbf16>", "xla"): "bf16[4,8]{1,0}",
        ("!ttg.memdesc<4x8xi1, #ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]}>, #m>", "xla"): (
            "pred[4,8]{1,0}"
        ),
        ("memref<4x8xindex>", "xla"): "f32[4,8]{1,0}",
    }
    for (text, notation), result in expected.items():
        assert write(parse(text), notation) == result, text
    assert write(parse("bf16[4,8]{1,0}"), "memref", dtype="f16") == "memref<4x8xf16, strided<[8, 1]>>"


def test_padding_is_never_left_out():
    offsets = "offset = [[0, 1], [0, 2], [0, 4], [1, 0]]"
    text = f"!ttg.memdesc<{{}}x8xf16, #ttg.padded_shared<[8:+2] {{{{{offsets}, block = {{}}}}}}>, #ttg.shared_memory>"
    assert parse(text.format(2, "[]")).layout == Layout((2, 8), (10, 1))
    with pytest.raises(LayoutError, match="the shared memory of one block"):
        parse(text.format(4, "[[2, 0]]")).layout  # noqa: B018


def test_an_attribute_without_its_type_takes_a_shape():
    blocked = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"
    assert parse(f"#b = {blocked}", (64, 64)).layout == parse(f"tensor<64x64xf16, {blocked}>").layout
    sliced = f"#ttg.slice<{{dim = 1, parent = {blocked}}}>"
    assert parse(sliced, (64,)).layout == parse(f"tensor<64xf16, {sliced}>").layout
    swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
    assert write(parse(swizzled, (8, 64)), "cute") == "Sw<3,3,3> o 0 o (8,64):(64,1)"
    assert parse("strided<[64, 1], offset: 3>", (8, 64)).layout == Layout((8, 64), (64, 1), offset=3)
    for text in (blocked, "strided<[64, 1]>"):
        with pytest.raises(LayoutError, match="or a shape"):
            parse(text)
    with pytest.raises(LayoutError, match="cute has no text for a linear map from register, lane, warp, block"):
        write(parse(blocked, (64, 64)), "cute")


def test_the_error_is_that_of_the_notation_that_the_text_looks_like():
    for text, words in {
        "garbage": "'garbage' is not a layout in any of the notations tilewright, cute",
        "(4,8):(8": "expected ',' at position 8",
        "Layout<Shape<_4": "a CuTe layout: expected ','",
    }.items():
        with pytest.raises(LayoutError, match=re.escape(words)):
            parse(text)

# SPDX-License-Identifier: Apache-2.0
"""From fields to specs and back, and the answers against the library: the page adds nothing of its own."""

import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.explorer import answers, layout_tab, reshard_tab
from tilewright.explorer import form as questions
from tilewright.explorer.form import FieldError, parse_spec, spell_spec
from tilewright.views import to_svg, to_text

from ..cases import examples

CHIPS = ("wormhole_n150", "blackhole_p150", "grayskull")
small = st.integers(1, 130)


@st.composite
def specs(draw) -> tw.TensorSpec:
    """Return a spec that the library accepts."""
    shape = (*draw(st.lists(st.integers(1, 3), max_size=2)), *draw(st.lists(small, min_size=1, max_size=2)))
    dtype = draw(st.sampled_from(["bfloat16", "float32", "bfloat8_b", "bfloat4_b", "uint8"]))
    layout = "tile" if "_b" in dtype else draw(st.sampled_from(["tile", "row_major"]))
    tile = draw(st.sampled_from([(32, 32), (16, 32), (32, 16), (16, 16)])) if layout == "tile" else None
    grid = draw(st.sampled_from([(2, 2), (8, 1), (1, 4), [((1, 1), (2, 3)), ((4, 0), (4, 1))]]))
    order = draw(st.sampled_from(["row_major", "col_major"]))
    buffer = draw(st.sampled_from(["dram", "l1"]))
    memory = draw(
        st.sampled_from(
            [
                tw.interleaved(buffer),
                tw.height_sharded(grid, None, order),
                tw.width_sharded(grid, None, order),
                tw.block_sharded((2, 3), None, order),
                tw.memory.sharded_across_dims([0], grid, order),
            ]
        )
    )
    try:
        return tw.TensorSpec(shape, dtype, layout, tile=tile, memory=memory, chip=draw(st.sampled_from(CHIPS)))
    except TilewrightError:
        return tw.TensorSpec(shape, dtype, layout, tile=tile, memory=buffer, chip=draw(st.sampled_from(CHIPS)))


@given(specs())
@examples(60)
def test_words_spell_the_spec_they_came_from(spec):
    again = parse_spec(spell_spec(spec))
    assert (again.memory.buffer_type, again.memory.sharding) == (spec.memory.buffer_type, spec.memory.sharding)
    for name in ("shape", "dtype", "page_layout", "tile", "alignment", "chip", "padded_shape"):
        assert getattr(again, name) == getattr(spec, name)
    if not spec.violations():
        assert (again.pages(base=0).rows() == spec.pages(base=0).rows()).all()


@given(specs())
@examples(40)
def test_what_ttnn_printed_fills_the_form(spec):
    words = spell_spec(spec)
    pasted = {"shape": tw.write(spec, "ttnn"), "chip": words["chip"], "dispatch": words["dispatch"], "dtype": "int32"}
    filled = parse_spec(questions.fill_pasted(pasted))
    assert questions.fill_pasted({**pasted, "circular": "64KiB"})["circular"] == "64KiB"
    assert (filled.memory.sharding, filled.dtype, filled.nbytes) == (spec.memory.sharding, spec.dtype, spec.nbytes)
    assert answers.describe_placement(pasted)["spec"]["facts"]["shape"] == words["shape"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f32[8,128]{1,0}", "states a layout and no memory of a chip"),
        ("Layout<_4,_8>", "is a layout, which the tab Layout shows"),
        ("TT_FATAL: Input (x) bad", "an error message"),
        ("potato(1", "'potato(1' is not a layout in any of the notations"),
    ],
)
def test_what_is_no_tensor_is_told_beside_the_shape(text, words):
    with pytest.raises(FieldError, match=re.escape(words)) as caught:
        answers.describe_placement({"shape": text})
    assert caught.value.field == "shape"


@given(specs(), st.data())
@examples(40)
def test_an_element_is_found_from_every_side(spec, data):
    """By its coordinate, and by the bank and address that this leads to."""
    if spec.violations():
        return
    at = tuple(data.draw(st.integers(0, n - 1)) for n in spec.shape.logical)
    words = spell_spec(spec)
    found = answers.describe_element({**words, "at": ",".join(map(str, at))})
    where = spec.where(*at)
    assert (found["page"], found["bank"], found["address"]) == (where.page, where.bank, where.address)
    assert found["steps"][0]["value"] == f"({', '.join(map(str, at))})"
    if where.bit == 0:
        back = answers.describe_element({**words, "bank": str(where.bank), "address": hex(where.address)})
        assert back["at"] == list(at)


@given(specs())
@examples(15)
def test_cores_hold_all_pages_and_no_page_twice(spec):
    if spec.violations():
        return
    words = spell_spec(spec)
    banks = spec.known_chip.banks(spec.memory.buffer_type)
    held = [answers.describe_core({**words, "bank": str(bank)}) for bank in range(banks)]
    assert sum(each["pages"] for each in held) == spec.num_pages
    table = spec.pages()
    for each in held:
        mine = table.bank == each["bank"]
        assert each["pages"] == np.count_nonzero(mine)
        for row in each["rows"]:
            assert mine[row["page"]]
            assert table.address[row["page"]] == row["address"]


@given(st.dictionaries(st.sampled_from([*questions.FIELDS, "at", "page", "core"]), st.text(max_size=12), max_size=6))
@examples(60)
def test_anything_typed_gives_an_answer_or_a_field_to_correct(words):
    asked = (
        answers.describe_placement,
        answers.describe_element,
        answers.describe_core,
        answers.placement_picture,
        answers.schedule_picture,
    )
    for ask in asked:
        with suppress(TilewrightError):  # anything else is a bug
            ask({"shape": "40x40", "chip": "wormhole_n150", **words})


def test_a_core_without_pages_says_so():
    words = {"shape": "32x32", "memory": "height_sharded", "buffer": "l1", "grid": "1x1", "chip": "wormhole_n150"}
    assert answers.describe_core({**words, "core": "5,5"})["pages"] == 0
    with pytest.raises(FieldError, match="no L1 bank"):
        answers.describe_core({**words, "core": "50,5"})


def test_a_chip_of_ones_own_has_no_words():
    chip = tw.Chip.named("wormhole_n150", harvested=2)
    with pytest.raises(tw.MemoryConfigError, match="shipped"):
        spell_spec(tw.TensorSpec((4, 4), chip=chip))


def test_the_schedule_is_that_of_the_library():
    words = {"shape": "128x64", "scheme": "duplex", "chip": "wormhole_n150", "times": "1x1x1"}
    scene = answers.schedule_picture(words)
    assert [span.label for span in scene.panels[0].spans if span.kind == "compute"] == ["0", "1", "2", "3"]
    # two buffers of a tile of 32 x 64 bfloat16
    assert scene.facts[-1].value.startswith("2 x 4096 = 8192 bytes")
    assert scene.facts[-1].tone == "good"
    with pytest.raises(FieldError, match="unknown scheme"):
        answers.schedule_picture({"shape": "128x64", "scheme": "sextuple", "chip": "wormhole_n150"})


def test_circular_buffers_that_clash_are_told():
    words = {"shape": "4096x4096", "dtype": "float32", "buffer": "l1", "chip": "wormhole_n150", "circular": "500000"}
    found = answers.describe_placement(words)
    assert not found["fit"]["fits"]
    assert "circular buffers use L1" in found["fit"]["problems"][0]
    assert found["fit"]["alternatives"]


def test_pictures_have_the_label_color_and_base_of_the_form():
    words = {"shape": "128x128", "memory": "block_sharded", "buffer": "l1", "grid": "2x2", "chip": "n150"}
    scene = answers.PICTURES["placement"]({**words, "label": "local page, host page", "color": "core", "base": "hex"})
    assert [panel.label for panel in scene.panels] == [("local page", "host page")] * 2
    assert [panel.color for panel in scene.panels] == ["core"] * 2
    assert scene.facts[-1].value == "0x16C000"
    layout = {"notation": "((2,2),(2,4)):((2,16),(1,4))", "label": "row_major", "base": "hex"}
    assert answers.PICTURES["layout"](layout).panels[1].box_rows[3] == ("0xC", "0xE")
    assert answers.PICTURES["memory"]({**words, "base": "hex"}).panels[0].hexadecimal
    for field, value in (("label", "bnak"), ("color", "bnak")):
        with pytest.raises(FieldError, match=f"{field}='bnak' is not an attribute") as problem:
            answers.PICTURES["placement"]({**words, field: value})
        assert problem.value.field == field
    with pytest.raises(FieldError, match="decimal, hex, got 'octal'"):
        answers.PICTURES["placement"]({**words, "base": "octal"})


@pytest.mark.parametrize("cuts", [None, 0, -1, (None, 1), (0, 1), (1, None)])
def test_meshes_are_spelled_as_they_are_parsed(cuts):
    mesh = tw.files.Mesh.dividing((64, 96), (2, 4), cuts)
    words = questions.spell_mesh(mesh)
    again = questions.parse_mesh(words)
    assert again.windows() == mesh.windows()
    assert parse_spec({**words, "chip": "n150"}).shape.logical == mesh.part_shape
    for device in mesh.topology.coordinates:
        steps = answers.describe_element({**words, "chip": "n150", "at": "1,2", "device": ",".join(map(str, device))})
        said = {step["name"]: step["value"] for step in steps["steps"]}
        at = tuple(a + b for a, b in zip(mesh.window_of(device).offset, (1, 2), strict=True))
        assert (said["tensor"], said["device"]) == (str(at), str(device))
        assert device in mesh.locate(at)[0]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"mesh": "0x2"}, "mesh"),
        ({"mesh": "64x64"}, "mesh"),
        ({"mesh": "1x2", "cut": "x"}, "cut"),
        ({"mesh": "1x2", "cut": "5"}, "cut"),
        ({"mesh": "1x2", "cut": "0,1,2"}, "cut"),
        ({"mesh": "1x5", "cut": "0"}, "cut"),
        ({"mesh": "1x2", "device": "9,9"}, "device"),
    ],
)
def test_impossible_meshes_name_their_field(words, field):
    with pytest.raises(FieldError) as problem:
        answers.describe_element({"shape": "64x96", "chip": "n150", **words})
    assert problem.value.field == field


def test_problems_are_said_in_the_words_of_their_field():
    tensor = {"shape": "64x96", "chip": "n150"}
    cases = (
        ("element", {**tensor, "shape": "4xfoo"}, "'4xfoo' is not a shape; write it as 1x4x60x90"),
        (
            "element",
            {**tensor, "memory": "height_sharded", "grid": "zz"},
            "'zz' is not a grid; write columns x rows as 8x4",
        ),
        ("element", {**tensor, "at": "z"}, "'z' is not the index of an element; write it as 0,0"),
        ("element", {**tensor, "bank": "0", "address": "z"}, "'z' is not an address; write 1048640 or 0x100040"),
        ("element", {**tensor, "bank": "z", "address": "1"}, "'z' is not a whole number"),
        ("reshard", {**tensor, "to_buffer": "l1", "op": "reshard"}, "leave the operation out"),
    )
    for name, words, message in cases:
        with pytest.raises(FieldError) as problem:
            answers.ANSWERS[name](words)
        assert message in str(problem.value), words
    with pytest.raises(FieldError, match="depth 0 cannot be drawn; use 1 to"):
        answers.PICTURES["schedule"]({**tensor, "scheme": "buffered", "depth": "0"})
    found = answers.ANSWERS["layout"]({"notation": "(4,8):(1@bank,4@addr)", "threads": "4:1"})
    assert "write it without names" in found["problems"]["threads"]


def test_alternatives_of_a_part_keep_the_entire_tensor():
    words = {"shape": "65536x8192", "mesh": "1x2", "cut": "0", "dtype": "float32", "buffer": "l1", "chip": "n150"}
    found = answers.describe_placement(words)
    assert not found["fit"]["fits"]
    assert {each["words"]["shape"] for each in found["fit"]["alternatives"]} == {"65536x8192"}


@given(specs(), specs(), st.sampled_from(["", "reshard", "copy", "read", "write", "jump"]), st.text(max_size=8))
@examples(60)
def test_any_reshard_is_planned_and_drawn_or_has_a_field_to_correct(source, target, operation, grid):
    words = spell_spec(source)
    to = {f"to_{name}": value for name, value in spell_spec(target).items() if name in reshard_tab.TARGET_FIELDS}
    for fields in ({**words, **to, "op": operation}, {**words, **to, "to_grid": grid}):
        with suppress(FieldError):  # anything else is a bug
            if reshard_tab.describe_reshard(fields)["empty"]:
                continue
            for name in ("flows", "links", "timeline"):
                with suppress(tw.MemoryConfigError):  # of a chip whose network or times are not known
                    scene = answers.PICTURES[name](fields)
                    assert max(map(len, to_text(scene).splitlines())) <= 80
                    answers.render_for_page(scene)
                    to_svg(scene)


LAYOUT_TEXTS = st.sampled_from(
    [
        "(4,8):(8,1)",
        "Sw<3,0,3> o (8,8):(8,1)",
        "Sw<2,0,3>",
        "4",
        "<2,2>",
        "<_,4>",
        "",
        "(2,(2,2)):(1,(2,4))",
        "4:1@bank",
    ]
) | st.text("(),:<>_0123456789 oSwLayut@", max_size=24)


@given(
    LAYOUT_TEXTS,
    st.sampled_from(["", *layout_tab.OPERATIONS, "eval"]),
    LAYOUT_TEXTS,
    LAYOUT_TEXTS,
    st.sampled_from(["", "4x4", "2x", "99999999x9", "0x0"]),
)
@examples(150)
def test_any_layout_gives_an_answer_or_a_field_to_correct(notation, operation, other, threads, tile):
    words = {"notation": notation, "op": operation, "other": other, "threads": threads, "tile": tile}
    with suppress(FieldError):  # anything else is a bug
        answer = layout_tab.describe_layout(words)
        assert set(answer["problems"]) <= set(words) | {"itemsize"}


def test_large_layouts_are_bounded():
    huge = {"notation": "(1073741824,1073741824):(1073741824,1)", "threads": "(1073741824,4):(1,1)", "tile": "16x8"}
    answer = layout_tab.describe_layout(huge)
    assert "at most" in answer["problems"]["threads"]
    assert "at most" in answer["problems"]["tile"]
    for text in ("(" * 3999, "1" * 4001, "<" + "(" * 3000 + ">", "((2," * 900 + "2" + "))" * 900):
        for words in ({"notation": text}, {"notation": "4:1", "op": "compose", "other": text}):
            with pytest.raises(FieldError):
                layout_tab.describe_layout(words)


def test_the_element_size_that_a_text_states_decides_the_banks():
    text = "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)"
    stated = layout_tab.describe_layout({"notation": text, "threads": "8:1"})
    assert stated["remedy"] is None
    assert stated["banks"]["facts"][0]["value"] == "no conflict"
    shown = {fact["name"]: fact["value"] for fact in stated["scene"]["facts"]}
    assert shown["elements"] == "2 bytes each"
    assert shown["read a column, after"] == "no conflict"
    chosen = layout_tab.describe_layout({"notation": text, "threads": "8:1", "itemsize": "4"})
    assert chosen["banks"]["facts"][0]["value"] != "no conflict"
    silent = layout_tab.describe_layout({"notation": "(32,32):(32,1)", "threads": "32:1"})
    assert "assuming elements of 4 bytes" in silent["banks"]["facts"][0]["value"]


def test_translations_name_the_element_type_that_they_assume():
    silent = layout_tab.describe_layout({"notation": "(4,8):(8,1)"})["notations"]
    assert {each["name"]: each["assumed"] for each in silent if each["assumed"]} == {
        "xla": "f32",
        "memref": "f32",
        "triton": "f16",
    }
    stated = layout_tab.describe_layout({"notation": "bf16[4,8]{1,0}"})["notations"]
    assert not any(each["assumed"] for each in stated)
    assert "memref<4x8xbf16, strided<[8, 1]>>" in [each["text"] for each in stated]

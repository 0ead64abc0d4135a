# SPDX-License-Identifier: Apache-2.0
"""The options of every scene: label, color and address are honoured in all of them, and others refused by name."""

import re

import numpy as np
import pytest

import tilewright as tw
from tilewright import views
from tilewright.copying import Placement, plan_copy
from tilewright.formats import quantization_error
from tilewright.tiling import Schedule
from tilewright.tiling.schedule import TraceSpan

from .things import allocator, scenes, spec

SUBJECTS = {
    "layout": (tw.row_major(4, 8), "itemsize, memory, side, title"),
    "composition": (tw.compose(tw.Layout(32), tw.row_major(4, 8)), "itemsize, memory, side, title"),
    "swizzle": (tw.compose(tw.Swizzle(3, 0, 3), tw.row_major(8, 8)), "banks, itemsize, side, width"),
    "tile tensor": (tw.TileTensor(np.arange(48), tw.row_major(6, 8)), "memory, side, title"),
    "tensor": (tw.Tensor.of(np.ones((4, 4), np.float32)), "side, title"),
    "plan": (plan_copy(Placement(tw.row_major(2, 3), "int8"), Placement(tw.col_major(2, 3), "int8")), "side"),
    "spec": (spec((64, 64), "bfloat16"), "at, side, title"),
    "explanation": (tw.explain(spec((64, 64), "bfloat16"), (1, 1)), "at, side, title"),
    "allocator": (allocator(), "buffer_type, each, names, side, whole"),
    "tiler": (tw.Tiler((20, 30), (8, 10)), "side, tile, title"),
    "schedule": (Schedule("double", 9), "side, tiles, times"),
    "trace": (tw.tiling.Trace([TraceSpan("import", 0, 0, 0, 9000)]), "side, title"),
    "report": (quantization_error(np.ones((2, 32)), "bfloat8_b"), "error, side"),
    "comparison": (tw.diff(np.zeros((64, 64)), np.eye(64)), "side, title"),
    "finished scene": (views.scene_of(tw.row_major(4, 8)), ""),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_an_unknown_option_is_refused_by_name(name):
    subject, own = SUBJECTS[name]
    names = ", ".join(sorted([*filter(None, own.split(", ")), "address", "color", "label"]))
    for kind in (TypeError, tw.LayoutError):
        with pytest.raises(kind, match=rf"cannot be drawn with 'hex'; its options are {re.escape(names)}$"):
            views.scene_of(subject, hex=True)


@pytest.mark.parametrize("name", SUBJECTS)
def test_an_unknown_attribute_is_refused_with_those_there_are(name):
    subject, _ = SUBJECTS[name]
    for role in ("label", "color"):
        with pytest.raises(tw.LayoutError, match=f"{role}='taste' is not an attribute of the picture of .*; it has "):
            views.scene_of(subject, **{role: "taste"})
    with pytest.raises(tw.LayoutError, match='address=\'octal\': expected "decimal" or "hex"'):
        views.scene_of(subject, address="octal")


@pytest.mark.parametrize("name", sorted(scenes()))
def test_every_attribute_can_label_and_color(name):
    scene = scenes()[name]
    for panel in scene.panels:
        if isinstance(panel, views.Tracks):
            continue
        for field in panel.fields:
            chosen = views.scene_of(scene, label=field.name, color=field.name)
            having = [
                p for p in chosen.panels if isinstance(p, views.Grid) and field.name in [f.name for f in p.fields]
            ]
            assert having
            assert {(grid.label, grid.color) for grid in having} == {(field.name, field.name)}
            assert views.to_text(chosen)
            assert views.to_svg(chosen)


def test_attributes_of_spans():
    scene = views.scene_of(Schedule("duplex", 4), label=("kind", "name"), color="name")
    span = scene.panels[0].spans[0]
    assert (span.label, span.kind) == ("import 0", "0")
    unlabelled = views.scene_of(Schedule("duplex", 4)).panels[0].spans[0]
    assert (unlabelled.label, unlabelled.kind) == ("0", "import")


@pytest.mark.parametrize("name", sorted(scenes()))
def test_hexadecimal_addresses_change_nothing_else(name):
    scene = scenes()[name]
    again = views.scene_of(scene, address="hex")
    assert views.scene_of(again, address="hex") == again
    assert views.scene_of(scene, address="decimal") == scene
    text = views.to_text(again)
    for panel in again.panels:
        if isinstance(panel, views.Tracks):
            assert panel.hexadecimal == (panel.unit == "bytes")
            continue
        axes = panel.row_axis.split(",")
        for row_name in panel.row_names:
            for axis, part in zip(axes, row_name.split(","), strict=False):
                if axis in ("offset", "address", "addr"):
                    assert re.fullmatch(r"-?0x[0-9A-F]+", part)
    assert views.to_svg(again)
    assert views.to_html(again)
    assert text


def test_hexadecimal_addresses_everywhere_they_are_written():
    scene = views.scene_of(spec((128, 128), "bfloat16"), at=(70, 100), address="hex", label="address")
    text, svg, page = views.to_text(scene), views.to_svg(scene), views.to_html(scene)
    first = spec((128, 128), "bfloat16").address_on_empty_chip
    for words in (text, svg):
        assert f"0x{first:X}" in words
        assert str(first) not in words
    assert '"forms":{' in page
    facts = {fact.name: fact.value for fact in scene.facts}
    where = spec((128, 128), "bfloat16").where(70, 100)
    assert facts["address"] == f"0x{where.address:X} = buffer 0x{first:X} + 0x{where.offset:X}"
    assert facts["address on an empty chip"] == f"0x{first:X}"
    memory = views.scene_of(allocator(), address="hex")
    assert memory.note.startswith("Addresses 0x")
    assert not re.search(r"\d{6}", memory.note)
    assert all(f"0x{span.start:X} to 0x{span.end:X}" in span.note for span in memory.panels[0].spans)


def test_a_label_that_does_not_fit_is_mentioned():
    scene = views.scene_of(spec((2048, 2048), "bfloat16", tw.height_sharded((8, 8))), label="held")
    assert "held does not fit in 40 columns" in views.to_text(scene, 40)
    for width in (80, 120):  # in two bands, and in one
        text = views.to_text(scene, width)
        assert "does not fit" not in text
        assert all(f"P{64 * core}-P{64 * core + 63}" in text for core in range(64))


def test_cores_hold_their_pages_however_the_tensor_is_sharded():
    for memory in (
        tw.height_sharded((2, 2), (64, 128)),
        tw.width_sharded((3, 1)),
        tw.block_sharded((3, 2)),
        tw.nd_sharded((32, 64), (2, 1)),
        tw.nd_sharded((64, 32), [((1, 1), (2, 1)), ((4, 2), (4, 2))]),
        tw.height_sharded((4, 1), buffer_type="dram"),
    ):
        placed = spec((200, 120), "bfloat16", memory)
        cores = views.scene_of(placed).panels[1]
        held: dict[tuple[int, int], list[int]] = {}
        on_chip = placed.memory.buffer_type.is_l1
        for title, box in zip(cores.box_titles, [box for row in cores.box_grids() for box in row], strict=True):
            x, *y = (int(n) for n in re.findall(r"\d+", title))
            held[x, y[0] if on_chip else 0] = [page for page in box.field("page").values if page is not None]
        wanted = {tuple(core): pages for core, pages in placed.pages().by_core().items()}
        assert {core: pages for core, pages in held.items() if pages} == wanted, memory


def test_side_by_side():
    one, other = tw.row_major(2, 2), tw.col_major(2, 2)
    scene = views.side_by_side(one, views.scene_of(other), title="two orders", label="offset")
    assert scene.title == "two orders"
    assert [panel.title for panel in scene.panels] == ["A: coordinates", "A: memory", "B: coordinates", "B: memory"]
    assert scene.breaks == (2,)
    assert [fact.name for fact in scene.facts][:2] == ["A: layout", "A: elements"]
    with pytest.raises(tw.LayoutError, match="at least one object"):
        views.side_by_side()


def test_memory_is_numbered_in_bytes():
    memory = views.scene_of(tw.row_major(4, 8), itemsize=4, address="hex").panels[1]
    assert (memory.row_axis, memory.row_names) == ("address", ("0x0", "0x20", "0x40", "0x60"))
    assert memory.column_names[:3] == ("+0", "+4", "+8")
    tiles = views.scene_of(tw.TensorSpec((4, 8), "float32", "tile", tile=(2, 2)), address="hex").panels[1]
    assert tiles.box_rows[3] == ("0x30", "0x38")
    with pytest.raises(tw.LayoutError, match="itemsize of at least 1 byte, got 0"):
        views.scene_of(tw.row_major(4, 8), itemsize=0)


@pytest.mark.parametrize("color", ["row", "column"])
def test_rows_and_columns_color_cells_whatever_they_are_called(color):
    mesh = tw.files.Mesh.dividing((64, 96), (2, 2, 2), (None, 1, 0))  # rows of devices are called 0,0 to 1,1
    assert views.to_svg(views.scene_of(mesh, color=color)).startswith("<svg")
    assert views.to_text(views.scene_of(mesh, label=color))

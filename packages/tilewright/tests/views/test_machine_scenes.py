# SPDX-License-Identifier: Apache-2.0
"""Scenes of machines and of tiles in motion, against what specs, allocators, tilers and schedules say themselves."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import views
from tilewright.notation import parse_sharding
from tilewright.tiling import Input, Output, Schedule

from ..cases import examples
from ..memory.strategies import specs
from .things import allocator, spec

PLACED = {
    "interleaved": spec((100, 150), "bfloat16"),
    "in L1": spec((3, 70, 40), "float32", "l1"),
    "block": spec((1, 4, 60, 90), "bfloat8_b", tw.block_sharded((8, 8))),
    "height": spec((256, 128), "bfloat16", tw.height_sharded((4, 2))),
    "rows": tw.TensorSpec((96, 64), "bfloat16", chip="wormhole_n150"),
    "uneven": spec((200, 200), "bfloat16", tw.block_sharded((3, 2))),
    "too large": spec((16384, 8192), "float32", tw.height_sharded((2, 1))),
}


@pytest.mark.parametrize("name", PLACED)
def test_every_page_is_where_the_spec_says(name):
    placed = PLACED[name]
    pages, holders = views.scene_of(placed).panels
    table = placed.pages(base=0 if name == "too large" else None)
    if name == "too large":
        assert any(fact.name == "does not fit" for fact in views.scene_of(placed).facts)
        return
    assert pages.field("page").values == tuple(range(placed.num_pages))
    assert pages.field("bank").values == tuple(table.bank.tolist())
    assert pages.field("address").values == tuple(table.address.tolist())
    # both ends know each other
    for page in range(placed.num_pages):
        row, column = divmod(holders.link.index(pages.link[page]), holders.columns)
        if holders.boxes is not None:
            high, wide = holders.boxes
            title = holders.box_titles[row // high * (holders.columns // wide) + column // wide]
            assert title == f"Core ({table.core_x[page]},{table.core_y[page]})"
            assert holders.cell(row, column).attributes["address"] == table.address[page]
        elif placed.memory.is_sharded:
            assert (column, row) == (table.core_x[page], table.core_y[page])
        else:
            found = holders.cell(row, column).attributes
            assert (found["bank"], found["address"]) == (table.bank[page], table.address[page])
            address, *first = holders.row_name(row).split(",")  # many banks are folded
            assert address == str(table.address[page])
            assert int(holders.column_name(column)) + int(*first or [0]) == table.bank[page]


@pytest.mark.parametrize("name", ["interleaved", "block", "height", "rows"])
def test_the_marked_element_is_on_its_way(name):
    placed = PLACED[name]
    at = tuple(n // 2 for n in placed.shape.logical)
    where = placed.where(*at)
    scene = views.scene_of(placed, at=at)
    pages = scene.panels[0]
    (mark,) = [box for box in pages.outlines if box.kind == "mark"]
    assert pages.cell(mark.row, mark.column).attributes["page"] == where.page
    assert pages.cell(mark.row, mark.column).attributes["bank"] == where.bank
    assert any(box.kind == "mark" for box in scene.panels[-1].outlines)
    facts = {fact.name: fact.value.strip() for fact in scene.facts}
    assert facts["address"].startswith(str(where.address))


def test_shards_are_outlined():
    grid = views.scene_of(PLACED["height"]).panels[0]
    assert [(box.row, box.rows, box.columns) for box in grid.outlines] == [(row, 1, 4) for row in range(8)]


def test_bytes_of_a_memory_map_add_up():
    holder = allocator()
    view = holder.memory_view("l1")
    (tracks,) = views.memory_scene(holder, each=True, whole=True).panels
    assert len(tracks.names) == view.num_banks
    for bank in range(view.num_banks):
        spans = sorted((span.start, span.end) for span in tracks.spans if span.track == bank)
        assert spans[0][0] == tracks.start
        assert spans[-1][1] == tracks.end
        assert all(a[1] == b[0] for a, b in itertools.pairwise(spans))
    for block in view.allocations:
        users = {span.track for span in tracks.spans if span.link == block.number and not span.hatched}
        assert users == set(block.spec.pages().bank.tolist())


def test_banks_alike_share_a_lane():
    (tracks,) = views.memory_scene(allocator()).panels
    assert len(tracks.names) == 2


@given(st.integers(1, 20), st.integers(1, 8), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2))
def test_reads_are_counted_tile_by_tile(space, tile, overlap, before, after):
    if tile <= overlap:
        tile = overlap + 1
    try:
        tiler = tw.Tiler((space, 5), (tile, 2), overlap=(overlap, 0), augmentation=((before, after), (0, 0)))
    except tw.LayoutError:
        return
    grid = views.tiler_scene(tiler).panels[0]
    assert grid.rows == space + before + after
    for row in range(grid.rows):
        for column in range(grid.columns):
            at = (row - before, column)
            holding = [
                k
                for k, box in enumerate(tiler)
                if all(a <= c < b for a, c, b in zip(box.offset, at, box.end, strict=True))
            ]
            cell = grid.cell(row, column)
            assert cell.attributes["reads"] == len(holding)
            assert cell.attributes["tile"] in holding
            assert cell.valid == (0 <= at[0] < space)


@pytest.mark.parametrize("scheme", ["duplex", "double", "simplex", "direct", "buffered"])
def test_a_schedule_is_played_in_order(scheme):
    units, buffers = views.scene_of(Schedule(scheme, 7, inputs=2 if scheme != "direct" else 1), times=(1, 2, 1)).panels
    over = {(span.kind, span.label): span.end for span in units.spans}
    for span in units.spans:
        if span.kind == "compute":
            assert span.start >= over["import", span.label]
        if span.kind == "export" and scheme != "direct":
            assert span.start >= over["compute", span.label]
    for track in range(len(buffers.names)):  # a buffer has one user at a time, but for its several operands
        found = sorted({(s.start, s.end, s.label, s.kind) for s in buffers.spans if s.track == track})
        for a, b in itertools.pairwise(found):
            assert b[0] >= a[1] or (a[2], a[3]) == (b[2], b[3])


def test_things_in_motion_show_themselves(capsys):
    a, b = np.arange(64.0).reshape(8, 8), np.zeros((8, 8))
    tiler, trace = tw.Tiler((8, 8), (4, 4)), tw.tiling.Trace()
    pipeline = tw.Pipeline([Input(a, tiler)], [Output(b, tiler)])
    pipeline.run(lambda x, y: np.copyto(y, x), trace=trace)
    device = tw.Device("wormhole_n150")
    for thing in (tiler, pipeline, pipeline.schedule(), trace, PLACED["block"], allocator(), device):
        assert thing._repr_html_().startswith("<div")
        thing.show()
        assert capsys.readouterr().out
    with pytest.raises(tw.LayoutError, match="empty trace"):
        views.trace_scene(tw.tiling.Trace())


@given(
    st.integers(1, 12), st.integers(1, 9), st.integers(0, 4), st.integers(0, 3), st.sampled_from(["row_major", "snake"])
)
def test_what_tiles_read_is_counted(space, tile, overlap, beyond, order):
    try:
        tiler = tw.Tiler((space, 2 * space), (tile, tile + 2), min(overlap, tile - 1), beyond, order)
    except tw.LayoutError:
        return
    read = sum(np.prod(each.shape) for each in tiler) / (2 * space * space)
    facts = {fact.name: fact.value for fact in views.scene_of(tiler).facts}
    assert facts["read amplification"] == f"{read:.3g}"


def test_a_tiler_of_very_many_tiles_is_drawn_without_counting_them():
    assert views.scene_of(tw.Tiler((10**12, 10**12), (1, 1))).facts[0].value.startswith(f"{10**24} = ")


def test_kinds_of_banks_and_of_unused_memory_are_told_apart():
    chip = tw.Allocator("wormhole_n150")
    everywhere = tw.TensorSpec((512, 512), "bfloat16", "tile", memory="l1", chip="wormhole_n150")
    chip.allocate(everywhere)
    assert "all of them hold the same" in views.memory_scene(chip).facts[0].value
    chip.allocate(everywhere.with_memory(tw.height_sharded((2, 1))))
    scene = views.memory_scene(chip)
    assert "which hold 2 sets of tensors" in scene.facts[0].value
    hatched = {span.kind for span in scene.panels[0].spans if span.hatched}
    assert hatched == {"free", "allocated, unused"}
    text, svg = views.to_text(scene), views.to_svg(scene)
    assert "/ free" in text
    assert "x allocated, unused" in text
    for kind in hatched:
        assert kind in svg
    assert svg.count('class="tw-hatch"') == 4  # either, in the picture and in its legend


def test_shards_are_labelled_alike_however_many_digits():
    """Not up to shard 9 where two digits are too wide, and no further."""
    seen = set()
    for grid, width in (((8, 2), 1856), ((8, 2), 2880), ((4, 4), 2048)):
        memory = tw.block_sharded(grid)
        placed = tw.TensorSpec((2048, width), "bfloat16", "tile", memory=memory, chip="wormhole_n150")
        pages = views.Scene("", views.spec_scene(placed, side=64).panels[:1])
        svg = views.to_svg(pages)
        count = len(pages.panels[0].outlines)
        full = [number for number in range(count) if f">shard {number}<" in svg]
        assert full in ([], list(range(count)))
        if not full:
            assert all(f">{number}<" in svg for number in range(count))
        seen.add(bool(full))
    assert seen == {False, True}


@examples(40)
@given(specs())
def test_pictures_of_pages_say_what_the_table_of_pages_says(placed):
    """Though they look only at what they draw, and count the rest."""
    table = placed.pages()
    pages, holders = views.spec_scene(placed, side=16).panels
    for name, column in (("bank", table.bank), ("address", table.address)):
        shown = dict(zip(pages.field("page").values, pages.field(name).values, strict=True))
        assert all(column[page] == value for page, value in shown.items())
    if holders.boxes is not None:
        high, wide = holders.boxes
        on_l1, across = placed.memory.buffer_type.is_l1, holders.columns // wide
        found = {page: k for k, page in enumerate(holders.field("page").values) if page is not None}
        assert sorted(found) == list(range(placed.num_pages))
        for page, k in found.items():
            title = holders.box_titles[k // holders.columns // high * across + k % holders.columns // wide]
            x, y = int(table.core_x[page]), int(table.core_y[page])
            assert title == (f"Core ({x},{y})" if on_l1 else f"Bank {x}")
    elif placed.memory.is_sharded:
        at = {core: k for k, core in enumerate(holders.link)}
        held = np.zeros(len(at), dtype=int)
        np.add.at(held, [at[f"{x},{y}"] for x, y in zip(table.core_x.tolist(), table.core_y.tolist(), strict=True)], 1)
        assert held.tolist() == list(holders.field("pages").values)
    elif "pages" in [field.name for field in holders.fields]:
        assert np.bincount(table.bank, minlength=len(placed.banks)).tolist() == list(holders.field("pages").values)
    else:
        count = len(placed.banks)
        rows = np.array([-1 if page is None else page for page in holders.field("page").values]).reshape(-1, count)
        for page, bank in enumerate(table.bank.tolist()):
            assert page in rows[:, bank]


@pytest.mark.parametrize("cuts", [None, 0, -1, (None, 1), (0, 1), (1, 0), (0, 0)])
def test_every_device_of_a_mesh_is_drawn_with_its_part(cuts):
    mesh = tw.files.Mesh.dividing((8, 64, 96), (2, 4), cuts)
    devices, tensor = views.scene_of(mesh).panels
    boxes = list(mesh.windows())
    for device in mesh.topology.coordinates:
        drawn = devices.cell(*device).attributes
        assert drawn["device"] == ",".join(map(str, device))
        assert boxes[drawn["part"]] == mesh.window_of(device)
        first = mesh.windows()[boxes[drawn["part"]]][0]
        assert drawn["held"] == (f"part {drawn['part']}" if first == device else f"= {first[0]},{first[1]}")
    assert sorted(part for part in tensor.field("part").values if part is not None) == list(range(len(boxes)))
    assert {value.split()[0] for value in tensor.field("device").values} <= set(devices.field("device").values)
    assert views.to_text(views.scene_of(mesh))


def test_every_device_of_a_sharding_is_drawn_with_its_part():
    sharding = parse_sharding("{devices=[3,1,2]5,1,2,0,4,3 last_tile_dim_replicate}").on((4, 6))
    scene = views.scene_of(sharding, at=(2, 0))
    devices, tensor = scene.panels
    holds = {
        cell["device"]: cell["holds"] for cell in [devices.cell(at, k).attributes for at in range(3) for k in range(2)]
    }
    assert holds == {"5": "[0:2, 0:6]", "1": "[0:2, 0:6]", "2": "[2:4, 0:6]", "0": "[2:4, 0:6]", "4": None, "3": None}
    assert devices.field("held").values == ("part 0", "= 5", "part 1", "= 2", None, None)
    assert tensor.field("device").values == ("5 1", "2 0")
    assert [(box.row, box.column) for box in devices.outlines] == [(1, 0), (1, 1)]
    assert {fact.name: fact.value for fact in scene.facts}["mesh"] == "axis_0 = 3, axis_1 = 2"


def test_a_sharding_that_cannot_be_drawn_says_why():
    with pytest.raises(tw.LayoutError, match=r"shape \[0\]: it has no elements"):
        views.scene_of(parse_sharding("{devices=[2]<=[2]}"), shape=(0,))
    with pytest.raises(tw.LayoutError, match=r"at most 4096 devices, got 5000; use \.windows\(shape\)"):
        views.scene_of(parse_sharding("{devices=[5000]<=[5000]}"), shape=(5000,))
    with pytest.raises(tw.LayoutError, match="does not state the shape of its tensor"):
        views.scene_of(parse_sharding("{devices=[2]<=[2]}"))


def test_a_mesh_marks_where_an_element_is():
    mesh = tw.files.Mesh.dividing((64, 96), (2, 4), (None, 1))
    part = tw.TensorSpec(mesh.part_shape, "bfloat8_b", chip="n150")
    scene = views.mesh_scene(mesh, spec=part, at=(33, 50))
    marked = [(box.row, box.column) for box in scene.panels[0].outlines if box.kind == "mark"]
    assert marked == list(mesh.locate((33, 50))[0])
    assert [(box.row, box.column) for box in scene.panels[1].outlines] == [(0, 2)]
    assert scene.panels[2].title == "each part: pages of 32 x 32 elements"
    assert {fact.name: fact.value for fact in scene.facts}["element"] == "(33, 2)"

# SPDX-License-Identifier: Apache-2.0
"""Pictures that count: every label, size and padding in them is what `where`, `pages` and `fit` answer."""

import json
import re
from math import ceil, prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import views
from tilewright.files import Tensorbin, inspect, write_tensorbin
from tilewright.formats import format_of
from tilewright.memory import explain
from tilewright.views.scene_options import cell_labels

from ..cases import examples
from ..memory.strategies import specs as placed_specs
from .pictures import drawn_grids

ANY_TILES = ((32, 32), (16, 32), (32, 16), (1, 16), (2, 2), (3, 5), (4, 1), (40, 40), (2, 32))
ANY_FORMATS = ("uint8", "bfloat16", "float32", "bfloat8_b", "bfloat4_b")


@st.composite
def unplaced_specs(draw):
    """Return specs without a chip: one to four dimensions, rows and tiles of any shape, few of them divided evenly."""
    shape = (
        *draw(st.lists(st.integers(1, 3), max_size=2)),
        *draw(st.lists(st.integers(1, 37), min_size=1, max_size=2)),
    )
    tile = draw(st.sampled_from((None, *ANY_TILES)))
    dtype = draw(st.sampled_from(ANY_FORMATS))
    if tile is None:
        assume(not format_of(dtype).has_blocks)
        return tw.TensorSpec(shape, dtype, "row_major")
    transpose = draw(st.booleans()) and tw.Tile(tile).face_shape[0] == tw.Tile(tile).face_shape[1]
    try:
        return tw.TensorSpec(shape, dtype, "tile", tile=tw.Tile(tile, transpose))
    except tw.MemoryConfigError:  # blocks need faces that they divide
        return tw.TensorSpec(shape, "float32", "tile", tile=tw.Tile(tile, transpose))


def page_of(spec, page):
    """Return the shard, the page in its bank, and the row and column of the first element of a page."""
    first, _ = spec.coordinate_of(page, 0)
    row = int(np.ravel_multi_index((0, *first[:-1]), (1, *spec.padded_shape[:-1])))
    return row, first[-1]


def wheres(spec):
    """Return where one element of every page is that holds data."""
    found = {}
    for page in range(spec.num_pages):
        for element in range(spec.page_elements):
            coordinate, is_data = spec.coordinate_of(page, element)
            if is_data:
                found[page] = spec.where(*coordinate[len(coordinate) - spec.shape.rank :])
                break
    return found


def facts_of(scene):
    return {fact.name: fact.value for fact in scene.facts}


def check_rendered(scene):
    """Compare JSON, SVG and text of a scene with its cells."""
    data = json.loads(views.to_json(scene))
    text = views.to_text(scene, width=4000, height=4000)
    assert data["facts"] == [{"name": each.name, "value": each.value, "tone": each.tone} for each in scene.facts]
    for each in scene.facts:
        assert re.sub(r"\s+", "", f"{each.name}{each.value}") in re.sub(r"\s+", "", text)
    drawn = drawn_grids(views.to_svg(scene))
    grids = [panel for panel in scene.panels if isinstance(panel, views.Grid)]
    assert len(drawn) == len(grids)
    for grid, found, stored in zip(grids, drawn, data["panels"], strict=True):
        for field, written in zip(grid.fields, stored["fields"], strict=True):
            assert written["values"] == list(json.loads(json.dumps(field.values)))
        assert stored["valid"] == list(grid.valid)
        labels = cell_labels(grid, *grid.labels)
        colored = cell_labels(grid, grid.color)  # instead, where they are too long
        for (row, column), words in found.labels.items():
            assert words[0] in (labels[row * grid.columns + column], colored[row * grid.columns + column])
        if grid.boxes is None:
            visible = [label for k, label in enumerate(labels) if label and (not grid.valid or grid.valid[k])]
            rest = iter(re.findall(r"[^\s│\[\]/]+", text))
            assert all(any(word == part for part in rest) for label in visible for word in label.split())


@given(placed_specs(), st.data())
@examples(60)
def test_pages_are_drawn_where_they_are(spec, data):
    scene = views.spec_scene(spec)
    pages, holders = scene.panels
    table, shard_of = spec.pages(), spec.paging.shard_table()[0] if spec.memory.is_sharded else None
    per_bank = {}
    for page, bank, address in zip(table.page.tolist(), table.bank.tolist(), table.address.tolist(), strict=True):
        per_bank.setdefault(bank, []).append((address, page))
    slots = {
        page: (address - spec.address_on_empty_chip) // spec.aligned_page_bytes
        for v in per_bank.values()
        for address, page in v
    }
    for page, where in wheres(spec).items():
        assert where.bank == table.bank[page]
        assert tuple(where.core) == (table.core_x[page], table.core_y[page])
        assert where.address - where.byte == table.address[page]

    def check_cell(cell):
        got = cell.attributes
        page = got["page"]
        assert got["bank"] == table.bank[page]
        assert got["address"] == table.address[page]
        assert got["host page"] == page
        assert got["local page"] == slots[page]
        if "core" in got:
            assert got["core"] == f"{table.core_x[page]},{table.core_y[page]}"
        assert got.get("shard") == (None if shard_of is None else shard_of[page])

    drawn = []
    for row in range(pages.rows):
        for column in range(pages.columns):
            cell = pages.cell(row, column)
            assert cell.valid == (cell.attributes["page"] is not None)
            if cell.valid:
                drawn.append(cell.attributes["page"])
                check_cell(cell)
                if pages.row_axis == "row":
                    assert (int(pages.row_name(row)), int(pages.column_name(column))) == page_of(spec, drawn[-1])
                else:
                    assert int(pages.row_name(row)) + int(pages.column_name(column)) == drawn[-1]
    assert drawn == sorted(set(drawn))
    if not scene.note:
        assert drawn == list(range(spec.num_pages))
    names = [field.name for field in holders.fields]
    held = {bank: len(found) for bank, found in per_bank.items()}
    if "page" in names:
        found = [k for k, page in enumerate(holders.field("page").values) if page is not None]
        assert sorted(holders.field("page").values[k] for k in found) == list(range(spec.num_pages))
        for k in found:
            row, column = divmod(k, holders.columns)
            check_cell(holders.cell(row, column))
            assert holders.cell(row, column).valid
            page = holders.field("page").values[k]
            if holders.boxes is not None:
                high, wide = holders.boxes
                title = holders.box_titles[row // high * (holders.columns // wide) + column // wide]
                x, y = table.core_x[page], table.core_y[page]
                assert title == (f"Core ({x},{y})" if spec.memory.buffer_type.is_l1 else f"Bank {table.bank[page]}")
            elif holders.row_axis == "address":
                assert int(holders.row_name(row)) == table.address[page]
                assert int(holders.column_name(column)) == table.bank[page]
            else:
                address, bank = map(int, holders.row_name(row).split(","))
                assert (address, bank + int(holders.column_name(column))) == (table.address[page], table.bank[page])
    elif "shards" in names:
        counts = {k: n for k, n in enumerate(holders.field("pages").values) if n}
        by_core = {}
        for x, y in zip(table.core_x.tolist(), table.core_y.tolist(), strict=True):
            by_core[y * holders.columns + x] = by_core.get(y * holders.columns + x, 0) + 1
        assert counts == by_core
        assert [n * spec.aligned_page_bytes for n in holders.field("pages").values] == list(
            holders.field("bytes").values
        )
    else:
        assert {k: n for k, n in enumerate(holders.field("pages").values) if n} == held
    facts, (fitted,) = facts_of(scene), spec.fit().tensors
    assert facts["bytes"].startswith(f"{fitted.total_bytes}, of which {fitted.padding_bytes} padding (")
    assert facts["padded shape"] == " x ".join(map(str, spec.padded_shape))
    assert facts["pages"] == f"{spec.num_pages} of {spec.page_bytes} bytes ({spec.aligned_page_bytes} with alignment)"
    assert int(facts["address on an empty chip"]) == spec.address_on_empty_chip == fitted.address
    most, mean = max(held.values()), spec.num_pages / len(spec.banks)
    assert facts["imbalance"] == f"{most / mean:.2f} (max/mean)"
    (tone,) = [fact.tone for fact in scene.facts if fact.name == "imbalance"]
    if most == ceil(mean):
        assert tone != "bad"
    if spec.num_pages <= 200:
        check_rendered(scene)


@given(placed_specs(), st.data())
@examples(40)
def test_an_element_is_marked_where_it_is(spec, data):
    at = tuple(data.draw(st.integers(0, n - 1)) for n in spec.shape.logical)
    where = spec.where(*at)
    scene = views.spec_scene(spec, at=at)
    pages, page, holders = scene.panels
    for line in str(where).splitlines():
        name, _, value = line.partition(" ")
        assert facts_of(scene)[name] == value.strip()
    for grid, name, wanted in (
        (page, "element", ",".join(map(str, at))),
        *(((pages, "page", where.page),) if not scene.note else ()),
        *(((holders, "page", where.page),) if any(field.name == "page" for field in holders.fields) else ()),
    ):
        (mark,) = [box for box in grid.outlines if box.kind == "mark"]
        assert grid.cell(mark.row, mark.column).attributes[name] == wanted


@given(placed_specs(), st.data())
@examples(40)
def test_the_elements_of_a_page_are_drawn_where_they_are(spec, data):
    number = data.draw(st.integers(0, spec.num_pages - 1))
    scene = views.page_scene(spec, number)
    (grid,) = scene.panels
    seen, padding = set(), 0
    for k in range(grid.rows * grid.columns):
        cell = grid.cell(k // grid.columns, k % grid.columns)
        element = cell.attributes["in the page"]
        if element is None:
            assert not cell.valid
            continue
        seen.add(element)
        coordinate, is_data = spec.coordinate_of(number, element)
        shown = coordinate[len(coordinate) - spec.shape.rank :]
        assert cell.attributes["element"] == ",".join(map(str, shown))
        assert cell.valid == is_data
        padding += not is_data
        if is_data:
            where = spec.where(*shown)
            assert (where.page, where.element, where.address) == (number, element, cell.attributes["address"])
            assert where.face == cell.attributes.get("face")
    facts = facts_of(scene)
    assert seen == set(range(spec.page_elements))
    assert facts["padding"] == f"{padding} of {spec.page_elements} elements"
    assert facts["bytes"] == f"{spec.page_bytes}, {spec.aligned_page_bytes} with alignment"
    assert int(facts["address"]) == spec.pages().address[number]
    if spec.page_elements <= 256:
        check_rendered(scene)


LABELS = ("row_major", "row", "column", "offset", "coordinate")


@given(unplaced_specs())
@examples(60)
def test_elements_without_a_chip_are_drawn_in_the_order_of_storage(spec):
    tiled = any(box.kind == "tile" for box in views.spec_scene(spec).panels[0].outlines)
    scene = views.spec_scene(spec, label=(*LABELS, *(("tile",) if tiled else ())))
    grid = scene.panels[0]
    high, wide = grid.block
    lead = len(spec.padded_shape) - spec.shape.rank
    where_at = {}
    for row in range(grid.rows):
        for column in range(grid.columns):
            outer = np.unravel_index(row * high, spec.padded_shape[:-1]) if len(spec.padded_shape) > 1 else ()
            at = (*map(int, outer), column * wide) if len(spec.padded_shape) > 1 else (row * grid.columns + column,)
            inside = at[lead:]
            is_data = not any(at[:lead]) and all(c < n for c, n in zip(inside, spec.shape.logical, strict=True))
            cell = grid.cell(row, column)
            assert cell.valid == is_data
            if not is_data:
                assert cell.attributes["row_major"] is None
                continue
            where = explain(spec, inside).where
            where_at[where.page * spec.page_elements + where.element] = inside
            assert cell.attributes["offset"] == where.page * spec.page_elements + where.element
            assert cell.attributes["row_major"] == np.ravel_multi_index(inside, spec.shape.logical)
            if len(spec.padded_shape) == 2:
                assert (cell.attributes["row"], cell.attributes["column"]) == (where.row, where.column)
            if tiled and spec.is_tiled and (high, wide) == (1, 1):
                across = spec.physical_shape[1] // spec.tile.width
                number = where.tile[0] * across + where.tile[1]
                assert cell.attributes["tile"] == number
    for kind, shape in (("tile", spec.tile.shape), ("face", spec.tile.face_shape)):
        boxes = {(box.rows * high, box.columns * wide) for box in grid.outlines if box.kind == kind}
        assert boxes <= ({shape} if spec.is_tiled else set())
        drawn = (high, wide) == (1, 1) and shape not in ((1, 1), (grid.rows, grid.columns))
        if spec.is_tiled and drawn and (kind == "tile" or spec.tile.num_faces > 1):
            count = len([box for box in grid.outlines if box.kind == kind])
            assert count in (grid.rows * grid.columns // prod(shape), 0)
            assert count or grid.rows * grid.columns // prod(shape) > 1024
    if (high, wide) == (1, 1):
        assert len(where_at) == prod(spec.shape.logical)
    for memory in scene.panels[1:]:
        names = memory.field("element").values
        numbers = memory.field("row_major").values
        data = [k for k in range(len(names)) if not memory.valid or memory.valid[k]]
        assert {names[k]: numbers[k] for k in data} == {
            ",".join(map(str, (0,) * lead + at)): int(np.ravel_multi_index(at, spec.shape.logical))
            for at in where_at.values()
        }
    facts = facts_of(scene)
    assert facts["bytes"].startswith(f"{spec.nbytes}, of which {spec.nbytes - spec.data_bytes} padding (")
    if grid.rows * grid.columns <= 400:
        check_rendered(scene)


@given(st.lists(placed_specs(), min_size=1, max_size=3), st.booleans())
@examples(25)
def test_memory_maps_show_what_was_allocated(listed, each):
    chip = listed[0].known_chip
    allocator = tw.Allocator(chip)
    blocks = [allocator.allocate(spec) for spec in listed if spec.chip == chip]
    for name in {str(block.spec.memory.buffer_type).lower() for block in blocks}:
        here = [block for block in blocks if str(block.spec.memory.buffer_type).lower() == name]
        scene = views.memory_scene(allocator, buffer_type=name, each=each, side=512)
        (tracks,) = scene.panels
        facts = facts_of(scene)
        assert int(facts["allocated"].split()[0]) == sum(block.spec.allocated_bytes for block in here)
        for block in here:
            mine = [span for span in tracks.spans if span.link == block.number]
            assert min(span.start for span in mine) == block.address
            assert max(span.end for span in mine) == block.end == block.address + block.spec.allocated_bytes
            if not each:
                continue
            used = {span.track for span in mine if not span.hatched}
            assert used == set(block.spec.used_banks)
            table = block.spec.pages(block.address)
            for span in mine:
                if re.fullmatch(r"P\d+", span.label):
                    page = int(span.label[1:])
                    assert (span.track, span.start) == (table.bank[page], table.address[page])


@given(placed_specs())
@examples(80)
def test_banks_hold_data_and_padding(spec):
    (fitted,) = spec.fit().tensors
    taken = dict.fromkeys(spec.used_banks, spec.allocated_bytes)
    assert sum(taken.values()) == fitted.total_bytes == spec.total_bytes == spec.data_bytes + fitted.padding_bytes
    parts = spec.padding_parts
    assert fitted.padding_bytes == spec.padding_bytes == sum(parts.values())
    assert min(parts.values()) >= 0
    assert spec.with_chip(None).padding_parts == {"in_pages": parts["in_pages"]}
    slots = spec.bytes_per_bank // spec.aligned_page_bytes * len(spec.used_banks)
    assert parts["free_pages"] == (slots - spec.num_pages) * spec.aligned_page_bytes
    pages = spec.pages()
    elements = sum(is_data for page in range(spec.num_pages) for is_data in data_of(spec, page))
    assert elements == prod(spec.shape.logical)
    assert parts["in_pages"] == len(pages) * spec.page_bytes - elements * spec.page_bytes // spec.page_elements
    words = str(fitted).splitlines()[1]
    assert f"padding {fitted.padding_bytes} bytes (" in words


def data_of(spec, page):
    return [spec.coordinate_of(page, element)[1] for element in range(spec.page_elements)]


@given(unplaced_specs(), st.data())
@examples(40)
def test_files_are_inspected_as_their_specs_say(tmp_path_factory, spec, data):
    assume(not spec.is_tiled or spec.tile.is_on_chips)
    values = np.arange(prod(spec.shape.logical), dtype=np.float32).reshape(spec.shape.logical) % 100
    path = tmp_path_factory.mktemp("law") / "x.tensorbin"
    write_tensorbin(path, Tensorbin(spec, tw.to_bytes(values, spec)))
    found = inspect(path)
    (facts,) = found.tensors
    assert (facts.nbytes, facts.padding_bytes) == (spec.nbytes, spec.padding_bytes)
    assert found.to_json()["padding_bytes"] == spec.padding_bytes
    assert found.to_json()["elements"] == prod(spec.shape.logical)
    high, wide = spec.tile.shape if spec.is_tiled else (32, 32)
    rows = (1, *spec.shape.logical)[-2]
    down = prod(spec.shape.logical[:-2]) * -(-rows // high)
    tile = (data.draw(st.integers(0, down - 1)), data.draw(st.integers(0, -(-spec.shape.logical[-1] // wide) - 1)))
    decoded = found.tile(facts.name, *tile)
    assert decoded.face == (spec.tile.face_shape if spec.is_tiled else None)
    headings = re.findall(
        r"^(?:face (\d+): )?rows (\d+) to (\d+), columns (\d+) to (\d+)$", decoded.text(), re.MULTILINE
    )
    for row in range(decoded.values.shape[0]):
        for column in range(decoded.values.shape[1]):
            at = (*decoded.start[:-2], *decoded.start[-2:-1], decoded.start[-1] + column)
            if spec.shape.rank > 1:
                at = (*decoded.start[:-2], decoded.start[-2] + row, decoded.start[-1] + column)
            is_data = all(c < n for c, n in zip(at, spec.shape.logical, strict=True)) and (
                spec.shape.rank > 1 or not row
            )
            assert decoded.valid[row, column] == is_data
            (face,) = [h[0] for h in headings if int(h[1]) <= row <= int(h[2]) and int(h[3]) <= column <= int(h[4])]
            if not is_data:
                assert spec.is_tiled
                continue
            where = explain(spec, at).where
            assert where.tile == (tile if spec.is_tiled else None)
            assert (where.face if spec.is_tiled else "") == (int(face) if face else "")
    scene = views.scene_of(decoded)
    assert bool(scene.panels[0].outlines) == spec.is_tiled
    assert facts_of(scene)["elements"].split()[0] == str(decoded.valid.sum())


def test_padding_has_no_row_major_number():
    grid = views.scene_of(tw.TensorSpec((3, 3), "uint8", "tile", tile=(2, 2)), label="row_major").panels[0]
    assert grid.field("row_major").values == (0, 1, 2, None, 3, 4, 5, None, 6, 7, 8, *[None] * 5)
    across = tw.Layout((4, 4), (4, 1), guards=[tw.layout.Guard((4, 1), 10)])  # padding that is no box
    numbers = views.scene_of(across, label="row_major").panels[0].field("row_major").values
    assert numbers == (*range(10), *[None] * 6)
    numbers = views.scene_of(across, label="row_major", side=2).panels[0].field("row_major").values
    assert numbers == (0, 2, 8, None)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(1, 4), st.integers(0, 3))
def test_views_count_the_memory_from_their_first_scalar_to_their_last(rows, columns, high, wide, beside):
    storage = np.arange(rows * high * (columns * wide + beside))
    tensor = tw.TileTensor(storage, tw.Layout((rows * high, columns * wide), (columns * wide + beside, 1)))
    span = tensor.size + (rows * high - 1) * beside
    for view in (tensor, tensor.vectorize[high, wide]()):
        fact = facts_of(views.scene_of(view))["memory"]
        assert int(fact.split()[0]) == span
        assert fact.split()[1].startswith("element" if view.element_size == 1 else "scalar")
    part = tensor.tile[rows * high, columns * wide + 3](0, 0)  # of which the last columns are padding
    assert int(facts_of(views.scene_of(part))["memory"].split()[0]) == span


def test_numbers_are_written_out():
    values = np.array([[99.6, 100.0, -1234.5, 65504.0], [1e6, 0.125, -2e-7, 512.0]], np.float32)
    tensor = tw.Tensor.of(values, dtype="float32", page_layout="row_major")
    (grid,) = views.scene_of(tensor).panels
    assert cell_labels(grid, "value") == ["100", "100", "-1234", "65504", "1e6", "0.12", "-2e-7", "512"]


@st.composite
def columns_of_pages(draw):
    memory = draw(st.sampled_from(["dram", "l1", tw.height_sharded((4, 2)), tw.height_sharded((3, 1))]))
    tiled = draw(st.booleans())
    rows = draw(st.integers(25, 400)) * (32 if tiled else 1)
    return tw.TensorSpec((rows, 16), "bfloat16", "tile" if tiled else "row_major", memory=memory, chip="wormhole_n150")


@given(columns_of_pages())
@examples(30)
def test_a_column_of_pages_is_folded(spec):
    scene = views.spec_scene(spec)
    pages = scene.panels[0]
    assert pages.rows <= max(24, 4 * pages.columns)
    shown = [page for page in pages.field("page").values if page is not None]
    assert shown == list(range(spec.num_pages))
    assert pages.hatched == ("padding" if not pages.valid else "no page")


def test_what_cannot_be_more_even_is_no_warning():
    three = tw.Chip("three banks", "small", (3, 1), 0, 65536, 3, (0, 0), 65536, 32)

    def tone(spec):
        return next(fact.tone for fact in views.scene_of(spec).facts if fact.name == "imbalance")

    assert tone(tw.TensorSpec((4, 8), "bfloat16", chip=three)) == "plain"
    assert tone(tw.TensorSpec((64, 64), "bfloat16", "tile", chip="n150")) == "plain"
    assert tone(tw.TensorSpec((64, 64), "bfloat16", "tile", memory=tw.block_sharded((2, 2)), chip="n150")) == "good"
    lumped = tw.height_sharded((4, 1), (128, 32))  # all four pages on the first of four cores
    assert tone(tw.TensorSpec((128, 32), "bfloat16", "tile", memory=lumped, chip="n150")) == "bad"


@pytest.mark.parametrize("transpose", [False, True])
def test_the_faces_of_a_file_are_numbered_as_they_are_stored(tmp_path, transpose):
    spec = tw.TensorSpec((32, 32), "bfloat16", "tile", tile=tw.Tile((32, 32), transpose))
    write_tensorbin(tmp_path / "x.tensorbin", Tensorbin(spec, tw.to_bytes(np.zeros((32, 32), np.float32), spec)))
    text = inspect(tmp_path / "x.tensorbin").tile("x", 0, 0).text()
    for face, row, column in re.findall(r"^face (\d): rows (\d+) to \d+, columns (\d+) ", text, re.MULTILINE):
        assert explain(spec, (int(row), int(column))).where.face == int(face)


def test_a_shard_is_not_called_a_tile():
    spec = tw.TensorSpec((64, 64), "bfloat16", "tile", memory=tw.block_sharded((2, 2)), chip="n150")
    with pytest.raises(tw.LayoutError, match="is not an attribute"):
        views.spec_scene(spec, label="tile")
    with pytest.raises(tw.LayoutError, match="is not an attribute"):
        views.spec_scene(tw.TensorSpec((2, 3, 4)), label="tile")  # rows, of which planes are separated


def test_a_column_of_pages_is_folded_on_its_cores():
    spec = tw.TensorSpec((64, 64), "bfloat16", memory=tw.height_sharded((2, 1)), chip="n150")
    cores = views.spec_scene(spec).panels[1]
    assert cores.boxes == (4, 8)
    assert cores.field("page").values[:16] == (*range(8), *range(32, 40))

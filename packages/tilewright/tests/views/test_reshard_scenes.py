# SPDX-License-Identifier: Apache-2.0
"""Pictures of reshard plans: the same bytes as the plan has, as text, SVG and HTML, and honest about the estimate."""

import itertools
import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import tilewright as tw
from tilewright.views import Grid, Tracks, reshard_scene, scene_of, to_html, to_svg, to_text
from tilewright.views.html import panel_data
from tilewright.views.scene import MAX_FLOWS
from tilewright.views.scenes.reshards import chip_cells

from .browser import open_browser, watched

SPEC = tw.TensorSpec((512, 512), "bfloat16", "tile", memory=tw.block_sharded((2, 1)), chip="wormhole_n150")
ROWS = tw.TensorSpec((512, 512), "bfloat16", memory=tw.height_sharded((8, 1)), chip="wormhole_n150")
PLANS = {
    "shards to shards": tw.reshard(SPEC, SPEC.with_memory(tw.height_sharded((4, 2))), kernel="2024"),
    "two passes": tw.reshard(ROWS, ROWS.with_memory(tw.width_sharded((8, 1)))),
    "DRAM to shards": tw.reshard(SPEC.with_memory("dram"), SPEC),
    "through L1": tw.reshard(SPEC.with_memory("dram"), SPEC.with_memory("l1")),
    "Blackhole": tw.reshard(
        replace(SPEC, chip="blackhole_p150"),
        replace(SPEC.with_memory(tw.height_sharded((8, 1))), chip="blackhole_p150"),
    ),
}


def totals(grid: Grid, name: str) -> int:
    return sum(value for value in grid.field(name).values if value is not None)


@pytest.mark.parametrize("name", PLANS)
def test_the_map_has_the_bytes_of_the_steps(name):
    plan = PLANS[name]
    flows, arrive, leave = reshard_scene(plan).panels
    moved = [item for step in plan.steps for item in step.requests.traffic.items()]
    others = sum(size for (to, origin), size in moved if to != origin)
    assert totals(arrive, "in") == totals(leave, "out") == sum(flow.nbytes for flow in flows.flows) == others
    assert totals(flows, "stays") == sum(size for _, size in moved) - others
    for flow in flows.flows:
        source, target = (flows.cell(*divmod(cell, flows.columns)).attributes for cell in (flow.source, flow.target))
        assert source["gives"]
        assert target["gets"]
        assert source["place"]
        assert target["place"]
    if len(plan.steps) == 1 and name == "shards to shards":
        for core, size in plan.bytes_in.items():
            x, y = plan.noc_map.position(core)
            assert arrive.cell(y, x).attributes["in"] == size


@pytest.mark.parametrize("name", PLANS)
def test_links_have_the_load_of_the_plan(name):
    plan = PLANS[name]
    panels = reshard_scene(plan, view="links").panels
    assert sum(totals(panel, "bytes") for panel in panels) == sum(plan.links.values())
    link, size = plan.busiest_link
    (panel,) = [panel for panel in panels if panel.title.startswith(f"{link.noc} {link.direction}")]
    assert panel.cell(link.y, link.x).attributes["bytes"] == size
    assert panel.cell(link.y, link.x).attributes["share"] == 100


@pytest.mark.parametrize("name", PLANS)
def test_the_timeline_ends_with_the_estimate(name):
    plan = PLANS[name]
    scene = reshard_scene(plan, view="timeline")
    riscs, resources = scene.panels
    assert max(span.end for span in riscs.spans) == pytest.approx(plan.cycles.cycles)
    assert all(span.end <= plan.cycles.cycles + 1e-6 for span in (*riscs.spans, *resources.spans))
    assert "estimate" in riscs.title
    assert "not a simulation" in scene.note
    assert ("Not calibrated" in scene.note) == (not plan.cycles.calibrated)
    for track in range(len(riscs.names)):  # a RISC does one thing at a time
        spans = sorted((span.start, span.end) for span in riscs.spans if span.track == track)
        assert all(end <= start + 1e-6 for (_, end), (start, _) in itertools.pairwise(spans))
    if plan.cycles.bound_by.resource == "link":
        assert str(plan.cycles.bound_by.which) in resources.names


@pytest.mark.parametrize("name", PLANS)
def test_every_form_has_every_view(name):
    scene = reshard_scene(PLANS[name], view=("map", "links", "timeline"))
    for width in (80, 200):
        text = to_text(scene, width)
        assert max(map(len, text.splitlines())) <= width
        assert "bytes that arrive" in text
        assert "NOC_0" in text
        assert "RISCs (estimate" in text
    ElementTree.fromstring(to_svg(scene))
    assert "tw-flows" in to_svg(scene)
    data = panel_data(scene.panels[0])
    assert len(data["flows"]) == len(scene.panels[0].flows)
    json.dumps(data)


def test_options_and_notebooks_as_elsewhere(tmp_path):
    plan = PLANS["shards to shards"]
    plan.show(to=tmp_path / "map.svg", view="map", color="out", label="place")
    assert "place" in scene_of(plan, label="place").panels[1].labels
    assert scene_of(plan, view="timeline", color="name").panels[0].spans
    assert plan._repr_html_().startswith("<div")
    assert [panel.title for panel in scene_of(plan, step=1).panels] == [panel.title for panel in scene_of(plan).panels]


def test_one_step_of_two():
    plan = PLANS["two passes"]
    (one, *_), (two, *_) = (reshard_scene(plan, step=number).panels for number in (1, 2))
    assert totals(one, "in") == totals(two, "in") == plan.total_bytes
    assert isinstance(reshard_scene(plan, step=2, view="timeline").panels[0], Tracks)


def test_refusals_name_the_value_and_the_remedy():
    plan = PLANS["shards to shards"]
    for options, words in (
        ({"view": "maps"}, "view='maps': expected one of map, links, timeline"),
        ({"view": ()}, "view='': expected one of map"),
        ({"step": 2}, "step 2: expected a step of the plan, from 1 to 1"),
        ({"hex": True}, "a ReshardPlan cannot be drawn with 'hex'"),
    ):
        with pytest.raises(tw.LayoutError) as problem:
            reshard_scene(plan, **options)
        assert words in str(problem.value), options
    with pytest.raises(tw.LayoutError, match="source and target are equal"):
        scene_of(tw.reshard(SPEC, SPEC))
    assert tw.reshard(SPEC, SPEC)._repr_html_() is None


def test_a_chip_whose_network_is_not_known_has_a_map():
    chip = replace(tw.Chip.named("n150"), name="unknown", noc_size=(), noc_columns=(), noc_rows=(), noc_dram=())
    spec = SPEC.with_chip(chip)
    plan = tw.reshard(spec.with_memory("dram"), spec)
    scene = reshard_scene(plan)
    assert "is not known" in scene.note
    assert totals(scene.panels[1], "in") == plan.total_bytes
    with pytest.raises(tw.MemoryConfigError, match="describe its network"):
        reshard_scene(plan, view="links")


def test_many_flows_are_drawn_in_part_but_kept_in_the_page():
    plan = tw.reshard(
        tw.TensorSpec((2048, 2048), "bfloat16", "tile", memory=tw.height_sharded((8, 8)), chip="n150"),
        tw.TensorSpec((2048, 2048), "bfloat16", "tile", memory=tw.width_sharded((8, 8)), chip="n150"),
    )
    scene = reshard_scene(plan)
    assert f"largest {MAX_FLOWS} of {64 * 63} flows" in scene.note
    assert len(panel_data(scene.panels[0])["flows"]) == 64 * 63
    assert len(to_svg(scene)) < 120_000


@pytest.mark.slow
def test_pointing_at_a_core_shows_its_flows(tmp_path):
    plan = PLANS["shards to shards"]
    page_file = tmp_path / "map.html"
    page_file.write_text(to_html(reshard_scene(plan)), encoding="utf-8")
    with open_browser() as browser:
        page = browser.new_page()
        with watched(page, lambda url: url.startswith("file:")):
            page.goto(page_file.as_uri())
            svg = page.locator("svg[data-panel='0']")
            svg.focus()
            for _ in range(11):  # the keyboard goes cell by cell; (0, 0) is at x 1, y 1
                page.keyboard.press("ArrowRight")
            assert page.locator("svg[data-panel='0'] .mark-flow.leaves").count() == 7
            assert page.locator("svg[data-panel='0'] .mark-flow.arrives").count() == 1
            told = page.locator("#told").inner_text()
            assert "gets: 32 KiB from (1, 0)" in told
            assert "in: 32768 bytes" in told
            page.keyboard.press("Escape")
            assert page.locator(".mark-flow").count() == 0


@pytest.mark.parametrize("chip", ["n150", "p150", "quasar", "grayskull_e150"])
def test_every_core_and_bank_has_a_cell_of_its_own(chip):
    noc_map = tw.traffic.NocMap.of(chip)
    cells, (rows, columns), _ = chip_cells(noc_map)
    assert set(cells) == set(noc_map.endpoints)
    assert len(set(cells.values())) == len(cells)
    assert 0 <= min(cells.values()) <= max(cells.values()) < rows * columns

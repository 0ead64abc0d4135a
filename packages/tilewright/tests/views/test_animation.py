# SPDX-License-Identifier: Apache-2.0
"""Pictures that can be played: what appears when, and the player in a real browser."""

import pytest
from hypothesis import given

import tilewright as tw
from tilewright import views
from tilewright.tiling import Schedule
from tilewright.views.animation import draw_frames

from ..layout.strategies import injective_layouts
from .browser import open_browser, open_page

BLOCKS = tw.TensorSpec((512, 512), "bfloat16", "tile", memory=tw.block_sharded((4, 4)), chip="wormhole_n150")
ROWS = BLOCKS.with_memory(tw.height_sharded((8, 2)))


def copy_of(source, target):
    return views.animate(tw.plan_copy(tw.Placement(source, "uint8"), tw.Placement(target, "uint8")))


def test_a_copy_fills_the_target_in_the_order_of_its_places():
    tiled = tw.blocked_product(tw.row_major(4, 4), tw.row_major(2, 2))
    animation = copy_of(tw.row_major(8, 8), tiled)
    reads, writes = animation.steps
    assert writes.cells == tuple(sorted(writes.cells)), "memory is filled from its start"
    assert animation.captions[-1] == "64 of 64 elements copied"
    for frame in range(len(animation.captions)):
        # What is read and what is written in one frame are the same elements.
        elements = [
            {panel.field("element").values[cell] for cell in steps.current(frame)}
            for panel, steps in zip(animation.scene.panels, animation.steps, strict=True)
        ]
        assert elements[0] == elements[1]
        assert not reads.hidden(frame)
    assert len(writes.hidden(0)) == 62
    assert not writes.hidden(len(animation.captions) - 1)


@given(injective_layouts(max_size=64))
def test_the_last_frame_of_a_copy_hides_nothing(layout):
    animation = copy_of(tw.row_major(*tw.Placement(layout, "uint8").data_extents), layout)
    assert not animation.steps[1].hidden(len(animation.captions) - 1)


def test_a_schedule_is_played_to_its_end():
    animation = views.animate(Schedule("duplex", 4))
    for panel, steps in zip(animation.scene.panels, animation.steps, strict=True):
        assert steps.times[0] == panel.start
        assert steps.times[-1] == panel.end
        assert list(steps.times) == sorted(steps.times)


def test_a_reshard_plays_every_request():
    plan = tw.reshard(BLOCKS, ROWS)
    animation = views.animate(plan)
    flows = animation.scene.panels[0].flows
    played = {(flows[k].source, flows[k].target) for frame in animation.steps[0].flows for k in frame}
    drawn = {(flow.source, flow.target) for flow in views.reshard_scene(plan).panels[0].flows}
    assert played == drawn
    arriving = animation.scene.panels[1].field("in").values
    cells = animation.steps[1].cells
    assert all(step is not None for step, size in zip(cells, arriving, strict=True) if size)
    assert animation.captions[-1] == "done: 512 KiB"


def test_what_cannot_be_played_says_so():
    with pytest.raises(TypeError, match="cannot animate an object of type 'Layout'; expected a Schedule"):
        views.animate(tw.row_major(2, 2))
    with pytest.raises(tw.LayoutError, match="source and target are equal, so nothing moves"):
        views.animate(tw.reshard(BLOCKS, BLOCKS))
    with pytest.raises(ValueError, match=r"expected a name that ends in one of \.html"):
        views.save(views.animate(Schedule("double", 2)), "a.svg")


def test_frames_differ():
    _, data = draw_frames(views.animate(Schedule("double", 3)))
    assert len(data["paths"]) == len(data["captions"]) == len({str(paths) for paths in data["paths"]}) == 49


# In the page, so that nothing happens between the look and the click, however busy the machine is.
PAUSE_AFTER_THREE = """() => {
  const player = document.querySelector("#player");
  if (parseInt(player.querySelector("output").textContent) < 3) return false;
  player.querySelector("button").click();
  return true;
}"""


def test_the_player_plays_pauses_and_steps(tmp_path):
    animation = copy_of(tw.row_major(4, 4), tw.col_major(4, 4))
    path = views.save(animation, tmp_path / "copy.html")
    with open_browser() as browser, open_page(browser, path) as page:
        caption, slider = page.locator("#player output"), page.locator("#player input")
        page.wait_for_function(PAUSE_AFTER_THREE)  # it plays by itself
        assert page.locator("#player button").inner_text() == "Play"
        slider.fill("3")
        assert caption.inner_text() == "4 of 16 elements copied"
        slider.press("ArrowRight")
        assert caption.inner_text() == "5 of 16 elements copied"
        covered = page.locator(".tw-cover").nth(1)
        assert covered.get_attribute("d")
        slider.press("End")
        assert covered.get_attribute("d") == ""
        page.emulate_media(reduced_motion="reduce")
        page.reload()
        assert caption.inner_text() == "16 of 16 elements copied"
        assert page.locator("#player button").inner_text() == "Play"

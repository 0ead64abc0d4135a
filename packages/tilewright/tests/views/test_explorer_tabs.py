# SPDX-License-Identifier: Apache-2.0
"""The tabs of layouts, reshards, kernels and files, and the tabs themselves: in a real browser, with a server."""

import json
import re
import struct

import pytest

import tilewright as tw
from tilewright.explorer import FieldError
from tilewright.explorer.answers import answer_kernel

from .test_explorer_page import BLOCK, EVIL, REFUSED, browser, cell, explorer, field, fragment, look, settled

pytestmark = pytest.mark.slow

__all__ = ["browser", "explorer", "look"]  # fixtures

DIVIDE = {"view": "layout", "notation": "(8,12):(12,1)", "layout.op": "zipped_divide", "layout.other": "<4,6>"}


def test_an_operation_is_shown_with_its_operands_and_steps(look):
    page = look(DIVIDE, refused=REFUSED)
    steps = tw.analysis.explain_steps("zipped_divide", tw.row_major(8, 12), (4, 6))
    result = steps[-1].result
    assert page.get_by_role("heading", name=f"zipped_divide(A, B) = {result}").is_visible()
    assert page.get_by_role("heading", name="A = (8,12):(12,1)").is_visible()
    assert page.locator(".steps li").count() == len(steps)
    page.locator("#layout [name=op]").select_option("coalesce")
    settled(page)
    assert page.locator("[name=other]").is_hidden()
    assert "layout.other" not in fragment(page)
    page.locator("#layout [name=op]").select_option("compose")
    page.locator("[name=other]").fill("7:")
    settled(page)
    assert page.locator("[name=other]").get_attribute("aria-invalid") == "true"
    page.go_back()  # changing the operation is a step
    page.wait_for_url(re.compile(r".*coalesce.*"))
    settled(page)
    assert page.locator("#layout [name=op]").input_value() == "coalesce"


def test_bank_conflicts_have_a_remedy_and_threads_their_colors(look):
    page = look({"view": "layout"}, refused=REFUSED)
    page.get_by_role("button", name="bank conflicts").click()
    settled(page)
    assert "32-way conflict" in page.locator("#layout").inner_text()
    page.get_by_role("button", name="Sw<5,0,5> o (32,32):(32,1)").click()
    settled(page)
    assert field(page, "notation").input_value() == "Sw<5,0,5> o (32,32):(32,1)"
    assert "no conflict" in page.locator("#layout").inner_text()
    page.get_by_role("button", name="threads of an instruction").click()
    settled(page)
    assert page.locator("svg[aria-label='elements of each thread']").count() == 1
    page.locator("#layout [name=tile]").fill("2x2")
    settled(page)
    assert "outside a tile of 2 x 2" in page.locator("#layout [role=alert]").inner_text()


def test_without_the_companion_the_tab_of_kernels_says_what_brings_it(look, monkeypatch):
    monkeypatch.setattr("tilewright.explorer.answers.load_plugin", lambda *_: None)
    page = look({"view": "kernel", "kernel.source": "def main(): pass"})
    assert "pip install 'tilewright[mojo]'" in page.locator("#kernel").inner_text()
    assert fragment(page)["kernel.source"] == "def main(): pass"
    with pytest.raises(FieldError, match=r"pip install 'tilewright\[mojo\]'"):
        answer_kernel({"source": "def main(): pass"})


def test_kernels_run_when_asked_and_are_stopped_if_they_do_not_end(look, monkeypatch):
    page = look({"view": "kernel", "kernel.source": f"def main():\n    print('{EVIL}')"}, refused=REFUSED)
    assert "<img" not in page.locator("#kernel .plan").inner_text()  # nothing has run yet
    run = page.get_by_role("button", name="Run")
    run.click()
    settled(page)
    assert EVIL in page.locator("#kernel .plan").inner_text()
    assert page.locator("img").count() == 1
    page.get_by_role("button", name="a missing barrier").click()
    run.click()
    settled(page)
    assert "race" in page.locator("#kernel .defect").first.inner_text()
    assert page.locator("#kernel svg").count() >= 3
    page.get_by_role("button", name="an early return").click()
    run.click()
    settled(page)
    assert "not run here" in page.locator("#kernel [role=alert]").inner_text()
    page.locator("[name=language]").select_option("mojo")
    page.locator("[name=source]").fill("def main():\n    while True:\n        pass\n")
    monkeypatch.setattr("tilewright_mojo.explorer.kernel_process.SECONDS", 2)
    page.keyboard.press("Control+Enter")
    page.locator("[aria-busy]").first.wait_for(state="detached", timeout=20_000)
    assert "longer than 2 seconds" in page.locator("#kernel [role=alert]").inner_text()
    assert "while" in fragment(page)["kernel.source"]


def safetensors(count: int) -> bytes:
    tensors = {
        f"layers.{k}.w": {"dtype": "BF16", "shape": [64, 96], "data_offsets": [k * 12288, (k + 1) * 12288]}
        for k in range(count)
    }
    tensors[EVIL] = {"dtype": "F32", "shape": [2], "data_offsets": [count * 12288, count * 12288 + 8]}
    head = json.dumps({"__metadata__": {"by": EVIL}, **tensors}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(count * 12288 + 8)


def test_a_file_is_inspected_and_its_tensors_are_drawn(look, tmp_path):
    page = look({"view": "file"}, refused=REFUSED)
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(3))
    page.set_input_files("#chosen", path)
    settled(page)
    table = page.get_by_role("region", name="Tensors of the file")
    assert table.locator("tbody tr").count() == 4
    assert EVIL in table.inner_text()
    assert page.locator("img").count() == 1
    page.get_by_role("button", name="layers.1.w").click()
    settled(page)
    assert page.locator("#file svg[aria-label^='pages of 32 x 32']").count() == 1
    page.get_by_role("button", name="Open in the tab Tensor").click()
    page.wait_for_url(re.compile(r".*64x96.*"))
    settled(page)
    assert field(page, "shape").input_value() == "64x96"
    page.go_back()
    page.wait_for_url(re.compile(r".*view=file.*"))
    assert table.is_visible()  # the file is not forgotten
    path.write_bytes(b"\xff" * 64)
    page.set_input_files("#chosen", path)
    settled(page)
    assert "model.safetensors" in page.locator("#file [role=alert]").inner_text()
    assert "/tmp" not in page.locator("#file [role=alert]").inner_text()
    page.get_by_role("button", name="a layer of a small Llama").click()  # for somebody without a file
    settled(page)
    assert "model.layers.0.self_attn.q_proj.weight" in table.inner_text()
    assert page.locator("#file [role=alert]").is_hidden()


def test_tabs_are_moved_through_with_the_arrow_keys(look):
    page = look({"view": "layout"})
    tab = page.get_by_role("tab", name="Layout")
    assert tab.get_attribute("aria-selected") == "true"
    tab.focus()
    for name in ("Reshard", "Kernel", "File", "Tensor"):
        page.keyboard.press("ArrowRight")
        settled(page)
        assert page.evaluate("document.activeElement.textContent") == name
        assert page.get_by_role("tabpanel", name=name).is_visible(), name
        assert page.get_by_role("tabpanel").count() == 1, name
    page.go_back()
    page.wait_for_url(re.compile(r".*view=file.*"))
    assert page.get_by_role("tabpanel", name="File").is_visible()


def test_every_tab_fits_a_phone_in_the_dark(look):
    for words in (DIVIDE, {"view": "kernel"}, {"view": "file"}, {"view": "layout", "layout.threads": "4:1"}):
        page = look(words, width=390, height=844, scheme="dark")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, words


def test_a_reshard_is_played(look):
    words = {"view": "reshard", "shape": "128x64", "memory": "interleaved", "buffer": "dram", "to.buffer": "l1"}
    page = look({**words, "chip": "wormhole_n150", "to.memory": "height_sharded", "to.grid": "2x1"})
    page.get_by_role("button", name="Play the requests").click()
    page.locator(".player").wait_for()
    page.locator(".player input").fill("0")
    assert "requested" in page.locator(".player output").inner_text()
    assert page.locator(".tw-current-flows").first.get_attribute("d")


MOVE = {
    "view": "reshard", "shape": "512x512", "dtype": "bfloat16", "memory": "block_sharded", "buffer": "l1",
    "grid": "2x1", "chip": "wormhole_n150", "to.memory": "height_sharded", "to.buffer": "l1", "to.grid": "4x2",
}  # fmt: skip


def test_a_reshard_shows_what_moves_and_what_it_takes(look):
    page = look(MOVE)
    spec = tw.TensorSpec((512, 512), "bfloat16", "tile", memory=tw.block_sharded((2, 1)), chip="wormhole_n150")
    plan = tw.reshard(spec, spec.with_memory(tw.height_sharded((4, 2))))
    results = page.locator("#reshard .plan")
    assert f"{plan.cycles.cycles:.0f}" in results.inner_text().replace("\u202f", "")
    for told in ("not calibrated", "bound by", "stays where it is"):
        assert results.inner_text().count(told) == 1, told
    flows = page.locator("svg[aria-label='flows']")
    flows.hover(position=cell(page, "svg[aria-label='flows']", 1, 1))
    assert flows.locator(".mark-flow.leaves").count() == 7
    assert flows.locator(".mark-flow.arrives").count() == 1
    assert "32 KiB from (1, 0)" in page.locator("#reshard .told").first.inner_text()
    assert page.locator("svg[aria-label^='NOC_']").count() == 4
    assert page.locator("svg[aria-label^='RISCs (estimate']").count() == 1
    assert page.locator("#reshard pre").inner_text().startswith("tw.reshard(")


def test_a_reshard_follows_both_forms_and_the_address(look):
    page = look(MOVE)
    page.locator("[name='to_memory']").select_option("interleaved")
    page.locator("[name='to_buffer']").select_option("dram")
    settled(page)
    assert page.locator("[name='to_grid']").is_hidden()
    assert "ShardedToInterleaved" in page.locator("#reshard .facts").last.inner_text()
    assert fragment(page)["to.buffer"] == "dram"
    assert fragment(page)["view"] == "reshard"
    field(page, "shape").fill("256x256")
    settled(page)
    assert fragment(page)["shape"] == "256x256"
    assert "128 KiB" in page.locator("#reshard .numbers").last.inner_text()
    page.locator("#tab-tensor").click()  # the form goes with the view, and its results are of what was typed
    settled(page)
    assert page.locator("#sides .spec").count() == 1
    assert "256x256" in page.locator("#sides .facts").last.inner_text()
    page.locator("#tab-reshard").click()
    settled(page)
    assert page.locator("#reshard .spec").count() == 1
    page.reload()
    settled(page)
    assert page.locator("[name='to_memory']").input_value() == "interleaved"


def test_a_reshard_that_cannot_be_says_why_beside_its_field(look):
    page = look({**MOVE, "to.grid": "40x1"}, refused=REFUSED)
    error = page.locator("#error-reshard")
    assert error.is_visible()
    assert "use cores (0, 0) to (7, 7)" in error.inner_text()
    assert page.locator("#reshard .pill").inner_text() == "No plan"
    assert page.get_by_text("use cores (0, 0) to (7, 7)").count() == 1
    assert page.get_by_role("heading", name="Flows on the chip").is_hidden()  # there is nothing under it
    page.locator("[name='to_grid']").fill("4x2")
    settled(page)
    assert error.is_hidden()
    field(page, "shape").fill("nonsense")
    settled(page)
    assert field(page, "shape").get_attribute("aria-invalid") == "true"
    field(page, "shape").fill("512x512")
    for name, value in (("to_memory", "block_sharded"), ("to_grid", None)):
        control = page.locator(f"[name='{name}']")
        control.select_option(value) if value else control.fill("2x1")
    settled(page)
    assert "Nothing to do" in page.locator("#reshard .pill").inner_text()
    assert page.locator("svg[aria-label='flows']").is_hidden()


def test_a_reshard_fits_a_phone_and_the_dark(look):
    page = look(MOVE, width=390, height=800, scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("svg[aria-label='flows']").is_visible()


def test_tabs_have_titles_and_changes_are_announced(look):
    page = look({**BLOCK, "shape": "64x64"})
    said = page.locator("#status")
    assert said.get_attribute("role") == "status"
    assert "Fits wormhole_n150" in said.text_content()
    page.locator("#tab-tensor").focus()
    for tab, words in (("Layout", "Drawn: (4,8):(8,1)"), ("Reshard", "cycles"), ("Kernel", ""), ("File", "")):
        page.keyboard.press("ArrowRight")
        settled(page)
        assert page.title() == f"{tab} · tilewright explorer"
        assert words in said.text_content(), tab
    page.go_back()
    page.wait_for_function("document.title.startsWith('Kernel')")


def test_on_a_phone_forms_fold_and_the_picture_is_in_sight(look):
    page = look(BLOCK, width=390, height=844, refused=REFUSED)
    top = "document.querySelector('[role=tabpanel]:not([hidden]) .panels svg').getBoundingClientRect().top"
    assert page.evaluate(top) < 600
    line = page.locator("#tensor summary").first
    assert line.inner_text() == "1x4x60x90 bfloat8_b in tiles of 32x32, block sharded in L1, wormhole_n150 · change"
    assert field(page, "shape").is_hidden()
    line.focus()
    page.keyboard.press("Enter")
    field(page, "shape").fill("64x96")
    settled(page)
    assert line.inner_text().startswith("64x96 ")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert field(page, "shape").is_hidden()
    page.get_by_role("tab", name="Reshard").click()
    settled(page)
    assert page.evaluate(top) < 720
    page.evaluate("location.hash = 'shape=64xfoo'")  # what is wrong is shown
    page.wait_for_selector("[aria-invalid=true]")
    settled(page)
    assert field(page, "shape").is_visible()
    page.set_viewport_size({"width": 1280, "height": 844})  # as when a phone is turned
    assert page.locator("#tensor summary").first.is_hidden()
    assert field(page, "chip").is_visible()

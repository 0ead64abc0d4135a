# SPDX-License-Identifier: Apache-2.0
"""The page of an audit: what each core holds at the peak, L1 over the calls, and the list; also in a browser."""

import json

import pytest
from tests.views.browser import open_browser, open_page

import tilewright as tw
from tilewright import views

from .damages import REPORTS

pytestmark = pytest.mark.slow

CHAIN = REPORTS / "wormhole_n150.reshard_chain.normal.json"


def audited(name="wormhole_n150.reshard_chain.normal.json"):
    return tw.audit(REPORTS / name)


@pytest.mark.parametrize("path", sorted(REPORTS.glob("*.normal.json")), ids=lambda path: path.stem)
def test_cores_at_the_peak_add_up_to_what_holds_it(path):
    report = tw.audit(path)
    scene = views.scene_of(report)
    if report.timeline.peak is None:
        assert scene.panels == ()
        return
    chip = scene.panels[0]
    held = sum(
        share.bytes_per_core * (chip.rows * chip.columns if share.cores is None else len(share.cores))
        for share in report.timeline.shares
    )
    assert sum(chip.field("bytes").values) == held
    assert max(chip.field("bytes").values) <= report.timeline.peak.total


def test_the_most_in_any_call_is_the_peak():
    for path in sorted(REPORTS.glob("*.json")):
        if path.name in ("index.json", "to_memory_config_steps.json"):
            continue
        report = tw.audit(path)
        if report.timeline.peak is not None:
            usage = views.scene_of(report).panels[1]
            assert max(usage.field("bytes").values) == report.peaks.total
            assert views.scene_of(report, side=2).panels[1].columns <= 2


def test_lives_end_where_tensors_are_freed():
    (tracks,) = [panel for panel in views.scene_of(audited()).panels if isinstance(panel, views.Tracks)]
    assert [span.end for span in tracks.spans] == [4, 6, 8, 9]
    late = views.scene_of(audited("wormhole_n150.late_free.normal.json"))
    assert any(span.hatched for span in late.panels[2].spans)


def test_findings_come_before_notes_in_every_form(tmp_path):
    data = json.loads(CHAIN.read_text())
    allocation = next(node for node in data["graph"] if node["node_type"] == "buffer_allocate")
    allocation["params"]["page_size"] += 32
    path = tmp_path / "report.json"
    path.write_text(json.dumps(data))
    scene = views.scene_of(tw.audit(path))
    assert [entry.tone for entry in scene.entries][:2] == ["bad", "plain"]
    assert views.to_text(scene).index("page size") < views.to_text(scene).index("note: reshard")
    assert views.to_html(scene).index("page size") < views.to_html(scene).index("note: reshard")


def test_ir_has_a_list_but_no_chip(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text("func.func @f(%0: tensor<32x64xf32, #missing>)")
    scene = views.scene_of(tw.audit(path))
    assert scene.panels == ()
    assert len(scene.entries) == 1
    assert "<ol" in views.to_html(scene)


def test_a_core_says_what_it_holds(tmp_path):
    audited().show(to=tmp_path / "audit.html")
    with open_browser() as browser, open_page(browser, tmp_path / "audit.html") as page:
        chip = page.locator("svg[data-panel='0']")
        chip.focus()
        chip.press("ArrowRight")
        told = page.locator("#told").inner_text()
        assert "tensor 88 [256, 512] bfloat16" in told
        assert "tensor 91 [256, 512] bfloat16" in told
        assert page.locator("ol.entries li").count() == 1

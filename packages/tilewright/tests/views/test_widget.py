# SPDX-License-Identifier: Apache-2.0
"""The widget of a notebook: in a real browser, with a model such as a notebook gives it."""

import sys

import pytest

import tilewright as tw
from tilewright import views
from tilewright.errors import MissingPackage

from .browser import open_browser

EVIL = "<img src=x onerror=alert(1)>"
NOTEBOOK = """async ([esm, state]) => {
  const module = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
  const model = { get: (name) => state[name], set: (name, value) => { state[name] = value; },
                  save_changes: () => { window.saved = state.chosen; } };
  const el = document.createElement("div");
  document.body.append(el);
  module.default.render({ model, el });
}"""


@pytest.mark.slow
def test_pointing_marks_and_a_click_tells_python():
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    made = views.widget(tw.row_major(4, 8))
    assert made.chosen == {}
    assert set(made.keys) >= {"markup", "panels", "chosen", "_esm"}
    with open_browser() as browser:
        page = browser.new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        for subject in (made, views.widget(views.Scene(EVIL, (views.Grid(1, 1, title=EVIL),)))):
            page.set_content("<p>a notebook</p>")
            page.evaluate(NOTEBOOK, [subject._esm, {"markup": subject.markup, "panels": subject.panels}])
            assert page.locator("img").count() == 0
        page.set_content("<p>a notebook</p>")
        page.evaluate(NOTEBOOK, [made._esm, {"markup": made.markup, "panels": made.panels}])
        picture = page.locator("svg[data-panel]").first
        picture.focus()
        for key in ("ArrowDown", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        assert page.locator("svg[data-panel] .mark").count() == 2  # the element, and its place in memory
        assert "offset: 9" in page.locator("output").inner_text()
        assert page.evaluate("saved.offset") == 9
        page.close()
        assert not problems


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(MissingPackage, match=r"install tilewright\[notebook\]"):
        views.widget(tw.row_major(4, 8))

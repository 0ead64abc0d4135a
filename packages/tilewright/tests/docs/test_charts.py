# SPDX-License-Identifier: Apache-2.0
"""The bar charts of the page on performance: drawn from its tables, and up to date."""

import runpy

from .pages import DOCS

MODULE = runpy.run_path(str(DOCS.parent / "tools" / "pictures" / "make_charts.py"))


def test_charts_show_the_tables_of_the_page():
    charts = MODULE["draw_charts"]((DOCS / "performance.md").read_text(encoding="utf-8"))
    assert len(charts) >= 4
    for name, chart in charts.items():
        assert (DOCS / "images" / name).read_text(encoding="utf-8") == chart, "run python tools/pictures/make_charts.py"


def test_a_chart_has_a_bar_for_every_number():
    page = "![a < b, ratio](images/performance_x.svg)\n\n| move | ours | theirs | words |\n|---|---|---|---|\n"
    page += "| one | 1.00 | 0.50 | fast |\n| two | 2 | - | slow |\n"
    chart = MODULE["draw_charts"](page)["performance_x.svg"]
    assert chart.count('height="11"') == 2 + 3  # the legend, and three bars
    assert 'width="360.0"' in chart
    assert 'width="90.0"' in chart
    assert "a &lt; b" in chart
    assert "words" not in chart

# SPDX-License-Identifier: Apache-2.0
"""The editor of kernels and the examples of every tab, in a real browser."""

import re

import pytest

from tilewright_mojo.explorer.kernel_programs import EXAMPLES, PUZZLES, read_example
from tilewright_mojo.language.tokens import KEYWORDS

from .test_explorer_page import REFUSED, browser, explorer, fragment, look, settled

pytestmark = pytest.mark.slow

__all__ = ["browser", "explorer", "look"]  # fixtures

PROGRAM = 'def main():\n    var a = "no # comment"  # 12\n    print(Float32(0x1F), a)\n'


def write(page, source):
    """Put a program into the editor at once, as a paste does."""
    control = page.locator("[name=source]")
    control.evaluate("(control, source) => { control.select(); control.setRangeText(source); }", source)
    control.dispatch_event("input")
    control.focus()
    return control


def selected(page):
    return page.evaluate(
        "(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd))"
        "(document.querySelector('[name=source]'))"
    )


def tokens(page, source, language="mojo"):
    """Return the colored tokens of a source, with their kinds."""
    script = """async ([source, language]) => (await import("/highlight.js")).tokens(source, language)"""
    return [(source[start:end], kind) for start, end, kind in page.evaluate(script, [source, language])]


def test_lines_have_numbers_and_words_their_colors(look):
    page = look({"view": "kernel", "kernel.source": PROGRAM}, refused=REFUSED)
    lines = page.locator(".editor .drawing > div > div")
    assert page.locator(".gutter > div > div").all_inner_texts() == ["1", "2", "3", "4"]
    assert [line.text_content() for line in lines.all()] == PROGRAM.split("\n")
    assert page.locator(".editor .comment").all_inner_texts() == ["# 12"]
    assert page.locator(".editor .string").all_inner_texts() == ['"no # comment"']
    assert {"def", "var"} <= set(page.locator(".editor .keyword").all_inner_texts())
    control = write(page, "x = 1\n" * 2000)
    control.evaluate("(control) => { control.scrollTop = 1e9; }")
    page.get_by_text("2001", exact=True).wait_for()
    assert page.locator(".gutter > div > div").last.text_content() == "2001"
    assert lines.count() < 40  # of what is in sight only
    bottom = "(element) => element.getBoundingClientRect().bottom"
    assert 4 < control.evaluate(bottom) - lines.last.evaluate(bottom) < 12  # the padding: no line drifts from its text


def test_tokens_are_those_of_the_languages(look):
    page = look({"view": "kernel"})
    assert {kind for _, kind in tokens(page, " ".join(sorted(KEYWORDS)))} == {"keyword"}
    assert len(tokens(page, " ".join(sorted(KEYWORDS)))) == len(KEYWORDS)
    assert tokens(page, "fn struct", "python") == []
    assert tokens(page, "async class", "python") == [("async", "keyword"), ("class", "keyword")]
    assert tokens(page, '@value\nx = """a\n# b""" # c') == [
        ("@value", "decorator"), ('"""a\n# b"""', "string"), ("# c", "comment"),
    ]  # fmt: skip
    assert tokens(page, "Float32(1.5e-3) + UInt8(0xff) + name1 + 'it\\'s'") == [
        ("Float32", "type"), ("1.5e-3", "number"), ("UInt8", "type"), ("0xff", "number"), ("'it\\'s'", "string"),
    ]  # fmt: skip
    assert tokens(page, "a @ b\n'open\nnext") == [("'open", "string")]
    assert tokens(page, '"""open\nnext') == [('"""open\nnext', "string")]


def test_the_keyboard_indents_and_leaves_and_undo_takes_back(look):
    page = look({"view": "kernel", "kernel.source": "def main():\n    print(1)"}, refused=REFUSED)
    control = write(page, "a\nb\nc")
    control.evaluate("(control) => control.setSelectionRange(0, 3)")
    page.keyboard.press("Tab")
    assert control.input_value() == "    a\n    b\nc"
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert control.input_value() == "    a\n    b\nc"
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    assert control.input_value() == "    a\n    b\nc"
    page.keyboard.press("Control+z")
    assert control.input_value() == "a\nb\nc"
    control.press("Control+End")
    for key in (":", "Enter", "x", "Tab", "y", "Enter", "Shift+Tab", "z"):
        page.keyboard.press(key)
    assert control.input_value() == "a\nb\nc:\n    x   y\nz"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "language"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.name") != "source"
    assert "Escape" in page.locator(f"#{control.get_attribute('aria-describedby')}").inner_text()


def test_an_error_leads_to_its_line(look):
    page = look({"view": "kernel"}, refused=REFUSED)
    page.get_by_role("button", name="Run").click()
    settled(page)
    marked = page.locator(".gutter .marked")
    assert marked.all_inner_texts() == ["19", "21"]
    page.get_by_role("button", name="line 21:21").click()
    assert selected(page) == "part"
    assert page.evaluate("document.activeElement.name") == "source"
    page.get_by_role("region", name="What each line costs").get_by_role("button", name="19").first.click()
    assert selected(page) == "part[mine] = numbers[place]"
    page.keyboard.press("x")
    marked.first.wait_for(state="detached")  # it is another program
    write(page, "\n" * 300 + "def main():\n    prnt(1)\n")
    page.keyboard.press("Control+Enter")
    settled(page)
    page.get_by_role("button", name="line 302:5").click()
    assert selected(page) == "prnt"
    assert page.locator(".gutter .marked").inner_text() == "302"  # it is in sight


def test_a_puzzle_is_solved_and_its_link_names_it(look):
    page = look({"example": "map"})
    assert fragment(page) == {"view": "kernel", "kernel.example": "map"}
    control = page.locator("[name=source]")
    assert control.input_value() == read_example("map")["source"]
    page.get_by_role("button", name="Run").click()
    settled(page)
    assert "AssertionError" in page.locator("#kernel .plan").inner_text()
    page.get_by_role("button", name="Show a solution").click()
    page.get_by_role("button", name="Run").click()
    settled(page)
    assert "Right." in page.locator("#kernel .plan").inner_text()
    assert fragment(page)["kernel.source"] == read_example("map")["solution"]
    page.get_by_role("button", name="zip").click()
    settled(page)
    assert fragment(page) == {"view": "kernel", "kernel.example": "zip"}
    page.go_back()
    page.wait_for_url(re.compile("kernel.source"))
    settled(page)
    assert control.input_value() == read_example("map")["solution"]


ANSWERS = {
    "kv-cache": ("tensor", "KV cache"),
    "circular-buffers-clash": ("tensor", "make the buffers 200032 bytes smaller"),
    "tensor-accessor": ("tensor", "Placement"),
    "bank-conflict": ("layout", "32-way conflict"),
    "rope-order": ("layout", "(8,2):(2,1)"),
    "early_return": ("kernel", "an early return"),
    "nothing-of-the-kind": ("kernel", "unknown example 'nothing-of-the-kind'"),
    "constructor": ("kernel", "unknown example 'constructor'"),
}


@pytest.mark.parametrize(("name", "view", "words"), [(name, *answer) for name, answer in ANSWERS.items()])
def test_an_example_opens_by_its_name(look, name, view, words):
    page = look({"example": name}, refused=REFUSED)
    assert page.locator("[role=tab][aria-selected=true]").get_attribute("id") == f"tab-{view}"
    page.locator(f"#{view}").get_by_text(words).first.wait_for()
    assert "config" not in fragment(page)


def test_a_button_takes_an_example_in_place_of_all_that_was_typed(look):
    page = look({"shape": "64x64", "alignment": "64", "at": "3,3"})
    page.get_by_role("button", name="circular buffers clash").click()
    settled(page)
    clicked = fragment(page)
    assert clicked == fragment(look({"example": "circular-buffers-clash"}))
    page.get_by_role("button", name="a KV cache").click()
    page.locator(".pill").get_by_text("does not fit N150 with 8 users").wait_for()
    assert page.locator("[name=config]").input_value().startswith('{\n "model_type"')


def test_names_in_links_stay():
    assert {"reverse", "transpose", "sum", "early_return"} <= set(EXAMPLES)
    assert not set(ANSWERS) & set(PUZZLES)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_is_read_aloud(look, scheme):
    page = look({"view": "kernel"}, width=390, height=844, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    control = page.get_by_role("textbox", name="Program")
    assert control.is_visible()
    assert control.evaluate("(control) => getComputedStyle(control).color") == "rgba(0, 0, 0, 0)"
    assert page.locator(".editor [aria-hidden=true]").count() == 2  # only the text area is read

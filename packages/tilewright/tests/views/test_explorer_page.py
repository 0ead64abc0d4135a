# SPDX-License-Identifier: Apache-2.0
"""The explorer in a real browser: typing, clicking, comparing, sharing, saving, and with the keyboard alone."""

import json
from urllib.parse import parse_qs, urlencode
from xml.etree import ElementTree

import pytest

import tilewright as tw
from tilewright.cli.explore import remove_key
from tilewright.explorer import parse_spec
from tilewright.explorer.answers import PICTURES
from tilewright.explorer.server import Explorer
from tilewright.views.html import panel_markup

from .browser import open_browser, watched
from .test_html import evil_scene

pytestmark = pytest.mark.slow

BLOCK = {
    "shape": "1x4x60x90", "dtype": "bfloat8_b", "layout": "tile", "memory": "block_sharded", "buffer": "l1",
    "grid": "8x8", "chip": "wormhole_n150",
}  # fmt: skip
REFUSED = (422,)  # the status of a question that is refused


@pytest.fixture(scope="module")
def explorer():
    with Explorer(port=0) as server:
        server.start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


@pytest.fixture
def look(explorer, browser):
    """Return a function that opens the explorer with some words, and watches it until the test is over."""
    opened = []

    def opens(words=BLOCK, width=1280, height=900, scheme="light", refused=()):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        page = context.new_page()
        watching = watched(page, lambda url: url.startswith((explorer.url, "blob:")), refused)
        watching.__enter__()
        opened.append((context, watching))
        page.goto(explorer.link(urlencode(words)))
        settled(page)
        return page

    yield opens
    for context, watching in opened:
        context.close()
        watching.__exit__(None, None, None)


def settled(page) -> None:
    """Wait until everything asked for has been shown."""
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    page.locator("[aria-busy]").first.wait_for(state="detached")


def cell(page, panel: str, row: int, column: int) -> dict:
    """Return where on the screen the middle of a cell is; the picture may be scaled, and is scrolled to."""
    svg = page.locator(panel)
    svg.scroll_into_view_if_needed()
    box, cells = svg.bounding_box(), svg.locator(".tw-cells")
    left, top, width, height = (float(cells.get_attribute(f"data-{n}")) for n in ("left", "top", "width", "height"))
    tall, wide = (int(cells.get_attribute(f"data-{n}") or 1 << 30) for n in ("tall", "wide"))
    right, down = (float(cells.get_attribute(f"data-{n}") or 0) for n in ("right", "down"))
    scale = box["width"] / float(svg.get_attribute("width"))
    x = left + column // wide * right + (column % wide + 0.5) * width
    y = top + row // tall * down + (row % tall + 0.5) * height
    return {"x": scale * x, "y": scale * y}


def steps(page) -> dict[str, str]:
    """Return the chain that is shown, from names to values; what appears twice is taken as it came first."""
    found: dict[str, str] = {}
    for item in page.locator(".chain li").all():
        name = item.get_attribute("data-step")
        found.setdefault(name, item.locator(".value").inner_text())
    return found


def field(page, name: str, side: int = 0):
    """Return a field of a spec by its name; side 1 is that of spec B."""
    return page.locator(f"[name='{name}']").nth(side)


def fragment(page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(page.url.partition("#")[2]).items()}


def test_it_loads_and_keeps_the_key_out_of_the_address(look, explorer):
    page = look()
    assert explorer.key not in page.url
    assert page.locator(".pill").inner_text().startswith("Fits wormhole_n150")
    assert page.locator(".panels svg").count() >= 4
    assert page.title() == "Tensor · tilewright explorer"
    assert steps(page)["element"] == "(0, 0, 0, 0)"


def test_without_the_key_it_says_what_to_do(browser, explorer):
    context = browser.new_context()
    page = context.new_page()
    with watched(page, lambda url: url.startswith(explorer.url), (401,)):
        page.goto(explorer.url)
        page.wait_for_selector("#trouble:not([hidden])")
        assert "open the address that the terminal shows" in page.locator("#trouble").inner_text()
    context.close()


def test_typing_changes_everything(look):
    page = look()
    field(page, "shape").fill("256x320")
    field(page, "dtype").select_option("bfloat16")
    field(page, "memory").select_option("interleaved")
    field(page, "buffer").select_option("dram")
    settled(page)
    spec = tw.TensorSpec((256, 320), "bfloat16", "tile", chip="wormhole_n150")
    assert f"in each of {len(spec.banks)} banks" in page.locator(".numbers").inner_text()
    assert f"{spec.num_pages} of {spec.page_bytes} bytes" in page.locator(".facts").first.inner_text()
    assert "DRAM banks and their pages" in page.content()
    assert fragment(page)["shape"] == "256x320"
    assert page.locator("pre").inner_text() == repr(spec)
    assert field(page, "grid").is_hidden()  # shards have cores, pages dealt in turn have none


def test_a_tensor_that_ttnn_printed_is_pasted_as_the_shape(look):
    page = look()
    spec = tw.TensorSpec((1, 64, 128), "float32", "tile", memory=tw.height_sharded((2, 1)), chip="wormhole_n150")
    field(page, "shape").fill(tw.write(spec, "ttnn"))
    settled(page)
    assert [field(page, name).input_value() for name in ("shape", "dtype", "memory", "grid")] == [
        *("1x64x128", "float32", "height_sharded", "2x1"),
    ]
    assert page.locator("pre").inner_text() == repr(parse_spec(fragment(page)))


def test_a_model_is_fitted_from_its_config(look):
    page = look(refused=REFUSED)
    config = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
    config |= {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
    model = page.locator("section.card", has=page.locator("textarea[name=config]"))
    model.locator("[name=machine]").select_option("T3K")
    model.locator("[name=users]").fill("32")
    model.locator("textarea").fill(json.dumps(config))
    model.locator(".pill.good").wait_for()
    assert model.locator(".pill").inner_text().startswith("fits T3K (8 devices) with 32 users")
    assert "KV cache" in model.inner_text()
    assert model.locator("tbody tr").count() == 11
    assert "hidden_size" not in page.url
    model.locator("textarea").fill("{")
    model.locator(".problem").wait_for()
    assert "paste the whole config.json" in model.locator(".problem").inner_text()


def test_clicking_an_element_shows_its_whole_way(look):
    page = look()
    # page 15 is the tile at row 5, column 0 of the pages: row 1, column 17
    pages = page.get_by_role("application", name="pages of 32 x 32 elements")
    pages.click(position=cell(page, "svg[aria-label='pages of 32 x 32 elements']", 5, 0))
    settled(page)
    assert steps(page)["page"] == "15"
    tile = "svg[aria-label^='page 15']"
    page.locator(tile).click(position=cell(page, tile, 1, 17))
    settled(page)
    where = parse_spec(BLOCK).where(0, 2, 33, 17)
    found = steps(page)
    assert found["element"] == "(0, 2, 33, 17)"
    assert found["matrix"].startswith("row 161")
    assert (found["tile"], found["face"], found["page"]) == ("(5, 0)", "1", "15")
    assert found["shard"] == "15 = (5, 0)"
    assert found["core"] == "(0, 5)"
    assert found["address"].startswith(str(where.address))
    assert fragment(page)["at"] == "0,2,33,17"
    # nothing moves under the pointer
    before = page.locator(tile).bounding_box()
    page.locator(tile).hover(position=cell(page, tile, 30, 30))
    assert page.locator(tile).bounding_box() == before
    # and back from the address
    field(page, "bank").fill(str(where.bank))
    field(page, "address").fill(hex(where.address))
    settled(page)
    assert steps(page)["element"] == "(0, 2, 33, 17)"


def test_an_element_that_is_no_longer_there_is_forgotten(look):
    page = look({**BLOCK, "at": "0,2,33,17"})
    field(page, "shape").fill("1x4x30x90")
    settled(page)
    assert steps(page)["element"] == "(0, 0, 0, 0)"
    field(page, "at").fill("0,1,2,3")
    settled(page)
    field(page, "shape").fill("1x4x20x90")
    settled(page)
    assert steps(page)["element"] == "(0, 1, 2, 3)"


def test_an_address_that_holds_no_element_is_explained(look):
    page = look()
    field(page, "address").fill("0x10")
    settled(page)
    assert "nothing of this tensor" in page.locator(".results").inner_text()


def test_clicking_a_core_shows_what_it_holds(look):
    page = look()
    cores = "svg[aria-label='cores and the pages they hold']"
    page.locator(cores).click(position=cell(page, cores, 5, 2))
    settled(page)
    assert page.get_by_role("heading", name="What core (2, 5) holds").is_visible()
    table = page.get_by_role("region", name="What core (2, 5) holds").inner_text()
    assert "row 160, column 64" in table
    field(page, "grid").fill("")
    field(page, "shape").fill("2048x2048")
    settled(page)
    cores = "svg[aria-label='cores and their shards']"
    page.locator(cores).click(position=cell(page, cores, 3, 7))
    settled(page)
    assert page.get_by_role("heading", name="What core (7, 3) holds").is_visible()


def test_two_specs_are_compared_line_by_line(look):
    page = look()
    page.get_by_role("button", name="Compare").click()
    settled(page)
    assert "Both specs have the same placement" in page.locator("#comparison").inner_text()
    field(page, "dtype", 1).select_option("bfloat16")
    settled(page)
    rows = {row.locator("th").inner_text(): row for row in page.locator(".comparison tbody tr.differs").all()}
    assert "32x32, 1088 bytes" in rows["page"].inner_text() or "1088" in rows["bytes per bank"].inner_text()
    assert "shape" not in rows
    assert fragment(page)["b.dtype"] == "bfloat16"
    page.get_by_role("button", name="Compare").click()
    assert page.locator("#comparison").is_hidden()
    assert page.get_by_role("form", name="Spec B").count() == 0


def test_a_link_shows_the_same_again(look, explorer):
    page = look({**BLOCK, "at": "0,2,33,17", "b.shape": "64x64", "b.chip": "blackhole_p150", "scheme": "duplex"})
    page.get_by_role("button", name="Share").click()
    link = page.get_by_label("The link").input_value()
    assert link.startswith("https://tilewright.github.io/tilewright/playground/#")
    assert explorer.key not in link
    assert page.evaluate("document.activeElement.id") == "link"
    assert page.evaluate("document.activeElement.scrollLeft") == 0  # its beginning is in view
    command = page.get_by_label("The command").input_value()
    assert command == f"tilewright explore '#{link.partition('#')[2]}'"
    assert remove_key(command.partition("'")[2][1:-1]) == link.partition("#")[2]  # as the command reads it
    other = page.context.new_page()  # the same browser, which kept the key
    other.goto(f"{explorer.url}#{link.partition('#')[2]}")
    settled(other)
    assert steps(other)["element"] == "(0, 2, 33, 17)"
    assert field(other, "chip", 1).input_value() == "blackhole_p150"
    assert field(other, "scheme").input_value() == "duplex"
    assert fragment(other) == fragment(page)


def test_an_invalid_form_has_no_verdict(look):
    page = look(refused=REFUSED)
    assert "Fits" in page.locator(".pill").inner_text()
    field(page, "shape").fill("64xfoo")
    settled(page)
    assert page.locator(".pill").inner_text() == "No verdict"
    assert page.get_by_text("'64xfoo' is not a shape").count() == 1  # beside its field, and nowhere else
    assert "field that is marked" in page.locator(".results").inner_text()
    assert page.locator("pre").count() == 0
    field(page, "shape").fill("64x64")
    settled(page)
    assert "Fits" in page.locator(".pill").inner_text()


def test_the_back_button_goes_from_change_to_change(look):
    page = look()
    first = fragment(page)
    page.wait_for_timeout(900)  # changes in quick succession are one
    field(page, "shape").fill("256x320")
    settled(page)
    second = fragment(page)
    assert second["shape"] == "256x320"
    page.wait_for_timeout(900)
    page.get_by_role("tab", name="Layout").click()
    page.wait_for_function("location.hash.includes('view=layout')")
    page.go_back()
    page.wait_for_function("!location.hash.includes('view=layout')")
    settled(page)
    assert fragment(page) == second
    assert field(page, "shape").input_value() == "256x320"
    page.go_back()
    page.wait_for_function("!location.hash.includes('256x320')")
    settled(page)
    assert fragment(page) == first
    assert field(page, "shape").input_value() == BLOCK["shape"]
    page.go_forward()
    page.wait_for_function("location.hash.includes('256x320')")
    settled(page)
    assert field(page, "shape").input_value() == "256x320"


SAVED = ("placement.svg", "placement.html", "placement.json", "memory.svg", "schedule.html", "tiles.json")


def test_pictures_are_saved(look, tmp_path):
    page = look()
    for name in SAVED:
        with page.expect_download() as download:
            page.locator(f"[data-export='{name}']").click()
        assert download.value.suggested_filename == f"tilewright-{name}"
        download.value.save_as(tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        if name.endswith(".svg"):
            assert ElementTree.fromstring(text).tag.endswith("svg")
        elif name.endswith(".html"):
            assert text.startswith("<!DOCTYPE html>")
        else:
            assert json.loads(text)["panels"]


def test_bad_input_is_told_beside_the_field(look):
    page = look(refused=REFUSED)
    shape = field(page, "shape")
    shape.fill("4xfoo")
    settled(page)
    error = page.get_by_role("alert").filter(has_text="4xfoo")
    assert error.inner_text() == "'4xfoo' is not a shape; write it as 1x4x60x90"
    assert shape.get_attribute("aria-invalid") == "true"
    assert shape.get_attribute("aria-describedby") == error.get_attribute("id")
    shape.fill("64x64")
    settled(page)
    assert error.count() == 0
    assert shape.get_attribute("aria-invalid") is None
    field(page, "at").fill("99,99")
    settled(page)
    assert page.get_by_role("alert").filter(has_text="outside shape [64, 64]").is_visible()


def test_a_spec_that_breaks_a_rule_offers_what_would_not(look):
    page = look({**BLOCK, "shape": "100x64", "memory": "height_sharded", "grid": "4x1", "shard": "25x64"})
    message = "shard height 25 is not a multiple of the tile height 32"
    assert message in page.get_by_role("alert").filter(has_text="shard height").inner_text()
    page.locator(".alternatives button").first.click()
    settled(page)
    assert page.locator(".pill").inner_text().startswith("Fits")
    assert field(page, "shard").input_value() == "32x64"


def test_the_schedule_follows_its_fields(look):
    page = look()
    tracks = page.locator("svg[aria-label='use of buffers']")
    assert "out1" in tracks.text_content()
    field(page, "scheme").select_option("simplex")
    settled(page)
    assert "b2" in tracks.text_content()
    field(page, "scheme").select_option("buffered")
    field(page, "depth").fill("4")
    settled(page)
    assert "in3" in tracks.text_content()


def test_layouts_are_drawn_as_they_are_typed(look):
    page = look(refused=REFUSED)
    page.get_by_role("tab", name="Layout").click()
    settled(page)
    field(page, "notation").fill("(4,8):(1,4)")
    settled(page)
    assert "(4,8):(1,4)" in page.locator("#layout dl").first.inner_text()
    assert fragment(page)["notation"] == "(4,8):(1,4)"
    field(page, "notation").fill("(4,8):(1")
    settled(page)
    assert page.locator("#layout [role=alert]").is_visible()


def test_the_keyboard_is_enough(look):
    page = look({**BLOCK, "shape": "64x64"})
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('#tensor .results')")
    assert fragment(page)["shape"] == "64x64"
    for _ in range(40):  # back to the field, by nothing but the Tab key
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.name") == "shape":
            break
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("128x96")
    settled(page)
    assert fragment(page)["shape"] == "128x96"
    for _ in range(60):  # to the picture of the pages
        page.keyboard.press("Tab")
        if "pages of" in (page.evaluate("document.activeElement.getAttribute('aria-label')") or ""):
            break
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    settled(page)
    assert steps(page)["page"] == "7"
    assert "outline" in page.evaluate("getComputedStyle(document.activeElement).outlineStyle + 'outline'")
    assert page.get_by_role("heading", name="What core").is_visible()


def test_leaving_a_field_asks_nothing_again(look):
    """Pictures drawn anew lose the place that the arrow keys had reached in them."""
    page = look(BLOCK)
    field(page, "shape").fill("128x96")
    settled(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.resource_type in ("fetch", "xhr") else None)
    field(page, "shape").press("Tab")
    page.wait_for_timeout(400)  # more than the page waits for typing to end
    assert asked == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_can_be_read(look, width, scheme):
    page = look({**BLOCK, "b.shape": "512x512", "core": "0,0"}, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    pairs = page.evaluate(
        """() => [...document.querySelectorAll("h2, h3, label, dt, dd, button, td, th, .soft, .chain *, .pill")]
          .filter((e) => e.offsetParent && e.textContent.trim())
          .map((e) => {
            let paper = e;
            while (paper && getComputedStyle(paper).backgroundColor === "rgba(0, 0, 0, 0)") paper = paper.parentElement;
            return [getComputedStyle(e).color, getComputedStyle(paper).backgroundColor, e.textContent.slice(0, 40)];
          })"""
    )
    assert len(pairs) > 40
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, select')].filter((e) => !e.labels.length && !e.ariaLabel)"
    )
    assert not unnamed
    poor = [(text, round(ratio, 2)) for ink, paper, text in pairs if (ratio := contrast(ink, paper)) < 4.5]
    assert not poor


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colors, as the accessibility guidelines define it."""

    def light(color: str) -> float:
        parts = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(first), light(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_theme_can_be_chosen(look):
    page = look(scheme="light")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for _ in range(2):  # from the system's to light, to dark
        page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
HOSTILE = (
    {"shape": EVIL, "b.grid": EVIL, "b.shape": "64x64", "b.memory": "height_sharded"},
    {"shard": EVIL, "b.shape": "64x64", "b.chip": EVIL, "b.dtype": EVIL, "b.at": EVIL},
    {"at": EVIL, "core": EVIL, "scheme": EVIL, "tile_moved": EVIL, "b.shape": EVIL},
    {"view": "layout", "notation": EVIL, "nobody": EVIL},
    {"view": "layout", "notation": "4:1", "layout.op": "compose", "layout.other": "4:1", "layout.tile": EVIL},
)


@pytest.mark.parametrize("words", HOSTILE, ids=lambda words: next(iter(words)))
def test_hostile_words_are_only_words(look, words):
    page = look({**BLOCK, **words}, refused=REFUSED)
    assert page.locator("img").count() == 1  # the icon
    assert page.locator("script:not([src])").count() == 0
    assert EVIL[:12] in page.locator("main").inner_text()


SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="9" height="9"'
MARKUP = (
    f'{SVG} onload="alert(1)"><script>alert(1)</script><rect onclick="alert(1)" style="fill:red" x="1"/></svg>',
    f'{SVG}><foreignObject><img src="x" onerror="alert(1)"/></foreignObject></svg>',
    f"{SVG} onload='alert(1)'><rect ONCLICK='alert(1)'/></svg>",
    "<svg/onload=alert(1)><script>alert(1)</script></svg>",
    f'{SVG}><style>@import "http://192.0.2.1/a.css";</style><set attributeName="onclick" to="alert(1)"/></svg>',
    f'{SVG}><a href="javascript:alert(1)"><text>a</text></a><use href="http://192.0.2.1/a.svg#b"/></svg>',
    f'{SVG}><rect fill="url(http://192.0.2.1/a.svg#b)" stroke="u\\72l(http://192.0.2.1/)" filter="url(#a)"/></svg>',
    f'{SVG}><g xmlns="http://www.w3.org/1999/xhtml"><body onload="alert(1)"/><iframe src="http://192.0.2.1/"/></g></svg>',
    '<?xml version="1.0"?><?xml-stylesheet href="http://192.0.2.1/a.xsl"?>' + SVG + ' onload="alert(1)"/>',
    '<!DOCTYPE svg [<!ENTITY e "<script>alert(1)</script>">]>' + SVG + ' onload="alert(1)">&e;</svg>',
    f'{SVG}><![CDATA[<script>alert(1)</script>]]><!-- --><rect onclick="alert(1)"/></svg>',
    f"{SVG}><title>&lt;img src=x onerror=alert(1)&gt;</title><text>&#60;script&#62;</text></svg>",
    f'{SVG}></svg></svg><script>alert(1)</script><svg onload="alert(1)"/>',
    f'{SVG}><rect x="1" onclick="alert(1)',
    "<script>alert(1)</script>",
    "",
)


FOREIGN = """() => [...document.querySelectorAll(".scene svg, .scene svg *")].flatMap((e) =>
  [[e.namespaceURI + " " + e.localName, ""], ...[...e.attributes].map((a) => [a.name, a.value])])
  .filter(([name, value]) => /^on|href|style|src|script|foreign|xhtml| (a|use|set)$/i.test(name)
    || /url|\\\\/i.test(value))"""
SHOW = """async (markup) => {
  const { drawing } = await import("./svg.js");
  document.querySelector(".panels").replaceChildren(drawing(markup));
}"""


def test_pictures_with_markup_in_them_lose_it(look):
    """Even an answer that is not what it should be brings nothing but drawings into the page."""
    page = look()

    def swap(route):
        answer = route.fetch()
        found = answer.json()
        for panel in found["panels"]:
            panel["svg"] = MARKUP[0]
        route.fulfill(response=answer, json=found)

    page.route("**/api/picture/memory*", swap)
    field(page, "shape").fill("64x64")
    settled(page)
    assert page.locator(".scene svg[viewBox='0 0 9 9'] rect[x='1']").count() == 1
    assert page.evaluate(FOREIGN) == []
    for markup in MARKUP:
        page.evaluate(SHOW, markup)
        assert page.locator(".panels > svg").count() == 1, markup
        assert page.evaluate(FOREIGN) == [], markup
    page.wait_for_timeout(100)  # for whatever would begin once it is in the page


def test_drawings_arrive_whole(look):
    """The page's own reader of drawings makes the same elements as a parser of XML, from hostile names too."""
    page = look()
    scenes = [
        evil_scene(),
        *(picture({**BLOCK, "notation": "(4,8):(8,1)", "mesh": "1x2"}) for picture in PICTURES.values()),
    ]
    drawings = [markup for scene in scenes for markup in panel_markup(scene)]
    built = page.evaluate(
        """async (drawings) => {
          const { drawing } = await import("./svg.js");
          return drawings.map((markup) => new XMLSerializer().serializeToString(drawing(markup)));
        }""",
        drawings,
    )
    for ours, markup in zip(built, drawings, strict=True):
        assert tree(ElementTree.fromstring(ours)) == tree(ElementTree.fromstring(markup))


def tree(element: ElementTree.Element) -> list:
    return [element.tag, element.attrib, element.text, element.tail, [tree(child) for child in element]]


SHARED = {
    "shape": "64x96",
    "dtype": "bfloat8_b",
    "memory": "interleaved",
    "buffer": "dram",
    "mesh": "2x2",
    "cut": "-,1",
}


def test_a_mesh_of_devices_is_drawn_and_its_devices_are_chosen(look):
    page = look({**SHARED, "at": "33,2"})
    devices = page.get_by_role("heading", name="Devices").locator("..")
    assert devices.locator("svg").count() == 2
    assert steps(page)["tensor"] == "(33, 2)"
    panel = "svg[aria-label='devices and their parts']"
    page.locator(panel).click(position=cell(page, panel, 1, 1))
    page.wait_for_function("document.querySelector('[name=device]').value === '1,1'")
    settled(page)
    assert page.get_by_label("Device", exact=True).input_value() == "1,1"
    assert (steps(page)["tensor"], steps(page)["device"]) == ("(33, 50)", "(1, 1)")
    assert "(0, 1) also holds" in page.locator(".chain li[data-step=tensor]").inner_text()
    page.get_by_label("Mesh of devices").fill("")
    settled(page)
    assert devices.is_hidden()
    assert page.get_by_label("Cut along").is_hidden()


def test_a_mesh_that_cannot_be_is_said_beside_its_field(look):
    page = look({**SHARED, "cut": "7"}, refused=REFUSED)
    assert "the mesh cuts dimension 7" in page.locator("#error-A").inner_text()

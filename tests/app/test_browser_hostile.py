"""Hostile names as a browser shows them: to be read as they stand, nothing of them at work, and no request leaves."""

import pytest

from dpviz.view.escape import line
from tests.app.browse import live_map, open_drawer, pane_colours, until, visit
from tests.app.walk import ROOT
from tests.hostile import LEVELS, NAMES, regions_file, trips_file

pytestmark = pytest.mark.browser

PLACES = 13  # texts in each container of `hostile_app`
LOOK = """container => {
  const read = [...container.querySelectorAll(':is([data-testid=stMarkdownContainer], [data-testid=stCaptionContainer])')];
  const made = 'a, img, svg, script, code, pre, table, em, del, sup, h1, ol, input, .katex, [style*=background], [role=img]';
  const found = read.flatMap(each => [...each.querySelectorAll(made)]);
  return { texts: read.map(each => each.textContent.trim()), made: found.map(each => each.outerHTML) };
}"""


def planted(page):
    """Whether anything of a name has run."""
    return page.evaluate("document.querySelectorAll('img[src*=evil], [onerror], a[href*=evil], a[href^=javascript]').length")


@pytest.mark.slow
def test_every_name_is_read_as_it_stands_everywhere(chromium, serve, tmp_path):
    address = serve(ROOT / "tests" / "app" / "hostile_app.py")
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_text("all is drawn").wait_for()
        until(lambda: len(page.locator("body").evaluate(LOOK)["texts"]) > PLACES * len(NAMES), "every text of every name")
        for place, name in enumerate(NAMES):
            found = page.locator(f".st-key-name-{place}").evaluate(LOOK)
            assert len(found["texts"]) == PLACES
            assert {text.replace("\u2060", "") for text in found["texts"]} == {line(name)}
            assert found["made"] == [], name
        assert planted(page) == 0


def upload(page, title, file, content):
    file.write_bytes(content)
    page.get_by_test_id("stFileUploader").filter(has_text=title).locator("input[type=file]").set_input_files(file)


@pytest.mark.slow
def test_a_hostile_regions_file_is_drawn_and_sends_no_request_elsewhere(chromium, address, tmp_path):
    with visit(chromium, address, "trips?source=upload", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Again").wait_for()
        open_drawer(page, "Data")
        page.get_by_text("Upload", exact=True).first.click()
        upload(page, "Regions file", tmp_path / "[x](y) :smile:.geojson", regions_file())
        page.get_by_text("This file is already public").click()
        box = page.get_by_role("combobox", name="Columns of ids, coarsest level first")
        for level in LEVELS:
            box.fill(level)
            page.get_by_role("option").first.click()
        page.keyboard.press("Escape")
        page.get_by_text("Group by the first characters of the id").first.wait_for()
        upload(page, "Trips file", tmp_path / "trips.csv", trips_file())
        page.get_by_text("These data are already public").click()
        live_map(page)
        until(lambda: min(pane_colours(page)) > 20, "regions and arcs on both maps")
        for chip in (0, 1):
            before = page.locator(".canvas").get_attribute("data-shown")
            page.locator(".chip").nth(chip).click()
            until(lambda before=before: page.locator(".canvas").get_attribute("data-shown") != before, "the maps of the level")
        open_drawer(page, "Numbers")
        for tab in ("Errors by level", "Consistency", "Receipt", "Table", "Matrix"):
            page.get_by_role("tab", name=tab, exact=True).click()
            page.get_by_role("tabpanel").filter(visible=True).locator(
                "canvas, table, svg, [data-testid=stMarkdownContainer]"
            ).first.wait_for()
        assert planted(page) == 0
        assert page.get_by_test_id("stException").count() == page.get_by_text("deck.gl").count() == 0

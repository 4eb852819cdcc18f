"""The Help page: pages, links between them, and a search that marks what it found."""

import re

import pytest

from dpviz.view.help import PAGES, pages
from tests.app.browse import background, until, visit
from tests.app.seen import fine
from tests.app.start import pages_app, query_of


def help_app(**query):
    return fine(pages_app("help", query))


def headings(app):
    return [each.value for each in (*app.title, *app.header)]


def found(app):
    """The excerpts of a search, as HTML."""
    return [each.value for each in app.get("html") if "dpviz-hit" in each.value and "<style>" not in each.value]


class TestPages:
    def test_every_page_is_listed_and_shown_with_all_its_sections_and_named_by_the_address(self):
        app = help_app()
        assert headings(app)[0] == "Getting started"
        assert app.radio[0].options == [page.title for page in pages().values()]
        app.session_state["mode"] = "Curate"
        for key in PAGES:
            fine(app.radio[0].set_value(key).run())
            assert headings(app) == [section.title for section in pages()[key].sections]
        assert query_of(app) == {"page": key}
        assert app.session_state["mode"] == "Curate", "the session's mode stays"

    @pytest.mark.parametrize("query", [{"page": "no such page"}, {"page": "app", "section": "'); alert(1); ('"}, {"search": "\x00 \x1b"}])
    def test_an_address_that_names_nothing_shows_a_page(self, query):
        assert not [each for each in help_app(**query).get("html") if "alert" in each.value]

    @pytest.mark.parametrize(
        ("link", "said"), [("people", False), ("", False), ("no-such", "no section of the name")], ids=["known", "none", "unknown"]
    )
    def test_a_section_that_the_page_does_not_have_is_said(self, link, said):
        warnings = [each.value for each in help_app(page="reading", section=link).warning]
        assert (said in warnings[0]) if said else not warnings

    def test_a_link_leads_to_a_section_of_another_page(self):
        app = help_app(page="app")
        next(button for button in app.button if button.label == "Reading data: People").click()
        fine(app.run())
        assert (headings(app)[0], query_of(app)["section"]) == ("Reading data", "people")
        assert any("help-section-people" in each.value for each in app.get("html"))


class TestSearch:
    def test_the_words_are_marked_where_they_were_found_until_the_box_is_emptied(self):
        app = help_app()
        fine(app.text_input[0].set_value("CAP account").run())
        assert headings(app) == ["Search: CAP account"]
        assert any("<mark>account</mark>" in each and "<mark>cap</mark>" in each for each in found(app))
        fine(app.text_input[0].set_value("").run())
        assert headings(app)[0] == "Getting started"

    def test_a_hit_leads_to_its_section(self):
        app = help_app(search="billion")
        fine(app.button[0].click().run())
        assert headings(app)[0] == "Engines and clusters"
        assert query_of(app) == {"page": "engines", "section": "what-a-billion-records-cost"}
        assert app.text_input[0].value == ""

    def test_words_that_no_section_holds_have_a_note(self):
        app = help_app(search="zeppelin")
        assert (found(app), app.radio[0].value) == ([], None)
        assert "No section" in app.info[0].value


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_searched_and_read_in_a_browser(chromium, address, tmp_path, scheme):
    with visit(chromium, address, "help", scheme=scheme, tmp_path=tmp_path) as (page, _):
        page.get_by_label("Search").fill("scheduler TLS")
        page.keyboard.press("Enter")
        page.locator("mark").first.wait_for()
        page.get_by_role("button", name=re.compile("A cluster")).click()
        heading = page.get_by_role("heading", name="A cluster")
        heading.wait_for()
        until(lambda: heading.bounding_box()["y"] < 300, "the section at the top of the screen")
        page.go_back()
        page.locator("mark").first.wait_for()
        assert (background(page) > 380) == (scheme == "light")

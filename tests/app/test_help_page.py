"""The Help page: pages, links between them, and a search that marks what it found."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.points_state import CURATE, TEACH
from dpviz.view.help import PAGES, pages
from tests.app.browse import background, until, visit
from tests.app.walk import ROOT, fine


def shown():
    from dpviz.app.help_page import help_page  # noqa: PLC0415 - only this function's text runs

    help_page()


def help_app(**query):
    app = AppTest.from_function(shown, default_timeout=30)
    app.query_params.update(query)
    return fine(app.run())


def headings(app):
    return [each.value for each in (*app.title, *app.header)]


def found(app):
    """The excerpts of a search, as HTML."""
    return [each.value for each in app.get("html") if "dpviz-hit" in each.value and "<style>" not in each.value]


class TestPages:
    def test_the_first_one_is_shown_and_all_are_listed(self):
        app = help_app()
        assert headings(app)[0] == "Getting started"
        assert app.radio[0].options == [page.title for page in pages().values()]

    def test_another_one_is_chosen_from_the_list_and_named_by_the_address(self):
        app = help_app()
        fine(app.radio[0].set_value("engines").run())
        assert headings(app)[0] == "Engines and clusters"
        assert app.query_params["page"] == "engines"

    def test_every_page_is_shown_with_all_its_sections(self):
        app = help_app()
        for key in PAGES:
            fine(app.radio[0].set_value(key).run())
            assert headings(app) == [section.title for section in pages()[key].sections]

    @pytest.mark.parametrize("query", [{"page": "no such page"}, {"page": "app", "section": "'); alert(1); ('"}, {"search": "\x00 \x1b"}])
    def test_an_address_that_names_nothing_shows_a_page(self, query):
        app = help_app(**query)
        assert not [each for each in app.get("html") if "alert" in each.value]

    def test_a_link_leads_to_a_section_of_another_page(self):
        app = help_app(page="app")
        next(button for button in app.button if button.label == "Reading data: People").click()
        fine(app.run())
        assert (headings(app)[0], app.query_params["section"]) == ("Reading data", "people")
        assert any("help-section-people" in each.value for each in app.get("html"))


class TestSearch:
    def test_the_words_are_marked_where_they_were_found(self):
        app = help_app()
        fine(app.text_input[0].set_value("CAP account").run())
        assert headings(app) == ["Search: CAP account"]
        assert any("<mark>account</mark>" in each and "<mark>cap</mark>" in each for each in found(app))

    def test_a_hit_leads_to_its_section(self):
        app = help_app(search="billion")
        fine(app.button[0].click().run())
        assert headings(app)[0] == "Engines and clusters"
        assert dict(app.query_params) == {"page": "engines", "section": "what-a-billion-records-cost"}
        assert app.text_input[0].value == ""

    def test_words_that_no_section_holds_are_said_to_be_missing(self):
        app = help_app(search="zeppelin")
        assert (found(app), app.radio[0].value) == ([], None)
        assert "No section" in app.info[0].value

    def test_what_was_typed_is_no_markup(self):
        app = help_app(search="<b>*bold*</b> [x](y)")
        assert headings(app) == [r"Search: \<b\>\*bold\*\</b\> \[x\]\(y\)"]

    def test_a_word_that_is_a_sign_of_html_is_marked_as_text(self):
        assert all("<mark>&lt;</mark>" in each or "&lt;" not in each for each in found(help_app(search="<")))

    def test_an_emptied_box_shows_the_pages_again(self):
        app = help_app(search="ledger")
        fine(app.text_input[0].set_value("").run())
        assert headings(app)[0] == "Getting started"


@pytest.mark.parametrize("mode", [TEACH, CURATE])
def test_the_mode_of_the_session_stays(mode):
    app = AppTest.from_function(shown, default_timeout=30)
    app.session_state["mode"] = mode
    fine(app.run())
    fine(app.radio[0].set_value("ledger").run())
    assert headings(app)[0] == "The ledger"
    assert app.session_state["mode"] == mode


@pytest.fixture(scope="module")
def address(serve):
    return serve(ROOT / "app.py")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
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

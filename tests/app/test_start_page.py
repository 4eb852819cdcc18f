"""The start page: its pictures are there and open what they show."""

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.pages.start import PRESETS
from dpviz.bundled import folder
from tests.app.browse import until, visit
from tests.app.seen import fine, texts
from tests.app.walk import ROOT

LARGEST_PICTURE, MOST_OF_ALL = 60_000, 300_000  # bytes


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.picture)
def test_every_preset_has_a_small_picture_and_a_link_that_is_understood(preset):
    for theme in ("light", "dark"):
        assert (folder("assets") / preset.picture_in(theme)).stat().st_size < LARGEST_PICTURE
    if preset.page_state is not None:
        _, refused = preset.page_state.read(preset.link)
        assert refused == ""


def test_all_pictures_together_are_small():
    files = {preset.picture_in(theme) for preset in PRESETS for theme in ("light", "dark")}
    assert sum((folder("assets") / file).stat().st_size for file in files) < MOST_OF_ALL


def test_a_dark_page_has_dark_pictures(monkeypatch):
    shown = []
    monkeypatch.setattr("dpviz.app.pages.start.is_dark", lambda: True)
    monkeypatch.setattr("streamlit.image", lambda file, **_: shown.append(file.name))
    fine(AppTest.from_file(ROOT / "app.py", default_timeout=120).run())
    assert shown == [preset.picture_in("dark") for preset in PRESETS]


def press(title):
    app = fine(AppTest.from_file(ROOT / "app.py", default_timeout=120).run())
    return fine(next(each for each in app.button if each.label == title).click().run())


@pytest.mark.slow
def test_three_epsilons_are_a_study_that_begins_by_itself_and_shows_its_maps():
    app = press("A city at three epsilons")
    study = app.session_state["study"]
    assert study.total == len(study.of.study) == 6
    study.stop()
    assert [f"{epsilon:g}" for _, epsilon in app.session_state["compare config"].picked] == ["2", "0.2", "0.02"]
    assert app.multiselect(key="compare picked").value == [2, 1, 0]


def test_routes_of_one_person_are_protected_record_by_record():
    app = press("One person's routes without a bound")
    assert app.session_state["config"].draft.sample == "daily_routes"
    assert any("nothing bounds what one person adds" in each.value for each in app.caption)
    assert "for this person, ε 0.5 is ε 25,000." in texts(app)


def test_with_a_bound_nothing_of_the_routes_is_released():
    app = press("The same person with a bound")
    assert app.session_state["config"].draft.sample == "daily_routes_bounded"
    assert "Only 10 positions of this person count, and ε 0.5 protects all of them together: the routes stay hidden." in texts(app)


@pytest.mark.browser
@pytest.mark.slow
def test_its_name_as_an_address_leads_to_it(chromium, address, tmp_path):
    with visit(chromium, address, "start", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("heading", name="What would you publish?").wait_for()
        until(lambda: page.url.rstrip("/") == address.rstrip("/"), "the address of the start page")
        assert not page.get_by_text("Page not found").count()

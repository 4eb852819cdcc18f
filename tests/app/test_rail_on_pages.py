"""The rail on the pages in Teach, without a browser: ε, levels and false positives by its events, and numbers that agree."""

import math
from fractions import Fraction

import pytest

from dpviz.app.modes import rail as mode
from dpviz.publishing.errors_over_epsilon import levels_over_epsilon
from tests.app.rails import rail_of
from tests.app.seen import newest, scene, texts, trips_drawn
from tests.app.start import FLIGHTS, SMALL, pages_app, query_of

CITY = {"sample": "made_up_city", "mechanism": "region_tree", "settings": "{}"}
PAGES = {
    "points": (SMALL, "config"),
    "trips": (FLIGHTS | {"mechanism": "fitted_tree"}, "trips config"),
    "areas": (CITY, "areas config"),
}


@pytest.fixture(params=PAGES)
def page(request, monkeypatch):
    """A page, its rail, and the key of its state."""
    link, key = PAGES[request.param]
    rail = rail_of(monkeypatch)
    return pages_app(request.param, link), rail, key


def test_epsilon_level_and_false_positives_follow_the_events_of_the_rail(page):
    app, rail, key = page
    rail.send(app, "epsilon", "0.23")
    run = app.session_state[key].draft.run
    assert run.epsilon == Fraction("0.23")
    assert (rail.epsilon.chosen, rail.epsilon.of_run) == (0.23, 0.23)
    assert query_of(app)["epsilon"] == "0.23"
    assert newest(app, f"{key} first run").release.receipt.total.epsilon == Fraction("0.23")
    before = rail.options["shown"]
    (other, *_) = [index for index, level in enumerate(rail.levels) if index != before and not (level.finer or level.closed)]
    rail.send(app, "level", other)
    assert rail.options["shown"] == other
    rail.send(app, "false", value=True)
    assert app.session_state[key].view.shown == "False positives"
    assert rail.options["shows_false"]
    rail.send(app, "false", value=False)
    assert app.session_state[key].view.shown == "Released"


def test_the_sentence_is_the_caption_of_the_maps_in_place_of_a_headline(page):
    app, rail, _ = page
    level = rail.shown()
    sentence = rail.options["words"].describe(level.subject, level.worth)
    assert scene(app)[0].get("caption", sentence) == sentence
    assert "usable" not in texts(app) + " ".join(each.value for each in app.html)


def test_where_a_level_is_closed_or_too_fine_no_event_opens_it(page):
    app, rail, key = page
    for index, level in enumerate(rail.levels):
        if level.closed or level.finer:
            before = rail.options["shown"], app.session_state[key].view.level
            rail.send(app, "level", index)
            assert (rail.options["shown"], app.session_state[key].view.level) == before


@pytest.mark.parametrize("name", PAGES)
def test_at_the_epsilon_of_the_run_rail_chip_and_sentence_agree(name, monkeypatch):
    """The curve is an expectation over releases: at the ε of the run it is joined to what was measured, and stays near it elsewhere."""
    link, key = PAGES[name]

    def find(data, how, _=None):
        return levels_over_epsilon(how.build(), data.counts, epsilons=(0.1, 1, 3), delta=float(how.run.delta or 1e-8))

    monkeypatch.setattr(mode, "find_curves", find)
    rail = rail_of(monkeypatch)
    app = pages_app(name, link | {"epsilon": "0.5"})
    first = newest(app, f"{key} first run")
    known = find(first.data, first.draft)
    with_curves = [level for level in rail.levels if level.curve is not None and not level.closed]
    assert len(with_curves) >= 2
    for level in with_curves:
        assert level.curve.error_at(0.5) == pytest.approx(level.worth.error, rel=1e-9)
        if level.worth.base:
            assert level.curve.false_share_at(0.5) == pytest.approx(level.worth.wrong / level.worth.base)
    finest = next(level for level in reversed(with_curves) if not level.finer)
    number = rail_numbers(rail, known)[rail.levels.index(finest)]
    assert known[number].error_at(0.5) == pytest.approx(finest.worth.error, rel=0.1), "the finest level has parts enough for a mean"
    assert f"{finest.worth.error:.1f}" in f"{float(finest.curve.error_at(0.5)):.1f}"


def rail_numbers(rail, known):
    """Of each level of a rail, its number in the curves."""
    stages = len(rail.levels) > len(known) + 1
    return [index // 2 if stages else index for index in range(len(rail.levels))]


def test_a_contrast_has_no_epsilon_and_asks_for_no_curve(monkeypatch):
    rail = rail_of(monkeypatch)
    pages_app("points", SMALL | {"mechanism": "rounded_counts", "settings": "{}"})
    assert rail.epsilon.of_run is None
    assert all(level.curve is None for level in rail.levels)
    assert not math.isnan(rail.shown().worth.error)


def test_the_rail_is_there_in_present(monkeypatch):
    rail = rail_of(monkeypatch)
    app = pages_app("trips", FLIGHTS | {"present": "True"})
    rail.send(app, "epsilon", "0.1")
    assert trips_drawn(app).release.receipt.total.epsilon == Fraction("0.1")

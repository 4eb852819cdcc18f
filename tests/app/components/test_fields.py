"""Fields: what was typed stays in its field, with a message, and nothing is run while it does not fit."""

from fractions import Fraction

import pytest

from dpviz.app.state.kinds import POINTS
from dpviz.app.state.links import read_link, write_link
from tests.app.seen import account, captions, drawn, entries, errors, fine, good, keys, labelled, missing
from tests.app.start import CURATE, CURATE_TRIPS, SMALL, points_app, trips_app
from tests.app.walk import open_drawer, open_tab, press_draw, ready_to_pay

WRONG = "ε must be a number"


def typed(app, kind, key, value):
    """The field after a value was typed into it."""
    good(getattr(app, kind)(key=key).set_value(value).run())
    return getattr(app, kind)(key=key)


@pytest.mark.parametrize(
    ("link", "kind", "key", "value", "message"),
    [
        (SMALL, "text_input", "epsilon", "0", "ε must be a number from 0.001 to 100, such as 0.1, 1e-3 or 1/3."),
        (CURATE, "text_input", "epsilon", "1/0", WRONG),
        (SMALL, "text_input", "epsilon", "", WRONG),
        (CURATE, "text_input", "epsilon", "1e-999999999", WRONG),
        (SMALL, "number_input", "size", 0, "How many records must be a number from 1 to 10,000,000."),
        (CURATE, "number_input", "setting quadtree height", 99, "Height must be from 1 to 24."),
        (SMALL, "number_input", "setting quadtree height", None, "Height must be a whole number."),
        (CURATE, "number_input", "share 1", 120.0, "zoom 1, % must be a number from 0 to 100."),
    ],
)
def test_what_does_not_fit_stays_and_nothing_runs(link, kind, key, value, message):
    app = points_app(link)
    if link is SMALL:
        open_drawer(app, "Data" if key == "size" else "Method")
    else:
        ready_to_pay(app).button(key="draw").click()  # a press that arrives together with what was typed
    before, last = app.session_state["config"], drawn(app)
    assert typed(app, kind, key, value).value == value
    assert message in errors(app)
    assert "by at most a factor" not in captions(app) or key != "epsilon"  # what the ε before promises
    assert (app.session_state["config"], drawn(app), entries()) == (before, last, [])
    assert "save points" not in keys(app.download_button), "it would save the value before"
    assert link is SMALL or good(app.run()).button(key="draw").disabled
    assert getattr(app, kind)(key=key).value == value


def test_a_field_that_is_corrected_or_changed_elsewhere_unlocks_the_button():
    app = points_app(CURATE)
    assert "by at most a factor" in captions(app)
    typed(app, "text_input", "epsilon", "much")
    assert typed(app, "text_input", "epsilon", "0.7").value == "0.7"
    assert app.session_state["config"].draft.run.epsilon == Fraction(7, 10)
    fine(press_draw(app))
    typed(app, "text_input", "epsilon", "much")
    good(app.select_slider(key="epsilon slider").set_value(2.0).run())
    assert fine(app).text_input(key="epsilon").value == "2"
    typed(app, "number_input", "setting quadtree height", 99)
    good(app.selectbox(key="mechanism").set_value("identity").run())
    assert drawn(fine(press_draw(app))).number == 2


@pytest.mark.parametrize(("text", "meant"), [(" 2 / 3 ", Fraction(2, 3)), ("0.1", Fraction(1, 10))])
def test_epsilon_is_what_was_typed_exactly(text, meant):
    app = points_app(CURATE)
    typed(app, "text_input", "epsilon", text)
    fine(press_draw(fine(app)))
    assert account().spent["epsilon"] == drawn(app).release.receipt.total.epsilon == meant
    assert read_link(POINTS, write_link(app.session_state["config"])).draft.budget().epsilon == meant


@pytest.mark.slow
def test_trips_are_paid_exactly_too_and_what_is_shown_of_them_is_checked():
    app = trips_app(CURATE_TRIPS)
    typed(app, "text_input", "epsilon", "1/3")
    fine(press_draw(app))
    assert account().spent["epsilon"] == Fraction(1, 3)
    assert typed(app, "number_input", "top", 0).value == 0
    assert "Arcs at most must be a number from 1 to 5,000." in errors(app)
    assert missing(app) == []  # it changes nothing that is released


@pytest.mark.parametrize(
    ("kind", "label", "value", "message"),
    [
        ("text_input", "Name of the dataset", "x" * 121, "at most 120 characters; these are 121."),
        ("text_input", "Name of the dataset", "a\u200bb", "must be one line of text"),
        ("number_input", "Cap, ε", 0.0, "Cap, ε must be a number from 0.001 to 1,000."),
        ("number_input", "Cap, δ", 0.5, "Cap, δ must be a number from 0 to 0.01."),
    ],
)
def test_a_name_or_a_cap_that_the_ledger_would_refuse_stays_and_is_refused_at_once(kind, label, value, message):
    app = points_app(CURATE)
    good(labelled(getattr(app, kind), label).set_value(value).run())
    assert labelled(getattr(app, kind), label).value == value
    assert message in errors(app)
    assert app.button(key="draw").disabled


def test_words_of_a_publication_that_are_too_long_stay_and_lock_the_button():
    app = press_draw(points_app(CURATE))
    assert typed(app, "text_input", "publication name", "x" * 201).value == "x" * 201
    assert "Name of the publication: at most 200 characters; these are 201." in errors(app)
    assert app.get("download_button")[0].disabled


def test_a_box_without_an_answer_stays_with_the_reason():
    app = open_tab(press_draw(points_app()), "Range query")
    assert "Released answer" in [each.label for each in app.metric]
    for east, west, message in (
        (2000.0, None, "West must be a number"),
        (2000.0, 1e300, "West must be a number"),
        (1000.0, 2000.0, "A box needs an area: West below East"),
        (-100.0, -500.0, "The box lies outside the domain"),
    ):
        typed(app, "number_input", "query East", east)
        assert typed(app, "number_input", "query West", west).value == west
        assert message in errors(app)
        assert "Released answer" not in [each.label for each in app.metric]

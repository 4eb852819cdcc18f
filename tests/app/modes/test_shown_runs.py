"""Two maps or four, and the runs that they show."""

import re

import pytest

from tests.app.seen import fine, labelled, scene
from tests.app.start import pages_app
from tests.app.walk import open_drawer

TREES = {"points": {"sample": "gaussian_cluster", "size": "1000", "order": "6", "epsilon": "0.1"}, "areas": {"epsilon": "0.1"}}


def heads(app):
    """Title and text of each map."""
    return [(pane["title"], pane["about"]) for pane in scene(app)[0]["panes"]]


def menus(app):
    """What the menus over the maps say."""
    found = [labelled(app.selectbox, f"{place} map") for place in ("First", "Second", "Third", "Fourth")]
    return [menu.options[menu.index] for menu in found]


def change_number(app, number):
    return fine(open_drawer(app, "Map").segmented_control(key="maps").set_value(number).run())


@pytest.mark.parametrize("at", TREES)
def test_four_maps_are_the_truth_and_one_mechanism_at_three_budgets_each_with_its_error(at):
    app = fine(pages_app(at, TREES[at]))
    two = heads(app)
    (truth, _), *released = heads(change_number(app, "Four"))
    assert truth == two[0][0]
    assert [title.rsplit(", ", 1)[1] for title, _ in released] == ["ε 0.5", "ε 0.1", "ε 0.02"]
    errors = [float(re.search(r"off by (?:more than )?([\d.]+) %$", about)[1]) for _, about in released]
    assert errors == sorted(errors), "more budget, less error"
    assert menus(app) == ["True", "Released, ε 0.5", "Released, ε 0.1", "Released, ε 0.02"]
    fine(open_drawer(app, "Method").text_input(key="epsilon").set_value("0.2").run())
    assert menus(app)[2] == "Released, ε 0.2"
    fine(app.button(key="undo").click().run())
    assert menus(app)[2] == "Released, ε 0.1"
    assert heads(change_number(app, "Two")) == two
    fine(app.button(key="undo").click().run())
    assert len(heads(app)) == 4


def test_a_map_of_four_takes_another_run_and_the_controls_follow_it():
    app = change_number(fine(pages_app("points", TREES["points"])), "Four")
    fine(labelled(app.selectbox, "Fourth map").set_value("False positives").run())
    assert [len(app.session_state["config"].shown_runs), app.session_state["config"].view.main] == [2, 3]
    fine(open_drawer(app, "Method").segmented_control(key="editing").set_value(1).run())
    fine(app.text_input(key="epsilon").set_value("2").run())
    assert [title for title, _ in heads(app)][1:3] == ["Released records, ε 2", "Released records, ε 0.1"]

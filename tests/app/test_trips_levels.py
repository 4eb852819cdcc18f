"""The levels of the rail of trips: what it says of each, and that another split is expected as a run with it would state it."""

import numpy as np
import pytest

from dpviz.app.pages.trips.levels import expect
from dpviz.mechanisms import MECHANISMS
from tests.app.parts import changed_page
from tests.app.rails import rail_of
from tests.app.seen import fine, trips_drawn
from tests.app.start import FLIGHTS, trips_app


@pytest.mark.parametrize("mechanism", ["fitted_tree", "top_down"])
def test_expected_errors_of_a_dragged_split_are_those_of_a_run_with_it(mechanism):
    app = trips_app(FLIGHTS | {"mechanism": mechanism, "settings": "{}"})
    first = trips_drawn(app)
    shares = [0.05, 0.1, 0.1, 0.15, 0.2, 0.4]
    run = MECHANISMS.of("trips")[mechanism]().with_shares(shares)
    expected = expect(first, run, first.draft.budget())
    app.session_state["trips config"] = changed_page(app.session_state["trips config"], settings=run.non_defaults())
    fine(app.run())
    assert expected == pytest.approx(page_expected(trips_drawn(app)), rel=0.01)


def page_expected(drawn):
    """The root mean square standard deviation that a run states for each stage."""
    release = drawn.release
    return [float((release.stage_stddev(stage) ** 2).mean() ** 0.5) for stage in range(release.tree.height + 1)]


def test_levels_have_their_shares_errors_and_false_discoveries(monkeypatch):
    rail = rail_of(monkeypatch)
    first = trips_drawn(trips_app(FLIGHTS))
    table, levels = first.evaluation.by_stage, rail.levels
    assert [level.name for level in levels] == table["between"].tolist()
    errors = table["rms_error_present"] / (first.data.counts.count.sum() / table["true_pairs"])
    assert [level.worth.error for level in levels] == pytest.approx(errors.tolist())
    assert [level.worth.wrong for level in levels] == table["false_positives"].tolist()
    assert [level.worth.base for level in levels] == table["released_pairs"].tolist()
    assert [level.closed == "" for level in levels] == [False, False, True, False, True, False, True]
    assert [part.level for part in rail.parts] == [1, 2, 3, 4, 5, 6]
    assert rail.options["shown"] == 2
    assert levels[2].about.startswith("100 pairs, ")
    assert np.isfinite(errors).all()


def test_a_mechanism_without_a_split_says_why_nothing_can_be_dragged(monkeypatch):
    rail = rail_of(monkeypatch)
    trips_app(FLIGHTS | {"mechanism": "flat_gaussian", "settings": "{}"})
    assert len(rail.parts) == 1
    assert rail.options["whole"] == "All of ε buys one set of counts: there is nothing to split."

"""The strip of the Trips page: what it says of each level, and that another split is expected as a run with it would state it."""

import pytest

from dpviz.app.modes import strip
from dpviz.app.pages.trips.strip import expect
from dpviz.mechanisms import MECHANISMS
from tests.app.parts import changed_page
from tests.app.seen import fine, trips_drawn
from tests.app.start import FLIGHTS, trips_app


def shown(app, monkeypatch):
    """Levels and parts of the strip, and what it calls."""
    seen = {}
    monkeypatch.setattr(strip, "strip", lambda levels, parts, **options: seen.update(levels=levels, parts=parts, **options))
    fine(app.run())
    return seen


@pytest.mark.parametrize("mechanism", ["fitted_tree", "top_down"])
def test_expected_errors_of_a_dragged_split_are_those_of_a_run_with_it(mechanism, monkeypatch):
    app = trips_app(FLIGHTS | {"mechanism": mechanism, "settings": "{}"})
    first = trips_drawn(app)
    shares = [0.05, 0.1, 0.1, 0.15, 0.2, 0.4]
    seen = shown(app, monkeypatch)
    assert [level.expected for level in seen["levels"]][2:] == pytest.approx(page_expected(first)[2:], rel=0.01)
    monkeypatch.undo()
    run = MECHANISMS.of("trips")[mechanism]().with_shares(shares)
    expected = expect(first, run, first.draft.budget())
    app.session_state["trips config"] = changed_page(app.session_state["trips config"], settings=run.non_defaults())
    fine(app.run())
    assert expected == pytest.approx(page_expected(trips_drawn(app)), rel=0.01)


def page_expected(drawn):
    """The root mean square standard deviation that a run states for each stage."""
    release = drawn.release
    return [float((release.stage_stddev(stage) ** 2).mean() ** 0.5) for stage in range(release.tree.height + 1)]


def test_columns_are_levels_with_their_shares_errors_and_false_discoveries(monkeypatch):
    app = trips_app(FLIGHTS)
    seen = shown(app, monkeypatch)
    table, parts = trips_drawn(app).evaluation.by_stage, seen["parts"]
    assert [level.name for level in seen["levels"]] == table["between"].tolist()
    assert [level.measured for level in seen["levels"]] == table["rms_error_present"].tolist()
    assert [(level.wrong, level.base) for level in seen["levels"]] == list(
        zip(table["false_positives"], table["released_pairs"], strict=True)
    )
    assert [part.level for part in parts] == [1, 2, 3, 4, 5, 6]
    assert seen["shown"] == 2
    assert seen["levels"][2].about.startswith("100 pairs, ")


def test_a_mechanism_without_a_split_says_why_nothing_can_be_dragged(monkeypatch):
    seen = shown(trips_app(FLIGHTS | {"mechanism": "flat_gaussian", "settings": "{}"}), monkeypatch)
    assert len(seen["parts"]) == 1
    assert seen["whole"] == "All of ε buys one set of counts: there is nothing to split."

"""The popover *Code* on Points, Trips and Compare: what it shows makes what the page shows."""

import json
import tomllib

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.components.code import NO_CONFIGURATION
from dpviz.app.pages.compare.state import JOB, CompareConfig
from dpviz.app.state.values import FURTHER
from dpviz.publishing.config import from_tables
from dpviz.publishing.study_config import study_from
from tests.app.seen import captions, drawn, fine, good, newest, trips_drawn
from tests.app.start import (
    BARE,
    FLIGHTS,
    SMALL,
    pages_app,
    points_app,
    trips_app,
    uploaded,
)
from tests.app.walk import go, open_drawer, public
from tests.hostile import NAMES
from tests.often import named
from tests.publishing.test_code import made_by, same_runs
from tests.release_cases import assert_same


def blocks(app):
    """The texts of the popover by their languages."""
    return {block.language: block.value for block in app.code}


def python(app):
    """The variables of the Python that is shown, after it was run."""
    return made_by(blocks(app)["python"])


def test_points_show_the_code_of_their_run_and_of_the_second_one():
    app = fine(open_drawer(points_app(SMALL | {"epsilon": "1/3", "run": "5"}), "Numbers"))
    made = python(app)
    assert_same(made["release"], drawn(app).release)
    assert "second_release" not in made
    config = from_tables(tomllib.loads(blocks(app)["toml"]))
    assert config.mechanism.build(config.data.family) == made["mechanism"]
    assert config.budget.budget() == made["budget"]
    fine(app.selectbox(key="pane 0").set_value(FURTHER[0]).run())
    made = python(app)
    assert_same(made["second_release"], newest(app, "config second run").release)
    assert made["second_budget"].epsilon * 10 == made["budget"].epsilon


def test_a_reference_has_code_that_says_so_and_no_configuration():
    app = fine(open_drawer(points_app(SMALL | {"mechanism": "exact_kdtree", "settings": "{}"}), "Numbers"))
    assert "# NOT PRIVATE" in blocks(app)["python"]
    assert "toml" not in blocks(app)
    assert NO_CONFIGURATION in captions(app)


@pytest.mark.parametrize("name", ["homes.csv", f"{NAMES[-1]} {NAMES[9]}.csv"])
def test_an_uploaded_file_is_named_and_none_of_its_values_is_in_the_code(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(BARE)
    app = uploaded(BARE, name, link=SMALL | {"mode": "Teach"})
    open_drawer(public(app).check().run(), "Numbers")
    assert_same(python(app)["release"], drawn(app).release)
    assert not [value for value in ("34.1", "-80.25", "40.5") if value in "".join(blocks(app).values())]
    assert tomllib.loads(blocks(app)["toml"])["data"]["points"] == name


@pytest.mark.slow
def test_trips_show_the_code_of_their_run():
    app = fine(open_drawer(trips_app(FLIGHTS), "Numbers"))
    assert_same(python(app)["release"], trips_drawn(app).release)
    config = from_tables(tomllib.loads(blocks(app)["toml"]))
    assert config.mechanism.build(config.data.family) == python(app)["mechanism"]


STUDIES = {
    "points": {"sample": "gaussian_cluster", "order": "4", "mechanisms": '["quadtree","identity"]', "steps": "2", "repeats": "2"},
    "trips": {"kind": "Trips", "sample": "us_flights", "mechanisms": '["flat_gaussian"]', "steps": "1", "repeats": "1"},
    "varied": {"sample": "us_places", "order": "4", "mechanisms": '["quadtree"]', "settings": json.dumps({"quadtree": {"height": [2, 3]}})},
}


@pytest.mark.parametrize("link", named(STUDIES, ["varied"]))
@pytest.mark.slow
def test_compare_shows_the_code_of_the_study_that_it_starts(link):
    app = fine(pages_app("compare", link))
    text = blocks(app)["python"].removesuffix("table = dv.tidy(study, dv.compare(study))\n")
    study = made_by(text)["study"]
    good(app.button(key="draw").click().run())
    same_runs(study, app.session_state[JOB].of.study)
    app.session_state[JOB].stop()
    config = study_from(tomllib.loads(blocks(app)["toml"]))
    same_runs(config.build_study(config.opened().data), study)


def test_compare_on_a_public_file_names_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "homes.csv").write_bytes(BARE)
    app = uploaded(BARE, link=SMALL | {"mode": "Teach"})
    good(public(app).check().run())
    app.session_state["compare config"] = CompareConfig(source="own", mechanisms=("identity",), steps=1, repeats=1)
    app = fine(go(app, "compare"))
    made = made_by(blocks(app)["python"])
    assert made["points"].count.sum() == 3
    good(app.button(key="draw").click().run())
    same_runs(made["study"], app.session_state[JOB].of.study)
    app.session_state[JOB].stop()
    config = study_from(tomllib.loads(blocks(app)["toml"]))
    same_runs(config.build_study(config.opened().data), made["study"])


def curate():
    """What a page in Curate calls: no seed, and the account that pays."""
    from dpviz.app.cards.cards import cards_in_place  # noqa: PLC0415
    from dpviz.app.components.code import show_release_code  # noqa: PLC0415 - only this function's text runs
    from dpviz.app.pages.points.data import points_controls  # noqa: PLC0415
    from dpviz.app.pages.points.state import POINTS  # noqa: PLC0415
    from dpviz.privacy.budget import exact  # noqa: PLC0415
    from dpviz.publishing.code import CodeRun  # noqa: PLC0415

    POINTS.change(run={"mechanism": "quadtree", "settings": {"height": 3}, "epsilon": exact("1/3", "ε")})
    data, draft = points_controls(cards_in_place()).data, POINTS.draft
    show_release_code(data, draft, [CodeRun(mechanism=draft.build(), budget=draft.budget())])


def test_curate_needs_data_mechanism_and_budget_only():
    app = AppTest.from_function(curate, default_timeout=120)
    made = python(good(app.run()))
    assert not made["release"].simulation
    assert "Only that pays in the ledger" in blocks(app)["python"]
    assert from_tables(tomllib.loads(blocks(app)["toml"])).budget.budget() == made["budget"]

"""The start page and the Points page: what is shown, what is drawn, what is spent."""

from fractions import Fraction
from importlib import import_module

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app import points_state as state
from dpviz.app.points_page import NAMES
from dpviz.errors import BudgetError
from dpviz.mechanisms import noisy_counts as measure
from dpviz.privacy.ledger import Ledger
from dpviz.release.verdict import verdict
from dpviz.view.points_map import SHOWN
from tests.app.walk import (
    CURATE,
    PUBLIC_COLUMNS,
    PUBLIC_FIGURES,
    ROOT,
    SMALL,
    captions,
    drawn,
    drawn_layer,
    entries,
    errors,
    fine,
    good,
    keys,
    labelled,
    open_tab,
    points_app,
    press_draw,
    texts,
)


@pytest.fixture
def draws(monkeypatch):
    """Every call of the one function that draws noise for a point mechanism."""
    calls, real = [], measure.discrete_laplace

    def counted(true, *rest):
        calls.append(len(true))
        return real(true, *rest)

    monkeypatch.setattr(measure, "discrete_laplace", counted)
    return calls


class TestStartPage:
    def test_it_says_what_this_is_and_leads_to_the_points_page(self):
        app = fine(AppTest.from_file(ROOT / "app.py", default_timeout=30).run())
        assert app.title[0].value == "What would you publish?"
        fine(app.button[0].click().run())
        assert "draw" in keys(app.button)


class TestBeforeTheFirstDraw:
    def test_teach_shows_the_public_truth(self, draws):
        app = fine(points_app())
        assert drawn_layer(app)["id"] == "truth"
        assert "the true data, which are public" in app.markdown[0].value
        assert draws == []

    def test_curate_shows_only_what_to_do(self, draws):
        app = fine(points_app(CURATE))
        assert not app.get("deck_gl_json_chart")
        assert not app.metric
        assert "Draw a release" in app.info[0].value
        assert draws == []

    def test_each_mode_says_what_is_protected_and_what_is_not(self):
        for link in (SMALL, CURATE):
            assert "**Protected:**" in captions(points_app(link))
            assert "**Not protected:** the domain" in captions(points_app(link))


class TestDrawing:
    def test_pressing_draw_draws_once(self, draws):
        app = fine(press_draw(points_app()))
        assert draws == [1, 4, 16, 64, 256]
        assert drawn_layer(app)["id"] == "partitions"
        assert len(drawn_layer(app)["data"]) == 256
        assert [metric.label for metric in app.metric] == ["Partitions shown", "Typical noise", "Error, all partitions", "False positives"]

    def test_nothing_but_the_button_draws(self, draws):
        app = press_draw(points_app())
        release, before = drawn(app).release, len(draws)
        good(app.run())
        for zoom in range(5):
            fine(app.slider(key="zoom").set_value(zoom).run())
            assert len(drawn_layer(app)["data"]) == 4**zoom
        for shown in SHOWN:
            fine(app.segmented_control(key="shown").set_value(shown).run())
        for name in NAMES:
            fine(open_tab(app, name))
        for theme in ("dark", "light"):
            app.context = {"theme": theme}
            fine(app.run())
        fine(app.text_input(key="epsilon").set_value("1.5").run())
        fine(app.number_input(key="setting quadtree height").set_value(5).run())
        fine(app.selectbox(key="preset").set_value("uniform").run())
        fine(app.selectbox(key="mechanism").set_value("identity").run())
        fine(app.slider(key="order").set_value(7).run())
        assert len(draws) == before
        assert drawn(app).release is release

    def test_colours_follow_the_theme_without_another_draw(self):
        app = press_draw(points_app())
        light, release = drawn_layer(app), drawn(app).release
        app.context = {"theme": "dark"}
        dark = drawn_layer(app.run())
        assert [row["c"] for row in dark["data"]] != [row["c"] for row in light["data"]]
        assert [row["n"] for row in dark["data"]] == [row["n"] for row in light["data"]]
        assert drawn(app).release is release

    @pytest.mark.parametrize("link", [SMALL, CURATE])
    def test_pressing_twice_gives_two_draws(self, link):
        app = press_draw(points_app(link))
        first = drawn(app)
        second = drawn(press_draw(app))
        assert (first.number, second.number) == (1, 2)
        assert (first.release.noisy != second.release.noisy).any()

    def test_teach_is_seeded_and_says_simulation(self):
        app, again = (press_draw(points_app()) for _ in range(2))
        assert drawn(app).release.simulation
        assert (drawn(app).release.noisy == drawn(again).release.noisy).all()
        assert "a simulation, not private" in app.html[-1].value
        opened = open_tab(app, "Table")
        assert "Simulation" in captions(opened)
        assert set(opened.dataframe[0].value["status"]) == {"SIMULATION: not private"}

    def test_a_changed_setting_is_said_to_be_newer_than_the_draw(self):
        app = press_draw(points_app())
        assert "have changed since draw" not in captions(app)
        app.slider(key="zoom").set_value(2).run()
        app.segmented_control(key="shown").set_value("Error").run()
        assert "have changed since draw" not in captions(app)
        app.text_input(key="epsilon").set_value("0.75").run()
        assert "have changed since draw" in captions(app)
        assert "have changed since draw" not in captions(press_draw(app))

    def test_every_tab_says_something(self):
        app = press_draw(points_app())
        assert any(verdict(drawn(app).release).headline in each.value.replace("\\", "") for each in app.markdown)
        charts = {name: len(open_tab(app, name).get("vega_lite_chart")) for name in NAMES}
        assert charts == {"Accuracy by zoom": 2, "By size": 1, "Range query": 1, "Receipt": 1, "Table": 0}
        assert len(app.dataframe[0].value) == 256
        assert list(app.dataframe[0].value["count"]) == sorted(app.dataframe[0].value["count"], reverse=True)

    def test_range_query_gives_parts_that_add_up(self):
        app = open_tab(press_draw(points_app()), "Range query")
        for side, value in zip(("West", "South", "East", "North"), (100.5, 200.25, 900.0, 800.0), strict=True):
            app.number_input(key=f"query {side}").set_value(value)
        fine(app.run())
        told = {metric.label: metric.value for metric in app.metric}
        estimate = drawn(app).release.answer([(100.5, 200.25, 900.0, 800.0)])[0]
        assert told["Released answer"] == f"{estimate:,.0f} records"
        app.number_input(key="query West").set_value(950.0).run()
        assert "A box needs an area" in good(app).error[0].value

    def test_a_range_query_that_reaches_outside_the_domain_says_how_far(self):
        app = open_tab(press_draw(points_app()), "Range query")
        west, south, east, north = drawn(app).release.domain.bounds
        for side, value in zip(("West", "South", "East", "North"), (west - (east - west), south, east, north), strict=True):
            app.number_input(key=f"query {side}").set_value(value)
        fine(app.run())
        assert any("50 % of the box lies outside the domain" in warning.value for warning in app.warning)
        told = {metric.label: metric.value for metric in app.metric}
        assert told["Released answer"] == f"{drawn(app).release.answer([(west, south, east, north)])[0]:,.0f} records"
        app.number_input(key="query East").set_value(west - 1).run()
        assert "The box lies outside the domain" in good(app).error[0].value


class TestCurate:
    def test_draws_add_up_exactly(self):
        app = points_app(CURATE | {"epsilon": "0.1"})
        assert "ε 0. The next draw makes it ε 0.1" in captions(app)
        press_draw(app)
        assert "ε 0.1. The next draw makes it ε 0.2" in captions(app)
        app.text_input(key="epsilon").set_value("0.2").run()
        press_draw(app)
        assert "ε 0.3. The next draw makes it ε 0.5" in captions(app)
        assert [entry.budget.epsilon for entry in entries()] == [Fraction(1, 10), Fraction(1, 5)]
        assert Ledger().accounts()[0].spent["epsilon"] == Fraction(3, 10)
        good(app.run())
        assert len(entries()) == 2

    def test_the_sum_belongs_to_the_data_whatever_the_lattice_and_the_mechanism(self):
        app = press_draw(points_app(CURATE))
        app.slider(key="order").set_value(5).run()
        app.selectbox(key="mechanism").set_value("identity").run()
        assert "ε 0.5. The next draw makes it ε 1" in captions(app)
        assert "ε 1. The next draw makes it ε 1.5" in captions(press_draw(app))

    def test_other_data_have_another_sum(self):
        app = press_draw(points_app(CURATE))
        fine(app.number_input(key="size").set_value(2000).run())
        assert "ε 0. The next draw makes it ε 0.5" in captions(app)

    def test_teach_spends_nothing(self):
        app = press_draw(points_app())
        assert entries() == []
        app.segmented_control(key="mode").set_value("Curate").run()
        assert "ε 0. The next draw" in captions(app)
        assert not app.get("deck_gl_json_chart")

    def test_noise_is_the_operating_systems(self):
        assert not drawn(press_draw(points_app(CURATE))).release.simulation

    def test_the_spend_is_written_down_before_the_noise_is_drawn(self, monkeypatch):
        def broken(*_):
            raise BudgetError("the noise failed")

        real = measure.discrete_laplace
        monkeypatch.setattr(measure, "discrete_laplace", lambda true, *rest: broken() if true.sum() else real(true, *rest))
        app = press_draw(points_app(CURATE))
        assert "the noise failed" in errors(app)
        assert "The budget is spent" in errors(app)
        assert len(entries()) == 1
        assert "ε 0.5. The next draw makes it ε 1" in captions(app)

    def test_no_truth_is_computed_or_shown_until_it_is_asked_for(self, monkeypatch):
        def forbidden(*_):
            raise AssertionError("the truth was looked at")

        page = import_module("dpviz.app.points_page")
        for module, name in ((state, "evaluate"), (page, "true_answers"), (page, "error_by_size")):
            monkeypatch.setattr(module, name, forbidden)
        app = press_draw(points_app(CURATE | {"shown": "True"}))
        assert app.segmented_control(key="shown").options == ["Released"]
        assert set(drawn_layer(app)["data"][0]) == {"p", "c", "i", "n", "a", "b"}
        for name in NAMES:
            open_tab(app, name)
            assert {metric.label for metric in app.metric} <= PUBLIC_FIGURES
        assert list(app.dataframe[0].value) == PUBLIC_COLUMNS
        assert not app.warning
        assert "looked_at" not in app.session_state or not app.session_state["looked_at"]
        assert not Ledger().accounts()[0].truth_seen

    def test_truth_is_watermarked_and_recorded(self):
        app = press_draw(points_app(CURATE))
        assert "looked at while tuning**: no" in texts(open_tab(app, "Receipt"))
        fine(labelled(app.toggle, "Show curator-only truth").set_value(True).run())
        assert "CURATOR ONLY" in captions(app)
        assert app.segmented_control(key="shown").options == list(SHOWN)
        assert "t" in drawn_layer(app)["data"][0]
        fine(labelled(app.toggle, "Show curator-only truth").set_value(False).run())
        assert "CURATOR ONLY" not in captions(app)
        assert "t" not in drawn_layer(app)["data"][0]
        assert "looked at while tuning**: yes" in texts(app)
        assert Ledger().accounts()[0].truth_seen

    def test_truth_chosen_in_teach_is_not_carried_into_curate(self):
        app = press_draw(points_app())
        app.segmented_control(key="shown").set_value("True").run()
        app.segmented_control(key="mode").set_value("Curate").run()
        press_draw(app)
        assert app.segmented_control(key="shown").value == "Released"
        assert "t" not in drawn_layer(app)["data"][0]

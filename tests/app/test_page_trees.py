"""Trees that pay for their structure on the Points page, budgets with a delta, and references that are not private."""

from fractions import Fraction

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.points_page import NAMES
from dpviz.mechanisms import POINT_MECHANISMS, REFERENCES
from dpviz.mechanisms.points.kdtree import VARIANTS
from dpviz.privacy.allocation import PUBLISHED
from dpviz.privacy.budget import ApproxBudget, PureBudget
from tests.app.walk import SMALL, captions, drawn, entries, fine, good, keys, open_tab, points_app, press_draw, shares_of, texts

KD = SMALL | {"mechanism": "kdtree"}
EXACT = SMALL | {"mechanism": "exact_kdtree"}
OTHER_HALF = "except with probability δ"


def settings_of(app):
    return app.session_state["config"].settings


def link_of(app):
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def refused_draw():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.points_state import CURATE, Config, draw  # noqa: PLC0415
    from dpviz.errors import SettingError  # noqa: PLC0415

    st.session_state["config"] = Config(mode=CURATE, mechanism="exact_kdtree")
    try:
        draw(None)
    except SettingError as error:
        st.session_state["said"] = str(error)


class TestVariants:
    def test_every_variant_draws_and_delta_is_asked_for_where_it_is_needed(self):
        app = points_app(KD | {"settings": '{"height":6}'})
        app.session_state["tab"] = "Receipt"
        for variant in VARIANTS:
            fine(app.selectbox(key="setting kdtree variant").set_value(variant).run())
            asked = variant == "smooth-sensitivity"
            assert ("delta" in keys(app.select_slider)) == asked
            assert (OTHER_HALF in captions(app)) == asked
            fine(press_draw(app))
            release = drawn(app).release
            assert release.settings["variant"] == variant
            assert release.receipt.spent == release.receipt.total == (ApproxBudget(0.5, 1e-6) if asked else PureBudget(0.5))
            assert ("δ" in app.dataframe[0].value) == asked
            early = any(step.replaces_later for step in release.receipt.steps)
            assert ("in the sum" in app.dataframe[0].value) == ("not added up" in captions(app)) == early
            assert "exactly all of it" in captions(app)

    def test_settings_that_make_no_difference_are_not_offered(self):
        app = points_app(KD)
        own = {}
        for variant in ("standard", "cell", "noisy-mean"):
            app.selectbox(key="setting kdtree variant").set_value(variant).run()
            own[variant] = keys([*app.number_input, *app.segmented_control])
        assert {"setting kdtree exponent", "setting kdtree sample"} <= own["standard"]
        assert own["cell"] - own["noisy-mean"] == {"setting kdtree cell_order"}
        assert own["noisy-mean"] - own["standard"] == {"setting kdtree outside"}

    def test_delta_is_recorded_and_shown(self):
        app = fine(points_app(KD | {"mode": "Curate", "delta": "1e-05", "settings": '{"height":4,"variant":"smooth-sensitivity"}'}))
        assert "ε 0. The next draw makes it ε 0.5, δ 1e-5" in captions(app)
        assert "ε 0.5, δ 1e-5. The next draw makes it ε 1, δ 2e-5" in captions(fine(press_draw(app)))
        assert [(entry.budget.epsilon, entry.budget.delta) for entry in entries()] == [(Fraction(1, 2), Fraction(1, 10**5))]
        assert {metric.label: metric.value for metric in app.metric}["Budget of this draw"] == "ε 0.5, δ 1e-5"
        app.select_slider(key="delta").set_value(1e-8).run()
        assert "have changed since draw" in captions(fine(app))
        fine(app.selectbox(key="setting kdtree variant").set_value("standard").run())
        assert "ε 0.5, δ 1e-5. The next draw makes it ε 1, δ 1e-5" in captions(app)
        assert link_of(app)["delta"] == "1e-08"


class TestSplit:
    def test_presets_are_for_counts_and_the_structure_keeps_its_share(self):
        app = fine(points_app(KD | {"settings": '{"height":5,"median_share":0.4}'}))
        fine(app.selectbox(key="preset").set_value("uniform").run())
        assert shares_of(app) == [40.0] + [10.0] * 6
        for published in PUBLISHED:
            fine(app.selectbox(key="preset").set_value(published.title).run())
            weights = published.weights(5)
            assert shares_of(app) == pytest.approx([40, *(60 * weight / sum(weights) for weight in weights)], abs=0.01)
            assert app.selectbox(key="preset").value == published.title
        again = fine(points_app(link_of(app)))
        assert (shares_of(again), settings_of(again)) == (shares_of(app), settings_of(app))
        assert "Structure (grey) 40.0%, counts (blue) 60.0%" in captions(fine(press_draw(app)))
        spent = {step.purpose: Fraction(0) for step in drawn(app).release.receipt.steps}
        for step in drawn(app).release.receipt.steps:
            spent[step.purpose] += step.amount
        assert float(spent["medians"]) == pytest.approx(0.2, abs=1e-6)

    def test_structure_that_is_typed_leaves_the_named_split_and_locks_alone(self):
        app = fine(points_app(KD))
        fine(app.number_input(key="share 0").set_value(100.0).run())
        assert settings_of(app) == {"height": 4, "median_share": 0.99}
        fine(app.number_input(key="share 0").set_value(45.0).run())
        assert (app.selectbox(key="preset").value, shares_of(app)[0]) == ("geometric", 45.0)
        fine(app.checkbox(key="lock 0").check().run())
        fine(app.number_input(key="share 5").set_value(30.0).run())
        assert (app.selectbox(key="preset").value, shares_of(app)[0], shares_of(app)[5]) == ("custom", 45.0, 30.0)
        assert sum(settings_of(app)["weights"]) == pytest.approx(1, abs=1e-5)
        fine(app.number_input(key="setting kdtree height").set_value(3).run())
        assert settings_of(app) == {"height": 3, "median_share": 0.45}
        fine(press_draw(app))


class TestReferences:
    def test_they_are_offered_in_teach_and_say_everywhere_that_they_are_not_private(self):
        app = fine(points_app(EXACT))
        assert app.selectbox(key="mechanism").options == [each.title for each in [*POINT_MECHANISMS.values(), *REFERENCES.values()]]
        assert all("NOT PRIVATE" in reference.title for reference in REFERENCES.values())
        assert "NOT PRIVATE" in app.warning[0].value
        assert "**NOT PRIVATE:** the chosen reference protects nothing" in captions(app)
        assert "the odds" not in captions(app)
        for counts in ("noisy", "exact"):
            fine(app.segmented_control(key="setting exact_kdtree counts").set_value(counts).run())
            fine(press_draw(app))
            assert any("<b>NOT PRIVATE</b>, draw" in each.value for each in app.html)
            for name in NAMES:
                fine(open_tab(app, name))
                assert any('content: "NOT PRIVATE:' in each.value for each in app.html)
        assert drawn(app).release.stddev.max() == 0
        assert "count (NOT PRIVATE)" in app.dataframe[0].value
        open_tab(app, "Receipt")
        assert "**NOT PRIVATE**: nothing is protected" in texts(app)
        assert "every count is exact" in captions(app)
        assert not app.dataframe

    def test_curate_refuses_them_and_loses_nothing(self):
        app = good(points_app(EXACT | {"mode": "Curate"}))
        assert "is for Teach only" in app.error[0].value
        assert app.selectbox(key="mechanism").options == [each.title for each in POINT_MECHANISMS.values()]
        assert app.selectbox(key="mechanism").value is None
        assert keys(app.button) == {"forget config"}
        good(app.segmented_control(key="mode").set_value("Teach").run())
        assert (app.selectbox(key="mechanism").value, settings_of(app)) == ("exact_kdtree", {"height": 4})
        good(app.segmented_control(key="mode").set_value("Curate").run())
        fine(press_draw(fine(app.selectbox(key="mechanism").set_value("kdtree").run())))
        assert len(entries()) == 1

    def test_a_draw_in_curate_is_refused_by_itself_and_spends_nothing(self):
        app = AppTest.from_function(refused_draw).run()
        assert "is for Teach only" in app.session_state["said"]
        assert entries() == []
        assert "draws" not in app.session_state

"""The start page and the Points page: what is shown, what is drawn, what is spent, and its controls."""

from fractions import Fraction
from importlib import import_module
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.components.mechanism_controls import fits_buttons
from dpviz.app.pages.points import state
from dpviz.app.pages.points.tabs import NAMES
from dpviz.app.state.view import Pane
from dpviz.mechanisms import MECHANISMS, REFERENCES
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.points.kdtree import VARIANTS
from dpviz.privacy.allocation import PUBLISHED
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.release.intervals import ASSUMED, NONE_TO_ALL
from dpviz.release.verdict import USABLE, verdict
from dpviz.view.points_map import SHOWN
from tests.app.rails import rail_of
from tests.app.seen import (
    account,
    captions,
    drawn,
    entries,
    errors,
    figures,
    fine,
    good,
    keys,
    missing,
    noised,
    released_map,
    shares_of,
    texts,
    warnings,
)
from tests.app.start import CURATE, SMALL, points_app, query_of, uploaded
from tests.app.walk import ROOT, open_drawer, open_tab, press_draw, to_mode, truth_switch
from tests.often import often

KD = SMALL | {"mechanism": "kdtree"}
EXACT = SMALL | {"mechanism": "exact_kdtree"}
OTHER_HALF = "except with probability δ"
STALE = "have changed since draw"
# What this page and the Trips page say in figures before the truth is shown.
PUBLIC_FIGURES = {
    *("Partitions shown", "Pairs released", "Typical noise (standard deviation)", "Released total", "Budget of this draw"),
    *("Released answer", "95 % interval, noise only", f"Interval: {ASSUMED}", f"Interval: {NONE_TO_ALL}"),
}


@pytest.fixture
def draws(monkeypatch):
    """The one function that draws noise for these mechanisms, as a mock that draws and counts its calls."""
    monkeypatch.setattr(measure, "discrete_laplace", Mock(wraps=measure.discrete_laplace))
    return measure.discrete_laplace


def settings_of(app):
    return app.session_state["config"].draft.run.settings


def press_default(app):
    return fine(next(button for button in app.button if "default" in button.label).click().run())


class TestBeforeTheFirstDraw:
    @pytest.mark.parametrize(("button", "there"), [("Open the map", "again"), ("Learn in short lessons", "learn skip")])
    def test_the_start_page_leads_to_the_others(self, button, there):
        app = fine(AppTest.from_file(ROOT / "app.py", default_timeout=120).run())
        assert app.title[0].value == "What would you publish?"
        fine(next(each for each in app.button if each.label == button).click().run())
        assert there in keys(app.button)

    def test_curate_says_what_to_do_and_draws_nothing(self, draws):
        app = fine(points_app(CURATE))
        assert not app.metric
        assert app.button(key="draw").label == "Run and pay ε 0.5"
        assert "**Protected:**" in captions(app)
        assert "**Not protected:** the domain" in captions(app)
        assert not noised(draws)


@pytest.mark.parametrize(
    ("config", "protected"),
    [
        (SMALL, "one record"),
        (SMALL | {"sample": "daily_routes"}, "one record"),
        (SMALL | {"sample": "daily_routes_bounded"}, "one person"),
        (CURATE, "one record"),
    ],
)
def test_the_promise_of_the_budget_names_what_the_data_protect(config, protected):
    assert f"the odds that {protected} is in the data change" in captions(fine(open_drawer(points_app(config), "Method")))


def test_the_promise_of_the_budget_names_both_while_it_is_open_what_the_data_protect():
    app = fine(uploaded(unit=None))
    assert "the odds that one record (or person) is in the data change" in captions(app)


class TestGaussianNoise:
    def test_it_takes_a_delta_and_spends_shares_of_rho_and_other_mechanisms_have_no_choice(self, monkeypatch):
        rail = rail_of(monkeypatch)
        app = open_drawer(points_app(SMALL), "Method")
        assert "delta" not in keys(app.select_slider)
        fine(app.segmented_control(key="noise").set_value("Gaussian").run())
        receipt = drawn(app).release.receipt
        assert {step.noise for step in receipt.steps} == {"discrete Gaussian"}
        assert receipt.total.delta > 0
        assert "except with probability δ" in captions(app)
        assert [part.share for part in rail.parts] == pytest.approx([float(s.amount / receipt.available) for s in receipt.steps])
        assert query_of(app)["noise"] == "Gaussian"
        assert "by the exact conversion" in captions(fine(open_tab(app, "Receipt")))
        assert "**Verdict**, from released numbers alone: " in texts(app)
        fine(open_drawer(app, "Method").selectbox(key="mechanism").set_value("privtree").run())
        assert "noise" not in keys(app.segmented_control)
        assert "delta" not in keys(app.select_slider)

    def test_both_noises_lie_side_by_side(self):
        second = '{"mechanism":"quadtree","settings":{"height":4},"epsilon":"0.5","delta":1e-06,"noise":"Gaussian"}'
        link = SMALL | {"second": second, "left": "Second run"}
        app = fine(points_app(link))
        draft = app.session_state["config"].draft
        first, second_run = draft.of_run(0), draft.of_run(1)
        assert (first.run.noise, second_run.run.noise) == ("Laplace", "Gaussian")
        assert (first.takes_delta, second_run.takes_delta) == (False, True)
        assert query_of(app)["second"] == second

    def test_a_draw_is_paid_with_its_delta(self):
        app = fine(press_draw(points_app(CURATE | {"noise": "Gaussian"})))
        assert entries()[0].budget == ApproxBudget("0.5", "1e-6")
        assert drawn(app).release.receipt.conversion == "exact"


class TestDrawing:
    def test_in_curate_only_the_button_draws_and_changed_settings_are_marked_as_newer_than_the_draw(self, draws):
        app = fine(press_draw(points_app(CURATE)))
        assert [len(call.args[0]) for call in noised(draws)] == [1, 4, 16, 64, 256]
        fine(app.slider(key="zoom").set_value(4).run())
        (light, numbers), release = released_map(app), drawn(app).release
        assert len(numbers["released released"]) == 256
        assert not light["maySave"]
        app.context = {"theme": "dark"}
        dark, again = released_map(fine(app.run()))
        assert dark["paper"] != light["paper"]
        assert (again["released released"] == numbers["released released"]).all()
        for zoom in (0, 2):
            fine(app.slider(key="zoom").set_value(zoom).run())
            assert len(released_map(app)[1]["released released"]) == 4**zoom
        made = len(noised(draws))
        fine(truth_switch(app).set_value(True).run())
        for shown in SHOWN:
            fine(app.segmented_control(key="shown").set_value(shown).run())
        assert STALE not in captions(app)
        for kind, key, value in (
            ("text_input", "epsilon", "1.5"),
            ("number_input", "setting quadtree height", 5),
            ("selectbox", "preset", "uniform"),
            ("selectbox", "mechanism", "identity"),
            ("select_slider", "order", 7),
        ):
            fine(getattr(app, kind)(key=key).set_value(value).run())
            assert STALE in captions(app)
        assert len(noised(draws)) == made
        assert drawn(app).release is release
        assert STALE not in captions(fine(press_draw(app)))

    @pytest.mark.parametrize(("link", "button"), [(SMALL, "again"), (CURATE, "draw")])
    def test_pressing_twice_gives_two_draws(self, link, button):
        app = press_draw(points_app(link))
        first = drawn(app)
        second = drawn(fine(press_draw(app) if button == "draw" else app.button(key=button).click().run()))
        assert (first.number, second.number) == (1, 2)
        assert (first.release.noisy != second.release.noisy).any()
        assert first.release.simulation == (link is SMALL)  # else the noise is the operating system's

    def test_draws_in_teach_are_seeded_and_marked_as_simulations_and_every_tab_is_filled(self):
        app, again = (press_draw(points_app()) for _ in range(2))
        assert (drawn(app).release.noisy == drawn(again).release.noisy).all()
        assert any("a simulation, not private" in each.value for each in app.html)
        charts = {name: len(fine(open_tab(app, name)).get("vega_lite_chart")) for name in NAMES}
        assert charts == {"By size": 1, "Range query": 1, "Receipt": 1, "Table": 0}
        assert "Simulation" in captions(app)
        table = app.dataframe[0].value
        assert set(table["status"]) == {"SIMULATION: not private"}
        assert len(table) == 256
        assert list(table["count"]) == sorted(table["count"], reverse=True)

    def test_a_range_query_is_answered_with_a_warning_about_what_lies_outside(self):
        app = open_tab(press_draw(points_app()), "Range query")
        west, south, east, north = whole = drawn(app).release.domain.bounds
        within = (100.5, 200.25, 900.0, 800.0)
        for box, inside in ((within, within), ((2 * west - east, south, east, north), whole)):
            for side, value in zip(("West", "South", "East", "North"), box, strict=True):
                app.number_input(key=f"query {side}").set_value(value)
            fine(app.run())
            assert figures(app)["Released answer"] == f"{drawn(app).release.answer([inside])[0]:,.0f} records"
        assert "50 % of the box lies outside the domain" in warnings(app)

    @pytest.mark.parametrize("link", [SMALL, CURATE])
    def test_a_tree_too_large_for_memory_is_an_error(self, link):
        app = points_app(link | {"order": "16", "settings": '{"height":16}'})
        assert "nodes are allowed" in errors(app)
        assert "mode" not in link or app.button(key="draw").disabled
        assert drawn(app) is None

    def test_a_release_opens_at_its_finest_usable_level_and_finer_ones_are_drawn_too(self):
        app = fine(press_draw(points_app(CURATE | {"settings": '{"height":8}', "order": "10"})))
        usable = [level.level for level in verdict(drawn(app).release).levels if level.grade == USABLE]
        assert app.slider(key="zoom").value == max(usable)
        fine(app.slider(key="zoom").set_value(8).run())
        assert len(released_map(app)[1]["released released"]) == 65_536


class TestCurate:
    def test_draws_add_up_exactly_whatever_the_lattice_and_the_mechanism_and_other_data_have_another_sum(self):
        app = points_app(CURATE | {"epsilon": "0.1"})
        assert "ε 0. The next draw makes it ε 0.1" in captions(app)
        assert "ε 0.1. The next draw makes it ε 0.2" in captions(press_draw(app))
        app.text_input(key="epsilon").set_value("0.2").run()
        assert "ε 0.3. The next draw makes it ε 0.5" in captions(press_draw(app))
        assert account().spent["epsilon"] == Fraction(3, 10)
        app.select_slider(key="order").set_value(5).run()
        app.selectbox(key="mechanism").set_value("identity").run()
        assert "ε 0.3. The next draw makes it ε 0.5" in captions(app)
        assert "ε 0.5. The next draw makes it ε 0.7" in captions(press_draw(app))
        fine(app.number_input(key="size").set_value(2000).run())
        assert "ε 0. The next draw makes it ε 0.2" in captions(app)
        assert len(entries()) == 3

    def test_teach_spends_nothing_and_its_truth_is_not_carried_into_curate(self):
        app = press_draw(points_app())
        assert entries() == []
        app.selectbox(key="pane 1").set_value("True").run()
        to_mode(app, "Curate")
        assert "ε 0. The next draw" in captions(app)
        press_draw(app)
        assert app.segmented_control(key="shown").value == "Released"
        assert "released true" not in released_map(app)[1]

    def test_no_truth_is_computed_or_shown_before_the_switch_is_on(self, monkeypatch):
        page = import_module("dpviz.app.pages.points.tabs")
        for names, name in ((state.RELEASES, "evaluate"), (page, "true_answers"), (page, "error_by_size")):
            monkeypatch.setitem(vars(names), name, Mock(side_effect=AssertionError("the truth was looked at")))
        app = press_draw(points_app(CURATE | {"shown": "True"}))
        assert app.segmented_control(key="shown").options == ["Released"]
        assert not [name for name in released_map(app)[1] if "true" in name]
        for name in NAMES:
            assert {*figures(open_tab(app, name))} <= PUBLIC_FIGURES
        assert not [name for name in app.dataframe[0].value if "true" in name.lower() or "error" in name.lower()]
        assert not app.warning
        assert not account().truth_seen

    def test_truth_is_watermarked_and_recorded(self):
        app = press_draw(points_app(CURATE))
        assert "looked at while tuning**: no" in texts(open_tab(app, "Receipt"))
        fine(truth_switch(app).set_value(True).run())
        assert "CURATOR ONLY" in captions(app)
        assert app.segmented_control(key="shown").options == list(SHOWN)
        assert "released true" in released_map(app)[1]
        fine(truth_switch(app).set_value(False).run())
        assert "CURATOR ONLY" not in captions(app)
        assert "released true" not in released_map(app)[1]
        assert "looked at while tuning**: yes" in texts(app)
        assert account().truth_seen


def menu_entries(*mechanisms):
    """The names of mechanisms in the menu, each with that of its group."""
    return [f"{each.title} · {each.menu_group.lower()}" for each in mechanisms]


class TestReferences:
    def test_teach_offers_them_and_marks_them_everywhere_as_not_private(self):
        app = fine(open_drawer(points_app(EXACT), "Method"))
        assert app.selectbox(key="mechanism").options == menu_entries(*MECHANISMS.of("points").values(), *REFERENCES.of("points").values())
        assert all("NOT PRIVATE" in reference.title for reference in REFERENCES.of("points").values())
        assert "NOT PRIVATE" in app.warning[0].value
        assert "**NOT PRIVATE:** the chosen reference protects nothing" in captions(app)
        assert "the odds" not in captions(app)
        fine(app.segmented_control(key="setting exact_kdtree counts").set_value("exact").run())
        assert any("NOT PRIVATE, run" in each.value for each in fine(press_draw(app)).html)
        for name in NAMES:
            fine(open_tab(app, name))
            assert any('content: "NOT PRIVATE:' in each.value for each in app.html)
        assert drawn(app).release.node_stddev.max() == 0
        assert "count (NOT PRIVATE)" in app.dataframe[0].value
        open_tab(app, "Receipt")
        assert "**NOT PRIVATE**: nothing is protected" in texts(app)
        assert not app.dataframe

    @pytest.mark.slow
    @pytest.mark.parametrize("key", [key for key, kind in REFERENCES.of("points").items() if not kind.spends])
    def test_a_contrast_says_what_breaks_it_which_epsilon_is_as_useful_and_that_it_states_no_noise(self, key):
        app = fine(open_drawer(points_app(SMALL | {"mechanism": key, "settings": "{}"}), "Method"))
        assert f":orange[**NOT PRIVATE**]: {REFERENCES.of('points')[key].attack}" in texts(app)
        assert "this method has no ε: the slider has no effect on it" in captions(app)
        assert "not stated" in [each.value for each in open_drawer(app, "Numbers").metric]
        for name in NAMES:
            fine(open_tab(app, name))
            assert "nan" not in texts(app).replace("financ", "")
        open_tab(app, "Table")
        assert not {"stddev", "to"} & set(app.dataframe[0].value)
        for button in [each for each in app.button if each.key == "equal"]:
            fine(button.click().run())
            assert app.session_state["config"].view.panes[0] == Pane(run=1)
            assert app.session_state["config"].draft.runs[1].mechanism == "quadtree"

    def test_curate_refuses_them_and_loses_nothing(self):
        app = points_app(EXACT | {"mode": "Curate"})
        assert "is for Teach only" in errors(app)
        offered = app.selectbox(key="mechanism")
        assert (offered.options, offered.value) == (menu_entries(*MECHANISMS.of("points").values()), None)
        assert app.button(key="draw").disabled
        assert "Correct the mechanism or its settings." in missing(app)
        open_drawer(to_mode(app, "Teach"), "Method")
        assert (app.selectbox(key="mechanism").value, settings_of(app)) == ("exact_kdtree", {"height": 4})
        to_mode(app, "Curate")
        fine(press_draw(fine(app.selectbox(key="mechanism").set_value("kdtree").run())))
        assert len(entries()) == 1


def widget(app, rule, name):
    """The control of a setting."""
    kind = {bool: "toggle", tuple: "text_input"}.get(type(rule.default), "number_input")
    if rule.choices:
        kind = "segmented_control" if fits_buttons(rule.choices) else "selectbox"
    return getattr(app, kind)(key=f"setting {name} {rule.name}")


def other_value(rule):
    """A value that is allowed and is not the default."""
    if rule.choices:
        return rule.choices[-1]
    if isinstance(rule.default, tuple):
        return rule.default[:2]
    return not rule.default if isinstance(rule.default, bool) else rule.low if rule.low not in (0, rule.default) else rule.low + 1


class TestSettings:
    @pytest.mark.parametrize("name", often(MECHANISMS.of("points"), ["uniform_grid"]))
    def test_a_mechanism_draws_with_its_defaults_and_every_setting_can_be_changed_and_set_back(self, name):
        app = points_app({"sample": "gaussian_cluster", "size": "1000", "order": "6", "mode": "Curate"})  # where nothing runs by itself
        fine(app.selectbox(key="mechanism").set_value(name).run())
        rules = {rule.name: rule for rule in MECHANISMS.of("points")[name].rules() if rule.name not in ("split", "weights")}
        defaults = MECHANISMS.of("points")[name]().chosen()
        widgets = keys([*app.number_input, *app.toggle, *app.segmented_control, *app.selectbox, *app.text_input])
        offered = {key for key in widgets if key and key.startswith("setting ")}
        assert offered == {f"setting {name} {rule.name}" for rule in rules.values() if rule.matters(defaults)}
        for rule in rules.values():
            name_of, wanted = rule.when or (None, None)
            before = {} if rule.matters(defaults) else {name_of: wanted[0] if isinstance(wanted, tuple) else wanted}
            for change in [before, {rule.name: other_value(rule)}, {rule.name: rule.default}, {each: defaults[each] for each in before}]:
                for each, value in change.items():
                    typed = ", ".join(map(str, value)) if isinstance(value, tuple) else value
                    good(widget(app, rules[each], name).set_value(typed).run())
                    assert all("needs one, which is then public" in error.value for error in app.error)  # the number of records is open
                left = {each: value for each, value in change.items() if value != defaults[each]}
                assert settings_of(app) in (left, before | left)
        fine(press_draw(app))
        assert drawn(app).release.mechanism == name
        for tab in NAMES:
            fine(open_tab(app, tab))

    def test_parameters_of_a_link_set_the_controls_and_the_address_follows_them(self):
        link = CURATE | {"size": "500", "order": "5", "epsilon": "2.5", "mechanism": "identity", "settings": '{"order":4}'}
        app = fine(points_app(link))
        assert (app.segmented_control(key="mode").value, app.selectbox(key="mechanism").value) == ("Curate", "identity")
        assert (app.number_input(key="size").value, app.number_input(key="setting identity order").value) == (500, 4)
        app.text_input(key="epsilon").set_value("0.75").run()
        app.selectbox(key="mechanism").set_value("quadtree").run()
        assert query_of(app)["epsilon"] == "0.75"
        again = fine(points_app(query_of(app)))
        assert again.session_state["config"] == app.session_state["config"]

    def test_the_slider_follows_a_typed_budget_and_extreme_budgets_have_a_warning(self):
        app = open_drawer(points_app(), "Method")
        for typed, nearest, warning in (("0.11", 0.1, ""), ("0.01", 0.01, "buries"), ("8", 7.0, "promises little")):
            fine(app.text_input(key="epsilon").set_value(typed).run())
            assert app.select_slider(key="epsilon slider").value == nearest
            assert app.session_state["config"].draft.run.epsilon == Fraction(typed)
            assert (warning in warnings(app)) if warning else not app.warning


class TestSplit:
    @pytest.mark.parametrize(
        ("link", "structure"), [(SMALL | {"settings": '{"height":5}'}, []), (KD | {"settings": '{"height":5,"median_share":0.4}'}, [40])]
    )
    def test_named_and_published_splits_change_the_shares_of_counts_and_can_be_drawn(self, link, structure):
        app = fine(open_drawer(points_app(link), "Split"))
        weights = {"uniform": [1] * 6, "leaf": [0] * 5 + [1]} | {each.title: each.weights(5) for each in PUBLISHED}
        for name, parts in weights.items():
            fine(app.selectbox(key="preset").set_value(name).run())
            counts = [(100 - sum(structure)) * part / sum(parts) for part in parts]
            assert shares_of(app) == pytest.approx([*structure, *counts], abs=0.01)
            assert app.selectbox(key="preset").value == name
            assert all(each.source in captions(app) for each in PUBLISHED if each.title == name)
        again = fine(open_drawer(points_app(query_of(app)), "Split"))
        assert (shares_of(again), settings_of(again)) == (shares_of(app), settings_of(app))
        assert ("Structure (grey) 40.0%, counts (blue) 60.0%" in captions(fine(press_draw(app)))) == bool(structure)
        medians = sum(step.amount for step in drawn(app).release.receipt.steps if step.purpose == "medians")
        assert float(medians) == pytest.approx(sum(structure) / 200, abs=1e-6)

    def test_typed_shares_are_redistributed_around_locked_ones_and_another_height_starts_over(self):
        app = open_drawer(points_app(), "Split")
        fine(app.selectbox(key="preset").set_value("uniform").run())
        fine(app.checkbox(key="lock 1").check().run())
        for place, typed in ((4, 0.0), (0, 100.0), (2, 33.333), (4, 50.0), (1, 70.0)):
            fine(app.number_input(key=f"share {place}").set_value(typed).run())
            assert sum(shares_of(app)) == pytest.approx(100, abs=0.05)
        shares = shares_of(app)
        assert (shares[1], shares[4]) == (20, 50)
        receipt = drawn(fine(press_draw(app))).release.receipt
        assert [float(step.amount) for step in receipt.steps] == pytest.approx([0.005 * share for share in shares if share], abs=1e-4)
        assert receipt.spent == receipt.total
        fine(open_drawer(app, "Method").number_input(key="setting quadtree height").set_value(6).run())
        assert len(shares_of(open_drawer(app, "Split"))) == 7
        fine(press_draw(app))

    @pytest.mark.parametrize(("order", "weights"), [("6", "[1,2]"), ("3", "[1,1,1,1,1]")])
    def test_a_split_that_does_not_fit_is_refused_and_can_be_dropped(self, order, weights):
        app = points_app(SMALL | {"order": order, "settings": f'{{"height":4,"split":"custom","weights":{weights}}}'})
        assert "weights for this tree" in errors(app)
        fine(press_draw(press_default(app)))


class TestTrees:
    def test_every_variant_draws_and_those_that_need_a_delta_have_a_control_for_it(self):
        app = points_app(KD)
        for variant in VARIANTS:
            fine(open_drawer(app, "Method").selectbox(key="setting kdtree variant").set_value(variant).run())
            needs_delta = variant == "smooth-sensitivity"
            assert ("delta" in keys(app.select_slider)) == needs_delta
            assert (OTHER_HALF in captions(app)) == needs_delta
            fine(press_draw(app))
            release = drawn(app).release
            assert release.settings["variant"] == variant
            assert release.receipt.spent == release.receipt.total == (ApproxBudget(0.5, 1e-6) if needs_delta else PureBudget(0.5))
            assert ("δ" in open_tab(app, "Receipt").dataframe[0].value) == needs_delta
            early = any(step.replaces_later for step in release.receipt.steps)
            assert ("in the sum" in app.dataframe[0].value) == ("not added up" in captions(app)) == early
            assert "exactly all of it" in captions(app)

    def test_delta_is_recorded_and_shown(self):
        app = fine(points_app(KD | {"mode": "Curate", "delta": "1e-05", "settings": '{"height":4,"variant":"smooth-sensitivity"}'}))
        assert "ε 0. The next draw makes it ε 0.5, δ 1e-5" in captions(app)
        assert "ε 0.5, δ 1e-5. The next draw makes it ε 1, δ 2e-5" in captions(fine(press_draw(app)))
        assert figures(app)["Budget of this draw"] == "ε 0.5, δ 1e-5"
        app.select_slider(key="delta").set_value(1e-8).run()
        assert STALE in captions(fine(app))
        fine(app.selectbox(key="setting kdtree variant").set_value("standard").run())
        assert "ε 0.5, δ 1e-5. The next draw makes it ε 1, δ 1e-5" in captions(app)
        assert query_of(app)["delta"] == "1e-08"

    def test_structure_that_is_typed_leaves_the_named_split_and_locks_alone(self):
        app = fine(open_drawer(points_app(KD), "Split"))
        fine(app.number_input(key="share 0").set_value(100.0).run())
        assert settings_of(app) == {"height": 4, "median_share": 0.99}
        fine(app.number_input(key="share 0").set_value(45.0).run())
        assert (app.selectbox(key="preset").value, shares_of(app)[0]) == ("geometric", 45.0)
        fine(app.checkbox(key="lock 0").check().run())
        fine(app.number_input(key="share 5").set_value(30.0).run())
        assert (app.selectbox(key="preset").value, shares_of(app)[0], shares_of(app)[5]) == ("custom", 45.0, 30.0)
        assert sum(settings_of(app)["weights"]) == pytest.approx(1, abs=1e-5)
        fine(open_drawer(app, "Method").number_input(key="setting kdtree height").set_value(3).run())
        assert settings_of(app) == {"height": 3, "median_share": 0.45}
        fine(press_draw(app))

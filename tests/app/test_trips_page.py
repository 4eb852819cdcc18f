"""The Trips page: what is shown, what is drawn, what is spent."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from dpviz.app.components.panes import Chosen
from dpviz.app.pages.trips import tabs
from dpviz.app.pages.trips.tabs import TAB_TITLES
from dpviz.app.session import cached
from dpviz.app.state.kinds import TRIPS
from dpviz.app.state.links import read_link
from dpviz.errors import SettingError
from dpviz.mechanisms import MECHANISMS, REFERENCES
from dpviz.mechanisms import run as measure
from dpviz.samples.trips import load_trip_sample
from dpviz.view.trips_drawing import SHOWN_TRIPS, TripsMapSettings, draw_trips
from tests.app.parts import changed_page, page_with
from tests.app.seen import (
    account,
    captions,
    entries,
    errors,
    figures,
    fine,
    good,
    labelled,
    noised,
    scene,
    scenes,
    shares_of,
    texts,
    trips_drawn,
)
from tests.app.start import CURATE_TRIPS, FLIGHTS, query_of, trips_app, trips_uploaded
from tests.app.test_points_page import PUBLIC_FIGURES
from tests.app.walk import open_drawer, open_tab, press_draw, public, say_how_many, truth_switch
from tests.often import often
from tests.view.trips_cases import grid, random_trips, released


@pytest.fixture
def draws(monkeypatch):
    """The one function that draws noise for TopDown, as a mock that draws and counts its calls."""
    monkeypatch.setattr(measure, "discrete_gaussian", Mock(wraps=measure.discrete_gaussian))
    return measure.discrete_gaussian


def changed(app, **settings):
    """The page with another configuration."""
    app.session_state["trips config"] = changed_page(app.session_state["trips config"], **settings)
    return good(app.run())


class TestBeforeTheFirstDraw:
    def test_curate_shows_instructions_and_what_is_protected_and_nothing_is_drawn(self, draws):
        app = fine(trips_app(CURATE_TRIPS))
        assert app.button(key="draw").label == "Run and pay ε 1, δ 1e-8"
        assert "**Protected:** replacing, adding or removing one trip" in captions(app)
        assert "**Not protected:** the regions" in captions(app)
        assert len(scenes(app)) == 1, "the declared regions"
        assert not noised(draws)


def test_a_click_chooses_a_region_or_fills_in_the_ends_of_an_arc(monkeypatch):
    toggled, state = Mock(), {}
    monkeypatch.setattr(tabs, "toggle_region", toggled)
    monkeypatch.setattr(tabs, "st", SimpleNamespace(session_state=state))
    release, _ = released(random_trips(grid()))
    drawing, regions = draw_trips(release, TripsMapSettings(level=2)), release.tree.origins
    click = partial(Chosen, pane=0, longitude=0.0, latitude=0.0)
    for nothing in (click(kind="cell", cell=None), click(kind="area", cell=99), click(kind="arc", cell=9999), click(kind="end", cell=1)):
        tabs.take_chosen(regions, drawing, nothing)
    assert (toggled.called, state) == (False, {})
    tabs.take_chosen(regions, drawing, click(kind="area", cell=3))
    toggled.assert_called_once_with(3)
    assert state == {"trips tab": "Region"}
    tabs.take_chosen(regions, drawing, click(kind="arc", cell=1))
    ends = {"From": int(drawing.arcs.origin[1]), "To": int(drawing.arcs.destination[1])}
    assert {side: state[f"pair {side} region 2"] for side in ends} == ends
    assert {state["trips tab"], *(state[f"pair {side} level"] for side in ends)} == {"Pair of regions", regions.levels[1]}


class TestContrasts:
    @pytest.mark.slow
    @pytest.mark.parametrize("key", REFERENCES.of("trips"))
    def test_they_say_what_breaks_them_and_that_they_state_no_noise(self, key):
        app = fine(trips_app({"mechanism": key, "settings": "{}"}))
        assert f":orange[**NOT PRIVATE**]: {REFERENCES.of('trips')[key].attack}" in texts(app)
        assert "not stated" in [each.value for each in open_drawer(app, "Numbers").metric]
        assert "No level is usable" not in texts(app)
        for name in TAB_TITLES:
            fine(open_tab(app, name))

    @pytest.mark.slow
    def test_curate_offers_none(self):
        app = fine(trips_app(CURATE_TRIPS))
        assert not {kind.title for kind in REFERENCES.of("trips").values()} & {
            each.split(" · ")[0] for each in app.selectbox(key="mechanism").options
        }
        assert not {kind.title for kind in REFERENCES.of("trips").values()} & {*app.selectbox(key="beside").options}


class TestWhatIsProtected:
    def test_a_trip_where_no_person_is_declared(self):
        said = captions(fine(open_drawer(trips_app(), "Method")))
        assert "the odds that one trip is in the data change" in said
        assert "**Protected:** replacing, adding or removing one trip between the regions. **Not" in said

    def test_a_person_where_the_data_say_so(self, monkeypatch):
        trips = replace(load_trip_sample("us_flights"), contributions=3, unit="person", exactly=True)
        monkeypatch.setattr(cached, "trip_sample", lambda _: trips)
        said = captions(fine(open_drawer(trips_app(), "Method")))
        assert "the odds that one person is in the data change" in said
        assert "**Protected:** replacing, adding or removing one person, with all trips of this person." in said


class TestDrawing:
    def test_teach_releases_every_stage_once_without_a_press_and_again_when_a_control_changes(self, draws):
        app = fine(trips_app())
        assert [len(call.args[0]) for call in draws.call_args_list][:2] == [10, 100]
        assert list(figures(open_drawer(app, "Numbers"))) == ["Pairs released", "Typical noise (standard deviation)", "Largest error"]
        header, _ = scene(app)
        assert [pane["title"] for pane in header["panes"]] == ["True flights", "Released flights"]
        for shown in SHOWN_TRIPS:
            fine(changed(app, shown=shown))
        open_drawer(app, "Map")
        for marks in ("Areas", "Arcs"):
            fine(app.segmented_control(key="marks").set_value(marks).run())
        app.number_input(key="top").set_value(20).run()
        assert [pane["arcs"]["count"] for pane in scene(app)[0]["panes"]] == [20, 20]
        fine(app.number_input(key="least").set_value(100_000).run())
        assert draws.call_count == 6
        before = trips_drawn(open_drawer(app, "Method"))
        app.text_input(key="epsilon").set_value("2.0").run()
        assert draws.call_count == 12
        fine(app.button(key="undo").click().run())
        assert trips_drawn(app) is before
        fine(app.button(key="again").click().run())
        assert (trips_drawn(app).number, draws.call_count) == (2, 18)

    def test_both_panes_say_the_same_of_a_region_and_the_key_figure_agrees_with_the_arcs(self):
        app = fine(trips_app(FLIGHTS | {"top": "5000"}))
        header, _ = scene(app)
        stage = trips_drawn(app).release.stages[2]
        between, every = int((stage.origin != stage.destination).sum()), len(stage.count)
        assert header["panes"][1]["arcs"]["count"] == between < every
        (figure,) = [each for each in open_drawer(app, "Numbers").metric if each.label == "Pairs released"]
        assert (figure.value, figure.delta) == (f"{every:,}", f"{between:,} between regions, {every - between} within")
        assert header["panes"][0]["areas"] == header["panes"][1]["areas"] == ["first 0"]
        assert all("true: " in text for text in header["areas"]["first 0"]["texts"])

    @pytest.mark.slow
    def test_a_second_run_has_a_mechanism_and_a_budget_of_its_own_and_stands_beside_the_first_in_every_tab(self):
        app = fine(
            changed(trips_app(), left="Second run", second=page_with("trips", mechanism="stability_histogram", settings={}).draft.run)
        )
        titles = [(pane["title"], pane["about"].split(",")[0]) for pane in scene(app)[0]["panes"]]
        assert titles == [(f"Released flights, {title}", title) for title in ("Stability histogram (SH)", "TopDown (InfTDA)")]
        assert len(open_drawer(app, "Numbers").metric) == 6
        fine(open_drawer(app, "Method").segmented_control(key="editing").set_value(1).run())
        fine(app.text_input(key="epsilon").set_value("3").run())
        fine(app.button(key="copy run").click().run())
        first, second = app.session_state["trips config"].draft.runs
        assert first == second
        for name in TAB_TITLES:
            fine(open_tab(app, name))

    def test_scales_stay_whatever_is_released(self):
        app = fine(trips_app(FLIGHTS | {"shown": "Error"}))
        legends = [pane["legend"] for pane in scene(app)[0]["panes"]]
        fine(open_drawer(app, "Method").text_input(key="epsilon").set_value("0.02").run())
        assert [pane["legend"] for pane in scene(app)[0]["panes"]] == legends
        fine(open_drawer(app, "Map").button(key="fit scale").click().run())
        assert [pane["legend"] for pane in scene(app)[0]["panes"]] != legends

    def test_in_curate_only_the_button_draws_and_changed_settings_are_marked(self, draws):
        app = fine(press_draw(trips_app(CURATE_TRIPS)))
        made = len(noised(draws))
        app.text_input(key="epsilon").set_value("2.0").run()
        assert "have changed since draw 1" in captions(app)
        assert len(noised(draws)) == made
        assert "have changed" not in captions(press_draw(app))

    @pytest.mark.parametrize("key", often(sorted(MECHANISMS.of("trips")), ["fitted_tree"]))
    def test_every_mechanism_draws_and_fills_every_tab(self, key):
        app = fine(press_draw(trips_app(FLIGHTS | {"mechanism": key})))
        (release,) = (run.release for run in trips_drawn(app).runs)
        assert release.mechanism == key
        assert release.receipt.spent == release.receipt.total
        for name in TAB_TITLES:
            fine(open_tab(app, name))

    def test_the_page_starts_with_a_list_whose_rest_adds_up(self):
        app = fine(press_draw(trips_app({"sample": "us_flights", "mechanism": "fitted_tree", "level": "3"})))
        release, numbers = trips_drawn(app).release, figures(open_drawer(app, "Numbers"))
        assert release.settings["false_discovery"] == 0.05
        assert numbers["Pairs released"] == f"{len(release.stages[-1].count):,}"
        assert numbers["Not listed"] == f"{release.stages[0].count.sum() - release.stages[-1].count.sum():,}"
        assert "false pairs" in texts(open_drawer(app, "Method"))
        open_tab(app, TAB_TITLES[2])
        for side, place in (("From", 0), ("To", 1)):
            app.selectbox(key=f"pair {side} level").set_value("airport").run()
            fine(app.selectbox(key=f"pair {side} region 3").set_value(place).run())
        assert figures(app)["Released answer"] == "not listed"
        assert "95 % interval, this pair alone" not in figures(app)
        assert "that are not listed have" in captions(app)
        open_tab(app, TAB_TITLES[0])
        fine(next(button for button in app.button if button.label == "Compare lists of pairs").click().run())
        assert "bounds the share of false pairs beforehand" in captions(app)

    def test_negative_pairs_are_counted_and_can_be_drawn_alone(self):
        app = fine(press_draw(trips_app({"sample": "us_flights", "mechanism": "flat_gaussian", "level": "3", "pairs": "below zero"})))
        count = trips_drawn(app).release.stages[-1].count
        assert figures(open_drawer(app, "Numbers"))["Pairs above zero"] == f"{(count > 0).sum():,}"
        assert figures(app)["Below zero"] == f"{(count < 0).sum():,}"
        texts_of_arcs = scene(app)[0]["panes"][1]["arcs"]["texts"]
        assert texts_of_arcs
        assert all(text.split("\n")[1].startswith("released −") for text in texts_of_arcs)

    @pytest.mark.slow
    def test_two_mechanisms_stand_side_by_side_in_curate(self):
        app = fine(press_draw(trips_app(CURATE_TRIPS | {"beside": "stability_histogram"})))
        assert len(scenes(app)) == 3, "the declared regions and two releases"
        assert [run.title for run in trips_drawn(app).runs] == ["TopDown (InfTDA)", "Stability histogram (SH)"]
        assert len(app.metric) == 8
        for name in TAB_TITLES:
            fine(open_tab(app, name))

    def test_regions_without_places_get_a_matrix(self):
        app = fine(press_draw(trips_app({"sample": "binary_sparse", "level": "3"})))
        assert not scenes(app)
        assert "a matrix stands for the map" in captions(app)

    def test_a_chosen_region_filters_the_arcs_and_fills_its_tab(self):
        app = open_drawer(press_draw(trips_app()), "Numbers")
        assert "adds up to the one above" in texts(app)
        assert app.dataframe[0].value["mismatches"].sum() == 0
        open_drawer(app, "Map").selectbox(key="region").set_value(8)
        app = fine(open_tab(app, "Region"))
        _, arrays = scene(app)
        assert len(arrays["1 origin"])
        assert ((arrays["1 origin"] == 8) | (arrays["1 destination"] == 8)).all()
        table = app.dataframe[0].value
        assert table["trips"].tolist() == ["start here", "end here", "do both"]
        assert (table["low"] <= table["high"]).all()
        assert ((table["true"] - table["released"]).abs() < 200).all()

    def test_a_chosen_region_is_let_go_by_a_button_in_the_row_of_the_status(self):
        app = fine(press_draw(trips_app()))
        assert "all regions" not in [button.key for button in app.button]
        open_drawer(app, "Map").selectbox(key="region").set_value(8)
        app = fine(app.run())
        name = trips_drawn(app).release.tree.origins.names_of(1)[8]
        assert any(f"Only flights from and to {name}." in each.value for each in app.get("html"))
        app = fine(app.button(key="all regions").click().run())
        assert app.session_state["trips config"].view.region is None
        assert "all regions" not in [button.key for button in app.button]

    def test_a_pair_of_regions_is_answered_at_any_two_levels(self):
        app = open_tab(press_draw(trips_app()), "Pair of regions")
        app.selectbox(key="pair From level").set_value("state").run()
        fine(app.selectbox(key="pair To level").set_value("all").run())
        assert {"Released answer", "95 % interval, this pair alone", "True answer"} <= set(figures(app))


class TestCurate:
    def test_it_spends_and_shows_no_truth_before_the_switch_is_on(self):
        app = fine(press_draw(trips_app(CURATE_TRIPS)))
        assert [(entry.budget.epsilon, entry.budget.delta) for entry in entries()] == [(1, Fraction("1e-8"))]
        assert "ε 1, δ 1e-8. The next draw makes it ε 2, δ 2e-8" in captions(app)
        assert not trips_drawn(app).release.simulation
        for name in TAB_TITLES:
            assert {*figures(fine(open_tab(app, name)))} <= PUBLIC_FIGURES | {"95 % interval, this pair alone"}
            assert all("true" not in frame.value.columns for frame in app.dataframe)
        assert not account().truth_seen
        fine(truth_switch(app).set_value(True).run())
        assert "Largest error" in figures(app)
        assert account().truth_seen
        assert "CURATOR ONLY" in captions(app)

    def test_what_public_facts_rule_out_is_refused_before_it_is_booked(self, monkeypatch):
        app = trips_app(CURATE_TRIPS | {"beside": "stability_histogram"})
        trips = replace(load_trip_sample("us_flights"), contributions=3, unit="person", exactly=True)
        monkeypatch.setattr(cached, "trip_sample", lambda _: trips)
        app = say_how_many(good(app.run()))
        assert "one trip per person only" in errors(app)
        assert app.button(key="draw").disabled

    @pytest.mark.parametrize("unit", ["each", "vouched"])
    def test_sums_of_a_column_are_released_once_it_is_said_whom_to_protect(self, unit):
        app = trips_uploaded(unit=unit)
        if unit == "vouched":
            labelled(app.number_input, "Trips per person, at most").set_value(1).run()
        app = fine(press_draw(app))
        assert trips_drawn(app).data.counts.unit_declared
        assert 'unit="trip"' in "".join(block.value for block in app.code)

    def test_that_the_truth_was_looked_at_in_teach_is_remembered(self):
        app = press_draw(trips_app())
        assert entries() == []
        app = open_tab(press_draw(changed(app, mode="Curate")), "Receipt")
        assert "yes, recorded" in texts(app)


class TestControls:
    def test_a_split_over_stages_can_be_typed_and_follows_the_neighbours(self):
        app = open_drawer(trips_app(), "Split")
        assert len(shares_of(app)) == 6
        fine(app.number_input(key="share 0").set_value(40.0).run())
        settings = app.session_state["trips config"].draft.run.settings
        assert settings["split"] == "custom"
        assert settings["weights"][0] == pytest.approx(0.4)
        receipt = trips_drawn(app).release.receipt
        assert float(receipt.steps[0].amount / receipt.available) == pytest.approx(0.4)
        assert len(shares_of(fine(changed(app, settings={"neighbours": "add_remove"})))) == 7

    def test_delta_and_the_link_carry_the_configuration(self):
        link = FLIGHTS | {"delta": "1e-06", "epsilon": "0.3", "settings": '{"dial":2.0}', "shown": "Error", "region": "2"}
        link |= {"mechanism": "top_down", "pairs": "certain", "scales": '{"error 1":50.0,"area error 1":500.0}', "marks": "Areas"}
        link |= {"top": "700"}
        app = fine(trips_app(link))
        page = app.session_state["trips config"]
        run = page.draft.run
        assert (float(run.delta), float(run.epsilon), run.settings) == (1e-6, 0.3, {"dial": 2.0})
        assert (page.view.shown, page.view.region) == ("Error", 2)
        assert query_of(app) == {name: text for name, text in link.items() if name != "sample"}

    def test_a_link_that_makes_no_sense_opens_the_usual_page(self):
        nonsense = ({"level": "99"}, {"top": "0"}, {"delta": "2"}, {"settings": '{"dial":-1}'}, {"beside": "x"}, {"pairs": "y"})
        for link in nonsense:
            with pytest.raises(SettingError, match=next(iter(link))):
                read_link(TRIPS, link)
        app = good(trips_app({name: text for link in nonsense for name, text in link.items()}))
        assert app.session_state["trips config"] == page_with("trips")

    def test_an_old_name_in_a_link_is_refused_with_todays(self):
        app = fine(trips_app({"settings": '{"conversion":"simple"}'}))
        assert app.session_state["trips config"] == page_with("trips")
        assert any("'conversion' is called 'accounting' now" in warning.value for warning in app.warning)

    def test_regions_are_never_the_private_file(self):
        both = b"origin,dest\nA1,B1\nB1,A1\n"  # the regions that have trips
        app = trips_uploaded(regions=("regions.csv", both), trips=("trips.csv", both))
        good(labelled(app.multiselect, "Columns of ids, coarsest level first").set_value(["origin"]).run())
        assert "This is the file of the private data" in errors(app)

    def test_uploads_may_end_in_a_hierarchy_of_their_own(self):
        ends = b"id,lat,lon\n1,50.5,8.2\n2,51.5,9.5\n3,52,9\n"
        app = trips_uploaded("Teach", ends=("works.csv", ends), trips=("trips.csv", b"origin,dest,count\nA1,1,500\nA1,3,40\nB1,2,900\n"))
        good(labelled(app.text_input, "Group by the first characters of the id").set_value("").run())
        good(app.toggle(key="trips apart").set_value(True).run())
        fine(press_draw(fine(public(good(app.run())).set_value(True).run())))
        release = trips_drawn(app).release
        assert release.tree.size(2) == 9
        assert [pane["areas"] for pane in scene(app)[0]["panes"]] == [["first 0", "first 1"]] * 2
        for name in TAB_TITLES:
            fine(open_tab(app, name))

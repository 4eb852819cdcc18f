"""Teach on the Points page: two maps that follow the controls, without a browser."""

import base64
import re
from threading import Event

import geopandas as gpd
import pytest
import shapely
from streamlit.testing.v1 import AppTest

from dpviz.app.components import mechanism_controls
from dpviz.app.components.panes import FAILED
from dpviz.app.jobs.live import LiveRuns
from dpviz.app.modes import live_runs
from dpviz.app.pages.points.levels import make_levels
from dpviz.app.pages.points.page import PAGE
from dpviz.app.session.release import Releases
from dpviz.mechanisms import Identity
from dpviz.release.intervals import ASSUMED, NONE_TO_ALL
from tests.app.parts import changed_page
from tests.app.rails import rail_of
from tests.app.seen import captions, drawn, errors, fine, good, infos, keys, labelled, scene, scenes
from tests.app.start import CURATE, SMALL, pages, points_app, query_of, uploaded
from tests.app.walk import open_drawer, open_tab, public


def titles(app):
    return [pane["title"] for pane in scene(app)[0]["panes"]]


def abouts(app):
    return [pane["about"] for pane in scene(app)[0]["panes"]]


def press(app, key):
    return fine(app.button(key=key).click().run())


def choose(app, key, value):
    return fine(app.selectbox(key=key).set_value(value).run())


def type_epsilon(app, text):
    return fine(open_drawer(app, "Method").text_input(key="epsilon").set_value(text).run())


def test_the_first_picture_needs_no_press_and_shows_a_good_mechanism():
    app = fine(points_app({}))
    assert titles(app) == ["True records", "Released records"]
    assert abouts(app) == ["", "Path-budget tree, ε 0.1, run 1"]
    assert "draw" not in keys(app.button)


def test_the_true_map_stays_the_same_whatever_the_budget():
    app, seen = points_app(SMALL | {"mechanism": "path_tree", "settings": "{}"}), []
    for epsilon in ("0.01", "20"):
        header, arrays = scene(type_epsilon(app, epsilon))
        truth, released = header["panes"]
        seen.append((truth, arrays[truth["shades"]].tolist(), len(arrays[released["shades"]])))
    (few, few_shades, few_partitions), (many, many_shades, many_partitions) = seen
    assert (few, few_shades) == (many, many_shades)
    assert few_partitions < many_partitions


def test_every_control_shows_its_run_and_the_address_opens_the_same_picture():
    app = points_app()
    type_epsilon(app, "2")
    press(app, "again")
    choose(app, "pane 0", "Error")
    assert abouts(app) == ["Quadtree, ε 2, run 2"] * 2
    assert scenes(fine(points_app(query_of(app)))) == scenes(app)
    assert drawn(app).release.simulation


def test_the_second_run_has_settings_of_its_own_and_either_map_takes_those_of_the_other():
    app = open_drawer(choose(points_app(), "pane 0", "Second run"), "Method")
    assert abouts(app) == ["Quadtree, ε 0.05, run 1", "Quadtree, ε 0.5, run 1"]
    fine(app.segmented_control(key="editing").set_value(1).run())
    type_epsilon(app, "0.1")
    choose(app, "mechanism", "identity")
    assert abouts(app) == ["Every cell (Identity), ε 0.1, run 1", "Quadtree, ε 0.5, run 1"]
    assert scenes(fine(points_app(query_of(app)))) == scenes(app)
    fine(app.segmented_control(key="editing").set_value(0).run())
    app.session_state["config"] = changed_page(app.session_state["config"], level=2)
    press(app, "copy run")
    assert abouts(app) == ["Every cell (Identity), ε 0.1, run 1"] * 2
    assert app.session_state["config"].view.level == 2


def test_again_draws_new_noise_for_both_runs_and_a_link_may_give_them_other_seeds():
    app = choose(points_app(), "pane 0", "Second run")
    press(app, "again")
    assert [run.seed for run in app.session_state["config"].draft.runs] == [2, 2]
    assert [about.rsplit(maxsplit=1)[-1] for about in abouts(app)] == ["2", "2"]
    second = query_of(app)["second"].removesuffix("}") + ',"seed":7}'
    other = fine(points_app(query_of(app) | {"second": second}))
    assert [about.rsplit(maxsplit=1)[-1] for about in abouts(other)] == ["7", "2"]
    press(other, "again")
    assert [run.seed for run in other.session_state["config"].draft.runs] == [3, 8]


def test_the_drawer_of_the_split_has_that_of_the_run_that_is_edited(monkeypatch):
    bars = []
    monkeypatch.setattr(mechanism_controls, "split_bar", lambda *_, key, **__: bars.append(key))
    app = choose(points_app(), "pane 0", "Second run")
    assert bars == []
    choose(open_drawer(app, "Method"), "mechanism", "privelet")
    fine(app.segmented_control(key="editing").set_value(1).run())
    open_drawer(app, "Split")
    assert set(bars) == {"split quadtree"}


def test_another_split_leaves_the_level_that_is_shown_and_another_height_does_not():
    app = open_drawer(points_app(SMALL | {"zoom": "2"}), "Split")
    choose(app, "preset", "uniform")
    fine(app.number_input(key="share 1").set_value(60.0).run())
    assert app.session_state["config"].view.level == 2
    fine(open_drawer(app, "Method").number_input(key="setting quadtree height").set_value(5).run())
    assert app.session_state["config"].view.level is None


def test_undo_takes_back_one_change_after_the_other_but_not_the_camera_nor_the_swipe_bar():
    app = open_drawer(points_app(), "Method")
    before = app.session_state["config"]
    assert app.button(key="undo").disabled
    type_epsilon(app, "2")
    press(app, "again")
    app.session_state["config"] = changed_page(app.session_state["config"], camera=(1.0, 2.0, 3.0), swipe=0.3)
    press(app, "undo")
    assert (app.session_state["config"].draft.run.seed, app.session_state["config"].draft.run.epsilon) == (1, 2.0)
    press(app, "undo")
    assert changed_page(app.session_state["config"], camera=None, swipe=None) == before


def test_a_value_that_does_not_fit_leaves_the_last_maps():
    app = open_drawer(points_app(), "Method")
    before = scenes(app)
    good(app.text_input(key="epsilon").set_value("much").run())
    assert "ε must be a number" in errors(app)
    assert scenes(app) == before


def test_as_measured_shows_counts_before_they_were_made_to_agree():
    app = open_drawer(points_app(), "Map")
    fine(app.toggle(key="raw").set_value(True).run())
    assert titles(app)[1] == "Measured records, before post-processing"
    assert "measured {measured}" in scene(app)[0]["panes"][1]["words"]


def test_the_street_map_is_off_until_it_is_switched_on_and_in_no_link():
    app = open_drawer(points_app(SMALL | {"sample": "la_residents"}), "Map")
    assert (app.toggle(key="street map").value, scene(app)[0]["tiles"]) == (False, "")
    before = query_of(app)
    fine(app.toggle(key="street map").set_value(True).run())
    assert scene(app)[0]["tiles"].startswith("https://tile.openstreetmap.org/")
    assert "OpenStreetMap" in scene(app)[0]["credit"]
    assert query_of(app) == before
    assert scene(open_drawer(app, ""))[0]["tiles"], "a closed drawer leaves the maps as they are"
    assert "street map" not in keys(open_drawer(points_app(SMALL), "Map").toggle), "a plane lies nowhere"
    assert "street map" not in keys(points_app(CURATE).toggle)


def test_without_webgl_the_same_maps_are_shown_as_one_picture():
    app = points_app()
    app.session_state[FAILED] = True
    fine(app.run())
    assert not scenes(app)
    (still,) = [each.proto.body for each in app.get("html") if '<img class="dpviz-still' in each.proto.body]
    drawn_again = base64.b64decode(re.search('base64,([^"]*)"', still)[1]).decode()
    assert [f">{title}</text>" in drawn_again for title in ("True records", "Released records")] == [True, True]
    assert "has no WebGL" in captions(app)


def test_a_long_run_shows_its_progress_over_the_last_maps_and_can_be_stopped(monkeypatch):
    app, go_on = points_app(), Event()
    before, real = scenes(app), Releases.run

    def slow(releases, data, how, check):
        go_on.wait(30)
        return real(releases, data, how, check)

    monkeypatch.setattr(Releases, "run", slow)
    monkeypatch.setattr(live_runs, "PATIENCE", 0.0)
    press(app, "again")
    assert {"stop run"} <= keys(app.button)
    assert scenes(app) == before
    press(app, "stop run")
    go_on.set()
    assert "Stopped: the maps show the settings before" in captions(app)
    assert scenes(app) == before
    monkeypatch.setattr(live_runs, "PATIENCE", 60.0)
    press(app, "resume")
    assert abouts(app)[1].endswith("run 2")


@pytest.mark.parametrize("link", [CURATE, SMALL | {"mode": "Curate", "left": "True", "run": "7"}])
def test_in_curate_the_map_shows_no_record_and_nothing_runs_by_itself(link):
    app = fine(points_app(link))
    header, arrays = scene(app)
    assert header["panes"][0]["title"].startswith("Expected error")
    assert set(arrays) == {"0 shades", "0 palette"}
    assert drawn(app) is None


def test_another_way_to_count_the_same_file_is_another_run():
    app = uploaded(b"lon,lat,n\n-118.2,34.1,5\n-80.25,25.5,7\n", link=SMALL)
    fine(public(app).check().run())
    assert drawn(app).data.counts.count.sum() == drawn(app).evaluation.truth[0] == 12
    fine(labelled(app.selectbox, "How many records does a row stand for?").set_value("none").run())
    assert drawn(app).data.counts.count.sum() == 2


def test_a_split_can_be_dragged_where_there_is_one(monkeypatch):
    rail = rail_of(monkeypatch)
    points_app(SMALL | {"mechanism": "identity", "settings": "{}"})
    assert (len(rail.parts), rail.calls.on_shares, rail.options["whole"]) == (1, None, Identity.whole_budget)
    app = points_app()
    assert (len(rail.parts), rail.options["whole"]) == (5, "")
    rail.send(app, "moved", [0.2, 0.2, 0.2, 0.2, 0.2])
    assert [part.share for part in rail.parts] == pytest.approx([0.2] * 5)


def test_the_split_of_the_path_budget_tree_can_be_dragged_until_the_resolution_changes(monkeypatch):
    rail = rail_of(monkeypatch)
    app = points_app(SMALL | {"mechanism": "path_tree", "settings": "{}"})
    assert [part.level for part in rail.parts] == [1, 2, 3, 4, 5, 6]
    assert sum(part.share for part in rail.parts) == pytest.approx(1)
    assert all(error > 0 for error in rail.calls.on_drag([0.5, 0.1, 0.1, 0.1, 0.1, 0.1]))
    app.session_state["config"] = changed_page(
        app.session_state["config"], settings={"split": "custom", "weights": (5.0, 1.0, 1.0, 1.0, 1.0, 1.0), "tau": 2.0}
    )
    fine(app.run())
    assert [part.share for part in rail.parts] == pytest.approx([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    fine(open_drawer(app, "Data").select_slider(key="order").set_value(7).run())
    assert (len(rail.parts), app.session_state["config"].draft.run.settings) == (7, {"tau": 2.0})


def test_no_level_of_the_rail_comes_or_goes_with_the_budget():
    app = points_app(SMALL | {"mechanism": "path_tree", "settings": "{}"})
    few, many = (make_levels(drawn(type_epsilon(app, epsilon))) for epsilon in ("0.01", "20"))
    assert [level.name for level in few] == [level.name for level in many]
    assert sum(level.finer for level in few) > sum(level.finer for level in many)
    assert all(level.worth.wrong <= level.worth.base and level.worth.error > 0 for level in few)


def test_the_map_of_false_positives_counts_the_squares_of_the_sentence(monkeypatch):
    rail = rail_of(monkeypatch)
    app = choose(points_app(), "pane 0", "False positives")
    rail.send(app, "false", value=True)
    worth = rail.shown().worth
    for pane in scene(app)[0]["panes"]:
        assert pane["legend"]["marks"][0][1] == f"empty, released as occupied: {worth.wrong:,} of {worth.base:,}"
        assert pane["cells"] == "squares of the first"


def test_the_answer_to_a_box_stands_under_the_maps_while_its_tab_is_open():
    app = points_app()
    under = lambda: " ".join(each.value for each in app.html)  # noqa: E731
    assert "Box: released" not in under()
    open_tab(app, "Range query")
    number = lambda text: int(re.search(r"[+-]?[\d,]+", text)[0].replace(",", ""))  # noqa: E731

    def said():
        released, interval, true = (metric for metric in app.metric if "answer" in metric.label or "nterval" in metric.label)
        kind = "95 %, noise only" if interval.label == "95 % interval, noise only" else interval.label.removeprefix("Interval: ")
        assert ("none to all" in kind) == ("from none to all" in interval.help)
        assert f"Box: released {released.value} ({kind}: {interval.value}), true {true.value}: " in under()
        return released.value, true.value, kind

    released, true, _ = said()
    parts = [number(part) for part in re.findall(r"[+-][\d,]+ by", under())]
    assert sum(parts) == pytest.approx(number(released) - number(true), abs=len(parts)), "noise, and what is assumed in a cut partition"
    east = app.number_input(key="query East")
    west = app.number_input(key="query West").value
    east.set_value(west + 0.503 * (east.value - west))
    fine(app.run())
    assert said()[2] in (ASSUMED, NONE_TO_ALL)
    app.number_input(key="query East").set_value(1e9)
    assert "for the part inside the domain" in (fine(app.run()), under())[1]


def test_a_link_opens_the_box_of_the_range_query_while_its_tab_is_open():
    app = open_tab(points_app(), "Range query")
    west, *_ = app.session_state["query box"]
    fine(app.number_input(key="query West").set_value(west * 0.99).run())
    linked = AppTest.from_function(pages, default_timeout=120)
    linked.query_params.update(query_of(app))
    good(linked.run())
    assert linked.session_state["query box"] == app.session_state["query box"]
    assert scene(linked)[0]["box"] == scene(app)[0]["box"] != None  # noqa: E711
    assert query_of(linked) == query_of(app)
    assert "box" not in query_of(open_tab(app, "Table"))


def test_the_button_of_the_scale_is_always_there_and_works_for_maps_of_errors():
    app = open_drawer(points_app(), "Map")
    assert app.button(key="fit scale").disabled
    choose(app, "pane 0", "Error")
    assert not app.button(key="fit scale").disabled


@pytest.mark.slow
def test_a_public_file_of_polygons_says_where_people_can_be():
    app = points_app({"sample": "la_residents", "order": "6", "mechanism": "quadtree", "shown": "False positives"})
    empty = scene(app)[0]["panes"][1]["legend"]["marks"][0][1]
    land = gpd.GeoSeries([shapely.box(-118.3, 33.7, -117.8, 34.4)], crs="EPSG:4326").to_json().encode()
    app = good(open_drawer(app, "Data").selectbox(key="study area kind").set_value("file").run())
    assert "a link does not carry the file" in infos(app)
    assert not scenes(app), "no numbers are shown without the mask"
    app = good(app.file_uploader(key="study area file").set_value(("land.geojson", land, "text/plain")).run())
    app = fine(labelled(app.checkbox, "This file is already public").check().run())
    assert "People can be in 5" in captions(app)
    assert scene(app)[0]["masked"]
    assert drawn(app).release.domain.share_open == pytest.approx(0.57, abs=0.02)
    assert scene(app)[0]["panes"][1]["legend"]["marks"][0][1] != empty
    assert "HTF cannot take a study area into account" in errors(
        good(open_drawer(app, "Method").selectbox(key="mechanism").set_value("htf").run())
    )


def test_play_shows_a_run_that_takes_longer_than_the_page_waits_before_it_takes_the_next(monkeypatch):
    app = fine(points_app(SMALL))
    serve, ready = LiveRuns._serve, Event()
    monkeypatch.setattr(LiveRuns, "_serve", lambda runs, run: ready.wait(60) and serve(runs, run))
    monkeypatch.setattr(live_runs, "PATIENCE", 0.0)
    press(app, "play")
    assert abouts(app)[-1].endswith("run 1"), "run 2 is not ready, so that the picture before it stays"
    ready.set()
    app.session_state[PAGE.runs._slot].wait(60)
    fine(app.run())
    assert abouts(app)[-1].endswith("run 2")
    assert query_of(app)["run"] == "2"

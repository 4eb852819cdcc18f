"""The Compare page without a browser: studies beside it that fail, stop, go on and end with the session, on samples and one's own data."""

import json
import math
import re
from collections import Counter
from fractions import Fraction
from itertools import islice
from threading import Event, Semaphore
from unittest.mock import Mock

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

from dpviz.app.jobs import study as study_module
from dpviz.app.jobs.job import DONE, FAILED, RUNNING, STOPPED, STOPPING
from dpviz.app.jobs.keeper import Keeper
from dpviz.app.jobs.study import make_study_job, table_of
from dpviz.app.pages.compare.answer import (
    _pair_contrasts,
    describe_answer,
    describe_contrasts,
    describe_target,
    target_epsilons,
    usual_target,
)
from dpviz.app.pages.compare.earlier import LOADED, WANTED, table_with_link
from dpviz.app.pages.compare.looks import add_variants, looks_by_label
from dpviz.app.pages.compare.page import TABS, pick
from dpviz.app.pages.compare.state import (
    COMPARE,
    JOB,
    NOTHING,
    CompareConfig,
    describe_pick,
    middle_of,
    picks,
    possible_picks,
    replace,
    study_of,
)
from dpviz.app.pages.start import PRESETS
from dpviz.app.session import cached
from dpviz.app.session.cached import digest_of
from dpviz.app.session.widgets import check_link, read_link, to_query
from dpviz.app.state.readers import describe_refused
from dpviz.errors import DpvizError, SettingError
from dpviz.evaluation import compare as real
from dpviz.evaluation.tables import csv_text, tidy
from dpviz.families import POINT_FAMILY, TRIP_FAMILY
from dpviz.mechanisms import Identity, Quadtree, SuppressedCounts, UniformGrid
from dpviz.privacy.ledger import Ledger
from dpviz.view.error_axis import COUNT, LOG, PERCENT
from dpviz.view.study_charts import Target
from dpviz.view.study_figures import FIGURES
from tests.app.browse import until
from tests.app.seen import captions, errors, fine, good, infos, keys, labelled, scene, scenes, texts, warnings
from tests.app.start import BARE, SMALL, pages_app, query_of, trips_uploaded, uploaded
from tests.app.walk import by_record, go, press_draw, public, to_mode
from tests.charts import found
from tests.evaluation.test_compare import study
from tests.often import named, often

LINK = {"sample": "gaussian_cluster", "order": "4", "mechanisms": '["quadtree","identity"]', "steps": "2", "repeats": "2"}
SEEDED = LINK | {"seed": "77"}
PATIENCE = 60
KEY = {"Points": "public config", "Trips": "public trips config"}
TRIPS = b"origin,destination,count\nA1,A2,70\nA1,B1,9\nB1,B1,33\nA2,A2,4\n"
MECHANISM = {"Points": "identity", "Trips": "flat_gaussian"}


@pytest.fixture(autouse=True, scope="module")
def one_process(tmp_path_factory):
    """Studies without workers, which take longer to start than these studies; the ledger is for what fixtures of the module run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_module, "FEWEST_WORKERS", 1)
        patch.setattr(study_module, "MOST_WORKERS", 1)
        patch.setenv("DPVIZ_LEDGER", str(Ledger.new(tmp_path_factory.mktemp("compare") / "ledger.sqlite").path))
        yield


def compare_app(link=LINK, config=None):
    return pages_app("compare", link, {} if config is None else {"compare config": config})


def started(app):
    return good(app.button(key="draw").click().run())


def ended(job):
    return until(lambda: job.has_ended and job.state, "the end of the study", PATIENCE)


def finished(app):
    job = app.session_state[JOB]
    assert ended(job) == DONE, job.error
    return good(app.run())


def finished_table(link):
    """The table of a study that is not interrupted, without the measured seconds."""
    config = read_link(CompareConfig, link)
    points = cached.sample(config.chosen_sample, None, config.order)
    made = study_of(Mock(data=points), config)
    return tidy(made, real.compare(made)).drop(columns="seconds")


def is_grey(app):
    """Whether the study is grey as a whole, with the reason above it."""
    styles = [each.proto.body for each in app.get("html") if "st-key-results { filter" in each.proto.body]
    assert bool(styles) == ("In grey:" in texts(app))
    return bool(styles)


def tab(app, name):
    app.session_state["compare tab"] = name
    return good(app.run())


def picking(app, *picked):
    """The map of these releases, by name and ε."""
    app.session_state["compare config"] = replace(app.session_state["compare config"], picked=picked)
    return tab(app, "On the map")


def charts(app):
    return [json.loads(each.proto.spec) for each in app.get("vega_lite_chart")]


def shown_on_canvas(app):
    """First word of what each pane shows, and its number of partitions."""
    header, arrays = scene(app)
    names = [pane["title"] if pane["title"].startswith("True") else pane["about"] or pane["title"] for pane in header["panes"]]
    return [(name.split()[0], len(arrays[pane["shades"]])) for name, pane in zip(names, header["panes"], strict=True)]


def has_canvas(app):
    return bool(scenes(app))


def runs_of(app):
    return {row["run"] for row in app.session_state[JOB].results}


def y_axis(chart):
    """Title and kind of the axis that all layers share."""
    ((title, kind),) = {(layer["encoding"]["y"]["title"], layer["encoding"]["y"]["scale"].get("type")) for layer in chart["layer"]}
    return title, kind


@pytest.fixture(scope="module")
def done():
    return finished(started(compare_app()))


@pytest.fixture(scope="module")
def flights():
    return finished(started(compare_app({"kind": "Trips", "sample": "us_flights", "steps": "1", "repeats": "2"})))


@pytest.fixture(scope="module")
def before():
    return finished(started(compare_app(SEEDED)))


@pytest.fixture(scope="module")
def exact():
    return finished(started(compare_app(LINK | {"mechanisms": '["exact_kdtree","identity"]'})))


class TestBefore:
    def test_settings_of_a_link_are_shown_and_will_be_run(self):
        app = fine(compare_app(LINK | {"low": "0.001", "high": "100", "delta": "3.5e-7"}))
        assert "8 releases: 2 configurations x 2 ε x 2 repeats" in captions(app)
        assert not app.button(key="draw").disabled
        shown = [labelled(app.selectbox, title).value for title in ("Smallest ε", "Largest ε", "δ")]
        assert shown == [0.001, 100.0, 3.5e-7]
        good(labelled(app.selectbox, "Largest ε").set_value(10.0).run())
        assert app.session_state["compare config"].epsilons()[-1] == 10

    def test_one_of_everything_is_in_the_singular(self):
        app = fine(compare_app(LINK | {"mechanisms": '["quadtree"]', "steps": "1", "repeats": "1"}))
        assert "1 release: 1 configuration x 1 ε x 1 repeat." in captions(app)
        assert "Done: 1 of 1 release" in finished(started(app)).get("progress")[0].proto.text

    def test_an_impossible_range_and_data_that_are_not_declared_are_refused_in_place(self):
        app = compare_app(LINK | {"settings": '{"quadtree":{"height":[2,99]}}'})
        assert "settings" not in app.session_state["compare config"].settings
        app.session_state["compare config"] = CompareConfig(mechanisms=("quadtree",), settings={"quadtree": {"height": [2, 99]}}, order=4)
        assert "Height must be from" in errors(good(app.run()))
        assert app.button(key="draw").disabled
        app.session_state["compare config"] = CompareConfig(source="own")
        assert "confirm there that it is public" in infos(good(app.run()))
        assert app.button(key="draw").disabled


class TestLinks:
    def test_a_configuration_survives_its_link(self):
        varied = {"quadtree": {"height": [4, 6]}}
        config = CompareConfig(
            mechanisms=("quadtree", "htf"), settings=varied, low=0.2, repeats=5, picked=(("HTF", 0.5),), camera=(1.0, 2.0, 3.0)
        )
        assert read_link(CompareConfig, to_query(config)) == config
        own = CompareConfig(source="own", file="stops.csv")
        assert read_link(CompareConfig, to_query(own)) == own

    @pytest.mark.parametrize(
        "query",
        [
            {"kind": "People", "order": "99", "repeats": "-1", "seed": "1e99", "figure": "best", "low": "nan", "high": "inf"},
            {"mechanisms": '["rm"]', "settings": "[1]", "picked": '[["a"]]'},
            {"mechanisms": "[[]]", "settings": '{"quadtree":{"height":5}}'},
            {"settings": '{"quadtree":{"nonsense":[1]}}'},
        ],
    )
    def test_what_makes_no_sense_is_the_default(self, query):
        assert read_link(CompareConfig, query) == CompareConfig()

    def test_what_the_maps_show_is_in_the_link(self):
        config = CompareConfig(shown="Error", zoom=3, level=2, repeat=4)
        assert to_query(config) == {"shown": "Error", "zoom": "3", "level": "2", "repeat": "4"}
        assert read_link(CompareConfig, to_query(config)) == config

    @pytest.mark.parametrize(
        ("link", "text"),
        [
            ({"shown": "Secrets", "repeat": "3"}, "shown. Used instead: shown Released"),
            ({"repeats": "2", "repeat": "3"}, "repeat. Used instead: repeat 1"),
            ({"order": "3", "zoom": "4"}, "zoom. Used instead: the usual zoom"),
            ({"kind": "Trips", "level": "9"}, "level. Used instead: the usual level"),
        ],
    )
    def test_what_the_maps_cannot_show_is_named(self, link, text):
        config, names = check_link(CompareConfig, link)
        assert config.build()
        assert describe_refused({name: getattr(config, name) for name in names}) == f"Not understood in this link: {text}."
        fitting = {"repeats": "3", "repeat": "3", "order": "4", "zoom": "4", "level": "9"}
        assert check_link(CompareConfig, fitting)[1] == []

    def test_mechanisms_and_samples_of_the_other_kind_are_passed_over(self):
        config = read_link(CompareConfig, {"kind": "Trips", "mechanisms": '["quadtree"]', "sample": "la_residents"})
        assert config.chosen == TRIP_FAMILY.usual
        assert config.chosen_sample == "northeast_commuters"
        assert [mechanism.key for mechanism in config.build().values()] == list(TRIP_FAMILY.usual)

    @pytest.mark.parametrize(
        "link",
        [
            {"kind": "People"},
            {"sample": "somewhere"},
            {"sample": "la_residents", "kind": "Trips"},
            {"source": "upload"},
            {"file": "stops.csv"},
            {"source": "own", "file": "x" * 1000},
            {"order": "99"},
        ],
    )
    def test_where_its_data_are_not_known_no_others_take_their_place(self, link):
        app = fine(compare_app(link))
        assert "No data are chosen" in warnings(app)
        assert JOB not in app.session_state
        assert not charts(app)
        assert app.button(key="draw").disabled
        again = fine(compare_app(query_of(app)))
        assert JOB not in again.session_state, "nor when its address is opened again"

    @pytest.mark.parametrize("file", ["stops.csv", "*Los Angeles* <b>"])
    def test_a_link_to_own_data_asks_for_the_file_by_the_name_that_it_says(self, file):
        app = fine(compare_app({"source": "own", "file": file}))
        assert f"The link says that its data are in “{file}”. Load that file on the Points page" in infos(app)
        assert "<b>" not in app.info[0].value.replace("\\<b\\>", "")
        assert JOB not in app.session_state
        assert query_of(app)["file"] == file
        assert "“" not in infos(compare_app({"source": "own"}))

    def test_a_class_shows_nothing_instead_of_a_file(self, monkeypatch):
        monkeypatch.setattr("dpviz.app.pages.compare.state.is_class", lambda: True)
        config, text = COMPARE.read({"source": "own", "file": "stops.csv"})
        assert (config.source, config.file, config.sample) == ("sample", "", NOTHING)
        assert text.startswith("A class has samples only. No data are chosen")

    def test_epsilons_are_exact_and_ends_may_be_swapped(self):
        assert CompareConfig(low=2.0, high=0.1, steps=3).epsilons() == (Fraction("0.1"), Fraction("0.45"), Fraction(2))
        assert CompareConfig(low=1.0, high=1.0).epsilons() == (1,)
        assert CompareConfig(low=2.0, high=0.1, steps=1).epsilons() == (Fraction("0.1"),)

    def test_more_configurations_than_a_chart_can_show_are_refused_with_their_number(self):
        varied = {"quadtree": {"height": [2, 3, 4, 5], "split": ["geometric", "uniform", "leaf"], "shrink_small": [False, True]}}
        assert len(CompareConfig(mechanisms=("quadtree",), settings=varied).build()) == 24
        with pytest.raises(SettingError, match="These would be 25 configurations, and a chart shows at most 24"):
            CompareConfig(mechanisms=("quadtree", "identity"), settings=varied).build()


class TestFirstLook:
    """Without a press the page shows a few releases of the study with which it opens."""

    @pytest.fixture(autouse=True)
    def nothing_shared(self):
        cached.sample_study_rows.clear()

    @pytest.mark.parametrize(("kind", "releases"), often([("Points", "18 of 150"), ("Trips", "24 of 200")], 1))
    def test_it_has_an_answer_a_chart_and_maps_and_the_study_goes_on_from_it(self, kind, releases):
        app = fine(compare_app({"kind": kind}))
        assert f"A first look, made: {releases} releases" in app.get("progress")[0].proto.text
        assert any("the least error at" in each.value for each in app.markdown)
        assert (len(charts(app)), len(scene(app)[0]["panes"]), scene(app)[0]["link"]) == (1, 4, True)
        assert app.button(key="draw").label == "Start the study"
        runs = runs_of(app)
        assert not query_of(app).keys() - {"kind"}
        started(app).session_state[JOB].stop()
        assert runs <= runs_of(app)

    @pytest.mark.slow
    def test_the_other_kind_of_data_has_its_own_and_other_settings_have_none(self, monkeypatch):
        app = fine(compare_app({}))
        good(app.segmented_control(key="compare kind").set_value("Trips").run())
        assert app.session_state[JOB].of.config[0].kind == "Trips"
        good(labelled(app.number_input, "Seed").set_value(5).run())
        assert is_grey(app)
        assert not scene(app)[0]["link"]
        assert JOB not in compare_app({"seed": "5"}).session_state

    @pytest.mark.slow
    def test_it_is_made_once_for_all_sessions(self, monkeypatch):
        rows = fine(compare_app({})).session_state[JOB].results
        monkeypatch.setattr("dpviz.app.pages.compare.earlier.compare", Mock(side_effect=AssertionError("made again")))
        assert fine(compare_app({})).session_state[JOB].results == rows

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", often(["Points", "Trips"], 1))
    def test_it_is_the_same_in_a_fresh_server_and_in_one_where_others_have_made_more_or_less(self, kind):
        fresh = fine(tab(compare_app({"kind": kind}), "On the map"))
        for other in ({"repeats": 4, "steps": 5}, {"repeats": 1, "steps": 3}):
            cached.sample_study_rows.clear()
            finished(started(compare_app({}, CompareConfig(kind=kind, **other))))
            busy = fine(tab(compare_app({"kind": kind}), "On the map"))
            assert runs_of(busy) == runs_of(fresh)
            assert [each.value for each in busy.markdown] == [each.value for each in fresh.markdown]
            assert [chart["description"] for chart in charts(busy)] == [chart["description"] for chart in charts(fresh)]
            assert scene(busy)[0]["panes"] == scene(fresh)[0]["panes"]

    @pytest.mark.slow
    def test_how_long_releases_took_does_not_decide_what_it_shows(self, monkeypatch):
        monkeypatch.setattr("dpviz.app.pages.compare.answer.MOST_SECONDS", 0.0)
        assert len(scene(fine(compare_app({})))[0]["panes"]) == 4


class TestPreset:
    """A picture of the start page opens its own study, and its address opens the same picture."""

    UNSET = next(preset.link for preset in PRESETS if preset.page == "compare")
    TITLES = ("True records", "Path-budget tree, ε 2", "Path-budget tree, ε 0.2", "Path-budget tree, ε 0.02")

    def opened(self, app):
        """The page after a press on the picture, once the study is made."""
        app.session_state["compare config"] = read_link(CompareConfig, self.UNSET)
        app.session_state[WANTED] = True
        return fine(tab(finished(good(app.run())), "On the map"))

    RUNNING = LINK | {"repeats": "200", "order": "8", "seed": "95"}

    @pytest.mark.parametrize("before", named({"running": RUNNING, "first look": {}, "done": LINK, "the same": UNSET}, 1))
    @pytest.mark.slow
    def test_it_shows_what_its_picture_shows_whatever_was_there_before(self, before):
        app = compare_app(before)
        if before:
            started(app)
            if "seed" not in before:
                finished(app)
        app = self.opened(app)
        assert tuple(pane["title"] for pane in scene(app)[0]["panes"]) == self.TITLES
        assert "Done: 6 of 6 releases" in app.get("progress")[0].proto.text
        assert scene(app)[0]["link"]

    @pytest.mark.slow
    def test_its_address_opens_the_same_maps_here_and_where_nothing_was_made(self):
        app = self.opened(compare_app({}))
        shown, link = scene(app), query_of(app)
        for forget in (lambda: None, cached.sample_study_rows.clear):
            forget()
            again = fine(tab(finished(compare_app(link)), "On the map"))
            assert query_of(again) == link
            assert scene(again)[0]["panes"] == shown[0]["panes"]
            assert all(np.array_equal(each, shown[1][name]) for name, each in scene(again)[1].items())
            cached.shared_studies.clear()


class TestAnswer:
    """The sentence above the chart."""

    def rows(self, *means, runs=10, label="A"):
        """Means of the configurations A, B ... by ε, with intervals of 1 to both sides."""
        found = [(chr(ord(label) + place), 10.0**-at, mean) for at, group in enumerate(means) for place, mean in enumerate(group)]
        table = pd.DataFrame(found, columns=["label", "epsilon", "mean"])
        return table.assign(private=True, runs=runs, low=table["mean"] - 1, high=table["mean"] + 1)

    @pytest.mark.parametrize(
        ("means", "text"),
        [
            ([(3, 9), (10, 20)], "**A** has the least error at every ε, for boxes. At ε 1: A 3 %, B 9 %."),
            ([(9, 3), (10, 20)], "**A** has the least error at ε 0.1, **B** has it at ε 1, for boxes. At ε 1: B 3 %, A 9 %."),
            ([(3, 3)], "**A** and **B** have the least error at ε 1, for boxes. At ε 1: A 3 %, B 3 %."),
            ([(1, 9, 5, 7, 3)], "**A** has the least error at ε 1, for boxes. At ε 1: A 1 %, E 3 %, C 5 %, 2 more."),
            ([(4,)], "At ε 1: A 4 %."),
            ([], ""),
        ],
    )
    def test_it_names_the_best_at_each_budget(self, means, text):
        assert describe_answer(self.rows(*means), "%", "boxes").split(" At this ε the 95 %")[0] == text

    def test_it_says_when_the_lead_may_be_chance(self):
        assert describe_answer(self.rows((3, 9), (3, 4)), "%", "boxes").endswith(
            "At 1 of 2 ε the 95 % intervals of the best two overlap: more repeats may change their order."
        )
        assert "Of 2 repeats such an interval reaches 9.0 standard deviations" in describe_answer(self.rows((3, 4), runs=2), "%", "boxes")
        assert describe_answer(self.rows((3, 9), runs=1), "%", "boxes").endswith("From one repeat each: the order may be chance.")

    def test_references_do_not_win_and_names_are_not_read_as_markdown(self):
        rows = self.rows((1, 5, 9))
        rows["private"] = rows["label"] != "A"
        assert describe_answer(rows, "%", "boxes").startswith("**B** has")
        assert "\\*x\\*" in describe_answer(rows.replace({"label": {"B": "*x*"}}), "%", "boxes")

    @pytest.mark.parametrize(
        ("contrast", "text"),
        [
            (6.0, "A: about as useful as **B** at ε 0.32."),
            (18.0, "A: less useful than **B** even at ε 0.1."),
            (1.0, "A: more useful than **B** even at ε 1."),
            (2.0, "A: about as useful as **B** at ε 1."),
        ],
    )
    def test_a_contrast_is_as_useful_as_the_best_private_one_where_their_lines_cross(self, contrast, text):
        rows = self.rows((contrast, 2, 30), (contrast, 18, 40))
        rows["private"] = rows["label"] != "A"
        assert describe_contrasts(rows, ["A"]) == text
        assert describe_contrasts(rows, []) == ""
        assert describe_contrasts(rows[rows["label"] == "A"], ["A"]) == ""


class TestTarget:
    """The error that is wanted, and the ε that each curve takes for it."""

    ROWS = pd.DataFrame(
        {
            "label": [*"aaa", *"bbb", *"ccc", *"ddd"],
            "epsilon": [0.1, 1.0, 10.0] * 4,
            "mean": [100.0, 10.0, 1.0, 60.0, 50.0, 40.0, 5.0, 4.0, 3.0, 1.0, 1.0, 1.0],
            "private": [True] * 9 + [False] * 3,
        }
    )

    @pytest.mark.parametrize(
        ("scale", "a", "b"),
        [(LOG, 10**-0.5, 10**-0.523), (PERCENT, 10**-0.24, 10**-0.5)],
    )
    def test_it_is_read_along_the_lines_of_the_chart(self, scale, a, b):
        found = target_epsilons(self.ROWS, 10**1.5 if scale == LOG else 31.6, scale)
        assert found == {"a": pytest.approx(a, rel=0.02), "b": math.inf, "c": 0.0}
        assert target_epsilons(self.ROWS, 10.0, scale)["a"] == pytest.approx(1.0)
        assert target_epsilons(self.ROWS, 55.0, scale)["b"] == pytest.approx(b, rel=0.01)

    def test_it_is_written_in_the_unit_of_the_chart(self):
        target = Target(error=10.0, epsilons=target_epsilons(self.ROWS, 10.0, LOG))
        text = "At most 10 %: **c** ε 0.1 or less; **a** ε 1; **b** not reached up to ε 10."
        assert describe_target(self.ROWS, target, "%") == text
        assert describe_target(self.ROWS[:0], Target(error=10.0, epsilons={}), "%") == ""
        assert "**\\*x\\*** ε 1" in describe_target(self.ROWS, Target(error=10.0, epsilons={"*x*": 1.0}), "%")

    @pytest.mark.parametrize(("mean", "scale", "target"), [(0.3, LOG, 0.5), (2.0, LOG, 2.0), (61.0, PERCENT, 100.0), (0.0, COUNT, 1.0)])
    def test_without_one_it_is_a_round_error_that_the_best_reaches(self, mean, scale, target):
        assert usual_target(self.ROWS.assign(mean=mean), scale) == target


class TestVariations:
    """Several settings of one mechanism vary at once, and a wrong value is named in its place."""

    @pytest.fixture
    def varied(self):
        app = compare_app(LINK | {"mechanisms": '["quadtree"]'})
        return good(app.multiselect(key="vary quadtree").set_value(["height", "split"]).run())

    def test_every_combination_is_a_configuration(self, varied):
        good(varied.text_input(key="values quadtree height").set_value("2, 4, 2").run())
        good(varied.multiselect(key="values quadtree split").set_value(["geometric", "leaf"]).run())
        assert "16 releases: 4 configurations x 2 ε" in captions(fine(varied))
        assert json.loads(varied.query_params["settings"]) == {"quadtree": {"height": [2, 4], "split": ["geometric", "leaf"]}}
        good(varied.multiselect(key="vary quadtree").set_value(["split"]).run())
        assert "8 releases: 2 configurations" in captions(varied)
        good(varied.multiselect(key="vary quadtree").set_value([]).run())
        assert "settings" not in varied.query_params

    def test_the_noise_varies_like_a_setting_where_the_budget_decides_it(self, varied):
        good(varied.multiselect(key="vary quadtree").set_value(["noise"]).run())
        assert varied.multiselect(key="values quadtree noise").value == ["Laplace", "Gaussian"]
        assert "8 releases: 2 configurations" in captions(fine(varied))
        other = compare_app(LINK | {"mechanisms": '["htf"]'})
        assert "Noise" not in other.multiselect(key="vary htf").options

    @pytest.mark.parametrize(
        ("typed", "message"),
        [
            ("2, eight", "Height: 'eight' is no whole number"),
            ("2.5", "Height: '2.5' is no whole number"),
            ("nan", "Height: 'nan' is no whole number"),
            ("2, 99", "Height: 99 is above 24"),
            ("0", "Height: 0 is below 1"),
        ],
    )
    def test_a_wrong_value_is_named_and_stays_as_it_was_typed(self, varied, typed, message):
        before = varied.session_state["compare config"]
        good(varied.text_input(key="values quadtree height").set_value(typed).run())
        assert message in errors(varied)
        assert varied.text_input(key="values quadtree height").value == typed
        assert varied.button(key="draw").disabled
        assert varied.session_state["compare config"] == before

    def test_too_many_combinations_are_refused_with_their_number_and_can_be_changed(self, varied):
        good(varied.text_input(key="values quadtree height").set_value(", ".join(map(str, range(1, 15)))).run())
        good(varied.multiselect(key="values quadtree split").set_value(["geometric", "leaf"]).run())
        assert "These would be 28 configurations" in errors(varied)
        assert varied.button(key="draw").disabled
        fine(varied.text_input(key="values quadtree height").set_value("3").run())


class TestStudy:
    def test_it_runs_beside_the_page_and_every_tab_is_drawn(self, done):
        app, job = fine(done), done.session_state[JOB]
        assert "Done: 8 of 8 releases" in app.get("progress")[0].proto.text
        assert len(table_of(job)) == 8 * len(job.of.study.questions.names())
        (chart, *_) = charts(app)
        assert chart["title"]["text"].startswith("Error against ε, random boxes")
        assert "On the frontier" in chart["description"]
        for name in TABS:
            fine(tab(app, name))
            if name in ("By level", "By size", "Parts of the error", "Time"):
                assert len(charts(app)) == 2
        assert app.dataframe[0].value["Runs"].unique().tolist() == [2]
        assert not Ledger().accounts()

    def test_up_to_four_releases_stand_side_by_side_with_one_zoom(self, done):
        app = fine(picking(done, ("Quadtree", 2.0), ("Every cell (Identity)", 0.1)))
        assert [slider.label for slider in app.slider].count("Zoom level") == 1
        assert shown_on_canvas(app) == [("True", 256), ("Released", 256), ("Released", 256)]
        labelled(app.slider, "Zoom level").set_value(2)
        assert shown_on_canvas(fine(app.run()))[1] == ("Released", 16)
        assert json.loads(app.query_params["picked"]) == [["Quadtree", 2.0], ["Every cell (Identity)", 0.1]]

    @pytest.mark.slow
    def test_changed_settings_have_a_note_and_finished_releases_are_not_made_again(self):
        app = finished(started(compare_app()))
        before = runs_of(app)
        good(labelled(app.number_input, "Repeats of each").set_value(3).run())
        assert is_grey(app)
        finished(started(app))
        job = app.session_state[JOB]
        assert job.total == 12
        assert before < runs_of(app)
        assert set(pd.DataFrame(job.results).groupby("run").size()) == {len(job.of.study.questions.names())}

    @pytest.mark.parametrize(
        ("key", "value", "reason"),
        [
            ("compare sample Points", "gaussian_cluster_20", "this study has other data, *One Gaussian cluster, σ = 50*."),
            ("compare low", 0.5, "this study has other ε."),
            ("compare seed", 9, "this study has another seed."),
        ],
    )
    def test_with_other_data_or_settings_it_is_grey_as_a_whole_until_they_are_chosen_again(self, done, key, value, reason):
        app = fine(tab(done, "On the map"))
        before = app.session_state["compare config"]
        assert not is_grey(app)
        (widget,) = [each for each in (*app.selectbox, *app.number_input) if each.key == key]
        fine(widget.set_value(value).run())
        assert is_grey(app)
        assert f"In grey: {reason} The button above makes the one that is chosen on the left." in texts(app)
        assert not app.button(key="draw").disabled
        assert charts(app)
        app.session_state["compare config"] = before
        assert not is_grey(fine(app.run()))

    def test_the_target_line_reads_epsilon_from_each_curve(self, done):
        app = fine(done)
        good(labelled(app.number_input, "Target: at most (%)").set_value(20.0).run())
        assert query_of(app)["target"] == "20.0"
        assert re.search(r"At most 20 %: \*\*Quadtree\*\* ε .*; \*\*Every cell \(Identity\)\*\* (ε|not reached up to ε 2)", texts(app))
        assert "Target 20" in charts(app)[0]["description"]
        good(labelled(app.number_input, "Target: at most (%)").set_value(-1.0).run())
        assert "The target must be a number from 0" in errors(app)
        good(labelled(app.number_input, "Target: at most (%)").set_value(20.0).run())
        good(app.selectbox(key="compare figure").set_value("mae").run())
        assert "target" not in query_of(app), "a target has the unit of its figure"
        good(app.selectbox(key="compare figure").set_value("n3").run())

    @pytest.mark.slow
    def test_the_accounting_of_every_mechanism_of_trips_is_stated_where_it_differs(self, flights):
        assert "Accounting of ε and δ: exact for Fitted tree; tight for TopDown (InfTDA)" in captions(flights)
        assert "Part of the difference is this, not the method" in captions(flights)
        table = tab(flights, "Table").dataframe[0].value
        assert dict(zip(table["Configuration"], table["Accounting"], strict=True))["Fitted tree"] == "exact"
        alike = compare_app({"kind": "Trips", "sample": "us_flights", "mechanisms": '["top_down","flat_gaussian"]'})
        assert "Accounting of ε and δ: tight." in captions(fine(alike))
        assert "Accounting of" not in captions(fine(compare_app()))

    @pytest.mark.slow
    def test_trips_too(self, flights):
        for name in TABS:
            fine(tab(flights, name))
            assert ("Suppression" in captions(flights)) == (name == "Parts of the error")
        header, _ = scene(fine(picking(flights, *list(possible_picks(flights.session_state[JOB]))[:2])))
        labels = [f"{label}, ε {epsilon:g}" for label, epsilon in islice(possible_picks(flights.session_state[JOB]), 2)]
        assert [pane["title"] for pane in header["panes"]] == ["True flights", *labels]
        assert [pane["about"] for pane in header["panes"]] == ["", "Released flights", "Released flights"]
        assert len({json.dumps(pane["legend"]["lines"]) for pane in header["panes"]}) == 1, "one scale for all"

    @pytest.mark.parametrize(
        ("figure", "scale", "title", "other", "column"),
        often(
            [
                ("max_error", "log", "maximum error of a pair (flights)", "false_discovery", "False discovery rate (%)"),
                ("false_discovery", None, "false discovery rate (% of released pairs)", "max_error", "Maximum error (flights)"),
                ("false_negative", None, "false negative rate (% of true pairs)", "max_error", "Maximum error (flights)"),
            ],
            1,
        ),
    )
    @pytest.mark.slow
    def test_each_figure_of_trips_has_its_axis_at_every_level_and_its_columns(self, flights, figure, scale, title, other, column):
        app = flights
        app.session_state["compare tab"] = "By level"
        good(app.selectbox(key="compare figure").set_value(figure).run())
        for level in app.session_state[JOB].of.study.questions.levels:
            good(app.selectbox(key="compare workload").set_value(level).run())
            assert app.query_params["figure"] == figure
            for chart in charts(fine(app)):
                assert y_axis(chart) == (title, scale)
            assert f"pairs of level {level}" in charts(app)[0]["title"]["text"]
        assert y_axis(charts(fine(tab(app, "By size")))[1]) == (title, scale)
        table = tab(app, "Table").dataframe[0].value
        job = table_of(app.session_state[JOB])
        means = job[job["workload"] == level].groupby("label", sort=False)[other].mean()
        assert table[column].tolist() == pytest.approx(means.tolist())
        assert title in captions(app)

    @pytest.mark.parametrize("figure", often(["false_positives", "false_negatives"], 1))
    @pytest.mark.slow
    def test_each_figure_of_points_has_its_axis_by_zoom_level_and_references_have_it_too(self, exact, figure):
        app, title = exact, f"{figure.replace('_', ' ')} (number of blocks)"
        app.session_state["compare tab"] = "By level"
        app.session_state["compare config"] = replace(app.session_state["compare config"], figure=figure, workload="")
        main, by_level = charts(fine(app.run()))
        assert main["title"]["text"] == "Error against ε, all blocks of zoom level 4"
        assert y_axis(main) == y_axis(by_level) == (title, "symlog")
        assert "(NOT PRIVATE)" in main["description"]
        assert y_axis(charts(fine(tab(app, "By size")))[1]) == (title, "symlog")
        further = ({"false_positives", "false_negatives"} - {figure}).pop().replace("_", " ").capitalize()
        assert tab(app, "Table").dataframe[0].value.columns[-1] == f"{further} (blocks)"
        good(app.selectbox(key="compare workload").set_value("random").run())
        assert y_axis(charts(fine(app))[0]) == (title.replace("blocks", "boxes"), "symlog")

    def test_a_link_with_a_figure_of_the_other_kind_shows_the_usual_one(self, exact):
        exact.session_state["compare config"] = replace(exact.session_state["compare config"], figure="false_discovery", workload="")
        app = fine(exact.run())
        assert "false_discovery" not in app.selectbox(key="compare figure").options
        assert y_axis(charts(app)[0])[0] == FIGURES["n3"].title

    def test_runs_of_before_say_in_every_tab_that_they_have_no_such_figure(self):
        app = finished(started(compare_app(LINK | {"steps": "1"})))
        job = app.session_state[JOB]
        job.results[:] = [{name: value for name, value in row.items() if name != "false_positives"} for row in job.results]
        job.of.tables.clear()
        app.session_state["compare config"] = replace(app.session_state["compare config"], figure="false_positives")
        for name in ("By level", "By size", "Table"):
            fine(tab(app, name))
            assert infos(app).count("These runs have no such figure") == 2
            assert not charts(app)
        assert "random boxes" in charts(good(app.selectbox(key="compare figure").set_value("mae").run()))[0]["title"]["text"]

    def test_forgetting_ends_the_study(self):
        app = started(compare_app(LINK | {"repeats": "200", "order": "8"}))
        job = app.session_state[JOB]
        fine(app.button(key="forget compare").click().run())
        assert JOB not in app.session_state
        assert ended(job) == STOPPED


class TestColours:
    def test_a_configuration_keeps_its_look_when_others_come_and_go(self):
        heights = {"quadtree": {"height": [4, 6]}}
        config = CompareConfig(mechanisms=("quadtree", "identity"), settings=heights)
        before = looks_by_label(config.build(), POINT_FAMILY, kept := add_variants({}, config.build().values()))
        changed = replace(config, mechanisms=("htf", "identity", "quadtree"), settings={"quadtree": {"height": [3, 6]}})
        after = looks_by_label(changed.build(), POINT_FAMILY, kept := add_variants(kept, changed.build().values()))
        assert [after[label] for label in before if label in after] == [before[label] for label in before if label in after]
        assert len(set(after.values())) == len(after) == 4
        again = read_link(CompareConfig, to_query(replace(config, looks=kept)))
        assert looks_by_label(again.build(), POINT_FAMILY, again.looks) == before

    def test_no_look_depends_on_which_others_are_there_or_on_their_order(self):
        config = CompareConfig(mechanisms=tuple(POINT_FAMILY.choices), settings={"quadtree": {"height": [4, 6]}})
        mechanisms = config.build()
        kept = add_variants({}, mechanisms.values())
        looks = looks_by_label(mechanisms, POINT_FAMILY, kept)
        for label, mechanism in mechanisms.items():
            assert looks_by_label({label: mechanism}, POINT_FAMILY, kept) == {label: looks[label]}
        backwards = dict(reversed(mechanisms.items()))
        assert looks_by_label(backwards, POINT_FAMILY, kept) == looks

    def test_both_noises_of_a_mechanism_are_configurations_with_looks_of_their_own(self):
        config = CompareConfig(mechanisms=("quadtree",), settings={"quadtree": {"noise": ["Laplace", "Gaussian"]}})
        assert (list(config.build()), config.gaussian()) == (
            ["Quadtree noise=Laplace", "Quadtree noise=Gaussian"],
            ("Quadtree noise=Gaussian",),
        )
        assert len(set(looks_by_label(config.build(), POINT_FAMILY, {}, config.gaussian()).values())) == 2
        with pytest.raises(SettingError, match=r"has one kind of noise.*identity"):
            replace(config, mechanisms=("htf",), settings={"htf": {"noise": ["Gaussian"]}}).build()

    def test_more_variants_than_looks_take_those_that_are_not_shown(self):
        kept = {}
        for first in range(1, 100, 20):
            shown = [UniformGrid(side=side) for side in range(first, first + 24)]
            kept = add_variants(kept, shown)
            looks = looks_by_label(dict(zip(map(str, shown), shown, strict=True)), POINT_FAMILY, kept)
            assert len(set(looks.values())) == 24

    def test_maps_have_the_colours_of_the_chart_beside_their_titles(self, done):
        app = fine(picking(done, ("Every cell (Identity)", 0.1), ("Quadtree", 2.0)))
        color = charts(app)[0]["layer"][-1]["encoding"]["color"]["scale"]
        by_label = dict(zip(color["domain"], color["range"], strict=True))
        marks = {pane["title"]: pane["mark"] for pane in scene(app)[0]["panes"]}
        assert marks == {
            "True records": "",
            "Every cell (Identity), ε 0.1": by_label["Every cell (Identity)"],
            "Quadtree, ε 2": by_label["Quadtree"],
        }

    @pytest.mark.parametrize("looks", ['{"rm":["00000000"]}', '{"quadtree":["<b>"]}', '["quadtree"]', "1"])
    def test_looks_of_a_link_that_make_no_sense_are_passed_over(self, looks):
        assert read_link(CompareConfig, {"looks": looks}) == CompareConfig()

    def test_all_charts_of_the_page_have_the_same_colours(self, exact):
        exact.session_state["compare config"] = replace(exact.session_state["compare config"], figure="n3", workload="")
        scales = set()
        for name in ("By level", "By size", "Time"):
            for chart in charts(fine(tab(exact, name))):
                scales |= {json.dumps(color["scale"]) for color in found(chart["layer"], "color") if isinstance(color, dict)}
        assert len(scales) == 1


def file_of(app):
    """The file study.csv that the page offers under Table."""
    return csv_text(table_with_link(app.session_state[JOB])).encode()


def load(app, content):
    return good(app.file_uploader(key="compare table").set_value(("study.csv", content, "text/csv")).run())


class TestFoundAgain:
    """A study survives a reload of the page, and comes back from its table; releases are not made again."""

    @pytest.fixture
    def no_releases(self, monkeypatch):
        monkeypatch.setattr(study_module, "compare", Mock(side_effect=AssertionError("made again")))

    def test_after_a_reload_a_study_of_a_sample_is_there(self, before, no_releases):
        again = fine(compare_app(query_of(before)))
        assert "Done: 8 of 8 releases" in again.get("progress")[0].proto.text
        pd.testing.assert_frame_equal(table_of(again.session_state[JOB]), table_of(before.session_state[JOB]))
        other = compare_app({name: value for name, value in query_of(before).items() if name != "study"})
        assert JOB not in other.session_state

    def test_after_a_reload_a_part_of_a_study_can_be_resumed(self, before):
        more = fine(compare_app(query_of(before) | {"repeats": "3"}))
        assert "Stopped: 8 of 12 releases" in more.get("progress")[0].proto.text
        assert more.button(key="draw").label == "Resume the study"
        finished(started(more))
        assert runs_of(before) < runs_of(more)

    def test_a_link_opens_the_same_maps_of_the_same_study_and_can_be_copied_for_samples_only(self, before):
        query = query_of(before) | {"picked": '[["Quadtree",2.0]]', "shown": "Error", "zoom": "2", "repeat": "2"}
        app = fine(tab(compare_app(query), "On the map"))
        header, arrays = scene(app)
        assert (header["link"], header["panes"][1]["about"]) == (True, "Error: released minus true")
        assert [len(arrays[pane["shades"]]) for pane in header["panes"]] == [16, 16]
        assert labelled(app.slider, "Repeat").value == 2
        good(labelled(app.slider, "Zoom level").set_value(1).run())
        good(labelled(app.number_input, "Repeats of each").set_value(1).run())
        assert (query_of(app)["zoom"], "repeat" in query_of(app)) == ("1", False)
        assert not scene(app)[0]["link"], "another study is chosen on the left"

    def test_maps_of_false_positives_have_the_squares_of_the_zoom_level_whatever_the_partitions(self, before):
        query = query_of(before) | {"picked": '[["Quadtree",2.0]]', "shown": "False positives", "zoom": "3"}
        header, arrays = scene(fine(tab(compare_app(query), "On the map")))
        truth, marks = header["panes"]
        assert (truth["cells"], marks["cells"], len(arrays[marks["shades"]])) == ("truth", "0", 64)
        assert marks["about"] == "False positives and negatives, squares of level 3"

    def test_a_study_that_this_server_has_not_made_starts_when_its_link_is_opened(self, before):
        cached.sample_study_rows.clear()
        again = finished(compare_app(query_of(before)))
        assert "Done: 8 of 8 releases" in again.get("progress")[0].proto.text
        pd.testing.assert_frame_equal(
            table_of(again.session_state[JOB]).drop(columns="seconds"), table_of(before.session_state[JOB]).drop(columns="seconds")
        )

    @pytest.fixture
    def slow(self, monkeypatch):
        """Lets a study make as many rows as the test allows; counts how often each run is made."""
        allowed, made = Semaphore(20), Counter()

        def waiting(study, **options):
            for row in real.compare(study, **options):
                while not allowed.acquire(timeout=0.05):
                    if options["stop"].is_set():
                        return
                made[row["run"], row["workload"]] += 1
                yield row

        monkeypatch.setattr(study_module, "compare", waiting)
        yield lambda: allowed.release(10_000), made
        for running in list(cached.shared_studies()._jobs.values()):
            running.stop(wait=False)

    def test_after_a_reload_a_study_goes_on_and_nothing_is_made_twice(self, slow):
        go_on, made = slow
        whole = finished_table(SEEDED | {"seed": "91", "repeats": "4"})
        cached.sample_study_rows.clear()
        app = started(compare_app(SEEDED | {"seed": "91", "repeats": "4"}))
        job = app.session_state[JOB]
        until(lambda: len(job.results) == 20, "the rows that are allowed")
        again = fine(compare_app(query_of(good(app.run()))))
        assert again.session_state[JOB] is job
        assert "Running:" in again.get("progress")[0].proto.text
        assert "stop study" in keys(again.button)
        assert charts(again)
        go_on()
        pd.testing.assert_frame_equal(table_of(finished(again).session_state[JOB]).drop(columns="seconds"), whole)
        assert set(made.values()) == {1}

    def test_after_a_reload_it_goes_on_whatever_was_chosen_on_the_left_meanwhile(self, slow):
        app = started(compare_app(SEEDED | {"seed": "92"}))
        good(labelled(app.number_input, "Repeats of each").set_value(3).run())
        again = fine(compare_app(query_of(app)))
        assert again.session_state[JOB] is app.session_state[JOB]
        assert is_grey(again)

    @pytest.mark.slow
    def test_a_study_whose_page_was_gone_for_long_goes_on_but_not_one_that_was_stopped(self, slow):
        app = started(compare_app(SEEDED | {"seed": "93"}))
        job = app.session_state[JOB]
        until(lambda: len(job.results) == 20, "the rows that are allowed")
        query = query_of(good(app.run()))
        job.stop()
        again = fine(compare_app(query))
        assert again.session_state[JOB] is not job
        assert again.session_state[JOB].state == RUNNING
        good(again.button(key="stop study").click().run())
        assert ended(again.session_state[JOB]) == STOPPED
        stopped = fine(compare_app(query_of(good(again.run()))))
        assert "Stopped:" in stopped.get("progress")[0].proto.text
        assert stopped.button(key="draw").label == "Resume the study"

    def test_stopping_it_in_one_session_does_not_stop_it_in_another(self, slow):
        go_on, _ = slow
        app = started(compare_app(SEEDED | {"seed": "94"}))
        job, other = app.session_state[JOB], Keeper()
        assert other.take(job)
        good(app.button(key="stop study").click().run())
        assert (app.session_state[JOB].state, job.state) == (STOPPED, RUNNING)
        assert app.button(key="draw").label == "Resume the study"
        good(app.button(key="draw").click().run())
        assert app.session_state[JOB] is job
        go_on()
        assert ended(job) == DONE

    def test_while_it_is_stopping_the_page_says_so_and_nothing_can_be_pressed(self, monkeypatch):
        go_on = Event()

        def held(study, **options):
            yield from islice(real.compare(study), 3)
            go_on.wait(PATIENCE)

        monkeypatch.setattr(study_module, "compare", held)
        app = started(compare_app(SEEDED | {"seed": "95"}))
        job = app.session_state[JOB]
        job.patience = 0.0
        try:
            fine(app.button(key="stop study").click().run())
            assert job.state == STOPPING
            assert "Stopping: 0 of 8 releases" in app.get("progress")[0].proto.text
            assert "stop study" not in keys(app.button)
            assert app.button(key="draw").disabled
        finally:
            go_on.set()
        assert ended(job) == STOPPED
        assert "Stopped: 0 of 8 releases" in fine(app.run()).get("progress")[0].proto.text
        assert not app.button(key="draw").disabled

    def test_a_table_brings_its_study_and_its_controls_back(self, before, no_releases):
        app = load(compare_app({"seed": "1"}), file_of(before))
        assert "belongs to another study" in infos(app)
        assert JOB not in app.session_state
        fine(app.button(key="compare restore").click().run())
        assert "Done: 8 of 8 releases" in app.get("progress")[0].proto.text
        assert app.session_state["compare config"].same_study(before.session_state["compare config"])
        assert runs_of(app) >= runs_of(before)
        assert tab(app, "Table").dataframe[0].value["Runs"].unique().tolist() == [2]
        assert "compare restore" not in keys(app.button)

    def test_a_table_brings_its_study_back_where_another_study_shares_its_releases(self, before, no_releases):
        app = load(compare_app(SEEDED | {"mechanisms": '["identity","htf"]'}), file_of(before))
        assert "Stopped: 4 of 8 releases" in app.get("progress")[0].proto.text
        fine(app.button(key="compare restore").click().run())
        assert "Done: 8 of 8 releases" in app.get("progress")[0].proto.text
        assert not is_grey(app)

    def test_a_table_without_a_link_is_taken_over_when_the_same_is_chosen(self, before, no_releases):
        content = csv_text(table_of(before.session_state[JOB])).encode()
        app = load(compare_app(SEEDED | {"mechanisms": '["htf"]'}), content)
        assert "none of its releases has a mechanism" in infos(app)
        good(labelled(app.multiselect, "Mechanisms").set_value(["identity"]).run())
        assert "Done: 4 of 4 releases" in fine(app).get("progress")[0].proto.text

    @pytest.mark.slow
    def test_rows_of_a_loaded_table_are_never_shared(self, before):
        run, forged = before.session_state[JOB].results[0]["run"], "0" * 16
        app = load(compare_app(SEEDED), file_of(before).replace(run.encode(), forged.encode()))
        finished(started(good(labelled(app.number_input, "Repeats of each").set_value(4).run())))
        shared = cached.sample_study_rows(app.session_state[JOB].of.study.fingerprint).values()
        assert forged in runs_of(app)
        assert forged not in {row["run"] for row in shared}

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        often(
            [
                (b",epsilon,", b",budget,", "lacks the columns epsilon"),
                (b",0.1,", b",a tenth,", "Column epsilon: every value must be a number"),
                (b",True,", b",yes,", "Column private: every value must be True or False"),
            ],
            1,
        ),
    )
    def test_a_malformed_table_is_refused_by_its_column(self, before, old, new, message):
        app = load(compare_app({}), file_of(before).replace(old, new))
        assert message in errors(app)
        assert LOADED not in app.session_state

    def test_a_study_of_ones_own_data_stays_in_its_session_and_says_so(self):
        app = finished(started(to_compare(declared("Points"), "Points", mechanisms=("identity",), steps=1, repeats=1)))
        job = app.session_state[JOB]
        assert "kept for this session only" in captions(app)
        assert "study" not in app.query_params
        assert cached.sample_study_rows(job.of.study.fingerprint).values() == []
        assert "link" not in table_with_link(job)
        assert (query_of(app)["source"], query_of(app)["file"]) == ("own", "homes.csv")
        assert job.of.config[1].digest not in str(query_of(app))
        assert not scene(picking(app, *possible_picks(job)))[0]["link"]

    def test_a_link_names_a_file_only_while_it_is_declared_public_and_takes_no_other_one_for_it(self):
        app = to_compare(declared("Points"), "Points")
        assert query_of(app)["file"] == "homes.csv"
        fine(go(to_curate(app, "Points"), "compare"))
        assert "file" not in query_of(app)
        assert "homes" not in str(query_of(app))
        app = to_compare(declared("Points"), "Points", file="stops.csv")
        assert "“stops.csv”. In Teach, “homes.csv” is loaded." in warnings(app)
        assert app.button(key="draw").disabled
        fine(labelled(app.button, "Compare on the file that is loaded").click().run())
        assert not app.button(key="draw").disabled
        assert query_of(app)["file"] == "homes.csv"

    def test_the_rows_of_the_study_before_are_kept(self, before, monkeypatch):
        app = finished(started(compare_app(SEEDED | {"seed": "79"})))
        cached.sample_study_rows.clear()
        for seed in (80, 79):
            finished(started(good(labelled(app.number_input, "Seed").set_value(seed).run())))
            monkeypatch.setattr(study_module, "compare", lambda *_, **__: (row for row in ()))
        assert app.session_state[JOB].made == 8

    def test_no_table_at_all_is_refused_and_the_study_on_screen_stays(self, before):
        app = finished(started(compare_app(LINK | {"seed": "78", "steps": "1"})))
        assert "lacks the columns" in errors(load(app, b"a,b\n1,2\n"))
        assert charts(load(app, bytes(range(256))))
        assert "cannot be read as a table" in errors(app)


class TestFailures:
    @pytest.fixture(autouse=True)
    def nothing_shared(self):
        """What other tests have made on the sample is not taken over."""
        cached.sample_study_rows.clear()

    @pytest.mark.parametrize(("rows", "label"), often([(40, "Resume the study"), (0, "Start the study")], 1))
    def test_finished_releases_are_kept_and_the_others_can_be_tried_again(self, rows, label, monkeypatch):
        def failing(study, **options):
            yield from islice(real.compare(study, **options), rows)
            raise DpvizError("Every cell, ε 2: no good")

        with monkeypatch.context() as patch:
            patch.setattr(study_module, "compare", failing)
            app = started(compare_app())
            assert ended(app.session_state[JOB]) == FAILED
            good(app.run())
        assert "no good" in errors(app)
        assert "being made" not in captions(app)
        assert bool(charts(app)) == ("No release was made yet" not in captions(app)) == (rows > 0)
        assert app.button(key="draw").label == label
        before = runs_of(app)
        assert charts(fine(finished(started(app))))
        assert before < runs_of(app)

    def test_a_release_that_fails_on_the_map_has_its_error_beside_the_others(self, monkeypatch):
        app = finished(started(compare_app()))
        options = tuple(possible_picks(app.session_state[JOB]))
        cells = next(each for each in options if each[0].startswith("Every"))
        monkeypatch.setattr(Identity, "release", Mock(side_effect=DpvizError("does not fit")))
        assert "does not fit" in errors(picking(app, cells, options[0]))
        assert [title for title, _ in shown_on_canvas(app)] == ["True", "Released"]
        assert "does not fit" in errors(picking(app, cells))
        assert not has_canvas(app)


def own_data(kind, mode):
    """A file on its page; on the Trips page no truth is looked at before a draw."""
    return uploaded(BARE, link=SMALL | {"mode": mode}) if kind == "Points" else trips_uploaded(mode, trips=("trips.csv", TRIPS))


def declared(kind):
    return good(public(own_data(kind, "Teach")).check().run())


def to_compare(app, kind, **how):
    how = {"mechanisms": (MECHANISM[kind],), "steps": 1, "repeats": 1} | how
    app.session_state["compare config"] = CompareConfig(kind=kind, source="own", **how)
    return fine(go(app, "compare"))


def to_curate(app, kind):
    return by_record(to_mode(go(app, kind.lower()), "Curate"))


class TestLooks:
    """That the truth of one's own data was looked at is noted, for a release of them."""

    @pytest.mark.parametrize("kind", often(["Points", "Trips"], 1))
    def test_a_study_is_a_look(self, kind, monkeypatch, tmp_path):
        app = to_compare(declared(kind), kind)
        app.session_state["looked_at"] = set()
        monkeypatch.setenv("DPVIZ_LEDGER", str(Ledger.new(tmp_path / "fresh.sqlite").path))  # which knows nothing of the true map
        started(app)
        assert Ledger().seen(app.session_state[KEY[kind]].fingerprints)

    @pytest.mark.parametrize("kind", ["Points", "Trips"])
    def test_where_it_cannot_be_recorded_nothing_is_shown(self, ledger_path, kind):
        ledger_path.write_text("no ledger")
        app = declared(kind)
        assert kind == "Trips" or "The truth is not shown" in errors(app)
        app = press_draw(app)
        assert "The truth is not shown, since the ledger cannot record that it is looked at" in errors(app)
        assert not [each for each in app.metric if "rror" in each.label]
        assert app.session_state["looked_at"] == set()

    @pytest.mark.parametrize(("kind", "sample"), often([("Points", "gaussian_cluster"), ("Trips", "us_flights")], 1))
    def test_a_sample_has_the_digest_of_its_page(self, kind, sample):
        config = CompareConfig(kind=kind, sample=sample, mechanisms=(MECHANISM[kind],), steps=1, repeats=1, order=4)
        app = finished(started(compare_app({}, config)))
        assert app.session_state["looked_at"] == {"gaussian_cluster None" if kind == "Points" else "trips us_flights"}


class TestHidden:
    """Data of one's own go when they are not public in Teach any more."""

    @pytest.mark.parametrize("kind", often(["Points", "Trips"], 1))
    @pytest.mark.slow
    def test_data_and_study_come_and_go_with_the_declaration(self, kind):
        app = own_data(kind, "Teach")
        assert KEY[kind] not in app.session_state
        to_compare(good(public(app).check().run()), kind)
        assert "declared to be already public" in captions(app)
        assert charts(finished(started(app)))
        assert KEY[kind] not in to_curate(app, kind).session_state
        fine(go(app, "compare"))
        assert not charts(app)
        assert not scenes(app)
        assert not app.dataframe
        assert "is not shown any more" in infos(app)
        to_mode(go(app, kind.lower()), "Teach")
        assert charts(fine(go(app, "compare")))

    def test_a_study_that_runs_is_stopped(self):
        app = started(to_compare(declared("Points"), "Points", mechanisms=("quadtree",), steps=5, repeats=200))
        to_curate(app, "Points")
        fine(go(app, "compare"))
        assert ended(app.session_state[JOB]) == STOPPED


def test_a_click_is_put_beside_the_others(monkeypatch):
    made = make_study_job(
        study(mechanisms={f"m{height}": Quadtree(height=height) for height in (1, 2, 3)} | {"cells": Identity()}), None, []
    )
    state = {}
    monkeypatch.setattr(type(COMPARE), "config", lambda self: state.get("config", CompareConfig()))
    monkeypatch.setattr(type(COMPARE), "change", lambda self, **new: state.update(config=replace(self.config(), **new)))
    monkeypatch.setattr("dpviz.app.pages.compare.page.shown_picks", lambda _: list(state["config"].picked if state else ()))
    options = list(possible_picks(made))
    for each in [*options[:5], options[3]]:
        pick(made, each)
    assert state["config"].picked == (options[2], options[4], options[3])
    pick(made, ("nothing", 1.0))
    pick(made, None)
    assert len(state["config"].picked) == 3, "the truth is the fourth map"


def test_a_contrast_has_one_release_without_an_epsilon_whatever_a_link_says(monkeypatch):
    made = make_study_job(study(mechanisms={"private": Quadtree(height=4), "contrast": SuppressedCounts(side=16)}), None, [])
    epsilons = [float(each) for each in made.of.study.epsilons]
    once = ("contrast", middle_of(epsilons))
    assert list(possible_picks(made)) == [*(("private", each) for each in epsilons), once]
    assert [describe_pick(made, pick) for pick in list(possible_picks(made))[-2:]] == [f"private, ε {epsilons[-1]:g}", "contrast"]
    picked = tuple(("contrast", each) for each in epsilons)
    monkeypatch.setattr(type(COMPARE), "config", lambda self: CompareConfig(picked=picked))
    assert picks(made) == [once]


@pytest.mark.parametrize(("contrast", "epsilon"), [(6.0, 0.1), (2.2, 1.0), (18.0, 0.1), (1.0, 1.0)])
def test_contrasts_are_paired_with_the_private_release_that_is_as_useful_at_the_nearest_epsilon(contrast, epsilon):
    job = make_study_job(study(mechanisms={"A": SuppressedCounts(), "B": Quadtree()}, epsilons=(0.1, 1)), None, [])
    rows = TestAnswer().rows((contrast, 2), (contrast, 9))
    rows["private"] = rows["label"] != "A"
    assert _pair_contrasts(job, rows) == [("B", epsilon), ("A", 1.0)]
    assert _pair_contrasts(job, rows[rows["label"] == "B"]) == []


class TestAreas:
    @pytest.mark.slow
    def test_a_study_of_areas_shows_errors_by_level_and_maps_of_regions(self):
        link = {"kind": "Areas", "low": "0.2", "high": "0.5", "steps": "2", "repeats": "2", "mechanisms": '["region_tree","flat"]'}
        app = fine(finished(started(compare_app(link))))
        for shown in ("Released", "Error", "False positives"):
            config = app.session_state["compare config"]
            app.session_state["compare config"] = replace(config, shown=shown)
            header, _ = scene(fine(app.run()))
            assert len(header["panes"]) >= 2
        for name in TABS:
            app.session_state["compare tab"] = name
            fine(app.run())
            assert not app.info
        assert not {"By size", "Parts of the error"} & {each.label for each in app.tabs}
        labels = [option for box in app.selectbox if box.label == "Queries" for option in box.options]
        assert labels == ["regions of level district", "regions of level tract", "regions of level block"]

    def test_a_link_to_areas_keeps_a_level_that_its_regions_have(self):
        assert read_link(CompareConfig, {"kind": "Areas", "sample": "us_residents", "level": "2"}).level == 2
        assert read_link(CompareConfig, {"kind": "Areas", "sample": "us_residents", "level": "3"}).level is None


LAND = {"sample": "la_residents", "order": "5", "mechanisms": '["quadtree","htf","dawa"]', "steps": "1", "repeats": "1", "seed": "78"}


@pytest.mark.slow
def test_a_link_says_that_people_are_on_land_and_mechanisms_that_take_no_study_area_are_left_out():
    app = finished(started(compare_app(LAND | {"study_area": "land"})))
    job = app.session_state[JOB]
    assert [*job.of.study.mechanisms] == ["Quadtree", "DAWA"]
    assert job.of.study.data.domain.share_open == pytest.approx(0.88, abs=0.02)
    assert "Left out, for taking no study area: HTF" in captions(app)
    assert scene(tab(app, "On the map"))[0]["masked"]
    assert query_of(app)["study_area"] == "land"
    assert 'study_area = "land"' in " ".join(each.value for each in app.code)
    good(app.selectbox(key="compare study area kind").set_value("everywhere").run())
    assert is_grey(app)


@pytest.mark.slow
def test_a_link_that_lacks_its_file_of_polygons_asks_for_it_and_shows_no_numbers():
    app = good(compare_app(LAND | {"study_area": "file"}))
    assert "a link does not carry the file" in infos(app)
    assert JOB not in app.session_state
    assert app.button(key="draw").disabled
    west = gpd.GeoSeries([shapely.box(-118.7, 33.7, -118.3, 34.4)], crs="EPSG:4326").to_json().encode()
    good(app.file_uploader(key="study area file").set_value(("west.geojson", west, "text/plain")).run())
    good(labelled(app.checkbox, "This file is already public").check().run())
    job = finished(started(app)).session_state[JOB]
    assert not job.is_shared, "other sessions do not see what was made with a file of one's own"
    east = gpd.GeoSeries([shapely.box(-118.3, 33.7, -117.8, 34.4)], crs="EPSG:4326").to_json().encode()
    app.session_state[f"public study area file {digest_of(east)}"] = True
    good(app.file_uploader(key="study area file").set_value(("east.geojson", east, "text/plain")).run())
    assert is_grey(app), "another file makes another study"
    app.session_state["study area uploaded"] = ("west.geojson", west)  # as after a visit of another page
    app = good(app.file_uploader(key="study area file").set_value(None).run())
    app.session_state["study area uploaded"] = ("west.geojson", west)
    app = good(app.run())
    assert not is_grey(app)
    good(app.button(key="study area forget").click().run())
    assert "study area forget" not in {each.key for each in app.button}
    assert is_grey(app)
    assert "makes no study yet" in texts(app)
    assert "All of them are made" not in captions(app)


def test_without_a_mechanism_that_takes_a_study_area_there_is_no_study():
    app = compare_app(LAND | {"mechanisms": '["htf"]', "study_area": "land"})
    assert "HTF cannot take a study area into account" in errors(app)


def test_a_study_is_that_of_its_data_again_once_they_are_chosen_again():
    app = finished(started(compare_app({"order": "6", "mechanisms": '["quadtree"]', "steps": "1", "repeats": "1"})))
    for sample, grey in (("us_places", True), ("la_residents", False)):
        app = good(labelled(app.selectbox, "Sample").set_value(sample).run())
        assert is_grey(app) == grey

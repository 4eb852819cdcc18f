"""The Areas page: what is shown for a link, what a press does, and what a link carries."""

import sys
import tomllib
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpviz.amounts import MISSING, format_decimal
from dpviz.app.pages.areas.levels import expect
from dpviz.app.pages.areas.tabs import ACCURACY_TAB, ASK_TAB, TAB_TITLES, style_fitness
from dpviz.app.session.cached import digest_of
from dpviz.app.state.parts import Box, ChosenRegions
from dpviz.data.areas import AreaCounts
from dpviz.mechanisms import MECHANISMS, REFERENCES, FlatAreas
from dpviz.mechanisms import run as measure
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.publishing.config import from_tables
from dpviz.publishing.public_guess import RELEASED
from dpviz.samples.areas import AREA_SAMPLES
from dpviz.space.area_shares import areas_km2
from dpviz.space.regions import Regions
from dpviz.view.areas_drawing import SHOWN_AREAS
from tests.app.parts import changed_page, files_with, page_with
from tests.app.rails import rail_of
from tests.app.seen import (
    account,
    captions,
    entries,
    errors,
    figures,
    fine,
    good,
    infos,
    keys,
    labelled,
    missing,
    newest,
    noised,
    released_map,
    scene,
    scenes,
    shares_of,
    texts,
)
from tests.app.start import AREA_REGIONS, VISITS, areas_uploaded, pages_app, query_of
from tests.app.test_opened_config import choose as choose_files
from tests.app.test_opened_config import opened as configuration_opened
from tests.app.walk import ROOT, open_drawer, open_tab, press_draw, protect, public, say_how_many, truth_switch
from tests.often import often
from tests.scenes import unpack

PUBLIC = {"Typical noise (standard deviation)", "Released total", "Budget of this draw", "Narrow intervals"}
PUBLIC |= {"Released answer", "95 % interval", "Rate per km²"}
STATES = {"sample": "us_residents", "level": "1"}
CITY = {"sample": "made_up_city"}


MISTAKES = [
    ({"regions": b"district,tract\n"}, "The file of regions has no rows"),
    ({"regions": b"district,tract\n", "levels": ()}, "The file of regions has no rows"),
    (
        {"regions": b"tract,district\nA1,A\nA2,A\n", "levels": ["tract", "district"]},
        "from coarse to fine; these seem reversed: district, tract.",
    ),
    ({"regions": b"district,tract\nA,A1\n,B1\n"}, "Column 'district' has a missing or blank cell"),
    ({"points": b"tract,visitor\nC1,v1\nC2,v2\n", "drop": True}, "No record lies in a region of the finest level. If records have ids"),
]
CURATE = STATES | {"mode": "Curate"}


HOMES = b"lon,lat\n" + b"".join(f"{4.7 + place % 7 / 20:.2f},{45.6 + place % 5 / 20:.2f}\n".encode() for place in range(40))


def in_cells(kind, **grid):
    """A page of Areas in Curate for points alone, in hexagons or squares."""
    files = files_with("homes.csv", HOMES, whom="each", crs="EPSG:4326")
    parts = {"regions_from": kind, "regions": ChosenRegions(h3=(5, 7, 9), squares=(2, 4, 6)), "grid": Box(**grid)}
    return page_with("areas", mode="Curate", source="upload", uploaded=files, **parts)


def areas_in_cells(kind, grid=(), **state):
    """The Areas page after an upload of points alone."""
    return good(pages_app("areas", {}, {"areas config": in_cells(kind, **dict(grid)), "areas uploaded": ("homes.csv", HOMES)} | state))


def dragged():
    from dpviz.app.pages.areas.regions import take_dragged_box  # noqa: PLC0415 - only this function's text runs

    take_dragged_box((4.6, 45.5, 5.1, 46.0))


def asks_for_box(app):
    """Whether a box can be dragged on the first map."""
    return unpack(scenes(app)[0])[0]["asks"]


def areas_app(link=CITY):
    return pages_app("areas", link)


def areas_drawn(app):
    teaches = app.session_state["areas config"].draft.mode == "Teach"
    return newest(app, "areas config first run" if teaches else "areas drawn Curate")


def changed(app, **settings):
    """The page with another configuration."""
    app.session_state["areas config"] = changed_page(app.session_state["areas config"], **settings)
    return good(app.run())


def opened(app, name):
    return fine(open_tab(app, name))


def heads(app):
    return [pane["title"] for pane in scene(app)[0]["panes"]]


@pytest.fixture
def draws(monkeypatch):
    """The function that draws Laplace noise, as a mock that draws and counts its calls."""
    monkeypatch.setattr(measure, "discrete_laplace", Mock(wraps=measure.discrete_laplace))
    return measure.discrete_laplace


class TestContrasts:
    @pytest.mark.slow
    @pytest.mark.parametrize("key", REFERENCES.of("areas"))
    def test_they_say_what_breaks_them_and_that_they_state_no_noise(self, key):
        app = fine(areas_app(CITY | {"mechanism": key, "settings": "{}"}))
        assert f":orange[**NOT PRIVATE**]: {REFERENCES.of('areas')[key].attack}" in texts(app)
        assert "not stated" in [each.value for each in open_drawer(app, "Numbers").metric]
        assert "No level is usable" not in texts(app)
        assert "no budget bounds what the chosen method reveals" in captions(app)
        assert "**Protected:**" not in captions(app)
        for name in TAB_TITLES:
            fine(opened(app, name))

    @pytest.mark.slow
    def test_curate_offers_none(self):
        app = fine(areas_app(CURATE))
        assert not {kind.title for kind in REFERENCES.of("areas").values()} & {
            each.split(" · ")[0] for each in app.selectbox(key="mechanism").options
        }


class TestMaps:
    def test_the_first_picture_is_there_without_a_press_and_each_control_runs_again(self, draws):
        app = fine(areas_app({}))
        assert [len(call.args[0]) for call in draws.call_args_list] == [12, 108, 1608]
        assert heads(app) == ["True visits", "Released visits"]
        first = areas_drawn(app)
        assert float(first.release.receipt.total.epsilon) == 0.5
        fine(open_drawer(app, "Method").text_input(key="epsilon").set_value("2").run())
        assert draws.call_count == 6
        fine(app.button(key="undo").click().run())
        assert areas_drawn(app) is first
        fine(app.button(key="again").click().run())
        assert (areas_drawn(app).number, draws.call_count) == (2, 9)

    @pytest.mark.parametrize("sample", AREA_SAMPLES)
    def test_every_sample_is_drawn_at_its_finest_level(self, sample):
        app = fine(areas_app({"sample": sample}))
        header, arrays = scene(app)
        regions = areas_drawn(app).release.regions
        assert len(header["areas"]["first"]["texts"]) == regions.size(regions.depth)
        assert len(arrays["0 fill 0"]) == 4 * regions.size(regions.depth)

    @pytest.mark.slow
    def test_every_view_is_drawn_with_counts_rates_and_densities(self):
        app = open_drawer(areas_app(CITY | {"level": "2"}), "Map")
        for name, title in (("Counts", "of a region"), ("Rates", "per 1,000 residents"), ("Per km²", "per km²")):
            fine(app.selectbox(key="measure").set_value(name).run())
            for shown in SHOWN_AREAS:
                header, _ = scene(fine(changed(app, shown=shown)))
                assert title in header["panes"][0]["legend"]["title"]

    def test_a_sample_whose_counts_are_its_residents_has_no_rates(self):
        app = fine(open_drawer(areas_app(STATES | {"measure": "Rates"}), "Map"))
        assert app.selectbox(key="measure").options == ["Counts", "Per km²"]
        assert scene(app)[0]["panes"][0]["legend"]["title"] == "residents of a region"

    def test_the_text_of_a_region_says_its_name_count_intervals_rate_and_truth(self):
        app = fine(areas_app(STATES))
        release = areas_drawn(app).release
        place = release.regions.ids_of(1).tolist().index("CA")
        lines = scene(app)[0]["areas"]["first"]["texts"][place].split("\n")
        assert lines[0] == "California"
        assert lines[1] == f"released {release.count[release.nodes(1)][place]:,.0f} residents"
        assert lines[2].startswith("95 %: ")
        assert lines[3].startswith("all regions at once: ")
        assert " per km² (95 %: " in lines[4]
        assert lines[5].startswith("true 39,512,223, error ")

    def test_scales_of_errors_stay_whatever_is_released(self):
        app = fine(areas_app(CITY | {"shown": "Error"}))
        before = scene(app)[0]["panes"][1]["legend"]
        fine(open_drawer(app, "Method").text_input(key="epsilon").set_value("0.05").run())
        assert scene(app)[0]["panes"][1]["legend"] == before
        fine(open_drawer(app, "Map").button(key="fit scale").click().run())
        assert scene(app)[0]["panes"][1]["legend"] != before

    def test_a_second_run_has_settings_of_its_own_and_stands_beside_the_first_in_every_tab(self):
        app = fine(changed(areas_app(), left="Second run", second=page_with("areas", mechanism="flat", epsilon=1.0).draft.run))
        assert heads(app) == ["Released visits, Flat counts", "Released visits, Region tree"]
        assert len(open_drawer(app, "Numbers").metric) == 4
        for name in TAB_TITLES:
            opened(app, name)

    def test_hidden_regions_are_said_to_be_hidden(self):
        app = fine(areas_app(CITY | {"mechanism": "flat", "settings": '{"threshold":30}', "asked": "[0]"}))
        release = areas_drawn(app).release
        place = int(np.flatnonzero(release.hidden)[0])
        header, _ = scene(app)
        assert "not shown: its count is under the threshold" in header["areas"]["first"]["texts"][place]
        assert "regions are under the threshold and not shown" in header["panes"][1]["note"]
        changed(app, asked=(place,))
        assert figures(opened(app, ASK_TAB))["Released answer"] == "not shown"

    @pytest.mark.slow
    def test_gaussian_noise_takes_a_delta(self):
        app = open_drawer(areas_app(), "Method")
        assert "delta" not in keys(app.select_slider)
        fine(app.segmented_control(key="noise").set_value("Gaussian").run())
        receipt = areas_drawn(app).release.receipt
        assert {step.noise for step in receipt.steps} == {"discrete Gaussian"}
        assert receipt.total.delta > 0
        assert "except with probability δ" in captions(app)
        for name in TAB_TITLES:
            opened(app, name)

    def test_the_rail_shows_the_shares_of_rho_that_gaussian_noise_spends(self, monkeypatch):
        rail = rail_of(monkeypatch)
        app = fine(areas_app(CITY | {"noise": "Gaussian"}))
        receipt = areas_drawn(app).release.receipt
        shown = [part.share for part in rail.parts]
        assert shown == pytest.approx([float(step.amount / receipt.available) for step in receipt.steps])

    def test_what_a_split_gives_is_expected_before_a_run(self):
        app = fine(areas_app(CITY))
        what = areas_drawn(app)
        expected = expect(what.data.counts, None, what.draft.build().with_shares([0.2, 0.3, 0.5]), what.draft.budget())
        release = areas_drawn(fine(changed(app, settings={"split": "custom", "weights": [0.2, 0.3, 0.5]}))).release
        assert expected == pytest.approx([float(np.sqrt((release.stddev(level) ** 2).mean())) for level in range(4)])

    @pytest.mark.parametrize("key", sorted(key for key, kind in MECHANISMS.of("areas").items() if not kind.by_category))
    def test_every_mechanism_fills_every_tab(self, key):
        app = fine(areas_app(CITY | {"mechanism": key}))
        assert areas_drawn(app).release.mechanism == key
        for name in TAB_TITLES:
            opened(app, name)


class TestNumbers:
    def test_key_figures_are_those_of_the_level(self):
        app = fine(open_drawer(areas_app(), "Numbers"))
        row = areas_drawn(app).evaluation.by_level.iloc[-1]
        found = figures(app)
        assert list(found) == ["Typical noise (standard deviation)", "Narrow intervals"]
        assert found["Narrow intervals"] == f"{row['narrow']:.3g} %"

    def test_regions_that_are_asked_for_are_added_up_with_their_interval(self):
        app = opened(areas_app(CITY | {"level": "2", "asked": "[3,4,5]"}), ASK_TAB)
        what = areas_drawn(app)
        ids = [what.release.regions.ids_of(2)[3:6].tolist()]
        low, high = (float(end[0]) for end in what.release.answer_interval(ids))
        found = figures(app)
        assert found["Released answer"] == f"{what.release.count[what.release.nodes(2)][3:6].sum():,.0f} visits"
        assert found["95 % interval"] == f"{low:,.0f} to {high:,.0f}"
        assert found["True answer"] == f"{what.evaluation.truth[2][3:6].sum():,}"
        assert "noise partly cancels" in captions(app)
        assert scene(app)[0]["panes"][0]["chosen"] == [3, 4, 5]
        assert any("3 regions together: released" in each.value for each in app.html)
        fine(app.button(key="no region").click().run())
        assert "their sum stands here" in infos(app)

    def test_another_level_lets_regions_go(self):
        app = fine(areas_app(CITY | {"asked": "[1400]", "level": "3"}))
        assert scene(app)[0]["panes"][0]["chosen"] == [1400]
        fine(changed(app, level=1))
        assert scene(app)[0]["panes"][0]["chosen"] == []


def test_noise_is_no_share_of_an_average_of_zero():
    regions = Regions.from_table(pd.DataFrame({"tract": list("abc")}), levels=["tract"])
    nothing = AreaCounts.from_counts([0, 0, 0], regions=regions)
    runs = (FlatAreas().release(nothing, PureBudget(1), Entropy.seeded(seed)) for seed in range(20))
    shown = style_fitness(next(run for run in runs if run.count[0] < 0)).to_html()
    assert (shown.count(MISSING), "inf" in shown) == (2, False)


class TestControls:
    def test_a_split_can_be_typed(self):
        app = open_drawer(areas_app(), "Split")
        assert len(shares_of(app)) == 3
        fine(app.number_input(key="share 0").set_value(60.0).run())
        receipt = areas_drawn(app).release.receipt
        assert float(receipt.steps[0].amount / receipt.available) == pytest.approx(0.6)

    def test_typed_shares_are_those_of_the_rail_and_of_what_is_spent_also_under_gaussian_noise(self):
        app = open_drawer(areas_app({"noise": "Gaussian", "settings": '{"split":"geometric"}'}), "Split")
        receipt = areas_drawn(app).release.receipt
        spent = [100 * float(step.amount / receipt.available) for step in receipt.steps]
        assert shares_of(app) == pytest.approx(spent, abs=0.005)
        assert [each.label for each in app.expander if each.label.startswith("Type the shares")] == ["Type the shares of ρ"]
        assert "Census" not in app.selectbox(key="preset").options, "its shares are for six levels"
        assert "US Census 2020 (persons)" in app.selectbox(key="preset").options

    def test_the_link_carries_the_configuration(self):
        link = {"sample": "us_residents", "mechanism": "flat", "settings": '{"threshold":5}', "epsilon": "0.3", "noise": "Gaussian"}
        link |= {"delta": "1e-07", "level": "1", "measure": "Per km²", "asked": "[2,7]", "shown": "Error", "left": "False positives"}
        link |= {"scales": '{"error 1 2":0.05}'}
        app = fine(areas_app(link))
        assert query_of(app) == link

    @pytest.mark.parametrize(
        "link", [{"level": "99"}, {"asked": "[-1]"}, {"asked": '["x"]'}, {"asked": str(list(range(99)))}, {"measure": "x"}, {"noise": "y"}]
    )
    def test_a_link_that_makes_no_sense_opens_the_usual_page(self, link):
        app = good(areas_app(link))
        assert app.session_state["areas config"] == page_with("areas")

    def test_the_code_makes_the_same_release(self):
        app = fine(open_drawer(areas_app({"epsilon": "0.7", "run": "3"}), "Numbers"))
        (code,) = [each.value for each in app.code if "dv.load_sample" in each.value]
        names = {}
        exec(code, names)  # noqa: S102 - our own code
        assert all(np.array_equal(a, b) for a, b in zip(names["release"].count, areas_drawn(app).release.count, strict=True))


class TestCurate:
    def test_nothing_is_drawn_before_the_press_and_the_declared_regions_are_on_a_map(self, draws):
        app = fine(areas_app(CURATE))
        assert app.button(key="draw").label == "Run and pay ε 0.5"
        header, _ = scene(app)
        assert header["panes"][0]["title"].startswith("Expected error: ±")
        assert len(header["areas"]["regions"]["texts"]) == 3142
        assert not noised(draws)
        assert entries() == []

    def test_a_run_is_paid_for_and_no_truth_is_shown_before_the_switch_is_on(self):
        app = fine(press_draw(areas_app(CURATE)))
        assert [entry.budget.epsilon for entry in entries()] == [0.5]
        assert not areas_drawn(app).release.simulation
        header, _ = unpack(scenes(app)[-1])
        assert [pane["title"] for pane in header["panes"]] == ["Released residents"]
        assert not header["maySave"]
        assert not any("true" in text for text in header["areas"]["regions"]["texts"])
        for name in TAB_TITLES:
            assert set(figures(opened(app, name))) <= PUBLIC
            assert all("true" not in frame.value.columns for frame in app.dataframe)
        assert not account().truth_seen
        fine(truth_switch(app).set_value(True).run())
        assert account().truth_seen
        assert opened(app, ACCURACY_TAB).dataframe[-1].value["typical error"].notna().all()
        assert "true" in unpack(scenes(app)[-1])[0]["areas"]["regions"]["texts"][0]

    def test_regions_are_asked_for_without_the_truth(self):
        app = fine(press_draw(areas_app(CURATE | {"asked": "[0,1]"})))
        found = figures(opened(app, ASK_TAB))
        assert {"Released answer", "95 % interval"} <= set(found)
        assert "True answer" not in found

    def test_changed_settings_are_marked_and_draw_nothing(self, draws):
        app = fine(press_draw(areas_app(CURATE)))
        made = len(noised(draws))
        fine(app.text_input(key="epsilon").set_value("2").run())
        assert "have changed since draw 1" in captions(app)
        assert len(noised(draws)) == made

    def test_gaussian_noise_is_paid_with_a_delta(self):
        app = fine(press_draw(areas_app(CURATE | {"noise": "Gaussian"})))
        assert entries()[0].budget.delta > 0
        assert {step.noise for step in areas_drawn(app).release.receipt.steps} == {"discrete Gaussian"}

    def test_files_of_regions_and_ids_are_counted_and_released(self):
        app = fine(areas_uploaded())
        assert "Regions: 2 of level district, 4 of level tract." in captions(app)
        assert "there is no map of them" in captions(app)
        app = fine(press_draw(app))
        release = areas_drawn(app).release
        assert abs(release.count[0] - 90) < 60
        assert "the tab *Table* has their counts" in captions(app)
        assert opened(app, "Table").dataframe[-1].value["region"].tolist()[0] in ("A1", "A2", "B1", "B2")

    def test_what_is_missing_is_listed_and_nobody_is_preselected(self):
        app = fine(areas_uploaded(unit=None))
        assert missing(app)[0] == "Say whom the release protects: nothing is preselected."
        assert app.button(key="draw").disabled
        protect(app, "visitor", 2)
        app = fine(press_draw(app))
        assert areas_drawn(app).data.counts.contributions == 2
        assert areas_drawn(app).release.receipt.unit == "person"

    @pytest.mark.parametrize(("files", "words"), MISTAKES)
    def test_a_mistake_is_one_sentence_and_what_was_chosen_stays(self, files, words):
        app = good(areas_uploaded(**files))
        assert words in errors(app)
        assert app.button(key="draw").disabled
        assert app.session_state["areas uploaded"][0] == "visits.csv"
        assert entries() == []

    def test_counts_are_guessed_from_an_earlier_release_of_the_same_regions(self):
        app = areas_uploaded()
        next(each for each in app.selectbox if each.label == "They lie").set_value(RELEASED)
        assert "Choose the earlier release" in captions(good(app.run()))
        regions = Regions.from_table(pd.DataFrame({"district": ["A", "B"]}), levels=["district"])
        earlier = AreaCounts.from_counts([3000, 1000], regions=regions)
        app.session_state["good release areas config"] = FlatAreas().release(earlier, PureBudget(1000), Entropy.system())
        assert "of an average one (1,000)" in texts(good(app.run()))

    def test_ids_that_are_in_no_region_are_refused_without_being_named(self):
        app = good(areas_uploaded(points=b"tract,visitor\nsecret,v1\n"))
        assert "secret" not in errors(app)
        assert errors(app)
        assert app.button(key="draw").disabled

    def test_the_truth_of_an_upload_is_shown_in_teach_only_if_it_is_public(self):
        app = fine(areas_uploaded("Teach"))
        assert areas_drawn(app) is None
        fine(public(app).check().run())
        assert areas_drawn(app).release.simulation
        assert "a list stands for the map" in captions(app)
        (listed,) = [each.value for each in app.dataframe if "true" in each.value]
        assert listed["true"].tolist() == [90, 85, 60, 25, 5, 5, 0]

    @pytest.mark.slow
    def test_a_configuration_opens_asks_for_its_files_and_is_saved_as_the_same(self):
        folder = ROOT / "sample_data"
        app = fine(configuration_opened((folder / "areas.toml").read_bytes(), "areas", areas_app(CURATE)))
        config = app.session_state["areas config"]
        assert (config.draft.source, config.draft.run.noise, float(config.draft.run.rho), config.draft.run.mechanism) == (
            "upload",
            "Gaussian",
            0.5,
            "region_tree",
        )
        assert "city_visits.csv" in captions(app)
        files = {
            "areas_regions_uploaded": ("city_blocks.geojson", (folder / "city_blocks.geojson").read_bytes()),
            "areas_uploaded": ("city_visits.csv", (folder / "city_visits.csv").read_bytes()),
        }
        app = choose_files(app, **files)
        assert missing(say_how_many(app)) == []
        app = fine(press_draw(app))
        what = areas_drawn(app)
        assert (what.data.counts.contributions, what.data.counts.unit) == (3, "person")
        assert str(what.release.receipt.total) == "rho 0.5"
        assert what.release.regions.denominator.name == "residents"
        assert any("per 1,000 residents (95 %" in text for text in unpack(scenes(app)[-1])[0]["areas"]["regions"]["texts"])
        app = changed(app, measure="Rates")
        assert unpack(scenes(app)[-1])[0]["panes"][0]["title"] == "Released records per 1,000 residents"
        before = from_tables(tomllib.loads((folder / "areas.toml").read_text("utf-8")), asks_unit=True)
        (text,) = [each.value.split("\n", 1)[1] for each in app.code if each.value.startswith("# dpviz release")]
        after = from_tables(tomllib.loads(text), asks_unit=True)
        for part in ("regions", "budget", "mechanism"):
            assert getattr(after, part) == getattr(before, part)
        assert (after.dataset.name, after.dataset.cap_rho) == (before.dataset.name, 2)
        assert (after.data.points, after.data.person, after.data.contributions) == ("city_visits.csv", "patient", 3)

    def test_a_configuration_of_ids_fills_in_its_column(self):
        tables = tomllib.loads((ROOT / "sample_data" / "areas.toml").read_text("utf-8"))
        tables |= {"data": {"points": "visits.csv", "region": "tract", "count": "none"}, "budget": {"epsilon": 0.25}}
        tables |= {"regions": {"file": "regions.csv", "levels": ["district", "tract"]}}
        tables["dataset"] = {"name": "visits", "unit": "record", "cap_epsilon": 2}
        app = fine(configuration_opened(tables, "areas", areas_app(CURATE)))
        app = choose_files(app, areas_regions_uploaded=("regions.csv", AREA_REGIONS), areas_uploaded=("visits.csv", VISITS))
        assert missing(say_how_many(app)) == []
        assert areas_drawn(fine(press_draw(app))).release.receipt.total.epsilon == 0.25
        assert app.session_state["areas config"].draft.run.noise == "Laplace"

    @pytest.mark.parametrize("kind", often(["Hexagons", "Squares"], 1))
    def test_points_alone_are_counted_in_cells_of_a_declared_box_and_the_configuration_opens_again(self, kind):
        if kind == "Hexagons":
            pytest.importorskip("h3")
        app = areas_in_cells(kind)
        assert missing(app)[0].startswith("Declare the "), "the file of points is there"
        for side, value in zip(("west", "east", "south", "north"), (4.6, 5.1, 45.5, 46.0), strict=True):
            app.number_input(key=f"areas grid {side}").set_value(value)
        if kind == "Squares":
            app.text_input(key="areas grid crs").set_value("EPSG:4326")
        app.text_input(key="areas h3" if kind == "Hexagons" else "areas squares").set_value("4 5" if kind == "Hexagons" else "2, 3")
        app = fine(press_draw(fine(app.run())))
        release = areas_drawn(app).release
        assert release.regions.grid is not None
        assert areas_drawn(app).data.counts.count.sum() == 40
        rate = release.count[release.nodes(2)][0] / areas_km2(release.regions)[0]
        assert f"\n{format_decimal(rate)} per km² (95 %: " in next(iter(released_map(app)[0]["areas"].values()))["texts"][0]
        (text,) = [each.value.split("\n", 1)[1] for each in app.code if each.value.startswith("# dpviz release")]
        tables = tomllib.loads(text)
        box = {"area": [4.6, 45.5, 5.1, 46.0]} if kind == "Hexagons" else {"bounds": [4.6, 45.5, 5.1, 46.0], "crs": "EPSG:4326"}
        assert tables["regions"] == ({"h3": [4, 5]} if kind == "Hexagons" else {"squares": [2, 3]}) | box
        again = choose_files(fine(configuration_opened(tables, "areas", areas_app(CURATE))), areas_uploaded=("homes.csv", HOMES))
        assert missing(say_how_many(again)) == []
        (saved,) = [each.value.split("\n", 1)[1] for each in again.code if each.value.startswith("# dpviz release")]
        assert tomllib.loads(saved)["regions"] == tables["regions"]

    def test_a_box_is_dragged_on_the_map_where_cells_are_made_in_one(self):
        assert asks_for_box(areas_in_cells("Squares"))
        app = AppTest.from_function(dragged)
        app.session_state["areas config"] = in_cells("Squares", place="Lyon")
        grid = good(app.run()).session_state["areas config"].draft.grid
        assert grid == Box(west=4.6, south=45.5, east=5.1, north=46.0, crs="EPSG:4326")
        assert not asks_for_box(areas_app(CURATE))

    def test_hexagons_cover_public_polygons_never_the_private_file(self):
        pytest.importorskip("h3")
        town = b'name,geometry\ntown,"POLYGON ((4.6 45.5, 5 45.5, 5 46, 4.6 45.5))"\n'
        app = areas_in_cells("Hexagons", {"crs": "EPSG:4326"}, **{"areas outline uploaded": ("town.csv", town)})
        app = fine(app.text_input(key="areas h3").set_value("4 5").run())
        assert "of level resolution 5" in captions(app)
        assert "The hexagons cover the polygons of town.csv" in captions(app)
        app.session_state["areas uploaded"] = ("town.csv", town)
        app = good(app.run())
        assert "This is the file of the private data" in errors(app)

    def test_regions_are_never_the_private_file(self):
        tracts = b"district,tract\nA,A1\nB,B1\n"  # the regions that have records
        app = areas_uploaded(points=tracts, regions=tracts)
        assert "This is the file of the private data" in errors(app)
        assert "This is the file of the private data" not in errors(areas_uploaded("Teach", points=tracts, regions=tracts))

    def test_without_the_package_h3_one_sentence_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "h3", None)
        app = areas_in_cells("Hexagons", {"west": 4.6, "east": 5.1, "south": 45.5, "north": 46.0})
        assert errors(app).count("H3 cells need the package h3") == 1

    def test_a_file_named_by_its_path_is_counted(self, tmp_path):
        path = tmp_path / "visits.csv"
        path.write_bytes(VISITS)
        regions = ChosenRegions(file="regions.csv", levels=("tract",), digest=digest_of(AREA_REGIONS))
        page = page_with("areas", mode="Curate", source="path", path=str(path), regions=regions)
        app = good(pages_app("areas", {}, {"areas config": page, "areas regions uploaded": ("regions.csv", AREA_REGIONS)}))
        good(labelled(app.selectbox, "Ids of the finest regions").set_value("tract").run())
        good(labelled(app.selectbox, "How many records does a row stand for?").set_value("none").run())
        app = fine(press_draw(protect(app)))
        assert areas_drawn(app).data.counts.count.sum() == 90
        assert 'dv.read_areas(\n    "' in "".join(each.value for each in app.code)

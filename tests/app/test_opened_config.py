"""Open a configuration: it sets the page exactly, saves as the same, and what does not fit is refused with the page as it was."""

import json
import tomllib
from dataclasses import replace
from fractions import Fraction

import pytest
import streamlit
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz as dv
from dpviz.__main__ import main
from dpviz.app.session.ledger import Source
from dpviz.app.state.kinds import POINTS as POINT_PAGE
from dpviz.app.state.kinds import TRIPS as TRIP_PAGE
from dpviz.app.state.page import usual_page
from dpviz.app.state.run import convert_to_currency
from dpviz.app.state.toml import read_toml, write_toml
from dpviz.mechanisms import MECHANISMS
from dpviz.privacy.accounts import amount_of
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.publishing.config import (
    BudgetPart,
    DataPart,
    DatasetPart,
    DomainPart,
    MechanismPart,
    OutputPart,
    PublicationPart,
    ReleaseConfig,
    from_tables,
    to_toml,
)
from dpviz.space.domain import Domain
from tests.app.components.test_code import blocks
from tests.app.seen import captions, errors, fine, good, labelled, missing
from tests.app.start import BARE, CURATE, CURATE_TRIPS, JOURNEYS, PLACES, REGIONS, pages_app, query_of, uploaded
from tests.app.walk import ROOT, go, name_dataset, protect, say_how_many, to_mode
from tests.hostile import NAMES
from tests.often import each_often, often
from tests.publishing.configs import STUDY, changed

TEXTS = {
    "name": "Homes",
    "curator": "City office, 2nd floor",
    "description": "Where they\nlive: “all”",
    "region": "Lyon",
    "intended_use": "x",
}
POINTS = {
    "data": {"points": "homes.csv", "x": "lon", "y": "lat", "crs": "EPSG:4326"},
    "domain": {"bounds": [-125.0, 24.0, -66.0, 50.0], "crs": "EPSG:4326", "order": 7},
    "mechanism": {"key": "quadtree", "settings": {"height": 3, "split": "uniform"}},
    "budget": {"epsilon": "1/3"},
    "dataset": {"name": "Homes 2024", "unit": "record", "cap_epsilon": 3},
    "publication": TEXTS,
    "output": {"folder": "release"},
}
FLOWS = {
    **POINTS,
    "data": {"trips": "trips.csv", "origin": "origin", "destination": "dest", "count": "count"},
    "regions": {"file": "homes.csv", "levels": ["id"], "prefixes": [1]},
    "mechanism": {"key": "top_down"},
    "budget": {"epsilon": 0.25, "delta": 3e-7},
    "dataset": {"name": "Trips 2024", "unit": "trip", "cap_epsilon": "7/3", "cap_delta": "1/300"},
}
del FLOWS["domain"]
UTM = b"who;x;y;n\na;655000,5;5060000,25;2\nb;645000;5070000;1\na;640000;5065000;4\n"
WKT = b"id,place\n1,POINT (-118.2 34.1)\n2,POINT (-80.25 25.5)\n"
RIDES = b"rider,lon1,lat1,lon2,lat2\nr1,8,50,9,51\nr1,9,51,9,52\nr2,9,52,8,50\n"


def points(**sections):
    return {**POINTS, **sections}


def opened(tables, at="points", app=None):
    """A page of Curate after a configuration was opened there; `tables` may be bytes."""
    app = app or pages_app(at, CURATE if at == "points" else CURATE_TRIPS)
    body = tables if isinstance(tables, bytes) else tomli_w.dumps(tables).encode()
    (field,) = [each for each in app.file_uploader if str(each.key).startswith(f"open {at}")]
    field.set_value(("release.toml", body, "application/toml"))
    return good(app.run())


def choose(app, **files):
    """Choose files by their slots, as the uploaders keep them."""
    for slot, file in files.items():
        app.session_state[slot.replace("_", " ")] = file
    return fine(app.run())


def saved(app):
    """The configuration that the page would save."""
    return blocks(app)["toml"].split("\n", 1)[1]


def tables_of(text):
    return tomllib.loads(text)


def same_again(text, at, **files):
    """Open what was saved in a fresh session, and save again."""
    again = choose(opened(text.encode(), at), **files)
    assert saved(again) == text
    return again


def other_values(rule):
    """Values of a setting that are not its default."""
    if rule.choices:
        return [choice for choice in rule.choices if choice != rule.default]
    if isinstance(rule.default, bool):
        return [not rule.default]
    if isinstance(rule.default, tuple) or rule.low is None:
        return []
    low, high = rule.low, rule.high if rule.high is not None else rule.low + 10
    values = [low, high, (low + high) / 2, low + (high - low) / 3]
    return [int(value) if isinstance(rule.low, int) and isinstance(rule.default, int | None) else float(value) for value in values]


@st.composite
def built(draw, mechanisms):
    """A mechanism with some settings that are not the defaults."""
    kind = draw(st.sampled_from(sorted(mechanisms)))
    chosen = {}
    for rule in mechanisms[kind].rules():
        if (values := other_values(rule)) and draw(st.booleans()):
            chosen[rule.name] = draw(st.sampled_from(values))
            try:
                mechanisms[kind].from_settings(chosen)
            except ValueError:
                del chosen[rule.name]
    mechanism = mechanisms[kind].from_settings(chosen)
    frame = Domain(bounds=(0, 0, 1, 1), crs=None, order=6) if mechanism.family == "points" else FLIGHTS_BETWEEN
    try:
        parts = len(mechanism.shares(frame))
        return mechanism.with_shares(range(1, parts + 1)) if draw(st.booleans()) else mechanism
    except ValueError:  # these settings do not fit the frame
        return mechanism


FLIGHTS_BETWEEN = dv.load_sample("us_flights").regions
AMOUNTS = st.fractions(Fraction("0.001"), 100, max_denominator=10**6) | st.floats(0.001, 100).map(lambda x: Fraction(repr(x)))
DELTAS = st.fractions(Fraction(1, 10**9), Fraction(1, 10**4), max_denominator=10**9) | st.floats(1e-12, 1e-4).map(
    lambda x: Fraction(repr(x))
)
WORDS = st.fixed_dictionaries(dict.fromkeys(TEXTS, st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=20)))
HOMES = Source(data_part=DataPart(points="homes.csv"), domain=DomainPart(bounds=(0.0, 0.0, 1.0, 1 / 3), crs="none", order=16))
RIDDEN = Source(data_part=DataPart(sample="us_flights"))


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.parametrize(
    ("mechanisms", "kind", "source"), [(MECHANISMS.of("points"), POINT_PAGE, HOMES), (MECHANISMS.of("trips"), TRIP_PAGE, RIDDEN)]
)
def test_every_mechanism_and_budget_comes_back(mechanisms, kind, source, data):
    mechanism = data.draw(built(mechanisms))
    epsilon, delta = data.draw(AMOUNTS), data.draw(DELTAS)
    budget = ApproxBudget(epsilon, delta) if mechanism.needs_delta else PureBudget(epsilon)
    cap = data.draw(st.sampled_from([None, PureBudget("1/7"), ApproxBudget("1/3", "1/300"), ZcdpBudget("1/9")]))
    caps = {} if cap is None else {f"cap_{name}": value for name, value in amount_of(cap).items()}
    words = data.draw(WORDS)
    config = ReleaseConfig(
        data=source.data_part,
        domain=source.domain,
        mechanism=MechanismPart(key=mechanism.key, settings=mechanism.non_defaults()),
        budget=BudgetPart.of(convert_to_currency(mechanism, budget, cap)),
        dataset=DatasetPart(name="Homes", unit="record" if source is HOMES else "trip", **caps),
        publication=PublicationPart(**words | {"name": words["name"] or "Homes"}),
        output=OutputPart(folder="release"),
    )
    text = to_toml(config)
    usual = usual_page(kind)
    page = read_toml(text.encode(), replace(usual, draft=replace(usual.draft, mode="Curate")))
    assert page.draft.build() == mechanism
    assert write_toml(page) == text


PERSONS = {"person": "who", "contributions": 10}
WRITTEN = {"separator": ";", "decimal": ",", "encoding": "latin-1"}
NOTED = POINTS["data"] | {"person": "note", "contributions": 3, "distinct": True}
SMOOTH = {"key": "kdtree", "settings": {"variant": "smooth-sensitivity", "height": 4}}
IN_UTM = points(
    data={"points": "homes.csv", "x": "x", "y": "y", "crs": "EPSG:32631", "count": "n", **PERSONS, **WRITTEN},
    domain={"bounds": [635000.125, 5055000.0, 660000.0, 5080000.0], "crs": "EPSG:32631", "order": 9},
    dataset={"name": "x", "unit": "person", "cap_epsilon": 3},
)
POINT_CASES = {
    "records": (POINTS, BARE),
    "each row is one": (points(data=POINTS["data"] | {"count": "none"}), BARE),
    "a pure epsilon and a cap with delta": (
        points(budget={"epsilon": 0.0123}, dataset={"name": "x", "unit": "record", "cap_epsilon": 2, "cap_delta": 1e-7}),
        PLACES,
    ),
    "persons, each once per cell, in rho": (points(data=NOTED, dataset={"name": "x", "unit": "person", "cap_rho": 0.3}), PLACES),
    "persons in UTM in a table with semicolons": (IN_UTM, UTM),
    "points in WKT": (
        points(
            data={"points": "homes.csv", "geometry": "place", "crs": "EPSG:4326"},
            domain={"bounds": [-2e7, 2e6, -7e6, 7e6], "crs": "EPSG:3857", "order": 10},
        ),
        WKT,
    ),
    "a plain plane": (
        points(
            data={"points": "homes.csv", "x": "lon", "y": "lat"},
            domain={"bounds": [-200.0, 0.0, 0.0, 1e2 / 3], "crs": "none", "order": 10},
            output={"folder": "elsewhere", "formats": ["geoparquet", "csv"]},
        ),
        BARE,
    ),
    "a delta": (
        points(
            mechanism=SMOOTH,
            budget={"epsilon": 1, "delta": 3e-7},
            dataset={"name": "x", "unit": "record", "cap_epsilon": 2, "cap_delta": 1e-5},
        ),
        BARE,
    ),
}


class TestPoints:
    @pytest.mark.parametrize(("tables", "content"), each_often(POINT_CASES, 3))
    def test_what_is_opened_is_saved_again(self, tables, content):
        app = fine(opened(tables))
        assert "Choose homes.csv again" in captions(app)
        text = saved(choose(app, uploaded=("homes.csv", content)))
        assert from_tables(tables_of(text)) == from_tables(tables)
        again = same_again(text, "points", uploaded=("homes.csv", content))
        assert missing(say_how_many(again)) == []

    @pytest.mark.slow
    def test_what_was_chosen_by_hand_comes_back(self):
        app = uploaded(PLACES, unit=None, link=CURATE | {"epsilon": "2/7", "mechanism": "hilbert_tree", "settings": "{}"})
        protect(app, "note", 3)
        fine(name_dataset(app, "Homes 2024"))
        again = same_again(saved(app), "points", uploaded=("homes.csv", PLACES))
        assert labelled(again.text_input, "Name of the dataset").value == "Homes 2024"

    @pytest.mark.parametrize("sample", often(["daily_routes_bounded", "gaussian_cluster", "us_places"], 1))
    def test_a_sample(self, sample):
        app = fine(pages_app("points", CURATE | {"sample": sample, "settings": "{}"}))
        same_again(saved(app), "points")

    @pytest.mark.parametrize("key", often(MECHANISMS.of("points"), ["path_tree", "quadtree", "kdtree"]))
    def test_each_mechanism_with_its_split(self, key):
        mechanism = MECHANISMS.of("points")[key].from_settings(MECHANISMS.of("points")[key].page_settings)
        parts = len(mechanism.shares(Domain(bounds=(0, 0, 1, 1), crs=None, order=6)))
        chosen = mechanism.with_shares(range(1, parts + 1)).non_defaults()
        app = fine(pages_app("points", CURATE | {"mechanism": key, "settings": json.dumps(chosen), "epsilon": "1/3"}))
        again = same_again(saved(app), "points")
        assert again.session_state["config"].draft.build() == MECHANISMS.of("points")[key].from_settings(chosen)

    def test_what_code_shows_is_what_the_button_saves(self, monkeypatch):
        files, download = [], streamlit.download_button

        def record(label, data, *more, **options):
            files.append(data)
            return download(label, data, *more, **options)

        monkeypatch.setattr(streamlit, "download_button", record)
        app = choose(opened(POINTS), uploaded=("homes.csv", BARE))
        assert files[-1].rstrip() == saved(app)

    def test_the_configuration_that_comes_with_the_package(self):
        body = (ROOT / "sample_data" / "release.toml").read_bytes()
        text = saved(fine(opened(body)))
        again, first = from_tables(tables_of(text)), from_tables(tables_of(body.decode()))
        assert again.mechanism.build(again.data.family) == first.mechanism.build(first.data.family)
        assert replace(again, mechanism=first.mechanism) == first
        same_again(text, "points")

    def test_later_changes_stay_and_a_reload_keeps_all(self):
        app = choose(opened(POINTS), uploaded=("homes.csv", BARE))
        labelled(app.text_input, "Name of the dataset").set_value("Other homes")
        text = saved(fine(app.run()))
        assert tables_of(text)["dataset"]["name"] == "Other homes"
        reloaded = pages_app("points", query_of(app))
        assert saved(choose(reloaded, uploaded=("homes.csv", BARE))) == text

    def test_what_the_page_does_not_show_is_kept(self):
        data = POINTS["data"] | {"points": "data/homes.csv", "engine": "duckdb", "may_be_empty": True}
        app = opened(points(data=data, output={"folder": "elsewhere"}))
        assert "Not shown here, but written again when you save: [data] engine, [data] may_be_empty, [output] folder." in captions(app)
        assert from_tables(tables_of(saved(choose(app, uploaded=("homes.csv", BARE))))) == from_tables(
            points(data=data, output={"folder": "elsewhere"})
        )

    def test_another_file_is_not_taken_for_the_one_of_the_configuration(self):
        app = opened(POINTS)
        app.session_state["uploaded"] = ("others.csv", PLACES)
        good(app.run())
        assert "The opened configuration is for homes.csv" in captions(app)
        assert labelled(app.radio, "Whom to protect").value is None

    def test_a_file_without_the_column_says_so(self):
        app = opened(points(data=POINTS["data"] | {"x": "nowhere", "count": NAMES[0]}))
        app.session_state["uploaded"] = ("homes.csv", BARE)
        good(app.run())
        assert "names a column nowhere, which this file does not have" in captions(app)

    def test_a_path_is_read_only_once_it_is_chosen(self, tmp_path):
        path = str(tmp_path / "homes.csv")
        (tmp_path / "homes.csv").write_bytes(UTM)
        tables = changed(IN_UTM, "data.points", path)
        app = opened(changed(tables, "data.engine", "numpy"))
        assert app.session_state["config"].draft.source == "path"
        assert "draw" in {each.key for each in app.button}
        fine(app.button(key="offered path").click().run())
        text = saved(app)
        assert from_tables(tables_of(text)) == from_tables(changed(tables, "data.engine", "numpy"))
        again = opened(text.encode())
        assert saved(fine(again.button(key="offered path").click().run())) == text

    def test_a_relative_path_is_typed_and_written_as_it_was(self, tmp_path):
        (tmp_path / "homes").mkdir()
        (tmp_path / "homes" / "a.csv").write_bytes(UTM)
        tables = changed(IN_UTM, "data.points", "homes/*.csv")
        app = opened(tables)
        assert "names homes/*.csv: type where it is" in captions(app)
        app.text_input(key="path").set_value(str(tmp_path / "homes" / "*.csv"))
        assert from_tables(tables_of(saved(fine(app.run())))) == from_tables(tables)

    def test_a_column_of_counts_that_is_left_out_is_asked_for_although_its_name_is_usual(self):
        app = opened(POINTS)
        app.session_state["uploaded"] = ("homes.csv", BARE.replace(b"\n", b",2\n").replace(b"lat,2", b"lat,count"))
        assert labelled(good(app.run()).selectbox, "How many records does a row stand for?").value is None
        assert "'count' may hold the number" in missing(app)[0]

    def test_a_unit_that_is_left_out_is_asked_for(self):
        app = opened(points(dataset={"name": "Homes"}))
        app.session_state["uploaded"] = ("homes.csv", BARE)
        assert "Say whom the release protects" in missing(good(app.run()))[0]


def area(name, west):
    corners = [[west, 49.5], [west + 1, 49.5], [west + 1, 52.5], [west, 52.5], [west, 49.5]]
    return {"type": "Feature", "properties": {"id": name}, "geometry": {"type": "Polygon", "coordinates": [corners]}}


AREAS = json.dumps({"type": "FeatureCollection", "features": [area("A1", 7.5), area("B1", 8.5)]}).encode()


FILES = {"regions_uploaded": ("homes.csv", REGIONS), "trips_uploaded": ("trips.csv", JOURNEYS)}
RIDDEN_FILES = {"regions_uploaded": ("areas.geojson", AREAS), "trips_uploaded": ("trips.csv", RIDES)}
PER_PERSON = {"name": "x", "unit": "person", "cap_epsilon": 5, "cap_delta": "1/300"}
IN_RHO = {"name": "x", "unit": "trip", "cap_rho": 1}
TRIP_CASES = {
    "trips": (FLOWS, FILES),
    "each row is one": (changed(FLOWS, "data.count", "none"), FILES),
    "a bound that is vouched for": (FLOWS | {"data": FLOWS["data"] | {"contributions": 3, "exactly": True}, "dataset": PER_PERSON}, FILES),
    "persons, each once per pair": (
        FLOWS
        | {"data": FLOWS["data"] | {"person": "rider", "contributions": 2, "distinct": True}, "dataset": PER_PERSON}
        | {"mechanism": {"key": "flat_gaussian", "settings": {"neighbours": "add_remove"}}},
        FILES,
    ),
    "coordinates": (
        FLOWS
        | {"data": {"trips": "trips.csv", "origin": ["lon1", "lat1"], "destination": ["lon2", "lat2"], "crs": "EPSG:4326", "count": "none"}}
        | {"regions": {"file": "areas.geojson", "levels": ["id"], "prefixes": [1]}},
        RIDDEN_FILES,
    ),
    "destinations": (
        FLOWS | {"destinations": {"file": "homes.csv", "levels": ["id"], "prefixes": [1]}},
        FILES | {"ends_uploaded": ("homes.csv", REGIONS)},
    ),
    "names of regions": (changed(FLOWS, "regions.names", {"id": "name"}), FILES),
    "rho": (FLOWS | {"budget": {"rho": "1/7"}, "dataset": IN_RHO}, FILES),
}


class TestTrips:
    @pytest.mark.parametrize(("tables", "files"), each_often(TRIP_CASES, 2))
    def test_what_is_opened_is_saved_again(self, tables, files):
        text = saved(choose(opened(tables, "trips"), **files))
        assert from_tables(tables_of(text)) == from_tables(tables)
        assert missing(say_how_many(same_again(text, "trips", **files))) == []

    @pytest.mark.parametrize("key", often(MECHANISMS.of("trips"), 2))
    def test_each_mechanism(self, key):
        app = fine(pages_app("trips", CURATE_TRIPS | {"mechanism": key, "settings": "{}", "epsilon": "2/3", "delta": "1/30000"}))
        again = same_again(saved(app), "trips")
        assert again.session_state["trips config"].draft.build().key == key

    def test_a_matrix_has_no_column_of_persons(self):
        app = opened(FLOWS | {"data": {"trips": "trips.csv", "person": "rider", "contributions": 2}, "dataset": PER_PERSON}, "trips")
        app.session_state["regions uploaded"] = ("homes.csv", REGIONS)
        app.session_state["trips uploaded"] = ("trips.csv", b"id,A1,A2,B1\nA1,1,2,3\nA2,4,5,6\nB1,7,8,9\n")
        assert labelled(good(app.run()).radio, "Whom to protect").value is None

    def test_a_rho_stays_until_epsilon_or_delta_is_changed(self):
        app = choose(opened(TRIP_CASES["rho"][0], "trips"), **FILES)
        assert app.session_state["trips config"].draft.budget() == ZcdpBudget("1/7")
        assert "spends ρ" in captions(app)
        good(app.text_input(key="delta exactly").set_value("3e-7").run())
        assert app.session_state["trips config"].draft.budget().delta == Fraction(3, 10**7)
        assert "spends ρ" not in captions(app)

    def test_a_sample_in_an_account_that_counts_rho(self):
        app = fine(pages_app("trips", CURATE_TRIPS))
        app.get("button_group")
        for group in app.get("button_group"):
            if group.label == "The ledger counts":
                group.set_value("ρ")
        good(app.run())
        text = saved(app)
        assert "rho" in tables_of(text)["budget"]
        same_again(text, "trips")


REFUSED = {
    "not TOML": (b"x = = 1", "The configuration is not TOML: see line 1."),
    "binary": (b"PK\x03\x04\xff\xfe\x00", "must be text in UTF-8"),
    "huge": (b"#" * 2**21, "larger than a megabyte"),
    "empty": (b"", "lacks [data]"),
    "study": (STUDY, "configuration of a study"),
    "trips": (FLOWS, "This is a configuration of trips: open it on the Trips page."),
    "areas": (
        {**changed(changed(POINTS, "mechanism", {"key": "flat"}), "domain", None), "regions": FLOWS["regions"]},
        "This is a configuration of areas: open it on the Areas page.",
    ),
    "seed": (points(seed=3), "takes no seed"),
    "seed of the mechanism": (changed(POINTS, "mechanism.seed", 3), "takes no seed"),
    "unknown key": (changed(POINTS, "data.colour", 3), "no key 'colour'"),
    "unknown table": (points(colours={}), "no key 'colours'"),
    "unknown mechanism": (changed(POINTS, "mechanism.key", "magic"), "key must be one of"),
    "a reference": (points(mechanism={"key": "exact_kdtree"}), "NOT PRIVATE"),
    "setting": (changed(POINTS, "mechanism.settings", {"height": 99}), "must be from"),
    "epsilon": (changed(POINTS, "budget.epsilon", 1000), "On this page, ε must be a number from 0.001 to 100"),
    "delta": (points(mechanism={"key": "privtree"}, budget={"epsilon": 1, "delta": 1e-6}), "leave delta out"),
    "no delta": (points(mechanism={"key": "kdtree", "settings": {"variant": "smooth-sensitivity"}}), "needs a delta"),
    "rho": (points(mechanism={"key": "privtree"}, budget={"rho": 1}), "give epsilon under [budget]"),
    "cap": (changed(POINTS, "dataset.cap_epsilon", 5000), "cap_epsilon must be from 0.001 to 1000"),
    "bound": (
        points(data=POINTS["data"] | {"person": "note", "contributions": 5000}, dataset={"name": "x"}),
        "contributions must be from 1 to 1,000",
    ),
    "order": (changed(POINTS, "domain.order", 20), "order of at most 16"),
    "several files": (changed(POINTS, "data.points", ["a.csv", "b.csv"]), "lists several files"),
    "a sample elsewhere": (points(data={"sample": "gaussian_cluster"}, dataset={"name": "x"}), "on its own domain only"),
    "a size": (points(data={"sample": "us_places", "size": 5}, dataset={"name": "x"}), "leave [data] size out"),
    "formats": (changed(POINTS, "output.formats", ["xlsx"]), "formats has 'xlsx'"),
    "quoted newlines": (changed(POINTS, "data.quoted_newlines", True), "quoted_newlines"),
    "address": (changed(POINTS, "data.address", "tcp://x"), "address"),
    "markup": (changed(POINTS, "data", {NAMES[0]: 1}), "has no key"),
}


@pytest.mark.parametrize(("tables", "reason"), each_often(REFUSED, 6))
def test_what_does_not_fit_is_refused_and_the_page_is_as_it_was(tables, reason):
    app = uploaded(BARE, link=CURATE | {"epsilon": "2/7"})
    fine(name_dataset(app, "Homes 2024"))
    before, query = saved(app), query_of(app)
    opened(tables, app=app)
    assert reason in errors(app)
    assert "The page is as it was." in errors(app)
    assert (saved(app), query_of(app)) == (before, query)
    opened(POINTS, app=app)
    assert "The page is as it was." not in errors(app)


def test_points_are_refused_on_the_trips_page_and_open_where_that_says():
    app = opened(POINTS, "trips")
    assert "open it on the Points page" in errors(app)
    app.query_params.update(CURATE)
    app = opened(POINTS, app=to_mode(go(app, "points"), "Curate"))
    assert errors(app) == ""
    assert app.session_state["config"].draft.source == "upload"


def test_teach_opens_none():
    app = to_mode(pages_app("points", CURATE), "Teach")
    assert not [each for each in app.file_uploader if str(each.key).startswith("open")]


@pytest.mark.parametrize(
    ("tables", "at", "files"),
    [(POINTS, "points", {"uploaded": ("homes.csv", BARE)}), (FLOWS, "trips", FILES)],
)
def test_the_command_line_runs_what_the_page_saves(tables, at, files, tmp_path, capsys):
    text = saved(choose(opened(tables, at), **files))
    for name, content in files.values():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "release.toml").write_text(text, "utf-8")
    assert main(["release", str(tmp_path / "release.toml"), "--dry-run", "--json"]) == 0, capsys.readouterr().err
    facts = json.loads(capsys.readouterr().out)
    assert facts["cost"]["epsilon"] == str(Fraction(str(tables["budget"]["epsilon"])))
    assert main(["release", str(tmp_path / "release.toml"), "--json"]) == 0, capsys.readouterr().err
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text("utf-8"))
    assert manifest["data_product"]["name"] == "Homes"


def test_a_sample_on_land_opens_on_land_and_a_file_on_land_is_for_the_command_line():
    land = {**POINTS["domain"], "study_area": "land"}
    own = dv.samples.points.POINT_SAMPLES["la_residents"].domain
    sample = {"bounds": list(own.bounds), "crs": "EPSG:4326", "order": 6, "study_area": "land"}
    app = opened(points(data={"sample": "la_residents"}, domain=sample))
    assert (app.session_state["config"].draft.sample, app.session_state["config"].draft.study_area) == ("la_residents", "land")
    assert "by polygons of a file, not by land" in errors(opened(points(domain=land)))

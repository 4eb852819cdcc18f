"""The code of a release or a study makes the same release or study, bit for bit, and names stay texts whatever they contain."""

import tomllib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpviz as dv
from dpviz.app.modes.shown_runs import ShownRuns, list_code
from dpviz.app.pages.compare.state import CompareConfig, CompareData, study_config_of, study_of
from dpviz.app.pages.points.state import RELEASES as POINT_RELEASES
from dpviz.app.pages.points.state import Data
from dpviz.app.pages.trips.state import RELEASES as TRIP_RELEASES
from dpviz.app.pages.trips.state import TripsData
from dpviz.app.session.ledger import Source
from dpviz.errors import SettingError
from dpviz.families import FAMILIES
from dpviz.publishing.code import WIDTH, CodeRun, write_budget, write_data, write_mechanism, write_python, write_study_python
from dpviz.publishing.config import DataConfig, DataPart, DomainPart, PublicDataPart, RegionsPart, from_tables
from dpviz.publishing.study_config import StudyConfig, VariedPart, study_from, study_to_toml
from tests.app.parts import page_with, run_with
from tests.hostile import NAMES
from tests.mechanisms.joined import installed
from tests.often import often
from tests.publishing.configs import CROWD, FLOWS, PEOPLE, POINTS, TOWNS, TRIPS, changed, data_of, per_person
from tests.release_cases import assert_same

PLANE = DomainPart(bounds=(0, 0, 16, 16), crs="none", order=4)
CHOICES = [kind for family in FAMILIES.values() for kind in family.choices.values()]
SHARES = (0.1, 0.2, 0.3, 0.4)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files of the configurations, which is the current one: the code names files as configurations do."""
    for name, table in {"crowd": CROWD, "people": PEOPLE, "towns": TOWNS, "trips": TRIPS}.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made_by(code):
    """The variables of code that was run."""
    variables = {}
    exec(compile(code, "code", "exec"), variables)  # noqa: S102 - that is what it is for
    return variables


def source_of(inputs):
    return Source(data_part=inputs.data, domain=inputs.domain, regions=inputs.regions, destinations=inputs.destinations)


def points_page(inputs, **choices):
    """What the Points page shows in Teach for data and choices."""
    points = data_of(inputs).data
    data = Data(counts=points, digest="", fingerprints=(), title="", unit="records", source=source_of(inputs))
    return page(lambda how: POINT_RELEASES.run(data, how, lambda: None), page_with("points", **choices))


def trips_page(inputs, **choices):
    """The same of the Trips page."""
    trips = data_of(inputs).data
    data = TripsData(counts=trips, digest="", fingerprints=(), title="", unit="trips", source=source_of(inputs))
    return page(lambda how: TRIP_RELEASES.run(data, how, lambda: None), page_with("trips", **choices))


def page(run, how):
    results = {index: run(how.draft.of_run(index)) for index in range(len(how.draft.runs))}
    return ShownRuns(results=results, panes=how.view.panes, fresh=True)


def check_page(inputs, shown):
    """The code of a page makes what it shows; gives the code."""
    code = write_python(inputs, list_code(shown))
    variables = made_by(code)
    assert_same(variables["release"], shown.first.release)
    assert ("second_release" in variables) == (1 in shown.results)
    if 1 in shown.results:
        assert_same(variables["second_release"], shown.results[1].release)
    assert max(map(len, code.splitlines())) <= WIDTH
    return code


def sample(key, **parts):
    size = parts.pop("size", None)
    return DataConfig(data=DataPart(sample=key, size=size), **parts)


@pytest.mark.parametrize("key", often(dv.samples.points.POINT_SAMPLES, 2))
def test_a_sample_of_points_as_it_is(key):
    inputs = sample(key, domain=DomainPart.of(dv.samples.points.POINT_SAMPLES[key].domain))
    code = check_page(inputs, points_page(inputs, sample=key, mechanism="uniform_grid", settings={}))
    assert f'\npoints = dv.load_sample("{key}")\n' in code


@pytest.mark.parametrize(
    ("mechanism", "settings", "budget"),
    [
        ("path_tree", {}, {"epsilon": Fraction(1, 3)}),
        ("quadtree", {"height": 3, "split": "custom", "weights": SHARES}, {"epsilon": 0.7}),
        ("kdtree", {"height": 4, "variant": "smooth-sensitivity"}, {"epsilon": 2, "delta": 1e-7}),
        ("exact_kdtree", {}, {}),
    ],
)
def test_a_sample_of_points_on_another_domain_with_other_settings(mechanism, settings, budget):
    own = dv.samples.points.POINT_SAMPLES["la_residents"].domain
    inputs = sample("la_residents", size=2_000, domain=DomainPart.of(replace(own, order=6)))
    shown = points_page(inputs, mechanism=mechanism, settings=settings, seed=12, **budget)
    code = check_page(inputs, shown)
    assert "size=2000" in code
    assert "order=6" in code
    assert "dv.Entropy.seeded(12)" in code
    assert ("NOT PRIVATE" in code) == mechanism.startswith("exact")


@pytest.mark.parametrize(
    "key", often([key for key in dv.samples.trips.TRIP_SAMPLES if key != "us_commuters"], ["us_flights"])
)  # that takes long, and differs in its key only
def test_a_sample_of_trips(key):
    inputs = sample(key)
    code = check_page(inputs, trips_page(inputs, sample=key, mechanism="flat_gaussian", settings={}))
    assert f'\ntrips = dv.load_sample("{key}")\n' in code
    assert 'dv.ApproxBudget("0.05", "1e-8")' in code


@pytest.mark.parametrize("mechanism", ["fitted_tree", "top_down", "stability_histogram"])
def test_trips_with_the_settings_of_the_page(mechanism):
    inputs = sample("us_flights")
    settings = dict(dv.MECHANISMS[mechanism].page_settings)
    check_page(inputs, trips_page(inputs, mechanism=mechanism, settings=settings, epsilon=Fraction(2, 3), delta=2.5e-7, seed=3))


def test_the_second_run_of_points_and_of_trips():
    second = run_with("points", mechanism="identity", settings={}, epsilon="1/7", seed=4)
    inputs = sample("us_places", domain=DomainPart(bounds=(-125, 24, -66, 50), crs="EPSG:4326", order=5))
    code = check_page(inputs, points_page(inputs, sample="us_places", settings={}, seed=4, left="Second run", second=second))
    assert "# Right map. Seeded" in code
    assert "# Left map. Seeded" in code
    inputs = sample("us_flights")
    second = run_with("trips", mechanism="flat_gaussian", settings={}, epsilon="0.2", delta=1e-6)
    check_page(inputs, trips_page(inputs, left="Second run", second=second))


def test_files_of_points(here):
    alone = DataConfig(data=DataPart(points="crowd.csv", count="none"), domain=PLANE)
    check_page(alone, points_page(alone, mechanism="quadtree", settings={"height": 3}))
    person = DataPart(points="people.csv", x="lon", y="lat", person="who", contributions=60, distinct=True, engine="numpy")
    people = DataConfig(data=person, domain=PLANE)
    code = check_page(people, points_page(people, mechanism="quadtree", settings={"height": 3}))
    assert "over the bound are left out is random" in code
    several = DataConfig(data=DataPart(points=("crowd.csv", "crowd.csv"), x="lon", y="lat", count="none"), domain=PLANE)
    check_page(several, points_page(several, mechanism="identity", settings={}))


def test_a_file_in_another_crs_and_with_counts(here):
    pd.DataFrame({"e": [500_000, 510_000.5], "n": [5_500_000, 5_510_000.25], "h": [4, 900]}).to_csv("metres.csv", index=False)
    frame = DomainPart(bounds=(8.0, 49.0, 10.0, 51.0), crs="EPSG:4326", order=5)
    inputs = DataConfig(data=DataPart(points="metres.csv", x="e", y="n", crs="EPSG:32632", count="h"), domain=frame)
    shown = points_page(inputs, mechanism="identity", settings={})
    assert shown.first.data.counts.count.sum() == 904
    assert 'crs="EPSG:32632"' in check_page(inputs, shown)


def test_a_text_that_is_written_in_another_way_and_points_in_wkt(here):
    frame = DomainPart(bounds=(8.0, 49.0, 10.0, 51.0), crs="EPSG:4326", order=5)
    (here / "german.csv").write_text("Länge;Breite\n9,25;50,5\n8,5;49,5\n", encoding="windows-1252")
    german = DataPart(
        points="german.csv", x="Länge", y="Breite", crs="EPSG:4326", separator=";", decimal=",", thousands=".", encoding="windows-1252"
    )
    inputs = DataConfig(data=german, domain=frame)
    code = check_page(inputs, points_page(inputs, mechanism="identity", settings={}))
    assert all(part in code for part in ('separator=";"', 'decimal=","', 'thousands="."', 'encoding="windows-1252"'))
    (here / "wkt.csv").write_text('shape\n"POINT(9.25 50.5)"\n"POINT(8.5 49.5)"\n')
    inputs = DataConfig(data=DataPart(points="wkt.csv", geometry="shape", crs="EPSG:4326", engine="numpy"), domain=frame)
    assert 'geometry="shape"' in check_page(inputs, points_page(inputs, mechanism="identity", settings={}))
    triangle = '{"type":"Polygon","coordinates":[[[9,50],[9.5,50],[9.5,50.5],[9,50]]]}'
    (here / "areas.geojson").write_text(
        f'{{"type":"FeatureCollection","features":[{{"type":"Feature","properties":{{}},"geometry":{triangle}}}]}}'
    )
    inputs = DataConfig(data=DataPart(points="areas.geojson", centroids=True), domain=frame)
    assert "centroids=True" in check_page(inputs, points_page(inputs, mechanism="identity", settings={}))


def test_files_of_trips(here):
    one = DataConfig(data=DataPart(trips="trips.csv"), regions=RegionsPart(file="towns.csv", levels=("state", "town")))
    check_page(one, trips_page(one, mechanism="top_down", settings={}, epsilon=1))
    TOWNS.rename(columns={"town": "place"}).to_csv("ends.csv", index=False)
    two = replace(one, destinations=RegionsPart(file="ends.csv", levels=("state", "place"), names={"place": "place"}))
    code = check_page(two, trips_page(two, mechanism="flat_gaussian", settings={}, epsilon=1))
    assert "destinations=destinations" in code
    pd.DataFrame({"id": ["A1", "A2", "B1"]}).to_csv("ids.csv", index=False)
    rides = {"home": ["A1", "A2", "B1"], "work": ["B1", "B1", "A1"], "who": [1, 2, 2], "n": [1, 1, 1]}
    pd.DataFrame(rides).to_csv("rides.csv", index=False)
    columns = DataPart(trips="rides.csv", origin="home", destination="work", count="n", person="who", contributions=2)
    grouped = DataConfig(data=columns, regions=RegionsPart(file="ids.csv", levels=("id",), prefixes=(1,)))
    assert ".grouped([1])" in check_page(grouped, trips_page(grouped, mechanism="flat_gaussian", settings={"neighbours": "add_remove"}))


def test_trips_between_coordinates(here):
    boxes = "".join(
        f'{{"type":"Feature","properties":{{"id":"{name}"}},"geometry":{{"type":"Polygon","coordinates":'
        f"[[[{x},0],[{x + 1},0],[{x + 1},1],[{x},1],[{x},0]]]}}}}{',' if x == 0 else ''}"
        for x, name in enumerate("ab")
    )
    (here / "boxes.geojson").write_text(f'{{"type":"FeatureCollection","features":[{boxes}]}}')
    pd.DataFrame({"x": [0.5, 0.5], "y": [0.5, 0.5], "x2": [1.5, 0.2], "y2": [0.5, 0.5]}).to_csv("ways.csv", index=False)
    part = DataPart(trips="ways.csv", origin=("x", "y"), destination=("x2", "y2"), crs="EPSG:4326", contributions=3, exactly=True)
    inputs = DataConfig(data=part, regions=RegionsPart(file="boxes.geojson", levels=("id",), crs="EPSG:4326"))
    shown = trips_page(inputs, mechanism="flat_gaussian", settings={}, epsilon=1)
    assert shown.first.data.counts.count.sum() == 2
    check_page(inputs, shown)


PERSONS = per_person(POINTS, {"points": "people.csv", "person": "who", "contributions": 9})


@pytest.mark.parametrize(
    "tables", [changed(POINTS, "data.count", "none"), changed(FLOWS, "budget", {"rho": 0.25}), PERSONS], ids=["points", "trips", "persons"]
)
def test_a_configuration_is_enough_and_curate_takes_noise_of_the_operating_system(here, tables):
    config = from_tables(tables)
    run = CodeRun(mechanism=config.mechanism.build(config.data.family), budget=config.budget.budget())
    code = write_python(config, [run])
    assert "# To publish, run: dpviz release release.toml. Only that pays in the ledger.\n" in code
    made = made_by(code)["release"]
    assert not made.simulation
    assert made.receipt.total == run.budget
    assert made.settings == run.mechanism.chosen()


@pytest.mark.parametrize("kind", CHOICES, ids=lambda kind: kind.key)
def test_every_mechanism_is_built_from_its_code(kind):
    others = [rule for rule in kind.rules() if rule.choices and rule.when is None]
    for values in [{}, kind.page_settings, *({rule.name: value} for rule in others for value in rule.choices)]:
        try:
            mechanism = kind.from_settings(values)
        except SettingError:  # a choice that needs another setting
            continue
        built = eval(write_mechanism(mechanism), {"dv": dv})  # noqa: S307
        assert (type(built), built) == (type(mechanism), mechanism)


def test_mechanisms_of_another_package_are_built_from_the_registry(tmp_path):
    with installed(tmp_path):
        for kind in (dv.MECHANISMS["their_halves"](share=0.25), dv.MECHANISMS["their_pairs"]()):
            assert eval(write_mechanism(kind), {"dv": dv}) == kind  # noqa: S307


def test_a_long_split_is_filled_into_lines():
    weights = tuple(np.random.default_rng(1).dirichlet(np.ones(13)) * [1e-5, *[1] * 12])
    mechanism = dv.Quadtree(height=12, split="custom", weights=weights)
    code = write_mechanism(mechanism)
    assert eval(code, {"dv": dv}) == mechanism  # noqa: S307
    assert max(map(len, code.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        (dv.PureBudget("1/3"), 'dv.PureBudget("1/3")'),
        (dv.PureBudget(2), 'dv.PureBudget("2")'),
        (dv.PureBudget("0.12345678901234567890"), 'dv.PureBudget("1234567890123456789/10000000000000000000")'),
        (dv.ApproxBudget(0.05, 1e-8), 'dv.ApproxBudget("0.05", "1e-8")'),
        (dv.ApproxBudget(1, 0), 'dv.ApproxBudget("1", "0")'),
        (dv.ZcdpBudget("2/7"), 'dv.ZcdpBudget("2/7")'),
    ],
)
def test_budgets_are_exact(budget, code):
    assert write_budget(budget) == code
    assert eval(code, {"dv": dv}) == budget  # noqa: S307


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=1000))
@example(Fraction("1e-5"))
@example(Fraction(1, 2**40))
def test_every_budget_is_read_back(epsilon):
    assert eval(write_budget(dv.PureBudget(epsilon)), {"dv": dv}) == dv.PureBudget(epsilon)  # noqa: S307


HOSTILE = ['"); import os; os.abort() #', "'); raise SystemExit #", "a\n# b", "\\", "\\'\"", '"""', "{x}", "\u2028", "\ud800", "a" * 200]


@pytest.mark.parametrize("name", [*NAMES, *HOSTILE])
def test_names_stay_texts(name):
    """Each call is made once, with the name as it is."""
    calls = []
    frame = DomainPart(bounds=(0, 0, 1, 1), crs="none", order=2)
    points = DataConfig(data=DataPart(points=f"{name}.csv", x=name, y="y", person=name, contributions=1, crs=name), domain=frame)
    regions = RegionsPart(file=name, levels=(name, "town"), names={name: name})
    trips = DataConfig(data=DataPart(trips=(name, "b"), origin=(name, "y"), destination=("x", name)), regions=regions)
    run = CodeRun(mechanism=dv.Identity(), budget=dv.PureBudget(1), seed=1, title=name)

    class Recorder:
        """Stands for `dv`: keeps the arguments of every call."""

        def __getattr__(self, function):
            return lambda *values, **named: calls.append((function, values, named)) or Recorder()

        Entropy = dv.Entropy

    for inputs in (points, trips):
        code = write_python(inputs, [run]).replace("import dpviz as dv\n", "")
        assert code.replace("\n", "").isprintable()
        exec(code, {"dv": Recorder()})  # noqa: S102
    said = {function: (values, named) for function, values, named in calls}
    assert set(said) == {"Domain", "read_points", "read_regions", "read_trips", "Identity", "PureBudget", "release"}
    assert said["read_points"][0] == (f"{name}.csv",)
    assert [said["read_points"][1][key] for key in ("x", "person", "crs")] == [name] * 3
    assert said["read_regions"] == ((name,), {"levels": [name, "town"], "names": {name: name}})
    assert said["read_trips"][0] == ([name, "b"],)
    assert said["read_trips"][1]["origin"] == (name, "y")


@given(st.text())
def test_no_text_leaves_its_quotes(text):
    frame = DomainPart(bounds=(0, 0, 1, 1), crs="none", order=2)
    code = write_data(DataConfig(data=DataPart(points="a.csv", x=text or "x"), domain=frame))
    kept = []
    fake = type("Fake", (), {"Domain": lambda **_: None, "read_points": lambda *_, **named: kept.append(named["x"])})
    exec(code, {"dv": fake})  # noqa: S102
    assert kept == [text or "x"]
    assert code.replace("\n", "").isprintable()


STUDIES = {
    "points": CompareConfig(kind="Points", order=5, steps=2, repeats=2, seed=9),
    "trips": CompareConfig(kind="Trips", sample="us_flights", steps=2, low=0.5, repeats=1),
    "noise": CompareConfig(
        sample="us_places",
        order=4,
        mechanisms=("quadtree", "path_tree"),
        settings={"quadtree": {"noise": ["Laplace", "Gaussian"], "height": [2, 3]}},
        steps=1,
        low=0.3,
        repeats=1,
    ),
    "varied": CompareConfig(
        sample="us_places",
        order=4,
        mechanisms=("quadtree", "kdtree", "exact_kdtree"),
        settings={
            "quadtree": {"height": [2, 3], "split": ["uniform", "geometric"]},
            "kdtree": {"variant": ["hybrid", "smooth-sensitivity"]},
        },
        steps=1,
        low=0.3,
        repeats=1,
    ),
}


def compare_study(config):
    """The study of the Compare page, and its configuration."""
    of_points = config.kind == "Points"
    own = dv.samples.points.POINT_SAMPLES[config.chosen_sample].domain if of_points else None
    data = dv.load_sample(config.chosen_sample, domain=replace(own, order=config.order)) if of_points else None
    data = dv.load_sample(config.chosen_sample) if data is None else data
    shown = CompareData(data=data, key="", digest="", fingerprints=(), title="", unit="", bundled=True)
    study = study_of(shown, config)
    return study, study_config_of(study, shown, config)


def same_runs(one, other):
    """Both studies make the same runs on the same data, and ask the same questions."""
    assert [(run.id, run.label) for run in one.runs()] == [(run.id, run.label) for run in other.runs()]
    assert (one.fingerprint, one.workloads, one.mechanisms) == (other.fingerprint, other.workloads, other.mechanisms)
    assert one.questions.names() == other.questions.names()


@pytest.mark.parametrize("name", STUDIES)
def test_the_code_of_a_study_makes_the_study_of_the_page(name):
    study, config = compare_study(STUDIES[name])
    code = write_study_python(config)
    assert code.endswith("table = dv.tidy(study, dv.compare(study))\n")
    assert max(map(len, code.splitlines())) <= WIDTH
    made = made_by(code.rpartition("table")[0])["study"]
    same_runs(made, study)
    run = study.runs()[-1]
    assert_same(made.release(made.runs()[-1]), study.release(run))


@pytest.mark.parametrize("name", STUDIES)
def test_the_configuration_of_a_study_makes_the_study_of_the_page(name):
    study, config = compare_study(STUDIES[name])
    text = study_to_toml(config)
    assert "[[mechanism]]" in text
    read = study_from(tomllib.loads(text))
    assert read == config
    same_runs(read.build_study(read.opened().data), study)


def test_the_code_of_a_study_runs_to_its_table():
    part = VariedPart(key="quadtree", label='it\'s [a] "tree"\n', vary={"height": (2, 3)})
    frame = DomainPart.of(replace(dv.samples.points.POINT_SAMPLES["us_places"].domain, order=4))
    config = StudyConfig(data=PublicDataPart(sample="us_places"), domain=frame, mechanisms=(part,), epsilons=(Fraction(1, 3),), queries=9)
    table = made_by(write_study_python(config))["table"]
    assert table["label"].tolist() == [f"{part.label} height={height}" for height in (2, 3)]
    assert study_from(tomllib.loads(study_to_toml(config))) == config


def test_the_study_of_a_public_file(here):
    data = PublicDataPart(points="people.csv", x="lon", y="lat", person="who", contributions=60, public=True)
    config = StudyConfig(data=data, domain=PLANE, mechanisms=(VariedPart(key="identity"),), epsilons=(Fraction(1),))
    study = made_by(write_study_python(config))["study"]
    assert (study.data.unit, int(study.data.count.sum())) == ("person", 60)
    assert study_from(tomllib.loads(study_to_toml(config))) == config


def test_a_configuration_of_a_study_cannot_say_none():
    part = VariedPart(key="quadtree", vary={"height": (None, 3)})
    config = StudyConfig(data=PublicDataPart(sample="us_places"), mechanisms=(part,), epsilons=(Fraction(1),))
    with pytest.raises(SettingError, match="cannot say None"):
        study_to_toml(config)

"""A release's configuration: every key is checked, and a written configuration reads back equal."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.counting.scheduler import Scheduler
from dpviz.errors import BudgetError, DpvizError, InputError, RefusedError, SettingError
from dpviz.mechanisms import POINT_FAMILY
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.publishing.config import from_tables, read_config, to_toml
from dpviz.publishing.private_data import open_data, open_frame
from dpviz.publishing.study_config import read_study
from dpviz.publishing.toml_tables import read_file
from tests.publishing.configs import FLOWS, POINTS, STUDY, changed, per_person, written


def test_a_configuration_has_the_values_of_its_tables(tmp_path):
    config = read_config(written(tmp_path, POINTS))
    assert config.budget.budget() == PureBudget("1/2")
    assert config.domain.domain().bounds == (0, 0, 16, 16)
    assert config.domain.domain().crs is None
    assert config.mechanism.built(POINT_FAMILY).height == 3
    assert config.base == tmp_path


def test_numbers_are_exact_decimals():
    assert from_tables(changed(POINTS, "budget.epsilon", 0.1)).budget.epsilon == Fraction(1, 10)
    assert from_tables(changed(POINTS, "budget.epsilon", "1/3")).budget.epsilon == Fraction(1, 3)
    assert from_tables(FLOWS).budget.budget() == ApproxBudget(1, "1e-6")
    assert from_tables(changed(FLOWS, "budget", {"rho": 0.25})).budget.budget() == ZcdpBudget("1/4")


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("data.lat", "y", "[data] has no key 'lat'; it knows points, trips, sample, size, x, y"),
        ("dataa", {}, "A release's configuration has no key 'dataa'; it knows data, domain"),
        ("mechanism.settings.heigth", 3, "[mechanism.settings] has no key 'heigth'; it knows height"),
        ("mechanism.key", "quadtre", "[mechanism] key must be one of quadtree, path_tree"),
        ("mechanism.key", "top_down", "for points"),
        ("mechanism.settings.height", 99, "Height must be from 1 to 24"),
        ("mechanism.settings", [3], "[mechanism] settings must be a table"),
        ("budget", {}, "epsilon is missing"),
        ("budget.epsilon", "much", "epsilon must be a number"),
        ("budget.epsilon", True, "epsilon must be a number"),
        ("budget.epsilon", float("inf"), "must be finite"),
        ("budget.epsilon", -1, "greater than 0"),
        ("budget.rho", 1, "rho beside epsilon or delta"),
        ("domain.order", 4.5, "[domain] order must be a whole number"),
        ("domain.bounds", [0, 0, 16], "four numbers: west, south, east, north"),
        ("domain.bounds", "0 0 16 16", "[domain] bounds must be a list"),
        ("domain.bounds", [0, 0, "16", 16], "Each of [domain] bounds must be a finite number"),
        ("domain.crs", None, "[domain] lacks crs"),
        ("domain", None, "Points need a [domain]"),
        ("output", None, "The configuration lacks [output]"),
        ("output.folder", 3, "[output] folder must be a text"),
        ("output.formats", ["csv", 3], "Each of [output] formats must be a text"),
        ("publication.curator", None, "[publication] lacks curator"),
        ("data.sample", "la_residents", "exactly one of points, trips and sample"),
        ("data", {"sample": "nowhere"}, "sample must be one of la_residents"),
        ("data", {"sample": "la_residents", "x": "lon"}, "[data] x has no meaning beside sample"),
        ("data.exactly", True, "[data] exactly has no meaning beside points"),
        ("data.contributions", "3", "contributions must be a whole number"),
        ("regions", {"file": "towns.csv"}, "are for [data] trips only"),
        ("dataset.cap_rho", 1, "rho beside epsilon or delta"),
        ("dataset.cap_epsilon", 0, "greater than 0"),
        ("data.engine", "spark", "[data] engine must be one of auto, numpy, duckdb, dask."),
        (
            "data",
            {"points": "a.csv", "engine": "dask", "address": "tls://a:1"},
            "the operator of the scheduler can run code on this computer",
        ),
        ("data.distinct", True, "name the person column, or leave distinct out"),
        ("data.points", [], "[data] points names no file"),
        ("data.points", ["a.csv", 3], "Each of [data] points must be a text"),
        ("data.points", 3, "[data] points must be a text in quotes"),
        ("data.origin", ["a", "b"], "[data] origin has no meaning beside points"),
        ("data", {"sample": "la_residents", "engine": "duckdb"}, "[data] engine has no meaning beside sample"),
    ],
)
def test_errors_name_the_fault_and_its_remedy(path, value, told):
    with pytest.raises(DpvizError) as refused:
        from_tables(changed(POINTS, path, value))
    assert told in str(refused.value)


BOTH = "Say whom the release protects. Either each person: under [data] person, the column that says whose {0} a row is,"
BOTH += ' and contributions, the most {0}s of one person that count. Or, if each {0} is its own person: under [dataset] unit = "{0}".'


@pytest.mark.parametrize(
    ("tables", "data", "unit", "told"),
    [
        (POINTS, {"points": "a.csv"}, None, BOTH.format("record")),
        (POINTS, {"points": "a.csv", "contributions": 1}, None, BOTH.format("record")),
        (FLOWS, {"trips": "a.csv"}, None, BOTH.format("trip")),
        (FLOWS, {"trips": "a.csv", "contributions": 1}, None, BOTH.format("trip")),
        (POINTS, {"points": "a.csv", "person": "who"}, None, "[data] contributions is missing: say the most records of one person"),
        (FLOWS, {"trips": "a.csv", "person": "who"}, "person", "[data] contributions is missing: say the most trips of one person"),
        (POINTS, {"points": "a.csv", "person": "who", "contributions": 3}, "record", "[data] protects one person"),
        (POINTS, {"points": "a.csv"}, "trip", "[data] protects one record"),
        (FLOWS, {"trips": "a.csv", "contributions": 2}, "trip", "[data] protects one person"),
        (FLOWS, {"trips": "a.csv", "origin": ["a", "b"]}, "trip", "each a pair of coordinates"),
        (FLOWS, {"trips": "a.csv", "origin": ["a", "b"], "destination": ["a", "b", "c"]}, "trip", "each a pair of coordinates"),
        (FLOWS, {"trips": "a.csv", "crs": "EPSG:4326"}, "trip", "trips between ids have no coordinates"),
    ],
)
def test_own_files_need_a_declared_unit_of_privacy_and_ends_of_one_kind(tables, data, unit, told):
    with pytest.raises(SettingError) as refused:
        from_tables(changed(changed(tables, "data", data), "dataset.unit", unit))
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("tables", "data", "unit"),
    [
        (POINTS, {"points": "a.csv"}, "record"),
        (POINTS, {"points": "a.csv", "person": "who", "contributions": 1}, None),
        (POINTS, {"points": "a.csv", "person": "who", "contributions": 1}, "person"),
        (FLOWS, {"trips": "a.csv"}, "trip"),
        (FLOWS, {"trips": "a.csv", "contributions": 2}, None),  # the curator vouches that nobody has more
        ({name: table for name, table in POINTS.items() if name != "domain"}, {"sample": "la_residents"}, None),
    ],
)
def test_declared_units_of_privacy_are_accepted(tables, data, unit):
    config = from_tables(changed(changed(tables, "data", data), "dataset.unit", unit))
    assert config.data.unit == ("person" if "contributions" in data else unit or "record")


@pytest.mark.parametrize("path", ["seed", "data.seed", "budget.seed", "mechanism.seed", "mechanism.settings.seed", "output.seed"])
def test_a_seed_is_refused_with_the_reason(path):
    with pytest.raises(RefusedError, match="anyone who knows the seed can subtract the noise"):
        from_tables(changed(POINTS, path, 7))


def test_the_public_seed_of_tuning_boxes_is_a_setting_like_any_other():
    tables = changed(POINTS, "mechanism", {"key": "tuned_grid", "settings": {"seed": 3}})
    assert from_tables(tables).mechanism.built(POINT_FAMILY).seed == 3


def test_references_that_are_not_private_and_line_ends_within_cells_are_for_studies_only(tmp_path):
    with pytest.raises(RefusedError, match="NOT PRIVATE"):
        from_tables(changed(POINTS, "mechanism", {"key": "exact_kdtree"}))
    with pytest.raises(RefusedError, match="convert it to Parquet"):
        from_tables(changed(POINTS, "data.quoted_newlines", True))
    study = changed(STUDY, "data", {"points": "across.csv", "public": True, "quoted_newlines": True})
    config = read_study(written(tmp_path, study))
    (tmp_path / "across.csv").write_text('lon,lat,note\n1,2,"of\ntwo lines"\n')
    assert open_data(config, open_frame(config), bad_rows="refuse").data.count.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[data]\npoints = Rosa\n", "The configuration is not TOML: see line 2."),
        ("lon,lat\n1.5,Rosa\n", "The configuration is not TOML: see line 1."),
        ("a = " + "9" * 5000, "The configuration is not TOML"),
        ("a = " + "[" * 5000, "The configuration is not TOML"),
    ],
)
def test_errors_of_toml_quote_nothing_from_the_file(tmp_path, text, told):
    path = tmp_path / "release.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError) as refused:
        read_file(path)
    assert str(refused.value).startswith(told)
    assert "Rosa" not in str(refused.value)
    assert refused.value.__context__ is None


def test_files_that_cannot_be_a_configuration(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_bytes(b"#" * (2**20 + 1))
    for name, told in (("bytes", "UTF-8"), ("large", "megabyte"), ("missing", "cannot be read"), ("", "cannot be read")):
        with pytest.raises(InputError, match=told):
            read_file(tmp_path / name)


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
amounts = st.fractions(Fraction(1, 10**6), 1000).map(lambda f: f.limit_denominator(10**7)) | st.floats(1e-9, 1e3) | st.integers(1, 99)
configurations = st.fixed_dictionaries(
    {
        "data": st.fixed_dictionaries({"points": texts}, optional={"person": texts, "crs": texts, "contributions": st.integers(1, 99)}),
        "domain": st.just({"bounds": [0.0, 0.5, 16.0, 16.0], "crs": "none"}) | st.just({**POINTS["domain"], "order": 4}),
        "mechanism": st.sampled_from(
            [
                {"key": "quadtree"},
                {"key": "quadtree", "settings": {"split": "custom", "height": 2, "weights": [1, 2, 0.5], "least_squares": False}},
                {"key": "uniform_grid", "settings": {"side": 4}},
            ]
        ),
        "budget": st.fixed_dictionaries({"epsilon": amounts.map(lambda n: str(n) if isinstance(n, Fraction) else n)}),
        "dataset": st.fixed_dictionaries({"name": texts}, optional={"cap_epsilon": st.integers(1, 9)}),
        "publication": st.fixed_dictionaries({"name": texts, "curator": texts, "description": texts}, optional={"region": texts}),
        "output": st.fixed_dictionaries({"folder": texts}, optional={"formats": st.just(["geoparquet", "csv"])}),
    }
)


@settings(max_examples=40)
@given(configurations)
def test_a_written_configuration_reads_back_equal(tmp_path_factory, found):
    if "person" in found["data"]:
        found["data"].setdefault("contributions", 1)
    config = from_tables({**found, "dataset": {**found["dataset"], "unit": "person" if "person" in found["data"] else "record"}})
    path = tmp_path_factory.getbasetemp() / "written.toml"
    path.write_bytes(to_toml(config).encode())
    again = read_config(path)
    assert again == config
    assert again.budget.budget() == config.budget.budget()
    assert again.mechanism.built(POINT_FAMILY) == config.mechanism.built(POINT_FAMILY)


SIDES = {"file": "towns.csv", "levels": ["state", "town"], "prefixes": [1], "names": {"town": "town"}}
ENDS = {"trips": "t/*.csv", "origin": ["x", "y"], "destination": ["x2", "y2"], "crs": "EPSG:4326"}


@pytest.mark.parametrize(
    "tables",
    [
        {**FLOWS, "destinations": SIDES},
        changed(FLOWS, "data", ENDS),
        changed(POINTS, "data", {"points": ["one.csv"], "engine": "duckdb"}),
        per_person(POINTS, {"points": ["a/*.parquet", "b"], "person": "who", "contributions": 1, "distinct": True, "engine": "dask"}),
    ],
)
def test_lists_of_files_ends_and_regions_read_back_equal(tmp_path, tables):
    config = from_tables(tables)
    (tmp_path / "a.toml").write_text(to_toml(config), "utf-8")
    assert read_config(tmp_path / "a.toml") == config


SAVED = sorted((Path(__file__).parents[1] / "golden" / "configs").glob("*.toml"))  # by an earlier version, never written again
UNITS = {"persons": "person", "records": "record", "sample": "record", "trips": "trip"}


@pytest.mark.parametrize("name", UNITS)
def test_a_configuration_that_an_earlier_version_saved_is_read_as_it_was(name):
    assert [path.stem for path in SAVED] == sorted(UNITS)
    path = SAVED[sorted(UNITS).index(name)]
    config = read_config(path)
    assert (config.dataset.unit, config.data.person) == (UNITS[name], "user" if name == "persons" else None)
    assert to_toml(config) == path.read_text("utf-8")


def test_the_command_line_overrides_the_file():
    part = from_tables(changed(POINTS, "data", {"points": "a", "engine": "duckdb"})).data
    assert [part.with_engine(engine, None).engine for engine in (None, "dask", "numpy")] == ["duckdb", "dask", "numpy"]
    scheduler = Scheduler(address="tls://b:2")
    assert part.with_engine("dask", scheduler).engine == "dask"
    for engine in (None, "numpy"):
        with pytest.raises(SettingError, match="Dask scheduler"):
            part.with_engine(engine, scheduler)
    with pytest.raises(SettingError, match="leave it out for a sample"):
        from_tables(changed(POINTS, "data", {"sample": "gaussian_cluster"})).data.with_engine(None, scheduler)


def test_budgets_and_caps_of_another_kind_are_refused_as_budgets():
    with pytest.raises(BudgetError):
        from_tables(changed(POINTS, "dataset.cap_delta", 1e-6) | {"dataset": {"name": "a", "cap_delta": 1e-6}})
    with pytest.raises(SettingError, match="regions"):
        from_tables(changed(FLOWS, "regions", None))
    with pytest.raises(SettingError, match=r"\[domain\] is for points only"):
        from_tables({**FLOWS, "domain": POINTS["domain"]})

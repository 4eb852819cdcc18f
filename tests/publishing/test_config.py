"""A release's configuration: every key is checked, and a written configuration reads back equal."""

import re
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import geopandas
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.counting.scheduler import Scheduler
from dpviz.errors import DpvizError, InputError, RefusedError, SettingError
from dpviz.families import POINT_FAMILY
from dpviz.mechanisms import REFERENCES
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.publishing.code import write_data
from dpviz.publishing.config import from_tables, read_config, to_toml
from dpviz.publishing.private_data import open_sources, read_data
from dpviz.publishing.study_config import read_study
from dpviz.publishing.toml_tables import read_file
from tests.publishing.configs import FLOWS, POINTS, STUDY, changed, data_of, frame_of, per_person, written


def test_a_configuration_has_the_values_of_its_tables_and_exact_decimals(tmp_path):
    config = read_config(written(tmp_path, changed(POINTS, "budget.epsilon", 0.1)))
    assert (config.domain.domain().bounds, config.domain.domain().crs) == ((0, 0, 16, 16), None)
    assert (config.mechanism.build(POINT_FAMILY).height, config.base) == (3, tmp_path)
    assert config.budget.budget() == PureBudget("1/10")
    assert from_tables(changed(POINTS, "budget.epsilon", "1/3")).budget.budget() == PureBudget("1/3")
    assert from_tables(FLOWS).budget.budget() == ApproxBudget(1, "1e-6")
    assert from_tables(changed(FLOWS, "budget", {"rho": 0.25})).budget.budget() == ZcdpBudget("1/4")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("data.lat", "y", "[data] has no key 'lat'; it knows points, trips, sample, size, x, y"),
        ("dataa", {}, "A release's configuration has no key 'dataa'; it knows data, domain"),
        ("mechanism.settings.heigth", 3, "[mechanism.settings] has no key 'heigth'; it knows height"),
        ("mechanism.key", "top_down", "[mechanism] key must be one of path_tree, uniform_grid"),
        ("mechanism.settings", [3], "[mechanism] settings must be a table"),
        ("budget", {}, "epsilon is missing"),
        ("budget.epsilon", True, "epsilon must be a number"),
        ("budget.rho", 1, "rho beside epsilon or delta"),
        ("domain.bounds", [0, 0, 16], "four numbers: west, south, east, north"),
        ("domain.bounds", "0 0 16 16", "[domain] bounds must be a list"),
        ("domain.bounds", [0, 0, "16", 16], "Each of [domain] bounds must be a finite number"),
        ("domain.crs", None, "[domain] lacks crs"),
        ("domain", None, "Points need a [domain]"),
        ("output", None, "The configuration lacks [output]"),
        ("data.sample", "la_residents", "exactly one of points, trips and sample"),
        ("data", {"sample": "nowhere"}, "sample must be one of la_residents"),
        ("data", {"sample": "la_residents", "x": "lon"}, "[data] x has no meaning beside sample"),
        ("data.contributions", "3", "contributions must be a whole number"),
        ("regions", {"file": "towns.csv"}, "[domain] and [regions] both say where points are counted"),
        ("destinations", {"file": "towns.csv"}, "[destinations] is for [data] trips only"),
        ("dataset.cap_epsilon", 0, "greater than 0"),
        ("dataset", {"name": "a", "cap_delta": 1e-6}, "[dataset] cap: epsilon is missing"),
        ("data.engine", "spark", "[data] engine must be one of auto, numpy, duckdb, dask."),
        ("data", {"sample": "la_residents", "engine": "duckdb"}, "[data] engine has no meaning beside sample"),
        ("data.distinct", True, "name the person column, or leave distinct out"),
        ("data.points", [], "[data] points names no file"),
        ("data.points", ["a.csv", 3], "Each of [data] points must be a text"),
        ("data.points", 3, "[data] points must be a text in quotes"),
        ("data.origin", ["a", "b"], "[data] origin has no meaning beside points"),
        ("data.separator", ":", '[data] separator must be a comma ",", a semicolon ";", a bar "|" or a tab'),
        ("data.decimal", "'", '[data] decimal must be a point "." or a comma ","'),
        ("data", {"points": "a.csv", "decimal": ",", "thousands": ","}, "[data] decimal and thousands must be different marks"),
        ("data.encoding", "utf-7", "[data] encoding must be one of utf-8, utf-16, latin-1, windows-1252"),
        ("data", {"sample": "la_residents", "separator": ";"}, "[data] separator has no meaning beside sample"),
        ("data", {"trips": "a.csv", "centroids": True}, "[data] centroids has no meaning beside trips"),
        ("data", {"points": "a.csv", "encoding": "utf-16", "engine": "duckdb"}, 'encoding = "utf-16" is read by engine "numpy" only'),
        ("data", {"points": "a.csv", "geometry": "wkt", "engine": "dask"}, 'geometry is read by engine "numpy" only'),
        ("data", {"points": "a.csv", "geometry": "wkt", "x": "lon"}, "geometry names a column of points in WKT"),
        ("data", {"points": "a.csv", "geometry": "wkt", "centroids": True}, "centroids is for files with polygons"),
        *((f"{table}seed", 7, "anyone who knows the seed can subtract the noise") for table in ("", "data.", "mechanism.settings.")),
    ],
)
def test_errors_name_the_fault_and_its_remedy(path, value, message):
    with pytest.raises(DpvizError, match=re.escape(message)):
        from_tables(changed(POINTS, path, value))


@pytest.mark.parametrize(
    ("tables", "data", "unit", "message"),
    [
        (POINTS, {"points": "a.csv"}, None, 'each record is its own person: under [dataset] unit = "record".'),
        (FLOWS, {"trips": "a.csv", "contributions": 1}, None, 'each trip is its own person: under [dataset] unit = "trip".'),
        (POINTS, {"points": "a.csv", "person": "who"}, None, "[data] contributions is missing: say the most records of one person"),
        (FLOWS, {"trips": "a.csv", "person": "who"}, "person", "[data] contributions is missing: say the most trips of one person"),
        (POINTS, {"points": "a.csv"}, "trip", "[data] protects one record"),
        (FLOWS, {"trips": "a.csv", "contributions": 2}, "trip", "[data] protects one person"),
        (FLOWS, {"trips": "a.csv", "origin": ["a", "b"]}, "trip", "each a pair of coordinates"),
        (FLOWS, {"trips": "a.csv", "origin": ["a", "b"], "destination": ["a", "b", "c"]}, "trip", "each a pair of coordinates"),
        (FLOWS, {"trips": "a.csv", "crs": "EPSG:4326"}, "trip", "trips between ids have no coordinates"),
        (changed(FLOWS, "regions", None), FLOWS["data"], "trip", "Trips need [regions]"),
        ({**FLOWS, "domain": POINTS["domain"]}, FLOWS["data"], "trip", "[domain] is for points only"),
    ],
)
def test_own_files_need_a_declared_unit_of_privacy_and_trips_ends_of_one_kind_and_regions(tables, data, unit, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        from_tables(changed(changed(tables, "data", data), "dataset.unit", unit))


def test_a_study_area_masks_the_domain_and_is_never_the_file_of_the_data(tmp_path):
    tables = changed(changed(POINTS, "domain.crs", "EPSG:4326"), "domain.study_area", "city.geojson")
    path = written(tmp_path, tables)
    geopandas.GeoSeries([shapely.box(0.5, 0.5, 3.5, 3.5)], crs="EPSG:4326").to_file(tmp_path / "city.geojson")
    config = read_config(path)
    assert config.domain.domain().mask is None
    domain = frame_of(config)
    assert domain.mask.cells_open == 16
    sources = open_sources(replace(config, data=replace(config.data, crs="EPSG:4326")))
    data = read_data(sources, domain, bad_rows="drop").data
    assert (data.count.sum(), data.outside) == (3, 2)
    assert from_tables(tomllib.loads(to_toml(config))) == config
    code = write_data(config)
    assert "domain=dv.mask_outside(" in code
    assert 'dv.reading.read_outline("city.geojson", crs="EPSG:4326")' in code
    for same in ("crowd.csv", "./crowd.csv", str(tmp_path / "crowd.csv")):
        with pytest.raises(SettingError, match="never taken from the data"):
            frame_of(from_tables(changed(tables, "domain.study_area", same), base=tmp_path))
    with pytest.raises(SettingError, match="never taken from the data"):
        frame_of(from_tables(changed(changed(tables, "data.points", "c*.csv"), "domain.study_area", "crowd.csv"), base=tmp_path))
    (tmp_path / "city.geojson").unlink()
    with pytest.raises(InputError, match=r"^\[domain\] study_area 'city.geojson': The file cannot be read"):
        frame_of(config)


def test_the_land_is_a_study_area_without_a_file(tmp_path):
    part = {"bounds": [-118.63, 33.73, -117.86, 34.37], "crs": "EPSG:4326", "order": 6, "study_area": "land"}
    config = from_tables(changed(POINTS, "domain", part), base=tmp_path)
    assert frame_of(config).share_open == pytest.approx(0.88, abs=0.02)
    assert config.frame_files() == []
    assert "dv.land_outline()" in write_data(config)
    assert "read_outline" not in write_data(config)


def test_references_that_are_not_private_and_line_ends_within_cells_are_for_studies_only(tmp_path):
    with pytest.raises(RefusedError, match="NOT PRIVATE"):
        from_tables(changed(POINTS, "mechanism", {"key": "exact_kdtree"}))
    for tables, keys in ((POINTS, REFERENCES.of("points")), (FLOWS, REFERENCES.of("trips"))):
        for key in keys:
            with pytest.raises(RefusedError, match="NOT PRIVATE"):
                from_tables(changed(tables, "mechanism", {"key": key}))
    with pytest.raises(RefusedError, match="as Parquet where they come from"):
        from_tables(changed(POINTS, "data.quoted_newlines", True))
    study = changed(STUDY, "data", {"points": "across.csv", "public": True, "quoted_newlines": True})
    config = read_study(written(tmp_path, study))
    (tmp_path / "across.csv").write_text('lon,lat,note\n1,2,"of\ntwo lines"\n')
    assert data_of(config, "refuse").data.count.tolist() == [1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[data]\npoints = Rosa\n", "The configuration is not TOML: see line 2."),
        (b"a = " + b"9" * 5000, "The configuration is not TOML."),
        (b"a = " + b"[" * 5000, "The configuration is not TOML."),
        (b"\xff\xfe\x00", "The configuration must be text in UTF-8."),
        (b"#" * (2**20 + 1), "The configuration is larger than a megabyte"),
    ],
)
def test_files_that_cannot_be_a_configuration_are_not_quoted(tmp_path, content, message):
    (tmp_path / "release.toml").write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_file(tmp_path / "release.toml")
    assert str(refused.value).startswith(message)
    assert "Rosa" not in str(refused.value)
    assert refused.value.__context__ is None or "UTF-8" in message
    for unreadable in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_file(unreadable)


TEXTS = ("data.points", "data.x", "data.crs", "dataset.name", "publication.name", "publication.region", "output.folder")
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
amounts = st.fractions(Fraction(1, 10**6), 1000).map(lambda f: str(f.limit_denominator(10**7))) | st.floats(1e-9, 1e3) | st.integers(1, 99)


@settings(max_examples=40)
@given(texts, amounts)
def test_any_text_and_amount_reads_back_equal(tmp_path_factory, text, amount):
    tables = changed(POINTS, "budget.epsilon", amount)
    for key in TEXTS:
        tables = changed(tables, key, text)
    config, path = from_tables(tables), tmp_path_factory.getbasetemp() / "written.toml"
    path.write_bytes(to_toml(config).encode())
    again = read_config(path)
    assert again == config
    assert again.budget.budget() == config.budget.budget()


SIDES = {"file": "towns.csv", "levels": ["state", "town"], "prefixes": [1], "names": {"town": "town"}}
ENDS = {"trips": "t/*.csv", "origin": ["x", "y"], "destination": ["x2", "y2"], "crs": "EPSG:4326"}


@pytest.mark.parametrize(
    "tables",
    [
        {**FLOWS, "destinations": SIDES},
        changed(FLOWS, "data", ENDS),
        per_person(FLOWS, {"trips": "a.csv", "contributions": 2}),
        changed(POINTS | {"data": {"points": "a.csv", "person": "who", "contributions": 1}}, "dataset.unit", "person"),
        changed(POINTS, "data", {"points": ["one.csv"], "engine": "duckdb"}),
        changed(POINTS, "data", {"points": "a.csv", "separator": "\t", "decimal": ",", "encoding": "utf-16", "geometry": "wkt"}),
        changed(POINTS, "data", {"points": "a.gpkg", "centroids": True}),
        changed(
            FLOWS,
            "data",
            {"trips": "a.csv", "separator": ";", "decimal": ",", "thousands": ".", "encoding": "ISO-8859-1", "engine": "dask"},
        ),
        changed(POINTS, "mechanism.settings", {"split": "custom", "height": 2, "weights": [1, 2, 0.5], "least_squares": False}),
        changed(POINTS, "mechanism", {"key": "tuned_grid", "settings": {"seed": 3}}),  # a public seed, of boxes
        changed(POINTS, "output.formats", ["geoparquet", "csv"]),
        per_person(POINTS, {"points": ["a/*.parquet", "b"], "person": "who", "contributions": 1, "distinct": True, "engine": "dask"}),
    ],
)
def test_lists_settings_and_regions_read_back_equal(tmp_path, tables):
    config = from_tables(tables)
    (tmp_path / "a.toml").write_text(to_toml(config), "utf-8")
    again = read_config(tmp_path / "a.toml")
    assert again == config
    assert again.mechanism.build(again.data.family) == config.mechanism.build(config.data.family)


SAVED = Path(__file__).parents[1] / "golden" / "configs"  # by an earlier version, never written again


@pytest.mark.parametrize(("name", "unit"), [("persons", "person"), ("records", "record"), ("sample", "record"), ("trips", "trip")])
def test_a_configuration_that_an_earlier_version_saved_is_read_as_it_was(name, unit):
    config = read_config(SAVED / f"{name}.toml")
    assert (config.dataset.unit, config.data.person) == (unit, "user" if name == "persons" else None)
    assert to_toml(config) == (SAVED / f"{name}.toml").read_text("utf-8")


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

"""Areas by command line: from a table of points and a file of polygons to a bundle, and one sentence for each mistake."""

import json
import re
import sys
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
import tomli_w

from dpviz.data.areas import AreaCounts
from dpviz.data.empty import NONE_IN_REGIONS
from dpviz.data.reading.regions import NO_REGIONS
from dpviz.release.area_fitness import fitness
from dpviz.release.area_release import AreaRelease
from dpviz.release.files import read_manifest, read_release
from dpviz.space.regions import Regions
from tests.ledgers import is_empty
from tests.publishing.configs import changed

SAMPLES = Path(__file__).parents[2] / "sample_data"
CONFIG = {
    "data": {"points": "homes.csv", "crs": "EPSG:4326"},
    "regions": {"file": "tracts.geojson", "levels": ["county", "tract"], "names": {"tract": "called"}},
    "mechanism": {"key": "region_tree"},
    "budget": {"epsilon": 1},
    "dataset": {"name": "homes", "unit": "record", "cap_epsilon": 2},
    "publication": {"name": "Homes", "curator": "The office", "description": "Where they live."},
    "output": {"folder": "out"},
}
SQUARES = [shapely.box(x, 50, x + 1, 51) for x in range(4)]


@pytest.fixture
def folder(tmp_path):
    """A folder with a table of points, a file of polygons, and a table of ids of regions."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-0.5, 4, 5000), rng.uniform(50, 51, 5000)
    homes = pd.DataFrame({"lon": x, "lat": y, "who": rng.integers(0, 900, 5000)})
    homes.to_csv(tmp_path / "homes.csv", index=False)
    table = {"county": ["01", "01", "02", "02"], "tract": ["01a", "01b", "02a", "02b"], "called": list("ABCD")}
    geopandas.GeoDataFrame(table, geometry=SQUARES, crs="EPSG:4326").to_file(tmp_path / "tracts.geojson")
    pd.DataFrame({"area": ["01a", "02b", "02b"], "n": [700, 20, 3]}).to_csv(tmp_path / "counts.csv", index=False)
    return tmp_path


def configured(folder, tables):
    (folder / "release.toml").write_text(tomli_w.dumps(tables), "utf-8")
    return folder / "release.toml"


BUDGETS = {
    "epsilon": ({"epsilon": "1/3"}, {"cap_epsilon": 2}),
    "epsilon and delta": ({"epsilon": 1, "delta": 1e-6}, {"cap_epsilon": 2, "cap_delta": 1e-5}),
    "rho": ({"rho": 0.1}, {"cap_rho": 1}),
}


@pytest.mark.parametrize("budget", BUDGETS)
def test_points_and_polygons_become_a_bundle_that_reads_back(run, folder, ledger, budget):
    spent, cap = BUDGETS[budget]
    tables = changed(changed(CONFIG, "budget", spent), "dataset", {"name": "homes", "unit": "record", **cap})
    code, out, err = run("release", configured(folder, tables), "--dry-run")
    assert code == 0, err
    assert "Nothing was spent" in out
    assert re.search("the whole.*county.*tract", out, re.DOTALL)
    assert is_empty(ledger)
    code, out, err = run("release", folder / "release.toml", "--json", "--left-out")
    assert code == 0, err
    assert re.search(r"Curator only: left out \d+: \d+ in no region\.", err)
    found = json.loads(out)
    assert {"areas.parquet", "levels.parquet", "regions.parquet", "areas_2_tract.csv", "report.html"} <= set(found["files"])
    release = read_release(folder / "out")
    assert isinstance(release, AreaRelease)
    homes = pd.read_csv(folder / "homes.csv")
    true = np.histogram(homes["lon"], bins=[0, 1, 2, 3, 4])[0]
    assert (np.abs(release.count[release.nodes(2)] - true) < 12 * release.stddev("tract")).all()
    assert release.regions.names_of(2).tolist() == list("ABCD")
    assert ledger.account("homes").draws == 1
    left_out = len(homes) - true.sum()
    for path in folder.joinpath("out").glob("*.*"):
        if path.suffix in (".json", ".html", ".csv", ".geojson"):
            assert not re.search(rf"(?<![0-9.a-f]){left_out}(?![0-9.a-f])", path.read_text("utf-8")), path.name
    assert read_manifest(folder / "out")["identity"]["kind"] == "areas"
    assert fitness(release)["grade"][0] == "usable"
    code, out, _ = run("check", folder / "out")
    assert "A release of areas: region_tree" in out
    assert "4 regions" in out


def test_persons_are_protected_and_regions_may_be_named_by_their_ids(run, folder, ledger):
    person = {"points": "homes.csv", "crs": "EPSG:4326", "person": "who", "contributions": 2}
    tables = changed(changed(CONFIG, "data", person), "dataset.unit", None)
    assert run("release", configured(folder, tables))[0] == 0
    receipt = read_release(folder / "out").receipt
    assert (receipt.unit, receipt.contributions) == ("person", 2)
    assert "column 'who'" in receipt.unit_definition
    tables = changed(changed(CONFIG, "data", {"points": "counts.csv", "region": "area", "count": "n"}), "output.folder", "ids")
    code, _, err = run("release", configured(folder, changed(tables, "dataset.name", "counts")))
    assert code == 0, err
    release = read_release(folder / "ids")
    assert abs(release.count[release.nodes(2)][0] - 700) < 12 * release.stddev("tract")[0]
    assert {account.name for account in ledger.accounts()} == {"homes", "counts"}


def test_the_sample_configuration_is_published(run, tmp_path, ledger):
    code, _, err = run("release", SAMPLES / "areas.toml", "--output", tmp_path / "city")
    assert code == 0, err
    release = read_release(tmp_path / "city")
    assert (release.regions.levels, release.receipt.unit) == (("district", "tract", "block"), "person")
    assert (release.regions.denominator.name, release.regions.denominator.sum()) == ("residents", 200_000)
    assert "Rate <bdi>per 1,000 residents</bdi>" in (tmp_path / "city" / "report.html").read_text("utf-8")
    assert ledger.account("visits in a made-up city").draws == 1


SQUARES_OF_A_LATTICE = {"squares": [1, 2], "bounds": [0, 50, 4, 51], "crs": "EPSG:4326"}


def test_regions_without_a_file_are_released_checked_and_compared(run, folder, ledger):
    tables = changed(CONFIG, "regions", SQUARES_OF_A_LATTICE)
    code, out, err = run("release", configured(folder, tables), "--dry-run")
    assert code == 0, err
    assert re.search("the whole.*zoom 1.*zoom 2", out, re.DOTALL)
    code, _, err = run("release", folder / "release.toml")
    assert code == 0, err
    assert "16 regions" in run("check", folder / "out")[1]
    release = read_release(folder / "out")
    homes = pd.read_csv(folder / "homes.csv")
    assert release.regions == AreaCounts.from_xy(homes["lon"], homes["lat"], regions=release.regions).regions
    assert (release.regions.grid.order, release.regions.grid.bounds) == (2, (0, 50, 4, 51))
    study = {"data": {**CONFIG["data"], "public": True}, "regions": SQUARES_OF_A_LATTICE, "mechanism": [{"key": "flat"}]}
    (folder / "study.toml").write_text(tomli_w.dumps(study | {"epsilons": [1], "seed": 1}), "utf-8")
    assert run("compare", folder / "study.toml")[0] == 0
    assert ledger.account("homes").draws == 1


def test_hexagons_are_released_and_without_their_package_one_sentence_says_so(run, folder, ledger, monkeypatch):
    pytest.importorskip("h3")
    geopandas.GeoDataFrame(geometry=SQUARES[:2], crs="EPSG:4326").to_crs("EPSG:3857").to_file(folder / "outline.gpkg")
    tables = changed(CONFIG, "regions", {"h3": [2, 4], "area_file": "outline.gpkg"})
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "h3", None)
        code, _, err = run("release", configured(folder, tables))
    assert (code, is_empty(ledger)) == (2, True)
    assert "[regions] h3: H3 cells need the package h3: install dpviz with its extra, pip install 'dpviz[h3]'." in err
    code, _, err = run("release", folder / "release.toml")
    assert code == 0, err
    release = read_release(folder / "out")
    assert release.regions == Regions.h3((0, 50, 2, 51), resolutions=(2, 4))


def other_file(name, **columns):
    """Write another file of polygons, and configure it."""

    def write(folder, tables):
        table = {"county": ["01", "01"], "tract": ["01a", "01b"], "called": ["A", "B"]} | columns
        shapes = table.pop("geometry", SQUARES[:2])
        geopandas.GeoDataFrame(table, geometry=shapes, crs=table.pop("crs", "EPSG:4326")).to_file(folder / name)
        return changed(tables, "regions.file", name)

    return write


def other(path, value):
    return lambda folder, tables: changed(tables, path, value)


def plain_regions(folder, tables):
    pd.DataFrame({"county": ["01"], "tract": ["01a"], "called": ["A"]}).to_csv(folder / "plain.csv", index=False)
    return changed(tables, "regions.file", "plain.csv")


def no_rows(folder, tables):
    (folder / "none.csv").write_text("county,tract,called\n")
    return changed(tables, "regions.file", "none.csv")


def copied_regions(folder, tables):
    (folder / "regions.csv").write_bytes((folder / "homes.csv").read_bytes())
    return changed(tables, "regions.file", "regions.csv")


DOMAIN = {"bounds": [0, 50, 4, 51], "crs": "EPSG:4326"}
NOTHING_SPENT = "Nothing was spent. If data without records are right, write may_be_empty = true under [data]."
EMPTY = f"{NONE_IN_REGIONS} {NOTHING_SPENT}"
MISTAKES = {
    "no regions": (
        other("regions", None),
        "Points need a [domain] with bounds and crs, or for areas [regions] with a file, h3 or squares: declared, never taken from the",
    ),
    "two kinds of regions": (
        other("regions.squares", [2, 4]),
        "[regions] needs exactly one of file, polygons, h3, squares, which say in different ways what they are.",
    ),
    "levels of squares": (
        other("regions", {"squares": [2, 4], "bounds": [0, 50, 4, 51], "crs": "none", "levels": ["tract"]}),
        "[regions] levels belongs to file, not to squares: leave one of them out.",
    ),
    "no area of hexagons": (other("regions", {"h3": [3, 4]}), "[regions] h3 needs the area that its cells cover"),
    "a turned area": (
        other("regions", {"h3": [3, 4], "area": [4, 50, 0, 51]}),
        "[regions] area: west must be smaller than east and south smaller",
    ),
    "no levels": (
        other("regions", {"file": "tracts.geojson"}),
        'The file does not say how its regions are nested (no column \'region_id\'). Write levels = ["county", "tract"] under [regions],',
    ),
    "no such denominator": (
        other("regions.denominator", "people"),
        "There is no column named 'people'. The columns are 'county', 'tract', 'called'.",
    ),
    "a denominator of texts": (other("regions.denominator", "called"), "The denominator 'called' is not numeric"),
    "a delta of 0": (other("budget", {"epsilon": 1, "delta": 0}), "[budget] delta is 0: leave delta out for Laplace noise"),
    "resolutions that do not grow": (
        other("regions", {"h3": [5, 4], "area": [0, 50, 4, 51]}),
        "[regions] h3: The resolutions of H3 cells must grow from level to level, such as 5, 7, 9.",
    ),
    "no bounds of squares": (other("regions", {"squares": [2], "crs": "EPSG:4326"}), "[regions] squares needs bounds"),
    "zooms out of range": (
        other("regions", {"squares": [2, 11], "bounds": [0, 50, 4, 51], "crs": "EPSG:4326"}),
        "[regions] squares: The zooms of squares must be whole numbers from 1 to 10",
    ),
    "regions taken from the data": (other("regions", {"polygons": "homes.csv"}), "[regions] polygons is a file of the data"),
    "regions of a copy of the data": (copied_regions, "[regions] file is a file of the data"),
    "both frames": (
        other("domain", DOMAIN),
        "[domain] and [regions] both say where points are counted: keep [regions] for areas, or [domain] for points.",
    ),
    "a mechanism of points": (
        other("mechanism.key", "quadtree"),
        "[mechanism] key must be one of region_tree, flat, cross_tree for areas; quadtree is for points, which have [domain]",
    ),
    "overlapping polygons": (
        other_file("over.geojson", geometry=[shapely.box(0, 50, 2, 51), shapely.box(1, 50, 3, 51)]),
        "Regions of level 'tract' overlap: A and B. Correct their polygons, so that a place is in one region at most.",
    ),
    "no polygons": (
        plain_regions,
        "The level 'tract' has no polygons: coordinates can only be assigned to leaves with polygons.",
    ),
    "wrong CRS": (
        other("data.crs", "EPSG:3857"),
        EMPTY,
    ),
    "no CRS": (other("data.crs", None), "This CSV file does not state its CRS, which is never guessed"),
    "unknown ids": (
        other("data", {"points": "homes.csv", "region": "who"}),
        EMPTY,
    ),
    "no such column of ids": (
        other("data", {"points": "counts.csv", "region": "tract"}),
        "There is no column named 'tract'. The columns are 'area', 'n'.",
    ),
    "a missing file of regions": (
        other("regions.file", "nowhere.geojson"),
        "[regions] file 'nowhere.geojson': The file cannot be read: does it exist, and may you read it?",
    ),
    "no region": (other_file("none.geojson", county=[], tract=[], called=[], geometry=[]), NO_REGIONS),
    "a table without regions": (no_rows, NO_REGIONS),
    "levels from fine to coarse": (
        other("regions.levels", ["tract", "county"]),
        "Give the levels from coarse to fine; these seem reversed: county, tract.",
    ),
    "ids and coordinates": (
        other("data", {"points": "counts.csv", "region": "area", "x": "n"}),
        "[data] region names a column of ids, which have no coordinates: leave x, y, geometry, centroids and crs out.",
    ),
    "an empty level": (
        other_file("empty.geojson", tract=["01a", None]),
        "Column 'tract' has a missing or blank cell: in a table of regions every row needs all its ids.",
    ),
    "no such level": (
        other("regions.levels", ["county", "block"]),
        "There is no column named 'block'",
    ),
    "a person column missing": (
        lambda folder, tables: changed(
            changed(tables, "data", {**tables["data"], "person": "patient", "contributions": 1}),
            "dataset.unit",
            None,
        ),
        "There is no column named 'patient'. The columns are 'lon', 'lat', 'who'.",
    ),
    "nobody says whom it protects": (other("dataset.unit", None), "Say whom the release protects."),
    "weights that do not fit the levels": (
        other("mechanism", {"key": "region_tree", "settings": {"split": "custom", "weights": [1, 1, 1, 1]}}),
        "A custom split needs 2 weights",
    ),
    "published shares of other levels": (
        other("mechanism", {"key": "region_tree", "settings": {"split": "census"}}),
        "The shares of the US Census are for 6 levels, and 2 are measured here.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_and_nothing_is_spent_or_written(run, folder, ledger, mistake):
    change, message = MISTAKES[mistake]
    config = configured(folder, change(folder, CONFIG))
    for command in ("release", "check"):
        code, out, err = run(command, config)
        assert (code, out) == (2, "")
        last = err.splitlines()[-1]
        assert last.startswith(f"dpviz: {message}"), last
        assert "P0" not in err
    assert not ledger.accounts()
    assert not (folder / "out").exists()


def test_the_check_names_a_release_s_cost_how_many_records_have_no_region_and_overlaps(run, folder, ledger):
    pd.DataFrame({"area": ["01a", "zz", "zy"], "n": [700, 5, 6]}).to_csv(folder / "counts.csv", index=False)
    data = {"points": "counts.csv", "region": "area", "count": "n"}
    code, out, err = run("check", configured(folder, changed(CONFIG, "data", data)), "--left-out")
    assert code == 0, err
    assert "Nothing was spent" in out
    assert "Curator only: left out 11: 11 in no region." in err
    assert "zz" not in out + err
    assert not ledger.accounts()
    table = {"tract": ["01a", "01b"]}
    shapes = [shapely.box(0, 50, 2, 51), shapely.box(1, 50, 3, 51)]
    geopandas.GeoDataFrame(table, geometry=shapes, crs="EPSG:4326").to_file(folder / "over.geojson")
    assert "Regions of level 'tract' overlap: 01a and 01b." in run("check", folder / "over.geojson")[1]


@pytest.mark.parametrize("mistake", ["published shares of other levels", "overlapping polygons", "no levels", "a delta of 0"])
def test_what_is_public_is_refused_before_data_are_read(run, folder, mistake):
    change, message = MISTAKES[mistake]
    tables = change(folder, CONFIG)
    (folder / "homes.csv").unlink()
    for command in ("release", "check"):
        assert message in run(command, configured(folder, tables))[2]


@pytest.mark.parametrize("data", [CONFIG["data"], {"points": "counts.csv", "region": "area", "count": "n"}])
def test_another_engine_counts_the_same(run, folder, ledger, data):
    pytest.importorskip("duckdb")
    left_out = []
    for engine in ("numpy", "duckdb"):
        config = configured(folder, changed(CONFIG, "data", data))
        code, out, err = run("release", config, "--dry-run", "--left-out", "--engine", engine, "--json")
        assert (code, json.loads(out)["engine"]) == (0, engine)
        left_out.append([line for line in err.splitlines() if line.startswith("Curator only")])
    assert left_out[0] == left_out[1]

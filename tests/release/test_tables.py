"""What the files of a release say to other programs: CSV, GeoJSON, GeoParquet."""

import csv
import json

import geopandas
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from dpviz.data.points import PointCounts
from dpviz.mechanisms import FlatAreas, FlatGaussian, HilbertTree, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import read_manifest, write_release
from dpviz.release.manifest import describe
from dpviz.release.reliability import grade_reliability
from dpviz.release.tables import escape_formulas
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from tests.release_cases import WORDS, areas_on, point_release, points_of, regions_with_shapes, trip_counts_on
from tests.trip_cases import regular, trip_counts_of

MEASURES = ["count", "count_noisy", "stddev", "ci_low", "ci_high", "all_low", "all_high", "reliability", "status"]
BOUNDS = ["west", "south", "east", "north"]
BUDGET = ApproxBudget(5, "1e-6")


def written(release, folder):
    return write_release(release, folder, describe(release, WORDS))


def trips_of_four_towns(folder, **options):
    """A release of trips between four towns, and the folder to which it was written."""
    release = TopDown().release(trip_counts_on(regions_with_shapes(**options)), BUDGET, Entropy.system())
    return release, written(release, folder)


def left_out(folder):
    return {each["name"]: each["reason"] for each in read_manifest(folder)["left_out"]}


def lines(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_points(mechanism, points):
    return mechanism.release(points, PureBudget(1), Entropy.system())


POINT_RELEASES = {
    "quadtree": point_release,
    "pruned": lambda: of_points(Quadtree(height=4, prune=30), points_of(400)),
    "hilbert_tree": lambda: of_points(HilbertTree(height=2), points_of(400)),
}


@pytest.mark.parametrize("made", POINT_RELEASES.values(), ids=POINT_RELEASES)
def test_tables_of_points_hold_the_same_rows_in_every_format_and_the_second_one_all_levels(made, tmp_path):
    release = made()
    folder = written(release, tmp_path / "out")
    tables = [pd.read_csv(folder / "partitions.csv", engine="pyarrow"), geopandas.read_file(folder / "partitions.geojson")]
    tables.append(geopandas.read_parquet(folder / "partitions.parquet"))
    assert list(tables[0].columns) == ["partition_id", "level", *MEASURES, *BOUNDS]
    np.testing.assert_allclose(tables[1].bounds, release.to_frame().bounds, atol=1e-6)
    for table in tables:
        assert set(table.columns) - {"geometry", *BOUNDS} == {"partition_id", "level", *MEASURES}
        assert table["partition_id"].tolist() == release.tree.leaves.tolist()
        assert table["count"].sum() == pytest.approx(release.count[0])
        assert set(table["status"]) == {"private release"}
        for name in ("level", *MEASURES[:-2]):
            np.testing.assert_allclose(table[name].astype(float), release.to_frame()[name], rtol=1e-8)
    table, stored = pd.read_csv(folder / "levels.csv", engine="pyarrow"), pd.read_parquet(folder / "levels.parquet")
    assert list(table.columns) == ["partition_id", "level", *MEASURES, "leaf", *BOUNDS]
    pd.testing.assert_frame_equal(table, stored[table.columns], check_dtype=False, check_exact=True)
    for level in range(release.height + 1):
        frame, rows = release.to_frame(level), table[(table["level"] == level) | (table["leaf"] & (table["level"] < level))]
        for name in ("partition_id", "level", *MEASURES[:-2]):
            np.testing.assert_array_equal(rows[name], frame[name])
        np.testing.assert_array_equal(rows[BOUNDS], frame.bounds)
    assert_described(folder)


def assert_described(folder):
    """The manifest says what every column means, and every table of counts what it is."""
    meant = read_manifest(folder)["contents"]["columns"]
    for path in [*folder.glob("*.csv"), *folder.glob("*.parquet"), *folder.glob("*.geojson")]:
        read = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".geojson": geopandas.read_file}[path.suffix]
        columns = set(read(path).columns)
        assert columns <= set(meant), path.name
        assert "status" in columns or not columns & {"count", "leaving", "arriving"}, path.name


def test_numbers_that_were_not_measured_are_empty_and_not_nan(tmp_path):
    folder = written(of_points(Quadtree(height=2, count_root=False), points_of(100)), tmp_path / "out")
    assert [row["count_noisy"] == "" for row in lines(folder / "levels.csv")] == [True] + [False] * 20
    for path in (folder / "partitions.csv", folder / "levels.csv", folder / "partitions.geojson", folder / "manifest.json"):
        assert "nan" not in path.read_text("utf-8").lower()
    assert pq.read_table(folder / "levels.parquet").column("count_noisy").null_count == 1


@pytest.mark.parametrize(("crs", "degrees"), [("EPSG:4326", 1e-6), ("EPSG:3857", 1e-6), ("EPSG:25830", 0.02)])
def test_geojson_is_in_degrees_and_geoparquet_in_the_crs_of_the_domain(crs, degrees, tmp_path):
    window = geopandas.GeoSeries([shapely.box(-4.0, 47.0, -1.0, 49.0)], crs="EPSG:4326")
    release, frame = release_of_one(tuple(window.to_crs(crs).total_bounds), crs, 2, tmp_path / "out")
    raw = json.loads((tmp_path / "out" / "partitions.geojson").read_text("utf-8"))
    assert "crs" not in raw  # RFC 7946, section 4
    assert set(raw["features"][0]["properties"]) == {"partition_id", "level", *MEASURES}
    assert frame.crs == "EPSG:4326"
    shapes = release.to_frame().to_crs("EPSG:4326").geometry
    assert shapely.hausdorff_distance(frame.geometry.to_numpy(), shapes.to_numpy()).max() < degrees
    stored = geopandas.read_parquet(tmp_path / "out" / "partitions.parquet")
    assert stored.crs == crs
    np.testing.assert_array_equal(stored.geometry.bounds, release.to_frame().bounds)


def release_of_one(bounds, crs, height, folder):
    """A release of one record in the corner, and its partitions as a map reads them; None without a map."""
    points = PointCounts.from_xy([bounds[0]], [bounds[1]], domain=Domain(bounds=bounds, crs=crs))
    release = of_points(Quadtree(height=height), points)
    path = written(release, folder) / "partitions.geojson"
    return release, geopandas.read_file(path) if path.exists() else None


def test_curved_edges_of_large_partitions_keep_neighbours_together_and_the_antimeridian_cuts(tmp_path):
    _, curved = release_of_one((2.5e6, 1.5e6, 6.5e6, 5.5e6), "EPSG:3035", 1, tmp_path / "curved")
    assert np.abs(shapely.area(curved.geometry.to_crs("EPSG:3035").to_numpy()) / 4e12 - 1).max() < 1e-4
    _, cut = release_of_one((2.5e6, -2e6, 4.5e6, 0.0), "EPSG:3832", 3, tmp_path / "cut")
    width = cut.geometry.explode().bounds
    assert (width.maxx - width.minx).max() < 3


LOCAL = 'LOCAL_CS["site",LOCAL_DATUM["site",0],UNIT["metre",1],AXIS["X",EAST],AXIS["Y",NORTH]]'
NO_PLACE = {
    None: "no CRS",
    LOCAL: "not one of the Earth's surface",
    "+proj=longlat +a=3396190 +b=3376200 +no_defs": "not one of the Earth's surface",
    "+proj=moll": "no longitude and latitude",
}


@pytest.mark.parametrize(("crs", "reason"), NO_PLACE.items())
def test_what_has_no_place_on_the_globe_has_no_geojson_and_the_manifest_says_why(crs, reason, tmp_path):
    bounds = (-1.7e7, -8.6e6, 1.7e7, 8.6e6) if crs == "+proj=moll" else (-10, 40, 6, 56)
    _, frame = release_of_one(bounds, crs, 4, tmp_path / "out")
    assert frame is None
    assert reason in left_out(tmp_path / "out")["partitions.geojson"]
    assert geopandas.read_parquet(tmp_path / "out" / "partitions.parquet").crs == crs


def test_reliability_is_the_coefficient_of_variation():
    counts, stddev = np.array([100, 100, -100, 100, 0, 0, 5]), np.array([12, 12.1, 40, 40.1, 1, 0, np.inf])
    assert grade_reliability(counts, stddev).to_pylist() == ["high", "medium", "low", "low", "low", "high", "low"]


def test_trips_open_in_a_flow_map(tmp_path):
    release, folder = trips_of_four_towns(tmp_path / "out", crs="EPSG:3857")
    for level, stem in ((1, "1_state"), (2, "2_town")):
        trips, places = pd.DataFrame(lines(folder / f"flows_{stem}.csv")), pd.DataFrame(lines(folder / f"locations_{stem}.csv"))
        ends = ["ci_low", "ci_high", "all_low", "all_high"]
        assert list(trips) == ["origin", "dest", "count", "count_noisy", "stddev", *ends, "reliability", "status"]
        assert list(places) == ["id", "lat", "lon", "name"]
        assert places["id"].tolist() == release.tree.origins.ids_of(level).tolist()
        assert places["lat"].astype(float).between(49, 53).all()
        assert places["lon"].astype(float).between(0, 2).all()
        expected = release.to_frame(level).rename(columns={"destination": "dest"})
        for name in ("origin", "dest", "count", "count_noisy", "stddev", *ends):
            assert trips[name].astype(expected[name].dtype).tolist() == expected[name].tolist()
    assert left_out(folder) == {}
    main = pd.read_parquet(folder / "flows.parquet").rename(columns={"destination": "dest"})
    assert list(main) == list(trips)
    assert all(main[name].tolist() == trips[name].astype(main[name].dtype).tolist() for name in main)
    assert_described(folder)


def kepler_pairs(columns):
    """The pairs of columns that kepler.gl takes for places: names that differ in a suffix alone (lat and lng, lat and lon, ...)."""
    names = [name.lower() for name in columns]
    suffixes = (("lat", "lng"), ("lat", "lon"), ("lat", "long"), ("latitude", "longitude"))
    return [
        (name, partner)
        for name in names
        for lat, lng in suffixes
        if name.endswith(lat) and (partner := name.removesuffix(lat) + lng) in names
    ]


def test_kepler_finds_the_ends_of_arcs_by_their_names(tmp_path):
    """Its arcs begin at the first place that it finds and end at the second; so do its samples of taxi trips and of flows."""
    _, folder = trips_of_four_towns(tmp_path / "out")
    arcs = pd.read_csv(folder / "arcs_2_town.csv")
    assert kepler_pairs(arcs) == [("origin_lat", "origin_lng"), ("dest_lat", "dest_lng")]
    assert kepler_pairs(["source_lat", "source_lng", "target_lat", "target_lng", "count"])[1] == ("target_lat", "target_lng")
    assert kepler_pairs(["pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude"])[1][0] == "dropoff_latitude"
    trips, places = pd.read_csv(folder / "flows_2_town.csv"), pd.read_csv(folder / "locations_2_town.csv").set_index("id")
    pd.testing.assert_frame_equal(arcs[list(trips)], trips)
    for side in ("origin", "dest"):
        np.testing.assert_array_equal(arcs[[f"{side}_lat", f"{side}_lng"]], places.loc[arcs[side], ["lat", "lon"]])


def test_a_geopackage_has_a_layer_for_each_table_in_the_same_bytes_each_time(tmp_path):
    release, folder = trips_of_four_towns(tmp_path / "csv")
    files = [write_release(release, tmp_path / name, describe(release, WORDS), formats=["geopackage"]) / "trips.gpkg" for name in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert set(geopandas.list_layers(files[0])["name"]) == {
        f"{stem}_{level}" for stem in ("regions", "flows") for level in ("1_state", "2_town")
    }
    trips = geopandas.read_file(files[0], layer="flows_2_town")
    arcs = pd.read_csv(folder / "arcs_2_town.csv")
    assert trips["count"].tolist() == arcs["count"].tolist()
    assert trips.geometry.isna().tolist() == (arcs["origin"] == arcs["dest"]).tolist()
    far = trips.geometry.dropna()
    np.testing.assert_allclose(far.bounds.minx, arcs.loc[far.index, ["origin_lng", "dest_lng"]].min(axis=1))
    points = point_release()
    partitions = write_release(points, tmp_path / "points", describe(points, WORDS), formats=["geopackage"]) / "partitions.gpkg"
    np.testing.assert_array_equal(geopandas.read_file(partitions)["count"], points.count[points.tree.leaves])


def test_regions_as_geojson_hold_the_trips_that_leave_and_arrive(tmp_path):
    release, folder = trips_of_four_towns(tmp_path / "out")
    states, towns = (geopandas.read_file(folder / f"regions_{stem}.geojson") for stem in ("1_state", "2_town"))
    assert [states["region_id"].tolist(), towns["region_id"].tolist()] == [["01", "02"], ["a", "b", "c", "d"]]
    leaving = release.to_frame("town").groupby("origin")["count"].sum()
    np.testing.assert_array_equal(towns.set_index("region_id").loc[leaving.index, "leaving"], leaving)
    np.testing.assert_array_equal(states["arriving"], release.to_frame("state").groupby("destination")["count"].sum())
    assert [shapely.area(each.geometry.to_numpy()).sum() for each in (states, towns)] == pytest.approx([4, 4])
    for table in (states, towns):
        assert table["leaving"].sum() == table["arriving"].sum() == release.to_frame(0)["count"].sum()
        assert set(table["status"]) == {"private release"}


def test_regions_without_places_have_no_map_files(tmp_path):
    folder = written(FlatGaussian().release(trip_counts_of(regular(2, 2), {(0, 1): 50}), BUDGET, Entropy.system()), tmp_path / "out")
    kinds = (("locations", "csv"), ("arcs", "csv"), ("regions", "geojson"))
    assert set(left_out(folder)) == {f"{kind}_{level}_level_{level}.{ending}" for kind, ending in kinds for level in (1, 2)}
    assert all("no geometry" in reason for reason in left_out(folder).values())
    assert (folder / "flows_2_level_2.csv").exists()
    assert_described(folder)


def test_two_geographies_share_locations_unless_one_id_is_two_places(tmp_path):
    homes = regions_with_shapes()
    for place, ends in enumerate((homes, regions_with_shapes(names=["W", "X", "Y", "Z"]), regions_with_shapes(crs="EPSG:3857"))):
        release = FlatGaussian().release(trip_counts_of(homes, {(0, 1): 50}, ends), BUDGET, Entropy.system())
        folder = written(release, tmp_path / str(place))
        sides = [path.name for path in sorted(folder.glob("*_2_town.geojson"))]
        assert sides == (["destinations_2_town.geojson", "origins_2_town.geojson"] if place else ["regions_2_town.geojson"])
        reason = left_out(folder).get("locations_2_town.csv", "")
        assert ("same id for different places" in reason) == (place > 0)


HOSTILE = ['=HYPERLINK("http://x","y")', "+1", "-1\n2", "@SUM(A1)"]


def test_texts_that_a_spreadsheet_would_run_are_neutralised_in_csv_and_only_there(tmp_path):
    _, folder = trips_of_four_towns(tmp_path / "names", names=HOSTILE)
    assert [row["name"] for row in lines(folder / "locations_2_town.csv")] == [f"'{name}" for name in HOSTILE]
    assert geopandas.read_parquet(folder / "regions.parquet")["name"].tolist()[2:] == HOSTILE
    assert geopandas.read_file(folder / "regions_2_town.geojson")["name"].tolist() == HOSTILE
    squares = [shapely.box(x, 0, x + 1, 1) for x in range(3)]
    table = geopandas.GeoDataFrame({"town": ["=a", "'=a", "-7"]}, geometry=squares, crs="EPSG:4326")
    folder = written(
        FlatGaussian().release(trip_counts_on(Regions.from_table(table, levels=["town"])), BUDGET, Entropy.system()), tmp_path / "ids"
    )
    assert [row["id"] for row in lines(folder / "locations_1_town.csv")] == ["'=a", "''=a", "'-7"]
    assert {row["origin"] for row in lines(folder / "flows_1_town.csv")} <= {"'=a", "''=a", "'-7"}


INVISIBLE = " \t\r\n\x00\x85\xa0\u200b\u200e\u202a\u2028\u3000\ufeff\N{TAG SPACE}"


@given(st.lists(st.text(alphabet=f"'=+-@ab1＝＋－＠﹢{INVISIBLE}", max_size=6), unique=True))
def test_no_text_begins_like_a_formula_whatever_stands_before_it_and_different_texts_stay_different(texts):
    found = escape_formulas(texts)
    assert len(set(found)) == len(texts)
    assert not any(
        text.lstrip(INVISIBLE)[:1] in set("=+-@＝＋－＠﹢") or text[:1] in set("\t\r\n") for text in found if text.strip(INVISIBLE)
    )
    assert all(new in (old, f"'{old}") for old, new in zip(texts, found, strict=True))


@pytest.mark.parametrize("begin", INVISIBLE)
def test_files_escape_a_formula_behind_invisible_characters_in_ids_names_and_levels(begin, tmp_path):
    hostile = f"a{begin}=1"[1:]
    table = geopandas.GeoDataFrame({hostile: [hostile, "b"]}, geometry=[shapely.box(x, 0, x + 1, 1) for x in range(2)], crs="EPSG:4326")
    regions = Regions.from_table(table, levels=[hostile])
    for private, mechanism in ((trip_counts_on(regions), FlatGaussian()), (areas_on(regions), FlatAreas())):
        folder = written(mechanism.release(private, BUDGET, Entropy.system()), tmp_path / mechanism.key)
        texts = {cell for path in folder.glob("*.csv") for row in lines(path) for cell in row.values() if hostile in cell}
        assert texts == {f"'{hostile}"}


def test_names_of_levels_never_reach_the_file_system(tmp_path):
    _, folder = trips_of_four_towns(tmp_path / "out", levels=("../../etc", "<b>\u202egpj.exe\n\"'"))
    names = {path.name for path in folder.glob("*.csv")}
    assert names == {f"{stem}_{level}.csv" for stem in ("flows", "locations", "arcs") for level in ("1_etc", "2_b_gpj_exe")}

"""Reading files: parts count as the whole does, a person in several files is one person, the engine is chosen by the files."""

import threading
from functools import partial
from importlib.util import find_spec

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

from dpviz.data.cell_counts import CellCounts
from dpviz.data.counting.engines import ENGINES
from dpviz.data.counting.files import read_areas, read_points, read_trips
from dpviz.data.leaf_regions import leaf_finder
from dpviz.data.reading.safety import Limits
from dpviz.errors import DpvizError
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from tests.data.reading import files
from tests.data.reading.files import PLANE, TOWNS, text, upload
from tests.often import often

DEGREES = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs="EPSG:4326", order=3)
MERCATOR = Domain(bounds=(0.0, 0.0, 1e6, 1e6), crs="EPSG:3857", order=3)


def points_table(rows=200, seed=1):
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(-1, 9, (2, rows)).round(2)
    return pd.DataFrame({"lon": lon, "lat": lat, "n": rng.integers(0, 4, rows), "who": rng.choice(list("abcdef"), rows)})


def trips_table(rows=200, seed=2):
    rng = np.random.default_rng(seed)
    ends = {side: rng.choice(list("abc"), rows) for side in ("origin", "destination")}
    return pd.DataFrame(ends | {"count": rng.integers(0, 4, rows), "who": rng.choice(list("pqrst"), rows)})


def squares():
    """Three leaves side by side, from 0 to 3, in degrees."""
    shapes = [shapely.box(west, 0, west + 1, 1) for west in range(3)]
    towns = gpd.GeoSeries(shapes, crs="EPSG:4326")
    return Regions(levels=TOWNS.levels, ids=TOWNS.ids, parent=TOWNS.parent, names=TOWNS.names, geometry=(None, towns))


def counters(held):
    return held.dropped, held.outside, held.bad, held.over


refused = partial(files.refused, error=DpvizError)


def arrays(found):
    return [getattr(found, name).tolist() for name in ("row", "column", "origin", "destination", "count") if hasattr(found, name)]


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("table", "read", "options"),
    [
        (points_table(), partial(read_points, domain=PLANE), {"count": "n", "contributions": 7}),
        (points_table(), partial(read_points, domain=PLANE), {"count": "n", "contributions": 7, "distinct": True}),
        (trips_table(), partial(read_trips, regions=TOWNS), {"contributions": 5}),
    ],
    ids=["points", "distinct points", "trips"],
)
def test_parts_of_a_table_are_counted_as_the_whole(tmp_path, form, table, read, options):
    for name, part in {"whole": table, **{f"part{k}": table[k::3].sample(frac=1, random_state=k) for k in range(3)}}.items():
        part.to_parquet(tmp_path / f"{name}.parquet") if form == "parquet" else part.to_csv(tmp_path / f"{name}.csv", index=False)
    read = partial(read, person="who", key=b"k", **options)
    whole = read(tmp_path / f"whole.{form}")
    for parts in (str(tmp_path / f"part*.{form}"), [tmp_path / f"part{k}.{form}" for k in (2, 0, 1)]):
        found = read(parts)
        assert (arrays(found), counters(found)) == (arrays(whole), counters(whole))
    assert whole.over > 0
    assert whole.dropped == whole.outside + whole.over == table[options.get("count", "count")].sum() - whole.count.sum()


def test_files_of_every_format_are_counted(tmp_path):
    frame = gpd.GeoDataFrame({"who": ["a", "a", "b"]}, geometry=gpd.points_from_xy([1.5, 2.5, 9.0], [1.5] * 3), crs="EPSG:4326")
    for name in ("a", "b"):
        frame.assign(part=name).to_file(tmp_path / f"{name}.gpkg", engine="pyogrio")
        frame.assign(part=name).to_parquet(tmp_path / f"{name}.parquet")
    for form in ("gpkg", "parquet"):
        points = read_points(str(tmp_path / f"*.{form}"), domain=DEGREES, person="who", contributions=3)
        assert (int(points.count.sum()), counters(points)) == (3, (3, 2, 0, 1))
    unknown = read_points(text("x,y\n5,5\n5,90\n5,-90\n"), domain=MERCATOR, crs="EPSG:4326")
    assert counters(unknown) == (2, 2, 0, 0)


def test_the_counters_say_why_records_are_left_out():
    rows = "x,y,n,who\n1,1,5,a\n9,1,3,a\nzz,1,2,a\n1,1,-4,a\n1,1,7,\n9,1,6,\n1,1,2,3,4\n"
    sources = [text(rows), text("x,y,n,who\n1,1\n", "more.csv")]
    points = read_points(sources, domain=PLANE, count="n", person="who", contributions=2, bad_rows="drop")
    assert (points.count.tolist(), counters(points)) == ([2], (3 + 3 + (2 + 1 + 7 + 6 + 1 + 1), 3, 2 + 1 + 7 + 6 + 1 + 1, 3))
    trips = "origin,destination,count,who\na,b,5,p\nx,b,3,p\n,b,2,p\na,b,1.5,p\na,b,7,\na,b\n"
    sources = [text(trips), text("origin,destination,count,who\na,b\n", "more.csv")]
    trip_counts = read_trips(sources, regions=TOWNS, person="who", contributions=4, bad_rows="drop")
    assert (trip_counts.count.tolist(), counters(trip_counts)) == ([4], (3 + (2 + 1 + 7 + 1 + 1) + 1, 3, 2 + 1 + 7 + 1 + 1, 1))


def test_a_bound_without_a_person_column_is_refused():
    table = "x,y\n1,1\n"
    assert "person" in refused(read_points, text(table), domain=PLANE, contributions=2)
    assert "person" in refused(read_points, text(table), domain=PLANE, distinct=True)
    assert "person" in refused(read_trips, text("origin,destination\na,b\n"), regions=TOWNS, distinct=True)
    assert read_trips(text("origin,destination\na,b\n"), regions=TOWNS, contributions=2).unit == "person"
    assert read_points(text(table), domain=PLANE).unit == "record"


def coordinate_trips(**options):
    lines = "x1,y1,x2,y2,n,who\n0.5,0.5,1.5,0.5,2,a\n0.5,0.5,2.5,0.5,1,b\n9,9,0.5,0.5,4,a\n"
    sides = {"origin": ("x1", "y1"), "destination": ("x2", "y2"), "crs": "EPSG:4326"}
    return read_trips(text(lines), **{"regions": squares()} | sides | options)


def test_coordinates_of_trips_are_reprojected():
    away = gpd.GeoSeries(gpd.points_from_xy([0.5, 1.5], [0.5, 0.5]), crs="EPSG:4326").to_crs("EPSG:3857")
    row = ",".join(f"{value:.3f}" for value in (away.x[0], away.y[0], away.x[1], away.y[1]))
    trips = read_trips(text(f"x1,y1,x2,y2\n{row}\n"), regions=squares(), origin=("x1", "y1"), destination=("x2", "y2"), crs="EPSG:3857")
    assert (trips.origin.tolist(), trips.destination.tolist()) == ([0], [1])


@pytest.mark.parametrize("kind", ["h3", "squares", "plain squares"])
def test_trips_begin_and_end_in_the_regions_in_which_points_are(kind):
    """Also on borders of squares, where the polygons of both sides would contain the point."""
    if kind == "h3":
        pytest.importorskip("h3")
        regions = Regions.h3((0, 50, 2, 51), resolutions=(3, 4))
    else:
        domain = Domain(bounds=(0, 50, 2, 51), crs=None if kind == "plain squares" else "EPSG:4326")
        regions = Regions.squares(domain, zooms=(1, 3))
    rng = np.random.default_rng(5)
    x, y = (
        np.r_[rng.uniform(-0.5, 2.5, 60), rng.integers(0, 9, 40) / 4],
        np.r_[rng.uniform(49.8, 51.2, 60), 50 + rng.integers(0, 9, 40) / 8],
    )
    crs = None if kind == "plain squares" else "EPSG:4326"
    table = pd.DataFrame({"x1": x, "y1": y, "x2": x[::-1], "y2": y[::-1]})
    trips = read_trips(text(table.to_csv(index=False)), regions=regions, origin=("x1", "y1"), destination=("x2", "y2"), crs=crs)
    points = pd.DataFrame({"x": x, "y": y})[(leaf_finder(regions)(x, y) >= 0) & (leaf_finder(regions)(x[::-1], y[::-1]) >= 0)]
    areas = read_areas(text(points.to_csv(index=False)), regions=regions, crs=crs)
    leaving = np.bincount(trips.origin, trips.count, regions.size(2))
    assert leaving.tolist() == areas.level_counts()[2].tolist()
    assert trips.outside == 100 - len(points) > 0


def test_coordinates_that_cannot_be_looked_up_are_refused():
    mercator = squares().geometry[-1].to_crs("EPSG:3857")
    other = Regions(levels=TOWNS.levels, ids=TOWNS.ids, parent=TOWNS.parent, names=TOWNS.names, geometry=(None, mercator))
    unusable = [("CRS", {"crs": None}), ("both", {"origin": "x1"}), ("both", {"origin": None, "destination": None})]
    unusable += [("both", {"origin": ("x1", "y1", "x2")}), ("no column named 'zz'", {"origin": ("zz", "y1")})]
    unusable += [("no polygons", {"regions": TOWNS}), ("one CRS", {"destinations": other})]
    for words, options in unusable:
        assert words in refused(coordinate_trips, **options)


def test_regions_that_do_not_match_are_refused_before_any_row_is_read():
    flat = Regions.from_table(pd.DataFrame({"town": list("abc")}), levels=["town"])
    assert "same depth" in refused(read_trips, text("zq17"), regions=TOWNS, destinations=flat)


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
@pytest.mark.parametrize("entry", [{"a": 1}, [1], {"a": "x"}, ["x"]])
@pytest.mark.parametrize("role", ["count", "person", "x"])
def test_a_column_of_lists_or_records_is_named_as_such_and_not_as_damage(tmp_path, role, entry, engine):
    table = points_table(20).rename(columns={"lon": "x", "lat": "y"})
    table["nested"] = [entry] * len(table)
    table.to_parquet(tmp_path / "rows.parquet")
    roles = {"x": "x", "y": "y", "contributions": 2 if role == "person" else 1, role: "nested"}
    with pytest.raises(DpvizError, match=r"lists or records|holds no number"):
        read_points(tmp_path / "rows.parquet", domain=DEGREES, crs="EPSG:4326", engine=engine, **roles)


def test_engines_have_names_and_an_address_has_one_engine(tmp_path):
    assert ENGINES == ("numpy", "duckdb", "dask")
    table = "x,y\n1,1\n"
    assert "numpy, duckdb, dask" in refused(read_points, text(table), domain=PLANE, engine="spark")
    assert "address" in refused(read_points, text(table), domain=PLANE, engine="numpy", address="tls://h:1")
    for engine in ("duckdb", "dask"):
        assert "engine='numpy'" in refused(read_points, text(table), domain=PLANE, engine=engine)
        assert "engine='numpy'" in refused(read_points, upload(b"{}", "a.geojson"), domain=DEGREES, engine=engine)


@pytest.mark.parametrize(("engine", "module"), [("duckdb", "duckdb"), ("dask", "distributed"), ("dask", "dask")])
def test_a_missing_engine_names_the_extra(tmp_path, monkeypatch, engine, module):
    points_table().to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr("dpviz.data.counting.engines.find_spec", lambda name: None if name == module else find_spec("numpy"))
    assert "pip install 'dpviz[scale]'" in refused(read_points, tmp_path, domain=PLANE, engine=engine)


@pytest.fixture
def jobs_seen(monkeypatch):
    """The engines that are called, with their jobs and addresses; nothing is counted."""
    seen = []

    def run(plan, scheduler, watch):
        seen.append((plan.engine, plan.job, scheduler and scheduler.address))
        return CellCounts(cells=np.array([1, 8]), counts=np.array([5, 2]), outside=1, bad=2, over=3)

    monkeypatch.setattr("dpviz.data.counting.files.run_engine", run)
    monkeypatch.setattr("dpviz.data.counting.engines.is_installed", lambda engine: True)
    return seen


def test_small_files_are_counted_in_memory_and_large_ones_are_not(tmp_path, monkeypatch, jobs_seen):
    points_table().to_parquet(tmp_path / "a.parquet")
    read_points(tmp_path, domain=PLANE)
    assert jobs_seen == []
    monkeypatch.setattr("dpviz.data.reading.sources.memory_bytes", lambda: 1000)
    points = read_points(tmp_path, domain=PLANE)
    assert (points.column.tolist(), points.row.tolist(), points.count.tolist(), points.unit) == ([1, 0], [0, 1], [5, 2], "record")
    assert counters(points) == (6, 1, 2, 3)
    read_points(tmp_path, domain=PLANE, address="tcp://h:1", insecure_address=True)
    assert [(engine, address) for engine, _, address in jobs_seen] == [("duckdb", None), ("dask", "tcp://h:1")]
    monkeypatch.setattr("dpviz.data.counting.engines.is_installed", lambda engine: engine != "duckdb")
    read_points(tmp_path, domain=PLANE)
    assert "pip install" in refused(read_points, tmp_path, domain=PLANE, limits=Limits(rows=1))
    assert len(jobs_seen) == 2


def test_jobs_name_columns_as_the_files_do(tmp_path, jobs_seen):
    points_table().rename(columns={"lon": "LON", "who": "Who"}).to_parquet(tmp_path / "a.parquet")
    options = {"person": "who", "contributions": 3, "distinct": True, "key": b"k", "bad_rows": "drop", "count": "N"}
    points = read_points(tmp_path, domain=PLANE, engine="duckdb", **options)
    job = jobs_seen[0][1]
    assert job.columns == ("LON", "lat", "n", "Who")
    assert (job.bound.most, job.bound.distinct, job.bound.key, job.drop) == (3, True, b"k", True)
    assert (points.unit, points.contributions) == ("person", 3)
    assert [path.name for path in job.files] == ["a.parquet"]
    assert "parquet" not in repr(job)


def test_trips_declared_per_person_without_a_person_column_are_not_bounded(tmp_path, jobs_seen):
    trips_table().to_csv(tmp_path / "a.csv", index=False)
    trips = read_trips(tmp_path / "a.csv", regions=TOWNS, engine="dask", contributions=2)
    assert (jobs_seen[0][1].bound, trips.enforced, trips.unit) == (None, False, "person")


@pytest.mark.parametrize("form", ["x", "wkb", "geoarrow"])
def test_engines_do_not_reproject(tmp_path, form, jobs_seen):
    table = points_table()
    frame = gpd.GeoDataFrame(table, geometry=gpd.points_from_xy(table.lon, table.lat), crs="EPSG:4326")
    frame.to_parquet(tmp_path / "a.parquet", geometry_encoding="geoarrow" if form == "geoarrow" else "WKB")
    options = {"x": "lon", "y": "lat", "crs": "EPSG:4326"} if form == "x" else {}
    read_points(tmp_path, domain=DEGREES, engine="duckdb", **options)
    message = refused(read_points, tmp_path, domain=MERCATOR, engine="duckdb", **options)
    assert "CRS" in message
    assert "engine='numpy'" in message
    if form == "x":
        assert "never guessed" in refused(read_points, tmp_path, domain=DEGREES, engine="duckdb", x="lon", y="lat")
    frame.assign(geometry=shapely.box(0, 0, 1, 1)).to_parquet(tmp_path / "a.parquet")
    assert "not points" in refused(read_points, tmp_path / "a.parquet", domain=DEGREES, engine="duckdb", bad_rows="drop")


def test_files_that_only_numpy_reads_go_to_it_where_they_are_small_enough(tmp_path, monkeypatch, jobs_seen):
    points_table().to_parquet(tmp_path / "points.parquet")
    (tmp_path / "m.csv").write_text("from,a,b\na,1,2\n")
    monkeypatch.setattr("dpviz.data.reading.sources.memory_bytes", lambda: 8)
    mercator = {"domain": MERCATOR, "crs": "EPSG:4326"}
    assert read_points(tmp_path / "points.parquet", **mercator).count.sum() > 0
    assert read_trips(tmp_path / "m.csv", regions=TOWNS).count.sum() == 3
    assert jobs_seen == []
    for options in ({"limits": Limits(rows=1)}, {"address": "tls://far.org:1"}, {"engine": "duckdb"}):
        assert "engine='numpy'" in refused(read_points, tmp_path / "points.parquet", **mercator, **options)
    assert "engine='numpy'" in refused(read_trips, tmp_path / "m.csv", regions=TOWNS, limits=Limits(file_bytes=1))
    assert "matrix" in refused(read_trips, tmp_path / "m.csv", regions=TOWNS, engine="duckdb")
    assert jobs_seen == []


def test_a_link_is_read_by_its_own_ending(tmp_path):
    (tmp_path / "0a1b2c").write_text("x,y\n1.5,1.5\n")
    (tmp_path / "points.csv").symlink_to(tmp_path / "0a1b2c")
    for engine in ("numpy", "duckdb"):
        assert read_points(tmp_path / "points.csv", domain=PLANE, engine=engine).count.tolist() == [1]
    assert read_points(str(tmp_path / "*.csv"), domain=PLANE).count.tolist() == [1]


@pytest.mark.parametrize("source", [7, None, [7]])
def test_what_is_neither_file_nor_table_is_refused_with_what_is_taken(source):
    assert "a DataFrame, an Arrow table" in refused(read_points, source, domain=PLANE)
    assert "a DataFrame, an Arrow table" in refused(read_trips, source, regions=TOWNS)


def test_columns_of_wrong_types_are_refused_before_any_row_is_read(tmp_path, jobs_seen):
    table = points_table().assign(when=pd.Timestamp("2020-01-01"), span=pd.Timedelta(1), tags=[["zq17"]] * 200)
    table.to_parquet(tmp_path / "a.parquet")
    for options in ({"x": "when"}, {"count": "when"}):
        message = refused(read_points, tmp_path, domain=PLANE, engine="duckdb", **options)
        assert "'when' holds no number" in message
        assert refused(read_points, tmp_path, domain=PLANE, **options) == message
    assert "lists" in refused(read_points, tmp_path, domain=PLANE, engine="duckdb", person="tags")
    assert "must hold" in refused(read_points, tmp_path, domain=PLANE, engine="duckdb", person="span")
    assert "no column named 'zz'" in refused(read_points, tmp_path, domain=PLANE, engine="duckdb", person="zz")


def test_progress_is_reported_and_a_count_can_be_cancelled():
    uploads, shares = [text(f"x,y,part\n1,1,{name}\n", f"{name}.csv") for name in "abcd"], []
    read_points(uploads, domain=PLANE, progress=shares.append)
    assert shares == [0.0, 0.25, 0.5, 0.75, 1.0]
    cancel = threading.Event()
    cancel.set()
    assert "cancelled" in refused(read_points, uploads, domain=PLANE, cancel=cancel)


@pytest.mark.parametrize("rule", ["keep", 1, None])
def test_rules_for_bad_rows_are_known(rule):
    assert "bad_rows" in refused(read_points, text("x,y\n1,1\n"), domain=PLANE, bad_rows=rule)
    assert "bad_rows" in refused(read_trips, text("origin,destination\na,b\n"), regions=TOWNS, bad_rows=rule, exactly=True)


def test_a_note_on_several_files_is_said_once():
    parts = [text(f"origin,destination,count\na,b,{n}\ntotal,b,{n}\n", f"{n}.csv") for n in (3, 4)]
    trips = read_trips(parts, regions=TOWNS)
    assert (trips.count.tolist(), trips.notes) == ([7], ("rows or columns of totals, which equal the sums of the others",))


POINTS_HEADER, TRIPS_HEADER, IDS_HEADER = "x,y,n\n1.5,1.5,2\n", "origin,destination,count\na,b,3\n", "town,n\na,3\n"
LONE_ROWS = [(POINTS_HEADER, "zq,1.5,1"), (POINTS_HEADER, "1.5,1.5,zq"), (POINTS_HEADER, "1.5,1.5,0.5")]
LONE_ROWS += [(TRIPS_HEADER, "a,b,zq"), (TRIPS_HEADER, "a,b,1.5"), (IDS_HEADER, "a,zq")]


@pytest.mark.parametrize("engine", often(["numpy", "duckdb"], 1))
@pytest.mark.parametrize(("good", "row"), LONE_ROWS, ids=lambda value: value.split("\n")[0])
def test_a_file_whose_only_row_is_bad_refuses_no_other_file(good, row, engine, tmp_path):
    """Else this one row would decide whether there is a release. Only if no row of any file can be used, the files are refused."""
    header = good.split("\n")[0]
    read, options = {
        POINTS_HEADER: (read_points, {"domain": PLANE, "count": "n"}),
        TRIPS_HEADER: (read_trips, {"regions": TOWNS}),
        IDS_HEADER: (read_areas, {"regions": TOWNS, "region": "town", "count": "n"}),
    }[good]
    for name, content in (("a", f"{header}\n{row}\n"), ("b", good)):
        (tmp_path / f"{name}.csv").write_text(content)
    alone = read(tmp_path / "b.csv", bad_rows="drop", engine=engine, **options)
    both = read(str(tmp_path / "*.csv"), bad_rows="drop", engine=engine, **options)
    assert (arrays(both), both.bad) == (arrays(alone), 1)
    (tmp_path / "b.csv").write_text(f"{header}\n{row}\n\n")
    assert "holds no" in refused(read, str(tmp_path / "*.csv"), bad_rows="drop", engine=engine, **options)


@pytest.mark.parametrize("form", ["geojson", "parquet"])
def test_a_file_of_one_polygon_refuses_no_file_of_points(form, tmp_path):
    for name, shape in (("a", shapely.box(0, 0, 1, 1)), ("b", shapely.Point(1, 1))):
        frame = gpd.GeoDataFrame({"who": [name]}, geometry=[shape], crs="EPSG:4326")
        path = tmp_path / f"{name}.{form}"
        frame.to_parquet(path) if form == "parquet" else frame.to_file(path, driver="GeoJSON")
    found = read_points(str(tmp_path / f"*.{form}"), domain=DEGREES, bad_rows="drop")
    assert (found.count.tolist(), found.bad) == ([1], 1)
    assert "not points" in refused(read_points, tmp_path / f"a.{form}", domain=DEGREES, bad_rows="drop")

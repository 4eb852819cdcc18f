"""Areas from files: every format, every engine and every kind of regions give the counts that arrays give, with the same keyed choice."""

from functools import partial
from importlib.util import find_spec

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from dpviz.data.areas import AreaCounts
from dpviz.data.counting.files import read_areas
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.text_format import TextFormat
from dpviz.errors import DomainError, DpvizError, InputError
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from tests.data.reading.files import upload
from tests.often import often

SHAPES = [shapely.box(0, 0, 1, 2), shapely.Polygon([(1, 0), (3, 0), (3, 2), (1, 1)]), shapely.box(4, 0, 5, 2)]
TOWNS = Regions.from_table(
    gpd.GeoDataFrame({"state": ["A", "A", "B"], "town": ["01", "02", "03"]}, geometry=SHAPES, crs="EPSG:4326"), levels=["state", "town"]
)
FRAMES = {
    "polygons": lambda: TOWNS,
    "squares": lambda: Regions.squares(Domain(bounds=(0, 0, 5, 2), crs="EPSG:4326", order=3), zooms=(1, 3)),
    "h3": lambda: Regions.h3((0, 0, 5, 2), resolutions=(2, 4)),
}
ENGINES = [name for name, needs in (("numpy", "numpy"), ("duckdb", "duckdb"), ("dask", "dask")) if find_spec(needs)]


def table(rows=400):
    rng = np.random.default_rng(3)
    ends = {"lon": rng.uniform(-1, 6, rows).round(3), "lat": rng.uniform(-0.5, 2.5, rows).round(3)}
    who = rng.choice([f"p{number}" for number in range(60)], rows)
    return pd.DataFrame(ends | {"n": rng.integers(0, 4, rows), "who": who, "town": rng.choice(["01", "02", "03", " 02", "9"], rows)})


def facts(areas):
    return areas.leaf.tolist(), areas.count.tolist(), areas.dropped, areas.outside, areas.bad, areas.over, areas.unit, areas.contributions


def as_points(frame):
    return gpd.GeoDataFrame(frame.drop(columns=["lon", "lat"]), geometry=gpd.points_from_xy(frame["lon"], frame["lat"]), crs="EPSG:4326")


WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "geoparquet": lambda frame, path: as_points(frame).to_parquet(path, index=False),
    "geoarrow": lambda frame, path: as_points(frame).to_parquet(path, index=False, geometry_encoding="geoarrow"),
    "geojson": lambda frame, path: as_points(frame).to_file(path, driver="GeoJSON"),
    "gpkg": lambda frame, path: as_points(frame).to_file(path, driver="GPKG"),
    "shp.zip": lambda frame, path: as_points(frame).to_file(path, driver="ESRI Shapefile"),
}
TABLES = ("csv", "tsv", "parquet")
OPTIONS = {
    "records": {},
    "counts": {"count": "n"},
    "persons": {"count": "n", "person": "who", "contributions": 3},
    "distinct": {"person": "who", "contributions": 2, "distinct": True},
}


def written(frame, folder, form):
    path = folder / f"homes.{'parquet' if form.startswith('geo') and form != 'geojson' else form}"
    WRITERS[form](frame, path)
    return path


def expected(frame, regions, options):
    columns = {name: frame[value] if isinstance(value, str) else value for name, value in options.items()}
    return facts(AreaCounts.from_xy(frame["lon"], frame["lat"], regions=regions, key=b"k", bad_rows="drop", **columns))


@pytest.mark.parametrize("options", often(OPTIONS, ["records", "persons"]))
@pytest.mark.parametrize("form", WRITERS)
def test_every_format_is_counted_as_arrays_are(form, options, tmp_path):
    frame, crs = table(), {"crs": "EPSG:4326"} if form in TABLES else {}
    found = read_areas(written(frame, tmp_path, form), regions=TOWNS, key=b"k", engine="numpy", **crs, **OPTIONS[options])
    assert facts(found) == expected(frame, TOWNS, OPTIONS[options])
    assert found.outside > 0


CASES = [(form, frame) for form in ("csv", "parquet", "geoparquet", "geoarrow") for frame in FRAMES]


@pytest.mark.parametrize(("form", "frame_kind"), often(CASES, [("csv", "polygons"), ("geoparquet", "squares"), ("geoarrow", "h3")]))
def test_duckdb_counts_as_numpy_does(form, frame_kind, tmp_path):
    pytest.importorskip("duckdb")
    if frame_kind == "h3":
        pytest.importorskip("h3")
    frame, regions, crs = table(), FRAMES[frame_kind](), {"crs": "EPSG:4326"} if form in TABLES else {}
    frame.loc[[3, 4], "lon"], frame.loc[5, "n"], frame.loc[6, "who"] = np.nan, -1, None
    path = written(frame, tmp_path, form)
    for options in OPTIONS.values():
        read = partial(read_areas, path, regions=regions, key=b"k", bad_rows="drop", **crs, **options)
        assert facts(read(engine="duckdb")) == facts(read(engine="numpy"))


@pytest.mark.parametrize("form", TABLES)
def test_ids_are_counted_alike_by_numpy_and_duckdb(form, tmp_path):
    frame = table()
    frame.loc[3, "town"], frame.loc[5, "n"] = None, -1
    path = written(frame, tmp_path, form)
    for options in OPTIONS.values():
        read = partial(read_areas, path, regions=TOWNS, region="town", key=b"k", bad_rows="drop", **options)
        found = [facts(read(engine=engine)) for engine in ENGINES if engine != "dask"]
        assert found == found[:1] * len(found)
    good = frame[frame["town"].isin(["01", "02", "03", " 02"]) & (frame["n"] >= 0)]
    read = read_areas(path, regions=TOWNS, region="town", count="n", bad_rows="drop")
    assert int(read.count.sum()) == good["n"].sum()
    assert read.bad == 1 + frame.loc[3, "n"]


IDS = {
    "whole numbers": pa.array([1, 2, 7, None]),
    "floats": pa.array([1.0, 2.0, 1.5, None]),
    "a dictionary": pa.array(["1", " 2", "x", None]).dictionary_encode(),
    "large texts": pa.array(["1", "2 ", "", None], pa.large_string()),
    "decimals": pa.array([1, 2, 7, None]).cast(pa.decimal128(20, 0)),
    "truth values": pa.array([True, False, None, True]),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_every_type_are_the_same_for_numpy_and_duckdb(kind, tmp_path):
    pytest.importorskip("duckdb")
    plain = Regions.from_table(pd.DataFrame({"town": ["1", "2"]}), levels=["town"])
    pq.write_table(pa.table({"town": IDS[kind], "n": [1, 2, 3, 4]}), tmp_path / "a.parquet")
    read = partial(read_areas, tmp_path / "a.parquet", regions=plain, region="town", count="n", bad_rows="drop")
    assert facts(read(engine="duckdb")) == facts(read(engine="numpy"))
    assert read().count.tolist() == ([] if kind == "truth values" else [1, 2])


def test_only_numpy_reprojects_and_auto_falls_back_to_it(tmp_path):
    pytest.importorskip("duckdb")
    as_points(table()).to_crs("EPSG:3857").to_parquet(tmp_path / "metres.parquet")
    with pytest.raises(InputError, match="not in the CRS of the regions, and only engine='numpy' reprojects"):
        read_areas(tmp_path / "metres.parquet", regions=TOWNS, engine="duckdb")
    assert facts(read_areas(tmp_path / "metres.parquet", regions=TOWNS)) == expected(table(), TOWNS, {})


def test_dask_counts_as_numpy_does(tmp_path, address):
    path, options = written(table(), tmp_path, "parquet"), OPTIONS["persons"]
    for more in ({"crs": "EPSG:4326"}, {"region": "town"}):
        read = partial(read_areas, path, regions=TOWNS, key=b"k", bad_rows="drop", **more, **options)
        assert facts(read(engine="dask", address=address)) == facts(read(engine="numpy"))


def test_several_files_are_one_and_a_large_one_is_counted_by_duckdb(tmp_path):
    frame = table()
    for number in range(3):
        frame[number::3].to_csv(tmp_path / f"part{number}.csv", index=False)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    for more in ({"crs": "EPSG:4326"}, {"region": "town"}):
        read = partial(read_areas, regions=TOWNS, key=b"k", bad_rows="drop", **more, **OPTIONS["persons"])
        assert facts(read(str(tmp_path / "part*.csv"))) == facts(read(tmp_path / "whole.csv"))
        if find_spec("duckdb"):
            assert facts(read(tmp_path / "whole.csv", limits=Limits(file_bytes=1000))) == facts(read(tmp_path / "whole.csv"))


def test_points_are_reprojected_and_text_formats_are_declared(tmp_path):
    frame = table()
    as_points(frame).to_crs("EPSG:3857").to_parquet(tmp_path / "metres.parquet")
    assert facts(read_areas(tmp_path / "metres.parquet", regions=TOWNS)) == expected(frame, TOWNS, {})
    frame.to_csv(tmp_path / "europe.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    declared = {"text_format": TextFormat(separator=";", decimal=",", encoding="utf-16")}
    assert facts(read_areas(tmp_path / "europe.csv", regions=TOWNS, crs="EPSG:4326", **declared)) == expected(frame, TOWNS, {})
    assert read_areas(tmp_path / "europe.csv", regions=TOWNS, region="town", bad_rows="drop", **declared).count.sum() > 200


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "dask"])
def test_polygons_are_read_as_their_centroids_and_a_plain_plane_needs_no_crs(engine, tmp_path):
    frame = table()
    points = as_points(frame)
    shapes = np.where(frame["n"] > 0, shapely.buffer(points.geometry.to_numpy(), 0.01, quad_segs=2), points.geometry.to_numpy())
    points.assign(geometry=shapes).set_crs("EPSG:4326").to_parquet(tmp_path / "discs.parquet")
    found = read_areas(tmp_path / "discs.parquet", regions=TOWNS, centroids=True, engine=engine)
    assert abs(int(found.count.sum()) - sum(expected(frame, TOWNS, {})[1])) <= 2
    with pytest.raises(InputError, match="point"):
        read_areas(tmp_path / "discs.parquet", regions=TOWNS, engine=engine)
    squares = Regions.squares(Domain(bounds=(0, 0, 4, 2), crs=None, order=3), zooms=(2,))
    frame.to_csv(tmp_path / "plane.csv", index=False)
    assert facts(read_areas(tmp_path / "plane.csv", regions=squares, engine=engine)) == expected(frame, squares, {})


BAD = {
    "no such column": (b"town\n01\n", {"region": "block"}, "There is no column named 'block'"),
    "unknown id": (b"town\n01\n77\n", {"region": "town"}, "has an id that is no leaf region"),
    "missing id": (b"town,n\n01,1\n,2\n", {"region": "town", "count": "n"}, "has an id that is missing"),
    "bad count": (b"town,n\n01,x\n", {"region": "town", "count": "n"}, "Column 'n'"),
    "missing person": (b"town,who\n01,a\n01,\n", {"region": "town", "person": "who"}, "Column 'who' has a missing cell"),
    "two roles": (b"town\n01\n", {"region": "town", "count": "town"}, "must be different columns"),
    "ids and coordinates": (b"town,lon\n01,1\n", {"region": "town", "x": "lon"}, "leave x, y, geometry, centroids and crs out"),
    "no CRS": (b"lon,lat\n1,1\n", {}, "does not state its CRS"),
    "no number": (b"lon,lat\n1,secret\n", {"crs": "EPSG:4326"}, "Column 'lat'"),
    "bound without persons": (b"town\n01\n", {"region": "town", "contributions": 2}, "person"),
    "short line": (b"town,n\n01\n", {"region": "town"}, "more or fewer cells"),
}


@pytest.mark.parametrize("fault", BAD)
def test_faults_name_the_column_and_the_rule_and_no_entry(fault):
    content, options, rule = BAD[fault]
    with pytest.raises(DpvizError, match=rule) as refusal:
        read_areas(upload(content, "a.csv"), regions=TOWNS, **options)
    assert "secret" not in str(refusal.value)
    assert "77" not in str(refusal.value)


def test_regions_must_be_regions_with_polygons_that_do_not_overlap():
    file = partial(upload, b"lon,lat\n1,1\n", "a.csv")
    with pytest.raises(InputError, match="regions must be Regions"):
        read_areas(file(), regions="towns.geojson", crs="EPSG:4326")
    plain = Regions.from_table(pd.DataFrame({"town": ["a"]}), levels=["town"])
    with pytest.raises(DomainError, match="has no polygons"):
        read_areas(file(), regions=plain, crs="EPSG:4326")
    over = gpd.GeoDataFrame({"town": ["Here", "There"]}, geometry=[shapely.box(0, 0, 2, 2), shapely.box(1, 0, 3, 2)], crs="EPSG:4326")
    with pytest.raises(DomainError, match="overlap: Here and There"):
        read_areas(file(), regions=Regions.from_table(over, levels=["town"]), crs="EPSG:4326")


def test_nothing_private_is_shown():
    areas = read_areas(upload(b"town,n\n01,12345\n9,77\n", "a.csv"), regions=TOWNS, region="town", count="n", bad_rows="drop")
    assert "12345" not in repr(areas)
    assert areas.outside == 77

"""Round trips, garbage and dirty cells: what must hold for every file, not only for the examples."""

import csv
import io
import json
import tempfile
import traceback
import warnings
import zipfile
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pyogrio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.counting.files import read_points
from dpviz.data.points import PointCounts
from dpviz.data.reading.points import inspect_points
from dpviz.data.reading.safety import FORMATS
from dpviz.errors import InputError
from dpviz.space.domain import Domain
from tests.strategies import domains, points_in

few = settings(max_examples=6, deadline=None, derandomize=True, database=None)
more = settings(max_examples=30, deadline=None, derandomize=True, database=None)
PLANE = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)
FORMS = ("csv", "tsv", "plain.parquet", "geojson", "gpkg", "parquet", "zip")


def upload(data, name):
    file = io.BytesIO(data)
    file.name = name
    return file


def written(points, form, folder):
    """Bytes of a GeoDataFrame in one of the forms."""
    if form == "zip":
        pyogrio.write_dataframe(points, folder / "points.shp", geometry_type="Point")
        with zipfile.ZipFile(folder / "points.zip", "w") as archive:
            for part in folder.glob("points.[!z]*"):
                archive.write(part, part.name)
    elif form == "parquet":
        points.to_parquet(folder / "points.parquet")
    elif form in ("geojson", "gpkg"):
        options = {"COORDINATE_PRECISION": 17} if form == "geojson" else {}
        pyogrio.write_dataframe(points, folder / f"points.{form}", geometry_type="Point", **options)
    else:
        table = pd.DataFrame(points.drop(columns="geometry")).assign(X=points.geometry.x, Y=points.geometry.y)
        if form == "plain.parquet":
            table.to_parquet(folder / f"points.{form}")
        else:
            plain = {"sep": "\t", "quoting": csv.QUOTE_NONE, "quotechar": "\1"} if form == "tsv" else {}
            table.to_csv(folder / f"points.{form}", index=False, **plain)
    return (folder / f"points.{form}").read_bytes()


@pytest.mark.parametrize("form", FORMS)
@few
@given(st.data())
def test_a_file_gives_the_counts_of_the_points_that_were_written(form, data):
    domain = data.draw(domains(crss=("EPSG:4326",) if form == "geojson" else ("EPSG:4326", "EPSG:32633")))
    x, y = data.draw(points_in(domain))
    rows = len(x)
    n = data.draw(st.lists(st.integers(0, 9), min_size=rows, max_size=rows))
    who = data.draw(st.lists(st.sampled_from(["a", "7", "007", "é", "x,y", 'q"q']), min_size=rows, max_size=rows))
    frame = gpd.GeoDataFrame(
        {"n": np.array(n, np.int64), "who": pd.Series(who, dtype=object)}, geometry=gpd.points_from_xy(x, y), crs=domain.crs
    )
    with tempfile.TemporaryDirectory() as folder:
        source = upload(written(frame, form, Path(folder)), f"points.{form}")
    crs = domain.crs if form in FORMS[:3] else None
    options = ({}, {"count": "n"}, {"person": "who", "key": b"k"}, {"count": "n", "person": "who", "contributions": 3, "key": b"k"})
    for chosen in options:
        found = read_points(source, domain=domain, crs=crs, **chosen)
        expected = PointCounts.from_xy(
            x, y, domain=domain, **{**chosen, **{key: {"n": n, "who": who}[chosen[key]] for key in ("count", "person") if key in chosen}}
        )
        np.testing.assert_array_equal(
            np.stack([found.column, found.row, found.count]), np.stack([expected.column, expected.row, expected.count])
        )
        assert found.dropped == expected.dropped


HEADS = {
    ".csv": [b"lon,lat\n", b"lon,lat,n\n1,2,3\n", b'"lon",lat\n"'],
    ".tsv": [b"lon\tlat\n"],
    ".geojson": [b'{"type":"FeatureCollection","features":[', b'{"type":"Feature","geometry":{'],
    ".json": [b'{"type":"FeatureCollection","features":', b"[", b'{"type":"Topology"'],
    ".gpkg": [b"SQLite format 3\0" + bytes(52) + b"GPKG"],
    ".parquet": [b"PAR1"],
    ".geoparquet": [b"PAR1"],
    ".zip": [b"PK\x03\x04", b"PK\x05\x06"],
}


@pytest.mark.parametrize("ending", FORMATS)
@more
@given(st.data())
def test_garbage_is_refused_and_nothing_else_happens(ending, data):
    garbage = data.draw(st.sampled_from([b"", *HEADS[ending]])) + data.draw(st.binary(max_size=300))
    for bad_rows in ("refuse", "drop"):
        refused_or_read(upload(garbage, "garbage" + ending), bad_rows=bad_rows)


def refused_or_read(source, **options):
    """The refusal's text, or None; any other exception gets through and fails the test, and so does a warning."""
    error = None
    try:
        inspect_points(source)
        read_points(source, domain=PLANE, **options)
    except InputError as refused:
        error = refused
    if error is None:
        return None
    assert (error.__cause__, error.__context__) == (None, None)
    return "".join(traceback.format_exception(error)) + repr(error.args)


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory):
    """Form -> bytes of a good file, to be damaged."""
    frame = gpd.GeoDataFrame({"n": [1, 2, 3], "who": ["a", "b", "c"]}, geometry=gpd.points_from_xy([1, 2, 3], [1, 2, 3]), crs="EPSG:4326")
    return {form: written(frame, form, tmp_path_factory.mktemp("whole")) for form in FORMS}


@pytest.mark.parametrize("form", FORMS)
@settings(few, max_examples=15)
@given(st.data())
def test_damaged_files_are_refused_or_read_and_nothing_else_happens(form, whole_files, data):
    content = bytearray(whole_files[form])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    source = upload(bytes(content), f"damaged.{form}")
    for bad_rows in ("refuse", "drop"):
        refused_or_read(source, bad_rows=bad_rows, count="n", person="who")


marked = st.text(st.characters(blacklist_categories=["Cs"]), max_size=12).map(lambda text: f"zq{text}zq")
dirty = st.one_of(marked, st.sampled_from(["", " ", "NaN", "inf", "-inf", "1e999", "1,5", "0x1F", "1_000", "True", "--1", "\u0661", "1\0"]))
cells = st.one_of(st.integers(0, 7).map(str), dirty)


def text_table(rows, names):
    return pd.DataFrame(rows, columns=names).to_csv(index=False).encode()


@more
@given(st.lists(st.tuples(cells, cells, cells, cells), min_size=1, max_size=12))
def test_cells_never_get_into_an_error(rows):
    source = upload(text_table(rows, ["lon", "lat", "n", "who"]), "dirty.csv")
    for options in ({}, {"count": "n"}, {"person": "who"}, {"x": "n"}):
        assert "zq" not in (refused_or_read(source, **options) or "")


@more
@given(st.lists(st.tuples(cells, cells, cells, cells), max_size=12))
def test_dropping_never_raises_because_of_rows(rows):
    rows = [("1", "2", "3", "a"), *rows]  # one good row, so that no column is wholly text
    source = upload(text_table(rows, ["lon", "lat", "n", "who"]), "dirty.csv")
    points = read_points(source, domain=PLANE, bad_rows="drop")
    assert points.count.sum() + points.dropped == len(rows)
    for options in ({"count": "n"}, {"person": "who", "contributions": 50}, {"count": "n", "person": "who"}):
        assert read_points(source, domain=PLANE, bad_rows="drop", **options).count.sum() >= 1


@more
@given(
    st.lists(
        st.one_of(
            st.sampled_from([b"1,2,3,a", b"7.5,0,0,b", b"1,2", b"", b"1,2,3,a,5", b'"', b'1,"2,3,a', b"\xff,1,1,c", b"1,2,3,\xe9"]),
            st.binary(max_size=20),
        ),
        max_size=10,
    )
)
def test_dropping_never_raises_because_of_lines(lines):
    content = b"\n".join([b"lon,lat,n,who", b"1,2,3,a", *lines, b""])
    points = read_points(upload(content, "dirty.csv"), domain=PLANE, bad_rows="drop", count="n", person="who")
    assert points.count.sum() >= 1


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.integers(0, 7), marked),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(marked, inner, max_size=2),
    max_leaves=4,
)
geometries = st.one_of(json_values, st.fixed_dictionaries({"type": st.sampled_from(["Point", "Polygon"]), "coordinates": json_values}))
features = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {"type": st.just("Feature"), "geometry": geometries, "properties": st.fixed_dictionaries({"n": json_values, "who": json_values})}
    ),
)


@more
@given(st.lists(features, max_size=6))
def test_dropping_never_raises_because_of_features(others):
    good = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"n": 3, "who": "a"}}
    content = json.dumps({"type": "FeatureCollection", "features": [good, *others]})
    source = upload(content.encode(), "dirty.geojson")
    for options in ({}, {"count": "n"}, {"person": "who"}):
        points = read_points(source, domain=PLANE, bad_rows="drop", **options)
        assert points.count.sum() >= 1
        message = refused_or_read(source, bad_rows="refuse", **options)
        assert "zq" not in (message or "")


def test_these_tests_see_warnings_as_errors():
    with pytest.raises(UserWarning, match="seen"):
        warnings.warn("seen", stacklevel=1)

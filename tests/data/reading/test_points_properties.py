"""Round trips and dirty cells: what must hold for every file, not only for the examples."""

import tempfile
import warnings
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.counting.files import read_points
from dpviz.data.points import PointCounts
from dpviz.data.reading.points import inspect_points
from tests.data.reading.files import PLANE, TABLES, read_or_refused, stored
from tests.strategies import domains, points_in

few = settings(max_examples=6, deadline=None, derandomize=True, database=None)
more = settings(max_examples=30, deadline=None, derandomize=True, database=None)
FORMS = (*TABLES, "geojson", "gpkg", "parquet", "zip")


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
        source = stored(frame, form, Path(folder), geometry_type="Point")
    crs = domain.crs if form in TABLES else None
    options = ({}, {"count": "n"}, {"person": "who", "key": b"k"}, {"count": "n", "person": "who", "contributions": 3, "key": b"k"})
    for chosen in options:
        found = read_points(source, domain=domain, crs=crs, **chosen)
        columns = {key: {"n": n, "who": who}[chosen[key]] for key in ("count", "person") if key in chosen}
        expected = PointCounts.from_xy(x, y, domain=domain, **chosen | columns)
        for name in ("column", "row", "count"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert found.dropped == expected.dropped


marked = st.text(st.characters(blacklist_categories=["Cs"]), max_size=12).map(lambda text: f"zq{text}zq")
dirty = st.one_of(marked, st.sampled_from(["", " ", "NaN", "inf", "-inf", "1e999", "1,5", "0x1F", "1_000", "True", "--1", "\u0661", "1\0"]))
cells = st.one_of(st.integers(0, 7).map(str), dirty)


def dirty_table(rows):
    return stored(pd.DataFrame(rows, columns=["lon", "lat", "n", "who"]), "csv")


@more
@given(st.lists(st.tuples(cells, cells, cells, cells), min_size=1, max_size=12))
def test_cells_are_in_no_error_and_beside_a_good_row_none_is_raised_under_drop(rows):
    source, beside = dirty_table(rows), dirty_table([("1", "2", "3", "a"), *rows])
    assert "zq" not in read_or_refused(inspect_points, source)
    for options in ({}, {"count": "n"}, {"person": "who", "contributions": 50}, {"count": "n", "person": "who"}, {"x": "n"}):
        assert "zq" not in read_or_refused(read_points, source, domain=PLANE, **options)
        points = read_points(beside, domain=PLANE, bad_rows="drop", **options)
        assert points.count.sum() >= 1
        assert "count" in options or points.count.sum() + points.dropped == len(rows) + 1


def test_these_tests_see_warnings_as_errors():
    with pytest.raises(UserWarning, match="seen"):
        warnings.warn("seen", stacklevel=1)

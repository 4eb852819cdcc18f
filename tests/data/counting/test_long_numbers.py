"""A text of more than 400 characters is no number, whatever reads it: time to convert one can grow with the square of its length."""

import json

import numpy as np
import pandas as pd
import pytest

import dpviz as dv
from dpviz.data.reading.inspect import find_repeated_columns
from dpviz.data.reading.sources import find_files
from dpviz.errors import DpvizError
from tests.data.reading.files import PLANE, TOWNS, refused, stored, text

LONGEST, LONGER, HUGE = "7".zfill(400), "7".zfill(401), "9" * 400_000
ENGINES = ("numpy", "duckdb")


def written(table, form, folder):
    """The path of a table whose cells are texts."""
    path = folder / f"table.{'parquet' if form == 'plain' else form}"
    path.write_bytes(stored(table, form).getvalue())
    return path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["csv", "plain"])
@pytest.mark.parametrize(("cell", "bad"), [(LONGEST, 0), (LONGER, 1), (HUGE, 1), (f"0.{HUGE}", 1)])
def test_a_long_text_is_a_bad_count_or_coordinate_on_every_engine(tmp_path, cell, bad, engine, form):
    points = written(pd.DataFrame({"lon": ["1", "2"], "lat": ["1", "2"], "n": ["3", cell]}), form, tmp_path)
    counted = dv.read_points(points, domain=PLANE, count="n", bad_rows="drop", engine=engine)
    assert (counted.count.tolist(), counted.bad) == ([3] if bad else [3, 7], bad)
    x = written(pd.DataFrame({"lon": [cell, "2"], "lat": ["1", "2"]}), form, tmp_path)
    assert dv.read_points(x, domain=PLANE, bad_rows="drop", engine=engine).bad == bad
    trips = written(pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "count": ["3", cell]}), form, tmp_path)
    trip_counts = dv.read_trips(trips, regions=TOWNS, bad_rows="drop", engine=engine)
    assert (trip_counts.count.tolist(), trip_counts.bad) == ([3] if bad else [3, 7], bad)
    areas = written(pd.DataFrame({"town": ["a", "b"], "count": ["3", cell]}), form, tmp_path)
    assert dv.read_areas(areas, regions=TOWNS, region="town", count="count", bad_rows="drop", engine=engine).bad == bad


def test_a_long_number_of_geojson_is_bad_in_its_own_feature():
    def feature(x, n):
        return f'{{"type": "Feature", "geometry": {{"type": "Point", "coordinates": [{x}, 1]}}, "properties": {{"n": {n}}}}}'

    places, numbers = ("1.5", f"1.{HUGE}", HUGE, "1.5", "1.5"), ("1", "1", "1", f"1.{'0' * 400}", json.dumps(LONGER))
    upload = text(f'{{"type": "FeatureCollection", "features": [{",".join(map(feature, places, numbers))}]}}', "a.geojson")
    counted = dv.read_points(upload, domain=dv.Domain(bounds=(0, 0, 8, 8), crs="EPSG:4326", order=3), count="n", bad_rows="drop")
    assert (counted.count.tolist(), counted.bad) == ([1], 4)


def test_tables_in_memory_and_guesses_of_persons_take_long_texts_and_numbers():
    frame = pd.DataFrame(
        {"origin": ["a"] * 4, "destination": ["b"] * 4, "count": [10**5000, -(10**5000), np.float64(2), HUGE]}, dtype=object
    )
    assert dv.TripCounts.from_table(frame, regions=TOWNS, bad_rows="drop").bad == 2
    assert refused(dv.read_points, {"x": [1.0], "y": np.array([LONGER], object)}, domain=PLANE)
    upload = text("lon,lat,who\n" + "".join(f"1,1,{HUGE[number % 9 :]}\n" for number in range(90)))
    assert [column.name for column in find_repeated_columns(find_files(upload))] == ["who"]


@pytest.mark.parametrize("read", [lambda: dv.PureBudget(HUGE), lambda: dv.PureBudget("1" + LONGEST)])
def test_a_long_text_is_no_budget(read):
    with pytest.raises(DpvizError, match="ordinary size"):
        read()

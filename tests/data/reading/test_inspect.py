"""Columns that may say who a row belongs to are found by their content, whatever they are called and however they are stored."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpviz.data.reading import inspect as module
from dpviz.data.reading.inspect import find_repeated_columns
from dpviz.data.reading.sources import find_files
from tests.data.reading.files import GEOMETRIES, TABLES, frame, stored, text

ROWS = 600
RNG = np.random.default_rng(5)
TRACKS = pd.DataFrame(
    {
        "lon": RNG.uniform(0, 1, ROWS),
        "lat": RNG.uniform(0, 1, ROWS),
        "Fahrzeug-ID": np.repeat(["B-MW 11", "B-MW 12", "B-MW 13"], ROWS // 3),
        "véhicule": RNG.integers(10_000, 10_060, ROWS),
        "車": RNG.integers(0, 40, ROWS).astype(float),  # whole numbers that were stored as floats
        "Geschlecht": RNG.choice(["w", "m"], ROWS),
        "vitesse": RNG.integers(0, 600, ROWS) / 10,
        "time": pd.date_range("2024-01-01", periods=ROWS, freq="s").astype(str),
        "day": np.repeat([f"2024-01-0{day}" for day in range(1, 7)], ROWS // 6),
        "Uhrzeit": np.tile([f"{hour:02}:30" for hour in range(20)], ROWS // 20),
        "unique": [f"note {number}" for number in range(ROWS)],
    }
)


def found(path, **options):
    columns = find_repeated_columns(find_files(path), **options)
    return None if columns is None else [(column.name, column.values, column.rows) for column in columns]


def written(folder, ending, table=TRACKS):
    path = folder / f"tracks.{ending}"
    if ending == "parquet":
        table.to_parquet(path, index=False)
    elif ending == "geojson":
        gpd.GeoDataFrame(table, geometry=gpd.points_from_xy(table.lon, table.lat), crs="EPSG:4326").to_file(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",", quoting=1 if ending == "csv" else 0)  # csv: quoted ids
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "geojson"])
def test_ids_are_found_by_content_and_times_measurements_and_unique_texts_are_not(tmp_path, ending):
    names = [(name, values) for name, values, rows in found(written(tmp_path, ending)) if rows == ROWS]
    assert sorted(names) == sorted((name, TRACKS[name].nunique()) for name in ("Fahrzeug-ID", "véhicule", "車", "Geschlecht"))
    assert (names[0], names[-1]) == (("Fahrzeug-ID", 3), ("Geschlecht", 2))


@pytest.mark.parametrize("form", [*TABLES, *GEOMETRIES])
def test_every_format_is_looked_at(tmp_path, form):
    assert found(stored(frame(), form, tmp_path)) == [("user", 3, 4)]


def test_columns_that_are_used_otherwise_are_passed_over_and_without_others_nothing_is_looked_at(tmp_path):
    path = written(tmp_path, "csv")
    assert "véhicule" not in [name for name, *_ in found(path, but=("Véhicule",))]
    assert "3" not in repr(find_repeated_columns(find_files(path))[0]), "no number is in the repr"
    assert found(written(tmp_path, "parquet", TRACKS[["lon", "lat", "vitesse"]]), but=("vitesse",)) is None
    assert found(written(tmp_path, "csv", TRACKS[["lon", "lat"]])) is None


def test_types_that_are_no_ids_and_missing_cells_are_not_counted(tmp_path):
    table = {"when": pa.array([1, 1, 2, 2], pa.timestamp("s")), "yes": [True, False] * 2, "several": [[1], [1], [2], [2]]}
    table |= {"packed": pa.array(["a", "a", "b", None]).dictionary_encode(), "none": pa.nulls(4, pa.string())}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    assert found(tmp_path / "a.parquet") == [("packed", 2, 3)]


def test_large_files_are_looked_at_from_their_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    monkeypatch.setattr(module, "MOST_BYTES", 2000)
    monkeypatch.setattr(module, "_BATCH", 50)
    for ending in ("parquet", "csv"):
        first = find_repeated_columns(find_files(written(tmp_path, ending)))[0]
        assert first.name == "Fahrzeug-ID"
        assert first.rows <= 100
        assert first.consequence == f"1 value, the first {first.rows} rows: publishing by record would not hide it"


def test_several_files_are_looked_at_together():
    assert found([text(f"lon,lat,who\n{number},2,a\n", f"{number}.csv") for number in (1, 2)]) == [("who", 1, 2)]

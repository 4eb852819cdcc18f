"""Counts know the files that they were read from, whatever engine reads them and however they come."""

import io

import pandas as pd
import pytest

from dpviz.data.counting.file_fingerprints import content_fingerprint, file_fingerprints
from dpviz.data.counting.files import read_points
from dpviz.space.domain import Domain

PLANE = Domain(bounds=(0, 0, 8, 8), crs=None, order=3)


@pytest.mark.parametrize("engine", ["numpy", "duckdb", "dask"])
def test_counts_of_files_have_the_fingerprints_of_those_with_rows(tmp_path, engine):
    for name, text in (("a", "x,y\n1,2\n"), ("b", "x,y\n3,4\n"), ("c", "x,y\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    points = read_points(str(tmp_path / "*.csv"), domain=PLANE, engine=engine)
    assert points.fingerprints.files == file_fingerprints([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert len(points.fingerprints.files) == 2


def test_an_upload_has_the_fingerprint_of_its_bytes_and_a_table_in_memory_has_none():
    upload = io.BytesIO(b"x,y\n1,2\n")
    upload.name = "homes.csv"
    assert read_points(upload, domain=PLANE).fingerprints.files == (content_fingerprint(upload.getvalue()),)
    assert read_points(pd.DataFrame({"x": [1], "y": [2]}), domain=PLANE).fingerprints.files == ()

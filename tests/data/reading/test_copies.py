"""Files of equal content: refused when they are first loaded, said where one record could decide about it."""

import numpy as np
import pandas as pd
import pytest

from dpviz.data.counting.files import read_flows, read_points
from dpviz.data.reading import sources as copies
from dpviz.data.reading.sources import describe_copies, find_copies, find_files
from dpviz.errors import InputError
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from tests.data.reading.files import text

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
ROWS = pd.DataFrame({"lon": np.arange(9) + 0.5, "lat": 0.5})


@pytest.fixture
def folder(tmp_path):
    """Two part files, and a copy of one of them."""
    for name, part in (("d", ROWS), ("d (1)", ROWS), ("e", ROWS[::-1])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
        part.to_parquet(tmp_path / f"{name}.parquet", index=False)
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_a_copy_is_refused_and_under_drop_both_count(folder, ending, engine):
    every = str(folder / f"*.{ending}")
    with pytest.raises(InputError) as refused:
        read_points(every, domain=PLANE, engine=engine)
    assert all(f"'{name}.{ending}'" in str(refused.value) for name in ("d", "d (1)"))
    assert read_points(every, domain=PLANE, engine=engine, bad_rows="drop").count.sum() == 27
    (told,) = describe_copies(find_files(every))
    assert f"'d (1).{ending}' and 'd.{ending}'" in told


def test_trips_and_uploads_are_no_different():
    regions = Regions.from_prefixes(["1", "2"], lengths=[1], levels=["state"])
    one, two = (text("from,to,count\n1,2,3\n", name) for name in ("a.csv", "b.csv"))
    with pytest.raises(InputError, match=r"'a.csv' and 'b.csv'"):
        read_flows([one, two], regions=regions)
    assert read_flows([one, two], regions=regions, bad_rows="drop").count.tolist() == [6]


def test_a_link_is_no_copy(folder):
    (folder / "link.csv").hardlink_to(folder / "e.csv")
    (folder / "d (1).csv").unlink()
    assert read_points(str(folder / "*.csv"), domain=PLANE).count.sum() == 18


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_empty_parts_are_no_copies(folder, ending):
    for number in range(3):
        empty = ROWS.iloc[:0]
        path = folder / f"empty{number}.{ending}"
        empty.to_csv(path, index=False) if ending == "csv" else empty.to_parquet(path, index=False)
    (folder / f"d (1).{ending}").unlink()
    assert read_points(str(folder / f"*.{ending}"), domain=PLANE).count.sum() == 18


def test_files_are_compared_up_to_where_they_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "_BLOCK_BYTES", 8)
    read, reads = copies._read_block, []
    monkeypatch.setattr(copies, "_read_block", lambda source, begin: reads.append((source.name, begin)) or read(source, begin))
    for name, row in (("a", "1,2\n5,6\n"), ("b", "3,4\n5,6\n"), ("c", "3,4\n7,8\n"), ("d", "3,4\n5,6\n"), ("e", "1,2\n")):
        (tmp_path / f"{name}.csv").write_text(f"lon,lat\n{row}")
    assert find_copies(find_files(str(tmp_path / "*.csv"))) == [("b.csv", "d.csv")]
    assert ("e.csv", 0) not in reads
    assert ("a.csv", 8) in reads
    monkeypatch.setattr(copies, "_BLOCK_BYTES", 12)
    reads.clear()
    find_copies(find_files(str(tmp_path / "*.csv")))
    assert ("a.csv", 12) not in reads

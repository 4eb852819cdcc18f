"""Mistakes found before anything is spent: copies, files without rows, coordinates in other units than the bounds."""

import pandas as pd
import pytest

from dpviz.cli.check import check
from dpviz.data.counting.files import read_points
from dpviz.errors import DomainError, InputError
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.config import from_tables, read_config
from dpviz.publishing.private_data import open_data, open_frame
from dpviz.space.domain import Domain
from tests.publishing.configs import CROWD, FLOWS, POINTS, changed, written


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    (tmp_path / "ledger").mkdir()
    monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "ledger" / "ledger.sqlite"))
    return Ledger()


def opened(folder, tables, bad_rows="drop"):
    config = read_config(written(folder, tables))
    return open_data(config, open_frame(config), bad_rows=bad_rows)


@pytest.fixture
def parts(tmp_path):
    """The crowd, a copy of it, and two empty parts."""
    (tmp_path / "d").mkdir()
    for name, rows in (("a", CROWD), ("a (1)", CROWD), ("b", CROWD.iloc[:0]), ("c", CROWD.iloc[:0])):
        rows.to_csv(tmp_path / "d" / f"{name}.csv", index=False)
    return changed(POINTS, "data.points", "d/*.csv")


def test_a_copy_is_refused_by_check_and_named_by_a_release(run, tmp_path, parts):
    with pytest.raises(InputError, match=r"'a \(1\).csv' and 'a.csv' have the same content"):
        check(tmp_path / "d" / "*.csv")
    with pytest.raises(InputError, match="have the same content"):
        opened(tmp_path, parts, "refuse")
    code, out, err = run("release", written(tmp_path, parts), "--json")
    assert code == 0
    assert "Curator only: the files 'a (1).csv' and 'a.csv' have the same content, and all of them were counted" in err
    assert (
        "have the same content"
        not in out + (tmp_path / "out" / "manifest.json").read_text() + (tmp_path / "out" / "report.html").read_text()
    )


def test_empty_files_have_no_fingerprint(tmp_path, parts):
    one = opened(tmp_path, parts)
    (tmp_path / "d" / "a.csv").write_text("lon,lat,secret\n3,3,x\n")
    (tmp_path / "d" / "a (1).csv").write_text("lon,lat,secret\n4,4,x\n")
    other = opened(tmp_path, parts)
    assert not {*one.fingerprints} & {*other.fingerprints}
    assert (len(one.of_files), len(other.of_files)) == (1, 2)


METRES = "lon,lat\n385000,3768000\n391000,3771000\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("lon,lat\n", "There is no record"),
        (METRES, "are x and y swapped"),
        ("lon,lat\n1,99\n,1\n", "all are unreadable"),
    ],
)
@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_data_without_records_are_refused_unless_declared(run, tmp_path, ledger, content, told, engine):
    (tmp_path / "a.csv").write_text(content)
    tables = changed(POINTS, "data", {"points": "a.csv", "engine": engine})
    for words in ((), ("--dry-run",)):
        code, out, err = run("release", written(tmp_path, tables), *words)
        assert (code, out) == (2, "")
        assert told in err
    assert not (tmp_path / "out").exists()
    assert ledger.accounts() == []
    assert run("release", written(tmp_path, changed(tables, "data.may_be_empty", True)))[0] == 0


def test_trips_outside_the_regions_are_refused(tmp_path):
    tables = changed(FLOWS, "data.trips", "moves.csv")
    (tmp_path / "moves.csv").write_text("from,to,count\nx,y,3\n")
    with pytest.raises(InputError, match="No trip runs between the regions"):
        opened(tmp_path, tables)


@pytest.mark.parametrize("crs", ["EPSG:32611", "EPSG:3857", "EPSG:2263"])
def test_bounds_in_degrees_do_not_go_with_a_crs_in_metres(tmp_path, crs):
    bounds = [-118.7, 33.7, -117.8, 34.4]
    with pytest.raises(DomainError, match="look like degrees"):
        from_tables(changed(POINTS, "domain", {"bounds": bounds, "crs": crs}))
    with pytest.raises(DomainError, match="look like degrees"):
        read_points(str(tmp_path / "never read.csv"), domain=Domain(bounds=bounds, crs=crs), crs=crs)
    metres = {"bounds": [380000, 3700000, 400000, 3800000], "crs": "EPSG:32611"}
    assert from_tables(changed(POINTS, "domain", metres)).domain.domain().order == 10


def test_a_release_with_one_record_inside_shows_no_other_count(tmp_path):
    """A release runs with a single record inside: how many lie outside is for the curator's eyes only."""
    pd.DataFrame({"lon": [1.5, 385000.0], "lat": [1.5, 3768000.0]}).to_csv(tmp_path / "a.csv", index=False)
    found = opened(tmp_path, changed(POINTS, "data.points", "a.csv"))
    assert (found.data.count.sum(), found.data.outside) == (1, 1)

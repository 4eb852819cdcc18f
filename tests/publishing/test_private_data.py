"""Data are found relative to the configuration's folder and recognised by their content; mistakes are found before anything is spent."""

import io
from dataclasses import replace

import geopandas
import pytest

from dpviz.cli.check import check
from dpviz.data.counting.file_fingerprints import content_fingerprint, file_fingerprints
from dpviz.data.counting.files import read_points
from dpviz.data.counting.job import Progress
from dpviz.data.fingerprints import UNKNOWN
from dpviz.data.points import PointCounts
from dpviz.errors import DomainError, InputError
from dpviz.publishing import private_data as opening
from dpviz.publishing.config import from_tables, read_config
from dpviz.publishing.private_data import fingerprints_of, left_out
from dpviz.samples.trips import load_trip_sample
from dpviz.space.domain import Domain
from tests.publishing.configs import CROWD, FLOWS, POINTS, TRIPS, changed, counted, data_of, frame_of, opened, parts, per_person, written

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
PUBLIC = PointCounts.from_xy([1.5, 1.5], [2.5, 2.5], domain=PLANE)


def test_points_and_trips_come_from_the_folder_of_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    points, trips = opened(tmp_path, POINTS).data, opened(tmp_path, FLOWS).data
    assert (points.count.tolist(), points.dropped) == ([2, 1, 1], 1)
    assert (trips.count.tolist(), trips.dropped) == ([900, 40, 500], 7)
    with pytest.raises(InputError):
        opened(tmp_path, FLOWS, bad_rows="refuse")


@pytest.mark.parametrize("encoding", ["utf-16", "windows-1252"])
def test_text_tables_are_read_as_the_configuration_declares(tmp_path, encoding):
    declared = {"separator": ";", "decimal": ",", "encoding": encoding}
    CROWD.to_csv(tmp_path / "crowd_zurück.csv", index=False, sep=";", decimal=",", encoding=encoding)
    found = opened(tmp_path, changed(POINTS, "data", {"points": "crowd_*.csv", **declared})).data
    assert (found.count.tolist(), found.dropped) == ([2, 1, 1], 1)
    with pytest.raises(InputError, match=r"declare"):
        opened(tmp_path, changed(POINTS, "data", {"points": "crowd_*.csv"}))
    TRIPS.to_csv(tmp_path / "trips_.csv", index=False, sep=";", encoding=encoding)
    found = opened(tmp_path, changed(FLOWS, "data", {"trips": "trips_.csv", **declared})).data
    assert (found.count.tolist(), found.dropped) == ([900, 40, 500], 7)
    (tmp_path / "empty.csv").write_text("lon;lat\n", encoding)
    with pytest.raises(InputError, match="There is no record: do the files have rows after their headers"):
        opened(tmp_path, changed(POINTS, "data", {"points": "empty.csv", **declared}))


def test_shapes_are_read_as_the_configuration_declares(tmp_path):
    crowd = geopandas.GeoDataFrame(CROWD, geometry=geopandas.points_from_xy(CROWD["lon"], CROWD["lat"]))
    CROWD.assign(wkt=crowd.geometry.to_wkt()).drop(columns=["lon", "lat"]).to_csv(tmp_path / "wkt.csv", index=False)
    crowd.assign(geometry=crowd.geometry.buffer(1, quad_segs=4).where(CROWD["lon"] < 2, crowd.geometry)).to_parquet(
        tmp_path / "discs.parquet"
    )
    for data in ({"points": "wkt.csv", "geometry": "wkt"}, {"points": "discs.parquet", "centroids": True}):
        found = opened(tmp_path, changed(POINTS, "data", data)).data
        assert (found.count.tolist(), found.dropped) == ([2, 1, 1], 1)


@pytest.mark.parametrize("share", ["//far/crowd.csv", r"\\\\far\crowd.csv", r"\/far/*.csv", "http://far/crowd.csv"])
@pytest.mark.parametrize(("tables", "key"), [(POINTS, "data.points"), (FLOWS, "data.trips"), (FLOWS, "regions.file")])
def test_nothing_on_another_computer_is_opened(tmp_path, share, tables, key):
    with pytest.raises(InputError, match=r"network share|URLs"):
        opened(tmp_path, changed(tables, key, share))


def test_coarser_regions_by_the_first_characters_of_ids(tmp_path):
    (tmp_path / "codes.csv").write_text("code\nAa\nAb\nBc\n", "utf-8")
    config = read_config(written(tmp_path, changed(FLOWS, "regions", {"file": "codes.csv", "levels": ["code"], "prefixes": [1]})))
    assert [side.ids_of(1).tolist() for side in frame_of(config)] == [["A", "B"], ["A", "B"]]


def test_the_same_records_elsewhere_share_one_mark(tmp_path):
    first = opened(tmp_path, POINTS)
    CROWD.sample(frac=1, random_state=1).to_parquet(tmp_path / "other.parquet")
    for path, value in (("data.points", "other.parquet"), ("domain.order", 3)):
        second = opened(tmp_path, changed(POINTS, path, value))
        assert len(set(first.fingerprints) & set(second.fingerprints)) == 1
        assert len(set(first.fingerprints) | set(second.fingerprints)) == 3


def test_a_sample_shares_a_mark_on_every_domain_and_only_with_its_size(tmp_path):
    plain = changed(changed(POINTS, "data", {"sample": "gaussian_cluster", "size": 50}), "domain", None)
    other = plain | {"domain": {"bounds": [0, 0, 1024, 1024], "crs": "none", "order": 2}}
    first, second = opened(tmp_path, plain), opened(tmp_path, other)
    assert (first.data.domain.order, second.data.domain.order) == (10, 2)
    assert len(set(first.fingerprints) & set(second.fingerprints)) == 1
    assert not set(first.fingerprints) & set(opened(tmp_path, changed(other, "data.size", 51)).fingerprints)


def test_counts_have_a_fingerprint_unless_they_are_chance_or_nothing():
    more, empty = PointCounts.from_xy([1.5] * 3, [2.5] * 3, domain=PLANE), PUBLIC.without_records()
    assert not set(fingerprints_of(PUBLIC, files=["a"])) & set(fingerprints_of(more, files=["b"]))
    bounded = replace(PUBLIC, unit="person", contributions=2)
    assert fingerprints_of(bounded, files=["a"]) == ("a",)
    assert fingerprints_of(empty, files=["a"]) == ("a",)
    assert len(fingerprints_of(empty)) == 1


def test_rows_of_persons_are_recognised_beside_their_counts_unless_there_is_none():
    people = PointCounts.from_xy([1.5, 1.5], [2.5, 2.5], domain=PLANE, person=["a", "a"])
    assert fingerprints_of(people) == (*people.fingerprints.rows, *fingerprints_of(replace(people, fingerprints=UNKNOWN)))
    outside = [PointCounts.from_xy([x], [99], domain=PLANE, person=["a"]) for x in (1, 2)]
    assert [len(fingerprints_of(each)) for each in outside] == [2, 2]
    assert fingerprints_of(outside[0]) != fingerprints_of(outside[1])
    assert people.without_records().fingerprints == people.made_up().fingerprints == UNKNOWN, "what is public has no private mark"


def test_fingerprints_are_digests_and_are_not_shown(tmp_path):
    found = opened(tmp_path, POINTS)
    assert all(len(mark) == 64 and set(mark) <= set("0123456789abcdef") for mark in found.fingerprints)
    assert not any(mark in repr(found) for mark in found.fingerprints)
    assert "4" not in repr(found).partition("PointCounts")[2].replace("order=4", "")


def test_emptied_keeps_what_is_public_and_nothing_else():
    empty = replace(PUBLIC, unit="person", contributions=3, dropped=8).without_records()
    assert (empty.domain, empty.unit, empty.contributions, len(empty.count), empty.dropped) == (PLANE, "person", 3, 0, 0)
    trips = replace(load_trip_sample("northeast_commuters"), exactly=True, notes=("a total",), dropped=3)
    empty = trips.without_records()
    assert (empty.regions, empty.exactly, len(empty.count), empty.notes, empty.dropped) == (trips.regions, True, 0, (), 0)


def test_the_folders_own_name_is_no_pattern(tmp_path):
    folder = tmp_path / "[a]*"
    folder.mkdir()
    parts(folder)
    assert counted(folder, {"points": "parts/*.parquet"}).data.count.sum() == 60
    CROWD.iloc[:2].to_csv(folder / "[b].csv")
    assert counted(folder, {"points": "[b].csv"}).data.count.sum() == 2


def test_several_files_have_the_fingerprints_of_each_whatever_their_order_and_names(tmp_path):
    folder = parts(tmp_path)
    together, names = counted(tmp_path, {"points": "parts/*.parquet"}).fingerprints, [f"parts/{number}.parquet" for number in range(3)]
    for name in names:
        alone = set(counted(tmp_path, {"points": name}).fingerprints)
        assert alone & set(together) == {content_fingerprint((tmp_path / name).read_bytes())}
    assert counted(tmp_path, {"points": names}).fingerprints == counted(tmp_path, {"points": names[::-1]}).fingerprints == together
    (folder / "0.parquet").rename(folder / "9.parquet")
    renamed = counted(tmp_path, {"points": "parts"})
    assert renamed.fingerprints == together
    assert list(renamed.data.fingerprints.files) == sorted(renamed.data.fingerprints.files), "their order says nothing about names"


def test_large_files_are_read_piece_by_piece(tmp_path, monkeypatch):
    path = tmp_path / "large"
    path.write_bytes(bytes(range(256)) * 100)
    monkeypatch.setattr("dpviz.data.counting.file_fingerprints._PIECE_BYTES", 1000)
    seen = []
    assert file_fingerprints([path], Progress(progress=seen.append)) == (content_fingerprint(path.read_bytes()),)
    assert seen == sorted(seen)
    assert (len(seen), seen[-1]) == (26, 1.0)


def test_a_file_that_is_written_meanwhile_is_refused(tmp_path, monkeypatch):
    folder = parts(tmp_path, "csv")

    def read_points(*given, counted=opening.read_points, **options):
        with (folder / "1.csv").open("a") as file:
            file.write("1,1,1\n")
        return counted(*given, **options)

    monkeypatch.setattr(opening, "read_points", read_points)
    with pytest.raises(InputError, match="changed while it was read"):
        counted(tmp_path, {"points": "parts/*.csv"})


@pytest.fixture
def copies(tmp_path):
    """The crowd, a copy of it by another name, and two empty parts."""
    (tmp_path / "d").mkdir()
    for name, rows in (("a", CROWD), ("z", CROWD), ("b", CROWD.iloc[:0]), ("c", CROWD.iloc[:0])):
        rows.to_csv(tmp_path / "d" / f"{name}.csv", index=False)
    return changed(POINTS, "data.points", "d/*.csv")


def test_equal_content_is_refused_by_check_and_decides_no_release_without_a_person(run, tmp_path, copies):
    with pytest.raises(InputError, match=r"'a.csv' and 'z.csv' have the same content"):
        check(tmp_path / "d" / "*.csv")
    assert check(tmp_path / "d" / "*.csv", copies=True)["files"] == 4
    with pytest.raises(InputError, match="have the same content"):
        opened(tmp_path, copies, "refuse")
    code, out, err = run("release", written(tmp_path, copies), "--json")
    assert code == 0
    assert "Curator only: the files 'a.csv' and 'z.csv' have the same content" in err
    assert "or give --copies" in err
    public = [out, *((tmp_path / "out" / name).read_text() for name in ("manifest.json", "report.html"))]
    assert "have the same content" not in "".join(public)


@pytest.mark.parametrize("answer", ["yes", "no", ""])
def test_a_terminal_confirms_equal_content_before_anything_is_paid(run, tmp_path, ledger, copies, monkeypatch, answer):
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    code, _, err = run("release", written(tmp_path, copies))
    assert "Are all of these files to count?" in err
    assert (code, len(ledger.accounts())) == ((0, 1) if answer == "yes" else (1, 0))


@pytest.mark.parametrize("how", ["flag", "key"])
def test_copies_are_declared_by_a_flag_or_a_key_and_nobody_is_asked(run, tmp_path, copies, monkeypatch, how):
    (tmp_path / "d" / "a.csv").rename(tmp_path / "d" / "z - Copy.csv")
    code, _, err = run("release", written(tmp_path, copies), "--dry-run")
    assert code == 2
    assert all(part in err for part in ("By their names, 'z - Copy.csv' and 'z.csv'", "write copies = true under [data], or give --copies"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    tables, flags = (copies, ["--copies"]) if how == "flag" else (changed(copies, "data.copies", True), [])
    code, _, err = run("release", written(tmp_path, tables), *flags)
    assert (code, "Curator only" in err) == (0, False)


def test_empty_files_have_no_fingerprint(tmp_path, copies):
    one = opened(tmp_path, copies)
    (tmp_path / "d" / "a.csv").write_text("lon,lat,secret\n3,3,x\n")
    (tmp_path / "d" / "z.csv").write_text("lon,lat,secret\n4,4,x\n")
    other = opened(tmp_path, copies)
    assert not {*one.fingerprints} & {*other.fingerprints}
    assert (len(one.data.fingerprints.files), len(other.data.fingerprints.files)) == (1, 2)


@pytest.mark.parametrize(
    ("tables", "content", "message"),
    [
        (POINTS, "lon,lat\n", "There is no record"),
        (POINTS, "lon,lat\n385000,3768000\n391000,3771000\n", "are x and y swapped"),
        (changed(POINTS, "data.engine", "duckdb"), "lon,lat\n1,99\n,1\n", "all are unreadable"),
        (FLOWS, "from,to,count\nx,y,3\n", "No trip runs between the regions"),
    ],
)
def test_data_without_records_are_refused_unless_declared(run, tmp_path, ledger, tables, content, message):
    (tmp_path / "a.csv").write_text(content)
    tables = changed(tables, "data.trips" if tables is FLOWS else "data.points", "a.csv")
    code, out, err = run("release", written(tmp_path, tables))
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "out").exists()
    assert ledger.accounts() == []
    assert run("release", written(tmp_path, changed(tables, "data.may_be_empty", True)))[0] == 0


def test_files_that_only_numpy_can_read_are_counted_by_it_unless_another_engine_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("dpviz.data.reading.sources.memory_bytes", lambda: 1000)
    homes = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([1.5, 2.5, 9.0], [1.5] * 3), crs="EPSG:4326")
    homes.to_crs("EPSG:3857").to_parquet(tmp_path / "homes.parquet")
    tables = changed(changed(POINTS, "data.points", "homes.parquet"), "domain.crs", "EPSG:4326")
    found = opened(tmp_path, tables)
    assert (found.engine, found.data.count.sum()) == ("numpy", 3)
    with pytest.raises(InputError, match="engine='numpy'"):
        opened(tmp_path, changed(tables, "data.engine", "duckdb"))


@pytest.mark.parametrize("crs", ["EPSG:32611", "EPSG:3857", "EPSG:2263"])
def test_bounds_in_degrees_do_not_go_with_a_crs_in_metres(tmp_path, crs):
    bounds = [-118.7, 33.7, -117.8, 34.4]
    with pytest.raises(DomainError, match="look like degrees"):
        from_tables(changed(POINTS, "domain", {"bounds": bounds, "crs": crs}))
    with pytest.raises(DomainError, match="look like degrees"):
        read_points(str(tmp_path / "never read.csv"), domain=Domain(bounds=bounds, crs=crs), crs=crs)
    metres = {"bounds": [380000, 3700000, 400000, 3800000], "crs": "EPSG:32611"}
    assert from_tables(changed(POINTS, "domain", metres)).domain.domain().order == 10


def test_columns_are_those_of_the_configuration_and_reasons_for_left_out_records_are_listed(tmp_path):
    (tmp_path / "bad.csv").write_text("lat,lon,who\n1,2,a\n3,2,a\n99,1,b\n,1,c\n", "utf-8")
    columns = {"points": "bad.csv", "x": "lat", "y": "lon", "person": "who", "contributions": 1}
    data = opened(tmp_path, per_person(POINTS, columns)).data
    assert (data.unit, data.contributions, data.row.tolist()) == ("person", 1, [2])
    assert left_out(data) == "left out 3: 1 outside the domain, 1 unreadable, 1 over the bound."


COUNTED = {
    "points": changed(POINTS, "data", {"points": "homes.csv", "count": "n"}),
    "areas": changed({**FLOWS, "mechanism": {"key": "flat"}}, "data", {"points": "trips.csv", "region": "from", "count": "count"}),
    "trips": FLOWS,
}
COUNTED["areas"] = changed(COUNTED["areas"], "dataset.unit", "record")


@pytest.mark.parametrize("kind", sorted(COUNTED))
def test_a_unit_that_is_declared_for_the_dataset_is_that_of_the_counts(kind, tmp_path):
    (tmp_path / "homes.csv").write_text("lon,lat,n\n1,2,3\n", "utf-8")
    tables = COUNTED[kind]
    assert opened(tmp_path, tables).data.unit_declared
    config = read_config(written(tmp_path, changed(tables, "dataset", None)), for_dry_run=True)
    assert not data_of(config).data.unit_declared

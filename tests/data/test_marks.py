"""Counts of which one row could decide thousands, or of which it was not said what is protected, are marked, and never published."""

import io
from dataclasses import replace

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

import dpviz as dv
from tests.ledgers import usual
from tests.release_cases import WORDS

pytestmark = pytest.mark.filterwarnings("ignore::dpviz.errors.UnreadColumnsWarning")  # columns that nobody reads are the point

SQUARE = dv.Domain(bounds=(0, 0, 4, 4), crs=None, order=2)
REGIONS = dv.Regions.squares(SQUARE, zooms=[1, 2])
LEAF = REGIONS.ids_of(2)[0]
FRAMES = {"points": {"domain": SQUARE}, "trips": {"regions": REGIONS}, "areas": {"regions": REGIONS}, "ids": {"regions": REGIONS}}
COLUMNS = {
    "points": {"x": "x", "y": "y"},
    "trips": {"origin": "place", "destination": "place2"},
    "areas": {"x": "x", "y": "y"},
    "ids": {"region": "place"},
}
READERS = {"points": dv.read_points, "trips": dv.read_trips, "areas": dv.read_areas, "ids": dv.read_areas}
KINDS = sorted(READERS)
MECHANISMS = {"points": dv.Quadtree(height=1), "trips": dv.TopDown(), "areas": dv.FlatAreas(), "ids": dv.FlatAreas()}
HEADER = "x,y,place,place2,n,who,note"
ROW = f"0.5,0.5,{LEAF},{LEAF},2,somebody,plain"
"""Without its note it is an honest row in each of the files; nobody reads the column `note`."""


def file_of(rows):
    upload = io.BytesIO("\n".join([HEADER, *rows, ""]).encode())
    upload.name = "homes.csv"
    return upload


def read(kind, rows=(ROW,) * 3, **options):
    source = rows if isinstance(rows, pd.DataFrame | str) else file_of(rows)
    return READERS[kind](source, **FRAMES[kind], **COLUMNS[kind], **options)


def marks(counts):
    return counts.row_stable, counts.unit_declared


def publish(counts, kind, folder):
    with usual(folder / "ledger.sqlite") as ledger:
        words = {"name": "Homes", "curator": "A town"}
        budget = dv.ZcdpBudget(1) if kind == "trips" else dv.PureBudget(1)
        options = {"dataset": "homes", "publication": words, "folder": folder / "out", "cap": budget, "ledger": ledger}
        try:
            return dv.publish(counts, MECHANISMS[kind], budget, **options)
        except dv.RefusedError:
            assert ledger.accounts() == []
            assert not (folder / "out").exists()
            raise


def refused(counts, kind, folder, words):
    """No way leads to a publication, and studies and simulations go on."""
    with pytest.raises(dv.RefusedError, match=words):
        publish(counts, kind, folder)
    budget = dv.ZcdpBudget(1) if kind == "trips" else dv.PureBudget(1)
    release = MECHANISMS[kind].release(counts, budget, dv.Entropy.system())
    with pytest.raises(dv.RefusedError, match=words):
        dv.describe(release, WORDS)
    stated = replace(release, receipt=replace(release.receipt, row_stable=True, unit_declared=True))
    with pytest.raises(dv.RefusedError, match=words):
        dv.write_release(release, folder / "out", dv.describe(stated, WORDS))
    assert MECHANISMS[kind].release(counts, budget, dv.Entropy.seeded(1)).receipt.unit_declared == counts.unit_declared


@pytest.mark.parametrize("bad_rows", ["refuse", "drop"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_takes_thousands_with_it_is_never_published(kind, bad_rows, tmp_path):
    rows = [ROW] * 4_000
    neighbour = [*rows[:5], ROW.replace("plain", '"'), *rows[5:]]
    totals = [int(read(kind, each, bad_rows=bad_rows, quoted_newlines=True).count.sum()) for each in (rows, neighbour)]
    assert totals[0] - totals[1] > 3_900
    for each in (rows, neighbour):
        refused(read(kind, each, bad_rows=bad_rows, quoted_newlines=True), kind, tmp_path, "quoted_newlines")
    totals = [int(read(kind, each, bad_rows="drop").count.sum()) for each in (rows, neighbour)]
    assert 0 <= totals[1] - totals[0] <= 1
    assert publish(read(kind, rows, bad_rows=bad_rows), kind, tmp_path).folder.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_a_column_are_published_once_it_is_said_what_is_protected(kind, tmp_path):
    refused(read(kind, count="n"), kind, tmp_path, r'person="column" and contributions=m .* unit="record"')
    assert publish(read(kind, count="n", unit="record"), kind, tmp_path).folder.exists()


IDS = pd.DataFrame({"origin": [LEAF], "destination": [LEAF], "region": [LEAF], "count": [2], "who": ["a"]})
POINTS = geopandas.GeoDataFrame({"n": [2], "who": ["a"]}, geometry=[shapely.Point(1, 1)])
MATRIX = pd.DataFrame({"": [LEAF], LEAF: [2]})
SUMS = {
    "arrays of points": lambda **said: dv.PointCounts.from_xy([1], [1], domain=SQUARE, count=[2], **said),
    "frame of points": lambda **said: dv.PointCounts.from_geodataframe(POINTS, domain=SQUARE, count="n", **said),
    "arrays of areas": lambda **said: dv.AreaCounts.from_xy([1], [1], regions=REGIONS, count=[2], **said),
    "frame of areas": lambda **said: dv.AreaCounts.from_geodataframe(POINTS, regions=REGIONS, count="n", **said),
    "ids of areas": lambda **said: dv.AreaCounts.from_table(IDS, regions=REGIONS, **said),
    "trips": lambda **said: dv.TripCounts.from_table(IDS, regions=REGIONS, **said),
    "table of points": lambda **said: read("points", POINTS.assign(x=1, y=1).drop(columns="geometry"), count="n", **said),
    "trips of a table": lambda **said: dv.read_trips(IDS, regions=REGIONS, **said),  # finds the column by its name
}


@pytest.mark.parametrize("source", sorted(SUMS))
def test_sums_are_marked_until_persons_or_a_unit_are_named(source):
    make = SUMS[source]
    person = np.array(["a"]) if source.startswith("arrays") else "who"
    assert marks(make()) == (True, False)
    assert marks(make(unit="record")) == marks(make(person=person)) == (True, True)
    assert make(unit="record").count.tolist() == make().count.tolist() == [2]
    with pytest.raises(dv.InputError, match="leave one of the two out"):
        make(unit="record", person=person)
    with pytest.raises(dv.InputError, match="unit must be one of"):
        make(unit="person")


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
@pytest.mark.parametrize("kind", KINDS)
def test_engines_mark_alike(kind, engine, tmp_path):
    path = tmp_path / "homes.csv"
    path.write_bytes(file_of([ROW] * 3).read())
    for options in ({"count": "n"}, {}, {"count": "n", "unit": "record"}, {"count": "n", "person": "who"}):
        assert marks(read(kind, str(path), engine=engine, **options)) == (True, options != {"count": "n"})


def test_trips_know_sums_without_a_column_of_counts_and_bounds_without_persons():
    assert not dv.read_trips(MATRIX.rename(columns={"": "from"}), regions=REGIONS).unit_declared
    assert SUMS["trips"](unit="trip").unit_declared
    assert SUMS["trips"](contributions=3).unit_declared  # the curator vouches that nobody has more
    with pytest.raises(dv.InputError, match="contributions above 1"):
        SUMS["trips"](contributions=3, unit="trip")
    with pytest.raises(dv.InputError, match="unit must be one of"):
        SUMS["arrays of points"](unit="trip")


def test_arrays_of_counts_per_place_have_no_rows_that_stand_for_several():
    assert marks(dv.PointCounts.from_matrix([[3, 0], [0, 1]])) == (True, True)
    assert marks(dv.AreaCounts.from_counts(np.arange(16), regions=REGIONS)) == (True, True)


@pytest.mark.parametrize("kind", KINDS)
def test_marks_stay_where_records_are_left_out_or_made_up(kind):
    counts = read(kind, count="n", quoted_newlines=True)
    assert marks(counts.without_records()) == marks(counts.made_up()) == marks(counts) == (False, False)


def test_samples_of_counts_may_be_published():
    loaded = [*map(dv.load_sample, ("us_flights", "northeast_commuters")), *map(dv.load_sample, ("us_residents", "made_up_city"))]
    assert [marks(sample) for sample in loaded] == [(True, True)] * 4


def test_a_release_that_rows_could_decide_is_not_called_private():
    release = dv.Quadtree(height=1).release(read("points", quoted_newlines=True), dv.PureBudget(1), dv.Entropy.system())
    assert set(release.to_frame()["status"]) == {"NOT PRIVATE"}

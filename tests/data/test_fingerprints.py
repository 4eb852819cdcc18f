"""Rows of persons are recognised whatever their order, in memory only, and by a definition that plain Python can follow."""

import copy
import hashlib
import pickle
import struct

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

from dpviz.data import fingerprints
from dpviz.data.areas import AreaCounts
from dpviz.data.bounding import find_people
from dpviz.data.counting.files import read_areas, read_points, read_trips
from dpviz.data.fingerprints import UNKNOWN, RowSum, add_sums, fingerprints_of_rows, sum_rows
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from tests.data.slow_bound import person_hash

WORD = 2**64
PLANE = Domain(bounds=(0, 0, 8, 8), crs=None, order=3)
SQUARES = Regions.squares(PLANE, zooms=[1, 2])
REGIONS = Regions.from_prefixes(["Aa", "Ab", "Bc"], lengths=[1, 2], levels=["state", "town"])
COARSE = Regions.from_prefixes(["Aa", "Ab", "Bc", "Bd"], lengths=[1, 2], levels=["state", "town"])
ROWS = pd.DataFrame(
    {"x": [1.5, 1.5, 6.0, 7.25], "y": [2.5, 2.5, -0.0, 3.0], "x2": [3.0, 4.0, 5.0, 6.0], "y2": [1.0, 1.0, 2.0, 2.0]}
    | {"region": ["Aa", "Aa", "Ab", "Bc"], "destination": ["Ab", "Bc", "Aa", "Aa"], "who": ["7", "b", "b", "c"], "count": [1, 2, 1, 1]}
)
TABLE = ROWS.rename(columns={"region": "origin"})
PERSON = {"person": "who", "contributions": 1}


def gdf(rows, crs="EPSG:4326"):
    return gpd.GeoDataFrame(rows, geometry=gpd.points_from_xy(rows["x"], rows["y"]), crs=crs)


MAP, METRES = Domain(bounds=(0, -1, 8, 8), crs="EPSG:4326", order=3), Domain(bounds=(0, -1e5, 1e6, 1e6), crs="EPSG:3857", order=4)
WAYS = {
    "arrays": lambda rows, finer: PointCounts.from_xy(
        rows["x"].to_numpy(), rows["y"].to_numpy(), domain=Domain(bounds=(0, 0, 9, 9), crs=None, order=5) if finer else PLANE,
        count=rows["count"].to_numpy(), person=rows["who"].to_numpy(), contributions=1,
    ),
    "GeoDataFrame": lambda rows, finer: PointCounts.from_geodataframe(gdf(rows), domain=METRES if finer else MAP, count="count", **PERSON),
    "points in squares": lambda rows, finer: AreaCounts.from_xy(
        rows["x"], rows["y"], regions=Regions.squares(PLANE, zooms=[1, 3]) if finer else SQUARES,
        count=rows["count"], person=rows["who"], contributions=1,
    ),
    "ids": lambda rows, finer: AreaCounts.from_table(rows, regions=COARSE if finer else REGIONS, **PERSON),
    "trips": lambda rows, finer: TripCounts.from_table(
        rows.rename(columns={"region": "origin"}), regions=COARSE if finer else REGIONS, **PERSON
    ),
    "table of points": lambda rows, finer: read_points(
        gdf(rows).drop(columns="geometry"), domain=METRES if finer else MAP, crs="EPSG:4326", x="x", y="y", count="count", **PERSON
    ),
    "tables of ids": lambda rows, finer: read_areas(
        [rows.iloc[:2], rows.iloc[2:]] if finer else rows, regions=COARSE if finer else REGIONS, region="region", count="count", **PERSON
    ),
    "table of trips": lambda rows, finer: read_trips(
        rows.rename(columns={"region": "origin"}), regions=COARSE if finer else REGIONS, destination="destination", count="count", **PERSON
    ),
    "trips between coordinates": lambda rows, finer: read_trips(
        rows, regions=SQUARES, origin=("x", "y"), destination=("x2", "y2"), count="count", **PERSON
    ),
}  # fmt: skip


@pytest.mark.parametrize("count_rows", WAYS.values(), ids=WAYS)
def test_rows_are_recognised_in_any_order_and_frame_and_one_changed_row_is_not(count_rows):
    def marks(rows, *, finer=False):
        return count_rows(rows, finer).fingerprints.rows

    known = marks(ROWS)
    assert len(known) == 2
    assert marks(ROWS.assign(who=ROWS["who"] + "!"))[1] == known[1], "other names of the same persons"
    assert marks(ROWS.sample(frac=1, random_state=1)) == marks(ROWS, finer=True) == known
    changed = [
        ROWS.assign(x=ROWS["x"] + [0, 0, 0, 1e-9], region=["Aa", "Aa", "Ab", "Ab"]),
        ROWS.assign(y=ROWS["y"] + [1e-9, 0, 0, 0], region=["Ab", "Aa", "Ab", "Bc"], destination=["Aa", "Bc", "Aa", "Aa"]),
        ROWS.assign(count=[2, 1, 1, 1]),
        ROWS.assign(who=["7", "b", "c", "b"]),
        ROWS.iloc[1:],
        pd.concat([ROWS, ROWS.iloc[:1]]),
    ]
    found = {marks(rows)[0] for rows in changed}
    assert len(found - {*known}) == len(changed)


def slow_sum(rows, persons=True):
    """The sums of the digests of rows (count, columns and, with `persons`, person), one word after the other."""
    constants = struct.unpack("<8Q", hashlib.shake_256(b"fingerprint of rows").digest(64))
    lanes = [0] * 4
    for count, *columns in rows:
        person = columns.pop() if persons else None
        words = [count % WORD]
        words += [person_hash(each.encode(), fingerprints._KEY) if isinstance(each, str) else float_word(each) for each in columns]
        words += [0 if person is None else person_hash(str(person).encode(), fingerprints._KEY)] * persons
        for lane in range(4):
            h = constants[lane]
            for word in words:
                h = (h ^ word) * (constants[4 + lane] | 1) % WORD
                h ^= h >> 32
            lanes[lane] = (lanes[lane] + h) % WORD
    return tuple(lanes)


def float_word(number):
    return struct.unpack("<Q", struct.pack("<d", np.nan if number != number else number + 0.0))[0]


@pytest.mark.parametrize("block", [1, 3, 2**13])
def test_the_sum_is_that_of_its_definition(monkeypatch, block):
    monkeypatch.setattr(fingerprints, "_BLOCK", block)
    x, y, count, who = [1.5, -0.0, np.nan, np.inf, 2.5], [0.0, 1.0, 2.0, -3.0, 4.0], [1, -1, 7, 2**53, 0], [7, "x", None, "ä", 7]
    total = sum_rows([np.array(x), np.array(y)], np.array(count), find_people(who))
    assert (total.rows, total.lanes) == (5, slow_sum(zip(count, x, y, who, strict=True)))
    assert total.places == slow_sum(zip(count, x, y, strict=True), persons=False)
    ids = ["Aa", "07", "7", "Aa", ""]
    words = fingerprints.words_of_ids(np.arange(5), ids)
    bare = ["Aa", "7", "7", "Aa", ""]
    assert sum_rows([words], None, find_people(who)).lanes == slow_sum((1, each, person) for each, person in zip(bare, who, strict=True))
    parts = [
        sum_rows([np.array(x)[part], np.array(y)[part]], np.array(count)[part], find_people(who[part])) for part in (slice(2), slice(2, 5))
    ]
    assert add_sums([None, *parts]) == total


def test_pairs_of_coordinates_are_no_sum_of_their_parts():
    def marks(x, y):
        return PointCounts.from_xy(x, y, domain=PLANE, person=["a", "a"]).fingerprints.rows

    assert marks([1, 2], [3, 4]) != marks([1, 2], [4, 3])
    assert marks([1, 2], [3, 4]) != marks([3, 4], [1, 2])


def test_a_person_is_a_canonical_text_and_a_float_its_value():
    def marks(person, kind=np.float64):
        return PointCounts.from_xy(np.array([1.5, 2.5], kind), [1, 1], domain=PLANE, person=person).fingerprints.rows

    known = marks([7, 8])
    for person in ([7.0, 8.0], ["7", "8"], np.array([7, 8], np.uint8), pd.Categorical(["7", "8"]), [7, "8"], find_people(["7", "8"])):
        assert marks(person) == known
    assert marks([7, 8], np.float32) == known, "these floats are the same in 32 bits"
    assert marks(["07", "8"]) != known


@pytest.mark.parametrize(
    ("ids", "others"),
    [
        (["01001", "01002"], [1001, 1002]),
        (["01001", "01002"], [1001.0, 1002.0]),
        (["01001", "01002"], ["01001 ", "1002"]),
        (["Z\u00fcrich", "Bern"], ["Zu\u0308rich", "Bern"]),
        (["8a2a1072b59ffff", "8a2a10728d8ffff"], [0x8A2A1072B59FFFF, 0x8A2A10728D8FFFF]),
    ],
)
def test_rows_are_recognised_whatever_spelling_of_an_id_finds_its_region(ids, others):
    regions = Regions.from_table(pd.DataFrame({"id": ids}), levels=["id"])

    def marks(ids):
        rows = pd.DataFrame({"region": ids, "origin": ids, "destination": ids[::-1], "who": [7, 8]})
        counts = AreaCounts.from_table(rows, regions=regions, **PERSON), TripCounts.from_table(rows, regions=regions, **PERSON)
        assert [each.count.sum() for each in counts] == [2, 2]
        return [each.fingerprints.rows for each in counts]

    assert marks(others) == marks(ids)


def test_without_rows_or_persons_nothing_is_recognised_by_rows():
    assert PointCounts.from_xy([], [], domain=PLANE, person=[]).fingerprints == UNKNOWN
    assert PointCounts.from_xy([1], [1], domain=PLANE).fingerprints == UNKNOWN
    assert fingerprints_of_rows(RowSum(kind="id", rows=0, lanes=(0, 0, 0, 0), places=(0, 0, 0, 0))) == UNKNOWN


@pytest.mark.parametrize("count_rows", WAYS.values(), ids=WAYS)
def test_fingerprints_are_in_memory_only(count_rows):
    counts = count_rows(ROWS, False)
    mark, _ = counts.fingerprints.rows
    stored = pickle.dumps(counts)
    assert mark.encode() not in stored
    assert pickle.loads(stored).fingerprints == UNKNOWN  # noqa: S301
    assert copy.deepcopy(counts).fingerprints == counts.fingerprints, "a copy in memory is no way to a fresh cap"
    shown = (repr(counts), repr(counts.fingerprints), counts._repr_html_())
    assert not any(mark in text for text in shown)

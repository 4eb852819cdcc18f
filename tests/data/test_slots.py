"""The slot of each entry: ids, bins and times, each by itself; and areas counted by slots."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpviz.data.areas import AreaCounts
from dpviz.data.cells import BAD, OUTSIDE
from dpviz.data.slots import slots_of
from dpviz.errors import InputError
from dpviz.publishing.private_data import fingerprints_of
from dpviz.space.categories import Categories
from dpviz.space.regions import Regions

BERLIN = Categories.hours("Europe/Berlin")
REGIONS = Regions.from_table(pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]}), levels=["district", "tract"])
CASES = {
    "times of a text": (BERLIN, ["2026-11-29 17:05", "2026-11-29T23:59:59.9", " 2026-11-29 ", "2026-11-29 03"], [17, 23, 0, 3]),
    "times with an offset": (BERLIN, ["2026-07-01T17:05:00Z", "2026-12-01 17:05+00:00", "2026-12-01T17:05-0500"], [19, 18, 23]),
    "times of several units": (BERLIN, ["2026-12-01 10", "2026-12-01T10:00:00.000000001", "2026-12-01T09:59:59.999999Z"], [10, 10, 10]),
    "years that not every version reads": (BERLIN, ["3000-12-01 10:00:00.5", "1699-12-01 10", "2250-12-01 10"], [BAD, BAD, 10]),
    "no times": (BERLIN, ["noon", None, "2026-02-30", "29.11.2026", ""], [BAD] * 5),
    "months": (Categories.months("2026-10", "2026-12", "UTC"), ["2026-10-01", "2026-12-31 23:59", "2027-01-01"], [0, 2, OUTSIDE]),
    "weekdays": (Categories.weekdays("Asia/Tokyo"), ["2026-11-29", "2026-11-29T16:00Z", "2026-11-29T14:59Z"], [6, 0, 6]),
    "bins are right-open": (
        Categories.bins([0, 18, 65]),
        ["0", "17.999", "18", "65", "-1", "x", None],
        [0, 0, 1, OUTSIDE, OUTSIDE, BAD, BAD],
    ),
    "ids": (Categories.weekdays(), ["Monday", " Sunday", "monday", None], [0, 6, OUTSIDE, BAD]),
    "ids of digits": (Categories.hours(), ["07", "7", "7.0", "24"], [7, 7, 7, OUTSIDE]),
    "a slot for others": (Categories.bins([0, 18]).with_other(), ["3", "18", "-1", "x", None], [0, 1, 1, BAD, BAD]),
    "ids and others": (Categories.hours().with_other("none"), ["7", "24", "none", None], [7, 24, 24, BAD]),
}


@pytest.mark.parametrize("case", CASES)
def test_texts_find_their_slots_in_every_container_and_each_by_itself(case):
    categories, texts, slots = CASES[case]
    containers = [
        pd.Series(texts, dtype=object),
        pa.chunked_array([texts[:1], texts[1:]]),
        pa.chunked_array([pa.array(texts).dictionary_encode()]),
    ]
    for entries in containers:
        assert slots_of(entries, categories).tolist() == slots
    assert [int(slots_of(pd.Series([text], dtype=object), categories)[0]) for text in texts] == slots


PLAIN = ["2026-11-29 17:05", "2026-11-29T00:59", "1969-12-31 23:00", "1700-01-01 05:00", "2250-12-31 23:59"]


@pytest.mark.parametrize("ending", ["", ":30"])
def test_times_of_one_length_give_what_they_give_beside_others(ending):
    texts = [text + ending for text in PLAIN]
    expected = [17, 0, 23, 5, 23]
    for beside in ([], ["noon"], ["2026-11-29"], [None]):
        assert slots_of(pa.chunked_array([[*texts, *beside]]), BERLIN).tolist()[: len(texts)] == expected


@pytest.mark.parametrize(
    "text", ["2026-11-29 17:65", "2026-13-29 17:05", "2026-11-29 1705Z", "20261129 17:05:0", "2026-11-29 170500", "+026-11-29 17:05"]
)
def test_what_looks_like_a_plain_time_is_none_alone_and_beside_times(text):
    assert slots_of(pa.chunked_array([[text]]), BERLIN).tolist() == [BAD]
    assert slots_of(pa.chunked_array([[text, "2026-11-29 17:05"]]), BERLIN).tolist() == [BAD, 17]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_stored_times_of_every_unit_give_their_hours(unit):
    times = pa.array(["2026-11-29 17:05", "1969-12-31 23:00", "1800-01-01 05:59"]).cast(pa.timestamp(unit))
    assert slots_of(pa.chunked_array([times]), BERLIN).tolist() == [17, 23, 5]
    assert slots_of(pa.chunked_array([pa.concat_arrays([times, pa.nulls(1, times.type)])]), BERLIN).tolist() == [17, 23, 5, BAD]


def test_numbers_and_times_find_their_slots():
    assert slots_of(pd.Series([3, 17, 24]), Categories.hours()).tolist() == [3, 17, OUTSIDE]
    assert slots_of(pd.Series([3.5, np.nan, 18, -1]), Categories.bins([0, 4, 18])).tolist() == [0, BAD, OUTSIDE, OUTSIDE]
    times = pd.to_datetime(pd.Series(["2026-07-01 22:30", None]))
    assert slots_of(times, BERLIN).tolist() == [22, BAD]
    assert slots_of(times.dt.tz_localize("UTC"), BERLIN).tolist() == [0, BAD]
    assert slots_of(pd.Series([7, 8]), BERLIN).tolist() == [BAD, BAD]


def visits(seed, rows=60, people="abcd"):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"region": rng.choice(["a", "b", "c"], rows), "hour": rng.integers(0, 26, rows).astype(str), "who": rng.choice(list(people), rows)}
    )


def test_counts_by_region_and_slot_are_those_of_the_table():
    table = visits(1)
    areas = AreaCounts.from_table(table, regions=REGIONS, categories=Categories.hours(), slot="hour")
    inside = table[table.hour.astype(int) < 24]
    counts = Counter(zip(inside.region, inside.hour.astype(int), strict=True))
    assert {("abc"[leaf], slot): count for leaf, slot, count in zip(areas.leaf, areas.slot, areas.count, strict=True)} == counts
    assert (areas.outside, areas.dropped) == (len(table) - len(inside),) * 2
    cross = areas.cross_counts()
    assert cross[0].tolist()[:5] == [len(inside), *(sum(inside.hour.astype(int) // 6 == part) for part in range(4))]
    np.testing.assert_array_equal(cross[:, 0], np.concatenate(areas.level_counts()))
    others = AreaCounts.from_table(table, regions=REGIONS, categories=Categories.hours().with_other(), slot="hour")
    assert (others.outside, int(others.count[others.slot == 24].sum())) == (0, areas.outside)


@pytest.mark.parametrize(("most", "per_slot"), [(1, 1), (4, 1), (4, 3), (9, 2), (3, 9)])
def test_one_person_leaves_with_at_most_b_records_of_a_slot_and_m_in_all(most, per_slot):
    for seed in range(5):
        table = visits(seed, rows=30)
        table["hour"] = (table.hour.astype(int) % 3).astype(str)
        options = {"regions": REGIONS, "categories": Categories.hours(), "slot": "hour", "person": "who", "key": b"k"}
        options |= {"contributions": most, "per_slot": per_slot}
        whole = AreaCounts.from_table(table, **options)
        assert (whole.per_slot, whole.contributions) == (per_slot, most)
        for who in "abcd":
            own = table[table.who == who].groupby("hour").size()
            lost = whole.cross_counts() - AreaCounts.from_table(table[table.who != who], **options).cross_counts()
            by_slot = lost[0, 5:]
            assert (lost >= 0).all()
            assert by_slot.max() <= per_slot
            assert by_slot.sum() == min(most, np.minimum(own, per_slot).sum())


def test_the_ledger_knows_data_again_when_they_are_counted_by_slot():
    table = visits(3)[lambda rows: rows.hour.astype(int) < 24]
    cross = AreaCounts.from_table(table, regions=REGIONS, categories=Categories.hours(), slot="hour")
    plain = AreaCounts.from_table(table, regions=REGIONS)
    assert fingerprints_of(cross) == fingerprints_of(plain)
    by_slot = {"categories": Categories.hours(), "slot": "hour"}
    owned = [AreaCounts.from_table(table, regions=REGIONS, person="who", **options) for options in ({}, by_slot)]
    assert owned[0].fingerprints == owned[1].fingerprints


REFUSED = {
    "an entry that is no time": ({"categories": BERLIN}, "Column 'hour' has a cell that is missing or no time"),
    "categories without a column": ({"slot": None}, "belong together"),
    "a column without categories": ({"categories": None}, "belong together"),
    "a column that there is not": ({"slot": "minute"}, "no column 'minute'"),
    "regions as categories": ({"categories": REGIONS}, "categories must be Categories"),
    "a bound of slots without persons": ({"per_slot": 2}, "need a person column"),
    "no record in a slot": ({"per_slot": 0, "person": "who"}, "per_slot"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_counted_is_refused(case):
    options, text = REFUSED[case]
    with pytest.raises(InputError, match=text):
        AreaCounts.from_table(visits(1), **{"regions": REGIONS, "categories": Categories.hours(), "slot": "hour"} | options)

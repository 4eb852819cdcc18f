"""Trips per pair of leaf regions: added up exactly, bounded per person, and nothing private in errors or texts."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.trips import TripCounts
from dpviz.space.regions import Regions
from tests.data.reading.files import refused as refusal

few = settings(max_examples=20, deadline=None, derandomize=True, database=None)
IDS = ["01001", "01003", "36001", "36003", "50001"]
REGIONS = Regions.from_prefixes(IDS, lengths=[2, 5], levels=["state", "county"])
PORTS = Regions.from_prefixes(["AKzz", "AKyy", "CAxx"], lengths=[2, 4], levels=["state", "port"])
COLUMNS = ("origin", "destination", "count", "who")
FLAT = Regions.from_prefixes(["a", "b"], lengths=[1], levels=["place"])


def table(rows, columns=("origin", "destination", "count")):
    return pd.DataFrame(rows, columns=list(columns))


def pairs(trips):
    """Ids of both ends -> trips."""
    one, other = trips.regions.ids[-1], trips.ends.ids[-1]
    return {(one[a], other[b]): n for a, b, n in zip(trips.origin, trips.destination, trips.count.tolist(), strict=True)}


def read(rows, columns=("origin", "destination", "count"), regions=REGIONS, **options):
    return TripCounts.from_table(table(rows, columns), regions=regions, **options)


def refused(rows, columns=("origin", "destination", "count"), **options):
    return refusal(read, rows, columns, **options)


ids = st.sampled_from(IDS)
trips = st.lists(st.tuples(ids, ids, st.integers(0, 10**7)), max_size=20)


@few
@given(trips)
def test_the_same_pair_in_several_rows_is_added_up(rows):
    expected = Counter()
    for origin, destination, count in rows:
        expected[origin, destination] += count
    trip_counts = read(rows)
    assert pairs(trip_counts) == {pair: count for pair, count in expected.items() if count}
    assert (trip_counts.unit, trip_counts.contributions, trip_counts.enforced, trip_counts.dropped) == ("trip", 1, False, 0)
    order = trip_counts.origin * len(IDS) + trip_counts.destination
    assert (np.diff(order) > 0).all()


def test_rows_without_a_count_are_one_trip_each():
    assert pairs(read([("01001", "36001")] * 3, ("origin", "destination"))) == {("01001", "36001"): 3}


def test_ends_may_be_regions_of_another_kind():
    trips = read([("01001", "CAxx", 2), ("50001", "AKzz", 1)], destinations=PORTS)
    assert pairs(trips) == {("01001", "CAxx"): 2, ("50001", "AKzz"): 1}
    assert trips.ends is PORTS
    assert "no leaf region (port)" in refused([("01001", "01001", 2)], destinations=PORTS)


@pytest.mark.parametrize("kind", [object, "str", "float64", "int64"])
def test_no_rows_are_no_trips(kind):
    for columns, options in ((COLUMNS[:2], {}), (COLUMNS[:3], {}), (COLUMNS, {"person": "who"})):
        trips = TripCounts.from_table(table([], columns).astype(kind), regions=REGIONS, **options)
        assert (len(trips.count), trips.dropped) == (0, 0)


@pytest.mark.parametrize("dtype", [object, "str", "string", "string[pyarrow]", "category"])
def test_ids_of_every_dtype_of_text_and_between_blanks(dtype):
    rows = table([("01001", "36001 ", 2), (" 01001", "01003", 1)]).astype({"origin": dtype, "destination": dtype})
    assert pairs(TripCounts.from_table(rows, regions=REGIONS)) == {("01001", "36001"): 2, ("01001", "01003"): 1}


@pytest.mark.parametrize("dtype", ["int64", "uint32", "Int64", "float64", "int64[pyarrow]", object])
def test_ids_that_are_numbers_are_spelt_out(dtype):
    regions = Regions.from_table(pd.DataFrame({"tile": [7, 12, 36001]}), levels=["tile"])
    rows = table([(7, 36001, 2), (12, 12, 1)]).astype({"origin": dtype, "destination": dtype})
    assert pairs(TripCounts.from_table(rows, regions=regions)) == {("7", "36001"): 2, ("12", "12"): 1}


def test_numbers_that_lost_their_zeros_have_them_put_back():
    for one in (1001, "1001", 1001.0):
        assert pairs(read([(one, 36001, 2), (36001, 36003, 1)])) == {("01001", "36001"): 2, ("36001", "36003"): 1}


NO_LEAF, MISSING, NO_NUMBER = "has an id that is no leaf region", "has an id that is missing", "'count' has a cell that is no number"
BAD = [
    (("36", "36001", 4), f"'origin' {NO_LEAF}", 4),
    ((None, "36001", 4), f"'origin' {MISSING}", 4),
    (("36001", " ", 4), f"'destination' {MISSING}", 4),
    *(((number, "36001", 4), f"'origin' {MISSING}, or is neither", 4) for number in (1.5, True)),
    (("36001", "36001", None), "'count' has a missing cell", 1),
    *((("36001", "36001", count), NO_NUMBER, 1) for count in ("zq", "7", True, np.inf)),
    (("36001", "36001", -1), "'count' has a negative count", 1),
    *((("36001", "36001", count), "'count' has a count that is no whole number", 1) for count in (1.5, Decimal("2.5"))),
]


@pytest.mark.parametrize(("row", "words", "lost"), BAD)
def test_bad_rows_are_refused_with_a_reason_or_dropped(row, words, lost):
    rows = [("01001", "36001", 2), row, ("36001", "36003", 3)]
    message = refused(rows)
    assert words in message
    assert not set("1456789") & set(message.replace("2**53", ""))
    trips = read(rows, bad_rows="drop")
    assert (pairs(trips), trips.dropped) == ({("01001", "36001"): 2, ("36001", "36003"): 3}, lost)


def test_fractions_are_refused_as_survey_weights():
    assert "Survey weights are refused" in refused([("01001", "36001", 1.5)])
    assert "holds no whole number" in refused([("01001", "36001", 1.5)], bad_rows="drop")


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "float64", "Int64", "Float64", "int64[pyarrow]", "double[pyarrow]", object])
def test_counts_of_every_dtype_and_with_a_gap_where_it_has_one(dtype):
    rows = table([("01001", "36001", 2), ("01001", "01003", 100)]).astype({"count": dtype})
    assert pairs(TripCounts.from_table(rows, regions=REGIONS)) == {("01001", "36001"): 2, ("01001", "01003"): 100}
    if dtype not in ("int8", "uint64"):
        gap = table([("01001", "36001", 2), ("01001", "01003", None)]).astype({"count": dtype})
        assert "missing cell" in refusal(TripCounts.from_table, gap, regions=REGIONS)
        assert TripCounts.from_table(gap, regions=REGIONS, bad_rows="drop").dropped == 1


@pytest.mark.parametrize("dtype", ["bool", "datetime64[ns]", "str", "category", "timedelta64[ns]"])
def test_columns_of_another_kind_hold_no_counts(dtype):
    cells = pd.Series([1, 2]).astype("str").astype(dtype) if dtype in ("str", "category") else pd.Series([1, 2]).astype(dtype)
    rows = table([("01001", "36001", 2)] * 2).assign(count=cells)
    for bad_rows in ("refuse", "drop"):
        assert "no number" in refusal(TripCounts.from_table, rows, regions=REGIONS, bad_rows=bad_rows)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object, "Int64", pd.ArrowDtype(pa.decimal128(20, 0))])
def test_counts_up_to_a_thousand_million_are_exact(dtype):
    for last in (10**9 - 1, 10**9, 10**9 + 1, 2**53, 2**60):
        rows = table([("01001", "36001", last), ("01001", "36003", 2)]).astype({"count": dtype})
        assert sorted(TripCounts.from_table(rows, regions=REGIONS).count.tolist()) == [2, min(last, 10**9)]


ROW = [("36001", "36001", 1)]
WRONG = [
    ([("36001", 1)], ("destination", "count"), {}, "no column 'origin'"),
    ([("36001", "36001", "36001")], ("origin", "origin", "destination"), {}, "several columns 'origin'"),
    (ROW, COLUMNS[:3], {"person": "who"}, "no column 'who'"),
    ([], COLUMNS[:3], {"bad_rows": "skip"}, "bad_rows must be"),
    *((ROW, COLUMNS[:3], {"contributions": most}, "at least 1") for most in (0, True)),
    (ROW, COLUMNS[:3], {"contributions": 1.5, "person": ["a"]}, "at least 1"),
    (ROW, COLUMNS[:3], {"person": ["a"], "key": "k"}, "key must be bytes"),
    (ROW, COLUMNS[:3], {"person": ["a", "b"]}, "one entry per row"),
    (ROW, COLUMNS[:3], {"person": [None]}, "missing cell"),
    ([("36001", "a", 1)], COLUMNS[:3], {"destinations": FLAT}, "same depth"),
]


@pytest.mark.parametrize(("rows", "columns", "options", "words"), WRONG)
def test_what_cannot_be_used_is_refused(rows, columns, options, words):
    assert words in refused(rows, columns, **options)
    assert "must be a DataFrame" in refusal(TripCounts.from_table, rows, regions=REGIONS)


UNFIT = [({"origin": np.array([1, 0])}, "ordered by origin")]
UNFIT += [({"origin": np.array([0, 0], np.int32), "destination": np.array([1, 1], np.int32)}, "ordered by origin")]
UNFIT += [({"origin": np.array([0, 5], np.int32)}, "indexes of leaf regions")]
UNFIT += [({"origin": np.array([-1, 0], np.int32)}, "indexes of leaf regions")]
UNFIT += [({"destination": np.array([0, 5], np.int32)}, "indexes of leaf regions"), ({"destination": np.array([0, 2**40])}, "too large")]
UNFIT += [({"count": np.array([1, 0])}, "at least 1"), ({"count": np.array([2**53, 1])}, "at most 2**53")]
UNFIT += [({"count": np.array([1.0, 2.0])}, "array of whole numbers"), ({"count": np.array([1])}, "same length")]
UNFIT += [({"unit": "household"}, "unit must be"), ({"unit": "trip", "contributions": 2}, "unit must be")]
UNFIT += [({"contributions": 0, "unit": "person"}, "at least 1"), ({"destinations": FLAT}, "same depth")]


@pytest.mark.parametrize(("change", "words"), UNFIT)
def test_parts_that_do_not_fit_are_refused(change, words):
    parts = {"origin": np.array([0, 1], np.int32), "destination": np.array([0, 1], np.int32), "count": np.array([1, 2])}
    assert len(TripCounts(regions=REGIONS, **parts).count) == 2
    assert words in refusal(TripCounts, regions=REGIONS, **{**parts, **change})


def test_what_was_checked_cannot_be_changed():
    count = np.array([1, 2])
    trips = TripCounts(regions=REGIONS, origin=np.array([0, 1], np.int32), destination=np.array([0, 1], np.int32), count=count)
    count[0] = -5
    assert trips.count.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        trips.count[0] = 7


def test_no_private_number_is_in_the_repr():
    assert repr(read([("01001", "36001", 77777)])) == "TripCounts(Regions(3 state, 5 county), unit='trip', contributions=1)"


def test_more_trips_per_person_without_a_person_column_are_declared():
    trips = read([("01001", "36001", 7)], contributions=4)
    assert (trips.unit, trips.contributions, trips.enforced, trips.exactly) == ("person", 4, False, False)
    assert trips.count.tolist() == [7], "nothing is enforced, and nothing left out"
    assert read([("01001", "36001", 8)], contributions=4, exactly=True).exactly is True


people = st.lists(st.tuples(ids, ids, st.integers(0, 5), st.sampled_from("abcde")), max_size=25)


@few
@given(people, st.integers(1, 4), st.sampled_from("abcde"), st.booleans())
def test_a_person_more_or_less_changes_at_most_m_trips(rows, most, person, exactly):
    options = {"person": "who", "contributions": most, "key": b"k", "exactly": exactly, "bad_rows": "drop"}
    dirty = [*rows, ("zq", "36001", 2, "a"), ("36001", "36001", 3, None)]
    with_them = Counter(pairs(read(dirty, COLUMNS, **options)))
    without = Counter(pairs(read([row for row in dirty if row[3] != person], COLUMNS, **options)))
    assert sum(abs(with_them[pair] - without[pair]) for pair in with_them | without) <= most


@few
@given(people, st.integers(1, 4), st.booleans())
def test_everyone_keeps_as_many_trips_as_they_may(rows, most, exactly):
    had = Counter()
    for row in rows:
        had[row[3]] += row[2]
    kept = sum(min(count, most) for count in had.values() if count >= most or not exactly)
    trips = read(rows, COLUMNS, person="who", contributions=most, exactly=exactly, bad_rows="drop")
    assert (trips.unit, trips.contributions, trips.enforced) == ("person", most, True)
    assert (trips.count.sum(), trips.dropped) == (kept, had.total() - kept)
    if exactly and any(0 < count < most for count in had.values()):
        assert "fewer trips" in refused(rows, COLUMNS, person="who", contributions=most, exactly=True)


def test_only_trips_between_regions_count_towards_the_bound():
    rows = [("zq", "36001", 5, "a"), ("36001", "36003", 1, "a"), ("36003", "36003", 1, "a")]
    trips = read(rows, COLUMNS, person="who", contributions=2, exactly=True, bad_rows="drop")
    assert trips.count.sum() == 2


def test_people_may_be_given_apart_from_the_table():
    rows = [("36001", "36003", 3), ("36001", "36003", 1)]
    assert read(rows, person=["a", "b"], contributions=2).count.tolist() == [3]
    assert read(rows, person=np.array([7, 7]), contributions=2).count.tolist() == [2]

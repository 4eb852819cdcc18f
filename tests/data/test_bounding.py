"""Which records a person keeps: at most m, evenly chosen, whatever the others have."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz.data.bounding
from dpviz.data.bounding import (
    Bound,
    Holdings,
    LargePerson,
    bound_of,
    bound_records,
    canonical_text,
    choose_records,
    find_people,
    person_hashes,
    priorities_of_hashes,
    refuse_bound_without_persons,
)
from dpviz.data.columns import people_of
from dpviz.data.counting.files import read_points
from dpviz.data.counting.in_memory import join_people
from dpviz.data.counting.job import person_texts
from dpviz.data.points import PointCounts
from tests.data.reading.files import PLANE as SQUARE
from tests.data.reading.files import refused, upload
from tests.data.slow_bound import person_hash, priority, slow_bound
from tests.often import often
from tests.strategies import dense

few = settings(max_examples=40, deadline=None, derandomize=True)
CHI2 = {1: 15.1, 8: 31.8, 9: 33.7}  # passed once in 10,000 keys, by degrees of freedom


def test_the_choice_differs_from_key_to_key_and_without_one_from_run_to_run():
    x = np.arange(4096) / 512
    for keys in ([None] * 60, [bytes([key]) for key in range(60)]):
        kept = [PointCounts.from_xy(x, x, domain=SQUARE, person=np.zeros(4096), key=key).row[0] for key in keys]
        assert len(set(kept)) > 1


def counted(table, from_file, options):
    """(8,) counts of the cells of the first row."""
    found = dense(PointCounts.from_xy(table.x, table.y, person=table.person, **options))
    if from_file:
        file = upload(table.to_csv(index=False).encode(), "points.csv")
        np.testing.assert_array_equal(dense(read_points(file, person="person", bad_rows="drop", **options)), found)
    return found[0]


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_removing_one_person_takes_their_records_and_nothing_else(most, distinct):
    """Brute force: a person keeps as many records as they may, in cells of theirs; the last two places lie outside."""
    rng = np.random.default_rng(most)
    for trial in range(60):
        size = int(rng.integers(1, 12))
        table = pd.DataFrame({"x": rng.integers(0, 10, size) + 0.5, "y": 0.5, "person": rng.choice(list("abcd"), size)})
        options = {"domain": SQUARE, "contributions": most, "key": bytes([trial % 5 + 1]), "distinct": distinct}
        whole = counted(table, trial % 10 == 0, options)
        for who in table.person.unique():
            lost = whole - counted(table[table.person != who], trial % 10 == 0, options)
            own, _ = np.histogram(table.x[table.person == who], bins=8, range=(0, 8))
            own = np.minimum(own, 1) if distinct else own
            assert lost.sum() == min(own.sum(), most)
            assert ((lost >= 0) & (lost <= own)).all()


def test_the_choice_is_the_same_however_a_column_holds_its_people():
    x = np.arange(8) + 0.5
    kept = {
        tuple(PointCounts.from_xy(x, x, domain=SQUARE, person=person, key=b"k").column)
        for person in ([7] * 8, [7.0] * 8, np.full(8, 7, np.uint8), pd.Series([7] * 8, dtype="Int64"), pd.Categorical([7] * 8), ["7"] * 8)
    }
    assert len(kept) == 1


LISTS = [[{"zq17": 1}, {}], [["zq17"], ["a"]], [["a"], ["zq17", "b"]], [{"zq17"}, set()], np.array([["zq17"], ["b"]])]


@pytest.mark.parametrize("person", [*LISTS, pd.DataFrame({"p": ["zq17", "b"]})])
def test_people_that_cannot_be_compared_are_refused(person):
    assert "one column" in refused(PointCounts.from_xy, [1.0, 2.0], [1.0, 2.0], domain=SQUARE, person=person)


def test_people_who_are_hidden_are_missing_and_those_of_broken_text_are_not():
    hidden = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    assert "missing" in refused(PointCounts.from_xy, [1.0] * 3, [1.0] * 3, domain=SQUARE, person=hidden)
    for person in (hidden, ["a\ud800", "b", None], np.array(["a\ud800", "b", None], object)):
        assert PointCounts.from_xy([1.0] * 3, [1.0] * 3, domain=SQUARE, person=person, bad_rows="drop").count.sum() == 2


def test_no_person_is_in_a_repr():
    assert "zq17" not in repr(find_people(["zq17"]))
    held = bound_records(find_people(["zq17"]), np.array([3]), np.array([1]), bound_of(1, b"k"))
    assert "zq17" not in repr(held) + repr(bound_of(1, b"zq17"))


def test_a_key_must_be_bytes():
    assert "bytes" in refused(PointCounts.from_xy, [1.0], [1.0], domain=SQUARE, person=["a"], key="key")


def fast(rows, bound):
    person, place, weight = ([row[part] for row in rows] for part in range(3))
    held = bound_records(find_people(person), np.array(place, np.int64), np.array(weight, np.int64), bound)
    found = {(held.persons[code], int(spot)): int(n) for code, spot, n in zip(held.codes, held.cells, held.records, strict=True)}
    assert len(found) == len(held.records)
    return found


ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", 7, "7", 7.0, None]), st.integers(-2, 4), st.integers(0, 5)), min_size=1, max_size=25)
BOUNDS = st.builds(
    Bound,
    most=st.integers(1, 6),
    distinct=st.booleans(),
    fewer=st.sampled_from(["keep", "drop"]),
    key=st.binary(min_size=1),
    per_slot=st.sampled_from([None, 1, 2, 3]),
    slots=st.integers(1, 4),
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ROWS, BOUNDS)
def test_the_fast_bound_is_the_slow_definition(rows, bound):
    assert fast(rows, bound) == slow_bound(rows, bound)


TYPES = [list, lambda who: [str(each) for each in who]]
TYPES += [lambda who, kind=kind: np.array(who, kind) for kind in (np.int8, np.uint64, np.float64, np.str_)]
TYPES += [lambda who: pd.Series(who, dtype="Int64"), lambda who: pd.Categorical(who), lambda who: pa.chunked_array([pa.array(who)])]


@few
@given(
    st.lists(st.tuples(st.sampled_from(TYPES), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1)), min_size=1), BOUNDS
)
def test_people_of_several_files_are_the_same_in_whatever_types_the_files_hold_them(parts, bound):
    rows = [(person, place, 1) for _, part in parts for person, place in part]
    owners = join_people([people_of(cast([person for person, _ in part])) for cast, part in parts])
    held = bound_records(owners, np.array([row[1] for row in rows]), None, bound)
    names = [canonical_text(person) if not isinstance(person, bytes) else person for person in held.persons]
    found = {(names[code], int(spot)): int(n) for code, spot, n in zip(held.codes, held.cells, held.records, strict=True)}
    assert found == slow_bound(rows, bound)


def test_people_that_are_days_or_truths_are_known_by_their_texts():
    days = pd.Series(pd.to_datetime(["2026-01-02", "2026-01-03", "2026-01-02"]))
    assert [canonical_text(day) for day in find_people(days).distinct] == [b"2026-01-02 00:00:00", b"2026-01-03 00:00:00"]
    assert [canonical_text(truth) for truth in find_people(np.array([True, False])).distinct] == [b"1", b"0"]
    assert find_people(np.array([2**64 - 1, 7], np.uint64)).distinct == [2**64 - 1, 7]
    assert find_people(np.array([7, 9, 7], np.uint8)).distinct.tolist() == [7, 9]


DAYS = [pa.array([0, 2**31 - 2], pa.date32()), pa.array([0, 2**62], pa.timestamp("us")), pa.array([0, 2**62], pa.duration("s"))]


@pytest.mark.parametrize("days", DAYS, ids=lambda days: str(days.type))
def test_a_day_beyond_the_calendar_of_python_is_one_more_person(days):
    """Such an entry of one row may not decide whether the file is read."""
    columns = {"x": [1.5, 2.5], "y": [1.5, 2.5], "who": days}
    assert read_points(columns, domain=SQUARE, person="who", bad_rows="drop").count.sum() == 2
    assert len(set(person_texts(pa.chunked_array([days]), in_text_table=False).to_pylist())) == 2


@pytest.mark.parametrize("others", [[], [None], [7]], ids=str)
def test_texts_that_differ_behind_a_nul_are_two_people_whoever_else_is_there(others):
    """Before version 3, pandas compares texts up to their first NUL only, unless there is something else among them."""
    people = find_people(["a\0b", "a\0c", *others])
    assert people.codes[:2].tolist() == [0, 1]
    assert people.codes[2:].tolist() == [-1 if each is None else 2 for each in others]


def chi2(seen, expected):
    return float(((np.asarray(seen) - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("as_numbers", often([False, True], 1))
def test_the_whole_bound_is_even_over_keys(as_numbers):
    """Two of a's five places, of the three of c and of d, and of e's two records at one place and one at another; b has but one."""
    letters, runs = [*"baaaaacccdddee"], 4000
    owners = find_people(np.array(list(map(ord, letters))) if as_numbers else letters)
    places, weight = np.array([9, *range(5), *range(3), *range(3), 0, 1]), np.array([*[1] * 12, 2, 1])
    alone, joint, heavy = Counter(), Counter(), Counter()
    for run in range(runs):
        held = bound_records(owners, places, weight, bound_of(2, run.to_bytes(3, "big")))
        names = list(map(chr, held.persons)) if as_numbers else [text.decode() for text in held.persons]
        kept = {name: [] for name in names}
        for code, place, number in zip(held.codes, held.cells.tolist(), held.records, strict=True):
            kept[names[code]] += [place] * number
        alone[tuple(sorted(kept["a"]))] += 1
        joint[tuple(sorted(kept["c"])), tuple(sorted(kept["d"]))] += 1
        heavy[tuple(kept["e"])] += 1
        assert kept["b"] == [9]
    for seen, freedom in ((alone, 9), (joint, 8)):
        assert len(seen) == freedom + 1
        assert chi2([*seen.values()], runs / len(seen)) < CHI2[freedom]
    assert chi2([heavy[0, 0], heavy[0, 1]], np.array([1, 2]) * runs / 3) < CHI2[1]


def test_people_whose_hashes_collide_keep_bounds_of_their_own(monkeypatch):
    monkeypatch.setattr(dpviz.data.bounding, "person_hashes", lambda persons, key: np.zeros(len(persons), np.uint64))
    rows = [(person, place, 1) for person in "abc" for place in range(4)]
    assert Counter(person for person, _ in fast(rows, bound_of(2, b"k"))) == {b"a": 2, b"b": 2, b"c": 2}


def test_records_of_equal_priority_are_ordered_by_place_and_number(monkeypatch):
    monkeypatch.setattr(dpviz.data.bounding, "priorities_of_hashes", lambda hashes, places, numbers, key: np.zeros(len(places), np.uint64))
    rows = [("a", place, weight) for place, weight in ((3, 1), (1, 2), (2, 1))] + [("b", 5, 1)]
    assert fast(rows, bound_of(3, b"k")) == {(b"a", 1): 2, (b"a", 2): 1, (b"b", 5): 1}


@pytest.mark.parametrize("at_once", [1, 7, 50])
@pytest.mark.parametrize("options", [{}, {"distinct": True}, {"fewer": "drop"}, {"per_slot": 3, "slots": 4}])
@pytest.mark.parametrize("most", [1, 4, 60])
def test_people_are_bounded_in_parts_as_all_at_once(monkeypatch, at_once, options, most):
    """Also a person who has more records than are looked at at once, in one place or in many."""
    rng, bound = np.random.default_rng(4), bound_of(most, b"k", **options)
    codes, places, records = rng.zipf(1.6, 600) % 40, rng.integers(0, 30, 600), rng.integers(0, 7, 600)
    rows = [*zip(codes.tolist(), places.tolist(), records.tolist(), strict=True), *[(99, 3, 1)] * 500]
    whole = fast(rows, bound)
    monkeypatch.setattr(dpviz.data.bounding, "RECORDS_AT_ONCE", at_once)
    assert fast(rows, bound) == whole == slow_bound(rows, bound)


def test_a_person_keeps_the_same_of_ten_million_records_in_one_place_however_they_are_added(monkeypatch):
    bound, cells = bound_of(3, b"k"), np.array([5, 9])
    records = np.array([10**7, 1])
    monkeypatch.setattr(dpviz.data.bounding, "RECORDS_AT_ONCE", 2**20)
    whole = choose_records(Holdings(codes=np.zeros(2, np.int64), persons=np.array([7]), cells=cells, records=records), bound)
    large = LargePerson(person_hash=person_hashes(np.array([7]), b"k")[0], bound=bound)
    for first in range(0, 10**7, 10**6):
        large.add(cells[:1], np.array([first]), np.array([10**6]))
    large.add(cells[1:], np.array([0]), np.array([1]))
    assert np.bincount(np.searchsorted(cells, large.kept()[0]), minlength=2).tolist() == whole.tolist()


def test_places_too_many_for_one_word_are_counted_all_the_same():
    far = 2**62
    found = fast([("a", far, 1), ("b", far, 1), ("b", far - 1, 1), ("b", far, 1)], bound_of(9, b"k"))
    assert found == {(b"a", far): 1, (b"b", far): 2, (b"b", far - 1): 1}


ODD = ["a", "b", "a", "ü", "7", "-7", "007", "-0", "0", " 7", "7\n", "1e3", "9" * 18, "9" * 19, "-" + "9" * 19, "", "٧"]
ODD += [str(sign * (2**63 + step)) for sign in (-1, 1) for step in (-1, 0, 1)]


def test_hashes_are_those_of_every_chunk_and_container():
    encoded = [text.encode() for text in ODD]
    whole = person_hashes(ODD, b"key")
    assert whole.tolist() == [person_hash(text, b"key") for text in encoded]
    for held in (pa.array(ODD), pa.chunked_array([ODD[:2], ODD[2:]]), np.array(ODD, object), encoded, pa.array(ODD, pa.large_string())):
        np.testing.assert_array_equal(person_hashes(held, b"key"), whole)
    for row in range(len(ODD)):
        np.testing.assert_array_equal(person_hashes(ODD[row : row + 1], b"key"), whole[row : row + 1])


@few
@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 300)), min_size=1), st.binary(min_size=1))
def test_a_number_has_the_hash_of_its_text_in_every_type(numbers, key):
    expected = person_hashes([str(number) for number in numbers], key).tolist()
    assert person_hashes(np.array(numbers, np.int64), key).tolist() == expected
    for kind in (np.int8, np.uint8, np.int32, np.uint64):
        some = [row for row, number in enumerate(numbers) if np.iinfo(kind).min <= number <= np.iinfo(kind).max]
        assert person_hashes(np.array([numbers[row] for row in some], kind), key).tolist() == [expected[row] for row in some]


def test_numbers_beyond_64_bits_with_a_sign_are_hashed_as_texts():
    large = [2**63 - 1, 2**63, 2**64 - 1]
    np.testing.assert_array_equal(person_hashes(np.array(large, np.uint64), b"k"), person_hashes(list(map(str, large)), b"k"))


def test_priorities_do_not_change_from_version_to_version():
    hashes = person_hashes(["a", "7"], b"key")
    found = priorities_of_hashes(hashes, np.array([0, 5]), np.array([0, 1]), b"key")
    assert found.tolist() == [priority(b"a", 0, 0, b"key"), priority(b"7", 5, 1, b"key")] == [3075217047901863406, 1855425812270553678]
    np.testing.assert_array_equal(priorities_of_hashes(hashes, np.array([0, 5]), 1, b"key")[1:], found[1:])


def test_bounds_that_make_no_sense_are_refused():
    for most in (0, True, 1.5, "2"):
        assert "contributions" in refused(bound_of, most, b"k")
    assert "distinct" in refused(bound_of, 1, b"k", distinct="yes")
    assert "fewer" in refused(bound_of, 1, b"k", fewer="none")
    for most, distinct in ((2, False), (1, True)):
        assert "person" in refused(refuse_bound_without_persons, None, most, distinct=distinct)


def test_keys_come_from_the_systems_entropy():
    assert len({bound_of(1, None).key for _ in range(50)} | {bound_of(1, b"").key}) == 51
    assert len(bound_of(1, None).key) == 16


def test_people_with_fewer_are_refused_where_exactly_m_was_declared():
    assert "fewer" in refused(fast, [("a", 1, 1), ("b", 1, 2)], bound_of(2, b"k", fewer="refuse"))
    assert sum(fast([("a", 1, 2), ("b", 1, 3)], bound_of(2, b"k", fewer="refuse")).values()) == 4

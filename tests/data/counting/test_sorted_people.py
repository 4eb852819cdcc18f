"""People in sorted rows, cut into batches anywhere, keep what the definition says; and one person never changes what another keeps."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data import bounding
from dpviz.data.bounding import Bound, bound_of, find_people
from dpviz.data.cell_counts import CellSums, count_rows
from dpviz.data.counting import sorted_people
from dpviz.data.counting.sorted_people import SortedPeople
from tests.data.slow_bound import slow_bound

CELLS = 6
BOUNDS = st.builds(
    Bound,
    most=st.integers(1, 9),
    distinct=st.booleans(),
    fewer=st.sampled_from(["keep", "drop"]),
    key=st.binary(min_size=1),
    per_slot=st.sampled_from([None, 1, 2, 3]),
    slots=st.integers(1, 4),
)
NUMBERS, TEXTS = st.integers(-2, 4), st.sampled_from(["7", "7.5", "a", "ü", "aa", "😀", "\uffff"])


def sorted_counts(rows, bound, cuts=(), weighted=True, size=CELLS):
    """(size,) kept records of rows (person, cell, records), which are given in batches that end at the cuts; and the people."""
    rows = sorted(rows, key=lambda row: (row[0].encode() if isinstance(row[0], str) else row[0], row[1]))
    people = SortedPeople(bound=bound, sums=CellSums(size=size))
    kind = pa.string() if any(isinstance(row[0], str) for row in rows) else pa.int64()
    for start, end in itertools.pairwise([0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]):
        persons, cells, records = ([row[part] for row in rows[start:end]] for part in range(3))
        people.add(pa.array(persons, kind), np.array(cells, np.int64), np.array(records, np.int64) if weighted else None)
    people.finish()
    counts = np.zeros(size, np.int64)
    cells, records = people.sums.result()
    counts[cells] = records
    return counts, people


def slow_counts(rows, bound, size=CELLS):
    counts = np.zeros(size, np.int64)
    for (_, cell), records in slow_bound(rows, bound).items():
        counts[cell] += records
    return counts


def rows_of(persons):
    cell = st.integers(0, CELLS - 1)
    return st.lists(st.tuples(persons, cell, st.integers(0, 4)), max_size=30)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(rows_of(NUMBERS), rows_of(TEXTS)), BOUNDS, st.lists(st.integers(0, 30), max_size=12), st.sampled_from([1, 2, 5, 1000]))
def test_people_keep_what_the_definition_says_wherever_batches_end(rows, bound, cuts, at_once):
    with pytest.MonkeyPatch.context() as patch:
        for module in (bounding, sorted_people):
            patch.setattr(module, "RECORDS_AT_ONCE", at_once)
        np.testing.assert_array_equal(sorted_counts(rows, bound, cuts)[0], slow_counts(rows, bound))
        once = [(person, cell, 1) for person, cell, _ in rows]
        np.testing.assert_array_equal(sorted_counts(once, bound, cuts, weighted=False)[0], slow_counts(once, bound))


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("most", [1, 2])
def test_removing_one_person_changes_no_record_that_another_keeps(most, distinct):
    """Brute force: all tables of four rows of two people on three cells, for both engines and whatever batches they are in."""
    bound = bound_of(most, b"key", distinct=distinct)
    possible = list(itertools.product((0, 1), range(3)))
    for table in itertools.combinations_with_replacement(possible, 4):
        rows = [(person, cell, 1) for person, cell in table]
        alone = [kept_of([row for row in rows if row[0] == person], bound) for person in (0, 1)]
        whole = kept_of(rows, bound)
        np.testing.assert_array_equal(whole, alone[0] + alone[1])
        for person in (0, 1):
            own = sum(row[0] == person for row in rows) if not distinct else len({row for row in rows if row[0] == person})
            assert alone[person].sum() == min(own, most)
        for cut in range(4):
            np.testing.assert_array_equal(sorted_counts(rows, bound, [cut], size=3)[0], whole)


def kept_of(rows, bound):
    """(3,) counts of the engine in memory."""
    if not rows:
        return np.zeros(3, np.int64)
    found = count_rows(np.array([row[1] for row in rows]), None, find_people([row[0] for row in rows]), bound, 3)
    counts = np.zeros(3, np.int64)
    counts[found.cells] = found.counts
    return counts


def test_a_person_of_very_many_cells_is_bounded_in_memory_that_does_not_grow():
    """The waiting person holds the m smallest records, not the cells."""
    people, size, bound = SortedPeople(bound=bound_of(3, b"k"), sums=CellSums(size=2**40)), 2**17, bound_of(3, b"k")
    for start in range(0, 20 * size, size):
        people.add(pa.array(np.full(size, 7)), np.arange(start, start + size), None)
        if start > 3 * size:
            assert people._large is not None
            assert len(people._large._smallest[0]) == 3
            assert len(people._last.codes) == 1
            assert not people._large._pairs
    people.finish()
    cells, records = people.sums.result()
    whole = count_rows(np.arange(20 * size), None, find_people(np.full(20 * size, 7)), bound, 2**40)
    assert (cells.tolist(), records.tolist()) == (whole.cells.tolist(), whole.counts.tolist())


@pytest.mark.parametrize("batches", [[[1, 2, 1]], [[1, 2], [1]], [["a", "b", "a"]], [["a", "ü"], ["b"]]])
def test_rows_that_are_not_sorted_by_person_are_refused(batches):
    people = SortedPeople(bound=bound_of(1, b"k"), sums=CellSums(size=CELLS))
    with pytest.raises(RuntimeError, match="not sorted"):  # noqa: PT012
        for batch in batches:
            people.add(pa.array(batch), np.arange(len(batch)), None)


def test_people_with_fewer_are_counted():
    rows = [(1, 0, 1), (2, 0, 2), (3, 0, 1), (3, 1, 1), (4, 2, 0)]
    for cuts in ((), (1,), (1, 2, 3)):
        assert sorted_counts(rows, bound_of(2, b"k"), cuts)[1].fewer == 1


@pytest.mark.parametrize("size", [50, 2**40])
def test_sums_are_those_of_all_parts_and_are_cut_to_what_is_exact(size, monkeypatch):
    monkeypatch.setattr("dpviz.data.cell_counts._LEAST_BUFFER", 7)
    rng, sums, expected = np.random.default_rng(1), CellSums(size=size), np.zeros(50, np.int64)
    for _ in range(30):
        cells, records = rng.integers(0, 50, 5), rng.integers(1, 4, 5)
        sums.add(cells, records)
        np.add.at(expected, cells, records)
    sums.add(np.array([3, 3]), np.array([2**53, 2**53]))
    expected[3] = 2**53
    cells, records = sums.result()
    assert (cells.tolist(), records.tolist()) == (np.flatnonzero(expected).tolist(), expected[expected > 0].tolist())
    assert CellSums(size=size).result()[0].tolist() == []

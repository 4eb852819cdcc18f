"""Which records a person keeps: at most m, evenly chosen, whatever the others have."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.bounding import People, bound_of, bound_records, find_people
from dpviz.data.counting.files import read_points
from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.space.domain import Domain
from tests.data.reading.files import text
from tests.strategies import dense

few = settings(max_examples=20, deadline=None, derandomize=True)
SQUARE = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)


def histories(draw):
    people = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=40))
    return np.array(people), draw(st.integers(1, 4)), draw(st.binary(min_size=1, max_size=8))


@few
@given(st.data())
def test_nobody_keeps_more_than_the_bound(data):
    person, most, key = histories(data.draw)
    domain = Domain(bounds=(0.0, 0.0, 64.0, 1.0), crs=None, order=6)
    x = np.arange(len(person)) + 0.5  # one column of the lattice per record, so that kept records can be told apart
    points = PointCounts.from_xy(x, np.full(len(x), 0.5), domain=domain, person=person, contributions=most, key=key)
    owners, kept = np.unique(person[points.column], return_counts=True)
    everyone, had = np.unique(person, return_counts=True)
    assert owners.tolist() == everyone.tolist()
    np.testing.assert_array_equal(kept, np.minimum(had, most))
    assert (points.unit, points.contributions, points.dropped) == ("person", most, len(x) - kept.sum())


@few
@given(st.data())
def test_the_key_decides_which_records_are_kept(data):
    person, most, key = histories(data.draw)
    x = np.arange(len(person)) % 8 + 0.5
    one, two = (dense(PointCounts.from_xy(x, x, domain=SQUARE, person=person, contributions=most, key=key)) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_without_a_key_the_choice_differs_from_run_to_run():
    x = np.arange(4096) / 512
    kept = [PointCounts.from_xy(x, x, domain=SQUARE, person=np.zeros(4096)).row[0] for _ in range(60)]
    assert len(set(kept)) > 1


def test_everybodys_choice_is_even_and_does_not_depend_on_the_others():
    """Law of the kept record of a: uniform, alone or in company of somebody else's records."""
    runs, x = 1000, np.array([0.5, 1.5, 2.5, 3.5])
    alone, together = np.zeros(4), np.zeros(4)
    for run in range(runs):
        key = run.to_bytes(4, "little")
        alone[PointCounts.from_xy(x, x, domain=SQUARE, person=["a"] * 4, key=key).column[0]] += 1
        both = PointCounts.from_xy(np.r_[x + 4, x], np.r_[x, x], domain=SQUARE, person=["b"] * 4 + ["a"] * 4, key=key)
        together[both.column[both.column < 4][0]] += 1
    for kept in (alone, together):  # chi-squared with 3 degrees of freedom: 21.1 is passed once in 10,000 keys
        assert ((kept - runs / 4) ** 2 / (runs / 4)).sum() < 21.1


def lines_of(person, column):
    """Counts of cells as a mechanism gets them, from a file and from arrays; a place of 9 lies outside."""
    rows = "".join(f"{x + 0.5},0.5,{name}\n" for x, name in zip(column, person, strict=True))
    return text("x,y,person\n" + rows), np.asarray(column) + 0.5


@pytest.mark.parametrize("most", [1, 2, 3])
def test_removing_anybody_under_one_key_takes_their_records_and_nothing_else(most):
    """Brute force, from arrays and from a file: in L1 at most m, all of it down, in cells of that person only."""
    rng = np.random.default_rng(most)
    for trial in range(60):
        size = int(rng.integers(1, 12))
        person, column = rng.choice(list("abcd"), size), rng.integers(0, 10, size)
        options = {"domain": SQUARE, "contributions": most, "key": bytes([trial % 5 + 1])}

        def counts(keep, person=person, column=column, options=options, trial=trial):
            file, x = lines_of(person[keep], column[keep])
            found = dense(PointCounts.from_xy(x, np.full(len(x), 0.5), person=person[keep], **options))
            if trial % 10 == 0:
                np.testing.assert_array_equal(dense(read_points(file, person="person", **options)), found)
            return found[0]

        whole = counts(np.ones(size, bool))
        for who in np.unique(person):
            lost = whole - counts(person != who)
            own = np.bincount(column[(person == who) & (column < 8)], minlength=8)
            assert lost.sum() == min(own.sum(), most)
            assert ((lost >= 0) & (lost <= own)).all()


def test_the_whole_is_the_sum_of_everybody_alone():
    rng = np.random.default_rng(5)
    person, column = rng.integers(0, 6, 200), rng.integers(0, 8, 200) + 0.5
    options = {"domain": SQUARE, "contributions": 3, "key": b"k"}
    alone = [
        dense(PointCounts.from_xy(column[own], column[own], person=person[own], **options)) for own in np.eye(6, dtype=bool)[:, person]
    ]
    np.testing.assert_array_equal(dense(PointCounts.from_xy(column, column, person=person, **options)), sum(alone))


@few
@given(st.data())
def test_the_order_of_rows_changes_nothing(data):
    person, most, key = histories(data.draw)
    x = np.arange(len(person)) % 8 + 0.5
    order = data.draw(st.permutations(range(len(person))))
    options = {"domain": SQUARE, "contributions": most, "key": key, "distinct": data.draw(st.booleans())}
    sorted_rows = dense(PointCounts.from_xy(x, x, person=person, **options))
    np.testing.assert_array_equal(dense(PointCounts.from_xy(x[order], x[order], person=person[order], **options)), sorted_rows)


def test_rows_outside_the_domain_use_no_quota():
    x = np.r_[np.full(50, 99.0), 3.5, np.full(50, np.nan)]
    for run in range(30):
        points = PointCounts.from_xy(x, np.full(101, 0.5), domain=SQUARE, person=np.zeros(101), bad_rows="drop", key=bytes([run, 1]))
        assert (points.column.tolist(), points.count.tolist(), points.dropped) == ([3], [1], 100)


def test_a_row_of_many_records_keeps_at_most_the_bound():
    options = {"domain": SQUARE, "contributions": 3, "key": b"k"}
    whole = PointCounts.from_xy([0.5, 1.5, 2.5], [0.5] * 3, count=[10**9, 0, 2], person=["a", "b", "c"], **options)
    assert (whole.column.tolist(), whole.count.tolist(), whole.dropped) == ([0, 2], [3, 2], 10**9 - 3)
    mixed = PointCounts.from_xy([0.5, 1.5, 2.5], [0.5] * 3, count=[10**9, 2, 2], person=["a", "a", "c"], **options)
    assert mixed.count[mixed.column < 2].sum() == 3
    assert mixed.count[mixed.column == 2].tolist() == [2]


def test_a_choice_does_not_hang_on_how_a_column_holds_its_people():
    x = np.arange(8) + 0.5
    kept = {
        tuple(PointCounts.from_xy(x, x, domain=SQUARE, person=person, key=b"k").column)
        for person in ([7] * 8, [7.0] * 8, np.full(8, 7, np.uint8), pd.Series([7] * 8, dtype="Int64"), pd.Categorical([7] * 8), ["7"] * 8)
    }
    assert len(kept) == 1


@pytest.mark.parametrize(
    "person",
    [
        [{"zq17": 1}, {}],
        [["zq17"], ["a"]],
        [["a"], ["zq17", "b"]],
        [{"zq17"}, set()],
        np.array([["zq17"], ["b"]]),
        pd.DataFrame({"p": ["zq17", "b"]}),
    ],
)
def test_people_that_cannot_be_told_apart_are_refused(person):
    with pytest.raises(InputError, match="one column") as caught:
        PointCounts.from_xy([1.0, 2.0], [1.0, 2.0], domain=SQUARE, person=person)
    assert "zq17" not in str(caught.value)
    assert caught.value.__context__ is None


def test_hidden_people_are_missing():
    person = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(InputError, match="missing"):
        PointCounts.from_xy([1.0] * 3, [1.0] * 3, domain=SQUARE, person=person)
    assert PointCounts.from_xy([1.0] * 3, [1.0] * 3, domain=SQUARE, person=person, bad_rows="drop").count.sum() == 2


def test_nobody_is_named_in_a_repr():
    assert "zq17" not in repr(find_people(["zq17"]))
    assert find_people(find_people(["a"])).distinct == ["a"]
    nobody = People(codes=np.zeros(0, np.int64), distinct=[])
    held = bound_records(nobody, np.zeros(0, np.int64), np.zeros(0, np.int64), bound_of(1, b"k"))
    assert held.records.tolist() == []
    assert "zq17" not in repr(held) + repr(bound_of(1, b"zq17"))


def test_broken_text_names_people_too():
    for person in (["a\ud800", "b", None], np.array(["a\ud800", "b", None], object)):
        assert PointCounts.from_xy([1.0] * 3, [1.0] * 3, domain=SQUARE, person=person, bad_rows="drop").count.sum() == 2


def test_a_bound_beyond_every_integer_type_bounds_nothing():
    points = PointCounts.from_xy([0.5, 0.5], [0.5, 0.5], domain=SQUARE, person=["a", "a"], contributions=10**30)
    assert (points.count.tolist(), points.contributions) == ([2], 10**30)


def test_a_key_must_be_bytes():
    with pytest.raises(InputError, match="bytes"):
        PointCounts.from_xy([1.0], [1.0], domain=SQUARE, person=["a"], key="key")

"""A count that is too large is cut, and decides nothing else: not whether a file is used, and not other cells."""

import itertools

import numpy as np
import pytest

import dpviz as dv
from dpviz.data import cells as arrays
from dpviz.data.bounding import bound_of
from dpviz.data.cell_counts import count_rows
from dpviz.data.cells import MOST_RECORDS, most_per_cell, total_of
from dpviz.mechanisms.trips.top_down import TopDown
from tests.data.reading.files import PLANE, TOWNS, text

HUGE = [str(10**9), str(10**9 + 1), str(2**53), "9007199254740993", "1e300", "9" * 300, str(2**63), str(2**64)]


@pytest.mark.parametrize("bad_rows", ["refuse", "drop"])
@pytest.mark.parametrize("count", HUGE)
def test_a_whole_count_is_never_too_large(count, bad_rows):
    points = dv.read_points(text(f"lon,lat,n\n1,2,3\n1,1,{count}\n"), domain=PLANE, count="n", bad_rows=bad_rows)
    assert points.count.tolist() == [10**9, 3]
    trips = dv.read_trips(text(f"from,to,trips\na,b,3\na,c,{count}\n"), regions=TOWNS, bad_rows=bad_rows)
    assert trips.count.tolist() == [3, 10**9]
    assert trips.total == 3 + min(int(float(count)) if "e" in count else int(count), MOST_RECORDS - 3)


@pytest.mark.parametrize("engine", dv.data.counting.engines.ENGINES)
@pytest.mark.parametrize(("order", "bounded"), [((0, 1, 2), False), ((2, 0, 1), True), ((1, 2, 0), False)])
def test_sums_are_cut_alike_in_any_order_and_file(tmp_path, engine, order, bounded, counted_by):
    rows = ["1,1,1e300,a", *["1,1,9007199254740992,a"] * 2000 + ["2,2,999999999,b", "2,2,1,b"], "3,3,7,c"]
    for number, part in zip(order, (rows[:1], rows[1:2001], rows[2001:]), strict=True):
        (tmp_path / f"{number}.csv").write_text("\n".join(["x,y,n,who", *part]))
    options = {"person": "who", "contributions": 2**60, "key": b"k"} if bounded else {}
    points = dv.read_points(f"{tmp_path}/*.csv", domain=PLANE, **counted_by(engine), count="n", bad_rows="drop", **options)
    assert points.count.tolist() == [10**9, 10**9, 7]
    assert points.bad == points.outside == 0
    assert points.over >= (2000 if bounded else MOST_RECORDS - 2 * 10**9 - 7)


@pytest.mark.parametrize("most", [None, 2, 5])
def test_one_record_more_changes_one_count_by_at_most_one(monkeypatch, most):
    """All tables of two rows on two places, the cap at 3; with people, a person's records change the counts by m in all."""
    monkeypatch.setattr(arrays, "MOST_PER_CELL", 3)
    bound = None if most is None else bound_of(most, b"k")

    def counted(places, weight):
        owners = None if most is None else dv.data.bounding.find_people(["a", "b"])
        found = count_rows(np.array(places), np.array(weight), owners, bound, 2)
        whole = np.zeros(2, np.int64)
        whole[found.cells] = found.counts
        assert found.beyond == (0 if most else min(sum(weight), MOST_RECORDS) - whole.sum()) or most
        return whole

    weights = [0, 1, 2, 3, 4, 5, MOST_RECORDS - 1]
    for places in itertools.product(range(2), repeat=2):
        for one, two in itertools.product(weights, repeat=2):
            before = counted(places, [one, two])
            change = np.abs(counted(places, [one + 1, two]) - before)
            assert change.sum() <= 1
            if most is not None:
                assert np.abs(counted(places, [one, 0]) - before).sum() <= most


def test_cut_counts_add_up_to_what_floats_hold():
    for size in (4**order for order in range(1, 25)):
        assert most_per_cell(size) * min(size, 2**33) <= MOST_RECORDS
        assert most_per_cell(size) >= 2**20
    assert total_of(np.full(5000, MOST_RECORDS)) == MOST_RECORDS
    assert total_of(np.array([MOST_RECORDS - 2, 1])) == MOST_RECORDS - 1


def test_the_exact_total_is_that_of_all_trips_wherever_they_are():
    """One trip moves from a pair that holds too many to another: the published total stays."""
    totals = []
    for extra in (["a,b,1"], ["b,b,1"]):
        rows = ["from,to,trips", "a,b,3000000000", "b,a,5", *extra]
        trips = dv.read_trips(text("\n".join(rows)), regions=TOWNS, bad_rows="drop")
        release = TopDown().release(trips, dv.ZcdpBudget(1), dv.Entropy.seeded(1))
        totals.append((trips.total, int(release.stages[0].count.sum()), release.receipt.unprotected))
    assert totals[0] == totals[1]
    assert totals[0][0] == 3_000_000_006

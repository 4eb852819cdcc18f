"""Files read into memory one after the other are as one file."""

import pytest

from dpviz.data.bounding import people
from dpviz.data.columns import PointColumns
from dpviz.data.counting.in_memory import join_people, join_points, join_trips, read_all_points, read_all_trips
from dpviz.data.counting.job import Progress
from dpviz.data.reading.flows import FlowColumns, FlowsRequest
from dpviz.data.reading.points import PointsRequest
from dpviz.errors import InputError
from tests.data.reading.files import TOWNS, text


def test_people_of_all_files_keep_their_rows():
    joined = join_people([people(["a", None, "b"]), None, people(["b", "c"])])
    assert [joined.distinct[code] if code >= 0 else None for code in joined.codes] == ["a", None, "b", "b", "c"]
    assert join_people([None, None]) is None


def test_rows_of_all_files_follow_one_another():
    files = [text("x,y,n,who\n1,2,3,a\n", "a.csv"), text("x,y,n,who\n", "b.csv"), text("x,y,n,who\n4,5,6,b\n7,8\n", "c.csv")]
    request = PointsRequest(target=None, columns=PointColumns(count="n", person="who"), bad_rows="drop")
    rows = read_all_points(files, request, Progress())
    assert (rows.x.tolist(), rows.y.tolist(), rows.count.tolist(), rows.ragged) == ([1, 4], [2, 5], [3, 6], 1)
    assert [rows.person.distinct[code] for code in rows.person.codes] == ["a", "b"]
    assert join_points([rows]) is rows
    with pytest.raises(InputError, match="fewer cells"):
        read_all_points(files, PointsRequest(target=None, columns=PointColumns()), Progress())


def test_trips_of_all_files_follow_one_another_and_say_a_note_once():
    files = [text("origin,destination,count\na,b,3\ntotal,b,3\n", f"{name}.csv") for name in "ab"]
    trips = read_all_trips(files, FlowsRequest(sides=(TOWNS, TOWNS), columns=FlowColumns()), Progress())
    assert (trips.origin.tolist(), trips.destination.tolist(), trips.count.tolist()) == ([0, 0], [1, 1], [3, 3])
    assert trips.notes == ("rows or columns of totals, which equal the sums of the others",)
    assert trips.person is None
    assert join_trips([trips]) is trips

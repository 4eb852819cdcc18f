"""One reader of tables: points, trips and regions are refused for the same lines, headers and sizes, and columns are read as they stand."""

import io

import numpy as np
import pandas as pd
import pytest

from dpviz.data.counting.files import read_flows, read_points
from dpviz.data.reading.regions import read_regions
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.tables import open_table
from dpviz.errors import DpvizError
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from tests.data.reading.files import text, upload

PLANE = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)
REGIONS = Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
LIMITS = Limits()
READERS = {
    "points": ("x,y,note", "1,2,", lambda source, limits: read_points(source, domain=PLANE, limits=limits)),
    "trips": ("from,to,note", "a,b,", lambda source, limits: read_flows(source, regions=REGIONS, limits=limits)),
    "regions": ("town,name,note", "a,A,", lambda source, limits: read_regions(source, levels=["town"], limits=limits)),
}


def refusal(kind, lines, limits=LIMITS):
    """The text of the refusal of a file with the kind's header and one good row, and then some lines."""
    header, row, read = READERS[kind]
    content = "\n".join([header, row + "fine", *(line.format(row=row) for line in lines)])
    with pytest.raises(DpvizError) as caught:
        read(text(content, "a.csv"), limits)
    return str(caught.value)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{row}"open', "quotation mark"),
        ('{row}an "inner" one', "quotation mark"),
        ("{row}one,more", "more or fewer cells"),
        ("1", "more or fewer cells"),
        ("{row}" + "z" * 2**20, "longer than"),
    ],
)
def test_every_reader_refuses_the_same_lines(kind, line, words):
    assert words in refusal(kind, [line])


@pytest.mark.parametrize("kind", READERS)
def test_every_reader_has_the_same_limits(kind):
    assert "more rows than the limit of 2" in refusal(kind, ["{row}", "{row}"], Limits(rows=2))
    assert "more columns than the limit of 2" in refusal(kind, [], Limits(columns=2))
    assert "larger than the limit of 5" in refusal(kind, [], Limits(file_bytes=5))


@pytest.mark.parametrize("kind", READERS)
def test_every_reader_takes_headers_by_the_same_rule(kind):
    header, row, read = READERS[kind]
    for content, words in (
        (header.replace(",", ";"), "no comma"),
        (header.replace("note", '"no'), "quotation marks do not fit"),
        ("\n\n", "empty"),
    ):
        with pytest.raises(DpvizError, match=words):
            read(text(f"{content}\n{row}\n" if content.strip() else content), LIMITS)


def test_numbers_are_read_as_such_unless_an_entry_is_none():
    def columns(content, **options):
        return open_table("CSV", content.encode(), LIMITS).take([0, 1], numbers=[0], **options).columns

    assert [column.to_pylist() for column in columns("n,id\n1,007\n2.5,NA\n")] == [[1.0, 2.5], ["007", "NA"]]
    assert [column.to_pylist() for column in columns("n,id\n1,007\n2km,NA\n")] == [["1", "2km"], ["007", "NA"]]
    assert [column.to_pylist() for column in columns("n,id\n1,007\nNA,NA\n", missing_words=True)] == [[1.0, None], ["007", None]]


def test_a_stored_index_comes_first_where_it_is_wanted():
    buffer = io.BytesIO()
    pd.DataFrame({"a": [1, 2], "b": [3, 4]}, index=pd.Index(["u", "v"], name="from")).to_parquet(buffer)
    opened = open_table("Parquet", upload(buffer.getvalue(), "a.parquet").read(), LIMITS)
    assert (opened.names, opened.index_first().names) == (("a", "b", "from"), ("from", "a", "b"))
    first, last = opened.index_first().take([0, 2]).columns
    assert (first.to_pylist(), last.to_pylist()) == (["u", "v"], [3, 4])
    assert opened.index_first().index_first().names == ("from", "a", "b")
    assert np.array_equal(opened.take([0]).columns[0], [1, 2])

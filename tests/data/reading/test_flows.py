"""Files of trips: tables and matrices of every form, totals, ids as text, and refusals that quote nothing."""

import csv
import io
import traceback
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.counting.files import read_flows
from dpviz.data.reading.flows import TOTAL_WORDS, TOTALS_CHECKED, TOTALS_UNCHECKED, inspect_flows
from dpviz.data.reading.safety import Limits
from dpviz.errors import InputError
from dpviz.space.regions import Regions
from tests.data.reading.files import text, upload
from tests.data.test_flows import IDS, REGIONS, pairs
from tests.space.nested import paths, regions_of

few = settings(max_examples=12, deadline=None, derandomize=True, database=None)
more = settings(max_examples=30, deadline=None, derandomize=True, database=None)
COMMUTERS = "flow,origin,destination\n70,36001,36001\n5,36001,50001\n2,01001,36003\n"
EXPECTED = {("36001", "36001"): 70, ("36001", "50001"): 5, ("01001", "36003"): 2}
MATRIX = "from,36001,50001,36003\n36001,70,5,\n01001,,,2\n"
FORMS = ("csv", "tsv", "parquet")


def trips(content, name="trips.csv"):
    return text(content, name)


def stored(table, form, **options):
    buffer = io.BytesIO()
    if form == "parquet":
        table.to_parquet(buffer, **options)
    else:
        table.to_csv(buffer, index=False, **({"sep": "\t", "quoting": csv.QUOTE_NONE} if form == "tsv" else {}))
    return upload(buffer.getvalue(), f"trips.{form}")


def refusal(source, regions=REGIONS, **options):
    """The text of the refusal; no private word of these tests may be in it, nor in what hangs on it."""
    with pytest.raises(InputError) as caught:
        read_flows(source, regions=regions, **options)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert "zq" not in repr(caught.value)
    return str(caught.value)


def dropped(source, **options):
    flows = read_flows(source, regions=REGIONS, bad_rows="drop", **options)
    return pairs(flows), flows.dropped


@pytest.mark.parametrize("content", [COMMUTERS, MATRIX])
def test_a_table_and_a_matrix_of_the_same_trips_are_the_same(content):
    flows = read_flows(trips(content), regions=REGIONS)
    assert pairs(flows) == EXPECTED
    assert (flows.unit, flows.contributions, flows.dropped, flows.notes) == ("trip", 1, 0, ())


def test_a_path_is_read_like_an_upload(tmp_path):
    (tmp_path / "trips.CSV").write_text(COMMUTERS)
    assert pairs(read_flows(tmp_path / "trips.CSV", regions=REGIONS)) == EXPECTED


@pytest.mark.parametrize("form", FORMS)
@few
@given(st.data())
def test_what_was_written_is_what_is_read(form, data):
    rows = data.draw(paths(most_depth=2))
    regions = regions_of(rows)
    ids = regions.ids[-1].tolist()
    pair = st.tuples(st.integers(0, len(ids) - 1), st.integers(0, len(ids) - 1))
    found = data.draw(st.dictionaries(pair, st.integers(1, 10**9), max_size=12))
    split = [(ids[a], ids[b], part) for (a, b), count in found.items() for part in (count // 2, count - count // 2)]
    table = pd.DataFrame(split, columns=["From", "TO", "Trips"]).astype({"From": object, "TO": object, "Trips": np.int64})
    expected = {(ids[a], ids[b]): count for (a, b), count in found.items()}
    flows = read_flows(stored(table, form), regions=regions)
    assert pairs(flows) == expected
    wide = pd.DataFrame(0, index=range(len(ids)), columns=ids, dtype=object)
    for (a, b), count in found.items():
        wide.iloc[a, b] = count
    wide.insert(0, "\u21b3 to", ids)
    if form != "parquet" or all(not name.startswith("__") for name in ids):
        assert pairs(read_flows(stored(wide, form), regions=regions)) == expected


@pytest.mark.parametrize("rows", [1, 50_000])
def test_many_rows_in_blocks(rows):
    content = "o,d,n\n" + "".join(f'01001,"36001",{k % 7}\n' for k in range(rows))
    assert read_flows(trips(content), regions=REGIONS, count="n").count.sum() == sum(k % 7 for k in range(rows))


HEADERS = [
    ("origin", "destination", "count"),
    ("from", "to", "trips"),
    ("SOURCE", "Target", " Flow "),
    ("h_geocode", "w_geocode", "S000"),
    ("start", "end", "flows"),
    ("home", "work", "commuters"),
    ("o", "d", "counts"),
    ("origin", "dest", "count"),
]


@pytest.mark.parametrize("names", HEADERS)
def test_columns_are_found_by_their_names(names):
    source = trips(f"{','.join(names)},note\n01001,36001,7,zq\n")
    assert pairs(read_flows(source, regions=REGIONS)) == {("01001", "36001"): 7}
    found = inspect_flows(source)
    assert (found.origin, found.destination, found.count) == names
    assert (found.person, found.matrix, found.rows, found.format) == (None, False, None, "CSV")


def test_columns_may_be_named():
    source = trips("A,B,C,origin\n01001,36001,7,zq\n")
    assert pairs(read_flows(source, regions=REGIONS, origin="a", destination="B", count="c")) == {("01001", "36001"): 7}


@pytest.mark.parametrize(
    ("header", "options", "words"),
    [
        ("from,origin,to", {}, ["'from'", "'origin'", "origin='...'"]),
        ("from,to,dest", {}, ["'to'", "'dest'", "destination='...'"]),
        ("from,to,count,Flow", {}, ["'count'", "'Flow'", "count='...'"]),
        ("from,to,count,count", {}, ["count='...'"]),
        ("from,zqb,c", {}, ["No column for destination"]),
        ("zqa,to,c", {}, ["No column for origin"]),
        ("from,to,c", {"origin": "where"}, ["no column named 'where'"]),
        ("from,to,c", {"count": "n"}, ["no column named 'n'"]),
        ("from,to,c", {"person": "who"}, ["no column named 'who'"]),
        ("from,to,c", {"origin": "to"}, ["the same column"]),
        ("from,to,c", {"count": "to"}, ["other columns"]),
        ("from,to,c", {"person": "from"}, ["other columns"]),
        ("c,C,to", {"origin": " c "}, ["Several columns have the name"]),
        ("from;to;zq", {}, ["commas"]),
        ("from,to,weight", {"count": "weight"}, ["called a weight", "Survey weights are refused"]),
    ],
)
def test_columns_that_cannot_be_told_are_asked_for(header, options, words):
    message = refusal(trips(f"{header}\n01001,36001,3\n"), **options)
    assert all(word in message for word in words)


def test_without_a_count_every_row_is_a_trip():
    for content in ("from,to\n01001,36001\n01001,36001\n", "from,to,weight\n01001,36001,5\n01001,36001,1\n"):
        assert pairs(read_flows(trips(content), regions=REGIONS)) == {("01001", "36001"): 2}


def test_a_person_is_proposed_and_never_applied_unasked():
    source = trips("from,to,user_id\n01001,36001,a\n01001,36001,a\n01001,36001,NA\n")
    assert inspect_flows(source).person == "user_id"
    assert read_flows(source, regions=REGIONS).count.tolist() == [3]
    flows = read_flows(source, regions=REGIONS, person="USER_ID", bad_rows="drop")
    assert (flows.count.tolist(), flows.unit, flows.enforced, flows.dropped) == ([1], "person", True, 2)
    assert "'user_id' has" not in refusal(source, person="user_id"), "the person column is called so, not by its name"
    assert "person column has a missing cell" in refusal(source, person="user_id")


def test_exactly_and_declared_bounds_are_passed_on():
    source = trips("from,to,who\n01001,36001,a\n01001,36003,a\n36001,36001,b\n")
    options = {"person": "who", "contributions": 2, "exactly": True}
    assert "fewer trips" in refusal(source, **options)
    assert dropped(source, **options) == ({("01001", "36001"): 1, ("01001", "36003"): 1}, 1)
    assert read_flows(source, regions=REGIONS, contributions=2).enforced is False


def test_the_key_decides_which_trips_are_kept():
    rows = "".join(f"{a},{b},{who}\n" for a in IDS for b in IDS for who in "abcdefgh")
    source = trips("from,to,who\n" + rows)
    one, two, other = (read_flows(source, regions=REGIONS, person="who", key=key) for key in (b"k", b"k", b"l"))
    assert pairs(one) == pairs(two) != pairs(other)


def test_ids_stay_text_with_their_zeros():
    assert pairs(read_flows(trips("o,d\n01001,01003\n"), regions=REGIONS)) == {("01001", "01003"): 1}
    assert "lost the leading zeros" in refusal(trips("o,d\n1001,36001\n"))
    assert "lost the leading zeros" in refusal(stored(pd.DataFrame({"o": [1001], "d": [36001]}), "parquet"))
    assert "lost the leading zeros" in refusal(stored(pd.DataFrame({"o": [1001], "d": [36001]}), "parquet"), bad_rows="drop")
    assert "lost the leading zeros" in refusal(trips("from,1001,1003\n1001,2,3\n"))
    assert "The header holds numbers" in refusal(trips("from,1001,36001\n36001,2,3\n"))


def test_numbers_are_no_matter_where_no_id_has_a_zero_in_front():
    north = Regions.from_prefixes(["36001", "50001"], lengths=[2, 5], levels=["state", "county"])
    source = stored(pd.DataFrame({"o": [36001, 7], "d": [50001, 50001]}), "parquet")
    assert read_flows(source, regions=north, bad_rows="drop").count.tolist() == [1]


def test_an_id_may_be_a_word_that_elsewhere_means_missing():
    regions = Regions.from_table(pd.DataFrame({"country": ["NA", "NULL", "nan", "None"]}), levels=["country"])
    assert read_flows(trips("o,d\nNA,NULL\nnan,None\n"), regions=regions).count.sum() == 2


BLOCKS = "w_geocode,h_geocode,S000\n010010201001000,360010146111000,3\n010010201001001,360010146111000,4\n"


def test_block_codes_of_lodes_are_cut_to_the_length_of_the_leaves():
    assert pairs(read_flows(trips(BLOCKS), regions=REGIONS)) == {("36001", "01001"): 7}
    renamed = trips(BLOCKS.replace("h_geocode", "home").replace("w_geocode", "work"))
    assert "no leaf region" in refusal(renamed)
    for bad_rows in ("refuse", "drop"):
        assert "lost the leading zeros" in refusal(stored(pd.read_csv(trips(BLOCKS)), "parquet"), bad_rows=bad_rows)
    assert "no leaf region" in refusal(trips(BLOCKS.replace("360010146111000", "36001014611100")))


def test_block_codes_are_not_cut_where_leaves_have_ids_of_several_lengths():
    mixed = Regions.from_table(pd.DataFrame({"place": ["36001", "010"]}), levels=["place"])
    assert "no leaf region" in refusal(trips(BLOCKS), regions=mixed)


BAD = {
    "unknown origin": ("zq,36001,4", "'from' has an id that is no leaf region", 4),
    "unknown destination": ("36001,zq,4", "'to' has an id that is no leaf region", 4),
    "missing origin": (",36001,4", "'from' has an id that is missing", 4),
    "blank destination": ("36001, ,4", "'to' has an id that is missing", 4),
    "missing count": ("36001,36001,", "'trips' has a missing cell", 1),
    "text": ("36001,36001,zq", "'trips' has a cell that is no number", 1),
    "thousands": ('36001,36001,"1,000"', "'trips' has a cell that is no number", 1),
    "hexadecimal": ("36001,36001,0x10", "'trips' has a cell that is no number", 1),
    "underscore": ("36001,36001,1_0", "'trips' has a cell that is no number", 1),
    "other digits": ("36001,36001,\u0661", "'trips' has a cell that is no number", 1),
    "nan": ("36001,36001,NaN", "'trips' has a cell that is no number", 1),
    "infinite": ("36001,36001,inf", "'trips' has a cell that is no number", 1),
    "negative": ("36001,36001,-1", "'trips' has a negative count", 1),
    "fraction": ("36001,36001,1.5", "'trips' has a count that is no whole number", 1),
    "tiny fraction": ("36001,36001,1.00000000000000000001", "'trips' has a count that is no whole number", 1),
    "too few cells": ("36001", "more or fewer cells", 1),
    "too many cells": ("36001,36001,1,zq", "more or fewer cells", 1),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_refused_with_a_reason_or_dropped(case):
    row, words, lost = BAD[case]
    source = trips(f"from,to,trips\n01001,36001,2\n{row}\n36001,36003,3\n")
    message = refusal(source)
    assert words in message
    assert not set("1456789") & set(message.replace("2**53", ""))
    assert dropped(source) == ({("01001", "36001"): 2, ("36001", "36003"): 3}, lost)


def test_every_reason_is_another():
    same = {"hexadecimal", "underscore", "other digits", "nan", "infinite", "thousands", "tiny fraction", "too many cells"}
    reasons = {refusal(trips(f"from,to,trips\n{row}\n")) for case, (row, _, _) in BAD.items() if case not in same}
    assert len(reasons) == len(BAD) - len(same)


@pytest.mark.parametrize("cell", ["7", " 7 ", "+7", "7.0", "7.", "0.7e1", "70e-1", "007", '"7"'])
def test_whole_numbers_however_they_are_written(cell):
    assert pairs(read_flows(trips(f"from,to,trips\n01001,36001,{cell}\n"), regions=REGIONS)) == {("01001", "36001"): 7}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("last", [10**9 - 1, 10**9])
def test_counts_up_to_a_thousand_million_are_exact(form, last):
    table = pd.DataFrame({"from": ["01001", "36001"], "to": ["36001", "36001"], "count": [last, 2]})
    assert read_flows(stored(table, form), regions=REGIONS).count.tolist() == [last, 2]
    assert read_flows(stored(table.assign(count=[2**54, 10**9 + 1]), form), regions=REGIONS).count.tolist() == [10**9, 10**9]


@pytest.mark.parametrize("cells", [["zq", "zq"], ["1,5", "zq"], ["1.5", "2.5"], ["-1", "zq"]])
def test_a_column_without_a_whole_number_is_refused_either_way(cells):
    source = stored(pd.DataFrame({"from": ["01001"] * 2, "to": ["01001"] * 2, "count": cells}), "csv")
    assert "'count'" in refusal(source)
    assert "'count' holds no whole number" in refusal(source, bad_rows="drop")


ODD = {
    "list": pa.array([["zq"], ["b"]]),
    "record": pa.array([{"zq": 1}, {"zq": 2}]),
    "map": pa.array([[("zq", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
    "boolean": pa.array([True, False]),
    "time": pa.array([0, 1]).cast(pa.timestamp("s")),
    "bytes": pa.array([b"zq", b"\xff"]),
    "nothing": pa.nulls(2),
    "fractions": pa.array([0.5, 1.5]),
}


@pytest.mark.parametrize("column", ["from", "to", "count"])
@pytest.mark.parametrize("kind", ODD)
def test_parquet_columns_of_another_kind_are_refused(kind, column):
    buffer = io.BytesIO()
    pq.write_table(pa.table({"from": IDS[:2], "to": IDS[:2], "count": [1, 2], column: ODD[kind]}), buffer)
    refusal(upload(buffer.getvalue(), "a.parquet"))
    buffer = io.BytesIO()
    pq.write_table(pa.table({"at": IDS[:2], IDS[0]: ODD[kind]}), buffer)
    if kind != "nothing":
        refusal(upload(buffer.getvalue(), "a.parquet"))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_parquet_ids_and_counts_may_be_texts_of_any_kind(kind):
    buffer = io.BytesIO()
    pq.write_table(pa.table({"from": pa.array(IDS[:2]).cast(kind), "to": pa.array(IDS[:2]).cast(kind), "count": ["7", "2"]}), buffer)
    assert read_flows(upload(buffer.getvalue(), "a.parquet"), regions=REGIONS).count.tolist() == [7, 2]


@pytest.mark.parametrize("form", FORMS)
def test_files_without_rows_hold_no_trips(form):
    empty = pd.DataFrame({"from": [], "to": [], "count": []}, dtype=object)
    assert len(read_flows(stored(empty, form), regions=REGIONS).count) == 0


@pytest.mark.parametrize("content", ["from,to", "from,to\n", "\n\nfrom,to\n\n\n", "from,36001", "\ufefffrom,to\r\n", '"from","to"'])
def test_text_of_nothing_but_a_header_holds_no_trips(content):
    assert len(read_flows(trips(content), regions=REGIONS).count) == 0


@pytest.mark.parametrize("content", ["\n\r\nfrom,to\n01001,36001\n", "\ufeff\n\nfrom,to\r\n\r\n01001,36001\r\n"])
def test_line_ends_blank_lines_and_marks_do_no_harm(content):
    assert pairs(read_flows(trips(content), regions=REGIONS)) == {("01001", "36001"): 1}


TOTALS = {
    "of an origin": "36001,total,75\n",
    "of a destination": "Total,36001,70\n",
    "of all": "ALL,all,77\n",
    "of everything": "36001,total,75\n01001,total,2\ntotal,36001,70\ntotal,50001,5\ntotal,36003,2\ntotal,total,77\n",
    "in two words": "36001,total,75\n36001,sum,75\n",
    "of nobody": "50001,total,0\n",
}


@pytest.mark.parametrize("case", TOTALS)
def test_totals_that_agree_are_left_out(case):
    source = trips("origin,destination,count\n36001,36001,70\n36001,50001,5\n" + TOTALS[case] + "01001,36003,2\n")
    flows = read_flows(source, regions=REGIONS)
    assert (pairs(flows), flows.dropped, flows.notes) == (EXPECTED, 0, (TOTALS_CHECKED,))
    flows = read_flows(source, regions=REGIONS, bad_rows="drop")
    assert (pairs(flows), flows.dropped, flows.notes) == (EXPECTED, 0, (TOTALS_UNCHECKED,))


@pytest.mark.parametrize("row", ["36001,total,74", "total,36001,71", "sum,sum,76", "50001,all,1", "36001,total,75\n36001,total,75"])
def test_totals_that_contradict_are_refused(row):
    content = "origin,destination,flow\n36001,36001,70\n36001,50001,5\n01001,36003,2\n" + row + "\n"
    assert "contradicts itself" in refusal(trips(content))
    assert dropped(trips(content)) == (EXPECTED, 0)


def test_totals_of_a_matrix():
    matrix = "from,36001,50001,36003,Total\n36001,70,5,,75\n01001,,,2,2\nTotal,70,5,2,77\n"
    flows = read_flows(trips(matrix), regions=REGIONS)
    assert (pairs(flows), flows.dropped, flows.notes) == (EXPECTED, 0, (TOTALS_CHECKED,))
    for wrong in (
        matrix.replace(",77", ",78"),
        matrix.replace(",75", ",74"),
        matrix.replace(",,2,2", ",,2,"),
        matrix.replace("5,2,77", "4,2,77"),
    ):
        assert "contradicts itself" in refusal(trips(wrong))
        assert dropped(trips(wrong)) == (EXPECTED, 0)


@pytest.mark.parametrize("word", TOTAL_WORDS)
def test_a_region_may_be_called_total(word):
    regions = Regions.from_table(pd.DataFrame({"place": [word, "b"]}), levels=["place"])
    flows = read_flows(trips(f"o,d,count\n{word},b,7\nb,{word},2\n"), regions=regions)
    assert (flows.count.sum(), flows.notes) == (9, ())


@pytest.mark.parametrize("row", [",36001,3", "36001,,3", "zq,36001,3"])
def test_bad_ids_are_refused_though_there_are_totals(row):
    source = trips(f"origin,destination,count\n36001,36001,70\n36001,total,70\n{row}\n")
    assert "has an id that" in refusal(source)
    assert dropped(source) == ({("36001", "36001"): 70}, 3)


def test_totals_among_trips_of_people_are_unknown_regions():
    assert "no leaf region" in refusal(trips("o,d,who\n36001,total,a\n"), person="who")


MATRICES = {
    "unknown destination": ("from,36001,zq\n36001,1,2\n", "The header has an id that is no leaf region", ({("36001", "36001"): 1}, 2)),
    "unknown origin": ("from,36001\n36001,1\nzq,2\n", "The first column has an id that is no leaf region", ({("36001", "36001"): 1}, 2)),
    "no destination": ("from,36001,\n36001,1,2\n", "The header has an id that is missing", ({("36001", "36001"): 1}, 2)),
    "no origin": ("from,36001\n36001,1\n,2\n", "The first column has an id that is missing", ({("36001", "36001"): 1}, 2)),
    "negative": ("from,36001,50001\n36001,1,-2\n", "A column of the matrix has a negative count", ({("36001", "36001"): 1}, 1)),
    "fraction": ("from,36001,50001\n36001,1,2.5\n", "Survey weights are refused", ({("36001", "36001"): 1}, 1)),
    "text": ("from,36001,50001\n36001,1,zq\n", "A column of the matrix has a cell that is no number", ({("36001", "36001"): 1}, 1)),
    "ragged": ("from,36001,50001\n36001,1,\n36001,2\n", "more or fewer cells", ({("36001", "36001"): 1}, 1)),
}


@pytest.mark.parametrize("case", MATRICES)
def test_bad_cells_of_a_matrix_are_refused_with_a_reason_or_dropped(case):
    content, words, left = MATRICES[case]
    assert words in refusal(trips(content))
    assert dropped(trips(content)) == left


@pytest.mark.parametrize(
    ("options", "words"), [({"count": "36001"}, "leave count and person out"), ({"person": "from"}, "leave count and person out")]
)
def test_a_matrix_leaves_no_choice_of_columns(options, words):
    assert words in refusal(trips(MATRIX), **options)


def test_a_destination_stands_in_the_header_of_a_matrix_once():
    assert "names a destination twice" in refusal(trips("from,36001,36001\n36001,1,2\n"))


def test_columns_and_rows_of_zeros_need_no_region():
    assert pairs(read_flows(trips("from,36001,zq,\n36001,1,0,\nzq,,,0\n"), regions=REGIONS)) == {("36001", "36001"): 1}


def test_a_pivot_table_of_pandas_is_a_matrix():
    table = pd.DataFrame({"o": ["36001", "01001"], "d": ["36001", "50001"], "n": [3, 4]})
    wide = table.pivot_table(index="o", columns="d", values="n", aggfunc="sum")
    for source in (stored(wide, "parquet"), stored(wide.reset_index(), "csv"), stored(wide.reset_index(), "parquet")):
        assert pairs(read_flows(source, regions=REGIONS)) == {("36001", "36001"): 3, ("01001", "50001"): 4}
        assert inspect_flows(source).matrix is True


def test_matrices_may_have_other_regions_as_destinations():
    ports = Regions.from_prefixes(["AKzz", "CAxx"], lengths=[2, 4], levels=["state", "port"])
    flows = read_flows(trips("from,AKzz,CAxx\n36001,2,\n01001,,9\n"), regions=REGIONS, destinations=ports)
    assert pairs(flows) == {("36001", "AKzz"): 2, ("01001", "CAxx"): 9}


@pytest.mark.parametrize(
    ("header", "matrix"),
    [
        ("from,36001,50001", True),
        (",a,b", True),
        ("origin,a,b", True),
        ("origin,destination,count", False),
        ("x,y,z", False),
        ("from,to,36001,36002,36003", False),
    ],
)
def test_a_matrix_is_recognised_without_the_regions(header, matrix):
    cells = header.count(",") * ",1"
    assert inspect_flows(trips(f"{header}\na{cells}\nb{cells}\n")).matrix is matrix


def test_what_is_said_about_a_file_holds_no_private_number():
    found = inspect_flows(stored(pd.DataFrame({"from": ["zq"] * 77, "to": ["zq"] * 77, "trips": [9.5] * 77}), "parquet"))
    assert (found.rows, found.format) == (77, "Parquet")
    assert not {"77", "zq", "9.5"} & set(repr(found).replace("'", " ").replace("=", " ").split())
    assert "77" not in repr(found)


@pytest.mark.parametrize("content", ["36001,36003,5\n01001,01001,2\n", "1.5,2,3\n"])
def test_a_first_line_of_data_is_refused(content):
    with pytest.raises(InputError, match="starts with data"):
        inspect_flows(trips(content))
    assert "the first line must hold the names" in refusal(trips("36001,zq,5\n01001,01001,2\n"))


def test_a_first_row_of_data_is_no_header_of_a_matrix():
    states = Regions.from_table(pd.DataFrame({"state": ["NY", "VT"]}), levels=["state"])
    for bad_rows in ("refuse", "drop"):
        assert "starts with data" in refusal(trips("36001,36003,5\n01001,01001,2\n"), bad_rows=bad_rows)
        assert "starts with data" in refusal(trips("NY,VT,5\nVT,VT,2\n"), states, bad_rows=bad_rows)


@pytest.mark.parametrize("form", FORMS)
def test_files_over_a_limit_are_refused(form):
    source = stored(pd.DataFrame({"from": ["01001"] * 4, "to": ["36001"] * 4, "count": [1] * 4}), form)
    size = len(source.getvalue())
    assert "bytes" in refusal(source, limits=Limits(file_bytes=size - 1))
    assert "rows" in refusal(source, limits=Limits(rows=3))
    assert "columns" in refusal(source, limits=Limits(columns=2))
    exact = Limits(file_bytes=size, rows=4, columns=3)
    assert read_flows(source, regions=REGIONS, limits=exact).count.sum() == 4


def test_rows_end_in_line_feeds():
    assert "rows" in refusal(trips("from,to\r\n" + "01001,36001\r\n" * 5), limits=Limits(rows=4))
    assert "carriage returns alone" in refusal(trips("from,to\r" + "01001,36001\r" * 5))


def test_parquet_that_unpacks_to_too_much_is_refused():
    buffer = io.BytesIO()
    pq.write_table(pa.table({"from": ["01001"] * 200_000, "to": ["36001"] * 200_000, "n": range(200_000)}), buffer, compression="zstd")
    source = upload(buffer.getvalue(), "a.parquet")
    assert "unpacks" in refusal(source, count="n", limits=Limits(unpacked_bytes=100_000))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("http://zq/a.csv", "URLs"),
        ("/vsicurl/http://zq/a.csv", "URLs"),
        ("zq.csv.gz", "Compressed"),
        ("zq.xlsx", "must be one of"),
        ("zq.csv", "cannot be read"),
    ],
)
def test_files_that_cannot_be_opened(name, words):
    assert words in refusal(name)


@pytest.mark.parametrize("name", ["a.geojson", "a.gpkg", "a.zip"])
def test_files_that_are_no_tables_are_refused(name):
    assert "must be CSV, TSV or Parquet" in refusal(upload(b"zq", name))


def test_text_in_another_encoding_is_refused_or_its_rows_dropped():
    source = upload("from,to,note\n01001,36001,\xe9\nzq\xe9,36001,1\n".encode("latin-1"), "a.csv")
    assert "UTF-8" in refusal(source)
    assert dropped(source) == ({}, 2)


def test_an_open_quote_never_stops_a_run():
    source = trips('from,to\n01001,36001\n01001,"zq\n' + "36001,36003\n" * 300_000)
    assert "not closed on its line" in refusal(source)
    assert dropped(source) == ({("01001", "36001"): 1, ("36001", "36003"): 300_000}, 1)


def test_the_rule_for_bad_rows_must_be_known():
    assert "bad_rows" in refusal(trips(COMMUTERS), bad_rows="skip")


def refused_or_read(source, **options):
    """The refusal's text, or None; any other exception gets through and fails the test, and so does a warning."""
    error = None
    try:
        inspect_flows(source)
        read_flows(source, regions=REGIONS, **options)
    except InputError as refused:
        error = refused
    if error is None:
        return None
    assert (error.__cause__, error.__context__) == (None, None)
    return "".join(traceback.format_exception(error)) + repr(error.args)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
@more
@given(st.data())
def test_garbage_is_refused_and_nothing_else_happens(ending, data):
    heads = [b"", b"from,to\n", b"from\tto\n", b"from,36001\n", b"PAR1", b'"from",to\n"']
    garbage = data.draw(st.sampled_from(heads)) + data.draw(st.binary(max_size=200))
    for bad_rows in ("refuse", "drop"):
        refused_or_read(upload(garbage, "garbage" + ending), bad_rows=bad_rows)


@pytest.mark.parametrize("form", FORMS)
@settings(few, max_examples=20)
@given(st.data())
def test_damaged_files_are_refused_or_read_and_nothing_else_happens(form, data):
    content = bytearray(WHOLE[form])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    for bad_rows in ("refuse", "drop"):
        refused_or_read(upload(bytes(content), f"damaged.{form}"), bad_rows=bad_rows, person="who")


WHOLE = {
    form: stored(pd.DataFrame({"from": IDS, "to": IDS, "count": [1, 2, 3, 4, 5], "who": list("aabbc")}), form).getvalue() for form in FORMS
}

marked = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(lambda word: f"zq{word}zq")
dirty = st.one_of(marked, st.sampled_from(["", " ", "NaN", "inf", "1e999", "1,5", "-1", "total", "36001", "7", "1\0", "1.5"]))


@more
@given(st.lists(st.tuples(dirty, dirty, dirty, dirty), min_size=1, max_size=10), st.booleans())
def test_cells_never_get_into_an_error(rows, wide):
    names = ["from", *IDS[:3]] if wide else ["from", "to", "count", "who"]
    source = stored(pd.DataFrame(rows, columns=names), "csv")
    for options in ({}, {} if wide else {"person": "who"}, {"bad_rows": "drop"}):
        assert "zq" not in (refused_or_read(source, **options) or "")


@more
@given(st.lists(st.tuples(dirty, dirty, dirty, dirty), max_size=10), st.booleans())
def test_dropping_never_raises_because_of_rows(rows, wide):
    good = ("36001", "1", "", "") if wide else ("36001", "36001", "1", "a")
    names = ["from", *IDS[:3]] if wide else ["from", "to", "count", "who"]
    source = stored(pd.DataFrame([good, *rows], columns=names), "csv")
    for options in ({}, {} if wide else {"person": "who", "contributions": 50}):
        assert read_flows(source, regions=REGIONS, bad_rows="drop", **options).count.sum() >= 1


lines = st.one_of(
    st.sampled_from([b"01001,36001,2,a", b"1,2", b"", b'"', b'1,"2,3,a', b"\xff,1,1,c", b"total,36001,5,b"]), st.binary(max_size=20)
)


@more
@given(st.lists(lines, max_size=10))
def test_dropping_never_raises_because_of_lines(found):
    content = b"\n".join([b"from,to,count,who", b"01001,36001,3,a", *found, b""])
    for options in ({}, {"person": "who"}):
        assert read_flows(upload(content, "a.csv"), regions=REGIONS, bad_rows="drop", **options).count.sum() >= 1


@few
@given(st.lists(st.tuples(st.sampled_from([*IDS, "total"]), st.sampled_from([*IDS, "sum"]), st.integers(0, 5)), max_size=12))
def test_totals_are_held_against_a_slow_sum(rows):
    plain, said = Counter(), []
    for origin, destination, count in rows:
        if origin == "total" or destination == "sum":
            said.append((origin, destination, count))
        else:
            plain[origin, destination] += count
    claims = Counter()
    for origin, destination, count in said:
        claims[origin, destination] += count
    right = all(
        count == sum(n for (a, b), n in plain.items() if origin in ("total", a) and destination in ("sum", b))
        for (origin, destination), count in claims.items()
    )
    source = stored(pd.DataFrame(rows, columns=["from", "to", "count"]), "csv")
    grand = [count for origin, destination, count in said if (origin, destination) == ("total", "sum")]
    if right and len(grand) < 2:
        assert pairs(read_flows(source, regions=REGIONS)) == {pair: count for pair, count in plain.items() if count}
    elif not right and len(grand) < 2:
        assert "contradicts itself" in refusal(source)

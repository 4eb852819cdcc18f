"""Files of trips: tables and matrices of every form, totals, ids as text, and refusals that quote nothing."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.counting.files import read_trips
from dpviz.data.reading.formats import say_tables
from dpviz.data.reading.trips import TOTAL_WORDS, TOTALS_CHECKED, TOTALS_UNCHECKED, inspect_trips
from dpviz.space.regions import Regions
from tests.data.reading.files import TABLES, read_or_refused, refused, stored, text, upload
from tests.data.reading.whole import parquet
from tests.data.test_trips import IDS, REGIONS, pairs

few = settings(max_examples=12, deadline=None, derandomize=True, database=None)
more = settings(max_examples=30, deadline=None, derandomize=True, database=None)
COMMUTERS = "flow,origin,destination\n70,36001,36001\n5,36001,50001\n2,01001,36003\n"
EXPECTED = {("36001", "36001"): 70, ("36001", "50001"): 5, ("01001", "36003"): 2}
MATRIX = "from,36001,50001,36003\n36001,70,5,\n01001,,,2\n"


def trips(content, name="trips.csv"):
    return text(content, name)


def refusal(source, regions=REGIONS, **options):
    return refused(read_trips, source, regions=regions, **options)


def dropped(source, **options):
    trip_counts = read_trips(source, regions=REGIONS, bad_rows="drop", **options)
    return pairs(trip_counts), trip_counts.dropped


BLOCKS = "w_geocode,h_geocode,S000\n010010201001000,360010146111000,3\n010010201001001,360010146111000,4\n"
PAIR, DIAGONAL = ("01001", "36001"), ("36001", "36001")
SEVENS = ("7", " 7 ", "+7", "7.0", "7.", "0.7e1", "70e-1", "007", '"7"')
HEADERS_ALONE = ("from,to", "from,to\n", "\n\nfrom,to\n\n\n", "from,36001", "\ufefffrom,to\r\n", '"from","to"')
READ = [(COMMUTERS, EXPECTED), (MATRIX, EXPECTED), (BLOCKS, {("36001", "01001"): 7}), ("o,d\n01001,01003\n", {("01001", "01003"): 1})]
READ += [(f"from,to,trips\n01001,36001,{cell}\n", {PAIR: 7}) for cell in SEVENS] + [(header, {}) for header in HEADERS_ALONE]
READ += [("\n\r\nfrom,to\n01001,36001\n", {PAIR: 1}), ("\ufeff\n\nfrom,to\r\n\r\n01001,36001\r\n", {PAIR: 1})]
READ += [("from,to\n01001,36001\n01001,36001\n", {PAIR: 2}), ("from,to,weight\n01001,36001,5\n01001,36001,1\n", {PAIR: 2})]
READ += [("from,36001,zq,\n36001,1,0,\nzq,,,0\n", {DIAGONAL: 1})]  # columns and rows of zeros need no region


@pytest.mark.parametrize(("content", "expected"), READ)
def test_tables_and_matrices_are_read_however_they_are_written(content, expected):
    trip_counts = read_trips(trips(content), regions=REGIONS)
    assert pairs(trip_counts) == expected
    assert (trip_counts.unit, trip_counts.contributions, trip_counts.dropped, trip_counts.notes) == ("trip", 1, 0, ())


@pytest.mark.parametrize("form", TABLES)
def test_every_format_is_read_as_a_table_and_as_a_pivot_table_of_pandas(form):
    table = pd.DataFrame([(*pair, count) for pair, count in EXPECTED.items()], columns=["From", "TO", "Trips"])
    wide = table.pivot_table(index="From", columns="TO", values="Trips", aggfunc="sum")
    sources = [stored(each, form) for each in (table, wide.reset_index())] + ([stored(wide, form)] if form == "plain" else [])
    assert [pairs(read_trips(source, regions=REGIONS)) for source in sources] == [EXPECTED] * len(sources)
    assert [inspect_trips(source).matrix for source in sources] == [False, True, True][: len(sources)]


HEADERS = ["origin,destination,count", "from,to,trips", "SOURCE,Target, Flow ", "h_geocode,w_geocode,S000", "start,end,flows"]
HEADERS += ["home,work,commuters", "o,d,counts", "origin,dest,count"]


@pytest.mark.parametrize("names", HEADERS)
def test_columns_are_found_by_their_names(names):
    source = trips(f"{names},note\n01001,36001,7,zq\n")
    assert pairs(read_trips(source, regions=REGIONS)) == {("01001", "36001"): 7}
    found = inspect_trips(source)
    assert (found.origin, found.destination, found.count) == tuple(names.split(","))
    assert (found.person, found.matrix, found.rows, found.format) == (None, False, None, "CSV")


def test_columns_may_be_named():
    source = trips("A,B,C,origin\n01001,36001,7,zq\n")
    assert pairs(read_trips(source, regions=REGIONS, origin="a", destination="B", count="c")) == {("01001", "36001"): 7}


UNCLEAR = [("from,origin,to", {}, ["'from'", "'origin'", "origin='...'"]), ("from,to,dest", {}, ["'to'", "'dest'", "destination='...'"])]
UNCLEAR += [("from,to,count,Flow", {}, ["'count'", "'Flow'", "count='...'"]), ("from,to,count,count", {}, ["count='...'"])]
UNCLEAR += [("from,zqb,c", {}, ["No column for destination"]), ("zqa,to,c", {}, ["No column for origin"])]
UNCLEAR += [("from,to,c", {"origin": "where"}, ["no column named 'where'"]), ("from,to,c", {"count": "n"}, ["no column named 'n'"])]
UNCLEAR += [("from,to,c", {"person": "who"}, ["no column named 'who'"]), ("from,to,c", {"origin": "to"}, ["No column for destination"])]
UNCLEAR += [("from,to,c", {"count": "to"}, ["other columns"]), ("from,to,c", {"person": "from"}, ["other columns"])]
UNCLEAR += [("c,C,to", {"origin": " c "}, ["Several columns have the name"]), ("from;to;zq", {}, ["commas"])]
UNCLEAR += [("from,to,weight", {"count": "weight"}, ["called a weight", "Survey weights are refused"])]


@pytest.mark.parametrize(("header", "options", "words"), UNCLEAR)
def test_unclear_columns_are_refused_with_their_names(header, options, words):
    message = refusal(trips(f"{header}\n01001,36001,3\n"), **options)
    assert all(word in message for word in words)


def test_a_person_column_is_proposed_and_used_only_where_it_is_named():
    source = trips("from,to,user_id\n01001,36001,a\n01001,36001,a\n01001,36001,NA\n")
    assert inspect_trips(source).person == "user_id"
    assert read_trips(source, regions=REGIONS).count.tolist() == [3]
    trip_counts = read_trips(source, regions=REGIONS, person="USER_ID", bad_rows="drop")
    assert (trip_counts.count.tolist(), trip_counts.unit, trip_counts.enforced, trip_counts.dropped) == ([1], "person", True, 2)
    assert "'user_id' has a missing cell" in refusal(source, person="user_id")


def test_ids_that_lost_their_zeros_have_them_put_back():
    numbers = stored(pd.DataFrame({"o": [1001], "d": [36001]}), "plain")
    for source in (trips("o,d\n1001,36001\n"), numbers, trips("from,1001,36001\n1001,0,1\n")):
        trip_counts = read_trips(source, regions=REGIONS)
        assert (trip_counts.origin.tolist(), trip_counts.count.tolist()) == (REGIONS.find(["01001"], 2).tolist(), [1])
    year = read_trips(trips("origin,destination,1001\n36001,36001,7\n"), regions=REGIONS, count="1001")
    assert year.count.tolist() == [7], "a header of a table is none of a matrix because of an id that is written otherwise"


def test_numbers_and_words_are_ids_like_others_where_the_regions_have_them():
    north = Regions.from_prefixes(["36001", "50001"], lengths=[2, 5], levels=["state", "county"])
    source = stored(pd.DataFrame({"o": [36001, 7], "d": [50001, 50001]}), "plain")
    assert read_trips(source, regions=north, bad_rows="drop").count.tolist() == [1]
    missing = Regions.from_table(pd.DataFrame({"country": ["NA", "NULL", "nan", "None"]}), levels=["country"])
    assert read_trips(trips("o,d\nNA,NULL\nnan,None\n"), regions=missing).count.sum() == 2
    for word in TOTAL_WORDS:
        regions = Regions.from_table(pd.DataFrame({"place": [word, "b"]}), levels=["place"])
        trip_counts = read_trips(trips(f"o,d,count\n{word},b,7\nb,{word},2\n"), regions=regions)
        assert (trip_counts.count.sum(), trip_counts.notes) == (9, ())


def test_block_codes_of_lodes_are_cut_only_to_one_length_of_the_leaves():
    mixed = Regions.from_table(pd.DataFrame({"place": ["36001", "01001", "360", "010"]}), levels=["place"])
    renamed = BLOCKS.replace("h_geocode", "home").replace("w_geocode", "work")
    for content, regions in ((renamed, REGIONS), (BLOCKS.replace("360010146111000", "36001014611100"), REGIONS), (BLOCKS, mixed)):
        assert "no leaf region" in refusal(trips(content), regions)
    lost = read_trips(stored(pd.read_csv(trips(BLOCKS)), "plain"), regions=REGIONS)
    kept = read_trips(trips(BLOCKS), regions=REGIONS)
    assert (lost.origin.tolist(), lost.count.tolist()) == (kept.origin.tolist(), kept.count.tolist())


NO_LEAF, MISSING, NO_NUMBER = "has an id that is no leaf region", "has an id that is missing", "'trips' has a cell that is no number"
NOT_WHOLE, RAGGED = "'trips' has a count that is no whole number", "more or fewer cells"
BAD = {"zq,36001,4": (f"'from' {NO_LEAF}", 4), "36001,zq,4": (f"'to' {NO_LEAF}", 4), ",36001,4": (f"'from' {MISSING}", 4)}
BAD |= {"36001, ,4": (f"'to' {MISSING}", 4), "36001,36001,": ("'trips' has a missing cell", 1)}
BAD |= {f"36001,36001,{cell}": (NO_NUMBER, 1) for cell in ("zq", '"1,000"', "0x10", "1_0", "\u0661", "NaN", "inf")}
BAD |= {"36001,36001,-1": ("'trips' has a negative count", 1), "36001": (RAGGED, 1), "36001,36001,1,zq": (RAGGED, 1)}
BAD |= {f"36001,36001,{cell}": (NOT_WHOLE, 1) for cell in ("1.5", "1.00000000000000000001")}


@pytest.mark.parametrize("row", BAD)
def test_bad_rows_are_refused_with_a_reason_or_dropped(row):
    words, lost = BAD[row]
    source = trips(f"from,to,trips\n01001,36001,2\n{row}\n36001,36003,3\n")
    message = refusal(source)
    assert words in message
    assert not set("1456789") & set(message.replace("2**53", ""))
    assert dropped(source) == ({("01001", "36001"): 2, ("36001", "36003"): 3}, lost)


@pytest.mark.parametrize("cells", [["zq", "zq"], ["1,5", "zq"], ["1.5", "2.5"], ["-1", "zq"]])
def test_a_column_without_a_whole_number_is_refused_either_way(cells):
    source = stored(pd.DataFrame({"from": ["01001"] * 2, "to": ["01001"] * 2, "count": cells}), "csv")
    assert "'count'" in refusal(source)
    assert "'count' holds no whole number" in refusal(source, bad_rows="drop")


ODD = [pa.array([["zq"], ["b"]]), pa.array([{"zq": 1}, {"zq": 2}]), pa.array([[("zq", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64()))]
ODD += [pa.array([True, False]), pa.array([0, 1], pa.timestamp("s")), pa.array([b"zq", b"\xff"]), pa.nulls(2), pa.array([0.5, 1.5])]


@pytest.mark.parametrize("column", ODD, ids=lambda column: str(column.type))
def test_parquet_columns_of_another_kind_are_refused(column):
    for name in ("from", "to", "count"):
        refusal(upload(parquet(**{"from": IDS[:2], "to": IDS[:2], "count": [1, 2], name: column}), "a.parquet"))
    if column.null_count < 2:
        refusal(upload(parquet(**{"at": IDS[:2], IDS[0]: column}), "a.parquet"))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_parquet_ids_and_counts_may_be_texts_of_any_kind(kind):
    ids = pa.array(IDS[:2]).cast(kind)
    source = upload(parquet(**{"from": ids, "to": ids, "count": ["7", "2"]}), "a.parquet")
    assert read_trips(source, regions=REGIONS).count.tolist() == [7, 2]


TOTALS = ["36001,total,75", "Total,36001,70", "ALL,all,77", "36001,total,75\n36001,sum,75", "50001,total,0"]
TOTALS += ["36001,total,75\n01001,total,2\ntotal,36001,70\ntotal,50001,5\ntotal,36003,2\ntotal,total,77"]


@pytest.mark.parametrize("rows", TOTALS)
def test_totals_that_agree_are_left_out(rows):
    source = trips(f"origin,destination,count\n36001,36001,70\n36001,50001,5\n{rows}\n01001,36003,2\n")
    for options, note in (({}, TOTALS_CHECKED), ({"bad_rows": "drop"}, TOTALS_UNCHECKED)):
        trip_counts = read_trips(source, regions=REGIONS, **options)
        assert (pairs(trip_counts), trip_counts.dropped, trip_counts.notes) == (EXPECTED, 0, (note,))


def test_totals_of_a_matrix():
    matrix = "from,36001,50001,36003,Total\n36001,70,5,,75\n01001,,,2,2\nTotal,70,5,2,77\n"
    trip_counts = read_trips(trips(matrix), regions=REGIONS)
    assert (pairs(trip_counts), trip_counts.dropped, trip_counts.notes) == (EXPECTED, 0, (TOTALS_CHECKED,))
    for right, other in ((",77", ",78"), (",75", ",74"), (",,2,2", ",,2,"), ("5,2,77", "4,2,77")):
        wrong = matrix.replace(right, other)
        assert "contradicts itself" in refusal(trips(wrong))
        assert dropped(trips(wrong)) == (EXPECTED, 0)


@pytest.mark.parametrize("row", [",36001,3", "36001,,3", "zq,36001,3"])
def test_bad_ids_are_refused_though_there_are_totals(row):
    source = trips(f"origin,destination,count\n36001,36001,70\n36001,total,70\n{row}\n")
    assert "has an id that" in refusal(source)
    assert dropped(source) == ({("36001", "36001"): 70}, 3)


@pytest.mark.parametrize("wrong", ["total,36001,69", "36001,total,74", "all,all,78", "36001,total,75\n36001,sum,74"])
def test_totals_that_contradict_the_rows_are_refused(wrong):
    source = trips(f"origin,destination,count\n36001,36001,70\n36001,50001,5\n01001,36003,2\n{wrong}\n")
    assert "contradicts itself" in refusal(source)
    assert dropped(source) == (EXPECTED, 0)


def test_totals_among_trips_of_people_are_unknown_regions():
    assert "no leaf region" in refusal(trips("o,d,who\n36001,total,a\n"), person="who")


MATRICES = {"from,36001,zq\n36001,1,2\n": (f"The header {NO_LEAF}", 2), "from,36001\n36001,1\nzq,2\n": (f"The first column {NO_LEAF}", 2)}
MATRICES |= {"from,36001,\n36001,1,2\n": (f"The header {MISSING}", 2), "from,36001\n36001,1\n,2\n": (f"The first column {MISSING}", 2)}
MATRICES |= {"from,36001,50001\n36001,1,-2\n": ("A column of the matrix has a negative count", 1)}
MATRICES |= {"from,36001,50001\n36001,1,2.5\n": ("Survey weights are refused", 1)}
MATRICES |= {"from,36001,50001\n36001,1,zq\n": ("A column of the matrix has a cell that is no number", 1)}
MATRICES |= {"from,36001,50001\n36001,1,\n36001,2\n": (RAGGED, 1)}


@pytest.mark.parametrize("content", MATRICES)
def test_bad_cells_of_a_matrix_are_refused_with_a_reason_or_dropped(content):
    words, lost = MATRICES[content]
    assert words in refusal(trips(content))
    assert dropped(trips(content)) == ({("36001", "36001"): 1}, lost)


def test_a_matrix_leaves_no_choice_of_columns_has_origins_as_rows_and_names_a_destination_once():
    for options in ({"count": "36001"}, {"person": "from"}):
        assert "leave count and person out" in refusal(trips(MATRIX), **options)
    for corner in ("to", "dest/orig", "D\\O", "Destination code"):
        assert "rows are destinations" in refusal(trips(f"{corner},36001,50001\n36001,1,2\n50001,0,3\n"))
    assert "names a destination twice" in refusal(trips("from,36001,36001\n36001,1,2\n"))


@pytest.mark.parametrize("place", ["d", "to", "Home", "count", "36001 ", "origin"])
def test_one_trip_that_adds_a_column_to_a_matrix_changes_nothing_else(place):
    known = place.strip() in IDS
    assert dropped(trips(f"from,36001,{place}\n36001,5,1\n")) == ({("36001", "36001"): 5 + known}, 1 - known)


def test_zones_that_are_called_as_columns_are_make_a_matrix():
    zones = Regions.from_table(pd.DataFrame({"zone": list("ABCD")}), levels=["zone"])
    trip_counts = read_trips(trips("from,A,B,C,D\nA,1,0,0,2\n"), regions=zones)
    assert pairs(trip_counts) == {("A", "A"): 1, ("A", "D"): 2}
    lower = Regions.from_table(pd.DataFrame({"zone": ["o", "d"]}), levels=["zone"])
    assert pairs(read_trips(trips("o,d,count\no,d,3\n"), regions=lower)) == {("o", "d"): 3}


def test_matrices_may_have_other_regions_as_destinations():
    ports = Regions.from_prefixes(["AKzz", "CAxx"], lengths=[2, 4], levels=["state", "port"])
    trip_counts = read_trips(trips("from,AKzz,CAxx\n36001,2,\n01001,,9\n"), regions=REGIONS, destinations=ports)
    assert pairs(trip_counts) == {("36001", "AKzz"): 2, ("01001", "CAxx"): 9}


def test_a_matrix_is_recognised_without_the_regions():
    wide, long = ("from,36001,50001", ",a,b", "origin,a,b"), ("origin,destination,count", "x,y,z", "from,to,36001,36002,36003")
    for header in (*wide, *long):
        cells = header.count(",") * ",1"
        assert inspect_trips(trips(f"{header}\na{cells}\nb{cells}\n")).matrix is (header in wide)


def test_what_is_said_about_a_file_holds_no_private_number():
    found = inspect_trips(stored(pd.DataFrame({"from": ["zq"] * 77, "to": ["zq"] * 77, "trips": [9.5] * 77}), "plain"))
    assert (found.rows, found.format) == (77, "Parquet")
    assert not [private for private in ("77", "zq", "9.5") if private in repr(found)]


def test_a_first_line_of_data_is_no_header():
    states = Regions.from_table(pd.DataFrame({"state": ["NY", "VT"]}), levels=["state"])
    for content in ("36001,36003,5\n01001,01001,2\n", "1.5,2,3\n"):
        assert "starts with data" in refused(inspect_trips, trips(content))
    assert "the first line must hold the names" in refusal(trips("36001,zq,5\n01001,01001,2\n"))
    for bad_rows in ("refuse", "drop"):
        assert "starts with data" in refusal(trips("36001,36003,5\n01001,01001,2\n"), bad_rows=bad_rows)
        assert "starts with data" in refusal(trips("NY,VT,5\nVT,VT,2\n"), states, bad_rows=bad_rows)


def test_files_that_are_no_tables_are_refused():
    for name in ("a.geojson", "a.gpkg", "a.zip"):
        assert f"must be {say_tables()}, not " in refusal(upload(b"zq", name))


marked = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(lambda word: f"zq{word}zq")
dirty = st.one_of(marked, st.sampled_from(["", " ", "NaN", "inf", "1e999", "1,5", "-1", "total", "36001", "7", "1\0", "1.5"]))


@more
@given(st.lists(st.tuples(dirty, dirty, dirty, dirty), min_size=1, max_size=10), st.booleans())
def test_cells_are_in_no_error_and_beside_a_good_row_none_is_raised_under_drop(rows, wide):
    good = ("36001", "1", "", "") if wide else ("36001", "36001", "1", "a")
    names = ["from", *IDS[:3]] if wide else ["from", "to", "count", "who"]
    source, beside = (stored(pd.DataFrame(each, columns=names), "csv") for each in (rows, [good, *rows]))
    assert "zq" not in read_or_refused(inspect_trips, source)
    for options in ({}, {} if wide else {"person": "who", "contributions": 50}):
        assert "zq" not in read_or_refused(read_trips, source, regions=REGIONS, **options)
        assert "zq" not in read_or_refused(read_trips, source, regions=REGIONS, bad_rows="drop", **options)
        assert read_trips(beside, regions=REGIONS, bad_rows="drop", **options).count.sum() >= 1

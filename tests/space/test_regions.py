"""Nested regions: from any table the same ones, every way to be wrong refused with its reason, and the way through their tree."""

import copy

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.errors import DomainError
from dpviz.space.nested import MOST_LEVELS
from dpviz.space.regions import Regions
from tests.space.nested import parents_of, paths, regions_of

few = settings(max_examples=20, derandomize=True, database=None)
COUNTIES = pd.DataFrame({"state": ["09", "09", "36", "36", "50"], "county": ["09001", "09003", "36001", "36003", "50001"]}, dtype=object)
LEVELS = ["state", "county"]


def refusal(make):
    """The text of the refusal, without a cell of the table."""
    with pytest.raises(DomainError) as caught:
        make()
    assert caught.value.__cause__ is None
    assert "zq" not in str(caught.value)
    return str(caught.value)


def from_table(table=COUNTIES, levels=LEVELS, **options):
    return Regions.from_table(table, levels=levels, **options)


def test_ids_stay_text_with_their_zeros():
    regions = from_table()
    assert repr(regions) == "Regions(3 state, 5 county)"
    assert [ids.tolist() for ids in regions.ids] == [["09", "36", "50"], COUNTIES["county"].tolist()]
    assert [parent.tolist() for parent in regions.parent] == [[0, 0, 0], [0, 0, 1, 1, 2]]
    assert "Levels run from 0 to 2" in refusal(lambda: regions.ancestors(3))
    assert "must not be the finer one" in refusal(lambda: regions.ancestors(2, 1))


NUMBERS = pd.DataFrame({"state": [1, 1, 2], "county": [7, 8, 9]})
DTYPES = [(COUNTIES, dtype) for dtype in (object, "str", "string", "string[pyarrow]", "category", pd.ArrowDtype(pa.large_string()))]
DTYPES += [(NUMBERS, dtype) for dtype in (np.int64, np.uint8, "Int64", "int64[pyarrow]", "category", object)]


@pytest.mark.parametrize(("table", "dtype"), DTYPES)
def test_texts_and_whole_numbers_of_every_dtype_give_the_same_regions(table, dtype):
    regions = from_table(table.astype(dtype))
    assert regions == from_table(table.astype(str))
    assert {type(text) for ids in regions.ids for text in ids} == {str}


COLUMNS = {str(k): ["a"] for k in range(17)}
WRONG_TABLES = [
    ({"table": COUNTIES.assign(state=["zq", None, "b", "c", "d"])}, "'state' has a missing or blank cell"),
    *[({"table": COUNTIES.assign(county=[blank, *"abcd"])}, "'county' has a missing or blank cell") for blank in (np.nan, " ")],
    ({"table": COUNTIES.iloc[:0]}, "has no rows"),
    ({"levels": []}, "No levels are named"),
    ({"levels": LEVELS[::-1]}, "from coarse to fine; these seem reversed: state, county."),
    ({"table": COUNTIES.assign(all="a"), "levels": ["state", "all", "county"]}, "in another order: all, state, county."),
    ({"levels": ["nation"]}, "no column 'nation'"),
    ({"names": {"county": "label"}}, "no column 'label'"),
    ({"names": {"nation": "state"}}, "'nation', which is not one of the levels"),
    ({"levels": ["county", "county"]}, "each different"),
    ({"levels": "county"}, "must be a list"),
    ({"table": {"state": ["a"]}}, "must be a DataFrame"),
    ({"table": pd.concat([COUNTIES, COUNTIES[["state"]]], axis=1)}, "several columns 'state'"),
    ({"table": pd.concat([COUNTIES, COUNTIES.iloc[1:2]])}, "'county' has a duplicate id"),
    ({"table": COUNTIES.assign(county=["zq1", "a", "zq1", "b", "c"])}, "'county' has an id under two different parents"),
    ({"table": COUNTIES.assign(nation=["zq", *"bccc"]), "levels": ["nation", *LEVELS]}, "'state' has an id with two different parents"),
    ({"table": pd.DataFrame(COLUMNS), "levels": list(COLUMNS)}, "1 to 16"),
    ({"table": COUNTIES.assign(county=[1.5, 2.0, 3.0, 4.0, 5.0])}, "must hold texts"),
    ({"table": COUNTIES.assign(county=[True, False, True, False, True])}, "must hold texts"),
    ({"table": COUNTIES.assign(county=[b"zq", b"b", b"c", b"d", b"e"])}, "must hold texts"),
    ({"table": COUNTIES.assign(county=["zq", 1, "b", "c", "d"])}, "must hold texts"),
    ({"table": COUNTIES.assign(county=pd.date_range("2020-01-01", periods=5))}, "must hold texts"),
]


@pytest.mark.parametrize(("options", "words"), WRONG_TABLES)
def test_wrong_tables_are_refused_with_a_reason(options, words):
    assert words in refusal(lambda: from_table(**options))


def test_names_serve_people_and_ids_serve_where_there_is_none():
    named = COUNTIES.assign(label=["Fairfield", "Hartford", None, " ", "Addison"])
    regions = from_table(named, names={"county": "label"})
    assert regions.names[1].tolist() == ["Fairfield", "Hartford", "36001", "36003", "Addison"]
    assert regions.names_of(1).tolist() == ["09", "36", "50"]
    assert regions.names_of(0).tolist() == ["all"]
    assert "must hold texts" in refusal(lambda: from_table(named.assign(label=1.5), names={"county": "label"}))
    found = Regions.from_parents(table().assign(name=["A", "B", None, "AB", "", "AAA", "ABA", "BAA"]))
    assert [names.tolist() for names in found.names] == [["A", "B"], ["aa", "AB", "ba"], ["AAA", "ABA", "BAA"]]


@few
@given(paths(), st.randoms(use_true_random=False))
def test_rows_in_any_order_give_the_same_tree(rows, random):
    shuffled = random.sample(rows, len(rows))
    regions = regions_of(shuffled)
    assert paths_of(regions) == set(map(tuple, rows))
    for ids, parent, level in zip(regions.ids, regions.parent, range(regions.depth), strict=True):
        assert (np.diff(parent) >= 0).all()
        first = {path[level]: place for place, path in reversed(list(enumerate(shuffled)))}
        places = [(up, first[ident]) for ident, up in zip(ids.tolist(), parent.tolist(), strict=True)]
        assert places == sorted(places), "siblings keep the order of the rows"


def paths_of(regions):
    """The ids from the coarsest level to each leaf."""
    return {*zip(*(regions.ids_of(level)[regions.ancestors(level)] for level in range(1, regions.depth + 1)), strict=True)}


@few
@given(paths(), st.integers(0, 99))
def test_parents_give_the_same_regions_and_in_any_order_the_same_tree(rows, seed):
    """A single coarsest region is the root unless it is the only level."""
    expected, rooted, bare = regions_of(rows), parents_of(rows, root=True), Regions.from_parents(parents_of(rows))
    whole = expected.size(1) == 1 and expected.depth > 1
    assert paths_of(bare) == {tuple(path[whole:]) for path in rows}
    assert whole or bare == expected
    assert Regions.from_parents(rooted) == Regions.from_parents(rooted.assign(level=rooted["level"] + 1)) == expected
    found = Regions.from_parents(rooted.sample(frac=1, random_state=seed))
    assert paths_of(found) == set(map(tuple, rows))
    assert found.size(found.depth) == len(rows)


NAMES = ["world", "state", "county", "tract", "block"]


@few
@given(paths(ids=st.from_regex(r"[0-9]{2}", fullmatch=True)))
def test_prefixes_give_the_same_regions(rows):
    joined = [["".join(path[: k + 1]) for k in range(len(path))] for path in rows]
    expected = regions_of(joined)
    options = {"lengths": [2 * (k + 1) for k in range(expected.depth)], "levels": expected.levels}
    assert Regions.from_prefixes([path[-1] for path in joined], **options) == expected
    longer = [path[-1] + end for path in joined for end in ("0", "12")]
    assert Regions.from_prefixes(np.array(longer, object), **options) == expected


WRONG_PREFIXES = [
    ("one is shorter", {"ids": ["06037", "0603"]}),
    ("or there is none", {"ids": []}),
    *[("lost its leading zeros", {"ids": ids}) for ids in ([6037], ["06037", 36001])],
    *[("missing or blank", {"ids": ["06037", blank]}) for blank in (None, float("nan"), " ")],
    *[("must grow", {"lengths": lengths}) for lengths in ([5, 2], [2, 2])],
    ("of the same length", {"lengths": [2]}),
    ("at least 1", {"lengths": [0, 2]}),
    *[("whole numbers", {"lengths": lengths}) for lengths in ([2.0, 5.0], [True, 5])],
    ("No levels", {"lengths": [], "levels": []}),
    ("each different", {"levels": ["state", "state"]}),
    *[(f"{name} must be a list", {name: wrong}) for name, wrong in (("levels", "ab"), ("ids", "06037"), ("lengths", 5))],
]


@pytest.mark.parametrize(("words", "wrong"), WRONG_PREFIXES)
def test_prefixes_that_make_no_sense_are_refused(words, wrong):
    right = {"ids": ["06037"], "lengths": [2, 5], "levels": LEVELS}
    assert words in refusal(lambda: Regions.from_prefixes(**right | wrong))


@few
@given(paths())
def test_the_way_through_the_tree_is_that_of_a_dictionary(rows):
    regions, depth = regions_of(rows), len(rows[0])
    for level in range(depth + 1):
        nodes = list(dict.fromkeys(tuple(path[:level]) for path in rows))
        assert regions.size(level) == len(nodes)
        assert regions.ids_of(level).tolist() == [node[-1] if node else "all" for node in nodes]
        assert regions.find([*regions.ids_of(level), "nowhere\0", None, 7], level).tolist() == [*range(len(nodes)), -1, -1, -1]
        assert regions.leaf_count(level).tolist() == [sum(tuple(path[:level]) == node for path in rows) for node in nodes]
        for below in range(level, depth + 1):
            lower = list(dict.fromkeys(tuple(path[:below]) for path in rows))
            assert regions.ancestors(level, below).tolist() == [nodes.index(node[:level]) for node in lower]
        if level < depth:
            lower = [node[:level] for node in dict.fromkeys(tuple(path[: level + 1]) for path in rows)]
            assert regions.first_child(level).tolist() == [*(lower.index(node) for node in nodes), len(lower)]


def test_regions_are_equal_by_what_they_name():
    one, other = from_table(), from_table(COUNTIES.assign(label="x"), names={"county": "label"})
    assert one == other == copy.deepcopy(one)
    assert hash(one) == hash(other)
    renamed = from_table(COUNTIES.rename(columns={"state": "State"}), levels=["State", "county"])
    assert one not in (from_table(COUNTIES.iloc[::-1]), renamed, "Regions")


IDS = np.array(["p", "q"], object), np.array(["r", "s", "t"], object)
PARENT = np.array([0, 0], np.int32), np.array([0, 1, 1], np.int32)
PARTS = {"levels": ("a", "b"), "ids": IDS, "parent": PARENT, "names": IDS, "geometry": (None, None)}
WRONG_PARTS = [
    (f"1 to {MOST_LEVELS} levels", "levels", ()),
    ("each different", "levels", ("a", "a")),
    *[("need names", "levels", ("a", wrong)) for wrong in ("", 1)],
    ("one entry per level", "names", IDS[:1]),
    ("one id, parent and name", "names", (IDS[0], IDS[1][:1])),
    *[
        (words, "ids", (IDS[0], np.array(["r", wrong, "t"], object)))
        for words, wrong in (("duplicate id", "r"), ("texts", ""), ("texts", 5))
    ],
    *[("tree order", "parent", (PARENT[0], np.array(wrong, np.int32))) for wrong in ([1, 0, 1], [0, 1, 2], [-1, 0, 1])],
    ("has no children", "parent", (PARENT[0], np.array([1, 1, 1], np.int32))),
]


@pytest.mark.parametrize(("words", "part", "wrong"), WRONG_PARTS)
def test_parts_that_do_not_fit_are_refused(words, part, wrong):
    assert Regions(**PARTS).size(2) == 3
    assert words in refusal(lambda: Regions(**PARTS | {part: wrong}))


def test_too_few_and_too_many_regions_are_refused(monkeypatch):
    empty = {part: tuple(each[:0] for each in PARTS[part]) for part in ("ids", "parent", "names")}
    assert "at least one region" in refusal(lambda: Regions(**PARTS | empty))
    monkeypatch.setattr("dpviz.space.nested.MOST_LEAVES", 4)
    assert "more than 4 leaf" in refusal(from_table)


def test_coarser_levels_by_prefix_keep_names_and_geometry():
    """Counties out of order, grouped by state: names and shapes go with their regions."""
    places = geopandas.points_from_xy([3, 2, 1], [30, 20, 10])
    columns = {"county": ["50001", "36003", "36001"], "county_name": ["Addison", "Allegany", "Albany"]}
    table = geopandas.GeoDataFrame(columns, geometry=places, crs="EPSG:4326")
    counties = from_table(table, ["county"], names={"county": "county_name"})
    regions = counties.grouped([2])
    assert regions.levels == ("first 2 characters", "county")
    assert regions.ids[0].tolist() == ["50", "36"]
    assert regions.ancestors(1).tolist() == [0, 1, 1]
    assert regions.names[1].tolist() == ["Addison", "Allegany", "Albany"]
    assert regions.centres(2).tolist() == [[3, 30], [2, 20], [1, 10]]
    assert counties.grouped([1, 3]).depth == 3
    for lengths in ([5], [9], [0], [3, 2], ["2"]):
        assert refusal(lambda lengths=lengths: counties.grouped(lengths))


ROWS = [(ident, ident[:-1] or None, len(ident)) for ident in ("a", "b", "aa", "ab", "ba", "aaa", "aba", "baa")]


def table(rows=ROWS, named=False):
    found = pd.DataFrame(rows, columns=["region_id", "parent_id", "level"]).astype(object)
    return found.assign(level=[NAMES[level] for level in found["level"]]) if named else found


def changed(**parts):
    """The rows with some of them replaced, by id."""
    return [parts.get(row[0], row) for row in ROWS]


SAME = [("1", "1", 1), ("2", "1", 1), ("1", "1", 2)]


WRONG = {
    "duplicate": ([*ROWS, ("ab", "b", 2)], "duplicate id: every region has one row on its level"),
    "unknown": (changed(ab=("ab", "zq", 2)), "has no row of its own"),
    "own parent": (changed(ab=("ab", "ab", 2)), "its own parent"),
    "cycle": (changed(a=("a", "aaa", 1)), "has a cycle"),
    "skips a level": (changed(aba=("aba", "b", 3)), "more than one level up: there is a gap"),
    "same level": (changed(ab=("ab", "ba", 2)), "of the same level or of a finer one"),
    "finer level": ([*ROWS, ("c", "aa", 1)], "though no level is coarser"),
    "root of finer level": ([*ROWS, ("c", None, 2)], "though there are coarser levels"),
    "ends early": ([*ROWS, ("bb", "b", 2)], "every branch must reach the last level"),
    "missing id": ([*ROWS, (None, "b", 2)], "'region_id' has a missing or blank cell"),
    "blank id": ([*ROWS, ("  ", "b", 2)], "'region_id' has a missing or blank cell"),
    "no rows": ([], "is empty"),
    "all parents unknown": ([("1", "zq", 1), ("2", "zq", 2)], "has no row of its own"),
}
NUMBERS_ONLY = {
    "empty level": ([(region, parent, level + (level > 1)) for region, parent, level in ROWS], "a gap in the levels"),
    "starts at two": ([(region, parent, level + 1) for region, parent, level in ROWS], "a gap in the levels"),
    "fractional level": (changed(aaa=("aaa", "aa", 2.5)), "must hold whole numbers"),
    "boolean level": (changed(aaa=("aaa", "aa", True)), "must hold whole numbers"),
    "no level": (changed(aaa=("aaa", "aa", None)), "'level' has a missing cell"),
    "fractional parent": (changed(aaa=("aaa", 1.5, 3)), "'parent_id' must hold texts"),
    "fractional id": (changed(aaa=(1.5, "aa", 3)), "'region_id' must hold texts"),
    "every region has a parent": (SAME, "though no level is coarser"),
}


@pytest.mark.parametrize("case", [*WRONG, *NUMBERS_ONLY])
def test_wrong_parents_are_refused_with_a_reason_whether_levels_are_numbers_or_names(case):
    rows, words = {**WRONG, **NUMBERS_ONLY}[case]
    for named in (False, True) if case in WRONG else (False,):
        assert words in refusal(lambda named=named: Regions.from_parents(table(rows, named=named)))


def test_the_right_table_is_read_and_columns_that_are_missing_are_named():
    assert repr(Regions.from_parents(table())) == "Regions(2 level 1, 3 level 2, 3 level 3)"
    assert repr(Regions.from_parents(table(ROWS[::-1], named=True))) == "Regions(2 state, 3 county, 3 tract)"
    for column in ("region_id", "parent_id", "level"):
        assert f"no column {column!r}" in refusal(lambda column=column: Regions.from_parents(table().drop(columns=column)))


@pytest.mark.parametrize("dtype", [object, "str", "category", "string[pyarrow]"])
def test_the_coarsest_regions_have_no_parent_however_that_is_written(dtype):
    for blank in (None, np.nan, "", " "):
        columns = {"region_id": ["1", "2", "11", "21"], "parent_id": [blank, blank, "1", "2"], "level": [1, 1, 2, 2]}
        assert Regions.from_parents(pd.DataFrame(columns).astype({"region_id": dtype, "parent_id": dtype})).parent[1].tolist() == [0, 1]
    columns = {"region_id": [1, 2, 11, 21], "parent_id": [np.nan, np.nan, 1, 2], "level": [1, 1, 2, 2]}  # a gap made these decimals
    assert [ids.tolist() for ids in Regions.from_parents(pd.DataFrame(columns)).ids] == [["1", "2"], ["11", "21"]]


def test_the_order_of_named_levels_follows_from_ids_or_is_refused():
    rows = [("1", None, 1), ("2", None, 1), ("1", "1", 2), ("2", "2", 2), ("3", "2", 2)]
    assert Regions.from_parents(table(rows)).parent[1].tolist() == [0, 1, 1]
    assert Regions.from_parents(table(rows, named=True)).levels == ("state", "county")
    rows = [(region, region if level > 1 else None, level) for level in (1, 2, 3) for region in "12"]
    assert "put numbers" in refusal(lambda: Regions.from_parents(table(rows, named=True)))
    assert Regions.from_parents(table(rows)).depth == 3
    assert "no coarsest level" in refusal(lambda: Regions.from_parents(table(SAME, named=True)))

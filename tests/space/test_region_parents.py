"""Regions that name their parents: every way to be wrong has a reason of its own."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.errors import DomainError
from dpviz.space.regions import Regions
from tests.space.nested import parents_of, paths
from tests.space.test_regions import refusal

ROWS = [
    ("a", None, 1),
    ("b", None, 1),
    ("aa", "a", 2),
    ("ab", "a", 2),
    ("ba", "b", 2),
    ("aaa", "aa", 3),
    ("aba", "ab", 3),
    ("baa", "ba", 3),
]
NAMES = {0: "world", 1: "state", 2: "county", 3: "tract", 4: "block"}


def table(rows=ROWS, named=False):
    found = pd.DataFrame(rows, columns=["region_id", "parent_id", "level"]).astype(object)
    return found.assign(level=[NAMES[level] for level in found["level"]]) if named else found


def changed(**parts):
    """The rows with some of them replaced, by id."""
    return [parts.get(row[0], row) for row in ROWS]


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
}
NUMBERS_ONLY = {
    "empty level": ([(region, parent, level + (level > 1)) for region, parent, level in ROWS], "a gap in the levels"),
    "starts at two": ([(region, parent, level + 1) for region, parent, level in ROWS], "a gap in the levels"),
    "fractional level": (changed(aaa=("aaa", "aa", 2.5)), "must hold whole numbers"),
    "boolean level": (changed(aaa=("aaa", "aa", True)), "must hold whole numbers"),
    "no level": (changed(aaa=("aaa", "aa", None)), "'level' has a missing cell"),
    "fractional parent": (changed(aaa=("aaa", 1.5, 3)), "'parent_id' must hold texts"),
    "fractional id": (changed(aaa=(1.5, "aa", 3)), "'region_id' must hold texts"),
}


@pytest.mark.parametrize("case", [*WRONG, *NUMBERS_ONLY])
def test_wrong_tables_are_refused_with_a_reason(case):
    rows, words = {**WRONG, **NUMBERS_ONLY}[case]
    assert words in refusal(lambda: Regions.from_parents(table(rows)))


@pytest.mark.parametrize("case", WRONG)
def test_so_they_are_where_levels_have_names(case):
    rows, words = WRONG[case]
    assert words in refusal(lambda: Regions.from_parents(table(rows, named=True)))


def test_every_reason_is_another():
    reasons = {
        name: refusal(lambda rows=rows: Regions.from_parents(table(rows))) for name, (rows, _) in WRONG.items() if name != "blank id"
    }
    assert len(set(reasons.values())) == len(reasons)


@pytest.mark.parametrize("column", ["region_id", "parent_id", "level"])
def test_columns_that_are_missing_are_named(column):
    assert f"no column {column!r}" in refusal(lambda: Regions.from_parents(table().drop(columns=column)))


def test_the_right_table_is_read():
    regions = Regions.from_parents(table())
    assert repr(regions) == "Regions(2 level 1, 3 level 2, 3 level 3)"
    assert repr(Regions.from_parents(table(named=True))) == "Regions(2 state, 3 county, 3 tract)"


@pytest.mark.parametrize("level", [[1, 1, 2], [0, 0, 1], ["1", "1", "2"], [1.0, 1.0, 2.0], ["0", "0", "1"], ["top", "top", "leaf"]])
def test_levels_are_numbers_from_0_or_1_or_names(level):
    found = Regions.from_parents(pd.DataFrame({"region_id": ["a", "b", "c"], "parent_id": [None, None, "a"], "level": level}).iloc[[0, 2]])
    assert [ids.tolist() for ids in found.ids] == [["c"]]


@pytest.mark.parametrize("dtype", [object, "str", "category", "string[pyarrow]"])
@pytest.mark.parametrize("blank", [None, np.nan, "", " "])
def test_the_coarsest_regions_have_no_parent_however_that_is_written(blank, dtype):
    columns = {"region_id": ["1", "2", "11", "21"], "parent_id": [blank, blank, "1", "2"], "level": [1, 1, 2, 2]}
    assert Regions.from_parents(pd.DataFrame(columns).astype({"region_id": dtype, "parent_id": dtype})).parent[1].tolist() == [0, 1]


def test_numbers_that_a_gap_made_decimals_are_whole_again():
    columns = {"region_id": [1, 2, 11, 21], "parent_id": [np.nan, np.nan, 1, 2], "level": [1, 1, 2, 2]}
    assert [ids.tolist() for ids in Regions.from_parents(pd.DataFrame(columns)).ids] == [["1", "2"], ["11", "21"]]


def test_an_id_may_stand_on_several_levels():
    rows = [("1", None, 1), ("2", None, 1), ("1", "1", 2), ("2", "2", 2), ("3", "2", 2)]
    assert Regions.from_parents(table(rows)).parent[1].tolist() == [0, 1, 1]
    assert Regions.from_parents(table(rows, named=True)).levels == ("state", "county")


def test_an_order_of_names_that_does_not_follow_from_ids_is_requested():
    rows = [(region, "12"[k] if level > 1 else None, level) for level in (1, 2, 3) for k, region in enumerate("12")]
    assert "put numbers" in refusal(lambda: Regions.from_parents(table(rows, named=True)))
    assert Regions.from_parents(table(rows)).depth == 3


def test_tables_in_which_everybody_has_a_parent_are_refused():
    same = [("1", "1", 1), ("2", "1", 1), ("1", "1", 2)]
    for rows, words in ((same, "though no level is coarser"), (changed(a=("a", "zq", 1), b=("b", "zq", 1)), "has no row of its own")):
        assert words in refusal(lambda rows=rows: Regions.from_parents(table(rows)))
    assert "no coarsest level" in refusal(lambda: Regions.from_parents(table(same, named=True)))
    assert "no row of its own" in refusal(lambda: Regions.from_parents(table([("1", "zq", 1), ("2", "zq", 2)], named=True)))


def test_names_are_read_and_ids_serve_where_there_is_none():
    found = Regions.from_parents(table().assign(name=["A", "B", None, "AB", "", "AAA", "ABA", "BAA"]))
    assert [names.tolist() for names in found.names] == [["A", "B"], ["aa", "AB", "ba"], ["AAA", "ABA", "BAA"]]


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(paths(), st.data())
def test_one_wrong_parent_is_never_read_as_if_it_were_right(rows, data):
    """Whatever a parent is changed to, the table is refused, or it is another tree that is right."""
    good = parents_of(rows, root=True)
    row = data.draw(st.integers(0, len(good) - 1))
    parent = data.draw(st.sampled_from([*good["region_id"], None, "nowhere"]))
    bad = good.copy()
    bad.loc[row, "parent_id"] = parent
    try:
        found = Regions.from_parents(bad)
    except DomainError:
        return
    level = bad.loc[row, "level"]
    if level == 0 or (level == 1 and parent is None and (good["level"] == 1).sum() == 1):
        return
    above = bad[bad["level"] == level - 1]["region_id"]
    assert parent in set(above)
    place = found.find([bad.loc[row, "region_id"]], level)[0]
    assert found.ids_of(level - 1)[found.parent[level - 1][place]] == ("all" if level == 1 else parent)

"""Nested regions: from any table the same ones, wrong ones refused with a reason, and the way through their tree."""

import copy

import geopandas
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.errors import DomainError
from dpviz.space.regions import MOST_LEVELS, Regions
from tests.space.nested import level_names, parents_of, paths, regions_of, table_of

few = settings(max_examples=20, deadline=None, derandomize=True, database=None)
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


@pytest.mark.parametrize("dtype", [object, "str", "string", "string[pyarrow]", "category", "large_string[pyarrow]"])
def test_every_dtype_of_text_gives_the_same_regions(dtype):
    dtype = pd.ArrowDtype(__import__("pyarrow").large_string()) if dtype == "large_string[pyarrow]" else dtype
    regions = from_table(COUNTIES.astype(dtype))
    assert regions == from_table()
    assert {type(text) for ids in regions.ids for text in ids} == {str}


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, "Int64", "int64[pyarrow]", "category", object])
def test_whole_numbers_are_spelt_out(dtype):
    table = pd.DataFrame({"state": [1, 1, 2], "county": [7, 8, 9]}).astype(dtype)
    assert [ids.tolist() for ids in from_table(table).ids] == [["1", "2"], ["7", "8", "9"]]


@pytest.mark.parametrize(
    "cells",
    [
        [1.5, 2.0, 3.0, 4.0, 5.0],
        [True, False, True, False, True],
        [b"zq", b"b", b"c", b"d", b"e"],
        ["zq", 1, "b", "c", "d"],
        pd.date_range("2020-01-01", periods=5),
    ],
)
def test_ids_that_are_no_names_are_refused(cells):
    assert "must hold texts" in refusal(lambda: from_table(COUNTIES.assign(county=cells)))


WRONG_TABLES = {
    "missing": (lambda: from_table(COUNTIES.assign(state=["zq", None, "b", "c", "d"])), "'state' has a missing or blank cell"),
    "nan": (lambda: from_table(COUNTIES.assign(county=[np.nan, *"abcd"])), "'county' has a missing or blank cell"),
    "blank": (lambda: from_table(COUNTIES.assign(county=[" ", *"abcd"])), "'county' has a missing or blank cell"),
    "empty": (lambda: from_table(COUNTIES.iloc[:0]), "is empty"),
    "no levels": (lambda: from_table(levels=[]), "no levels were named"),
    "no column": (lambda: from_table(levels=["nation"]), "no column 'nation'"),
    "no names": (lambda: from_table(names={"county": "label"}), "no column 'label'"),
    "strange names": (lambda: from_table(names={"nation": "state"}), "'nation', which is not one of the levels"),
    "level twice": (lambda: from_table(levels=["county", "county"]), "each different"),
    "one text": (lambda: from_table(levels="county"), "must be a list"),
    "no table": (lambda: from_table({"state": ["a"]}), "must be a DataFrame"),
    "two columns": (lambda: from_table(pd.concat([COUNTIES, COUNTIES[["state"]]], axis=1)), "several columns 'state'"),
    "leaf twice": (lambda: from_table(pd.concat([COUNTIES, COUNTIES.iloc[1:2]])), "'county' has a duplicate id"),
    "leaf under two": (
        lambda: from_table(COUNTIES.assign(county=["zq1", "a", "zq1", "b", "c"])),
        "'county' has an id under two different parents",
    ),
    "state under two": (
        lambda: from_table(COUNTIES.assign(nation=["zq", "b", "c", "c", "c"]), levels=["nation", *LEVELS]),
        "'state' has an id with two different parents",
    ),
    "too deep": (lambda: from_table(pd.DataFrame({str(k): ["a"] for k in range(17)}), levels=[str(k) for k in range(17)]), "1 to 16"),
}


@pytest.mark.parametrize("case", WRONG_TABLES)
def test_wrong_tables_are_refused_with_a_reason(case):
    make, words = WRONG_TABLES[case]
    assert words in refusal(make)


def test_names_serve_people_and_ids_serve_where_there_is_none():
    table = COUNTIES.assign(label=["Fairfield", "Hartford", None, " ", "Addison"], nation=["NE"] * 5)
    regions = from_table(table, names={"county": "label"})
    assert regions.names[1].tolist() == ["Fairfield", "Hartford", "36001", "36003", "Addison"]
    assert regions.names_of(1).tolist() == ["09", "36", "50"]
    assert regions.names_of(0).tolist() == ["all"]
    assert "must hold texts" in refusal(lambda: from_table(table.assign(label=1.5), names={"county": "label"}))


@few
@given(paths(), st.randoms(use_true_random=False))
def test_rows_in_any_order_give_the_same_tree(rows, random):
    shuffled = random.sample(rows, len(rows))
    regions = regions_of(shuffled)
    assert {tuple(path_of(regions, leaf)) for leaf in range(len(rows))} == set(map(tuple, rows))
    for level in range(1, regions.depth + 1):
        ids = regions.ids[level - 1].tolist()
        assert (np.diff(regions.parent[level - 1]) >= 0).all()
        first = {path[level - 1]: place for place, path in reversed(list(enumerate(shuffled)))}
        assert all(first[a] < first[b] for a, b in siblings(regions, level, ids)), "siblings keep the order of the rows"


def siblings(regions, level, ids):
    parent = regions.parent[level - 1]
    return [(ids[k], ids[k + 1]) for k in range(len(ids) - 1) if parent[k] == parent[k + 1]]


def path_of(regions, leaf):
    return [regions.ids[level - 1][regions.ancestors(level)[leaf]] for level in range(1, regions.depth + 1)]


@few
@given(paths())
def test_parents_give_the_same_regions(rows):
    expected = regions_of(rows)
    alone = expected.size(1) == 1 and expected.depth > 1  # a single coarsest region is the root
    if not alone:
        assert Regions.from_parents(parents_of(rows)) == expected
    assert Regions.from_parents(parents_of(rows, root=True)) == expected
    zero_based = parents_of(rows, root=True).assign(level=lambda table: table["level"] + 1)
    assert Regions.from_parents(zero_based) == expected


@few
@given(paths(), st.integers(0, 99))
def test_parents_in_any_order_give_the_same_tree(rows, seed):
    found = Regions.from_parents(parents_of(rows, root=True).sample(frac=1, random_state=seed))
    assert {tuple(path_of(found, leaf)) for leaf in range(len(rows))} == set(map(tuple, rows))
    assert found.size(found.depth) == len(rows)


def test_a_single_coarsest_region_is_the_root_unless_it_is_all_there_is():
    rows = [["USA", "NY"], ["USA", "VT"]]
    assert Regions.from_parents(parents_of(rows)).ids[0].tolist() == ["NY", "VT"]
    assert Regions.from_parents(parents_of([["USA"]])).ids[0].tolist() == ["USA"]


NAMES = {0: "world", 1: "state", 2: "county", 3: "tract", 4: "block"}


@few
@given(paths(most_children=4), st.booleans())
def test_levels_with_names_find_their_order(rows, root):
    expected = regions_of(rows)
    table = parents_of(rows, root=root, names=NAMES)
    if any(set(a) == set(b) for k, a in enumerate(expected.ids) for b in expected.ids[:k]):
        return  # the order may be beyond telling
    found = Regions.from_parents(table.iloc[::-1])
    top = 0 if root or expected.size(1) > 1 or expected.depth == 1 else 1
    assert found.levels == tuple(NAMES[number] for number in range(1 + top, expected.depth + 1))
    assert {tuple(path_of(found, leaf)) for leaf in range(len(rows))} == {tuple(path[top:]) for path in rows}


@few
@given(paths(ids=st.from_regex(r"[0-9]{2}", fullmatch=True)))
def test_prefixes_give_the_same_regions(rows):
    joined = [["".join(path[: k + 1]) for k in range(len(path))] for path in rows]
    levels = level_names(len(rows[0]))
    lengths = [2 * (k + 1) for k in range(len(levels))]
    expected = regions_of(joined)
    assert Regions.from_prefixes([path[-1] for path in joined], lengths=lengths, levels=levels) == expected
    longer = [path[-1] + end for path in joined for end in ("0", "12")]
    assert Regions.from_prefixes(np.array(longer, object), lengths=lengths, levels=levels) == expected


@pytest.mark.parametrize(
    ("ids", "lengths", "levels", "words"),
    [
        (["06037", "0603"], [2, 5], LEVELS, "one is shorter"),
        ([], [2, 5], LEVELS, "or there is none"),
        ([6037], [2, 5], LEVELS, "lost its leading zeros"),
        (["06037", 36001], [2, 5], LEVELS, "lost its leading zeros"),
        (["06037", None], [2, 5], LEVELS, "missing or blank"),
        (["06037", float("nan")], [2, 5], LEVELS, "missing or blank"),
        (["06037", " "], [2, 5], LEVELS, "missing or blank"),
        (["06037"], [5, 2], LEVELS, "must grow"),
        (["06037"], [2, 2], LEVELS, "must grow"),
        (["06037"], [2], LEVELS, "of the same length"),
        (["06037"], [0, 2], LEVELS, "at least 1"),
        (["06037"], [2.0, 5.0], LEVELS, "whole numbers"),
        (["06037"], [True, 5], LEVELS, "whole numbers"),
        (["06037"], [2, 5], "ab", "levels must be a list"),
        ("06037", [2, 5], LEVELS, "ids must be a list"),
        (["06037"], 5, LEVELS, "lengths must be a list"),
        (["06037"], [], [], "no levels"),
        (["06037"], [2, 5], ["state", "state"], "each different"),
    ],
)
def test_prefixes_that_make_no_sense_are_refused(ids, lengths, levels, words):
    assert words in refusal(lambda: Regions.from_prefixes(ids, lengths=lengths, levels=levels))


def test_census_codes_nest_by_prefix():
    blocks = ["010010201001000", "010010201001001", "010010202001000", "360610001001000"]
    levels = ["state", "county", "tract", "group", "block"]
    regions = Regions.from_prefixes(blocks, lengths=[2, 5, 11, 12, 15], levels=levels)
    assert [len(ids) for ids in regions.ids] == [2, 2, 3, 3, 4]
    assert regions.ids[0].tolist() == ["01", "36"]


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


def test_levels_out_of_range_are_refused():
    assert "Levels run from 0 to 2" in refusal(lambda: from_table().ancestors(3))
    assert "must not be the finer one" in refusal(lambda: from_table().ancestors(2, 1))


def test_regions_are_equal_by_what_they_name():
    one, other = from_table(), from_table(COUNTIES.assign(label="x"), names={"county": "label"})
    assert one == other
    assert hash(one) == hash(other)
    assert one == copy.deepcopy(one)
    assert one != from_table(COUNTIES.iloc[::-1])
    assert one != from_table(COUNTIES.rename(columns={"state": "State"}), levels=["State", "county"])
    assert one != "Regions"


PARTS = {
    "levels": ("a", "b"),
    "ids": (np.array(["p", "q"], object), np.array(["r", "s", "t"], object)),
    "parent": (np.array([0, 0], np.int32), np.array([0, 1, 1], np.int32)),
    "names": (np.array(["p", "q"], object), np.array(["r", "s", "t"], object)),
    "geometry": (None, None),
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"levels": ()}, f"1 to {MOST_LEVELS} levels"),
        ({"levels": ("a", "a")}, "each different"),
        ({"levels": ("a", "")}, "need names"),
        ({"levels": ("a", 1)}, "need names"),
        ({"names": PARTS["names"][:1]}, "one entry per level"),
        ({"names": (PARTS["names"][0], np.array(["r"], object))}, "one id, parent, name and shape"),
        ({"ids": (PARTS["ids"][0], np.array(["r", "r", "t"], object))}, "duplicate id"),
        ({"ids": (PARTS["ids"][0], np.array(["r", "", "t"], object))}, "ids that are texts"),
        ({"ids": (PARTS["ids"][0], np.array(["r", 5, "t"], object))}, "ids that are texts"),
        ({"parent": (PARTS["parent"][0], np.array([1, 0, 1], np.int32))}, "tree order"),
        ({"parent": (PARTS["parent"][0], np.array([0, 1, 2], np.int32))}, "tree order"),
        ({"parent": (PARTS["parent"][0], np.array([-1, 0, 1], np.int32))}, "tree order"),
        ({"parent": (PARTS["parent"][0], np.array([1, 1, 1], np.int32))}, "has no children"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, words):
    assert Regions(**PARTS).size(2) == 3
    assert words in refusal(lambda: Regions(**{**PARTS, **change}))


def test_a_table_of_a_level_without_regions_is_refused():
    empty = {key: (value[0][:0], value[1][:0]) if key != "levels" else value for key, value in PARTS.items() if key != "geometry"}
    assert "at least one region" in refusal(lambda: Regions(**empty, geometry=(None, None)))


def test_many_leaves_are_refused(monkeypatch):
    monkeypatch.setattr("dpviz.space.regions.MOST_LEAVES", 4)
    assert "more than 4 leaf" in refusal(from_table)


def test_the_table_of_these_tests_is_what_it_says():
    assert table_of([["a", "b"]]).columns.tolist() == ["level 1", "level 2"]


def test_coarser_levels_by_prefix_keep_names_and_geometry():
    """Counties out of order, grouped by state: names and shapes go with their regions."""
    table = geopandas.GeoDataFrame(
        {"county": ["50001", "36003", "36001"], "county_name": ["Addison", "Allegany", "Albany"]},
        geometry=geopandas.points_from_xy([3, 2, 1], [30, 20, 10]),
        crs="EPSG:4326",
    )
    regions = Regions.from_table(table, levels=["county"], names={"county": "county_name"}).grouped([2])
    assert regions.levels == ("first 2 characters", "county")
    assert regions.ids[0].tolist() == ["50", "36"]
    assert regions.ancestors(1).tolist() == [0, 1, 1]
    assert regions.names[1].tolist() == ["Addison", "Allegany", "Albany"]
    assert regions.centres(2).tolist() == [[3, 30], [2, 20], [1, 10]]
    assert Regions.from_table(table, levels=["county"]).grouped([1, 3]).depth == 3
    for lengths in ([5], [9], [0], [3, 2], ["2"]):
        with pytest.raises(DomainError):
            Regions.from_table(table, levels=["county"]).grouped(lengths)
